/* SPDX-License-Identifier: BSD-2-Clause
 * Storing data: content goes aside while it comes in, and one transaction names it.
 *
 * What a store does to one extent is a piece; the bytes of a piece are one run [from, to), as they
 * come in order:
 *
 *   NEW     into a file of its own, which replaces the extent.  Old bytes around the run are
 *           copied into it.
 *   APPEND  behind the valid bytes of an extent that nobody else has: what is behind them is
 *           nothing until the commit says that it is valid.
 *   PATCH   kept in memory (1 MiB at most) and written over the extent's own bytes AFTER the
 *           commit, under the volume's lock.  Power or process may go between the two: then DV has
 *           moved on and the bytes are old, or some of them new.  The store was never acknowledged,
 *           no client holds data of that DV, and clients of the DV before see that it passed:
 *           nobody can take the mixture for what it is not.  Bytes of a patch behind the valid ones
 *           are written before the commit, like an APPEND.  The extent's checksums are absent from
 *           that commit on and come back in a second one.
 *
 * Pieces are prepared on the file as it was when the store began.  When another store committed
 * meanwhile (DV tells), each piece is rebuilt as NEW on what is there now: slower, and under the
 * lock, but stores never wait for each other's clients. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum piece_kind { PIECE_NEW, PIECE_APPEND, PIECE_PATCH };

struct piece {
	enum piece_kind kind;
	uint32_t idx, from, to; /* [from, to) of the extent has come */
	uint64_t extent;        /* the file written: a new one, or the extent itself */
	int64_t epoch;          /* when it began: in a later one a clone sees the extent */
	struct vs_fd *fd;
	uint8_t *buf;       /* PATCH: a buffer, or the writer's `small` */
	uint64_t old_len;   /* valid bytes there when it began, after truncation */
	struct vs_fd *base; /* NEW: the extent to copy old bytes from, NULL: none */
	bool ready;         /* holds for the DV the store began with */
	uint64_t len;       /* valid bytes of the result */
	uint64_t summed;    /* a bit per block whose sum is final */
	uint8_t sums[64 * 4];
	size_t sums_n;
	bool named; /* by a commit */
};

struct vs_writer {
	struct list link; /* in the volume's writers */
	struct vs_volume *v;
	struct vs_fid fid;
	struct vs_row base;                             /* the row when it began */
	uint64_t pos, length, file_length, kept_length; /* kept: what truncation leaves of `base` */
	struct vs_set set;
	bool keep_setid;
	uint64_t got;
	uint64_t serial; /* of the group it writes into: a restore swaps it */
	afs_err err;
	bool small_result; /* the file will be inline: no pieces on disk */
	struct piece *piece;
	size_t pieces, piece_cap;
	uint8_t *stage; /* bytes not yet written to the last piece's file */
	size_t staged, stage_full;
	size_t small_n; /* of old bytes in `small`, when the result is not inline but `base` was */
	uint8_t small[VS_INLINE_MAX];
};

enum { STAGE = 4 * VS_SUM_BLOCK };

/* --- buffers -------------------------------------------------------------------------- */

void *vs_buffer_get(struct vs_buffers *b)
{
	mtx_lock(&b->lock);
	void *p = b->n ? b->kept[--b->n] : NULL;
	mtx_unlock(&b->lock);
	return p ? p : mem_alloc(VS_BUFFER, 1);
}

void vs_buffer_put(struct vs_buffers *b, void *p)
{
	if (!p)
		return;
	mtx_lock(&b->lock);
	bool keep = b->n < ARRAY_SIZE(b->kept);
	if (keep)
		b->kept[b->n++] = p;
	mtx_unlock(&b->lock);
	if (!keep)
		mem_free(p);
}

void vs_buffers_fini(struct vs_buffers *b) NO_TSA
{
	while (b->n)
		mem_free(b->kept[--b->n]);
	mtx_fini(&b->lock);
}

/* --- sums ----------------------------------------------------------------------------- */

static void put_sum(uint8_t *sums, uint64_t block, uint32_t c)
{
	for (int i = 0; i < 4; i++)
		sums[4 * block + (uint64_t)i] = (uint8_t)(c >> (24 - 8 * i));
}

/* Note the sums of whole blocks in a run just written at `off`. */
static void sum_run(struct piece *p, uint64_t off, const uint8_t *at, size_t n)
{
	uint64_t first = (off + VS_SUM_BLOCK - 1) / VS_SUM_BLOCK;
	for (uint64_t b = first; (b + 1) * VS_SUM_BLOCK <= off + n; b++) {
		put_sum(p->sums, b, vs_crc32c(0, at + (b * VS_SUM_BLOCK - off), VS_SUM_BLOCK));
		p->summed |= UINT64_C(1) << b;
	}
}

/* Sums for what was not whole in a run: read back.  Blocks that no byte came into keep theirs,
 * unless `all`. */
static afs_err sum_rest(struct vs_store *s, struct piece *p, bool all)
{
	uint64_t blocks = (p->len + VS_SUM_BLOCK - 1) / VS_SUM_BLOCK,
		 kept = all ? 0 : p->sums_n / 4;
	uint64_t low =
		MIN((uint64_t)p->from, p->old_len); /* a gap behind the old end is zeros now */
	if (!all && kept < low / VS_SUM_BLOCK) {
		p->sums_n = 0; /* none were kept for what is before */
		return AFS_OK;
	}
	uint8_t *buf = NULL;
	afs_err err = AFS_OK;
	for (uint64_t b = 0; b < blocks && !err; b++) {
		bool touched =
			b >= kept || ((b + 1) * VS_SUM_BLOCK > low && b * VS_SUM_BLOCK < p->to);
		if (p->summed >> b & 1 || !touched)
			continue;
		if (!buf && !(buf = vs_buffer_get(&s->buffers)))
			return AFS_ENOMEM;
		size_t n = (size_t)MIN(p->len - b * VS_SUM_BLOCK, (uint64_t)VS_SUM_BLOCK);
		err = vs_extent_read(p->fd->fd, b * VS_SUM_BLOCK, buf, n);
		if (!err)
			put_sum(p->sums, b, vs_crc32c(0, buf, n));
	}
	vs_buffer_put(&s->buffers, buf);
	p->sums_n = 4 * (size_t)blocks;
	return err;
}

/* --- beginning ------------------------------------------------------------------------ */

static void writer_free(struct vs_writer *w)
{
	struct vs_store *s = w->v->s;
	for (size_t i = 0; i < w->pieces; i++) {
		vs_fd_put(&s->fds, w->piece[i].fd);
		vs_fd_put(&s->fds, w->piece[i].base);
		if (w->piece[i].buf != w->small)
			vs_buffer_put(&s->buffers, w->piece[i].buf);
	}
	vs_buffer_put(&s->buffers, w->stage);
	mem_free(w->piece);
	vs_volume_unref(w->v);
	mem_free(w);
}

static uint64_t final_length(uint64_t kept, uint64_t pos, uint64_t announced, uint64_t came)
{
	if (announced == 0)
		return MAX(kept, pos);
	return came ? MAX(kept, pos + came) : kept;
}

static afs_err begin_locked(struct vs_writer *w)
{
	struct vs_volume *v = w->v;
	struct vs_vnode *vn;
	TRY(vs_vnode_get(v, w->fid, &vn));
	if (vn->row.st.type != AFS_FILE)
		return AFS_EISDIR;
	w->base = vn->row;
	w->kept_length = MIN(w->base.st.length, w->file_length);
	uint64_t end = final_length(w->kept_length, w->pos, w->length, w->length);
	int64_t delta = (int64_t)vs_blocks(end) - (int64_t)vs_blocks(w->base.st.length);
	TRY(vs_quota_check(v, delta, v->s->config.store_spare_kib));
	if (w->length)
		TRY(vs_space_check(v->part, w->length / 1024 + 1));
	w->small_result = end <= VS_INLINE_MAX;
	w->serial = v->serial;
	if (!w->small_result) {
		TRY(vs_volume_mark_dirty_locked(v));
		TRY(vs_inline_get(v, &w->base, w->small, &w->small_n));
	}
	list_push_back(&v->writers, &w->link);
	return AFS_OK;
}

afs_err vs_write_begin(struct vs_volume *v, struct vs_fid fid, const struct vs_write *req,
	const struct vs_who *who, struct vs_writer **out)
{
	(void)who;
	if (req->pos > VS_LENGTH_MAX || req->length > VS_LENGTH_MAX - req->pos)
		return AFS_EFBIG;
	struct vs_writer *w = mem_new(struct vs_writer);
	if (!w)
		return AFS_ENOMEM;
	vs_volume_ref(v);
	w->v = v;
	w->fid = fid;
	w->pos = req->pos;
	w->length = req->length;
	w->file_length = req->file_length;
	w->keep_setid = req->keep_setid;
	if (req->set)
		w->set = *req->set;
	afs_err err = vs_volume_lock_write(v);
	if (!err) {
		err = begin_locked(w);
		vs_volume_unlock(v);
	}
	if (err)
		writer_free(w);
	else
		*out = w;
	return err;
}

/* --- pieces --------------------------------------------------------------------------- */

static afs_err piece_add(struct vs_writer *w, struct piece **out)
{
	if (w->pieces == w->piece_cap) {
		size_t cap = w->piece_cap ? w->piece_cap * 2 : 2;
		struct piece *grown = mem_resize(w->piece, w->piece_cap, cap, sizeof(*grown));
		if (!grown)
			return AFS_ENOMEM;
		w->piece = grown;
		w->piece_cap = cap;
	}
	*out = &w->piece[w->pieces];
	**out = (struct piece){0};
	return AFS_OK;
}

static uint64_t clipped(uint64_t len, uint32_t idx, uint64_t file_length)
{
	uint64_t start = idx * VS_EXTENT;
	return file_length > start ? MIN(len, file_length - start) : 0;
}

static bool others_write(const struct vs_writer *w, uint64_t extent)
{
	list_each(it, &w->v->writers)
	{
		const struct vs_writer *o = list_entry(it, struct vs_writer, link);
		for (size_t i = 0; o != w && i < o->pieces; i++)
			if (o->piece[i].extent == extent)
				return true;
	}
	return false;
}

bool vs_writer_has_locked(struct vs_volume *v, uint64_t extent)
{
	list_each(it, &v->writers)
	{
		const struct vs_writer *w = list_entry(it, struct vs_writer, link);
		for (size_t i = 0; i < w->pieces; i++)
			if (w->piece[i].extent == extent)
				return true;
	}
	return false;
}

static afs_err new_file(struct vs_volume *v, struct piece *p)
{
	p->kind = PIECE_NEW;
	p->extent = v->next_extent++;
	return vs_fd_get(&v->s->fds, v->data_fd, v->serial, p->extent, true, &p->fd);
}

static afs_err new_piece(struct vs_volume *v, struct piece *p, uint64_t base)
{
	TRY(new_file(v, p));
	return base ? vs_fd_get(&v->s->fds, v->data_fd, v->serial, base, false, &p->base) : AFS_OK;
}

/* Decide how [off, off + n) of extent idx shall be stored. */
static afs_err piece_begin_locked(
	struct vs_writer *w, struct piece *p, uint32_t idx, uint32_t off, uint64_t n)
{
	struct vs_volume *v = w->v;
	struct vs_vnode *vn;
	struct vs_extent base = {0};
	if (w->serial != v->serial)
		return AFS_EVBUSY;
	TRY(vs_vnode_get(v, w->fid, &vn));
	p->idx = idx;
	p->from = p->to = off;
	p->epoch = v->epoch;
	p->ready = vn->row.st.dv == w->base.st.dv;
	if (p->ready && w->base.kind == VS_EXTENTS)
		TRY(vs_extent_at(v, w->fid.vnode, idx, &base));
	p->old_len = clipped(base.id || idx ? base.len : w->small_n, idx, w->kept_length);
	bool own = base.id && base.exclusive && p->old_len == base.len && !others_write(w, base.id);
	if (own && off >= base.len)
		p->kind = PIECE_APPEND;
	else if (own && n <= VS_BUFFER &&
		 (off || n < base.len)) /* who replaces all of it has no old bytes to spare */
		p->kind = PIECE_PATCH;
	else
		return new_piece(v, p, base.id);
	p->extent = base.id;
	memcpy(p->sums, base.sums, base.sums_n);
	p->sums_n = base.sums_n;
	return vs_fd_get(&v->s->fds, v->data_fd, v->serial, base.id, false, &p->fd);
}

static afs_err piece_begin(struct vs_writer *w, uint32_t idx, uint32_t off, uint64_t n)
{
	struct piece *p;
	if (!w->stage && !(w->stage = vs_buffer_get(&w->v->s->buffers)))
		return AFS_ENOMEM;
	TRY(vs_volume_lock_write(w->v));
	afs_err err = piece_add(w, &p); /* other writers look at ours, under the lock */
	if (!err) {
		err = piece_begin_locked(w, p, idx, off, n);
		w->pieces++; /* also when half begun: let go with the others */
	}
	vs_volume_unlock(w->v);
	if (err)
		return err == AFS_ENOENT ? AFS_ECORRUPT : err;
	if (p->kind == PIECE_PATCH && !(p->buf = vs_buffer_get(&w->v->s->buffers)))
		return AFS_ENOMEM;
	/* what an earlier store left behind the valid bytes must read as zeros in the gap */
	if (p->kind == PIECE_APPEND && off > p->old_len &&
		ftruncate(p->fd->fd, (off_t)p->old_len) != 0)
		return vs_err_of_errno(errno);
	return AFS_OK;
}

static afs_err flush(struct vs_writer *w)
{
	if (!w->staged)
		return AFS_OK;
	struct piece *p = &w->piece[w->pieces - 1];
	uint64_t off = p->to - w->staged;
	size_t n = w->staged;
	w->staged = 0;
	TRY(vs_pwrite(p->fd->fd, w->stage, n, off));
	sum_run(p, off, w->stage, n);
	return AFS_OK;
}

/* Bytes [pos, end) of one file to the same place in another; shared, not copied, where the file
 * system can. */
static afs_err copy_range(struct vs_store *s, int from, int to, uint64_t pos, uint64_t end)
{
	while (pos < end) {
		off_t in = (off_t)pos, out = (off_t)pos;
		ssize_t n = vs_write_refused()
				    ? -1
				    : copy_file_range(from, &in, to, &out, (size_t)(end - pos), 0);
		if (n <= 0 && (n == 0 || errno == ENOSPC || errno == EDQUOT))
			return n ? AFS_EDISKFULL : AFS_OK; /* behind the end come zeros */
		if (n < 0)
			break;
		pos += (uint64_t)n;
	}
	if (pos >= end)
		return AFS_OK;
	uint8_t *buf = vs_buffer_get(&s->buffers);
	if (!buf)
		return AFS_ENOMEM;
	afs_err err = AFS_OK;
	for (; pos < end && !err; pos += VS_BUFFER) {
		size_t n = (size_t)MIN(end - pos, (uint64_t)VS_BUFFER);
		err = vs_extent_read(from, pos, buf, n);
		if (!err)
			err = vs_pwrite(to, buf, n, pos);
	}
	vs_buffer_put(&s->buffers, buf);
	return err;
}

/* Old bytes around the run, for a new file; from memory when they were inline. */
static afs_err copy_around(struct vs_volume *v, struct piece *p, int from, const uint8_t *small)
{
	uint64_t before = MIN((uint64_t)p->from, p->old_len), after = MAX((uint64_t)p->to, before);
	if (small) {
		TRY(vs_pwrite(p->fd->fd, small, (size_t)before, 0));
		return after < p->old_len ? vs_pwrite(p->fd->fd, small + after,
						    (size_t)(p->old_len - after), after)
					  : AFS_OK;
	}
	TRY(copy_range(v->s, from, p->fd->fd, 0, before));
	return copy_range(v->s, from, p->fd->fd, after, p->old_len);
}

/* The last piece has all its bytes: make it whole, without the lock, as far as the base allows. */
static afs_err piece_end(struct vs_writer *w)
{
	if (!w->pieces || w->small_result)
		return AFS_OK;
	struct vs_volume *v = w->v;
	struct piece *p = &w->piece[w->pieces - 1];
	TRY(flush(w));
	p->len = MAX((uint64_t)p->to, p->old_len);
	if (p->kind == PIECE_PATCH)
		return AFS_OK;
	if (p->kind == PIECE_APPEND)
		return sum_rest(v->s, p, false);
	if (p->ready && p->old_len)
		TRY(copy_around(v, p, p->base ? p->base->fd : -1, p->base ? NULL : w->small));
	return p->ready ? sum_rest(v->s, p, true) : AFS_OK;
}

/* --- bytes coming in ------------------------------------------------------------------ */

static afs_err put_some(struct vs_writer *w, const uint8_t *p, size_t n, size_t *took)
{
	uint64_t at = w->pos + w->got;
	uint32_t idx = (uint32_t)(at / VS_EXTENT), off = (uint32_t)(at % VS_EXTENT);
	struct piece *last = w->pieces ? &w->piece[w->pieces - 1] : NULL;
	if (!last || last->idx != idx) {
		TRY(piece_end(w));
		TRY(piece_begin(w, idx, off, MIN(VS_EXTENT - off, w->length - w->got)));
		last = &w->piece[w->pieces - 1];
	}
	n = (size_t)MIN((uint64_t)n, VS_EXTENT - off);
	if (last->kind == PIECE_PATCH) {
		memcpy(last->buf + (off - last->from), p, n);
	} else {
		if (!w->staged) /* written in runs that end where checksum blocks end */
			w->stage_full = STAGE - off % VS_SUM_BLOCK;
		n = MIN(n, w->stage_full - w->staged);
		memcpy(w->stage + w->staged, p, n);
		w->staged += n;
	}
	last->to += (uint32_t)n;
	*took = n;
	return w->staged && w->staged == w->stage_full ? flush(w) : AFS_OK;
}

afs_err vs_write_put(struct vs_writer *w, const void *p, size_t n)
{
	if (w->err)
		return w->err;
	if (n > w->length - w->got)
		return w->err = AFS_EINVAL;
	if (w->small_result) {
		memcpy(w->small + w->got, p, n);
		w->got += n;
		return AFS_OK;
	}
	const uint8_t *at = p;
	while (n && !w->err) {
		size_t took = 0;
		w->err = put_some(w, at, n, &took);
		at += took;
		n -= took;
		w->got += took;
	}
	return w->err;
}

/* --- ending --------------------------------------------------------------------------- */

/* The run of piece `p`, and what is now around it, in a new file. */
static afs_err rebuild_locked(
	struct vs_writer *w, struct piece *p, const struct vs_row *cur, uint64_t kept)
{
	struct vs_volume *v = w->v;
	struct vs_extent base = {0};
	uint8_t small[VS_INLINE_MAX];
	size_t small_n = 0;
	struct piece made = {.idx = p->idx, .from = p->from, .to = p->to};
	if (cur->kind == VS_EXTENTS)
		TRY(vs_extent_at(v, w->fid.vnode, p->idx, &base));
	else if (p->idx == 0)
		TRY(vs_inline_get(v, cur, small, &small_n));
	made.old_len = clipped(base.id ? base.len : small_n, p->idx, kept);
	afs_err err = new_piece(v, &made, base.id);
	if (!err)
		err = copy_around(
			v, &made, made.base ? made.base->fd : -1, made.base ? NULL : small);
	if (!err && p->buf)
		err = vs_pwrite(made.fd->fd, p->buf, p->to - p->from, p->from);
	else if (!err && p->fd)
		err = copy_range(v->s, p->fd->fd, made.fd->fd, p->from, p->to);
	vs_fd_put(&v->s->fds, TAKE(made.base));
	made.len = MAX((uint64_t)made.to, made.old_len);
	if (!err)
		err = sum_rest(v->s, &made, true);
	if (!err && vs_power(v) && fdatasync(made.fd->fd) != 0)
		err = vs_err_of_errno(errno);
	if (err) {
		if (made.fd)
			vs_volume_reap_later(v, made.extent);
		vs_fd_put(&v->s->fds, made.fd);
		return err == AFS_ENOENT ? AFS_ECORRUPT : err;
	}
	if (p->kind == PIECE_NEW && p->fd)
		vs_volume_reap_later(v, p->extent);
	vs_fd_put(&v->s->fds, p->fd);
	vs_fd_put(&v->s->fds, p->base);
	if (p->buf != w->small)
		vs_buffer_put(&v->s->buffers, p->buf);
	*p = made;
	p->ready = true;
	return AFS_OK;
}

/* An extent that no byte came into but that must be a new file: it was inline, or a clone sees
 * what is cut off. */
static afs_err rebuild_untouched_locked(
	struct vs_writer *w, uint32_t idx, const struct vs_row *cur, uint64_t kept)
{
	struct piece *p;
	TRY(piece_add(w, &p));
	p->idx = idx;
	p->from = p->to = 0;
	w->pieces++;
	return rebuild_locked(w, &w->piece[w->pieces - 1], cur, kept);
}

static struct piece *piece_at(struct vs_writer *w, uint32_t idx)
{
	for (size_t i = 0; i < w->pieces; i++)
		if (w->piece[i].idx == idx)
			return &w->piece[i];
	return NULL;
}

/* Rows for extents that truncation shortens.  The file is cut after the commit. */
struct cut {
	uint64_t extent, len;
};

static afs_err cut_locked(struct vs_tx *tx, struct vs_writer *w, const struct vs_row *cur,
	uint64_t kept, struct cut *cut)
{
	if (cur->kind != VS_EXTENTS || kept >= cur->st.length)
		return AFS_OK;
	uint32_t idx = (uint32_t)(kept / VS_EXTENT);
	uint64_t off = kept % VS_EXTENT;
	TRY(vs_extents_drop(tx, w->fid.vnode, off ? idx + 1 : idx));
	if (!off || piece_at(w, idx))
		return AFS_OK;
	struct vs_extent e;
	TRY(vs_extent_at(tx->v, w->fid.vnode, idx, &e));
	if (!e.id || e.len <= off)
		return AFS_OK;
	if (!e.exclusive || others_write(w, e.id))
		return rebuild_untouched_locked(w, idx, cur, kept);
	*cut = (struct cut){e.id, off};
	/* the last block's sum no longer holds */
	size_t whole = 4 * (size_t)(off / VS_SUM_BLOCK);
	bool keep = off % VS_SUM_BLOCK == 0 && e.sums_n >= whole;
	return vs_err_of_db(db_run(tx->v->db, Q_EXTENT_SET, DB_INT(e.id), DB_INT(off),
		keep ? DB_BLOB(e.sums, whole) : DB_NULL));
}

static struct db_value sums_value(const struct piece *p)
{
	return p->sums_n ? DB_BLOB(p->sums, p->sums_n) : DB_NULL;
}

/* Behind the valid bytes of the extent: invisible until the commit. */
static afs_err patch_tail(const struct piece *p)
{
	if (p->to <= p->old_len)
		return AFS_OK;
	uint64_t start = MAX((uint64_t)p->from, p->old_len);
	return vs_pwrite(p->fd->fd, p->buf + (start - p->from), (size_t)(p->to - start), start);
}

static afs_err name_piece(struct vs_tx *tx, struct vs_writer *w, struct piece *p)
{
	struct vs_volume *v = tx->v;
	struct vs_extent old = {0};
	switch (p->kind) {
	case PIECE_NEW:
		TRY(vs_extent_at(v, w->fid.vnode, p->idx, &old));
		return vs_extent_put(
			tx, w->fid.vnode, p->idx, &old, p->extent, p->len, p->sums, p->sums_n);
	case PIECE_APPEND:
		return vs_err_of_db(db_run(
			v->db, Q_EXTENT_SET, DB_INT(p->extent), DB_INT(p->len), sums_value(p)));
	case PIECE_PATCH:
		TRY(patch_tail(p));
		return vs_err_of_db(
			db_run(v->db, Q_EXTENT_SET, DB_INT(p->extent), DB_INT(p->len), DB_NULL));
	}
	return AFS_EINVAL;
}

/* After the commit.  In `power` the commit is on disk before old bytes go. */
static afs_err patch_heads_locked(struct vs_writer *w, uint64_t seq)
{
	struct vs_volume *v = w->v;
	bool settled = false;
	for (size_t i = 0; i < w->pieces; i++) {
		struct piece *p = &w->piece[i];
		if (p->kind != PIECE_PATCH)
			continue;
		if (!settled)
			TRY(vs_volume_settle(v, seq));
		settled = true;
		uint64_t end = MIN((uint64_t)p->to, p->old_len);
		if (end > p->from)
			TRY(vs_pwrite(p->fd->fd, p->buf, (size_t)(end - p->from), p->from));
		if (vs_power(v) && fdatasync(p->fd->fd) != 0)
			return log_error(
				AFS_EIO, "vs.content.sync volume=%u errno=%d", v->id, errno);
		p->summed = 0;
		if (sum_rest(v->s, p, p->sums_n == 0) == AFS_OK && p->sums_n &&
			db_run(v->db, Q_EXTENT_SET, DB_INT(p->extent), DB_INT(p->len),
				sums_value(p)) == AFS_OK) {
			atomic_fetch_add(&v->committed, 1);
			v->commits_since_checkpoint++;
		} /* else: none are kept, which is allowed */
	}
	return AFS_OK;
}

static void set_row(
	const struct vs_writer *w, struct vs_row *row, const struct vs_who *who, uint64_t length)
{
	struct vs_status *st = &row->st;
	st->length = length;
	st->dv++;
	st->author = who->id;
	st->server_mtime = who->now;
	st->client_mtime = w->set.mask & VS_SET_MTIME ? w->set.mtime : who->now;
	if (w->set.mask & VS_SET_OWNER)
		st->owner = w->set.owner;
	if (w->set.mask & VS_SET_GROUP)
		st->group = w->set.group;
	if (w->set.mask & VS_SET_MODE)
		st->mode = w->set.mode & 07777;
	if (!w->keep_setid)
		st->mode &= ~06000u;
}

/* All of the file fits into its row. */
static afs_err store_inline(
	struct vs_tx *tx, struct vs_writer *w, struct vs_row *row, uint64_t kept, uint64_t length)
{
	struct vs_volume *v = tx->v;
	uint8_t bytes[VS_INLINE_MAX] = {0}, old[VS_INLINE_MAX];
	size_t n = 0;
	if (row->kind == VS_EXTENTS) {
		struct vs_extent e;
		struct vs_fd *fd;
		TRY(vs_extent_at(v, w->fid.vnode, 0, &e));
		n = (size_t)MIN(MIN(e.len, kept), (uint64_t)sizeof(old));
		if (n) {
			TRY(vs_fd_get(&v->s->fds, v->data_fd, v->serial, e.id, false, &fd));
			afs_err err = vs_extent_read(fd->fd, 0, old, n);
			vs_fd_put(&v->s->fds, fd);
			if (err)
				return err;
		}
		TRY(vs_extents_drop(tx, w->fid.vnode, 0));
		row->kind = VS_EMPTY;
	} else {
		TRY(vs_inline_get(v, row, old, &n));
	}
	memcpy(bytes, old, (size_t)MIN((uint64_t)n, kept));
	memcpy(bytes + (w->got ? w->pos : 0), w->small, (size_t)w->got);
	return vs_inline_put(tx, row, bytes, (size_t)length);
}

static afs_err store_extents(struct vs_tx *tx, struct vs_writer *w, struct vs_row *row,
	const struct vs_row *cur, uint64_t kept, struct cut *cut)
{
	bool same = cur->st.dv == w->base.st.dv && cur->kind == w->base.kind;
	if (w->small_result && w->got) { /* it was to be inline, but the file has grown meanwhile */
		struct piece *p;
		TRY(piece_add(w, &p));
		*p = (struct piece){.kind = PIECE_PATCH,
			.from = (uint32_t)w->pos,
			.to = (uint32_t)(w->pos + w->got),
			.buf = w->small};
		w->pieces++;
	}
	/* before any row changes: rebuilding reads what is there */
	for (size_t i = 0; i < w->pieces; i++)
		if (!same || !w->piece[i].ready ||
			(w->piece[i].kind != PIECE_NEW && w->piece[i].epoch != tx->v->epoch))
			TRY(rebuild_locked(w, &w->piece[i], cur, kept));
	if (cur->kind == VS_INLINE && kept && !piece_at(w, 0))
		TRY(rebuild_untouched_locked(w, 0, cur, kept));
	TRY(cut_locked(tx, w, cur, kept, cut));
	if (cur->kind == VS_INLINE)
		TRY(vs_inline_put(tx, row, NULL, 0));
	row->kind = VS_EXTENTS;
	for (size_t i = 0; i < w->pieces; i++)
		TRY(name_piece(tx, w, &w->piece[i]));
	return AFS_OK;
}

static void cut_file(struct vs_volume *v, const struct cut *cut)
{
	struct vs_fd *fd;
	if (!cut->extent ||
		vs_fd_get(&v->s->fds, v->data_fd, v->serial, cut->extent, false, &fd) != AFS_OK)
		/* what is behind the valid bytes is nothing; cutting it off only saves space */
		return;
	if (ftruncate(fd->fd, (off_t)cut->len) != 0)
		log_warn("vs.content.cut volume=%u errno=%d", v->id, errno);
	vs_fd_put(&v->s->fds, fd);
}

static afs_err end_locked(
	struct vs_writer *w, const struct vs_who *who, struct vs_status *out, uint64_t *seq)
{
	struct vs_volume *v = w->v;
	struct vs_vnode *vn;
	if (w->serial != v->serial)
		return AFS_EVBUSY;
	TRY(vs_vnode_get(v, w->fid, &vn));
	const struct vs_row cur = vn->row;
	uint64_t kept = MIN(cur.st.length, w->file_length);
	uint64_t length = final_length(kept, w->pos, w->length, w->got);
	struct cut cut = {0};

	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, v, who->now);
	tx.judged = true; /* quota and space, when it began */
	bool small = length <= VS_INLINE_MAX && (w->small_result || w->got == 0);
	if (!small)
		TRY(vs_volume_mark_dirty_locked(v));
	struct vs_row *row = vs_tx_edit(&tx, vn);
	set_row(w, row, who, length);
	TRY(vs_tx_begin(&tx));
	if (small)
		TRY(store_inline(&tx, w, row, kept, length));
	else
		TRY(store_extents(&tx, w, row, &cur, kept, &cut));
	const struct vs_status done = row->st;
	TRY(vs_tx_commit(&tx));
	for (size_t i = 0; i < w->pieces; i++)
		w->piece[i].named = true;
	cut_file(v, &cut);
	TRY(patch_heads_locked(w, tx.seq));
	*seq = atomic_load(&v->committed);
	*out = done;
	return AFS_OK;
}

static void leave_locked(struct vs_writer *w)
{
	list_remove(&w->link);
	for (size_t i = 0; i < w->pieces && w->serial == w->v->serial; i++)
		if (w->piece[i].kind == PIECE_NEW && w->piece[i].fd && !w->piece[i].named)
			vs_volume_reap_later(w->v, w->piece[i].extent);
}

/* `power`: content is on disk before a row names it. */
static afs_err sync_pieces(struct vs_writer *w)
{
	bool made = false;
	if (!vs_power(w->v))
		return AFS_OK;
	for (size_t i = 0; i < w->pieces; i++) {
		struct piece *p = &w->piece[i];
		if (p->kind == PIECE_PATCH)
			continue;
		if (fdatasync(p->fd->fd) != 0)
			return log_error(vs_err_of_errno(errno),
				"vs.content.sync volume=%u errno=%d", w->v->id, errno);
		made |= p->kind == PIECE_NEW;
	}
	return made && fsync(w->v->data_fd) != 0 ? AFS_EIO : AFS_OK;
}

static void leave(struct vs_writer *w) NO_TSA
{
	struct vs_volume *v = w->v;
	(void)vs_base_lock(v);
	leave_locked(w);
	vs_volume_unlock(v);
	writer_free(w);
}

afs_err vs_write_end(struct vs_writer *w, const struct vs_who *who, struct vs_status *out)
{
	struct vs_volume *v = w->v;
	uint64_t seq = 0;
	afs_err err = w->err;
	if (!err)
		err = piece_end(w);
	if (!err)
		err = sync_pieces(w);
	if (!err)
		err = vs_volume_lock_write(v);
	if (!err) {
		err = end_locked(w, who, out, &seq);
		vs_volume_unlock(v);
	}
	vs_volume_ref(v);
	leave(w);
	if (!err)
		err = vs_volume_settle(v, seq);
	vs_volume_unref(v);
	return err;
}

void vs_write_cancel(struct vs_writer *w) { leave(w); }
