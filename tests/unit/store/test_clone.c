/* SPDX-License-Identifier: BSD-2-Clause
 * Clones show what was there when they were made, whatever happens to the volume after; and what nobody
 * sees any more goes. */
#include "digest.h"

#include "fileserver/store/internal.h"

#include <dirent.h>
#include <sqlite3.h>
#include <unistd.h>

enum { CLONES = 6, BYTES = 5 << 20 };
static uint8_t data[BYTES];

static struct vs_volume *clone_of(struct vs_volume *v, afs_volid id, enum afs_voltype type)
{
	struct vs_header h = {.id = id, .type = type}, on = {.in_service = true};
	struct vs_volume *c;
	snprintf(h.name, sizeof(h.name), "clone.%u", id);
	assert_ok(vs_clone_make(v, &h, SEC(77), &c));
	assert_ok(vs_volume_set_header(c, &on, VS_H_IN_SERVICE | VS_H_DESTROY_ME));
	return c;
}

/* Some changes of every kind. */
static void churn(struct vs_volume *v, uint64_t *rng, int n)
{
	char name[16], other[16];
	struct vs_made m;
	struct vs_removed r;
	struct vs_renamed rn;
	struct vs_fid f;
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "n%u", below(rng, 12));
		snprintf(other, sizeof(other), "n%u", below(rng, 12));
		switch (below(rng, 6)) {
		case 0:
			(void)vs_make_dir(v, root, name, &who, NULL, &m);
			break;
		case 1:
			if (vs_remove(v, root, name, &who, &r) == AFS_EISDIR)
				(void)vs_remove_dir(v, root, name, &who, &r);
			break;
		case 2:
			(void)vs_rename(v, root, name, root, other, true, &who, &rn);
			break;
		default:
			if (vs_lookup(v, root, name, &f) != AFS_OK) {
				f = make_file(v, root, name);
			}
			uint64_t pos = below(rng, 2) ? below(rng, 3000) : below(rng, 9 << 20),
				 len = below(rng, 2) ? below(rng, 3000) : below(rng, BYTES);
			struct vs_write req = {.pos = pos, .length = len, .file_length = below(rng, 3) ? UINT64_MAX : pos};
			struct vs_writer *w;
			struct vs_status st;
			if (vs_write_begin(v, f, &req, &who, &w) == AFS_OK) {
				assert_ok(vs_write_put(w, data + below(rng, 1000), MIN(len, (uint64_t)BYTES - 1000)));
				assert_ok(vs_write_end(w, &who, &st));
			}
		}
	}
}

static void settle_down(struct fix *x)
{
	for (int i = 0; i < 20; i++)
		vs_store_housekeep(x->s);
}

static void clones_show_what_was_there(void **state)
{
	(void)state;
	FIX(x);
	uint64_t rng = 3, sum[CLONES];
	struct vs_volume *c[CLONES];
	for (int i = 0; i < CLONES; i++) {
		churn(x.v, &rng, 25);
		sum[i] = digest(x.v);
		c[i] = clone_of(x.v, VOL + 1 + (afs_volid)i, i % 2 ? AFS_VOL_RO : AFS_VOL_BK);
		for (int k = 0; k <= i; k++)
			assert_true(digest(c[k]) == sum[k]);
	}
	churn(x.v, &rng, 40);
	uint64_t now = digest(x.v);
	assert_clean(x.v);
	for (int i = 0; i < CLONES; i++) {
		struct vs_made m;
		assert_true(digest(c[i]) == sum[i]);
		assert_clean(c[i]);
		assert_int_equal(vs_create_file(c[i], root, "no", &who, NULL, &m), AFS_EROFS);
		vs_volume_unref(c[i]);
	}
	fix_close(&x);
	fix_open(&x); /* they are found again */
	assert_true(digest(x.v) == now);
	for (int i = 0; i < CLONES; i++) {
		assert_ok(vs_volume_enter(x.s, VOL + 1 + (afs_volid)i, &c[i]));
		assert_true(digest(c[i]) == sum[i]);
	}
	/* every other one goes, one is refreshed; the rest do not feel it */
	for (int i = 0; i < CLONES; i += 2) {
		assert_ok(vs_volume_delete(c[i]));
		vs_volume_unref(c[i]);
		settle_down(&x);
	}
	assert_ok(vs_clone_refresh(x.v, c[3], SEC(99)));
	sum[3] = digest(x.v);
	churn(x.v, &rng, 40);
	settle_down(&x);
	assert_clean(x.v);
	for (int i = 1; i < CLONES; i += 2) {
		assert_true(digest(c[i]) == sum[i]);
		assert_clean(c[i]);
		vs_volume_unref(c[i]);
	}
}

static long rows(struct fix *x, const char *sql)
{
	char path[300];
	sqlite3 *db;
	sqlite3_stmt *st;
	snprintf(path, sizeof(path), "%s/vol/%d/meta.db", x->dir, VOL);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	long n = (long)sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

static void what_nobody_sees_goes(void **state)
{
	(void)state;
	FIX(x);
	uint64_t rng = 5;
	for (int i = 0; i < 4; i++) {
		churn(x.v, &rng, 30);
		struct vs_volume *c = clone_of(x.v, VOL + 1, AFS_VOL_BK);
		churn(x.v, &rng, 30);
		assert_ok(vs_volume_delete(c));
		vs_volume_unref(c);
	}
	settle_down(&x);
	assert_clean(x.v);
	fix_close(&x);
	assert_int_equal(rows(&x, "SELECT (SELECT count(*) FROM vnodes WHERE died < 2147483647) + "
				  "(SELECT count(*) FROM dir_pages WHERE died < 2147483647) + "
				  "(SELECT count(*) FROM file_extents WHERE died < 2147483647)"),
		0);
	assert_int_equal(rows(&x, "SELECT (SELECT count(*) FROM extents) - (SELECT count(*) FROM file_extents)"), 0);
	fix_open(&x);
	assert_clean(x.v);
}

static void clones_outlive_their_volume(void **state)
{
	(void)state;
	FIX(x);
	uint64_t rng = 7;
	churn(x.v, &rng, 30);
	uint64_t sum = digest(x.v);
	struct vs_volume *c = clone_of(x.v, VOL + 1, AFS_VOL_RO), *d = clone_of(x.v, VOL + 2, AFS_VOL_BK), *v;
	churn(x.v, &rng, 30);
	assert_ok(vs_volume_delete(x.v));
	assert_true(digest(c) == sum);
	settle_down(&x);
	assert_true(digest(d) == sum);
	vs_volume_unref(c);
	vs_volume_unref(d);
	vs_volume_unref(x.v);
	x.v = NULL;
	/* the id is free again, also while the clones are there */
	struct vs_header h = {.id = VOL, .name = "again"};
	assert_ok(vs_volume_create(x.p, &h, true, SEC(5), &v));
	vs_volume_unref(v);
	vs_store_close(x.s);
	assert_ok(vs_store_open(&x.config, &x.s));
	assert_ok(vs_partition_attach(x.s, "a", x.dir, &x.p));
	assert_ok(vs_volume_enter(x.s, VOL + 1, &c));
	assert_ok(vs_volume_enter(x.s, VOL + 2, &d));
	assert_ok(vs_volume_find(x.s, NULL, VOL, &x.v));
	settle_down(&x);
	assert_true(digest(c) == sum);
	assert_clean(c);
	assert_ok(vs_volume_delete(c));
	assert_true(digest(d) == sum);
	assert_clean(d);
	assert_ok(vs_volume_delete(d));
	vs_volume_unref(c);
	vs_volume_unref(d);
	assert_clean(x.v);
}

static void a_clone_made_while_a_store_runs_does_not_see_it(void **state)
{
	(void)state;
	FIX(x);
	struct vs_fid f = make_file(x.v, root, "f");
	struct vs_status st;
	struct vs_writer *w;
	store(x.v, f, 0, data, 1000000, 1000000);
	static const struct vs_write reqs[] = {
		{.pos = 1000000, .length = 500000, .file_length = UINT64_MAX}, /* behind the end */
		{.pos = 5000, .length = 100000, .file_length = UINT64_MAX},    /* over what is there */
		{.pos = 0, .length = 3000000, .file_length = UINT64_MAX},      /* all of it */
	};
	for (size_t i = 0; i < ARRAY_SIZE(reqs); i++) {
		const struct vs_write *req = &reqs[i];
		assert_ok(vs_write_begin(x.v, f, req, &who, &w));
		assert_ok(vs_write_put(w, data + 7, req->length / 2));
		uint64_t sum = digest(x.v);
		struct vs_volume *c = clone_of(x.v, VOL + 1 + (afs_volid)i, AFS_VOL_BK);
		assert_ok(vs_write_put(w, data + 7 + req->length / 2, req->length - req->length / 2));
		assert_ok(vs_write_end(w, &who, &st));
		assert_true(digest(c) == sum);
		assert_true(digest(x.v) != sum);
		assert_clean(x.v);
		assert_clean(c);
		vs_volume_unref(c);
	}
}

static void a_restore_leaves_clones_as_they_are(void **state)
{
	(void)state;
	FIX(x);
	uint64_t rng = 11;
	churn(x.v, &rng, 30);
	uint64_t sum = digest(x.v);
	struct vs_volume *c = clone_of(x.v, VOL + 1, AFS_VOL_BK);
	struct vs_stage *g;
	char why[VS_WHY];
	churn(x.v, &rng, 10);
	assert_int_equal(vs_stage_begin(c, &g), AFS_EROFS);
	assert_ok(vs_volume_claim(x.v, VS_CLAIM_OFF));
	assert_ok(vs_stage_begin(x.v, &g));
	struct vs_status st;
	struct vs_acl acl;
	assert_ok(vs_vnode_next(x.v, true, 0, &st, &acl));
	struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	assert_ok(vs_stage_vnode(g, &st, &acl));
	assert_ok(vs_stage_put(g, d.data, VS_DIR_PAGE));
	assert_ok(vs_stage_commit(g, NULL, 0, SEC(9), why));
	vs_stage_free(g);
	vs_dir_fini(&d);
	assert_ok(vs_volume_claim(x.v, VS_FREE));
	assert_true(digest(c) == sum);
	assert_clean(c);
	assert_clean(x.v);
	/* refreshed, it shows the new content */
	vs_volume_unref(c);
	fix_close(&x);
	fix_open(&x);
	assert_ok(vs_volume_enter(x.s, VOL + 1, &c));
	assert_true(digest(c) == sum);
	assert_ok(vs_clone_refresh(x.v, c, SEC(10)));
	vs_volume_unref(c);
	assert_ok(vs_volume_enter(x.s, VOL + 1, &c));
	assert_true(digest(c) == digest(x.v));
	vs_volume_unref(c);
}

static void a_read_only_volume_becomes_the_read_write_one(void **state)
{
	(void)state;
	FIX(x);
	struct vs_header h = {.id = VOL + 9, .parent = VOL + 8, .name = "x.readonly", .type = AFS_VOL_RO}, got;
	struct vs_volume *v;
	assert_ok(vs_volume_create(x.p, &h, true, SEC(5), &v));
	assert_ok(vs_volume_convert(v, SEC(6)));
	assert_int_equal(vs_volume_header(v, &got), AFS_ENOVOL);
	vs_volume_unref(v);
	assert_ok(vs_volume_find(x.s, NULL, VOL + 8, &v));
	assert_ok(vs_volume_header(v, &got));
	assert_string_equal(got.name, "x");
	assert_int_equal(got.type, AFS_VOL_RW);
	assert_true(got.unique >= 5000);
	assert_clean(v);
	vs_volume_unref(v);
	v = clone_of(x.v, VOL + 1, AFS_VOL_RO);
	assert_int_equal(vs_volume_convert(v, SEC(6)), AFS_EXDEV);
	vs_volume_unref(v);
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
		T(clones_show_what_was_there),
		T(what_nobody_sees_goes),
		T(clones_outlive_their_volume),
		T(a_clone_made_while_a_store_runs_does_not_see_it),
		T(a_restore_leaves_clones_as_they_are),
		T(a_read_only_volume_becomes_the_read_write_one),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, fill, NULL);
}
