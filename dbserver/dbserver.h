/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The database servers of a cell: VL (service 52, port 7003) and PT (service 73, port 7002), each
 * with Ubik's VOTE and DISK as a one-site quorum answers them.
 *
 * cell.c opens each database, asks for its services and puts them on a port:
 *
 *   TRY(pt_open(&config, &pt));
 *   struct rpc_service services[DBSERVER_SERVICES];
 *   size_t n = pt_services(pt, services);     ... set `least` by policy, open the port ...
 *
 * and closes the port before the database.  Both live in one file, cell.db, each with two
 * connections: one for changes, one for reading, so that a lookup never waits for a commit.
 *
 * The other functions are for this process: reconciliation, the console and, through
 * cell/adapters.c, the file server.  They act as the cell itself: no rights are judged.  Any thread may
 * call them.  They wait for the disk, never for a network.  What they do is what the procedure of
 * that name does on the wire, with the same errors.
 *
 * Errors of all: AFS_ENOMEM, and what cell/db/db.h says of a disk (AFS_EIO AFS_ENOSPC AFS_ECORRUPT).
 *
 * Source: protocol vldb.md, protection.md, ubik.md. */
#pragma once
#include "cell/db/db.h"
#include "cell/keys/keys.h"
#include "cell/proto/pt.h"
#include "cell/proto/vl.h"
#include "rx/rpc/rpc.h"

enum { DBSERVER_SERVICES = 3 };

/* What the databases ask from outside. */
struct dbserver_ports {
	void *ctx;
	/* The AFS name of a caller (cell/keys: keys_afs_name). */
	void (*afs_name)(void *ctx, const struct rx_caller *caller, struct keys_name *out);
	/* The cell's rule for administrators of servers: localauth or listed.  VL's changes ask it; PT has
	 * its own group for that. */
	bool (*superuser)(void *ctx, const struct rx_caller *caller);
	/* After each call: audit and statistics.  NULL: none. */
	void (*done)(void *ctx, const struct rpc_call *call, const void *in, afs_err err,
		int32_t code, int64_t took_ns);
};

struct dbserver_config {
	const char *path; /* cell.db; made when missing */
	enum db_sync sync;
	const struct keys_realms *realms; /* which realms are local; outlives the database */
	uint32_t ip;                      /* of this server, as udebug shows it; host order */
	struct dbserver_ports ports;
};

/* --- locations ------------------------------------------------------------------------------- */

struct vl;
afs_err vl_open(const struct dbserver_config *config, struct vl **out);
void vl_close(struct vl *vl);
DEFINE_CLEANUP_PTR(vl, struct vl, vl_close)
/* Fills VL, VOTE and DISK; gives their number. */
size_t vl_services(struct vl *vl, struct rpc_service out[DBSERVER_SERVICES]);

/* A server's addresses, host order, first the preferred one.  AFS_EVMULTIADDR: they belong to several
 * other servers; AFS_ERANGE: no address that counts. */
afs_err vl_server_register(
	struct vl *vl, const uint8_t uuid[16], const uint32_t *ips, size_t n);
/* A fresh run of `n` volume ids, the first in *first. */
afs_err vl_ids_reserve(struct vl *vl, uint32_t n, uint32_t *first);
/* serverNumber is an address of a server.  AFS_EIDEXIST, AFS_ENAMEEXIST, AFS_EBADNAME,
 * AFS_EVBADSERVER, AFS_EBADPART, AFS_EVBADSITEFLAG. */
afs_err vl_volume_create(struct vl *vl, const struct nvldbentry *entry);
/* By name (suffixes .readonly and .backup are dropped) or decimal id.  AFS_ENOENT, AFS_EBADNAME. */
afs_err vl_volume_find(struct vl *vl, const char *name_or_id, struct nvldbentry *out);
afs_err vl_volume_find_id(struct vl *vl, uint32_t id, int voltype, struct nvldbentry *out);
/* The entry with that RW id becomes `entry`; a lock stays. */
afs_err vl_volume_replace(struct vl *vl, uint32_t rw_id, const struct nvldbentry *entry);
afs_err vl_volume_delete(struct vl *vl, uint32_t id);
/* All entries: *cursor is 0 at first; AFS_ENOENT when there is no other. */
afs_err vl_volume_next(struct vl *vl, int64_t *cursor, struct nvldbentry *out);

/* --- protection ------------------------------------------------------------------------------- */

struct pt;
afs_err pt_open(const struct dbserver_config *config, struct pt **out);
void pt_close(struct pt *pt);
DEFINE_CLEANUP_PTR(pt, struct pt, pt_close)
size_t pt_services(struct pt *pt, struct rpc_service out[DBSERVER_SERVICES]);

struct pt_entry {
	int32_t id, owner, creator; /* negative: groups */
	int32_t flags;              /* privacy byte, defaults filled in */
	int32_t ngroups, nusers;    /* quotas */
	int32_t cellid;             /* of a foreign user: its system:authuser@realm */
	int32_t count;              /* members of a group, memberships of a user */
	char name[PT_NAME_MAX + 1];
};
afs_err pt_entry_find(struct pt *pt, int32_t id, struct pt_entry *out); /* AFS_ENOENT */
/* All entries: *cursor is 0 at first; AFS_ENOENT when there is no other. */
afs_err pt_entry_next(struct pt *pt, int64_t *cursor, struct pt_entry *out);
/* A name as the wire has it: lower case is the caller's matter, @ a local realm is dropped.
 * AFS_ENOENT. */
afs_err pt_id_of(struct pt *pt, const char *name, int32_t *id);
afs_err pt_name_of(struct pt *pt, int32_t id, char out[PT_NAME_MAX + 1]);

/* `id` 0: the next free one.  Names are folded to lower case.  AFS_ENAMEEXIST, AFS_EIDEXIST,
 * AFS_EBADNAME, AFS_ENOIDS. */
afs_err pt_user_add(struct pt *pt, const char *name, int32_t id, int32_t *out);
/* `owner` 0: system:administrators.  A name without owner's prefix is allowed when it has no colon. */
afs_err pt_group_add(struct pt *pt, const char *name, int32_t id, int32_t owner, int32_t *out);
afs_err pt_entry_delete(struct pt *pt, int32_t id);
afs_err pt_entry_set_flags(struct pt *pt, int32_t id, int32_t flags);
/* As ChangeEntry: NULL, 0 leave as it is. */
afs_err pt_entry_change(
	struct pt *pt, int32_t id, const char *name, int32_t owner, int32_t newid);
/* AFS_EIDEXIST: is a member already; AFS_ENOENT: no such member, group or membership. */
afs_err pt_member_add(struct pt *pt, int32_t member, int32_t group);
afs_err pt_member_remove(struct pt *pt, int32_t member, int32_t group);

/* Ids, ascending, without repeats. */
struct pt_ids {
	int32_t *v; /* heap */
	uint32_t n;
};
static inline void pt_ids_cleanup(struct pt_ids *l) { mem_free(l->v); }
afs_err pt_members(struct pt *pt, int32_t id, struct pt_ids *out); /* or memberships of a user */

struct pt_identity {
	int32_t id; /* AFS_ANONYMOUS when the name has no entry */
	bool admin; /* in system:administrators and of this cell; or the cell itself */
	struct pt_ids cps;
};
/* Whom a proven (or anonymous) name stands for: own id, groups and their groups, anyuser, authuser. */
afs_err pt_identify(struct pt *pt, const struct keys_name *name, struct pt_identity *out);
afs_err pt_host_groups(struct pt *pt, uint32_t ip, struct pt_ids *out);
/* Moves whenever an answer of the two above may have changed. */
uint64_t pt_generation(struct pt *pt);
