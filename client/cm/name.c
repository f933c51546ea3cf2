/* SPDX-License-Identifier: BSD-2-Clause
 * Finding names: directory indexes, links, mount points, paths. */
#include "client/cm/cm.h"

#include "cell/base/log.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { DIR_MAX = 1023 * 2048, LINKS_MAX = 40 };
#define MISS_SOON SEC(2)
#define MOUNT_FRESH SEC(2 * 3600)

/* --- the index ------------------------------------------------------------------------------------ */

static afs_err fetch_index(struct cm_vnode *dir, struct cm_ident *id) REQUIRES(dir->lock)
{
	struct cm_stamp stamp = cm_stamp(dir->cm, dir->vol, dir);
	dir->fetching_dir = true;
	mtx_unlock(&dir->lock);

	CLEANUP(heap) uint8_t *object = NULL;
	size_t len;
	struct AFSFetchStatus st;
	struct AFSCallBack cb;
	mono_ns sent;
	struct cm_dir *index = NULL;
	afs_err err = cm_fetch_whole(dir, id, DIR_MAX, &object, &len, &st, &cb, &sent);
	if (!err && st.FileType != AFS_DIR)
		err = AFS_ENOTDIR;
	if (!err)
		err = cm_dir_parse(object, len, &index);
	if (err == AFS_ECORRUPT)
		err = log_error(AFS_ECORRUPT, "cm.dir.malformed fid=%u.%u.%u bytes=%zu",
			dir->fid.Volume, dir->fid.Vnode, dir->fid.Unique, len);

	mtx_lock(&dir->lock);
	dir->fetching_dir = false;
	cond_broadcast(&dir->changed);
	if (err) {
		if (err == AFS_ENOVNODE || err == AFS_ENOENT) {
			cm_gone_locked(dir);
			err = AFS_ENOENT;
		}
		return err;
	}
	cm_merge_locked(dir, id, &st, &cb, &stamp, sent, 0);
	if (fs_status_dv(&st) != dir->dv) { /* the directory moved on meanwhile */
		cm_dir_unref(index);
		return AFS_OK;
	}
	cm_dir_discard_locked(dir);
	dir->dir = index;
	dir->dir_dv = dir->dv;
	return AFS_OK;
}

afs_err cm_index_lock(struct cm_vnode *dir, struct cm_ident *id) NO_TSA
{
	for (int i = 0; i < 16; i++) {
		TRY(cm_status_lock(dir, id, true));
		if (dir->st.FileType != AFS_DIR) {
			mtx_unlock(&dir->lock);
			return AFS_ENOTDIR;
		}
		if (dir->dir && dir->dir_dv == dir->dv)
			return AFS_OK;
		bool known;
		if (!(cm_rights_locked(dir, id, &known) & ACL_LOOKUP)) {
			mtx_unlock(&dir->lock);
			return AFS_EACCESS;
		}
		if (dir->fetching_dir || dir->modifying) {
			cond_wait(&dir->changed, &dir->lock);
			mtx_unlock(&dir->lock);
			continue;
		}
		afs_err err = fetch_index(dir, id);
		if (!err && dir->dir && dir->dir_dv == dir->dv)
			return AFS_OK;
		mtx_unlock(&dir->lock);
		TRY(err);
	}
	return AFS_EAGAIN; /* it changes faster than it can be read */
}

static afs_err readable_index_lock(struct cm_vnode *dir, struct cm_ident *id) NO_TSA
{
	bool known;
	TRY(cm_index_lock(dir, id));
	if (cm_rights_locked(dir, id, &known) & ACL_LOOKUP)
		return AFS_OK;
	mtx_unlock(&dir->lock);
	return AFS_EACCESS;
}

afs_err cm_dir_get(struct cm_vnode *dir, uid_t uid, struct cm_dir **out) NO_TSA
{
	struct cm_ident *id = cm_ident_get(dir->cm, dir->vol->cell, uid);
	afs_err err = readable_index_lock(dir, id);
	if (!err) {
		*out = cm_dir_ref(dir->dir);
		mtx_unlock(&dir->lock);
	}
	cm_ident_unref(dir->cm, id);
	return err;
}

void cm_dir_put(struct cm_vnode *dir, struct cm_dir *d)
{
	mtx_lock(&dir->lock);
	cm_dir_unref(d);
	mtx_unlock(&dir->lock);
}

static void put_shown(struct buf *b, struct cm_dir *d)
{
	for (uint32_t i = 0; i < d->n; i++) {
		struct cm_row *r = &d->rows[i];
		if (!r->shown || r->state == CM_ROW_DEAD)
			continue;
		r->shown = false;
		buf_putc(b, (char)r->len);
		buf_put(b, cm_dir_name(d, r), r->len + 1u);
	}
}

void cm_take_shown(
	struct cm_vnode *dir, void (*each)(void *ctx, const char *name, size_t len), void *ctx)
{
	CLEANUP(buf) struct buf b = {0};
	mtx_lock(&dir->lock);
	for (struct cm_dir *d; (d = dir->stale);) {
		dir->stale = d->next_stale;
		put_shown(&b, d);
		cm_dir_unref(d);
	}
	if (dir->dir)
		put_shown(&b, dir->dir);
	mtx_unlock(&dir->lock);
	if (b.err)
		log_warn("cm.dir.shown_lost fid=%u.%u.%u err=%s", dir->fid.Volume, dir->fid.Vnode,
			dir->fid.Unique, afs_err_name(b.err));
	for (size_t at = 0; at < b.len;) {
		size_t n = (uint8_t)b.data[at];
		each(ctx, b.data + at + 1, n);
		at += n + 2;
	}
}

/* --- lookup ----------------------------------------------------------------------------------------- */

/* Fids near `row` in the directory whose status may be wanted next. */
static size_t neighbours(const struct cm_dir *d, const struct cm_row *row, struct AFSFid *out,
	size_t cap, uint32_t volume)
{
	size_t n = 0;
	uint32_t at = (uint32_t)(row - d->rows);
	for (uint32_t i = at; i < d->n && n < cap; i++)
		if (d->rows[i].state == CM_ROW_LIVE)
			out[n++] = (struct AFSFid){volume, d->rows[i].vnode, d->rows[i].unique};
	return n;
}

static void fetch_many(
	struct cm_vnode *dir, struct cm_ident *id, const struct AFSFid *fids, size_t n)
{
	struct cm_vnode *want[FS_BULK_MAX];
	size_t k = 0;
	for (size_t i = 0; i < n && k < FS_BULK_MAX; i++) {
		struct cm_vnode *v;
		if (cm_vnode_get(dir->cm, dir->vol->cell, &fids[i], &v) != AFS_OK)
			break;
		bool known = true;
		mtx_lock(&v->lock);
		bool has = cm_fresh_locked(v);
		if (has)
			cm_rights_locked(v, id, &known);
		mtx_unlock(&v->lock);
		if (has && known)
			cm_vnode_unref(v);
		else
			want[k++] = v;
	}
	if (k)
		(void)cm_status_bulk(
			dir->cm, dir->vol, id, want, k); /* whoever needs one asks again */
	for (size_t i = 0; i < k; i++)
		cm_vnode_unref(want[i]);
}

static afs_err lookup(
	struct cm_vnode *dir, struct cm_ident *id, const char *name, struct cm_found *out) NO_TSA
{
	size_t len = strlen(name);
	if (len > AFS_NAME_MAX)
		return AFS_ENAMETOOLONG;
	*out = (struct cm_found){0};
	TRY(readable_index_lock(dir, id));
	struct cm_row *row = cm_dir_find(dir->dir, name, len);
	if (cm_fresh_locked(dir) && cm_is_public_locked(dir))
		out->until = dir->promise;
	out->breaks = atomic_load(&dir->breaks);
	if (!row || row->state != CM_ROW_LIVE) {
		if (out->until && (cm_dir_own(&dir->dir) != AFS_OK ||
					  !cm_dir_show_absent(dir->dir, name, len)))
			out->until = 0;
		mtx_unlock(&dir->lock);
		return AFS_OK;
	}
	struct AFSFid fid = {dir->fid.Volume, row->vnode, row->unique};
	if (out->until)
		row->shown = true;
	mono_ns now = cm_now(dir->cm);
	struct AFSFid near[FS_BULK_MAX];
	size_t near_n = 0;
	bool many = dir->missed && now - dir->missed < MISS_SOON;
	if (many)
		near_n = neighbours(dir->dir, row, near, FS_BULK_MAX, dir->fid.Volume);
	mtx_unlock(&dir->lock);

	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(cm_vnode_get(dir->cm, dir->vol->cell, &fid, &v));
	mtx_lock(&v->lock);
	bool fresh = cm_fresh_locked(v);
	mtx_unlock(&v->lock);
	if (!fresh) {
		if (near_n > 1)
			fetch_many(dir, id, near, near_n);
		mtx_lock(&dir->lock);
		dir->missed = now;
		mtx_unlock(&dir->lock);
	}
	afs_err err = cm_status_lock(v, id, false);
	if (err == AFS_ENOENT) { /* gone at the server, word of it is on its way */
		out->until = 0;
		return AFS_OK;
	}
	TRY(err);
	mtx_unlock(&v->lock);
	out->vnode = TAKE(v);
	return AFS_OK;
}

afs_err cm_lookup(struct cm_vnode *dir, uid_t uid, const char *name, struct cm_found *out)
{
	struct cm *cm = dir->cm;
	struct cm_ident *id = cm_ident_get(cm, dir->vol->cell, uid);
	char text[AFS_NAME_MAX + 1];
	afs_err err;
	if (dir == cm->root && (strcmp(name, "@cell") == 0 || strcmp(name, ".@cell") == 0)) {
		snprintf(text, sizeof(text), "%s%s", name[0] == '.' ? "." : "", cm->cells[0].name);
		name = text;
	}
	if (cm_sysname(cm, name, 0, text, sizeof(text))) {
		for (unsigned n = 0;; n++) {
			err = lookup(dir, id, text, out);
			out->until = 0; /* what it stands for may be set anew */
			char next[AFS_NAME_MAX + 1];
			if (err || out->vnode || !cm_sysname(cm, name, n + 1, next, sizeof(next)))
				break;
			memcpy(text, next, sizeof(text));
		}
	} else {
		err = lookup(dir, id, name, out);
		if (!err && !out->vnode && dir == cm->root && cm->config.dns) {
			if (cm_cell_discover(cm, name))
				err = lookup(dir, id, name, out);
			if (!out->vnode)
				out->until = 0; /* it may be there a minute later */
		}
	}
	cm_ident_unref(cm, id);
	return err;
}

/* --- links -------------------------------------------------------------------------------------------- */

static afs_err link_text(struct cm_vnode *v, struct cm_ident *id, char **out) NO_TSA
{
	for (int i = 0; i < 8; i++) {
		TRY(cm_status_lock(v, id, false));
		if (v->st.FileType != AFS_SYMLINK) {
			mtx_unlock(&v->lock);
			return AFS_EINVAL;
		}
		if (v->target && v->target_dv == v->dv) {
			*out = mem_strdup(v->target);
			mtx_unlock(&v->lock);
			return *out ? AFS_OK : AFS_ENOMEM;
		}
		struct cm_stamp stamp = cm_stamp(v->cm, v->vol, v);
		mtx_unlock(&v->lock);

		CLEANUP(heap) uint8_t *text = NULL;
		size_t len;
		struct AFSFetchStatus st;
		struct AFSCallBack cb;
		mono_ns sent;
		TRY(cm_fetch_whole(v, id, FS_SYMLINK_MAX, &text, &len, &st, &cb, &sent));
		if (memchr(text, 0, len))
			return log_error(AFS_ECORRUPT, "cm.link.malformed fid=%u.%u.%u",
				v->fid.Volume, v->fid.Vnode, v->fid.Unique);
		mtx_lock(&v->lock);
		cm_merge_locked(v, id, &st, &cb, &stamp, sent, 0);
		if (fs_status_dv(&st) == v->dv) {
			mem_free(v->target);
			v->target = mem_strndup((const char *)text, len);
			v->target_dv = v->dv;
		}
		mtx_unlock(&v->lock);
	}
	return AFS_EAGAIN;
}

afs_err cm_readlink(struct cm_vnode *v, uid_t uid, char **out)
{
	struct cm_ident *id = cm_ident_get(v->cm, v->vol->cell, uid);
	afs_err err = link_text(v, id, out);
	cm_ident_unref(v->cm, id);
	return err;
}

/* --- mount points ---------------------------------------------------------------------------------------- */

static afs_err part(const char **p, const char *end, char *out, size_t cap, const char *allowed)
{
	size_t n = 0;
	while (*p < end && **p != ':') {
		unsigned char c = (unsigned char)**p;
		if (n + 1 >= cap || !(isalnum(c) || strchr(allowed, c)))
			return AFS_EINVAL;
		out[n++] = (char)c;
		(*p)++;
	}
	out[n] = 0;
	return n ? AFS_OK : AFS_EINVAL;
}

static afs_err decimal(const char **p, const char *end, uint32_t *out)
{
	uint64_t v = 0;
	const char *start = *p;
	for (; *p < end && isdigit((unsigned char)**p); (*p)++) {
		v = v * 10 + (uint64_t)(**p - '0');
		if (v > UINT32_MAX)
			return AFS_EINVAL;
	}
	*out = (uint32_t)v;
	return *p > start ? AFS_OK : AFS_EINVAL;
}

afs_err cm_mount_parse(const char *text, size_t len, struct cm_mount_text *out)
{
	*out = (struct cm_mount_text){.vnode = 1, .unique = 1};
	if (len < 3 || (text[0] != '#' && text[0] != '%') || text[len - 1] != '.')
		return AFS_EINVAL;
	out->forced_rw = text[0] == '%';
	const char *p = text + 1, *end = text + len - 1;
	/* [cell:]volume[:vnode:unique] - a second part that starts like a number after two more colons
	 * cannot be told from a cell and a volume, so the number of parts decides */
	unsigned colons = 0;
	for (const char *q = p; q < end; q++)
		colons += *q == ':';
	if (colons > 3)
		return AFS_EINVAL;
	if (colons == 1 || colons == 3) {
		TRY(part(&p, end, out->cell, sizeof(out->cell), ".-_"));
		p++;
	}
	TRY(part(&p, end, out->volume, sizeof(out->volume), ".-_"));
	if (colons >= 2) {
		p++;
		TRY(decimal(&p, end, &out->vnode));
		if (p >= end || *p++ != ':')
			return AFS_EINVAL;
		TRY(decimal(&p, end, &out->unique));
	}
	return p == end ? AFS_OK : AFS_EINVAL;
}

static afs_err mount_find(struct cm_vnode *mp, uid_t uid, struct cm_vnode **out)
{
	struct cm *cm = mp->cm;
	CLEANUP(str) char *text = NULL;
	TRY(cm_readlink(mp, uid, &text));
	struct cm_mount_text m;
	TRY(cm_mount_parse(text, strlen(text), &m));
	struct cm_cell *cell = m.cell[0] ? cm_cell_find(cm, m.cell, strlen(m.cell)) : mp->vol->cell;
	if (!cell)
		return AFS_ENODEV;
	struct cm_volume *vol;
	TRY(cm_volume_named(cm, cell, m.volume, m.forced_rw, mp->vol->id ? mp->vol : NULL, &vol));
	return cm_vnode_get(cm, cell, &(struct AFSFid){vol->id, m.vnode, m.unique}, out);
}

afs_err cm_mount_follow(struct cm_vnode *mp, uid_t uid, struct cm_vnode **out) NO_TSA
{
	struct cm *cm = mp->cm;
	CLEANUP(cm_vnode) struct cm_vnode *root = NULL;
	mtx_lock(&mp->lock);
	if (mp->mount && mp->mount_until > cm_now(cm) && cm_fresh_locked(mp))
		root = cm_vnode_ref(mp->mount);
	mtx_unlock(&mp->lock);
	if (!root) {
		TRY(mount_find(mp, uid, &root));
		mtx_lock(&mp->lock);
		struct cm_vnode *old = mp->mount;
		mp->mount = cm_vnode_ref(root);
		mp->mount_until = cm_now(cm) + MOUNT_FRESH;
		mtx_unlock(&mp->lock);
		if (old)
			cm_vnode_unref(old);
	}
	struct cm_ident *id = cm_ident_get(cm, root->vol->cell, uid);
	afs_err err = cm_status_lock(root, id, false);
	cm_ident_unref(cm, id);
	if (err) {
		mtx_lock(&mp->lock);
		mp->mount_until = 0;
		mtx_unlock(&mp->lock);
		return err == AFS_ENOENT || err == AFS_ENOVOL ? AFS_ENODEV : err;
	}
	mtx_unlock(&root->lock);
	*out = TAKE(root);
	return AFS_OK;
}

/* --- paths ------------------------------------------------------------------------------------------------- */

struct walk {
	struct cm *cm;
	uid_t uid;
	unsigned links;
	struct cm_vnode *stack[256]; /* from the root to where we are, for ".."; counted */
	unsigned depth;
};

static afs_err step(struct walk *w, const char *name, bool last, bool follow);

static afs_err walk(struct walk *w, const char *path, bool follow)
{
	while (*path) {
		while (*path == '/')
			path++;
		size_t n = strcspn(path, "/");
		if (!n)
			break;
		char name[AFS_NAME_MAX + 1];
		if (n > AFS_NAME_MAX)
			return AFS_ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = 0;
		path += n;
		bool last = !path[strspn(path, "/")];
		TRY(step(w, name, last, follow || *path == '/'));
	}
	return AFS_OK;
}

static afs_err push(struct walk *w, struct cm_vnode *v /* taken */)
{
	if (w->depth == ARRAY_SIZE(w->stack)) {
		cm_vnode_unref(v);
		return AFS_ENAMETOOLONG;
	}
	w->stack[w->depth++] = v;
	return AFS_OK;
}

static afs_err step(struct walk *w, const char *name, bool last, bool follow)
{
	if (strcmp(name, ".") == 0)
		return AFS_OK;
	if (strcmp(name, "..") == 0) {
		if (w->depth > 1)
			cm_vnode_unref(w->stack[--w->depth]);
		return AFS_OK;
	}
	struct cm_found found;
	TRY(cm_lookup(w->stack[w->depth - 1], w->uid, name, &found));
	if (!found.vnode)
		return AFS_ENOENT;
	CLEANUP(cm_vnode) struct cm_vnode *v = found.vnode;
	mtx_lock(&v->lock);
	bool mount = cm_is_mount_locked(v), link = !mount && v->st.FileType == AFS_SYMLINK;
	mtx_unlock(&v->lock);
	if ((mount || link) && (!last || follow)) {
		if (++w->links > LINKS_MAX && link)
			return AFS_ELOOP;
		if (mount) {
			struct cm_vnode *root;
			TRY(cm_mount_follow(v, w->uid, &root));
			return push(w, root);
		}
		CLEANUP(str) char *text = NULL;
		TRY(cm_readlink(v, w->uid, &text));
		if (text[0] == '/') /* where it leads outside of AFS is not ours to say */
			return AFS_EXDEV;
		return walk(w, text, follow);
	}
	return push(w, TAKE(v));
}

afs_err cm_walk(struct cm *cm, uid_t uid, const char *path, bool follow, struct cm_vnode **out)
{
	struct walk w = {.cm = cm, .uid = uid};
	w.stack[w.depth++] = cm_vnode_ref(cm->root);
	afs_err err = walk(&w, path, follow);
	if (!err)
		*out = cm_vnode_ref(w.stack[w.depth - 1]);
	while (w.depth)
		cm_vnode_unref(w.stack[--w.depth]);
	return err;
}
