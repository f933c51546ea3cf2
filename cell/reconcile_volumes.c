/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Declared volumes, mount points and access lists, for volumes on this machine's partitions.  A new
 * volume is made, dressed and then entered in VL, which is when clients can find it; after a crash in
 * between it is found in the store and entered. */
#include "cell/reconcile_parts.h"

#include "cell/base/text.h"

#include <stdio.h>
#include <string.h>

static const struct vs_fid root_dir = {1, 1};

static struct vs_who who_now(void) { return (struct vs_who){.now = clk_wall(), .id = 0}; }

/* --- access lists ---------------------------------------------------------------------------- */

static uint32_t rights_of(const char *text)
{
	static const char letters[] = "rlidwka";
	static const uint32_t bits[] = {ACL_READ, ACL_LOOKUP, ACL_INSERT, ACL_DELETE, ACL_WRITE, ACL_LOCK, ACL_ADMIN};
	uint32_t rights = 0;
	if (strcmp(text, "all") == 0)
		return ACL_ALL;
	if (strcmp(text, "write") == 0)
		return ACL_ALL & ~(uint32_t)ACL_ADMIN;
	if (strcmp(text, "read") == 0)
		return ACL_READ | ACL_LOOKUP;
	if (strcmp(text, "none") == 0)
		return 0;
	for (; *text; text++)
		for (size_t i = 0; letters[i]; i++)
			if (*text == letters[i])
				rights |= bits[i];
	return rights;
}

static afs_err acl_of(struct reconcile_run *run, const struct conf_acl *acl, const char *label, struct vs_acl *out)
{
	*out = (struct vs_acl){};
	for (size_t i = 0; i < acl->n; i++) {
		int32_t id;
		uint32_t rights = rights_of(acl->v[i].rights);
		afs_err err = self_id_of(run->r->self, acl->v[i].name, &id);
		if (err == AFS_ENOENT)
			return reconcile_fail(run, label, err, "its access list names %s, who does not exist", acl->v[i].name);
		if (err != AFS_OK)
			return reconcile_fail(run, label, err, "%s cannot be looked up: %s", acl->v[i].name, afs_err_text(err));
		if (rights && out->positive < VS_ACL_MAX)
			out->e[out->positive++] = (struct vs_ace){id, rights};
	}
	afs_err err = vs_acl_normalise(out);
	return err == AFS_OK ? AFS_OK : reconcile_fail(run, label, err, "its access list names someone twice");
}

/* True when the directory has that list now. */
static bool same_acl(struct vs_volume *v, struct vs_fid dir, const struct vs_acl *want)
{
	struct vs_node node;
	if (vs_node_get(v, dir, &node) != AFS_OK || node.acl.positive != want->positive || node.acl.negative != want->negative)
		return false;
	for (unsigned i = 0; i < want->positive + want->negative; i++)
		if (node.acl.e[i].id != want->e[i].id || node.acl.e[i].rights != want->e[i].rights)
			return false;
	return true;
}

/* --- volumes --------------------------------------------------------------------------------- */

static void tell_clients(struct reconcile_run *run, struct vs_volume *v)
{
	run->r->changed(run->r->changed_ctx, vs_volume_id(v));
}

static bool is_own(const struct reconcile_run *run, const struct nvldbentry *e)
{
	for (int i = 0; i < e->nServers && i < VL_SITES_MAX; i++)
		for (size_t k = 0; k < run->r->own_ip_count; k++)
			if ((e->serverFlags[i] & VLSF_RW) && e->serverNumber[i] == run->r->own_ips[k])
				return true;
	return false;
}

/* A volume of that name on our partitions, in whatever state. */
static afs_err find_in_store(struct vs_store *store, const char *name, struct vs_volume **out)
{
	for (struct vs_partition *p = vs_partition_next(store, NULL); p; p = vs_partition_next(store, p)) {
		CLEANUP(heap) struct vs_listed *list = NULL;
		size_t n = 0;
		TRY(vs_volume_list(p, &list, &n));
		for (size_t i = 0; i < n; i++) {
			CLEANUP(vs_volume) struct vs_volume *v = NULL;
			struct vs_header h;
			if (list[i].err != AFS_OK || vs_volume_find(store, p, list[i].id, &v) != AFS_OK
				|| vs_volume_header(v, &h) != AFS_OK)
				continue;
			if (h.type == AFS_VOL_RW && !h.destroy_me && strcmp(h.name, name) == 0) {
				*out = TAKE(v);
				return AFS_OK;
			}
		}
	}
	return AFS_ENOENT;
}

static struct vs_partition *partition_for(struct reconcile_run *run, const struct conf_volume *want)
{
	if (!*want->partition)
		return vs_partition_next(run->r->store, NULL);
	int id = vs_partition_id_of(want->partition);
	return id < 0 ? NULL : vs_partition_find(run->r->store, (unsigned)id);
}

static afs_err dress_root(const struct conf_volume *want, struct vs_volume *v)
{
	struct vs_who who = who_now();
	struct vs_status st;
	struct vs_set set = {.mask = VS_SET_MODE, .mode = (uint32_t)want->mode};
	TRY(vs_set_status(v, root_dir, &set, &who, &st));
	if (want->acl.n || strcmp(want->name, "root.cell") != 0)
		return AFS_OK; /* a declared list follows with the comparison that every volume gets */
	struct vs_acl acl = {.positive = 2, .e = {{AFS_ADMINISTRATORS, ACL_ALL}, {AFS_ANYUSER, ACL_READ | ACL_LOOKUP}}};
	TRY(vs_acl_normalise(&acl));
	return vs_set_acl(v, root_dir, &acl, &who, &st);
}

/* `id` 0: a new one.  The volume is in service when this is done. */
static afs_err make_volume(struct reconcile_run *run, const struct conf_volume *want, afs_volid id, bool in_vl,
	const char *label, struct vs_volume **out)
{
	struct vs_partition *p = partition_for(run, want);
	if (!p)
		return AFS_EBADPART;
	if (!id)
		TRY(self_volume_new_id(run->r->self, &id));
	struct vs_header h = {.id = id, .type = AFS_VOL_RW, .quota_kib = want->quota < 0 ? 0 : (uint64_t)want->quota / 1024};
	snprintf(h.name, sizeof(h.name), "%s", want->name);
	CLEANUP(vs_volume) struct vs_volume *v = NULL;
	struct vs_volume *left = NULL;
	if (vs_volume_find(run->r->store, NULL, id, &left) == AFS_OK) { /* half made by a crash */
		TRY(vs_volume_delete(left));
		vs_volume_unref(left);
	}
	TRY(vs_volume_create(p, &h, true, clk_wall(), &v));
	h.in_service = h.blessed = true;
	h.destroy_me = false;
	afs_err err = vs_volume_set_header(v, &h, VS_H_IN_SERVICE | VS_H_BLESSED | VS_H_DESTROY_ME);
	if (err == AFS_OK)
		err = dress_root(want, v);
	if (err == AFS_OK && !in_vl)
		err = self_volume_enter(run->r->self, want->name, id, run->r->own_ips[0], vs_partition_id(p));
	if (err != AFS_OK) {
		(void)vs_volume_delete(v); /* the error that counts is the first */
		return err;
	}
	reconcile_did(run, "volume.create", label, "created on %s, id %u", vs_partition_name(p), id);
	*out = TAKE(v);
	return AFS_OK;
}

/* Quota, owner and access list of a volume that is there. */
static void match_volume(struct reconcile_run *run, const struct conf_volume *want, struct vs_volume *v, const char *label)
{
	struct vs_header h;
	struct vs_who who = who_now();
	struct vs_status st;
	afs_err err = vs_volume_header(v, &h);
	uint64_t quota_kib = want->quota < 0 ? h.quota_kib : (uint64_t)want->quota / 1024;
	if (err == AFS_OK && h.quota_kib != quota_kib) {
		h.quota_kib = quota_kib;
		err = vs_volume_set_header(v, &h, VS_H_QUOTA);
		if (err == AFS_OK) {
			char size[24];
			reconcile_did(run, "volume.quota", label, "quota is now %s",
				quota_kib ? text_size_of(size, want->quota) : "without limit");
			tell_clients(run, v);
		}
	}
	int32_t owner = 0;
	if (err == AFS_OK && *want->owner) {
		err = self_id_of(run->r->self, want->owner, &owner);
		if (err == AFS_ENOENT) {
			reconcile_problem(run, label, err, "its owner %s does not exist", want->owner);
			return;
		}
		if (err == AFS_OK && h.owner != owner) {
			struct vs_set set = {.mask = VS_SET_OWNER, .owner = owner};
			err = vs_set_status(v, root_dir, &set, &who, &st);
			if (err == AFS_OK) {
				reconcile_did(run, "volume.owner", label, "now owned by %s", want->owner);
				tell_clients(run, v);
			}
		}
	}
	struct vs_acl acl;
	if (err == AFS_OK && want->acl.n && acl_of(run, &want->acl, label, &acl) == AFS_OK && !same_acl(v, root_dir, &acl)) {
		err = vs_set_acl(v, root_dir, &acl, &who, &st);
		if (err == AFS_OK) {
			reconcile_did(run, "acl.set", label, "access list set");
			tell_clients(run, v);
		}
	}
	if (err != AFS_OK)
		reconcile_problem(run, label, err, "%s", afs_err_text(err));
}

static void one_volume(struct reconcile_run *run, const struct conf_volume *want)
{
	CLEANUP(str) char *label = mem_printf("volume %s", want->name);
	CLEANUP(vs_volume) struct vs_volume *v = NULL;
	struct nvldbentry e;
	if (!label) {
		reconcile_problem(run, want->name, AFS_ENOMEM, "out of memory");
		return;
	}
	afs_err err = self_volume_find(run->r->self, want->name, &e);
	bool in_vl = err == AFS_OK;
	if (in_vl && !is_own(run, &e))
		return; /* another server has it: its business */
	if (err != AFS_OK && err != AFS_ENOENT) {
		reconcile_problem(run, label, err, "cannot be looked up in the location database: %s", afs_err_text(err));
		return;
	}
	err = find_in_store(run->r->store, want->name, &v);
	if (err == AFS_ENOENT)
		err = make_volume(run, want, in_vl ? e.volumeId[AFS_VOL_RW] : 0, in_vl, label, &v);
	else if (err == AFS_OK && !in_vl) {
		struct vs_header h;
		err = vs_volume_header(v, &h);
		if (err == AFS_OK && h.files == 1) /* empty: a start that was killed may not have come to this */
			err = dress_root(want, v);
		if (err == AFS_OK)
			err = self_volume_enter(run->r->self, want->name, vs_volume_id(v), run->r->own_ips[0],
				vs_partition_id(vs_volume_partition(v)));
		if (err == AFS_OK)
			reconcile_did(run, "volume.enter", label, "entered in the location database");
	}
	if (err != AFS_OK) {
		reconcile_problem(run, label, err, "%s", afs_err_text(err));
		return;
	}
	/* An undeclared root.cell is made, and then its administrators' own. */
	if (want->pos.line)
		match_volume(run, want, v, label);
}

/* --- paths ----------------------------------------------------------------------------------- */

struct place {
	struct vs_volume *volume; /* referenced */
	struct vs_fid dir;
};
static inline void place_cleanup(struct place *p)
{
	if (p->volume)
		vs_volume_unref(p->volume);
}

static bool is_mount_point(const struct vs_status *st) { return st->type == AFS_SYMLINK && !(st->mode & 0111); }

/* The text of a symbolic link; `out` holds 1025 bytes. */
static afs_err link_text(struct vs_volume *v, struct vs_fid fid, char *out)
{
	CLEANUP(vs_file) struct vs_file *f = NULL;
	struct vs_status st;
	size_t n = 0;
	TRY(vs_file_open(v, fid, &st, &f));
	TRY(vs_file_read(f, 0, out, 1024, &n));
	out[n] = '\0';
	return AFS_OK;
}

/* Steps from a directory to the entry `name`, through mount points.  AFS_ENOENT; AFS_ENOTDIR. */
static afs_err step(struct reconcile_run *run, struct place *at, const char *name)
{
	struct vs_fid fid;
	struct vs_node node;
	TRY(vs_lookup(at->volume, at->dir, name, &fid));
	TRY(vs_node_get(at->volume, fid, &node));
	if (node.st.type == AFS_DIR) {
		at->dir = fid;
		return AFS_OK;
	}
	if (!is_mount_point(&node.st))
		return AFS_ENOTDIR;
	char text[1025];
	TRY(link_text(at->volume, fid, text));
	size_t n = strlen(text);
	if (n < 3 || strchr(text, ':'))
		return AFS_EXDEV; /* another cell */
	text[n - 1] = '\0'; /* the final dot */
	struct vs_volume *v = NULL;
	afs_err err = find_in_store(run->r->store, text + 1, &v);
	if (err != AFS_OK)
		return err == AFS_ENOENT ? AFS_EXDEV : err;
	vs_volume_unref(at->volume);
	at->volume = v;
	at->dir = root_dir;
	return AFS_OK;
}

/* Walk `path` from the cell's root.  `make`: missing directories are made, and `leaf` gets the last
 * component, which is not entered; else the whole path is entered. */
static afs_err walk(struct reconcile_run *run, const char *path, bool make, const char *label, struct place *at,
	char leaf[AFS_NAME_MAX + 1])
{
	afs_err err = find_in_store(run->r->store, "root.cell", &at->volume);
	if (err != AFS_OK)
		return reconcile_fail(run, label, err, "root.cell is not on this machine, so what is in it cannot be changed here");
	at->dir = root_dir;
	for (const char *p = path; *p && strcmp(path, ".") != 0;) {
		char name[AFS_NAME_MAX + 1];
		size_t n = strcspn(p, "/");
		snprintf(name, sizeof(name), "%.*s", (int)n, p);
		p += n + (p[n] == '/');
		if (make && !*p) {
			snprintf(leaf, AFS_NAME_MAX + 1, "%s", name);
			return AFS_OK;
		}
		err = step(run, at, name);
		if (err == AFS_ENOENT && make) {
			struct vs_who who = who_now();
			struct vs_set set = {.mask = VS_SET_MODE, .mode = 0755};
			struct vs_made made;
			err = vs_make_dir(at->volume, at->dir, name, &who, &set, &made);
			if (err == AFS_OK) {
				reconcile_did(run, "dir.create", label, "directory %.*s made", (int)(p - path - 1), path);
				tell_clients(run, at->volume);
				at->dir = made.node.fid;
			}
		}
		if (err == AFS_EXDEV)
			return reconcile_fail(run, label, err, "%.*s leads to a volume that is not on this machine",
				(int)(p - path - (*p ? 1 : 0)), path);
		if (err != AFS_OK)
			return reconcile_fail(run, label, err, "%.*s: %s", (int)(p - path - (*p ? 1 : 0)), path, afs_err_text(err));
	}
	return AFS_OK;
}

/* --- mount points ---------------------------------------------------------------------------- */

static void one_mount(struct reconcile_run *run, const char *path, const char *volume, bool rw)
{
	CLEANUP(str) char *label = mem_printf("mount point %s", path);
	CLEANUP(str) char *target = mem_printf("%c%s.", rw ? '%' : '#', volume);
	CLEANUP(place) struct place at = {};
	char leaf[AFS_NAME_MAX + 1];
	if (!label || !target) {
		reconcile_problem(run, path, AFS_ENOMEM, "out of memory");
		return;
	}
	if (walk(run, path, true, label, &at, leaf) != AFS_OK)
		return;
	struct vs_fid fid;
	struct vs_node node;
	struct vs_who who = who_now();
	afs_err err = vs_lookup(at.volume, at.dir, leaf, &fid);
	bool replace = err == AFS_OK;
	if (err == AFS_OK)
		err = vs_node_get(at.volume, fid, &node);
	if (err == AFS_OK) {
		char text[1025];
		if (!is_mount_point(&node.st)) {
			reconcile_problem(run, label, AFS_EEXIST, "a file or directory of that name is there; move it away");
			return;
		}
		err = link_text(at.volume, fid, text);
		if (err == AFS_OK && strcmp(text, target) == 0)
			return;
		struct vs_removed removed;
		if (err == AFS_OK)
			err = vs_remove(at.volume, at.dir, leaf, &who, &removed);
	}
	if (err == AFS_OK || err == AFS_ENOENT) {
		struct vs_set set = {.mask = VS_SET_MODE, .mode = 0644};
		struct vs_made made;
		err = vs_make_symlink(at.volume, at.dir, leaf, target, strlen(target), &who, &set, &made);
	}
	if (err != AFS_OK) {
		reconcile_problem(run, label, err, "%s", afs_err_text(err));
		return;
	}
	reconcile_did(run, "mount.make", label, "%s volume %s", replace ? "now leads to" : "made, leads to", volume);
	tell_clients(run, at.volume);
}

static void one_acl(struct reconcile_run *run, const struct conf_acl_at *want)
{
	CLEANUP(str) char *label = mem_printf("access list of %s", want->path);
	CLEANUP(place) struct place at = {};
	struct vs_acl acl;
	if (!label) {
		reconcile_problem(run, want->path, AFS_ENOMEM, "out of memory");
		return;
	}
	if (walk(run, want->path, false, label, &at, NULL) != AFS_OK || acl_of(run, &want->acl, label, &acl) != AFS_OK
		|| same_acl(at.volume, at.dir, &acl))
		return;
	struct vs_who who = who_now();
	struct vs_status st;
	afs_err err = vs_set_acl(at.volume, at.dir, &acl, &who, &st);
	if (err != AFS_OK) {
		reconcile_problem(run, label, err, "%s", afs_err_text(err));
		return;
	}
	reconcile_did(run, "acl.set", label, "set");
	tell_clients(run, at.volume);
}

void reconcile_volumes(struct reconcile_run *run)
{
	const struct conf *c = run->r->conf;
	bool root_declared = false;
	for (size_t i = 0; i < c->volume_count; i++)
		root_declared = root_declared || strcmp(c->volumes[i].name, "root.cell") == 0;
	if (!root_declared)
		one_volume(run, &(struct conf_volume){.name = (char[]){"root.cell"}, .partition = (char[]){""},
			.owner = (char[]){""}, .mount = (char[]){""}, .mode = 0755, .quota = -1});
	for (size_t i = 0; i < c->volume_count && !reconcile_stop(run); i++)
		one_volume(run, &c->volumes[i]);
	for (size_t i = 0; i < c->volume_count && !reconcile_stop(run); i++)
		if (*c->volumes[i].mount)
			one_mount(run, c->volumes[i].mount, c->volumes[i].name, false);
	for (size_t i = 0; i < c->mount_count && !reconcile_stop(run); i++)
		one_mount(run, c->mounts[i].path, c->mounts[i].volume, c->mounts[i].rw);
	for (size_t i = 0; i < c->acl_count && !reconcile_stop(run); i++)
		one_acl(run, &c->acls[i]);
}
