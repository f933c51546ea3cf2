/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/dbcall.h"

#include "cell/base/log.h"
#include "dbserver/ubik/ubik.h"

#include <fcntl.h>

struct fixture {
	char *dir, path[256];
	struct pt *pt;
	struct vl *vl;
	struct dbcall t[2]; /* both databases offer the same */
};

static void reopen(struct fixture *f)
{
	pt_close(f->pt);
	vl_close(f->vl);
	f->pt = NULL;
	f->vl = NULL;
	struct dbserver_config c = dbcall_config(f->path);
	assert_ok(pt_open(&c, &f->pt));
	assert_ok(vl_open(&c, &f->vl));
	pt_services(f->pt, f->t[0].services);
	vl_services(f->vl, f->t[1].services);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->dir = test_scratch();
	snprintf(f->path, sizeof(f->path), "%s/cell.db", f->dir);
	reopen(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	dbcall_fini(&f->t[0]);
	dbcall_fini(&f->t[1]);
	pt_close(f->pt);
	vl_close(f->vl);
	test_scratch_free(f->dir);
	free(f);
	return 0;
}

static const uint8_t zeros[2048];

static struct ubik_debug_old debug_of(struct dbcall *t)
{
	struct ubik_vote_xdebug_out out;
	assert_int_equal(dbcall_raw(t, &ubik_vote_iface, 10006, NULL, NULL, 0, &out), 0);
	return out.db.old;
}

/* The captured reply of ubik.md §3.2 with its times and counts put to ours. */
static void xdebug_is_word_for_word_what_a_stock_single_site_says(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 2; i++) {
		struct dbcall *t = &f->t[i];
		assert_int_equal(dbcall_raw(t, &ubik_vote_iface, 10006, NULL, NULL, 0, NULL), 0);
		assert_int_equal(t->reply_len, 1140);
		uint32_t now = be32_get(t->reply), start = be32_get(t->reply + 4);
		assert_in_range(now - start, 0, 60);
		assert_hex(t->reply + 8, 11 * 4,
			"ffffffff 00000000 00000000 ffffffff 00000000 00000000 00000000 00000000 "
			"00000000 00000000 00000000");
		assert_hex(t->reply + 13 * 4, 5 * 4, "00000001 7fffffff 00000001 00000000 00000000");
		assert_hex(t->reply + 20 * 4, 4, "00000000");
		assert_hex(t->reply + 22 * 4, 5 * 4, "00000000 00000000 0000001f 00000000 00000000");
		assert_int_equal(be32_get(t->reply + 27 * 4), start);
		assert_hex(t->reply + 28 * 4, 4, "0a510001");
		assert_memory_equal(t->reply + 29 * 4, zeros, 1140 - 29 * 4);
	}
}

static void the_older_debug_calls_are_cut_from_it(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(dbcall_raw(&f->t[0], &ubik_vote_iface, 10001, NULL, NULL, 0, NULL), 0);
	assert_int_equal(f->t[0].reply_len, 112);
	assert_int_equal(dbcall_raw(&f->t[0], &ubik_vote_iface, 10004, NULL, NULL, 0, NULL), 0);
	assert_int_equal(f->t[0].reply_len, 1136);
	assert_hex(f->t[0].reply + 28 * 4, 4, "0a510001");
}

static void there_is_no_other_server_by_any_number(void **state)
{
	struct fixture *f = *state;
	static const uint32_t ops[] = {10002, 10005, 10007}, numbers[] = {0, 1, 19, 0xffffffff};
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
			uint8_t b[4];
			be32_put(b, numbers[k]);
			assert_int_equal(
				dbcall_raw(&f->t[1], &ubik_vote_iface, ops[i], NULL, b, 4, NULL), 2);
		}
}

static void a_beacon_gets_no_vote(void **state)
{
	struct fixture *f = *state;
	struct ubik_debug_old before = debug_of(&f->t[0]);
	assert_int_equal(dbcall_raw(&f->t[0], &ubik_vote_iface, 10000, NULL, zeros, 24, NULL), 0);
	assert_int_equal(f->t[0].reply_len, 0);
	struct ubik_vote_beacon_in in = {1, 1700000000, {2000000000, 9}, {2000000000, 1}};
	assert_int_equal(dbcall(&f->t[0], &ubik_vote_iface, 10000, "afs", &in, NULL), 0);
	struct ubik_debug_old after = debug_of(&f->t[0]);
	before.now = after.now;
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(dbcall_raw(&f->t[0], &ubik_vote_iface, 10003, NULL, zeros, 4, NULL), 0);
	assert_int_equal(dbcall_raw(&f->t[0], &ubik_vote_iface, 10008, NULL, zeros, 4, NULL), -455);
}

/* ubik.md §8. */
static void disk_changes_nothing_for_anybody(void **state)
{
	struct fixture *f = *state;
	int32_t id;
	assert_ok(pt_user_add(f->pt, "alice", 0, &id));
	struct ubik_debug_old before = debug_of(&f->t[0]);
	static const struct {
		uint32_t op;
		int32_t stranger, cell;
	} rows[] = {{20000, 10029, 5381}, {20001, 10029, 5381}, {20002, 10029, 5381},
		{20003, 10029, 5381}, {20004, 10029, 5402}, {20005, 10029, 5381},
		{20006, 10029, 5381}, {20007, 10029, 5381}, {20008, 10029, 5381},
		{20009, 10029, 5381}, {20010, 0, 0}, {20011, 10029, 5381}, {20012, 5385, 5385},
		{20013, 10029, 5402}, {20014, -455, -455}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int db = 0; db < 2; db++) {
			struct dbcall *t = &f->t[db];
			assert_int_equal(dbcall_raw(t, &ubik_disk_iface, rows[i].op, NULL, zeros, 1024,
						 NULL),
				rows[i].stranger);
			assert_int_equal(dbcall_raw(t, &ubik_disk_iface, rows[i].op, "alice", zeros,
						 1024, NULL),
				rows[i].stranger);
			assert_int_equal(dbcall_raw(t, &ubik_disk_iface, rows[i].op, "afs", zeros,
						 1024, NULL),
				rows[i].cell);
		}
	struct ubik_debug_old after = debug_of(&f->t[0]);
	before.now = after.now;
	assert_memory_equal(&before, &after, sizeof(before));
	assert_ok(pt_id_of(f->pt, "alice", &id));
}

static void each_commit_moves_the_version_and_a_restart_keeps_it(void **state)
{
	struct fixture *f = *state;
	int32_t id;
	struct ubik_debug_old d = debug_of(&f->t[0]);
	uint32_t reign = d.epochTime;
	assert_ok(pt_user_add(f->pt, "a", 0, &id));
	d = debug_of(&f->t[0]);
	assert_int_equal(d.localVersion.epoch, reign); /* the first write of a reign labels it */
	assert_int_equal(d.localVersion.counter, 2);
	assert_ok(pt_user_add(f->pt, "b", 0, &id));
	assert_err(pt_user_add(f->pt, "b", 0, &id), AFS_ENAMEEXIST); /* no commit */
	d = debug_of(&f->t[0]);
	assert_int_equal(d.localVersion.counter, 3);
	assert_int_equal(d.tidCounter, 3);
	assert_int_equal(d.activeWrite, 0);
	uint32_t first;
	assert_ok(vl_ids_reserve(f->vl, 1, &first));
	assert_int_equal(debug_of(&f->t[1]).localVersion.counter, 2); /* each database its own */
	struct ubik_version kept = d.localVersion;
	reopen(f);
	d = debug_of(&f->t[0]);
	assert_int_equal(d.localVersion.epoch, kept.epoch);
	assert_int_equal(d.localVersion.counter, kept.counter);
}

#define F(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
int main(void)
{
	log_to(open("/dev/null", O_WRONLY), LOG_ERROR); /* refusals are what is tested */
	const struct CMUnitTest tests[] = {
		F(xdebug_is_word_for_word_what_a_stock_single_site_says),
		F(the_older_debug_calls_are_cut_from_it),
		F(there_is_no_other_server_by_any_number),
		F(a_beacon_gets_no_vote),
		F(disk_changes_nothing_for_anybody),
		F(each_commit_moves_the_version_and_a_restart_keeps_it),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
