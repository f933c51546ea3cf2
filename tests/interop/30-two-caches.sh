#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two cache managers on one box: what one writes and closes, the other reads at once.
. "$(dirname "$0")/lib.sh"
enter kinit
plan 16

cell_make two.test "$work/c"
cell_up "$work/c"
first=$work/c/afs/two.test/open

mkdir -p "$work/d/afs"
cat >"$work/d/afscell.yaml" <<Y
cell: two.test
state: $work/d/state
database_servers: [127.0.0.1]
realm: {mode: external, krb5_conf: $KRB5_CONFIG}
roles:
  fileserver: {enabled: false}
  volserver: {enabled: false}
  vlserver: {enabled: false}
  ptserver: {enabled: false}
  client: {port: 7011}
client: {mount: $work/d/afs}
Y
both() { "$afscell" down --config "$work/d/afscell.yaml" >/dev/null 2>&1; leave; }
trap both EXIT
check "a second cache manager comes up, with its own port and cache" "$afscell" up --config "$work/d/afscell.yaml" || bail "no second client"
second=$work/d/afs/two.test/open

is() { [ "$(cat "$1")" = "$2" ] || { echo "$1 holds: $(cat "$1")"; return 1; }; }
echo one >"$first/f"
check "the second reads what the first wrote and closed" is "$second/f" one
echo two >"$second/f"
check "the first reads what the second wrote and closed" is "$first/f" two
ok=0; for i in $(seq 50); do echo "$i" >"$first/f"; [ "$(cat "$second/f")" = "$i" ] || ok=1; done
check "fifty times in a row" [ $ok = 0 ]
ok=0; for i in $(seq 50); do echo "a$i" >>"$second/g"; [ "$(tail -n 1 "$first/g")" = "a$i" ] || ok=1; done
check "appends are seen one by one" [ $ok = 0 ]
mkdir "$first/d"; touch "$first/d/x"
check "a new directory and its file are seen" test -e "$second/d/x"
rm "$second/d/x"
check "a removal is seen" refused test -e "$first/d/x"
mv "$first/d" "$first/e"
check "a rename is seen" sh -c "test -d '$second/e' && ! test -e '$second/d'"
ls -l "$second" >/dev/null; chmod 600 "$first/f"
check "a change of mode is seen" sh -c "[ \$(stat -c %a '$second/f') = 600 ]"
truncate -s 3 "$first/g"
check "a truncation is seen" sh -c "[ \$(stat -c %s '$second/g') = 3 ]"
head -c 20000000 /dev/urandom >"$first/big"
check "20 MB written by one read equal by the other" cmp "$first/big" "$second/big"
python3 - "$first/map" "$second/map" <<'P' && mapped=0 || mapped=1
import mmap, os, sys
a, b = sys.argv[1:]
open(a, 'wb').write(b'x' * 8192)
fb = open(b, 'rb'); m = mmap.mmap(fb.fileno(), 8192, prot=mmap.PROT_READ)
assert m[:4] == b'xxxx'
f = open(a, 'r+b'); f.write(b'yyyy'); f.close()
import time
for _ in range(100):
    if m[:4] == b'yyyy': break
    time.sleep(0.02)
assert m[:4] == b'yyyy', m[:4]
P
check "a mapped file shows the other's change after the break" [ $mapped = 0 ]
exec 8>"$first/lock" 9>"$second/lock"
flock -x 8
check "a lock held by one is refused to the other" refused flock -n -x 9
flock -u 8
check "and granted when it is released" flock -w 10 -x 9
exec 8>&- 9>&-
"$afscell" down --config "$work/d/afscell.yaml" >/dev/null
echo alone >"$first/f"
check "the first goes on when the second is gone" is "$first/f" alone
check "the volume checks clean" "$afscell" check
