/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of AFSVolService. */
#include "cell/proto/vol.h"

#include "cell/proto/abort.h"

#define XDR_ROWS "cell/proto/vol.def"
#include "rx/xdr/codec_pass.h"

#define RPC_PREFIX vol
#define RPC_ROWS "cell/proto/vol.rpc"
#define RPC_WANT_PROCS
#include "rx/xdr/iface_pass.h"

const struct rpc_iface vol_iface = {
	.name = "AFSVol",
	.service = VOL_SERVICE,
	.stats_id = 16,
	.procs = vol_procs,
	.count = ARRAY_SIZE(vol_procs),
	.args_max = 16384,
	.results_max = 64 << 20,
	.abort_of = abort_of_vol,
	.err_of = err_of_vol,
};
