/* SPDX-License-Identifier: BSD-2-Clause
 * The kernel's requests on names and files. */
#include "client/fuse/front.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define KEEP_LONGEST SEC(4 * 3600)

void reply_err(fuse_req_t req, afs_err err)
{
	int eno = afs_err_errno(err);
	if (err == AFS_ENOVNODE)
		eno = ESTALE;
	fuse_reply_err(req, eno);
}

double front_timeout(const struct front *f, mono_ns until)
{
	int64_t left = until - cm_now(f->cm);
	if (left <= 0)
		return 0;
	return (double)MIN(left, KEEP_LONGEST) / (double)NS_PER_SEC;
}

void front_stat(const struct cm_attr *a, struct stat *st)
{
	static const mode_t types[] = {
		[AFS_FILE] = S_IFREG, [AFS_DIR] = S_IFDIR, [AFS_SYMLINK] = S_IFLNK};
	mode_t type = a->type < ARRAY_SIZE(types) ? types[a->type] : 0;
	*st = (struct stat){
		.st_ino = a->ino,
		.st_mode = type | (type == S_IFLNK ? 0777 : a->mode),
		.st_nlink = a->nlink,
		.st_uid = a->owner,
		.st_gid = a->group,
		.st_size = (off_t)a->size,
		.st_blksize = 1 << 20,
		.st_blocks = (blkcnt_t)((a->size + 511) / 512),
		.st_atime = a->mtime,
		.st_mtime = a->mtime,
		.st_ctime = a->ctime ? a->ctime : a->mtime,
	};
}

afs_err front_attr(struct front *f, struct fnode *n, uid_t uid, struct cm_attr *a)
{
	struct cm_vnode *v;
	afs_err err = node_vnode(f, n, uid, &v);
	if (!err)
		return cm_getattr(v, uid, a);
	if (!n->mount || err == AFS_ENOMEM)
		return err;
	/* A mount point that leads nowhere at this time still lists as a directory. */
	*a = (struct cm_attr){
		.type = AFS_DIR, .mode = 0755, .nlink = 2, .size = 2048, .ino = cm_ino(n->key)};
	return AFS_OK;
}

/* --- open files --------------------------------------------------------------------------------------- */

static void opened(struct front *f, struct cm_file *file, struct fuse_file_info *fi)
{
	fi->fh = (uint64_t)(uintptr_t)file;
	mtx_lock(&f->lock);
	list_push_back(&f->files, &file->opened);
	mtx_unlock(&f->lock);
}

static void close_file(struct front *f, struct cm_file *file)
{
	mtx_lock(&f->lock);
	list_remove(&file->opened);
	mtx_unlock(&f->lock);
	cm_close(file);
}

void files_close_all(struct front *f)
{
	while (!list_empty(&f->files))
		close_file(f, list_entry(list_first(&f->files), struct cm_file, opened));
}

/* --- names ------------------------------------------------------------------------------------------ */

/* Gives the kernel an entry for `given` (counted, taken) found under `parent`.  `as_link`: it asked for a
 * symbolic link to be made, and takes nothing else for an answer even when that is a mount point; the
 * next lookup shows it as one. */
static void reply_entry(fuse_req_t req, struct fnode *parent, struct cm_vnode *dir,
	const char *name, struct cm_vnode *given, mono_ns until, unsigned dir_breaks,
	struct fuse_file_info *fi, struct cm_file *file, bool as_link)
{
	struct front *f = req_front(req);
	CLEANUP(cm_vnode) struct cm_vnode *v = TAKE(given);
	struct cm_attr a;
	mtx_lock(&v->lock);
	bool mount = cm_is_mount_locked(v);
	if (mount && as_link) {
		mount = false;
		until = 0;
	}
	cm_attr_locked(v, &a);
	mtx_unlock(&v->lock);
	struct fnode *n = node_get(f, parent, v, a.type == AFS_DIR, mount);
	if (!n) {
		if (file)
			close_file(f, file);
		reply_err(req, AFS_ENOMEM);
		return;
	}
	struct cm_vnode *shown = v;
	if (mount) {
		afs_err err = front_attr(f, n, req_uid(req), &a);
		if (err) {
			node_forget(f, n, 1);
			reply_err(req, err);
			return;
		}
		shown = n->vnode;
	}
	struct fuse_entry_param e = {
		.ino = node_ino(f, n),
		.generation = n->generation,
		.attr_timeout = front_timeout(f, a.until),
		.entry_timeout = front_timeout(f, until),
	};
	if (mount &&
		shown) { /* what the name leads to may change with the mount point's own text */
		mtx_lock(&v->lock);
		e.entry_timeout =
			MIN(e.entry_timeout, front_timeout(f, MIN(v->promise, v->mount_until)));
		mtx_unlock(&v->lock);
	} else if (mount) {
		e.entry_timeout = 0;
	}
	front_stat(&a, &e.attr);
	node_hold2(f, n, parent); /* after the reply the kernel may forget them at once */
	int sent = fi ? fuse_reply_create(req, &e, fi) : fuse_reply_entry(req, &e);
	if (sent == -ENOENT) { /* interrupted: the kernel took nothing */
		if (file)
			close_file(f, file);
		node_forget(f, n, 1);
	} else {
		if (until && atomic_load(&dir->breaks) != dir_breaks)
			inval_name(f, parent, name, strlen(name));
		if (shown && atomic_load(&shown->breaks) != a.breaks)
			cm_event(shown, CM_EV_ATTR | CM_EV_DATA);
	}
	node_drop2(f, n, parent);
}

static void op_lookup(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct front *f = req_front(req);
	struct fnode *parent = node_of(f, ino);
	struct cm_vnode *dir;
	struct cm_found found;
	afs_err err = node_vnode(f, parent, req_uid(req), &dir);
	if (!err)
		err = cm_lookup(dir, req_uid(req), name, &found);
	if (err) {
		reply_err(req, err);
		return;
	}
	if (found.vnode) {
		reply_entry(req, parent, dir, name, found.vnode, found.until, found.breaks, NULL,
			NULL, false);
		return;
	}
	double keep = front_timeout(f, found.until);
	if (keep <= 0) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	node_hold(f, parent);
	fuse_reply_entry(req, &(struct fuse_entry_param){.entry_timeout = keep});
	if (atomic_load(&dir->breaks) != found.breaks)
		inval_name(f, parent, name,
			strlen(name)); /* in the thread's buffer, which outlives the request */
	node_drop(f, parent);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	struct front *f = req_front(req);
	node_forget(f, node_of(f, ino), nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct front *f = req_front(req);
	for (size_t i = 0; i < count; i++)
		node_forget(f, node_of(f, forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

/* How long the kernel may keep a name that was made just now; marks it as shown. */
static mono_ns name_until(struct cm_vnode *dir, const char *name, unsigned *breaks)
{
	mono_ns until = 0;
	mtx_lock(&dir->lock);
	*breaks = atomic_load(&dir->breaks);
	struct cm_row *row = dir->dir && dir->dir_dv == dir->dv
				     ? cm_dir_find(dir->dir, name, strlen(name))
				     : NULL;
	if (row && row->state == CM_ROW_LIVE && cm_fresh_locked(dir) && cm_is_public_locked(dir)) {
		row->shown = true;
		until = dir->promise;
	}
	mtx_unlock(&dir->lock);
	return until;
}

static void reply_made(fuse_req_t req, struct fnode *parent, struct cm_vnode *dir, const char *name,
	struct cm_vnode *made, struct fuse_file_info *fi, struct cm_file *file, bool as_link)
{
	unsigned breaks;
	mono_ns until = name_until(dir, name, &breaks);
	reply_entry(req, parent, dir, name, made, until, breaks, fi, file, as_link);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t ino, const char *name, mode_t mode)
{
	struct front *f = req_front(req);
	struct fnode *parent = node_of(f, ino);
	struct cm_vnode *dir, *made;
	afs_err err = node_vnode(f, parent, req_uid(req), &dir);
	if (!err)
		err = cm_mkdir(dir, req_who(req), name, mode & 01777, &made);
	if (err)
		reply_err(req, err);
	else
		reply_made(req, parent, dir, name, made, NULL, NULL, false);
}

static void op_symlink(fuse_req_t req, const char *text, fuse_ino_t ino, const char *name)
{
	struct front *f = req_front(req);
	struct fnode *parent = node_of(f, ino);
	struct cm_vnode *dir, *made;
	afs_err err = node_vnode(f, parent, req_uid(req), &dir);
	if (!err)
		err = cm_symlink(dir, req_who(req), name, text, &made);
	if (err)
		reply_err(req, err);
	else
		reply_made(req, parent, dir, name, made, NULL, NULL, true);
}

static void op_mknod(fuse_req_t req, fuse_ino_t ino, const char *name, mode_t mode, dev_t dev)
{
	(void)dev;
	struct front *f = req_front(req);
	struct fnode *parent = node_of(f, ino);
	struct cm_vnode *dir, *made;
	if (!S_ISREG(mode)) { /* AFS has files, directories and links */
		fuse_reply_err(req, EPERM);
		return;
	}
	afs_err err = node_vnode(f, parent, req_uid(req), &dir);
	if (!err)
		err = cm_create(dir, req_who(req), name, mode & 0777, &made);
	if (err)
		reply_err(req, err);
	else
		reply_made(req, parent, dir, name, made, NULL, NULL, false);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
	struct front *f = req_front(req);
	struct fnode *n = node_of(f, ino), *parent = node_of(f, newparent);
	struct cm_vnode *dir;
	if (n->mount) {
		fuse_reply_err(req, EXDEV);
		return;
	}
	afs_err err = node_vnode(f, parent, req_uid(req), &dir);
	if (!err)
		err = cm_link(n->vnode, dir, req_uid(req), newname);
	if (!err) {
		struct cm_attr a;
		err = cm_getattr(n->vnode, req_uid(req), &a);
	}
	if (err)
		reply_err(req, err);
	else
		reply_made(req, parent, dir, newname, cm_vnode_ref(n->vnode), NULL, NULL, false);
}

static void op_unlink(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct front *f = req_front(req);
	struct cm_vnode *dir;
	afs_err err = node_vnode(f, node_of(f, ino), req_uid(req), &dir);
	if (!err)
		err = cm_unlink(dir, req_uid(req), name);
	reply_err(req, err);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct front *f = req_front(req);
	struct cm_vnode *dir;
	afs_err err = node_vnode(f, node_of(f, ino), req_uid(req), &dir);
	if (!err)
		err = cm_rmdir(dir, req_uid(req), name);
	reply_err(req, err);
}

static void op_rename(fuse_req_t req, fuse_ino_t ino, const char *name, fuse_ino_t newino,
	const char *newname, unsigned flags)
{
	struct front *f = req_front(req);
	struct cm_vnode *from, *to;
	if (flags & ~1u) { /* RENAME_NOREPLACE is the one we can keep */
		fuse_reply_err(req, EINVAL);
		return;
	}
	afs_err err = node_vnode(f, node_of(f, ino), req_uid(req), &from);
	if (!err)
		err = node_vnode(f, node_of(f, newino), req_uid(req), &to);
	if (!err)
		err = cm_rename(from, name, to, newname, req_uid(req), flags & 1);
	reply_err(req, err);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct front *f = req_front(req);
	CLEANUP(str) char *text = NULL;
	struct fnode *n = node_of(f, ino);
	afs_err err = n->vnode ? cm_readlink(n->vnode, req_uid(req), &text) : AFS_EINVAL;
	if (err)
		reply_err(req, err);
	else
		fuse_reply_readlink(req, text);
}

/* --- attributes --------------------------------------------------------------------------------------- */

static void reply_attr(fuse_req_t req, struct fnode *n, struct cm_attr *a)
{
	struct front *f = req_front(req);
	struct stat st;
	front_stat(a, &st);
	node_hold(f, n);
	fuse_reply_attr(req, &st, front_timeout(f, a->until));
	if (n->vnode && atomic_load(&n->vnode->breaks) != a->breaks)
		cm_event(n->vnode, CM_EV_ATTR | CM_EV_DATA);
	node_drop(f, n);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	struct front *f = req_front(req);
	struct fnode *n = node_of(f, ino);
	struct cm_attr a;
	afs_err err = front_attr(f, n, req_uid(req), &a);
	if (err)
		reply_err(req, err == AFS_ENOENT ? AFS_ENOVNODE : err);
	else
		reply_attr(req, n, &a);
}

static void op_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int valid, struct fuse_file_info *fi)
{
	struct front *f = req_front(req);
	struct fnode *n = node_of(f, ino);
	struct cm_vnode *v;
	struct cm_file *file = fi ? (struct cm_file *)(uintptr_t)fi->fh : NULL;
	struct cm_setattr set = {
		.set_mode = valid & FUSE_SET_ATTR_MODE,
		.mode = attr->st_mode & 07777,
		.set_owner = valid & FUSE_SET_ATTR_UID,
		.owner = attr->st_uid,
		.set_group = valid & FUSE_SET_ATTR_GID,
		.group = attr->st_gid,
		.set_size = valid & FUSE_SET_ATTR_SIZE,
		.size = (uint64_t)attr->st_size,
		.set_mtime = valid & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW),
		.mtime = valid & FUSE_SET_ATTR_MTIME_NOW ? cm_wall_sec(f->cm)
							 : (uint32_t)attr->st_mtim.tv_sec,
	};
	struct cm_attr a;
	/* AFS keeps unsigned 32-bit seconds; a time it cannot hold is refused, as POSIX has it */
	if (set.set_mtime && !(valid & FUSE_SET_ATTR_MTIME_NOW) &&
		(attr->st_mtim.tv_sec < 0 || attr->st_mtim.tv_sec > (time_t)UINT32_MAX)) {
		reply_err(req, AFS_EINVAL);
		return;
	}
	afs_err err = node_vnode(f, n, req_uid(req), &v);
	if (!err && set.set_size && !(file && file->writes))
		err = cm_access(v, req_uid(req), W_OK);
	if (!err)
		err = cm_setattr(v, req_uid(req), file && file->writes ? file->ident : NULL, &set);
	if (!err)
		err = cm_getattr(v, req_uid(req), &a);
	if (err)
		reply_err(req, err);
	else
		reply_attr(req, n, &a);
}

static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct front *f = req_front(req);
	struct cm_vnode *v;
	afs_err err = node_vnode(f, node_of(f, ino), req_uid(req), &v);
	if (!err && mask & (R_OK | W_OK | X_OK))
		err = cm_access(v, req_uid(req), mask & (R_OK | W_OK | X_OK));
	reply_err(req, err);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct front *f = req_front(req);
	struct cm_vnode *v;
	struct client_volume s;
	afs_err err = node_vnode(f, node_of(f, ino), req_uid(req), &v);
	if (!err)
		err = cm_volume_status(f->cm, v, req_uid(req), &s);
	if (err) {
		reply_err(req, err);
		return;
	}
	fsblkcnt_t size = s.part_size_kib, left = s.part_free_kib;
	if (s.max_quota_kib) {
		size = s.max_quota_kib;
		left = MIN(left, s.max_quota_kib > s.used_kib ? s.max_quota_kib - s.used_kib : 0);
	}
	struct statvfs st = {.f_bsize = 4096,
		.f_frsize = 1024,
		.f_blocks = size,
		.f_bfree = left,
		.f_bavail = left,
		.f_files = 1u << 24,
		.f_ffree = 1u << 24,
		.f_favail = 1u << 24,
		.f_namemax = AFS_NAME_MAX};
	fuse_reply_statfs(req, &st);
}

/* --- files ---------------------------------------------------------------------------------------------- */

static struct cm_file *file_of(const struct fuse_file_info *fi)
{
	return (struct cm_file *)(uintptr_t)fi->fh;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = req_front(req);
	struct fnode *n = node_of(f, ino);
	struct cm_vnode *v;
	struct cm_file *file;
	afs_err err = node_vnode(f, n, req_uid(req), &v);
	if (!err)
		err = cm_open(v, req_uid(req), fi->flags, &file);
	if (err) {
		reply_err(req, err);
		return;
	}
	/* The kernel takes a size that it asked for while we told it to forget as not heard, and would cut the
	 * first read to the old one: so first what is to be told, then the answer. */
	cm_event_settle(v);
	unsigned foreign = atomic_load(&v->foreign);
	fi->keep_cache = n->foreign == foreign;
	n->foreign = foreign;
	/* A reader's close has nothing to report; his locks go with the release. */
	fi->noflush = !file->writes;
	opened(f, file, fi);
	if (fuse_reply_open(req, fi) == -ENOENT)
		close_file(f, file);
}

static void op_create(
	fuse_req_t req, fuse_ino_t ino, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct front *f = req_front(req);
	struct fnode *parent = node_of(f, ino);
	struct cm_vnode *dir, *made;
	struct cm_file *file;
	afs_err err = node_vnode(f, parent, req_uid(req), &dir);
	if (!err)
		err = cm_create(dir, req_who(req), name, mode & 0777, &made);
	if (!err) {
		err = cm_open_new(made, req_uid(req), fi->flags & ~O_TRUNC, &file);
		if (err)
			cm_vnode_unref(made);
	}
	if (err) {
		reply_err(req, err);
		return;
	}
	fi->keep_cache = 1;
	opened(f, file, fi);
	reply_made(req, parent, dir, name, made, fi, file, false);
}

static void op_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	struct cm_file *file = file_of(fi);
	struct cm_vnode *v = file->vnode;
	void *buf = loop_buf();
	size_t got;
	unsigned breaks = atomic_load(&v->breaks);
	afs_err err =
		buf ? cm_read(file, (uint64_t)off, buf, MIN(size, FRONT_BUF), &got) : AFS_ENOMEM;
	if (err) {
		reply_err(req, err);
		return;
	}
	cm_vnode_ref(v); /* the reply may be followed by the last close at once */
	fuse_reply_buf(req, buf, got);
	if (atomic_load(&v->breaks) != breaks)
		cm_event(v, CM_EV_DATA);
	cm_vnode_unref(v);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	(void)ino;
	afs_err err = cm_write(file_of(fi), (uint64_t)off, buf, size);
	if (err)
		reply_err(req, err);
	else
		fuse_reply_write(req, size);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	struct cm_file *file = file_of(fi);
	afs_err err = cm_flush(file);
	cm_locks_drop(
		file, fi->lock_owner, false); /* POSIX: any close lets go of the process's locks */
	flock_wake(req_front(req));
	reply_err(req, err);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	struct cm_file *file = file_of(fi);
	if (fi->flock_release)
		cm_locks_drop(file, fi->lock_owner, true);
	cm_locks_drop(file, fi->lock_owner, false);
	cm_locks_drop_file(file);
	flock_wake(req_front(req));
	close_file(req_front(req), file);
	fuse_reply_err(req, 0);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino, (void)datasync;
	reply_err(req, cm_fsync(file_of(fi)));
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino, (void)datasync, (void)fi;
	fuse_reply_err(req, 0); /* changes of names are at the server when they return */
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	unsigned want = FUSE_CAP_ASYNC_READ | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS |
			FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
			FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS |
			FUSE_CAP_EXPLICIT_INVAL_DATA;
	conn->want = want & conn->capable;
	conn->max_write = FRONT_BUF;
	conn->max_readahead = FRONT_BUF;
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	conn->time_gran = NS_PER_SEC; /* AFS keeps seconds */
}

const struct fuse_lowlevel_ops front_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.access = op_access,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.symlink = op_symlink,
	.link = op_link,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.rename = op_rename,
	.open = op_open,
	.create = op_create,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.fsyncdir = op_fsyncdir,
	.statfs = op_statfs,
	.getxattr = op_getxattr,
	.setxattr = op_setxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.getlk = op_getlk,
	.setlk = op_setlk,
	.flock = op_flock,
};
