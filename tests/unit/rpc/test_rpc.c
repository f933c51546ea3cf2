/* SPDX-License-Identifier: BSD-2-Clause
 * Calls between two ports of this process, over the loopback. */
#include "tests/lib/test.h"

#include "cell/base/mtx.h"
#include "cell/proto/abort.h"
#include "tests/unit/rpc/sample.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WITH_ARENA(a)                                                                              \
	CLEANUP(arena) struct arena a;                                                             \
	arena_init(&a, 4 << 20)

static void a_unary_call_brings_its_result(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	WITH_ARENA(a);
	uint8_t blob[3000];
	for (size_t i = 0; i < sizeof(blob); i++)
		blob[i] = sample_byte(i);
	struct sample_echo_in in = {XDR_STR_OF("hello"), {blob, sizeof(blob)}};
	struct sample_echo_out out;
	struct rpc_result res = {.arena = &a};
	assert_ok(sample_call_echo(s->conn, &in, &out, &res));
	assert_true(xdr_str_is(out.text, "hello"));
	assert_int_equal(out.blob.len, sizeof(blob));
	assert_memory_equal(out.blob.p, blob, sizeof(blob));
	assert_int_equal(res.code, 0);
	sample_close(s);
}

static void arguments_and_results_may_span_many_packets(void **state)
{
	(void)state;
	for (int plain = 0; plain < 2; plain++) {
		struct sample *s = sample_open(&(struct sample_options){.plain = plain});
		WITH_ARENA(a);
		CLEANUP(heap) uint8_t *blob = mem_alloc(200000, 1);
		for (size_t i = 0; i < 200000; i++)
			blob[i] = sample_byte(i);
		struct sample_echo_in in = {XDR_STR_OF("x"), {blob, 200000}};
		struct sample_echo_out out;
		struct rpc_result res = {.arena = &a};
		assert_ok(sample_call_echo(s->conn, &in, &out, &res));
		assert_int_equal(out.blob.len, 200000);
		assert_memory_equal(out.blob.p, blob, 200000);
		sample_close(s);
	}
}

static void an_inline_call_brings_its_result(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	for (uint32_t i = 0; i < 100; i++) {
		struct sample_add_in in = {i, 1000};
		struct sample_add_out out;
		assert_ok(sample_call_add(s->conn, &in, &out, NULL));
		assert_int_equal(out.sum, i + 1000);
	}
	/* the connection's word went in, and is told when the connection is forgotten */
	sample_close(s);
}

static void fetch(struct sample *s, uint64_t length)
{
	struct sample_fetch_in in = {.length = length};
	struct sample_fetch_out out;
	struct rpc_call *call;
	uint64_t said, sum = 0, at = 0;
	assert_ok(rpc_begin(s->conn, &sample_iface.procs[sample_op_fetch], &in, &call));
	assert_ok(rpc_read_u64(call, &said));
	assert_int_equal(said, length);
	while (at < length) {
		const uint8_t *p;
		size_t n;
		assert_ok(rpc_read_run(call, length - at, &p, &n));
		assert_true(n > 0);
		for (size_t i = 0; i < n; i++)
			if (p[i] != sample_byte(at + i))
				fail_msg("byte %llu", (unsigned long long)(at + i));
		sum = sample_sum(sum, p, n);
		at += n;
	}
	assert_ok(rpc_end(call, &out, NULL));
	assert_int_equal(out.sum, sum);
}

static void a_split_call_carries_bytes_before_its_results(void **state)
{
	(void)state;
	static const uint64_t lengths[] = {0, 1, 1408, 1416, 1417, 16348, 65536, 1000000, 20000000};
	for (int plain = 0; plain < 2; plain++) {
		struct sample *s = sample_open(&(struct sample_options){.plain = plain});
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
			fetch(s, lengths[i]);
		sample_close(s);
	}
}

static void store(struct sample *s, uint64_t length, uint32_t read_only)
{
	struct sample_store_in in = {.length = length, .read_only = read_only};
	struct sample_store_out out;
	struct rpc_call *call;
	uint64_t sum = 0;
	assert_ok(rpc_begin(s->conn, &sample_iface.procs[sample_op_store], &in, &call));
	for (uint64_t at = 0; at < length;) {
		uint8_t piece[10000];
		size_t n = MIN(sizeof(piece), length - at);
		for (size_t i = 0; i < n; i++)
			piece[i] = sample_byte(at + i);
		sum = at < read_only || !read_only ?
			sample_sum(sum, piece, read_only ? MIN(n, read_only - at) : n) : sum;
		assert_ok(rpc_write(call, piece, n));
		at += n;
	}
	assert_ok(rpc_end(call, &out, NULL));
	assert_int_equal(out.sum, sum);
}

static void a_split_call_carries_bytes_behind_its_arguments(void **state)
{
	(void)state;
	static const uint64_t lengths[] = {0, 1, 1400, 1416, 16348, 65536, 1000000, 20000000};
	for (int plain = 0; plain < 2; plain++) {
		struct sample *s = sample_open(&(struct sample_options){.plain = plain});
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
			store(s, lengths[i], 0);
		sample_close(s);
	}
}

static void a_handler_may_answer_without_reading_all(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	store(s, 30000000, 100);
	store(s, 1000, 0);
	sample_close(s);
}

static void a_call_may_read_and_then_say_it_again(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	enum { N = 3000000 };
	CLEANUP(heap) uint8_t *b = mem_alloc(N, 1);
	CLEANUP(heap) uint8_t *c = mem_alloc(N, 1);
	for (size_t i = 0; i < N; i++)
		b[i] = sample_byte(i);
	struct sample_turn_in in = {N};
	struct sample_turn_out out;
	struct rpc_call *call;
	assert_ok(rpc_begin(s->conn, &sample_iface.procs[sample_op_turn], &in, &call));
	assert_ok(rpc_write(call, b, N));
	assert_ok(rpc_read(call, c, N));
	assert_memory_equal(b, c, N);
	uint8_t more;
	assert_err(rpc_read(call, &more, 1), AFS_EEOF);
	assert_ok(rpc_end(call, &out, NULL));
	sample_close(s);
}

static void a_short_stream_ends_a_read(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct sample_turn_in in = {1000};
	struct sample_turn_out out;
	struct rpc_call *call;
	struct rpc_result res = {0};
	assert_ok(rpc_begin(s->conn, &sample_iface.procs[sample_op_turn], &in, &call));
	assert_ok(rpc_write(call, "abc", 3));
	assert_err(rpc_end(call, &out, &res), AFS_EIO); /* what the FS column makes of EOF */
	assert_int_equal(res.code, abort_of_fs(AFS_EEOF));
	sample_close(s);
}

static void an_error_travels_as_its_abort_code(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct sample_fail_out out;
	struct rpc_result res = {0};
	assert_err(sample_call_fail(s->conn, &(struct sample_fail_in){.err = AFS_ENOENT}, &out, &res), AFS_ENOENT);
	assert_int_equal(res.code, UAE_BASE + 1);
	assert_err(sample_call_fail(s->conn, &(struct sample_fail_in){.code = 123456789}, &out, &res), AFS_EABORTED);
	assert_int_equal(res.code, 123456789);
	assert_err(sample_call_fail(s->conn, &(struct sample_fail_in){.code = -7}, &out, &res), err_of_fs(-7));
	assert_int_equal(res.code, -7);
	/* the connection is as good as before */
	assert_ok(sample_call_fail(s->conn, &(struct sample_fail_in){.err = AFS_OK}, &out, &res));
	assert_int_equal(res.code, 0);
	sample_await_done(s, 4);
	assert_int_equal(s->done_failed, 3);
	sample_close(s);
}

static void an_error_after_bytes_have_gone_is_still_an_abort(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct sample_fetch_in in = {.length = 5000000, .fail_at_end = 1};
	struct sample_fetch_out out;
	struct rpc_call *call;
	struct rpc_result res = {0};
	assert_ok(rpc_begin(s->conn, &sample_iface.procs[sample_op_fetch], &in, &call));
	afs_err err = AFS_OK;
	uint8_t b[5000];
	for (int i = 0; err == AFS_OK && i < 2000; i++)
		err = rpc_read(call, b, sizeof(b));
	assert_err(err, AFS_EIO);
	assert_err(rpc_end(call, &out, &res), AFS_EIO);
	assert_int_equal(res.code, abort_of_fs(AFS_EIO));
	sample_close(s);
}

/* --- what a stranger may send ------------------------------------------------------------------- */

static void put_nothing(struct xdr_out *x, const void *v)
{
	(void)x, (void)v;
}
static void put_words(struct xdr_out *x, const void *v)
{
	const uint32_t *words = v; /* count, then words */
	for (uint32_t i = 1; i <= words[0]; i++)
		xdr_put_u32(x, &words[i]);
}
static void get_nothing(struct xdr_in *x, void *v)
{
	(void)x, (void)v;
}

static void expect_code(struct sample *s, struct rpc_proc proc, const void *in, afs_err want, int32_t code)
{
	uint8_t out[64];
	struct rpc_result res = {0};
	proc.out_get = get_nothing;
	proc.out_size = 0;
	assert_err(rpc_invoke(s->conn, &proc, in, out, &res), want);
	assert_int_equal(res.code, code);
}

static void an_opcode_without_a_row_is_refused(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	for (int i = 0; i < 15; i++)
		expect_code(s, (struct rpc_proc){.op = 999999, .in_put = put_nothing}, NULL, AFS_EOPCODE, RXGEN_OPCODE);
	assert_int_equal(s->done, 0);
	sample_close(s);
}

static void arguments_that_do_not_decode_are_refused(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	/* too short */
	expect_code(s, (struct rpc_proc){.op = 2, .in_put = put_words}, (uint32_t[]){1, 5}, AFS_EDECODE, RXGEN_SS_UNMARSHAL);
	/* a count past its bound */
	expect_code(s, (struct rpc_proc){.op = 1, .in_put = put_words}, (uint32_t[]){2, 5000, 0}, AFS_EDECODE, RXGEN_SS_UNMARSHAL);
	/* garbage behind the arguments of a call that has no stream */
	expect_code(s, (struct rpc_proc){.op = 2, .in_put = put_words}, (uint32_t[]){3, 1, 2, 3}, AFS_EDECODE, RXGEN_SS_UNMARSHAL);
	/* a split call whose arguments end early */
	expect_code(s, (struct rpc_proc){.op = 3, .in_put = put_words}, (uint32_t[]){1, 1}, AFS_EDECODE, RXGEN_SS_UNMARSHAL);
	assert_int_equal(s->done, 0);
	sample_close(s);
}

static void arguments_without_end_are_refused(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_proc proc = sample_iface.procs[sample_op_echo];
	proc.shape = RPC_SPLIT;
	proc.in_put = put_words;
	struct rpc_call *call;
	/* a string of 3999 bytes and an opaque of 199999, of which none comes to an end in time */
	assert_ok(rpc_begin(s->conn, &proc, (uint32_t[]){0}, &call));
	static const uint8_t zeros[65536];
	afs_err err = AFS_OK;
	for (int i = 0; err == AFS_OK && i < 1000; i++)
		err = rpc_write(call, zeros, sizeof(zeros));
	struct rpc_result res = {0};
	uint8_t out[64];
	assert_err(rpc_end(call, out, &res), AFS_EDECODE);
	assert_int_equal(res.code, RXGEN_SS_UNMARSHAL);
	sample_close(s);
}

static void a_service_that_is_not_there_is_refused(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_iface other = sample_iface;
	other.service = 999;
	const struct rpc_conn_config to = {.peer = rpc_conn_peer(s->conn), .iface = &other};
	struct rpc_conn *conn;
	assert_ok(rpc_conn_new(s->client, &to, &conn));
	struct sample_add_out out;
	struct rpc_result res = {0};
	assert_err(sample_call_add(conn, &(struct sample_add_in){1, 2}, &out, &res), AFS_ENOSERVICE);
	rpc_conn_unref(conn);
	sample_close(s);
}

/* --- who may -------------------------------------------------------------------------------------- */

static void an_anonymous_caller_may_what_is_open_to_anyone(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_result res = {0};
	struct sample_user_out user;
	struct sample_admin_out admin;
	assert_err(sample_call_user(s->conn, &(struct sample_user_in){}, &user, &res), AFS_EACCESS);
	assert_int_equal(res.code, abort_of_fs(AFS_EACCESS));
	assert_err(sample_call_admin(s->conn, &(struct sample_admin_in){}, &admin, &res), AFS_EACCESS);
	sample_await_done(s, 2);
	assert_int_equal(s->done_failed, 2);
	sample_close(s);
	s = sample_open(&(struct sample_options){.no_anonymous = true});
	struct sample_add_out out;
	assert_err(sample_call_add(s->conn, &(struct sample_add_in){1, 2}, &out, &res), AFS_EACCESS);
	sample_close(s);
}

static void a_named_caller_may_what_its_name_and_level_allow(void **state)
{
	(void)state;
	for (enum rx_sec_level level = RX_LEVEL_CLEAR; level <= RX_LEVEL_CRYPT; level++) {
		struct sample *s = sample_open(&(struct sample_options){.name = "alice", .level = level});
		struct rpc_result res = {0};
		struct sample_user_out user;
		struct sample_admin_out admin;
		assert_ok(sample_call_user(s->conn, &(struct sample_user_in){}, &user, &res));
		assert_err(sample_call_admin(s->conn, &(struct sample_admin_in){}, &admin, &res), AFS_EACCESS);
		sample_close(s);
		s = sample_open(&(struct sample_options){.name = "admin", .level = level, .least = RX_LEVEL_AUTH});
		afs_err want = level < RX_LEVEL_AUTH ? AFS_ELEVEL : AFS_OK;
		assert_err(sample_call_admin(s->conn, &(struct sample_admin_in){}, &admin, &res), want);
		assert_int_equal(res.code, want ? rx_sec_code(AFS_ELEVEL) : 0);
		sample_close(s);
	}
}

static void a_caller_without_the_session_key_is_refused(void **state)
{
	(void)state;
	struct sample *s = sample_open(&(struct sample_options){.name = "liar", .level = RX_LEVEL_AUTH});
	struct rpc_result res = {0};
	struct sample_user_out user;
	assert_err(sample_call_user(s->conn, &(struct sample_user_in){}, &user, &res), AFS_ESEALED);
	assert_int_equal(res.code, rx_sec_code(AFS_ESEALED));
	sample_await_done(s, 0);
	sample_close(s);
}

static void sealed_calls_carry_bytes_at_every_level(void **state)
{
	(void)state;
	for (enum rx_sec_level level = RX_LEVEL_CLEAR; level <= RX_LEVEL_CRYPT; level++) {
		for (int plain = 0; plain < 2; plain++) {
			struct sample *s = sample_open(
				&(struct sample_options){.name = "alice", .level = level, .plain = plain});
			fetch(s, 3000000);
			store(s, 3000000, 0);
			store(s, 10, 0);
			WITH_ARENA(a);
			CLEANUP(heap) uint8_t *blob = mem_alloc(200000, 1);
			struct sample_echo_in in = {XDR_STR_OF("x"), {blob, 200000}};
			struct sample_echo_out out;
			struct rpc_result res = {.arena = &a};
			assert_ok(sample_call_echo(s->conn, &in, &out, &res));
			assert_int_equal(out.blob.len, 200000);
			sample_close(s);
		}
	}
}

/* --- many at once ---------------------------------------------------------------------------------- */

struct crowd {
	struct sample *s;
	unsigned n, id;
	afs_err err;
};

static void *crowd_main(void *arg)
{
	struct crowd *c = arg;
	for (uint32_t i = 0; i < c->n && c->err == AFS_OK; i++) {
		struct sample_add_out sum;
		c->err = sample_call_add(c->s->conn, &(struct sample_add_in){i, c->id}, &sum, NULL);
		if (c->err == AFS_OK && sum.sum != i + c->id)
			c->err = AFS_ECORRUPT;
		WITH_ARENA(a);
		struct rpc_result res = {.arena = &a};
		struct sample_list_out list;
		uint32_t n = (i * 37 + c->id * 101) % 9000;
		if (c->err == AFS_OK)
			c->err = sample_call_list(c->s->conn, &(struct sample_list_in){n}, &list, &res);
		if (c->err == AFS_OK && (list.items.n != n || (n && list.items.v[n - 1] != (n - 1) * 3)))
			c->err = AFS_ECORRUPT;
	}
	return NULL;
}

static void many_threads(const struct sample_options *options)
{
	struct sample *s = sample_open(options);
	enum { N = 24 };
	pthread_t t[N];
	struct crowd c[N];
	for (unsigned i = 0; i < N; i++) {
		c[i] = (struct crowd){.s = s, .n = 60, .id = i};
		assert_int_equal(pthread_create(&t[i], NULL, crowd_main, &c[i]), 0);
	}
	for (unsigned i = 0; i < N; i++) {
		pthread_join(t[i], NULL);
		assert_ok(c[i].err);
	}
	sample_close(s);
}

static void many_threads_call_over_one_conn(void **state)
{
	(void)state;
	many_threads(NULL);
	/* each further Rx connection proves itself with a copy of the token */
	many_threads(&(struct sample_options){.name = "alice", .level = RX_LEVEL_CRYPT});
}

static void more_calls_than_channels_wait_their_turn(void **state)
{
	(void)state;
	struct sample *s = sample_open(&(struct sample_options){.workers = 100});
	enum { N = 80 }; /* 16 connections of 4 */
	struct rpc_call *call[N];
	const struct rpc_proc *hold = &sample_iface.procs[sample_op_hold];
	for (unsigned i = 0; i < 64; i++)
		assert_ok(rpc_begin(s->conn, hold, &(struct sample_hold_in){0}, &call[i]));
	sample_await_held(s, 0, 64);
	struct crowd c[16];
	pthread_t t[16];
	for (unsigned i = 0; i < 16; i++) {
		c[i] = (struct crowd){.s = s, .n = 3, .id = i};
		assert_int_equal(pthread_create(&t[i], NULL, crowd_main, &c[i]), 0);
	}
	sample_open_gate(s, 0);
	struct sample_hold_out out;
	for (unsigned i = 0; i < 64; i++)
		assert_ok(rpc_end(call[i], &out, NULL));
	for (unsigned i = 0; i < 16; i++) {
		pthread_join(t[i], NULL);
		assert_ok(c[i].err);
	}
	sample_close(s);
}

static void many_calls_fly_without_threads(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_call *call[32];
	for (uint32_t i = 0; i < ARRAY_SIZE(call); i++)
		assert_ok(rpc_begin(s->conn, &sample_iface.procs[sample_op_add], &(struct sample_add_in){i, i}, &call[i]));
	for (uint32_t i = ARRAY_SIZE(call); i-- > 0;) {
		struct sample_add_out out;
		assert_ok(rpc_end(call[i], &out, NULL));
		assert_int_equal(out.sum, 2 * i);
	}
	sample_close(s);
}

static void a_handler_calls_its_caller_back_on_the_same_port(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	for (uint32_t i = 0; i < 20; i++) {
		struct sample_call_back_out out;
		assert_ok(sample_call_call_back(s->conn, &(struct sample_call_back_in){i, 5}, &out, NULL));
		assert_int_equal(out.sum, i + 5);
	}
	sample_close(s);
}

static void too_many_waiting_calls_are_refused_as_busy(void **state)
{
	(void)state;
	struct sample *s = sample_open(&(struct sample_options){.workers = 1});
	enum { CONNS = 3, EACH = 43 }; /* one runs and 128 wait */
	struct rpc_conn *conn[CONNS];
	struct rpc_call *call[CONNS * EACH];
	for (unsigned i = 0; i < CONNS * EACH; i++) {
		const struct rpc_conn_config to = {.peer = rpc_conn_peer(s->conn), .iface = &sample_iface};
		if (i % EACH == 0)
			assert_ok(rpc_conn_new(s->client, &to, &conn[i / EACH]));
		assert_ok(rpc_begin(conn[i / EACH], &sample_iface.procs[sample_op_hold], &(struct sample_hold_in){0}, &call[i]));
		if (i == 0)
			sample_await_held(s, 0, 1);
	}
	unsigned running, waiting = 0;
	for (int tries = 0; waiting < 128 && tries < 20000; tries++) {
		rpc_port_load(s->server, &running, &waiting);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	assert_int_equal(waiting, 128);

	struct sample_hold_out out;
	struct rpc_result res = {0};
	assert_err(sample_call_hold(s->conn, &(struct sample_hold_in){0}, &out, &res), AFS_EVBUSY);
	assert_int_equal(res.code, 110);
	struct rx_stats stats;
	rpc_port_stats(s->server, &stats);
	assert_int_equal(stats.refused_overload, 1);

	sample_open_gate(s, 0);
	for (unsigned i = 0; i < CONNS * EACH; i++)
		assert_ok(rpc_end(call[i], &out, NULL));
	for (unsigned i = 0; i < CONNS; i++)
		rpc_conn_unref(conn[i]);
	sample_close(s);
}

static void a_peer_that_asks_for_much_leaves_threads_to_others(void **state)
{
	(void)state;
	struct sample *s = sample_open(&(struct sample_options){.workers = 4});
	struct rpc_call *call[50];
	for (unsigned i = 0; i < ARRAY_SIZE(call); i++)
		assert_ok(rpc_begin(s->conn, &sample_iface.procs[sample_op_hold], &(struct sample_hold_in){0}, &call[i]));
	sample_await_held(s, 0, 3);
	/* every thread it may have is taken and 47 of its calls wait, when another address asks */
	const struct rpc_port_config config = {.name = "other", .ip = 0x7f000002, .pool = s->pool};
	const struct rpc_conn_config to = {.peer = rpc_conn_peer(s->conn), .iface = &sample_iface};
	struct rpc_port *port;
	struct rpc_conn *conn;
	assert_ok(rpc_port_open(&config, &port));
	assert_ok(rpc_conn_new(port, &to, &conn));
	mono_ns start = clk_mono();
	for (int i = 0; i < 20; i++) {
		struct sample_fail_out out;
		assert_ok(sample_call_fail(conn, &(struct sample_fail_in){0}, &out, NULL));
	}
	assert_true(clk_mono() - start < SEC(5));
	unsigned running, waiting;
	do { /* the last call is counted until its report is written, after the reply */
		rpc_port_load(s->server, &running, &waiting);
	} while (running > 3 && clk_mono() - start < SEC(5));
	assert_int_equal(running, 3);
	assert_int_equal(waiting, 47);
	rpc_conn_unref(conn);
	rpc_port_close(port);
	sample_open_gate(s, 0);
	struct sample_hold_out out;
	for (unsigned i = 0; i < ARRAY_SIZE(call); i++)
		assert_ok(rpc_end(call[i], &out, NULL));
	sample_close(s);
}

/* Times that the threads of this process named *-io were woken. */
static unsigned long io_wakeups(void)
{
	unsigned long sum = 0;
	DIR *dir = opendir("/proc/self/task");
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));) {
		char path[300], line[100], name[32] = "";
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", d->d_name);
		FILE *f = d->d_name[0] == '.' ? NULL : fopen(path, "r");
		unsigned long n = 0;
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "Name: %31s", name) != 1)
				(void)sscanf(line, "voluntary_ctxt_switches: %lu", &n); /* or another line */
		if (f)
			fclose(f);
		if (strstr(name, "-io"))
			sum += n;
	}
	closedir(dir);
	return sum;
}

static void an_idle_port_sleeps(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct sample_add_out out;
	for (uint32_t i = 0; i < 200; i++)
		assert_ok(sample_call_add(s->conn, &(struct sample_add_in){i, i}, &out, NULL));
	fetch(s, 1000000);
	assert_true(io_wakeups() > 0);
	nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 500000000}, NULL);
	unsigned long before = io_wakeups();
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	assert_in_range(io_wakeups() - before, 0, 4);
	/* and is there at once */
	mono_ns start = clk_mono();
	assert_ok(sample_call_add(s->conn, &(struct sample_add_in){1, 1}, &out, NULL));
	assert_true(clk_mono() - start < MSEC(500));
	sample_close(s);
}

/* --- ends ------------------------------------------------------------------------------------------- */

static void a_peer_that_is_not_there_is_dead(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_port *gone;
	const struct rpc_port_config config = {.name = "gone", .ip = 0x7f000001, .pool = s->pool};
	assert_ok(rpc_port_open(&config, &gone));
	const struct rpc_conn_config to = {.peer = {0x7f000001, rpc_port_number(gone)}, .iface = &sample_iface};
	rpc_port_close(gone);
	struct rpc_conn *conn;
	assert_ok(rpc_conn_new(s->client, &to, &conn));
	struct sample_add_out out;
	mono_ns start = clk_mono();
	assert_err(sample_call_add(conn, &(struct sample_add_in){1, 2}, &out, NULL), AFS_EDEAD);
	assert_true(clk_mono() - start < SEC(3)); /* by ICMP, long before the dead time */
	rpc_conn_unref(conn);
	sample_close(s);
}

static void a_call_is_cancelled_in_every_phase(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_call *call;
	const struct rpc_proc *procs = sample_iface.procs;
	static const uint8_t zeros[100000];
	for (int round = 0; round < 5; round++) {
		/* nothing sent */
		assert_ok(rpc_begin(s->conn, &procs[sample_op_turn], &(struct sample_turn_in){1000000}, &call));
		rpc_cancel(call);
		/* in the middle of its bytes */
		assert_ok(rpc_begin(s->conn, &procs[sample_op_turn], &(struct sample_turn_in){1000000}, &call));
		assert_ok(rpc_write(call, zeros, sizeof(zeros)));
		rpc_cancel(call);
		/* running */
		assert_ok(rpc_begin(s->conn, &procs[sample_op_hold], &(struct sample_hold_in){1}, &call));
		sample_await_held(s, 1, 1);
		rpc_cancel(call);
		/* in the middle of the reply */
		assert_ok(rpc_begin(s->conn, &procs[sample_op_fetch], &(struct sample_fetch_in){.length = 10000000}, &call));
		uint8_t b[5000];
		assert_ok(rpc_read(call, b, sizeof(b)));
		rpc_cancel(call);
		/* answered, unread */
		assert_ok(rpc_begin(s->conn, &procs[sample_op_add], &(struct sample_add_in){1, 2}, &call));
		rpc_cancel(call);
		fetch(s, 100000);
	}
	/* handlers were told: nobody stands at the gate for long */
	for (int i = 0; i < 500; i++) {
		mtx_lock(s->gate);
		unsigned held = s->held[1];
		mtx_unlock(s->gate);
		if (!held)
			break;
		assert_true(i < 499);
		const struct timespec tick = {.tv_nsec = 10000000};
		nanosleep(&tick, NULL);
	}
	sample_close(s);
}

static void *holder_main(void *arg)
{
	struct crowd *c = arg;
	struct sample_hold_out out;
	c->err = sample_call_hold(c->s->conn, &(struct sample_hold_in){2}, &out, NULL);
	return NULL;
}

static void closing_a_port_ends_running_calls(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct crowd c[6];
	pthread_t t[6];
	for (unsigned i = 0; i < 6; i++) {
		c[i] = (struct crowd){.s = s};
		assert_int_equal(pthread_create(&t[i], NULL, holder_main, &c[i]), 0);
	}
	sample_await_held(s, 2, 6);
	rpc_port_close(s->server);
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(t[i], NULL);
		assert_err(c[i].err, AFS_ERESTARTING);
	}
	const struct rpc_port_config config = {.name = "server", .ip = 0x7f000001, .pool = s->pool};
	assert_ok(rpc_port_open(&config, &s->server));
	sample_close(s);
}

static void closing_the_callers_port_ends_its_calls(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct crowd c[6];
	pthread_t t[6];
	for (unsigned i = 0; i < 6; i++) {
		c[i] = (struct crowd){.s = s};
		assert_int_equal(pthread_create(&t[i], NULL, holder_main, &c[i]), 0);
	}
	sample_await_held(s, 2, 6);
	rpc_port_close(s->client);
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(t[i], NULL);
		assert_err(c[i].err, AFS_ECANCELLED);
	}
	struct sample_add_out out;
	assert_err(sample_call_add(s->conn, &(struct sample_add_in){1, 2}, &out, NULL), AFS_ECANCELLED);
	rpc_conn_unref(TAKE(s->conn));
	const struct rpc_port_config config = {.name = "client", .ip = 0x7f000001, .pool = s->pool};
	assert_ok(rpc_port_open(&config, &s->client));
	sample_close(s);
}

static void a_word_kept_with_a_connection_is_told_of_its_end(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct sample_add_out out;
	assert_ok(sample_call_add(s->conn, &(struct sample_add_in){1, 2}, &out, NULL));
	assert_ok(sample_call_add(s->conn, &(struct sample_add_in){1, 2}, &out, NULL));
	assert_int_equal(s->gone, 0);
	rpc_port_close(TAKE(s->server));
	assert_int_equal(s->gone, 1);
	const struct rpc_port_config config = {.name = "server", .ip = 0x7f000001, .pool = s->pool};
	assert_ok(rpc_port_open(&config, &s->server));
	sample_close(s);
}

/* --- short of memory ---------------------------------------------------------------------------- */

static bool call_short_of_memory(struct sample *s, long after, const struct rpc_proc *proc, const void *in, void *out)
{
	WITH_ARENA(a);
	struct rpc_result res = {.arena = &a};
	struct rpc_call *call;
	mono_ns start = clk_mono();
	mem_fail_after(after);
	afs_err err = rpc_begin(s->conn, proc, in, &call);
	if (err == AFS_OK) {
		for (int i = 0; i < 20 && !mem_has_failed(); i++)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		bool failed = mem_has_failed();
		mem_fail_after(-1);
		/* what was lost for want of memory is sent again */
		err = rpc_end(call, out, &res);
		/* or refused: by its service, the pool of workers, or the transport (-1) */
		if (err != AFS_OK && err != AFS_ENOMEM && res.code != 110 && res.code != RX_CALL_DEAD)
			fail_msg("after %ld: %s, code %d", after, afs_err_name(err), res.code);
		assert_true(clk_mono() - start < SEC(8)); /* by one repetition, not by the dead time */
		return failed;
	}
	mem_fail_after(-1);
	assert_err(err, AFS_ENOMEM);
	return true;
}

static void want_of_memory_fails_a_call_and_nothing_else(void **state)
{
	(void)state;
	static uint8_t blob[20000];
	struct sample_echo_in echo = {XDR_STR_OF("hello"), {blob, sizeof(blob)}};
	struct sample_echo_out echo_out;
	struct sample_add_in add = {1, 2};
	struct sample_add_out add_out;
	for (int warm = 0; warm < 2; warm++) {
		long n = 0;
		for (bool failed = true; failed && n < 400; n += n < 24 ? 1 : 13) { /* a repetition takes 1 s */
			struct sample *s = sample_open(NULL);
			if (warm)
				assert_ok(sample_call_add(s->conn, &add, &add_out, NULL));
			failed = call_short_of_memory(s, n, &sample_iface.procs[sample_op_echo], &echo, &echo_out);
			assert_ok(sample_call_add(s->conn, &add, &add_out, NULL));
			assert_int_equal(add_out.sum, 3);
			sample_close(s);
		}
		assert_in_range(n, 3, 399);
	}
}

struct starved {
	struct sample *s;
	afs_err err;
	struct rpc_result res;
	struct sample_echo_out out;
	struct arena arena;
};

static void *call_starved(void *arg)
{
	struct starved *t = arg;
	uint8_t blob[3000] = {1, 2, 3};
	const struct sample_echo_in in = {XDR_STR_OF("hello"), {blob, sizeof(blob)}};
	t->res.arena = &t->arena;
	t->err = sample_call_echo(t->s->conn, &in, &t->out, &t->res);
	return NULL;
}

static uint64_t pool_waits(struct sample *s)
{
	struct rx_buf_pool_stats st;
	rx_buf_pool_stats(s->pool, &st);
	return st.waits;
}

static void a_writer_waits_while_all_buffers_are_in_use(void **state)
{
	(void)state;
	for (int close_meanwhile = 0; close_meanwhile < 2; close_meanwhile++) {
		struct sample *s = sample_open(&(struct sample_options){.pool_bytes = 12 << 20});
		fetch(s, 1000);
		CLEANUP(heap) struct rx_buf **all = mem_new_array(8192, struct rx_buf *);
		size_t n = 0;
		while (n < 8192 && (all[n] = rx_buf_get(s->pool, 100)))
			n++;
		assert_in_range(n, 1, 8191);
		struct starved t = {.s = s};
		arena_init(&t.arena, 1 << 20);
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, call_starved, &t), 0);
		while (!pool_waits(s))
			sched_yield();
		if (close_meanwhile) {
			rpc_port_close(s->client);
			pthread_join(thread, NULL);
			assert_err(t.err, AFS_ECANCELLED);
		}
		while (n)
			rx_buf_unref(all[--n]);
		if (!close_meanwhile) {
			pthread_join(thread, NULL);
			assert_ok(t.err);
			assert_int_equal(t.out.blob.len, 3000);
		}
		arena_fini(&t.arena);
		if (close_meanwhile) {
			rpc_conn_unref(TAKE(s->conn));
			const struct rpc_port_config config = {.name = "client", .ip = 0x7f000001, .pool = s->pool};
			assert_ok(rpc_port_open(&config, &s->client));
		} else {
			fetch(s, 100000);
		}
		sample_close(s);
	}
}

static void *fetch_much(void *arg)
{
	fetch(arg, 6000000);
	return NULL;
}

static void many_that_write_share_a_pool_that_is_too_small_for_all(void **state)
{
	(void)state;
	struct sample *s = sample_open(&(struct sample_options){.pool_bytes = 12 << 20});
	pthread_t threads[8];
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fetch_much, s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	sample_close(s);
}

static void want_of_memory_keeps_a_port_from_opening(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_port *port;
	const struct rpc_port_config config = {.name = "third", .ip = 0x7f000001, .pool = s->pool};
	long n = 0;
	for (;; n++) {
		mem_fail_after(n);
		afs_err err = rpc_port_open(&config, &port);
		mem_fail_after(-1);
		if (err == AFS_OK)
			break;
		assert_err(err, AFS_ENOMEM);
	}
	assert_true(n >= 2);
	rpc_port_close(port);
	sample_close(s);
}

static void a_port_in_use_is_refused(void **state)
{
	(void)state;
	struct sample *s = sample_open(NULL);
	struct rpc_port *port;
	const struct rpc_port_config config = {
		.name = "second", .ip = 0x7f000001, .port = rpc_port_number(s->server), .pool = s->pool};
	assert_err(rpc_port_open(&config, &port), AFS_EADDRINUSE);
	sample_close(s);
}

TEST_MAIN(T(a_writer_waits_while_all_buffers_are_in_use),
	T(many_that_write_share_a_pool_that_is_too_small_for_all), T(a_unary_call_brings_its_result), T(arguments_and_results_may_span_many_packets),
	T(an_inline_call_brings_its_result), T(a_split_call_carries_bytes_before_its_results),
	T(a_split_call_carries_bytes_behind_its_arguments), T(a_handler_may_answer_without_reading_all),
	T(a_call_may_read_and_then_say_it_again), T(a_short_stream_ends_a_read),
	T(an_error_travels_as_its_abort_code), T(an_error_after_bytes_have_gone_is_still_an_abort),
	T(an_opcode_without_a_row_is_refused), T(arguments_that_do_not_decode_are_refused),
	T(arguments_without_end_are_refused), T(a_service_that_is_not_there_is_refused),
	T(an_anonymous_caller_may_what_is_open_to_anyone), T(a_named_caller_may_what_its_name_and_level_allow), T(a_caller_without_the_session_key_is_refused),
	T(sealed_calls_carry_bytes_at_every_level), T(many_threads_call_over_one_conn),
	T(more_calls_than_channels_wait_their_turn), T(many_calls_fly_without_threads),
	T(a_handler_calls_its_caller_back_on_the_same_port), T(too_many_waiting_calls_are_refused_as_busy),
	T(a_peer_that_asks_for_much_leaves_threads_to_others), T(an_idle_port_sleeps),
	T(a_peer_that_is_not_there_is_dead), T(a_call_is_cancelled_in_every_phase),
	T(closing_a_port_ends_running_calls), T(closing_the_callers_port_ends_its_calls),
	T(a_word_kept_with_a_connection_is_told_of_its_end), T(want_of_memory_fails_a_call_and_nothing_else),
	T(want_of_memory_keeps_a_port_from_opening), T(a_port_in_use_is_refused))
