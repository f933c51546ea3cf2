/* SPDX-License-Identifier: BSD-2-Clause
 * Between rows and the three generations of wire entries. */
#include "dbserver/vl/vl_store.h"

#include "cell/proto/cb.h"

bool vl_name_ok(const char *name, size_t len)
{
	if (len == 0 || len > VL_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    c == '.' || c == '-' || c == '_'))
			return false;
	}
	return true;
}

void vl_row_to_n(const struct vl_row *row, struct nvldbentry *out)
{
	*out = (struct nvldbentry){.nServers = (int32_t)row->sites,
		.volumeId = {row->id[0], row->id[1], row->id[2]},
		.cloneId = row->clone,
		.flags = row->flags};
	memcpy(out->name, row->name, sizeof(row->name));
	for (unsigned i = 0; i < row->sites; i++) {
		out->serverNumber[i] = row->site[i].ip;
		out->serverPartition[i] = row->site[i].partition;
		out->serverFlags[i] = row->site[i].flags;
	}
}

/* The first generation has room for 8 sites; it shows the first 8. */
void vl_row_to_o(const struct vl_row *row, struct vldbentry *out)
{
	unsigned sites = MIN(row->sites, (unsigned)VL_OSITES_MAX);
	*out = (struct vldbentry){.nServers = (int32_t)sites,
		.volumeId = {row->id[0], row->id[1], row->id[2]},
		.cloneId = row->clone,
		.flags = row->flags};
	memcpy(out->name, row->name, sizeof(row->name));
	for (unsigned i = 0; i < sites; i++) {
		out->serverNumber[i] = row->site[i].ip;
		out->serverPartition[i] = row->site[i].partition;
		out->serverFlags[i] = row->site[i].flags;
	}
}

void vl_row_to_u(const struct vl_row *row, struct uvldbentry *out)
{
	*out = (struct uvldbentry){.nServers = (int32_t)row->sites,
		.volumeId = {row->id[0], row->id[1], row->id[2]},
		.cloneId = row->clone,
		.flags = row->flags};
	memcpy(out->name, row->name, sizeof(row->name));
	for (unsigned i = 0; i < row->sites; i++) {
		const struct vl_site *s = &row->site[i];
		out->serverPartition[i] = s->partition;
		out->serverFlags[i] = s->flags;
		if (s->registered) {
			out->serverNumber[i] = afs_uuid_from_bytes(s->uuid);
			out->serverUnique[i] = s->uniq;
			out->serverFlags[i] |= VLSF_UUID;
		} else {
			out->serverNumber[i].time_low = s->ip;
		}
	}
}

void vl_entry_o_to_n(const struct vldbentry *in, struct nvldbentry *out)
{
	*out = (struct nvldbentry){.nServers = in->nServers,
		.volumeId = {in->volumeId[0], in->volumeId[1], in->volumeId[2]},
		.cloneId = in->cloneId,
		.flags = in->flags};
	memcpy(out->name, in->name, sizeof(out->name));
	memcpy(out->serverNumber, in->serverNumber, sizeof(in->serverNumber));
	memcpy(out->serverPartition, in->serverPartition, sizeof(in->serverPartition));
	memcpy(out->serverFlags, in->serverFlags, sizeof(in->serverFlags));
}

afs_err vl_row_from_n(
	struct vl_write *w, const struct nvldbentry *in, int sites_max, struct vl_row *row)
{
	size_t len = strlen(in->name);
	if (!vl_name_ok(in->name, len))
		return AFS_EBADNAME;
	if (in->nServers < 1 || in->nServers > sites_max)
		return AFS_EVBADSERVER;
	for (int i = 0; i < in->nServers; i++) {
		if (in->serverPartition[i] < 0 || in->serverPartition[i] > VL_PARTITION_MAX)
			return AFS_EBADPART;
		if (in->serverFlags[i] < 0 || in->serverFlags[i] > VL_SERVERFLAGS_MAX)
			return AFS_EVBADSITEFLAG;
	}
	if (!in->volumeId[0])
		return AFS_EBADARG; /* there is no way to ask for it */

	memset(row->name, 0, sizeof(row->name));
	memcpy(row->name, in->name, len);
	memcpy(row->id, in->volumeId, sizeof(row->id));
	row->clone = in->cloneId;
	row->flags = in->flags;
	row->sites = (unsigned)in->nServers;
	for (unsigned i = 0; i < row->sites; i++) {
		struct vl_server server;
		TRY(vl_server_for_ip(w, in->serverNumber[i], &server));
		row->site[i] = (struct vl_site){.slot = server.slot,
			.partition = (uint8_t)in->serverPartition[i],
			.flags = (uint8_t)in->serverFlags[i]};
	}
	return AFS_OK;
}
