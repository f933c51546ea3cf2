/* SPDX-License-Identifier: BSD-2-Clause
 * Proving a volume right.  On line it looks at a copy of the database, made under the lock in one
 * piece (where the disk has no room for one, at the database itself, and the lock is held all the
 * while); content files are looked at as they are, and one that seems wrong is judged again under
 * the lock with the rows of that moment, since stores go on meanwhile. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
	struct vs_checking *c;
	struct vs_tree *t;
	struct vs_tree_node *dir;
};

[[gnu::format(printf, 4, 5)]] static void found(
	struct vs_checking *c, enum vs_finding_kind kind, struct vs_fid fid, const char *fmt, ...)
{
	struct vs_finding f = {.kind = kind, .fid = fid};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	c->findings++;
	if (c->found)
		c->found(c->ctx, &f);
}

static const struct vs_fid whole = {0, 0};

/* --- names ---------------------------------------------------------------------------- */

static void bad_row(void *ctx, int64_t key)
{
	found(ctx, VS_F_ROW, (struct vs_fid){(uint32_t)(key >> 31), 0},
		"vnode %u: its row makes no sense", (unsigned)(key >> 31));
}

static void dir_fault(void *ctx, const char *text)
{
	const struct walk *w = ctx;
	found(w->c, VS_F_DIR, w->dir->fid, "directory %u: %s", w->dir->fid.vnode, text);
}

static afs_err check_entry(void *ctx, const struct vs_dir_entry *e)
{
	struct walk *w = ctx;
	const struct vs_fid self = w->dir->fid, up = self.vnode == 1 ? self : w->dir->parent;
	if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0) {
		const struct vs_fid want = e->name[1] ? up : self;
		if (e->vnode != want.vnode || e->unique != want.unique)
			found(w->c, VS_F_PARENT, self,
				"directory %u: \"%s\" leads to %u.%u, not to %u.%u", self.vnode,
				e->name, e->vnode, e->unique, want.vnode, want.unique);
		return AFS_OK;
	}
	if (!vs_tree_name(w->t, w->dir, e))
		found(w->c, VS_F_ENTRY, self,
			"directory %u: \"%.100s\" leads to %u.%u, which is not there", self.vnode,
			LOG_SAFE(e->name), e->vnode, e->unique);
	return AFS_OK;
}

static afs_err check_dir(struct walk *w)
{
	CLEANUP(vs_dirobj) struct vs_dirobj *o = mem_new(struct vs_dirobj);
	if (!o)
		return AFS_ENOMEM;
	afs_err err = vs_dir_read(w->c->db, w->dir->fid.vnode, w->c->epoch, o);
	if (err == AFS_ECORRUPT || (!err && o->d.pages == 0)) {
		found(w->c, VS_F_DIR, w->dir->fid, "directory %u: pages are missing",
			w->dir->fid.vnode);
		return AFS_OK;
	}
	if (err)
		return err;
	if (w->dir->length != (uint64_t)o->d.pages * VS_DIR_PAGE)
		found(w->c, VS_F_DIR, w->dir->fid, "directory %u: length %llu, but %u pages",
			w->dir->fid.vnode, (unsigned long long)w->dir->length, o->d.pages);
	vs_dir_verify(&o->d, dir_fault, w);
	err = vs_dir_each(&o->d, check_entry, w);
	return err == AFS_ECORRUPT ? AFS_OK : err; /* verify has said it */
}

static void check_node(struct vs_checking *c, const struct vs_tree_node *n,
	const struct vs_header *h, int64_t epoch)
{
	uint32_t vnode = n->fid.vnode, want = n->type == AFS_DIR ? 2 + n->subdirs : n->names;
	if (n->fid.unique == 0 || n->fid.unique >= h->unique || n->born > epoch)
		found(c, VS_F_ROW, n->fid,
			"vnode %u: uniquifier %u or epoch %lld was never given out", vnode,
			n->fid.unique, (long long)n->born);
	if (n->links != want)
		found(c, VS_F_LINKS, n->fid, "vnode %u: %u links recorded, %u counted", vnode,
			n->links, want);
	if (vnode == 1) {
		if (n->parent.vnode || n->names)
			found(c, VS_F_PARENT, n->fid, "the root directory has a parent or a name");
		return;
	}
	if (n->names == 0 || !n->reached) {
		found(c, VS_F_LOST, n->fid, "vnode %u: no way from the root leads to it", vnode);
		return;
	}
	if (n->two_dirs || (n->type == AFS_DIR && n->names > 1))
		found(c, VS_F_PARENT, n->fid, "vnode %u: has names in several places", vnode);
	if (n->named_in.vnode != n->parent.vnode || n->named_in.unique != n->parent.unique)
		found(c, VS_F_PARENT, n->fid, "vnode %u: parent %u recorded, but named in %u",
			vnode, n->parent.vnode, n->named_in.vnode);
}

static afs_err check_names(
	struct vs_checking *c, struct vs_tree *t, const struct vs_header *h, int64_t epoch)
{
	uint64_t used = 0;
	TRY(vs_tree_load(c->db, epoch, t, bad_row, c));
	for (size_t i = 0; i < t->n; i++) {
		struct walk w = {.c = c, .t = t, .dir = &t->node[i]};
		used += vs_blocks(t->node[i].length);
		if (t->node[i].type == AFS_DIR)
			TRY(check_dir(&w));
	}
	vs_tree_reach(t);
	for (size_t i = 0; i < t->n; i++)
		check_node(c, &t->node[i], h, epoch);
	if (!vs_tree_find(t, 1))
		found(c, VS_F_LOST, whole, "there is no root directory");
	if (h->used_kib != used || h->files != t->n)
		found(c, VS_F_QUOTA, whole,
			"header counts %llu KiB in %llu files; there are %llu KiB in %zu",
			(unsigned long long)h->used_kib, (unsigned long long)h->files,
			(unsigned long long)used, t->n);
	return AFS_OK;
}

/* --- blobs ---------------------------------------------------------------------------- */

/* Both lists ascend: who is in one only? */
static afs_err check_blobs(struct vs_checking *c)
{
	CLEANUP(db_rows) struct db_rows used = db_query(c->db, Q_VNODE_BLOBS);
	CLEANUP(db_rows) struct db_rows have = db_query(c->db, Q_BLOB_ALL);
	bool u = db_next(&used), h = db_next(&have);
	while (u || h) {
		int64_t want = u ? db_int(&used, 0) : INT64_MAX,
			got = h ? db_int(&have, 0) : INT64_MAX;
		if (got < want)
			found(c, VS_F_ORPHAN, whole, "blob %lld: nothing names it", (long long)got);
		else if (want < got)
			found(c, VS_F_CONTENT, whole, "blob %lld: named, but missing",
				(long long)want);
		if (want <= got)
			u = db_next(&used);
		if (got <= want)
			h = db_next(&have);
	}
	TRY(vs_err_of_db(used.err));
	return vs_err_of_db(have.err);
}

static afs_err check_inline(struct vs_checking *c, const struct vs_tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct vs_tree_node *n = &t->node[i];
		if (n->kind != VS_INLINE)
			continue;
		CLEANUP(db_rows) struct db_rows r = db_query(c->db, Q_BLOB_GET, DB_INT(n->content));
		size_t len = 0;
		if (db_next(&r))
			(void)db_blob(&r, 0, &len);
		TRY(vs_err_of_db(r.err));
		if (len != n->length)
			found(c, VS_F_CONTENT, n->fid,
				"vnode %u: length %llu, but %zu bytes are kept", n->fid.vnode,
				(unsigned long long)n->length, len);
	}
	CLEANUP(db_rows) struct db_rows r = db_query(c->db, Q_PAGE_ALL, DB_INT(c->epoch));
	while (db_next(&r)) {
		const struct vs_tree_node *n = vs_tree_find(t, (uint32_t)db_int(&r, 0));
		if (!n || n->kind != VS_PAGES)
			found(c, VS_F_ORPHAN, whole,
				"directory pages of vnode %lld, which is no directory",
				(long long)db_int(&r, 0));
	}
	return vs_err_of_db(r.err);
}

/* --- extents -------------------------------------------------------------------------- */

/* Is the file all it should be?  AFS_ECORRUPT with the reason in `why`. */
static afs_err judge_file(
	int data_fd, uint64_t id, uint64_t len, const uint8_t *sums, size_t sums_n, char why[64])
{
	char name[24];
	snprintf(name, sizeof(name), "%016llx", (unsigned long long)id);
	CLEANUP(fd) int fd = openat(data_fd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0) {
		snprintf(why, 64, "its file cannot be opened (errno %d)", errno);
		return AFS_ECORRUPT;
	}
	if ((uint64_t)st.st_size < len) {
		snprintf(why, 64, "its file has %lld bytes of %llu", (long long)st.st_size,
			(unsigned long long)len);
		return AFS_ECORRUPT;
	}
	CLEANUP(heap) uint8_t *buf = sums_n ? mem_alloc(VS_SUM_BLOCK, 1) : NULL;
	if (sums_n && !buf)
		return AFS_ENOMEM;
	if (sums_n && sums_n != 4 * ((len + VS_SUM_BLOCK - 1) / VS_SUM_BLOCK)) {
		snprintf(why, 64, "%zu checksums for %llu bytes", sums_n / 4,
			(unsigned long long)len);
		return AFS_ECORRUPT;
	}
	for (size_t b = 0; b < sums_n / 4; b++) {
		size_t n = (size_t)MIN(len - b * VS_SUM_BLOCK, (uint64_t)VS_SUM_BLOCK);
		TRY(vs_extent_read(fd, b * VS_SUM_BLOCK, buf, n));
		uint32_t sum = (uint32_t)sums[4 * b] << 24 | (uint32_t)sums[4 * b + 1] << 16 |
			       (uint32_t)sums[4 * b + 2] << 8 | sums[4 * b + 3];
		if (vs_crc32c(0, buf, n) != sum) {
			snprintf(why, 64, "wrong checksum in block %zu", b);
			return AFS_ECORRUPT;
		}
	}
	return AFS_OK;
}

/* The rows of this moment, with the lock held. */
static afs_err judge_again_locked(struct vs_volume *v, uint64_t id, char why[64])
{
	CLEANUP(db_rows) struct db_rows r = db_query(v->db, Q_EXTENT_GET, DB_INT(id));
	if (!db_next(&r))
		return vs_err_of_db(r.err); /* gone since: nothing to say */
	size_t sums_n;
	const void *sums = db_blob(&r, 2, &sums_n);
	return judge_file(v->data_fd, id, (uint64_t)db_int(&r, 1), sums, sums_n, why);
}

static afs_err check_extent(struct vs_checking *c, uint64_t id, int64_t refs, int64_t counted,
	uint64_t len, const uint8_t *sums, size_t sums_n)
{
	char why[64];
	if (counted == 0)
		found(c, VS_F_ORPHAN, whole, "extent %016llx: no file names it",
			(unsigned long long)id);
	else if (refs != counted)
		found(c, VS_F_ORPHAN, whole,
			"extent %016llx: %lld references recorded, %lld counted",
			(unsigned long long)id, (long long)refs, (long long)counted);
	afs_err err = judge_file(c->data_fd, id, len, sums, sums_n, why);
	if (err == AFS_ECORRUPT && c->live) {
		TRY(vs_volume_lock(c->live, false));
		err = judge_again_locked(c->live, id, why);
		vs_volume_unlock(c->live);
	}
	if (err == AFS_ECORRUPT) {
		found(c, VS_F_CONTENT, whole, "extent %016llx: %s", (unsigned long long)id, why);
		return AFS_OK;
	}
	return err;
}

static void check_place(struct vs_checking *c, const struct vs_tree *t, struct db_rows *map)
{
	if (db_int(map, 2) > c->epoch || db_int(map, 3) <= c->epoch)
		return;
	const struct vs_tree_node *n = vs_tree_find(t, (uint32_t)db_int(map, 0));
	if (!n || n->kind != VS_EXTENTS || (uint64_t)db_int(map, 1) * VS_EXTENT >= n->length)
		found(c, VS_F_ORPHAN, n ? n->fid : whole,
			"vnode %lld: content kept at %lld MiB, where it has none",
			(long long)db_int(map, 0), (long long)db_int(map, 1) * 4);
}

static afs_err check_extents(struct vs_checking *c, const struct vs_tree *t)
{
	CLEANUP(db_rows) struct db_rows map = db_query(c->db, Q_MAP_ALL);
	CLEANUP(db_rows) struct db_rows have = db_query(c->db, Q_EXTENT_ALL);
	bool m = db_next(&map), h = db_next(&have);
	while (m || h) {
		int64_t id = MIN(m ? db_int(&map, 4) : INT64_MAX, h ? db_int(&have, 0) : INT64_MAX),
			counted = 0;
		for (; m && db_int(&map, 4) == id; m = db_next(&map), counted++)
			check_place(c, t, &map);
		if (!h || db_int(&have, 0) != id) {
			found(c, VS_F_CONTENT, whole, "extent %016llx: named, but missing",
				(unsigned long long)id);
			continue;
		}
		size_t sums_n;
		const void *sums = db_blob(&have, 3, &sums_n);
		TRY(check_extent(c, (uint64_t)id, db_int(&have, 1), counted,
			(uint64_t)db_int(&have, 2), sums, sums_n));
		h = db_next(&have);
	}
	TRY(vs_err_of_db(map.err));
	return vs_err_of_db(have.err);
}

static afs_err has_row(struct db *db, uint64_t id, bool *has)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, Q_EXTENT_GET, DB_INT(id));
	*has = db_next(&r);
	return vs_err_of_db(r.err);
}

static bool awaited_locked(struct vs_volume *v, uint64_t id)
{
	v = v->base;
	for (size_t i = 0; i < v->reap_n; i++)
		if (v->reap[i] == id)
			return true;
	return vs_writer_has_locked(v, id);
}

static afs_err check_file(struct vs_checking *c, const char *name)
{
	char *end;
	uint64_t id = strtoull(name, &end, 16);
	bool has = false;
	if (strlen(name) == 16 && !*end)
		TRY(has_row(c->db, id, &has));
	if (!has && c->live) {
		struct stat st;
		TRY(vs_volume_lock(c->live, false));
		afs_err err = has_row(c->live->db, id, &has);
		has |= awaited_locked(c->live, id) || fstatat(c->data_fd, name, &st, 0) != 0;
		vs_volume_unlock(c->live);
		if (err)
			return err;
	}
	if (!has)
		found(c, VS_F_ORPHAN, whole, "data/%s: nothing names this file", LOG_SAFE(name));
	return AFS_OK;
}

static afs_err check_files(struct vs_checking *c)
{
	CLEANUP(vs_listing) struct vs_listing names = {0};
	TRY(vs_listing_read(c->data_fd, &names));
	for (size_t i = 0; i < names.n; i++)
		TRY(check_file(c, names.name[i]));
	return AFS_OK;
}

/* --- all of it ------------------------------------------------------------------------ */

afs_err vs_check_group(struct vs_checking *c)
{
	struct vs_header h;
	int64_t epoch;
	bool clean;
	afs_err err = db_check(c->db);
	if (err == AFS_ECORRUPT)
		found(c, VS_F_DB, whole, "the database is damaged; the log says where");
	else if (err)
		return vs_err_of_db(err);
	err = c->clone ? vs_header_read_clone(c->db, c->clone, &h, &epoch) : vs_header_read(c->db, &h, &epoch, &clean);
	c->epoch = epoch;
	if (err == AFS_ECORRUPT || err == AFS_ENOVOL) {
		found(c, VS_F_DB, whole, "no usable header");
		return AFS_OK;
	}
	if (err)
		return err;
	CLEANUP(vs_tree) struct vs_tree t = {0};
	TRY(check_names(c, &t, &h, epoch));
	TRY(check_blobs(c));
	TRY(check_inline(c, &t));
	TRY(check_extents(c, &t));
	return check_files(c);
}

static afs_err copy_file(int from_dir, const char *from, int to_dir, const char *to)
{
	CLEANUP(fd) int in = openat(from_dir, from, O_RDONLY | O_CLOEXEC);
	CLEANUP(fd) int out = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct stat st;
	if (in < 0 || out < 0 || fstat(in, &st) != 0)
		return log_error(vs_err_of_errno(errno), "vs.check.copy errno=%d", errno);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = copy_file_range(in, NULL, out, NULL, (size_t)left, 0);
		if (n <= 0)
			return log_error(n ? vs_err_of_errno(errno) : AFS_EIO,
				"vs.check.copy errno=%d", errno);
		left -= n;
	}
	return AFS_OK;
}

static afs_err copy_locked(struct vs_volume *v, const char *aside, int *data_fd)
{
	char from[40], to[80];
	snprintf(from, sizeof(from), "%s/meta.db", v->base->folder);
	snprintf(to, sizeof(to), "%s/meta.db", aside);
	vs_volume_reap_locked(v->base, SIZE_MAX);
	TRY(vs_err_of_db(db_checkpoint(v->db, true)));
	v->base->commits_since_checkpoint = 0;
	TRY(copy_file(v->part->vol_fd, from, v->part->tmp_fd, to));
	*data_fd = fcntl(v->data_fd, F_DUPFD_CLOEXEC, 0);
	return *data_fd < 0 ? AFS_EIO : AFS_OK;
}

static afs_err check_copy(struct vs_volume *v, const char *aside, struct vs_checking *c)
{
	CLEANUP(fd) int data_fd = -1;
	CLEANUP(db) struct db *db = NULL;
	CLEANUP(str) char *path = mem_printf("%s/tmp/%s/meta.db", v->part->path, aside);
	if (!path)
		return AFS_ENOMEM;
	if (mkdirat(v->part->tmp_fd, aside, 0700) != 0)
		return log_error(
			vs_err_of_errno(errno), "vs.check.mkdir path=%s errno=%d", path, errno);
	TRY(vs_volume_lock(v, false));
	afs_err err = copy_locked(v, aside, &data_fd);
	vs_volume_unlock(v);
	if (err)
		return err;
	const struct db_options opt = {.exclusive = true, .sync = DB_SYNC_NONE, .cache_kib = 4096};
	TRY(vs_err_of_db(db_open(path, &vs_schema, &opt, &db)));
	c->db = db;
	c->data_fd = data_fd;
	return vs_check_group(c);
}

static afs_err check_in_place(struct vs_volume *v, struct vs_checking *c)
{
	TRY(vs_volume_lock(v, false));
	vs_volume_reap_locked(v->base, SIZE_MAX);
	c->live = NULL; /* nothing moves */
	c->db = v->db;
	c->data_fd = v->data_fd;
	afs_err err = vs_check_group(c);
	vs_volume_unlock(v);
	return err;
}

afs_err vs_check(struct vs_volume *v, void (*fn)(void *ctx, const struct vs_finding *f), void *ctx,
	size_t *n)
{
	char aside[48];
	snprintf(aside, sizeof(aside), "%u.%u.check", v->id,
		atomic_fetch_add(&v->part->tmp_serial, 1));
	struct vs_checking c = {.live = v, .clone = v->base == v ? 0 : v->id, .found = fn, .ctx = ctx};
	afs_err err = check_copy(v, aside, &c);
	if (err == AFS_EDISKFULL && !c.db)
		err = check_in_place(v, &c);
	(void)vs_remove_tree(v->part->tmp_fd, aside); /* what stays is removed at the next start */
	*n = c.findings;
	return err;
}
