/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vos: what changes the location database and no volume. */
#include "cell/cli/handlers.h"
#include "cell/cli/vos.h"

#include <stdio.h>
#include <string.h>

enum { ARENA = 1 << 20, VL_REMOVE_ADDR = -1 };

/* --- locks ---------------------------------------------------------------------------------------------------- */

int cli_vos_lock(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	struct vldb_lock lock = {}; /* stays after the command: that is what it is for */
	const char *name = cli_value(c, "id");
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v.a, name, &e);
	if (err == AFS_OK)
		err = vldb_lock(v.a, e.volumeId[AFS_VOL_RW], VL_ANY_TYPE, VLF_OP_DELETE, &lock, &e);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "cannot lock the entry of volume %s", name);
	cli_say(c, "Locked VLDB entry for volume %s\n", name);
	return CLI_OK;
}

int cli_vos_unlock(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	const char *name = cli_value(c, "id");
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v.a, name, &e);
	if (err == AFS_OK) {
		struct vldb_lock lock = {v.a, e.volumeId[AFS_VOL_RW]};
		err = vldb_unlock(&lock);
	}
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "cannot unlock the entry of volume %s", name);
	cli_say(c, "Released lock on vldb entry for volume %s\n", name);
	return CLI_OK;
}

static int collect(struct vos *v, int32_t flag, struct vos_entries *out)
{
	struct VldbListByAttributes attrs = {.flag = flag};
	int status = vos_place(v, &attrs.server, &attrs.partition);
	if (status != CLI_OK)
		return status;
	attrs.Mask = (attrs.server ? VLLIST_SERVER : 0U) | (attrs.partition >= 0 ? VLLIST_PARTITION : 0U) | (flag ? VLLIST_FLAG : 0U);
	afs_err err = vldb_each(v->a, &attrs, vos_keep, out);
	return err == AFS_OK ? CLI_OK : suite_fail(v->c, v->a, err, "cannot list entries");
}

int cli_vos_unlockvldb(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(vos_entries) struct vos_entries locked = {};
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = collect(&v, VLF_OP_MASK, &locked);
	if (status != CLI_OK)
		return status;
	size_t failed = 0;
	for (size_t i = 0; i < locked.n; i++) {
		struct vldb_lock lock = {v.a, locked.v[i].volumeId[AFS_VOL_RW]};
		afs_err err = vldb_unlock(&lock);
		if (err != AFS_OK) {
			failed++;
			(void)suite_fail(c, v.a, err, "cannot unlock the entry of volume %s", locked.v[i].name); /* counted */
		}
	}
	if (failed)
		return cli_fail(c, "%zu of %zu locked entries stay locked", failed, locked.n);
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:i}", "unlocked", (int)locked.n));
	if (locked.n && cli_has(c, "server"))
		printf("Unlocked all the VLDB entries for volumes on server %s \n", cli_value(c, "server"));
	return CLI_OK;
}

/* --- delentry ------------------------------------------------------------------------------------------------- */

int cli_vos_delentry(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(vos_entries) struct vos_entries all = {};
	const char *const *ids;
	size_t n = cli_values(c, "id", &ids);
	bool many = cli_has(c, "prefix") || cli_has(c, "server") || cli_has(c, "partition"), dry = cli_has(c, "dryrun");
	unsigned deleted = 0, failed = 0;
	if (many == (n > 0))
		return cli_misuse(c, n ? "-id excludes -prefix, -server and -partition" : "name entries with -id, -prefix, -server or -partition");
	int status = vos_begin(&v, c);
	if (status == CLI_OK && many) {
		all.prefix = cli_value(c, "prefix");
		status = collect(&v, 0, &all);
	}
	if (status != CLI_OK)
		return status;
	for (size_t i = 0; i < n; i++) {
		struct nvldbentry e;
		afs_err err = vldb_find(v.a, ids[i], &e);
		if (err == AFS_OK)
			err = vos_keep(&all, &e);
		if (err != AFS_OK) {
			failed++;
			(void)suite_fail(c, v.a, err, "%s", ids[i]); /* counted */
		}
	}
	json_t *done = json_array();
	for (size_t i = 0; i < all.n; i++) {
		const struct nvldbentry *e = &all.v[i];
		afs_err err = dry ? AFS_OK : vldb_delete(v.a, e->volumeId[AFS_VOL_RW], AFS_VOL_RW);
		if (err != AFS_OK) {
			failed++;
			(void)suite_fail(c, v.a, err, "cannot delete the entry of volume %s", e->name); /* counted */
			continue;
		}
		deleted++;
		json_array_append_new(done, json_string(e->name));
		if (!cli_wants_json(c) && dry)
			printf("Would have deleted VLDB entry for %s \n", e->name);
		else if (!cli_wants_json(c) && many)
			printf("Deleted VLDB entry for %s \n", e->name);
	}
	if (cli_wants_json(c)) {
		(void)cli_print_json(c, json_pack("{s:o, s:i}", "deleted", done, "failed", (int)failed)); /* main looks */
	} else {
		json_decref(done);
		if (many)
			printf("----------------------\nTotal VLDB entries deleted: %u; failed to delete: %u\n", dry ? 0 : deleted, failed);
		else
			printf("Deleted %u VLDB entries\n", dry ? 0 : deleted);
	}
	return failed ? CLI_FAILED : CLI_OK;
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static afs_err change_addr(struct vos *v, uint32_t old, uint32_t new)
{
	struct vl_change_addr_in in = {old, new};
	struct vl_change_addr_out out;
	return VL_CALL(v->a, change_addr, &in, &out, NULL);
}

/* The UUID of a server that registers its addresses. */
static bool is_registered(struct vos *v, uint32_t ip, struct afsUUID *uuid)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ARENA);
	struct vl_get_addrs_u_in in = {.inaddr = {.Mask = VLADDR_IPADDR, .ipaddr = ip}};
	struct vl_get_addrs_u_out out = {};
	bool is = VL_CALL(v->a, get_addrs_u, &in, &out, &arena) == AFS_OK;
	*uuid = out.uuid;
	return is;
}

int cli_vos_changeaddr(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct afsUUID uuid;
	uint32_t old, new;
	bool removes = cli_has(c, "remove");
	if (removes == cli_has(c, "newaddr"))
		return cli_misuse(c, "give -newaddr or -remove, and not both");
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_server(&v, "oldaddr", &old);
	if (status == CLI_OK)
		status = vos_server(&v, "newaddr", &new);
	if (status != CLI_OK)
		return status;
	if (!removes && !cli_has(c, "force") && is_registered(&v, old, &uuid)) {
		char text[48];
		return cli_fail(c, "%s belongs to the file server %s, which registers its addresses itself: restart it, or use vos setaddrs",
			cli_value(c, "oldaddr"), vos_uuid_text(text, &uuid));
	}
	afs_err err = removes ? change_addr(&v, (uint32_t)VL_REMOVE_ADDR, old) : change_addr(&v, old, new);
	if (err != AFS_OK && removes)
		return suite_fail(c, v.a, err, "cannot remove the server %s", cli_value(c, "oldaddr"));
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "cannot change the server %s to %s", cli_value(c, "oldaddr"), cli_value(c, "newaddr"));
	if (cli_has(c, "verbose") && removes)
		printf("Removed server %s from the VLDB\n", cli_value(c, "oldaddr"));
	else if (cli_has(c, "verbose"))
		printf("Changed server %s to server %s\n", cli_value(c, "oldaddr"), cli_value(c, "newaddr"));
	return CLI_OK;
}

int cli_vos_setaddrs(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ips[VL_ADDRS_MAX];
	const char *const *hosts;
	size_t n = cli_values(c, "host", &hosts);
	struct vl_register_addrs_in in = {.addrs = {ips, (uint32_t)n}};
	struct vl_register_addrs_out out;
	if (!vos_uuid_parse(cli_value(c, "uuid"), &in.uuid))
		return cli_misuse(c, "-uuid %s: expected a UUID as listaddrs -printuuid prints it", cli_value(c, "uuid"));
	if (n > ARRAY_SIZE(ips))
		return cli_misuse(c, "a server has at most %d addresses", VL_ADDRS_MAX);
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	for (size_t i = 0; i < n; i++) {
		afs_err err = admin_host_ip(v.a, hosts[i], &ips[i]);
		if (err != AFS_OK)
			return cli_fail(c, "%s", admin_why(v.a, err));
	}
	afs_err err = VL_CALL(v.a, register_addrs, &in, &out, NULL);
	return err == AFS_OK ? CLI_OK : suite_fail(c, v.a, err, "cannot set the addresses of %s", cli_value(c, "uuid"));
}

int cli_vos_remaddrs(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ARENA);
	struct vl_get_addrs_u_in in = {.inaddr = {.Mask = VLADDR_UUID}};
	struct vl_get_addrs_u_out out = {};
	if (!vos_uuid_parse(cli_value(c, "uuid"), &in.inaddr.uuid))
		return cli_misuse(c, "-uuid %s: expected a UUID as listaddrs -printuuid prints it", cli_value(c, "uuid"));
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	afs_err err = VL_CALL(v.a, get_addrs_u, &in, &out, &arena);
	if (err == AFS_OK && out.blkaddrs.n)
		err = change_addr(&v, (uint32_t)VL_REMOVE_ADDR, out.blkaddrs.v[0]);
	return err == AFS_OK ? CLI_OK : suite_fail(c, v.a, err, "cannot remove the addresses of %s", cli_value(c, "uuid"));
}
