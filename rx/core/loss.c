/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which packets are gone.  After RFC 8985 (RACK-TLP), with transmissions numbered per call so that
 * packets sent in one instant have an order too:
 *
 *  - a packet is lost when one sent at least three transmissions later has arrived and no reordering
 *    was ever seen, or when it is overdue by a reordering window against one sent later;
 *  - when the tail of a flight goes unanswered, one probe goes out before the timeout;
 *  - at the timeout everything in flight counts as lost and the timeout doubles. */
#include "rx/core/inside.h"

void rx_loss_acked(struct rx_call *call, mono_ns now, struct rx_packet *p, rx_serial serial)
{
	struct rx_peer *peer = call->conn->peer;
	int64_t took = now - p->sent_at;
	if (serial && serial == p->serial) {
		rx_peer_rtt(call->conn->ep, peer, now, took);
		rx_cong_sample(call, took);
	}
	bool again = p->sends > 1;
	if (!again && p->seq < call->out_high)
		call->reorder_seen = true; /* the original filled a hole */
	/* after a timeout: acknowledged by what was sent before it */
	if (call->can_undo && serial &&
		(p->order <= call->undo_order ? p->state == RX_PKT_LOST
					      : serial_before(serial, p->serial)))
		rx_cong_spurious(call);
	/* whose transmission was this: the latest, or one before it? */
	if (again && ((serial && serial_before(serial, p->serial)) || took < peer->min_rtt))
		return;
	if (p->order > call->rack_order) {
		call->rack_order = p->order;
		call->rack_rtt = took;
	}
}

static void declare_lost(struct rx_call *call, struct rx_packet *p)
{
	list_remove(&p->xmit);
	p->state = RX_PKT_LOST;
	call->flying--;
	call->lost++;
	call->lost_from = MIN(call->lost_from, p->seq);
}

void rx_loss_detect(struct rx_call *call, mono_ns now)
{
	const struct rx_peer *peer = call->conn->peer;
	int64_t window = MAX(peer->min_rtt / 4, call->reorder_seen ? (int64_t)MSEC(1) : 0);
	bool fresh = false;
	uint32_t lost = 0;
	list_each(e, &call->xmit)
	{
		struct rx_packet *p = list_entry(e, struct rx_packet, xmit);
		if (p->order >= call->rack_order)
			break;
		mono_ns overdue = p->sent_at + call->rack_rtt + window;
		bool overtaken = !call->reorder_seen && call->rack_order - p->order >= 3;
		if (!overtaken && overdue > now) {
			rx_call_set_due(call, RX_DUE_REORDER, overdue);
			break;
		}
		fresh |= !call->in_recovery || p->seq >= call->recovery_end;
		declare_lost(call, p);
		lost++;
	}
	call->seen_lost += lost;
	if (fresh)
		rx_cong_loss(call, now);
}

static int64_t answer_allowance(const struct rx_call *call)
{
	if (call->last_asked)
		return RX_PROBE_MIN_NS;
	bool tail_of_reply = call->is_server && call->out_last && call->out_next > call->out_last;
	return tail_of_reply ? RX_PEER_DELAY_REPLY_NS : RX_PEER_DELAY_NS;
}

static int64_t timeout(const struct rx_call *call)
{
	const struct rx_peer *peer = call->conn->peer;
	int64_t rto = RX_RTO_FIRST_NS;
	if (peer->srtt)
		rto = MAX(peer->srtt + 4 * peer->rttvar, RX_RTO_MIN_NS);
	rto += call->last_asked ? 0 : answer_allowance(call);
	rto <<= MIN(call->backoff, 8);
	return MIN(rto, RX_RTO_MAX_NS);
}

static bool may_probe(const struct rx_call *call)
{
	return call->conn->peer->srtt && !call->probes && !call->backoff && !call->lost;
}

/* From the latest transmission or acknowledgement on. */
void rx_loss_arm(struct rx_call *call, mono_ns now)
{
	if (!call->flying) {
		call->due[RX_DUE_LOSS] = MONO_NEVER;
		return;
	}
	int64_t after = timeout(call);
	if (may_probe(call)) {
		const struct rx_peer *peer = call->conn->peer;
		int64_t probe = 2 * peer->srtt + 2 * peer->rttvar + answer_allowance(call);
		after = MIN(after, probe);
	}
	rx_call_set_due(call, RX_DUE_LOSS, now + after);
}

static void probe_tail(struct rx_call *call)
{
	RX_COUNT(call->conn->ep, tail_probes);
	call->probes = 1;
	call->credit = 1;
	bool has_new =
		call->out_next != call->out_end && call->out_next - call->out_una < call->window;
	if (!has_new)
		declare_lost(call, list_entry(call->xmit.prev, struct rx_packet, xmit));
}

void rx_loss_timeout(struct rx_call *call, mono_ns now)
{
	if (!call->flying)
		return;
	if (may_probe(call)) {
		probe_tail(call);
	} else {
		const struct rx_packet *oldest =
			list_entry(call->xmit.next, struct rx_packet, xmit);
		/* Twice in a row, and large: not congestion but a path that carries such no more and
		 * does not say so.  On one machine there is no path, only a peer that is away. */
		if (call->backoff && !call->conn->peer->on_machine &&
			RX_HEADER + oldest->len > RX_SAFE_DATAGRAM)
			rx_peer_lower_size(call->conn->ep, call->conn->peer, now);
		RX_COUNT(call->conn->ep, timeouts);
		rx_cong_timeout(call, now);
		list_each(e, &call->xmit) declare_lost(call, list_entry(e, struct rx_packet, xmit));
		call->credit = 1;
		if (call->backoff < 16)
			call->backoff++;
	}
	rx_call_tx(call);
	/* not to be forgotten when nothing can leave at this moment */
	rx_call_set_due(call, RX_DUE_LOSS, now + timeout(call));
}

void rx_loss_hint(struct rx_call *call, mono_ns now)
{
	if (!call->flying)
		return;
	struct rx_packet *p = list_entry(call->xmit.next, struct rx_packet, xmit);
	int64_t round = MAX(call->conn->peer->srtt, (int64_t)MSEC(1));
	if (now - p->sent_at <= 2 * round)
		return;
	declare_lost(call, p);
	call->credit = 1;
	rx_call_tx(call);
}
