/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An endpoint with calls of every kind under way, and the input as what befalls it: datagrams (as
 * they are, or addressed to one of the live connections), time, and an application that replies,
 * aborts, lets go and calls.
 *
 * Input: operations.  A byte whose low three bits choose, then what that one needs; see step(). */
#include "rx/core/inside.h"
#include "tests/sim/sim.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 16, SERVICE = 77, EPOCH = 0x9a0b0c0d };
static const struct rx_addr peer = {.ip = 0x7f000002, .port = 7001};

struct world {
	struct rx_endpoint *ep;
	struct rx_buf_pool *pool;
	mono_ns now;
	uint64_t rng;
	struct rx_conn *conns[2]; /* ours: open, secured */
	struct rx_call *calls[CALLS];
	const uint8_t *p, *end;
};

static uint32_t random_for(void *ctx)
{
	struct world *w = ctx;
	return (uint32_t)((w->rng = w->rng * UINT64_C(6364136223846793005) + 1442695040888963407) >>
			  33);
}
static wall_ns wall_for(void *ctx) { return SEC(1700000000) + ((struct world *)ctx)->now; }
static struct rx_sec *accept_conn(void *ctx, struct rx_addr from, uint16_t service, uint8_t index)
{
	(void)ctx, (void)from;
	if (service != SERVICE)
		return NULL;
	return index == 0 ? rx_null_new() : index == 2 ? sim_sec_new(true) : NULL;
}

static uint8_t byte(struct world *w) { return w->p < w->end ? *w->p++ : 0; }

static void hold(struct world *w, struct rx_call *call)
{
	for (int i = 0; i < CALLS; i++) {
		if (!w->calls[i]) {
			w->calls[i] = rx_call_ref(call);
			return;
		}
	}
}

static void pump(struct world *w)
{
	struct rx_event ev;
	while (rx_endpoint_next_event(w->ep, &ev))
		if (ev.kind == RX_EV_CALL_NEW)
			hold(w, ev.call);
	struct rx_datagram d;
	unsigned n = 0;
	while (n++ < 100000 && rx_endpoint_next_datagram(w->ep, w->now, &d))
		if (d.len < RX_HEADER || d.off + d.len > d.buf->cap)
			__builtin_trap();
	if (n >= 100000)
		__builtin_trap(); /* it talks without end */
}

static void send_some(struct world *w, struct rx_call *call, unsigned packets, bool last)
{
	struct rx_packet *list = NULL, **tail = &list;
	for (unsigned i = 0; i < packets; i++) {
		struct rx_buf *b = rx_buf_get(w->pool, 1444);
		if (!b)
			break;
		struct rx_packet *p = rx_packet_new(b);
		p->off = RX_HEADER;
		p->len = 8 + i;
		p->last = last && i + 1 == packets;
		*tail = p;
		tail = &p->next;
	}
	rx_call_send(call, w->now, list);
}

static void receive(struct world *w, uint8_t op)
{
	uint8_t bytes[512] = {0};
	size_t n = byte(w) * 2u;
	n = MIN(n, (size_t)(w->end - w->p));
	memcpy(bytes, w->p, n);
	w->p += n;
	if (op & 8 && n >= RX_HEADER) { /* to a live connection; to a channel as it says */
		unsigned which = op >> 4 & 3;
		bool ours = which < 2;
		uint32_t epoch = ours ? rx_conn_id(w->conns[which]).epoch : EPOCH;
		uint32_t cid = ours ? rx_conn_id(w->conns[which]).cid : which << 2;
		put32(bytes, epoch);
		put32(bytes + 4, cid | (bytes[7] & 3));
		bytes[21] = (uint8_t)((bytes[21] & ~RX_F_CLIENT) | (ours ? 0 : RX_F_CLIENT));
		bytes[23] = which & 1 ? 2 : 0;
		bytes[26] = 0;
		bytes[27] = SERVICE;
	}
	struct rx_buf *b = rx_buf_get(w->pool, op & 64 ? RX_BUF_MAX : (uint32_t)MAX(n, (size_t)1));
	if (!b)
		return;
	memcpy(b->data, bytes, n);
	struct rx_datagram d = {.peer = peer, .buf = b, .len = (uint32_t)n};
	if (op & 128)
		d.peer.port = 9;
	rx_endpoint_receive(w->ep, w->now, &d);
	rx_buf_unref(b);
}

static void wait(struct world *w, uint8_t scale)
{
	mono_ns end = w->now + (INT64_C(1) << scale % 38);
	for (int i = 0; i < 1000; i++) {
		mono_ns at = rx_endpoint_next_tick(w->ep);
		if (at > end)
			break;
		w->now = MAX(at, w->now);
		rx_endpoint_tick(w->ep, w->now);
		pump(w);
	}
	w->now = end;
}

static void application(struct world *w, uint8_t op)
{
	unsigned i = op >> 4;
	struct rx_call *call = w->calls[i];
	uint8_t what = byte(w);
	if (!call) {
		w->calls[i] = rx_call_new(w->conns[what & 1], w->now);
		return;
	}
	switch (what & 7) {
	case 0: {
		struct rx_packet *list = rx_call_receive(call, w->now);
		uint32_t n = 0;
		for (struct rx_packet *p = list; p; p = p->next)
			n++;
		rx_packet_free_list(list);
		rx_call_consumed(call, w->now, n);
		break;
	}
	case 1:
	case 2:
		send_some(w, call, MIN((uint32_t)what >> 3, rx_call_room(call)), (what & 7) == 2);
		break;
	case 3:
		rx_call_abort(call, w->now, what);
		break;
	case 4:
		rx_call_done(call, w->now);
		break;
	case 5:
		rx_conn_abort(rx_call_conn(call), w->now, AFS_ESEALED, 19270410);
		break;
	case 6:
		rx_endpoint_unreachable(w->ep, w->now, peer, what & 8);
		break;
	default:
		rx_call_unref(call);
		w->calls[i] = NULL;
	}
}

static void step(struct world *w)
{
	uint8_t op = byte(w);
	switch (op & 7) {
	case 5:
		wait(w, byte(w));
		break;
	case 6:
	case 7:
		application(w, op);
		break;
	default:
		receive(w, op);
	}
	pump(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.now = SEC(10), .rng = 7, .p = data, .end = data + size};
	w.pool = rx_buf_pool_new(4 << 20);
	struct rx_endpoint_config c = {
		.pool = w.pool,
		.random = random_for,
		.random_ctx = &w,
		.wall = wall_for,
		.wall_ctx = &w,
		.loopback_big = true,
		.accept = accept_conn,
		.conns_max = 12,
		.calls_per_peer_max = 6,
	};
	w.ep = rx_endpoint_new(&c, w.now);
	for (int i = 0; i < 2; i++) {
		struct rx_conn_config cc = {.peer = peer,
			.service = SERVICE,
			.sec = i ? sim_sec_new(false) : rx_null_new()};
		w.conns[i] = rx_conn_new(w.ep, w.now, &cc);
		w.calls[i] = rx_call_new(w.conns[i], w.now);
		send_some(&w, w.calls[i], 3, true);
	}
	pump(&w);
	while (w.p < w.end)
		step(&w);
	for (int i = 0; i < CALLS; i++)
		rx_call_unref(w.calls[i]);
	rx_conn_unref(w.conns[0]);
	rx_conn_unref(w.conns[1]);
	pump(&w);
	rx_endpoint_free(w.ep);
	struct rx_buf_pool_stats st;
	rx_buf_pool_stats(w.pool, &st);
	if (st.used_bytes)
		__builtin_trap();
	rx_buf_pool_free(w.pool);
	return 0;
}
