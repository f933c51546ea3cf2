#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Users, groups and the cell's key, on a running cell: both halves of a user are made and removed together, what is
# half done is completed, and a new key does not put out who holds a token of the old one.
. "$(dirname "$0")/lib.sh"
private "$@"
for p in kinit klist jq; do type -P $p >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }; done
plan 55
conf id 'administrators: [admin]
users: {admin: {id: 1}}'
export AFSCELL_CONFIG=$work/id.yaml
says() { local pattern=$1; shift; "$@" >"$work/.says" 2>&1 && grep -E -- "$pattern" "$work/.says" >/dev/null || { cat "$work/.says"; return 1; }; }
j() { local q=$1; shift; "$afscell" "$@" --json >"$work/.json" && jq -e "$q" "$work/.json" || { cat "$work/.json"; return 1; }; }
login() { KRB5CCNAME=FILE:$work/cc.$1 kinit "$1" <<<"$2"; }
as() { local u=$1; shift; KRB5CCNAME=FILE:$work/cc.$u "$afscell" "$@"; }

check "the cell comes up" "$afscell" up
eval "$("$afscell" env)"
check "user add makes a user with a random password" j '.id == 2 and .principal == "alice" and (.password | length) == 20' user add alice
alice=$(jq -r .password "$work/.json")
check "... who can log in" login alice "$alice"
check "... and is in the protection database" says 'Name: alice, id: 2' "$afscell" pts examine alice -localauth
check "... once" fails 'there is a user alice already, id 2' "$afscell" user add alice
echo 'correct horse' >"$work/pw"
check "user add takes id, groups and a password" says 'User bob has id 1002' "$afscell" user add bob --id 1002 --group system:administrators --password-file "$work/pw"
check "... who can log in" login bob 'correct horse'
check "... and is an administrator" as bob pts createuser carol -id 77
check "an id that is in use leaves no half of a user" fails 'belongs to someone else' "$afscell" user add dave --id 77
check "... no principal" sh -c "! KRB5CCNAME=FILE:$work/cc.x kinit dave </dev/null 2>&1 | grep -v 'not found in Kerberos database'"
check "a group that is not there leaves no half either" fails 'no such group' "$afscell" user add dave --group nosuch
check "... no entry" fails 'no such user' "$afscell" pts examine dave -localauth
check "... and the next attempt succeeds" "$afscell" user add dave --id 1004
check "an entry without principal is completed" says 'User carol has id 77 .*half there was completed' "$afscell" user add carol
check "so is a principal without entry, with the password of now" sh -c "'$afscell' pts delete carol -localauth && '$afscell' user add carol --password-file '$work/pw' | grep 'half there was completed'"
check "... which is the only one" login carol 'correct horse'
check "an entry keeps its id" sh -c "'$afscell' pts createuser erin -id 88 -localauth; '$afscell' user add erin --id 89 2>&1 | grep 'with id 88, not 89'"
check "joe and joe/admin are two" sh -c "'$afscell' user add joe && '$afscell' user add joe/admin --group system:administrators --password-file '$work/pw'"
check "... the second has the dot of AFS" says 'Name: joe.admin' "$afscell" pts examine joe.admin -localauth
check "... and its rights" sh -c "KRB5CCNAME=FILE:$work/cc.ja kinit joe/admin <'$work/pw' && KRB5CCNAME=FILE:$work/cc.ja '$afscell' pts createuser frank"
for bad in joe.admin Joe joe@ELSEWHERE joe:x anonymous a/b/c ''; do
	check "\"$bad\" is no name of a user" fails 'cannot name a user|has 1 to' "$afscell" user add "$bad"
done
check "user show tells both halves" says 'groups +system:administrators' "$afscell" user show bob
check "user list has everybody once" j '[.[] | .name] | (sort | unique | length) == length and index("joe.admin") and index("dave")' user list
check "user passwd" "$afscell" user passwd alice --password-file "$work/pw"
echo "$alice" >"$work/pw.old"
check "... ends the old one" sh -c "! KRB5CCNAME=FILE:$work/cc.x kinit alice <'$work/pw.old'"
check "... begins the new one" login alice 'correct horse'
check "user disable gives no more tickets" sh -c "'$afscell' user disable alice && ! KRB5CCNAME=FILE:$work/cc.x kinit alice <'$work/pw'"
check "... is shown" says 'disabled' "$afscell" user show alice
check "user enable gives them again" sh -c "'$afscell' user enable alice && KRB5CCNAME=FILE:$work/cc.x kinit alice <'$work/pw'"
check "user remove takes both halves" sh -c "'$afscell' user remove dave && ! '$afscell' pts examine dave -localauth && ! '$afscell' user show dave"
check "... but no administrator of the configuration" fails 'take the name out there first' "$afscell" user remove admin

check "group add with members" says 'Group staff has id -' "$afscell" group add staff --member alice bob
check "... or not at all" fails 'there is no user or group nosuch' "$afscell" group add team --member alice nosuch
check "... as none is there" fails 'there is no group team' "$afscell" group show team
check "group adduser and removeuser" sh -c "'$afscell' group adduser staff joe && '$afscell' group removeuser staff bob && '$afscell' group show staff | grep 'members *alice joe\$'"
check "group remove" sh -c "'$afscell' group remove staff && ! '$afscell' group show staff"

# the key
check "key list shows no key" j '.keys | length == 1 and (.[0] | keys) == ["checksum", "enctype", "kvno"]' key list
check "a token of the old key" as bob pts examine bob
check "key rotate makes the next kvno" j '(.keys | map(.kvno)) as $k | $k[0] == $k[1] + 1 and ($k | length) == 2' key rotate
check "... the ticket of the old key goes on" as bob pts createuser gina
login bob "correct horse" >/dev/null
check "... a new one is sealed with the new key" says 'kvno .*2' sh -c "KRB5CCNAME=FILE:$work/cc.bob kvno afs/id.test"
check "... and taken at once" as bob pts createuser hugo
check "the old key stays while tickets may need it" fails 'may be in use for another 1[0-9]{3} minutes' "$afscell" key retire
check "key export writes what stock servers read, for the owner only" sh -c "'$afscell' key export '$work/stock' && [ \"\$(stat -c %a '$work/stock/server/KeyFileExt' '$work/stock/server/rxkad.keytab' | sort -u)\" = 600 ]"
check "... with both keys" sh -c "klist -k '$work/stock/server/rxkad.keytab' | grep -c afs/id.test | grep -x 2"
check "retire by force leaves one" j '.keys | length == 1' key retire --force
check "... and the cell goes on" sh -c "'$afscell' pts listmax -localauth && KRB5CCNAME=FILE:$work/cc.bob '$afscell' pts examine bob"
check "the keys survive a restart" sh -c "'$afscell' down && '$afscell' up && KRB5CCNAME=FILE:$work/cc.bob '$afscell' pts examine bob && '$afscell' key list --json | jq -e '.keys[0].kvno == 2'"
check "the trail names what was done" sh -c "grep -q '\"user.add\"' '$work/id/log/audit.jsonl' && grep -q '\"key.rotate\"' '$work/id/log/audit.jsonl'"
