/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vos: what shows and changes nothing. */
#include "cell/cli/handlers.h"
#include "cell/cli/vos.h"

#include "cell/base/text.h"

#include <stdio.h>
#include <string.h>

enum { LIST_ARENA = 512 << 20, PARTS_MAX = 256 };

/* --- examine ------------------------------------------------------------------------------------------------ */

/* Asks each site that should have the volume; the first answer is shown. */
static int examine_at(struct vos *v, const struct nvldbentry *e, enum afs_voltype type, json_t *out)
{
	bool extended = cli_has(v->c, "extended"), format = cli_has(v->c, "format"), json = cli_wants_json(v->c), found = false, asked = false;
	int32_t flag = type == AFS_VOL_RO ? VLSF_RO : VLSF_RW;
	int status = CLI_OK;
	json_t *volumes = json_array();
	for (int i = 0; i < e->nServers; i++) {
		uint32_t ip = e->serverNumber[i];
		int32_t part = e->serverPartition[i];
		if (!(e->serverFlags[i] & flag))
			continue;
		CLEANUP(arena) struct arena arena;
		arena_init(&arena, LIST_ARENA);
		struct rpc_conn *conn;
		struct vol_list_one_volume_in in = {part, e->volumeId[type]};
		struct vol_list_one_volume_out one = {};
		struct vol_xlist_one_volume_in xin = {part, e->volumeId[type]};
		struct vol_xlist_one_volume_out xone = {};
		asked = true;
		afs_err err = admin_conn(v->a, ip, ADMIN_VOL, &conn);
		if (err == AFS_OK)
			err = extended ? VOL_CALL(v->a, conn, xlist_one_volume, &xin, &xone, &arena)
				       : VOL_CALL(v->a, conn, list_one_volume, &in, &one, &arena);
		if (err == AFS_OK && (extended ? xone.volumes.n : one.volumes.n) != 1)
			err = admin_refuse(v->a, AFS_EPROTOCOL, "the server told of no volume");
		if (err != AFS_OK) {
			if (type == AFS_VOL_RO && (e->serverFlags[i] & VLSF_DONTUSE))
				continue; /* not released yet */
			status = admin_code(v->a) == VOLUME_ENODEV
					 ? cli_fail(v->c, "volume %u does not exist on server %s as indicated by the VLDB", e->volumeId[type],
						   admin_host_name(v->a, ip))
					 : suite_fail(v->c, v->a, err, "cannot examine volume %u on %s", e->volumeId[type], admin_host_name(v->a, ip));
			continue;
		}
		if (json) {
			json_array_append_new(volumes, extended ? vos_xvolume_json(v, xone.volumes.v, ip, part)
								: vos_volume_json(v, one.volumes.v, ip, part));
		} else {
			if (found)
				printf("\n");
			if (extended)
				vos_print_xvolume(v, xone.volumes.v, ip, part, VOS_EXTENDED);
			else
				vos_print_volume(v, one.volumes.v, ip, part, format ? VOS_FORMAT : VOS_LONG);
		}
		found = true;
	}
	json_object_set_new(out, "volumes", volumes);
	if (!asked)
		status = cli_fail(v->c, "the entry %s has no site for volume %u", e->name, e->volumeId[type]);
	return status;
}

int cli_vos_examine(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	const char *name = cli_value(c, "id");
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v.a, name, &e);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "%s", name);
	json_t *out = json_object();
	status = examine_at(&v, &e, vldb_type_of(&e, name), out);
	if (cli_wants_json(c)) {
		json_object_set_new(out, "entry", vos_entry_json(&v, &e));
		int printed = cli_print_json(c, out);
		return status != CLI_OK ? status : printed;
	}
	json_decref(out);
	if (cli_has(c, "format") && !cli_has(c, "extended")) {
		vos_print_entry(&v, &e, true);
	} else {
		printf("\n");
		vos_print_entry(&v, &e, false);
	}
	return status;
}

/* --- listvol ------------------------------------------------------------------------------------------------ */

struct counts {
	int on, off, busy;
	json_t *all;
};

static void count(struct counts *n, int32_t status, uint32_t in_use)
{
	if (status == VOL_STATUS_BUSY)
		n->busy++;
	else if (status == VOL_STATUS_OK && in_use == 1)
		n->on++;
	else
		n->off++;
}

/* By name; what could not be looked at stands last, busy ones first. */
static int rank(int32_t status) { return status == VOL_STATUS_OK ? 0 : status == VOL_STATUS_BUSY ? 1 : 2; }
static int by_name(const void *a, const void *b)
{
	const struct volintInfo *x = a, *y = b;
	int r = rank(x->status) - rank(y->status);
	return r ? r : strcmp(x->name, y->name);
}
static int by_xname(const void *a, const void *b)
{
	const struct volintXInfo *x = a, *y = b;
	int r = rank(x->status) - rank(y->status);
	return r ? r : strcmp(x->name, y->name);
}
static int by_id(const void *a, const void *b)
{
	const struct volintInfo *x = a, *y = b;
	return x->volid < y->volid ? -1 : x->volid > y->volid;
}

static void print_heading(struct vos *v, int32_t part, uint32_t n)
{
	if (!cli_has(v->c, "quiet"))
		printf("Total number of volumes on server %s partition %s: %u \n", cli_value(v->c, "server"), PARTNAME(part), n);
}

static void print_totals(struct vos *v, const struct counts *n, enum vos_form form)
{
	if (cli_has(v->c, "quiet"))
		return;
	switch (form) {
	case VOS_FAST: printf("\n"); break;
	case VOS_FORMAT: break;
	case VOS_EXTENDED: printf("\nTotal volumes: %d on-line, %d off-line, %d  busyd\n\n", n->on, n->off, n->busy); break;
	case VOS_EXTENDED_FORMAT: printf("\nVOLUMES_ONLINE\t%d\nVOLUMES_OFFLINE\t%d\nVOLUMES_BUSY\t%d\n", n->on, n->off, n->busy); break;
	default: printf("\nTotal volumes onLine %d ; Total volumes offLine %d ; Total busy %d\n\n", n->on, n->off, n->busy);
	}
}

static afs_err list_extended(struct vos *v, uint32_t ip, int32_t part, enum vos_form form, json_t *all)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, LIST_ARENA);
	struct rpc_conn *conn;
	struct vol_xlist_volumes_in in = {part, 1};
	struct vol_xlist_volumes_out out = {};
	struct counts n = {};
	TRY(admin_conn(v->a, ip, ADMIN_VOL, &conn));
	TRY(VOL_CALL(v->a, conn, xlist_volumes, &in, &out, &arena));
	if (out.volumes.n)
		qsort(out.volumes.v, out.volumes.n, sizeof(out.volumes.v[0]), by_xname);
	if (!cli_wants_json(v->c))
		print_heading(v, part, out.volumes.n);
	for (uint32_t i = 0; i < out.volumes.n; i++) {
		const struct volintXInfo *x = &out.volumes.v[i];
		count(&n, x->status, x->inUse);
		if (cli_wants_json(v->c)) {
			json_array_append_new(all, vos_xvolume_json(v, x, ip, part));
			continue;
		}
		bool whole = x->status == VOL_STATUS_OK;
		if (whole && form == VOS_EXTENDED_FORMAT)
			printf("BEGIN_OF_ENTRY\n");
		vos_print_xvolume(v, x, ip, part, form);
		if (whole)
			printf(form == VOS_EXTENDED_FORMAT ? "END_OF_ENTRY\n" : "\n");
	}
	if (!cli_wants_json(v->c))
		print_totals(v, &n, form);
	return AFS_OK;
}

static afs_err list_plain(struct vos *v, uint32_t ip, int32_t part, enum vos_form form, json_t *all)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, LIST_ARENA);
	struct rpc_conn *conn;
	struct vol_list_volumes_in in = {part, form == VOS_FAST ? 0 : 1};
	struct vol_list_volumes_out out = {};
	struct counts n = {};
	TRY(admin_conn(v->a, ip, ADMIN_VOL, &conn));
	TRY(VOL_CALL(v->a, conn, list_volumes, &in, &out, &arena));
	if (out.volumes.n)
		qsort(out.volumes.v, out.volumes.n, sizeof(out.volumes.v[0]), form == VOS_FAST ? by_id : by_name);
	if (!cli_wants_json(v->c))
		print_heading(v, part, out.volumes.n);
	for (uint32_t i = 0; i < out.volumes.n; i++) {
		const struct volintInfo *w = &out.volumes.v[i];
		count(&n, w->status, w->inUse);
		if (cli_wants_json(v->c)) {
			json_array_append_new(all, form == VOS_FAST ? json_pack("{s:I, s:s, s:s}", "id", (json_int_t)w->volid, "address",
									      IPV4(ip), "partition", PARTNAME(part))
								    : vos_volume_json(v, w, ip, part));
			continue;
		}
		if (form == VOS_FORMAT)
			printf("BEGIN_OF_ENTRY\n");
		vos_print_volume(v, w, ip, part, form);
		if (form == VOS_FORMAT)
			printf("END_OF_ENTRY\n\n");
		else if (form == VOS_LONG && w->status == VOL_STATUS_OK)
			printf("\n");
	}
	if (!cli_wants_json(v->c))
		print_totals(v, &n, form);
	return AFS_OK;
}

/* The partition that was named, or all of the server's. */
static int each_partition(struct vos *v, uint32_t ip, int32_t part, afs_err (*each)(struct vos *, uint32_t, int32_t, enum vos_form, json_t *),
	enum vos_form form, json_t *all)
{
	int32_t parts[PARTS_MAX] = {part};
	size_t n = 1;
	afs_err err = part >= 0 ? volume_has_partition(v->a, ip, part) : volume_partitions(v->a, ip, parts, &n);
	if (err != AFS_OK)
		return suite_fail(v->c, v->a, err, "%s", cli_value(v->c, "server"));
	int status = CLI_OK;
	for (size_t i = 0; i < n; i++) {
		err = each(v, ip, parts[i], form, all);
		if (err != AFS_OK)
			status = suite_fail(v->c, v->a, err, "%s %s", cli_value(v->c, "server"), PARTNAME(parts[i]));
	}
	return status;
}

int cli_vos_listvol(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ip;
	int32_t part;
	bool extended = cli_has(c, "extended"), format = cli_has(c, "format");
	enum vos_form form = extended			? format ? VOS_EXTENDED_FORMAT : VOS_EXTENDED
			     : format			? VOS_FORMAT
			     : cli_has(c, "fast")	? VOS_FAST
			     : cli_has(c, "long")	? VOS_LONG
							: VOS_SHORT;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status != CLI_OK)
		return status;
	json_t *all = json_array();
	status = each_partition(&v, ip, part, extended ? list_extended : list_plain, form, all);
	if (cli_wants_json(c) && status == CLI_OK)
		return cli_print_json(c, all);
	json_decref(all);
	return status;
}

/* --- partitions --------------------------------------------------------------------------------------------- */

int cli_vos_listpart(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ip;
	int32_t parts[PARTS_MAX];
	size_t n;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_server(&v, "server", &ip);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_partitions(v.a, ip, parts, &n);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "%s", cli_value(c, "server"));
	if (cli_wants_json(c)) {
		json_t *all = json_array();
		for (size_t i = 0; i < n; i++)
			json_array_append_new(all, json_string(PARTNAME(parts[i])));
		return cli_print_json(c, all);
	}
	enum { PER_LINE = 6 };
	printf("The partitions on the server are:\n");
	for (size_t i = 0; i < n; i++)
		printf(" %10s %s", PARTNAME(parts[i]), (i + 1) % PER_LINE == 0 && i + 1 < n ? "\n" : "");
	printf("\nTotal: %zu\n", n);
	return CLI_OK;
}

static afs_err show_space(struct vos *v, uint32_t ip, int32_t part, enum vos_form form, json_t *all)
{
	struct diskPartition64 d;
	(void)form;
	TRY(volume_partition_info(v->a, ip, part, &d));
	/* the capacity travels in minFree: volserver.md §3 */
	v->space.free += d.free;
	v->space.total += d.minFree;
	v->space.partitions++;
	json_array_append_new(all, json_pack("{s:s, s:I, s:I}", "partition", PARTNAME(part), "free_kib", (json_int_t)d.free, "total_kib",
		(json_int_t)d.minFree));
	if (!cli_wants_json(v->c))
		printf("Free space on partition %s: %lld K blocks out of total %lld\n", PARTNAME(part), (long long)d.free, (long long)d.minFree);
	return AFS_OK;
}

int cli_vos_partinfo(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ip;
	int32_t part;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status != CLI_OK)
		return status;
	json_t *all = json_array();
	status = each_partition(&v, ip, part, show_space, VOS_SHORT, all);
	if (cli_wants_json(c) && status == CLI_OK)
		return cli_print_json(c, all);
	json_decref(all);
	if (!cli_wants_json(c) && cli_has(c, "summary"))
		printf("Summary: %lld KB free out of %lld KB on %u partitions\n", v.space.free, v.space.total, v.space.partitions);
	return status;
}

/* --- listvldb ------------------------------------------------------------------------------------------------- */

static int by_entry_name(const void *a, const void *b)
{
	return strcmp(((const struct nvldbentry *)a)->name, ((const struct nvldbentry *)b)->name);
}

int cli_vos_listvldb(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(vos_entries) struct vos_entries all = {};
	struct VldbListByAttributes attrs = {};
	const char *name = cli_value(c, "name");
	bool json = cli_wants_json(c);
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &attrs.server, &attrs.partition);
	if (status != CLI_OK)
		return status;
	struct nvldbentry one;
	afs_err err;
	if (name) {
		err = vldb_find(v.a, name, &one);
		if (err == AFS_OK)
			err = vos_keep(&all, &one);
	} else {
		attrs.Mask = (attrs.server ? VLLIST_SERVER : 0U) | (attrs.partition >= 0 ? VLLIST_PARTITION : 0U)
			     | (cli_has(c, "locked") ? VLLIST_FLAG : 0U);
		attrs.flag = cli_has(c, "locked") ? VLF_OP_MASK : 0;
		err = vldb_each(v.a, &attrs, vos_keep, &all);
	}
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "%s", name ? name : "cannot list entries");
	if (all.n && !cli_has(c, "nosort"))
		qsort(all.v, all.n, sizeof(all.v[0]), by_entry_name);
	if (json) {
		json_t *list = json_array();
		for (size_t i = 0; i < all.n; i++)
			json_array_append_new(list, vos_entry_json(&v, &all.v[i]));
		return cli_print_json(c, list);
	}
	bool heads = !name && !cli_has(c, "quiet");
	if (heads) {
		printf("VLDB entries for %s%s", attrs.server ? "server " : "all servers", attrs.server ? cli_value(c, "server") : "");
		if (attrs.partition >= 0)
			printf(" partition %s", PARTNAME(attrs.partition));
		printf(" %s\n", cli_has(c, "locked") ? "which are locked:" : "");
	}
	for (size_t i = 0; i < all.n; i++)
		vos_print_entry(&v, &all.v[i], true);
	if (heads)
		printf("\nTotal entries: %zu\n", all.n);
	return CLI_OK;
}

/* --- status --------------------------------------------------------------------------------------------------- */

static void print_flags(const char *head, int32_t flags, const char *const *names, const int32_t *bits, size_t n)
{
	if (!flags)
		return;
	printf("%s", head);
	for (size_t i = 0; i < n; i++)
		if (flags & bits[i])
			printf("%s ", names[i]);
	printf("\n");
}

static void print_transaction(const struct transDebugInfo *t)
{
	static const char *const attach[] = {"offline", "busy", "readonly", "create", "create volid"}, *const vol[] = {"deleteOnSalvage",
		"outOfService", "deleted"}, *const trans[] = {"delete"};
	static const int32_t attach_bits[] = {1, 2, 8, 0x10, 0x1000}, vol_bits[] = {1, 2, 4}, trans_bits[] = {1};
	printf("--------------------------------------\n");
	printf("transaction: %u  created: %s\n", (unsigned)t->tid, CTIME(t->creationTime));
	printf("lastActiveTime: %s\n", CTIME(t->time));
	if (t->returnCode)
		printf("returnCode: %u\n", (unsigned)t->returnCode);
	print_flags("attachFlags:  ", t->iflags, attach, attach_bits, ARRAY_SIZE(attach));
	print_flags("volumeStatus: ", t->vflags, vol, vol_bits, ARRAY_SIZE(vol));
	print_flags("transactionFlags: ", t->tflags, trans, trans_bits, ARRAY_SIZE(trans));
	printf("volume: %u  partition: %s  procedure: %s\n", t->volid, PARTNAME(t->partition), t->lastProcName);
	if (t->callValid) {
		printf("packetRead: %u  lastReceiveTime: %s\n", t->readNext, CTIME(t->lastReceiveTime));
		printf("packetSend: %u  lastSendTime: %s\n", t->transmitNext, CTIME(t->lastSendTime));
	}
	printf("--------------------------------------\n\n");
}

int cli_vos_status(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(arena) struct arena arena;
	uint32_t ip;
	struct rpc_conn *conn;
	struct vol_monitor_in in;
	struct vol_monitor_out out = {};
	arena_init(&arena, LIST_ARENA);
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_server(&v, "server", &ip);
	if (status != CLI_OK)
		return status;
	const char *server = cli_value(c, "server");
	afs_err err = admin_conn(v.a, ip, ADMIN_VOL, &conn);
	if (err == AFS_OK)
		err = VOL_CALL(v.a, conn, monitor, &in, &out, &arena);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "%s", server);
	if (cli_wants_json(c)) {
		json_t *all = json_array();
		for (uint32_t i = 0; i < out.trans.n; i++) {
			const struct transDebugInfo *t = &out.trans.v[i];
			json_array_append_new(all, json_pack("{s:i, s:I, s:I, s:I, s:s, s:s, s:i, s:i, s:i}", "transaction", t->tid, "created",
				(json_int_t)t->creationTime, "active", (json_int_t)t->time, "volume", (json_int_t)t->volid, "partition",
				PARTNAME(t->partition), "procedure", t->lastProcName, "attach_flags", t->iflags, "volume_flags", t->vflags,
				"return_code", t->returnCode));
		}
		return cli_print_json(c, all);
	}
	if (!out.trans.n) {
		printf("No active transactions on %s\n", server);
		return CLI_OK;
	}
	printf("Total transactions: %u\n", out.trans.n);
	for (uint32_t i = 0; i < out.trans.n; i++)
		print_transaction(&out.trans.v[i]);
	return CLI_OK;
}

/* --- size ------------------------------------------------------------------------------------------------------- */

int cli_vos_size(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	uint32_t ip, from;
	int32_t part;
	const char *name = cli_value(c, "id");
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status == CLI_OK)
		status = vos_date(&v, "time", &from);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v.a, name, &e);
	struct vol_get_size_out out = {};
	if (err == AFS_OK && cli_has(c, "dump")) {
		enum afs_voltype type = vldb_type_of(&e, name);
		int i = vldb_site(v.a, &e, type == AFS_VOL_RO ? VLSF_RO : VLSF_RW, ip, part);
		if (i < 0)
			return cli_fail(c, "%s: the location database knows no such site of it", name);
		CLEANUP(vt) struct vt t = {};
		err = vt_begin(v.a, e.serverNumber[i], e.serverPartition[i], e.volumeId[type], VOL_IT_BUSY, &t);
		struct vol_get_size_in in = {t.id, from};
		if (err == AFS_OK)
			err = VOL_CALL(v.a, t.conn, get_size, &in, &out, NULL);
		if (err == AFS_OK)
			err = vt_end(&t);
	}
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "%s", name);
	if (cli_wants_json(c)) {
		json_t *o = json_pack("{s:s}", "volume", name);
		if (cli_has(c, "dump"))
			json_object_set_new(o, "dump_size", json_integer((json_int_t)out.dump_size));
		return cli_print_json(c, o);
	}
	printf("Volume: %s\n", name);
	if (cli_has(c, "dump"))
		printf("dump_size: %llu\n", (unsigned long long)out.dump_size);
	return CLI_OK;
}

/* --- addresses -------------------------------------------------------------------------------------------------- */

static void show_addrs(struct vos *v, const struct afsUUID *uuid, const uint32_t *ips, uint32_t n, json_t *all)
{
	char text[48];
	if (cli_wants_json(v->c)) {
		json_t *list = json_array();
		for (uint32_t i = 0; i < n; i++)
			json_array_append_new(list, json_pack("{s:s, s:s}", "address", IPV4(ips[i]), "name", admin_host_name(v->a, ips[i])));
		json_array_append_new(all, json_pack("{s:o, s:o}", "uuid", uuid ? json_string(vos_uuid_text(text, uuid)) : json_null(), "addresses",
			list));
		return;
	}
	bool print_uuid = cli_has(v->c, "printuuid");
	if (print_uuid && uuid)
		printf("UUID: %s\n", vos_uuid_text(text, uuid));
	for (uint32_t i = 0; i < n; i++)
		printf("%s\n", admin_host_name(v->a, ips[i]));
	if (print_uuid)
		printf("\n");
}

/* A slot's word is the address of a server that registers none, or begins with 0xff.  Those are asked for
 * by number, and numbers have holes. */
enum { SLOT_REGISTERED = 0xff, VL_INDEXERANGE = 363549 };

static int show_all_addrs(struct vos *v, struct arena *arena, json_t *all)
{
	struct vl_get_addrs_in in = {};
	struct vl_get_addrs_out out = {};
	unsigned registered = 0;
	afs_err err = VL_CALL(v->a, get_addrs, &in, &out, arena);
	if (err != AFS_OK)
		return suite_fail(v->c, v->a, err, "cannot list servers");
	for (uint32_t i = 0; i < out.blkaddr.n; i++)
		registered += out.blkaddr.v[i] >> 24 == SLOT_REGISTERED;
	for (int32_t i = 1; registered && i <= VL_SERVERS_MAX; i++) {
		struct vl_get_addrs_u_in one = {.inaddr = {.Mask = VLADDR_INDEX, .index = i}};
		struct vl_get_addrs_u_out got = {};
		err = VL_CALL(v->a, get_addrs_u, &one, &got, arena);
		if (err == AFS_OK) {
			show_addrs(v, &got.uuid, got.blkaddrs.v, got.blkaddrs.n, all);
			registered--;
		} else if (admin_code(v->a) == VL_INDEXERANGE) {
			break;
		} else if (admin_code(v->a) != VL_NOENT) {
			return suite_fail(v->c, v->a, err, "cannot list server %d", i);
		}
	}
	for (uint32_t i = 0; i < out.blkaddr.n; i++)
		if (out.blkaddr.v[i] >> 24 != SLOT_REGISTERED)
			show_addrs(v, NULL, &out.blkaddr.v[i], 1, all);
	return CLI_OK;
}

int cli_vos_listaddrs(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(arena) struct arena arena;
	struct vl_get_addrs_u_in one = {};
	struct vl_get_addrs_u_out got = {};
	uint32_t ip;
	arena_init(&arena, LIST_ARENA);
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_server(&v, "host", &ip);
	if (status != CLI_OK)
		return status;
	const char *uuid = cli_value(c, "uuid");
	if (uuid && ip)
		return cli_misuse(c, "-uuid and -host exclude each other");
	if (uuid && !vos_uuid_parse(uuid, &one.inaddr.uuid))
		return cli_misuse(c, "-uuid %s: expected a UUID as listaddrs -printuuid prints it", uuid);
	json_t *all = json_array();
	if (uuid || ip) {
		one.inaddr.Mask = uuid ? VLADDR_UUID : VLADDR_IPADDR;
		one.inaddr.ipaddr = ip;
		afs_err err = VL_CALL(v.a, get_addrs_u, &one, &got, &arena);
		if (err != AFS_OK)
			return suite_fail(c, v.a, err, "%s", uuid ? uuid : cli_value(c, "host"));
		show_addrs(&v, &got.uuid, got.blkaddrs.v, got.blkaddrs.n, all);
	} else {
		status = show_all_addrs(&v, &arena, all);
	}
	if (cli_wants_json(c) && status == CLI_OK)
		return cli_print_json(c, all);
	json_decref(all);
	return status;
}
