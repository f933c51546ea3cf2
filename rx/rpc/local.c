/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls to a port of this process, without the network: the caller's thread runs the handler, and packets move from
 * one stream to the other in memory, neither sealed nor copied.  What is judged is the same as on the wire: arguments are
 * encoded and decoded with their bounds, a token is proved by challenge and response, the service's policy and its
 * done hook run.  A handler runs when the caller has said all and wants the answer; both directions are collected
 * meanwhile, so a caller does well to keep its pieces small. */
#include "rx/rpc/stream.h"

#include "cell/base/rand.h"
#include "cell/proto/abort.h"

enum { BODY_SMALL = RX_BUF_SMALL - RX_HEADER, BODY_BULK = RX_DATAGRAM_MAX - RX_HEADER };

struct rpc_local {
	struct list node; /* of server->locals */
	struct rpc_port *server; /* counted */
	const struct rpc_service *service;
	struct rpc_conn_user *user;
	struct rx_caller caller;
	struct rx_addr from;
	uint64_t key;
};

static afs_err prove(struct rpc_port *server, const struct rpc_conn_config *config, struct rpc_local *l)
{
	uint32_t epoch = rand_u32() | 0x80000000u, cid = rand_u32() & ~3u;
	l->key = (uint64_t)epoch << 32 | cid;
	if (!config->sec)
		return AFS_OK;
	struct rx_conn_id id = {.epoch = epoch, .cid = cid, .service = config->iface->service, .index = (uint8_t)config->sec->ops->sec_class};
	struct rx_sec *mine = config->sec->ops->clone(config->sec);
	struct rx_sec *theirs = rpc_port_accept(server, l->from, id.service, id.index);
	uint8_t challenge[64], *response = mem_alloc(RX_RESPONSE_MAX, 1);
	size_t n = 0, len = 0;
	afs_err err = mine && response ? AFS_OK : AFS_ENOMEM;
	if (!err && (!theirs || !theirs->ops->accept))
		err = AFS_ESECPROTO;
	if (!err && mine->ops->bind)
		mine->ops->bind(mine, &id);
	if (!err && theirs->ops->bind)
		theirs->ops->bind(theirs, &id);
	if (!err)
		err = theirs->ops->challenge(theirs, challenge, sizeof(challenge), &n);
	if (!err)
		err = mine->ops->respond(mine, &id, challenge, n, response, RX_RESPONSE_MAX, &len);
	if (!err)
		err = theirs->ops->accept(theirs, &id, response, len, clk_wall(), &l->caller);
	if (theirs)
		rx_sec_free(theirs);
	if (mine)
		rx_sec_free(mine);
	mem_free(response);
	return err;
}

struct rpc_local *rpc_local_new(const struct rpc_conn_config *config)
{
	const struct rpc_service *svc = NULL;
	for (size_t i = 0; i < config->local->service_count; i++)
		if (config->local->services[i].iface == config->iface)
			svc = &config->local->services[i];
	struct rpc_local *l = svc ? mem_new(struct rpc_local) : NULL;
	struct rpc_conn_user *u = l ? mem_new(struct rpc_conn_user) : NULL;
	if (!u) {
		mem_free(l);
		return NULL;
	}
	l->server = rpc_port_ref(config->local);
	l->service = svc;
	l->from = config->local_from;
	atomic_init(&u->refs, 1);
	u->port = l->server;
	l->user = u;
	if (prove(l->server, config, l) == AFS_OK) {
		mtx_lock(&l->server->queue_lock);
		list_push_back(&l->server->locals, &l->node);
		mtx_unlock(&l->server->queue_lock);
		return l;
	}
	mem_free(u);
	rpc_port_unref(l->server);
	mem_free(l);
	return NULL;
}

void rpc_local_free(struct rpc_local *l)
{
	if (!l)
		return;
	struct rpc_port *server = l->server;
	mtx_lock(&server->queue_lock);
	bool linked = list_linked(&l->node); /* else rpc_locals_end() was here */
	list_remove(&l->node);
	void *user = TAKE(l->user->user);
	void (*gone)(void *) = l->user->gone;
	mtx_unlock(&server->queue_lock);
	if (linked && user && gone)
		gone(user);
	rpc_conn_user_unref(l->user);
	rpc_port_unref(server);
	mem_free(l);
}

void rpc_locals_end(struct rpc_port *server)
{
	mtx_lock(&server->queue_lock);
	for (struct list *e; (e = list_pop_front(&server->locals));) {
		struct rpc_conn_user *u = list_entry(e, struct rpc_local, node)->user;
		void *user = TAKE(u->user);
		void (*gone)(void *) = u->gone;
		atomic_fetch_add(&u->refs, 1);
		mtx_unlock(&server->queue_lock);
		if (user && gone)
			gone(user);
		rpc_conn_user_unref(u);
		mtx_lock(&server->queue_lock);
	}
	mtx_unlock(&server->queue_lock);
}

static void half(struct rpc_stream *s, const struct rpc_proc *proc)
{
	s->local = true;
	s->sec = rx_null_new();
	s->state = RPC_RUNNING;
	s->body = s->body_max = proc->shape == RPC_SPLIT ? BODY_BULK : BODY_SMALL;
}

afs_err rpc_local_begin(struct rpc_local *l, struct rpc_stream *s, const struct rpc_proc *proc)
{
	struct rpc_stream *t = rpc_stream_new(l->server);
	if (!t)
		return AFS_ENOMEM;
	half(s, proc);
	half(t, proc);
	t->service = l->service;
	t->pub.service = l->service->ctx;
	t->pub.iface = l->service->iface;
	t->pub.caller = &l->caller;
	t->pub.peer = l->from;
	atomic_fetch_add(&l->user->refs, 1);
	t->conn_user = l->user;
	t->conn_key = l->key;
	s->twin = t;
	t->twin = s;
	return AFS_OK;
}

static void end(struct rpc_stream *s, afs_err err, int32_t code)
{
	rpc_queue_clear(&s->in);
	mtx_lock(&s->lock);
	s->err = err;
	s->code = code;
	s->over = true;
	mtx_unlock(&s->lock);
}

void rpc_local_run(struct rpc_stream *s)
{
	struct rpc_stream *t = TAKE(s->twin);
	if (!t)
		return;
	int32_t code = 0;
	wall_ns expires = t->pub.caller->expires;
	if (atomic_load(&t->port->closed))
		end(s, AFS_ERESTARTING, 0);
	else if (expires && expires <= clk_wall())
		end(s, AFS_EEXPIRED, 0);
	else if (rpc_stream_serve_local(t, &code) != AFS_OK)
		end(s, AFS_EABORTED, code);
	else
		s->in_last = true;
	t->twin = NULL;
	rpc_stream_destroy(t);
}

void rpc_local_drop(struct rpc_stream *s)
{
	struct rpc_stream *t = TAKE(s->twin);
	if (t)
		rpc_stream_destroy(t);
}
