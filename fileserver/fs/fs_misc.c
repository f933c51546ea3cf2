/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Volumes, time, capabilities, callbacks given back, statistics; and the calls that every server
 * refuses, each with the code that clients know (fileserver.md §2, §12). */
#include "fileserver/fs/fs_handlers.h"

#include <errno.h>
#include <stdio.h>

/* --- volumes ----------------------------------------------------------------------------------- */

/* 32-bit words that old programs read as signed. */
static uint32_t clamp(struct fileserver *fs, uint64_t v)
{
	if (v <= INT32_MAX)
		return (uint32_t)v;
	fs_count(fs, clamped, 1);
	return INT32_MAX;
}

static afs_err copy_text(struct arena *arena, const char *text, struct xdr_str *out)
{
	size_t n = strlen(text);
	char *copy = arena_strndup(arena, text, n);
	if (!copy)
		return AFS_ENOMEM;
	*out = (struct xdr_str){copy, (uint32_t)n};
	return AFS_OK;
}

static afs_err enter_volume(struct rpc_call *call, afs_volid id, struct fs_access *a)
{
	TRY(fs_access_caller(call->service, call, a));
	if (!id)
		return AFS_EINVAL;
	return vs_volume_enter(a->fs->store, id, &a->vol);
}

afs_err fs_get_volume_status(struct rpc_call *call, const struct fs_get_volume_status_in *in,
	struct fs_get_volume_status_out *out)
{
	CLEANUP(fs_access) struct fs_access a = {0};
	CLEANUP(heap) struct vs_header *h = mem_new(struct vs_header);
	struct vs_space space;
	if (!h)
		return AFS_ENOMEM;

	TRY(enter_volume(call, in->Volume, &a));
	TRY(vs_volume_header(a.vol, h));
	TRY(vs_partition_space(vs_volume_partition(a.vol), &space));
	out->Status = (struct AFSFetchVolumeStatus){
		.Vid = h->id,
		.ParentId = h->parent,
		.Online = vs_volume_online(a.vol),
		.InService = h->in_service,
		.Blessed = h->blessed,
		.NeedsSalvage = h->needs_salvage,
		.Type = h->type == AFS_VOL_RW,
		.MinQuota = clamp(a.fs, h->min_quota_kib),
		.MaxQuota = clamp(a.fs, h->quota_kib),
		.BlocksInUse = clamp(a.fs, h->used_kib),
		.PartBlocksAvail = clamp(a.fs, space.free_kib),
		.PartMaxBlocks = clamp(a.fs, space.total_kib),
	};
	TRY(copy_text(call->arena, h->name, &out->Name));
	TRY(copy_text(call->arena, h->offline_message, &out->OfflineMsg));
	out->Motd = XDR_STR_OF(""); /* never stored */
	return AFS_OK;
}

/* The name here is the volume's own; the location database is another's to change. */
afs_err fs_set_volume_status(struct rpc_call *call, const struct fs_set_volume_status_in *in,
	struct fs_set_volume_status_out *out)
{
	(void)out;
	CLEANUP(fs_access) struct fs_access a = {0};
	CLEANUP(heap) struct vs_header *h = mem_new(struct vs_header);
	uint32_t mask = 0;
	if (!h)
		return AFS_ENOMEM;

	TRY(enter_volume(call, in->Volume, &a));
	TRY(vs_volume_header(a.vol, h));
	if (h->type != AFS_VOL_RW)
		return AFS_EROFS;
	if (!cb_client_identity(a.client)->admin)
		return AFS_EACCESS;
	if (in->Name.len > AFS_VOLNAME_MAX || in->OfflineMsg.len > VS_MESSAGE_MAX)
		return AFS_EINVAL;
	if (((in->Status.Mask & FS_SET_MIN_QUOTA) && in->Status.MinQuota > INT32_MAX) ||
		((in->Status.Mask & FS_SET_MAX_QUOTA) && in->Status.MaxQuota > INT32_MAX))
		return AFS_EINVAL;
	if (in->Status.Mask & FS_SET_MIN_QUOTA) {
		h->min_quota_kib = in->Status.MinQuota;
		mask |= VS_H_MIN_QUOTA;
	}
	if (in->Status.Mask & FS_SET_MAX_QUOTA) {
		h->quota_kib = in->Status.MaxQuota;
		mask |= VS_H_QUOTA;
	}
	if (in->Name.len) {
		memset(h->name, 0, sizeof(h->name));
		memcpy(h->name, in->Name.p, in->Name.len);
		mask |= VS_H_NAME;
	}
	if (in->OfflineMsg.len) {
		memset(h->offline_message, 0, sizeof(h->offline_message));
		memcpy(h->offline_message, in->OfflineMsg.p, in->OfflineMsg.len);
		mask |= VS_H_OFFLINE_MESSAGE;
	}
	return mask ? vs_volume_set_header(a.vol, h, mask) : AFS_OK;
}

/* --- about the server -------------------------------------------------------------------------- */

afs_err fs_get_time(
	struct rpc_call *call, const struct fs_get_time_in *in, struct fs_get_time_out *out)
{
	(void)in;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_caller(call->service, call, &a));
	out->Seconds = clk_wire_sec(a.who.now);
	out->USeconds = (uint32_t)(a.who.now % NS_PER_SEC / 1000);
	return AFS_OK;
}

afs_err fs_get_capabilities(struct rpc_call *call, const struct fs_get_capabilities_in *in,
	struct fs_get_capabilities_out *out)
{
	(void)in;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_caller(call->service, call, &a));
	uint32_t *caps = arena_alloc(call->arena, 1, sizeof(*caps));
	if (!caps)
		return AFS_ENOMEM;
	caps[0] = FS_CAP_ERRORTRANS | FS_CAP_64BITFILES | FS_CAP_WRITELOCKACL;
	out->Capabilities.v = caps;
	out->Capabilities.n = 1;
	return AFS_OK;
}

static uint32_t low32(struct fileserver *fs, uint64_t v)
{
	if (v <= UINT32_MAX)
		return (uint32_t)v;
	fs_count(fs, clamped, 1);
	return UINT32_MAX;
}

afs_err fs_get_statistics(struct rpc_call *call, const struct fs_get_statistics_in *in,
	struct fs_get_statistics_out *out)
{
	(void)in;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_caller(call->service, call, &a));
	struct fileserver *fs = a.fs;
	struct fileserver_stats s = {0};
	fileserver_stats(fs, &s);
	struct ViceStatistics *v = &out->Statistics;
	*v = (struct ViceStatistics){
		.CurrentTime = clk_wire_sec(a.who.now),
		.BootTime = clk_wire_sec(fs->began),
		.StartTime = clk_wire_sec(fs->began),
		.TotalViceCalls = low32(fs, s.calls),
		.TotalFetchs = low32(fs, s.fetches),
		.FetchDatas = low32(fs, s.fetch_datas),
		.FetchedBytes = low32(fs, s.fetched_bytes),
		.TotalStores = low32(fs, s.stores),
		.StoreDatas = low32(fs, s.store_datas),
		.StoredBytes = low32(fs, s.stored_bytes),
		.WorkStations = low32(fs, s.hosts_now),
		.ActiveWorkStations = low32(fs, s.hosts_now - s.hosts_down),
	};
	size_t i = 0;
	for (struct vs_partition *p = vs_partition_next(fs->store, NULL);
		p && i < ARRAY_SIZE(v->Disk); p = vs_partition_next(fs->store, p)) {
		struct vs_space space;
		if (vs_partition_space(p, &space) != AFS_OK)
			continue; /* logged where it happened; the other partitions are still told */
		v->Disk[i].BlocksAvailable = clamp(fs, space.free_kib);
		v->Disk[i].TotalBlocks = clamp(fs, space.total_kib);
		snprintf((char *)v->Disk[i].Name, sizeof(v->Disk[i].Name), "%s",
			vs_partition_name(p));
		i++;
	}
	return AFS_OK;
}

afs_err fs_get_statistics64(struct rpc_call *call, const struct fs_get_statistics64_in *in,
	struct fs_get_statistics64_out *out)
{
	enum { VERSION = 16 }; /* which is also the number of values */
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_caller(call->service, call, &a));
	if (in->Version != VERSION)
		return AFS_EINVAL;
	struct fileserver_stats s = {0};
	fileserver_stats(a.fs, &s);
	const uint64_t values[VERSION] = {
		[0] = clk_wire_sec(a.who.now),
		[1] = clk_wire_sec(a.fs->began),
		[2] = clk_wire_sec(a.fs->began),
		[4] = s.fetches,
		[5] = s.fetch_datas,
		[6] = s.fetched_bytes,
		[8] = s.stores,
		[9] = s.store_datas,
		[10] = s.stored_bytes,
		[12] = s.calls,
		[13] = s.hosts_now,
		[14] = s.hosts_now - s.hosts_down,
	};
	uint64_t *v = arena_alloc(call->arena, VERSION, sizeof(*v));
	if (!v)
		return AFS_ENOMEM;
	memcpy(v, values, sizeof(values));
	out->Statistics.v = v;
	out->Statistics.n = VERSION;
	return AFS_OK;
}

/* --- callbacks and identities ------------------------------------------------------------------ */

afs_err fs_give_up_call_backs(struct rpc_call *call, const struct fs_give_up_call_backs_in *in,
	struct fs_give_up_call_backs_out *out)
{
	(void)out;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_caller(call->service, call, &a));
	if (in->CallBacks.n > in->Fids.n)
		return AFS_EINVAL;
	cb_give_up(a.fs->cb, a.client, in->Fids.v, in->Fids.n);
	return AFS_OK;
}

afs_err fs_give_up_all_call_backs(struct rpc_call *call,
	const struct fs_give_up_all_call_backs_in *in, struct fs_give_up_all_call_backs_out *out)
{
	(void)in, (void)out;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_caller(call->service, call, &a));
	cb_give_up_all(a.fs->cb, a.client);
	return AFS_OK;
}

/* The row demands the superuser; no host is met for it. */
afs_err fs_flush_cps(
	struct rpc_call *call, const struct fs_flush_cps_in *in, struct fs_flush_cps_out *out)
{
	(void)out;
	struct fileserver *fs = call->service;
	cb_flush_cps(fs->cb, in->Ids.v, in->Ids.n, in->Addrs.v, in->Addrs.n);
	return AFS_OK;
}

/* --- refused everywhere ------------------------------------------------------------------------ */

afs_err fs_callback_rx_conn_addr(struct rpc_call *call,
	const struct fs_callback_rx_conn_addr_in *in, struct fs_callback_rx_conn_addr_out *out)
{
	(void)in, (void)out;
	CLEANUP(fs_access) struct fs_access a = {0};
	TRY(fs_access_caller(call->service, call, &a));
	return AFS_EPERM;
}

afs_err fs_get_volume_info(struct rpc_call *call, const struct fs_get_volume_info_in *in,
	struct fs_get_volume_info_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_ENOVOL;
}

afs_err fs_nget_volume_info(struct rpc_call *call, const struct fs_nget_volume_info_in *in,
	struct fs_nget_volume_info_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_ENOVOL;
}

afs_err fs_get_root_volume(struct rpc_call *call, const struct fs_get_root_volume_in *in,
	struct fs_get_root_volume_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, 122);
}

afs_err fs_check_token(
	struct rpc_call *call, const struct fs_check_token_in *in, struct fs_check_token_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, 130);
}

afs_err fs_lookup(struct rpc_call *call, const struct fs_lookup_in *in, struct fs_lookup_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, EINVAL);
}

afs_err fs_dfs_symlink(
	struct rpc_call *call, const struct fs_dfs_symlink_in *in, struct fs_dfs_symlink_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, EINVAL);
}

afs_err fs_fs_cmd(struct rpc_call *call, const struct fs_fs_cmd_in *in, struct fs_fs_cmd_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, EINVAL);
}
