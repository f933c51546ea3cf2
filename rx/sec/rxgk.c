/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxgk's objects, and the one exchange: the server's CHALLENGE is a nonce; the client's RESPONSE brings
 * the token and, sealed with the connection's first transport key, the nonce and what connection it is.
 *
 * A server object becomes ready once.  A RESPONSE is judged with a copy of the terms; a bad one leaves no
 * trace.  `start` is whatever number the client chose: clients take the time since boot as well as the
 * date.  Application data (the client's id and a token for callbacks) is bounded and passed over.
 *
 * Source: protocol rx-security.md §11.5. */
#include "rx/sec/rxgk_conn.h"

#include "cell/base/mem.h"

#include <openssl/crypto.h>

enum {
	AUTHENTICATOR_MAX = 1416,
	AUTHENTICATOR_LEAST = RXGK_NONCE + 4 + 12 + 4 + 16,
	CALLS = 4,
};

static struct rxgk *of(struct rx_sec *s) { return container_of(s, struct rxgk, sec); }

static void gk_wipe(struct rxgk *g)
{
	rxgk_free_keys(g);
	mtx_fini(&g->lock);
	mem_free(g->token);
	explicit_bzero(g, sizeof(*g));
	mem_free(g);
}

static void gk_free(struct rx_sec *s) { gk_wipe(of(s)); }

static int32_t gk_code(const struct rx_sec *s, afs_err err)
{
	return rx_gk_code(of((struct rx_sec *)(uintptr_t)s)->index, err);
}

static struct rxgk *gk_new(uint8_t index, const struct rxgk_random *random)
{
	if (index != RX_SEC_RXGK && index != RX_SEC_YFS_RXGK)
		return NULL;
	struct rxgk *g = mem_new(struct rxgk);
	if (!g)
		return NULL;
	mtx_init(&g->lock, RANK_LEAF);
	g->index = index;
	g->random = *random;
	return g;
}

/* --- reading ------------------------------------------------------------------------------------- */

/* XDR as far as a RESPONSE needs it; the error sticks. */
struct in {
	const uint8_t *p, *end;
	bool bad;
};

static const uint8_t *take(struct in *in, size_t n)
{
	if (in->bad || n > (size_t)(in->end - in->p)) {
		in->bad = true;
		return NULL;
	}
	const uint8_t *p = in->p;
	in->p += n;
	return p;
}

static uint32_t take32(struct in *in)
{
	const uint8_t *p = take(in, 4);
	return p ? rxgk_get32(p) : 0;
}

static const uint8_t *take_opaque(struct in *in, size_t max, size_t *len)
{
	*len = take32(in);
	if (*len > max)
		in->bad = true;
	const uint8_t *p = take(in, *len);
	take(in, (4 - *len % 4) % 4);
	return p;
}

/* --- server ---------------------------------------------------------------------------------- */

static afs_err server_challenge(struct rx_sec *s, uint8_t *out, size_t cap, size_t *len)
{
	if (cap < RXGK_NONCE)
		return AFS_ERANGE;
	memcpy(out, of(s)->nonce, RXGK_NONCE);
	*len = RXGK_NONCE;
	return AFS_OK;
}

/* The sealed part, with the terms of its token in place. */
static afs_err judge(struct rxgk *g, struct rx_conn_id *id, const uint8_t *sealed, size_t len)
{
	uint8_t a[AUTHENTICATOR_MAX];
	const size_t around = ETYPE_CONFOUNDER + (size_t)g->etype->mac_len;
	if (len < AUTHENTICATOR_LEAST + around || len > sizeof(a))
		return AFS_EPACKETSHORT;
	struct etype_key *key = rxgk_transport_key(g, id->cksum, USE_RESPONSE);
	if (!key)
		return AFS_ENOMEM;
	memcpy(a, sealed, len);
	const bool opened = etype_decrypt(key, a, len);
	etype_key_free(key);
	if (!opened)
		return AFS_ESEALED;

	struct in in = {a + ETYPE_CONFOUNDER, a + len - g->etype->mac_len, false};
	size_t skipped;
	const uint8_t *nonce = take(&in, RXGK_NONCE);
	take_opaque(&in, sizeof(a), &skipped);
	const uint32_t level = take32(&in), epoch = take32(&in), cid = take32(&in), calls = take32(&in);
	uint32_t number[CALLS];
	for (int i = 0; i < CALLS; i++)
		number[i] = take32(&in);
	if (in.bad || calls != CALLS)
		return AFS_EPACKETSHORT;
	if (CRYPTO_memcmp(nonce, g->nonce, RXGK_NONCE) != 0 || epoch != g->epoch || cid != g->cid)
		return AFS_EOUTOFSEQ;
	if (level != (uint32_t)g->terms.level || level < (uint32_t)g->server->least)
		return AFS_ELEVEL;
	for (int i = 0; i < CALLS; i++)
		if (number[i] >> 31)
			return AFS_EOUTOFSEQ;
	memcpy(id->call_numbers, number, sizeof(number));
	return AFS_OK;
}

static afs_err server_accept(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *body, size_t len,
	wall_ns now, struct rx_caller *out)
{
	struct rxgk *g = of(s);
	if (s->ready)
		return AFS_EPROTOCOL;
	struct in in = {body, body + len, false};
	const uint8_t *start = take(&in, 8);
	size_t token_len, sealed_len;
	const uint8_t *token = take_opaque(&in, RXGK_TOKEN_MAX, &token_len);
	const uint8_t *sealed = take_opaque(&in, AUTHENTICATOR_MAX, &sealed_len);
	if (in.bad)
		return AFS_EPACKETSHORT;

	struct rxgk_ticket ticket = {};
	afs_err err = g->server->read_token(g->server->ctx, g->index, token, token_len, now, &ticket);
	if (err == AFS_OK && (unsigned)ticket.terms.level > RX_LEVEL_CRYPT)
		err = AFS_EBADTICKET;
	if (err == AFS_OK && ticket.terms.expires && ticket.terms.expires <= now)
		err = AFS_EEXPIRED;
	if (err == AFS_OK) {
		g->terms = ticket.terms;
		g->etype = etype_of(ticket.terms.etype);
		uint64_t at;
		memcpy(&at, start, sizeof(at));
		g->start = be64toh(at);
		g->epoch = id->epoch;
		g->cid = id->cid & ~UINT32_C(3);
		err = g->etype ? judge(g, id, sealed, sealed_len) : AFS_EWEAKKEY;
	}
	if (err == AFS_OK)
		err = rxgk_start_keys(g, id->cksum);
	if (err == AFS_OK) {
		*out = (struct rx_caller){
			.sec_class = (enum rx_sec_class)g->index,
			.level = ticket.terms.level,
			.authenticated = true,
			.expires = ticket.terms.expires,
		};
		memcpy(out->name, ticket.name, sizeof(out->name) - 1);
		memcpy(out->instance, ticket.instance, sizeof(out->instance) - 1);
		memcpy(out->cell, ticket.cell, sizeof(out->cell) - 1);
		s->expires = ticket.terms.expires;
		s->ready = true;
	} else {
		explicit_bzero(&g->terms, sizeof(g->terms));
	}
	explicit_bzero(&ticket, sizeof(ticket));
	return err;
}

/* What a server's packets use comes with the RESPONSE. */
static void server_bind(struct rx_sec *s, const struct rx_conn_id *id) { (void)s, (void)id; }

static afs_err server_respond(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *challenge,
	size_t challenge_len, uint8_t *out, size_t cap, size_t *len)
{
	(void)s, (void)id, (void)challenge, (void)challenge_len, (void)out, (void)cap, (void)len;
	return AFS_EPROTOCOL;
}

/* A server's objects come from its acceptor. */
static struct rx_sec *server_clone(const struct rx_sec *s)
{
	(void)s;
	return NULL;
}

static const struct rx_sec_ops server_ops = {
	.sec_class = RX_SEC_YFS_RXGK,
	.challenge = server_challenge,
	.accept = server_accept,
	.respond = server_respond,
	.bind = server_bind,
	.seal = rxgk_seal,
	.seal_many = rxgk_seal_many,
	.open = rxgk_open,
	.free = gk_free,
	.clone = server_clone,
	.code = gk_code,
};

struct rx_sec *rxgk_server_new(const struct rxgk_server *server, uint8_t index)
{
	struct rxgk *g = gk_new(index, &server->random);
	if (!g)
		return NULL;
	g->sec.ops = &server_ops;
	g->is_server = true;
	g->server = server;
	g->random.fill(g->random.ctx, g->nonce, sizeof(g->nonce));
	return &g->sec;
}

/* --- client ------------------------------------------------------------------------------------ */

static size_t padded(size_t n) { return (n + 3) / 4 * 4; }

static uint8_t *put_opaque(uint8_t *out, const void *p, size_t n)
{
	rxgk_put32(out, (uint32_t)n);
	memcpy(out + 4, p, n);
	memset(out + 4 + n, 0, padded(n) - n);
	return out + 4 + padded(n);
}

static afs_err client_respond(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *challenge,
	size_t challenge_len, uint8_t *out, size_t cap, size_t *len)
{
	struct rxgk *g = of(s);
	if (challenge_len < RXGK_NONCE)
		return AFS_EPACKETSHORT;
	for (int i = 0; i < CALLS; i++)
		if (id->call_numbers[i] >> 31)
			return AFS_ESECPROTO;
	const uint32_t number = atomic_load(&g->number);
	uint8_t a[ETYPE_CONFOUNDER + AUTHENTICATOR_LEAST + ETYPE_MAC_MAX] = {}, *p = a + ETYPE_CONFOUNDER;
	g->random.fill(g->random.ctx, a, ETYPE_CONFOUNDER);
	memcpy(p, challenge, RXGK_NONCE);
	p += RXGK_NONCE + 4; /* no application data */
	const uint32_t words[] = {(uint32_t)g->terms.level, g->epoch, g->cid, CALLS};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++, p += 4)
		rxgk_put32(p, words[i]);
	for (int i = 0; i < CALLS; i++, p += 4)
		rxgk_put32(p, id->call_numbers[i]);
	const size_t sealed = ETYPE_CONFOUNDER + AUTHENTICATOR_LEAST;
	if (cap < 8 + 4 + padded(g->token_len) + 4 + padded(sealed + g->etype->mac_len))
		return AFS_ERANGE;

	struct etype_key *key = rxgk_transport_key(g, number, USE_RESPONSE);
	const bool ok = key && etype_encrypt(key, a, sealed);
	etype_key_free(key);
	if (!ok)
		return AFS_ENOMEM;
	const uint64_t start = htobe64(g->start);
	memcpy(out, &start, 8);
	p = put_opaque(out + 8, g->token, g->token_len);
	p = put_opaque(p, a, sealed + g->etype->mac_len);
	*len = (size_t)(p - out);
	id->cksum = (uint16_t)number;
	return AFS_OK;
}

/* The connection's keys: made here, for they hang on epoch and cid.  Where memory fails them the object
 * is not ready, and its packets say nothing. */
static void client_bind(struct rx_sec *s, const struct rx_conn_id *id)
{
	struct rxgk *g = of(s);
	g->epoch = id->epoch;
	g->cid = id->cid & ~UINT32_C(3);
	s->ready = rxgk_start_keys(g, 0) == AFS_OK;
}

static afs_err client_challenge(struct rx_sec *s, uint8_t *out, size_t cap, size_t *len)
{
	(void)s, (void)out, (void)cap, (void)len;
	return AFS_EPROTOCOL;
}

static afs_err client_accept(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *body, size_t len,
	wall_ns now, struct rx_caller *out)
{
	(void)s, (void)id, (void)body, (void)len, (void)now, (void)out;
	return AFS_EPROTOCOL;
}

/* Reads only what never changes after rxgk_client_new(). */
static struct rx_sec *client_clone(const struct rx_sec *s)
{
	const struct rxgk *g = of((struct rx_sec *)(uintptr_t)s);
	const struct rxgk_token token = {.terms = g->terms, .token = g->token, .len = g->token_len};
	return rxgk_client_new(&token, g->index, g->start, &g->random);
}

static const struct rx_sec_ops client_ops = {
	.sec_class = RX_SEC_YFS_RXGK,
	.challenge = client_challenge,
	.accept = client_accept,
	.respond = client_respond,
	.bind = client_bind,
	.seal = rxgk_seal,
	.seal_many = rxgk_seal_many,
	.open = rxgk_open,
	.free = gk_free,
	.clone = client_clone,
	.code = gk_code,
};

struct rx_sec *rxgk_client_new(
	const struct rxgk_token *token, uint8_t index, uint64_t start, const struct rxgk_random *random)
{
	const struct etype *e = etype_of(token->terms.etype);
	if (!e || token->len > RXGK_TOKEN_MAX || (unsigned)token->terms.level > RX_LEVEL_CRYPT)
		return NULL;
	struct rxgk *g = gk_new(index, random);
	if (!g)
		return NULL;
	g->sec = (struct rx_sec){.ops = &client_ops, .ready = true, .expires = token->terms.expires};
	g->etype = e;
	g->terms = token->terms;
	g->start = start;
	g->token = mem_new_array(token->len + 1, uint8_t);
	if (!g->token) {
		gk_wipe(g);
		return NULL;
	}
	memcpy(g->token, token->token, token->len);
	g->token_len = token->len;
	rxgk_make_room(g); /* calls write their first packets before the connection has its numbers */
	return &g->sec;
}
