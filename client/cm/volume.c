/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where volumes are.  Volumes and servers that were once met are kept for the client's life; what is
 * forgotten is a volume's location, which the next use asks the VL service for again. */
#include "client/cm/cm.h"

#include "cell/base/log.h"
#include "cell/proto/vl.h"

#define RPC_WANT_STUBS
#define RPC_PREFIX vl
#define RPC_ROWS "cell/proto/vl.rpc"
#include "rx/xdr/iface_pass.h"

#include <stdio.h>
#include <string.h>

#define LOCATION_FRESH SEC(2 * 3600)
enum { SERVERS_MAX = 4096 };

bool cm_volume_is_ro(const struct cm_volume *v) { return v->type != AFS_VOL_RW; }

static uint64_t volume_hash(const struct cm *cm, const struct cm_cell *cell, uint32_t id)
{
	return map_hash_u64(&cm->volumes, (uint64_t)cell->index << 32 | id);
}

static struct cm_volume *find_locked(struct cm *cm, const struct cm_cell *cell, uint32_t id)
	REQUIRES(cm->volumes_lock)
{
	for (struct map_node *n = map_first(&cm->volumes, volume_hash(cm, cell, id)); n;
		n = map_next(n)) {
		struct cm_volume *v = container_of(n, struct cm_volume, by_id);
		if (v->cell == cell && v->id == id)
			return v;
	}
	return NULL;
}

static struct cm_volume *get_locked(struct cm *cm, struct cm_cell *cell, uint32_t id)
	REQUIRES(cm->volumes_lock)
{
	struct cm_volume *v = find_locked(cm, cell, id);
	if (v)
		return v;
	v = mem_new(struct cm_volume);
	if (!v)
		return NULL;
	v->cell = cell;
	v->id = id;
	if (!map_insert(&cm->volumes, &v->by_id, volume_hash(cm, cell, id))) {
		mem_free(v);
		return NULL;
	}
	return v;
}

struct cm_volume *cm_volume_get(struct cm *cm, struct cm_cell *cell, uint32_t id)
{
	mtx_lock(&cm->volumes_lock);
	struct cm_volume *v = get_locked(cm, cell, id);
	mtx_unlock(&cm->volumes_lock);
	return v;
}

void cm_volume_forget(struct cm *cm, struct cm_volume *v)
{
	mtx_lock(&cm->volumes_lock);
	v->located = false;
	v->status_until = 0;
	mtx_unlock(&cm->volumes_lock);
}

/* --- asking VL ---------------------------------------------------------------------------------- */

static afs_err vl_conn(struct cm *cm, struct cm_cell *cell, unsigned i, struct rpc_conn **out)
{
	afs_err err = AFS_OK;
	mtx_lock(&cm->conns_lock);
	if (!cell->vl_conns[i]) {
		struct rpc_conn_config config = {
			.peer = cell->vl[i], .iface = &vl_iface, .dead_ns = cm->config.dead_ns};
		err = cm->port ? rpc_conn_new(cm->port, &config, &cell->vl_conns[i])
			       : AFS_ECANCELLED;
	}
	if (!err)
		*out = rpc_conn_ref(cell->vl_conns[i]);
	mtx_unlock(&cm->conns_lock);
	return err;
}

static void vl_conn_drop(struct cm *cm, struct cm_cell *cell, unsigned i, struct rpc_conn *conn)
{
	struct rpc_conn *old = NULL;
	mtx_lock(&cm->conns_lock);
	if (cell->vl_conns[i] == conn) {
		old = conn;
		cell->vl_conns[i] = NULL;
	}
	mtx_unlock(&cm->conns_lock);
	if (old)
		rpc_conn_unref(old);
}

typedef afs_err ask(struct rpc_conn *conn, const void *in, void *out, struct rpc_result *res);

/* Ask one VL server after another, the one that answered last first. */
static afs_err ask_vl(struct cm *cm, struct cm_cell *cell, ask *fn, const void *in, void *out,
	struct arena *arena)
{
	afs_err err = AFS_EDEAD;
	unsigned good = atomic_load(&cell->vl_good);
	for (unsigned i = 0; i < cell->vl_n; i++) {
		unsigned at = (good + i) % (unsigned)cell->vl_n;
		struct rpc_conn *conn;
		TRY(vl_conn(cm, cell, at, &conn));
		struct rpc_result res = {.arena = arena};
		err = fn(conn, in, out, &res);
		bool next = err == AFS_EDEAD || err == AFS_ETIMEDOUT || err == AFS_ENOSERVICE ||
			    (res.code >= 5376 && res.code < 5376 + 32);
		if (next)
			vl_conn_drop(cm, cell, at, conn);
		else
			atomic_store(&cell->vl_good, at);
		rpc_conn_unref(conn);
		atomic_fetch_add(&cm->n_calls, 1);
		if (!next)
			return err;
	}
	return err;
}

static afs_err ask_entry(struct rpc_conn *conn, const void *in, void *out, struct rpc_result *res)
{
	return vl_call_get_entry_by_name_u(conn, in, out, res);
}
static afs_err ask_entry_n(struct rpc_conn *conn, const void *in, void *out, struct rpc_result *res)
{
	return vl_call_get_entry_by_name_n(conn, in, out, res);
}
static afs_err ask_addrs(struct rpc_conn *conn, const void *in, void *out, struct rpc_result *res)
{
	return vl_call_get_addrs_u(conn, in, out, res);
}

/* --- servers ---------------------------------------------------------------------------------------- */

static struct cm_server *server_find(struct cm *cm, const uint8_t *uuid, uint32_t ip)
	REQUIRES(cm->volumes_lock)
{
	list_each(e, &cm->servers)
	{
		struct cm_server *s = list_entry(e, struct cm_server, all);
		if (uuid ? s->has_uuid && memcmp(s->uuid, uuid, AFS_UUID_BYTES) == 0
			 : !s->has_uuid && s->addrs[0].ip == ip)
			return s;
	}
	return NULL;
}

struct cm_server *cm_server_by_uuid(struct cm *cm, const struct afsUUID *uuid)
{
	uint8_t b[AFS_UUID_BYTES];
	afs_uuid_to_bytes(uuid, b);
	mtx_lock(&cm->volumes_lock);
	struct cm_server *s = server_find(cm, b, 0);
	mtx_unlock(&cm->volumes_lock);
	return s;
}

static struct cm_server *server_new(struct cm *cm, const uint8_t *uuid) REQUIRES(cm->volumes_lock)
{
	struct cm_server *s = mem_new(struct cm_server);
	if (!s)
		return NULL;
	if (uuid) {
		s->has_uuid = true;
		memcpy(s->uuid, uuid, AFS_UUID_BYTES);
	}
	list_push_back(&cm->servers, &s->all);
	return s;
}

static afs_err server_at(struct cm *cm, uint32_t ip, struct cm_server **out)
{
	mtx_lock(&cm->volumes_lock);
	struct cm_server *s = server_find(cm, NULL, ip);
	if (!s && (s = server_new(cm, NULL))) {
		s->addrs[0] = (struct rx_addr){ip, FS_PORT};
		s->addr_n = 1;
	}
	mtx_unlock(&cm->volumes_lock);
	*out = s;
	return s ? AFS_OK : AFS_ENOMEM;
}

static afs_err server_of_uuid(struct cm *cm, struct cm_cell *cell, const struct afsUUID *uuid,
	uint32_t uniquifier, struct cm_server **out)
{
	uint8_t b[AFS_UUID_BYTES];
	afs_uuid_to_bytes(uuid, b);
	mtx_lock(&cm->volumes_lock);
	struct cm_server *s = server_find(cm, b, 0);
	bool known = s && s->uniquifier == uniquifier && s->addr_n;
	mtx_unlock(&cm->volumes_lock);
	if (known) {
		*out = s;
		return AFS_OK;
	}

	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 64 * 1024);
	struct vl_get_addrs_u_in in = {.inaddr = {.Mask = VLADDR_UUID, .uuid = *uuid}};
	struct vl_get_addrs_u_out got = {0};
	TRY(ask_vl(cm, cell, ask_addrs, &in, &got, &arena));
	if (got.blkaddrs.n == 0)
		return AFS_ENODEV;

	mtx_lock(&cm->volumes_lock);
	s = server_find(cm, b, 0);
	if (!s)
		s = server_new(cm, b);
	if (s) {
		s->addr_n = MIN(got.blkaddrs.n, CM_ADDRS_MAX);
		for (unsigned i = 0; i < s->addr_n; i++)
			s->addrs[i] = (struct rx_addr){got.blkaddrs.v[i], FS_PORT};
		s->addr_good = 0;
		s->down_until = 0;
		s->uniquifier = uniquifier;
	}
	mtx_unlock(&cm->volumes_lock);
	*out = s;
	return s ? AFS_OK : AFS_ENOMEM;
}

void cm_servers_fini(struct cm *cm)
{
	for (struct list *e; (e = list_pop_front(&cm->servers));)
		mem_free(list_entry(e, struct cm_server, all));
}

/* --- entries ---------------------------------------------------------------------------------------------- */

struct entry {
	char name[66];
	uint32_t ids[3];
	int32_t flags;
	unsigned n;
	struct {
		struct cm_server *server;
		int32_t flags;
	} sites[CM_SITES_MAX];
};

static afs_err load_entry(struct cm *cm, struct cm_cell *cell, const char *name, struct entry *out)
{
	*out = (struct entry){0};
	struct vl_get_entry_by_name_u_in in = {.volumename = XDR_STR_OF(name)};
	struct vl_get_entry_by_name_u_out got = {0};
	afs_err err = ask_vl(cm, cell, ask_entry, &in, &got, NULL);
	if (err == AFS_EOPCODE) { /* servers from before UUIDs */
		struct vl_get_entry_by_name_n_in in_n = {.volumename = XDR_STR_OF(name)};
		struct vl_get_entry_by_name_n_out old = {0};
		TRY(ask_vl(cm, cell, ask_entry_n, &in_n, &old, NULL));
		const struct nvldbentry *e = &old.entry;
		if (e->nServers < 0 || e->nServers > VL_SITES_MAX)
			return AFS_EDECODE;
		memcpy(out->name, e->name, sizeof(out->name));
		memcpy(out->ids, e->volumeId, sizeof(out->ids));
		out->flags = e->flags;
		for (int32_t i = 0; i < e->nServers; i++) {
			TRY(server_at(cm, e->serverNumber[i], &out->sites[out->n].server));
			out->sites[out->n++].flags = e->serverFlags[i];
		}
		return AFS_OK;
	}
	TRY(err);
	const struct uvldbentry *e = &got.entry;
	if (e->nServers < 0 || e->nServers > VL_SITES_MAX)
		return AFS_EDECODE;
	memcpy(out->name, e->name, sizeof(out->name));
	memcpy(out->ids, e->volumeId, sizeof(out->ids));
	out->flags = e->flags;
	for (int32_t i = 0; i < e->nServers; i++) {
		struct cm_server *s;
		if (e->serverFlags[i] & VLSF_UUID)
			err = server_of_uuid(
				cm, cell, &e->serverNumber[i], (uint32_t)e->serverUnique[i], &s);
		else
			err = server_at(cm, e->serverNumber[i].time_low, &s);
		if (err == AFS_ENOENT ||
			err == AFS_ENODEV) /* the entry names a server that registered nothing */
			continue;
		TRY(err);
		out->sites[out->n].server = s;
		out->sites[out->n++].flags = e->serverFlags[i];
	}
	return AFS_OK;
}

static bool exists(const struct entry *e, enum afs_voltype type)
{
	return e->ids[type] && e->flags & (VLF_RW_EXISTS << type);
}

/* Put what VL said into the volume `id` of the entry.  Sites: those of the right kind; while a release
 * is under way, only the ones that have it already, if there are any. */
static void settle(const struct cm *cm, struct cm_volume *v, const struct entry *e)
{
	memcpy(v->name, e->name, sizeof(v->name));
	memcpy(v->ids, e->ids, sizeof(v->ids));
	v->type = v->id == e->ids[AFS_VOL_RO]   ? AFS_VOL_RO
		  : v->id == e->ids[AFS_VOL_BK] ? AFS_VOL_BK
						: AFS_VOL_RW;
	int32_t kind = v->type == AFS_VOL_RO ? VLSF_RO : VLSF_RW;
	bool any_new = false;
	for (unsigned i = 0; i < e->n; i++)
		any_new |= (e->sites[i].flags & (VLSF_RO | VLSF_NEWREPSITE)) ==
			   (VLSF_RO | VLSF_NEWREPSITE);
	v->site_n = 0;
	for (unsigned i = 0; i < e->n; i++) {
		int32_t f = e->sites[i].flags;
		if (!(f & kind) || f & VLSF_DONTUSE ||
			(kind == VLSF_RO && any_new && !(f & VLSF_NEWREPSITE)))
			continue;
		v->sites[v->site_n++] = e->sites[i].server;
	}
	v->site_good = 0;
	for (unsigned i = 0; i < v->site_n; i++) {
		if (!v->sites[i]->cell)
			v->sites[i]->cell = v->cell;
		if (cm_server_rank(cm, v->sites[i]) < cm_server_rank(cm, v->sites[v->site_good]))
			v->site_good = i;
	}
	v->located = true;
}

afs_err cm_volume_locate(struct cm *cm, struct cm_volume *v)
{
	mtx_lock(&cm->volumes_lock);
	while (v->locating)
		cond_wait(&cm->volumes_changed, &cm->volumes_lock);
	if (v->located) {
		mtx_unlock(&cm->volumes_lock);
		return v->site_n ? AFS_OK : AFS_ENODEV;
	}
	v->locating = true;
	mtx_unlock(&cm->volumes_lock);

	char text[16];
	snprintf(text, sizeof(text), "%u", v->id);
	struct entry e;
	afs_err err = load_entry(cm, v->cell, text, &e);

	mtx_lock(&cm->volumes_lock);
	if (!err) {
		settle(cm, v, &e);
		if (!v->site_n) {
			v->located = false; /* ask again next time: it may just be on its way */
			err = AFS_ENODEV;
		}
	}
	v->locating = false;
	cond_broadcast(&cm->volumes_changed);
	mtx_unlock(&cm->volumes_lock);
	if (err == AFS_EDEAD)
		err = AFS_ETIMEDOUT;
	return err == AFS_ENOENT ? AFS_ENODEV : err;
}

afs_err cm_volume_named(struct cm *cm, struct cm_cell *cell, const char *name, bool forced_rw,
	const struct cm_volume *from, struct cm_volume **out)
{
	struct entry e;
	afs_err err = load_entry(cm, cell, name, &e);
	if (err)
		return err == AFS_EDEAD ? AFS_ETIMEDOUT : err == AFS_ENOENT ? AFS_ENODEV : err;

	size_t n = strlen(name);
	bool number = n && strspn(name, "0123456789") == n;
	uint32_t id = 0;
	if (n > 9 && strcmp(name + n - 9, ".readonly") == 0)
		id = exists(&e, AFS_VOL_RO) ? e.ids[AFS_VOL_RO] : 0;
	else if (n > 7 && strcmp(name + n - 7, ".backup") == 0)
		id = exists(&e, AFS_VOL_BK) ? e.ids[AFS_VOL_BK] : 0;
	else if (number && forced_rw)
		id = (uint32_t)strtoul(name, NULL, 10);
	else if (forced_rw)
		id = exists(&e, AFS_VOL_RW) ? e.ids[AFS_VOL_RW] : 0;
	else if ((!from || from->cell != cell || from->type == AFS_VOL_RO) &&
		 exists(&e, AFS_VOL_RO))
		id = e.ids[AFS_VOL_RO];
	else
		id = exists(&e, AFS_VOL_RW)   ? e.ids[AFS_VOL_RW]
		     : exists(&e, AFS_VOL_RO) ? e.ids[AFS_VOL_RO]
					      : 0;
	if (!id)
		return AFS_ENODEV;

	mtx_lock(&cm->volumes_lock);
	struct cm_volume *v = get_locked(cm, cell, id);
	if (v && !v->locating)
		settle(cm, v, &e);
	mtx_unlock(&cm->volumes_lock);
	if (!v)
		return AFS_ENOMEM;
	/* a backup volume inside a backup volume would never end */
	if (from && from->type == AFS_VOL_BK && v->type == AFS_VOL_BK)
		return AFS_ENODEV;
	*out = v;
	return AFS_OK;
}
