// SPDX-License-Identifier: BSD-2-Clause
// Files as the person who signed in sees them; access lists, and what they come to for one person and for everybody.
import { api, run, el, put, bytes, bar, pill, facts, failed, empty, pagedTable, simple, session, say } from "./kit.js";

const WORDS = { r: "read", l: "look up", i: "insert", d: "delete", w: "write", k: "lock", a: "administer" }, ORDER = "rlidwka";
const inOrder = set => [...ORDER].filter(x => set.has(x)).join("");
const spell = rights => rights ? [...rights].map(x => WORDS[x] || "right " + x).join(", ") : "nothing";
const href = path => "#files/" + path.split("/").map(encodeURIComponent).join("/");
const full = path => "/afs/" + path;

function crumbs(path) {
  const parts = path ? path.split("/") : [];
  return el("p", { class: "crumbs" }, el("a", { href: "#files/" }, "/afs"), parts.map((p, i) => [" / ", el("a", { href: href(parts.slice(0, i + 1).join("/")) }, p)]));
}

// What the list gives somebody who is `name` and in `groups`: the sum of the entries that hold for him, less the sum of the negative ones.
function effective(acl, name, groups, known) {
  const mine = new Set([name, ...groups, "system:anyuser", ...(known ? ["system:authuser"] : [])]), yes = new Map(), no = new Map();
  for (const [list, into] of [[acl.positive, yes], [acl.negative, no]])
    for (const e of list) if (mine.has(e.name)) for (const r of e.rights) into.set(r, [...(into.get(r) || []), e.name]);
  return { rights: inOrder(new Set([...yes.keys()].filter(r => !no.has(r)))), yes, no, admin: groups.includes("system:administrators") };
}

const why = e => simple(["Right", "", "Why"], [...ORDER].map(r => {
  const given = e.yes.get(r), taken = e.no.get(r);
  return [`${WORDS[r]} (${r})`, taken ? pill("no", "bad") : given ? pill("yes", "good") : pill("no"),
    taken ? `taken away by the negative entry of ${taken.join(", ")}` + (given ? `, though ${given.join(", ")} would give it` : "") : given ? "through " + given.join(", ") : "no entry gives it"];
}));

function whoCan(acl) {
  const name = el("input", { type: "text", autocomplete: "off", value: session.name.split("@")[0] }), out = el("div", { "aria-live": "polite" });
  const one = async e => {
    e.preventDefault();
    put(out, el("p", {}, "Asking the protection database…"));
    const who = name.value.trim();
    try {
      const r = who === "system:anyuser" ? [{ groups: [] }] : await run("pts membership", { nameorid: [who], supergroups: true });
      const groups = (r[0]?.groups || []).map(g => g.name), eff = effective(acl, who, groups, who !== "system:anyuser");
      put(out, el("p", {}, el("strong", {}, who), " may here: ", el("strong", {}, spell(eff.rights)), "."), groups.length ? el("p", { class: "soft small" }, "Member of " + groups.join(", ")) : "", why(eff),
        eff.admin ? el("p", { class: "soft small" }, "Members of system:administrators may also look up and administer every directory, whatever its list says.") : "",
        el("p", { class: "soft small" }, "The owner of a volume may administer its directories. Entries for machines are not counted here."));
    } catch (err) { put(out, failed(err), el("p", { class: "soft small" }, "Whose groups you may see is up to each entry's privacy flags; administrators see all.")); }
  };
  const everybody = async () => {
    put(out, el("p", {}, "Asking who is in these groups…"));
    const rows = [], people = new Map();
    const names = [...new Set([...acl.positive, ...acl.negative].map(x => x.name))];
    for (const n of names) {
      if (n === "system:anyuser" || n === "system:authuser") continue;
      try {
        const m = (await run("pts membership", { nameorid: [n], expandgroups: true }))[0];
        if (m.id > 0) people.set(n, people.get(n) || new Set());
        else for (const p of m.members || []) people.set(p.name, new Set([...(people.get(p.name) || []), n]));
      } catch { rows.push([n, el("span", { class: "soft" }, "its members are not yours to see"), ""]); }
    }
    for (const [label, known] of [["anybody at all", false], ["everybody who signed in", true]]) { const x = effective(acl, "", [], known); rows.unshift([label, x.rights || "–", spell(x.rights)]); }
    for (const [p, groups] of [...people].sort()) {
      const x = effective(acl, p, [...groups], true);
      rows.push([p, x.rights || "–", spell(x.rights) + (groups.size ? `, with ${[...groups].join(", ")}` : "")]);
    }
    put(out, simple(["Who", "Rights", "In words"], rows));
  };
  return el("div", { class: "card" }, el("h2", {}, "Who can do what here, and why"), el("form", { class: "row", onsubmit: one }, el("input", { hidden: true }), el("label", {}, "User or group", name), el("button", { class: "main" }, "Show"), el("button", { type: "button", onclick: everybody }, "Show everybody")), out);
}

function editor(file, reload) {
  const acl = file.acl, out = el("div", { "aria-live": "polite" }), line = el("code", { class: "shell" });
  const now = { positive: acl.positive.map(e => ({ ...e })), negative: acl.negative.map(e => ({ ...e })) };
  const may = file.rights.includes("a") && !file.volume?.read_only, rows = el("div");
  const preview = () => {
    const one = l => l.flatMap(e => [e.name, e.rights || "none"]).join(" ");
    line.textContent = `afscell fs setacl ${full(file.path)} ${one(now.positive)} -clear` + (now.negative.length ? `   # and with -negative: ${one(now.negative)}` : "");
  };
  const draw = () => {
    preview();
    put(rows, ["positive", "negative"].flatMap(kind => !now[kind].length ? [] : [el("h3", {}, kind === "positive" ? "May" : "May not, whatever else is given"), simple(["Who", "Rights", ""], now[kind].map((e, i) => [
      el("strong", {}, e.name),
      el("div", { class: "rights" }, [...ORDER].map(r => el("label", {}, el("input", { type: "checkbox", disabled: !may, checked: e.rights.includes(r), "aria-label": `${e.name}: ${WORDS[r]}`, onchange: ev => { const s = new Set(e.rights); ev.target.checked ? s.add(r) : s.delete(r); e.rights = inOrder(s); preview(); } }), " " + WORDS[r]))),
      may ? el("button", { class: "danger", "aria-label": "Remove " + e.name, onclick: () => { now[kind].splice(i, 1); draw(); } }, "Remove") : ""]))]));
  };
  const name = el("input", { type: "text", autocomplete: "off", placeholder: "user or group" }), kind = el("select", {}, el("option", { value: "positive" }, "may"), el("option", { value: "negative" }, "may not"));
  draw();
  return el("div", { class: "card" }, el("h2", {}, "Access list"), rows, may ? [
    el("form", { class: "row", onsubmit: e => { e.preventDefault(); const n = name.value.trim(); if (n && !now[kind.value].some(x => x.name === n)) { now[kind.value].push({ name: n, rights: "rl" }); name.value = ""; draw(); } } }, el("label", {}, "Add an entry", name), el("label", {}, "who", kind), el("button", {}, "Add")),
    line, el("button", { class: "main", onclick: async () => {
      put(out, el("p", {}, "Storing…"));
      try { await api("acl", { path: file.path, was: acl.text, acl: now }); say("The access list is stored."); reload(); } catch (err) { put(out, failed(err)); }
    } }, "Store the list"), out] : el("p", { class: "soft" }, file.volume?.read_only ? ["This is a read-only copy; change it at ", el("a", { href: href(file.path.replace(/^\.?/, ".")) }, full(file.path.replace(/^\.?/, "."))), ", then release the volume."] : "Only who may administer this directory may change its list."));
}

export async function files(main, path) {
  path = path.replace(/^\/+|\/+$/g, "");
  main.append(crumbs(path));
  const place = el("div", {}, el("p", {}, "Asking the file server…"));
  main.append(place);
  const load = async () => {
    const f = await api("file", { path, count: 1 });
    if (f.type === "directory") {
      const t = pagedTable([{ name: "Name", show: x => el("a", { href: href((path ? path + "/" : "") + x.name) }, x.name) }, { name: "Kind", show: x => x.error ? pill(x.error, "warning") : pill(x.type) },
        { name: "Size", num: true, show: x => x.type === "file" ? bytes(x.length) : "" }, { name: "Mode", show: x => x.error ? "" : el("code", {}, x.mode.toString(8).padStart(4, "0")) }, { name: "You may", show: x => x.rights ? el("span", { title: spell(x.rights) }, x.rights) : "" }],
      async ({ from, count }) => { const r = await api("file", { path, from, count }); if (!r.names) throw new Error("You may not list this directory: " + r.names_error); return { rows: r.names, total: r.total, all: r.total }; }, empty("Nothing here yet", "Folders can be made below."));
      t.querySelector("input[type=search]").hidden = true;
      const name = el("input", { type: "text", autocomplete: "off" }), out = el("div", { "aria-live": "polite" }), volume = el("input", { type: "text", autocomplete: "off" });
      const make = async (what, body) => { try { await api(what, { path, name: name.value.trim(), ...body }); name.value = ""; put(out); t.reload(); } catch (err) { put(out, failed(err)); } };
      const writable = f.rights?.includes("i") && !f.volume?.read_only;
      put(place, el("div", { class: "card" }, t, writable ? el("details", {}, el("summary", {}, "Make a folder or a mount point"), el("form", { onsubmit: e => { e.preventDefault(); volume.value.trim() ? make("mount", { volume: volume.value.trim() }) : make("mkdir", {}); } },
        el("label", {}, "Name", name), el("label", {}, "Volume ", el("span", { class: "soft" }, "to mount there; empty for a folder"), volume), el("button", { class: "main" }, "Make it"), out)) : ""));
    } else put(place, el("div", { class: "card" }, facts([["Kind", f.type], ["Size", bytes(f.length)], ["Mode", f.mode.toString(8).padStart(4, "0")], ["Owner", "id " + f.owner], ["Fid", f.fid], ["Version of the data", String(f.version)], ["You may", spell(f.rights)]])));
    if (f.volume) place.append(el("div", { class: "card" }, el("h2", {}, "Here"), facts([["You may", spell(f.rights)], ["Anybody may", spell(f.anonymous)], ["Volume", [el("a", { href: "#volume/" + encodeURIComponent(f.volume.name.replace(/\.(readonly|backup)$/, "")) }, f.volume.name), f.volume.read_only ? [" ", pill("read-only")] : ""]],
      ["Quota", f.volume.quota_kib ? [`${bytes(f.volume.used_kib * 1024)} of ${bytes(f.volume.quota_kib * 1024)}`, bar(f.volume.used_kib, f.volume.quota_kib, "Quota")] : `none; ${bytes(f.volume.used_kib * 1024)} used`], f.volume.motd && ["Message", f.volume.motd], ["Fid", f.fid]])));
    if (f.acl) place.append(editor(f, () => load().catch(err => put(place, failed(err)))), whoCan(f.acl));
    else if (f.acl_error) place.append(el("div", { class: "card" }, el("h2", {}, "Access list"), el("p", { class: "soft" }, "You may not see it: " + f.acl_error + ".")));
  };
  try { await load(); } catch (err) { if (err.status === 401) throw err; put(place, el("div", { class: "card" }, failed(err), el("p", { class: "soft" }, el("a", { href: href(path.split("/").slice(0, -1).join("/")) }, "Go up")))); }
}
