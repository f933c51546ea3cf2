/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxkad, both ends, levels clear, auth and crypt; tickets of types 213 and 256 (and 0-255 refused
 * unless the key finder knows a DES key).  Source: protocol rx-security.md §3-5. */
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
	enum rx_sec_level least; /* demanded in the challenge */
};
struct rx_sec *rxkad_server_new(const struct rxkad_server *server, uint8_t index);

/* RFC-less key derivation of rxkad-k5+kdf.  AFS_EBADTICKET for enctypes that are not accepted. */
afs_err rxkad_kdf(int32_t enctype, const uint8_t *key, size_t len, uint8_t out[8]);
