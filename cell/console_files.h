/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Files for the console's people, through the cell's own cache manager.  Each session is an identity of its own
 * there (a PAG that no process has) and holds that person's token and nothing else, so that file servers judge
 * him; who signed in by a link has no token and is anybody.  PAGs are used again, by one session at a time.
 * Safe from any thread; the calls wait for servers. */
#pragma once
#include "cell/cell_parts.h"

#include <jansson.h>

enum { CONSOLE_PATH_MAX = 4096, CONSOLE_NAMES_MAX = 200000, CONSOLE_PAGE_MAX = 500 };

/* `token` NULL: nobody's.  0: this machine has no cache manager, or out of memory. */
uint32_t console_files_enter(struct cell *c, const struct keys_token *token, const char *name);
void console_files_leave(struct cell *c, uint32_t pag); /* forgets his token; 0 is nothing */

/* One file by its path from the root of AFS, and when it is a directory its names from the `from`th, at most `n`, in
 * the order of their bytes: {path, cell, fid, type, owner, mode, length, version, rights, anonymous, acl: {text,
 * positive: [{name, rights}], negative}, volume: {...}, names: [{name, type, ...}], total}.  What he may not read is null, with
 * the reason in acl_error or names_error.  *out is the caller's.  Errors add a sentence to `why`. */
afs_err console_file_show(struct cell *c, uint32_t pag, const char *path, size_t from, size_t n, json_t **out, struct buf *why);
/* Store the access list {positive: [{name, rights: "rl"}], negative} unless it is no longer the text `was`.
 * AFS_EBUSY: it is not; AFS_EINVAL: no list, or too long. */
afs_err console_acl_store(struct cell *c, uint32_t pag, const char *path, const char *was, const json_t *acl, struct buf *why);
/* As web.h's `make`.  AFS_EINVAL: no name, or no volume's name; what the file server refuses. */
afs_err console_make(struct cell *c, uint32_t pag, const char *path, const char *name, const char *volume, bool rw, struct buf *why);
