/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Acknowledgements, both ways.
 *
 * What is owed is only noted while datagrams come in and is built when the driver asks for output, so
 * a batch of arrivals makes one ACK.  An ACK with an older header serial than one already seen was
 * overtaken and changes nothing; soft acknowledgements may be taken back by a newer one, hard ones
 * never.  Source: rx.md §4. */
#include "rx/core/inside.h"

#include <string.h>

void rx_ack_owe(struct rx_call *call, enum rx_reason reason, rx_serial serial)
{
	/* A reason with a serial gives the peer a round-trip sample; a DELAY adds nothing to it. */
	if (reason == RX_ACK_DELAY && call->ack_owed)
		return;
	call->ack_owed = (uint8_t)reason;
	call->ack_serial = serial;
	rx_call_tx(call);
}

static size_t put_tail(uint8_t *p, uint32_t datagram, uint32_t window)
{
	memset(p, 0, RX_ACK_PAD); /* CVE-2015-7762: they must be zero */
	put32(p + 3, datagram);
	put32(p + 7, datagram);
	put32(p + 11, window);
	put32(p + 15,
		1); /* no jumbograms: single packets may grow instead, and take any security level */
	return RX_ACK_PAD + RX_ACK_TRAILER;
}

static void put_fixed(uint8_t *p, rx_seq first, rx_seq previous, rx_serial serial,
	enum rx_reason reason, uint32_t n)
{
	put32(p, 0); /* bufferSpace, maxSkew */
	put32(p + 4, first);
	put32(p + 8, previous);
	put32(p + 12, serial);
	p[16] = (uint8_t)reason;
	p[17] = (uint8_t)n;
}

size_t rx_ack_build(
	struct rx_call *call, mono_ns now, enum rx_reason reason, rx_serial serial, uint8_t *out)
{
	(void)now;
	uint32_t n = call->in_high >= call->in_first ? call->in_high - call->in_first + 1 : 0;
	n = MIN(n, (uint32_t)RX_WINDOW_MAX);
	/* previousPacket: the highest that came, not the latest.  Stock senders drop an ACK whose
	 * previousPacket moves back, which the latest does whenever a hole is filled. */
	put_fixed(out, call->in_first, call->in_high, serial, reason, n);
	uint32_t in_order = call->in_next - call->in_first;
	in_order = MIN(in_order, n);
	memset(out + RX_ACK_FIXED, 1, in_order);
	for (uint32_t i = in_order; i < n; i++)
		out[RX_ACK_FIXED + i] =
			call->ahead && call->ahead[(call->in_first + i) % RX_AHEAD] != NULL;
	uint32_t window = rx_recv_window(call->conn);
	call->in_edge = MAX(call->in_edge, call->in_first + window);
	call->chan->own_window = (uint16_t)window;
	return RX_ACK_FIXED + n +
	       put_tail(out + RX_ACK_FIXED + n, call->conn->peer->size_own, window);
}

/* For a call that is over: everything was consumed. */
size_t rx_ack_build_over(
	struct rx_conn *c, struct rx_channel *ch, enum rx_reason reason, uint8_t *out)
{
	put_fixed(out, ch->last_in + 1, ch->last_in, reason == RX_ACK_DELAY ? 0 : ch->ack_serial,
		reason, 0);
	uint32_t window = rx_recv_window(c);
	ch->own_window = (uint16_t)window;
	return RX_ACK_FIXED + put_tail(out + RX_ACK_FIXED, c->peer->size_own, window);
}

/* --- in ------------------------------------------------------------------------------------ */

/* The first octet of [p, p + n) whose lowest bit is clear; n when there is none. */
static uint32_t first_missing(const uint8_t *p, uint32_t n)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint32_t i = 0;
	for (; i + 8 <= n; i += 8) {
		uint64_t w;
		memcpy(&w, p + i, 8);
		if ((w & ones) != ones)
			break;
	}
	while (i < n && p[i] & 1)
		i++;
	return i;
}

static void take_back(struct rx_call *call, rx_seq seq)
{
	struct rx_packet *p = *rx_send_slot(call, seq);
	if (p->state != RX_PKT_ACKED)
		return;
	p->state = RX_PKT_LOST;
	call->lost++;
	call->lost_from = MIN(call->lost_from, seq);
	call->out_soft = MIN(call->out_soft, seq);
}

/* Only what lies beyond the known prefix is looked at one by one, so a window full of soft
 * acknowledgements costs no more than a short one. */
static void soft_acks(struct rx_call *call, mono_ns now, const struct rx_ack *a, rx_serial serial)
{
	uint32_t n = MIN(a->count, call->out_next - a->first);
	uint32_t known = call->out_soft - a->first;
	uint32_t i = first_missing(a->octets, MIN(n, known));
	for (; i < n; i++) {
		rx_seq seq = a->first + i;
		struct rx_packet *p = *rx_send_slot(call, seq);
		if (!(a->octets[i] & 1))
			take_back(call, seq);
		else if (p->state != RX_PKT_ACKED)
			rx_send_mark_acked(call, now, p, serial);
	}
}

/* Window closed and nothing under way that would bring an ACK: if the one that opens it gets lost,
 * we must ask. */
static void arm_persist(struct rx_call *call, mono_ns now)
{
	bool stuck = !call->flying && !call->lost && call->out_next < call->out_end;
	if (!stuck)
		call->persists = 0;
	else if (call->due[RX_DUE_PERSIST] == MONO_NEVER)
		rx_call_set_due(call, RX_DUE_PERSIST, now + (MSEC(250) << MIN(call->persists, 4)));
	if (stuck && call->persists < 4)
		call->persists++;
}

static void prove(struct rx_call *call, rx_serial serial)
{
	struct rx_conn *c = call->conn;
	if (c->is_server && !c->peer->proven && c->ep->from_home &&
		serial - c->first_serial - 1 < c->serial - c->first_serial)
		rx_peer_prove(c->ep, c->peer);
}

void rx_ack_receive(struct rx_call *call, mono_ns now, const struct rx_header *h,
	const uint8_t *body, size_t len)
{
	struct rx_conn *c = call->conn;
	struct rx_ack a;
	if (!rx_ack_parse(body, len, &a)) {
		RX_COUNT(c->ep, malformed);
		return;
	}
	if (a.serial)
		prove(call, a.serial);
	if (h->flags & RX_F_REQUEST_ACK) {
		call->pong_owed = true;
		call->pong_serial = h->serial;
		rx_call_tx(call);
	}
	if (call->ping_flying && a.serial == call->ping_serial && a.reason != RX_ACK_DELAY) {
		call->ping_flying = false;
		rx_peer_rtt(c->ep, c->peer, now, now - call->ping_at);
	}
	if ((call->heard_ack && serial_before(h->serial, call->last_ack_serial)) ||
		a.first < call->out_una || a.first > call->out_next) {
		RX_COUNT(c->ep, acks_ignored);
		return;
	}
	call->heard_ack = true;
	call->last_ack_serial = h->serial;
	call->heard = now;
	rx_peer_trailer(c->peer, now, &a);
	if (a.has_window) {
		call->window = a.window;
		call->chan->peer_window = (uint16_t)a.window;
	}
	if (call->out_closed)
		return;
	rx_serial serial = a.reason == RX_ACK_DELAY ? 0 : a.serial;
	call->newly = 0;
	call->newly_bytes = 0;
	rx_send_advance(call, now, a.first, serial);
	soft_acks(call, now, &a, serial);
	rx_send_advance_soft(call, now);
	if (rx_send_complete(call, now))
		return;
	if (call->newly) {
		rx_call_progress(call, now, call->newly_bytes);
		call->backoff = 0;
		call->probes = 0;
		rx_cong_acked(call, now, call->newly);
	}
	rx_loss_detect(call, now);
	/* Only progress puts the timeout off: a peer that pings says nothing about what is missing. */
	if (call->newly || !call->flying)
		rx_loss_arm(call, now);
	else if (a.reason == RX_ACK_PING || a.reason == RX_ACK_PING_RESPONSE)
		rx_loss_hint(call, now);
	rx_send_room_event(call);
	if (call->lost || call->out_next < call->out_end)
		rx_call_tx(call);
	arm_persist(call, now);
}
