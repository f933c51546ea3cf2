/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rows of the location database: entries with their sites, servers with their addresses.
 *
 * Functions that take a struct db work on either connection, inside whatever transaction the caller
 * has open; those that write need a struct vl_write. */
#pragma once
#include "dbserver/dbserver.h"
#include "cell/db/memo.h"
#include "dbserver/ubik/ubik.h"

#include <stdatomic.h>

enum { VL_OP_FIRST = 501, VL_OPS = 50, VL_MEMO_BYTES = 48 << 20 };

struct vl {
	struct db *w, *r; /* changes; reading */
	struct dbserver_ports ports;
	struct ubik_site ubik;
	struct memo *memo; /* rows that were asked for */
	wall_ns started;
	atomic_uint requests[VL_OPS], aborts[VL_OPS]; /* by opcode - VL_OP_FIRST, for GetStats */
};

/* A server slot.  A plain one is known only by the address that an entry gave; a registered one has
 * a UUID and up to 15 addresses. */
struct vl_server {
	uint8_t slot; /* 1..254 */
	bool registered;
	uint8_t uuid[16];
	int32_t uniq; /* grows when the addresses change */
	uint32_t n, ip[VL_ADDRS_MAX];
};

struct vl_site {
	uint8_t slot, partition, flags;
	uint32_t ip; /* the server's first address */
	bool registered;
	uint8_t uuid[16];
	int32_t uniq;
};

struct vl_row {
	int64_t n; /* number of the row: what ListEntry calls an index */
	char name[VL_NAME_MAX + 1];
	uint32_t id[3]; /* RW, RO, BK; 0: none */
	uint32_t clone;
	int32_t flags;
	int64_t lock_time; /* seconds; 0: not locked */
	unsigned sites;
	struct vl_site site[VL_SITES_MAX]; /* last: what is behind `sites` is nothing */
};

/* A change: the writers' lock and a transaction of the writing connection, let go at the end of the scope; without
 * vl_write_commit() nothing has happened. */
struct vl_write {
	struct vl *vl;
	struct db *db;
	struct db_tx tx;
};
afs_err vl_write_begin(struct vl *vl, struct vl_write *w);
afs_err vl_write_commit(struct vl_write *w);
void vl_write_end(struct vl_write *w);
static inline void vl_write_cleanup(struct vl_write *w) { vl_write_end(w); }

/* Reading: the lock of the reading connection and one snapshot. */
struct vl_read {
	struct db *db;
	struct db_tx tx;
	uint64_t since; /* memo_since() when it began */
};
afs_err vl_read_begin(struct vl *vl, struct vl_read *r);
void vl_read_end(struct vl_read *r);
static inline void vl_read_cleanup(struct vl_read *r) { vl_read_end(r); }

/* --- entries: vl_store.c.  AFS_ENOENT: none. */
afs_err vl_row_by_number(struct db *db, int64_t n, struct vl_row *out);
afs_err vl_row_by_id(struct db *db, uint32_t id, int32_t voltype, struct vl_row *out);
afs_err vl_row_by_name(struct db *db, const char *name, size_t len, struct vl_row *out);
/* The first row behind number `after`. */
afs_err vl_row_next(struct db *db, int64_t after, struct vl_row *out);
/* The largest row number, 0 when there is none. */
afs_err vl_row_last(struct db *db, int64_t *n);
afs_err vl_row_count(struct db *db, uint32_t by_type[3]);
/* Ids and name must be free or the row's own: AFS_EIDEXIST, AFS_ENAMEEXIST.  n 0 makes a row. */
afs_err vl_row_save(struct vl_write *w, const struct vl_row *row);
afs_err vl_row_delete(struct vl_write *w, int64_t n);
afs_err vl_max_get(struct db *db, uint32_t *max);
afs_err vl_max_set(struct vl_write *w, uint32_t max);
/* The largest id in use of [from, from + n); AFS_ENOENT. */
afs_err vl_id_last_used(struct db *db, uint32_t from, uint32_t n, uint32_t *id);

/* --- servers: vl_server.c.  AFS_ENOENT: none. */
afs_err vl_server_by_slot(struct db *db, int slot, struct vl_server *out);
afs_err vl_server_by_ip(struct db *db, uint32_t ip, struct vl_server *out);
afs_err vl_server_by_uuid(struct db *db, const uint8_t uuid[16], struct vl_server *out);
/* The server of an address that an entry names; a plain slot is made for a new one.
 * AFS_EVBADSERVER: impossible address, or all slots are taken. */
afs_err vl_server_for_ip(struct vl_write *w, uint32_t ip, struct vl_server *out);
afs_err vl_server_register_in(
	struct vl_write *w, const uint8_t uuid[16], const uint32_t *ips, size_t n);
afs_err vl_server_change_ip(struct vl_write *w, uint32_t from, uint32_t to);
afs_err vl_server_remove(struct vl_write *w, uint32_t ip);

/* --- the wire's shapes: vl_entry.c */
bool vl_name_ok(const char *name, size_t len);
void vl_row_to_o(const struct vl_row *row, struct vldbentry *out);
void vl_row_to_n(const struct vl_row *row, struct nvldbentry *out);
void vl_row_to_u(const struct vl_row *row, struct uvldbentry *out);
void vl_entry_o_to_n(const struct vldbentry *in, struct nvldbentry *out);
/* Judge an entry and put it into `row` (n and lock_time stay).  `sites_max` is 8 or 13. */
afs_err vl_row_from_n(
	struct vl_write *w, const struct nvldbentry *in, int sites_max, struct vl_row *row);

/* --- what the procedures do: vl_verbs.c; the functions of dbserver.h use them too */
afs_err vl_find_by_name(struct db *db, const char *name, size_t len, struct vl_row *out);
afs_err vl_create(struct vl *vl, const struct nvldbentry *entry, int sites_max);
afs_err vl_delete(struct vl *vl, uint32_t id, int32_t voltype);
afs_err vl_replace(struct vl *vl, uint32_t id, int32_t voltype, const struct nvldbentry *entry,
	int sites_max, int32_t release);
afs_err vl_update(struct vl_write *w, struct vl_row *row, const struct VldbUpdateEntry *up,
	int32_t release);
afs_err vl_lock(struct vl *vl, uint32_t id, int32_t voltype, int32_t oper, wall_ns now);
afs_err vl_unlock(struct vl *vl, uint32_t id, int32_t voltype, int32_t release);
afs_err vl_reserve(struct vl *vl, uint32_t bump, uint32_t *first);

/* --- lists: vl_list.c */
struct vl_filter {
	uint32_t mask; /* VLLIST_ */
	int slot;      /* VLLIST_SERVER: asks the database, which may be NULL without */
	int32_t partition, flag;
};
/* AFS_ENOENT: no such server, so nothing matches. */
afs_err vl_filter_init(
	struct db *db, const struct VldbListByAttributes *attr, struct vl_filter *out);
bool vl_filter_match(const struct vl_filter *f, const struct vl_row *row);
/* ListAttributesN2's rule; NULL: no pattern.  Gives matchindex, or -1. */
struct vl_pattern;
int32_t vl_filter_match_n2(
	const struct vl_filter *f, const struct vl_pattern *pattern, const struct vl_row *row);

/* --- patterns: vl_pattern.c.  What POSIX calls a basic regular expression, anchored at both ends,
 * without groups, back references and counts: characters, `.`, `[...]`, each with or without `*`.  Matching
 * takes time in proportion to name times pattern, whatever they are. */
enum { VL_PATTERN_ITEMS = 64 };
struct vl_pattern {
	unsigned n;
	struct {
		uint64_t set[4]; /* of byte values */
		bool star;
	} item[VL_PATTERN_ITEMS];
};
/* AFS_EBADNAME: not one of those. */
afs_err vl_pattern_init(struct vl_pattern *p, const char *text, size_t len);
bool vl_pattern_match(const struct vl_pattern *p, const char *s, size_t len);
