/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What an earlier run left behind: changes that no server was told, and hidden names of files that were removed while
 * open.  Both are done with the rights of who made them, so they may have to wait until he has a token again.
 *
 * A change goes to the server when the file there is still the one that was changed (same data version).  Else it is
 * a conflict, unless the server holds the same bytes already (the answer to our store was what the crash took): what
 * we have is kept beside the file, as NAME.conflict-TIME, and where that is not possible in the cache directory under
 * kept/.  Nothing is dropped without a word in the log. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include "cell/base/log.h"
#include "cell/proto/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { AT_ONCE = 64, PIECE = 64 << 20 };

enum outcome { SENT, KEPT, LATER };

struct orphan {
	struct cm *cm;
	struct cache_file *cf;
	struct cache_key key;
	struct cache_meta meta;
	struct cm_cell *cell;
	struct cm_ident *id;
	struct cm_vnode *v; /* counted; NULL: unknown at the server */
	uint64_t length;    /* of the file as its programs saw it */
};

static struct cm_cell *cell_of(struct cm *cm, uint64_t number)
{
	for (size_t i = 0; i < cm->cell_n; i++)
		if (cm->cells[i].number == number)
			return &cm->cells[i];
	return NULL;
}

static bool may_come_right(afs_err err)
{
	switch (err) {
	case AFS_ENOVNODE:
	case AFS_ENOENT:
	case AFS_ENOTDIR:
	case AFS_EROFS:
	case AFS_EFBIG:
	case AFS_EIO: return false;
	default: return true; /* no right, no room, no server, no volume at this time */
	}
}

/* --- the same bytes? ------------------------------------------------------------------------------------------- */

/* The next run of dirty pages at or after `from`. */
static bool next_run(struct cache_file *cf, uint64_t from, uint64_t *start, uint64_t *end)
{
	uint64_t stop = cache_file_end(cf);
	while (from < stop && !cache_all_dirty(cf, from, from + CACHE_PAGE))
		from += CACHE_PAGE;
	*start = *end = from;
	while (*end < stop && *end - *start < PIECE && cache_all_dirty(cf, *end, *end + CACHE_PAGE))
		*end += CACHE_PAGE;
	return *end > *start;
}

static afs_err same_bytes(struct orphan *o, struct cm_file *f, bool *same)
{
	struct cm_attr a;
	*same = false;
	TRY(cm_getattr(o->v, o->meta.uid, &a));
	if (o->meta.pending && a.size != o->length)
		return AFS_OK;
	CLEANUP(heap) uint8_t *mine = mem_alloc(CM_BUF, 1), *theirs = mem_alloc(CM_BUF, 1);
	if (!mine || !theirs)
		return AFS_ENOMEM;
	for (uint64_t at = 0, end; next_run(o->cf, at, &at, &end); at = end) {
		end = MIN(end, at + CM_BUF);
		size_t n = (size_t)(MIN(end, MAX(o->length, at)) - at), got;
		if (!n)
			continue;
		TRY(cache_read_raw(o->cf, at, mine, n));
		for (size_t have = 0; have < n; have += got) {
			TRY(cm_read(f, at + have, theirs + have, n - have, &got));
			if (!got)
				return AFS_OK;
		}
		if (memcmp(mine, theirs, n) != 0)
			return AFS_OK;
	}
	*same = true;
	return AFS_OK;
}

/* --- a copy ---------------------------------------------------------------------------------------------------- */

/* Bytes of the copy: what the cache has, else what the server has now. */
static afs_err copy_bytes(struct orphan *o, struct cm_file *base, uint64_t at, uint8_t *buf, size_t n)
{
	for (size_t done = 0, got; done < n; done += got) {
		TRY(cache_read(o->cf, at + done, buf + done, n - done, &got));
		if (got)
			continue;
		got = MIN(n - done, (size_t)(CACHE_PAGE - (at + done) % CACHE_PAGE));
		size_t have = 0;
		if (base && cm_read(base, at + done, buf + done, got, &have) != AFS_OK)
			have = 0;
		memset(buf + done + have, 0, got - have);
	}
	return AFS_OK;
}

static void name_of(struct orphan *o, struct cm_vnode *dir, char *out, size_t cap) NO_TSA
{
	char name[208] = "";
	if (o->v && cm_index_lock(dir, o->id) == AFS_OK) {
		for (uint32_t i = 0; i < dir->dir->n && !name[0]; i++) {
			const struct cm_row *r = &dir->dir->rows[i];
			if (r->state == CM_ROW_LIVE && r->vnode == o->key.fid.Vnode && r->unique == o->key.fid.Unique)
				snprintf(name, sizeof(name), "%.*s", 200, cm_dir_name(dir->dir, r));
		}
		mtx_unlock(&dir->lock);
	}
	if (!name[0])
		snprintf(name, sizeof(name), "file-%u.%u", o->key.fid.Vnode, o->key.fid.Unique);
	time_t now = (time_t)cm_wall_sec(o->cm);
	struct tm tm;
	char when[32];
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	snprintf(out, cap, "%s.conflict-%s", name, when);
}

static afs_err copy_into_dir(struct orphan *o, struct cm_file *base, char name[AFS_NAME_MAX + 1])
{
	struct cm *cm = o->cm;
	CLEANUP(cm_vnode) struct cm_vnode *dir = NULL;
	CLEANUP(cm_vnode) struct cm_vnode *made = NULL;
	if (!o->meta.parent_vnode)
		return AFS_ENOENT;
	struct AFSFid fid = {o->key.fid.Volume, o->meta.parent_vnode, o->meta.parent_unique};
	TRY(cm_vnode_get(cm, o->cell, &fid, &dir));
	name_of(o, dir, name, AFS_NAME_MAX);
	TRY(cm_create(dir, (struct cm_who){.uid = o->meta.uid, .gid = cm_is_pag(o->meta.uid) ? (gid_t)-1 : o->meta.uid}, name, 0600, &made));
	cm_event(dir, CM_EV_NAMES | CM_EV_ATTR);
	struct cm_file *f;
	TRY(cm_open_new(made, o->meta.uid, O_WRONLY, &f));
	uint8_t *buf = cm_buf_get(cm);
	afs_err err = buf ? AFS_OK : AFS_ENOMEM;
	for (uint64_t at = 0; at < o->length && !err; at += CM_BUF) {
		size_t n = (size_t)MIN(o->length - at, CM_BUF);
		err = copy_bytes(o, base, at, buf, n);
		if (!err)
			err = cm_write(f, at, buf, n);
	}
	cm_buf_put(cm, buf);
	if (!err)
		err = cm_flush(f);
	cm_close(f);
	if (err)
		(void)cm_unlink(dir, o->meta.uid, name); /* half a copy is none */
	return err;
}

static afs_err copy_into_cache(struct orphan *o, struct cm_file *base, char **out)
{
	struct cm *cm = o->cm;
	if (!cm->cache_dir)
		return AFS_EINVAL;
	CLEANUP(str) char *kept = mem_printf("%s/kept", cm->cache_dir);
	CLEANUP(str) char *path = mem_printf("%s/kept/%s.%u.%u.%u-%u", cm->cache_dir, o->cell->name, o->key.fid.Volume,
		o->key.fid.Vnode, o->key.fid.Unique, cm_wall_sec(cm));
	if (!kept || !path)
		return AFS_ENOMEM;
	if (mkdir(kept, 0711) < 0 && errno != EEXIST)
		return afs_err_from_errno(errno);
	CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return afs_err_from_errno(errno);
	uint8_t *buf = cm_buf_get(cm);
	afs_err err = buf ? AFS_OK : AFS_ENOMEM;
	for (uint64_t at = 0; at < o->length && !err; at += CM_BUF) {
		size_t n = (size_t)MIN(o->length - at, CM_BUF);
		err = copy_bytes(o, base, at, buf, n);
		if (!err && pwrite(fd, buf, n, (off_t)at) != (ssize_t)n)
			err = AFS_EIO;
	}
	cm_buf_put(cm, buf);
	if (!err && fsync(fd) < 0)
		err = AFS_EIO;
	if (!err && geteuid() == 0 && !cm_is_pag(o->meta.uid) && fchown(fd, o->meta.uid, (gid_t)-1) < 0)
		log_debug("cm.recover.chown_failed errno=%d", errno);
	if (err)
		(void)unlink(path);
	else
		*out = TAKE(path);
	return err;
}

static enum outcome keep(struct orphan *o, struct cm_file *base, const char *why)
{
	char name[AFS_NAME_MAX + 1] = "";
	CLEANUP(str) char *path = NULL;
	afs_err err = copy_into_dir(o, base, name);
	if (err && (err == AFS_ETIMEDOUT || err == AFS_EDEAD))
		return LATER;
	if (err)
		err = copy_into_cache(o, base, &path);
	if (err) {
		log_warn("cm.recover.unkept cell=%s fid=%u.%u.%u user=%u err=%s: tried again later", o->cell->name,
			o->key.fid.Volume, o->key.fid.Vnode, o->key.fid.Unique, o->meta.uid, afs_err_name(err));
		return LATER;
	}
	log_warn("cm.recover.conflict cell=%s fid=%u.%u.%u user=%u why=%s kept=%s: changes of an earlier run are in a file of their own",
		o->cell->name, o->key.fid.Volume, o->key.fid.Vnode, o->key.fid.Unique, o->meta.uid, why,
		path ? path : LOG_SAFE(name));
	return KEPT;
}

/* --- sending --------------------------------------------------------------------------------------------------- */

/* The file is still as it was: one store after another, with nobody else's in between. */
static afs_err send(struct orphan *o) NO_TSA
{
	struct cm_vnode *v = o->v;
	TRY(cm_status_lock(v, o->id, false));
	while (v->storing)
		cond_wait(&v->changed, &v->lock);
	if (v->dv != cache_file_dv(o->cf) || cm_needs_store_locked(v)) {
		mtx_unlock(&v->lock);
		return AFS_EEXIST;
	}
	v->storing = true;
	uint64_t at_server = fs_status_length(&v->st), dv = v->dv;
	mtx_unlock(&v->lock);
	uint64_t length = o->meta.pending ? o->length : MAX(at_server, o->length);
	afs_err err = AFS_OK;
	bool any = false;
	if (o->meta.cut < at_server) {
		err = cm_store_range(v, o->id, o->cf, o->meta.cut, o->meta.cut, o->meta.cut, o->meta.mtime, &dv);
		any = true;
	}
	for (uint64_t at = 0, end; !err && next_run(o->cf, at, &at, &end) && at < length; at = end) {
		err = cm_store_range(v, o->id, o->cf, at, MIN(end, length), length, o->meta.mtime, &dv);
		any = true;
	}
	if (!err && (!any || at_server != length))
		err = cm_store_range(v, o->id, o->cf, length, length, length, o->meta.mtime, &dv);
	if (!err)
		cache_file_set_dv(o->cf, dv);
	mtx_lock(&v->lock);
	v->storing = false;
	cond_broadcast(&v->changed);
	cm_event(v, CM_EV_ATTR | CM_EV_DATA);
	mtx_unlock(&v->lock);
	return err;
}

static enum outcome settle(struct orphan *o)
{
	struct cm *cm = o->cm;
	afs_err err = cm_vnode_get(cm, o->cell, &o->key.fid, &o->v);
	if (err)
		return LATER;
	struct cm_attr a;
	err = cm_getattr(o->v, o->meta.uid, &a);
	if (err == AFS_ENOENT || err == AFS_ENOVNODE)
		return keep(o, NULL, "the file is gone");
	if (err)
		return LATER;
	if (a.dv == cache_file_dv(o->cf)) {
		err = send(o);
		if (!err)
			return SENT;
		if (err != AFS_EEXIST && may_come_right(err))
			return LATER;
		if (err != AFS_EEXIST)
			return keep(o, NULL, afs_err_name(err));
	}
	struct cm_file *f;
	err = cm_open_new(o->v, o->meta.uid, O_RDONLY, &f);
	bool same = false;
	if (!err)
		err = same_bytes(o, f, &same);
	else
		return LATER;
	enum outcome out = err ? (may_come_right(err) ? LATER : keep(o, NULL, afs_err_name(err)))
			       : same ? SENT : keep(o, f, "the server has a newer version");
	cm_close(f);
	return out;
}

static enum outcome one_orphan(struct cm *cm, struct cache_file *cf)
{
	struct orphan o = {.cm = cm, .cf = cf, .key = cache_file_key(cf)};
	cache_file_meta(cf, &o.meta);
	o.length = o.meta.pending ? o.meta.length : cache_file_end(cf);
	if (!o.meta.pending)
		o.meta.cut = UINT64_MAX;
	o.cell = cell_of(cm, o.key.cell);
	if (!o.cell)
		return LATER;
	o.id = cm_ident_get(cm, o.cell, o.meta.uid);
	enum outcome out = settle(&o);
	if (out == SENT)
		log_info("cm.recover.sent cell=%s fid=%u.%u.%u user=%u bytes=%llu", o.cell->name, o.key.fid.Volume, o.key.fid.Vnode,
			o.key.fid.Unique, o.meta.uid, (unsigned long long)o.length);
	if (o.v)
		cm_vnode_unref(o.v);
	cm_ident_unref(cm, o.id);
	return out;
}

/* --- hidden names ---------------------------------------------------------------------------------------------- */

/* False: later. */
static bool one_note(struct cm *cm, const struct cache_note *n)
{
	struct cm_cell *cell = cell_of(cm, n->dir.cell);
	CLEANUP(cm_vnode) struct cm_vnode *dir = NULL;
	if (!cell || cm_vnode_get(cm, cell, &n->dir.fid, &dir) != AFS_OK)
		return false;
	afs_err err = cm_unlink(dir, n->uid, n->name);
	if (err && may_come_right(err))
		return false;
	if (!err)
		log_info("cm.silly.cleaned dir=%u.%u.%u name=%s", n->dir.fid.Volume, n->dir.fid.Vnode, n->dir.fid.Unique, n->name);
	cache_note_remove(cm->cache, n);
	cm_event(dir, CM_EV_NAMES | CM_EV_ATTR);
	return true;
}

static void all_orphans(struct cm *cm)
{
	struct cache_file *all[AT_ONCE];
	for (size_t n; !cm->stopping && (n = cache_orphans(cm->cache, all, AT_ONCE));) {
		size_t done = 0;
		for (size_t i = 0; i < n; i++) {
			enum outcome out = cm->stopping ? LATER : one_orphan(cm, all[i]);
			atomic_fetch_add(out == SENT ? &cm->n_recovered : &cm->n_conflicts, out != LATER);
			done += out != LATER;
			cache_orphan_done(all[i], out != LATER);
		}
		if (!done)
			return;
	}
}

/* Notes of this run name files that are open: only the earlier run's are followed. */
static void all_notes(struct cm *cm)
{
	size_t left = 0;
	for (size_t i = 0; i < cm->old_note_n; i++)
		if (cm->stopping || !one_note(cm, &cm->old_notes[i]))
			cm->old_notes[left++] = cm->old_notes[i];
	cm->old_note_n = left;
}

static void run(struct cm *cm, struct cm_job *job)
{
	bool again;
	do {
		all_orphans(cm);
		all_notes(cm);
		mtx_lock(&cm->jobs_lock);
		again = cm->recover_again && !cm->stopping;
		cm->recover_again = false;
		cm->recovering = again;
		mtx_unlock(&cm->jobs_lock);
	} while (again);
	cm_job_done(cm, job);
}

void cm_recover(struct cm *cm)
{
	struct cache_usage u;
	cache_usage(cm->cache, &u);
	if (!u.orphans && !cm->old_note_n)
		return;
	mtx_lock(&cm->jobs_lock);
	bool go = !cm->recovering;
	cm->recovering = true;
	cm->recover_again = !go;
	mtx_unlock(&cm->jobs_lock);
	if (go && !cm_job_add(cm, (struct cm_job){.run = run})) {
		mtx_lock(&cm->jobs_lock);
		cm->recovering = false;
		mtx_unlock(&cm->jobs_lock);
	}
}

void cm_recover_begin(struct cm *cm)
{
	cm->old_notes = mem_new_array(CM_NOTES_MAX, struct cache_note);
	if (cm->old_notes)
		cm->old_note_n = cache_notes(cm->cache, cm->old_notes, CM_NOTES_MAX);
	if (!cm->old_note_n) {
		mem_free(cm->old_notes);
		cm->old_notes = NULL;
	}
}
