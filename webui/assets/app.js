// SPDX-License-Identifier: BSD-2-Clause
// Signing in, and how one page leads to another: each has an address behind #, so that back and links work.
import { api, el, say, failed, table, commandForm, session, setSession, forget, allCommands, named, empty } from "./kit.js";
import { files } from "./files.js";
import { overview, volumes, volume, people, person_, group, security, log, config } from "./pages.js";

const main = document.getElementById("main");
let feed = null;
const MENU = [["overview", "Overview"], ["volumes", "Volumes"], ["files", "Files"], ["people", "People"], ["security", "Security", true], ["log", "Log and audit", true], ["config", "Configuration", true], ["commands", "All commands"]];
const UNDER = { volume: "volumes", person: "people", group: "people" };

async function commands(main, name) {
  const c = name && await named(name);
  if (c) main.append(el("p", {}, el("a", { href: "#commands" }, "← All commands")), el("div", { class: "card" }, commandForm(c)));
  else main.append(el("div", { class: "card" }, table((await allCommands()).map(k => ({ ...k, full: (k.suite ? k.suite + " " : "") + k.name })), [{ name: "Command", sort: "full", show: k => el("a", { href: "#commands/" + encodeURIComponent(k.full) }, k.full) }, { name: "What it does", key: "help" }], empty("No command is for you here"))));
}
const pages = { overview, volumes, volume, files, people, person: person_, group, security, log, config, commands };

function close() { if (feed) { feed.close(); feed = null; } }
function open(show) {
  close();
  feed = new EventSource("/api/v1/live");
  feed.addEventListener("status", show);
  feed.onerror = () => api("session").catch(err => err.status === 401 ? signIn("Your session ended; sign in again.") : say(err.message));
}

function signIn(text) {
  close(); setSession(null); forget();
  document.title = "Sign in – afscell";
  document.getElementById("nav").replaceChildren();
  document.getElementById("who").replaceChildren();
  const user = el("input", { type: "text", autocomplete: "username", required: true }), password = el("input", { type: "password", autocomplete: "current-password", required: true });
  const out = el("div", { "aria-live": "assertive" }, text ? el("p", { class: "bad" }, text) : []);
  main.replaceChildren(el("form", { class: "card signin", onsubmit: async e => {
    e.preventDefault();
    out.replaceChildren(el("p", {}, "Asking the realm…"));
    try { begin(await api("session", { user: user.value, password: password.value })); } catch (err) { out.replaceChildren(failed(err)); }
  } }, el("h1", {}, "Sign in"), el("label", {}, "User", user), el("label", {}, "Kerberos password", password), el("button", { class: "main" }, "Sign in"), out,
    el("p", { class: "soft small" }, "The first time, or without a password: “sudo afscell console link” prints an address that signs in once.")));
  user.focus();
}

function begin(s) {
  setSession(s); forget();
  const leave = how => async () => { try { await api("session/" + how, {}); } finally { signIn(); } };
  document.getElementById("who").replaceChildren(el("span", {}, s.name + (s.administrator ? " · administrator" : "")), el("button", { onclick: leave("end") }, "Sign out"), el("button", { onclick: leave("end-all") }, "Sign out everywhere"));
  document.getElementById("nav").replaceChildren(...MENU.filter(p => !p[2] || s.administrator).map(([id, name]) => el("a", { href: "#" + id }, name)));
  if (!location.hash || location.hash.startsWith("#link/")) history.replaceState(null, "", "#overview");
  api("status").then(st => { document.getElementById("cell").textContent = st.cell; }).catch(() => {});
  go();
}

async function go() {
  const [id, ...rest] = location.hash.slice(1).split("/"), arg = decodeURIComponent(rest.join("/"));
  if (id === "link" && arg) {
    history.replaceState(null, "", "#overview");
    try { begin(await api("session", { link: arg })); } catch (err) { signIn(err.message); }
    return;
  }
  if (!session) return signIn();
  close();
  const page = pages[id] ? id : "overview", title = page !== "files" && arg || MENU.find(p => p[0] === page)?.[1] || page;
  document.title = (page === "files" && arg || title) + " – afscell";
  for (const a of document.querySelectorAll("#nav a")) a.getAttribute("href") === "#" + (UNDER[page] || page) ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
  const place = el("div", {}, el("h1", {}, title)); // a page that is left goes on into what is no longer shown
  main.replaceChildren(place);
  scrollTo(0, 0);
  try { await pages[page](place, page === "overview" ? open : arg); } catch (err) { if (err.status === 401) signIn("Your session ended; sign in again."); else place.append(el("div", { class: "card" }, failed(err))); }
}

// j and k go through the rows of the first table, Enter opens one.
function step(by) {
  const rows = [...main.querySelectorAll("tbody tr")].filter(r => r.offsetParent && r.querySelector("a"));
  const at = rows.findIndex(r => r.classList.contains("at")), to = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  rows[at]?.classList.remove("at");
  to?.classList.add("at");
  to?.querySelector("a").focus();
}

addEventListener("hashchange", go);
addEventListener("keydown", e => {
  if (e.key === "Escape") document.activeElement?.blur();
  if (e.target.matches?.("input, textarea, select") || e.ctrlKey || e.altKey || e.metaKey) return;
  if (e.key === "/") { const f = document.querySelector("input[type=search]"); if (f) { e.preventDefault(); f.focus(); } }
  if (e.key === "j") step(1);
  if (e.key === "k") step(-1);
  if (e.key === "?") say("/ filter · j k next and last row · Enter open · Esc leave a field");
});
try { begin(await api("session")); } catch (err) { if (location.hash.startsWith("#link/")) go(); else signIn(err.status === 401 ? "" : err.message); }
