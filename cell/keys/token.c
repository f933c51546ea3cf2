/* SPDX-License-Identifier: BSD-2-Clause
 * Tokens: the cell's own, made with its key, and a user's, made of his Kerberos ticket. */
#include "cell/base/rand.h"
#include "cell/keys/set.h"
#include "cell/keys/ticket.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { USAGE_TICKET = 2 };

void keys_token_fini(struct keys_token *t)
{
	if (t->ticket)
		explicit_bzero(t->ticket, t->kad.ticket_len);
	if (t->gk_token)
		explicit_bzero(t->gk_token, t->gk.len);
	mem_free(t->ticket);
	mem_free(t->gk_token);
	explicit_bzero(t, sizeof(*t));
}

static void random_fill(void *ctx, void *out, size_t n) { (void)ctx, rand_bytes(out, n); }

struct rx_sec *keys_token_client(const struct rx_token *token, enum rx_sec_level level)
{
	return rx_token_client(token, level, clk_wall(), &(struct rxgk_random){.fill = random_fill});
}

afs_err keys_token_set_gk(struct keys_token *t, const struct rxgk_token *gk)
{
	uint8_t *copy = mem_alloc(gk->len ? gk->len : 1, 1);
	if (!copy)
		return AFS_ENOMEM;
	memcpy(copy, gk->token, gk->len);
	if (t->gk_token)
		explicit_bzero(t->gk_token, t->gk.len);
	mem_free(t->gk_token);
	t->gk = *gk;
	t->gk.token = t->gk_token = copy;
	return AFS_OK;
}

afs_err keys_token_copy(const struct keys_token *from, struct keys_token *out)
{
	CLEANUP(keys_token) struct keys_token t = *from;
	t.ticket = t.gk_token = NULL;
	if (rx_token_has_gk(&from->both))
		TRY(keys_token_set_gk(&t, &from->gk));
	if (rx_token_has_kad(&from->both)) {
		t.kad.ticket = t.ticket = mem_alloc(from->kad.ticket_len, 1);
		if (!t.ticket)
			return AFS_ENOMEM;
		memcpy(t.ticket, from->kad.ticket, from->kad.ticket_len);
	}
	*out = TAKE(t);
	return AFS_OK;
}

static bool copy_name(char out[RX_NAME_MAX], const char *s, size_t n)
{
	if (n >= RX_NAME_MAX || memchr(s, 0, n))
		return false;
	if (n)
		memcpy(out, s, n);
	out[n] = 0;
	return true;
}

/* --- localauth ---------------------------------------------------------------------------- */

/* Stock's order of preference, then the rest; of one enctype the highest kvno. */
static const struct key *best_key_locked(const struct keys *k)
{
	static const int32_t order[] = {18, 17, 20, 19, 26, 25, 23, 16};
	for (size_t e = 0; e < ARRAY_SIZE(order); e++)
		for (size_t i = 0; i < k->set.n; i++)
			if (k->set.key[i].enctype == order[e])
				return &k->set.key[i];
	return NULL;
}

static afs_err localauth_seal_locked(struct keys *k, const uint8_t *part, size_t len,
	struct k5_sealed *sealed, uint8_t *cipher, size_t cap)
{
	const struct key *key = best_key_locked(k);
	size_t n;
	if (!key)
		return AFS_ENOENT;
	krb5_keyblock block = {.enctype = key->enctype,
		.length = key->len,
		.contents = (krb5_octet *)(uintptr_t)key->bytes};
	if (krb5_c_encrypt_length(k->krb5, key->enctype, len, &n) || n > cap)
		return AFS_ENOMEM;
	krb5_data plain = {.length = (unsigned)len, .data = (char *)(uintptr_t)part};
	krb5_enc_data out = {.ciphertext = {.length = (unsigned)n, .data = (char *)cipher}};
	if (krb5_c_encrypt(k->krb5, &block, USAGE_TICKET, NULL, &plain, &out))
		return AFS_ENOMEM;
	*sealed = (struct k5_sealed){key->enctype, key->kvno, {cipher, out.ciphertext.length}};
	return AFS_OK;
}

afs_err keys_localauth(struct keys *keys, struct keys_token *out)
{
	CLEANUP(keys_token) struct keys_token t = {};
	uint8_t part[K5_LOCAL_PART_MAX], cipher[2 * K5_LOCAL_PART_MAX],
		ticket[3 * K5_LOCAL_PART_MAX];
	size_t part_len, ticket_len;
	struct k5_sealed sealed;

	do
		rand_bytes(t.kad.session_key, 8);
	while (!rxkad_des_fix(t.kad.session_key));
	if (!k5_local_part_enc(t.kad.session_key, part, sizeof(part), &part_len))
		return AFS_ENOMEM;
	mtx_lock(&keys->lock);
	afs_err err = localauth_seal_locked(keys, part, part_len, &sealed, cipher, sizeof(cipher));
	mtx_unlock(&keys->lock);
	explicit_bzero(part, sizeof(part));
	if (err)
		return err;
	if (!k5_sealed_enc(&sealed, ticket, sizeof(ticket), &ticket_len))
		return AFS_ENOMEM;
	t.ticket = mem_alloc(ticket_len, 1);
	if (!t.ticket || !copy_name(t.cell, keys->cell, strlen(keys->cell)))
		return AFS_ENOMEM;
	memcpy(t.ticket, ticket, ticket_len);
	strcpy(t.name, "afs");
	t.kad.kvno = TICKET_V5_PART;
	t.kad.ticket = t.ticket;
	t.kad.ticket_len = ticket_len;
	t.kad.expires = SEC(INT32_MAX);
	*out = TAKE(t);
	return AFS_OK;
}

/* --- from the credential cache ------------------------------------------------------------- */

static afs_err err_of_krb5(krb5_error_code code)
{
	switch (code) {
	case ENOENT:
	case KRB5_FCC_NOFILE:
	case KRB5_CC_NOTFOUND:
	case KRB5_CC_END:
		return AFS_ENOTICKETS;
	case KRB5KRB_AP_ERR_TKT_EXPIRED:
	case KRB5KDC_ERR_NAME_EXP:
	case KRB5KDC_ERR_KEY_EXP:
		return AFS_EEXPIRED;
	case KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN:
	case KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN:
		return AFS_ENOENT;
	case KRB5_KDC_UNREACH:
	case KRB5_REALM_UNKNOWN:
	case KRB5_REALM_CANT_RESOLVE:
	case KRB5_ERR_HOST_REALM_UNKNOWN:
		return AFS_ENOKDC;
	case KRB5KRB_AP_ERR_SKEW:
	case KRB5_KDCREP_SKEW:
	case KRB5KRB_AP_ERR_TKT_NYV:
		return AFS_ESKEW;
	case KRB5KRB_AP_ERR_BAD_INTEGRITY:
	case KRB5KDC_ERR_PREAUTH_FAILED:
	case KRB5_PREAUTH_FAILED:
	case KRB5_GET_IN_TKT_LOOP:
		return AFS_EBADPASSWORD;
	case EACCES:
	case EPERM:
	case KRB5_FCC_PERM:
		return AFS_EACCESS;
	case ENOMEM:
		return AFS_ENOMEM;
	default:
		return AFS_ENOAUTH;
	}
}

/* A libkrb5 error as afs_err, with a sentence that says what to do where that is known. */
static afs_err explain(struct buf *why, krb5_context ctx, krb5_error_code code, const char *what)
{
	afs_err err = err_of_krb5(code);
	keys_why_krb5(why, ctx, code, "%s", what);
	if (err == AFS_ENOTICKETS)
		keys_why(why, "; get a ticket with kinit first");
	else if (err == AFS_EEXPIRED)
		keys_why(why, "; get a new ticket with kinit");
	else if (err == AFS_ESKEW)
		keys_why(why, "; set this machine's clock, or the KDC's");
	else if (err == AFS_ENOKDC)
		keys_why(why, "; is the realm's KDC running, and does krb5.conf name it?");
	return err;
}

/* Everything that must be freed of one conversation with libkrb5. */
struct talk {
	krb5_context ctx;
	krb5_ccache cc;
	krb5_principal client, service;
	krb5_creds *creds;
};

static void talk_cleanup(struct talk *t)
{
	if (!t->ctx)
		return;
	if (t->creds)
		krb5_free_creds(t->ctx, t->creds);
	if (t->service)
		krb5_free_principal(t->ctx, t->service);
	if (t->client)
		krb5_free_principal(t->ctx, t->client);
	if (t->cc)
		krb5_cc_close(t->ctx, t->cc);
	krb5_free_context(t->ctx);
}

static krb5_error_code ask(
	struct talk *t, const char *realm, const char *service, const char *instance /* NULL: none */)
{
	if (t->service)
		krb5_free_principal(t->ctx, t->service);
	t->service = NULL;
	krb5_error_code code = krb5_build_principal(
		t->ctx, &t->service, (unsigned)strlen(realm), realm, service, instance, (char *)NULL);
	if (code)
		return code;
	krb5_creds in = {.client = t->client, .server = t->service};
	return krb5_get_credentials(t->ctx, 0, t->cc, &in, &t->creds);
}

/* What is asked for: afs/<cell>@R, then afs@R where the realm has the cell's name; or rxgk's, which has no
 * such short form. */
static krb5_error_code ask_realm(struct talk *t, const char *realm, const char *cell, bool rxgk)
{
	char instance[RX_NAME_MAX + 8];
	snprintf(instance, sizeof(instance), "_afs.%s", cell);
	krb5_error_code code = rxgk ? ask(t, realm, "afs-rxgk", instance) : ask(t, realm, "afs", cell);
	if (code == KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN && !rxgk && strcasecmp(realm, cell) == 0)
		code = ask(t, realm, "afs", NULL);
	return code;
}

static afs_err take_names(const struct talk *t, const char *cell, struct keys_token *token, struct buf *why)
{
	const krb5_data *comp = t->client->data;
	if (t->client->length < 1 || t->client->length > 2 ||
		!copy_name(token->name, comp[0].data, comp[0].length) ||
		(t->client->length > 1 &&
			!copy_name(token->instance, comp[1].data, comp[1].length)) ||
		!copy_name(token->realm, t->client->realm.data, t->client->realm.length) ||
		!copy_name(token->cell, cell, strlen(cell))) {
		keys_why(why, "the principal's name cannot be an AFS name (at most two parts of 63 "
			      "bytes)");
		return AFS_EBADNAME;
	}
	return AFS_OK;
}

static afs_err token_of_creds(
	struct talk *t, const char *cell, struct keys_token *out, struct buf *why)
{
	const krb5_creds *c = t->creds;
	CLEANUP(keys_token) struct keys_token token = {};
	if (rxkad_kdf(c->keyblock.enctype, c->keyblock.contents, c->keyblock.length,
		    token.kad.session_key)) {
		keys_why(why, "the KDC gave a session key of enctype %d, which AFS cannot use",
			c->keyblock.enctype);
		return AFS_EBADTICKET;
	}
	if (c->ticket.length > TICKET_MAX) {
		keys_why(why,
			"the ticket for cell %s has %u bytes; AFS takes at most %d (is there a "
			"large PAC in it?)",
			cell, c->ticket.length, TICKET_MAX);
		return AFS_ETICKETLEN;
	}
	TRY(take_names(t, cell, &token, why));
	token.ticket = mem_alloc(c->ticket.length, 1);
	if (!token.ticket)
		return AFS_ENOMEM;
	memcpy(token.ticket, c->ticket.data, c->ticket.length);
	token.kad.kvno = TICKET_V5;
	token.kad.ticket = token.ticket;
	token.kad.ticket_len = c->ticket.length;
	/* krb5 timestamps are 32 bits, unsigned since 2038 was seen coming */
	token.kad.begins =
		SEC((uint32_t)(c->times.starttime ? c->times.starttime : c->times.authtime));
	token.kad.expires = SEC((uint32_t)c->times.endtime);
	*out = TAKE(token);
	return AFS_OK;
}

/* On AFS_OK t->creds is the ticket, and `cell` the cell's name in lower case. */
static afs_err find_ticket(struct talk *t, const struct keys_aklog *want, bool rxgk, char cell[RX_NAME_MAX], struct buf *why)
{
	char upper[RX_NAME_MAX];
	size_t cell_len = strlen(want->cell);
	if (!cell_len || cell_len >= RX_NAME_MAX) {
		keys_why(why, "a cell's name has 1 to %d bytes", RX_NAME_MAX - 1);
		return AFS_EBADNAME;
	}
	for (size_t i = 0; i <= cell_len; i++) {
		cell[i] = (char)tolower((unsigned char)want->cell[i]);
		upper[i] = (char)toupper((unsigned char)want->cell[i]);
	}
	krb5_error_code code = keys_krb5_profile(want->krb5_conf, &t->ctx);
	if (code) {
		keys_why(why, "Kerberos configuration %s cannot be read (error %d)",
			want->krb5_conf ? want->krb5_conf : "of this system", (int)code);
		return AFS_ECONFIG;
	}
	code = want->ccache ? krb5_cc_resolve(t->ctx, want->ccache, &t->cc)
			    : krb5_cc_default(t->ctx, &t->cc);
	if (!code)
		code = krb5_cc_get_principal(t->ctx, t->cc, &t->client);
	if (code)
		return explain(why, t->ctx, code, "no Kerberos tickets");

	char own[RX_NAME_MAX] = "";
	(void)copy_name(
		own, t->client->realm.data, t->client->realm.length); /* too long: not tried */
	const char *realms[] = {want->realm ? want->realm : own, want->realm ? NULL : upper};
	const char *last = "";
	for (size_t i = 0; i < ARRAY_SIZE(realms); i++) {
		if (!realms[i] || !realms[i][0] || strcmp(realms[i], last) == 0)
			continue;
		krb5_error_code got = ask_realm(t, realms[i], cell, rxgk);
		if (!got)
			return AFS_OK;
		/* of two failures the first says more, unless it was only "not known here" */
		if (i == 0 || code == KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN)
			code = got;
		last = realms[i];
	}
	char what[128];
	snprintf(what, sizeof(what), "no ticket for %s%s", rxgk ? "afs-rxgk/_afs." : "afs/", cell);
	return explain(why, t->ctx, code, what);
}

afs_err keys_aklog(const struct keys_aklog *want, struct keys_token *out, struct buf *why)
{
	CLEANUP(talk) struct talk t = {};
	char cell[RX_NAME_MAX];
	TRY(find_ticket(&t, want, false, cell, why));
	return token_of_creds(&t, cell, out, why);
}

void keys_gss_fini(struct keys_gss *g)
{
	mem_free(g->ccache);
	mem_free(g->service);
	keys_token_fini(&g->token);
	*g = (struct keys_gss){};
}

afs_err keys_gss_ticket(const struct keys_aklog *want, struct keys_gss *out, struct buf *why)
{
	CLEANUP(talk) struct talk t = {};
	CLEANUP(keys_gss) struct keys_gss g = {};
	char cell[RX_NAME_MAX], *name = NULL, *cache = NULL;
	TRY(find_ticket(&t, want, true, cell, why));
	TRY(take_names(&t, cell, &g.token, why));
	if (krb5_unparse_name(t.ctx, t.service, &name) == 0)
		g.service = mem_strdup(name);
	if (krb5_cc_get_full_name(t.ctx, t.cc, &cache) == 0)
		g.ccache = mem_strdup(cache);
	krb5_free_unparsed_name(t.ctx, name);
	krb5_free_string(t.ctx, cache);
	if (!g.service || !g.ccache)
		return AFS_ENOMEM;
	*out = TAKE(g);
	return AFS_OK;
}

/* --- kinit ----------------------------------------------------------------------------- */

static krb5_error_code login(struct talk *t, const struct keys_login *l)
{
	krb5_error_code code = 0;
	if (l->realm)
		code = krb5_set_default_realm(t->ctx, l->realm);
	if (!code)
		code = krb5_parse_name(t->ctx, l->principal, &t->client);
	if (!code)
		code = l->ccache ? krb5_cc_resolve(t->ctx, l->ccache, &t->cc)
				 : krb5_cc_default(t->ctx, &t->cc);
	if (code)
		return code;
	krb5_get_init_creds_opt *opt;
	krb5_creds creds = {};
	code = krb5_get_init_creds_opt_alloc(t->ctx, &opt);
	if (code)
		return code;
	code = krb5_get_init_creds_opt_set_out_ccache(t->ctx, opt, t->cc);
	if (!code)
		code = krb5_get_init_creds_password(
			t->ctx, &creds, t->client, l->password, NULL, NULL, 0, NULL, opt);
	krb5_get_init_creds_opt_free(t->ctx, opt);
	krb5_free_cred_contents(t->ctx, &creds);
	return code;
}

afs_err keys_login(const struct keys_login *l, struct buf *why)
{
	CLEANUP(talk) struct talk t = {};
	if (keys_krb5_profile(l->krb5_conf, &t.ctx)) {
		keys_why(why, "Kerberos configuration %s cannot be read",
			l->krb5_conf ? l->krb5_conf : "of this system");
		return AFS_ECONFIG;
	}
	krb5_error_code code = login(&t, l);
	return code ? explain(why, t.ctx, code, l->principal) : AFS_OK;
}
