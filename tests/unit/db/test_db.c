/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/log.h"
#include "cell/db/db.h"
#include "tests/unit/db/failmem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ADD, FIND, COUNT, ALL, SETS, BLOB };
static const char *const sql[] = {
	[ADD] = "INSERT INTO t(id, name) VALUES(?1, ?2)",
	[FIND] = "SELECT id FROM t WHERE name = ?1",
	[COUNT] = "SELECT count(*) FROM t",
	[ALL] = "SELECT id, name FROM t ORDER BY id",
	[SETS] = "UPDATE t SET name = ?2 WHERE id = ?1",
	[BLOB] = "SELECT CAST(?1 AS BLOB), ?2, ?3",
};
static const char *const migrations[] = {
	("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;"
	 "CREATE TABLE other(x)"),
	"ALTER TABLE t ADD COLUMN more TEXT",
	"CREATE TABLE third(x)",
};
static const struct db_schema v1 = {"test", migrations, 1, sql, 6};
static const struct db_schema v2 = {"test", migrations, 2, sql, 6};
static const struct db_options make = {.create = true};
static const struct db_options keep = {};

struct scratch {
	char *dir, path[256];
};
static int set_up(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));
	s->dir = test_scratch();
	snprintf(s->path, sizeof(s->path), "%s/x.db", s->dir);
	*state = s;
	return 0;
}
static int tear_down(void **state)
{
	struct scratch *s = *state;
	test_scratch_free(s->dir);
	free(s);
	return 0;
}

static int64_t rows_of(struct db *db)
{
	int64_t n = -1;
	assert_ok(db_get_int(db, COUNT, &n));
	return n;
}

static void a_missing_file_is_noent_unless_it_may_be_made(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *db = NULL;
	assert_err(db_open(s->path, &v1, &keep, &db), AFS_ENOENT);
	assert_ok(db_open(s->path, &v1, &make, &db));
	assert_int_equal(rows_of(db), 0);
}

static void rows_come_back_as_they_were_bound(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &make, &db));
	assert_ok(db_run(db, ADD, DB_INT(-7), DB_TEXT("minus")));
	assert_ok(db_run(db, ADD, DB_INT(INT64_MAX), DB_TEXT_N("bigger", 3)));
	assert_int_equal(db_last_rowid(db), INT64_MAX);

	int64_t id;
	assert_ok(db_get_int(db, FIND, &id, DB_TEXT("minus")));
	assert_int_equal(id, -7);
	assert_err(db_get_int(db, FIND, &id, DB_TEXT("none")), AFS_ENOENT);

	CLEANUP(db_rows) struct db_rows r = db_query(db, ALL);
	assert_true(db_next(&r));
	assert_string_equal(db_text(&r, 1, NULL), "minus");
	assert_true(db_next(&r));
	size_t n;
	assert_string_equal(db_text(&r, 1, &n), "big");
	assert_int_equal(n, 3);
	assert_false(db_next(&r));
	assert_ok(r.err);

	CLEANUP(db_rows) struct db_rows b = db_query(db, BLOB, DB_BLOB("a\0b", 3), DB_BLOB(NULL, 0), DB_NULL);
	assert_true(db_next(&b));
	assert_memory_equal(db_blob(&b, 0, &n), "a\0b", 3);
	assert_int_equal(n, 3);
	db_blob(&b, 1, &n);
	assert_int_equal(n, 0);
	assert_false(db_is_null(&b, 1));
	assert_true(db_is_null(&b, 2));
	assert_int_equal(db_int(&b, 2), 0);
}

static void a_second_row_of_one_key_is_eexist(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &make, &db));
	assert_ok(db_run(db, ADD, DB_INT(1), DB_TEXT("one")));
	assert_err(db_run(db, ADD, DB_INT(1), DB_TEXT("two")), AFS_EEXIST);
	assert_err(db_run(db, ADD, DB_INT(2), DB_TEXT("one")), AFS_EEXIST);
	assert_err(db_run(db, ADD, DB_INT(3), DB_NULL), AFS_EINVAL);
	assert_int_equal(rows_of(db), 1);
}

static void a_transaction_happens_as_a_whole_or_not(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &make, &db));
	{
		CLEANUP(db_tx) struct db_tx tx = {};
		assert_ok(db_begin(db, &tx));
		assert_ok(db_run(db, ADD, DB_INT(1), DB_TEXT("one")));
		assert_int_equal(rows_of(db), 1);
	} /* leaving the scope without a commit */
	assert_int_equal(rows_of(db), 0);
	CLEANUP(db_tx) struct db_tx tx = {};
	assert_ok(db_begin(db, &tx));
	assert_ok(db_run(db, ADD, DB_INT(1), DB_TEXT("one")));
	assert_ok(db_commit(&tx));
	assert_int_equal(rows_of(db), 1);
}

static void a_reader_does_not_wait_for_a_writer_and_sees_the_last_commit(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *w = NULL;
	CLEANUP(db) struct db *r = NULL;
	assert_ok(db_open(s->path, &v1, &make, &w));
	assert_ok(db_open(s->path, &v1, &keep, &r));
	CLEANUP(db_tx) struct db_tx tx = {};
	assert_ok(db_begin(w, &tx));
	assert_ok(db_run(w, ADD, DB_INT(1), DB_TEXT("one")));
	assert_int_equal(rows_of(r), 0);
	assert_ok(db_commit(&tx));
	assert_int_equal(rows_of(r), 1);
}

static void a_second_writer_is_told_busy_after_its_patience(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *a = NULL;
	CLEANUP(db) struct db *b = NULL;
	assert_ok(db_open(s->path, &v1, &make, &a));
	assert_ok(db_open(s->path, &v1, &(struct db_options){.busy_ms = 20}, &b));
	CLEANUP(db_tx) struct db_tx tx = {}, ty = {};
	assert_ok(db_begin(a, &tx));
	assert_err(db_begin(b, &ty), AFS_EBUSY);
	assert_ok(db_commit(&tx));
	assert_ok(db_begin(b, &ty));
	assert_ok(db_commit(&ty));
}

static void an_older_file_is_brought_up_to_date_and_keeps_its_rows(void **state)
{
	struct scratch *s = *state;
	struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &make, &db));
	assert_ok(db_run(db, ADD, DB_INT(1), DB_TEXT("one")));
	db_close(db);
	assert_err(db_open(s->path, &v2, &(struct db_options){.read_only = true}, &db), AFS_EVERSION);
	assert_ok(db_open(s->path, &v2, &keep, &db));
	assert_int_equal(rows_of(db), 1);
	db_close(db);
	/* and the file now refuses the older program */
	assert_err(db_open(s->path, &v1, &keep, &db), AFS_EVERSION);
}

static void two_schemas_share_a_file_each_with_its_version(void **state)
{
	struct scratch *s = *state;
	static const char *const more[] = {"CREATE TABLE u(x)"};
	static const struct db_schema second = {"second", more, 1, NULL, 0};
	CLEANUP(db) struct db *a = NULL;
	CLEANUP(db) struct db *b = NULL;
	assert_ok(db_open(s->path, &v2, &make, &a));
	assert_ok(db_open(s->path, &second, &make, &b));
	db_close(TAKE(a));
	assert_ok(db_open(s->path, &v2, &keep, &a));
}

static void a_failed_migration_leaves_the_old_version(void **state)
{
	struct scratch *s = *state;
	static const char *const bad[] = {"CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)",
		"CREATE TABLE w(x); CREATE TABLE nonsense("};
	static const struct db_schema one = {"test", bad, 1, sql, 6}, two = {"test", bad, 2, sql, 6};
	struct db *db = NULL;
	assert_ok(db_open(s->path, &one, &make, &db));
	db_close(db);
	assert_err(db_open(s->path, &two, &keep, &db), AFS_EIO);
	assert_ok(db_open(s->path, &one, &keep, &db));
	db_close(db);
}

static void write_file(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

static void a_file_that_is_no_database_is_corrupt_and_untouched(void **state)
{
	struct scratch *s = *state;
	static char text[8192];
	memset(text, 'x', sizeof(text));
	write_file(s->path, text, sizeof(text));
	struct db *db = NULL;
	assert_err(db_open(s->path, &v1, &make, &db), AFS_ECORRUPT);
	struct stat st;
	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_size, sizeof(text));
}

static void another_programs_database_is_refused(void **state)
{
	struct scratch *s = *state;
	sqlite3 *conn;
	assert_int_equal(sqlite3_open(s->path, &conn), SQLITE_OK);
	assert_int_equal(sqlite3_exec(conn, "CREATE TABLE mine(x)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(conn);
	struct db *db = NULL;
	assert_err(db_open(s->path, &v1, &make, &db), AFS_EVERSION);
}

static void damage_is_found_by_the_check(void **state)
{
	struct scratch *s = *state;
	struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &make, &db));
	for (int i = 0; i < 2000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		assert_ok(db_run(db, ADD, DB_INT(i), DB_TEXT(name)));
	}
	assert_ok(db_check(db));
	db_close(db);
	struct stat st;
	assert_int_equal(stat(s->path, &st), 0);
	int fd = open(s->path, O_WRONLY);
	char junk[4096];
	memset(junk, 0xa5, sizeof(junk));
	assert_int_equal(pwrite(fd, junk, sizeof(junk), st.st_size / 2 & ~4095), sizeof(junk));
	close(fd);
	assert_ok(db_open(s->path, &v1, &keep, &db));
	assert_err(db_check(db), AFS_ECORRUPT);
	db_close(db);
}

static void a_checkpoint_empties_the_log(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &make, &db));
	assert_ok(db_run(db, ADD, DB_INT(1), DB_TEXT("one")));
	char wal[300];
	snprintf(wal, sizeof(wal), "%s-wal", s->path);
	struct stat st;
	assert_int_equal(stat(wal, &st), 0);
	assert_true(st.st_size > 0);
	assert_ok(db_checkpoint(db, true));
	assert_int_equal(stat(wal, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void a_full_disk_is_enospc_and_changes_nothing(void **state)
{
	struct scratch *s = *state;
	CLEANUP(db) struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &make, &db));
	assert_ok(db_run(db, ADD, DB_INT(1), DB_TEXT("one")));
	/* the page limit is how SQLite is told of a disk of that size */
	static const char *const grow[] = {"INSERT INTO t(id, name) SELECT ?1, hex(zeroblob(3000000))",
		"SELECT count(*) FROM t", "PRAGMA max_page_count = 20"};
	static const struct db_schema small = {"test", migrations, 1, grow, 3};
	CLEANUP(db) struct db *tiny = NULL;
	assert_ok(db_open(s->path, &small, &keep, &tiny));
	assert_ok(db_run(tiny, 2));
	CLEANUP(db_tx) struct db_tx tx = {};
	assert_ok(db_begin(tiny, &tx));
	assert_err(db_run(tiny, 0, DB_INT(2)), AFS_ENOSPC);
	db_rollback(&tx);
	int64_t n;
	assert_ok(db_get_int(tiny, 1, &n));
	assert_int_equal(n, 1);
}

static void a_file_size_limit_is_an_error_not_damage(void **state)
{
	struct scratch *s = *state;
	/* in a child: a limit is for the whole process, and other tests write too */
	pid_t pid = fork();
	if (pid == 0) {
		struct db *db = NULL;
		signal(SIGXFSZ, SIG_IGN);
		if (db_open(s->path, &v1, &make, &db))
			_exit(1);
		struct rlimit lim = {300000, 300000};
		setrlimit(RLIMIT_FSIZE, &lim);
		afs_err err = AFS_OK;
		int added = 0;
		for (; added < 20000 && !err; added++) {
			char name[300];
			snprintf(name, sizeof(name), "%0280d", added);
			err = db_run(db, ADD, DB_INT(added), DB_TEXT(name));
		}
		int64_t n = -1;
		if (db_get_int(db, COUNT, &n))
			_exit(2);
		_exit(err && err != AFS_ECORRUPT && n == added - 1 ? 0 : 3);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	CLEANUP(db) struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &keep, &db));
	assert_ok(db_check(db));
}

static void a_kill_in_a_transaction_leaves_the_last_commit(void **state)
{
	struct scratch *s = *state;
	for (int round = 0; round < 8; round++) {
		int pipefd[2];
		assert_int_equal(pipe(pipefd), 0);
		pid_t pid = fork();
		if (pid == 0) {
			struct db *db = NULL;
			if (db_open(s->path, &v1, &make, &db))
				_exit(1);
			for (int64_t i = (int64_t)round * 1000000;; i += 2) {
				struct db_tx tx = {};
				if (db_begin(db, &tx))
					_exit(1);
				for (int k = 0; k < 2; k++) {
					char name[32];
					snprintf(name, sizeof(name), "n%lld", (long long)i + k);
					if (db_run(db, ADD, DB_INT(i + k), DB_TEXT(name)))
						_exit(1);
				}
				if (db_commit(&tx))
					_exit(1);
				if (write(pipefd[1], &i, sizeof(i)) != sizeof(i))
					_exit(1);
			}
		}
		close(pipefd[1]);
		int64_t last = -1, acknowledged = -1;
		for (int k = 0; k < 50 + round * 7; k++)
			if (read(pipefd[0], &last, sizeof(last)) == sizeof(last))
				acknowledged = last;
		kill(pid, SIGKILL);
		while (read(pipefd[0], &last, sizeof(last)) == sizeof(last))
			acknowledged = last;
		close(pipefd[0]);
		int status;
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));

		CLEANUP(db) struct db *db = NULL;
		assert_ok(db_open(s->path, &v1, &keep, &db));
		assert_ok(db_check(db));
		assert_int_equal(rows_of(db) % 2, 0); /* pairs only */
		int64_t id;
		char name[32];
		snprintf(name, sizeof(name), "n%lld", (long long)acknowledged + 1);
		assert_ok(db_get_int(db, FIND, &id, DB_TEXT(name)));
	}
}

static afs_err open_and_add(const char *path, int *stage)
{
	CLEANUP(db) struct db *db = NULL;
	*stage = 0;
	TRY(db_open(path, &v1, &make, &db));
	*stage = 1;
	CLEANUP(db_tx) struct db_tx tx = {};
	TRY(db_begin(db, &tx));
	TRY(db_run(db, ADD, DB_INT(1), DB_TEXT("one")));
	TRY(db_run(db, ADD, DB_INT(2), DB_TEXT("two")));
	TRY(db_commit(&tx));
	*stage = 2;
	int64_t n;
	TRY(db_get_int(db, COUNT, &n));
	return n == 2 ? AFS_OK : AFS_ECORRUPT;
}

static void memory_that_runs_out_anywhere_is_an_error_and_no_half_change(void **state)
{
	struct scratch *s = *state;
	long fail = 0;
	for (;; fail++) {
		char path[300];
		snprintf(path, sizeof(path), "%s/m%ld.db", s->dir, fail);
		int stage;
		mem_fail_after(fail);
		afs_err err = open_and_add(path, &stage);
		bool refused = mem_has_failed();
		mem_fail_after(-1);
		if (!refused) {
			assert_ok(err);
			break;
		}
		/* SQLite does without some of what it asks for; else it is told */
		assert_true(err == AFS_OK || err == AFS_ENOMEM);
		struct db *db = NULL;
		assert_ok(db_open(path, &v1, &make, &db));
		assert_int_equal(rows_of(db), stage == 2 ? 2 : 0);
		db_close(db);
	}
	assert_true(fail > 20);
}

static void an_open_connection_is_small(void **state)
{
	struct scratch *s = *state;
	int64_t before = db_memory_used();
	CLEANUP(db) struct db *db = NULL;
	assert_ok(db_open(s->path, &v1, &(struct db_options){.create = true, .cache_kib = 256}, &db));
	assert_ok(db_prepare_all(db));
	struct db_tx tx = {};
	assert_ok(db_begin(db, &tx));
	for (int i = 0; i < 30000; i++) {
		char name[200];
		snprintf(name, sizeof(name), "%0180d", i);
		assert_ok(db_run(db, ADD, DB_INT(i), DB_TEXT(name)));
	}
	assert_ok(db_commit(&tx));
	assert_in_range(db_memory_used() - before, 1, 640 * 1024);
}

#define S(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
int main(void)
{
	if (failmem_install() != SQLITE_OK)
		return 1;
	log_to(open("/dev/null", O_WRONLY), LOG_ERROR); /* refusals are what is tested */
	const struct CMUnitTest tests[] = {
		S(a_missing_file_is_noent_unless_it_may_be_made),
		S(rows_come_back_as_they_were_bound),
		S(a_second_row_of_one_key_is_eexist),
		S(a_transaction_happens_as_a_whole_or_not),
		S(a_reader_does_not_wait_for_a_writer_and_sees_the_last_commit),
		S(a_second_writer_is_told_busy_after_its_patience),
		S(an_older_file_is_brought_up_to_date_and_keeps_its_rows),
		S(two_schemas_share_a_file_each_with_its_version),
		S(a_failed_migration_leaves_the_old_version),
		S(a_file_that_is_no_database_is_corrupt_and_untouched),
		S(another_programs_database_is_refused),
		S(damage_is_found_by_the_check),
		S(a_checkpoint_empties_the_log),
		S(a_full_disk_is_enospc_and_changes_nothing),
		S(a_file_size_limit_is_an_error_not_damage),
		S(a_kill_in_a_transaction_leaves_the_last_commit),
		S(memory_that_runs_out_anywhere_is_an_error_and_no_half_change),
		S(an_open_connection_is_small),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
