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
	bool moved = f->dv != dv;
	f->dv = dv;
	if (moved)
		log_file(f->cache, f);
	mtx_unlock(&f->cache->lock);
}

static bool meta_equal(const struct cache_meta *a, const struct cache_meta *b)
{
	return a->pending == b->pending && a->length == b->length && a->cut == b->cut && a->mtime == b->mtime &&
	       a->uid == b->uid && a->parent_vnode == b->parent_vnode && a->parent_unique == b->parent_unique;
}

void cache_file_set_meta(struct cache_file *f, const struct cache_meta *m)
{
	struct cache *c = f->cache;
	mtx_lock(&c->lock);
	bool was = f->meta.pending;
	if ((was || m->pending) && !meta_equal(&f->meta, m)) {
		f->meta = *m;
		f->touched |= m->pending;
		if (m->pending && !list_linked(&f->dirty_link))
			list_push_back(&c->dirty_files, &f->dirty_link);
		/* what is to be remembered needs a place; without one only a crash would lose it */
		if (f->place != NOWHERE) {
			log_file(c, f);
		} else if (m->pending && io_begin(c, f) == AFS_OK) {
			io_end(c, f);
		}
		if (was && !m->pending && !f->io && !f->n && f->place == IN_AREA) {
			f->io++;
			io_end(c, f); /* gives the place back */
		}
	}
	mtx_unlock(&c->lock);
}

void cache_file_meta(struct cache_file *f, struct cache_meta *out)
{
	mtx_lock(&f->cache->lock);
	*out = f->meta;
	mtx_unlock(&f->cache->lock);
}

struct cache_key cache_file_key(const struct cache_file *f) { return f->key; }

uint64_t cache_file_end(struct cache_file *f)
{
	mtx_lock(&f->cache->lock);
	uint64_t end = 0;
	for (size_t i = f->n; i-- && !end;) {
		const struct chunk *ch = f->chunks[i];
		struct bits taken = bits_or(&ch->dirty, &ch->storing);
		for (unsigned k = CACHE_CHUNK_PAGES; k-- && !end;)
			if (bit(&taken, k))
				end = (ch->index * CACHE_CHUNK_PAGES + k + 1) * CACHE_PAGE;
	}
	mtx_unlock(&f->cache->lock);
	return end;
}

/* --- orphans and notes ----------------------------------------------------------------------------------- */

size_t cache_orphans(struct cache *c, struct cache_file **out, size_t cap)
{
	size_t n = 0;
	mtx_lock(&c->lock);
	list_each(e, &c->orphans)
	{
		struct cache_file *f = list_entry(e, struct cache_file, orphans);
		if (n == cap)
			break;
		if (f->refs)
			continue;
		f->refs++;
		out[n++] = f;
	}
	mtx_unlock(&c->lock);
	return n;
}

void cache_orphan_done(struct cache_file *f, bool dropped)
{
	struct cache *c = f->cache;
	if (dropped) {
		cache_file_discard(f);
		struct cache_meta none = {0};
		cache_file_set_meta(f, &none);
	}
	mtx_lock(&c->lock);
	f->refs--;
	file_free_if_unused(c, f);
	mtx_unlock(&c->lock);
}

void cache_file_orphan(struct cache_file *f)
{
	struct cache *c = f->cache;
	mtx_lock(&c->lock);
	f->refs--;
	if (!f->orphan) {
		map_remove(&c->files, &f->by_key);
		f->orphan = true;
		list_push_back(&c->orphans, &f->orphans);
		c->orphan_n++;
	}
	file_free_if_unused(c, f);
	mtx_unlock(&c->lock);
}

static void record_of_note(const struct cache_note *n, struct cache_record *r)
{
	*r = (struct cache_record){.type = CACHE_R_NOTE, .key = n->dir, .meta = {.uid = n->uid}};
	memcpy(r->name, n->name, sizeof(r->name));
	r->name[CACHE_NOTE_MAX - 1] = 0;
}
static bool note_is(const struct note *n, const struct cache_record *r)
{
	return n->r.key.cell == r->key.cell && fid_equal(&n->r.key.fid, &r->key.fid) && strcmp(n->r.name, r->name) == 0;
}
static void note_put(struct cache *c, const struct cache_record *r) REQUIRES(c->lock)
{
	struct note *n = mem_new(struct note);
	if (!n) /* a name may be left behind */
		return;
	n->r = *r;
	list_push_back(&c->notes, &n->all);
}
static void note_drop(struct cache *c, const struct cache_record *r) REQUIRES(c->lock)
{
	list_each(e, &c->notes)
	{
		struct note *n = list_entry(e, struct note, all);
		if (note_is(n, r)) {
			list_remove(e);
			mem_free(n);
		}
	}
}

void cache_note_add(struct cache *c, const struct cache_note *n)
{
	struct cache_record r;
	record_of_note(n, &r);
	mtx_lock(&c->lock);
	log_append(c, &r);
	note_put(c, &r);
	mtx_unlock(&c->lock);
}

void cache_note_remove(struct cache *c, const struct cache_note *n)
{
	struct cache_record r;
	record_of_note(n, &r);
	mtx_lock(&c->lock);
	note_drop(c, &r);
	r.type = CACHE_R_UNNOTE;
	log_append(c, &r);
	mtx_unlock(&c->lock);
}

size_t cache_notes(struct cache *c, struct cache_note *out, size_t cap)
{
	size_t n = 0;
	mtx_lock(&c->lock);
	list_each(e, &c->notes)
	{
		const struct cache_record *r = &list_entry(e, struct note, all)->r;
		if (n == cap)
			break;
		out[n] = (struct cache_note){.dir = r->key, .uid = r->meta.uid};
		memcpy(out[n++].name, r->name, CACHE_NOTE_MAX);
	}
	mtx_unlock(&c->lock);
	return n;
}

void cache_usage(struct cache *c, struct cache_usage *out)
{
	mtx_lock(&c->lock);
	*out = (struct cache_usage){c->used * CACHE_PAGE, c->max * CACHE_PAGE,
		c->dirty * CACHE_PAGE, c->files.count, c->chunks, c->orphan_n};
	mtx_unlock(&c->lock);
}

static uint64_t pages_of(uint64_t max_bytes)
{
	return MAX(max_bytes, CACHE_MIN_BYTES) / CACHE_PAGE - (uint64_t)AREAS_UNPUNCHED * AREA_BYTES / CACHE_PAGE;
}

void cache_resize(struct cache *c, uint64_t max_bytes)
{
	mtx_lock(&c->lock);
	c->max = pages_of(max_bytes);
	while (c->used > c->max && cache_evict_one(c))
		;
	cond_broadcast(&c->changed);
	mtx_unlock(&c->lock);
}

/* --- start and end ----------------------------------------------------------------------------------------- */

struct placed {
	struct map_node by_place;
	struct cache_file *file; /* in no table yet */
};
struct loading {
	struct cache *c;
	struct map places;
	bool fell;       /* the machine fell since: only what was brought to the disk counts, */
	uint64_t synced; /* which is what was said before this byte; later words only take away */
};

static struct placed *placed_find(struct loading *l, uint32_t place, uint64_t h)
{
	for (struct map_node *n = map_first(&l->places, h); n; n = map_next(n)) {
		struct placed *p = container_of(n, struct placed, by_place);
		if (place_number(p->file) == place)
			return p;
	}
	return NULL;
}

static void forget_file(struct cache *c, struct cache_file *f) NO_TSA
{
	while (f->n)
		chunk_remove(c, f->chunks[f->n - 1]);
	list_remove(&f->dirty_link);
	if (f->place == IN_SLOT)
		slot_close(&c->slots, &f->slot);
	mem_free(f->chunks);
	mem_free(f);
}

static void placed_drop(struct loading *l, struct placed *p)
{
	map_remove(&l->places, &p->by_place);
	forget_file(l->c, p->file);
	mem_free(p);
}

static bool placed_make(struct loading *l, const struct cache_record *r, uint64_t h)
{
	struct placed *p = mem_new(struct placed);
	struct cache_file *f = p ? mem_new(struct cache_file) : NULL;
	if (!f) {
		mem_free(p);
		return false;
	}
	uint32_t number = r->place & ~INDEX_AREA;
	*f = (struct cache_file){.cache = l->c, .slot = {number, -1}, .area = number, .place = r->place & INDEX_AREA ? IN_AREA : IN_SLOT};
	p->file = f;
	f->dv = r->dv;
	f->meta = r->meta;
	memset(&f->key, 0, sizeof(f->key)); /* hashed as bytes */
	f->key.cell = r->key.cell;
	f->key.fid = r->key.fid;
	if (!map_insert(&l->places, &p->by_place, h)) {
		mem_free(f);
		mem_free(p);
		return false;
	}
	return true;
}

static bool placed_move(struct loading *l, struct placed *p, uint32_t slot)
{
	uint64_t h = map_hash_u64(&l->places, slot);
	struct placed *there = placed_find(l, slot, h);
	if (there)
		placed_drop(l, there);
	map_remove(&l->places, &p->by_place);
	p->file->place = IN_SLOT;
	p->file->slot.number = slot;
	if (map_insert(&l->places, &p->by_place, h))
		return true;
	forget_file(l->c, p->file);
	mem_free(p);
	return false;
}

/* False: out of memory. */
static bool load_chunk(struct loading *l, struct cache_file *f, const struct cache_record *r, bool late) NO_TSA
{
	struct cache *c = l->c;
	struct chunk *ch = late ? chunk_find(f, r->index) : chunk_make(f, r->index);
	struct bits valid, dirty;
	memcpy(valid.w, r->valid, sizeof(valid.w));
	memcpy(dirty.w, r->dirty, sizeof(dirty.w));
	if (!ch)
		return late;
	if (late) {
		valid = bits_and(&valid, &ch->valid);
		dirty = bits_and(&dirty, &ch->dirty);
	}
	c->used -= bits_count(&ch->valid);
	chunk_clear_dirty(f, ch, &ch->dirty);
	ch->valid = valid;
	c->used += bits_count(&valid);
	chunk_set_dirty(f, ch, &dirty);
	if (!bits_any(&valid))
		chunk_remove(c, ch);
	return true;
}

static bool load_record(void *ctx, const struct cache_record *r) NO_TSA
{
	struct loading *l = ctx;
	bool late = l->fell && r->at >= l->synced;
	if (r->type == CACHE_R_NOTE) {
		note_put(l->c, r);
		return true;
	}
	if (r->type == CACHE_R_UNNOTE) {
		note_drop(l->c, r);
		return true;
	}
	if (r->type == CACHE_R_SYNC)
		return true;
	uint64_t h = map_hash_u64(&l->places, r->place);
	struct placed *p = placed_find(l, r->place, h);
	if (p && r->type == CACHE_R_GONE)
		placed_drop(l, p);
	else if (p && r->type == CACHE_R_MOVED)
		return placed_move(l, p, (uint32_t)r->index);
	else if (p && r->type == CACHE_R_CHUNK)
		return load_chunk(l, p->file, r, late);
	else if (p && r->type == CACHE_R_FILE) {
		p->file->dv = r->dv;
		if (!late)
			p->file->meta = r->meta;
		else
			p->file->meta.pending &= r->meta.pending;
	} else if (!p && r->type == CACHE_R_FILE && !late)
		return placed_make(l, r, h);
	return true;
}

/* What was read becomes the table.  What is clean is not to be believed after the machine fell. */
static void settle_in(struct loading *l) NO_TSA
{
	struct cache *c = l->c;
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&l->places, &cursor, NULL), *next; n; n = next) {
		next = map_walk(&l->places, &cursor, n->next);
		struct placed *p = container_of(n, struct placed, by_place);
		struct cache_file *f = p->file;
		bool orphan = f->dirty || f->meta.pending;
		uint64_t h = key_hash(c, &f->key);
		for (size_t i = f->n; i-- && l->fell;) { /* only dirty pages are left */
			struct chunk *ch = f->chunks[i];
			c->used -= bits_count(&ch->valid);
			ch->valid = ch->dirty;
			c->used += bits_count(&ch->valid);
			if (!bits_any(&ch->valid))
				chunk_remove(c, ch);
		}
		if ((!f->n && !orphan) || (!orphan && (file_find(c, &f->key, h) || !map_insert(&c->files, &f->by_key, h)))) {
			placed_drop(l, p);
			continue;
		}
		if (orphan) {
			f->orphan = true;
			list_push_back(&c->orphans, &f->orphans);
			c->orphan_n++;
		}
		for (size_t i = 0; i < f->n; i++)
			chunk_rest(c, f->chunks[i]);
		if (f->place == IN_AREA)
			c->areas.next = MAX(c->areas.next, f->area + 1);
		else
			c->slots.next = MAX(c->slots.next, f->slot.number + 1);
		map_remove(&l->places, n);
		mem_free(p);
	}
	map_fini(&l->places);
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

static void forget_all(struct cache *c) NO_TSA
{
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&c->files, &cursor, NULL), *next; n; n = next) {
		next = map_walk(&c->files, &cursor, n->next);
		map_remove(&c->files, n);
		forget_file(c, container_of(n, struct cache_file, by_key));
	}
	for (struct list *e; (e = list_pop_front(&c->orphans));)
		forget_file(c, list_entry(e, struct cache_file, orphans));
	for (struct list *e; (e = list_pop_front(&c->notes));)
		mem_free(list_entry(e, struct note, all));
	c->orphan_n = 0;
}

static size_t numbers_of(struct cache *c, uint32_t *v) NO_TSA
{
	size_t n = 0, cursor = 0;
	for (struct map_node *e = map_walk(&c->files, &cursor, NULL); e; e = map_walk(&c->files, &cursor, e->next))
		v[n++] = place_number(container_of(e, struct cache_file, by_key));
	list_each(e, &c->orphans) v[n++] = place_number(list_entry(e, struct cache_file, orphans));
	qsort(v, n, sizeof(*v), by_number); /* areas sort behind slots */
	return n;
}

static afs_err load(struct cache *c) NO_TSA
{
	CLEANUP(buf) struct buf b = {0};
	afs_err err = read_whole(c->log.dir_fd, "log", &b);
	struct cache_log_about about = {0};
	struct loading l = {.c = c};
	uint8_t boot[16];
	map_init(&l.places);
	cache_log_boot(boot);
	if (!err)
		err = cache_log_parse((const uint8_t *)b.data, b.len, &about, NULL, NULL);
	if (!err) {
		l.fell = !about.clean && memcmp(about.boot, boot, sizeof(boot)) != 0;
		l.synced = about.synced;
		c->log.generation = about.generation;
		err = cache_log_parse((const uint8_t *)b.data, b.len, &about, load_record, &l);
	}
	settle_in(&l);
	if (err) {
		if (err != AFS_ENOENT)
			log_warn("cache.log.unusable dir=%s err=%s: starting empty", c->dir, afs_err_name(err));
		forget_all(c);
		c->slots.next = c->areas.next = 0;
	}
	CLEANUP(heap) uint32_t *v = mem_new_array(c->files.count + c->orphan_n + 1, uint32_t);
	if (!v)
		return AFS_ENOMEM;
	struct numbers used = {v, numbers_of(c, v)};
	TRY(slots_sweep(&c->slots, is_number, &used));
	if (!c->areas.next && ftruncate(c->areas.fd, 0) < 0)
		return log_error(AFS_EIO, "cache.dir.unusable path=%s errno=%d", c->dir, errno);
	if (c->orphan_n)
		log_info("cache.orphans.found dir=%s files=%zu dirty_kib=%llu", c->dir, c->orphan_n, (unsigned long long)c->dirty * 4);
	mtx_lock(&c->lock);
	for (uint32_t i = 0; i < c->areas.next; i++)
		if (!is_number(&used, i | INDEX_AREA))
			areas_give(&c->areas, i);
	/* before anything changes: a log of an earlier run must not be found after a fall of the machine */
	err = log_make(c, false, true);
	while (c->used > c->max && cache_evict_one(c))
		;
	mtx_unlock(&c->lock);
	return err;
}

static afs_err open_dir(struct cache *c)
{
	if (!c->dir) {
		TRY(slots_open(&c->slots, NULL));
		return areas_open(&c->areas, -1);
	}
	if (mkdir(c->dir, 0700) < 0 && errno != EEXIST)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			c->dir, errno);
	c->log.dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->log.dir_fd < 0)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			c->dir, errno);
	c->lock_fd = openat(c->log.dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (c->lock_fd < 0)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			c->dir, errno);
	if (flock(c->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return log_error(AFS_EBUSY,
			"cache.dir.in_use path=%s: another client uses it; give each its own",
			c->dir);
	TRY(slots_open(&c->slots, c->dir));
	TRY(areas_open(&c->areas, c->slots.dir_fd));
	return load(c);
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
	list_init(&c->dirty_files);
	list_init(&c->orphans);
	list_init(&c->notes);
	c->max = pages_of(max_bytes);
	c->lock_fd = -1;
	c->slots.dir_fd = c->slots.mem_fd = c->areas.fd = c->log.dir_fd = c->log.fd = -1;
	c->dir = dir ? mem_strdup(dir) : NULL;
	c->area_buf = mem_alloc(AREA_BYTES, 1);
	afs_err err = (c->dir || !dir) && c->area_buf ? open_dir(c) : AFS_ENOMEM;
	if (err) {
		forget_all(c);
		log_fini(c);
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

void cache_close(struct cache *c)
{
	if (!c)
		return;
	/* Content first: after a fall of the machine a log must not name pages that never reached the disk. */
	bool synced = c->log.dir_fd >= 0 && syncfs(c->slots.dir_fd) == 0;
	mtx_lock(&c->lock);
	if (synced)
		(void)log_make(c, true, true); /* it says so; what was there is good for this boot */
	mtx_unlock(&c->lock);
	forget_all(c);
	log_fini(c);
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
}
