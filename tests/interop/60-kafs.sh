#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Linux's own AFS client in a virtual machine, with a real token, against our cell.
client=${AFS_VM_CLIENT:-kafs}
. "$(dirname "$0")/lib.sh"
enter qemu-system-x86_64 cpio kinit
plan 10

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
did() { echo "$1" >>/mnt/share/did; } # a file: what the guest prints and what it traces arrive on two ways, mingled
ls -la $cell/ && did guest-listed
cmp /mnt/share/big $cell/open/from-us && did guest-read
cp /mnt/share/big $cell/open/from-guest && sync && did guest-wrote
mkdir $cell/open/dir && mv $cell/open/dir $cell/open/dir2 && ln -s target $cell/open/link && did guest-named
echo secret-of-alice >$cell/alice/private && did guest-token
rm -r $cell/open/dir2 && did guest-removed
case $AFS_CLIENT in
openafs) unlog && echo no >$cell/alice/stranger || did guest-stranger-refused;; # its tokens are in no keyring
*) keyctl session - sh -c "echo no >$cell/alice/stranger" || did guest-stranger-refused;;
esac
G
# pid 1 of these namespaces is ours, so afs-vm cannot see that the network is a private one
run_guest() {
	"$here/afs-vm" run --client "$client" --cell vm.test --server 10.79.0.1 --kdc 10.79.0.1:8088 --user alice --password secret \
		--allow-host-netns --bridge br0 --guest-ip 10.79.0.2/24 --share "$work/share" --timeout 280 --console "$work/guest" >"$work/guest.out" 2>&1
}
check "the $client client mounts with alice's token and its script ends well" run_guest || tail -n 60 "$work/guest.out" | note
has() { grep -qx "$1" "$work/share/did"; }
check "it lists the cell's root" has guest-listed
check "it reads 20 MB equal" has guest-read
check "what it wrote is equal here" cmp "$work/share/big" "$open/from-guest"
check "it writes 20 MB" has guest-wrote
check "it makes directories, renames, links" has guest-named
check "the token lets alice write where only she may" sh -c "[ \"\$(cat '$work/c/afs/vm.test/alice/private')\" = secret-of-alice ]"
check "without the token it is refused" has guest-stranger-refused
check "it removes a tree" has guest-removed
check "everything checks clean" "$afscell" check
