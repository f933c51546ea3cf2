/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of PR. */
#include "cell/proto/pt.h"

#include "cell/proto/abort.h"

#define XDR_ROWS "cell/proto/pt.def"
#include "rx/xdr/codec_pass.h"

#define RPC_WANT_PROCS
#define RPC_PREFIX pt
#define RPC_ROWS "cell/proto/pt.rpc"
#include "rx/xdr/iface_pass.h"

const struct rpc_iface pt_iface = {
	.name = "PR",
	.service = PT_SERVICE,
	.stats_id = 8,
	.procs = pt_procs,
	.count = ARRAY_SIZE(pt_procs),
	.args_max = 4 + PT_NAMES_MAX * 256,        /* NameToID */
	.results_max = 64 + PT_LIST_MAX * (48 + 256), /* more than IDToName or ListEntries need */
	.abort_of = abort_of_pt,
	.err_of = err_of_pt,
};
