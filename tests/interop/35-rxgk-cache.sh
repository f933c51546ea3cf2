#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The cache manager with a token of rxgk alone, over the network at level crypt: it reads, writes, is the right
# caller, and is told of what another cache manager changes.
. "$(dirname "$0")/lib.sh"
enter kinit
plan 9

cell_make gk.test "$work/c"
sed -i "s|client: {mount: $work/c/afs}|client: {mount: $work/c/afs, security: crypt, direct: false}|" "$work/c/afscell.yaml"
cell_up "$work/c"
first=$work/c/afs/gk.test/alice

mkdir -p "$work/d/afs"
cat >"$work/d/afscell.yaml" <<Y
cell: gk.test
state: $work/d/state
database_servers: [127.0.0.1]
realm: {mode: external, krb5_conf: $KRB5_CONFIG}
roles:
  fileserver: {enabled: false}
  volserver: {enabled: false}
  vlserver: {enabled: false}
  ptserver: {enabled: false}
  client: {port: 7011}
client: {mount: $work/d/afs}
Y
both() { "$afscell" down --config "$work/d/afscell.yaml" >/dev/null 2>&1; leave; }
trap both EXIT
check "a second cache manager comes up, with its own port and cache" "$afscell" up --config "$work/d/afscell.yaml" || bail "no second client"
second=$work/d/afs/gk.test/alice

is() { [ "$(cat "$1")" = "$2" ] || { echo "$1 holds: $(cat "$1")"; return 1; }; }
login alice
check "aklog gives the first one a token of rxgk, and no other" sh -c "'$afscell' aklog -class rxgk && ! '$afscell' tokens | grep rxkad"
check "it writes where only alice may" sh -c "echo one >'$first/f'"
check "... as alice" sh -c "[ \"\$(stat -c %u '$first/f')\" = 1001 ]"
check "... by the security index of rxgk" sh -c "'$afscell' rxdebug 127.0.0.1 7000 -allconn | grep 'security index 6'"
check "the second one, anonymous, reads it" is "$second/f" one
ok=0; for i in $(seq 20); do echo "$i" >"$first/f"; [ "$(cat "$second/f")" = "$i" ] || ok=1; done
check "... and is told of twenty changes" [ $ok = 0 ]
"$afscell" aklog -class rxkad --config "$work/d/afscell.yaml" >/dev/null
ok=0; for i in $(seq 20); do echo "b$i" >"$second/f"; [ "$(cat "$first/f")" = "b$i" ] || ok=1; done
check "the first one is told of what the second changes" [ $ok = 0 ]
"$afscell" unlog
check "without the token it may not write" sh -c "! echo no >'$first/g'"
