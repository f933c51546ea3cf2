/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How fast Rx is between two processes: bulk in both directions, small calls, and what they cost.
 *
 *   rx_bench [-m MIB] [-n CALLS] [-t THREADS] [-d MAX_DATAGRAM] [-p] [-l LEVEL] [-a ADDRESS]
 *   rx_bench -s PORT            serves until its input ends
 *   rx_bench -c ADDRESS:PORT    measures against that one
 *     -p  plain datagrams, as where the kernel has no UDP_SEGMENT and UDP_GRO
 *     -l  clear, auth or crypt: rxkad at that level instead of rxnull
 *     -a  address that the server binds and the client calls (default 127.0.0.1)
 *
 * CPU and context switches are of both processes together, all threads, per MiB or per call. */
#include "cell/base/clk.h"
#include "cell/base/mem.h"
#include "cell/base/rand.h"
#include "cell/proto/abort.h"
#include "rx/io/port.h"
#include "rx/sec/rxkad.h"

#define XDR_ROWS "tests/bench/rx_bench.def"
#include "rx/xdr/struct_pass.h"
#define XDR_ROWS "tests/bench/rx_bench.def"
#include "rx/xdr/codec_pass.h"
#define RPC_WANT_INDEX
#define RPC_PREFIX bench
#define RPC_ROWS "tests/bench/rx_bench.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_PROCS
#define RPC_PREFIX bench
#define RPC_ROWS "tests/bench/rx_bench.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_HANDLERS
#define RPC_PREFIX bench
#define RPC_ROWS "tests/bench/rx_bench.rpc"
#include "rx/xdr/iface_pass.h"

static const struct rpc_iface bench_iface = {
	.name = "BENCH",
	.service = 7,
	.procs = bench_procs,
	.count = ARRAY_SIZE(bench_procs),
	.args_max = 4096,
	.abort_of = abort_of_fs,
	.err_of = err_of_fs,
};
#define RPC_WANT_STUBS
#define RPC_PREFIX bench
#define RPC_ROWS "tests/bench/rx_bench.rpc"
#include "rx/xdr/iface_pass.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint8_t content[65536];

static afs_err send_bytes(struct rpc_call *call, uint64_t length)
{
	while (length) {
		uint8_t *p;
		size_t n;
		TRY(rpc_write_room(call, MIN(length, sizeof(content)), &p, &n));
		memcpy(p, content, n); /* as a read from the page cache would */
		TRY(rpc_write_commit(call, n));
		length -= n;
	}
	return AFS_OK;
}

static afs_err take_bytes(struct rpc_call *call, uint64_t length)
{
	static _Thread_local uint8_t to[65536];
	while (length) {
		const uint8_t *p;
		size_t n;
		TRY(rpc_read_run(call, MIN(length, sizeof(to)), &p, &n));
		if (!n)
			return AFS_EEOF;
		memcpy(to, p, n); /* as a write to the page cache would */
		length -= n;
	}
	return AFS_OK;
}

afs_err bench_fetch(struct rpc_call *call, const struct bench_fetch_in *in, struct bench_fetch_out *out)
{
	(void)out;
	return send_bytes(call, in->length);
}

afs_err bench_store(struct rpc_call *call, const struct bench_store_in *in, struct bench_store_out *out)
{
	(void)out;
	return take_bytes(call, in->length);
}

afs_err bench_quick(struct rpc_call *call, const struct bench_quick_in *in, struct bench_quick_out *out)
{
	(void)call;
	out->status[0] = in->a;
	return AFS_OK;
}

afs_err bench_work(struct rpc_call *call, const struct bench_work_in *in, struct bench_work_out *out)
{
	(void)call;
	out->status[0] = in->a;
	return AFS_OK;
}

static struct bench_usage_out own_usage(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (struct bench_usage_out){
		.cpu_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
			(uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec),
		.switches = (uint64_t)(u.ru_nvcsw + u.ru_nivcsw),
	};
}

afs_err bench_usage(struct rpc_call *call, const struct bench_usage_in *in, struct bench_usage_out *out)
{
	(void)call, (void)in;
	*out = own_usage();
	return AFS_OK;
}

static struct {
	uint32_t mib, calls, threads, max_datagram, ip;
	uint16_t serve, to_port;
	uint32_t to_ip;
	bool plain, rxkad;
	enum rx_sec_level level;
} opt = {.mib = 512, .calls = 100000, .threads = 8, .ip = 0x7f000001};

static afs_err read_ticket(void *ctx, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	(void)ctx, (void)kvno, (void)ticket, (void)len;
	*out = (struct rxkad_ticket){.session_key = "bench.k", .name = "bench", .cell = "bench",
		.begins = now - SEC(60), .expires = now + SEC(3600)};
	return AFS_OK;
}

static uint32_t nonce(void *ctx)
{
	(void)ctx;
	return rand_u32();
}

static struct rpc_conn_config conn_config(struct rx_addr to)
{
	struct rxkad_token token = {.session_key = "bench.k", .kvno = 213, .ticket = content,
		.ticket_len = 48, .expires = clk_wall() + SEC(3600)};
	struct rpc_conn_config config = {.peer = to, .iface = &bench_iface};
	if (opt.rxkad && !(config.sec = rxkad_client_new(&token, opt.level)))
		exit(1);
	return config;
}

static afs_err open_port(const char *name, bool server, struct rpc_port **out)
{
	const struct rpc_service service = {.iface = &bench_iface, .handlers = bench_handlers, .allow_anonymous = true};
	static const struct rxkad_server rxkad = {.read_ticket = read_ticket, .random = nonce};
	const struct rpc_port_config config = {
		.acceptor = {rxkad_accept, (void *)(uintptr_t)&rxkad},
		.name = name,
		.ip = opt.to_port || opt.serve ? 0 : opt.ip,
		.port = server ? opt.serve : 0,
		.services = server ? &service : NULL,
		.service_count = server ? 1 : 0,
		.workers = server ? rpc_workers_new("bench", 16) : NULL,
		.pool = rx_buf_pool_new(256 << 20),
		.max_datagram = opt.max_datagram,
		.plain = opt.plain,
	};
	return rpc_port_open(&config, out);
}

static void serve(int ready, int stop)
{
	struct rpc_port *port;
	if (open_port("server", true, &port) != AFS_OK)
		exit(1);
	uint16_t number = rpc_port_number(port);
	if (write(ready, &number, sizeof(number)) != sizeof(number))
		exit(1);
	(void)!read(stop, &number, 1); /* until the parent is gone */
	exit(0);
}

struct span {
	struct rpc_conn *conn;
	mono_ns start;
	struct bench_usage_out mine, theirs;
};

static void check(afs_err err, const char *what)
{
	if (err != AFS_OK) {
		fprintf(stderr, "rx_bench: %s: %s\n", what, afs_err_text(err));
		exit(1);
	}
}

static struct span span_begin(struct rpc_conn *conn)
{
	struct span s = {.conn = conn};
	check(bench_call_usage(conn, &(struct bench_usage_in){}, &s.theirs, NULL), "usage");
	s.mine = own_usage();
	s.start = clk_mono();
	return s;
}

static void span_end(struct span *s, const char *what, double units, const char *unit, double scale, const char *rate)
{
	double sec = (double)(clk_mono() - s->start) / 1e9;
	struct bench_usage_out mine = own_usage(), theirs;
	check(bench_call_usage(s->conn, &(struct bench_usage_in){}, &theirs, NULL), "usage");
	printf("%-28s %9.0f %-7s  cpu/%s %7.1f + %7.1f us  switches/%s %6.2f + %6.2f\n", what, units * scale / sec, rate,
		unit, (double)(mine.cpu_us - s->mine.cpu_us) / units, (double)(theirs.cpu_us - s->theirs.cpu_us) / units,
		unit, (double)(mine.switches - s->mine.switches) / units,
		(double)(theirs.switches - s->theirs.switches) / units);
	fflush(stdout);
}

static void bulk(struct rpc_conn *conn)
{
	uint64_t length = (uint64_t)opt.mib << 20;
	for (int i = 0; i < 2; i++) {
		struct span s = span_begin(conn);
		struct rpc_call *call;
		struct bench_fetch_out out;
		check(rpc_begin(conn, &bench_procs[bench_op_fetch], &(struct bench_fetch_in){length}, &call), "fetch");
		check(take_bytes(call, length), "fetch");
		check(rpc_end(call, &out, NULL), "fetch");
		span_end(&s, i ? "fetch" : "fetch (first)", opt.mib, "MiB", 1.048576, "MB/s");
	}
	for (int i = 0; i < 2; i++) {
		struct span s = span_begin(conn);
		struct rpc_call *call;
		struct bench_store_out out;
		check(rpc_begin(conn, &bench_procs[bench_op_store], &(struct bench_store_in){length}, &call), "store");
		check(send_bytes(call, length), "store");
		check(rpc_end(call, &out, NULL), "store");
		span_end(&s, i ? "store" : "store (first)", opt.mib, "MiB", 1.048576, "MB/s");
	}
}

struct caller {
	struct rpc_conn *conn;
	uint32_t calls;
	bool work;
};

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	for (uint32_t i = 0; i < c->calls; i++) {
		if (c->work) {
			struct bench_work_out out;
			check(bench_call_work(c->conn, &(struct bench_work_in){i}, &out, NULL), "work");
		} else {
			struct bench_quick_out out;
			check(bench_call_quick(c->conn, &(struct bench_quick_in){i}, &out, NULL), "quick");
		}
	}
	return NULL;
}

static void small(struct rpc_port *port, struct rpc_conn *conn, struct rx_addr to, uint32_t threads, bool work)
{
	struct caller c[64];
	pthread_t t[64];
	for (uint32_t i = 0; i < threads; i++) {
		c[i] = (struct caller){.calls = opt.calls / threads, .work = work};
		struct rpc_conn_config config = conn_config(to);
		check(rpc_conn_new(port, &config, &c[i].conn), "conn");
	}
	struct span s = span_begin(conn);
	for (uint32_t i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, caller_main, &c[i]) != 0)
			exit(1);
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	char what[64];
	snprintf(what, sizeof(what), "%s calls, %u threads", work ? "worker" : "inline", threads);
	span_end(&s, what, opt.calls, "call", 1, "calls/s");
	for (uint32_t i = 0; i < threads; i++)
		rpc_conn_unref(c[i].conn);
}

int main(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "m:n:t:d:pl:a:s:c:")) != -1;) {
		struct in_addr a;
		switch (c) {
		case 'm': opt.mib = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'n': opt.calls = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 't': opt.threads = MIN((uint32_t)strtoul(optarg, NULL, 10), 64u); break;
		case 'd': opt.max_datagram = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'p': opt.plain = true; break;
		case 'l':
			opt.rxkad = true;
			opt.level = *optarg == 'a' ? RX_LEVEL_AUTH : strcmp(optarg, "crypt") ? RX_LEVEL_CLEAR : RX_LEVEL_CRYPT;
			break;
		case 's': opt.serve = (uint16_t)strtoul(optarg, NULL, 10); break;
		case 'c': {
			char *colon = strchr(optarg, ':');
			if (!colon)
				return 2;
			*colon = 0;
			opt.to_port = (uint16_t)strtoul(colon + 1, NULL, 10);
			if (inet_pton(AF_INET, optarg, &a) != 1)
				return 2;
			opt.to_ip = ntohl(a.s_addr);
			break;
		}
		case 'a':
			if (inet_pton(AF_INET, optarg, &a) != 1)
				return 2;
			opt.ip = ntohl(a.s_addr);
			break;
		default: return 2;
		}
	}
	memset(content, 'a', sizeof(content));
	int ready[2], stop[2];
	if (pipe(ready) < 0 || pipe(stop) < 0)
		return 1;
	if (opt.serve)
		serve(ready[1], 0);
	pid_t child = opt.to_port ? -1 : fork();
	if (child == 0) {
		close(stop[1]);
		serve(ready[1], stop[0]);
	}
	close(ready[1]);
	uint16_t number;
	if (!opt.to_port && (child < 0 || read(ready[0], &number, sizeof(number)) != sizeof(number)))
		return 1;
	struct rpc_port *port;
	check(open_port("client", false, &port), "port");
	struct rx_addr to = {opt.to_port ? opt.to_ip : opt.ip, opt.to_port ? opt.to_port : number};
	struct rpc_conn_config config = conn_config(to);
	struct rpc_conn *conn;
	check(rpc_conn_new(port, &config, &conn), "conn");
	printf("client + server\n");
	if (opt.mib)
		bulk(conn);
	if (opt.calls) {
		small(port, conn, to, 1, false);
		small(port, conn, to, opt.threads, false);
		small(port, conn, to, 1, true);
		small(port, conn, to, opt.threads, true);
	}
	struct rx_stats st;
	rpc_port_stats(port, &st);
	printf("client: in %llu out %llu resent %llu duplicate %llu\n", (unsigned long long)st.datagrams_in,
		(unsigned long long)st.datagrams_out, (unsigned long long)st.data_resent,
		(unsigned long long)st.data_duplicate);
	rpc_conn_unref(conn);
	rpc_port_close(port);
	close(stop[1]);
	waitpid(child, NULL, 0);
	return 0;
}
