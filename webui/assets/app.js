// SPDX-License-Identifier: BSD-2-Clause
// The pages, and how one leads to another: each has an address behind #, so that back and links work.
import { api, run, el, say, bytes, span, table, chart, cell, commandForm, session, setSession } from "./kit.js";

const main = document.getElementById("main");
let commands = null, feed = null;
const ALL = [["overview", "Overview"], ["volumes", "Volumes"], ["people", "People"], ["security", "Security", true], ["log", "Log and audit", true], ["config", "Configuration", true], ["commands", "All commands"]];

const failed = err => el("p", { class: "bad", role: "alert" }, err.message);
const named = async name => (commands ||= await api("commands")).find(c => (c.suite ? c.suite + " " : "") + c.name === name);
// Buttons that open forms of commands under them.
async function actions(names, done) {
  const place = el("div"), row = el("div", { class: "row" });
  for (const n of names) {
    const c = await named(n);
    if (c) row.append(el("button", { onclick: () => place.replaceChildren(el("div", { class: "card" }, el("h2", {}, n), commandForm(c, done))) }, n));
  }
  return el("div", {}, row, place);
}

// --- sign in

function signIn(text) {
  if (feed) { feed.close(); feed = null; }
  setSession(null); commands = null;
  document.getElementById("nav").replaceChildren();
  document.getElementById("who").replaceChildren();
  const user = el("input", { type: "text", autocomplete: "username", required: true, autofocus: true }), password = el("input", { type: "password", autocomplete: "current-password", required: true });
  const out = el("div", { "aria-live": "assertive" }, text ? el("p", { class: "bad" }, text) : []);
  main.replaceChildren(el("h1", {}, "Sign in"), el("form", { class: "card", onsubmit: async e => {
    e.preventDefault();
    out.replaceChildren(el("p", {}, "Asking the realm…"));
    try { begin(await api("session", { user: user.value, password: password.value })); } catch (err) { out.replaceChildren(failed(err)); }
  } }, el("label", {}, "User", user), el("label", {}, "Kerberos password", password), el("button", { class: "main" }, "Sign in"), out,
    el("p", { class: "soft" }, "The first time, or without a password: “sudo afscell console link” prints an address that signs in once.")));
  user.focus();
}

function begin(s) {
  setSession(s);
  const leave = how => async () => { try { await api("session/" + how, {}); } finally { signIn(); } };
  document.getElementById("who").replaceChildren(el("span", {}, s.name + (s.administrator ? ", administrator" : "")), el("button", { onclick: leave("end") }, "Sign out"), el("button", { onclick: leave("end-all") }, "Sign out everywhere"));
  document.getElementById("nav").replaceChildren(...ALL.filter(p => !p[2] || s.administrator).map(([id, name]) => el("a", { href: "#" + id }, name)));
  if (!location.hash || location.hash.startsWith("#link/")) history.replaceState(null, "", "#overview");
  go();
}

// --- pages

const pages = {
  async overview() {
    const cards = el("div", { class: "cards" }), health = el("div", { class: "card" }, el("h2", {}, "Health"), el("p", {}, "Looking…")), roles = el("div", { class: "card" });
    main.append(cards, roles, session.administrator ? health : "");
    let last = null, rates = [];
    feed = new EventSource("/api/v1/live");
    feed.addEventListener("status", e => {
      const st = JSON.parse(e.data), fs = st.fileserver || {}, cl = st.client || {};
      document.getElementById("cell").textContent = st.cell;
      if (last) {
        const s = (Date.now() - last.at) / 1000, per = k => Math.max(0, ((fs[k] || 0) - (last.fs[k] || 0)) / s);
        rates.push({ calls: per("calls"), out: per("fetched_bytes"), in: per("stored_bytes") });
        rates = rates.slice(-60);
      }
      last = { at: Date.now(), fs };
      const now = rates.at(-1) || { calls: 0, out: 0, in: 0 };
      const card = (title, big, soft, list) => el("div", { class: "card" }, el("h2", {}, title), el("div", { class: "big" }, big), el("div", { class: "soft" }, soft), list ? chart(list, title + " over two minutes") : []);
      cards.replaceChildren(
        card("Calls to the file server", now.calls.toFixed(1) + " /s", (fs.calls || 0) + " in all, " + (fs.refused_calls || 0) + " refused", rates.map(r => r.calls)),
        card("Sent", bytes(Math.round(now.out)) + "/s", bytes(fs.fetched_bytes || 0) + " in all", rates.map(r => r.out)),
        card("Taken", bytes(Math.round(now.in)) + "/s", bytes(fs.stored_bytes || 0) + " in all", rates.map(r => r.in)),
        card("Clients", String(fs.hosts_now || 0), (fs.promises_now || 0) + " callback promises, " + (fs.hosts_down || 0) + " hosts do not answer"),
        card("Cache of this machine", bytes(cl.cache_bytes || 0), "of " + bytes(cl.cache_max || 0) + ", " + bytes(cl.dirty_bytes || 0) + " not stored yet"),
        card("Runs for", span(st.uptime_s), "version " + st.version + ", process " + st.pid));
      roles.replaceChildren(el("h2", {}, "Roles"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["Role", "State", "Port"].map(t => el("th", { scope: "col" }, t)))),
        el("tbody", {}, st.roles.map(r => el("tr", {}, el("td", {}, r.name), el("td", { class: r.state === "running" ? "good" : r.state === "off" ? "soft" : "bad" }, r.state === "stopped" ? `stopped; start it: afscell bos start localhost ${r.name}` : r.state), el("td", {}, cell(r.port))))))));
    });
    feed.onerror = () => api("session").catch(err => err.status === 401 ? signIn("Your session ended; sign in again.") : say(err.message));
    if (!session.administrator) return;
    try {
      const r = await run("doctor");
      health.replaceChildren(el("h2", {}, "Health"), el("ul", {}, r.map(x => el("li", { class: x.level }, `${x.level}: ${x.text}`, x.do ? el("div", { class: "soft" }, x.do) : []))));
    } catch (err) { health.replaceChildren(el("h2", {}, "Health"), failed(err)); }
  },
  async volumes() {
    const place = el("div", {}, el("p", {}, "Asking the location database…"));
    const load = async () => {
      try {
        const r = await run("vos listvldb"), rows = Array.isArray(r) ? r : r.entries || r.volumes || [];
        const keys = [...new Set(rows.flatMap(Object.keys))].slice(0, 7);
        place.replaceChildren(table(rows, keys.map(k => k === "name" ? { name: "name", show: v => el("a", { href: "#volume/" + encodeURIComponent(v.name) }, v.name) } : k === "sites" ? { name: "sites", show: v => v.sites.map(t => `${t.server} ${t.partition} ${t.type}`).join(", ") } : { name: k.replaceAll("_", " "), key: k }), "There is no volume yet; “vos create” makes one."));
      } catch (err) { place.replaceChildren(failed(err)); }
    };
    main.append(await actions(["vos create", "vos partinfo", "vos listvol"], load), place);
    await load();
  },
  async volume(name) {
    main.append(el("p", {}, el("a", { href: "#volumes" }, "All volumes")));
    const place = el("pre", { tabindex: "0" }, "Asking…");
    main.append(await actions(["vos rename", "vos backup", "vos addsite", "vos release", "vos move", "vos remove"]), place);
    place.textContent = JSON.stringify(await run("vos examine", { id: name }), null, 2);
  },
  async people() {
    if (!session.administrator) {
      main.append(await actions(["pts examine", "pts membership", "pts creategroup", "pts adduser", "pts removeuser"]));
      return;
    }
    const users = el("div", {}, "Asking…"), groups = el("div", {}, "Asking…");
    const load = async () => {
      for (const [what, place, empty] of [["user", users, "There is no user yet; “user add” makes one."], ["group", groups, "There is no group yet; “group add” makes one."]])
        try {
          const r = await run(what + " list"), keys = [...new Set(r.flatMap(Object.keys))];
          place.replaceChildren(table(r, keys.map(k => k === "password_changed" ? { name: "password changed", show: v => v[k] ? el("time", { title: new Date(v[k] * 1000).toISOString() }, new Date(v[k] * 1000).toLocaleString()) : "" } : { name: k.replaceAll("_", " "), key: k }), empty));
        } catch (err) { place.replaceChildren(failed(err)); }
    };
    main.append(el("div", { class: "card" }, el("h2", {}, "Users"), await actions(["user add", "user show", "user passwd", "user disable", "user enable", "user remove"], load), users),
      el("div", { class: "card" }, el("h2", {}, "Groups"), await actions(["group add", "group show", "group adduser", "group removeuser", "group remove"], load), groups));
    await load();
  },
  async security() {
    const place = el("div", {}, "Asking…");
    const load = async () => { place.replaceChildren(el("pre", { tabindex: "0" }, JSON.stringify(await run("key list"), null, 2))); };
    main.append(el("div", { class: "card" }, el("h2", {}, "The cell's key"), await actions(["key rotate", "key retire"], load), place));
    await load();
  },
  async log() {
    for (const [what, title] of [["audit", "Who changed what"], ["log", "Server log"]]) {
      const lines = (await api(what)).trimEnd().split("\n").filter(Boolean).reverse();
      main.append(el("div", { class: "card" }, el("h2", {}, title), table(lines.map(l => ({ l })), [{ name: "newest first", show: r => el("code", {}, r.l) }], "Nothing yet.")));
    }
  },
  async config() {
    const text = el("textarea", { spellcheck: "false", "aria-label": "afscell.yaml" }), out = el("div", { "aria-live": "polite" });
    text.value = await api("config");
    main.append(el("p", { class: "soft" }, "The file that the cell was started with, as it is now. An edited copy can be checked here; “afscell up” makes the cell match the file."), text,
      el("div", { class: "row" }, el("button", { class: "main", onclick: async () => {
        try { const r = await api("config", text.value); out.replaceChildren(r.valid ? el("p", { class: "good" }, "This text is right.") : el("pre", { class: "bad" }, r.problems)); } catch (err) { out.replaceChildren(failed(err)); }
      } }, "Check this text")), out);
  },
  async commands(name) {
    commands ||= await api("commands");
    const c = name && await named(name);
    if (c) main.append(el("p", {}, el("a", { href: "#commands" }, "All commands")), el("div", { class: "card" }, el("h2", {}, name), commandForm(c)));
    else main.append(table(commands, [{ name: "command", show: k => { const n = (k.suite ? k.suite + " " : "") + k.name; return el("a", { href: "#commands/" + encodeURIComponent(n) }, n); } }, { name: "what it does", key: "help" }], "No command is for you here."));
  },
};

async function go() {
  const [id, ...rest] = location.hash.slice(1).split("/"), arg = decodeURIComponent(rest.join("/"));
  if (id === "link" && arg) {
    history.replaceState(null, "", "#overview");
    try { begin(await api("session", { link: arg })); } catch (err) { signIn(err.message); }
    return;
  }
  if (!session) return signIn();
  if (feed) { feed.close(); feed = null; }
  const page = pages[id] ? id : "overview", name = arg || ALL.find(p => p[0] === page)?.[1] || page;
  document.title = name + " – afscell";
  for (const a of document.querySelectorAll("#nav a")) a.getAttribute("href") === "#" + (page === "volume" ? "volumes" : page) ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
  main.replaceChildren(el("h1", {}, name));
  try { await pages[page](arg); } catch (err) { if (err.status === 401) signIn("Your session ended; sign in again."); else main.append(failed(err)); }
}

addEventListener("hashchange", go);
addEventListener("keydown", e => {
  if (e.key === "Escape") document.activeElement?.blur();
  if (e.target.matches?.("input, textarea, select")) return;
  if (e.key === "/") { const f = document.querySelector("input[type=search]"); if (f) { e.preventDefault(); f.focus(); } }
  if (e.key === "?") say("/ filter · Esc leave a field · Tab next · Enter open");
});
try { begin(await api("session")); } catch (err) { if (location.hash.startsWith("#link/")) go(); else signIn(err.status === 401 ? "" : err.message); }
