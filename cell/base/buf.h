/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A growing byte buffer whose error sticks: write a whole thing, look at `err` once.
 * `data` is NUL-terminated behind `len` once anything was written (not counted). */
#pragma once
#include "cell/base/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len, cap;
	afs_err err; /* AFS_ENOMEM, and nothing more is written */
};

void buf_fini(struct buf *b);
static inline void buf_cleanup(struct buf *b) { buf_fini(b); } /* CLEANUP(buf) struct buf b = {} */
void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
[[gnu::format(printf, 2, 3)]] void buf_printf(struct buf *b, const char *fmt, ...);
/* Room for n more bytes, zeroed and counted in len; NULL when out of memory. */
void *buf_extend(struct buf *b, size_t n);
/* The text, owned by the caller (mem_free), or NULL when out of memory.  b is empty afterwards. */
char *buf_take(struct buf *b);
