/* SPDX-License-Identifier: BSD-2-Clause
 *
 * AFSVolService: volumes as an administrator's tools move them.  Source: volserver.md. */
#pragma once
#include "cell/proto/fid.h"
#include "rx/xdr/iface.h"

#define XDR_ROWS "cell/proto/vol.def"
#include "rx/xdr/struct_pass.h"

#define RPC_PREFIX vol
#define RPC_ROWS "cell/proto/vol.rpc"
#define RPC_WANT_INDEX
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface vol_iface;

/* TransCreate: how a transaction holds its volume. */
enum { VOL_IT_OFFLINE = 1, VOL_IT_BUSY = 2, VOL_IT_READONLY = 8, VOL_IT_CREATE = 0x10 };
/* SetFlags. */
enum { VOL_VT_DELETE_ON_SALVAGE = 1, VOL_VT_OUT_OF_SERVICE = 2, VOL_VT_DELETED = 4 };
/* volintInfo.status. */
enum { VOL_STATUS_OK = 2, VOL_STATUS_BUSY = 110 };
enum { VOL_DUMP_OMIT_DIRS = 1 };
