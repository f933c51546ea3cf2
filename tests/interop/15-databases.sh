#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every call that stock pts, vos and udebug make to the databases, as the cell itself and as a stranger.
. "$(dirname "$0")/lib.sh"
enter vos pts udebug aklog kinit
plan 94

ip=10.99.0.1 # stock vos does not take a loopback address for a server
ip addr add $ip/32 dev lo
cell_make db.test "$work/c" $ip
cell_up "$work/c"
stock_tools "$work/c"
said=$work/out.txt
says() { # says PATTERN CMD...: CMD succeeds and prints PATTERN
	local pattern=$1; shift
	"$@" >"$said" 2>&1 && grep -E -- "$pattern" "$said" >/dev/null || { cat "$said"; return 1; }
}
fails() { # fails PATTERN CMD...
	local pattern=$1; shift
	! "$@" >"$said" 2>&1 && grep -E -- "$pattern" "$said" >/dev/null || { cat "$said"; return 1; }
}
quiet() { shift; "$@"; } # what succeeds without a word
P() { local what=$1; shift; "$what" "$1" pts "${@:2}" -localauth; }
V() { local what=$1; shift; "$what" "$1" vos "${@:2}" -localauth; }

for port in 7002 7003; do
	check "udebug $port: sync site for ever" says 'I am sync site forever \(1 server\)' udebug $ip $port -long
	check "udebug $port: healthy, at its address" sh -c "udebug $ip $port | grep -q 'Recovery state 1f' && udebug $ip $port | grep -q \"addresses are: $ip\""
done

check "pts listmax is open to all" says 'Max user id is 1002 and max group id is -205' pts listmax -noauth
check "pts listentries is for administrators" fails 'Permission denied' pts listentries -noauth
check "pts listentries" P says '^alice +1001 +-204' listentries
check "pts listentries -groups" P says '^system:ptsviewers +-203' listentries -groups
check "pts listentries -users -groups" P says '^anonymous +32766' listentries -users -groups
check "pts createuser counts upward" P says 'User dan has id 1003' createuser dan
check "pts createuser -id" P says 'User erin has id 2002' createuser erin -id 2002
check "pts createuser of a taken id" P fails 'id already exists' createuser frank -id 2002
check "pts createuser of a taken name" P fails 'name already exists' createuser DAN
check "pts createuser of an impossible name" P fails 'Badly formed name|illegal' createuser 'a:b'
check "pts createuser by a stranger" fails 'Permission denied' pts createuser mallory -noauth
check "pts creategroup" P says 'group staff has id -206' creategroup staff
check "pts creategroup -owner" P says 'group alice:friends has id -207' creategroup alice:friends -owner alice
check "pts creategroup -id" P says 'group bob:x has id -900' creategroup bob:x -owner bob -id -900
check "pts creategroup with another's prefix" P fails 'Badly formed name' creategroup bob:y -owner alice
check "pts adduser several" P quiet - adduser -user dan erin bob -group alice:friends
check "pts adduser again" P fails 'already exists' adduser dan alice:friends
check "pts adduser of a group to a group" P quiet - adduser -user alice:friends -group staff
check "pts adduser in a circle" P fails 'nconsisten' adduser -user staff -group alice:friends
check "pts membership of a group" P says '^  erin$' membership alice:friends
check "pts membership of a user" P says '^  alice:friends$' membership dan
check "pts membership of a user by a stranger" sh -c 'pts membership dan -noauth 2>&1 | grep -q "Permission denied"'
check "pts membership of a group by a stranger" says '^  erin$' pts membership alice:friends -noauth
check "pts membership -supergroups" P says '^  staff$' membership alice:friends -supergroups
check "pts membership -expandgroups" P says '^  staff$' membership dan -expandgroups
check "pts examine by name" P says 'Name: dan, id: 1003, owner: system:administrators, creator: system:administrators,' examine dan
check "pts examine by id" P says 'Name: erin, id: 2002' examine 2002
check "pts examine shows flags and quota" P says 'membership: 1, flags: S----, group quota: 20' examine dan
check "pts examine of an administrator" says 'group quota: unlimited' pts examine admin -noauth
check "pts examine of nobody" fails "doesn't exist" pts examine nobody-at-all -noauth
check "pts listowned" P says '^  alice:friends$' listowned alice
check "pts chown rewrites the prefix" sh -c 'pts chown alice:friends bob -localauth && pts examine bob:friends -localauth | grep -q "owner: bob"'
check "pts rename of a group" P quiet - rename bob:friends bob:pals
check "pts rename of a group away from its owner" P fails 'Badly formed name' rename bob:pals alice:pals
check "pts rename of a user" sh -c 'pts rename dan daniel -localauth && pts examine daniel -localauth | grep -q "id: 1003"'
check "pts setfields -access" sh -c 'pts setfields bob:pals -access SOMar -localauth && pts examine bob:pals -localauth | grep -q "flags: SOMar"'
check "pts setfields -groupquota" sh -c 'pts setfields daniel -groupquota 5 -localauth && pts examine daniel -localauth | grep -q "group quota: 5"'
check "pts setmax" sh -c 'pts setmax -user 5000 -group -9000 -localauth && pts createuser fred -localauth | grep -q 5001 && pts creategroup lab -localauth | grep -q -- -9001'
check "pts setmax by a stranger" fails 'Permission denied' pts setmax -user 7 -noauth
check "pts removeuser" P quiet - removeuser erin bob:pals
check "pts removeuser again" P fails "doesn't exist" removeuser erin bob:pals
check "pts delete" P quiet - delete fred lab
check "pts delete of what must stay" P fails 'Permission denied' delete system:anyuser
check "a deleted owner's groups are orphans" sh -c 'pts delete bob -localauth && pts listowned 0 -localauth | grep -q "^  bob:pals$"'

check "vos create" V says 'Volume [0-9]+ created on partition /vicepa' create $ip a v.one
check "vos create of a taken name" V fails 'already exists' create $ip a v.one
check "vos create by a stranger" fails 'no permission access' vos create $ip a v.two -noauth
check "vos examine" V says 'number of sites -> 1' examine v.one
check "vos examine by id" sh -c 'vos examine $(vos listvldb -name v.one -noauth | sed -n "s/ *RWrite: \([0-9]*\).*/\1/p") -noauth | grep -q "^v.one "'
check "vos listvldb is open to all" says '^v.one' vos listvldb -noauth
check "vos listvldb -server -partition" says '^v.one' vos listvldb -server $ip -partition a -noauth
check "vos listvldb -server of another" sh -c "! vos listvldb -server 10.99.0.9 -quiet -noauth 2>/dev/null | grep v.one"
check "vos lock" V says 'Locked VLDB entry' lock v.one
check "vos lock again" V fails 'already locked' lock v.one
check "vos listvldb -locked" says 'Volume is currently LOCKED' vos listvldb -locked -noauth
check "vos unlock" V says 'Released lock' unlock v.one
check "vos unlockvldb" sh -c 'vos lock v.one -localauth && vos unlockvldb -localauth && ! vos listvldb -locked -noauth | grep v.one'
check "vos addsite" V says 'Added replication site' addsite $ip a v.one
check "vos listvldb shows it as not released" says 'RO Site  -- Not released' vos listvldb -name v.one -noauth
check "vos remsite" V says 'Removed replication site' remsite $ip a v.one
check "vos changeloc" V quiet - changeloc $ip a v.one
check "vos rename" V says 'Renamed volume v.one to v.uno' rename v.one v.uno
check "vos listaddrs -printuuid" says "^$ip" vos listaddrs -printuuid -noresolve -noauth
check "vos delentry, then vos syncvldb makes the entry again" sh -c "vos delentry v.uno -localauth && ! vos listvldb -name v.uno -noauth && vos syncvldb $ip -localauth && vos listvldb -name v.uno -noauth"
check "vos syncserv" V says 'synchronized with VLDB' syncserv $ip
check "vos remove" V says 'deleted' remove $ip a v.uno
check "vos setaddrs" V quiet - setaddrs -uuid 01020304-0506-0708-09-0a-0b0c0d0e0f10 -host 10.99.0.77 10.99.0.78
check "vos listaddrs shows both" sh -c 'vos listaddrs -noresolve -noauth | grep -q 10.99.0.77 && vos listaddrs -noresolve -noauth | grep -q 10.99.0.78'
check "vos setaddrs of another's address" V fails 'multiple|Multihomed|ip' setaddrs -uuid 0a020304-0506-0708-09-0a-0b0c0d0e0f10 -host 10.99.0.77 $ip
check "vos changeaddr -remove" V says 'Removed server' changeaddr 10.99.0.77 -remove
check "vos changeaddr -remove of a server in use" V fails 'in use|referenced|exists|already' changeaddr $ip -remove
make_many() { for i in $(seq 20); do vos create $ip a many.$i -localauth || return 1; done; }
check "vos create, twenty times" make_many
check "a list of many entries comes whole" sh -c 'vos listvldb -noauth | grep -c "^many\.[0-9]" | grep -qx 20'

# an ordinary user, by a token that stock aklog leaves with our cache manager
login alice
export AFSSERVER=127.0.0.1 # our cache manager answers pioctls there
check "alice gets a token" aklog -c db.test -k DB.TEST
U() { local what=$1; shift; "$what" "$1" pts "${@:2}"; }
check "alice makes a group of hers" U says 'group alice:mine has id -9002' creategroup alice:mine
check "alice puts others in" U quiet - adduser -user erin alice -group alice:mine
check "alice sees what she is in" U says '^  alice:mine$' membership alice
check "alice does not see what others are in" sh -c 'pts membership erin 2>&1 | grep -q "Permission denied"'
check "alice's quota went down" U says 'group quota: 19' examine alice
check "alice may not make a user" U fails 'Permission denied' createuser mallory
check "alice may not make a group without her name" U fails 'Badly formed name' creategroup plain
check "alice may not make a system: group" U fails 'Badly formed name|Permission' creategroup system:alices
check "alice may not enter the administrators" U fails 'Permission denied' adduser alice system:administrators
check "alice may not delete erin" U fails 'Permission denied' delete erin
check "alice may not list all entries" U fails 'Permission denied' listentries
check "alice may not create a volume" fails 'no permission access' vos create $ip a v.alice
check "alice gives her group away and cannot take it back" sh -c 'pts chown alice:mine erin && ! pts chown erin:mine alice 2>/dev/null'
login admin
check "an administrator gets a token" aklog -c db.test -k DB.TEST
check "an administrator makes a user" U says 'User gwen has id' createuser gwen
check "an administrator creates a volume" says 'Volume [0-9]+ created' vos create $ip a v.admin
