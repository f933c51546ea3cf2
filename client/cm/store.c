/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Storing: one StoreData64 at a time per file, in rising order, so that versions can be counted.  A
 * long write is stored behind the writer's back in long runs; a close stores the rest and reports.
 *
 * What a reply of the expected version (one more) says is taken in; pages stored stay valid.  An error
 * that will not pass (no right, no room) makes the changes void, so that the cache agrees with the
 * server, and is reported once: to the writer, fsync or close that comes next. */
#include "client/cm/cm.h"

#include "cell/base/log.h"
#include "cell/proto/fs.h"

#include <string.h>

enum { RUN_MAX = 64 << 20, RUN_DIRECT = 4 << 20 /* which is collected in memory */, RUN_LONG = 256 * 1024, ROOM_DIRECT = 16 * 1024 };

bool cm_needs_store_locked(const struct cm_vnode *v)
{
	if (!v->has_status || v->st.FileType != AFS_FILE)
		return false;
	return v->cut != UINT64_MAX || v->length != fs_status_length(&v->st) ||
	       (v->cf && cache_is_dirty(v->cf));
}

void cm_meta_locked(struct cm_vnode *v, bool more)
{
	struct cache_meta m = {0};
	if (!v->cf)
		return;
	if (more || cm_needs_store_locked(v))
		m = (struct cache_meta){.pending = true, .length = v->length, .cut = v->cut,
			.mtime = v->mtime_set ? v->mtime : v->st.ClientModTime, .uid = v->store_ident ? v->store_ident->uid : (uid_t)-1,
			.parent_vnode = v->st.ParentVnode, .parent_unique = v->st.ParentUnique};
	cache_file_set_meta(v->cf, &m);
}

struct piece {
	struct cache_file *cf;
	uint64_t pos, end;           /* bytes to send: [pos, end) */
	uint64_t run_start, run_end; /* pages taken, to be given back */
	uint64_t file_length;
	bool taken, durable;
};

static afs_err send_data(struct rpc_call *call, const struct piece *p, uint8_t *buf)
{
	struct cache_file *cf = p->cf;
	for (uint64_t at = p->pos; at < p->end;) {
		uint8_t *room;
		size_t n, want = (size_t)MIN(p->end - at, CM_BUF);
		TRY(rpc_write_room(call, want, &room, &n));
		if (n >= want ||
			n >= ROOM_DIRECT) { /* payload moves once, from the cache into the packet */
			n = MIN(n, want);
			TRY(cache_read_raw(cf, at, room, n));
			TRY(rpc_write_commit(call, n));
			at += n;
			continue;
		}
		TRY(rpc_write_commit(call, 0)); /* small packets: one read of the cache for many */
		TRY(cache_read_raw(cf, at, buf, want));
		TRY(rpc_write(call, buf, want));
		at += want;
	}
	return AFS_OK;
}

static afs_err store_piece(
	struct cm_vnode *v, struct cm_ident *id, const struct piece *p, uint32_t mtime, uint64_t dv)
{
	struct cm *cm = v->cm;
	struct cm_stamp stamp = cm_stamp(cm, v->vol, v);
	struct fs_store_data64_in in = {
		.Fid = v->fid,
		.InStatus = {.Mask = FS_SET_MODTIME | (p->durable ? FS_FSYNC : 0),
			.ClientModTime = mtime},
		.Pos = p->pos,
		.Length = p->end - p->pos,
		.FileLength = p->file_length,
	};
	struct fs_store_data64_out out = {0};
	uint8_t *buf = cm_buf_get(cm);
	if (!buf)
		return AFS_ENOMEM;
	struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
	afs_err local = AFS_OK;
	while (cm_try(&t)) {
		struct rpc_call *call;
		t.err = rpc_begin(t.conn, &fs_iface.procs[fs_op_store_data64], &in, &call);
		if (t.err)
			continue;
		local = send_data(call, p, buf);
		if (local ==
			AFS_EIO) { /* the cache's disk: nothing half may stand at the server as whole */
			rpc_cancel(call);
			break;
		}
		t.err = rpc_end(call, &out, &t.res); /* says why, when sending failed */
		if (!t.err && local)
			t.err = local;
		local = AFS_OK;
	}
	cm_buf_put(cm, buf);
	afs_err err = cm_try_end(&t);
	if (local)
		err = local;
	mtx_lock(&v->lock);
	if (!err) {
		cm_merge_locked(v, id, &out.OutStatus, NULL, &stamp, t.sent, dv + 1);
		atomic_fetch_add(&cm->n_stored, p->end - p->pos);
		v->unsynced = !p->durable;
	} else {
		v->promise = 0; /* how far the server came is unknown */
	}
	mtx_unlock(&v->lock);
	return err;
}

afs_err cm_store_range(struct cm_vnode *v, struct cm_ident *id, struct cache_file *cf, uint64_t pos, uint64_t end,
	uint64_t file_length, uint32_t mtime, uint64_t *dv)
{
	struct piece p = {.cf = cf, .pos = pos, .end = end, .file_length = file_length};
	TRY(store_piece(v, id, &p, mtime, *dv));
	mtx_lock(&v->lock);
	bool follows = v->dv == *dv + 1;
	*dv = v->dv;
	mtx_unlock(&v->lock);
	return follows ? AFS_OK : AFS_EEXIST;
}

/* What to send next, or false.  `all`: also short runs, and lengths. */
static bool next_piece_locked(struct cm_vnode *v, bool all, bool durable, bool direct, struct piece *p)
	REQUIRES(v->lock)
{
	uint64_t at_server = fs_status_length(&v->st), length = v->length;
	*p = (struct piece){.cf = v->cf, .file_length = length};
	if (v->cut < at_server) {
		/* Where everything behind the cut is going to be written over, one FileLength does it all. */
		uint64_t covered = MIN(at_server, length);
		if (covered <= v->cut ? length < at_server && !cache_is_dirty(v->cf)
				      : !cache_all_dirty(v->cf, v->cut, covered)) {
			p->pos = p->end = p->file_length = v->cut;
			return true;
		}
	}
	while (v->cf && cache_take_dirty(v->cf, 0, all ? CACHE_PAGE : RUN_LONG, direct ? RUN_DIRECT : RUN_MAX,
				&p->run_start, &p->run_end)) {
		p->pos = p->run_start;
		p->end = MIN(p->run_end, length);
		if (p->pos >= p->end) { /* behind the end: cut off meanwhile */
			cache_stored(v->cf, p->run_start, p->run_end, true);
			continue;
		}
		p->taken = true;
		p->file_length = MAX(length, p->end);
		p->durable = durable;
		return true;
	}
	if (!all)
		return false;
	p->pos = p->end = length;
	p->durable = durable;
	return at_server != length || (durable && v->unsynced);
}

static bool passes(afs_err err)
{
	switch (err) {
	case AFS_ETIMEDOUT:
	case AFS_EDEAD:
	case AFS_EVBUSY:
	case AFS_ERESTARTING:
	case AFS_EOVERLOAD:
	case AFS_EVOFFLINE:
	case AFS_ECANCELLED:
	case AFS_ENOMEM:
	case AFS_EAGAIN:
		return true;
	default:
		return false;
	}
}

afs_err cm_store(struct cm_vnode *v, bool all, bool durable)
{
	afs_err err = AFS_OK;
	mtx_lock(&v->lock);
	while (v->storing)
		cond_wait(&v->changed, &v->lock);
	if (!v->has_status || v->st.FileType != AFS_FILE || !v->store_ident ||
		!(cm_needs_store_locked(v) || (durable && v->unsynced))) {
		if (all) {
			err = v->store_err;
			v->store_err = AFS_OK;
		}
		mtx_unlock(&v->lock);
		return err;
	}
	v->storing = true;
	struct cm_ident *id = cm_ident_ref(v->store_ident);
	mtx_unlock(&v->lock); /* `storing` keeps others away */
	bool direct = cm_volume_is_direct(v->cm, v->vol, id);
	mtx_lock(&v->lock);
	struct piece p;
	while (!err && next_piece_locked(v, all, durable, direct, &p)) {
		uint32_t mtime = v->mtime_set ? v->mtime : v->st.ClientModTime;
		uint64_t dv = v->dv;
		unsigned cuts = v->cuts;
		mtx_unlock(&v->lock);
		err = store_piece(v, id, &p, mtime, dv);
		if (p.taken)
			cache_stored(v->cf, p.run_start, p.run_end, !err);
		mtx_lock(&v->lock);
		if (!err && v->cuts == cuts)
			v->cut = UINT64_MAX;
		cm_meta_locked(v, false);
		cond_broadcast(&v->changed);
	}
	if (!err && all && !cm_needs_store_locked(v))
		v->mtime_set = false;
	/* who has lost his token since he wrote may get another */
	bool tokenless = (err == AFS_EACCESS || err == AFS_EPERM) && id->number && !cm_ident_usable(v->cm, id);
	if (err && !passes(err) && !tokenless) {
		log_warn("cm.store.refused fid=%u.%u.%u err=%s: changes are void", v->fid.Volume,
			v->fid.Vnode, v->fid.Unique, afs_err_name(err));
		cm_data_forget_locked(v);
		cm_event(v, CM_EV_ATTR | CM_EV_DATA);
		if (err == AFS_ENOVNODE)
			v->gone = true;
	}
	if (err && !all) {
		v->store_err = err;
	} else if (all && !err) {
		err = v->store_err;
		v->store_err = AFS_OK;
	}
	v->storing = false;
	cond_broadcast(&v->changed);
	mtx_unlock(&v->lock);
	if (v->cf)
		cache_settle(v->cf);
	cm_ident_unref(v->cm, id);
	return err;
}

/* --- behind the writer ---------------------------------------------------------------------------------------- */

static void run_store(struct cm *cm, struct cm_job *job)
{
	struct cm_vnode *v = job->vnode;
	mtx_lock(&v->lock);
	v->store_queued = false;
	mtx_unlock(&v->lock);
	struct cache_usage u;
	cache_usage(cm->cache, &u);
	(void)cm_store(
		v, u.dirty > cm->dirty_max / 2, false); /* kept in store_err for who writes */
	cm_job_done(cm, job);
}

void cm_store_soon(struct cm_vnode *v)
{
	mtx_lock(&v->lock);
	bool go = !v->store_queued;
	v->store_queued = true;
	mtx_unlock(&v->lock);
	if (go && !cm_job_add(v->cm, (struct cm_job){.run = run_store, .vnode = cm_vnode_ref(v)})) {
		mtx_lock(&v->lock);
		v->store_queued = false;
		mtx_unlock(&v->lock);
	}
}

afs_err cm_store_wait_room(struct cm_vnode *v)
{
	struct cm *cm = v->cm;
	struct cache_usage u;
	cache_usage(cm->cache, &u);
	if (u.dirty < cm->dirty_max)
		return AFS_OK;
	/* This writer has to wait: for the store of his own file if one is under way, else he stores it
	 * himself; and when it is another file that fills the cache, until that is stored. */
	mono_ns until = clk_mono() + SEC(60);
	while (clk_mono() < until) {
		mtx_lock(&v->lock);
		bool storing = v->storing;
		if (storing || !cache_file_dirty_bytes(v->cf))
			cond_wait_until(
				&v->changed, &v->lock, clk_mono() + MSEC(storing ? 1000 : 10));
		mtx_unlock(&v->lock);
		cache_usage(cm->cache, &u);
		if (u.dirty < cm->dirty_max)
			return AFS_OK;
		if (!storing && cache_file_dirty_bytes(v->cf))
			return cm_store(v, true, false);
	}
	return AFS_ENOSPC;
}

static void store_one(struct cm_vnode *v, void *ctx)
{
	(void)ctx;
	mtx_lock(&v->lock);
	bool needs = cm_needs_store_locked(v) && !v->silly_dir;
	mtx_unlock(&v->lock);
	if (!needs)
		return;
	afs_err err = cm_store(v, true, false);
	if (err)
		log_warn("cm.store.lost fid=%u.%u.%u err=%s: the client ends with changes unstored",
			v->fid.Volume, v->fid.Vnode, v->fid.Unique, afs_err_name(err));
}

void cm_store_everything(struct cm *cm) { cm_vnodes_each(cm, NULL, store_one, NULL); }
