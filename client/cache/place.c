/* SPDX-License-Identifier: BSD-2-Clause
 * Where content is on disk: nowhere, in an area of the shared file, or in a slot of its own. */
#include "client/cache/inside.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FDS_MAX = 400 };

/* --- files and descriptors ---------------------------------------------------------------------- */

void file_free_if_unused(struct cache *c, struct cache_file *f) REQUIRES(c->lock)
{
	if (f->refs || f->io || f->n || f->meta.pending)
		return;
	if (f->place != NOWHERE)
		log_gone(c, place_number(f));
	if (f->orphan) {
		list_remove(&f->orphans);
		c->orphan_n--;
	} else {
		map_remove(&c->files, &f->by_key);
	}
	list_remove(&f->dirty_link);
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
			slot_close(&c->slots, &old->slot);
			c->fds--;
		}
	}
	TRY(take ? slots_take(&c->slots, slot) : slot_open(&c->slots, slot));
	c->fds++;
	return AFS_OK;
}

/* Content has a place, and its descriptor stays open until io_end(). */
afs_err io_begin(struct cache *c, struct cache_file *f) REQUIRES(c->lock)
{
	if (f->place == NOWHERE) {
		TRY(areas_take(&c->areas, &f->area));
		f->place = IN_AREA;
		log_file(c, f);
	} else if (f->place == IN_SLOT && f->slot.fd < 0) {
		TRY(slot_ready(c, &f->slot, false));
	}
	f->io++;
	list_remove(&f->open_lru);
	return AFS_OK;
}

void io_end(struct cache *c, struct cache_file *f) REQUIRES(c->lock)
{
	if (--f->io == 0 && f->place == IN_SLOT) {
		list_push_back(&c->open_files, &f->open_lru);
	} else if (f->io == 0 && f->place == IN_AREA && !f->n && !f->meta.pending) {
		log_gone(c, place_number(f));
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
	return (off_t)(f->place == IN_SLOT ? slot_base(&f->cache->slots, f->slot.number) + off : (uint64_t)f->area * AREA_BYTES + off);
}

/* Give the disk its blocks back.  Where that fails they stay in use, and nothing else is wrong. */
void place_punch(struct cache_file *f, uint64_t off, uint64_t len)
{
	if (f->place != IN_SLOT)
		return; /* an area is punched as a whole, when it is given back and not taken again soon */
	if (fallocate(fd_of(f), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at_of(f, off),
		    (off_t)len) < 0)
		log_debug("cache.punch.failed errno=%d", errno);
}

ssize_t place_read(const struct cache_file *f, uint64_t off, void *p, size_t n)
{
	return pread(fd_of(f), p, n, at_of(f, off));
}

/* `n` bytes of p at off (nothing when p is NULL), with so many zeros before and behind. */
afs_err place_write(struct cache_file *f, const uint8_t *p, size_t n, uint64_t off, size_t before,
	size_t behind)
{
	static const uint8_t zeros[CACHE_PAGE];
	struct iovec iov[3] = {{(void *)(uintptr_t)zeros, before}, {(void *)(uintptr_t)p, n},
		{(void *)(uintptr_t)zeros, behind}};
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

afs_err write_plain(int fd, const uint8_t *p, size_t n, uint64_t off)
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
			if (pread(c->areas.fd, buf, n, at_of(f, (uint64_t)i * CACHE_PAGE)) !=
				(ssize_t)n)
				err = AFS_EIO;
			else
				err = write_plain(slot.fd, buf, n, slot_base(&c->slots, slot.number) + (uint64_t)i * CACHE_PAGE);
			i = bits_next(&ch->valid, end, true);
		}
	}
	if (!err && f->durable && fdatasync(slot.fd) < 0)
		err = AFS_EIO;
	if (err) {
		c->fds--;
		slots_give(&c->slots, slot);
		return log_error(err, "cache.slot.unwritable slot=%08x", slot.number);
	}
	bool moved = f->place == IN_AREA;
	uint32_t old = moved ? place_number(f) : 0;
	f->slot = slot;
	f->place = IN_SLOT;
	if (moved) {
		log_append(c, &(struct cache_record){.type = CACHE_R_MOVED, .place = old, .index = slot.number});
		areas_give(&c->areas, f->area);
	} else {
		log_file(c, f);
	}
	list_push_back(&c->open_files, &f->open_lru);
	return AFS_OK;
}

/* As io_begin, for content that ends at `end`. */
afs_err io_begin_to(struct cache *c, struct cache_file *f, uint64_t end) REQUIRES(c->lock)
{
	if (end > AREA_BYTES && f->place != IN_SLOT)
		TRY(move_out(c, f));
	return io_begin(c, f);
}

uint32_t place_number(const struct cache_file *f)
{
	return f->place == IN_AREA ? f->area | INDEX_AREA : f->slot.number;
}
