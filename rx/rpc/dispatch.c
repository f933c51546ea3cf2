/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Service and opcode to a row, arguments to a struct, the struct to its handler, the result back.
 *
 * A call gets a thread only when its arguments are complete: until then packets collect here,
 * bounded by iface->args_max, and are decoded when enough more of them came.  What the stub
 * generator of other implementations answers is answered here: RXGEN_OPCODE for an opcode without a
 * row, RXGEN_SS_UNMARSHAL for arguments that do not decode (rx.md §13). */
#include "rx/rpc/stream.h"

#include "cell/proto/abort.h"
#include "rx/rpc/rxstats.h"

enum { OPEN_HERE = 2048 }; /* encrypted bytes that the I/O thread decrypts itself */

static const struct rpc_service *service_find(const struct rpc_port *port, uint16_t id)
{
	for (size_t i = 0; i < port->service_count; i++)
		if (port->services[i].iface->service == id)
			return &port->services[i];
	return NULL;
}

struct rx_sec *rpc_port_accept(void *ctx, struct rx_addr peer, uint16_t service, uint8_t index)
{
	struct rpc_port *port = ctx;
	(void)peer;
	if (!service_find(port, service))
		return NULL;
	if (port->acceptor.make)
		return port->acceptor.make(port->acceptor.ctx, index);
	return index == RX_SEC_NULL ? rx_null_new() : NULL;
}

/* --- who may ------------------------------------------------------------------------------- */

static afs_err policy(struct rpc_stream *s)
{
	const struct rpc_service *svc = s->service;
	const struct rx_caller *caller = s->pub.caller;
	if (!caller->authenticated)
		return svc->allow_anonymous && s->pub.proc->need == RPC_ANYONE ? AFS_OK : AFS_EACCESS;
	if (caller->level < svc->least)
		return AFS_ELEVEL;
	s->pub.superuser = svc->superuser && svc->superuser(svc->ctx, caller);
	return s->pub.proc->need == RPC_SUPERUSER && !s->pub.superuser ? AFS_EACCESS : AFS_OK;
}

/* What the interface says for an error before a handler has seen the call. */
static int32_t plain_code(const struct rpc_stream *s, afs_err err)
{
	int32_t code = s->pub.iface->abort_of(err);
	return code ? code : RX_PROTOCOL_ERROR; /* 0 would be no abort at all */
}

/* What the service says; its hook may take locks of its own, so none of ours is held. */
static int32_t code_of(struct rpc_stream *s, afs_err err)
{
	if (err == AFS_EABORTED && s->refuse_code)
		return s->refuse_code;
	if (err == AFS_EOPCODE)
		return RXGEN_OPCODE;
	if (err == AFS_EENCODE)
		return RXGEN_SS_MARSHAL;
	int32_t code = s->service->abort_of ? s->service->abort_of(s->service->ctx, &s->pub, err) : 0;
	return code ? code : plain_code(s, err);
}

afs_err rpc_refuse(struct rpc_call *call, int32_t code)
{
	stream_of(call)->refuse_code = code;
	return AFS_EABORTED;
}

/* --- arguments ----------------------------------------------------------------------------- */

/* AFS_OK: pub.proc and in_args are set and the stream stands behind the arguments.  AFS_EAGAIN: more
 * must come.  Else the call is to be refused with `*code`. */
static afs_err try_decode(struct rpc_stream *s, bool last, int32_t *code)
{
	const struct rpc_iface *iface = s->pub.iface;
	size_t max = (size_t)iface->args_max + 4;
	struct rpc_scratch scratch = {0};
	const uint8_t *p;
	size_t n;
	/* one byte more than may be shows what is too long */
	afs_err err = rpc_stream_peek(s, max + 1, &scratch, &p, &n);
	if (err != AFS_OK) {
		*code = plain_code(s, err);
		return err;
	}
	*code = RXGEN_DECODE;
	err = last ? AFS_EDECODE : AFS_EAGAIN;
	if (n < 4)
		goto out;
	uint32_t op = be32_get(p);
	*code = RXGEN_OPCODE;
	err = AFS_EOPCODE;
	s->pub.proc = rpc_iface_find(iface, op);
	if (!s->pub.proc)
		goto out;
	const struct rpc_proc *proc = s->pub.proc;
	*code = RXGEN_SS_UNMARSHAL;
	err = AFS_EDECODE;
	if (proc->shape != RPC_SPLIT) {
		if (n > max)
			goto out;
		err = AFS_EAGAIN;
		if (!last)
			goto out;
	}
	arena_fini(&s->arena);
	/* decoded arguments, and results twice over: handlers grow lists by doubling */
	arena_init(&s->arena, (size_t)iface->args_max * 16 + (size_t)rpc_iface_results_max(iface) * 2 +
				      65536 + proc->in_size + proc->out_size);
	s->in_args = arena_alloc(&s->arena, 1, proc->in_size);
	if (!s->in_args) {
		err = AFS_ENOMEM;
		*code = plain_code(s, err);
		goto out;
	}
	struct xdr_in x = {p + 4, p + MIN(n, max), &s->arena, AFS_OK};
	proc->in_get(&x, s->in_args);
	err = x.err;
	if (err == AFS_EAGAIN && (last || n > max))
		err = AFS_EDECODE;
	if (err == AFS_ENOMEM)
		*code = plain_code(s, err);
	if (err == AFS_OK && proc->shape != RPC_SPLIT && x.p != p + n)
		err = AFS_EDECODE;
	if (err == AFS_OK) {
		rpc_stream_skip(s, (size_t)(x.p - p));
		s->decoded = true;
		*code = 0;
	}
out:
	rpc_scratch_free(&scratch);
	return err;
}

/* --- collecting, with port->lock ------------------------------------------------------------ */

static void refuse(struct rpc_stream *s, int32_t code, mono_ns now)
{
	rx_call_abort(s->call, now, code);
	rpc_stream_destroy(s);
}

static void ready(struct rpc_stream *s, mono_ns now)
{
	struct rpc_port *port = s->port;
	s->state = RPC_READY;
	s->begun = now;
	s->queued = !s->decoded || (s->pub.proc->shape != RPC_INLINE && s->pub.proc->shape != RPC_QUICK);
	if (!s->queued) {
		s->next = NULL;
		*port->inline_tail = s;
		port->inline_tail = &s->next;
		return;
	}
	atomic_fetch_add(&port->waiting, 1);
	if (port->driver->submit(port, s) != AFS_OK) {
		atomic_fetch_sub(&port->waiting, 1);
		atomic_fetch_add(&port->overloaded, 1);
		s->state = RPC_COLLECTING;
		refuse(s, plain_code(s, AFS_EOVERLOAD), now);
	}
}

void rpc_dispatch_more(struct rpc_stream *s, mono_ns now)
{
	bool last = rpc_stream_take(s);
	size_t have = rpc_stream_taken(s);
	bool much = have > (size_t)s->pub.iface->args_max + 4;
	if (have || last) {
		/* again only when a quarter more is here: decoding stays linear in what came */
		if (last || much || have >= s->tried + s->tried / 4 + 1) {
			s->tried = have;
			if (s->pub.caller->level == RX_LEVEL_CRYPT && have > OPEN_HERE) {
				ready(s, now);
				return;
			}
			int32_t code = 0;
			afs_err err = try_decode(s, last, &code);
			if (err == AFS_OK) {
				ready(s, now);
				return;
			}
			if (err != AFS_EAGAIN) {
				if (s->want_distrust != AFS_OK)
					rpc_stream_distrust(s, s->want_distrust, now);
				refuse(s, code, now);
				return;
			}
			s->tried = rpc_stream_taken(s);
		}
	}
	/* what is held must not close the window on the rest */
	uint32_t held = s->in.packets + (s->cur ? 1 : 0);
	if (held > s->in_told) {
		rpc_stream_consumed(s, held - s->in_told + s->read_packets, now);
		s->in_told = held;
		s->read_packets = 0;
		s->read_bytes = 0;
	}
}

void rpc_dispatch_new(struct rpc_port *port, struct rx_call *call, mono_ns now)
{
	struct rx_conn *conn = rx_call_conn(call);
	const struct rpc_service *svc = service_find(port, rx_conn_id(conn).service);
	if (!svc) {
		rx_call_abort(call, now, RX_INVALID_OPERATION);
		return;
	}
	if (port->closing) {
		rx_call_abort(call, now, RX_RESTARTING);
		return;
	}
	struct rpc_conn_user *user = rpc_conn_user_get(port, conn);
	struct rpc_stream *s = user ? rpc_stream_new(port) : NULL;
	if (!s) {
		rx_call_abort(call, now, svc->iface->abort_of(AFS_ENOMEM));
		return;
	}
	atomic_fetch_add(&user->refs, 1);
	s->conn_user = user;
	s->service = svc;
	s->pub.service = svc->ctx;
	s->pub.iface = svc->iface;
	s->pub.caller = rx_conn_caller(conn);
	s->state = RPC_COLLECTING;
	rpc_stream_bind(s, call);
	list_push_back(&port->streams, &s->node);
	rpc_stream_receive(s, now);
	rpc_dispatch_more(s, now);
}

/* --- serving, with no lock ------------------------------------------------------------------ */

static afs_err reply(struct rpc_stream *s, const void *out)
{
	TRY(rpc_stream_put(s, NULL, s->pub.proc->out_put, out,
		rpc_iface_results_max(s->pub.iface)));
	if (!s->service->done)
		return rpc_stream_seal_last(s); /* and release() hands it over */
	return rpc_stream_finish(s);
}

static afs_err run(struct rpc_stream *s, rpc_handler *handler)
{
	TRY(policy(s));
	void *out = arena_alloc(&s->arena, 1, s->pub.proc->out_size);
	if (!out)
		return AFS_ENOMEM;
	TRY(handler(&s->pub, s->in_args, out));
	return reply(s, out);
}

/* A quick call has to wait after all: it begins again on a worker, which has the stream from here on. */
static afs_err hand_over(struct rpc_stream *s)
{
	struct rpc_port *port = s->port;
	rpc_stream_drop(s);
	s->queued = true;
	s->pub.must_not_wait = false;
	atomic_fetch_sub(&port->running, 1);
	atomic_fetch_add(&port->waiting, 1);
	afs_err err = port->driver->submit(port, s);
	if (err == AFS_OK)
		return AFS_OK;
	atomic_fetch_sub(&port->waiting, 1);
	atomic_fetch_add(&port->running, 1);
	atomic_fetch_add(&port->overloaded, 1);
	return AFS_EOVERLOAD;
}

struct rpc_stream *rpc_stream_serve(struct rpc_stream *s)
{
	struct rpc_stream *next = s->next;
	struct rpc_port *port = s->port;
	const struct rpc_service *svc = s->service;
	int32_t code = 0;
	if (s->queued)
		atomic_fetch_sub(&port->waiting, 1);
	if (rpc_call_is_over(&s->pub)) {
		rpc_stream_release(s, false, 0, false);
		return next;
	}
	if (!s->decoded) {
		bool last = rpc_stream_take(s);
		s->tried = rpc_stream_taken(s);
		afs_err err = try_decode(s, last, &code);
		if (err == AFS_EAGAIN) {
			rpc_stream_collect(s);
			return next;
		}
		if (err != AFS_OK) {
			rpc_stream_release(s, true, code, false);
			return next;
		}
	}
	atomic_fetch_add(&port->running, 1);
	s->pub.now = clk_mono();
	s->pub.must_not_wait = !s->queued && s->pub.proc->shape == RPC_QUICK;
	afs_err err = run(s, svc->handlers[s->pub.proc - s->pub.iface->procs]);
	if (err == AFS_EWAIT && s->pub.must_not_wait) {
		err = hand_over(s);
		if (err == AFS_OK)
			return next;
	}
	if (err != AFS_OK) {
		rpc_stream_drop(s);
		code = code_of(s, err);
	}
	mono_ns now = svc->done || rpc_stats_wanted(port->stats) ? clk_mono() : 0;
	if (svc->done)
		svc->done(svc->ctx, &s->pub, s->in_args, err, code, now - s->pub.now);
	if (now)
		rpc_stream_note(s, now, s->pub.now - s->begun, now - s->pub.now);
	atomic_fetch_sub(&port->running, 1);
	rpc_stream_release(s, err != AFS_OK, code, false);
	return next;
}

afs_err rpc_stream_serve_local(struct rpc_stream *s, int32_t *code)
{
	struct rpc_port *port = s->port;
	const struct rpc_service *svc = s->service;
	afs_err err = try_decode(s, true, code);
	if (err != AFS_OK)
		return err;
	atomic_fetch_add(&port->running, 1);
	s->pub.now = clk_mono();
	err = run(s, svc->handlers[s->pub.proc - s->pub.iface->procs]);
	if (err != AFS_OK)
		*code = code_of(s, err);
	if (err == AFS_OK)
		err = rpc_stream_finish(s);
	if (svc->done)
		svc->done(svc->ctx, &s->pub, s->in_args, err, *code, clk_mono() - s->pub.now);
	atomic_fetch_sub(&port->running, 1);
	return err;
}

struct rpc_stream *rpc_engine_take_inline(struct rpc_port *port)
{
	port->inline_tail = &port->inline_head;
	return TAKE(port->inline_head);
}

struct list *rpc_stream_link(struct rpc_stream *s) { return &s->link; }
struct rpc_stream *rpc_stream_of_link(struct list *link) { return list_entry(link, struct rpc_stream, link); }
struct rx_addr rpc_stream_peer(const struct rpc_stream *s) { return s->pub.peer; }
struct rpc_port *rpc_stream_port(const struct rpc_stream *s) { return s->port; }
