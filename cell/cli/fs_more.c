/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rest of the fs suite, as stock fs has it: the same calls (pioctl.md), over the control socket, with the same output.
 * Paths go as absolute ones, and the cache manager walks them with the caller's tokens. */
#include "cell/cli/cli.h"
#include "cell/cli/handlers.h"

#include "cell/base/mem.h"
#include "cell/cli/acl_text.h"
#include "cell/proto/rmt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

enum { BLOB = 4096, MAGIC = 0x12345678, VOLSTAT = 36 };

struct blob {
	uint8_t b[BLOB];
	size_t n;
	int eno;
};

static void put(struct blob *x, const void *p, size_t n)
{
	if (n && n <= BLOB - x->n)
		memcpy(x->b + x->n, p, n);
	x->n = MIN(x->n + n, (size_t)BLOB);
}
static void put_text(struct blob *x, const char *s) { put(x, s, strlen(s) + 1); }
static void put_host(struct blob *x, uint32_t v) { put(x, &v, 4); }
static void put_net(struct blob *x, uint32_t v)
{
	uint8_t b[4];
	be32_put(b, v);
	put(x, b, 4);
}
static uint32_t host_at(const struct blob *x, size_t at)
{
	uint32_t v = 0;
	if (at + 4 <= x->n)
		memcpy(&v, x->b + at, 4);
	return v;
}
static uint32_t net_at(const struct blob *x, size_t at) { return at + 4 <= x->n ? be32_get(x->b + at) : 0; }
static const char *text_at(const struct blob *x, size_t at)
{
	return at < x->n && memchr(x->b + at, 0, x->n - at) ? (const char *)x->b + at : "";
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

/* CLI_OK: the call was made, and out->eno says how it went. */
static int call(struct cli *c, uint32_t cmd, const char *path, bool follow, const struct blob *in, struct blob *out)
{
	CLEANUP(json) json_t *reply = NULL;
	json_t *args = json_pack("{s:i, s:b}", "cmd", (int)cmd, "follow", follow);
	char whole[PATH_MAX * 2], cwd[PATH_MAX], hex[BLOB * 2 + 1] = "";
	if (path) {
		if (path[0] == '/')
			snprintf(whole, sizeof(whole), "%s", path);
		else if (getcwd(cwd, sizeof(cwd)))
			snprintf(whole, sizeof(whole), "%s/%s", cwd, strcmp(path, ".") ? path : "");
		else {
			json_decref(args);
			return cli_fail(c, "the current directory: %s", strerror(errno));
		}
		json_object_set_new(args, "path", json_string(whole));
	}
	for (size_t i = 0; in && i < in->n; i++)
		snprintf(hex + 2 * i, 3, "%02x", in->b[i]);
	if (in && in->n)
		json_object_set_new(args, "in", json_string(hex));
	int rc = cli_ask(c, "fs.pioctl", args, &reply);
	if (rc != CLI_OK)
		return rc;
	out->eno = (int)json_integer_value(json_object_get(reply, "errno"));
	const char *text = json_string_value(json_object_get(reply, "out"));
	for (out->n = 0; text && text[0] && text[1] && out->n < BLOB; text += 2) {
		unsigned v = 0;
		sscanf(text, "%2x", &v);
		out->b[out->n++] = (uint8_t)v;
	}
	return CLI_OK;
}

static int complain(struct cli *c, int eno, const char *path)
{
	switch (eno) {
	case EINVAL:
		return path ? cli_fail(c, "Invalid argument; it is possible that %s is not in AFS.", path) : cli_fail(c, "Invalid argument.");
	case ENOENT: return path ? cli_fail(c, "File '%s' doesn't exist", path) : cli_fail(c, "no such file returned");
	case EROFS: return cli_fail(c, "You can not change a backup or readonly volume");
	case EACCES:
	case EPERM:
		return path ? cli_fail(c, "You don't have the required access rights on '%s'", path)
			    : cli_fail(c, "You do not have the required rights to do this operation");
	case ESRCH: return cli_fail(c, "Cell name not recognized.");
	default: return path ? cli_fail(c, "'%s': %s", path, strerror(eno)) : cli_fail(c, "%s", strerror(eno));
	}
}

/* The call, with every errno a failure. */
static int must(struct cli *c, uint32_t cmd, const char *path, const struct blob *in, struct blob *out)
{
	int rc = call(c, cmd, path, true, in, out);
	return rc == CLI_OK && out->eno ? complain(c, out->eno, path) : rc;
}

/* Without anything to show. */
static int plain(struct cli *c, uint32_t cmd, const struct blob *in, const char *said)
{
	struct blob out;
	int rc = must(c, cmd, NULL, in, &out);
	if (rc == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_object());
	if (rc == CLI_OK && said)
		cli_say(c, "%s\n", said);
	return rc;
}

static const char *host_name(uint32_t ip, bool numeric, char *out, size_t cap)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
	if (numeric || getnameinfo((struct sockaddr *)&in, sizeof(in), out, (socklen_t)cap, NULL, 0, NI_NAMEREQD) != 0)
		inet_ntop(AF_INET, &in.sin_addr, out, (socklen_t)cap);
	return out;
}

static bool address(const char *text, uint32_t *ip)
{
	struct addrinfo want = {.ai_family = AF_INET}, *list = NULL;
	if (getaddrinfo(text, NULL, &want, &list) != 0)
		return false;
	struct sockaddr_in in;
	memcpy(&in, list->ai_addr, sizeof(in));
	*ip = ntohl(in.sin_addr.s_addr);
	freeaddrinfo(list);
	return true;
}

static int whole_number(struct cli *c, const char *text, long least, long *out)
{
	char *end;
	errno = 0;
	*out = text ? strtol(text, &end, 10) : 0;
	if (!text || errno || end == text || *end || *out < least || *out > INT32_MAX)
		return cli_misuse(c, "\"%s\" is no number here", text ? text : "");
	return CLI_OK;
}

typedef int each(struct cli *c, const char *path, json_t *out);

static int each_path(struct cli *c, each *one)
{
	const char *const *paths;
	static const char *const here[] = {"."};
	size_t n = cli_values(c, "path", &paths);
	if (!n) {
		paths = here;
		n = 1;
	}
	json_t *all = cli_wants_json(c) ? json_array() : NULL;
	int worst = CLI_OK;
	for (size_t i = 0; i < n; i++) {
		json_t *o = all ? json_pack("{s:s}", "path", paths[i]) : NULL;
		int rc = one(c, paths[i], o);
		if (o && rc == CLI_OK)
			json_array_append(all, o);
		json_decref(o);
		worst = MAX(rc, worst);
	}
	if (all)
		cli_print_json(c, all);
	return worst;
}

/* --- access lists ------------------------------------------------------------------------------------------------ */

static int acl_read(struct cli *c, const char *path, struct acl_text *a)
{
	struct blob out;
	int rc = must(c, PIOCTL_GETAL, path, NULL, &out);
	if (rc == CLI_OK && !acl_text_read(text_at(&out, 0), a))
		rc = cli_fail(c, "%s: the server sent an access list that cannot be understood", path);
	return rc;
}

static int acl_store(struct cli *c, const char *path, const struct acl_text *a)
{
	struct blob in = {.n = 0}, out;
	CLEANUP(str) char *text = acl_text_write(a);
	if (!text)
		return cli_fail(c, "out of memory");
	put_text(&in, text);
	return must(c, PIOCTL_SETAL, path, &in, &out);
}

int cli_fs_copyacl(struct cli *c)
{
	struct acl_text from = {0};
	const char *const *to;
	int rc = acl_read(c, cli_value(c, "fromdir"), &from);
	size_t n = cli_values(c, "todir", &to);
	for (size_t i = 0; i < n && rc == CLI_OK; i++) {
		struct acl_text a = {0};
		rc = cli_has(c, "clear") ? CLI_OK : acl_read(c, to[i], &a);
		for (unsigned kind = 0; kind < 2; kind++)
			for (unsigned k = 0; k < from.n[kind] && rc == CLI_OK; k++) {
				unsigned at = 0;
				while (at < a.n[kind] && strcasecmp(a.e[kind][at].name, from.e[kind][k].name) != 0)
					at++;
				if (at == a.n[kind] && a.n[0] + a.n[1] >= ACL_ENTRIES_MAX)
					return cli_fail(c, "%s: an access list has room for %d entries", to[i], ACL_ENTRIES_MAX);
				a.e[kind][at] = from.e[kind][k];
				a.n[kind] += at == a.n[kind];
			}
		if (rc == CLI_OK)
			rc = acl_store(c, to[i], &a);
	}
	if (rc == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_object());
	return rc;
}

/* A number is what is left of a name. */
static bool is_left_over(const char *name)
{
	if (*name == '-')
		name++;
	return *name && strspn(name, "0123456789") == strlen(name);
}

static int clean_one(struct cli *c, const char *path, json_t *o)
{
	struct acl_text a = {0};
	int rc = acl_read(c, path, &a);
	unsigned gone = 0;
	for (unsigned kind = 0; kind < 2; kind++) {
		unsigned n = 0;
		for (unsigned i = 0; i < a.n[kind]; i++) {
			if (is_left_over(a.e[kind][i].name))
				gone++;
			else
				a.e[kind][n++] = a.e[kind][i];
		}
		a.n[kind] = n;
	}
	if (rc == CLI_OK && gone)
		rc = acl_store(c, path, &a);
	if (rc != CLI_OK)
		return rc;
	if (o) {
		json_object_set_new(o, "removed", json_integer(gone));
		return CLI_OK;
	}
	if (!gone) {
		printf("Access list for %s is fine.\n", path);
		return CLI_OK;
	}
	printf("Access list for %s is now\n", path);
	for (unsigned kind = 0; kind < 2; kind++) {
		if (a.n[kind])
			printf("%s rights:\n", kind ? "Negative" : "Normal");
		for (unsigned i = 0; i < a.n[kind]; i++) {
			char text[16];
			acl_rights_text(a.e[kind][i].rights, text);
			printf("  %s %s\n", a.e[kind][i].name, text);
		}
	}
	return CLI_OK;
}
int cli_fs_cleanacl(struct cli *c) { return each_path(c, clean_one); }

static int access_one(struct cli *c, const char *path, json_t *o)
{
	struct blob out;
	int rc = must(c, PIOCTL_CALLERACCESS, path, NULL, &out);
	if (rc != CLI_OK)
		return rc;
	char text[16];
	acl_rights_text(host_at(&out, 0), text);
	if (o)
		json_object_set_new(o, "access", json_string(text));
	else
		printf("Callers access to %s is %s\n", path, text);
	return CLI_OK;
}
int cli_fs_getcalleraccess(struct cli *c) { return each_path(c, access_one); }

/* --- volumes ------------------------------------------------------------------------------------------------------ */

static int quota_one(struct cli *c, const char *path, json_t *o)
{
	struct blob out;
	int rc = must(c, PIOCTL_GETVOLSTAT, path, NULL, &out);
	if (rc != CLI_OK)
		return rc;
	uint32_t max = net_at(&out, 20), used = net_at(&out, 24);
	double full = max ? 100.0 * used / max : 0;
	if (o)
		json_object_set_new(o, "used_percent", json_real(full));
	else
		printf("%2.0f%% of quota used.\n", full);
	return CLI_OK;
}
int cli_fs_quota(struct cli *c) { return each_path(c, quota_one); }

static int disk_one(struct cli *c, const char *path, json_t *o)
{
	struct blob out;
	int rc = must(c, PIOCTL_GETVOLSTAT, path, NULL, &out);
	if (rc != CLI_OK)
		return rc;
	long long left = net_at(&out, 28), size = net_at(&out, 32);
	const char *name = text_at(&out, VOLSTAT);
	if (o) {
		json_object_update_new(o, json_pack("{s:s, s:I, s:I, s:I}", "volume", name, "size_kib", (json_int_t)size, "used_kib",
			(json_int_t)(size - left), "free_kib", (json_int_t)left));
		return CLI_OK;
	}
	double full = size ? 100.0 * (double)(size - left) / (double)size : 0;
	printf("%-25.25s%10lld%10lld%10lld%5.0f%%%s\n", name, size, size - left, left, full, full > 90 ? "<<WARNING" : "  ");
	return CLI_OK;
}
int cli_fs_diskfree(struct cli *c)
{
	if (!cli_wants_json(c))
		printf("%-25s%10s%10s%10s%6s\n", "Volume Name", "kbytes", "used", "avail", "%used");
	return each_path(c, disk_one);
}

static int setvol_one(struct cli *c, const char *path, json_t *o)
{
	(void)o;
	struct blob in = {.n = 0}, out;
	long max = -1, min = -1;
	int rc = cli_has(c, "max") ? whole_number(c, cli_value(c, "max"), 0, &max) : CLI_OK;
	if (rc == CLI_OK && cli_has(c, "min"))
		rc = whole_number(c, cli_value(c, "min"), 0, &min);
	if (rc != CLI_OK)
		return rc;
	const uint32_t w[9] = {0, 0, 0, 0, (uint32_t)min, (uint32_t)max};
	for (int i = 0; i < 9; i++)
		put_net(&in, w[i]);
	put_text(&in, "");
	put_text(&in, cli_value(c, "offlinemsg") ? cli_value(c, "offlinemsg") : "");
	put_text(&in, cli_value(c, "motd") ? cli_value(c, "motd") : "");
	return must(c, PIOCTL_SETVOLSTAT, path, &in, &out);
}
int cli_fs_setvol(struct cli *c) { return each_path(c, setvol_one); }

/* --- paths --------------------------------------------------------------------------------------------------------- */

static int whichcell_one(struct cli *c, const char *path, json_t *o)
{
	struct blob out;
	int rc = must(c, PIOCTL_FILE_CELL, path, NULL, &out);
	if (rc != CLI_OK)
		return rc;
	if (o)
		json_object_set_new(o, "cell", json_string(text_at(&out, 0)));
	else
		printf("File %s lives in cell '%s'\n", path, text_at(&out, 0));
	return CLI_OK;
}
int cli_fs_whichcell(struct cli *c) { return each_path(c, whichcell_one); }

static int getfid_one(struct cli *c, const char *path, json_t *o)
{
	struct blob out, cell;
	int rc = call(c, PIOCTL_GETFID, path, !cli_has(c, "literal"), NULL, &out);
	if (rc == CLI_OK && out.eno)
		rc = complain(c, out.eno, path);
	if (rc == CLI_OK)
		rc = must(c, PIOCTL_FILE_CELL, path, NULL, &cell);
	if (rc != CLI_OK)
		return rc;
	char fid[48];
	snprintf(fid, sizeof(fid), "%u.%u.%u", host_at(&out, 4), host_at(&out, 8), host_at(&out, 12));
	if (o)
		json_object_update_new(o, json_pack("{s:s, s:s}", "fid", fid, "cell", text_at(&cell, 0)));
	else
		printf("File %s (%s) located in cell %s\n", path, fid, text_at(&cell, 0));
	return CLI_OK;
}
int cli_fs_getfid(struct cli *c) { return each_path(c, getfid_one); }

static int flushvolume_one(struct cli *c, const char *path, json_t *o)
{
	(void)o;
	struct blob out;
	return must(c, PIOCTL_FLUSHVOLUME, path, NULL, &out);
}
int cli_fs_flushvolume(struct cli *c) { return each_path(c, flushvolume_one); }
int cli_fs_flushall(struct cli *c) { return plain(c, PIOCTL_FLUSHALL, NULL, NULL); }

static int flushmount_one(struct cli *c, const char *path, json_t *o)
{
	(void)o;
	struct blob in = {.n = 0}, out;
	char dir[PATH_MAX];
	snprintf(dir, sizeof(dir), "%s", path);
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		dir[--n] = 0;
	char *slash = strrchr(dir, '/');
	put_text(&in, slash ? slash + 1 : dir);
	if (slash)
		slash[slash == dir] = 0;
	int rc = call(c, PIOCTL_FLUSHMOUNT, slash ? dir : ".", true, &in, &out);
	if (rc == CLI_OK && out.eno == EINVAL)
		return cli_fail(c, "'%s' is not a mount point.", path);
	return rc == CLI_OK && out.eno ? complain(c, out.eno, path) : rc;
}
int cli_fs_flushmount(struct cli *c) { return each_path(c, flushmount_one); }

static int owner_of(struct cli *c, const char *arg, bool group)
{
	const char *name = cli_value(c, arg), *const *paths;
	unsigned id;
	char end;
	if (sscanf(name, "%u%c", &id, &end) != 1) {
		const struct passwd *u = group ? NULL : getpwnam(name);
		const struct group *g = group ? getgrnam(name) : NULL;
		if (!u && !g)
			return cli_fail(c, "%s '%s' is not known on this machine; give the AFS id", group ? "group" : "user", name);
		id = u ? u->pw_uid : g->gr_gid;
	}
	size_t n = cli_values(c, "path", &paths);
	int worst = CLI_OK;
	for (size_t i = 0; i < n; i++) {
		uid_t uid = group ? (uid_t)-1 : id;
		gid_t gid = group ? id : (gid_t)-1;
		if ((cli_has(c, "literal") ? lchown(paths[i], uid, gid) : chown(paths[i], uid, gid)) < 0)
			worst = complain(c, errno, paths[i]);
	}
	if (worst == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_object());
	return worst;
}
int cli_fs_chown(struct cli *c) { return owner_of(c, "owner", false); }
int cli_fs_chgrp(struct cli *c) { return owner_of(c, "group", true); }

/* --- cells --------------------------------------------------------------------------------------------------------- */

int cli_fs_wscell(struct cli *c)
{
	struct blob out;
	int rc = must(c, PIOCTL_GET_WS_CELL, NULL, NULL, &out);
	if (rc != CLI_OK)
		return rc;
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s}", "cell", text_at(&out, 0)));
	printf("This workstation belongs to cell '%s'\n", text_at(&out, 0));
	return CLI_OK;
}

int cli_fs_listcells(struct cli *c)
{
	json_t *all = cli_wants_json(c) ? json_array() : NULL;
	for (uint32_t i = 0; i < 1000; i++) {
		struct blob in = {.n = 0}, out;
		put_net(&in, i);
		int rc = call(c, PIOCTL_GETCELL, NULL, true, &in, &out);
		if (rc == CLI_OK && out.eno && out.eno != EDOM)
			rc = complain(c, out.eno, NULL);
		if (rc != CLI_OK) {
			json_decref(all);
			return rc;
		}
		if (out.eno)
			break;
		json_t *hosts = all ? json_array() : NULL;
		if (!all)
			printf("Cell %s on hosts", text_at(&out, 32));
		for (size_t k = 0; k < 8 && net_at(&out, k * 4); k++) {
			char name[NI_MAXHOST];
			host_name(net_at(&out, k * 4), cli_has(c, "numeric") || all, name, sizeof(name));
			if (all)
				json_array_append_new(hosts, json_string(name));
			else
				printf(" %s", name);
		}
		if (all)
			json_array_append_new(all, json_pack("{s:s, s:o}", "cell", text_at(&out, 32), "hosts", hosts));
		else
			printf(".\n");
	}
	return all ? cli_print_json(c, all) : CLI_OK;
}

int cli_fs_newcell(struct cli *c)
{
	const char *const *servers;
	size_t n = cli_values(c, "servers", &servers);
	struct blob in = {.n = 0};
	if (n > 8)
		return cli_misuse(c, "at most 8 servers");
	put_host(&in, MAGIC);
	for (size_t i = 0; i < 8; i++) {
		uint32_t ip = 0;
		if (i < n && !address(servers[i], &ip))
			return cli_fail(c, "Host %s not found in host table.", servers[i]);
		put_net(&in, ip);
	}
	for (int i = 0; i < 3; i++)
		put_host(&in, 0);
	put_text(&in, cli_value(c, "name"));
	return plain(c, PIOCTL_NEWCELL, &in, NULL);
}

static int cell_each(struct cli *c, bool set)
{
	const char *const *cells;
	size_t n = cli_values(c, "cell", &cells);
	if (set && cli_has(c, "suid") == cli_has(c, "nosuid"))
		return cli_misuse(c, "Cannot specify both -suid and -nosuid; one is needed.");
	json_t *all = cli_wants_json(c) ? json_array() : NULL;
	int worst = CLI_OK;
	for (size_t i = 0; i < n; i++) {
		struct blob in = {.n = 0}, out;
		if (set) {
			put_net(&in, cli_has(c, "nosuid") ? 2 : 0);
			put_net(&in, 0);
		}
		put_text(&in, cells[i]);
		int rc = call(c, set ? PIOCTL_SETCELLSTATUS : PIOCTL_GETCELLSTATUS, NULL, true, &in, &out);
		if (rc == CLI_OK && out.eno == ENOENT)
			rc = cli_fail(c, "the cell named '%s' does not exist", cells[i]);
		else if (rc == CLI_OK && out.eno)
			rc = set && out.eno == EINVAL ? cli_fail(c, "set-id bits from the network are never honoured here") : complain(c, out.eno, NULL);
		worst = MAX(rc, worst);
		if (rc != CLI_OK || set)
			continue;
		bool nosuid = net_at(&out, 0) & 2;
		if (all)
			json_array_append_new(all, json_pack("{s:s, s:b}", "cell", cells[i], "setuid", !nosuid));
		else
			printf("Cell %s status: %ssetuid allowed\n", cells[i], nosuid ? "no " : "");
	}
	if (all)
		cli_print_json(c, all);
	return worst;
}
int cli_fs_getcellstatus(struct cli *c) { return cell_each(c, false); }
int cli_fs_setcell(struct cli *c) { return cell_each(c, true); }

int cli_fs_listaliases(struct cli *c)
{
	json_t *all = cli_wants_json(c) ? json_array() : NULL;
	for (uint32_t i = 0; i < 1000; i++) {
		struct blob in = {.n = 0}, out;
		put_host(&in, i);
		int rc = call(c, PIOCTL_GETALIAS, NULL, true, &in, &out);
		if (rc != CLI_OK || out.eno)
			break;
		const char *alias = text_at(&out, 0), *cell = text_at(&out, strlen(alias) + 1);
		if (all)
			json_array_append_new(all, json_pack("{s:s, s:s}", "alias", alias, "cell", cell));
		else
			printf("Alias %s for cell %s\n", alias, cell);
	}
	return all ? cli_print_json(c, all) : CLI_OK;
}

int cli_fs_newalias(struct cli *c)
{
	struct blob in = {.n = 0};
	put_text(&in, cli_value(c, "alias"));
	put_text(&in, cli_value(c, "name"));
	return plain(c, PIOCTL_NEWALIAS, &in, NULL);
}

/* --- servers ------------------------------------------------------------------------------------------------------- */

int cli_fs_checkservers(struct cli *c)
{
	struct blob in = {.n = 0}, out;
	const char *cell = cli_value(c, "cell");
	char name[128] = "";
	long interval = -1;
	if (cli_has(c, "interval")) {
		int rc = whole_number(c, cli_value(c, "interval"), 0, &interval);
		if (rc != CLI_OK)
			return rc;
	}
	if (cell)
		snprintf(name, sizeof(name), "%s", cell);
	put_net(&in, MAGIC);
	put(&in, name, sizeof(name));
	put_host(&in, cell ? (uint32_t)strlen(cell) + 1 : 0);
	put_host(&in, (uint32_t)interval);
	put_host(&in, cli_has(c, "fast") ? 1 : 0);
	int rc = call(c, PIOCTL_CKSERV, NULL, true, &in, &out);
	if (rc == CLI_OK && out.eno == ENOENT)
		return cli_fail(c, "can't get cell %s's file servers: no such cell", name);
	if (rc == CLI_OK && out.eno)
		return complain(c, out.eno, NULL);
	if (rc != CLI_OK)
		return rc;
	if (interval >= 0) {
		if (cli_wants_json(c))
			return cli_print_json(c, json_pack("{s:I}", "interval_s", (json_int_t)host_at(&out, 0)));
		if (interval)
			printf("The new down server probe interval (%ld secs) is now in effect (old interval was %u secs)\n", interval, host_at(&out, 0));
		else
			printf("The current down server probe interval is %u secs\n", host_at(&out, 0));
		return CLI_OK;
	}
	json_t *all = json_array();
	bool any = net_at(&out, 0);
	if (!cli_wants_json(c))
		printf(any ? "These servers unavailable due to network or server problems:" : "All servers are running.\n");
	for (size_t at = 0; net_at(&out, at); at += 4) {
		char host[NI_MAXHOST];
		host_name(net_at(&out, at), cli_wants_json(c), host, sizeof(host));
		json_array_append_new(all, json_string(host));
		if (!cli_wants_json(c))
			printf(" %s", host);
	}
	if (cli_wants_json(c)) {
		cli_print_json(c, json_pack("{s:o}", "down", all));
		return any ? CLI_FAILED : CLI_OK;
	}
	json_decref(all);
	if (any)
		printf(".\n");
	return any ? CLI_FAILED : CLI_OK;
}

static int get_prefs(struct cli *c, uint32_t cmd, bool vl)
{
	json_t *all = cli_wants_json(c) ? json_array() : NULL;
	uint16_t next = 0;
	do {
		struct blob in = {.n = 0}, out;
		const uint16_t w[3] = {next, 0, vl};
		put(&in, w, sizeof(w));
		int rc = must(c, cmd, NULL, &in, &out);
		uint16_t n = 0;
		if (rc != CLI_OK || out.n < 4) {
			json_decref(all);
			return rc;
		}
		memcpy(&next, out.b, 2);
		memcpy(&n, out.b + 2, 2);
		for (size_t i = 0; i < n && 4 + i * 8 + 8 <= out.n; i++) {
			char host[NI_MAXHOST];
			uint16_t rank;
			memcpy(&rank, out.b + 8 + i * 8, 2);
			host_name(net_at(&out, 4 + i * 8), all || (cmd == PIOCTL_GETSPREFS && cli_has(c, "numeric")), host, sizeof(host));
			if (all)
				json_array_append_new(all, json_pack("{s:s, s:i}", "server", host, "rank", rank));
			else
				printf("%-50s %5u\n", host, rank);
		}
	} while (next);
	return all ? cli_print_json(c, all) : CLI_OK;
}
int cli_fs_getserverprefs(struct cli *c) { return get_prefs(c, PIOCTL_GETSPREFS, cli_has(c, "vlservers")); }
int cli_fs_getclientaddrs(struct cli *c) { return get_prefs(c, PIOCTL_GETCPREFS, false); }

static int set_prefs(struct cli *c, const char *arg, bool vl)
{
	const char *const *v;
	size_t n = cli_values(c, arg, &v);
	struct blob in = {.n = 0}, out;
	if (!n)
		return CLI_OK;
	if (n % 2)
		return cli_misuse(c, "a server and its rank: \"%s\" has none", v[n - 1]);
	const uint16_t w[2] = {vl, (uint16_t)(n / 2)};
	put(&in, w, sizeof(w));
	for (size_t i = 0; i < n; i += 2) {
		uint32_t ip;
		long rank;
		if (!address(v[i], &ip))
			return cli_fail(c, "server '%s' not found in host table", v[i]);
		int rc = whole_number(c, v[i + 1], 0, &rank);
		if (rc != CLI_OK || rank > 65534)
			return cli_misuse(c, "rank %s: 0 to 65534", v[i + 1]);
		const uint16_t r[2] = {(uint16_t)rank, 0};
		put_net(&in, ip);
		put(&in, r, sizeof(r));
	}
	return must(c, PIOCTL_SETSPREFS, NULL, &in, &out);
}
int cli_fs_setserverprefs(struct cli *c)
{
	int rc = set_prefs(c, "servers", false), rc2 = rc == CLI_OK ? set_prefs(c, "vlservers", true) : rc;
	if (rc2 == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_object());
	return rc2;
}

/* --- the cache manager ----------------------------------------------------------------------------------------------- */

int cli_fs_getcacheparms(struct cli *c)
{
	struct blob out;
	int rc = must(c, PIOCTL_GETCACHEPARMS, NULL, NULL, &out);
	if (rc != CLI_OK)
		return rc;
	uint32_t size = net_at(&out, 0), used = net_at(&out, 4), chunks = net_at(&out, 8);
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:I, s:I, s:I}", "size_kib", (json_int_t)size, "used_kib", (json_int_t)used, "chunks", (json_int_t)chunks));
	if (cli_has(c, "files") || cli_has(c, "excessive")) {
		printf("AFS using %5.0f%% of cache blocks (%u of %u 1k blocks)\n", size ? 100.0 * used / size : 0, used, size);
		printf("          %u chunks of at most 1 MiB\n", chunks);
		return CLI_OK;
	}
	printf("AFS using %u of the cache's available %u 1K byte blocks.\n", used, size);
	return CLI_OK;
}

int cli_fs_setcachesize(struct cli *c)
{
	struct blob in = {.n = 0};
	long kib = 0;
	if (!cli_has(c, "reset")) {
		int rc = whole_number(c, cli_value(c, "blocks"), 0, &kib);
		if (rc != CLI_OK)
			return rc;
	}
	put_net(&in, (uint32_t)kib);
	return plain(c, PIOCTL_SETCACHESIZE, &in, "New cache size set.");
}

int cli_fs_sysname(struct cli *c)
{
	const char *const *names;
	size_t n = cli_values(c, "newsys", &names);
	struct blob in = {.n = 0}, out;
	put_net(&in, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		put_text(&in, names[i]);
	if (n)
		return plain(c, PIOCTL_SYSNAME, &in, n > 1 ? "afscell fs: new sysname list set." : "afscell fs: new sysname set.");
	int rc = must(c, PIOCTL_SYSNAME, NULL, &in, &out);
	if (rc != CLI_OK)
		return rc;
	uint32_t have = net_at(&out, 0);
	json_t *all = cli_wants_json(c) ? json_array() : NULL;
	if (!all)
		printf("Current sysname%s is", have > 1 ? " list" : "");
	size_t at = 4;
	for (uint32_t i = 0; i < have; i++) {
		const char *s = text_at(&out, at);
		at += strlen(s) + 1;
		if (all)
			json_array_append_new(all, json_string(s));
		else
			printf(" '%s'", s);
	}
	if (all)
		return cli_print_json(c, all);
	printf("\n");
	return CLI_OK;
}

int cli_fs_getcrypt(struct cli *c)
{
	struct blob out;
	int rc = must(c, PIOCTL_GETCRYPT, NULL, NULL, &out);
	if (rc != CLI_OK)
		return rc;
	bool on = host_at(&out, 0);
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:b}", "crypt", on));
	printf("Security level is currently %s.\n", on ? "crypt (data security)" : "clear");
	return CLI_OK;
}

int cli_fs_setcrypt(struct cli *c)
{
	struct blob in = {.n = 0};
	const char *v = cli_value(c, "crypt");
	if (strcmp(v, "on") != 0 && strcmp(v, "off") != 0)
		return cli_misuse(c, "%s must be \"on\" or \"off\".", v);
	put_host(&in, strcmp(v, "on") == 0);
	return plain(c, PIOCTL_SETCRYPT, &in, NULL);
}

int cli_fs_storebehind(struct cli *c)
{
	struct blob in = {.n = 0}, out;
	long all = -1, kb = -1;
	int rc = cli_has(c, "allfiles") ? whole_number(c, cli_value(c, "allfiles"), 0, &all) : CLI_OK;
	if (rc == CLI_OK && cli_has(c, "kbytes"))
		rc = whole_number(c, cli_value(c, "kbytes"), 0, &kb);
	if (rc != CLI_OK)
		return rc;
	put_host(&in, (uint32_t)kb);
	put_host(&in, (uint32_t)all);
	rc = must(c, PIOCTL_STORBEHIND, NULL, &in, &out);
	if (rc != CLI_OK)
		return rc;
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:I}", "default_kib", (json_int_t)host_at(&out, 4)));
	if (!cli_has(c, "allfiles") || cli_has(c, "verbose"))
		printf("Default store asynchrony is %u kbytes.\n", host_at(&out, 4));
	return CLI_OK;
}

int cli_fs_bypassthreshold(struct cli *c)
{
	struct blob in = {.n = 0}, out;
	long size = 0;
	if (cli_has(c, "size")) {
		int rc = whole_number(c, cli_value(c, "size"), -1, &size);
		if (rc != CLI_OK)
			return rc;
		put_host(&in, (uint32_t)size);
	}
	int rc = must(c, PIOCTL_BYPASS, NULL, &in, &out);
	if (rc != CLI_OK)
		return rc;
	int32_t now = (int32_t)host_at(&out, 0);
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:i}", "threshold", (int)now));
	printf("Cache bypass threshold %d%s\n", now, now == -1 ? " (disabled)" : "");
	return CLI_OK;
}

int cli_fs_precache(struct cli *c)
{
	struct blob in = {.n = 0};
	long kib;
	int rc = whole_number(c, cli_value(c, "blocks"), 0, &kib);
	if (rc != CLI_OK)
		return rc;
	put_host(&in, (uint32_t)kib);
	return plain(c, PIOCTL_PRECACHE, &in, "New precache size set.");
}

int cli_fs_uuid(struct cli *c)
{
	if (!cli_has(c, "generate"))
		return cli_misuse(c, "Missing required parameter '-generate'");
	return plain(c, PIOCTL_NEWUUID, NULL, "New uuid generated.");
}

int cli_fs_messages(struct cli *c)
{
	static const char *const names[] = {"none", "user", "console", "all"};
	struct blob in = {.n = 0};
	uint32_t v = 0;
	while (v < ARRAY_SIZE(names) && strcmp(names[v], cli_value(c, "show")) != 0)
		v++;
	if (v == ARRAY_SIZE(names))
		return cli_misuse(c, "unrecognized message type %s", cli_value(c, "show"));
	put_host(&in, v);
	return plain(c, PIOCTL_GAG, &in, NULL);
}

int cli_fs_monitor(struct cli *c)
{
	struct blob in = {.n = 0}, out;
	const char *server = cli_value(c, "server");
	uint32_t ip = 0;
	if (server && strcmp(server, "off") == 0)
		ip = UINT32_MAX;
	else if (server && !address(server, &ip))
		return cli_fail(c, "host %s not found in host table.", server);
	put_net(&in, ip);
	int rc = must(c, PIOCTL_MARINER, NULL, &in, &out);
	if (rc != CLI_OK)
		return rc;
	uint32_t was = net_at(&out, 0);
	char host[NI_MAXHOST] = "";
	if (was != UINT32_MAX)
		host_name(was, cli_wants_json(c), host, sizeof(host));
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s}", "server", host));
	if (server)
		printf("Setting new monitor host to %s\n", server);
	else if (was == UINT32_MAX)
		printf("Cache monitoring is currently disabled.\n");
	else
		printf("Using host %s for monitor services.\n", host);
	return CLI_OK;
}

static int rxstat(struct cli *c, uint32_t cmd)
{
	struct blob in = {.n = 0};
	uint32_t v = (cli_has(c, "enable") ? 1u : 0u) | (cli_has(c, "disable") ? 2u : 0u) | (cli_has(c, "clear") ? 4u : 0u);
	if (!v || (v & 3) == 3)
		return cli_misuse(c, "You must specify at least one argument, and not both -enable and -disable");
	put_host(&in, v);
	return plain(c, cmd, &in, NULL);
}
int cli_fs_rxstatproc(struct cli *c) { return rxstat(c, PIOCTL_RXSTAT_PROC); }
int cli_fs_rxstatpeer(struct cli *c) { return rxstat(c, PIOCTL_RXSTAT_PEER); }

/* What has no meaning here says so. */
int cli_fs_exportafs(struct cli *c)
{
	return cli_fail(c, "Sorry, the %s-exporter type is currently not supported on this AFS client", cli_value(c, "type"));
}
int cli_fs_nukenfscreds(struct cli *c) { return cli_fail(c, "there is no NFS translator on this AFS client"); }
int cli_fs_discon(struct cli *c)
{
	if (strcmp(cli_value(c, "mode"), "online") == 0)
		return CLI_OK;
	return cli_fail(c, "disconnected mode is not supported; what was changed while a server is away is sent when it is back");
}
int cli_fs_setclientaddrs(struct cli *c)
{
	return cli_fail(c, "servers are told no addresses by this cache manager: they call where its calls come from");
}
int cli_fs_setcbaddr(struct cli *c) { return cli_fs_setclientaddrs(c); }

/* --- processes ------------------------------------------------------------------------------------------------------ */

int cli_ps(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL;
	int rc = cli_ask(c, "fs.waits", NULL, &reply);
	if (rc != CLI_OK)
		return rc;
	json_t *all = json_object_get(reply, "waits");
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(all));
	printf("%8s %7s %10s %11s  %s\n", "waits", "pid", "user", "volume", "for");
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *w = json_array_get(all, i);
		json_int_t ms = json_integer_value(json_object_get(w, "waited_ms"));
		const char *server = json_string_value(json_object_get(w, "server"));
		printf("%6lld.%01llds %7lld %10lld %11lld  %s%s%s\n", (long long)ms / 1000, (long long)ms % 1000 / 100,
			(long long)json_integer_value(json_object_get(w, "pid")), (long long)json_integer_value(json_object_get(w, "uid")),
			(long long)json_integer_value(json_object_get(w, "volume")), json_string_value(json_object_get(w, "what")),
			server && *server ? " " : "", server ? server : "");
	}
	return CLI_OK;
}

int cli_pagsh(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL;
	int rc = cli_ask(c, "fs.pag", NULL, &reply);
	if (rc != CLI_OK)
		return rc;
	gid_t groups[64];
	int n = getgroups(ARRAY_SIZE(groups) - 1, groups), k = 0;
	for (int i = 0; i < n; i++) /* one PAG at a time */
		if (groups[i] >> 24 != 0x41)
			groups[k++] = groups[i];
	groups[k++] = (gid_t)json_integer_value(json_object_get(reply, "pag"));
	if (n < 0 || setgroups((size_t)k, groups) < 0)
		return cli_fail(c, "a group has to be added to the process, which needs root (or CAP_SETGID): %s", strerror(errno));
	const char *const *words;
	char *argv[256] = {NULL};
	size_t count = cli_values(c, "command", &words);
	const char *shell = getenv("SHELL");
	if (count >= ARRAY_SIZE(argv))
		return cli_misuse(c, "at most %zu words", ARRAY_SIZE(argv) - 1);
	for (size_t i = 0; i < count; i++)
		argv[i] = (char *)(uintptr_t)words[i];
	if (!count)
		argv[0] = (char *)(uintptr_t)(shell && *shell ? shell : "/bin/sh");
	/* who came here by sudo is himself again */
	if (setgid(getgid()) < 0 || setuid(getuid()) < 0)
		return cli_fail(c, "%s", strerror(errno));
	fflush(NULL);
	execvp(argv[0], argv);
	return cli_fail(c, "%s: %s", argv[0], strerror(errno));
}
