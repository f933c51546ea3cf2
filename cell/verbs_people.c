/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the command line may ask about people: user.* and group.*.
 *
 * A user is two things, a principal in the realm and an entry in the protection database.  Each verb brings
 * both into the same state, in an order in which what is half done is harmless (a principal without an entry
 * is anonymous, an entry without a principal is nobody's), and takes back its first half when the second
 * fails.  What a crash left half done is completed by asking again.  With an external realm only the entry is
 * here.  c->lock keeps reconciliation away meanwhile. */
#include "cell/verbs.h"

#include "cell/base/text.h"
#include "cell/cell_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct who {
	const char *principal;         /* "joe", "joe/admin" */
	char name[AFS_PRNAME_MAX + 1]; /* "joe", "joe.admin" */
};

static afs_err refuse(struct ctl_request *rq, afs_err err, const struct buf *why)
{
	return ctl_refuse(rq, err, "%s", why && why->data && why->len ? why->data : afs_err_text(err));
}

static void trail(struct cell *c, const struct ctl_request *rq, const char *call, const char *object, afs_err err)
{
	char who[32];
	snprintf(who, sizeof(who), "uid %u", (unsigned)rq->uid);
	audit_local(c->audit, who, call, object, err);
}

static afs_err begin(struct cell *c, struct ctl_request *rq)
{
	return c->self ? AFS_OK : ctl_refuse(rq, AFS_ENOENT, "this machine serves nothing of the cell: it has no key to ask with");
}

/* AFS has no case in names and writes an instance with a dot, so two principals that differ in these alone
 * would be one person. */
static afs_err who_of(struct cell *c, struct ctl_request *rq, struct who *out)
{
	const char *s = ctl_str(rq, "name");
	TRY(begin(c, rq));
	if (!s || !*s || strlen(s) > AFS_PRNAME_MAX)
		return ctl_refuse(rq, AFS_EBADNAME, "a name has 1 to %d letters", AFS_PRNAME_MAX);
	for (const char *p = s; *p; p++)
		if (isupper((unsigned char)*p) || strchr(".@: ", *p) || iscntrl((unsigned char)*p))
			return ctl_refuse(rq, AFS_EBADNAME, "\"%s\" cannot name a user: small letters, digits, - and _, as in joe or joe/admin", s);
	out->principal = s;
	snprintf(out->name, sizeof(out->name), "%s", s);
	char *slash = strchr(out->name, '/');
	if (slash)
		*slash = '.';
	if (strcmp(out->name, "anonymous") == 0 || (slash && strchr(slash + 1, '/')))
		return ctl_refuse(rq, AFS_EBADNAME, "\"%s\" cannot name a user", s);
	return AFS_OK;
}

/* --- looking --------------------------------------------------------------------------------- */

static void put_principal(struct cell *c, const struct realm_user *u, json_t *o)
{
	json_object_set_new(o, "principal", c->realm ? (u ? json_string(u->name) : json_null()) : json_null());
	json_object_set_new(o, "disabled", json_boolean(u && u->disabled));
	json_object_set_new(o, "password_changed", u && u->password_changed ? json_integer(u->password_changed / NS_PER_SEC) : json_null());
}

static afs_err names_of(struct cell *c, const int32_t *ids, uint32_t n, json_t *list)
{
	for (uint32_t i = 0; i < n; i++) {
		char name[AFS_PRNAME_MAX + 1];
		afs_err err = self_name_of(c->self, ids[i], name);
		if (err == AFS_ENOENT)
			snprintf(name, sizeof(name), "%d", ids[i]);
		else
			TRY(err);
		json_array_append_new(list, json_string(name));
	}
	return AFS_OK;
}

static afs_err put_members(struct cell *c, int32_t id, const char *key, json_t *o)
{
	CLEANUP(heap) int32_t *ids = NULL;
	uint32_t n = 0;
	TRY(self_members(c->self, id, &ids, &n));
	json_t *list = json_array();
	json_object_set_new(o, key, list);
	return names_of(c, ids, n, list);
}

static afs_err verb_user_show(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	struct who who;
	int32_t id;
	struct realm_user u;
	TRY(who_of(c, rq, &who));
	bool principal = c->realm && realm_user_find(c->realm, who.principal, &u, NULL) == AFS_OK;
	afs_err err = self_id_of(c->self, who.name, &id);
	if (err != AFS_OK && err != AFS_ENOENT)
		return refuse(rq, err, NULL);
	if (err == AFS_ENOENT && !principal)
		return ctl_refuse(rq, AFS_ENOENT, "there is no user %s", who.principal);
	json_object_set_new(out, "name", json_string(who.name));
	json_object_set_new(out, "id", err == AFS_OK ? json_integer(id) : json_null());
	put_principal(c, principal ? &u : NULL, out);
	if (err == AFS_OK)
		err = put_members(c, id, "groups", out);
	else
		err = AFS_OK;
	return err == AFS_OK ? AFS_OK : refuse(rq, err, NULL);
}

struct listing {
	struct cell *c;
	json_t *list, *by_name; /* by_name: entries by AFS name, borrowed rows */
	bool groups;
};

static afs_err one_entry(void *ctx, const struct prcheckentry *e)
{
	struct listing *l = ctx;
	if ((e->id < 0) != l->groups || e->id == AFS_ANONYMOUS || strchr(e->name, '@'))
		return AFS_OK;
	json_t *o = json_pack("{s:s, s:i, s:i}", "name", e->name, "id", e->id, l->groups ? "members" : "groups", e->count);
	if (!o)
		return AFS_ENOMEM;
	if (l->groups)
		json_object_set_new(o, "owner", json_integer(e->owner));
	else
		put_principal(l->c, NULL, o);
	json_object_set(l->by_name, e->name, o);
	json_array_append_new(l->list, o);
	return AFS_OK;
}

static afs_err add_principals(struct cell *c, struct listing *l, struct buf *why)
{
	struct realm_user *users = NULL;
	size_t n = 0;
	TRY(realm_users(c->realm, &users, &n, why));
	for (size_t i = 0; i < n; i++) {
		char name[160];
		if (users[i].service)
			continue;
		snprintf(name, sizeof(name), "%s", users[i].name);
		name[strcspn(name, "/")] = strchr(name, '/') ? '.' : '\0';
		json_t *o = json_object_get(l->by_name, name);
		if (!o) {
			o = json_pack("{s:s, s:n, s:i}", "name", name, "id", "groups", 0);
			json_array_append_new(l->list, o);
		}
		put_principal(c, &users[i], o);
	}
	realm_users_free(users, n);
	return AFS_OK;
}

static afs_err list(struct cell *c, struct ctl_request *rq, json_t *out, const char *key, bool groups)
{
	CLEANUP(buf) struct buf why = {};
	TRY(begin(c, rq));
	struct listing l = {c, json_array(), json_object(), groups};
	json_object_set_new(out, key, l.list);
	afs_err err = self_entry_each(c->self, one_entry, &l);
	if (err == AFS_OK && !groups && c->realm)
		err = add_principals(c, &l, &why);
	json_decref(l.by_name);
	if (err != AFS_OK)
		return refuse(rq, err, &why);
	size_t i;
	json_t *o;
	json_array_foreach(l.list, i, o)
	{ /* a group's owner by name */
		char name[AFS_PRNAME_MAX + 1] = "";
		int32_t owner = (int32_t)json_integer_value(json_object_get(o, "owner"));
		if (groups && self_name_of(c->self, owner, name) == AFS_OK)
			json_object_set_new(o, "owner", json_string(name));
	}
	return AFS_OK;
}

static afs_err verb_user_list(void *ctx, struct ctl_request *rq, json_t *out) { return list(ctx, rq, out, "users", false); }
static afs_err verb_group_list(void *ctx, struct ctl_request *rq, json_t *out) { return list(ctx, rq, out, "groups", true); }

/* --- users ----------------------------------------------------------------------------------- */

/* The principal of a new user.  One that is there without an entry is the rest of an attempt: it gets the
 * password that is given now.  *made: by us, to be taken back. */
static afs_err make_principal(struct cell *c, struct ctl_request *rq, const struct who *who, json_t *out, bool *made)
{
	CLEANUP(buf) struct buf why = {};
	const char *password = ctl_str(rq, "password");
	char random[REALM_PASSWORD_LEN + 1] = "";
	if (!c->realm)
		return password ? ctl_refuse(rq, AFS_EINVAL, "the realm %s keeps its own passwords; make the principal there", c->conf->realm.name)
				: AFS_OK;
	afs_err err = realm_user_add(c->realm, who->principal, password, random, &why);
	*made = err == AFS_OK;
	if (err == AFS_EEXIST) {
		why.len = 0;
		err = realm_user_password(c->realm, who->principal, password, random, &why);
	}
	if (err == AFS_OK && !password)
		json_object_set_new(out, "password", json_string(random));
	explicit_bzero(random, sizeof(random));
	return err == AFS_OK ? AFS_OK : refuse(rq, err, &why);
}

static afs_err join(struct cell *c, struct ctl_request *rq, int32_t uid, const json_t *groups)
{
	size_t i;
	json_t *g;
	json_array_foreach(groups, i, g)
	{
		int32_t gid;
		const char *name = json_string_value(g);
		afs_err err = name ? self_id_of(c->self, name, &gid) : AFS_EINVAL;
		if (err == AFS_OK)
			err = self_member_add(c->self, uid, gid);
		if (err != AFS_OK && err != AFS_EIDEXIST)
			return ctl_refuse(rq, err, "group %s: %s", name ? name : "?", err == AFS_ENOENT ? "no such group; make it first: afscell group add" : afs_err_text(err));
	}
	return AFS_OK;
}

static afs_err user_add_locked(struct cell *c, struct ctl_request *rq, const struct who *who, json_t *out)
{
	bool principal = c->realm && realm_user_exists(c->realm, who->principal), made_principal = false, made_entry = false;
	int32_t id, want = (int32_t)ctl_int(rq, "id", 0);
	afs_err err = self_id_of(c->self, who->name, &id);
	if (err != AFS_OK && err != AFS_ENOENT)
		return refuse(rq, err, NULL);
	bool entry = err == AFS_OK;
	if (entry && (principal || !c->realm))
		return ctl_refuse(rq, AFS_EEXIST, "there is a user %s already, id %d", who->principal, id);
	if (entry && want && want != id)
		return ctl_refuse(rq, AFS_EIDEXIST, "%s is in the protection database with id %d, not %d; an id stays, since files and access lists name it",
			who->name, id, want);
	TRY(make_principal(c, rq, who, out, &made_principal));
	if (!entry) {
		err = self_user_add(c->self, who->name, want, &id);
		made_entry = err == AFS_OK;
		if (err == AFS_EIDEXIST)
			err = ctl_refuse(rq, err, "id %d belongs to someone else; choose another one, or leave it out", want);
		else if (err != AFS_OK)
			err = ctl_refuse(rq, err, "%s cannot be entered in the protection database: %s", who->name, afs_err_text(err));
	} else {
		err = AFS_OK;
	}
	if (err == AFS_OK)
		err = join(c, rq, id, json_object_get(rq->args, "groups"));
	if (err != AFS_OK) { /* as it was before */
		if (made_entry)
			(void)self_entry_delete(c->self, id); /* what cannot be taken back is completed by asking again */
		if (made_principal)
			(void)realm_user_delete(c->realm, who->principal, NULL);
		json_object_del(out, "password");
		return err;
	}
	json_object_set_new(out, "name", json_string(who->name));
	json_object_set_new(out, "id", json_integer(id));
	json_object_set_new(out, "principal", c->realm ? json_string(who->principal) : json_null());
	json_object_set_new(out, "completed", json_boolean(entry || principal));
	return AFS_OK;
}

static afs_err verb_user_add(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	struct who who;
	TRY(who_of(c, rq, &who));
	json_int_t id = ctl_int(rq, "id", 0);
	if (id < 0 || id > INT32_MAX - 1 || id == AFS_ANONYMOUS)
		return ctl_refuse(rq, AFS_EINVAL, "an id of a user is from 1 to %d, and not %d", INT32_MAX - 1, AFS_ANONYMOUS);
	mtx_lock(&c->lock);
	afs_err err = user_add_locked(c, rq, &who, out);
	mtx_unlock(&c->lock);
	trail(c, rq, "user.add", who.principal, err);
	return err;
}

static afs_err need_realm(struct cell *c, struct ctl_request *rq)
{
	return c->realm ? AFS_OK
			: ctl_refuse(rq, AFS_EINVAL, "the realm %s is not the cell's own: change its principals there (kadmin)", c->conf->realm.name);
}

static afs_err verb_user_passwd(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	struct who who;
	CLEANUP(buf) struct buf why = {};
	char random[REALM_PASSWORD_LEN + 1] = "";
	const char *password = ctl_str(rq, "password");
	TRY(who_of(c, rq, &who));
	TRY(need_realm(c, rq));
	mtx_lock(&c->lock);
	afs_err err = realm_user_password(c->realm, who.principal, password, random, &why);
	mtx_unlock(&c->lock);
	trail(c, rq, "user.passwd", who.principal, err);
	json_object_set_new(out, "name", json_string(who.name));
	if (err == AFS_OK && !password)
		json_object_set_new(out, "password", json_string(random));
	explicit_bzero(random, sizeof(random));
	return err == AFS_OK ? AFS_OK : refuse(rq, err, &why);
}

static afs_err set_disabled(struct cell *c, struct ctl_request *rq, json_t *out, bool disabled)
{
	struct who who;
	CLEANUP(buf) struct buf why = {};
	TRY(who_of(c, rq, &who));
	TRY(need_realm(c, rq));
	mtx_lock(&c->lock);
	afs_err err = realm_user_disable(c->realm, who.principal, disabled, &why);
	mtx_unlock(&c->lock);
	trail(c, rq, disabled ? "user.disable" : "user.enable", who.principal, err);
	json_object_set_new(out, "name", json_string(who.name));
	json_object_set_new(out, "disabled", json_boolean(disabled));
	return err == AFS_OK ? AFS_OK : refuse(rq, err, &why);
}

static afs_err verb_user_disable(void *ctx, struct ctl_request *rq, json_t *out) { return set_disabled(ctx, rq, out, true); }
static afs_err verb_user_enable(void *ctx, struct ctl_request *rq, json_t *out) { return set_disabled(ctx, rq, out, false); }

static bool is_administrator(struct cell *c, const char *name)
{
	char text[AFS_PRNAME_MAX + 1];
	for (size_t i = 0; adapters_administrator(c->adapters, i, text, sizeof(text)); i++)
		if (strcmp(text, name) == 0)
			return true;
	return false;
}

/* No more tickets first; then the entry; then the principal, which cannot be brought back. */
static afs_err user_remove_locked(struct cell *c, struct ctl_request *rq, const struct who *who)
{
	CLEANUP(buf) struct buf why = {};
	struct realm_user u;
	int32_t id;
	bool principal = c->realm && realm_user_find(c->realm, who->principal, &u, NULL) == AFS_OK;
	afs_err err = self_id_of(c->self, who->name, &id);
	if (err != AFS_OK && err != AFS_ENOENT)
		return refuse(rq, err, NULL);
	bool entry = err == AFS_OK;
	if (!entry && !principal)
		return ctl_refuse(rq, AFS_ENOENT, "there is no user %s", who->principal);
	if (is_administrator(c, who->name))
		return ctl_refuse(rq, AFS_EPERM, "%s is one of the configuration's administrators; take the name out there first", who->name);
	err = principal ? realm_user_disable(c->realm, who->principal, true, &why) : AFS_OK;
	if (err != AFS_OK)
		return refuse(rq, err, &why);
	err = entry ? self_entry_delete(c->self, id) : AFS_OK;
	if (err != AFS_OK) {
		if (principal && !u.disabled)
			(void)realm_user_disable(c->realm, who->principal, false, NULL); /* at worst he stays disabled */
		return ctl_refuse(rq, err, "%s stays: the entry cannot be deleted: %s", who->principal, afs_err_text(err));
	}
	err = principal ? realm_user_delete(c->realm, who->principal, &why) : AFS_OK;
	return err == AFS_OK ? AFS_OK : ctl_refuse(rq, err, "%s; the entry is gone, the principal is disabled: remove again", why.data ? why.data : "");
}

static afs_err verb_user_remove(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	struct who who;
	TRY(who_of(c, rq, &who));
	mtx_lock(&c->lock);
	afs_err err = user_remove_locked(c, rq, &who);
	mtx_unlock(&c->lock);
	trail(c, rq, "user.remove", who.principal, err);
	json_object_set_new(out, "name", json_string(who.name));
	return err;
}

/* --- groups ---------------------------------------------------------------------------------- */

/* The id of what argument `key` names, and that it is a group or not. */
static afs_err id_of(struct cell *c, struct ctl_request *rq, const char *name, bool group, int32_t *id)
{
	TRY(begin(c, rq));
	afs_err err = name ? self_id_of(c->self, name, id) : AFS_EINVAL;
	if (err == AFS_OK && group && *id >= 0)
		return ctl_refuse(rq, AFS_EINVAL, "%s is a user, not a group", name);
	return err == AFS_OK      ? AFS_OK
	       : err == AFS_ENOENT ? ctl_refuse(rq, err, "there is no %s %s", group ? "group" : "user or group", name)
				   : refuse(rq, err, NULL);
}

static afs_err group_add_locked(struct cell *c, struct ctl_request *rq, const char *name, json_t *out)
{
	int32_t gid, owner = AFS_ADMINISTRATORS;
	const char *owned_by = ctl_str(rq, "owner");
	CLEANUP(str) char *prefix = mem_strndup(name, strcspn(name, ":"));
	if (!prefix)
		return AFS_ENOMEM;
	if (owned_by || strchr(name, ':'))
		TRY(id_of(c, rq, owned_by ? owned_by : prefix, false, &owner));
	afs_err err = self_group_add(c->self, name, (int32_t)ctl_int(rq, "id", 0), owner, &gid);
	if (err != AFS_OK)
		return ctl_refuse(rq, err, "group %s cannot be made: %s", name, afs_err_text(err));
	size_t i;
	json_t *m;
	json_array_foreach(json_object_get(rq->args, "members"), i, m)
	{
		int32_t uid;
		err = id_of(c, rq, json_string_value(m), false, &uid);
		if (err == AFS_OK && (err = self_member_add(c->self, uid, gid)) != AFS_OK)
			err = ctl_refuse(rq, err, "%s cannot be made a member: %s", json_string_value(m), afs_err_text(err));
		if (err != AFS_OK) {
			(void)self_entry_delete(c->self, gid); /* as it was before */
			return err;
		}
	}
	json_object_set_new(out, "name", json_string(name));
	json_object_set_new(out, "id", json_integer(gid));
	return AFS_OK;
}

static afs_err verb_group_add(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	const char *name = ctl_str(rq, "name");
	json_int_t id = ctl_int(rq, "id", 0);
	TRY(begin(c, rq));
	if (!name || !*name || strlen(name) > AFS_PRNAME_MAX)
		return ctl_refuse(rq, AFS_EBADNAME, "a name has 1 to %d letters", AFS_PRNAME_MAX);
	if (id > 0 || id < -(json_int_t)INT32_MAX)
		return ctl_refuse(rq, AFS_EINVAL, "an id of a group is negative");
	mtx_lock(&c->lock);
	afs_err err = group_add_locked(c, rq, name, out);
	mtx_unlock(&c->lock);
	trail(c, rq, "group.add", name, err);
	return err;
}

static afs_err verb_group_show(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	int32_t gid;
	struct prcheckentry e;
	char owner[AFS_PRNAME_MAX + 1] = "";
	TRY(id_of(c, rq, ctl_str(rq, "name"), true, &gid));
	afs_err err = self_entry_find(c->self, gid, &e);
	if (err == AFS_OK && self_name_of(c->self, e.owner, owner) != AFS_OK)
		snprintf(owner, sizeof(owner), "%d", e.owner);
	json_object_set_new(out, "name", json_string(ctl_str(rq, "name")));
	json_object_set_new(out, "id", json_integer(gid));
	json_object_set_new(out, "owner", json_string(owner));
	if (err == AFS_OK)
		err = put_members(c, gid, "members", out);
	return err == AFS_OK ? AFS_OK : refuse(rq, err, NULL);
}

static afs_err verb_group_remove(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	int32_t gid;
	const char *name = ctl_str(rq, "name");
	TRY(id_of(c, rq, name, true, &gid));
	if (strncmp(name, "system:", 7) == 0)
		return ctl_refuse(rq, AFS_EPERM, "%s is one of the cell's own groups", name);
	afs_err err = self_entry_delete(c->self, gid);
	trail(c, rq, "group.remove", name, err);
	json_object_set_new(out, "name", json_string(name));
	return err == AFS_OK ? AFS_OK : refuse(rq, err, NULL);
}

static afs_err change_members(struct cell *c, struct ctl_request *rq, json_t *out, bool add)
{
	int32_t gid, uid;
	const char *name = ctl_str(rq, "name");
	size_t i;
	json_t *m;
	TRY(id_of(c, rq, name, true, &gid));
	json_array_foreach(json_object_get(rq->args, "members"), i, m)
		TRY(id_of(c, rq, json_string_value(m), false, &uid)); /* all are known, before any is changed */
	json_array_foreach(json_object_get(rq->args, "members"), i, m)
	{
		CLEANUP(str) char *what = mem_printf("%s %s", name, json_string_value(m));
		TRY(id_of(c, rq, json_string_value(m), false, &uid));
		afs_err err = add ? self_member_add(c->self, uid, gid) : self_member_remove(c->self, uid, gid);
		if (err == (add ? AFS_EIDEXIST : AFS_ENOENT))
			err = AFS_OK; /* it is so already */
		trail(c, rq, add ? "group.adduser" : "group.removeuser", what ? what : name, err);
		if (err != AFS_OK)
			return ctl_refuse(rq, err, "%s: %s", json_string_value(m), afs_err_text(err));
	}
	json_object_set_new(out, "name", json_string(name));
	afs_err err = put_members(c, gid, "members", out);
	return err == AFS_OK ? AFS_OK : refuse(rq, err, NULL);
}

static afs_err verb_group_adduser(void *ctx, struct ctl_request *rq, json_t *out) { return change_members(ctx, rq, out, true); }
static afs_err verb_group_removeuser(void *ctx, struct ctl_request *rq, json_t *out) { return change_members(ctx, rq, out, false); }

static const struct ctl_verb verbs[] = {
	{"user.add", CTL_OWNER, verb_user_add},
	{"user.list", CTL_OWNER, verb_user_list},
	{"user.show", CTL_OWNER, verb_user_show},
	{"user.passwd", CTL_OWNER, verb_user_passwd},
	{"user.disable", CTL_OWNER, verb_user_disable},
	{"user.enable", CTL_OWNER, verb_user_enable},
	{"user.remove", CTL_OWNER, verb_user_remove},
	{"group.add", CTL_OWNER, verb_group_add},
	{"group.list", CTL_OWNER, verb_group_list},
	{"group.show", CTL_OWNER, verb_group_show},
	{"group.remove", CTL_OWNER, verb_group_remove},
	{"group.adduser", CTL_OWNER, verb_group_adduser},
	{"group.removeuser", CTL_OWNER, verb_group_removeuser},
};

afs_err verbs_add_people(struct ctl_server *ctl, struct cell *c) { return ctl_server_add(ctl, verbs, ARRAY_SIZE(verbs), c); }
