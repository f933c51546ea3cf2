#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock rxdebug against our server ports and our client's port, with every option; what it prints is held against
# what was done before.  And the RPC statistics of a port as the wire has them.
. "$(dirname "$0")/lib.sh"
enter rxdebug pts vos python3
plan 28

ip link add br0 type bridge; ip addr add 10.79.0.1/24 dev br0; ip link set br0 up
cell_make dbg.test "$work/c"
cell_up "$work/c"
stock_tools "$work/c"
login admin
"$afscell" aklog >/dev/null

rxd() { rxdebug "$@" >"$work/rxd" 2>&1; }
shows() { grep -qE -- "$1" "$work/rxd" || { cat "$work/rxd"; return 1; }; }
number() { sed -nE "s/.*$1.*/\\1/p" "$work/rxd" | head -n 1; }
raw() { python3 "$here/raw.py" call "$@"; }
version=$("$afscell" version | head -n 1)

for p in 7000 7001 7002 7003 7005 7007; do
	rxd 127.0.0.1 $p -version
	check "port $p says its version" shows "^AFS version: $version"
done

# a connection whose caller and calls are known: stock pts as the cell itself, which stays known to the server
rxd 127.0.0.1 7002 -noconns; before=$(number 'calls: ([0-9]+)')
for i in 1 2 3; do pts examine admin -localauth >/dev/null || bail "pts: $(pts examine admin -localauth 2>&1)"; done
rxd 127.0.0.1 7002 -noconns; after=$(number 'calls: ([0-9]+)')
check "plain: the count of calls rose by what pts made ($before, $after)" test $((after - before)) -ge 3 -a $((after - before)) -le 30
check "plain: packets are free" test "$(number 'Free packets: ([0-9]+)')" -gt 0
check "plain: nothing waits" shows '^0 calls waiting for a thread'

rxd 127.0.0.1 7002 -allconnections -long
check "-allconnections: the connection of pts stands there" shows '^Connection from host 127\.0\.0\.1, port [0-9]+, Cuid [0-9a-f]+/[0-9a-f]+'
check "-long: with its security class" shows 'security index 2, server conn'
check "-long: its level, and that it proved who it is" shows 'rxkad: level (clear|auth|crypt), flags authenticated'
check "-long: what came and went" shows 'Received [1-9][0-9]* bytes in [1-9][0-9]* packets'
check "-long: the call that was made, at rest" shows 'call 0: # [1-9][0-9]*, state (dally|hold)'
port=$(number '^Connection from host 127\.0\.0\.1, port ([0-9]+)')
rxd 127.0.0.1 7002 -allconnections -onlyport "$port"
check "-onlyport shows that one and no other" sh -c "[ \$(grep -c '^Connection from' '$work/rxd') -ge 1 ] && ! grep '^Connection from' '$work/rxd' | grep -v 'port $port'"
check "-onlyclient shows no server connection" sh -c "rxdebug 127.0.0.1 7002 -allconnections -onlyclient | grep -c 'server conn' | grep -qx 0"
rxd 127.0.0.1 7002 -nodally
check "-nodally shows nothing of a server at rest" refused grep -q 'state dally' "$work/rxd"

rxd 127.0.0.1 7002 -rxstats -noconns
check "-rxstats: data came and went" sh -c "grep -qE 'packets read: data [1-9][0-9]* ack' '$work/rxd' && grep -qE 'packets sent: data [1-9][0-9]* ack' '$work/rxd'"
check "-rxstats: a challenge went for each connection of a caller with a name" shows 'packets sent: .* challenge [1-9]'
check "-rxstats: server connections are counted" test "$(number '^ *([0-9]+) server connections')" -ge 1
check "-rxstats: and peers" test "$(number '([0-9]+) peer structs')" -ge 1
rxd 127.0.0.1 7002 -peers -noconns -long
check "-peers: the peer and what was sent to it" sh -c "grep -q '^Peer at host 127.0.0.1, port' '$work/rxd' && grep -qE 'packets sent [1-9]' '$work/rxd'"

# the client's port: it is a client of the VL server
cat "$work/c/afs/dbg.test/open/none" 2>/dev/null
rxd 127.0.0.1 7001 -allconnections -long
check "the client's port: its connection to the VL server" sh -c "grep -A1 'port 7003' '$work/rxd' | grep -q 'client conn'"
rxd 127.0.0.1 7001 -peers -noconns
check "the client's port: its peers" shows '^Peer at host 127\.0\.0\.1, port 7003'

# RPC statistics, as a server that gathers none has them (debug-stats.md 2)
off=0000000100000000000000000000000000000000
for p in 7000 7001 7003; do
	check "port $p: RXSTATS answers that nothing is gathered" sh -c "[ \"\$(python3 '$here/raw.py' call $p 409 0 00000001)\" = $off ]"
done
check "a stranger may not switch it on" sh -c "python3 '$here/raw.py' call 7000 409 4 | grep -qx 'code 1'"
