#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# "afscell bench" on a mount: it measures all that it says, as an ordinary user too, tells it in each form, and leaves
# nothing behind, however it ends.  How fast is not looked at.
. "$(dirname "$0")/lib.sh"
enter kinit python3 cc
plan 18

cell_make bench.test "$work/c" 127.0.0.1
sed -i 's/^  open: {/  open: {quota: 1G, /; s/^  alice: {mount/  alice: {quota: 1G, mount/' "$work/c/afscell.yaml"
cell_up "$work/c"
mount=$work/c/afs/bench.test
chmod 755 "$work" "$work/c"
mkdir -m 777 "$work/local" "$work/other"
login alice
chmod 644 "$work/cc.alice"
mine() { as_user 1001 "$@"; }
small=(-size 2M -dd 3M -files 130 -sources 2 -runs 2 -local "$work/local" -without transport)
nothing_left() { ! ls -d "$1"/afscell-bench.* "$work"/local/afscell-bench.* "$work"/other/afscell-bench.* 2>/dev/null; }
refused_with() { local words=$1; shift; "$@" >"$work/r" 2>&1 && return 1; cat "$work/r"; grep -q -- "$words" "$work/r"; }

check "a token" mine "$afscell" aklog
mine "$afscell" bench mount "$mount/alice" "${small[@]}" -against "$work/other" -pid $$ --json >"$work/json" 2>"$work/err"
result $? "an ordinary user measures where she may write" "$work/err"
check "every experiment is there, in each directory, twice, with its cost and what limits it" python3 - "$work/json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
what = {r["what"] for r in d["results"]}
assert what == {"write 8K", "write 8K, close", "write 8K, fsync, close", "read, cold", "read, warm", "dd 256K, write and close",
    "dd 256K, read, cold", "dd 256K, read again", "create small files", "list and stat, cold", "list and stat, warm", "read small files, cold",
    "remove small files", "unpack a tree", "compile, cold", "compile, warm"}, what
assert len(d["results"]) == 3 * len(what) and len({r["where"] for r in d["results"]}) == 3
for r in d["results"]:
    assert r["runs"] == 2 and r["per_second"] > 0 and len(r["limit"]) > 20 and r["cache"] == "", r
assert any(r["where"] == "afscell" and r["others_switches"] > 0 for r in d["results"])
assert d["complete"] and any("only root" in x for x in d["remarks"]), d["remarks"]
P
check "and nothing is left" nothing_left "$mount/alice"

"$afscell" fs getcacheparms >"$work/before"
cd "$mount/open"
check "bench alone is this, here; as root with other caches" "$afscell" bench -dd 128M -runs 1 -local "$work/local" -without stream,small,tree,transport -yes --html "$work/r.html"
cp "$work/check.out" "$work/table"
check "cache half the file, and twice" sh -c "grep -q 'cache half the file' '$work/table' && grep -q 'cache twice the file' '$work/table'"
check "the cache has its size again" test "$(sed 's/.*available//' "$work/before")" = "$("$afscell" fs getcacheparms | sed 's/.*available//')"
cd /
check "the page is whole, loads nothing, and has a chart for each" python3 - "$work/r.html" <<'P'
import html.parser, sys
text = open(sys.argv[1]).read()
class Page(html.parser.HTMLParser):
    open, charts, bars = [], 0, 0
    def handle_starttag(self, tag, attrs):
        assert not {"src", "href"} & {k for k, _ in attrs}, (tag, attrs)
        if tag != "meta" and tag != "rect": self.open.append(tag)
        self.charts += tag == "svg"
    def handle_startendtag(self, tag, attrs): self.bars += tag == "rect"
    def handle_endtag(self, tag): assert self.open.pop() == tag, tag
p = Page(); p.feed(text)
assert not p.open and p.charts == 3 and p.bars == 12, (p.open, p.charts, p.bars)
P
check "the transport alone is measured beside it" sh -c "'$afscell' bench mount '$mount/open' --quick -local none -without stream,dd,tree,cache -files 5 --json >'$work/t' && python3 -c 'import json; t = json.load(open(\"$work/t\"))[\"transport\"]; assert t[\"rx_fetch\"] > 0 and t[\"raw_udp_1444\"] > 0, t'"

# --- stopped in the middle: it would go on for long, and has a file when it is stopped
setpriv --reuid 1001 --regid 1001 --clear-groups "$afscell" bench mount "$mount/alice" -size 64M -runs 100 -local "$work/local" \
	-without dd,small,tree,transport -yes >"$work/out" 2>&1 &
pid=$!
seen=1
for _ in $(seq 600); do ls "$mount"/alice/afscell-bench.*/stream >/dev/null 2>&1 && seen=0 && break; sleep 0.1; done
result $seen "it is at work" "$work/out"
kill -INT $pid # a shell's background job ignores SIGINT until it is asked for, which bench does
wait $pid
result $(($? != 1)) "interrupted, it fails" "$work/out"
check "says so" grep -q interrupted "$work/out"
check "and leaves nothing" nothing_left "$mount/alice"

# --- refused
check "a directory outside AFS" refused_with "is not in AFS" "$afscell" bench mount "$work/local"
check "one where she may not write" refused_with "token" mine "$afscell" bench mount "$mount" -local none
check "more than there is room for" refused_with "there is room for" mine "$afscell" bench mount "$mount/alice" -dd 20G -yes -local none
check "and a page is not left empty" refused_with "is not in AFS" "$afscell" bench mount / --html "$work/empty.html"
result $(($(ls "$work"/empty.html 2>/dev/null | wc -l))) "so there is none"
