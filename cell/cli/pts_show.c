/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pts: what shows the protection database, in the columns of stock pts. */
#include "cell/cli/pts.h"

#include "cell/cli/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- entries --------------------------------------------------------------------------------- */

static const char *access_text(char out[6], int32_t flags)
{
	out[0] = flags & PTP_STATUS_ANY ? 'S' : flags & PTP_STATUS_MEM ? 's' : '-';
	out[1] = flags & PTP_OWNED_ANY ? 'O' : '-';
	out[2] = flags & PTP_MEMBER_ANY ? 'M' : flags & PTP_MEMBER_MEM ? 'm' : '-';
	out[3] = flags & PTP_ADD_ANY ? 'A' : flags & PTP_ADD_MEM ? 'a' : '-';
	out[4] = flags & PTP_REMOVE_MEM ? 'r' : '-';
	out[5] = '\0';
	return out;
}

/* Administrators may make any number of groups. */
static bool is_administrator(struct pts *p, int32_t id)
{
	struct pt_is_a_member_of_in in = {id, AFS_ADMINISTRATORS};
	struct pt_is_a_member_of_out out = {};
	return id == AFS_ADMINISTRATORS || (PT_CALL(p->a, is_a_member_of, &in, &out, NULL) == AFS_OK && out.flag);
}

int cli_pts_examine(struct cli *c)
{
	CLEANUP(pts) struct pts p = {};
	CLEANUP(heap) struct pts_who *w = NULL;
	size_t n = 0;
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	afs_err err = pts_lookup(&p, "nameorid", &w, &n);
	if (err != AFS_OK)
		return suite_fail(c, p.a, err, "cannot look up names");
	json_t *all = json_array();
	for (size_t i = 0; i < n && !p.stop; i++) {
		struct pt_list_entry_in in = {w[i].id};
		struct pt_list_entry_out out = {};
		struct prname *names = NULL;
		char flags[6];
		if (!w[i].found)
			continue;
		err = PT_CALL(p.a, list_entry, &in, &out, &p.arena);
		const struct prcheckentry *e = &out.entry;
		if (err == AFS_OK)
			err = pts_names(&p, (int32_t[]){e->owner, e->creator}, 2, &names);
		if (err != AFS_OK) {
			pts_failed(&p, err, "cannot show %s (id %d)", w[i].name, w[i].id);
			continue;
		}
		bool unlimited = is_administrator(&p, e->id);
		access_text(flags, e->flags);
		if (cli_wants_json(c)) {
			json_t *o = json_pack("{s:s, s:i, s:s, s:i, s:s, s:i, s:i, s:s, s:i, s:b}", "name", e->name, "id", e->id,
				"owner", names[0].text, "owner_id", e->owner, "creator", names[1].text, "creator_id", e->creator,
				"membership", e->count, "flags", flags, "group_quota", e->ngroups, "group_quota_unlimited", unlimited);
			json_array_append_new(all, o);
			continue;
		}
		printf("Name: %s, id: %d, owner: %s, creator: %s,\n", e->name, e->id, names[0].text, names[1].text);
		printf("  membership: %d, flags: %s", e->count, flags);
		if (unlimited)
			printf(", group quota: unlimited");
		else
			printf(", group quota: %d", e->ngroups);
		printf(".\n");
	}
	if (cli_wants_json(c))
		(void)cli_print_json(c, all); /* as below */
	else
		json_decref(all);
	return pts_end(&p);
}

int cli_pts_listentries(struct cli *c)
{
	CLEANUP(pts) struct pts p = {};
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	bool groups = cli_has(c, "groups"), users = cli_has(c, "users") || !groups;
	json_t *all = json_array();
	if (!cli_wants_json(c))
		printf("Name                          ID  Owner Creator\n");
	struct pt_list_entries_in in = {.flag = (users ? PT_LIST_USERS : 0) | (groups ? PT_LIST_GROUPS : 0)};
	do {
		CLEANUP(arena) struct arena page;
		arena_init(&page, PTS_ARENA);
		struct pt_list_entries_out out = {};
		afs_err err = PT_CALL(p.a, list_entries, &in, &out, &page);
		if (err != AFS_OK) {
			pts_failed(&p, err, "cannot list entries");
			break;
		}
		for (uint32_t i = 0; i < out.bulkentries.n; i++) {
			const struct prcheckentry *e = &out.bulkentries.v[i];
			if (cli_wants_json(c))
				json_array_append_new(all, json_pack("{s:s, s:i, s:i, s:i}", "name", e->name, "id", e->id,
					"owner_id", e->owner, "creator_id", e->creator));
			else
				printf("%-25s %6d %6d %7d \n", e->name, e->id, e->owner, e->creator);
		}
		if (out.nextstartindex != -1 && out.nextstartindex <= in.startindex) {
			cli_fail(c, "the server's list does not end (index %d after %d)", out.nextstartindex, in.startindex);
			p.failed = true;
			break;
		}
		in.startindex = out.nextstartindex;
	} while (in.startindex != -1);
	if (cli_wants_json(c) && !p.failed)
		return cli_print_json(c, all);
	json_decref(all);
	return pts_end(&p);
}

int cli_pts_listmax(struct cli *c)
{
	CLEANUP(pts) struct pts p = {};
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	struct pt_list_max_in in;
	struct pt_list_max_out out = {};
	afs_err err = PT_CALL(p.a, list_max, &in, &out, NULL);
	if (err != AFS_OK)
		return suite_fail(c, p.a, err, "cannot get the highest ids");
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:i, s:i}", "user", out.uid, "group", out.gid));
	printf("Max user id is %d and max group id is %d.\n", out.uid, out.gid);
	return CLI_OK;
}

/* --- lists of ids ------------------------------------------------------------------------------ */

struct ids {
	int32_t *v;
	size_t n, cap;
	bool seen_all;
};

static bool ids_have(const struct ids *s, int32_t id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] == id)
			return true;
	return false;
}

static afs_err ids_add(struct ids *s, int32_t id)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;
		int32_t *v = mem_resize(s->v, s->cap, cap, sizeof(*v));
		if (!v)
			return AFS_ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n++] = id;
	return AFS_OK;
}

static void ids_cleanup(struct ids *s) { mem_free(s->v); }

static afs_err elements(struct pts *p, int32_t id, bool super, const int32_t **v, uint32_t *n)
{
	if (super) {
		struct pt_list_super_groups_in in = {id};
		struct pt_list_super_groups_out out = {};
		TRY(PT_CALL(p->a, list_super_groups, &in, &out, &p->arena));
		*v = out.elist.v;
		*n = out.elist.n;
		return AFS_OK;
	}
	struct pt_list_elements_in in = {id};
	struct pt_list_elements_out out = {};
	TRY(PT_CALL(p->a, list_elements, &in, &out, &p->arena));
	*v = out.elist.v;
	*n = out.elist.n;
	return AFS_OK;
}

/* What `id` has, and what groups among that have in turn.  Upward (the groups one is in) every step is
 * wanted; downward (members) a group stands for its members. */
static afs_err expand(struct pts *p, int32_t id, bool upward, struct ids *out)
{
	CLEANUP(ids) struct ids todo = {};
	TRY(ids_add(&todo, id));
	for (size_t at = 0; at < todo.n; at++) {
		const int32_t *v;
		uint32_t n;
		TRY(elements(p, todo.v[at], upward && todo.v[at] < 0, &v, &n));
		for (uint32_t i = 0; i < n; i++) {
			bool group = v[i] < 0;
			if (group && !ids_have(&todo, v[i]))
				TRY(ids_add(&todo, v[i]));
			if ((upward || !group) && !ids_have(out, v[i]))
				TRY(ids_add(out, v[i]));
		}
	}
	return AFS_OK;
}

static afs_err one_list(struct pts *p, const struct pts_who *w, bool super, json_t *out)
{
	CLEANUP(ids) struct ids expanded = {};
	const int32_t *v;
	uint32_t n;
	bool expands = cli_has(p->c, "expandgroups"), groups = w->id > 0 || super;
	if (expands) {
		TRY(expand(p, w->id, groups, &expanded));
		v = expanded.v;
		n = (uint32_t)expanded.n;
	} else {
		TRY(elements(p, w->id, super, &v, &n));
	}
	struct prname *names;
	TRY(pts_names(p, v, n, &names));
	if (cli_wants_json(p->c)) {
		json_t *list = json_array();
		for (uint32_t i = 0; i < n; i++)
			json_array_append_new(list, json_pack("{s:s, s:i}", "name", names[i].text, "id", v[i]));
		json_object_set_new(out, groups ? "groups" : "members", list);
		return AFS_OK;
	}
	const char *how = expands ? "Expanded " : "";
	if (groups)
		printf("%sGroups %s (id: %d) is a member of:\n", how, w->name, w->id);
	else
		printf("%sMembers of %s (id: %d) are:\n", how, w->name, w->id);
	for (uint32_t i = 0; i < n; i++)
		printf("  %s\n", names[i].text);
	return AFS_OK;
}

int cli_pts_membership(struct cli *c)
{
	CLEANUP(pts) struct pts p = {};
	CLEANUP(heap) struct pts_who *w = NULL;
	size_t n = 0;
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	afs_err err = pts_lookup(&p, "nameorid", &w, &n);
	if (err != AFS_OK)
		return suite_fail(c, p.a, err, "cannot look up names");
	json_t *all = json_array();
	for (size_t i = 0; i < n && !p.stop; i++) {
		if (!w[i].found)
			continue;
		json_t *o = json_pack("{s:s, s:i}", "name", w[i].name, "id", w[i].id);
		json_array_append_new(all, o);
		err = one_list(&p, &w[i], false, o);
		if (err == AFS_OK && w[i].id < 0 && cli_has(c, "supergroups"))
			err = one_list(&p, &w[i], true, o);
		if (err != AFS_OK)
			pts_failed(&p, err, "cannot get the membership of %s (id %d)", w[i].name, w[i].id);
	}
	if (cli_wants_json(c))
		(void)cli_print_json(c, all); /* as below */
	else
		json_decref(all);
	return pts_end(&p);
}

static afs_err owned(struct pts *p, int32_t id, struct ids *out)
{
	struct pt_list_owned_in in = {.id = id};
	do {
		struct pt_list_owned_out page = {};
		TRY(PT_CALL(p->a, list_owned, &in, &page, &p->arena));
		for (uint32_t i = 0; i < page.elist.n; i++)
			TRY(ids_add(out, page.elist.v[i]));
		if (page.lastp && !page.elist.n)
			return AFS_EPROTOCOL; /* a list that does not end */
		in.lastp = page.lastp;
	} while (in.lastp);
	return AFS_OK;
}

int cli_pts_listowned(struct cli *c)
{
	CLEANUP(pts) struct pts p = {};
	CLEANUP(heap) struct pts_who *w = NULL;
	size_t n = 0;
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	afs_err err = pts_lookup(&p, "nameorid", &w, &n);
	if (err != AFS_OK)
		return suite_fail(c, p.a, err, "cannot look up names");
	json_t *all = json_array();
	for (size_t i = 0; i < n && !p.stop; i++) {
		CLEANUP(ids) struct ids ids = {};
		struct prname *names = NULL;
		if (!w[i].found)
			continue;
		err = owned(&p, w[i].id, &ids);
		if (err == AFS_OK)
			err = pts_names(&p, ids.v, (uint32_t)ids.n, &names);
		if (err != AFS_OK) {
			pts_failed(&p, err, "cannot list what %s (id %d) owns", w[i].name, w[i].id);
			continue;
		}
		json_t *list = json_array();
		for (size_t k = 0; k < ids.n; k++)
			json_array_append_new(list, json_pack("{s:s, s:i}", "name", names[k].text, "id", ids.v[k]));
		json_array_append_new(all, json_pack("{s:s, s:i, s:o}", "name", w[i].id ? w[i].name : "", "id", w[i].id, "owned", list));
		if (cli_wants_json(c))
			continue;
		if (w[i].id)
			printf("Groups owned by %s (id: %d) are:\n", w[i].name, w[i].id);
		else
			printf("Orphaned groups are:\n");
		for (size_t k = 0; k < ids.n; k++)
			printf("  %s\n", names[k].text);
	}
	if (cli_wants_json(c))
		(void)cli_print_json(c, all); /* whether it could be written is looked at when the program ends */
	else
		json_decref(all);
	return pts_end(&p);
}
