/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How well the transport fills paths: simulated time only, so the figures are the same on any machine and
 * under any load.  Beside each stands the same call with a receiver that announces 32 packets, as stock ones
 * do, and our own recovery: more than a stock sender would get.
 *
 *     tests/sim/bench_paths [megabytes per call [seeds]] */
#include "cell/base/clk.h"
#include "tests/lib/test.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINK = 125000000, QUEUE = 256 << 10 };

static double mb_per_sec(
	uint64_t seed, const struct sim_net *net, uint32_t window, uint64_t bytes, bool store)
{
	struct sim *s = sim_new(seed, net);
	const struct sim_end_config ec = {.window = window};
	struct sim_end *client = sim_end_new(s, &ec), *server = sim_end_new(s, &ec);
	struct rx_conn *conn = sim_connect(client, server, false);
	const struct sim_ask ask = {
		.request_len = store ? bytes : 0, .reply_len = store ? 0 : bytes};
	struct sim_call *c = sim_call(client, conn, &ask);
	if (!sim_run(s, SEC(36000)) || sim_call_err(c) != AFS_OK) {
		printf("seed %llu: not done\n", (unsigned long long)seed);
		exit(1);
	}
	const double took = (double)sim_call_took(c) / 1e9;
	rx_conn_unref(conn);
	sim_free(s);
	return (double)bytes / took / 1e6;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(
	const struct sim_net *net, uint32_t window, uint64_t bytes, bool store, int seeds)
{
	double v[64];
	for (int i = 0; i < seeds; i++)
		v[i] = mb_per_sec((uint64_t)i + 1, net, window, bytes, store);
	qsort(v, (size_t)seeds, sizeof(*v), by_value);
	return v[seeds / 2];
}

int main(int argc, char **argv)
{
	const uint64_t bytes = (uint64_t)(argc > 1 ? atoi(argv[1]) : 16) << 20;
	const int seeds = argc > 2 ? MIN(atoi(argv[2]), 64) : 5;
	static const int64_t rtts[] = {USEC(200), MSEC(10), MSEC(50), MSEC(200)};
	static const uint32_t losses[] = {0, 1000, 10000, 50000};
	printf("MB/s of one call of %llu MB over 1 Gbit/s; ours, with 32 packets, how many times\n",
		(unsigned long long)bytes >> 20);
	for (int large = 0; large < 2; large++) {
		for (size_t r = 0; r < ARRAY_SIZE(rtts); r++) {
			for (size_t l = 0; l < ARRAY_SIZE(losses); l++) {
				const struct sim_net net = {.delay = rtts[r] / 2,
					.loss_ppm = losses[l],
					.bytes_per_sec = LINK,
					.queue_bytes = QUEUE,
					.datagram_max = large ? 8972 : 1472};
				const struct sim_net small = {.delay = rtts[r] / 2,
					.loss_ppm = losses[l],
					.bytes_per_sec = LINK,
					.queue_bytes = QUEUE,
					.datagram_max = 1472};
				const double ours = median(&net, 0, bytes, false, seeds);
				const double stock = median(&small, 32, bytes, false, seeds);
				printf("%s  %6.1f ms  %4.1f %%  %8.2f  %8.2f  %6.2f%s\n",
					large ? "8972" : "1444", (double)rtts[r] / 1e6,
					losses[l] / 1e4, ours, stock, ours / stock,
					ours < stock ? "  SLOWER" : "");
			}
		}
	}
	return 0;
}
