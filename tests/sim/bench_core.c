/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How many packets a second the core alone handles: two endpoints joined by a memcpy, no network.
 *   make tests/sim/bench_core && tests/sim/bench_core
 * Prints CPU time per packet (both ends together) for bulk data of two sizes, and per small call. */
#include "cell/base/rand.h"
#include "rx/core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 32, SERVICE = 77 };

static uint32_t random_for(void *ctx) { return (void)ctx, rand_u32(); }
static wall_ns wall_for(void *ctx) { return (void)ctx, 0; }
static struct rx_sec *accept_conn(void *ctx, struct rx_addr peer, uint16_t service, uint8_t index)
{
	(void)ctx, (void)peer, (void)service, (void)index;
	return rx_null_new();
}

struct end {
	struct rx_endpoint *ep;
	struct rx_addr addr;
	struct rx_buf *in[BATCH];
	uint32_t lens[BATCH];
};

static struct rx_buf_pool *pool;
static mono_ns now = SEC(1);
static uint64_t received, calls_done, calls_wanted;
static bool echo;

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void end_init(struct end *e, uint32_t ip)
{
	struct rx_endpoint_config c = {.pool = pool,
		.random = random_for,
		.wall = wall_for,
		.accept = accept_conn,
		.loopback_big = true};
	e->ep = rx_endpoint_new(&c, now);
	e->addr = (struct rx_addr){.ip = ip, .port = 7000};
}

/* Up to BATCH datagrams from one to the other. */
static bool move(struct end *from, struct end *to)
{
	struct rx_datagram d;
	int n = 0;
	while (n < BATCH && rx_endpoint_next_datagram(from->ep, now, &d)) {
		to->in[n] = rx_buf_get(pool, d.len);
		memcpy(to->in[n]->data, d.buf->data + d.off, d.len);
		to->lens[n++] = d.len;
	}
	for (int i = 0; i < n; i++) {
		struct rx_datagram in = {.peer = from->addr, .buf = to->in[i], .len = to->lens[i]};
		rx_endpoint_receive(to->ep, now, &in);
		rx_buf_unref(to->in[i]);
	}
	return n > 0;
}

static void send_packets(struct rx_call *call, uint32_t n, uint32_t len, bool last)
{
	struct rx_packet *list = NULL, **tail = &list;
	for (uint32_t i = 0; i < n; i++) {
		struct rx_buf *b = rx_buf_get(pool, RX_HEADER + len);
		struct rx_packet *p = rx_packet_new(b);
		p->off = RX_HEADER;
		p->len = len;
		p->last = last && i + 1 == n;
		*tail = p;
		tail = &p->next;
	}
	rx_call_send(call, now, list);
}

static void events(struct end *e)
{
	struct rx_event ev;
	while (rx_endpoint_next_event(e->ep, &ev)) {
		if (ev.kind != RX_EV_CALL_NEW && ev.kind != RX_EV_READABLE)
			continue;
		if (ev.kind == RX_EV_CALL_NEW)
			rx_call_ref(ev.call);
		uint32_t n = 0;
		struct rx_packet *list = rx_call_receive(ev.call, now);
		for (struct rx_packet *p = list; p; p = p->next)
			n++;
		rx_packet_free_list(list);
		rx_call_consumed(ev.call, now, n);
		received += n;
		if (!rx_call_received_all(ev.call))
			continue;
		if (rx_call_is_server(ev.call)) {
			send_packets(ev.call, 1, 16, true);
			rx_call_unref(ev.call);
		} else {
			struct rx_conn *conn = rx_call_conn(ev.call);
			rx_call_done(ev.call, now);
			rx_call_unref(ev.call);
			calls_done++;
			if (echo && calls_done < calls_wanted)
				send_packets(rx_call_new(conn, now), 1, 16, true);
		}
	}
}

static void turn(struct end *a, struct end *b)
{
	now += USEC(20);
	move(a, b);
	events(b);
	move(b, a);
	events(a);
	if (rx_endpoint_next_tick(a->ep) <= now)
		rx_endpoint_tick(a->ep, now);
	if (rx_endpoint_next_tick(b->ep) <= now)
		rx_endpoint_tick(b->ep, now);
}

static void bulk(uint32_t ip, uint64_t packets)
{
	struct end a, b;
	end_init(&a, ip + 1);
	end_init(&b, ip + 2);
	struct rx_conn_config cc = {.peer = b.addr, .service = SERVICE, .sec = rx_null_new()};
	struct rx_conn *conn = rx_conn_new(a.ep, now, &cc);
	calls_done = received = 0;
	echo = false;
	send_packets(rx_call_new(conn, now), 1, 16, true);
	while (!calls_done)
		turn(&a, &b);
	struct rx_call *call = rx_call_new(conn, now);
	uint32_t len = rx_call_body_max(call);
	received = 0;
	double start = cpu();
	for (uint64_t sent = 0; calls_done < 2;) {
		uint32_t room = rx_call_room(call);
		if (sent < packets && room >= 16) {
			uint32_t n = (uint32_t)MIN(packets - sent, (uint64_t)MIN(room, 64u));
			sent += n;
			send_packets(call, n, len, sent == packets);
		}
		turn(&a, &b);
	}
	double took = cpu() - start;
	struct rx_stats st;
	rx_endpoint_stats(b.ep, &st);
	printf("bulk %5u bytes: %.0f ns a packet, %.2f M/s sent and received, %.1f packets per "
	       "ACK\n",
		len, took / (double)packets * 1e9, (double)packets / took / 1e6,
		(double)packets / (double)st.acks_out);
	rx_conn_unref(conn);
	rx_endpoint_free(a.ep);
	rx_endpoint_free(b.ep);
}

static void small_calls(unsigned conns, uint64_t calls)
{
	struct end a, b;
	end_init(&a, 0x0a000001);
	end_init(&b, 0x0a000002);
	struct rx_conn **c = calloc(conns, sizeof(*c));
	calls_done = 0;
	calls_wanted = calls;
	echo = true;
	for (unsigned i = 0; i < conns; i++) {
		struct rx_conn_config cc = {
			.peer = b.addr, .service = SERVICE, .sec = rx_null_new()};
		c[i] = rx_conn_new(a.ep, now, &cc);
	}
	double start = cpu();
	for (unsigned i = 0; i < MIN(conns * 4, 64u); i++)
		send_packets(rx_call_new(c[i % conns], now), 1, 16, true);
	while (calls_done < calls)
		turn(&a, &b);
	double took = cpu() - start;
	printf("small calls on %u connections: %.0f ns each, %.2f M/s\n", conns,
		took / (double)calls * 1e9, (double)calls / took / 1e6);
	for (unsigned i = 0; i < conns; i++)
		rx_conn_unref(c[i]);
	rx_endpoint_free(a.ep);
	rx_endpoint_free(b.ep);
	free(c);
}

int main(void)
{
	pool = rx_buf_pool_new(512 << 20);
	bulk(0x0a000000, 3000000);
	bulk(0x7f000000, 500000);
	small_calls(16, 1000000);
	small_calls(5000, 1000000);
	rx_buf_pool_free(pool);
	return 0;
}
