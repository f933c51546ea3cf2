/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Clients: who a connection's user is to this cell, asked once and kept with the connection; all
 * connections of one user of one host share it.
 *
 * Always: a client never changes.  When its identity may have (the cell's answers moved, two hours
 * went by, FlushCPS) or its host left the table, the next call makes another and puts it in its
 * place; calls under way keep theirs. */
#include "fileserver/cb/cb_internal.h"

#include <string.h>

#define ASK_AGAIN_NS SEC(2 * 3600)
enum { CLIENTS_LOOK = 32 }; /* users of a host whose identities are looked through for a new connection */

static void client_free(struct cb_client *c)
{
	struct cb *cb = c->cb;
	mtx_lock(&cb->lock);
	if (list_linked(&c->node)) {
		list_remove(&c->node);
		cb->clients_n--;
	}
	mtx_unlock(&cb->lock);
	cb_host_unref(c->host);
	fs_cps_fini(&c->who.cps);
	fs_cps_fini(&c->groups);
	mem_free(c);
}

static void client_unref(struct cb_client *c)
{
	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		client_free(c);
}

/* The connection forgot it: not while a call is between reading the word and its reference. */
static void client_gone(void *user)
{
	struct cb_client *c = user;
	struct cb *cb = c->cb;
	mtx_lock(&cb->lock);
	bool last = atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1;
	mtx_unlock(&cb->lock);
	if (last)
		client_free(c);
}

static uint64_t generation(struct cb *cb)
{
	uint64_t g = cb->people.generation ? cb->people.generation(cb->people.ctx) : 0;
	return g + atomic_load(&cb->flushes);
}

static bool cps_valid(const struct fs_cps *cps)
{
	for (uint32_t i = 1; i < cps->n; i++)
		if (cps->ids[i - 1] >= cps->ids[i])
			return false;
	return cps->n <= FS_CPS_MAX;
}

static bool fresh(const struct cb_client *c, uint64_t gen, mono_ns now)
{
	return c->generation == gen && now - c->asked < ASK_AGAIN_NS;
}

/* Is it the same user, whose ticket lasts as long?  (Names end with zeros.) */
static bool same_caller(const struct rx_caller *a, const struct rx_caller *b)
{
	if (!a->authenticated && !b->authenticated)
		return true;
	return a->authenticated == b->authenticated && a->sec_class == b->sec_class &&
	       a->level == b->level && a->expires == b->expires && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->instance, b->instance) == 0 && strcmp(a->cell, b->cell) == 0;
}

/* What another connection of this user asked already; referenced.  NULL: nothing that is fresh. */
static struct cb_client *find_locked(
	const struct fs_host *host, const struct rpc_call *call, uint64_t gen)
{
	unsigned looked = 0;
	list_each(it, &host->clients)
	{
		struct cb_client *c = list_entry(it, struct cb_client, node);
		if (looked++ == CLIENTS_LOOK)
			break;
		if (!fresh(c, gen, call->now) || !same_caller(&c->caller, call->caller))
			continue;
		unsigned refs = atomic_load(&c->refs);
		while (refs && !atomic_compare_exchange_weak(&c->refs, &refs, refs + 1))
			continue;
		if (refs)
			return c;
	}
	return NULL;
}

/* A fresh client of `host` for the caller; takes the host's reference, also on failure. */
static afs_err client_new(
	struct cb *cb, const struct rpc_call *call, struct fs_host *host, struct cb_client **out)
{
	struct cb_client *c = mem_new(struct cb_client);
	if (!c) {
		cb_host_unref(host);
		return AFS_ENOMEM;
	}
	atomic_init(&c->refs, 1);
	c->cb = cb;
	c->host = host;
	c->caller = *call->caller;
	c->generation = generation(cb);
	c->asked = call->now;
	afs_err err = cb->people.identify(cb->people.ctx, call->caller, &c->who);
	if (err == AFS_OK)
		err = cb->people.host_groups(cb->people.ctx, call->peer.ip, &c->groups);
	if (err == AFS_OK && !(cps_valid(&c->who.cps) && cps_valid(&c->groups)))
		err = AFS_EAGAIN;
	if (err != AFS_OK) {
		client_free(c);
		return err == AFS_ENOMEM ? err : AFS_EAGAIN;
	}
	mtx_lock(&cb->lock);
	list_push_front(&host->clients, &c->node);
	cb->clients_n++;
	mtx_unlock(&cb->lock);
	*out = c;
	return AFS_OK;
}

afs_err cb_client_begin(struct cb *cb, struct rpc_call *call, struct cb_client **out)
{
	uint32_t epoch = (uint32_t)(rpc_call_conn_key(call) >> 32);
	uint64_t gen = generation(cb);
	struct fs_host *host = NULL;

	mtx_lock(&cb->lock);
	struct cb_client *c = rpc_call_conn_user(call);
	if (c && cb_host_ready(c->host) && cb_host_has_addr(c->host, call->peer)) {
		host = c->host;
		host->heard = call->now;
		if (fresh(c, gen, call->now)) {
			atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
			mtx_unlock(&cb->lock);
			*out = c;
			return AFS_OK;
		}
		cb_host_ref(host);
	}
	mtx_unlock(&cb->lock);

	if (call->must_not_wait) {
		cb_host_unref(host);
		return AFS_EWAIT;
	}
	if (!host)
		TRY(cb_meet(cb, call->peer, rpc_call_port(call), epoch, call->now, &host));
	mtx_lock(&cb->lock);
	c = find_locked(host, call, gen);
	mtx_unlock(&cb->lock);
	if (c)
		cb_host_unref(host); /* the client has one */
	else
		TRY(client_new(cb, call, host, &c));
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed); /* the connection's */
	rpc_call_set_conn_user(call, c, client_gone);
	*out = c;
	return AFS_OK;
}

void cb_client_end(struct cb_client *c) { client_unref(c); }

bool cb_call_translates(struct cb *cb, const struct rpc_call *call)
{
	mtx_lock(&cb->lock);
	struct cb_client *c = rpc_call_conn_user((struct rpc_call *)(uintptr_t)call);
	bool yes = c && (c->host->caps & CB_CAP_ERRORTRANS);
	mtx_unlock(&cb->lock);
	return yes;
}

const struct fs_identity *cb_client_identity(const struct cb_client *c) { return &c->who; }
const struct fs_cps *cb_client_host_groups(const struct cb_client *c) { return &c->groups; }

void cb_flush_cps(struct cb *cb, const int32_t *ids, size_t n, const uint32_t *ips, size_t m)
{
	(void)ids, (void)ips; /* asking everybody again is right too, and needs no index */
	if (n || m)
		atomic_fetch_add(&cb->flushes, 1);
}
