/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rx as a pure machine: datagrams and the time go in; datagrams, events and the next wanted time
 * come out.  No sockets, threads, clocks, files or randomness of its own.
 *
 * Everything here is called by one thread at a time per endpoint (in production its port's I/O
 * thread), and nothing waits.  The exceptions are the buffer functions, which any thread may use.
 *
 *   rx_endpoint   one UDP port; both client and server of any number of connections
 *   rx_peer       an address: RTT, datagram size, what it proved
 *   rx_conn       (epoch, cid, side); owns its struct rx_sec; counted (REF by name of holder)
 *   rx_call       one call on one channel; counted
 *   rx_packet     one DATA packet of a call: a slice of a counted rx_buf
 *
 * Bodies pass through unopened: sealing and opening is done by whoever reads and writes streams,
 * with rx_conn_sec(), so cryptography runs on workers.
 *
 * Source: protocol rx.md; D2 of doc/design.md. */
#pragma once
#include "cell/base/clk.h"
#include "cell/base/err.h"
#include "cell/base/list.h"
#include "rx/sec/security.h"

#include <stdatomic.h>

typedef uint32_t rx_seq;
typedef uint32_t rx_serial;

enum {
	RX_HEADER = 28,
	RX_DATAGRAM_MAX = 65507,
	RX_SAFE_BODY = 1416, /* body bytes that every path carries (1444 with the header) */
	RX_WINDOW_MAX = 255,
};

struct rx_addr {
	uint32_t ip; /* host order */
	uint16_t port;
};

/* A counted buffer.  Any thread may ref and unref; the last unref gives it back to its pool. */
struct rx_buf_pool;
struct rx_buf {
	atomic_uint refs;
	uint32_t cap;
	struct rx_buf_pool *pool;
	struct rx_buf *next_free;
	uint8_t data[];
};
/* A bounded pool with a few size classes; thread safe.  get gives NULL when the bound is reached. */
struct rx_buf_pool *rx_buf_pool_new(size_t max_bytes);
void rx_buf_pool_free(struct rx_buf_pool *pool); /* all buffers must be back */
struct rx_buf *rx_buf_get(struct rx_buf_pool *pool, uint32_t cap);
struct rx_buf *rx_buf_ref(struct rx_buf *b);
void rx_buf_unref(struct rx_buf *b);

/* A DATA packet.  Received: buf->data[off, off + len) is the body as it came (still sealed).
 * To send: the body is built at off >= RX_HEADER, sealed, and the core writes the header into the
 * RX_HEADER bytes before it. */
struct rx_packet {
	struct rx_packet *next; /* of the list it is in */
	struct rx_buf *buf;
	uint32_t off, len;
	rx_seq seq;
	uint16_t cksum;
	bool last;
};
struct rx_packet *rx_packet_new(struct rx_buf *buf /* takes the reference */);
void rx_packet_free(struct rx_packet *p); /* unrefs the buffer */

struct rx_datagram {
	struct rx_addr peer;
	uint32_t local_ip;  /* address it came to, or is to leave from; 0: any */
	struct rx_buf *buf; /* in: the core refs it when it keeps a part.  out: see next_datagram */
	uint32_t off, len;
	bool probe; /* out: must not be fragmented (path-MTU probe) */
};

struct rx_endpoint_config {
	struct rx_buf_pool *pool;
	uint32_t (*random)(void *ctx); /* epochs, cids, nonces */
	void *random_ctx;
	wall_ns (*wall)(void *ctx); /* ticket expiry; tests give a fixed time */
	void *wall_ctx;
	bool loopback_big; /* both ends on this machine: large datagrams at once */
	uint32_t max_datagram;      /* largest sent and announced, header included; 0: default */
	uint32_t window;            /* receive window in packets; 0: default */
	uint32_t conns_max, calls_per_peer_max; /* 0: defaults */
	const char *version;        /* answer to VERSION requests */
	void (*trace)(void *ctx, mono_ns now, bool out, struct rx_addr peer, const uint8_t *dgram, size_t len);
	void *trace_ctx;
	/* Is `service` offered, and which security object serves index `index` on it?  NULL: raw abort -2. */
	struct rx_sec *(*accept)(void *ctx, struct rx_addr peer, uint16_t service, uint8_t index);
	void *accept_ctx;
};

struct rx_endpoint;
struct rx_conn;
struct rx_call;

struct rx_endpoint *rx_endpoint_new(const struct rx_endpoint_config *config, mono_ns now);
void rx_endpoint_free(struct rx_endpoint *ep);

void rx_endpoint_receive(struct rx_endpoint *ep, mono_ns now, const struct rx_datagram *in);
/* A local ICMP error about `peer` (unreachable), or a refused send; `too_big` lowers its size. */
void rx_endpoint_unreachable(struct rx_endpoint *ep, mono_ns now, struct rx_addr peer, bool too_big);
void rx_endpoint_tick(struct rx_endpoint *ep, mono_ns now);
mono_ns rx_endpoint_next_tick(const struct rx_endpoint *ep); /* MONO_NEVER: nothing is due */
/* What to send next; false: nothing now.  `out->buf` holds no reference for the caller and stays
 * valid until the next call of a function other than this one, so a driver collects a batch, sends
 * it, and goes on. */
bool rx_endpoint_next_datagram(struct rx_endpoint *ep, mono_ns now, struct rx_datagram *out);

enum rx_event_kind {
	RX_EV_CALL_NEW,   /* server: a call with in-order data, its connection's caller known */
	RX_EV_READABLE,   /* in-order packets wait in rx_call_receive() */
	RX_EV_WRITABLE,   /* rx_call_room() became positive */
	RX_EV_CALL_SENT,  /* server: the whole reply is acknowledged */
	RX_EV_CALL_ENDED, /* the call is over before its time: err and, for AFS_EABORTED, code */
};
struct rx_event {
	enum rx_event_kind kind;
	struct rx_call *call; /* borrowed; ref it to keep it */
	afs_err err;
	int32_t code; /* the peer's abort code, when err says that there was one */
};
bool rx_endpoint_next_event(struct rx_endpoint *ep, struct rx_event *out);

/* Connections.  A client connection belongs to its maker (unref when done: its calls end). */
struct rx_conn_config {
	struct rx_addr peer;
	uint16_t service;
	struct rx_sec *sec; /* taken, also on failure */
	int64_t dead_ns, idle_ns, hard_ns; /* 0: defaults of rx.md §5 (idle and hard: off) */
};
struct rx_conn *rx_conn_new(struct rx_endpoint *ep, mono_ns now, const struct rx_conn_config *config);
struct rx_conn *rx_conn_ref(struct rx_conn *c);
void rx_conn_unref(struct rx_conn *c);
afs_err rx_conn_error(const struct rx_conn *c, int32_t *code); /* AFS_OK while usable */
struct rx_addr rx_conn_peer(const struct rx_conn *c);
const struct rx_sec *rx_conn_sec(const struct rx_conn *c);
const struct rx_caller *rx_conn_caller(const struct rx_conn *c);
struct rx_conn_id rx_conn_id(const struct rx_conn *c);
/* A word for the layer above (a file server's client record); `gone` runs when the conn is freed. */
void rx_conn_set_user(struct rx_conn *c, void *user, void (*gone)(void *user));
void *rx_conn_user(const struct rx_conn *c);

/* Calls. */
struct rx_call *rx_call_new(struct rx_conn *c, mono_ns now); /* client; NULL: no channel is free */
struct rx_call *rx_call_ref(struct rx_call *call);
void rx_call_unref(struct rx_call *call);
struct rx_conn *rx_call_conn(const struct rx_call *call);
bool rx_call_is_server(const struct rx_call *call);
struct rx_addr rx_call_peer(const struct rx_call *call);
struct rx_sec_packet rx_call_packet_id(const struct rx_call *call, rx_seq seq, bool incoming);
uint32_t rx_call_body_max(const struct rx_call *call); /* body bytes per packet at this moment */
void rx_call_set_user(struct rx_call *call, void *user);
void *rx_call_user(const struct rx_call *call);

/* In-order packets that came, as a list that the caller owns; NULL: none. */
struct rx_packet *rx_call_receive(struct rx_call *call, mono_ns now);
/* The application has consumed `packets` of those: the window opens (hard acknowledgement). */
void rx_call_consumed(struct rx_call *call, mono_ns now, uint32_t packets);
bool rx_call_received_all(const struct rx_call *call); /* LAST was given out by rx_call_receive */
/* Packets that the send queue still takes.  Sequence numbers are the writer's: 1, 2, ... */
uint32_t rx_call_room(const struct rx_call *call);
void rx_call_send(struct rx_call *call, mono_ns now, struct rx_packet *list /* taken */);
/* End with a code (server: the reply is an ABORT; client: tell the server to stop). */
void rx_call_abort(struct rx_call *call, mono_ns now, int32_t code);
/* The application is done with a call that ended well: a client acknowledges what it read. */
void rx_call_done(struct rx_call *call, mono_ns now);

/* Counters of rx_statistics and what DEBUG answers show; a snapshot. */
struct rx_stats {
#define RX_STAT(name, text) uint64_t name;
#include "rx/core/stats.def"
#undef RX_STAT
};
void rx_endpoint_stats(const struct rx_endpoint *ep, struct rx_stats *out);
