/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A service to test the rpc layer with, and the two ports that most tests need: `server` serves it,
 * and so does `client`, so that handlers can call back. */
#pragma once
#include "rx/io/port.h"
#include "rx/sec/rxkad.h"

#define XDR_ROWS "tests/unit/rpc/sample.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX sample
#define RPC_ROWS "tests/unit/rpc/sample.rpc"
#include "rx/xdr/iface_pass.h"

enum { SAMPLE_SERVICE = 77 };
extern const struct rpc_iface sample_iface;

struct sample {
	struct rx_buf_pool *pool;
	struct rpc_workers *workers;
	struct rpc_port *server, *client;
	struct rpc_conn *conn; /* client -> server */
	struct rxkad_server rxkad;
	/* what the handlers saw and wait for */
	struct mtx *gate;
	struct cond *opened;
	bool open[4];
	unsigned held[4]; /* calls that stand at gate n */
	atomic_uint gone;    /* gone hooks run */
	atomic_uint done, done_failed;
};

struct sample_options {
	bool plain;
	unsigned workers;  /* 0: 8 */
	bool no_anonymous;
	const char *name;          /* of the caller: rxkad, with a ticket that says so; NULL: rxnull */
	enum rx_sec_level level, least;
	int64_t dead_ns;
	size_t pool_bytes;         /* 0: 128 MiB */
};
/* Security of a new connection: the "ticket" is just the name.  "admin" is a superuser; "liar" has a
 * session key that is not the ticket's. */
struct rx_sec *sample_token(const char *name, enum rx_sec_level level);
/* Asserts that all went well. */
struct sample *sample_open(const struct sample_options *options);
void sample_close(struct sample *s);
void sample_open_gate(struct sample *s, unsigned gate);
/* Waits until `n` calls stand at the gate. */
void sample_await_held(struct sample *s, unsigned gate, unsigned n);

/* Waits until `n` calls were reported as done: a reply may be there before. */
void sample_await_done(struct sample *s, unsigned n);

uint8_t sample_byte(uint64_t at); /* of what Fetch sends and Store expects */
uint64_t sample_sum(uint64_t sum, const uint8_t *p, size_t n);

#define RPC_WANT_STUBS
#define RPC_PREFIX sample
#define RPC_ROWS "tests/unit/rpc/sample.rpc"
#include "rx/xdr/iface_pass.h"
