/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Volume servers: partitions, and transactions, which hold a volume from vt_begin to vt_end.
 * Source: volserver.md §4, §5. */
#include "cell/admin/volume.h"

#include "cell/base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_TRIES = 3, PARTITION_IDS = 256, ARENA = 1 << 20 };

/* --- partitions ---------------------------------------------------------------------------------------- */

afs_err volume_partitions(struct admin *a, uint32_t ip, int32_t out[256], size_t *n)
{
	struct rpc_conn *conn;
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ARENA);
	TRY(admin_conn(a, ip, ADMIN_VOL, &conn));
	struct vol_xlist_partitions_in in;
	struct vol_xlist_partitions_out res = {};
	TRY(VOL_CALL(a, conn, xlist_partitions, &in, &res, &arena));
	bool has[PARTITION_IDS] = {};
	for (uint32_t i = 0; i < res.partitions.n; i++)
		if (res.partitions.v[i] >= 0 && res.partitions.v[i] < PARTITION_IDS)
			has[res.partitions.v[i]] = true;
	*n = 0;
	for (int32_t i = 0; i < PARTITION_IDS; i++)
		if (has[i])
			out[(*n)++] = i;
	return AFS_OK;
}

afs_err volume_has_partition(struct admin *a, uint32_t ip, int32_t part)
{
	int32_t parts[PARTITION_IDS];
	size_t n;
	TRY(volume_partitions(a, ip, parts, &n));
	for (size_t i = 0; i < n; i++)
		if (parts[i] == part)
			return AFS_OK;
	return admin_refuse(a, AFS_EBADPART, "the server %s has no partition %s", admin_host_name(a, ip), PARTNAME(part));
}

afs_err volume_partition_info(struct admin *a, uint32_t ip, int32_t part, struct diskPartition64 *out)
{
	struct rpc_conn *conn;
	char name[16];
	TRY(admin_conn(a, ip, ADMIN_VOL, &conn));
	admin_partition_name(name, part);
	struct vol_partition_info64_in in = {XDR_STR_OF(name)};
	struct vol_partition_info64_out res = {};
	TRY(VOL_CALL(a, conn, partition_info64, &in, &res, NULL));
	*out = res.partition;
	return AFS_OK;
}

afs_err volume_info(struct admin *a, uint32_t ip, int32_t part, uint32_t id, struct volintInfo *out)
{
	struct rpc_conn *conn;
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ARENA);
	TRY(admin_conn(a, ip, ADMIN_VOL, &conn));
	struct vol_list_one_volume_in in = {part, id};
	struct vol_list_one_volume_out res = {};
	TRY(VOL_CALL(a, conn, list_one_volume, &in, &res, &arena));
	if (res.volumes.n != 1)
		return admin_refuse(a, AFS_EPROTOCOL, "the server %s told of %u volumes where one was asked for",
			admin_host_name(a, ip), res.volumes.n);
	*out = res.volumes.v[0];
	return AFS_OK;
}

/* --- transactions -------------------------------------------------------------------------------------- */

afs_err vt_begin(struct admin *a, uint32_t ip, int32_t part, uint32_t volume, int32_t flags, struct vt *out)
{
	struct rpc_conn *conn;
	TRY(admin_conn(a, ip, ADMIN_VOL, &conn));
	struct vol_trans_create_in in = {volume, part, flags};
	struct vol_trans_create_out res = {};
	afs_err err = AFS_OK;
	for (unsigned i = 1; i <= BUSY_TRIES + 1; i++) {
		err = VOL_CALL(a, conn, trans_create, &in, &res, NULL);
		if (err != AFS_EVOLTRANS || i > BUSY_TRIES)
			break;
		sleep(i);
	}
	TRY(err);
	*out = (struct vt){a, conn, res.trans};
	return AFS_OK;
}

afs_err vt_create(struct admin *a, uint32_t ip, int32_t part, const char *name, enum afs_voltype type, uint32_t parent,
	uint32_t volume, struct vt *out)
{
	struct rpc_conn *conn;
	TRY(admin_conn(a, ip, ADMIN_VOL, &conn));
	struct vol_create_volume_in in = {.partition = part, .name = XDR_STR_OF(name), .type = (int32_t)type, .parent = parent,
		.volid = volume};
	struct vol_create_volume_out res = {};
	TRY(VOL_CALL(a, conn, create_volume, &in, &res, NULL));
	*out = (struct vt){a, conn, res.trans};
	return AFS_OK;
}

afs_err vt_flags(struct vt *t, int32_t flags)
{
	struct vol_set_flags_in in = {t->id, flags};
	struct vol_set_flags_out out;
	return VOL_CALL(t->a, t->conn, set_flags, &in, &out, NULL);
}

afs_err vt_delete(struct vt *t)
{
	struct vol_delete_volume_in in = {t->id};
	struct vol_delete_volume_out out;
	return VOL_CALL(t->a, t->conn, delete_volume, &in, &out, NULL);
}

afs_err vt_status(struct vt *t, struct volser_status *out)
{
	struct vol_get_status_in in = {t->id};
	struct vol_get_status_out res = {};
	TRY(VOL_CALL(t->a, t->conn, get_status, &in, &res, NULL));
	*out = res.status;
	return AFS_OK;
}

afs_err vt_set_ids(struct vt *t, const char *name, enum afs_voltype type, uint32_t parent, uint32_t clone, uint32_t backup)
{
	struct vol_set_ids_types_in in = {t->id, XDR_STR_OF(name), (int32_t)type, parent, clone, backup};
	struct vol_set_ids_types_out out;
	return VOL_CALL(t->a, t->conn, set_ids_types, &in, &out, NULL);
}

afs_err vt_set_date(struct vt *t, uint32_t date)
{
	struct vol_set_date_in in = {t->id, date};
	struct vol_set_date_out out;
	return VOL_CALL(t->a, t->conn, set_date, &in, &out, NULL);
}

struct volintInfo vt_info_keep(void)
{
	return (struct volintInfo){.creationDate = UINT32_MAX, .updateDate = UINT32_MAX, .dayUse = -1, .maxquota = -1,
		.flags = -1, .spare0 = -1, .spare1 = -1, .spare2 = -1, .spare3 = -1};
}

afs_err vt_set_info(struct vt *t, const struct volintInfo *info)
{
	struct vol_set_info_in in = {t->id, *info};
	struct vol_set_info_out out;
	return VOL_CALL(t->a, t->conn, set_info, &in, &out, NULL);
}

afs_err vt_clone(struct vt *t, enum afs_voltype type, const char *name, uint32_t clone)
{
	struct vol_clone_in in = {.trans = t->id, .newType = (int32_t)type, .newName = XDR_STR_OF(name), .newVol = clone};
	struct vol_clone_out out = {};
	return VOL_CALL(t->a, t->conn, clone, &in, &out, NULL);
}

afs_err vt_reclone(struct vt *t, uint32_t clone)
{
	struct vol_reclone_in in = {t->id, clone};
	struct vol_reclone_out out;
	return VOL_CALL(t->a, t->conn, reclone, &in, &out, NULL);
}

afs_err vt_forward(struct vt *t, uint32_t from, struct vt *dest, const char *name, enum afs_voltype type, uint32_t parent)
{
	struct rx_addr to = rpc_conn_peer(dest->conn);
	struct vol_forward_in in = {.fromTrans = t->id, .fromDate = from, .destination = {to.ip, to.port, 1},
		.destTrans = dest->id, .cookie = {.type = (int32_t)type, .parent = parent}};
	struct vol_forward_out out;
	snprintf(in.cookie.name, sizeof(in.cookie.name), "%s", name);
	return VOL_CALL(t->a, t->conn, forward, &in, &out, NULL);
}

afs_err vt_end(struct vt *t)
{
	struct vol_end_trans_in in = {t->id};
	struct vol_end_trans_out out = {};
	t->id = 0;
	TRY(VOL_CALL(t->a, t->conn, end_trans, &in, &out, NULL));
	if (out.rcode)
		return admin_refuse(t->a, AFS_EABORTED, "the transaction ended with code %d", out.rcode);
	return AFS_OK;
}

void vt_cleanup(struct vt *t)
{
	struct vol_end_trans_in in = {t->id};
	struct vol_end_trans_out out = {};
	struct rpc_result res = {};
	if (t->id)
		/* past the one who remembers failures: the first one is what is to be told; a transaction that is
		 * left ends by itself after some minutes */
		(void)rpc_invoke(t->conn, &vol_iface.procs[vol_op_end_trans], &in, &out, &res);
	t->id = 0;
}

void vldb_lock_cleanup(struct vldb_lock *lock)
{
	struct vl_release_lock_in in = {lock->id, VL_ANY_TYPE, VL_RELEASE_TIME | VL_RELEASE_OP | VL_RELEASE_AFSID};
	struct vl_release_lock_out out;
	struct rpc_result res = {};
	const uint32_t *ips;
	size_t n = lock->id ? admin_db_servers(lock->a, &ips) : 0;
	for (size_t i = 0; i < n; i++) {
		struct rpc_conn *conn;
		if (admin_conn(lock->a, ips[i], ADMIN_VL, &conn) == AFS_OK
			&& rpc_invoke(conn, &vl_iface.procs[vl_op_release_lock], &in, &out, &res) == AFS_OK)
			break;
	}
	lock->id = 0;
}

afs_err volume_delete(struct admin *a, uint32_t ip, int32_t part, uint32_t id)
{
	CLEANUP(vt) struct vt t = {};
	TRY(vt_begin(a, ip, part, id, VOL_IT_OFFLINE, &t));
	TRY(vt_flags(&t, VOL_VT_DELETE_ON_SALVAGE | VOL_VT_OUT_OF_SERVICE));
	TRY(vt_delete(&t));
	return vt_end(&t);
}
