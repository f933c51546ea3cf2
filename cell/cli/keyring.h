/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's keyring, where Linux's own AFS client (kafs) looks for tokens.
 *
 * Source: protocol rx-security.md §10.2; keyrings(7). */
#pragma once
#include "cell/base/buf.h"
#include "cell/keys/keys.h"

/* A key of type rxrpc named afs@CELL in the caller's session keyring; replaces one that is there.  `why` gets a
 * sentence.  AFS_ENODEV: this kernel has no such keys; AFS_ETICKETLEN; AFS_EACCESS and other errors of add_key(2). */
afs_err keyring_add(const struct keys_token *token, struct buf *why);
