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
};
