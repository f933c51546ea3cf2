/* SPDX-License-Identifier: BSD-2-Clause
 * Who may do what.  The rules are a table; this is the only place that knows them.
 *
 * In order: the cell itself and administrators may everything that is not forbidden to all; then privacy
 * bits for anybody, owner (or a member of the owning group), the entry's own user, members by privacy bit,
 * system:ptsviewers.  Who proved no name changes nothing, even where a bit says "anybody".  A foreign user
 * is no administrator even as a member of system:administrators (case K18). */
#include "dbserver/pt/pt_store.h"

const struct pt_who pt_who_cell = {
	.id = AFS_ADMINISTRATORS, .authenticated = true, .admin = true};

struct rule {
	uint8_t any, member; /* privacy bits */
	bool owner, self, viewers;
	bool changes;
	bool not_fixed;    /* nobody may do it to the entries that the protocol itself stands on */
	bool not_nameless; /* ... of which system:administrators may have its bits set */
};
static const struct rule rules[PTV_COUNT] = {
	[PTV_STATUS] = {PTP_STATUS_ANY, PTP_STATUS_MEM, .owner = true, .self = true, .viewers = true},
	[PTV_OWNED] = {PTP_OWNED_ANY, 0, .owner = true, .self = true, .viewers = true},
	[PTV_MEMBERSHIP] = {PTP_MEMBER_ANY, PTP_MEMBER_MEM, .owner = true, .self = true, .viewers = true},
	[PTV_ADD] = {PTP_ADD_ANY, PTP_ADD_MEM, .owner = true, .changes = true},
	[PTV_REMOVE] = {0, PTP_REMOVE_MEM, .owner = true, .changes = true},
	[PTV_DELETE] = {.owner = true, .changes = true, .not_fixed = true},
	[PTV_CHANGE] = {.owner = true, .changes = true, .not_fixed = true},
	[PTV_PRIVACY] = {.owner = true, .changes = true, .not_nameless = true},
	[PTV_DUMP] = {},
	[PTV_REHASH] = {.changes = true},
	[PTV_RENUMBER] = {.changes = true, .not_fixed = true},
	[PTV_QUOTA] = {.changes = true, .not_nameless = true},
	[PTV_MAX] = {.changes = true},
	[PTV_ALL] = {},
	[PTV_ORPHANS] = {},
	[PTV_NEW_USER] = {.changes = true},
	[PTV_NEW_GROUP] = {.owner = true, .changes = true},
	[PTV_NEW_SELF] = {.changes = true},
};

static bool is_nameless(int32_t id)
{
	return id == AFS_ANYUSER || id == AFS_AUTHUSER || id == AFS_ANONYMOUS;
}

/* Is `who` this owner, or in this owning group? */
static afs_err is_owner(struct db *db, const struct pt_who *who, int32_t owner, bool *yes)
{
	*yes = false;
	if (!owner || owner == AFS_ADMINISTRATORS || who->id == AFS_ANONYMOUS)
		return AFS_OK; /* administrators were asked before */
	*yes = owner == who->id;
	return *yes || owner > 0 ? AFS_OK : pt_is_member(db, who->id, owner, yes);
}

static afs_err judge(struct db *db, const struct pt_who *who, enum pt_verb verb,
	const struct pt_entry *entry, bool *yes)
{
	const struct rule *rule = &rules[verb];
	*yes = false;
	if (rule->changes && !who->authenticated)
		return AFS_OK;
	if (entry) {
		bool nameless = is_nameless(entry->id);
		if ((rule->not_fixed || rule->not_nameless) && nameless)
			return AFS_OK;
		if (rule->not_fixed && entry->id == AFS_ADMINISTRATORS)
			return AFS_OK;
		/* everybody is in these already */
		if ((verb == PTV_ADD || verb == PTV_REMOVE) && nameless)
			return AFS_OK;
	}
	if (verb == PTV_NEW_SELF) {
		*yes = who->foreign;
		return AFS_OK;
	}
	if (who->admin) {
		*yes = true;
		return AFS_OK;
	}
	if (!entry)
		return AFS_OK;
	if (entry->flags & rule->any) {
		*yes = true;
		return AFS_OK;
	}
	if (rule->self && entry->id > 0 && entry->id == who->id)
		*yes = true;
	/* for a new group the entry is the owner itself */
	if (!*yes && rule->owner)
		TRY(is_owner(db, who, verb == PTV_NEW_GROUP ? entry->id : entry->owner, yes));
	if (!*yes && entry->id < 0 && (entry->flags & rule->member) && who->id != AFS_ANONYMOUS)
		TRY(pt_is_member(db, who->id, entry->id, yes));
	if (!*yes && rule->viewers && who->id != AFS_ANONYMOUS && !who->foreign)
		TRY(pt_is_member(db, who->id, PT_PTSVIEWERS, yes));
	return AFS_OK;
}

afs_err pt_may(struct db *db, const struct pt_who *who, enum pt_verb verb,
	const struct pt_entry *entry, struct pt_leave *leave)
{
	bool yes;
	TRY(judge(db, who, verb, entry, &yes));
	if (!yes)
		return AFS_EPERM;
	*leave = (struct pt_leave){verb, entry ? entry->id : 0};
	return AFS_OK;
}

afs_err pt_who_of_name(struct db *db, const struct keys_name *name, struct pt_who *out)
{
	if (name->localauth) {
		*out = pt_who_cell;
		return AFS_OK;
	}
	*out = (struct pt_who){.id = AFS_ANONYMOUS};
	if (!name->authenticated)
		return AFS_OK;
	out->authenticated = true;
	out->foreign = !name->local;
	size_t len = strnlen(name->text, sizeof(name->text) - 1);
	if (len > PT_NAME_MAX)
		return AFS_OK; /* no entry can have it */
	TRY(pt_name_fold(name->text, len, out->name));
	afs_err err = pt_row_id_of(db, out->name, len, &out->id);
	if (err == AFS_ENOENT || (!err && out->id < 0)) { /* nobody logs in as a group */
		out->id = AFS_ANONYMOUS;
		return AFS_OK;
	}
	if (err)
		return err;
	return out->foreign ? AFS_OK
			    : pt_is_member(db, out->id, AFS_ADMINISTRATORS, &out->admin);
}
