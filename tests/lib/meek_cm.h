/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A cache manager's callback service that believes everything: for programs that call file servers and
 * keep nothing.  Included by one .c of a program.
 *
 *   struct rpc_service service = meek_service(); */
#pragma once
#include "cell/base/rand.h"
#include "cell/proto/abort.h"
#include "cell/proto/cb.h"
#include "rx/rpc/rpc.h"

static struct afsUUID meek_uuid;

static afs_err meek_believe(struct rpc_call *call, const void *in, void *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}
static afs_err meek_unknown(struct rpc_call *call, const void *in, void *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, RXGEN_OPCODE);
}
static afs_err meek_who(struct rpc_call *call, const void *in, void *out)
{
	(void)call, (void)in;
	((struct cb_who_are_you_out *)out)->addr.uuid = meek_uuid;
	return AFS_OK;
}
static afs_err meek_probe_uuid(struct rpc_call *call, const void *in, void *out)
{
	(void)out;
	const struct cb_probe_uuid_in *i = in;
	return afs_uuid_equal(&i->client, &meek_uuid) ? AFS_OK : rpc_refuse(call, 1);
}
static afs_err meek_tell(struct rpc_call *call, const void *in, void *out)
{
	(void)call, (void)in;
	static uint32_t caps[] = {CB_CAP_ERRORTRANS};
	struct cb_tell_me_about_yourself_out *o = out;
	o->addr.uuid = meek_uuid;
	o->capabilities.v = caps;
	o->capabilities.n = 1;
	return AFS_OK;
}

static struct rpc_service meek_service(void)
{
	static rpc_handler *handlers[cb_op_count];
	for (int i = 0; i < cb_op_count; i++)
		handlers[i] = meek_unknown;
	handlers[cb_op_call_back] = handlers[cb_op_probe] = meek_believe;
	handlers[cb_op_init_call_back_state] = handlers[cb_op_init_call_back_state3] = meek_believe;
	handlers[cb_op_who_are_you] = meek_who;
	handlers[cb_op_probe_uuid] = meek_probe_uuid;
	handlers[cb_op_tell_me_about_yourself] = meek_tell;
	meek_uuid = afs_uuid_random();
	return (struct rpc_service){.iface = &cb_iface, .handlers = handlers, .allow_anonymous = true};
}
