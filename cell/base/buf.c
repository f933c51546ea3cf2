/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/base/buf.h"

#include "cell/base/mem.h"

#include <stdio.h>
#include <string.h>

void buf_fini(struct buf *b)
{
	mem_free(b->data);
	*b = (struct buf){0};
}

void *buf_extend(struct buf *b, size_t n)
{
	if (b->err)
		return NULL;
	size_t want;
	if (__builtin_add_overflow(b->len, n, &want) || want == SIZE_MAX) {
		b->err = AFS_ENOMEM;
		return NULL;
	}
	if (want + 1 > b->cap) {
		size_t cap = MAX(want + 1, MAX((size_t)64, b->cap + b->cap / 2));
		char *data = mem_resize(b->data, b->cap, cap, 1);
		if (!data) {
			b->err = AFS_ENOMEM;
			return NULL;
		}
		b->data = data;
		b->cap = cap;
	}
	char *p = b->data + b->len;
	b->len = want;
	memset(p, 0, n + 1);
	return p;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	void *d = buf_extend(b, n);
	if (d && n)
		memcpy(d, p, n);
}

void buf_puts(struct buf *b, const char *s) { buf_put(b, s, strlen(s)); }
void buf_putc(struct buf *b, char c) { buf_put(b, &c, 1); }

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n > 0) {
		char *d = buf_extend(b, (size_t)n);
		if (d)
			vsnprintf(d, (size_t)n + 1, fmt, again);
	}
	va_end(again);
}

char *buf_take(struct buf *b)
{
	if (!b->data)
		buf_extend(b, 0);
	char *d = b->err ? NULL : b->data;
	if (b->err)
		mem_free(b->data);
	*b = (struct buf){0};
	return d;
}
