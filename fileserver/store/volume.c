/* SPDX-License-Identifier: BSD-2-Clause
 * A volume's life: made aside and renamed into place, opened when used, closed when idle, renamed
 * away and removed.  The folder vol/<id> is there whole or not at all. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

afs_err vs_err_of_errno(int eno)
{
	switch (eno) {
	case ENOSPC:
	case EDQUOT:
		return AFS_EDISKFULL;
	case ENOMEM:
		return AFS_ENOMEM;
	default:
		return AFS_EIO;
	}
}

/* --- groups on disk ------------------------------------------------------------------- */

static const char *subfolder(const struct vs_partition *p, int parent_fd)
{
	return parent_fd == p->tmp_fd ? "tmp" : "vol";
}

static struct db_options options(bool create)
{
	return (struct db_options){
		.create = create,
		.exclusive = true,
		/* Checkpoints sync, commits do not: a power loss takes the last commits but damages
		 * nothing.  In power mode vs_volume_settle syncs the WAL, for several commits at once. */
		.sync = DB_SYNC_PROCESS,
		.cache_kib = 4096,
		.wal_pages = 2000, /* no more than the space that a full partition keeps back */
	};
}

static afs_err open_db(
	struct vs_partition *p, int parent_fd, const char *name, bool create, struct db **out)
{
	CLEANUP(str)
	char *path = mem_printf("%s/%s/%s/meta.db", p->path, subfolder(p, parent_fd), name);
	if (!path)
		return AFS_ENOMEM;
	struct db_options opt = options(create);
	return vs_err_of_db(db_open(path, &vs_schema, &opt, out));
}

afs_err vs_group_open(
	struct vs_partition *p, int parent_fd, const char *name, struct db **db, int *data_fd)
{
	char data[64];
	snprintf(data, sizeof(data), "%s/data", name);
	CLEANUP(fd) int fd = openat(parent_fd, data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return log_error(errno == ENOENT ? AFS_ECORRUPT : AFS_EIO,
			"vs.group.no_data path=%s/%s/%s errno=%d", p->path, subfolder(p, parent_fd),
			data, errno);
	afs_err err = open_db(p, parent_fd, name, false, db);
	if (err == AFS_ENOENT)
		return log_error(AFS_ECORRUPT, "vs.group.no_database path=%s/%s/%s/meta.db",
			p->path, subfolder(p, parent_fd), name);
	if (err)
		return err;
	*data_fd = fd;
	fd = -1;
	return AFS_OK;
}

static afs_err make_root(struct db *db, const struct vs_header *h)
{
	CLEANUP(vs_dir) struct vs_dir made = {0};
	TRY(vs_dir_make(&made, 1, 1, 1, 1));
	struct vs_dirobj o = {.d = made};
	struct vs_row root = {
		.st =
			{
				.fid = {1, 1},
				.type = AFS_DIR,
				.mode = 0777,
				.links = 2,
				.length = VS_DIR_PAGE,
				.client_mtime = h->creation,
				.server_mtime = h->creation,
			},
		.kind = VS_PAGES,
		.born = 1,
	};
	const struct vs_acl acl = {.positive = 1, .e = {{AFS_ADMINISTRATORS, ACL_ALL}}};
	TRY(vs_row_insert(db, &root, &acl));
	afs_err err = vs_dir_save(db, 1, &o, 1);
	mem_free(o.at);
	return err;
}

static afs_err fill(struct db *db, const struct vs_header *h, bool with_root)
{
	CLEANUP(db_tx) struct db_tx tx = {0};
	TRY(vs_err_of_db(db_begin(db, &tx)));
	TRY(vs_err_of_db(db_run(db, Q_GROUP_SET, DB_INT(h->id), DB_INT(1), DB_INT(1))));
	TRY(vs_header_write(db, h, 0));
	if (with_root)
		TRY(make_root(db, h));
	return vs_err_of_db(db_commit(&tx));
}

afs_err vs_group_make(struct vs_partition *p, int parent_fd, const char *name,
	const struct vs_header *h, bool with_root)
{
	char data[64];
	snprintf(data, sizeof(data), "%s/data", name);
	if (mkdirat(parent_fd, name, 0700) != 0 || mkdirat(parent_fd, data, 0700) != 0)
		return log_error(vs_err_of_errno(errno), "vs.group.mkdir path=%s/%s/%s errno=%d",
			p->path, subfolder(p, parent_fd), name, errno);
	CLEANUP(db) struct db *db = NULL;
	TRY(open_db(p, parent_fd, name, true, &db));
	return fill(db, h, with_root);
}

afs_err vs_sync_dir(int parent_fd, const char *name)
{
	CLEANUP(fd) int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		return log_error(AFS_EIO, "vs.sync.failed name=%s errno=%d", name, errno);
	return AFS_OK;
}

/* --- opening and closing -------------------------------------------------------------- */

static afs_err set_clean(struct vs_volume *v, bool clean)
{
	TRY(vs_err_of_db(
		db_run(v->db, Q_GROUP_SET, DB_INT(v->id), DB_INT(v->epoch), DB_INT(clean))));
	v->clean = clean;
	return AFS_OK;
}

afs_err vs_volume_mark_dirty_locked(struct vs_volume *v)
{
	return v->clean ? set_clean(v, false) : AFS_OK;
}

/* The descriptor by which settle syncs the WAL.  The WAL's name must last too. */
static afs_err open_wal(struct vs_volume *v)
{
	if (!vs_power(v))
		return AFS_OK;
	char wal[48];
	snprintf(wal, sizeof(wal), "%s/meta.db-wal", v->folder);
	int fd = openat(v->part->vol_fd, wal, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return log_error(AFS_EIO, "vs.volume.wal path=%s/vol/%s errno=%d", v->part->path,
			wal, errno);
	mtx_lock(&v->sync_lock);
	v->wal_fd = fd;
	v->sync_err = AFS_OK;
	mtx_unlock(&v->sync_lock);
	return vs_sync_dir(v->part->vol_fd, v->folder);
}

/* vs_volume_convert renamed the folder: that is when it was done.  The rest follows. */
static afs_err converted(struct vs_volume *v, struct vs_header *h)
{
	CLEANUP(db_tx) struct db_tx tx = {0};
	const wall_ns now = clk_wall();
	size_t n = strlen(h->name);
	if (n > 9 && strcmp(h->name + n - 9, ".readonly") == 0)
		h->name[n - 9] = '\0';
	TRY(vs_err_of_db(db_begin(v->db, &tx)));
	TRY(vs_err_of_db(db_run(v->db, Q_VOLUME_DEL, DB_INT(h->id))));
	h->id = v->id;
	h->type = AFS_VOL_RW;
	h->clone = h->backup = 0;
	h->backup_date = 0;
	h->creation = h->copy = now;
	h->unique += 5000; /* the old read-write volume may have given out some since */
	TRY(vs_header_write(v->db, h, 0));
	return vs_err_of_db(db_commit(&tx));
}

static afs_err open_group(struct vs_volume *v)
{
	TRY(vs_group_open(v->part, v->part->vol_fd, v->folder, &v->db, &v->data_fd));
	struct vs_header h = {0};
	if (v->headless)
		TRY(vs_err_of_db(db_run(v->db, Q_LIVING_DEL)));
	afs_err err = v->headless ? vs_epoch_read(v->db, &v->epoch, &v->clean)
				  : vs_header_read(v->db, &h, &v->epoch, &v->clean);
	if (!err && !v->headless && h.id != v->id)
		err = h.type == AFS_VOL_RO && h.parent == v->id ? converted(v, &h) : AFS_ECORRUPT;
	if (err)
		return log_error(err, "vs.volume.header path=%s/vol/%s text=\"no usable header\"",
			v->part->path, v->folder);
	int64_t last;
	TRY(vs_err_of_db(db_get_int(v->db, Q_EXTENT_MAX, &last)));
	v->next_extent = (uint64_t)last + 1;
	/* rows that clones left behind: what a crash kept from being removed */
	v->reclaim = (struct vs_reclaim){.wanted = v->epoch > 1 || v->headless};
	v->h = h;
	v->unswept = !v->clean;
	if (v->unswept)
		TRY(vs_volume_sweep_locked(v));
	return open_wal(v);
}

static void close_wal(struct vs_volume *v)
{
	mtx_lock(&v->sync_lock);
	while (v->syncing)
		cond_wait(&v->sync_cond, &v->sync_lock);
	if (v->wal_fd >= 0) {
		if (fdatasync(v->wal_fd) == 0)
			v->synced = atomic_load(&v->committed);
		close(v->wal_fd);
		v->wal_fd = -1;
	}
	mtx_unlock(&v->sync_lock);
}

static void close_group(struct vs_volume *v)
{
	close_wal(v);
	db_close(v->db);
	v->db = NULL;
	if (v->data_fd >= 0)
		close(v->data_fd);
	v->data_fd = -1;
}

afs_err vs_volume_open_locked(struct vs_volume *v)
{
	if (v->db)
		return AFS_OK;
	v->serial = atomic_fetch_add(&v->s->serial, 1) + 1;
	afs_err err = open_group(v);
	if (err) {
		close_group(v);
		if (err == AFS_ECORRUPT || err == AFS_EVERSION)
			v->broken = err; /* it will not get better by itself */
		return err;
	}
	v->loaded = true;
	v->numbers.hint[0] = v->numbers.hint[1] = 0;
	atomic_fetch_add(&v->s->open_groups, 1);
	return AFS_OK;
}

void vs_volume_save_use_locked(struct vs_volume *v)
{
	if (!v->use_unsaved || !v->db || v->headless)
		return;
	v->use_unsaved = 0;
	if (vs_header_write(v->db, &v->h, vs_row_epoch(v)) == AFS_OK)
		(void)vs_volume_committed_locked(v); /* else: counts of use are lost, and the database has logged why */
}

void vs_volume_shut_locked(struct vs_volume *v)
{
	if (!v->db)
		return;
	vs_volume_save_use_locked(v);
	vs_volume_reap_locked(v, SIZE_MAX);
	if (!v->clean && !v->unswept && list_empty(&v->writers))
		(void)set_clean(v, true); /* else the next opening sweeps */
	vs_vnode_forget_all(v);
	vs_fd_drop_volume(&v->s->fds, v->serial);
	v->serial = 0; /* who still writes into what is closed here knows it by that */
	close_group(v);
	mem_free(v->numbers.bits);
	v->numbers = (struct vs_numbers){0};
	v->commits_since_checkpoint = 0;
	atomic_fetch_sub(&v->s->open_groups, 1);
}

static afs_err judge(struct vs_volume *v, bool served)
{
	if (v->deleted)
		return AFS_ENOVOL;
	struct vs_volume *base = v->base;
	if (!base->broken && !base->db) {
		afs_err err = vs_volume_open_locked(base);
		if (err && !base->broken)
			return err;
	}
	if (base->broken)
		return AFS_EVSALVAGE;
	if (base != v)
		TRY(vs_clone_view_locked(v));
	if (!served)
		return AFS_OK;
	if (v->h.destroy_me)
		return AFS_ENOVOL;
	if (v->claim == VS_CLAIM_BUSY)
		return AFS_EVBUSY;
	if (v->claim == VS_CLAIM_OFF || !v->h.in_service || !v->h.blessed)
		return AFS_EVOFFLINE;
	return v->h.needs_salvage ? AFS_EVSALVAGE : AFS_OK;
}

/* A clone's base may be exchanged while we wait for its lock; the old one stays until the clone goes. */
struct vs_volume *vs_base_lock(struct vs_volume *v) NO_TSA
{
	for (;;) {
		struct vs_volume *base = v->base;
		mtx_lock(&base->lock);
		if (v->base == base)
			return base;
		mtx_unlock(&base->lock);
	}
}

afs_err vs_volume_lock(struct vs_volume *v, bool served) NO_TSA
{
	struct vs_volume *base = vs_base_lock(v);
	afs_err err = judge(v, served);
	if (err)
		mtx_unlock(&base->lock);
	else
		v->used = base->used = true;
	return err;
}

afs_err vs_volume_lock_write(struct vs_volume *v) NO_TSA
{
	TRY(vs_volume_lock(v, true));
	if (v->h.type == AFS_VOL_RW && v->base == v)
		return AFS_OK;
	vs_volume_unlock(v);
	return AFS_EROFS;
}

void vs_volume_unlock(struct vs_volume *v) NO_TSA
{
	struct vs_volume *base = v->base;
	vs_vnode_trim(v);
	vs_volume_reap_locked(base, 2);
	mtx_unlock(&base->lock);
}

/* --- group commit --------------------------------------------------------------------- */

/* One thread syncs the WAL for all commits made so far; the others wait for it. */
static afs_err settle_locked(struct vs_volume *v, uint64_t seq) REQUIRES(v->sync_lock)
{
	while (v->synced < seq && !v->sync_err) {
		if (v->syncing) {
			cond_wait(&v->sync_cond, &v->sync_lock);
			continue;
		}
		v->syncing = true;
		uint64_t upto = atomic_load(&v->committed);
		mtx_unlock(&v->sync_lock);
		int eno = fdatasync(v->wal_fd) == 0 ? 0 : errno;
		mtx_lock(&v->sync_lock);
		v->syncing = false;
		if (eno)
			/* what the kernel could not write it may have forgotten: nothing later can
			 * be promised */
			v->sync_err =
				log_error(AFS_EIO, "vs.sync.failed volume=%u errno=%d", v->id, eno);
		else
			v->synced = MAX(v->synced, upto);
		cond_broadcast(&v->sync_cond);
	}
	return v->synced >= seq ? AFS_OK : v->sync_err;
}

afs_err vs_volume_settle(struct vs_volume *v, uint64_t seq)
{
	v = v->base;
	if (!vs_power(v) || !seq)
		return AFS_OK;
	mtx_lock(&v->sync_lock);
	afs_err err = settle_locked(v, seq);
	mtx_unlock(&v->sync_lock);
	return err;
}

/* --- extents without rows ------------------------------------------------------------- */

static void remove_extent(struct vs_volume *v, uint64_t id)
{
	char name[24];
	snprintf(name, sizeof(name), "%016llx", (unsigned long long)id);
	vs_fd_drop(&v->s->fds, v->serial, id);
	if (unlinkat(v->data_fd, name, 0) != 0 && errno != ENOENT) {
		log_warn("vs.extent.unlink volume=%u extent=%s errno=%d", v->id, name, errno);
		v->unswept = true;
	}
}

void vs_volume_reap_later(struct vs_volume *v, uint64_t extent)
{
	if (v->reap_n == v->reap_cap) {
		size_t cap = v->reap_cap ? v->reap_cap * 2 : 64;
		uint64_t *reap = mem_resize(v->reap, v->reap_cap, cap, sizeof(*reap));
		if (!reap) { /* then now: it only takes longer */
			remove_extent(v, extent);
			return;
		}
		v->reap = reap;
		v->reap_cap = cap;
	}
	v->reap[v->reap_n++] = extent;
}

void vs_volume_reap_locked(struct vs_volume *v, size_t most)
{
	for (; v->reap_n && most && v->db; most--)
		remove_extent(v, v->reap[--v->reap_n]);
}

static afs_err sweep_one(struct vs_volume *v, const char *name)
{
	char *end;
	uint64_t id = strtoull(name, &end, 16);
	if (end == name || *end)
		return AFS_OK; /* not ours; check reports it */
	CLEANUP(db_rows) struct db_rows r = db_query(v->db, Q_EXTENT_GET, DB_INT(id));
	if (db_next(&r))
		return AFS_OK;
	if (r.err)
		return vs_err_of_db(r.err);
	return unlinkat(v->data_fd, name, 0) == 0 || errno == ENOENT ? AFS_OK : AFS_EIO;
}

afs_err vs_volume_sweep_locked(struct vs_volume *v)
{
	CLEANUP(vs_listing) struct vs_listing names = {0};
	TRY(vs_listing_read(v->data_fd, &names));
	for (size_t i = 0; i < names.n; i++)
		TRY(sweep_one(v, names.name[i]));
	v->unswept = false;
	return AFS_OK;
}

/* --- checkpoints ----------------------------------------------------------------------- */

void vs_volume_checkpoint_locked(struct vs_volume *v)
{
	if (v->db && v->commits_since_checkpoint && db_checkpoint(v->db, false) == AFS_OK)
		v->commits_since_checkpoint = 0;
}

/* --- making and deleting -------------------------------------------------------------- */

struct vs_volume *vs_volume_alloc(struct vs_partition *p, afs_volid id)
{
	struct vs_volume *v = mem_new(struct vs_volume);
	if (!v)
		return NULL;
	v->s = p->s;
	v->part = p;
	v->id = id;
	v->data_fd = v->wal_fd = -1;
	v->base = v;
	snprintf(v->folder, sizeof(v->folder), "%u", id);
	list_init(&v->clones);
	list_init(&v->clone_link);
	atomic_store(&v->refs, 1);
	mtx_init(&v->lock, RANK_VS_VOLUME);
	mtx_init(&v->sync_lock, RANK_LEAF);
	cond_init(&v->sync_cond);
	map_init(&v->vnodes);
	list_init(&v->lru);
	list_init(&v->dir_lru);
	list_init(&v->writers);
	return v;
}

static void volume_free(struct vs_volume *v) NO_TSA
{
	if (v->base != v) {
		struct vs_volume *base = vs_base_lock(v);
		list_remove(&v->clone_link);
		vs_vnode_forget_all(v);
		mtx_unlock(&base->lock);
		v->db = NULL;
		v->data_fd = -1;
		vs_volume_unref(base);
	} else {
		vs_volume_shut_locked(v);
	}
	if (v->before)
		vs_volume_unref(v->before);
	map_fini(&v->vnodes);
	mem_free(v->reap);
	cond_fini(&v->sync_cond);
	mtx_fini(&v->sync_lock);
	mtx_fini(&v->lock);
	mem_free(v);
}

void vs_volume_ref(struct vs_volume *v) { atomic_fetch_add(&v->refs, 1); }
void vs_volume_unref(struct vs_volume *v)
{
	if (atomic_fetch_sub(&v->refs, 1) == 1)
		volume_free(v);
}

static struct vs_volume *find_locked(struct vs_store *s, const struct vs_partition *p, afs_volid id)
	REQUIRES(s->lock)
{
	for (struct map_node *n = map_first(&s->volumes, map_hash_u64(&s->volumes, id)); n;
		n = map_next(n)) {
		struct vs_volume *v = container_of(n, struct vs_volume, node);
		if (v->id == id && (!p || v->part == p))
			return v;
	}
	return NULL;
}

static struct vs_volume *find(struct vs_store *s, const struct vs_partition *p, afs_volid id)
{
	mtx_lock(&s->lock);
	struct vs_volume *v = find_locked(s, p, id);
	if (v)
		vs_volume_ref(v);
	mtx_unlock(&s->lock);
	return v;
}

struct vs_volume *vs_volume_lookup(struct vs_partition *p, afs_volid id) { return find(p->s, p, id); }

static afs_err table_add_locked(struct vs_volume *v) REQUIRES(v->s->lock)
{
	if (find_locked(v->s, v->part, v->id))
		return AFS_EVOLEXISTS;
	return map_insert(&v->s->volumes, &v->node, map_hash_u64(&v->s->volumes, v->id)) ? AFS_OK : AFS_ENOMEM;
}

afs_err vs_volume_table_add(struct vs_volume *v)
{
	mtx_lock(&v->s->lock);
	afs_err err = table_add_locked(v);
	mtx_unlock(&v->s->lock);
	return err;
}

afs_err vs_volume_add(
	struct vs_partition *p, afs_volid id, bool locked, struct vs_volume **out) NO_TSA
{
	struct vs_store *s = p->s;
	struct vs_volume *v = vs_volume_alloc(p, id);
	if (!v)
		return AFS_ENOMEM;
	mtx_lock(&s->lock);
	afs_err err = table_add_locked(v);
	if (!err && locked)
		mtx_lock(&v->lock); /* whoever finds it waits until it is made */
	mtx_unlock(&s->lock);
	if (err)
		volume_free(v);
	else
		*out = v;
	return err;
}

/* Out of the table, with the table's reference. */
void vs_volume_table_remove(struct vs_volume *v)
{
	mtx_lock(&v->s->lock);
	map_remove(&v->s->volumes, &v->node);
	mtx_unlock(&v->s->lock);
	vs_volume_unref(v);
}

static struct vs_header born_header(const struct vs_header *h, bool with_root, wall_ns now)
{
	struct vs_header n = {
		.id = h->id,
		.type = h->type,
		.parent = h->parent ? h->parent : h->id,
		.clone = h->clone,
		.backup = h->backup,
		.blessed = true,
		.destroy_me = true,
		.unique = 2, /* 1 is the root's */
		.quota_kib = h->quota_kib,
		.min_quota_kib = h->min_quota_kib,
		.used_kib = with_root ? VS_DIR_PAGE / 1024 : 0,
		.files = with_root,
		.creation = h->creation ? h->creation : now,
		.update = h->update ? h->update : now,
		.copy = h->copy ? h->copy : now,
		.backup_date = h->backup_date,
		.day_use_date = now,
	};
	memcpy(n.name, h->name, sizeof(n.name));
	return n;
}

static afs_err make_aside(struct vs_volume *v, const struct vs_header *h, bool with_root)
{
	struct vs_partition *p = v->part;
	char aside[32];
	snprintf(aside, sizeof(aside), "%u.%u.new", v->id, atomic_fetch_add(&p->tmp_serial, 1));
	TRY(vs_space_check(p, 64));
	afs_err err = vs_group_make(p, p->tmp_fd, aside, h, with_root);
	if (!err && vs_power(v))
		err = vs_sync_dir(p->tmp_fd, aside);
	if (!err &&
		renameat2(p->tmp_fd, aside, p->vol_fd, v->folder, RENAME_NOREPLACE) != 0)
		err = errno == EEXIST ? AFS_EVOLEXISTS
				      : log_error(vs_err_of_errno(errno),
						"vs.volume.rename path=%s/vol/%s errno=%d", p->path,
						v->folder, errno);
	if (!err && vs_power(v) && fsync(p->vol_fd) != 0)
		err = AFS_EIO;
	if (err)
		(void)vs_remove_tree(
			p->tmp_fd, aside); /* what stays is removed at the next start */
	return err;
}

afs_err vs_volume_create(struct vs_partition *p, const struct vs_header *h, bool with_root,
	wall_ns now, struct vs_volume **out) NO_TSA
{
	if (h->name[0] == '\0' || !memchr(h->name, '\0', sizeof(h->name)))
		return AFS_EBADNAME;
	if (h->id == 0 || h->type > AFS_VOL_BK)
		return AFS_EINVAL;
	struct vs_volume *v;
	TRY(vs_volume_add(p, h->id, true, &v));
	const struct vs_header born = born_header(h, with_root, now);
	vs_volume_ref(v);
	afs_err err = make_aside(v, &born, with_root);
	if (!err)
		err = vs_volume_open_locked(v);
	if (err)
		v->deleted = true;
	mtx_unlock(&v->lock);
	if (err) {
		vs_volume_table_remove(v);
		vs_volume_unref(v);
		return err;
	}
	log_info(
		"vs.volume.created volume=%u name=%s part=%s", v->id, LOG_SAFE(born.name), p->name);
	*out = v;
	return AFS_OK;
}

afs_err vs_volume_delete(struct vs_volume *v) NO_TSA
{
	struct vs_partition *p = v->part;
	char aside[32];
	const char *name = v->folder;
	if (vs_volume_is_clone(v))
		return vs_clone_delete(v);
	snprintf(aside, sizeof(aside), "%u.%u.gone", v->id, atomic_fetch_add(&p->tmp_serial, 1));
	mtx_lock(&v->lock);
	afs_err err = v->deleted ? AFS_ENOVOL : AFS_OK;
	if (!err && !list_empty(&v->clones)) { /* they go on without it */
		struct vs_volume *h = NULL;
		vs_volume_shut_locked(v);
		err = vs_headless_new(v, &h);
		if (!err && renameat2(p->vol_fd, name, p->vol_fd, h->folder, RENAME_NOREPLACE) != 0)
			err = log_error(vs_err_of_errno(errno),
				"vs.volume.rename path=%s/vol/%s errno=%d", p->path, name, errno);
		if (!err) {
			v->deleted = true;
			vs_headless_adopt_locked(v, h);
		}
		if (h)
			vs_volume_unref(h);
		aside[0] = '\0';
	} else if (!err) {
		vs_volume_shut_locked(v);
		if (renameat(p->vol_fd, name, p->tmp_fd, aside) != 0)
			err = log_error(vs_err_of_errno(errno),
				"vs.volume.rename path=%s/vol/%s errno=%d", p->path, name, errno);
		else
			v->deleted = true;
	}
	if (!err && vs_power(v) && fsync(p->vol_fd) != 0)
		err = AFS_EIO;
	mtx_unlock(&v->lock);
	if (!v->deleted || err == AFS_ENOVOL)
		return err;
	vs_volume_table_remove(v);
	afs_err left = aside[0] ? vs_remove_tree(p->tmp_fd, aside) : AFS_OK;
	if (left)
		log_warn("vs.volume.left path=%s/tmp/%s err=%s text=\"removed at the next start\"",
			p->path, aside, afs_err_name(left));
	log_info("vs.volume.deleted volume=%u part=%s", v->id, p->name);
	return err;
}

/* --- finding -------------------------------------------------------------------------- */

afs_err vs_volume_find(
	struct vs_store *s, const struct vs_partition *p, afs_volid id, struct vs_volume **out)
{
	struct vs_volume *v = find(s, p, id);
	if (!v)
		return AFS_ENOVOL;
	afs_err err = vs_volume_lock(v, false);
	if (err) {
		vs_clone_vanish(v);
		vs_volume_unref(v);
		return err;
	}
	vs_volume_unlock(v);
	*out = v;
	return AFS_OK;
}

static afs_err enter(struct vs_volume *v, struct vs_volume **out)
{
	afs_err err = vs_volume_lock(v, true);
	if (err) {
		vs_clone_vanish(v);
		vs_volume_unref(v);
		return err;
	}
	vs_volume_unlock(v);
	*out = v;
	return AFS_OK;
}

/* The id is on several partitions while a volume moves from one to another: the first that may be
 * entered; else why the first may not. */
static afs_err enter_some(struct vs_store *s, afs_volid id, struct vs_volume **out)
{
	afs_err first = AFS_ENOVOL;
	for (struct vs_partition *p = NULL; (p = vs_partition_next(s, p));) {
		struct vs_volume *v = find(s, p, id);
		afs_err err = v ? enter(v, out) : AFS_ENOVOL;
		if (!err)
			return AFS_OK;
		if (first == AFS_ENOVOL)
			first = err;
	}
	return first;
}

afs_err vs_volume_enter(struct vs_store *s, afs_volid id, struct vs_volume **out)
{
	struct vs_volume *v = find(s, NULL, id);
	if (!v)
		return AFS_ENOVOL;
	afs_err err = enter(v, out);
	return err == AFS_ENOVOL || err == AFS_EVOFFLINE ? enter_some(s, id, out) : err;
}

/* The lock of v's group when nobody has it, the group is open and v may be entered: *base is held.  Else
 * AFS_EWAIT, or what a wait would not change. */
static afs_err peek_lock(struct vs_volume *v, struct vs_volume **base) NO_TSA
{
	struct vs_volume *b = v->base;
	afs_err err = AFS_EWAIT;
	if (!mtx_trylock(&b->lock))
		return err;
	if (v->base == b && b->db && !b->broken && !v->deleted && v->loaded && v->serial == b->serial)
		err = judge(v, true);
	if (err)
		mtx_unlock(&b->lock);
	*base = b;
	/* another partition may have it in service: who may wait looks there */
	return err == AFS_ENOVOL || err == AFS_EVOFFLINE ? AFS_EWAIT : err;
}

afs_err vs_node_peek(struct vs_store *s, afs_volid id, struct vs_fid fid, wall_ns now,
	struct vs_volume **vol, struct vs_node *out) NO_TSA
{
	struct vs_volume *v = *vol ? *vol : find(s, NULL, id), *base;
	if (!v)
		return AFS_ENOVOL;
	afs_err err = peek_lock(v, &base);
	if (err == AFS_OK) {
		err = vs_node_cached(v, fid, out);
		if (err == AFS_OK) {
			v->used = base->used = true;
			if (now)
				vs_volume_use_locked(v, now);
		}
		mtx_unlock(&base->lock);
	}
	if (err == AFS_OK)
		*vol = v;
	else if (!*vol)
		vs_volume_unref(v);
	return err;
}

afs_err vs_volume_peek(struct vs_store *s, afs_volid id, struct vs_volume **out) NO_TSA
{
	struct vs_volume *v = find(s, NULL, id), *base;
	if (!v)
		return AFS_ENOVOL;
	afs_err err = peek_lock(v, &base);
	if (err == AFS_OK) {
		mtx_unlock(&base->lock);
		*out = v;
	} else {
		vs_volume_unref(v);
	}
	return err;
}

afs_err vs_nodes_get(struct vs_volume *v, const struct vs_fid *fids, size_t n, bool peek,
	struct vs_node *out, afs_err *errs) NO_TSA
{
	struct vs_volume *base = NULL;
	afs_err err = peek ? peek_lock(v, &base) : vs_volume_lock(v, true);
	if (err)
		return err;
	for (size_t i = 0; i < n && err != AFS_EWAIT; i++) {
		errs[i] = peek ? vs_node_cached(v, fids[i], &out[i]) : vs_node_read(v, fids[i], &out[i]);
		if (errs[i] == AFS_EWAIT)
			err = AFS_EWAIT;
	}
	if (peek) {
		v->used = base->used = true;
		mtx_unlock(&base->lock);
	} else {
		vs_volume_unlock(v);
	}
	return err;
}

afs_err vs_volume_claim(struct vs_volume *v, enum vs_claim claim)
{
	TRY(vs_volume_lock(v, false));
	afs_err err = claim != VS_FREE && v->claim != VS_FREE ? AFS_EVOLTRANS : AFS_OK;
	if (!err)
		v->claim = claim;
	vs_volume_unlock(v);
	return err;
}

enum vs_claim vs_volume_claimed(struct vs_volume *v) NO_TSA
{
	struct vs_volume *base = vs_base_lock(v);
	enum vs_claim claim = v->claim;
	mtx_unlock(&base->lock);
	return claim;
}

bool vs_volume_online(struct vs_volume *v)
{
	if (vs_volume_lock(v, true) != AFS_OK)
		return false;
	vs_volume_unlock(v);
	return true;
}

afs_volid vs_volume_id(const struct vs_volume *v) { return v->id; }
struct vs_partition *vs_volume_partition(const struct vs_volume *v) { return v->part; }
