/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The life of a call: opened on a channel, told to the layer above, timed, ended.
 *
 * A call is attached to its channel while it matters to the wire.  Its memory goes when it is
 * detached, unreferenced and has no event waiting.  Only a server call that ended while its handler
 * runs stays attached after its end: the channel is not free before the handler is done. */
#include "rx/core/inside.h"

#include <string.h>

enum { FREE_CALLS_MAX = 256 };

static struct rx_call *take_memory(struct rx_endpoint *ep)
{
	struct rx_call *call = ep->free_calls;
	if (call) {
		ep->free_calls = call->user;
		ep->free_calls_count--;
		memset(call, 0, sizeof(*call));
	} else {
		call = mem_new(struct rx_call);
	}
	return call;
}

static void give_memory(struct rx_endpoint *ep, struct rx_call *call)
{
	if (ep->free_calls_count == FREE_CALLS_MAX) {
		mem_free(call);
		return;
	}
	call->user = ep->free_calls;
	ep->free_calls = call;
	ep->free_calls_count++;
}

struct rx_call *rx_call_open(struct rx_conn *c, unsigned channel, uint32_t number, mono_ns now)
{
	struct rx_endpoint *ep = c->ep;
	struct rx_channel *ch = &c->chan[channel];
	struct rx_call *call = take_memory(ep);
	if (!call)
		return NULL;
	if (!rx_heap_reserve(&ep->heap)) {
		give_memory(ep, call);
		return NULL;
	}
	call->conn = c;
	call->chan = ch;
	call->number = number;
	call->is_server = c->is_server;
	call->attached = true;
	call->timer.kind = RX_TIMER_CALL;
	list_init(&call->tx);
	list_init(&call->ev);
	list_init(&call->xmit);
	call->started = call->heard = call->sent = call->progress = call->soft_at = now;
	call->in_tail = &call->in_head;
	call->in_first = call->in_next = call->in_given = 1;
	call->in_edge = 1 + MAX((uint32_t)RX_WINDOW_START, (uint32_t)ch->own_window);
	call->out_una = call->out_soft = call->out_next = call->out_end = call->lost_from = 1;
	call->ring = call->ring_small;
	call->ring_mask = RX_RING_SMALL - 1;
	call->window = ch->peer_window ? ch->peer_window : RX_WINDOW_START;
	rx_cong_init(call, now);
	for (int i = 0; i < RX_DUES; i++)
		call->due[i] = MONO_NEVER;
	rx_call_set_due(call, RX_DUE_DEAD, now + c->dead_ns);
	rx_call_set_due(call, RX_DUE_PING, now + c->dead_ns / 6);
	if (c->idle_ns)
		rx_call_set_due(call, RX_DUE_IDLE, now + c->idle_ns);
	if (c->hard_ns)
		rx_call_set_due(call, RX_DUE_HARD, now + c->hard_ns);
	ch->call = call;
	ch->number = number;
	ch->end = RX_END_NONE;
	ch->tx = 0;
	ch->abort_at = MONO_NEVER; /* of the call before: nobody waits for it any more */
	c->live++;
	list_remove(&c->idle_link);
	if (call->is_server) {
		rx_peer_calls(ep, c->peer, 1);
		RX_COUNT(ep, calls_in);
	} else {
		call->delivered = true;
		RX_COUNT(ep, calls_out);
	}
	return call;
}

struct rx_call *rx_call_new(struct rx_conn *c, mono_ns now)
{
	c->ep->now = now;
	if (c->failed || c->gone || c->is_server || c->ep->closing)
		return NULL;
	/* a channel on which the server was busy comes last (rx.md §3.4) */
	for (int busy = 0; busy < 2; busy++) {
		for (unsigned i = 0; i < 4; i++) {
			struct rx_channel *ch = &c->chan[i];
			if (ch->call || ch->busy != busy || ch->number >= INT32_MAX)
				continue;
			struct rx_call *call = rx_call_open(c, i, ch->number + 1, now);
			if (call)
				call->refs = 1;
			return call;
		}
	}
	return NULL;
}

/* --- letting go ---------------------------------------------------------------------------- */

void rx_call_release(struct rx_call *call)
{
	if (call->attached || call->refs || list_linked(&call->ev) ||
		call->conn->ep->event_call == call)
		return;
	rx_recv_drop(call);
	rx_send_drop(call);
	struct rx_conn *c = call->conn;
	give_memory(c->ep, call);
	rx_conn_unref(c);
}

static void quieten(struct rx_call *call)
{
	struct rx_heap *heap = &call->conn->ep->heap;
	rx_heap_set(heap, &call->timer, MONO_NEVER);
	list_remove(&call->tx);
	for (int i = 0; i < RX_DUES; i++)
		call->due[i] = MONO_NEVER;
}

void rx_call_detach(struct rx_call *call, mono_ns now, enum rx_chan_end end)
{
	if (!call->attached)
		return;
	struct rx_conn *c = call->conn;
	call->attached = false;
	quieten(call);
	rx_heap_release(&c->ep->heap);
	rx_cong_keep(call, now);
	rx_recv_drop(call);
	rx_send_drop(call);
	call->chan->call = NULL;
	call->chan->last_in = call->in_last ? call->in_last : call->in_high;
	if (end != RX_END_NONE)
		call->chan->end = (uint8_t)end;
	c->live--;
	if (call->is_server)
		rx_peer_calls(c->ep, c->peer, -1);
	/* The call keeps its connection for whoever still holds the call. */
	rx_conn_ref(c);
	rx_call_release(call);
}

/* Ends a call; what its channel says about it afterwards is in the channel already. */
void rx_call_end(struct rx_call *call, mono_ns now, afs_err err, int32_t code)
{
	if (call->ended)
		return;
	RX_COUNT(call->conn->ep, calls_failed);
	if (err == AFS_EDEAD)
		RX_COUNT(call->conn->ep, calls_dead);
	else if (err == AFS_ETIMEDOUT)
		RX_COUNT(call->conn->ep, calls_timed_out);
	else if (err == AFS_EABORTED)
		RX_COUNT(call->conn->ep, calls_aborted);
	call->ended = true;
	call->err = err;
	call->code = code;
	quieten(call);
	rx_recv_drop(call);
	rx_send_drop(call);
	if (call->events & RX_CE_NEW) { /* not seen yet, so never */
		call->events = 0;
		list_remove(&call->ev);
		call->delivered = false;
	}
	if (call->delivered && call->refs)
		rx_call_event(call, RX_CE_ENDED);
	if (!(call->is_server && call->delivered && !call->app_done))
		rx_call_detach(call, now, RX_END_NONE);
}

/* The same, and whoever speaks of this call again hears an ABORT, the peer now. */
void rx_call_end_and_tell(struct rx_call *call, mono_ns now, afs_err err, int32_t code)
{
	if (call->ended)
		return;
	struct rx_conn *c = call->conn;
	struct rx_channel *ch = call->chan;
	bool started = call->is_server || call->out_next > 1;
	bool delayed = call->is_server && call->app_done && rx_chan_delays_abort(c, ch, now, code);
	if (started) {
		ch->end = RX_END_ABORTED;
		ch->code = code;
	} else {
		ch->number--; /* the server has not heard of it and must not before a DATA */
	}
	rx_conn_ref(c);
	rx_call_end(call, now, err, code);
	if (started && !delayed && !c->failed && !c->gone)
		rx_chan_tx(c, ch, RX_TX_CHAN_ABORT);
	rx_conn_unref(c);
}

struct rx_call *rx_call_ref(struct rx_call *call)
{
	call->refs++;
	return call;
}

void rx_call_unref(struct rx_call *call)
{
	if (!call || --call->refs)
		return;
	struct rx_channel *ch = call->chan;
	if (ch->lingering == call) {
		ch->lingering = NULL;
		if (ch->call)
			rx_call_offer(ch->call);
	}
	if (call->attached && (!call->is_server || !call->app_done))
		rx_call_abort(call, call->conn->ep->now, RX_USER_ABORT);
	else
		rx_call_release(call);
}

void rx_call_abort(struct rx_call *call, mono_ns now, int32_t code)
{
	call->conn->ep->now = now;
	call->app_done = true;
	if (!call->attached) {
		rx_call_release(call);
		return;
	}
	if (call->ended) {
		rx_call_detach(call, now, RX_END_NONE);
		return;
	}
	call->delivered = false; /* no event: it knows */
	call->events = 0;
	list_remove(&call->ev);
	rx_call_end_and_tell(call, now, AFS_ECANCELLED, code);
}

void rx_call_done(struct rx_call *call, mono_ns now)
{
	struct rx_conn *c = call->conn;
	c->ep->now = now;
	if (call->is_server || !call->attached)
		return;
	if (!rx_call_received_all(call)) {
		rx_call_abort(call, now, RX_USER_ABORT);
		return;
	}
	struct rx_channel *ch = call->chan;
	call->app_done = true;
	call->events = 0;
	list_remove(&call->ev);
	/* one ACK answers what the server asked for and says that all was read */
	bool asked = call->ack_owed == RX_ACK_REQUESTED;
	ch->ack_reason = asked ? RX_ACK_REQUESTED : RX_ACK_DELAY;
	ch->ack_serial = asked ? call->ack_serial : 0;
	ch->busy = false;
	rx_conn_ref(c);
	rx_call_detach(call, now, RX_END_DONE);
	rx_chan_tx(c, ch, RX_TX_CHAN_ACK);
	rx_conn_unref(c);
}

/* --- events -------------------------------------------------------------------------------- */

void rx_call_event(struct rx_call *call, unsigned what)
{
	call->events |= (uint8_t)what;
	if (!list_linked(&call->ev))
		list_push_back(&call->conn->ep->events, &call->ev);
}

void rx_call_offer(struct rx_call *call)
{
	if (!call->is_server || call->delivered || call->ended || !call->conn->known ||
		!call->in_head)
		return;
	if (call->chan->lingering)
		return; /* one call of a channel at a time */
	call->delivered = true;
	rx_call_event(call, RX_CE_NEW);
}

void rx_call_tx(struct rx_call *call)
{
	if (!call->attached || call->ended)
		return;
	if (call->blocked) {
		call->blocked = false;
		list_remove(&call->tx);
	}
	if (!list_linked(&call->tx))
		list_push_back(&call->conn->ep->tx_calls, &call->tx);
}

/* --- in ------------------------------------------------------------------------------------ */

void rx_call_receive_packet(
	struct rx_call *call, mono_ns now, const struct rx_header *h, const struct rx_datagram *d)
{
	const uint8_t *body = d->buf->data + d->off + RX_HEADER;
	size_t len = d->len - RX_HEADER;
	struct rx_endpoint *ep = call->conn->ep;
	switch (h->type) {
	case RX_DATA:
		call->heard = now;
		rx_recv_data(call, now, h, d);
		break;
	case RX_ACK:
		RX_COUNT(ep, acks_in);
		rx_ack_receive(call, now, h, body, len);
		break;
	case RX_ACKALL:
		call->heard = now;
		if (call->is_server)
			rx_send_ack_all(call, now);
		break;
	case RX_BUSY:
		RX_COUNT(ep, busies_in);
		if (!call->is_server) {
			call->heard = now;
			call->chan->busy = true;
		}
		break;
	case RX_ABORT:
		RX_COUNT(ep, aborts_in);
		if (len >= 4)
			rx_call_end(call, now, AFS_EABORTED, (int32_t)get32(body));
		break;
	default:
		rx_call_end_and_tell(call, now, AFS_EPROTOCOL, RX_PROTOCOL_ERROR);
	}
}

/* --- timers -------------------------------------------------------------------------------- */

void rx_call_set_due(struct rx_call *call, enum rx_call_due what, mono_ns at)
{
	call->due[what] = at;
	if (at != MONO_NEVER)
		rx_heap_sooner(&call->conn->ep->heap, &call->timer, at);
}

/* Has it work that a peer must know we are alive for?  Nothing goes out before a client's first
 * DATA, and nothing once a reply is on its way. */
static bool wants_keepalive(const struct rx_call *call)
{
	if (call->is_server)
		return !call->app_done;
	return call->out_next > 1 && !(call->in_last && call->in_next > call->in_last);
}

void rx_call_progress(struct rx_call *call, mono_ns now, uint64_t bytes)
{
	const int64_t idle = call->conn->idle_ns;
	if (!idle || bytes >= RX_PROGRESS_BYTES)
		call->progress = now;
	else
		call->progress =
			MIN(now, call->progress + (int64_t)bytes * (idle / RX_PROGRESS_BYTES));
}

bool rx_call_waits_for_peer(const struct rx_call *call)
{
	if (call->out_end > call->out_next && rx_send_room(call) == 0)
		return true;
	if (call->in_head)
		return false;
	bool reading = call->is_server ? call->out_end == 1
				       : call->out_last && call->out_next > call->out_last;
	return reading && !(call->in_last && call->in_next > call->in_last);
}

static int64_t fudge(const struct rx_call *call)
{
	const struct rx_peer *p = call->conn->peer;
	return p->srtt + 8 * p->rttvar;
}

/* True: the call is over and perhaps freed. */
static bool tick_lives(struct rx_call *call, mono_ns now)
{
	struct rx_conn *c = call->conn;
	if (call->due[RX_DUE_HARD] <= now) {
		rx_call_end_and_tell(call, now, AFS_ETIMEDOUT, RX_CALL_TIMEOUT);
		return true;
	}
	if (call->due[RX_DUE_DEAD] <= now) {
		if (!call->is_server && call->out_next == 1)
			call->heard = now; /* nobody was asked yet */
		mono_ns end = call->heard + c->dead_ns + fudge(call);
		if (end <= now) {
			call->chan->end = RX_END_ABORTED;
			call->chan->code = RX_CALL_DEAD;
			rx_call_end(call, now, AFS_EDEAD, RX_CALL_DEAD);
			return true;
		}
		call->due[RX_DUE_DEAD] = end;
	}
	if (rx_send_is_stuck(call, now)) {
		rx_call_end_and_tell(call, now, AFS_EDEAD, RX_CALL_DEAD);
		return true;
	}
	if (call->due[RX_DUE_IDLE] <= now) {
		if (!rx_call_waits_for_peer(call))
			call->progress = now;
		mono_ns end = call->progress + c->idle_ns + fudge(call);
		if (end <= now) {
			rx_call_end_and_tell(call, now, AFS_ETIMEDOUT, RX_CALL_TIMEOUT);
			return true;
		}
		call->due[RX_DUE_IDLE] = end;
	}
	return false;
}

static void tick_asks(struct rx_call *call, mono_ns now)
{
	if (call->due[RX_DUE_PING] <= now) {
		int64_t interval = call->conn->dead_ns / 6;
		/* a client's pings, and our answers, keep both sides alive: the server asks only when
		 * they stay away */
		mono_ns last = call->is_server ? MAX(call->sent, call->heard) : call->sent;
		if (last + interval > now) {
			call->due[RX_DUE_PING] = last + interval;
		} else {
			call->due[RX_DUE_PING] = now + interval;
			if (wants_keepalive(call)) {
				call->ping_owed = true;
				rx_call_tx(call);
			}
		}
	}
	if (call->due[RX_DUE_PERSIST] <= now) {
		call->due[RX_DUE_PERSIST] = MONO_NEVER;
		call->ping_owed = true;
		rx_call_tx(call);
	}
	if (call->due[RX_DUE_ACK] <= now) {
		call->due[RX_DUE_ACK] = MONO_NEVER;
		if (call->unacked_in || call->consumed_since)
			rx_ack_owe(call, RX_ACK_DELAY, 0);
	}
	if (call->due[RX_DUE_PACE] <= now) {
		call->due[RX_DUE_PACE] = MONO_NEVER;
		rx_call_tx(call);
	}
	if (call->due[RX_DUE_REORDER] <= now) {
		call->due[RX_DUE_REORDER] = MONO_NEVER;
		rx_loss_detect(call, now);
		rx_call_tx(call);
	}
	if (call->due[RX_DUE_LOSS] <= now) {
		call->due[RX_DUE_LOSS] = MONO_NEVER;
		rx_loss_timeout(call, now);
	}
}

void rx_call_tick(struct rx_call *call, mono_ns now)
{
	if (tick_lives(call, now))
		return;
	tick_asks(call, now);
	mono_ns at = MONO_NEVER;
	for (int i = 0; i < RX_DUES; i++)
		at = MIN(at, call->due[i]);
	rx_heap_set(&call->conn->ep->heap, &call->timer, at == MONO_NEVER ? at : MAX(at, now + 1));
}

/* --- out ----------------------------------------------------------------------------------- */

static bool emit_ack(struct rx_call *call, mono_ns now, enum rx_reason reason, rx_serial serial,
	struct rx_datagram *out, bool *blocked)
{
	struct rx_conn *c = call->conn;
	uint8_t *p = rx_endpoint_scratch(c->ep, RX_HEADER + RX_ACK_MAX, out);
	if (!p)
		return false;
	size_t len = rx_ack_build(call, now, reason, serial, p + RX_HEADER);
	rx_endpoint_scratch_trim(c->ep, RX_ACK_MAX - len);
	out->len = (uint32_t)(RX_HEADER + len);
	if (!rx_peer_allows(c->peer, c, out->len, 0)) {
		rx_endpoint_scratch_trim(c->ep, out->len);
		*blocked = true;
		return false;
	}
	struct rx_header h;
	rx_conn_header(c, &h, RX_ACK);
	h.cid |= (uint32_t)(call->chan - c->chan);
	h.call = call->number;
	h.flags |= RX_F_SLOW_START_OK;
	if (reason == RX_ACK_PING) {
		h.flags |= RX_F_REQUEST_ACK;
		call->ping_serial = h.serial;
		call->ping_at = now;
		call->ping_flying = true;
		RX_COUNT(c->ep, pings_out);
	}
	rx_header_put(p, &h);
	RX_COUNT(c->ep, acks_out);
	rx_conn_sent(c, now, out->len);
	call->sent = now;
	call->unacked_in = 0;
	call->consumed_since = 0;
	call->due[RX_DUE_ACK] = MONO_NEVER;
	return true;
}

bool rx_call_emit(struct rx_call *call, mono_ns now, struct rx_datagram *out, bool *blocked)
{
	if (call->pong_owed) {
		call->pong_owed = false;
		if (emit_ack(call, now, RX_ACK_PING_RESPONSE, call->pong_serial, out, blocked))
			return true;
	}
	if (call->ack_owed) {
		/* a server's first reply packet acknowledges the request as well as an ACK would */
		bool implied = call->is_server && call->out_end > call->out_next &&
			       (call->ack_owed == RX_ACK_IDLE || call->ack_owed == RX_ACK_DELAY);
		enum rx_reason reason = call->ack_owed;
		call->ack_owed = RX_ACK_NONE;
		if (!implied && emit_ack(call, now, reason, call->ack_serial, out, blocked))
			return true;
	}
	if (call->conn->peer->probe.at <= now && rx_probe_emit(call, now, out))
		return true;
	bool held = false;
	if (rx_send_emit(call, now, out, &held))
		return true;
	if (held) {
		/* The address must prove itself first: ask, and go on when it answers. */
		*blocked = true;
		if (!call->ping_flying || now - call->ping_at >= SEC(1)) {
			call->ping_owed = true;
			rx_call_set_due(call, RX_DUE_PERSIST, now + SEC(1));
		}
	}
	if (call->ping_owed) {
		call->ping_owed = false;
		bool no_budget = false;
		if (emit_ack(call, now, RX_ACK_PING, 0, out, &no_budget))
			return true;
	}
	return false;
}

/* --- for the layer above ------------------------------------------------------------------- */

struct rx_conn *rx_call_conn(const struct rx_call *call) { return call->conn; }
bool rx_call_is_server(const struct rx_call *call) { return call->is_server; }
struct rx_addr rx_call_peer(const struct rx_call *call) { return call->conn->peer->addr; }
void rx_call_set_user(struct rx_call *call, void *user) { call->user = user; }
void *rx_call_user(const struct rx_call *call) { return call->user; }

uint32_t rx_call_body_max(const struct rx_call *call)
{
	return call->conn->peer->size_send - RX_HEADER;
}

struct rx_sec_packet rx_call_packet_id(const struct rx_call *call, rx_seq seq, bool incoming)
{
	const struct rx_conn *c = call->conn;
	return (struct rx_sec_packet){
		.epoch = c->epoch,
		.cid = c->cid | (uint32_t)(call->chan - c->chan),
		.call = call->number,
		.seq = seq,
		.from_client = incoming == call->is_server,
		.at = call->started,
	};
}
