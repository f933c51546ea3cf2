/* SPDX-License-Identifier: BSD-2-Clause
 * What a local user may do, judged before the cache answers him (cache-manager.md §6).  The server
 * judges again whatever reaches it. */
#include "client/cm/cm.h"

#include <unistd.h>

bool cm_is_public_locked(const struct cm_vnode *v) { return v->st.AnonymousAccess & ACL_LOOKUP; }

/* A file's rights are its directory's, since an ACL may change without word about the files in it. */
static afs_err parent_rights(struct cm_vnode *v, struct cm_ident *id,
	const struct AFSFetchStatus *st, uint32_t *out) NO_TSA
{
	struct AFSFid fid = {v->fid.Volume, st->ParentVnode, st->ParentUnique};
	CLEANUP(cm_vnode) struct cm_vnode *dir = NULL;
	bool known;
	if (!fid.Vnode) {
		TRY(cm_status_lock(v, id, true));
		*out = cm_rights_locked(v, id, &known);
		mtx_unlock(&v->lock);
		return AFS_OK;
	}
	TRY(cm_vnode_get(v->cm, v->vol->cell, &fid, &dir));
	TRY(cm_status_lock(dir, id, true));
	*out = cm_rights_locked(dir, id, &known);
	mtx_unlock(&dir->lock);
	return AFS_OK;
}

/* Does the ident own the file?  The server says so in bit `a` of its own status. */
static bool owns(struct cm_vnode *v, struct cm_ident *id) NO_TSA
{
	bool known;
	if (!id->number || cm_status_lock(v, id, true) != AFS_OK)
		return false;
	bool own = cm_rights_locked(v, id, &known) & ACL_ADMIN;
	mtx_unlock(&v->lock);
	return own;
}

static afs_err judge(struct cm_vnode *v, struct cm_ident *id, int want) NO_TSA
{
	TRY(cm_status_lock(v, id, false));
	struct AFSFetchStatus st = v->st;
	mtx_unlock(&v->lock);
	if (want & W_OK && cm_volume_is_ro(v->vol))
		return AFS_EROFS;
	if (st.FileType == AFS_DIR) {
		bool known;
		TRY(cm_status_lock(v, id, true));
		uint32_t rights = cm_rights_locked(v, id, &known);
		mtx_unlock(&v->lock);
		if (want & (R_OK | X_OK) && !(rights & ACL_LOOKUP))
			return AFS_EACCESS;
		return want & W_OK && !(rights & (ACL_INSERT | ACL_DELETE)) ? AFS_EACCESS : AFS_OK;
	}
	if (st.FileType == AFS_SYMLINK)
		return AFS_OK;
	uint32_t rights;
	TRY(parent_rights(v, id, &st, &rights));
	if (want & (R_OK | X_OK) && !(rights & ACL_READ) && !(rights & ACL_INSERT && owns(v, id)))
		return AFS_EACCESS;
	if (want & W_OK && !(rights & ACL_WRITE) && !(rights & ACL_INSERT && owns(v, id)))
		return AFS_EACCESS;
	uint32_t bits =
		(want & R_OK ? 0400u : 0) | (want & W_OK ? 0200u : 0) | (want & X_OK ? 0100u : 0);
	return (st.UnixModeBits & bits) == bits ? AFS_OK : AFS_EACCESS;
}

afs_err cm_access(struct cm_vnode *v, uid_t uid, int want)
{
	struct cm_ident *id = cm_ident_get(v->cm, v->vol->cell, uid);
	afs_err err = judge(v, id, want);
	cm_ident_unref(v->cm, id);
	return err;
}
