#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Several cells in one mount: two of ours with the same volume numbers, one found in a CellServDB, one named while it runs.
. "$(dirname "$0")/lib.sh"
enter kinit
plan 11

cell_make far.test "$work/f" 127.0.0.2 'roles: {client: {enabled: false}}'
sed -i '/^client:/d' "$work/f/afscell.yaml"
cell_make near.test "$work/c" 127.0.0.1
printf '>far.test   #another\n127.0.0.2   #far\n>broken\nno address\n' >"$work/CellServDB"
sed -i "s|^client: {|client: {cell_serv_db: $work/CellServDB, |" "$work/c/afscell.yaml"
both() { "$afscell" down --config "$work/f/afscell.yaml" >/dev/null 2>&1; leave; }
trap both EXIT
cell_up "$work/f"
krb_far=$KRB5_CONFIG
cell_up "$work/c"
afs=$work/c/afs
is() { [ "$(cat "$1")" = "$2" ]; }
check "both cells are under the mount" sh -c "ls -A '$afs' | tr '\n' ' ' | grep -q '^.far.test .near.test far.test near.test '"
check "the far cell can be listed" sh -c "ls '$afs/far.test' | grep -qx open"
echo near >"$afs/near.test/open/f"
echo far >"$afs/far.test/open/f"
check "files of one volume number and vnode are two" is "$afs/near.test/open/f" near
check "... and each keeps its own" is "$afs/far.test/open/f" far
check "inode numbers differ" [ "$(stat -c %i "$afs/near.test/open/f")" != "$(stat -c %i "$afs/far.test/open/f")" ]
check "a file is not renamed across cells, but copied" sh -c "mv '$afs/near.test/open/f' '$afs/far.test/open/g' && [ \$(cat '$afs/far.test/open/g') = near ]"
check "a mount point of the near cell leads into the far one" sh -c "'$afscell' fs mkmount '$afs/near.test/open/m' open -cell far.test && [ \$(cat '$afs/near.test/open/m/f') = far ]"
check "a mount point that leads nowhere is removed" sh -c "'$afscell' fs mkmount '$afs/near.test/open/n' no.such -cell far.test; ls '$afs/near.test/open/n' 2>/dev/null; '$afscell' fs rmmount '$afs/near.test/open/n' && ! ls -d '$afs/near.test/open/n' 2>/dev/null"
check "fs says which cell" sh -c "'$afscell' fs whichcell '$afs/far.test/open' | grep -q \"'far.test'\""
check "@cell is the local one" is "$afs/@cell/open/m/g" near
check "a mistyped cell is not there" refused test -e "$afs/fra.test"
exit $tap_bad
