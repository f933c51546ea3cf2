/* SPDX-License-Identifier: BSD-2-Clause
 *
 * FetchACL and StoreACL: ids in the store, names on the wire.
 *
 * A name must be known to be stored; an id without a name is shown as a number, which cannot be
 * stored again (a read-modify-write drops it, as `fs cleanacl` does). */
#include "fileserver/fs/acl_text.h"
#include "fileserver/fs/fs_handlers.h"

#include <stdio.h>

static afs_err names_of(struct fileserver *fs, const struct vs_acl *acl, struct acl_text *out)
{
	const struct fs_people_port *people = &fs->config.ports.people;
	*out = (struct acl_text){.positive = acl->positive, .negative = acl->negative};
	for (size_t i = 0; i < (size_t)acl->positive + acl->negative; i++) {
		out->e[i].rights = acl->e[i].rights;
		afs_err err = people->name_of(people->ctx, acl->e[i].id, out->e[i].name);
		if (err == AFS_ENOENT)
			snprintf(out->e[i].name, sizeof(out->e[i].name), "%d", acl->e[i].id);
		else
			TRY(err);
	}
	return AFS_OK;
}

static afs_err ids_of(struct fileserver *fs, const struct acl_text *text, struct vs_acl *out)
{
	const struct fs_people_port *people = &fs->config.ports.people;
	*out = (struct vs_acl){.positive = text->positive, .negative = text->negative};
	for (size_t i = 0; i < (size_t)text->positive + text->negative; i++) {
		out->e[i].rights = text->e[i].rights;
		afs_err err = people->id_of(people->ctx, text->e[i].name, &out->e[i].id);
		if (err == AFS_ENOENT || (err == AFS_OK && out->e[i].id == AFS_ANONYMOUS))
			return AFS_EINVAL;
		TRY(err);
	}
	return vs_acl_normalise(out);
}

/* Of a file: its directory's. */
afs_err fs_fetch_acl(
	struct rpc_call *call, const struct fs_fetch_acl_in *in, struct fs_fetch_acl_out *out)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	CLEANUP(buf) struct buf text = {0};
	struct acl_text names;
	fs_count(fs, fetches, 1);

	TRY(fs_access_begin(fs, call, &in->Fid, &a));
	TRY(fs_access_may(&a, FS_ACT_FETCH_ACL, NULL));
	TRY(names_of(fs, &a.node.acl, &names));
	acl_text_print(&names, &text);
	TRY(text.err);
	if (text.len > AFS_ACL_TEXT_MAX)
		return AFS_ETOOBIG;
	void *copy = arena_alloc(call->arena, text.len, 1);
	if (!copy)
		return AFS_ENOMEM;
	memcpy(copy, text.data, text.len);
	out->AccessList = (struct xdr_bytes){copy, (uint32_t)text.len};

	fs_reply_status(&a, &a.node.st, &out->OutStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}

static afs_err store_acl(struct rpc_call *call, const struct AFSFid *fid,
	const struct xdr_bytes *bytes, struct AFSFetchStatus *status, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	struct acl_text text;
	struct vs_acl acl;
	struct vs_status st;
	fs_count(fs, stores, 1);

	TRY(fs_access_begin(fs, call, fid, &a));
	if (a.node.st.type != AFS_DIR)
		return AFS_ENOTDIR;
	TRY(fs_access_may(&a, FS_ACT_STORE_ACL, NULL));
	afs_err err = acl_text_parse(bytes->p, bytes->len, &text);
	if (err != AFS_OK) {
		fs_count(fs, refused_acls, 1);
		return err;
	}
	TRY(ids_of(fs, &text, &acl));
	TRY(vs_set_acl(a.vol, vs_fid(fid), &acl, &a.who, &st));
	fs_access_break(&a, &st.fid, 1, false);

	TRY(fs_access_again(&a)); /* the caller's rights are by the new list */
	fs_reply_status(&a, &st, status);
	fs_reply_sync(&a, sync);
	return AFS_OK;
}

afs_err fs_store_acl(
	struct rpc_call *call, const struct fs_store_acl_in *in, struct fs_store_acl_out *out)
{
	return store_acl(call, &in->Fid, &in->AccessList, &out->OutStatus, &out->Sync);
}

/* Clients of before 2018 may send negative rights as positive ones (CVE-2018-7168): it can be refused. */
afs_err fs_old_store_acl(struct rpc_call *call, const struct fs_old_store_acl_in *in,
	struct fs_old_store_acl_out *out)
{
	struct fileserver *fs = call->service;
	if (fs->config.refuse_old_store_acl)
		return AFS_EPERM;
	return store_acl(call, &in->Fid, &in->AccessList, &out->OutStatus, &out->Sync);
}
