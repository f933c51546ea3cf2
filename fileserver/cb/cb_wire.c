/* SPDX-License-Identifier: BSD-2-Clause
 *
 * RXAFSCB from the file server's own port, unauthenticated: kept connections per address, so that
 * round-trip times are known and a break costs no set-up; breaks have one of their own, whose calls are
 * given up sooner.  A connection on which a call failed is
 * dropped; the next call makes a fresh one. */
#include "fileserver/cb/cb_wire.h"

#include "cell/base/map.h"
#include "cell/base/mtx.h"
#include "fileserver/cb/cb.h"

#define RPC_WANT_STUBS
#define RPC_PREFIX cb
#define RPC_ROWS "cell/proto/cb.rpc"
#include "rx/xdr/iface_pass.h"

enum { ANSWER_ARENA = 4096 };

struct wire_conn {
	struct map_node node;
	struct rx_addr addr;
	struct rpc_port *port; /* NULL: the usual one */
	struct rpc_conn *conn[2]; /* for questions, for breaks; NULL: none yet, or the last one failed */
};
enum { FOR_QUESTIONS, FOR_BREAKS };
struct cb_wire_rpc {
	struct mtx lock; /* never held while the transport is called */
	struct rpc_port *port;
	struct map conns;
	int64_t break_ns;
};
/* A CallBack under way. */
struct wire_break {
	struct rpc_call *call;
	struct rx_addr to;
	int use;
};

static uint64_t hash_addr(const struct map *m, struct rx_addr a)
{
	return map_hash_u64(m, (uint64_t)a.ip << 16 | a.port);
}

static struct wire_conn *find_locked(struct cb_wire_rpc *w, struct rx_addr to)
{
	for (struct map_node *n = map_first(&w->conns, hash_addr(&w->conns, to)); n;
		n = map_next(n)) {
		struct wire_conn *c = container_of(n, struct wire_conn, node);
		if (c->addr.ip == to.ip && c->addr.port == to.port)
			return c;
	}
	return NULL;
}

/* The entry of `to`, made when there is none; NULL when memory is short. */
static struct wire_conn *make_locked(struct cb_wire_rpc *w, struct rx_addr to)
{
	struct wire_conn *c = find_locked(w, to);
	if (c)
		return c;
	c = mem_new(struct wire_conn);
	if (!c)
		return NULL;
	c->addr = to;
	if (!map_insert(&w->conns, &c->node, hash_addr(&w->conns, to))) {
		mem_free(c);
		return NULL;
	}
	return c;
}

/* A referenced connection to `to`. */
static afs_err conn_get(struct cb_wire_rpc *w, struct rx_addr to, int use, struct rpc_conn **out)
{
	mtx_lock(&w->lock);
	struct wire_conn *c = find_locked(w, to);
	struct rpc_port *port = w->port && c && c->port ? c->port : w->port;
	struct rpc_conn *conn = c && c->conn[use] ? rpc_conn_ref(c->conn[use]) : NULL;
	int64_t break_ns = w->break_ns;
	mtx_unlock(&w->lock);
	if (conn) {
		*out = conn;
		return AFS_OK;
	}
	if (!port)
		return AFS_EDEAD;

	struct rpc_conn_config config = {
		.peer = to, .iface = &cb_iface, .dead_ns = CB_DEAD_NS, .hard_ns = CB_HARD_NS};
	if (use == FOR_BREAKS)
		config.dead_ns = config.hard_ns = break_ns;
	TRY(rpc_conn_new(port, &config, &conn));
	mtx_lock(&w->lock);
	c = w->port ? make_locked(w, to) : NULL;
	if (c && !c->conn[use])
		c->conn[use] = rpc_conn_ref(conn); /* else this call alone uses it */
	mtx_unlock(&w->lock);
	*out = conn;
	return AFS_OK;
}

static void unref_both(struct rpc_conn *conn[2])
{
	for (int i = 0; i < 2; i++)
		if (conn[i])
			rpc_conn_unref(conn[i]);
}

static void wire_via(void *ctx, struct rx_addr from, struct rpc_port *port)
{
	struct cb_wire_rpc *w = ctx;
	struct rpc_conn *old[2] = {0};
	mtx_lock(&w->lock);
	struct wire_conn *c = w->port ? make_locked(w, from) : NULL;
	if (c && c->port != port) {
		memcpy(old, c->conn, sizeof(old));
		memset(c->conn, 0, sizeof(c->conn));
		c->port = port;
	}
	mtx_unlock(&w->lock);
	unref_both(old);
}

static void wire_forget(void *ctx, struct rx_addr to)
{
	struct cb_wire_rpc *w = ctx;
	mtx_lock(&w->lock);
	struct wire_conn *c = find_locked(w, to);
	if (c)
		map_remove(&w->conns, &c->node);
	mtx_unlock(&w->lock);
	if (c)
		unref_both(c->conn);
	mem_free(c);
}

/* A failure of the transport spoils the connection; a refusal by the client does not. */
static afs_err judged(struct cb_wire_rpc *w, struct rx_addr to, int use, afs_err err, int32_t code)
{
	if (err == AFS_OK || code != 0)
		return err;
	mtx_lock(&w->lock);
	struct wire_conn *c = find_locked(w, to);
	struct rpc_conn *conn = c ? c->conn[use] : NULL;
	if (c)
		c->conn[use] = NULL;
	mtx_unlock(&w->lock);
	if (conn)
		rpc_conn_unref(conn);
	return err;
}

static afs_err wire_who(void *ctx, struct rx_addr to, struct cb_answer *out)
{
	struct cb_wire_rpc *w = ctx;
	struct rpc_conn *conn;
	TRY(conn_get(w, to, FOR_QUESTIONS, &conn));
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ANSWER_ARENA);
	struct rpc_result res = {.arena = &arena};
	struct cb_tell_me_about_yourself_out me = {0};
	struct cb_answer answer = {0};
	afs_err err = cb_call_tell_me_about_yourself(
		conn, &(struct cb_tell_me_about_yourself_in){}, &me, &res);
	if (err == AFS_OK) {
		answer.has_uuid = !afs_uuid_is_nil(&me.addr.uuid);
		answer.caps = me.capabilities.n ? me.capabilities.v[0] : 0;
		afs_uuid_to_bytes(&me.addr.uuid, answer.uuid);
	} else if (err == AFS_EOPCODE) {
		struct cb_who_are_you_out old = {0};
		err = cb_call_who_are_you(conn, &(struct cb_who_are_you_in){}, &old, &res);
		answer.has_uuid = err == AFS_OK && !afs_uuid_is_nil(&old.addr.uuid);
		afs_uuid_to_bytes(&old.addr.uuid, answer.uuid);
		if (err == AFS_EOPCODE)
			err = AFS_OK;
	}
	rpc_conn_unref(conn);
	if (err == AFS_OK)
		*out = answer;
	return judged(w, to, FOR_QUESTIONS, err, res.code);
}

static afs_err wire_init(void *ctx, struct rx_addr to, const struct afsUUID *server)
{
	struct cb_wire_rpc *w = ctx;
	struct rpc_conn *conn;
	TRY(conn_get(w, to, FOR_QUESTIONS, &conn));
	struct rpc_result res = {0};
	afs_err err;
	if (server)
		err = cb_call_init_call_back_state3(conn,
			&(struct cb_init_call_back_state3_in){.server = *server},
			&(struct cb_init_call_back_state3_out){}, &res);
	else
		err = cb_call_init_call_back_state(conn, &(struct cb_init_call_back_state_in){},
			&(struct cb_init_call_back_state_out){}, &res);
	rpc_conn_unref(conn);
	return judged(w, to, FOR_QUESTIONS, err, res.code);
}

static afs_err wire_probe(void *ctx, struct rx_addr to, const uint8_t *uuid)
{
	struct cb_wire_rpc *w = ctx;
	struct rpc_conn *conn;
	TRY(conn_get(w, to, FOR_QUESTIONS, &conn));
	struct rpc_result res = {0};
	afs_err err;
	if (uuid)
		err = cb_call_probe_uuid(conn,
			&(struct cb_probe_uuid_in){.client = afs_uuid_from_bytes(uuid)},
			&(struct cb_probe_uuid_out){}, &res);
	else
		err = cb_call_probe(conn, &(struct cb_probe_in){}, &(struct cb_probe_out){}, &res);
	rpc_conn_unref(conn);
	return judged(w, to, FOR_QUESTIONS, err, res.code);
}

static afs_err wire_break_begin(void *ctx, struct rx_addr to, const struct AFSFid *fids, size_t n,
	bool delayed, void **call)
{
	struct cb_wire_rpc *w = ctx;
	CLEANUP(heap) struct wire_break *b = mem_new(struct wire_break);
	struct AFSFid some[CB_FIDS_MAX];
	struct AFSCallBack dropped[CB_FIDS_MAX];
	if (!b)
		return AFS_ENOMEM;
	if (n > CB_FIDS_MAX)
		return AFS_EINVAL;
	for (size_t i = 0; i < n; i++) {
		some[i] = fids[i];
		dropped[i] = (struct AFSCallBack){CB_VERSION, 0, CB_DROPPED};
	}
	struct cb_call_back_in in = {
		.Fids = {some, (uint32_t)n}, .CallBacks = {dropped, delayed ? (uint32_t)n : 0}};
	struct rpc_conn *conn;
	int use = delayed ? FOR_QUESTIONS : FOR_BREAKS;
	TRY(conn_get(w, to, use, &conn));
	afs_err err = rpc_begin(conn, &cb_iface.procs[cb_op_call_back], &in, &b->call);
	rpc_conn_unref(conn); /* the call holds it */
	if (err != AFS_OK)
		return judged(w, to, use, err, 0);
	b->to = to;
	b->use = use;
	*call = TAKE(b);
	return AFS_OK;
}

static afs_err wire_break_end(void *ctx, void *call)
{
	CLEANUP(heap) struct wire_break *b = call;
	struct rpc_result res = {0};
	afs_err err = rpc_end(b->call, &(struct cb_call_back_out){}, &res);
	return judged(ctx, b->to, b->use, err, res.code);
}

static void free_conns(struct map *conns)
{
	size_t cursor = 0;
	struct map_node *next;
	for (struct map_node *n = map_walk(conns, &cursor, NULL); n; n = next) {
		next = map_walk(conns, &cursor, n->next);
		struct wire_conn *c = container_of(n, struct wire_conn, node);
		unref_both(c->conn);
		mem_free(c);
	}
	map_fini(conns);
}

static void wire_free(void *ctx)
{
	struct cb_wire_rpc *w = ctx;
	free_conns(&w->conns);
	mtx_fini(&w->lock);
	mem_free(w);
}

afs_err cb_wire_rpc_new(struct cb_wire *out)
{
	struct cb_wire_rpc *w = mem_new(struct cb_wire_rpc);
	if (!w)
		return AFS_ENOMEM;
	mtx_init(&w->lock, RANK_CB);
	map_init(&w->conns);
	w->break_ns = CB_BREAK_WAIT_NS / 2;
	*out = (struct cb_wire){.ctx = w,
		.who = wire_who,
		.init = wire_init,
		.probe = wire_probe,
		.break_begin = wire_break_begin,
		.break_end = wire_break_end,
		.via = wire_via,
		.forget = wire_forget,
		.free = wire_free};
	return AFS_OK;
}

/* Connections belong to a port: they go with it. */
void cb_wire_rpc_set_port(struct cb_wire *wire, struct rpc_port *port)
{
	struct cb_wire_rpc *w = wire->ctx;
	mtx_lock(&w->lock);
	w->port = port;
	struct map conns = w->conns;
	map_init(&w->conns);
	mtx_unlock(&w->lock);
	free_conns(&conns);
}

void cb_wire_rpc_set_wait(struct cb_wire *wire, int64_t break_wait_ns)
{
	struct cb_wire_rpc *w = wire->ctx;
	mtx_lock(&w->lock);
	w->break_ns = (break_wait_ns ? break_wait_ns : CB_BREAK_WAIT_NS) / 2;
	mtx_unlock(&w->lock);
}
