/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who calls: the cell's key on this machine, a token that a cache manager holds, or Kerberos tickets. */
#include "cell/admin/inside.h"

#include "cell/base/text.h"
#include "cell/admin/negotiate.h"
#include "cell/proto/rmt.h"
#include "cell/proto/token.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX rmt
#define RPC_ROWS "cell/proto/rmt.rpc"
#include "rx/xdr/iface_pass.h"

enum { TOKEN_RXKAD = 2, ANSWER_MAX = 1 << 20 };

/* --- the cell's key ------------------------------------------------------------------------ */

/* KeyFileExt in `dir`/server, or in `dir` itself; keys are added to *out. */
static afs_err openafs_keys(const char *dir, const char *cell, struct keys **out, struct buf *why)
{
	CLEANUP(str) char *path = mem_printf("%s/server/KeyFileExt", dir);
	CLEANUP(str) char *other = mem_printf("%s/KeyFileExt", dir);
	if (!path || !other)
		return AFS_ENOMEM;
	CLEANUP(buf) struct buf b = {};
	const char *used = path;
	afs_err err = where_read(path, &b, why);
	if (err == AFS_ENOENT) {
		used = other;
		err = where_read(other, &b, why);
	}
	if (err == AFS_ENOENT)
		buf_printf(why, "-localauth needs the cell's key, and there is no %s", path);
	TRY(err);
	struct keys_config kc = {.cell = cell};
	TRY(keys_open(&kc, out, why));
	err = keyfile_parse((const uint8_t *)b.data, b.len, *out);
	explicit_bzero(b.data, b.len);
	if (err != AFS_OK)
		buf_printf(why, "%s: %s", used,
			err == AFS_ECORRUPT ? "not a KeyFileExt, or a damaged one" : afs_err_text(err));
	return err;
}

static afs_err localauth(const struct token_want *want, struct keys_token *out, struct buf *who, struct buf *why)
{
	const struct admin_own *own = want->config->own;
	CLEANUP(keys) struct keys *keys = NULL;
	if (own && strcmp(own->cell, want->cell) == 0) {
		struct keys_config kc = {.cell = own->cell, .keytab = own->keytab};
		TRY(keys_open(&kc, &keys, why));
	} else {
		TRY(openafs_keys(want->config->openafs, want->cell, &keys, why));
	}
	afs_err err = keys_localauth(keys, out);
	if (err == AFS_ENOENT)
		buf_printf(why, "-localauth needs a key of an enctype that is still accepted (AES), and there is none");
	buf_puts(who, "the cell itself");
	return err;
}

/* --- a cache manager ------------------------------------------------------------------------ */

/* Where one serves tools: what AFSSERVER says, as for stock tools, or this machine's own. */
static bool manager(const struct token_want *want, struct rx_addr *out)
{
	const struct admin_own *own = want->config->own;
	const char *env = getenv("AFSSERVER");
	if (env && *env) {
		struct addrinfo hint = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *list = NULL;
		if (getaddrinfo(env, NULL, &hint, &list) != 0)
			return false;
		struct sockaddr_in sin;
		memcpy(&sin, list->ai_addr, sizeof(sin));
		freeaddrinfo(list);
		*out = (struct rx_addr){.ip = ntohl(sin.sin_addr.s_addr), .port = RMT_PORT};
		return true;
	}
	if (!own || !own->tools_port)
		return false;
	*out = (struct rx_addr){.ip = INADDR_LOOPBACK, .port = own->tools_port};
	return true;
}

/* The token set of GETTOK2, kept with bytes of its own; what is of another class than is wanted is not used. */
static afs_err read_tokens(const struct rmt_pioctl_out *out, struct arena *arena, enum admin_class class, struct keys_token *token)
{
	struct token_blob blob;
	TRY(token_blob_get(out->OutData.p, out->OutData.len, arena, &blob));
	struct keys_token borrowed = {.both = blob.token};
	if (class == ADMIN_RXGK)
		borrowed.kad = (struct rxkad_token){};
	if (class == ADMIN_RXKAD)
		borrowed.gk = (struct rxgk_token){};
	afs_err err = rx_token_any(&borrowed.both) ? keys_token_copy(&borrowed, token) : AFS_ENOENT;
	explicit_bzero(&blob, sizeof(blob));
	explicit_bzero(&borrowed, sizeof(borrowed));
	return err;
}

static afs_err from_manager(const struct token_want *want, struct keys_token *out)
{
	struct rpc_conn_config cc = {.iface = &rmt_iface, .dead_ns = SEC(2)};
	if (!manager(want, &cc.peer))
		return AFS_ENOENT;
	struct rpc_conn *conn;
	TRY(rpc_conn_new(want->port, &cc, &conn));
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ANSWER_MAX);
	struct rpc_result res = {.arena = &arena};
	struct rmt_pioctl_in in = {.cred = {.uid = (int32_t)getuid()}, .path = XDR_STR_OF("__FOO__"),
		.cmd = PIOCTL_GETTOK2,
		.InData = {(const uint8_t *)want->cell, (uint32_t)strlen(want->cell) + 1}};
	struct rmt_pioctl_out answer = {};
	afs_err err = rmt_call_pioctl(conn, &in, &answer, &res);
	rpc_conn_unref(conn);
	TRY(err);
	return answer.errornumber ? AFS_ENOENT : read_tokens(&answer, &arena, want->config->class, out);
}

/* A copy of the token that whoever opens the cell gave.  One for another cell proves nothing here. */
static afs_err given(const struct token_want *want, struct keys_token *out, struct buf *who)
{
	const struct keys_token *t = want->config->token;
	if (strcasecmp(t->cell, want->cell) != 0) {
		buf_printf(who, "the token is for %s", t->cell);
		return AFS_OK;
	}
	TRY(keys_token_copy(t, out));
	buf_printf(who, "%s%s%s@%s", t->name, t->instance[0] ? "/" : "", t->instance, t->realm);
	return AFS_OK;
}

/* --- in turn --------------------------------------------------------------------------------- */

afs_err token_find(const struct token_want *want, struct keys_token *out, struct buf *who, struct buf *why)
{
	if (want->config->auth == ADMIN_NOAUTH) {
		buf_puts(who, "asked for with -noauth");
		return AFS_OK;
	}
	if (want->config->auth == ADMIN_GIVEN)
		return given(want, out, who);
	if (want->config->auth == ADMIN_LOCALAUTH)
		return localauth(want, out, who, why);
	if (from_manager(want, out) == AFS_OK) {
		buf_puts(who, "the token of the cache manager");
		return AFS_OK;
	}
	const struct admin_own *own = want->config->own;
	bool ours = own && strcmp(own->cell, want->cell) == 0;
	const char *env = getenv("KRB5_CONFIG");
	struct keys_aklog aklog = {.cell = want->cell, .realm = ours ? own->realm : NULL,
		.krb5_conf = ours && !(env && *env) ? own->krb5_conf : NULL};
	CLEANUP(buf) struct buf reason = {}, note = {};
	const struct negotiate_want negotiation = {.ticket = aklog, .level = RX_LEVEL_CRYPT, .port = want->port, .ips = want->ips,
		.ip_count = want->ip_count, .server_port = want->server_port};
	afs_err err = negotiate_class(&negotiation, want->config->class, out, &note, &reason);
	if (err == AFS_OK)
		buf_printf(who, "%s%s%s@%s%s%s%s", out->name, out->instance[0] ? "/" : "", out->instance, out->realm, note.len ? " (" : "",
			note.len ? note.data : "", note.len ? ")" : "");
	else
		buf_printf(who, "no token, and no ticket to make one: %s", reason.data ? reason.data : afs_err_text(err));
	return AFS_OK;
}
