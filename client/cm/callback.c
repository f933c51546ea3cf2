/* SPDX-License-Identifier: BSD-2-Clause
 * RXAFSCB: what file servers tell us.  Each handler marks and answers; nothing here waits for a call,
 * nor for a lock that is held across one. */
#include "client/cm/cm.h"
#include "client/cm/debug.h"

#include "cell/base/log.h"

#include <string.h>

static void break_one(struct cm_vnode *v, void *ctx)
{
	(void)ctx;
	if (v->vol->id)
		cm_break(v);
}

static void break_volume(struct cm *cm, uint32_t id)
{
	for (size_t i = 0; i < cm->cell_n; i++) {
		struct cm_volume *vol = cm_volume_get(cm, &cm->cells[i], id);
		if (!vol)
			continue;
		atomic_fetch_add(&vol->breaks, 1);
		cm_volume_forget(cm, vol);
		cm_vnodes_each(cm, vol, break_one, NULL);
	}
}

static afs_err on_call_back(struct rpc_call *call, const void *in_, void *out)
{
	(void)out;
	struct cm *cm = call->service;
	const struct cb_call_back_in *in = in_;
	for (uint32_t i = 0; i < in->Fids.n; i++) {
		const struct AFSFid *fid = &in->Fids.v[i];
		if (!fid->Volume)
			continue;
		atomic_fetch_add(&cm->n_breaks, 1);
		if (!fid->Vnode) {
			break_volume(cm, fid->Volume);
			continue;
		}
		bool known = false;
		for (size_t c = 0; c < cm->cell_n; c++) { /* two cells may use one volume number */
			struct cm_vnode *v = cm_vnode_find(cm, &cm->cells[c], fid);
			if (!v)
				continue;
			known = true;
			cm_break(v);
			cm_vnode_unref(v);
		}
		if (!known) /* perhaps of an object that a reply is about to name */
			atomic_fetch_add(&cm->strange, 1);
	}
	return AFS_OK;
}

struct reset {
	struct cm *cm;
	const struct cm_server *server; /* NULL: nobody knows which, so all */
};

static void break_of_server(struct cm_vnode *v, void *ctx)
{
	struct reset *r = ctx;
	if (!v->vol->id)
		return;
	bool mine = !r->server;
	mtx_lock(&r->cm->volumes_lock);
	for (unsigned i = 0; i < v->vol->site_n && !mine; i++)
		mine = v->vol->sites[i] == r->server;
	mine |= !v->vol->located;
	mtx_unlock(&r->cm->volumes_lock);
	if (mine)
		cm_break(v);
}

static void reset(struct cm *cm, const struct cm_server *server)
{
	atomic_fetch_add(&cm->resets, 1);
	log_debug("cm.server.reset known=%d", server != NULL);
	cm_vnodes_each(cm, NULL, break_of_server, &(struct reset){cm, server});
}

static afs_err on_init_state(struct rpc_call *call, const void *in, void *out)
{
	(void)in, (void)out;
	reset(call->service, NULL);
	return AFS_OK;
}

static afs_err on_init_state3(struct rpc_call *call, const void *in_, void *out)
{
	(void)out;
	const struct cb_init_call_back_state3_in *in = in_;
	struct cm *cm = call->service;
	reset(cm, cm_server_by_uuid(cm, &in->server));
	return AFS_OK;
}

static afs_err on_probe(struct rpc_call *call, const void *in, void *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}

/* No addresses: servers would call at port 7001 of each, and we may listen elsewhere. */
static void about(const struct cm *cm, struct interfaceAddr *a) { a->uuid = cm->uuid; }

static afs_err on_who_are_you(struct rpc_call *call, const void *in, void *out_)
{
	(void)in;
	struct cb_who_are_you_out *out = out_;
	about(call->service, &out->addr);
	return AFS_OK;
}

static afs_err on_probe_uuid(struct rpc_call *call, const void *in_, void *out)
{
	(void)out;
	const struct cb_probe_uuid_in *in = in_;
	const struct cm *cm = call->service;
	return afs_uuid_equal(&in->client, &cm->uuid) ? AFS_OK : rpc_refuse(call, CB_WRONG_UUID);
}

static afs_err on_tell_me(struct rpc_call *call, const void *in, void *out_)
{
	(void)in;
	struct cb_tell_me_about_yourself_out *out = out_;
	static uint32_t caps[] = {CB_CAP_ERRORTRANS};
	about(call->service, &out->addr);
	out->capabilities.v = caps;
	out->capabilities.n = ARRAY_SIZE(caps);
	return AFS_OK;
}

static rpc_handler *const handlers[cb_op_count] = {
	[cb_op_call_back] = on_call_back,
	[cb_op_init_call_back_state] = on_init_state,
	[cb_op_probe] = on_probe,
	[cb_op_who_are_you] = on_who_are_you,
	[cb_op_init_call_back_state3] = on_init_state3,
	[cb_op_probe_uuid] = on_probe_uuid,
	[cb_op_tell_me_about_yourself] = on_tell_me,
	[cb_op_get_lock] = cm_on_get_lock,
	[cb_op_get_ce] = cm_on_get_ce,
	[cb_op_get_ce64] = cm_on_get_ce64,
	[cb_op_x_stats_version] = cm_on_x_stats_version,
	[cb_op_get_x_stats] = cm_on_get_x_stats,
	[cb_op_get_server_prefs] = cm_on_get_server_prefs,
	[cb_op_get_cell_serv_db] = cm_on_get_cell_serv_db,
	[cb_op_get_local_cell] = cm_on_get_local_cell,
	[cb_op_get_cache_config] = cm_on_get_cache_config,
	[cb_op_get_cell_by_num] = cm_on_get_cell_by_num,
};

void cm_callback_service(struct cm *cm, struct rpc_service *out)
{
	*out = (struct rpc_service){
		.iface = &cb_iface,
		.handlers = handlers,
		.ctx = cm,
		.least = RX_LEVEL_CLEAR,
		.allow_anonymous = true,
	};
}
