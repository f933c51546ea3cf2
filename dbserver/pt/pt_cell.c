/* SPDX-License-Identifier: BSD-2-Clause
 * The protection database for this process (dbserver.h): the verbs, asked by the cell itself. */
#include "dbserver/pt/pt_store.h"

enum { IDS_MAX = 65536 };

/* Hands a list on: the array, or NULL when it is empty. */
static struct pt_ids take_ids(struct pt_list *l)
{
	return (struct pt_ids){.n = l->n, .v = TAKE(l->v)};
}

afs_err pt_entry_find(struct pt *pt, int32_t id, struct pt_entry *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	TRY(pt_read_begin(pt, &r));
	return pt_row_by_id(r.db, id, out);
}

afs_err pt_entry_next(struct pt *pt, int64_t *cursor, struct pt_entry *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	TRY(pt_read_begin(pt, &r));
	return pt_row_next(r.db, cursor, out);
}

afs_err pt_id_of(struct pt *pt, const char *name, int32_t *id)
{
	CLEANUP(pt_read) struct pt_read r = {};
	TRY(pt_read_begin(pt, &r));
	return pt_find_name(pt, r.db, name, strlen(name), id);
}

afs_err pt_name_of(struct pt *pt, int32_t id, char out[PT_NAME_MAX + 1])
{
	CLEANUP(pt_read) struct pt_read r = {};
	TRY(pt_read_begin(pt, &r));
	return pt_row_name_of(r.db, id, out);
}

static afs_err add_entry(struct pt *pt, const struct pt_new *want, int32_t *out)
{
	CLEANUP(pt_write) struct pt_write w = {};
	int32_t id;
	TRY(pt_write_begin(pt, &w));
	TRY(pt_do_new(&w, &pt_who_cell, want, &id));
	TRY(pt_write_commit(&w));
	*out = id;
	return AFS_OK;
}

afs_err pt_user_add(struct pt *pt, const char *name, int32_t id, int32_t *out)
{
	if (id < 0)
		return AFS_EBADARG;
	struct pt_new want = {.name = name, .len = strlen(name), .id = id, .by_id = id != 0};
	return add_entry(pt, &want, out);
}

afs_err pt_group_add(struct pt *pt, const char *name, int32_t id, int32_t owner, int32_t *out)
{
	if (id > 0)
		return AFS_EBADARG;
	struct pt_new want = {.name = name,
		.len = strlen(name),
		.group = true,
		.owner = owner,
		.id = id,
		.by_id = id != 0};
	return add_entry(pt, &want, out);
}

afs_err pt_entry_delete(struct pt *pt, int32_t id)
{
	CLEANUP(pt_write) struct pt_write w = {};
	TRY(pt_write_begin(pt, &w));
	TRY(pt_do_delete(&w, &pt_who_cell, id));
	return pt_write_commit(&w);
}

afs_err pt_entry_set_flags(struct pt *pt, int32_t id, int32_t flags)
{
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_fields fields = {.id = id, .mask = 0xff, .flags = flags};
	TRY(pt_write_begin(pt, &w));
	TRY(pt_do_set_fields(&w, &pt_who_cell, &fields));
	return pt_write_commit(&w);
}

afs_err pt_entry_change(struct pt *pt, int32_t id, const char *name, int32_t owner, int32_t newid)
{
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_change change = {.id = id,
		.name = name,
		.len = name ? strlen(name) : 0,
		.owner = owner,
		.newid = newid};
	TRY(pt_write_begin(pt, &w));
	TRY(pt_do_change(&w, &pt_who_cell, &change));
	return pt_write_commit(&w);
}

afs_err pt_member_add(struct pt *pt, int32_t member, int32_t group)
{
	CLEANUP(pt_write) struct pt_write w = {};
	TRY(pt_write_begin(pt, &w));
	TRY(pt_do_add(&w, &pt_who_cell, member, group));
	return pt_write_commit(&w);
}

afs_err pt_member_remove(struct pt *pt, int32_t member, int32_t group)
{
	CLEANUP(pt_write) struct pt_write w = {};
	TRY(pt_write_begin(pt, &w));
	TRY(pt_do_remove(&w, &pt_who_cell, member, group));
	return pt_write_commit(&w);
}

afs_err pt_members(struct pt *pt, int32_t id, struct pt_ids *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_entry e;
	TRY(pt_read_begin(pt, &r));
	TRY(pt_row_by_id(r.db, id, &e));
	TRY(id < 0 ? pt_members_of(r.db, id, IDS_MAX, &l) : pt_groups_of(r.db, id, IDS_MAX, &l));
	*out = take_ids(&l);
	return AFS_OK;
}

afs_err pt_identify(struct pt *pt, const struct keys_name *name, struct pt_identity *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_who who;
	struct pt_entry e;
	TRY(pt_read_begin(pt, &r));
	TRY(pt_who_of_name(r.db, name, &who));
	TRY(pt_row_by_id(r.db, who.id, &e));
	TRY(pt_cps(r.db, &e, IDS_MAX, &l));
	out->id = who.id;
	out->admin = who.admin;
	out->cps = take_ids(&l);
	return AFS_OK;
}

afs_err pt_host_groups(struct pt *pt, uint32_t ip, struct pt_ids *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	TRY(pt_read_begin(pt, &r));
	TRY(pt_host_cps(r.db, ip, IDS_MAX, &l));
	*out = take_ids(&l);
	return AFS_OK;
}

uint64_t pt_generation(struct pt *pt) { return atomic_load(&pt->generation); }
