/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the command line may ask of the cache manager: token.* and fs.*.  Each verb acts for the user at
 * the other end of the socket, with his tokens.  Files are named by cell and fid, which the caller got
 * from the mount (attributes afs.cell and afs.fid) and so with his own rights on the way. */
#include "cell/verbs.h"

#include "cell/proto/token.h"

#include "cell/base/text.h"
#include "cell/cell_parts.h"
#include "client/pioctl/pioctl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static afs_err client_of(struct cell *c, struct ctl_request *rq, struct client **out)
{
	*out = c->client;
	return *out ? AFS_OK
		    : ctl_refuse(rq, AFS_ENOENT,
			      "the cache manager is off on this machine (roles.client)");
}

/* Whose tokens count: those of the caller's PAG, when he has one. */
static uid_t who(struct cell *c, const struct ctl_request *rq)
{
	return c->client ? client_identity(c->client, rq->uid, rq->pid) : rq->uid;
}

static afs_err refuse(struct ctl_request *rq, afs_err err)
{
	return err == AFS_OK ? AFS_OK : ctl_refuse(rq, err, "%s", afs_err_text(err));
}

/* --- tokens ---------------------------------------------------------------------------------- */

/* Where a user finds the realm: for aklog, which runs with his credentials. */
static afs_err verb_realm(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	(void)rq;
	json_object_set_new(out, "cell", json_string(c->conf->cell));
	json_object_set_new(out, "realm", json_string(c->conf->realm.name));
	static const char *const classes[] = {[CONF_CLASS_ANY] = "any", [CONF_CLASS_RXGK] = "rxgk", [CONF_CLASS_RXKAD] = "rxkad"};
	json_object_set_new(out, "class", json_string(classes[c->conf->client.security_class]));
	if (c->realm) {
		CLEANUP(str) char *path = mem_printf("%s/krb5.conf", c->conf->run);
		if (!path)
			return AFS_ENOMEM;
		json_object_set_new(out, "krb5_conf", json_string(path));
	}
	return AFS_OK;
}

static size_t unhex(const char *s, uint8_t *out, size_t cap)
{
	size_t n = strlen(s) / 2;
	if (strlen(s) % 2 || n > cap)
		return 0;
	for (size_t i = 0; i < n; i++) {
		unsigned v;
		if (sscanf(s + i * 2, "%2x", &v) != 1 || strspn(s + i * 2, "0123456789abcdef") < 2)
			return 0;
		out[i] = (uint8_t)v;
	}
	return n;
}

static afs_err verb_token_set(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct cell *c = ctx;
	struct client *client;
	TRY(client_of(c, rq, &client));
	const char *cell = ctl_str(rq, "cell"), *name = ctl_str(rq, "name"),
		   *set = ctl_str(rq, "set");
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, TOKEN_BLOB_MAX);
	CLEANUP(heap) uint8_t *bytes = mem_alloc(TOKEN_BLOB_MAX, 1);
	struct token_blob blob;
	size_t n;
	if (!bytes)
		return AFS_ENOMEM;
	if (!cell || !name || !set || !(n = unhex(set, bytes, TOKEN_BLOB_MAX)) || token_blob_get(bytes, n, &arena, &blob) != AFS_OK ||
		strcasecmp(blob.cell, cell) != 0)
		return ctl_refuse(rq, AFS_EINVAL, "that is no token");
	struct client_token token = {.cell = cell, .name = name, .both = blob.token};
	afs_err err = client_token_set(client, who(ctx, rq), &token);
	explicit_bzero(&token, sizeof(token));
	explicit_bzero(&blob, sizeof(blob));
	explicit_bzero(bytes, TOKEN_BLOB_MAX);
	if (err == AFS_ENOENT)
		return ctl_refuse(rq, err, "%s: the cache manager does not know this cell", cell);
	return refuse(rq, err);
}

/* The AFS id that a principal has in this cell; null: none, or it cannot be asked for. */
static json_t *id_of_principal(struct cell *c, const char *cell, const char *principal)
{
	struct rx_caller who = {.authenticated = true};
	struct keys_name name;
	int32_t id;
	const char *at = strrchr(principal, '@');
	size_t n = at ? (size_t)(at - principal) : 0, slash = strcspn(principal, "/");
	if (!c->self || !n || strcasecmp(cell, c->conf->cell) != 0)
		return json_null();
	snprintf(who.name, sizeof(who.name), "%.*s", (int)MIN(slash, n), principal);
	if (slash < n)
		snprintf(who.instance, sizeof(who.instance), "%.*s", (int)(n - slash - 1), principal + slash + 1);
	snprintf(who.cell, sizeof(who.cell), "%s", at + 1);
	adapters_afs_name(c->adapters, &who, &name);
	for (char *p = name.text; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return self_id_of(c->self, name.text, &id) == AFS_OK ? json_integer(id) : json_null();
}

static afs_err verb_token_list(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	TRY(client_of(ctx, rq, &client));
	struct client_token_info list[64];
	size_t n =
		MIN(client_token_list(client, who(ctx, rq), list, ARRAY_SIZE(list)), ARRAY_SIZE(list));
	json_t *tokens = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(tokens,
			json_pack("{s:s, s:s, s:b, s:b, s:s*, s:o, s:I, s:I, s:b}", "cell", list[i].cell, "name",
				list[i].name, "rxkad", list[i].rxkad, "rxgk", list[i].rxgk, "level",
				list[i].rxgk ? rx_level_text(list[i].level) : NULL, "afs_id", id_of_principal(ctx, list[i].cell, list[i].name), "begins", (json_int_t)list[i].begins, "expires",
				(json_int_t)list[i].expires, "expired", list[i].expired));
	json_object_set_new(out, "tokens", tokens);
	return AFS_OK;
}

static afs_err verb_token_drop(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct client *client;
	TRY(client_of(ctx, rq, &client));
	afs_err err = client_token_drop(client, who(ctx, rq), ctl_str(rq, "cell"));
	return err == AFS_ENOENT ? ctl_refuse(rq, err, "there is no such token") : refuse(rq, err);
}

/* --- files ------------------------------------------------------------------------------------- */

static afs_err file_of(struct ctl_request *rq, struct client_file *out)
{
	const char *cell = ctl_str(rq, "cell"), *fid = ctl_str(rq, "fid");
	*out = (struct client_file){0};
	char more;
	if (!cell || !fid || strlen(cell) >= sizeof(out->cell) ||
		sscanf(fid, "%x:%x:%x%c", &out->fid.Volume, &out->fid.Vnode, &out->fid.Unique,
			&more) != 3)
		return ctl_refuse(rq, AFS_EINVAL, "a file is named by its cell and fid");
	strcpy(out->cell, cell);
	return AFS_OK;
}

static afs_err begin(
	struct cell *c, struct ctl_request *rq, struct client **client, struct client_file *f)
{
	TRY(client_of(c, rq, client));
	return file_of(rq, f);
}

static afs_err verb_listacl(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	struct client_file f;
	CLEANUP(str) char *text = NULL;
	TRY(begin(ctx, rq, &client, &f));
	TRY(refuse(rq, client_acl_get(client, who(ctx, rq), &f, &text)));
	json_object_set_new(out, "acl", json_string(text));
	return AFS_OK;
}

static afs_err verb_setacl(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct client *client;
	struct client_file f;
	TRY(begin(ctx, rq, &client, &f));
	const char *acl = ctl_str(rq, "acl");
	if (!acl)
		return ctl_refuse(rq, AFS_EINVAL, "an ACL is needed");
	afs_err err = client_acl_set(client, who(ctx, rq), &f, acl);
	if (err == AFS_EINVAL)
		return ctl_refuse(rq, err,
			"the server does not take this ACL: a name it does not know, or more than "
			"20 entries");
	return refuse(rq, err);
}

static afs_err verb_volume(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	struct client_file f;
	struct client_volume v;
	TRY(begin(ctx, rq, &client, &f));
	TRY(refuse(rq, client_volume_get(client, who(ctx, rq), &f, &v)));
	json_object_set_new(out, "volume", json_integer(v.id));
	json_object_set_new(out, "parent", json_integer(v.parent_id));
	json_object_set_new(out, "name", json_string(v.name));
	json_object_set_new(out, "type", json_string(v.type ? "RW" : "RO"));
	json_object_set_new(out, "quota_kib", json_integer(v.max_quota_kib));
	json_object_set_new(out, "used_kib", json_integer(v.used_kib));
	json_object_set_new(out, "partition_free_kib", json_integer(v.part_free_kib));
	json_object_set_new(out, "partition_size_kib", json_integer(v.part_size_kib));
	json_object_set_new(out, "online", json_boolean(v.online));
	json_object_set_new(out, "message", json_string(v.offline_msg));
	return AFS_OK;
}

static afs_err verb_setquota(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct client *client;
	struct client_file f;
	TRY(begin(ctx, rq, &client, &f));
	json_int_t max = ctl_int(rq, "quota_kib", -1);
	if (max < 0 || max > INT32_MAX)
		return ctl_refuse(rq, AFS_EINVAL, "a quota is 0 (none) to 2147483647 KiB");
	return refuse(rq, client_quota_set(client, who(ctx, rq), &f, (uint32_t)max));
}

static afs_err verb_examine(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	struct client_file f;
	struct client_examine e;
	TRY(begin(ctx, rq, &client, &f));
	TRY(refuse(rq, client_examine(client, who(ctx, rq), &f, &e)));
	json_object_set_new(out, "owner", json_integer(e.owner));
	json_object_set_new(out, "group", json_integer(e.group));
	json_object_set_new(out, "mode", json_integer(e.mode));
	json_object_set_new(out, "length", json_integer((json_int_t)e.length));
	json_object_set_new(out, "data_version", json_integer((json_int_t)e.data_version));
	json_object_set_new(out, "caller_access", json_integer(e.caller_access));
	json_object_set_new(out, "anonymous_access", json_integer(e.anonymous_access));
	return verb_volume(ctx, rq, out);
}

static afs_err verb_mkmount(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct client *client;
	struct client_file f;
	TRY(begin(ctx, rq, &client, &f));
	const char *name = ctl_str(rq, "name"), *target = ctl_str(rq, "target");
	if (!name || !target)
		return ctl_refuse(rq, AFS_EINVAL, "a name and a target are needed");
	return refuse(rq, client_mount_make(client, who(ctx, rq), &f, name, target));
}

static afs_err verb_lsmount(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	struct client_file f;
	CLEANUP(str) char *target = NULL;
	TRY(begin(ctx, rq, &client, &f));
	const char *name = ctl_str(rq, "name");
	afs_err err = name ? client_mount_read(client, who(ctx, rq), &f, name, &target) : AFS_EINVAL;
	if (err == AFS_EINVAL)
		return ctl_refuse(rq, err, "'%s' is not a mount point.", name ? name : "");
	TRY(refuse(rq, err));
	json_object_set_new(out, "target", json_string(target));
	return AFS_OK;
}

static afs_err verb_rmmount(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct client *client;
	struct client_file f;
	TRY(begin(ctx, rq, &client, &f));
	const char *name = ctl_str(rq, "name");
	afs_err err = name ? client_mount_remove(client, who(ctx, rq), &f, name) : AFS_EINVAL;
	return err == AFS_EINVAL
		       ? ctl_refuse(rq, err, "'%s' is not a mount point.", name ? name : "")
		       : refuse(rq, err);
}

static afs_err verb_whereis(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	struct client_file f;
	uint32_t ips[16];
	size_t n = 0;
	TRY(begin(ctx, rq, &client, &f));
	TRY(refuse(rq, client_whereis(client, who(ctx, rq), &f, ips, ARRAY_SIZE(ips), &n)));
	json_t *servers = json_array();
	for (size_t i = 0; i < n; i++) {
		char text[16];
		json_array_append_new(servers, json_string(text_ipv4_of(text, ips[i])));
	}
	json_object_set_new(out, "servers", servers);
	return AFS_OK;
}

static afs_err verb_flush(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct client *client;
	struct client_file f;
	TRY(begin(ctx, rq, &client, &f));
	return refuse(rq, client_flush(client, &f, ctl_bool(rq, "volume")));
}

static afs_err verb_checkvolumes(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	struct client *client;
	TRY(client_of(ctx, rq, &client));
	client_check_volumes(client);
	return AFS_OK;
}

/* One call of pioctl.md, as stock tools make it over UDP: the fs suite is written on this. */
static afs_err verb_pioctl(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	struct client *client;
	TRY(client_of(c, rq, &client));
	const char *in = ctl_str(rq, "in");
	uint8_t bytes[16384];
	size_t n = in && *in ? unhex(in, bytes, sizeof(bytes)) : 0;
	if (in && *in && !n)
		return ctl_refuse(rq, AFS_EINVAL, "in: an even number of hexadecimal digits, at most %zu bytes", sizeof(bytes));
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 256 * 1024);
	struct pioctl x = {.client = client, .uid = rq->uid, .who = who(c, rq), .path = ctl_str(rq, "path"),
		.follow = ctl_bool(rq, "follow"), .cmd = (uint32_t)ctl_int(rq, "cmd", 0), .in = {bytes, (uint32_t)n}, .arena = &arena};
	int eno = pioctl_run(&x);
	CLEANUP(buf) struct buf hex = {0};
	for (uint32_t i = 0; i < x.out.len && !eno; i++)
		buf_printf(&hex, "%02x", x.out.p[i]);
	if (hex.err)
		return hex.err;
	json_object_set_new(out, "errno", json_integer(eno));
	json_object_set_new(out, "out", json_string(hex.data ? hex.data : ""));
	return AFS_OK;
}

static afs_err verb_pag(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	TRY(client_of(ctx, rq, &client));
	uint32_t pag = client_pag_new(client, rq->uid);
	if (!pag)
		return AFS_ENOMEM;
	json_object_set_new(out, "pag", json_integer(pag));
	return AFS_OK;
}

static afs_err verb_waits(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct client *client;
	TRY(client_of(ctx, rq, &client));
	struct client_wait w[128];
	size_t n = MIN(client_waits(client, w, ARRAY_SIZE(w)), ARRAY_SIZE(w));
	json_t *all = json_array();
	for (size_t i = 0; i < n; i++) {
		char server[16];
		snprintf(server, sizeof(server), "%u.%u.%u.%u", w[i].server >> 24, w[i].server >> 16 & 255, w[i].server >> 8 & 255, w[i].server & 255);
		json_array_append_new(all, json_pack("{s:I, s:I, s:s, s:I, s:s, s:I}", "uid", (json_int_t)w[i].uid, "pid", (json_int_t)w[i].pid,
			"what", w[i].what, "volume", (json_int_t)w[i].volume, "server", w[i].server ? server : "", "waited_ms", (json_int_t)w[i].waited_ms));
	}
	json_object_set_new(out, "waits", all);
	return AFS_OK;
}

static const struct ctl_verb verbs[] = {
	{"fs.pioctl", CTL_ANYONE, verb_pioctl},
	{"fs.pag", CTL_ANYONE, verb_pag},
	{"fs.waits", CTL_ANYONE, verb_waits},
	{"token.realm", CTL_ANYONE, verb_realm},
	{"token.set", CTL_ANYONE, verb_token_set},
	{"token.list", CTL_ANYONE, verb_token_list},
	{"token.drop", CTL_ANYONE, verb_token_drop},
	{"fs.listacl", CTL_ANYONE, verb_listacl},
	{"fs.setacl", CTL_ANYONE, verb_setacl},
	{"fs.volume", CTL_ANYONE, verb_volume},
	{"fs.setquota", CTL_ANYONE, verb_setquota},
	{"fs.examine", CTL_ANYONE, verb_examine},
	{"fs.mkmount", CTL_ANYONE, verb_mkmount},
	{"fs.lsmount", CTL_ANYONE, verb_lsmount},
	{"fs.rmmount", CTL_ANYONE, verb_rmmount},
	{"fs.whereis", CTL_ANYONE, verb_whereis},
	{"fs.flush", CTL_ANYONE, verb_flush},
	{"fs.checkvolumes", CTL_ANYONE, verb_checkvolumes},
};

afs_err verbs_add_client(struct ctl_server *ctl, struct cell *c)
{
	return ctl_server_add(ctl, verbs, ARRAY_SIZE(verbs), c);
}
