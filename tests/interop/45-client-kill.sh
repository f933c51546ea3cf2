#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# kill -9 of a cache manager with changes that no server has: the next start sends them, keeps a conflict as a named
# copy, takes hidden names away, and begins warm.
. "$(dirname "$0")/lib.sh"
enter kinit python3
plan 15

cell_make kill.test "$work/c"
cell_up "$work/c"
server=$work/c/afs/kill.test/open
mkdir -p "$work/d/afs"
cat >"$work/d/afscell.yaml" <<Y
cell: kill.test
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
conf=$work/d/afscell.yaml
both() { "$afscell" down --config "$conf" >/dev/null 2>&1; leave; }
trap both EXIT
check "a second cache manager comes up" "$afscell" up --config "$conf" || bail "no second client"
client=$work/d/afs/kill.test/open
log=$work/d/state/log/afscell.log

head -c 9000000 /dev/urandom >"$server/warm"
cp "$server/warm" "$work/warm"
cat "$client/warm" >/dev/null
printf 'old content that stays\n' >"$server/cut"
printf 'both\n' >"$server/both"
printf 'removed\n' >"$server/hidden"
python3 - "$client" "$work/ready" <<'P' &
import os, sys, time
d = sys.argv[1]
os.chdir(d)
w = os.open('written', os.O_RDWR | os.O_CREAT, 0o644); os.write(w, b'w' * 3000000 + b'end')
c = os.open('cut', os.O_RDWR); os.ftruncate(c, 3); os.pwrite(c, b'new', 3)
b = os.open('both', os.O_RDWR); os.pwrite(b, b'mine', 0)
h = os.open('hidden', os.O_RDWR); os.unlink('hidden')
open(sys.argv[2], 'w').close()
time.sleep(600)
P
holder=$!
wait_for() { local i; for i in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; "$@"; }
wait_for test -e "$work/ready" || bail "the writer did not come so far"
printf 'theirs\n' >"$server/both"
check "a removed open file has a hidden name" sh -c "ls -a '$server' | grep -q '^\.__afs'"
pid=$("$afscell" status --config "$conf" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["pid"])')
kill -9 "$pid" "$holder"
wait "$holder" 2>/dev/null
check "it comes up again over the mount that the killed one left" "$afscell" up --config "$conf" || { tail -n 20 "$log" | note; bail "not up"; }

is() { [ "$(cat "$1")" = "$2" ]; }
check "what was written and never closed arrives" wait_for sh -c "[ \$(stat -c %s '$server/written') = 3000003 ] && [ \"\$(tail -c 5 '$server/written')\" = wwend ]"
check "a cut and what was written behind it arrive" wait_for is "$server/cut" oldnew
check "a conflict leaves the server's version" is "$server/both" theirs
check "... and keeps ours beside it" wait_for sh -c "grep -q mine '$server'/both.conflict-*"
check "... and says so" grep -q 'cm.recover.conflict.*kept=both.conflict-' "$log"
check "the hidden name is gone" wait_for sh -c "! ls -a '$server' | grep -q '^\.__afs'"
fetched() { "$afscell" status --config "$conf" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["client"]["fetched_bytes"])'; }
before=$(fetched)
check "the cache is warm: content is right" cmp "$work/warm" "$client/warm"
check "... and did not come from the server again" [ $(($(fetched) - before)) -lt 100000 ]
check "the client sees what it sent" is "$client/cut" oldnew

# a server that is away at the last close
python3 - "$client" "$work/ready2" "$work/go2" <<'P' &
import os, sys, time
f = os.open(sys.argv[1] + '/away', os.O_RDWR | os.O_CREAT, 0o644)
os.fsync(f); os.write(f, b'kept through the outage\n')
open(sys.argv[2], 'w').close()
while not os.path.exists(sys.argv[3]): time.sleep(0.05)
try: os.close(f)
except OSError: sys.exit(7)
P
holder=$!
wait_for test -e "$work/ready2"
"$afscell" down --config "$work/c/afscell.yaml" >/dev/null 2>&1
touch "$work/go2"
wait "$holder"
check "with the server away close() fails" [ $? = 7 ]
"$afscell" up --config "$work/c/afscell.yaml" >/dev/null 2>&1
check "and what it was about arrives when the server is back" wait_for sh -c "grep -q 'kept through' '$server/away'"
check "the volumes check clean" "$afscell" check --config "$work/c/afscell.yaml"
exit $tap_bad
