/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Round-trip time of a peer, shared by its calls (RFC 6298), and the least of the last ten seconds,
 * which tells reordering from loss and a filling queue from an empty one. */
#include "rx/core/inside.h"

#define MIN_RTT_LIFE SEC(10)

void rx_peer_rtt(struct rx_endpoint *ep, struct rx_peer *p, mono_ns now, int64_t sample)
{
	if (sample < 1000)
		sample = 1000;
	RX_COUNT(ep, rtt_samples);
	RX_COUNT_N(ep, rtt_total_ns, (uint64_t)sample);
	uint64_t least = rx_stat_get(ep, RX_ST_rtt_min_ns);
	if (!least || (uint64_t)sample < least)
		rx_stat_set(ep, RX_ST_rtt_min_ns, (uint64_t)sample);
	if ((uint64_t)sample > rx_stat_get(ep, RX_ST_rtt_max_ns))
		rx_stat_set(ep, RX_ST_rtt_max_ns, (uint64_t)sample);
	if (!p->min_rtt || sample <= p->min_rtt || now - p->min_rtt_at > MIN_RTT_LIFE) {
		p->min_rtt = sample;
		p->min_rtt_at = now;
	}
	if (!p->srtt) {
		p->srtt = sample;
		p->rttvar = sample / 2;
		return;
	}
	int64_t d = sample - p->srtt;
	p->rttvar += ((d < 0 ? -d : d) - p->rttvar) / 4;
	p->srtt += d / 8;
}
