/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whole-file advisory locks: a count and one expiry per file, of no client in particular, in memory
 * (a restart frees them).  Always: an entry has a count other than 0; -1 is a writer.
 * Source: fileserver.md §8. */
#include "cell/base/map.h"
#include "cell/base/mtx.h"
#include "fileserver/fs/fs_handlers.h"

struct lock {
	struct map_node node;
	struct AFSFid fid;
	int32_t count; /* readers; -1: a writer */
	mono_ns expires;
};
struct fs_locks {
	struct mtx lock; /* alone: nothing is called under it */
	struct map by_fid;
	atomic_uint any; /* 0: nothing is locked, as a status finds it mostly */
};

struct fs_locks *fs_locks_new(void)
{
	struct fs_locks *l = mem_new(struct fs_locks);
	if (!l)
		return NULL;
	mtx_init(&l->lock, RANK_LEAF);
	map_init(&l->by_fid);
	return l;
}

static uint64_t hash_fid(const struct fs_locks *l, const struct AFSFid *fid)
{
	uint64_t key[2] = {fid->Volume, (uint64_t)fid->Vnode << 32 | fid->Unique};
	return map_hash_bytes(&l->by_fid, key, sizeof(key));
}

static void remove_locked(struct fs_locks *l, struct lock *k) REQUIRES(l->lock)
{
	map_remove(&l->by_fid, &k->node);
	atomic_fetch_sub(&l->any, 1);
	mem_free(k);
}

/* Drop what expired, or everything. */
static void sweep_locked(struct fs_locks *l, mono_ns now, bool all) REQUIRES(l->lock)
{
	size_t cursor = 0;
	struct map_node *next;
	for (struct map_node *n = map_walk(&l->by_fid, &cursor, NULL); n; n = next) {
		next = map_walk(&l->by_fid, &cursor, n->next);
		struct lock *k = container_of(n, struct lock, node);
		if (all || now > k->expires)
			remove_locked(l, k);
	}
}

void fs_locks_free(struct fs_locks *l)
{
	if (!l)
		return;
	mtx_lock(&l->lock);
	sweep_locked(l, 0, true);
	mtx_unlock(&l->lock);
	map_fini(&l->by_fid);
	mtx_fini(&l->lock);
	mem_free(l);
}

/* The live lock on `fid`; one that expired is gone. */
static struct lock *find_locked(struct fs_locks *l, const struct AFSFid *fid, mono_ns now)
	REQUIRES(l->lock)
{
	uint64_t h = hash_fid(l, fid);
	for (struct map_node *n = map_first(&l->by_fid, h); n; n = map_next(n)) {
		struct lock *k = container_of(n, struct lock, node);
		if (!fid_equal(&k->fid, fid))
			continue;
		if (now <= k->expires)
			return k;
		remove_locked(l, k);
		return NULL;
	}
	return NULL;
}

static afs_err set_locked(struct fs_locks *l, const struct AFSFid *fid, bool write, mono_ns now)
	REQUIRES(l->lock)
{
	struct lock *k = find_locked(l, fid, now);
	if (k && (write || k->count < 0 || k->count == INT32_MAX))
		return AFS_EAGAIN;
	if (!k) {
		if (l->by_fid.count >= FS_LOCKS_MAX)
			sweep_locked(l, now, false);
		if (l->by_fid.count >= FS_LOCKS_MAX)
			return AFS_EAGAIN;
		k = mem_new(struct lock);
		if (!k)
			return AFS_ENOMEM;
		k->fid = *fid;
		if (!map_insert(&l->by_fid, &k->node, hash_fid(l, fid))) {
			mem_free(k);
			return AFS_ENOMEM;
		}
		atomic_fetch_add(&l->any, 1);
	}
	k->count = write ? -1 : k->count + 1;
	k->expires = now + SEC(FS_LOCK_LIFE_S);
	return AFS_OK;
}

afs_err fs_locks_set(struct fs_locks *l, const struct AFSFid *fid, bool write, mono_ns now)
{
	mtx_lock(&l->lock);
	afs_err err = set_locked(l, fid, write, now);
	mtx_unlock(&l->lock);
	return err;
}

afs_err fs_locks_extend(struct fs_locks *l, const struct AFSFid *fid, mono_ns now)
{
	mtx_lock(&l->lock);
	struct lock *k = find_locked(l, fid, now);
	if (k)
		k->expires = now + SEC(FS_LOCK_LIFE_S);
	mtx_unlock(&l->lock);
	return k ? AFS_OK : AFS_EINVAL;
}

bool fs_locks_release(struct fs_locks *l, const struct AFSFid *fid, mono_ns now)
{
	mtx_lock(&l->lock);
	struct lock *k = find_locked(l, fid, now);
	bool is_free = !k || --k->count <= 0;
	if (k && is_free)
		remove_locked(l, k);
	mtx_unlock(&l->lock);
	return is_free;
}

void fs_locks_drop(struct fs_locks *l, const struct AFSFid *fid)
{
	mtx_lock(&l->lock);
	struct lock *k = find_locked(l, fid, 0);
	if (k)
		remove_locked(l, k);
	mtx_unlock(&l->lock);
}

uint32_t fs_locks_count(struct fs_locks *l, const struct AFSFid *fid, mono_ns now)
{
	if (!atomic_load(&l->any))
		return 0;
	mtx_lock(&l->lock);
	struct lock *k = find_locked(l, fid, now);
	uint32_t n = k ? (uint32_t)k->count : 0;
	mtx_unlock(&l->lock);
	return n;
}

/* --- procedures -------------------------------------------------------------------------------- */

/* In a volume that never changes, reading locks are given without being kept; the reply's VolSync is
 * all zero then. */
static afs_err set_lock(
	struct rpc_call *call, const struct AFSFid *fid, int32_t type, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	if (type != FS_LOCK_READ && type != FS_LOCK_WRITE)
		return AFS_EINVAL;
	bool write = type == FS_LOCK_WRITE;
	TRY(fs_access_begin(fs, call, fid, &a));
	TRY(fs_access_may(&a, write ? FS_ACT_LOCK_WRITE : FS_ACT_LOCK_READ, NULL));
	if (a.node.volume_type != AFS_VOL_RW)
		return AFS_OK;
	TRY(fs_locks_set(fs->locks, fid, write, call->now));
	fs_reply_sync(&a, sync);
	return AFS_OK;
}

static afs_err extend_lock(struct rpc_call *call, const struct AFSFid *fid, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_begin(fs, call, fid, &a));
	if (a.node.volume_type != AFS_VOL_RW)
		return AFS_OK;
	TRY(fs_locks_extend(fs->locks, fid, call->now));
	fs_reply_sync(&a, sync);
	return AFS_OK;
}

/* Never fails for lack of a lock.  A lock that became free is a break, so that waiters try again. */
static afs_err release_lock(
	struct rpc_call *call, const struct AFSFid *fid, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_begin(fs, call, fid, &a));
	if (a.node.volume_type != AFS_VOL_RW)
		return AFS_OK;
	if (fs_locks_release(fs->locks, fid, call->now))
		fs_access_break(&a, &a.node.st.fid, 1, false);
	fs_reply_sync(&a, sync);
	return AFS_OK;
}

afs_err fs_set_lock(
	struct rpc_call *call, const struct fs_set_lock_in *in, struct fs_set_lock_out *out)
{
	return set_lock(call, &in->Fid, in->Type, &out->Sync);
}

afs_err fs_extend_lock(
	struct rpc_call *call, const struct fs_extend_lock_in *in, struct fs_extend_lock_out *out)
{
	return extend_lock(call, &in->Fid, &out->Sync);
}

afs_err fs_release_lock(
	struct rpc_call *call, const struct fs_release_lock_in *in, struct fs_release_lock_out *out)
{
	return release_lock(call, &in->Fid, &out->Sync);
}

/* The older numbers: the VolSync came in, and nothing goes back. */
afs_err fs_old_set_lock(
	struct rpc_call *call, const struct fs_old_set_lock_in *in, struct fs_old_set_lock_out *out)
{
	(void)out;
	return set_lock(call, &in->Fid, in->Type, &(struct AFSVolSync){0});
}

afs_err fs_old_extend_lock(struct rpc_call *call, const struct fs_old_extend_lock_in *in,
	struct fs_old_extend_lock_out *out)
{
	(void)out;
	return extend_lock(call, &in->Fid, &(struct AFSVolSync){0});
}

afs_err fs_old_release_lock(struct rpc_call *call, const struct fs_old_release_lock_in *in,
	struct fs_old_release_lock_out *out)
{
	(void)out;
	return release_lock(call, &in->Fid, &(struct AFSVolSync){0});
}
