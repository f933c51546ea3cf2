/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Entries of the location database.  A change is made under the entry's lock, on the copy that was read
 * after it was taken.  Source: vldb.md §9. */
#include "cell/admin/volume.h"

#include "cell/base/text.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_ARENA = 64 << 20, VL_OPCODE_UNKNOWN = -455, VL_KEEP_LOCK = 0 };
enum { VL_UNLOCK = VL_RELEASE_TIME | VL_RELEASE_OP | VL_RELEASE_AFSID };

/* --- reading ------------------------------------------------------------------------------------- */

/* What came from a server is used as indices further on. */
static afs_err judge(struct admin *a, const struct nvldbentry *e)
{
	if (e->nServers < 0 || e->nServers > VL_SITES_MAX)
		return admin_refuse(a, AFS_EPROTOCOL, "the location database gave an entry with %d sites", e->nServers);
	return AFS_OK;
}

afs_err vldb_find(struct admin *a, const char *name, struct nvldbentry *e)
{
	if (strlen(name) > VL_NAME_MAX)
		return admin_refuse(a, AFS_ENAMETOOLONG, "\"%s\" is longer than any volume's name", name);
	struct vl_get_entry_by_name_n_in in = {.volumename = XDR_STR_OF(name)};
	struct vl_get_entry_by_name_n_out out = {};
	TRY(VL_CALL(a, get_entry_by_name_n, &in, &out, NULL));
	*e = out.entry;
	return judge(a, e);
}

afs_err vldb_find_id(struct admin *a, uint32_t id, int32_t type, struct nvldbentry *e)
{
	struct vl_get_entry_by_id_n_in in = {id, type};
	struct vl_get_entry_by_id_n_out out = {};
	TRY(VL_CALL(a, get_entry_by_id_n, &in, &out, NULL));
	*e = out.entry;
	return judge(a, e);
}

afs_err vldb_absent(struct admin *a, const char *name, bool *absent)
{
	struct nvldbentry e;
	afs_err err = vldb_find(a, name, &e);
	*absent = err != AFS_OK && admin_code(a) == VL_NOENT;
	return *absent ? AFS_OK : err;
}

afs_err vldb_new_ids(struct admin *a, uint32_t count, uint32_t *first)
{
	struct vl_get_new_volume_id_in in = {count};
	struct vl_get_new_volume_id_out out = {};
	TRY(VL_CALL(a, get_new_volume_id, &in, &out, NULL));
	*first = out.newvolumid;
	return AFS_OK;
}

afs_err vldb_create(struct admin *a, const struct nvldbentry *e)
{
	struct vl_create_entry_n_in in = {*e};
	struct vl_create_entry_n_out out;
	return VL_CALL(a, create_entry_n, &in, &out, NULL);
}

afs_err vldb_delete(struct admin *a, uint32_t id, int32_t type)
{
	struct vl_delete_entry_in in = {id, type};
	struct vl_delete_entry_out out;
	return VL_CALL(a, delete_entry, &in, &out, NULL);
}

typedef afs_err vldb_visit(void *ctx, const struct nvldbentry *e);

static afs_err visit(struct admin *a, const struct nvldbentry *v, uint32_t n, vldb_visit *each, void *ctx)
{
	for (uint32_t i = 0; i < n; i++) {
		TRY(judge(a, &v[i]));
		TRY(each(ctx, &v[i]));
	}
	return AFS_OK;
}

/* Servers of before 1.4 answer all at once. */
static afs_err each_old(struct admin *a, const struct VldbListByAttributes *attrs, vldb_visit *each, void *ctx)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, PAGE_ARENA);
	struct vl_list_attributes_n_in in = {*attrs};
	struct vl_list_attributes_n_out out = {};
	TRY(VL_CALL(a, list_attributes_n, &in, &out, &arena));
	return visit(a, out.blkentries.v, out.blkentries.n, each, ctx);
}

afs_err vldb_each(struct admin *a, const struct VldbListByAttributes *attrs, vldb_visit *each, void *ctx)
{
	struct vl_list_attributes_n2_in in = {.attributes = *attrs, .volumename = XDR_STR_OF("")};
	for (unsigned empty = 0; in.startindex != -1;) {
		CLEANUP(arena) struct arena arena;
		arena_init(&arena, PAGE_ARENA);
		struct vl_list_attributes_n2_out out = {};
		afs_err err = VL_CALL(a, list_attributes_n2, &in, &out, &arena);
		if (err != AFS_OK && admin_code(a) == VL_OPCODE_UNKNOWN && !in.startindex)
			return each_old(a, attrs, each, ctx);
		TRY(err);
		empty = out.blkentries.n ? 0 : empty + 1;
		if (empty > 2 || out.nextstartindex == in.startindex)
			return admin_refuse(a, AFS_EPROTOCOL, "the location database's list does not end");
		TRY(visit(a, out.blkentries.v, out.blkentries.n, each, ctx));
		in.startindex = out.nextstartindex;
	}
	return AFS_OK;
}

/* --- under lock --------------------------------------------------------------------------------------- */

afs_err vldb_lock(struct admin *a, uint32_t id, int32_t type, int32_t op, struct vldb_lock *lock, struct nvldbentry *e)
{
	struct vl_set_lock_in in = {id, type, op};
	struct vl_set_lock_out out;
	afs_err err = VL_CALL(a, set_lock, &in, &out, NULL);
	/* the trace of a release that did not end; the next one puts it right */
	if (err != AFS_OK && !(err == AFS_EVRERELEASE && op == VLF_OP_RELEASE))
		return err;
	*lock = (struct vldb_lock){a, id};
	return vldb_find_id(a, id, type, e);
}

static afs_err replace(struct vldb_lock *lock, const struct nvldbentry *e, int32_t release)
{
	struct vl_replace_entry_n_in in = {lock->id, AFS_VOL_RW, *e, release};
	struct vl_replace_entry_n_out out;
	if (lock->id != e->volumeId[AFS_VOL_RW])
		in.voltype = VL_ANY_TYPE;
	return VL_CALL(lock->a, replace_entry_n, &in, &out, NULL);
}

afs_err vldb_save(struct vldb_lock *lock, const struct nvldbentry *e) { return replace(lock, e, VL_KEEP_LOCK); }

afs_err vldb_save_unlock(struct vldb_lock *lock, const struct nvldbentry *e)
{
	TRY(replace(lock, e, VL_UNLOCK));
	lock->id = 0;
	return AFS_OK;
}

afs_err vldb_drop(struct vldb_lock *lock)
{
	TRY(vldb_delete(lock->a, lock->id, VL_ANY_TYPE));
	lock->id = 0;
	return AFS_OK;
}

afs_err vldb_unlock(struct vldb_lock *lock)
{
	struct vl_release_lock_in in = {lock->id, VL_ANY_TYPE, VL_UNLOCK};
	struct vl_release_lock_out out;
	lock->id = 0;
	return VL_CALL(lock->a, release_lock, &in, &out, NULL);
}

/* --- sites -------------------------------------------------------------------------------------------- */

int vldb_site(struct admin *a, const struct nvldbentry *e, int32_t flag, uint32_t ip, int32_t part)
{
	for (int i = 0; i < e->nServers; i++)
		if ((e->serverFlags[i] & flag) && (part < 0 || e->serverPartition[i] == part)
			&& (!ip || admin_same_server(a, ip, e->serverNumber[i])))
			return i;
	return -1;
}

void vldb_site_remove(struct nvldbentry *e, int i)
{
	for (int last = --e->nServers; i < last; i++) {
		e->serverNumber[i] = e->serverNumber[i + 1];
		e->serverPartition[i] = e->serverPartition[i + 1];
		e->serverFlags[i] = e->serverFlags[i + 1];
	}
}

bool vldb_site_add(struct nvldbentry *e, uint32_t ip, int32_t part, int32_t flags)
{
	if (e->nServers >= VL_SITES_MAX)
		return false;
	e->serverNumber[e->nServers] = ip;
	e->serverPartition[e->nServers] = part;
	e->serverFlags[e->nServers++] = flags;
	return true;
}

/* --- names -------------------------------------------------------------------------------------------- */

static const char *const suffixes[] = {[AFS_VOL_RW] = "", [AFS_VOL_RO] = ".readonly", [AFS_VOL_BK] = ".backup"};

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n > k && strcmp(s + n - k, end) == 0;
}

bool volume_is_number(const char *s, uint32_t *id)
{
	int64_t v;
	if (*s == '-' || *s == '+' || !text_int(s, &v) || v < 0 || v > UINT32_MAX)
		return false;
	*id = (uint32_t)v;
	return true;
}

enum afs_voltype vldb_type_of(const struct nvldbentry *e, const char *name)
{
	uint32_t id;
	if (volume_is_number(name, &id)) {
		for (int t = AFS_VOL_RO; t <= AFS_VOL_BK; t++)
			if (e->volumeId[t] == id)
				return (enum afs_voltype)t;
		return AFS_VOL_RW;
	}
	for (int t = AFS_VOL_RO; t <= AFS_VOL_BK; t++)
		if (ends_in(name, suffixes[t]))
			return (enum afs_voltype)t;
	return AFS_VOL_RW;
}

const char *volume_full_name(char *out, const char *name, enum afs_voltype type)
{
	snprintf(out, VL_NAME_MAX + 10, "%s%s", name, suffixes[type]);
	return out;
}

afs_err volume_name_ok(struct admin *a, const char *name)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	if (!*name || name[strspn(name, legal)])
		return admin_refuse(a, AFS_EBADNAME, "a volume's name is made of letters, digits and . - _");
	if (strlen(name) > VOLUME_BASE_MAX)
		return admin_refuse(a, AFS_ENAMETOOLONG, "a volume's name has at most %d letters", VOLUME_BASE_MAX);
	if (ends_in(name, suffixes[AFS_VOL_RO]) || ends_in(name, suffixes[AFS_VOL_BK]))
		return admin_refuse(a, AFS_EBADNAME, "only read-only and backup volumes end in .readonly or .backup");
	if (strspn(name, "0123456789") == strlen(name))
		return admin_refuse(a, AFS_EBADNAME, "a volume's name is not a number, since ids are");
	return AFS_OK;
}
