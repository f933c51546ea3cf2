/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The mount: what the kernel asks, answered from cm/.
 *
 * A node is what the kernel calls an inode.  For a file or link it stands for a vnode; for a
 * directory, for a vnode as reached through one chain of mount points, because a directory has one
 * parent in the kernel's eyes while a volume may be mounted many times, in itself too.  A node for a
 * mount point is resolved when something inside is asked for; until then its attributes are made up
 * if they cannot be had.  The node's address is its number.
 *
 * Coherence.  While a promise stands the kernel may answer for us: names of directories that everybody
 * may list, attributes, pages.  When it is broken, a thread that holds nothing tells the kernel.  A
 * reply that crosses a break is followed by the same message once more (every place that replies
 * compares the count of breaks before and after).  Names in directories that not everybody may list are
 * asked for each time, since the kernel's name cache does not know who may.
 *
 * Pages: the kernel's stay over a close and open while nobody else changed the file.  Writes go
 * through to us at once: with the kernel's writeback cache (FUSE_WRITEBACK_CACHE) the kernel alone
 * decides a file's size and time, and does not believe us when another client changed them.  What
 * that would gain, measured: 8 KiB writes at 2.4 times the speed, larger ones nothing. */
#pragma once
#define FUSE_USE_VERSION 312
#include "client/cm/cm.h"

#include <fuse3/fuse_lowlevel.h>

struct fnode {
	struct map_node by_key;   /* (key, ctx) */
	struct map_node by_vnode; /* when resolved */
	struct cm_vnode *key;     /* counted: the mount point, or the vnode itself */
	struct cm_vnode *vnode;   /* counted; NULL: a mount point not resolved yet */
	struct fnode *ctx; /* held: the mount point under which this directory is; NULL for files */
	bool mount;
	uint64_t lookups; /* what the kernel counts */
	unsigned held;    /* by nodes below, and by work under way */
	uint64_t generation;
	atomic_uint foreign; /* of the vnode, when the kernel began to keep pages */
};

struct front {
	struct cm *cm;
	struct fuse_session *se;
	char *dir;
	int fd;                    /* /dev/fuse */
	atomic_ullong init_unique; /* of the INIT request; all ones when it is answered */
	atomic_uint init_flags, minor; /* of the protocol, as the kernel said */

	struct mtx lock; /* nodes */
	struct map keys GUARDED_BY(lock), vnodes GUARDED_BY(lock);
	struct fnode root;
	uint64_t generation GUARDED_BY(lock);
	struct list files GUARDED_BY(lock), dirs
		GUARDED_BY(lock); /* open ones, for an end without their release */

	/* loop.c */
	struct mtx threads_lock;
	struct cond threads_changed;
	struct list threads GUARDED_BY(threads_lock);
	unsigned thread_n, idle_n, threads_max;
	bool over;

	/* inval.c */
	pthread_t data_thread, name_thread, lock_thread;
	bool data_runs, name_runs, lock_runs;
	struct mtx queue_lock;
	struct cond queue_changed;
	struct list names GUARDED_BY(queue_lock);
	bool ending GUARDED_BY(queue_lock);

	/* flock.c */
	struct mtx waits_lock;
	struct cond waits_changed;
	struct list waits GUARDED_BY(waits_lock);
	bool waits_end GUARDED_BY(waits_lock);
};

extern const struct fuse_lowlevel_ops front_ops;

/* node.c */
void nodes_init(struct front *f);
void nodes_fini(struct front *f);
struct fnode *node_of(struct front *f, fuse_ino_t ino);
static inline fuse_ino_t node_ino(struct front *f, const struct fnode *n)
{
	return n == &f->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)n;
}
/* The node for `v` found in `parent`, with one more lookup; NULL: no memory.  `mount`: v is a mount
 * point's own vnode. */
struct fnode *node_get(
	struct front *f, struct fnode *parent, struct cm_vnode *v, bool dir, bool mount);
void node_forget(struct front *f, struct fnode *n, uint64_t lookups);
/* The vnode of a node, through the mount point if need be; borrowed from the node, which the kernel
 * knows during the request.  May wait. */
afs_err node_vnode(struct front *f, struct fnode *n, uid_t uid, struct cm_vnode **out);
void node_hold(struct front *f, struct fnode *n);
void node_drop(struct front *f, struct fnode *n);
/* Two at once.  A reply may let the kernel forget what the request was about: hold what is used after. */
void node_hold2(struct front *f, struct fnode *a, struct fnode *b);
void node_drop2(struct front *f, struct fnode *a, struct fnode *b);
/* All nodes of a vnode, held; NULL and 0 when there is none (or no memory). */
struct fnode **nodes_of(struct front *f, const struct cm_vnode *v, size_t *n);

/* inval.c */
afs_err inval_start(struct front *f);
void inval_stop(struct front *f);
void inval_name(struct front *f, struct fnode *dir, const char *name, size_t len);

/* loop.c */
afs_err loop_start(struct front *f);
void loop_stop(struct front *f);
/* A buffer of the thread's own for replies, FRONT_BUF bytes; NULL: no memory. */
enum { FRONT_BUF = 1 << 20 };
void *loop_buf(void);

/* flock.c */
afs_err flock_start(struct front *f);
void flock_stop(struct front *f);
void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lk);
void op_setlk(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lk, int sleep);
void op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op);
void flock_wake(struct front *f);

/* ops.c and its neighbours share these */
static inline struct front *req_front(fuse_req_t req) { return fuse_req_userdata(req); }
/* Whose tokens count: his PAG's, when he has one. */
static inline uid_t req_uid(fuse_req_t req)
{
	const struct fuse_ctx *x = fuse_req_ctx(req);
	cm_try_for(x->pid);
	return client_identity((struct client *)req_front(req)->cm, x->uid, x->pid);
}
static inline struct cm_who req_who(fuse_req_t req)
{
	return (struct cm_who){req_uid(req), fuse_req_ctx(req)->gid};
}
void reply_err(fuse_req_t req, afs_err err);
double front_timeout(const struct front *f, mono_ns until);
void front_stat(const struct cm_attr *a, struct stat *st);
/* Attributes of a node, made up for a mount point that leads nowhere now. */
afs_err front_attr(struct front *f, struct fnode *n, uid_t uid, struct cm_attr *a);

/* dirs.c */
void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

void dirs_close_all(struct front *f);
void files_close_all(struct front *f); /* ops.c */

/* xattr.c */
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
	int flags);
void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
