#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock OpenAFS vos, pts, udebug and rxdebug against our cell, with -localauth and with a token.
. "$(dirname "$0")/lib.sh"
enter vos pts udebug rxdebug aklog tokens unlog kinit
plan 76

# stock vos takes a loopback address for the name of this machine
ip link add br0 type bridge; ip addr add 10.79.0.1/24 dev br0; ip link set br0 up
cell_make stock.test "$work/c" 10.79.0.1
cell_up "$work/c"
stock_tools "$work/c"
alias_out=$work/out
run() { "$@" >"$alias_out" 2>&1; local s=$?; cat "$alias_out"; return $s; }
says() { # says PATTERN CMD...: CMD succeeds and prints PATTERN
	local pattern=$1; shift
	run "$@" | grep -E -- "$pattern" >/dev/null && [ "${PIPESTATUS[0]}" = 0 ] || { cat "$alias_out"; return 1; }
}
fails() { # fails PATTERN CMD...
	local pattern=$1; shift
	! "$@" >"$alias_out" 2>&1 && grep -E -- "$pattern" "$alias_out" >/dev/null || { cat "$alias_out"; return 1; }
}
srv="-server 10.79.0.1"

check "rxdebug reads the version of each port" sh -c 'for p in 7000 7001 7002 7003 7005; do rxdebug 10.79.0.1 $p -version | grep afscell || exit 1; done'
check "udebug finds a one-site quorum at both databases" sh -c 'udebug 10.79.0.1 7003 | grep "sync site" && udebug 10.79.0.1 7002 | grep "Recovery state 1f"'

for how in localauth token; do
	auth=-localauth
	if [ $how = token ]; then
		auth=''
		login admin
		export AFSSERVER=127.0.0.1
		check "stock aklog gives our cache manager a token" aklog -c stock.test -k STOCK.TEST
		check "stock tokens shows it" says 'stock.test' tokens
	fi
	check "vos partinfo ($how)" says 'Free space on partition /vicepa: [0-9]+ K blocks out of total [0-9]+' vos partinfo $srv $auth
	check "vos listpart ($how)" says '/vicepa' vos listpart $srv $auth
	check "vos create ($how)" says 'Volume [0-9]+ created on partition /vicepa' vos create $srv -partition a -name v.one -maxquota 2000 $auth
	check "vos create refuses a name that is there ($how)" fails 'already exists' vos create $srv -partition a -name v.one $auth
	check "vos examine shows the volume on-line ($how)" says 'v.one +[0-9]+ RW +[0-9]+ K +On-line' vos examine v.one $auth
	check "vos examine shows its quota ($how)" says 'MaxQuota +2000 K' vos examine v.one $auth
	check "vos listvldb lists it ($how)" says '^v.one' vos listvldb $auth
	check "vos listvldb -name finds it ($how)" says 'RWrite: [0-9]+' vos listvldb -name v.one $auth
	check "vos listvol counts volumes on line ($how)" says 'Total volumes onLine [0-9]+ ; Total volumes offLine 0 ; Total busy 0' vos listvol $srv $auth
	check "vos listvol -long ($how)" says 'MaxQuota' vos listvol $srv -partition a -long $auth
	check "vos listvol -fast ($how)" says '[0-9]{9}' vos listvol $srv -partition a -fast $auth
	check "vos status ($how)" says 'No active transactions' vos status $srv $auth
	check "vos setfields ($how)" run vos setfields -id v.one -maxquota 3000 $auth
	check "vos examine shows the new quota ($how)" says 'MaxQuota +3000 K' vos examine v.one $auth
	check "vos offline ($how)" run vos offline $srv -partition a -id v.one $auth
	check "vos examine shows it off-line ($how)" says 'Off-line' vos examine v.one $auth
	check "vos online ($how)" run vos online $srv -partition a -id v.one $auth
	check "vos rename ($how)" says 'Renamed volume v.one to v.two' vos rename v.one v.two $auth
	check "vos size -dump ($how)" says 'dump_size|Dump' vos size -id v.two -dump $auth
	check "vos remove ($how)" says 'deleted' vos remove $srv -partition a -id v.two $auth
	check "vos examine does not find it any more ($how)" fails 'does not exist|VLDB: no such entry' vos examine v.two $auth

	check "pts createuser ($how)" says 'User carol has id 2001' pts createuser carol -id 2001 $auth
	check "pts creategroup ($how)" says 'group admin:team has id -' pts creategroup admin:team -owner admin $auth
	check "pts adduser ($how)" run pts adduser carol admin:team $auth
	check "pts membership of the group ($how)" says 'carol' pts membership admin:team $auth
	check "pts membership of the user ($how)" says 'admin:team' pts membership carol $auth
	check "pts examine ($how)" says 'Name: carol, id: 2001, owner: system:administrators' pts examine carol $auth
	check "pts listentries ($how)" says 'alice +1001' pts listentries $auth
	check "pts listentries -groups ($how)" says 'system:administrators' pts listentries -groups $auth
	check "pts removeuser ($how)" run pts removeuser carol admin:team $auth
	check "pts delete ($how)" run pts delete carol admin:team $auth
	check "pts examine does not find the deleted user ($how)" fails "doesn't exist" pts examine carol $auth
done

check "stock unlog drops it" unlog
check "and stock tokens shows none" refused says 'for stock.test' tokens
check "a stranger cannot create a volume" fails 'not permitted|no permission|Permission|not authorized|VLDB: no permission' vos create $srv -partition a -name v.bad -noauth
check "a stranger cannot create a user" fails 'Permission denied' pts createuser mallory -noauth
check "a stranger can list the VLDB" says '^open' vos listvldb -noauth
check "the audit trail names the creation of the volume" grep -q '"CreateVolume"' "$work/c/state/log/audit.jsonl"
check "the audit trail names the refused call" sh -c "grep CreateUser\\\\\|NewEntry '$work/c/state/log/audit.jsonl' | grep -q mallory"
check "the cell checks clean" "$afscell" check
