/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxgk, both ends: index 6 as Linux kafs and AuriStor speak it, and index 4 as OpenAFS's servers do
 * among themselves; levels clear, auth and crypt, encryption types 17-20 and Kerberos's Camellia.
 *
 * What a token says is the token reader's matter (cell/keys): here it is bytes that give a master key,
 * a level and a caller.  Each connection has transport keys of its own, a new one after 2^bytelife
 * bytes or `lifetime` seconds; the packet's checksum field tells which, and one before and one after
 * the current are accepted, the next only from who can use it.
 *
 * Source: protocol rx-security.md §11. */
#pragma once
#include "rx/sec/etype.h"
#include "rx/sec/security.h"

enum { RXGK_TOKEN_MAX = 12000, RXGK_NONCE = 20 };

/* Fills with bytes that nobody can guess: nonces and confounders.  From any thread. */
struct rxgk_random {
	void (*fill)(void *ctx, void *out, size_t n);
	void *ctx;
};

/* What both ends know of a token. */
struct rxgk_terms {
	int32_t etype;
	enum rx_sec_level level;
	uint32_t lifetime; /* seconds of a transport key; 0: no limit */
	uint32_t bytelife; /* log2 of its bytes; 0: no limit */
	wall_ns expires;   /* 0: never */
	uint8_t k0[ETYPE_KEY_MAX];
};

struct rxgk_token {
	struct rxgk_terms terms;
	const uint8_t *token; /* the caller's; copied by rxgk_client_new */
	size_t len;           /* at most RXGK_TOKEN_MAX */
};

/* The client side of one connection of index 4 or 6.  `start` is any number that the client did not use
 * before with this token, 100 ns units by custom.  NULL: memory, an unknown etype, level or index. */
struct rx_sec *rxgk_client_new(const struct rxgk_token *token, uint8_t index, uint64_t start,
	const struct rxgk_random *random);

/* How the server side reads a token; given by cell/keys.  Must not wait.  On AFS_OK writes the terms and
 * the caller's names. */
struct rxgk_ticket {
	struct rxgk_terms terms;
	char name[RX_NAME_MAX], instance[RX_NAME_MAX], cell[RX_NAME_MAX];
};
typedef afs_err rxgk_read_token(
	void *ctx, uint8_t index, const uint8_t *token, size_t len, wall_ns now, struct rxgk_ticket *out);

struct rxgk_server {
	rxgk_read_token *read_token;
	void *ctx;
	struct rxgk_random random;
	enum rx_sec_level least;
};
/* The server side of one connection; `server` must outlive it.  NULL: memory, or an index that is
 * neither 4 nor 6. */
struct rx_sec *rxgk_server_new(const struct rxgk_server *server, uint8_t index);
