/* SPDX-License-Identifier: BSD-2-Clause
 * The cursors.  Every take is `n > end - p`, never arithmetic on a length from the wire. */
#include "rx/xdr/xdr.h"

#include <inttypes.h>

const uint8_t *xdr_take(struct xdr_in *x, size_t n)
{
	if (x->err)
		return NULL;
	if (n > xdr_left(x)) {
		x->err = AFS_EAGAIN;
		return NULL;
	}
	const uint8_t *b = x->p;
	x->p += n;
	return b;
}

uint8_t *xdr_room(struct xdr_out *x, size_t n)
{
	if (x->err)
		return NULL;
	if (n > (size_t)(x->end - x->p)) {
		x->err = AFS_EENCODE;
		return NULL;
	}
	uint8_t *b = x->p;
	x->p += n;
	return b;
}

bool xdr_str_is(struct xdr_str s, const char *text)
{
	return s.len == strlen(text) && (s.len == 0 || memcmp(s.p, text, s.len) == 0);
}

void xdr_get_u64(struct xdr_in *x, xdr_u64 *v)
{
	xdr_u32 hi, lo;
	xdr_get_u32(x, &hi);
	xdr_get_u32(x, &lo);
	*v = (uint64_t)hi << 32 | lo;
}

void xdr_put_u64(struct xdr_out *x, const xdr_u64 *v)
{
	xdr_put_u32(x, &(xdr_u32){(xdr_u32)(*v >> 32)});
	xdr_put_u32(x, &(xdr_u32){(xdr_u32)*v});
}

void xdr_get_i64(struct xdr_in *x, xdr_i64 *v)
{
	xdr_u64 u;
	xdr_get_u64(x, &u);
	*v = (xdr_i64)u;
}

void xdr_put_i64(struct xdr_out *x, const xdr_i64 *v)
{
	xdr_put_u64(x, &(xdr_u64){(xdr_u64)*v});
}

static uint32_t padding(uint32_t n) { return -n & 3; }

/* A counted run of bytes: the count is judged, then bytes and padding are taken as one. */
static const uint8_t *take_counted(struct xdr_in *x, uint32_t max, uint32_t *len)
{
	xdr_u32 n;
	xdr_get_u32(x, &n);
	*len = 0;
	if (x->err)
		return NULL;
	if (n > max) {
		x->err = AFS_EDECODE;
		return NULL;
	}
	const uint8_t *b = xdr_take(x, (size_t)n + padding(n));
	if (b)
		*len = n;
	return b;
}

static char *keep(struct xdr_in *x, const uint8_t *b, uint32_t n)
{
	char *copy = x->arena ? arena_strndup(x->arena, (const char *)b, n) : NULL;
	if (!copy)
		x->err = AFS_ENOMEM;
	return copy;
}

void xdr_get_str(struct xdr_in *x, struct xdr_str *v, uint32_t max)
{
	*v = (struct xdr_str){"", 0};
	uint32_t n;
	const uint8_t *b = take_counted(x, max, &n);
	if (!b || !n)
		return;
	if (memchr(b, 0, n)) {
		x->err = AFS_EDECODE;
		return;
	}
	const char *copy = keep(x, b, n);
	if (copy)
		*v = (struct xdr_str){copy, n};
}

void xdr_get_bytes(struct xdr_in *x, struct xdr_bytes *v, uint32_t max)
{
	*v = (struct xdr_bytes){0};
	uint32_t n;
	const uint8_t *b = take_counted(x, max, &n);
	if (!b || !n)
		return;
	const char *copy = keep(x, b, n);
	if (copy)
		*v = (struct xdr_bytes){(const uint8_t *)copy, n};
}

static void put_counted(struct xdr_out *x, const void *p, uint32_t n, uint32_t max)
{
	if (n > max) {
		x->err = x->err ? x->err : AFS_EENCODE;
		return;
	}
	xdr_put_u32(x, &n);
	uint8_t *b = xdr_room(x, (size_t)n + padding(n));
	if (!b)
		return;
	if (n)
		memcpy(b, p, n);
	memset(b + n, 0, padding(n));
}

void xdr_put_str(struct xdr_out *x, const struct xdr_str *v, uint32_t max)
{
	put_counted(x, v->p, v->len, max);
}

void xdr_put_bytes(struct xdr_out *x, const struct xdr_bytes *v, uint32_t max)
{
	put_counted(x, v->p, v->len, max);
}

void xdr_get_chars(struct xdr_in *x, char *v, uint32_t n)
{
	memset(v, 0, (size_t)n + 1);
	for (uint32_t i = 0; i < n; i++) {
		xdr_u32 c;
		xdr_get_u32(x, &c);
		v[i] = (char)(c & 0xff);
	}
	size_t used = strlen(v);
	memset(v + used, 0, n - used);
}

void xdr_put_chars(struct xdr_out *x, const char *v, uint32_t n)
{
	size_t used = strnlen(v, n);
	for (uint32_t i = 0; i < n; i++)
		xdr_put_u32(x, &(xdr_u32){i < used ? (unsigned char)v[i] : 0});
}

void xdr_get_raw(struct xdr_in *x, uint8_t *v, uint32_t n)
{
	const uint8_t *b = xdr_take(x, (size_t)n + padding(n));
	if (b)
		memcpy(v, b, n);
	else
		memset(v, 0, n);
}

void xdr_put_raw(struct xdr_out *x, const uint8_t *v, uint32_t n)
{
	uint8_t *b = xdr_room(x, (size_t)n + padding(n));
	if (b) {
		memcpy(b, v, n);
		memset(b + n, 0, padding(n));
	}
}

uint32_t xdr_get_count(struct xdr_in *x, uint32_t max, size_t size, void **v)
{
	xdr_u32 n;
	*v = NULL;
	xdr_get_u32(x, &n);
	if (x->err || n == 0)
		return 0;
	if (n > max) {
		x->err = AFS_EDECODE;
		return 0;
	}
	/* the smallest element is one word */
	if (n > xdr_left(x) / 4) {
		x->err = AFS_EAGAIN;
		return 0;
	}
	*v = x->arena ? arena_alloc(x->arena, n, size) : NULL;
	if (!*v) {
		x->err = AFS_ENOMEM;
		return 0;
	}
	return n;
}

void xdr_put_count(struct xdr_out *x, uint32_t n, uint32_t max)
{
	if (n > max && !x->err)
		x->err = AFS_EENCODE;
	xdr_put_u32(x, &n);
}

void xdr_print_u32(struct buf *b, const xdr_u32 *v) { buf_printf(b, "%" PRIu32, *v); }
void xdr_print_i32(struct buf *b, const xdr_i32 *v) { buf_printf(b, "%" PRId32, *v); }
void xdr_print_u64(struct buf *b, const xdr_u64 *v) { buf_printf(b, "%" PRIu64, *v); }
void xdr_print_i64(struct buf *b, const xdr_i64 *v) { buf_printf(b, "%" PRId64, *v); }

void xdr_print_text(struct buf *b, const char *p, size_t n)
{
	buf_putc(b, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			buf_printf(b, "\\u%04x", c);
		else
			buf_putc(b, (char)c);
	}
	buf_putc(b, '"');
}

void xdr_print_key(struct buf *b, const char *key)
{
	if (b->len && b->data[b->len - 1] != '{')
		buf_putc(b, ',');
	buf_printf(b, "\"%s\":", key);
}
