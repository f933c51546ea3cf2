/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The handlers of bos.rpc, declared from its rows. */
#pragma once
#include "cell/proto/bos.h"
#include "rx/rpc/rpc.h"

#define RPC(op, wire, fn, shape, need, effect)                                                     \
	afs_err bos_##fn(struct rpc_call *, const struct bos_##fn##_in *, struct bos_##fn##_out *);
#include "cell/proto/bos.rpc"
#undef RPC
