/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The handlers of vol.rpc, declared from its rows. */
#pragma once
#include "cell/proto/vol.h"
#include "rx/rpc/rpc.h"

#define RPC(op, wire, fn, shape, need, effect)                                                     \
	afs_err vol_##fn(struct rpc_call *, const struct vol_##fn##_in *, struct vol_##fn##_out *);
#include "cell/proto/vol.rpc"
#undef RPC
