/* SPDX-License-Identifier: BSD-2-Clause
 * The store: partitions, the table of volumes, and the keeper that tidies up behind everybody. */
#include "fileserver/store/store.h"

#include "cell/base/log.h"
#include "fileserver/store/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTITIONS = 255, OPEN_GROUPS = 48, IDLE_ROUNDS = 30, RECLAIM_ROWS = 4096 };

/* --- folders -------------------------------------------------------------------------- */

void vs_listing_cleanup(struct vs_listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		mem_free(l->name[i]);
	mem_free(l->name);
	*l = (struct vs_listing){0};
}

static afs_err listing_add(struct vs_listing *l, const char *name)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		char **grown = mem_resize(l->name, l->cap, cap, sizeof(*grown));
		if (!grown)
			return AFS_ENOMEM;
		l->name = grown;
		l->cap = cap;
	}
	l->name[l->n] = mem_strdup(name);
	return l->name[l->n] ? (l->n++, AFS_OK) : AFS_ENOMEM;
}

afs_err vs_listing_read(int fd, struct vs_listing *out)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	if (!d) {
		if (own >= 0)
			close(own);
		return log_error(vs_err_of_errno(errno), "vs.folder.read errno=%d", errno);
	}
	afs_err err = AFS_OK;
	errno = 0;
	for (struct dirent *e; !err && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			err = listing_add(out, e->d_name);
	if (!err && errno)
		err = log_error(AFS_EIO, "vs.folder.read errno=%d", errno);
	closedir(d);
	return err;
}

afs_err vs_remove_tree(int parent_fd, const char *name)
{
	if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
		return AFS_OK;
	if (errno != EISDIR && errno != EPERM)
		return vs_err_of_errno(errno);
	CLEANUP(fd)
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return vs_err_of_errno(errno);
	CLEANUP(vs_listing) struct vs_listing names = {0};
	TRY(vs_listing_read(fd, &names));
	for (size_t i = 0; i < names.n; i++)
		TRY(vs_remove_tree(fd, names.name[i]));
	return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 ? AFS_OK : vs_err_of_errno(errno);
}

/* --- partitions ----------------------------------------------------------------------- */

int vs_partition_id_of(const char *name)
{
	if (name[0] == '/')
		name++;
	if (strncmp(name, "vicep", 5) == 0)
		name += 5;
	size_t n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (name[i] < 'a' || name[i] > 'z')
			return -1;
	int id = n == 1 ? name[0] - 'a' : n == 2 ? 26 + 26 * (name[0] - 'a') + (name[1] - 'a') : -1;
	return id < PARTITIONS ? id : -1;
}

static void partition_free(struct vs_partition *p)
{
	int *const fds[] = {&p->fd, &p->vol_fd, &p->tmp_fd, &p->lock_fd};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_cleanup(fds[i]);
	mtx_fini(&p->space_lock);
	mem_free(p->path);
	mem_free(p);
}
DEFINE_CLEANUP_PTR(vs_partition, struct vs_partition, partition_free)

static afs_err open_folder(int at, const char *name, const char *path, int *out)
{
	if (mkdirat(at, name, 0700) != 0 && errno != EEXIST)
		return log_error(vs_err_of_errno(errno),
			"vs.partition.mkdir path=%s name=%s errno=%d", path, name, errno);
	*out = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out < 0)
		return log_error(vs_err_of_errno(errno),
			"vs.partition.open path=%s name=%s errno=%d", path, name, errno);
	return AFS_OK;
}

static afs_err open_partition(struct vs_partition *p)
{
	TRY(open_folder(AT_FDCWD, p->path, p->path, &p->fd));
	p->lock_fd = openat(p->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (p->lock_fd < 0)
		return log_error(vs_err_of_errno(errno), "vs.partition.lock path=%s errno=%d",
			p->path, errno);
	if (flock(p->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return log_error(AFS_EBUSY,
			"vs.partition.busy path=%s text=\"another process serves it\"", p->path);
	TRY(open_folder(p->fd, "vol", p->path, &p->vol_fd));
	return open_folder(p->fd, "tmp", p->path, &p->tmp_fd);
}

/* What a crash left half made or half removed. */
static afs_err empty_tmp(struct vs_partition *p)
{
	CLEANUP(vs_listing) struct vs_listing names = {0};
	TRY(vs_listing_read(p->tmp_fd, &names));
	for (size_t i = 0; i < names.n; i++) {
		afs_err err = vs_remove_tree(p->tmp_fd, names.name[i]);
		if (err)
			return log_error(err, "vs.partition.tidy path=%s/tmp/%s", p->path,
				LOG_SAFE(names.name[i]));
	}
	return AFS_OK;
}

static bool is_link(struct vs_partition *p, const char *name, char group[64])
{
	ssize_t n = readlinkat(p->vol_fd, name, group, 63);
	if (n < 0)
		return false;
	group[n] = '\0';
	return true;
}

/* A clone's link.  One that leads nowhere is what a crash left of a clone that was never made, or is
 * gone with its group. */
static afs_err find_clone(struct vs_partition *p, const char *name, const char *group)
{
	char *end, *group_end;
	unsigned long id = strtoul(name, &end, 10), base = strtoul(group, &group_end, 10);
	struct vs_volume *have, *v;
	if (*end || !id || id > UINT32_MAX || (*group_end && *group_end != '.')) {
		log_warn("vs.partition.stray path=%s/vol/%s text=\"not a volume; left alone\"", p->path,
			LOG_SAFE(name));
		return AFS_OK;
	}
	if ((have = vs_volume_lookup(p, (afs_volid)id))) { /* its group has told of it already */
		vs_volume_unref(have);
		return AFS_OK;
	}
	v = *group_end ? NULL : vs_volume_lookup(p, (afs_volid)base);
	if (!v) {
		if (unlinkat(p->vol_fd, name, 0) != 0)
			log_warn("vs.partition.tidy path=%s/vol/%s errno=%d", p->path, LOG_SAFE(name), errno);
		return AFS_OK;
	}
	afs_err err = vs_clone_register(v, (afs_volid)id);
	vs_volume_unref(v);
	return err;
}

static afs_err find_volumes(struct vs_partition *p)
{
	CLEANUP(vs_listing) struct vs_listing names = {0};
	TRY(vs_listing_read(p->vol_fd, &names));
	CLEANUP(heap) bool *headless = mem_new_array(names.n + 1, bool);
	if (!headless)
		return AFS_ENOMEM;
	for (size_t i = 0; i < names.n; i++) {
		char *end, group[64];
		if (is_link(p, names.name[i], group))
			continue;
		errno = 0;
		unsigned long id = strtoul(names.name[i], &end, 10);
		char again[16];
		snprintf(again, sizeof(again), "%u", (unsigned)id);
		if (!errno && *end == '.' && id && id <= UINT32_MAX && strtoul(end + 1, &end, 10) && !*end) {
			headless[i] = true;
			continue;
		}
		if (errno || *end || id == 0 || id > UINT32_MAX ||
			strcmp(again, names.name[i]) != 0) {
			log_warn("vs.partition.stray path=%s/vol/%s text=\"not a volume; left "
				 "alone\"",
				p->path, LOG_SAFE(names.name[i]));
			continue;
		}
		struct vs_volume *v;
		afs_err err = vs_volume_add(p, (afs_volid)id, false, &v);
		if (err)
			return err;
	}
	for (size_t i = 0; i < names.n; i++)
		if (headless[i])
			TRY(vs_headless_attach(p, names.name[i]));
	for (size_t i = 0; i < names.n; i++) {
		char group[64];
		if (is_link(p, names.name[i], group))
			TRY(find_clone(p, names.name[i], group));
	}
	return AFS_OK;
}

static afs_err attach_locked(struct vs_store *s, struct vs_partition *p) REQUIRES(s->lock)
{
	if (s->parts[p->id])
		return AFS_EEXIST;
	s->parts[p->id] = p;
	return AFS_OK;
}

afs_err vs_partition_attach(
	struct vs_store *s, const char *name, const char *path, struct vs_partition **out)
{
	int id = vs_partition_id_of(name);
	if (id < 0)
		return AFS_EINVAL;
	if (vs_partition_find(s, (unsigned)id))
		return AFS_EEXIST;
	CLEANUP(vs_partition) struct vs_partition *p = mem_new(struct vs_partition);
	if (!p)
		return AFS_ENOMEM;
	p->s = s;
	p->id = (unsigned)id;
	p->fd = p->vol_fd = p->tmp_fd = p->lock_fd = -1;
	mtx_init(&p->space_lock, RANK_LEAF);
	if (id < 26)
		snprintf(p->name, sizeof(p->name), "/vicep%c", 'a' + id);
	else
		snprintf(p->name, sizeof(p->name), "/vicep%c%c", 'a' + (id - 26) / 26,
			'a' + (id - 26) % 26);
	p->path = mem_strdup(path);
	if (!p->path)
		return AFS_ENOMEM;
	TRY(open_partition(p));
	TRY(empty_tmp(p));
	mtx_lock(&s->lock);
	afs_err err = attach_locked(s, p);
	mtx_unlock(&s->lock);
	if (err)
		return err;
	struct vs_partition *kept = TAKE(p); /* the store's from here on */
	TRY(find_volumes(kept));
	*out = kept;
	return AFS_OK;
}

struct vs_partition *vs_partition_find(struct vs_store *s, unsigned id)
{
	mtx_lock(&s->lock);
	struct vs_partition *p = id < ARRAY_SIZE(s->parts) ? s->parts[id] : NULL;
	mtx_unlock(&s->lock);
	return p;
}

struct vs_partition *vs_partition_next(struct vs_store *s, const struct vs_partition *after)
{
	struct vs_partition *p = NULL;
	mtx_lock(&s->lock);
	for (size_t id = after ? after->id + 1 : 0; id < ARRAY_SIZE(s->parts) && !p; id++)
		p = s->parts[id];
	mtx_unlock(&s->lock);
	return p;
}

unsigned vs_partition_id(const struct vs_partition *p) { return p->id; }
const char *vs_partition_name(const struct vs_partition *p) { return p->name; }
const char *vs_partition_path(const struct vs_partition *p) { return p->path; }

/* --- listing -------------------------------------------------------------------------- */

static struct vs_volume **all_volumes_locked(
	struct vs_store *s, const struct vs_partition *p, size_t *n) REQUIRES(s->lock)
{
	struct vs_volume **all = mem_new_array(s->volumes.count, struct vs_volume *);
	if (!all)
		return NULL;
	size_t c = 0;
	for (struct map_node *at = map_walk(&s->volumes, &c, NULL); at;
		at = map_walk(&s->volumes, &c, at->next)) {
		struct vs_volume *v = container_of(at, struct vs_volume, node);
		if (!p || v->part == p) {
			vs_volume_ref(v);
			all[(*n)++] = v;
		}
	}
	return all;
}

/* Referenced, for a walk without the table's lock.  NULL: out of memory. */
static struct vs_volume **all_volumes(struct vs_store *s, const struct vs_partition *p, size_t *n)
{
	*n = 0;
	mtx_lock(&s->lock);
	struct vs_volume **all = all_volumes_locked(s, p, n);
	mtx_unlock(&s->lock);
	return all;
}

static int by_id(const void *a, const void *b)
{
	const struct vs_listed *x = a, *y = b;
	return x->id < y->id ? -1 : x->id > y->id;
}

afs_err vs_volume_list(struct vs_partition *p, struct vs_listed **out, size_t *n) NO_TSA
{
	size_t found;
	CLEANUP(heap) struct vs_volume **all = all_volumes(p->s, p, &found);
	struct vs_listed *list = all ? mem_new_array(found, struct vs_listed) : NULL;
	size_t listed = 0;
	for (size_t i = 0; i < found; i++) {
		struct vs_volume *v = all[i];
		/* whether a clone is there, only its group can tell */
		if (vs_volume_is_clone(v) && vs_volume_lock(v, false) == AFS_OK)
			vs_volume_unlock(v);
		bool there = !atomic_load(&v->vanished);
		vs_clone_vanish(v);
		if (list && there) {
			struct vs_volume *base = vs_base_lock(v);
			list[listed++] = (struct vs_listed){.id = v->id, .err = base->broken};
			mtx_unlock(&base->lock);
		}
		vs_volume_unref(v);
	}
	if (!list)
		return AFS_ENOMEM;
	qsort(list, listed, sizeof(*list), by_id);
	*out = list;
	*n = listed;
	return AFS_OK;
}

static void keep_volume(struct vs_store *s, struct vs_volume *v);

/* --- the keeper ----------------------------------------------------------------------- */

/* Nobody reads or writes in it: the references are the table's, ours, and those of its clones, which
 * are not used either. */
static bool unused_locked(struct vs_volume *v)
{
	unsigned refs = v->headless ? 0 : 2;
	list_each(it, &v->clones)
	{
		struct vs_volume *c = list_entry(it, struct vs_volume, clone_link);
		if (c->used || c->claim != VS_FREE || atomic_load(&c->refs) > 2)
			return false;
		refs++;
	}
	return atomic_load(&v->refs) <= refs;
}

static void keep_clone(struct vs_volume *c) NO_TSA
{
	struct vs_volume *base = vs_base_lock(c);
	if (base->db && c->use_unsaved && !c->deleted) {
		c->db = base->db;
		vs_volume_save_use_locked(c);
	}
	c->used = false;
	/* nobody else looks after a group without a read-write volume */
	bool headless = base->headless && list_first(&base->clones) == &c->clone_link;
	if (headless)
		vs_volume_ref(base);
	mtx_unlock(&base->lock);
	if (headless) {
		keep_volume(base->s, base);
		vs_volume_unref(base);
	}
}

static void keep_volume(struct vs_store *s, struct vs_volume *v) NO_TSA
{
	if (v->base != v) {
		keep_clone(v);
		return;
	}
	mtx_lock(&v->lock);
	if (v->db) {
		vs_reclaim_locked(v, RECLAIM_ROWS);
		vs_volume_reap_locked(v, 256);
		if (v->use_unsaved > 64 || (v->use_unsaved && !v->used))
			vs_volume_save_use_locked(v);
		/* busy ones when it is worth it, quiet ones to leave a short WAL behind */
		if (v->commits_since_checkpoint > 256 || (v->commits_since_checkpoint && !v->used))
			vs_volume_checkpoint_locked(v);
		v->idle_rounds = v->used ? 0 : v->idle_rounds + 1;
		v->used = false;
		/* ours and the table's are the only references: nobody reads or writes */
		if (v->idle_rounds > IDLE_ROUNDS && atomic_load(&s->open_groups) > OPEN_GROUPS &&
			unused_locked(v) && !v->deleted)
			vs_volume_shut_locked(v);
	}
	mtx_unlock(&v->lock);
}

void vs_store_housekeep(struct vs_store *s)
{
	size_t n;
	CLEANUP(heap) struct vs_volume **all = all_volumes(s, NULL, &n);
	for (size_t i = 0; i < n; i++) {
		keep_volume(s, all[i]);
		vs_volume_unref(all[i]);
	}
}

void vs_store_keep(struct vs_store *s)
{
	mtx_lock(&s->keep_lock);
	s->keeping = true;
	while (!s->keep_stop) {
		cond_wait_until(&s->keep_cond, &s->keep_lock, clk_mono() + SEC(1));
		mtx_unlock(&s->keep_lock);
		vs_store_housekeep(s);
		mtx_lock(&s->keep_lock);
	}
	s->keeping = false;
	cond_broadcast(&s->keep_cond);
	mtx_unlock(&s->keep_lock);
}

void vs_store_stop(struct vs_store *s)
{
	mtx_lock(&s->keep_lock);
	s->keep_stop = true;
	cond_broadcast(&s->keep_cond);
	mtx_unlock(&s->keep_lock);
}

/* --- opening and closing -------------------------------------------------------------- */

afs_err vs_store_open(const struct vs_config *config, struct vs_store **out)
{
	struct vs_store *s = mem_new(struct vs_store);
	if (!s)
		return AFS_ENOMEM;
	s->config = *config;
	if (!s->config.vnode_cache)
		s->config.vnode_cache = 65536;
	if (!s->config.dir_cache_kib)
		s->config.dir_cache_kib = 32768;
	if (!s->config.fd_cache)
		s->config.fd_cache = 256;
	if (!s->config.reserve_kib)
		s->config.reserve_kib = 8192;
	if (!s->config.store_spare_kib)
		s->config.store_spare_kib = 1024;
	mtx_init(&s->lock, RANK_VS_PARTITION);
	mtx_init(&s->keep_lock, RANK_LEAF);
	cond_init(&s->keep_cond);
	map_init(&s->volumes);
	vs_fds_init(&s->fds, s->config.fd_cache);
	mtx_init(&s->buffers.lock, RANK_LEAF);
	*out = s;
	return AFS_OK;
}

static void drop_volumes(struct vs_store *s)
{
	size_t c = 0;
	for (struct map_node *at = map_walk(&s->volumes, &c, NULL), *next; at; at = next) {
		next = map_walk(&s->volumes, &c, at->next);
		struct vs_volume *v = container_of(at, struct vs_volume, node);
		map_remove(&s->volumes, at);
		vs_volume_unref(v);
	}
}

void vs_store_close(struct vs_store *s) NO_TSA
{
	vs_store_stop(s);
	mtx_lock(&s->keep_lock);
	while (s->keeping)
		cond_wait(&s->keep_cond, &s->keep_lock);
	mtx_unlock(&s->keep_lock);
	drop_volumes(s);
	for (size_t i = 0; i < ARRAY_SIZE(s->parts); i++)
		if (s->parts[i])
			partition_free(s->parts[i]);
	vs_fds_fini(&s->fds);
	vs_buffers_fini(&s->buffers);
	map_fini(&s->volumes);
	cond_fini(&s->keep_cond);
	mtx_fini(&s->keep_lock);
	mtx_fini(&s->lock);
	mem_free(s);
}
