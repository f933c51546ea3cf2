/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls of AFSVolService that only tools of ours make; made on connections of vol_iface. */
#pragma once
#include "cell/proto/vol.h"

#define XDR_ROWS "cell/admin/volx.def"
#include "rx/xdr/struct_pass.h"

#define RPC_PREFIX volx
#define RPC_ROWS "cell/admin/volx.rpc"
#define RPC_WANT_INDEX
#include "rx/xdr/iface_pass.h"

const struct rpc_proc *volx_proc(unsigned index);
