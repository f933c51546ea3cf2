/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A network and a clock of our own for endpoints of rx/core: one seed, one run.
 *
 * Endpoints stand at 10.0.0.N (or 127.0.0.N) port 7000 + N.  Each is client and server.  A server
 * understands a request of our own making (struct sim_ask) and fills replies with a pattern that
 * the client checks byte by byte; both sides' security header is checked too, with a class made for
 * the purpose whose seal depends on everything that rx_sec_packet names.
 *
 * A failed expectation prints the seed and stops the test. */
#pragma once
#include "rx/core/core.h"

struct sim_net {
	uint32_t loss_ppm, dup_ppm, reorder_ppm;
	int64_t delay, jitter;  /* one way; a reordered datagram waits up to 4 times jitter more */
	uint64_t bytes_per_sec; /* 0: any */
	uint32_t queue_bytes;   /* of the rate limit; 0: 256 KiB */
	uint32_t datagram_max;  /* larger ones vanish without a word, but for those that may be cut in
	                           pieces; 0: none do */
	bool no_pieces;         /* those vanish too */
	uint32_t flip_ppm;      /* a bit is turned; from the first on, calls may fail and end short */
};

struct sim;
struct sim_end;
struct sim_call;

enum sim_verb {
	SIM_ECHO_LEN, /* read all, answer reply_len bytes of pattern */
	SIM_ABORT,    /* read all, abort with `arg` */
	SIM_SLOW,     /* as SIM_ECHO_LEN, `arg` ms later */
	SIM_EARLY,    /* answer without reading the rest of the request */
	SIM_MUTE,     /* never answer */
};
struct sim_ask {
	enum sim_verb verb;
	int32_t arg;
	uint64_t request_len; /* beside the 24 bytes that carry this */
	uint64_t reply_len;
};

struct sim *sim_new(uint64_t seed, const struct sim_net *net);
void sim_free(struct sim *s); /* checks that nothing leaked */
/* `usual`, times $SIM_SEEDS: how many seeds a test tries when somebody has the time. */
uint64_t sim_seeds(uint64_t usual);
uint64_t sim_seed(const struct sim *s);
mono_ns sim_now(const struct sim *s);
struct sim_net *sim_network(struct sim *s); /* may be changed while it runs */
uint32_t sim_random(struct sim *s);

struct sim_end_config {
	bool loopback; /* 127.0.0.N with large datagrams */
	bool secured;  /* server demands the test's security class on index 2 */
	uint32_t window;
	int64_t dead_ns, idle_ns;
	uint32_t calls_per_peer_max, conns_max;
	int64_t read_pause; /* server application reads only so often; 0: at once */
	bool credulous;        /* the server application does not look at the bytes of requests */
	bool closed;        /* no application: datagrams are collected for sim_end_next_out */
};
struct sim_end *sim_end_new(struct sim *s, const struct sim_end_config *config);
struct rx_endpoint *sim_end_endpoint(struct sim_end *e);
struct rx_addr sim_end_addr(const struct sim_end *e);
void sim_end_cut(struct sim_end *e, bool cut); /* the cable is out: nothing comes or goes */
void sim_end_half(struct sim_end *e, bool deaf, bool mute); /* nothing comes; nothing goes */
/* The process ends without a word, and another begins at its address.  Not for an end with calls of its own. */
void sim_end_restart(struct sim_end *e);
/* Its clock leaps ahead (the machine slept, or the process was stopped). */
void sim_end_jump(struct sim_end *e, int64_t by);
/* Calls that the server application began, how often a request's id came twice, and how many ended. */
unsigned sim_end_begun(const struct sim_end *e);
unsigned sim_end_repeated(const struct sim_end *e);
unsigned sim_end_replied(const struct sim_end *e); /* RX_EV_CALL_SENT */
unsigned sim_end_ended(const struct sim_end *e);   /* RX_EV_CALL_ENDED of server calls */

struct rx_conn *sim_connect(struct sim_end *from, struct sim_end *to, bool secured);
struct rx_conn *sim_connect_config(
	struct sim_end *from, struct sim_end *to, bool secured, struct rx_conn_config *c);
void sim_disconnect(
	struct sim_end *from, struct rx_conn *conn); /* unref, as long as the simulation runs on */
/* Begins a call; NULL when no channel is free.  Freed with the simulation. */
struct sim_call *sim_call(struct sim_end *from, struct rx_conn *conn, const struct sim_ask *ask);
bool sim_call_over(const struct sim_call *c);
afs_err sim_call_err(const struct sim_call *c);
int32_t sim_call_code(const struct sim_call *c);
mono_ns sim_call_took(const struct sim_call *c);
void sim_call_cancel(struct sim_call *c);

/* Runs until every call is over or `limit` of virtual time has passed; true when all are over. */
bool sim_run(struct sim *s, int64_t limit);
/* Runs for that long. */
void sim_wait(struct sim *s, int64_t time);
/* A datagram out of nowhere. */
void sim_inject(struct sim *s, struct rx_addr from, struct sim_end *to, const void *p, size_t n);
/* Sees every datagram that a sim_end sends, before the network has its way with it. */
void sim_watch(struct sim *s,
	void (*fn)(void *ctx, mono_ns now, struct rx_addr from, struct rx_addr to, const uint8_t *p,
		size_t n),
	void *ctx);

/* Loses what `fn` says true of, beside what the network loses anyway; NULL: nothing. */
void sim_drop(struct sim *s,
	bool (*fn)(void *ctx, struct rx_addr from, struct rx_addr to, const uint8_t *p, size_t n),
	void *ctx);
/* It is at another port from now on, as after a NAT's amnesia: what goes to the old one is lost. */
void sim_end_move(struct sim_end *e, uint16_t port);

/* The dialogue so far, as text: one line per datagram, serials relative to each sender's first. */
void sim_trace(struct sim *s, bool on);
const char *sim_trace_text(struct sim *s);

/* The security class of the tests: a client's or a server's object. */
struct rx_sec *sim_sec_new(bool server);

/* The least heap and pool state a run must come back to. */
size_t sim_pool_used(const struct sim *s);
