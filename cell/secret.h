/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where a declared user's password comes from: a file, the environment, the terminal.  Held in
 * memory only as long as needed and wiped then; never logged. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/conf/conf.h"

/* The user's password, for the caller to free with secret_free.  NULL with AFS_OK: a random one is to be
 * made.  AFS_ENOENT: file or variable is missing; AFS_EACCESS; AFS_EINVAL: empty, or two different
 * answers at the prompt; AFS_ENODEV: there is no terminal to ask at.  Waits for the person. */
afs_err secret_get(const struct conf_user *user, char **out, struct buf *why);
/* The password that `who` has, asked for once at the terminal; the caller's (secret_free).  AFS_ENODEV: there
 * is no terminal; AFS_EINVAL: none was given. */
afs_err secret_ask(const char *who, char **out, struct buf *why);
/* Has the configuration a password that an existing user can be compared with (no question asked)? */
bool secret_is_given(const struct conf_user *user);
void secret_free(char *s);
static inline void secret_cleanup(char **s) { secret_free(*s); }
