/* SPDX-License-Identifier: BSD-2-Clause
 * Verbs on names: create, mkdir, symlink, link, remove, rmdir (rename: rename.c).
 * Rules and their order: fileserver.md §5; versions and times: §10. */
#include "fileserver/store/names.h"

#include "cell/base/log.h"

#include <string.h>

/* --- shared --------------------------------------------------------------------------- */

afs_err vs_name_old(const char *name)
{
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		strchr(name, '/'))
		return AFS_EINVAL;
	return strlen(name) > AFS_NAME_MAX ? AFS_ENAMETOOLONG : AFS_OK;
}

afs_err vs_name_new(const char *name)
{
	TRY(vs_name_old(name));
	size_t n = strlen(name);
	return n >= 4 && strcmp(name + n - 4, "@sys") == 0 ? AFS_EINVAL : AFS_OK;
}

afs_err vs_name_resolve(
	struct vs_volume *v, struct vs_vnode *dir, const char *name, struct vs_vnode **out)
{
	struct vs_dir_entry e;
	TRY(vs_dir_find(&dir->dir->d, name, &e));
	afs_err err = vs_vnode_get(v, (struct vs_fid){e.vnode, e.unique}, out);
	if (err == AFS_ENOVNODE)
		return log_error(AFS_ECORRUPT, "vs.dir.dangling volume=%u vnode=%u entry=%u.%u",
			v->id, dir->row.st.fid.vnode, e.vnode, e.unique);
	return err;
}

struct vs_row *vs_dir_changed(struct vs_tx *tx, struct vs_vnode *dir, const struct vs_who *who)
{
	vs_tx_dir(tx, dir);
	struct vs_row *row = vs_tx_edit(tx, dir);
	row->st.dv = dir->row.st.dv + 1; /* once, however often the verb comes by */
	row->st.author = who->id;
	row->st.client_mtime = row->st.server_mtime = who->now;
	return row;
}

bool vs_drop_name(struct vs_tx *tx, struct vs_vnode *vn, const struct vs_who *who)
{
	struct vs_row *row = vs_tx_edit(tx, vn);
	if (row->st.links > 1) {
		row->st.links--;
		row->st.server_mtime = who->now;
		return false;
	}
	vs_tx_gone(tx, vn);
	return true;
}

/* --- making --------------------------------------------------------------------------- */

struct making {
	struct vs_fid dir;
	const char *name;
	enum afs_filetype type;
	const char *text;
	size_t n;
	const struct vs_who *who;
	const struct vs_set *set;
};

static void birth(struct vs_row *row, const struct vs_row *parent, const struct making *m)
{
	uint32_t mask = m->set->mask;
	row->st.parent = parent->st.fid;
	row->st.mode = mask & VS_SET_MODE ? m->set->mode & 07777 : 0777;
	row->st.owner = mask & VS_SET_OWNER ? m->set->owner : m->who->id;
	row->st.group = mask & VS_SET_GROUP ? m->set->group : parent->st.group;
	row->st.author = m->who->id;
	row->st.links = m->type == AFS_DIR ? 2 : 1;
	row->st.client_mtime = mask & VS_SET_MTIME ? m->set->mtime : m->who->now;
	row->st.server_mtime = m->who->now;
}

static afs_err make_object(struct vs_tx *tx, struct vs_vnode *vn, struct vs_vnode *dir)
{
	struct vs_edit *e = &tx->edit[tx->edits - 1]; /* vs_tx_new came last */
	e->acl = mem_new(struct vs_acl);
	vn->dir = mem_new(struct vs_dirobj);
	if (!e->acl || !vn->dir)
		return AFS_ENOMEM;
	*e->acl = *dir->acl;
	vn->dir->vn = vn;
	const struct vs_fid self = vn->row.st.fid, up = dir->row.st.fid;
	TRY(vs_dir_make(&vn->dir->d, self.vnode, self.unique, up.vnode, up.unique));
	e->row.st.length = VS_DIR_PAGE;
	return AFS_OK;
}

static afs_err make_locked(
	struct vs_volume *v, const struct making *m, struct vs_made *out, uint64_t *seq)
{
	struct vs_vnode *dir, *vn;
	struct vs_dir_entry there;
	TRY(vs_vnode_get_dir(v, m->dir, &dir));
	afs_err err = vs_dir_find(&dir->dir->d, m->name, &there);
	if (err != AFS_ENOENT)
		return err ? err : AFS_EEXIST;
	if (m->type == AFS_DIR && dir->row.st.links >= VS_LINKS_MAX)
		return AFS_EMLINK;

	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, v, m->who->now);
	TRY(vs_tx_new(&tx, m->type, &vn));
	struct vs_row *row = vs_tx_edit(&tx, vn);
	birth(row, &dir->row, m);
	if (m->type == AFS_DIR)
		TRY(make_object(&tx, vn, dir));
	row->st.length = m->type == AFS_SYMLINK ? m->n : row->st.length;

	struct vs_row *parent = vs_dir_changed(&tx, dir, m->who);
	parent->st.links += m->type == AFS_DIR;
	TRY(vs_dir_add(&dir->dir->d, m->name, row->st.fid.vnode, row->st.fid.unique));
	if (m->type == AFS_SYMLINK) {
		TRY(vs_tx_begin(&tx));
		TRY(vs_inline_put(&tx, row, m->text, m->n));
	} else {
		TRY(vs_tx_begin(&tx));
	}
	const struct vs_made made = {.node = row->st, .dir = parent->st};
	TRY(vs_tx_commit(&tx));
	*seq = tx.seq;
	*out = made;
	return AFS_OK;
}

static afs_err make(struct vs_volume *v, const struct making *m, struct vs_made *out)
{
	uint64_t seq = 0;
	TRY(vs_name_new(m->name));
	TRY(vs_volume_lock_write(v));
	afs_err err = make_locked(v, m, out, &seq);
	vs_volume_unlock(v);
	return err ? err : vs_volume_settle(v, seq);
}

static const struct vs_set set_nothing;

afs_err vs_create_file(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, const struct vs_set *set, struct vs_made *out)
{
	const struct making m = {dir, name, AFS_FILE, NULL, 0, who, set ? set : &set_nothing};
	return make(v, &m, out);
}

afs_err vs_make_dir(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, const struct vs_set *set, struct vs_made *out)
{
	const struct making m = {dir, name, AFS_DIR, NULL, 0, who, set ? set : &set_nothing};
	return make(v, &m, out);
}

afs_err vs_make_symlink(struct vs_volume *v, struct vs_fid dir, const char *name, const char *text,
	size_t n, const struct vs_who *who, const struct vs_set *set, struct vs_made *out)
{
	if (n == 0 || n > VS_SYMLINK_MAX || memchr(text, '\0', n))
		return AFS_EINVAL;
	const struct making m = {dir, name, AFS_SYMLINK, text, n, who, set ? set : &set_nothing};
	return make(v, &m, out);
}

static afs_err link_locked(struct vs_volume *v, struct vs_fid dir_fid, const char *name,
	struct vs_fid file, const struct vs_who *who, struct vs_made *out, uint64_t *seq)
{
	struct vs_vnode *dir, *vn;
	struct vs_dir_entry there;
	TRY(vs_vnode_get_dir(v, dir_fid, &dir));
	TRY(vs_vnode_get(v, file, &vn));
	if (vn->row.st.type != AFS_FILE)
		return AFS_EISDIR;
	if (vn->row.st.parent.vnode != dir_fid.vnode || vn->row.st.parent.unique != dir_fid.unique)
		return AFS_EXDEV;
	afs_err err = vs_dir_find(&dir->dir->d, name, &there);
	if (err != AFS_ENOENT)
		return err ? err : AFS_EEXIST;
	if (vn->row.st.links >= VS_LINKS_MAX)
		return AFS_EMLINK;

	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, v, who->now);
	struct vs_row *row = vs_tx_edit(&tx, vn), *parent = vs_dir_changed(&tx, dir, who);
	row->st.links++;
	row->st.author = who->id;
	row->st.server_mtime = who->now;
	TRY(vs_dir_add(&dir->dir->d, name, file.vnode, file.unique));
	TRY(vs_tx_begin(&tx));
	const struct vs_made made = {.node = row->st, .dir = parent->st};
	TRY(vs_tx_commit(&tx));
	*seq = tx.seq;
	*out = made;
	return AFS_OK;
}

afs_err vs_link(struct vs_volume *v, struct vs_fid dir, const char *name, struct vs_fid file,
	const struct vs_who *who, struct vs_made *out)
{
	uint64_t seq = 0;
	TRY(vs_name_new(name));
	TRY(vs_volume_lock_write(v));
	afs_err err = link_locked(v, dir, name, file, who, out, &seq);
	vs_volume_unlock(v);
	return err ? err : vs_volume_settle(v, seq);
}

/* --- removing ------------------------------------------------------------------------- */

static afs_err remove_locked(struct vs_volume *v, struct vs_fid dir_fid, const char *name,
	bool want_dir, const struct vs_who *who, struct vs_removed *out, uint64_t *seq)
{
	struct vs_vnode *dir, *vn;
	TRY(vs_vnode_get_dir(v, dir_fid, &dir));
	TRY(vs_name_resolve(v, dir, name, &vn));
	bool is_dir = vn->row.st.type == AFS_DIR;
	if (is_dir != want_dir)
		return is_dir ? AFS_EISDIR : AFS_ENOTDIR;
	if (is_dir) {
		TRY(vs_vnode_load_dir(v, vn));
		if (!vs_dir_is_empty(&vn->dir->d))
			return AFS_ENOTEMPTY;
	}

	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, v, who->now);
	struct vs_row *parent = vs_dir_changed(&tx, dir, who);
	struct vs_removed removed = {.freed = true};
	if (is_dir) {
		parent->st.links -= parent->st.links > 2;
		vs_tx_gone(&tx, vn);
	} else {
		removed.freed = vs_drop_name(&tx, vn, who);
	}
	TRY(vs_dir_remove(&dir->dir->d, name));
	removed.node = removed.freed ? vn->row.st : vs_tx_edit(&tx, vn)->st;
	TRY(vs_tx_begin(&tx));
	removed.dir = parent->st;
	TRY(vs_tx_commit(&tx));
	*seq = tx.seq;
	*out = removed;
	return AFS_OK;
}

static afs_err remove_name(struct vs_volume *v, struct vs_fid dir, const char *name, bool want_dir,
	const struct vs_who *who, struct vs_removed *out)
{
	uint64_t seq = 0;
	TRY(vs_name_old(name));
	TRY(vs_volume_lock_write(v));
	afs_err err = remove_locked(v, dir, name, want_dir, who, out, &seq);
	vs_volume_unlock(v);
	return err ? err : vs_volume_settle(v, seq);
}

afs_err vs_remove(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, struct vs_removed *out)
{
	return remove_name(v, dir, name, false, who, out);
}

afs_err vs_remove_dir(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, struct vs_removed *out)
{
	return remove_name(v, dir, name, true, who, out);
}
