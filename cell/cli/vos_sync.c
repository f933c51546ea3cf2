/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vos syncserv and syncvldb: what is on servers and what the location database says of it, brought together.
 *
 * syncvldb looks at volumes and changes entries so that each volume is found; syncserv looks at entries and
 * takes sites out of them where there is no volume.  Neither touches a volume.  An entry is changed under its
 * lock and after it was read again.  Sequences: volserver.md §7. */
#include "cell/cli/handlers.h"
#include "cell/cli/vos.h"

#include <stdio.h>
#include <string.h>

enum { LIST_ARENA = 512 << 20, PARTS_MAX = 256 };

struct sync {
	struct vos v;
	bool dry, verbose, json;
	unsigned total, failed, changed;
	uint32_t highest; /* id seen */
	json_t *changes;
};
static void sync_cleanup(struct sync *s)
{
	vos_cleanup(&s->v);
	json_decref(s->changes);
}

static int begin(struct sync *s, struct cli *c)
{
	int status = vos_begin(&s->v, c);
	s->dry = cli_has(c, "dryrun");
	s->json = cli_wants_json(c);
	s->verbose = (cli_has(c, "verbose") || s->dry) && !s->json;
	s->changes = json_array();
	admin_watch(s->v.a, NULL, NULL, NULL);
	return status;
}

static void rule(const struct sync *s)
{
	if (s->verbose)
		printf("_______________________________\n");
}

static void before(struct sync *s, const struct nvldbentry *e, bool exists)
{
	if (!s->verbose)
		return;
	rule(s);
	printf("\n-- status before -- \n");
	if (exists)
		vos_print_entry(&s->v, e, true);
	printf("\n-- status after --\n");
}

static void after(struct sync *s, const struct nvldbentry *e, bool changed, bool gone)
{
	if (changed)
		s->changed++;
	if (changed)
		json_array_append_new(s->changes, json_pack("{s:s, s:s}", "name", e->name, "change", gone ? "deleted" : "updated"));
	if (!s->verbose)
		return;
	if (!changed)
		printf("\n**no change**\n");
	else if (gone)
		printf("\n**entry deleted**\n");
	else
		vos_print_entry(&s->v, e, true);
	printf("\n");
	rule(s);
}

static int finish(struct sync *s, bool vldb)
{
	struct cli *c = s->v.c;
	if (s->json) {
		json_t *o = json_pack("{s:i, s:i, s:i, s:O}", "entries", (int)s->total, "failed", (int)s->failed, "changed", (int)s->changed,
			"changes", s->changes);
		json_object_set_new(o, "dry_run", json_boolean(s->dry));
		(void)cli_print_json(c, o); /* main looks whether it could be written */
		return s->failed ? CLI_FAILED : CLI_OK;
	}
	if (s->verbose)
		printf("Total entries: %u, Failed to process %u, %s %u\n", s->total, s->failed, s->dry ? "Would change" : "Changed", s->changed);
	char part[16] = "";
	int32_t id;
	if (cli_value(c, "partition") && admin_partition(cli_value(c, "partition"), &id))
		admin_partition_name(part, id);
	if (s->failed && !cli_value(c, "server"))
		return CLI_FAILED;
	if (!cli_value(c, "server"))
		printf("VLDB volume %s synchronized\n", cli_value(c, "volume"));
	else if (vldb)
		printf("VLDB synchronized with state of server %s%s%s%s\n", cli_value(c, "server"), *part ? " partition " : "", part,
			*part ? "\n" : "");
	else
		printf("Server %s%s%s synchronized with VLDB\n", cli_value(c, "server"), *part ? " partition " : "", part);
	return s->failed ? CLI_FAILED : CLI_OK;
}

/* --- syncserv ------------------------------------------------------------------------------------------------------ */

/* AFS_OK: *there tells whether the volume is at the site. */
static afs_err site_has(struct sync *s, uint32_t ip, int32_t part, uint32_t id, bool *there)
{
	struct volintInfo info;
	afs_err err = id ? volume_info(s->v.a, ip, part, id, &info) : AFS_ENODEV;
	*there = err == AFS_OK;
	return err == AFS_ENODEV || err == AFS_ENOVOL || err == AFS_EBADPART ? AFS_OK : err;
}

/* Takes out of `e` what is on no server. */
static afs_err prune(struct sync *s, struct nvldbentry *e, bool *changed)
{
	bool rw = false, bk = false, there, ro = false;
	*changed = false;
	for (int i = e->nServers - 1; i >= 0; i--) {
		uint32_t ip = e->serverNumber[i];
		int32_t part = e->serverPartition[i];
		if (e->serverFlags[i] & VLSF_RW) {
			bool has_rw = false, has_bk = false;
			if (e->flags & VLF_RW_EXISTS)
				TRY(site_has(s, ip, part, e->volumeId[AFS_VOL_RW], &has_rw));
			if (e->flags & VLF_BK_EXISTS)
				TRY(site_has(s, ip, part, e->volumeId[AFS_VOL_BK], &has_bk));
			rw = rw || has_rw;
			bk = bk || has_bk;
			if (has_rw || has_bk)
				continue;
		} else {
			if (e->serverFlags[i] & VLSF_DONTUSE) /* not released yet, so that nothing need be there */
				continue;
			TRY(site_has(s, ip, part, e->volumeId[AFS_VOL_RO], &there));
			ro = ro || there;
			if (there)
				continue;
		}
		vldb_site_remove(e, i);
		*changed = true;
	}
	int32_t flags = (e->flags & ~(VLF_RW_EXISTS | VLF_BK_EXISTS | VLF_RO_EXISTS)) | (rw ? VLF_RW_EXISTS : 0) | (bk ? VLF_BK_EXISTS : 0)
			| (ro ? VLF_RO_EXISTS : 0);
	*changed = *changed || flags != e->flags;
	e->flags = flags;
	return AFS_OK;
}

static afs_err sync_entry(struct sync *s, const struct nvldbentry *listed)
{
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	struct nvldbentry e = *listed;
	bool changed;
	TRY(prune(s, &e, &changed));
	if (changed && !s->dry) {
		/* again, from what the entry says under its lock */
		TRY(vldb_lock(s->v.a, listed->volumeId[AFS_VOL_RW], VL_ANY_TYPE, VLF_OP_DELETE, &lock, &e));
		TRY(prune(s, &e, &changed));
	}
	bool gone = changed && !e.nServers;
	if (lock.id)
		TRY(!changed ? vldb_unlock(&lock) : gone ? vldb_drop(&lock) : vldb_save_unlock(&lock, &e));
	after(s, &e, changed, gone);
	return AFS_OK;
}

int cli_vos_syncserv(struct cli *c)
{
	CLEANUP(sync) struct sync s = {};
	CLEANUP(vos_entries) struct vos_entries all = {};
	struct VldbListByAttributes attrs = {};
	int status = begin(&s, c);
	if (status == CLI_OK)
		status = vos_place(&s.v, &attrs.server, &attrs.partition);
	if (status != CLI_OK)
		return status;
	attrs.Mask = VLLIST_SERVER | (attrs.partition >= 0 ? VLLIST_PARTITION : 0U);
	afs_err err = vldb_each(s.v.a, &attrs, vos_keep, &all);
	if (err != AFS_OK)
		return suite_fail(c, s.v.a, err, "cannot list the entries of %s", cli_value(c, "server"));
	if (s.verbose)
		printf("Processing VLDB entries ...\n");
	for (size_t i = 0; i < all.n; i++) {
		s.total++;
		if (s.verbose)
			printf("Processing VLDB entry %u ...\n", s.total);
		before(&s, &all.v[i], true);
		err = sync_entry(&s, &all.v[i]);
		if (err != AFS_OK) {
			s.failed++;
			(void)suite_fail(c, s.v.a, err, "volume %s", all.v[i].name); /* counted */
		}
		if (s.verbose)
			printf("...done entry %u\n\n", s.total);
	}
	return finish(&s, false);
}

/* --- syncvldb ------------------------------------------------------------------------------------------------------- */

/* The name without its suffix. */
static void base_name(char out[VL_NAME_MAX + 1], const struct volintInfo *i)
{
	static const char *const ends[] = {[AFS_VOL_RO] = ".readonly", [AFS_VOL_BK] = ".backup"};
	snprintf(out, VL_NAME_MAX + 1, "%s", i->name);
	size_t n = strlen(out);
	for (size_t t = AFS_VOL_RO; t < ARRAY_SIZE(ends); t++) {
		size_t k = strlen(ends[t]);
		if (n > k && strcmp(out + n - k, ends[t]) == 0)
			out[n - k] = '\0';
	}
}

/* Makes `e` say that this volume is here; false when it cannot be brought in without losing another. */
static afs_err bring_in(struct sync *s, struct nvldbentry *e, const struct volintInfo *i, uint32_t ip, int32_t part, bool *changed)
{
	struct admin *a = s->v.a;
	struct nvldbentry was = *e;
	if (i->type == AFS_VOL_RO) {
		if (e->volumeId[AFS_VOL_RO] && e->volumeId[AFS_VOL_RO] != i->volid && vldb_site(a, e, VLSF_RO, 0, -1) >= 0)
			return admin_refuse(a, AFS_EIDEXIST, "the entry %s has the read-only volume %u, not %u", e->name,
				e->volumeId[AFS_VOL_RO], i->volid);
		e->volumeId[AFS_VOL_RO] = i->volid;
		e->flags |= VLF_RO_EXISTS;
		int at = vldb_site(a, e, VLSF_RO, ip, part);
		if (at < 0 && !vldb_site_add(e, ip, part, VLSF_RO))
			return admin_refuse(a, AFS_EVREPSFULL, "the entry %s has the most sites it may have", e->name);
		if (at >= 0)
			e->serverFlags[at] &= ~VLSF_DONTUSE;
	} else {
		int at = vldb_site(a, e, VLSF_RW, 0, -1);
		bool here = at >= 0 && e->serverPartition[at] == part && admin_same_server(a, ip, e->serverNumber[at]);
		bool elsewhere = false;
		if (at >= 0 && !here && (e->flags & VLF_RW_EXISTS))
			TRY(site_has(s, e->serverNumber[at], e->serverPartition[at], e->volumeId[AFS_VOL_RW], &elsewhere));
		if (elsewhere)
			return admin_refuse(a, AFS_EIDEXIST, "volume %u is on %s %s too, where the location database has it", e->volumeId[AFS_VOL_RW],
				admin_host_name(a, e->serverNumber[at]), PARTNAME(e->serverPartition[at]));
		if (at >= 0 && !here)
			vldb_site_remove(e, at);
		if (!here && !vldb_site_add(e, ip, part, VLSF_RW))
			return admin_refuse(a, AFS_EVREPSFULL, "the entry %s has the most sites it may have", e->name);
		e->volumeId[i->type] = i->volid;
		e->flags |= i->type == AFS_VOL_BK ? VLF_BK_EXISTS : VLF_RW_EXISTS;
	}
	*changed = memcmp(&was, e, sizeof(was)) != 0;
	return AFS_OK;
}

static afs_err make_entry(struct sync *s, const struct volintInfo *i, uint32_t ip, int32_t part, struct nvldbentry *e)
{
	bool absent, changed;
	*e = (struct nvldbentry){};
	base_name(e->name, i);
	TRY(vldb_absent(s->v.a, e->name, &absent));
	if (!absent)
		return admin_refuse(s->v.a, AFS_ENAMEEXIST, "the entry %s belongs to other volumes; rename one of them", e->name);
	e->volumeId[AFS_VOL_RW] = i->parentID;
	TRY(bring_in(s, e, i, ip, part, &changed));
	return s->dry ? AFS_OK : vldb_create(s->v.a, e);
}

static afs_err sync_volume(struct sync *s, const struct volintInfo *i, uint32_t ip, int32_t part)
{
	CLEANUP(vldb_lock) struct vldb_lock lock = {};
	struct nvldbentry e = {};
	bool changed = false;
	afs_err err = vldb_find_id(s->v.a, i->parentID, AFS_VOL_RW, &e);
	bool exists = err == AFS_OK;
	if (!exists && admin_code(s->v.a) != VL_NOENT)
		return err;
	before(s, &e, exists);
	if (!exists) {
		TRY(make_entry(s, i, ip, part, &e));
		after(s, &e, true, false);
		return AFS_OK;
	}
	TRY(bring_in(s, &e, i, ip, part, &changed));
	if (changed && !s->dry) {
		TRY(vldb_lock(s->v.a, i->parentID, AFS_VOL_RW, VLF_OP_DELETE, &lock, &e));
		TRY(bring_in(s, &e, i, ip, part, &changed));
		TRY(changed ? vldb_save_unlock(&lock, &e) : vldb_unlock(&lock));
	}
	after(s, &e, changed, false);
	return AFS_OK;
}

static void process(struct sync *s, const struct volintInfo *i, uint32_t ip, int32_t part)
{
	if (i->volid > s->highest)
		s->highest = i->volid;
	s->total++;
	if (i->status != VOL_STATUS_OK || !i->parentID || i->type < AFS_VOL_RW || i->type > AFS_VOL_BK) {
		s->failed++;
		(void)cli_fail(s->v.c, "volume %u on %s is %s: it was left alone", i->volid, PARTNAME(part),
			vos_volume_state(i->status, i->inUse)); /* counted */
		return;
	}
	if (s->verbose)
		printf("Processing volume entry %u: %s (%u) on server %s %s...\n", s->total, i->name, i->volid, admin_host_name(s->v.a, ip),
			PARTNAME(part));
	afs_err err = sync_volume(s, i, ip, part);
	if (err != AFS_OK) {
		s->failed++;
		(void)suite_fail(s->v.c, s->v.a, err, "volume %s", i->name); /* counted */
	}
	if (s->verbose)
		printf("...done entry %u\n\n", s->total);
}

static int sync_partition(struct sync *s, uint32_t ip, int32_t part)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, LIST_ARENA);
	struct rpc_conn *conn;
	struct vol_list_volumes_in in = {part, 1};
	struct vol_list_volumes_out out = {};
	afs_err err = admin_conn(s->v.a, ip, ADMIN_VOL, &conn);
	if (err == AFS_OK)
		err = VOL_CALL(s->v.a, conn, list_volumes, &in, &out, &arena);
	if (err != AFS_OK)
		return suite_fail(s->v.c, s->v.a, err, "cannot list volumes on %s", PARTNAME(part));
	/* read-write volumes first, so that their copies find an entry */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < out.volumes.n; i++)
			if ((out.volumes.v[i].type == AFS_VOL_RW) == (pass == 0))
				process(s, &out.volumes.v[i], ip, part);
	return CLI_OK;
}

/* Where the entry, or its absence, leads. */
static int sync_one(struct sync *s, uint32_t ip, int32_t part)
{
	struct nvldbentry e;
	struct volintInfo info;
	uint32_t id = 0;
	const char *name = cli_value(s->v.c, "volume");
	afs_err err = vldb_find(s->v.a, name, &e);
	if (err == AFS_OK)
		id = e.volumeId[vldb_type_of(&e, name)];
	else if (admin_code(s->v.a) != VL_NOENT || !volume_is_number(name, &id) || !ip)
		return suite_fail(s->v.c, s->v.a, err, "%s", name);
	if (!ip) {
		bool found = false;
		for (int i = 0; i < e.nServers; i++) {
			err = volume_info(s->v.a, e.serverNumber[i], e.serverPartition[i], id, &info);
			if (err != AFS_OK)
				continue;
			found = true;
			process(s, &info, e.serverNumber[i], e.serverPartition[i]);
		}
		return found ? CLI_OK : cli_fail(s->v.c, "volume %s is at none of its sites; name a server with -server", name);
	}
	int32_t parts[PARTS_MAX] = {part};
	size_t n = 1;
	if (part < 0)
		err = volume_partitions(s->v.a, ip, parts, &n);
	else
		err = AFS_OK;
	for (size_t i = 0; err == AFS_OK && i < n; i++) {
		err = volume_info(s->v.a, ip, parts[i], id, &info);
		if (err == AFS_OK) {
			process(s, &info, ip, parts[i]);
			return CLI_OK;
		}
		if (err == AFS_ENODEV || err == AFS_ENOVOL)
			err = AFS_OK;
	}
	return err == AFS_OK ? cli_fail(s->v.c, "there is no volume %s on that server", name)
			     : suite_fail(s->v.c, s->v.a, err, "volume %s", name);
}

/* Ids that were seen on disk are not to be given out again. */
static int raise_ids(struct sync *s)
{
	uint32_t next, first;
	if (s->dry || !s->highest)
		return CLI_OK;
	afs_err err = vldb_new_ids(s->v.a, 0, &next);
	if (err == AFS_OK && s->highest >= next)
		err = vldb_new_ids(s->v.a, s->highest - next + 1, &first);
	return err == AFS_OK ? CLI_OK : suite_fail(s->v.c, s->v.a, err, "cannot raise the highest volume id to %u", s->highest);
}

int cli_vos_syncvldb(struct cli *c)
{
	CLEANUP(sync) struct sync s = {};
	uint32_t ip;
	int32_t part, parts[PARTS_MAX];
	size_t n = 1;
	if (!cli_has(c, "server") && !cli_has(c, "volume"))
		return cli_misuse(c, "give -server or -volume");
	if (cli_has(c, "partition") && !cli_has(c, "server"))
		return cli_misuse(c, "-partition needs -server");
	int status = begin(&s, c);
	if (status == CLI_OK)
		status = vos_place(&s.v, &ip, &part);
	if (status != CLI_OK)
		return status;
	if (s.verbose)
		printf("Processing volume entries ...\n");
	if (cli_has(c, "volume")) {
		status = sync_one(&s, ip, part);
	} else {
		parts[0] = part;
		afs_err err = part >= 0 ? volume_has_partition(s.v.a, ip, part) : volume_partitions(s.v.a, ip, parts, &n);
		if (err != AFS_OK)
			return suite_fail(c, s.v.a, err, "%s", cli_value(c, "server"));
		for (size_t i = 0; i < n; i++)
			if (sync_partition(&s, ip, parts[i]) != CLI_OK)
				status = CLI_FAILED;
	}
	if (raise_ids(&s) != CLI_OK)
		status = CLI_FAILED;
	int end = finish(&s, true);
	return status != CLI_OK ? status : end;
}
