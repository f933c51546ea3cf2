/* SPDX-License-Identifier: BSD-2-Clause
 * One connection's rxgk state, either side, and what works on its packets.  This folder's own. */
#pragma once
#include "cell/base/mtx.h"
#include "rx/sec/rxgk.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

enum {
	RXGK_HEAD = 24, /* what a sealed packet says of itself */
	RXGK_KEYS = 4,
	USE_CLIENT_ENCRYPT = 1026, /* and for the server's packets, two more */
	USE_CLIENT_MIC = 1027,
	USE_RESPONSE = 1030,
};

/* The transport keys of one key number: for what we send and for what we get. */
struct rxgk_key {
	_Atomic uint32_t users;
	bool made;
	uint32_t number;
	struct etype_key *out, *in;
};

struct rxgk {
	struct rx_sec sec;
	uint8_t index;
	bool is_server;
	const struct etype *etype;
	struct rxgk_terms terms;
	uint64_t start;
	uint32_t epoch, cid; /* without the channel */
	struct rxgk_random random;

	/* Key N stands in key[N % RXGK_KEYS].  Who uses one counts himself in `users` first and looks then
	 * whether it is still N, so that the lock is only for making keys. */
	struct mtx lock;
	struct rxgk_key key[RXGK_KEYS];
	_Atomic uint32_t number;   /* the current one */
	_Atomic uint64_t bytes;    /* sealed and opened with it */
	_Atomic mono_ns made_at;   /* 0: not used yet */

	/* client */
	uint8_t *token;
	size_t token_len;

	/* server */
	const struct rxgk_server *server;
	uint8_t nonce[RXGK_NONCE];
};

static inline uint32_t rxgk_get32(const uint8_t *p)
{
	uint32_t w;
	memcpy(&w, p, sizeof(w));
	return be32toh(w);
}
static inline void rxgk_put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

/* The key of this connection with that number, for one usage; NULL: memory. */
struct etype_key *rxgk_transport_key(const struct rxgk *g, uint32_t number, uint32_t usage);
/* Sets header and trailer for the token's level. */
void rxgk_make_room(struct rxgk *g);
/* Terms, start, epoch and cid are known: take `number` as the current key and set the room that the
 * level needs.  AFS_ENOMEM. */
afs_err rxgk_start_keys(struct rxgk *g, uint32_t number);
void rxgk_free_keys(struct rxgk *g);

uint16_t rxgk_seal(const struct rx_sec *s, const struct rx_sec_packet *p, uint8_t *body, size_t data_len,
	size_t *body_len);
void rxgk_seal_many(
	const struct rx_sec *s, const struct rx_sec_packet *first, struct rx_sec_body *b, size_t n);
afs_err rxgk_open(const struct rx_sec *s, const struct rx_sec_packet *p, uint16_t cksum, uint8_t *body,
	size_t body_len, size_t *off, size_t *data_len);
