/* SPDX-License-Identifier: BSD-2-Clause
 * The check finds each kind of damage, and nothing in a volume that is right. */
#include "store_lib.h"

#include "fileserver/store/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

static uint8_t data[9 << 20];

struct seen {
	unsigned kind[VS_F_QUOTA + 1];
};

static void note(void *ctx, const struct vs_finding *f)
{
	struct seen *s = ctx;
	s->kind[f->kind]++;
	for (const char *c = f->text; *c; c++)
		assert_in_range((unsigned char)*c, 32, 126);
}

static void populate(struct fix *x)
{
	struct vs_made m;
	struct vs_fid d = make_folder(x->v, root, "d"); /* 3 */
	make_folder(x->v, d, "sub");                    /* 5 */
	struct vs_fid f = make_file(x->v, d, "large");  /* 2 */
	store(x->v, f, 0, data, sizeof(data), sizeof(data));
	f = make_file(x->v, d, "small"); /* 4 */
	store(x->v, f, 0, data, 1000, 1000);
	assert_ok(vs_link(x->v, d, "small2", f, &who, &m));
	make_file(x->v, root, "empty");                                              /* 6 */
	assert_ok(vs_make_symlink(x->v, root, "link", "target", 6, &who, NULL, &m)); /* 8 */
}

static void change(struct fix *x, const char *sql)
{
	char path[300], *err = NULL;
	sqlite3 *db;
	snprintf(path, sizeof(path), "%s/vol/%d/meta.db", x->dir, VOL);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, &err), SQLITE_OK);
	assert_true(sqlite3_total_changes(db) > 0);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* `n` is the extent's place in the folder's order of names. */
static void extent_path(struct fix *x, char out[400], unsigned n)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/vol/%d/data", x->dir, VOL);
	struct dirent **e;
	int have = scandir(path, &e, NULL, alphasort);
	assert_true(have > (int)n + 2);
	snprintf(out, 400, "%s/%.20s", path, e[n + 2]->d_name);
	for (int i = 0; i < have; i++)
		free(e[i]);
	free(e);
}

static void a_volume_that_is_right_has_no_findings(void **state)
{
	(void)state;
	FIX(x);
	populate(&x);
	assert_clean(x.v);
	fix_close(&x);
	fix_open(&x);
	assert_clean(x.v);
}

static void damaged_rows_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *sql;
		enum vs_finding_kind kind;
	} harm[] = {
		{"UPDATE vnodes SET type = 9 WHERE key >> 31 = 6", VS_F_ROW},
		{"UPDATE vnodes SET type = 2 WHERE key >> 31 = 6", VS_F_ROW},
		{"UPDATE vnodes SET acl = x'0000' WHERE key >> 31 = 3", VS_F_ROW},
		{"UPDATE vnodes SET uniq = 9999 WHERE key >> 31 = 6", VS_F_ROW},
		{"UPDATE vnodes SET uniq = 9999 WHERE key >> 31 = 6", VS_F_ENTRY},
		{"UPDATE vnodes SET links = 7 WHERE key >> 31 = 4", VS_F_LINKS},
		{"UPDATE vnodes SET links = 2 WHERE key >> 31 = 3", VS_F_LINKS},
		{"UPDATE vnodes SET parent = 1, parent_uniq = 1 WHERE key >> 31 = 4", VS_F_PARENT},
		{"UPDATE vnodes SET parent = 1, parent_uniq = 1 WHERE key >> 31 = 5", VS_F_PARENT},
		{"UPDATE vnodes SET length = 5 WHERE key >> 31 = 4", VS_F_CONTENT},
		{"UPDATE vnodes SET length = 4096 WHERE key >> 31 = 3", VS_F_DIR},
		{"UPDATE vnodes SET length = 4096 * 1024 WHERE key >> 31 = 2", VS_F_ORPHAN},
		{"DELETE FROM vnodes WHERE key >> 31 = 6", VS_F_ENTRY},
		{"DELETE FROM vnodes WHERE key >> 31 = 3", VS_F_LOST},
		{"DELETE FROM vnodes WHERE key >> 31 = 1", VS_F_LOST},
		{"UPDATE volumes SET used_kib = used_kib + 1", VS_F_QUOTA},
		{"UPDATE volumes SET files = files - 1", VS_F_QUOTA},
		{"UPDATE volumes SET uniq = 3", VS_F_ROW},
		{"DELETE FROM dir_pages WHERE vnode = 3", VS_F_DIR},
		{"DELETE FROM blobs WHERE id = (SELECT content FROM vnodes WHERE key >> 31 = 4)",
			VS_F_CONTENT},
		{"INSERT INTO blobs VALUES(7777, x'00')", VS_F_ORPHAN},
		{"UPDATE blobs SET data = zeroblob(2048) WHERE id = (SELECT blob FROM dir_pages "
		 "WHERE vnode = 3)",
			VS_F_DIR},
		{"UPDATE dir_pages SET vnode = 7 WHERE vnode = 5", VS_F_ORPHAN},
		{"UPDATE extents SET refs = 2", VS_F_ORPHAN},
		{"UPDATE extents SET len = len - 1 WHERE id = 1", VS_F_CONTENT},
		{"UPDATE extents SET sums = zeroblob(256) WHERE id = 1", VS_F_CONTENT},
		{"DELETE FROM extents WHERE id = 1", VS_F_CONTENT},
		{"DELETE FROM file_extents WHERE idx = 0", VS_F_ORPHAN},
		{"UPDATE file_extents SET vnode = 4", VS_F_ORPHAN},
		{"UPDATE file_extents SET idx = 50 WHERE idx = 0", VS_F_ORPHAN},
	};
	for (size_t i = 0; i < ARRAY_SIZE(harm); i++) {
		FIX(x);
		populate(&x);
		fix_close(&x);
		change(&x, harm[i].sql);
		fix_open(&x);
		struct seen s = {{0}};
		size_t n;
		log_to(open("/dev/null", O_WRONLY), LOG_ERROR);
		assert_ok(vs_check(x.v, note, &s, &n));
		log_to(2, LOG_ERROR);
		if (!s.kind[harm[i].kind])
			fail_msg("not found: %s (%zu findings)", harm[i].sql, n);
	}
}

static void damaged_files_are_named(void **state)
{
	(void)state;
	FIX(x);
	char path[400], stray[420];
	uint8_t byte;
	populate(&x);
	extent_path(&x, path, 1);
	int fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, 3000000), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 3000000), 1);
	assert_int_equal(findings(x.v, false), 1); /* one bit, told by its checksum */
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 3000000), 1);
	assert_clean(x.v);
	assert_int_equal(pwrite(fd, "garbage", 7, 4 << 20), 7);
	assert_clean(x.v); /* what is behind the valid bytes is nothing */
	assert_int_equal(ftruncate(fd, 4000000), 0);
	assert_int_equal(findings(x.v, false), 1);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(findings(x.v, false), 1);
	snprintf(stray, sizeof(stray), "%.*s/00000000000000ff", (int)(strrchr(path, '/') - path),
		path);
	close(open(stray, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(findings(x.v, false), 2);
	snprintf(stray, sizeof(stray), "%.*s/what?", (int)(strrchr(path, '/') - path), path);
	close(open(stray, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(findings(x.v, false), 3);
}

struct worker {
	struct vs_volume *v;
	uint64_t seed;
	atomic_bool *stop;
	atomic_long done;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t rng = w->seed;
	const struct vs_who me = {.now = SEC(5), .id = 1};
	char dir_name[16];
	struct vs_made m;
	snprintf(dir_name, sizeof(dir_name), "w%llu", (unsigned long long)w->seed);
	if (vs_make_dir(w->v, root, dir_name, &me, NULL, &m))
		return NULL;
	const struct vs_fid dir = m.node.fid;
	struct vs_fid shared;
	if (vs_lookup(w->v, root, "shared", &shared))
		return NULL;
	while (!atomic_load(w->stop)) {
		char name[16];
		struct vs_status st;
		struct vs_removed r;
		struct vs_renamed n;
		struct vs_writer *wr;
		snprintf(name, sizeof(name), "f%u", below(&rng, 20));
		struct vs_fid f;
		uint64_t pos = below(&rng, 6 << 20),
			 len = below(&rng, 2) ? below(&rng, 3000) : below(&rng, 2 << 20);
		const struct vs_write req = {.pos = pos,
			.length = len,
			.file_length = below(&rng, 4) ? UINT64_MAX : pos};
		if (vs_lookup(w->v, dir, name, &f) != AFS_OK &&
			vs_create_file(w->v, dir, name, &me, NULL, &m) == AFS_OK)
			f = m.node.fid;
		f = below(&rng, 3) ? f : shared;
		if (vs_write_begin(w->v, f, &req, &me, &wr) == AFS_OK) {
			(void)vs_write_put(wr, data, len / 2);
			(void)vs_write_put(wr, data + len / 2, len - len / 2);
			(void)vs_write_end(wr, &me, &st);
		}
		if (below(&rng, 4) == 0)
			(void)vs_remove(w->v, dir, name, &me, &r);
		if (below(&rng, 4) == 0)
			(void)vs_rename(w->v, dir, name, root, name, true, &me, &n);
		w->done++;
	}
	return NULL;
}

static void check_while_others_work(enum vs_durability durability)
{
	CLEANUP(fix) struct fix x = {.config = {.durability = durability}};
	fix_init(&x);
	atomic_bool stop = false;
	enum { WORKERS = 3, CHECKS = 12, ENOUGH = 4, DEADLINE_S = 300 };
	struct worker w[WORKERS];
	pthread_t t[WORKERS];
	make_file(x.v, root, "shared");
	for (int i = 0; i < WORKERS; i++) {
		w[i] = (struct worker){.v = x.v, .seed = (uint64_t)i + 1, .stop = &stop};
		assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
	}
	/* Until both sides have done their part: how fast a worker comes on is the machine's affair. */
	const mono_ns deadline = clk_mono() + SEC(DEADLINE_S);
	for (int checks = 0;; checks++) {
		long least = LONG_MAX;
		for (int i = 0; i < WORKERS; i++)
			least = MIN(least, atomic_load(&w[i].done));
		if (checks >= CHECKS && least >= ENOUGH)
			break;
		if (clk_mono() > deadline)
			fail_msg("after %d s and %d checks a worker has done %ld of %d rounds",
				DEADLINE_S, checks, least, ENOUGH);
		assert_clean(x.v);
		vs_store_housekeep(x.s);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	assert_clean(x.v);
	fix_close(&x);
	fix_open(&x);
	assert_clean(x.v);
}

static void it_finds_nothing_while_others_work(void **state)
{
	(void)state;
	check_while_others_work(VS_PROCESS);
}

static void nor_when_they_wait_for_each_others_commits(void **state)
{
	(void)state;
	check_while_others_work(VS_POWER);
}

static int fill(void **state)
{
	(void)state;
	uint64_t rng = 9;
	for (size_t i = 0; i < sizeof(data); i += 4)
		data[i] = (uint8_t)next_random(&rng);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_volume_that_is_right_has_no_findings),
		T(damaged_rows_are_named),
		T(damaged_files_are_named),
		T(it_finds_nothing_while_others_work),
		T(nor_when_they_wait_for_each_others_commits),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, fill, NULL);
}
