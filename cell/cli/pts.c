/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pts: what changes the protection database.  Names are folded to lower case here, since servers look
 * them up as they are.  A name that is not known is an error of its own and keeps the others going, as
 * with stock pts; every such error makes the exit status 1. */
#include "cell/cli/pts.h"

#include "cell/base/text.h"
#include "cell/cli/handlers.h"
#include "cell/proto/abort.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What AddToGroup says of a member, RemoveFromGroup of a stranger. */
enum { PRIDEXIST = PR_ERROR_BASE + 1, PRNOENT = PR_ERROR_BASE + 4 };

int pts_begin(struct pts *p, struct cli *c)
{
	*p = (struct pts){.c = c};
	arena_init(&p->arena, PTS_ARENA);
	return suite_open(c, false, &p->a);
}

void pts_cleanup(struct pts *p)
{
	if (p->a)
		admin_close(p->a);
	arena_fini(&p->arena);
}

int pts_end(struct pts *p) { return p->failed ? CLI_FAILED : CLI_OK; }

bool pts_failed(struct pts *p, afs_err err, const char *fmt, ...)
{
	va_list ap;
	char text[512];
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cli_fail(p->c, "%s: %s", text, admin_why(p->a, err));
	p->failed = true;
	p->stop = !cli_has(p->c, "force");
	return p->stop;
}

/* --- names and ids ------------------------------------------------------------------------- */

static bool name_words(const char *name, struct prname *out)
{
	size_t n = strlen(name);
	if (n > AFS_PRNAME_MAX)
		return false;
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < n; i++)
		out->text[i] = (char)tolower((unsigned char)name[i]);
	return true;
}

static bool is_id(const char *text, int32_t *id)
{
	int64_t v;
	if (!text_int(text, &v) || v < INT32_MIN || v > INT32_MAX)
		return false;
	*id = (int32_t)v;
	return true;
}

afs_err pts_names(struct pts *p, const int32_t *ids, uint32_t n, struct prname **out)
{
	*out = arena_alloc(&p->arena, n ? n : 1, sizeof(struct prname));
	if (!*out)
		return AFS_ENOMEM;
	for (uint32_t at = 0; at < n;) {
		uint32_t k = MIN(n - at, (uint32_t)PT_NAMES_MAX);
		struct pt_id_to_name_in in = {.ilist = {(int32_t *)(uintptr_t)(ids + at), k}};
		struct pt_id_to_name_out res = {};
		TRY(PT_CALL(p->a, id_to_name, &in, &res, &p->arena));
		if (res.nlist.n != k)
			return AFS_EPROTOCOL;
		memcpy(*out + at, res.nlist.v, k * sizeof(struct prname));
		at += k;
	}
	return AFS_OK;
}

static afs_err look_up(struct pts *p, struct pts_who *w, size_t n)
{
	struct prname *names = arena_alloc(&p->arena, n ? n : 1, sizeof(*names));
	int32_t *ids = arena_alloc(&p->arena, n ? n : 1, sizeof(*ids));
	uint32_t name_n = 0, id_n = 0;
	if (!names || !ids)
		return AFS_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (is_id(w[i].text, &w[i].id)) {
			w[i].found = true;
			ids[id_n++] = w[i].id;
		} else if (name_words(w[i].text, &names[name_n])) {
			name_n++;
		}
	}
	struct prname *id_names;
	TRY(pts_names(p, ids, id_n, &id_names));
	int32_t *name_ids = arena_alloc(&p->arena, name_n ? name_n : 1, sizeof(*name_ids));
	if (!name_ids)
		return AFS_ENOMEM;
	for (uint32_t at = 0; at < name_n;) {
		uint32_t k = MIN(name_n - at, (uint32_t)PT_NAMES_MAX);
		struct pt_name_to_id_in in = {.nlist = {names + at, k}};
		struct pt_name_to_id_out res = {};
		TRY(PT_CALL(p->a, name_to_id, &in, &res, &p->arena));
		if (res.ilist.n != k)
			return AFS_EPROTOCOL;
		memcpy(name_ids + at, res.ilist.v, k * sizeof(*name_ids));
		at += k;
	}
	id_n = name_n = 0;
	for (size_t i = 0; i < n; i++) {
		struct prname tmp;
		if (w[i].found) {
			snprintf(w[i].name, sizeof(w[i].name), "%s", id_names[id_n++].text);
		} else if (name_words(w[i].text, &tmp)) {
			w[i].id = name_ids[name_n++];
			w[i].found = w[i].id != AFS_ANONYMOUS || strcmp(tmp.text, "anonymous") == 0;
			snprintf(w[i].name, sizeof(w[i].name), "%s", tmp.text);
		}
	}
	return AFS_OK;
}

static void unknown(struct pts *p, const char *text)
{
	cli_fail(p->c, "%s: no such user or group", text);
	p->failed = true;
}

afs_err pts_lookup(struct pts *p, const char *row, struct pts_who **out, size_t *n)
{
	const char *const *v;
	*n = cli_values(p->c, row, &v);
	*out = mem_new_array(*n, struct pts_who);
	if (!*out)
		return AFS_ENOMEM;
	for (size_t i = 0; i < *n; i++)
		(*out)[i].text = v[i];
	TRY(look_up(p, *out, *n));
	for (size_t i = 0; i < *n; i++)
		if (!(*out)[i].found)
			unknown(p, v[i]);
	return AFS_OK;
}

afs_err pts_lookup_one(struct pts *p, const char *text, struct pts_who *out)
{
	*out = (struct pts_who){.text = text};
	TRY(look_up(p, out, 1));
	if (!out->found)
		unknown(p, text);
	return AFS_OK;
}

/* --- entries ------------------------------------------------------------------------------- */

/* The i-th of -id, 0 when there are fewer; `sign` is what it must have. */
static int id_arg(struct pts *p, size_t i, int sign, int32_t *out)
{
	const char *const *ids;
	size_t n = cli_values(p->c, "id", &ids);
	*out = 0;
	if (i >= n)
		return CLI_OK;
	if (!is_id(ids[i], out) || (sign > 0 ? *out <= 0 : *out >= 0))
		return cli_misuse(p->c, "-id %s: expected a %s number", ids[i], sign > 0 ? "positive" : "negative");
	return CLI_OK;
}

static int create(struct cli *c, bool group)
{
	CLEANUP(pts) struct pts p = {};
	const char *const *names;
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	struct pts_who owner = {};
	if (group && cli_value(c, "owner")) {
		afs_err err = pts_lookup_one(&p, cli_value(c, "owner"), &owner);
		if (err != AFS_OK)
			return suite_fail(c, p.a, err, "%s", cli_value(c, "owner"));
		if (!owner.found)
			return CLI_FAILED;
	}
	json_t *made = json_array();
	size_t n = cli_values(c, "name", &names);
	for (size_t i = 0; i < n && !p.stop && status == CLI_OK; i++) {
		int32_t id;
		status = id_arg(&p, i, group ? -1 : 1, &id);
		if (status != CLI_OK)
			break;
		afs_err err;
		if (id) {
			struct pt_inew_entry_in in = {.name = XDR_STR_OF(names[i]), .id = id, .oid = owner.id};
			struct pt_inew_entry_out out;
			err = PT_CALL(p.a, inew_entry, &in, &out, NULL);
		} else {
			struct pt_new_entry_in in = {.name = XDR_STR_OF(names[i]), .flag = group ? PT_GROUP : PT_USER, .oid = owner.id};
			struct pt_new_entry_out out = {};
			err = PT_CALL(p.a, new_entry, &in, &out, NULL);
			id = out.id;
		}
		if (err != AFS_OK)
			pts_failed(&p, err, "cannot create the %s %s", group ? "group" : "user", names[i]);
		else if (cli_wants_json(c))
			json_array_append_new(made, json_pack("{s:s, s:i}", "name", names[i], "id", id));
		else
			printf("%s %s has id %d\n", group ? "group" : "User", names[i], id);
	}
	if (cli_wants_json(c))
		(void)cli_print_json(c, made); /* a failure to print is main's to tell */
	else
		json_decref(made);
	return status != CLI_OK ? status : pts_end(&p);
}

int cli_pts_createuser(struct cli *c) { return create(c, false); }
int cli_pts_creategroup(struct cli *c) { return create(c, true); }

static afs_err delete_one(struct pts *p, const struct pts_who *w, const void *arg)
{
	(void)arg;
	struct pt_delete_in in = {.id = w->id};
	struct pt_delete_out out;
	return PT_CALL(p->a, delete, &in, &out, NULL);
}

/* Runs `each` for every name of -nameorid. */
static int for_names(struct cli *c, const char *what, afs_err (*each)(struct pts *, const struct pts_who *, const void *arg),
	const void *arg)
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
	for (size_t i = 0; i < n && !p.stop; i++) {
		if (!w[i].found)
			continue;
		err = each(&p, &w[i], arg);
		if (err != AFS_OK)
			pts_failed(&p, err, "cannot %s %s (id %d)", what, w[i].name, w[i].id);
	}
	return pts_end(&p);
}

int cli_pts_delete(struct cli *c) { return for_names(c, "delete", delete_one, NULL); }

/* --- members --------------------------------------------------------------------------------- */

static int members(struct cli *c, bool add)
{
	CLEANUP(pts) struct pts p = {};
	CLEANUP(heap) struct pts_who *users = NULL, *groups = NULL;
	size_t user_n = 0, group_n = 0;
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	afs_err err = pts_lookup(&p, "user", &users, &user_n);
	if (err == AFS_OK)
		err = pts_lookup(&p, "group", &groups, &group_n);
	if (err != AFS_OK)
		return suite_fail(c, p.a, err, "cannot look up names");
	if (p.failed && !cli_has(c, "force"))
		return CLI_FAILED;
	for (size_t g = 0; g < group_n && !p.stop; g++)
		for (size_t u = 0; u < user_n && !p.stop; u++) {
			if (!users[u].found || !groups[g].found)
				continue;
			if (add) {
				struct pt_add_to_group_in in = {users[u].id, groups[g].id};
				struct pt_add_to_group_out out;
				err = PT_CALL(p.a, add_to_group, &in, &out, NULL);
			} else {
				struct pt_remove_from_group_in in = {users[u].id, groups[g].id};
				struct pt_remove_from_group_out out;
				err = PT_CALL(p.a, remove_from_group, &in, &out, NULL);
			}
			if (err != AFS_OK)
				pts_failed(&p, err, "cannot %s %s %s %s%s", add ? "add" : "remove", users[u].name, add ? "to" : "from",
					groups[g].name, admin_code(p.a) != (add ? PRIDEXIST : PRNOENT) ? "" : add ? ", of which it is a member" : ", of which it is no member");
		}
	return pts_end(&p);
}

int cli_pts_adduser(struct cli *c) { return members(c, true); }
int cli_pts_removeuser(struct cli *c) { return members(c, false); }

/* --- fields ----------------------------------------------------------------------------------- */

static int change(struct cli *c, const char *row, const char *new_name, const char *owner)
{
	CLEANUP(pts) struct pts p = {};
	struct pts_who who, to = {};
	int status = pts_begin(&p, c);
	if (status != CLI_OK)
		return status;
	afs_err err = pts_lookup_one(&p, cli_value(c, row), &who);
	if (err == AFS_OK && owner)
		err = pts_lookup_one(&p, owner, &to);
	if (err != AFS_OK)
		return suite_fail(c, p.a, err, "cannot look up names");
	if (p.failed)
		return CLI_FAILED;
	struct pt_change_entry_in in = {.id = who.id, .name = XDR_STR_OF(new_name ? new_name : ""), .oid = to.id};
	struct pt_change_entry_out out;
	err = PT_CALL(p.a, change_entry, &in, &out, NULL);
	if (err != AFS_OK)
		pts_failed(&p, err, owner ? "cannot give %s to %s" : "cannot rename %s to %s", who.name, owner ? to.name : new_name);
	return pts_end(&p);
}

int cli_pts_chown(struct cli *c) { return change(c, "name", NULL, cli_value(c, "owner")); }
int cli_pts_rename(struct cli *c) { return change(c, "oldname", cli_value(c, "newname"), NULL); }

/* "SOMar": a letter for each right, capital for anybody, small for members, - for nobody else. */
static bool read_access(const char *s, int32_t *out)
{
	static const struct {
		char any, mem;
		int32_t any_bit, mem_bit;
	} place[] = {{'S', 's', PTP_STATUS_ANY, PTP_STATUS_MEM}, {'O', '\0', PTP_OWNED_ANY, 0},
		{'M', 'm', PTP_MEMBER_ANY, PTP_MEMBER_MEM}, {'A', 'a', PTP_ADD_ANY, PTP_ADD_MEM},
		{'\0', 'r', 0, PTP_REMOVE_MEM}};
	*out = 0;
	if (strlen(s) != ARRAY_SIZE(place))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		if (s[i] == '-')
			continue;
		if (s[i] == place[i].any)
			*out |= place[i].any_bit;
		else if (s[i] == place[i].mem)
			*out |= place[i].mem_bit;
		else
			return false;
	}
	return true;
}

static afs_err set_fields(struct pts *p, const struct pts_who *w, const void *arg)
{
	struct pt_set_fields_entry_in in = *(const struct pt_set_fields_entry_in *)arg;
	struct pt_set_fields_entry_out out;
	in.id = w->id;
	return PT_CALL(p->a, set_fields_entry, &in, &out, NULL);
}

int cli_pts_setfields(struct cli *c)
{
	const char *access = cli_value(c, "access"), *quota = cli_value(c, "groupquota");
	struct pt_set_fields_entry_in fields = {};
	if (!access && !quota)
		return cli_misuse(c, "nothing to set: give -access or -groupquota");
	if (access) {
		if (!read_access(access, &fields.flags))
			return cli_misuse(c, "-access %s: expected five letters like S-M-- or SOMar", access);
		fields.mask |= 0xff;
	}
	if (quota) {
		int64_t n;
		if (!text_int(quota, &n) || n < 0 || n > INT32_MAX)
			return cli_misuse(c, "-groupquota %s: expected a number of groups", quota);
		fields.mask |= PT_SET_NGROUPS;
		fields.ngroups = (int32_t)n;
	}
	return for_names(c, "set fields of", set_fields, &fields);
}

int cli_pts_setmax(struct cli *c)
{
	static const struct {
		const char *row;
		int32_t flag;
	} kinds[] = {{"group", PT_GROUP}, {"user", PT_USER}};
	if (!cli_has(c, "group") && !cli_has(c, "user"))
		return cli_misuse(c, "give -group or -user, or both");
	CLEANUP(pts) struct pts p = {};
	int status = pts_begin(&p, c);
	for (size_t i = 0; status == CLI_OK && i < ARRAY_SIZE(kinds) && !p.stop; i++) {
		const char *text = cli_value(c, kinds[i].row);
		struct pt_set_max_in in = {.gflag = kinds[i].flag};
		struct pt_set_max_out out;
		if (!text)
			continue;
		if (!is_id(text, &in.id))
			return cli_misuse(c, "-%s %s: expected an id", kinds[i].row, text);
		afs_err err = PT_CALL(p.a, set_max, &in, &out, NULL);
		if (err != AFS_OK)
			pts_failed(&p, err, "cannot set the highest %s id to %d", kinds[i].row, in.id);
	}
	return status != CLI_OK ? status : pts_end(&p);
}
