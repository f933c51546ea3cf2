/* SPDX-License-Identifier: BSD-2-Clause
 * What strangers and the slow may take, and that it all comes back. */
#include "tests/unit/core/wire.h"

#include <string.h>

enum { LAST = RX_F_LAST };
enum { EPOCH = 0x9a0b0c0d, CID = 0x12345670 };

static struct rx_stats stats(struct wire *w)
{
	struct rx_stats st;
	rx_endpoint_stats(w->ep, &st);
	return st;
}

static size_t pool_used(struct wire *w)
{
	struct rx_buf_pool_stats st;
	rx_buf_pool_stats(w->pool, &st);
	return st.used_bytes;
}

/* Nothing is left but the endpoint itself. */
static void expect_empty(struct wire *w)
{
	wire_wait(w, SEC(900));
	wire_flush(w);
	assert_int_equal(w->ep->conn_count, 0);
	assert_int_equal(w->ep->conns.count, 0);
	assert_int_equal(w->ep->peers.count, 0);
	assert_int_equal(w->ep->hosts.count, 0);
	assert_int_equal(w->ep->server_calls, 0);
	assert_int_equal(w->ep->held, 0);
	assert_int_equal(w->ep->half_open_count, 0);
	assert_int_equal(w->ep->idle_peers_count, 0);
	assert_int_equal(w->ep->heap.count, 0);
	assert_int_equal(w->ep->heap.reserved, 1); /* of the peers' timer */
	assert_int_equal(pool_used(w), 0);
}

static void read_all(struct wire *w, struct rx_call *call)
{
	uint32_t n = 0;
	for (struct rx_packet *p = rx_call_receive(call, w->now), *next; p; p = next, n++) {
		next = p->next;
		rx_packet_free(p);
	}
	rx_call_consumed(call, w->now, n);
	wire_pump(w);
}

static void drop_offered(struct wire *w)
{
	while (w->offered_count)
		rx_call_unref(w->offered[--w->offered_count]);
	wire_pump(w);
	wire_flush(w);
}

/* A call whose reply was acknowledged: the address is proven. */
static void honest_call(struct wire *w, uint32_t number)
{
	wire_data(w, number, 1, LAST, 4);
	assert_int_equal(w->offered_count, 1);
	wire_reply(w, w->offered[0], 1, 8, true);
	const struct wire_out *o = wire_take(w);
	while (o->h.type != RX_DATA)
		o = wire_take(w);
	const struct wire_ack all = {
		.first = 2, .previous = 1, .serial = o->h.serial, .reason = RX_ACK_REQUESTED};
	wire_ack(w, EPOCH, CID, number, RX_F_CLIENT, number + 1, &all);
	drop_offered(w);
}

static void half_call(struct wire *w, uint32_t i, unsigned flags, uint8_t index, size_t len)
{
	const struct wire_in in = {.h = {.type = RX_DATA,
					   .epoch = 0x80000001,
					   .cid = i << 2,
					   .call = 1,
					   .seq = 2,
					   .index = index,
					   .flags = (uint8_t)(RX_F_CLIENT | flags)},
		.len = len,
		.from = {.ip = 0x0b000000 + i, .port = 7001}};
	wire_feed(w, &in);
}

static void a_flood_of_half_calls_takes_only_places_of_its_own(void **state)
{
	(void)state;
	const struct wire_config c = {.conns_max = 64, .half_open_max = 16};
	struct wire *w = wire_new(&c);
	w->secured = true;
	honest_call(w, 1);
	for (uint32_t i = 1; i <= 5000; i++) {
		half_call(w, i, 0, i % 2 ? 2 : 0, 4);
		wire_flush(w);
		assert_in_range(w->ep->conn_count, 1, 1 + 16);
		assert_in_range(w->ep->half_open_count, 0, 16);
		if (i % 500 == 0) /* whoever asks in earnest is served, old friend or new */
			honest_call(w, 1 + i / 500);
	}
	assert_in_range(stats(w).half_open_evicted, 4900, 5000);
	assert_in_range(pool_used(w), 0, 17 * 4096);
	struct wire_in in = {.h = {.type = RX_DATA,
				     .epoch = 0x8000ffff,
				     .call = 1,
				     .seq = 1,
				     .flags = LAST | RX_F_CLIENT},
		.len = 4,
		.from = {.ip = 0x0c000001, .port = 7001}};
	wire_feed(w, &in);
	assert_int_equal(w->offered_count, 1);
	drop_offered(w);
	expect_empty(w);
	wire_free(w);
}

static void calls_that_a_worker_holds_outlast_a_flood(void **state)
{
	(void)state;
	const struct wire_config c = {.conns_max = 8, .half_open_max = 4};
	struct wire *w = wire_new(&c);
	wire_data(w, 1, 1, LAST, 4); /* its address is not proven yet */
	assert_int_equal(w->offered_count, 1);
	for (uint32_t i = 1; i <= 1000; i++) {
		half_call(w, i, 0, 0, 4);
		wire_flush(w);
		assert_in_range(w->ep->conn_count, 1, 8);
	}
	assert_int_equal(w->ended, 0);
	wire_reply(w, w->offered[0], 1, 8, true);
	wire_take_type(w, RX_DATA);
	drop_offered(w);
	expect_empty(w);
	wire_free(w);
}

static void one_address_cannot_fill_the_pool_with_what_nobody_reads(void **state)
{
	(void)state;
	const struct wire_config c = {.peer_bytes_max = 100000, .idle_ns = SEC(20)};
	struct wire *w = wire_new(&c);
	for (uint32_t cid = 0; cid < 40; cid++) {
		for (uint32_t seq = 1; seq <= 16; seq++) {
			/* every other call lacks its beginning */
			const struct wire_in in = {
				.h = {.type = RX_DATA,
					.epoch = EPOCH,
					.cid = cid << 2,
					.call = 1,
					.seq = seq + (cid & 1 ? 1 : 0) - (cid & 1 && seq == 16),
					.flags = RX_F_CLIENT},
				.len = 1400};
			wire_feed(w, &in);
			wire_flush(w);
			assert_in_range(pool_used(w), 0, (200000 / 1400 + 2) * 2200);
		}
	}
	assert_true(stats(w).refused_peer > 100);
	assert_true(w->offered_count > 5);
	/* another address has all its room */
	const struct wire_in in = {.h = {.type = RX_DATA,
					   .epoch = EPOCH,
					   .cid = 4000,
					   .call = 1,
					   .seq = 1,
					   .flags = RX_F_CLIENT | LAST},
		.len = 1400,
		.from = {.ip = 0x0a000077, .port = 7001}};
	unsigned before = w->offered_count;
	wire_feed(w, &in);
	assert_int_equal(w->offered_count, before + 1);
	/* what is read makes room, byte for byte */
	for (unsigned i = 0; i < w->offered_count; i++)
		read_all(w, w->offered[i]);
	for (unsigned i = 0; i < w->offered_count; i++)
		assert_true(rx_call_conn(w->offered[i])->peer->held < 100000 + 2000);
	wire_wait(w, SEC(60));
	wire_flush(w);
	drop_offered(w);
	expect_empty(w);
	wire_free(w);
}

/* One packet of a call of its own, from this address; was it offered? */
static bool call_from(struct wire *w, uint32_t ip, uint16_t port, uint32_t cid, size_t len)
{
	const struct wire_in in = {.h = {.type = RX_DATA,
					   .epoch = EPOCH,
					   .cid = cid << 2,
					   .call = 1,
					   .seq = 1,
					   .flags = RX_F_CLIENT},
		.len = len,
		.from = {.ip = ip, .port = port}};
	const unsigned before = w->offered_count;
	wire_feed(w, &in);
	return w->offered_count > before;
}

static void ports_cost_nothing_so_an_address_has_bounds_too(void **state)
{
	(void)state;
	const struct wire_config c = {.calls_per_peer_max = 3, .calls_per_host_max = 8, .calls_max = 12};
	struct wire *w = wire_new(&c);
	uint32_t cid = 1, taken = 0;
	for (uint16_t port = 1000; port < 1010; port++)
		for (int i = 0; i < 4; i++)
			taken += call_from(w, 0x0b000001, port, cid++, 4);
	assert_int_equal(taken, 8);
	wire_take_type(w, RX_BUSY);
	wire_flush(w);
	/* others are served, until all have all that there is */
	assert_true(call_from(w, 0x0b000002, 1000, cid++, 4));
	for (uint32_t ip = 0x0c000000; ip < 0x0c000010; ip++)
		taken += call_from(w, ip, 1000, cid++, 4);
	assert_int_equal(taken, 8 + 3);
	assert_int_equal(w->ep->server_calls, 12);
	assert_int_equal(stats(w).refused_overload, 40 - 8 + 16 - 3);
	/* one that ends makes room for one, wherever it is from */
	rx_call_unref(w->offered[--w->offered_count]);
	wire_pump(w);
	wire_flush(w);
	assert_true(call_from(w, 0x0d000001, 1000, cid++, 4));
	assert_false(call_from(w, 0x0d000002, 1000, cid++, 4));
	drop_offered(w);
	expect_empty(w);
	wire_free(w);
}

static void many_ports_of_one_address_cannot_fill_the_pool(void **state)
{
	(void)state;
	const struct wire_config c = {.peer_bytes_max = 10000, .host_bytes_max = 20000};
	struct wire *w = wire_new(&c);
	uint32_t cid = 1;
	for (uint16_t port = 1000; port < 1060; port++) {
		call_from(w, 0x0b000001, port, cid++, 1400);
		wire_flush(w);
		assert_in_range(w->ep->held, 0, 40000);
	}
	assert_int_equal(w->offered_count, 40000 / 1400);
	assert_int_equal(stats(w).refused_peer, 60 - 40000 / 1400);
	assert_true(call_from(w, 0x0b000002, 1000, cid++, 1400));
	read_all(w, w->offered[0]);
	assert_true(call_from(w, 0x0b000001, 1000, cid++, 1400));
	assert_false(call_from(w, 0x0b000001, 1001, cid++, 1400));
	drop_offered(w);
	expect_empty(w);
	wire_free(w);
}

static void trickle(bool enough)
{
	const struct wire_config c = {.idle_ns = SEC(60)};
	struct wire *w = wire_new(&c);
	wire_data(w, 1, 1, 0, 4);
	assert_int_equal(w->offered_count, 1);
	struct rx_call *call = w->offered[0];
	const mono_ns begun = w->now;
	for (rx_seq seq = 2; !w->ended && seq < 150; seq++) {
		read_all(w, call);
		wire_wait(w, SEC(4));
		wire_data(w, 1, seq, 0, enough ? 1400 : 1);
		wire_flush(w);
	}
	if (enough) {
		assert_int_equal(w->ended, 0);
		assert_true(w->now - begun > SEC(500));
	} else {
		assert_int_equal(w->ended, 1);
		assert_int_equal(w->last_err, AFS_ETIMEDOUT);
		assert_in_range(w->now - begun, SEC(60), SEC(70));
	}
	drop_offered(w);
	expect_empty(w);
	wire_free(w);
}

static void who_trickles_a_byte_now_and_then_is_timed_out(void **state)
{
	(void)state;
	trickle(false);
}

static void who_is_slow_but_moves_is_not(void **state)
{
	(void)state;
	trickle(true);
}

static void time_that_the_application_takes_is_not_held_against_the_peer(void **state)
{
	(void)state;
	const struct wire_config c = {.idle_ns = SEC(60)};
	struct wire *w = wire_new(&c);
	rx_serial serial = 5000;
	wire_data(w, 1, 1, 0, 4);
	struct rx_call *call = w->offered[0];
	for (rx_seq seq = 2; seq < 12; seq++) {
		/* a disk that takes 50 s, a peer that takes 5 */
		for (int i = 0; i < 10; i++) {
			wire_wait(w, SEC(5));
			const struct wire_ack ping = {.first = 1, .reason = RX_ACK_PING};
			wire_ack(w, EPOCH, CID, 1, RX_F_CLIENT | RX_F_REQUEST_ACK, serial++, &ping);
			wire_flush(w);
		}
		read_all(w, call);
		wire_wait(w, SEC(5));
		wire_data(w, 1, seq, 0, 1400);
		wire_flush(w);
		assert_int_equal(w->ended, 0);
	}
	drop_offered(w);
	wire_free(w);
}

static void a_hundred_thousand_wrong_responses_leave_nothing_behind(void **state)
{
	(void)state;
	const struct wire_config c = {.conns_max = 64};
	struct wire *w = wire_new(&c);
	w->secured = true;
	for (uint32_t i = 1; i <= 100000; i++) {
		struct wire_in in = {.h = {.type = RX_DATA,
					     .epoch = 0x80000001,
					     .cid = i << 2,
					     .call = 1,
					     .seq = 1,
					     .index = 2,
					     .flags = RX_F_CLIENT | LAST},
			.len = 40};
		wire_feed(w, &in);
		wire_take_type(w, RX_CHALLENGE);
		static const uint8_t wrong[32] = {1};
		in.h.type = RX_RESPONSE;
		in.h.call = in.h.seq = 0;
		in.body = wrong;
		in.len = i % 40; /* short ones too */
		in.body = i % 40 > sizeof(wrong) ? NULL : in.body;
		wire_feed(w, &in);
		wire_flush(w);
		if (i % 1000 == 0)
			wire_wait(w, SEC(2));
		wire_flush(w);
	}
	assert_int_equal(stats(w).responses_refused, 100000);
	assert_int_equal(w->offered_count, 0);
	assert_in_range(w->ep->conn_count, 0, 64);
	assert_in_range(w->ep->free_calls_count, 0, 256);
	expect_empty(w);
	wire_free(w);
}

/* Each way of ending a call, from either side, at each moment of its life. */
static void aborts_at_every_moment_leave_nothing_behind(void **state)
{
	(void)state;
	enum { MOMENTS = 8, ENDERS = 6 };
	struct wire *w = wire_new(NULL);
	w->secured = true;
	for (uint32_t round = 0; round < 40 * MOMENTS * ENDERS; round++) {
		const unsigned moment = round % MOMENTS, ender = round / MOMENTS % ENDERS;
		const uint32_t cid = (round + 1) << 2;
		struct wire_in in = {.h = {.type = RX_DATA,
					     .epoch = EPOCH,
					     .cid = cid,
					     .call = 1,
					     .seq = 1,
					     .index = moment == 1 ? 2 : 0,
					     .flags = RX_F_CLIENT},
			.len = 100};
		in.h.seq = moment == 0 ? 3 : 1; /* a hole at its beginning; a challenge; */
		wire_feed(w, &in);
		struct rx_call *call = w->offered_count ? w->offered[0] : NULL;
		if (moment == 3 || moment >= 5) { /* all read; */
			in.h.seq = 2;
			in.h.flags |= LAST;
			wire_feed(w, &in);
			read_all(w, call);
		}
		if (moment == 4) { /* a hole in the middle; */
			in.h.seq = 5;
			wire_feed(w, &in);
		}
		if (moment >= 5) /* replying, held for the proof of the address, or all said */
			wire_reply(w, call, moment == 5 ? 1 : 60, 1400, moment == 7);
		wire_flush(w);
		struct wire_in end = {.h = {.type = RX_ABORT,
					      .epoch = EPOCH,
					      .cid = cid,
					      .call = ender == 1 ? 0 : 1,
					      .index = in.h.index,
					      .flags = RX_F_CLIENT},
			.body = "\0\0\0\6",
			.len = 4};
		switch (ender) {
		case 0:
		case 1:
			wire_feed(w, &end);
			break;
		case 2:
			if (call)
				rx_call_abort(call, w->now, 7);
			break;
		case 3:
			if (call)
				rx_conn_abort(rx_call_conn(call), w->now, AFS_EPROTOCOL, 8);
			break;
		case 4: /* a packet that makes no sense */
			end.h.type = 12;
			wire_feed(w, &end);
			break;
		case 5:
			rx_endpoint_unreachable(w->ep, w->now, wire_peer, false);
			break;
		}
		wire_pump(w);
		wire_flush(w);
		drop_offered(w);
	}
	expect_empty(w);
	wire_free(w);
}

static uint64_t clock_bits;
static uint32_t counter;
static wall_ns wall_of_bits(void *ctx) { return (void)ctx, (wall_ns)clock_bits; }
static uint32_t next_number(void *ctx) { return (void)ctx, counter += 0x9e3779b9; }

static void epochs_and_connection_ids_owe_nothing_to_the_clock(void **state)
{
	(void)state;
	struct rx_buf_pool *pool = rx_buf_pool_new(1 << 20);
	const struct rx_endpoint_config c = {
		.pool = pool, .random = next_number, .wall = wall_of_bits};
	uint32_t epoch = 0, cid = 0;
	for (int bit = 0; bit < 63; bit++) {
		for (int off = -1; off <= 1; off++) {
			clock_bits = (UINT64_C(1) << bit) + (uint64_t)off;
			counter = 12345;
			struct rx_endpoint *ep = rx_endpoint_new(&c, (mono_ns)clock_bits);
			assert_non_null(ep);
			/* the same random numbers, the same ids, whatever the time */
			if (!epoch) {
				epoch = ep->epoch;
				cid = ep->next_cid;
			}
			assert_int_equal(ep->epoch, epoch);
			assert_int_equal(ep->epoch >> 30, 2);
			assert_int_equal(ep->next_cid, cid);
			assert_int_equal(ep->next_cid & 3, 0);
			/* and ids in a row around the end of their range never repeat */
			ep->next_cid = UINT32_MAX - 7;
			struct rx_conn *conns[4];
			for (int i = 0; i < 4; i++) {
				const struct rx_conn_config cc = {
					.peer = wire_peer, .service = 1, .sec = rx_null_new()};
				conns[i] = rx_conn_new(ep, (mono_ns)clock_bits, &cc);
				assert_non_null(conns[i]);
				assert_int_equal(rx_conn_id(conns[i]).cid,
					(uint32_t)(UINT32_MAX - 7 + 4 * (uint32_t)i));
			}
			for (int i = 0; i < 4; i++)
				rx_conn_unref(conns[i]);
			rx_endpoint_free(ep);
		}
	}
	rx_buf_pool_free(pool);
}

static void ack_from(struct wire *w, struct rx_addr from, enum rx_reason reason, rx_serial serial)
{
	static rx_serial own = 7000;
	uint8_t body[RX_ACK_FIXED + RX_ACK_PAD + RX_ACK_TRAILER] = {[7] = 1};
	put32(body + 12, serial);
	body[RX_ACK_REASON_AT] = (uint8_t)reason;
	put32(body + 21, 1444);
	put32(body + 25, 1444);
	put32(body + 29, 32);
	put32(body + 33, 1);
	const struct wire_in in = {
		.h = {.type = RX_ACK,
			.epoch = EPOCH,
			.cid = CID,
			.call = 1,
			.serial = ++own,
			.flags = RX_F_CLIENT | (reason == RX_ACK_PING ? RX_F_REQUEST_ACK : 0)},
		.body = body,
		.len = sizeof(body),
		.from = from};
	wire_feed(w, &in);
}

static bool anything_to(struct wire *w, struct rx_addr a, rx_serial *ping)
{
	bool any = false;
	while (w->out_count) {
		const struct wire_out *o = wire_take(w);
		if (!rx_addr_same(o->to, a))
			continue;
		any = true;
		assert_int_equal(o->h.type, RX_ACK);
		assert_int_equal(o->body[RX_ACK_REASON_AT], RX_ACK_PING);
		*ping = o->h.serial;
	}
	return any;
}

static void only_who_answers_at_another_address_takes_a_connection_there(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	const struct rx_addr new = {.ip = 0x0a000099, .port = 7001},
			     other = {.ip = 0x0a000098, .port = 7001};
	rx_serial ping = 0, none;
	wire_data(w, 1, 1, LAST, 4);
	struct rx_call *call = w->offered[0];
	struct rx_conn *conn = rx_call_conn(call);
	wire_flush(w);
	/* as long as its own address speaks nothing happens */
	ack_from(w, new, RX_ACK_PING, 0);
	assert_false(anything_to(w, new, &none));
	wire_wait(w, MSEC(1200));
	ack_from(w, wire_peer, RX_ACK_PING, 0);
	ack_from(w, new, RX_ACK_PING, 0);
	assert_false(anything_to(w, new, &none));
	/* then the new one is asked, once a second */
	wire_wait(w, MSEC(1200));
	wire_flush(w);
	ack_from(w, new, RX_ACK_PING, 0);
	assert_true(anything_to(w, new, &ping));
	ack_from(w, new, RX_ACK_PING, 0);
	assert_false(anything_to(w, new, &none));
	/* a guess, or the right answer from somewhere else, changes nothing and proves nothing */
	ack_from(w, new, RX_ACK_PING_RESPONSE, ping + 1);
	ack_from(w, other, RX_ACK_PING_RESPONSE, ping);
	assert_int_equal(rx_conn_peer(conn).ip, wire_peer.ip);
	assert_false(rx_conn_proven(conn));
	wire_flush(w);
	ack_from(w, new, RX_ACK_PING_RESPONSE, ping);
	assert_int_equal(rx_conn_peer(conn).ip, new.ip);
	assert_true(rx_conn_proven(conn));
	assert_int_equal(stats(w).moves, 1);
	assert_int_equal(conn->peer->calls, 1);
	wire_flush(w);
	wire_reply(w, call, 3, 1400, true);
	for (int i = 0; i < 3; i++)
		assert_true(rx_addr_same(wire_take(w)->to, new));
	drop_offered(w);
	expect_empty(w);
	wire_free(w);
}

/* From an address that proved nothing: every type, flag, index and size, with and without a call. */
static void no_type_of_packet_brings_more_than_three_times_its_size_and_200(void **state)
{
	(void)state;
	for (unsigned type = 0; type <= 20; type++) {
		struct wire *w = wire_new(NULL);
		w->secured = true;
		uint64_t in = 0, out = 0;
		for (uint32_t i = 0; i < 512; i++) {
			static const size_t sizes[] = {0, 1, 4, 8, 18, 37, 100, 1416};
			struct wire_in p = {
				.h = {.type = (uint8_t)type,
					.epoch = i % 7 ? EPOCH : 999,
					.cid = i % 7 ? CID | (i & 3) : 0,
					.call = i % 3,
					.seq = type == RX_DATA || i % 5 == 0 ? 1 + i % 4 : 0,
					.serial = 1 + i,
					.index = i % 4 == 1    ? 2
						 : i % 11 == 0 ? 5
							       : 0,
					.flags = (uint8_t)(RX_F_CLIENT | (i & 0x26))},
				.len = sizes[i % ARRAY_SIZE(sizes)]};
			wire_feed(w, &p);
			in += RX_HEADER + p.len;
			while (w->offered_count) { /* the application has a lot to say */
				struct rx_call *call = w->offered[--w->offered_count];
				wire_reply(w, call, 40, 1400, true);
				rx_call_unref(call);
				wire_pump(w);
			}
			if (i % 16 == 15)
				wire_wait(w, SEC(3));
			while (w->out_count)
				out += RX_HEADER + wire_take(w)->len;
			if (out > 3 * in + 200)
				fail_msg("type %u, packet %u: %llu bytes for %llu", type, i,
					(unsigned long long)out, (unsigned long long)in);
		}
		wire_free(w);
	}
}

TEST_MAIN(T(a_flood_of_half_calls_takes_only_places_of_its_own),
	T(calls_that_a_worker_holds_outlast_a_flood),
	T(ports_cost_nothing_so_an_address_has_bounds_too),
	T(many_ports_of_one_address_cannot_fill_the_pool), T(one_address_cannot_fill_the_pool_with_what_nobody_reads),
	T(who_trickles_a_byte_now_and_then_is_timed_out), T(who_is_slow_but_moves_is_not),
	T(time_that_the_application_takes_is_not_held_against_the_peer),
	T(a_hundred_thousand_wrong_responses_leave_nothing_behind),
	T(aborts_at_every_moment_leave_nothing_behind),
	T(epochs_and_connection_ids_owe_nothing_to_the_clock),
	T(only_who_answers_at_another_address_takes_a_connection_there),
	T(no_type_of_packet_brings_more_than_three_times_its_size_and_200))
