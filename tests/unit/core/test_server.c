/* SPDX-License-Identifier: BSD-2-Clause
 * The server's side of rx.md, rule by rule. */
#include "tests/unit/core/wire.h"

#include <string.h>

enum { LAST = RX_F_LAST, ASK = RX_F_REQUEST_ACK };
enum { EPOCH = 0x9a0b0c0d, CID = 0x12345670 };

static struct rx_call *begin(struct wire *w, uint32_t number)
{
	unsigned n = w->offered_count;
	wire_data(w, number, 1, LAST, 4);
	assert_int_equal(w->offered_count, n + 1);
	return w->offered[n];
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

/* --- §1 ------------------------------------------------------------------------------------ */

static void an_unknown_service_is_answered_with_a_raw_abort_made_from_the_header(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_in in = {.h = {.type = RX_DATA, .call = 1, .seq = 1, .service = 999}, .len = 4};
	wire_feed(w, &in);
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	uint8_t bytes[RX_HEADER];
	rx_header_put(bytes, &o->h);
	assert_hex(
		bytes, RX_HEADER, "9a0b0c0d 12345670 00000001 00000000 00000000 04000000 000003e7");
	assert_hex(o->body, o->len, "fffffffe");
	wire_free(w);
}

static void an_index_that_is_not_offered_gets_the_same(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_in in = {.h = {.type = RX_ACK, .call = 7, .index = 4, .cid = 2}, .len = 40};
	wire_feed(w, &in);
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_int_equal(o->h.call, 7);
	assert_int_equal(o->h.cid, CID | 2);
	assert_int_equal(o->h.index, 4);
	assert_int_equal(o->h.serial, 0);
	wire_free(w);
}

static void an_abort_is_never_answered(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_in in = {.h = {.type = RX_ABORT, .call = 1, .service = 999}, .len = 4};
	wire_feed(w, &in);
	in.h.service = WIRE_SERVICE;
	wire_feed(w, &in);
	in.h.call = 0;
	wire_feed(w, &in);
	wire_quiet(w);
	wire_free(w);
}

static void replies_to_clients_that_are_none_are_ignored(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_in in = {
		.h = {.type = RX_DATA, .epoch = EPOCH, .cid = CID, .call = 1, .seq = 1}, .len = 4};
	wire_feed(w, &in);
	wire_quiet(w);
	wire_free(w);
}

static void a_packet_with_another_index_than_its_connection_is_dropped(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	w->secured = true;
	begin(w, 1);
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 2, .seq = 1, .index = 2, .flags = LAST}, .len = 4};
	wire_feed(w, &in);
	wire_quiet(w);
	assert_int_equal(w->offered_count, 1);
	wire_free(w);
}

static void the_service_counts_only_when_a_connection_is_made(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 1, .cid = 1, .seq = 1, .service = 99, .flags = LAST},
		.len = 4};
	wire_feed(w, &in);
	assert_int_equal(w->offered_count, 2);
	wire_free(w);
}

static void with_epoch_bit_31_another_port_is_the_same_client_answered_where_it_first_was(
	void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 1, .cid = 1, .seq = 1, .flags = LAST | ASK},
		.len = 4,
		.from = {.ip = 0x0a000003, .port = 9999}};
	wire_feed(w, &in);
	assert_int_equal(w->offered_count, 2);
	assert_ptr_equal(rx_call_conn(w->offered[0]), rx_call_conn(w->offered[1]));
	assert_int_equal(wire_take_type(w, RX_ACK)->to.port, wire_peer.port);
	wire_free(w);
}

static void without_epoch_bit_31_another_port_is_another_connection(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_in in = {.h = {.type = RX_DATA,
				     .epoch = 0x1a0b0c0d,
				     .cid = CID,
				     .call = 1,
				     .seq = 1,
				     .flags = LAST | RX_F_CLIENT},
		.len = 4};
	wire_feed(w, &in);
	in.from = (struct rx_addr){.ip = wire_peer.ip, .port = 9999};
	wire_feed(w, &in);
	assert_int_equal(w->offered_count, 2);
	assert_ptr_not_equal(rx_call_conn(w->offered[0]), rx_call_conn(w->offered[1]));
	wire_free(w);
}

static void serials_of_a_server_begin_at_random_and_never_repeat(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	wire_reply(w, call, 1, 10, true);
	rx_serial first = wire_take_type(w, RX_DATA)->h.serial;
	assert_true(first > 1000 && first < 1u << 28);
	wire_wait(w, SEC(8));
	rx_serial last = first;
	while (w->out_count) {
		rx_serial next = wire_take(w)->h.serial;
		assert_true(next > last);
		last = next;
	}
	assert_true(last > first);
	wire_free(w);
}

/* --- §2 ------------------------------------------------------------------------------------ */

static void data_for_call_zero_is_a_protocol_error_that_sticks_to_the_connection(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	struct wire_in in = {.h = {.type = RX_DATA, .seq = 1}, .len = 4};
	wire_feed(w, &in);
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_int_equal(o->h.call, 0);
	assert_int_equal(o->h.cid, CID);
	assert_hex(o->body, o->len, "fffffffb");
	assert_int_equal(w->ended, 1);
	wire_data(w, 2, 1, LAST, 4);
	o = wire_take_type(w, RX_ABORT);
	assert_int_equal(o->h.call, 0);
	assert_hex(o->body, o->len, "fffffffb");
	assert_int_equal(w->offered_count, 1);
	wire_free(w);
}

static void an_unknown_type_ends_the_call_and_leaves_the_connection_usable(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	struct wire_in in = {.h = {.type = 12, .call = 1}};
	wire_feed(w, &in);
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_int_equal(o->h.call, 1);
	assert_hex(o->body, o->len, "fffffffb");
	assert_int_equal(w->ended, 1);
	rx_call_unref(w->offered[0]);
	w->offered_count = 0;
	begin(w, 2);
	wire_free(w);
}

static void types_9_to_11_are_ignored(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	for (uint8_t t = 9; t <= 11; t++) {
		struct wire_in in = {.h = {.type = t}, .len = 9};
		wire_feed(w, &in);
	}
	wire_quiet(w);
	assert_int_equal(w->ended, 0);
	wire_free(w);
}

static void what_is_shorter_than_a_header_is_dropped(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	uint8_t junk[27] = {0};
	for (size_t n = 0; n <= sizeof(junk); n++)
		wire_feed_raw(w, wire_peer, junk, n);
	wire_quiet(w);
	struct rx_stats st;
	rx_endpoint_stats(w->ep, &st);
	assert_int_equal(st.malformed, 28);
	wire_free(w);
}

/* --- §3 ------------------------------------------------------------------------------------ */

static void a_lower_call_number_is_dropped(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 5);
	rx_call_abort(call, w->now, 7);
	wire_pump(w);
	wire_flush(w);
	wire_data(w, 4, 1, LAST, 4);
	wire_data(w, 1, 1, LAST | ASK, 4);
	wire_quiet(w);
	assert_int_equal(w->offered_count, 1);
	wire_free(w);
}

static void a_duplicate_of_a_finished_call_gets_ack_2_and_never_runs_again(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 3);
	wire_reply(w, call, 1, 10, true);
	struct wire_ack a = {.first = 2, .reason = RX_ACK_DELAY};
	wire_flush(w);
	wire_ack(w, 0, 0, 3, 0, 0, &a);
	assert_int_equal(w->sent, 1);
	/* at once, and after the time in which stock servers forget */
	for (int i = 0; i < 2; i++) {
		wire_data(w, 3, 1, LAST, 4);
		const struct wire_out *o = wire_take_type(w, RX_ACK);
		struct rx_ack got;
		wire_parse(o, &got);
		assert_int_equal(got.reason, RX_ACK_DUPLICATE);
		assert_int_equal(got.first, 2);
		assert_int_equal(o->h.call, 3);
		wire_data(w, 2, 1, LAST, 4);
		wire_quiet(w);
		assert_int_equal(w->offered_count, 1);
		wire_wait(w, SEC(120));
		wire_flush(w);
	}
	wire_free(w);
}

static void a_duplicate_while_the_handler_runs_gets_ack_2(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	wire_data(w, 1, 1, LAST, 4);
	struct rx_ack got;
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_DUPLICATE);
	assert_int_equal(w->offered_count, 1);
	wire_free(w);
}

static void only_data_opens_a_call(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_ack ping = {.first = 1, .reason = RX_ACK_PING};
	wire_ack(w, 0, 0, 1, ASK, 0, &ping);
	wire_quiet(w);
	begin(w, 1);
	wire_reply(w, w->offered[0], 1, 10, true);
	wire_flush(w);
	wire_ack(w, 0, 0, 2, ASK, 0, &ping);
	wire_quiet(w);
	assert_int_equal(w->sent, 0); /* the finished call was not thrown away either */
	struct wire_in busy = {.h = {.type = RX_BUSY, .call = 2}};
	wire_feed(w, &busy);
	wire_wait(w, SEC(1));
	wire_flush(w);
	wire_data(w, 2, 1, LAST, 4);
	assert_int_equal(w->offered_count, 2);
	wire_free(w);
}

static void a_first_packet_beyond_the_window_opens_nothing(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 33, 0, 4);
	wire_data(w, 1, 17, ASK, 4);
	wire_quiet(w);
	wire_data(w, 1, 16, 0, 4);
	struct rx_ack got;
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_OUT_OF_SEQUENCE);
	assert_int_equal(w->offered_count, 0); /* nothing in order yet */
	wire_free(w);
}

static void a_newer_call_ends_the_one_before_and_waits_until_its_handler_is_back(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *old = begin(w, 1);
	wire_data(w, 2, 1, LAST | ASK, 4);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->last_err, AFS_EDEAD);
	assert_int_equal(w->offered_count, 1);
	/* it is taken, so the client need not repeat it */
	assert_int_equal(wire_take_type(w, RX_ACK)->h.call, 2);
	/* the old one is history: its packets and its reply go nowhere */
	wire_data(w, 1, 1, LAST, 4);
	wire_reply(w, old, 1, 10, true);
	wire_quiet(w);
	/* a third takes the place of the second, which nobody has seen */
	wire_data(w, 3, 1, LAST, 4);
	assert_int_equal(w->offered_count, 1);
	w->offered_count = 0;
	rx_call_unref(old);
	wire_pump(w);
	assert_int_equal(w->offered_count, 1);
	wire_reply(w, w->offered[0], 1, 10, true);
	assert_int_equal(wire_take_type(w, RX_DATA)->h.call, 3);
	wire_free(w);
}

static void a_newer_call_acknowledges_the_reply_before_it(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	wire_reply(w, call, 1, 10, true);
	assert_int_equal(w->sent, 0);
	begin(w, 2);
	assert_int_equal(w->sent, 1);
	wire_flush(w);
	wire_wait(w, SEC(3));
	while (w->out_count)
		assert_int_equal(wire_take(w)->h.call, 2); /* nothing of call 1 is sent again */
	wire_free(w);
}

static void an_abort_is_repeated_to_whoever_goes_on_with_the_call(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	rx_call_abort(call, w->now, 110);
	wire_pump(w);
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_hex(o->body, o->len, "0000006e");
	assert_int_equal(o->h.flags, 0);
	wire_data(w, 1, 1, LAST, 4);
	o = wire_take_type(w, RX_ABORT);
	assert_hex(o->body, o->len, "0000006e");
	assert_int_equal(o->h.call, 1);
	wire_free(w);
}

/* Call `number` ends with `code`; how long the client waits for its ABORT. */
static mono_ns failing_call(struct wire *w, uint32_t number, int32_t code)
{
	struct rx_call *call = begin(w, number);
	mono_ns asked = w->now;
	rx_call_abort(call, w->now, code);
	wire_pump(w);
	wire_data(w, number, 1, LAST, 4); /* the client's patience brings nothing */
	if (w->out_count == 0)
		wire_wait(w, SEC(4));
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_int_equal(o->h.call, number);
	assert_int_equal((int32_t)get32(o->body), code);
	mono_ns took = o->at - asked;
	wire_flush(w);
	return took;
}

static void a_client_that_repeats_a_failing_call_hears_of_it_three_seconds_late(void **state)
{
	(void)state;
	struct wire_config wc = {.abort_threshold = 10};
	struct wire *w = wire_new(&wc);
	uint32_t n = 0;
	for (int i = 0; i < 15; i++)
		assert_int_equal(failing_call(w, ++n, 2), i < 10 ? 0 : SEC(3));
	assert_int_equal(failing_call(w, ++n, 13), 0); /* another failure is news */
	for (int i = 0; i < 9; i++)
		assert_int_equal(failing_call(w, ++n, 13), 0);
	assert_int_equal(failing_call(w, ++n, 13), SEC(3));
	struct rx_call *call = begin(w, ++n); /* and success is forgiveness */
	wire_reply(w, call, 1, 4, true);
	wire_flush(w);
	for (int i = 0; i < 10; i++)
		assert_int_equal(failing_call(w, ++n, 13), 0);
	assert_int_equal(failing_call(w, ++n, 13), SEC(3));
	for (int i = 0; i < 15; i++)
		assert_int_equal(failing_call(w, ++n, -455), 0);
	struct rx_stats st;
	rx_endpoint_stats(w->ep, &st);
	assert_int_equal(st.aborts_delayed, 7);
	wire_free(w);
}

static void a_newer_call_does_not_wait_for_the_delayed_abort_of_the_one_before(void **state)
{
	(void)state;
	struct wire_config wc = {.abort_threshold = 1};
	struct wire *w = wire_new(&wc);
	assert_int_equal(failing_call(w, 1, 2), 0);
	rx_call_abort(begin(w, 2), w->now, 2);
	wire_pump(w);
	wire_quiet(w);
	struct rx_call *call = begin(w, 3);
	wire_reply(w, call, 1, 4, true);
	assert_int_equal(wire_take_type(w, RX_DATA)->h.call, 3);
	wire_flush(w);
	wire_wait(w, MSEC(100));
	struct wire_ack a = {.first = 2, .reason = RX_ACK_DELAY};
	wire_ack(w, EPOCH, CID, 3, RX_F_CLIENT, 0, &a);
	wire_flush(w);
	wire_wait(w, SEC(5));
	wire_quiet(w);
	wire_free(w);
}

static void a_wish_for_a_newer_dialect_is_ignored_and_so_is_any_rubbish_in_its_place(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	for (unsigned status = 0; status < 256; status++) {
		struct wire_in in = {.h = {.type = RX_DATA,
					     .call = 1 + status,
					     .seq = 1,
					     .flags = LAST,
					     .user_status = (uint8_t)status},
			.len = 4};
		wire_feed(w, &in);
		assert_int_equal(w->offered_count, 1);
		wire_reply(w, w->offered[0], 1, 4, true);
		const struct wire_out *o = wire_take_type(w, RX_DATA);
		assert_int_equal(o->h.user_status, 0);
		assert_int_equal(o->h.service, WIRE_SERVICE);
		rx_call_unref(w->offered[0]);
		w->offered_count = 0;
		wire_flush(w);
	}
	wire_free(w);
}

static void an_abort_from_the_client_ends_the_call_with_its_code(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	struct wire_in in = {
		.h = {.type = RX_ABORT, .call = 1}, .body = "\xff\xff\xff\xfa", .len = 4};
	wire_feed(w, &in);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->last_err, AFS_EABORTED);
	assert_int_equal(w->last_code, RX_USER_ABORT);
	wire_quiet(w);
	wire_free(w);
}

static void a_call_that_nobody_takes_is_aborted(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	w->offered_count = 0;
	rx_call_unref(call);
	wire_pump(w);
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_hex(o->body, o->len, "fffffffa");
	wire_free(w);
}

/* --- §4 ------------------------------------------------------------------------------------ */

static void an_ack_has_the_layout_of_the_protocol_with_three_zero_octets_before_its_trailer(
	void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 1, .seq = 1, .serial = 0x55, .flags = ASK},
		.len = 4};
	wire_feed(w, &in);
	const struct wire_out *o = wire_take_type(w, RX_ACK);
	assert_hex(o->body, o->len,
		"00000000 00000001 00000001 00000055 01 01 01 000000 00003ff8 00003ff8 000000ff "
		"00000001");
	assert_int_equal(o->h.flags, RX_F_SLOW_START_OK);
	assert_int_equal(o->h.seq, 0);
	assert_int_equal(o->h.cksum, 0);
	wire_free(w);
}

static void a_hole_is_reported_at_once_and_so_is_its_filling(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 1, 0, 4);
	wire_data(w, 1, 3, 0, 4);
	struct rx_ack got;
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_OUT_OF_SEQUENCE);
	assert_int_equal(got.count, 3);
	assert_hex(got.octets, 3, "01 00 01");
	wire_data(w, 1, 2, 0, 4);
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.count, 3);
	assert_hex(got.octets, 3, "01 01 01");
	assert_int_equal(got.previous, 3); /* never moves back */
	struct rx_packet *list = rx_call_receive(w->offered[0], w->now), *p = list;
	for (rx_seq s = 1; s <= 3; s++, p = p->next)
		assert_int_equal(p->seq, s);
	assert_null(p);
	rx_packet_free_list(list);
	wire_free(w);
}

static void data_beyond_the_announced_window_is_dropped_with_ack_4(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 1, 0, 4);
	wire_data(w, 1, 17, 0, 4);
	struct rx_ack got;
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_EXCEEDS_WINDOW);
	assert_int_equal(got.count, 1);
	/* that ACK announced more */
	wire_data(w, 1, 17, 0, 4);
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_OUT_OF_SEQUENCE);
	assert_int_equal(got.count, 17);
	wire_data(w, 1, 257, 0, 4);
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_EXCEEDS_WINDOW);
	wire_free(w);
}

static void a_window_full_of_soft_acks_fits_one_ack(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 1, ASK, 4);
	for (rx_seq s = 2; s <= 255; s++)
		wire_data(w, 1, s, 0, 4);
	wire_flush(w);
	wire_data(w, 1, 255, 0, 4);
	const struct wire_out *o = wire_take_type(w, RX_ACK);
	struct rx_ack got;
	wire_parse(o, &got);
	assert_int_equal(got.count, 255);
	assert_int_equal(o->len, 37 + 255);
	assert_int_equal(got.window, 255);
	wire_free(w);
}

static void two_packets_are_acknowledged_at_once_and_one_after_100_ms(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 1, 0, 4);
	wire_quiet(w);
	mono_ns start = w->now;
	wire_wait(w, MSEC(150));
	const struct wire_out *o = wire_take_type(w, RX_ACK);
	struct rx_ack got;
	wire_parse(o, &got);
	assert_int_equal(got.reason, RX_ACK_DELAY);
	assert_int_equal(got.serial, 0);
	assert_int_equal(o->at - start, MSEC(100));
	wire_data(w, 1, 2, 0, 4);
	wire_quiet(w);
	wire_data(w, 1, 3, 0, 4);
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_IDLE);
	wire_free(w);
}

static void consumption_is_reported_as_a_hard_ack(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 1, ASK, 4);
	for (rx_seq s = 2; s <= 10; s++)
		wire_data(w, 1, s, 0, 4);
	wire_flush(w);
	read_all(w, w->offered[0]);
	struct rx_ack got;
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_DELAY);
	assert_int_equal(got.first, 11);
	assert_int_equal(got.count, 0);
	/* fewer after 100 ms at the latest */
	wire_data(w, 1, 11, ASK, 4);
	wire_flush(w);
	read_all(w, w->offered[0]);
	wire_quiet(w);
	wire_wait(w, MSEC(101));
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.first, 12);
	wire_free(w);
}

static void a_ping_is_answered_with_its_serial_before_during_and_after_a_call(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	w->secured = true;
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 1, .seq = 1, .index = 2, .flags = LAST}, .len = 20};
	wire_feed(w, &in);
	wire_take_type(w, RX_CHALLENGE);
	uint8_t ping[37] = {[7] = 1, [16] = RX_ACK_PING};
	struct wire_in p = {
		.h = {.type = RX_ACK, .call = 1, .serial = 4711, .index = 2, .flags = ASK},
		.body = ping,
		.len = 37};
	wire_feed(w, &p); /* before: it waits for its caller's name */
	struct rx_ack got;
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_PING_RESPONSE);
	assert_int_equal(got.serial, 4711);
	assert_int_equal(got.window, 16);
	wire_free(w);

	w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	p.h.index = 0;
	wire_feed(w, &p);
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.serial, 4711);
	wire_reply(w, call, 1, 10, true);
	struct wire_ack a = {.first = 2, .reason = RX_ACK_DELAY};
	wire_ack(w, 0, 0, 1, 0, 4712, &a);
	assert_int_equal(w->sent, 1);
	wire_flush(w);
	p.h.serial = 4713;
	wire_feed(w, &p);
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.reason, RX_ACK_PING_RESPONSE);
	assert_int_equal(got.serial, 4713);
	wire_free(w);
}

static void a_request_is_not_acknowledged_when_the_reply_comes_first(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	read_all(w, call);
	wire_reply(w, call, 1, 10, true);
	wire_take_type(w, RX_DATA);
	wire_wait(w, MSEC(150));
	wire_quiet(w);
	wire_free(w);
}

/* --- §9 ------------------------------------------------------------------------------------ */

static void a_jumbogram_is_cut_where_its_headers_stand(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	uint8_t body[2 * 1416 + 100];
	memset(body, 'a', 1412);
	memcpy(body + 1412, "\x20\x00\x12\x34", 4);
	memset(body + 1416, 'b', 1412);
	memcpy(body + 2828, "\x04\x00\x56\x78", 4); /* LAST */
	memset(body + 2832, 'c', 100);
	struct wire_in in = {.h = {.type = RX_DATA,
				     .call = 1,
				     .seq = 1,
				     .serial = 50,
				     .flags = RX_F_JUMBO,
				     .cksum = 0xabcd},
		.body = body,
		.len = sizeof(body)};
	wire_feed(w, &in);
	assert_int_equal(w->offered_count, 1);
	struct rx_packet *p = rx_call_receive(w->offered[0], w->now), *list = p;
	assert_true(rx_call_received_all(w->offered[0]));
	static const struct {
		uint32_t len;
		uint16_t cksum;
		uint8_t fill;
		bool last;
	} want[] = {
		{1412, 0xabcd, 'a', false}, {1412, 0x1234, 'b', false}, {100, 0x5678, 'c', true}};
	for (unsigned i = 0; i < 3; i++, p = p->next) {
		assert_int_equal(p->seq, i + 1);
		assert_int_equal(p->len, want[i].len);
		assert_int_equal(p->cksum, want[i].cksum);
		assert_int_equal(p->last, want[i].last);
		assert_int_equal(p->buf->data[p->off], want[i].fill);
		assert_int_equal(p->buf->data[p->off + p->len - 1], want[i].fill);
		assert_true(p->buf->cap < 4096); /* what waits costs about its size */
	}
	assert_null(p);
	rx_packet_free_list(list);
	wire_free(w);
}

static void the_serial_of_the_last_piece_of_a_jumbogram_is_acknowledged(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	uint8_t body[1416 + 10] = {[1412] = ASK};
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 1, .seq = 1, .serial = 50, .flags = RX_F_JUMBO},
		.body = body,
		.len = sizeof(body)};
	wire_feed(w, &in);
	struct rx_ack got;
	wire_parse(wire_take_type(w, RX_ACK), &got);
	assert_int_equal(got.serial, 51);
	assert_int_equal(got.count, 2);
	wire_free(w);
}

static void a_jumbo_flag_with_too_little_behind_it_is_one_packet(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 1, RX_F_JUMBO | LAST, 1415);
	struct rx_packet *p = rx_call_receive(w->offered[0], w->now);
	assert_int_equal(p->len, 1415);
	assert_null(p->next);
	rx_packet_free(p);
	wire_free(w);
}

static void nothing_follows_the_last_packet(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 2, LAST, 4);
	wire_data(w, 1, 3, 0, 4);
	wire_data(w, 1, 1, LAST, 4); /* a second LAST, and not at the end */
	assert_int_equal(w->offered_count, 0);
	wire_data(w, 1, 1, 0, 4);
	assert_int_equal(w->offered_count, 1);
	rx_packet_free_list(rx_call_receive(w->offered[0], w->now));
	assert_true(rx_call_received_all(w->offered[0]));
	wire_free(w);
}

/* --- §11 ----------------------------------------------------------------------------------- */

static void feed_first(struct wire *w, unsigned channel, uint32_t number)
{
	struct wire_in in = {.h = {.type = RX_DATA,
				     .call = number,
				     .cid = channel,
				     .seq = 1,
				     .index = 2,
				     .flags = LAST},
		.len = 20};
	wire_feed(w, &in);
}

static void respond(struct wire *w, const uint8_t nonce[16], uint32_t n0, uint32_t n1)
{
	uint8_t body[32] = {0};
	memcpy(body, nonce, 16);
	put32(body + 16, n0);
	put32(body + 20, n1);
	struct wire_in in = {
		.h = {.type = RX_RESPONSE, .index = 2}, .body = body, .len = sizeof(body)};
	wire_feed(w, &in);
}

static void one_challenge_serves_the_waiting_calls_of_all_channels(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	w->secured = true;
	for (unsigned i = 0; i < 4; i++)
		feed_first(w, i, 1);
	const struct wire_out *o = wire_take_type(w, RX_CHALLENGE);
	assert_int_equal(o->h.call, 0);
	assert_int_equal(o->h.cid, CID);
	assert_int_equal(o->len, 16);
	wire_quiet(w);
	assert_int_equal(w->offered_count, 0); /* nobody sees a call before its caller is known */
	respond(w, o->body, 1, 1);
	assert_int_equal(w->offered_count, 4);
	assert_true(rx_conn_caller(rx_call_conn(w->offered[0]))->authenticated);
	wire_quiet(w); /* nothing is said about a good response */
	wire_free(w);
}

static void a_challenge_is_repeated_every_two_seconds_with_its_nonce_and_the_calls_die_after_fifty(
	void **state)
{
	(void)state;
	struct wire_config c = {.dead_ns = SEC(200), .idle_ns = SEC(300)};
	struct wire *w = wire_new(&c);
	w->secured = true;
	/* enough bytes that the limit for unproven addresses is not what stops it */
	struct wire_in in = {.h = {.type = RX_DATA, .call = 1, .seq = 1, .index = 2, .flags = LAST},
		.len = 1400};
	wire_feed(w, &in);
	uint8_t nonce[16];
	memcpy(nonce, wire_take_type(w, RX_CHALLENGE)->body, 16);
	mono_ns last = w->now;
	wire_wait(w, SEC(110));
	int n = 1;
	bool aborted = false;
	while (w->out_count) {
		const struct wire_out *o = wire_take(w);
		if (o->h.type == RX_CHALLENGE) {
			assert_memory_equal(o->body, nonce, 16);
			assert_int_equal(o->at - last, SEC(2));
			last = o->at;
			n++;
		} else if (o->h.type == RX_ABORT) {
			assert_hex(o->body, 4, "ffffffff");
			assert_int_equal(o->h.call, 1);
			aborted = true;
		}
	}
	assert_int_equal(n, 50);
	assert_true(aborted);
	wire_free(w);
}

static void a_wrong_response_ends_the_connection_one_second_later(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	w->secured = true;
	feed_first(w, 0, 1);
	wire_flush(w);
	uint8_t wrong[16] = {1};
	respond(w, wrong, 1, 0);
	wire_quiet(w);
	wire_wait(w, MSEC(999));
	wire_quiet(w);
	wire_wait(w, MSEC(2));
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_int_equal(o->h.call, 0);
	assert_int_equal((int32_t)get32(o->body), rx_sec_code(AFS_EOUTOFSEQ));
	assert_int_equal(w->offered_count, 0);
	struct rx_stats st;
	rx_endpoint_stats(w->ep, &st);
	assert_int_equal(st.responses_refused, 1);
	wire_free(w);
}

static void a_response_nobody_asked_for_is_ignored_and_so_is_a_second_one(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	w->secured = true;
	uint8_t wrong[16] = {1};
	respond(w, wrong, 0, 0); /* no such connection */
	wire_quiet(w);
	feed_first(w, 0, 1);
	respond(w, wire_take_type(w, RX_CHALLENGE)->body, 1, 0);
	assert_int_equal(w->offered_count, 1);
	respond(w, wrong, 1, 0);
	wire_wait(w, SEC(2));
	while (w->out_count)
		assert_int_not_equal(wire_take(w)->h.type, RX_ABORT);
	assert_ok(rx_conn_error(rx_call_conn(w->offered[0]), NULL));
	wire_free(w);
}

static void call_numbers_of_a_response_are_lower_bounds_and_leave_waiting_calls_alone(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	w->secured = true;
	feed_first(w, 0, 5);
	respond(w, wire_take_type(w, RX_CHALLENGE)->body, 9, 7);
	assert_int_equal(w->offered_count, 1);
	wire_reply(w, w->offered[0], 1, 20, true);
	assert_int_equal(wire_take_type(w, RX_DATA)->h.call, 5);
	feed_first(w, 1, 6); /* below */
	assert_int_equal(w->offered_count, 1);
	feed_first(w, 1, 7); /* the call in progress, whose packet came late */
	assert_int_equal(w->offered_count, 2);
	wire_free(w);
}

static void a_call_number_with_its_high_bit_set_is_not_taken_on_a_secured_connection(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	w->secured = true;
	feed_first(w, 0, 0x80000001);
	wire_quiet(w);
	wire_free(w);
}

/* --- §15 ----------------------------------------------------------------------------------- */

static void version_is_answered_with_65_octets_to_clients_only(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_header h = {.epoch = 999, .call = 0x65, .type = RX_VERSION, .flags = 0x05};
	uint8_t bytes[29] = {0};
	rx_header_put(bytes, &h);
	wire_feed_raw(w, wire_peer, bytes, sizeof(bytes));
	const struct wire_out *o = wire_take_type(w, RX_VERSION);
	rx_header_put(bytes, &o->h);
	assert_hex(bytes, 28, "000003e7 00000000 00000065 00000000 00000000 0d040000 00000000");
	assert_int_equal(o->len, 65);
	assert_memory_equal(o->body, "afscell test\0\0\0", 15);
	h.flags = 0x04;
	rx_header_put(bytes, &h);
	wire_feed_raw(w, wire_peer, bytes, sizeof(bytes));
	wire_quiet(w);
	wire_free(w);
}

static void debug_requests_for_what_is_not_there_are_answered_with_minus_8_twice(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_header h = {.epoch = 999, .call = 0x66, .type = RX_DEBUG, .flags = 0x05};
	uint8_t bytes[36] = {[31] = 77};
	rx_header_put(bytes, &h);
	wire_feed_raw(w, wire_peer, bytes, sizeof(bytes));
	const struct wire_out *o = wire_take_type(w, RX_DEBUG);
	assert_hex(o->body, o->len, "fffffff8 fffffff8");
	assert_int_equal(o->h.flags, 0x04);
	wire_free(w);
}

static const struct wire_out *debug(
	struct wire *w, struct rx_addr from, uint32_t type, uint32_t index)
{
	struct rx_header h = {.epoch = 999, .call = 0x66, .type = RX_DEBUG, .flags = 0x05};
	uint8_t bytes[36] = {0};
	rx_header_put(bytes, &h);
	put32(bytes + 28, type);
	put32(bytes + 32, index);
	wire_feed_raw(w, from, bytes, sizeof(bytes));
	const struct wire_out *o = wire_take_type(w, RX_DEBUG);
	assert_int_equal(o->h.flags, 0x04);
	assert_int_equal(o->h.call, 0x66);
	return o;
}

static const struct rx_addr here = {.ip = 0x7f000001, .port = 5000};

static void debug_tells_this_machine_of_connections_and_peers_to_the_end_of_the_list(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 5);
	const struct wire_out *o = debug(w, here, 1, 0);
	assert_int_equal(o->len, 56);
	assert_int_equal(o->body[14], 'S');
	assert_int_equal(get32(o->body + 8), 1);
	for (uint32_t type = 2; type <= 3; type++) {
		o = debug(w, here, type, 0);
		assert_int_equal(o->len, 176);
		assert_hex(o->body, 8, "0a000002 12345670");
		assert_hex(o->body + 12, 16, "00000005 00000000 00000000 00000000");
		assert_hex(o->body + 32, 5, "1b59 00 01 00");
		assert_hex(o->body + 40, 8, "02000000 02000000"); /* active, receiving */
		assert_hex(o->body + 132, 8, "9a0b0c0d 000005a4");
		o = debug(w, here, type, 1);
		assert_int_equal(o->len, 176);
		assert_int_equal(get32(o->body + 4), 0xffffffff);
	}
	o = debug(w, here, 5, 0);
	assert_int_equal(o->len, 132);
	assert_hex(o->body, 8, "0a000002 1b59 3ff8");
	assert_int_equal(get32(o->body + 88), RX_HEADER + 4);
	o = debug(w, here, 5, 1);
	assert_int_equal(get32(o->body), 0xffffffff);
	o = debug(w, here, 4, 0);
	assert_int_equal(o->len, 284);
	assert_int_equal(get32(o->body + 4 * 11), 1);
	assert_int_equal(get32(o->body + 4 * 24), 1);
	assert_int_equal(get32(o->body + 4 * 56), 1);
	assert_int_equal(get32(o->body + 4 * 57), 0);
	wire_free(w);
}

static uint32_t word(const struct wire_out *o, int i) { return get32(o->body + 4 * i); }

static void load_for_test(void *ctx, struct rx_load *out)
{
	(void)ctx;
	*out = (struct rx_load){.calls_waiting = 3,
		.threads_idle = 5,
		.calls_waited = 7,
		.descriptors = 9,
		.waits = 11,
		.send_waits = 13,
		.send_failures = 17};
}

static void debug_counts_every_type_of_packet_each_way(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	const struct wire_out *o = debug(w, here, 4, 0);
	assert_int_equal(word(o, 51), 9999999); /* no round trip yet */
	uint32_t read[RX_VERSION], sent[RX_VERSION];
	for (int i = 0; i < RX_VERSION; i++) {
		read[i] = word(o, 11 + i);
		sent[i] = word(o, 28 + i);
	}
	/* a call whose reply is acknowledged 20 ms later, its duplicate, an older one */
	struct rx_call *call = begin(w, 5);
	wire_reply(w, call, 1, 8, true);
	const rx_serial serial = wire_take_type(w, RX_DATA)->h.serial;
	wire_wait(w, MSEC(20));
	const struct wire_ack all = {
		.first = 2, .previous = 1, .serial = serial, .reason = RX_ACK_REQUESTED};
	wire_ack(w, EPOCH, CID, 5, RX_F_CLIENT, 2, &all);
	wire_data(w, 5, 1, LAST, 4);
	wire_take_type(w, RX_ACK);
	wire_data(w, 4, 1, LAST, 4);
	/* one of each type for nobody */
	for (uint8_t type = RX_DATA; type <= 14; type++) {
		struct rx_header h = {.epoch = 0x80000001, .cid = 0x100, .call = 1, .type = type};
		uint8_t bytes[RX_HEADER + 4] = {0};
		rx_header_put(bytes, &h);
		wire_feed_raw(w, wire_peer, bytes, sizeof(bytes));
	}
	wire_feed_raw(w, (struct rx_addr){.ip = 0x0a0b0c0d, .port = 1}, "short", 5);
	wire_quiet(w);
	w->ep->config.load = load_for_test;
	o = debug(w, here, 4, 0);
	for (int i = 0; i < RX_VERSION; i++) {
		int more = i + 1 == RX_DATA ? 3 : i + 1 == RX_ACK ? 1 : i + 1 == RX_DEBUG ? 1 : 0;
		assert_int_equal(word(o, 11 + i), read[i] + 1 + (uint32_t)more);
		more = i + 1 == RX_DATA || i + 1 == RX_ACK || i + 1 == RX_DEBUG;
		assert_int_equal(word(o, 28 + i), sent[i] + (uint32_t)more);
	}
	assert_int_equal(word(o, 5), 1); /* malformed, and by whom */
	assert_int_equal(word(o, 6), 0x0a0b0c0d);
	assert_int_equal(word(o, 9), 11);
	assert_int_equal(word(o, 10), 13);
	assert_int_equal(word(o, 24), 1);
	assert_int_equal(word(o, 26), 1);
	assert_int_equal(word(o, 45), 1);
	assert_int_equal(word(o, 49), 0); /* 20 ms */
	assert_int_equal(word(o, 50), 20000);
	assert_int_equal(word(o, 52), 20000);
	assert_int_equal(word(o, 54), 20000);
	assert_int_equal(word(o, 55), 1);
	assert_int_equal(word(o, 61), 17);
	assert_int_equal(word(o, 63), 1); /* of a call that was over */
	for (int i = 67; i < 71; i++)
		assert_int_equal(word(o, i), 0);
	o = debug(w, here, 1, 0);
	assert_int_equal(o->body[13], 9);
	assert_int_equal(word(o, 4), 3);
	assert_int_equal(word(o, 5), 5);
	assert_int_equal(word(o, 6), 7);
	rx_call_unref(call);
	wire_free(w);
}

static void debug_shows_strangers_empty_lists_of_the_right_size(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 5);
	static const uint8_t nothing[176] = {0};
	const struct wire_out *o = debug(w, wire_peer, 1, 0);
	assert_int_equal(o->len, 56);
	assert_memory_equal(o->body, nothing, 14);
	assert_memory_equal(o->body + 15, nothing, 56 - 15);
	o = debug(w, wire_peer, 3, 0);
	assert_int_equal(o->len, 176);
	assert_int_equal(get32(o->body + 4), 0xffffffff);
	assert_memory_equal(o->body + 8, nothing, 168);
	o = debug(w, wire_peer, 5, 0);
	assert_int_equal(o->len, 132);
	assert_int_equal(get32(o->body), 0xffffffff);
	o = debug(w, wire_peer, 4, 0);
	assert_hex(o->body, o->len, "fffffff8 fffffff8");
	wire_free(w);
}

static void tools_that_only_ask_get_no_more_than_three_times_what_they_sent_and_200_bytes(
	void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	uint64_t in = 0, out = 0;
	for (int i = 0; i < 100; i++) {
		struct rx_header h = {.epoch = 999,
			.call = 1,
			.type = i % 2 ? RX_DEBUG : RX_VERSION,
			.flags = 0x05};
		uint8_t bytes[36] = {[31] = 3};
		size_t n = i % 2 ? 36 : 28;
		rx_header_put(bytes, &h);
		wire_feed_raw(w, wire_peer, bytes, n);
		in += n;
		while (w->out_count)
			out += RX_HEADER + wire_take(w)->len;
		assert_in_range(out, 1, 3 * in + 200);
	}
	assert_in_range(out, 2 * in, 3 * in + 200);
	wire_free(w);
}

/* --- bounds -------------------------------------------------------------------------------- */

static void an_unproven_address_gets_at_most_three_times_what_it_sent_and_200_bytes(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	uint64_t in = 0, out = 0;
	/* one spoofed packet, a large reply, and silence */
	struct rx_call *call = begin(w, 1);
	in += RX_HEADER + 4;
	wire_reply(w, call, 12, 1400, true);
	wire_wait(w, SEC(30));
	while (w->out_count) {
		const struct wire_out *o = wire_take(w);
		assert_int_equal(o->h.type, RX_ACK); /* a ping; no reply */
		out += RX_HEADER + o->len;
	}
	assert_true(out > 0 && out <= 3 * in + 200);
	/* and insisting brings no more than the same factor */
	w->offered_count = 0;
	rx_call_unref(call);
	for (uint32_t number = 2; number < 40; number++) {
		wire_data(w, number, 1, LAST, 4);
		in += RX_HEADER + 4;
		if (w->offered_count) {
			wire_reply(w, w->offered[0], 12, 1400, true);
			rx_call_unref(w->offered[0]);
			w->offered_count = 0;
		}
		wire_wait(w, MSEC(700));
	}
	while (w->out_count)
		out += RX_HEADER + wire_take(w)->len;
	assert_true(out <= 3 * in + 200);
	wire_free(w);
}

static void a_queue_that_shrank_until_it_is_full_tells_of_room_too(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	wire_reply(w, call, 40, 100, false);
	struct wire_ack a = {.first = 1, .reason = RX_ACK_REQUESTED, .window = 32};
	a.serial = wire_take_type(w, RX_DATA)->h.serial;
	wire_ack(w, 0, 0, 1, 0, 0, &a);
	assert_in_range(rx_call_room(call), 1, 64);
	/* the window is made smaller, and with it the queue: no packet more is taken */
	a = (struct wire_ack){.first = 1, .reason = RX_ACK_DELAY, .window = 16};
	wire_ack(w, 0, 0, 1, 0, 0, &a);
	assert_int_equal(rx_call_room(call), 0);
	w->writable = 0;
	for (a.first = 5; a.first <= 25; a.first += 4)
		wire_ack(w, 0, 0, 1, 0, 0, &a);
	assert_int_equal(w->writable, 1);
	assert_true(rx_call_room(call) > 0);
	wire_free(w);
}

static void the_reply_goes_out_once_the_address_has_echoed_a_serial(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	wire_reply(w, call, 3, 1400, true);
	const struct wire_out *ping = wire_take_type(w, RX_ACK);
	assert_true(ping->h.flags & ASK);
	rx_serial serial = ping->h.serial;
	wire_quiet(w);
	struct rx_stats st;
	rx_endpoint_stats(w->ep, &st);
	assert_int_equal(st.held_unproven, 1);
	/* guessing proves nothing; bytes alone buy three times themselves */
	struct wire_ack wrong = {.first = 1, .reason = RX_ACK_PING_RESPONSE, .serial = 1};
	wire_ack(w, 0, 0, 1, 0, 0, &wrong);
	assert_false(rx_conn_proven(rx_call_conn(call)));
	struct wire_ack right = {.first = 1, .reason = RX_ACK_PING_RESPONSE, .serial = serial};
	wire_flush(w);
	wire_ack(w, 0, 0, 1, 0, 0, &right);
	assert_true(rx_conn_proven(rx_call_conn(call)));
	for (int i = 0; i < 3; i++)
		wire_take_type(w, RX_DATA);
	wire_free(w);
}

static void a_small_reply_needs_no_proof_and_asks_for_it_on_the_way(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	wire_reply(w, call, 1, 100, true);
	const struct wire_out *o = wire_take_type(w, RX_DATA);
	assert_int_equal(o->h.flags, LAST | ASK);
	wire_quiet(w);
	struct wire_ack a = {
		.first = 1, .list = "+", .reason = RX_ACK_REQUESTED, .serial = o->h.serial};
	wire_ack(w, 0, 0, 1, 0, 0, &a);
	assert_true(rx_conn_proven(rx_call_conn(call)));
	assert_int_equal(w->sent, 1);
	wire_free(w);
}

static void more_calls_than_a_peer_may_have_are_told_busy(void **state)
{
	(void)state;
	struct wire_config c = {.calls_per_peer_max = 2};
	struct wire *w = wire_new(&c);
	for (uint8_t i = 0; i < 3; i++) {
		struct wire_in in = {
			.h = {.type = RX_DATA, .call = 1, .cid = i, .seq = 1, .flags = LAST},
			.len = 4};
		wire_feed(w, &in);
	}
	assert_int_equal(w->offered_count, 2);
	wire_take_type(w, RX_BUSY);
	struct rx_stats st;
	rx_endpoint_stats(w->ep, &st);
	assert_int_equal(st.refused_overload, 1);
	wire_free(w);
}

static void strangers_do_not_push_out_callers_who_have_a_name(void **state)
{
	(void)state;
	struct wire_config c = {.conns_max = 10};
	struct wire *w = wire_new(&c);
	w->secured = true;
	feed_first(w, 0, 1);
	respond(w, wire_take_type(w, RX_CHALLENGE)->body, 1, 0);
	rx_call_abort(w->offered[0], w->now, 1);
	rx_call_unref(w->offered[0]);
	w->offered_count = 0;
	wire_pump(w);
	wire_flush(w);
	for (uint32_t i = 1; i < 200; i++) {
		struct wire_in in = {.h = {.type = RX_DATA,
					     .epoch = EPOCH,
					     .cid = CID + 4 * i,
					     .call = 1,
					     .seq = 1,
					     .flags = LAST | RX_F_CLIENT},
			.len = 4};
		wire_feed(w, &in);
		if (w->offered_count) {
			rx_call_abort(w->offered[0], w->now, 1);
			rx_call_unref(w->offered[0]);
			w->offered_count = 0;
		}
		wire_pump(w);
		wire_flush(w);
	}
	/* still known: its next call needs no challenge */
	feed_first(w, 0, 2);
	assert_int_equal(w->offered_count, 1);
	wire_quiet(w);
	wire_free(w);
}

static void a_closing_endpoint_ends_its_calls_and_refuses_new_ones_with_restarting(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	rx_endpoint_close(w->ep, w->now);
	wire_pump(w);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->last_err, AFS_ERESTARTING);
	const struct wire_out *o = wire_take_type(w, RX_ABORT);
	assert_int_equal((int32_t)get32(o->body), RX_RESTARTING);
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 1, .cid = 1, .seq = 1, .flags = LAST}, .len = 4};
	wire_feed(w, &in);
	o = wire_take_type(w, RX_ABORT);
	assert_int_equal((int32_t)get32(o->body), RX_RESTARTING);
	assert_int_equal(o->h.cid, CID | 1);
	in.h = (struct rx_header){.type = RX_DATA,
		.epoch = EPOCH,
		.cid = CID + 8,
		.call = 1,
		.seq = 1,
		.flags = LAST | RX_F_CLIENT};
	wire_feed(w, &in);
	o = wire_take_type(w, RX_ABORT);
	assert_int_equal((int32_t)get32(o->body), RX_RESTARTING);
	wire_free(w);
}

/* --- §5 ------------------------------------------------------------------------------------ */

static void a_silent_client_is_pinged_and_then_given_up(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = 1, .seq = 1, .flags = LAST}, .len = 1000};
	wire_feed(w, &in);
	mono_ns start = w->now;
	wire_wait(w, SEC(11));
	assert_int_equal(w->ended, 0);
	int pings = 0;
	while (w->out_count) {
		const struct wire_out *o = wire_take_type(w, RX_ACK);
		struct rx_ack a;
		wire_parse(o, &a);
		if (a.reason == RX_ACK_PING) {
			pings++;
			assert_true(o->at >= start + pings * SEC(2));
		}
	}
	assert_in_range(pings, 4, 5);
	wire_wait(w, SEC(2));
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->last_err, AFS_EDEAD);
	wire_free(w);
}

static void a_client_that_answers_pings_keeps_its_call(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	begin(w, 1);
	for (int i = 0; i < 60; i++) {
		wire_wait(w, SEC(1));
		struct wire_ack pong = {.first = 1, .reason = RX_ACK_PING_RESPONSE};
		wire_ack(w, 0, 0, 1, 0, 0, &pong);
	}
	assert_int_equal(w->ended, 0);
	wire_free(w);
}

static void a_client_that_stops_in_the_middle_of_its_request_is_timed_out(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	wire_data(w, 1, 1, 0, 4);
	rx_packet_free_list(rx_call_receive(w->offered[0], w->now));
	wire_flush(w);
	for (int i = 0; i < 65; i++) {
		wire_wait(w, SEC(1));
		wire_flush(w);
		struct wire_ack pong = {.first = 1, .reason = RX_ACK_PING_RESPONSE};
		wire_ack(w, 0, 0, 1, 0, 0, &pong);
	}
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->last_err, AFS_ETIMEDOUT);
	wire_free(w);
}

static void an_idle_connection_goes_after_700_seconds(void **state)
{
	(void)state;
	struct wire *w = wire_new(NULL);
	struct rx_call *call = begin(w, 1);
	rx_call_abort(call, w->now, 1);
	rx_call_unref(call);
	w->offered_count = 0;
	wire_pump(w);
	wire_wait(w, SEC(690));
	assert_int_equal(w->ep->conn_count, 1);
	wire_wait(w, SEC(20));
	assert_int_equal(w->ep->conn_count, 0);
	wire_wait(w, SEC(100));
	assert_int_equal(w->ep->peers.count, 0);
	assert_true(rx_endpoint_next_tick(w->ep) == MONO_NEVER);
	wire_free(w);
}

TEST_MAIN(T(an_unknown_service_is_answered_with_a_raw_abort_made_from_the_header),
	T(an_index_that_is_not_offered_gets_the_same), T(an_abort_is_never_answered),
	T(replies_to_clients_that_are_none_are_ignored),
	T(a_packet_with_another_index_than_its_connection_is_dropped),
	T(the_service_counts_only_when_a_connection_is_made),
	T(with_epoch_bit_31_another_port_is_the_same_client_answered_where_it_first_was),
	T(without_epoch_bit_31_another_port_is_another_connection),
	T(serials_of_a_server_begin_at_random_and_never_repeat),
	T(data_for_call_zero_is_a_protocol_error_that_sticks_to_the_connection),
	T(an_unknown_type_ends_the_call_and_leaves_the_connection_usable),
	T(types_9_to_11_are_ignored), T(what_is_shorter_than_a_header_is_dropped),
	T(a_lower_call_number_is_dropped),
	T(a_duplicate_of_a_finished_call_gets_ack_2_and_never_runs_again),
	T(a_duplicate_while_the_handler_runs_gets_ack_2), T(only_data_opens_a_call),
	T(a_first_packet_beyond_the_window_opens_nothing),
	T(a_newer_call_ends_the_one_before_and_waits_until_its_handler_is_back),
	T(a_newer_call_acknowledges_the_reply_before_it),
	T(an_abort_is_repeated_to_whoever_goes_on_with_the_call),
	T(a_client_that_repeats_a_failing_call_hears_of_it_three_seconds_late),
	T(a_newer_call_does_not_wait_for_the_delayed_abort_of_the_one_before),
	T(a_wish_for_a_newer_dialect_is_ignored_and_so_is_any_rubbish_in_its_place),
	T(an_abort_from_the_client_ends_the_call_with_its_code),
	T(a_call_that_nobody_takes_is_aborted),
	T(an_ack_has_the_layout_of_the_protocol_with_three_zero_octets_before_its_trailer),
	T(a_hole_is_reported_at_once_and_so_is_its_filling),
	T(data_beyond_the_announced_window_is_dropped_with_ack_4),
	T(a_window_full_of_soft_acks_fits_one_ack),
	T(two_packets_are_acknowledged_at_once_and_one_after_100_ms),
	T(consumption_is_reported_as_a_hard_ack),
	T(a_ping_is_answered_with_its_serial_before_during_and_after_a_call),
	T(a_request_is_not_acknowledged_when_the_reply_comes_first),
	T(a_jumbogram_is_cut_where_its_headers_stand),
	T(the_serial_of_the_last_piece_of_a_jumbogram_is_acknowledged),
	T(a_jumbo_flag_with_too_little_behind_it_is_one_packet), T(nothing_follows_the_last_packet),
	T(one_challenge_serves_the_waiting_calls_of_all_channels),
	T(a_challenge_is_repeated_every_two_seconds_with_its_nonce_and_the_calls_die_after_fifty),
	T(a_wrong_response_ends_the_connection_one_second_later),
	T(a_response_nobody_asked_for_is_ignored_and_so_is_a_second_one),
	T(call_numbers_of_a_response_are_lower_bounds_and_leave_waiting_calls_alone),
	T(a_call_number_with_its_high_bit_set_is_not_taken_on_a_secured_connection),
	T(version_is_answered_with_65_octets_to_clients_only),
	T(debug_requests_for_what_is_not_there_are_answered_with_minus_8_twice),
	T(debug_tells_this_machine_of_connections_and_peers_to_the_end_of_the_list),
	T(debug_counts_every_type_of_packet_each_way),
	T(debug_shows_strangers_empty_lists_of_the_right_size),
	T(tools_that_only_ask_get_no_more_than_three_times_what_they_sent_and_200_bytes),
	T(an_unproven_address_gets_at_most_three_times_what_it_sent_and_200_bytes),
	T(a_queue_that_shrank_until_it_is_full_tells_of_room_too),
	T(the_reply_goes_out_once_the_address_has_echoed_a_serial),
	T(a_small_reply_needs_no_proof_and_asks_for_it_on_the_way),
	T(more_calls_than_a_peer_may_have_are_told_busy),
	T(strangers_do_not_push_out_callers_who_have_a_name),
	T(a_closing_endpoint_ends_its_calls_and_refuses_new_ones_with_restarting),
	T(a_silent_client_is_pinged_and_then_given_up),
	T(a_client_that_answers_pings_keeps_its_call),
	T(a_client_that_stops_in_the_middle_of_its_request_is_timed_out),
	T(an_idle_connection_goes_after_700_seconds))
