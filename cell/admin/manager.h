/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A cache manager that serves tools over UDP (RMTSYS): the one that AFSSERVER names, of afscell or another
 * implementation.  It takes the caller's word for his uid, so it belongs on loopback.
 *
 * Source: protocol pioctl.md §4, §5. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/mem.h"
#include "cell/keys/keys.h"

struct manager;
/* Does the environment name one? */
bool manager_named(void);
/* The named one.  AFS_ENOENT: none is, or the name has no address. */
afs_err manager_open(struct manager **out, struct buf *why);
void manager_close(struct manager *m);
DEFINE_CLEANUP_PTR(manager, struct manager, manager_close)

struct manager_token {
	char cell[RX_NAME_MAX];
	int32_t afs_id;       /* when id_told */
	bool id_told;
	bool rxkad, rxgk;        /* classes */
	enum rx_sec_level level; /* of rxgk */
	wall_ns begins, expires;
};
/* `afs_id` 0: not known.  All of these wait for the manager; `why` gets a sentence.  AFS_ENOENT: it does not know the cell, or there is
 * no such token; AFS_EDEAD: it does not answer. */
afs_err manager_put(struct manager *m, const struct keys_token *token, int32_t afs_id, struct buf *why);
/* The i-th token of the caller; AFS_ENOENT past the end. */
afs_err manager_get(struct manager *m, uint32_t i, struct manager_token *out, struct buf *why);
/* `cell` NULL: all. */
afs_err manager_drop(struct manager *m, const char *cell, struct buf *why);
