/* SPDX-License-Identifier: BSD-2-Clause
 * Users' tokens and the connections made with them.  A new token is a new ident with a number of its
 * own, so that rights cached for the old one are not found again. */
#include "client/cm/cm.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"
#include "cell/proto/fs.h"

#include <string.h>

enum { LOOPBACK_NET = 127, TICKET_MAX = 12000 };

struct cm_conn {
	struct list all;
	struct cm_server *server;
	struct rx_addr addr;
	struct rpc_conn *conn;
};

struct cm_ident *cm_ident_new(struct cm *cm, struct cm_cell *cell, uid_t uid)
{
	(void)cm;
	struct cm_ident *id = mem_new(struct cm_ident);
	if (!id)
		return NULL;
	atomic_init(&id->refs, 1);
	id->cell = cell;
	id->uid = uid;
	list_init(&id->conns);
	return id;
}

struct cm_ident *cm_ident_ref(struct cm_ident *id)
{
	atomic_fetch_add(&id->refs, 1);
	return id;
}

void cm_ident_unref(struct cm *cm, struct cm_ident *id)
{
	(void)cm;
	if (!id || atomic_fetch_sub(&id->refs, 1) != 1)
		return;
	for (struct list *e; (e = list_pop_front(&id->conns));) {
		struct cm_conn *c = list_entry(e, struct cm_conn, all);
		rpc_conn_unref(c->conn);
		mem_free(c);
	}
	explicit_bzero(&id->token, sizeof(id->token));
	mem_free(id->ticket);
	mem_free(id->gk_token);
	mem_free(id);
}

static bool live(const struct cm *cm, const struct rx_token *t)
{
	wall_ns expires = rx_token_expires(t);
	return !expires || expires > cm->ports.wall(cm->ports.ctx);
}

bool cm_ident_usable(const struct cm *cm, const struct cm_ident *id)
{
	return !atomic_load(&id->bad) &&
	       live(cm, &id->token);
}

struct cm_ident *cm_ident_get(struct cm *cm, struct cm_cell *cell, uid_t uid)
{
	struct cm_ident *found = cell->anonymous;
	mtx_lock(&cm->users_lock);
	list_each(e, &cm->users)
	{
		struct cm_ident *id = list_entry(e, struct cm_ident, of_users);
		if (id->uid == uid && id->cell == cell) {
			if (cm_ident_usable(cm, id))
				found = id;
			break;
		}
	}
	cm_ident_ref(found);
	mtx_unlock(&cm->users_lock);
	return found;
}

static struct rpc_conn *conn_find_locked(struct cm *cm [[maybe_unused]], struct cm_ident *id, const struct cm_server *server,
	struct rx_addr addr) REQUIRES(cm->conns_lock)
{
	list_each(e, &id->conns)
	{
		struct cm_conn *c = list_entry(e, struct cm_conn, all);
		if (c->server == server && c->addr.ip == addr.ip && c->addr.port == addr.port)
			return c->conn;
	}
	return NULL;
}

static void random_fill(void *ctx, void *out, size_t n) { (void)ctx, rand_bytes(out, n); }

/* By rxgk at its token's level; but where the configuration asks for no encryption within this machine, and there
 * is a token of rxkad too, by that. */
static struct rx_sec *secure(const struct cm *cm, const struct cm_ident *id, struct rx_addr addr)
{
	struct rx_token t = id->token;
	enum rx_sec_level level = addr.ip >> 24 == LOOPBACK_NET ? cm->config.level_here : cm->config.level;
	if (rx_token_has_kad(&t) && level < RX_LEVEL_CRYPT)
		t.gk.len = 0;
	struct rx_sec *sec = rx_token_client(&t, level, cm->ports.wall(cm->ports.ctx), &(struct rxgk_random){.fill = random_fill});
	explicit_bzero(&t, sizeof(t));
	return sec;
}

afs_err cm_conn_get(
	struct cm *cm, struct cm_ident *id, struct cm_server *server, struct rpc_conn **out)
{
	mtx_lock(&cm->volumes_lock);
	struct rx_addr addr = server->addrs[server->addr_good];
	server->used = true;
	mtx_unlock(&cm->volumes_lock);

	afs_err err = AFS_OK;
	struct rpc_conn *conn = NULL;
	struct rpc_port *direct = NULL;
	struct rx_addr from = {0};
	mtx_lock(&cm->conns_lock);
	conn = conn_find_locked(cm, id, server, addr);
	if (!conn && cm->ports.direct) { /* which has locks of its own */
		mtx_unlock(&cm->conns_lock);
		direct = cm->ports.direct(cm->ports.ctx, addr, &from);
		mtx_lock(&cm->conns_lock);
		conn = conn_find_locked(cm, id, server, addr);
	}
	if (!conn) {
		struct cm_conn *c = mem_new(struct cm_conn);
		struct rpc_conn_config config = {
			.peer = addr, .iface = &fs_iface, .dead_ns = cm->config.dead_ns,
			.local = direct, .local_from = from};
		if (c && id->number)
			config.sec = secure(cm, id, addr);
		if (!c || (id->number && !config.sec))
			err = AFS_ENOMEM;
		else
			err = rpc_conn_new(cm->port, &config, &conn);
		if (err) {
			mem_free(c);
		} else {
			*c = (struct cm_conn){.server = server, .addr = addr, .conn = conn};
			list_push_back(&id->conns, &c->all);
		}
	}
	if (!err)
		*out = rpc_conn_ref(conn);
	mtx_unlock(&cm->conns_lock);
	if (direct)
		rpc_port_unref(direct);
	return err;
}

bool cm_volume_is_direct(struct cm *cm, struct cm_volume *v, struct cm_ident *id)
{
	if (!cm->ports.direct)
		return false;
	mtx_lock(&cm->volumes_lock);
	struct cm_server *s = v->located && v->site_n ? v->sites[v->site_good] : NULL;
	mtx_unlock(&cm->volumes_lock);
	bool direct = false;
	mtx_lock(&cm->conns_lock);
	list_each(e, &id->conns)
	{
		struct cm_conn *c = list_entry(e, struct cm_conn, all);
		direct |= s && c->server == s && rpc_conn_is_local(c->conn);
	}
	mtx_unlock(&cm->conns_lock);
	return direct;
}

struct rpc_conn *cm_conn_any(struct cm *cm, struct cm_ident *id)
{
	mtx_lock(&cm->conns_lock);
	struct rpc_conn *conn = NULL;
	if (!list_empty(&id->conns))
		conn = rpc_conn_ref(list_entry(list_first(&id->conns), struct cm_conn, all)->conn);
	mtx_unlock(&cm->conns_lock);
	return conn;
}

void cm_conn_drop(struct cm *cm, struct cm_ident *id, struct rpc_conn *conn)
{
	struct cm_conn *gone = NULL;
	mtx_lock(&cm->conns_lock);
	list_each(e, &id->conns)
	{
		struct cm_conn *c = list_entry(e, struct cm_conn, all);
		if (c->conn == conn) {
			list_remove(e);
			gone = c;
			break;
		}
	}
	mtx_unlock(&cm->conns_lock);
	if (gone) {
		rpc_conn_unref(gone->conn);
		mem_free(gone);
	}
}

void cm_idents_fini(struct cm *cm)
{
	for (struct list *e; (e = list_pop_front(&cm->users));)
		cm_ident_unref(cm, list_entry(e, struct cm_ident, of_users));
}

/* --- tokens ------------------------------------------------------------------------------------- */

static struct cm *of(struct client *c) { return (struct cm *)c; }

afs_err client_token_set(struct client *client, uid_t uid, const struct client_token *token)
{
	struct cm *cm = of(client);
	struct cm_cell *cell = cm_cell_find(cm, token->cell, strlen(token->cell));
	if (!cell)
		return AFS_ENOENT;
	if (!live(cm, &token->both))
		return AFS_EEXPIRED;
	if (!rx_token_any(&token->both) || token->kad.ticket_len > TICKET_MAX || token->gk.len > RXGK_TOKEN_MAX)
		return AFS_ETICKETLEN;

	struct cm_ident *id = cm_ident_new(cm, cell, uid);
	if (id)
		id->ticket = mem_alloc(token->kad.ticket_len + 1, 1);
	if (id)
		id->gk_token = mem_alloc(token->gk.len + 1, 1);
	if (!id || !id->ticket || !id->gk_token) {
		cm_ident_unref(cm, id);
		return AFS_ENOMEM;
	}
	id->token = token->both;
	if (token->kad.ticket_len)
		memcpy(id->ticket, token->kad.ticket, token->kad.ticket_len);
	if (token->gk.len)
		memcpy(id->gk_token, token->gk.token, token->gk.len);
	id->token.kad.ticket = id->ticket;
	id->token.gk.token = id->gk_token;
	strncpy(id->name, token->name ? token->name : "", sizeof(id->name) - 1);

	struct cm_ident *old = NULL;
	mtx_lock(&cm->users_lock);
	id->number = ++cm->ident_next;
	list_each(e, &cm->users)
	{
		struct cm_ident *o = list_entry(e, struct cm_ident, of_users);
		if (o->uid == uid && o->cell == cell) {
			list_remove(e);
			old = o;
			break;
		}
	}
	list_push_back(&cm->users, &id->of_users);
	mtx_unlock(&cm->users_lock);
	cm_ident_unref(cm, old);
	log_info("cm.token.set user=%u cell=%s", uid, cell->name);
	cm_recover(cm); /* perhaps what waited for it */
	return AFS_OK;
}

size_t client_token_list(
	struct client *client, uid_t uid, struct client_token_info *out, size_t cap)
{
	struct cm *cm = of(client);
	size_t n = 0;
	mtx_lock(&cm->users_lock);
	list_each(e, &cm->users)
	{
		struct cm_ident *id = list_entry(e, struct cm_ident, of_users);
		if (id->uid != uid)
			continue;
		if (n < cap) {
			out[n] = (struct client_token_info){.begins = id->token.kad.begins,
				.expires = rx_token_expires(&id->token),
				.rxkad = rx_token_has_kad(&id->token),
				.rxgk = rx_token_has_gk(&id->token),
				.level = id->token.gk.terms.level,
				.expired = !cm_ident_usable(cm, id)};
			memcpy(out[n].cell, id->cell->name, sizeof(out[n].cell));
			memcpy(out[n].name, id->name, sizeof(out[n].name));
		}
		n++;
	}
	mtx_unlock(&cm->users_lock);
	return n;
}

afs_err client_token_drop(struct client *client, uid_t uid, const char *cell)
{
	struct cm *cm = of(client);
	struct list gone;
	list_init(&gone);
	mtx_lock(&cm->users_lock);
	list_each(e, &cm->users)
	{
		struct cm_ident *id = list_entry(e, struct cm_ident, of_users);
		if (id->uid == uid && (!cell || strcasecmp(id->cell->name, cell) == 0)) {
			list_remove(e);
			list_push_back(&gone, e);
		}
	}
	mtx_unlock(&cm->users_lock);
	if (list_empty(&gone))
		return AFS_ENOENT;
	for (struct list *e; (e = list_pop_front(&gone));) {
		struct cm_ident *id = list_entry(e, struct cm_ident, of_users);
		log_info("cm.token.dropped user=%u cell=%s", uid, id->cell->name);
		cm_ident_unref(cm, id);
	}
	return AFS_OK;
}

afs_err client_token_get(struct client *client, uid_t uid, const char *cell, struct arena *arena,
	struct client_token *out)
{
	struct cm *cm = of(client);
	afs_err err = AFS_ENOENT;
	mtx_lock(&cm->users_lock);
	list_each(e, &cm->users)
	{
		const struct cm_ident *id = list_entry(e, struct cm_ident, of_users);
		if (id->uid != uid || strcasecmp(id->cell->name, cell) != 0)
			continue;
		err = cm_ident_usable(cm, id) ? AFS_OK : AFS_EEXPIRED;
		if (err)
			break;
		uint8_t *ticket = arena_alloc(arena, id->token.kad.ticket_len + 1, 1);
		uint8_t *gk_token = arena_alloc(arena, id->token.gk.len + 1, 1);
		*out = (struct client_token){
			.cell = arena_strndup(arena, id->cell->name, strlen(id->cell->name)),
			.name = arena_strndup(arena, id->name, strlen(id->name)),
			.both = id->token,
		};
		if (!ticket || !gk_token || !out->cell || !out->name) {
			err = AFS_ENOMEM;
			break;
		}
		memcpy(ticket, id->ticket, id->token.kad.ticket_len);
		memcpy(gk_token, id->gk_token, id->token.gk.len);
		out->kad.ticket = ticket;
		out->gk.token = gk_token;
		break;
	}
	mtx_unlock(&cm->users_lock);
	return err;
}

afs_err client_cell_at(struct client *client, size_t index, char name[RX_NAME_MAX], uint32_t *ips,
	size_t cap, size_t *n)
{
	const struct cm *cm = of(client);
	if (index >= cm->cell_n)
		return AFS_ENOENT;
	const struct cm_cell *cell = &cm->cells[index];
	memcpy(name, cell->name, RX_NAME_MAX);
	for (size_t i = 0; i < MIN(cap, cell->vl_n); i++)
		ips[i] = cell->vl[i].ip;
	if (n)
		*n = cell->vl_n;
	return AFS_OK;
}
