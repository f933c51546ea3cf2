/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and tables of VOTE and DISK. */
#include "cell/proto/ubik.h"

#include "cell/proto/abort.h"

#define XDR_ROWS "cell/proto/ubik.def"
#include "rx/xdr/codec_pass.h"

#define RPC_WANT_PROCS
#define RPC_PREFIX ubik_vote
#define RPC_ROWS "cell/proto/ubik_vote.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_PROCS
#define RPC_PREFIX ubik_disk
#define RPC_ROWS "cell/proto/ubik_disk.rpc"
#include "rx/xdr/iface_pass.h"

/* DISK says its own "not authorised", outside of every table (ubik.md §9). */
static int32_t abort_of_disk(afs_err err)
{
	return err == AFS_EPERM || err == AFS_EACCESS ? UBIK_NOT_AUTHORISED : abort_of_vl(err);
}
static afs_err err_of_disk(int32_t code)
{
	return code == UBIK_NOT_AUTHORISED ? AFS_EACCESS : err_of_vl(code);
}

const struct rpc_iface ubik_vote_iface = {
	.name = "VOTE",
	.service = UBIK_VOTE_SERVICE,
	.stats_id = 11,
	.procs = ubik_vote_procs,
	.count = ARRAY_SIZE(ubik_vote_procs),
	.args_max = 64,
	.results_max = 1200, /* XDebug, 1140 bytes */
	.abort_of = abort_of_vl,
	.err_of = err_of_vl,
};

const struct rpc_iface ubik_disk_iface = {
	.name = "DISK",
	.service = UBIK_DISK_SERVICE,
	.stats_id = 12,
	.procs = ubik_disk_procs,
	.count = ARRAY_SIZE(ubik_disk_procs),
	.args_max = 8 + 4 + 64 * 12 + 4 + 65536, /* WriteV */
	.results_max = 1024,
	.abort_of = abort_of_disk,
	.err_of = err_of_disk,
};
