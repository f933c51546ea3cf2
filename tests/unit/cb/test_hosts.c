/* SPDX-License-Identifier: BSD-2-Clause
 * What a file server asks and tells hosts, in the order of callback.md §5-6. */
#include "tests/lib/fake_clients.h"
#include "tests/lib/fake_rpc.h"
#include "tests/lib/test.h"

#include <string.h>
#include <unistd.h>

#define IP(d) (0x0a000000u + (d)) /* 10.0.0.d */

static const struct AFSFid doc = {5, 2, 7}, other = {5, 4, 9}, third = {5, 6, 11};

struct rig {
	struct fake_world world;
	struct cb *cb;
	mono_ns now;
};

static struct rig *rig_new(uint32_t promises, uint32_t hosts)
{
	struct rig *r = mem_new(struct rig);
	assert_non_null(r);
	fake_world_init(&r->world);
	struct cb_config config = {.people = fake_people(),
		.wire = fake_wire(&r->world),
		.uuid = afs_uuid_random(),
		.promises_max = promises,
		.hosts_max = hosts};
	assert_ok(cb_new(&config, &r->cb));
	r->now = clk_mono();
	return r;
}

static void rig_free(struct rig *r)
{
	cb_free(r->cb);
	fake_world_fini(&r->world);
	mem_free(r);
}

/* One call over `conn` from client `c`, which is promised `fid` (NULL: nothing). */
static afs_err visit_from(struct rig *r, struct fake_conn *conn, struct rx_addr from,
	const char *user, const struct AFSFid *fid, struct AFSCallBack *got)
{
	struct rx_caller caller = fake_caller(user);
	CLEANUP(fake_call) struct fake_call call;
	fake_call_init(&call, conn, from, &caller, NULL, r->now);
	CLEANUP(cb_client) struct cb_client *client = NULL;
	struct AFSCallBack cb;
	TRY(cb_client_begin(r->cb, &call.pub, &client));
	if (fid)
		cb_grant(r->cb, client, fid, CB_KIND_FILE, r->now, got ? got : &cb);
	return AFS_OK;
}

static afs_err promise_to(
	struct rig *r, struct fake_conn *conn, struct fake_client *c, const struct AFSFid *fid)
{
	return visit_from(r, conn, c->addr, NULL, fid, NULL);
}

static void a_new_host_is_asked_who_it_is_and_made_to_drop_old_promises(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, NULL));
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit3 10.0.0.1:7001\n");
	assert_ok(promise_to(r, &conn, a, NULL));
	assert_diary(&r->world, "");
	fake_conn_close(&conn);
	rig_free(r);
}

static void a_host_without_uuid_is_reset_the_old_way(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	a->no_uuid = true;
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, NULL));
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit 10.0.0.1:7001\n");
	fake_conn_close(&conn);
	rig_free(r);
}

static void another_connection_of_the_same_process_costs_no_question(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 1ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, NULL));
	mem_free(fake_diary(&r->world));
	assert_ok(promise_to(r, &two, a, NULL));
	assert_diary(&r->world, "");
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void a_connection_of_another_epoch_is_asked_again(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 2ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, &doc));
	mem_free(fake_diary(&r->world));
	assert_ok(promise_to(r, &two, a, NULL));
	assert_diary(&r->world, "who 10.0.0.1:7001\n");
	cb_break(r->cb, &doc, 1, NULL, r->now); /* the same host: its promise stands */
	assert_diary(&r->world, "break 10.0.0.1:7001 5.2.7\n");
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void a_restarted_client_with_a_fresh_uuid_is_a_new_host(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 2ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, &doc));
	mem_free(fake_diary(&r->world));
	memset(a->uuid, 0xbb, sizeof(a->uuid));
	assert_ok(promise_to(r, &two, a, NULL));
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit3 10.0.0.1:7001\n");
	cb_break(r->cb, &doc, 1, NULL, r->now); /* the old one's promise went with it */
	assert_diary(&r->world, "");
	struct fileserver_stats s = {0};
	cb_stats(r->cb, &s);
	assert_int_equal(s.hosts_now, 1);
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void a_host_that_moved_keeps_its_promises(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_client *b = fake_client_add(&r->world, IP(2), 7001, 0xaa);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 1ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, &doc));
	mem_free(fake_diary(&r->world));
	a->silent = true;
	assert_ok(promise_to(r, &two, b, NULL));
	assert_diary(&r->world, "who 10.0.0.2:7001\nprobe 10.0.0.1:7001\n");
	cb_break(r->cb, &doc, 1, NULL, r->now);
	assert_diary(&r->world, "break 10.0.0.2:7001 5.2.7\n");
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void a_new_port_of_the_same_address_replaces_the_old_one(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_client *b = fake_client_add(&r->world, IP(1), 40000, 0xaa);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 1ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, &doc));
	mem_free(fake_diary(&r->world));
	assert_ok(promise_to(r, &two, b, NULL));
	assert_diary(&r->world, "who 10.0.0.1:40000\n");
	cb_break(r->cb, &doc, 1, NULL, r->now);
	assert_diary(&r->world, "break 10.0.0.1:40000 5.2.7\n");
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void when_the_primary_address_fails_another_known_one_is_tried(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_client *b = fake_client_add(&r->world, IP(2), 7001, 0xaa);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 1ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, &doc));
	assert_ok(promise_to(r, &two, b, NULL));
	mem_free(fake_diary(&r->world));
	b->silent = true; /* the one it called from last */
	cb_break(r->cb, &doc, 1, NULL, r->now);
	/* once, then once more at every address */
	assert_diary(&r->world, "break 10.0.0.2:7001 5.2.7\nbreak 10.0.0.1:7001 5.2.7\n"
				"break 10.0.0.2:7001 5.2.7\n");
	struct fileserver_stats s = {0};
	cb_stats(r->cb, &s);
	assert_int_equal(s.hosts_down, 0);
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void who_cannot_be_called_is_refused_and_not_asked_again_at_once(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	a->silent = true;
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_err(promise_to(r, &conn, a, NULL), AFS_EDEAD);
	assert_diary(&r->world, "who 10.0.0.1:7001\n");
	assert_err(promise_to(r, &conn, a, NULL), AFS_EDEAD);
	assert_diary(&r->world, "");
	a->silent = false;
	r->now = clk_mono() + CB_RETRY_NS + SEC(1);
	assert_ok(promise_to(r, &conn, a, NULL));
	fake_conn_close(&conn);
	rig_free(r);
}

static void a_silent_host_is_waited_for_once_and_hears_later(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, &doc));
	assert_ok(promise_to(r, &conn, a, &other));
	mem_free(fake_diary(&r->world));
	a->silent = true;
	/* tried twice, for half of the bound each; the next change does not wait at all */
	cb_break(r->cb, &doc, 1, NULL, r->now);
	assert_diary(&r->world, "break 10.0.0.1:7001 5.2.7\nbreak 10.0.0.1:7001 5.2.7\n");
	cb_break(r->cb, &other, 1, NULL, r->now);
	assert_diary(&r->world, "");

	a->silent = false; /* it calls: first who it is, then what it missed, then its call */
	assert_ok(promise_to(r, &conn, a, NULL));
	assert_diary(&r->world, "who 10.0.0.1:7001\ndelayed 10.0.0.1:7001 5.2.7 5.4.9\n");
	assert_ok(promise_to(r, &conn, a, NULL));
	assert_diary(&r->world, "");
	fake_conn_close(&conn);
	rig_free(r);
}

static void who_cannot_take_what_it_missed_is_refused_and_reset(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, &doc));
	assert_ok(promise_to(r, &conn, a, &other));
	a->deaf = true;
	cb_break(r->cb, &doc, 1, NULL, r->now);
	mem_free(fake_diary(&r->world));
	assert_err(promise_to(r, &conn, a, NULL), AFS_EDEAD);
	assert_diary(&r->world, "who 10.0.0.1:7001\ndelayed 10.0.0.1:7001 5.2.7\n");
	struct fileserver_stats s = {0};
	cb_stats(r->cb, &s);
	assert_int_equal(s.promises_now, 0); /* all of them are void */
	a->deaf = false;
	r->now = clk_mono() + CB_RETRY_NS + SEC(1);
	assert_ok(promise_to(r, &conn, a, NULL));
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit3 10.0.0.1:7001\n");
	fake_conn_close(&conn);
	rig_free(r);
}

/* A new host that says who it is but takes no reset is refused, and asked afresh the next time. */
static void who_takes_no_reset_is_refused(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	a->deaf = true;
	assert_err(promise_to(r, &conn, a, &doc), AFS_EDEAD);
	a->deaf = false;
	r->now = clk_mono() + CB_RETRY_NS + SEC(1);
	mem_free(fake_diary(&r->world));
	assert_ok(promise_to(r, &conn, a, &doc));
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit3 10.0.0.1:7001\n");
	fake_conn_close(&conn);
	rig_free(r);
}

static void more_missed_breaks_than_are_kept_become_a_reset(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	for (uint32_t i = 0; i <= CB_DELAYED_MAX + 1; i++)
		assert_ok(promise_to(r, &conn, a, &(struct AFSFid){5, 2 * i + 2, 1}));
	a->silent = true;
	for (uint32_t i = 0; i <= CB_DELAYED_MAX; i++)
		cb_break(r->cb, &(struct AFSFid){5, 2 * i + 2, 1}, 1, NULL, r->now);
	a->silent = false;
	mem_free(fake_diary(&r->world));
	assert_ok(promise_to(r, &conn, a, NULL));
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit3 10.0.0.1:7001\n");
	struct fileserver_stats s = {0};
	cb_stats(r->cb, &s);
	assert_int_equal(s.promises_now, 0);
	fake_conn_close(&conn);
	rig_free(r);
}

static void missed_breaks_come_in_batches_of_fifty(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	for (uint32_t i = 0; i < 60; i++)
		assert_ok(promise_to(r, &conn, a, &(struct AFSFid){5, 2 * i + 2, 1}));
	a->silent = true;
	for (uint32_t i = 0; i < 60; i++)
		cb_break(r->cb, &(struct AFSFid){5, 2 * i + 2, 1}, 1, NULL, r->now);
	a->silent = false;
	mem_free(fake_diary(&r->world));
	assert_ok(promise_to(r, &conn, a, NULL));
	CLEANUP(str) char *diary = fake_diary(&r->world);
	unsigned batches = 0, fids = 0;
	for (char *p = diary; (p = strstr(p, "delayed")); p++)
		batches++;
	for (char *p = diary; (p = strstr(p, " 5.")); p++)
		fids++;
	assert_int_equal(batches, 2);
	assert_int_equal(fids, 60);
	fake_conn_close(&conn);
	rig_free(r);
}

static void the_writer_is_not_told_and_all_others_are(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_client *b = fake_client_add(&r->world, IP(2), 7001, 0xbb);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 2ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, &doc));
	assert_ok(promise_to(r, &two, b, &doc));
	assert_ok(promise_to(r, &two, b, &other));
	mem_free(fake_diary(&r->world));

	CLEANUP(fake_call) struct fake_call call;
	fake_call_init(&call, &one, a->addr, NULL, NULL, r->now);
	CLEANUP(cb_client) struct cb_client *writer = NULL;
	assert_ok(cb_client_begin(r->cb, &call.pub, &writer));
	cb_break(r->cb, (struct AFSFid[]){doc, other}, 2, writer, r->now);
	assert_diary(&r->world, "break 10.0.0.2:7001 5.2.7 5.4.9\n"); /* one call for both */
	cb_break(r->cb, &doc, 1, NULL, r->now);
	assert_diary(&r->world, "break 10.0.0.1:7001 5.2.7\n");
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void a_volume_break_is_told_by_the_housekeeper_once_per_host(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, &doc));
	assert_ok(promise_to(r, &conn, a, &other));
	assert_ok(promise_to(r, &conn, a, &(struct AFSFid){6, 2, 2}));
	mem_free(fake_diary(&r->world));
	cb_break_volume(r->cb, 5);
	cb_break_volume(r->cb, 5);
	assert_diary(&r->world, "");
	cb_housekeep(r->cb, r->now);
	assert_diary(&r->world, "break 10.0.0.1:7001 5.0.0\n");
	fake_conn_close(&conn);
	rig_free(r);
}

static void more_volume_breaks_than_are_queued_reset_everybody(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, &doc));
	mem_free(fake_diary(&r->world));
	for (afs_volid v = 1000; v < 1100; v++)
		cb_break_volume(r->cb, v);
	cb_housekeep(r->cb, r->now);
	assert_diary(&r->world, "init3 10.0.0.1:7001\n");
	fake_conn_close(&conn);
	rig_free(r);
}

static void who_must_make_room_is_told(void **state)
{
	(void)state;
	struct rig *r = rig_new(2, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_client *b = fake_client_add(&r->world, IP(2), 7001, 0xbb);
	struct fake_conn one = {.key = 1ull << 32 | 4}, two = {.key = 2ull << 32 | 8};
	assert_ok(promise_to(r, &one, a, &doc));
	assert_ok(promise_to(r, &one, a, &other));
	assert_ok(promise_to(r, &two, b, &third));
	mem_free(fake_diary(&r->world));
	cb_housekeep(r->cb, r->now);
	assert_diary(&r->world, "break 10.0.0.1:7001 5.2.7\n");
	fake_conn_close(&one);
	fake_conn_close(&two);
	rig_free(r);
}

static void a_full_table_of_hosts_forgets_one_without_promises(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 2);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 1);
	struct fake_client *b = fake_client_add(&r->world, IP(2), 7001, 2);
	struct fake_client *c = fake_client_add(&r->world, IP(3), 7001, 3);
	struct fake_conn conns[3] = {{.key = 1ull << 32}, {.key = 2ull << 32}, {.key = 3ull << 32}};
	assert_ok(promise_to(r, &conns[0], a, &doc));
	assert_ok(promise_to(r, &conns[1], b, NULL));
	assert_ok(promise_to(r, &conns[2], c, &doc));
	struct fileserver_stats s = {0};
	cb_stats(r->cb, &s);
	assert_int_equal(s.hosts_now, 2);
	/* the forgotten one is met afresh, and now somebody with promises must let go */
	mem_free(fake_diary(&r->world));
	assert_err(promise_to(r, &conns[1], b, NULL), AFS_EVBUSY);
	mem_free(fake_diary(&r->world));
	cb_housekeep(r->cb, r->now);
	assert_diary(&r->world, "init3 10.0.0.1:7001\n");
	assert_ok(promise_to(r, &conns[1], b, NULL));
	for (size_t i = 0; i < 3; i++)
		fake_conn_close(&conns[i]);
	rig_free(r);
}

static void silent_hosts_are_probed_then_forgotten(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, &doc));
	mem_free(fake_diary(&r->world));
	cb_housekeep(r->cb, r->now + SEC(16 * 60));
	assert_diary(&r->world, "probe 10.0.0.1:7001\n");
	cb_housekeep(r->cb, r->now + SEC(2 * 3600 + 1));
	assert_diary(&r->world, "init3 10.0.0.1:7001\n");
	struct fileserver_stats s = {0};
	cb_stats(r->cb, &s);
	assert_int_equal(s.hosts_now, 0);
	fake_conn_close(&conn);
	rig_free(r);
}

static void what_was_given_up_is_not_broken(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	assert_ok(promise_to(r, &conn, a, &doc));
	assert_ok(promise_to(r, &conn, a, &other));
	assert_ok(promise_to(r, &conn, a, &third));
	mem_free(fake_diary(&r->world));
	CLEANUP(fake_call) struct fake_call call;
	fake_call_init(&call, &conn, a->addr, NULL, NULL, r->now);
	CLEANUP(cb_client) struct cb_client *client = NULL;
	assert_ok(cb_client_begin(r->cb, &call.pub, &client));
	cb_give_up(r->cb, client, &doc, 1);
	cb_break(r->cb, &doc, 1, NULL, r->now);
	assert_diary(&r->world, "");
	cb_gone(r->cb, &other);
	cb_break(r->cb, &other, 1, NULL, r->now);
	assert_diary(&r->world, "");
	cb_give_up_all(r->cb, client);
	cb_break(r->cb, &third, 1, NULL, r->now);
	assert_diary(&r->world, "");
	fake_conn_close(&conn);
	rig_free(r);
}

static void an_identity_is_asked_once_and_again_when_it_may_have_changed(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	unsigned before = fake_people_asked;
	for (int i = 0; i < 3; i++)
		assert_ok(visit_from(r, &conn, a->addr, "alice", NULL, NULL));
	assert_int_equal(fake_people_asked, before + 1);
	fake_people_changed();
	assert_ok(visit_from(r, &conn, a->addr, "alice", NULL, NULL));
	assert_int_equal(fake_people_asked, before + 2);
	cb_flush_cps(r->cb, (int32_t[]){100}, 1, NULL, 0);
	assert_ok(visit_from(r, &conn, a->addr, "alice", NULL, NULL));
	assert_int_equal(fake_people_asked, before + 3);
	r->now += SEC(2 * 3600 + 1);
	assert_ok(visit_from(r, &conn, a->addr, "alice", NULL, NULL));
	assert_int_equal(fake_people_asked, before + 4);
	fake_conn_close(&conn);
	rig_free(r);
}

static void a_cell_that_cannot_tell_who_is_asked_again(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	struct fake_conn conn = {.key = 1ull << 32 | 4};
	fake_people_away = true;
	assert_err(visit_from(r, &conn, a->addr, "alice", NULL, NULL), AFS_EAGAIN);
	fake_people_away = false;
	assert_ok(visit_from(r, &conn, a->addr, "alice", NULL, NULL));
	fake_conn_close(&conn);
	rig_free(r);
}

/* --- with threads ------------------------------------------------------------------------------ */

struct visitor {
	pthread_t thread;
	struct rig *r;
	struct fake_conn conn;
	struct rx_addr from;
	struct AFSFid fid;
	afs_err err;
	int rounds;
};

static void *visit_once(void *arg)
{
	struct visitor *v = arg;
	v->err = visit_from(v->r, &v->conn, v->from, NULL, &v->fid, NULL);
	return NULL;
}

static void calls_of_a_host_that_is_being_met_wait_for_one_meeting(void **state)
{
	(void)state;
	struct rig *r = rig_new(0, 0);
	struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
	a->ms = 100;
	struct visitor v[5];
	for (size_t i = 0; i < 5; i++) {
		v[i] = (struct visitor){
			.r = r, .conn = {.key = 1ull << 32 | i << 2}, .from = a->addr, .fid = doc};
		assert_int_equal(pthread_create(&v[i].thread, NULL, visit_once, &v[i]), 0);
	}
	for (size_t i = 0; i < 5; i++) {
		pthread_join(v[i].thread, NULL);
		assert_ok(v[i].err);
	}
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit3 10.0.0.1:7001\n");
	for (size_t i = 0; i < 5; i++)
		fake_conn_close(&v[i].conn);
	rig_free(r);
}

static void hosts_that_are_slow_to_answer_do_not_take_every_worker(void **state)
{
	(void)state;
	struct rig *r = mem_new(struct rig);
	fake_world_init(&r->world);
	struct cb_config config = {.people = fake_people(),
		.wire = fake_wire(&r->world),
		.uuid = afs_uuid_random(),
		.identify_max = 3};
	assert_ok(cb_new(&config, &r->cb));
	r->now = clk_mono();
	struct visitor v[10];
	for (size_t i = 0; i < 10; i++)
		fake_client_add(&r->world, IP(i + 1), 7001, (uint8_t)(i + 1))->ms = 300;
	for (size_t i = 0; i < 10; i++) {
		struct fake_client *c = &r->world.clients[i];
		v[i] = (struct visitor){
			.r = r, .conn = {.key = (i + 1ull) << 32}, .from = c->addr, .fid = doc};
		assert_int_equal(pthread_create(&v[i].thread, NULL, visit_once, &v[i]), 0);
	}
	unsigned ok = 0, busy = 0;
	for (size_t i = 0; i < 10; i++) {
		pthread_join(v[i].thread, NULL);
		ok += v[i].err == AFS_OK;
		busy += v[i].err == AFS_EVBUSY;
	}
	assert_int_equal(ok + busy, 10);
	assert_int_equal(ok, 3);
	assert_true(r->world.most_calling <= 3);
	for (size_t i = 0; i < 10; i++)
		fake_conn_close(&v[i].conn);
	rig_free(r);
}

static atomic_bool go_on;

static void *visit_often(void *arg)
{
	struct visitor *v = arg;
	while (atomic_load(&go_on)) {
		struct AFSFid fid = {5, 2 + 2 * (uint32_t)(v->rounds % 7), 1};
		afs_err err = visit_from(v->r, &v->conn, v->from, NULL, &fid, NULL);
		if (err == AFS_OK && v->rounds % 3 == 0)
			cb_break(v->r->cb, &fid, 1, NULL, clk_mono());
		if (v->rounds % 50 == 49)
			fake_conn_close(&v->conn);
		if (v->rounds % 64 == 5)
			cb_break_volume(v->r->cb, 5);
		v->rounds++;
	}
	return NULL;
}

static void *keep_house(void *arg)
{
	cb_keep(arg);
	return NULL;
}

/* SA-2007-003's kind: promising, giving up, breaking, moving and forgetting at once. */
static void everything_at_once_leaves_nothing_behind(void **state)
{
	(void)state;
	struct rig *r = rig_new(20, 6);
	struct visitor v[8];
	pthread_t keeper;
	atomic_store(&go_on, true);
	for (size_t i = 0; i < 8; i++)
		fake_client_add(
			&r->world, IP(i / 2 + 1), (uint16_t)(7001 + i % 2), (uint8_t)(i % 5 + 1));
	assert_int_equal(pthread_create(&keeper, NULL, keep_house, r->cb), 0);
	for (size_t i = 0; i < 8; i++) {
		v[i] = (struct visitor){.r = r,
			.conn = {.key = (i % 3 + 1ull) << 32 | i << 2},
			.from = r->world.clients[i].addr};
		assert_int_equal(pthread_create(&v[i].thread, NULL, visit_often, &v[i]), 0);
	}
	usleep(400 * 1000);
	r->world.clients[2].silent = true;
	usleep(200 * 1000);
	atomic_store(&go_on, false);
	for (size_t i = 0; i < 8; i++) {
		pthread_join(v[i].thread, NULL);
		fake_conn_close(&v[i].conn);
		assert_true(v[i].rounds > 10);
	}
	cb_stop(r->cb);
	pthread_join(keeper, NULL);
	rig_free(r);
}

static void meeting_without_memory_changes_nothing(void **state)
{
	(void)state;
	for (long n = 0;; n++) {
		struct rig *r = rig_new(4, 4);
		struct fake_client *a = fake_client_add(&r->world, IP(1), 7001, 0xaa);
		struct fake_conn conn = {.key = 1ull << 32 | 4};
		mem_fail_after(n);
		afs_err err = promise_to(r, &conn, a, &doc);
		bool failed = mem_has_failed();
		mem_fail_after(-1);
		if (err != AFS_OK)
			assert_true(err == AFS_ENOMEM || err == AFS_EAGAIN);
		r->now = clk_mono() + CB_RETRY_NS + SEC(1);
		assert_ok(promise_to(r, &conn, a, &doc));
		mem_free(fake_diary(&r->world));
		cb_break(r->cb, &doc, 1, NULL, r->now);
		assert_diary(&r->world, "break 10.0.0.1:7001 5.2.7\n");
		fake_conn_close(&conn);
		rig_free(r);
		if (!failed)
			break;
		assert_true(n < 100);
	}
}

TEST_MAIN(T(a_new_host_is_asked_who_it_is_and_made_to_drop_old_promises),
	T(a_host_without_uuid_is_reset_the_old_way),
	T(another_connection_of_the_same_process_costs_no_question),
	T(a_connection_of_another_epoch_is_asked_again),
	T(a_restarted_client_with_a_fresh_uuid_is_a_new_host),
	T(a_host_that_moved_keeps_its_promises),
	T(a_new_port_of_the_same_address_replaces_the_old_one),
	T(when_the_primary_address_fails_another_known_one_is_tried),
	T(who_cannot_be_called_is_refused_and_not_asked_again_at_once),
	T(a_silent_host_is_waited_for_once_and_hears_later),
	T(who_cannot_take_what_it_missed_is_refused_and_reset), T(who_takes_no_reset_is_refused),
	T(more_missed_breaks_than_are_kept_become_a_reset),
	T(missed_breaks_come_in_batches_of_fifty), T(the_writer_is_not_told_and_all_others_are),
	T(a_volume_break_is_told_by_the_housekeeper_once_per_host),
	T(more_volume_breaks_than_are_queued_reset_everybody), T(who_must_make_room_is_told),
	T(a_full_table_of_hosts_forgets_one_without_promises),
	T(silent_hosts_are_probed_then_forgotten), T(what_was_given_up_is_not_broken),
	T(an_identity_is_asked_once_and_again_when_it_may_have_changed),
	T(a_cell_that_cannot_tell_who_is_asked_again),
	T(calls_of_a_host_that_is_being_met_wait_for_one_meeting),
	T(hosts_that_are_slow_to_answer_do_not_take_every_worker),
	T(everything_at_once_leaves_nothing_behind), T(meeting_without_memory_changes_nothing))
