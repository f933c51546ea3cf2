/* SPDX-License-Identifier: BSD-2-Clause
 * VL's procedures.  Who may is in the rows of vl.rpc, but for patterns, which are the superuser's.
 *
 * Lists without pages are gathered in turns: the reading connection is let go every SCAN_TURN entries, so
 * that a lookup does not wait for the whole of a long one. */
#include "dbserver/vl/vl_store.h"

#include "cell/proto/cb.h"

#define RPC_WANT_HANDLERS
#define RPC_PREFIX vl
#define RPC_ROWS "cell/proto/vl.rpc"
#include "rx/xdr/iface_pass.h"

enum { SCAN_TURN = 32, DB_VERSION = 4 };

/* --- one entry -------------------------------------------------------------------------------- */

/* How rows are found: kinds of the memo. */
enum { MEMO_ID, MEMO_NAME, MEMO_NEXT };

static bool known(struct vl *vl, uint8_t kind, const void *key, size_t key_len, struct vl_row *row)
{
	size_t len;
	return memo_get(vl->memo, kind, key, key_len, row, sizeof(*row), &len);
}

static void learn(struct vl *vl, uint64_t since, uint8_t kind, const void *key, size_t key_len, const struct vl_row *row)
{
	memo_put(vl->memo, since, kind, key, key_len, row, offsetof(struct vl_row, site) + row->sites * sizeof(row->site[0]));
}

static afs_err by_id(struct rpc_call *call, uint32_t id, int32_t voltype, struct vl_row *row)
{
	struct vl *vl = call->service;
	const uint32_t key[2] = {id, (uint32_t)voltype};
	if (voltype < VL_ANY_TYPE || voltype > AFS_VOL_BK)
		return AFS_EVBADTYPE;
	if (known(vl, MEMO_ID, key, sizeof(key), row))
		return AFS_OK;
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(vl, &r));
	TRY(vl_row_by_id(r.db, id, voltype, row));
	learn(vl, r.since, MEMO_ID, key, sizeof(key), row);
	return AFS_OK;
}

static afs_err by_name(struct rpc_call *call, struct xdr_str name, struct vl_row *row)
{
	struct vl *vl = call->service;
	if (known(vl, MEMO_NAME, name.p, name.len, row))
		return AFS_OK;
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(vl, &r));
	TRY(vl_find_by_name(r.db, name.p, name.len, row));
	learn(vl, r.since, MEMO_NAME, name.p, name.len, row);
	return AFS_OK;
}

/* The row behind number `after`, for lists: r is begun when it is needed. */
static afs_err next_row(struct vl *vl, struct vl_read *r, int64_t after, struct vl_row *row)
{
	if (known(vl, MEMO_NEXT, &after, sizeof(after), row))
		return AFS_OK;
	if (!r->db)
		TRY(vl_read_begin(vl, r));
	TRY(vl_row_next(r->db, after, row));
	learn(vl, r->since, MEMO_NEXT, &after, sizeof(after), row);
	return AFS_OK;
}

afs_err vl_get_entry_by_id(struct rpc_call *call, const struct vl_get_entry_by_id_in *in,
	struct vl_get_entry_by_id_out *out)
{
	struct vl_row row;
	TRY(by_id(call, in->Volid, in->voltype, &row));
	vl_row_to_o(&row, &out->entry);
	return AFS_OK;
}

afs_err vl_get_entry_by_id_n(struct rpc_call *call, const struct vl_get_entry_by_id_n_in *in,
	struct vl_get_entry_by_id_n_out *out)
{
	struct vl_row row;
	TRY(by_id(call, in->Volid, in->voltype, &row));
	vl_row_to_n(&row, &out->entry);
	return AFS_OK;
}

afs_err vl_get_entry_by_name(struct rpc_call *call, const struct vl_get_entry_by_name_in *in,
	struct vl_get_entry_by_name_out *out)
{
	struct vl_row row;
	TRY(by_name(call, in->volumename, &row));
	vl_row_to_o(&row, &out->entry);
	return AFS_OK;
}

afs_err vl_get_entry_by_name_n(struct rpc_call *call, const struct vl_get_entry_by_name_n_in *in,
	struct vl_get_entry_by_name_n_out *out)
{
	struct vl_row row;
	TRY(by_name(call, in->volumename, &row));
	vl_row_to_n(&row, &out->entry);
	return AFS_OK;
}

afs_err vl_get_entry_by_name_u(struct rpc_call *call, const struct vl_get_entry_by_name_u_in *in,
	struct vl_get_entry_by_name_u_out *out)
{
	struct vl_row row;
	TRY(by_name(call, in->volumename, &row));
	vl_row_to_u(&row, &out->entry);
	return AFS_OK;
}

/* --- changes --------------------------------------------------------------------------------- */

afs_err vl_create_entry(struct rpc_call *call, const struct vl_create_entry_in *in,
	struct vl_create_entry_out *out)
{
	(void)out;
	struct nvldbentry entry;
	vl_entry_o_to_n(&in->newentry, &entry);
	return vl_create(call->service, &entry, VL_OSITES_MAX);
}

afs_err vl_create_entry_n(struct rpc_call *call, const struct vl_create_entry_n_in *in,
	struct vl_create_entry_n_out *out)
{
	(void)out;
	return vl_create(call->service, &in->entry, VL_SITES_MAX);
}

afs_err vl_delete_entry(struct rpc_call *call, const struct vl_delete_entry_in *in,
	struct vl_delete_entry_out *out)
{
	(void)out;
	return vl_delete(call->service, in->Volid, in->voltype);
}

afs_err vl_replace_entry(struct rpc_call *call, const struct vl_replace_entry_in *in,
	struct vl_replace_entry_out *out)
{
	(void)out;
	struct nvldbentry entry;
	vl_entry_o_to_n(&in->newentry, &entry);
	return vl_replace(
		call->service, in->Volid, in->voltype, &entry, VL_OSITES_MAX, in->ReleaseType);
}

afs_err vl_replace_entry_n(struct rpc_call *call, const struct vl_replace_entry_n_in *in,
	struct vl_replace_entry_n_out *out)
{
	(void)out;
	return vl_replace(call->service, in->Volid, in->voltype, &in->newentry, VL_SITES_MAX,
		in->ReleaseType);
}

afs_err vl_update_entry(struct rpc_call *call, const struct vl_update_entry_in *in,
	struct vl_update_entry_out *out)
{
	(void)out;
	if (in->voltype < VL_ANY_TYPE || in->voltype > AFS_VOL_BK)
		return AFS_EVBADTYPE;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(call->service, &w));
	struct vl_row row;
	TRY(vl_row_by_id(w.db, in->Volid, in->voltype, &row));
	TRY(vl_update(&w, &row, &in->UpdateEntry, in->ReleaseType));
	return vl_write_commit(&w);
}

afs_err vl_update_entry_by_name(struct rpc_call *call,
	const struct vl_update_entry_by_name_in *in, struct vl_update_entry_by_name_out *out)
{
	(void)out;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(call->service, &w));
	struct vl_row row;
	TRY(vl_find_by_name(w.db, in->volname.p, in->volname.len, &row));
	TRY(vl_update(&w, &row, &in->UpdateEntry, in->ReleaseType));
	return vl_write_commit(&w);
}

afs_err vl_set_lock(
	struct rpc_call *call, const struct vl_set_lock_in *in, struct vl_set_lock_out *out)
{
	(void)out;
	return vl_lock(call->service, in->Volid, in->voltype, in->voloper, clk_wall());
}

afs_err vl_release_lock(struct rpc_call *call, const struct vl_release_lock_in *in,
	struct vl_release_lock_out *out)
{
	(void)out;
	return vl_unlock(call->service, in->Volid, in->voltype, in->ReleaseType);
}

afs_err vl_get_new_volume_id(struct rpc_call *call, const struct vl_get_new_volume_id_in *in,
	struct vl_get_new_volume_id_out *out)
{
	return vl_reserve(call->service, in->bumpcount, &out->newvolumid);
}

/* --- lists ------------------------------------------------------------------------------------- */

/* The entry behind index `previous`; an index that cannot be is answered with count -1. */
static afs_err list_next(
	struct rpc_call *call, int32_t previous, int32_t *count, int32_t *next, struct vl_row *row)
{
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(call->service, &r));
	int64_t last;
	TRY(vl_row_last(r.db, &last));
	if (previous < 0 || previous > last) {
		*count = -1;
		return AFS_ENOENT;
	}
	TRY(vl_row_next(r.db, previous, row));
	*count = (int32_t)(last - row->n + 1); /* an estimate, as stock's is */
	*next = (int32_t)row->n;
	return AFS_OK;
}

afs_err vl_list_entry(
	struct rpc_call *call, const struct vl_list_entry_in *in, struct vl_list_entry_out *out)
{
	struct vl_row row;
	afs_err err = list_next(call, in->previous_index, &out->count, &out->next_index, &row);
	if (!err)
		vl_row_to_o(&row, &out->entry);
	return err == AFS_ENOENT ? AFS_OK : err;
}

afs_err vl_list_entry_n(struct rpc_call *call, const struct vl_list_entry_n_in *in,
	struct vl_list_entry_n_out *out)
{
	struct vl_row row;
	afs_err err = list_next(call, in->previous_index, &out->count, &out->next_index, &row);
	if (!err)
		vl_row_to_n(&row, &out->entry);
	return err == AFS_ENOENT ? AFS_OK : err;
}

/* What a list is gathered into: an array of one generation of entries, grown in the call's arena. */
struct gather {
	struct arena *arena;
	bool old;
	void *v;
	uint32_t n, cap, max;
};

static afs_err gather_add(struct gather *g, const struct vl_row *row, int32_t matchindex)
{
	size_t size = g->old ? sizeof(struct vldbentry) : sizeof(struct nvldbentry);
	if (g->n == g->max)
		return AFS_ETOOMANY;
	if (g->n == g->cap) {
		uint32_t cap = g->cap ? g->cap * 2 : 16;
		void *v = arena_alloc(g->arena, cap, size);
		if (!v)
			return AFS_ENOMEM;
		if (g->n)
			memcpy(v, g->v, g->n * size);
		g->v = v;
		g->cap = cap;
	}
	if (g->old) {
		vl_row_to_o(row, (struct vldbentry *)g->v + g->n);
	} else {
		struct nvldbentry *e = (struct nvldbentry *)g->v + g->n;
		vl_row_to_n(row, e);
		e->matchindex = matchindex;
	}
	g->n++;
	return AFS_OK;
}

/* A turn of the scan behind *after: true while there may be more. */
static afs_err scan_turn(struct vl *vl, const struct VldbListByAttributes *attr, int64_t *after,
	struct gather *g, bool *more)
{
	CLEANUP(vl_read) struct vl_read r = {};
	struct vl_filter f;
	if (attr->Mask & VLLIST_SERVER)
		TRY(vl_read_begin(vl, &r));
	afs_err err = vl_filter_init(r.db, attr, &f);
	for (int turn = 0; !err && turn < SCAN_TURN; turn++) {
		struct vl_row row;
		err = next_row(vl, &r, *after, &row);
		if (err)
			break;
		*after = row.n;
		if (vl_filter_match(&f, &row))
			TRY(gather_add(g, &row, 0));
	}
	*more = !err;
	return err == AFS_ENOENT ? AFS_OK : err;
}

static afs_err gather_all(
	struct rpc_call *call, const struct VldbListByAttributes *attr, struct gather *g)
{
	if (attr->Mask & VLLIST_VOLUMEID) {
		struct vl_row row;
		TRY(by_id(call, attr->volumeid, VL_ANY_TYPE, &row));
		return gather_add(g, &row, 0);
	}
	int64_t after = 0;
	for (bool more = true; more;)
		TRY(scan_turn(call->service, attr, &after, g, &more));
	return AFS_OK;
}

afs_err vl_list_attributes(struct rpc_call *call, const struct vl_list_attributes_in *in,
	struct vl_list_attributes_out *out)
{
	struct gather g = {.arena = call->arena, .old = true, .max = VL_LIST_MAX};
	TRY(gather_all(call, &in->attributes, &g));
	out->nentries = (int32_t)g.n;
	out->blkentries.v = g.v;
	out->blkentries.n = g.n;
	return AFS_OK;
}

afs_err vl_list_attributes_n(struct rpc_call *call, const struct vl_list_attributes_n_in *in,
	struct vl_list_attributes_n_out *out)
{
	struct gather g = {.arena = call->arena, .max = VL_LIST_MAX};
	TRY(gather_all(call, &in->attributes, &g));
	out->nentries = (int32_t)g.n;
	out->blkentries.v = g.v;
	out->blkentries.n = g.n;
	return AFS_OK;
}

afs_err vl_linked_list(
	struct rpc_call *call, const struct vl_linked_list_in *in, struct vl_linked_list_out *out)
{
	struct gather g = {.arena = call->arena, .old = true, .max = VL_LIST_MAX};
	TRY(gather_all(call, &in->attributes, &g));
	out->nentries = (int32_t)g.n;
	out->linkedentries = (struct vldb_list){g.v, g.n};
	return AFS_OK;
}

afs_err vl_linked_list_n(struct rpc_call *call, const struct vl_linked_list_n_in *in,
	struct vl_linked_list_n_out *out)
{
	struct gather g = {.arena = call->arena, .max = VL_LIST_MAX};
	TRY(gather_all(call, &in->attributes, &g));
	out->nentries = (int32_t)g.n;
	out->linkedentries = (struct nvldb_list){g.v, g.n};
	return AFS_OK;
}

/* One page: rows behind *after until the page is full or *after is the last. */
static afs_err page_turn(struct vl *vl, const struct VldbListByAttributes *attr,
	const struct vl_pattern *pattern, int64_t *after, struct gather *g, bool *more)
{
	CLEANUP(vl_read) struct vl_read r = {};
	struct vl_filter f;
	if (attr->Mask & VLLIST_SERVER)
		TRY(vl_read_begin(vl, &r));
	afs_err err = vl_filter_init(r.db, attr, &f);
	for (int turn = 0; !err && turn < SCAN_TURN && g->n < g->max; turn++) {
		struct vl_row row;
		err = next_row(vl, &r, *after, &row);
		if (err)
			break;
		*after = row.n;
		int32_t match = vl_filter_match_n2(&f, pattern, &row);
		if (match >= 0)
			TRY(gather_add(g, &row, match));
	}
	*more = !err;
	return err == AFS_ENOENT ? AFS_OK : err;
}

afs_err vl_list_attributes_n2(struct rpc_call *call, const struct vl_list_attributes_n2_in *in,
	struct vl_list_attributes_n2_out *out)
{
	struct gather g = {.arena = call->arena, .max = VL_PAGE};
	struct vl_pattern pattern;
	const struct vl_pattern *use = NULL;
	out->nextstartindex = -1;
	if (in->volumename.len && !xdr_str_is(in->volumename, ".*")) {
		if (!call->superuser)
			return AFS_EPERM;
		TRY(vl_pattern_init(&pattern, in->volumename.p, in->volumename.len));
		use = &pattern;
	}
	if (in->attributes.Mask & VLLIST_VOLUMEID) {
		TRY(gather_all(call, &in->attributes, &g));
	} else {
		int64_t after = in->startindex;
		if (after < 0)
			return AFS_ERANGE;
		bool more = true;
		while (more && g.n < g.max)
			TRY(page_turn(call->service, &in->attributes, use, &after, &g, &more));
		if (more)
			out->nextstartindex = (int32_t)after;
	}
	out->nentries = (int32_t)g.n;
	out->blkentries.v = g.v;
	out->blkentries.n = g.n;
	return AFS_OK;
}

/* --- servers ---------------------------------------------------------------------------------- */

/* Registered servers are shown as 255.0 and their number, which GetAddrsU takes. */
afs_err vl_get_addrs(
	struct rpc_call *call, const struct vl_get_addrs_in *in, struct vl_get_addrs_out *out)
{
	(void)in;
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(call->service, &r));
	uint32_t *v = arena_alloc(call->arena, VL_SERVERS_MAX, sizeof(*v)), n = 0;
	if (!v)
		return AFS_ENOMEM;
	for (int slot = 1; slot <= VL_SERVERS_MAX; slot++) {
		struct vl_server s;
		afs_err err = vl_server_by_slot(r.db, slot, &s);
		if (err == AFS_ENOENT)
			continue;
		if (err)
			return err;
		if (s.registered)
			v[n++] = 0xff000000u | (uint32_t)slot;
		else if (s.n)
			v[n++] = s.ip[0];
	}
	out->nentries = (int32_t)n;
	out->blkaddr.v = v;
	out->blkaddr.n = n;
	return AFS_OK;
}

static afs_err find_server(
	struct db *db, const struct ListAddrByAttributes *by, struct vl_server *out)
{
	uint8_t uuid[AFS_UUID_BYTES];
	switch (by->Mask) {
	case VLADDR_IPADDR:
		TRY(vl_server_by_ip(db, by->ipaddr, out));
		break;
	case VLADDR_INDEX:
		if (by->index < 1 || by->index > VL_SERVERS_MAX)
			return AFS_ERANGE;
		TRY(vl_server_by_slot(db, by->index, out));
		break;
	case VLADDR_UUID:
		afs_uuid_to_bytes(&by->uuid, uuid);
		TRY(vl_server_by_uuid(db, uuid, out));
		break;
	default:
		return AFS_EVBADMASK;
	}
	return out->registered ? AFS_OK : AFS_ENOENT;
}

afs_err vl_get_addrs_u(
	struct rpc_call *call, const struct vl_get_addrs_u_in *in, struct vl_get_addrs_u_out *out)
{
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(call->service, &r));
	struct vl_server s;
	TRY(find_server(r.db, &in->inaddr, &s));
	uint32_t *v = arena_alloc(call->arena, VL_ADDRS_MAX, sizeof(*v));
	if (!v)
		return AFS_ENOMEM;
	memcpy(v, s.ip, s.n * sizeof(*v));
	out->uuid = afs_uuid_from_bytes(s.uuid);
	out->uniquifier = s.uniq;
	out->nentries = (int32_t)s.n;
	out->blkaddrs.v = v;
	out->blkaddrs.n = s.n;
	return AFS_OK;
}

afs_err vl_register_addrs(struct rpc_call *call, const struct vl_register_addrs_in *in,
	struct vl_register_addrs_out *out)
{
	(void)out;
	uint8_t uuid[AFS_UUID_BYTES];
	afs_uuid_to_bytes(&in->uuid, uuid);
	return vl_server_register(call->service, uuid, in->addrs.v, in->addrs.n);
}

afs_err vl_change_addr(
	struct rpc_call *call, const struct vl_change_addr_in *in, struct vl_change_addr_out *out)
{
	(void)out;
	if (in->new_addr >> 24 == 255)
		return AFS_EVBADSERVER;
	CLEANUP(vl_write) struct vl_write w = {};
	TRY(vl_write_begin(call->service, &w));
	if (in->old_addr == 0xffffffffu)
		TRY(vl_server_remove(&w, in->new_addr));
	else
		TRY(vl_server_change_ip(&w, in->old_addr, in->new_addr));
	return vl_write_commit(&w);
}

/* --- the server itself ------------------------------------------------------------------------- */

afs_err vl_probe_server(struct rpc_call *call, const struct vl_probe_server_in *in,
	struct vl_probe_server_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}

/* The header's words about a file have no file here; stock's come byte-swapped and nobody reads them. */
afs_err vl_get_stats(
	struct rpc_call *call, const struct vl_get_stats_in *in, struct vl_get_stats_out *out)
{
	(void)in;
	struct vl *vl = call->service;
	out->stats.start_time = clk_wire_sec(vl->started);
	for (int i = 0; i < VL_OPS; i++) {
		out->stats.requests[i] = (int32_t)(atomic_load(&vl->requests[i]) & INT32_MAX);
		out->stats.aborts[i] = (int32_t)(atomic_load(&vl->aborts[i]) & INT32_MAX);
	}
	CLEANUP(vl_read) struct vl_read r = {};
	TRY(vl_read_begin(vl, &r));
	uint32_t by_type[3];
	out->vital_header.vldbversion = DB_VERSION;
	TRY(vl_max_get(r.db, &out->vital_header.MaxVolumeId));
	TRY(vl_row_count(r.db, by_type));
	for (int t = 0; t < 3; t++)
		out->vital_header.totalEntries[t] = (int32_t)by_type[t];
	return AFS_OK;
}

static bool is_superuser(void *ctx, const struct rx_caller *caller)
{
	const struct dbserver_ports *p = &((struct vl *)ctx)->ports;
	return p->superuser && p->superuser(p->ctx, caller);
}

static void call_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err,
	int32_t code, int64_t took_ns)
{
	struct vl *vl = ctx;
	uint32_t i = call->proc ? call->proc->op - VL_OP_FIRST : VL_OPS;
	if (i < VL_OPS) {
		atomic_fetch_add_explicit(&vl->requests[i], 1, memory_order_relaxed);
		if (err)
			atomic_fetch_add_explicit(&vl->aborts[i], 1, memory_order_relaxed);
	}
	if (vl->ports.done)
		vl->ports.done(vl->ports.ctx, call, in, err, code, took_ns);
}

size_t vl_services(struct vl *vl, struct rpc_service out[DBSERVER_SERVICES])
{
	_Static_assert(ARRAY_SIZE(vl_handlers) == vl_op_count, "a handler per row");
	out[0] = (struct rpc_service){.iface = &vl_iface,
		.handlers = vl_handlers,
		.ctx = vl,
		.allow_anonymous = true,
		.superuser = is_superuser,
		.done = call_done};
	ubik_services(&vl->ubik, out + 1);
	return DBSERVER_SERVICES;
}
