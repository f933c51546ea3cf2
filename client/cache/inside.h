/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cache from within: chunks.c (which pages, and room for them), place.c (where content is on disk),
 * content.c (reading, filling, writing, dropping, storing), log.c (what outlives a crash), cache.c (the
 * table, start and end).
 *
 * What always holds:
 *   - whoever makes a page valid writes all of it: what an invalid page holds on disk is anything;
 *   - `used` counts valid pages, `reserved` those on their way to become valid, and their sum never
 *     passes `max`;
 *   - a chunk is on the LRU list exactly when none of its pages is dirty or being stored;
 *   - the log says that a page is clean only while its place holds just that: a change of a clean page, a cut, and
 *     a hole are told to the log before they are made, what became valid after; so whenever the process is
 *     killed, the log names no page that holds anything else;
 *   - `busy` on a chunk gives one operation the right to change which of its pages are valid, without
 *     the lock; `readers` only forbid punching.
 * One lock guards all; it is never held across reading, writing, punching or waiting for room. */
#pragma once
#include "cell/base/list.h"
#include "cell/base/map.h"
#include "cell/base/mtx.h"
#include "client/cache/cache.h"
#include "client/cache/slot.h"

#include <sys/types.h>

enum { WORDS = CACHE_CHUNK_PAGES / 64 };
#define INDEX_AREA (1u << 31) /* in the index: the number is an area's */

struct bits {
	uint64_t w[WORDS];
};
struct chunk {
	struct list lru;
	struct cache_file *file;
	uint64_t index;
	struct bits valid, dirty, storing;
	uint16_t readers;
	bool busy, going; /* going: busy and to be removed */
};

struct cache_file {
	struct map_node by_key;
	struct list open_lru; /* of files with a descriptor and nobody at work */
	struct cache *cache;
	struct cache_key key;
	struct slot slot; /* its own sparse file, */
	uint32_t area;    /* or its place in the file that all small files share */
	enum { NOWHERE, IN_AREA, IN_SLOT } place;
	unsigned refs, io;
	uint32_t ticket;
	uint64_t dv;
	struct cache_meta meta;
	struct list dirty_link; /* of cache->dirty_files: perhaps something is dirty */
	struct list orphans;    /* of a run that ended; not in the table then */
	bool orphan;
	bool touched; /* made dirty since cache_sync looked */
	bool durable; /* the log on disk says that it is dirty */
	struct chunk **chunks; /* by index, rising */
	size_t n, cap;
	uint64_t dirty, storing; /* pages */
};

struct note {
	struct list all;
	struct cache_record r;
};

struct cache_log {
	int dir_fd, fd; /* dir_fd -1: a cache in memory */
	uint8_t *map;   /* of [start, end) of the file; NULL: there is no log at this time */
	size_t map_len, start, at, end;
	uint64_t generation;
	mono_ns again;
};

struct cache {
	struct mtx lock;
	struct cond changed;
	struct slots slots;
	struct areas areas;
	struct map files GUARDED_BY(lock);
	struct list lru GUARDED_BY(lock);
	struct list open_files GUARDED_BY(lock);
	size_t fds GUARDED_BY(lock);
	uint64_t used, reserved, max, dirty GUARDED_BY(lock); /* pages */
	uint64_t chunks GUARDED_BY(lock);
	uint8_t *area_buf; /* AREA_BYTES, to move files out of areas */
	char *dir;
	int lock_fd;
	struct cache_log log GUARDED_BY(lock);
	struct list dirty_files GUARDED_BY(lock), orphans GUARDED_BY(lock), notes GUARDED_BY(lock);
	size_t orphan_n GUARDED_BY(lock);
};

/* --- bits --- */

static inline bool bit(const struct bits *b, unsigned i) { return b->w[i / 64] >> i % 64 & 1; }
static inline struct bits mask(unsigned from, unsigned to) /* pages [from, to) */
{
	struct bits m = {0};
	for (unsigned w = 0; w < WORDS; w++) {
		unsigned lo = w * 64, hi = lo + 64;
		if (to <= lo || from >= hi)
			continue;
		uint64_t x = ~UINT64_C(0);
		if (from > lo)
			x &= ~UINT64_C(0) << (from - lo);
		if (to < hi)
			x &= ~UINT64_C(0) >> (hi - to);
		m.w[w] = x;
	}
	return m;
}
#define BITS_OP(name, expr)                                                                        \
	static inline struct bits name(const struct bits *a, const struct bits *b)                 \
	{                                                                                          \
		struct bits r;                                                                     \
		for (unsigned i = 0; i < WORDS; i++)                                               \
			r.w[i] = (expr);                                                           \
		return r;                                                                          \
	}
BITS_OP(bits_and, a->w[i] & b->w[i])
BITS_OP(bits_or, a->w[i] | b->w[i])
BITS_OP(bits_but, a->w[i] & ~b->w[i])

static inline unsigned bits_count(const struct bits *b)
{
	unsigned n = 0;
	for (unsigned i = 0; i < WORDS; i++)
		n += (unsigned)__builtin_popcountll(b->w[i]);
	return n;
}
static inline bool bits_any(const struct bits *b)
{
	uint64_t x = 0;
	for (unsigned i = 0; i < WORDS; i++)
		x |= b->w[i];
	return x;
}
/* The first page at or after `i` whose bit is `on`; CACHE_CHUNK_PAGES when there is none. */
static inline unsigned bits_next(const struct bits *b, unsigned i, bool on)
{
	while (i < CACHE_CHUNK_PAGES) {
		uint64_t x = (on ? b->w[i / 64] : ~b->w[i / 64]) >> i % 64;
		if (x)
			return i + (unsigned)__builtin_ctzll(x);
		i = (i / 64 + 1) * 64;
	}
	return CACHE_CHUNK_PAGES;
}

/* --- chunks.c: all with the lock held --- */

size_t chunk_at(const struct cache_file *f, uint64_t index); /* first with index >= */
struct chunk *chunk_find(const struct cache_file *f, uint64_t index);
struct chunk *chunk_make(struct cache_file *f, uint64_t index); /* NULL: out of memory */
void chunk_rest(struct cache *c, struct chunk *ch);             /* LRU membership after a change */
void chunk_remove(struct cache *c, struct chunk *ch);
/* The chunk, once it is nobody's, busy for the caller.  NULL: out of memory. */
struct chunk *chunk_claim(struct cache *c, struct cache_file *f, uint64_t index) REQUIRES(c->lock);
void chunk_release(struct cache *c, struct chunk *ch) REQUIRES(c->lock);
void chunk_set_dirty(struct cache_file *f, struct chunk *ch, const struct bits *m);
void chunk_clear_dirty(struct cache_file *f, struct chunk *ch, const struct bits *m);
void chunk_made_valid(struct cache *c, struct chunk *ch, const struct bits *m) REQUIRES(c->lock);
/* Punch out the chunk that rested longest; drops the lock meanwhile.  False: there is none. */
bool cache_evict_one(struct cache *c) REQUIRES(c->lock);
/* Room for so many pages, counted as reserved; waits for stores.  AFS_ENOSPC. */
afs_err cache_reserve(struct cache *c, uint64_t pages) REQUIRES(c->lock);

/* --- place.c --- */

void file_free_if_unused(struct cache *c, struct cache_file *f) REQUIRES(c->lock);
/* Content has a place, and its descriptor stays open until io_end(). */
afs_err io_begin(struct cache *c, struct cache_file *f) REQUIRES(c->lock);
/* The same, for content that ends at `end`: it may have to move first. */
afs_err io_begin_to(struct cache *c, struct cache_file *f, uint64_t end) REQUIRES(c->lock);
void io_end(struct cache *c, struct cache_file *f) REQUIRES(c->lock);
/* Between these two, without the lock: */
ssize_t place_read(const struct cache_file *f, uint64_t off, void *p, size_t n);
/* `n` bytes of p at off (nothing when p is NULL), with so many zeros before and behind. */
afs_err place_write(struct cache_file *f, const uint8_t *p, size_t n, uint64_t off, size_t before,
	size_t behind);
/* Give the disk its blocks back.  Where that fails they stay in use, and nothing else is wrong. */
void place_punch(struct cache_file *f, uint64_t off, uint64_t len);
afs_err write_plain(int fd, const uint8_t *p, size_t n, uint64_t off);
/* The place as records name it. */
uint32_t place_number(const struct cache_file *f);

/* --- log.c: all with the lock held, except log_flush --- */

/* Make the log anew; `clean`: the last of this run.  `durable`: it is on disk when this returns. */
afs_err log_make(struct cache *c, bool clean, bool durable) REQUIRES(c->lock);
void log_append(struct cache *c, const struct cache_record *r) REQUIRES(c->lock);
void log_file(struct cache *c, const struct cache_file *f) REQUIRES(c->lock);
void log_chunk(struct cache *c, const struct chunk *ch) REQUIRES(c->lock);
/* As it is about to be. */
void log_chunk_as(struct cache *c, const struct chunk *ch, const struct bits *valid, const struct bits *dirty)
	REQUIRES(c->lock);
void log_gone(struct cache *c, uint32_t place) REQUIRES(c->lock);
void log_flush(struct cache *c); /* what was appended is on disk */
void log_fini(struct cache *c);
