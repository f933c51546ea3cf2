/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whole afternoons: three ends that call each other on a network whose faults change every minute or so,
 * from none to a third of all datagrams lost, seconds of delay, turned bits, a path that shrinks, ends that
 * restart, hear nothing, say nothing, or sleep.  In all of it
 *   - no call runs twice in one life of a server;
 *   - no wrong byte is taken for a right one;
 *   - no call outlives its deadline;
 *   - buffers stay within what windows and calls allow;
 * and when the faults stop, everything that was begun ends, new calls succeed, and nothing is left behind.
 *
 * Each seed is half an hour.  Seeds that once failed are in seeds.txt and run first. */
#include "cell/base/mem.h"
#include "tests/lib/test.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENDS = 3, CONNS = 6, SEEDS = 110, LIFE_S = 1800, POOL_MOST = 24 << 20 };
static const int64_t deadline = SEC(150);

struct life {
	struct sim *s;
	struct sim_end *ends[ENDS]; /* the last only serves: it may restart */
	struct rx_conn *conns[CONNS];
	struct sim_call *calls[4096];
	unsigned count;
};

static uint32_t below(struct life *l, uint32_t n) { return sim_random(l->s) % n; }
static bool one_in(struct life *l, uint32_t n) { return below(l, n) == 0; }

static void conn_renew(struct life *l, int i)
{
	struct sim_end *from = l->ends[i % 2], *to = l->ends[i < 2 ? 1 - i % 2 : 2];
	struct rx_conn_config c = {.hard_ns = deadline};
	if (l->conns[i])
		sim_disconnect(from, l->conns[i]);
	l->conns[i] = sim_connect_config(from, to, true, &c);
	assert_non_null(l->conns[i]);
}

static void quiet(struct life *l)
{
	*sim_network(l->s) = (struct sim_net){.delay = USEC(300), .jitter = USEC(50)};
	for (int i = 0; i < ENDS; i++) {
		sim_end_cut(l->ends[i], false);
		sim_end_half(l->ends[i], false, false);
	}
}

static void new_faults(struct life *l)
{
	struct sim_net *net = sim_network(l->s);
	quiet(l);
	if (one_in(l, 4))
		return;
	net->delay = one_in(l, 6) ? MSEC(below(l, 5000)) : USEC(20) << below(l, 12);
	net->jitter = one_in(l, 2) ? net->delay / (1 + below(l, 8)) + 1 : 0;
	net->loss_ppm = one_in(l, 2) ? below(l, 300000) : 0;
	net->dup_ppm = one_in(l, 3) ? below(l, 200000) : 0;
	net->reorder_ppm = one_in(l, 3) ? below(l, 300000) : 0;
	net->flip_ppm = one_in(l, 4) ? below(l, 20000) : 0;
	net->bytes_per_sec = one_in(l, 3) ? 100000u << below(l, 8) : 0;
	net->datagram_max = one_in(l, 3) ? (uint32_t[]){1444, 1400, 4324, 9000}[below(l, 4)] : 0;
	net->no_pieces = one_in(l, 2);
	const unsigned who = below(l, ENDS);
	switch (below(l, 8)) {
	case 0:
		sim_end_cut(l->ends[who], true);
		break;
	case 1:
		sim_end_half(l->ends[who], true, false);
		break;
	case 2:
		sim_end_half(l->ends[who], false, true);
		break;
	case 3:
		sim_end_restart(l->ends[ENDS - 1]);
		break;
	case 4:
		sim_end_jump(l->ends[who], MSEC(1) << below(l, 18));
		break;
	case 5:
		sim_end_move(l->ends[below(l, 2)], (uint16_t)(10000 + below(l, 50000)));
		break;
	default:
		break;
	}
}

static void begin_call(struct life *l)
{
	const int i = (int)below(l, CONNS);
	if (rx_conn_error(l->conns[i], NULL) != AFS_OK || one_in(l, 20))
		conn_renew(l, i);
	const struct sim_ask ask = {
		.verb = (enum sim_verb[]){SIM_ECHO_LEN, SIM_ECHO_LEN, SIM_ECHO_LEN, SIM_ABORT,
			SIM_SLOW, SIM_EARLY}[below(l, 6)],
		.arg = 1 + (int32_t)below(l, 3000),
		.request_len = below(l, 1u << below(l, 17)),
		.reply_len = below(l, 1u << below(l, 17)),
	};
	struct sim_call *c = sim_call(l->ends[i % 2], l->conns[i], &ask);
	if (c && l->count < ARRAY_SIZE(l->calls))
		l->calls[l->count++] = c;
}

static void judge(struct life *l, const char *when)
{
	const uint64_t seed = sim_seed(l->s);
	for (int i = 0; i < ENDS; i++)
		if (sim_end_repeated(l->ends[i]))
			fail_msg("seed %" PRIu64 ", %s: a call ran twice", seed, when);
	if (sim_pool_used(l->s) > POOL_MOST)
		fail_msg("seed %" PRIu64 ", %s: %zu bytes of buffers", seed, when,
			sim_pool_used(l->s));
	for (unsigned i = 0; i < l->count; i++) {
		struct sim_call *c = l->calls[i];
		if (!sim_call_over(c))
			continue;
		if (sim_call_took(c) > deadline + SEC(2))
			fail_msg("seed %" PRIu64 ", %s: call %u took %.1f s (%s)", seed, when, i,
				(double)sim_call_took(c) / 1e9, afs_err_name(sim_call_err(c)));
	}
}

static void live(uint64_t seed)
{
	static struct life l;
	const struct sim_net none = {};
	l = (struct life){.s = sim_new(seed, &none)};
	for (int i = 0; i < ENDS; i++) {
		const struct sim_end_config ec = {.secured = true,
			.window = one_in(&l, 2) ? 4 + below(&l, 252) : 0,
			.read_pause = one_in(&l, 4) ? USEC(100) << below(&l, 6) : 0};
		l.ends[i] = sim_end_new(l.s, &ec);
	}
	for (int i = 0; i < CONNS; i++)
		conn_renew(&l, i);
	const mono_ns end = sim_now(l.s) + SEC(LIFE_S);
	mono_ns change = sim_now(l.s);
	while (sim_now(l.s) < end) {
		if (sim_now(l.s) >= change) {
			new_faults(&l);
			change = sim_now(l.s) + SEC(5 + below(&l, 120));
		}
		for (uint32_t n = one_in(&l, 8) ? 12 : 1 + below(&l, 2); n--;)
			begin_call(&l);
		sim_wait(l.s, MSEC(below(&l, 20000)));
		judge(&l, "under way");
	}
	quiet(&l);
	if (!sim_run(l.s, deadline + SEC(5)))
		fail_msg("seed %" PRIu64 ": a call hangs although the network is well", seed);
	judge(&l, "at the end");
	for (int i = 0; i < CONNS; i++) {
		conn_renew(&l, i);
		const struct sim_ask ask = {.request_len = 20000, .reply_len = 20000};
		struct sim_call *c = sim_call(l.ends[i % 2], l.conns[i], &ask);
		if (!c || !sim_run(l.s, SEC(30)) || sim_call_err(c) != AFS_OK)
			fail_msg("seed %" PRIu64 ": a new call fails although the network is well",
				seed);
	}
	for (int i = 0; i < CONNS; i++)
		sim_disconnect(l.ends[i % 2], l.conns[i]);
	sim_wait(l.s, SEC(900));
	if (sim_pool_used(l.s))
		fail_msg("seed %" PRIu64 ": buffers are kept", seed);
	sim_free(l.s);
}

static void seeds_that_once_failed(void **state)
{
	(void)state;
	const char *top = getenv("top_srcdir");
	CLEANUP(str) char *path = mem_printf("%s/tests/sim/seeds.txt", top ? top : ".");
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	char line[200];
	while (fgets(line, sizeof(line), f)) {
		char *end;
		const uint64_t seed = strtoull(line, &end, 10);
		if (end != line)
			live(seed);
	}
	fclose(f);
}

static void afternoons_of_every_kind_of_trouble(void **state)
{
	(void)state;
	const char *first = getenv("SIM_FIRST");
	const uint64_t from = first ? strtoull(first, NULL, 10) : 1, n = sim_seeds(SEEDS);
	for (uint64_t seed = from; seed < from + n; seed++)
		live(seed);
	print_message("# %.0f simulated hours\n", (double)n * LIFE_S / 3600);
}

TEST_MAIN(T(seeds_that_once_failed), T(afternoons_of_every_kind_of_trouble))
