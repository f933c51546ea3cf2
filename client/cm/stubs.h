/* SPDX-License-Identifier: BSD-2-Clause
 * The file service's procedures, for calling: fs_call_fetch_status() and so on. */
#pragma once
#include "cell/proto/fs.h"
#include "rx/rpc/rpc.h"

#define RPC_WANT_STUBS
#define RPC_PREFIX fs
#define RPC_ROWS "cell/proto/fs.rpc"
#include "rx/xdr/iface_pass.h"
