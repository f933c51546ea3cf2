/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Chunks, room and content.  What always holds:
 *   - whoever makes a page valid writes all of it: what an invalid page holds on disk is anything;
 *   - `used` counts valid pages, `reserved` those on their way to become valid, and their sum never
 *     passes `max`;
 *   - a chunk is on the LRU list exactly when none of its pages is dirty or being stored;
 *   - `busy` on a chunk gives one operation the right to change which of its pages are valid, without
 *     the lock; `readers` only forbid punching.
 * One lock guards all; it is never held across reading, writing, punching or waiting for room. */
#include "client/cache/cache.h"

#include "cell/base/list.h"
#include "cell/base/log.h"
#include "cell/base/map.h"
#include "cell/base/mtx.h"
#include "client/cache/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WORDS = CACHE_CHUNK_PAGES / 64, FDS_MAX = 400 };
#define INDEX_AREA (1u << 31) /* in the index: the number is an area's */
#define ROOM_WAIT SEC(60)

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
	struct slot slot;  /* its own sparse file, */
	uint32_t area;     /* or its place in the file that all small files share */
	enum { NOWHERE, IN_AREA, IN_SLOT } place;
	unsigned refs, io;
	uint32_t ticket;
	uint64_t dv;
	struct chunk **chunks; /* by index, rising */
	size_t n, cap;
	uint64_t dirty, storing; /* pages */
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
};

/* --- bits of one chunk ---------------------------------------------------------------------- */

static bool bit(const struct bits *b, unsigned i) { return b->w[i / 64] >> i % 64 & 1; }
static struct bits mask(unsigned from, unsigned to) /* pages [from, to) */
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
	static struct bits name(const struct bits *a, const struct bits *b)                        \
	{                                                                                          \
		struct bits r;                                                                     \
		for (unsigned i = 0; i < WORDS; i++)                                               \
			r.w[i] = (expr);                                                           \
		return r;                                                                          \
	}
BITS_OP(bits_and, a->w[i] & b->w[i])
BITS_OP(bits_or, a->w[i] | b->w[i])
BITS_OP(bits_but, a->w[i] & ~b->w[i])

static unsigned bits_count(const struct bits *b)
{
	unsigned n = 0;
	for (unsigned i = 0; i < WORDS; i++)
		n += (unsigned)__builtin_popcountll(b->w[i]);
	return n;
}
static bool bits_any(const struct bits *b)
{
	uint64_t x = 0;
	for (unsigned i = 0; i < WORDS; i++)
		x |= b->w[i];
	return x;
}
/* The first page at or after `i` whose bit is `on`; CACHE_CHUNK_PAGES when there is none. */
static unsigned bits_next(const struct bits *b, unsigned i, bool on)
{
	while (i < CACHE_CHUNK_PAGES) {
		uint64_t x = (on ? b->w[i / 64] : ~b->w[i / 64]) >> i % 64;
		if (x)
			return i + (unsigned)__builtin_ctzll(x);
		i = (i / 64 + 1) * 64;
	}
	return CACHE_CHUNK_PAGES;
}

/* --- chunks of a file ------------------------------------------------------------------------- */

static size_t chunk_at(const struct cache_file *f, uint64_t index) /* first with index >= */
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

static struct chunk *chunk_find(const struct cache_file *f, uint64_t index)
{
	size_t i = chunk_at(f, index);
	return i < f->n && f->chunks[i]->index == index ? f->chunks[i] : NULL;
}

static struct chunk *chunk_make(struct cache_file *f, uint64_t index)
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

static void chunk_rest(struct cache *c, struct chunk *ch) /* LRU membership after a change */
{
	bool clean = !bits_any(&ch->dirty) && !bits_any(&ch->storing);
	if (clean && !list_linked(&ch->lru))
		list_push_back(&c->lru, &ch->lru);
	else if (!clean)
		list_remove(&ch->lru);
}

static void chunk_remove(struct cache *c, struct chunk *ch)
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

static void set_dirty(struct cache_file *f, struct chunk *ch, const struct bits *m)
{
	struct bits fresh = bits_but(m, &ch->dirty);
	unsigned n = bits_count(&fresh);
	ch->dirty = bits_or(&ch->dirty, m);
	f->dirty += n;
	f->cache->dirty += n;
}

static void clear_dirty(struct cache_file *f, struct chunk *ch, const struct bits *m)
{
	struct bits gone = bits_and(m, &ch->dirty);
	unsigned n = bits_count(&gone);
	ch->dirty = bits_but(&ch->dirty, m);
	f->dirty -= n;
	f->cache->dirty -= n;
}

/* --- files and descriptors ---------------------------------------------------------------------- */

static void file_free_if_unused(struct cache *c, struct cache_file *f) REQUIRES(c->lock)
{
	if (f->refs || f->io || f->n)
		return;
	map_remove(&c->files, &f->by_key);
	if (list_linked(&f->open_lru))
		list_remove(&f->open_lru);
	if (f->place == IN_SLOT) {
		if (f->slot.fd >= 0)
			c->fds--;
		slots_give(&c->slots, f->slot);
	} else if (f->place == IN_AREA) {
		areas_give(&c->areas, f->area);
	}
	mem_free(f->chunks);
	mem_free(f);
}

static afs_err slot_ready(struct cache *c, struct slot *slot, bool take) REQUIRES(c->lock)
{
	if (c->fds >= FDS_MAX) {
		struct list *e = list_pop_front(&c->open_files);
		if (e) {
			struct cache_file *old = list_entry(e, struct cache_file, open_lru);
			close(old->slot.fd);
			old->slot.fd = -1;
			c->fds--;
		}
	}
	TRY(take ? slots_take(&c->slots, slot) : slot_open(&c->slots, slot));
	c->fds++;
	return AFS_OK;
}

/* Content has a place, and its descriptor stays open until io_end(). */
static afs_err io_begin(struct cache *c, struct cache_file *f) REQUIRES(c->lock)
{
	if (f->place == NOWHERE) {
		TRY(areas_take(&c->areas, &f->area));
		f->place = IN_AREA;
	} else if (f->place == IN_SLOT && f->slot.fd < 0) {
		TRY(slot_ready(c, &f->slot, false));
	}
	f->io++;
	list_remove(&f->open_lru);
	return AFS_OK;
}

static void io_end(struct cache *c, struct cache_file *f) REQUIRES(c->lock)
{
	if (--f->io == 0 && f->place == IN_SLOT) {
		list_push_back(&c->open_files, &f->open_lru);
	} else if (f->io == 0 && f->place == IN_AREA && !f->n) {
		areas_give(&c->areas, f->area);
		f->place = NOWHERE;
	}
	cond_broadcast(&c->changed);
}

/* Where a file's content is; valid between io_begin and io_end. */
static int fd_of(const struct cache_file *f)
{
	return f->place == IN_SLOT ? f->slot.fd : f->cache->areas.fd;
}
static off_t at_of(const struct cache_file *f, uint64_t off)
{
	return (off_t)(f->place == IN_SLOT ? off : (uint64_t)f->area * AREA_BYTES + off);
}

/* Give the disk its blocks back.  Where that fails they stay in use, and nothing else is wrong. */
static void punch(struct cache_file *f, uint64_t off, uint64_t len)
{
	if (f->place != IN_SLOT)
		return; /* an area is punched as a whole, when it is given back and not taken again soon */
	if (fallocate(fd_of(f), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at_of(f, off), (off_t)len) < 0)
		log_debug("cache.punch.failed errno=%d", errno);
}

/* `n` bytes of p at off (nothing when p is NULL), with so many zeros before and behind. */
static afs_err write_padded(struct cache_file *f, const uint8_t *p, size_t n, uint64_t off, size_t before, size_t behind)
{
	static const uint8_t zeros[CACHE_PAGE];
	struct iovec iov[3] = {{(void *)(uintptr_t)zeros, before}, {(void *)(uintptr_t)p, n}, {(void *)(uintptr_t)zeros, behind}};
	struct iovec *v = iov;
	int count = 3;
	off_t at = at_of(f, off - before);
	for (;;) {
		while (count && !v->iov_len)
			v++, count--;
		if (!count)
			return AFS_OK;
		ssize_t w = pwritev(fd_of(f), v, count, at);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return errno == ENOSPC || errno == EDQUOT ? AFS_ENOSPC : AFS_EIO;
		at += w;
		for (; count && (size_t)w >= v->iov_len; v++, count--)
			w -= (ssize_t)v->iov_len;
		if (count) {
			v->iov_base = (uint8_t *)v->iov_base + w;
			v->iov_len -= (size_t)w;
		}
	}
}

static afs_err write_plain(int fd, const uint8_t *p, size_t n, uint64_t off)
{
	while (n) {
		ssize_t w = pwrite(fd, p, n, (off_t)off);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return errno == ENOSPC || errno == EDQUOT ? AFS_ENOSPC : AFS_EIO;
		p += w;
		n -= (size_t)w;
		off += (uint64_t)w;
	}
	return AFS_OK;
}

/* --- room -------------------------------------------------------------------------------------- */

/* Punch out the chunk that rested longest.  Drops the lock meanwhile. */
static bool evict_one(struct cache *c) REQUIRES(c->lock)
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
			mtx_unlock(&c->lock);
			punch(f, ch->index * CACHE_CHUNK, CACHE_CHUNK);
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

static afs_err reserve(struct cache *c, uint64_t pages) REQUIRES(c->lock)
{
	mono_ns until = 0;
	while (c->used + c->reserved + pages > c->max) {
		if (evict_one(c))
			continue;
		if (!until)
			until = clk_mono() + ROOM_WAIT;
		if (!cond_wait_until(&c->changed, &c->lock, until))
			return log_error(AFS_ENOSPC,
				"cache.room.none used_kib=%llu dirty_kib=%llu max_kib=%llu: everything waits to be stored",
				(unsigned long long)c->used * 4, (unsigned long long)c->dirty * 4,
				(unsigned long long)c->max * 4);
	}
	c->reserved += pages;
	return AFS_OK;
}

/* The chunk, once it is nobody's, busy for the caller.  NULL: out of memory. */
static struct chunk *chunk_claim(struct cache *c, struct cache_file *f, uint64_t index) REQUIRES(c->lock)
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

static void chunk_release(struct cache *c, struct chunk *ch) REQUIRES(c->lock)
{
	ch->busy = false;
	if (!bits_any(&ch->valid) && !ch->readers)
		chunk_remove(c, ch);
	else
		chunk_rest(c, ch);
	cond_broadcast(&c->changed);
}

static void made_valid(struct cache *c, struct chunk *ch, const struct bits *m) REQUIRES(c->lock)
{
	struct bits fresh = bits_but(m, &ch->valid);
	c->used += bits_count(&fresh);
	ch->valid = bits_or(&ch->valid, m);
}

/* A file that outgrows its area gets a slot.  Nobody is at work on it meanwhile: `busy` on its only
 * chunk keeps writers away, and readers are waited for. */
static afs_err move_out(struct cache *c, struct cache_file *f) REQUIRES(c->lock)
{
	while (f->place != IN_SLOT && (f->io || (f->n && f->chunks[0]->busy)))
		cond_wait(&c->changed, &c->lock);
	if (f->place == IN_SLOT)
		return AFS_OK;
	struct slot slot;
	TRY(slot_ready(c, &slot, true));
	afs_err err = AFS_OK;
	if (f->n) { /* under the lock: at most 64 KiB, once in a file's life */
		uint8_t *buf = c->area_buf;
		struct chunk *ch = f->chunks[0];
		for (unsigned i = bits_next(&ch->valid, 0, true); i < CACHE_CHUNK_PAGES && !err;) {
			unsigned end = bits_next(&ch->valid, i, false);
			size_t n = (size_t)(end - i) * CACHE_PAGE;
			if (pread(c->areas.fd, buf, n, at_of(f, (uint64_t)i * CACHE_PAGE)) != (ssize_t)n)
				err = AFS_EIO;
			else
				err = write_plain(slot.fd, buf, n, (uint64_t)i * CACHE_PAGE);
			i = bits_next(&ch->valid, end, true);
		}
	}
	if (err) {
		c->fds--;
		slots_give(&c->slots, slot);
		return log_error(err, "cache.slot.unwritable slot=%08x", slot.number);
	}
	if (f->place == IN_AREA)
		areas_give(&c->areas, f->area);
	f->slot = slot;
	f->place = IN_SLOT;
	list_push_back(&c->open_files, &f->open_lru);
	return AFS_OK;
}

/* As io_begin, for content that ends at `end`. */
static afs_err io_begin_to(struct cache *c, struct cache_file *f, uint64_t end) REQUIRES(c->lock)
{
	if (end > AREA_BYTES && f->place != IN_SLOT)
		TRY(move_out(c, f));
	return io_begin(c, f);
}

/* --- reading ------------------------------------------------------------------------------------ */

afs_err cache_read(struct cache_file *f, uint64_t off, void *buf, size_t len, size_t *got)
{
	struct cache *c = f->cache;
	afs_err err = AFS_OK;
	size_t done = 0;
	mtx_lock(&c->lock);
	while (done < len && !err) {
		uint64_t at = off + done;
		unsigned first = (unsigned)(at % CACHE_CHUNK / CACHE_PAGE);
		struct chunk *ch = chunk_find(f, at / CACHE_CHUNK);
		if (ch && ch->going) {
			cond_wait(&c->changed, &c->lock);
			continue;
		}
		unsigned last = ch ? bits_next(&ch->valid, first, false) : first;
		if (last == first)
			break;
		size_t n = MIN(len - done, (size_t)(at / CACHE_CHUNK * CACHE_CHUNK + (uint64_t)last * CACHE_PAGE - at));
		err = io_begin(c, f);
		if (err)
			break;
		ch->readers++;
		if (list_linked(&ch->lru)) {
			list_remove(&ch->lru);
			list_push_back(&c->lru, &ch->lru);
		}
		mtx_unlock(&c->lock);
		ssize_t r = pread(fd_of(f), (char *)buf + done, n, at_of(f, at));
		if (r >= 0 && (size_t)r < n) /* the slot ends in a hole */
			memset((char *)buf + done + r, 0, n - (size_t)r);
		mtx_lock(&c->lock);
		ch->readers--;
		io_end(c, f);
		if (r < 0)
			err = log_error(AFS_EIO, "cache.content.unreadable slot=%08x errno=%d", f->slot.number, errno);
		else
			done += n;
	}
	mtx_unlock(&c->lock);
	*got = done;
	return done ? AFS_OK : err;
}

afs_err cache_read_raw(struct cache_file *f, uint64_t off, void *buf, size_t len)
{
	char *p = buf;
	while (len) {
		size_t n;
		TRY(cache_read(f, off, p, len, &n));
		if (!n) { /* cut off meanwhile: the server is told to cut too */
			n = MIN(len, (size_t)(CACHE_PAGE - off % CACHE_PAGE));
			memset(p, 0, n);
		}
		p += n;
		off += n;
		len -= n;
	}
	return AFS_OK;
}

bool cache_gap(struct cache_file *f, uint64_t from, uint64_t to, uint64_t *start, uint64_t *end)
{
	struct cache *c = f->cache;
	bool found = false;
	uint64_t page = from / CACHE_PAGE, stop = (to + CACHE_PAGE - 1) / CACHE_PAGE;
	mtx_lock(&c->lock);
	while (page < stop) {
		uint64_t base = page / CACHE_CHUNK_PAGES * CACHE_CHUNK_PAGES;
		struct chunk *ch = chunk_find(f, page / CACHE_CHUNK_PAGES);
		static const struct bits none;
		const struct bits *valid = ch && !ch->going ? &ch->valid : &none;
		unsigned i = bits_next(valid, (unsigned)(page - base), found);
		if (!found && i < CACHE_CHUNK_PAGES && base + i < stop) {
			found = true;
			*start = (base + i) * CACHE_PAGE;
			page = base + i;
			continue;
		}
		if (found && i < CACHE_CHUNK_PAGES) {
			stop = MIN(stop, base + i);
			break;
		}
		page = base + CACHE_CHUNK_PAGES;
	}
	mtx_unlock(&c->lock);
	if (found)
		*end = stop * CACHE_PAGE;
	return found;
}

/* --- writing ------------------------------------------------------------------------------------- */

/* The first page of [off, off + len) that would keep bytes which only the server has. */
static bool lacks(const struct chunk *ch, uint64_t off, size_t len, uint64_t fresh, uint64_t *need)
{
	const uint64_t ends[2] = {off / CACHE_PAGE, (off + len - 1) / CACHE_PAGE};
	for (int i = 0; i < 2; i++) {
		uint64_t start = ends[i] * CACHE_PAGE, stop = MIN(start + CACHE_PAGE, fresh);
		if (bit(&ch->valid, (unsigned)(ends[i] % CACHE_CHUNK_PAGES)) || start >= fresh)
			continue;
		if (off > start || off + len < stop) {
			*need = start;
			return true;
		}
	}
	return false;
}

afs_err cache_write(
	struct cache_file *f, uint64_t off, const void *buf, size_t len, uint64_t fresh, uint64_t *need)
{
	struct cache *c = f->cache;
	const uint8_t *p = buf;
	if (off > CACHE_FILE_MAX || len > CACHE_FILE_MAX - off)
		return AFS_EFBIG;
	while (len) {
		size_t n = MIN(len, (size_t)(CACHE_CHUNK - off % CACHE_CHUNK));
		unsigned first = (unsigned)(off % CACHE_CHUNK / CACHE_PAGE);
		unsigned last = (unsigned)((off % CACHE_CHUNK + n + CACHE_PAGE - 1) / CACHE_PAGE);
		struct bits m = mask(first, last);

		mtx_lock(&c->lock);
		afs_err err = reserve(c, last - first);
		if (err) {
			mtx_unlock(&c->lock);
			return err;
		}
		/* the place before the chunk: who moves a file out waits for its busy chunk */
		struct chunk *ch = NULL;
		err = io_begin_to(c, f, off + n);
		bool io = !err;
		if (!err && !(ch = chunk_claim(c, f, off / CACHE_CHUNK)))
			err = AFS_ENOMEM;
		if (!err && lacks(ch, off, n, fresh, need))
			err = AFS_EAGAIN;
		if (!err) {
			size_t before = bit(&ch->valid, first) ? 0 : off % CACHE_PAGE;
			size_t behind = bit(&ch->valid, last - 1) ? 0 : (CACHE_PAGE - (off + n) % CACHE_PAGE) % CACHE_PAGE;
			mtx_unlock(&c->lock);
			err = write_padded(f, p, n, off, before, behind);
			mtx_lock(&c->lock);
			/* after a failure pages that were valid may hold half of it: they are ours to store */
			struct bits done = bits_and(&m, &ch->valid);
			if (!err) {
				made_valid(c, ch, &m);
				done = m;
			} else {
				(void)log_error(err, "cache.content.unwritable slot=%08x", f->slot.number);
			}
			set_dirty(f, ch, &done);
		}
		c->reserved -= last - first;
		if (ch)
			chunk_release(c, ch);
		if (io)
			io_end(c, f);
		mtx_unlock(&c->lock);
		if (err)
			return err;
		p += n;
		off += n;
		len -= n;
	}
	return AFS_OK;
}

uint32_t cache_fill_ticket(struct cache_file *f)
{
	mtx_lock(&f->cache->lock);
	uint32_t ticket = f->ticket;
	mtx_unlock(&f->cache->lock);
	return ticket;
}

/* Write `p` (zeros when NULL) into the invalid pages of [first, last) of a claimed chunk. */
static afs_err fill_pages(struct cache_file *f, const struct chunk *ch, unsigned first, unsigned last,
	const uint8_t *p, size_t n)
{
	uint64_t base = ch->index * CACHE_CHUNK;
	for (unsigned i = bits_next(&ch->valid, first, false); i < last;) {
		unsigned end = MIN(bits_next(&ch->valid, i, true), last);
		size_t at = (size_t)(i - first) * CACHE_PAGE;
		size_t want = (size_t)(end - i) * CACHE_PAGE;
		if (p) {
			size_t have = at < n ? MIN(want, n - at) : 0;
			TRY(write_padded(f, p + at, have, base + (uint64_t)i * CACHE_PAGE, 0, want - have));
		} else {
			for (unsigned k = i; k < end; k++)
				TRY(write_padded(f, NULL, 0, base + (uint64_t)k * CACHE_PAGE, 0, CACHE_PAGE));
		}
		i = bits_next(&ch->valid, end, false);
	}
	return AFS_OK;
}

static afs_err fill(struct cache_file *f, uint32_t ticket, uint64_t off, const uint8_t *p, uint64_t len)
{
	struct cache *c = f->cache;
	if (off > CACHE_FILE_MAX || len > CACHE_FILE_MAX - off)
		return AFS_EFBIG;
	while (len) {
		size_t n = (size_t)MIN(len, CACHE_CHUNK - off % CACHE_CHUNK);
		unsigned first = (unsigned)(off % CACHE_CHUNK / CACHE_PAGE);
		unsigned last = (unsigned)((off % CACHE_CHUNK + n + CACHE_PAGE - 1) / CACHE_PAGE);
		struct bits m = mask(first, last);

		mtx_lock(&c->lock);
		afs_err err = ticket == f->ticket ? reserve(c, last - first) : AFS_EAGAIN;
		if (err) {
			mtx_unlock(&c->lock);
			return err;
		}
		struct chunk *ch = NULL;
		err = io_begin_to(c, f, off + n);
		bool io = !err;
		if (!err && !(ch = chunk_claim(c, f, off / CACHE_CHUNK)))
			err = AFS_ENOMEM;
		if (!err) {
			mtx_unlock(&c->lock);
			err = fill_pages(f, ch, first, last, p, n);
			mtx_lock(&c->lock);
			if (!err && ticket != f->ticket)
				err = AFS_EAGAIN;
			if (!err)
				made_valid(c, ch, &m);
		}
		c->reserved -= last - first;
		if (ch)
			chunk_release(c, ch);
		if (io)
			io_end(c, f);
		mtx_unlock(&c->lock);
		if (err)
			return err;
		if (p)
			p += n;
		off += n;
		len -= n;
	}
	return AFS_OK;
}

afs_err cache_fill(struct cache_file *f, uint32_t ticket, uint64_t off, const void *buf, size_t len)
{
	return fill(f, ticket, off, buf, len);
}
afs_err cache_fill_zero(struct cache_file *f, uint32_t ticket, uint64_t off, uint64_t len)
{
	return fill(f, ticket, off, NULL, len);
}

/* --- dropping ------------------------------------------------------------------------------------- */

/* Make the clean pages of [from, to) (dirty ones too, when `dirty`) invalid, chunk by chunk. */
static void drop(struct cache *c, struct cache_file *f, uint64_t from, uint64_t to, bool dirty) REQUIRES(c->lock)
{
	uint64_t page = from / CACHE_PAGE, stop = (to + CACHE_PAGE - 1) / CACHE_PAGE;
	while (page < stop) {
		size_t at = chunk_at(f, page / CACHE_CHUNK_PAGES);
		if (at == f->n)
			return;
		struct chunk *ch = f->chunks[at];
		if (ch->busy || ch->readers) {
			cond_wait(&c->changed, &c->lock);
			continue;
		}
		uint64_t base = ch->index * CACHE_CHUNK_PAGES;
		if (base >= stop)
			return;
		page = MAX(page, base);
		struct bits m = mask((unsigned)(page - base), (unsigned)MIN(stop - base, CACHE_CHUNK_PAGES));
		if (dirty) {
			clear_dirty(f, ch, &m);
			struct bits cut = bits_and(&ch->storing, &m);
			f->storing -= bits_count(&cut);
			ch->storing = bits_but(&ch->storing, &m);
		} else {
			struct bits keep = bits_or(&ch->dirty, &ch->storing);
			m = bits_but(&m, &keep);
		}
		m = bits_and(&m, &ch->valid);
		page = base + CACHE_CHUNK_PAGES;
		if (!bits_any(&m)) {
			chunk_rest(c, ch);
			continue;
		}
		ch->busy = true;
		bool open = io_begin(c, f) == AFS_OK;
		mtx_unlock(&c->lock);
		for (unsigned i = open ? bits_next(&m, 0, true) : CACHE_CHUNK_PAGES; i < CACHE_CHUNK_PAGES;) {
			unsigned end = bits_next(&m, i, false);
			punch(f, (base + i) * CACHE_PAGE, (uint64_t)(end - i) * CACHE_PAGE);
			i = bits_next(&m, end, true);
		}
		mtx_lock(&c->lock);
		c->used -= bits_count(&m);
		ch->valid = bits_but(&ch->valid, &m);
		chunk_release(c, ch);
		if (open)
			io_end(c, f);
	}
}

void cache_drop_clean(struct cache_file *f)
{
	mtx_lock(&f->cache->lock);
	f->ticket++;
	drop(f->cache, f, 0, CACHE_FILE_MAX, false);
	mtx_unlock(&f->cache->lock);
}

void cache_unfill(struct cache_file *f, uint64_t off, uint64_t len)
{
	mtx_lock(&f->cache->lock);
	drop(f->cache, f, off, off + len, false);
	mtx_unlock(&f->cache->lock);
}

afs_err cache_truncate(struct cache_file *f, uint64_t len)
{
	struct cache *c = f->cache;
	afs_err err = AFS_OK;
	mtx_lock(&c->lock);
	f->ticket++;
	uint64_t keep = (len + CACHE_PAGE - 1) / CACHE_PAGE * CACHE_PAGE;
	drop(c, f, keep, CACHE_FILE_MAX, true);
	/* the rest of the last page reads as zeros when the file grows again */
	if (len % CACHE_PAGE) {
		struct chunk *ch;
		while ((ch = chunk_find(f, len / CACHE_CHUNK)) && (ch->busy || ch->readers))
			cond_wait(&c->changed, &c->lock);
		if (ch && bit(&ch->valid, (unsigned)(len % CACHE_CHUNK / CACHE_PAGE))) {
			err = io_begin(c, f);
			if (!err) {
				ch->busy = true;
				mtx_unlock(&c->lock);
				err = write_padded(f, NULL, 0, len, 0, (size_t)(keep - len));
				mtx_lock(&c->lock);
				chunk_release(c, ch);
				io_end(c, f);
			}
		}
	}
	mtx_unlock(&c->lock);
	return err;
}

void cache_file_discard(struct cache_file *f)
{
	mtx_lock(&f->cache->lock);
	f->ticket++;
	drop(f->cache, f, 0, CACHE_FILE_MAX, true);
	mtx_unlock(&f->cache->lock);
}

/* --- storing ---------------------------------------------------------------------------------------- */

bool cache_take_dirty(
	struct cache_file *f, uint64_t from, uint64_t min, uint64_t max, uint64_t *start, uint64_t *end)
{
	struct cache *c = f->cache;
	bool found = false;
	mtx_lock(&c->lock);
	uint64_t s = 0, e = 0; /* pages of the run so far */
	size_t at = chunk_at(f, from / CACHE_CHUNK);
	uint64_t least = from / CACHE_PAGE, most = max / CACHE_PAGE;
	for (; at < f->n && f->dirty; at++) {
		struct chunk *ch = f->chunks[at];
		uint64_t base = ch->index * CACHE_CHUNK_PAGES;
		unsigned i = least > base ? (unsigned)(least - base) : 0;
		bool done = false;
		while (i < CACHE_CHUNK_PAGES) {
			unsigned on = bits_next(&ch->dirty, i, true);
			if (e > s && base + on != e) { /* the run ended before */
				if ((e - s) * CACHE_PAGE >= min) {
					done = true;
					break;
				}
				s = e = 0;
			}
			if (on == CACHE_CHUNK_PAGES)
				break;
			unsigned off = bits_next(&ch->dirty, on, false);
			if (e == s)
				s = e = base + on;
			e = base + off;
			if (e - s >= most) {
				e = s + most;
				done = true;
				break;
			}
			i = off;
		}
		if (done)
			break;
	}
	if (e > s && (e - s) * CACHE_PAGE >= min) {
		found = true;
		for (uint64_t p = s; p < e;) {
			struct chunk *ch = chunk_find(f, p / CACHE_CHUNK_PAGES);
			uint64_t base = ch->index * CACHE_CHUNK_PAGES;
			struct bits m = mask((unsigned)(p - base), (unsigned)MIN(e - base, CACHE_CHUNK_PAGES));
			clear_dirty(f, ch, &m);
			struct bits more = bits_but(&m, &ch->storing);
			f->storing += bits_count(&more);
			ch->storing = bits_or(&ch->storing, &m);
			p = base + CACHE_CHUNK_PAGES;
		}
		*start = s * CACHE_PAGE;
		*end = e * CACHE_PAGE;
	}
	mtx_unlock(&c->lock);
	return found;
}

void cache_stored(struct cache_file *f, uint64_t start, uint64_t end, bool ok)
{
	struct cache *c = f->cache;
	mtx_lock(&c->lock);
	uint64_t stop = end / CACHE_PAGE;
	for (size_t at = chunk_at(f, start / CACHE_CHUNK); at < f->n; at++) {
		struct chunk *ch = f->chunks[at];
		uint64_t base = ch->index * CACHE_CHUNK_PAGES;
		if (base >= stop)
			break;
		uint64_t from = MAX(start / CACHE_PAGE, base);
		struct bits m = mask((unsigned)(from - base), (unsigned)MIN(stop - base, CACHE_CHUNK_PAGES));
		struct bits back = bits_and(&ch->storing, &m);
		f->storing -= bits_count(&back);
		ch->storing = bits_but(&ch->storing, &m);
		if (!ok)
			set_dirty(f, ch, &back);
		chunk_rest(c, ch);
	}
	cond_broadcast(&c->changed);
	mtx_unlock(&c->lock);
}

bool cache_is_dirty(struct cache_file *f)
{
	struct cache *c = f->cache;
	mtx_lock(&c->lock);
	bool dirty = f->dirty || f->storing;
	mtx_unlock(&c->lock);
	return dirty;
}

bool cache_all_dirty(struct cache_file *f, uint64_t from, uint64_t to)
{
	struct cache *c = f->cache;
	bool all = true;
	mtx_lock(&c->lock);
	uint64_t page = from / CACHE_PAGE, stop = (to + CACHE_PAGE - 1) / CACHE_PAGE;
	while (page < stop && all) {
		struct chunk *ch = chunk_find(f, page / CACHE_CHUNK_PAGES);
		uint64_t base = page / CACHE_CHUNK_PAGES * CACHE_CHUNK_PAGES;
		unsigned off = ch ? bits_next(&ch->dirty, (unsigned)(page - base), false) : 0;
		all = ch && base + off >= MIN(stop, base + CACHE_CHUNK_PAGES);
		page = base + CACHE_CHUNK_PAGES;
	}
	mtx_unlock(&c->lock);
	return all;
}

uint64_t cache_file_dirty_bytes(struct cache_file *f)
{
	mtx_lock(&f->cache->lock);
	uint64_t n = f->dirty * CACHE_PAGE;
	mtx_unlock(&f->cache->lock);
	return n;
}

/* --- the table ----------------------------------------------------------------------------------------- */

static uint64_t key_hash(const struct cache *c, const struct cache_key *k)
{
	return map_hash_bytes(&c->files, k, sizeof(*k));
}

static struct cache_file *file_find(struct cache *c, const struct cache_key *k, uint64_t h) REQUIRES(c->lock)
{
	for (struct map_node *n = map_first(&c->files, h); n; n = map_next(n)) {
		struct cache_file *f = container_of(n, struct cache_file, by_key);
		if (f->key.cell == k->cell && fid_equal(&f->key.fid, &k->fid))
			return f;
	}
	return NULL;
}

static struct cache_file *file_make(struct cache *c, const struct cache_key *k, uint64_t h) REQUIRES(c->lock)
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
	*out = (struct cache_usage){c->used * CACHE_PAGE, c->max * CACHE_PAGE, c->dirty * CACHE_PAGE,
		c->files.count, c->chunks};
	mtx_unlock(&c->lock);
}

/* --- start and end ----------------------------------------------------------------------------------------- */

static bool area_fits(const struct cache_index_file *in)
{
	struct cache_index_chunk ch = cache_index_chunk(in, 0);
	return ch.index == 0 && !(ch.valid[0] >> AREA_BYTES / CACHE_PAGE) && !ch.valid[1] && !ch.valid[2] && !ch.valid[3];
}

static bool load_file(void *ctx, const struct cache_index_file *in)
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
			log_warn("cache.index.unusable dir=%s err=%s: starting empty", c->dir, afs_err_name(err));
		forget_all(c);
		c->slots.next = c->areas.next = 0;
	}

	CLEANUP(heap) uint32_t *v = mem_new_array(c->files.count + 1, uint32_t);
	if (!v)
		return AFS_ENOMEM;
	struct numbers used = {v, 0}; /* areas sort behind slots */
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&c->files, &cursor, NULL); n; n = map_walk(&c->files, &cursor, n->next)) {
		struct cache_file *f = container_of(n, struct cache_file, by_key);
		v[used.n++] = f->place == IN_AREA ? f->area | INDEX_AREA : f->slot.number;
	}
	qsort(v, used.n, sizeof(*v), by_number);
	for (size_t i = 1; i < used.n; i++) {
		if (v[i] == v[i - 1]) { /* two files in one place */
			log_warn("cache.index.unusable dir=%s slot=%08x: starting empty", c->dir, v[i]);
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
	while (c->used > c->max && evict_one(c))
		;
	mtx_unlock(&c->lock);
	return AFS_OK;
}

static afs_err open_dir(struct cache *c)
{
	if (mkdir(c->dir, 0700) < 0 && errno != EEXIST)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d", c->dir, errno);
	CLEANUP(fd) int dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d", c->dir, errno);
	c->lock_fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (c->lock_fd < 0)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d", c->dir, errno);
	if (flock(c->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return log_error(AFS_EBUSY, "cache.dir.in_use path=%s: another client uses it; give each its own", c->dir);
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
	c->max = MAX(max_bytes, CACHE_MIN_BYTES) / CACHE_PAGE - (uint64_t)AREAS_UNPUNCHED * AREA_BYTES / CACHE_PAGE;
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
	for (struct map_node *n = map_walk(&c->files, &cursor, NULL); n; n = map_walk(&c->files, &cursor, n->next)) {
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
	CLEANUP(fd) int fd = dir_fd < 0 ? -1 : openat(dir_fd, "index.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
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
		log_warn("cache.index.unsaved dir=%s err=%s: the next start begins empty", c->dir, afs_err_name(err));
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
