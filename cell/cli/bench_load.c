/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The load of "afscell bench rx": one bulk call, many callers with small ones, and both at once.
 *
 * What is counted is what happened between two readings of the clock and of what both processes used so
 * far; every connection has made a call before, so handshakes are not in it. */
#include "cell/cli/bench.h"

#include "cell/proto/vl.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX bench
#define RPC_ROWS "cell/cli/bench_rx.rpc"
#include "rx/xdr/iface_pass.h"

/* --- latencies: buckets of 1/32 of their size ------------------------------------------------------ */

enum { FINE = 32, BUCKETS = 64 * FINE };

struct histogram {
	uint32_t n[BUCKETS];
	uint64_t count;
};

static unsigned bucket_of(uint64_t ns)
{
	if (ns < FINE)
		return (unsigned)ns;
	unsigned log = 63 - (unsigned)__builtin_clzll(ns);
	return (log - 4) * FINE + (unsigned)(ns >> (log - 5)) % FINE;
}

static double middle_of(unsigned bucket)
{
	if (bucket < 2 * FINE)
		return bucket;
	unsigned log = bucket / FINE + 4;
	return (double)((uint64_t)(FINE + bucket % FINE) << (log - 5)) * (1 + 0.5 / FINE);
}

static void histogram_add(struct histogram *h, int64_t ns)
{
	h->n[bucket_of(ns > 0 ? (uint64_t)ns : 0)]++;
	h->count++;
}

static void histogram_join(struct histogram *to, const struct histogram *from)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		to->n[i] += from->n[i];
	to->count += from->count;
}

static double quantile_us(const struct histogram *h, double q)
{
	uint64_t want = (uint64_t)((double)h->count * q), seen = 0;
	for (unsigned i = 0; i < BUCKETS; i++)
		if ((seen += h->n[i]) > want)
			return middle_of(i) / 1000;
	return 0;
}

/* --- from here to there ---------------------------------------------------------------------------- */

struct span {
	struct bench *b;
	struct rpc_conn *conn; /* to ask the server what it used; NULL: b->pid tells, or nothing does */
	mono_ns start;
	struct bench_usage mine, theirs;
};

static afs_err server_usage(struct span *s, struct bench_usage *out)
{
	*out = (struct bench_usage){0};
	if (s->b->pid)
		*out = bench_usage_of(s->b->pid);
	if (s->b->pid || !s->conn)
		return AFS_OK;
	struct bench_usage_out u;
	TRY(bench_call_usage(s->conn, &(struct bench_usage_in){}, &u, NULL));
	*out = (struct bench_usage){u.cpu_us, u.switches};
	return AFS_OK;
}

static afs_err span_begin(struct span *s, struct bench *b, struct rpc_conn *conn)
{
	*s = (struct span){.b = b, .conn = conn};
	TRY(server_usage(s, &s->theirs));
	s->mine = bench_own_usage();
	s->start = clk_mono();
	return AFS_OK;
}

static afs_err span_end(struct span *s, struct bench_row *row)
{
	row->seconds = (double)(clk_mono() - s->start) / 1e9;
	struct bench_usage mine = bench_own_usage(), theirs;
	TRY(server_usage(s, &theirs));
	row->mine = (struct bench_usage){mine.cpu_us - s->mine.cpu_us, mine.switches - s->mine.switches};
	row->theirs_known = s->conn || s->b->pid;
	if (theirs.cpu_us >= s->theirs.cpu_us && theirs.switches >= s->theirs.switches)
		row->theirs = (struct bench_usage){theirs.cpu_us - s->theirs.cpu_us, theirs.switches - s->theirs.switches};
	return AFS_OK;
}

static const char *const level_names[] = {"null", "clear", "auth", "crypt"};

static int failed(struct bench *b, const char *what, afs_err err)
{
	return err == AFS_OK ? CLI_OK : cli_fail(b->c, "%s: %s", what, afs_err_text(err));
}

static afs_err connect_to(struct bench *b, struct rpc_port *port, const struct rpc_iface *iface, enum bench_level level,
	struct rpc_conn **out)
{
	struct rpc_conn_config config = {.peer = b->to, .iface = iface, .sec = bench_token(level)};
	if (level != BENCH_NULL && !config.sec)
		return AFS_ENOMEM;
	return rpc_conn_new(port, &config, out);
}

/* A call that has the connection known, its RTT measured and its token shown. */
static afs_err greet(struct rpc_conn *conn)
{
	struct bench_quick_out out;
	return bench_call_quick(conn, &(struct bench_quick_in){}, &out, NULL);
}

/* --- bulk ------------------------------------------------------------------------------------------ */

static afs_err fetch(struct rpc_conn *conn, uint64_t length, mono_ns until, uint64_t *took)
{
	struct rpc_call *call;
	struct bench_fetch_out out;
	TRY(rpc_begin(conn, &bench_iface.procs[bench_op_fetch], &(struct bench_fetch_in){length}, &call));
	afs_err err = bench_take_bytes(call, length, until, took);
	if (err == AFS_OK && *took == length)
		return rpc_end(call, &out, NULL);
	rpc_cancel(call);
	return err != AFS_OK ? err : until ? AFS_OK : AFS_EEOF;
}

static afs_err store(struct rpc_conn *conn, uint64_t length)
{
	struct rpc_call *call;
	struct bench_store_out out;
	TRY(rpc_begin(conn, &bench_iface.procs[bench_op_store], &(struct bench_store_in){length}, &call));
	afs_err err = bench_send_bytes(call, length);
	if (err == AFS_OK)
		return rpc_end(call, &out, NULL);
	rpc_cancel(call);
	return err;
}

static afs_err bulk(struct bench *b, struct rpc_conn *conn, bool fetches, struct bench_row *row)
{
	struct span s;
	uint64_t length = b->size, took;
	TRY(greet(conn));
	TRY(span_begin(&s, b, conn));
	if (fetches)
		TRY(fetch(conn, length, 0, &took));
	else
		TRY(store(conn, length));
	row->units = (double)length / 1e6;
	return span_end(&s, row);
}

int bench_bulk(struct bench *b, enum bench_level level, bool fetches)
{
	struct rpc_conn *conn;
	struct bench_row row = {.bulk = true};
	snprintf(row.what, sizeof(row.what), "%s", fetches ? "fetch" : "store");
	snprintf(row.level, sizeof(row.level), "%s", level_names[level]);
	afs_err err = connect_to(b, b->port, &bench_iface, level, &conn);
	if (err == AFS_OK) {
		err = bulk(b, conn, fetches, &row);
		rpc_conn_unref(conn);
	}
	if (err == AFS_OK)
		bench_report_add(b->report, &row);
	return failed(b, row.what, err);
}

/* --- small calls ------------------------------------------------------------------------------------ */

struct caller {
	struct bench *b;
	struct rpc_conn *conn;
	enum bench_what what;
	unsigned calls;
	mono_ns until; /* instead of a number of calls, unless 0 */
	afs_err err;
	struct histogram times;
};

static afs_err lookup(struct caller *c, struct arena *arena)
{
	const struct vl_get_entry_by_name_n_in in = {.volumename = {c->b->name, (uint32_t)strlen(c->b->name)}};
	struct vl_get_entry_by_name_n_out out;
	struct rpc_result res = {.arena = arena};
	afs_err err = rpc_invoke(c->conn, &vl_iface.procs[vl_op_get_entry_by_name_n], &in, &out, &res);
	arena_fini(arena);
	return err;
}

static afs_err small_call(struct caller *c, struct arena *arena)
{
	if (c->what == BENCH_VL)
		return lookup(c, arena);
	if (c->what == BENCH_WORKER) {
		struct bench_work_out out;
		return bench_call_work(c->conn, &(struct bench_work_in){}, &out, NULL);
	}
	return greet(c->conn);
}

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 1 << 20);
	mono_ns last = clk_mono();
	for (unsigned i = 0; c->until ? last < c->until : i < c->calls; i++) {
		c->err = small_call(c, &arena);
		if (c->err != AFS_OK)
			break;
		mono_ns now = clk_mono();
		histogram_add(&c->times, now - last);
		last = now;
	}
	return NULL;
}

static afs_err run_callers(struct caller **c, unsigned n)
{
	pthread_t thread[BENCH_THREADS];
	unsigned started = 0;
	while (started < n && pthread_create(&thread[started], NULL, caller_main, c[started]) == 0)
		started++;
	afs_err err = started == n ? AFS_OK : AFS_ENOMEM;
	for (unsigned i = 0; i < started; i++) {
		pthread_join(thread[i], NULL);
		if (c[i]->err != AFS_OK)
			err = c[i]->err;
	}
	return err;
}

static afs_err small(struct bench *b, struct caller **c, unsigned n, struct bench_row *row)
{
	struct span s;
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 1 << 20);
	for (unsigned i = 0; i < n; i++)
		TRY(small_call(c[i], &arena));
	TRY(span_begin(&s, b, c[0]->what == BENCH_VL ? NULL : c[0]->conn));
	TRY(run_callers(c, n));
	TRY(span_end(&s, row));
	for (unsigned i = 1; i < n; i++)
		histogram_join(&c[0]->times, &c[i]->times);
	row->units = (double)c[0]->times.count;
	row->p50_us = quantile_us(&c[0]->times, 0.5);
	row->p99_us = quantile_us(&c[0]->times, 0.99);
	return AFS_OK;
}

int bench_small(struct bench *b, enum bench_level level, enum bench_what what, unsigned clients)
{
	struct bench_row row = {.clients = clients};
	snprintf(row.what, sizeof(row.what), "%s",
		what == BENCH_VL ? "vl lookup" : what == BENCH_WORKER ? "worker call" : "inline call");
	snprintf(row.level, sizeof(row.level), "%s", level_names[level]);
	struct caller *c[BENCH_THREADS] = {0};
	afs_err err = AFS_OK;
	for (unsigned i = 0; i < clients && err == AFS_OK; i++) {
		c[i] = mem_new(struct caller);
		if (!c[i]) {
			err = AFS_ENOMEM;
			break;
		}
		c[i]->b = b;
		c[i]->what = what;
		c[i]->calls = b->calls / clients;
		if (b->shared && i)
			c[i]->conn = rpc_conn_ref(c[0]->conn);
		else
			err = connect_to(b, b->port, what == BENCH_VL ? &vl_iface : &bench_iface, level, &c[i]->conn);
	}
	if (err == AFS_OK)
		err = small(b, c, clients, &row);
	for (unsigned i = 0; i < clients && c[i]; i++) {
		rpc_conn_unref(c[i]->conn);
		mem_free(c[i]);
	}
	if (err == AFS_OK)
		bench_report_add(b->report, &row);
	return failed(b, row.what, err);
}

/* --- both at once ------------------------------------------------------------------------------------- */

struct flow {
	struct rpc_port *port;
	struct rpc_conn *conn;
	pthread_t thread;
	mono_ns until;
	uint64_t took;
	afs_err err;
};

static void *flow_main(void *arg)
{
	struct flow *f = arg;
	f->err = fetch(f->conn, UINT64_C(1) << 50, f->until, &f->took);
	return NULL;
}

/* (sum x)^2 / (n sum x^2): 1 when all have the same. */
static double jain(const struct flow *f, unsigned n)
{
	double sum = 0, squares = 0;
	for (unsigned i = 0; i < n; i++) {
		sum += (double)f[i].took;
		squares += (double)f[i].took * (double)f[i].took;
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}

static afs_err open_flow(struct bench *b, enum bench_level level, struct flow *f)
{
	TRY(bench_port_open(b, "bench-flow", 0, 0, false, &f->port));
	TRY(connect_to(b, f->port, &bench_iface, level, &f->conn));
	return greet(f->conn);
}

static afs_err run_mix(struct bench *b, struct flow *f, struct caller *c, struct bench_row *flows, struct bench_row *calls)
{
	struct span s;
	unsigned started = 0;
	TRY(greet(c->conn));
	TRY(span_begin(&s, b, c->conn));
	c->until = clk_mono() + SEC(b->seconds);
	for (; started < b->flows; started++) {
		f[started].until = c->until;
		if (pthread_create(&f[started].thread, NULL, flow_main, &f[started]) != 0)
			break;
	}
	afs_err err = started == b->flows ? AFS_OK : AFS_ENOMEM;
	(void)caller_main(c);
	if (c->err != AFS_OK)
		err = c->err;
	for (unsigned i = 0; i < started; i++) {
		pthread_join(f[i].thread, NULL);
		if (f[i].err != AFS_OK)
			err = f[i].err;
		flows->units += (double)f[i].took / 1e6;
	}
	TRY(err);
	TRY(span_end(&s, flows));
	flows->jain = jain(f, b->flows);
	calls->units = (double)c->times.count;
	calls->seconds = flows->seconds;
	calls->p50_us = quantile_us(&c->times, 0.5);
	calls->p99_us = quantile_us(&c->times, 0.99);
	return AFS_OK;
}

int bench_mix(struct bench *b, enum bench_level level)
{
	struct bench_row flows = {.what = "mix: flows", .clients = b->flows, .bulk = true};
	struct bench_row calls = {.what = "mix: inline call", .clients = 1};
	snprintf(flows.level, sizeof(flows.level), "%s", level_names[level]);
	snprintf(calls.level, sizeof(calls.level), "%s", level_names[level]);
	struct flow *f = mem_new_array(b->flows, struct flow);
	struct caller *c = mem_new(struct caller);
	afs_err err = f && c ? AFS_OK : AFS_ENOMEM;
	for (unsigned i = 0; i < b->flows && err == AFS_OK; i++)
		err = open_flow(b, level, &f[i]);
	if (err == AFS_OK) {
		*c = (struct caller){.b = b, .what = BENCH_INLINE};
		err = connect_to(b, b->port, &bench_iface, level, &c->conn);
	}
	if (err == AFS_OK)
		err = run_mix(b, f, c, &flows, &calls);
	if (c)
		rpc_conn_unref(c->conn);
	for (unsigned i = 0; f && i < b->flows; i++) {
		rpc_conn_unref(f[i].conn);
		rpc_port_close(f[i].port);
	}
	mem_free(f);
	mem_free(c);
	if (err == AFS_OK) {
		bench_report_add(b->report, &flows);
		bench_report_add(b->report, &calls);
	}
	return failed(b, "mix", err);
}
