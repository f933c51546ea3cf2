#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock fs against our cache manager (AFSSERVER), and ours beside it: the same words, the same exit status.
. "$(dirname "$0")/lib.sh"
enter kinit fs aklog tokens unlog
plan 59

cell_make fs.test "$work/c"
cell_up "$work/c"
stock_tools "$work/c"
export AFSSERVER=127.0.0.1
open=$work/c/afs/fs.test/open
login admin
check "stock aklog gives the cache manager a token" aklog
check "... which ours lists" sh -c "'$afscell' tokens | grep -q 'tokens for fs.test'"
check "... and stock tokens too" sh -c "tokens | grep -q 'tokens for fs.test'"
cd "$open"
mkdir d e; echo x >d/f; ln -s f d/l
mkdir "$work/out"

# alike "ARGUMENTS": both print the same and end the same; warnings of the stock tool's own transport are not looked at.
alike() {
	local s o rs ro
	s=$(eval "fs $1" 2>/dev/null | grep -v '^Warning: Remote pioctl'); eval "fs $1" >/dev/null 2>&1; rs=$?
	o=$(eval "'$afscell' fs $1" 2>/dev/null); eval "'$afscell' fs $1" >/dev/null 2>&1; ro=$?
	if [ "$s" = "$o" ] && [ $((rs > 0)) = $((ro > 0)) ]; then
		result 0 "fs $1"
	else
		printf 'stock (%s): %s\nours  (%s): %s\n' $rs "$s" $ro "$o" >"$work/alike.out"
		result 1 "fs $1" "$work/alike.out"
	fi
}
fs setacl d alice rl; fs setacl d bob rliw -negative
for a in 'listacl d' 'listacl d e' 'la d/f' 'listquota .' 'lq . d' 'quota .' 'diskfree .' 'examine d' 'examine d/f' 'whichcell d' \
	wscell 'getfid d' 'getfid d/f d' checkservers checkvolumes listcells listaliases sysname getcrypt 'getcalleraccess d' \
	'getserverprefs' 'getserverprefs -numeric' 'getserverprefs -vlservers' getclientaddrs 'getcellstatus fs.test' storebehind \
	bypassthreshold monitor 'flush d/f' 'flushvolume d' flushall 'cleanacl d' 'listacl nowhere' 'lq /tmp' 'lsmount d' 'exportafs nfs'; do
	alike "$a"
done

# what stock fs changes, ours sees, and the other way about
fs mkmount d/m alice
check "a mount point that stock fs made" sh -c "'$afscell' fs lsmount d/m | grep -q \"mount point for volume '#alice'\""
check "... leads where it should" test -d d/m
"$afscell" fs rmmount d/m
check "... and is gone for stock fs when ours removed it" refused fs lsmount d/m
fs setquota . 50000
check "a quota that stock fs set" sh -c "'$afscell' fs listquota . | grep -q ' 50000 '"
"$afscell" fs setvol . -max 0
check "... and that ours took away" sh -c "fs listquota . | grep -q 'no limit'"
fs copyacl d e
check "copyacl" sh -c "[ \"\$('$afscell' fs listacl d | tail -n +2)\" = \"\$('$afscell' fs listacl e | tail -n +2)\" ]"
fs newcell other.test 127.0.0.9; fs newalias ot other.test
check "a cell added while it runs has its names" sh -c "ls '$work/c/afs' | grep -qx other.test && [ \$(readlink '$work/c/afs/ot') = other.test ]"
check "... and ours lists it" sh -c "'$afscell' fs listcells | grep -q 'Cell other.test on hosts 127.0.0.9.'"
"$afscell" fs sysname one two
mkdir bin.two; ln -s bin.@sys bin
check "@sys stands for the names in turn" sh -c "cd bin && [ \"\$(stat -c %i .)\" = \"\$(stat -c %i ../bin.two)\" ]"
check "fs --json is JSON" sh -c "'$afscell' fs listcells --json | python3 -m json.tool"
check "only root sets what is everybody's" refused as_user 1001 fs setcachesize 20000

# PAGs; over the control socket, since the stock way carries only two groups
unset AFSSERVER
check "a PAG begins without tokens" sh -c "'$afscell' pagsh -- '$afscell' tokens | grep -q 'tokens for' && exit 1; exit 0"
check "a token got in a PAG is its own" sh -c "'$afscell' unlog; '$afscell' pagsh -- sh -c \"'$afscell' aklog && '$afscell' tokens\" | grep -q 'tokens for fs.test' && ! '$afscell' tokens | grep -q 'tokens for fs.test'"
touch "$work/c/afs/fs.test/alice/no" 2>/dev/null && bad=1 || bad=0
check "... and rules what its processes may do in the mount" sh -c "[ $bad = 0 ] && '$afscell' pagsh -- sh -c \"'$afscell' aklog && '$afscell' fs setacl '$work/c/afs/fs.test/alice' admin all && touch '$work/c/afs/fs.test/alice/yes'\""
check "nobody waits, and ps says so" sh -c "'$afscell' ps | grep -q waits"
# diagnostic tools
exec 7<"$open/d/f"; cat <&7 >/dev/null
fid=$("$afscell" fs getfid "$open/d/f" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[0]["fid"])')
cmdebug 127.0.0.1 -long >"$work/cm.out" 2>&1
check "cmdebug lists the file that is open" grep -q "for [0-9]*\.$fid \[fs.test\]" "$work/cm.out"
check "... with its length and opens" sh -c "grep -A 4 '\.$fid ' '$work/cm.out' | grep -q '2 bytes' && grep -A 4 '\.$fid ' '$work/cm.out' | grep -q '1 opens'"
check "cmdebug -cache knows its size" sh -c "cmdebug 127.0.0.1 -cache | grep -q 'Cache size: *[1-9]'"
check "cmdebug -cellservdb knows the cells" sh -c "cmdebug 127.0.0.1 -cellservdb | grep -q '^>other.test'"
check "xstat_cm_test reads the full collection" sh -c "xstat_cm_test -cmname 127.0.0.1 -collID 2 -onceonly 2>&1 | grep -q '2 numCellsVisible'"
exec 7<&-
cd /
exit $tap_bad
