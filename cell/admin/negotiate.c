/* SPDX-License-Identifier: BSD-2-Clause
 * Source: protocol rx-security.md §11.7; RFC 2743; RFC 4402 (gss_pseudo_random of Kerberos). */
#include "cell/admin/negotiate.h"

#include "cell/base/rand.h"
#include "cell/base/text.h"
#include "cell/proto/gk.h"

#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <string.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX gk
#define RPC_ROWS "cell/proto/gk.rpc"
#include "rx/xdr/iface_pass.h"

enum { NONCE = 20, NONCE_LEAST = 16, NONCE_MOST = 1024, ANSWER_MAX = 64 << 10, WIRE_UNIT = 100 };

/* AES with SHA-1 first: what every peer has. */
static const int32_t enctypes[] = {18, 17, 20, 19, 26, 25};

struct talk {
	struct keys_gss ticket;
	gss_cred_id_t cred;
	gss_name_t server;
	gss_ctx_id_t ctx;
	gss_buffer_desc out; /* to be sent */
	OM_uint32 major, minor, flags;
};

static void talk_cleanup(struct talk *t)
{
	OM_uint32 minor;
	gss_release_buffer(&minor, &t->out);
	gss_release_name(&minor, &t->server);
	gss_release_cred(&minor, &t->cred);
	gss_delete_sec_context(&minor, &t->ctx, GSS_C_NO_BUFFER);
	keys_gss_fini(&t->ticket);
}

/* What GSS and its mechanism say of a failure. */
static void explain(struct buf *why, OM_uint32 major, OM_uint32 minor)
{
	const struct { OM_uint32 code; int type; } of[] = {{major, GSS_C_GSS_CODE}, {minor, GSS_C_MECH_CODE}};
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		OM_uint32 ignored, more = 0;
		gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
		if (of[i].code && gss_display_status(&ignored, of[i].code, of[i].type, (gss_OID)(uintptr_t)gss_mech_krb5, &more, &text) == GSS_S_COMPLETE)
			buf_printf(why, "%s%.*s", i ? ": " : "", (int)text.length, (const char *)text.value);
		gss_release_buffer(&ignored, &text);
	}
}

/* --- the context ---------------------------------------------------------------------------------- */

/* The service is named as a principal, with its realm: the profile that found its ticket is not GSS's. */
static afs_err begin(struct talk *t, struct buf *why)
{
	gss_buffer_desc name = {strlen(t->ticket.service), t->ticket.service};
	gss_key_value_element_desc e = {"ccache", t->ticket.ccache};
	const gss_key_value_set_desc store = {1, &e};
	gss_OID_set_desc mechs = {1, (gss_OID)(uintptr_t)gss_mech_krb5};
	t->major = gss_import_name(&t->minor, &name, (gss_OID)(uintptr_t)GSS_KRB5_NT_PRINCIPAL_NAME, &t->server);
	if (!GSS_ERROR(t->major))
		t->major = gss_acquire_cred_from(&t->minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, &mechs, GSS_C_INITIATE, &store, &t->cred, NULL, NULL);
	if (!GSS_ERROR(t->major))
		return AFS_OK;
	explain(why, t->major, t->minor);
	return AFS_EBADTICKET;
}

static afs_err step(struct talk *t, struct xdr_bytes in, struct buf *why)
{
	OM_uint32 minor;
	gss_buffer_desc token = {in.len, (void *)(uintptr_t)in.p};
	gss_release_buffer(&minor, &t->out);
	t->major = gss_init_sec_context(&t->minor, t->cred, &t->ctx, t->server, (gss_OID)(uintptr_t)gss_mech_krb5,
		GSS_C_MUTUAL_FLAG | GSS_C_CONF_FLAG | GSS_C_INTEG_FLAG | GSS_C_REPLAY_FLAG, 0, GSS_C_NO_CHANNEL_BINDINGS,
		in.len ? &token : GSS_C_NO_BUFFER, NULL, &t->out, &t->flags, NULL);
	if (!GSS_ERROR(t->major))
		return AFS_OK;
	explain(why, t->major, t->minor);
	return AFS_EBADTICKET;
}

/* --- the call -------------------------------------------------------------------------------------- */

static bool another_may(afs_err err) { return err == AFS_EDEAD || err == AFS_ETIMEDOUT || err == AFS_ERESTARTING; }

/* Of each server in turn until one answers; one context for all, since only an answer moves it. */
static afs_err ask(const struct negotiate_want *want, const struct gk_start *start, const struct talk *t,
	struct arena *arena, struct gk_gss_negotiate_out *out, struct buf *why)
{
	const struct gk_gss_negotiate_in in = {.params = *start, .input_token = {t->out.value, (uint32_t)t->out.length}};
	afs_err err = AFS_EDEAD;
	if (t->out.length > GK_TOKEN_MAX) {
		buf_printf(why, "the ticket makes a GSS token of %zu bytes; rxgk takes at most %d", t->out.length, GK_TOKEN_MAX);
		return AFS_ETICKETLEN;
	}
	for (size_t i = 0; i < want->ip_count; i++) {
		struct rpc_conn_config cc = {.peer = {want->ips[i], want->server_port}, .iface = &gk_iface, .dead_ns = SEC(5)};
		struct rpc_result res = {.arena = arena};
		struct rpc_conn *conn;
		TRY(rpc_conn_new(want->port, &cc, &conn));
		err = gk_call_gss_negotiate(conn, &in, out, &res);
		rpc_conn_unref(conn);
		if (err == AFS_OK || !another_may(err)) {
			if (err != AFS_OK)
				buf_printf(why, "%s (GSSNegotiate at %s port %u, code %d)", afs_err_text(err), IPV4(want->ips[i]), want->server_port, res.code);
			return err;
		}
	}
	buf_printf(why, "no database server of %s answers GSSNegotiate", want->ticket.cell);
	return err;
}

/* --- the answer -------------------------------------------------------------------------------------- */

static bool among(int32_t v, const int32_t *set, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (set[i] == v)
			return true;
	return false;
}

afs_err negotiate_judge(const struct gk_start *asked, const struct gk_client_info *info, wall_ns now, struct rxgk_terms *terms)
{
	if (info->errorcode)
		return AFS_ENOAUTH;
	if (!among(info->level, asked->levels.v, asked->levels.n))
		return AFS_ELEVEL;
	if (!among(info->enctype, asked->enctypes.v, asked->enctypes.n) || !etype_of(info->enctype))
		return AFS_EWEAKKEY;
	if (!info->token.len || info->token.len > RXGK_TOKEN_MAX)
		return AFS_ETICKETLEN;
	if (info->server_nonce.len < NONCE_LEAST || info->server_nonce.len > NONCE_MOST || info->bytelife > 63 ||
		info->expiration < 0 || info->expiration > INT64_MAX / WIRE_UNIT)
		return AFS_EDECODE;
	if (info->expiration && info->expiration * WIRE_UNIT <= now)
		return AFS_EEXPIRED;
	*terms = (struct rxgk_terms){.etype = info->enctype, .level = (enum rx_sec_level)info->level, .lifetime = info->lifetime,
		.bytelife = info->bytelife, .expires = info->expiration * WIRE_UNIT};
	return AFS_OK;
}

/* The checksum says that the server read what was written. */
static afs_err check_mic(struct talk *t, const struct gk_start *start, struct xdr_bytes mic, struct buf *why)
{
	uint8_t asked[512];
	struct xdr_out x = {.p = asked, .end = asked + sizeof(asked)};
	xdr_put_gk_start(&x, start);
	gss_buffer_desc text = {(size_t)(x.p - asked), asked}, sum = {mic.len, (void *)(uintptr_t)mic.p};
	if (!x.err && (t->major = gss_verify_mic(&t->minor, t->ctx, &text, &sum, NULL)) == GSS_S_COMPLETE)
		return AFS_OK;
	buf_puts(why, "somebody changed what was asked of the server on its way: ");
	explain(why, t->major, t->minor);
	return AFS_ESEALED;
}

static afs_err master_key(struct talk *t, struct xdr_bytes mine, struct xdr_bytes theirs, struct rxgk_terms *terms)
{
	uint8_t both[NONCE + NONCE_MOST];
	const size_t len = etype_of(terms->etype)->key_len;
	gss_buffer_desc in = {mine.len + theirs.len, both}, out = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	memcpy(both, mine.p, mine.len);
	memcpy(both + mine.len, theirs.p, theirs.len);
	bool ok = gss_pseudo_random(&minor, t->ctx, GSS_C_PRF_KEY_FULL, &in, (ssize_t)len, &out) == GSS_S_COMPLETE && out.length == len;
	if (ok)
		memcpy(terms->k0, out.value, len);
	if (out.value)
		explicit_bzero(out.value, out.length);
	gss_release_buffer(&minor, &out);
	return ok ? AFS_OK : AFS_EBADTICKET;
}

/* Unseals, judges, derives the key: all or nothing. */
static afs_err take(struct talk *t, const struct gk_start *start, struct xdr_bytes sealed, struct arena *arena, struct keys_token *out, struct buf *why)
{
	gss_buffer_desc in = {sealed.len, (void *)(uintptr_t)sealed.p}, plain = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	int secret = 0;
	t->major = gss_unwrap(&t->minor, t->ctx, &in, &plain, &secret, NULL);
	if (t->major != GSS_S_COMPLETE || !secret) {
		gss_release_buffer(&minor, &plain);
		buf_puts(why, "the server's answer was changed on its way, or is not sealed: ");
		explain(why, t->major, t->minor);
		return AFS_ESEALED;
	}
	struct xdr_in x = {plain.value, (const uint8_t *)plain.value + plain.length, arena, AFS_OK};
	struct gk_client_info info = {};
	struct rxgk_terms terms = {};
	xdr_get_gk_client_info(&x, &info);
	afs_err err = x.err ? x.err : check_mic(t, start, info.mic, why);
	if (err == AFS_OK && (err = negotiate_judge(start, &info, clk_wall(), &terms)) != AFS_OK)
		buf_printf(why, "the server gives no token that can be used: %s (error %d, level %d, encryption type %d)", afs_err_text(err),
			info.errorcode, info.level, info.enctype);
	if (err == AFS_OK)
		err = master_key(t, start->client_nonce, info.server_nonce, &terms);
	if (err == AFS_OK)
		err = keys_token_set_gk(out, &(struct rxgk_token){.terms = terms, .token = info.token.p, .len = info.token.len});
	explicit_bzero(&terms, sizeof(terms));
	gss_release_buffer(&minor, &plain);
	return err;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static afs_err find_ticket(const struct negotiate_want *want, struct talk *t, struct buf *why)
{
	afs_err err = keys_gss_ticket(&want->ticket, &t->ticket, why);
	return err == AFS_ENOENT ? AFS_ENOSERVICE : err; /* the realm is there, and knows no such service */
}

afs_err negotiate(const struct negotiate_want *want, struct keys_token *out, struct buf *why)
{
	CLEANUP(talk) struct talk t = {};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ANSWER_MAX);
	uint8_t nonce[NONCE];
	const int32_t level = want->level;
	struct gk_gss_negotiate_out answer = {};
	rand_bytes(nonce, sizeof(nonce));
	const struct gk_start start = {.enctypes = {(int32_t *)(uintptr_t)enctypes, ARRAY_SIZE(enctypes)}, .levels = {(int32_t *)(uintptr_t)&level, 1}, .client_nonce = {nonce, NONCE}};
	TRY(find_ticket(want, &t, why));
	TRY(begin(&t, why));
	TRY(step(&t, (struct xdr_bytes){}, why));
	TRY(ask(want, &start, &t, &arena, &answer, why));
	if (answer.gss_major != GSS_S_COMPLETE) {
		buf_puts(why, "the server refuses the ticket: ");
		explain(why, answer.gss_major, answer.gss_minor);
		return AFS_EBADTICKET;
	}
	if (t.major != GSS_S_COMPLETE)
		TRY(step(&t, answer.output_token, why));
	if (t.major != GSS_S_COMPLETE || (~t.flags & (GSS_C_MUTUAL_FLAG | GSS_C_CONF_FLAG | GSS_C_INTEG_FLAG))) {
		buf_puts(why, "the server did not prove itself");
		return AFS_EBADTICKET;
	}
	TRY(take(&t, &start, answer.rxgk_info, &arena, out, why));
	const struct keys_token *who = &t.ticket.token;
	memcpy(out->name, who->name, sizeof(out->name));
	memcpy(out->instance, who->instance, sizeof(out->instance));
	memcpy(out->realm, who->realm, sizeof(out->realm));
	memcpy(out->cell, who->cell, sizeof(out->cell));
	return AFS_OK;
}

afs_err negotiate_class(const struct negotiate_want *want, enum admin_class class, struct keys_token *out, struct buf *note, struct buf *why)
{
	CLEANUP(keys_token) struct keys_token t = {};
	CLEANUP(buf) struct buf reason = {};
	if (class != ADMIN_RXGK)
		TRY(keys_aklog(&want->ticket, &t, why));
	afs_err err = class == ADMIN_RXKAD ? AFS_OK : negotiate(want, &t, class == ADMIN_RXGK ? why : &reason);
	if (class == ADMIN_ANY && (err == AFS_ENOSERVICE || another_may(err))) {
		buf_printf(note, "rxkad, as rxgk is not to be had: %s", reason.len ? reason.data : afs_err_text(err));
		err = AFS_OK;
	} else if (class == ADMIN_ANY && err != AFS_OK) {
		buf_puts(why, reason.len ? reason.data : afs_err_text(err)); /* this may be an attack: nothing weaker instead */
	}
	TRY(err);
	*out = TAKE(t);
	return AFS_OK;
}
