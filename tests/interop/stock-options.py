#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""stock-options.py PROGRAM SUITE: does the suite of PROGRAM take what the stock tool of that name takes?

Reads "SUITE help COMMAND" of the stock tool for each of its commands, and the table of PROGRAM ("help --json");
every command, alias, option and kind of option must be there, and what is taken by position must come in the same
order.  Prints a line for each difference; status 1 when there is one."""
import json, re, subprocess, sys

program, suite = sys.argv[1:]
# what no cell of ours has
absent = {("bos", "addkey")}  # single-DES keys
bad = 0


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def complain(text):
    global bad
    bad += 1
    print(f"{suite}: {text}")


def usage(text):
    """[(names, kind, required)] of a usage text; kind is flag, one or list."""
    body = re.search(r"Usage:(.*?)(?:\nWhere:|\Z)", text, re.S).group(1)
    body = " ".join(body.split())
    out = []
    for m in re.finditer(r"(\[)?(-[\w-]+)((?: \| -[\w-]+)*)(?: (<[^<>]*(?:<[^<>]*>)?>))?(\+)?", body):
        names = [m.group(2)[1:]] + re.findall(r"-([\w-]+)", m.group(3))
        out.append((names, "list" if m.group(5) else "one" if m.group(4) else "flag", not m.group(1)))
    return out


local = json.loads(run(program, "help", "--json", "--all"))
ours = {c["name"]: c for c in local if c["suite"] == suite}
count = 0
for line in run(suite, "help").splitlines()[1:]:
    command = line.split()[0]
    if command in ("help", "apropos", "version") or (suite, command) in absent:
        continue
    text = run(suite, "help", command)
    count += 1
    if command not in ours:
        complain(f"no command {command}")
        continue
    row = ours[command]
    aliases = re.search(r"^aliases: (.*)", text, re.M)
    for alias in aliases.group(1).split() if aliases else []:
        if alias not in row["aliases"].split():
            complain(f"{command} has no alias {alias}")
    args = {a["name"]: a for a in row["args"]}
    positions = []
    for names, kind, required in usage(text):
        if names[0] in ("help", "config"):
            continue  # every command has them
        a = args.get(names[0])
        if not a:
            complain(f"{command} has no -{names[0]}")
            continue
        mine = "one" if a["kind"] == "option" else a["kind"]
        if mine != kind:
            complain(f"{command} -{names[0]} is {mine}, not {kind}")
        if a["required"] != required:
            complain(f"{command} -{names[0]} is {'' if a['required'] else 'not '}required")
        for n in names[1:]:
            if n != a["letter"]:
                complain(f"{command} -{names[0]} is not -{n} too")
        if kind != "flag" and a["kind"] != "option":
            positions.append(names[0])
    mine = [a["name"] for a in row["args"] if a["kind"] in ("one", "list")]
    if [m for m in mine if m in positions] != positions:
        complain(f"{command} takes {mine} by position, not {positions}")
if count < 15:
    complain(f"only {count} commands were read of the stock tool's help")
sys.exit(bad != 0)
