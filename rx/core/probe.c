/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How large a datagram the path to a peer carries, beyond the 1444 bytes that every path does.
 *
 * While a call sends in bulk, a ping padded with zeros goes out, not to be fragmented; its answer
 * proves the size.  The largest size that both ends agree to is tried first, then a few that common
 * networks carry.  A probe that a local interface refuses, or that stays unanswered twice, rules its
 * size out; after ten minutes the search begins anew.  Nothing waits for a probe, and its loss says
 * nothing about congestion.  Only addresses that proved themselves are probed (peer.c).
 *
 * What was proven is taken back when large packets time out twice in a row, or the network says so
 * (rx_peer_lower_size): packets made before that leave in fragments, new ones are small.
 *
 * Source: rx.md §10.4; RFC 4821 and RFC 8899 for the search and its timers. */
#include "rx/core/inside.h"

#include <string.h>

/* Ethernet with 9000-byte frames, less 28 for IP and UDP; the same less what tunnels take, which is
 * what stock servers use; FDDI. */
static const uint32_t ladder[] = {8972, 8588, 4324};
enum { WORTH_IT = 256 }; /* a smaller gain is not worth probing for */

/* The largest size not ruled out; 0: the search is over. */
static uint32_t next_size(const struct rx_peer *p)
{
	uint32_t below = p->probe.refused ? p->probe.refused : UINT32_MAX;
	if (p->size_limit < p->size_proven + WORTH_IT)
		return 0;
	if (p->size_limit < below)
		return p->size_limit;
	for (size_t i = 0; i < ARRAY_SIZE(ladder); i++)
		if (ladder[i] < below && ladder[i] < p->size_limit &&
			ladder[i] >= p->size_proven + WORTH_IT)
			return ladder[i];
	return 0;
}

static void rule_out(struct rx_peer *p, mono_ns now)
{
	p->probe.refused = p->probe.size;
	p->probe.size = 0;
	p->probe.conn = NULL;
	p->probe.tries = 0;
	p->probe.at = now;
	if (!next_size(p)) {
		p->probe.refused = 0;
		p->probe.at = now + RX_PROBE_RAISE_NS;
	}
}

void rx_probe_refused(struct rx_peer *p, mono_ns now)
{
	if (p->probe.size)
		rule_out(p, now);
}

void rx_probe_forget(struct rx_conn *c, mono_ns now)
{
	struct rx_probe *probe = &c->peer->probe;
	if (probe->conn != c)
		return;
	probe->conn = NULL;
	probe->size = 0;
	probe->at = now; /* not its fault: again, when there is a reason */
}

void rx_probe_answered(struct rx_conn *c, mono_ns now, rx_serial serial)
{
	struct rx_peer *p = c->peer;
	if (p->probe.conn != c || !p->probe.size || serial != p->probe.serial)
		return;
	uint32_t before = p->size_send;
	p->size_proven = p->probe.size;
	p->size_send = MIN(p->size_limit, p->size_proven);
	p->probe.size = 0;
	p->probe.conn = NULL;
	p->probe.tries = 0;
	p->probe.at = next_size(p) ? now : MONO_NEVER;
	if (p->probe.at == MONO_NEVER && p->probe.refused)
		p->probe.at = now + RX_PROBE_RAISE_NS;
	/* windows count packets: as many bytes as before, not as many packets */
	for (int i = 0; i < 4; i++) {
		struct rx_call *call = c->chan[i].call;
		if (!call || p->size_send <= before)
			continue;
		uint32_t cwnd = (uint32_t)((uint64_t)call->cwnd * before / p->size_send);
		call->cwnd = MAX(cwnd, (uint32_t)RX_CWND_START);
	}
}

bool rx_probe_emit(struct rx_call *call, mono_ns now, struct rx_datagram *out)
{
	struct rx_conn *c = call->conn;
	struct rx_peer *p = c->peer;
	if (p->on_machine || !p->srtt || call->out_closed || call->out_next <= RX_PROBE_AFTER ||
		call->out_next == call->out_end)
		return false;
	if (!p->proven && (c->is_server || !p->chosen))
		return false;
	if (p->probe.size && p->probe.tries >= RX_PROBE_TRIES)
		rule_out(p, now);
	if (p->probe.at > now)
		return false;
	uint32_t size = next_size(p);
	if (!size) {
		p->probe.at = MONO_NEVER;
		return false;
	}
	uint8_t *at = rx_endpoint_scratch(c->ep, size, out);
	if (!at)
		return false;
	size_t len = RX_HEADER + rx_ack_build(call, now, RX_ACK_PING, 0, at + RX_HEADER);
	memset(at + len, 0, size - len);
	struct rx_header h;
	rx_conn_header(c, &h, RX_ACK);
	h.cid |= (uint32_t)(call->chan - c->chan);
	h.call = call->number;
	h.flags |= RX_F_SLOW_START_OK | RX_F_REQUEST_ACK;
	rx_header_put(at, &h);
	out->probe = true;
	p->probe.conn = c;
	p->probe.serial = h.serial;
	p->probe.size = size;
	p->probe.tries++;
	p->probe.at = now + 2 * p->srtt + 4 * p->rttvar + RX_PROBE_WAIT_NS;
	RX_COUNT(c->ep, probes_out);
	RX_COUNT(c->ep, pings_out);
	RX_COUNT(c->ep, acks_out);
	rx_conn_sent(c, now, size);
	return true;
}
