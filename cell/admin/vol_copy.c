/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Verbs that carry a volume's content from one place to another: move, copy, shadow; and the conversion
 * of a read-only volume whose read-write one is lost.
 *
 * Content goes in two passes: all of it from a clone, while the source serves, then what changed since from
 * the source itself, while it is held.  With `live` it is one pass from the source.  Until the location
 * database says otherwise the source is the volume; what was made on the way is deleted when a pass fails.
 * Sequences: volserver.md §7. */
#include "cell/admin/volume.h"

#include <stdio.h>
#include <string.h>

struct carry {
	struct admin *a;
	const struct volume_copy *want;
	struct nvldbentry e;
	uint32_t from_id, to_id, clone; /* clone 0: none */
	char name[VL_NAME_MAX + 10];    /* of the destination */
	enum afs_voltype type;
	const char *temp;               /* name of the clone */
	struct vt src, dst;
	bool made; /* the destination is new: to be deleted when a pass fails */
};

static afs_err check_place(struct carry *c)
{
	struct admin *a = c->a;
	const struct volume_copy *w = c->want;
	struct volintInfo info;
	struct diskPartition64 disk;
	TRY(volume_has_partition(a, w->from_ip, w->from_part));
	TRY(volume_has_partition(a, w->to_ip, w->to_part));
	afs_err err = volume_info(a, w->from_ip, w->from_part, c->from_id, &info);
	if (err == AFS_ENODEV || err == AFS_ENOVOL)
		return admin_refuse(a, AFS_ENOVOL, "there is no volume %u on %s %s", c->from_id, admin_host_name(a, w->from_ip),
			PARTNAME(w->from_part));
	TRY(err);
	TRY(volume_partition_info(a, w->to_ip, w->to_part, &disk));
	if (disk.free < info.size)
		return admin_refuse(a, AFS_ENOSPC, "%s %s has %lld KiB free, and the volume holds %d KiB", admin_host_name(a, w->to_ip),
			PARTNAME(w->to_part), (long long)disk.free, info.size);
	return AFS_OK;
}

static afs_err make_clone(struct carry *c, uint32_t *created)
{
	CLEANUP(vt) struct vt t = {}, k = {};
	const struct volume_copy *w = c->want;
	struct volser_status status;
	uint32_t id;
	TRY(vldb_new_ids(c->a, 1, &id));
	TRY(admin_step(c->a, "Cloning source volume %u to %u", c->from_id, id));
	TRY(vt_begin(c->a, w->from_ip, w->from_part, c->from_id, VOL_IT_BUSY, &t));
	TRY(vt_clone(&t, AFS_VOL_RO, c->temp, id));
	c->clone = id;
	TRY(vt_end(&t));
	TRY(vt_begin(c->a, w->from_ip, w->from_part, id, VOL_IT_OFFLINE, &k));
	TRY(vt_flags(&k, VOL_VT_DELETE_ON_SALVAGE | VOL_VT_OUT_OF_SERVICE));
	TRY(vt_status(&k, &status));
	*created = status.creationDate;
	return vt_end(&k);
}

/* The destination in a transaction; *since is what it has already (incremental shadows). */
static afs_err open_destination(struct carry *c, uint32_t *since)
{
	const struct volume_copy *w = c->want;
	struct volser_status status;
	*since = 0;
	afs_err err = vt_begin(c->a, w->to_ip, w->to_part, c->to_id, VOL_IT_OFFLINE, &c->dst);
	if (err == AFS_OK && w->incremental) {
		TRY(vt_status(&c->dst, &status));
		*since = volume_since(status.updateDate);
		return AFS_OK;
	}
	if (err == AFS_OK && !c->type && !w->to_id && strcmp(c->name, c->e.name) == 0)
		return admin_refuse(c->a, AFS_EVOLEXISTS, "there is a volume %u on %s %s already: vos zap deletes it", c->to_id,
			admin_host_name(c->a, w->to_ip), PARTNAME(w->to_part));
	if (err == AFS_OK) {
		TRY(admin_step(c->a, "Deleting the volume %u that is on %s", c->to_id, admin_host_name(c->a, w->to_ip)));
		TRY(vt_flags(&c->dst, VOL_VT_DELETE_ON_SALVAGE | VOL_VT_OUT_OF_SERVICE));
		TRY(vt_delete(&c->dst));
		TRY(vt_end(&c->dst));
		err = AFS_ENOVOL;
	}
	if (err != AFS_ENOVOL)
		return err;
	TRY(admin_step(c->a, "Creating volume %u on %s %s", c->to_id, admin_host_name(c->a, w->to_ip), PARTNAME(w->to_part)));
	/* parent = itself: no root directory is made, it comes with the content */
	TRY(vt_create(c->a, w->to_ip, w->to_part, c->name, c->type, c->to_id, c->to_id, &c->dst));
	c->made = true;
	return vt_flags(&c->dst, VOL_VT_DELETE_ON_SALVAGE | VOL_VT_OUT_OF_SERVICE);
}

static afs_err first_pass(struct carry *c, uint32_t since)
{
	CLEANUP(vt) struct vt k = {};
	const struct volume_copy *w = c->want;
	TRY(vt_begin(c->a, w->from_ip, w->from_part, c->clone, VOL_IT_OFFLINE, &k));
	TRY(admin_step(c->a, "Sending clone %u to volume %u on %s", c->clone, c->to_id, admin_host_name(c->a, w->to_ip)));
	TRY(vt_forward(&k, since, &c->dst, c->name, c->type, c->to_id));
	return vt_end(&k);
}

/* Both passes; the source stays held in c->src. */
static afs_err send(struct carry *c, int32_t hold)
{
	const struct volume_copy *w = c->want;
	uint32_t created = 0, since;
	if (!w->live)
		TRY(make_clone(c, &created));
	TRY(open_destination(c, &since));
	if (!w->live) {
		TRY(first_pass(c, since));
		since = volume_since(created);
	}
	TRY(vt_begin(c->a, w->from_ip, w->from_part, c->from_id, hold, &c->src));
	TRY(admin_step(c->a, "Sending %s of volume %u", since ? "what has changed" : "all", c->from_id));
	return vt_forward(&c->src, since, &c->dst, c->name, c->type, c->to_id);
}

/* What is left over: the clone always, an unfinished destination, transactions.  Gives `err`; its reason stays. */
static afs_err clean_up(struct carry *c, afs_err err)
{
	CLEANUP(str) char *why = err ? mem_strdup(admin_why(c->a, err)) : NULL;
	const struct volume_copy *w = c->want;
	CLEANUP(buf) struct buf left = {};
	vt_cleanup(&c->src);
	if (err && c->dst.id && c->made && vt_delete(&c->dst) != AFS_OK)
		buf_printf(&left, "; the unfinished volume %u on %s is left", c->to_id, admin_host_name(c->a, w->to_ip));
	vt_cleanup(&c->dst);
	if (c->clone) {
		afs_err gone = volume_delete(c->a, w->from_ip, w->from_part, c->clone);
		if (gone != AFS_OK && gone != AFS_ENOVOL)
			buf_printf(&left, "; the temporary clone %u on %s is left", c->clone, admin_host_name(c->a, w->from_ip));
	}
	if (err || left.len)
		return admin_refuse(c->a, err ? err : AFS_EABORTED, "%s%s", why ? why : "it is done", left.data ? left.data : "");
	return AFS_OK;
}

static afs_err find_source(struct carry *c)
{
	const struct volume_copy *w = c->want;
	TRY(vldb_find(c->a, w->name, &c->e));
	if (vldb_type_of(&c->e, w->name) != AFS_VOL_RW)
		return admin_refuse(c->a, AFS_EINVAL, "name the read-write volume");
	c->from_id = c->e.volumeId[AFS_VOL_RW];
	if (vldb_site(c->a, &c->e, VLSF_RW, w->from_ip, w->from_part) < 0)
		return admin_refuse(c->a, AFS_ENOENT, "the location database does not have it on %s %s", admin_host_name(c->a, w->from_ip),
			PARTNAME(w->from_part));
	return check_place(c);
}

/* --- move ---------------------------------------------------------------------------------------------- */

/* The volume is at its new place, and the location database says so: the old one goes. */
static afs_err leave_old_place(struct carry *c)
{
	const struct volume_copy *w = c->want;
	TRY(admin_step(c->a, "Deleting volume %u on %s", c->from_id, admin_host_name(c->a, w->from_ip)));
	if (w->from_ip != w->to_ip) {
		/* an address in the network's order, as vos has always sent it */
		struct vol_set_forwarding_in in = {c->src.id, __builtin_bswap32(w->to_ip)};
		struct vol_set_forwarding_out out;
		/* clients that miss the hint ask the location database */
		(void)VOL_CALL(c->a, c->src.conn, set_forwarding, &in, &out, NULL);
	}
	TRY(vt_delete(&c->src));
	TRY(vt_end(&c->src));
	uint32_t backup = c->e.volumeId[AFS_VOL_BK];
	if (backup) {
		afs_err err = volume_delete(c->a, w->from_ip, w->from_part, backup);
		if (err != AFS_OK && err != AFS_ENOVOL)
			return err;
	}
	return AFS_OK;
}

static afs_err move(struct carry *c)
{
	const struct volume_copy *w = c->want;
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(vldb_lock(c->a, c->from_id, AFS_VOL_RW, VLF_OP_MOVE, &lock, &c->e));
	int site = vldb_site(c->a, &c->e, VLSF_RW, w->from_ip, w->from_part);
	if (site < 0)
		return admin_refuse(c->a, AFS_EVMOVED, "it was moved by somebody else meanwhile");
	TRY(send(c, VOL_IT_OFFLINE));
	/* from here on a source that is found again stays off line: two that serve would part ways */
	TRY(vt_flags(&c->src, VOL_VT_OUT_OF_SERVICE));
	afs_err err = vt_flags(&c->dst, 0);
	if (err == AFS_OK)
		err = vt_end(&c->dst);
	if (err == AFS_OK) {
		struct nvldbentry moved = c->e;
		moved.serverNumber[site] = w->to_ip;
		moved.serverPartition[site] = w->to_part;
		moved.flags &= ~VLF_BK_EXISTS;
		err = vldb_save_unlock(&lock, &moved);
	}
	if (err != AFS_OK) {
		CLEANUP(str) char *why = mem_strdup(admin_why(c->a, err));
		bool back = vt_flags(&c->src, 0) == AFS_OK;
		bool gone = c->dst.id ? vt_delete(&c->dst) == AFS_OK : volume_delete(c->a, w->to_ip, w->to_part, c->to_id) == AFS_OK;
		c->made = c->made && !gone;
		return admin_refuse(c->a, err, "%s; the volume %s", why ? why : afs_err_text(err),
			back ? "stays where it was" : "is off line where it was: vos online brings it back");
	}
	return leave_old_place(c);
}

afs_err volume_move(struct admin *a, const struct volume_copy *want, uint32_t *id)
{
	struct carry c = {.a = a, .want = want, .temp = "move-clone-temp"};
	TRY(find_source(&c));
	if (want->from_part == want->to_part && admin_same_server(a, want->from_ip, want->to_ip))
		return admin_refuse(a, AFS_EINVAL, "it is there already");
	*id = c.to_id = c.from_id;
	snprintf(c.name, sizeof(c.name), "%s", c.e.name);
	return clean_up(&c, move(&c));
}

/* --- copy ---------------------------------------------------------------------------------------------- */

static afs_err finish_copy(struct carry *c)
{
	if (!c->want->offline)
		TRY(vt_flags(&c->dst, 0));
	TRY(vt_end(&c->dst));
	return vt_end(&c->src);
}

static afs_err copy(struct carry *c)
{
	const struct volume_copy *w = c->want;
	TRY(send(c, VOL_IT_BUSY));
	TRY(finish_copy(c));
	struct nvldbentry e = {.nServers = 1, .flags = w->readonly ? VLF_RO_EXISTS : VLF_RW_EXISTS};
	snprintf(e.name, sizeof(e.name), "%s", w->to_name);
	e.serverNumber[0] = w->to_ip;
	e.serverPartition[0] = w->to_part;
	e.serverFlags[0] = w->readonly ? VLSF_RO : VLSF_RW;
	e.volumeId[AFS_VOL_RW] = c->to_id;
	if (w->readonly) {
		e.volumeId[AFS_VOL_RO] = c->to_id;
		TRY(vldb_new_ids(c->a, 1, &e.volumeId[AFS_VOL_RW]));
	}
	afs_err err = vldb_create(c->a, &e);
	if (err != AFS_OK) {
		CLEANUP(str) char *why = mem_strdup(admin_why(c->a, err));
		bool gone = volume_delete(c->a, w->to_ip, w->to_part, c->to_id) == AFS_OK;
		return admin_refuse(c->a, err, "%s; the copy %u %s", why ? why : afs_err_text(err), c->to_id,
			gone ? "was deleted again" : "has no entry now: vos zap deletes it");
	}
	return AFS_OK;
}

afs_err volume_copy(struct admin *a, const struct volume_copy *want, uint32_t *id)
{
	struct carry c = {.a = a, .want = want, .temp = "copy-clone-temp", .type = want->readonly ? AFS_VOL_RO : AFS_VOL_RW};
	bool absent;
	TRY(volume_name_ok(a, want->to_name));
	TRY(find_source(&c));
	TRY(vldb_absent(a, want->to_name, &absent));
	if (!absent)
		return admin_refuse(a, AFS_EVOLEXISTS, "there is a volume %s", want->to_name);
	TRY(vldb_new_ids(a, 1, &c.to_id));
	volume_full_name(c.name, want->to_name, c.type);
	*id = c.to_id;
	return clean_up(&c, copy(&c));
}

static afs_err shadow(struct carry *c)
{
	TRY(send(c, VOL_IT_BUSY));
	return finish_copy(c);
}

afs_err volume_shadow(struct admin *a, const struct volume_copy *want, uint32_t *id)
{
	struct carry c = {.a = a, .want = want, .temp = "shadow-clone-temp", .type = want->readonly ? AFS_VOL_RO : AFS_VOL_RW};
	TRY(find_source(&c));
	c.to_id = want->to_id ? want->to_id : c.from_id;
	if (c.to_id == c.from_id && want->from_part == want->to_part && admin_same_server(a, want->from_ip, want->to_ip))
		return admin_refuse(a, AFS_EINVAL, "the shadow would be the volume itself: name another partition, or an id with -toid");
	if (want->to_name)
		TRY(volume_name_ok(a, want->to_name));
	volume_full_name(c.name, want->to_name ? want->to_name : c.e.name, c.type);
	*id = c.to_id;
	return clean_up(&c, shadow(&c));
}

/* --- convert -------------------------------------------------------------------------------------------- */

afs_err volume_convert(struct admin *a, const char *name, uint32_t ip, int32_t part)
{
	struct nvldbentry e;
	struct rpc_conn *conn;
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(volume_has_partition(a, ip, part));
	TRY(vldb_find(a, name, &e));
	uint32_t rw = e.volumeId[AFS_VOL_RW], ro = e.volumeId[AFS_VOL_RO];
	if (!ro || vldb_site(a, &e, VLSF_RO, ip, part) < 0)
		return admin_refuse(a, AFS_ENOENT, "%s has no read-only site on %s %s", e.name, admin_host_name(a, ip), PARTNAME(part));
	TRY(vldb_lock(a, rw, AFS_VOL_RW, VLF_OP_MOVE, &lock, &e));
	TRY(admin_step(a, "Converting volume %u on %s %s", ro, admin_host_name(a, ip), PARTNAME(part)));
	TRY(admin_conn(a, ip, ADMIN_VOL, &conn));
	struct vol_convert_in in = {part, ro};
	struct vol_convert_out out;
	TRY(VOL_CALL(a, conn, convert, &in, &out, NULL));
	int old = vldb_site(a, &e, VLSF_RW, 0, -1);
	if (old >= 0)
		vldb_site_remove(&e, old);
	int i = vldb_site(a, &e, VLSF_RO, ip, part);
	if (i >= 0)
		e.serverFlags[i] = VLSF_RW;
	e.flags = (e.flags | VLF_RW_EXISTS) & ~VLF_BK_EXISTS;
	if (vldb_site(a, &e, VLSF_RO, 0, -1) < 0)
		e.flags &= ~VLF_RO_EXISTS;
	return vldb_save_unlock(&lock, &e);
}
