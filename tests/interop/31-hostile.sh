#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A running cell among hosts that keep no rule: slow callers, spoofed questions, malformed packets.
. "$(dirname "$0")/lib.sh"
enter kinit python3 pts vos rxdebug
plan 10

ip addr add 10.98.0.1/32 dev lo
cell_make bad.test "$work/c" "127.0.0.1, 10.98.0.1"
cell_up "$work/c"
stock_tools "$work/c"
mnt=$work/c/afs/bad.test
raw() { python3 "$here/raw.py" "$@"; }

check "padding is zero, on every port" raw padding
# the cache manager is at the address that others can reach; the servers are at both
export RAW_HOST=10.98.0.1
# as strangers: from addresses that are not this machine's loopback
ip addr add 10.97.0.1/16 dev lo
stranger() { RAW_FROM=10.97 raw "$@"; }
check "an address that answers nothing gets at most 3 times its bytes and 200, whatever it sends where" stranger amplify

soon() { # soon CMD...: it succeeds within five seconds
	local from=$SECONDS; timeout 30 "$@" && [ $((SECONDS - from)) -le 5 ]
}
under_load() { # under_load "sentence" PORT SERVICE OP HEX CMD...
	local what=$1 load; shift
	python3 "$here/raw.py" slow "$1" "$2" "$3" "$4" >"$work/slow.out" 2>&1 & load=$!
	for _ in $(seq 100); do grep -q begun "$work/slow.out" && break; sleep 0.1; done
	sleep 2
	check "900 slow calls do not hold up $what" soon "${@:5}"
	kill $load; wait $load 2>/dev/null
}
fid=000000002000000000000001
under_load "the file server" 7000 1 132 "20000000${fid:8}" sh -c "echo hello >'$mnt/open/f' && cat '$mnt/open/f' && rm '$mnt/open/f'"
under_load "the protection server" 7002 73 510 '' pts listmax -noauth
under_load "the location server" 7003 52 513 '' vos listvldb -noauth
under_load "the volume server" 7005 4 115 '' vos partinfo 10.98.0.1 -noauth
under_load "the cache manager" 7001 1 206 '' sh -c "ls '$mnt' && echo hello >'$mnt/open/g' && rm '$mnt/open/g'"

alive() {
	for p in 7000 7001 7002 7003 7005; do rxdebug 10.98.0.1 $p -version >/dev/null || return 1; done
	echo hello >"$mnt/open/f" && [ "$(cat "$mnt/open/f")" = hello ] && pts listmax -noauth
}
check "half a minute of malformed packets" raw garbage 1 30
check "every service answers after it" alive
check "the volumes check clean" "$afscell" check
