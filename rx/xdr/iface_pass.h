/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads a .rpc file (iface.h tells its rows).  Define RPC_ROWS and RPC_PREFIX, and one of
 *
 *   RPC_WANT_INDEX     in the header: enum { PREFIX_op_handler, ... }, the index of each row
 *   RPC_WANT_PROCS     in one .c: static const struct rpc_proc PREFIX_procs[]
 *   RPC_WANT_HANDLERS  in the server: declares afs_err PREFIX_handler(struct rpc_call *,
 *                      const struct PREFIX_handler_in *, struct PREFIX_handler_out *) for each row,
 *                      and makes static rpc_handler *const PREFIX_handlers[] in row order
 *   RPC_WANT_STUBS     in clients (after rx/rpc/client.h and the iface's header): static inline
 *                      afs_err PREFIX_call_handler(conn, const in *, out *, struct rpc_result *)
 *                      for rows that are not SPLIT
 * All are undefined again afterwards. */
#define RPC_CAT_(a, b, c) a##b##c
#define RPC_CAT(a, b, c) RPC_CAT_(a, b, c)
#define RPC_IN(fn) RPC_CAT(RPC_PREFIX, _##fn, _in)
#define RPC_OUT(fn) RPC_CAT(RPC_PREFIX, _##fn, _out)
#define RPC_FN(fn) RPC_CAT(RPC_PREFIX, _, fn)

#ifdef RPC_WANT_INDEX
#define RPC(code, wire, fn, shape_, need_, effect_) RPC_CAT(RPC_PREFIX, _op_, fn),
enum {
#include RPC_ROWS
	RPC_CAT(RPC_PREFIX, _op_, count)
};
#undef RPC
#endif

#ifdef RPC_WANT_PROCS
#define RPC_XCAT_(a, b) a##b
#define RPC_XCAT(a, b) RPC_XCAT_(a, b)
#define RPC(code, wire, fn, shape_, need_, effect_)                                                         \
	static void RPC_CAT(RPC_PREFIX, _gi_, fn)(struct xdr_in *x, void *v)                       \
	{                                                                                          \
		RPC_XCAT(xdr_get_, RPC_IN(fn))(x, v);                                              \
	}                                                                                          \
	static void RPC_CAT(RPC_PREFIX, _pi_, fn)(struct xdr_out *x, const void *v)                \
	{                                                                                          \
		RPC_XCAT(xdr_put_, RPC_IN(fn))(x, v);                                              \
	}                                                                                          \
	static void RPC_CAT(RPC_PREFIX, _go_, fn)(struct xdr_in *x, void *v)                       \
	{                                                                                          \
		RPC_XCAT(xdr_get_, RPC_OUT(fn))(x, v);                                             \
	}                                                                                          \
	static void RPC_CAT(RPC_PREFIX, _po_, fn)(struct xdr_out *x, const void *v)                \
	{                                                                                          \
		RPC_XCAT(xdr_put_, RPC_OUT(fn))(x, v);                                             \
	}                                                                                          \
	static void RPC_CAT(RPC_PREFIX, _ti_, fn)(struct buf * b, const void *v)                   \
	{                                                                                          \
		RPC_XCAT(xdr_print_, RPC_IN(fn))(b, v);                                            \
	}                                                                                          \
	static void RPC_CAT(RPC_PREFIX, _to_, fn)(struct buf * b, const void *v)                   \
	{                                                                                          \
		RPC_XCAT(xdr_print_, RPC_OUT(fn))(b, v);                                           \
	}
#include RPC_ROWS
#undef RPC
#define RPC(code, wire, fn, shape_, need_, effect_)                                                         \
	{                                                                                          \
		.op = (code), .name = #wire, .shape = RPC_##shape_, .need = RPC_##need_,           \
		.effect = RPC_##effect_,                                                           \
		.in_size = sizeof(struct RPC_IN(fn)), .out_size = sizeof(struct RPC_OUT(fn)),      \
		.in_get = RPC_CAT(RPC_PREFIX, _gi_, fn), .in_put = RPC_CAT(RPC_PREFIX, _pi_, fn),  \
		.out_get = RPC_CAT(RPC_PREFIX, _go_, fn),                                          \
		.out_put = RPC_CAT(RPC_PREFIX, _po_, fn),                                          \
		.in_print = RPC_CAT(RPC_PREFIX, _ti_, fn),                                         \
		.out_print = RPC_CAT(RPC_PREFIX, _to_, fn),                                        \
	},
static const struct rpc_proc RPC_CAT(RPC_PREFIX, _, procs)[] = {
#include RPC_ROWS
};
#undef RPC
#undef RPC_XCAT
#undef RPC_XCAT_
#endif

#ifdef RPC_WANT_HANDLERS
#define RPC(code, wire, fn, shape_, need_, effect_)                                                         \
	afs_err RPC_FN(fn)(struct rpc_call *, const struct RPC_IN(fn) *, struct RPC_OUT(fn) *);    \
	static afs_err RPC_CAT(RPC_PREFIX, _run_, fn)(struct rpc_call * c, const void *i, void *o) \
	{                                                                                          \
		return RPC_FN(fn)(c, i, o);                                                        \
	}
#include RPC_ROWS
#undef RPC
#define RPC(code, wire, fn, shape_, need_, effect_) RPC_CAT(RPC_PREFIX, _run_, fn),
static rpc_handler *const RPC_CAT(RPC_PREFIX, _, handlers)[] = {
#include RPC_ROWS
};
#undef RPC
#endif

#ifdef RPC_WANT_STUBS
#define RPC_STUB_UNARY(fn)                                                                         \
	static inline afs_err RPC_CAT(RPC_PREFIX, _call_, fn)(struct rpc_conn * conn,              \
		const struct RPC_IN(fn) * in, struct RPC_OUT(fn) * out, struct rpc_result *res)    \
	{                                                                                          \
		return rpc_invoke(conn, &RPC_CAT(RPC_PREFIX, _, iface).procs[RPC_CAT(              \
			RPC_PREFIX, _op_, fn)], in, out, res);                                     \
	}
#define RPC_STUB_INLINE(fn) RPC_STUB_UNARY(fn)
#define RPC_STUB_QUICK(fn) RPC_STUB_UNARY(fn)
#define RPC_STUB_SPLIT(fn)
#define RPC(code, wire, fn, shape_, need_, effect_) RPC_STUB_##shape_(fn)
#include RPC_ROWS
#undef RPC
#undef RPC_STUB_UNARY
#undef RPC_STUB_INLINE
#undef RPC_STUB_QUICK
#undef RPC_STUB_SPLIT
#endif

#undef RPC_CAT
#undef RPC_CAT_
#undef RPC_IN
#undef RPC_OUT
#undef RPC_FN
#undef RPC_WANT_INDEX
#undef RPC_WANT_PROCS
#undef RPC_WANT_HANDLERS
#undef RPC_WANT_STUBS
#undef RPC_ROWS
#undef RPC_PREFIX
