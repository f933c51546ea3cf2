#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Linux's own AFS client with rxgk, level crypt: our aklog runs in the guest, negotiates a token and gives it to the
# kernel, and nothing but that token is in the keyring then.
client=kafs-rxgk
. "$(dirname "$0")/lib.sh"
enter qemu-system-x86_64 cpio kinit
plan 12

"$here/afs-vm" prepare --client "$client" >/dev/null 2>"$work/prepare" || { tail -n 5 "$work/prepare" | note; bail "the virtual machine cannot be prepared"; }
ip link add br0 type bridge; ip addr add 10.79.0.1/24 dev br0; ip link set br0 up
cell_make vm.test "$work/c" 10.79.0.1
cell_up "$work/c"
open=$work/c/afs/vm.test/open
mkdir -p "$work/share"
head -c 20000000 /dev/urandom >"$work/share/big"
cp "$work/share/big" "$open/from-us"
cat >"$work/guest" <<'G'
set -x
cell=/afs/$AFS_CELL
did() { echo "$1" >>/mnt/share/did; }
mkdir -p /tmp/conf
echo $AFS_CELL >/tmp/conf/ThisCell
printf '>%s\n10.79.0.1 #db\n' $AFS_CELL >/tmp/conf/CellServDB
cat >/tmp/work <<'W'
set -x
did() { echo "$1" >>/mnt/share/did; }
cell=/afs/$AFS_CELL
AFSCONF=/tmp/conf afscell aklog -class rxgk -keyring && did guest-key
keyctl show
cat /proc/keys
grep -q 'rxrpc.*ygk' /proc/keys && did guest-class
ls -la $cell/ && did guest-listed
cmp /mnt/share/big $cell/open/from-us && did guest-read
cp /mnt/share/big $cell/open/from-guest && sync && did guest-wrote
mkdir $cell/open/dir && mv $cell/open/dir $cell/open/dir2 && rm -r $cell/open/dir2 && did guest-named
echo secret-of-alice >$cell/alice/private && did guest-token
key=$(sed -n 's/^0*\([0-9a-f]*\) .* rxrpc .*ygk.*/\1/p' /proc/keys)
grep 10.79.0.1 /proc/net/rxrpc/conns
[ -n "$key" ] && grep -q "10.79.0.1:7000 .* Client *0*$key " /proc/net/rxrpc/conns && did guest-secured
W
keyctl session - sh /tmp/work
keyctl session - sh -c "echo no >$cell/alice/stranger" || did guest-stranger-refused
cat /proc/net/rxrpc/conns
G
run_guest() {
	"$here/afs-vm" run --client "$client" --cell vm.test --server 10.79.0.1 --kdc 10.79.0.1:8088 --user alice --password secret \
		--tool "$afscell" --allow-host-netns --bridge br0 --guest-ip 10.79.0.2/24 --share "$work/share" --timeout 280 --console "$work/guest" >"$work/guest.out" 2>&1
}
check "the guest's script ends well" run_guest || tail -n 80 "$work/guest.out" | note
[ -z "${GUEST_OUT-}" ] || cp "$work/guest.out" "$GUEST_OUT"
has() { grep -qx "$1" "$work/share/did"; }
check "aklog in the guest negotiates a token and puts it into the kernel" has guest-key
check "the kernel takes it for one of rxgk" has guest-class
check "calls to the file server go by that key" has guest-secured
check "it lists the cell's root" has guest-listed
check "it reads 20 MB equal" has guest-read
check "it writes 20 MB" has guest-wrote
check "what it wrote is equal here" cmp "$work/share/big" "$open/from-guest"
check "it makes, renames and removes directories" has guest-named
check "the token lets alice write where only she may" sh -c "[ \"\$(cat '$work/c/afs/vm.test/alice/private')\" = secret-of-alice ]"
check "without the token it is refused" has guest-stranger-refused
check "everything checks clean" "$afscell" check
