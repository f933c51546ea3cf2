/* SPDX-License-Identifier: BSD-2-Clause
 * Calls of every size through networks of every kind: the right bytes, once, in sane time. */
#include "cell/base/clk.h"
#include "cell/base/mem.h"
#include "tests/lib/test.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One call; its time. */
static mono_ns one_call(uint64_t seed, const struct sim_net *net, bool loopback, bool secured,
	uint64_t request_len, uint64_t reply_len, int64_t limit)
{
	struct sim *s = sim_new(seed, net);
	struct sim_end_config ec = {.loopback = loopback, .secured = secured};
	struct sim_end *client = sim_end_new(s, &ec), *server = sim_end_new(s, &ec);
	struct rx_conn *conn = sim_connect(client, server, secured);
	struct sim_ask ask = {.request_len = request_len, .reply_len = reply_len};
	struct sim_call *c = sim_call(client, conn, &ask);
	if (!sim_run(s, limit))
		fail_msg("seed %" PRIu64 ": %" PRIu64 "/%" PRIu64 " bytes took longer than %.1f s",
			seed, request_len, reply_len, (double)limit / 1e9);
	if (sim_call_err(c) != AFS_OK)
		fail_msg("seed %" PRIu64 ": ended with %s", seed, afs_err_name(sim_call_err(c)));
	mono_ns took = sim_call_took(c);
	sim_wait(s, SEC(30));
	assert_int_equal(sim_end_repeated(server), 0);
	assert_int_equal(sim_end_begun(server), 1);
	assert_int_equal(sim_end_replied(server), 1);
	rx_conn_unref(conn);
	sim_free(s);
	return took;
}

static const uint64_t sizes[] = {0, 1, 1387, 1388, 1389, 1416, 1417, 2832, 22656, 100000, 1000000};

static void every_size_arrives_on_a_perfect_network(void **state)
{
	(void)state;
	struct sim_net net = {.delay = USEC(100)};
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (int secured = 0; secured < 2; secured++) {
			one_call(i + 1, &net, false, secured, sizes[i], 0, SEC(2));
			one_call(i + 1, &net, false, secured, 0, sizes[i], SEC(2));
			one_call(i + 1, &net, true, secured, sizes[i], sizes[i], SEC(2));
		}
	}
}

static void every_size_arrives_through_loss_duplication_and_reordering(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(60); seed++) {
		struct sim_net net = {
			.loss_ppm = (uint32_t)(seed % 5) * 30000,
			.dup_ppm = (uint32_t)(seed % 3) * 40000,
			.reorder_ppm = (uint32_t)(seed % 4) * 50000,
			.delay = USEC(50) << (seed % 8),
			.jitter = USEC(20) << (seed % 6),
		};
		uint64_t a = sizes[seed % ARRAY_SIZE(sizes)],
			 b = sizes[seed / 2 % ARRAY_SIZE(sizes)];
		one_call(seed, &net, seed % 7 == 0, seed % 2, a, b, SEC(60));
	}
}

static void five_megabytes_pass_each_way_at_the_speed_of_the_link(void **state)
{
	(void)state;
	/* 100 Mbit/s, 2 ms round trip: 0.42 s at the least */
	struct sim_net net = {.delay = MSEC(1), .bytes_per_sec = 12500000};
	assert_true(one_call(1, &net, false, false, 5 << 20, 0, SEC(5)) < MSEC(700));
	assert_true(one_call(2, &net, false, false, 0, 5 << 20, SEC(5)) < MSEC(700));
}

static void a_long_path_is_filled_up_to_the_window(void **state)
{
	(void)state;
	/* 50 ms round trip: 255 * 1416 bytes in each is 7.2 MB/s; slow start takes some rounds */
	struct sim_net net = {.delay = MSEC(25), .bytes_per_sec = 12500000, .queue_bytes = 1 << 20};
	assert_true(one_call(3, &net, false, false, 0, 5 << 20, SEC(10)) < SEC(1) + MSEC(400));
}

static void one_percent_of_loss_costs_less_than_half_the_speed(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(1), .bytes_per_sec = 12500000, .loss_ppm = 10000};
	mono_ns total = 0;
	for (uint64_t seed = 1; seed <= 5; seed++)
		total += one_call(seed, &net, false, false, 0, 5 << 20, SEC(20));
	assert_true(total / 5 < MSEC(1400));
}

static void losses_that_are_no_congestion_leave_a_long_path_filled(void **state)
{
	(void)state;
	/* a fifth of the path's share is lost to repairs, not to a window cut in halves */
	struct sim_net net = {.delay = MSEC(25),
		.bytes_per_sec = 12500000,
		.queue_bytes = 1 << 20,
		.loss_ppm = 10000};
	mono_ns total = 0;
	for (uint64_t seed = 1; seed <= 5; seed++)
		total += one_call(seed, &net, false, false, 0, 5 << 20, SEC(20));
	assert_true(total / 5 < SEC(2) + MSEC(500));
}

static void a_queue_too_short_to_show_as_delay_is_not_flooded(void **state)
{
	(void)state;
	/* 100 Mbit/s, 10 ms, room for six packets: full after half a millisecond */
	struct sim_net net = {.delay = MSEC(5),
		.bytes_per_sec = 12500000,
		.queue_bytes = 9000,
		.datagram_max = 1500};
	struct sim *s = sim_new(6, &net);
	struct sim_end *client = sim_end_new(s, &(struct sim_end_config){}),
		       *server = sim_end_new(s, &(struct sim_end_config){});
	struct rx_conn *conn = sim_connect(client, server, false);
	struct sim_call *c = sim_call(client, conn, &(struct sim_ask){.reply_len = 10 << 20});
	assert_true(sim_run(s, SEC(20)));
	struct rx_stats st;
	rx_endpoint_stats(sim_end_endpoint(server), &st);
	assert_true(st.data_resent * 10 < st.data_out);
	assert_true(sim_call_took(c) < SEC(3));
	rx_conn_unref(conn);
	sim_free(s);
}

static void a_lost_tail_is_repaired_without_a_timeout(void **state)
{
	(void)state;
	/* of many seeds with 3 % loss the median small transfer stays far below the timeout */
	struct sim_net net = {.delay = MSEC(1), .loss_ppm = 30000};
	int slow = 0;
	for (uint64_t seed = 1; seed <= 40; seed++)
		slow += one_call(seed, &net, false, false, 0, 60000, SEC(20)) > MSEC(150);
	assert_true(slow < 12);
}

static void a_fifth_of_all_datagrams_may_vanish(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(1), .loss_ppm = 200000};
	for (uint64_t seed = 1; seed <= sim_seeds(10); seed++)
		one_call(seed, &net, false, seed % 2, 100000, 100000, SEC(120));
}

static void a_small_queue_on_a_slow_link_is_shared_without_collapse(void **state)
{
	(void)state;
	/* 10 Mbit/s, 32 KiB of queue, 20 ms: 1 MB takes 0.84 s at the least */
	struct sim_net net = {.delay = MSEC(10), .bytes_per_sec = 1250000, .queue_bytes = 32768};
	assert_true(one_call(4, &net, false, false, 0, 1 << 20, SEC(10)) < SEC(2));
	assert_true(one_call(5, &net, false, false, 1 << 20, 0, SEC(10)) < SEC(2));
}

static void two_ends_on_one_machine_use_large_datagrams(void **state)
{
	(void)state;
	struct sim_net net = {.delay = USEC(20)};
	struct sim *s = sim_new(1, &net);
	struct sim_end_config ec = {.loopback = true};
	struct sim_end *client = sim_end_new(s, &ec), *server = sim_end_new(s, &ec);
	struct rx_conn *conn = sim_connect(client, server, false);
	struct sim_ask ask = {.request_len = 1 << 20, .reply_len = 1 << 20};
	sim_call(client, conn, &ask);
	assert_true(sim_run(s, SEC(1)));
	struct rx_stats st;
	rx_endpoint_stats(sim_end_endpoint(client), &st);
	assert_true(st.data_out < 65 + 40);
	rx_endpoint_stats(sim_end_endpoint(server), &st);
	/* what the server queued before the first acknowledgement told it the size was cut small */
	assert_true(st.data_out < 65 + 36);
	rx_conn_unref(conn);
	sim_free(s);
}

static void a_path_that_loses_large_datagrams_gets_small_ones_after_the_network_says_so(
	void **state)
{
	(void)state;
	struct sim_net net = {.delay = USEC(20)};
	struct sim *s = sim_new(1, &net);
	struct sim_end_config ec = {.loopback = true};
	struct sim_end *client = sim_end_new(s, &ec), *server = sim_end_new(s, &ec);
	struct rx_conn *conn = sim_connect(client, server, false);
	struct sim_ask small = {.request_len = 10}, ask = {.request_len = 1 << 20};
	sim_call(client, conn, &small);
	assert_true(sim_run(s, SEC(1)));
	rx_endpoint_unreachable(sim_end_endpoint(client), sim_now(s), sim_end_addr(server), true);
	sim_network(s)->datagram_max = 1444;
	sim_call(client, conn, &ask);
	assert_true(sim_run(s, SEC(2)));
	rx_conn_unref(conn);
	sim_free(s);
}

static void a_slow_reader_closes_the_window_and_nothing_is_lost(void **state)
{
	(void)state;
	struct sim_net net = {.delay = USEC(100)};
	struct sim *s = sim_new(1, &net);
	struct sim_end_config cc = {0}, sc = {.read_pause = MSEC(3), .window = 32};
	struct sim_end *client = sim_end_new(s, &cc), *server = sim_end_new(s, &sc);
	struct rx_conn *conn = sim_connect(client, server, false);
	struct sim_ask ask = {.request_len = 1000000};
	struct sim_call *c = sim_call(client, conn, &ask);
	assert_true(sim_run(s, SEC(10)));
	assert_ok(sim_call_err(c));
	struct rx_stats st;
	rx_endpoint_stats(sim_end_endpoint(client), &st);
	assert_true(st.data_resent < 5);
	assert_true(sim_call_took(c) < MSEC(900)); /* 707 packets, 4 each 3 ms: 0.53 s */
	rx_conn_unref(conn);
	sim_free(s);
}

static void the_acknowledgement_that_opens_a_window_may_be_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(20); seed++) {
		struct sim_net net = {.delay = USEC(100), .loss_ppm = 100000};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config cc = {0}, sc = {.read_pause = MSEC(30), .window = 16};
		struct sim_end *client = sim_end_new(s, &cc), *server = sim_end_new(s, &sc);
		struct rx_conn *conn = sim_connect(client, server, false);
		struct sim_ask ask = {.request_len = 100000};
		struct sim_call *c = sim_call(client, conn, &ask);
		if (!sim_run(s, SEC(20)) || sim_call_err(c) != AFS_OK)
			fail_msg("seed %" PRIu64, seed);
		rx_conn_unref(conn);
		sim_free(s);
	}
}

static void many_calls_on_many_connections_all_end_well_and_run_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(8); seed++) {
		struct sim_net net = {.delay = USEC(300),
			.jitter = USEC(100),
			.loss_ppm = 20000,
			.dup_ppm = 20000,
			.reorder_ppm = 50000};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config ec = {.secured = true};
		struct sim_end *client = sim_end_new(s, &ec), *server = sim_end_new(s, &ec);
		struct rx_conn *conns[10];
		struct sim_call *calls[10][4];
		for (int i = 0; i < 10; i++)
			conns[i] = sim_connect(client, server, i % 2);
		unsigned total = 0;
		for (int round = 0; round < 6; round++) {
			for (int i = 0; i < 10; i++) {
				for (int k = 0; k < 4; k++, total++) {
					struct sim_ask ask = {.request_len = sim_random(s) % 20000,
						.reply_len = sim_random(s) % 20000};
					calls[i][k] = sim_call(client, conns[i], &ask);
					assert_non_null(calls[i][k]);
				}
			}
			if (!sim_run(s, SEC(60)))
				fail_msg("seed %" PRIu64 ": calls hang", seed);
			for (int i = 0; i < 10; i++)
				for (int k = 0; k < 4; k++)
					assert_ok(sim_call_err(calls[i][k]));
		}
		assert_int_equal(sim_end_begun(server), total);
		assert_int_equal(sim_end_repeated(server), 0);
		for (int i = 0; i < 10; i++)
			rx_conn_unref(conns[i]);
		sim_free(s);
	}
}

static void both_ends_call_each_other_at_once(void **state)
{
	(void)state;
	struct sim_net net = {.delay = USEC(300), .loss_ppm = 10000};
	struct sim *s = sim_new(9, &net);
	struct sim_end_config ec = {0};
	struct sim_end *a = sim_end_new(s, &ec), *b = sim_end_new(s, &ec);
	struct rx_conn *ab = sim_connect(a, b, false), *ba = sim_connect(b, a, false);
	struct sim_ask ask = {.request_len = 200000, .reply_len = 200000};
	struct sim_call *x = sim_call(a, ab, &ask), *y = sim_call(b, ba, &ask);
	assert_true(sim_run(s, SEC(10)));
	assert_ok(sim_call_err(x));
	assert_ok(sim_call_err(y));
	rx_conn_unref(ab);
	rx_conn_unref(ba);
	sim_free(s);
}

static void a_reply_may_begin_before_the_request_is_read(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(10); seed++) {
		struct sim_net net = {.delay = USEC(300), .loss_ppm = seed % 2 * 30000};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config ec = {0};
		struct sim_end *client = sim_end_new(s, &ec), *server = sim_end_new(s, &ec);
		struct rx_conn *conn = sim_connect(client, server, false);
		struct sim_ask ask = {.verb = SIM_EARLY, .request_len = 500000, .reply_len = 50000};
		struct sim_call *c = sim_call(client, conn, &ask);
		if (!sim_run(s, SEC(20)) || sim_call_err(c) != AFS_OK)
			fail_msg("seed %" PRIu64, seed);
		rx_conn_unref(conn);
		sim_free(s);
	}
}

/* Everything at random: network, windows, readers' speed, levels, verbs, both directions. */
static void any_mix_of_calls_through_any_network_ends_as_it_should(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(40); seed++) {
		struct sim_net none = {0};
		struct sim *s = sim_new(seed, &none);
		struct sim_net *net = sim_network(s);
		net->delay = USEC(10) << (sim_random(s) % 12);
		net->jitter = sim_random(s) % 2 ? net->delay / (1 + sim_random(s) % 8) + 1 : 0;
		net->loss_ppm = sim_random(s) % 3 ? sim_random(s) % 100000 : 0;
		net->dup_ppm = sim_random(s) % 3 ? 0 : sim_random(s) % 100000;
		net->reorder_ppm = sim_random(s) % 3 ? 0 : sim_random(s) % 200000;
		net->bytes_per_sec = sim_random(s) % 2 ? 200000u << (sim_random(s) % 8) : 0;
		struct sim_end *ends[3];
		bool loopback = sim_random(s) % 3 == 0;
		for (int i = 0; i < 3; i++) {
			struct sim_end_config ec = {
				.loopback = loopback,
				.secured = true,
				.window = sim_random(s) % 2 ? 4 + sim_random(s) % 252 : 0,
				.read_pause =
					sim_random(s) % 4 ? 0 : USEC(100) << (sim_random(s) % 6),
			};
			ends[i] = sim_end_new(s, &ec);
		}
		struct rx_conn *conns[6];
		struct sim_call *calls[6 * 4 * 3];
		enum sim_verb verbs[6 * 4 * 3];
		unsigned n = 0;
		for (int i = 0; i < 6; i++)
			conns[i] = sim_connect(
				ends[i % 3], ends[(i + 1 + i / 3) % 3], sim_random(s) % 2);
		for (int round = 0; round < 3; round++) {
			for (int i = 0; i < 6 * 4; i++) {
				struct sim_ask ask = {
					.verb = (enum sim_verb[]){SIM_ECHO_LEN, SIM_ECHO_LEN,
						SIM_ABORT, SIM_SLOW, SIM_EARLY}[sim_random(s) % 5],
					.arg = 1 + (int32_t)(sim_random(s) % 300),
					.request_len = sim_random(s) % (1u << (sim_random(s) % 17)),
					.reply_len = sim_random(s) % (1u << (sim_random(s) % 17)),
				};
				struct sim_call *c = sim_call(ends[i % 6 % 3], conns[i % 6], &ask);
				if (!c)
					continue;
				verbs[n] = ask.verb;
				calls[n++] = c;
			}
			if (!sim_run(s, SEC(120)))
				fail_msg("seed %" PRIu64 ": calls hang", seed);
		}
		for (unsigned i = 0; i < n; i++) {
			afs_err want = verbs[i] == SIM_ABORT ? AFS_EABORTED : AFS_OK;
			if (sim_call_err(calls[i]) != want)
				fail_msg("seed %" PRIu64 ": call %u ended with %s", seed, i,
					afs_err_name(sim_call_err(calls[i])));
		}
		for (int i = 0; i < 3; i++)
			assert_int_equal(sim_end_repeated(ends[i]), 0);
		for (int i = 0; i < 6; i++)
			sim_disconnect(ends[i % 3], conns[i]);
		sim_wait(s, SEC(60));
		if (sim_pool_used(s))
			fail_msg("seed %" PRIu64 ": buffers are kept", seed);
		sim_free(s);
	}
}

TEST_MAIN(T(any_mix_of_calls_through_any_network_ends_as_it_should),
	T(every_size_arrives_on_a_perfect_network),
	T(every_size_arrives_through_loss_duplication_and_reordering),
	T(five_megabytes_pass_each_way_at_the_speed_of_the_link),
	T(a_long_path_is_filled_up_to_the_window),
	T(one_percent_of_loss_costs_less_than_half_the_speed),
	T(losses_that_are_no_congestion_leave_a_long_path_filled),
	T(a_queue_too_short_to_show_as_delay_is_not_flooded),
	T(a_lost_tail_is_repaired_without_a_timeout), T(a_fifth_of_all_datagrams_may_vanish),
	T(a_small_queue_on_a_slow_link_is_shared_without_collapse),
	T(two_ends_on_one_machine_use_large_datagrams),
	T(a_path_that_loses_large_datagrams_gets_small_ones_after_the_network_says_so),
	T(a_slow_reader_closes_the_window_and_nothing_is_lost),
	T(the_acknowledgement_that_opens_a_window_may_be_lost),
	T(many_calls_on_many_connections_all_end_well_and_run_once),
	T(both_ends_call_each_other_at_once), T(a_reply_may_begin_before_the_request_is_read))
