/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The protection database from inside: rows, names, rights, verbs.
 *
 * A change goes: who asks (pt_who_of), what it is about (rows), may he (pt_may gives leave), then a row
 * function, each of which wants the leave that pt_may gave for that verb and entry: nothing is written
 * without it.
 *
 * Functions that take a struct db work on either connection, inside the transaction that is open. */
#pragma once
#include "dbserver/dbserver.h"
#include "cell/db/memo.h"
#include "dbserver/ubik/ubik.h"

#include <stdatomic.h>

struct pt {
	struct db *w, *r; /* changes; reading */
	struct dbserver_ports ports;
	const struct keys_realms *realms;
	struct ubik_site ubik;
	atomic_uint_least64_t generation;
	struct memo *memo; /* answers to what is asked often */
};
enum { PT_MEMO_BYTES = 48 << 20 };

/* A change: the writers' lock and a transaction of the writing connection; without pt_write_commit() nothing has
 * happened. */
struct pt_write {
	struct pt *pt;
	struct db *db;
	struct db_tx tx;
};
afs_err pt_write_begin(struct pt *pt, struct pt_write *w);
afs_err pt_write_commit(struct pt_write *w);
void pt_write_end(struct pt_write *w);
static inline void pt_write_cleanup(struct pt_write *w) { pt_write_end(w); }

struct pt_read {
	struct db *db;
	struct db_tx tx;
	uint64_t since; /* memo_since() when it began */
};
afs_err pt_read_begin(struct pt *pt, struct pt_read *r);
void pt_read_end(struct pt_read *r);
static inline void pt_read_cleanup(struct pt_read *r) { pt_read_end(r); }

/* --- who and may: pt_may.c ------------------------------------------------------------------- */

struct pt_who {
	int32_t id;         /* AFS_ANONYMOUS: nobody we know; AFS_ADMINISTRATORS: the cell itself */
	bool authenticated; /* proved a name, known here or not */
	bool foreign;       /* of another realm: never an administrator, whatever group holds it */
	bool admin;
	char name[3 * RX_NAME_MAX]; /* lower case; empty for an anonymous one */
};
/* The cell itself: -localauth, and this process. */
extern const struct pt_who pt_who_cell;
afs_err pt_who_of_name(struct db *db, const struct keys_name *name, struct pt_who *out);

enum pt_verb {
	/* reading an entry */
	PTV_STATUS, PTV_OWNED, PTV_MEMBERSHIP,
	/* changing one */
	PTV_ADD, PTV_REMOVE, PTV_DELETE, PTV_CHANGE, PTV_PRIVACY,
	/* administrators only */
	PTV_DUMP, PTV_REHASH, PTV_RENUMBER, PTV_QUOTA, PTV_MAX, PTV_ALL, PTV_ORPHANS, PTV_NEW_USER,
	/* the entry is the owner that the group will have */
	PTV_NEW_GROUP,
	/* a foreign principal registers itself; no entry */
	PTV_NEW_SELF,
	PTV_COUNT
};
/* Leave to do one verb to one entry, made by pt_may only. */
struct pt_leave {
	enum pt_verb verb;
	int32_t id; /* 0 for verbs without an entry */
};
/* The one judge.  `entry` may be NULL for verbs that are about none.  AFS_EPERM: no. */
afs_err pt_may(struct db *db, const struct pt_who *who, enum pt_verb verb,
	const struct pt_entry *entry, struct pt_leave *leave);

/* --- names: pt_name.c ------------------------------------------------------------------------- */

bool pt_name_user_ok(const char *name); /* a local user, or a foreign one's whole name */
bool pt_name_group_ok(const char *name); /* shape only: nothing, or one owner before one colon */
/* Lower case; AFS_EBADNAME when it does not fit. */
afs_err pt_name_fold(const char *p, size_t len, char out[PT_NAME_MAX + 1]);
/* The realm behind @, or NULL. */
const char *pt_name_realm(const char *name);
bool pt_realm_is_local(const struct keys_realms *realms, const char *realm);
/* The part of an owner's name that its groups' names begin with. */
void pt_name_prefix(const struct pt_entry *owner, char out[PT_NAME_MAX + 1]);
#define PT_AUTHUSER_AT "system:authuser@"

/* --- rows: pt_store.c ------------------------------------------------------------------------- */

afs_err pt_row_by_id(struct db *db, int32_t id, struct pt_entry *out);
afs_err pt_row_by_name(struct db *db, const char *name, size_t len, struct pt_entry *out);
/* The first row that was made after number *n. */
afs_err pt_row_next(struct db *db, int64_t *n, struct pt_entry *out);
/* The number of the entry's row: for pt_row_next(), and what stands for a position in a file. */
afs_err pt_row_number_of(struct db *db, int32_t id, int64_t *n);
afs_err pt_row_times_of(struct db *db, int32_t id, int64_t *created, int64_t *changed); /* seconds */
afs_err pt_row_id_of(struct db *db, const char *name, size_t len, int32_t *id);
afs_err pt_row_name_of(struct db *db, int32_t id, char out[PT_NAME_MAX + 1]);
afs_err pt_max_get(struct db *db, int32_t *max_user, int32_t *min_group);

/* Lists, ascending.  AFS_ETOOMANY past `max`. */
struct pt_list {
	int32_t *v; /* heap */
	uint32_t n, cap;
};
static inline void pt_list_cleanup(struct pt_list *l) { mem_free(l->v); }
afs_err pt_list_add(struct pt_list *l, int32_t id, uint32_t max);
void pt_list_sort(struct pt_list *l); /* and drops repeats */
afs_err pt_groups_of(struct db *db, int32_t member, uint32_t max, struct pt_list *l);
afs_err pt_members_of(struct db *db, int32_t group, uint32_t max, struct pt_list *l);
/* The groups of a member, and all that these are in. */
afs_err pt_groups_above(struct db *db, int32_t member, uint32_t max, struct pt_list *l);
/* Groups with that owner behind id `after`, at most `max`; *more: there are others. */
afs_err pt_owned_by(
	struct db *db, int32_t owner, int64_t after, uint32_t max, struct pt_list *l, bool *more);
/* Own id, groups above, anyuser, authuser (unless foreign or nobody). */
afs_err pt_cps(struct db *db, const struct pt_entry *e, uint32_t max, struct pt_list *l);
afs_err pt_host_cps(struct db *db, uint32_t ip, uint32_t max, struct pt_list *l);
/* Through groups too. */
afs_err pt_is_member(struct db *db, int32_t member, int32_t group, bool *yes);

afs_err pt_row_insert(struct pt_write *w, struct pt_leave leave, const struct pt_entry *e);
/* Everything but id and memberships of the entry with e->id. */
afs_err pt_row_update(struct pt_write *w, struct pt_leave leave, const struct pt_entry *e);
/* Quota of who makes groups: a consequence of other verbs, so without leave of its own. */
afs_err pt_row_quota_add(struct pt_write *w, int32_t id, int32_t d_ngroups, int32_t set_nusers);
/* With its memberships; what it owned has no owner then. */
afs_err pt_row_delete(struct pt_write *w, struct pt_leave leave, int32_t id);
/* In every place where the id stands. */
afs_err pt_row_renumber(struct pt_write *w, struct pt_leave leave, int32_t id, int32_t newid);
afs_err pt_row_member_add(struct pt_write *w, struct pt_leave leave, int32_t member, int32_t group);
afs_err pt_row_member_remove(
	struct pt_write *w, struct pt_leave leave, int32_t member, int32_t group);
afs_err pt_max_set(struct pt_write *w, struct pt_leave leave, int32_t max_user, int32_t min_group);
/* Ids that were given by hand or by counting: the counters follow. */
afs_err pt_max_follow(struct pt_write *w, int32_t id);

/* --- verbs: pt_verbs.c -------------------------------------------------------------------------- */

struct pt_new {
	const char *name;
	size_t len;
	bool group;
	int32_t owner; /* 0: default */
	int32_t id;    /* with by_id */
	bool by_id;    /* INewEntry: this id, and whether it is a group is in its sign */
};
afs_err pt_do_new(struct pt_write *w, const struct pt_who *who, const struct pt_new *want, int32_t *id);
afs_err pt_do_delete(struct pt_write *w, const struct pt_who *who, int32_t id);
afs_err pt_do_add(struct pt_write *w, const struct pt_who *who, int32_t member, int32_t group);
afs_err pt_do_remove(struct pt_write *w, const struct pt_who *who, int32_t member, int32_t group);
struct pt_change {
	int32_t id;
	const char *name; /* len 0: stays */
	size_t len;
	int32_t owner, newid; /* 0: stay */
};
afs_err pt_do_change(struct pt_write *w, const struct pt_who *who, const struct pt_change *c);
struct pt_fields {
	int32_t id;
	uint32_t mask;
	int32_t flags, ngroups, nusers;
};
afs_err pt_do_set_fields(struct pt_write *w, const struct pt_who *who, const struct pt_fields *f);
afs_err pt_do_set_max(struct pt_write *w, const struct pt_who *who, int32_t id, int32_t gflag);
/* NameToID's rule: exact, and what stands before @ a realm of ours.  AFS_ENOENT. */
afs_err pt_find_name(struct pt *pt, struct db *db, const char *name, size_t len, int32_t *id);
