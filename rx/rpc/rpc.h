/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls as handlers and clients see them: a stream with arguments and results around it.
 *
 * All functions here may be called from any thread but a port's I/O thread, and those marked
 * "waits" wait for the peer, never longer than the connection's timeouts. */
#pragma once
#include "rx/core/core.h"
#include "rx/xdr/iface.h"

struct rpc_port; /* one UDP port: rx/io/port.h */
struct rpc_conn;

struct rpc_port *rpc_port_ref(struct rpc_port *port); /* keeps memory, not the port's service */
void rpc_port_unref(struct rpc_port *port);

/* --- serving ----------------------------------------------------------------------------- */

struct rpc_call {
	void *service;                  /* context given with the service */
	const struct rpc_iface *iface;
	const struct rpc_proc *proc;
	const struct rx_caller *caller; /* who asks; all zero for anonymous */
	bool superuser;                 /* the cell's rule said so (struct rpc_service.superuser) */
	bool must_not_wait;             /* a QUICK row on the I/O thread: AFS_EWAIT rather than wait */
	struct rx_addr peer;
	struct arena *arena;            /* lives as long as the call */
	mono_ns now;                    /* when the call began to run */
};

/* `in` is decoded, `out` is zeroed.  AFS_OK sends `out`; any error sends its abort code. */
typedef afs_err rpc_handler(struct rpc_call *call, const void *in, void *out);

struct rpc_service {
	const struct rpc_iface *iface;
	rpc_handler *const *handlers; /* in row order */
	void *ctx;
	enum rx_sec_level least;      /* authenticated callers below are refused */
	bool allow_anonymous;
	bool (*superuser)(void *ctx, const struct rx_caller *caller); /* NULL: nobody */
	/* After each call, on its thread: audit and statistics.  NULL: none. */
	void (*done)(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns);
	/* The code for a handler's error, when a caller wants another mapping than iface->abort_of; 0 and
	 * NULL: that one. */
	int32_t (*abort_of)(void *ctx, const struct rpc_call *call, afs_err err);
};

/* Refuse with a code of your own: return rpc_refuse(call, code); */
afs_err rpc_refuse(struct rpc_call *call, int32_t code);
/* What the layer above keeps with the caller's connection.  `gone(user)` runs when the connection
 * is forgotten, on the port's I/O thread with no lock held; or before set returns, when another word
 * (or the same once more: set counts) takes its place. */
void *rpc_call_conn_user(struct rpc_call *call);
void rpc_call_set_conn_user(struct rpc_call *call, void *user, void (*gone)(void *user));
/* Epoch and cid of the caller's connection: an identity for logs and for "same connection?". */
uint64_t rpc_call_conn_key(const struct rpc_call *call);
/* The port on which the call came: to call the caller back from it. */
struct rpc_port *rpc_call_port(const struct rpc_call *call);

/* True when the call was ended from outside (the peer gave up or died, the port closes): a long
 * handler may stop.  May be asked under any lock. */
bool rpc_call_is_over(struct rpc_call *call);

/* --- streams: SPLIT handlers, and clients between rpc_begin and rpc_end -------------------- */

/* Exactly n bytes; waits.  AFS_EEOF when the peer's side ends first. */
afs_err rpc_read(struct rpc_call *call, void *p, size_t n);
/* A run of opened bytes inside a packet, without copying; waits for at least one byte; *n is 0 at the
 * end of the peer's side.  Valid until the next read. */
afs_err rpc_read_run(struct rpc_call *call, size_t max, const uint8_t **p, size_t *n);
/* Copies; waits for window. */
afs_err rpc_write(struct rpc_call *call, const void *p, size_t n);
/* Room for at most `max` bytes inside the next packet, to be filled by the caller (pread into it) and
 * then committed: payload moves once.  Waits for window. */
afs_err rpc_write_room(struct rpc_call *call, size_t max, uint8_t **p, size_t *n);
afs_err rpc_write_commit(struct rpc_call *call, size_t n);
afs_err rpc_read_u32(struct rpc_call *call, uint32_t *v);
afs_err rpc_read_u64(struct rpc_call *call, uint64_t *v);
afs_err rpc_write_u32(struct rpc_call *call, uint32_t v);
afs_err rpc_write_u64(struct rpc_call *call, uint64_t v);

/* --- calling ------------------------------------------------------------------------------ */

struct rpc_conn_config {
	struct rx_addr peer;
	const struct rpc_iface *iface;
	struct rx_sec *sec;                /* taken, also on failure; NULL: rxnull */
	int64_t dead_ns, idle_ns, hard_ns; /* 0: defaults (12 s; off; off) */
	/* A port of this process with that service: calls are run by the caller's thread without the network, as if they came
	 * from `local_from` (local.c).  They end with AFS_ERESTARTING when it was closed.  NULL: the network. */
	struct rpc_port *local;
	struct rx_addr local_from;
};
/* AFS_ENOMEM.  Does not talk to the peer.  Any number of calls may be made at once: beyond four, more
 * Rx connections are opened beneath (up to a bound, then calls wait their turn). */
afs_err rpc_conn_new(struct rpc_port *port, const struct rpc_conn_config *config, struct rpc_conn **out);
struct rpc_conn *rpc_conn_ref(struct rpc_conn *c);
void rpc_conn_unref(struct rpc_conn *c);
struct rx_addr rpc_conn_peer(const struct rpc_conn *c);
bool rpc_conn_is_local(const struct rpc_conn *c); /* also false when the token was refused there */
int64_t rpc_conn_rtt_ns(const struct rpc_conn *c); /* smoothed; 0: not measured yet */

struct rpc_result {
	struct arena *arena; /* results are decoded into it; NULL when a result needs none */
	int32_t code;        /* out: the peer's abort code, 0 when there was none */
};

/* One call, waits.  The peer's abort comes back as the service's afs_err with the raw code in `res`. */
afs_err rpc_invoke(struct rpc_conn *c, const struct rpc_proc *proc, const void *in, void *out, struct rpc_result *res);

/* A split call: begin, read and write, then end (which decodes results) or cancel. */
afs_err rpc_begin(struct rpc_conn *c, const struct rpc_proc *proc, const void *in, struct rpc_call **out);
afs_err rpc_end(struct rpc_call *call, void *out, struct rpc_result *res); /* frees the call */
void rpc_cancel(struct rpc_call *call);                                    /* frees the call */
/* Many calls in flight without threads: begin each with rpc_begin, then end each. */
