#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The emulated link does to packets what its options say: judged by its own counts and by what arrives.
. "$(dirname "$0")/lib.sh"
enter python3 cc
plan 8

cc -O2 -o "$work/linkem" "$here/linkem.c" || bail "linkem.c does not compile"
mount -t tmpfs tmpfs /run && mkdir -p /run/netns
for n in lk-a lk-b; do # only our packets are to meet a fate
	ip netns add $n
	nsenter --net=/run/netns/$n sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6' 2>/dev/null
done

# link OPTIONS...: a fresh link between lk-a (10.9.0.1) and lk-b (10.9.0.2)
link() {
	"$work/linkem" "$@" lk-a em0=10.9.0.1/24 lk-b em0=10.9.0.2/24 >"$work/ready" 2>"$work/counts" &
	em=$!
	until grep -q ready "$work/ready"; do kill -0 $em || bail "linkem: $(cat "$work/counts")"; sleep 0.05; done
}
unlink_() { kill $em; wait $em; }
# pings COUNT SIZE: datagrams of SIZE bytes, not to be cut, 2 ms apart, to an echo; how many came back,
# how many twice and the least ms, into $answered, $doubled, $least
cat >"$work/echo.py" <<'P'
import select, socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "echo":
    s.bind(("10.9.0.2", 9))
    print("ready", flush=True)
    while True:
        data, who = s.recvfrom(65536)
        s.sendto(data, who)
count, size = int(sys.argv[1]), int(sys.argv[2])
s.setsockopt(socket.IPPROTO_IP, 10, 2)
came, least, sent, start = {}, 1e9, 0, time.monotonic()
while sent < count or (time.monotonic() - start < count * 0.002 + 1 and len(came) < count):
    if sent < count:
        s.sendto(struct.pack("!Id", sent, time.monotonic()) + bytes(size - 12), ("10.9.0.2", 9))
        sent += 1
    while select.select([s], [], [], 0.002)[0]:
        seq, at = struct.unpack("!Id", s.recv(65536)[:12])
        came[seq] = came.get(seq, 0) + 1
        least = min(least, (time.monotonic() - at) * 1000)
        if sent < count:
            break
time.sleep(0.1)
while select.select([s], [], [], 0)[0]:
    seq = struct.unpack("!I", s.recv(65536)[:4])[0]
    came[seq] = came.get(seq, 0) + 1
print(len(came), sum(1 for n in came.values() if n > 1), "%d" % least)
P
pings() {
	nsenter --net=/run/netns/lk-b python3 "$work/echo.py" echo >"$work/echo" 2>&1 & local echo=$!
	until grep -q ready "$work/echo"; do kill -0 $echo || bail "$(cat "$work/echo")"; sleep 0.05; done
	read -r answered doubled least < <(nsenter --net=/run/netns/lk-a python3 "$work/echo.py" "$1" "$2")
	kill $echo; wait $echo 2>/dev/null
}
count() { sed -n "s/^$1: .*$2 \([0-9]*\).*/\1/p" "$work/counts"; } # count WAY WORD
answered() { sed -n 's/.* \([0-9]*\) received.*/\1/p' "$work/ping"; }

link
pings 100 100
unlink_
check "without options every packet arrives" test "$answered $doubled" = "100 0"
check "and none is lost, doubled or refused" grep -q 'lost 0 overtaking 0 doubled 0 overflowed 0 too-long 0 refused 0' "$work/counts"

link --delay 20
pings 10 100
unlink_
check "20 ms each way are a round trip of at least 40" test "$least" -ge 40

lossy() { link --loss 30 --seed 7; pings 300 100; unlink_; lost=$(count 'a to b' lost); }
lossy; once=$lost
lossy
check "30 % of loss lose about so many, and the same with the same seed" test "$once" = "$lost" -a "$once" -gt 60 -a "$once" -lt 120

link --duplicate 100
pings 50 100
unlink_
check "everything doubled arrives more than once" test "$answered $doubled" = "50 50"

link --delay 10 --reorder 50
pings 100 100
unlink_
check "half of the packets overtake" test "$(count 'a to b' overtaking)" -gt 25 -a "$(count 'a to b' overtaking)" -lt 75

link --mtu 3000 --carry 1500
pings 3 1472; short=$answered
pings 3 1473; long=$answered
unlink_
check "what is longer than the path carries vanishes" test "$short $long" = "3 0"

link --rate 1 --queue 10
pings 60 1400
unlink_
check "a slow link's queue overflows" test "$(count 'a to b' overflowed)" -gt 0
