/* SPDX-License-Identifier: BSD-2-Clause
 *
 * import: what an existing cell has, asked through its public calls with the caller's rights, as a configuration
 * for a sandbox copy.  Content is not copied, and keys and passwords never are.  What the copy cannot have is
 * noted, in the file and on standard error. */
#include "cell/cli/import.h"

#include "cell/base/text.h"
#include "cell/cli/handlers.h"
#include "cell/conf/conf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_MAX = 4 << 20, SYSTEM_ID = -205, NAMES_A_CALL = 200 };

DEFINE_CLEANUP_PTR(json, json_t, json_decref)
DEFINE_CLEANUP_PTR(conf, struct conf, conf_free)

static void import_cleanup(struct import *m)
{
	if (m->a)
		admin_close(m->a);
	json_decref(m->all);
}

void import_note(struct import *m, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = '?'; /* names of others, on their way into a comment */
	json_array_append_new(json_object_get(m->all, "notes"), json_string(text));
}

static const char *string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}
static long long integer(const json_t *o, const char *key) { return (long long)json_integer_value(json_object_get(o, key)); }

/* A name that a configuration takes. */
static bool plain(const char *s, size_t max)
{
	size_t n = strlen(s);
	return n && n <= max && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

/* --- people ----------------------------------------------------------------------------------------- */

static void keep_entry(struct import *m, json_t *ids, const struct prcheckentry *e)
{
	char key[16];
	snprintf(key, sizeof(key), "%d", e->id);
	json_object_set_new(ids, key, json_string(e->name));
	if (e->id == AFS_ANONYMOUS || strncmp(e->name, "system:", 7) == 0)
		return;
	const char *colon = strchr(e->name, ':');
	bool group = e->id < 0, ok = group ? plain(colon ? colon + 1 : e->name, AFS_PRNAME_MAX) : plain(e->name, AFS_PRNAME_MAX);
	if (colon) {
		CLEANUP(str) char *owner = mem_strndup(e->name, (size_t)(colon - e->name));
		ok = ok && owner && plain(owner, AFS_PRNAME_MAX);
	}
	if (!group && isdigit((unsigned char)e->name[0]) && strchr(e->name, '.'))
		ok = false; /* the address of a host */
	if (!ok) {
		import_note(m, "%s %s (id %d) has no name of a %s", group ? "group" : "entry", e->name, e->id, group ? "group" : "user");
		return;
	}
	json_t *o = json_pack("{s:s, s:i}", "name", e->name, "id", e->id);
	if (group)
		json_object_set_new(o, "owner_id", json_integer(e->owner));
	json_array_append_new(json_object_get(m->all, group ? "groups" : "users"), o);
}

static afs_err read_entries(struct import *m, json_t *ids)
{
	struct pt_list_entries_in in = {.flag = PT_LIST_USERS | PT_LIST_GROUPS};
	do {
		CLEANUP(arena) struct arena page;
		arena_init(&page, PAGE_MAX);
		struct pt_list_entries_out out = {};
		TRY(PT_CALL(m->a, list_entries, &in, &out, &page));
		for (uint32_t i = 0; i < out.bulkentries.n; i++)
			keep_entry(m, ids, &out.bulkentries.v[i]);
		if (out.nextstartindex != -1 && out.nextstartindex <= in.startindex)
			return AFS_EPROTOCOL; /* a list that does not end */
		in.startindex = out.nextstartindex;
		cli_progress(m->c, "%zu users, %zu groups", json_array_size(json_object_get(m->all, "users")),
			json_array_size(json_object_get(m->all, "groups")));
	} while (in.startindex != -1);
	return AFS_OK;
}

static afs_err read_members(struct import *m, int32_t gid, const char *group, const json_t *ids, json_t *out)
{
	CLEANUP(arena) struct arena page;
	arena_init(&page, PAGE_MAX);
	struct pt_list_elements_in in = {gid};
	struct pt_list_elements_out res = {};
	afs_err err = PT_CALL(m->a, list_elements, &in, &res, &page);
	if (err == AFS_EACCESS || err == AFS_EPERM) {
		import_note(m, "the members of %s may not be seen by you", group);
		return AFS_OK;
	}
	TRY(err);
	for (uint32_t i = 0; i < res.elist.n; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%d", res.elist.v[i]);
		const char *name = json_string_value(json_object_get(ids, key));
		if (res.elist.v[i] < 0 || !name || !plain(name, AFS_PRNAME_MAX))
			import_note(m, "group %s has the member %s, which is no user", group, name ? name : key);
		else
			json_array_append_new(out, json_string(name));
	}
	return AFS_OK;
}

static afs_err read_people(struct import *m)
{
	CLEANUP(json) json_t *ids = json_object();
	afs_err err = read_entries(m, ids);
	if (err == AFS_EACCESS || err == AFS_EPERM || err == AFS_EABORTED) {
		import_note(m, "users and groups may not be listed by you (%s); an administrator may", admin_why(m->a, err));
		return AFS_OK;
	}
	TRY(err);
	size_t i;
	json_t *g;
	json_array_foreach(json_object_get(m->all, "groups"), i, g)
	{
		char key[16];
		json_t *members = json_array();
		json_object_set_new(g, "members", members);
		snprintf(key, sizeof(key), "%lld", integer(g, "owner_id"));
		json_object_set(g, "owner", json_object_get(ids, key));
		json_object_del(g, "owner_id");
		TRY(read_members(m, (int32_t)integer(g, "id"), string(g, "name"), ids, members));
	}
	return read_members(m, AFS_ADMINISTRATORS, "system:administrators", ids, json_object_get(m->all, "administrators"));
}

/* --- volumes ---------------------------------------------------------------------------------------- */

json_t *import_volume(const struct import *m, const char *name)
{
	return json_object_get(json_object_get(m->all, "by_name"), name);
}

static afs_err keep_volume(void *ctx, const struct nvldbentry *e)
{
	struct import *m = ctx;
	if (!plain(e->name, VOLUME_BASE_MAX) || strspn(e->name, "0123456789") == strlen(e->name)) {
		import_note(m, "volume %s (id %u) has no name of a volume", e->name, e->volumeId[AFS_VOL_RW]);
		return AFS_OK;
	}
	json_t *sites = json_array(), *o = json_pack("{s:s, s:I, s:s, s:I, s:o}", "name", e->name, "id", (json_int_t)e->volumeId[AFS_VOL_RW],
						    "partition", "", "quota_kib", (json_int_t)-1, "sites", sites);
	for (int i = 0; i < e->nServers && i < VL_SITES_MAX; i++) {
		bool rw = e->serverFlags[i] & VLSF_RW;
		json_array_append_new(sites, json_pack("{s:s, s:s, s:s}", "server", admin_host_name(m->a, e->serverNumber[i]), "partition",
						     PARTNAME(e->serverPartition[i]), "type", rw ? "RW" : "RO"));
		if (!rw)
			continue;
		json_object_set_new(o, "partition", json_string(PARTNAME(e->serverPartition[i]) + strlen("/vicep")));
		json_object_set_new(o, "ip", json_integer(e->serverNumber[i]));
		json_object_set_new(o, "part", json_integer(e->serverPartition[i]));
	}
	json_array_append_new(json_object_get(m->all, "volumes"), o);
	json_object_set(json_object_get(m->all, "by_name"), e->name, o);
	return AFS_OK;
}

static void read_quotas(struct import *m)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(m->all, "volumes"), i, v)
	{
		struct volintInfo info = {};
		if (json_object_get(v, "ip")) {
			afs_err err = volume_info(m->a, (uint32_t)integer(v, "ip"), (int32_t)integer(v, "part"), (uint32_t)integer(v, "id"), &info);
			if (err == AFS_OK)
				json_object_set_new(v, "quota_kib", json_integer(info.maxquota));
			else
				import_note(m, "volume %s: its quota is not known: %s", string(v, "name"), admin_why(m->a, err));
		}
		json_object_del(v, "ip");
		json_object_del(v, "part");
		if (i % 64 == 63)
			cli_progress(m->c, "%zu of %zu volumes", i + 1, json_array_size(json_object_get(m->all, "volumes")));
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(string(*(json_t *const *)a, "name"), string(*(json_t *const *)b, "name"));
}

/* The list sorted by name: runs compare well. */
static afs_err sort(json_t *all, const char *key)
{
	json_t *list = json_object_get(all, key), *sorted = json_array(), *o;
	size_t n = json_array_size(list), i;
	CLEANUP(heap) json_t **v = mem_new_array(n + 1, json_t *);
	if (!v || !sorted) {
		json_decref(sorted);
		return AFS_ENOMEM;
	}
	json_array_foreach(list, i, o) v[i] = o;
	qsort(v, n, sizeof(*v), by_name);
	for (i = 0; i < n; i++)
		json_array_append(sorted, v[i]);
	json_object_set_new(all, key, sorted);
	return AFS_OK;
}

/* --- as a configuration ------------------------------------------------------------------------------- */

static void put_scalar(struct buf *b, const char *s)
{
	static const char plain_set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-";
	if (isalpha((unsigned char)*s) && strspn(s, plain_set) == strlen(s) && strcasecmp(s, "null") != 0 && strcasecmp(s, "true") != 0
		&& strcasecmp(s, "false") != 0 && strcasecmp(s, "yes") != 0 && strcasecmp(s, "no") != 0 && strcasecmp(s, "on") != 0
		&& strcasecmp(s, "off") != 0) {
		buf_puts(b, s);
		return;
	}
	CLEANUP(json) json_t *v = json_string(s);
	char *text = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL; /* a JSON string is a YAML one */
	buf_puts(b, text ? text : "\"\"");
	free(text);
}

static void put_list(struct buf *b, const json_t *list)
{
	size_t i;
	json_t *v;
	buf_puts(b, "[");
	json_array_foreach(list, i, v)
	{
		buf_puts(b, i ? ", " : "");
		put_scalar(b, json_string_value(v));
	}
	buf_puts(b, "]");
}

static void put_people(struct buf *b, const json_t *all)
{
	size_t i;
	json_t *o;
	buf_puts(b, "administrators: ");
	put_list(b, json_object_get(all, "administrators"));
	buf_puts(b, "\nusers:\n");
	json_array_foreach(json_object_get(all, "users"), i, o)
	{
		buf_puts(b, "  ");
		put_scalar(b, string(o, "name"));
		buf_printf(b, ": {id: %lld}\n", integer(o, "id"));
	}
	if (i == 0)
		buf_puts(b, "  {}\n");
	if (json_array_size(json_object_get(all, "groups")))
		buf_puts(b, "groups:\n");
	json_array_foreach(json_object_get(all, "groups"), i, o)
	{
		buf_puts(b, "  ");
		put_scalar(b, string(o, "name"));
		buf_printf(b, ": {id: %lld, ", integer(o, "id"));
		if (!strchr(string(o, "name"), ':') && *string(o, "owner") && strncmp(string(o, "owner"), "system:", 7) != 0) {
			buf_puts(b, "owner: ");
			put_scalar(b, string(o, "owner"));
			buf_puts(b, ", ");
		}
		buf_puts(b, "members: ");
		put_list(b, json_object_get(o, "members"));
		buf_puts(b, "}\n");
	}
}

static void put_volumes(struct buf *b, const json_t *all)
{
	size_t i, k;
	json_t *o, *s;
	if (json_array_size(json_object_get(all, "volumes")))
		buf_puts(b, "volumes:\n");
	json_array_foreach(json_object_get(all, "volumes"), i, o)
	{
		bool root = strcmp(string(o, "name"), "root.cell") == 0;
		buf_printf(b, "  # id %lld:", integer(o, "id"));
		json_array_foreach(json_object_get(o, "sites"), k, s)
			buf_printf(b, " %s %s %s%s", string(s, "type"), string(s, "server"), string(s, "partition"), "");
		buf_puts(b, "\n  ");
		put_scalar(b, string(o, "name"));
		const char *sep = ": {";
		if (*string(o, "partition")) {
			buf_printf(b, "%spartition: %s", sep, string(o, "partition"));
			sep = ", ";
		}
		if (integer(o, "quota_kib") >= 0) {
			buf_printf(b, "%squota: %lldK", sep, integer(o, "quota_kib"));
			sep = ", ";
		}
		if (*string(o, "mount") && !root) {
			buf_printf(b, "%smount: ", sep);
			put_scalar(b, string(o, "mount"));
			sep = ", ";
		}
		buf_puts(b, *sep == ':' ? ": {}\n" : "}\n");
	}
	if (json_array_size(json_object_get(all, "mounts")))
		buf_puts(b, "mounts:\n");
	json_array_foreach(json_object_get(all, "mounts"), i, o)
	{
		buf_puts(b, "  ");
		put_scalar(b, string(o, "path"));
		buf_puts(b, ": {volume: ");
		put_scalar(b, string(o, "volume"));
		buf_printf(b, "%s}\n", json_is_true(json_object_get(o, "rw")) ? ", rw: true" : "");
	}
}

static void put_partitions(struct buf *b, const json_t *all)
{
	size_t i;
	json_t *o;
	CLEANUP(json) json_t *seen = json_object();
	json_array_foreach(json_object_get(all, "volumes"), i, o) if (*string(o, "partition"))
		json_object_set_new(seen, string(o, "partition"), json_true());
	if (json_object_size(seen) == 0)
		return;
	buf_puts(b, "partitions:\n");
	const char *name;
	json_object_foreach(seen, name, o) buf_printf(b, "  %s: <state>/vice/%s\n", name, name);
}

static void put_yaml(struct buf *b, const struct import *m)
{
	size_t i;
	json_t *note;
	buf_printf(b, "# A sandbox copy of the cell %s, read by \"afscell import\" on %s.\n"
		      "# It has the names, ids, memberships, quotas and mount points; no content, no access lists, no passwords.\n",
		string(m->all, "cell"), CTIME(time(NULL)));
	json_array_foreach(json_object_get(m->all, "notes"), i, note) buf_printf(b, "# not copied: %s\n", json_string_value(note));
	buf_puts(b, "cell: ");
	put_scalar(b, cli_value(m->c, "as") ? cli_value(m->c, "as") : string(m->all, "cell"));
	buf_printf(b, "\nstate: ");
	put_scalar(b, cli_value(m->c, "state") ? cli_value(m->c, "state") : "/var/lib/afscell");
	buf_puts(b, "\n");
	put_partitions(b, m->all);
	put_people(b, m->all);
	put_volumes(b, m->all);
}

static int write_out(struct import *m, const struct buf *yaml, const char *path)
{
	if (!path || strcmp(path, "-") == 0) {
		fwrite(yaml->data, 1, yaml->len, stdout); /* whether it could be written is looked at when the program ends */
		return CLI_OK;
	}
	CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (cli_has(m->c, "force") ? O_TRUNC : O_EXCL), 0644);
	if (fd < 0)
		return cli_fail(m->c, errno == EEXIST ? "%s is there already; --force replaces it" : "%s cannot be written", path);
	for (size_t at = 0; at < yaml->len;) {
		ssize_t n = write(fd, yaml->data + at, yaml->len - at);
		if (n < 0)
			return cli_fail(m->c, "%s: %s", path, strerror(errno));
		at += (size_t)n;
	}
	cli_say(m->c, "%s: %zu users, %zu groups, %zu volumes of %s\n", path, json_array_size(json_object_get(m->all, "users")),
		json_array_size(json_object_get(m->all, "groups")), json_array_size(json_object_get(m->all, "volumes")), string(m->all, "cell"));
	return CLI_OK;
}

static afs_err gather(struct import *m, unsigned depth)
{
	struct VldbListByAttributes every = {};
	TRY(read_people(m));
	TRY(vldb_each(m->a, &every, keep_volume, m));
	read_quotas(m);
	TRY(sort(m->all, "users"));
	TRY(sort(m->all, "groups"));
	TRY(sort(m->all, "volumes"));
	if (cli_has(m->c, "no-mounts"))
		return AFS_OK;
	afs_err err = import_mounts(m, depth);
	if (err == AFS_ENOMEM)
		return err;
	if (err != AFS_OK)
		import_note(m, "mount points are not known: %s", afs_err_text(err));
	return AFS_OK;
}

int cli_import(struct cli *c)
{
	CLEANUP(import) struct import m = {.c = c};
	CLEANUP(buf) struct buf yaml = {}, problems = {};
	CLEANUP(conf) struct conf *proof = NULL;
	int64_t depth = 8;
	if (cli_value(c, "depth") && (!text_int(cli_value(c, "depth"), &depth) || depth < 0 || depth > 100))
		return cli_misuse(c, "--depth %s: expected a number of directories, at most 100", cli_value(c, "depth"));
	int status = suite_open(c, true, &m.a);
	if (status != CLI_OK)
		return status;
	m.all = json_pack("{s:s, s:[], s:[], s:[], s:[], s:[], s:[], s:{}}", "cell", admin_cell(m.a), "users", "groups", "administrators", "volumes",
		"mounts", "notes", "by_name");
	if (!m.all)
		return cli_fail(c, "out of memory");
	afs_err err = gather(&m, (unsigned)depth);
	cli_progress_end(c);
	if (err != AFS_OK)
		return suite_fail(c, m.a, err, "the cell %s cannot be read", admin_cell(m.a));
	json_object_del(m.all, "by_name");
	put_yaml(&yaml, &m);
	if (yaml.err || conf_parse(yaml.data, yaml.len, "import.yaml", &proof, &problems) != AFS_OK)
		cli_warn(c, "what was read makes no configuration as it is; edit it:\n%s", problems.data ? problems.data : "out of memory");
	size_t i;
	json_t *note;
	if (!cli_wants_json(c))
		json_array_foreach(json_object_get(m.all, "notes"), i, note) cli_warn(c, "not copied: %s", json_string_value(note));
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(m.all));
	if (cli_has(c, "dry-run")) {
		printf("%zu users, %zu groups, %zu volumes, %zu further mount points; nothing was written\n",
			json_array_size(json_object_get(m.all, "users")), json_array_size(json_object_get(m.all, "groups")),
			json_array_size(json_object_get(m.all, "volumes")), json_array_size(json_object_get(m.all, "mounts")));
		return CLI_OK;
	}
	return write_out(&m, &yaml, cli_value(c, "output"));
}
