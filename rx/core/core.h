/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rx as a pure machine: datagrams and the time go in; datagrams, events and the next wanted time
 * come out.  No sockets, threads, clocks, files or randomness of its own.
 *
 * Everything here is called by one thread at a time per endpoint (in production its port's I/O
 * thread), and nothing waits.  The exceptions are buffers, packets and rx_endpoint_stats, which any
 * thread may use.
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

/* Abort codes of the transport itself (rx.md §13). */
enum rx_code {
	RX_CALL_DEAD = -1,
	RX_INVALID_OPERATION = -2,
	RX_CALL_TIMEOUT = -3,
	RX_PROTOCOL_ERROR = -5,
	RX_USER_ABORT = -6,
	RX_RESTARTING = -100,
};

/* A DATA packet, kept inside the one buffer that it is a slice of.  Received: buf->data[off, off +
 * len) is the body as it came (still sealed).  To send: the body is built at off >= RX_HEADER,
 * sealed, and the core writes the header into the RX_HEADER bytes before it. */
struct rx_packet {
	struct rx_packet *next; /* of the list it is in */
	struct rx_buf *buf;
	uint32_t off, len;
	rx_seq seq;
	uint16_t cksum;
	bool last;
	/* the core's own, while it waits in a send queue */
	uint8_t state;
	uint8_t sends;
	uint32_t order; /* of its latest transmission within the call */
	rx_serial serial;
	struct list xmit; /* in order of transmission */
	mono_ns sent_at;
};

/* A counted buffer.  Any thread may ref and unref; the last unref gives it back to its pool. */
struct rx_buf_pool;
struct rx_buf {
	atomic_uint refs;
	uint32_t cap;
	struct rx_buf_pool *pool;
	struct rx_buf *next_free;
	struct rx_packet packet;
	uint8_t data[];
};
/* A pool of three classes of buffers, bounded in bytes; thread safe.  get gives NULL when the
 * bound is reached or `cap` is above RX_BUF_MAX; the buffer's cap is that of its class.  Buffers
 * once allocated are kept and reused. */
enum { RX_BUF_SMALL = 2048 - 160, RX_BUF_MID = 18 * 1024, RX_BUF_MAX = 68 * 1024 };
struct rx_buf_pool *rx_buf_pool_new(size_t max_bytes);
void rx_buf_pool_free(struct rx_buf_pool *pool); /* all buffers must be back */
struct rx_buf *rx_buf_get(struct rx_buf_pool *pool, uint32_t cap);
/* As rx_buf_get(), for threads that may wait: until others give back so much that an eighth of the pool
 * stays free for what comes.  NULL: memory is short, `until` has passed (0: it does not wait), or stop(ctx) says so, which
 * is asked at first and after rx_buf_pool_wake(), with the pool's lock held (it takes none). */
struct rx_buf *rx_buf_await(struct rx_buf_pool *pool, uint32_t cap, mono_ns until, bool (*stop)(void *), void *ctx);
void rx_buf_pool_wake(struct rx_buf_pool *pool); /* costs a look when nobody waits */
struct rx_buf *rx_buf_ref(struct rx_buf *b);
void rx_buf_unref(struct rx_buf *b);
struct rx_buf_pool_stats {
	size_t max_bytes, allocated_bytes, used_bytes; /* used: handed out at this moment */
	uint64_t gets, refused, waits; /* waits: of rx_buf_await() */
};
void rx_buf_pool_stats(struct rx_buf_pool *pool, struct rx_buf_pool_stats *out);

/* The packet of `buf`, cleared; takes the reference.  A buffer carries one packet.  Never NULL. */
struct rx_packet *rx_packet_new(struct rx_buf *buf);
void rx_packet_free(struct rx_packet *p); /* unrefs the buffer; any thread */
void rx_packet_free_list(struct rx_packet *list);

struct rx_datagram {
	struct rx_addr peer;
	uint32_t local_ip;  /* address it came to, or is to leave from; 0: any */
	struct rx_buf *buf; /* in: the core refs it when it keeps it.  out: see next_datagram */
	uint32_t off, len;
	bool probe;    /* out: must not be fragmented (path-MTU probe) */
	bool fragment; /* out: larger than the path carries whole: let the network cut it */
};

/* What DEBUG answers tell of the threads around an endpoint; all may be 0. */
struct rx_load {
	uint32_t calls_waiting, threads_idle, calls_waited; /* now, now, and so far */
	uint32_t descriptors;
	uint64_t waits, send_waits, send_failures; /* of the driver for its socket, so far */
};

struct rx_endpoint_config {
	struct rx_buf_pool *pool;
	uint32_t (*random)(void *ctx); /* epochs, cids, nonces */
	void *random_ctx;
	wall_ns (*wall)(void *ctx); /* ticket expiry; tests give a fixed time */
	void *wall_ctx;
	bool loopback_big; /* peers at 127/8 get large datagrams as soon as they announce them */
	/* Largest sent and announced, header included; 0: the default, 16376.  Peers at 127/8 get it
	 * when they announce it too; others get 1444, which every path carries, and more only after
	 * a probe of that size has come through. */
	uint32_t max_datagram;
	uint32_t window;       /* receive window in packets, at most RX_WINDOW_MAX; 0: default */
	uint32_t window_bytes; /* and in bytes, per call; 0: default */
	uint32_t conns_max, calls_per_peer_max; /* 0: defaults; a peer is an address and port */
	/* Server calls alive of one IP address, and of all; 0: four times calls_per_peer_max, and eight
	 * times that.  A call beyond is answered with BUSY. */
	uint32_t calls_per_host_max, calls_max;
	/* Server connections whose address has not proven itself; beyond it the oldest of them that no
	 * application holds goes.  0: a quarter of conns_max. */
	uint32_t half_open_max;
	/* Bytes of requests and replies from one address that wait here to be read; 0: an eighth of the
	 * pool.  Beyond it nothing is kept ahead of its turn, beyond twice of it nothing at all. */
	size_t peer_bytes_max;
	/* The same of one IP address; 0: twice peer_bytes_max.  Of all together: three quarters of the pool. */
	size_t host_bytes_max;
	/* Of server connections; 0: 12 s, 60 s.  A peer that is waited for loses its call when it moves
	 * less than 16 KiB in idle_ns: each byte puts the end off by its share of that. */
	int64_t dead_ns, idle_ns;
	/* More calls in a row on one channel than this that end with the same code are answered
	 * only 3 s later: a client that spins on a failure.  0: never.  Unknown opcodes never are. */
	uint32_t abort_threshold;
	const char *version; /* answer to VERSION requests */
	void (*load)(void *ctx,
		struct rx_load *out); /* asked when a DEBUG answer is made; may be NULL */
	void *load_ctx;
	void (*trace)(void *ctx, mono_ns now, bool out, struct rx_addr peer, const uint8_t *dgram,
		size_t len);
	void *trace_ctx;
	/* Is `service` offered, and which security object serves index `index` on it?  NULL: raw abort -2. */
	struct rx_sec *(*accept)(void *ctx, struct rx_addr peer, uint16_t service, uint8_t index);
	void *accept_ctx;
};

struct rx_endpoint;
struct rx_conn;
struct rx_call;

struct rx_endpoint *rx_endpoint_new(const struct rx_endpoint_config *config, mono_ns now);
/* Connections and calls die with it; references to calls must have been given back. */
void rx_endpoint_free(struct rx_endpoint *ep);
/* Going down: every call ends with RX_RESTARTING (RX_EV_CALL_ENDED, AFS_ERESTARTING), new ones are
 * refused with it.  Keep sending datagrams for a moment. */
void rx_endpoint_close(struct rx_endpoint *ep, mono_ns now);

void rx_endpoint_receive(struct rx_endpoint *ep, mono_ns now, const struct rx_datagram *in);
/* A local ICMP error about `peer` (unreachable), or a refused send; `too_big` is the answer to a
 * probe when one is under way, else it lowers the peer's size. */
void rx_endpoint_unreachable(
	struct rx_endpoint *ep, mono_ns now, struct rx_addr peer, bool too_big);
void rx_endpoint_tick(struct rx_endpoint *ep, mono_ns now);
mono_ns rx_endpoint_next_tick(const struct rx_endpoint *ep); /* MONO_NEVER: nothing is due */
/* What to send next; false: nothing now.  `out->buf` holds no reference for the caller and stays
 * valid until the next call of a function other than this one, so a driver collects a batch, sends
 * it, and goes on. */
bool rx_endpoint_next_datagram(struct rx_endpoint *ep, mono_ns now, struct rx_datagram *out);

enum rx_event_kind {
	RX_EV_CALL_NEW, /* server: a call with in-order data, its connection's caller known */
	RX_EV_READABLE, /* in-order packets wait in rx_call_receive() (edge: came since it was called) */
	RX_EV_WRITABLE,  /* a send queue that was full has room for a good batch again */
	RX_EV_CALL_SENT, /* server: the whole reply is acknowledged; the core has let the call go */
	RX_EV_CALL_ENDED, /* the call is over before its time: AFS_EABORTED and the peer's code;
	                     AFS_EDEAD, AFS_ETIMEDOUT, AFS_EPROTOCOL, AFS_ERESTARTING or an error of the
	                     security class with the code that was sent.  Nothing more will come. */
};
struct rx_event {
	enum rx_event_kind kind;
	struct rx_call *call; /* borrowed until the next event is asked for; ref it to keep it */
	afs_err err;
	int32_t code; /* the peer's abort code, when err says that there was one */
};
bool rx_endpoint_next_event(struct rx_endpoint *ep, struct rx_event *out);

/* Connections.  A client connection belongs to its maker (unref when done: its calls end). */
struct rx_conn_config {
	struct rx_addr peer;
	uint16_t service;
	struct rx_sec *sec;                /* taken, also on failure */
	int64_t dead_ns, idle_ns, hard_ns; /* 0: defaults of rx.md §5 (idle and hard: off) */
};
/* NULL: out of memory or of connections (conns_max). */
struct rx_conn *rx_conn_new(
	struct rx_endpoint *ep, mono_ns now, const struct rx_conn_config *config);
struct rx_conn *rx_conn_ref(struct rx_conn *c);
void rx_conn_unref(struct rx_conn *c);
afs_err rx_conn_error(
	const struct rx_conn *c, int32_t *code); /* AFS_OK while usable; code may be NULL */
/* A packet did not verify, or another reason to distrust the whole connection: ends its calls with
 * `err`, sends a connection ABORT with `code`, and answers everything later with it. */
void rx_conn_abort(struct rx_conn *c, mono_ns now, afs_err err, int32_t code);
int64_t rx_conn_rtt_ns(const struct rx_conn *c); /* smoothed; 0: not measured yet */
/* The peer has answered something that only it could have seen. */
bool rx_conn_proven(const struct rx_conn *c);
struct rx_addr rx_conn_peer(const struct rx_conn *c);
const struct rx_sec *rx_conn_sec(const struct rx_conn *c);
const struct rx_caller *rx_conn_caller(const struct rx_conn *c);
struct rx_conn_id rx_conn_id(const struct rx_conn *c);
/* A word for the layer above (a file server's client record); `gone` runs when the conn is freed. */
void rx_conn_set_user(struct rx_conn *c, void *user, void (*gone)(void *user));
void *rx_conn_user(const struct rx_conn *c);

/* Calls.  A client owns one reference to what rx_call_new gives.  A server call is the core's until
 * the layer above takes a reference at RX_EV_CALL_NEW; when the last one goes before LAST was queued
 * or the call aborted, the core aborts it with RX_USER_ABORT.  While a server call is ended but still
 * referenced, a newer call on its channel is not offered yet: calls of a channel run one by one. */
struct rx_call *rx_call_new(struct rx_conn *c, mono_ns now); /* client; NULL: no channel is free, or
                                                                 the connection has failed */
struct rx_call *rx_call_ref(struct rx_call *call);
void rx_call_unref(struct rx_call *call);
struct rx_conn *rx_call_conn(const struct rx_call *call);
bool rx_call_is_server(const struct rx_call *call);
struct rx_addr rx_call_peer(const struct rx_call *call);
struct rx_sec_packet rx_call_packet_id(const struct rx_call *call, rx_seq seq, bool incoming);
uint32_t rx_call_body_max(const struct rx_call *call); /* body bytes per packet at this moment */
void rx_call_set_user(struct rx_call *call, void *user);
void *rx_call_user(const struct rx_call *call);

/* Functions of a call that has ended are harmless: they give nothing and free what they are given. */
/* In-order packets that came, as a list that the caller owns; NULL: none. */
struct rx_packet *rx_call_receive(struct rx_call *call, mono_ns now);
/* The application has consumed `packets` of those: the window opens (hard acknowledgement). */
void rx_call_consumed(struct rx_call *call, mono_ns now, uint32_t packets);
bool rx_call_received_all(const struct rx_call *call); /* LAST was given out by rx_call_receive */
/* Packets that the send queue still takes.  Sequence numbers are the writer's: 1, 2, ...  After a 0,
 * which is also said when the call is over, RX_EV_WRITABLE tells of room. */
uint32_t rx_call_room(struct rx_call *call);
void rx_call_send(struct rx_call *call, mono_ns now, struct rx_packet *list /* taken */);
/* End with a code (server: the reply is an ABORT; client: tell the server to stop). */
void rx_call_abort(struct rx_call *call, mono_ns now, int32_t code);
/* The application is done with a call that ended well: a client acknowledges what it read, and the
 * channel is free again.  Before the whole reply was read it is rx_call_abort(RX_USER_ABORT). */
void rx_call_done(struct rx_call *call, mono_ns now);

/* Counters of rx_statistics and what DEBUG answers show; a snapshot, from any thread.  DEBUG requests
 * are answered with all of it, and with connections and peers, to askers on this machine: at 127/8, or at
 * the very address that they ask. */
struct rx_stats {
#define RX_STAT(name, text) uint64_t name;
#include "rx/core/stats.def"
#undef RX_STAT
};
/* Any thread. */
void rx_endpoint_stats(const struct rx_endpoint *ep, struct rx_stats *out);
