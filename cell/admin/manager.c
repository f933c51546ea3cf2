/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/admin/manager.h"

#include "cell/proto/rmt.h"
#include "cell/proto/token.h"
#include "rx/io/port.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX rmt
#define RPC_ROWS "cell/proto/rmt.rpc"
#include "rx/xdr/iface_pass.h"

enum { POOL_MAX = 1 << 20, ANSWER_MAX = 1 << 20 };

struct manager {
	struct rx_buf_pool *pool;
	struct rpc_port *port;
	struct rpc_conn *conn;
	char name[256];
};

bool manager_named(void)
{
	const char *env = getenv("AFSSERVER");
	return env && *env;
}

afs_err manager_open(struct manager **out, struct buf *why)
{
	CLEANUP(manager) struct manager *m = mem_new(struct manager);
	struct addrinfo hint = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *list = NULL;
	const char *env = getenv("AFSSERVER");
	struct sockaddr_in sin;
	if (!m)
		return AFS_ENOMEM;
	if (!env || !*env || getaddrinfo(env, NULL, &hint, &list) != 0) {
		buf_printf(why, "AFSSERVER names no host: \"%s\"", env ? env : "");
		return AFS_ENOENT;
	}
	memcpy(&sin, list->ai_addr, sizeof(sin));
	freeaddrinfo(list);
	snprintf(m->name, sizeof(m->name), "%s", env);
	m->pool = rx_buf_pool_new(POOL_MAX);
	if (!m->pool)
		return AFS_ENOMEM;
	struct rpc_port_config pc = {.name = "tool", .pool = m->pool};
	TRY(rpc_port_open(&pc, &m->port));
	struct rpc_conn_config cc = {.iface = &rmt_iface, .peer = {ntohl(sin.sin_addr.s_addr), RMT_PORT}, .dead_ns = SEC(5)};
	TRY(rpc_conn_new(m->port, &cc, &m->conn));
	*out = TAKE(m);
	return AFS_OK;
}

void manager_close(struct manager *m)
{
	if (m->conn)
		rpc_conn_unref(m->conn);
	if (m->port)
		rpc_port_close(m->port);
	if (m->pool)
		rx_buf_pool_free(m->pool);
	mem_free(m);
}

static afs_err ask(struct manager *m, uint32_t cmd, const void *p, size_t n, struct rmt_pioctl_out *out, struct arena *arena, struct buf *why)
{
	struct rpc_result res = {.arena = arena};
	struct rmt_pioctl_in in = {.cred = {.uid = (int32_t)getuid()}, .path = XDR_STR_OF("__FOO__"), .cmd = cmd, .InData = {p, (uint32_t)n}};
	afs_err err = rmt_call_pioctl(m->conn, &in, out, &res);
	if (err != AFS_OK) {
		buf_printf(why, "the cache manager at %s (AFSSERVER) does not answer: %s", m->name, afs_err_text(err));
		return err;
	}
	if (out->errornumber == 0)
		return AFS_OK;
	/* these are what cache managers say of a token that is not there, and of a cell they do not know */
	bool none = out->errornumber == EDOM || out->errornumber == ENOENT || out->errornumber == ESRCH || out->errornumber == ENOTCONN;
	if (!none)
		buf_printf(why, "the cache manager at %s (AFSSERVER) refuses: %s", m->name, strerror(out->errornumber));
	return none ? AFS_ENOENT : afs_err_from_errno(out->errornumber);
}

afs_err manager_put(struct manager *m, const struct keys_token *t, int32_t afs_id, struct buf *why)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ANSWER_MAX);
	uint8_t blob[TOKEN_BLOB_MAX];
	size_t n;
	struct rx_token token = t->both;
	/* a lifetime of odd seconds says that the id is one of AFS, not of this machine */
	uint32_t begins = clk_wire_sec(token.kad.begins);
	if (begins && ((clk_wire_sec(token.kad.expires) - begins) & 1) != (afs_id != 0))
		token.kad.begins = SEC((int64_t)begins - 1);
	struct rmt_pioctl_out out = {};
	afs_err err = token_blob_put(&token, t->cell, afs_id, blob, sizeof(blob), &n);
	if (err == AFS_OK)
		err = ask(m, PIOCTL_SETTOK2, blob, n, &out, &arena, why);
	explicit_bzero(blob, sizeof(blob));
	explicit_bzero(&token, sizeof(token));
	if (err == AFS_ENOENT)
		buf_printf(why, "%s: the cache manager does not know this cell", t->cell);
	return err;
}

static afs_err read_token(const struct rmt_pioctl_out *in, struct arena *arena, struct manager_token *out)
{
	struct token_blob blob = {};
	afs_err err = token_blob_get(in->OutData.p, in->OutData.len, arena, &blob);
	if (err == AFS_ENOENT) /* of a class that nobody here knows: there is one, and nothing to tell of it */
		err = AFS_EDECODE;
	TRY(err);
	const struct rxkad_token *kad = &blob.token.kad;
	*out = (struct manager_token){.rxkad = rx_token_has_kad(&blob.token), .rxgk = rx_token_has_gk(&blob.token), .level = blob.token.gk.terms.level,
		.begins = kad->begins, .expires = rx_token_expires(&blob.token)};
	memcpy(out->cell, blob.cell, sizeof(out->cell));
	out->id_told = (clk_wire_sec(kad->expires) - clk_wire_sec(kad->begins)) & 1;
	out->afs_id = out->id_told ? blob.viceid : 0;
	explicit_bzero(&blob, sizeof(blob));
	return AFS_OK;
}

afs_err manager_get(struct manager *m, uint32_t i, struct manager_token *out, struct buf *why)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ANSWER_MAX);
	struct rmt_pioctl_out answer = {};
	TRY(ask(m, PIOCTL_GETTOK2, &i, sizeof(i), &answer, &arena, why)); /* the index is in this machine's order */
	afs_err err = read_token(&answer, &arena, out);
	if (err != AFS_OK)
		buf_printf(why, "the cache manager at %s (AFSSERVER) tells of a token in a way that makes no sense", m->name);
	return err;
}

/* Stock cache managers up to 1.8.9 cannot drop one cell alone, and refuse. */
afs_err manager_drop(struct manager *m, const char *cell, struct buf *why)
{
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ANSWER_MAX);
	struct rmt_pioctl_out out = {};
	return cell ? ask(m, PIOCTL_UNLOG_CELL, cell, strlen(cell) + 1, &out, &arena, why) : ask(m, PIOCTL_UNPAG, NULL, 0, &out, &arena, why);
}
