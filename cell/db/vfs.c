/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A commit appends frames to the WAL: a header of 24 bytes and a page each, the last one marked.
 * SQLite writes each part by itself.  Here they are gathered while each follows the one before,
 * and written when the marked frame is whole: still before COMMIT returns.  Whatever else is asked
 * of the file first writes what is gathered.  All other files are the system's own.
 *
 * Frame format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log (bytes 4..7: not 0 in
 * the last frame of a commit). */
#include "cell/db/vfs.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { FRAME_HEADER = 24, GATHER = 128 * 1024 };

atomic_long db_fail_write_after = -1;
atomic_int db_fail_write_errno;

struct wal_file {
	sqlite3_file base;
	sqlite3_file *real; /* behind this struct */
	char *gathered;
	sqlite3_int64 start; /* where gathered[0] belongs */
	int n;
	bool last_frame; /* a marked header has come, its page not yet */
};

static struct wal_file *wal(sqlite3_file *f) { return (struct wal_file *)(void *)f; }

static int refused(void)
{
	long left = atomic_load_explicit(&db_fail_write_after, memory_order_relaxed);
	if (left < 0)
		return SQLITE_OK;
	if (left > 0) {
		atomic_fetch_sub(&db_fail_write_after, 1);
		return SQLITE_OK;
	}
	return atomic_load(&db_fail_write_errno) == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int flush(struct wal_file *w)
{
	if (w->n == 0)
		return SQLITE_OK;
	int n = w->n, rc = refused();
	w->n = 0;
	w->last_frame = false;
	return rc ? rc : w->real->pMethods->xWrite(w->real, w->gathered, n, w->start);
}

static bool marks_last(const void *p, int n)
{
	static const char none[4];
	return n == FRAME_HEADER && memcmp((const char *)p + 4, none, 4) != 0;
}

static int w_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct wal_file *w = wal(f);
	if (w->n && (at != w->start + w->n || n > GATHER - w->n)) {
		bool last = w->last_frame && at == w->start + w->n;
		int rc = flush(w);
		if (rc)
			return rc;
		w->last_frame = last;
	}
	if (n > GATHER) {
		int rc = refused();
		return rc ? rc : w->real->pMethods->xWrite(w->real, p, n, at);
	}
	if (w->n == 0)
		w->start = at;
	memcpy(w->gathered + w->n, p, (size_t)n);
	w->n += n;
	if (w->last_frame)
		return flush(w);
	w->last_frame = marks_last(p, n);
	return SQLITE_OK;
}

#define AFTER_FLUSH(call)                                                                          \
	struct wal_file *w = wal(f);                                                               \
	int rc = flush(w);                                                                         \
	return rc ? rc : w->real->pMethods->call

static int w_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	AFTER_FLUSH(xRead(w->real, p, n, at));
}
static int w_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	AFTER_FLUSH(xTruncate(w->real, size));
}
static int w_sync(sqlite3_file *f, int flags) { AFTER_FLUSH(xSync(w->real, flags)); }
static int w_size(sqlite3_file *f, sqlite3_int64 *size) { AFTER_FLUSH(xFileSize(w->real, size)); }
static int w_control(sqlite3_file *f, int op, void *arg)
{
	AFTER_FLUSH(xFileControl(w->real, op, arg));
}

static int w_close(sqlite3_file *f)
{
	struct wal_file *w = wal(f);
	(void)flush(w); /* at most frames of a transaction that was never committed */
	sqlite3_free(w->gathered);
	return w->real->pMethods->xClose(w->real);
}

static int w_lock(sqlite3_file *f, int level)
{
	return wal(f)->real->pMethods->xLock(wal(f)->real, level);
}
static int w_unlock(sqlite3_file *f, int level)
{
	return wal(f)->real->pMethods->xUnlock(wal(f)->real, level);
}
static int w_reserved(sqlite3_file *f, int *out)
{
	return wal(f)->real->pMethods->xCheckReservedLock(wal(f)->real, out);
}
static int w_sector(sqlite3_file *f) { return wal(f)->real->pMethods->xSectorSize(wal(f)->real); }
static int w_traits(sqlite3_file *f)
{
	return wal(f)->real->pMethods->xDeviceCharacteristics(wal(f)->real);
}

static const sqlite3_io_methods wal_methods = {
	.iVersion = 1,
	.xClose = w_close,
	.xRead = w_read,
	.xWrite = w_write,
	.xTruncate = w_truncate,
	.xSync = w_sync,
	.xFileSize = w_size,
	.xLock = w_lock,
	.xUnlock = w_unlock,
	.xCheckReservedLock = w_reserved,
	.xFileControl = w_control,
	.xSectorSize = w_sector,
	.xDeviceCharacteristics = w_traits,
};

static sqlite3_vfs *system_vfs;

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
	(void)vfs;
	if (!(flags & SQLITE_OPEN_WAL))
		return system_vfs->xOpen(system_vfs, name, f, flags, out_flags);
	struct wal_file *w = wal(f);
	*w = (struct wal_file){
		.real = (sqlite3_file *)(void *)(w + 1), .gathered = sqlite3_malloc(GATHER)};
	if (!w->gathered)
		return SQLITE_NOMEM;
	int rc = system_vfs->xOpen(system_vfs, name, w->real, flags, out_flags);
	if (rc != SQLITE_OK) {
		sqlite3_free(w->gathered);
		return rc; /* no methods: SQLite does not close it */
	}
	w->base.pMethods = &wal_methods;
	return SQLITE_OK;
}

static sqlite3_vfs our_vfs;

static void make_vfs(void)
{
	system_vfs = sqlite3_vfs_find(NULL);
	if (!system_vfs)
		return;
	our_vfs = *system_vfs; /* its other methods take no notice of which struct they come from */
	our_vfs.zName = "afscell";
	our_vfs.pNext = NULL;
	our_vfs.szOsFile = (int)sizeof(struct wal_file) + system_vfs->szOsFile;
	our_vfs.xOpen = open_file;
	if (sqlite3_vfs_register(&our_vfs, 0) != SQLITE_OK)
		system_vfs = NULL;
}

const char *db_vfs_name(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_vfs);
	return system_vfs ? our_vfs.zName : NULL;
}
