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
 *   log               what is where, clean and dirty, kept up with each change (log.c).  Page of 4096 bytes: "AFSCLOG1", u64
 *                     generation, u64 1 after a clean end, 16 bytes of the boot, u64 checksum; then records: u32 type and
 *                     length / 8 << 8, u32 checksum, payload.  All in the machine's byte order.
 *
 * What outlives what.  A clean end: all of it.  A killed process: all of it; what was dirty is an orphan then, for the
 * caller to send.  A fallen machine: what cache_sync() found dirty, and nothing clean.
 *
 * With `dir` NULL the cache is in memory: the same, and gone with the process. */
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

/* `dir` NULL: in memory.  AFS_EBUSY: another process uses it; AFS_EACCESS, AFS_EIO, AFS_ENOSPC, AFS_ENOMEM.  Logged. */
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
	uint64_t files, chunks, orphans;
};
void cache_usage(struct cache *c, struct cache_usage *out);
void cache_resize(struct cache *c, uint64_t max_bytes); /* evicts at once what is too much and clean */

/* --- what outlives the process --- */

/* What the server was not told yet, beside pages.  Kept while `pending`. */
struct cache_meta {
	bool pending;
	uint64_t length, cut; /* cut: the server is to have nothing of its own behind it; UINT64_MAX: no cut */
	uint32_t mtime, uid, parent_vnode, parent_unique;
};
void cache_file_set_meta(struct cache_file *f, const struct cache_meta *m);
void cache_file_meta(struct cache_file *f, struct cache_meta *out);
/* Files with changes of an earlier run, at most `cap`; each is the caller's until cache_orphan_done().  `dropped`: its
 * content is not needed any more; else it stays for the next time. */
size_t cache_orphans(struct cache *c, struct cache_file **out, size_t cap);
void cache_orphan_done(struct cache_file *f, bool dropped);
/* Give up the file, of which the caller has the only reference: its changes become an orphan of this run. */
void cache_file_orphan(struct cache_file *f);
struct cache_key cache_file_key(const struct cache_file *f);
/* Ends of dirty content: its last page's end. */
uint64_t cache_file_end(struct cache_file *f);
/* Bring what is dirty to the disk, so that it outlives the machine; to be called every few seconds. */
void cache_sync(struct cache *c);
/* What was just stored is not to be found dirty by a start after the machine fell. */
void cache_settle(struct cache_file *f);

/* Words to the next run: a name in a directory that is to be removed. */
enum { CACHE_NOTE_MAX = 32 };
struct cache_note {
	struct cache_key dir;
	uint32_t uid; /* or what stands for one */
	char name[CACHE_NOTE_MAX];
};
void cache_note_add(struct cache *c, const struct cache_note *n);
void cache_note_remove(struct cache *c, const struct cache_note *n); /* also when it is not there */
/* Those of an earlier run, at most `cap`. */
size_t cache_notes(struct cache *c, struct cache_note *out, size_t cap);

/* The log's bytes, for cache_open and its fuzz target. */
enum cache_record_type {
	CACHE_R_FILE = 1, /* key, dv, meta of the file at `place` */
	CACHE_R_CHUNK,    /* bits of chunk `index` of the file at `place` */
	CACHE_R_GONE,     /* nothing is at `place` any more */
	CACHE_R_NOTE,
	CACHE_R_UNNOTE,
	CACHE_R_SYNC,  /* all that was said before byte `index` is on disk */
	CACHE_R_MOVED, /* what was in the area `place` is in slot `index` now, and on disk when it was before */
};
struct cache_record {
	enum cache_record_type type;
	uint32_t place; /* bit 31: an area */
	uint64_t at;    /* where it is in the log */
	struct cache_key key;
	uint64_t dv, index;
	struct cache_meta meta;
	uint64_t valid[4], dirty[4];
	char name[CACHE_NOTE_MAX];
};
struct cache_log_about {
	uint64_t generation, records, synced; /* synced: byte of the log */
	bool clean;
	uint8_t boot[16];
};
/* Judges; `each` gets every good record and may refuse it (AFS_ECORRUPT then).  AFS_EVERSION: not a log. */
afs_err cache_log_parse(const uint8_t *p, size_t n, struct cache_log_about *about,
	bool (*each)(void *ctx, const struct cache_record *r), void *ctx);
void cache_log_head(struct buf *b, uint64_t generation, bool clean, const uint8_t boot[16]);
void cache_log_put(struct buf *b, uint64_t generation, const struct cache_record *r);
void cache_log_seal(uint8_t *p, size_t n); /* for tests: puts right checksums into whatever this is */
void cache_log_boot(uint8_t boot[16]); /* of the running machine */
