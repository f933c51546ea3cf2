#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Who may do what: fs_matrix makes every call as every kind of caller with every set of rights, against a stock OpenAFS
# file server and against ours; what comes back and what it did must be the same, but for what doc/protocol-notes.md says.
here=$(readlink -f "$(dirname "$0")")
top=${top_srcdir:-$(readlink -f "$here/../..")}
build=${top_builddir:-$top/build}
afscell=${AFSCELL_BIN:-$build/afscell}
matrix=$build/tests/interop/fs_matrix
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
[ -c /dev/fuse ] || { echo "1..0 # SKIP needs /dev/fuse"; exit 0; }
[ -x "$matrix" ] || make -s -C "$build" tests/interop/fs_matrix >/dev/null 2>&1 || { echo "1..0 # SKIP fs_matrix is not built (make check builds it)"; exit 0; }
for p in vos pts krb5kdc /usr/lib/openafs/dafileserver afsd.fuse tc; do
	type -P "$p" >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }
done
work=$(mktemp -d /var/tmp/afscell-interop.XXXXXX)
export OPENAFS_CELL_NS=afscell34 OPENAFS_CELL_NET=10.71.34 OPENAFS_CELL_STATE=$work/stock
stock() { "$here/openafs-cell" "$@"; }
in_client() { nsenter --net=/run/netns/afscell34-cli -- "$@"; }
leave() {
	local status=$?
	in_client "$afscell" down --config "$work/ours/afscell.yaml" >/dev/null 2>&1
	stock down >/dev/null 2>&1
	rm -rf "$work"
	exit $status
}
trap leave EXIT
n=0
result() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; head -n 40 "$work/out" | sed 's/^/# /'; fi; }

stock up --cell stock34.test --no-mount >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; echo "1..0 # SKIP no stock cell"; exit 0; }
. "$work/stock/cell.conf"
echo 1..4

# the same people in both: ids, and a group that holds this machine's address
{ stock exec --server pts createuser 10.71.34.11 -localauth &&
	stock exec --server pts creategroup here -owner system:administrators -localauth &&
	stock exec --server pts adduser 10.71.34.11 here -localauth; } >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; exit 1; }
volume=$(stock exec --server vos examine user.bench -localauth -noresolve | sed -n 's/.*RWrite *\([0-9]*\).*/\1/p' | head -n 1)
stock exec "$matrix" -s 10.71.34.1 -V "$volume" -c stock34.test -u "user1:$password" -a "admin:$password" -g here -d "$work" >"$work/stock.txt" 2>"$work/out"
result $? "the calls were made of a stock server"

mkdir -p "$work/ours"
echo "$password" >"$work/ours/password"
cat >"$work/ours/afscell.yaml" <<Y
cell: ours34.test
state: $work/ours/state
listen: [10.71.34.11]
administrators: [admin]
roles: {client: {enabled: false}}
users:
  admin: {id: 1, password_file: $work/ours/password}
  user1: {id: 1001, password_file: $work/ours/password}
volumes:
  bench: {mount: bench, quota: 0, acl: {system:administrators: all}}
Y
export AFSCELL_CONFIG=$work/ours/afscell.yaml
in_client "$afscell" up --config "$AFSCELL_CONFIG" >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; exit 1; }
eval "$(in_client "$afscell" env --config "$AFSCELL_CONFIG")"
{ in_client "$afscell" pts createuser 10.71.34.11 -localauth && in_client "$afscell" pts creategroup here -owner system:administrators -localauth &&
	in_client "$afscell" pts adduser 10.71.34.11 here -localauth; } >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; exit 1; }
volume=$(in_client "$afscell" vos examine bench -noauth 2>/dev/null | sed -n 's/.*RWrite: *\([0-9]*\).*/\1/p' | head -n 1)
in_client "$matrix" -s 10.71.34.11 -V "$volume" -c ours34.test -u "user1:$password" -a "admin:$password" -g here -d "$work" >"$work/ours.txt" 2>"$work/out"
result $? "the calls were made of ours"

[ "$(wc -l <"$work/ours.txt")" -gt 4000 ]
result $? "there are thousands of them"
# the one difference that is meant: a directory moved below itself is UAELOOP, not what stock's fixed 90 becomes
sed -i 's/ move down: 49733464 / move down: 49733415 /' "$work/stock.txt"
diff "$work/stock.txt" "$work/ours.txt" >"$work/out"
result $? "codes and effects are the same"
[ -z "${KEEP-}" ] || cp "$work/stock.txt" "$work/ours.txt" "$KEEP/"
