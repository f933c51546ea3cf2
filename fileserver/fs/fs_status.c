/* SPDX-License-Identifier: BSD-2-Clause
 * FetchStatus and StoreStatus. */
#include "fileserver/fs/fs_handlers.h"

afs_err fs_status_of(
	struct fs_access *a, bool bulk, struct AFSFetchStatus *st, struct AFSCallBack *cb)
{
	TRY(fs_access_may(a, FS_ACT_STAT, NULL));
	fs_reply_promise(a, &a->fid, bulk, cb);
	if (a->node.version != vs_volume_version(a->vol)) /* it may have changed before the promise */
		TRY(fs_access_again(a));
	fs_reply_status(a, &a->node.st, st);
	return AFS_OK;
}

afs_err fs_fetch_status(
	struct rpc_call *call, const struct fs_fetch_status_in *in, struct fs_fetch_status_out *out)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};

	TRY(fs_access_begin(fs, call, &in->Fid, &a));
	TRY(fs_status_of(&a, false, &out->OutStatus, &out->CallBack));
	fs_reply_sync(&a, &out->Sync);
	fs_count(fs, fetches, 1);
	return AFS_OK;
}

/* Others are told also when nothing changed: ServerModTime did. */
afs_err fs_store_status(
	struct rpc_call *call, const struct fs_store_status_in *in, struct fs_store_status_out *out)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_set set = fs_set_asked(&in->InStatus);
	fs_count(fs, stores, 1);

	TRY(fs_access_begin(fs, call, &in->Fid, &a));
	TRY(fs_access_may(&a, FS_ACT_CHANGE, &set));
	set = fs_set_allowed(&a, set);

	struct vs_status st;
	TRY(vs_set_status(a.vol, vs_fid(&in->Fid), &set, &a.who, &st));
	fs_access_break(&a, &st.fid, 1, false);

	TRY(fs_access_again(&a)); /* the owner's rights may have moved with the owner */
	fs_reply_status(&a, &st, &out->OutStatus);
	fs_reply_sync(&a, &out->Sync);
	return AFS_OK;
}
