/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of VL. */
#include "cell/proto/vl.h"

#include "cell/proto/abort.h"

#define XDR_ROWS "cell/proto/vl.def"
#include "rx/xdr/codec_pass.h"

#define RPC_WANT_PROCS
#define RPC_PREFIX vl
#define RPC_ROWS "cell/proto/vl.rpc"
#include "rx/xdr/iface_pass.h"

const struct rpc_iface vl_iface = {
	.name = "VL",
	.service = VL_SERVICE,
	.stats_id = 15,
	.procs = vl_procs,
	.count = ARRAY_SIZE(vl_procs),
	.args_max = 4096,       /* RegisterAddrs with 500 addresses, 2052 bytes */
	.results_max = 2 << 20, /* VL_LIST_MAX entries of 480 bytes */
	.abort_of = abort_of_vl,
	.err_of = err_of_vl,
};

/* A list is its elements, each behind the word 1, and the word 0.  The array grows by doubling in the
 * arena; elements are at least 384 bytes on the wire, so it stays within what came. */
#define LIST_CODEC(list, entry)                                                                    \
	void xdr_get_##list(struct xdr_in *x, struct list *v)                                      \
	{                                                                                          \
		*v = (struct list){0};                                                             \
		uint32_t cap = 0;                                                                  \
		for (;;) {                                                                         \
			xdr_u32 more;                                                              \
			xdr_get_u32(x, &more);                                                     \
			if (x->err || !more)                                                       \
				return;                                                            \
			if (more != 1 || v->n == VL_LIST_MAX) {                                    \
				x->err = AFS_EDECODE;                                              \
				return;                                                            \
			}                                                                          \
			if (v->n == cap) {                                                         \
				uint32_t grown = cap ? cap * 2 : 4;                                \
				struct entry *mem =                                                \
					x->arena ? arena_alloc(x->arena, grown, sizeof(*mem))      \
						 : NULL;                                           \
				if (!mem) {                                                        \
					x->err = AFS_ENOMEM;                                       \
					return;                                                    \
				}                                                                  \
				if (v->n)                                                          \
					memcpy(mem, v->v, v->n * sizeof(*mem));                    \
				v->v = mem;                                                        \
				cap = grown;                                                       \
			}                                                                          \
			xdr_get_##entry(x, &v->v[v->n]);                                           \
			if (!x->err)                                                               \
				v->n++;                                                            \
		}                                                                                  \
	}                                                                                          \
	void xdr_put_##list(struct xdr_out *x, const struct list *v)                               \
	{                                                                                          \
		if (v->n > VL_LIST_MAX && !x->err)                                                 \
			x->err = AFS_EENCODE;                                                      \
		for (uint32_t i = 0; i < v->n && !x->err; i++) {                                   \
			xdr_put_u32(x, &(xdr_u32){1});                                             \
			xdr_put_##entry(x, &v->v[i]);                                              \
		}                                                                                  \
		xdr_put_u32(x, &(xdr_u32){0});                                                     \
	}                                                                                          \
	void xdr_print_##list(struct buf *b, const struct list *v)                                 \
	{                                                                                          \
		buf_putc(b, '[');                                                                  \
		for (uint32_t i = 0; i < v->n; i++) {                                              \
			if (i)                                                                     \
				buf_putc(b, ',');                                                  \
			xdr_print_##entry(b, &v->v[i]);                                            \
		}                                                                                  \
		buf_putc(b, ']');                                                                  \
	}
LIST_CODEC(vldb_list, vldbentry)
LIST_CODEC(nvldb_list, nvldbentry)
