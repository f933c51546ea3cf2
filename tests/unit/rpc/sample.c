/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/rpc/sample.h"

#include "cell/base/mtx.h"
#include "cell/base/rand.h"
#include "cell/proto/abort.h"
#include "tests/lib/test.h"

#include <string.h>
#include <time.h>

#define XDR_ROWS "tests/unit/rpc/sample.def"
#include "rx/xdr/codec_pass.h"

#define RPC_WANT_PROCS
#define RPC_PREFIX sample
#define RPC_ROWS "tests/unit/rpc/sample.rpc"
#include "rx/xdr/iface_pass.h"

#define RPC_WANT_HANDLERS
#define RPC_PREFIX sample
#define RPC_ROWS "tests/unit/rpc/sample.rpc"
#include "rx/xdr/iface_pass.h"

enum { LOCALHOST = 0x7f000001, ARGS_MAX = 512 * 1024, TICKET = 48 };

const struct rpc_iface sample_iface = {
	.name = "SAMPLE",
	.service = SAMPLE_SERVICE,
	.stats_id = 77,
	.procs = sample_procs,
	.count = ARRAY_SIZE(sample_procs),
	.args_max = ARGS_MAX,
	.abort_of = abort_of_fs,
	.err_of = err_of_fs,
};

uint8_t sample_byte(uint64_t at) { return (uint8_t)(at * 7 + (at >> 8) * 13 + (at >> 16)); }

uint64_t sample_sum(uint64_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + p[i];
	return sum;
}

afs_err sample_echo(struct rpc_call *call, const struct sample_echo_in *in, struct sample_echo_out *out)
{
	(void)call;
	out->text = in->text;
	out->blob = in->blob;
	return AFS_OK;
}

static void on_gone(void *user)
{
	struct sample *s = user;
	atomic_fetch_add(&s->gone, 1);
}

afs_err sample_add(struct rpc_call *call, const struct sample_add_in *in, struct sample_add_out *out)
{
	if (!rpc_call_conn_user(call))
		rpc_call_set_conn_user(call, call->service, on_gone);
	out->sum = in->a + in->b;
	return AFS_OK;
}

afs_err sample_fetch(struct rpc_call *call, const struct sample_fetch_in *in, struct sample_fetch_out *out)
{
	TRY(rpc_write_u64(call, in->length));
	for (uint64_t at = 0; at < in->length;) {
		uint8_t *p;
		size_t n;
		TRY(rpc_write_room(call, MIN(in->length - at, (uint64_t)SIZE_MAX), &p, &n));
		for (size_t i = 0; i < n; i++)
			p[i] = sample_byte(at + i);
		out->sum = sample_sum(out->sum, p, n);
		TRY(rpc_write_commit(call, n));
		at += n;
	}
	return in->fail_at_end ? AFS_EIO : AFS_OK;
}

afs_err sample_store(struct rpc_call *call, const struct sample_store_in *in, struct sample_store_out *out)
{
	uint64_t end = in->read_only ? in->read_only : in->length;
	for (uint64_t at = 0; at < end;) {
		const uint8_t *p;
		size_t n;
		TRY(rpc_read_run(call, end - at, &p, &n));
		if (!n)
			return AFS_EEOF;
		out->sum = sample_sum(out->sum, p, n);
		at += n;
	}
	return AFS_OK;
}

/* Reads bytes, then says them again. */
afs_err sample_turn(struct rpc_call *call, const struct sample_turn_in *in, struct sample_turn_out *out)
{
	(void)out;
	CLEANUP(heap) uint8_t *b = mem_alloc(in->length + 1, 1);
	if (!b)
		return AFS_ENOMEM;
	TRY(rpc_read(call, b, in->length));
	return rpc_write(call, b, in->length);
}

afs_err sample_fail(struct rpc_call *call, const struct sample_fail_in *in, struct sample_fail_out *out)
{
	(void)out;
	return in->code ? rpc_refuse(call, in->code) : (afs_err)in->err;
}

afs_err sample_hold(struct rpc_call *call, const struct sample_hold_in *in, struct sample_hold_out *out)
{
	(void)out;
	struct sample *s = call->service;
	mtx_lock(s->gate);
	s->held[in->gate]++;
	cond_broadcast(s->opened);
	while (!s->open[in->gate] && !rpc_call_is_over(call))
		(void)cond_wait_until(s->opened, s->gate, clk_mono() + MSEC(20)); /* looks again either way */
	s->held[in->gate]--;
	mtx_unlock(s->gate);
	return AFS_OK;
}

afs_err sample_call_back(struct rpc_call *call, const struct sample_call_back_in *in, struct sample_call_back_out *out)
{
	const struct rpc_conn_config config = {.peer = call->peer, .iface = &sample_iface};
	struct rpc_conn *back;
	TRY(rpc_conn_new(rpc_call_port(call), &config, &back));
	struct sample_add_in add_in = {in->a, in->b};
	struct sample_add_out add_out;
	afs_err err = sample_call_add(back, &add_in, &add_out, NULL);
	rpc_conn_unref(back);
	if (err == AFS_OK)
		out->sum = add_out.sum;
	return err;
}

afs_err sample_list(struct rpc_call *call, const struct sample_list_in *in, struct sample_list_out *out)
{
	out->items.v = arena_alloc(call->arena, in->n, sizeof(*out->items.v));
	if (in->n && !out->items.v)
		return AFS_ENOMEM;
	out->items.n = in->n;
	for (uint32_t i = 0; i < in->n; i++)
		out->items.v[i] = i * 3;
	return AFS_OK;
}

afs_err sample_user(struct rpc_call *call, const struct sample_user_in *in, struct sample_user_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}

afs_err sample_admin(struct rpc_call *call, const struct sample_admin_in *in, struct sample_admin_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}

static const uint8_t session_key[8] = {0x7c, 0x1f, 0x4a, 0xd3, 0x20, 0x9b, 0x5e, 0xe6};

static afs_err read_ticket(void *ctx, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	(void)ctx, (void)kvno;
	if (len != TICKET || memchr(ticket, 0, len) == NULL)
		return AFS_EBADTICKET;
	*out = (struct rxkad_ticket){.cell = "sample", .begins = now - SEC(60), .expires = now + SEC(3600)};
	memcpy(out->session_key, session_key, sizeof(session_key));
	memcpy(out->name, ticket, TICKET);
	return AFS_OK;
}

static uint32_t nonce(void *ctx)
{
	(void)ctx;
	return rand_u32();
}

struct rx_sec *sample_token(const char *name, enum rx_sec_level level)
{
	uint8_t ticket[TICKET] = {0};
	memcpy(ticket, name, strlen(name));
	struct rxkad_token token = {.kvno = 213, .ticket = ticket, .ticket_len = sizeof(ticket),
		.begins = clk_wall() - SEC(60), .expires = clk_wall() + SEC(3600)};
	memcpy(token.session_key, session_key, sizeof(session_key));
	token.session_key[0] ^= strcmp(name, "liar") == 0 ? 0x54 : 0;
	struct rx_sec *sec = rxkad_client_new(&token, level);
	assert_non_null(sec);
	return sec;
}

static bool is_superuser(void *ctx, const struct rx_caller *caller)
{
	(void)ctx;
	return strcmp(caller->name, "admin") == 0;
}

static void on_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns)
{
	struct sample *s = ctx;
	assert_non_null(call->proc);
	assert_non_null(in);
	assert_true(took_ns >= 0);
	assert_true((err == AFS_OK) == (code == 0));
	if (err != AFS_OK)
		atomic_fetch_add(&s->done_failed, 1);
	atomic_fetch_add(&s->done, 1);
}

struct sample *sample_open(const struct sample_options *options)
{
	static const struct sample_options none;
	const struct sample_options *o = options ? options : &none;
	struct sample *s = mem_new(struct sample);
	s->gate = mem_new(struct mtx);
	s->opened = mem_new(struct cond);
	mtx_init(s->gate, RANK_LEAF);
	cond_init(s->opened);
	s->pool = rx_buf_pool_new(o->pool_bytes ? o->pool_bytes : 128 << 20);
	s->workers = rpc_workers_new("test", o->workers ? o->workers : 8);
	assert_non_null(s->pool);
	assert_non_null(s->workers);
	const struct rpc_service service = {
		.iface = &sample_iface,
		.handlers = sample_handlers,
		.ctx = s,
		.allow_anonymous = !o->no_anonymous,
		.least = o->least,
		.superuser = is_superuser,
		.done = on_done,
	};
	s->rxkad = (struct rxkad_server){.read_ticket = read_ticket, .random = nonce};
	struct rpc_port_config config = {
		.acceptor = {rxkad_accept, &s->rxkad},
		.name = "server",
		.ip = LOCALHOST,
		.services = &service,
		.service_count = 1,
		.workers = s->workers,
		.pool = s->pool,
		.plain = o->plain,
	};
	assert_ok(rpc_port_open(&config, &s->server));
	config.name = "client";
	config.acceptor = (struct rx_sec_acceptor){0};
	assert_ok(rpc_port_open(&config, &s->client));
	const struct rpc_conn_config to = {
		.peer = {LOCALHOST, rpc_port_number(s->server)},
		.iface = &sample_iface,
		.dead_ns = o->dead_ns,
		.sec = o->name ? sample_token(o->name, o->level) : NULL,
	};
	assert_ok(rpc_conn_new(s->client, &to, &s->conn));
	return s;
}

void sample_close(struct sample *s)
{
	rpc_conn_unref(s->conn);
	rpc_port_close(s->client);
	rpc_port_close(s->server);
	rpc_workers_free(s->workers);
	rx_buf_pool_free(s->pool);
	cond_fini(s->opened);
	mtx_fini(s->gate);
	mem_free(s->opened);
	mem_free(s->gate);
	mem_free(s);
}

void sample_open_gate(struct sample *s, unsigned gate)
{
	mtx_lock(s->gate);
	s->open[gate] = true;
	cond_broadcast(s->opened);
	mtx_unlock(s->gate);
}

void sample_await_held(struct sample *s, unsigned gate, unsigned n)
{
	mono_ns until = clk_mono() + SEC(20);
	mtx_lock(s->gate);
	while (s->held[gate] < n && cond_wait_until(s->opened, s->gate, until))
		continue;
	unsigned held = s->held[gate];
	mtx_unlock(s->gate);
	assert_true(held >= n);
}

void sample_await_done(struct sample *s, unsigned n)
{
	mono_ns until = clk_mono() + SEC(20);
	while (atomic_load(&s->done) < n && clk_mono() < until)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(atomic_load(&s->done), n);
}
