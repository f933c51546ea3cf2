# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium, driven over its debugging pipe (--remote-debugging-pipe: messages end with NUL)."""
import base64, json, os, select, shutil, subprocess, tempfile, time


class Failed(Exception):
    pass


def find():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    def __init__(self, more=()):
        self.home = tempfile.mkdtemp(prefix="afscell-browser.")
        ours_r, its_w = os.pipe()
        its_r, ours_w = os.pipe()

        def fds():  # the browser reads 3 and writes 4
            a, b = os.dup2(its_r, 10), os.dup2(its_w, 11)
            os.dup2(a, 3), os.dup2(b, 4)

        self.p = subprocess.Popen([find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--hide-scrollbars", "--user-data-dir=" + self.home, "--remote-debugging-pipe", *more, "about:blank"],
            preexec_fn=fds, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(its_r), os.close(its_w)
        self.r, self.w, self.buf, self.n, self.events = ours_r, ours_w, b"", 0, []

    def send(self, method, params=None, session=None, wait=300):
        self.n += 1
        m = {"id": self.n, "method": method, "params": params or {}}
        if session:
            m["sessionId"] = session
        os.write(self.w, json.dumps(m).encode() + b"\0")
        until = time.monotonic() + wait
        while True:
            got = self.read(until, method)
            if got.get("id") == self.n:
                if "error" in got:
                    raise Failed(f"{method}: {got['error']}")
                return got["result"]
            self.events = (self.events + [got])[-1000:]

    def read(self, until, what):
        while b"\0" not in self.buf:
            if not select.select([self.r], [], [], max(0, until - time.monotonic()))[0]:
                raise Failed(what + ": the browser does not answer")
            more = os.read(self.r, 1 << 20)
            if not more:
                raise Failed(what + ": the browser ended")
            self.buf += more
        one, self.buf = self.buf.split(b"\0", 1)
        return json.loads(one)

    def page(self, **how):
        """A page in a context of its own: cookies are not shared."""
        return Page(self, **how)

    def close(self):
        try:
            self.send("Browser.close", wait=20)
            self.p.wait(20)
        except (Failed, OSError, subprocess.TimeoutExpired):
            self.p.kill()
            self.p.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class Page:
    def __init__(self, browser, width=1280, height=900, dark=False, phone=False):
        self.b = browser
        context = browser.send("Target.createBrowserContext")["browserContextId"]
        target = browser.send("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        self.s = browser.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(domain + ".enable")
        self.look(width, height, dark, phone)

    def send(self, method, params=None):
        return self.b.send(method, params, self.s)

    def look(self, width=1280, height=900, dark=False, phone=False):
        self.send("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})
        self.send("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def open(self, url):
        self.send("Page.navigate", {"url": url})

    def js(self, text):
        r = self.send("Runtime.evaluate", {"expression": text, "awaitPromise": True, "returnByValue": True})
        if "exceptionDetails" in r:
            raise Failed(text + ": " + json.dumps(r["exceptionDetails"])[:500])
        return r["result"].get("value")

    def until(self, text, seconds=240):
        """Wait for an expression to be true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.js(text):
                    return
            except Failed:
                pass  # the page is being replaced
            time.sleep(0.1)
        raise Failed(f"never: {text}\nthe page says: {self.js('document.body.innerText')[:3000]}")

    def says(self, text, seconds=240):
        self.until(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def click(self, text, inside="body"):
        """The visible button or link with that text."""
        find = ("(document.querySelector(%s) && [...document.querySelectorAll(%s + ' button,' + %s + ' a,' + %s + ' summary')]"
            ".filter(e => e.offsetParent && !e.disabled && e.textContent.trim() === %s)[0])") % (*[json.dumps(inside)] * 4, json.dumps(text))
        self.until("!!" + find)
        self.js(find + ".click()")

    def type(self, label, text, inside="body"):
        """Into the field of that label, as if by keys."""
        find = ("[...document.querySelectorAll(%s + ' label')].filter(l => l.offsetParent && l.textContent.trim().startsWith(%s))"
            ".map(l => l.querySelector('input,select,textarea'))[0]") % (json.dumps(inside), json.dumps(label))
        self.until("!!" + find)
        self.js(f"(e => {{ e.focus(); e.value = {json.dumps(text)}; e.dispatchEvent(new Event('input', {{bubbles: true}}));"
            f" e.dispatchEvent(new Event('change', {{bubbles: true}})); }})({find})")

    def key(self, key):
        self.send("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, "text": key if len(key) == 1 else ""})
        self.send("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})

    def shot(self, path, whole=True):
        png = self.send("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(png))

    def complaints(self):
        """What the browser's console was told by our pages: exceptions, refused resources, policy violations."""
        self.js("1")
        found = []
        for e in self.b.events:
            p = e.get("params", {})
            if e.get("sessionId") == self.s and e["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(p["exceptionDetails"])[:400])
            if e.get("sessionId") == self.s and e["method"] == "Log.entryAdded" and p["entry"]["source"] in ("security", "javascript"):
                found.append(p["entry"]["text"])
        return found
