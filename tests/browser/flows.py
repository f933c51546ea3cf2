# SPDX-License-Identifier: BSD-2-Clause
"""What people do with the console, step by step; TAP.  flows.py URL LINK DIRECTORY-OF-PICTURES"""
import sys

from chromium import Chromium, Failed

url, link, shots = sys.argv[1:4]
cell = "web.test"
steps = []


def step(what):
    return lambda f: steps.append((what, f))


def go(p, where, text):
    p.js(f"location.hash = '#{where}'")
    p.says(text)


def sign_in(p, name, password):
    p.open(url)
    p.says("Kerberos password")
    p.type("User", name)
    p.type("Kerberos password", password)
    p.click("Sign in", "form")
    p.says("Sign out everywhere")


@step("the first link signs in")
def _(b, s):
    p = b.page()
    p.open(link)
    p.says("the machine's owner · administrator")
    p.says("The cell is well")
    assert link.split("/")[-1] not in p.js("location.href"), "the link stays in the address"


@step("... and once only")
def _(b, s):
    p = b.page()
    p.open(link)
    p.says("was used already")


@step("a wrong password is told in words")
def _(b, s):
    p = b.page()
    p.open(url)
    p.says("Kerberos password")
    p.type("User", "admin")
    p.type("Kerberos password", "wrong")
    p.click("Sign in", "form")
    p.says("no such user, or a wrong password")


@step("an administrator signs in and sees that the cell is well")
def _(b, s):
    s["admin"] = p = b.page()
    sign_in(p, "admin", "admins-long-password")
    p.says("The cell is well")
    p.says("Disks and quotas")
    p.says("127.0.0.1 /vicepa")


@step("one form makes a user with his home volume")
def _(b, s):
    p = s["admin"]
    go(p, "people", "system:administrators")
    p.click("Create a user")
    p.type("Name", "carol")
    p.type("Password", "carols-long-password")
    p.click("Create", "form")
    p.says("carol can sign in now.")
    assert p.js("[...document.querySelectorAll('.steps .pill.good')].length") == 4
    assert "carols-long-password" not in p.js("document.body.innerText"), "the password is shown"


@step("a quota is set and shown")
def _(b, s):
    p = s["admin"]
    go(p, "volume/user.carol", "In the location database")
    p.click("Set the quota")
    p.type("maxquota", "204800")
    p.click("Do it")
    p.says("of 200.0 MiB")


@step("who can do what is told with its reason, and follows a change of the list")
def _(b, s):
    p = s["admin"]
    go(p, f"files/.{cell}/user/carol", "Access list")
    p.type("User or group", "carol")
    p.click("Show")
    p.says("carol may here: read, look up, insert, delete, write, lock, administer.")
    p.type("User or group", "alice")
    p.click("Show")
    p.says("alice may here: nothing.")
    p.type("Add an entry", "alice")
    p.click("Add")
    p.click("Store the list")
    p.says("The access list is stored.")
    p.until("!!document.querySelector('[aria-label=\"alice: read\"]')")
    p.type("User or group", "alice")
    p.click("Show")
    p.says("alice may here: read, look up.")
    p.says("through alice")


@step("the new user signs in, beside the administrator, and gets his own pages only")
def _(b, s):
    s["carol"] = p = b.page()
    sign_in(p, "carol", "carols-long-password")
    names = p.js("[...document.querySelectorAll('#nav a')].map(a => a.textContent)")
    assert "Configuration" not in names and "Log and audit" not in names, names
    p.js("location.hash = '#config'")
    p.says("only an administrator")


@step("... makes a folder at home")
def _(b, s):
    p = s["carol"]
    go(p, f"files/.{cell}/user/carol", "Access list")
    p.click("Make a folder or a mount point")
    p.type("Name", "letters")
    p.click("Make it")
    p.until("[...document.querySelectorAll('td a')].some(a => a.textContent === 'letters')")


@step("... and none elsewhere, nor a volume: the servers refuse it")
def _(b, s):
    p = s["carol"]
    go(p, f"files/.{cell}", "Only who may administer")
    why = p.js("""fetch('/api/v1/session').then(r => r.json()).then(me => fetch('/api/v1/mkdir', {method: 'POST',
        headers: {'X-CSRF-Token': me.csrf}, body: JSON.stringify({path: '/afs/.%s', name: 'hers'})})).then(r => r.json()).then(r => r.error)""" % cell)
    assert why == "ACCESS", why
    go(p, "volumes", "Create a volume")
    p.click("Create a volume")
    p.type("name", "hers")
    p.click("Do it")
    p.until("!!document.querySelector('main .bad[role=alert]')")


@step("/ j k and Enter lead through a list")
def _(b, s):
    p = s["admin"]
    go(p, "volumes", "user.carol")
    p.key("j")
    p.until("document.activeElement.textContent === 'root.cell'")
    p.key("j")
    p.until("document.activeElement.textContent === 'user.carol'")
    p.key("k")
    p.until("document.activeElement.textContent === 'root.cell'")
    p.key("/")
    p.until("document.activeElement.type === 'search'")
    p.js("(e => { e.value = 'carol'; e.dispatchEvent(new Event('input', {bubbles: true})); })(document.activeElement)")
    p.says("1–1 of 1")


@step("every page in light, dark and on a phone: pictured, nothing sticks out, the browser complains of nothing")
def _(b, s):
    p = s["admin"]
    for where, text in (("overview", "Recent changes"), ("volumes", "user.carol"), ("volume/user.carol", "In the location database"), (f"files/.{cell}/user/carol", "Access list"),
            ("people", "system:authuser"), ("person/carol", "Principal"), ("group/system:administrators", "Owner"), ("security", "Administrators"), ("log", "Server log"),
            ("config", "Check this text"), ("commands", "What it does"), ("commands/vos%20create", "Do it")):
        go(p, where, text)
        for kind, look in (("light", {}), ("dark", {"dark": True}), ("phone", {"width": 390, "height": 844, "phone": True})):
            p.look(**look)
            p.shot(f"{shots}/{where.replace('/', '_').replace('%20', '_')}.{kind}.png")
            assert p.js("document.documentElement.scrollWidth <= innerWidth"), f"{where} is wider than a {kind} window"
        p.look()
    assert p.complaints() == [], p.complaints()


@step("signing out ends it; the way back shows nothing")
def _(b, s):
    p = s["carol"]
    p.click("Sign out")
    p.says("Kerberos password")
    p.js("location.hash = '#people'")
    p.says("Kerberos password")
    assert p.js("fetch('/api/v1/session').then(r => r.status)") == 401


@step("signing out everywhere ends the other window, too")
def _(b, s):
    other = b.page()
    sign_in(other, "admin", "admins-long-password")
    s["admin"].click("Sign out everywhere")
    s["admin"].says("Kerberos password")
    other.until("fetch('/api/v1/session').then(r => r.status === 401)")


bad = 0
browser, state = Chromium(), {}
print(f"1..{len(steps)}", flush=True)
try:
    for n, (what, f) in enumerate(steps, 1):
        try:
            f(browser, state)
            print(f"ok {n} - {what}", flush=True)
        except (Failed, AssertionError, KeyError) as e:
            bad = 1
            print(f"not ok {n} - {what}\n# " + str(e).replace("\n", "\n# "), flush=True)
finally:
    browser.close()
sys.exit(bad)
