/* SPDX-License-Identifier: BSD-2-Clause
 * The client's side of rx.md, and what both sides do as senders. */
#include "tests/unit/core/wire.h"

#include <string.h>

enum { LAST = RX_F_LAST, ASK = RX_F_REQUEST_ACK, CLIENT = RX_F_CLIENT };

struct client {
	struct wire *w;
	struct rx_conn *conn;
	struct rx_call *call;
	struct wire_out first; /* the request's first packet */
};

/* A request of `packets` packets; the first has left, and so have the others within the window. */
static struct client start(bool secured, unsigned packets, uint32_t len)
{
	struct client c = {.w = wire_new(NULL)};
	c.conn = wire_connect(c.w, secured, 0, 0);
	c.call = rx_call_new(c.conn, c.w->now);
	wire_reply(c.w, c.call, packets, len, true);
	c.first = *wire_take_type(c.w, RX_DATA);
	return c;
}

static void finish(struct client *c)
{
	rx_call_unref(c->call);
	rx_conn_unref(c->conn);
	wire_free(c->w);
}

static void feed(struct client *c, enum rx_type type, uint32_t call, rx_seq seq, unsigned flags,
	const void *body, size_t len)
{
	struct wire_in in = {.h = {.type = (uint8_t)type,
				     .epoch = c->first.h.epoch,
				     .cid = c->first.h.cid,
				     .call = call,
				     .seq = seq,
				     .index = c->first.h.index,
				     .flags = (uint8_t)flags},
		.body = body,
		.len = len};
	wire_feed(c->w, &in);
}

static void ack(struct client *c, rx_serial serial, const struct wire_ack *a)
{
	wire_ack(c->w, c->first.h.epoch, c->first.h.cid, c->first.h.call, 0, serial, a);
}

static void read_all(struct client *c)
{
	uint32_t n = 0;
	for (struct rx_packet *p = rx_call_receive(c->call, c->w->now), *next; p; p = next, n++) {
		next = p->next;
		rx_packet_free(p);
	}
	rx_call_consumed(c->call, c->w->now, n);
}

/* --- the call ------------------------------------------------------------------------------ */

static void the_first_packet_of_a_call_is_what_the_protocol_shows(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	const struct rx_header *h = &c.first.h;
	assert_int_equal(h->epoch >> 30, 2); /* bit 31 set, bit 30 clear */
	assert_int_equal(h->cid & 3, 0);
	assert_int_equal(h->call, 1);
	assert_int_equal(h->seq, 1);
	assert_int_equal(h->serial, 1);
	assert_int_equal(
		h->flags, CLIENT | LAST | ASK); /* asks: this peer's round trip is not known */
	assert_int_equal(h->user_status, 0);
	assert_int_equal(h->cksum, 0);
	assert_int_equal(h->service, WIRE_SERVICE);
	finish(&c);
}

static void connections_differ_by_four_and_calls_count_up_per_channel(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	struct rx_conn *second = wire_connect(c.w, false, 0, 0);
	assert_int_equal(rx_conn_id(second).cid - rx_conn_id(c.conn).cid, 4);
	struct rx_call *calls[3];
	for (int i = 0; i < 3; i++) {
		calls[i] = rx_call_new(c.conn, c.w->now);
		wire_reply(c.w, calls[i], 1, 4, true);
		const struct wire_out *o = wire_take_type(c.w, RX_DATA);
		assert_int_equal(o->h.cid & 3, i + 1);
		assert_int_equal(o->h.call, 1);
	}
	assert_null(rx_call_new(c.conn, c.w->now)); /* four at once, no more */
	feed(&c, RX_DATA, 1, 1, LAST, "abcd", 4);
	read_all(&c);
	rx_call_done(c.call, c.w->now);
	rx_call_unref(c.call);
	wire_pump(c.w);
	wire_take_type(c.w, RX_ACK);
	c.call = rx_call_new(c.conn, c.w->now);
	wire_reply(c.w, c.call, 1, 4, true);
	const struct wire_out *o = wire_take_type(c.w, RX_DATA);
	assert_int_equal(o->h.cid & 3, 0);
	assert_int_equal(o->h.call, 2);
	for (int i = 0; i < 3; i++)
		rx_call_unref(calls[i]);
	rx_conn_unref(second);
	finish(&c);
}

static void an_epoch_is_random_with_bit_31_set_and_bit_30_clear(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	uint32_t all = UINT32_MAX, any = 0;
	for (int i = 0; i < 200; i++) {
		struct rx_endpoint *ep = rx_endpoint_new(&c.w->ep->config, c.w->now);
		all &= ep->epoch;
		any |= ep->epoch;
		assert_int_equal(ep->next_cid & 3, 0);
		rx_endpoint_free(ep);
	}
	assert_int_equal(all, 0x80000000);
	assert_int_equal(any, 0xbfffffff);
	finish(&c);
}

static void no_serial_is_zero_even_after_four_billion(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	c.conn->serial = UINT32_MAX - 1;
	for (uint32_t want = UINT32_MAX; want != 4; want = want == UINT32_MAX ? 1 : want + 1) {
		struct wire_ack a = {.first = 1, .reason = RX_ACK_PING};
		wire_ack(c.w, c.first.h.epoch, c.first.h.cid, 1, ASK, 0, &a);
		assert_int_equal(wire_take_type(c.w, RX_ACK)->h.serial, want);
		wire_flush(c.w);
	}
	finish(&c);
}

static void a_reply_is_taken_whatever_service_and_status_it_carries(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	struct wire_in in = {.h = {.type = RX_DATA, .epoch = c.first.h.epoch, .cid = c.first.h.cid,
				     .call = 1, .seq = 1, .flags = LAST, .service = 2503, .user_status = 200},
		.len = 4};
	wire_feed(c.w, &in);
	read_all(&c);
	assert_true(rx_call_received_all(c.call));
	finish(&c);
}

static void the_end_of_a_call_is_acknowledged_at_once_with_reason_delay(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	feed(&c, RX_DATA, 1, 1, 0, NULL, 1416);
	feed(&c, RX_DATA, 1, 2, LAST, "abcd", 4);
	wire_flush(c.w);
	read_all(&c);
	wire_pump(c.w);
	wire_quiet(c.w);
	assert_true(rx_call_received_all(c.call));
	rx_call_done(c.call, c.w->now);
	wire_pump(c.w);
	const struct wire_out *o = wire_take_type(c.w, RX_ACK);
	assert_hex(o->body, o->len,
		"00000000 00000003 00000002 00000000 08 00 000000 00003ff8 00003ff8 000000ff "
		"00000001");
	assert_int_equal(o->h.flags, CLIENT | RX_F_SLOW_START_OK);
	finish(&c);
}

static void a_reply_that_comes_again_after_the_call_is_acknowledged_again(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	feed(&c, RX_DATA, 1, 1, LAST, "abcd", 4);
	read_all(&c);
	rx_call_done(c.call, c.w->now);
	rx_call_unref(c.call);
	c.call = NULL;
	rx_conn_unref(c.conn); /* even the connection may be let go */
	c.conn = NULL;
	wire_pump(c.w);
	wire_flush(c.w);
	feed(&c, RX_DATA, 1, 1, LAST | ASK, "abcd", 4);
	struct rx_ack a;
	wire_parse(wire_take_type(c.w, RX_ACK), &a);
	assert_int_equal(a.first, 2);
	assert_int_equal(a.reason, RX_ACK_DUPLICATE);
	wire_wait(c.w, SEC(5));
	assert_int_equal(c.w->ep->conn_count, 0);
	wire_free(c.w);
}

static void a_complete_reply_that_nobody_reads_is_acknowledged_after_400_ms(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	feed(&c, RX_DATA, 1, 1, LAST, "abcd", 4);
	mono_ns start_at = c.w->now;
	wire_wait(c.w, SEC(1));
	const struct wire_out *o = wire_take_type(c.w, RX_ACK);
	assert_int_equal(o->at - start_at, MSEC(400));
	finish(&c);
}

static void the_first_reply_packet_acknowledges_the_whole_request(void **state)
{
	(void)state;
	struct client c = start(false, 5, 1416);
	feed(&c, RX_DATA, 1, 1, 0, "abcd", 4);
	wire_flush(c.w);
	wire_wait(c.w, SEC(5));
	while (c.w->out_count)
		assert_int_equal(wire_take(c.w)->h.type, RX_ACK); /* nothing is sent again */
	finish(&c);
}

static void packets_of_another_call_number_are_ignored(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	feed(&c, RX_DATA, 2, 1, LAST | ASK, "abcd", 4);
	feed(&c, RX_ABORT, 2, 0, 0, "\0\0\0\1", 4);
	wire_quiet(c.w);
	assert_int_equal(c.w->ended, 0);
	finish(&c);
}

static void an_abort_ends_the_call_with_its_code_and_leaves_the_connection(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	feed(&c, RX_ABORT, 1, 0, 0, "\0\0\0\x6e", 4);
	assert_int_equal(c.w->last_err, AFS_EABORTED);
	assert_int_equal(c.w->last_code, 110);
	wire_quiet(c.w);
	rx_call_unref(c.call);
	c.call = rx_call_new(c.conn, c.w->now);
	assert_non_null(c.call);
	wire_quiet(c.w); /* and nothing is sent before its first DATA */
	finish(&c);
}

static void a_raw_abort_with_the_service_in_the_wrong_half_is_understood(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	struct wire_in in = {.h = {.type = RX_ABORT,
				     .epoch = c.first.h.epoch,
				     .cid = c.first.h.cid,
				     .call = 1,
				     .cksum = 0x03e7,
				     .service = 1},
		.body = "\xff\xff\xff\xfe",
		.len = 4};
	wire_feed(c.w, &in);
	assert_int_equal(c.w->last_err, AFS_EABORTED);
	assert_int_equal(c.w->last_code, RX_INVALID_OPERATION);
	finish(&c);
}

static void an_abort_of_the_connection_ends_all_its_calls_for_good(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	struct rx_call *other = rx_call_new(c.conn, c.w->now);
	wire_reply(c.w, other, 1, 4, true);
	wire_flush(c.w);
	feed(&c, RX_ABORT, 0, 0, 0, "\x01\x26\x0b\x0a", 4);
	assert_int_equal(c.w->ended, 2);
	int32_t code;
	assert_err(rx_conn_error(c.conn, &code), AFS_EABORTED);
	assert_int_equal(code, 0x01260b0a);
	assert_null(rx_call_new(c.conn, c.w->now));
	rx_call_unref(other);
	finish(&c);
}

static void busy_keeps_a_call_alive_and_its_channel_is_chosen_last(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	for (int i = 0; i < 20; i++) {
		feed(&c, RX_BUSY, 1, 0, 0, NULL, 0);
		wire_wait(c.w, SEC(1));
		wire_flush(c.w);
	}
	assert_int_equal(c.w->ended, 0);
	rx_call_unref(c.call);
	wire_pump(c.w);
	wire_flush(c.w);
	c.call = rx_call_new(c.conn, c.w->now);
	wire_reply(c.w, c.call, 1, 4, true);
	assert_int_equal(wire_take_type(c.w, RX_DATA)->h.cid & 3, 1);
	finish(&c);
}

static void a_cancelled_call_tells_the_server_and_repeats_it_when_it_goes_on(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	rx_call_abort(c.call, c.w->now, RX_USER_ABORT);
	wire_pump(c.w);
	const struct wire_out *o = wire_take_type(c.w, RX_ABORT);
	assert_int_equal(o->h.flags, CLIENT);
	assert_int_equal(o->h.call, 1);
	assert_hex(o->body, o->len, "fffffffa");
	feed(&c, RX_DATA, 1, 1, 0, "abcd", 4);
	wire_take_type(c.w, RX_ABORT);
	assert_int_equal(c.w->ended, 0);
	finish(&c);
}

static void a_call_cancelled_before_its_first_packet_never_was(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_conn *conn = wire_connect(w, false, 0, 0);
	struct rx_call *call = rx_call_new(conn, w->now);
	wire_wait(w, SEC(30)); /* nor is it pinged, nor does it die of silence */
	assert_int_equal(w->ended, 0);
	rx_call_unref(call);
	wire_pump(w);
	wire_quiet(w);
	call = rx_call_new(conn, w->now);
	wire_reply(w, call, 1, 4, true);
	assert_int_equal(wire_take_type(w, RX_DATA)->h.call, 1);
	rx_call_unref(call);
	rx_conn_unref(conn);
	wire_free(w);
}

/* --- the handshake ------------------------------------------------------------------------- */

static void a_challenge_is_answered_with_the_numbers_of_the_calls_under_way(void **state)
{
	(void)state;
	struct client c = start(true, 1, 20);
	assert_int_equal(c.first.h.index, 2);
	feed(&c, RX_CHALLENGE, 0, 0, 0, "0123456789abcdef", 16);
	const struct wire_out *o = wire_take_type(c.w, RX_RESPONSE);
	assert_int_equal(o->h.call, 0);
	assert_int_equal(o->h.cid, c.first.h.cid);
	assert_int_equal(o->h.flags, CLIENT);
	assert_memory_equal(o->body, "0123456789abcdef", 16);
	assert_hex(o->body + 16, 16, "00000001 00000000 00000000 00000000");
	feed(&c, RX_CHALLENGE, 0, 0, 0, "0123456789abcdef", 16);
	wire_take_type(c.w, RX_RESPONSE); /* each time */
	finish(&c);
}

static void a_challenge_without_a_call_is_ignored(void **state)
{
	(void)state;
	struct client c = start(true, 1, 20);
	feed(&c, RX_DATA, 1, 1, LAST, NULL, 20);
	read_all(&c);
	rx_call_done(c.call, c.w->now);
	wire_pump(c.w);
	wire_flush(c.w);
	feed(&c, RX_CHALLENGE, 0, 0, 0, "0123456789abcdef", 16);
	wire_quiet(c.w);
	finish(&c);
}

static void a_challenge_that_makes_no_sense_ends_the_connection(void **state)
{
	(void)state;
	struct client c = start(true, 1, 20);
	feed(&c, RX_CHALLENGE, 0, 0, 0, "short", 5);
	wire_wait(c.w, 1);
	const struct wire_out *o = wire_take_type(c.w, RX_ABORT);
	assert_int_equal(o->h.call, 0);
	assert_int_equal((int32_t)get32(o->body), rx_sec_code(AFS_EPACKETSHORT));
	assert_int_equal(c.w->ended, 1);
	assert_int_equal(c.w->last_err, AFS_EPACKETSHORT);
	finish(&c);
}

/* --- sending ------------------------------------------------------------------------------- */

static void nothing_above_1444_octets_is_sent_before_the_peer_names_a_size(void **state)
{
	(void)state;
	struct wire_config wc = {.loopback_big = true};
	struct wire *w = wire_new(&wc);
	struct rx_conn_config cc = {.peer = {.ip = 0x7f000001, .port = 7000},
		.service = WIRE_SERVICE,
		.sec = rx_null_new()};
	struct rx_conn *conn = rx_conn_new(w->ep, w->now, &cc);
	struct rx_call *call = rx_call_new(conn, w->now);
	assert_int_equal(rx_call_body_max(call), 1416);
	wire_reply(w, call, 1, 4, false);
	const struct wire_out *o = wire_take_type(w, RX_DATA);
	struct wire_ack a = {
		.first = 1, .list = "+", .reason = RX_ACK_REQUESTED, .serial = 1, .max_mtu = 65000};
	wire_ack(w, o->h.epoch, o->h.cid, 1, 0, 0, &a);
	assert_int_equal(rx_call_body_max(call), RX_BIG_DATAGRAM - RX_HEADER);
	a.max_mtu = 5692;
	wire_ack(w, o->h.epoch, o->h.cid, 1, 0, 0, &a);
	assert_int_equal(rx_call_body_max(call), 5692 - RX_HEADER);
	a.max_mtu = 1; /* SA-2017-001 */
	wire_ack(w, o->h.epoch, o->h.cid, 1, 0, 0, &a);
	assert_int_equal(rx_call_body_max(call), 576 - 28 - RX_HEADER);
	a.no_trailer = true;
	wire_ack(w, o->h.epoch, o->h.cid, 1, 0, 0, &a);
	assert_int_equal(rx_call_body_max(call), 1416);
	rx_endpoint_unreachable(w->ep, w->now, cc.peer, true);
	a.no_trailer = false;
	a.max_mtu = 65000;
	wire_ack(w, o->h.epoch, o->h.cid, 1, 0, 0, &a);
	assert_int_equal(rx_call_body_max(call), 1416); /* the network has said no */
	rx_call_unref(call);
	rx_conn_unref(conn);
	wire_free(w);
}

/* A bulk sender whose peer has acknowledged the first 16 packets and offers `max_mtu`; what it sends
 * next has been noted. */
static struct client bulk(uint32_t max_mtu)
{
	struct client c = start(false, 40, 1416);
	c.w->now += MSEC(10);
	struct wire_ack a = {
		.first = 17, .reason = RX_ACK_REQUESTED, .serial = 16, .max_mtu = max_mtu, .window = 20};
	wire_flush(c.w);
	ack(&c, 0, &a);
	return c;
}

static void elsewhere_1444_octets_are_kept_until_a_probe_proves_more(void **state)
{
	(void)state;
	struct client c = bulk(9000);
	const struct wire_out *o = wire_take_type(c.w, RX_ACK);
	assert_int_equal(RX_HEADER + o->len, 9000);
	assert_int_equal(o->h.flags, CLIENT | ASK | RX_F_SLOW_START_OK);
	assert_int_equal(o->body[16], RX_ACK_PING);
	assert_int_equal(get32(o->body + 12), 0);
	for (size_t i = RX_ACK_FIXED + RX_ACK_PAD + RX_ACK_TRAILER; i < o->len; i++)
		assert_int_equal(o->body[i], 0);
	rx_serial probe = o->h.serial;
	assert_int_equal(rx_call_body_max(c.call), 1416);
	/* neither the answer to something else nor another ACK with its serial proves anything */
	struct wire_ack a = {.first = 17, .reason = RX_ACK_PING_RESPONSE, .serial = probe + 1,
		.max_mtu = 9000, .window = 20};
	ack(&c, 0, &a);
	a.serial = probe;
	a.reason = RX_ACK_REQUESTED;
	ack(&c, 0, &a);
	assert_int_equal(rx_call_body_max(c.call), 1416);
	a.reason = RX_ACK_PING_RESPONSE;
	ack(&c, 0, &a);
	assert_int_equal(rx_call_body_max(c.call), 9000 - RX_HEADER);
	a.max_mtu = 5692; /* and its word still counts */
	ack(&c, 0, &a);
	assert_int_equal(rx_call_body_max(c.call), 5692 - RX_HEADER);
	finish(&c);
}

static void who_takes_no_more_than_1444_octets_is_not_probed(void **state)
{
	(void)state;
	struct client c = bulk(1444);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wire_take_type(c.w, RX_DATA)->h.seq, 17 + i);
	finish(&c);
}

static void no_more_than_the_peers_window_is_sent(void **state)
{
	(void)state;
	struct client c = start(false, 30, 100);
	unsigned n = 1;
	while (c.w->out_count) {
		wire_take_type(c.w, RX_DATA);
		n++;
	}
	assert_int_equal(n, 16);
	struct wire_ack a = {.first = 1,
		.list = "++++++++++++++++",
		.reason = RX_ACK_IDLE,
		.serial = 16,
		.window = 20};
	ack(&c, 0, &a);
	for (n = 0; c.w->out_count; n++)
		wire_take_type(c.w, RX_DATA);
	assert_int_equal(n, 4);
	a = (struct wire_ack){.first = 1,
		.list = "++++++++++++++++++++",
		.reason = RX_ACK_IDLE,
		.serial = 20,
		.window = 0x10000};
	ack(&c, 0, &a); /* far beyond any window: read as the most there is */
	for (n = 0; c.w->out_count; n++)
		wire_take_type(c.w, RX_DATA);
	assert_int_equal(n, 10);
	finish(&c);
}

static void a_packet_sent_again_has_a_new_serial_the_same_sequence_and_asks(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	wire_wait(c.w, SEC(4));
	rx_serial serial = c.first.h.serial;
	mono_ns at = c.first.at;
	int64_t gap = 0;
	int n = 0;
	while (c.w->out_count) {
		const struct wire_out *o = wire_take(c.w);
		assert_true(o->h.serial > serial);
		serial = o->h.serial;
		if (o->h.type != RX_DATA)
			continue;
		assert_int_equal(o->h.seq, 1);
		assert_int_equal(o->h.flags, CLIENT | LAST | ASK);
		assert_true(o->at - at > gap); /* further and further apart */
		gap = o->at - at;
		at = o->at;
		n++;
	}
	assert_int_equal(n, 2); /* after 1 and 3 s: no sample yet */
	finish(&c);
}

static void pings_of_the_peer_do_not_put_off_what_must_be_sent_again(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	int n = 0;
	for (int i = 0; i < 100; i++) { /* one more often than any timeout */
		wire_wait(c.w, MSEC(100));
		struct wire_ack ping = {.first = 1, .reason = RX_ACK_PING};
		wire_ack(c.w, c.first.h.epoch, c.first.h.cid, 1, ASK, 0, &ping);
		while (c.w->out_count)
			n += wire_take(c.w)->h.type == RX_DATA;
	}
	assert_true(n >= 3);
	assert_int_equal(c.w->ended, 0);
	finish(&c);
}

static void a_lost_packet_is_sent_again_when_three_later_ones_have_arrived(void **state)
{
	(void)state;
	struct client c = start(false, 6, 100);
	wire_flush(c.w);
	struct wire_ack a = {
		.first = 2, .list = "-+++", .reason = RX_ACK_OUT_OF_SEQUENCE, .serial = 5};
	c.w->now += MSEC(1);
	ack(&c, 0, &a);
	const struct wire_out *o = wire_take_type(c.w, RX_DATA);
	assert_int_equal(o->h.seq, 2);
	assert_true(o->h.flags & ASK);
	wire_quiet(c.w);
	finish(&c);
}

static void a_soft_ack_that_is_taken_back_makes_the_packet_go_out_again(void **state)
{
	(void)state;
	struct client c = start(false, 3, 100);
	wire_flush(c.w);
	struct wire_ack a = {.first = 1, .list = "+++", .reason = RX_ACK_IDLE, .serial = 3};
	ack(&c, 0, &a);
	wire_quiet(c.w);
	a.list = "+-+";
	ack(&c, 0, &a);
	assert_int_equal(wire_take_type(c.w, RX_DATA)->h.seq, 2);
	wire_quiet(c.w);
	finish(&c);
}

static void an_overtaken_ack_changes_nothing(void **state)
{
	(void)state;
	struct client c = start(false, 3, 100);
	wire_flush(c.w);
	struct wire_ack now = {
		.first = 1, .list = "+++", .reason = RX_ACK_IDLE, .serial = 3, .window = 200};
	struct wire_ack old = {.first = 1,
		.list = "+-+",
		.reason = RX_ACK_OUT_OF_SEQUENCE,
		.serial = 3,
		.window = 2};
	ack(&c, 900000, &now);
	ack(&c, 899999, &old);
	wire_quiet(c.w);
	assert_int_equal(c.call->window, 200);
	/* but a ping in it is answered */
	wire_ack(c.w, c.first.h.epoch, c.first.h.cid, 1, ASK, 899998, &old);
	wire_take_type(c.w, RX_ACK);
	finish(&c);
}

static void an_ack_for_what_was_never_sent_is_ignored(void **state)
{
	(void)state;
	struct client c = start(false, 3, 100);
	wire_flush(c.w);
	struct wire_ack a = {.first = 5, .reason = RX_ACK_DELAY};
	ack(&c, 0, &a);
	a.first = 0;
	ack(&c, 0, &a);
	a.first = 0xffffffff;
	ack(&c, 0, &a);
	assert_int_equal(c.call->out_una, 1);
	a = (struct wire_ack){.first = 1, .list = "++++++++++++", .reason = RX_ACK_DELAY};
	ack(&c, 0, &a); /* a list longer than what was sent */
	assert_int_equal(c.call->out_soft, 4);
	finish(&c);
}

static void an_ack_list_is_cut_to_the_octets_that_are_there(void **state)
{
	(void)state;
	struct client c = start(false, 3, 100);
	uint8_t body[20] = {[7] = 1, [16] = RX_ACK_IDLE, [17] = 255, [18] = 1, [19] = 1};
	feed(&c, RX_ACK, 1, 0, 0, body, sizeof(body));
	assert_int_equal(c.call->out_soft, 3);
	feed(&c, RX_ACK, 1, 0, 0, body, 17); /* too short to be one */
	struct rx_stats st;
	rx_endpoint_stats(c.w->ep, &st);
	assert_int_equal(st.malformed, 1);
	finish(&c);
}

static void a_window_that_stays_closed_is_asked_about(void **state)
{
	(void)state;
	struct client c = start(false, 30, 100);
	wire_flush(c.w);
	struct wire_ack a = {.first = 1,
		.list = "++++++++++++++++",
		.reason = RX_ACK_IDLE,
		.serial = 16,
		.window = 16};
	ack(&c, 0, &a);
	wire_quiet(c.w);
	wire_wait(c.w, MSEC(300));
	const struct wire_out *o = wire_take_type(c.w, RX_ACK);
	struct rx_ack got;
	wire_parse(o, &got);
	assert_int_equal(got.reason, RX_ACK_PING);
	assert_int_equal(got.serial, 0);
	finish(&c);
}

/* --- time ---------------------------------------------------------------------------------- */

static void a_server_that_says_nothing_is_dead_after_twelve_seconds(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	wire_wait(c.w, SEC(11));
	assert_int_equal(c.w->ended, 0);
	wire_wait(c.w, SEC(2));
	assert_int_equal(c.w->ended, 1);
	assert_int_equal(c.w->last_err, AFS_EDEAD);
	finish(&c);
}

static void a_waiting_client_pings_every_two_seconds_and_lives_by_the_answers(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	struct wire_ack a = {.first = 2, .reason = RX_ACK_DELAY};
	ack(&c, 0, &a);
	for (int i = 0; i < 20; i++) {
		mono_ns before = c.w->now;
		wire_wait(c.w, SEC(2));
		const struct wire_out *o = wire_take_type(c.w, RX_ACK);
		struct rx_ack got;
		wire_parse(o, &got);
		assert_int_equal(got.reason, RX_ACK_PING);
		assert_int_equal(o->h.flags, CLIENT | ASK | RX_F_SLOW_START_OK);
		assert_int_equal(o->at - before, SEC(2));
		wire_quiet(c.w);
		struct wire_ack pong = {
			.first = 2, .reason = RX_ACK_PING_RESPONSE, .serial = o->h.serial};
		ack(&c, 0, &pong);
	}
	assert_int_equal(c.w->ended, 0);
	finish(&c);
}

static void an_idle_limit_ends_a_call_that_lives_but_gets_nowhere(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct client c = {.w = w, .conn = wire_connect(w, false, SEC(30), 0)};
	c.call = rx_call_new(c.conn, w->now);
	wire_reply(w, c.call, 1, 4, true);
	c.first = *wire_take(w);
	for (int i = 0; i < 40; i++) {
		wire_wait(w, SEC(1));
		struct wire_ack pong = {.first = 2, .reason = RX_ACK_PING_RESPONSE};
		if (!w->ended)
			ack(&c, 0, &pong);
		assert_int_equal(w->ended, i >= 30);
	}
	assert_int_equal(w->last_err, AFS_ETIMEDOUT);
	finish(&c);
}

static void a_hard_limit_ends_a_call_whatever_happens(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct client c = {.w = w, .conn = wire_connect(w, false, 0, SEC(20))};
	c.call = rx_call_new(c.conn, w->now);
	wire_reply(w, c.call, 1, 4, true);
	c.first = *wire_take(w);
	for (int i = 1; i < 22; i++) {
		wire_wait(w, SEC(1));
		feed(&c, RX_DATA, 1, (rx_seq)i, 0, "abcd", 4);
		read_all(&c);
		assert_int_equal(w->ended, i >= 20);
	}
	assert_int_equal(w->last_err, AFS_ETIMEDOUT);
	const struct wire_out *o;
	do
		o = wire_take(w);
	while (o->h.type != RX_ABORT);
	assert_int_equal((int32_t)get32(o->body), RX_CALL_TIMEOUT);
	finish(&c);
}

static void an_unreachable_peer_ends_its_calls_at_once(void **state)
{
	(void)state;
	struct client c = start(false, 1, 4);
	rx_endpoint_unreachable(c.w->ep, c.w->now, wire_peer, false);
	wire_pump(c.w);
	assert_int_equal(c.w->ended, 1);
	assert_int_equal(c.w->last_err, AFS_EDEAD);
	finish(&c);
}

static void a_token_that_runs_out_ends_the_connection_when_it_is_next_used(void **state)
{
	(void)state;
	struct client c = start(true, 1, 20);
	c.conn->expires = c.w->now + SEC(5);
	wire_wait(c.w, SEC(6));
	wire_flush(c.w);
	feed(&c, RX_DATA, 1, 1, LAST, NULL, 20);
	const struct wire_out *o = wire_take_type(c.w, RX_ABORT);
	assert_int_equal((int32_t)get32(o->body), rx_sec_code(AFS_EEXPIRED));
	assert_int_equal(c.w->last_err, AFS_EEXPIRED);
	finish(&c);
}

static void out_of_memory_at_any_step_leaves_the_endpoint_whole(void **state)
{
	(void)state;
	for (long n = 0; n < 40; n++) {
		struct wire *w = wire_new(NULL);
		mem_fail_after(n);
		struct rx_conn *conn = wire_connect(w, false, 0, 0);
		struct rx_call *call = conn ? rx_call_new(conn, w->now) : NULL;
		if (call) {
			for (int i = 0; i < 3; i++) {
				struct rx_buf *b = rx_buf_get(w->pool, 1444);
				if (!b)
					continue;
				struct rx_packet *p = rx_packet_new(b);
				p->off = RX_HEADER;
				p->len = 1416;
				for (unsigned k = 0; k < 1; k++)
					rx_call_send(call, w->now, p);
			}
			wire_pump(w);
		}
		mem_fail_after(-1);
		rx_call_unref(call);
		rx_conn_unref(conn);
		wire_free(w);
	}
}

TEST_MAIN(T(the_first_packet_of_a_call_is_what_the_protocol_shows),
	T(connections_differ_by_four_and_calls_count_up_per_channel),
	T(an_epoch_is_random_with_bit_31_set_and_bit_30_clear), T(no_serial_is_zero_even_after_four_billion), T(a_reply_is_taken_whatever_service_and_status_it_carries),
	T(the_end_of_a_call_is_acknowledged_at_once_with_reason_delay),
	T(a_reply_that_comes_again_after_the_call_is_acknowledged_again),
	T(a_complete_reply_that_nobody_reads_is_acknowledged_after_400_ms),
	T(the_first_reply_packet_acknowledges_the_whole_request),
	T(packets_of_another_call_number_are_ignored),
	T(an_abort_ends_the_call_with_its_code_and_leaves_the_connection),
	T(a_raw_abort_with_the_service_in_the_wrong_half_is_understood),
	T(an_abort_of_the_connection_ends_all_its_calls_for_good),
	T(busy_keeps_a_call_alive_and_its_channel_is_chosen_last),
	T(a_cancelled_call_tells_the_server_and_repeats_it_when_it_goes_on),
	T(a_call_cancelled_before_its_first_packet_never_was),
	T(a_challenge_is_answered_with_the_numbers_of_the_calls_under_way),
	T(a_challenge_without_a_call_is_ignored),
	T(a_challenge_that_makes_no_sense_ends_the_connection),
	T(nothing_above_1444_octets_is_sent_before_the_peer_names_a_size),
	T(elsewhere_1444_octets_are_kept_until_a_probe_proves_more), T(who_takes_no_more_than_1444_octets_is_not_probed),
	T(no_more_than_the_peers_window_is_sent),
	T(a_packet_sent_again_has_a_new_serial_the_same_sequence_and_asks),
	T(pings_of_the_peer_do_not_put_off_what_must_be_sent_again),
	T(a_lost_packet_is_sent_again_when_three_later_ones_have_arrived),
	T(a_soft_ack_that_is_taken_back_makes_the_packet_go_out_again),
	T(an_overtaken_ack_changes_nothing), T(an_ack_for_what_was_never_sent_is_ignored),
	T(an_ack_list_is_cut_to_the_octets_that_are_there),
	T(a_window_that_stays_closed_is_asked_about),
	T(a_server_that_says_nothing_is_dead_after_twelve_seconds),
	T(a_waiting_client_pings_every_two_seconds_and_lives_by_the_answers),
	T(an_idle_limit_ends_a_call_that_lives_but_gets_nowhere),
	T(a_hard_limit_ends_a_call_whatever_happens), T(an_unreachable_peer_ends_its_calls_at_once),
	T(a_token_that_runs_out_ends_the_connection_when_it_is_next_used),
	T(out_of_memory_at_any_step_leaves_the_endpoint_whole))
