/* SPDX-License-Identifier: BSD-2-Clause
 *
 * RXGK on paper: the negotiation service, and what its tokens hold.  Source: rx-security.md §11.6-11.7. */
#pragma once
#include "rx/xdr/iface.h"

enum {
	GK_SERVICE = 34567,
	GK_TOKEN_MAX = 12000, /* also of GSS tokens, which may carry a ticket with authorization data */
	GK_INFO_MAX = 16384,
	GK_NAME_KRB4 = 1, /* name, name.instance, either with @cell */
	GK_NAME_GSS = 2,  /* RFC 2743 §3.2 exported name */
};

#define XDR_ROWS "cell/proto/gk.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX gk
#define RPC_ROWS "cell/proto/gk.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface gk_iface;
