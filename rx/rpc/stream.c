/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Streams: packets become bytes and bytes packets, on the thread that reads or writes.
 *
 * Packets move in lists, and are sealed together when they are handed over.  A reader takes all that came with one lock; a writer seals into a list of
 * its own and hands over RPC_HAND_OVER bytes at once.  A reader in mid-stream sleeps until
 * RPC_WAKE_BYTES wait for it (or RPC_LAZY passed), so a bulk transfer wakes it a few times per MiB;
 * the first bytes of a call, and its last, wake it at once.
 *
 * What came for a running reader is acknowledged for good at once, up to RPC_AHEAD_BYTES that it has
 * not come for: the window of a peer that allows itself few packets (stock: 32) is then not shut while
 * a thread gets around to reading.  Who is told of which packet: those told of stand in front, since
 * more are told of ahead only when none is left that was not. */
#include "rx/rpc/stream.h"

#include "cell/proto/abort.h"
#include "rx/rpc/rxstats.h"

#include <string.h>

/* --- life --------------------------------------------------------------------------------- */

static void seal(struct rpc_stream *s, struct rpc_queue *queue);

struct rpc_stream *rpc_stream_new(struct rpc_port *port)
{
	struct rpc_stream *s = mem_new(struct rpc_stream);
	if (!s)
		return NULL;
	s->port = port;
	s->work.run = rpc_stream_work;
	mtx_init(&s->lock, RANK_RPC_CALL);
	cond_init(&s->cond);
	rpc_queue_init(&s->rx);
	rpc_queue_init(&s->tx);
	rpc_queue_init(&s->in);
	rpc_queue_init(&s->out);
	s->pub.arena = &s->arena;
	mtx_lock(&port->queue_lock);
	port->live++;
	mtx_unlock(&port->queue_lock);
	return s;
}

void rpc_stream_bind(struct rpc_stream *s, struct rx_call *call)
{
	struct rx_conn *conn = rx_call_conn(call);
	s->call = rx_call_ref(call);
	rx_call_set_user(call, s);
	s->sec = rx_conn_sec(conn);
	s->in_id = rx_call_packet_id(call, 0, true);
	s->out_id = rx_call_packet_id(call, 0, false);
	struct rx_conn_id id = rx_conn_id(conn);
	s->conn_key = (uint64_t)id.epoch << 32 | id.cid;
	s->pub.peer = rx_call_peer(call);
	mtx_lock(&s->lock);
	s->body_max = rx_call_body_max(call);
	s->started = true;
	mtx_unlock(&s->lock);
}

void rpc_stream_note(struct rpc_stream *s, mono_ns now, int64_t queue_ns, int64_t run_ns)
{
	if (!s->pub.proc || !rpc_stats_wanted(s->port->stats))
		return;
	mtx_lock(&s->lock);
	uint64_t came = s->rx_total;
	mtx_unlock(&s->lock);
	const struct rpc_stats_call call = {
		.iface = s->pub.iface,
		.proc = s->pub.proc,
		.peer = s->pub.peer,
		.made = !s->service,
		.sent = s->wrote,
		.received = came,
		.queue_ns = queue_ns,
		.run_ns = run_ns,
		.now = now,
	};
	rpc_stats_note(s->port->stats, &call);
}

void rpc_stream_wait(struct rpc_stream *s) { cond_wait(&s->cond, &s->lock); }

void rpc_stream_signal(struct rpc_stream *s)
{
	/* it cannot be freed meanwhile: that takes port->lock */
	cond_signal(&s->cond);
	if (atomic_load(&s->polls))
		s->port->driver->interrupt(s->port);
}

void rpc_stream_destroy(struct rpc_stream *s)
{
	struct rpc_port *port = s->port;
	if (s->call) {
		rx_call_set_user(s->call, NULL);
		rx_call_unref(s->call);
	}
	list_remove(&s->node);
	if (s->conn)
		list_remove(&s->link);
	if (s->lazy) {
		struct rpc_stream **at = &port->lazy_head;
		while (*at != s)
			at = &(*at)->lazy_next;
		*at = s->lazy_next;
	}
	rpc_queue_clear(&s->rx);
	rpc_queue_clear(&s->tx);
	rpc_queue_clear(&s->in);
	rpc_queue_clear(&s->out);
	if (s->cur)
		rx_packet_free(s->cur);
	if (s->fill)
		rx_packet_free(s->fill);
	arena_fini(&s->arena);
	rpc_conn_user_unref(s->conn_user);
	cond_fini(&s->cond);
	mtx_fini(&s->lock);
	mem_free(s);

	mtx_lock(&port->queue_lock);
	if (--port->live == 0)
		cond_broadcast(&port->drained);
	mtx_unlock(&port->queue_lock);
}

/* --- the endpoint's side ------------------------------------------------------------------ */

static void lazy_add(struct rpc_stream *s, mono_ns now)
{
	struct rpc_port *port = s->port;
	if (s->lazy)
		return;
	if (!port->lazy_head)
		port->lazy_at = now + RPC_LAZY;
	s->lazy = true;
	s->lazy_next = port->lazy_head;
	port->lazy_head = s;
}

static mono_ns wake_lazy(struct rpc_port *port, mono_ns now) REQUIRES(port->lock);
static mono_ns wake_lazy(struct rpc_port *port, mono_ns now)
{
	if (!port->lazy_head)
		return MONO_NEVER;
	if (now < port->lazy_at)
		return port->lazy_at;
	struct rpc_stream *s = TAKE(port->lazy_head);
	while (s) {
		struct rpc_stream *next = s->lazy_next;
		s->lazy = false;
		mtx_lock(&s->lock);
		bool wake = s->waiting == RPC_WAIT_READ && s->rx.head;
		if (wake)
			s->waiting = RPC_WAIT_NONE;
		mtx_unlock(&s->lock);
		if (wake)
			rpc_stream_signal(s);
		s = next;
	}
	return MONO_NEVER;
}

struct rpc_dues rpc_engine_tick(struct rpc_port *port, mono_ns now)
{
	return (struct rpc_dues){.soon = wake_lazy(port, now), .later = rpc_conns_tick(port, now)};
}

static bool worth_waking_locked(const struct rpc_stream *s)
{
	return s->rx_last || s->rx.bytes >= MIN((size_t)RPC_WAKE_BYTES, s->rx_total / 4);
}

void rpc_stream_receive(struct rpc_stream *s, mono_ns now)
{
	struct rpc_queue came;
	rpc_queue_init(&came);
	bool last = false;
	for (struct rx_packet *p = rx_call_receive(s->call, now), *next; p; p = next) {
		next = p->next;
		last = last || p->last;
		rpc_queue_push(&came, p);
	}
	if (!came.head)
		return;
	bool lazy = false;
	mtx_lock(&s->lock);
	s->rx_total += came.bytes;
	uint32_t told = 0;
	if (s->state == RPC_RUNNING && !s->untold && s->rx.bytes + came.bytes <= RPC_AHEAD_BYTES)
		s->rx_told += told = came.packets;
	else
		s->untold += came.packets;
	rpc_queue_append(&s->rx, &came);
	s->rx_last = s->rx_last || last;
	bool voided = !s->service && !s->tx_void;
	if (voided) {
		/* the reply has begun: whatever was not sent yet will not be read */
		s->tx_void = true;
		rpc_queue_clear(&s->tx);
	}
	bool wake = s->waiting == RPC_WAIT_WRITE ? s->tx_void :
		s->waiting == RPC_WAIT_READ && worth_waking_locked(s);
	lazy = s->waiting == RPC_WAIT_READ && !wake;
	if (wake)
		s->waiting = RPC_WAIT_NONE;
	mtx_unlock(&s->lock);
	if (told)
		rx_call_consumed(s->call, now, told);
	if (voided)
		rx_buf_pool_wake(s->port->pool);
	if (wake) {
		rpc_stream_signal(s);
		if (!s->service && s->rx_total <= RPC_SMALL)
			s->port->callers_woken++;
	}
	if (lazy)
		lazy_add(s, now);
}

void rpc_stream_push(struct rpc_stream *s, mono_ns now)
{
	if (!s->call)
		return;
	uint32_t room = rx_call_room(s->call);
	struct rpc_queue go;
	rpc_queue_init(&go);
	mtx_lock(&s->lock);
	if (!s->over) {
		if (room >= s->tx.packets)
			rpc_queue_append(&go, &s->tx);
		else
			while (room-- > 0)
				rpc_queue_push(&go, rpc_queue_pop(&s->tx));
		s->body_max = rx_call_body_max(s->call);
	}
	bool wake = s->waiting == RPC_WAIT_WRITE && s->tx.bytes <= RPC_TX_BYTES / 2;
	if (wake)
		s->waiting = RPC_WAIT_NONE;
	bool rest = s->tx.head;
	mtx_unlock(&s->lock);
	if (wake)
		rpc_stream_signal(s);
	if (go.head)
		rx_call_send(s->call, now, go.head);
	if (s->state == RPC_FINISHED && !rest)
		rpc_stream_destroy(s);
}

void rpc_stream_end(struct rpc_stream *s, afs_err err, int32_t code)
{
	mtx_lock(&s->lock);
	if (!s->over) {
		s->over = true;
		s->err = err;
		s->code = code;
	}
	rpc_queue_clear(&s->tx);
	s->waiting = RPC_WAIT_NONE;
	mtx_unlock(&s->lock);
	rpc_stream_signal(s);
	rx_buf_pool_wake(s->port->pool);
	if (s->state == RPC_FINISHED || s->state == RPC_COLLECTING)
		rpc_stream_destroy(s);
}

void rpc_stream_distrust(struct rpc_stream *s, afs_err err, mono_ns now)
{
	rx_conn_abort(rx_call_conn(s->call), now, err, s->sec->ops->code(s->sec, err));
}

void rpc_stream_consumed(struct rpc_stream *s, uint32_t packets, mono_ns now)
{
	mtx_lock(&s->lock);
	s->untold -= MIN(packets, s->untold);
	mtx_unlock(&s->lock);
	if (packets)
		rx_call_consumed(s->call, now, packets);
}

/* What the user's side left to do: consumption, packets, and the end. */
void rpc_stream_work(struct rpc_port *port, struct rpc_work *work, mono_ns now)
{
	struct rpc_stream *s = container_of(work, struct rpc_stream, work);
	mtx_lock(&s->lock);
	if ((s->want_release || s->want_collect) && rpc_posted(port, work)) {
		/* given back after this piece of work was taken from the queue: it comes once more, and
		 * must not find the stream freed */
		mtx_unlock(&s->lock);
		return;
	}
	uint32_t consumed = TAKE(s->consumed);
	bool over = s->over, abort = s->want_abort, done = s->want_done, release = s->want_release;
	bool collect = TAKE(s->want_collect);
	int32_t code = s->abort_code;
	afs_err distrust = TAKE(s->want_distrust);
	mtx_unlock(&s->lock);

	if (s->call && !over && distrust != AFS_OK) {
		rpc_stream_distrust(s, distrust, now);
	} else if (s->call && !over) {
		rpc_stream_consumed(s, consumed, now);
		if (abort) {
			rx_call_abort(s->call, now, code);
		} else if (done && s->rx_total <= RPC_SMALL) {
			rx_call_set_user(s->call, NULL);
			rpc_conn_linger(s->conn, TAKE(s->call), now);
		} else if (done) {
			rx_call_done(s->call, now);
		}
	}
	if (collect) {
		s->state = RPC_COLLECTING;
		if (over)
			rpc_stream_destroy(s);
		else
			rpc_dispatch_more(s, now);
		return;
	}
	struct rpc_conn *conn = s->conn;
	if (release)
		s->state = RPC_FINISHED;
	if (release && (over || abort || done || !s->call))
		rpc_stream_destroy(s);
	else
		rpc_stream_push(s, now);
	if (release && conn)
		rpc_conn_freed(conn, now);
}

/* --- the user's side: the end -------------------------------------------------------------- */

void rpc_stream_collect(struct rpc_stream *s)
{
	struct rpc_port *port = rpc_port_ref(s->port); /* without streams it may be closed and freed */
	mtx_lock(&s->lock);
	s->want_collect = true;
	rpc_post(port, &s->work); /* under the lock: see rpc_stream_work() */
	mtx_unlock(&s->lock);
	port->driver->kick(port);
	rpc_port_unref(port);
}

void rpc_stream_release(struct rpc_stream *s, bool abort, int32_t code, bool done)
{
	if (s->local) {
		rpc_local_drop(s);
		rpc_stream_destroy(s);
		return;
	}
	struct rpc_port *port = rpc_port_ref(s->port); /* as above */
	if (!abort)
		seal(s, &s->out);
	mtx_lock(&s->lock);
	if (!abort)
		rpc_queue_append(&s->tx, &s->out);
	s->want_abort = abort;
	s->abort_code = code;
	s->want_done = done;
	s->want_release = true;
	rpc_post(port, &s->work); /* under the lock: see rpc_stream_work() */
	mtx_unlock(&s->lock);
	port->driver->kick(port);
	rpc_port_unref(port);
}

bool rpc_call_is_over(struct rpc_call *call) { return atomic_load(&stream_of(call)->over); }

/* How a call that is over looks to its user. */
static afs_err over_err_locked(const struct rpc_stream *s)
{
	if (!s->service && s->code && s->err == AFS_EABORTED)
		return s->pub.iface->err_of(s->code);
	return s->err ? s->err : AFS_EABORTED;
}

/* --- reading ------------------------------------------------------------------------------ */

static void take_locked(struct rpc_stream *s)
{
	rpc_queue_append(&s->in, &s->rx);
	s->in_told += TAKE(s->rx_told);
	s->in_last = s->in_last || s->rx_last;
}

bool rpc_stream_take(struct rpc_stream *s)
{
	mtx_lock(&s->lock);
	take_locked(s);
	mtx_unlock(&s->lock);
	return s->in_last;
}

size_t rpc_stream_taken(const struct rpc_stream *s) { return s->left + s->in.bytes; }

static afs_err open_packet(struct rpc_stream *s, struct rx_packet *p)
{
	struct rx_sec_packet id = s->in_id;
	id.seq = p->seq;
	size_t off, len;
	afs_err err = s->sec->ops->open(s->sec, &id, p->cksum, p->buf->data + p->off, p->len, &off, &len);
	if (err != AFS_OK) {
		/* told to the endpoint with whatever comes next; while arguments are collected, by dispatch */
		mtx_lock(&s->lock);
		s->want_distrust = err;
		mtx_unlock(&s->lock);
		return err;
	}
	p->off += (uint32_t)off;
	p->len = (uint32_t)len;
	return AFS_OK;
}

/* Tell the endpoint how much was read, when that is much or the reader is about to wait. */
static void tell_consumed(struct rpc_stream *s)
{
	if (!s->read_packets || s->local)
		return;
	mtx_lock(&s->lock);
	s->consumed += s->read_packets;
	mtx_unlock(&s->lock);
	s->read_packets = 0;
	s->read_bytes = 0;
	rpc_post(s->port, &s->work);
	s->port->driver->kick(s->port);
}

static void retire(struct rpc_stream *s)
{
	struct rx_packet *p = TAKE(s->cur);
	if (!p)
		return;
	if (s->in_told) {
		s->in_told--;
	} else {
		s->read_packets++;
		s->read_bytes += p->len;
	}
	rx_packet_free(p);
}

/* Make `cur` the next packet with bytes in it; never waits.  False: none is here. */
static bool next_packet(struct rpc_stream *s, afs_err *err)
{
	*err = AFS_OK;
	while (!s->left) {
		retire(s);
		struct rx_packet *p = rpc_queue_pop(&s->in);
		if (!p)
			return false;
		if (s->in_opened) {
			s->in_opened--;
		} else if ((*err = open_packet(s, p)) != AFS_OK) {
			rx_packet_free(p);
			return false;
		}
		s->cur = p;
		s->at = p->buf->data + p->off;
		s->left = p->len;
	}
	return true;
}

static afs_err flush(struct rpc_stream *s);
static bool consumed_much(const struct rpc_stream *s)
{
	return s->read_packets >= RPC_TELL_PACKETS || s->read_bytes >= RPC_WAKE_BYTES / 2;
}

/* Make bytes present; *end: there are no more. */
static afs_err await_bytes(struct rpc_stream *s, bool *end)
{
	*end = false;
	if (!s->service && !s->wrote_last)
		TRY(rpc_stream_finish(s));
	for (;;) {
		afs_err err;
		if (next_packet(s, &err)) {
			if (consumed_much(s) && !s->in_last)
				tell_consumed(s);
			return AFS_OK;
		}
		if (err != AFS_OK)
			return err;
		if (s->in_last) {
			*end = true;
			return AFS_OK;
		}
		if (s->local) {
			if (!s->service)
				rpc_local_run(s);
			if (s->in.head || s->in_last)
				continue;
			mtx_lock(&s->lock);
			err = s->over ? over_err_locked(s) : AFS_EEOF;
			mtx_unlock(&s->lock);
			return err;
		}
		mtx_lock(&s->lock);
		take_locked(s);
		mtx_unlock(&s->lock);
		if (s->in.head)
			continue;
		tell_consumed(s);
		mtx_lock(&s->lock);
		while (!s->over && !s->rx.head) {
			s->waiting = RPC_WAIT_READ;
			s->port->driver->wait(s->port, s);
		}
		s->waiting = RPC_WAIT_NONE;
		take_locked(s);
		err = s->over ? over_err_locked(s) : AFS_OK;
		mtx_unlock(&s->lock);
		if (err != AFS_OK)
			return err;
	}
}

afs_err rpc_read_run(struct rpc_call *call, size_t max, const uint8_t **p, size_t *n)
{
	struct rpc_stream *s = stream_of(call);
	bool end;
	TRY(flush(s));
	TRY(await_bytes(s, &end));
	*p = s->at;
	*n = end ? 0 : MIN(max, s->left);
	s->at += *n;
	s->left -= *n;
	return AFS_OK;
}

afs_err rpc_read(struct rpc_call *call, void *p, size_t n)
{
	uint8_t *to = p;
	while (n) {
		const uint8_t *run;
		size_t got;
		TRY(rpc_read_run(call, n, &run, &got));
		if (!got)
			return AFS_EEOF;
		memcpy(to, run, got);
		to += got;
		n -= got;
	}
	return AFS_OK;
}

afs_err rpc_read_u32(struct rpc_call *call, uint32_t *v)
{
	uint8_t b[4];
	TRY(rpc_read(call, b, sizeof(b)));
	*v = be32_get(b);
	return AFS_OK;
}

afs_err rpc_read_u64(struct rpc_call *call, uint64_t *v)
{
	uint8_t b[8];
	TRY(rpc_read(call, b, sizeof(b)));
	*v = (uint64_t)be32_get(b) << 32 | be32_get(b + 4);
	return AFS_OK;
}

afs_err rpc_stream_await_all(struct rpc_stream *s, size_t max)
{
	TRY(flush(s));
	if (!s->service && !s->wrote_last)
		TRY(rpc_stream_finish(s));
	if (s->local && !s->service)
		rpc_local_run(s);
	for (;;) {
		/* what came counts only when all came: the abort of a call overtakes its bytes */
		bool over = rpc_call_is_over(&s->pub);
		if (rpc_stream_take(s))
			return AFS_OK;
		if (over)
			break;
		if (rpc_stream_taken(s) > max)
			return AFS_EDECODE;
		/* what is held here counts as consumed, or a small window would never carry the rest */
		uint32_t held = s->in.packets + (s->cur ? 1 : 0);
		s->read_packets += held - s->in_told;
		s->in_told = held;
		tell_consumed(s);
		mtx_lock(&s->lock);
		while (!s->over && !s->rx.head) {
			s->waiting = RPC_WAIT_READ;
			s->port->driver->wait(s->port, s);
		}
		s->waiting = RPC_WAIT_NONE;
		mtx_unlock(&s->lock);
	}
	mtx_lock(&s->lock);
	afs_err err = over_err_locked(s);
	mtx_unlock(&s->lock);
	return err;
}

uint8_t *rpc_scratch_get(struct rpc_port *port, struct rpc_scratch *scratch, size_t n)
{
	if (n <= RX_DATAGRAM_MAX) {
		scratch->buf = rx_buf_get(port->pool, (uint32_t)n);
		return scratch->buf ? scratch->buf->data : NULL;
	}
	return scratch->heap = mem_alloc(n, 1);
}

void rpc_scratch_free(struct rpc_scratch *scratch)
{
	if (scratch->buf)
		rx_buf_unref(scratch->buf);
	mem_free(scratch->heap);
	*scratch = (struct rpc_scratch){0};
}

afs_err rpc_stream_peek(struct rpc_stream *s, size_t max, struct rpc_scratch *scratch, const uint8_t **p, size_t *n)
{
	afs_err err;
	*p = (const uint8_t *)""; /* of nothing there is an address too */
	*n = 0;
	if (!next_packet(s, &err))
		return err;
	/* sizes are known once packets are open */
	size_t have = s->left;
	uint32_t i = 0;
	for (struct rx_packet *q = s->in.head; q && have < max; q = q->next, i++) {
		if (i >= s->in_opened) {
			size_t sealed = q->len;
			TRY(open_packet(s, q));
			s->in.bytes -= sealed - q->len;
			s->in_opened++;
		}
		have += q->len;
	}
	if (have == s->left || s->left >= max) {
		*n = MIN(s->left, max);
		if (*n)
			*p = s->at;
		return AFS_OK;
	}
	have = MIN(have, max);
	uint8_t *to = rpc_scratch_get(s->port, scratch, have);
	if (!to)
		return AFS_ENOMEM;
	if (s->left)
		memcpy(to, s->at, s->left);
	size_t at = s->left;
	for (struct rx_packet *q = s->in.head; at < have; q = q->next) {
		size_t part = MIN((size_t)q->len, have - at);
		memcpy(to + at, q->buf->data + q->off, part);
		at += part;
	}
	*p = to;
	*n = have;
	return AFS_OK;
}

void rpc_stream_skip(struct rpc_stream *s, size_t n)
{
	afs_err err;
	while (n && next_packet(s, &err)) {
		size_t part = MIN(n, s->left);
		s->at += part;
		s->left -= part;
		n -= part;
	}
}

/* --- writing ------------------------------------------------------------------------------ */

/* Give what is sealed to the endpoint; with `wait`, not before it has room. */
static afs_err hand_over(struct rpc_stream *s, bool wait)
{
	if (!s->out.head)
		return AFS_OK;
	if (s->local) {
		if (s->twin) {
			rpc_queue_append(&s->twin->in, &s->out);
			s->twin->in_last |= s->wrote_last;
		} else {
			rpc_queue_clear(&s->out); /* the other side has ended */
		}
		return AFS_OK;
	}
	seal(s, &s->out);
	mtx_lock(&s->lock);
	while (wait && !s->over && !s->tx_void && s->tx.bytes > RPC_TX_BYTES) {
		s->waiting = RPC_WAIT_WRITE;
		s->port->driver->wait(s->port, s);
	}
	s->waiting = RPC_WAIT_NONE;
	afs_err err = s->over ? over_err_locked(s) : AFS_OK;
	if (err != AFS_OK || s->tx_void)
		rpc_queue_clear(&s->out);
	else
		rpc_queue_append(&s->tx, &s->out);
	s->body = s->body_max;
	mtx_unlock(&s->lock);
	if (err == AFS_OK) {
		rpc_post(s->port, &s->work);
		s->port->driver->kick(s->port);
	}
	return err;
}

static bool room_is_moot(void *ctx)
{
	struct rpc_stream *s = ctx;
	return s->over || s->tx_void;
}

/* A buffer to fill.  Where the pool is used up a thread that may wait does so, and what it has said so
 * far is given away first: it is that which comes back. */
static afs_err fill_buf(struct rpc_stream *s, bool wait, struct rx_buf **buf)
{
	const uint32_t cap = RX_HEADER + s->body;
	const bool on_io_thread = s->service && !s->queued;
	if (!wait || s->local || on_io_thread) {
		*buf = rx_buf_get(s->port->pool, cap);
		return *buf ? AFS_OK : AFS_ENOMEM;
	}
	*buf = rx_buf_await(s->port->pool, cap, 0, room_is_moot, s);
	if (*buf)
		return AFS_OK;
	TRY(hand_over(s, false));
	*buf = rx_buf_await(s->port->pool, cap, clk_mono() + RPC_ROOM_WAIT, room_is_moot, s);
	if (!*buf && s->tx_void)
		*buf = rx_buf_get(s->port->pool, cap); /* nobody will read it */
	if (*buf)
		return AFS_OK;
	mtx_lock(&s->lock);
	afs_err err = s->over ? over_err_locked(s) : AFS_ENOMEM;
	mtx_unlock(&s->lock);
	return err;
}

static afs_err fill_begin(struct rpc_stream *s, bool wait)
{
	if (!s->body) {
		mtx_lock(&s->lock);
		s->body = s->body_max;
		mtx_unlock(&s->lock);
	}
	uint32_t around = (uint32_t)s->sec->header + s->sec->trailer;
	if (s->body <= around)
		return AFS_EPROTOCOL;
	const uint32_t body = s->body; /* may be another once there is room */
	struct rx_buf *buf;
	TRY(fill_buf(s, wait, &buf));
	s->body = body;
	s->fill = rx_packet_new(buf);
	if (!s->fill)
		return AFS_ENOMEM;
	s->fill->off = RX_HEADER;
	s->room = s->body - around;
	s->used = 0;
	return AFS_OK;
}

/* The packet is as full as it gets; it is sealed with its neighbours, by seal(). */
static void fill_close(struct rpc_stream *s, bool last)
{
	struct rx_packet *p = TAKE(s->fill);
	p->seq = ++s->seq;
	p->last = last;
	p->len = (uint32_t)s->used;
	s->wrote += s->used;
	s->used = s->room = 0;
	rpc_queue_push(&s->out, p);
}

static void seal(struct rpc_stream *s, struct rpc_queue *queue)
{
	const struct rx_sec_ops *ops = s->sec->ops;
	if (ops->sec_class == RX_SEC_NULL)
		return;
	queue->bytes = 0;
	for (struct rx_packet *p = queue->head; p;) {
		struct rx_sec_body body[RPC_HAND_OVER_PACKETS];
		size_t n = 0;
		for (struct rx_packet *q = p; q && n < ARRAY_SIZE(body); q = q->next)
			body[n++] = (struct rx_sec_body){
				.seq = q->seq, .body = q->buf->data + q->off, .data_len = q->len};
		ops->seal_many(s->sec, &s->out_id, body, n);
		for (size_t i = 0; i < n; i++, p = p->next) {
			p->len = (uint32_t)body[i].body_len;
			p->cksum = body[i].cksum;
			queue->bytes += p->len;
		}
	}
}

static uint8_t *fill_at(struct rpc_stream *s)
{
	return s->fill->buf->data + s->fill->off + s->sec->header + s->used;
}

/* A client that reads has said all; a server's bytes so far must not wait while it does. */
static afs_err flush(struct rpc_stream *s)
{
	if (s->service && s->fill && s->used)
		fill_close(s, false);
	return hand_over(s, false);
}

afs_err rpc_write_room(struct rpc_call *call, size_t max, uint8_t **p, size_t *n)
{
	struct rpc_stream *s = stream_of(call);
	if (s->wrote_last)
		return AFS_EINVAL;
	/* a full packet is sealed only now: it might have been the last */
	if (s->fill && s->used == s->room) {
		fill_close(s, false);
		if (s->out.bytes >= RPC_HAND_OVER || s->out.packets >= RPC_HAND_OVER_PACKETS)
			TRY(hand_over(s, true));
	}
	if (!s->fill)
		TRY(fill_begin(s, true));
	*p = fill_at(s);
	*n = MIN(max, s->room - s->used);
	return AFS_OK;
}

afs_err rpc_write_commit(struct rpc_call *call, size_t n)
{
	struct rpc_stream *s = stream_of(call);
	if (!n)
		return AFS_OK;
	if (!s->fill || n > s->room - s->used)
		return AFS_EINVAL;
	s->used += n;
	return AFS_OK;
}

afs_err rpc_write(struct rpc_call *call, const void *p, size_t n)
{
	const uint8_t *from = p;
	while (n) {
		uint8_t *to;
		size_t room;
		TRY(rpc_write_room(call, n, &to, &room));
		memcpy(to, from, room);
		TRY(rpc_write_commit(call, room));
		from += room;
		n -= room;
	}
	return AFS_OK;
}

afs_err rpc_write_u32(struct rpc_call *call, uint32_t v)
{
	uint8_t b[4];
	be32_put(b, v);
	return rpc_write(call, b, sizeof(b));
}

afs_err rpc_write_u64(struct rpc_call *call, uint64_t v)
{
	uint8_t b[8];
	be32_put(b, (uint32_t)(v >> 32));
	be32_put(b + 4, (uint32_t)v);
	return rpc_write(call, b, sizeof(b));
}

static afs_err encode(struct xdr_out *x, const uint32_t *op, void (*put)(struct xdr_out *, const void *), const void *v)
{
	if (op)
		xdr_put_u32(x, op);
	put(x, v);
	return x->err;
}

afs_err rpc_stream_put(struct rpc_stream *s, const uint32_t *op, void (*put)(struct xdr_out *, const void *), const void *v, uint32_t max)
{
	uint8_t *p;
	size_t room;
	TRY(rpc_write_room(&s->pub, (size_t)max + 4, &p, &room));
	struct xdr_out x = {p, p + room, AFS_OK};
	if (encode(&x, op, put, v) == AFS_OK)
		return rpc_write_commit(&s->pub, (size_t)(x.p - p));
	if (room == (size_t)max + 4)
		return x.err;
	/* more than this packet holds: encode aside, in growing steps, and copy */
	for (size_t step = MIN((size_t)RX_DATAGRAM_MAX, (size_t)max + 4);; step = MIN(step * 4, (size_t)max + 4)) {
		struct rpc_scratch scratch = {0};
		uint8_t *mem = rpc_scratch_get(s->port, &scratch, step);
		if (!mem)
			return AFS_ENOMEM;
		x = (struct xdr_out){mem, mem + step, AFS_OK};
		afs_err err = encode(&x, op, put, v);
		bool again = err != AFS_OK && step < (size_t)max + 4;
		if (err == AFS_OK)
			err = rpc_write(&s->pub, mem, (size_t)(x.p - mem));
		rpc_scratch_free(&scratch);
		if (!again)
			return err;
	}
}

afs_err rpc_stream_seal_last(struct rpc_stream *s)
{
	if (s->wrote_last)
		return AFS_OK;
	if (!s->fill)
		TRY(fill_begin(s, true));
	fill_close(s, true);
	s->wrote_last = true;
	return AFS_OK;
}

afs_err rpc_stream_finish(struct rpc_stream *s)
{
	TRY(rpc_stream_seal_last(s));
	return hand_over(s, false);
}

void rpc_stream_drop(struct rpc_stream *s)
{
	if (s->fill)
		rx_packet_free(TAKE(s->fill));
	rpc_queue_clear(&s->out);
	s->used = s->room = 0;
}

bool rpc_stream_quick(struct rpc_stream *s, const struct rx_sec *sec, const struct rpc_proc *proc, const void *in)
{
	s->sec = sec;
	s->body = RX_SAFE_BODY;
	if (fill_begin(s, false) != AFS_OK)
		return false;
	struct xdr_out x = {fill_at(s), fill_at(s) + s->room, AFS_OK};
	if (encode(&x, &proc->op, proc->in_put, in) != AFS_OK) {
		rpc_stream_drop(s);
		s->body = 0;
		return false;
	}
	s->used = (size_t)(x.p - fill_at(s));
	fill_close(s, true);
	s->wrote_last = true;
	mtx_lock(&s->lock);
	s->quick = true;
	rpc_queue_append(&s->tx, &s->out);
	mtx_unlock(&s->lock);
	return true;
}

void rpc_stream_quick_go(struct rpc_stream *s, mono_ns now)
{
	mtx_lock(&s->lock);
	if (TAKE(s->quick))
		seal(s, &s->tx);
	mtx_unlock(&s->lock);
	rpc_stream_push(s, now);
}
