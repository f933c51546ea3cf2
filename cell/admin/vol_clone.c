/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Verbs that clone: backup volumes, clones by name, and the release of a read-write volume to its
 * read-only sites.  Sequences: volserver.md §7, §8. */
#include "cell/admin/volume.h"

#include <stdio.h>
#include <string.h>

/* A clone of `id` at its side, in service when `on_line`. */
static afs_err clone_aside(struct admin *a, uint32_t ip, int32_t part, uint32_t id, enum afs_voltype type, const char *name,
	uint32_t clone, bool on_line)
{
	CLEANUP(vt) struct vt t = {}, c = {};
	TRY(admin_step(a, "Cloning volume %u to %s %u", id, name, clone));
	TRY(vt_begin(a, ip, part, id, VOL_IT_BUSY, &t));
	TRY(vt_clone(&t, type, name, clone));
	TRY(vt_end(&t));
	if (!on_line)
		return AFS_OK;
	TRY(vt_begin(a, ip, part, clone, VOL_IT_OFFLINE, &c));
	TRY(vt_flags(&c, 0));
	return vt_end(&c);
}

static afs_err is_there(struct admin *a, uint32_t ip, int32_t part, uint32_t id, bool *there)
{
	CLEANUP(vt) struct vt t = {};
	afs_err err = vt_begin(a, ip, part, id, VOL_IT_OFFLINE, &t);
	*there = err == AFS_OK;
	if (err == AFS_ENOVOL)
		return AFS_OK;
	TRY(err);
	return vt_end(&t);
}

/* --- backup ------------------------------------------------------------------------------------------- */

static afs_err clone_or_reclone(struct admin *a, const struct nvldbentry *e, int site, uint32_t backup)
{
	uint32_t ip = e->serverNumber[site], id = e->volumeId[AFS_VOL_RW];
	int32_t part = e->serverPartition[site];
	bool there;
	TRY(is_there(a, ip, part, backup, &there));
	if (!there) {
		char name[VL_NAME_MAX + 10];
		volume_full_name(name, e->name, AFS_VOL_BK);
		return clone_aside(a, ip, part, id, AFS_VOL_BK, name, backup, true);
	}
	CLEANUP(vt) struct vt t = {}, c = {};
	TRY(admin_step(a, "Re-cloning backup volume %u", backup));
	TRY(vt_begin(a, ip, part, id, VOL_IT_BUSY, &t));
	TRY(vt_reclone(&t, backup));
	TRY(vt_end(&t));
	TRY(vt_begin(a, ip, part, backup, VOL_IT_OFFLINE, &c));
	TRY(vt_flags(&c, 0));
	return vt_end(&c);
}

afs_err volume_backup(struct admin *a, struct nvldbentry *e)
{
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	/* A backup that is made again where it is changes nothing in the entry. */
	bool changes = !(e->flags & VLF_BK_EXISTS) || !e->volumeId[AFS_VOL_BK] || (e->flags & VLF_OP_MASK);
	if (changes)
		TRY(vldb_lock(a, e->volumeId[AFS_VOL_RW], AFS_VOL_RW, VLF_OP_BACKUP, &lock, e));
	int site = vldb_site(a, e, VLSF_RW, 0, -1);
	if (site < 0 || !(e->flags & VLF_RW_EXISTS))
		return admin_refuse(a, AFS_ENOENT, "%s has no read-write volume", e->name);
	if (!e->volumeId[AFS_VOL_BK])
		TRY(vldb_new_ids(a, 1, &e->volumeId[AFS_VOL_BK]));
	TRY(clone_or_reclone(a, e, site, e->volumeId[AFS_VOL_BK]));
	if (!changes)
		return AFS_OK;
	e->flags |= VLF_BK_EXISTS;
	return vldb_save_unlock(&lock, e);
}

/* --- clone ------------------------------------------------------------------------------------------- */

afs_err volume_clone(struct admin *a, const struct volume_clone *want, uint32_t *id)
{
	struct nvldbentry e;
	uint32_t ip = want->ip, source;
	int32_t part = want->part;
	char name[VL_NAME_MAX + 32];
	bool there;
	TRY(vldb_find(a, want->name, &e));
	enum afs_voltype type = vldb_type_of(&e, want->name);
	source = e.volumeId[type];
	int site = vldb_site(a, &e, type == AFS_VOL_RO ? VLSF_RO : VLSF_RW, ip, part);
	if ((!ip || part < 0) && site < 0)
		return admin_refuse(a, AFS_ENOENT, "the location database knows no such site of it");
	if (!ip)
		ip = e.serverNumber[site];
	if (part < 0)
		part = e.serverPartition[site];
	*id = want->to_id;
	if (!*id)
		TRY(vldb_new_ids(a, 1, id));
	if (want->to_name) {
		TRY(volume_name_ok(a, want->to_name));
		snprintf(name, sizeof(name), "%s", want->to_name);
	} else {
		snprintf(name, sizeof(name), "%.20s-%u", e.name, *id);
	}
	TRY(is_there(a, ip, part, *id, &there));
	if (there)
		return admin_refuse(a, AFS_EVOLEXISTS, "there is a volume %u on that partition", *id);
	return clone_aside(a, ip, part, source, want->type, name, *id, !want->offline);
}

/* --- release ------------------------------------------------------------------------------------------ */

/* What one release knows.  A site's flag NEWREPSITE says that it has the new content; as long as one site
 * lacks it after the clone was made, cloneId and these flags let the next release go on where this one
 * stopped. */
struct release {
	struct admin *a;
	const struct volume_release *how;
	struct vldb_lock lock;
	struct nvldbentry e;
	int rw, beside;         /* sites: read-write; read-only on its partition, or -1 */
	uint32_t rw_id, ro_id, clone;
	bool complete, temporary; /* all sites get it; the clone is to be deleted at the end */
	uint32_t rw_created;
};

static bool is_ro(const struct release *r, int i) { return r->e.serverFlags[i] & VLSF_RO; }

static void mark_released(struct release *r, int i)
{
	r->e.serverFlags[i] = (r->e.serverFlags[i] | VLSF_NEWREPSITE) & ~VLSF_DONTUSE;
	r->e.flags |= VLF_RO_EXISTS;
}

static afs_err begin(struct release *r, const char *name)
{
	struct admin *a = r->a;
	TRY(vldb_find(a, name, &r->e));
	if (vldb_type_of(&r->e, name) != AFS_VOL_RW)
		return admin_refuse(a, AFS_EINVAL, "only a read-write volume can be released");
	if (strlen(r->e.name) > VOLUME_BASE_MAX)
		return admin_refuse(a, AFS_ENAMETOOLONG, "its name has more than %d letters: rename it first", VOLUME_BASE_MAX);
	TRY(vldb_lock(a, r->e.volumeId[AFS_VOL_RW], AFS_VOL_RW, VLF_OP_RELEASE, &r->lock, &r->e));
	r->rw = vldb_site(a, &r->e, VLSF_RW, 0, -1);
	if (r->rw < 0)
		return admin_refuse(a, AFS_ENOENT, "it has no read-write site");
	int news = 0, ros = 0;
	r->beside = -1;
	for (int i = 0; i < r->e.nServers; i++) {
		if (!is_ro(r, i))
			continue;
		ros++;
		news += (r->e.serverFlags[i] & VLSF_NEWREPSITE) != 0;
		if (r->e.serverPartition[i] == r->e.serverPartition[r->rw]
			&& admin_same_server(a, r->e.serverNumber[i], r->e.serverNumber[r->rw]))
			r->beside = i;
	}
	if (!ros)
		return admin_refuse(a, AFS_ENOENT, "it has no read-only sites: vos addsite makes one");
	r->complete = r->how->force || r->how->reclone || news == 0 || news == ros;
	r->rw_id = r->e.volumeId[AFS_VOL_RW];
	if (!r->e.volumeId[AFS_VOL_RO]) {
		TRY(vldb_new_ids(a, 1, &r->e.volumeId[AFS_VOL_RO]));
		TRY(vldb_save(&r->lock, &r->e));
	}
	r->ro_id = r->e.volumeId[AFS_VOL_RO];
	return AFS_OK;
}

static afs_err delete_left(struct release *r, uint32_t ip, int32_t part)
{
	afs_err err = volume_delete(r->a, ip, part, r->ro_id);
	return err == AFS_ENOVOL ? AFS_OK : err;
}

/* The clone from which sites are filled: the read-only volume itself when one stands beside the read-write
 * one, else a temporary one under the same id. */
static afs_err make_clone(struct release *r)
{
	struct admin *a = r->a;
	uint32_t ip = r->e.serverNumber[r->rw];
	int32_t part = r->e.serverPartition[r->rw];
	struct volintInfo info;
	if (r->clone != r->ro_id) /* a temporary one under the read-only id would be in the way */
		TRY(delete_left(r, ip, part));
	afs_err err = volume_info(a, ip, part, r->clone, &info);
	bool there = err == AFS_OK;
	if (!there && err != AFS_ENODEV && err != AFS_ENOVOL)
		return err;
	if (there && (r->beside < 0 || (r->e.serverFlags[r->beside] & VLSF_DONTUSE))) {
		TRY(admin_step(a, "Deleting the clone %u that an earlier release left", r->clone));
		TRY(volume_delete(a, ip, part, r->clone));
		there = false;
	}
	for (int i = 0; i < r->e.nServers; i++)
		if (is_ro(r, i))
			r->e.serverFlags[i] = (r->e.serverFlags[i] | VLSF_DONTUSE) & ~VLSF_NEWREPSITE;
	r->e.serverFlags[r->rw] |= VLSF_NEWREPSITE;

	char name[VL_NAME_MAX + 10] = "readonly-clone-temp";
	if (r->beside >= 0)
		volume_full_name(name, r->e.name, AFS_VOL_RO);
	CLEANUP(vt) struct vt t = {};
	struct volser_status status;
	TRY(admin_step(a, "%s volume %u to %u", there ? "Re-cloning" : "Cloning", r->rw_id, r->clone));
	TRY(vt_begin(a, ip, part, r->rw_id, VOL_IT_BUSY, &t));
	TRY(there ? vt_reclone(&t, r->clone) : vt_clone(&t, AFS_VOL_RO, name, r->clone));
	TRY(vt_status(&t, &status));
	r->rw_created = status.creationDate;
	return vt_end(&t);
}

static afs_err bring_on_line(struct release *r)
{
	CLEANUP(vt) struct vt t = {};
	int i = r->beside;
	TRY(admin_step(r->a, "Putting %u on line on %s", r->ro_id, admin_host_name(r->a, r->e.serverNumber[i])));
	TRY(vt_begin(r->a, r->e.serverNumber[i], r->e.serverPartition[i], r->ro_id, VOL_IT_OFFLINE, &t));
	TRY(vt_flags(&t, 0));
	TRY(vt_end(&t));
	mark_released(r, i);
	return vldb_save(&r->lock, &r->e);
}

/* The volume to be filled at a site: a fresh one, or the one there with the date since which it lacks changes. */
static afs_err prepare_site(struct release *r, int i, const char *name, bool was_unused, struct vt *t, uint32_t *from)
{
	struct admin *a = r->a;
	uint32_t ip = r->e.serverNumber[i];
	int32_t part = r->e.serverPartition[i];
	*from = 0;
	afs_err err = vt_begin(a, ip, part, r->ro_id, VOL_IT_OFFLINE, t);
	if (err == AFS_OK && was_unused) {
		/* Nobody knows what an unfinished release left in it. */
		TRY(vt_flags(t, VOL_VT_DELETE_ON_SALVAGE | VOL_VT_OUT_OF_SERVICE));
		TRY(vt_delete(t));
		TRY(vt_end(t));
		err = AFS_ENOVOL;
	}
	if (err == AFS_ENOVOL) {
		TRY(vt_create(a, ip, part, name, AFS_VOL_RO, r->rw_id, r->ro_id, t));
		return vt_flags(t, VOL_VT_DELETE_ON_SALVAGE | VOL_VT_OUT_OF_SERVICE);
	}
	TRY(err);
	struct volser_status there;
	TRY(vt_status(t, &there));
	if (!r->how->force && r->complete && r->rw_created <= there.creationDate)
		*from = volume_since(there.updateDate);
	return AFS_OK;
}

static afs_err fill_site(struct release *r, int i, bool was_unused)
{
	struct admin *a = r->a;
	char name[VL_NAME_MAX + 10];
	uint32_t from;
	CLEANUP(vt) struct vt src = {}, dst = {};
	volume_full_name(name, r->e.name, AFS_VOL_RO);
	TRY(vt_begin(a, r->e.serverNumber[r->rw], r->e.serverPartition[r->rw], r->clone, VOL_IT_BUSY, &src));
	TRY(prepare_site(r, i, name, was_unused, &dst, &from));
	TRY(admin_step(a, "Sending %s to %s %s, %s", name, admin_host_name(a, r->e.serverNumber[i]),
		PARTNAME(r->e.serverPartition[i]), from ? "what changed" : "all of it"));
	TRY(vt_forward(&src, from, &dst, name, AFS_VOL_RO, r->rw_id));
	TRY(vt_set_ids(&dst, name, AFS_VOL_RO, r->rw_id, 0, 0));
	TRY(vt_flags(&dst, 0));
	TRY(vt_end(&dst));
	TRY(vt_end(&src));
	mark_released(r, i);
	return vldb_save(&r->lock, &r->e);
}

/* Every site gets its chance; the first failure is what is told. */
static afs_err fill_sites(struct release *r, const bool unused[VL_SITES_MAX])
{
	CLEANUP(str) char *first = NULL;
	unsigned failed = 0;
	afs_err err = AFS_OK;
	for (int i = 0; i < r->e.nServers; i++) {
		if (!is_ro(r, i) || i == r->beside || (r->e.serverFlags[i] & VLSF_NEWREPSITE))
			continue;
		afs_err one = fill_site(r, i, unused[i]);
		if (one == AFS_OK)
			continue;
		if (!failed++) {
			err = one;
			first = mem_printf("%s %s: %s", admin_host_name(r->a, r->e.serverNumber[i]), PARTNAME(r->e.serverPartition[i]),
				admin_why(r->a, one));
		}
		if (one == AFS_EINTR)
			break;
	}
	if (!failed)
		return AFS_OK;
	return admin_refuse(r->a, err, "%u site%s did not get it; release it again when the reason is gone.  The first: %s", failed,
		failed > 1 ? "s" : "", first ? first : afs_err_text(err));
}

static afs_err finish(struct release *r)
{
	r->e.cloneId = 0;
	if (r->beside < 0) {
		TRY(admin_step(r->a, "Deleting the temporary clone %u", r->clone));
		afs_err err = volume_delete(r->a, r->e.serverNumber[r->rw], r->e.serverPartition[r->rw], r->clone);
		if (err != AFS_OK && err != AFS_ENOVOL)
			return err;
	}
	for (int i = 0; i < r->e.nServers; i++)
		r->e.serverFlags[i] &= ~VLSF_NEWREPSITE;
	return vldb_save_unlock(&r->lock, &r->e);
}

/* The id of the clone: the read-only volume's own.  One server has no id twice, so that with a read-only site on
 * another partition of the read-write one's server it has to be another. */
static afs_err choose_clone(struct release *r)
{
	uint32_t left = r->e.cloneId;
	r->clone = r->ro_id;
	if (left && left != r->ro_id) {
		afs_err err = volume_delete(r->a, r->e.serverNumber[r->rw], r->e.serverPartition[r->rw], left);
		if (err != AFS_OK && err != AFS_ENOVOL)
			return err;
	}
	if (r->beside < 0 && vldb_site(r->a, &r->e, VLSF_RO, r->e.serverNumber[r->rw], -1) >= 0)
		TRY(vldb_new_ids(r->a, 1, &r->clone));
	return AFS_OK;
}

static afs_err run(struct release *r, const char *name)
{
	bool unused[VL_SITES_MAX] = {};
	TRY(begin(r, name));
	for (int i = 0; i < r->e.nServers; i++)
		unused[i] = r->e.serverFlags[i] & VLSF_DONTUSE;
	if (!r->complete) { /* the rest can only come from the clone that the first part came from */
		struct volintInfo info;
		r->clone = r->e.cloneId ? r->e.cloneId : r->ro_id;
		afs_err err = volume_info(r->a, r->e.serverNumber[r->rw], r->e.serverPartition[r->rw], r->clone, &info);
		if (err == AFS_ENODEV || err == AFS_ENOVOL) {
			r->complete = true;
		} else if (err != AFS_OK) {
			return err;
		}
	}
	TRY(admin_step(r->a, "This is %s release of volume %u", r->complete ? "a complete" : "the rest of an earlier", r->rw_id));
	if (r->complete) {
		TRY(choose_clone(r));
		TRY(make_clone(r));
		r->e.cloneId = r->clone;
		if (r->beside < 0)
			TRY(vldb_save(&r->lock, &r->e));
	}
	if (r->beside >= 0 && !(r->e.serverFlags[r->beside] & VLSF_NEWREPSITE))
		TRY(bring_on_line(r));
	TRY(fill_sites(r, unused));
	return finish(r);
}

afs_err volume_release(struct admin *a, const char *name, const struct volume_release *how)
{
	struct release r = {.a = a, .how = how};
	afs_err err = run(&r, name);
	vldb_lock_cleanup(&r.lock);
	return err;
}
