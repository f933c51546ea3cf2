/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a client has to prove itself to one cell with: a token of rxkad, of rxgk, or one of each.
 *
 * A cache manager keeps both where it got both: stock tools that ask it for a token know only rxkad's.  Connections
 * are made with rxgk's when there is one; who demands a class has no token of another. */
#pragma once
#include "rx/sec/rxgk.h"
#include "rx/sec/rxkad.h"

struct rx_token {
	struct rxkad_token kad; /* ticket_len 0: none */
	struct rxgk_token gk;   /* len 0: none; of index 6 */
};
static inline bool rx_token_has_kad(const struct rx_token *t) { return t->kad.ticket_len != 0; }
static inline bool rx_token_has_gk(const struct rx_token *t) { return t->gk.len != 0; }
/* Neither: calls are anonymous. */
static inline bool rx_token_any(const struct rx_token *t) { return rx_token_has_kad(t) || rx_token_has_gk(t); }
/* "clear", "auth", "crypt". */
const char *rx_level_text(enum rx_sec_level level);
/* When the class that connections are made with ends; 0: never. */
wall_ns rx_token_expires(const struct rx_token *t);

/* The client side of one connection: rxgk at its token's own level, else rxkad at `level`; `now` makes the start
 * of rxgk's keys.  NULL: memory, a token that no client can use, or none. */
struct rx_sec *rx_token_client(const struct rx_token *t, enum rx_sec_level level, wall_ns now, const struct rxgk_random *random);
