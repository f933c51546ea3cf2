#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The protocol machine asks the linker for no socket, thread, clock, file or random symbol: all it may
# have besides its own is listed here.  TAP.
cd "${top_builddir:-.}" || exit 99
for lib in rx/core/librxcore.a rx/sec/librxsec.a; do
	[ -s "$lib" ] || { echo "Bail out! $lib is not built"; exit 99; }
done
echo 1..4

memory='free|calloc|malloc|realloc|mem(cpy|move|set|cmp|chr)|str(n?len|n?cmp|chr)|explicit_bzero'
guards='__(stack_chk_fail|memcpy_chk|memset_chk|memmove_chk|explicit_bzero_chk|assert_fail)|_GLOBAL_OFFSET_TABLE_|__cpu_model|__cpu_indicator_init|__(asan|ubsan|tsan|sanitizer|sancov|msan)_.*'
base='mem_(alloc|resize)|map_(fini|first|next|insert|remove|walk|hash_u64|hash_bytes)'

# library, what else it may have
foreign() {
	nm -u "$1" 2>/dev/null | awk 'NF == 2 { print $2 }' | sort -u |
		grep -vxE "$memory|$guards|$base|$2"
}

n=0
check() {
	n=$((n + 1))
	if [ -n "$2" ]; then
		echo "not ok $n - $1"
		echo "$2" | sed 's/^/# /'
	else
		echo "ok $n - $1"
	fi
}

# the lock is the buffer pool's, the one thing here that threads share, and for whose room writers wait
check "rx/core is a pure machine" "$(foreign rx/core/librxcore.a 'rx_.*|mtx_(init|fini|lock|unlock)|cond_(init|fini|broadcast|wait_until)')"
check "only the buffer pool takes a lock" \
	"$(nm -Au rx/core/librxcore.a 2>/dev/null | grep -E ' (mtx|cond)_' | grep -v '[:.]buf\.o:\|-buf\.o:')"
check "rx/sec is functions of bytes and keys" "$(foreign rx/sec/librxsec.a \
	'rx_.*|rxkad_.*|rxgk_.*|etype_.*|fcrypt_.*|EVP_.*|HMAC|SHA(1|256|384)_.*|CRYPTO_memcmp|sched_yield|mtx_(init|fini|lock|unlock)')"
# threads share a connection's keys: they borrow its cipher contexts, and one exchanges a worn key
check "only rxgk's worn keys take a lock" \
	"$(nm -Au rx/sec/librxsec.a 2>/dev/null | grep ' mtx_' | grep -v '[:.]rxgk\(_packet\)\?\.o:\|-rxgk\(_packet\)\?\.o:')"
