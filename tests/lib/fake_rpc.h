/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The serving side of rx/rpc/rpc.h without a transport: a handler under test is given a fake_call
 * and reads and writes memory.  Link fake_rpc.c instead of librpc. */
#pragma once
#include "rx/rpc/rpc.h"

struct fake_conn {
	uint64_t key; /* epoch and cid */
	void *user;
	void (*gone)(void *user);
};
void fake_conn_close(struct fake_conn *c);

enum { FAKE_RUN = 1444 }; /* most bytes that one run or room gives, as a packet would */

struct fake_call {
	struct rpc_call pub; /* first */
	struct fake_conn *conn;
	struct arena arena;
	int32_t refused;   /* rpc_refuse's code */
	const uint8_t *in; /* what the peer sends behind its arguments */
	size_t in_len, in_at;
	uint64_t in_zeros; /* and so many zero bytes behind that */
	afs_err in_end;    /* what a read past it gives; AFS_OK: the end of the stream */
	struct buf out;    /* what was written */
	afs_err out_err;   /* what a write gives */
	uint8_t room[FAKE_RUN];
};
void fake_call_init(struct fake_call *c, struct fake_conn *conn, struct rx_addr peer,
	const struct rx_caller *caller, void *service, mono_ns now);
void fake_call_fini(struct fake_call *c);
static inline void fake_call_cleanup(struct fake_call *c) { fake_call_fini(c); }
