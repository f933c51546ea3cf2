/* SPDX-License-Identifier: BSD-2-Clause
 * Clone, ReClone, ConvertROtoRWvolume, SetForwarding, SplitVolume.  A clone is an epoch of the store:
 * what these calls do takes the same time whatever the volume's size.  Source: volserver.md §5.1. */
#include "fileserver/vol/vol.h"
#include "fileserver/vol/vol_handlers.h"

#include "cell/base/log.h"

#include <string.h>

static void tell_changed(struct volserver *v, afs_volid id)
{
	if (v->config.changed)
		v->config.changed(v->config.ctx, id);
}

static afs_err in_service(struct vs_volume *vol)
{
	struct vs_header h;
	TRY(vs_volume_header(vol, &h));
	return h.in_service && !h.destroy_me ? AFS_OK : AFS_EVOFFLINE;
}

/* A clone that the new one is to be instead of: read-only, of the same parent and partition. */
static afs_err purge_judge(struct volserver *v, struct vs_volume *src, uint32_t id, struct vs_volume **out)
{
	struct vs_header s, h;
	if (vol_trans_holds(&v->trans, id, (int32_t)vs_partition_id(vs_volume_partition(src))))
		return AFS_EVOLTRANS;
	TRY(vs_volume_header(src, &s));
	if (vs_volume_find(v->config.store, vs_volume_partition(src), id, out) != AFS_OK)
		return AFS_EXDEV;
	TRY(vs_volume_header(*out, &h));
	return h.type == AFS_VOL_RO && h.parent == s.parent ? AFS_OK : AFS_EINVAL;
}

static afs_err make_clone(struct vol_held *h, const struct vol_clone_in *in)
{
	struct volserver *v = h->v;
	struct vs_volume *src = h->tr->volume;
	CLEANUP(vs_volume) struct vs_volume *made = NULL, *purge = NULL;
	struct vs_header want = {.id = in->newVol, .type = (enum afs_voltype)in->newType};
	memcpy(want.name, in->newName.p, in->newName.len);
	TRY(in_service(src));
	if (vol_trans_holds(&v->trans, in->newVol, h->tr->partition))
		return AFS_EVOLTRANS;
	if (in->purgeVol) {
		TRY(purge_judge(v, src, in->purgeVol, &purge));
		TRY(vs_volume_delete(purge));
		tell_changed(v, in->purgeVol);
	}
	return vs_clone_make(src, &want, clk_wall(), &made);
}

afs_err vol_clone(struct rpc_call *call, const struct vol_clone_in *in, struct vol_clone_out *out)
{
	CLEANUP(vol_held) struct vol_held h = {0};
	if (in->newName.len == 0 || in->newName.len > AFS_VOLNAME_MAX)
		return AFS_EBADNAME;
	if (!in->newVol || in->newType < AFS_VOL_RW || in->newType > AFS_VOL_BK)
		return AFS_EINVAL;
	TRY(vol_hold(call, in->trans, "Clone", &h));
	if (h.tr->iflags == VOL_IT_READONLY)
		return AFS_EROFS;
	TRY(vol_noted(&h, make_clone(&h, in)));
	out->newVol = in->newVol;
	return AFS_OK;
}

static afs_err reclone(struct vol_held *h, uint32_t id)
{
	struct volserver *v = h->v;
	struct vs_volume *src = h->tr->volume;
	CLEANUP(vs_volume) struct vs_volume *c = NULL;
	if (vol_trans_holds(&v->trans, id, h->tr->partition))
		return AFS_EVOLTRANS;
	TRY(vs_volume_find(v->config.store, NULL, id, &c));
	TRY(vs_clone_refresh(src, c, clk_wall()));
	tell_changed(v, id);
	return AFS_OK;
}

afs_err vol_reclone(struct rpc_call *call, const struct vol_reclone_in *in, struct vol_reclone_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	TRY(vol_hold(call, in->trans, "ReClone", &h));
	if (h.tr->iflags == VOL_IT_READONLY)
		return AFS_EROFS;
	return vol_noted(&h, reclone(&h, in->cloneID));
}

afs_err vol_convert(struct rpc_call *call, const struct vol_convert_in *in, struct vol_convert_out *out)
{
	(void)out;
	struct volserver *v = call->service;
	struct vs_partition *part = in->partition < 0 ? NULL : vs_partition_find(v->config.store, (unsigned)in->partition);
	CLEANUP(vs_volume) struct vs_volume *vol = NULL;
	struct vs_header h;
	if (!part)
		return AFS_EBADPART;
	if (vol_trans_holds(&v->trans, in->volid, in->partition))
		return AFS_EVOLTRANS;
	afs_err err = vs_volume_find(v->config.store, part, in->volid, &vol);
	if (err == AFS_ENOVOL)
		return AFS_ENODEV;
	TRY(err);
	TRY(vs_volume_header(vol, &h));
	TRY(vs_volume_convert(vol, clk_wall()));
	tell_changed(v, in->volid);
	tell_changed(v, h.parent);
	return AFS_OK;
}

/* Who asks for a volume that has moved looks into the location database: nothing has to be remembered. */
afs_err vol_set_forwarding(
	struct rpc_call *call, const struct vol_set_forwarding_in *in, struct vol_set_forwarding_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	return vol_hold(call, in->trans, "SetForwarding", &h);
}

/* Vnodes keep their numbers in every copy and clone of a volume; a part of one under another id would be
 * strange to all of them.  No tool of stock OpenAFS asks for it. */
afs_err vol_split_volume(
	struct rpc_call *call, const struct vol_split_volume_in *in, struct vol_split_volume_out *out)
{
	(void)out;
	struct volserver *v = call->service;
	CLEANUP(vs_volume) struct vs_volume *vol = NULL;
	TRY(vs_volume_find(v->config.store, NULL, in->volid, &vol));
	return AFS_ENOTSUP;
}
