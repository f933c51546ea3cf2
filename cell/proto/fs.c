/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of RXAFS. */
#include "cell/proto/fs.h"

#include "cell/proto/abort.h"

#define XDR_ROWS "cell/proto/fs.def"
#include "rx/xdr/codec_pass.h"

#define RPC_WANT_PROCS
#define RPC_PREFIX fs
#define RPC_ROWS "cell/proto/fs.rpc"
#include "rx/xdr/iface_pass.h"

const struct rpc_iface fs_iface = {
	.name = "RXAFS",
	.service = FS_SERVICE,
	.stats_id = 7,
	.procs = fs_procs,
	.count = ARRAY_SIZE(fs_procs),
	.args_max = 4096,    /* SetVolumeStatus with three full strings */
	.results_max = 8192, /* a bulk reply: 50 statuses and callbacks, 4832 bytes */
	.abort_of = abort_of_fs,
	.err_of = err_of_fs,
};
