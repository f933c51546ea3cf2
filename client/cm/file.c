/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Open files: reading through the cache, ahead of a sequential reader, and writing into it.
 *
 * The server has bytes only up to `have` = min(its length, cut); what lies behind is ours or zeros.
 * A range that is being fetched is listed on its vnode, so that nobody fetches it twice. */
#include "client/cm/cm.h"

#include "cell/base/log.h"
#include "cell/proto/fs.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
	WINDOW_FIRST = 256 * 1024,
	WINDOW_RANDOM = 64 * 1024,
	WINDOW_MAX = 8 << 20,
	WHOLE_MAX = 1 << 20, /* files up to this are fetched whole by their first reader */
	DISORDER = 2 << 20,
	AHEAD_MAX = 2,
	STORE_SOON = 4 << 20, /* so much dirty data wakes the writer behind */
};

struct range {
	struct list all;
	uint64_t from, to;
};

static uint64_t have_locked(const struct cm_vnode *v) REQUIRES(v->lock)
{
	return MIN(fs_status_length(&v->st), v->cut);
}

static uint64_t page_up(uint64_t n) { return (n + CACHE_PAGE - 1) / CACHE_PAGE * CACHE_PAGE; }

afs_err cm_data_begin_locked(struct cm_vnode *v)
{
	if (!v->cf) {
		struct cache_key key = {v->vol->cell->number, v->fid};
		TRY(cache_file_open(v->cm->cache, &key, &v->cf));
		v->data_dv = cache_file_dv(v->cf);
	}
	if (v->data_dv != v->dv) {
		cache_drop_clean(v->cf);
		cache_file_set_dv(v->cf, v->dv);
		v->data_dv = v->dv;
	}
	return AFS_OK;
}

void cm_data_forget_locked(struct cm_vnode *v)
{
	if (v->cf)
		cache_file_discard(v->cf);
	v->length = fs_status_length(&v->st);
	v->cut = UINT64_MAX;
	v->mtime_set = false;
	cm_meta_locked(v, false);
}

/* --- fetching ---------------------------------------------------------------------------------------- */

static bool overlaps_locked(const struct cm_vnode *v, uint64_t at) REQUIRES(v->lock)
{
	list_each(e, &v->fetches)
	{
		const struct range *r = list_entry(e, struct range, all);
		if (at >= r->from && at < r->to)
			return true;
	}
	return false;
}

/* The data of one reply, into the cache.  *n is how much came. */
static afs_err take_data(struct rpc_call *call, struct cm_vnode *v, struct cache_file *cf,
	uint32_t ticket, uint64_t from, uint64_t want, uint8_t *buf, uint64_t *n)
{
	uint64_t len;
	*n = 0;
	TRY(rpc_read_u64(call, &len));
	if (len > want)
		return log_error(AFS_EPROTOCOL,
			"cm.fetch.too_long fid=%u.%u.%u asked=%llu got=%llu", v->fid.Volume,
			v->fid.Vnode, v->fid.Unique, (unsigned long long)want,
			(unsigned long long)len);
	bool keep = true;
	while (*n < len) {
		size_t part = (size_t)MIN(len - *n, CM_BUF);
		TRY(rpc_read(call, buf, part));
		afs_err err = keep ? cache_fill(cf, ticket, from + *n, buf, part) : AFS_OK;
		if (err == AFS_EAGAIN) /* dropped meanwhile: drain the reply, and let it go */
			keep = false;
		else
			TRY(err);
		*n += part;
	}
	return AFS_OK;
}

/* Fetch [from, to), all of which the server is to have.  AFS_EAGAIN: the file changed; begin anew. */
static afs_err fetch_range(struct cm_vnode *v, struct cm_ident *id, uint64_t from, uint64_t to,
	uint32_t ticket, uint64_t dv)
{
	struct cm *cm = v->cm;
	struct cm_stamp stamp = cm_stamp(cm, v->vol, v);
	struct fs_fetch_data64_in in = {v->fid, (int64_t)from, (int64_t)(to - from)};
	struct fs_fetch_data64_out out = {0};
	uint64_t n = 0;
	uint8_t *buf = cm_buf_get(cm);
	if (!buf)
		return AFS_ENOMEM;
	struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
	afs_err local = AFS_OK;
	while (cm_try(&t)) {
		struct rpc_call *call;
		t.err = rpc_begin(t.conn, &fs_iface.procs[fs_op_fetch_data64], &in, &call);
		if (t.err)
			continue;
		local = take_data(call, v, v->cf, ticket, from, to - from, buf, &n);
		if (local == AFS_ENOSPC || local == AFS_ENOMEM || local == AFS_EPROTOCOL ||
			local == AFS_EIO) {
			rpc_cancel(call); /* our own trouble: no other server helps */
			break;
		}
		t.err = rpc_end(call, &out, &t.res);
		if (!t.err && local)
			t.err = local;
		local = AFS_OK;
	}
	cm_buf_put(cm, buf);
	afs_err err = cm_try_end(&t);
	if (local)
		err = local;
	atomic_fetch_add(&cm->n_fetched, n);

	if (err) {
		cache_unfill(v->cf, from, to - from); /* only a whole reply makes data good */
		return err;
	}
	mtx_lock(&v->lock);
	uint64_t got_dv = fs_status_dv(&out.OutStatus);
	cm_merge_locked(v, id, &out.OutStatus, &out.CallBack, &stamp, t.sent, 0);
	bool moved = got_dv != dv || v->dv != dv;
	mtx_unlock(&v->lock);
	if (moved) {
		cache_unfill(v->cf, from, to - from);
		return AFS_EAGAIN;
	}
	/* shorter than the status says, at the same version, is not believable; zeros would be a lie */
	if (n < to - from) {
		cache_unfill(v->cf, from, to - from);
		return log_error(AFS_EPROTOCOL, "cm.fetch.short fid=%u.%u.%u asked=%llu got=%llu",
			v->fid.Volume, v->fid.Vnode, v->fid.Unique, (unsigned long long)(to - from),
			(unsigned long long)n);
	}
	return AFS_OK;
}

/* The server is in this process: its bytes go to the reader, and are not kept twice.  AFS_EAGAIN: the file changed. */
static afs_err fetch_direct(struct cm_vnode *v, struct cm_ident *id, uint64_t off, uint8_t *p, size_t len, uint64_t dv)
{
	struct cm *cm = v->cm;
	struct cm_stamp stamp = cm_stamp(cm, v->vol, v);
	struct fs_fetch_data64_in in = {v->fid, (int64_t)off, (int64_t)len};
	struct fs_fetch_data64_out out = {0};
	struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
	while (cm_try(&t)) {
		struct rpc_call *call;
		uint64_t n = 0;
		t.err = rpc_begin(t.conn, &fs_iface.procs[fs_op_fetch_data64], &in, &call);
		if (t.err)
			continue;
		afs_err err = rpc_read_u64(call, &n);
		if (!err && n != len) /* at the version that we know it is not shorter */
			err = n > len ? AFS_EPROTOCOL : AFS_EAGAIN;
		if (!err)
			err = rpc_read(call, p, len);
		if (err == AFS_EPROTOCOL || err == AFS_EAGAIN) {
			rpc_cancel(call);
			t.err = err;
			(void)cm_try_end(&t);
			return err;
		}
		t.err = rpc_end(call, &out, &t.res);
		if (!t.err && err)
			t.err = err;
	}
	TRY(cm_try_end(&t));
	atomic_fetch_add(&cm->n_fetched, len);
	mtx_lock(&v->lock);
	cm_merge_locked(v, id, &out.OutStatus, &out.CallBack, &stamp, t.sent, 0);
	bool moved = fs_status_dv(&out.OutStatus) != dv || v->dv != dv;
	mtx_unlock(&v->lock);
	return moved ? AFS_EAGAIN : AFS_OK;
}

afs_err cm_fetch(struct cm_vnode *v, struct cm_ident *id, uint64_t from, uint64_t to) NO_TSA
{
	TRY(cm_status_lock(v, id, false));
	if (overlaps_locked(v, from)) {
		while (overlaps_locked(v, from))
			cond_wait(&v->changed, &v->lock);
		mtx_unlock(&v->lock);
		return AFS_OK;
	}
	afs_err err = cm_data_begin_locked(v);
	if (err) {
		mtx_unlock(&v->lock);
		return err;
	}
	/* up to where somebody else is at work already */
	list_each(e, &v->fetches)
	{
		struct range *r = list_entry(e, struct range, all);
		if (r->from > from)
			to = MIN(to, r->from);
	}
	uint64_t have = have_locked(v), dv = v->dv;
	uint32_t ticket = cache_fill_ticket(v->cf);
	struct range r = {.from = from, .to = to};
	list_push_back(&v->fetches, &r.all);
	mtx_unlock(&v->lock);

	if (from < have)
		err = fetch_range(v, id, from, MIN(to, have), ticket, dv);
	uint64_t beyond = MAX(from, page_up(have));
	if (!err && to > beyond)
		err = cache_fill_zero(v->cf, ticket, beyond, to - beyond);

	mtx_lock(&v->lock);
	list_remove(&r.all);
	if (err == AFS_ENOVNODE) {
		cm_gone_locked(v);
		err = AFS_ENOENT;
	}
	cond_broadcast(&v->changed);
	mtx_unlock(&v->lock);
	return err == AFS_EAGAIN ? AFS_OK : err; /* the caller looks again */
}

afs_err cm_fetch_whole(struct cm_vnode *v, struct cm_ident *id, size_t max, uint8_t **out,
	size_t *len, struct AFSFetchStatus *st, struct AFSCallBack *cb, mono_ns *sent)
{
	struct cm *cm = v->cm;
	struct fs_fetch_data64_in in = {v->fid, 0, (int64_t)max};
	struct fs_fetch_data64_out got = {0};
	CLEANUP(heap) uint8_t *data = NULL;
	uint64_t n = 0;
	struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
	while (cm_try(&t)) {
		struct rpc_call *call;
		mem_free(TAKE(data));
		t.err = rpc_begin(t.conn, &fs_iface.procs[fs_op_fetch_data64], &in, &call);
		if (t.err)
			continue;
		afs_err err = rpc_read_u64(call, &n);
		if (!err && n > max)
			err = AFS_EPROTOCOL;
		if (!err && !(data = mem_alloc((size_t)n + 1, 1)))
			err = AFS_ENOMEM;
		if (err == AFS_EPROTOCOL || err == AFS_ENOMEM) {
			rpc_cancel(call);
			t.err = err;
			continue;
		}
		if (!err)
			err = rpc_read(call, data, (size_t)n);
		t.err = rpc_end(call, &got, &t.res);
		if (!t.err && err)
			t.err = err;
	}
	*sent = t.sent;
	TRY(cm_try_end(&t));
	*len = (size_t)n;
	*st = got.OutStatus;
	*cb = got.CallBack;
	*out = TAKE(data);
	return AFS_OK;
}

/* --- reading ahead ---------------------------------------------------------------------------------------- */

static void run_ahead(struct cm *cm, struct cm_job *job)
{
	struct cm_vnode *v = job->vnode;
	uint64_t s, e;
	if (cache_gap(v->cf, job->from, job->to, &s, &e))
		(void)cm_fetch(
			v, job->ident, s, e); /* the reader that needs it will see the error */
	mtx_lock(&v->lock);
	v->ahead--;
	mtx_unlock(&v->lock);
	cm_job_done(cm, job);
}

/* The reader is sequential and stands at `at`: have the next window on its way. */
static void read_ahead(struct cm_file *f, uint64_t at, uint64_t window)
{
	struct cm_vnode *v = f->vnode;
	uint64_t s, e;
	mtx_lock(&v->lock);
	uint64_t end = page_up(MIN(v->length, have_locked(v)));
	bool may = v->ahead < AHEAD_MAX && at < end;
	mtx_unlock(&v->lock);
	if (!may ||
		!cache_gap(v->cf, at / CACHE_PAGE * CACHE_PAGE, MIN(at + window * 2, end), &s, &e))
		return;
	e = MIN(e, s + window);
	mtx_lock(&v->lock);
	/* skip what is being fetched already */
	list_each(i, &v->fetches)
	{
		struct range *r = list_entry(i, struct range, all);
		if (s >= r->from && s < r->to)
			s = r->to;
	}
	may = v->ahead < AHEAD_MAX && s < MIN(end, at + window * 2);
	e = MIN(MAX(e, s + window), end);
	if (may && s < e)
		v->ahead++;
	mtx_unlock(&v->lock);
	if (may && s < e) {
		struct cm_job job = {.run = run_ahead,
			.vnode = cm_vnode_ref(v),
			.ident = cm_ident_ref(f->ident),
			.from = s,
			.to = e};
		if (!cm_job_add(v->cm, job)) {
			mtx_lock(&v->lock);
			v->ahead--;
			mtx_unlock(&v->lock);
		}
	}
}

/* --- reading ------------------------------------------------------------------------------------------------ */

afs_err cm_read(struct cm_file *f, uint64_t off, void *buf, size_t len, size_t *got) NO_TSA
{
	struct cm_vnode *v = f->vnode;
	/* The kernel reads ahead with several requests at once, which come in any order. */
	uint64_t expected = atomic_load(&f->next), end = off + len;
	bool sequential = off <= expected + DISORDER && end + DISORDER >= expected;
	atomic_store(&f->next, sequential ? MAX(end, expected) : end);
	uint64_t window = atomic_load(&f->window);
	uint64_t most = MAX(WINDOW_FIRST, MIN(WINDOW_MAX, v->cm->config.cache_bytes / 16));
	if (!sequential)
		window = WINDOW_RANDOM;
	*got = 0;
	afs_err err = AFS_OK;
	bool direct = cm_volume_is_direct(v->cm, v->vol, f->ident);
	for (unsigned turns = 0; *got < len && turns < 1000; turns++) {
		err = cm_status_lock(v, f->ident, false);
		if (err)
			break;
		uint64_t length = v->length, have = have_locked(v), dv = v->dv;
		err = cm_data_begin_locked(v);
		mtx_unlock(&v->lock);
		uint64_t at = off + *got;
		if (err || at >= length)
			break;
		size_t n, want = (size_t)MIN(len - *got, length - at);
		err = cache_read(v->cf, at, (char *)buf + *got, want, &n);
		if (err)
			break;
		*got += n;
		if (n)
			continue;
		uint64_t s, e;
		if (!cache_gap(v->cf, at, at + want, &s, &e))
			continue;
		if (direct && at < have) {
			n = (size_t)MIN(MIN((uint64_t)want, e - at), have - at);
			err = fetch_direct(v, f->ident, at, (uint8_t *)buf + *got, n, dv);
			if (err == AFS_EAGAIN) {
				err = AFS_OK;
				continue;
			}
			if (err == AFS_ENOVNODE)
				err = AFS_ENOENT;
			if (err)
				break;
			*got += n;
			continue;
		}
		if (at < WHOLE_MAX && length <= WHOLE_MAX) {
			e = page_up(length);
		} else {
			if (sequential)
				window = MAX(window, WINDOW_FIRST);
			e = MIN(MAX(e, s + window), page_up(length));
		}
		uint64_t stop;
		if (cache_gap(v->cf, s, e, &s, &stop))
			e = stop;
		err = cm_fetch(v, f->ident, s, e);
		if (err)
			break;
	}
	if (*got)
		err = AFS_OK;
	if (!err && sequential && end > WHOLE_MAX / 4 && !direct) {
		if (end > expected)
			window = MIN(MAX(window, WINDOW_FIRST) * 2, most);
		read_ahead(f, MAX(end, expected), window);
	}
	atomic_store(&f->window, window);
	return err;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

static afs_err take_store_err_locked(struct cm_vnode *v) REQUIRES(v->lock)
{
	afs_err err = v->store_err;
	v->store_err = AFS_OK;
	return err;
}

/* Whoever writes stores with his own rights: what another left dirty goes first. */
static afs_err become_writer(struct cm_vnode *v, struct cm_ident *id) NO_TSA
{
	for (;;) {
		TRY(cm_status_lock(v, id, false));
		if (v->store_ident == id)
			return AFS_OK;
		if (!v->store_ident || !cm_needs_store_locked(v)) {
			struct cm_ident *old = v->store_ident;
			v->store_ident = cm_ident_ref(id);
			if (old)
				cm_ident_unref(v->cm, old);
			return AFS_OK;
		}
		mtx_unlock(&v->lock);
		TRY(cm_store(v, true, false));
	}
}

afs_err cm_write(struct cm_file *f, uint64_t off, const void *buf, size_t len) NO_TSA
{
	struct cm_vnode *v = f->vnode;
	if (!len)
		return AFS_OK;
	TRY(become_writer(v, f->ident));
	afs_err err = take_store_err_locked(v);
	if (!err)
		err = cm_data_begin_locked(v);
	uint64_t fresh = v->length;
	if (!err)
		cm_meta_locked(v, true);
	mtx_unlock(&v->lock);
	TRY(err);
	TRY(cm_store_wait_room(v));

	for (unsigned turns = 0;; turns++) {
		uint64_t need;
		err = cache_write(v->cf, off, buf, len, fresh, &need);
		if (err != AFS_EAGAIN || turns > 1000)
			break;
		TRY(cm_fetch(v, f->ident, need, need + CACHE_PAGE));
	}
	TRY(err);

	mtx_lock(&v->lock);
	v->length = MAX(v->length, off + len);
	v->mtime = cm_wall_sec(v->cm);
	v->mtime_set = true;
	cm_meta_locked(v, true);
	bool soon = !v->storing && !v->store_queued;
	mtx_unlock(&v->lock);
	if (soon && cache_file_dirty_bytes(v->cf) >= STORE_SOON)
		cm_store_soon(v);
	return AFS_OK;
}

afs_err cm_cut_locked(struct cm_vnode *v, struct cm_ident *id, uint64_t size)
{
	if (v->vol->id == 0 || cm_volume_is_ro(v->vol))
		return AFS_EROFS;
	if (size > CACHE_FILE_MAX)
		return AFS_EFBIG;
	TRY(cm_data_begin_locked(v));
	if (!v->store_ident || !cm_needs_store_locked(v)) {
		struct cm_ident *old = v->store_ident;
		v->store_ident = cm_ident_ref(id);
		if (old)
			cm_ident_unref(v->cm, old);
	}
	v->mtime = cm_wall_sec(v->cm);
	v->mtime_set = true;
	if (size < v->length) {
		/* a store under way may be giving the server more than its status says */
		if (size < have_locked(v) || (v->storing && size < v->cut))
			v->cut = size;
		v->cuts++;
		v->length = size;
		cm_meta_locked(v, true); /* before bytes are lost that a next run would need */
		TRY(cache_truncate(v->cf, size));
	}
	v->length = size;
	cm_meta_locked(v, false);
	return AFS_OK;
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

static afs_err open_file(
	struct cm_vnode *v, struct cm_ident *id, int flags, struct cm_file **out) NO_TSA
{
	struct cm_file *f = mem_new(struct cm_file);
	if (!f)
		return AFS_ENOMEM;
	f->writes = (flags & O_ACCMODE) != O_RDONLY;
	f->vnode = cm_vnode_ref(v);
	f->ident = cm_ident_ref(id);
	afs_err err = cm_status_lock(v, id, false);
	if (!err) {
		if (flags & O_TRUNC && f->writes && v->length)
			err = cm_cut_locked(v, id, 0);
		if (!err) {
			v->opens++;
			v->writers += f->writes;
		}
		mtx_unlock(&v->lock);
	}
	if (err) {
		cm_vnode_unref(v);
		cm_ident_unref(v->cm, id);
		mem_free(f);
		return err;
	}
	*out = f;
	return AFS_OK;
}

afs_err cm_open_new(struct cm_vnode *v, uid_t uid, int flags, struct cm_file **out)
{
	struct cm_ident *id = cm_ident_get(v->cm, v->vol->cell, uid);
	afs_err err = open_file(v, id, flags, out);
	cm_ident_unref(v->cm, id);
	return err;
}

afs_err cm_open(struct cm_vnode *v, uid_t uid, int flags, struct cm_file **out)
{
	int mode = flags & O_ACCMODE;
	int want = (mode != O_WRONLY ? R_OK : 0) | (mode != O_RDONLY || flags & O_TRUNC ? W_OK : 0);
	TRY(cm_access(v, uid, want));
	return cm_open_new(v, uid, flags, out);
}

/* After the last close the server still has not got it.  What may yet be sent waits apart from the file (recover.c). */
static void set_aside(struct cm_vnode *v, afs_err err)
{
	struct cache_file *aside = NULL;
	mtx_lock(&v->lock);
	bool idle = !v->opens && !v->ahead && !v->storing && !v->store_queued && list_empty(&v->fetches);
	bool needs = v->cf && cm_needs_store_locked(v);
	if (idle && needs && !v->gone) {
		cm_meta_locked(v, true);
		aside = v->cf;
		v->cf = NULL;
	}
	if (!v->opens) {
		cm_data_forget_locked(v);
		v->promise = 0;
		cm_event(v, CM_EV_ATTR | CM_EV_DATA);
	}
	mtx_unlock(&v->lock);
	if (aside)
		cache_file_orphan(aside);
	if (needs)
		log_warn("cm.store.%s fid=%u.%u.%u err=%s: %s", aside ? "waits" : "lost", v->fid.Volume, v->fid.Vnode, v->fid.Unique,
			afs_err_name(err), aside ? "changes are kept and sent when that is possible" : "changes are given up after the last close");
}

void cm_close(struct cm_file *f)
{
	struct cm_vnode *v = f->vnode;
	struct cm *cm = v->cm;
	mtx_lock(&v->lock);
	v->writers -= f->writes;
	bool last = --v->opens == 0;
	bool silly = last && v->silly_dir;
	bool lost = last && !silly && cm_needs_store_locked(v) && !v->storing && !v->store_queued;
	if (silly || (last && v->gone))
		cm_data_forget_locked(v);
	mtx_unlock(&v->lock);
	if (lost) {
		/* flush() told the program; a mapping that outlived it may still have brought something */
		afs_err err = cm_store(v, true, false);
		if (err)
			set_aside(v, err);
	}
	if (silly)
		cm_silly_end(v, f->ident);
	cm_ident_unref(cm, f->ident);
	cm_vnode_unref(v);
	mem_free(f);
}

afs_err cm_flush(struct cm_file *f)
{
	if (!f->writes)
		return AFS_OK;
	mtx_lock(&f->vnode->lock);
	bool hidden = f->vnode->silly_dir != NULL; /* nobody can open it any more */
	mtx_unlock(&f->vnode->lock);
	return hidden ? AFS_OK : cm_store(f->vnode, true, false);
}

afs_err cm_fsync(struct cm_file *f) { return cm_store(f->vnode, true, true); }
