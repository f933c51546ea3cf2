/* SPDX-License-Identifier: BSD-2-Clause
 * Names of files have any bytes; those that are no UTF-8 are counted, not shown, since JSON has no word for them. */
#include "cell/console_files.h"

#include "cell/cli/acl_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODYS ((uid_t)-2) /* the local user that PAGs are made for: none */

uint32_t console_files_enter(struct cell *c, const struct keys_token *token, const char *name)
{
	if (!c->client)
		return 0;
	mtx_lock(&c->parts_lock);
	uint32_t pag = c->idle_pag_n ? c->idle_pags[--c->idle_pag_n] : 0;
	mtx_unlock(&c->parts_lock);
	if (!pag)
		pag = client_pag_new(c->client, NOBODYS);
	if (!pag || !token)
		return pag;
	struct client_token t = {.cell = c->conf->cell, .name = name, .kad = token->kad};
	if (client_token_set(c->client, pag, &t) == AFS_OK)
		return pag;
	console_files_leave(c, pag);
	return 0;
}

void console_files_leave(struct cell *c, uint32_t pag)
{
	if (!pag)
		return;
	(void)client_token_drop(c->client, pag, NULL); /* AFS_ENOENT: he had none */
	mtx_lock(&c->parts_lock);
	if (c->idle_pag_n < CELL_PAGS_IDLE)
		c->idle_pags[c->idle_pag_n++] = pag;
	mtx_unlock(&c->parts_lock);
}

/* --- reading -------------------------------------------------------------------------------- */

static const char *type_of(enum afs_filetype type) { return type == AFS_DIR ? "directory" : type == AFS_SYMLINK ? "link" : "file"; }

static json_t *rights_json(uint32_t rights)
{
	char text[ACL_RIGHTS_TEXT];
	acl_rights_text(rights, text);
	return json_string(text);
}

static void put_status(json_t *o, const struct client_examine *x)
{
	char fid[48];
	snprintf(fid, sizeof(fid), "%u.%u.%u", x->fid.Volume, x->fid.Vnode, x->fid.Unique);
	json_object_set_new(o, "fid", json_string(fid));
	json_object_set_new(o, "type", json_string(type_of(x->type)));
	json_object_set_new(o, "owner", json_integer((int32_t)x->owner));
	json_object_set_new(o, "mode", json_integer(x->mode & 07777));
	json_object_set_new(o, "length", json_integer((json_int_t)x->length));
	json_object_set_new(o, "version", json_integer((json_int_t)x->data_version));
	json_object_set_new(o, "rights", rights_json(x->caller_access));
	json_object_set_new(o, "anonymous", rights_json(x->anonymous_access));
}

static json_t *acl_json(const char *text)
{
	struct acl_text a;
	if (!acl_text_read(text, &a))
		return NULL;
	json_t *o = json_object();
	for (unsigned kind = 0; kind < 2; kind++) {
		json_t *list = json_array();
		for (unsigned i = 0; i < a.n[kind]; i++)
			json_array_append_new(list, json_pack("{s:s, s:o}", "name", a.e[kind][i].name, "rights", rights_json(a.e[kind][i].rights)));
		json_object_set_new(o, kind ? "negative" : "positive", list);
	}
	json_object_set_new(o, "text", json_string(text));
	return o;
}

static void put_acl(struct client *cl, uid_t who, const struct client_file *f, json_t *o)
{
	CLEANUP(str) char *text = NULL;
	afs_err err = client_acl_get(cl, who, f, &text);
	json_t *acl = err == AFS_OK ? acl_json(text) : NULL;
	json_object_set_new(o, "acl", acl ? acl : json_null());
	if (!acl)
		json_object_set_new(o, "acl_error", json_string(err != AFS_OK ? afs_err_text(err) : "the file server's list cannot be understood"));
}

static void put_volume(struct client *cl, uid_t who, const struct client_file *f, json_t *o)
{
	struct client_volume v;
	afs_err err = client_volume_get(cl, who, f, &v);
	json_object_set_new(o, "volume", err != AFS_OK ? json_null()
			: json_pack("{s:s, s:I, s:b, s:I, s:I, s:I, s:I, s:s?}", "name", v.name, "id", (json_int_t)v.id, "read_only", (int)(v.type == 0),
				"quota_kib", (json_int_t)v.max_quota_kib, "used_kib", (json_int_t)v.used_kib, "part_free_kib",
				(json_int_t)v.part_free_kib, "part_size_kib", (json_int_t)v.part_size_kib, "motd", *v.motd ? v.motd : NULL));
}

struct names {
	char **list;
	size_t n, cap;
};

static afs_err take_name(void *ctx, const char *name)
{
	struct names *all = ctx;
	if (all->n == CONSOLE_NAMES_MAX)
		return AFS_ETOOMANY;
	if (all->n == all->cap) {
		size_t cap = all->cap ? 2 * all->cap : 64;
		char **more = mem_resize(all->list, all->cap, cap, sizeof(*more));
		if (!more)
			return AFS_ENOMEM;
		all->list = more;
		all->cap = cap;
	}
	all->list[all->n] = mem_strdup(name);
	return all->list[all->n] ? all->n++, AFS_OK : AFS_ENOMEM;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void put_names(struct client *cl, uid_t who, const struct client_file *dir, size_t from, size_t n, json_t *o)
{
	struct names all = {};
	afs_err err = client_names(cl, who, dir, take_name, &all);
	size_t hidden = 0;
	json_t *list = json_array();
	if (all.n)
		qsort(all.list, all.n, sizeof(*all.list), by_bytes);
	for (size_t i = from; i < all.n && i - from < n; i++) {
		struct client_file f;
		struct client_examine x;
		json_t *name = json_string(all.list[i]);
		if (!name) {
			hidden++;
			continue;
		}
		json_t *e = json_pack("{s:o}", "name", name);
		afs_err one = client_lookup(cl, who, dir, all.list[i], &f);
		if (one == AFS_OK)
			one = client_examine(cl, who, &f, &x);
		if (one == AFS_OK)
			put_status(e, &x);
		else
			json_object_set_new(e, "error", json_string(afs_err_text(one)));
		json_array_append_new(list, e);
	}
	if (err != AFS_OK) {
		json_object_set_new(o, "names_error", json_string(afs_err_text(err)));
		json_decref(list);
		list = json_null();
	}
	json_object_set_new(o, "names", list);
	json_object_set_new(o, "total", json_integer((json_int_t)all.n));
	json_object_set_new(o, "from", json_integer((json_int_t)from));
	json_object_set_new(o, "unreadable_names", json_integer((json_int_t)hidden));
	for (size_t i = 0; i < all.n; i++)
		mem_free(all.list[i]);
	mem_free(all.list);
}

static afs_err find(struct cell *c, uint32_t pag, const char *path, struct client_file *out, struct buf *why)
{
	if (!c->client || !pag) {
		buf_puts(why, "files are reached through this machine's cache manager, which is off (roles.client)");
		return AFS_ENOTSUP;
	}
	if (strlen(path) > CONSOLE_PATH_MAX)
		return AFS_ENAMETOOLONG;
	afs_err err = client_path(c->client, pag, path, true, out);
	if (err != AFS_OK)
		buf_printf(why, "/afs/%s: %s", path, afs_err_text(err));
	return err;
}

afs_err console_file_show(struct cell *c, uint32_t pag, const char *path, size_t from, size_t n, json_t **out, struct buf *why)
{
	struct client_file f;
	struct client_examine x;
	TRY(find(c, pag, path, &f, why));
	json_t *o = json_pack("{s:s, s:s}", "path", path, "cell", f.cell);
	if (!o)
		return AFS_ENOMEM;
	if (f.fid.Volume == 0) { /* the root of AFS: it has cells, and no server */
		json_object_set_new(o, "type", json_string("directory"));
		put_names(c->client, pag, &f, from, MIN(n, (size_t)CONSOLE_PAGE_MAX), o);
		*out = o;
		return AFS_OK;
	}
	afs_err err = client_examine(c->client, pag, &f, &x);
	if (err != AFS_OK) {
		buf_printf(why, "/afs/%s: %s", path, afs_err_text(err));
		json_decref(o);
		return err;
	}
	put_status(o, &x);
	put_volume(c->client, pag, &f, o);
	if (x.type == AFS_DIR) {
		put_acl(c->client, pag, &f, o);
		put_names(c->client, pag, &f, from, MIN(n, (size_t)CONSOLE_PAGE_MAX), o);
	}
	*out = o;
	return AFS_OK;
}

/* --- changing ------------------------------------------------------------------------------- */

static bool acl_of(const json_t *v, struct acl_text *out)
{
	*out = (struct acl_text){};
	for (unsigned kind = 0; kind < 2; kind++) {
		const json_t *list = json_object_get(v, kind ? "negative" : "positive");
		size_t i;
		json_t *e;
		if (!json_is_array(list) || json_array_size(list) > ACL_ENTRIES_MAX)
			return false;
		json_array_foreach(list, i, e)
		{
			const char *name = json_string_value(json_object_get(e, "name")), *rights = json_string_value(json_object_get(e, "rights"));
			struct acl_entry *entry = &out->e[kind][i];
			if (!name || !*name || strlen(name) > AFS_PRNAME_MAX || name[strcspn(name, " \t\r\n")] || !rights
				|| !acl_rights_of(rights, &entry->rights))
				return false;
			snprintf(entry->name, sizeof(entry->name), "%s", name);
			out->n[kind]++;
		}
	}
	return true;
}

afs_err console_acl_store(struct cell *c, uint32_t pag, const char *path, const char *was, const json_t *acl, struct buf *why)
{
	struct client_file f;
	struct acl_text a;
	CLEANUP(str) char *now = NULL, *text = NULL;
	if (!acl_of(acl, &a)) {
		buf_printf(why, "an access list has at most %d entries of each kind: a name and some of the letters rlidwka", ACL_ENTRIES_MAX);
		return AFS_EINVAL;
	}
	TRY(find(c, pag, path, &f, why));
	text = acl_text_write(&a);
	if (!text)
		return AFS_ENOMEM;
	if (strlen(text) >= AFS_ACL_TEXT_MAX) {
		buf_printf(why, "the list is longer than the %d bytes that a file server takes; put people into a group", AFS_ACL_TEXT_MAX);
		return AFS_EINVAL;
	}
	afs_err err = client_acl_get(c->client, pag, &f, &now);
	if (err == AFS_OK && strcmp(now, was) != 0) {
		buf_puts(why, "somebody else changed the list in the meantime; look at it again");
		return AFS_EBUSY;
	}
	if (err == AFS_OK)
		err = client_acl_set(c->client, pag, &f, text);
	if (err != AFS_OK)
		buf_printf(why, "/afs/%s: %s", path, afs_err_text(err));
	return err;
}

afs_err console_make(struct cell *c, uint32_t pag, const char *path, const char *name, const char *volume, bool rw, struct buf *why)
{
	struct client_file dir;
	char target[AFS_VOLNAME_MAX + 4];
	if (!*name || strlen(name) > AFS_NAME_MAX || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		buf_puts(why, "that is no name of a file");
		return AFS_EINVAL;
	}
	if (volume && (!*volume || strlen(volume) > AFS_VOLNAME_MAX || strpbrk(volume, ":#% \t\n"))) {
		buf_puts(why, "that is no name of a volume");
		return AFS_EINVAL;
	}
	TRY(find(c, pag, path, &dir, why));
	if (volume)
		snprintf(target, sizeof(target), "%c%s.", rw ? '%' : '#', volume);
	afs_err err = volume ? client_mount_make(c->client, pag, &dir, name, target) : client_dir_make(c->client, pag, &dir, name);
	if (err != AFS_OK)
		buf_printf(why, "/afs/%s/%s: %s", path, name, afs_err_text(err));
	return err;
}
