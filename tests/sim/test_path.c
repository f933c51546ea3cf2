/* SPDX-License-Identifier: BSD-2-Clause
 * What the path between two ends carries: found out by probes, used, and lost again. */
#include "tests/lib/test.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <string.h>

enum { DATA = 1, ACK = 2, TYPE_AT = 20, FLAGS_AT = 21, BODY = 28 };

/* What one end sent. */
struct seen {
	uint16_t from;
	size_t largest_data, probes[8];
	unsigned probe_count, large;
};

static void watch(
	void *ctx, mono_ns now, struct rx_addr from, struct rx_addr to, const uint8_t *p, size_t n)
{
	struct seen *seen = ctx;
	(void)now;
	(void)to;
	if (from.port != seen->from)
		return;
	if (p[TYPE_AT] == DATA) {
		seen->largest_data = MAX(seen->largest_data, n);
		seen->large += n > 1444;
	} else if (p[TYPE_AT] == ACK && n > 1444 && seen->probe_count < ARRAY_SIZE(seen->probes)) {
		seen->probes[seen->probe_count++] = n;
	}
}

struct path {
	struct sim *s;
	struct sim_end *client, *server;
	struct rx_conn *conn;
	struct seen seen; /* of the client, until told otherwise */
};

static struct path *lay(uint64_t seed, const struct sim_net *net)
{
	struct path *p = mem_new(struct path);
	struct sim_end_config ec = {0};
	p->s = sim_new(seed, net);
	p->client = sim_end_new(p->s, &ec);
	p->server = sim_end_new(p->s, &ec);
	p->conn = sim_connect(p->client, p->server, false);
	p->seen.from = sim_end_addr(p->client).port;
	sim_watch(p->s, watch, &p->seen);
	return p;
}

static void lift(struct path *p)
{
	rx_conn_unref(p->conn);
	sim_free(p->s);
	mem_free(p);
}

static mono_ns pass(struct path *p, uint64_t request_len, uint64_t reply_len)
{
	struct sim_ask ask = {.request_len = request_len, .reply_len = reply_len};
	struct sim_call *c = sim_call(p->client, p->conn, &ask);
	assert_true(sim_run(p->s, SEC(60)));
	assert_ok(sim_call_err(c));
	return sim_call_took(c);
}

/* Bulk enough, for long enough, that every size has been tried. */
static void search(struct path *p)
{
	for (int i = 0; i < 12; i++) {
		pass(p, 200000, 0);
		sim_wait(p->s, MSEC(150));
	}
}

static struct rx_stats stats(struct sim_end *e)
{
	struct rx_stats st;
	rx_endpoint_stats(sim_end_endpoint(e), &st);
	return st;
}

static void a_path_that_carries_more_is_found_out_with_one_probe_and_used(void **state)
{
	(void)state;
	for (int reply = 0; reply < 2; reply++) {
		struct sim_net net = {.delay = MSEC(5)};
		struct path *p = lay(1, &net);
		p->seen.from = sim_end_addr(reply ? p->server : p->client).port;
		pass(p, reply ? 0 : 8 << 20, reply ? 8 << 20 : 0);
		assert_int_equal(p->seen.probe_count, 1);
		assert_int_equal(p->seen.probes[0], 16376);
		assert_int_equal(p->seen.largest_data, 16376);
		struct rx_stats st = stats(reply ? p->server : p->client);
		assert_true(st.data_out < 1500); /* 5925 of 1444 */
		assert_int_equal(st.probes_out, 1);
		lift(p);
	}
}

static void a_path_that_carries_no_more_keeps_small_datagrams_and_loses_no_time(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(5), .datagram_max = 1444};
	struct path *p = lay(1, &net);
	mono_ns took = pass(p, 8 << 20, 0);
	assert_int_equal(p->seen.largest_data, 1444);
	struct rx_stats st = stats(p->client);
	assert_int_equal(st.data_resent, 0);
	assert_true(st.probes_out <= 8);
	/* 5925 packets, 255 a round trip */
	assert_true(took < MSEC(10) * 40);
	lift(p);
}

static void sizes_between_are_tried_from_the_largest_down(void **state)
{
	(void)state;
	static const struct {
		uint32_t carries, used;
	} rows[] = {{16376, 16376}, {9000, 8972}, {8972, 8972}, {8900, 8588}, {8000, 4324},
		{4324, 4324}, {4000, 1444}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sim_net net = {.delay = MSEC(1), .datagram_max = rows[i].carries};
		struct path *p = lay(i + 1, &net);
		search(p);
		assert_int_equal(p->seen.largest_data, rows[i].used);
		assert_int_equal(stats(p->client).data_resent, 0);
		lift(p);
	}
}

static void a_lost_probe_is_sent_again(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(5), .datagram_max = 1444};
	struct path *p = lay(1, &net);
	struct sim_ask ask = {.request_len = 24 << 20};
	struct sim_call *c = sim_call(p->client, p->conn, &ask);
	while (!p->seen.probe_count)
		sim_wait(p->s, MSEC(1));
	sim_network(p->s)->datagram_max = 0;
	assert_true(sim_run(p->s, SEC(10)));
	assert_ok(sim_call_err(c));
	assert_int_equal(p->seen.probe_count, 2);
	assert_int_equal(p->seen.largest_data, 16376);
	lift(p);
}

static void a_probe_that_the_own_network_refuses_is_answered_at_once(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(5), .datagram_max = 8972};
	struct path *p = lay(1, &net);
	struct sim_ask ask = {.request_len = 24 << 20};
	struct sim_call *c = sim_call(p->client, p->conn, &ask);
	while (!p->seen.probe_count)
		sim_wait(p->s, MSEC(1));
	rx_endpoint_unreachable(
		sim_end_endpoint(p->client), sim_now(p->s), sim_end_addr(p->server), true);
	assert_true(sim_run(p->s, SEC(10)));
	assert_ok(sim_call_err(c));
	assert_int_equal(p->seen.probe_count, 2);
	assert_int_equal(p->seen.probes[1], 8972);
	assert_int_equal(stats(p->client).sizes_lowered, 0);
	lift(p);
}

/* Lets a call come to large datagrams, then shrinks the path under it. */
static struct sim_call *shrink_under(struct path *p, bool reply)
{
	struct sim_ask ask = {
		.request_len = reply ? 0 : 30 << 20, .reply_len = reply ? 30 << 20 : 0};
	struct sim_call *c = sim_call(p->client, p->conn, &ask);
	while (p->seen.large < 100)
		sim_wait(p->s, MSEC(1));
	assert_false(sim_call_over(c));
	sim_network(p->s)->datagram_max = 1444;
	return c;
}

static void a_path_that_shrinks_without_a_word_costs_two_timeouts_and_then_goes_on_small(
	void **state)
{
	(void)state;
	for (int reply = 0; reply < 2; reply++) {
		struct sim_net net = {.delay = MSEC(5)};
		struct path *p = lay(reply + 1, &net);
		struct sim_end *sender = reply ? p->server : p->client;
		p->seen.from = sim_end_addr(sender).port;
		struct sim_call *c = shrink_under(p, reply);
		assert_true(sim_run(p->s, SEC(30)));
		assert_ok(sim_call_err(c));
		assert_int_equal(stats(sender).sizes_lowered, 1);
		assert_true(sim_call_took(c) < SEC(6));
		unsigned large = p->seen.large;
		pass(p, reply ? 0 : 8 << 20, reply ? 8 << 20 : 0);
		assert_int_equal(p->seen.large, large);
		lift(p);
	}
}

static void a_path_that_says_that_it_shrank_costs_no_timeout(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(5)};
	struct path *p = lay(1, &net);
	struct sim_call *c = shrink_under(p, false);
	rx_endpoint_unreachable(
		sim_end_endpoint(p->client), sim_now(p->s), sim_end_addr(p->server), true);
	assert_true(sim_run(p->s, SEC(30)));
	assert_ok(sim_call_err(c));
	assert_true(sim_call_took(c) < SEC(3));
	lift(p);
}

static void what_is_under_way_and_passes_in_no_form_ends_its_call_and_the_next_one_is_small(
	void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(5), .no_pieces = true};
	struct path *p = lay(1, &net);
	struct sim_call *c = shrink_under(p, false);
	assert_true(sim_run(p->s, SEC(60)));
	assert_err(sim_call_err(c), AFS_EDEAD);
	assert_true(sim_call_took(c) < SEC(30));
	pass(p, 1 << 20, 1 << 20);
	lift(p);
}

static void after_ten_minutes_the_path_is_asked_again(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(1), .datagram_max = 1444};
	struct path *p = lay(1, &net);
	search(p);
	unsigned asked = (unsigned)stats(p->client).probes_out;
	assert_int_equal(asked, 8); /* four sizes, twice each */
	sim_network(p->s)->datagram_max = 0;
	pass(p, 1 << 20, 0);
	assert_int_equal(stats(p->client).probes_out, asked);
	sim_wait(p->s, SEC(600));
	pass(p, 8 << 20, 0);
	assert_int_equal(stats(p->client).probes_out, asked + 1);
	assert_int_equal(p->seen.largest_data, 16376);
	lift(p);
}

static void small_calls_send_no_probe(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(1)};
	struct path *p = lay(1, &net);
	for (int i = 0; i < 50; i++)
		pass(p, 10000, 10000);
	assert_int_equal(stats(p->client).probes_out + stats(p->server).probes_out, 0);
	lift(p);
}

static void any_path_that_changes_under_calls_through_loss_carries_them_to_their_end(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(40); seed++) {
		struct sim_net net = {.loss_ppm = 10000,
			.reorder_ppm = 10000,
			.delay = MSEC(2),
			.jitter = USEC(500)};
		struct path *p = lay(seed, &net);
		struct sim_ask ask = {.request_len = 3 << 20, .reply_len = 3 << 20};
		struct sim_call *c = sim_call(p->client, p->conn, &ask);
		static const uint32_t sizes[] = {0, 1444, 8972, 3000, 16376, 8588};
		for (int i = 0; i < 20 && !sim_call_over(c); i++) {
			sim_network(p->s)->datagram_max =
				sizes[sim_random(p->s) % ARRAY_SIZE(sizes)];
			sim_wait(p->s, MSEC(sim_random(p->s) % 400));
		}
		if (!sim_run(p->s, SEC(120)) || sim_call_err(c) != AFS_OK)
			fail_msg("seed %" PRIu64 ": %s", seed,
				sim_call_over(c) ? afs_err_name(sim_call_err(c)) : "not over");
		lift(p);
	}
}

TEST_MAIN(T(a_path_that_carries_more_is_found_out_with_one_probe_and_used),
	T(a_path_that_carries_no_more_keeps_small_datagrams_and_loses_no_time),
	T(sizes_between_are_tried_from_the_largest_down), T(a_lost_probe_is_sent_again),
	T(a_probe_that_the_own_network_refuses_is_answered_at_once),
	T(a_path_that_shrinks_without_a_word_costs_two_timeouts_and_then_goes_on_small),
	T(a_path_that_says_that_it_shrank_costs_no_timeout),
	T(what_is_under_way_and_passes_in_no_form_ends_its_call_and_the_next_one_is_small),
	T(after_ten_minutes_the_path_is_asked_again), T(small_calls_send_no_probe),
	T(any_path_that_changes_under_calls_through_loss_carries_them_to_their_end))
