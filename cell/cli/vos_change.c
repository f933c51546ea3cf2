/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vos: what changes volumes.  The verbs are cell/admin/volume.h; here are arguments, and what is said. */
#include "cell/cli/handlers.h"
#include "cell/cli/vos.h"

#include "cell/base/text.h"
#include "fileserver/vol/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What a verb did: its JSON object, or nothing (the text was printed). */
[[gnu::format(printf, 3, 4)]] static int done(struct vos *v, json_t *o, const char *fmt, ...)
{
	if (cli_wants_json(v->c))
		return cli_print_json(v->c, o);
	json_decref(o);
	va_list ap;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	return CLI_OK;
}

static bool confirm(const char *question)
{
	char line[16];
	printf("%s", question);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

/* --- create, remove, rename ------------------------------------------------------------------------------- */

int cli_vos_create(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct volume_create want = {.name = cli_value(c, "name")};
	int64_t quota = VOLUME_QUOTA_DEFAULT;
	uint32_t id;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &want.ip, &want.part);
	if (status == CLI_OK)
		status = vos_number(&v, "maxquota", 0, INT32_MAX, &quota);
	if (status == CLI_OK)
		status = vos_id(&v, "id", &want.id);
	if (status == CLI_OK)
		status = vos_id(&v, "roid", &want.ro_id);
	if (status != CLI_OK)
		return status;
	want.quota_kib = (int32_t)quota;
	afs_err err = volume_create(v.a, &want, &id);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", want.name);
	return done(&v, json_pack("{s:s, s:I}", "name", want.name, "id", (json_int_t)id), "Volume %u created on partition %s of %s\n", id,
		PARTNAME(want.part), cli_value(c, "server"));
}

int cli_vos_remove(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct volume_gone gone;
	uint32_t ip;
	int32_t part;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_remove(v.a, cli_value(c, "id"), ip, part, &gone);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", cli_value(c, "id"));
	if (!gone.was_there)
		cli_warn(c, "volume %u was not on the partition any more", gone.id);
	if (!gone.in_vldb)
		cli_warn(c, "the location database did not have volume %u there", gone.id);
	if (!gone.was_there && !gone.in_vldb)
		return CLI_FAILED;
	return done(&v, json_pack("{s:I, s:b, s:b}", "id", (json_int_t)gone.id, "was_there", gone.was_there, "in_vldb", gone.in_vldb),
		"Volume %u on partition %s server %s deleted\n", gone.id, PARTNAME(gone.part), admin_host_name(v.a, gone.ip));
}

int cli_vos_zap(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	uint32_t ip, id = 0;
	int32_t part;
	struct rpc_conn *conn;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status != CLI_OK)
		return status;
	const char *name = cli_value(c, "id");
	bool listed = vldb_find(v.a, name, &e) == AFS_OK;
	if (!volume_is_number(name, &id) && listed)
		id = e.volumeId[vldb_type_of(&e, name)];
	if (!id)
		return cli_misuse(c, "-id %s: expected the number of a volume", name);
	if (listed)
		cli_warn(c, "the location database has an entry for volume %u; it stays", id);
	afs_err err = volume_has_partition(v.a, ip, part);
	if (err == AFS_OK && cli_has(c, "force")) {
		struct vol_nuke_volume_in in = {part, id};
		struct vol_nuke_volume_out out;
		err = admin_conn(v.a, ip, ADMIN_VOL, &conn);
		if (err == AFS_OK)
			err = VOL_CALL(v.a, conn, nuke_volume, &in, &out, NULL);
	} else if (err == AFS_OK) {
		err = volume_delete(v.a, ip, part, id);
	}
	if (err == AFS_OK && cli_has(c, "backup") && listed && e.volumeId[AFS_VOL_BK]) {
		err = volume_delete(v.a, ip, part, e.volumeId[AFS_VOL_BK]);
		if (err == AFS_ENOVOL)
			err = AFS_OK;
	}
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %u", id);
	return done(&v, json_pack("{s:I}", "id", (json_int_t)id), "Volume %u deleted\n", id);
}

int cli_vos_rename(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	const char *old = cli_value(c, "oldname"), *new = cli_value(c, "newname");
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_rename(v.a, old, new);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "cannot rename volume %s to %s", old, new);
	return done(&v, json_pack("{s:s, s:s}", "old", old, "new", new), "Renamed volume %s to %s\n", old, new);
}

/* --- state and fields --------------------------------------------------------------------------------------- */

/* The volume that -id names at the place that -server and -partition name. */
static int find_at(struct vos *v, uint32_t *ip, int32_t *part, uint32_t *id)
{
	struct nvldbentry e;
	const char *name = cli_value(v->c, "id");
	int status = vos_place(v, ip, part);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v->a, name, &e);
	if (err == AFS_OK)
		*id = e.volumeId[vldb_type_of(&e, name)];
	else if (admin_code(v->a) != VL_NOENT || !volume_is_number(name, id))
		return suite_fail(v->c, v->a, err, "%s", name);
	return CLI_OK;
}

static afs_err set_state(struct vos *v, uint32_t ip, int32_t part, uint32_t id, bool on, bool busy, unsigned seconds)
{
	CLEANUP(vt) struct vt t = {};
	TRY(vt_begin(v->a, ip, part, id, busy ? VOL_IT_BUSY : VOL_IT_OFFLINE, &t));
	TRY(vt_flags(&t, on ? 0 : VOL_VT_OUT_OF_SERVICE));
	if (seconds) {
		sleep(seconds);
		TRY(vt_flags(&t, 0));
	}
	return vt_end(&t);
}

static int switch_state(struct cli *c, bool on)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ip, id;
	int32_t part;
	int64_t seconds = 0;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = find_at(&v, &ip, &part, &id);
	if (status == CLI_OK && !on)
		status = vos_number(&v, "sleep", 1, 86400, &seconds);
	if (status != CLI_OK)
		return status;
	bool busy = !on && cli_has(c, "busy");
	if (busy && !seconds)
		return cli_misuse(c, "-busy needs -sleep: a volume is busy only for a while");
	afs_err err = set_state(&v, ip, part, id, on, busy, (unsigned)seconds);
	return err == AFS_OK ? CLI_OK : suite_fail(c, v.a, err, "volume %s", cli_value(c, "id"));
}

int cli_vos_online(struct cli *c) { return switch_state(c, true); }
int cli_vos_offline(struct cli *c) { return switch_state(c, false); }

int cli_vos_setfields(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	const char *name = cli_value(c, "id");
	int64_t quota = -1;
	if (!cli_has(c, "maxquota") && !cli_has(c, "clearuse") && !cli_has(c, "clearVolUpCounter"))
		return cli_misuse(c, "nothing to set: give -maxquota, -clearuse or -clearVolUpCounter");
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_number(&v, "maxquota", 0, INT32_MAX, &quota);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v.a, name, &e);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "%s", name);
	enum afs_voltype type = vldb_type_of(&e, name);
	int i = vldb_site(v.a, &e, type == AFS_VOL_RO ? VLSF_RO : VLSF_RW, 0, -1);
	if (i < 0)
		return cli_fail(c, "%s: the location database knows no such site of it", name);
	CLEANUP(vt) struct vt t = {};
	struct volintInfo info = vt_info_keep();
	info.maxquota = (int32_t)quota;
	info.dayUse = cli_has(c, "clearuse") ? 0 : -1;
	info.spare2 = cli_has(c, "clearVolUpCounter") ? 0 : -1;
	err = vt_begin(v.a, e.serverNumber[i], e.serverPartition[i], e.volumeId[type], VOL_IT_OFFLINE, &t);
	if (err == AFS_OK)
		err = vt_set_info(&t, &info);
	if (err == AFS_OK)
		err = vt_end(&t);
	return err == AFS_OK ? CLI_OK : suite_fail(c, v.a, err, "volume %s", name);
}

int cli_vos_endtrans(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct vt t = {};
	int64_t id = 0;
	uint32_t ip;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_server(&v, "server", &ip);
	if (status == CLI_OK)
		status = vos_number(&v, "transaction", 1, INT32_MAX, &id);
	if (status != CLI_OK)
		return status;
	t = (struct vt){.a = v.a, .id = (int32_t)id};
	afs_err err = admin_conn(v.a, ip, ADMIN_VOL, &t.conn);
	if (err == AFS_OK)
		err = vt_end(&t);
	return err == AFS_OK ? CLI_OK : suite_fail(c, v.a, err, "transaction %lld", (long long)id);
}

/* --- sites and copies ------------------------------------------------------------------------------------- */

int cli_vos_addsite(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ip, ro_id = 0;
	int32_t part;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status == CLI_OK)
		status = vos_id(&v, "roid", &ro_id);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_addsite(v.a, cli_value(c, "id"), ip, part, ro_id, cli_has(c, "valid"));
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", cli_value(c, "id"));
	return done(&v, json_pack("{s:s}", "volume", cli_value(c, "id")), "Added replication site %s %s for volume %s\n", cli_value(c, "server"),
		PARTNAME(part), cli_value(c, "id"));
}

int cli_vos_remsite(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ip;
	int32_t part;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_remsite(v.a, cli_value(c, "id"), ip, part);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", cli_value(c, "id"));
	return done(&v, json_pack("{s:s}", "volume", cli_value(c, "id")), "Removed replication site %s %s for volume %s\n", cli_value(c, "server"),
		PARTNAME(part), cli_value(c, "id"));
}

int cli_vos_changeloc(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	uint32_t ip;
	int32_t part;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_changeloc(v.a, cli_value(c, "id"), ip, part);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", cli_value(c, "id"));
	return done(&v, json_pack("{s:s}", "volume", cli_value(c, "id")), "Changed location to %s %s for volume %s\n", cli_value(c, "server"),
		PARTNAME(part), cli_value(c, "id"));
}

int cli_vos_backup(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	const char *name = cli_value(c, "id");
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v.a, name, &e);
	if (err == AFS_OK && vldb_type_of(&e, name) != AFS_VOL_RW)
		return cli_fail(c, "volume %s: only a read-write volume has a backup", name);
	if (err == AFS_OK)
		err = volume_backup(v.a, &e);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", name);
	return done(&v, json_pack("{s:s, s:I}", "volume", name, "backup_id", (json_int_t)e.volumeId[AFS_VOL_BK]),
		"Created backup volume for %s \n", name);
}

int cli_vos_clone(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct volume_clone want = {.name = cli_value(c, "id"), .to_name = cli_value(c, "toname"), .offline = cli_has(c, "offline"),
		.type = cli_has(c, "readonly") ? AFS_VOL_RO : cli_has(c, "readwrite") ? AFS_VOL_RW : AFS_VOL_BK};
	uint32_t id;
	if (cli_has(c, "readonly") && cli_has(c, "readwrite"))
		return cli_misuse(c, "-readonly and -readwrite exclude each other");
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &want.ip, &want.part);
	if (status == CLI_OK)
		status = vos_id(&v, "toid", &want.to_id);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_clone(v.a, &want, &id);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", want.name);
	return done(&v, json_pack("{s:s, s:I}", "volume", want.name, "id", (json_int_t)id), "Created clone for volume %s\n", want.name);
}

int cli_vos_release(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct volume_release how = {.force = cli_has(c, "force"), .reclone = cli_has(c, "force-reclone")};
	const char *name = cli_value(c, "id");
	int status = vos_begin(&v, c);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_release(v.a, name, &how);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", name);
	return done(&v, json_pack("{s:s}", "volume", name), "Released volume %s successfully\n", name);
}

/* What move, copy and shadow have in common. */
static int carry_args(struct vos *v, struct volume_copy *w)
{
	struct cli *c = v->c;
	w->name = cli_value(c, "id");
	w->live = cli_has(c, "live");
	int status = vos_server(v, "fromserver", &w->from_ip);
	if (status == CLI_OK)
		status = vos_server(v, "toserver", &w->to_ip);
	if (status == CLI_OK)
		status = vos_partition(v, "frompartition", &w->from_part);
	return status != CLI_OK ? status : vos_partition(v, "topartition", &w->to_part);
}

static int carried(struct vos *v, uint32_t id, const char *verb)
{
	struct cli *c = v->c;
	const char *to = cli_value(c, "topartition");
	int32_t from_part = -1, to_part = -1;
	admin_partition(cli_value(c, "frompartition"), &from_part);
	admin_partition(to, &to_part);
	return done(v, json_pack("{s:I}", "id", (json_int_t)id), "Volume %u %s from %s %s to %s %s \n", id, verb, cli_value(c, "fromserver"),
		PARTNAME(from_part), cli_value(c, "toserver"), PARTNAME(to_part));
}

int cli_vos_move(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct volume_copy want = {};
	uint32_t id;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = carry_args(&v, &want);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_move(v.a, &want, &id);
	return err == AFS_OK ? carried(&v, id, "moved") : suite_fail(c, v.a, err, "volume %s", want.name);
}

int cli_vos_copy(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct volume_copy want = {.to_name = cli_value(c, "toname"), .offline = cli_has(c, "offline"), .readonly = cli_has(c, "readonly")};
	uint32_t id;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = carry_args(&v, &want);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_copy(v.a, &want, &id);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", want.name);
	struct nvldbentry e;
	uint32_t from = vldb_find(v.a, want.name, &e) == AFS_OK ? e.volumeId[AFS_VOL_RW] : 0;
	return done(&v, json_pack("{s:I}", "id", (json_int_t)id), "Volume %u copied from %s %s to %s on %s %s \n", from, cli_value(c, "fromserver"),
		PARTNAME(want.from_part), want.to_name, cli_value(c, "toserver"), PARTNAME(want.to_part));
}

int cli_vos_shadow(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct volume_copy want = {.to_name = cli_value(c, "toname"), .offline = cli_has(c, "offline"), .readonly = cli_has(c, "readonly"),
		.incremental = cli_has(c, "incremental")};
	uint32_t id;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = carry_args(&v, &want);
	if (status == CLI_OK)
		status = vos_id(&v, "toid", &want.to_id);
	if (status != CLI_OK)
		return status;
	afs_err err = volume_shadow(v.a, &want, &id);
	return err == AFS_OK ? carried(&v, id, "shadowed") : suite_fail(c, v.a, err, "volume %s", want.name);
}

int cli_vos_convertrotorw(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	struct nvldbentry e;
	uint32_t ip;
	int32_t part;
	const char *name = cli_value(c, "id");
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &ip, &part);
	if (status != CLI_OK)
		return status;
	afs_err err = vldb_find(v.a, name, &e);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "%s", name);
	int rw = vldb_site(v.a, &e, VLSF_RW, 0, -1);
	if (rw >= 0 && !cli_has(c, "force")) {
		if (!cli_wants_json(c))
			printf("VLDB indicates that a RW volume exists already on %s in partition %s.\n", admin_host_name(v.a, e.serverNumber[rw]),
				PARTNAME(e.serverPartition[rw]));
		if (cli_wants_json(c) || !confirm("Overwrite this VLDB entry? [y|n] (n)\n"))
			return cli_fail(c, "not confirmed, nothing was changed; -force does not ask");
	}
	err = volume_convert(v.a, name, ip, part);
	return err == AFS_OK ? CLI_OK : suite_fail(c, v.a, err, "volume %s", name);
}

/* --- backupsys ------------------------------------------------------------------------------------------------ */

struct match {
	const char *const *prefixes;
	size_t n;
	regex_t *re; /* of those that begin with ^ */
};

static void match_cleanup(struct match *m)
{
	for (size_t i = 0; m->re && i < m->n; i++)
		if (m->prefixes[i][0] == '^')
			regfree(&m->re[i]);
	mem_free(m->re);
}

static int match_begin(struct vos *v, const char *row, struct match *m)
{
	m->n = cli_values(v->c, row, &m->prefixes);
	size_t n = m->n;
	m->re = mem_new_array(n ? n : 1, regex_t);
	if (!m->re)
		return cli_fail(v->c, "out of memory");
	for (size_t i = 0; i < n; i++) {
		m->n = i;
		char why[128];
		int code = m->prefixes[i][0] == '^' ? regcomp(&m->re[i], m->prefixes[i], REG_NOSUB) : 0;
		if (code) {
			regerror(code, &m->re[i], why, sizeof(why));
			return cli_misuse(v->c, "-%s %s: %s", row, m->prefixes[i], why);
		}
	}
	m->n = n;
	return CLI_OK;
}

static bool matches(const struct match *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *p = m->prefixes[i];
		if (p[0] == '^' ? regexec(&m->re[i], name, 0, NULL, 0) == 0 : strncmp(name, p, strlen(p)) == 0)
			return true;
	}
	return false;
}

struct backups {
	struct vos *v;
	struct match in, out;
	struct vos_entries all;
};
static void backups_cleanup(struct backups *b)
{
	match_cleanup(&b->in);
	match_cleanup(&b->out);
	vos_entries_cleanup(&b->all);
}

static afs_err collect(void *ctx, const struct nvldbentry *e)
{
	struct backups *b = ctx;
	bool in = !b->in.n || matches(&b->in, e->name) != cli_has(b->v->c, "exclude");
	if (!in || matches(&b->out, e->name) || !(e->flags & VLF_RW_EXISTS))
		return AFS_OK;
	return vos_keep(&b->all, e);
}

int cli_vos_backupsys(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(backups) struct backups b = {.v = &v};
	struct VldbListByAttributes attrs = {};
	bool dry = cli_has(c, "dryrun");
	unsigned made = 0, failed = 0;
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &attrs.server, &attrs.partition);
	if (status == CLI_OK)
		status = match_begin(&v, "prefix", &b.in);
	if (status == CLI_OK)
		status = match_begin(&v, "xprefix", &b.out);
	if (status != CLI_OK)
		return status;
	attrs.Mask = (attrs.server ? VLLIST_SERVER : 0U) | (attrs.partition >= 0 ? VLLIST_PARTITION : 0U);
	afs_err err = vldb_each(v.a, &attrs, collect, &b);
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "cannot list entries");
	json_t *all = json_array();
	for (size_t i = 0; i < b.all.n; i++) {
		struct nvldbentry *e = &b.all.v[i];
		int rw = vldb_site(v.a, e, VLSF_RW, attrs.server, attrs.partition);
		if (rw < 0)
			continue; /* only a copy of it is there */
		json_array_append_new(all, json_string(e->name));
		if (dry) {
			if (!cli_wants_json(c))
				printf("     %s\n", e->name);
			continue;
		}
		if (cli_has(c, "verbose") && !cli_wants_json(c))
			printf("Creating backup volume for %s on %s\n", e->name, CTIME(time(NULL)));
		err = volume_backup(v.a, e);
		if (err == AFS_OK) {
			made++;
			continue;
		}
		failed++;
		(void)suite_fail(c, v.a, err, "volume %s", e->name); /* counted */
		if (err == AFS_EINTR)
			break;
	}
	if (cli_wants_json(c))
		(void)cli_print_json(c, json_pack("{s:o, s:i, s:i}", "volumes", all, "made", (int)made, "failed", (int)failed)); /* main looks */
	else
		json_decref(all), printf("done\nTotal volumes backed up: %u; failed to backup: %u\n", made, failed);
	return failed ? CLI_FAILED : CLI_OK;
}

/* --- dump and restore ------------------------------------------------------------------------------------------- */

static void dumped(void *c, uint64_t bytes) { cli_progress(c, "dumped %llu MiB", (unsigned long long)(bytes >> 20)); }
static void restored(void *c, uint64_t bytes) { cli_progress(c, "restored %llu MiB", (unsigned long long)(bytes >> 20)); }

int cli_vos_dump(struct cli *c)
{
	CLEANUP(vos) struct vos v = {};
	CLEANUP(fd) int fd = -1;
	struct volume_dump want = {.name = cli_value(c, "id"), .clone = cli_has(c, "clone"), .omit_dirs = cli_has(c, "omitdirs"),
		.fd = STDOUT_FILENO};
	const char *file = cli_value(c, "file");
	uint64_t bytes;
	if (!file && isatty(STDOUT_FILENO))
		return cli_misuse(c, "a dump is not for terminals: name a file with -file, or send it on");
	if (!file && (cli_wants_json(c) || cli_has(c, "verbose")))
		return cli_misuse(c, "with --json or -verbose the dump needs a -file");
	int status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &want.ip, &want.part);
	if (status == CLI_OK)
		status = vos_date(&v, "time", &want.from);
	if (status != CLI_OK)
		return status;
	if (file) {
		fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0)
			return cli_fail(c, "%s cannot be written: %s", file, strerror(errno));
		want.fd = fd;
	}
	want.progress = file ? dumped : NULL;
	want.ctx = c;
	afs_err err = volume_dump(v.a, &want, &bytes);
	if (file)
		cli_progress_end(c);
	if (err == AFS_OK && fd >= 0 && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
		return cli_fail(c, "%s cannot be written: %s", file, strerror(errno));
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s%s%s%s", want.name, bytes && file ? " (what is in " : "", bytes && file ? file : "",
			bytes && file ? " is not whole)" : "");
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s, s:s, s:I}", "volume", want.name, "file", file, "bytes", (json_int_t)bytes));
	/* standard output is for dumps */
	fprintf(stderr, file ? "Dumped volume %s in file %s\n" : "Dumped volume %s in stdout \n", want.name, file);
	return CLI_OK;
}

/* One of `words`, or CLI_USAGE. */
static int choice(struct cli *c, const char *row, const char *const *words, int n, int *out)
{
	const char *text = cli_value(c, row);
	*out = 0;
	if (!text)
		return CLI_OK;
	for (int i = 0; i < n; i++)
		if (*text && strncmp(words[i], text, strlen(text)) == 0) {
			*out = i + 1;
			return CLI_OK;
		}
	return cli_misuse(c, "-%s %s: expected %s, %s or %s", row, text, words[0], words[1], words[2]);
}

/* The volume is there, and nobody said what to do. */
static enum volume_overwrite ask_overwrite(const char *name)
{
	char line[16];
	printf("The volume %s already exists\nDo you want to do a full/incremental restore or abort? [fia](a): ", name);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return VOLUME_ABORT;
	return line[0] == 'f' ? VOLUME_FULL : line[0] == 'i' ? VOLUME_INCREMENTAL : VOLUME_ABORT;
}

static afs_err from_file(void *ctx, void *p, size_t n)
{
	return fread(p, 1, n, ctx) == n ? AFS_OK : ferror((FILE *)ctx) ? AFS_EIO : AFS_EEOF;
}

/* Servers delete a volume before they fill it anew: a file that is no whole dump must not get that far.
 * What comes through a pipe cannot be looked at twice. */
static int prove_dump(struct cli *c, const char *file)
{
	struct dump_reader r;
	enum dump_item item;
	FILE *f = fopen(file, "re");
	struct stat st;
	if (!f)
		return cli_fail(c, "%s cannot be read: %s", file, strerror(errno));
	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
		fclose(f);
		return CLI_OK;
	}
	dump_reader_init(&r, (struct dump_source){from_file, f});
	afs_err err;
	while ((err = dump_next(&r, &item)) == AFS_OK && item != DUMP_END)
		;
	fclose(f);
	if (err == AFS_OK)
		return CLI_OK;
	return cli_fail(c, "%s: %s, at byte %llu (%s); nothing was changed", file, afs_err_text(err), (unsigned long long)r.at,
		r.why ? r.why : "it ends there");
}

int cli_vos_restore(struct cli *c)
{
	static const char *const overwrites[] = {"abort", "full", "incremental"}, *const whens[] = {"dump", "keep", "new"};
	CLEANUP(vos) struct vos v = {};
	CLEANUP(fd) int fd = -1;
	struct volume_restore want = {.name = cli_value(c, "name"), .offline = cli_has(c, "offline"), .readonly = cli_has(c, "readonly"),
		.no_delete = cli_has(c, "nodelete"), .fd = STDIN_FILENO};
	const char *file = cli_value(c, "file");
	int overwrite, creation, update;
	uint32_t id;
	uint64_t bytes;
	int status = choice(c, "overwrite", overwrites, 3, &overwrite);
	if (status == CLI_OK)
		status = choice(c, "creation", whens, 3, &creation);
	if (status == CLI_OK)
		status = choice(c, "lastupdate", whens, 3, &update);
	if (status == CLI_OK)
		status = vos_begin(&v, c);
	if (status == CLI_OK)
		status = vos_place(&v, &want.ip, &want.part);
	if (status == CLI_OK)
		status = vos_id(&v, "id", &want.id);
	if (status != CLI_OK)
		return status;
	if (file) {
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return cli_fail(c, "%s cannot be read: %s", file, strerror(errno));
		want.fd = fd;
	} else if (isatty(STDIN_FILENO)) {
		return cli_fail(c, "a dump does not come from a terminal; name a file with -file, or use a pipe");
	}
	want.overwrite = overwrite ? (enum volume_overwrite)(overwrite - 1) : VOLUME_ABORT;
	want.creation = (enum volume_when)creation;
	want.update = (enum volume_when)update;
	want.progress = file ? restored : NULL;
	want.ctx = c;
	if (file && (status = prove_dump(c, file)) != CLI_OK)
		return status;
	afs_err err = volume_restore(v.a, &want, &id, &bytes);
	if (err == AFS_EVOLEXISTS && !overwrite && file && isatty(STDIN_FILENO) && !cli_wants_json(c)) {
		want.overwrite = ask_overwrite(want.name);
		if (want.overwrite != VOLUME_ABORT)
			err = volume_restore(v.a, &want, &id, &bytes);
	}
	if (file)
		cli_progress_end(c);
	if (err == AFS_EVOLEXISTS)
		return suite_fail(c, v.a, err, "nothing was restored; -overwrite full or incremental says what to do with it");
	if (err != AFS_OK)
		return suite_fail(c, v.a, err, "volume %s", want.name);
	return done(&v, json_pack("{s:s, s:I, s:I}", "volume", want.name, "id", (json_int_t)id, "bytes", (json_int_t)bytes),
		"Restored volume %s on %s %s\n", want.name, cli_value(c, "server"), PARTNAME(want.part));
}
