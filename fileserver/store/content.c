/* SPDX-License-Identifier: BSD-2-Clause
 * Where a vnode's bytes are, and reading them.  Rows and files as schema.c lays them out. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

atomic_long vs_fail_write_after = -1;
atomic_int vs_fail_write_errno;

/* --- extent files --------------------------------------------------------------------- */

afs_err vs_extent_read(int fd, uint64_t pos, void *p, size_t n)
{
	uint8_t *at = p;
	while (n) {
		ssize_t got = pread(fd, at, n, (off_t)pos);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return log_error(AFS_EIO, "vs.content.read errno=%d", errno);
		if (got == 0) {
			memset(at, 0, n);
			return AFS_OK;
		}
		at += got;
		pos += (uint64_t)got;
		n -= (size_t)got;
	}
	return AFS_OK;
}

bool vs_write_refused(void)
{
	long left = atomic_load_explicit(&vs_fail_write_after, memory_order_relaxed);
	if (left < 0)
		return false;
	if (left == 0) {
		errno = atomic_load(&vs_fail_write_errno);
		return true;
	}
	atomic_fetch_sub(&vs_fail_write_after, 1);
	return false;
}

afs_err vs_pwrite(int fd, const void *p, size_t n, uint64_t pos)
{
	const uint8_t *at = p;
	while (n) {
		ssize_t put = vs_write_refused() ? -1 : pwrite(fd, at, n, (off_t)pos);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			afs_err err = vs_err_of_errno(errno);
			return err == AFS_EDISKFULL
				       ? err
				       : log_error(err, "vs.content.write errno=%d", errno);
		}
		at += put;
		pos += (uint64_t)put;
		n -= (size_t)put;
	}
	return AFS_OK;
}

/* --- rows ----------------------------------------------------------------------------- */

afs_err vs_extent_at(struct vs_volume *v, uint32_t vnode, uint32_t idx, struct vs_extent *out)
{
	*out = (struct vs_extent){0};
	CLEANUP(db_rows) struct db_rows r = db_query(
		v->db, Q_MAP_GET, DB_INT(vnode), DB_INT(idx), DB_INT(v->epoch));
	if (!db_next(&r))
		return vs_err_of_db(r.err);
	out->id = (uint64_t)db_int(&r, 0);
	out->born = db_int(&r, 1);
	out->len = (uint64_t)db_int(&r, 2);
	out->exclusive = v->base == v && out->born == v->epoch && db_int(&r, 3) == 1;
	const void *sums = db_blob(&r, 4, &out->sums_n);
	if (out->len > VS_EXTENT || out->sums_n > sizeof(out->sums))
		return log_error(AFS_ECORRUPT, "vs.extent.damaged volume=%u vnode=%u extent=%llu",
			v->id, vnode, (unsigned long long)out->id);
	memcpy(out->sums, sums, out->sums_n);
	return AFS_OK;
}

static afs_err drop_map(
	struct vs_tx *tx, uint32_t vnode, uint32_t idx, int64_t born, uint64_t extent)
{
	struct vs_volume *v = tx->v;
	if (born != v->epoch) /* a clone goes on seeing it */
		return vs_err_of_db(db_run(v->db, Q_MAP_END, DB_INT(vnode), DB_INT(idx),
			DB_INT(born), DB_INT(v->epoch)));
	TRY(vs_err_of_db(db_run(v->db, Q_MAP_DEL, DB_INT(vnode), DB_INT(idx), DB_INT(born))));
	return vs_tx_unref(tx, extent);
}

struct mapped {
	uint32_t idx;
	int64_t born;
	uint64_t extent;
};

static afs_err some_mapped(struct vs_volume *v, uint32_t vnode, uint32_t from, struct mapped *out,
	size_t cap, size_t *n)
{
	*n = 0;
	CLEANUP(db_rows)
	struct db_rows r = db_query(v->db, Q_MAP_FROM, DB_INT(vnode), DB_INT(from), DB_INT(cap));
	while (*n < cap && db_next(&r))
		out[(*n)++] = (struct mapped){
			(uint32_t)db_int(&r, 0), db_int(&r, 1), (uint64_t)db_int(&r, 2)};
	return vs_err_of_db(r.err);
}

afs_err vs_extents_drop(struct vs_tx *tx, uint32_t vnode, uint32_t from_idx)
{
	struct mapped some[64];
	size_t n;
	do {
		TRY(some_mapped(tx->v, vnode, from_idx, some, ARRAY_SIZE(some), &n));
		for (size_t i = 0; i < n; i++)
			TRY(drop_map(tx, vnode, some[i].idx, some[i].born, some[i].extent));
	} while (n == ARRAY_SIZE(some));
	return AFS_OK;
}

afs_err vs_extent_put(struct vs_tx *tx, uint32_t vnode, uint32_t idx, const struct vs_extent *old,
	uint64_t extent, uint64_t len, const uint8_t *sums, size_t sums_n)
{
	struct vs_volume *v = tx->v;
	if (old->id)
		TRY(drop_map(tx, vnode, idx, old->born, old->id));
	TRY(vs_err_of_db(
		db_run(v->db, Q_EXTENT_ADD, DB_INT(extent), DB_INT(len), DB_BLOB(sums, sums_n))));
	return vs_err_of_db(db_run(
		v->db, Q_MAP_ADD, DB_INT(vnode), DB_INT(idx), DB_INT(v->epoch), DB_INT(extent)));
}

static afs_err drop_pages(struct vs_tx *tx, struct vs_vnode *vn)
{
	struct vs_volume *v = tx->v;
	uint32_t vnode = vn->row.st.fid.vnode;
	TRY(vs_vnode_load_dir(v, vn));
	for (uint32_t page = 0; page < vn->dir->stored; page++) {
		const struct vs_page_at *at = &vn->dir->at[page];
		if (at->born != v->epoch) {
			TRY(vs_err_of_db(db_run(v->db, Q_PAGE_END, DB_INT(vnode), DB_INT(page),
				DB_INT(at->born), DB_INT(v->epoch))));
			continue;
		}
		TRY(vs_err_of_db(
			db_run(v->db, Q_PAGE_DEL, DB_INT(vnode), DB_INT(page), DB_INT(at->born))));
		TRY(vs_err_of_db(db_run(v->db, Q_BLOB_DEL, DB_INT(at->blob))));
	}
	return AFS_OK;
}

static afs_err drop_inline(struct vs_volume *v, const struct vs_row *row)
{
	if (row->kind != VS_INLINE || row->content_born != v->epoch)
		return AFS_OK; /* a clone goes on seeing it */
	return vs_err_of_db(db_run(v->db, Q_BLOB_DEL, DB_INT(row->content)));
}

afs_err vs_content_drop(struct vs_tx *tx, struct vs_vnode *vn)
{
	switch (vn->row.kind) {
	case VS_EMPTY:
		return AFS_OK;
	case VS_INLINE:
		return drop_inline(tx->v, &vn->row);
	case VS_EXTENTS:
		return vs_extents_drop(tx, vn->row.st.fid.vnode, 0);
	case VS_PAGES:
		return drop_pages(tx, vn);
	}
	return AFS_ECORRUPT;
}

afs_err vs_inline_put(struct vs_tx *tx, struct vs_row *row, const void *p, size_t n)
{
	struct vs_volume *v = tx->v;
	if (n == 0) {
		TRY(drop_inline(v, row));
		row->kind = VS_EMPTY;
		row->content = row->content_born = 0;
		return AFS_OK;
	}
	if (row->kind == VS_INLINE && row->content_born == v->epoch)
		return vs_err_of_db(db_run(v->db, Q_BLOB_SET, DB_INT(row->content), DB_BLOB(p, n)));
	TRY(vs_err_of_db(db_run(v->db, Q_BLOB_ADD, DB_BLOB(p, n))));
	row->kind = VS_INLINE;
	row->content = db_last_rowid(v->db);
	row->content_born = v->epoch;
	return AFS_OK;
}

afs_err vs_inline_get(
	struct vs_volume *v, const struct vs_row *row, uint8_t out[VS_INLINE_MAX], size_t *n)
{
	*n = 0;
	if (row->kind != VS_INLINE)
		return AFS_OK;
	CLEANUP(db_rows) struct db_rows r = db_query(v->db, Q_BLOB_GET, DB_INT(row->content));
	size_t have = 0;
	const void *p = db_next(&r) ? db_blob(&r, 0, &have) : NULL;
	if (r.err)
		return vs_err_of_db(r.err);
	if (!p || have > VS_INLINE_MAX)
		return log_error(AFS_ECORRUPT, "vs.content.missing volume=%u vnode=%u blob=%lld",
			v->id, row->st.fid.vnode, (long long)row->content);
	memcpy(out, p, have);
	*n = have;
	return AFS_OK;
}

/* --- reading -------------------------------------------------------------------------- */

struct vs_file {
	struct vs_volume *v;
	struct vs_status st;
	enum vs_kind kind;
	uint64_t serial;
	int64_t epoch;
	const uint8_t *bytes; /* all of it: a directory's copy or `small` */
	size_t bytes_n;       /* behind it come zeros */
	uint8_t *copy;
	uint32_t idx; /* the extent at hand */
	bool at_hand;
	struct vs_fd *fd; /* NULL: a hole */
	uint64_t len;
	uint8_t small[VS_INLINE_MAX];
};
DEFINE_CLEANUP_PTR(file, struct vs_file, vs_file_close)

static afs_err copy_dir(struct vs_volume *v, struct vs_vnode *vn, struct vs_file *f)
{
	TRY(vs_vnode_load_dir(v, vn));
	f->bytes_n = (size_t)vn->row.st.length;
	f->copy = mem_alloc(f->bytes_n, 1);
	if (!f->copy)
		return AFS_ENOMEM;
	memcpy(f->copy, vn->dir->d.data, f->bytes_n);
	f->bytes = f->copy;
	return AFS_OK;
}

static afs_err open_locked(struct vs_volume *v, struct vs_fid fid, struct vs_file *f)
{
	struct vs_vnode *vn;
	TRY(vs_vnode_get(v, fid, &vn));
	f->st = vn->row.st;
	f->kind = vn->row.kind;
	f->serial = v->serial;
	f->epoch = v->epoch;
	if (f->kind == VS_PAGES)
		return copy_dir(v, vn, f);
	f->bytes = f->small;
	return vs_inline_get(v, &vn->row, f->small, &f->bytes_n);
}

static afs_err file_open(struct vs_volume *v, struct vs_fid fid, bool served, struct vs_status *st,
	struct vs_file **out)
{
	CLEANUP(file) struct vs_file *f = mem_new(struct vs_file);
	if (!f)
		return AFS_ENOMEM;
	vs_volume_ref(v);
	f->v = v;
	TRY(vs_volume_lock(v, served));
	afs_err err = open_locked(v, fid, f);
	vs_volume_unlock(v);
	if (err)
		return err;
	*st = f->st;
	*out = TAKE(f);
	return AFS_OK;
}

afs_err vs_file_open(
	struct vs_volume *v, struct vs_fid fid, struct vs_status *st, struct vs_file **out)
{
	return file_open(v, fid, true, st, out);
}

afs_err vs_file_open_claimed(
	struct vs_volume *v, struct vs_fid fid, struct vs_status *st, struct vs_file **out)
{
	return file_open(v, fid, false, st, out);
}

void vs_file_close(struct vs_file *f)
{
	if (f->fd)
		vs_fd_put(&f->v->s->fds, f->fd);
	vs_volume_unref(f->v);
	mem_free(f->copy);
	mem_free(f);
}

static afs_err find_extent_locked(struct vs_file *f, uint32_t idx)
{
	struct vs_volume *v = f->v;
	struct vs_vnode *vn;
	struct vs_extent e;
	if (f->serial != v->serial || (v->base != v && f->epoch != v->epoch))
		return AFS_EVBUSY; /* a restore or a release has put other content in its place */
	TRY(vs_vnode_get(v, f->st.fid, &vn));
	TRY(vs_extent_at(v, f->st.fid.vnode, idx, &e));
	if (e.id) {
		afs_err err = vs_fd_get(&v->s->fds, v->data_fd, v->serial, e.id, false, &f->fd);
		if (err == AFS_ENOENT)
			return log_error(AFS_ECORRUPT,
				"vs.content.missing volume=%u vnode=%u extent=%llu", v->id,
				f->st.fid.vnode, (unsigned long long)e.id);
		if (err)
			return err;
	}
	f->len = e.len;
	f->idx = idx;
	f->at_hand = true;
	return AFS_OK;
}

static afs_err find_extent(struct vs_file *f, uint32_t idx)
{
	if (f->at_hand && f->idx == idx)
		return AFS_OK;
	vs_fd_put(&f->v->s->fds, f->fd);
	f->fd = NULL;
	f->at_hand = false;
	TRY(vs_volume_lock(f->v, false));
	afs_err err = find_extent_locked(f, idx);
	vs_volume_unlock(f->v);
	return err;
}

/* Within one extent. */
static afs_err read_extent(struct vs_file *f, uint64_t pos, uint8_t *p, size_t n)
{
	TRY(find_extent(f, (uint32_t)(pos / VS_EXTENT)));
	uint64_t off = pos % VS_EXTENT;
	size_t stored = f->fd && off < f->len ? (size_t)MIN(f->len - off, n) : 0;
	memset(p + stored, 0, n - stored);
	return stored ? vs_extent_read(f->fd->fd, off, p, stored) : AFS_OK;
}

afs_err vs_file_read(struct vs_file *f, uint64_t pos, void *p, size_t n, size_t *got)
{
	uint8_t *at = p;
	*got = 0;
	if (pos >= f->st.length)
		return AFS_OK;
	n = (size_t)MIN(f->st.length - pos, (uint64_t)n);
	if (f->kind != VS_EXTENTS) {
		size_t have = pos < f->bytes_n ? MIN(f->bytes_n - (size_t)pos, n) : 0;
		memcpy(at, f->bytes + (have ? pos : 0), have);
		memset(at + have, 0, n - have);
		*got = n;
		return AFS_OK;
	}
	for (size_t done = 0; done < n;) {
		size_t some =
			(size_t)MIN((uint64_t)(n - done), VS_EXTENT - (pos + done) % VS_EXTENT);
		TRY(read_extent(f, pos + done, at + done, some));
		done += some;
	}
	*got = n;
	return AFS_OK;
}
