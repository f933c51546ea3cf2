/* SPDX-License-Identifier: BSD-2-Clause
 * Declares the handlers, as every file that defines some wants them. */
#pragma once
#include "fileserver/fs/fs_access.h"

#define RPC(code, wire, fn, shape, need, effect)                                                   \
	afs_err fs_##fn(struct rpc_call *, const struct fs_##fn##_in *, struct fs_##fn##_out *);
#include "cell/proto/fs.rpc"
#undef RPC
