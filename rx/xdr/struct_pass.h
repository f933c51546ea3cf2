/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads a .def file of wire structs.  In a header:        In one .c file:
 *
 *   #define XDR_ROWS "cell/proto/fs.def"                    #define XDR_ROWS "cell/proto/fs.def"
 *   #include "rx/xdr/struct_pass.h"                         #include "rx/xdr/codec_pass.h"
 *
 * The first makes `struct NAME` (and typedef xdr_NAME, so that rows name kinds and structs alike)
 * and declares xdr_get_NAME, xdr_put_NAME, xdr_print_NAME; the second defines them.  Rows:
 *
 *   XDR_STRUCT(NAME)
 *     XDR_FIELD(kind, f)         u32 i32 u64 i64 or a struct's name
 *     XDR_STR(f, max)            struct xdr_str: counted text, no NUL inside
 *     XDR_OPAQUE(f, max)         struct xdr_bytes
 *     XDR_ARRAY(kind, f, max)    struct { kind *v; uint32_t n; }
 *     XDR_FIXED(kind, f, n)      kind f[n], no count
 *     XDR_CHARS(f, n)            char f[n + 1]: one word per character
 *     XDR_RAW(f, n)              uint8_t f[n]: fixed opaque
 *     XDR_CUSTOM(kind, f)        as XDR_FIELD, with a hand-written typedef xdr_kind and functions
 *   XDR_END(NAME)
 *
 * Names of wire structs and fields are the protocol's.  A struct without fields is allowed. */
#include "rx/xdr/xdr.h"

#define XDR_STRUCT(name)                                                                           \
	typedef struct name xdr_##name;                                                            \
	struct name {
#define XDR_FIELD(kind, f) xdr_##kind f;
#define XDR_CUSTOM(kind, f) xdr_##kind f;
#define XDR_STR(f, max) struct xdr_str f;
#define XDR_OPAQUE(f, max) struct xdr_bytes f;
#define XDR_ARRAY(kind, f, max)                                                                    \
	struct {                                                                                   \
		xdr_##kind *v;                                                                     \
		uint32_t n;                                                                        \
	} f;
#define XDR_FIXED(kind, f, count) xdr_##kind f[count];
#define XDR_CHARS(f, count) char f[(count) + 1];
#define XDR_RAW(f, count) uint8_t f[count];
#define XDR_END(name)                                                                              \
	}                                                                                          \
	;                                                                                          \
	void xdr_get_##name(struct xdr_in *, struct name *);                                       \
	void xdr_put_##name(struct xdr_out *, const struct name *);                                \
	void xdr_print_##name(struct buf *, const struct name *);
#include XDR_ROWS
#include "rx/xdr/undef_pass.h"
#undef XDR_ROWS
