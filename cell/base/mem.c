/* SPDX-License-Identifier: BSD-2-Clause
 * Allocation with overflow checks and a switch for tests to make it fail. */
#include "cell/base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_long fail_countdown = -1;
static atomic_bool failed;

void mem_fail_after(long n)
{
	atomic_store(&failed, false);
	atomic_store(&fail_countdown, n);
}

bool mem_has_failed(void) { return atomic_load(&failed); }

static bool refuse(void)
{
	long left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
	if (left < 0)
		return false;
	if (left == 0) {
		atomic_store(&failed, true);
		return true;
	}
	atomic_fetch_sub(&fail_countdown, 1);
	return false;
}

void *mem_alloc(size_t n, size_t size) { return refuse() ? NULL : calloc(n ? n : 1, size ? size : 1); }

void *mem_resize(void *p, size_t old_n, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n ? n : 1, size, &bytes) || refuse())
		return NULL;
	char *q = realloc(p, bytes);
	if (q && n > old_n)
		memset(q + old_n * size, 0, (n - old_n) * size);
	return q;
}

char *mem_strndup(const char *s, size_t n)
{
	if (!s)
		return NULL;
	size_t len = strnlen(s, n);
	char *d = mem_alloc(len + 1, 1);
	if (d)
		memcpy(d, s, len);
	return d;
}

char *mem_strdup(const char *s) { return mem_strndup(s, SIZE_MAX - 1); }

char *mem_printf(const char *fmt, ...)
{
	if (refuse())
		return NULL;
	char *out = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&out, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : out;
}

void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	_Alignas(max_align_t) unsigned char data[];
};

enum { ARENA_BLOCK = 4096 - (int)sizeof(struct arena_block) - 32 };

void arena_init(struct arena *a, size_t limit) { *a = (struct arena){.limit = limit}; }

void arena_fini(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *b = a->blocks;
		a->blocks = b->next;
		free(b);
	}
	a->used = 0;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes) || bytes > a->limit - a->used)
		return NULL;
	size_t rounded = (bytes + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (rounded < bytes)
		return NULL;
	struct arena_block *b = a->blocks;
	if (!b || b->size - b->used < rounded) {
		size_t want = MAX(rounded, (size_t)ARENA_BLOCK);
		b = mem_alloc(1, sizeof(*b) + want);
		if (!b)
			return NULL;
		b->size = want;
		b->next = a->blocks;
		a->blocks = b;
	}
	void *p = b->data + b->used;
	b->used += rounded;
	a->used += bytes;
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *d = arena_alloc(a, n + 1, 1);
	if (d)
		memcpy(d, s, n);
	return d;
}
