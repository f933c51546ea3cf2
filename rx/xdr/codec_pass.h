/* SPDX-License-Identifier: BSD-2-Clause
 * The codecs of a .def file: decode, encode, print.  See struct_pass.h. */

/* decode */
#define XDR_STRUCT(name)                                                                           \
	void xdr_get_##name(struct xdr_in *x, struct name *v)                                      \
	{                                                                                          \
		(void)x, (void)v;
#define XDR_FIELD(kind, f) xdr_get_##kind(x, &v->f);
#define XDR_CUSTOM(kind, f) xdr_get_##kind(x, &v->f);
#define XDR_STR(f, max) xdr_get_str(x, &v->f, (max));
#define XDR_OPAQUE(f, max) xdr_get_bytes(x, &v->f, (max));
#define XDR_ARRAY(kind, f, max)                                                                    \
	{                                                                                          \
		void *mem_;                                                                        \
		v->f.n = xdr_get_count(x, (max), sizeof(xdr_##kind), &mem_);                       \
		v->f.v = mem_;                                                                     \
		for (uint32_t i_ = 0; i_ < v->f.n && !x->err; i_++)                                \
			xdr_get_##kind(x, &v->f.v[i_]);                                            \
	}
#define XDR_FIXED(kind, f, count)                                                                  \
	for (uint32_t i_ = 0; i_ < (count); i_++)                                                  \
		xdr_get_##kind(x, &v->f[i_]);
#define XDR_CHARS(f, count) xdr_get_chars(x, v->f, (count));
#define XDR_RAW(f, count) xdr_get_raw(x, v->f, (count));
#define XDR_END(name) }
#include XDR_ROWS
#include "rx/xdr/undef_pass.h"

/* encode */
#define XDR_STRUCT(name)                                                                           \
	void xdr_put_##name(struct xdr_out *x, const struct name *v)                               \
	{                                                                                          \
		(void)x, (void)v;
#define XDR_FIELD(kind, f) xdr_put_##kind(x, &v->f);
#define XDR_CUSTOM(kind, f) xdr_put_##kind(x, &v->f);
#define XDR_STR(f, max) xdr_put_str(x, &v->f, (max));
#define XDR_OPAQUE(f, max) xdr_put_bytes(x, &v->f, (max));
#define XDR_ARRAY(kind, f, max)                                                                    \
	xdr_put_count(x, v->f.n, (max));                                                           \
	for (uint32_t i_ = 0; i_ < v->f.n && !x->err; i_++)                                        \
		xdr_put_##kind(x, &v->f.v[i_]);
#define XDR_FIXED(kind, f, count)                                                                  \
	for (uint32_t i_ = 0; i_ < (count); i_++)                                                  \
		xdr_put_##kind(x, &v->f[i_]);
#define XDR_CHARS(f, count) xdr_put_chars(x, v->f, (count));
#define XDR_RAW(f, count) xdr_put_raw(x, v->f, (count));
#define XDR_END(name) }
#include XDR_ROWS
#include "rx/xdr/undef_pass.h"

/* print */
#define XDR_STRUCT(name)                                                                           \
	void xdr_print_##name(struct buf *b, const struct name *v)                                 \
	{                                                                                          \
		(void)v;                                                                           \
		buf_putc(b, '{');
#define XDR_FIELD(kind, f) xdr_print_key(b, #f), xdr_print_##kind(b, &v->f);
#define XDR_CUSTOM(kind, f) xdr_print_key(b, #f), xdr_print_##kind(b, &v->f);
#define XDR_STR(f, max) xdr_print_key(b, #f), xdr_print_text(b, v->f.p, v->f.len);
#define XDR_OPAQUE(f, max) xdr_print_key(b, #f), buf_printf(b, "{\"bytes\":%u}", v->f.len);
#define XDR_ARRAY(kind, f, max)                                                                    \
	xdr_print_key(b, #f);                                                                      \
	buf_putc(b, '[');                                                                          \
	for (uint32_t i_ = 0; i_ < v->f.n; i_++) {                                                 \
		if (i_)                                                                            \
			buf_putc(b, ',');                                                          \
		xdr_print_##kind(b, &v->f.v[i_]);                                                  \
	}                                                                                          \
	buf_putc(b, ']');
#define XDR_FIXED(kind, f, count)                                                                  \
	xdr_print_key(b, #f);                                                                      \
	buf_putc(b, '[');                                                                          \
	for (uint32_t i_ = 0; i_ < (count); i_++) {                                                \
		if (i_)                                                                            \
			buf_putc(b, ',');                                                          \
		xdr_print_##kind(b, &v->f[i_]);                                                    \
	}                                                                                          \
	buf_putc(b, ']');
#define XDR_CHARS(f, count) xdr_print_key(b, #f), xdr_print_text(b, v->f, strlen(v->f));
#define XDR_RAW(f, count) xdr_print_key(b, #f), buf_printf(b, "{\"bytes\":%u}", (unsigned)(count));
#define XDR_END(name)                                                                              \
	buf_putc(b, '}');                                                                          \
	}
#include XDR_ROWS
#include "rx/xdr/undef_pass.h"
#undef XDR_ROWS
