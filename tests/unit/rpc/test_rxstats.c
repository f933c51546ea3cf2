/* SPDX-License-Identifier: BSD-2-Clause
 * RXSTATS beside a service: what it counts, for whom, and who may switch it. */
#include "tests/lib/test.h"

#include "cell/proto/abort.h"
#include "rx/rpc/engine.h"
#include "rx/rpc/rxstats.h"
#include "tests/unit/rpc/sample.h"

#include <string.h>
#include <time.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX rxstats
#define RPC_ROWS "rx/rpc/rxstats.rpc"
#include "rx/xdr/iface_pass.h"

/* Words of an entry (debug-stats.md §2.1). */
enum { PEER, PORT, IS_SERVER, IFACE, TOTAL, INDEX, CALLS_HI, CALLS, SENT_HI, SENT, CAME_HI, CAME,
	QUEUE_SUM, QUEUE_LEAST = 16, QUEUE_MOST = 18, RUN_SUM = 20, RUN_LEAST = 24, RUN_MOST = 26 };

struct world {
	struct sample *s;
	struct rpc_conn *stats; /* client -> server */
	struct arena arena;
};

static void world_open(struct world *w, const char *name)
{
	w->s = sample_open(&(struct sample_options){.name = name, .level = RX_LEVEL_AUTH});
	const struct rpc_conn_config config = {
		.peer = {0x7f000001, rpc_port_number(w->s->server)},
		.iface = &rxstats_iface,
		.sec = name ? sample_token(name, RX_LEVEL_AUTH) : NULL,
	};
	assert_ok(rpc_conn_new(w->s->client, &config, &w->stats));
	arena_init(&w->arena, 4 << 20);
}

static void world_close(struct world *w)
{
	arena_fini(&w->arena);
	rpc_conn_unref(w->stats);
	sample_close(w->s);
}

static struct rxstats_retrieve_process_out process_stats(struct world *w)
{
	struct rxstats_retrieve_process_out out;
	struct rpc_result res = {.arena = &w->arena};
	assert_ok(rxstats_call_retrieve_process(w->stats, &(struct rxstats_retrieve_process_in){1}, &out, &res));
	assert_int_equal(out.serverVersion, 1);
	assert_int_equal(out.stats.n, out.stat_count * RPC_STATS_ENTRY);
	return out;
}

static struct rxstats_retrieve_peer_out peer_stats(struct world *w)
{
	struct rxstats_retrieve_peer_out out;
	struct rpc_result res = {.arena = &w->arena};
	assert_ok(rxstats_call_retrieve_peer(w->stats, &(struct rxstats_retrieve_peer_in){1}, &out, &res));
	assert_int_equal(out.stats.n, out.stat_count * RPC_STATS_ENTRY);
	return out;
}

static const uint32_t *entry_of(const uint32_t *v, uint32_t n, uint32_t iface, uint32_t row)
{
	for (uint32_t i = 0; i < n; i += RPC_STATS_ENTRY)
		if (v[i + IFACE] == iface && v[i + INDEX] == row)
			return v + i;
	return NULL;
}

static void add(struct world *w, unsigned times)
{
	struct sample_add_out out;
	for (unsigned i = 0; i < times; i++)
		assert_ok(sample_call_add(w->s->conn, &(struct sample_add_in){i, 1}, &out, NULL));
}

/* A call is counted after its answer left, so a counter may be a moment behind. */
static const uint32_t *await_calls(struct world *w, uint32_t row, uint32_t calls)
{
	for (int i = 0; i < 5000; i++) {
		arena_fini(&w->arena);
		struct rxstats_retrieve_process_out out = process_stats(w);
		const uint32_t *e = entry_of(out.stats.v, out.stats.n, 77, row);
		if (e && e[CALLS] >= calls)
			return e;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	fail_msg("never counted");
	return NULL;
}

static void nothing_is_gathered_before_it_is_enabled(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, NULL);
	add(&w, 3);
	struct rxstats_retrieve_process_out out = process_stats(&w);
	/* as stock: 00000001 and zeros */
	assert_int_equal(out.clock_sec | out.clock_usec | out.stat_count | out.stats.n, 0);
	struct rxstats_query_process_out on;
	struct rxstats_query_peer_out peer_on;
	struct rxstats_query_version_out version;
	assert_ok(rxstats_call_query_process(w.stats, &(struct rxstats_query_process_in){}, &on, NULL));
	assert_int_equal(on.on, 0);
	assert_ok(rxstats_call_query_peer(w.stats, &(struct rxstats_query_peer_in){}, &peer_on, NULL));
	assert_int_equal(peer_on.on, 0);
	assert_ok(rxstats_call_query_version(w.stats, &(struct rxstats_query_version_in){}, &version, NULL));
	assert_int_equal(version.version, 1);
	world_close(&w);
}

static void only_an_administrator_switches(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct world w;
		world_open(&w, named ? "alice" : NULL);
		struct rpc_result res = {0};
#define REFUSED(call, in)                                                                          \
	assert_true(rxstats_call_##call(w.stats, &(struct rxstats_##call##_in)in,                 \
			    &(struct rxstats_##call##_out){}, &res) != AFS_OK);                     \
	assert_int_equal(res.code, 1)
		REFUSED(enable_process, {});
		REFUSED(enable_peer, {});
		REFUSED(disable_process, {});
		REFUSED(disable_peer, {});
		REFUSED(clear_process, {1});
		REFUSED(clear_peer, {1});
		world_close(&w);
	}
}

static void calls_are_counted_with_their_bytes_and_times(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, "admin");
	assert_ok(rxstats_call_enable_process(w.stats, &(struct rxstats_enable_process_in){}, &(struct rxstats_enable_process_out){}, NULL));
	add(&w, 5);
	const uint32_t *e = await_calls(&w, sample_op_add, 5);
	assert_int_equal(e[CALLS], 5);
	assert_int_equal(e[PEER], UINT32_MAX);
	assert_int_equal(e[IS_SERVER], 0);
	assert_int_equal(e[TOTAL], sample_iface.count);
	/* opcode and two words in, one word out, and what the level adds on its way in */
	assert_int_equal(e[SENT], 5 * 4);
	assert_in_range(e[CAME], 5 * 12, 5 * 24);
	assert_in_range(e[RUN_LEAST] * UINT64_C(1000000) + e[RUN_LEAST + 1], 0,
		e[RUN_MOST] * UINT64_C(1000000) + e[RUN_MOST + 1]);
	assert_true(e[RUN_LEAST] < 9999999);
	/* a procedure that was not called shows stock's least time */
	const uint32_t *idle = await_calls(&w, sample_op_fetch, 0);
	assert_int_equal(idle[CALLS], 0);
	assert_int_equal(idle[RUN_LEAST], 9999999);

	assert_ok(rxstats_call_clear_process(w.stats, &(struct rxstats_clear_process_in){1}, &(struct rxstats_clear_process_out){}, NULL));
	e = await_calls(&w, sample_op_add, 0);
	assert_int_equal(e[CALLS], 0);
	assert_int_equal(e[SENT], 5 * 4);
	assert_ok(rxstats_call_disable_process(w.stats, &(struct rxstats_disable_process_in){}, &(struct rxstats_disable_process_out){}, NULL));
	assert_int_equal(process_stats(&w).stat_count, 0);
	world_close(&w);
}

static void a_peer_has_figures_of_its_own(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, "admin");
	assert_ok(rxstats_call_enable_peer(w.stats, &(struct rxstats_enable_peer_in){}, &(struct rxstats_enable_peer_out){}, NULL));
	add(&w, 2);
	const uint32_t *e = NULL;
	for (int i = 0; i < 5000 && !(e && e[CALLS] == 2); i++) {
		arena_fini(&w.arena);
		struct rxstats_retrieve_peer_out out = peer_stats(&w);
		e = entry_of(out.stats.v, out.stats.n, 77, sample_op_add);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	assert_non_null(e);
	assert_int_equal(e[CALLS], 2);
	assert_int_equal(e[PEER], 0x7f000001);
	assert_int_equal(e[PORT], rpc_port_number(w.s->client));
	assert_int_equal(process_stats(&w).stat_count, 0);
	world_close(&w);
}

static void the_table_of_peers_is_bounded(void **state)
{
	(void)state;
	struct rpc_stats *st = rpc_stats_new();
	assert_non_null(st);
	struct world w;
	world_open(&w, "admin");
	assert_ok(rxstats_call_enable_peer(w.stats, &(struct rxstats_enable_peer_in){}, &(struct rxstats_enable_peer_out){}, NULL));
	/* the port's own statistics are fed as its calls do */
	struct rpc_stats_call call = {.iface = &sample_iface, .proc = &sample_iface.procs[sample_op_add]};
	for (uint32_t i = 0; i < 1000; i++) {
		call.peer = (struct rx_addr){0x0a000000 + i, 7001};
		call.now = i + 1;
		rpc_stats_note(st, &call); /* off: nothing happens */
		rpc_stats_note(w.s->server->stats, &call);
	}
	struct rxstats_retrieve_peer_out out = peer_stats(&w);
	assert_true(out.stat_count <= RPC_STATS_PEERS * RPC_STATS_IFACES * 64);
	unsigned peers = 0;
	for (uint32_t i = 0; i < out.stats.n; i += RPC_STATS_ENTRY)
		peers += out.stats.v[i + IFACE] == 77 && out.stats.v[i + INDEX] == 0;
	assert_in_range(peers, 1, RPC_STATS_PEERS);
	rpc_stats_free(st);
	world_close(&w);
}

TEST_MAIN(T(nothing_is_gathered_before_it_is_enabled), T(only_an_administrator_switches),
	T(calls_are_counted_with_their_bytes_and_times), T(a_peer_has_figures_of_its_own),
	T(the_table_of_peers_is_bounded))
