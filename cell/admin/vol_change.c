/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Verbs that make, delete and rename volumes, and those that only change where the location database
 * says that volumes are.  Sequences: volserver.md §7. */
#include "cell/admin/volume.h"

#include <stdio.h>
#include <string.h>

/* --- create --------------------------------------------------------------------------------------------- */

static afs_err make(struct admin *a, const struct volume_create *want, struct nvldbentry *e)
{
	uint32_t id = e->volumeId[AFS_VOL_RW];
	CLEANUP(vt) struct vt t = {};
	TRY(admin_step(a, "Creating volume %s %u on %s %s", want->name, id, admin_host_name(a, want->ip), PARTNAME(want->part)));
	TRY(vt_create(a, want->ip, want->part, want->name, AFS_VOL_RW, 0, id, &t));
	struct volintInfo info = vt_info_keep();
	info.maxquota = want->quota_kib;
	afs_err err = vt_set_info(&t, &info);
	if (err == AFS_OK)
		err = vt_flags(&t, 0);
	if (err == AFS_OK)
		err = admin_step(a, "Creating the entry of volume %s %u", want->name, id);
	if (err == AFS_OK)
		err = vldb_create(a, e);
	if (err == AFS_OK)
		return vt_end(&t);
	/* A volume that no entry leads to would be lost. */
	CLEANUP(str) char *why = mem_strdup(admin_why(a, err));
	bool gone = vt_delete(&t) == AFS_OK;
	return admin_refuse(a, err, "%s; the new volume %u %s", why ? why : afs_err_text(err), id,
		gone ? "was deleted again" : "could not be deleted again: vos zap will");
}

afs_err volume_create(struct admin *a, const struct volume_create *want, uint32_t *id)
{
	struct nvldbentry e = {.nServers = 1, .flags = VLF_RW_EXISTS};
	bool absent;
	TRY(volume_name_ok(a, want->name));
	TRY(volume_has_partition(a, want->ip, want->part));
	TRY(vldb_absent(a, want->name, &absent));
	if (!absent)
		return admin_refuse(a, AFS_EVOLEXISTS, "it exists already");
	snprintf(e.name, sizeof(e.name), "%s", want->name);
	e.serverNumber[0] = want->ip;
	e.serverPartition[0] = want->part;
	e.serverFlags[0] = VLSF_RW;
	const uint32_t given[3] = {want->id, want->ro_id, 0};
	for (int i = 0; i < 3; i++) {
		struct nvldbentry other;
		e.volumeId[i] = given[i];
		if (!given[i]) {
			TRY(vldb_new_ids(a, 1, &e.volumeId[i]));
			continue;
		}
		afs_err err = vldb_find_id(a, given[i], VL_ANY_TYPE, &other);
		if (err == AFS_OK)
			return admin_refuse(a, AFS_EVOLEXISTS, "the id %u belongs to volume %s", given[i], other.name);
		if (admin_code(a) != VL_NOENT)
			return err;
	}
	TRY(make(a, want, &e));
	*id = e.volumeId[AFS_VOL_RW];
	return AFS_OK;
}

/* --- remove ------------------------------------------------------------------------------------------- */

/* Where the volume of this type is to be deleted; fills what the caller left open. */
static afs_err site_to_remove(struct admin *a, const struct nvldbentry *e, enum afs_voltype type, uint32_t *ip, int32_t *part)
{
	int32_t flag = type == AFS_VOL_RO ? VLSF_RO : VLSF_RW;
	if (*ip && *part >= 0)
		return AFS_OK;
	int found = -1, count = 0;
	for (int i = 0; i < e->nServers; i++)
		if ((e->serverFlags[i] & flag) && (*part < 0 || e->serverPartition[i] == *part)
			&& (!*ip || admin_same_server(a, *ip, e->serverNumber[i]))) {
			found = i;
			count++;
		}
	if (count > 1)
		return admin_refuse(a, AFS_EINVAL, "it has several sites: name one with -server and -partition");
	if (!count)
		return admin_refuse(a, AFS_ENOENT, "the location database knows no such site of it");
	*ip = e->serverNumber[found];
	*part = e->serverPartition[found];
	return AFS_OK;
}

/* Takes the volume out of the entry; false when the entry did not have it there. */
static bool forget(struct admin *a, struct nvldbentry *e, enum afs_voltype type, uint32_t ip, int32_t part)
{
	int i = vldb_site(a, e, type == AFS_VOL_RO ? VLSF_RO : VLSF_RW, ip, part);
	if (i < 0)
		return false;
	switch (type) {
	case AFS_VOL_BK:
		if (!(e->flags & VLF_BK_EXISTS))
			return false;
		e->flags &= ~VLF_BK_EXISTS;
		return true;
	case AFS_VOL_RO:
		vldb_site_remove(e, i);
		if (vldb_site(a, e, VLSF_RO, 0, -1) < 0)
			e->flags &= ~VLF_RO_EXISTS;
		return true;
	default:
		vldb_site_remove(e, i);
		e->flags &= ~(VLF_RW_EXISTS | VLF_BK_EXISTS);
		return true;
	}
}

/* Deletes a volume that may be gone already. */
static afs_err delete_there(struct admin *a, uint32_t ip, int32_t part, uint32_t id, bool *was_there)
{
	TRY(admin_step(a, "Deleting volume %u on %s %s", id, admin_host_name(a, ip), PARTNAME(part)));
	afs_err err = volume_delete(a, ip, part, id);
	*was_there = err == AFS_OK;
	return err == AFS_ENOVOL ? AFS_OK : err;
}

static afs_err remove_unlisted(struct admin *a, uint32_t id, struct volume_gone *out)
{
	TRY(volume_has_partition(a, out->ip, out->part));
	out->id = id;
	return delete_there(a, out->ip, out->part, id, &out->was_there);
}

afs_err volume_remove(struct admin *a, const char *name, uint32_t ip, int32_t part, struct volume_gone *out)
{
	struct nvldbentry e;
	uint32_t number;
	*out = (struct volume_gone){.ip = ip, .part = part};
	afs_err err = vldb_find(a, name, &e);
	if (err != AFS_OK && admin_code(a) == VL_NOENT && ip && part >= 0 && volume_is_number(name, &number))
		return remove_unlisted(a, number, out);
	TRY(err);
	enum afs_voltype type = vldb_type_of(&e, name);
	if (!e.volumeId[type])
		return admin_refuse(a, AFS_ENOENT, "the entry %s has no such volume", e.name);
	TRY(site_to_remove(a, &e, type, &out->ip, &out->part));
	TRY(volume_has_partition(a, out->ip, out->part));

	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(vldb_lock(a, e.volumeId[AFS_VOL_RW], VL_ANY_TYPE, VLF_OP_DELETE, &lock, &e));
	uint32_t backup = e.volumeId[AFS_VOL_BK];
	out->id = e.volumeId[type];
	out->in_vldb = forget(a, &e, type, out->ip, out->part);
	bool there;
	TRY(delete_there(a, out->ip, out->part, out->id, &out->was_there));
	if (type == AFS_VOL_RW && out->in_vldb && backup)
		TRY(delete_there(a, out->ip, out->part, backup, &there));
	if (!out->in_vldb)
		return vldb_unlock(&lock);
	if (!e.nServers)
		return vldb_drop(&lock);
	return vldb_save_unlock(&lock, &e);
}

/* --- rename ------------------------------------------------------------------------------------------- */

/* One volume of a renamed entry.  A site that was never released has no volume yet. */
static afs_err rename_one(struct admin *a, const struct nvldbentry *e, int site, enum afs_voltype type)
{
	char full[VL_NAME_MAX + 10];
	CLEANUP(vt) struct vt t = {};
	volume_full_name(full, e->name, type);
	TRY(admin_step(a, "Renaming volume %u on %s to %s", e->volumeId[type], admin_host_name(a, e->serverNumber[site]), full));
	afs_err err = vt_begin(a, e->serverNumber[site], e->serverPartition[site], e->volumeId[type], VOL_IT_OFFLINE, &t);
	if (err == AFS_ENOVOL && type != AFS_VOL_RW)
		return AFS_OK;
	TRY(err);
	TRY(vt_set_ids(&t, full, type, e->volumeId[AFS_VOL_RW], e->volumeId[AFS_VOL_RO], e->volumeId[AFS_VOL_BK]));
	return vt_end(&t);
}

afs_err volume_rename(struct admin *a, const char *old, const char *new)
{
	struct nvldbentry e;
	bool absent;
	TRY(volume_name_ok(a, new));
	TRY(vldb_find(a, old, &e));
	if (vldb_type_of(&e, old) != AFS_VOL_RW)
		return admin_refuse(a, AFS_EINVAL, "name the read-write volume: its copies are renamed with it");
	TRY(vldb_absent(a, new, &absent));
	if (!absent)
		return admin_refuse(a, AFS_EVOLEXISTS, "there is a volume %s", new);
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(vldb_lock(a, e.volumeId[AFS_VOL_RW], AFS_VOL_RW, VLF_OP_DELETE, &lock, &e));
	memset(e.name, 0, sizeof(e.name));
	snprintf(e.name, sizeof(e.name), "%s", new);
	TRY(vldb_save(&lock, &e));
	for (int i = 0; i < e.nServers; i++) {
		if ((e.serverFlags[i] & VLSF_RW) && (e.flags & VLF_RW_EXISTS))
			TRY(rename_one(a, &e, i, AFS_VOL_RW));
		if ((e.serverFlags[i] & VLSF_RW) && (e.flags & VLF_BK_EXISTS))
			TRY(rename_one(a, &e, i, AFS_VOL_BK));
		if ((e.serverFlags[i] & VLSF_RO) && (e.flags & VLF_RO_EXISTS))
			TRY(rename_one(a, &e, i, AFS_VOL_RO));
	}
	return vldb_unlock(&lock);
}

/* --- sites -------------------------------------------------------------------------------------------- */

static afs_err find_and_lock(struct admin *a, const char *name, struct vldb_lock *lock, struct nvldbentry *e)
{
	TRY(vldb_find(a, name, e));
	return vldb_lock(a, e->volumeId[AFS_VOL_RW], AFS_VOL_RW, VLF_OP_DELETE, lock, e);
}

afs_err volume_addsite(struct admin *a, const char *name, uint32_t ip, int32_t part, uint32_t ro_id, bool valid)
{
	struct nvldbentry e;
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(volume_has_partition(a, ip, part));
	TRY(find_and_lock(a, name, &lock, &e));
	int there = vldb_site(a, &e, VLSF_RO, ip, -1);
	if (there >= 0)
		return admin_refuse(a, AFS_EEXIST, "%s has a read-only site on that server already, on %s; a server has at most one",
			e.name, PARTNAME(e.serverPartition[there]));
	if (ro_id && e.volumeId[AFS_VOL_RO] && e.volumeId[AFS_VOL_RO] != ro_id)
		return admin_refuse(a, AFS_EINVAL, "its read-only id is %u, not %u", e.volumeId[AFS_VOL_RO], ro_id);
	if (ro_id)
		e.volumeId[AFS_VOL_RO] = ro_id;
	if (!vldb_site_add(&e, ip, part, valid ? VLSF_RO : VLSF_RO | VLSF_DONTUSE))
		return admin_refuse(a, AFS_EVREPSFULL, "%s has %d sites, and no entry can have more", e.name, VL_SITES_MAX);
	if (valid)
		e.flags |= VLF_RO_EXISTS;
	return vldb_save_unlock(&lock, &e);
}

afs_err volume_remsite(struct admin *a, const char *name, uint32_t ip, int32_t part)
{
	struct nvldbentry e;
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(find_and_lock(a, name, &lock, &e));
	int i = vldb_site(a, &e, VLSF_RO, ip, part);
	if (i < 0)
		return admin_refuse(a, AFS_ENOENT, "%s has no read-only site there", e.name);
	vldb_site_remove(&e, i);
	if (vldb_site(a, &e, VLSF_RO, 0, -1) < 0)
		e.flags &= ~VLF_RO_EXISTS;
	if (!e.nServers)
		return vldb_drop(&lock);
	return vldb_save_unlock(&lock, &e);
}

afs_err volume_changeloc(struct admin *a, const char *name, uint32_t ip, int32_t part)
{
	struct nvldbentry e;
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(volume_has_partition(a, ip, part));
	TRY(find_and_lock(a, name, &lock, &e));
	int i = vldb_site(a, &e, VLSF_RW, 0, -1);
	if (i < 0)
		return admin_refuse(a, AFS_ENOENT, "%s has no read-write site", e.name);
	e.serverNumber[i] = ip;
	e.serverPartition[i] = part;
	return vldb_save_unlock(&lock, &e);
}
