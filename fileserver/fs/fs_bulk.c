/* SPDX-License-Identifier: BSD-2-Clause
 *
 * BulkStatus fails as a whole with the first error; InlineBulkStatus has an error per object.
 * Always: a reply has as many statuses and callbacks as the request has fids. */
#include "cell/proto/abort.h"
#include "fileserver/fs/fs_handlers.h"

#include <errno.h>

static afs_err bulk(struct rpc_call *call, const struct AFSFid *fids, uint32_t n, bool with_errors,
	struct AFSFetchStatus **st, struct AFSCallBack **cb, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};

	if (n == 0)
		return rpc_refuse(call, EINVAL); /* stock does not translate this one */
	TRY(fs_access_caller(fs, call, &a));
	*st = arena_alloc(call->arena, n, sizeof(**st));
	*cb = arena_alloc(call->arena, n, sizeof(**cb));
	if (!*st || !*cb)
		return AFS_ENOMEM;

	bool synced = false;
	for (uint32_t i = 0; i < n; i++) {
		afs_err err = fs_access_turn(&a, &fids[i]);
		if (err == AFS_OK)
			err = fs_status_of(&a, true, &(*st)[i], &(*cb)[i]);
		if (err == AFS_OK) {
			if (!synced)
				fs_reply_sync(&a, sync);
			synced = true;
			continue;
		}
		if (!with_errors || err == AFS_EWAIT)
			return err;
		(*cb)[i] = (struct AFSCallBack){0};
		(*st)[i] = (struct AFSFetchStatus){
			.InterfaceVersion = 1,
			.errorCode = (uint32_t)fs_code_for(fs, call, err),
		};
	}
	fs_count(fs, fetches, 1);
	return AFS_OK;
}

afs_err fs_bulk_status(
	struct rpc_call *call, const struct fs_bulk_status_in *in, struct fs_bulk_status_out *out)
{
	TRY(bulk(call, in->Fids.v, in->Fids.n, false, &out->Statuses.v, &out->CallBacks.v,
		&out->Sync));
	out->Statuses.n = out->CallBacks.n = in->Fids.n;
	return AFS_OK;
}

afs_err fs_inline_bulk_status(struct rpc_call *call, const struct fs_inline_bulk_status_in *in,
	struct fs_inline_bulk_status_out *out)
{
	TRY(bulk(call, in->Fids.v, in->Fids.n, true, &out->Statuses.v, &out->CallBacks.v,
		&out->Sync));
	out->Statuses.n = out->CallBacks.n = in->Fids.n;
	return AFS_OK;
}
