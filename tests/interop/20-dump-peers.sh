#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A volume of ours, dumped and restored with stock vos, into a stock OpenAFS cell and back.
. "$(dirname "$0")/lib.sh"
enter vos afsd.fuse krb5kdc kdb5_util kadmin.local
plan 13

ip link add br0 type bridge; ip addr add 10.79.0.1/24 dev br0; ip link set br0 up
cell_make ours.test "$work/c" 10.79.0.1
cell_up "$work/c"
stock_tools "$work/c"
here_vos() { vos "$@" -localauth -noresolve; }
tree=$work/c/afs/ours.test/open

# a tree with every kind of thing in it
mkdir -p "$tree/dir/deep/er"
head -c 3000000 /dev/urandom >"$tree/dir/big"
: >"$tree/dir/empty"
echo small >"$tree/dir/deep/small"
ln "$tree/dir/deep/small" "$tree/dir/deep/hard"
ln -s ../big "$tree/dir/deep/soft"
chmod 600 "$tree/dir/deep/small"; chmod 755 "$tree/dir/big"
long=$(printf 'n%.0s' $(seq 255))
echo long >"$tree/dir/$long"
for i in $(seq 300); do echo "$i" >"$tree/dir/deep/er/f$i"; done
touch -d '2001-02-03 04:05:06' "$tree/dir/empty"
sync

check "stock vos dumps our volume" here_vos dump -id open -file "$work/open.dump"
check "the dump's size is what vos size says" sh -c "[ \$(vos size -id open -dump -localauth | grep -oE '[0-9]+\$' | tail -n 1) = \$(stat -c %s '$work/open.dump') ]"

export OPENAFS_CELL_STATE=$work/stock OPENAFS_CELL_NS=ip20 OPENAFS_CELL_NET=10.77.20
stock=$here/openafs-cell
mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns; }
umount /etc/openafs
check "a stock cell comes up" "$stock" up --cell stock.test || bail "no stock cell"
stop_stock() { "$stock" down >/dev/null 2>&1; leave; }
trap stop_stock EXIT
eval "$("$stock" env)"
there() { "$stock" exec --server "$@"; }

check "stock vos restores it into the stock cell" there vos restore -server 10.77.20.1 -partition a -name moved -file "$work/open.dump" -localauth -noresolve
away="$AFS_MOUNT/.:mount/stock.test:moved"
look() { "$stock" exec bash -c ". '$here/lib.sh'; tree_of '$away'"; }
tree_of "$tree" >"$work/tree.ours"
look >"$work/tree.stock"
check "the trees are equal" diff "$work/tree.ours" "$work/tree.stock"
check "the file's time travelled" sh -c "'$stock' exec stat -c %Y '$away/dir/empty' | grep -x \$(date -d '2001-02-03 04:05:06' +%s)"
check "stock vos dumps it there" there vos dump -id moved -file "$work/back.dump" -localauth -noresolve

export KRB5_CONFIG= KRB5CCNAME=
eval "$("$afscell" env)"
stock_tools "$work/c"
check "stock vos restores that into our cell" here_vos restore -server 10.79.0.1 -partition a -name back -file "$work/back.dump"
check "our fs mounts it" "$afscell" fs mkmount "$work/c/afs/ours.test/open/back" back
check "the tree that came back is equal" diff <(cd "$work/c/afs/ours.test/open/back" && tree_of .) "$work/tree.ours"
check "it checks clean" "$afscell" check back
head -c 100000 "$work/open.dump" >"$work/cut.dump"
check "a cut dump is refused" refused here_vos restore -server 10.79.0.1 -partition a -name cut -file "$work/cut.dump"
check "and leaves the other volumes as they were" diff <(tree_of "$tree/dir") <(cd "$work/c/afs/ours.test/open/back/dir" && tree_of .)
