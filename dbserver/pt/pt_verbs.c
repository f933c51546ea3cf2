/* SPDX-License-Identifier: BSD-2-Clause
 * What changes the protection database.  Each function reads as its paragraph in protection.md §4.3: what is
 * asked about, may he, is it well-formed, is it free, do it. */
#include "dbserver/pt/pt_store.h"

enum { ID_TRIES = 50 };

/* --- new entries ------------------------------------------------------------------------------- */

static afs_err id_is_free(struct db *db, int32_t id)
{
	char name[PT_NAME_MAX + 1];
	afs_err err = pt_row_name_of(db, id, name);
	return err == AFS_ENOENT ? AFS_OK : err ? err : AFS_EIDEXIST;
}

static afs_err name_is_free(struct db *db, const char *name)
{
	int32_t id;
	afs_err err = pt_row_id_of(db, name, strlen(name), &id);
	return err == AFS_ENOENT ? AFS_OK : err ? err : AFS_ENAMEEXIST;
}

/* The next id that counting gives: users upward, groups downward. */
static afs_err next_id(struct db *db, bool group, int32_t *out)
{
	int32_t max_user, min_group;
	TRY(pt_max_get(db, &max_user, &min_group));
	for (int64_t tries = 1; tries <= ID_TRIES; tries++) {
		int64_t id = group ? min_group - tries : max_user + tries;
		if (id > INT32_MAX || id <= INT32_MIN)
			break;
		afs_err err = id_is_free(db, (int32_t)id);
		if (err == AFS_EIDEXIST)
			continue;
		*out = (int32_t)id;
		return err;
	}
	return AFS_ENOIDS;
}

/* A group's name must begin with its owner's; without any prefix it is for administrators. */
static afs_err check_group_name(struct pt_write *w, const struct pt_who *who,
	const struct pt_entry *owner, const char *name)
{
	if (!pt_name_group_ok(name))
		return AFS_EBADNAME;
	if (owner->id < 0 && owner->id != AFS_ADMINISTRATORS && !owner->count && !who->admin)
		return AFS_EGROUPEMPTY;
	const char *colon = strchr(name, ':');
	if (!colon)
		return who->admin ? AFS_OK : AFS_EBADNAME;
	char prefix[PT_NAME_MAX + 1];
	pt_name_prefix(owner, prefix);
	size_t len = strlen(prefix);
	if (len != (size_t)(colon - name) || memcmp(prefix, name, len) != 0)
		return AFS_EBADNAME;
	/* behind the prefix an @ belongs to the groups of foreign realms */
	const char *realm = pt_name_realm(colon);
	if (!realm)
		return AFS_OK;
	if (strncmp(name, PT_AUTHUSER_AT, strlen(PT_AUTHUSER_AT)) != 0 || !*realm ||
		strchr(realm, '@') || pt_realm_is_local(w->pt->realms, realm))
		return AFS_EBADNAME;
	return AFS_OK;
}

/* Ids of foreign users: a count above 16 bits of their group's id. */
static afs_err foreign_id(
	struct db *db, const struct pt_entry *group, int32_t *id, int32_t *counted)
{
	for (int64_t n = (int64_t)group->nusers + 1; n <= INT16_MAX; n++) {
		*id = (int32_t)(n << 16 | (group->id & 0xffff));
		*counted = (int32_t)n;
		afs_err err = id_is_free(db, *id);
		if (err != AFS_EIDEXIST)
			return err;
	}
	return AFS_ENOIDS;
}

static afs_err new_foreign(
	struct pt_write *w, const struct pt_who *who, const struct pt_new *want, const char *name, int32_t *id)
{
	bool self = who->foreign && strcmp(name, who->name) == 0;
	struct pt_leave leave;
	TRY(pt_may(w->db, who, self ? PTV_NEW_SELF : PTV_NEW_USER, NULL, &leave));
	if (want->owner || (self && want->by_id))
		return AFS_EPERM;
	const char *realm = pt_name_realm(name);
	if (!pt_name_user_ok(name) || pt_realm_is_local(w->pt->realms, realm))
		return AFS_EBADNAME;

	char group_name[PT_NAME_MAX + sizeof(PT_AUTHUSER_AT)] = PT_AUTHUSER_AT;
	strncat(group_name, realm, PT_NAME_MAX);
	struct pt_entry group;
	afs_err err = pt_row_by_name(w->db, group_name, strlen(group_name), &group);
	if (err)
		return err == AFS_ENOENT ? AFS_EBADNAME : err;
	TRY(name_is_free(w->db, name));
	if (group.ngroups <= 0)
		return AFS_ENOMORE;

	int32_t counted = group.nusers;
	if (want->by_id)
		*id = want->id;
	else
		TRY(foreign_id(w->db, &group, id, &counted));
	struct pt_entry e = {.id = *id,
		.owner = AFS_ADMINISTRATORS,
		.creator = self ? *id : who->id, /* who made it, truly (case K18) */
		.flags = PTP_USER_DEFAULT,
		.ngroups = PT_QUOTA,
		.nusers = PT_QUOTA,
		.cellid = group.id};
	memcpy(e.name, name, strlen(name));
	TRY(pt_row_insert(w, leave, &e));
	TRY(pt_row_quota_add(w, group.id, -1, counted));
	return pt_row_member_add(w, leave, e.id, group.id);
}

static afs_err new_user(
	struct pt_write *w, const struct pt_who *who, const struct pt_new *want, const char *name, int32_t *id)
{
	struct pt_leave leave;
	struct pt_entry owner;
	TRY(pt_may(w->db, who, PTV_NEW_USER, NULL, &leave));
	if (!pt_name_user_ok(name))
		return AFS_EBADNAME;
	TRY(name_is_free(w->db, name));
	TRY(pt_row_by_id(w->db, want->owner ? want->owner : AFS_ADMINISTRATORS, &owner));
	if (want->by_id)
		*id = want->id;
	else
		TRY(next_id(w->db, false, id));
	struct pt_entry e = {.id = *id,
		.owner = owner.id,
		.creator = who->id,
		.flags = PTP_USER_DEFAULT,
		.ngroups = PT_QUOTA,
		.nusers = PT_QUOTA};
	memcpy(e.name, name, strlen(name));
	TRY(pt_row_insert(w, leave, &e));
	return pt_max_follow(w, e.id);
}

static afs_err new_group(
	struct pt_write *w, const struct pt_who *who, const struct pt_new *want, const char *name, int32_t *id)
{
	struct pt_leave leave;
	struct pt_entry owner, maker;
	if (who->id == AFS_ANONYMOUS)
		return AFS_EPERM;
	TRY(pt_row_by_id(w->db, want->owner ? want->owner : who->id, &owner));
	TRY(pt_may(w->db, who, PTV_NEW_GROUP, &owner, &leave));
	if (want->by_id && !who->admin) {
		int32_t max_user, min_group;
		TRY(pt_max_get(w->db, &max_user, &min_group));
		if (want->id != (int64_t)min_group - 1)
			return AFS_EPERM;
	}
	TRY(check_group_name(w, who, &owner, name));
	TRY(name_is_free(w->db, name));
	if (!who->admin) {
		TRY(pt_row_by_id(w->db, who->id, &maker));
		if (maker.ngroups <= 0)
			return AFS_ENOMORE;
		TRY(pt_row_quota_add(w, maker.id, -1, -1));
	}
	if (want->by_id)
		*id = want->id;
	else
		TRY(next_id(w->db, true, id));
	bool realm = pt_name_realm(name) && owner.id == AFS_ADMINISTRATORS;
	struct pt_entry e = {.id = *id,
		.owner = owner.id,
		.creator = who->id,
		.flags = PTP_GROUP_DEFAULT,
		.ngroups = realm ? PT_FOREIGN_QUOTA : 0};
	memcpy(e.name, name, strlen(name));
	TRY(pt_row_insert(w, leave, &e));
	return pt_max_follow(w, e.id);
}

afs_err pt_do_new(struct pt_write *w, const struct pt_who *who, const struct pt_new *want, int32_t *id)
{
	bool group = want->by_id ? want->id < 0 : want->group;
	if (!who->authenticated)
		return AFS_EPERM;
	if (want->by_id) {
		if (!want->id || want->id == PT_BADID)
			return AFS_EPERM;
		/* who may not make users learns nothing of their ids */
		if (!group && !who->admin)
			return AFS_EPERM;
		TRY(id_is_free(w->db, want->id));
	}
	char name[PT_NAME_MAX + 1];
	/* right before name: a name that is too long is judged with the others */
	afs_err too_long = pt_name_fold(want->name, want->len, name);
	if (too_long)
		name[0] = 0;
	if (group)
		return new_group(w, who, want, name, id);
	if (!too_long && pt_name_realm(name))
		return new_foreign(w, who, want, name, id);
	return new_user(w, who, want, name, id);
}

/* --- delete ------------------------------------------------------------------------------------ */

afs_err pt_do_delete(struct pt_write *w, const struct pt_who *who, int32_t id)
{
	struct pt_entry e;
	struct pt_leave leave;
	TRY(pt_row_by_id(w->db, id, &e));
	TRY(pt_may(w->db, who, PTV_DELETE, &e, &leave));
	if (strncmp(e.name, PT_AUTHUSER_AT, strlen(PT_AUTHUSER_AT)) == 0 && e.count)
		return AFS_EBADARG;
	TRY(pt_row_delete(w, leave, id));
	if (id < 0 && e.creator > 0 && e.creator != AFS_ANONYMOUS)
		TRY(pt_row_quota_add(w, e.creator, 1, -1)); /* if it still exists */
	return AFS_OK;
}

/* --- membership --------------------------------------------------------------------------------- */

afs_err pt_do_add(struct pt_write *w, const struct pt_who *who, int32_t member, int32_t group)
{
	struct pt_entry m, g;
	struct pt_leave leave;
	if (member == AFS_ANONYMOUS || member == AFS_ANYUSER || member == AFS_AUTHUSER ||
		group == AFS_ANYUSER || group == AFS_AUTHUSER)
		return AFS_EPERM;
	TRY(pt_row_by_id(w->db, member, &m));
	TRY(pt_row_by_id(w->db, group, &g));
	if (group > 0)
		return AFS_ENOTGROUP;
	TRY(pt_may(w->db, who, PTV_ADD, &g, &leave));
	if (member == group)
		return AFS_EINCONSISTENT;
	if (member < 0) {
		bool above;
		TRY(pt_is_member(w->db, group, member, &above));
		if (above)
			return AFS_EINCONSISTENT;
	}
	return pt_row_member_add(w, leave, member, group);
}

afs_err pt_do_remove(struct pt_write *w, const struct pt_who *who, int32_t member, int32_t group)
{
	struct pt_entry m, g;
	struct pt_leave leave;
	TRY(pt_row_by_id(w->db, member, &m));
	TRY(pt_row_by_id(w->db, group, &g));
	if (group > 0)
		return AFS_ENOTGROUP;
	TRY(pt_may(w->db, who, PTV_REMOVE, &g, &leave));
	return pt_row_member_remove(w, leave, member, group);
}

/* --- change ------------------------------------------------------------------------------------ */

static afs_err change_owner(
	struct pt_write *w, const struct pt_who *who, int32_t owner_id, struct pt_entry *e)
{
	struct pt_entry owner;
	if (e->id > 0 || pt_name_realm(e->name))
		return AFS_EPERM;
	TRY(pt_row_by_id(w->db, owner_id, &owner));
	if (owner.id == AFS_ADMINISTRATORS && !who->admin)
		return AFS_EPERM;
	if (owner.id < 0 && !owner.count && !who->admin)
		return AFS_EGROUPEMPTY;
	e->owner = owner.id;
	const char *colon = strchr(e->name, ':');
	if (!colon)
		return AFS_OK;
	char name[2 * PT_NAME_MAX + 2] = "";
	pt_name_prefix(&owner, name);
	strcat(name, colon);
	if (strlen(name) > PT_NAME_MAX)
		return AFS_EBADNAME;
	if (strcmp(name, e->name) != 0)
		TRY(name_is_free(w->db, name));
	memset(e->name, 0, sizeof(e->name));
	memcpy(e->name, name, strlen(name));
	return AFS_OK;
}

static afs_err change_name(struct pt_write *w, const struct pt_who *who, const char *p, size_t len,
	struct pt_entry *e)
{
	char name[PT_NAME_MAX + 1];
	TRY(pt_name_fold(p, len, name));
	if (e->id < 0) {
		struct pt_entry owner;
		if (pt_name_realm(e->name))
			return AFS_EPERM;
		afs_err err = pt_row_by_id(w->db, e->owner, &owner);
		if (err == AFS_ENOENT) /* an orphan: only an administrator comes here */
			owner = (struct pt_entry){};
		else if (err)
			return err;
		if (!who->admin || strchr(name, ':'))
			TRY(check_group_name(w, who, &owner, name));
		if (!pt_name_group_ok(name))
			return AFS_EBADNAME;
	} else {
		const char *old = pt_name_realm(e->name), *realm = pt_name_realm(name);
		if (!pt_name_user_ok(name))
			return AFS_EBADNAME;
		if (!old != !realm || (old && strcmp(old, realm) != 0))
			return AFS_EPERM;
	}
	if (strcmp(name, e->name) != 0)
		TRY(name_is_free(w->db, name));
	memset(e->name, 0, sizeof(e->name));
	memcpy(e->name, name, strlen(name));
	return AFS_OK;
}

afs_err pt_do_change(struct pt_write *w, const struct pt_who *who, const struct pt_change *c)
{
	struct pt_entry e;
	struct pt_leave leave, renumber;
	TRY(pt_row_by_id(w->db, c->id, &e));
	TRY(pt_may(w->db, who, PTV_CHANGE, &e, &leave));
	if (c->newid && c->newid != c->id) {
		TRY(pt_may(w->db, who, PTV_RENUMBER, &e, &renumber));
		if ((c->newid < 0) != (c->id < 0) || c->newid == PT_BADID)
			return AFS_EPERM;
		TRY(id_is_free(w->db, c->newid));
	}
	if (c->owner && c->owner != e.owner)
		TRY(change_owner(w, who, c->owner, &e));
	if (c->len)
		TRY(change_name(w, who, c->name, c->len, &e));
	TRY(pt_row_update(w, leave, &e));
	if (c->newid && c->newid != c->id) {
		TRY(pt_row_renumber(w, renumber, c->id, c->newid));
		if (!e.cellid) /* foreign ids do not move the counter */
			TRY(pt_max_follow(w, c->newid));
	}
	return AFS_OK;
}

afs_err pt_do_set_fields(struct pt_write *w, const struct pt_who *who, const struct pt_fields *f)
{
	struct pt_entry e;
	struct pt_leave leave = {};
	TRY(pt_row_by_id(w->db, f->id, &e));
	if (!f->mask)
		return AFS_OK;
	TRY(pt_may(w->db, who, PTV_PRIVACY, &e, &leave));
	if (f->mask & (PT_SET_NGROUPS | PT_SET_NUSERS))
		TRY(pt_may(w->db, who, PTV_QUOTA, &e, &leave));
	if (f->mask & PT_SET_NGROUPS) {
		if (f->ngroups < 0)
			return AFS_EBADARG;
		e.ngroups = f->ngroups;
	}
	if (f->mask & PT_SET_NUSERS) {
		if (f->nusers < 0)
			return AFS_EBADARG;
		e.nusers = f->nusers;
	}
	int32_t bits = (int32_t)(f->mask & 0xff);
	e.flags = (e.flags & ~bits) | (f->flags & bits);
	return pt_row_update(w, leave, &e);
}

afs_err pt_do_set_max(struct pt_write *w, const struct pt_who *who, int32_t id, int32_t gflag)
{
	struct pt_leave leave;
	int32_t max_user, min_group;
	TRY(pt_may(w->db, who, PTV_MAX, NULL, &leave));
	if ((gflag != PT_USER && gflag != PT_GROUP) || id == PT_BADID ||
		(gflag == PT_GROUP ? id >= 0 : id < 0))
		return AFS_EBADARG;
	TRY(pt_max_get(w->db, &max_user, &min_group));
	if (gflag == PT_GROUP)
		min_group = id;
	else
		max_user = id;
	return pt_max_set(w, leave, max_user, min_group);
}

/* --- names -------------------------------------------------------------------------------------- */

afs_err pt_find_name(struct pt *pt, struct db *db, const char *name, size_t len, int32_t *id)
{
	const char *at = memchr(name, '@', len);
	if (at) {
		char realm[PT_NAME_MAX + 1];
		size_t n = len - (size_t)(at + 1 - name);
		if (n <= PT_NAME_MAX) {
			memcpy(realm, at + 1, n);
			realm[n] = 0;
			if (pt_realm_is_local(pt->realms, realm))
				len = (size_t)(at - name);
		}
	}
	return pt_row_id_of(db, name, len, id);
}
