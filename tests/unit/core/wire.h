/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One endpoint and a hand that writes packets: what goes in is spelt out field by field, what comes
 * out is looked at the same way.  The application does only what a test tells it to. */
#pragma once
#include "rx/core/inside.h"
#include "tests/lib/test.h"

enum { WIRE_OUT_MAX = 1024, WIRE_CALLS_MAX = 64, WIRE_SERVICE = 77 };

struct wire_out { /* a datagram that the endpoint sent */
	struct rx_header h;
	struct rx_addr to;
	mono_ns at;
	uint32_t len; /* of the body */
	uint8_t body[RX_BIG_DATAGRAM];
};

struct wire {
	struct rx_endpoint *ep;
	struct rx_buf_pool *pool;
	mono_ns now;
	uint64_t rng;
	wall_ns wall;
	bool secured; /* index 2 is offered */
	struct wire_out *out;
	unsigned out_first, out_count;
	/* server calls as they were offered, referenced; client and server calls that ended */
	struct rx_call *offered[WIRE_CALLS_MAX];
	unsigned offered_count;
	unsigned sent, ended, readable, writable;
	afs_err last_err;
	int32_t last_code;
};

struct wire_config {
	uint32_t conns_max, calls_per_peer_max, calls_per_host_max, calls_max, window, abort_threshold, half_open_max;
	size_t peer_bytes_max, host_bytes_max;
	int64_t dead_ns, idle_ns;
	bool loopback_big;
};
struct wire *wire_new(const struct wire_config *c); /* NULL: defaults */
void wire_free(struct wire *w);                     /* checks that no buffer is missing */

extern const struct rx_addr wire_peer; /* who sends unless said otherwise */

/* A packet as a client of ours would send it: fill in what differs. */
struct wire_in {
	struct rx_header h; /* zero epoch, serial, service: sensible ones */
	const void *body;
	size_t len;
	struct rx_addr from; /* zero: wire_peer */
};
void wire_feed(struct wire *w, const struct wire_in *in);
void wire_feed_raw(struct wire *w, struct rx_addr from, const void *p, size_t n);
/* DATA of a call on channel 0, from the client. */
void wire_data(struct wire *w, uint32_t call, rx_seq seq, unsigned flags, size_t len);
struct wire_ack {
	rx_seq first, previous;
	rx_serial serial;
	enum rx_reason reason;
	const char *list; /* "+-+" */
	uint32_t max_mtu, window;
	bool no_trailer;
};
/* An ACK of `call` on channel 0; `from_client` tells which side speaks. */
void wire_ack(struct wire *w, uint32_t epoch, uint32_t cid, uint32_t call, unsigned flags,
	rx_serial serial, const struct wire_ack *a);

/* The next datagram that came out; fails the test when there is none. */
const struct wire_out *wire_take(struct wire *w);
const struct wire_out *wire_take_type(
	struct wire *w, enum rx_type type);   /* and fails when another comes first */
void wire_quiet(struct wire *w);              /* nothing came out */
void wire_flush(struct wire *w);              /* forget what came out */
void wire_pump(struct wire *w);               /* events and output after direct calls of the core */
void wire_wait(struct wire *w, int64_t time); /* lets time pass, timers run */
/* Packets of `len` bytes of 'x' on a call; the last one with LAST. */
void wire_reply(struct wire *w, struct rx_call *call, unsigned packets, uint32_t len, bool last);
struct rx_conn *wire_connect(struct wire *w, bool secured, int64_t idle_ns, int64_t hard_ns);
void wire_parse(const struct wire_out *o, struct rx_ack *a);
