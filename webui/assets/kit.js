// SPDX-License-Identifier: BSD-2-Clause
// What every page uses: elements, the API, numbers, tables.  Text from the cell only ever becomes text nodes.
export let session = null;
export function setSession(s) { session = s; }

export function el(tag, props = {}, ...kids) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props))
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== false && v != null) e.setAttribute(k, v === true ? "" : v);
  put(e, kids);
  return e;
}
// What an element holds from now on; lists in lists are as good as one.
export function put(e, ...kids) { e.replaceChildren(...kids.flat(Infinity).filter(k => k != null)); }

export class Refusal extends Error { constructor(status, text) { super(text); this.status = status; } }

export async function api(path, body) {
  const post = body !== undefined;
  let r;
  try {
    r = await fetch("/api/v1/" + path, post ? { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body),
      headers: session ? { "X-CSRF-Token": session.csrf } : {} } : {});
  } catch { throw new Refusal(0, "The cell does not answer. Does it run? (afscell status)"); }
  const json = (r.headers.get("Content-Type") || "").split(";")[0] === "application/json";
  const value = json ? await r.json() : await r.text();
  if (!r.ok) throw new Refusal(r.status, value.text || "The console refused: " + r.status);
  return value;
}
export const run = async (command, args = {}) => (await api("run/" + command.replace(" ", "/"), args)).result;

export function shell(command, args) {
  const quote = s => /^[\w.:@\/-]+$/.test(s) ? s : "'" + String(s).replaceAll("'", "'\\''") + "'";
  let line = "afscell " + command;
  for (const [k, v] of Object.entries(args))
    line += v === true ? " -" + k : ` -${k} ` + [v].flat().map(quote).join(" ");
  return line;
}

export function say(text) {
  const box = document.getElementById("say");
  box.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { box.textContent = ""; }, 8000);
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return (i ? n.toFixed(1) : n) + " " + units[i];
}
export function span(s) {
  const d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min` : `${s} s`;
}

export const cell = v => v == null ? "" : typeof v === "object" ? (Array.isArray(v) && v.every(x => typeof x !== "object") ? v.join(", ") : JSON.stringify(v)) : String(v);

export const when = seconds => !seconds ? el("span", { class: "soft" }, "never") : el("time", { title: new Date(seconds * 1000).toISOString(), datetime: new Date(seconds * 1000).toISOString() }, new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
export const pill = (text, kind = "") => el("span", { class: "pill " + kind }, text);
export const empty = (title, text) => el("div", { class: "empty" }, el("strong", {}, title), text || "");
export const failed = err => el("p", { class: "bad", role: "alert" }, err.message.trim());
export const facts = pairs => el("dl", {}, pairs.filter(Boolean).map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));

const SVG = (tag, props) => { const e = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [k, v] of Object.entries(props)) e.setAttribute(k, v); return e; };
// How full: `part` of `whole`.
export function bar(part, whole, label) {
  const share = whole ? Math.min(1, part / whole) : 0, svg = SVG("svg", { class: "bar", role: "img", "aria-label": `${label || ""} ${Math.round(share * 100)} per cent` });
  svg.append(SVG("rect", { class: "bed", width: "100%", height: 8, rx: 4 }), SVG("rect", { class: "part " + (share > .95 ? "bad" : share > .85 ? "warning" : ""), width: Math.max(share * 100, share ? 1 : 0) + "%", height: 8, rx: 4 }));
  return svg;
}
export function chart(values, label) {
  const top = Math.max(1, ...values), svg = SVG("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", class: "chart", role: "img", "aria-label": label });
  const points = values.map((v, i) => `${100 * i / Math.max(1, values.length - 1)},${38 - 36 * v / top}`).join(" ");
  if (values.length > 1) svg.append(SVG("polygon", { points: `0,40 ${points} 100,40` }), SVG("polyline", { points }));
  return svg;
}

// A table whose rows come from `more({find, sort, down, from, count})`, which gives {rows, total, all}.  Columns are {name, key, show, sort, num}.
export function pagedTable(columns, more, nothing, size = 50) {
  const how = { find: "", sort: columns.find(c => c.sort)?.sort, down: false, from: 0, count: size };
  const body = el("tbody"), count = el("span", { class: "soft small", "aria-live": "polite" }, "Asking…"), place = el("div");
  let turn = 0, timer;
  const load = async () => {
    const mine = ++turn;
    let r;
    try { r = await more(how); } catch (err) { if (mine === turn) { count.textContent = ""; place.replaceChildren(failed(err)); } return; }
    if (mine !== turn) return;
    if (!r.all && !how.find) { place.replaceChildren(nothing); tools.hidden = true; return; }
    tools.hidden = false;
    place.replaceChildren(scroll);
    body.replaceChildren(...r.rows.map(x => el("tr", {}, columns.map(c => el("td", { class: c.num ? "num" : null }, c.show ? c.show(x) : cell(x[c.key]))))));
    count.textContent = r.total ? `${how.from + 1}–${how.from + r.rows.length} of ${r.total}` : "Nothing fits the filter.";
    back.disabled = !how.from; next.disabled = how.from + size >= r.total;
    back.hidden = next.hidden = r.total <= size;
    heads.forEach((h, i) => h.setAttribute("aria-sort", how.sort && columns[i].sort === how.sort ? how.down ? "descending" : "ascending" : "none"));
  };
  const turnTo = n => { how.from = Math.max(0, n); load(); };
  const back = el("button", { hidden: true, onclick: () => turnTo(how.from - size) }, "← Earlier"), next = el("button", { hidden: true, onclick: () => turnTo(how.from + size) }, "Later →");
  const filter = el("input", { type: "search", placeholder: "Filter  ( / )", "aria-label": "Filter", oninput: e => { clearTimeout(timer); timer = setTimeout(() => { how.find = e.target.value.trim(); turnTo(0); }, 150); } });
  const heads = columns.map(c => el("th", { scope: "col", class: c.num ? "num" : null }, c.sort ? el("button", { onclick: () => { how.down = how.sort === c.sort && !how.down; how.sort = c.sort; turnTo(0); } }, c.name, " ↕") : c.name));
  const tools = el("div", { class: "row" }, filter, count, el("span", { class: "end" }, back, " ", next));
  const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", {}, el("thead", {}, el("tr", {}, heads)), body));
  load();
  return Object.assign(el("div", {}, tools, place), { reload: load });
}
// The same for rows that are here already, and for what a command lists.
export const table = (rows, columns, nothing) => pagedTable(columns, async ({ find, sort, down, from, count }) => {
  const word = find.toLowerCase(), hits = rows.filter(r => !word || JSON.stringify(r).toLowerCase().includes(word));
  if (sort) hits.sort((a, b) => (a[sort] > b[sort] ? 1 : a[sort] < b[sort] ? -1 : 0) * (down ? -1 : 1));
  return { rows: hits.slice(from, from + count), total: hits.length, all: rows.length };
}, nothing);
export const list = (command, args, how) => api("list", { command, args, ...how });
export const simple = (heads, rows) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map(h => el("th", { scope: "col" }, h)))), el("tbody", {}, rows.map(r => el("tr", {}, r.map(c => el("td", {}, c)))))));

let commands = null;
export const forget = () => { commands = null; };
export const allCommands = async () => commands ||= await api("commands");
export const named = async name => (await allCommands()).find(c => (c.suite ? c.suite + " " : "") + c.name === name);
// Buttons that open forms of commands under them; `given` are arguments that are known.
export async function actions(names, done, given = {}) {
  const place = el("div"), row = el("div", { class: "row" });
  for (const [n, title] of names) {
    const c = await named(n);
    if (c) row.append(el("button", { class: /remove|disable|retire/.test(n) ? "danger" : null, onclick: () => { place.replaceChildren(el("div", { class: "card" }, el("div", { class: "row" }, el("h2", {}, title), el("button", { class: "end", onclick: () => place.replaceChildren() }, "Close")), commandForm(c, done, given))); place.querySelector("input:not([type=checkbox]),select,button.main")?.focus(); } }, title));
  }
  return el("div", {}, row, place);
}
// Steps one after the other, each with its outcome: [sentence, function, command or null].  True when all went well.
export async function steps(place, todo) {
  const ul = el("ul", { class: "steps" });
  place.replaceChildren(ul);
  for (const [what, f, line] of todo) {
    const li = el("li", {}, pill("working…"), what, line ? el("code", { class: "shell" }, line) : "");
    ul.append(li);
    try { await f(); li.firstChild.replaceWith(pill("done", "good")); } catch (err) { li.firstChild.replaceWith(pill("failed", "bad")); li.append(failed(err), el("p", { class: "soft small" }, "What was done before stays; the rest was not tried.")); return false; }
  }
  return true;
}

// A form for one command of the table; what it will run is shown as it is filled in.
export function commandForm(c, done, given = {}) {
  const name = (c.suite ? c.suite + " " : "") + c.name, line = el("code"), out = el("div", { "aria-live": "polite" });
  const fields = c.args.map(a => {
    const choices = a.what && a.what.includes("|") ? a.what.split("|") : null;
    const input = a.kind === "flag" ? el("input", { type: "checkbox" })
      : choices ? el("select", {}, a.required ? [] : el("option", { value: "" }, "–"), choices.map(x => el("option", { value: x }, x)))
      : el("input", { type: "text", required: a.required, placeholder: a.what || "" });
    if (given[a.name] != null) input.value = given[a.name];
    return { a, input };
  });
  const more = fields.filter(({ a }) => !a.required && a.kind === "flag"), usual = fields.filter(f => !more.includes(f));
  const args = () => {
    const o = {};
    for (const { a, input } of fields)
      if (a.kind === "flag") { if (input.checked) o[a.name] = true; }
      else if (input.value.trim()) o[a.name] = a.kind === "list" ? input.value.trim().split(/\s+/) : input.value.trim();
    return o;
  };
  const preview = () => { line.textContent = shell(name, args()); };
  preview();
  const destroys = /^(remove|delete|zap|retire|delentry|shutdown|prune)/.test(c.name);
  const typed = destroys ? el("input", { type: "text", autocomplete: "off" }) : null;
  const field = ({ a, input }) => el("label", { class: a.kind === "flag" ? "check" : null }, a.kind === "flag" ? [input, " " + a.name] : a.name, " ", el("span", { class: "soft" }, a.help), a.kind === "flag" ? [] : input);
  return el("form", { oninput: preview, onsubmit: async e => {
    e.preventDefault();
    if (typed && typed.value !== c.name) { out.replaceChildren(el("p", { class: "bad" }, `Type ${c.name} to confirm.`)); return; }
    out.replaceChildren(el("p", {}, "Running…"));
    try {
      const r = await api("run/" + name.replace(" ", "/"), args());
      out.replaceChildren(el("p", { class: "good" }, "Done."), r.text ? el("pre", {}, r.text) : "", r.result == null ? "" : el("pre", { tabindex: "0" }, JSON.stringify(r.result, null, 2)));
      if (done) done();
    } catch (err) { out.replaceChildren(el("p", { class: "bad", role: "alert" }, err.message)); }
  } }, el("p", { class: "soft" }, c.help), usual.map(field), more.length ? el("details", {}, el("summary", { class: "soft" }, "More choices"), more.map(field)) : [],
    typed ? el("label", {}, `Type “${c.name}” to confirm`, typed) : [], el("div", { class: "shell" }, line), el("button", { class: "main" }, c.changes ? "Do it" : "Show"), out);
}
