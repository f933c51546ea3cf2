#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What people do in a home directory, as an ordinary user with a token, on a volume where only she may
# write: git, rsync, tar, databases, editors, make, and the corners of POSIX that programs lean on.
. "$(dirname "$0")/lib.sh"
enter kinit git rsync sqlite3 python3 make gcc vim
plan 49

cell_make home.test "$work/c" 127.0.0.1
cell_up "$work/c"
home=$work/c/afs/home.test/alice
chmod 755 "$work" "$work/c"
login alice
chmod 644 "$work/cc.alice"
mkdir -m 777 "$work/local"
export HOME=$home GIT_CONFIG_NOSYSTEM=1 KRB5CCNAME=FILE:$work/cc.alice
mine() { as_user 1001 "$@"; }
sh_mine() { (cd "$home" && mine bash -euc "set -o pipefail; $1" mine "${@:2}"); }
bob() { as_user 1002 "$@"; }
check "aklog as the user" mine "$afscell" aklog
checks() { check "$1" sh_mine "$2" "${@:3}"; }

# --- git
checks "git init, add, commit" '
	git config --global user.name Alice; git config --global user.email alice@home.test
	git init -q repo; cd repo
	for d in a b c d; do mkdir $d; for i in $(seq 60); do seq $((i * 7)) >$d/f$i; done; done
	git add .; git commit -qm first; test -z "$(git status --porcelain)"'
checks "git clone of file://" 'git clone -q file://$PWD/repo clone; cd clone; test -z "$(git status --porcelain)"; git fsck --full --strict'
checks "git clone with hard links in one directory" 'git clone -q --local repo/.git flat 2>&1 || git clone -q --no-hardlinks repo flat; cd flat; git fsck'
checks "git gc, then fsck" 'cd repo; for i in 1 2 3; do echo $i >>a/f1; git commit -qam c$i; done; git gc -q --aggressive --prune=now; git fsck --full'
checks "git branches, rebase, stash" 'cd clone; git checkout -qb side; echo x >a/new; git add a/new; git commit -qm side; git checkout -q -; echo y >b/f1
	git stash -q; git rebase -q side; git stash pop -q; git diff --quiet -- a; test "$(cat b/f1)" = y'

# --- copying trees
checks "rsync -a there and back, nothing left to do" 'rsync -a --exclude .git repo/ '"$work/local/r/"'; rsync -a '"$work/local/r/"' back/
	test -z "$(rsync -ain '"$work/local/r/"' back/)"; diff -r back '"$work/local/r"
checks "tar | tar keeps contents, modes and times" 'mkdir t; tar -C repo -cf - . | tar -C t -xpf -; diff -r repo t; test "$(stat -c %Y repo/a/f2)" = "$(stat -c %Y t/a/f2)"'
checks "cp -a" 'cp -a repo cpa; diff -r repo cpa'
checks "find, du and ls -R agree" 'test "$(find repo -type f | wc -l)" = "$(find cpa -type f | wc -l)"; du -s repo >/dev/null; ls -lR repo >/dev/null'
checks "df knows the volume" 'set -- $(stat -f -c "%b %a" .); test "$1" -gt 0; test "$2" -gt 0'
checks "rm -rf of all of it" 'rm -rf t cpa back flat; test ! -e t'

# --- databases and locks
checks "sqlite3 with a rollback journal" 'sqlite3 d.db "create table t(x); begin; insert into t values(1),(2),(3); commit; select count(*) from t" | grep -qx 3; sqlite3 d.db "pragma integrity_check" | grep -qx ok'
checks "sqlite3: two writers wait for each other" '
	w() { for i in $(seq 15); do sqlite3 -cmd ".timeout 20000" d.db "insert into t values($i)"; done; }
	w & a=$!; w & b=$!; wait $a; wait $b; test "$(sqlite3 d.db "select count(*) from t")" = 33'
checks "flock keeps out another process" 'exec 9>lock; flock 9; ! flock -n lock true 9>&-; exec 9>&-; flock -n lock true'
checks "python3: fcntl locks, shelve-like rewrites, os.replace" 'python3 - <<P
import fcntl, os
f = open("pl", "w"); fcntl.lockf(f, fcntl.LOCK_EX)
for i in range(50):
    with open("cfg.tmp", "w") as t: t.write("v%d" % i); t.flush(); os.fsync(t.fileno())
    os.replace("cfg.tmp", "cfg")
assert open("cfg").read() == "v49"
P'

# --- writing in odd ways
checks "a memory map writes" 'python3 - <<P
import mmap, os
f = os.open("mm", os.O_RDWR | os.O_CREAT, 0o644); os.ftruncate(f, 1 << 20)
m = mmap.mmap(f, 1 << 20); m[5000:5005] = b"hello"; m[-3:] = b"end"; m.flush(); m.close(); os.close(f)
b = open("mm", "rb").read(); assert len(b) == 1 << 20 and b[5000:5005] == b"hello" and b[-3:] == b"end"
P'
checks "O_APPEND by several processes loses nothing" 'rm -f ap; for p in 1 2 3 4; do (for i in $(seq 100); do echo "$p-$i" >>ap; done) & done; wait; test "$(sort -u ap | wc -l)" = 400'
checks "a sparse file of more than 4 GiB" 'truncate -s 5G big; printf tail | dd of=big bs=1 seek=$((5 * 1024 * 1024 * 1024 - 4)) conv=notrunc status=none
	test "$(stat -c %s big)" = 5368709120; test "$(tail -c 4 big)" = tail; dd if=big bs=1M skip=4500 count=1 status=none | cmp -n 1048576 - /dev/zero; rm big'
checks "a file that is open and removed can be read and written still" 'exec 8<>gone; echo kept >&8; rm gone; test ! -e gone; echo more >&8; grep -q more <(cat /proc/self/fd/8)'
checks "rename over an open file" 'echo old >ro; exec 7<ro; echo new >ro2; mv ro2 ro; test "$(cat <&7)" = old; test "$(cat ro)" = new'
checks "truncate to longer and shorter" 'seq 1000 >tr; truncate -s 10 tr; truncate -s 20 tr; test "$(stat -c %s tr)" = 20; test "$(tail -c 10 tr | tr -d "\0" | wc -c)" = 0'
checks "dd with O_DIRECT or a clear refusal" 'dd if=/dev/zero of=od bs=64k count=4 oflag=direct status=none || test "$(stat -c %s od)" = 0'
checks "fallocate: done, or a clear refusal that programs know" 'fallocate -l 1M fa 2>err || grep -q "not supported" err'
checks "a FIFO, a socket, a device: refused, nothing left" '! mkfifo ff 2>/dev/null || test -p ff; ! mknod dd c 1 3 2>/dev/null'

# --- names
checks "names: 255 bytes are the end" 'n=$(printf "%0255d" 0); : >$n || n=$(printf "%0250d" 0); ls | grep -q 0000000; rm -f 0*; ! : 2>/dev/null >$(printf "%0256d" 0)'
checks "names with spaces, newlines, quotes, UTF-8, backslashes" 'mkdir odd; cd odd; for n in "a b" "ü ñ 漢字" "a\\b" "q\"q" "$(printf "n\nl")" " lead" "trail " -dash .dot ..dots; do echo x >"./$n"; done
	test "$(find . -type f -print0 | tr -dc "\0" | wc -c)" = 10; rm -rf ../odd'
checks "a deep path" 'for i in $(seq 60); do mkdir deep; cd deep; done; echo bottom >f; cat f >/dev/null; cd "$HOME"; rm -rf deep'
checks "long symbolic links and dangling ones" 't=$(printf "x%.0s" $(seq 900)); ln -s $t sl; test "$(readlink sl)" = $t; ! cat sl 2>/dev/null; rm sl'
checks "hard links in one directory count; across directories EXDEV" 'echo h >h1; ln h1 h2; test "$(stat -c %h h1)" = 2; mkdir -p hd; ! ln h1 hd/h3 2>err; grep -q "cross-device" err; rm h1; test "$(cat h2)" = h'
checks "two thousand files in one directory, listed and removed" 'mkdir many; cd many; seq 2000 | xargs touch; test "$(ls | wc -l)" = 2000; ls -l >/dev/null; rm -rf ../many'

# --- attributes
checks "what is new belongs to its maker's group" 'umask 022; : >gr; mkdir grd; ln -s x grl; test "$(stat -c %u:%g gr grd grl | sort -u)" = 1001:1001'
checks "umask and chmod show in ls" 'umask 027; : >um; test "$(stat -c %a um)" = 640; chmod 751 um; test "$(stat -c %a um)" = 751; mkdir ud; test "$(stat -c %a ud)" = 750'
checks "a file without w for its owner is not written" ': >rof; chmod 444 rof; ! echo x 2>/dev/null >rof; rm -f rof'
checks "touch -d sets times that can be held" 'touch -d "2001-02-03 04:05:06 UTC" tm; test "$(stat -c %Y tm)" = 981173106'
for t in "1969-12-31 00:00:00 UTC" "2107-01-01 00:00:00 UTC"; do
	checks "touch -d \"$t\" is refused: AFS cannot hold it" ': >tx; ! touch -d "$1" tx 2>err; grep -q "Invalid argument" err' "$t"
done
checks "chown to another is refused, to oneself is not" '! chown 1002 um 2>/dev/null; chown 1001 um'
checks "access(2) agrees with what opens" 'test -w um; test -r um; test -x um'

# --- programs that run there
checks "scripts and binaries run from there" 'printf "#!/bin/sh\necho script\n" >s.sh; chmod +x s.sh; test "$(./s.sh)" = script; cp /bin/echo ./echo; test "$(./echo hi)" = hi'
checks "a running binary is not written over" 'cp /bin/sleep sl; ./sl 3 & p=$!; sleep 0.2; ! cp /bin/true sl 2>/dev/null; kill $p'
checks "make -j4" 'mkdir mk; cd mk; for i in $(seq 20); do echo "int f$i(void){return $i;}" >f$i.c; o="${o-} f$i.o"; done; printf "lib.a:%s\n\tar cr \$@ \$^\n" "$o" >Makefile; make -s -j4; ar t lib.a | wc -l | grep -qx 20; make -q'
checks "an editor as vim writes: swap file, backup by rename" 'vim -u NONE -es -c "set backup backupcopy=no" -c "normal ione" -c wq vi.txt; vim -u NONE -es -c "set backup" -c "normal otwo" -c wq vi.txt
	test "$(tr -d "\n" <vi.txt)" = onetwo -a -e vi.txt~; test ! -e .vi.txt.swp'
checks "an interrupt ends a big write at once, and what follows works" 's=$(date +%s); ! timeout -s INT 0.5 dd if=/dev/zero of=brk bs=1M count=20000 status=none; test $(($(date +%s) - s)) -lt 15; rm brk; echo ok >after; grep -q ok after'

# --- others
check "another user reads what the list says" bob cat "$home/after"
check "... and writes nothing" refused bob sh -c "echo x >$home/bob 2>/dev/null"
check "... nor does root without a token" refused sh -c "echo x >$home/root 2>/dev/null"
check "su to another uid has not the token" sh -c "'$afscell' tokens | grep -q 'home.test' && exit 1; exit 0"
check "after all of it the volumes check clean" "$afscell" check
exit $tap_bad
