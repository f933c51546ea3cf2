/* SPDX-License-Identifier: BSD-2-Clause
 * Locks.  Who must wait is put aside with his request; a thread tries again when a lock was let go
 * here, and every half second for those that other clients hold. */
#include "client/fuse/front.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

struct wait {
	struct list all;
	fuse_req_t req;
	struct cm_file *file;
	struct cm_lock_want want;
	atomic_bool interrupted;
};

static struct cm_lock_want want_of(
	const struct fuse_file_info *fi, const struct flock *lk, pid_t pid)
{
	return (struct cm_lock_want){
		.owner = fi->lock_owner,
		.pid = pid,
		.type = lk->l_type,
		.start = (uint64_t)lk->l_start,
		.end = lk->l_len ? (uint64_t)lk->l_start + (uint64_t)lk->l_len - 1 : UINT64_MAX,
	};
}

void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lk)
{
	(void)ino;
	struct cm_file *file = (struct cm_file *)(uintptr_t)fi->fh;
	struct cm_lock_want want = want_of(fi, lk, 0), by;
	if (cm_lock_test(file->vnode, &want, &by)) {
		lk->l_type = (short)by.type;
		lk->l_start = (off_t)by.start;
		lk->l_len = by.end == UINT64_MAX ? 0 : (off_t)(by.end - by.start + 1);
		lk->l_pid = by.pid;
	} else {
		lk->l_type = F_UNLCK;
	}
	fuse_reply_lock(req, lk);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	struct wait *w = data;
	atomic_store(&w->interrupted, true);
	flock_wake(req_front(req));
}

/* Who gets a lock sees what its last holder did: also where the kernel kept pages of before. */
static void look_again(struct cm_file *file)
{
	struct cm_attr a;
	if (cm_getattr(file->vnode, file->ident->uid, &a) != AFS_OK)
		return; /* the next read meets the same error */
	cm_event_settle(file->vnode);
}

static afs_err try_lock(struct cm_file *file, const struct cm_lock_want *want)
{
	afs_err err = cm_lock_try(file, want);
	if (!err && want->type != F_UNLCK)
		look_again(file);
	return err;
}

static void lock_or_wait(
	fuse_req_t req, struct cm_file *file, const struct cm_lock_want *want, bool wait)
{
	struct front *f = req_front(req);
	afs_err err = try_lock(file, want);
	if (want->type == F_UNLCK)
		flock_wake(f);
	if (err != AFS_EAGAIN || !wait) {
		reply_err(req, err);
		return;
	}
	struct wait *w = mem_new(struct wait);
	if (!w) {
		reply_err(req, AFS_ENOMEM);
		return;
	}
	w->req = req;
	w->file = file; /* open until the release that waits for this request's end */
	w->want = *want;
	mtx_lock(&f->waits_lock);
	list_push_back(&f->waits, &w->all);
	mtx_unlock(&f->waits_lock);
	fuse_req_interrupt_func(req, on_interrupt, w);
	flock_wake(f);
}

void op_setlk(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lk, int sleep)
{
	(void)ino;
	struct cm_lock_want want = want_of(fi, lk, lk->l_pid);
	lock_or_wait(req, (struct cm_file *)(uintptr_t)fi->fh, &want, sleep);
}

void op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	(void)ino;
	static const int types[] = {[LOCK_SH] = F_RDLCK, [LOCK_EX] = F_WRLCK, [LOCK_UN] = F_UNLCK};
	int kind = op & (LOCK_SH | LOCK_EX | LOCK_UN);
	if (kind != LOCK_SH && kind != LOCK_EX && kind != LOCK_UN) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	struct cm_lock_want want = {
		.owner = fi->lock_owner, .flock = true, .type = types[kind], .end = UINT64_MAX};
	lock_or_wait(req, (struct cm_file *)(uintptr_t)fi->fh, &want, !(op & LOCK_NB));
}

void flock_wake(struct front *f)
{
	mtx_lock(&f->waits_lock);
	if (!list_empty(&f->waits))
		cond_signal(&f->waits_changed);
	mtx_unlock(&f->waits_lock);
}

static void *wait_loop(void *arg)
{
	struct front *f = arg;
	mtx_lock(&f->waits_lock);
	while (!f->waits_end) {
		if (list_empty(&f->waits))
			cond_wait(&f->waits_changed, &f->waits_lock);
		else
			cond_wait_until(&f->waits_changed, &f->waits_lock, clk_mono() + MSEC(500));
		struct list turn;
		list_init(&turn);
		for (struct list *e; (e = list_pop_front(&f->waits));)
			list_push_back(&turn, e);
		bool end = f->waits_end;
		mtx_unlock(&f->waits_lock);
		for (struct list *e; (e = list_pop_front(&turn));) {
			struct wait *w = list_entry(e, struct wait, all);
			afs_err err = end || atomic_load(&w->interrupted)
					      ? AFS_EINTR
					      : try_lock(w->file, &w->want);
			if (err == AFS_EAGAIN) {
				mtx_lock(&f->waits_lock);
				list_push_back(&f->waits, e);
				mtx_unlock(&f->waits_lock);
				continue;
			}
			fuse_req_interrupt_func(w->req, NULL, NULL);
			reply_err(w->req, err);
			mem_free(w);
		}
		mtx_lock(&f->waits_lock);
	}
	mtx_unlock(&f->waits_lock);
	return NULL;
}

afs_err flock_start(struct front *f)
{
	mtx_init(&f->waits_lock, RANK_LEAF);
	cond_init(&f->waits_changed);
	list_init(&f->waits);
	f->lock_runs = pthread_create(&f->lock_thread, NULL, wait_loop, f) == 0;
	if (f->lock_runs)
		pthread_setname_np(f->lock_thread, "fuse-locks");
	return f->lock_runs ? AFS_OK : AFS_ENOMEM;
}

void flock_stop(struct front *f)
{
	mtx_lock(&f->waits_lock);
	f->waits_end = true;
	cond_broadcast(&f->waits_changed);
	mtx_unlock(&f->waits_lock);
	if (f->lock_runs)
		pthread_join(f->lock_thread, NULL);
	f->lock_runs = false;
	for (struct list *e; (e = list_pop_front(&f->waits));) {
		struct wait *w = list_entry(e, struct wait, all);
		reply_err(w->req, AFS_EINTR);
		mem_free(w);
	}
	cond_fini(&f->waits_changed);
	mtx_fini(&f->waits_lock);
}
