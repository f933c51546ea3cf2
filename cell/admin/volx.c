/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and rows of volx.rpc. */
#include "cell/admin/volx.h"

#define XDR_ROWS "cell/admin/volx.def"
#include "rx/xdr/codec_pass.h"

#define RPC_PREFIX volx
#define RPC_ROWS "cell/admin/volx.rpc"
#define RPC_WANT_PROCS
#include "rx/xdr/iface_pass.h"

const struct rpc_proc *volx_proc(unsigned index) { return &volx_procs[index]; }
