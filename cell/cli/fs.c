/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The fs suite.  A path is resolved by the kernel, as its user: the mount says which cell and fid it is,
 * and the verb is asked by these.  What stock fs prints, and scripts parse, is printed the same way. */
#include "cell/cli/cli.h"

#include "cell/base/mem.h"
#include "cell/cli/acl_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* Rows of commands.def. */
int cli_fs_listacl(struct cli *c);
int cli_fs_setacl(struct cli *c);
int cli_fs_listquota(struct cli *c);
int cli_fs_setquota(struct cli *c);
int cli_fs_examine(struct cli *c);
int cli_fs_mkmount(struct cli *c);
int cli_fs_lsmount(struct cli *c);
int cli_fs_rmmount(struct cli *c);
int cli_fs_whereis(struct cli *c);
int cli_fs_flush(struct cli *c);
int cli_fs_checkvolumes(struct cli *c);

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

/* --- paths --------------------------------------------------------------------------------- */

static int attribute(struct cli *c, const char *path, const char *name, char *out, size_t cap)
{
	ssize_t n = getxattr(path, name, out, cap - 1);
	if (n >= 0) {
		out[n] = 0;
		return CLI_OK;
	}
	if (errno == ENOTSUP || errno == ENODATA)
		return cli_fail(c, "Invalid argument; it is possible that %s is not in AFS.", path);
	return cli_fail(c, "%s: %s", path, strerror(errno));
}

/* {"cell": ..., "fid": ...} for a path; the caller's. */
static int file_of(struct cli *c, const char *path, json_t **out)
{
	char cell[80], fid[64];
	int rc = attribute(c, path, "afs.cell", cell, sizeof(cell));
	if (rc == CLI_OK)
		rc = attribute(c, path, "afs.fid", fid, sizeof(fid));
	if (rc == CLI_OK) {
		*out = json_pack("{s:s, s:s}", "cell", cell, "fid", fid);
		rc = *out ? CLI_OK : cli_fail(c, "out of memory");
	}
	return rc;
}

/* Directory and last component of a mount point's path. */
static int split(struct cli *c, const char *path, char **dir, char **name)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t at = n;
	while (at && path[at - 1] != '/')
		at--;
	*name = mem_strndup(path + at, n - at);
	*dir = at == 0 ? mem_strdup(".") : mem_strndup(path, at);
	if (!*dir || !*name)
		return cli_fail(c, "out of memory");
	if (!**name || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0)
		return cli_fail(c, "%s: give the mount point by its name in its directory", path);
	return CLI_OK;
}

static int ask_file(struct cli *c, const char *path, const char *verb, json_t *more, json_t **reply)
{
	json_t *args = NULL;
	int rc = file_of(c, path, &args);
	if (rc == CLI_OK && more)
		json_object_update(args, more);
	json_decref(more);
	return rc == CLI_OK ? cli_ask(c, verb, args, reply) : rc;
}

static int ask_in_dir(
	struct cli *c, const char *path, const char *verb, json_t *more, json_t **reply)
{
	CLEANUP(str) char *dir = NULL, *name = NULL;
	int rc = split(c, path, &dir, &name);
	if (rc != CLI_OK) {
		json_decref(more);
		return rc;
	}
	json_t *args = more ? more : json_object();
	json_object_set_new(args, "name", json_string(name));
	return ask_file(c, dir, verb, args, reply);
}

/* Each path of a list (here, when there is none) through `one`; with --json an array of its results. */
static int each_path(struct cli *c, const char *arg,
	int (*one)(struct cli *c, const char *path, size_t i, json_t *all))
{
	const char *const *paths;
	static const char *const here[] = {"."};
	size_t n = cli_values(c, arg, &paths);
	if (!n) {
		paths = here;
		n = 1;
	}
	json_t *all = cli_wants_json(c) ? json_array() : NULL;
	int worst = CLI_OK;
	for (size_t i = 0; i < n; i++) {
		int rc = one(c, paths[i], i, all);
		worst = rc > worst ? rc : worst;
	}
	if (all)
		cli_print_json(c, all);
	return worst;
}

static void add(json_t *all, const char *path, json_t *reply)
{
	json_object_set_new(reply, "path", json_string(path));
	json_array_append(all, reply);
}

/* --- ACLs ------------------------------------------------------------------------------------ */

static int get_acl(struct cli *c, const char *path, struct acl_text *out)
{
	CLEANUP(json) json_t *reply = NULL;
	int rc = ask_file(c, path, "fs.listacl", NULL, &reply);
	if (rc != CLI_OK)
		return rc;
	const char *text = json_string_value(json_object_get(reply, "acl"));
	return text && acl_text_read(text, out)
		       ? CLI_OK
		       : cli_fail(c, "%s: the server sent an ACL that cannot be understood", path);
}

static json_t *acl_json(const struct acl_text *a, unsigned kind)
{
	json_t *o = json_object();
	for (unsigned i = 0; i < a->n[kind]; i++) {
		char text[16];
		acl_rights_text(a->e[kind][i].rights, text);
		json_object_set_new(o, a->e[kind][i].name, json_string(text));
	}
	return o;
}

static int list_one_acl(struct cli *c, const char *path, size_t at, json_t *all)
{
	struct acl_text a;
	int rc = get_acl(c, path, &a);
	if (rc != CLI_OK)
		return rc;
	if (all) {
		CLEANUP(json)
		json_t *o = json_pack(
			"{s:o, s:o}", "normal", acl_json(&a, 0), "negative", acl_json(&a, 1));
		add(all, path, o);
		return CLI_OK;
	}
	printf("%sAccess list for %s is\n", at ? "\n" : "", path);
	for (unsigned kind = 0; kind < 2; kind++) {
		if (!a.n[kind])
			continue;
		printf("%s rights:\n", kind ? "Negative" : "Normal");
		for (unsigned i = 0; i < a.n[kind]; i++) {
			char text[16];
			acl_rights_text(a.e[kind][i].rights, text);
			printf("  %s %s\n", a.e[kind][i].name, text);
		}
	}
	return CLI_OK;
}

int cli_fs_listacl(struct cli *c) { return each_path(c, "path", list_one_acl); }

/* One pair into the ACL; rights 0 remove the entry. */
static int change_entry(
	struct cli *c, struct acl_text *a, unsigned kind, const char *name, unsigned rights)
{
	unsigned i = 0;
	while (i < a->n[kind] && strcasecmp(a->e[kind][i].name, name) != 0)
		i++;
	if (!rights) {
		if (i < a->n[kind]) {
			memmove(&a->e[kind][i], &a->e[kind][i + 1],
				(a->n[kind] - i - 1) * sizeof(struct acl_entry));
			a->n[kind]--;
		}
		return CLI_OK;
	}
	if (i == a->n[kind]) {
		if (a->n[0] + a->n[1] >= ACL_ENTRIES_MAX)
			return cli_fail(c,
				"an ACL has room for %d entries; put people into a group instead",
				ACL_ENTRIES_MAX);
		if (strlen(name) >= ACL_WHO_MAX || strpbrk(name, " \t\n"))
			return cli_misuse(c, "\"%s\" is no name of a user or group", name);
		strcpy(a->e[kind][a->n[kind]++].name, name);
	}
	a->e[kind][i].rights = rights;
	return CLI_OK;
}

int cli_fs_setacl(struct cli *c)
{
	const char *const *dirs, *const *pairs;
	size_t n_dirs = cli_values(c, "dir", &dirs), n = cli_values(c, "acl", &pairs);
	unsigned kind = cli_has(c, "negative");
	if (n % 2)
		return cli_misuse(c, "Missing second half of user/access pair.");
	int worst = CLI_OK;
	for (size_t d = 0; d < n_dirs; d++) {
		struct acl_text a = {0};
		int rc = cli_has(c, "clear") ? CLI_OK : get_acl(c, dirs[d], &a);
		for (size_t i = 0; i < n && rc == CLI_OK; i += 2) {
			unsigned rights;
			if (!acl_rights_of(pairs[i + 1], &rights))
				return cli_misuse(c,
					"illegal rights \"%s\": letters of rlidwka, or read, "
					"write, all, none",
					pairs[i + 1]);
			rc = change_entry(c, &a, kind, pairs[i], rights);
		}
		if (rc == CLI_OK) {
			CLEANUP(str) char *text = acl_text_write(&a);
			CLEANUP(json) json_t *reply = NULL;
			rc = ask_file(c, dirs[d], "fs.setacl",
				json_pack("{s:s}", "acl", text ? text : ""), &reply);
		}
		worst = rc > worst ? rc : worst;
	}
	return worst;
}

/* --- volumes ------------------------------------------------------------------------------------ */

static json_int_t number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}
static const char *string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static int quota_one(struct cli *c, const char *path, size_t at, json_t *all)
{
	CLEANUP(json) json_t *v = NULL;
	if (at == 0 && !all)
		printf("%-25s%11s%11s%6s%12s\n", "Volume Name", "Quota", "Used", "%Used",
			"Partition");
	int rc = ask_file(c, path, "fs.volume", NULL, &v);
	if (rc != CLI_OK)
		return rc;
	if (all) {
		add(all, path, v);
		return CLI_OK;
	}
	json_int_t quota = number(v, "quota_kib"), used = number(v, "used_kib"),
		   size = number(v, "partition_size_kib");
	double full = quota ? 100.0 * (double)used / (double)quota : 0;
	double part =
		size ? 100.0 * (1.0 - (double)number(v, "partition_free_kib") / (double)size) : 0;
	printf("%-25.25s", string(v, "name"));
	if (quota)
		printf("%11lld%11lld", (long long)quota, (long long)used);
	else
		printf("%11s%11lld", "no limit", (long long)used);
	bool warn = full > 90 || part > 97;
	printf("%5.0f%%%s%9.0f%%%s%s\n", full, full > 90 ? "<<" : "  ", part,
		part > 97 ? "<<" : "  ", warn ? "  <<WARNING" : "");
	return CLI_OK;
}

int cli_fs_listquota(struct cli *c) { return each_path(c, "path", quota_one); }

int cli_fs_setquota(struct cli *c)
{
	const char *text = cli_value(c, "max");
	char *end;
	errno = 0;
	long long max = strtoll(text, &end, 10);
	if (errno || end == text || *end || max < 0 || max > INT32_MAX)
		return cli_misuse(c, "\"%s\" is no quota: 0 (none) to 2147483647 KiB", text);
	CLEANUP(json) json_t *reply = NULL;
	return ask_file(c, cli_value(c, "path"), "fs.setquota",
		json_pack("{s:I}", "quota_kib", (json_int_t)max), &reply);
}

static int examine_one(struct cli *c, const char *path, size_t at, json_t *all)
{
	(void)at;
	CLEANUP(json) json_t *v = NULL;
	char fid[64];
	unsigned volume, vnode, unique;
	int rc = attribute(c, path, "afs.fid", fid, sizeof(fid));
	if (rc == CLI_OK && sscanf(fid, "%x:%x:%x", &volume, &vnode, &unique) != 3)
		rc = cli_fail(c, "%s: \"%s\" is no fid", path, fid);
	if (rc == CLI_OK)
		rc = ask_file(c, path, "fs.examine", NULL, &v);
	if (rc != CLI_OK)
		return rc;
	if (all) {
		json_object_set_new(v, "fid", json_string(fid));
		add(all, path, v);
		return CLI_OK;
	}
	printf("File %s (%u.%u.%u) contained in volume %u\n", path, volume, vnode, unique, volume);
	printf("Volume status for vid = %lld named %s\n", (long long)number(v, "volume"),
		string(v, "name"));
	if (*string(v, "message"))
		printf("Current offline message is %s\n", string(v, "message"));
	if (number(v, "quota_kib"))
		printf("Current disk quota is %lld\n", (long long)number(v, "quota_kib"));
	else
		printf("Current disk quota is unlimited\n");
	printf("Current blocks used are %lld\n", (long long)number(v, "used_kib"));
	printf("The partition has %lld blocks available out of %lld\n\n",
		(long long)number(v, "partition_free_kib"),
		(long long)number(v, "partition_size_kib"));
	return CLI_OK;
}

int cli_fs_examine(struct cli *c) { return each_path(c, "path", examine_one); }

static int whereis_one(struct cli *c, const char *path, size_t at, json_t *all)
{
	(void)at;
	CLEANUP(json) json_t *v = NULL;
	int rc = ask_file(c, path, "fs.whereis", NULL, &v);
	if (rc != CLI_OK)
		return rc;
	if (all) {
		add(all, path, v);
		return CLI_OK;
	}
	const json_t *servers = json_object_get(v, "servers");
	printf("File %s is on host%s", path, json_array_size(servers) > 1 ? "s" : "");
	for (size_t i = 0; i < json_array_size(servers); i++)
		printf(" %s", json_string_value(json_array_get(servers, i)));
	printf("\n");
	return CLI_OK;
}

int cli_fs_whereis(struct cli *c) { return each_path(c, "path", whereis_one); }

static int flush_one(struct cli *c, const char *path, size_t at, json_t *all)
{
	(void)at;
	CLEANUP(json) json_t *reply = NULL;
	int rc = ask_file(
		c, path, "fs.flush", json_pack("{s:b}", "volume", cli_has(c, "volume")), &reply);
	if (rc == CLI_OK && all)
		add(all, path, reply);
	return rc;
}

int cli_fs_flush(struct cli *c) { return each_path(c, "path", flush_one); }

int cli_fs_checkvolumes(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL;
	int rc = cli_ask(c, "fs.checkvolumes", NULL, &reply);
	if (rc != CLI_OK)
		return rc;
	if (cli_wants_json(c))
		return cli_print_json(c, json_object());
	printf("All volumeID/name mappings checked.\n");
	return CLI_OK;
}

/* --- mount points ------------------------------------------------------------------------------------ */

int cli_fs_mkmount(struct cli *c)
{
	const char *vol = cli_value(c, "vol"), *cell = cli_value(c, "cell");
	CLEANUP(str)
	char *target = mem_printf(
		"%c%s%s%s.", cli_has(c, "rw") ? '%' : '#', cell ? cell : "", cell ? ":" : "", vol);
	CLEANUP(json) json_t *reply = NULL;
	if (!target)
		return cli_fail(c, "out of memory");
	return ask_in_dir(
		c, cli_value(c, "dir"), "fs.mkmount", json_pack("{s:s}", "target", target), &reply);
}

static int lsmount_one(struct cli *c, const char *path, size_t at, json_t *all)
{
	(void)at;
	CLEANUP(json) json_t *reply = NULL;
	int rc = ask_in_dir(c, path, "fs.lsmount", NULL, &reply);
	if (rc != CLI_OK)
		return rc;
	if (all) {
		add(all, path, reply);
		return CLI_OK;
	}
	const char *target = string(reply, "target");
	printf("'%s' is a mount point for volume '%.*s'\n", path, (int)strlen(target) - 1, target);
	return CLI_OK;
}

int cli_fs_lsmount(struct cli *c) { return each_path(c, "dir", lsmount_one); }

static int rmmount_one(struct cli *c, const char *path, size_t at, json_t *all)
{
	(void)at;
	CLEANUP(json) json_t *reply = NULL;
	int rc = ask_in_dir(c, path, "fs.rmmount", NULL, &reply);
	if (rc == CLI_OK && all)
		add(all, path, reply);
	return rc;
}

int cli_fs_rmmount(struct cli *c) { return each_path(c, "dir", rmmount_one); }
