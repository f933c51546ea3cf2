/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/base/rand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void rand_bytes(void *out, size_t n)
{
	char *p = out;
	while (n) {
		ssize_t got = getrandom(p, n, 0);
		if (got < 0) {
			if (errno == EINTR)
				continue;
			perror("afscell: the system gives no random bytes");
			abort();
		}
		p += got;
		n -= (size_t)got;
	}
}

uint32_t rand_u32(void)
{
	uint32_t v;
	rand_bytes(&v, sizeof(v));
	return v;
}

uint64_t rand_u64(void)
{
	uint64_t v;
	rand_bytes(&v, sizeof(v));
	return v;
}
