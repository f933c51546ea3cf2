#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Acceptance checks to run inside afs-vm (see README.md): needs --share DIR with a
# file DIR/big, a world-writable root.cell and a volume "priv" only system:
# administrators can use.  After DIR/cb-ready appears, another client must write
# "after" to .../t-CLIENT/cb, create .../t-CLIENT/cb-new and then touch DIR/cb-done.
S=/mnt/share; A=/afs/$AFS_CELL; D=$A/t-$AFS_CLIENT; n=0; bad=0
ok() { n=$((n+1)); if eval "$2"; then echo "ok $n - $1"; else bad=$((bad+1)); echo "not ok $n - $1"; fi; }
up() { cut -d' ' -f1 /proc/uptime; }
el() { awk -v a=$1 -v b=$2 'BEGIN{printf "%.2f", b-a}'; }
ok "list the cell" "ls $A >/dev/null"
[ $AFS_CLIENT = openafs ] && fs rmmount $D/priv 2>/dev/null
rm -rf $D 2>/dev/null
ok mkdir "mkdir $D"
W=$(sha256sum < $S/big)
a=$(up); cp $S/big $D/big; s=$?; sync; b=$(up)
ok "write 20 MB" "[ $s = 0 ]"; echo "# write: $(el $a $b) s"
case $AFS_CLIENT in
openafs) fs flushvolume $D >/dev/null ;;
*) cd /; umount $A; echo 3 > /proc/sys/vm/drop_caches ;;
esac
a=$(up); cat $D/big > /dev/null; b=$(up); echo "# read: $(el $a $b) s"
ok "checksum after reading back" '[ "$(sha256sum < $D/big)" = "$W" ]'
echo one > $D/a; ok create '[ "$(cat $D/a)" = one ]'
mv $D/a $D/b; ok rename '[ ! -e $D/a ] && [ "$(cat $D/b)" = one ]'
mkdir $D/sub && mv $D/b $D/sub/c; s=$?
ok "rename to another directory" '[ -e $D/sub/c -a ! -e $D/b ] || { echo "# mv status $s"; false; }'
ln -s sub/c $D/link; ok symlink '[ "$(cat $D/link)" = one ]'
echo x > $D/h1; ln $D/h1 $D/h2; ok "hard link" '[ "$(stat -c %h $D/h1)" = 2 ]'
echo two >> $D/h1; ok append '[ "$(cat $D/h2)" = "x
two" ]'
truncate -s 3 $D/h1; ok truncate '[ $(stat -c %s $D/h1) = 3 ]'
rm $D/h1 $D/h2 $D/link $D/sub/c && rmdir $D/sub; ok unlink '[ "$(ls $D)" = big ]'
i=0; a=$(up); while [ $i -lt 50 ]; do echo $i > $D/f$i; i=$((i+1)); done; b=$(up)
ok "50 small files" '[ $(ls $D | wc -l) = 51 ]'; echo "# 50 creates: $(el $a $b) s"
case $AFS_CLIENT in
openafs)
    fs listacl $D | sed 's/^/# /'
    fs setacl $D system:authuser rl; ok "set an ACL" 'fs listacl $D | grep -q "system:authuser rl"'
    fs mkmount $D/priv priv; fs checkvolumes >/dev/null; P=$D/priv ;;
*)
    getfattr --only-values -n afs.acl $D | sed 's/^/# /'
    # the terminating NUL matters: fileservers since OPENAFS-SA-2024-002 refuse an ACL without it
    { printf '3\n0\nsystem:administrators\t127\nsystem:anyuser\t127\nsystem:authuser\t9\n\0'; } > /tmp/acl
    setfattr -n afs.acl -v 0s$(base64 -w0 /tmp/acl) $D
    ok "set an ACL" 'getfattr --only-values -n afs.acl $D | grep -q "system:authuser.*9"'
    getfattr -d -m '^afs' $D 2>&1 | sed 's/^/# /'; getfattr --only-values -n afs.cell $D | sed 's/^/# cell /'; echo
    mkdir -p /mnt/priv; mount -t afs "%$AFS_CELL:priv." /mnt/priv; P=/mnt/priv ;;
esac
ok "authenticated write to a private volume" 'echo secret > $P/s-$AFS_CLIENT && [ "$(cat $P/s-$AFS_CLIENT)" = secret ]'
case $AFS_CLIENT in
openafs) tokens | sed 's/^/# /' ;;
*) grep 10.88.0.1 /proc/net/rxrpc/conns 2>/dev/null | sed 's/^/# /' | cut -c1-200 ;;
esac
# callback break
echo before > $D/cb; cat $D/cb; ls -l $D > /dev/null
a=$(up); touch $S/cb-ready; while [ ! -e $S/cb-done ]; do usleep 20000; done; c=$(up)
i=0; while [ "$(cat $D/cb)" != after ] && [ $i -lt 300 ]; do usleep 20000; i=$((i+1)); done; b=$(up)
ok "callback break: data changed elsewhere is seen" '[ "$(cat $D/cb)" = after ]'; echo "# seen $(el $c $b) s after the other client was done"
ok "callback break: new name seen" '[ -e $D/cb-new ]'
case $AFS_CLIENT in
openafs) cmdebug 127.0.0.1 -long 2>/dev/null | tail -3 | sed 's/^/# /'; unlog
    ok "no token, no access" '! cat $P/s-$AFS_CLIENT 2>/dev/null' ;;
*) ok "no token, no access" '! keyctl session - cat $P/s-$AFS_CLIENT 2>/dev/null' ;;
esac
[ $AFS_CLIENT = openafs ] && aklog -c $AFS_CELL && fs rmmount $D/priv
rm -rf $D 2>/dev/null
[ $bad = 0 ] && echo "PASS $n" || echo "FAIL $bad of $n"
exit $bad
