/* SPDX-License-Identifier: BSD-2-Clause
 * Changing a vnode's status and a directory's ACL.  DV stays; the server's time moves
 * (fileserver.md §10). */
#include "fileserver/store/internal.h"

static afs_err set_status_locked(struct vs_volume *v, struct vs_fid fid, const struct vs_set *set,
	const struct vs_who *who, struct vs_status *out, uint64_t *seq)
{
	struct vs_vnode *vn;
	TRY(vs_vnode_get(v, fid, &vn));
	if (vn->row.st.type == AFS_SYMLINK && set->mask & VS_SET_MODE)
		return AFS_EINVAL; /* it would turn a link into a mount point or back */
	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, v, who->now);
	struct vs_status *st = &vs_tx_edit(&tx, vn)->st;
	if (set->mask & VS_SET_MTIME)
		st->client_mtime = set->mtime;
	if (set->mask & VS_SET_OWNER)
		st->owner = set->owner;
	if (set->mask & VS_SET_GROUP)
		st->group = set->group;
	if (set->mask & VS_SET_MODE)
		st->mode = set->mode & 07777;
	st->server_mtime = who->now;
	const struct vs_status done = *st;
	TRY(vs_tx_commit(&tx));
	*seq = tx.seq;
	*out = done;
	return AFS_OK;
}

afs_err vs_set_status(struct vs_volume *v, struct vs_fid fid, const struct vs_set *set,
	const struct vs_who *who, struct vs_status *out)
{
	uint64_t seq = 0;
	TRY(vs_volume_lock_write(v));
	afs_err err = set_status_locked(v, fid, set, who, out, &seq);
	vs_volume_unlock(v);
	return err ? err : vs_volume_settle(v, seq);
}

static afs_err set_acl_locked(struct vs_volume *v, struct vs_fid dir, const struct vs_acl *acl,
	const struct vs_who *who, struct vs_status *out, uint64_t *seq)
{
	struct vs_vnode *vn;
	TRY(vs_vnode_get(v, dir, &vn));
	if (vn->row.st.type != AFS_DIR)
		return AFS_ENOTDIR;
	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, v, who->now);
	vs_tx_edit(&tx, vn)->st.server_mtime = who->now;
	tx.edit[0].acl = mem_new(struct vs_acl);
	if (!tx.edit[0].acl)
		return AFS_ENOMEM;
	*tx.edit[0].acl = *acl;
	const struct vs_status done = tx.edit[0].row.st;
	TRY(vs_tx_commit(&tx));
	*seq = tx.seq;
	*out = done;
	return AFS_OK;
}

afs_err vs_set_acl(struct vs_volume *v, struct vs_fid dir, const struct vs_acl *acl,
	const struct vs_who *who, struct vs_status *out)
{
	struct vs_acl sorted = *acl;
	TRY(vs_acl_normalise(&sorted));
	uint64_t seq = 0;
	TRY(vs_volume_lock_write(v));
	afs_err err = set_acl_locked(v, dir, &sorted, who, out, &seq);
	vs_volume_unlock(v);
	return err ? err : vs_volume_settle(v, seq);
}
