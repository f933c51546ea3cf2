/* SPDX-License-Identifier: BSD-2-Clause
 * Floods of random and of altered packets, and calls ended in every state: nothing crashes (the
 * sanitizers look on), nothing leaks, honest calls end. */
#include "rx/core/inside.h"
#include "tests/lib/test.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <string.h>

/* A proxy of ill will: keeps copies of what passes and throws altered ones back at both ends. */
struct villain {
	struct sim *s;
	struct sim_end *ends[2];
	uint8_t copies[64][1500];
	size_t lens[64];
	unsigned count;
	bool spares_headers; /* never forges what only an eavesdropper could */
};

static void eavesdrop(
	void *ctx, mono_ns now, struct rx_addr from, struct rx_addr to, const uint8_t *p, size_t n)
{
	struct villain *v = ctx;
	(void)now, (void)from, (void)to;
	unsigned i = v->count++ % ARRAY_SIZE(v->copies);
	v->lens[i] = MIN(n, sizeof(v->copies[i]));
	memcpy(v->copies[i], p, v->lens[i]);
}

static void alter(struct sim *s, uint8_t *p, size_t *n)
{
	for (unsigned k = 1 + sim_random(s) % 4; k--;) {
		switch (sim_random(s) % 6) {
		case 0: /* a bit */
			p[sim_random(s) % *n] ^= (uint8_t)(1u << (sim_random(s) % 8));
			break;
		case 1: /* the end */
			*n = 1 + sim_random(s) % *n;
			break;
		case 2: /* the type */
			if (*n > 20)
				p[20] = (uint8_t)(sim_random(s) % 16);
			break;
		case 3: /* the flags */
			if (*n > 21)
				p[21] = (uint8_t)sim_random(s);
			break;
		case 4: /* a word to an extreme */
			if (*n > 8) {
				static const uint32_t extremes[] = {
					0, 1, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff};
				uint32_t v = extremes[sim_random(s) % ARRAY_SIZE(extremes)];
				put32(p + sim_random(s) % (*n - 4), v);
			}
			break;
		default: /* the call number or sequence, a little */
			if (*n > 16)
				p[(sim_random(s) % 2 ? 11 : 15)] +=
					(uint8_t)(sim_random(s) % 5 - 2);
		}
	}
}

static void throw_one(struct villain *v, bool random_bytes)
{
	struct sim *s = v->s;
	uint8_t p[1500];
	size_t n;
	if (random_bytes || !v->count) {
		n = sim_random(s) % 200;
		for (size_t i = 0; i < n; i++)
			p[i] = (uint8_t)sim_random(s);
		if (n > 20)
			p[20] %= 14;
	} else {
		unsigned i = sim_random(s) % MIN(v->count, (unsigned)ARRAY_SIZE(v->copies));
		n = v->lens[i];
		memcpy(p, v->copies[i], n);
		alter(s, p, &n);
	}
	unsigned to = sim_random(s) % 2;
	struct rx_addr from = sim_end_addr(v->ends[!to]);
	if (sim_random(s) % 4 == 0)
		from.port = (uint16_t)sim_random(s);
	sim_inject(s, from, v->ends[to], p, n);
}

static void altered_packets_crash_nothing_and_leak_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(30); seed++) {
		struct sim_net net = {.delay = USEC(200), .jitter = USEC(100), .loss_ppm = 10000};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config ec = {.closed = true};
		struct sim_end *a = sim_end_new(s, &ec), *b = sim_end_new(s, &ec);
		struct villain v = {.s = s, .ends = {a, b}};
		sim_watch(s, eavesdrop, &v);
		struct rx_conn *conns[4];
		for (int i = 0; i < 4; i++)
			conns[i] = sim_connect(i % 2 ? b : a, i % 2 ? a : b, false);
		for (int i = 0; i < 600; i++) {
			if (i % 7 == 0) {
				struct sim_ask ask = {.request_len = sim_random(s) % 6000};
				struct sim_end *from = i % 2 ? b : a;
				sim_call(from, conns[i % 4], &ask);
			}
			for (int k = 0; k < 4; k++)
				throw_one(&v, k == 0);
			sim_wait(s, USEC(100) << (sim_random(s) % 14));
		}
		for (int i = 0; i < 4; i++)
			rx_conn_unref(conns[i]);
		sim_free(s); /* checks the pool */
	}
}

static void honest_calls_end_well_under_a_flood_of_random_packets(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(10); seed++) {
		struct sim_net net = {.delay = USEC(200)};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config ec = {.secured = true};
		struct sim_end *a = sim_end_new(s, &ec), *b = sim_end_new(s, &ec);
		struct villain v = {.s = s, .ends = {a, b}};
		struct rx_conn *conn = sim_connect(a, b, true);
		struct sim_ask ask = {.request_len = 30000, .reply_len = 30000};
		struct sim_call *c = sim_call(a, conn, &ask);
		for (int i = 0; i < 300; i++) {
			for (int k = 0; k < 10; k++)
				throw_one(&v, true);
			sim_wait(s, USEC(50));
		}
		if (!sim_run(s, SEC(10)) || sim_call_err(c) != AFS_OK)
			fail_msg("seed %" PRIu64, seed);
		rx_conn_unref(conn);
		sim_free(s);
	}
}

static void calls_may_be_cancelled_at_any_moment(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(60); seed++) {
		struct sim_net net = {.delay = USEC(200), .loss_ppm = 50000, .dup_ppm = 50000};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config ec = {.secured = seed % 2};
		struct sim_end *a = sim_end_new(s, &ec), *b = sim_end_new(s, &ec);
		struct rx_conn *conn = sim_connect(a, b, seed % 2);
		for (int round = 0; round < 20; round++) {
			struct sim_ask ask = {
				.verb = sim_random(s) % 3 == 0 ? SIM_SLOW : SIM_ECHO_LEN,
				.arg = 3,
				.request_len = sim_random(s) % 40000,
				.reply_len = sim_random(s) % 40000};
			struct sim_call *c = sim_call(a, conn, &ask);
			sim_wait(s, USEC(sim_random(s) % 8000));
			if (!sim_call_over(c))
				sim_call_cancel(c);
		}
		sim_wait(s, SEC(30));
		assert_int_equal(sim_end_repeated(b), 0);
		/* all settled: only buffers of nobody are left */
		assert_int_equal(sim_pool_used(s), 0);
		rx_conn_unref(conn);
		sim_free(s);
	}
}

static void connections_may_be_let_go_with_calls_on_them(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(30); seed++) {
		struct sim_net net = {.delay = USEC(200), .loss_ppm = 50000};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config ec = {0};
		struct sim_end *a = sim_end_new(s, &ec), *b = sim_end_new(s, &ec);
		struct rx_conn *conn = sim_connect(a, b, false);
		for (int i = 0; i < 4; i++) {
			struct sim_ask ask = {.request_len = 40000, .reply_len = 40000};
			sim_call(a, conn, &ask);
		}
		sim_wait(s, USEC(sim_random(s) % 5000));
		sim_disconnect(a, conn);
		if (!sim_run(s, SEC(1)))
			fail_msg("seed %" PRIu64 ": a call outlives its connection", seed);
		sim_wait(s, SEC(30));
		assert_int_equal(sim_pool_used(s), 0);
		sim_free(s);
	}
}

/* --- the amplification limit over whole runs ------------------------------------------------- */

struct ledger {
	struct rx_addr victim;
	uint64_t out;
};
static void count_out(
	void *ctx, mono_ns now, struct rx_addr from, struct rx_addr to, const uint8_t *p, size_t n)
{
	struct ledger *l = ctx;
	(void)now, (void)from, (void)p;
	if (to.ip == l->victim.ip && to.port == l->victim.port)
		l->out += n;
}

static void spoofed_requests_of_any_kind_never_bring_a_victim_more_than_three_times_their_size(
	void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= sim_seeds(40); seed++) {
		struct sim_net net = {0};
		struct sim *s = sim_new(seed, &net);
		struct sim_end_config ec = {.secured = true, .credulous = true};
		struct sim_end *server = sim_end_new(s, &ec);
		struct ledger l = {.victim = {.ip = 0x0a0a0a0a, .port = 7001}};
		sim_watch(s, count_out, &l);
		uint64_t in = 0;
		for (int i = 0; i < 300; i++) {
			uint8_t p[600] = {0};
			struct rx_header h = {.epoch = 0x80000001,
				.cid = (sim_random(s) % 3) << 2 | (sim_random(s) & 3),
				.call = sim_random(s) % 4,
				.seq = sim_random(s) % 4,
				.serial = sim_random(s),
				.type = (uint8_t)(sim_random(s) % 5 ? RX_DATA
								    : 1 + sim_random(s) % 13),
				.flags = RX_F_CLIENT |
					 (sim_random(s) % 2 ? RX_F_LAST | RX_F_REQUEST_ACK : 0),
				.index = sim_random(s) % 2 ? 2 : 0,
				.service = 77};
			rx_header_put(p, &h);
			/* SIM_ECHO_LEN with a reply of 64 KiB */
			p[RX_HEADER + 13] = 1;
			put32(p + RX_HEADER + 20, (uint32_t)i);
			if (h.type == RX_ACK) { /* guesses at serials included */
				p[RX_HEADER + 7] = 1;
				put32(p + RX_HEADER + 12, sim_random(s) % 100);
				p[RX_HEADER + 16] = RX_ACK_PING_RESPONSE;
			}
			size_t n = RX_HEADER + (h.type == RX_ACK ? 37 : 28);
			in += n;
			sim_inject(s, l.victim, server, p, n);
			sim_wait(s, MSEC(sim_random(s) % 3000));
			if (l.out > 3 * in + 200)
				fail_msg("seed %" PRIu64 ": %" PRIu64 " bytes for %" PRIu64, seed,
					l.out, in);
		}
		sim_wait(s, SEC(100));
		if (l.out > 3 * in + 200)
			fail_msg("seed %" PRIu64 ": %" PRIu64 " bytes for %" PRIu64, seed, l.out,
				in);
		sim_free(s);
	}
}

static void a_thousand_half_calls_do_not_stop_honest_ones(void **state)
{
	(void)state;
	struct sim_net net = {.delay = USEC(200)};
	struct sim *s = sim_new(5, &net);
	struct sim_end_config ec = {0};
	struct sim_end *a = sim_end_new(s, &ec), *b = sim_end_new(s, &ec);
	for (uint32_t i = 0; i < 1000; i++) {
		uint8_t p[RX_HEADER + 4] = {0};
		struct rx_header h = {.epoch = 0x80000001,
			.cid = i << 2,
			.call = 1,
			.seq = 1,
			.serial = 1,
			.type = RX_DATA,
			.flags = RX_F_CLIENT,
			.service = 77};
		rx_header_put(p, &h);
		struct rx_addr from = {.ip = 0x0b000000 + i / 10, .port = 7001};
		sim_inject(s, from, b, p, sizeof(p));
	}
	struct rx_conn *conn = sim_connect(a, b, false);
	for (int i = 0; i < 20; i++) {
		struct sim_ask ask = {.request_len = 5000, .reply_len = 5000};
		struct sim_call *c = sim_call(a, conn, &ask);
		assert_true(sim_run(s, SEC(2)));
		assert_ok(sim_call_err(c));
	}
	sim_wait(s, SEC(120));
	rx_conn_unref(conn);
	assert_int_equal(sim_pool_used(s), 0);
	sim_free(s);
}

TEST_MAIN(T(altered_packets_crash_nothing_and_leak_nothing),
	T(honest_calls_end_well_under_a_flood_of_random_packets),
	T(calls_may_be_cancelled_at_any_moment), T(connections_may_be_let_go_with_calls_on_them),
	T(spoofed_requests_of_any_kind_never_bring_a_victim_more_than_three_times_their_size),
	T(a_thousand_half_calls_do_not_stop_honest_ones))
