#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Clones, releases and moves of our volumes, with stock vos and with our own.
. "$(dirname "$0")/lib.sh"
enter vos krb5kdc kdb5_util kadmin.local
plan 38

S=10.79.1.1
ip link add br0 type bridge; ip addr add $S/24 dev br0; ip link set br0 up
mkdir -p "$work/c"
cell_make ours.test "$work/c" $S "partitions: {a: $work/c/vicepa, b: $work/c/vicepb}"
cell_up "$work/c"
stock_tools "$work/c"
login admin
"$afscell" aklog >/dev/null 2>&1
v() { vos "$@" -localauth -noresolve; }
o() { "$afscell" vos "$@" -localauth -noresolve; }
top_dir=$work/c/afs/ours.test/open
says() { local pattern=$1; shift; "$@" >"$work/says" 2>&1; grep -E -- "$pattern" "$work/says" >/dev/null || { cat "$work/says"; return 1; }; }
id_of() { v examine "$1" | awk 'NR == 1 { print $2 }'; }
# a mount shows a clone as it is after its promises were broken
shows() { for _ in $(seq 100); do diff <(tree_of "$1") "$2" >/dev/null && return; sleep 0.1; done; diff <(tree_of "$1") "$2"; }

mkdir -p "$top_dir/t/sub"
head -c 9000000 /dev/urandom >"$top_dir/t/big"
for i in $(seq 60); do echo "$i" >"$top_dir/t/sub/f$i"; done
ln -s big "$top_dir/t/link"
"$afscell" fs setacl "$top_dir/t/sub" bob rl >/dev/null
sync
tree_of "$top_dir/t" >"$work/t1"

check "stock vos makes a backup" v backup open
check "... which fs mounts" "$afscell" fs mkmount "$top_dir/bk" open.backup
check "... and which shows what was there" shows "$top_dir/bk/t" "$work/t1"
echo changed >"$top_dir/t/sub/f1"
printf patched | dd of="$top_dir/t/big" bs=1 seek=5000 conv=notrunc 2>/dev/null
rm "$top_dir/t/sub/f2"
sync
tree_of "$top_dir/t" >"$work/t2"
check "changes do not show in it" shows "$top_dir/bk/t" "$work/t1"
check "it cannot be written" refused sh -c "echo x >'$top_dir/bk/t/x'"
check "our vos makes it again" o backup open
check "... and it shows the changes" shows "$top_dir/bk/t" "$work/t2"
check "the volume checks clean" "$afscell" check open
check "stock vos backupsys does it" v backupsys -prefix open
check "stock vos examines it" says 'open.backup +[0-9]+ BK' v examine open.backup

check "stock vos adds a site beside it" v addsite $S a open
check "... and releases" says 'Released volume open successfully' v release open
check "... the read-only volume is on line" says 'open.readonly +[0-9]+ RO .*On-line' v examine open.readonly
"$afscell" fs mkmount "$top_dir/ro" open.readonly >/dev/null
check "... and shows the tree" shows "$top_dir/ro/t" "$work/t2"
echo more >"$top_dir/t/more"; sync
tree_of "$top_dir/t" >"$work/t3"
check "it stays as it is" shows "$top_dir/ro/t" "$work/t2"
check "our vos releases again" says 'successfully' o release open
check "... and it shows the new tree" shows "$top_dir/ro/t" "$work/t3"
check "the right of bob came along" says 'bob rl' "$afscell" fs listacl "$top_dir/ro/t/sub"
check "stock vos takes the site away" v remove -server $S -partition a -id open.readonly
check "... and adds one on the other partition" v addsite $S b open
check "... which our vos releases to" says 'successfully' o release open
check "... with the same tree" shows "$top_dir/ro/t" "$work/t3"
echo again >"$top_dir/t/again"; sync
tree_of "$top_dir/t" >"$work/t4"
check "... and again, what changed" says 'successfully' o release open
check "... with the same tree" shows "$top_dir/ro/t" "$work/t4"
check "our vos takes that away" o remove $S b open.readonly

check "stock vos clones by name" v clone -id open -toname kept
check "stock vos dumps from a clone" v dump -id open -clone -file "$work/d"
check "stock vos copies to the other partition" v copy open $S a copied $S b
check "... with the same tree" sh -c "'$afscell' fs mkmount '$top_dir/cp' copied"
check "... really" shows "$top_dir/cp/t" "$work/t4"
check "stock vos moves the volume to the other partition" v move open $S a $S b
check "... and the tree is the same" shows "$top_dir/t" "$work/t4"
check "... with the right of bob" says 'bob rl' "$afscell" fs listacl "$top_dir/t/sub"
check "our vos moves it back" o move open $S b $S a
check "... and the tree is the same" shows "$top_dir/t" "$work/t4"
check "the volume that moved checks clean" "$afscell" check open
check "no transaction is left" says 'No active transactions' v status $S
check "no half-made volume is left" sh -c "! vos listvol $S -localauth -noresolve | grep -E 'temp|attach|Off-line'"
