/* SPDX-License-Identifier: BSD-2-Clause
 * Vnodes: their rows, and the cache of them that answers status and lookups without SQL.
 *
 * The rows are the truth.  A cached vnode, its ACL and its directory object are copies that change
 * only after a commit (tx.c), except the object, which a verb edits in place and which is dropped
 * when the verb fails. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <string.h>

/* --- rows ----------------------------------------------------------------------------- */

static bool row_valid(const struct vs_row *row, int64_t vnode)
{
	const struct vs_status *st = &row->st;
	bool dir = st->type == AFS_DIR;
	if (vnode <= 0 || vnode > UINT32_MAX ||
		(st->type != AFS_FILE && !dir && st->type != AFS_SYMLINK))
		return false;
	if (dir != (vnode & 1) || dir != (row->kind == VS_PAGES) || row->kind > VS_PAGES)
		return false;
	if (st->length > VS_LENGTH_MAX || (st->mode & ~07777u))
		return false;
	return row->kind != VS_INLINE || st->length <= VS_INLINE_MAX;
}

afs_err vs_row_read(struct db_rows *r, struct vs_row *row, struct vs_acl *acl)
{
	int64_t key = db_int(r, 0), vnode = key >> 31;
	*row = (struct vs_row){
		.st =
			{
				.fid = {(uint32_t)vnode, (uint32_t)db_int(r, 1)},
				.parent = {(uint32_t)db_int(r, 12), (uint32_t)db_int(r, 13)},
				.type = (enum afs_filetype)db_int(r, 2),
				.mode = (uint32_t)db_int(r, 3),
				.owner = (int32_t)db_int(r, 4),
				.group = (int32_t)db_int(r, 5),
				.author = (int32_t)db_int(r, 6),
				.links = (uint32_t)db_int(r, 7),
				.length = (uint64_t)db_int(r, 8),
				.dv = (uint64_t)db_int(r, 9),
				.client_mtime = db_int(r, 10),
				.server_mtime = db_int(r, 11),
			},
		.kind = (enum vs_kind)db_int(r, 14),
		.born = key & VS_ALIVE,
		.content = db_int(r, 15),
		.content_born = db_int(r, 16),
	};
	*acl = (struct vs_acl){0};
	if (!row_valid(row, vnode))
		return AFS_ECORRUPT;
	if (row->st.type == AFS_DIR) {
		uint8_t block[VS_ACL_BYTES] = {0};
		size_t n;
		const void *p = db_blob(r, 17, &n);
		if (n > sizeof(block))
			return AFS_ECORRUPT;
		memcpy(block, p, n);
		if (vs_acl_unpack(block, acl) != AFS_OK)
			return AFS_ECORRUPT;
	}
	return AFS_OK;
}

static struct db_value acl_value(
	const struct vs_row *row, const struct vs_acl *acl, uint8_t block[VS_ACL_BYTES])
{
	if (row->st.type != AFS_DIR)
		return DB_NULL;
	vs_acl_pack(acl, block);
	return DB_BLOB(block, 20 + 8 * (size_t)(acl->positive + acl->negative));
}

afs_err vs_row_insert(struct db *db, const struct vs_row *row, const struct vs_acl *acl)
{
	const struct vs_status *s = &row->st;
	uint8_t block[VS_ACL_BYTES];
	return vs_err_of_db(db_run(db, Q_VNODE_ADD, DB_INT(VS_KEY(s->fid.vnode, row->born)),
		DB_INT(s->fid.unique), DB_INT(s->type), DB_INT(s->mode), DB_INT(s->owner),
		DB_INT(s->group), DB_INT(s->author), DB_INT(s->links), DB_INT(s->length),
		DB_INT(s->dv), DB_INT(s->client_mtime), DB_INT(s->server_mtime),
		DB_INT(s->parent.vnode), DB_INT(s->parent.unique), DB_INT(row->kind),
		DB_INT(row->content), DB_INT(row->content_born), acl_value(row, acl, block)));
}

afs_err vs_row_update(struct db *db, const struct vs_row *row, const struct vs_acl *acl)
{
	const struct vs_status *s = &row->st;
	uint8_t block[VS_ACL_BYTES];
	return vs_err_of_db(db_run(db, Q_VNODE_SET, DB_INT(VS_KEY(s->fid.vnode, row->born)),
		DB_INT(s->mode), DB_INT(s->owner), DB_INT(s->group), DB_INT(s->author),
		DB_INT(s->links), DB_INT(s->length), DB_INT(s->dv), DB_INT(s->client_mtime),
		DB_INT(s->server_mtime), DB_INT(s->parent.vnode), DB_INT(s->parent.unique),
		DB_INT(row->kind), DB_INT(row->content), DB_INT(row->content_born),
		acl_value(row, acl, block)));
}

/* --- directory objects ---------------------------------------------------------------- */

void vs_dirobj_free(struct vs_dirobj *o)
{
	if (!o)
		return;
	list_remove(&o->lru);
	vs_dir_fini(&o->d);
	mem_free(o->at);
	mem_free(o);
}

static afs_err room_for_page(struct vs_dirobj *o, uint32_t page)
{
	if (page < o->at_cap)
		return AFS_OK;
	uint32_t cap = MAX(o->at_cap * 2, MAX(page + 1, 4u));
	struct vs_page_at *at = mem_resize(o->at, o->at_cap, cap, sizeof(*at));
	if (!at)
		return AFS_ENOMEM;
	o->at = at;
	o->at_cap = cap;
	return AFS_OK;
}

/* Write the pages that changed.  On an error the object no longer says what is stored: drop it. */
afs_err vs_dir_save(struct db *db, uint32_t vnode, struct vs_dirobj *o, int64_t epoch)
{
	for (uint32_t page = 0; page < o->d.pages; page++) {
		if (!vs_dir_is_dirty(&o->d, page) && page < o->stored)
			continue;
		struct db_value data = DB_BLOB(o->d.data + (size_t)page * VS_DIR_PAGE, VS_DIR_PAGE);
		if (page < o->stored && o->at[page].born == epoch) {
			TRY(vs_err_of_db(db_run(db, Q_BLOB_SET, DB_INT(o->at[page].blob), data)));
			continue;
		}
		TRY(room_for_page(o, page));
		TRY(vs_err_of_db(db_run(db, Q_BLOB_ADD, data)));
		int64_t blob = db_last_rowid(db);
		if (page < o->stored)
			TRY(vs_err_of_db(db_run(db, Q_PAGE_END, DB_INT(vnode), DB_INT(page),
				DB_INT(o->at[page].born), DB_INT(epoch))));
		TRY(vs_err_of_db(db_run(
			db, Q_PAGE_ADD, DB_INT(vnode), DB_INT(page), DB_INT(epoch), DB_INT(blob))));
		o->at[page] = (struct vs_page_at){.blob = blob, .born = epoch};
	}
	o->stored = o->d.pages;
	vs_dir_clean(&o->d);
	return AFS_OK;
}

afs_err vs_dir_read(struct db *db, uint32_t vnode, int64_t epoch, struct vs_dirobj *o)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, Q_PAGE_GET, DB_INT(vnode), DB_INT(epoch));
	while (db_next(&r)) {
		size_t n;
		const void *data = db_blob(&r, 3, &n);
		uint32_t page = o->d.pages;
		if (db_int(&r, 0) != page || n != VS_DIR_PAGE)
			return AFS_ECORRUPT;
		TRY(vs_dir_reserve(&o->d, page + 1));
		TRY(room_for_page(o, page));
		memcpy(o->d.data + (size_t)page * VS_DIR_PAGE, data, VS_DIR_PAGE);
		o->at[page] = (struct vs_page_at){.blob = db_int(&r, 1), .born = db_int(&r, 2)};
	}
	o->stored = o->d.pages;
	return vs_err_of_db(r.err);
}

void vs_vnode_adopt_dir(struct vs_volume *v, struct vs_vnode *vn, struct vs_dirobj *o)
{
	vn->dir = o;
	o->vn = vn;
	atomic_fetch_add(&v->s->dir_pages, o->d.cap - o->counted);
	o->counted = o->d.cap;
	list_remove(&o->lru);
	list_push_back(&v->dir_lru, &o->lru);
}

void vs_vnode_drop_dir(struct vs_volume *v, struct vs_vnode *vn)
{
	if (!vn->dir)
		return;
	atomic_fetch_sub(&v->s->dir_pages, vn->dir->counted);
	vs_dirobj_free(vn->dir);
	vn->dir = NULL;
}

afs_err vs_vnode_load_dir(struct vs_volume *v, struct vs_vnode *vn)
{
	if (vn->dir) {
		list_remove(&vn->dir->lru);
		list_push_back(&v->dir_lru, &vn->dir->lru);
		return AFS_OK;
	}
	CLEANUP(vs_dirobj) struct vs_dirobj *o = mem_new(struct vs_dirobj);
	if (!o)
		return AFS_ENOMEM;
	afs_err err = vs_dir_read(v->db, vn->row.st.fid.vnode, v->epoch, o);
	if (!err && (vn->row.st.length != (uint64_t)o->d.pages * VS_DIR_PAGE ||
			    vs_dir_accept(&o->d) != AFS_OK))
		err = AFS_ECORRUPT;
	if (err == AFS_ECORRUPT)
		return log_error(err,
			"vs.dir.damaged volume=%u vnode=%u text=\"afscell check tells more\"",
			v->id, vn->row.st.fid.vnode);
	if (err)
		return err;
	vs_vnode_adopt_dir(v, vn, TAKE(o));
	return AFS_OK;
}

/* --- cache ---------------------------------------------------------------------------- */

void vs_vnode_free(struct vs_vnode *vn)
{
	vs_dirobj_free(vn->dir);
	mem_free(vn->acl);
	mem_free(vn);
}

void vs_vnode_forget(struct vs_volume *v, struct vs_vnode *vn)
{
	map_remove(&v->vnodes, &vn->node);
	list_remove(&vn->lru);
	atomic_fetch_sub(&v->s->vnodes, 1);
	vs_vnode_drop_dir(v, vn);
	vs_vnode_free(vn);
}

void vs_vnode_forget_all(struct vs_volume *v)
{
	while (!list_empty(&v->lru))
		vs_vnode_forget(v, list_entry(list_first(&v->lru), struct vs_vnode, lru));
}

static bool insert(struct vs_volume *v, struct vs_vnode *vn)
{
	if (!map_insert(&v->vnodes, &vn->node, map_hash_u64(&v->vnodes, vn->row.st.fid.vnode)))
		return false;
	list_push_back(&v->lru, &vn->lru);
	atomic_fetch_add(&v->s->vnodes, 1);
	return true;
}

void vs_vnode_insert(struct vs_volume *v, struct vs_vnode *vn)
{
	if (!insert(v, vn)) {
		vs_vnode_drop_dir(v, vn);
		vs_vnode_free(vn);
	}
}

struct vs_vnode *vs_vnode_find(struct vs_volume *v, uint32_t vnode)
{
	for (struct map_node *n = map_first(&v->vnodes, map_hash_u64(&v->vnodes, vnode)); n;
		n = map_next(n)) {
		struct vs_vnode *vn = container_of(n, struct vs_vnode, node);
		if (vn->row.st.fid.vnode == vnode)
			return vn;
	}
	return NULL;
}

static afs_err load(struct vs_volume *v, uint32_t vnode, struct vs_vnode **out)
{
	CLEANUP(vs_vnode) struct vs_vnode *vn = mem_new(struct vs_vnode);
	if (!vn)
		return AFS_ENOMEM;
	struct vs_acl acl;
	CLEANUP(db_rows) struct db_rows r = db_query(v->db, Q_VNODE_GET, DB_INT(vnode), DB_INT(v->epoch));
	if (!db_next(&r))
		return r.err ? vs_err_of_db(r.err) : AFS_ENOVNODE;
	afs_err err = vs_row_read(&r, &vn->row, &acl);
	if (err)
		return log_error(err,
			"vs.vnode.damaged volume=%u vnode=%u text=\"afscell check tells more\"",
			v->id, vnode);
	if (vn->row.st.type == AFS_DIR) {
		vn->acl = mem_new(struct vs_acl);
		if (!vn->acl)
			return AFS_ENOMEM;
		*vn->acl = acl;
	}
	if (!insert(v, vn))
		return AFS_ENOMEM;
	*out = TAKE(vn);
	return AFS_OK;
}

afs_err vs_vnode_get(struct vs_volume *v, struct vs_fid fid, struct vs_vnode **out)
{
	struct vs_vnode *vn = vs_vnode_find(v, fid.vnode);
	if (vn) {
		list_remove(&vn->lru);
		list_push_back(&v->lru, &vn->lru);
	} else {
		TRY(load(v, fid.vnode, &vn));
	}
	if (vn->row.st.fid.unique != fid.unique)
		return AFS_ENOVNODE;
	*out = vn;
	return AFS_OK;
}

afs_err vs_vnode_get_dir(struct vs_volume *v, struct vs_fid fid, struct vs_vnode **out)
{
	struct vs_vnode *vn;
	TRY(vs_vnode_get(v, fid, &vn));
	if (vn->row.st.type != AFS_DIR)
		return AFS_ENOTDIR;
	TRY(vs_vnode_load_dir(v, vn));
	*out = vn;
	return AFS_OK;
}

/* Between verbs only: nobody holds a pointer to a vnode then.  A little at a time. */
void vs_vnode_trim(struct vs_volume *v)
{
	struct vs_store *s = v->s;
	size_t page_limit = s->config.dir_cache_kib * 1024 / VS_DIR_PAGE;
	for (int i = 0;
		i < 8 && atomic_load(&s->dir_pages) > page_limit && !list_empty(&v->dir_lru); i++)
		vs_vnode_drop_dir(
			v, list_entry(list_first(&v->dir_lru), struct vs_dirobj, lru)->vn);
	for (int i = 0;
		i < 8 && atomic_load(&s->vnodes) > s->config.vnode_cache && !list_empty(&v->lru);
		i++)
		vs_vnode_forget(v, list_entry(list_first(&v->lru), struct vs_vnode, lru));
}

/* --- what the file service asks ------------------------------------------------------- */

afs_err vs_node_read(struct vs_volume *v, struct vs_fid fid, struct vs_node *out)
{
	struct vs_vnode *vn, *dir;
	TRY(vs_vnode_get(v, fid, &vn));
	struct vs_status st = vn->row.st;
	dir = vn;
	if (st.type != AFS_DIR) {
		afs_err err = vs_vnode_get(v, st.parent, &dir);
		if (err == AFS_ENOVNODE || (!err && dir->row.st.type != AFS_DIR))
			return log_error(AFS_ECORRUPT,
				"vs.vnode.no_parent volume=%u vnode=%u parent=%u", v->id, fid.vnode,
				st.parent.vnode);
		if (err)
			return err;
	}
	*out = (struct vs_node){
		.st = st,
		.acl = *dir->acl,
		.volume_type = v->h.type,
		.volume_owner = v->h.owner,
		.volume_creation = v->h.creation,
		.version = atomic_load_explicit(&v->committed, memory_order_relaxed),
	};
	return AFS_OK;
}

afs_err vs_node_cached(struct vs_volume *v, struct vs_fid fid, struct vs_node *out)
{
	const struct vs_vnode *vn = vs_vnode_find(v, fid.vnode);
	if (!vn || (vn->row.st.type != AFS_DIR && !vs_vnode_find(v, vn->row.st.parent.vnode)))
		return AFS_EWAIT;
	return vs_node_read(v, fid, out);
}

afs_err vs_node_get(struct vs_volume *v, struct vs_fid fid, struct vs_node *out)
{
	TRY(vs_volume_lock(v, true));
	afs_err err = vs_node_read(v, fid, out);
	vs_volume_unlock(v);
	return err;
}

uint64_t vs_volume_version(const struct vs_volume *v) { return atomic_load(&v->committed); }

static afs_err lookup_locked(
	struct vs_volume *v, struct vs_fid dir, const char *name, struct vs_fid *out)
{
	struct vs_vnode *vn;
	struct vs_dir_entry e;
	TRY(vs_vnode_get_dir(v, dir, &vn));
	TRY(vs_dir_find(&vn->dir->d, name, &e));
	*out = (struct vs_fid){e.vnode, e.unique};
	return AFS_OK;
}

afs_err vs_lookup(struct vs_volume *v, struct vs_fid dir, const char *name, struct vs_fid *out)
{
	if (strlen(name) > AFS_NAME_MAX)
		return AFS_ENAMETOOLONG;
	TRY(vs_volume_lock(v, true));
	afs_err err = lookup_locked(v, dir, name, out);
	vs_volume_unlock(v);
	return err;
}

static afs_err next_locked(struct vs_volume *v, bool directories, uint32_t after,
	struct vs_status *st, struct vs_acl *acl)
{
	if (after == UINT32_MAX)
		return AFS_ENOENT;
	CLEANUP(db_rows)
	struct db_rows r = db_query(v->db, Q_VNODE_NEXT, DB_INT(after), DB_INT(directories), DB_INT(v->epoch));
	if (!db_next(&r))
		return r.err ? vs_err_of_db(r.err) : AFS_ENOENT;
	struct vs_row row;
	struct vs_acl have;
	afs_err err = vs_row_read(&r, &row, &have);
	if (err)
		return log_error(err,
			"vs.vnode.damaged volume=%u after=%u text=\"afscell check tells more\"",
			v->id, after);
	*st = row.st;
	*acl = have;
	return AFS_OK;
}

afs_err vs_vnode_next(struct vs_volume *v, bool directories, uint32_t after, struct vs_status *st,
	struct vs_acl *acl)
{
	TRY(vs_volume_lock(v, false));
	afs_err err = next_locked(v, directories, after, st, acl);
	vs_volume_unlock(v);
	return err;
}
