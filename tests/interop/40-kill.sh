#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# kill -9 in the middle of writes, then up: all that was closed or fsynced is there.
. "$(dirname "$0")/lib.sh"
enter kinit
rounds=${KILL_ROUNDS:-4}
plan $((rounds * 4))

cell_make kill.test "$work/c"
cell_up "$work/c"
open=$work/c/afs/kill.test/open

# writer ID: files whose name and content agree; a name goes to the list when close() has returned.
writer() {
	local i=0
	while :; do
		i=$((i + 1))
		local f="$open/w$1/f$round.$i" n=$((RANDOM * (RANDOM % 8 + 1)))
		yes "$round.$i" 2>/dev/null | head -c $n >"$f" 2>/dev/null || return
		echo "$f $n" >>"$work/done.$1"
	done
}
syncer() { # one long file, fsynced as it grows
	python3 - "$open/sync$round" "$work/synced" <<'P' 2>/dev/null
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
total = 0
while True:
    b = (b'%07d\n' % (total // 8)) * 512
    os.write(f, b); os.fsync(f); total += len(b)
    open(sys.argv[2], 'w').write('%s %d' % (sys.argv[1], total))
P
}
mkdir -p "$open/w1" "$open/w2"

for ((round = 1; round <= rounds; round++)); do
	: >"$work/done.1"; : >"$work/done.2"; rm -f "$work/synced"
	pids=''
	writer 1 & pids="$pids $!"
	writer 2 & pids="$pids $!"
	syncer & pids="$pids $!"
	sleep "1.$((RANDOM % 900 + 100))"
	pid=$("$afscell" status --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["pid"])')
	kill -9 "$pid"
	for p in $pids; do kill -9 "$p" 2>/dev/null; done
	wait 2>/dev/null
	check "round $round: it comes up again after kill -9" "$afscell" up || { cat "$work/c/state/log/afscell.log" | tail -n 20 | note; bail "not up"; }
	check "round $round: every volume checks clean" "$afscell" check
	lost=0 files=0
	while read -r f n; do
		files=$((files + 1))
		cmp -s <(yes "${f##*/f}" 2>/dev/null | head -c "$n") "$f" || { lost=$((lost + 1)); echo "$f: $(stat -c %s "$f" 2>&1) instead of $n" >"$work/lost"; }
	done < <(cat "$work/done.1" "$work/done.2")
	check "round $round: all $files closed files are whole" sh -c "cat '$work/lost' 2>/dev/null; [ $lost = 0 ] && [ $files -gt 5 ]"
	read -r f n <"$work/synced"
	check "round $round: what was fsynced is there ($n bytes)" [ "$(stat -c %s "$f")" -ge "$n" ]
done
