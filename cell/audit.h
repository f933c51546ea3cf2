/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The audit trail: a JSON line for every RPC that changes something or was refused while trying to:
 * time, who, from where, service, call, arguments (bounded, no secrets), result.  One write per line;
 * files are rotated by size.  Parts get audit_call with a struct audit as their `done`.
 * Safe from any thread. */
#pragma once
#include "rx/rpc/rpc.h"

struct audit;
struct audit_config {
	const char *file;
	int64_t max_size; /* bytes of one file, then file -> file.1 -> ... */
	unsigned keep;    /* rotated files kept */
};
/* AFS_EACCESS, AFS_EIO ...: the file cannot be written; logged. */
afs_err audit_open(const struct audit_config *config, struct audit **out);
void audit_close(struct audit *a);

/* The line for one call, if it is one that changes things; `audit` may be NULL. */
void audit_call(void *audit, const struct rpc_call *call, const void *in, afs_err err, int32_t code,
	int64_t took_ns);
/* A line for something that this cell did itself (reconcile), `what` as in "user.created". */
void audit_local(struct audit *a, const char *who, const char *what, const char *object, afs_err err);
