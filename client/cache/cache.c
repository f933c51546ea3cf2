/* SPDX-License-Identifier: BSD-2-Clause
 * The table of files; start and end. */
#include "client/cache/inside.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the table ----------------------------------------------------------------------------------------- */

static uint64_t key_hash(const struct cache *c, const struct cache_key *k)
{
	return map_hash_bytes(&c->files, k, sizeof(*k));
}

static struct cache_file *file_find(struct cache *c, const struct cache_key *k, uint64_t h)
	REQUIRES(c->lock)
{
	for (struct map_node *n = map_first(&c->files, h); n; n = map_next(n)) {
		struct cache_file *f = container_of(n, struct cache_file, by_key);
		if (f->key.cell == k->cell && fid_equal(&f->key.fid, &k->fid))
			return f;
	}
	return NULL;
}

static struct cache_file *file_make(struct cache *c, const struct cache_key *k, uint64_t h)
	REQUIRES(c->lock)
{
	struct cache_file *f = mem_new(struct cache_file);
	if (!f)
		return NULL;
	*f = (struct cache_file){.cache = c, .key = *k, .slot.fd = -1};
	if (!map_insert(&c->files, &f->by_key, h)) {
		mem_free(f);
		return NULL;
	}
	return f;
}

afs_err cache_file_open(struct cache *c, const struct cache_key *key, struct cache_file **out)
{
	struct cache_key k; /* hashed as bytes: no garbage between the fields */
	memset(&k, 0, sizeof(k));
	k.cell = key->cell;
	k.fid = key->fid;
	mtx_lock(&c->lock);
	uint64_t h = key_hash(c, &k);
	struct cache_file *f = file_find(c, &k, h);
	if (!f)
		f = file_make(c, &k, h);
	if (f)
		f->refs++;
	mtx_unlock(&c->lock);
	if (!f)
		return AFS_ENOMEM;
	*out = f;
	return AFS_OK;
}

void cache_file_close(struct cache_file *f)
{
	struct cache *c = f->cache;
	mtx_lock(&c->lock);
	f->refs--;
	file_free_if_unused(c, f);
	mtx_unlock(&c->lock);
}

uint64_t cache_file_dv(struct cache_file *f)
{
	mtx_lock(&f->cache->lock);
	uint64_t dv = f->dv;
	mtx_unlock(&f->cache->lock);
	return dv;
}

void cache_file_set_dv(struct cache_file *f, uint64_t dv)
{
	mtx_lock(&f->cache->lock);
	f->dv = dv;
	mtx_unlock(&f->cache->lock);
}

void cache_usage(struct cache *c, struct cache_usage *out)
{
	mtx_lock(&c->lock);
	*out = (struct cache_usage){c->used * CACHE_PAGE, c->max * CACHE_PAGE,
		c->dirty * CACHE_PAGE, c->files.count, c->chunks};
	mtx_unlock(&c->lock);
}

/* --- start and end ----------------------------------------------------------------------------------------- */

static bool area_fits(const struct cache_index_file *in)
{
	struct cache_index_chunk ch = cache_index_chunk(in, 0);
	return ch.index == 0 && !(ch.valid[0] >> AREA_BYTES / CACHE_PAGE) && !ch.valid[1] &&
	       !ch.valid[2] && !ch.valid[3];
}

static bool load_file(void *ctx, const struct cache_index_file *in) NO_TSA
{
	struct cache *c = ctx;
	struct cache_key k;
	memset(&k, 0, sizeof(k));
	k.cell = in->key.cell;
	k.fid = in->key.fid;
	uint64_t h = key_hash(c, &k);
	bool area = in->slot & INDEX_AREA;
	uint32_t number = in->slot & ~INDEX_AREA;
	if (number >= SLOT_MAX || file_find(c, &k, h))
		return false;
	/* what is in an area fits into it */
	if (area && in->chunk_count && (in->chunk_count > 1 || !area_fits(in)))
		return false;
	struct cache_file *f = file_make(c, &k, h);
	if (!f)
		return true; /* its slot is swept */
	f->dv = in->dv;
	f->slot.number = f->area = number;
	f->place = area ? IN_AREA : IN_SLOT;
	for (uint64_t i = 0; i < in->chunk_count; i++) {
		struct cache_index_chunk saved = cache_index_chunk(in, i);
		struct chunk *ch = chunk_make(f, saved.index);
		if (!ch)
			break;
		memcpy(ch->valid.w, saved.valid, sizeof(saved.valid));
		c->used += bits_count(&ch->valid);
		chunk_rest(c, ch);
	}
	if (area)
		c->areas.next = MAX(c->areas.next, number + 1);
	else
		c->slots.next = MAX(c->slots.next, number + 1);
	return true;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}
struct numbers {
	uint32_t *v;
	size_t n;
};
static bool is_number(void *ctx, uint32_t number)
{
	struct numbers *s = ctx;
	return s->n && bsearch(&number, s->v, s->n, sizeof(*s->v), by_number);
}

static afs_err read_whole(int dir_fd, const char *name, struct buf *b)
{
	CLEANUP(fd) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return AFS_ENOENT;
	if (st.st_size < 0 || st.st_size > (off_t)1 << 32)
		return AFS_ECORRUPT;
	uint8_t *p = buf_extend(b, (size_t)st.st_size);
	if (!p)
		return AFS_ENOMEM;
	for (size_t at = 0; at < (size_t)st.st_size;) {
		ssize_t n = read(fd, p + at, (size_t)st.st_size - at);
		if (n <= 0)
			return AFS_EIO;
		at += (size_t)n;
	}
	return AFS_OK;
}

static void forget_all(struct cache *c)
{
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&c->files, &cursor, NULL), *next; n; n = next) {
		next = map_walk(&c->files, &cursor, n->next);
		struct cache_file *f = container_of(n, struct cache_file, by_key);
		while (f->n)
			chunk_remove(c, f->chunks[f->n - 1]);
		map_remove(&c->files, n);
		if (f->place == IN_SLOT && f->slot.fd >= 0)
			close(f->slot.fd);
		mem_free(f->chunks);
		mem_free(f);
	}
}

static afs_err load(struct cache *c, int dir_fd)
{
	CLEANUP(buf) struct buf b = {0};
	afs_err err = read_whole(dir_fd, "index", &b);
	/* A crash from here on must not find an index that no longer tells the truth. */
	unlinkat(dir_fd, "index", 0);
	if (!err)
		err = cache_index_parse((const uint8_t *)b.data, b.len, NULL, NULL);
	if (!err)
		err = cache_index_parse((const uint8_t *)b.data, b.len, load_file, c);
	if (err) {
		if (err != AFS_ENOENT)
			log_warn("cache.index.unusable dir=%s err=%s: starting empty", c->dir,
				afs_err_name(err));
		forget_all(c);
		c->slots.next = c->areas.next = 0;
	}

	CLEANUP(heap) uint32_t *v = mem_new_array(c->files.count + 1, uint32_t);
	if (!v)
		return AFS_ENOMEM;
	struct numbers used = {v, 0}; /* areas sort behind slots */
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&c->files, &cursor, NULL); n;
		n = map_walk(&c->files, &cursor, n->next)) {
		struct cache_file *f = container_of(n, struct cache_file, by_key);
		v[used.n++] = f->place == IN_AREA ? f->area | INDEX_AREA : f->slot.number;
	}
	qsort(v, used.n, sizeof(*v), by_number);
	for (size_t i = 1; i < used.n; i++) {
		if (v[i] == v[i - 1]) { /* two files in one place */
			log_warn("cache.index.unusable dir=%s slot=%08x: starting empty", c->dir,
				v[i]);
			forget_all(c);
			c->slots.next = c->areas.next = 0;
			used.n = 0;
		}
	}
	TRY(slots_sweep(&c->slots, is_number, &used));
	if (!c->areas.next && ftruncate(c->areas.fd, 0) < 0)
		return log_error(AFS_EIO, "cache.dir.unusable path=%s errno=%d", c->dir, errno);
	for (uint32_t i = 0; i < c->areas.next; i++)
		if (!is_number(&used, i | INDEX_AREA))
			areas_give(&c->areas, i);
	mtx_lock(&c->lock);
	while (c->used > c->max && cache_evict_one(c))
		;
	mtx_unlock(&c->lock);
	return AFS_OK;
}

static afs_err open_dir(struct cache *c)
{
	if (mkdir(c->dir, 0700) < 0 && errno != EEXIST)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			c->dir, errno);
	CLEANUP(fd) int dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			c->dir, errno);
	c->lock_fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (c->lock_fd < 0)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			c->dir, errno);
	if (flock(c->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return log_error(AFS_EBUSY,
			"cache.dir.in_use path=%s: another client uses it; give each its own",
			c->dir);
	TRY(slots_open(&c->slots, c->dir));
	TRY(areas_open(&c->areas, c->slots.dir_fd));
	return load(c, dir_fd);
}

afs_err cache_open(const char *dir, uint64_t max_bytes, struct cache **out)
{
	struct cache *c = mem_new(struct cache);
	if (!c)
		return AFS_ENOMEM;
	mtx_init(&c->lock, RANK_CACHE);
	cond_init(&c->changed);
	map_init(&c->files);
	list_init(&c->lru);
	list_init(&c->open_files);
	c->max = MAX(max_bytes, CACHE_MIN_BYTES) / CACHE_PAGE -
		 (uint64_t)AREAS_UNPUNCHED * AREA_BYTES / CACHE_PAGE;
	c->lock_fd = -1;
	c->slots.dir_fd = c->areas.fd = -1;
	c->dir = mem_strdup(dir);
	c->area_buf = mem_alloc(AREA_BYTES, 1);
	afs_err err = c->dir && c->area_buf ? open_dir(c) : AFS_ENOMEM;
	if (err) {
		forget_all(c);
		areas_fini(&c->areas);
		slots_fini(&c->slots);
		if (c->lock_fd >= 0)
			close(c->lock_fd);
		map_fini(&c->files);
		cond_fini(&c->changed);
		mtx_fini(&c->lock);
		mem_free(c->dir);
		mem_free(c->area_buf);
		mem_free(c);
		return err;
	}
	*out = c;
	return AFS_OK;
}

static afs_err save(struct cache *c)
{
	CLEANUP(buf) struct buf b = {0};
	uint64_t files = 0;
	cache_index_begin(&b);
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&c->files, &cursor, NULL); n;
		n = map_walk(&c->files, &cursor, n->next)) {
		struct cache_file *f = container_of(n, struct cache_file, by_key);
		if (f->place == NOWHERE || !f->n)
			continue;
		uint32_t where = f->place == IN_AREA ? f->area | INDEX_AREA : f->slot.number;
		struct cache_index_file out = {f->key, where, f->dv, f->n, NULL};
		cache_index_file(&b, &out);
		for (size_t i = 0; i < f->n; i++) {
			struct chunk *ch = f->chunks[i];
			struct bits taken = bits_or(&ch->dirty, &ch->storing);
			struct bits good = bits_but(&ch->valid, &taken);
			struct cache_index_chunk saved = {.index = ch->index};
			memcpy(saved.valid, good.w, sizeof(saved.valid));
			cache_index_chunk_put(&b, &saved);
		}
		files++;
	}
	cache_index_end(&b, files);
	if (b.err)
		return b.err;

	CLEANUP(fd) int dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd)
	int fd = dir_fd < 0 ? -1
			    : openat(dir_fd, "index.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
				      0600);
	if (fd < 0)
		return afs_err_from_errno(errno);
	/* Content first: after a power failure an index must not name pages that never reached the disk. */
	if (syncfs(c->slots.dir_fd) < 0)
		return afs_err_from_errno(errno);
	TRY(write_plain(fd, (const uint8_t *)b.data, b.len, 0));
	if (fsync(fd) < 0 || renameat(dir_fd, "index.new", dir_fd, "index") < 0)
		return afs_err_from_errno(errno);
	return AFS_OK;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	afs_err err = save(c);
	if (err)
		log_warn("cache.index.unsaved dir=%s err=%s: the next start begins empty", c->dir,
			afs_err_name(err));
	forget_all(c);
	areas_fini(&c->areas);
	slots_fini(&c->slots);
	close(c->lock_fd);
	map_fini(&c->files);
	cond_fini(&c->changed);
	mtx_fini(&c->lock);
	mem_free(c->dir);
	mem_free(c->area_buf);
	mem_free(c);
}
