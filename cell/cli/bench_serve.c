/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The server of "afscell bench rx": its handlers move bytes and count, nothing else. */
#include "cell/cli/bench.h"

#include "cell/base/rand.h"
#include "cell/proto/abort.h"
#include "rx/sec/rxkad.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define XDR_ROWS "cell/cli/bench_rx.def"
#include "rx/xdr/codec_pass.h"
#define RPC_WANT_PROCS
#define RPC_PREFIX bench
#define RPC_ROWS "cell/cli/bench_rx.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_HANDLERS
#define RPC_PREFIX bench
#define RPC_ROWS "cell/cli/bench_rx.rpc"
#include "rx/xdr/iface_pass.h"

const struct rpc_iface bench_iface = {
	.name = "BENCH",
	.service = 1777,
	.procs = bench_procs,
	.count = ARRAY_SIZE(bench_procs),
	.args_max = 4096,
	.abort_of = abort_of_fs,
	.err_of = err_of_fs,
};

uint8_t bench_content[65536];

afs_err bench_send_bytes(struct rpc_call *call, uint64_t length)
{
	while (length) {
		uint8_t *p;
		size_t n;
		TRY(rpc_write_room(call, MIN(length, sizeof(bench_content)), &p, &n));
		memcpy(p, bench_content, n);
		TRY(rpc_write_commit(call, n));
		length -= n;
	}
	return AFS_OK;
}

afs_err bench_take_bytes(struct rpc_call *call, uint64_t length, mono_ns until, uint64_t *took)
{
	static _Thread_local uint8_t to[65536];
	uint64_t looked = 0;
	*took = 0;
	while (*took < length) {
		const uint8_t *p;
		size_t n;
		TRY(rpc_read_run(call, MIN(length - *took, sizeof(to)), &p, &n));
		if (!n)
			return AFS_OK;
		memcpy(to, p, n);
		*took += n;
		if (until && *took - looked > 128 * 1024) {
			looked = *took;
			if (clk_mono() >= until)
				return AFS_OK;
		}
	}
	return AFS_OK;
}

struct bench_usage bench_own_usage(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (struct bench_usage){
		.cpu_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
			(uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec),
		.switches = (uint64_t)(u.ru_nvcsw + u.ru_nivcsw),
	};
}

/* --- handlers --------------------------------------------------------------------------------- */

afs_err bench_fetch(struct rpc_call *call, const struct bench_fetch_in *in, struct bench_fetch_out *out)
{
	(void)out;
	return bench_send_bytes(call, in->length);
}

afs_err bench_store(struct rpc_call *call, const struct bench_store_in *in, struct bench_store_out *out)
{
	uint64_t took;
	(void)out;
	TRY(bench_take_bytes(call, in->length, 0, &took));
	return took == in->length ? AFS_OK : AFS_EEOF;
}

afs_err bench_quick(struct rpc_call *call, const struct bench_quick_in *in, struct bench_quick_out *out)
{
	(void)call;
	memcpy(out->words, in->words, sizeof(in->words));
	return AFS_OK;
}

afs_err bench_work(struct rpc_call *call, const struct bench_work_in *in, struct bench_work_out *out)
{
	(void)call;
	memcpy(out->words, in->words, sizeof(in->words));
	return AFS_OK;
}

afs_err bench_usage(struct rpc_call *call, const struct bench_usage_in *in, struct bench_usage_out *out)
{
	(void)call, (void)in;
	struct bench_usage u = bench_own_usage();
	*out = (struct bench_usage_out){.cpu_us = u.cpu_us, .switches = u.switches};
	return AFS_OK;
}

static uint32_t serve_ip;

afs_err bench_raw_begin(struct rpc_call *call, const struct bench_raw_begin_in *in, struct bench_raw_begin_out *out)
{
	uint16_t port;
	(void)call;
	TRY(bench_raw_serve_begin(in->segment, in->plain, serve_ip, &port));
	out->port = port;
	return AFS_OK;
}

afs_err bench_raw_end(struct rpc_call *call, const struct bench_raw_end_in *in, struct bench_raw_end_out *out)
{
	(void)call, (void)in;
	bench_raw_serve_end(&out->bytes, &out->ns);
	return AFS_OK;
}

/* --- keys and ports ---------------------------------------------------------------------------- */

static const uint8_t session_key[8] = "bench.k";

static afs_err read_ticket(void *ctx, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	(void)ctx, (void)kvno, (void)ticket, (void)len;
	*out = (struct rxkad_ticket){.name = "bench", .cell = "bench", .begins = now - SEC(60), .expires = now + SEC(3600)};
	memcpy(out->session_key, session_key, sizeof(session_key));
	return AFS_OK;
}

static uint32_t nonce(void *ctx)
{
	(void)ctx;
	return rand_u32();
}

struct rx_sec *bench_token(enum bench_level level)
{
	if (level == BENCH_NULL)
		return NULL;
	struct rxkad_token token = {.kvno = 213, .ticket = bench_content, .ticket_len = 48,
		.expires = clk_wall() + SEC(3600)};
	memcpy(token.session_key, session_key, sizeof(session_key));
	return rxkad_client_new(&token,
		level == BENCH_CLEAR ? RX_LEVEL_CLEAR : level == BENCH_AUTH ? RX_LEVEL_AUTH : RX_LEVEL_CRYPT);
}

afs_err bench_port_open(const struct bench *b, const char *name, uint32_t ip, uint16_t number, bool server,
	struct rpc_port **out)
{
	static const struct rxkad_server rxkad = {.read_ticket = read_ticket, .random = nonce};
	const struct rpc_service service = {.iface = &bench_iface, .handlers = bench_handlers, .allow_anonymous = true};
	const struct rpc_port_config config = {
		.name = name,
		.ip = ip,
		.port = number,
		.services = server ? &service : NULL,
		.service_count = server ? 1 : 0,
		.acceptor = {rxkad_accept, (void *)(uintptr_t)&rxkad},
		.workers = server ? rpc_workers_new("bench", 32) : NULL,
		.pool = b->pool,
		.max_datagram = b->datagram,
		.plain = b->plain || b->single,
		.single = b->single,
	};
	return rpc_port_open(&config, out);
}

int bench_serve(struct bench *b, uint32_t ip, uint16_t port, int ready, int stop)
{
	struct rpc_port *p;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL); /* before there are threads */
	int sig = signalfd(-1, &set, SFD_CLOEXEC);
	if (sig < 0)
		return cli_fail(b->c, "signalfd: %s", strerror(errno));
	serve_ip = ip;
	afs_err err = bench_port_open(b, "bench-server", ip, port, true, &p);
	if (err != AFS_OK) {
		close(sig);
		return cli_fail(b->c, "cannot serve on port %u: %s", port, afs_err_text(err));
	}
	uint16_t number = rpc_port_number(p);
	if (ready >= 0) {
		if (write(ready, &number, sizeof(number)) != sizeof(number))
			return CLI_FAILED;
	} else {
		printf("serving on port %u\n", number);
		fflush(stdout);
	}
	struct pollfd fds[2] = {{.fd = sig, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		continue;
	rpc_port_close(p);
	close(sig);
	return CLI_OK;
}
