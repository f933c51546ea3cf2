/* SPDX-License-Identifier: BSD-2-Clause
 * Listings: partitions, volumes, transactions.  A volume in a transaction shows as busy with its
 * number only, one that cannot be read with its number and no status. */
#include "fileserver/vol/vol.h"

#include "cell/proto/abort.h"
#include "fileserver/vol/vol_handlers.h"

#include <stdio.h>
#include <string.h>

static int32_t wire_i32(uint64_t v) { return v > INT32_MAX ? INT32_MAX : (int32_t)v; }

void vol_info_of(struct volserver *v, struct vs_volume *vol, struct volintInfo *out)
{
	struct vs_header h;
	*out = (struct volintInfo){.volid = vs_volume_id(vol)};
	if (vol_trans_holds(&v->trans, vs_volume_id(vol), (int32_t)vs_partition_id(vs_volume_partition(vol)))) {
		out->status = VOL_STATUS_BUSY;
		return;
	}
	if (vs_volume_header(vol, &h) != AFS_OK)
		return;
	snprintf(out->name, sizeof(out->name), "%s", h.name);
	out->type = h.type;
	out->backupID = h.backup;
	out->parentID = h.parent;
	out->cloneID = h.clone;
	out->status = VOL_STATUS_OK;
	out->copyDate = clk_wire_sec(h.copy);
	out->inUse = vs_volume_online(vol);
	out->needsSalvaged = h.needs_salvage;
	out->destroyMe = h.destroy_me;
	out->creationDate = clk_wire_sec(h.creation);
	out->accessDate = clk_wire_sec(h.access);
	out->updateDate = clk_wire_sec(h.update);
	out->backupDate = clk_wire_sec(h.backup_date);
	out->dayUse = wire_i32(h.day_use);
	out->filecount = wire_i32(h.files);
	out->maxquota = wire_i32(h.quota_kib);
	out->size = wire_i32(h.used_kib);
	out->spare0 = wire_i32(h.min_quota_kib);
	uint64_t week = 0;
	for (int i = 0; i < 7; i++)
		week += h.week_use[i];
	out->spare1 = wire_i32(week);
	out->spare2 = (int32_t)h.update_counter;
}

static void extended_of(const struct volintInfo *i, struct volintXInfo *out)
{
	*out = (struct volintXInfo){.volid = i->volid, .type = i->type, .backupID = i->backupID,
		.parentID = i->parentID, .cloneID = i->cloneID, .status = i->status, .copyDate = i->copyDate,
		.inUse = i->inUse, .creationDate = i->creationDate, .accessDate = i->accessDate,
		.updateDate = i->updateDate, .backupDate = i->backupDate, .dayUse = i->dayUse,
		.filecount = i->filecount, .maxquota = i->maxquota, .size = i->size};
	memcpy(out->name, i->name, sizeof(out->name));
}

/* All volumes of a partition; half-made ones are left out.  `full` false: numbers only. */
static afs_err list_partition(struct rpc_call *call, int32_t id, bool full, struct volintInfo **out, uint32_t *n)
{
	struct volserver *v = call->service;
	struct vs_partition *part = id < 0 ? NULL : vs_partition_find(v->config.store, (unsigned)id);
	CLEANUP(heap) struct vs_listed *listed = NULL;
	size_t count;
	if (!part)
		return AFS_EBADPART;
	TRY(vs_volume_list(part, &listed, &count));
	*n = 0;
	*out = arena_alloc(call->arena, count ? count : 1, sizeof(**out));
	if (!*out)
		return AFS_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct volintInfo *info = &(*out)[*n];
		CLEANUP(vs_volume) struct vs_volume *vol = NULL;
		*info = (struct volintInfo){.volid = listed[i].id};
		if (full && !listed[i].err && vs_volume_find(v->config.store, part, listed[i].id, &vol) == AFS_OK)
			vol_info_of(v, vol, info);
		if (!info->destroyMe)
			++*n;
	}
	return AFS_OK;
}

static afs_err list_one(struct rpc_call *call, int32_t id, uint32_t volid, struct volintInfo *out)
{
	struct volserver *v = call->service;
	struct vs_partition *part = id < 0 ? NULL : vs_partition_find(v->config.store, (unsigned)id);
	CLEANUP(vs_volume) struct vs_volume *vol = NULL;
	if (!part)
		return AFS_EBADPART;
	afs_err err = vs_volume_find(v->config.store, part, volid, &vol);
	if (err == AFS_ENOVOL)
		return AFS_ENODEV; /* what vos takes for "does not exist" here */
	TRY(err);
	vol_info_of(v, vol, out);
	return AFS_OK;
}

afs_err vol_list_volumes(
	struct rpc_call *call, const struct vol_list_volumes_in *in, struct vol_list_volumes_out *out)
{
	return list_partition(call, in->partition, in->flags != 0, &out->volumes.v, &out->volumes.n);
}

afs_err vol_xlist_volumes(
	struct rpc_call *call, const struct vol_xlist_volumes_in *in, struct vol_xlist_volumes_out *out)
{
	struct volintInfo *info;
	uint32_t n;
	TRY(list_partition(call, in->partition, in->flags != 0, &info, &n));
	out->volumes.v = arena_alloc(call->arena, n ? n : 1, sizeof(*out->volumes.v));
	if (!out->volumes.v)
		return AFS_ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		extended_of(&info[i], &out->volumes.v[i]);
	out->volumes.n = n;
	return AFS_OK;
}

afs_err vol_list_one_volume(
	struct rpc_call *call, const struct vol_list_one_volume_in *in, struct vol_list_one_volume_out *out)
{
	out->volumes.v = arena_alloc(call->arena, 1, sizeof(*out->volumes.v));
	if (!out->volumes.v)
		return AFS_ENOMEM;
	TRY(list_one(call, in->partition, in->volid, out->volumes.v));
	out->volumes.n = 1;
	return AFS_OK;
}

afs_err vol_xlist_one_volume(
	struct rpc_call *call, const struct vol_xlist_one_volume_in *in, struct vol_xlist_one_volume_out *out)
{
	struct volintInfo info;
	out->volumes.v = arena_alloc(call->arena, 1, sizeof(*out->volumes.v));
	if (!out->volumes.v)
		return AFS_ENOMEM;
	TRY(list_one(call, in->partition, in->volid, &info));
	extended_of(&info, out->volumes.v);
	out->volumes.n = 1;
	return AFS_OK;
}

afs_err vol_monitor(struct rpc_call *call, const struct vol_monitor_in *in, struct vol_monitor_out *out)
{
	(void)in;
	struct volserver *v = call->service;
	unsigned room = vol_trans_monitor(&v->trans, NULL, 0);
	out->trans.v = arena_alloc(call->arena, room ? room : 1, sizeof(*out->trans.v));
	if (!out->trans.v)
		return AFS_ENOMEM;
	out->trans.n = MIN(vol_trans_monitor(&v->trans, out->trans.v, room), room);
	return AFS_OK;
}

afs_err vol_list_partitions(
	struct rpc_call *call, const struct vol_list_partitions_in *in, struct vol_list_partitions_out *out)
{
	(void)in;
	const struct volserver *v = call->service;
	for (int i = 0; i < 26; i++)
		out->partIds[i] = vs_partition_find(v->config.store, (unsigned)i) ? i : -1;
	return AFS_OK;
}

afs_err vol_xlist_partitions(
	struct rpc_call *call, const struct vol_xlist_partitions_in *in, struct vol_xlist_partitions_out *out)
{
	(void)in;
	const struct volserver *v = call->service;
	out->partitions.v = arena_alloc(call->arena, 255, sizeof(*out->partitions.v));
	if (!out->partitions.v)
		return AFS_ENOMEM;
	for (struct vs_partition *p = NULL; out->partitions.n < 255 && (p = vs_partition_next(v->config.store, p));)
		out->partitions.v[out->partitions.n++] = (int32_t)vs_partition_id(p);
	return AFS_OK;
}

static afs_err space_of(struct volserver *v, struct xdr_str name, struct vs_partition **part, struct vs_space *space)
{
	int id = vs_partition_id_of(name.p);
	*part = id < 0 ? NULL : vs_partition_find(v->config.store, (unsigned)id);
	if (!*part)
		return AFS_EBADPART;
	return vs_partition_space(*part, space);
}

/* Tools take the total from minFree: stock servers put it there. */
afs_err vol_partition_info(
	struct rpc_call *call, const struct vol_partition_info_in *in, struct vol_partition_info_out *out)
{
	struct vs_partition *part;
	struct vs_space space;
	TRY(space_of(call->service, in->name, &part, &space));
	snprintf(out->partition.name, sizeof(out->partition.name), "%s", vs_partition_name(part));
	snprintf(out->partition.devName, sizeof(out->partition.devName), "%s", vs_partition_name(part));
	out->partition.lock_fd = -1;
	out->partition.free = wire_i32(space.free_kib);
	out->partition.minFree = wire_i32(space.total_kib);
	return AFS_OK;
}

afs_err vol_partition_info64(
	struct rpc_call *call, const struct vol_partition_info64_in *in, struct vol_partition_info64_out *out)
{
	struct vs_partition *part;
	struct vs_space space;
	TRY(space_of(call->service, in->name, &part, &space));
	snprintf(out->partition.name, sizeof(out->partition.name), "%s", vs_partition_name(part));
	snprintf(out->partition.devName, sizeof(out->partition.devName), "%s", vs_partition_name(part));
	out->partition.lock_fd = -1;
	out->partition.free = (int64_t)space.free_kib;
	out->partition.minFree = (int64_t)space.total_kib;
	return AFS_OK;
}
