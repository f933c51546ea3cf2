/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Content of files, kept on local disk.
 *
 * One sparse file per AFS file (small ones share one), in pages of 4 KiB that are valid or not, dirty or
 * not.  Pages live in chunks of 1 MiB: the unit of eviction.  Bytes on disk never pass the bound: writers
 * and fillers first make room by punching out chunks that were not used for longest; dirty chunks stay
 * until they were stored.
 *
 * The caller knows what is right: versions, lengths and who may read.  `dv` is only kept, so that pages
 * can be judged after a restart.  A file that is reopened in the same process keeps its pages.
 *
 * All functions may be called from any thread.  They wait for the local disk; writing and filling also
 * wait for room, which comes when dirty pages were stored (AFS_ENOSPC when none can come).
 *
 * On disk (`dir`):
 *   lock              held by the process that uses the cache
 *   data/small        areas of 64 KiB, one per file that was never larger
 *   data/XX/XXXXXXXX  slots of larger files, sparse; XX is the slot's number modulo 256, both hexadecimal
 *   index             written at a clean end after the slots reached the disk, read and removed at the
 *                     next start; without it the slots are erased.  Little-endian: 8 bytes "AFSCIDX1",
 *                     u64 number of files, u64 checksum of the rest; then per file u64 cell, u32 volume,
 *                     vnode, unique, slot (bit 31: area), u64 dv, u64 number of chunks; per chunk u64 index and
 *                     four u64 of valid bits, lowest page first.  Dirty pages are never in it. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/proto/fid.h"

enum { CACHE_PAGE = 4096, CACHE_CHUNK = 1 << 20, CACHE_CHUNK_PAGES = CACHE_CHUNK / CACHE_PAGE };
#define CACHE_MIN_BYTES (UINT64_C(16) << 20)
#define CACHE_FILE_MAX (UINT64_C(1) << 43) /* what a local file system holds */

struct cache;
struct cache_file;

struct cache_key {
	uint64_t cell; /* the caller's lasting number for the cell */
	struct AFSFid fid;
};

/* AFS_EBUSY: another process uses it; AFS_EACCESS, AFS_EIO, AFS_ENOSPC, AFS_ENOMEM.  Logged. */
afs_err cache_open(const char *dir, uint64_t max_bytes, struct cache **out);
void cache_close(struct cache *c); /* all files must be closed */

/* Find or make the file of `key`; close it when done. */
afs_err cache_file_open(struct cache *c, const struct cache_key *key, struct cache_file **out);
void cache_file_close(struct cache_file *f);
/* Forget all content, dirty too (the file is gone at the server). */
void cache_file_discard(struct cache_file *f);
uint64_t cache_file_dv(struct cache_file *f);
void cache_file_set_dv(struct cache_file *f, uint64_t dv);

/* Copy valid bytes from `off` on; gives their number, 0 when the first page is not valid. */
afs_err cache_read(struct cache_file *f, uint64_t off, void *buf, size_t len, size_t *got);
/* The first run of invalid pages in [from, to); false: none. */
bool cache_gap(struct cache_file *f, uint64_t from, uint64_t to, uint64_t *start, uint64_t *end);
/* Make bytes dirty.  AFS_EAGAIN: nothing was written, since the page at *need is written in part only,
 * is not valid, and begins before `fresh` (from there on the server has nothing): fill it first. */
afs_err cache_write(struct cache_file *f, uint64_t off, const void *buf, size_t len, uint64_t fresh,
	uint64_t *need);

/* Put what was fetched into pages that are still invalid.  Take the ticket before asking the server;
 * when content was dropped or cut since, nothing is kept (AFS_EAGAIN).  `off` is a page's start; the
 * last page is filled up with zeros. */
uint32_t cache_fill_ticket(struct cache_file *f);
afs_err cache_fill(
	struct cache_file *f, uint32_t ticket, uint64_t off, const void *buf, size_t len);
/* The same with zeros: pages that the server does not have. */
afs_err cache_fill_zero(struct cache_file *f, uint32_t ticket, uint64_t off, uint64_t len);
/* Take back what was filled in [off, off + len): the fetch failed in the end. */
void cache_unfill(struct cache_file *f, uint64_t off, uint64_t len);

/* Dirty pages to be stored: the first run at or after `from`, at most `max` bytes and at least
 * `min` (shorter ones are passed over).  They count as being stored until cache_stored(). */
bool cache_take_dirty(struct cache_file *f, uint64_t from, uint64_t min, uint64_t max,
	uint64_t *start, uint64_t *end);
/* Content for the store, of pages that are being stored; exactly `len` bytes. */
afs_err cache_read_raw(struct cache_file *f, uint64_t off, void *buf, size_t len);
void cache_stored(struct cache_file *f, uint64_t start, uint64_t end, bool ok);
bool cache_is_dirty(struct cache_file *f); /* also while being stored */
/* Is every page of [from, to) dirty? */
bool cache_all_dirty(struct cache_file *f, uint64_t from, uint64_t to);
uint64_t cache_file_dirty_bytes(struct cache_file *f);

afs_err cache_truncate(struct cache_file *f, uint64_t len);
void cache_drop_clean(struct cache_file *f);

struct cache_usage {
	uint64_t used, max, dirty;
	uint64_t files, chunks;
};
void cache_usage(struct cache *c, struct cache_usage *out);

/* The index, for cache_open and its fuzz target.  Judges bytes; `each` is called for every file. */
struct cache_index_chunk {
	uint64_t index, valid[4];
};
struct cache_index_file {
	struct cache_key key;
	uint32_t slot;
	uint64_t dv, chunk_count;
	const uint8_t *chunks; /* chunk_count * 40 bytes */
};
afs_err cache_index_parse(const uint8_t *p, size_t n,
	bool (*each)(void *ctx, const struct cache_index_file *f), void *ctx);
struct cache_index_chunk cache_index_chunk(const struct cache_index_file *f, uint64_t i);
void cache_index_begin(struct buf *b);
void cache_index_file(struct buf *b, const struct cache_index_file *f);
void cache_index_chunk_put(struct buf *b, const struct cache_index_chunk *c);
void cache_index_end(struct buf *b, uint64_t files);
