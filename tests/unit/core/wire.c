/* SPDX-License-Identifier: BSD-2-Clause
 * See wire.h. */
#include "tests/unit/core/wire.h"

#include "tests/sim/sim.h"

#include <string.h>

enum { EPOCH = 0x9a0b0c0d, CID = 0x12345670 };
const struct rx_addr wire_peer = {.ip = 0x0a000002, .port = 7001};

static uint32_t random_for(void *ctx)
{
	struct wire *w = ctx;
	uint64_t z = w->rng += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(z >> 32);
}
static wall_ns wall_for(void *ctx) { return ((struct wire *)ctx)->wall; }

static struct rx_sec *accept_conn(void *ctx, struct rx_addr peer, uint16_t service, uint8_t index)
{
	struct wire *w = ctx;
	(void)peer;
	if (service != WIRE_SERVICE)
		return NULL;
	if (index == 0)
		return rx_null_new();
	return index == 2 && w->secured ? sim_sec_new(true) : NULL;
}

struct wire *wire_new(const struct wire_config *c)
{
	struct wire_config none = {0};
	c = c ? c : &none;
	struct wire *w = mem_new(struct wire);
	w->out = mem_new_array(WIRE_OUT_MAX, struct wire_out);
	w->pool = rx_buf_pool_new(64 << 20);
	w->now = SEC(100);
	w->wall = SEC(1700000000);
	struct rx_endpoint_config ec = {
		.pool = w->pool,
		.random = random_for,
		.random_ctx = w,
		.wall = wall_for,
		.wall_ctx = w,
		.version = "afscell test",
		.accept = accept_conn,
		.accept_ctx = w,
		.conns_max = c->conns_max,
		.half_open_max = c->half_open_max,
		.peer_bytes_max = c->peer_bytes_max,
		.host_bytes_max = c->host_bytes_max,
		.calls_per_host_max = c->calls_per_host_max,
		.calls_max = c->calls_max,
		.calls_per_peer_max = c->calls_per_peer_max,
		.window = c->window,
		.abort_threshold = c->abort_threshold,
		.dead_ns = c->dead_ns,
		.idle_ns = c->idle_ns,
		.loopback_big = c->loopback_big,
	};
	w->ep = rx_endpoint_new(&ec, w->now);
	return w;
}

void wire_free(struct wire *w)
{
	for (unsigned i = 0; i < w->offered_count; i++)
		rx_call_unref(w->offered[i]);
	rx_endpoint_free(w->ep);
	struct rx_buf_pool_stats st;
	rx_buf_pool_stats(w->pool, &st);
	assert_int_equal(st.used_bytes, 0);
	rx_buf_pool_free(w->pool);
	mem_free(w->out);
	mem_free(w);
}

static void record(struct wire *w, const struct rx_datagram *d)
{
	assert_true(w->out_first + w->out_count < WIRE_OUT_MAX);
	struct wire_out *o = &w->out[w->out_first + w->out_count++];
	const uint8_t *p = d->buf->data + d->off;
	rx_header_get(p, &o->h);
	o->to = d->peer;
	o->at = w->now;
	o->len = d->len - RX_HEADER;
	assert_true(o->len <= sizeof(o->body));
	memcpy(o->body, p + RX_HEADER, o->len);
}

void wire_pump(struct wire *w)
{
	struct rx_event ev;
	while (rx_endpoint_next_event(w->ep, &ev)) {
		switch (ev.kind) {
		case RX_EV_CALL_NEW:
			assert_true(w->offered_count < WIRE_CALLS_MAX);
			w->offered[w->offered_count++] = rx_call_ref(ev.call);
			break;
		case RX_EV_READABLE:
			w->readable++;
			break;
		case RX_EV_WRITABLE:
			w->writable++;
			break;
		case RX_EV_CALL_SENT:
			w->sent++;
			break;
		case RX_EV_CALL_ENDED:
			w->ended++;
			w->last_err = ev.err;
			w->last_code = ev.code;
			break;
		}
	}
	struct rx_datagram d;
	while (rx_endpoint_next_datagram(w->ep, w->now, &d))
		record(w, &d);
}

void wire_feed_raw(struct wire *w, struct rx_addr from, const void *p, size_t n)
{
	struct rx_buf *b = rx_buf_get(w->pool, RX_BUF_MAX);
	memcpy(b->data, p, n);
	struct rx_datagram d = {.peer = from, .local_ip = 0x0a000001, .buf = b, .len = (uint32_t)n};
	rx_endpoint_receive(w->ep, w->now, &d);
	rx_buf_unref(b);
	wire_pump(w);
}

void wire_feed(struct wire *w, const struct wire_in *in)
{
	static rx_serial serial = 1000;
	uint8_t bytes[RX_DATAGRAM_MAX];
	struct rx_header h = in->h;
	if (!h.epoch) {
		h.epoch = EPOCH;
		h.cid |= CID;
		h.flags |= RX_F_CLIENT;
	}
	h.serial = h.serial ? h.serial : ++serial;
	h.service = h.service ? h.service : WIRE_SERVICE;
	rx_header_put(bytes, &h);
	if (in->body)
		memcpy(bytes + RX_HEADER, in->body, in->len);
	else
		memset(bytes + RX_HEADER, 'x', in->len);
	wire_feed_raw(w, in->from.port ? in->from : wire_peer, bytes, RX_HEADER + in->len);
}

void wire_data(struct wire *w, uint32_t call, rx_seq seq, unsigned flags, size_t len)
{
	struct wire_in in = {
		.h = {.type = RX_DATA, .call = call, .seq = seq, .flags = (uint8_t)flags},
		.len = len};
	wire_feed(w, &in);
}

void wire_ack(struct wire *w, uint32_t epoch, uint32_t cid, uint32_t call, unsigned flags,
	rx_serial serial, const struct wire_ack *a)
{
	uint8_t b[RX_ACK_MAX] = {0};
	put32(b + 4, a->first);
	put32(b + 8, a->previous);
	put32(b + 12, a->serial);
	b[16] = (uint8_t)a->reason;
	size_t n = a->list ? strlen(a->list) : 0;
	b[17] = (uint8_t)n;
	for (size_t i = 0; i < n; i++)
		b[18 + i] = a->list[i] == '+';
	size_t len = 18 + n + 3;
	if (!a->no_trailer) {
		uint32_t mtu = a->max_mtu ? a->max_mtu : 1444;
		put32(b + len, mtu);
		put32(b + len + 4, mtu);
		put32(b + len + 8, a->window ? a->window : 32);
		put32(b + len + 12, 1);
		len += 16;
	}
	struct wire_in in = {.h = {.type = RX_ACK,
				     .epoch = epoch,
				     .cid = cid,
				     .call = call,
				     .serial = serial,
				     .flags = (uint8_t)flags},
		.body = b,
		.len = len};
	wire_feed(w, &in);
}

const struct wire_out *wire_take(struct wire *w)
{
	if (!w->out_count)
		fail_msg("nothing came out");
	const struct wire_out *o = &w->out[w->out_first++];
	if (--w->out_count == 0)
		w->out_first = 0;
	return o;
}

const struct wire_out *wire_take_type(struct wire *w, enum rx_type type)
{
	const struct wire_out *o = wire_take(w);
	assert_int_equal(o->h.type, type);
	return o;
}

void wire_quiet(struct wire *w)
{
	if (w->out_count)
		fail_msg("%u datagrams came out, the first of type %u", w->out_count,
			w->out[w->out_first].h.type);
}

void wire_flush(struct wire *w) { w->out_first = w->out_count = 0; }

void wire_wait(struct wire *w, int64_t time)
{
	mono_ns end = w->now + time;
	for (;;) {
		mono_ns at = rx_endpoint_next_tick(w->ep);
		if (at > end)
			break;
		w->now = MAX(at, w->now);
		rx_endpoint_tick(w->ep, w->now);
		wire_pump(w);
	}
	w->now = end;
}

void wire_reply(struct wire *w, struct rx_call *call, unsigned packets, uint32_t len, bool last)
{
	struct rx_packet *list = NULL, **tail = &list;
	for (unsigned i = 0; i < packets; i++) {
		struct rx_buf *b = rx_buf_get(w->pool, RX_HEADER + len);
		struct rx_packet *p = rx_packet_new(b);
		p->off = RX_HEADER;
		p->len = len;
		p->last = last && i + 1 == packets;
		memset(b->data + RX_HEADER, 'x', len);
		*tail = p;
		tail = &p->next;
	}
	rx_call_send(call, w->now, list);
	wire_pump(w);
}

struct rx_conn *wire_connect(struct wire *w, bool secured, int64_t idle_ns, int64_t hard_ns)
{
	struct rx_conn_config c = {.peer = wire_peer,
		.service = WIRE_SERVICE,
		.sec = secured ? sim_sec_new(false) : rx_null_new(),
		.idle_ns = idle_ns,
		.hard_ns = hard_ns};
	return rx_conn_new(w->ep, w->now, &c);
}

void wire_parse(const struct wire_out *o, struct rx_ack *a)
{
	assert_true(rx_ack_parse(o->body, o->len, a));
}
