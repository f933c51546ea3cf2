/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tokens as bytes: the set that tools hand to a cache manager and get from it (SETTOK2, GETTOK2), which is also the
 * payload of Linux's key type rxrpc.
 *
 * rxgk's are written as Linux has them (type 6, times in 100 ns), before rxkad's (type 2): Linux uses the first
 * whose class it knows.
 *
 * Source: protocol rx-security.md §10.2. */
#pragma once
#include "cell/base/mem.h"
#include "rx/sec/token.h"

enum { TOKEN_BLOB_MAX = 16384 };

/* What is there of *t, for `cell`; `viceid` is rxkad's.  AFS_ETICKETLEN: does not fit; AFS_ENOENT: there is no token.
 * Whoever wipes keys wipes *out too. */
afs_err token_blob_put(const struct rx_token *t, const char *cell, int32_t viceid, uint8_t *out, size_t cap, size_t *len);

/* The first of each class in a set of foreign bytes; further ones and other classes are passed over.  Bytes are in `p`
 * and in `arena`.  AFS_EDECODE; AFS_ENOENT: no token of these classes. */
struct token_blob {
	char cell[RX_NAME_MAX];
	struct rx_token token;
	int32_t viceid;   /* rxkad's */
};
afs_err token_blob_get(const uint8_t *p, size_t n, struct arena *arena, struct token_blob *out);
