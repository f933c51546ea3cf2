#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A cell is read with import and brought up again as a copy: the same people, memberships, volumes, quotas and mount
# points; and what the caller may not see is not in it.
. "$(dirname "$0")/lib.sh"
private "$@"
type -P jq >/dev/null || { echo "1..0 # SKIP needs the program jq"; exit 0; }
plan 16
echo secret >"$work/pw"
conf one "administrators: [admin]
users:
  admin: {id: 1, password_file: $work/pw}
  alice: {id: 1001, password_file: $work/pw}
  bob: {id: 1002, password_file: $work/pw}
groups:
  staff: {id: -300, members: [alice, bob]}
  alice:friends: {id: -301, members: [bob]}
volumes:
  user: {mount: user, quota: 10M}
  user.alice: {mount: user/alice, owner: alice, quota: 2M, acl: {alice: all}}
  proj: {mount: 'proj x', quota: 3M}
  proj.deep: {mount: 'proj x/a'}
mounts:
  again: {volume: proj, rw: true}"
export AFSCELL_CONFIG=$work/one.yaml
check "the cell comes up" "$afscell" up
check "import writes a configuration" "$afscell" import -localauth -o "$work/two.yaml" --as two.test --state "$work/two"
check "... and not over another file" fails 'is there already' "$afscell" import -localauth -o "$work/two.yaml"
check "... as JSON too" sh -c "'$afscell' import -localauth --json | jq -e '.volumes | map(select(.name == \"proj.deep\"))[0].mount == \"proj x/a\"'"
check "a dry run writes nothing" says '3 users, 2 groups, 5 volumes, 1 further mount points; nothing was written' "$afscell" import -localauth --dry-run
check "nobody sees no people" sh -c "'$afscell' import -noauth 2>&1 | grep 'not copied: users and groups may not be listed by you'"
check "... nor what is mounted in directories that he may not read" sh -c "'$afscell' import -noauth --json | jq -e '.users == []'"
state() { # what both cells must agree on
	"$afscell" pts listentries -users -groups -localauth | sort
	"$afscell" pts membership staff alice:friends system:administrators -localauth
	"$afscell" vos listvol "$1" -localauth -long | grep -E 'MaxQuota|^[a-z]+[a-z.]* ' | awk '{print $1, $2 ~ /^[0-9]*$/ && $1 == "MaxQuota" ? $2 : ""}' | sort
}
state localhost >"$work/state.one"
check "the cell goes down" "$afscell" down
sed -i "s/^state:.*/&\nclient: {mount: none}/" "$work/two.yaml"
export AFSCELL_CONFIG=$work/two.yaml
check "the copy is a right configuration" "$afscell" config check
check "the copy comes up" "$afscell" up
state localhost >"$work/state.two"
check "... with the same people, groups, volumes and quotas" diff "$work/state.one" "$work/state.two"
check "... of which there are some" sh -c "grep -q alice:friends '$work/state.two' && grep -q 'MaxQuota 2048' '$work/state.two'"
check "... and the same mount points" sh -c "'$afscell' import -localauth --json >'$work/two.json' && jq -e '(.volumes | map({(.name): .mount}) | add) == {\"proj\": \"proj x\", \"proj.deep\": \"proj x/a\", \"root.cell\": null, \"user\": \"user\", \"user.alice\": \"user/alice\"}' '$work/two.json'"
check "... the read-write one too" jq -e '.mounts == [{"path": "again", "volume": "proj", "rw": true}]' "$work/two.json"
check "what is imported again is the same" sh -c "'$afscell' import -localauth --as two.test --state '$work/two' | grep -v '^#' | grep -v '^  # id' >'$work/again'; grep -v '^#' '$work/two.yaml' | grep -v '^  # id' | grep -v '^client:' | diff - '$work/again'"
check "the copy goes down" "$afscell" down
