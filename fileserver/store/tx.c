/* SPDX-License-Identifier: BSD-2-Clause
 * One verb's transaction.
 *
 * A verb reads, judges, and collects edits: copies of rows as they shall be, and directory objects
 * changed in memory.  Commit writes all of them and the volume's sums in one SQLite transaction;
 * only then do the cached vnodes change.  Without a commit, the copies are let go and changed
 * objects dropped (they load again from their pages), so memory and rows agree at every exit. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <assert.h>
#include <string.h>

void vs_tx_init(struct vs_tx *tx, struct vs_volume *v, wall_ns now)
{
	*tx = (struct vs_tx){.v = v, .now = now, .unique = v->h.unique};
}

static void let_go(struct vs_tx *tx)
{
	for (unsigned i = 0; i < tx->edits; i++)
		mem_free(tx->edit[i].acl);
	mem_free(tx->gone);
	tx->gone = NULL;
	tx->edits = tx->dirs_n = 0;
}

void vs_tx_cleanup(struct vs_tx *tx)
{
	struct vs_volume *v = tx->v;
	if (!v)
		return;
	db_rollback(&tx->db);
	for (unsigned i = 0; i < tx->dirs_n; i++)
		vs_vnode_drop_dir(v, tx->dirs[i]);
	for (unsigned i = 0; i < tx->edits; i++) {
		struct vs_edit *e = &tx->edit[i];
		if (e->what == VS_EDIT_NEW) {
			vs_number_give(v, e->vn->row.st.fid.vnode);
			vs_vnode_drop_dir(v, e->vn);
			vs_vnode_free(e->vn);
		}
	}
	let_go(tx);
}

static struct vs_edit *edit_of(struct vs_tx *tx, struct vs_vnode *vn)
{
	for (unsigned i = 0; i < tx->edits; i++)
		if (tx->edit[i].vn == vn)
			return &tx->edit[i];
	assert(tx->edits < VS_TX_EDITS);
	struct vs_edit *e = &tx->edit[tx->edits++];
	*e = (struct vs_edit){.vn = vn, .row = vn->row, .what = VS_EDIT_SET};
	return e;
}

struct vs_row *vs_tx_edit(struct vs_tx *tx, struct vs_vnode *vn) { return &edit_of(tx, vn)->row; }
void vs_tx_gone(struct vs_tx *tx, struct vs_vnode *vn) { edit_of(tx, vn)->what = VS_EDIT_GONE; }

void vs_tx_dir(struct vs_tx *tx, struct vs_vnode *vn)
{
	for (unsigned i = 0; i < tx->dirs_n; i++)
		if (tx->dirs[i] == vn)
			return;
	assert(tx->dirs_n < VS_TX_EDITS);
	tx->dirs[tx->dirs_n++] = vn;
	(void)vs_tx_edit(tx, vn);
}

afs_err vs_tx_new(struct vs_tx *tx, enum afs_filetype type, struct vs_vnode **out)
{
	struct vs_volume *v = tx->v;
	if (tx->unique > UINT32_MAX)
		return log_error(AFS_EDISKFULL,
			"vs.volume.full volume=%u text=\"no uniquifiers left: dump and restore "
			"it\"",
			v->id);
	uint32_t number;
	CLEANUP(vs_vnode) struct vs_vnode *vn = mem_new(struct vs_vnode);
	if (!vn)
		return AFS_ENOMEM;
	TRY(vs_number_take(v, type == AFS_DIR, &number));
	vn->row = (struct vs_row){
		.st = {.fid = {number, (uint32_t)tx->unique}, .type = type},
		.kind = type == AFS_DIR ? VS_PAGES : VS_EMPTY,
		.born = v->epoch,
	};
	tx->unique++;
	*out = TAKE(vn);
	edit_of(tx, *out)->what = VS_EDIT_NEW;
	return AFS_OK;
}

/* --- sums ----------------------------------------------------------------------------- */

static int64_t delta_kib(const struct vs_tx *tx)
{
	int64_t delta = 0;
	for (unsigned i = 0; i < tx->edits; i++) {
		const struct vs_edit *e = &tx->edit[i];
		if (e->what != VS_EDIT_NEW)
			delta -= (int64_t)vs_blocks(e->vn->row.st.length);
		if (e->what != VS_EDIT_GONE)
			delta += (int64_t)vs_blocks(e->row.st.length);
	}
	return delta;
}

static int delta_files(const struct vs_tx *tx)
{
	int delta = 0;
	for (unsigned i = 0; i < tx->edits; i++)
		delta += (tx->edit[i].what == VS_EDIT_NEW) - (tx->edit[i].what == VS_EDIT_GONE);
	return delta;
}

afs_err vs_tx_begin(struct vs_tx *tx)
{
	struct vs_volume *v = tx->v;
	for (unsigned i = 0; i < tx->dirs_n; i++)
		vs_tx_edit(tx, tx->dirs[i])->st.length =
			(uint64_t)tx->dirs[i]->dir->d.pages * VS_DIR_PAGE;
	int64_t delta = delta_kib(tx);
	if (delta > 0 && !tx->judged) {
		TRY(vs_quota_check(v, delta, 0));
		TRY(vs_space_check(v->part, (uint64_t)delta));
	}
	return vs_err_of_db(db_begin(v->db, &tx->db));
}

/* --- writing the edits ---------------------------------------------------------------- */

static const struct vs_acl *acl_of(const struct vs_edit *e) { return e->acl ? e->acl : e->vn->acl; }

/* A row of the present epoch changes in place; an older one dies, so that clones keep it. */
static afs_err save_set(struct vs_tx *tx, struct vs_edit *e)
{
	struct vs_volume *v = tx->v;
	if (e->row.born == v->epoch)
		return vs_row_update(v->db, &e->row, acl_of(e));
	TRY(vs_err_of_db(db_run(v->db, Q_VNODE_END,
		DB_INT(VS_KEY(e->row.st.fid.vnode, e->row.born)), DB_INT(v->epoch))));
	e->row.born = v->epoch;
	return vs_row_insert(v->db, &e->row, acl_of(e));
}

static afs_err save_gone(struct vs_tx *tx, struct vs_edit *e)
{
	struct vs_volume *v = tx->v;
	int64_t key = VS_KEY(e->vn->row.st.fid.vnode, e->vn->row.born);
	TRY(vs_content_drop(tx, e->vn));
	if (e->vn->row.born == v->epoch)
		return vs_err_of_db(db_run(v->db, Q_VNODE_DEL, DB_INT(key)));
	return vs_err_of_db(db_run(v->db, Q_VNODE_END, DB_INT(key), DB_INT(v->epoch)));
}

static afs_err save_all(struct vs_tx *tx, const struct vs_header *h)
{
	struct vs_volume *v = tx->v;
	for (unsigned i = 0; i < tx->edits; i++) {
		struct vs_edit *e = &tx->edit[i];
		switch (e->what) {
		case VS_EDIT_NEW:
			TRY(vs_row_insert(v->db, &e->row, acl_of(e)));
			if (e->vn->dir)
				TRY(vs_dir_save(v->db, e->row.st.fid.vnode, e->vn->dir, v->epoch));
			break;
		case VS_EDIT_SET:
			TRY(save_set(tx, e));
			break;
		case VS_EDIT_GONE:
			TRY(save_gone(tx, e));
			break;
		}
	}
	for (unsigned i = 0; i < tx->dirs_n; i++)
		TRY(vs_dir_save(v->db, tx->dirs[i]->row.st.fid.vnode, tx->dirs[i]->dir, v->epoch));
	return vs_err_of_db(db_run(v->db, Q_VOLUME_COUNT, DB_INT(v->id), DB_INT(h->unique),
		DB_INT(h->used_kib), DB_INT(h->files), DB_INT(h->update), DB_INT(h->update_counter),
		DB_INT(h->owner)));
}

static void apply(struct vs_tx *tx, const struct vs_header *h)
{
	struct vs_volume *v = tx->v;
	v->h = *h;
	for (unsigned i = 0; i < tx->edits; i++) {
		struct vs_edit *e = &tx->edit[i];
		if (e->what == VS_EDIT_GONE) {
			vs_number_give(v, e->vn->row.st.fid.vnode);
			vs_vnode_forget(v, e->vn);
			continue;
		}
		e->vn->row = e->row;
		if (e->acl) {
			mem_free(e->vn->acl);
			e->vn->acl = TAKE(e->acl);
		}
		if (e->vn->dir)
			vs_vnode_adopt_dir(v, e->vn, e->vn->dir);
		if (e->what == VS_EDIT_NEW)
			vs_vnode_insert(v, e->vn);
	}
	for (size_t i = 0; i < tx->gone_n; i++)
		vs_volume_reap_later(v, tx->gone[i]);
	let_go(tx);
}

afs_err vs_tx_commit(struct vs_tx *tx)
{
	struct vs_volume *v = tx->v;
	if (!tx->db.db)
		TRY(vs_tx_begin(tx));
	struct vs_header h = v->h;
	h.unique = tx->unique;
	h.used_kib = (uint64_t)((int64_t)h.used_kib + delta_kib(tx));
	h.files = (uint64_t)((int64_t)h.files + delta_files(tx));
	h.update = tx->now;
	h.update_counter++;
	for (unsigned i = 0; i < tx->edits; i++)
		if (tx->edit[i].row.st.fid.vnode == 1)
			h.owner = tx->edit[i].row.st.owner;
	TRY(save_all(tx, &h));
	TRY(vs_err_of_db(db_commit(&tx->db)));
	tx->seq = atomic_fetch_add(&v->committed, 1) + 1;
	v->commits_since_checkpoint++;
	apply(tx, &h);
	return AFS_OK;
}

afs_err vs_tx_unref(struct vs_tx *tx, uint64_t extent)
{
	struct vs_volume *v = tx->v;
	TRY(vs_err_of_db(db_run(v->db, Q_EXTENT_UNREF, DB_INT(extent))));
	if (db_changes(v->db) > 0)
		return AFS_OK;
	if (tx->gone_n == tx->gone_cap) {
		size_t cap = tx->gone_cap ? tx->gone_cap * 2 : 8;
		uint64_t *gone = mem_resize(tx->gone, tx->gone_cap, cap, sizeof(*gone));
		if (!gone)
			return AFS_ENOMEM;
		tx->gone = gone;
		tx->gone_cap = cap;
	}
	TRY(vs_err_of_db(db_run(v->db, Q_EXTENT_DEL, DB_INT(extent))));
	tx->gone[tx->gone_n++] = extent;
	return AFS_OK;
}
