/* SPDX-License-Identifier: BSD-2-Clause
 * What a port is to rx/rpc: work left for the endpoint, its events, its end. */
#include "rx/rpc/engine.h"

#include "cell/proto/abort.h"
#include "rx/rpc/rxstats.h"
#include "rx/rpc/stream.h"

#include <string.h>

afs_err rpc_port_init(struct rpc_port *port, const struct rpc_service *services, size_t count)
{
	port->services = mem_new_array(count + 1, struct rpc_service);
	port->stats = rpc_stats_new();
	if (!port->services || !port->stats) {
		rpc_stats_free(TAKE(port->stats));
		mem_free(TAKE(port->services));
		return AFS_ENOMEM;
	}
	if (count) {
		memcpy(port->services, services, count * sizeof(*services));
		port->services[count] = rpc_stats_service(&services[0]);
		port->service_count = count + 1;
	}
	atomic_init(&port->refs, 1);
	mtx_init(&port->lock, RANK_RPC_PORT);
	mtx_init(&port->queue_lock, RANK_RPC_QUEUE);
	cond_init(&port->drained);
	list_init(&port->locals);
	list_init(&port->streams);
	list_init(&port->conns);
	list_init(&port->lingering);
	port->inline_tail = &port->inline_head;
	port->work_tail = &port->work_head;
	return AFS_OK;
}

void rpc_port_fini(struct rpc_port *port)
{
	if (!port->services)
		return;
	mem_free(port->services);
	rpc_stats_free(port->stats);
	cond_fini(&port->drained);
	mtx_fini(&port->queue_lock);
	mtx_fini(&port->lock);
}

void rpc_post(struct rpc_port *port, struct rpc_work *work)
{
	mtx_lock(&port->queue_lock);
	if (!work->queued) {
		work->queued = true;
		work->next = NULL;
		*port->work_tail = work;
		port->work_tail = &work->next;
		atomic_store(&port->work_waits, true);
	}
	mtx_unlock(&port->queue_lock);
}

bool rpc_posted(struct rpc_port *port, const struct rpc_work *work)
{
	mtx_lock(&port->queue_lock);
	bool queued = work->queued;
	mtx_unlock(&port->queue_lock);
	return queued;
}

void rpc_engine_work(struct rpc_port *port, mono_ns now)
{
	while (atomic_load(&port->work_waits)) {
		mtx_lock(&port->queue_lock);
		struct rpc_work *work = port->work_head;
		if (work) {
			port->work_head = work->next;
			work->queued = false;
		}
		if (!port->work_head) {
			port->work_tail = &port->work_head;
			atomic_store(&port->work_waits, false);
		}
		mtx_unlock(&port->queue_lock);
		if (work)
			work->run(port, work, now);
	}
}

void rpc_engine_events(struct rpc_port *port, mono_ns now)
{
	struct rx_event ev;
	while (rx_endpoint_next_event(port->ep, &ev)) {
		struct rpc_stream *s = rx_call_user(ev.call);
		switch (ev.kind) {
		case RX_EV_CALL_NEW:
			port->served++;
			rpc_dispatch_new(port, ev.call, now);
			break;
		case RX_EV_READABLE:
			if (!s || s->state == RPC_FINISHED)
				break;
			rpc_stream_receive(s, now);
			if (s->state == RPC_COLLECTING)
				rpc_dispatch_more(s, now);
			break;
		case RX_EV_WRITABLE:
			if (s)
				rpc_stream_push(s, now);
			break;
		case RX_EV_CALL_SENT:
			break;
		case RX_EV_CALL_ENDED:
			if (s)
				rpc_stream_end(s, ev.err, ev.code);
			break;
		}
	}
}

static void end_all(struct rpc_port *port, bool served) REQUIRES(port->lock);
static void end_all(struct rpc_port *port, bool served)
{
	list_each(e, &port->streams)
	{
		struct rpc_stream *s = list_entry(e, struct rpc_stream, node);
		if ((s->service != NULL) == served)
			rpc_stream_end(s, served ? AFS_ERESTARTING : AFS_ECANCELLED, 0);
	}
}

void rpc_engine_close(struct rpc_port *port, mono_ns now)
{
	port->closing = true;
	mtx_lock(&port->queue_lock);
	atomic_store(&port->closed, true);
	mtx_unlock(&port->queue_lock);
	/* callers hear of their own port's end, not of a peer's */
	end_all(port, false);
	rx_endpoint_close(port->ep, now);
	rpc_engine_events(port, now);
	end_all(port, true); /* what has no call any more */
	rpc_conns_close(port, now);
}

void rpc_engine_drain(struct rpc_port *port)
{
	mtx_lock(&port->queue_lock);
	while (port->live)
		cond_wait(&port->drained, &port->queue_lock);
	mtx_unlock(&port->queue_lock);
	rpc_locals_end(port);
}

struct rpc_port *rpc_port_ref(struct rpc_port *port)
{
	atomic_fetch_add(&port->refs, 1);
	return port;
}

void rpc_port_unref(struct rpc_port *port)
{
	if (atomic_fetch_sub(&port->refs, 1) == 1)
		port->driver->free(port);
}

/* --- the word kept with a server connection --------------------------------------------------- */

void rpc_conn_user_unref(struct rpc_conn_user *u)
{
	if (u && atomic_fetch_sub(&u->refs, 1) == 1)
		mem_free(u);
}

/* The endpoint forgets the connection (port->lock is held): the hook runs later, without locks. */
static void conn_gone(void *word)
{
	struct rpc_conn_user *u = word;
	struct rpc_port *port = u->port;
	mtx_lock(&port->queue_lock);
	u->next = port->gone_head;
	port->gone_head = u;
	mtx_unlock(&port->queue_lock);
}

struct rpc_conn_user *rpc_conn_user_get(struct rpc_port *port, struct rx_conn *conn)
{
	struct rpc_conn_user *u = rx_conn_user(conn);
	if (u)
		return u;
	u = mem_new(struct rpc_conn_user);
	if (!u)
		return NULL;
	atomic_init(&u->refs, 1);
	u->port = port;
	rx_conn_set_user(conn, u, conn_gone);
	return u;
}

bool rpc_engine_has_gone(struct rpc_port *port)
{
	mtx_lock(&port->queue_lock);
	bool has = port->gone_head;
	mtx_unlock(&port->queue_lock);
	return has;
}

void rpc_engine_run_gone(struct rpc_port *port)
{
	mtx_lock(&port->queue_lock);
	struct rpc_conn_user *u = TAKE(port->gone_head);
	mtx_unlock(&port->queue_lock);
	while (u) {
		struct rpc_conn_user *next = u->next;
		mtx_lock(&port->queue_lock);
		void *user = TAKE(u->user);
		void (*gone)(void *) = u->gone;
		mtx_unlock(&port->queue_lock);
		if (user && gone)
			gone(user);
		rpc_conn_user_unref(u);
		u = next;
	}
}

void *rpc_call_conn_user(struct rpc_call *call)
{
	struct rpc_stream *s = stream_of(call);
	if (!s->conn_user)
		return NULL;
	mtx_lock(&s->port->queue_lock);
	void *user = s->conn_user->user;
	mtx_unlock(&s->port->queue_lock);
	return user;
}

void rpc_call_set_conn_user(struct rpc_call *call, void *user, void (*gone)(void *user))
{
	struct rpc_stream *s = stream_of(call);
	struct rpc_conn_user *u = s->conn_user;
	if (!u) { /* there was no memory to keep it */
		if (user && gone)
			gone(user);
		return;
	}
	mtx_lock(&s->port->queue_lock);
	void *old = u->user;
	void (*old_gone)(void *) = u->gone;
	u->user = user;
	u->gone = gone;
	mtx_unlock(&s->port->queue_lock);
	if (old && old_gone)
		old_gone(old);
}

uint64_t rpc_call_conn_key(const struct rpc_call *call) { return stream_of(call)->conn_key; }
struct rpc_port *rpc_call_port(const struct rpc_call *call) { return stream_of(call)->port; }
