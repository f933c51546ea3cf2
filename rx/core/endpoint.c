/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The face of the core: from a datagram to its connection and call, from what is owed to the next
 * datagram, and from the clock to whose time has come.
 *
 * Answers that belong to no connection (raw aborts, VERSION, DEBUG) wait in a bounded queue; each is
 * smaller than three times its question, so it needs no proof of address. */
#include "rx/core/inside.h"

#include <assert.h>
#include <string.h>

struct rx_endpoint *rx_endpoint_new(const struct rx_endpoint_config *config, mono_ns now)
{
	struct rx_endpoint *ep = mem_new(struct rx_endpoint);
	if (!ep)
		return NULL;
	ep->config = *config;
	struct rx_endpoint_config *c = &ep->config;
	c->window = c->window ? MIN(c->window, (uint32_t)RX_WINDOW_MAX) : RX_WINDOW_DEFAULT;
	c->window_bytes = c->window_bytes ? c->window_bytes : RX_WINDOW_BYTES;
	c->conns_max = c->conns_max ? c->conns_max : RX_CONNS_MAX;
	c->calls_per_peer_max = c->calls_per_peer_max ? c->calls_per_peer_max : RX_CALLS_PER_PEER;
	c->calls_per_host_max = c->calls_per_host_max ? c->calls_per_host_max : 4 * c->calls_per_peer_max;
	c->calls_max = c->calls_max ? c->calls_max : 8 * c->calls_per_host_max;
	c->dead_ns = c->dead_ns ? c->dead_ns : RX_DEAD_NS;
	c->idle_ns = c->idle_ns ? c->idle_ns : RX_IDLE_NS;
	c->half_open_max = c->half_open_max ? c->half_open_max : MAX(c->conns_max / 4, 1u);
	struct rx_buf_pool_stats pool;
	rx_buf_pool_stats(c->pool, &pool);
	c->peer_bytes_max = c->peer_bytes_max ? c->peer_bytes_max : pool.max_bytes / 8;
	ep->held_max = pool.max_bytes / 4 * 3;
	c->host_bytes_max = c->host_bytes_max ? c->host_bytes_max : 2 * c->peer_bytes_max;
	c->version = c->version ? c->version : "afscell";
	c->max_datagram = c->max_datagram ? c->max_datagram : RX_BIG_DATAGRAM;
	c->max_datagram =
		MAX(MIN(c->max_datagram, (uint32_t)RX_DATAGRAM_MAX), (uint32_t)RX_MTU_MIN);
	ep->now = now;
	list_init(&ep->tx_conns);
	list_init(&ep->tx_calls);
	list_init(&ep->events);
	list_init(&ep->idle_anon);
	list_init(&ep->idle_known);
	list_init(&ep->idle_peers);
	list_init(&ep->half_open);
	/* seeds from our own source, so that a simulation repeats itself */
	uint32_t (*random)(void *) = c->random;
	ep->conns.seed = (uint64_t)random(c->random_ctx) << 32 | random(c->random_ctx);
	ep->peers.seed = (uint64_t)random(c->random_ctx) << 32 | random(c->random_ctx);
	ep->hosts.seed = ep->peers.seed;
	/* rx.md §1.3: bit 31 says that we may be known by several addresses; bit 30 is clear */
	ep->epoch = (random(c->random_ctx) | UINT32_C(0x80000000)) & ~UINT32_C(0x40000000);
	ep->next_cid = random(c->random_ctx) & ~UINT32_C(3);
	ep->peers_timer.kind = RX_TIMER_PEERS;
	ep->raw = mem_new_array(RX_RAW_QUEUE, struct rx_raw);
	struct rx_datagram none;
	if (!ep->raw || !rx_heap_reserve(&ep->heap) || !rx_endpoint_scratch(ep, 1, &none)) {
		rx_endpoint_free(ep);
		return NULL;
	}
	ep->batch_over = true;
	return ep;
}

void rx_endpoint_free(struct rx_endpoint *ep)
{
	if (!ep)
		return;
	struct rx_call *last = ep->event_call;
	ep->event_call = NULL;
	if (last)
		rx_call_release(last);
	list_each(e, &ep->events)
	{
		struct rx_call *call = list_entry(e, struct rx_call, ev);
		list_remove(&call->ev);
		rx_call_release(call);
	}
	struct map_node *next;
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&ep->conns, &cursor, NULL); n; n = next) {
		next = map_walk(&ep->conns, &cursor, n->next);
		rx_conn_free(container_of(n, struct rx_conn, node), ep->now);
	}
	cursor = 0;
	for (struct map_node *n = map_walk(&ep->peers, &cursor, NULL); n; n = next) {
		next = map_walk(&ep->peers, &cursor, n->next);
		rx_peer_free(ep, container_of(n, struct rx_peer, node));
	}
	while (ep->free_calls) {
		struct rx_call *call = ep->free_calls;
		ep->free_calls = call->user;
		mem_free(call);
	}
	while (ep->scratch) {
		struct rx_scratch *s = ep->scratch;
		ep->scratch = s->next;
		mem_free(s->buf);
		mem_free(s);
	}
	map_fini(&ep->conns);
	map_fini(&ep->peers);
	map_fini(&ep->hosts);
	mem_free(ep->heap.slots);
	mem_free(ep->raw);
	mem_free(ep);
}

void rx_endpoint_close(struct rx_endpoint *ep, mono_ns now)
{
	ep->now = now;
	ep->closing = true;
	struct map_node *next;
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&ep->conns, &cursor, NULL); n; n = next) {
		next = map_walk(&ep->conns, &cursor, n->next);
		struct rx_conn *c = container_of(n, struct rx_conn, node);
		for (int i = 0; i < 4; i++)
			if (c->chan[i].call)
				rx_call_end_and_tell(
					c->chan[i].call, now, AFS_ERESTARTING, RX_RESTARTING);
	}
}

/* --- memory of a batch --------------------------------------------------------------------- */

enum { SCRATCH_CAP = 64 * 1024 };

uint8_t *rx_endpoint_scratch(struct rx_endpoint *ep, size_t len, struct rx_datagram *out)
{
	assert(len <= SCRATCH_CAP);
	struct rx_scratch *s = ep->scratch_now;
	if (!s || s->used + len > SCRATCH_CAP) {
		struct rx_scratch *next = s ? s->next : ep->scratch;
		if (!next) {
			next = mem_new(struct rx_scratch);
			struct rx_buf *b = mem_alloc(1, sizeof(struct rx_buf) + SCRATCH_CAP);
			if (!next || !b) {
				mem_free(next);
				mem_free(b);
				return NULL;
			}
			atomic_store(&b->refs, 1);
			b->cap = SCRATCH_CAP;
			next->buf = b;
			*(s ? &s->next : &ep->scratch) = next;
		}
		next->used = 0;
		ep->scratch_now = s = next;
	}
	out->buf = s->buf;
	out->off = s->used;
	out->len = (uint32_t)len;
	s->used += (uint32_t)len;
	return s->buf->data + out->off;
}

void rx_endpoint_scratch_trim(struct rx_endpoint *ep, size_t unused)
{
	ep->scratch_now->used -= (uint32_t)unused;
}

/* --- answers without a connection ---------------------------------------------------------- */

static struct rx_raw *raw_slot(struct rx_endpoint *ep, const struct rx_datagram *in)
{
	if (ep->raw_count == RX_RAW_QUEUE)
		return NULL; /* flooded: whoever asks in earnest asks again */
	struct rx_raw *r = &ep->raw[(ep->raw_head + ep->raw_count++) % RX_RAW_QUEUE];
	*r = (struct rx_raw){.peer = in->peer, .local_ip = in->local_ip};
	return r;
}

static void raw_abort(struct rx_endpoint *ep, const struct rx_datagram *in,
	const struct rx_header *h, int32_t code)
{
	struct rx_raw *r = raw_slot(ep, in);
	if (!r)
		return;
	struct rx_header a = {
		.epoch = h->epoch,
		.cid = h->cid,
		.call = h->call,
		.type = RX_ABORT,
		.index = h->index,
		.service = h->service,
	};
	rx_header_put(r->bytes, &a);
	put32(r->bytes + RX_HEADER, (uint32_t)code);
	r->len = RX_HEADER + 4;
	RX_COUNT(ep, aborts_out);
}

/* Answers to tools are longer than questions: an address that proved nothing gets them from the same
 * allowance as all else.  Nobody can pretend to be on this machine. */
static bool may_answer_tool(
	struct rx_endpoint *ep, mono_ns now, struct rx_addr asker, size_t asked, size_t answer)
{
	struct rx_peer *p = rx_peer_get(ep, asker, now);
	if (!p)
		return false;
	if (!p->proven)
		p->bytes_in += asked;
	bool may = p->proven || p->bytes_out + answer <= RX_AMPLIFY * p->bytes_in + RX_AMPLIFY_FREE;
	if (may && !p->proven)
		p->bytes_out += answer;
	rx_peer_put(ep, p, now);
	return may;
}

/* rx.md §15: answered only to those who call themselves clients, or two tools could play tennis. */
static void answer_tool(struct rx_endpoint *ep, mono_ns now, const struct rx_datagram *in,
	const struct rx_header *h)
{
	if (!(h->flags & RX_F_CLIENT))
		return;
	struct rx_raw *r = raw_slot(ep, in);
	if (!r)
		return;
	bool on_machine = rx_addr_is_loopback(in->peer) || in->peer.ip == in->local_ip;
	struct rx_header a = *h;
	a.flags &= (uint8_t)~RX_F_CLIENT;
	rx_header_put(r->bytes, &a);
	if (h->type == RX_VERSION) {
		size_t n = strnlen(ep->config.version, RX_VERSION_BODY - 1);
		memcpy(r->bytes + RX_HEADER, ep->config.version, n);
		r->len = RX_HEADER + RX_VERSION_BODY;
	} else {
		const uint8_t *body = in->buf->data + in->off + RX_HEADER;
		r->len = RX_HEADER + rx_debug_answer(ep, on_machine, body, in->len - RX_HEADER,
					     r->bytes + RX_HEADER);
	}
	if (!on_machine && !may_answer_tool(ep, now, in->peer, in->len, r->len))
		ep->raw_count--;
}

/* A client behind a NAT that forgot it, or with several addresses, speaks from another than before.  Stock
 * servers go on answering to the first.  Ours follows when that one has fallen silent and the new one shows
 * that it receives: until then it gets a ping, shorter than three times what it sent. */
static void from_elsewhere(struct rx_endpoint *ep, struct rx_conn *c, mono_ns now,
	const struct rx_header *h, const struct rx_datagram *in)
{
	const uint8_t *body = in->buf->data + in->off + RX_HEADER;
	if (c->failed || !h->call)
		return;
	if (c->moved_serial && rx_addr_same(c->moved_to, in->peer) && h->type == RX_ACK &&
		in->len >= RX_HEADER + RX_ACK_FIXED && get32(body + 12) == c->moved_serial) {
		rx_conn_move(c, now, in->peer, in->local_ip);
		return;
	}
	struct rx_channel *ch = &c->chan[h->cid & 3];
	if (now - c->heard_home < RX_MOVE_NS || h->call != ch->number ||
		(c->moved_serial && now - c->moved_at < RX_MOVE_NS))
		return;
	uint8_t ping[RX_ACK_MAX];
	size_t len = ch->call && !ch->call->ended
			     ? rx_ack_build(ch->call, now, RX_ACK_PING, 0, ping)
			     : rx_ack_build_over(c, ch, RX_ACK_PING, ping);
	struct rx_raw *r = RX_HEADER + len <= MIN((size_t)RX_RAW_MAX, (size_t)RX_AMPLIFY * in->len)
				   ? raw_slot(ep, in)
				   : NULL;
	if (!r)
		return;
	struct rx_header a;
	rx_conn_header(c, &a, RX_ACK);
	a.cid = h->cid;
	a.call = h->call;
	a.flags |= RX_F_SLOW_START_OK | RX_F_REQUEST_ACK;
	rx_header_put(r->bytes, &a);
	memcpy(r->bytes + RX_HEADER, ping, len);
	r->len = (uint32_t)(RX_HEADER + len);
	c->moved_to = in->peer;
	c->moved_serial = a.serial;
	c->moved_at = now;
	RX_COUNT(ep, pings_out);
	RX_COUNT(ep, acks_out);
}

/* --- in ------------------------------------------------------------------------------------ */

/* A packet for no connection that we know. */
static struct rx_conn *stranger(struct rx_endpoint *ep, mono_ns now, const struct rx_header *h,
	const struct rx_datagram *in)
{
	if (h->type == RX_ABORT || !(h->flags & RX_F_CLIENT))
		return NULL;
	struct rx_sec *sec = ep->config.accept ? ep->config.accept(ep->config.accept_ctx, in->peer,
							 h->service, h->index)
					       : NULL;
	if (!sec) {
		raw_abort(ep, in, h, RX_INVALID_OPERATION);
		return NULL;
	}
	/* only DATA within the first window opens a call, and so a connection */
	if (h->type != RX_DATA || !h->call || !h->seq || h->seq > RX_WINDOW_START) {
		rx_sec_free(sec);
		return NULL;
	}
	if (ep->closing) {
		rx_sec_free(sec);
		raw_abort(ep, in, h, RX_RESTARTING);
		return NULL;
	}
	struct rx_conn *c = rx_conn_accept(ep, now, h, in->peer, in->local_ip, sec);
	if (!c)
		RX_COUNT(ep, refused_overload);
	return c;
}

/* A packet for a call that is over, of the number that its channel had last. */
static void late_packet(struct rx_conn *c, struct rx_channel *ch, const struct rx_header *h)
{
	if (h->type == RX_ABORT)
		return;
	if (ch->abort_at != MONO_NEVER)
		return; /* it will hear soon enough */
	if (ch->end == RX_END_ABORTED) {
		rx_chan_tx(c, ch, RX_TX_CHAN_ABORT);
	} else if (ch->end == RX_END_DONE && h->type == RX_DATA) {
		ch->ack_reason = RX_ACK_DUPLICATE;
		ch->ack_serial = h->serial;
		rx_chan_tx(c, ch, RX_TX_CHAN_ACK);
		RX_COUNT(c->ep, data_in);
		RX_COUNT(c->ep, data_duplicate);
	} else if (ch->end == RX_END_DONE && h->type == RX_ACK && (h->flags & RX_F_REQUEST_ACK)) {
		ch->ack_serial = h->serial;
		rx_chan_tx(c, ch, RX_TX_CHAN_PONG);
	}
}

/* rx.md §3.3.  Gives the call that the packet is for, or NULL. */
static struct rx_call *call_for(struct rx_conn *c, mono_ns now, const struct rx_header *h)
{
	struct rx_channel *ch = &c->chan[h->cid & 3];
	if (h->call == ch->number) {
		if (ch->call && !ch->call->ended)
			return ch->call;
		RX_COUNT(c->ep, late);
		late_packet(c, ch, h);
		return NULL;
	}
	/* only DATA opens a call, and never one of a lower number */
	if (!c->is_server || h->call < ch->number || h->type != RX_DATA || !h->seq ||
		h->seq > RX_WINDOW_START) {
		RX_COUNT(c->ep, spurious);
		return NULL;
	}
	if (c->index && h->call >> 31)
		return NULL; /* no RESPONSE could ever name it */
	struct rx_call *old = ch->call;
	if (old && old->delivered && !old->app_done) {
		/* its handler still runs */
		if (!old->ended) {
			ch->end = RX_END_ABORTED;
			ch->code = RX_CALL_DEAD;
			rx_call_end(old, now, AFS_EDEAD, RX_CALL_DEAD);
		}
		/* The new call waits for it.  Stock servers say BUSY instead, and stock clients then
		 * come again after 2.6 s. */
		if (ch->call && old->refs)
			ch->lingering = old;
		if (ch->call)
			rx_call_detach(old, now, RX_END_NONE);
	} else if (old) {
		/* the client has its reply, or has given up */
		if (old->app_done && !old->ended)
			rx_send_ack_all(old, now);
		if (ch->call)
			rx_call_end(ch->call, now, AFS_EDEAD, RX_CALL_DEAD);
	}
	if (c->ep->closing) {
		ch->number = h->call;
		ch->end = RX_END_ABORTED;
		ch->code = RX_RESTARTING;
		rx_chan_tx(c, ch, RX_TX_CHAN_ABORT);
		return NULL;
	}
	if (!rx_peer_admits_call(c->ep, c->peer)) {
		RX_COUNT(c->ep, refused_overload);
		rx_chan_tx(c, ch, RX_TX_CHAN_BUSY);
		return NULL;
	}
	struct rx_call *call = rx_call_open(c, h->cid & 3, h->call, now);
	if (!call) {
		RX_COUNT(c->ep, refused_overload);
		rx_chan_tx(c, ch, RX_TX_CHAN_BUSY);
	} else if (!c->known) {
		rx_conn_challenge(c, now);
	}
	return call;
}

void rx_endpoint_receive(struct rx_endpoint *ep, mono_ns now, const struct rx_datagram *in)
{
	ep->now = now;
	const uint8_t *p = in->buf->data + in->off;
	RX_COUNT(ep, datagrams_in);
	RX_COUNT_N(ep, bytes_in, in->len);
	if (ep->config.trace)
		ep->config.trace(ep->config.trace_ctx, now, false, in->peer, p, in->len);
	if (in->len < RX_HEADER) {
		RX_COUNT(ep, malformed);
		rx_stat_set(ep, RX_ST_bogus_host, in->peer.ip);
		return;
	}
	struct rx_header h;
	rx_header_get(p, &h);
	if (h.type < RX_DATA || h.type > RX_VERSION)
		rx_stat_set(ep, RX_ST_bogus_host, in->peer.ip);
	else
		rx_stat_add(ep, RX_ST_read_data + h.type - RX_DATA, 1);
	if (h.type == RX_VERSION || h.type == RX_DEBUG) {
		answer_tool(ep, now, in, &h);
		return;
	}
	struct rx_conn *c = rx_conn_find(ep, &h, in->peer);
	if ((!c && !(c = stranger(ep, now, &h, in))) || c->index != h.index) {
		RX_COUNT(ep, spurious);
		return;
	}
	c->last_used = now;
	ep->from_home = rx_addr_same(c->peer->addr, in->peer);
	if (ep->from_home)
		c->heard_home = now;
	else if (c->is_server)
		from_elsewhere(ep, c, now, &h, in);
	struct rx_peer *peer = c->peer;
	peer->received_bytes += in->len;
	if (!peer->proven && rx_addr_same(peer->addr, in->peer)) {
		peer->bytes_in += in->len;
		if (!list_empty(&peer->blocked))
			rx_peer_unblock(ep, peer);
	}
	/* its call may be over by now */
	if (peer->probe.conn == c && h.type == RX_ACK && in->len >= RX_HEADER + RX_ACK_FIXED &&
		p[RX_HEADER + RX_ACK_REASON_AT] == RX_ACK_PING_RESPONSE)
		rx_probe_answered(c, now, get32(p + RX_HEADER + 12));
	if (h.call == 0) {
		rx_conn_receive(c, now, &h, p + RX_HEADER, in->len - RX_HEADER);
		return;
	}
	if (c->failed) {
		if (h.type != RX_ABORT && c->due[RX_CONN_ABORT] == MONO_NEVER)
			rx_conn_tx(c, RX_TX_ABORT);
		return;
	}
	struct rx_call *call = call_for(c, now, &h);
	if (call)
		rx_call_receive_packet(call, now, &h, in);
}

void rx_endpoint_unreachable(struct rx_endpoint *ep, mono_ns now, struct rx_addr addr, bool too_big)
{
	ep->now = now;
	uint64_t hash = rx_addr_hash(&ep->peers, addr);
	struct rx_peer *p = NULL;
	for (struct map_node *n = map_first(&ep->peers, hash); n && !p; n = map_next(n))
		if (rx_addr_same(container_of(n, struct rx_peer, node)->addr, addr))
			p = container_of(n, struct rx_peer, node);
	if (!p)
		return;
	if (too_big) {
		if (p->probe.size)
			rx_probe_refused(p, now);
		else
			rx_peer_lower_size(ep, p, now);
		return;
	}
	/* rare: the walk over all connections costs nothing that matters */
	struct map_node *next;
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&ep->conns, &cursor, NULL); n; n = next) {
		next = map_walk(&ep->conns, &cursor, n->next);
		struct rx_conn *c = container_of(n, struct rx_conn, node);
		for (int i = 0; c->peer == p && i < 4; i++)
			if (c->chan[i].call)
				rx_call_end(c->chan[i].call, now, AFS_EDEAD, RX_CALL_DEAD);
	}
}

/* --- time ---------------------------------------------------------------------------------- */

void rx_endpoint_tick(struct rx_endpoint *ep, mono_ns now)
{
	ep->now = now;
	while (ep->heap.count && ep->heap.slots[0]->at <= now) {
		struct rx_timer *t = ep->heap.slots[0];
		switch ((enum rx_timer_kind)t->kind) {
		case RX_TIMER_CALL:
			rx_call_tick(container_of(t, struct rx_call, timer), now);
			break;
		case RX_TIMER_CONN:
			rx_conn_tick(container_of(t, struct rx_conn, timer), now);
			break;
		case RX_TIMER_PEERS:
			rx_peer_reap(ep, now);
			break;
		}
	}
}

mono_ns rx_endpoint_next_tick(const struct rx_endpoint *ep)
{
	return ep->heap.count ? ep->heap.slots[0]->at : MONO_NEVER;
}

/* --- out ----------------------------------------------------------------------------------- */

static bool emit_raw(struct rx_endpoint *ep, struct rx_datagram *out)
{
	while (ep->raw_count) {
		struct rx_raw *r = &ep->raw[ep->raw_head];
		ep->raw_head = (ep->raw_head + 1) % RX_RAW_QUEUE;
		ep->raw_count--;
		uint8_t *p = rx_endpoint_scratch(ep, r->len, out);
		if (!p)
			continue;
		memcpy(p, r->bytes, r->len);
		out->peer = r->peer;
		out->local_ip = r->local_ip;
		return true;
	}
	return false;
}

static bool emit_conns(struct rx_endpoint *ep, mono_ns now, struct rx_datagram *out)
{
	struct list *e;
	while ((e = list_first(&ep->tx_conns))) {
		struct rx_conn *c = list_entry(e, struct rx_conn, tx_link);
		if (rx_conn_emit(c, now, out)) {
			out->peer = c->peer->addr;
			out->local_ip = c->local_ip;
			return true;
		}
		list_remove(&c->tx_link);
	}
	return false;
}

/* Calls take turns of RX_TURN_BYTES, so that a bulk call neither starves the others nor breaks its
 * burst into single packets. */
static bool emit_calls(struct rx_endpoint *ep, mono_ns now, struct rx_datagram *out)
{
	struct list *e;
	while ((e = list_first(&ep->tx_calls))) {
		struct rx_call *call = list_entry(e, struct rx_call, tx);
		if (!call->busy_turn) {
			call->busy_turn = true;
			call->turn_left = RX_TURN_BYTES;
		}
		bool blocked = false;
		if (!rx_call_emit(call, now, out, &blocked)) {
			call->busy_turn = false;
			list_remove(&call->tx);
			if (blocked) {
				call->blocked = true;
				list_push_back(&call->conn->peer->blocked, &call->tx);
			}
			continue;
		}
		out->peer = call->conn->peer->addr;
		out->local_ip = call->conn->local_ip;
		call->turn_left -= (int32_t)out->len;
		if (call->turn_left <= 0) {
			call->busy_turn = false;
			list_remove(&call->tx);
			list_push_back(&ep->tx_calls, &call->tx);
		}
		return true;
	}
	return false;
}

bool rx_endpoint_next_datagram(struct rx_endpoint *ep, mono_ns now, struct rx_datagram *out)
{
	ep->now = now;
	if (ep->batch_over) {
		ep->batch_over = false;
		ep->scratch_now = ep->scratch;
		ep->scratch->used = 0;
	}
	*out = (struct rx_datagram){0};
	if (!emit_raw(ep, out) && !emit_conns(ep, now, out) && !emit_calls(ep, now, out)) {
		ep->batch_over = true;
		return false;
	}
	RX_COUNT(ep, datagrams_out);
	rx_stat_add(
		ep, RX_ST_sent_data + out->buf->data[out->off + RX_HEADER_TYPE_AT] - RX_DATA, 1);
	RX_COUNT_N(ep, bytes_out, out->len);
	if (ep->config.trace)
		ep->config.trace(ep->config.trace_ctx, now, true, out->peer,
			out->buf->data + out->off, out->len);
	return true;
}

/* --- events -------------------------------------------------------------------------------- */

static void let_go_of_event_call(struct rx_endpoint *ep)
{
	struct rx_call *call = ep->event_call;
	ep->event_call = NULL;
	if (!call)
		return;
	/* offered, and nobody took it */
	if (call->is_server && call->attached && !call->refs && !call->app_done)
		rx_call_abort(call, ep->now, RX_USER_ABORT);
	else
		rx_call_release(call);
}

bool rx_endpoint_next_event(struct rx_endpoint *ep, struct rx_event *out)
{
	static const struct {
		uint8_t bit;
		enum rx_event_kind kind;
	} order[] = {
		{RX_CE_NEW, RX_EV_CALL_NEW},
		{RX_CE_READABLE, RX_EV_READABLE},
		{RX_CE_WRITABLE, RX_EV_WRITABLE},
		{RX_CE_SENT, RX_EV_CALL_SENT},
		{RX_CE_ENDED, RX_EV_CALL_ENDED},
	};
	let_go_of_event_call(ep);
	struct list *e = list_first(&ep->events);
	if (!e)
		return false;
	struct rx_call *call = list_entry(e, struct rx_call, ev);
	size_t i = 0;
	while (!(call->events & order[i].bit))
		i++;
	call->events &= (uint8_t)~order[i].bit;
	if (!call->events)
		list_remove(&call->ev);
	*out = (struct rx_event){.kind = order[i].kind, .call = call};
	if (out->kind == RX_EV_CALL_ENDED) {
		out->err = call->err;
		out->code = call->code;
	}
	ep->event_call = call;
	return true;
}

void rx_endpoint_stats(const struct rx_endpoint *ep, struct rx_stats *out)
{
#define RX_STAT(name, text)                                                                        \
	out->name = atomic_load_explicit(&ep->stats[RX_ST_##name], memory_order_relaxed);
#include "rx/core/stats.def"
#undef RX_STAT
}
