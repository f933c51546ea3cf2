/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Statistics of each procedure that a port serves or calls, for the port ("the process": stock servers
 * have one port each) and for each peer; and the service that shows them, RXSTATS.
 *
 * Nothing is gathered until an administrator enables it; disabling forgets what was gathered.  Bounded:
 * so many interfaces, so many peers; the peer that was quiet longest makes room.  Interfaces without a
 * stats_id are not counted, and a procedure's position in its interface is that of our row.
 *
 * Source: debug-stats.md §2. */
#pragma once
#include "rx/rpc/rpc.h"

enum {
	RPC_STATS_IFACES = 8,    /* of one peer: served and called */
	RPC_STATS_PEERS = 32,
	RPC_STATS_ENTRY = 28,    /* words */
	RPC_STATS_WORDS_MAX = 64 * 1024,
};

#define XDR_ROWS "rx/rpc/rxstats.def"
#include "rx/xdr/struct_pass.h"
#define RPC_WANT_INDEX
#define RPC_PREFIX rxstats
#define RPC_ROWS "rx/rpc/rxstats.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface rxstats_iface;

struct rpc_stats;
struct rpc_stats *rpc_stats_new(void); /* NULL: out of memory */
void rpc_stats_free(struct rpc_stats *st);
/* The service for this port; who may change is asked of `first`, the port's own. */
struct rpc_service rpc_stats_service(const struct rpc_service *first);

/* True when there is something to note at all; cheap. */
bool rpc_stats_wanted(const struct rpc_stats *st);
/* A call ended.  Never waits. */
struct rpc_stats_call {
	const struct rpc_iface *iface;
	const struct rpc_proc *proc;
	struct rx_addr peer;
	bool made;                /* by us; else served */
	uint64_t sent, received;  /* bytes of arguments and results */
	int64_t queue_ns, run_ns;
	mono_ns now;
};
void rpc_stats_note(struct rpc_stats *st, const struct rpc_stats_call *call);
