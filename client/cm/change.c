/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Changes of names.  One change per directory at a time (`modifying`), so that versions can be counted.
 * When a reply says that the directory moved by exactly one version, and no word of another change
 * came meanwhile, the same edit is made to the index here (directory.md §8); else the index is given
 * up and read again when needed. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"

#include <stdio.h>
#include <string.h>

struct edit {
	struct cm_vnode *dir;
	bool had;    /* index and promise stood when the call began */
	uint64_t dv; /* version then */
	struct cm_stamp stamp;
};

static afs_err edit_begin(struct cm_vnode *dir, struct cm_ident *id, struct edit *e) NO_TSA
{
	if (dir->vol->id == 0 || cm_volume_is_ro(dir->vol))
		return AFS_EROFS;
	TRY(cm_status_lock(dir, id, false));
	if (dir->st.FileType != AFS_DIR) {
		mtx_unlock(&dir->lock);
		return AFS_ENOTDIR;
	}
	while (dir->modifying || dir->fetching_dir)
		cond_wait(&dir->changed, &dir->lock);
	dir->modifying = true;
	*e = (struct edit){.dir = dir, .dv = dir->dv, .stamp = cm_stamp(dir->cm, dir->vol, dir)};
	e->had = dir->dir && dir->dir_dv == dir->dv && cm_fresh_locked(dir);
	mtx_unlock(&dir->lock);
	return AFS_OK;
}

static void edit_over_locked(struct edit *e) REQUIRES(e->dir->lock)
{
	e->dir->modifying = false;
	cond_broadcast(&e->dir->changed);
}

/* The call failed.  When nobody can tell whether the server did it, all that is known of the
 * directory is void. */
static void edit_failed(struct edit *e, afs_err err) NO_TSA
{
	struct cm_vnode *dir = e->dir;
	mtx_lock(&dir->lock);
	switch (err) {
	case AFS_ENOVNODE:
		cm_gone_locked(dir);
		break;
	case AFS_EACCESS:
	case AFS_EPERM:
	case AFS_EOVERQUOTA:
	case AFS_EDISKFULL:
	case AFS_EROFS:
	case AFS_EINVAL:
	case AFS_ENOTEMPTY:
	case AFS_EXDEV:
	case AFS_EMLINK:
	case AFS_EFBIG:
	case AFS_ENAMETOOLONG:
		break;
	default: /* EXIST and NOENT too: our idea of it was wrong */
		dir->promise = 0;
		cm_dir_discard_locked(dir);
		cm_event(dir, CM_EV_ATTR);
	}
	edit_over_locked(e);
	mtx_unlock(&dir->lock);
}

struct change {
	const char *gone, *made; /* names, or NULL */
	uint32_t vnode, unique;  /* of `made` */
};

static void edit_done(struct edit *e, struct cm_ident *id, const struct AFSFetchStatus *st,
	mono_ns sent, const struct change *c, size_t n) NO_TSA
{
	struct cm_vnode *dir = e->dir;
	mtx_lock(&dir->lock);
	uint64_t dv = fs_status_dv(st);
	bool follows = e->had && dv == e->dv + 1 && dir->dv == e->dv && dir->dir &&
		       dir->dir_dv == e->dv && atomic_load(&dir->breaks) == e->stamp.vnode &&
		       cm_fresh_locked(dir) && atomic_load(&dir->vol->breaks) == e->stamp.volume &&
		       cm_dir_own(&dir->dir) == AFS_OK;
	for (size_t i = 0; i < n && follows; i++) {
		if (c[i].gone)
			cm_dir_remove(dir->dir, c[i].gone, strlen(c[i].gone));
		if (c[i].made)
			follows = cm_dir_add(dir->dir, c[i].made, strlen(c[i].made), c[i].vnode,
					  c[i].unique) == AFS_OK;
	}
	if (follows)
		dir->dir_dv = dv;
	else
		cm_dir_discard_locked(dir);
	cm_merge_locked(dir, id, st, NULL, &e->stamp, sent, e->dv + 1);
	edit_over_locked(e);
	mtx_unlock(&dir->lock);
}

static afs_err name_judge(const char *name)
{
	size_t n = strlen(name);
	if (n == 0 || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return AFS_EINVAL;
	return n > AFS_NAME_MAX ? AFS_ENAMETOOLONG : AFS_OK;
}

/* --- making ---------------------------------------------------------------------------------------- */

/* The group is the caller's own, as stock clients send it: a later chgrp to that group, which "cp -p" and
 * "rsync -a" do, then changes nothing, where only administrators may change it. */
static struct AFSStoreStatus first_status(const struct cm *cm, struct cm_who who, uint32_t mode)
{
	return (struct AFSStoreStatus){.Mask = FS_SET_MODTIME | FS_SET_MODE | FS_SET_GROUP,
		.ClientModTime = cm_wall_sec(cm), .Group = who.gid, .UnixModeBits = mode & 07777};
}

/* The vnode of what a call made. */
static afs_err made(struct cm_vnode *dir, struct cm_ident *id, const struct AFSFid *fid,
	const struct AFSFetchStatus *st, const struct AFSCallBack *cb, const struct cm_stamp *stamp,
	mono_ns sent, struct cm_vnode **out)
{
	if (fid->Volume != dir->fid.Volume || !fid->Vnode)
		return log_error(AFS_EPROTOCOL, "cm.create.wrong_fid dir=%u.%u.%u fid=%u.%u.%u",
			dir->fid.Volume, dir->fid.Vnode, dir->fid.Unique, fid->Volume, fid->Vnode,
			fid->Unique);
	struct cm_vnode *v;
	TRY(cm_vnode_get(dir->cm, dir->vol->cell, fid, &v));
	mtx_lock(&v->lock);
	cm_merge_locked(v, id, st, cb, stamp, sent, 0);
	mtx_unlock(&v->lock);
	*out = v;
	return AFS_OK;
}

static afs_err create(struct cm_vnode *dir, struct cm_ident *id, struct cm_who who, const char *name, uint32_t mode,
	struct cm_vnode **out)
{
	struct cm *cm = dir->cm;
	struct edit e;
	TRY(name_judge(name));
	TRY(edit_begin(dir, id, &e));
	struct cm_stamp stamp = cm_stamp(cm, dir->vol, NULL);
	struct fs_create_file_in in = {dir->fid, XDR_STR_OF(name), first_status(cm, who, mode)};
	struct fs_create_file_out got = {0};
	struct cm_try t = {.cm = cm, .vol = dir->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_create_file(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err) {
		edit_failed(&e, err);
		return err;
	}
	err = made(dir, id, &got.OutFid, &got.OutFidStatus, &got.CallBack, &stamp, t.sent, out);
	struct change c = {.made = name, .vnode = got.OutFid.Vnode, .unique = got.OutFid.Unique};
	edit_done(&e, id, &got.OutDirStatus, t.sent, &c, 1);
	return err;
}

afs_err cm_create(struct cm_vnode *dir, struct cm_who who, const char *name, uint32_t mode, struct cm_vnode **out)
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, who.uid);
	afs_err err = create(dir, id, who, name, mode, out);
	cm_ident_unref(dir->cm, id);
	return err;
}

static afs_err make_dir(struct cm_vnode *dir, struct cm_ident *id, struct cm_who who, const char *name, uint32_t mode,
	struct cm_vnode **out)
{
	struct cm *cm = dir->cm;
	struct edit e;
	TRY(name_judge(name));
	TRY(edit_begin(dir, id, &e));
	struct cm_stamp stamp = cm_stamp(cm, dir->vol, NULL);
	struct fs_make_dir_in in = {dir->fid, XDR_STR_OF(name), first_status(cm, who, mode)};
	struct fs_make_dir_out got = {0};
	struct cm_try t = {.cm = cm, .vol = dir->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_make_dir(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err) {
		edit_failed(&e, err);
		return err;
	}
	err = made(dir, id, &got.OutFid, &got.OutFidStatus, &got.CallBack, &stamp, t.sent, out);
	if (!err) { /* what is in a new directory is known */
		struct cm_vnode *v = *out;
		mtx_lock(&v->lock);
		if (!v->dir && v->dv == 0 && (v->dir = cm_dir_new(dir->fid.Vnode, dir->fid.Unique)))
			v->dir_dv = 0;
		mtx_unlock(&v->lock);
	}
	struct change c = {.made = name, .vnode = got.OutFid.Vnode, .unique = got.OutFid.Unique};
	edit_done(&e, id, &got.OutDirStatus, t.sent, &c, 1);
	return err;
}

afs_err cm_mkdir(struct cm_vnode *dir, struct cm_who who, const char *name, uint32_t mode, struct cm_vnode **out)
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, who.uid);
	afs_err err = make_dir(dir, id, who, name, mode, out);
	cm_ident_unref(dir->cm, id);
	return err;
}

static afs_err make_link(struct cm_vnode *dir, struct cm_ident *id, struct cm_who who, const char *name, const char *text,
	struct cm_vnode **out)
{
	struct cm *cm = dir->cm;
	struct edit e;
	struct cm_mount_text m;
	size_t len = strlen(text);
	TRY(name_judge(name));
	if (len == 0 || len > FS_SYMLINK_MAX)
		return len ? AFS_ENAMETOOLONG : AFS_EINVAL;
	/* Text that reads like a mount point is made one: kafs would take it for one in any mode. */
	bool mount = cm_mount_parse(text, len, &m) == AFS_OK;
	TRY(edit_begin(dir, id, &e));
	struct cm_stamp stamp = cm_stamp(cm, dir->vol, NULL);
	struct fs_symlink_in in = {dir->fid, XDR_STR_OF(name), XDR_STR_OF(text), first_status(cm, who, mount ? 0644 : 0755)};
	struct fs_symlink_out got = {0};
	struct cm_try t = {.cm = cm, .vol = dir->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_symlink(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err) {
		edit_failed(&e, err);
		return err;
	}
	err = made(dir, id, &got.OutFid, &got.OutFidStatus, NULL, &stamp, t.sent, out);
	struct change c = {.made = name, .vnode = got.OutFid.Vnode, .unique = got.OutFid.Unique};
	edit_done(&e, id, &got.OutDirStatus, t.sent, &c, 1);
	return err;
}

afs_err cm_symlink(struct cm_vnode *dir, struct cm_who who, const char *name, const char *text, struct cm_vnode **out)
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, who.uid);
	afs_err err = make_link(dir, id, who, name, text, out);
	cm_ident_unref(dir->cm, id);
	return err;
}

static afs_err hard_link(
	struct cm_vnode *v, struct cm_vnode *dir, struct cm_ident *id, const char *name) NO_TSA
{
	struct cm *cm = dir->cm;
	struct edit e;
	TRY(name_judge(name));
	if (v->vol != dir->vol)
		return AFS_EXDEV;
	TRY(cm_status_lock(v, id, false));
	uint32_t type = v->st.FileType;
	bool elsewhere = v->st.ParentVnode != dir->fid.Vnode;
	struct cm_stamp stamp = cm_stamp(cm, v->vol, v);
	mtx_unlock(&v->lock);
	if (type != AFS_FILE)
		return AFS_EPERM;
	if (elsewhere)
		return AFS_EXDEV;
	TRY(edit_begin(dir, id, &e));
	struct fs_link_in in = {dir->fid, XDR_STR_OF(name), v->fid};
	struct fs_link_out got = {0};
	struct cm_try t = {.cm = cm, .vol = dir->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_link(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err) {
		edit_failed(&e, err);
		return err;
	}
	mtx_lock(&v->lock);
	cm_merge_locked(v, id, &got.OutFidStatus, NULL, &stamp, t.sent, 0);
	mtx_unlock(&v->lock);
	struct change c = {.made = name, .vnode = v->fid.Vnode, .unique = v->fid.Unique};
	edit_done(&e, id, &got.OutDirStatus, t.sent, &c, 1);
	return AFS_OK;
}

afs_err cm_link(struct cm_vnode *v, struct cm_vnode *dir, uid_t uid, const char *name)
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, uid);
	afs_err err = hard_link(v, dir, id, name);
	cm_ident_unref(dir->cm, id);
	return err;
}

/* --- removing --------------------------------------------------------------------------------------- */

/* The vnode behind a name, with its status; AFS_ENOENT. */
static afs_err child(
	struct cm_vnode *dir, struct cm_ident *id, const char *name, struct cm_vnode **out) NO_TSA
{
	TRY(cm_index_lock(dir, id));
	struct cm_row *row = cm_dir_find(dir->dir, name, strlen(name));
	bool there = row && row->state == CM_ROW_LIVE;
	struct AFSFid fid = {dir->fid.Volume, there ? row->vnode : 0, there ? row->unique : 0};
	mtx_unlock(&dir->lock);
	if (!there)
		return AFS_ENOENT;
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(cm_vnode_get(dir->cm, dir->vol->cell, &fid, &v));
	/* Who may remove but not read gets no status; what kind of thing it is shows in its number. */
	afs_err err = cm_status_lock(v, id, false);
	if (!err)
		mtx_unlock(&v->lock);
	else if (err != AFS_EACCESS)
		return err;
	*out = TAKE(v);
	return AFS_OK;
}

/* One of its names is gone at the server. */
static void lost_name(struct cm_vnode *v)
{
	mtx_lock(&v->lock);
	if (v->has_status && v->st.LinkCount > 1) {
		v->st.LinkCount--;
		v->promise = 0; /* the server breaks it for us too */
		cm_event(v, CM_EV_ATTR);
	} else if (!v->opens) {
		cm_gone_quiet_locked(v);
		cm_data_forget_locked(v);
	} else {
		v->gone = true;
	}
	mtx_unlock(&v->lock);
}

static afs_err remove_file(struct cm_vnode *dir, struct cm_ident *id, const char *name)
{
	struct edit e;
	TRY(edit_begin(dir, id, &e));
	struct fs_remove_file_in in = {dir->fid, XDR_STR_OF(name)};
	struct fs_remove_file_out got = {0};
	struct cm_try t = {.cm = dir->cm, .vol = dir->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_remove_file(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err) {
		edit_failed(&e, err);
		return err;
	}
	struct change c = {.gone = name};
	edit_done(&e, id, &got.OutDirStatus, t.sent, &c, 1);
	return AFS_OK;
}

static afs_err rename_in(struct cm_vnode *dir, struct cm_ident *id, const char *from,
	const char *to, const struct cm_vnode *v)
{
	struct edit e;
	TRY(edit_begin(dir, id, &e));
	struct fs_rename_in in = {dir->fid, XDR_STR_OF(from), dir->fid, XDR_STR_OF(to)};
	struct fs_rename_out got = {0};
	struct cm_try t = {.cm = dir->cm, .vol = dir->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_rename(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err) {
		edit_failed(&e, err);
		return err;
	}
	struct change c = {
		.gone = from, .made = to, .vnode = v->fid.Vnode, .unique = v->fid.Unique};
	edit_done(&e, id, &got.OutNewDirStatus, t.sent, &c, 1);
	return AFS_OK;
}

static struct cache_note note_of(struct cm_vnode *dir, const struct cm_ident *id, const char *name)
{
	struct cache_note n = {.dir = {dir->vol->cell->number, dir->fid}, .uid = id->uid};
	snprintf(n.name, sizeof(n.name), "%s", name);
	return n;
}

/* The server knows no open files: one that is removed while open gets a hidden name until its last
 * close. */
static afs_err hide(struct cm_vnode *dir, struct cm_ident *id, const char *name, struct cm_vnode *v)
{
	char hidden[sizeof(v->silly_name)];
	for (int i = 0; i < 4; i++) {
		snprintf(hidden, sizeof(hidden), ".__afs%08X", rand_u32());
		struct cache_note note = note_of(dir, id, hidden);
		cache_note_add(dir->cm->cache, &note); /* for a next run, when this one is killed */
		afs_err err = rename_in(dir, id, name, hidden, v);
		if (err)
			cache_note_remove(dir->cm->cache, &note);
		if (err == AFS_EEXIST)
			continue;
		TRY(err);
		mtx_lock(&v->lock);
		struct cm_vnode *old = v->silly_dir;
		v->silly_dir = cm_vnode_ref(dir);
		memcpy(v->silly_name, hidden, sizeof(hidden));
		bool closed = !v->opens; /* while we asked */
		mtx_unlock(&v->lock);
		if (old)
			cm_vnode_unref(old);
		if (closed)
			cm_silly_end(v, id);
		return AFS_OK;
	}
	return AFS_EEXIST;
}

void cm_silly_end(struct cm_vnode *v, struct cm_ident *id)
{
	char name[sizeof(v->silly_name)];
	mtx_lock(&v->lock);
	struct cm_vnode *dir = v->silly_dir;
	v->silly_dir = NULL;
	memcpy(name, v->silly_name, sizeof(name));
	mtx_unlock(&v->lock);
	if (!dir)
		return;
	afs_err err = remove_file(dir, id, name);
	if (err && err != AFS_ENOENT)
		log_warn("cm.silly.left dir=%u.%u.%u name=%s err=%s", dir->fid.Volume,
			dir->fid.Vnode, dir->fid.Unique, name, afs_err_name(err));
	if (!err || err == AFS_ENOENT) {
		struct cache_note note = note_of(dir, id, name);
		cache_note_remove(dir->cm->cache, &note);
	}
	lost_name(v);
	cm_vnode_unref(dir);
}

static bool is_dir_fid(const struct cm_vnode *v) { return v->fid.Vnode & 1; }

/* Must it live on under a hidden name? */
static bool is_last_name_of_open(struct cm_vnode *v)
{
	mtx_lock(&v->lock);
	bool yes = v->opens && !v->silly_dir && (!v->has_status || v->st.LinkCount <= 1) &&
		   v->st.FileType == AFS_FILE;
	mtx_unlock(&v->lock);
	return yes;
}

static bool is_mount(struct cm_vnode *v)
{
	mtx_lock(&v->lock);
	bool yes = cm_is_mount_locked(v);
	mtx_unlock(&v->lock);
	return yes;
}

static afs_err unlink_name(struct cm_vnode *dir, struct cm_ident *id, const char *name)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(name_judge(name));
	if (dir->vol->id == 0 || cm_volume_is_ro(dir->vol))
		return AFS_EROFS;
	TRY(child(dir, id, name, &v));
	if (is_dir_fid(v) || is_mount(v))
		return AFS_EISDIR;
	if (is_last_name_of_open(v))
		return hide(dir, id, name, v);
	TRY(remove_file(dir, id, name));
	lost_name(v);
	return AFS_OK;
}

afs_err cm_unlink(struct cm_vnode *dir, uid_t uid, const char *name)
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, uid);
	afs_err err = unlink_name(dir, id, name);
	cm_ident_unref(dir->cm, id);
	return err;
}

afs_err cm_mount_delete(struct cm_vnode *dir, uid_t uid, const char *name)
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, uid);
	struct cm_vnode *v = NULL;
	afs_err err = name_judge(name);
	if (!err && (dir->vol->id == 0 || cm_volume_is_ro(dir->vol)))
		err = AFS_EROFS;
	if (!err)
		err = child(dir, id, name, &v);
	if (!err && !is_mount(v))
		err = AFS_EINVAL;
	if (!err)
		err = remove_file(dir, id, name);
	if (!err) {
		lost_name(v);
		cm_event(dir, CM_EV_NAMES | CM_EV_ATTR); /* the kernel did not do this itself */
	}
	if (v)
		cm_vnode_unref(v);
	cm_ident_unref(dir->cm, id);
	return err;
}

static afs_err remove_dir(struct cm_vnode *dir, struct cm_ident *id, const char *name)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	struct edit e;
	if (strcmp(name, ".") == 0)
		return AFS_EINVAL;
	if (strcmp(name, "..") == 0)
		return AFS_ENOTEMPTY;
	TRY(name_judge(name));
	if (dir->vol->id == 0 || cm_volume_is_ro(dir->vol))
		return AFS_EROFS;
	TRY(child(dir, id, name, &v));
	if (!is_dir_fid(v)) /* mount points too: rmmount is for them */
		return AFS_ENOTDIR;
	TRY(edit_begin(dir, id, &e));
	struct fs_remove_dir_in in = {dir->fid, XDR_STR_OF(name)};
	struct fs_remove_dir_out got = {0};
	struct cm_try t = {.cm = dir->cm, .vol = dir->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_remove_dir(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err == AFS_EEXIST)
		err = AFS_ENOTEMPTY;
	if (err) {
		edit_failed(&e, err);
		return err;
	}
	struct change c = {.gone = name};
	edit_done(&e, id, &got.OutDirStatus, t.sent, &c, 1);
	mtx_lock(&v->lock);
	cm_gone_locked(v);
	mtx_unlock(&v->lock);
	return AFS_OK;
}

afs_err cm_rmdir(struct cm_vnode *dir, uid_t uid, const char *name)
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, uid);
	afs_err err = remove_dir(dir, id, name);
	cm_ident_unref(dir->cm, id);
	return err;
}

/* --- renaming ------------------------------------------------------------------------------------------ */

/* Begin on both, in an order that all threads share. */
static afs_err begin_two(struct cm_vnode *a, struct cm_vnode *b, struct cm_ident *id,
	struct edit *ea, struct edit *eb)
{
	if (a == b)
		return edit_begin(a, id, ea);
	bool swap = a > b;
	TRY(edit_begin(swap ? b : a, id, swap ? eb : ea));
	afs_err err = edit_begin(swap ? a : b, id, swap ? ea : eb);
	if (err)
		edit_failed(swap ? eb : ea, AFS_EINVAL); /* nothing was asked of the server */
	return err;
}

static afs_err rename_between(struct cm_vnode *from, const char *name, struct cm_vnode *to,
	const char *new_name, struct cm_ident *id, struct cm_vnode *v)
{
	struct edit ef, et;
	TRY(begin_two(from, to, id, &ef, &et));
	struct fs_rename_in in = {from->fid, XDR_STR_OF(name), to->fid, XDR_STR_OF(new_name)};
	struct fs_rename_out got = {0};
	struct cm_try t = {.cm = from->cm, .vol = from->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_rename(t.conn, &in, &got, &t.res);
	afs_err err = cm_try_end(&t);
	if (err) {
		if (t.res.code == 49733376 + 88 ||
			t.res.code == 90) /* stock's code for a directory below itself */
			err = AFS_EINVAL;
		if (err == AFS_ELOOP)
			err = AFS_EINVAL;
		if (err == AFS_EEXIST) /* only a directory that is not empty can stand in the way */
			err = AFS_ENOTEMPTY;
		edit_failed(&ef, err);
		if (from != to)
			edit_failed(&et, err);
		return err;
	}
	struct change one[2] = {
		{.gone = name}, {.made = new_name, .vnode = v->fid.Vnode, .unique = v->fid.Unique}};
	if (from == to) {
		edit_done(&ef, id, &got.OutNewDirStatus, t.sent, one, 2);
		return AFS_OK;
	}
	edit_done(&ef, id, &got.OutOldDirStatus, t.sent, &one[0], 1);
	edit_done(&et, id, &got.OutNewDirStatus, t.sent, &one[1], 1);
	mtx_lock(&v->lock);
	if (is_dir_fid(v)) { /* its ".." changed, and so its version */
		v->promise = 0;
	} else {
		v->st.ParentVnode = to->fid.Vnode;
		v->st.ParentUnique = to->fid.Unique;
	}
	mtx_unlock(&v->lock);
	return AFS_OK;
}

static afs_err rename_name(struct cm_vnode *from, const char *name, struct cm_vnode *to,
	const char *new_name, struct cm_ident *id, bool no_replace)
{
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	CLEANUP(cm_vnode) struct cm_vnode *target = NULL;
	TRY(name_judge(name));
	TRY(name_judge(new_name));
	if (from->vol != to->vol)
		return AFS_EXDEV;
	if (from->vol->id == 0 || cm_volume_is_ro(from->vol))
		return AFS_EROFS;
	TRY(child(from, id, name, &v));
	afs_err err = child(to, id, new_name, &target);
	if (err && err != AFS_ENOENT)
		return err;
	if (target && no_replace)
		return AFS_EEXIST;
	if (target == v)
		return AFS_OK; /* two names of one file: POSIX wants nothing to happen */
	if (is_mount(v) || (target && is_mount(target)))
		return AFS_EXDEV;
	if (target && is_dir_fid(target) != is_dir_fid(v))
		return is_dir_fid(v) ? AFS_ENOTDIR : AFS_EISDIR;
	if (target && is_last_name_of_open(target)) {
		TRY(hide(to, id, new_name, target));
		cm_vnode_unref(TAKE(target));
	}
	TRY(rename_between(from, name, to, new_name, id, v));
	if (target && is_dir_fid(target)) {
		mtx_lock(&target->lock);
		cm_gone_locked(target);
		mtx_unlock(&target->lock);
	} else if (target) {
		lost_name(target);
	}
	return AFS_OK;
}

afs_err cm_rename(struct cm_vnode *from, const char *name, struct cm_vnode *to,
	const char *new_name, uid_t uid, bool no_replace)
{
	struct cm_ident *id = cm_ident_get(from->cm, from->vol->cell, uid);
	afs_err err = rename_name(from, name, to, new_name, id, no_replace);
	cm_ident_unref(from->cm, id);
	return err;
}
