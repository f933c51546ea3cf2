/* SPDX-License-Identifier: BSD-2-Clause
 * The verbs of client.h on files and volumes. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include <stdio.h>
#include <string.h>

#define VOLUME_STATUS_FRESH SEC(2)

static struct cm *of(struct client *c) { return (struct cm *)c; }

static afs_err vnode_of(struct cm *cm, const struct client_file *f, struct cm_vnode **out)
{
	struct cm_cell *cell = cm_cell_find(cm, f->cell, strnlen(f->cell, sizeof(f->cell)));
	if (!cell)
		return AFS_ENODEV;
	if (f->fid.Volume == 0) { /* the dynamic root: only what is there already */
		*out = cm_vnode_find(cm, cell, &f->fid);
		return *out ? AFS_OK : AFS_ENOENT;
	}
	return cm_vnode_get(cm, cell, &f->fid, out);
}

static void name_file(const struct cm_vnode *v, struct client_file *out)
{
	*out = (struct client_file){.fid = v->fid};
	memcpy(out->cell, v->vol->cell->name, sizeof(out->cell));
}

afs_err client_path(
	struct client *c, uid_t uid, const char *path, bool follow, struct client_file *out)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(cm_walk(of(c), uid, path, follow, &v));
	name_file(v, out);
	return AFS_OK;
}

afs_err client_acl_get(struct client *c, uid_t uid, const struct client_file *f, char **text)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(of(c), f, &v));
	return cm_acl_get(v, uid, text);
}

afs_err client_acl_set(struct client *c, uid_t uid, const struct client_file *f, const char *text)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(of(c), f, &v));
	return cm_acl_set(v, uid, text);
}

static void text_put(char *out, size_t cap, struct xdr_str s)
{
	size_t n = MIN(cap - 1, s.len);
	if (n)
		memcpy(out, s.p, n);
	out[n] = 0;
}

afs_err cm_volume_status(struct cm *cm, struct cm_vnode *v, uid_t uid, struct client_volume *out)
{
	struct cm_volume *vol = v->vol;
	if (vol->id == 0) {
		*out = (struct client_volume){
			.name = "dynamic root", .online = true, .in_service = true};
		return AFS_OK;
	}
	mtx_lock(&cm->volumes_lock);
	bool fresh = vol->status_until > cm_now(cm);
	if (fresh)
		*out = vol->status;
	mtx_unlock(&cm->volumes_lock);
	if (fresh)
		return AFS_OK;

	struct cm_ident *id = cm_ident_get(cm, vol->cell, uid);
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 16 * 1024);
	struct fs_get_volume_status_in in = {vol->id};
	struct fs_get_volume_status_out got = {0};
	struct cm_try t = {.cm = cm, .vol = vol, .ident = id, .res.arena = &arena};
	while (cm_try(&t)) {
		arena_fini(&arena);
		t.err = fs_call_get_volume_status(t.conn, &in, &got, &t.res);
	}
	afs_err err = cm_try_end(&t);
	cm_ident_unref(cm, id);
	TRY(err);
	const struct AFSFetchVolumeStatus *s = &got.Status;
	*out = (struct client_volume){.id = s->Vid,
		.parent_id = s->ParentId,
		.type = s->Type,
		.min_quota_kib = s->MinQuota,
		.max_quota_kib = s->MaxQuota,
		.used_kib = s->BlocksInUse,
		.part_free_kib = s->PartBlocksAvail,
		.part_size_kib = s->PartMaxBlocks,
		.online = s->Online,
		.in_service = s->InService,
		.needs_salvage = s->NeedsSalvage};
	text_put(out->name, sizeof(out->name), got.Name);
	text_put(out->offline_msg, sizeof(out->offline_msg), got.OfflineMsg);
	text_put(out->motd, sizeof(out->motd), got.Motd);
	mtx_lock(&cm->volumes_lock);
	vol->status = *out;
	vol->status_until = cm_now(cm) + VOLUME_STATUS_FRESH;
	mtx_unlock(&cm->volumes_lock);
	return AFS_OK;
}

afs_err client_volume_get(
	struct client *c, uid_t uid, const struct client_file *f, struct client_volume *out)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(of(c), f, &v));
	mtx_lock(&of(c)->volumes_lock);
	v->vol->status_until = 0; /* who asks wants to know it now */
	mtx_unlock(&of(c)->volumes_lock);
	return cm_volume_status(of(c), v, uid, out);
}

afs_err client_quota_set(struct client *c, uid_t uid, const struct client_file *f, uint32_t max_kib)
{
	struct cm *cm = of(c);
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(cm, f, &v));
	if (v->vol->id == 0 || cm_volume_is_ro(v->vol))
		return AFS_EROFS;
	struct cm_ident *id = cm_ident_get(cm, v->vol->cell, uid);
	struct fs_set_volume_status_in in = {.Volume = v->vol->id,
		.Status = {FS_SET_MAX_QUOTA, 0, max_kib},
		.Name = XDR_STR_OF(""),
		.OfflineMsg = XDR_STR_OF(""),
		.Motd = XDR_STR_OF("")};
	struct fs_set_volume_status_out out = {};
	struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_set_volume_status(t.conn, &in, &out, &t.res);
	afs_err err = cm_try_end(&t);
	cm_ident_unref(cm, id);
	return err;
}

afs_err client_mount_make(struct client *c, uid_t uid, const struct client_file *dir,
	const char *name, const char *target)
{
	CLEANUP(cm_vnode) struct cm_vnode *d = NULL;
	CLEANUP(cm_vnode) struct cm_vnode *made = NULL;
	struct cm_mount_text m;
	TRY(cm_mount_parse(target, strlen(target), &m));
	TRY(vnode_of(of(c), dir, &d));
	TRY(cm_symlink(d, (struct cm_who){.uid = uid}, name, target, &made));
	cm_event(d, CM_EV_NAMES | CM_EV_ATTR); /* the kernel did not do this itself */
	return AFS_OK;
}

afs_err client_dir_make(struct client *c, uid_t uid, const struct client_file *dir, const char *name)
{
	CLEANUP(cm_vnode) struct cm_vnode *d = NULL;
	CLEANUP(cm_vnode) struct cm_vnode *made = NULL;
	TRY(vnode_of(of(c), dir, &d));
	TRY(cm_mkdir(d, (struct cm_who){.uid = uid}, name, 0755, &made));
	cm_event(d, CM_EV_NAMES | CM_EV_ATTR);
	return AFS_OK;
}

afs_err client_mount_read(
	struct client *c, uid_t uid, const struct client_file *dir, const char *name, char **target)
{
	CLEANUP(cm_vnode) struct cm_vnode *d = NULL;
	TRY(vnode_of(of(c), dir, &d));
	struct cm_found found;
	TRY(cm_lookup(d, uid, name, &found));
	if (!found.vnode)
		return AFS_ENOENT;
	CLEANUP(cm_vnode) struct cm_vnode *v = found.vnode;
	mtx_lock(&v->lock);
	bool mount = cm_is_mount_locked(v);
	mtx_unlock(&v->lock);
	return mount ? cm_readlink(v, uid, target) : AFS_EINVAL;
}

/* Copies first: whoever is told of a name may look it up, which may give the directory another index. */
static afs_err copy_names(const struct cm_dir *d, char **out, size_t *len)
{
	size_t n = 0;
	for (uint32_t i = 0; i < d->n; i++)
		n += d->rows[i].state == CM_ROW_LIVE ? d->rows[i].len + 1U : 0;
	*out = mem_alloc(n + 1, 1);
	if (!*out)
		return AFS_ENOMEM;
	char *p = *out;
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->rows[i].state != CM_ROW_LIVE)
			continue;
		memcpy(p, cm_dir_name(d, &d->rows[i]), d->rows[i].len);
		p[d->rows[i].len] = '\0';
		p += d->rows[i].len + 1;
	}
	*len = n;
	return AFS_OK;
}

afs_err client_names(struct client *c, uid_t uid, const struct client_file *dir, afs_err (*each)(void *ctx, const char *name), void *ctx)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	CLEANUP(heap) char *names = NULL;
	struct cm_dir *d;
	size_t n = 0;
	TRY(vnode_of(of(c), dir, &v));
	TRY(cm_dir_get(v, uid, &d));
	afs_err err = copy_names(d, &names, &n);
	cm_dir_put(v, d);
	for (const char *p = names; err == AFS_OK && p < names + n; p += strlen(p) + 1)
		err = each(ctx, p);
	return err;
}

afs_err client_mount_remove(
	struct client *c, uid_t uid, const struct client_file *dir, const char *name)
{
	CLEANUP(cm_vnode) struct cm_vnode *d = NULL;
	TRY(vnode_of(of(c), dir, &d));
	return cm_mount_delete(d, uid, name);
}

afs_err client_whereis(struct client *c, uid_t uid, const struct client_file *f, uint32_t *ips,
	size_t cap, size_t *n)
{
	(void)uid; /* locations are public */
	struct cm *cm = of(c);
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(cm, f, &v));
	if (v->vol->id == 0)
		return AFS_ENODEV;
	TRY(cm_volume_locate(cm, v->vol));
	mtx_lock(&cm->volumes_lock);
	*n = MIN(v->vol->site_n, cap);
	for (size_t i = 0; i < *n; i++)
		ips[i] = v->vol->sites[i]->addrs[v->vol->sites[i]->addr_good].ip;
	mtx_unlock(&cm->volumes_lock);
	return AFS_OK;
}

afs_err client_examine(
	struct client *c, uid_t uid, const struct client_file *f, struct client_examine *out) NO_TSA
{
	struct cm *cm = of(c);
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(cm, f, &v));
	struct cm_ident *id = cm_ident_get(cm, v->vol->cell, uid);
	afs_err err = cm_status_lock(v, id, true);
	if (!err) {
		bool known;
		struct cm_attr a;
		cm_attr_locked(v, &a);
		*out = (struct client_examine){.fid = v->fid,
			.owner = a.owner,
			.group = a.group,
			.mode = a.mode,
			.length = a.size,
			.data_version = a.dv,
			.caller_access = cm_rights_locked(v, id, &known),
			.anonymous_access = v->st.AnonymousAccess,
			.type = a.type};
		mtx_unlock(&v->lock);
	}
	cm_ident_unref(cm, id);
	return err;
}

static void flush_one(struct cm_vnode *v, void *ctx)
{
	(void)ctx;
	if (v->vol->id == 0)
		return;
	mtx_lock(&v->lock);
	if (v->cf)
		cache_drop_clean(v->cf);
	cm_dir_discard_locked(v);
	v->promise = 0;
	v->rights_n = 0;
	v->mount_until = 0;
	cm_event(v, CM_EV_ATTR | CM_EV_DATA | CM_EV_NAMES);
	mtx_unlock(&v->lock);
}

afs_err client_flush(struct client *c, const struct client_file *f, bool whole_volume)
{
	struct cm *cm = of(c);
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(cm, f, &v));
	if (whole_volume)
		cm_vnodes_each(cm, v->vol, flush_one, NULL);
	else
		flush_one(v, NULL);
	return AFS_OK;
}

static void forget_mount(struct cm_vnode *v, void *ctx)
{
	(void)ctx;
	mtx_lock(&v->lock);
	v->mount_until = 0;
	bool mount = v->mount != NULL;
	if (mount)
		cm_event(v, CM_EV_ATTR);
	mtx_unlock(&v->lock);
}

void client_check_volumes(struct client *c)
{
	struct cm *cm = of(c);
	mtx_lock(&cm->volumes_lock);
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&cm->volumes, &cursor, NULL); n;
		n = map_walk(&cm->volumes, &cursor, n->next)) {
		struct cm_volume *vol = container_of(n, struct cm_volume, by_id);
		if (vol->id)
			vol->located = false;
	}
	mtx_unlock(&cm->volumes_lock);
	cm_vnodes_each(cm, NULL, forget_mount, NULL);
}
