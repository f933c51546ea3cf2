/* SPDX-License-Identifier: BSD-2-Clause
 * Content: reading, writing, filling, dropping, storing. */
#include "client/cache/inside.h"

#include "cell/base/log.h"

#include <errno.h>
#include <string.h>

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
		size_t n = MIN(len - done, (size_t)(at / CACHE_CHUNK * CACHE_CHUNK +
						    (uint64_t)last * CACHE_PAGE - at));
		err = io_begin(c, f);
		if (err)
			break;
		ch->readers++;
		if (list_linked(&ch->lru)) {
			list_remove(&ch->lru);
			list_push_back(&c->lru, &ch->lru);
		}
		mtx_unlock(&c->lock);
		ssize_t r = place_read(f, at, (char *)buf + done, n);
		if (r >= 0 && (size_t)r < n) /* the slot ends in a hole */
			memset((char *)buf + done + r, 0, n - (size_t)r);
		mtx_lock(&c->lock);
		ch->readers--;
		io_end(c, f);
		if (r < 0)
			err = log_error(AFS_EIO, "cache.content.unreadable slot=%08x errno=%d",
				f->slot.number, errno);
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

afs_err cache_write(struct cache_file *f, uint64_t off, const void *buf, size_t len, uint64_t fresh,
	uint64_t *need)
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
		afs_err err = cache_reserve(c, last - first);
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
			size_t behind =
				bit(&ch->valid, last - 1)
					? 0
					: (CACHE_PAGE - (off + n) % CACHE_PAGE) % CACHE_PAGE;
			struct bits was = bits_and(&m, &ch->valid), taken = bits_or(&ch->dirty, &ch->storing);
			struct bits clean = bits_but(&was, &taken);
			if (bits_any(&clean)) { /* from here on they are not what the server has */
				taken = bits_or(&taken, &clean);
				log_chunk_as(c, ch, &ch->valid, &taken);
			}
			mtx_unlock(&c->lock);
			err = place_write(f, p, n, off, before, behind);
			mtx_lock(&c->lock);
			/* after a failure pages that were valid may hold half of it: they are ours to store */
			struct bits done = bits_and(&m, &ch->valid);
			if (!err) {
				chunk_made_valid(c, ch, &m);
				done = m;
			} else {
				(void)log_error(
					err, "cache.content.unwritable slot=%08x", f->slot.number);
			}
			chunk_set_dirty(f, ch, &done);
			log_chunk(c, ch);
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
static afs_err fill_pages(struct cache_file *f, const struct chunk *ch, unsigned first,
	unsigned last, const uint8_t *p, size_t n)
{
	uint64_t base = ch->index * CACHE_CHUNK;
	for (unsigned i = bits_next(&ch->valid, first, false); i < last;) {
		unsigned end = MIN(bits_next(&ch->valid, i, true), last);
		size_t at = (size_t)(i - first) * CACHE_PAGE;
		size_t want = (size_t)(end - i) * CACHE_PAGE;
		if (p) {
			size_t have = at < n ? MIN(want, n - at) : 0;
			TRY(place_write(
				f, p + at, have, base + (uint64_t)i * CACHE_PAGE, 0, want - have));
		} else {
			for (unsigned k = i; k < end; k++)
				TRY(place_write(f, NULL, 0, base + (uint64_t)k * CACHE_PAGE, 0,
					CACHE_PAGE));
		}
		i = bits_next(&ch->valid, end, false);
	}
	return AFS_OK;
}

static afs_err fill(
	struct cache_file *f, uint32_t ticket, uint64_t off, const uint8_t *p, uint64_t len)
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
		afs_err err = ticket == f->ticket ? cache_reserve(c, last - first) : AFS_EAGAIN;
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
			if (!err) {
				chunk_made_valid(c, ch, &m);
				log_chunk(c, ch);
			}
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
static void drop(struct cache *c, struct cache_file *f, uint64_t from, uint64_t to, bool dirty)
	REQUIRES(c->lock)
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
		struct bits m = mask(
			(unsigned)(page - base), (unsigned)MIN(stop - base, CACHE_CHUNK_PAGES));
		if (dirty) {
			chunk_clear_dirty(f, ch, &m);
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
		bool open = io_begin(c, f) == AFS_OK, flush = f->durable && dirty;
		struct bits left = bits_but(&ch->valid, &m), taken = bits_or(&ch->dirty, &ch->storing);
		log_chunk_as(c, ch, &left, &taken);
		mtx_unlock(&c->lock);
		if (flush)
			log_flush(c);
		for (unsigned i = open ? bits_next(&m, 0, true) : CACHE_CHUNK_PAGES;
			i < CACHE_CHUNK_PAGES;) {
			unsigned end = bits_next(&m, i, false);
			place_punch(f, (base + i) * CACHE_PAGE, (uint64_t)(end - i) * CACHE_PAGE);
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
				err = place_write(f, NULL, 0, len, 0, (size_t)(keep - len));
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

bool cache_take_dirty(struct cache_file *f, uint64_t from, uint64_t min, uint64_t max,
	uint64_t *start, uint64_t *end)
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
			struct bits m = mask(
				(unsigned)(p - base), (unsigned)MIN(e - base, CACHE_CHUNK_PAGES));
			chunk_clear_dirty(f, ch, &m);
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
		struct bits m = mask(
			(unsigned)(from - base), (unsigned)MIN(stop - base, CACHE_CHUNK_PAGES));
		struct bits back = bits_and(&ch->storing, &m);
		f->storing -= bits_count(&back);
		ch->storing = bits_but(&ch->storing, &m);
		if (!ok)
			chunk_set_dirty(f, ch, &back);
		else if (bits_any(&back))
			log_chunk(c, ch);
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
