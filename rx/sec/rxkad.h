/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxkad, both ends, levels clear, auth and crypt.  What a ticket says is the ticket reader's matter
 * (cell/keys): here it is bytes that give a session key, a name and a validity.
 *
 * rxkad's packet cipher has 56 bits of key, and level clear protects no payload; that is the
 * protocol's limit and stays so whatever the enctype of the service key.
 *
 * Source: protocol rx-security.md §3-5, §8. */
#pragma once
#include "rx/sec/security.h"

struct rxkad_token {
	uint8_t session_key[8]; /* after rxkad-kdf */
	int32_t kvno;           /* 256: whole krb5 ticket; 213: its enc-part */
	const uint8_t *ticket;  /* the caller's; copied by rxkad_client_new */
	size_t ticket_len;      /* at most 12000 */
	wall_ns begins, expires;
};

/* The client side of one connection.  NULL when memory is short or the ticket is too long. */
struct rx_sec *rxkad_client_new(const struct rxkad_token *token, enum rx_sec_level level);

/* How the server side reads a ticket; given by cell/keys.  Must not wait.  On AFS_OK writes the
 * session key (after rxkad-kdf), names and validity. */
struct rxkad_ticket {
	uint8_t session_key[8];
	char name[RX_NAME_MAX], instance[RX_NAME_MAX], cell[RX_NAME_MAX];
	wall_ns begins, expires; /* begins 0 and expires 0: localauth tickets may live for ever */
};
typedef afs_err rxkad_read_ticket(void *ctx, int32_t kvno, const uint8_t *ticket, size_t len,
	wall_ns now, struct rxkad_ticket *out);

struct rxkad_server {
	rxkad_read_ticket *read_ticket;
	void *ctx;
	uint32_t (*random)(void *ctx); /* for the challenge's nonce */
	void *random_ctx;
	enum rx_sec_level least; /* demanded in the challenge */
};
/* The server side of one connection; `server` must outlive it.  Index 3 demands crypt whatever
 * `least` says.  NULL when memory is short or the index is neither 2 nor 3. */
struct rx_sec *rxkad_server_new(const struct rxkad_server *server, uint8_t index);
/* A ready-made `make` of struct rx_sec_acceptor, ctx being a struct rxkad_server: index 0 gives
 * rxnull, 2 and 3 rxkad, every other NULL. */
struct rx_sec *rxkad_accept(void *server, uint8_t index);

/* The 8-byte session key that both ends make of a Kerberos session key: a DES key as it is, others
 * through HMAC-MD5 (rxkad-k5+kdf).  AFS_EBADTICKET: an enctype or length that is not accepted;
 * AFS_ENOMEM. */
afs_err rxkad_kdf(int32_t enctype, const uint8_t *key, size_t len, uint8_t out[8]);

/* Sets odd parity in each byte of a DES key; false when the key is weak or semi-weak. */
bool rxkad_des_fix(uint8_t key[8]);
