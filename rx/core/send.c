/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The sending half of a call: the queue of sealed packets, which of them may leave, with which flags.
 *
 * out_una <= out_soft <= out_next <= out_end.  A packet is QUEUED, then FLYING; from there ACKED, or
 * LOST and FLYING again; it stays until it is hard-acknowledged, because a soft acknowledgement may
 * be taken back.  `flying` and `lost` count those states. */
#include "rx/core/inside.h"

#include <string.h>

/* --- the queue ----------------------------------------------------------------------------- */

void rx_send_drop(struct rx_call *call)
{
	for (rx_seq s = call->out_una; s != call->out_end; s++)
		rx_packet_free(*rx_send_slot(call, s));
	call->out_una = call->out_soft = call->out_next = call->out_end;
	call->flying = call->lost = 0;
	list_init(&call->xmit);
	call->out_closed = true;
	if (call->ring != call->ring_small) {
		mem_free(call->ring);
		call->ring = call->ring_small;
		call->ring_mask = RX_RING_SMALL - 1;
	}
}

static bool grow(struct rx_call *call)
{
	uint32_t size = (call->ring_mask + 1) * 4;
	struct rx_packet **ring = mem_new_array(size, struct rx_packet *);
	if (!ring)
		return false;
	for (rx_seq s = call->out_una; s != call->out_end; s++)
		ring[s & (size - 1)] = *rx_send_slot(call, s);
	if (call->ring != call->ring_small)
		mem_free(call->ring);
	call->ring = ring;
	call->ring_mask = size - 1;
	return true;
}

static uint32_t capacity(const struct rx_call *call)
{
	uint32_t packets = RX_SEND_BYTES / rx_call_body_max(call);
	packets = MIN(packets, 2 * call->window);
	return MAX(packets, (uint32_t)RX_WINDOW_START);
}

uint32_t rx_send_room(const struct rx_call *call)
{
	if (!call->attached || call->ended)
		return 0;
	uint32_t cap = capacity(call), used = call->out_end - call->out_una;
	return cap > used ? cap - used : 0;
}

/* The queue takes fewer packets when these become larger, or the peer's window smaller: a queue that had
 * room is then full without a packet more, and who finds it so waits to hear of room. */
uint32_t rx_call_room(struct rx_call *call)
{
	uint32_t room = rx_send_room(call);
	if (!room && !call->out_last)
		call->want_room = true;
	return room;
}

void rx_send_room_event(struct rx_call *call)
{
	if (!call->want_room)
		return;
	uint32_t room = rx_send_room(call);
	if (!call->out_closed && room < (capacity(call) + 3) / 4)
		return;
	call->want_room = false;
	rx_call_event(call, RX_CE_WRITABLE);
}

void rx_call_send(struct rx_call *call, mono_ns now, struct rx_packet *list)
{
	struct rx_endpoint *ep = call->conn->ep;
	ep->now = now;
	if (call->is_server && call->attached && !call->ended && !call->in_discard) {
		/* the reply begins: what was not read of the request is of no interest */
		rx_recv_drop(call);
		call->in_discard = !(call->in_last && call->in_next > call->in_last);
	}
	while (list) {
		struct rx_packet *p = list;
		list = p->next;
		p->next = NULL;
		bool fits = call->out_end - call->out_una <= call->ring_mask || grow(call);
		if (!call->attached || call->ended || call->out_closed || call->out_last || !fits) {
			rx_packet_free(p);
			if (!fits) {
				rx_packet_free_list(list);
				rx_call_end_and_tell(call, now, AFS_ENOMEM, RX_CALL_DEAD);
				return;
			}
			continue;
		}
		p->seq = call->out_end++;
		p->state = RX_PKT_QUEUED;
		p->sends = 0;
		list_init(&p->xmit);
		*rx_send_slot(call, p->seq) = p;
		if (p->last) {
			call->out_last = p->seq;
			call->app_done |= call->is_server;
			call->chan->failures = 0;
		}
	}
	call->progress = now;
	call->want_room = !call->out_last && rx_send_room(call) == 0;
	rx_call_tx(call);
}

/* --- acknowledged -------------------------------------------------------------------------- */

void rx_send_mark_acked(struct rx_call *call, mono_ns now, struct rx_packet *p, rx_serial serial)
{
	rx_loss_acked(call, now, p, serial);
	if (p->state == RX_PKT_FLYING) {
		list_remove(&p->xmit);
		call->flying--;
	} else if (p->state == RX_PKT_LOST) {
		call->lost--;
	}
	p->state = RX_PKT_ACKED;
	call->newly++;
	call->newly_bytes += p->len;
	call->out_high = MAX(call->out_high, p->seq);
}

void rx_send_advance(struct rx_call *call, mono_ns now, rx_seq first, rx_serial serial)
{
	for (; call->out_una != first; call->out_una++) {
		struct rx_packet **slot = rx_send_slot(call, call->out_una);
		if ((*slot)->state != RX_PKT_ACKED)
			rx_send_mark_acked(call, now, *slot, serial);
		rx_packet_free(*slot);
		*slot = NULL;
	}
	if (call->out_soft < call->out_una) {
		call->out_soft = call->out_una;
		call->soft_at = now;
	}
	call->lost_from = MAX(call->lost_from, call->out_una);
}

void rx_send_advance_soft(struct rx_call *call, mono_ns now)
{
	rx_seq before = call->out_soft;
	while (call->out_soft != call->out_next &&
		(*rx_send_slot(call, call->out_soft))->state == RX_PKT_ACKED)
		call->out_soft++;
	if (call->out_soft != before)
		call->soft_at = now;
	if (call->in_recovery && call->out_soft >= call->recovery_end)
		call->in_recovery = false;
}

bool rx_send_complete(struct rx_call *call, mono_ns now)
{
	if (!call->is_server || !call->out_last || call->out_soft <= call->out_last)
		return false;
	call->events = 0;
	list_remove(&call->ev);
	if (call->refs)
		rx_call_event(call, RX_CE_SENT);
	rx_call_detach(call, now, RX_END_DONE);
	return true;
}

/* A client's request when the reply begins, a server's reply when the client says so or moves on. */
void rx_send_ack_all(struct rx_call *call, mono_ns now)
{
	if (call->is_server) {
		rx_send_advance(call, now, call->out_next, 0);
		rx_send_advance_soft(call, now);
		if (!rx_send_complete(call, now))
			rx_loss_arm(call, now);
		return;
	}
	rx_send_drop(call);
	call->due[RX_DUE_LOSS] = call->due[RX_DUE_REORDER] = call->due[RX_DUE_PERSIST] = MONO_NEVER;
	rx_send_room_event(call);
}

bool rx_send_is_stuck(const struct rx_call *call, mono_ns now)
{
	if (now - call->soft_at < RX_OVERSIZE_NS || call->out_soft == call->out_next)
		return false;
	const struct rx_packet *p = *rx_send_slot(call, call->out_soft);
	return RX_HEADER + p->len > call->conn->peer->size_proven;
}

/* --- out ----------------------------------------------------------------------------------- */

/* What may leave next, looking at windows only; NULL: nothing. */
static struct rx_packet *choose(struct rx_call *call)
{
	bool free_slot = call->flying < call->cwnd || call->credit;
	if (call->lost) {
		if (!free_slot) {
			call->was_limited = true;
			return NULL;
		}
		struct rx_packet *p;
		while ((p = *rx_send_slot(call, call->lost_from))->state != RX_PKT_LOST)
			call->lost_from++;
		return p;
	}
	if (call->out_next == call->out_end || call->out_next - call->out_una >= call->window)
		return NULL;
	if (!free_slot) {
		call->was_limited = true;
		return NULL;
	}
	return *rx_send_slot(call, call->out_next);
}

/* rx.md §7: ask for an ACK at once when we are about to stop for want of one, on everything sent
 * again, at the end of a bulk transfer, and when this peer's round trip, sizes or address are unknown. */
static bool should_ask(
	const struct rx_call *call, const struct rx_packet *p, bool was_idle, bool more)
{
	const struct rx_peer *peer = call->conn->peer;
	if (p->sends)
		return true;
	if (was_idle && (!peer->srtt || !peer->knows_size || (call->is_server && !peer->proven)))
		return true;
	if (p->last)
		return p->seq > 8;
	return !more && call->out_next != call->out_end;
}

static bool could_continue(const struct rx_call *call)
{
	return (call->lost || (call->out_next != call->out_end &&
				      call->out_next - call->out_una < call->window)) &&
	       call->flying < call->cwnd;
}

bool rx_send_emit(struct rx_call *call, mono_ns now, struct rx_datagram *out, bool *blocked)
{
	struct rx_conn *c = call->conn;
	struct rx_packet *p = choose(call);
	if (!p)
		return false;
	if (now >= c->expires) {
		rx_conn_doom(c, now, AFS_EEXPIRED);
		return false;
	}
	mono_ns wait = rx_cong_pace(call, now);
	if (wait && !call->credit) {
		rx_call_set_due(call, RX_DUE_PACE, wait);
		return false;
	}
	uint32_t len = RX_HEADER + p->len;
	if (!rx_peer_allows(c->peer, c, len, RX_PING_BYTES)) {
		if (!call->held)
			RX_COUNT(c->ep, held_unproven);
		call->held = true;
		*blocked = true;
		return false;
	}
	bool was_idle = call->flying == 0;
	if (call->out_soft == call->out_next)
		call->soft_at = now;
	if (p->state == RX_PKT_LOST) {
		call->lost--;
	} else {
		call->out_next++;
	}
	if (call->credit)
		call->credit--;
	p->state = RX_PKT_FLYING;
	call->flying++;
	list_push_back(&call->xmit, &p->xmit);
	bool more = could_continue(call);
	bool ask = should_ask(call, p, was_idle, more);

	struct rx_header h;
	rx_conn_header(c, &h, RX_DATA);
	h.cid |= (uint32_t)(call->chan - c->chan);
	h.call = call->number;
	h.seq = p->seq;
	h.cksum = p->cksum;
	h.flags |= (uint8_t)((p->last ? RX_F_LAST : 0) | (ask ? RX_F_REQUEST_ACK : 0) |
			     (more ? RX_F_MORE : 0));
	out->buf = p->buf;
	out->off = p->off - RX_HEADER;
	out->len = len;
	/* made before the path shrank, and its number and seal are given: it cannot be made smaller */
	out->fragment = len > c->peer->size_proven;
	rx_header_put(p->buf->data + out->off, &h);

	RX_COUNT(c->ep, data_out);
	c->data_out++;
	c->bytes_out += p->len;
	c->peer->data_out++;
	if (p->sends) {
		RX_COUNT(c->ep, data_resent);
		c->peer->data_resent++;
	}
	if (p->sends < UINT8_MAX)
		p->sends++;
	p->serial = h.serial;
	p->order = ++call->order;
	p->sent_at = now;
	if (!call->is_server && p->seq == 1 && p->sends == 1)
		call->heard = now;
	call->sent = call->last_data_at = now;
	call->last_asked = ask;
	if (call->is_server) { /* acknowledges the request */
		call->unacked_in = 0;
		call->consumed_since = 0;
		call->due[RX_DUE_ACK] = MONO_NEVER;
	}
	rx_cong_paced(call, now);
	rx_conn_sent(c, now, len);
	rx_loss_arm(call, now);
	return true;
}
