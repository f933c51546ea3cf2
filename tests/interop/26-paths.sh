#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Volumes through paths of every kind between our programs and stock OpenAFS's, both ways: Ethernet's size, 9000 bytes
# that are carried and 9000 that are only promised, loss with reordering and duplicates.  What arrives is what was sent.
. "$(dirname "$0")/lib.sh"
enter vos cc krb5kdc kdb5_util kadmin.local
plan 14

cc -O2 -o "$work/linkem" "$here/linkem.c" || bail "linkem.c does not compile"
mount -t tmpfs tmpfs /run && mkdir -p /run/netns
export OPENAFS_CELL_STATE=$work/stock OPENAFS_CELL_NS=ip26 OPENAFS_CELL_NET=10.77.26
stock=$here/openafs-cell
ip netns add away

# our cell here (10.9.0.1), tools in the namespace "away" (10.9.0.2), the emulated link between
ip link add br0 type bridge; ip addr add 10.9.0.1/32 dev br0; ip link set br0 up
cell_make ours.test "$work/c" 10.9.0.1
cell_up "$work/c"
stop_stock() { "$stock" down >/dev/null 2>&1; leave; }
trap stop_stock EXIT
head -c 2000000 /dev/urandom >"$work/c/afs/ours.test/open/f"
sync
"$afscell" vos dump -id open -file "$work/want" -localauth >/dev/null || bail "no dump"
want=$(sha256sum <"$work/want")

link() { # link OPTIONS...
	"$work/linkem" --mtu 1500 "$@" - em0 away em0=10.9.0.2/24 >"$work/ready" 2>"$work/counts" & em=$!
	until grep -q ready "$work/ready"; do kill -0 $em || bail "$(cat "$work/counts")"; sleep 0.05; done
	local mtu=1500; case "$*" in *9000*) mtu=9000;; esac
	ip link set em0 mtu $mtu up && ip route replace 10.9.0.2 dev em0 src 10.9.0.1
}
unlink_() { kill $em; wait $em; }
from_away() { nsenter --net=/run/netns/away "$@"; }
same() { [ "$(sha256sum <"$1")" = "$want" ] || { ls -l "$1"; cmp "$1" "$work/want"; return 1; }; }
stock_takes() { rm -f "$work/got"; from_away timeout 120 vos dump -id open -file "$work/got" -localauth >"$work/vos.out" 2>&1 && same "$work/got" || { cat "$work/vos.out"; return 1; }; }
ours_takes() { rm -f "$work/got"; from_away timeout 120 "$afscell" vos dump -id open -file "$work/got" -localauth --config "$work/c/afscell.yaml" >"$work/vos.out" 2>&1 && same "$work/got" || { cat "$work/vos.out"; return 1; }; }
in=0
stock_gives() { in=$((in + 1)); from_away timeout 120 vos restore 10.9.0.1 a "back$in" -file "$work/want" -localauth >"$work/vos.out" 2>&1 && "$afscell" vos dump -id "back$in" -file "$work/again" -localauth >/dev/null && [ "$(stat -c %s "$work/again")" -gt 2000000 ] || { cat "$work/vos.out"; return 1; }; }

stock_tools "$work/c"
how=("" "--mtu 9000" "--mtu 9000 --carry 1500" "--delay 3 --jitter 1 --loss 2 --reorder 3 --duplicate 2")
name=("1500 bytes" "9000 bytes" "9000 promised, 1500 carried" "2 % lost, overtaking and doubled")
for i in 0 1 2 3; do
	link ${how[$i]}
	check "stock vos takes a volume from us: ${name[$i]}" stock_takes
	# a stock sender trusts what both interfaces say, and this path is not asked
	[ $i = 2 ] || check "stock vos gives us one: ${name[$i]}" stock_gives
	check "our vos takes one from us: ${name[$i]}" ours_takes
	unlink_
done
check "every volume checks clean" "$afscell" check

# and our tools against a stock server
umount /etc/openafs
"$stock" up --cell stock.test --no-mount >"$work/up.out" 2>&1 || { note <"$work/up.out"; bail "no stock cell"; }
"$stock" exec --server vos restore 10.77.26.1 a there -file "$work/want" -localauth >"$work/up.out" 2>&1 || { note <"$work/up.out"; bail "no volume there"; }
"$stock" exec --server vos dump -id there -file "$work/want.there" -localauth >"$work/up.out" 2>&1 || bail "no dump there"
want=$(sha256sum <"$work/want.there")
ours_from_stock() {
	rm -f "$work/got"
	"$stock" exec timeout 120 env -u AFSCELL_CONFIG -u AFSCELL_SOCKET "$afscell" vos dump -id there -file "$work/got" -localauth && [ "$(sha256sum <"$work/got")" = "$want" ]
}
"$stock" link --delay 3 --loss 2 --mtu 9000
check "our vos takes a volume from a stock server: 9000 bytes, 2 % lost" ours_from_stock
"$stock" link --none
check "our vos takes a volume from a stock server: 1500 bytes" ours_from_stock
