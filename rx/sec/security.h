/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A security class, as the transport sees it: functions of bytes and keys.
 *
 * A struct rx_sec is the security state of one connection.  A client makes one from a token
 * (rxkad_client_new) or rx_null_new(); a server makes one for each new connection through a
 * struct rx_sec_acceptor.  `challenge`, `respond` and `accept` are called by the port's I/O thread
 * only; `seal` and `open` by any thread once the connection is ready, at the same time, so they
 * change nothing in the object.
 *
 * Source: protocol rx.md §11, rx-security.md. */
#pragma once
#include "cell/base/clk.h"
#include "cell/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rx_sec_class { RX_SEC_NULL = 0, RX_SEC_RXKAD = 2, RX_SEC_RXKAD_CRYPT = 3, RX_SEC_RXGK = 4, RX_SEC_YFS_RXGK = 6 };
enum rx_sec_level { RX_LEVEL_CLEAR, RX_LEVEL_AUTH, RX_LEVEL_CRYPT };

enum { RX_NAME_MAX = 64, RX_RESPONSE_MAX = 16384 };

/* Who a connection's client proved to be.  All zero: anonymous. */
struct rx_caller {
	enum rx_sec_class sec_class;
	enum rx_sec_level level;
	bool authenticated;
	char name[RX_NAME_MAX], instance[RX_NAME_MAX], cell[RX_NAME_MAX]; /* cell: realm as ticketed */
	wall_ns expires;                                                  /* 0: never */
};

struct rx_conn_id {
	uint32_t epoch, cid; /* cid with its channel bits clear */
	uint16_t service;
	uint8_t index; /* security index */
	uint32_t call_numbers[4]; /* respond: last started call of each channel; accept: output */
	uint16_t cksum; /* the RESPONSE's checksum field; respond: output (zero but for rxgk); accept: input */
};

/* What a packet's checksum or seal covers. */
struct rx_sec_packet {
	uint32_t epoch, cid; /* with the channel */
	uint32_t call, seq;
	bool from_client;
	mono_ns at; /* when the call began: keys wear out with time too */
};

/* One of several packets to seal. */
struct rx_sec_body {
	uint32_t seq;
	uint8_t *body;   /* header bytes of room, then data, then trailer bytes of room */
	size_t data_len;
	size_t body_len; /* out */
	uint16_t cksum;  /* out */
};

struct rx_sec;
struct rx_sec_ops {
	enum rx_sec_class sec_class;
	/* server: write a CHALLENGE body (the same nonce each time) */
	afs_err (*challenge)(struct rx_sec *, uint8_t *out, size_t cap, size_t *len);
	/* server: judge a RESPONSE body.  On AFS_OK the caller is known, `ready` is set, and the call
	 * numbers of the response are in the conn id: for a channel without a waiting call they are
	 * lower bounds; a waiting call keeps its own.  On an error nothing in the object changed and
	 * another RESPONSE may be judged.  AFS_EPROTOCOL: ready already; the duplicate is to be ignored.
	 * Errors for the peer: AFS_EPACKETSHORT ETICKETLEN EBADTICKET EUNKNOWNKEY EEXPIRED ENOAUTH
	 * ESEALED EOUTOFSEQ ELEVEL ESECPROTO */
	afs_err (*accept)(struct rx_sec *, struct rx_conn_id *, const uint8_t *body, size_t len,
		wall_ns now, struct rx_caller *out);
	/* client: answer a CHALLENGE body.  Errors kill the connection: AFS_EPACKETSHORT ELEVEL ESECPROTO. */
	afs_err (*respond)(struct rx_sec *, struct rx_conn_id *, const uint8_t *challenge,
		size_t challenge_len, uint8_t *out, size_t cap, size_t *len);
	/* both: called once when epoch and cid are known, before any seal or open */
	void (*bind)(struct rx_sec *, const struct rx_conn_id *);
	/* The body is body[0, header + data_len): `header` bytes of room, then data.  Makes it ready
	 * for the wire in place; *body_len is at most header + data_len + trailer.  Gives the
	 * header's checksum field. */
	uint16_t (*seal)(const struct rx_sec *, const struct rx_sec_packet *, uint8_t *body,
		size_t data_len, size_t *body_len);
	/* The same for n packets of one call at once, which costs less per packet than one by one.
	 * `first` names the call; its seq is not looked at. */
	void (*seal_many)(const struct rx_sec *, const struct rx_sec_packet *first, struct rx_sec_body *, size_t n);
	/* The inverse, in place: data is body[*off, *off + *data_len).  The buffer must be the
	 * caller's own.  AFS_ESEALED, AFS_EDATALEN, AFS_EUNKNOWNKEY (rxgk: a key number out of turn);
	 * the body is then garbage. */
	afs_err (*open)(const struct rx_sec *, const struct rx_sec_packet *, uint16_t cksum,
		uint8_t *body, size_t body_len, size_t *off, size_t *data_len);
	void (*free)(struct rx_sec *);
	/* client: another of the same token, not bound yet, while this one may be in use; for further
	 * connections to the same peer.  NULL: memory is short. */
	struct rx_sec *(*clone)(const struct rx_sec *);
	/* What the peer is told of an error of this class: an abort code, or 0 for another's error. */
	int32_t (*code)(const struct rx_sec *, afs_err);
};
struct rx_sec {
	const struct rx_sec_ops *ops;
	uint16_t header, trailer; /* bytes to keep free around data; grows at accept on a server */
	bool ready;               /* clients: always; servers: after accept (rxnull: at once) */
	wall_ns expires;          /* 0: never; later packets fail with AFS_EEXPIRED */
};

/* Makes the server side of a new connection, or NULL when the index is not offered or memory is
 * short.  `ctx` holds keys and policy. */
struct rx_sec_acceptor {
	struct rx_sec *(*make)(void *ctx, uint8_t index);
	void *ctx;
};

/* rxnull: nothing is sealed or checked; never fails, and one object serves every connection. */
struct rx_sec *rx_null_new(void);
static inline void rx_sec_free(struct rx_sec *s)
{
	if (s)
		s->ops->free(s);
}

/* rxkad abort codes (19270400 + n) for errors of the security classes, 0 for others: what a service that
 * refuses says whatever its connection's class is. */
int32_t rx_sec_code(afs_err err);
/* rxgk's (1233242880 + n), which differ between OpenAFS (index 4) and the others (6). */
int32_t rx_gk_code(uint8_t index, afs_err err);
/* The error that a code of any class stands for, rxgk's as index 6 has them; AFS_OK for codes of none. */
afs_err rx_sec_err(int32_t code);
