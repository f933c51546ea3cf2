/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who may do what: the one place in the file service that decides.
 *
 * A handler begins with fs_access_begin, which finds the caller, the volume and the object; asks
 * fs_access_may, which is the table of fileserver.md §7; and only then calls a verb of the store. */
#pragma once
#include "cell/proto/fs.h"
#include "fileserver/cb/cb.h"
#include "fileserver/fs/fs_internal.h"
#include "fileserver/store/store.h"

enum fs_act {
	FS_ACT_STAT,
	FS_ACT_FETCH_ACL,
	FS_ACT_READ,
	FS_ACT_STORE,  /* with the status that comes along */
	FS_ACT_CHANGE, /* StoreStatus */
	FS_ACT_STORE_ACL,
	FS_ACT_INSERT,      /* a name into this directory */
	FS_ACT_MOUNT_POINT, /* ... of a mount point */
	FS_ACT_DELETE,      /* a name from this directory */
	FS_ACT_LOCK_READ,
	FS_ACT_LOCK_WRITE,
	FS_ACT_SET_VOLUME,
};

/* A caller before an object, as far as rights go. */
struct fs_standing {
	uint32_t rights;    /* CallerAccess: the ACL's, adjusted for administrators and owners */
	uint32_t anonymous; /* AnonymousAccess */
	bool admin, owner, nobody /* anonymous */, volume_owner;
};

/* Rights that `acl` gives to the ids of `cps`: positive ones united, less the negative ones. */
uint32_t fs_acl_rights(const struct vs_acl *acl, const struct fs_cps *cps);
struct fs_standing fs_standing_of(const struct vs_node *node, const struct fs_identity *who,
	const struct fs_cps *host_groups, uint32_t admin_rights);
/* AFS_OK, AFS_EACCESS, AFS_EPERM (owner and group are administrators' to change).  `set` is what
 * comes along with STORE and CHANGE, else NULL. */
afs_err fs_may(const struct fs_standing *s, const struct vs_status *st, enum fs_act act,
	const struct vs_set *set);

struct fs_access {
	struct fileserver *fs;
	struct rpc_call *call;
	struct cb_client *client;
	struct vs_volume *vol;
	struct AFSFid fid;
	struct vs_node node;
	struct fs_standing standing;
	struct vs_who who;
};
void fs_access_fini(struct fs_access *a);
static inline void fs_access_cleanup(struct fs_access *a) { fs_access_fini(a); }

/* The caller alone, for calls about no object.  Errors as cb_client_begin. */
afs_err fs_access_caller(struct fileserver *fs, struct rpc_call *call, struct fs_access *a);
/* The caller before `fid`.  AFS_EINVAL: a volume or vnode of 0; errors of vs_volume_enter and
 * vs_node_get. */
afs_err fs_access_begin(struct fileserver *fs, struct rpc_call *call, const struct AFSFid *fid,
	struct fs_access *a);
/* The same caller before another volume; keeps it when it is the same one.  Errors of
 * vs_volume_enter. */
afs_err fs_access_volume(struct fs_access *a, afs_volid volume);
/* Another object for the same caller: `a` keeps caller and, when it is the same, the volume. */
afs_err fs_access_turn(struct fs_access *a, const struct AFSFid *fid);
/* The caller before `node`, which was read as `fid`'s. */
void fs_access_judge(struct fs_access *a, const struct AFSFid *fid, const struct vs_node *node);
/* As fs_may; AFS_EROFS comes first when `act` changes something in a volume that never changes. */
afs_err fs_access_may(const struct fs_access *a, enum fs_act act, const struct vs_set *set);
/* Look at the object again, after a promise. */
afs_err fs_access_again(struct fs_access *a);

/* What came along to be set; fields that the mask does not name are never looked at.  Judge this, then
 * store what is allowed of it: set-id and sticky bits are administrators'. */
struct vs_set fs_set_asked(const struct AFSStoreStatus *in);
struct vs_set fs_set_allowed(const struct fs_access *a, struct vs_set set);

/* Replies. */
void fs_reply_status(
	const struct fs_access *a, const struct vs_status *st, struct AFSFetchStatus *out);
/* What a verb that makes a name gave back; `a` stands before the directory; fid may be NULL. */
void fs_reply_made(const struct fs_access *a, const struct vs_made *made, struct AFSFid *fid,
	struct AFSFetchStatus *node, struct AFSFetchStatus *dir);
void fs_reply_sync(const struct fs_access *a, struct AFSVolSync *out);
/* Promise word of changes to `fid`; read its status after this. */
void fs_reply_promise(
	struct fs_access *a, const struct AFSFid *fid, bool bulk, struct AFSCallBack *out);
/* The same, as from a bulk call, for several of the volume. */
void fs_reply_promises(
	struct fs_access *a, const struct AFSFid *fids, size_t n, struct AFSCallBack *out);
/* Tell every other client (`everybody`: the caller's too) about at most 4 objects of the volume. */
void fs_access_break(
	const struct fs_access *a, const struct vs_fid *fids, size_t n, bool everybody);
