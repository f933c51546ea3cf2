/* SPDX-License-Identifier: BSD-2-Clause
 *
 * RMTSYS: how stock fs, aklog, tokens, unlog, vos and pts reach a cache manager that is no kernel
 * module, when AFSSERVER names this machine.  Source: pioctl.md. */
#pragma once
#include "rx/xdr/iface.h"

#define XDR_ROWS "cell/proto/rmt.def"
#include "rx/xdr/struct_pass.h"

#define RPC_PREFIX rmt
#define RPC_ROWS "cell/proto/rmt.rpc"
#define RPC_WANT_INDEX
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface rmt_iface;

enum { RMT_SERVICE = 4, RMT_PORT = 7009 };

/* cmd is an ioctl number; only its class and function count. */
#define PIOCTL(class, n) ((uint32_t)(class) << 8 | (n))
enum pioctl_call {
	PIOCTL_SETTOK = PIOCTL('V', 3),
	PIOCTL_GETTOK = PIOCTL('V', 8),
	PIOCTL_UNLOG = PIOCTL('V', 9),
	PIOCTL_CKCONN = PIOCTL('V', 12),
	PIOCTL_UNPAG = PIOCTL('V', 21),
	PIOCTL_GETCELL = PIOCTL('V', 27),
	PIOCTL_GET_WS_CELL = PIOCTL('V', 31),
	PIOCTL_GET_PRIMARY_CELL = PIOCTL('V', 33),
	PIOCTL_GETALIAS = PIOCTL('C', 2),
	PIOCTL_GETTOK2 = PIOCTL('C', 7),
	PIOCTL_SETTOK2 = PIOCTL('C', 8),
	PIOCTL_UNLOG_CELL = PIOCTL('O', 3),
};
