/* SPDX-License-Identifier: BSD-2-Clause
 * The table of vnodes.  Those that nobody uses stay in it, oldest first to go, up to a bound. */
#include "client/cm/cm.h"

#include "cell/base/log.h"

#include <string.h>

enum { VNODES_DEFAULT = 50000 };

static uint64_t hash(const struct cm *cm, const struct cm_cell *cell, const struct AFSFid *fid)
{
	uint32_t words[4] = {cell->index, fid->Volume, fid->Vnode, fid->Unique};
	return map_hash_bytes(&cm->vnodes, words, sizeof(words));
}

static struct cm_vnode *find_locked(struct cm *cm, const struct cm_cell *cell,
	const struct AFSFid *fid, uint64_t h) REQUIRES(cm->vnodes_lock)
{
	for (struct map_node *n = map_first(&cm->vnodes, h); n; n = map_next(n)) {
		struct cm_vnode *v = container_of(n, struct cm_vnode, by_fid);
		if (fid_equal(&v->fid, fid) && v->vol->cell == cell)
			return v;
	}
	return NULL;
}

static struct cm_vnode *take_locked(struct cm *cm, struct cm_vnode *v) REQUIRES(cm->vnodes_lock)
{
	if (atomic_fetch_add(&v->refs, 1) == 0 && list_linked(&v->idle)) {
		list_remove(&v->idle);
		cm->idle_n--;
	}
	return v;
}

static void vnode_free(struct cm_vnode *v)
{
	cm_locks_fini(v);
	if (v->cf)
		cache_file_close(v->cf);
	cm_dir_unref(v->dir);
	for (struct cm_dir *d = v->stale; d;) {
		struct cm_dir *next = d->next_stale;
		cm_dir_unref(d);
		d = next;
	}
	if (v->store_ident)
		cm_ident_unref(v->cm, v->store_ident);
	mem_free(v->target);
	cond_fini(&v->changed);
	mtx_fini(&v->lock);
	mem_free(v);
}

/* Out of the table what has been idle longest, past the bound.  What holds others (a mount point its
 * root) lets them go after the lock. */
static void trim(struct cm *cm)
{
	size_t max = cm->config.vnodes_max ? cm->config.vnodes_max : VNODES_DEFAULT;
	for (;;) {
		struct cm_vnode *v = NULL;
		mtx_lock(&cm->vnodes_lock);
		if (cm->idle_n > max) {
			struct list *e = list_pop_front(&cm->idle);
			if (e) {
				v = list_entry(e, struct cm_vnode, idle);
				cm->idle_n--;
				map_remove(&cm->vnodes, &v->by_fid);
			}
		}
		mtx_unlock(&cm->vnodes_lock);
		if (!v)
			return;
		struct cm_vnode *mount = v->mount, *silly = v->silly_dir;
		vnode_free(v);
		if (mount)
			cm_vnode_unref(mount);
		if (silly)
			cm_vnode_unref(silly);
	}
}

void cm_vnode_unref(struct cm_vnode *v)
{
	struct cm *cm = v->cm;
	unsigned refs = atomic_load(&v->refs);
	while (refs > 1)
		if (atomic_compare_exchange_weak(&v->refs, &refs, refs - 1))
			return;
	/* perhaps the last: decide under the lock, where the table could hand it out again */
	bool over = false;
	mtx_lock(&cm->vnodes_lock);
	if (atomic_fetch_sub(&v->refs, 1) == 1) {
		if (v->gone) /* the server has it no more: first to go */
			list_push_front(&cm->idle, &v->idle);
		else
			list_push_back(&cm->idle, &v->idle);
		cm->idle_n++;
		over = cm->idle_n >
		       (cm->config.vnodes_max ? cm->config.vnodes_max : VNODES_DEFAULT);
	}
	mtx_unlock(&cm->vnodes_lock);
	if (over)
		trim(cm);
}

struct cm_vnode *cm_vnode_find(struct cm *cm, struct cm_cell *cell, const struct AFSFid *fid)
{
	mtx_lock(&cm->vnodes_lock);
	struct cm_vnode *v = find_locked(cm, cell, fid, hash(cm, cell, fid));
	if (v)
		take_locked(cm, v);
	mtx_unlock(&cm->vnodes_lock);
	return v;
}

afs_err cm_vnode_get(
	struct cm *cm, struct cm_cell *cell, const struct AFSFid *fid, struct cm_vnode **out)
{
	uint64_t h = hash(cm, cell, fid);
	mtx_lock(&cm->vnodes_lock);
	struct cm_vnode *v = find_locked(cm, cell, fid, h);
	if (v) {
		*out = take_locked(cm, v);
		mtx_unlock(&cm->vnodes_lock);
		return AFS_OK;
	}
	mtx_unlock(&cm->vnodes_lock);

	struct cm_volume *vol = cm_volume_get(cm, cell, fid->Volume);
	struct cm_vnode *fresh = vol ? mem_new(struct cm_vnode) : NULL;
	if (!fresh)
		return AFS_ENOMEM;
	fresh->cm = cm;
	fresh->vol = vol;
	fresh->fid = *fid;
	fresh->cut = UINT64_MAX;
	fresh->server_lock = -1;
	atomic_init(&fresh->refs, 1);
	mtx_init(&fresh->lock, RANK_CM_VNODE);
	cond_init(&fresh->changed);
	list_init(&fresh->locks);
	list_init(&fresh->fetches);

	mtx_lock(&cm->vnodes_lock);
	v = find_locked(cm, cell, fid, h);
	bool inserted = !v && map_insert(&cm->vnodes, &fresh->by_fid, h);
	if (v)
		take_locked(cm, v);
	mtx_unlock(&cm->vnodes_lock);
	if (!inserted)
		vnode_free(fresh);
	*out = inserted ? fresh : v;
	return inserted || v ? AFS_OK : AFS_ENOMEM;
}

void cm_vnodes_each(struct cm *cm, const struct cm_volume *vol,
	void (*each)(struct cm_vnode *v, void *ctx), void *ctx)
{
	mtx_lock(&cm->vnodes_lock);
	size_t n = 0, count = cm->vnodes.count;
	struct cm_vnode **all = mem_new_array(count + 1, struct cm_vnode *);
	size_t cursor = 0;
	for (struct map_node *e = map_walk(&cm->vnodes, &cursor, NULL); e && all;
		e = map_walk(&cm->vnodes, &cursor, e->next)) {
		struct cm_vnode *v = container_of(e, struct cm_vnode, by_fid);
		if (!vol || v->vol == vol)
			all[n++] = take_locked(cm, v);
	}
	mtx_unlock(&cm->vnodes_lock);
	if (!all) {
		(void)log_error(AFS_ENOMEM, "cm.vnodes.walk_failed count=%zu", count);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		each(all[i], ctx);
		cm_vnode_unref(all[i]);
	}
	mem_free(all);
}

void cm_vnodes_fini(struct cm *cm)
{
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&cm->vnodes, &cursor, NULL), *next; n; n = next) {
		next = map_walk(&cm->vnodes, &cursor, n->next);
		vnode_free(container_of(n, struct cm_vnode, by_fid));
	}
	map_fini(&cm->vnodes);
}
