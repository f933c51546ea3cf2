/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Thin SQLite: one file, one connection, statements by number, errors as afs_err.
 *
 * A struct db is one connection.  It has no threads of its own and must be used by one thread at a
 * time: either under a lock that its user has anyway (a volume's), or under its own lock
 * (db_lock, rank RANK_DB).  Who wants to read while a commit waits for the disk opens a second
 * connection to the same file: readers never wait for a writer (WAL).
 *
 * A schema is a name, numbered migrations and the statements of one user.  Several schemas may live
 * in one file, each with its own version.  A migration is never edited after release: a change is
 * another one at the end.
 *
 *   enum { S_FIND, S_ADD };
 *   static const char *const sql[] = {
 *           [S_FIND] = "SELECT id FROM t WHERE name = ?1",
 *           [S_ADD] = "INSERT INTO t(id, name) VALUES (?1, ?2)"};
 *
 *   CLEANUP(db_tx) struct db_tx tx = {};
 *   TRY(db_begin(db, &tx));
 *   TRY(db_run(db, S_ADD, DB_INT(7), DB_TEXT("seven")));
 *   CLEANUP(db_rows) struct db_rows r = db_query(db, S_FIND, DB_TEXT("seven"));
 *   while (db_next(&r))
 *           use(db_int(&r, 0));
 *   TRY(r.err);
 *   return db_commit(&tx);
 *
 * Errors of every call: AFS_ENOSPC the disk is full; AFS_EIO it failed; AFS_ECORRUPT the file is
 * damaged or no database; AFS_ENOMEM; AFS_EBUSY another process kept the write lock beyond the busy
 * timeout; AFS_EEXIST a UNIQUE or PRIMARY KEY rule was broken; AFS_EINVAL another constraint was;
 * AFS_EROFS, AFS_EACCESS the file may not be written or opened.  All but AFS_EEXIST and AFS_EBUSY
 * are logged here, with file and statement.  After an error inside a transaction roll back.
 *
 * Calls may wait for the disk, never for a network.  An open connection holds about 100 KiB plus
 * its page cache, which is bounded by db_options.cache_kib; nothing is mapped into memory but the
 * WAL index (32 KiB; not when `exclusive`). */
#pragma once
#include "cell/base/err.h"
#include "cell/base/mem.h"

#include <string.h>

struct db;
struct sqlite3_stmt;

struct db_schema {
	const char *name;              /* "vl"; unique in its file */
	const char *const *migrations; /* [i] leads from version i to i + 1; several statements each */
	unsigned version;              /* number of migrations */
	const char *const *sql;        /* the user's statements, each prepared once at first use */
	unsigned sql_count;
};

enum db_sync {
	DB_SYNC_PROCESS, /* a commit survives the end of this process at any instruction; after a power
	                  * loss the file is whole but may lack the last commits.  No fsync per commit. */
	DB_SYNC_POWER,   /* a commit survives a power loss: one fsync each */
	DB_SYNC_NONE,    /* scratch files: a power loss may damage them */
};

struct db_options {
	bool create;         /* make the file when it is missing; else AFS_ENOENT */
	bool read_only;      /* never changes the schema: an older version is AFS_EVERSION too */
	bool exclusive;      /* this is the only connection to the file: fewer system calls per use */
	enum db_sync sync;
	uint32_t cache_kib;  /* most page cache; 0: 512 */
	uint32_t busy_ms;    /* wait for another writer; 0: 10000 */
	uint32_t page_size;  /* of a new file; 0: 4096 */
	uint32_t wal_pages;  /* a commit that leaves this many in the WAL moves them; 0: 1000 */
};

/* Open `path` and bring `schema` to its version.  On AFS_OK the caller owns *out: db_close() it.
 * `schema` must outlive it.  AFS_ENOENT; AFS_EVERSION: written by a newer afscell or another
 * program (the log says which versions). */
afs_err db_open(const char *path, const struct db_schema *schema, const struct db_options *opt,
	struct db **out);
void db_close(struct db *db); /* NULL is fine; an open transaction is rolled back */
DEFINE_CLEANUP_PTR(db, struct db, db_close)

void db_lock(struct db *db);
void db_unlock(struct db *db);
const char *db_path(const struct db *db);

/* --- statements -------------------------------------------------------------------------- */

enum db_kind { DB_KIND_NULL, DB_KIND_INT, DB_KIND_TEXT, DB_KIND_BLOB };
struct db_value {
	enum db_kind kind;
	int64_t i;
	const void *p; /* must stay as it is until the statement is done */
	size_t n;
};
#define DB_NULL ((struct db_value){.kind = DB_KIND_NULL})
#define DB_INT(v) ((struct db_value){.kind = DB_KIND_INT, .i = (int64_t)(v)})
#define DB_TEXT(s) ((struct db_value){.kind = DB_KIND_TEXT, .p = (s), .n = strlen(s)})
#define DB_TEXT_N(s, len) ((struct db_value){.kind = DB_KIND_TEXT, .p = (s), .n = (len)})
#define DB_BLOB(b, len) ((struct db_value){.kind = DB_KIND_BLOB, .p = (b), .n = (len)})

/* The rows of a query.  `err` sticks; look at it after the loop. */
struct db_rows {
	struct db *db;
	struct sqlite3_stmt *st;
	afs_err err;
};
/* A statement may not be used again before its rows are closed: its own recursion is a mistake. */
#define db_query(db, statement, ...) db_query_values((db), (statement), DB_VALUES_(__VA_ARGS__))
/* A statement without rows.  What it changed: db_changes(). */
#define db_run(db, statement, ...) db_run_values((db), (statement), DB_VALUES_(__VA_ARGS__))
/* The first row's first column; AFS_ENOENT when there is no row or it is NULL. */
#define db_get_int(db, statement, out, ...)                                                        \
	db_get_int_values((db), (statement), (out), DB_VALUES_(__VA_ARGS__))
#define DB_VALUES_(...)                                                                            \
	(const struct db_value[]){DB_NULL, ##__VA_ARGS__},                                         \
		sizeof((const struct db_value[]){DB_NULL, ##__VA_ARGS__}) / sizeof(struct db_value) - 1

struct db_rows db_query_values(
	struct db *db, unsigned statement, const struct db_value *v /* v[0] is not used */, size_t n);
afs_err db_run_values(struct db *db, unsigned statement, const struct db_value *v, size_t n);
afs_err db_get_int_values(
	struct db *db, unsigned statement, int64_t *out, const struct db_value *v, size_t n);

/* True: there is a row, readable through the functions below until the next call. */
bool db_next(struct db_rows *r);
void db_rows_close(struct db_rows *r);
static inline void db_rows_cleanup(struct db_rows *r) { db_rows_close(r); }
/* Columns from 0.  NULL reads as 0 or as an empty value.  Text ends with a NUL behind n. */
int64_t db_int(struct db_rows *r, int col);
bool db_is_null(struct db_rows *r, int col);
const char *db_text(struct db_rows *r, int col, size_t *n /* may be NULL */);
const void *db_blob(struct db_rows *r, int col, size_t *n);

int64_t db_changes(struct db *db);    /* rows that the last statement changed */
int64_t db_last_rowid(struct db *db); /* of the last INSERT */

/* --- transactions ------------------------------------------------------------------------- */

struct db_tx {
	struct db *db; /* NULL: none is open */
};
/* BEGIN IMMEDIATE: takes the write lock at once (AFS_EBUSY).  They do not nest. */
afs_err db_begin(struct db *db, struct db_tx *tx);
/* One snapshot for several reads; ended like the other.  Never waits. */
afs_err db_begin_read(struct db *db, struct db_tx *tx);
/* On an error nothing of the transaction has happened. */
afs_err db_commit(struct db_tx *tx);
void db_rollback(struct db_tx *tx);
static inline void db_tx_cleanup(struct db_tx *tx) { db_rollback(tx); }

/* --- upkeep ------------------------------------------------------------------------------- */

/* Move the WAL into the file as far as readers allow; `truncate`: and make the WAL empty. */
afs_err db_checkpoint(struct db *db, bool truncate);
/* Is the file whole?  AFS_ECORRUPT (the log tells what was found first).  Reads all of it. */
afs_err db_check(struct db *db);
/* Prepare every statement of the schema now: what a test of a schema does. */
afs_err db_prepare_all(struct db *db);
/* Bytes that SQLite holds in this process, all connections. */
int64_t db_memory_used(void);
