/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls that a file server makes to cache managers, as functions that a test replaces.
 * All wait for the peer unless they say otherwise, bounded by CB_DEAD_NS and CB_HARD_NS. */
#pragma once
#include "cell/base/clk.h"
#include "cell/proto/cb.h"
#include "rx/rpc/rpc.h"

struct cb_answer {
	bool has_uuid; /* false: the client knows neither call, or its UUID is nil */
	uint8_t uuid[AFS_UUID_BYTES];
	uint32_t caps; /* word 0 */
};

struct cb_wire {
	void *ctx;
	/* TellMeAboutYourself, then WhoAreYou when that is unknown.  AFS_OK also when both are. */
	afs_err (*who)(void *ctx, struct rx_addr to, struct cb_answer *out);
	/* InitCallBackState3 with the server's UUID, or InitCallBackState for NULL. */
	afs_err (*init)(void *ctx, struct rx_addr to, const struct afsUUID *server);
	/* ProbeUuid, or Probe for NULL. */
	afs_err (*probe)(void *ctx, struct rx_addr to, const uint8_t *uuid);
	/* CallBack with at most CB_FIDS_MAX fids.  begin does not wait; several may be under way to
	 * different hosts.  `delayed` sends a DROPPED callback per fid and may take as long as `who`, for
	 * no changer waits.  end frees *call. */
	afs_err (*break_begin)(void *ctx, struct rx_addr to, const struct AFSFid *fids, size_t n,
		bool delayed, void **call);
	afs_err (*break_end)(void *ctx, void *call);
	/* A call from this address came over `port`: calls to it go the same way, since a server with
	 * several addresses must answer from the one that was asked.  Does not wait. */
	void (*via)(void *ctx, struct rx_addr from, struct rpc_port *port);
	/* The address is not in use any more; does not wait. */
	void (*forget)(void *ctx, struct rx_addr to);
	void (*free)(void *ctx);
};

/* The real one.  Addresses without a `via` are called from `port`; a call before it is set is
 * AFS_EDEAD.  NULL: no more calls, and all connections are given back (before their ports close). */
struct cb_wire_rpc;
afs_err cb_wire_rpc_new(struct cb_wire *out);
void cb_wire_rpc_set_port(struct cb_wire *wire, struct rpc_port *port);
/* A break is given up after half of this (cb_break.c tries twice); 0: CB_BREAK_WAIT_NS. */
void cb_wire_rpc_set_wait(struct cb_wire *wire, int64_t break_wait_ns);
