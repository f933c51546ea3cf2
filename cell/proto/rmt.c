/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of RMTSYS. */
#include "cell/proto/rmt.h"

#include "cell/proto/abort.h"

#define XDR_ROWS "cell/proto/rmt.def"
#include "rx/xdr/codec_pass.h"

#define RPC_PREFIX rmt
#define RPC_ROWS "cell/proto/rmt.rpc"
#define RPC_WANT_PROCS
#include "rx/xdr/iface_pass.h"

const struct rpc_iface rmt_iface = {
	.name = "RMTSYS",
	.service = RMT_SERVICE,
	.stats_id = 10,
	.procs = rmt_procs,
	.count = ARRAY_SIZE(rmt_procs),
	.args_max = 40000,
	.abort_of = abort_of_fs,
	.err_of = err_of_fs,
};
