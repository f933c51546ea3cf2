/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Ubik on paper: VOTE and DISK, beside the user service of each database.  Source: protocol ubik.md. */
#pragma once
#include "cell/proto/fid.h"
#include "rx/xdr/iface.h"

#define XDR_ROWS "cell/proto/ubik.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX ubik_vote
#define RPC_ROWS "cell/proto/ubik_vote.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_INDEX
#define RPC_PREFIX ubik_disk
#define RPC_ROWS "cell/proto/ubik_disk.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface ubik_vote_iface, ubik_disk_iface;

enum {
	UBIK_NOT_AUTHORISED = 10029, /* DISK's answer to who is not superuser */
	UBIK_DEADLOCK = 5402,
	UBIK_NO_SUCH_SERVER = 2, /* SDebug past the last other server */
};
