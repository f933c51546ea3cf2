// SPDX-License-Identifier: BSD-2-Clause
// Overview, volumes, people, security, log and configuration.
import { api, run, el, put, say, bytes, span, bar, chart, pill, facts, failed, empty, when, table, pagedTable, simple, list, actions, steps, shell, session } from "./kit.js";

const vol = name => el("a", { href: "#volume/" + encodeURIComponent(name) }, name);
const quota = v => v.max_quota_kib ? [el("span", { class: "small" }, `${bytes(v.size_kib * 1024)} of ${bytes(v.max_quota_kib * 1024)}`), bar(v.size_kib, v.max_quota_kib, "Quota")] : [el("span", { class: "small" }, bytes(v.size_kib * 1024) + ", no quota")];
const stateOf = r => r.state === "running" ? pill("running", "good") : r.state === "off" ? pill("off") : pill(r.state, "bad");
const servers = async () => [...new Set((await run("vos listvldb")).flatMap(v => v.sites.map(s => s.address)))].slice(0, 16);

function verdict(found, st) {
  const bad = found.filter(x => x.level !== "good"), down = st.roles.filter(r => r.state !== "running" && r.state !== "off");
  for (const r of down) if (!bad.some(x => x.text.includes(r.name))) bad.push({ level: "bad", text: `${r.name} is ${r.state}`, do: `afscell bos start localhost ${r.name}` });
  const worst = bad.some(x => x.level === "bad") ? "bad" : bad.length ? "warning" : "good";
  return el("section", { class: "card verdict " + worst, "aria-label": "Health" }, el("div", {}, el("h2", {}, worst === "good" ? found.length || !session.administrator ? found.length ? "The cell is well" : "All roles run" : "All roles run; asking the other checks…" : bad.length === 1 ? "One thing needs attention" : bad.length + " things need attention"),
    el("div", { class: "soft" }, [found.length ? `${found.length - bad.length} checks are good · ` : "", `${st.roles.filter(r => r.state === "running").length} roles run · up ${span(st.uptime_s)} · version ${st.version}`]),
    bad.length ? el("ul", {}, bad.map(x => el("li", {}, pill(x.level, x.level), x.text, x.do ? el("div", { class: "soft" }, "→ ", x.do) : []))) : [],
    found.length ? el("details", {}, el("summary", { class: "soft small" }, "All checks"), simple(["Check", "", "What was found"], found.map(x => [x.check, pill(x.level, x.level), x.text]))) : []));
}

const person = l => { try { return JSON.parse(l); } catch { return null; } };
async function changes(n) {
  return (await api("audit")).trimEnd().split("\n").reverse().map(person).filter(x => x && x.who !== "afs" && !x.call.startsWith("console.")).slice(0, n);
}
// JSON as words: {"name":"bob","id":[1,2]} is: name bob, id 1 2.
const ofWhat = text => text.replace(/[{}\[\]"]/g, "").replaceAll(":", " ").replaceAll(",", ", ");
const changeRow = x => [when(Date.parse(x.time) / 1000), x.who.replace(" (console, ", " (from "), x.call, el("span", { class: "small text", title: x.object ?? JSON.stringify(x.args ?? {}) }, ofWhat(x.object ?? JSON.stringify(x.args ?? {})).slice(0, 140)), x.result === "OK" ? pill("done", "good") : pill(x.result, "bad")];

export async function overview(main, open) {
  const top = el("div", {}, el("div", { class: "card" }, "Looking at the cell…")), tiles = el("div", { class: "cards" }), roles = el("div", { class: "card" }, "Asking…"), disks = el("div", { class: "card" }, el("h2", {}, "Disks and quotas"), el("p", {}, "Asking the volume server…")), recent = el("div", { class: "card" });
  main.append(top, tiles, el("div", { class: "two" }, roles, disks), session.administrator ? recent : "");
  let last = null, rates = [], found = [], details = false;
  const show = e => {
    const st = JSON.parse(e.data), fs = st.fileserver || {}, cl = st.client || {}, per = {};
    document.getElementById("cell").textContent = st.cell;
    const calls = r => st.rx[r.name]?.calls_in ?? 0;
    if (last) {
      const s = (Date.now() - last.at) / 1000, rate = k => Math.max(0, ((fs[k] || 0) - (last.fs[k] || 0)) / s);
      for (const r of st.roles) per[r.name] = Math.max(0, (calls(r) - (last.st.rx[r.name]?.calls_in ?? 0)) / s);
      rates = [...rates, { calls: Object.values(per).reduce((a, b) => a + b, 0), out: rate("fetched_bytes"), in: rate("stored_bytes") }].slice(-60);
    }
    last = { at: Date.now(), fs, st };
    const now = rates.at(-1) || { calls: 0, out: 0, in: 0 };
    const tile = (title, big, soft, values) => el("div", { class: "card tile" }, el("h2", {}, title), el("div", { class: "big" }, big), el("div", { class: "soft small" }, soft), values ? chart(values, title + " over two minutes") : []);
    details = !!top.querySelector("details")?.open;
    put(top, verdict(found, st));
    if (details) top.querySelector("details")?.setAttribute("open", "");
    put(tiles, tile("Calls", now.calls.toFixed(1) + " /s", `${fs.calls || 0} to the file server, ${fs.refused_calls || 0} refused`, rates.map(r => r.calls)),
      tile("Sent to clients", bytes(Math.round(now.out)) + "/s", bytes(fs.fetched_bytes || 0) + " in all", rates.map(r => r.out)),
      tile("Taken from clients", bytes(Math.round(now.in)) + "/s", bytes(fs.stored_bytes || 0) + " in all", rates.map(r => r.in)),
      tile("Clients", String(fs.hosts_now || 0), fs.hosts_down ? `${fs.hosts_down} do not answer` : "all answer"),
      tile("Callback promises", String(fs.promises_now || 0), `${fs.breaks_sent || 0} broken, room for ${fs.promises_max || 0}`),
      el("div", { class: "card tile" }, el("h2", {}, "Cache of this machine"), el("div", { class: "big" }, bytes(cl.cache_bytes || 0)), bar(cl.cache_bytes || 0, cl.cache_max || 0, "Cache"), el("div", { class: "soft small" }, `of ${bytes(cl.cache_max || 0)}; ${bytes(cl.dirty_bytes || 0)} not stored yet`)));
    put(roles, el("h2", {}, "Roles"), simple(["Role", "State", "Port", "Calls /s", "Calls"], st.roles.map(r => [r.name, stateOf(r), String(r.port ?? ""), r.name in st.rx ? (per[r.name] || 0).toFixed(1) : "", r.name in st.rx ? String(calls(r)) : ""])));
  };
  open(show);
  const later = [async () => {
    const rows = [], full = [];
    for (const s of await servers()) {
      for (const p of await run("vos partinfo", { server: s })) rows.push([`${s} ${p.partition}`, p.total_kib - p.free_kib, p.total_kib]);
      full.push(...(await list("vos listvol", { server: s }, { sort: "size_kib", down: true, count: 200, pick: { type: ["RW"] } })).rows.filter(v => v.max_quota_kib));
    }
    full.sort((a, b) => b.size_kib / b.max_quota_kib - a.size_kib / a.max_quota_kib);
    put(disks, el("h2", {}, "Disks and quotas"), rows.length ? simple(["Partition", "Used"], rows.map(([n, used, all]) => [n, [el("span", { class: "small" }, `${bytes(used * 1024)} of ${bytes(all * 1024)}`), bar(used, all, n)]])) : empty("No volume yet", "A partition shows here when it has one."),
      full.length ? [el("h3", {}, "Fullest volumes"), simple(["Volume", "Quota"], full.slice(0, 5).map(v => [vol(v.name), quota(v)]))] : "");
  }];
  if (session.administrator) later.push(async () => { found = await run("doctor"); }, async () => {
    const c = await changes(6), warn = (await api("log")).split("\n").filter(l => / (warn|error) /.test(l)).slice(-5).reverse();
    put(recent, el("h2", {}, "Recent changes"), c.length ? simple(["When", "Who", "What", "Of what", ""], c.map(changeRow)) : empty("Nothing was changed yet"), el("h2", {}, "Recent warnings"), warn.length ? warn.map(l => el("pre", {}, l)) : el("p", { class: "soft" }, "The log has none."));
  });
  await Promise.all(later.map(f => f().catch(err => { if (f === later[0]) put(disks, el("h2", {}, "Disks and quotas"), failed(err)); else if (session.administrator) say(err.message); })));
}

export async function volumes(main) {
  const t = pagedTable([{ name: "Name", sort: "name", show: v => vol(v.name) }, { name: "Size and quota", show: v => v.here ? quota(v.here) : el("span", { class: "soft" }, "not known") }, { name: "State", show: v => v.here ? pill(v.here.state, v.here.state === "on-line" ? "good" : "bad") : pill("not found", "warning") },
    { name: "Copies", show: v => v.sites.map(s => pill(`${s.type} ${s.server} ${s.partition.replace("/vicep", "")}`, s.released ? "" : "warning")) }, { name: "Backup", show: v => v.backup_id ? pill("yes", "good") : el("span", { class: "soft" }, "none") }, { name: "Id", sort: "rw_id", num: true, show: v => String(v.rw_id ?? v.ro_id ?? "") }],
  async how => {
    const r = await list("vos listvldb", {}, how), by = {};
    for (const v of r.rows) for (const s of v.sites) if (s.type === "RW") (by[s.address] ||= []).push(v.name);
    for (const [server, names] of Object.entries(by))
      try { for (const x of (await list("vos listvol", { server }, { pick: { name: names }, count: 500 })).rows) { const v = r.rows.find(y => y.name === x.name); if (v) v.here = x; } } catch (err) { say(err.message); }
    return r;
  }, empty("There is no volume yet", "“Create a volume” makes the first."));
  main.append(await actions([["vos create", "Create a volume"], ["vos backupsys", "Back up many"], ["vos partinfo", "Space of a server"]], t.reload, { server: "localhost", partition: "a" }), el("div", { class: "card" }, t));
}

export async function volume(main, name) {
  main.append(el("p", {}, el("a", { href: "#volumes" }, "← All volumes")));
  const place = el("div", {}, el("p", {}, "Asking the volume server…"));
  const load = async () => {
    const r = await run("vos examine", { id: name }), e = r.entry;
    put(place, (r.volumes || []).map(v => el("div", { class: "card" }, el("h2", {}, `${v.name} on ${v.server} ${v.partition} `, pill(v.state, v.state === "on-line" ? "good" : "bad"), v.needs_salvage ? pill("needs salvage", "bad") : ""),
      facts([["Size and quota", quota(v)], ["Kind", { RW: "read-write", RO: "read-only", BK: "backup" }[v.type] || v.type], ["Files", String(v.files)], ["Changed", when(v.updated)], ["Created", when(v.created)], ["Backed up", when(v.backed_up)], ["Uses today", String(v.day_use)], ["Id", String(v.id)]]))),
    e ? el("div", { class: "card" }, el("h2", {}, "In the location database"), simple(["Kind", "Server", "Partition", ""], e.sites.map(s => [s.type, s.server, s.partition, s.released ? pill("up to date", "good") : pill("not released", "warning")])), e.locked_for ? el("p", { class: "warning" }, "Locked for " + e.locked_for) : "") : "");
  };
  const again = () => load().catch(err => put(place, failed(err)));
  main.append(await actions([["vos setfields", "Set the quota"], ["vos backup", "Back up"], ["vos addsite", "Add a copy"], ["vos release", "Release"], ["vos rename", "Rename"], ["vos move", "Move"], ["vos remove", "Remove"]], again, { id: name, oldname: name }), place);
  await load();
}

function newUser(done) {
  const f = (label, soft, value = "", type = "text") => { const i = el("input", { type, value, autocomplete: type === "password" ? "new-password" : "off" }); return [el("label", {}, label, " ", el("span", { class: "soft" }, soft), i), i]; };
  const [nl, name] = f("Name", "as it will sign in"), [pl, password] = f("Password", "empty: a random one, shown once", "", "password"), [gl, groups] = f("Groups", "with blanks between"), [ql, size] = f("Home volume's quota", "in MiB; 0: none", "1000"), [sl, server] = f("Server", "that will hold it", "localhost"), [tl, part] = f("Partition", "", "a"), [dl, dir] = f("Mounted in", "an existing directory of /afs", document.getElementById("cell").textContent ? `/afs/.${document.getElementById("cell").textContent}/user` : "");
  const home = el("input", { type: "checkbox", checked: true }), more = el("div", {}, ql, sl, tl, dl), out = el("div", { "aria-live": "polite" }), box = el("div");
  home.addEventListener("change", () => { more.hidden = !home.checked; });
  const words = s => s.trim().split(/\s+/).filter(Boolean);
  box.append(el("div", { class: "card" }, el("div", { class: "row" }, el("h2", {}, "Create a user"), el("button", { class: "end", onclick: () => box.remove() }, "Close")), el("form", { onsubmit: async e => {
    e.preventDefault();
    const n = name.value.trim(), v = "user." + n, at = dir.value.trim().replace(/\/+$/, ""), q = String(Math.round(Number(size.value) * 1024));
    if (!n) { put(out, el("p", { class: "bad" }, "A user needs a name.")); return; }
    const add = { name: n, ...(words(groups.value).length ? { group: words(groups.value) } : {}), ...(password.value ? { password: password.value } : {}) }, create = { server: server.value, partition: part.value, name: v, maxquota: q };
    let made = null;
    const todo = [["The user, in the realm and in the protection database", async () => { made = await api("run/user/add", add); }, shell("user add", { ...add, ...(add.password ? { password: "…" } : {}) })]];
    if (home.checked) todo.push(["The home volume", () => run("vos create", create), shell("vos create", create)],
      ["Its mount point", async () => { await api("file", { path: at, count: 1 }).catch(async err => { if (err.status !== 404) throw err; const cut = at.lastIndexOf("/"); await api("mkdir", { path: at.slice(0, cut), name: at.slice(cut + 1) }); }); await api("mount", { path: at, name: n, volume: v }); }, `afscell fs mkmount ${at}/${n} ${v}`],
      ["All rights in it for its user", async () => { const x = await api("file", { path: `${at}/${n}`, count: 1 }); await api("acl", { path: `${at}/${n}`, was: x.acl.text, acl: { positive: [...x.acl.positive, { name: n, rights: "rlidwka" }], negative: x.acl.negative } }); }, `afscell fs setacl ${at}/${n} ${n} all`]);
    const well = await steps(out, todo);
    const given = made?.result?.password;
    if (given) out.append(el("p", {}, "The password, shown this once: ", el("code", {}, given)));
    if (well) out.append(el("p", { class: "good" }, `${n} can sign in now.`));
    done();
  } }, nl, pl, gl, el("label", { class: "check" }, home, " with a home volume"), more, el("button", { class: "main" }, "Create"), out)));
  return box;
}

export async function people(main) {
  if (!session.administrator) {
    const me = session.name.split("@")[0], place = el("div", { class: "card" }, "Asking…");
    main.append(place, await actions([["pts examine", "Look up an entry"], ["pts membership", "Show members"], ["pts creategroup", "Make a group"], ["pts adduser", "Add to a group"], ["pts removeuser", "Remove from a group"]]));
    const r = (await run("pts membership", { nameorid: [me] }))[0];
    put(place, el("h2", {}, me), facts([["Id", String(r.id)], ["Groups", r.groups?.length ? r.groups.map(g => pill(g.name)) : "none"]]));
    return;
  }
  const users = pagedTable([{ name: "Name", sort: "name", show: u => el("a", { href: "#person/" + encodeURIComponent(u.name) }, u.name) }, { name: "Id", sort: "id", key: "id", num: true }, { name: "Groups", sort: "groups", key: "groups", num: true }, { name: "Sign-in", show: u => !u.principal ? pill("no principal", "warning") : u.disabled ? pill("disabled", "bad") : pill("allowed", "good") }, { name: "Password set", sort: "password_changed", show: u => when(u.password_changed) }], how => list("user list", {}, how), empty("There is no user yet", "“Create a user” makes the first."));
  const groups = pagedTable([{ name: "Name", sort: "name", show: g => el("a", { href: "#group/" + encodeURIComponent(g.name) }, g.name) }, { name: "Id", sort: "id", key: "id", num: true }, { name: "Members", sort: "members", key: "members", num: true }, { name: "Owner", sort: "owner", key: "owner" }], how => list("group list", {}, how), empty("There is no group yet", "“Make a group” makes the first."));
  const form = el("div");
  main.append(el("div", { class: "row" }, el("button", { class: "main", onclick: () => { put(form, newUser(users.reload)); form.querySelector("input").focus(); } }, "Create a user")), form, el("div", { class: "card" }, el("h2", {}, "Users"), users),
    el("div", { class: "card" }, el("h2", {}, "Groups"), await actions([["group add", "Make a group"], ["group adduser", "Add members"], ["group removeuser", "Remove members"]], groups.reload), groups));
}

export async function person_(main, name) {
  main.append(el("p", {}, el("a", { href: "#people" }, "← All people")));
  const place = el("div", { class: "card" }, "Asking…");
  const load = async () => { const u = await run("user show", { name }); put(place, facts([["Id", String(u.id)], ["Principal", u.principal || "none"], ["Sign-in", u.disabled ? pill("disabled", "bad") : pill("allowed", "good")], ["Password set", when(u.password_changed)], ["Groups", u.groups.length ? u.groups.map(g => el("a", { href: "#group/" + encodeURIComponent(g) }, pill(g))) : "none"]])); };
  main.append(await actions([["user passwd", "New password"], ["group adduser", "Add to a group"], ["user disable", "Disable"], ["user enable", "Enable"], ["user remove", "Remove"]], () => load().catch(err => put(place, failed(err))), { name }), place);
  await load();
}
export async function group(main, name) {
  main.append(el("p", {}, el("a", { href: "#people" }, "← All people")));
  const place = el("div", { class: "card" }, "Asking…");
  const load = async () => { const g = await run("group show", { name }); put(place, facts([["Id", String(g.id)], ["Owner", g.owner], ["Members", g.members.length ? g.members.map(m => pill(m)) : "none"]])); };
  main.append(await actions([["group adduser", "Add members"], ["group removeuser", "Remove members"], ["group remove", "Remove the group"]], () => load().catch(err => put(place, failed(err))), { name }), place);
  await load();
}

export async function security(main) {
  const place = el("div", {}, "Asking…");
  const load = async () => {
    const k = await run("key list"), days = Math.floor((Date.now() / 1000 - k.since) / 86400);
    put(place, facts([["Realm", k.realm], ["Newest key made", [when(k.since), ` (${days ? days + " days ago" : "today"}) `, days > 365 ? pill("older than a year", "warning") : pill("fresh", "good")]], k.old_until && ["Older keys needed until", when(k.old_until)]]), simple(["Number", "Kind", "Checksum"], k.keys.map(x => [String(x.kvno), [x.enctype, " ", /des-|rc4|arcfour/.test(x.enctype) ? pill("weak", "bad") : pill("strong", "good")], String(x.checksum)])));
  };
  main.append(el("div", { class: "card" }, el("h2", {}, "The cell's key"), await actions([["key rotate", "Rotate the key"], ["key retire", "Retire old keys"]], load), place));
  await load();
  const admins = (await run("group show", { name: "system:administrators" })).members;
  main.append(el("div", { class: "card" }, el("h2", {}, "Administrators"), admins.length ? admins.map(a => pill(a)) : el("p", { class: "warning" }, "The group system:administrators is empty.")));
}

export async function log(main) {
  const c = await changes(5000), lines = (await api("log")).trimEnd().split("\n").filter(Boolean).reverse().map(l => { const [time, level, ...rest] = l.split(" "); return { time, level, text: rest.join(" ") }; });
  main.append(el("div", { class: "card" }, el("h2", {}, "Who changed what"), table(c, ["When", "Who", "What", "Of what", ""].map((n, i) => ({ name: n, show: x => changeRow(x)[i] })), empty("Nothing was changed yet"))),
    el("div", { class: "card" }, el("h2", {}, "Server log"), table(lines, [{ name: "When", show: x => when(Date.parse(x.time) / 1000) }, { name: "", show: x => pill(x.level, { warn: "warning", error: "bad" }[x.level] || "") }, { name: "What", show: x => el("code", {}, x.text) }], empty("The log is empty"))));
}

export async function config(main) {
  const text = el("textarea", { spellcheck: "false", "aria-label": "afscell.yaml" }), out = el("div", { "aria-live": "polite" });
  text.value = await api("config");
  main.append(el("div", { class: "card" }, el("p", { class: "soft" }, "The file that the cell was started with, as it is now. An edited copy can be checked here; “afscell up” makes the cell match the file."), text,
    el("div", { class: "row" }, el("button", { class: "main", onclick: async () => { try { const r = await api("config", text.value); put(out, r.valid ? el("p", { class: "good" }, "This text is right.") : el("pre", { class: "bad" }, r.problems)); } catch (err) { put(out, failed(err)); } } }, "Check this text")), out));
}
