/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What cmdebug and xstat_cm_test read of a cache manager (callback.md 8, debug-stats.md 5).  Only from this machine: it tells
 * who has which files open. */
#include "client/cm/cm.h"
#include "client/cm/debug.h"

#include <stdio.h>
#include <string.h>

enum { NO_MORE = 1, LOOPBACK_NET = 127, XSTATS_VERSION = 2, PERF = 159, FULL = 775, UPDOWN = 25, DUMP_MAX = 1 << 20 };
enum { STATD = 1, BACKUP = 2, RO = 4, MOUNT_VALID = 8, DIRTY = 0x20 };

static bool here(const struct rpc_call *call) { return call->peer.ip >> 24 == LOOPBACK_NET; }
#define ONLY_HERE(call)                                                                            \
	if (!here(call))                                                                           \
	return AFS_EACCESS

/* The list is of one moment: made when its first entry is asked for. */
static afs_err entry_at(struct cm *cm, int32_t index, struct cm_vnode **out, unsigned *refs)
{
	mtx_lock(&cm->vnodes_lock);
	if (index == 0) {
		mem_free(cm->dump);
		cm->dump_n = 0;
		cm->dump = mem_new_array(MIN(cm->vnodes.count + 1, (size_t)DUMP_MAX), struct cm_dump);
		size_t cursor = 0;
		for (struct map_node *n = map_walk(&cm->vnodes, &cursor, NULL); n && cm->dump && cm->dump_n < MIN(cm->vnodes.count, (size_t)DUMP_MAX);
			n = map_walk(&cm->vnodes, &cursor, n->next)) {
			struct cm_vnode *v = container_of(n, struct cm_vnode, by_fid);
			cm->dump[cm->dump_n++] = (struct cm_dump){v->vol->cell, v->fid};
		}
	}
	struct cm_dump d = {0};
	bool have = index >= 0 && (size_t)index < cm->dump_n;
	if (have)
		d = cm->dump[index];
	mtx_unlock(&cm->vnodes_lock);
	if (!have)
		return AFS_ENOENT;
	*out = cm_vnode_find(cm, d.cell, &d.fid);
	if (*out)
		*refs = atomic_load(&(*out)->refs) - 1;
	else
		return cm_vnode_get(cm, d.cell, &d.fid, out); /* gone meanwhile: shown without status */
	return AFS_OK;
}

static afs_err entry(struct rpc_call *call, int32_t index, struct AFSDBCacheEntry64 *e)
{
	struct cm *cm = call->service;
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	unsigned refs = 0;
	if (entry_at(cm, index, &v, &refs) != AFS_OK)
		return rpc_refuse(call, NO_MORE);
	uint32_t ip = 0;
	mtx_lock(&cm->volumes_lock);
	if (v->vol->site_n)
		ip = v->vol->sites[v->vol->site_good]->addrs[0].ip;
	bool ro = cm_volume_is_ro(v->vol), backup = v->vol->type == AFS_VOL_BK;
	mtx_unlock(&cm->volumes_lock);
	mtx_lock(&v->lock);
	bool fresh = cm_fresh_locked(v);
	int64_t left = v->promise - cm_now(cm);
	/* where it is is nobody's business; 0 would be taken for a process by cmdebug */
	uint32_t addr = (v->fid.Volume * 31 + v->fid.Vnode) * 31 + v->fid.Unique;
	*e = (struct AFSDBCacheEntry64){.addr = (int32_t)(addr | 1), .cell = (int32_t)v->vol->cell->index + 1, .netFid = v->fid,
		.Length = (int64_t)(v->has_status && v->st.FileType == AFS_FILE ? v->length : v->has_status ? fs_status_length(&v->st) : 0),
		.DataVersion = (int32_t)v->dv,
		.callback = fresh ? (int32_t)(ip ? ip : 1) : 0,
		.cbExpires = fresh ? (int32_t)(cm_wall_sec(cm) + MIN(left / NS_PER_SEC, (int64_t)INT32_MAX / 2)) : 0,
		.refCount = (int32_t)MIN(refs, (unsigned)INT16_MAX), .opens = (int32_t)v->opens, .writers = (int32_t)v->writers,
		.mvstat = cm_is_mount_locked(v) ? 1 : v->fid.Vnode == 1 ? 2 : 0,
		.states = (fresh ? STATD : 0) | (backup ? BACKUP : 0) | (ro ? RO : 0) | (v->mount ? MOUNT_VALID : 0) |
			  (cm_needs_store_locked(v) ? DIRTY : 0)};
	e->lock.exclLocked = v->storing || v->fetching ? 2 : 0;
	e->lock.src_indicator = v->storing ? 1 : 0;
	mtx_unlock(&v->lock);
	return AFS_OK;
}

afs_err cm_on_get_ce64(struct rpc_call *call, const void *in_, void *out_)
{
	const struct cb_get_ce64_in *in = in_;
	struct cb_get_ce64_out *out = out_;
	ONLY_HERE(call);
	return entry(call, in->index, &out->entry);
}

afs_err cm_on_get_ce(struct rpc_call *call, const void *in_, void *out_)
{
	const struct cb_get_ce_in *in = in_;
	struct cb_get_ce_out *out = out_;
	struct AFSDBCacheEntry64 e;
	ONLY_HERE(call);
	TRY(entry(call, in->index, &e));
	out->entry = (struct AFSDBCacheEntry){e.addr, e.cell, e.netFid, (int32_t)MIN(e.Length, (int64_t)INT32_MAX), e.DataVersion, e.lock,
		e.callback, e.cbExpires, e.refCount, e.opens, e.writers, e.mvstat, e.states};
	return AFS_OK;
}

/* There are no locks that could be named one by one. */
afs_err cm_on_get_lock(struct rpc_call *call, const void *in, void *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, NO_MORE);
}

static afs_err cell_into(struct rpc_call *call, int64_t index, struct xdr_str *name, uint32_t **v, uint32_t *n)
{
	struct cm *cm = call->service;
	uint32_t ips[8];
	char cell[RX_NAME_MAX];
	size_t have = 0;
	*name = (struct xdr_str){"", 0};
	*n = 0;
	if (index < 0 || client_cell_at((struct client *)cm, (size_t)index, cell, ips, 8, &have) != AFS_OK)
		return AFS_OK;
	char *copy = arena_strndup(call->arena, cell, strlen(cell));
	*v = arena_alloc(call->arena, 8, sizeof(**v));
	if (!copy || !*v)
		return AFS_ENOMEM;
	*n = (uint32_t)MIN(have, (size_t)8);
	memcpy(*v, ips, *n * sizeof(**v));
	*name = (struct xdr_str){copy, (uint32_t)strlen(copy)};
	return AFS_OK;
}

afs_err cm_on_get_cell_serv_db(struct rpc_call *call, const void *in_, void *out_)
{
	const struct cb_get_cell_serv_db_in *in = in_;
	struct cb_get_cell_serv_db_out *out = out_;
	return cell_into(call, in->index, &out->cell, &out->hosts.v, &out->hosts.n);
}
afs_err cm_on_get_cell_by_num(struct rpc_call *call, const void *in_, void *out_)
{
	const struct cb_get_cell_by_num_in *in = in_;
	struct cb_get_cell_by_num_out *out = out_;
	return cell_into(call, (int64_t)in->number - 1, &out->cell, &out->hosts.v, &out->hosts.n);
}
afs_err cm_on_get_local_cell(struct rpc_call *call, const void *in, void *out_)
{
	(void)in;
	struct cb_get_local_cell_out *out = out_;
	uint32_t *v, n;
	return cell_into(call, 0, &out->cell, &v, &n);
}

afs_err cm_on_get_server_prefs(struct rpc_call *call, const void *in_, void *out_)
{
	const struct cb_get_server_prefs_in *in = in_;
	struct cb_get_server_prefs_out *out = out_;
	struct client_server s[256];
	ONLY_HERE(call);
	size_t n = MIN(client_servers(call->service, false, s, ARRAY_SIZE(s)), ARRAY_SIZE(s));
	bool have = in->index >= 0 && (size_t)in->index < n;
	out->addr = have ? s[in->index].ip : UINT32_MAX;
	out->rank = have ? s[in->index].rank : UINT32_MAX;
	return AFS_OK;
}

afs_err cm_on_get_cache_config(struct rpc_call *call, const void *in, void *out_)
{
	(void)in;
	struct cb_get_cache_config_out *out = out_;
	struct client_cache_info i;
	struct client_stats s;
	client_cache_info(call->service, &i);
	client_stats(call->service, &s);
	const uint32_t w[9] = {(uint32_t)i.chunks, (uint32_t)s.vnodes, (uint32_t)i.chunks, (uint32_t)s.volumes, 20, 20,
		(uint32_t)MIN(i.max_bytes >> 10, UINT32_MAX), 0, i.memory};
	out->version = 1;
	out->bytes = sizeof(w);
	out->config.v = arena_alloc(call->arena, ARRAY_SIZE(w), sizeof(*w));
	if (!out->config.v)
		return AFS_ENOMEM;
	memcpy(out->config.v, w, sizeof(w));
	out->config.n = ARRAY_SIZE(w);
	return AFS_OK;
}

afs_err cm_on_x_stats_version(struct rpc_call *call, const void *in, void *out)
{
	(void)call, (void)in;
	((struct cb_x_stats_version_out *)out)->version = XSTATS_VERSION;
	return AFS_OK;
}

/* debug-stats.md 5.1; what has no counterpart here stays 0. */
static void performance(struct cm *cm, int32_t *w)
{
	struct client *c = (struct client *)cm;
	struct client_cache_info i;
	struct client_stats s;
	client_cache_info(c, &i);
	client_stats(c, &s);
	w[1] = (int32_t)cm->started_sec;
	w[2] = (int32_t)cm->cell_n;
	w[8] = (int32_t)s.vnodes;
	w[9] = (int32_t)MIN(i.max_bytes >> 10, (uint64_t)INT32_MAX);
	w[10] = (int32_t)MIN(i.used_bytes >> 10, (uint64_t)INT32_MAX);
	w[11] = (int32_t)MIN(i.start_bytes >> 10, (uint64_t)INT32_MAX);
	w[12] = (int32_t)(cm->dirty_max >> 20);
	w[13] = (int32_t)((i.dirty_bytes + CACHE_CHUNK - 1) >> 20);
	w[37] = w[38] = (int32_t)s.servers;
	bool contacted[CM_CELLS_MAX] = {false};
	mtx_lock(&cm->volumes_lock);
	list_each(e, &cm->servers)
	{
		const struct cm_server *srv = list_entry(e, struct cm_server, all);
		unsigned cell = srv->cell ? srv->cell->index : 0;
		int32_t *u = w + 43 + (cell ? UPDOWN : 0);
		contacted[cell] |= srv->used;
		u[0]++;
		u[srv->down_until ? 2 : 1]++;
		u[7] += !srv->down_until;
		u[19] += !srv->down_until;
	}
	mtx_unlock(&cm->volumes_lock);
	for (size_t k = 0; k < cm->cell_n; k++) {
		w[3] += contacted[k];
		int32_t *u = w + 93 + (k ? UPDOWN : 0);
		u[0] += (int32_t)cm->cells[k].vl_n;
		u[1] += (int32_t)cm->cells[k].vl_n;
	}
	w[150] = sizeof(struct cm_vnode);
}

afs_err cm_on_get_x_stats(struct rpc_call *call, const void *in_, void *out_)
{
	const struct cb_get_x_stats_in *in = in_;
	struct cb_get_x_stats_out *out = out_;
	struct cm *cm = call->service;
	ONLY_HERE(call);
	if (in->collection < 0 || in->collection > 2)
		return rpc_refuse(call, NO_MORE);
	out->version = XSTATS_VERSION;
	out->time = (int32_t)cm_wall_sec(cm);
	uint32_t n = in->collection == 0 ? 0 : in->collection == 1 ? PERF : FULL;
	out->data.v = arena_alloc(call->arena, n ? n : 1, sizeof(*out->data.v));
	if (!out->data.v)
		return AFS_ENOMEM;
	memset(out->data.v, 0, (n ? n : 1) * sizeof(*out->data.v));
	out->data.n = n;
	if (in->collection == 1)
		performance(cm, out->data.v);
	if (in->collection == 2) {
		int32_t *w = out->data.v;
		performance(cm, w + 1);
		/* transfers: numXfers, numSuccesses, three 2-word times, ..., sumBytes at 10 */
		int32_t *fetch = w + 1 + PERF + 300 + 180, *store = fetch + 22;
		fetch[10] = (int32_t)(atomic_load(&cm->n_fetched) & INT32_MAX);
		store[10] = (int32_t)(atomic_load(&cm->n_stored) & INT32_MAX);
		int32_t *auth = store + 22 + 70;
		mtx_lock(&cm->users_lock);
		list_each(e, &cm->users)
		{
			auth[1]++;
			auth[2]++;
			auth[0] += cm_is_pag(list_entry(e, struct cm_ident, of_users)->uid);
		}
		mtx_unlock(&cm->users_lock);
		auth[6] = (int32_t)cm->pag_n;
	}
	return AFS_OK;
}
