/* SPDX-License-Identifier: BSD-2-Clause
 * Rename: the checks of fileserver.md §5 in their order, then one transaction over up to five
 * vnodes. The new entry is made before the old one goes, as every client's local copy does
 * (directory.md §6). */
#include "fileserver/store/names.h"

#include "cell/base/log.h"

#include <string.h>

struct renaming {
	struct vs_fid old_dir, new_dir;
	const char *old_name, *new_name;
	bool may_replace;
	const struct vs_who *who;

	struct vs_vnode *from, *to; /* the directories, maybe one */
	struct vs_vnode *moved;
	struct vs_vnode *target; /* what has the new name, or NULL */
};

/* Is `dir` the directory `top` or below it?  AFS_ELOOP if so. */
static afs_err not_below(struct vs_volume *v, struct vs_vnode *dir, const struct vs_vnode *top)
{
	for (uint64_t steps = v->h.files + 1; steps; steps--) {
		if (dir == top)
			return AFS_ELOOP;
		if (dir->row.st.fid.vnode == 1)
			return AFS_OK;
		TRY(vs_vnode_get(v, dir->row.st.parent, &dir));
	}
	return log_error(
		AFS_ECORRUPT, "vs.dir.loop volume=%u vnode=%u", v->id, dir->row.st.fid.vnode);
}

static afs_err judge_target(struct vs_volume *v, struct renaming *r)
{
	if (!r->may_replace)
		return AFS_EACCESS;
	TRY(vs_name_resolve(v, r->to, r->new_name, &r->target));
	if (r->target == r->moved || r->target == r->from || r->target == r->to)
		return AFS_EINVAL;
	bool dir = r->moved->row.st.type == AFS_DIR, target_dir = r->target->row.st.type == AFS_DIR;
	if (target_dir && !dir)
		return AFS_EISDIR;
	if (!target_dir && dir)
		return AFS_ENOTDIR;
	if (target_dir) {
		TRY(vs_vnode_load_dir(v, r->target));
		if (!vs_dir_is_empty(&r->target->dir->d))
			return AFS_ENOTEMPTY;
	}
	return AFS_OK;
}

static afs_err judge(struct vs_volume *v, struct renaming *r)
{
	struct vs_dir_entry there;
	TRY(vs_vnode_get_dir(v, r->old_dir, &r->from));
	TRY(vs_vnode_get_dir(v, r->new_dir, &r->to));
	TRY(vs_name_resolve(v, r->from, r->old_name, &r->moved));
	if (r->moved == r->from || r->moved == r->to)
		return AFS_ELOOP;
	bool dir = r->moved->row.st.type == AFS_DIR;
	if (!dir && r->from != r->to && r->moved->row.st.links > 1)
		return AFS_EXDEV;
	afs_err err = vs_dir_find(&r->to->dir->d, r->new_name, &there);
	if (!err)
		TRY(judge_target(v, r));
	else if (err != AFS_ENOENT)
		return err;
	if (dir && r->from != r->to) {
		TRY(not_below(v, r->to, r->moved));
		TRY(vs_vnode_load_dir(v, r->moved));
		if (!r->target && r->to->row.st.links >= VS_LINKS_MAX)
			return AFS_EMLINK;
	}
	return AFS_OK;
}

/* ".." of a directory that moved. */
static afs_err move_dotdot(struct vs_tx *tx, const struct renaming *r)
{
	struct vs_vnode *vn = r->moved;
	vs_tx_dir(tx, vn);
	TRY(vs_dir_remove(&vn->dir->d, ".."));
	TRY(vs_dir_add(&vn->dir->d, "..", r->new_dir.vnode, r->new_dir.unique));
	struct vs_row *row = vs_tx_edit(tx, vn);
	row->st.dv++;
	return AFS_OK;
}

static afs_err carry_out(struct vs_tx *tx, const struct renaming *r, struct vs_renamed *out)
{
	struct vs_row *from = vs_dir_changed(tx, r->from, r->who),
		      *to = vs_dir_changed(tx, r->to, r->who);
	const struct vs_fid moved = r->moved->row.st.fid;
	bool dir = r->moved->row.st.type == AFS_DIR;
	if (r->target) {
		TRY(vs_dir_remove(&r->to->dir->d, r->new_name));
		out->replaced = out->replaced_freed = true;
		if (dir) {
			to->st.links -= to->st.links > 2;
			vs_tx_gone(tx, r->target);
		} else {
			out->replaced_freed = vs_drop_name(tx, r->target, r->who);
		}
		out->replaced_node =
			out->replaced_freed ? r->target->row.st : vs_tx_edit(tx, r->target)->st;
	}
	TRY(vs_dir_add(&r->to->dir->d, r->new_name, moved.vnode, moved.unique));
	TRY(vs_dir_remove(&r->from->dir->d, r->old_name));
	if (r->from != r->to) {
		struct vs_row *row = vs_tx_edit(tx, r->moved);
		row->st.parent = r->new_dir;
		row->st.server_mtime =
			r->who->now; /* an incremental dump must carry the new parent */
		if (dir) {
			from->st.links -= from->st.links > 2;
			to->st.links++;
			TRY(move_dotdot(tx, r));
			out->dotdot_changed = true;
		}
	}
	TRY(vs_tx_begin(tx));
	out->old_dir = from->st;
	out->new_dir = to->st;
	out->moved = r->from != r->to ? vs_tx_edit(tx, r->moved)->st : r->moved->row.st;
	return AFS_OK;
}

static afs_err rename_locked(
	struct vs_volume *v, struct renaming *r, struct vs_renamed *out, uint64_t *seq)
{
	TRY(judge(v, r));
	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, v, r->who->now);
	struct vs_renamed renamed = {0};
	TRY(carry_out(&tx, r, &renamed));
	TRY(vs_tx_commit(&tx));
	*seq = tx.seq;
	*out = renamed;
	return AFS_OK;
}

afs_err vs_rename(struct vs_volume *v, struct vs_fid old_dir, const char *old_name,
	struct vs_fid new_dir, const char *new_name, bool may_replace, const struct vs_who *who,
	struct vs_renamed *out)
{
	struct renaming r = {
		.old_dir = old_dir,
		.new_dir = new_dir,
		.old_name = old_name,
		.new_name = new_name,
		.may_replace = may_replace,
		.who = who,
	};
	uint64_t seq = 0;
	TRY(vs_name_new(new_name));
	TRY(vs_name_old(old_name));
	TRY(vs_volume_lock_write(v));
	afs_err err = rename_locked(v, &r, out, &seq);
	vs_volume_unlock(v);
	return err ? err : vs_volume_settle(v, seq);
}
