/* SPDX-License-Identifier: BSD-2-Clause
 * Source: protocol rx-security.md §11.7; RFC 2743; RFC 4402 (gss_pseudo_random of Kerberos). */
#include "dbserver/negotiate.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"
#include "cell/proto/gk.h"

#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <stdio.h>
#include <string.h>

#define RPC_WANT_HANDLERS
#define RPC_PREFIX gk
#define RPC_ROWS "cell/proto/gk.rpc"
#include "rx/xdr/iface_pass.h"

enum { NONCE = 20, LIFETIME = 36000, BYTELIFE = 30 };

struct negotiator {
	struct negotiator_config config;
	char *cell, *keytab;
};

/* What the client likes best of what we have. */
static const struct etype *pick_etype(const int32_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (etype_of(v[i]))
			return etype_of(v[i]);
	return NULL;
}

static bool pick_level(const int32_t *v, uint32_t n, enum rx_sec_level *out)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i] >= RX_LEVEL_CLEAR && v[i] <= RX_LEVEL_CRYPT) {
			*out = (enum rx_sec_level)v[i];
			return true;
		}
	return false;
}

static uint32_t at_most(uint32_t asked, uint32_t most) { return asked ? MIN(asked, most) : most; }

/* --- the context ---------------------------------------------------------------------------------- */

struct accepted {
	gss_ctx_id_t ctx;
	gss_name_t who;
	OM_uint32 major, minor, life; /* life: seconds that its ticket has */
	gss_buffer_desc output;
};

static void accepted_cleanup(struct accepted *a)
{
	OM_uint32 minor;
	gss_release_name(&minor, &a->who);
	gss_release_buffer(&minor, &a->output);
	gss_delete_sec_context(&minor, &a->ctx, GSS_C_NO_BUFFER);
}

static void accept_context(const struct negotiator *n, struct xdr_bytes token, struct accepted *a)
{
	gss_key_value_element_desc e = {"keytab", n->keytab};
	const gss_key_value_set_desc store = {1, &e};
	gss_cred_id_t cred = GSS_C_NO_CREDENTIAL;
	gss_buffer_desc in = {token.len, (void *)(uintptr_t)token.p};
	OM_uint32 minor, flags = 0;
	a->major = gss_acquire_cred_from(&a->minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, GSS_C_NO_OID_SET, GSS_C_ACCEPT, &store, &cred, NULL, NULL);
	if (!GSS_ERROR(a->major))
		a->major = gss_accept_sec_context(&a->minor, &a->ctx, cred, &in, GSS_C_NO_CHANNEL_BINDINGS, &a->who, NULL, &a->output,
			&flags, &a->life, NULL);
	if (a->major == GSS_S_COMPLETE && (~flags & (GSS_C_INTEG_FLAG | GSS_C_CONF_FLAG)))
		a->major = GSS_S_UNAVAILABLE;
	gss_release_cred(&minor, &cred);
}

/* Copies into the call's arena; false: no memory. */
static bool keep(struct arena *arena, const void *p, size_t n, struct xdr_bytes *out)
{
	uint8_t *to = arena_alloc(arena, n + 1, 1);
	if (!to)
		return false;
	memcpy(to, p, n);
	*out = (struct xdr_bytes){to, (uint32_t)n};
	return true;
}

/* K0, of both nonces. */
static bool master_key(struct accepted *a, const struct gk_start *start, const uint8_t *nonce, const struct etype *e, uint8_t *k0)
{
	uint8_t both[1024 + NONCE];
	gss_buffer_desc in = {start->client_nonce.len + NONCE, both}, out = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	memcpy(both, start->client_nonce.p, start->client_nonce.len);
	memcpy(both + start->client_nonce.len, nonce, NONCE);
	const bool ok = gss_pseudo_random(&minor, a->ctx, GSS_C_PRF_KEY_FULL, &in, e->key_len, &out) == GSS_S_COMPLETE &&
			out.length == e->key_len;
	if (ok) {
		memcpy(k0, out.value, out.length);
		explicit_bzero(out.value, out.length);
	}
	gss_release_buffer(&minor, &out);
	return ok;
}

/* A token for whom the context names. */
static afs_err issue(const struct negotiator *n, struct accepted *a, const struct gk_start *start, const struct etype *e,
	enum rx_sec_level level, const uint8_t *nonce, wall_ns now, struct gk_token *out)
{
	struct rxgk_terms terms = {.etype = e->number, .level = level,
		.lifetime = at_most(start->lifetime, n->config.lifetime ? n->config.lifetime : LIFETIME),
		.bytelife = at_most(start->bytelife, n->config.bytelife ? n->config.bytelife : BYTELIFE),
		.expires = now + SEC((wall_ns)a->life)};
	gss_buffer_desc exported = GSS_C_EMPTY_BUFFER, display = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	afs_err err = AFS_EBADTICKET;
	char text[512] = "";
	if (gss_export_name(&minor, a->who, &exported) == GSS_S_COMPLETE &&
		gss_display_name(&minor, a->who, &display, NULL) == GSS_S_COMPLETE && display.length < sizeof(text) &&
		exported.length && exported.length <= 2048) { /* a token without a name would be the cell's own */
		memcpy(text, display.value, display.length);
		err = master_key(a, start, nonce, e, terms.k0)
			      ? gk_make_token(n->config.gk, RX_SEC_YFS_RXGK, &terms, exported.value, exported.length, text, now, out)
			      : AFS_EBADTICKET;
	}
	explicit_bzero(&terms, sizeof(terms));
	gss_release_buffer(&minor, &exported);
	gss_release_buffer(&minor, &display);
	return err;
}

/* What the client is told, sealed for it alone; with a checksum over what it had asked. */
static afs_err tell(struct arena *arena, struct accepted *a, const struct gk_start *start, const struct gk_token *token,
	const uint8_t *nonce, struct xdr_bytes *out)
{
	uint8_t asked[4096], plain[GK_INFO_MAX - 512];
	OM_uint32 minor;
	struct xdr_out x = {.p = asked, .end = asked + sizeof(asked)};
	xdr_put_gk_start(&x, start);
	gss_buffer_desc in = {(size_t)(x.p - asked), asked}, mic = GSS_C_EMPTY_BUFFER, wrapped = GSS_C_EMPTY_BUFFER;
	if (x.err || gss_get_mic(&minor, a->ctx, GSS_C_QOP_DEFAULT, &in, &mic) != GSS_S_COMPLETE)
		return AFS_ENOMEM;
	const struct gk_client_info info = {.enctype = token->terms.etype,
		.level = token->terms.level,
		.lifetime = token->terms.lifetime,
		.bytelife = token->terms.bytelife,
		.expiration = token->terms.expires / 100,
		.mic = {mic.value, (uint32_t)mic.length},
		.token = {token->token, (uint32_t)token->len},
		.server_nonce = {nonce, NONCE}};
	x = (struct xdr_out){.p = plain, .end = plain + sizeof(plain)};
	xdr_put_gk_client_info(&x, &info);
	in = (gss_buffer_desc){(size_t)(x.p - plain), plain};
	int sealed = 0;
	afs_err err = x.err;
	if (!err && (gss_wrap(&minor, a->ctx, true, GSS_C_QOP_DEFAULT, &in, &sealed, &wrapped) != GSS_S_COMPLETE || !sealed ||
			    wrapped.length > GK_INFO_MAX || !keep(arena, wrapped.value, wrapped.length, out)))
		err = AFS_ENOMEM;
	explicit_bzero(plain, sizeof(plain));
	gss_release_buffer(&minor, &mic);
	gss_release_buffer(&minor, &wrapped);
	return err;
}

static void say(const struct negotiator *n, const struct accepted *a)
{
	OM_uint32 minor, more = 0;
	gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
	gss_display_status(&minor, a->minor, GSS_C_MECH_CODE, gss_mech_krb5, &more, &text);
	log_info("rxgk.refused cell=%s why=\"%.*s\"", n->cell, (int)text.length, (const char *)text.value);
	gss_release_buffer(&minor, &text);
}

/* --- calls ------------------------------------------------------------------------------------------ */

afs_err gk_gss_negotiate(
	struct rpc_call *call, const struct gk_gss_negotiate_in *in, struct gk_gss_negotiate_out *out)
{
	const struct negotiator *n = call->service;
	const struct etype *e = pick_etype(in->params.enctypes.v, in->params.enctypes.n);
	enum rx_sec_level level;
	if (!e)
		return AFS_EWEAKKEY;
	if (!pick_level(in->params.levels.v, in->params.levels.n, &level))
		return AFS_ELEVEL;
	if (in->opaque_in.len)
		return AFS_ESECPROTO; /* we never asked for a second pass */
	CLEANUP(accepted) struct accepted a = {};
	accept_context(n, in->input_token, &a);
	if (a.major & GSS_S_CONTINUE_NEEDED)
		a.major = GSS_S_BAD_MECH;
	out->gss_major = a.major;
	out->gss_minor = a.minor;
	if (a.output.length > GK_TOKEN_MAX || !keep(call->arena, a.output.value, a.output.length, &out->output_token))
		return AFS_ENOMEM;
	if (a.major != GSS_S_COMPLETE) {
		say(n, &a);
		return AFS_OK; /* the client reads the reason in gss_major and the token */
	}
	uint8_t nonce[NONCE];
	rand_bytes(nonce, sizeof(nonce));
	CLEANUP(gk_token) struct gk_token token = {};
	TRY(issue(n, &a, &in->params, e, level, nonce, clk_wall(), &token));
	return tell(call->arena, &a, &in->params, &token, nonce, &out->rxgk_info);
}

static afs_err combine(const struct negotiator *n, struct arena *arena, struct xdr_bytes first, struct xdr_bytes second,
	const struct gk_combine_options *options, struct xdr_bytes *token, struct gk_token_info *info)
{
	enum rx_sec_level level;
	if (!pick_level(options->levels.v, options->levels.n, &level))
		return AFS_ELEVEL;
	CLEANUP(gk_token) struct gk_token made = {};
	TRY(gk_combine(n->config.gk, first.p, first.len, second.p, second.len, level, clk_wall(), &made));
	bool wanted = false;
	for (uint32_t i = 0; i < options->enctypes.n; i++)
		wanted = wanted || options->enctypes.v[i] == made.terms.etype;
	if (!wanted)
		return AFS_EWEAKKEY;
	*info = (struct gk_token_info){.enctype = made.terms.etype, .level = made.terms.level, .lifetime = made.terms.lifetime,
		.bytelife = made.terms.bytelife, .expiration = made.terms.expires / 100};
	return keep(arena, made.token, made.len, token) ? AFS_OK : AFS_ENOMEM;
}

afs_err gk_combine_tokens(
	struct rpc_call *call, const struct gk_combine_tokens_in *in, struct gk_combine_tokens_out *out)
{
	return combine(call->service, call->arena, in->token0, in->token1, &in->options, &out->new_token, &out->info);
}

/* Every server of the cell has the same keys, so that `destination` makes no difference. */
afs_err gk_afs_combine_tokens(
	struct rpc_call *call, const struct gk_afs_combine_tokens_in *in, struct gk_afs_combine_tokens_out *out)
{
	return combine(call->service, call->arena, in->user_tok, in->cm_tok, &in->options, &out->new_token, &out->info);
}

/* --- service ------------------------------------------------------------------------------------------ */

static void call_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns)
{
	const struct negotiator_config *c = &((struct negotiator *)ctx)->config;
	if (c->done)
		c->done(c->ctx, call, in, err, code, took_ns);
}

size_t negotiator_services(struct negotiator *n, struct rpc_service *out)
{
	_Static_assert(ARRAY_SIZE(gk_handlers) == gk_op_count, "a handler per row");
	*out = (struct rpc_service){.iface = &gk_iface, .handlers = gk_handlers, .ctx = n, .allow_anonymous = true, .done = call_done};
	return 1;
}

afs_err negotiator_new(const struct negotiator_config *config, struct negotiator **out)
{
	struct negotiator *n = mem_new(struct negotiator);
	if (!n)
		return AFS_ENOMEM;
	n->config = *config;
	n->cell = mem_strdup(config->cell);
	n->keytab = mem_printf("FILE:%s", config->keytab);
	if (!n->cell || !n->keytab) {
		negotiator_free(n);
		return AFS_ENOMEM;
	}
	*out = n;
	return AFS_OK;
}

void negotiator_free(struct negotiator *n)
{
	if (!n)
		return;
	mem_free(n->cell);
	mem_free(n->keytab);
	mem_free(n);
}
