/* SPDX-License-Identifier: BSD-2-Clause
 * Protocol stories as dialogues of packets.  Each is compared with tests/sim/golden/NAME.txt; with
 * UPDATE_GOLDEN=1 in the environment the files are written instead: read them before you commit. */
#include "rx/core/inside.h"
#include "tests/lib/test.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

static void compare(struct sim *s, const char *name)
{
	const char *top = getenv("top_srcdir"), *got = sim_trace_text(s);
	char path[4096];
	snprintf(path, sizeof(path), "%s/tests/sim/golden/%s.txt", top ? top : "..", name);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "w");
		assert_non_null(f);
		fputs(got, f);
		fclose(f);
		return;
	}
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s is missing", path);
	char want[65536];
	size_t n = fread(want, 1, sizeof(want) - 1, f);
	fclose(f);
	want[n] = 0;
	if (strcmp(want, got) != 0)
		fail_msg("the dialogue of %s is now:\n%s", name, got);
}

struct story {
	struct sim *s;
	struct sim_end *client, *server;
	struct rx_conn *conn;
};

static struct story begin(bool secured, bool loopback)
{
	struct sim_net net = {.delay = MSEC(1)};
	struct story t = {.s = sim_new(1, &net)};
	struct sim_end_config ec = {.secured = secured, .loopback = loopback};
	t.client = sim_end_new(t.s, &ec);
	t.server = sim_end_new(t.s, &ec);
	t.conn = sim_connect(t.client, t.server, secured);
	sim_trace(t.s, true);
	return t;
}

static void end(struct story *t, const char *name)
{
	compare(t->s, name);
	rx_conn_unref(t->conn);
	sim_free(t->s);
}

static void a_first_call_and_a_second(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	struct sim_ask ask = {.reply_len = 100};
	sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(1));
	sim_wait(t.s, MSEC(100));
	sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(1));
	sim_wait(t.s, SEC(5));
	end(&t, "call");
}

static void a_call_that_must_say_who_calls(void **state)
{
	(void)state;
	struct story t = begin(true, false);
	struct sim_ask ask = {.request_len = 100, .reply_len = 100};
	sim_call(t.client, t.conn, &ask);
	sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(1));
	sim_wait(t.s, SEC(5));
	end(&t, "handshake");
}

static void a_long_reply_to_an_unknown_address(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	struct sim_ask ask = {.reply_len = 60000};
	sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(1));
	sim_wait(t.s, SEC(5));
	end(&t, "fetch");
}

static void a_store_with_large_datagrams(void **state)
{
	(void)state;
	struct story t = begin(false, true);
	struct sim_ask small = {0}, ask = {.request_len = 300000};
	sim_call(t.client, t.conn, &small);
	sim_run(t.s, SEC(1));
	sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(1));
	sim_wait(t.s, SEC(5));
	end(&t, "store");
}

static void an_abort(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	struct sim_ask ask = {.verb = SIM_ABORT, .arg = 110};
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(1));
	sim_wait(t.s, SEC(5));
	assert_int_equal(sim_call_code(c), 110);
	end(&t, "abort");
}

static void a_channel_whose_last_call_still_runs(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	struct sim_ask slow = {.verb = SIM_SLOW, .arg = 1500}, ask = {0};
	struct sim_call *c = sim_call(t.client, t.conn, &slow);
	sim_wait(t.s, MSEC(50));
	/* the abort is lost, and the channel taken for another call */
	sim_end_cut(t.client, true);
	sim_call_cancel(c);
	sim_wait(t.s, MSEC(1));
	sim_end_cut(t.client, false);
	c = sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(10));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	assert_int_equal(sim_end_repeated(t.server), 0);
	end(&t, "displaced");
}

static void a_server_that_dies(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	struct sim_ask ask = {.verb = SIM_MUTE};
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	sim_wait(t.s, SEC(5));
	sim_end_cut(t.server, true);
	sim_run(t.s, SEC(30));
	assert_err(sim_call_err(c), AFS_EDEAD);
	assert_true(sim_call_took(c) < SEC(19));
	end(&t, "dead");
}

static void a_request_and_a_reply_that_get_lost(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	struct sim_ask ask = {.reply_len = 100};
	sim_call(t.client, t.conn, &ask);
	sim_run(t.s, SEC(1));
	sim_wait(t.s, MSEC(500));
	sim_end_cut(t.server, true); /* the request */
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	sim_wait(t.s, MSEC(100));
	sim_end_cut(t.server, false);
	while (sim_end_begun(t.server) < 2)
		sim_wait(t.s, USEC(100));
	sim_end_cut(t.client, true); /* the reply */
	sim_wait(t.s, MSEC(100));
	sim_end_cut(t.client, false);
	sim_run(t.s, SEC(10));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	assert_int_equal(sim_end_begun(t.server), 2);
	end(&t, "retransmit");
}

static void a_hole_in_a_store(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	sim_network(t.s)->loss_ppm = 80000;
	struct sim_ask ask = {.request_len = 40000};
	sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(10)));
	sim_wait(t.s, SEC(5));
	end(&t, "loss");
}

/* Loses the next `times` DATA packets of one sequence number, or ACKs (seq 0), from one port. */
struct loss {
	uint16_t port;
	uint32_t seq;
	int times;
};

static bool is_to_be_lost(
	void *ctx, struct rx_addr from, struct rx_addr to, const uint8_t *p, size_t n)
{
	struct loss *l = ctx;
	struct rx_header h;
	(void)to, (void)n;
	rx_header_get(p, &h);
	if (from.port != l->port || !l->times || h.type != (l->seq ? RX_DATA : RX_ACK) ||
		(l->seq && h.seq != l->seq))
		return false;
	l->times--;
	return true;
}

enum { CLIENT = 7001, SERVER = 7002 };

/* A call that goes well; then another, on which `l` falls. */
static void second_call(const char *name, uint64_t request, uint64_t reply, struct loss l)
{
	struct story t = begin(false, false);
	const struct sim_ask first = {.reply_len = 100},
			     ask = {.request_len = request, .reply_len = reply};
	sim_call(t.client, t.conn, &first);
	assert_true(sim_run(t.s, SEC(1)));
	sim_wait(t.s, SEC(1));
	sim_drop(t.s, is_to_be_lost, &l);
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(10)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	assert_int_equal(l.times, 0);
	assert_int_equal(sim_end_begun(t.server), 2);
	assert_int_equal(sim_end_repeated(t.server), 0);
	end(&t, name);
}

static void the_first_packet_of_a_request_that_gets_lost(void **state)
{
	(void)state;
	second_call("lost_first", 5000, 100, (struct loss){CLIENT, 1, 1});
}

static void the_last_packet_of_a_request_that_gets_lost(void **state)
{
	(void)state;
	second_call("lost_last", 5000, 100, (struct loss){CLIENT, 4, 1});
}

static void the_last_acknowledgement_that_gets_lost(void **state)
{
	(void)state;
	second_call("lost_ack", 0, 100, (struct loss){CLIENT, 0, 1});
}

static void the_tail_of_a_reply_that_gets_lost(void **state)
{
	(void)state;
	second_call("tail", 0, 14000, (struct loss){SERVER, 10, 1});
}

static void a_server_that_has_no_room_for_a_second_call(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(1)};
	struct story t = {.s = sim_new(1, &net)};
	struct sim_end_config ec = {.calls_per_peer_max = 1};
	t.client = sim_end_new(t.s, &ec);
	t.server = sim_end_new(t.s, &ec);
	t.conn = sim_connect(t.client, t.server, false);
	sim_trace(t.s, true);
	const struct sim_ask slow = {.verb = SIM_SLOW, .arg = 1000}, ask = {.reply_len = 100};
	sim_call(t.client, t.conn, &slow);
	sim_wait(t.s, MSEC(50));
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(20)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(1));
	/* the next call takes the channel on which nobody was busy */
	c = sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(20)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	end(&t, "busy");
}

static void a_store_that_is_given_up_in_the_middle(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	const struct sim_ask ask = {.request_len = 200000};
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	sim_wait(t.s, MSEC(3));
	sim_call_cancel(c);
	sim_wait(t.s, SEC(5));
	assert_int_equal(sim_end_ended(t.server), 1);
	const struct sim_ask again = {.reply_len = 100};
	c = sim_call(t.client, t.conn, &again);
	assert_true(sim_run(t.s, SEC(1)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	end(&t, "cancel");
}

static void a_server_that_begins_anew_in_the_middle_of_a_call(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	const struct sim_ask slow = {.verb = SIM_SLOW, .arg = 5000}, ask = {.reply_len = 100};
	struct sim_call *c = sim_call(t.client, t.conn, &slow);
	sim_wait(t.s, SEC(1));
	sim_end_restart(t.server);
	assert_true(sim_run(t.s, SEC(30)));
	assert_err(sim_call_err(c), AFS_EDEAD);
	c = sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(5)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	end(&t, "restart");
}

static void a_window_that_closes_and_opens(void **state)
{
	(void)state;
	struct sim_net net = {.delay = MSEC(1)};
	struct story t = {.s = sim_new(1, &net)};
	struct sim_end_config ec = {.window = 4, .read_pause = MSEC(300)};
	t.client = sim_end_new(t.s, &ec);
	t.server = sim_end_new(t.s, &ec);
	t.conn = sim_connect(t.client, t.server, false);
	sim_trace(t.s, true);
	const struct sim_ask ask = {.request_len = 30000};
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(20)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	end(&t, "window");
}

static void a_path_that_shrinks(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	sim_trace(t.s, false);
	const struct sim_ask large = {.request_len = 1000000}, ask = {.request_len = 40000};
	sim_call(t.client, t.conn, &large);
	assert_true(sim_run(t.s, SEC(5)));
	sim_wait(t.s, SEC(1));
	sim_trace(t.s, true);
	sim_network(t.s)->datagram_max = 1472;
	struct sim_call *c = sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(30)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	end(&t, "shrink");
}

static void a_client_whose_nat_forgot_it(void **state)
{
	(void)state;
	struct story t = begin(false, false);
	const struct sim_ask ask = {.reply_len = 100},
			     slow = {.verb = SIM_SLOW, .arg = 3000, .reply_len = 5000};
	sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(1)));
	struct sim_call *c = sim_call(t.client, t.conn, &slow);
	sim_wait(t.s, MSEC(500));
	sim_end_move(t.client, 8001);
	assert_true(sim_run(t.s, SEC(10)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(2));
	/* and once more, between two calls */
	sim_end_move(t.client, 8002);
	c = sim_call(t.client, t.conn, &ask);
	assert_true(sim_run(t.s, SEC(10)));
	assert_ok(sim_call_err(c));
	sim_wait(t.s, SEC(5));
	assert_int_equal(sim_end_begun(t.server), 3);
	assert_int_equal(sim_end_repeated(t.server), 0);
	end(&t, "moved");
}

TEST_MAIN(T(a_first_call_and_a_second), T(a_call_that_must_say_who_calls),
	T(a_long_reply_to_an_unknown_address), T(a_store_with_large_datagrams), T(an_abort),
	T(a_channel_whose_last_call_still_runs), T(a_server_that_dies),
	T(a_request_and_a_reply_that_get_lost), T(a_hole_in_a_store),
	T(the_first_packet_of_a_request_that_gets_lost),
	T(the_last_packet_of_a_request_that_gets_lost), T(the_last_acknowledgement_that_gets_lost),
	T(the_tail_of_a_reply_that_gets_lost), T(a_server_that_has_no_room_for_a_second_call),
	T(a_store_that_is_given_up_in_the_middle),
	T(a_server_that_begins_anew_in_the_middle_of_a_call), T(a_window_that_closes_and_opens),
	T(a_path_that_shrinks), T(a_client_whose_nat_forgot_it))
