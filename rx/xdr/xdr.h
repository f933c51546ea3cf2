/* SPDX-License-Identifier: BSD-2-Clause
 *
 * XDR (RFC 4506) as AFS-3 uses it: the cursors and the kinds that rows are made of.
 *
 * A wire struct is written once, as rows in a .def file (struct_pass.h tells how they are read).
 * Errors stick: decode or encode a whole struct, then look at `err` once.
 *   decode   AFS_EDECODE: a bound was passed, padding ran out or a string holds a NUL;
 *            AFS_EAGAIN: the bytes end too soon (more may come);  AFS_ENOMEM: the arena is used up
 *   encode   AFS_EENCODE: the bytes do not fit, or a bound of the row was passed
 * Strings, opaques and arrays decode into the arena and live as long as it.  Counts are compared
 * with the row's bound and with the bytes left before anything is allocated. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/base/mem.h"

#include <stdint.h>
#include <string.h>

struct xdr_in {
	const uint8_t *p, *end;
	struct arena *arena;
	afs_err err;
};
struct xdr_out {
	uint8_t *p, *end;
	afs_err err;
};

/* Kinds.  `p` of an empty string or opaque may be NULL; decoded strings end with a NUL that is not
 * counted. */
typedef uint32_t xdr_u32;
typedef int32_t xdr_i32;
typedef uint64_t xdr_u64;
typedef int64_t xdr_i64;
struct xdr_str {
	const char *p;
	uint32_t len;
};
struct xdr_bytes {
	const uint8_t *p;
	uint32_t len;
};
#define XDR_STR_OF(s) ((struct xdr_str){(s), (uint32_t)strlen(s)})
bool xdr_str_is(struct xdr_str s, const char *text);

/* Raw takes and puts; NULL sets err. */
const uint8_t *xdr_take(struct xdr_in *x, size_t n);
uint8_t *xdr_room(struct xdr_out *x, size_t n);
static inline size_t xdr_left(const struct xdr_in *x) { return (size_t)(x->end - x->p); }

static inline uint32_t be32_get(const void *at)
{
	uint32_t v;
	memcpy(&v, at, 4);
	return __builtin_bswap32(v);
}
static inline void be32_put(void *at, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(at, &v, 4);
}
static inline uint16_t be16_get(const void *at)
{
	uint16_t v;
	memcpy(&v, at, 2);
	return __builtin_bswap16(v);
}
static inline void be16_put(void *at, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(at, &v, 2);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "be32_get and friends swap");

static inline void xdr_get_u32(struct xdr_in *x, xdr_u32 *v)
{
	const uint8_t *b = xdr_take(x, 4);
	*v = b ? be32_get(b) : 0;
}
static inline void xdr_put_u32(struct xdr_out *x, const xdr_u32 *v)
{
	uint8_t *b = xdr_room(x, 4);
	if (b)
		be32_put(b, *v);
}
static inline void xdr_get_i32(struct xdr_in *x, xdr_i32 *v)
{
	xdr_u32 u;
	xdr_get_u32(x, &u);
	*v = (xdr_i32)u;
}
static inline void xdr_put_i32(struct xdr_out *x, const xdr_i32 *v)
{
	xdr_u32 u = (xdr_u32)*v;
	xdr_put_u32(x, &u);
}
void xdr_get_u64(struct xdr_in *x, xdr_u64 *v);
void xdr_put_u64(struct xdr_out *x, const xdr_u64 *v);
void xdr_get_i64(struct xdr_in *x, xdr_i64 *v);
void xdr_put_i64(struct xdr_out *x, const xdr_i64 *v);
void xdr_get_str(struct xdr_in *x, struct xdr_str *v, uint32_t max);
void xdr_put_str(struct xdr_out *x, const struct xdr_str *v, uint32_t max);
void xdr_get_bytes(struct xdr_in *x, struct xdr_bytes *v, uint32_t max);
void xdr_put_bytes(struct xdr_out *x, const struct xdr_bytes *v, uint32_t max);
/* AFS's word-per-character names: n words; `v` holds n + 1 and always ends with a NUL. */
void xdr_get_chars(struct xdr_in *x, char *v, uint32_t n);
void xdr_put_chars(struct xdr_out *x, const char *v, uint32_t n);
/* Fixed opaque: n bytes and padding, no count. */
void xdr_get_raw(struct xdr_in *x, uint8_t *v, uint32_t n);
void xdr_put_raw(struct xdr_out *x, const uint8_t *v, uint32_t n);
/* The count of an array and zeroed memory for it; 0 and NULL on error. */
uint32_t xdr_get_count(struct xdr_in *x, uint32_t max, size_t size, void **v);
void xdr_put_count(struct xdr_out *x, uint32_t n, uint32_t max);

/* Printers, for logs, audit and trace: JSON text.  Opaques print as their length. */
void xdr_print_u32(struct buf *b, const xdr_u32 *v);
void xdr_print_i32(struct buf *b, const xdr_i32 *v);
void xdr_print_u64(struct buf *b, const xdr_u64 *v);
void xdr_print_i64(struct buf *b, const xdr_i64 *v);
void xdr_print_text(struct buf *b, const char *p, size_t n);
void xdr_print_key(struct buf *b, const char *key); /* "key": , with a comma when one is due */
