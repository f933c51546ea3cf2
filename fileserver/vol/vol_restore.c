/* SPDX-License-Identifier: BSD-2-Clause
 * Restore: a dump stream becomes the content of the transaction's volume.  Everything is built
 * beside the volume and swapped in when the stream's end mark was seen and the whole was verified,
 * so a bad, cut or hostile dump leaves the volume as it was. */
#include "fileserver/vol/dump.h"
#include "fileserver/vol/vol.h"
#include "fileserver/vol/vol_handlers.h"

#include "cell/base/log.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK = 256 * 1024 };

static afs_err from_call(void *ctx, void *p, size_t n) { return rpc_read(ctx, p, n); }

static afs_err stage_content(struct dump_reader *r, struct vs_stage *stage, uint8_t *chunk)
{
	for (;;) {
		size_t got;
		TRY(dump_data(r, chunk, CHUNK, &got));
		if (!got)
			return AFS_OK;
		TRY(vs_stage_put(stage, chunk, got));
	}
}

static afs_err stage_vnode(struct dump_reader *r, struct vs_stage *stage, uint8_t *chunk)
{
	const struct dump_vnode *v = &r->vnode;
	struct vs_status st = {
		.fid = {v->vnode, v->unique},
		.parent = {.vnode = v->parent},
		.type = (enum afs_filetype)v->type,
		.mode = v->mode & 07777,
		.owner = (int32_t)v->owner,
		.group = (int32_t)v->group,
		.author = (int32_t)v->author,
		.links = v->links,
		.dv = v->data_version,
		.client_mtime = vol_wall(v->mtime),
		.server_mtime = vol_wall(v->server_mtime),
	};
	struct vs_acl acl;
	if (v->keep)
		return vs_stage_keep(stage, st.fid);
	if (v->has_acl)
		TRY(vs_acl_unpack(v->acl, &acl));
	TRY(vs_stage_vnode(stage, &st, v->type == AFS_DIR ? &acl : NULL));
	return stage_content(r, stage, chunk);
}

/* The fields of the dump's volume header that a restore takes over (dump-format.md §3). */
static uint32_t header_of(const struct dump_volume *d, const struct restoreCookie *cookie, struct vs_header *h)
{
	*h = (struct vs_header){
		.type = (enum afs_voltype)cookie->type,
		.clone = cookie->clone,
		.in_service = d->in_service,
		.blessed = d->blessed,
		.unique = d->next_unique,
		.quota_kib = d->max_quota,
		.min_quota_kib = d->min_quota,
		.account = d->account,
		.creation = vol_wall(d->creation),
		.access = vol_wall(d->access),
		.update = vol_wall(d->update),
		.expiration = vol_wall(d->expiration),
		.backup_date = vol_wall(d->backup),
		.restored_from = d->id,
	};
	memcpy(h->name, cookie->name, strnlen(cookie->name, sizeof(h->name) - 1));
	memcpy(h->offline_message, d->offline_message, strlen(d->offline_message));
	return VS_H_NAME | VS_H_TYPE | VS_H_CLONE | VS_H_BACKUP | VS_H_IN_SERVICE | VS_H_BLESSED | VS_H_UNIQUE |
	       VS_H_QUOTA | VS_H_MIN_QUOTA | VS_H_ACCOUNT | VS_H_CREATION | VS_H_ACCESS | VS_H_UPDATE |
	       VS_H_EXPIRATION | VS_H_BACKUP_DATE | VS_H_OFFLINE_MESSAGE | VS_H_WEEK_USE | VS_H_DAY_USE |
	       VS_H_RESTORED_FROM | VS_H_NEEDS_SALVAGE | VS_H_DESTROY_ME;
}

static afs_err restore(struct rpc_call *call, struct vs_volume *vol, const struct restoreCookie *cookie,
	bool destroy_me, char *why)
{
	CLEANUP(heap) uint8_t *chunk = mem_alloc(CHUNK, 1);
	CLEANUP(heap) struct dump_reader *r = mem_new(struct dump_reader);
	CLEANUP(vs_stage) struct vs_stage *stage = NULL;
	enum dump_item item = DUMP_HEADER;
	if (!chunk || !r)
		return AFS_ENOMEM;
	dump_reader_init(r, (struct dump_source){from_call, call});
	TRY(vs_stage_begin(vol, &stage));
	while (item != DUMP_END) {
		afs_err err = dump_next(r, &item);
		if (!err && item == DUMP_VNODE)
			err = stage_vnode(r, stage, chunk);
		if (err == AFS_EBADDUMP)
			snprintf(why, VS_WHY, "%s, vnode %u, byte %llu", r->why ? r->why : "a vnode is not acceptable",
				r->vnode.vnode, (unsigned long long)r->at);
		TRY(err);
	}
	struct vs_header h;
	uint32_t mask = header_of(&r->volume, cookie, &h);
	h.destroy_me = destroy_me; /* the caller takes it off when all is well */
	return vs_stage_commit(stage, &h, mask, clk_wall(), why);
}

afs_err vol_restore(struct rpc_call *call, const struct vol_restore_in *in, struct vol_restore_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	struct vs_header before;
	char why[VS_WHY] = "";

	if (in->cookie.type < AFS_VOL_RW || in->cookie.type > AFS_VOL_BK)
		return AFS_EINVAL;
	if (!in->cookie.name[0] || strlen(in->cookie.name) > AFS_VOLNAME_MAX)
		return AFS_EBADNAME;
	TRY(vol_hold(call, in->trans, "Restore", &h));
	if (h.tr->iflags == VOL_IT_READONLY)
		return AFS_EROFS;
	TRY(vs_volume_header(h.tr->volume, &before));
	afs_err err = restore(call, h.tr->volume, &in->cookie, before.destroy_me, why);
	if (err)
		log_warn("vol.restore.failed volume=%u trans=%d err=%s why=\"%s\"", h.tr->volid, in->trans,
			afs_err_name(err), why);
	else
		log_info("vol.restore.done volume=%u trans=%d name=%s", h.tr->volid, in->trans, in->cookie.name);
	if (!err)
		h.tr->changed = true;
	return vol_noted(&h, err);
}
