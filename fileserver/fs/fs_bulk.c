/* SPDX-License-Identifier: BSD-2-Clause
 *
 * BulkStatus fails as a whole with the first error; InlineBulkStatus has an error per object.
 * Always: a reply has as many statuses and callbacks as the request has fids. */
#include "cell/proto/abort.h"
#include "fileserver/fs/fs_handlers.h"

#include <errno.h>

struct bulk {
	struct fs_access a;
	const struct AFSFid *fids;
	uint32_t n;
	bool with_errors;
	struct AFSFetchStatus *st;
	struct AFSCallBack *cb;
	struct AFSVolSync *sync;
	bool synced;
};

static void bulk_cleanup(struct bulk **b) { fs_access_fini(&(*b)->a); }

static afs_err failed(struct bulk *b, uint32_t i, afs_err err)
{
	if (!b->with_errors || err == AFS_EWAIT || err == AFS_ENOMEM)
		return err;
	b->cb[i] = (struct AFSCallBack){0};
	b->st[i] = (struct AFSFetchStatus){
		.InterfaceVersion = 1,
		.errorCode = (uint32_t)fs_code_for(b->a.fs, b->a.call, err),
	};
	return AFS_OK;
}

/* Objects [i, i + n) of one volume, with one look at it and one at the table of promises. */
static afs_err of_volume(struct bulk *b, uint32_t i, uint32_t n)
{
	struct fs_access *a = &b->a;
	struct vs_node nodes[FS_BULK_MAX];
	struct vs_fid fids[FS_BULK_MAX] = {0};
	afs_err errs[FS_BULK_MAX];
	struct AFSFid good[FS_BULK_MAX];
	struct AFSCallBack cb[FS_BULK_MAX];
	uint32_t of[FS_BULK_MAX], k = 0;
	bool peek = a->call->must_not_wait;

	for (uint32_t j = 0; j < n; j++)
		fids[j] = vs_fid(&b->fids[i + j]);
	afs_err err = vs_nodes_get(a->vol, fids, n, peek, nodes, errs);
	if (err == AFS_EWAIT)
		return err;
	for (uint32_t j = 0; j < n; j++) {
		afs_err e = err != AFS_OK ? err : !fids[j].vnode ? AFS_EINVAL : errs[j];
		if (e == AFS_OK) {
			fs_access_judge(a, &b->fids[i + j], &nodes[j]);
			e = fs_access_may(a, FS_ACT_STAT, NULL);
		}
		if (e != AFS_OK)
			TRY(failed(b, i + j, e));
		else
			good[k] = b->fids[i + j], of[k++] = j;
	}
	if (!k)
		return AFS_OK;
	/* all of one volume are of one kind */
	fs_reply_promises(a, good, k, cb);
	uint64_t version = vs_volume_version(a->vol);
	for (uint32_t x = 0; x < k; x++) {
		uint32_t j = of[x];
		fs_access_judge(a, &good[x], &nodes[j]);
		if (nodes[j].version != version) { /* it may have changed before the promise */
			afs_err e = fs_access_again(a);
			if (e != AFS_OK) {
				TRY(failed(b, i + j, e));
				continue;
			}
		}
		fs_reply_status(a, &a->node.st, &b->st[i + j]);
		b->cb[i + j] = cb[x];
		if (!b->synced)
			fs_reply_sync(a, b->sync);
		b->synced = true;
	}
	return AFS_OK;
}

static afs_err bulk(struct rpc_call *call, const struct AFSFid *fids, uint32_t n, bool with_errors,
	struct AFSFetchStatus **st, struct AFSCallBack **cb, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	struct bulk b = {.fids = fids, .n = n, .with_errors = with_errors, .sync = sync};
	CLEANUP(bulk) struct bulk *held = &b; /* lets go of the caller and the volume */

	if (n == 0)
		return rpc_refuse(call, EINVAL); /* stock does not translate this one */
	TRY(fs_access_caller(fs, call, &b.a));
	b.st = *st = arena_alloc(call->arena, n, sizeof(**st));
	b.cb = *cb = arena_alloc(call->arena, n, sizeof(**cb));
	if (!b.st || !b.cb)
		return AFS_ENOMEM;

	for (uint32_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && fids[k].Volume == fids[i].Volume;)
			k++;
		afs_err err = fs_access_volume(&held->a, fids[i].Volume);
		if (err == AFS_OK)
			TRY(of_volume(&b, i, k - i));
		else
			for (uint32_t j = i; j < k; j++)
				TRY(failed(&b, j, err));
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
