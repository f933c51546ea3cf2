/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The log: what a crash may not take.  One file, a header and records; it begins with all that was known when it
 * was made, and goes on with each change.  The part that grows is mapped, so a record costs a copy and survives the
 * process; when it is full the log is made anew, as large again as what it then says, which makes the cost of a record
 * constant.  What comes from disk is judged: a record counts when its checksum, which covers the log's generation
 * and the record's place, is right, and all its numbers are in range; the first that does not ends the log. */
#include "client/cache/inside.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER = 4096, RECORD = 8, ROOM_LEAST = 256 * 1024, BOOT = 16 };
enum { FILE_BYTES = 88, CHUNK_BYTES = 80, GONE_BYTES = 8, NOTE_BYTES = 32, SYNC_BYTES = 8 };
static const char magic[8] = "AFSCLOG1";

struct header {
	char magic[8];
	uint64_t generation, clean;
	uint8_t boot[BOOT];
	uint64_t check;
};

static uint64_t mix(uint64_t h, const uint8_t *p, size_t n)
{
	for (uint64_t v; n >= 8; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	for (; n; n--, p++)
		h = (h ^ *p) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}
static uint32_t record_check(uint64_t generation, uint64_t at, uint32_t head, const uint8_t *p, size_t n)
{
	uint32_t c = (uint32_t)mix(generation * 31 + at + ((uint64_t)head << 40), p, n);
	return c ? c : 1;
}
static uint64_t header_check(const struct header *h)
{
	return mix(1, (const uint8_t *)h, offsetof(struct header, check));
}

void cache_log_boot(uint8_t boot[16])
{
	memset(boot, 0, BOOT);
	CLEANUP(fd) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	for (ssize_t i = 0; i < n; i++)
		boot[i % BOOT] = (uint8_t)(boot[i % BOOT] * 7 + text[i]);
}

/* --- records ------------------------------------------------------------------------------------------ */

static size_t payload_of(const struct cache_record *r)
{
	switch (r->type) {
	case CACHE_R_FILE: return FILE_BYTES;
	case CACHE_R_CHUNK: return CHUNK_BYTES;
	case CACHE_R_MOVED:
	case CACHE_R_GONE: return GONE_BYTES;
	case CACHE_R_NOTE:
	case CACHE_R_UNNOTE: return NOTE_BYTES + CACHE_NOTE_MAX;
	default: return SYNC_BYTES;
	}
}

static void write_payload(const struct cache_record *r, uint8_t *p)
{
	switch (r->type) {
	case CACHE_R_FILE: {
		const struct cache_meta *m = &r->meta;
		uint32_t w[14] = {r->place, r->key.fid.Volume, r->key.fid.Vnode, r->key.fid.Unique, m->pending, m->mtime,
			m->uid, 0, m->parent_vnode, m->parent_unique};
		uint64_t q[4] = {r->key.cell, r->dv, m->length, m->cut};
		memcpy(p, q, 32);
		memcpy(p + 32, w, 56);
		break;
	}
	case CACHE_R_CHUNK:
		memcpy(p, (uint32_t[2]){r->place, 0}, 8);
		memcpy(p + 8, &r->index, 8);
		memcpy(p + 16, r->valid, 32);
		memcpy(p + 48, r->dirty, 32);
		break;
	case CACHE_R_MOVED:
	case CACHE_R_GONE: memcpy(p, (uint32_t[2]){r->place, (uint32_t)r->index}, 8); break;
	case CACHE_R_NOTE:
	case CACHE_R_UNNOTE: {
		uint32_t w[6] = {r->key.fid.Volume, r->key.fid.Vnode, r->key.fid.Unique, r->meta.uid, 0, 0};
		memcpy(p, &r->key.cell, 8);
		memcpy(p + 8, w, 24);
		memcpy(p + NOTE_BYTES, r->name, CACHE_NOTE_MAX);
		break;
	}
	default: memcpy(p, &r->index, 8); break;
	}
}

/* False: a number is out of range. */
static bool read_payload(uint32_t type, const uint8_t *p, size_t n, struct cache_record *r)
{
	*r = (struct cache_record){.type = (enum cache_record_type)type};
	if (type < CACHE_R_FILE || type > CACHE_R_MOVED || n != payload_of(r))
		return false;
	uint32_t w[14];
	uint64_t q[4];
	switch (r->type) {
	case CACHE_R_FILE:
		memcpy(q, p, 32);
		memcpy(w, p + 32, 56);
		r->key.cell = q[0];
		r->dv = q[1];
		r->place = w[0];
		r->key.fid = (struct AFSFid){w[1], w[2], w[3]};
		r->meta = (struct cache_meta){.pending = w[4] & 1, .length = q[2], .cut = q[3], .mtime = w[5], .uid = w[6],
			.parent_vnode = w[8], .parent_unique = w[9]};
		return (r->place & ~INDEX_AREA) < SLOT_MAX && w[4] < 2 && r->meta.length <= CACHE_FILE_MAX;
	case CACHE_R_CHUNK:
		memcpy(&r->place, p, 4);
		memcpy(&r->index, p + 8, 8);
		memcpy(r->valid, p + 16, 32);
		memcpy(r->dirty, p + 48, 32);
		for (unsigned i = 0; i < WORDS; i++) {
			if (r->dirty[i] & ~r->valid[i])
				return false;
			if (r->place & INDEX_AREA && (r->index || r->valid[i] >> (i ? 0 : AREA_BYTES / CACHE_PAGE)))
				return false; /* what is in an area fits into it */
		}
		return r->index < CACHE_FILE_MAX / CACHE_CHUNK;
	case CACHE_R_MOVED:
	case CACHE_R_GONE:
		memcpy(w, p, 8);
		r->place = w[0];
		r->index = w[1];
		return r->type == CACHE_R_GONE || (w[1] < SLOT_MAX && w[0] & INDEX_AREA);
	case CACHE_R_NOTE:
	case CACHE_R_UNNOTE:
		memcpy(&r->key.cell, p, 8);
		memcpy(w, p + 8, 24);
		r->key.fid = (struct AFSFid){w[0], w[1], w[2]};
		r->meta.uid = w[3];
		memcpy(r->name, p + NOTE_BYTES, CACHE_NOTE_MAX);
		return memchr(r->name, 0, CACHE_NOTE_MAX) && r->name[0] && !strchr(r->name, '/');
	default: memcpy(&r->index, p, 8); return true;
	}
}

afs_err cache_log_parse(const uint8_t *p, size_t n, struct cache_log_about *about,
	bool (*each)(void *ctx, const struct cache_record *r), void *ctx)
{
	struct header h;
	if (n < HEADER || memcmp(p, magic, sizeof(magic)) != 0)
		return AFS_EVERSION;
	memcpy(&h, p, sizeof(h));
	if (h.check != header_check(&h) || h.clean > 1)
		return AFS_ECORRUPT;
	*about = (struct cache_log_about){.generation = h.generation, .clean = h.clean};
	memcpy(about->boot, h.boot, BOOT);
	for (size_t at = HEADER; at + RECORD <= n;) {
		uint32_t head[2];
		memcpy(head, p + at, 8);
		size_t len = (head[0] >> 8) * 8u;
		struct cache_record r;
		if (!head[0] || len > n - at - RECORD || head[1] != record_check(h.generation, at, head[0], p + at + RECORD, len) ||
			!read_payload(head[0] & 0xff, p + at + RECORD, len, &r))
			break;
		about->records++;
		if (r.type == CACHE_R_SYNC && r.index <= at)
			about->synced = r.index;
		r.at = at;
		if (each && !each(ctx, &r))
			return AFS_ECORRUPT;
		at += RECORD + len;
	}
	return AFS_OK;
}

void cache_log_head(struct buf *b, uint64_t generation, bool clean, const uint8_t boot[16])
{
	struct header h = {.generation = generation, .clean = clean};
	memcpy(h.magic, magic, sizeof(magic));
	memcpy(h.boot, boot, BOOT);
	h.check = header_check(&h);
	uint8_t *p = buf_extend(b, HEADER);
	if (p)
		memcpy(p, &h, sizeof(h));
}

void cache_log_put(struct buf *b, uint64_t generation, const struct cache_record *r)
{
	size_t n = payload_of(r), at = b->len;
	uint32_t head[2] = {(uint32_t)(n / 8) << 8 | r->type, 0};
	uint8_t *p = buf_extend(b, RECORD + n);
	if (!p)
		return;
	write_payload(r, p + RECORD);
	head[1] = record_check(generation, at, head[0], p + RECORD, n);
	memcpy(p, head, 8);
}

void cache_log_seal(uint8_t *p, size_t n)
{
	struct header h;
	if (n < HEADER)
		return;
	memcpy(&h, p, sizeof(h));
	h.check = header_check(&h);
	memcpy(p, &h, sizeof(h));
	for (size_t at = HEADER; at + RECORD <= n;) {
		uint32_t head[2];
		memcpy(head, p + at, 8);
		size_t len = (head[0] >> 8) * 8u;
		if (!head[0] || len > n - at - RECORD)
			break;
		head[1] = record_check(h.generation, at, head[0], p + at + RECORD, len);
		memcpy(p + at, head, 8);
		at += RECORD + len;
	}
}

/* --- the running log ---------------------------------------------------------------------------------- */

static void record_of_file(const struct cache_file *f, struct cache_record *r)
{
	*r = (struct cache_record){.type = CACHE_R_FILE, .place = place_number(f), .key = f->key, .dv = f->dv, .meta = f->meta};
}
static void record_of_chunk(const struct chunk *ch, struct cache_record *r)
{
	*r = (struct cache_record){.type = CACHE_R_CHUNK, .place = place_number(ch->file), .index = ch->index};
	struct bits dirty = bits_or(&ch->dirty, &ch->storing);
	dirty = bits_and(&dirty, &ch->valid);
	memcpy(r->valid, ch->valid.w, sizeof(r->valid));
	memcpy(r->dirty, dirty.w, sizeof(r->dirty));
}

static void put_all_of(struct buf *b, uint64_t generation, const struct cache_file *f)
{
	struct cache_record r;
	if (f->place == NOWHERE || (!f->n && !f->meta.pending))
		return;
	record_of_file(f, &r);
	cache_log_put(b, generation, &r);
	for (size_t i = 0; i < f->n; i++) {
		record_of_chunk(f->chunks[i], &r);
		cache_log_put(b, generation, &r);
	}
}

static void unmap(struct cache_log *l)
{
	if (l->map)
		munmap(l->map, l->map_len);
	if (l->fd >= 0)
		close(l->fd);
	l->map = NULL;
	l->fd = -1;
}

/* The old log, which tells the truth no more, must not be found by a start after a crash. */
static void give_up(struct cache *c, afs_err err)
{
	unlinkat(c->log.dir_fd, "log", 0);
	unlinkat(c->log.dir_fd, "log.new", 0);
	unmap(&c->log);
	c->log.again = clk_mono() + SEC(5);
	log_warn("cache.log.unwritable dir=%s err=%s: after a crash the cache would start empty, without what waits to be stored",
		c->dir, afs_err_name(err));
}

static afs_err make(struct cache *c, bool clean, bool durable) REQUIRES(c->lock)
{
	struct cache_log *l = &c->log;
	CLEANUP(buf) struct buf b = {0};
	uint64_t generation = l->generation + 1;
	uint8_t boot[BOOT];
	cache_log_boot(boot);
	cache_log_head(&b, generation, clean, boot);
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&c->files, &cursor, NULL); n; n = map_walk(&c->files, &cursor, n->next))
		put_all_of(&b, generation, container_of(n, struct cache_file, by_key));
	list_each(e, &c->orphans) put_all_of(&b, generation, list_entry(e, struct cache_file, orphans));
	list_each(e, &c->notes)
	{
		const struct note *n = list_entry(e, struct note, all);
		cache_log_put(&b, generation, &n->r);
	}
	if (b.err)
		return b.err;
	CLEANUP(fd) int fd = openat(l->dir_fd, "log.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return afs_err_from_errno(errno);
	size_t start = b.len / HEADER * HEADER, room = MAX((size_t)ROOM_LEAST, b.len);
	size_t end = (b.len + room + HEADER - 1) / HEADER * HEADER;
	TRY(write_plain(fd, (const uint8_t *)b.data, b.len, 0));
	if (!clean && posix_fallocate(fd, 0, (off_t)end) != 0)
		return AFS_ENOSPC;
	if (durable && fsync(fd) < 0)
		return afs_err_from_errno(errno);
	void *map = clean ? NULL : mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
	if (map == MAP_FAILED)
		return AFS_ENOMEM;
	if (renameat(l->dir_fd, "log.new", l->dir_fd, "log") < 0) {
		afs_err err = afs_err_from_errno(errno);
		if (map)
			munmap(map, end - start);
		return err;
	}
	if (durable)
		(void)fsync(l->dir_fd); /* a file system that cannot do this orders renames itself */
	unmap(l);
	*l = (struct cache_log){.dir_fd = l->dir_fd, .fd = clean ? -1 : fd, .map = map, .map_len = end - start, .start = start,
		.at = b.len, .end = end, .generation = generation};
	if (!clean)
		fd = -1;
	return AFS_OK;
}

afs_err log_make(struct cache *c, bool clean, bool durable)
{
	if (c->log.dir_fd < 0)
		return AFS_OK;
	afs_err err = make(c, clean, durable);
	if (err)
		give_up(c, err);
	/* what was said to be durable has to be said again */
	list_each(e, &c->dirty_files) list_entry(e, struct cache_file, dirty_link)->touched = true;
	return err;
}

void log_append(struct cache *c, const struct cache_record *r)
{
	struct cache_log *l = &c->log;
	size_t n = payload_of(r);
	if (l->dir_fd < 0)
		return;
	if (!l->map) {
		if (!l->again || clk_mono() < l->again || log_make(c, false, true) != AFS_OK)
			return;
	} else if (l->at + RECORD + n + RECORD > l->end && log_make(c, false, false) != AFS_OK) {
		return;
	}
	uint8_t *p = l->map + (l->at - l->start);
	uint32_t head[2] = {(uint32_t)(n / 8) << 8 | r->type, 0};
	write_payload(r, p + RECORD);
	head[1] = record_check(l->generation, l->at, head[0], p + RECORD, n);
	memcpy(p + 4, &head[1], 4);
	atomic_signal_fence(memory_order_seq_cst); /* the process may end between any two instructions */
	memcpy(p, &head[0], 4);
	l->at += RECORD + n;
}

void log_file(struct cache *c, const struct cache_file *f)
{
	struct cache_record r;
	if (c->log.dir_fd < 0 || f->place == NOWHERE)
		return;
	record_of_file(f, &r);
	log_append(c, &r);
}
void log_chunk(struct cache *c, const struct chunk *ch)
{
	struct cache_record r;
	if (c->log.dir_fd < 0 || ch->file->place == NOWHERE)
		return;
	record_of_chunk(ch, &r);
	log_append(c, &r);
}
void log_chunk_as(struct cache *c, const struct chunk *ch, const struct bits *valid, const struct bits *dirty)
{
	struct cache_record r;
	if (c->log.dir_fd < 0 || ch->file->place == NOWHERE)
		return;
	record_of_chunk(ch, &r);
	struct bits d = bits_and(dirty, valid);
	memcpy(r.valid, valid->w, sizeof(r.valid));
	memcpy(r.dirty, d.w, sizeof(r.dirty));
	log_append(c, &r);
}
void log_gone(struct cache *c, uint32_t place)
{
	log_append(c, &(struct cache_record){.type = CACHE_R_GONE, .place = place});
}

void log_flush(struct cache *c)
{
	mtx_lock(&c->lock);
	int fd = c->log.fd >= 0 ? fcntl(c->log.fd, F_DUPFD_CLOEXEC, 0) : -1;
	mtx_unlock(&c->lock);
	if (fd < 0)
		return;
	if (fdatasync(fd) < 0)
		log_debug("cache.log.unsynced errno=%d", errno);
	close(fd);
}

void log_fini(struct cache *c)
{
	unmap(&c->log);
	if (c->log.dir_fd >= 0)
		close(c->log.dir_fd);
	c->log.dir_fd = -1;
}

/* --- making dirty data outlive the machine ------------------------------------------------------------- */

void cache_sync(struct cache *c)
{
	bool any = false, area = false;
	mtx_lock(&c->lock);
	if (!c->log.map) {
		mtx_unlock(&c->lock);
		return;
	}
	uint64_t generation = c->log.generation, at = c->log.at;
	for (;;) {
		struct cache_file *f = NULL;
		list_each(e, &c->dirty_files)
		{
			struct cache_file *one = list_entry(e, struct cache_file, dirty_link);
			if (!one->dirty && !one->storing && !one->meta.pending)
				list_remove(e);
			else if (one->touched && !f)
				f = one;
		}
		if (!f)
			break;
		f->touched = false;
		f->durable = any = true;
		if (f->place != IN_SLOT) {
			area |= f->place == IN_AREA;
			continue;
		}
		if (io_begin(c, f) != AFS_OK)
			continue;
		int fd = f->slot.fd;
		mtx_unlock(&c->lock);
		if (fdatasync(fd) < 0)
			log_warn("cache.slot.unsynced slot=%08x errno=%d", f->slot.number, errno);
		mtx_lock(&c->lock);
		io_end(c, f);
	}
	if (area) {
		mtx_unlock(&c->lock);
		if (fdatasync(c->areas.fd) < 0)
			log_warn("cache.slot.unsynced slot=areas errno=%d", errno);
		mtx_lock(&c->lock);
	}
	any &= c->log.map && c->log.generation == generation;
	if (any)
		log_append(c, &(struct cache_record){.type = CACHE_R_SYNC, .index = at});
	mtx_unlock(&c->lock);
	if (any)
		log_flush(c);
}

void cache_settle(struct cache_file *f)
{
	struct cache *c = f->cache;
	mtx_lock(&c->lock);
	bool must = f->durable && !f->dirty && !f->storing && !f->meta.pending;
	mtx_unlock(&c->lock);
	if (!must)
		return;
	log_flush(c);
	mtx_lock(&c->lock);
	if (!f->dirty && !f->storing && !f->meta.pending) {
		f->durable = false;
		for (size_t i = 0; i < f->n; i++)
			chunk_rest(c, f->chunks[i]);
		cond_broadcast(&c->changed);
	}
	mtx_unlock(&c->lock);
}
