/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the cache manager needs from outside. */
#pragma once
#include "cell/base/clk.h"
#include "rx/rpc/rpc.h"

struct client_ports {
	void *ctx;
	mono_ns (*now)(void *ctx);  /* never steps; every timer */
	wall_ns (*wall)(void *ctx); /* modification times, expiry of tokens */
	/* The port of a file server of this process that listens at `server`, and how the client looks from there; counted
	 * (rpc_port_unref).  NULL, or gives NULL: there is none, or it is to be reached over the network. */
	struct rpc_port *(*direct)(void *ctx, struct rx_addr server, struct rx_addr *from);
};
