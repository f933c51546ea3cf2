/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reconciling (reconcile.h): people here, volumes and what is in them in reconcile_volumes.c. */
#include "cell/reconcile_parts.h"

#include "cell/base/log.h"
#include "cell/secret.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void reconcile_problem(struct reconcile_run *run, const char *what, afs_err err, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	run->r->watch->event(run->r->watch->ctx, CELL_PROBLEM, what, text);
	if (run->first == AFS_OK)
		run->first = err;
}

void reconcile_did(struct reconcile_run *run, const char *call, const char *object, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	run->r->watch->event(run->r->watch->ctx, CELL_DID, object, text);
	audit_local(run->r->audit, "configuration", call, object, AFS_OK);
	log_info("cell.reconciled what=\"%s\" did=\"%s\"", object, text);
}

/* --- users --------------------------------------------------------------------------------- */

static const char *given_password(struct reconcile_run *run, const char *user)
{
	return run->r->passwords ? json_string_value(json_object_get(run->r->passwords, user)) : NULL;
}

static void realm_user(struct reconcile_run *run, const struct conf_user *u, const char *label)
{
	CLEANUP(buf) struct buf why = {};
	CLEANUP(secret) char *password = NULL;
	const char *given = given_password(run, u->name);
	/* AFS writes an instance with a dot: joe.admin is joe/admin in the realm. */
	CLEANUP(str) char *principal = mem_strdup(u->name);
	if (!principal) {
		reconcile_problem(run, label, AFS_ENOMEM, "out of memory");
		return;
	}
	if (strchr(principal, '.'))
		*strchr(principal, '.') = '/';
	bool exists = realm_user_exists(run->r->realm, principal);
	if (exists && !given && !secret_is_given(u))
		return;
	afs_err err = AFS_OK;
	if (given)
		err = (password = mem_strdup(given)) ? AFS_OK : AFS_ENOMEM;
	else
		err = secret_get(u, &password, &why);
	if (err == AFS_OK && exists) {
		err = realm_user_check(run->r->realm, principal, password, &why);
		if (err == AFS_EBADPASSWORD) {
			why.len = 0;
			err = realm_user_password(run->r->realm, principal, password, NULL, &why);
			if (err == AFS_OK)
				reconcile_did(run, "user.password", label, "password changed");
		}
	} else if (err == AFS_OK) {
		char random[REALM_PASSWORD_LEN + 1] = "";
		err = realm_user_add(run->r->realm, principal, password, random, &why);
		if (err == AFS_OK) {
			reconcile_did(run, "user.create", label, "created in the realm");
			if (!password)
				run->r->watch->event(run->r->watch->ctx, CELL_SECRET, u->name, random);
		}
		explicit_bzero(random, sizeof(random));
	}
	if (err != AFS_OK)
		reconcile_problem(run, label, err, "%s", why.data && why.len ? why.data : afs_err_text(err));
}

static void one_user(struct reconcile_run *run, const struct conf_user *u)
{
	CLEANUP(str) char *label = mem_printf("user %s", u->name);
	if (!label) {
		reconcile_problem(run, u->name, AFS_ENOMEM, "out of memory");
		return;
	}
	if (run->r->realm)
		realm_user(run, u, label);
	if (reconcile_stop(run))
		return;
	int32_t id;
	afs_err err = self_id_of(run->r->self, u->name, &id);
	if (err == AFS_ENOENT) {
		err = self_user_add(run->r->self, u->name, (int32_t)u->id, &id);
		if (err == AFS_OK)
			reconcile_did(run, "user.enter", label, "entered in the protection database, id %d", id);
		else if (err == AFS_EIDEXIST)
			reconcile_problem(run, label, err, "id %lld belongs to someone else; choose another one, or leave it out",
				(long long)u->id);
		else
			reconcile_problem(run, label, err, "cannot be entered in the protection database: %s", afs_err_text(err));
		return;
	}
	if (err != AFS_OK)
		reconcile_problem(run, label, err, "cannot be looked up in the protection database: %s", afs_err_text(err));
	else if (u->id && u->id != id)
		reconcile_problem(run, label, AFS_EIDEXIST,
			"has the id %d, not %lld; an id stays, since files and access lists name it: set id: %d", id,
			(long long)u->id, id);
}

/* --- groups -------------------------------------------------------------------------------- */

static void one_member(struct reconcile_run *run, const char *group, int32_t gid, const char *user, const char *label)
{
	int32_t uid;
	bool is = false;
	afs_err err = self_id_of(run->r->self, user, &uid);
	if (err == AFS_ENOENT) {
		reconcile_problem(run, label, err, "its member %s does not exist; name it under \"users\"", user);
		return;
	}
	if (err == AFS_OK)
		err = self_is_member(run->r->self, uid, gid, &is);
	if (err == AFS_OK && !is) {
		err = self_member_add(run->r->self, uid, gid);
		if (err == AFS_OK)
			reconcile_did(run, "group.add", label, "%s added", user);
	}
	if (err != AFS_OK)
		reconcile_problem(run, label, err, "%s cannot be made a member of %s: %s", user, group, afs_err_text(err));
}

static void one_group(struct reconcile_run *run, const struct conf_group *g)
{
	CLEANUP(str) char *label = mem_printf("group %s", g->name);
	CLEANUP(str) char *prefix = mem_strndup(g->name, strcspn(g->name, ":"));
	if (!label || !prefix) {
		reconcile_problem(run, g->name, AFS_ENOMEM, "out of memory");
		return;
	}
	const char *owner = *g->owner ? g->owner : strchr(g->name, ':') ? prefix : "system:administrators";
	int32_t gid, oid;
	afs_err err = self_id_of(run->r->self, owner, &oid);
	if (err != AFS_OK) {
		reconcile_problem(run, label, err, "its owner %s: %s", owner, err == AFS_ENOENT ? "does not exist" : afs_err_text(err));
		return;
	}
	err = self_id_of(run->r->self, g->name, &gid);
	if (err == AFS_ENOENT) {
		err = self_group_add(run->r->self, g->name, (int32_t)g->id, oid, &gid);
		if (err == AFS_OK)
			reconcile_did(run, "group.create", label, "created, id %d", gid);
	} else if (err == AFS_OK) {
		int32_t now;
		err = self_owner(run->r->self, gid, &now);
		if (err == AFS_OK && now != oid && *g->owner) {
			err = self_group_owner(run->r->self, gid, oid);
			if (err == AFS_OK)
				reconcile_did(run, "group.owner", label, "now owned by %s", owner);
		}
		if (g->id && g->id != gid)
			reconcile_problem(run, label, AFS_EIDEXIST,
				"has the id %d, not %lld; an id stays, since access lists name it: set id: %d", gid,
				(long long)g->id, gid);
	}
	if (err != AFS_OK) {
		reconcile_problem(run, label, err, "%s", afs_err_text(err));
		return;
	}
	for (size_t i = 0; i < g->members.n; i++)
		one_member(run, g->name, gid, g->members.v[i], label);
}

afs_err reconcile_run(const struct reconcile *r)
{
	struct reconcile_run run = {.r = r};
	for (size_t i = 0; i < r->conf->user_count && !reconcile_stop(&run); i++)
		one_user(&run, &r->conf->users[i]);
	for (size_t i = 0; i < r->conf->group_count && !reconcile_stop(&run); i++)
		one_group(&run, &r->conf->groups[i]);
	for (size_t i = 0; i < r->conf->administrators.n && !reconcile_stop(&run); i++)
		one_member(&run, "system:administrators", AFS_ADMINISTRATORS, r->conf->administrators.v[i],
			"group system:administrators");
	if (r->store && !reconcile_stop(&run))
		reconcile_volumes(&run);
	return run.first;
}
