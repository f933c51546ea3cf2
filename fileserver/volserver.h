/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The volume server: what administrators' tools (vos) do with volumes, beside the file service.
 *
 *   volserver_new(&config, &vs)            nothing runs yet
 *   volserver_services(vs, services, n)    rows for rpc_port_open() of port 7005
 *   volserver_tick(vs, now)                about every 30 s: ends transactions that idle
 *   volserver_free(vs)                     after rpc_port_close(port) */
#pragma once
#include "cell/proto/vol.h"
#include "rx/rpc/rpc.h"

struct vs_store;
struct volserver;

struct volserver_config {
	struct vs_store *store; /* the caller's; outlives the volume server */
	enum rx_sec_level least;
	bool allow_anonymous;   /* for the calls that only list */
	bool (*superuser)(void *ctx, const struct rx_caller *caller);
	/* The content of `volume` changed as a whole: promises on it must be broken.  Must not wait. */
	void (*changed)(void *ctx, afs_volid volume);
	/* A connection to the volume server at `to`, as the cell itself; the caller gives it back
	 * (rpc_conn_unref).  NULL: nothing is ever sent to other servers. */
	afs_err (*connect)(void *ctx, struct rx_addr to, struct rpc_conn **out);
	void (*done)(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code,
		int64_t took_ns);
	void *ctx; /* of the four above */
};

/* AFS_ENOMEM. */
afs_err volserver_new(const struct volserver_config *config, struct volserver **out);
size_t volserver_services(struct volserver *v, struct rpc_service *out, size_t n);
void volserver_tick(struct volserver *v, mono_ns now);
/* Ends what transactions are left: half-made volumes in them are purged. */
void volserver_free(struct volserver *v);
