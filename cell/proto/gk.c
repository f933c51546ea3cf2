/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of RXGK. */
#include "cell/proto/gk.h"

#include "cell/proto/abort.h"
#include "rx/sec/security.h"

#define XDR_ROWS "cell/proto/gk.def"
#include "rx/xdr/codec_pass.h"

#define RPC_WANT_PROCS
#define RPC_PREFIX gk
#define RPC_ROWS "cell/proto/gk.rpc"
#include "rx/xdr/iface_pass.h"

/* Its own errors are rxgk's, as index 6 has them. */
static int32_t abort_of_gk(afs_err err)
{
	int32_t code = rx_gk_code(RX_SEC_YFS_RXGK, err);
	return code ? code : abort_of_pt(err);
}

static afs_err err_of_gk(int32_t code) { return err_of_pt(code); }

const struct rpc_iface gk_iface = {
	.name = "RXGK",
	.service = GK_SERVICE,
	.procs = gk_procs,
	.count = ARRAY_SIZE(gk_procs),
	.args_max = 4096 + 3 * GK_TOKEN_MAX,
	.results_max = 64 + 2 * GK_TOKEN_MAX + GK_INFO_MAX,
	.abort_of = abort_of_gk,
	.err_of = err_of_gk,
};
