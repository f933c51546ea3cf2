#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Faults that AFS implementations had, tried on a running cell through the mount and by raw calls.
# doc/cases.md says which test holds each case; here are those that need the whole.
. "$(dirname "$0")/lib.sh"
enter kinit python3 pts vos
plan 43

ip=10.98.0.1 # stock vos does not take a loopback address for a server
ip addr add $ip/32 dev lo
cell_make bugs.test "$work/c" "127.0.0.1, $ip"
cell_up "$work/c"
stock_tools "$work/c"
mnt=$work/c/afs/bugs.test
cd "$mnt/open" || bail "no mount"
raw() { python3 "$here/raw.py" call 7000 1 "$@"; }
code() { local want=$1; shift; [ "$(raw "$@")" = "code $want" ] || { raw "$@"; return 1; }; }
fid() { # the 24 hex digits of a path's fid
	python3 - "$1" <<'P'
import os, sys
v, n, u = (int(x, 16) for x in os.getxattr(sys.argv[1], 'afs.fid').decode().rstrip('\0').split(':'))
print('%08x%08x%08x' % (v, n, u))
P
}
w() { printf '%08x' $(($1 & 0xffffffff)); }
q() { printf '%016x' $(($1)); }
holds() { [ "$(cat "$1")" = "$2" ]; }

# names of 254, 255 and 256 bytes
n254=$(printf 'a%.0s' $(seq 254)) n255=${n254}b n256=${n255}c
mkdir names
long() { for n in $n254 $n255; do echo x >names/$n && ln names/$n "names/${n%?}L" && mv names/$n "names/${n%?}M" && ln -s $n "names/${n%?}S" && mkdir "names/${n%?}D" || return 1; done; }
check "names of 254 and 255 bytes are made, linked, moved, for files, links and directories" long
too_long() { for c in "touch names/$n256" "mkdir names/$n256" "ln -s x names/$n256" "mv names/${n254%?}M names/$n256" "ln names/${n254%?}M names/$n256" "stat names/$n256"; do $c 2>&1 | grep -q 'name too long' || { echo "$c"; return 1; }; done; }
check "a name of 256 is ENAMETOOLONG to every call" too_long
d=$(fid names)
long256=$(w 256)$(printf '61%.0s' $(seq 256))
status6=$(printf '0%.0s' $(seq 48))
check "and to a raw CreateFile" code 36 137 "$d$long256$status6"
check "a name with a slash is refused by raw calls" code 22 137 "$d$(w 3)612f6200$status6"
check "so is an empty one" code 22 137 "$d$(w 0)$status6"
check "and \"..\"" code 22 141 "$d$(w 2)2e2e0000$status6"
check "and \".\", for removal" code 22 142 "$d$(w 1)2e000000"

# what a removed name leaves
mkdir secret; touch secret/secret-plan-of-the-king.txt secret/k; rm secret/secret-plan-of-the-king.txt
left() { raw 65537 "$(fid secret)$(q 0)$(q 65536)" | grep -q "$(printf secret-plan | od -An -tx1 | tr -d ' \n')"; }
check "a removed name is not in the directory object" refused left
check "(which is readable so)" sh -c "python3 '$here/raw.py' call 7000 1 65537 $(fid secret)$(q 0)$(q 65536) | grep -q 6b00"

# positions about 2 and 4 GiB, and impossible ones
python3 - <<'P'
with open('sparse', 'wb') as f:
    for at in (2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1):
        f.seek(at); f.write(b'%c' % (65 + at % 7))
P
markers() { python3 - "$1" <<'P'
import sys
with open(sys.argv[1], 'rb') as f:
    for at in (2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1):
        f.seek(at); assert f.read(1) == b'%c' % (65 + at % 7), at
        f.seek(at - 4096); assert f.read(4)[:1] == b'\0'
P
}
check "markers about 2 and 4 GiB are where they were put" markers sparse
f=$(fid sparse)
at64() { local at; for at in 2147483647 2147483648 2147483649 4294967295 4294967296 4294967297; do raw 65537 "$f$(q $at)$(q 1)" | grep -q "^00000000000000010*$(printf %02x $((65 + at % 7)))" || return 1; done; }
check "raw FetchData64 finds them" at64
echo marker >small; s=$(fid small)
check "FetchData at -1 is EFBIG" code 27 130 "$s$(w -1)$(w 1)"
check "FetchData of length -1 is EFBIG" code 27 130 "$s$(w 1)$(w -1)"
check "FetchData64 at the largest position is EFBIG or empty" sh -c "python3 '$here/raw.py' call 7000 1 65537 $s$(q 0x7fffffffffffffff)$(q 1) | grep -qE '^code 27|^0000000000000000'"
check "StoreData past 2 GiB is EFBIG" code 27 133 "$s$status6$(w 2147483647)$(w 2)$(w 2147483647)"
check "and nothing of it happened" holds small marker

rm sparse # not into the dump below: there it would have its whole length

# removed while open
python3 - <<'P' && open=0 || open=1
import os
os.mkdir('gone'); f = open('gone/f', 'w+b'); f.write(b'one'); f.flush(); os.unlink('gone/f')
f.write(b'two'); f.flush(); f.seek(0); assert f.read() == b'onetwo'; assert os.fstat(f.fileno()).st_nlink == 0
f.close()
for _ in range(50):  # the kernel tells of a close when it has the time
    if not os.listdir('gone'): break
    __import__('time').sleep(.1)
os.rmdir('gone')
P
check "a file removed while open is written and read, and gone with its last close" [ $open = 0 ]

# hard links, rename over
mkdir p r; echo one >p/a; ln p/a p/b
says() { local what=$1; shift; "$@" 2>&1 | grep -q "$what"; }
check "a hard link counts" [ "$(stat -c %h p/a)" = 2 ]
check "into another directory it is EXDEV" says 'Invalid cross-device' ln p/a r/a
check "into another volume too" says 'Invalid cross-device' ln p/a ../alice/a
check "moving a file of two links to another directory is EXDEV by rename" python3 -c "
import errno, os
try: os.rename('p/a', 'r/a')
except OSError as e: assert e.errno == errno.EXDEV, e
else: assert 0"
check "renaming one link over the other changes nothing" sh -c "python3 -c 'import os; os.rename(\"p/a\", \"p/b\")' && [ -e p/a ] && [ -e p/b ]"
rm p/a
check "removing one name keeps the data" holds p/b one
mkdir q1 q1/sub q2; echo x >q1/x; echo y >q2/y; echo full >q1/sub/f
moves() { python3 - <<'P'
import errno, os
def fails(e, *a):
    try: os.rename(*a)
    except OSError as x: assert x.errno == e, (a, x)
    else: raise AssertionError(a)
os.rename('q1/x', 'q2/y'); assert open('q2/y').read() == 'x\n'
fails(errno.EINVAL, 'q1', 'q1/sub/in')
fails(errno.ENOTEMPTY, 'q2', 'q1/sub')
fails(errno.EISDIR, 'q2/y', 'q1/sub')
fails(errno.ENOTDIR, 'q1/sub', 'q2/y')
os.rename('q1/sub', 'q2/sub'); up = os.stat('q2/sub/..'); assert up.st_ino == os.stat('q2').st_ino
P
}
check "renames across directories do and refuse what POSIX says" moves

# mount points
links() { ln -s '#root.cell' m1; ln -s '%:x.' m2; ln -s '#cell:.' m3; ln -s '#a' m4; ln -s "#$n254." m5
	for m in m1 m2 m3 m4 m5; do timeout 10 stat $m >/dev/null && timeout 10 rm $m || return 1; done; timeout 10 ls -la >/dev/null; }
check "texts that are nearly mount points stop nobody and can be removed" links
check "a mount point of nothing" "$afscell" fs mkmount dangling no.such.volume
check "fails when it is walked" refused timeout 20 ls dangling/
check "and can be removed" "$afscell" fs rmmount dangling
"$afscell" fs mkmount self open; "$afscell" fs mkmount self2 open
check "a volume mounted in itself, twice, does not hang" timeout 20 sh -c 'ls self/self2/self/self/self2 && ls -R --ignore=self\* . >/dev/null'
check "and its mount points go" sh -c "'$afscell' fs rmmount self && '$afscell' fs rmmount self2"
deep=""; for _ in $(seq 60); do deep=$deep/again; done
"$afscell" fs mkmount again open
check "sixty volumes deep is no limit" timeout 30 sh -c "echo deep >'.$deep/deep.txt' && cat deep.txt"
"$afscell" fs rmmount again

# set-id bits
cp /bin/true suid; chmod 0755 suid
check "the mount takes no set-id bits and no devices" grep -q "$work/c/afs fuse[^ ]* [^ ]*nosuid,nodev" /proc/mounts
chmod 6755 suid 2>/dev/null
check "an anonymous caller sets none" [ "$(stat -c %a suid)" = 755 ]

# restoring what is no dump (stock vos deletes the old volume itself before it sends a byte)
vos dump open -file "$work/dump" -localauth >/dev/null 2>&1
check "a dump carries the longest names" grep -aq "$n255" "$work/dump"
check "and restores into another volume" vos restore $ip a copy -file "$work/dump" -localauth
"$afscell" fs mkmount copy copy
check "with equal content" sh -c "ls names >'$work/l1' && ls copy/names >'$work/l2' && cmp '$work/l1' '$work/l2' && cmp small copy/small"
cuts() {
	local size at; size=$(stat -c %s "$work/dump")
	: >"$work/bad0"; echo "no dump at all, but a text" >"$work/bad1"
	for at in 1 20 100 1024 2048 4096 16384 $((size / 2)) $((size - 5)) $((size - 1)); do head -c $at "$work/dump" >"$work/bad.$at"; done
	(head -c 200 "$work/dump"; head -c 2000 /dev/urandom; tail -c +2200 "$work/dump") >"$work/bad2"
	for at in "$work"/bad*; do
		"$afscell" vos restore $ip a copy -file "$at" -overwrite full -localauth >"$work/cut.out" 2>&1 </dev/null && { echo "$at was taken"; return 1; }
		cmp small copy/small || { cat "$work/cut.out"; echo "$at destroyed"; return 1; }
	done
	vos listvol $ip a -localauth | grep -q 'offLine 0 ; Total busy 0' && ! vos listvldb -locked -localauth | grep -q LOCKED
}
check "a bad dump over a volume leaves it online, unlocked and as it was" cuts

# ids at the edges, and what a name may do to a log
ids() { for i in 0 32766 -101 -102 -204 99999999999999999999 2147483648; do "$afscell" pts createuser edge -id $i -localauth && return 1; done; pts setmax -user 2147483647 -localauth && ! pts createuser edge -localauth; pts setmax -user 2000 -localauth; pts createuser "$(printf 'u%.0s' $(seq 63))" -localauth && ! pts createuser "$(printf 'u%.0s' $(seq 64))" -localauth; }
check "ids and names at the edges" ids
logs() { mkdir $'bad\n{"event":"forged"}'; ln -s x $'l\nforged line'; raw 164 "$(fid names)$(w 12)310a300a78093766726f6d21" >/dev/null; ! grep -rhE '^(\{"event":"forged"|forged line)' "$work/c/state/log"; }
check "a newline in a name begins no line in a log" logs

# files of the cell, tokens, identities
modes() { # others see into run/ alone; the rest is not readable, and what stands open is behind a closed folder
	! as_user 1234 find "$work/c/state" -path "$work/c/state/run" -prune -o \( -readable -o -writable \) -print 2>/dev/null | grep . &&
	! find "$work/c/state/keys" "$work/c/state"/cell.db* "$work/c/state/realm/principal" "$work/c/state/realm/stash" "$work/c/state/log" -perm /077 | grep . &&
	[ "$(stat -c %a "$work/c/state")" = 711 ]
}
check "state, keys, databases and cache are their owner's alone" modes
login alice; chown 1001 "$work/cc.alice"
alices() { as_user 1001 env KRB5CCNAME="$KRB5CCNAME" "$afscell" aklog && as_user 1001 sh -c "echo hers >'$mnt/alice/f'" && ! as_user 1002 sh -c "echo his >'$mnt/alice/f'" && ! as_user 1002 "$afscell" tokens | grep -i alice && [ "$(cat "$mnt/alice/f")" = hers ]; }
check "a token serves its user and no other" alices
# RMTSYS: cred (uid 1001), GETTOK of index 0; sent by uid 1002, and by one who shares a port with root
spoof() { cp "$here/raw.py" "$work/"; cat >"$work/spoof.py" <<P
import sys; sys.path.insert(0, '$work'); import raw
c = raw.Conn(7009, 4)
n = lambda v: raw.u32(v)
c.begin(n(2) + n(1001) + n(0) + n(0) + raw.text('') + n(0x5608) + n(0) + raw.text(b'\0\0\0\0') + raw.text(''))
r = c.finish()
print(r if isinstance(r, int) else r.hex())
P
	as_user 1001 /usr/bin/python3 "$work/spoof.py" | grep -qE '[0-9a-f]{200}' && ! as_user 1002 /usr/bin/python3 "$work/spoof.py" | grep -E '[0-9a-f]{100}'; }
check "a token is given to its user by RMTSYS, and not to who only says his number" spoof

# killed in the middle
cd /; sync
victim=$("$afscell" status --json | python3 -c 'import json,sys; print(json.load(sys.stdin).get("pid",""))')
[ -n "$victim" ] || victim=$(cat "$work/c/state/lock" 2>/dev/null | grep -o '[0-9]*' | head -n 1)
python3 - "$mnt/open" <<'P' & writer=$!
import os, sys, time
f = open(sys.argv[1] + '/open-and-gone', 'w+b'); f.write(b'x' * 100000); os.fsync(f.fileno()); os.unlink(sys.argv[1] + '/open-and-gone')
time.sleep(60)
P
sleep 2; kill -9 "$victim"; kill $writer; wait $writer 2>/dev/null
umount -l "$work/c/afs" 2>/dev/null
again() { "$afscell" up && ls -a "$mnt/open" >"$work/ls" && ! grep 'open-and-gone' "$work/ls" && holds "$mnt/open/small" marker && "$afscell" check; }
check "killed with a removed file open: up again, all there, volumes check clean" again
