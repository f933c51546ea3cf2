/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the file server asks from outside.  cell/adapters.c answers with the protection database of
 * this process, another cell's over the network, or a test's table.
 *
 * All functions may be called from any worker thread at the same time.  They may wait (a database,
 * a network), so the file server calls them without a lock of its own.  None may be NULL unless it
 * says so.
 *
 * Source: protocol fileserver.md §6, §14; protection.md. */
#pragma once
#include "cell/base/err.h"
#include "cell/proto/fid.h"
#include "rx/rpc/rpc.h"

/* A current protection subdomain: ids that an ACL entry may match, ascending, without repeats. */
struct fs_cps {
	int32_t *ids; /* heap; fs_cps_fini */
	uint32_t n;
};
enum { FS_CPS_MAX = 65536 }; /* more is refused as an answer */

static inline void fs_cps_fini(struct fs_cps *c)
{
	mem_free(c->ids);
	*c = (struct fs_cps){0};
}

/* Who a connection's client is to this cell. */
struct fs_identity {
	int32_t id;        /* AFS_ANONYMOUS for a caller without an entry */
	bool admin;        /* member of system:administrators, or localauth */
	struct fs_cps cps; /* own id, groups, AFS_ANYUSER, AFS_AUTHUSER where they apply */
};

struct fs_people_port {
	void *ctx;
	/* The identity behind a proven (or anonymous) caller; the file server owns out->cps.
	 * AFS_EAGAIN: cannot be told now (the caller is refused with -1001 and may retry).
	 * An authenticated caller whom the cell does not know is the anonymous identity, with success. */
	afs_err (*identify)(void *ctx, const struct rx_caller *caller, struct fs_identity *out);
	/* Groups that hold the host at `ip` (host order) as a member; often empty. */
	afs_err (*host_groups)(void *ctx, uint32_t ip, struct fs_cps *out);
	/* Moves whenever an answer of the two above may have changed; answers are kept until then,
	 * and two hours at most.  NULL: it cannot be told. */
	uint64_t (*generation)(void *ctx);
	/* Names of ACL entries.  AFS_ENOENT: no such id, no such name. */
	afs_err (*name_of)(void *ctx, int32_t id, char out[AFS_PRNAME_MAX + 1]);
	afs_err (*id_of)(void *ctx, const char *name, int32_t *id);
	/* May this caller do what the server's own list of administrators may (FlushCPS)? */
	bool (*superuser)(void *ctx, const struct rx_caller *caller);
};

/* The audit trail; called on the call's thread after every call.  done may be NULL. */
struct fs_audit_port {
	void *ctx;
	void (*done)(void *ctx, const struct rpc_call *call, const void *in, afs_err err,
		int32_t code, int64_t took_ns);
};

struct fs_ports {
	struct fs_people_port people;
	struct fs_audit_port audit;
};
