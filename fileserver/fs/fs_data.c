/* SPDX-License-Identifier: BSD-2-Clause
 *
 * FetchData and StoreData, 32 and 64 bit.
 *
 * Content moves once: read from the store straight into the room of a packet, and from the run of
 * an opened packet into the store's writer.
 *
 * A store is seen by nobody before it is whole: when the client ends early, dies or gives up, the
 * file stays as it was.  (Stock servers keep what came and count the data version up; a client must
 * ask for the status after a failed store in both cases.) */
#include "fileserver/fs/fs_handlers.h"

#include "cell/base/log.h"

#include <errno.h>

enum { RUN_MAX = 1 << 20 }; /* bytes asked of the transport at once */

/* A store holds a worker while its bytes come.  One that is slower than this for so long is refused,
 * so that a few clients who feed a byte a second do not hold them all. */
#define SLOW_AFTER_NS SEC(60)
enum { SLOW_BYTES_PER_S = 256, SLOW_LOOK = 16 /* runs between looks at the clock */ };

static afs_err bad_range(struct fileserver *fs)
{
	fs_count(fs, refused_ranges, 1);
	return AFS_EFBIG;
}

static afs_err send_data(struct fs_access *a, struct vs_file *f, uint64_t pos, uint64_t left)
{
	while (left) {
		uint8_t *room;
		size_t n, got;
		TRY(rpc_write_room(a->call, MIN(left, (uint64_t)RUN_MAX), &room, &n));
		TRY(vs_file_read(f, pos, room, n, &got));
		if (got == 0)
			return AFS_EIO; /* the length was promised already */
		TRY(rpc_write_commit(a->call, got));
		fs_count(a->fs, fetched_bytes, got);
		pos += got;
		left -= got;
	}
	return AFS_OK;
}

/* Both fetches: who may, the promise, then length and bytes; the status of what was sent. */
static afs_err fetch(struct rpc_call *call, const struct AFSFid *fid, int64_t pos, int64_t len,
	bool wide, struct AFSFetchStatus *st, struct AFSCallBack *cb, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	CLEANUP(vs_file) struct vs_file *f = NULL;
	fs_count(fs, fetches, 1);
	fs_count(fs, fetch_datas, 1);

	int64_t end, most = wide ? INT64_MAX : INT32_MAX;
	if (pos < 0 || len < 0 || __builtin_add_overflow(pos, len, &end) || end > most)
		return bad_range(fs);
	TRY(fs_access_begin(fs, call, fid, &a));
	TRY(fs_access_may(&a, FS_ACT_READ, NULL));
	fs_reply_promise(&a, fid, false, cb);

	struct vs_status now;
	TRY(vs_file_open(a.vol, vs_fid(fid), &now, &f));
	uint64_t from = (uint64_t)pos;
	uint64_t n = from < now.length ? MIN((uint64_t)len, now.length - from) : 0;
	TRY(wide ? rpc_write_u64(call, n) : rpc_write_u32(call, (uint32_t)n));
	mono_ns begun = clk_mono();
	afs_err err = send_data(&a, f, from, n);
	fs_xstat_moved(fs, FS_XFER_FETCH, err == AFS_OK, n, clk_mono() - begun);
	TRY(err);

	fs_reply_status(&a, &now, st);
	fs_reply_sync(&a, sync);
	return AFS_OK;
}

afs_err fs_fetch_data(
	struct rpc_call *call, const struct fs_fetch_data_in *in, struct fs_fetch_data_out *out)
{
	return fetch(call, &in->Fid, in->Pos, in->Len, false, &out->OutStatus, &out->CallBack,
		&out->Sync);
}

afs_err fs_fetch_data64(
	struct rpc_call *call, const struct fs_fetch_data64_in *in, struct fs_fetch_data64_out *out)
{
	return fetch(call, &in->Fid, in->Pos, in->Len, true, &out->OutStatus, &out->CallBack,
		&out->Sync);
}

static bool too_slow(const struct rpc_call *call, uint64_t taken)
{
	int64_t ns = clk_mono() - call->now;
	return ns > SLOW_AFTER_NS && taken < (uint64_t)(ns / NS_PER_SEC) * SLOW_BYTES_PER_S;
}

static afs_err take_data(struct fs_access *a, struct vs_writer *w, uint64_t left)
{
	uint64_t whole = left;
	for (unsigned run = 1; left; run++) {
		const uint8_t *p;
		size_t n;
		if (run % SLOW_LOOK == 0 && too_slow(a->call, whole - left)) {
			fs_count(a->fs, refused_slow, 1);
			return AFS_ETIMEDOUT;
		}
		TRY(rpc_read_run(a->call, MIN(left, (uint64_t)RUN_MAX), &p, &n));
		if (n == 0)
			return AFS_EEOF;
		TRY(vs_write_put(w, p, n));
		fs_count(a->fs, stored_bytes, n);
		left -= n;
	}
	return AFS_OK;
}

static afs_err store(struct rpc_call *call, const struct AFSFid *fid,
	const struct AFSStoreStatus *in, uint64_t pos, uint64_t length, uint64_t file_length,
	struct AFSFetchStatus *st, struct AFSVolSync *sync)
{
	struct fileserver *fs = call->service;
	CLEANUP(fs_access) struct fs_access a = {0};
	struct vs_set set = fs_set_asked(in);
	fs_count(fs, stores, 1);
	fs_count(fs, store_datas, 1);

	uint64_t end;
	if (__builtin_add_overflow(pos, length, &end) || end > INT64_MAX || file_length > INT64_MAX)
		return bad_range(fs);
	TRY(fs_access_begin(fs, call, fid, &a));
	if (a.node.st.type != AFS_FILE)
		return AFS_EISDIR;
	TRY(fs_access_may(&a, FS_ACT_STORE, &set));
	set = fs_set_allowed(&a, set);

	struct vs_write write = {
		.pos = pos,
		.length = length,
		.file_length = file_length,
		.set = &set,
		.keep_setid = a.standing.admin,
	};
	struct vs_writer *w;
	TRY(vs_write_begin(a.vol, vs_fid(fid), &write, &a.who, &w));
	mono_ns begun = clk_mono();
	afs_err err = take_data(&a, w, length);
	fs_xstat_moved(fs, FS_XFER_STORE, err == AFS_OK, length, clk_mono() - begun);
	if (err != AFS_OK) {
		vs_write_cancel(w);
		return err;
	}
	struct vs_status now;
	TRY(vs_write_end(w, &a.who, &now));
	fs_access_break(&a, &now.fid, 1, false);

	fs_reply_status(&a, &now, st);
	fs_reply_sync(&a, sync);
	return AFS_OK;
}

afs_err fs_store_data(
	struct rpc_call *call, const struct fs_store_data_in *in, struct fs_store_data_out *out)
{
	struct fileserver *fs = call->service;
	if ((uint64_t)in->Pos + in->Length > INT32_MAX || in->FileLength > INT32_MAX) {
		(void)bad_range(fs); /* counted; stock does not translate this one */
		return rpc_refuse(call, EFBIG);
	}
	return store(call, &in->Fid, &in->InStatus, in->Pos, in->Length, in->FileLength,
		&out->OutStatus, &out->Sync);
}

afs_err fs_store_data64(
	struct rpc_call *call, const struct fs_store_data64_in *in, struct fs_store_data64_out *out)
{
	return store(call, &in->Fid, &in->InStatus, in->Pos, in->Length, in->FileLength,
		&out->OutStatus, &out->Sync);
}
