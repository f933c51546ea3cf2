/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of this folder. */
#pragma once
#include "cell/admin/admin.h"
#include "cell/keys/keys.h"
#include "rx/io/port.h"

enum { ADMIN_DB_MAX = 16, ADMIN_FILE_MAX = 4 << 20 };

/* --- where.c: CellServDB ---------------------------------------------------------------------- */

struct where_cell {
	char name[RX_NAME_MAX];
	uint32_t ips[ADMIN_DB_MAX]; /* host order */
	size_t n;
};
/* The cell `want` in the text of a CellServDB.  `want` may be an unambiguous beginning of a name; a whole
 * name wins.  AFS_ENOENT; AFS_EINVAL: it may mean several; AFS_ECORRUPT: a line of the cell makes no
 * sense; `why` says which. */
afs_err where_parse(const char *text, size_t len, const char *want, struct where_cell *out, struct buf *why);
/* Reads `dir`/CellServDB and, when `want` is NULL, `dir`/ThisCell. */
afs_err where_find(const char *dir, const char *want, struct where_cell *out, struct buf *why);
/* A whole file of at most ADMIN_FILE_MAX bytes; AFS_ENOENT without a word in `why`. */
afs_err where_read(const char *path, struct buf *out, struct buf *why);

/* --- keyfile.c: KeyFileExt -------------------------------------------------------------------- */

/* Adds each rxkad_krb5 key of a KeyFileExt to `keys`; keys of other types are passed over.
 * AFS_ECORRUPT; errors of keys_add. */
afs_err keyfile_parse(const uint8_t *p, size_t len, struct keys *keys);

/* --- token.c -------------------------------------------------------------------------------- */

struct token_want {
	const struct admin_config *config;
	const char *cell;
	struct rpc_port *port; /* to ask a cache manager from, and servers */
	const uint32_t *ips;   /* database servers */
	size_t ip_count;
	uint16_t server_port;  /* of the negotiation */
};
/* A token, or none: then `who` says why not.  AFS_OK with none: go on without.  Errors are
 * for localauth only. */
afs_err token_find(const struct token_want *want, struct keys_token *out, struct buf *who, struct buf *why);
