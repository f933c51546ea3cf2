/* SPDX-License-Identifier: BSD-2-Clause
 * The client as a whole: built, started, stopped, freed; and the dynamic root. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include "cell/base/log.h"

#include <stdio.h>
#include <string.h>

enum { DIRTY_MAX = 256 << 20, DIRTY_MIN = 4 << 20 };

static struct cm *of(struct client *c) { return (struct cm *)c; }

static afs_err build(struct cm *cm, const struct client_config *config)
{
	TRY(cm_cells_new(cm, config));
	cm->cache_dir = config->cache_dir ? mem_strdup(config->cache_dir) : NULL;
	if (config->cache_dir && !cm->cache_dir)
		return AFS_ENOMEM;
	TRY(cache_open(config->cache_dir, config->cache_bytes, &cm->cache));
	cm_recover_begin(cm);
	cm->config.cache_bytes = MAX(config->cache_bytes, CACHE_MIN_BYTES);
	cm->dirty_max = MAX(DIRTY_MIN, MIN(DIRTY_MAX, cm->config.cache_bytes / 4));
	cm->config.dns = config->dns;
	cm_knobs_init(cm);
	return cm_dynroot_new(cm);
}

afs_err client_new(
	const struct client_config *config, const struct client_ports *ports, struct client **out)
{
	struct cm *cm = mem_new(struct cm);
	if (!cm)
		return AFS_ENOMEM;
	cm->config = *config;
	cm->config.cells = NULL;
	cm->config.cache_dir = NULL;
	cm->ports = *ports;
	cm->uuid = afs_uuid_random();
	cm->started_sec = clk_wire_sec(ports->wall(ports->ctx));
	mtx_init(&cm->vnodes_lock, RANK_CM_TABLE);
	mtx_init(&cm->volumes_lock, RANK_CM_TABLE);
	mtx_init(&cm->users_lock, RANK_CM_TABLE);
	mtx_init(&cm->cells_lock, RANK_LEAF);
	mtx_init(&cm->conns_lock, RANK_CM_TABLE);
	mtx_init(&cm->tries_lock, RANK_LEAF);
	list_init(&cm->tries);
	mtx_init(&cm->jobs_lock, RANK_CM_TABLE);
	mtx_init(&cm->events_lock, RANK_LEAF);
	mtx_init(&cm->bufs_lock, RANK_LEAF);
	cond_init(&cm->volumes_changed);
	cond_init(&cm->jobs_changed);
	cond_init(&cm->keeper_wake);
	cond_init(&cm->events_changed);
	map_init(&cm->vnodes);
	map_init(&cm->volumes);
	list_init(&cm->idle);
	list_init(&cm->servers);
	list_init(&cm->users);
	list_init(&cm->jobs);
	list_init(&cm->locked);
	list_init(&cm->events);
	afs_err err = build(cm, config);
	if (err) {
		client_free((struct client *)cm);
		return err;
	}
	*out = (struct client *)cm;
	return AFS_OK;
}

void client_service(struct client *c, struct rpc_service *out) { cm_callback_service(of(c), out); }

afs_err client_start(struct client *c, struct rpc_port *port)
{
	of(c)->port = port;
	of(c)->stopping = false;
	return cm_threads_start(of(c));
}

/* Tell the servers we used that we hold no promises any more. */
static void give_up_callbacks(struct cm *cm)
{
	struct fs_give_up_all_call_backs_in in = {};
	struct fs_give_up_all_call_backs_out out = {};
	for (struct list *e = cm->servers.next; e != &cm->servers; e = e->next) {
		struct cm_server *s = list_entry(e, struct cm_server, all);
		struct rpc_conn *conn;
		if (!s->used || s->down_until ||
			cm_conn_get(cm, cm->cells[0].anonymous, s, &conn) != AFS_OK)
			continue;
		struct rpc_result res = {0};
		(void)fs_call_give_up_all_call_backs(conn, &in, &out, &res); /* a courtesy */
		rpc_conn_unref(conn);
	}
}

static void drop_conns(struct cm *cm)
{
	cm_idents_fini(cm);
	for (size_t i = 0; i < cm->cell_n; i++) {
		struct cm_cell *cell = &cm->cells[i];
		cm_ident_unref(cm, cell->anonymous);
		cell->anonymous = NULL;
		for (size_t j = 0; j < cell->vl_n; j++)
			if (cell->vl_conns[j])
				rpc_conn_unref(cell->vl_conns[j]);
		cell->vl_n = 0;
	}
}

static void let_go(struct cm_vnode *v, void *ctx)
{
	struct cm *cm = ctx;
	mtx_lock(&v->lock);
	struct cm_ident *a = v->store_ident, *b = v->lock_ident;
	struct cm_vnode *mount = v->mount, *silly = v->silly_dir;
	v->store_ident = v->lock_ident = NULL;
	v->mount = v->silly_dir = NULL;
	mtx_unlock(&v->lock);
	cm_ident_unref(cm, a);
	cm_ident_unref(cm, b);
	if (mount)
		cm_vnode_unref(mount);
	if (silly)
		cm_vnode_unref(silly);
}

void client_stop(struct client *c)
{
	struct cm *cm = of(c);
	if (cm->front)
		cm->front_stop(cm);
	if (!cm->port)
		return;
	cm_store_everything(cm);
	cm_threads_stop(cm);
	give_up_callbacks(cm);
	cm_vnodes_each(cm, NULL, let_go, cm);
	drop_conns(cm); /* before the port that they use is closed */
	cm->port = NULL;
}

void client_free(struct client *c)
{
	struct cm *cm = of(c);
	if (!cm)
		return;
	client_stop(c);
	cm_vnodes_fini(cm);
	mem_free(cm->tops);
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&cm->volumes, &cursor, NULL), *next; n; n = next) {
		next = map_walk(&cm->volumes, &cursor, n->next);
		mem_free(container_of(n, struct cm_volume, by_id));
	}
	map_fini(&cm->volumes);
	drop_conns(cm);
	cm_servers_fini(cm);
	for (size_t i = 0; i < cm->cell_n; i++) {
		mem_free(cm->cells[i].vl);
		mem_free(cm->cells[i].vl_conns);
	}
	mem_free(cm->cells);
	mem_free(cm->pags);
	mem_free(cm->dump);
	cache_close(cm->cache);
	mem_free(cm->cache_dir);
	mem_free(cm->old_notes);
	while (cm->buf_n)
		mem_free(cm->bufs[--cm->buf_n]);
	mtx_fini(&cm->vnodes_lock);
	mtx_fini(&cm->volumes_lock);
	mtx_fini(&cm->users_lock);
	mtx_fini(&cm->cells_lock);
	mtx_fini(&cm->conns_lock);
	mtx_fini(&cm->tries_lock);
	mtx_fini(&cm->jobs_lock);
	mtx_fini(&cm->events_lock);
	mtx_fini(&cm->bufs_lock);
	cond_fini(&cm->volumes_changed);
	cond_fini(&cm->jobs_changed);
	cond_fini(&cm->keeper_wake);
	cond_fini(&cm->events_changed);
	mem_free(cm);
}

void client_stats(struct client *c, struct client_stats *out)
{
	struct cm *cm = of(c);
	struct cache_usage u;
	cache_usage(cm->cache, &u);
	*out = (struct client_stats){.cache_bytes = u.used,
		.cache_max = u.max,
		.dirty_bytes = u.dirty,
		.calls = atomic_load(&cm->n_calls),
		.retries = atomic_load(&cm->n_retries),
		.breaks = atomic_load(&cm->n_breaks),
		.fetched_bytes = atomic_load(&cm->n_fetched),
		.stored_bytes = atomic_load(&cm->n_stored),
		.recovered = atomic_load(&cm->n_recovered),
		.conflicts = atomic_load(&cm->n_conflicts),
		.waiting = u.orphans};
	mtx_lock(&cm->vnodes_lock);
	out->vnodes = cm->vnodes.count;
	mtx_unlock(&cm->vnodes_lock);
	mtx_lock(&cm->volumes_lock);
	out->volumes = cm->volumes.count;
	list_each(e, &cm->servers)
	{
		out->servers++;
		out->servers_down += list_entry(e, struct cm_server, all)->down_until != 0;
	}
	mtx_unlock(&cm->volumes_lock);
}
