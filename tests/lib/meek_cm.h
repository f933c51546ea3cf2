/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A cache manager's callback service that believes everything: for programs that call file servers and
 * keep nothing.  Included by one .c of a program; `uuid` is to be set before the port opens. */
#pragma once
#include "cell/proto/cb.h"
#include "rx/rpc/rpc.h"

#define RPC_WANT_HANDLERS
#define RPC_PREFIX cb
#define RPC_ROWS "cell/proto/cb.rpc"
#include "rx/xdr/iface_pass.h"

static struct afsUUID uuid;
afs_err cb_call_back(struct rpc_call *call, const struct cb_call_back_in *in, struct cb_call_back_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}
afs_err cb_init_call_back_state(struct rpc_call *call, const struct cb_init_call_back_state_in *in,
	struct cb_init_call_back_state_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}
afs_err cb_init_call_back_state3(struct rpc_call *call, const struct cb_init_call_back_state3_in *in,
	struct cb_init_call_back_state3_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}
afs_err cb_probe(struct rpc_call *call, const struct cb_probe_in *in, struct cb_probe_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}
afs_err cb_who_are_you(struct rpc_call *call, const struct cb_who_are_you_in *in, struct cb_who_are_you_out *out)
{
	(void)call, (void)in;
	out->addr.uuid = uuid;
	return AFS_OK;
}
afs_err cb_probe_uuid(struct rpc_call *call, const struct cb_probe_uuid_in *in, struct cb_probe_uuid_out *out)
{
	(void)out;
	return afs_uuid_equal(&in->client, &uuid) ? AFS_OK : rpc_refuse(call, 1);
}
afs_err cb_tell_me_about_yourself(struct rpc_call *call, const struct cb_tell_me_about_yourself_in *in,
	struct cb_tell_me_about_yourself_out *out)
{
	(void)call, (void)in;
	static uint32_t caps[] = {CB_CAP_ERRORTRANS};
	out->addr.uuid = uuid;
	out->capabilities.v = caps;
	out->capabilities.n = 1;
	return AFS_OK;
}
