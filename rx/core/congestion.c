/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How much may be under way: CUBIC (RFC 9438) in packets, slow start that ends when delay grows
 * (HyStart), pacing where the round trip is long enough for timers to matter.
 *
 * Rx's window is at most 255 packets, so on short paths it, not this, is the limit.
 *
 * A lost packet is taken for congestion when the delay says so too, or when losses are many.  Otherwise the
 * path just loses packets, as wireless and overbooked ones do, and a smaller window would not lose fewer:
 * it is kept.  (BBR judges alike.  A queue so short that it fills without delay loses many.) */
#include "rx/core/inside.h"

#define CUBIC_C 0.4
#define CUBIC_BETA 0.7
#define PACE_FROM_NS MSEC(2)
#define KEEP_NS SEC(60)
/* Delay beyond the path's that may be anything: the host's, a radio's.  More, and flows on a short path do not
 * find their shares: its queue is never longer. */
#define QUEUE_NS USEC(500)
enum { HYSTART_SAMPLES = 8 };
/* Losses are many when they are at least so many of the latest packets, and more than a share of 1/12. */
enum { LOSS_LEAST = 4, LOSS_SHARE = 12, LOSS_MEMORY = 256 };

void rx_cong_init(struct rx_call *call, mono_ns now)
{
	const struct rx_peer *p = call->conn->peer;
	call->cwnd = RX_CWND_START;
	call->ssthresh = RX_CWND_MAX;
	if (p->cwnd && now - p->cwnd_at < KEEP_NS) {
		call->cwnd = p->cwnd;
		call->ssthresh = p->ssthresh;
	}
}

/* What a call learnt is where the next one starts. */
void rx_cong_keep(struct rx_call *call, mono_ns now)
{
	struct rx_peer *p = call->conn->peer;
	if (call->out_next <= RX_CWND_MIN + 1 || (call->cwnd <= p->cwnd && call->w_max <= 0))
		return; /* sent too little to know better */
	p->cwnd = MAX(call->cwnd, (uint32_t)RX_CWND_START / 2);
	p->ssthresh = MAX(call->ssthresh, p->cwnd);
	p->cwnd_at = now;
}

static double cube_root(double x)
{
	if (x <= 0)
		return 0;
	double r = x > 1 ? x / 3 + 1 : 1;
	for (int i = 0; i < 24; i++)
		r = (2 * r + x / (r * r)) / 3;
	return r;
}

static void cubic(struct rx_call *call, mono_ns now, uint32_t packets)
{
	double cwnd = call->cwnd + call->cwnd_part;
	if (!call->epoch_start) {
		call->epoch_start = now;
		call->w_max = MAX(call->w_max, cwnd);
		call->epoch_k = cube_root((call->w_max - cwnd) / CUBIC_C);
		call->w_est = cwnd;
	}
	double rtt = (double)call->conn->peer->srtt / 1e9;
	double t = (double)(now - call->epoch_start) / 1e9 + rtt - call->epoch_k;
	double target = CUBIC_C * t * t * t + call->w_max;
	call->w_est += 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA) * packets / cwnd; /* as Reno would */
	target = MAX(target, call->w_est);
	target = MIN(target, 1.5 * cwnd);
	if (target > cwnd)
		cwnd += (target - cwnd) / cwnd * packets;
	call->cwnd = (uint32_t)cwnd;
	call->cwnd_part = cwnd - call->cwnd;
}

void rx_cong_acked(struct rx_call *call, mono_ns now, uint32_t packets)
{
	call->seen_acked += packets;
	if (call->seen_acked > LOSS_MEMORY) {
		call->seen_acked /= 2;
		call->seen_lost /= 2;
	}
	if (call->in_recovery) {
		call->credit = 1; /* one for one: recovery never stalls for want of window */
		if (!call->kept_window)
			return;
	}
	/* a window that was not used says nothing about the path */
	if (!call->was_limited && call->flying + packets < call->cwnd)
		return;
	call->was_limited = false;
	if (call->cwnd >= RX_CWND_MAX)
		return;
	if (call->cwnd < call->ssthresh)
		call->cwnd += packets;
	else
		cubic(call, now, packets);
	if (call->cwnd > RX_CWND_MAX)
		call->cwnd = RX_CWND_MAX;
}

/* Slow start ends when a round's least delay stands clearly above the path's. */
void rx_cong_sample(struct rx_call *call, int64_t rtt)
{
	if (call->cwnd >= call->ssthresh)
		return;
	if (call->out_soft >= call->round_end) {
		call->round_end = call->out_next;
		call->round_rtts = 0;
		call->round_min = 0;
	}
	if (!call->round_min || rtt < call->round_min)
		call->round_min = rtt;
	int64_t least = call->conn->peer->min_rtt;
	int64_t slack = MIN(MAX(least / 8, (int64_t)MSEC(4)), (int64_t)MSEC(16));
	if (++call->round_rtts >= HYSTART_SAMPLES && call->round_min > least + slack)
		call->ssthresh = call->cwnd;
}

static void shrink(struct rx_call *call)
{
	double cwnd = call->cwnd;
	/* fast convergence: who loses below its last peak leaves room for newcomers */
	call->w_max = cwnd < call->w_max ? cwnd * (1 + CUBIC_BETA) / 2 : cwnd;
	call->ssthresh = MAX((uint32_t)(cwnd * CUBIC_BETA), (uint32_t)RX_CWND_MIN);
	call->cwnd_part = 0;
	call->epoch_start = 0;
	call->recovery_end = call->out_next;
	call->in_recovery = true;
}

static bool is_congested(const struct rx_call *call)
{
	const struct rx_peer *p = call->conn->peer;
	int64_t queue = p->srtt - p->min_rtt;
	if (queue > MAX(p->min_rtt / 4, QUEUE_NS))
		return true;
	return call->seen_lost >= LOSS_LEAST &&
	       call->seen_lost * LOSS_SHARE > call->seen_lost + call->seen_acked;
}

void rx_cong_loss(struct rx_call *call, mono_ns now)
{
	(void)now;
	call->kept_window = !is_congested(call);
	if (call->kept_window) {
		call->recovery_end = call->out_next;
		call->in_recovery = true;
		call->credit = 1;
		return;
	}
	shrink(call);
	call->cwnd = call->ssthresh;
	call->credit = 1;
}

void rx_cong_timeout(struct rx_call *call, mono_ns now)
{
	(void)now;
	if (call->backoff == 0) {
		call->undo_cwnd = call->cwnd;
		call->undo_ssthresh = call->ssthresh;
		call->undo_order = call->order;
		call->can_undo = true;
		shrink(call);
	}
	call->kept_window = false;
	call->in_recovery = false;
	call->cwnd = RX_CWND_MIN;
}

void rx_cong_spurious(struct rx_call *call)
{
	RX_COUNT(call->conn->ep, timeouts_undone);
	call->can_undo = false;
	call->cwnd = MAX(call->cwnd, call->undo_cwnd);
	call->ssthresh = MAX(call->ssthresh, call->undo_ssthresh);
}

/* --- pacing -------------------------------------------------------------------------------- */

static int64_t spacing(const struct rx_call *call)
{
	int64_t srtt = call->conn->peer->srtt;
	if (srtt < PACE_FROM_NS)
		return 0;
	/* faster than the window, so that pacing does not become the limit */
	return call->cwnd < call->ssthresh ? srtt / (2 * (int64_t)call->cwnd)
					   : srtt * 4 / (5 * (int64_t)call->cwnd);
}

/* Up to a millisecond or eight packets leave together. */
mono_ns rx_cong_pace(const struct rx_call *call, mono_ns now)
{
	int64_t gap = spacing(call);
	if (!gap)
		return 0;
	mono_ns at = call->pace_next - MAX((int64_t)MSEC(1), 8 * gap);
	return at > now ? call->pace_next - MAX((int64_t)MSEC(1), 8 * gap) / 2 : 0;
}

void rx_cong_paced(struct rx_call *call, mono_ns now)
{
	int64_t gap = spacing(call);
	if (gap)
		call->pace_next = MAX(call->pace_next, now) + gap;
}
