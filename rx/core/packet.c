/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Bytes of the header and of ACK bodies.  Everything is read and written field by field; what a
 * trailer says is clamped here, where it is decoded.  Source: rx.md §1.1, §4.1. */
#include "rx/core/inside.h"

#include <string.h>

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

void rx_header_put(uint8_t *p, const struct rx_header *h)
{
	put32(p, h->epoch);
	put32(p + 4, h->cid);
	put32(p + 8, h->call);
	put32(p + 12, h->seq);
	put32(p + 16, h->serial);
	p[20] = h->type;
	p[21] = h->flags;
	p[22] = h->user_status;
	p[23] = h->index;
	put16(p + 24, h->cksum);
	put16(p + 26, h->service);
}

void rx_header_get(const uint8_t *p, struct rx_header *h)
{
	h->epoch = get32(p);
	h->cid = get32(p + 4);
	h->call = get32(p + 8);
	h->seq = get32(p + 12);
	h->serial = get32(p + 16);
	h->type = p[20];
	h->flags = p[21];
	h->user_status = p[22];
	h->index = p[23];
	h->cksum = get16(p + 24);
	h->service = get16(p + 26);
}

static uint32_t clamp(uint32_t v, uint32_t low, uint32_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* The trailer is known by length: old peers send less of it, probes of the path more. */
bool rx_ack_parse(const uint8_t *body, size_t len, struct rx_ack *out)
{
	*out = (struct rx_ack){0};
	if (len < RX_ACK_FIXED)
		return false;
	out->first = get32(body + 4);
	out->previous = get32(body + 8);
	out->serial = get32(body + 12);
	out->reason = body[16];
	out->count = body[17];
	out->octets = body + RX_ACK_FIXED;
	if (out->count > len - RX_ACK_FIXED)
		out->count = (uint32_t)(len - RX_ACK_FIXED);
	size_t at = RX_ACK_FIXED + (size_t)body[17] + RX_ACK_PAD;
	if (len >= at + 8) {
		out->has_mtu = true;
		out->max_mtu = clamp(get32(body + at), RX_MTU_MIN, RX_DATAGRAM_MAX);
		out->if_mtu = clamp(get32(body + at + 4), RX_MTU_MIN, RX_DATAGRAM_MAX);
	}
	if (len >= at + 12) {
		out->has_window = true;
		out->window = clamp(get32(body + at + 8), 1, RX_WINDOW_MAX);
	}
	if (len >= at + 16) {
		out->has_jumbo = true;
		out->jumbo = clamp(get32(body + at + 12), 1, RX_JUMBO_MAX);
	}
	return true;
}
