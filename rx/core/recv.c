/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The receiving half of a call: DATA into order, jumbograms apart, and what acknowledgement is owed.
 *
 * in_first <= in_given <= in_next <= in_high + 1 <= in_edge or so: consumed, given out, in order,
 * came at all, announced.  A packet keeps the buffer it came in when it fills at least half of it,
 * else it moves to a small one, so that what waits here costs about its own size. */
#include "rx/core/inside.h"

#include <string.h>

void rx_recv_drop(struct rx_call *call)
{
	rx_packet_free_list(call->in_head);
	call->in_head = NULL;
	rx_peer_held(call->conn->ep, call->conn->peer, 0, call->in_held);
	call->in_held = 0;
	call->in_tail = &call->in_head;
	if (!call->ahead)
		return;
	for (int i = 0; call->ahead_count && i < RX_AHEAD; i++) {
		if (call->ahead[i]) {
			rx_packet_free(call->ahead[i]);
			call->ahead_count--;
		}
	}
	mem_free(call->ahead);
	call->ahead = NULL;
	call->ahead_count = 0;
}

/* The window that we announce.  A caller whose name is still awaited gets a small one, and when
 * buffers run short everyone does. */
uint32_t rx_recv_window(const struct rx_conn *c)
{
	const struct rx_endpoint *ep = c->ep;
	if (!c->known)
		return RX_WINDOW_START;
	uint32_t w = MIN(ep->config.window, ep->config.window_bytes / c->peer->size_in);
	unsigned fill = rx_buf_pool_fill(ep->config.pool);
	if (fill >= 75)
		w = MIN(w, 8u);
	else if (fill >= 50)
		w = MIN(w, 32u);
	return MAX(w, 4u);
}

enum fate { TAKEN, AHEAD, DUPLICATE, BEYOND, DROPPED };

static struct rx_packet *keep(
	struct rx_endpoint *ep, const struct rx_datagram *d, uint32_t off, uint32_t len)
{
	struct rx_packet *p;
	if (len * 2 > d->buf->cap) {
		p = rx_packet_new(rx_buf_ref(d->buf));
		p->off = off;
	} else {
		struct rx_buf *b = rx_buf_get(ep->config.pool, RX_HEADER + len);
		if (!b)
			return NULL;
		p = rx_packet_new(b);
		p->off = RX_HEADER;
		memcpy(b->data + RX_HEADER, d->buf->data + off, len);
	}
	p->len = len;
	return p;
}

static void append(struct rx_call *call, struct rx_packet *p)
{
	if (!call->in_head)
		call->in_ready = call->conn->ep->now;
	*call->in_tail = p;
	call->in_tail = &p->next;
	call->in_next++;
}

static enum fate take(struct rx_call *call, rx_seq seq, bool last, uint16_t cksum,
	const struct rx_datagram *d, uint32_t off, uint32_t len)
{
	struct rx_endpoint *ep = call->conn->ep;
	RX_COUNT(ep, data_in);
	call->conn->data_in++;
	call->conn->bytes_in += len;
	if (seq < call->in_next ||
		(call->ahead && seq <= call->in_high && call->ahead[seq % RX_AHEAD] &&
			call->ahead[seq % RX_AHEAD]->seq == seq)) {
		RX_COUNT(ep, data_duplicate);
		return DUPLICATE;
	}
	/* nothing follows LAST, and LAST comes only once */
	if ((call->in_last && seq > call->in_last) ||
		(last && (call->in_last || seq < call->in_high))) {
		RX_COUNT(ep, malformed);
		return DROPPED;
	}
	if (seq >= call->in_edge)
		return BEYOND;
	bool in_order = seq == call->in_next;
	if (!rx_peer_admits_bytes(ep, call->conn->peer, len, in_order)) {
		RX_COUNT(ep, refused_peer);
		return DROPPED;
	}
	if (!in_order) {
		if (rx_buf_pool_fill(ep->config.pool) >= 90) {
			RX_COUNT(ep, no_buffer);
			return DROPPED; /* what is left is for those next in line */
		}
		if (!call->ahead && !(call->ahead = mem_new_array(RX_AHEAD, struct rx_packet *)))
			return DROPPED;
	}
	/* the last of the pool is for what is not kept: acknowledgements bring buffers back */
	struct rx_packet *p = rx_buf_pool_fill(ep->config.pool) >= 97 ? NULL : keep(ep, d, off, len);
	if (!p) {
		RX_COUNT(ep, no_buffer);
		return DROPPED;
	}
	p->seq = seq;
	p->cksum = cksum;
	p->last = last;
	call->in_held += len;
	rx_peer_held(ep, call->conn->peer, len, 0);
	call->in_high = MAX(call->in_high, seq);
	if (last)
		call->in_last = seq;
	if (!in_order) {
		call->ahead[seq % RX_AHEAD] = p;
		call->ahead_count++;
		return AHEAD;
	}
	append(call, p);
	while (call->ahead_count && (p = call->ahead[call->in_next % RX_AHEAD])) {
		call->ahead[call->in_next % RX_AHEAD] = NULL;
		call->ahead_count--;
		append(call, p);
	}
	return TAKEN;
}

/* rx.md §4.4.  When all has come the next thing said (the reply, or the end of the call) tells as
 * much as an ACK: only the timer stands behind it. */
static void owe_for(struct rx_call *call, mono_ns now, enum fate worst, bool hole, uint8_t flags,
	rx_serial serial)
{
	bool complete = call->in_last && call->in_next > call->in_last;
	if (worst == DUPLICATE)
		rx_ack_owe(call, RX_ACK_DUPLICATE, serial);
	else if (worst == BEYOND)
		rx_ack_owe(call, RX_ACK_EXCEEDS_WINDOW, serial);
	else if (hole)
		rx_ack_owe(call, RX_ACK_OUT_OF_SEQUENCE, serial);
	else if (flags & RX_F_REQUEST_ACK)
		rx_ack_owe(call, RX_ACK_REQUESTED, serial);
	else if (call->unacked_in > 1 && !complete)
		rx_ack_owe(call, RX_ACK_IDLE, serial);
	else if (call->due[RX_DUE_ACK] == MONO_NEVER || complete)
		rx_call_set_due(call, RX_DUE_ACK,
			now + (complete && !call->is_server ? RX_ACK_DELAY_REPLY_NS
							    : RX_ACK_DELAY_NS));
}

void rx_recv_data(
	struct rx_call *call, mono_ns now, const struct rx_header *h, const struct rx_datagram *d)
{
	struct rx_conn *c = call->conn;
	if (now >= c->expires) {
		rx_conn_fail(
			c, now, AFS_EEXPIRED, c->sec->ops->code(c->sec, AFS_EEXPIRED), true, 0);
		return;
	}
	if (!h->seq || call->in_discard || (!call->is_server && call->out_next == 1)) {
		RX_COUNT(c->ep, malformed);
		return;
	}
	if (d->len > c->peer->size_in)
		c->peer->size_in = MIN(d->len, c->peer->size_own);
	if (!call->is_server && !call->out_closed)
		rx_send_ack_all(call, now); /* a reply acknowledges the request, rx.md §3.2 */

	uint32_t off = d->off + RX_HEADER, left = d->len - RX_HEADER;
	rx_seq seq = h->seq;
	rx_serial serial = h->serial;
	uint8_t flags = h->flags;
	uint16_t cksum = h->cksum;
	bool hole = call->ahead_count > 0, news = false;
	uint64_t moved = 0;
	enum fate worst = TAKEN;
	for (;;) {
		bool more = flags & RX_F_JUMBO && left >= RX_JUMBO_BODY + RX_JUMBO_HEADER;
		uint32_t len = more ? RX_JUMBO_BODY : left;
		enum fate f = take(call, seq, flags & RX_F_LAST, cksum, d, off, len);
		worst = MAX(worst, f);
		if (f <= AHEAD)
			call->unacked_in++;
		news |= f == TAKEN;
		moved += f <= AHEAD ? len : 0;
		if (!more)
			break;
		const uint8_t *sub = d->buf->data + off + RX_JUMBO_BODY;
		flags = sub[0];
		cksum = (uint16_t)(sub[2] << 8 | sub[3]);
		off += RX_JUMBO_BODY + RX_JUMBO_HEADER;
		left -= RX_JUMBO_BODY + RX_JUMBO_HEADER;
		seq++;
		serial++;
	}
	hole |= call->ahead_count > 0;
	owe_for(call, now, worst, hole, flags, serial);
	if (worst == DUPLICATE && call->is_server && call->out_next > 1)
		rx_loss_hint(call, now);
	rx_call_progress(call, now, moved);
	if (news) {
		if (call->delivered)
			rx_call_event(call, RX_CE_READABLE);
		else
			rx_call_offer(call);
	}
}

/* --- for the layer above ------------------------------------------------------------------- */

struct rx_packet *rx_call_receive(struct rx_call *call, mono_ns now)
{
	struct rx_packet *list = call->in_head;
	if (!list)
		return NULL;
	call->in_head = NULL;
	call->in_tail = &call->in_head;
	call->in_given = call->in_next;
	/* the peer was not waited for while this lay here */
	call->progress = MIN(now, call->progress + (now - call->in_ready));
	call->events &= (uint8_t)~RX_CE_READABLE;
	if (!call->events)
		list_remove(&call->ev);
	return list;
}

bool rx_call_received_all(const struct rx_call *call)
{
	return call->in_last && call->in_given > call->in_last;
}

void rx_call_consumed(struct rx_call *call, mono_ns now, uint32_t packets)
{
	if (!call->attached || call->ended)
		return;
	packets = MIN(packets, call->in_given - call->in_first);
	/* their share: how long each was is known to the layer above only */
	const uint32_t waiting = call->in_next - call->in_first + call->ahead_count;
	const size_t share = waiting ? call->in_held * packets / waiting : 0;
	call->in_held -= share;
	rx_peer_held(call->conn->ep, call->conn->peer, 0, share);
	call->in_first += packets;
	call->consumed_since += packets;
	if (call->in_last && call->in_next > call->in_last)
		return; /* no more will come: no window is needed */
	/* a peer that has used up its window waits for this: no later than half of it is open again */
	const uint32_t window = rx_recv_window(call->conn);
	const bool opens = call->in_high + 1 >= call->in_edge && call->in_first + window > call->in_edge &&
		(call->in_first + window - call->in_edge) * 2 >= window;
	if (call->consumed_since >= 8 || opens)
		rx_ack_owe(call, RX_ACK_DELAY, 0);
	else if (packets && call->due[RX_DUE_ACK] == MONO_NEVER)
		rx_call_set_due(call, RX_DUE_ACK, now + RX_ACK_DELAY_NS);
}
