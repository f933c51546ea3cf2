/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One run of a tool: its port, its token, its connections, and what the last failure was.
 * Connections are made when first needed and kept; every one proves the same caller, encrypted. */
#include "cell/admin/session.h"

#include "cell/admin/negotiate.h"
#include "cell/base/text.h"
#include "cell/proto/abort.h"
#include "cell/proto/bos.h"
#include "cell/proto/pt.h"
#include "cell/proto/vl.h"
#include "cell/proto/vol.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	POOL_MAX = 64 << 20,
	QUORUM_TRIES = 8,      /* a server that was just started elects itself for some seconds */
	UBIK_NO_QUORUM = 5376, /* ubik.md: another server, or the same one later */
	UBIK_NOT_SYNC = 5377,
};

static const struct {
	const struct rpc_iface *iface;
	uint16_t port;
	const char *name;
} services[ADMIN_SERVICES] = {
	[ADMIN_VL] = {&vl_iface, VL_PORT, "VL"},
	[ADMIN_PT] = {&pt_iface, PT_PORT, "PR"},
	[ADMIN_VOL] = {&vol_iface, VOL_PORT, "volume server"},
	[ADMIN_BOS] = {&bos_iface, BOS_PORT, "BOZO"},
};

/* --- opening ------------------------------------------------------------------------------- */

static afs_err find_cell(struct admin *a, const struct admin_config *config, struct buf *why)
{
	const struct admin_own *own = config->own;
	for (int i = 0; i < ADMIN_SERVICES; i++)
		a->port[i] = services[i].port;
	size_t n = config->cell ? strlen(config->cell) : 0;
	if (own && strncasecmp(own->cell, config->cell ? config->cell : "", n) == 0) {
		snprintf(a->cell, sizeof(a->cell), "%s", own->cell);
		a->db_count = MIN(own->ip_count, (size_t)ADMIN_DB_MAX);
		memcpy(a->db_ips, own->ips, a->db_count * sizeof(own->ips[0]));
		for (int i = 0; i < ADMIN_SERVICES; i++)
			if (own->port[i])
				a->port[i] = own->port[i];
		return AFS_OK;
	}
	struct where_cell found;
	TRY(where_find(config->openafs, config->cell, &found, why));
	memcpy(a->cell, found.name, sizeof(a->cell));
	memcpy(a->db_ips, found.ips, sizeof(found.ips));
	a->db_count = found.n;
	return AFS_OK;
}

static afs_err open_rx(struct admin *a, struct buf *why)
{
	a->pool = rx_buf_pool_new(POOL_MAX);
	if (!a->pool)
		return AFS_ENOMEM;
	struct rpc_port_config pc = {.name = "tool", .pool = a->pool};
	afs_err err = rpc_port_open(&pc, &a->rx);
	if (err != AFS_OK)
		buf_printf(why, "no UDP port can be opened: %s", afs_err_text(err));
	return err;
}

afs_err admin_open(const struct admin_config *config, struct admin **out, struct buf *why)
{
	CLEANUP(admin) struct admin *a = mem_new(struct admin);
	if (!a)
		return AFS_ENOMEM;
	a->names = config->names;
	TRY(find_cell(a, config, why));
	TRY(open_rx(a, why));
	struct token_want want = {config, a->cell, a->rx, a->db_ips, a->db_count, a->port[ADMIN_PT]};
	TRY(token_find(&want, &a->token, &a->who, why));
	*out = TAKE(a);
	return AFS_OK;
}

void admin_close(struct admin *a)
{
	for (struct session_conn *c = a->conns, *next; c; c = next) {
		next = c->next;
		rpc_conn_unref(c->conn);
		mem_free(c);
	}
	for (struct session_host *h = a->hosts, *next; h; h = next) {
		next = h->next;
		mem_free(h->name);
		mem_free(h);
	}
	for (struct session_server *s = a->servers, *next; s; s = next) {
		next = s->next;
		mem_free(s);
	}
	if (a->rx)
		rpc_port_close(a->rx);
	if (a->pool)
		rx_buf_pool_free(a->pool);
	keys_token_fini(&a->token);
	buf_fini(&a->who);
	buf_fini(&a->why);
	mem_free(a);
}

const char *admin_cell(const struct admin *a) { return a->cell; }

bool admin_authenticated(const struct admin *a, const char **who)
{
	*who = a->who.data ? a->who.data : "";
	return rx_token_any(&a->token.both);
}

const struct rx_token *admin_token(const struct admin *a) { return rx_token_any(&a->token.both) ? &a->token.both : NULL; }

afs_err admin_get_token(struct admin *a, const struct keys_aklog *ticket, enum admin_class class, struct keys_token *out, struct buf *note, struct buf *why)
{
	struct negotiate_want want = {.ticket = *ticket, .level = RX_LEVEL_CRYPT, .port = a->rx, .ips = a->db_ips, .ip_count = a->db_count,
		.server_port = a->port[ADMIN_PT]};
	want.ticket.cell = a->cell;
	return negotiate_class(&want, class, out, note, why);
}

uint16_t admin_port(const struct admin *a, enum admin_service service) { return a->port[service]; }

size_t admin_db_servers(const struct admin *a, const uint32_t **ips)
{
	*ips = a->db_ips;
	return a->db_count;
}

/* --- calls --------------------------------------------------------------------------------- */

afs_err admin_conn(struct admin *a, uint32_t ip, enum admin_service service, struct rpc_conn **out)
{
	for (struct session_conn *c = a->conns; c; c = c->next)
		if (c->ip == ip && c->service == service) {
			*out = c->conn;
			return AFS_OK;
		}
	struct rpc_conn_config cc = {.peer = {.ip = ip, .port = a->port[service]}, .iface = services[service].iface};
	if (rx_token_any(&a->token.both) && !(cc.sec = keys_token_client(&a->token.both, RX_LEVEL_CRYPT)))
		return AFS_ENOMEM;
	struct session_conn *c = mem_new(struct session_conn);
	if (!c) {
		rx_sec_free(cc.sec);
		return AFS_ENOMEM;
	}
	afs_err err = rpc_conn_new(a->rx, &cc, &c->conn);
	if (err != AFS_OK) {
		mem_free(c);
		return err;
	}
	c->ip = ip;
	c->service = service;
	c->next = a->conns;
	a->conns = c;
	*out = c->conn;
	return AFS_OK;
}

afs_err admin_note(struct admin *a, struct rpc_conn *conn, const struct rpc_proc *proc, afs_err err, int32_t code)
{
	if (err == AFS_OK)
		return err;
	a->code = code;
	a->proc = proc;
	a->peer = rpc_conn_peer(conn);
	a->iface = "";
	for (struct session_conn *c = a->conns; c; c = c->next)
		if (c->conn == conn)
			a->iface = services[c->service].name;
	return err;
}

afs_err admin_call(struct admin *a, struct rpc_conn *conn, const struct rpc_proc *proc, const void *in, void *out, struct arena *arena)
{
	struct rpc_result res = {.arena = arena};
	afs_err err = rpc_invoke(conn, proc, in, out, &res);
	return admin_note(a, conn, proc, err, res.code);
}

/* Another server may do it: this one cannot be had, or is not the one that takes changes now. */
static bool try_next(afs_err err, int32_t code)
{
	return err == AFS_EDEAD || err == AFS_ETIMEDOUT || err == AFS_ERESTARTING || code == UBIK_NO_QUORUM
	       || code == UBIK_NOT_SYNC;
}

afs_err admin_db(struct admin *a, enum admin_service db, unsigned op, const void *in, void *out, struct arena *arena)
{
	const struct rpc_proc *proc = &services[db].iface->procs[op];
	size_t *first = &a->db_first[db == ADMIN_PT];
	afs_err err = AFS_EDEAD;
	for (unsigned tries = 0; tries < QUORUM_TRIES; tries++) {
		bool electing = false;
		for (size_t i = 0; i < a->db_count; i++) {
			size_t at = (*first + i) % a->db_count;
			struct rpc_conn *conn;
			TRY(admin_conn(a, a->db_ips[at], db, &conn));
			err = admin_call(a, conn, proc, in, out, arena);
			int32_t code = err == AFS_OK ? 0 : a->code;
			if (!try_next(err, code)) {
				*first = at;
				return err;
			}
			electing = electing || code == UBIK_NO_QUORUM || code == UBIK_NOT_SYNC;
		}
		if (!electing)
			return err;
		sleep(1);
	}
	return err;
}

/* --- reasons --------------------------------------------------------------------------------- */

int32_t admin_code(const struct admin *a) { return a->proc ? a->code : 0; }

afs_err admin_refuse(struct admin *a, afs_err err, const char *fmt, ...)
{
	va_list ap;
	char text[512];
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	a->proc = NULL;
	buf_fini(&a->why);
	buf_puts(&a->why, text);
	return err;
}

/* What would help, for failures that people meet first. */
static void advise(struct admin *a, afs_err err)
{
	if (err == AFS_EACCESS || err == AFS_EPERM) {
		if (rx_token_any(&a->token.both))
			buf_printf(&a->why, "; the caller is %s", a->who.data);
		else
			buf_puts(&a->why, "; the call was anonymous: get tickets of an administrator (kinit), or use "
					  "-localauth as root on a server");
	}
}

const char *admin_why(struct admin *a, afs_err err)
{
	if (!a->proc)
		return a->why.data ? a->why.data : afs_err_text(err);
	buf_fini(&a->why);
	const char *text = a->code ? admin_code_text(a->code) : NULL;
	buf_printf(&a->why, "%s (%s %s at %s", text ? text : afs_err_text(err), a->iface, a->proc->name, IPV4(a->peer.ip));
	if (a->code)
		buf_printf(&a->why, ", code %d", a->code);
	else
		buf_printf(&a->why, " port %u", a->peer.port);
	buf_putc(&a->why, ')');
	advise(a, err);
	return a->why.data ? a->why.data : "out of memory";
}

/* --- steps ------------------------------------------------------------------------------------ */

void admin_watch(struct admin *a, void (*say)(void *ctx, const char *step), void *ctx, const volatile sig_atomic_t *stop)
{
	a->say = say;
	a->say_ctx = ctx;
	a->stop = stop;
}

bool admin_stopping(const struct admin *a) { return a->stop && *a->stop; }

afs_err admin_step(struct admin *a, const char *fmt, ...)
{
	if (admin_stopping(a))
		return admin_refuse(a, AFS_EINTR, "interrupted; what was begun was put right as far as it goes");
	if (a->say) {
		va_list ap;
		char text[512];
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		a->say(a->say_ctx, text);
	}
	return AFS_OK;
}
