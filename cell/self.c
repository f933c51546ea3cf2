/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/self.h"

#include "cell/base/mem.h"
#include "cell/proto/cb.h"

#include <stdio.h>
#include <string.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX pt
#define RPC_ROWS "cell/proto/pt.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_STUBS
#define RPC_PREFIX vl
#define RPC_ROWS "cell/proto/vl.rpc"
#include "rx/xdr/iface_pass.h"

enum { ANSWER_MAX = 4 << 20 };

struct self {
	struct pt *pt_here;
	struct vl *vl_here;
	struct rpc_port *port;
	struct rpc_conn *pt[SELF_SERVERS_MAX], *vl[SELF_SERVERS_MAX];
	size_t pt_count, vl_count;
};

static afs_err connect_all(struct self *s, const struct self_config *c, const struct rx_addr *to, size_t n,
	const struct rpc_iface *iface, struct rpc_conn **conns, size_t *count)
{
	CLEANUP(keys_token) struct keys_token token = {};
	TRY(keys_localauth(c->keys, &token));
	for (size_t i = 0; i < n; i++) {
		struct rpc_conn_config cc = {.peer = to[i], .iface = iface, .sec = keys_token_client(&token.both, c->level),
			.dead_ns = SEC(5)};
		if (!cc.sec)
			return AFS_ENOMEM;
		TRY(rpc_conn_new(s->port, &cc, &conns[i]));
		*count = i + 1;
	}
	return AFS_OK;
}

afs_err self_open(const struct self_config *config, struct self **out)
{
	struct self *s = mem_new(struct self);
	if (!s)
		return AFS_ENOMEM;
	s->pt_here = config->pt_here;
	s->vl_here = config->vl_here;
	struct rpc_port_config pc = {.name = "self", .ip = config->ip, .pool = config->pool};
	bool calls = !s->pt_here || !s->vl_here;
	afs_err err = calls ? rpc_port_open(&pc, &s->port) : AFS_OK;
	if (err == AFS_OK && !s->pt_here)
		err = connect_all(s, config, config->pt, config->pt_count, &pt_iface, s->pt, &s->pt_count);
	if (err == AFS_OK && !s->vl_here)
		err = connect_all(s, config, config->vl, config->vl_count, &vl_iface, s->vl, &s->vl_count);
	if (err != AFS_OK) {
		self_close(s);
		return err;
	}
	*out = s;
	return AFS_OK;
}

void self_close(struct self *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->pt_count; i++)
		rpc_conn_unref(s->pt[i]);
	for (size_t i = 0; i < s->vl_count; i++)
		rpc_conn_unref(s->vl[i]);
	if (s->port)
		rpc_port_close(s->port);
	mem_free(s);
}

/* A server that cannot be had, or is no sync site at the moment: the next one may do. */
static bool try_next(afs_err err) { return err == AFS_EDEAD || err == AFS_ETIMEDOUT || err == AFS_ERESTARTING; }

/* Calls fn on each server until one answers; gives `err`. */
#define ON_SERVERS(s, kind, fn, in, out, res)                                                      \
	({                                                                                         \
		afs_err on_err_ = AFS_EDEAD;                                                       \
		for (size_t on_i_ = 0; on_i_ < (s)->kind##_count; on_i_++) {                       \
			on_err_ = fn((s)->kind[on_i_], in, out, res);                              \
			if (!try_next(on_err_))                                                    \
				break;                                                             \
		}                                                                                  \
		on_err_;                                                                           \
	})

/* --- protection database ------------------------------------------------------------------ */

afs_err self_id_of(struct self *s, const char *name, int32_t *id)
{
	if (s->pt_here)
		return pt_id_of(s->pt_here, name, id);
	CLEANUP(arena) struct arena a;
	arena_init(&a, ANSWER_MAX);
	struct prname one = {};
	if (strlen(name) > PT_NAME_MAX)
		return AFS_ENOENT;
	memcpy(one.text, name, strlen(name));
	struct pt_name_to_id_in in = {.nlist = {&one, 1}};
	struct pt_name_to_id_out out = {};
	struct rpc_result res = {.arena = &a};
	TRY(ON_SERVERS(s, pt, pt_call_name_to_id, &in, &out, &res));
	if (out.ilist.n != 1)
		return AFS_EPROTOCOL;
	if (out.ilist.v[0] == AFS_ANONYMOUS && strcmp(name, "anonymous") != 0)
		return AFS_ENOENT;
	*id = out.ilist.v[0];
	return AFS_OK;
}

afs_err self_name_of(struct self *s, int32_t id, char out_name[AFS_PRNAME_MAX + 1])
{
	if (s->pt_here)
		return pt_name_of(s->pt_here, id, out_name);
	CLEANUP(arena) struct arena a;
	arena_init(&a, ANSWER_MAX);
	struct pt_id_to_name_in in = {.ilist = {&id, 1}};
	struct pt_id_to_name_out out = {};
	struct rpc_result res = {.arena = &a};
	TRY(ON_SERVERS(s, pt, pt_call_id_to_name, &in, &out, &res));
	if (out.nlist.n != 1)
		return AFS_EPROTOCOL;
	memcpy(out_name, out.nlist.v[0].text, AFS_PRNAME_MAX);
	out_name[AFS_PRNAME_MAX] = '\0';
	char number[16];
	snprintf(number, sizeof(number), "%d", id);
	return strcmp(out_name, number) == 0 ? AFS_ENOENT : AFS_OK; /* how PR says that nobody has it */
}

afs_err self_user_add(struct self *s, const char *name, int32_t id, int32_t *out_id)
{
	if (s->pt_here)
		return pt_user_add(s->pt_here, name, id, out_id);
	struct rpc_result res = {};
	if (id) {
		struct pt_inew_entry_in in = {.name = XDR_STR_OF(name), .id = id};
		struct pt_inew_entry_out out;
		TRY(ON_SERVERS(s, pt, pt_call_inew_entry, &in, &out, &res));
		*out_id = id;
		return AFS_OK;
	}
	struct pt_new_entry_in in = {.name = XDR_STR_OF(name), .flag = PT_USER};
	struct pt_new_entry_out out = {};
	TRY(ON_SERVERS(s, pt, pt_call_new_entry, &in, &out, &res));
	*out_id = out.id;
	return AFS_OK;
}

afs_err self_group_add(struct self *s, const char *name, int32_t id, int32_t owner, int32_t *out_id)
{
	if (s->pt_here)
		return pt_group_add(s->pt_here, name, id, owner, out_id);
	struct rpc_result res = {};
	if (id) {
		struct pt_inew_entry_in in = {.name = XDR_STR_OF(name), .id = id, .oid = owner};
		struct pt_inew_entry_out out;
		TRY(ON_SERVERS(s, pt, pt_call_inew_entry, &in, &out, &res));
		*out_id = id;
		return AFS_OK;
	}
	struct pt_new_entry_in in = {.name = XDR_STR_OF(name), .flag = PT_GROUP, .oid = owner};
	struct pt_new_entry_out out = {};
	TRY(ON_SERVERS(s, pt, pt_call_new_entry, &in, &out, &res));
	*out_id = out.id;
	return AFS_OK;
}

afs_err self_owner(struct self *s, int32_t id, int32_t *owner)
{
	if (s->pt_here) {
		struct pt_entry e;
		TRY(pt_entry_find(s->pt_here, id, &e));
		*owner = e.owner;
		return AFS_OK;
	}
	struct rpc_result res = {};
	struct pt_list_entry_in in = {.id = id};
	struct pt_list_entry_out out = {};
	TRY(ON_SERVERS(s, pt, pt_call_list_entry, &in, &out, &res));
	*owner = out.entry.owner;
	return AFS_OK;
}

afs_err self_group_owner(struct self *s, int32_t gid, int32_t owner)
{
	if (s->pt_here)
		return pt_entry_change(s->pt_here, gid, NULL, owner, 0);
	struct rpc_result res = {};
	struct pt_change_entry_in in = {.id = gid, .oid = owner, .name = XDR_STR_OF("")};
	struct pt_change_entry_out out;
	return ON_SERVERS(s, pt, pt_call_change_entry, &in, &out, &res);
}

afs_err self_is_member(struct self *s, int32_t uid, int32_t gid, bool *is)
{
	if (s->pt_here) {
		CLEANUP(pt_ids) struct pt_ids all = {};
		TRY(pt_members(s->pt_here, gid, &all));
		*is = false;
		for (uint32_t i = 0; i < all.n; i++)
			*is = *is || all.v[i] == uid;
		return AFS_OK;
	}
	struct rpc_result res = {};
	struct pt_is_a_member_of_in in = {.uid = uid, .gid = gid};
	struct pt_is_a_member_of_out out = {};
	TRY(ON_SERVERS(s, pt, pt_call_is_a_member_of, &in, &out, &res));
	*is = out.flag != 0;
	return AFS_OK;
}

afs_err self_member_add(struct self *s, int32_t uid, int32_t gid)
{
	if (s->pt_here)
		return pt_member_add(s->pt_here, uid, gid);
	struct rpc_result res = {};
	struct pt_add_to_group_in in = {.id = uid, .gid = gid};
	struct pt_add_to_group_out out;
	return ON_SERVERS(s, pt, pt_call_add_to_group, &in, &out, &res);
}

afs_err self_member_remove(struct self *s, int32_t uid, int32_t gid)
{
	if (s->pt_here)
		return pt_member_remove(s->pt_here, uid, gid);
	struct rpc_result res = {};
	struct pt_remove_from_group_in in = {.id = uid, .gid = gid};
	struct pt_remove_from_group_out out;
	return ON_SERVERS(s, pt, pt_call_remove_from_group, &in, &out, &res);
}

afs_err self_entry_delete(struct self *s, int32_t id)
{
	if (s->pt_here)
		return pt_entry_delete(s->pt_here, id);
	struct rpc_result res = {};
	struct pt_delete_in in = {.id = id};
	struct pt_delete_out out;
	return ON_SERVERS(s, pt, pt_call_delete, &in, &out, &res);
}

static void to_wire(const struct pt_entry *e, struct prcheckentry *out)
{
	*out = (struct prcheckentry){.flags = e->flags, .id = e->id, .owner = e->owner, .creator = e->creator, .ngroups = e->ngroups,
		.nusers = e->nusers, .count = e->count};
	snprintf(out->name, sizeof(out->name), "%s", e->name);
}

afs_err self_entry_find(struct self *s, int32_t id, struct prcheckentry *out)
{
	if (s->pt_here) {
		struct pt_entry e;
		TRY(pt_entry_find(s->pt_here, id, &e));
		to_wire(&e, out);
		return AFS_OK;
	}
	struct rpc_result res = {};
	struct pt_list_entry_in in = {.id = id};
	struct pt_list_entry_out answer = {};
	TRY(ON_SERVERS(s, pt, pt_call_list_entry, &in, &answer, &res));
	*out = answer.entry;
	return AFS_OK;
}

static afs_err each_far(struct self *s, afs_err (*each)(void *ctx, const struct prcheckentry *e), void *ctx)
{
	struct pt_list_entries_in in = {.flag = PT_LIST_USERS | PT_LIST_GROUPS};
	do {
		CLEANUP(arena) struct arena a;
		arena_init(&a, ANSWER_MAX);
		struct rpc_result res = {.arena = &a};
		struct pt_list_entries_out out = {};
		TRY(ON_SERVERS(s, pt, pt_call_list_entries, &in, &out, &res));
		for (uint32_t i = 0; i < out.bulkentries.n; i++)
			TRY(each(ctx, &out.bulkentries.v[i]));
		if (out.nextstartindex != -1 && out.nextstartindex <= in.startindex)
			return AFS_EPROTOCOL; /* a list that does not end */
		in.startindex = out.nextstartindex;
	} while (in.startindex != -1);
	return AFS_OK;
}

afs_err self_entry_each(struct self *s, afs_err (*each)(void *ctx, const struct prcheckentry *e), void *ctx)
{
	if (!s->pt_here)
		return each_far(s, each, ctx);
	struct pt_entry e;
	struct prcheckentry wire;
	afs_err err;
	for (int64_t cursor = 0; (err = pt_entry_next(s->pt_here, &cursor, &e)) == AFS_OK;) {
		to_wire(&e, &wire);
		TRY(each(ctx, &wire));
	}
	return err == AFS_ENOENT ? AFS_OK : err;
}

static afs_err take_ids(const int32_t *v, uint32_t n, int32_t **ids, uint32_t *count)
{
	int32_t *copy = mem_new_array((size_t)n + 1, int32_t);
	if (!copy)
		return AFS_ENOMEM;
	if (n)
		memcpy(copy, v, (size_t)n * sizeof(*v));
	*ids = copy;
	*count = n;
	return AFS_OK;
}

afs_err self_members(struct self *s, int32_t id, int32_t **ids, uint32_t *n)
{
	if (s->pt_here) {
		struct pt_ids all = {};
		TRY(pt_members(s->pt_here, id, &all));
		*ids = all.v;
		*n = all.n;
		return AFS_OK;
	}
	CLEANUP(arena) struct arena a;
	arena_init(&a, ANSWER_MAX);
	struct rpc_result res = {.arena = &a};
	struct pt_list_elements_in in = {.id = id};
	struct pt_list_elements_out out = {};
	TRY(ON_SERVERS(s, pt, pt_call_list_elements, &in, &out, &res));
	return take_ids(out.elist.v, out.elist.n, ids, n);
}

afs_err self_cps(struct self *s, int32_t id, int32_t **ids, uint32_t *n)
{
	CLEANUP(arena) struct arena a;
	arena_init(&a, ANSWER_MAX);
	struct rpc_result res = {.arena = &a};
	struct pt_get_cps_in in = {.id = id};
	struct pt_get_cps_out out = {};
	TRY(ON_SERVERS(s, pt, pt_call_get_cps, &in, &out, &res));
	return take_ids(out.elist.v, out.elist.n, ids, n);
}

afs_err self_host_cps(struct self *s, uint32_t ip, int32_t **ids, uint32_t *n)
{
	CLEANUP(arena) struct arena a;
	arena_init(&a, ANSWER_MAX);
	struct rpc_result res = {.arena = &a};
	struct pt_get_host_cps_in in = {.host = ip};
	struct pt_get_host_cps_out out = {};
	TRY(ON_SERVERS(s, pt, pt_call_get_host_cps, &in, &out, &res));
	return take_ids(out.elist.v, out.elist.n, ids, n);
}

/* --- volume location database ------------------------------------------------------------- */

afs_err self_volume_find(struct self *s, const char *name, struct nvldbentry *entry)
{
	if (s->vl_here)
		return vl_volume_find(s->vl_here, name, entry);
	struct rpc_result res = {};
	struct vl_get_entry_by_name_n_in in = {.volumename = XDR_STR_OF(name)};
	struct vl_get_entry_by_name_n_out out = {};
	TRY(ON_SERVERS(s, vl, vl_call_get_entry_by_name_n, &in, &out, &res));
	*entry = out.entry;
	return AFS_OK;
}

afs_err self_volume_new_id(struct self *s, afs_volid *id)
{
	if (s->vl_here) /* room for .readonly and .backup, as vos leaves it */
		return vl_ids_reserve(s->vl_here, 3, id);
	struct rpc_result res = {};
	struct vl_get_new_volume_id_in in = {.bumpcount = 3};
	struct vl_get_new_volume_id_out out = {};
	TRY(ON_SERVERS(s, vl, vl_call_get_new_volume_id, &in, &out, &res));
	*id = out.newvolumid;
	return AFS_OK;
}

afs_err self_volume_enter(struct self *s, const char *name, afs_volid id, uint32_t ip, unsigned partition)
{
	struct rpc_result res = {};
	struct vl_create_entry_n_in in = {};
	struct vl_create_entry_n_out out;
	struct nvldbentry *e = &in.entry;
	if (strlen(name) > VL_NAME_MAX)
		return AFS_ENAMETOOLONG;
	memcpy(e->name, name, strlen(name));
	e->nServers = 1;
	e->serverNumber[0] = ip;
	e->serverPartition[0] = (int32_t)partition;
	e->serverFlags[0] = VLSF_RW;
	e->volumeId[AFS_VOL_RW] = id;
	e->volumeId[AFS_VOL_RO] = id + 1;
	e->volumeId[AFS_VOL_BK] = id + 2;
	e->flags = VLF_RW_EXISTS;
	if (s->vl_here)
		return vl_volume_create(s->vl_here, e);
	return ON_SERVERS(s, vl, vl_call_create_entry_n, &in, &out, &res);
}

afs_err self_register(struct self *s, const struct afsUUID *uuid, const uint32_t *ips, size_t n)
{
	if (s->vl_here) {
		uint8_t raw[AFS_UUID_BYTES];
		afs_uuid_to_bytes(uuid, raw);
		return vl_server_register(s->vl_here, raw, ips, n);
	}
	struct rpc_result res = {};
	uint32_t addrs[VL_ADDRS_MAX];
	struct vl_register_addrs_in in = {.uuid = *uuid, .addrs = {addrs, (uint32_t)MIN(n, (size_t)VL_ADDRS_MAX)}};
	struct vl_register_addrs_out out;
	memcpy(addrs, ips, in.addrs.n * sizeof(*ips));
	/* Each database server keeps what it is told: one that answers is the sync site, or passes it on. */
	return ON_SERVERS(s, vl, vl_call_register_addrs, &in, &out, &res);
}
