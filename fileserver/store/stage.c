/* SPDX-License-Identifier: BSD-2-Clause
 * Restores: a whole new group is built in tmp/, proved by the same check that proves volumes, and
 * exchanged with the volume's folder by one rename.  Until then the volume is untouched; whatever
 * stops in between leaves a folder in tmp/ that the next start removes. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RUN = 4 * VS_SUM_BLOCK };

struct vs_stage {
	struct vs_volume *v;
	char aside[48];
	bool made; /* the folder is there */
	struct db *db;
	struct db_tx tx;
	int data_fd;
	uint64_t next_extent, last_unique;
	uint64_t vnodes;      /* given so far */
	uint64_t since_space; /* bytes since the partition was last looked at */
	afs_err err;          /* sticks */
	char why[VS_WHY];

	bool open; /* a vnode is being given */
	struct vs_row row;
	struct vs_acl acl;
	struct vs_dir dir; /* a directory's content so far */
	uint8_t *run;      /* up to RUN bytes not yet written */
	size_t run_n;
	int fd; /* the extent being written, -1: none yet */
	uint64_t extent;
	uint64_t extent_len;
	uint8_t sums[64 * 4];
};

[[gnu::format(printf, 2, 3)]] static afs_err bad(struct vs_stage *g, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(g->why, sizeof(g->why), fmt, ap);
	va_end(ap);
	return AFS_EBADDUMP;
}

/* --- beginning and freeing ------------------------------------------------------------ */

void vs_stage_free(struct vs_stage *g)
{
	struct vs_partition *p = g->v->part;
	db_rollback(&g->tx);
	db_close(g->db);
	fd_cleanup(&g->fd);
	fd_cleanup(&g->data_fd);
	if (g->made)
		(void)vs_remove_tree(
			p->tmp_fd, g->aside); /* what stays is removed at the next start */
	vs_dir_fini(&g->dir);
	mem_free(g->run);
	vs_volume_unref(g->v);
	mem_free(g);
}

static afs_err begin(struct vs_stage *g)
{
	struct vs_partition *p = g->v->part;
	struct vs_header h;
	TRY(vs_volume_header(g->v, &h));
	g->run = mem_alloc(RUN, 1);
	if (!g->run)
		return AFS_ENOMEM;
	snprintf(g->aside, sizeof(g->aside), "%u.%u.stage", g->v->id,
		atomic_fetch_add(&p->tmp_serial, 1));
	g->made = true;
	TRY(vs_group_make(p, p->tmp_fd, g->aside, &h, false));
	TRY(vs_group_open(p, p->tmp_fd, g->aside, &g->db, &g->data_fd));
	return vs_err_of_db(db_begin(g->db, &g->tx));
}

afs_err vs_stage_begin(struct vs_volume *v, struct vs_stage **out)
{
	if (vs_volume_is_clone(v))
		return AFS_EROFS; /* it shows what its read-write volume was */
	CLEANUP(vs_stage) struct vs_stage *g = mem_new(struct vs_stage);
	if (!g)
		return AFS_ENOMEM;
	vs_volume_ref(v);
	g->v = v;
	g->fd = g->data_fd = -1;
	g->next_extent = 1;
	TRY(begin(g));
	*out = TAKE(g);
	return AFS_OK;
}

/* --- content of the vnode being given ------------------------------------------------- */

static afs_err space_for(struct vs_stage *g, uint64_t n)
{
	g->since_space += n;
	if (g->since_space < 1048576)
		return AFS_OK;
	uint64_t kib = g->since_space / 1024;
	g->since_space = 0;
	return vs_space_check(g->v->part, kib);
}

static afs_err write_run(struct vs_stage *g)
{
	if (g->fd < 0) {
		char name[24];
		g->extent = g->next_extent++;
		g->extent_len = 0;
		snprintf(name, sizeof(name), "%016llx", (unsigned long long)g->extent);
		g->fd = openat(g->data_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (g->fd < 0)
			return log_error(vs_err_of_errno(errno), "vs.stage.extent errno=%d", errno);
	}
	TRY(vs_pwrite(g->fd, g->run, g->run_n, g->extent_len));
	for (size_t off = 0; off < g->run_n; off += VS_SUM_BLOCK) {
		uint32_t c = vs_crc32c(0, g->run + off, MIN(g->run_n - off, (size_t)VS_SUM_BLOCK));
		uint64_t b = (g->extent_len + off) / VS_SUM_BLOCK;
		for (int i = 0; i < 4; i++)
			g->sums[4 * b + (uint64_t)i] = (uint8_t)(c >> (24 - 8 * i));
	}
	g->extent_len += g->run_n;
	g->run_n = 0;
	return AFS_OK;
}

static afs_err end_extent(struct vs_stage *g)
{
	if (g->fd < 0)
		return AFS_OK;
	if (vs_power(g->v) && fdatasync(g->fd) != 0)
		return log_error(vs_err_of_errno(errno), "vs.stage.sync errno=%d", errno);
	close(g->fd);
	g->fd = -1;
	uint64_t idx = (g->row.st.length - 1) / VS_EXTENT;
	size_t sums_n = 4 * (size_t)((g->extent_len + VS_SUM_BLOCK - 1) / VS_SUM_BLOCK);
	TRY(vs_err_of_db(db_run(g->db, Q_EXTENT_ADD, DB_INT(g->extent), DB_INT(g->extent_len),
		DB_BLOB(g->sums, sums_n))));
	return vs_err_of_db(db_run(g->db, Q_MAP_ADD, DB_INT(g->row.st.fid.vnode), DB_INT(idx),
		DB_INT(1), DB_INT(g->extent)));
}

static afs_err put_file(struct vs_stage *g, const uint8_t *p, size_t n)
{
	while (n) {
		size_t some = MIN(n, RUN - g->run_n);
		memcpy(g->run + g->run_n, p, some);
		g->run_n += some;
		g->row.st.length += some;
		p += some;
		n -= some;
		if (g->run_n == RUN)
			TRY(write_run(g));
		if (g->row.st.length % VS_EXTENT == 0)
			TRY(end_extent(g));
	}
	return AFS_OK;
}

static afs_err put_dir(struct vs_stage *g, const uint8_t *p, size_t n)
{
	uint64_t have = g->row.st.length;
	if (n > (uint64_t)VS_DIR_MAX_PAGES * VS_DIR_PAGE - have)
		return bad(
			g, "directory %u is larger than a directory can be", g->row.st.fid.vnode);
	TRY(vs_dir_reserve(&g->dir, (uint32_t)((have + n + VS_DIR_PAGE - 1) / VS_DIR_PAGE)));
	memcpy(g->dir.data + have, p, n);
	g->row.st.length += n;
	return AFS_OK;
}

static afs_err put_link(struct vs_stage *g, const uint8_t *p, size_t n)
{
	if (n > VS_SYMLINK_MAX - g->row.st.length || memchr(p, '\0', n))
		return bad(g, "symlink %u: its text is too long or has a NUL in it",
			g->row.st.fid.vnode);
	memcpy(g->run + g->run_n, p, n);
	g->run_n += n;
	g->row.st.length += n;
	return AFS_OK;
}

static afs_err put(struct vs_stage *g, const uint8_t *p, size_t n)
{
	if (!g->open)
		return AFS_EINVAL;
	TRY(space_for(g, n));
	switch (g->row.st.type) {
	case AFS_FILE:
		return put_file(g, p, n);
	case AFS_DIR:
		return put_dir(g, p, n);
	case AFS_SYMLINK:
		return put_link(g, p, n);
	}
	return AFS_EINVAL;
}

/* --- finishing a vnode ---------------------------------------------------------------- */

static afs_err finish_dir(struct vs_stage *g)
{
	const struct vs_fid self = g->row.st.fid, up = self.vnode == 1 ? self : g->row.st.parent;
	if (g->row.st.length == 0 || g->row.st.length % VS_DIR_PAGE)
		return bad(g, "directory %u: %llu bytes are not whole pages", self.vnode,
			(unsigned long long)g->row.st.length);
	afs_err err = vs_dir_repair(&g->dir, self.vnode, self.unique, up.vnode, up.unique);
	if (err == AFS_ECORRUPT)
		return bad(g, "directory %u: its pages make no sense", self.vnode);
	if (err)
		return err;
	g->row.kind = VS_PAGES;
	g->row.st.length = (uint64_t)g->dir.pages * VS_DIR_PAGE;
	struct vs_dirobj o = {.d = g->dir};
	err = vs_dir_save(g->db, self.vnode, &o, 1);
	mem_free(o.at);
	return err;
}

static afs_err finish_bytes(struct vs_stage *g)
{
	if (g->row.st.type == AFS_SYMLINK && g->run_n == 0)
		return bad(g, "symlink %u has no text", g->row.st.fid.vnode);
	if (g->row.st.length > VS_INLINE_MAX) {
		g->row.kind = VS_EXTENTS;
		if (g->run_n)
			TRY(write_run(g));
		return end_extent(g);
	}
	if (g->run_n == 0)
		return AFS_OK;
	TRY(vs_err_of_db(db_run(g->db, Q_BLOB_ADD, DB_BLOB(g->run, g->run_n))));
	g->row.kind = VS_INLINE;
	g->row.content = db_last_rowid(g->db);
	g->row.content_born = 1;
	return AFS_OK;
}

static afs_err insert(struct vs_stage *g)
{
	afs_err err = vs_row_insert(g->db, &g->row, &g->acl);
	if (err == AFS_EEXIST)
		return bad(g, "vnode %u is there twice", g->row.st.fid.vnode);
	if (err)
		return err;
	g->last_unique = MAX(g->last_unique, (uint64_t)g->row.st.fid.unique);
	if (++g->vnodes % 1000)
		return AFS_OK;
	TRY(vs_err_of_db(
		db_commit(&g->tx))); /* keeps the WAL short; nobody sees this database yet */
	return vs_err_of_db(db_begin(g->db, &g->tx));
}

static afs_err finish(struct vs_stage *g)
{
	if (!g->open)
		return AFS_OK;
	g->open = false;
	TRY(g->row.st.type == AFS_DIR ? finish_dir(g) : finish_bytes(g));
	return insert(g);
}

static afs_err begin_vnode(struct vs_stage *g, const struct vs_status *st, const struct vs_acl *acl)
{
	TRY(finish(g));
	if (st->fid.vnode == 0 || st->fid.unique == 0)
		return bad(g, "vnode %u.%u: no such vnode can be", st->fid.vnode, st->fid.unique);
	if (st->type != AFS_FILE && st->type != AFS_DIR && st->type != AFS_SYMLINK)
		return bad(g, "vnode %u: type %d is none of 1, 2, 3", st->fid.vnode, (int)st->type);
	if ((st->type == AFS_DIR) != (st->fid.vnode & 1))
		return bad(g, "vnode %u: directories have odd numbers, all else even ones",
			st->fid.vnode);
	if (st->type == AFS_DIR && !acl)
		return bad(g, "directory %u has no ACL", st->fid.vnode);
	g->acl = acl ? *acl : (struct vs_acl){0};
	if (vs_acl_normalise(&g->acl) != AFS_OK)
		return bad(g, "directory %u: its ACL makes no sense", st->fid.vnode);
	g->row = (struct vs_row){.st = *st, .kind = VS_EMPTY, .born = 1};
	g->row.st.length = 0;
	g->row.st.mode &= 07777;
	if (st->fid.vnode == 1)
		g->row.st.parent = (struct vs_fid){0, 0};
	g->run_n = 0;
	vs_dir_fini(&g->dir);
	g->open = true;
	return AFS_OK;
}

afs_err vs_stage_vnode(struct vs_stage *g, const struct vs_status *st, const struct vs_acl *acl)
{
	if (!g->err)
		g->err = begin_vnode(g, st, acl);
	return g->err;
}

afs_err vs_stage_put(struct vs_stage *g, const void *p, size_t n)
{
	if (!g->err)
		g->err = put(g, p, n);
	return g->err;
}

/* --- vnodes that stay ----------------------------------------------------------------- */

static afs_err keep_extent(
	struct vs_stage *g, uint32_t vnode, uint32_t idx, const struct vs_extent *e)
{
	char from[24], to[24];
	uint64_t id = g->next_extent++;
	snprintf(from, sizeof(from), "%016llx", (unsigned long long)e->id);
	snprintf(to, sizeof(to), "%016llx", (unsigned long long)id);
	/* the same file under a second name: the group it is in now goes when this one takes its
	 * place */
	if (linkat(g->v->data_fd, from, g->data_fd, to, 0) != 0)
		return log_error(
			vs_err_of_errno(errno), "vs.stage.link extent=%s errno=%d", from, errno);
	TRY(vs_err_of_db(db_run(g->db, Q_EXTENT_ADD, DB_INT(id), DB_INT(e->len),
		e->sums_n ? DB_BLOB(e->sums, e->sums_n) : DB_NULL)));
	return vs_err_of_db(
		db_run(g->db, Q_MAP_ADD, DB_INT(vnode), DB_INT(idx), DB_INT(1), DB_INT(id)));
}

static afs_err keep_content(struct vs_stage *g, struct vs_vnode *vn, struct vs_row *row)
{
	struct vs_volume *v = g->v;
	uint32_t vnode = row->st.fid.vnode;
	if (row->kind == VS_PAGES) {
		TRY(vs_vnode_load_dir(v, vn));
		struct vs_dirobj o = {.d = vn->dir->d};
		afs_err err = vs_dir_save(g->db, vnode, &o, 1);
		mem_free(o.at);
		return err;
	}
	if (row->kind == VS_INLINE) {
		uint8_t bytes[VS_INLINE_MAX];
		size_t n;
		TRY(vs_inline_get(v, row, bytes, &n));
		TRY(vs_err_of_db(db_run(g->db, Q_BLOB_ADD, DB_BLOB(bytes, n))));
		row->content = db_last_rowid(g->db);
		row->content_born = 1;
		return AFS_OK;
	}
	uint64_t extents =
		row->kind == VS_EXTENTS ? (row->st.length + VS_EXTENT - 1) / VS_EXTENT : 0;
	for (uint64_t idx = 0; idx < extents;) {
		struct vs_extent e;
		int64_t next;
		afs_err err = db_get_int(
			v->db, Q_MAP_NEXT, &next, DB_INT(vnode), DB_INT(idx), DB_INT(v->epoch));
		if (err == AFS_ENOENT)
			break;
		if (err)
			return vs_err_of_db(err);
		TRY(vs_extent_at(v, vnode, (uint32_t)next, &e));
		TRY(keep_extent(g, vnode, (uint32_t)next, &e));
		idx = (uint64_t)next + 1;
	}
	return AFS_OK;
}

static afs_err keep_locked(struct vs_stage *g, struct vs_fid fid)
{
	struct vs_vnode *vn;
	afs_err err = vs_vnode_get(g->v, fid, &vn);
	if (err)
		return err == AFS_ENOVNODE ? AFS_OK : err;
	g->row = vn->row;
	g->row.born = 1;
	g->acl = vn->acl ? *vn->acl : (struct vs_acl){0};
	TRY(keep_content(g, vn, &g->row));
	return insert(g);
}

static afs_err keep(struct vs_stage *g, struct vs_fid fid)
{
	TRY(finish(g));
	TRY(vs_volume_lock(g->v, false));
	afs_err err = keep_locked(g, fid);
	vs_volume_unlock(g->v);
	return err;
}

afs_err vs_stage_keep(struct vs_stage *g, struct vs_fid fid)
{
	if (!g->err)
		g->err = keep(g, fid);
	return g->err;
}

/* --- the tree as a whole -------------------------------------------------------------- */

struct walk {
	struct vs_stage *g;
	struct vs_tree *t;
	struct vs_tree_node *dir;
};

static afs_err count_entry(void *ctx, const struct vs_dir_entry *e)
{
	struct walk *w = ctx;
	if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
		return AFS_OK;
	struct vs_tree_node *to = vs_tree_name(w->t, w->dir, e);
	if (!to)
		return bad(w->g, "directory %u: an entry leads to %u.%u, which is not in the dump",
			w->dir->fid.vnode, e->vnode, e->unique);
	if (to->two_dirs || (to->type == AFS_DIR && to->names > 1) || to->fid.vnode == 1)
		return bad(w->g, "vnode %u has names in several places", to->fid.vnode);
	return AFS_OK;
}

static afs_err count_names(struct vs_stage *g, struct vs_tree *t)
{
	TRY(vs_tree_load(g->db, 1, t, NULL, NULL));
	for (size_t i = 0; i < t->n; i++) {
		struct walk w = {.g = g, .t = t, .dir = &t->node[i]};
		if (w.dir->type != AFS_DIR)
			continue;
		CLEANUP(vs_dirobj) struct vs_dirobj *o = mem_new(struct vs_dirobj);
		if (!o)
			return AFS_ENOMEM;
		TRY(vs_dir_read(g->db, w.dir->fid.vnode, 1, o));
		TRY(vs_dir_each(&o->d, count_entry, &w));
	}
	struct vs_tree_node *root = vs_tree_find(t, 1);
	if (!root || root->fid.unique != 1)
		return bad(g, "there is no root directory");
	vs_tree_reach(t);
	return AFS_OK;
}

static afs_err drop_extents(struct vs_stage *g, uint32_t vnode)
{
	int64_t idx;
	afs_err err;
	while (!(err = db_get_int(
			g->db, Q_MAP_NEXT, &idx, DB_INT(vnode), DB_INT(0), DB_INT(1)))) {
		char name[24];
		int64_t id;
		TRY(vs_err_of_db(db_get_int(
			g->db, Q_MAP_GET, &id, DB_INT(vnode), DB_INT(idx), DB_INT(1))));
		snprintf(name, sizeof(name), "%016llx", (unsigned long long)id);
		TRY(vs_err_of_db(db_run(g->db, Q_MAP_DEL, DB_INT(vnode), DB_INT(idx), DB_INT(1))));
		TRY(vs_err_of_db(db_run(g->db, Q_EXTENT_DEL, DB_INT(id))));
		if (unlinkat(g->data_fd, name, 0) != 0)
			return log_error(
				AFS_EIO, "vs.stage.unlink extent=%s errno=%d", name, errno);
	}
	return err == AFS_ENOENT ? AFS_OK : vs_err_of_db(err);
}

/* Other servers leave vnodes behind that no name leads to (a directory that was renamed over).
 * Nobody can have used them. */
static afs_err drop_lost(struct vs_stage *g, struct vs_tree_node *n)
{
	log_warn("vs.stage.lost volume=%u vnode=%u unique=%u text=\"no name leads to it: not "
		 "restored\"",
		g->v->id, n->fid.vnode, n->fid.unique);
	TRY(vs_err_of_db(db_run(g->db, Q_VNODE_DEL, DB_INT(VS_KEY(n->fid.vnode, n->born)))));
	switch (n->kind) {
	case VS_EMPTY:
		return AFS_OK;
	case VS_INLINE:
		return vs_err_of_db(db_run(g->db, Q_BLOB_DEL, DB_INT(n->content)));
	case VS_PAGES:
		TRY(vs_err_of_db(db_run(g->db, Q_PAGE_BLOBS_DEL, DB_INT(n->fid.vnode))));
		return vs_err_of_db(db_run(g->db, Q_PAGES_DEL, DB_INT(n->fid.vnode)));
	case VS_EXTENTS:
		return drop_extents(g, n->fid.vnode);
	}
	return AFS_ECORRUPT;
}

static afs_err fix_dotdot(struct vs_stage *g, const struct vs_tree_node *n)
{
	CLEANUP(vs_dirobj) struct vs_dirobj *o = mem_new(struct vs_dirobj);
	if (!o)
		return AFS_ENOMEM;
	TRY(vs_dir_read(g->db, n->fid.vnode, 1, o));
	TRY(vs_dir_remove(&o->d, ".."));
	TRY(vs_dir_add(&o->d, "..", n->named_in.vnode, n->named_in.unique));
	return vs_dir_save(g->db, n->fid.vnode, o, 1);
}

static afs_err fix_node(struct vs_stage *g, const struct vs_tree_node *n)
{
	uint32_t links = n->type == AFS_DIR ? 2 + n->subdirs : n->names;
	bool root = n->fid.vnode == 1;
	bool moved = !root && (n->parent.vnode != n->named_in.vnode ||
				      n->parent.unique != n->named_in.unique);
	if (moved && n->type == AFS_DIR)
		TRY(fix_dotdot(g, n));
	if (!moved && links == n->links)
		return AFS_OK;
	const struct vs_fid parent = root ? (struct vs_fid){0, 0} : n->named_in;
	return vs_err_of_db(db_run(g->db, Q_VNODE_FIX, DB_INT(VS_KEY(n->fid.vnode, n->born)),
		DB_INT(links), DB_INT(parent.vnode), DB_INT(parent.unique)));
}

static afs_err set_right(struct vs_stage *g, struct vs_header *h)
{
	CLEANUP(vs_tree) struct vs_tree t = {0};
	TRY(count_names(g, &t));
	h->used_kib = h->files = 0;
	/* the lost ones first: a lost directory's entries count no longer */
	bool any = false;
	for (size_t i = 0; i < t.n; i++) {
		if (t.node[i].reached)
			continue;
		TRY(drop_lost(g, &t.node[i]));
		any = true;
	}
	if (any) {
		vs_tree_cleanup(&t);
		TRY(count_names(g, &t));
	}
	for (size_t i = 0; i < t.n; i++) {
		TRY(fix_node(g, &t.node[i]));
		h->used_kib += vs_blocks(t.node[i].length);
		h->files++;
	}
	return AFS_OK;
}

static void first_finding(void *ctx, const struct vs_finding *f)
{
	struct vs_stage *g = ctx;
	if (!g->why[0])
		snprintf(g->why, sizeof(g->why), "%.*s", VS_WHY - 1, f->text);
}

static afs_err prove(struct vs_stage *g)
{
	struct vs_checking c = {
		.db = g->db, .data_fd = g->data_fd, .found = first_finding, .ctx = g};
	TRY(vs_check_group(&c));
	return c.findings ? AFS_EBADDUMP : AFS_OK;
}

/* --- the swap ------------------------------------------------------------------------- */

/* Clones live in the group that is replaced: it stays, under a name that says that it has no read-write
 * volume.  Until the exchange, that name is the new group's, which has no clones: a start removes it. */
static afs_err swap_beside_clones(struct vs_stage *g, const char *name)
{
	struct vs_volume *v = g->v, *h;
	struct vs_partition *p = v->part;
	TRY(vs_headless_new(v, &h));
	afs_err err = AFS_OK;
	if (renameat2(p->tmp_fd, g->aside, p->vol_fd, h->folder, RENAME_NOREPLACE) != 0)
		err = log_error(vs_err_of_errno(errno), "vs.stage.swap path=%s/vol/%s errno=%d", p->path,
			h->folder, errno);
	else if (renameat2(p->vol_fd, h->folder, p->vol_fd, name, RENAME_EXCHANGE) != 0)
		err = log_error(vs_err_of_errno(errno), "vs.stage.swap path=%s/vol/%s errno=%d", p->path,
			name, errno);
	if (!err)
		vs_headless_adopt_locked(v, h);
	vs_volume_unref(h);
	if (!err && vs_power(v) && fsync(p->vol_fd) != 0)
		(void)log_error(AFS_EIO, "vs.stage.sync path=%s errno=%d", p->path, errno); /* done all the same */
	return err;
}

static afs_err swap_locked(struct vs_stage *g)
{
	struct vs_volume *v = g->v;
	struct vs_partition *p = v->part;
	char name[16];
	snprintf(name, sizeof(name), "%u", v->id);
	vs_volume_shut_locked(v);
	if (!list_empty(&v->clones))
		return swap_beside_clones(g, name);
	if (renameat2(p->tmp_fd, g->aside, p->vol_fd, name, RENAME_EXCHANGE) != 0)
		return log_error(errno == EINVAL ? AFS_ENOTSUP : vs_err_of_errno(errno),
			"vs.stage.swap path=%s/vol/%s errno=%d text=\"the file system must be able "
			"to exchange names "
			"(ext4, xfs, btrfs and tmpfs are)\"",
			p->path, name, errno);
	if (vs_power(v) && (fsync(p->vol_fd) != 0 || fsync(p->tmp_fd) != 0))
		(void)log_error(AFS_EIO, "vs.stage.sync path=%s errno=%d", p->path,
			errno); /* done all the same */
	return AFS_OK;
}

static afs_err commit(struct vs_stage *g, const struct vs_header *h, uint32_t mask, wall_ns now)
{
	struct vs_volume *v = g->v;
	struct vs_header want;
	TRY(finish(g));
	TRY(vs_volume_header(v, &want));
	vs_header_apply(&want, h, mask);
	want.unique = MAX(want.unique, g->last_unique + 1);
	want.needs_salvage = false;
	want.update_counter++;
	if (!(mask & VS_H_UPDATE))
		want.update = now;
	TRY(set_right(g, &want));
	int64_t owner;
	TRY(vs_err_of_db(db_get_int(g->db, Q_ROOT_OWNER, &owner)));
	want.owner = (int32_t)owner;
	TRY(vs_header_write(g->db, &want, 0));
	TRY(vs_err_of_db(db_commit(&g->tx)));
	TRY(prove(g));
	TRY(vs_err_of_db(db_checkpoint(g->db, true)));
	db_close(TAKE(g->db));
	if (vs_power(v)) {
		char path[80];
		snprintf(path, sizeof(path), "%s/meta.db", g->aside);
		CLEANUP(fd) int fd = openat(v->part->tmp_fd, path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fsync(fd) != 0 || fsync(g->data_fd) != 0)
			return log_error(AFS_EIO, "vs.stage.sync path=%s errno=%d", path, errno);
		TRY(vs_sync_dir(v->part->tmp_fd, g->aside));
	}
	TRY(vs_volume_lock(v, false));
	afs_err err = swap_locked(g);
	vs_volume_unlock(v);
	return err;
}

afs_err vs_stage_commit(
	struct vs_stage *g, const struct vs_header *h, uint32_t mask, wall_ns now, char *why)
{
	if (!g->err)
		g->err = commit(g, h, mask, now);
	snprintf(why, VS_WHY, "%s", g->why[0] ? g->why : afs_err_text(g->err));
	if (g->err)
		return g->err;
	g->err = AFS_EINVAL; /* once */
	log_info("vs.volume.restored volume=%u", g->v->id);
	return AFS_OK;
}
