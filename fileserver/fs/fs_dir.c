/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names: CreateFile, MakeDir, Symlink, Link, RemoveFile, RemoveDir, Rename.
 *
 * Each is one verb of the store, then word to everybody else who was promised some (callback.md §3:
 * what breaks what), then the reply. */
#include "fileserver/fs/fs_handlers.h"

afs_err fs_name_check(const struct xdr_str *name)
{
	if (name->len == 0 || xdr_str_is(*name, ".") || xdr_str_is(*name, "..") ||
		memchr(name->p, '/', name->len))
		return AFS_EINVAL;
	return name->len > AFS_NAME_MAX ? AFS_ENAMETOOLONG : AFS_OK;
}

/* The caller before a directory of which it wants to change the names. */
static afs_err begin(struct rpc_call *call, const struct AFSFid *dir, const struct xdr_str *name,
	enum fs_act act, struct fs_access *a)
{
	TRY(fs_name_check(name));
	TRY(fs_access_begin(call->service, call, dir, a));
	if (a->node.st.type != AFS_DIR)
		return AFS_ENOTDIR;
	return fs_access_may(a, act, NULL);
}

/* A name that is about to be: clients replace @sys by the system's kind, so none may end in it. */
static afs_err new_name_check(const struct xdr_str *name)
{
	if (name->len >= 4 && memcmp(name->p + name->len - 4, "@sys", 4) == 0)
		return AFS_EINVAL;
	return fs_name_check(name);
}

static afs_err begin_insert(struct rpc_call *call, const struct AFSFid *dir,
	const struct xdr_str *name, enum fs_act act, struct fs_access *a)
{
	TRY(new_name_check(name));
	return begin(call, dir, name, act, a);
}

/* A promise on what was just made.  Somebody may have changed it since: look again after it. */
static void promise_made(struct fs_access *a, struct vs_made *made, struct AFSCallBack *cb)
{
	struct AFSFid fid = {a->fid.Volume, made->node.fid.vnode, made->node.fid.unique};
	struct vs_node node;
	fs_reply_promise(a, &fid, false, cb);
	if (vs_node_get(a->vol, made->node.fid, &node) == AFS_OK)
		made->node = node.st;
	else /* gone already */
		*cb = (struct AFSCallBack){CB_VERSION, 0, CB_DROPPED};
}

afs_err fs_create_file(
	struct rpc_call *call, const struct fs_create_file_in *in, struct fs_create_file_out *out)
{
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_made made;

	TRY(begin_insert(call, &in->DirFid, &in->Name, FS_ACT_INSERT, &a));
	struct vs_set set = fs_set_allowed(&a, fs_set_asked(&in->InStatus));
	TRY(vs_create_file(a.vol, vs_fid(&in->DirFid), in->Name.p, &a.who, &set, &made));
	fs_access_break(&a, &made.dir.fid, 1, false);

	promise_made(&a, &made, &out->CallBack);
	fs_reply_made(&a, &made, &out->OutFid, &out->OutFidStatus, &out->OutDirStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}

afs_err fs_make_dir(
	struct rpc_call *call, const struct fs_make_dir_in *in, struct fs_make_dir_out *out)
{
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_made made;

	TRY(begin_insert(call, &in->DirFid, &in->Name, FS_ACT_INSERT, &a));
	struct vs_set set = fs_set_allowed(&a, fs_set_asked(&in->InStatus));
	TRY(vs_make_dir(a.vol, vs_fid(&in->DirFid), in->Name.p, &a.who, &set, &made));
	fs_access_break(&a, &made.dir.fid, 1, false);

	promise_made(&a, &made, &out->CallBack);
	fs_reply_made(&a, &made, &out->OutFid, &out->OutFidStatus, &out->OutDirStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}

/* A mode without any x bit makes a mount point, which takes `a` besides. */
afs_err fs_symlink(
	struct rpc_call *call, const struct fs_symlink_in *in, struct fs_symlink_out *out)
{
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_made made;
	struct vs_set set = fs_set_asked(&in->InStatus);
	bool mount = (set.mask & VS_SET_MODE) && !(set.mode & 0111);

	TRY(begin_insert(
		call, &in->DirFid, &in->Name, mount ? FS_ACT_MOUNT_POINT : FS_ACT_INSERT, &a));
	set = fs_set_allowed(&a, set);
	TRY(vs_make_symlink(a.vol, vs_fid(&in->DirFid), in->Name.p, in->LinkContents.p,
		in->LinkContents.len, &a.who, &set, &made));
	fs_access_break(&a, &made.dir.fid, 1, false);

	fs_reply_made(&a, &made, &out->OutFid, &out->OutFidStatus, &out->OutDirStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}

afs_err fs_link(struct rpc_call *call, const struct fs_link_in *in, struct fs_link_out *out)
{
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_made made;

	if (in->ExistingFid.Volume != in->DirFid.Volume)
		return AFS_EXDEV;
	TRY(begin_insert(call, &in->DirFid, &in->Name, FS_ACT_INSERT, &a));
	TRY(vs_link(
		a.vol, vs_fid(&in->DirFid), in->Name.p, vs_fid(&in->ExistingFid), &a.who, &made));
	fs_access_break(&a, (struct vs_fid[]){made.dir.fid, made.node.fid}, 2, false);

	fs_reply_made(&a, &made, NULL, &out->OutFidStatus, &out->OutDirStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}

/* The object that lost a name.  Dead: promises on it go silently, its directory's break tells. */
static void lost_name(struct fs_access *a, const struct vs_status *node, bool freed)
{
	struct AFSFid fid = {a->fid.Volume, node->fid.vnode, node->fid.unique};
	if (freed) {
		cb_gone(a->fs->cb, &fid);
		fs_locks_drop(a->fs->locks, &fid);
	} else {
		fs_access_break(a, &node->fid, 1, true);
	}
}

afs_err fs_remove_file(
	struct rpc_call *call, const struct fs_remove_file_in *in, struct fs_remove_file_out *out)
{
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_removed gone;

	TRY(begin(call, &in->DirFid, &in->Name, FS_ACT_DELETE, &a));
	TRY(vs_remove(a.vol, vs_fid(&in->DirFid), in->Name.p, &a.who, &gone));
	lost_name(&a, &gone.node, gone.freed);
	fs_access_break(&a, &gone.dir.fid, 1, false);

	fs_reply_status(&a, &gone.dir, &out->OutDirStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}

afs_err fs_remove_dir(
	struct rpc_call *call, const struct fs_remove_dir_in *in, struct fs_remove_dir_out *out)
{
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_removed gone;

	TRY(begin(call, &in->DirFid, &in->Name, FS_ACT_DELETE, &a));
	TRY(vs_remove_dir(a.vol, vs_fid(&in->DirFid), in->Name.p, &a.who, &gone));
	lost_name(&a, &gone.node, true);
	fs_access_break(&a, &gone.dir.fid, 1, false);

	fs_reply_status(&a, &gone.dir, &out->OutDirStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}

afs_err fs_rename(struct rpc_call *call, const struct fs_rename_in *in, struct fs_rename_out *out)
{
	CLEANUP(fs_access) struct fs_access old = {0};
	CLEANUP(fs_access) struct fs_access new = {0};
	struct vs_renamed done;

	TRY(fs_name_check(&in->OldName));
	TRY(new_name_check(&in->NewName));
	if (in->OldDirFid.Volume != in->NewDirFid.Volume)
		return AFS_EXDEV;
	TRY(fs_access_begin(call->service, call, &in->OldDirFid, &old));
	TRY(fs_access_begin(call->service, call, &in->NewDirFid, &new));
	if (old.node.st.type != AFS_DIR || new.node.st.type != AFS_DIR)
		return AFS_ENOTDIR;
	TRY(fs_access_may(&old, FS_ACT_DELETE, NULL));
	TRY(fs_access_may(&new, FS_ACT_INSERT, NULL));
	bool may_replace = fs_access_may(&new, FS_ACT_DELETE, NULL) == AFS_OK;

	TRY(vs_rename(old.vol, vs_fid(&in->OldDirFid), in->OldName.p, vs_fid(&in->NewDirFid),
		in->NewName.p, may_replace, &old.who, &done));
	if (done.replaced && done.replaced_node.type == AFS_DIR)
		fs_access_break(&old, &done.replaced_node.fid, 1, true);
	if (done.replaced)
		lost_name(&old, &done.replaced_node, done.replaced_freed);
	if (done.dotdot_changed)
		fs_access_break(&old, &done.moved.fid, 1, true);
	fs_access_break(&old, (struct vs_fid[]){done.old_dir.fid, done.new_dir.fid},
		fid_equal(&in->OldDirFid, &in->NewDirFid) ? 1 : 2, false);

	fs_reply_status(&old, &done.old_dir, &out->OutOldDirStatus);
	fs_reply_status(&new, &done.new_dir, &out->OutNewDirStatus);
	fs_reply_sync(&old, &out->Sync);
	return AFS_OK;
}
