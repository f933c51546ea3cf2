/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/admin/manager.h"

#include "cell/proto/rmt.h"
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

enum { RXKAD = 2, POOL_MAX = 1 << 20, ANSWER_MAX = 1 << 20, BLOB_MAX = 16384 };

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
	uint8_t one[BLOB_MAX], all[BLOB_MAX];
	struct tokenRxkad kad = {.type = RXKAD, .viceid = afs_id, .kvno = t->kad.kvno, .begintime = clk_wire_sec(t->kad.begins),
		.endtime = clk_wire_sec(t->kad.expires), .ticket = {t->kad.ticket, (uint32_t)t->kad.ticket_len}};
	/* a lifetime of odd seconds says that the id is one of AFS, not of this machine */
	if (kad.begintime && ((kad.endtime - kad.begintime) & 1) != (afs_id != 0))
		kad.begintime--;
	memcpy(kad.key, t->kad.session_key, sizeof(kad.key));
	struct xdr_out x = {.p = one, .end = one + sizeof(one)};
	xdr_put_tokenRxkad(&x, &kad);
	struct tokenOpaque token = {{one, (uint32_t)(x.p - one)}};
	struct setTokenData set = {.cell = XDR_STR_OF(t->cell), .tokens = {&token, 1}};
	struct xdr_out y = {.p = all, .end = all + sizeof(all)};
	xdr_put_setTokenData(&y, &set);
	struct rmt_pioctl_out out = {};
	afs_err err = x.err || y.err ? AFS_ETICKETLEN : ask(m, PIOCTL_SETTOK2, all, (size_t)(y.p - all), &out, &arena, why);
	explicit_bzero(one, sizeof(one));
	explicit_bzero(all, sizeof(all));
	explicit_bzero(&kad, sizeof(kad));
	if (err == AFS_ENOENT)
		buf_printf(why, "%s: the cache manager does not know this cell", t->cell);
	return err;
}

static afs_err read_token(const struct rmt_pioctl_out *in, struct arena *arena, struct manager_token *out)
{
	struct xdr_in x = {in->OutData.p, in->OutData.p + in->OutData.len, arena, AFS_OK};
	struct setTokenData set = {};
	xdr_get_setTokenData(&x, &set);
	if (x.err || set.cell.len >= sizeof(out->cell))
		return AFS_EDECODE;
	*out = (struct manager_token){};
	memcpy(out->cell, set.cell.p, set.cell.len);
	for (uint32_t i = 0; i < set.tokens.n; i++) {
		struct xdr_bytes b = set.tokens.v[i].token;
		struct xdr_in y = {b.p, b.p + b.len, arena, AFS_OK};
		struct tokenRxkad t = {};
		if (b.len < 4 || be32_get(b.p) != RXKAD)
			continue;
		xdr_get_tokenRxkad(&y, &t);
		if (y.err)
			return AFS_EDECODE;
		out->id_told = (t.endtime - t.begintime) & 1;
		out->afs_id = out->id_told ? t.viceid : 0;
		out->begins = SEC((int64_t)t.begintime);
		out->expires = SEC((int64_t)t.endtime);
		explicit_bzero(&t, sizeof(t));
	}
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
