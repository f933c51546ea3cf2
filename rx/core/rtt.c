/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Round-trip time of a peer, shared by its calls (RFC 6298), and the least of the last ten seconds,
 * which tells reordering from loss and a filling queue from an empty one. */
#include "rx/core/inside.h"

#define MIN_RTT_LIFE SEC(10)

void rx_peer_rtt(struct rx_peer *p, mono_ns now, int64_t sample)
{
	if (sample < 1000)
		sample = 1000;
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
