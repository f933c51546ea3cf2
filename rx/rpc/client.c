/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calling.  An rpc_conn is a peer, a service and a token; beneath it are as many Rx connections as
 * calls at once need (four each), opened when first needed.  One that failed (a connection abort, an
 * expired ticket) is let go, and the next call opens another; nothing is tried again by itself.
 * A call that finds every channel taken waits in line, first come first served. */
#include "rx/rpc/stream.h"

#include "cell/proto/abort.h"
#include "rx/rpc/rxstats.h"

struct rpc_conn {
	atomic_uint refs;
	struct rpc_port *port;             /* counted */
	struct rpc_conn_config config;     /* sec: see next_sec_locked() */
	struct rpc_local *local;           /* fixed; calls go to a port of this process */
	struct list node;                  /* port->lock: of port->conns while rx_count > 0 */
	struct rx_conn *rx[RPC_CONNS_MAX]; /* port->lock */
	unsigned rx_count;                 /* port->lock */
	struct list waiters;               /* port->lock: streams that want a channel */
	struct rx_call *linger[4 * RPC_CONNS_MAX]; /* port->lock: answered, not yet said to be */
	unsigned linger_count;             /* port->lock */
	mono_ns linger_until;              /* port->lock */
	struct list linger_node;           /* port->lock: of port->lingering while linger_count > 0 */
	atomic_llong rtt_ns;
};

afs_err rpc_conn_new(struct rpc_port *port, const struct rpc_conn_config *config, struct rpc_conn **out)
{
	struct rpc_conn *c = mem_new(struct rpc_conn);
	if (!c) {
		rx_sec_free(config->sec);
		return AFS_ENOMEM;
	}
	atomic_init(&c->refs, 1);
	c->port = rpc_port_ref(port);
	c->config = *config;
	list_init(&c->waiters);
	if (config->local)
		c->local = rpc_local_new(config);
	*out = c;
	return AFS_OK;
}

struct rpc_conn *rpc_conn_ref(struct rpc_conn *c)
{
	atomic_fetch_add(&c->refs, 1);
	return c;
}

static struct rx_conn *linger_pop_locked(struct rpc_conn *c, mono_ns now)
{
	struct rx_call *call = c->linger[--c->linger_count];
	struct rx_conn *rx = rx_call_conn(call);
	rx_call_done(call, now);
	rx_call_unref(call);
	if (!c->linger_count)
		list_remove(&c->linger_node);
	return rx;
}

static void linger_end_locked(struct rpc_conn *c, mono_ns now)
{
	while (c->linger_count)
		(void)linger_pop_locked(c, now); /* still held by c->rx, and not needed here */
}

void rpc_conn_linger(struct rpc_conn *c, struct rx_call *call, mono_ns now)
{
	if (c->linger_count == ARRAY_SIZE(c->linger))
		linger_end_locked(c, now);
	if (!c->linger_count) {
		c->linger_until = now + RPC_LINGER;
		list_push_back(&c->port->lingering, &c->linger_node);
	}
	c->linger[c->linger_count++] = call;
}

mono_ns rpc_conns_tick(struct rpc_port *port, mono_ns now)
{
	for (struct list *e; (e = list_first(&port->lingering));) {
		struct rpc_conn *c = list_entry(e, struct rpc_conn, linger_node);
		if (c->linger_until > now)
			return c->linger_until;
		linger_end_locked(c, now);
	}
	return MONO_NEVER;
}

static void let_go_locked(struct rpc_conn *c, unsigned i)
{
	rx_conn_unref(c->rx[i]);
	c->rx[i] = c->rx[--c->rx_count];
	if (!c->rx_count)
		list_remove(&c->node);
}

void rpc_conn_unref(struct rpc_conn *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	struct rpc_port *port = c->port;
	mono_ns now = rpc_port_enter(port);
	/* its last calls were released before this, and may still stand in the queue */
	rpc_engine_work(port, now);
	linger_end_locked(c, now);
	while (c->rx_count)
		let_go_locked(c, c->rx_count - 1);
	rpc_port_leave(port);
	rpc_local_free(c->local);
	rx_sec_free(c->config.sec);
	mem_free(c);
	rpc_port_unref(port);
}

void rpc_conns_close(struct rpc_port *port, mono_ns now)
{
	list_each(e, &port->conns)
	{
		struct rpc_conn *c = list_entry(e, struct rpc_conn, node);
		linger_end_locked(c, now);
		while (c->rx_count)
			let_go_locked(c, c->rx_count - 1);
	}
}

bool rpc_conn_is_local(const struct rpc_conn *c) { return c->local; }
struct rx_addr rpc_conn_peer(const struct rpc_conn *c) { return c->config.peer; }
int64_t rpc_conn_rtt_ns(const struct rpc_conn *c) { return atomic_load(&c->rtt_ns); }

/* --- channels, with port->lock ---------------------------------------------------------------- */

/* A connection more, of the same token. */
static struct rx_conn *connect_locked(struct rpc_conn *c, mono_ns now)
{
	struct rpc_port *port = c->port;
	const struct rx_sec *sec = c->config.sec;
	struct rx_conn_config config = {
		.peer = c->config.peer,
		.service = c->config.iface->service,
		.sec = sec ? sec->ops->clone(sec) : rx_null_new(),
		.dead_ns = c->config.dead_ns,
		.idle_ns = c->config.idle_ns,
		.hard_ns = c->config.hard_ns,
	};
	struct rx_conn *rx = config.sec ? rx_conn_new(port->ep, now, &config) : NULL;
	if (!rx)
		return NULL;
	if (!c->rx_count)
		list_push_back(&port->conns, &c->node);
	return c->rx[c->rx_count++] = rx;
}

/* AFS_EAGAIN: every channel is taken. */
static afs_err start_locked(struct rpc_conn *c, struct rpc_stream *s, mono_ns now)
{
	if (c->port->closing)
		return AFS_ECANCELLED;
	struct rx_call *call = NULL;
	while (c->linger_count && !call)
		call = rx_call_new(linger_pop_locked(c, now), now);
	for (unsigned i = c->rx_count; i-- > 0 && !call;)
		if (rx_conn_error(c->rx[i], NULL) != AFS_OK)
			let_go_locked(c, i);
	for (unsigned i = 0; i < c->rx_count && !call; i++)
		call = rx_call_new(c->rx[i], now);
	if (!call && c->rx_count == RPC_CONNS_MAX)
		return AFS_EAGAIN;
	if (!call) {
		struct rx_conn *rx = connect_locked(c, now);
		call = rx ? rx_call_new(rx, now) : NULL;
	}
	if (!call)
		return AFS_ENOMEM;
	rpc_stream_bind(s, call);
	rx_call_unref(call); /* bind took its own */
	rpc_stream_quick_go(s, now);
	return AFS_OK;
}

void rpc_conn_freed(struct rpc_conn *c, mono_ns now)
{
	for (unsigned i = 0; i < c->rx_count; i++) {
		int64_t rtt = rx_conn_rtt_ns(c->rx[i]);
		if (rtt)
			atomic_store(&c->rtt_ns, rtt);
	}
	for (struct list *e; (e = list_first(&c->waiters));) {
		struct rpc_stream *s = list_entry(e, struct rpc_stream, link);
		afs_err err = start_locked(c, s, now);
		if (err == AFS_EAGAIN)
			return;
		list_remove(e);
		if (err != AFS_OK) {
			rpc_stream_end(s, err, 0);
			continue;
		}
		mtx_lock(&s->lock);
		s->waiting = RPC_WAIT_NONE;
		mtx_unlock(&s->lock);
		rpc_stream_signal(s);
	}
}

/* --- a call ------------------------------------------------------------------------------------ */

/* A quick call: start it, or let it wait in line. */
static void quick_work(struct rpc_port *port, struct rpc_work *work, mono_ns now) REQUIRES(port->lock);
static void quick_work(struct rpc_port *port, struct rpc_work *work, mono_ns now)
{
	struct rpc_stream *s = container_of(work, struct rpc_stream, work);
	work->run = rpc_stream_work;
	mtx_lock(&s->lock);
	bool unwanted = s->want_release;
	mtx_unlock(&s->lock);
	if (unwanted) {
		rpc_stream_work(port, work, now);
		return;
	}
	struct rpc_conn *c = s->conn;
	list_push_back(&port->streams, &s->node);
	afs_err err = list_empty(&c->waiters) ? start_locked(c, s, now) : AFS_EAGAIN;
	if (err == AFS_EAGAIN && !port->closing)
		list_push_back(&c->waiters, &s->link);
	else if (err != AFS_OK)
		rpc_stream_end(s, err == AFS_EAGAIN ? AFS_ECANCELLED : err, 0);
}

static afs_err start(struct rpc_conn *c, struct rpc_stream *s)
{
	struct rpc_port *port = c->port;
	mono_ns now = rpc_port_enter(port);
	rpc_engine_work(port, now); /* channels given back just now */
	afs_err err = list_empty(&c->waiters) ? start_locked(c, s, now) : AFS_EAGAIN;
	if (err == AFS_EAGAIN && port->closing)
		err = AFS_ECANCELLED;
	if (err == AFS_EAGAIN)
		list_push_back(&c->waiters, &s->link);
	list_push_back(&port->streams, &s->node);
	rpc_port_leave(port);
	if (err != AFS_EAGAIN)
		return err;

	mtx_lock(&s->lock);
	while (!s->started && !s->over) {
		s->waiting = RPC_WAIT_START;
		port->driver->wait(port, s);
	}
	s->waiting = RPC_WAIT_NONE;
	err = s->started ? AFS_OK : s->err;
	mtx_unlock(&s->lock);
	return err;
}

/* Give back a call that failed, or is not wanted any more. */
static void stop(struct rpc_stream *s)
{
	struct rpc_conn *c = s->conn;
	rpc_stream_drop(s);
	rpc_stream_release(s, true, RX_USER_ABORT, false);
	rpc_conn_unref(c);
}

/* An object with the room that packets of this conn need around their data. */
static const struct rx_sec *sizes(const struct rpc_conn *c)
{
	return c->config.sec ? c->config.sec : rx_null_new(); /* which is one object for all */
}

afs_err rpc_begin(struct rpc_conn *c, const struct rpc_proc *proc, const void *in, struct rpc_call **out)
{
	struct rpc_stream *s = rpc_stream_new(c->port);
	if (!s)
		return AFS_ENOMEM;
	s->conn = rpc_conn_ref(c);
	s->state = RPC_RUNNING;
	s->pub.iface = c->config.iface;
	s->pub.proc = proc;
	s->pub.peer = c->config.peer;
	if (rpc_stats_wanted(s->port->stats))
		s->begun = clk_mono();
	if (c->local) {
		afs_err err = rpc_local_begin(c->local, s, proc);
		if (err == AFS_OK)
			err = rpc_stream_put(s, &proc->op, proc->in_put, in, c->config.iface->args_max);
		if (err == AFS_OK && proc->shape != RPC_SPLIT)
			err = rpc_stream_finish(s);
		if (err != AFS_OK) {
			s->local = true;
			stop(s);
			return err;
		}
		*out = &s->pub;
		return AFS_OK;
	}
	if (proc->shape != RPC_SPLIT && rpc_stream_quick(s, sizes(c), proc, in)) {
		s->work.run = quick_work;
		rpc_post(s->port, &s->work);
		s->port->driver->kick(s->port);
		*out = &s->pub;
		return AFS_OK;
	}
	afs_err err = start(c, s);
	if (err == AFS_OK)
		err = rpc_stream_put(s, &proc->op, proc->in_put, in, c->config.iface->args_max);
	if (err == AFS_OK && proc->shape != RPC_SPLIT)
		err = rpc_stream_finish(s);
	if (err != AFS_OK) {
		stop(s);
		return err;
	}
	*out = &s->pub;
	return AFS_OK;
}

static afs_err results(struct rpc_stream *s, void *out, struct arena *arena)
{
	size_t max = rpc_iface_results_max(s->pub.iface);
	struct rpc_scratch scratch = {0};
	const uint8_t *p;
	size_t n;
	TRY(rpc_stream_await_all(s, max + RX_BUF_MID)); /* as it came: sealed, and in whole packets */
	/* newer peers may say more than we know: what follows the results is not looked at */
	TRY(rpc_stream_peek(s, max, &scratch, &p, &n));
	struct xdr_in x = {p, p + n, arena, AFS_OK};
	s->pub.proc->out_get(&x, out);
	rpc_scratch_free(&scratch);
	return x.err == AFS_EAGAIN ? AFS_EDECODE : x.err;
}

afs_err rpc_end(struct rpc_call *call, void *out, struct rpc_result *res)
{
	struct rpc_stream *s = stream_of(call);
	afs_err err = results(s, out, res ? res->arena : NULL);
	mtx_lock(&s->lock);
	int32_t code = s->over ? s->code : 0;
	mtx_unlock(&s->lock);
	if (res)
		res->code = err == AFS_OK ? 0 : code;
	if (s->begun) {
		mono_ns now = clk_mono();
		rpc_stream_note(s, now, 0, now - s->begun);
	}
	if (err != AFS_OK) {
		stop(s);
		return err;
	}
	struct rpc_conn *c = s->conn;
	rpc_stream_release(s, false, 0, true);
	rpc_conn_unref(c);
	return AFS_OK;
}

void rpc_cancel(struct rpc_call *call) { stop(stream_of(call)); }

afs_err rpc_invoke(struct rpc_conn *c, const struct rpc_proc *proc, const void *in, void *out, struct rpc_result *res)
{
	struct rpc_call *call;
	if (res)
		res->code = 0;
	TRY(rpc_begin(c, proc, in, &call));
	return rpc_end(call, out, res);
}
