/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An interface is a table of procedures: what both sides of a service know.  Rows in a .rpc file:
 *
 *      op     wire name     handler        shape   who may call
 *   RPC(132, FetchStatus,  fetch_status,  UNARY,  ANYONE )
 *
 * Arguments are struct PREFIX_handler_in, results struct PREFIX_handler_out, both from the .def
 * (a row without arguments or results has a struct without fields).  An opcode without a row is
 * refused with RXGEN_OPCODE.  iface_pass.h turns rows into the table, client stubs and, for a
 * server, the array of handlers in the same order. */
#pragma once
#include "rx/xdr/xdr.h"

enum rpc_shape {
	RPC_UNARY,  /* arguments, then results */
	RPC_SPLIT,  /* raw bytes follow the arguments or precede the results, or both */
	RPC_INLINE, /* as UNARY, and the handler never waits: it runs on the I/O thread */
	RPC_QUICK,  /* as UNARY, and the handler seldom waits: it is tried on the I/O thread first, with
	             * rpc_call.must_not_wait; AFS_EWAIT, with nothing done, sends it to a worker */
};
enum rpc_need {
	RPC_ANYONE,
	RPC_USER,      /* any authenticated caller */
	RPC_SUPERUSER, /* localauth or a member of the cell's list of administrators */
};

enum rpc_effect { RPC_READS, RPC_CHANGES };

struct rpc_proc {
	uint32_t op;
	const char *name; /* the wire's: "FetchStatus" */
	enum rpc_shape shape;
	enum rpc_need need;
	enum rpc_effect effect;
	uint32_t in_size, out_size; /* of the structs */
	void (*in_get)(struct xdr_in *, void *);
	void (*in_put)(struct xdr_out *, const void *);
	void (*out_get)(struct xdr_in *, void *);
	void (*out_put)(struct xdr_out *, const void *);
	void (*in_print)(struct buf *, const void *);
	void (*out_print)(struct buf *, const void *);
};

struct rpc_iface {
	const char *name;     /* "RXAFS" */
	uint16_t service;     /* Rx service id */
	uint16_t stats_id;    /* of RXSTATS (debug-stats.md §2.1); 0: none, not counted there */
	const struct rpc_proc *procs;
	uint16_t count;
	uint32_t args_max;    /* most bytes of encoded arguments that are taken (not bulk data) */
	uint32_t results_max; /* most bytes of encoded results; 0: as args_max */
	int32_t (*abort_of)(afs_err);   /* what this service says for an error */
	afs_err (*err_of)(int32_t);     /* and what a client makes of a code */
};

static inline uint32_t rpc_iface_results_max(const struct rpc_iface *iface)
{
	return iface->results_max ? iface->results_max : iface->args_max;
}
/* The row with opcode `op`, or NULL. */
const struct rpc_proc *rpc_iface_find(const struct rpc_iface *iface, uint32_t op);
