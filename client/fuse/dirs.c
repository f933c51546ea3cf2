/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Listing.  An open directory is a snapshot of its index, so places stay put while names come and go.
 * Places: 1 after ".", 2 after "..", then 3 + row.  With attributes (readdirplus) status comes fifty at
 * a time. */
#include "client/fuse/front.h"

#include <errno.h>
#include <string.h>

struct open_dir {
	struct list all;        /* of front->dirs */
	struct cm_vnode *vnode; /* counted */
	struct cm_dir *dir;
};

static struct open_dir *dir_of(const struct fuse_file_info *fi)
{
	return (struct open_dir *)(uintptr_t)fi->fh;
}

static void close_dir(struct front *f, struct open_dir *d)
{
	mtx_lock(&f->lock);
	list_remove(&d->all);
	mtx_unlock(&f->lock);
	cm_dir_put(d->vnode, d->dir);
	cm_vnode_unref(d->vnode);
	mem_free(d);
}

void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = req_front(req);
	struct open_dir *d = mem_new(struct open_dir);
	struct cm_vnode *v;
	afs_err err = d ? node_vnode(f, node_of(f, ino), req_uid(req), &v) : AFS_ENOMEM;
	if (!err)
		err = cm_dir_get(v, req_uid(req), &d->dir);
	if (err) {
		mem_free(d);
		reply_err(req, err);
		return;
	}
	d->vnode = cm_vnode_ref(v);
	mtx_lock(&f->lock);
	list_push_back(&f->dirs, &d->all);
	mtx_unlock(&f->lock);
	fi->fh = (uint64_t)(uintptr_t)d;
	if (fuse_reply_open(req, fi) == -ENOENT)
		close_dir(f, d);
}

void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	close_dir(req_front(req), dir_of(fi));
	fuse_reply_err(req, 0);
}

void dirs_close_all(struct front *f)
{
	while (!list_empty(&f->dirs))
		close_dir(f, list_entry(list_first(&f->dirs), struct open_dir, all));
}

/* Rewinding shows what is there now. */
static afs_err refresh(struct open_dir *d, uid_t uid)
{
	struct cm_dir *now;
	TRY(cm_dir_get(d->vnode, uid, &now));
	cm_dir_put(d->vnode, d->dir);
	d->dir = now;
	return AFS_OK;
}

static uint64_t ino_of(const struct cm_vnode *dir, uint32_t vnode)
{
	return (cm_ino(dir) & ~UINT64_C(0xffffffff)) | vnode;
}

/* A name that hides a file which is still open here. */
static bool is_hidden(struct open_dir *d, const struct cm_row *r)
{
	if (r->len < 7 || memcmp(cm_dir_name(d->dir, r), ".__afs", 6) != 0)
		return false;
	struct AFSFid fid = {d->vnode->fid.Volume, r->vnode, r->unique};
	CLEANUP(cm_vnode)
	struct cm_vnode *v = cm_vnode_find(d->vnode->cm, d->vnode->vol->cell, &fid);
	if (!v)
		return false;
	mtx_lock(&v->lock);
	bool hidden = v->silly_dir && strcmp(v->silly_name, cm_dir_name(d->dir, r)) == 0;
	mtx_unlock(&v->lock);
	return hidden;
}

/* "." and ".."; false: the buffer is full. */
static bool put_dots(
	fuse_req_t req, struct open_dir *d, char *buf, size_t size, off_t *off, size_t *used)
{
	for (; *off < 2; (*off)++) {
		struct stat st = {.st_mode = S_IFDIR,
			.st_ino = *off == 0 ? cm_ino(d->vnode)
					    : ino_of(d->vnode, d->dir->parent_vnode)};
		size_t n = fuse_add_direntry(
			req, buf + *used, size - *used, *off == 0 ? "." : "..", &st, *off + 1);
		if (n > size - *used)
			return false;
		*used += n;
	}
	return true;
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	struct open_dir *d = dir_of(fi);
	char *buf = loop_buf();
	size = MIN(size, FRONT_BUF);
	afs_err err = !buf ? AFS_ENOMEM : off == 0 ? refresh(d, req_uid(req)) : AFS_OK;
	if (err) {
		reply_err(req, err);
		return;
	}
	size_t used = 0;
	if (put_dots(req, d, buf, size, &off, &used)) {
		for (uint32_t i = (uint32_t)(off - 2); i < d->dir->n; i++) {
			const struct cm_row *r = &d->dir->rows[i];
			if (r->state != CM_ROW_LIVE || is_hidden(d, r))
				continue;
			struct stat st = {.st_ino = ino_of(d->vnode, r->vnode),
				.st_mode = r->vnode & 1 ? S_IFDIR : 0};
			size_t n = fuse_add_direntry(req, buf + used, size - used,
				cm_dir_name(d->dir, r), &st, (off_t)i + 3);
			if (n > size - used)
				break;
			used += n;
		}
	}
	fuse_reply_buf(req, buf, used);
}

/* --- with attributes ---------------------------------------------------------------------------------- */

struct batch {
	struct cm_vnode *v[FS_BULK_MAX];
	size_t n, at;
};

static void batch_free(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		cm_vnode_unref(b->v[i]);
	b->n = b->at = 0;
}

/* Vnodes of the rows from `i` on, with status where it can be had. */
static void batch_load(struct batch *b, struct open_dir *d, struct cm_ident *id, uint32_t i)
{
	struct cm_vnode *dir = d->vnode, *lack[FS_BULK_MAX];
	size_t lacks = 0;
	batch_free(b);
	for (; i < d->dir->n && b->n < FS_BULK_MAX; i++) {
		const struct cm_row *r = &d->dir->rows[i];
		struct AFSFid fid = {dir->fid.Volume, r->vnode, r->unique};
		if (r->state != CM_ROW_LIVE)
			continue;
		struct cm_vnode *v;
		if (cm_vnode_get(dir->cm, dir->vol->cell, &fid, &v) != AFS_OK)
			return;
		b->v[b->n++] = v;
		mtx_lock(&v->lock);
		if (!cm_fresh_locked(v))
			lack[lacks++] = v;
		mtx_unlock(&v->lock);
	}
	if (lacks && dir->vol->id)
		(void)cm_status_bulk(dir->cm, dir->vol, id, lack,
			lacks); /* without status an entry is only a name */
}

/* One entry; false: the buffer is full. */
static bool put_plus(fuse_req_t req, struct fnode *parent, struct open_dir *d, uint32_t i,
	struct cm_vnode *v, bool keep, char *buf, size_t size, size_t *used)
{
	struct front *f = req_front(req);
	const struct cm_row *r = &d->dir->rows[i];
	const char *name = cm_dir_name(d->dir, r);
	struct fuse_entry_param e = {.attr = {.st_ino = ino_of(d->vnode, r->vnode),
					     .st_mode = r->vnode & 1 ? S_IFDIR : 0}};
	struct cm_attr a;
	mtx_lock(&v->lock);
	bool has = cm_fresh_locked(v) && !v->gone, mount = has && cm_is_mount_locked(v);
	if (has)
		cm_attr_locked(v, &a);
	mtx_unlock(&v->lock);
	if (mount) /* crossing it is for who looks it up */
		e.attr.st_mode = S_IFDIR;
	struct fnode *n = NULL;
	if (has && !mount) {
		n = node_get(f, parent, v, a.type == AFS_DIR, false);
		if (n) {
			front_stat(&a, &e.attr);
			e.ino = node_ino(f, n);
			e.generation = n->generation;
			e.attr_timeout = front_timeout(f, a.until);
			if (keep) {
				mtx_lock(&d->vnode->lock);
				if (d->vnode->dir == d->dir && d->vnode->dir_dv == d->vnode->dv &&
					cm_fresh_locked(d->vnode) &&
					cm_is_public_locked(d->vnode)) {
					d->dir->rows[i].shown = true;
					e.entry_timeout = front_timeout(f, d->vnode->promise);
				}
				mtx_unlock(&d->vnode->lock);
			}
		}
	}
	size_t k = fuse_add_direntry_plus(req, buf + *used, size - *used, name, &e, (off_t)i + 3);
	if (k > size - *used) {
		if (n)
			node_forget(f, n, 1);
		return false;
	}
	*used += k;
	return true;
}

void op_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct front *f = req_front(req);
	struct fnode *parent = node_of(f, ino);
	struct open_dir *d = dir_of(fi);
	struct cm_vnode *dir = d->vnode;
	char *buf = loop_buf();
	size = MIN(size, FRONT_BUF);
	afs_err err = !buf ? AFS_ENOMEM : off == 0 ? refresh(d, req_uid(req)) : AFS_OK;
	if (err) {
		reply_err(req, err);
		return;
	}
	size_t used = 0;
	for (; off < 2; off++) { /* no lookup is counted for these two */
		struct fuse_entry_param e = {
			.attr = {.st_mode = S_IFDIR,
				.st_ino = off == 0 ? cm_ino(dir)
						   : ino_of(dir, d->dir->parent_vnode)}};
		size_t k = fuse_add_direntry_plus(
			req, buf + used, size - used, off == 0 ? "." : "..", &e, off + 1);
		if (k > size - used)
			break;
		used += k;
	}
	unsigned breaks = atomic_load(&dir->breaks);
	uint32_t first = (uint32_t)(off - 2), i = first;
	struct cm_ident *id = cm_ident_get(f->cm, dir->vol->cell, req_uid(req));
	struct batch b = {.n = 0};
	for (; off >= 2 && i < d->dir->n; i++) {
		const struct cm_row *r = &d->dir->rows[i];
		if (r->state != CM_ROW_LIVE)
			continue;
		if (b.at == b.n)
			batch_load(&b, d, id, i);
		if (b.at == b.n)
			break; /* out of memory */
		struct cm_vnode *v = b.v[b.at++];
		if (!is_hidden(d, r) && !put_plus(req, parent, d, i, v, true, buf, size, &used))
			break;
	}
	batch_free(&b);
	cm_ident_unref(f->cm, id);
	/* after the reply the directory may be closed and forgotten */
	mtx_lock(&dir->lock);
	struct cm_dir *snap = cm_dir_ref(d->dir);
	mtx_unlock(&dir->lock);
	cm_vnode_ref(dir);
	node_hold(f, parent);
	fuse_reply_buf(req, buf, used);
	if (atomic_load(&dir->breaks) != breaks) {
		for (uint32_t k = first; k < i; k++)
			if (snap->rows[k].state == CM_ROW_LIVE)
				inval_name(f, parent, cm_dir_name(snap, &snap->rows[k]),
					snap->rows[k].len);
	}
	node_drop(f, parent);
	cm_dir_put(dir, snap);
	cm_vnode_unref(dir);
}
