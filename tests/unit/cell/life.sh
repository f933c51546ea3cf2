#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A cell from its first start to its end: what is declared is made, what differs is changed, what is
# right is left alone, and erasing leaves nothing.
. "$(dirname "$0")/lib.sh"
private "$@"
plan 46
up() { "$afscell" up --config "$work/c.yaml" "$@"; }
down() { "$afscell" down --config "$work/c.yaml" "$@"; }
status() { "$afscell" status --config "$work/c.yaml" "$@"; }
is() { [ "$1" = "$2" ] || { echo "found $1, expected $2"; return 1; }; }
mode() { stat -c %a "$1"; }
audit() { grep -c "\"call\":\"$1\"" c/log/audit.jsonl; }

export PW=first-password
cat >c.yaml <<-Y
cell: life.test
state: $work/c
client: {mount: none}
administrators: [admin]
users:
  admin: {id: 1}
  alice: {id: 1001, password_env: PW}
groups:
  staff: {members: [admin]}
volumes:
  user.alice: {quota: 100M, owner: alice, mount: user/alice, acl: {alice: all, system:administrators: all}}
Y
up >up.out 2>&1; first=$?
check "a first start succeeds" is $first 0
check "... and says each thing that it made" sh -c '
	grep -q "user admin: created in the realm" up.out && grep -q "group staff: created" up.out &&
	grep -q "volume user.alice: created on /vicepa" up.out && grep -q "mount point user/alice: made" up.out || { cat up.out; exit 1; }'
check "a random password is shown once" is "$(grep -c 'password of admin: [A-Za-z0-9]\{20\}' up.out)" 1
check "... and is nowhere in the state" sh -c '! grep -ra "$(sed -n "s/.*password of admin: \([A-Za-z0-9]*\).*/\1/p" up.out)" c'
password=$(sed -n 's/.*password of admin: \([A-Za-z0-9]*\).*/\1/p' up.out)
eval "$("$afscell" env --config c.yaml)"
export KRB5CCNAME=$work/cc
check "env points kinit at the realm, and the password is right" sh -c 'echo "$0" | kinit admin' "$password"
check "... alice has the one from the environment" sh -c 'echo first-password | kinit alice'
check "a wrong one is not" sh -c '! echo wrong | kinit alice'

check "status is JSON with what tools ask for" sh -c '
	"$0" status --json | jq -e ".cell == \"life.test\" and .realm == \"LIFE.TEST\" and .state == \"serving\" and
		.mount == null and (.console | startswith(\"http://127.0.0.1:\")) and (.version | length > 0) and
		([.roles[] | select(.state == \"running\") | .name] | contains([\"fileserver\", \"volserver\", \"vlserver\", \"ptserver\", \"client\"]))
		and ([.roles[] | select(.name == \"fileserver\") | .port] == [7000])"' "$afscell"
check "status for people names every role" says 'fileserver +running, port 7000' status
check "the control socket may be asked by anybody" is "$(mode c/run/control)" 666
check "... the state is closed to others" sh -c 'for f in c/*; do case $f in c/run) ;; *) case $(stat -c %a "$f") in ?00 | 711) ;; *) ls -la c; exit 1;; esac;; esac; done'
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null; then
	check "a stranger may ask for the status" setpriv --reuid 65534 --regid 65534 --clear-groups "$afscell" status
	check "... but not stop the cell" fails 'Permission denied; run this as root' \
		setpriv --reuid 65534 --regid 65534 --clear-groups "$afscell" down --config /dev/fd/3 3<c.yaml
else
	for s in "a stranger may ask for the status" "... but not stop the cell"; do tap_n=$((tap_n + 1)); echo "ok $tap_n - $s # SKIP one user only"; done
fi
check "the trail tells what was made" is "$(audit volume.create)" 2
check "every volume checks clean" says '2 volumes, 0 findings' "$afscell" check
check "one volume can be checked" says '1 volume, 0 findings' "$afscell" check user.alice
check "a volume that is not there is told" fails 'no such volume' "$afscell" check nonsense

# --- again
up >again.out 2>&1
check "a second up changes nothing" grep -q 'runs already (process [0-9]*): nothing to change' again.out
check "... and says nothing else" is "$(wc -l <again.out)" 1
cat >>c.yaml <<-Y
  proj: {mount: user/alice/proj}
mounts: {pub: user.alice}
acls: {user: {system:anyuser: l, staff: rlidwk}}
Y
sed -i 's/quota: 100M/quota: 200M/; s/members: \[admin\]/members: [admin, alice]/' c.yaml
PW=second-password up >change.out 2>&1; changed=$?
check "up after a change of the file succeeds" is $changed 0
for what in 'user alice: password changed' 'group staff: alice added' 'volume user.alice: quota is now 200M' 'volume proj: created' \
	'mount point user/alice/proj: made, leads to volume proj' 'mount point pub: made' 'access list of user: set'; do
	check "... $what" grep -q "$what" change.out
done
check "... and nothing but that" is "$(wc -l <change.out)" 8
check "the new password is right" sh -c 'echo second-password | kinit alice'
sed -i 's/pub: user.alice/pub: proj/; s/roles:/roles:/' c.yaml
PW=second-password up >move.out 2>&1
check "a mount point that leads elsewhere is moved" grep -q 'mount point pub: now leads to volume proj' move.out
sed 's/^client:.*/client: {mount: none}\nroles: {client: {port: 7201}}/' c.yaml >d.yaml
LINES_MAX=3 check "what needs a restart is told" fails 'roles.client.port: changed, which takes a restart' env PW=second-password "$afscell" up --config d.yaml
rm d.yaml
sed 's/pub: proj/user: proj/' c.yaml >e.yaml
LINES_MAX=2 check "a directory is not replaced by a mount point" fails 'mount point user: a file or directory of that name is there' env PW=second-password "$afscell" up --config e.yaml
rm e.yaml

# --- down and up
down >/dev/null
check "down leaves no process" no_process
check "... no socket" absent c/run/control
PW=second-password up >up2.out 2>&1; again=$?
check "up finds all of it again" is "$again $(wc -l <up2.out)" "0 1"
check "... volumes check clean" says '3 volumes, 0 findings' "$afscell" check

# --- a process that was killed
pid=$(status --json | jq .pid)
kill -9 "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
check "after a kill -9 status says that nobody answers" fails 'no cell answers at .*/control; "afscell up" starts one' status
sleep 0.3
PW=second-password up >up3.out 2>&1; killed=$?
check "... up brings it back" is $killed 0
check "... and volumes check clean" says '3 volumes, 0 findings' "$afscell" check

# --- killed, and up at once while it is still dying; two starts at once
kill -9 "$(status --json | jq .pid)"
check "up right behind a kill -9 brings it back" env PW=second-password "$afscell" up --config c.yaml
down >/dev/null
PW=second-password up >a.out 2>&1 & a=$!
PW=second-password up >b.out 2>&1 & b=$!
wait $a; ra=$?; wait $b; rb=$?
check "of two starts at once both succeed" is "$ra $rb" "0 0"
check "... one starts it, the other finds it running" is "$(cat a.out b.out | grep -c 'runs already')" 1

# --- the end
check "erase wants to be meant" sh -c '"$0" down --erase --config c.yaml </dev/null; [ $? = 2 ]' "$afscell"
check "erase removes everything" says 'all of its state is gone' down --erase --yes
check "... nothing is left" absent c
check "... no process" no_process
