/* SPDX-License-Identifier: BSD-2-Clause
 * One connection's rxkad state, either side, and what works on its packets.  This folder's own. */
#pragma once
#include "rx/sec/fcrypt.h"
#include "rx/sec/rxkad.h"

#include <endian.h>
#include <string.h>

enum {
	RXKAD_CHALLENGE_LEN = 16,
	RXKAD_RESPONSE_LEN = 56, /* before the ticket */
	RXKAD_SEALED_AT = 8,     /* the part of it that is encrypted */
	RXKAD_SEALED_LEN = 40,
	RXKAD_TICKET_MIN = 32,
	RXKAD_TICKET_MAX = 12000,
};

struct rxkad {
	struct rx_sec sec;
	struct fcrypt_key key;
	uint8_t session[8]; /* also the iv of everything */
	uint32_t preseq[2];
	uint8_t index;
	enum rx_sec_level level;

	/* client */
	int32_t kvno;
	uint8_t *ticket;
	size_t ticket_len;

	/* server */
	const struct rxkad_server *server;
	uint32_t nonce;
};

static inline uint32_t rxkad_get32(const uint8_t *p)
{
	uint32_t w;
	memcpy(&w, p, sizeof(w));
	return be32toh(w);
}

static inline void rxkad_put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

/* The room a level needs around data. */
void rxkad_set_level(struct rxkad *k, enum rx_sec_level level);
/* Session key and connection are known: derive what every packet uses. */
void rxkad_set_session(struct rxkad *k, const uint8_t session[8]);
void rxkad_set_preseq(struct rxkad *k, uint32_t epoch, uint32_t cid, uint8_t index);

uint16_t rxkad_seal(const struct rx_sec *s, const struct rx_sec_packet *p, uint8_t *body,
	size_t data_len, size_t *body_len);
void rxkad_seal_many(
	const struct rx_sec *s, const struct rx_sec_packet *first, struct rx_sec_body *b, size_t n);
afs_err rxkad_open(const struct rx_sec *s, const struct rx_sec_packet *p, uint16_t cksum,
	uint8_t *body, size_t body_len, size_t *off, size_t *data_len);
