/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What is decided here: WAL always; one table afscell_schema(name, version) per file that says which
 * schemas it holds; the file's application_id is "afsc".  Statements are prepared at first use and
 * kept; migrations and pragmas are the only SQL that is run as text. */
#include "cell/db/db.h"

#include "cell/base/log.h"
#include "cell/base/mtx.h"
#include "cell/db/vfs.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

enum { APPLICATION_ID = 0x61667363, CACHE_KIB = 512, BUSY_MS = 10000, WAL_PAGES = 1000 };

struct db {
	struct mtx lock;
	sqlite3 *conn;
	const struct db_schema *schema;
	char *path;
	bool in_tx;
	sqlite3_stmt *begin, *begin_read, *commit, *rollback;
	sqlite3_stmt *st[]; /* by number, NULL until first used */
};

/* --- errors ------------------------------------------------------------------------------- */

static afs_err err_of_errno(int eno, afs_err otherwise)
{
	switch (eno) {
	case ENOSPC:
	case EDQUOT:
		return AFS_ENOSPC;
	case EACCES:
	case EPERM:
		return AFS_EACCESS;
	case EROFS:
		return AFS_EROFS;
	case ENOENT:
	case ENOTDIR:
		return AFS_ENOENT;
	default:
		return otherwise;
	}
}

static afs_err err_of_sqlite(sqlite3 *conn, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return AFS_OK;
	case SQLITE_FULL:
		return AFS_ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return AFS_ECORRUPT;
	case SQLITE_NOMEM:
		return AFS_ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return AFS_EBUSY;
	case SQLITE_CONSTRAINT:
		return rc == SQLITE_CONSTRAINT_UNIQUE || rc == SQLITE_CONSTRAINT_PRIMARYKEY ||
				       rc == SQLITE_CONSTRAINT_ROWID
			       ? AFS_EEXIST
			       : AFS_EINVAL;
	case SQLITE_TOOBIG:
		return AFS_ETOOBIG;
	case SQLITE_READONLY:
		return AFS_EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return AFS_EACCESS;
	case SQLITE_INTERRUPT:
		return AFS_EINTR;
	case SQLITE_CANTOPEN:
		return err_of_errno(conn ? sqlite3_system_errno(conn) : 0, AFS_EIO);
	case SQLITE_IOERR:
		if (rc == SQLITE_IOERR_NOMEM)
			return AFS_ENOMEM;
		return err_of_errno(conn ? sqlite3_system_errno(conn) : 0, AFS_EIO);
	default:
		return AFS_EIO;
	}
}

/* What went wrong with `what` on this connection, logged unless it is an everyday answer. */
static afs_err failed(sqlite3 *conn, const char *path, const char *what, int rc)
{
	assert(rc != SQLITE_MISUSE && rc != SQLITE_RANGE);
	afs_err err = err_of_sqlite(conn, rc);
	if (err == AFS_OK || err == AFS_EEXIST || err == AFS_EBUSY)
		return err;
	return log_error(err, "db.failed path=%s code=%d text=\"%s\" sql=\"%.120s\"", path, rc,
		conn ? sqlite3_errmsg(conn) : sqlite3_errstr(rc), what);
}

/* --- opening ------------------------------------------------------------------------------ */

static afs_err run_text(struct db *db, const char *sql)
{
	return failed(db->conn, db->path, sql, sqlite3_exec(db->conn, sql, NULL, NULL, NULL));
}

[[gnu::format(printf, 2, 3)]] static afs_err pragma(struct db *db, const char *fmt, ...)
{
	char sql[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	return run_text(db, sql);
}

/* One number from text that is not a statement of the schema; `none` when there is no row. */
static afs_err ask_int(struct db *db, const char *sql, const char *arg, int64_t none, int64_t *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db->conn, sql, -1, &st, NULL);
	if (rc == SQLITE_OK && arg)
		rc = sqlite3_bind_text(st, 1, arg, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	*out = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : none;
	afs_err err = failed(db->conn, db->path, sql, rc);
	sqlite3_finalize(st);
	return err;
}

/* The file's version of our schema; 0 when the file is new or has none. */
static afs_err read_version(struct db *db, int64_t *version)
{
	int64_t app, tables, known;
	TRY(ask_int(db, "PRAGMA application_id", NULL, 0, &app));
	TRY(ask_int(db, "SELECT count(*) FROM sqlite_master", NULL, 0, &tables));
	if (tables && app != APPLICATION_ID)
		return log_error(AFS_EVERSION,
			"db.foreign path=%s text=\"this file belongs to another program; afscell "
			"will not "
			"touch it\"",
			db->path);
	TRY(ask_int(db, "SELECT count(*) FROM sqlite_master WHERE name = 'afscell_schema'", NULL, 0,
		&known));
	*version = 0;
	if (known)
		TRY(ask_int(db, "SELECT version FROM afscell_schema WHERE name = ?1",
			db->schema->name, 0, version));
	if (*version < 0 || *version > db->schema->version)
		return log_error(AFS_EVERSION,
			"db.newer path=%s schema=%s version=%lld known=%u text=\"written by a "
			"newer "
			"afscell: run that one, or restore a copy made before it\"",
			db->path, db->schema->name, (long long)*version, db->schema->version);
	return AFS_OK;
}

static afs_err migrate_locked(struct db *db)
{
	int64_t version;
	TRY(read_version(db, &version)); /* another process may have been first */
	TRY(run_text(db, "CREATE TABLE IF NOT EXISTS afscell_schema("
			 "name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID"));
	TRY(pragma(db, "PRAGMA application_id = %d", APPLICATION_ID));
	for (; version < db->schema->version; version++)
		TRY(run_text(db, db->schema->migrations[version]));

	char *sql = sqlite3_mprintf("INSERT INTO afscell_schema VALUES(%Q, %u) ON CONFLICT(name) "
				    "DO UPDATE SET version = excluded.version",
		db->schema->name, db->schema->version);
	if (!sql)
		return AFS_ENOMEM;
	afs_err err = run_text(db, sql);
	sqlite3_free(sql);
	return err;
}

static afs_err migrate(struct db *db, bool read_only)
{
	int64_t version;
	TRY(read_version(db, &version));
	if (version == db->schema->version)
		return AFS_OK;
	if (read_only)
		return log_error(AFS_EVERSION,
			"db.older path=%s schema=%s version=%lld known=%u text=\"written by an "
			"older "
			"afscell and opened for reading only: start the cell once to bring it up "
			"to date\"",
			db->path, db->schema->name, (long long)version, db->schema->version);
	TRY(run_text(db, "BEGIN IMMEDIATE"));
	afs_err err = migrate_locked(db);
	if (!err)
		err = run_text(db, "COMMIT");
	if (err)
		(void)sqlite3_exec(db->conn, "ROLLBACK", NULL, NULL, NULL);
	return err;
}

static afs_err set_up(struct db *db, const struct db_options *opt)
{
	sqlite3_extended_result_codes(db->conn, 1);
	sqlite3_busy_timeout(db->conn, (int)(opt->busy_ms ? opt->busy_ms : BUSY_MS));
	/* lookaside serves parsing, which happens once per statement: keep it small */
	sqlite3_db_config(db->conn, SQLITE_DBCONFIG_LOOKASIDE, NULL, 256, 64);
	sqlite3_db_config(db->conn, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->conn, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db->conn, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(db->conn, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);

	/* before the first read: one that found a WAL would map its index for sharing */
	if (opt->exclusive)
		TRY(pragma(db, "PRAGMA locking_mode = EXCLUSIVE"));
	TRY(pragma(db, "PRAGMA cache_size = -%u", opt->cache_kib ? opt->cache_kib : CACHE_KIB));
	TRY(pragma(db, "PRAGMA mmap_size = 0"));
	TRY(pragma(db, "PRAGMA temp_store = MEMORY"));
	TRY(pragma(db, "PRAGMA foreign_keys = ON"));
	TRY(pragma(db, "PRAGMA secure_delete = FAST"));
	if (opt->page_size)
		TRY(pragma(db, "PRAGMA page_size = %u", opt->page_size));
	if (!opt->read_only)
		TRY(pragma(db, "PRAGMA journal_mode = WAL"));
	const unsigned wal_pages = opt->wal_pages ? opt->wal_pages : WAL_PAGES;
	TRY(pragma(db, "PRAGMA journal_size_limit = %u", wal_pages * 4096));
	TRY(pragma(db, "PRAGMA wal_autocheckpoint = %u", wal_pages));
	TRY(pragma(db, "PRAGMA synchronous = %s",
		opt->sync == DB_SYNC_POWER  ? "FULL"
		: opt->sync == DB_SYNC_NONE ? "OFF"
					    : "NORMAL"));
	return migrate(db, opt->read_only);
}

afs_err db_open(const char *path, const struct db_schema *schema, const struct db_options *opt,
	struct db **out)
{
	CLEANUP(db)
	struct db *db = mem_alloc(1, sizeof(*db) + schema->sql_count * sizeof(db->st[0]));
	if (!db)
		return AFS_ENOMEM;
	mtx_init(&db->lock, RANK_DB);
	db->schema = schema;
	db->path = mem_strdup(path);
	if (!db->path)
		return AFS_ENOMEM;

	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	flags |= opt->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
	flags |= opt->create && !opt->read_only ? SQLITE_OPEN_CREATE : 0;
	int rc = sqlite3_open_v2(path, &db->conn, flags, db_vfs_name());
	if (rc == SQLITE_CANTOPEN && !opt->create && access(path, F_OK) != 0 && errno == ENOENT)
		return AFS_ENOENT; /* the caller may be asking just that */
	TRY(failed(db->conn, path, "open", rc));
	TRY(set_up(db, opt));
	*out = TAKE(db);
	return AFS_OK;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	for (unsigned i = 0; i < db->schema->sql_count; i++)
		sqlite3_finalize(db->st[i]);
	sqlite3_finalize(db->begin);
	sqlite3_finalize(db->begin_read);
	sqlite3_finalize(db->commit);
	sqlite3_finalize(db->rollback);
	int rc = sqlite3_close(db->conn);
	assert(rc == SQLITE_OK);
	(void)rc;
	mem_free(db->path);
	mtx_fini(&db->lock);
	mem_free(db);
}

void db_lock(struct db *db) NO_TSA { mtx_lock(&db->lock); }
void db_unlock(struct db *db) NO_TSA { mtx_unlock(&db->lock); }
const char *db_path(const struct db *db) { return db->path; }

/* --- statements --------------------------------------------------------------------------- */

static afs_err prepare(struct db *db, const char *sql, sqlite3_stmt **st)
{
	if (*st)
		return AFS_OK;
	return failed(db->conn, db->path, sql,
		sqlite3_prepare_v3(db->conn, sql, -1, SQLITE_PREPARE_PERSISTENT, st, NULL));
}

static int bind_value(sqlite3_stmt *st, int at, const struct db_value *v)
{
	switch (v->kind) {
	case DB_KIND_NULL:
		return sqlite3_bind_null(st, at);
	case DB_KIND_INT:
		return sqlite3_bind_int64(st, at, v->i);
	case DB_KIND_TEXT:
		return sqlite3_bind_text64(
			st, at, v->p ? v->p : "", v->n, SQLITE_STATIC, SQLITE_UTF8);
	case DB_KIND_BLOB:
		return v->n ? sqlite3_bind_blob64(st, at, v->p, v->n, SQLITE_STATIC)
			    : sqlite3_bind_zeroblob(st, at, 0);
	}
	return SQLITE_MISUSE;
}

struct db_rows db_query_values(
	struct db *db, unsigned statement, const struct db_value *v, size_t n)
{
	assert(statement < db->schema->sql_count);
	struct db_rows r = {.db = db};
	r.err = prepare(db, db->schema->sql[statement], &db->st[statement]);
	if (r.err)
		return r;
	sqlite3_stmt *st = db->st[statement];
	assert(!sqlite3_stmt_busy(st));
	assert(sqlite3_bind_parameter_count(st) == (int)n);
	r.st = st;
	for (size_t i = 1; i <= n && !r.err; i++)
		r.err = failed(db->conn, db->path, sqlite3_sql(st), bind_value(st, (int)i, &v[i]));
	return r;
}

bool db_next(struct db_rows *r)
{
	if (r->err || !r->st)
		return false;
	int rc = sqlite3_step(r->st);
	if (rc == SQLITE_ROW)
		return true;
	if (rc != SQLITE_DONE)
		r->err = failed(r->db->conn, r->db->path, sqlite3_sql(r->st), rc);
	sqlite3_reset(r->st);
	sqlite3_clear_bindings(r->st);
	r->st = NULL;
	return false;
}

void db_rows_close(struct db_rows *r)
{
	if (r->st) {
		sqlite3_reset(r->st);
		sqlite3_clear_bindings(r->st);
		r->st = NULL;
	}
}

afs_err db_run_values(struct db *db, unsigned statement, const struct db_value *v, size_t n)
{
	CLEANUP(db_rows) struct db_rows r = db_query_values(db, statement, v, n);
	while (db_next(&r))
		continue;
	return r.err;
}

afs_err db_get_int_values(
	struct db *db, unsigned statement, int64_t *out, const struct db_value *v, size_t n)
{
	CLEANUP(db_rows) struct db_rows r = db_query_values(db, statement, v, n);
	if (!db_next(&r))
		return r.err ? r.err : AFS_ENOENT;
	if (db_is_null(&r, 0))
		return AFS_ENOENT;
	*out = db_int(&r, 0);
	return AFS_OK;
}

int64_t db_int(struct db_rows *r, int col) { return sqlite3_column_int64(r->st, col); }
bool db_is_null(struct db_rows *r, int col)
{
	return sqlite3_column_type(r->st, col) == SQLITE_NULL;
}

const char *db_text(struct db_rows *r, int col, size_t *n)
{
	const char *s = (const char *)sqlite3_column_text(r->st, col);
	if (!s && sqlite3_column_type(r->st, col) != SQLITE_NULL)
		r->err = AFS_ENOMEM;
	if (n)
		*n = s ? (size_t)sqlite3_column_bytes(r->st, col) : 0;
	return s ? s : "";
}

const void *db_blob(struct db_rows *r, int col, size_t *n)
{
	const void *b = sqlite3_column_blob(r->st, col);
	*n = b ? (size_t)sqlite3_column_bytes(r->st, col) : 0;
	return b ? b : "";
}

int64_t db_changes(struct db *db) { return sqlite3_changes64(db->conn); }
int64_t db_last_rowid(struct db *db) { return sqlite3_last_insert_rowid(db->conn); }

/* --- transactions -------------------------------------------------------------------------- */

static afs_err run_kept(struct db *db, const char *sql, sqlite3_stmt **st)
{
	TRY(prepare(db, sql, st));
	int rc = sqlite3_step(*st);
	afs_err err = failed(db->conn, db->path, sql, rc);
	sqlite3_reset(*st);
	return err;
}

static afs_err begin_with(struct db *db, struct db_tx *tx, const char *sql, sqlite3_stmt **st)
{
	assert(!db->in_tx && !tx->db);
	/* so that ending it needs no memory */
	TRY(prepare(db, "ROLLBACK", &db->rollback));
	TRY(prepare(db, "COMMIT", &db->commit));
	TRY(run_kept(db, sql, st));
	db->in_tx = true;
	tx->db = db;
	return AFS_OK;
}

afs_err db_begin(struct db *db, struct db_tx *tx)
{
	return begin_with(db, tx, "BEGIN IMMEDIATE", &db->begin);
}

afs_err db_begin_read(struct db *db, struct db_tx *tx)
{
	return begin_with(db, tx, "BEGIN DEFERRED", &db->begin_read);
}

afs_err db_commit(struct db_tx *tx)
{
	assert(tx->db);
	afs_err err = run_kept(tx->db, "COMMIT", &tx->db->commit);
	if (err) {
		db_rollback(tx);
		return err;
	}
	tx->db->in_tx = false;
	tx->db = NULL;
	return AFS_OK;
}

void db_rollback(struct db_tx *tx)
{
	if (!tx->db)
		return;
	struct db *db = TAKE(tx->db);
	db->in_tx = false;
	/* some errors (disk full, memory) have ended it already */
	if (!sqlite3_get_autocommit(db->conn))
		(void)run_kept(db, "ROLLBACK", &db->rollback); /* logged; the connection decides */
}

/* --- upkeep --------------------------------------------------------------------------------- */

afs_err db_checkpoint(struct db *db, bool truncate)
{
	int rc = sqlite3_wal_checkpoint_v2(db->conn, NULL,
		truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return failed(db->conn, db->path, "checkpoint", rc);
}

afs_err db_check(struct db *db)
{
	static const char sql[] = "PRAGMA quick_check(1)";
	sqlite3_stmt *st = NULL;
	TRY(prepare(db, sql, &st));
	int rc = sqlite3_step(st);
	afs_err err = failed(db->conn, db->path, sql, rc);
	const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (!err && text && strcmp(text, "ok") != 0)
		err = log_error(
			AFS_ECORRUPT, "db.damaged path=%s text=\"%s\"", db->path, LOG_SAFE(text));
	else if (!err && !text)
		err = AFS_ENOMEM;
	sqlite3_finalize(st);
	return err;
}

afs_err db_prepare_all(struct db *db)
{
	for (unsigned i = 0; i < db->schema->sql_count; i++)
		TRY(prepare(db, db->schema->sql[i], &db->st[i]));
	return AFS_OK;
}

int64_t db_memory_used(void) { return sqlite3_memory_used(); }
