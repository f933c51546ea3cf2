/* SPDX-License-Identifier: BSD-2-Clause
 * Shares: flows beside each other, small calls beside flows, honest clients beside those who trickle, never
 * acknowledge or never read.  In simulated time, so that the figures are the same on every machine. */
#include "rx/core/inside.h"
#include "tests/lib/test.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* Jain's index of the rates of calls of one size. */
static double jain(struct sim_call *const *c, int n)
{
	double sum = 0, squares = 0;
	for (int i = 0; i < n; i++) {
		const double rate = 1e9 / (double)sim_call_took(c[i]);
		sum += rate;
		squares += rate * rate;
	}
	return sum * sum / (n * squares);
}

static void eight_flows(const struct sim_net *net, bool one_client, uint64_t bytes)
{
	struct sim *s = sim_new(7, net);
	struct sim_end *server = sim_end_new(s, &(struct sim_end_config){0});
	struct sim_end *clients[8];
	struct rx_conn *conns[8];
	struct sim_call *c[8];
	for (int i = 0; i < 8; i++) {
		clients[i] =
			one_client && i ? clients[0] : sim_end_new(s, &(struct sim_end_config){0});
		conns[i] = sim_connect(clients[i], server, false);
		c[i] = sim_call(clients[i], conns[i], &(struct sim_ask){.reply_len = bytes});
		sim_wait(s, USEC(300));
	}
	assert_true(sim_run(s, SEC(600)));
	for (int i = 0; i < 8; i++)
		assert_ok(sim_call_err(c[i]));
	const double index = jain(c, 8);
	if (index < 0.95)
		fail_msg("Jain's index of eight flows is %.3f (%.1f ... %.1f ms)", index,
			(double)sim_call_took(c[0]) / 1e6, (double)sim_call_took(c[7]) / 1e6);
	/* and the link was not left idle */
	mono_ns last = 0;
	for (int i = 0; i < 8; i++)
		last = MAX(last, sim_call_took(c[i]));
	assert_true((double)last / 1e9 < 1.25 * 8 * (double)bytes / (double)net->bytes_per_sec);
	for (int i = 0; i < 8; i++)
		rx_conn_unref(conns[i]);
	sim_free(s);
}

static void eight_flows_to_eight_clients_share_the_link_alike(void **state)
{
	(void)state;
	const struct sim_net lan = {.delay = USEC(100), .bytes_per_sec = 125000000},
			     wan = {.delay = MSEC(10), .bytes_per_sec = 12500000},
			     lossy = {
				     .delay = MSEC(5), .bytes_per_sec = 12500000, .loss_ppm = 5000};
	eight_flows(&lan, false, 24 << 20);
	eight_flows(&wan, false, 8 << 20);
	eight_flows(&lossy, false, 8 << 20);
}

static void eight_flows_to_one_client_do_too(void **state)
{
	(void)state;
	const struct sim_net lan = {.delay = USEC(100), .bytes_per_sec = 125000000};
	eight_flows(&lan, true, 24 << 20);
}

static int by_time(const void *a, const void *b)
{
	const mono_ns x = *(const mono_ns *)a, y = *(const mono_ns *)b;
	return (x > y) - (x < y);
}

/* The times of `n` small calls one after another; gives the p-th percent. */
static mono_ns small_calls(
	struct sim *s, struct sim_end *client, struct sim_end *server, int n, int p)
{
	static mono_ns took[1000];
	struct rx_conn *conn = sim_connect(client, server, false);
	for (int i = 0; i < n; i++) {
		struct sim_call *c = sim_call(
			client, conn, &(struct sim_ask){.request_len = 64, .reply_len = 64});
		assert_non_null(c);
		for (int waits = 0; !sim_call_over(c) && waits < 100000; waits++)
			sim_wait(s, USEC(20));
		assert_ok(sim_call_err(c));
		took[i] = sim_call_took(c);
	}
	sim_disconnect(client, conn);
	qsort(took, (size_t)n, sizeof(*took), by_time);
	return took[n * p / 100];
}

static void small_calls_beside_eight_flows_are_answered_within_5_ms(void **state)
{
	(void)state;
	const struct sim_net net = {.delay = USEC(100), .bytes_per_sec = 125000000};
	struct sim *s = sim_new(8, &net);
	struct sim_end *server = sim_end_new(s, &(struct sim_end_config){0});
	struct sim_end *small = sim_end_new(s, &(struct sim_end_config){0});
	struct rx_conn *conns[8];
	for (int i = 0; i < 8; i++) {
		struct sim_end *client = sim_end_new(s, &(struct sim_end_config){0});
		conns[i] = sim_connect(client, server, false);
		sim_call(client, conns[i], &(struct sim_ask){.reply_len = 8 << 20});
	}
	sim_wait(s, MSEC(10));
	const mono_ns p99 = small_calls(s, small, server, 100, 99);
	if (p99 > MSEC(5))
		fail_msg("the 99th percent of small calls took %.3f ms", (double)p99 / 1e6);
	assert_true(sim_run(s, SEC(60)));
	for (int i = 0; i < 8; i++)
		rx_conn_unref(conns[i]);
	sim_free(s);
}

/* Bulk and small calls of an honest client, as long as hundreds of others do as `bad` says. */
enum bad { NOBODY, TRICKLE, NEVER_ACK, NEVER_READ };

struct honest {
	mono_ns bulk, small;
};

static void bad_datagram(
	struct sim *s, struct sim_end *server, uint32_t i, uint32_t seq, enum bad bad)
{
	uint8_t p[RX_HEADER + 28] = {0};
	const bool trickles = bad == TRICKLE;
	const struct rx_header h = {.epoch = 0x80000001,
		.cid = i << 2,
		.call = 1,
		.seq = seq,
		.serial = seq,
		.type = RX_DATA,
		.flags = RX_F_CLIENT | (trickles ? 0 : RX_F_LAST),
		.service = 77};
	rx_header_put(p, &h);
	p[RX_HEADER + 13] = 16; /* a reply of a megabyte */
	put32(p + RX_HEADER + 20, 30000 + i);
	size_t n = !trickles ? 28 : seq == 1 ? 24 : 1;
	const struct rx_addr from = {.ip = 0x0b000000 + i, .port = 7001};
	sim_inject(s, from, server, p, RX_HEADER + n);
}

/* Never reads: acknowledges everything at once and leaves the window shut. */
static void bad_ack(struct sim *s, struct sim_end *server, uint32_t i, rx_serial serial)
{
	uint8_t p[RX_HEADER + 37] = {0};
	const struct rx_header h = {.epoch = 0x80000001,
		.cid = i << 2,
		.call = 1,
		.serial = serial,
		.type = RX_ACK,
		.flags = RX_F_CLIENT,
		.service = 77};
	rx_header_put(p, &h);
	put32(p + RX_HEADER + 4, 1);
	p[RX_HEADER + 16] = RX_ACK_PING;
	put32(p + RX_HEADER + 18 + 3, 1444);
	put32(p + RX_HEADER + 18 + 7, 1444);
	put32(p + RX_HEADER + 18 + 11, 1);
	const struct rx_addr from = {.ip = 0x0b000000 + i, .port = 7001};
	sim_inject(s, from, server, p, sizeof(p));
}

static struct honest among(enum bad bad, uint32_t count)
{
	const struct sim_net net = {.delay = USEC(100), .bytes_per_sec = 125000000};
	struct sim *s = sim_new(9, &net);
	struct sim_end *server = sim_end_new(s, &(struct sim_end_config){.credulous = true});
	struct sim_end *client = sim_end_new(s, &(struct sim_end_config){0});
	struct rx_conn *conn = sim_connect(client, server, false);
	struct honest h = {0};
	for (uint32_t second = 1; second <= 30; second++) {
		for (uint32_t i = 1; bad != NOBODY && i <= count; i++) {
			if (bad == TRICKLE || second == 1)
				bad_datagram(s, server, i, second, bad);
			if (bad == NEVER_READ)
				bad_ack(s, server, i, 1 + second);
		}
		struct sim_call *c =
			sim_call(client, conn, &(struct sim_ask){.reply_len = 2 << 20});
		for (int waits = 0; !sim_call_over(c) && waits < 10000; waits++)
			sim_wait(s, MSEC(1));
		assert_ok(sim_call_err(c));
		h.bulk += sim_call_took(c);
		h.small += small_calls(s, client, server, 20, 50);
		sim_wait(s, SEC(1));
	}
	if (bad != NOBODY)
		assert_true(sim_end_begun(server) >= count);
	rx_conn_unref(conn);
	sim_wait(s, SEC(900));
	assert_int_equal(sim_pool_used(s), 0);
	sim_free(s);
	return h;
}

static void hundreds_of_bad_calls_slow_an_honest_client_by_less_than_a_tenth(void **state)
{
	(void)state;
	const struct honest alone = among(NOBODY, 0);
	for (enum bad bad = TRICKLE; bad <= NEVER_READ; bad++) {
		const struct honest beside = among(bad, 400);
		if ((double)beside.bulk > 1.1 * (double)alone.bulk ||
			(double)beside.small > 1.1 * (double)alone.small)
			fail_msg("kind %d: bulk %.3f ms alone, %.3f beside; small %.3f, %.3f",
				(int)bad, (double)alone.bulk / 1e6, (double)beside.bulk / 1e6,
				(double)alone.small / 1e6, (double)beside.small / 1e6);
	}
}

TEST_MAIN(T(eight_flows_to_eight_clients_share_the_link_alike), T(eight_flows_to_one_client_do_too),
	T(small_calls_beside_eight_flows_are_answered_within_5_ms),
	T(hundreds_of_bad_calls_slow_an_honest_client_by_less_than_a_tenth))
