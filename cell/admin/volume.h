/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Volumes as an administrator handles them: entries of the location database, transactions of volume
 * servers, and the verbs made of both.
 *
 * A verb either does all of its work, or puts back what it can: transactions end and locks are released
 * on every path (vt and vldb_lock are let go at the end of their scope).  Verbs wait for servers;
 * admin_why() has the reason of a failure.  Names and limits of volumes are judged here before a server
 * is asked.
 *
 * Sources: protocol vldb.md §9, volserver.md §4, §7, §8. */
#pragma once
#include "cell/admin/calls.h"

enum {
	VOLUME_BASE_MAX = 22,     /* bytes of a name before its suffix */
	VOLUME_VNOVOL = 103,      /* TransCreate: it is not there */
	VOLUME_ENODEV = 19,       /* ListOneVolume: it is not there */
	VOLUME_QUOTA_DEFAULT = 5000, /* KiB, of new volumes */
	VL_NOENT = 363524,
};

/* --- the location database ---------------------------------------------------------------------- */

/* `name` may be a name, with .readonly or .backup too, or a number. */
afs_err vldb_find(struct admin *a, const char *name, struct nvldbentry *e);
afs_err vldb_find_id(struct admin *a, uint32_t id, int32_t type, struct nvldbentry *e);
/* AFS_OK: *absent tells. */
afs_err vldb_absent(struct admin *a, const char *name, bool *absent);
afs_err vldb_new_ids(struct admin *a, uint32_t count, uint32_t *first);
afs_err vldb_create(struct admin *a, const struct nvldbentry *e);
afs_err vldb_delete(struct admin *a, uint32_t id, int32_t type);
/* Every entry that matches; `each` may stop by an error, which comes back. */
afs_err vldb_each(struct admin *a, const struct VldbListByAttributes *attrs, afs_err (*each)(void *ctx, const struct nvldbentry *e), void *ctx);

struct vldb_lock {
	struct admin *a;
	uint32_t id; /* 0: not held */
};
/* Locks the entry with read-write id `id` for an operation (VLF_OP_...), and reads it again. */
afs_err vldb_lock(struct admin *a, uint32_t id, int32_t type, int32_t op, struct vldb_lock *lock, struct nvldbentry *e);
/* Stores the entry and keeps the lock, or lets it go. */
afs_err vldb_save(struct vldb_lock *lock, const struct nvldbentry *e);
afs_err vldb_save_unlock(struct vldb_lock *lock, const struct nvldbentry *e);
/* Deletes the entry, and the lock with it. */
afs_err vldb_drop(struct vldb_lock *lock);
/* Whatever the lock: a failure is worth a message, no more. */
afs_err vldb_unlock(struct vldb_lock *lock);
void vldb_lock_cleanup(struct vldb_lock *lock);

/* Index of a site, -1 for none.  `flag` VLSF_RW or VLSF_RO; `ip` 0: any; `part` -1: any. */
int vldb_site(struct admin *a, const struct nvldbentry *e, int32_t flag, uint32_t ip, int32_t part);
void vldb_site_remove(struct nvldbentry *e, int i);
bool vldb_site_add(struct nvldbentry *e, uint32_t ip, int32_t part, int32_t flags);
/* Which of the entry's volumes `name` (a name or number) means; the read-write one for its plain name. */
enum afs_voltype vldb_type_of(const struct nvldbentry *e, const char *name);

/* --- names --------------------------------------------------------------------------------------- */

/* A name for a new volume; the reason says what is wrong. */
afs_err volume_name_ok(struct admin *a, const char *name);
bool volume_is_number(const char *s, uint32_t *id);
/* "name.readonly"; `out` holds VL_NAME_MAX + 10. */
const char *volume_full_name(char *out, const char *name, enum afs_voltype type);

/* --- volume servers -------------------------------------------------------------------------------- */

/* Partitions of a server, ascending. */
afs_err volume_partitions(struct admin *a, uint32_t ip, int32_t out[256], size_t *n);
/* AFS_EBADPART with a reason: it has no such partition. */
afs_err volume_has_partition(struct admin *a, uint32_t ip, int32_t part);
afs_err volume_partition_info(struct admin *a, uint32_t ip, int32_t part, struct diskPartition64 *out);
/* AFS_ENODEV: not there. */
afs_err volume_info(struct admin *a, uint32_t ip, int32_t part, uint32_t id, struct volintInfo *out);

struct vt {
	struct admin *a;
	struct rpc_conn *conn;
	int32_t id; /* 0: none */
};
/* Begins a transaction; waits a little while another one has the volume.  AFS_ENOVOL: no such volume. */
afs_err vt_begin(struct admin *a, uint32_t ip, int32_t part, uint32_t volume, int32_t flags, struct vt *out);
/* A new volume in a transaction; it is not in service until vt_flags(t, 0). */
afs_err vt_create(struct admin *a, uint32_t ip, int32_t part, const char *name, enum afs_voltype type, uint32_t parent,
	uint32_t volume, struct vt *out);
afs_err vt_flags(struct vt *t, int32_t flags);
afs_err vt_delete(struct vt *t);
afs_err vt_status(struct vt *t, struct volser_status *out);
afs_err vt_set_ids(struct vt *t, const char *name, enum afs_voltype type, uint32_t parent, uint32_t clone, uint32_t backup);
afs_err vt_set_date(struct vt *t, uint32_t date);
/* Fields that are -1 (or 0xffffffff) stay as they are; vt_info_keep makes such a struct. */
afs_err vt_set_info(struct vt *t, const struct volintInfo *info);
struct volintInfo vt_info_keep(void);
/* AFS_EVOLEXISTS when the clone is there already. */
afs_err vt_clone(struct vt *t, enum afs_voltype type, const char *name, uint32_t clone);
afs_err vt_reclone(struct vt *t, uint32_t clone);
/* The server of `t` sends its volume, what changed since `from`, to that of `dest`. */
afs_err vt_forward(struct vt *t, uint32_t from, struct vt *dest, const char *name, enum afs_voltype type, uint32_t parent);
afs_err vt_end(struct vt *t);
void vt_cleanup(struct vt *t); /* ends it */
/* Takes the volume out of service and deletes it.  AFS_ENOVOL: it is not there. */
afs_err volume_delete(struct admin *a, uint32_t ip, int32_t part, uint32_t id);

/* Clocks have seconds: what was read as a date is taken as so much older when it says "since". */
enum { VOLUME_CLOCK_SLACK = 2 };
static inline uint32_t volume_since(uint32_t date) { return date < VOLUME_CLOCK_SLACK ? 0 : date - VOLUME_CLOCK_SLACK; }

/* --- verbs -------------------------------------------------------------------------------------------- */

struct volume_create {
	uint32_t ip;
	int32_t part;
	const char *name;
	uint32_t id, ro_id; /* 0: new ones */
	int32_t quota_kib;
};
afs_err volume_create(struct admin *a, const struct volume_create *want, uint32_t *id);

struct volume_gone {
	uint32_t id, ip;
	int32_t part;
	bool was_there, in_vldb;
};
/* `ip` 0 and `part` -1: where the location database says. */
afs_err volume_remove(struct admin *a, const char *name, uint32_t ip, int32_t part, struct volume_gone *out);
afs_err volume_rename(struct admin *a, const char *old, const char *new);
afs_err volume_addsite(struct admin *a, const char *name, uint32_t ip, int32_t part, uint32_t ro_id, bool valid);
afs_err volume_remsite(struct admin *a, const char *name, uint32_t ip, int32_t part);
afs_err volume_changeloc(struct admin *a, const char *name, uint32_t ip, int32_t part);
/* Makes or refreshes the backup volume. */
afs_err volume_backup(struct admin *a, struct nvldbentry *e);
struct volume_clone {
	const char *name; /* source */
	uint32_t ip;      /* 0, part -1: from the location database */
	int32_t part;
	const char *to_name; /* NULL: made from the id */
	uint32_t to_id;      /* 0: a new one */
	enum afs_voltype type;
	bool offline;
};
afs_err volume_clone(struct admin *a, const struct volume_clone *want, uint32_t *id);

struct volume_release {
	bool force, reclone; /* a complete release; with full dumps when `force` */
};
afs_err volume_release(struct admin *a, const char *name, const struct volume_release *how);

struct volume_copy {
	const char *name;
	uint32_t from_ip, to_ip;
	int32_t from_part, to_part;
	const char *to_name; /* copy, shadow */
	uint32_t to_id;      /* shadow: 0: the source's */
	bool offline, readonly, live, incremental;
};
afs_err volume_move(struct admin *a, const struct volume_copy *want, uint32_t *id);
afs_err volume_copy(struct admin *a, const struct volume_copy *want, uint32_t *id);
afs_err volume_shadow(struct admin *a, const struct volume_copy *want, uint32_t *id);
afs_err volume_convert(struct admin *a, const char *name, uint32_t ip, int32_t part);

/* A dump goes to `fd`, or comes from it. */
struct volume_dump {
	const char *name;
	uint32_t ip;  /* 0, part -1: from the location database */
	int32_t part;
	uint32_t from;
	bool clone, omit_dirs;
	int fd;
	void (*progress)(void *ctx, uint64_t bytes);
	void *ctx;
};
afs_err volume_dump(struct admin *a, const struct volume_dump *want, uint64_t *bytes);
enum volume_overwrite { VOLUME_ABORT, VOLUME_FULL, VOLUME_INCREMENTAL };
enum volume_when { VOLUME_WHEN_DEFAULT, VOLUME_WHEN_DUMP, VOLUME_WHEN_KEEP, VOLUME_WHEN_NEW };
struct volume_restore {
	const char *name;
	uint32_t ip;
	int32_t part;
	uint32_t id; /* 0: the entry's, or a new one */
	enum volume_overwrite overwrite;
	bool offline, readonly, no_delete;
	enum volume_when creation, update;
	int fd;
	void (*progress)(void *ctx, uint64_t bytes);
	void *ctx;
};
/* AFS_EVOLEXISTS: the volume is there, and `overwrite` is VOLUME_ABORT; nothing was changed. */
afs_err volume_restore(struct admin *a, const struct volume_restore *want, uint32_t *id, uint64_t *bytes);
