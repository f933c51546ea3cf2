/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Dump and restore: a volume's content as a stream, from and to a file.  The stream is not looked into;
 * volume servers judge it.  Sequences: volserver.md §7. */
#include "cell/admin/volume.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, TELL_EVERY = 4 << 20 };

static void tell(void (*progress)(void *, uint64_t), void *ctx, uint64_t bytes, uint64_t *told)
{
	if (progress && bytes - *told >= TELL_EVERY) {
		progress(ctx, bytes);
		*told = bytes;
	}
}

/* --- dump --------------------------------------------------------------------------------------------- */

static afs_err write_all(struct admin *a, int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return admin_refuse(a, afs_err_from_errno(errno), "the file cannot be written: %s", strerror(errno));
		p += k;
		n -= (size_t)k;
	}
	return AFS_OK;
}

static afs_err receive(struct vt *t, const struct volume_dump *want, uint64_t *bytes)
{
	struct admin *a = t->a;
	struct vol_dump_in in = {t->id, want->from};
	struct vol_dump_v2_in in2 = {t->id, want->from, VOL_DUMP_OMIT_DIRS};
	struct vol_dump_out out; /* of both: nothing */
	const struct rpc_proc *proc = &vol_iface.procs[want->omit_dirs ? vol_op_dump_v2 : vol_op_dump];
	struct rpc_call *call;
	afs_err err = rpc_begin(t->conn, proc, want->omit_dirs ? (const void *)&in2 : &in, &call);
	if (err != AFS_OK)
		return admin_note(a, t->conn, proc, err, 0);
	uint64_t told = 0;
	for (;;) {
		const uint8_t *p;
		size_t n;
		err = rpc_read_run(call, CHUNK, &p, &n);
		if (err != AFS_OK || n == 0)
			break;
		err = admin_stopping(a) ? admin_step(a, "Dumping") : write_all(a, want->fd, p, n);
		if (err != AFS_OK) {
			rpc_cancel(call);
			return err;
		}
		*bytes += n;
		tell(want->progress, want->ctx, *bytes, &told);
	}
	struct rpc_result res = {};
	err = rpc_end(call, &out, &res);
	return admin_note(a, t->conn, proc, err, res.code);
}

static afs_err dump_clone(struct admin *a, const struct volume_dump *want, uint32_t ip, int32_t part, uint32_t id,
	uint32_t clone, uint64_t *bytes)
{
	CLEANUP(vt) struct vt t = {};
	TRY(vt_begin(a, ip, part, clone, VOL_IT_BUSY, &t));
	TRY(vt_flags(&t, VOL_VT_DELETE_ON_SALVAGE));
	TRY(admin_step(a, "Dumping volume %u from its clone %u", id, clone));
	TRY(receive(&t, want, bytes));
	return vt_end(&t);
}

afs_err volume_dump(struct admin *a, const struct volume_dump *want, uint64_t *bytes)
{
	struct nvldbentry e;
	uint32_t ip = want->ip, id;
	int32_t part = want->part;
	*bytes = 0;
	afs_err err = vldb_find(a, want->name, &e);
	if (err != AFS_OK && !(admin_code(a) == VL_NOENT && ip && part >= 0 && volume_is_number(want->name, &id)))
		return err;
	if (err == AFS_OK) {
		enum afs_voltype type = vldb_type_of(&e, want->name);
		id = e.volumeId[type];
		if (!ip || part < 0) {
			int site = vldb_site(a, &e, type == AFS_VOL_RO ? VLSF_RO : VLSF_RW, ip, part);
			if (site < 0)
				return admin_refuse(a, AFS_ENOENT, "the location database knows no such site of it");
			ip = e.serverNumber[site];
			part = e.serverPartition[site];
		}
	}
	CLEANUP(vt) struct vt t = {};
	TRY(admin_step(a, "Starting a transaction on volume %u", id));
	TRY(vt_begin(a, ip, part, id, VOL_IT_BUSY, &t));
	if (!want->clone) {
		TRY(admin_step(a, "Dumping volume %u", id));
		TRY(receive(&t, want, bytes));
		return vt_end(&t);
	}
	uint32_t clone;
	TRY(vldb_new_ids(a, 1, &clone));
	TRY(vt_clone(&t, AFS_VOL_RO, "dump-clone-temp", clone));
	TRY(vt_end(&t));
	err = dump_clone(a, want, ip, part, id, clone, bytes);
	CLEANUP(str) char *why = err ? mem_strdup(admin_why(a, err)) : NULL;
	afs_err gone = volume_delete(a, ip, part, clone);
	if (err != AFS_OK)
		return admin_refuse(a, err, "%s", why ? why : afs_err_text(err));
	return gone;
}

/* --- restore -------------------------------------------------------------------------------------------- */

struct restore {
	struct admin *a;
	const struct volume_restore *want;
	struct nvldbentry e;
	bool listed;       /* e is an entry of the database */
	uint32_t id;
	enum afs_voltype type;
	struct vt t;
	bool made;
	uint32_t old_created, old_updated; /* of a volume that is overwritten */
};

static afs_err send(struct restore *r, uint64_t *bytes)
{
	struct admin *a = r->a;
	const struct volume_restore *w = r->want;
	const struct rpc_proc *proc = &vol_iface.procs[vol_op_restore];
	struct vol_restore_in in = {.trans = r->t.id, .flags = 1, .cookie = {.type = (int32_t)r->type, .parent = r->id}};
	struct vol_restore_out out;
	struct rpc_call *call;
	snprintf(in.cookie.name, sizeof(in.cookie.name), "%s", w->name);
	afs_err err = rpc_begin(r->t.conn, proc, &in, &call);
	if (err != AFS_OK)
		return admin_note(a, r->t.conn, proc, err, 0);
	uint64_t told = 0;
	for (;;) {
		uint8_t *p;
		size_t room;
		err = rpc_write_room(call, CHUNK, &p, &room);
		if (err != AFS_OK)
			break; /* the server says why at the end */
		ssize_t n = read(w->fd, p, room);
		if (n < 0 && errno == EINTR && !admin_stopping(a))
			continue;
		if (n == 0)
			break;
		if (n < 0 || admin_stopping(a)) {
			int eno = errno;
			rpc_cancel(call);
			TRY(admin_step(a, "Reading the file"));
			return admin_refuse(a, afs_err_from_errno(eno), "the file cannot be read: %s", strerror(eno));
		}
		err = rpc_write_commit(call, (size_t)n);
		if (err != AFS_OK)
			break;
		*bytes += (uint64_t)n;
		tell(w->progress, w->ctx, *bytes, &told);
	}
	struct rpc_result res = {};
	err = rpc_end(call, &out, &res);
	return admin_note(a, r->t.conn, proc, err, res.code);
}

static afs_err make_volume(struct restore *r)
{
	const struct volume_restore *w = r->want;
	/* parent = itself: the root directory comes with the dump */
	TRY(admin_step(r->a, "Creating volume %s %u", w->name, r->id));
	TRY(vt_create(r->a, w->ip, w->part, w->name, r->type, r->id, r->id, &r->t));
	r->made = true;
	return AFS_OK;
}

/* The volume to be filled, in a transaction. */
static afs_err open_volume(struct restore *r)
{
	const struct volume_restore *w = r->want;
	struct volser_status status;
	afs_err err = vt_begin(r->a, w->ip, w->part, r->id, VOL_IT_OFFLINE, &r->t);
	if (err == AFS_ENOVOL)
		return make_volume(r);
	TRY(err);
	if (w->overwrite == VOLUME_ABORT)
		return admin_refuse(r->a, AFS_EVOLEXISTS, "the volume %u is there", r->id);
	TRY(vt_status(&r->t, &status));
	r->old_created = status.creationDate;
	r->old_updated = status.updateDate;
	/* Not deleted first, as stock vos does, also when all of it is to be replaced: what a full dump does
	 * not have goes with the restore, and until that has succeeded our servers keep what is there. */
	return AFS_OK;
}

static uint32_t date_of(enum volume_when when, enum volume_when dflt, uint32_t dump, uint32_t old, uint32_t now)
{
	switch (when == VOLUME_WHEN_DEFAULT ? dflt : when) {
	case VOLUME_WHEN_KEEP: return old ? old : dump;
	case VOLUME_WHEN_NEW: return now;
	default: return dump;
	}
}

static afs_err dress(struct restore *r)
{
	const struct volume_restore *w = r->want;
	struct volser_status status;
	uint32_t now = clk_wire_sec(clk_wall());
	TRY(vt_status(&r->t, &status));
	TRY(vt_set_ids(&r->t, w->name, r->type, r->id, 0, 0));
	struct volintInfo info = vt_info_keep();
	info.creationDate = date_of(w->creation, w->overwrite == VOLUME_INCREMENTAL ? VOLUME_WHEN_KEEP : VOLUME_WHEN_NEW,
		status.creationDate, r->old_created, now);
	info.updateDate = date_of(w->update, VOLUME_WHEN_DUMP, status.updateDate, r->old_updated, now);
	TRY(vt_set_date(&r->t, info.creationDate));
	TRY(vt_set_info(&r->t, &info));
	if (!w->offline)
		TRY(vt_flags(&r->t, 0));
	else
		TRY(vt_flags(&r->t, VOL_VT_OUT_OF_SERVICE));
	return vt_end(&r->t);
}

/* The entry says where the volume is now; a read-write volume at another site is the old one. */
static afs_err enter(struct restore *r)
{
	struct admin *a = r->a;
	const struct volume_restore *w = r->want;
	int32_t flag = r->type == AFS_VOL_RO ? VLSF_RO : VLSF_RW;
	if (!r->listed) {
		struct nvldbentry e = {.nServers = 1, .flags = r->type == AFS_VOL_RO ? VLF_RO_EXISTS : VLF_RW_EXISTS};
		snprintf(e.name, sizeof(e.name), "%s", w->name);
		e.serverNumber[0] = w->ip;
		e.serverPartition[0] = w->part;
		e.serverFlags[0] = flag;
		e.volumeId[AFS_VOL_RW] = r->id;
		if (r->type == AFS_VOL_RO) {
			e.volumeId[AFS_VOL_RO] = r->id;
			TRY(vldb_new_ids(a, 1, &e.volumeId[AFS_VOL_RW]));
		}
		TRY(admin_step(a, "Creating the entry of volume %s %u", w->name, r->id));
		return vldb_create(a, &e);
	}
	if (vldb_site(a, &r->e, flag, w->ip, w->part) >= 0 && (r->e.flags & (r->type == AFS_VOL_RO ? VLF_RO_EXISTS : VLF_RW_EXISTS)))
		return AFS_OK;
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	TRY(vldb_lock(a, r->e.volumeId[AFS_VOL_RW], AFS_VOL_RW, VLF_OP_DUMP, &lock, &r->e));
	int old = vldb_site(a, &r->e, flag, r->type == AFS_VOL_RO ? w->ip : 0, -1);
	uint32_t old_ip = old >= 0 ? r->e.serverNumber[old] : 0;
	int32_t old_part = old >= 0 ? r->e.serverPartition[old] : -1;
	bool elsewhere = old >= 0 && !(old_part == w->part && admin_same_server(a, old_ip, w->ip));
	if (old >= 0)
		vldb_site_remove(&r->e, old);
	if (!vldb_site_add(&r->e, w->ip, w->part, flag))
		return admin_refuse(a, AFS_EVREPSFULL, "the entry has the most sites it may have");
	r->e.flags |= r->type == AFS_VOL_RO ? VLF_RO_EXISTS : VLF_RW_EXISTS;
	TRY(vldb_save_unlock(&lock, &r->e));
	if (!elsewhere || w->no_delete)
		return AFS_OK;
	TRY(admin_step(a, "Deleting volume %u at its old place, %s %s", r->id, admin_host_name(a, old_ip), PARTNAME(old_part)));
	afs_err err = volume_delete(a, old_ip, old_part, r->id);
	return err == AFS_ENOVOL ? AFS_OK : err;
}

static afs_err identify(struct restore *r)
{
	struct admin *a = r->a;
	const struct volume_restore *w = r->want;
	bool absent;
	TRY(volume_name_ok(a, w->name));
	TRY(volume_has_partition(a, w->ip, w->part));
	TRY(vldb_absent(a, w->name, &absent));
	if (!absent) {
		TRY(vldb_find(a, w->name, &r->e));
		r->listed = true;
		r->id = r->e.volumeId[r->type];
		if (w->id && w->id != r->id)
			return admin_refuse(a, AFS_EINVAL, "the volume %s has the id %u, not %u", w->name, r->id, w->id);
		if (r->id && w->overwrite == VOLUME_ABORT)
			return admin_refuse(a, AFS_EVOLEXISTS, "the volume %s %u is in the location database", w->name, r->id);
	}
	if (!r->id)
		r->id = w->id;
	if (!r->listed && r->id) {
		struct nvldbentry other;
		afs_err err = vldb_find_id(a, r->id, VL_ANY_TYPE, &other);
		if (err == AFS_OK)
			return admin_refuse(a, AFS_EIDEXIST, "the id %u belongs to volume %s", r->id, other.name);
		if (admin_code(a) != VL_NOENT)
			return err;
	}
	if (!r->id)
		TRY(vldb_new_ids(a, 1, &r->id));
	return AFS_OK;
}

static afs_err restore(struct restore *r, uint64_t *bytes)
{
	TRY(identify(r));
	TRY(open_volume(r));
	TRY(admin_step(r->a, "Restoring volume %s %u", r->want->name, r->id));
	TRY(send(r, bytes));
	TRY(dress(r));
	r->made = false;
	return enter(r);
}

afs_err volume_restore(struct admin *a, const struct volume_restore *want, uint32_t *id, uint64_t *bytes)
{
	struct restore r = {.a = a, .want = want, .type = want->readonly ? AFS_VOL_RO : AFS_VOL_RW};
	*bytes = 0;
	afs_err err = restore(&r, bytes);
	*id = r.id;
	if (err == AFS_OK)
		return err;
	CLEANUP(str) char *why = mem_strdup(admin_why(a, err));
	bool left = r.t.id && r.made && vt_delete(&r.t) != AFS_OK;
	vt_cleanup(&r.t);
	return admin_refuse(a, err, "%s%s", why ? why : afs_err_text(err), left ? "; an unfinished volume is left: vos zap deletes it" : "");
}
