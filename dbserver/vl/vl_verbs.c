/* SPDX-License-Identifier: BSD-2-Clause
 * What the procedures do.  Order of judgement: rights (before any of these), arguments, lookup.
 *
 * A lock is a time and an operation bit.  Stock's never expire, so that a vos that was killed leaves an
 * entry locked until someone unlocks it by hand; ours count as released after a day.  Nobody owns a
 * lock: who may change entries may change a locked one (vldb.md §4.1, ReplaceEntry). */
#include "dbserver/vl/vl_store.h"

enum { LOCK_LIFE_S = 24 * 3600 };

static bool voltype_ok(int32_t t) { return t >= VL_ANY_TYPE && t <= AFS_VOL_BK; }

/* The decimal id that a name may be; false: it is a name. */
static bool name_is_id(const char *s, size_t len, uint32_t *id)
{
	uint64_t v = 0;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = MIN(v * 10 + (uint64_t)(s[i] - '0'), UINT64_C(1) << 40);
	}
	*id = v <= UINT32_MAX ? (uint32_t)v : 0; /* no entry has id 0 */
	return len > 0;
}

/* A suffix counts only when something is before it. */
static size_t without_suffix(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);
	return len > n && memcmp(s + len - n, suffix, n) == 0 ? len - n : len;
}

afs_err vl_find_by_name(struct db *db, const char *name, size_t len, struct vl_row *out)
{
	uint32_t id;
	if (!len)
		return AFS_ENOENT;
	if (name_is_id(name, len, &id))
		return vl_row_by_id(db, id, VL_ANY_TYPE, out);
	if (!vl_name_ok(name, len))
		return AFS_EBADNAME;
	size_t base = without_suffix(name, len, ".backup");
	if (base == len)
		base = without_suffix(name, len, ".readonly");
	return vl_row_by_name(db, name, base, out);
}

afs_err vl_create(struct vl *vl, const struct nvldbentry *entry, int sites_max)
{
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(vl, &w));
	struct vl_row row = {};
	TRY(vl_row_from_n(&w, entry, sites_max, &row));
	TRY(vl_row_save(&w, &row));
	return vl_write_commit(&w);
}

afs_err vl_delete(struct vl *vl, uint32_t id, int32_t voltype)
{
	if (!voltype_ok(voltype))
		return AFS_EVBADTYPE;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(vl, &w));
	struct vl_row row;
	TRY(vl_row_by_id(w.db, id, voltype, &row));
	TRY(vl_row_delete(&w, row.n));
	return vl_write_commit(&w);
}

/* --- locks ----------------------------------------------------------------------------------- */

static bool release_ok(int32_t release)
{
	return release == 0 ||
	       (release & (VL_RELEASE_TIME | VL_RELEASE_OP | VL_RELEASE_AFSID)) != 0;
}

static void release_bits(struct vl_row *row, int32_t release)
{
	if (release & VL_RELEASE_TIME)
		row->lock_time = 0;
	if (release & VL_RELEASE_OP)
		row->flags &= ~VLF_OP_MASK;
}

afs_err vl_lock(struct vl *vl, uint32_t id, int32_t voltype, int32_t oper, wall_ns now)
{
	if (!voltype_ok(voltype))
		return AFS_EVBADTYPE;
	if (oper != VLF_OP_MOVE && oper != VLF_OP_RELEASE && oper != VLF_OP_BACKUP &&
		oper != VLF_OP_DELETE && oper != VLF_OP_DUMP)
		return AFS_EVBADOPER;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(vl, &w));
	struct vl_row row;
	TRY(vl_row_by_id(w.db, id, voltype, &row));
	int64_t sec = now / NS_PER_SEC;
	/* a lock from the future is one of a clock that was set back: it expires like others */
	if (row.lock_time && llabs(sec - row.lock_time) < LOCK_LIFE_S)
		return AFS_ELOCKED;
	/* half unlocked: the operation of an interrupted release is still there */
	if (row.flags & VLF_OP_RELEASE)
		return AFS_EVRERELEASE;
	row.flags = (row.flags & ~VLF_OP_MASK) | oper;
	row.lock_time = MAX(sec, 1);
	TRY(vl_row_save(&w, &row));
	return vl_write_commit(&w);
}

afs_err vl_unlock(struct vl *vl, uint32_t id, int32_t voltype, int32_t release)
{
	if (!voltype_ok(voltype))
		return AFS_EVBADTYPE;
	if (!release_ok(release))
		return AFS_EVBADRELEASE;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(vl, &w));
	struct vl_row row;
	TRY(vl_row_by_id(w.db, id, voltype, &row));
	release_bits(&row, release);
	TRY(vl_row_save(&w, &row));
	return vl_write_commit(&w);
}

/* --- changes --------------------------------------------------------------------------------- */

afs_err vl_replace(struct vl *vl, uint32_t id, int32_t voltype, const struct nvldbentry *entry,
	int sites_max, int32_t release)
{
	if (!voltype_ok(voltype))
		return AFS_EVBADTYPE;
	if (!release_ok(release))
		return AFS_EVBADRELEASE;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(vl, &w));
	struct vl_row row;
	TRY(vl_row_by_id(w.db, id, voltype, &row));
	uint32_t rw = row.id[0];
	TRY(vl_row_from_n(&w, entry, sites_max, &row));
	if (row.id[0] != rw)
		return AFS_EBADARG;
	release_bits(&row, release);
	TRY(vl_row_save(&w, &row));
	return vl_write_commit(&w);
}

static afs_err find_site(
	struct vl_write *w, struct vl_row *row, uint32_t ip, int32_t part, unsigned *at)
{
	struct vl_server server;
	TRY(vl_server_by_ip(w->db, ip, &server));
	for (*at = 0; *at < row->sites; (*at)++)
		if (row->site[*at].slot == server.slot && row->site[*at].partition == part)
			return AFS_OK;
	return AFS_ENOENT;
}

static afs_err site_parts(int32_t part, int32_t flags)
{
	if (part < 0 || part > VL_PARTITION_MAX)
		return AFS_EBADPART;
	return flags < 0 || flags > VL_SERVERFLAGS_MAX ? AFS_EVBADSITEFLAG : AFS_OK;
}

static afs_err add_site(
	struct vl_write *w, struct vl_row *row, uint32_t ip, int32_t part, int32_t flags)
{
	unsigned at;
	TRY(site_parts(part, flags));
	afs_err err = find_site(w, row, ip, part, &at);
	if (err != AFS_ENOENT)
		return err ? err : AFS_EVDUPREP;
	if (row->sites == VL_SITES_MAX)
		return AFS_EVREPSFULL;
	struct vl_server server;
	TRY(vl_server_for_ip(w, ip, &server));
	row->site[row->sites++] = (struct vl_site){.slot = server.slot,
		.partition = (uint8_t)part,
		.flags = (uint8_t)flags};
	return AFS_OK;
}

static afs_err change_site(
	struct vl_write *w, struct vl_row *row, const struct VldbUpdateEntry *up, int i)
{
	uint32_t mask = up->RepsitesMask[i];
	if (mask & VLREP_ADD)
		return add_site(w, row, up->RepsitesNewServer[i], up->RepsitesNewPart[i],
			up->RepsitesNewFlags[i]);

	unsigned at;
	afs_err err = find_site(
		w, row, up->RepsitesTargetServer[i], up->RepsitesTargetPart[i], &at);
	if (err)
		return err == AFS_ENOENT ? AFS_EVNOREP : err;
	if (mask & VLREP_DELETE) {
		row->sites--;
		memmove(&row->site[at], &row->site[at + 1],
			(row->sites - at) * sizeof(row->site[0]));
		return AFS_OK;
	}
	struct vl_site *s = &row->site[at];
	if (mask & VLREP_SERVER) {
		struct vl_server server;
		TRY(vl_server_for_ip(w, up->RepsitesNewServer[i], &server));
		s->slot = server.slot;
	}
	if (mask & VLREP_PARTITION) {
		TRY(site_parts(up->RepsitesNewPart[i], 0));
		s->partition = (uint8_t)up->RepsitesNewPart[i];
	}
	if (mask & VLREP_FLAGS) {
		TRY(site_parts(0, up->RepsitesNewFlags[i]));
		s->flags = (uint8_t)up->RepsitesNewFlags[i];
	}
	return AFS_OK;
}

/* Changes `row` as the mask says, and saves it.  The masks that rehash mean nothing here. */
afs_err vl_update(struct vl_write *w, struct vl_row *row, const struct VldbUpdateEntry *up,
	int32_t release)
{
	if (!release_ok(release))
		return AFS_EVBADRELEASE;
	if (up->Mask & VLUPDATE_NAME) {
		size_t len = strlen(up->name);
		if (!vl_name_ok(up->name, len))
			return AFS_EBADNAME;
		memset(row->name, 0, sizeof(row->name));
		memcpy(row->name, up->name, len);
	}
	if (up->Mask & VLUPDATE_FLAGS)
		row->flags = up->flags;
	if (up->Mask & VLUPDATE_RO_ID)
		row->id[AFS_VOL_RO] = up->ReadOnlyId;
	if (up->Mask & VLUPDATE_BK_ID)
		row->id[AFS_VOL_BK] = up->BackupId;
	if (up->Mask & VLUPDATE_CLONE_ID)
		row->clone = up->cloneId;
	if (up->Mask & VLUPDATE_RW_ID) {
		if (!up->spares3)
			return AFS_EBADARG;
		row->id[AFS_VOL_RW] = up->spares3;
	}
	if (up->Mask & VLUPDATE_REPSITES) {
		if (up->nModifiedRepsites < 0 || up->nModifiedRepsites > VL_OSITES_MAX)
			return AFS_EVBADSERVER;
		for (int i = 0; i < up->nModifiedRepsites; i++)
			TRY(change_site(w, row, up, i));
		if (!row->sites)
			return AFS_EVBADSERVER;
	}
	release_bits(row, release);
	return vl_row_save(w, row);
}

/* The first run of `bump` ids that no entry uses, at or behind the counter; the counter moves behind it.
 * bump 0 only looks. */
afs_err vl_reserve(struct vl *vl, uint32_t bump, uint32_t *first)
{
	if (bump > VL_BUMP_MAX)
		return AFS_EVBADBUMP;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(vl, &w));
	uint32_t max, used;
	TRY(vl_max_get(w.db, &max));
	if (bump) {
		uint64_t from = max;
		for (;;) {
			if (from + bump > UINT32_MAX)
				return AFS_EVBADBUMP; /* no such run is left */
			afs_err err = vl_id_last_used(w.db, (uint32_t)from, bump, &used);
			if (err == AFS_ENOENT)
				break;
			if (err)
				return err;
			from = (uint64_t)used + 1;
		}
		max = (uint32_t)from;
		TRY(vl_max_set(&w, (uint32_t)(from + bump)));
		TRY(vl_write_commit(&w));
	}
	*first = max;
	return AFS_OK;
}

/* --- for this process (dbserver.h) ------------------------------------------------------------- */

afs_err vl_server_register(struct vl *vl, const uint8_t uuid[16], const uint32_t *ips, size_t n)
{
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(vl, &w));
	TRY(vl_server_register_in(&w, uuid, ips, n));
	return vl_write_commit(&w);
}

afs_err vl_ids_reserve(struct vl *vl, uint32_t n, uint32_t *first)
{
	return vl_reserve(vl, n, first);
}

afs_err vl_volume_create(struct vl *vl, const struct nvldbentry *entry)
{
	return vl_create(vl, entry, VL_SITES_MAX);
}

afs_err vl_volume_find(struct vl *vl, const char *name_or_id, struct nvldbentry *out)
{
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(vl, &r));
	struct vl_row row;
	TRY(vl_find_by_name(r.db, name_or_id, strlen(name_or_id), &row));
	vl_row_to_n(&row, out);
	return AFS_OK;
}

afs_err vl_volume_find_id(struct vl *vl, uint32_t id, int voltype, struct nvldbentry *out)
{
	if (!voltype_ok(voltype))
		return AFS_EVBADTYPE;
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(vl, &r));
	struct vl_row row;
	TRY(vl_row_by_id(r.db, id, voltype, &row));
	vl_row_to_n(&row, out);
	return AFS_OK;
}

afs_err vl_volume_replace(struct vl *vl, uint32_t rw_id, const struct nvldbentry *entry)
{
	return vl_replace(vl, rw_id, AFS_VOL_RW, entry, VL_SITES_MAX, 0);
}

afs_err vl_volume_delete(struct vl *vl, uint32_t id) { return vl_delete(vl, id, VL_ANY_TYPE); }

afs_err vl_volume_next(struct vl *vl, int64_t *cursor, struct nvldbentry *out)
{
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(vl, &r));
	struct vl_row row;
	TRY(vl_row_next(r.db, *cursor, &row));
	*cursor = row.n;
	vl_row_to_n(&row, out);
	return AFS_OK;
}
