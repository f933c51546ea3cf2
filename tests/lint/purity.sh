#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The protocol is a pure machine: rx/core and rx/sec ask the linker for no socket, thread, clock, file or
# random symbol (conventions §4).
build=${top_builddir:-.}
echo 1..2
n=0 failed=0
impure='^(socket|bind|connect|accept4?|listen|send(to|m?msg|mmsg)?|recv(from|m?msg|mmsg)?|poll|ppoll|select|epoll_.*|'
impure+='pthread_create|pthread_mutex_.*|pthread_cond_.*|pthread_rwlock_.*|sem_.*|mtx_.*|cond_.*|'
impure+='clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|clk_mono|clk_wall|'
impure+='open|openat|fopen|read|write|pread|pwrite|close|stat|unlink|'
impure+='rand|random|getrandom|getentropy|rand_bytes|rand_u32|rand_u64|RAND_bytes)(64)?$'
for lib in rx/core/librxcore.a rx/sec/librxsec.a; do
	n=$((n + 1))
	[ -f "$build/$lib" ] || { echo "not ok $n - $lib is built"; failed=1; continue; }
	bad=$(nm -u "$build/$lib" 2>/dev/null | awk '/:$/ { o = $0 } $1 == "U" { sub(/@.*/, "", $2); print $2, o }' |
		while read -r sym obj; do [[ $sym =~ $impure ]] && echo "$obj $sym"; done)
	if [ -z "$bad" ]; then
		echo "ok $n - $lib asks for no socket, thread, clock, file or random symbol"
	else
		failed=1
		echo "not ok $n - $lib asks for no socket, thread, clock, file or random symbol"
		sed 's/^/# /' <<<"$bad"
	fi
done
[ $failed = 0 ]
