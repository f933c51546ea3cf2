/* SPDX-License-Identifier: BSD-2-Clause
 * Chunks of a file, by rising index, and room for their pages. */
#include "client/cache/inside.h"

#include "cell/base/log.h"

#include <string.h>

#define ROOM_WAIT SEC(60)

/* --- chunks of a file ------------------------------------------------------------------------- */

size_t chunk_at(const struct cache_file *f, uint64_t index) /* first with index >= */
{
	size_t lo = 0, hi = f->n;
	if (hi && f->chunks[hi - 1]->index < index)
		return hi;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (f->chunks[mid]->index < index)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct chunk *chunk_find(const struct cache_file *f, uint64_t index)
{
	size_t i = chunk_at(f, index);
	return i < f->n && f->chunks[i]->index == index ? f->chunks[i] : NULL;
}

struct chunk *chunk_make(struct cache_file *f, uint64_t index)
{
	size_t i = chunk_at(f, index);
	if (i < f->n && f->chunks[i]->index == index)
		return f->chunks[i];
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 2;
		struct chunk **more = mem_resize(f->chunks, f->cap, cap, sizeof(*more));
		if (!more)
			return NULL;
		f->chunks = more;
		f->cap = cap;
	}
	struct chunk *ch = mem_new(struct chunk);
	if (!ch)
		return NULL;
	ch->file = f;
	ch->index = index;
	memmove(f->chunks + i + 1, f->chunks + i, (f->n - i) * sizeof(*f->chunks));
	f->chunks[i] = ch;
	f->n++;
	f->cache->chunks++;
	return ch;
}

void chunk_rest(struct cache *c, struct chunk *ch) /* LRU membership after a change */
{
	bool clean = !bits_any(&ch->dirty) && !bits_any(&ch->storing) && !ch->file->durable;
	if (clean && !list_linked(&ch->lru))
		list_push_back(&c->lru, &ch->lru);
	else if (!clean)
		list_remove(&ch->lru);
}

void chunk_remove(struct cache *c, struct chunk *ch)
{
	struct cache_file *f = ch->file;
	struct bits lost = bits_and(&ch->valid, &ch->dirty);
	unsigned dirty = bits_count(&lost);
	f->dirty -= dirty;
	c->dirty -= dirty;
	f->storing -= bits_count(&ch->storing);
	c->used -= bits_count(&ch->valid);
	list_remove(&ch->lru);
	size_t i = chunk_at(f, ch->index);
	memmove(f->chunks + i, f->chunks + i + 1, (f->n - i - 1) * sizeof(*f->chunks));
	f->n--;
	c->chunks--;
	mem_free(ch);
}

void chunk_set_dirty(struct cache_file *f, struct chunk *ch, const struct bits *m)
{
	struct bits fresh = bits_but(m, &ch->dirty);
	unsigned n = bits_count(&fresh);
	ch->dirty = bits_or(&ch->dirty, m);
	f->dirty += n;
	f->cache->dirty += n;
	f->touched = true;
	if (!list_linked(&f->dirty_link))
		list_push_back(&f->cache->dirty_files, &f->dirty_link);
}

void chunk_clear_dirty(struct cache_file *f, struct chunk *ch, const struct bits *m)
{
	struct bits gone = bits_and(m, &ch->dirty);
	unsigned n = bits_count(&gone);
	ch->dirty = bits_but(&ch->dirty, m);
	f->dirty -= n;
	f->cache->dirty -= n;
}

/* --- room -------------------------------------------------------------------------------------- */

/* Punch out the chunk that rested longest.  Drops the lock meanwhile. */
bool cache_evict_one(struct cache *c) REQUIRES(c->lock)
{
	for (struct list *e = c->lru.next; e != &c->lru; e = e->next) {
		struct chunk *ch = list_entry(e, struct chunk, lru);
		struct cache_file *f = ch->file;
		if (ch->busy || ch->readers)
			continue;
		if (bits_any(&ch->valid)) {
			if (io_begin(c, f) != AFS_OK)
				return false;
			ch->busy = ch->going = true;
			static const struct bits none;
			log_chunk_as(c, ch, &none, &none);
			mtx_unlock(&c->lock);
			place_punch(f, ch->index * CACHE_CHUNK, CACHE_CHUNK);
			mtx_lock(&c->lock);
			chunk_remove(c, ch);
			io_end(c, f);
		} else {
			chunk_remove(c, ch);
		}
		file_free_if_unused(c, f);
		return true;
	}
	return false;
}

afs_err cache_reserve(struct cache *c, uint64_t pages) REQUIRES(c->lock)
{
	mono_ns until = 0;
	while (c->used + c->reserved + pages > c->max) {
		if (cache_evict_one(c))
			continue;
		if (!until)
			until = clk_mono() + ROOM_WAIT;
		if (!cond_wait_until(&c->changed, &c->lock, until))
			return log_error(AFS_ENOSPC,
				"cache.room.none used_kib=%llu dirty_kib=%llu max_kib=%llu: "
				"everything waits to be stored",
				(unsigned long long)c->used * 4, (unsigned long long)c->dirty * 4,
				(unsigned long long)c->max * 4);
	}
	c->reserved += pages;
	return AFS_OK;
}

/* The chunk, once it is nobody's, busy for the caller.  NULL: out of memory. */
struct chunk *chunk_claim(struct cache *c, struct cache_file *f, uint64_t index) REQUIRES(c->lock)
{
	for (;;) {
		struct chunk *ch = chunk_make(f, index);
		if (!ch || !ch->busy) {
			if (ch)
				ch->busy = true;
			return ch;
		}
		cond_wait(&c->changed, &c->lock);
	}
}

void chunk_release(struct cache *c, struct chunk *ch) REQUIRES(c->lock)
{
	ch->busy = false;
	if (!bits_any(&ch->valid) && !ch->readers)
		chunk_remove(c, ch);
	else
		chunk_rest(c, ch);
	cond_broadcast(&c->changed);
}

void chunk_made_valid(struct cache *c, struct chunk *ch, const struct bits *m) REQUIRES(c->lock)
{
	struct bits fresh = bits_but(m, &ch->valid);
	c->used += bits_count(&fresh);
	ch->valid = bits_or(&ch->valid, m);
}
