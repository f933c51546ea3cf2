/* SPDX-License-Identifier: BSD-2-Clause
 * Transactions and what is done to a volume's header in them.  A handler claims its transaction,
 * does its work, and releases it; the first error of a transaction is what EndTrans reports. */
#include "fileserver/vol/vol.h"

#include "cell/base/log.h"
#include "cell/proto/abort.h"

#define RPC_PREFIX vol
#define RPC_ROWS "cell/proto/vol.rpc"
#define RPC_WANT_HANDLERS
#include "rx/xdr/iface_pass.h"

#include <string.h>

afs_err volserver_new(const struct volserver_config *config, struct volserver **out)
{
	struct volserver *v = mem_new(struct volserver);
	if (!v)
		return AFS_ENOMEM;
	v->config = *config;
	vol_trans_init(&v->trans);
	*out = v;
	return AFS_OK;
}

static bool is_superuser(void *ctx, const struct rx_caller *caller)
{
	const struct volserver *v = ctx;
	return v->config.superuser && v->config.superuser(v->config.ctx, caller);
}

static void call_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code,
	int64_t took_ns)
{
	const struct volserver *v = ctx;
	if (v->config.done)
		v->config.done(v->config.ctx, call, in, err, code, took_ns);
}

size_t volserver_services(struct volserver *v, struct rpc_service *out, size_t n)
{
	if (n < 1)
		return 0;
	out[0] = (struct rpc_service){
		.iface = &vol_iface,
		.handlers = vol_handlers,
		.ctx = v,
		.least = v->config.least,
		.allow_anonymous = v->config.allow_anonymous,
		.superuser = is_superuser,
		.done = call_done,
	};
	return 1;
}

void vol_trans_finish(struct volserver *v, struct vol_trans *tr, bool given_up)
{
	struct vs_header h;
	vol_trans_remove(&v->trans, tr);
	if (tr->volume) {
		if (vs_volume_header(tr->volume, &h) == AFS_OK && h.destroy_me && given_up) {
			afs_err err = vs_volume_delete(tr->volume);
			log_info("vol.trans.purged volume=%u trans=%d err=%s", tr->volid, tr->tid,
				afs_err_name(err));
			tr->changed = false;
		} else if (vs_volume_claim(tr->volume, VS_FREE) != AFS_OK) {
			log_warn("vol.trans.not_freed volume=%u trans=%d", tr->volid, tr->tid);
		}
		vs_volume_unref(tr->volume);
	}
	if (tr->changed && v->config.changed)
		v->config.changed(v->config.ctx, tr->volid);
	mem_free(tr);
}

void volserver_tick(struct volserver *v, mono_ns now)
{
	struct vol_trans *tr;
	while ((tr = vol_trans_claim_idle(&v->trans, now - VOL_TRANS_IDLE))) {
		log_warn("vol.trans.timed_out volume=%u trans=%d last=%s", tr->volid, tr->tid, tr->proc);
		vol_trans_finish(v, tr, true);
	}
}

void volserver_free(struct volserver *v)
{
	struct vol_trans *tr;
	if (!v)
		return;
	while ((tr = vol_trans_claim_idle(&v->trans, MONO_NEVER)))
		vol_trans_finish(v, tr, true);
	vol_trans_fini(&v->trans);
	mem_free(v);
}

void vol_held_cleanup(struct vol_held *h)
{
	if (h->tr)
		vol_trans_release(&h->v->trans, h->tr, clk_mono());
}

afs_err vol_hold(struct rpc_call *call, int32_t tid, const char *proc, struct vol_held *out)
{
	out->v = call->service;
	return vol_trans_claim(&out->v->trans, tid, proc, false, &out->tr);
}

afs_err vol_noted(struct vol_held *h, afs_err err)
{
	if (err && !h->tr->result)
		h->tr->result = err;
	return err;
}

static afs_err set_header(struct vol_held *h, const struct vs_header *fields, uint32_t mask)
{
	if (h->tr->iflags == VOL_IT_READONLY)
		return AFS_EROFS;
	return vol_noted(h, vs_volume_set_header(h->tr->volume, fields, mask));
}

static afs_err partition_of(struct volserver *v, int32_t id, struct vs_partition **out)
{
	if (id < 0)
		return AFS_EINVAL;
	*out = vs_partition_find(v->config.store, (unsigned)id);
	return *out ? AFS_OK : AFS_ENOVOL;
}

static afs_err claim_of(int32_t iflags, enum vs_claim *claim)
{
	if (iflags & VOL_IT_CREATE)
		*claim = VS_CLAIM_READ;
	else if (iflags & VOL_IT_BUSY)
		*claim = VS_CLAIM_BUSY;
	else if (iflags & VOL_IT_READONLY)
		*claim = VS_CLAIM_READ;
	else if (iflags & VOL_IT_OFFLINE)
		*claim = VS_CLAIM_OFF;
	else
		return AFS_EINVAL;
	return AFS_OK;
}

afs_err vol_trans_create(
	struct rpc_call *call, const struct vol_trans_create_in *in, struct vol_trans_create_out *out)
{
	struct volserver *v = call->service;
	struct vs_partition *part;
	enum vs_claim claim;
	struct vol_trans *tr;
	struct vs_header h;
	CLEANUP(vs_volume) struct vs_volume *vol = NULL;

	TRY(claim_of(in->flags, &claim));
	TRY(partition_of(v, in->partition, &part));
	TRY(vs_volume_find(v->config.store, part, in->volid, &vol));
	/* a clone can be read while others use it: only a read-write volume makes them wait */
	TRY(vs_volume_header(vol, &h));
	if (claim == VS_CLAIM_BUSY && h.type != AFS_VOL_RW)
		claim = VS_CLAIM_READ;
	TRY(vol_trans_begin(&v->trans, in->volid, in->partition, in->flags, "TransCreate", call->now, &tr));
	afs_err err = vs_volume_claim(vol, claim);
	if (err) {
		vol_trans_remove(&v->trans, tr);
		mem_free(tr);
		return err;
	}
	tr->volume = TAKE(vol);
	out->trans = tr->tid;
	vol_trans_release(&v->trans, tr, call->now);
	return AFS_OK;
}

afs_err vol_end_trans(struct rpc_call *call, const struct vol_end_trans_in *in, struct vol_end_trans_out *out)
{
	struct volserver *v = call->service;
	struct vol_trans *tr;
	TRY(vol_trans_claim(&v->trans, in->trans, "EndTrans", true, &tr));
	out->rcode = tr->result ? abort_of_vol(tr->result) : 0;
	vol_trans_finish(v, tr, false);
	return AFS_OK;
}

afs_err vol_create_volume(
	struct rpc_call *call, const struct vol_create_volume_in *in, struct vol_create_volume_out *out)
{
	struct volserver *v = call->service;
	struct vs_partition *part;
	struct vol_trans *tr;

	if (in->name.len == 0 || in->name.len > AFS_VOLNAME_MAX)
		return AFS_EBADNAME;
	if (in->type < AFS_VOL_RW || in->type > AFS_VOL_BK)
		return AFS_EINVAL;
	if (!in->volid)
		return AFS_ETOOBIG;
	if (in->partition < 0)
		return AFS_EINVAL;
	if (partition_of(v, in->partition, &part) != AFS_OK)
		return AFS_EIO;

	struct vs_header h = {.id = in->volid, .parent = in->parent ? in->parent : in->volid,
		.type = (enum afs_voltype)in->type, .quota_kib = 5000};
	memcpy(h.name, in->name.p, in->name.len);
	/* a target of a restore or move is made without a root directory */
	bool with_root = !(in->type == AFS_VOL_RW && in->parent == in->volid);

	TRY(vol_trans_begin(&v->trans, in->volid, in->partition, VOL_IT_CREATE, "CreateVolume", call->now, &tr));
	afs_err err = vs_volume_create(part, &h, with_root, clk_wall(), &tr->volume);
	if (!err)
		err = vs_volume_claim(tr->volume, VS_CLAIM_OFF);
	if (err) {
		vol_trans_finish(v, tr, true);
		return err == AFS_EVOLEXISTS ? AFS_EIO : err;
	}
	out->volid = in->volid;
	out->trans = tr->tid;
	vol_trans_release(&v->trans, tr, call->now);
	return AFS_OK;
}

afs_err vol_delete_volume(
	struct rpc_call *call, const struct vol_delete_volume_in *in, struct vol_delete_volume_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	TRY(vol_hold(call, in->trans, "DeleteVolume", &h));
	if (h.tr->iflags == VOL_IT_READONLY)
		return AFS_EROFS;
	TRY(vol_noted(&h, vs_volume_delete(h.tr->volume)));
	vs_volume_unref(h.tr->volume);
	h.tr->volume = NULL;
	h.tr->deleted = h.tr->changed = true;
	return AFS_OK;
}

afs_err vol_nuke_volume(
	struct rpc_call *call, const struct vol_nuke_volume_in *in, struct vol_nuke_volume_out *out)
{
	(void)out;
	struct volserver *v = call->service;
	struct vs_partition *part;
	CLEANUP(vs_volume) struct vs_volume *vol = NULL;
	if (partition_of(v, in->partition, &part) != AFS_OK)
		return AFS_EBADPART;
	if (vol_trans_holds(&v->trans, in->volid, in->partition))
		return AFS_EVOLTRANS;
	TRY(vs_volume_find(v->config.store, part, in->volid, &vol));
	TRY(vs_volume_delete(vol));
	if (v->config.changed)
		v->config.changed(v->config.ctx, in->volid);
	return AFS_OK;
}

afs_err vol_set_flags(struct rpc_call *call, const struct vol_set_flags_in *in, struct vol_set_flags_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	TRY(vol_hold(call, in->trans, "SetFlags", &h));
	struct vs_header fields = {
		.destroy_me = in->flags & VOL_VT_DELETE_ON_SALVAGE,
		.in_service = !(in->flags & VOL_VT_OUT_OF_SERVICE),
	};
	TRY(set_header(&h, &fields, VS_H_DESTROY_ME | VS_H_IN_SERVICE));
	h.tr->vflags = in->flags;
	return AFS_OK;
}

afs_err vol_get_flags(struct rpc_call *call, const struct vol_get_flags_in *in, struct vol_get_flags_out *out)
{
	CLEANUP(vol_held) struct vol_held h = {0};
	TRY(vol_hold(call, in->trans, "GetFlags", &h));
	out->flags = h.tr->vflags;
	return AFS_OK;
}

afs_err vol_get_name(struct rpc_call *call, const struct vol_get_name_in *in, struct vol_get_name_out *out)
{
	CLEANUP(vol_held) struct vol_held h = {0};
	struct vs_header header;
	TRY(vol_hold(call, in->trans, "GetName", &h));
	TRY(vs_volume_header(h.tr->volume, &header));
	char *copy = arena_strndup(call->arena, header.name, strlen(header.name));
	if (!copy)
		return AFS_ENOMEM;
	out->name = XDR_STR_OF(copy);
	return AFS_OK;
}

afs_err vol_get_status(struct rpc_call *call, const struct vol_get_status_in *in, struct vol_get_status_out *out)
{
	CLEANUP(vol_held) struct vol_held h = {0};
	struct vs_header header;
	TRY(vol_hold(call, in->trans, "GetStatus", &h));
	TRY(vs_volume_header(h.tr->volume, &header));
	out->status = (struct volser_status){
		.volID = header.id,
		.nextUnique = (uint32_t)header.unique,
		.type = header.type,
		.parentID = header.parent,
		.cloneID = header.clone,
		.backupID = header.backup,
		.restoredFromID = header.restored_from,
		.maxQuota = (int32_t)MIN(header.quota_kib, (uint64_t)INT32_MAX),
		.minQuota = (int32_t)MIN(header.min_quota_kib, (uint64_t)INT32_MAX),
		.owner = header.owner,
		.creationDate = clk_wire_sec(header.creation),
		.accessDate = clk_wire_sec(header.access),
		.updateDate = clk_wire_sec(header.update),
		.expirationDate = clk_wire_sec(header.expiration),
		.backupDate = clk_wire_sec(header.backup_date),
		.copyDate = clk_wire_sec(header.copy),
	};
	return AFS_OK;
}

afs_err vol_set_ids_types(
	struct rpc_call *call, const struct vol_set_ids_types_in *in, struct vol_set_ids_types_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	if (in->name.len == 0 || in->name.len > AFS_VOLNAME_MAX)
		return AFS_EBADNAME;
	if (in->type < AFS_VOL_RW || in->type > AFS_VOL_BK)
		return AFS_EINVAL;
	TRY(vol_hold(call, in->trans, "SetIdsTypes", &h));
	struct vs_header fields = {.type = (enum afs_voltype)in->type, .parent = in->parent,
		.clone = in->clone, .backup = in->backup};
	memcpy(fields.name, in->name.p, in->name.len);
	return set_header(&h, &fields, VS_H_NAME | VS_H_TYPE | VS_H_PARENT | VS_H_CLONE | VS_H_BACKUP);
}

afs_err vol_set_date(struct rpc_call *call, const struct vol_set_date_in *in, struct vol_set_date_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	TRY(vol_hold(call, in->trans, "SetDate", &h));
	struct vs_header fields = {.creation = vol_wall(in->date)};
	return set_header(&h, &fields, VS_H_CREATION);
}

/* Only these fields are honoured; -1 leaves one as it is. */
afs_err vol_set_info(struct rpc_call *call, const struct vol_set_info_in *in, struct vol_set_info_out *out)
{
	(void)out;
	const struct volintInfo *i = &in->info;
	CLEANUP(vol_held) struct vol_held h = {0};
	struct vs_header f = {0};
	uint32_t mask = 0;
	TRY(vol_hold(call, in->trans, "SetStatus", &h));
	if (i->maxquota != -1) {
		f.quota_kib = (uint32_t)i->maxquota;
		mask |= VS_H_QUOTA;
	}
	if (i->dayUse != -1) {
		f.day_use = (uint32_t)i->dayUse;
		f.day_use_date = clk_wall();
		mask |= VS_H_DAY_USE;
	}
	if (i->creationDate != UINT32_MAX) {
		f.creation = vol_wall(i->creationDate);
		mask |= VS_H_CREATION;
	}
	if (i->updateDate != UINT32_MAX) {
		f.update = vol_wall(i->updateDate);
		mask |= VS_H_UPDATE;
	}
	if (i->spare2 != -1) {
		f.update_counter = (uint32_t)i->spare2;
		mask |= VS_H_UPDATE_COUNTER;
	}
	return mask ? set_header(&h, &f, mask) : AFS_OK;
}

afs_err vol_get_nth_volume(
	struct rpc_call *call, const struct vol_get_nth_volume_in *in, struct vol_get_nth_volume_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, VOLS_ERROR_BASE + 1); /* no server has ever answered it */
}

afs_err vol_signal_restore(
	struct rpc_call *call, const struct vol_signal_restore_in *in, struct vol_signal_restore_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK; /* a word to servers that keep no transactions */
}
