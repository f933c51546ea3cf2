/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The core's own structures and what its files offer each other.  One endpoint owns all that hangs
 * below it; nothing here is shared between endpoints but the buffer pool.
 *
 *   endpoint --map--> conn --chan[4]--> call      (a call is found through its connection)
 *            --map--> peer  <---------- conn
 *            --heap-> timers of conns and calls
 *            --list-> conns and calls with something to send; calls with an event */
#pragma once
#include "cell/base/map.h"
#include "rx/core/core.h"

/* --- the wire ------------------------------------------------------------------------------ */

enum rx_type {
	RX_DATA = 1,
	RX_ACK = 2,
	RX_BUSY = 3,
	RX_ABORT = 4,
	RX_ACKALL = 5,
	RX_CHALLENGE = 6,
	RX_RESPONSE = 7,
	RX_DEBUG = 8,
	RX_PARAMS = 9, /* 9, 10 and 11 are ignored */
	RX_TYPE_11 = 11,
	RX_VERSION = 13,
};

enum {
	RX_F_CLIENT = 0x01,
	RX_F_REQUEST_ACK = 0x02,
	RX_F_LAST = 0x04,
	RX_F_MORE = 0x08,
	RX_F_JUMBO = 0x20,
	RX_F_SLOW_START_OK = 0x20, /* the same bit in an ACK */
};

enum rx_reason {
	RX_ACK_NONE = 0, /* none is owed */
	RX_ACK_REQUESTED = 1,
	RX_ACK_DUPLICATE = 2,
	RX_ACK_OUT_OF_SEQUENCE = 3,
	RX_ACK_EXCEEDS_WINDOW = 4,
	RX_ACK_NOSPACE = 5,
	RX_ACK_PING = 6,
	RX_ACK_PING_RESPONSE = 7,
	RX_ACK_DELAY = 8,
	RX_ACK_IDLE = 9,
};

struct rx_header {
	uint32_t epoch, cid, call;
	rx_seq seq;
	rx_serial serial;
	uint8_t type, flags, user_status, index;
	uint16_t cksum, service;
};

enum {
	RX_ACK_FIXED = 18,
	RX_ACK_PAD = 3,
	RX_ACK_TRAILER = 16,
	RX_ACK_MAX = RX_ACK_FIXED + RX_WINDOW_MAX + RX_ACK_PAD + RX_ACK_TRAILER,
	RX_ACK_REASON_AT = 16,
	RX_HEADER_TYPE_AT = 20,
	RX_JUMBO_BODY = 1412,
	RX_JUMBO_HEADER = 4,
	RX_VERSION_BODY = 65,
};

void rx_header_put(uint8_t *p, const struct rx_header *h);
void rx_header_get(const uint8_t *p, struct rx_header *h);
static inline void put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	__builtin_memcpy(p, &v, 4);
}
static inline uint32_t get32(const uint8_t *p)
{
	uint32_t v;
	__builtin_memcpy(&v, p, 4);
	return __builtin_bswap32(v);
}
static inline bool serial_before(rx_serial a, rx_serial b) { return (int32_t)(a - b) < 0; }

/* An ACK body as read: pointers go into the datagram, numbers are clamped. */
struct rx_ack {
	rx_seq first, previous;
	rx_serial serial;
	uint8_t reason;
	uint32_t count; /* of octets really there */
	const uint8_t *octets;
	bool has_mtu, has_window, has_jumbo;
	uint32_t max_mtu, if_mtu, window, jumbo;
};
bool rx_ack_parse(const uint8_t *body, size_t len, struct rx_ack *out);

/* Limits on what a trailer may say (invariants: SA-2017-001). */
enum { RX_MTU_MIN = 576 - 28, RX_JUMBO_MAX = 46 };

/* --- numbers ------------------------------------------------------------------------------- */

enum {
	RX_SAFE_DATAGRAM = RX_HEADER + RX_SAFE_BODY,
	/* What two ends on one machine exchange: four make one run of UDP segments (65507 bytes), which
	 * is the fastest there is over lo. */
	RX_BIG_DATAGRAM = 16376,
	RX_WINDOW_START = 16, /* what a peer assumes before our first ACK, and we before its */
	RX_WINDOW_DEFAULT = 255,
	RX_WINDOW_BYTES = 2 << 20,
	RX_SEND_BYTES = 2 << 20, /* queued and unacknowledged, per call */
	RX_CONNS_MAX = 20000,
	RX_CALLS_PER_PEER = 256, /* one address and port */
	RX_PROGRESS_BYTES =
		16 * 1024, /* in each idle time of a connection, from a peer waited for */
	RX_PEERS_IDLE_MAX = 8192,
	RX_TURN_BYTES = 64 * 1024, /* a call's turn among those that send */
	RX_AMPLIFY = 3,
	RX_AMPLIFY_FREE = 200, /* unproven address: out <= 3 * in + 200 */
	RX_PING_BYTES = RX_HEADER + RX_ACK_FIXED + RX_ACK_PAD + RX_ACK_TRAILER,
	RX_CHALLENGE_MAX = 64,
	RX_CHALLENGES = 50,  /* rx.md §11 */
	RX_PROBE_AFTER = 16, /* packets of a call: only bulk is worth probing for */
	RX_PROBE_TRIES = 2,
	RX_OPCODE_UNKNOWN = -455, /* RXGEN_OPCODE: asking what there is, not spinning on it */
	RX_RAW_MAX = 320,
	RX_RAW_QUEUE = 128,
	RX_RING_SMALL = 8,
	RX_CWND_START = 16,
	RX_CWND_MIN = 2,
	RX_CWND_MAX = 512,
};

#define RX_DEAD_NS SEC(12)
#define RX_IDLE_NS SEC(60)
#define RX_MOVE_NS                                                                                 \
	SEC(1) /* of silence from its address, before a peer that speaks from another is followed */
#define RX_CONN_IDLE_NS SEC(700) /* rx.md §3.3 */
#define RX_PEER_IDLE_NS SEC(60)
#define RX_PROBE_WAIT_NS                                                                           \
	MSEC(100) /* beyond the round trip, for the answer to a probe of the path */
/* How long a packet that the path carries no more, not even in pieces, may hold up its call. */
#define RX_OVERSIZE_NS SEC(10)
#define RX_PROBE_RAISE_NS                                                                          \
	SEC(600) /* until a path that refused a size is asked again (RFC 8899 5.1.1) */
#define RX_CONN_LINGER_NS SEC(3) /* a client connection let go still answers late packets */
#define RX_CHALLENGE_NS SEC(2)
#define RX_RESPONSE_REFUSED_NS SEC(1)
#define RX_ABORT_DELAY_NS SEC(3) /* rx.md §3.5 */
#define RX_ACK_DELAY_NS MSEC(100)
#define RX_ACK_DELAY_REPLY_NS MSEC(400)
#define RX_RTO_FIRST_NS SEC(1)
#define RX_RTO_MIN_NS MSEC(200)
#define RX_RTO_MAX_NS SEC(8)
#define RX_PROBE_MIN_NS MSEC(5)
/* How long a peer may sit on an acknowledgement that was not asked for (rx.md §4.4 and §5). */
#define RX_PEER_DELAY_NS MSEC(150)
#define RX_PEER_DELAY_REPLY_NS MSEC(450)

/* Percent of the pool's bound that is handed out. */
unsigned rx_buf_pool_fill(const struct rx_buf_pool *pool);

/* --- timers -------------------------------------------------------------------------------- */

enum rx_timer_kind { RX_TIMER_CALL, RX_TIMER_CONN, RX_TIMER_PEERS };
struct rx_timer {
	mono_ns at;
	uint32_t pos; /* 1 + place in the heap; 0: not in it */
	uint8_t kind;
};
struct rx_heap {
	struct rx_timer **slots;
	uint32_t count, cap, reserved;
};
/* Room for one more timer, kept until rx_heap_release: setting one cannot fail. */
bool rx_heap_reserve(struct rx_heap *h);
void rx_heap_release(struct rx_heap *h);
void rx_heap_set(struct rx_heap *h, struct rx_timer *t, mono_ns at); /* MONO_NEVER takes it out */
/* Only ever brings it forward: the common case of a deadline that moves away costs nothing. */
static inline void rx_heap_sooner(struct rx_heap *h, struct rx_timer *t, mono_ns at)
{
	if (!t->pos || at < t->at)
		rx_heap_set(h, t, at);
}

/* --- peers --------------------------------------------------------------------------------- */

/* An IP address, whatever its ports: one machine, or those behind one NAT. */
struct rx_host {
	struct map_node node;
	uint32_t ip;
	uint32_t peers; /* that point here */
	uint32_t calls; /* sums of theirs */
	size_t held;
};

struct rx_peer {
	struct map_node node;
	struct rx_addr addr;
	struct rx_host *host;
	uint32_t conns;      /* that point here */
	uint32_t calls;      /* server calls alive */
	size_t held;         /* bytes that came and were not consumed */
	struct list idle;    /* of the endpoint, while conns is 0 */
	struct list blocked; /* calls and connections held back by the amplification limit */
	mono_ns idle_since;
	/* round trip */
	int64_t srtt, rttvar, min_rtt; /* srtt 0: no sample */
	mono_ns min_rtt_at;
	/* sizes of datagrams, header included */
	uint32_t size_own;    /* largest announced to it */
	uint32_t size_limit;  /* largest it and we agree to */
	uint32_t size_proven; /* largest that the path is known to carry */
	uint32_t size_send;   /* the lesser of these two */
	uint32_t size_in;     /* largest DATA that came, for windows in bytes */
	bool knows_size;      /* it has sent a trailer */
	bool on_machine;      /* at 127/8: nothing to be found out about the path */
	struct rx_probe {
		/* when the next may leave, or the one under way counts as lost; MONO_NEVER: no need */
		mono_ns at;
		const struct rx_conn *conn; /* of the one under way */
		rx_serial serial;
		uint32_t size;    /* of the one under way; 0: none is */
		uint32_t refused; /* the least that did not pass in this search; 0: none yet */
		uint8_t tries;
	} probe;
	/* what it proved */
	bool proven, chosen; /* chosen: we called it first */
	uint64_t bytes_in, bytes_out;
	uint64_t data_out, data_resent, sent_bytes, received_bytes; /* for DEBUG answers */
	/* congestion state that the last call left */
	uint32_t cwnd, ssthresh;
	mono_ns cwnd_at;
};

struct rx_peer *rx_peer_get(struct rx_endpoint *ep, struct rx_addr addr, mono_ns now);
void rx_peer_put(struct rx_endpoint *ep, struct rx_peer *p, mono_ns now);
void rx_peer_free(struct rx_endpoint *ep, struct rx_peer *p); /* it is in no list and no map */
void rx_peer_reap(struct rx_endpoint *ep, mono_ns now);
void rx_peer_prove(struct rx_endpoint *ep, struct rx_peer *p);
void rx_peer_unblock(struct rx_endpoint *ep, struct rx_peer *p);
/* May `len` bytes go to the peer of `c` now, with `reserve` left?  Counts nothing. */
bool rx_peer_allows(const struct rx_peer *p, const struct rx_conn *c, size_t len, size_t reserve);
/* What is bounded, decided here alone (design D11): may a call more of `p` begin, and may `len` bytes of
 * its DATA wait here?  Those out of order leave the second half of the room to those next in line. */
bool rx_peer_admits_call(const struct rx_endpoint *ep, const struct rx_peer *p);
bool rx_peer_admits_bytes(const struct rx_endpoint *ep, const struct rx_peer *p, size_t len, bool in_order);
/* The books for that. */
void rx_peer_calls(struct rx_endpoint *ep, struct rx_peer *p, int change);
void rx_peer_held(struct rx_endpoint *ep, struct rx_peer *p, size_t more, size_t less);
void rx_peer_trailer(struct rx_peer *p, mono_ns now, const struct rx_ack *a);
/* The path stopped carrying what it carried. */
void rx_peer_lower_size(struct rx_endpoint *ep, struct rx_peer *p, mono_ns now);
void rx_peer_rtt(struct rx_endpoint *ep, struct rx_peer *p, mono_ns now, int64_t sample);

/* probe.c: how large a datagram the path carries */
bool rx_probe_emit(struct rx_call *call, mono_ns now, struct rx_datagram *out);
void rx_probe_answered(struct rx_conn *c, mono_ns now, rx_serial serial);
void rx_probe_refused(struct rx_peer *p, mono_ns now);
void rx_probe_forget(struct rx_conn *c, mono_ns now); /* the connection goes */

/* --- connections --------------------------------------------------------------------------- */

enum rx_tx_conn { RX_TX_CHALLENGE = 1, RX_TX_RESPONSE = 2, RX_TX_ABORT = 4, RX_TX_CHANNEL = 8 };
enum rx_tx_chan {
	RX_TX_CHAN_ABORT = 1,
	RX_TX_CHAN_BUSY = 2,
	RX_TX_CHAN_ACK = 4,  /* of a call that is over: all was consumed */
	RX_TX_CHAN_PONG = 8, /* the same, as the answer to a ping */
};
enum rx_chan_end { RX_END_NONE, RX_END_DONE, RX_END_ABORTED };

struct rx_channel {
	struct rx_call *call;
	struct rx_call *lingering; /* displaced, and its handler still runs: `call` waits for it */
	uint32_t
		number; /* highest seen (server) or used (client); kept for the connection's life */
	rx_seq last_in; /* of the call that ended: the last sequence that came */
	int32_t code;   /* of an abort that we sent */
	uint32_t failures; /* server: calls in a row that our side ended with `failure` */
	int32_t failure;
	mono_ns abort_at; /* server: the ABORT waits until then; MONO_NEVER: it does not */
	rx_serial ack_serial;
	uint8_t end, tx, ack_reason;
	bool busy;            /* client: the server said BUSY and no call has succeeded since */
	uint16_t peer_window; /* last announced by the peer; 0: none */
	uint16_t own_window;  /* last announced by us; 0: none */
};

enum rx_conn_due {
	RX_CONN_CHALLENGE,
	RX_CONN_DELAYED,
	RX_CONN_ABORT,
	RX_CONN_DOOM,
	RX_CONN_IDLE,
	RX_CONN_DUES
};

struct rx_conn {
	struct map_node node;
	struct rx_endpoint *ep;
	struct rx_peer *peer;
	struct rx_sec *sec;
	uint32_t epoch, cid;
	uint32_t refs; /* the layer above; a client's maker holds one */
	uint32_t live; /* calls attached to channels */
	uint32_t local_ip;
	uint16_t service;
	uint8_t index;
	bool is_server, known; /* known: the caller is (server), or need not be (client) */
	bool challenged, gone, failed;
	uint8_t challenges, tx;
	uint8_t challenge_len;
	rx_serial serial, first_serial;
	int32_t code;
	afs_err err;
	afs_err doom; /* what RX_CONN_DOOM ends it with: failures found while sending wait for a tick,
	                 so that events only come from what the driver does */
	mono_ns expires, last_used;
	mono_ns heard_home; /* from peer->addr */
	struct rx_addr
		moved_to; /* somebody speaks from there, and was asked at moved_at to show that he */
	rx_serial moved_serial; /* receives there too, by echoing this; 0: nobody was */
	mono_ns moved_at;
	int64_t dead_ns, idle_ns, hard_ns;
	uint64_t data_in, data_out, bytes_in, bytes_out; /* DATA, for DEBUG answers */
	struct list tx_link;                             /* ep->tx_conns or peer->blocked */
	struct list idle_link; /* ep->idle_anon or idle_known: server, no calls, no references */
	struct list
		half_link; /* ep->half_open: server, and its address was unproven when last looked at */
	struct rx_timer timer;
	mono_ns due[RX_CONN_DUES];
	struct rx_channel chan[4];
	uint8_t challenge[RX_CHALLENGE_MAX];
	void *user;
	void (*user_gone)(void *user);
	struct rx_caller caller;
};

struct rx_conn *rx_conn_find(
	struct rx_endpoint *ep, const struct rx_header *h, struct rx_addr from);
struct rx_conn *rx_conn_accept(struct rx_endpoint *ep, mono_ns now, const struct rx_header *h,
	struct rx_addr from, uint32_t local_ip, struct rx_sec *sec);
void rx_conn_receive(
	struct rx_conn *c, mono_ns now, const struct rx_header *h, const uint8_t *body, size_t len);
void rx_conn_tick(struct rx_conn *c, mono_ns now);
void rx_conn_tx(struct rx_conn *c, unsigned what);
void rx_chan_tx(struct rx_conn *c, struct rx_channel *ch, unsigned what);
/* A server's call ends with `code`: is the ABORT put off?  Then it is on the timer. */
bool rx_chan_delays_abort(struct rx_conn *c, struct rx_channel *ch, mono_ns now, int32_t code);
bool rx_conn_emit(struct rx_conn *c, mono_ns now, struct rx_datagram *out);
void rx_conn_fail(
	struct rx_conn *c, mono_ns now, afs_err err, int32_t code, bool tell, int64_t after);
void rx_conn_set_due(struct rx_conn *c, enum rx_conn_due what, mono_ns at);
void rx_conn_settle(struct rx_conn *c, mono_ns now); /* a call went: is it idle, or to be freed? */
void rx_conn_free(struct rx_conn *c, mono_ns now);
void rx_conn_doom(struct rx_conn *c, mono_ns now, afs_err err);
/* `addr` has shown that it is the peer's now: all that follows goes there. */
void rx_conn_move(struct rx_conn *c, mono_ns now, struct rx_addr addr, uint32_t local_ip);
void rx_conn_challenge(struct rx_conn *c, mono_ns now); /* a call waits for the caller's name */
/* A datagram of `len` bytes goes out for `c`: books, and the header for it. */
void rx_conn_sent(struct rx_conn *c, mono_ns now, size_t len);
rx_serial rx_conn_serial(struct rx_conn *c);
void rx_conn_header(struct rx_conn *c, struct rx_header *h, enum rx_type type);

/* --- calls --------------------------------------------------------------------------------- */

enum rx_call_due {
	RX_DUE_LOSS,    /* retransmission, or a probe of the tail before it */
	RX_DUE_REORDER, /* a packet that later ones overtook counts as lost */
	RX_DUE_PACE,
	RX_DUE_ACK,
	RX_DUE_PING,    /* keep-alive */
	RX_DUE_PERSIST, /* window closed, or the address unproven: ask */
	RX_DUE_DEAD,
	RX_DUE_IDLE,
	RX_DUE_HARD,
	RX_DUES,
};

enum rx_packet_state { RX_PKT_QUEUED, RX_PKT_FLYING, RX_PKT_LOST, RX_PKT_ACKED };

struct rx_call {
	struct rx_conn *conn;
	struct rx_channel *chan;
	uint32_t number, refs;
	void *user;
	struct list tx; /* ep->tx_calls or peer->blocked */
	struct list ev; /* ep->events */
	struct rx_timer timer;
	bool is_server;
	bool attached;  /* chan->call is this */
	bool delivered; /* the layer above knows of it */
	bool ended;     /* over before its time; err and code say why */
	bool app_done;  /* the layer above will give nothing more */
	bool held;      /* for the amplification limit, once or more */
	bool blocked;   /* in peer->blocked, not in tx_calls */
	bool busy_turn; /* at the head of tx_calls, turn_left of its turn left */
	uint8_t events;
	afs_err err;
	int32_t code;
	int32_t turn_left;
	mono_ns started, heard, sent, progress;
	mono_ns soft_at; /* out_soft moved */

	/* receiving */
	struct rx_packet *in_head, **in_tail; /* in order, for the layer above */
	struct rx_packet **ahead;             /* ring of RX_AHEAD: came before their turn */
	uint32_t ahead_count;
	size_t in_held;   /* bytes that came and were not consumed */
	mono_ns in_ready; /* since when in_head waits for the layer above */
	rx_seq in_first;  /* first not consumed: what ACKs call firstPacket */
	rx_seq in_next;   /* next in order */
	rx_seq in_high;   /* highest that came */
	rx_seq in_edge;   /* first beyond the announced window */
	rx_seq in_last;   /* number of the packet with LAST; 0: not seen */
	rx_seq in_given;  /* first not given out */
	bool in_discard;  /* a reply has begun: the rest of the request is of no interest */
	uint8_t ack_owed; /* reason; RX_ACK_NONE: none */
	rx_serial ack_serial, pong_serial;
	bool pong_owed, ping_owed;
	uint32_t unacked_in;       /* DATA since the last ACK */
	uint32_t consumed_since;   /* packets consumed since the last ACK */
	rx_serial last_ack_serial; /* newest ACK that came */
	bool heard_ack;

	/* sending */
	struct rx_packet **ring; /* by sequence & ring_mask */
	uint32_t ring_mask;
	rx_seq out_una;   /* first not hard-acknowledged */
	rx_seq out_soft;  /* all before are acknowledged, hard or soft */
	rx_seq out_next;  /* first never sent */
	rx_seq out_end;   /* first not queued */
	rx_seq out_last;  /* number of LAST; 0: not queued */
	rx_seq out_high;  /* highest acknowledged */
	rx_seq lost_from; /* no lost packet before it */
	uint32_t flying, lost;
	uint32_t window; /* the peer's */
	bool out_closed; /* acknowledged whole, or of no interest any more */
	bool want_room;
	struct list xmit; /* flying packets in order of transmission */

	/* loss and congestion */
	uint32_t order;      /* transmissions so far */
	uint32_t rack_order; /* the latest transmission known delivered; 0: none */
	int64_t rack_rtt;    /* and how long its acknowledgement took */
	uint32_t newly;      /* acknowledged by the ACK at hand */
	uint64_t newly_bytes;
	bool reorder_seen, in_recovery, was_limited;
	bool kept_window;               /* the latest loss was not taken for congestion */
	uint32_t seen_lost, seen_acked; /* of the latest packets, both halved now and then */
	uint8_t backoff, probes, persists;
	rx_seq recovery_end;
	uint32_t credit;         /* packets that may leave although cwnd is full */
	uint32_t cwnd, ssthresh; /* packets */
	double cwnd_part, w_max, epoch_k, w_est;
	mono_ns epoch_start;
	uint32_t undo_cwnd, undo_ssthresh, undo_order;
	bool can_undo;
	bool last_asked; /* the latest DATA asked for an ACK */
	mono_ns last_data_at;
	mono_ns pace_next;
	uint32_t round_rtts;
	int64_t round_min;
	rx_seq round_end;
	rx_serial ping_serial;
	mono_ns ping_at;
	bool ping_flying;

	mono_ns due[RX_DUES];
	struct rx_packet *ring_small[RX_RING_SMALL];
};
enum { RX_AHEAD = 256 };

enum rx_call_event {
	RX_CE_NEW = 1,
	RX_CE_READABLE = 2,
	RX_CE_WRITABLE = 4,
	RX_CE_SENT = 8,
	RX_CE_ENDED = 16
};

struct rx_call *rx_call_open(struct rx_conn *c, unsigned channel, uint32_t number, mono_ns now);
void rx_call_receive_packet(
	struct rx_call *call, mono_ns now, const struct rx_header *h, const struct rx_datagram *d);
void rx_call_tick(struct rx_call *call, mono_ns now);
void rx_call_end(struct rx_call *call, mono_ns now, afs_err err, int32_t code);
void rx_call_end_and_tell(struct rx_call *call, mono_ns now, afs_err err, int32_t code);
void rx_call_detach(struct rx_call *call, mono_ns now, enum rx_chan_end end);
void rx_call_event(struct rx_call *call, unsigned what);
void rx_call_tx(struct rx_call *call); /* it has something to send */
/* Is the layer above stopped for want of the peer's data or window? */
bool rx_call_waits_for_peer(const struct rx_call *call);
void rx_call_set_due(struct rx_call *call, enum rx_call_due what, mono_ns at);
void rx_call_offer(struct rx_call *call); /* tell the layer above of a call whose caller is known */
void rx_call_release(struct rx_call *call); /* free it when nobody holds it */
bool rx_call_emit(struct rx_call *call, mono_ns now, struct rx_datagram *out, bool *blocked);

/* recv.c */
void rx_recv_data(
	struct rx_call *call, mono_ns now, const struct rx_header *h, const struct rx_datagram *d);
void rx_recv_drop(struct rx_call *call);
uint32_t rx_recv_window(const struct rx_conn *c);
/* The peer moved `bytes` of the call: they buy it time (RX_PROGRESS_BYTES). */
void rx_call_progress(struct rx_call *call, mono_ns now, uint64_t bytes);

/* ack.c */
size_t rx_ack_build(
	struct rx_call *call, mono_ns now, enum rx_reason reason, rx_serial serial, uint8_t *out);
size_t rx_ack_build_over(
	struct rx_conn *c, struct rx_channel *ch, enum rx_reason reason, uint8_t *out);
void rx_ack_receive(struct rx_call *call, mono_ns now, const struct rx_header *h,
	const uint8_t *body, size_t len);
void rx_ack_owe(struct rx_call *call, enum rx_reason reason, rx_serial serial);

/* send.c */
bool rx_send_emit(struct rx_call *call, mono_ns now, struct rx_datagram *out, bool *blocked);
void rx_send_ack_all(struct rx_call *call, mono_ns now);
/* Is the oldest packet larger than the path carries by now, and does it not pass in pieces either? */
bool rx_send_is_stuck(const struct rx_call *call, mono_ns now);
void rx_send_drop(struct rx_call *call);
void rx_send_advance(struct rx_call *call, mono_ns now, rx_seq first, rx_serial serial);
void rx_send_mark_acked(struct rx_call *call, mono_ns now, struct rx_packet *p, rx_serial serial);
void rx_send_advance_soft(struct rx_call *call, mono_ns now);
/* Is a server's whole reply acknowledged?  Then the call is over, and perhaps freed. */
bool rx_send_complete(struct rx_call *call, mono_ns now);
void rx_send_room_event(struct rx_call *call);
uint32_t rx_send_room(const struct rx_call *call); /* as rx_call_room(), without waiting for more */
static inline struct rx_packet **rx_send_slot(const struct rx_call *call, rx_seq seq)
{
	return &call->ring[seq & call->ring_mask];
}

/* loss.c: which packets are gone, and when to ask */
void rx_loss_acked(struct rx_call *call, mono_ns now, struct rx_packet *p, rx_serial acked_serial);
void rx_loss_detect(struct rx_call *call, mono_ns now);
void rx_loss_arm(struct rx_call *call, mono_ns now);
void rx_loss_timeout(struct rx_call *call, mono_ns now);
/* The peer has spoken, and not of what is in flight (it repeats its request, or pings): what is under
 * way longer than two round trips did not arrive. */
void rx_loss_hint(struct rx_call *call, mono_ns now);

/* congestion.c */
void rx_cong_init(struct rx_call *call, mono_ns now);
void rx_cong_acked(struct rx_call *call, mono_ns now, uint32_t packets);
void rx_cong_sample(struct rx_call *call, int64_t rtt);
void rx_cong_loss(struct rx_call *call, mono_ns now);
void rx_cong_timeout(struct rx_call *call, mono_ns now);
void rx_cong_spurious(struct rx_call *call); /* the timeout was none: the originals had arrived */
void rx_cong_keep(struct rx_call *call, mono_ns now);
/* 0: a packet may leave now; else when. */
mono_ns rx_cong_pace(const struct rx_call *call, mono_ns now);
void rx_cong_paced(struct rx_call *call, mono_ns now); /* one left */

/* --- the endpoint -------------------------------------------------------------------------- */

#define RX_STAT(name, text) RX_ST_##name,
enum rx_stat_index {
#include "rx/core/stats.def"
	RX_STATS
};
#undef RX_STAT

struct rx_raw { /* an answer that no connection sends */
	struct rx_addr peer;
	uint32_t local_ip, len;
	uint8_t bytes[RX_RAW_MAX];
};

struct rx_scratch {
	struct rx_scratch *next;
	uint32_t used;
	struct rx_buf *buf;
};

struct rx_endpoint {
	struct rx_endpoint_config config;
	uint32_t epoch, next_cid;
	mono_ns now;
	bool closing;
	bool from_home; /* the datagram at hand came from its connection's address */
	uint32_t conn_count;
	struct map conns, peers, hosts;
	uint32_t server_calls; /* alive */
	size_t held, held_max; /* bytes that came and were not consumed, and the most of them */
	struct rx_heap heap;
	struct rx_timer peers_timer;
	struct list tx_conns, tx_calls, events;
	struct list idle_anon, idle_known, idle_peers, half_open;
	uint32_t idle_peers_count, half_open_count;
	struct rx_call *event_call; /* given out last: borrowed until the next is asked for */
	struct rx_call *free_calls;
	uint32_t free_calls_count;
	struct rx_raw *raw;
	uint32_t raw_head, raw_count;
	struct rx_scratch *scratch, *scratch_now;
	bool batch_over;
	atomic_ullong stats[RX_STATS];
};

static inline void rx_stat_add(struct rx_endpoint *ep, enum rx_stat_index i, uint64_t n)
{
	/* one writer; others only read */
	atomic_store_explicit(&ep->stats[i],
		atomic_load_explicit(&ep->stats[i], memory_order_relaxed) + n,
		memory_order_relaxed);
}
static inline void rx_stat_set(struct rx_endpoint *ep, enum rx_stat_index i, uint64_t n)
{
	atomic_store_explicit(&ep->stats[i], n, memory_order_relaxed);
}
static inline uint64_t rx_stat_get(const struct rx_endpoint *ep, enum rx_stat_index i)
{
	return atomic_load_explicit(&ep->stats[i], memory_order_relaxed);
}
#define RX_COUNT(ep, name) rx_stat_add((ep), RX_ST_##name, 1)
#define RX_COUNT_N(ep, name, n) rx_stat_add((ep), RX_ST_##name, (n))

/* Bytes that stay until the batch of datagrams is sent; NULL when memory is short. */
uint8_t *rx_endpoint_scratch(struct rx_endpoint *ep, size_t len, struct rx_datagram *out);
/* Give back what scratch took too much. */
void rx_endpoint_scratch_trim(struct rx_endpoint *ep, size_t unused);
/* debug.c: the body of a DEBUG answer, built in zeroed memory; gives its length. */
uint32_t rx_debug_answer(
	struct rx_endpoint *ep, bool on_machine, const uint8_t *body, size_t len, uint8_t *out);
static inline bool rx_addr_is_loopback(struct rx_addr a) { return a.ip >> 24 == 127; }
uint64_t rx_addr_hash(const struct map *m, struct rx_addr a);
static inline bool rx_addr_same(struct rx_addr a, struct rx_addr b)
{
	return a.ip == b.ip && a.port == b.port;
}
