/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of rights (fileserver.md §7), and the steps every handler begins with.
 *
 * Three rules that are easy to get wrong:
 *   - administrators are let in by their implied rights (lookup) and by name where the table says
 *     so; reading and storing content still takes an ACL entry
 *   - the owner of a file who may insert is taken for its creator and may read and write it; for
 *     reading, the anonymous "owner" is not one
 *   - chown and chgrp are judged before everything else, and only when they would change something */
#include "fileserver/fs/fs_access.h"

static bool has_id(const struct fs_cps *cps, int32_t id)
{
	uint32_t lo = 0, hi = cps->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (cps->ids[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cps->n && cps->ids[lo] == id;
}

uint32_t fs_acl_rights(const struct vs_acl *acl, const struct fs_cps *cps)
{
	uint32_t yes = 0, no = 0;
	unsigned n = MIN(acl->positive + acl->negative, (unsigned)VS_ACL_MAX);
	for (unsigned i = 0; i < n; i++) {
		if (!has_id(cps, acl->e[i].id))
			continue;
		if (i < acl->positive)
			yes |= acl->e[i].rights;
		else
			no |= acl->e[i].rights;
	}
	return yes & ~no;
}

struct fs_standing fs_standing_of(const struct vs_node *node, const struct fs_identity *who,
	const struct fs_cps *host_groups, uint32_t admin_rights)
{
	static int32_t any_ids[] = {AFS_ANYUSER};
	static const struct fs_cps any = {any_ids, 1};
	uint32_t of_host = fs_acl_rights(&node->acl, host_groups);
	struct fs_standing s = {
		.rights = fs_acl_rights(&node->acl, &who->cps) | of_host,
		.anonymous = fs_acl_rights(&node->acl, &any) | of_host,
		.admin = who->admin,
		.owner = node->st.owner == who->id,
		.nobody = who->id == AFS_ANONYMOUS,
	};
	s.volume_owner = !s.nobody &&
			 (node->volume_owner == who->id ||
				 (node->volume_owner < 0 && has_id(&who->cps, node->volume_owner)));
	if (s.admin)
		s.rights |= admin_rights;
	if (node->st.type != AFS_DIR)
		s.rights = (s.rights & ~(uint32_t)ACL_ADMIN) | (s.owner ? ACL_ADMIN : 0);
	return s;
}

static bool gives_away(const struct vs_set *set, const struct vs_status *st)
{
	return set && (((set->mask & VS_SET_OWNER) && set->owner != st->owner) ||
			      ((set->mask & VS_SET_GROUP) && set->group != st->group));
}

static bool sets_id(const struct vs_set *set)
{
	return set && (set->mask & VS_SET_MODE) && (set->mode & 06000);
}

static bool may(const struct fs_standing *s, const struct vs_status *st, enum fs_act act,
	const struct vs_set *set)
{
	const uint32_t r = s->rights;
	const bool file = st->type == AFS_FILE, dir = st->type == AFS_DIR;
	const bool creator = s->owner && (r & ACL_INSERT);
	const bool reads_file = (r & ACL_READ) || (creator && !s->nobody);
	const bool looks = (r & ACL_LOOKUP) || s->volume_owner || s->admin;

	switch (act) {
	case FS_ACT_STAT:
		return dir || (file ? reads_file || s->admin : looks);
	case FS_ACT_FETCH_ACL:
		return file ? reads_file || s->admin : looks;
	case FS_ACT_READ:
		if (!file)
			return (r & ACL_LOOKUP) || s->volume_owner;
		return reads_file && (s->owner || s->admin || (st->mode & 0500));
	case FS_ACT_STORE:
		if (creator)
			return true;
		return (r & ACL_WRITE) && (s->admin || ((st->mode & 0200) && !sets_id(set)));
	case FS_ACT_CHANGE:
		if (s->admin || (creator && !dir))
			return true;
		return (r & (dir ? ACL_DELETE | ACL_INSERT : ACL_WRITE)) && !sets_id(set);
	case FS_ACT_STORE_ACL:
		return (r & ACL_ADMIN) || s->volume_owner || s->admin;
	case FS_ACT_INSERT:
		return r & ACL_INSERT;
	case FS_ACT_MOUNT_POINT:
		return (r & ACL_INSERT) && ((r & ACL_ADMIN) || s->admin);
	case FS_ACT_DELETE:
		return r & ACL_DELETE;
	case FS_ACT_LOCK_READ:
		return (r & (ACL_LOCK | ACL_WRITE)) || creator;
	case FS_ACT_LOCK_WRITE:
		return (r & ACL_WRITE) || creator;
	case FS_ACT_SET_VOLUME:
		return s->admin;
	}
	return false;
}

afs_err fs_may(const struct fs_standing *s, const struct vs_status *st, enum fs_act act,
	const struct vs_set *set)
{
	if ((act == FS_ACT_STORE || act == FS_ACT_CHANGE) && !s->admin && gives_away(set, st))
		return AFS_EPERM;
	return may(s, st, act, set) ? AFS_OK : AFS_EACCESS;
}

/* --- the steps of every handler ---------------------------------------------------------------- */

void fs_access_fini(struct fs_access *a)
{
	if (a->vol)
		vs_volume_unref(a->vol);
	if (a->client)
		cb_client_end(a->client);
	a->vol = NULL;
	a->client = NULL;
}

afs_err fs_access_caller(struct fileserver *fs, struct rpc_call *call, struct fs_access *a)
{
	a->fs = fs;
	a->call = call;
	if (!atomic_load_explicit(&fs->serving, memory_order_acquire))
		return AFS_ERESTARTING;
	afs_err err = cb_client_begin(fs->cb, call, &a->client);
	if (err == AFS_EAGAIN) /* "could not get the caller's groups": clients retry */
		return rpc_refuse(call, -1001);
	TRY(err);
	a->who = (struct vs_who){.now = clk_wall(), .id = cb_client_identity(a->client)->id};
	return AFS_OK;
}

static uint32_t implied_rights(const struct fileserver *fs)
{
	return fs->config.admin_rights ? fs->config.admin_rights : ACL_LOOKUP;
}

static void judge(struct fs_access *a)
{
	a->standing = fs_standing_of(&a->node, cb_client_identity(a->client),
		cb_client_host_groups(a->client), implied_rights(a->fs));
}

void fs_access_judge(struct fs_access *a, const struct AFSFid *fid, const struct vs_node *node)
{
	a->fid = *fid;
	a->node = *node;
	judge(a);
}

afs_err fs_access_again(struct fs_access *a)
{
	TRY(a->call->must_not_wait ?
			vs_node_peek(a->fs->store, a->fid.Volume, vs_fid(&a->fid), 0, &a->vol, &a->node) :
			vs_node_get(a->vol, vs_fid(&a->fid), &a->node));
	judge(a);
	return AFS_OK;
}

afs_err fs_access_volume(struct fs_access *a, afs_volid volume)
{
	if (!volume)
		return AFS_EINVAL;
	if (a->vol && vs_volume_id(a->vol) == volume)
		return AFS_OK;
	if (a->vol)
		vs_volume_unref(a->vol);
	a->vol = NULL;
	return a->call->must_not_wait ? vs_volume_peek(a->fs->store, volume, &a->vol) :
					vs_volume_enter(a->fs->store, volume, &a->vol);
}

afs_err fs_access_turn(struct fs_access *a, const struct AFSFid *fid)
{
	if (!fid->Vnode)
		return AFS_EINVAL;
	TRY(fs_access_volume(a, fid->Volume));
	a->fid = *fid;
	return fs_access_again(a);
}

afs_err fs_access_begin(
	struct fileserver *fs, struct rpc_call *call, const struct AFSFid *fid, struct fs_access *a)
{
	TRY(fs_access_caller(fs, call, a));
	if (!call->must_not_wait) {
		TRY(fs_access_turn(a, fid));
		vs_volume_count_use(a->vol, a->who.now);
		return AFS_OK;
	}
	if (!fid->Volume || !fid->Vnode)
		return AFS_EINVAL;
	a->fid = *fid;
	TRY(vs_node_peek(fs->store, fid->Volume, vs_fid(fid), a->who.now, &a->vol, &a->node));
	judge(a);
	return AFS_OK;
}

static bool changes(enum fs_act act)
{
	switch (act) {
	case FS_ACT_STAT:
	case FS_ACT_FETCH_ACL:
	case FS_ACT_READ:
	case FS_ACT_LOCK_READ:
		return false;
	default:
		return true;
	}
}

afs_err fs_access_may(const struct fs_access *a, enum fs_act act, const struct vs_set *set)
{
	if (changes(act) && a->node.volume_type != AFS_VOL_RW)
		return AFS_EROFS;
	return fs_may(&a->standing, &a->node.st, act, set);
}

struct vs_set fs_set_asked(const struct AFSStoreStatus *in)
{
	struct vs_set set = {
		.mask = in->Mask & (FS_SET_MODTIME | FS_SET_OWNER | FS_SET_GROUP | FS_SET_MODE),
	};
	/* fields that the mask does not name are never looked at: old clients send rubbish there */
	if (set.mask & FS_SET_MODTIME)
		set.mtime = SEC(in->ClientModTime);
	if (set.mask & FS_SET_OWNER)
		set.owner = (int32_t)in->Owner;
	if (set.mask & FS_SET_GROUP)
		set.group = (int32_t)in->Group;
	if (set.mask & FS_SET_MODE)
		set.mode = in->UnixModeBits & 07777;
	return set;
}

struct vs_set fs_set_allowed(const struct fs_access *a, struct vs_set set)
{
	if (!a->standing.admin)
		set.mode &= 0777;
	return set;
}

/* --- replies ----------------------------------------------------------------------------------- */

void fs_reply_status(
	const struct fs_access *a, const struct vs_status *st, struct AFSFetchStatus *out)
{
	bool dir = st->type == AFS_DIR;
	struct AFSFid fid = {a->fid.Volume, st->fid.vnode, st->fid.unique};
	*out = (struct AFSFetchStatus){
		.InterfaceVersion = 1,
		.FileType = (uint32_t)st->type,
		.LinkCount = st->links,
		.Length = (uint32_t)st->length,
		.DataVersion = (uint32_t)st->dv,
		.Author = (uint32_t)st->author,
		.Owner = (uint32_t)st->owner,
		.CallerAccess = a->standing.rights,
		.AnonymousAccess = a->standing.anonymous,
		.UnixModeBits = st->mode & 07777,
		/* a directory names itself; `..` leads to its parent */
		.ParentVnode = dir ? st->fid.vnode : st->parent.vnode,
		.ParentUnique = dir ? st->fid.unique : st->parent.unique,
		.ResidencyMask = 1,
		.ClientModTime = clk_wire_sec(st->client_mtime),
		.ServerModTime = clk_wire_sec(st->server_mtime),
		.Group = (uint32_t)st->group,
		.dataVersionHigh = (uint32_t)(st->dv >> 32),
		.lockCount = fs_locks_count(a->fs->locks, &fid, a->call->now),
		.Length_hi = (uint32_t)(st->length >> 32),
	};
}

void fs_reply_made(const struct fs_access *a, const struct vs_made *made, struct AFSFid *fid,
	struct AFSFetchStatus *node, struct AFSFetchStatus *dir)
{
	fs_reply_status(a, &made->dir, dir);
	/* judged as the caller's own, by the rights of the directory it is in */
	struct fs_access b = *a;
	b.node.st = made->node;
	b.standing = fs_standing_of(&b.node, cb_client_identity(a->client),
		cb_client_host_groups(a->client), implied_rights(a->fs));
	fs_reply_status(&b, &made->node, node);
	if (fid)
		*fid = (struct AFSFid){a->fid.Volume, made->node.fid.vnode, made->node.fid.unique};
}

void fs_reply_sync(const struct fs_access *a, struct AFSVolSync *out)
{
	*out = (struct AFSVolSync){.spare1 = clk_wire_sec(a->node.volume_creation)};
}

void fs_reply_promise(
	struct fs_access *a, const struct AFSFid *fid, bool bulk, struct AFSCallBack *out)
{
	enum cb_kind kind = a->node.volume_type != AFS_VOL_RW ? CB_KIND_VOLUME
			    : bulk                            ? CB_KIND_BULK
							      : CB_KIND_FILE;
	cb_grant(a->fs->cb, a->client, fid, kind, a->call->now, out);
}

void fs_reply_promises(
	struct fs_access *a, const struct AFSFid *fids, size_t n, struct AFSCallBack *out)
{
	enum cb_kind kind = a->node.volume_type != AFS_VOL_RW ? CB_KIND_VOLUME : CB_KIND_BULK;
	cb_grant_all(a->fs->cb, a->client, fids, n, kind, a->call->now, out);
}

void fs_access_break(const struct fs_access *a, const struct vs_fid *fids, size_t n, bool everybody)
{
	struct AFSFid f[4];
	for (size_t i = 0; i < n && i < ARRAY_SIZE(f); i++)
		f[i] = (struct AFSFid){a->fid.Volume, fids[i].vnode, fids[i].unique};
	cb_break(a->fs->cb, f, MIN(n, ARRAY_SIZE(f)), everybody ? NULL : a->client, a->call->now);
}
