// SPDX-License-Identifier: BSD-2-Clause
// What every page uses: elements, the API, numbers, tables.  Text from the cell only ever becomes text nodes.
export let session = null;
export function setSession(s) { session = s; }

export function el(tag, props = {}, ...kids) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props))
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== false && v != null) e.setAttribute(k, v === true ? "" : v);
  e.append(...kids.flat().filter(k => k != null));
  return e;
}

export class Refusal extends Error { constructor(status, text) { super(text); this.status = status; } }

export async function api(path, body) {
  const post = body !== undefined;
  let r;
  try {
    r = await fetch("/api/v1/" + path, post ? { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body),
      headers: session ? { "X-CSRF-Token": session.csrf } : {} } : {});
  } catch { throw new Refusal(0, "The cell does not answer. Does it run? (afscell status)"); }
  const json = (r.headers.get("Content-Type") || "").startsWith("application/json");
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

// Rows of objects as a table with a filter, a page at a time.
export function table(rows, columns, empty) {
  if (!rows.length) return el("p", { class: "soft" }, empty);
  const size = 100, body = el("tbody"), count = el("span", { class: "soft" });
  let from = 0, word = "";
  const show = () => {
    const hits = rows.filter(r => !word || JSON.stringify(r).toLowerCase().includes(word));
    body.replaceChildren(...hits.slice(from, from + size).map(r => el("tr", {}, columns.map(c => el("td", {}, c.show ? c.show(r) : cell(r[c.key]))))));
    count.textContent = hits.length ? `${from + 1}–${Math.min(from + size, hits.length)} of ${hits.length}` : "nothing fits the filter";
    back.disabled = from === 0; next.disabled = from + size >= hits.length;
  };
  const back = el("button", { onclick: () => { from -= size; show(); } }, "Earlier"), next = el("button", { onclick: () => { from += size; show(); } }, "Later");
  const filter = el("input", { type: "search", placeholder: "Filter ( / )", "aria-label": "Filter", oninput: e => { word = e.target.value.toLowerCase(); from = 0; show(); } });
  show();
  return el("div", {}, el("div", { class: "row" }, filter, count, rows.length > size ? [back, next] : []),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", {}, el("thead", {}, el("tr", {}, columns.map(c => el("th", { scope: "col" }, c.name)))), body)));
}

export function chart(values, label) {
  const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), line = document.createElementNS(ns, "polyline");
  const top = Math.max(1, ...values);
  svg.setAttribute("viewBox", "0 0 100 40"); svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "chart"); svg.setAttribute("role", "img"); svg.setAttribute("aria-label", label);
  line.setAttribute("points", values.map((v, i) => `${100 * i / Math.max(1, values.length - 1)},${38 - 36 * v / top}`).join(" "));
  svg.append(line);
  return svg;
}

// A form for one command of the table; what it will run is shown as it is filled in.
export function commandForm(c, done) {
  const name = (c.suite ? c.suite + " " : "") + c.name, line = el("code"), out = el("div", { "aria-live": "polite" });
  const fields = c.args.map(a => {
    const choices = a.what && a.what.includes("|") ? a.what.split("|") : null;
    const input = a.kind === "flag" ? el("input", { type: "checkbox" })
      : choices ? el("select", {}, a.required ? [] : el("option", { value: "" }, "–"), choices.map(x => el("option", { value: x }, x)))
      : el("input", { type: "text", required: a.required, placeholder: a.what || "" });
    return { a, input };
  });
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
  return el("form", { oninput: preview, onsubmit: async e => {
    e.preventDefault();
    if (typed && typed.value !== c.name) { out.replaceChildren(el("p", { class: "bad" }, `Type ${c.name} to confirm.`)); return; }
    out.replaceChildren(el("p", {}, "Running…"));
    try {
      const r = await api("run/" + name.replace(" ", "/"), args());
      out.replaceChildren(el("p", { class: "good" }, "Done."), r.text ? el("pre", {}, r.text) : "", r.result == null ? "" : el("pre", { tabindex: "0" }, JSON.stringify(r.result, null, 2)));
      if (done) done();
    } catch (err) { out.replaceChildren(el("p", { class: "bad", role: "alert" }, err.message)); }
  } }, el("p", { class: "soft" }, c.help), fields.map(({ a, input }) => el("label", {}, a.kind === "flag" ? [input, " " + a.name] : a.name, " ", el("span", { class: "soft" }, a.help), a.kind === "flag" ? [] : input)),
    typed ? el("label", {}, `Type “${c.name}” to confirm`, typed) : [], el("p", {}, "On the command line: ", line), el("button", { class: "main" }, c.changes ? "Do it" : "Show"), out);
}
