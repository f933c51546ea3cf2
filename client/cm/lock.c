/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Advisory locks.  Local programs are judged here, by owner and range; the server holds one lock for
 * the whole file on behalf of all of them, as strong as the strongest (cache-manager.md §9).  The
 * server's is taken for the first, changed by releasing and taking again, extended every half minute
 * and released after the last.  What is dirty is stored before a write lock is let go; whoever gets a
 * lock asks for the status anew. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include "cell/base/log.h"

#include <fcntl.h>

enum { LOCKS_MAX = 4096 }; /* of one file */

struct cm_lock {
	struct list all;
	const struct cm_file *by; /* through which it came: only compared */
	struct cm_lock_want is;
};

static struct cm_lock *of(struct list *e) { return list_entry(e, struct cm_lock, all); }

static bool clash(const struct cm_lock_want *a, const struct cm_lock_want *b)
{
	return a->flock == b->flock && a->owner != b->owner && a->start <= b->end &&
	       b->start <= a->end && (a->type == F_WRLCK || b->type == F_WRLCK);
}

static struct cm_lock *blocker_locked(const struct cm_vnode *v, const struct cm_lock_want *want)
	REQUIRES(v->lock)
{
	list_each(e, &v->locks) if (clash(&of(e)->is, want)) return of(e);
	return NULL;
}

bool cm_lock_test(struct cm_vnode *v, const struct cm_lock_want *want, struct cm_lock_want *blocker)
{
	mtx_lock(&v->lock);
	struct cm_lock *l = blocker_locked(v, want);
	if (l)
		*blocker = l->is;
	mtx_unlock(&v->lock);
	return l != NULL;
}

static bool put_locked(struct cm_vnode *v, const struct cm_file *by, const struct cm_lock_want *is) REQUIRES(v->lock)
{
	struct cm_lock *l = mem_new(struct cm_lock);
	if (!l)
		return false;
	l->is = *is;
	l->by = by;
	list_push_back(&v->locks, &l->all);
	return true;
}

/* The owner's locks lose [start, end]. */
static bool carve_locked(struct cm_vnode *v, const struct cm_lock_want *w) REQUIRES(v->lock)
{
	list_each(e, &v->locks)
	{
		struct cm_lock *l = of(e);
		if (l->is.flock != w->flock || l->is.owner != w->owner || l->is.end < w->start ||
			l->is.start > w->end)
			continue;
		if (l->is.start < w->start && l->is.end > w->end) {
			struct cm_lock_want tail = l->is;
			tail.start = w->end + 1;
			if (!put_locked(v, l->by, &tail))
				return false;
			l->is.end = w->start - 1;
		} else if (l->is.start < w->start) {
			l->is.end = w->start - 1;
		} else if (l->is.end > w->end) {
			l->is.start = w->end + 1;
		} else {
			list_remove(e);
			mem_free(l);
		}
	}
	return true;
}

static int needed_locked(const struct cm_vnode *v) REQUIRES(v->lock)
{
	int need = -1;
	list_each(e, &v->locks) need =
		of(e)->is.type == F_WRLCK ? FS_LOCK_WRITE : MAX(need, FS_LOCK_READ);
	list_each(e, &v->locks) if (of(e)->is.type == F_WRLCK) need = FS_LOCK_WRITE;
	return need;
}

static afs_err ask_set(struct cm_vnode *v, struct cm_ident *id, int type)
{
	struct fs_set_lock_in in = {v->fid, type};
	struct fs_set_lock_out out = {0};
	struct cm_try t = {.cm = v->cm, .vol = v->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_set_lock(t.conn, &in, &out, &t.res);
	return cm_try_end(&t);
}

static afs_err ask_release(struct cm_vnode *v, struct cm_ident *id)
{
	struct fs_release_lock_in in = {v->fid};
	struct fs_release_lock_out out = {0};
	struct cm_try t = {.cm = v->cm, .vol = v->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_release_lock(t.conn, &in, &out, &t.res);
	return cm_try_end(&t);
}

/* Make the server's lock what the local ones need.  Called with `locking` ours and the lock dropped. */
static afs_err follow(struct cm_vnode *v, struct cm_ident *id, int have, int need)
{
	struct cm *cm = v->cm;
	afs_err err = AFS_OK;
	if (have == need || cm_volume_is_ro(v->vol) || v->vol->id == 0)
		return AFS_OK;
	if (have == FS_LOCK_WRITE)
		(void)cm_store(
			v, true, false); /* kept for who closes; the lock is let go in any case */
	if (have >= 0) {
		err = ask_release(v, id);
		if (err)
			log_warn("cm.lock.release_failed fid=%u.%u.%u err=%s", v->fid.Volume,
				v->fid.Vnode, v->fid.Unique, afs_err_name(err));
		err = AFS_OK;
	}
	if (need >= 0)
		err = ask_set(v, id, need);
	afs_err back = AFS_EAGAIN;
	if (err && have == FS_LOCK_READ) /* an upgrade that failed: take back what was there */
		back = ask_set(v, id, FS_LOCK_READ);
	mtx_lock(&v->lock);
	v->server_lock = !err ? need : back == AFS_OK ? FS_LOCK_READ : -1;
	if (!err && need >= 0)
		v->promise = 0; /* see what the last holder did */
	bool held = v->server_lock >= 0;
	struct cm_ident *old = v->lock_ident;
	v->lock_ident = held ? cm_ident_ref(id) : NULL;
	mtx_unlock(&v->lock);
	if (old)
		cm_ident_unref(cm, old);

	bool unref = false;
	mtx_lock(&cm->jobs_lock);
	if (held && !list_linked(&v->locked)) {
		cm_vnode_ref(v);
		list_push_back(&cm->locked, &v->locked);
	} else if (!held && list_linked(&v->locked)) {
		list_remove(&v->locked);
		unref = true;
	}
	mtx_unlock(&cm->jobs_lock);
	if (unref)
		cm_vnode_unref(v);
	return err;
}

afs_err cm_lock_try(struct cm_file *f, const struct cm_lock_want *want)
{
	struct cm_vnode *v = f->vnode;
	afs_err err = AFS_OK;
	mtx_lock(&v->lock);
	while (v->locking)
		cond_wait(&v->changed, &v->lock);
	if (want->type != F_UNLCK && blocker_locked(v, want)) {
		mtx_unlock(&v->lock);
		return AFS_EAGAIN;
	}
	size_t n = 0;
	list_each(e, &v->locks) n++;
	if (want->type != F_UNLCK && n >= LOCKS_MAX) {
		mtx_unlock(&v->lock);
		return AFS_ETOOMANY;
	}
	v->locking = true;
	int have = v->server_lock;
	if (want->type == F_UNLCK) {
		if (!carve_locked(v, want))
			err = AFS_ENOMEM;
	}
	int need = needed_locked(v);
	if (want->type != F_UNLCK)
		need = MAX(need, want->type == F_WRLCK ? FS_LOCK_WRITE : FS_LOCK_READ);
	mtx_unlock(&v->lock);

	afs_err asked = err ? AFS_OK : follow(v, f->ident, have, need);

	mtx_lock(&v->lock);
	if (want->type != F_UNLCK) {
		err = asked;
		if (!err && (!carve_locked(v, want) || !put_locked(v, f, want)))
			err = AFS_ENOMEM;
	}
	v->locking = false;
	cond_broadcast(&v->changed);
	mtx_unlock(&v->lock);
	return err;
}

void cm_locks_drop(struct cm_file *f, uint64_t owner, bool flock)
{
	struct cm_vnode *v = f->vnode;
	mtx_lock(&v->lock);
	bool any = false;
	list_each(e, &v->locks) any |= of(e)->is.owner == owner && of(e)->is.flock == flock;
	mtx_unlock(&v->lock);
	struct cm_lock_want all = {
		.owner = owner, .flock = flock, .type = F_UNLCK, .start = 0, .end = UINT64_MAX};
	if (any && cm_lock_try(f, &all) != AFS_OK)
		log_warn("cm.lock.drop_failed fid=%u.%u.%u", v->fid.Volume, v->fid.Vnode,
			v->fid.Unique);
}

void cm_locks_drop_file(struct cm_file *f)
{
	struct cm_vnode *v = f->vnode;
	for (unsigned turns = 0; turns < LOCKS_MAX; turns++) {
		uint64_t owner = 0;
		bool any = false;
		mtx_lock(&v->lock);
		list_each(e, &v->locks)
		{
			if (of(e)->by != f || of(e)->is.flock)
				continue;
			any = true;
			owner = of(e)->is.owner;
		}
		mtx_unlock(&v->lock);
		if (!any)
			return;
		cm_locks_drop(f, owner, false);
	}
}

void cm_locks_extend(struct cm *cm)
{
	struct cm_vnode *held[256];
	size_t n = 0;
	mtx_lock(&cm->jobs_lock);
	list_each(e, &cm->locked) if (n < ARRAY_SIZE(held)) held[n++] =
		cm_vnode_ref(list_entry(e, struct cm_vnode, locked));
	/* the longest untouched first, next time */
	for (size_t i = 0; i < n; i++) {
		list_remove(&held[i]->locked);
		list_push_back(&cm->locked, &held[i]->locked);
	}
	mtx_unlock(&cm->jobs_lock);
	for (size_t i = 0; i < n; i++) {
		struct cm_vnode *v = held[i];
		mtx_lock(&v->lock);
		struct cm_ident *id = v->lock_ident ? cm_ident_ref(v->lock_ident) : NULL;
		mtx_unlock(&v->lock);
		if (id) {
			struct fs_extend_lock_in in = {v->fid};
			struct fs_extend_lock_out out = {0};
			struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
			while (cm_try(&t))
				t.err = fs_call_extend_lock(t.conn, &in, &out, &t.res);
			afs_err err = cm_try_end(&t);
			if (err)
				log_warn("cm.lock.extend_failed fid=%u.%u.%u err=%s", v->fid.Volume,
					v->fid.Vnode, v->fid.Unique, afs_err_name(err));
			cm_ident_unref(cm, id);
		}
		cm_vnode_unref(v);
	}
}

void cm_locks_fini(struct cm_vnode *v)
{
	for (struct list *e; v->locks.next && (e = list_pop_front(&v->locks));)
		mem_free(of(e));
	if (v->lock_ident)
		cm_ident_unref(v->cm, v->lock_ident);
}
