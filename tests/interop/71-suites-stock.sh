#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Our vos, pts and bos against a stock OpenAFS cell: the output of the stock tools, and the verbs that copy volumes,
# which take servers with two partitions.
here=$(readlink -f "$(dirname "$0")")
top=${top_srcdir:-$(readlink -f "$here/../..")}
afscell=${AFSCELL_BIN:-${top_builddir:-$top/build}/afscell}
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
[ -c /dev/fuse ] || { echo "1..0 # SKIP needs /dev/fuse"; exit 0; }
for p in vos pts bos bosserver krb5kdc /usr/lib/openafs/vlserver afsd.fuse tc; do
	type -P "$p" >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }
done
work=$(mktemp -d /var/tmp/afscell-interop.XXXXXX)
export OPENAFS_CELL_NS=afscell71 OPENAFS_CELL_NET=10.71.71 OPENAFS_CELL_STATE=$work/stock
S=10.71.71.1
stock() { "$here/openafs-cell" "$@"; }
in_cell() { stock exec --server "$@"; }
leave() {
	local status=$? p
	# a file server ends at QUIT, when it has told its clients; the others at TERM
	[ ! -f "$work/pid.dafileserver" ] || kill -QUIT "$(cat "$work/pid.dafileserver")" 2>/dev/null
	for p in "$work"/pid.*; do [ "$p" = "$work/pid.dafileserver" ] || kill "$(cat "$p" 2>/dev/null)" 2>/dev/null; done
	for _ in $(seq 50); do kill -0 "$(cat "$work"/pid.dafileserver 2>/dev/null)" 2>/dev/null || break; sleep 0.2; done
	for p in "$work"/pid.*; do kill -KILL "$(cat "$p" 2>/dev/null)" 2>/dev/null; done
	stock down >/dev/null 2>&1
	rm -rf "$work"
	exit $status
}
trap leave EXIT

n=0
result() { # result STATUS SENTENCE
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; tail -n 30 "$work/out" | sed 's/^/# /'; fi
}
check() { local what=$1; shift; "$@" >"$work/out" 2>&1; result $? "$what"; }
says() { local pattern=$1; shift; "$@" >"$work/says" 2>&1 && grep -E -- "$pattern" "$work/says" >/dev/null || { cat "$work/says"; return 1; }; }
fails() { local pattern=$1; shift; ! "$@" >"$work/says" 2>&1 && grep -E -- "$pattern" "$work/says" >/dev/null || { cat "$work/says"; return 1; }; }
ours() { in_cell env -u AFSCELL_CONFIG "$afscell" "$@" </dev/null; }
same() {
	local a b
	in_cell "$@" >"$work/1" 2>"$work/1e" </dev/null; a=$?
	ours "$@" >"$work/2" 2>"$work/2e"; b=$?
	[ $((a != 0)) = $((b != 0)) ] && cmp -s "$work/1" "$work/2" && return
	echo "stock: status $a, ours: $b"; diff "$work/1" "$work/2"; tail -n 3 "$work/1e" "$work/2e"
	return 1
}

cd "$work" || exit 1
stock up --cell stock71.test --no-mount >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; echo "1..0 # SKIP no stock cell"; exit 0; }

# a second partition: it is there when the servers start
mkdir -p "$work/stock/vicepb"
touch "$work/stock/vicepb/AlwaysAttach"
in_cell sh -c "mkdir -p /vicepb && mount --bind '$work/stock/vicepb' /vicepb" || exit 1
pid_of() { stock pids | awk -v n="$1" '$1 == n { print $2 }'; }
fs=$(pid_of dafileserver)
kill -QUIT "$fs"
for _ in $(seq 100); do [ -d "/proc/$fs" ] || break; sleep 0.2; done
kill "$(pid_of davolserver)" "$(pid_of salvageserver)"
for d in salvageserver "davolserver -log" "dafileserver -L -p 16 -b 100 -rxpck 400" "bosserver -nofork"; do
	name=${d%% *} dir=/usr/lib/openafs/
	[ "$name" = bosserver ] && dir=
	in_cell sh -c "echo \$\$ >'$work/pid.$name'; exec $dir$d" >/dev/null 2>&1 &
done
for _ in $(seq 100); do in_cell vos listpart $S -noauth 2>/dev/null | grep -q vicepb && break; sleep 0.3; done
sleep 2

show() { cat <<-'C'
	vos examine v1 -noauth
	vos examine v1.backup -noauth
	vos examine v1 -format -noauth
	vos examine v1 -extended -noauth
	vos examine v1 -extended -format -noauth
	vos listvldb -noauth
	vos listvldb -server S -partition a -noauth
	vos listvldb -noresolve -noauth
	vos listvol S -noauth
	vos listvol S -long -noauth
	vos listvol S a -format -noauth
	vos listvol S a -extended -noauth
	vos listvol server.stock71.test a -noauth
	vos listpart S -noauth
	vos listaddrs -printuuid -noauth
	vos size v1 -dump -localauth
	vos status S -noauth
	vos syncvldb S a -localauth
	vos syncvldb S -localauth
	vos syncserv S -localauth
	vos syncserv S a -dryrun -localauth
	vos backupsys -prefix v -localauth
	pts examine user1 -localauth
	pts listentries -users -groups -localauth
	pts membership system:administrators -localauth
	pts listowned system:administrators -localauth
	pts listmax -noauth
	bos status S -long -noauth
	bos listusers S -noauth
	bos listhosts S -noauth
	bos listkeys S -localauth
	bos getlog S BosLog -localauth
	bos getdate S ptserver nosuch -noauth
	bos getrestart S -noauth
	bos getrestricted S -noauth
	udebug S 7003
	udebug S vlserver
	udebug S 7002 -long
	rxdebug S 7003
	rxdebug S 7003 -allconnections
	rxdebug S 7003 -allc -nodally
	rxdebug S 7002 -allc -onlyserver -onlyauth crypt
	rxdebug S 7002 -allc -onlyclient -onlyhost S -onlyport 7000
	rxdebug S 7003 -peers -long
	rxdebug S 7003 -peers -noconns
	rxdebug S 7000 -version
	rxdebug S 7003 -onlyauth bogus
C
}
# the counters of packets move with the question itself
same_counters() {
	in_cell rxdebug $S 7003 -rxstats -noconns | sed 's/debug [0-9]*//' >"$work/1"
	ours rxdebug $S 7003 -rxstats -noconns | sed 's/debug [0-9]*//' >"$work/2"
	grep -q 'packets read: data' "$work/1" && diff "$work/1" "$work/2"
}
L=-localauth
total=$(($(show | wc -l) + 50))
echo "1..$total"
check "vos create" says 'created on partition /vicepa' ours vos create $S a v1 $L
check "vos backup makes a backup" says 'Created backup volume for v1' ours vos backup v1 $L
check "... and makes it again" says 'Created backup volume for v1' ours vos backup v1 $L
check "bos create makes a service" ours bos create $S nap simple '/bin/sleep 1000' $L
check "... which stock bos sees" says 'nap, currently running normally' in_cell bos status $S -noauth
while read -r line; do
	eval "set -- ${line//S/$S}"
	check "$line prints what the stock tool prints" same "$@"
done < <(show)

check "rxdebug -rxstats prints what the stock tool prints" same_counters
check "a release needs a site" fails 'no read-only sites' ours vos release v1 $L
check "vos addsite beside the volume" says 'Added replication site' ours vos addsite $S a v1 $L
check "... which stock vos shows as not released" says 'Not released' in_cell vos examine v1 -noauth
check "a second site on the server is refused" fails 'at most one' ours vos addsite $S b v1 $L
check "vos release" says 'Released volume v1 successfully' ours vos release v1 $L
check "... puts the read-only volume on line" says 'v1.readonly +[0-9]+ RO +[0-9]+ K +On-line' in_cell vos examine v1.readonly -noauth
check "... and again" says 'successfully' ours vos release v1 $L
check "... with -force" says 'successfully' ours vos release v1 -force $L
check "... and leaves the entry as stock vos does" says 'RO Site *$' in_cell vos listvldb v1 -noauth
check "vos remove takes the read-only volume" ours vos remove $S a v1.readonly $L
check "vos addsite on the other partition" says 'Added' ours vos addsite $S b v1 $L
check "vos release to the other partition" says 'successfully' ours vos release v1 $L
check "... puts it there" says 'v1.readonly' in_cell vos listvol $S b -noauth
check "... and no temporary clone stays" sh -c "! '$here/openafs-cell' exec --server vos listvol $S -noauth | grep clone-temp"
check "... again, with what changed" says 'what changed' ours vos release v1 -verbose $L
check "the entry is not locked" sh -c "! '$here/openafs-cell' exec --server vos listvldb v1 -noauth | grep LOCKED"
check "stock vos can release it too" in_cell vos remsite $S b v1 $L
check "vos zap takes what no entry leads to" sh -c "id=\$('$here/openafs-cell' exec --server vos listvol $S b -noauth | awk '/v1.readonly/ { print \$2 }') && '$here/openafs-cell' exec --server '$afscell' vos zap $S b \$id $L"

check "vos clone" says 'Created clone' ours vos clone v1 -toname v1.clone -readwrite $L
check "vos copy" says 'copied from' ours vos copy v1 $S a v1.copy $S b $L
check "... makes a volume of the same size" sh -c "e() { '$here/openafs-cell' exec --server vos size \$1 -dump $L | awk '/dump_size/ { print \$2 }'; }; a=\$(e v1) b=\$(e v1.copy); [ -n \"\$a\" ] && [ \$((b - a)) -ge 0 ] && [ \$((b - a)) -le 16 ]"
check "... that is on line" says 'On-line' in_cell vos examine v1.copy -noauth
check "... a name that is there is refused" fails 'there is a volume v1.copy' ours vos copy v1 $S a v1.copy $S b $L
check "vos move" says 'moved from' ours vos move v1.copy $S b $S a $L
check "... leaves nothing behind" sh -c "! '$here/openafs-cell' exec --server vos listvol $S b -noauth | grep v1.copy"
check "... and is where the entry says" says 'vicepa RW Site' in_cell vos examine v1.copy -noauth
check "vos move -live" says 'moved from' ours vos move v1.copy $S a $S b -live $L
check "to where it is, it is not moved" fails 'there already' ours vos move v1.copy $S b $S b $L
check "from where it is not, it is not moved" fails 'does not have it on' ours vos move v1.copy $S a $S b $L
check "vos shadow" says 'shadowed' ours vos shadow v1 $S a $S b -toname v1.shadow -toid 700000001 $L
check "... again, with what changed" says 'shadowed' ours vos shadow v1 $S a $S b -toname v1.shadow -toid 700000001 -incremental $L
check "... has no entry" fails 'Could not fetch the entry' in_cell vos examine 700000001 -noauth
check "vos dump and restore carry a volume" sh -c "'$here/openafs-cell' exec --server '$afscell' vos dump v1 -file '$work/dump' $L && '$here/openafs-cell' exec --server '$afscell' vos restore $S b v1.back -file '$work/dump' $L"
check "... to another partition when told" says 'Restored' ours vos restore $S a v1.back -file "$work/dump" -overwrite full $L
check "... and nothing stays at the old one" sh -c "! '$here/openafs-cell' exec --server vos listvol $S b -noauth | grep v1.back"
check "no transaction is left" says 'No active transactions' in_cell vos status $S -noauth
in_cell sh -c "pts creategroup friends $L; pts adduser user1 friends $L; vos create $S a user.copy -maxquota 777 $L" >/dev/null
check "nothing is locked" says 'Total entries: 0' in_cell vos listvldb -locked -noauth
check "import reads the cell" says 'user.copy: \{partition: a, quota: 777K' ours import -localauth --no-mounts
check "... its groups" says 'friends: \{id: -[0-9]+, members: \[user1\]\}' ours import -localauth --no-mounts
check "... and where volumes are mounted" says 'user.bench: .*mount: user.bench' ours import -localauth
check "... as a configuration" sh -c "'$here/openafs-cell' exec --server '$afscell' import -localauth -o '$work/copy.yaml' --as copy.test --state '$work/copy' && '$afscell' config check --config '$work/copy.yaml'"
check "... nobody learns names of people" says '^0 users, 0 groups' ours import -noauth --dry-run
check "tickets do as well as the cell's key" sh -c "'$here/openafs-cell' login admin >/dev/null 2>&1; '$here/openafs-cell' exec --server '$afscell' vos create $S a v.adm"
check "... and are named when they do not" sh -c "'$here/openafs-cell' login user1 >/dev/null 2>&1; '$here/openafs-cell' exec --server '$afscell' vos remove -id v.adm 2>&1 | grep 'caller is user1@STOCK71.TEST'"
