/* SPDX-License-Identifier: BSD-2-Clause
 * PR's procedures: who asks, then a verb.  Rights are judged in pt_may.c only. */
#include "dbserver/pt/pt_store.h"

#include <stdio.h>

#define RPC_WANT_HANDLERS
#define RPC_PREFIX pt
#define RPC_ROWS "cell/proto/pt.rpc"
#include "rx/xdr/iface_pass.h"

/* What is asked often and remembered: kinds of the memo. */
enum { MEMO_ID_OF, MEMO_NAME_OF, MEMO_CPS, MEMO_HOST_CPS, MEMO_NEXT };

static afs_err who_asks(struct rpc_call *call, struct db *db, struct pt_who *who)
{
	struct pt *pt = call->service;
	struct keys_name name = {};
	if (call->caller && call->caller->authenticated)
		pt->ports.afs_name(pt->ports.ctx, call->caller, &name);
	return pt_who_of_name(db, &name, who);
}

/* A change as its caller: begins, and knows who.  Strangers do not even get to wait for the lock, so that
 * they cannot keep it from others; the judge says no to them too. */
static afs_err change_begin(struct rpc_call *call, struct pt_write *w, struct pt_who *who)
{
	if (!call->caller || !call->caller->authenticated)
		return AFS_EPERM;
	TRY(pt_write_begin(call->service, w));
	return who_asks(call, w->db, who);
}

/* Reading about entry `id`: begins, knows who, has the entry, and may. */
static afs_err read_begin(struct rpc_call *call, struct pt_read *r, enum pt_verb verb, int32_t id,
	struct pt_entry *entry)
{
	struct pt_who who;
	struct pt_leave leave;
	TRY(pt_read_begin(call->service, r));
	TRY(who_asks(call, r->db, &who));
	TRY(pt_row_by_id(r->db, id, entry));
	return pt_may(r->db, &who, verb, entry, &leave);
}

/* An answer that depends on who asks: about `id`, for a caller of these names. */
struct memo_key {
	int32_t id;
	char names[3 * RX_NAME_MAX];
};
static size_t memo_key(const struct rpc_call *call, int32_t id, struct memo_key *key)
{
	const struct rx_caller *c = call->caller;
	size_t n = sizeof(key->id);
	key->id = id;
	if (c && c->authenticated) {
		const char *const part[] = {c->name, c->instance, c->cell};
		for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
			const size_t len = strlen(part[i]) + 1;
			memcpy((char *)key + n, part[i], len);
			n += len;
		}
	}
	return n;
}

/* A list that was worked out before; false: it was not. */
static bool known_list(struct rpc_call *call, uint8_t kind, const void *key, size_t key_len, int32_t **v, uint32_t *n)
{
	enum { SHORT = 64 };
	size_t len;
	int32_t ids[SHORT]; /* longer ones are read again */
	if (!memo_get(((struct pt *)call->service)->memo, kind, key, key_len, ids, sizeof(ids), &len))
		return false;
	*v = arena_alloc(call->arena, len / sizeof(**v) + 1, sizeof(**v));
	if (!*v)
		return false;
	memcpy(*v, ids, len);
	*n = (uint32_t)(len / sizeof(**v));
	return true;
}

static void learn_list(
	struct rpc_call *call, const struct pt_read *r, uint8_t kind, const void *key, size_t key_len, const struct pt_list *l)
{
	memo_put(((struct pt *)call->service)->memo, r->since, kind, key, key_len, l->v, l->n * sizeof(l->v[0]));
}

/* A list into the call's arena. */
static afs_err give_list(struct rpc_call *call, const struct pt_list *l, int32_t **v, uint32_t *n)
{
	*n = l->n;
	*v = NULL;
	if (!l->n)
		return AFS_OK;
	*v = arena_alloc(call->arena, l->n, sizeof(**v));
	if (!*v)
		return AFS_ENOMEM;
	memcpy(*v, l->v, l->n * sizeof(**v));
	return AFS_OK;
}

static void give_entry(const struct pt_entry *e, struct prcheckentry *out)
{
	*out = (struct prcheckentry){.flags = e->flags & 0xff,
		.id = e->id,
		.owner = e->owner,
		.creator = e->creator,
		.ngroups = e->ngroups,
		.nusers = e->nusers,
		.count = e->count};
	memcpy(out->name, e->name, strlen(e->name));
}

/* --- names and ids: open to everyone ------------------------------------------------------------- */

afs_err pt_name_to_id(
	struct rpc_call *call, const struct pt_name_to_id_in *in, struct pt_name_to_id_out *out)
{
	if (!in->nlist.n)
		return AFS_OK;
	struct pt *pt = call->service;
	CLEANUP(pt_read) struct pt_read r = {};
	out->ilist.v = arena_alloc(call->arena, in->nlist.n, sizeof(out->ilist.v[0]));
	if (!out->ilist.v)
		return AFS_ENOMEM;
	out->ilist.n = in->nlist.n;
	for (uint32_t i = 0; i < in->nlist.n; i++) {
		const char *name = in->nlist.v[i].text;
		const size_t len = strlen(name);
		size_t size;
		if (memo_get(pt->memo, MEMO_ID_OF, name, len, &out->ilist.v[i], sizeof(out->ilist.v[i]), &size))
			continue;
		if (!r.db)
			TRY(pt_read_begin(pt, &r));
		afs_err err = pt_find_name(pt, r.db, name, len, &out->ilist.v[i]);
		if (err == AFS_ENOENT)
			out->ilist.v[i] = AFS_ANONYMOUS;
		else if (err)
			return err;
		else
			memo_put(pt->memo, r.since, MEMO_ID_OF, name, len, &out->ilist.v[i], sizeof(out->ilist.v[i]));
	}
	return AFS_OK;
}

afs_err pt_id_to_name(
	struct rpc_call *call, const struct pt_id_to_name_in *in, struct pt_id_to_name_out *out)
{
	if (!in->ilist.n)
		return AFS_OK;
	struct pt *pt = call->service;
	CLEANUP(pt_read) struct pt_read r = {};
	out->nlist.v = arena_alloc(call->arena, in->ilist.n, sizeof(out->nlist.v[0]));
	if (!out->nlist.v)
		return AFS_ENOMEM;
	out->nlist.n = in->ilist.n;
	for (uint32_t i = 0; i < in->ilist.n; i++) {
		char *text = out->nlist.v[i].text;
		const int32_t id = in->ilist.v[i];
		size_t len;
		if (memo_get(pt->memo, MEMO_NAME_OF, &id, sizeof(id), text, PT_NAME_MAX + 1, &len))
			continue;
		if (!r.db)
			TRY(pt_read_begin(pt, &r));
		afs_err err = pt_row_name_of(r.db, id, text);
		if (err == AFS_ENOENT)
			snprintf(text, PT_NAME_MAX + 1, "%d", id);
		else if (err)
			return err;
		else
			memo_put(pt->memo, r.since, MEMO_NAME_OF, &id, sizeof(id), text, strlen(text) + 1);
	}
	return AFS_OK;
}

afs_err pt_list_max(
	struct rpc_call *call, const struct pt_list_max_in *in, struct pt_list_max_out *out)
{
	(void)in;
	CLEANUP(pt_read) struct pt_read r = {};
	TRY(pt_read_begin(call->service, &r));
	return pt_max_get(r.db, &out->uid, &out->gid);
}

/* --- reading an entry ------------------------------------------------------------------------------ */

afs_err pt_list_entry(
	struct rpc_call *call, const struct pt_list_entry_in *in, struct pt_list_entry_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	struct pt_entry e;
	TRY(read_begin(call, &r, PTV_STATUS, in->id, &e));
	give_entry(&e, &out->entry);
	return AFS_OK;
}

afs_err pt_list_elements(struct rpc_call *call, const struct pt_list_elements_in *in,
	struct pt_list_elements_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_entry e;
	TRY(read_begin(call, &r, PTV_MEMBERSHIP, in->id, &e));
	TRY(in->id < 0 ? pt_members_of(r.db, in->id, PT_LIST_MAX, &l)
		       : pt_groups_of(r.db, in->id, PT_LIST_MAX, &l));
	return give_list(call, &l, &out->elist.v, &out->elist.n);
}

afs_err pt_list_super_groups(struct rpc_call *call, const struct pt_list_super_groups_in *in,
	struct pt_list_super_groups_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_entry e;
	TRY(read_begin(call, &r, PTV_MEMBERSHIP, in->id, &e));
	TRY(pt_groups_of(r.db, in->id, PT_LIST_MAX, &l));
	return give_list(call, &l, &out->elist.v, &out->elist.n);
}

afs_err pt_list_owned(
	struct rpc_call *call, const struct pt_list_owned_in *in, struct pt_list_owned_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_who who;
	struct pt_entry e;
	struct pt_leave leave;
	TRY(pt_read_begin(call->service, &r));
	TRY(who_asks(call, r.db, &who));
	if (in->id) {
		TRY(pt_row_by_id(r.db, in->id, &e));
		TRY(pt_may(r.db, &who, PTV_OWNED, &e, &leave));
	} else {
		TRY(pt_may(r.db, &who, PTV_ORPHANS, NULL, &leave));
	}
	bool more;
	/* the cookie is the last id that was given; ids are never 0 */
	TRY(pt_owned_by(r.db, in->id, in->lastp ? in->lastp : (int64_t)INT32_MIN, PT_LIST_MAX, &l,
		&more));
	out->lastp = more ? l.v[l.n - 1] : 0;
	return give_list(call, &l, &out->elist.v, &out->elist.n);
}

/* Judged on the member, and when that says no on the group. */
afs_err pt_is_a_member_of(struct rpc_call *call, const struct pt_is_a_member_of_in *in,
	struct pt_is_a_member_of_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	struct pt_who who;
	struct pt_entry member, group;
	struct pt_leave leave;
	TRY(pt_read_begin(call->service, &r));
	TRY(who_asks(call, r.db, &who));
	TRY(pt_row_by_id(r.db, in->uid, &member));
	TRY(pt_row_by_id(r.db, in->gid, &group));
	afs_err err = pt_may(r.db, &who, PTV_MEMBERSHIP, &member, &leave);
	if (err == AFS_EPERM)
		err = pt_may(r.db, &who, PTV_MEMBERSHIP, &group, &leave);
	TRY(err);
	if (in->gid > 0)
		return AFS_EBADARG;
	bool yes = in->gid == AFS_ANYUSER || (in->gid == AFS_AUTHUSER && in->uid != AFS_ANONYMOUS);
	if (!yes)
		TRY(pt_is_member(r.db, in->uid, in->gid, &yes));
	out->flag = yes;
	return AFS_OK;
}

/* --- protection subdomains ------------------------------------------------------------------------- */

afs_err pt_get_cps(
	struct rpc_call *call, const struct pt_get_cps_in *in, struct pt_get_cps_out *out)
{
	struct memo_key key;
	const size_t key_len = memo_key(call, in->id, &key);
	if (known_list(call, MEMO_CPS, &key, key_len, &out->elist.v, &out->elist.n))
		return AFS_OK;
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_entry e;
	TRY(read_begin(call, &r, PTV_MEMBERSHIP, in->id, &e));
	TRY(pt_cps(r.db, &e, PT_LIST_MAX, &l));
	learn_list(call, &r, MEMO_CPS, &key, key_len, &l);
	return give_list(call, &l, &out->elist.v, &out->elist.n);
}

afs_err pt_get_cps2(
	struct rpc_call *call, const struct pt_get_cps2_in *in, struct pt_get_cps2_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_entry e;
	if (in->id == PT_BADID) {
		TRY(pt_read_begin(call->service, &r));
	} else {
		TRY(read_begin(call, &r, PTV_MEMBERSHIP, in->id, &e));
		TRY(pt_cps(r.db, &e, PT_LIST_MAX, &l));
	}
	TRY(pt_host_cps(r.db, in->host, PT_LIST_MAX, &l));
	return give_list(call, &l, &out->elist.v, &out->elist.n);
}

afs_err pt_get_host_cps(
	struct rpc_call *call, const struct pt_get_host_cps_in *in, struct pt_get_host_cps_out *out)
{
	if (known_list(call, MEMO_HOST_CPS, &in->host, sizeof(in->host), &out->elist.v, &out->elist.n))
		return AFS_OK;
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	TRY(pt_read_begin(call->service, &r));
	TRY(pt_host_cps(r.db, in->host, PT_LIST_MAX, &l));
	learn_list(call, &r, MEMO_HOST_CPS, &in->host, sizeof(in->host), &l);
	return give_list(call, &l, &out->elist.v, &out->elist.n);
}

/* --- all entries ------------------------------------------------------------------------------------ */

/* The entry that was made after number *n. */
static afs_err next_entry(struct pt *pt, const struct pt_read *r, int64_t *n, struct pt_entry *e)
{
	struct {
		int64_t n;
		struct pt_entry e;
	} found;
	size_t len;
	const int64_t after = *n;
	if (!memo_get(pt->memo, MEMO_NEXT, &after, sizeof(after), &found, sizeof(found), &len)) {
		memset(&found, 0, sizeof(found));
		TRY(pt_row_next(r->db, n, &found.e));
		found.n = *n;
		memo_put(pt->memo, r->since, MEMO_NEXT, &after, sizeof(after), &found, sizeof(found));
	}
	*n = found.n;
	*e = found.e;
	return AFS_OK;
}

afs_err pt_list_entries(
	struct rpc_call *call, const struct pt_list_entries_in *in, struct pt_list_entries_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	struct pt_who who;
	struct pt_leave leave;
	TRY(pt_read_begin(call->service, &r));
	TRY(who_asks(call, r.db, &who));
	TRY(pt_may(r.db, &who, PTV_ALL, NULL, &leave));
	out->nextstartindex = -1;
	if (in->startindex < 0)
		return AFS_EBADARG;
	struct prcheckentry *v = arena_alloc(call->arena, PT_PAGE, sizeof(*v));
	if (!v)
		return AFS_ENOMEM;
	out->bulkentries.v = v;
	int64_t n = in->startindex;
	for (;;) {
		struct pt_entry e;
		int64_t after = n;
		afs_err err = next_entry(call->service, &r, &n, &e);
		if (err == AFS_ENOENT)
			return AFS_OK;
		if (err)
			return err;
		if (!(in->flag & (e.id < 0 ? PT_LIST_GROUPS : PT_LIST_USERS)))
			continue;
		if (out->bulkentries.n == PT_PAGE) {
			if (after > INT32_MAX)
				return AFS_ETOOMANY;
			out->nextstartindex = (int32_t)after;
			return AFS_OK;
		}
		give_entry(&e, &v[out->bulkentries.n++]);
	}
}

/* --- another server's file ------------------------------------------------------------------------- */

/* Positions are numbers of rows.  Asked in turn they would list all entries, so that both calls are for
 * those who may list them. */
afs_err pt_where_is_it(
	struct rpc_call *call, const struct pt_where_is_it_in *in, struct pt_where_is_it_out *out)
{
	CLEANUP(pt_read) struct pt_read r = {};
	struct pt_entry e;
	int64_t n;
	TRY(read_begin(call, &r, PTV_DUMP, in->id, &e));
	TRY(pt_row_number_of(r.db, in->id, &n));
	if (n > INT32_MAX)
		return AFS_ETOOMANY;
	out->ps = (int32_t)n;
	return AFS_OK;
}

afs_err pt_dump_entry(
	struct rpc_call *call, const struct pt_dump_entry_in *in, struct pt_dump_entry_out *out)
{
	enum { STORED_GROUP = 2, STORED_FOREIGN = 16, STORED_ACCESS = 0x40, STORED_QUOTA = 0x80 };
	CLEANUP(pt_read) struct pt_read r = {};
	CLEANUP(pt_list) struct pt_list l = {};
	struct pt_who who;
	struct pt_leave leave;
	struct pt_entry e;
	int64_t n = (int64_t)in->pos - 1, created, changed;
	TRY(pt_read_begin(call->service, &r));
	TRY(who_asks(call, r.db, &who));
	TRY(pt_may(r.db, &who, PTV_DUMP, NULL, &leave));
	if (in->pos <= 0)
		return AFS_EBADARG;
	TRY(pt_row_next(r.db, &n, &e));
	if (n != in->pos)
		return AFS_ENOENT;
	TRY(pt_row_times_of(r.db, e.id, &created, &changed));
	struct prdebugentry d = {.flags = (e.flags & 0xff) << 16 | STORED_ACCESS | STORED_QUOTA |
					  (e.id < 0 ? STORED_GROUP : 0) |
					  (e.cellid ? STORED_FOREIGN : 0),
		.id = e.id,
		.cellid = e.cellid,
		.reserved = {(int32_t)created, 0, 0, (int32_t)changed},
		.owner = e.owner,
		.creator = e.creator,
		.ngroups = e.ngroups,
		.nusers = e.nusers,
		.count = e.count};
	/* the entry's own block has the first ten */
	TRY(e.id < 0 ? pt_members_of(r.db, e.id, (uint32_t)e.count, &l)
		     : pt_groups_of(r.db, e.id, (uint32_t)e.count, &l));
	for (uint32_t i = 0; i < l.n && i < ARRAY_SIZE(d.entries); i++)
		d.entries[i] = l.v[i];
	memcpy(d.name, e.name, strlen(e.name));
	out->entry = d;
	return AFS_OK;
}

/* --- changes ------------------------------------------------------------------------------------------ */

afs_err pt_new_entry(
	struct rpc_call *call, const struct pt_new_entry_in *in, struct pt_new_entry_out *out)
{
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	if (in->flag != PT_USER && in->flag != PT_GROUP)
		return AFS_EBADARG;
	TRY(change_begin(call, &w, &who));
	struct pt_new want = {.name = in->name.p,
		.len = in->name.len,
		.group = in->flag == PT_GROUP,
		.owner = in->oid};
	TRY(pt_do_new(&w, &who, &want, &out->id));
	return pt_write_commit(&w);
}

afs_err pt_inew_entry(
	struct rpc_call *call, const struct pt_inew_entry_in *in, struct pt_inew_entry_out *out)
{
	(void)out;
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	TRY(change_begin(call, &w, &who));
	struct pt_new want = {.name = in->name.p,
		.len = in->name.len,
		.owner = in->oid,
		.id = in->id,
		.by_id = true};
	int32_t id;
	TRY(pt_do_new(&w, &who, &want, &id));
	return pt_write_commit(&w);
}

afs_err pt_delete(struct rpc_call *call, const struct pt_delete_in *in, struct pt_delete_out *out)
{
	(void)out;
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	TRY(change_begin(call, &w, &who));
	TRY(pt_do_delete(&w, &who, in->id));
	return pt_write_commit(&w);
}

afs_err pt_add_to_group(
	struct rpc_call *call, const struct pt_add_to_group_in *in, struct pt_add_to_group_out *out)
{
	(void)out;
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	TRY(change_begin(call, &w, &who));
	TRY(pt_do_add(&w, &who, in->id, in->gid));
	return pt_write_commit(&w);
}

afs_err pt_remove_from_group(struct rpc_call *call, const struct pt_remove_from_group_in *in,
	struct pt_remove_from_group_out *out)
{
	(void)out;
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	TRY(change_begin(call, &w, &who));
	TRY(pt_do_remove(&w, &who, in->id, in->gid));
	return pt_write_commit(&w);
}

afs_err pt_change_entry(
	struct rpc_call *call, const struct pt_change_entry_in *in, struct pt_change_entry_out *out)
{
	(void)out;
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	TRY(change_begin(call, &w, &who));
	struct pt_change change = {.id = in->id,
		.name = in->name.p,
		.len = in->name.len,
		.owner = in->oid,
		.newid = in->newid};
	TRY(pt_do_change(&w, &who, &change));
	return pt_write_commit(&w);
}

afs_err pt_set_fields_entry(struct rpc_call *call, const struct pt_set_fields_entry_in *in,
	struct pt_set_fields_entry_out *out)
{
	(void)out;
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	TRY(change_begin(call, &w, &who));
	struct pt_fields fields = {.id = in->id,
		.mask = in->mask,
		.flags = in->flags,
		.ngroups = in->ngroups,
		.nusers = in->nusers};
	TRY(pt_do_set_fields(&w, &who, &fields));
	return pt_write_commit(&w);
}

afs_err pt_set_max(
	struct rpc_call *call, const struct pt_set_max_in *in, struct pt_set_max_out *out)
{
	(void)out;
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	TRY(change_begin(call, &w, &who));
	TRY(pt_do_set_max(&w, &who, in->id, in->gflag));
	return pt_write_commit(&w);
}

/* Only chains of names and ids can be asked to be made again; an index of ours cannot be wrong. */
afs_err pt_update_entry(
	struct rpc_call *call, const struct pt_update_entry_in *in, struct pt_update_entry_out *out)
{
	(void)out;
	enum { REHASH_NAME = 8, REHASH_ID = 0x10 };
	CLEANUP(pt_write) struct pt_write w = {};
	struct pt_who who;
	struct pt_leave leave;
	struct pt_entry e;
	TRY(change_begin(call, &w, &who));
	TRY(pt_may(w.db, &who, PTV_REHASH, NULL, &leave));
	if (in->uentry.Mask & ~(uint32_t)(REHASH_NAME | REHASH_ID))
		return AFS_EBADARG;
	/* id 0: the entry is named */
	return in->id ? pt_row_by_id(w.db, in->id, &e)
		      : pt_row_by_name(w.db, in->name.p, in->name.len, &e);
}

/* --- service ------------------------------------------------------------------------------------------- */

static bool is_superuser(void *ctx, const struct rx_caller *caller)
{
	const struct dbserver_ports *p = &((struct pt *)ctx)->ports;
	return p->superuser && p->superuser(p->ctx, caller);
}

static void call_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err,
	int32_t code, int64_t took_ns)
{
	const struct dbserver_ports *p = &((struct pt *)ctx)->ports;
	if (p->done)
		p->done(p->ctx, call, in, err, code, took_ns);
}

size_t pt_services(struct pt *pt, struct rpc_service out[DBSERVER_SERVICES])
{
	_Static_assert(ARRAY_SIZE(pt_handlers) == pt_op_count, "a handler per row");
	out[0] = (struct rpc_service){.iface = &pt_iface,
		.handlers = pt_handlers,
		.ctx = pt,
		.allow_anonymous = true,
		.superuser = is_superuser,
		.done = call_done};
	ubik_services(&pt->ubik, out + 1);
	return DBSERVER_SERVICES;
}
