/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxkad's objects, and the one exchange: the server's CHALLENGE, the client's RESPONSE.
 *
 * A server object becomes ready once and then never changes, because packets are opened and sealed by
 * other threads from then on.  A RESPONSE is judged in a copy of the object's own, in this order:
 * lengths, ticket, seal, identity of the connection, nonce, level; a bad one leaves no trace.
 *
 * Source: protocol rx-security.md §4.4-4.5. */
#include "rx/sec/rxkad_conn.h"

#include "cell/base/mem.h"

/* Over the plain response without its ticket, the field itself as zero. */
static uint32_t response_checksum(const uint8_t r[RXKAD_RESPONSE_LEN])
{
	uint32_t h = 1000003;
	for (int i = 0; i < RXKAD_RESPONSE_LEN; i++)
		h = (i >= 16 && i < 20 ? 0 : r[i]) + h * 0x10204081u;
	return h;
}

static int32_t rxkad_code(const struct rx_sec *s, afs_err err)
{
	(void)s;
	return rx_sec_code(err);
}

static struct rxkad *of(struct rx_sec *s) { return container_of(s, struct rxkad, sec); }

static void rxkad_free(struct rx_sec *s)
{
	struct rxkad *k = of(s);
	mem_free(k->ticket);
	explicit_bzero(k, sizeof(*k));
	mem_free(k);
}

/* --- server ------------------------------------------------------------------------------ */

static enum rx_sec_level least(const struct rxkad *k)
{
	return k->index == RX_SEC_RXKAD_CRYPT ? RX_LEVEL_CRYPT : k->server->least;
}

static afs_err server_challenge(struct rx_sec *s, uint8_t *out, size_t cap, size_t *len)
{
	struct rxkad *k = of(s);
	if (cap < RXKAD_CHALLENGE_LEN)
		return AFS_ERANGE;
	rxkad_put32(out, 2);
	rxkad_put32(out + 4, k->nonce);
	rxkad_put32(out + 8, (uint32_t)least(k));
	rxkad_put32(out + 12, 0);
	*len = RXKAD_CHALLENGE_LEN;
	return AFS_OK;
}

static afs_err judge(struct rxkad *k, const struct rx_conn_id *id, uint8_t r[RXKAD_RESPONSE_LEN],
	const struct rxkad_ticket *ticket, enum rx_sec_level *level)
{
	struct fcrypt_key key;
	fcrypt_schedule(&key, ticket->session_key);
	fcrypt_pcbc_decrypt(&key, ticket->session_key, r + RXKAD_SEALED_AT, RXKAD_SEALED_LEN);
	explicit_bzero(&key, sizeof(key));

	if (rxkad_get32(r + 16) != response_checksum(r) || rxkad_get32(r + 8) != id->epoch ||
		rxkad_get32(r + 12) != (id->cid & ~UINT32_C(3)) || rxkad_get32(r + 20) != k->index)
		return AFS_ESEALED;
	for (int i = 0; i < 4; i++)
		if (rxkad_get32(r + 24 + 4 * i) & 0x80000000u)
			return AFS_ESEALED;
	if (rxkad_get32(r + 40) != k->nonce + 1)
		return AFS_EOUTOFSEQ;
	uint32_t want = rxkad_get32(r + 44);
	if (want < (uint32_t)least(k) || want > RX_LEVEL_CRYPT)
		return AFS_ELEVEL;
	*level = (enum rx_sec_level)want;
	return AFS_OK;
}

static void name_caller(struct rx_caller *out, const struct rxkad *k, const struct rxkad_ticket *t)
{
	*out = (struct rx_caller){
		.sec_class = (enum rx_sec_class)k->index,
		.level = k->level,
		.authenticated = true,
		.expires = t->expires,
	};
	memcpy(out->name, t->name, sizeof(out->name) - 1);
	memcpy(out->instance, t->instance, sizeof(out->instance) - 1);
	memcpy(out->cell, t->cell, sizeof(out->cell) - 1);
}

static afs_err server_accept(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *body,
	size_t len, wall_ns now, struct rx_caller *out)
{
	struct rxkad *k = of(s);
	if (s->ready)
		return AFS_EPROTOCOL;
	if (len < RXKAD_RESPONSE_LEN)
		return AFS_EPACKETSHORT;
	uint8_t r[RXKAD_RESPONSE_LEN];
	memcpy(r, body, sizeof(r));
	uint32_t ticket_len = rxkad_get32(r + 52);
	if (ticket_len > len - RXKAD_RESPONSE_LEN)
		return AFS_EPACKETSHORT;
	if (ticket_len < RXKAD_TICKET_MIN || ticket_len > RXKAD_TICKET_MAX)
		return AFS_ETICKETLEN;

	struct rxkad_ticket ticket = {};
	enum rx_sec_level level;
	afs_err err = k->server->read_ticket(k->server->ctx, (int32_t)rxkad_get32(r + 48),
		body + RXKAD_RESPONSE_LEN, ticket_len, now, &ticket);
	if (err == AFS_OK)
		err = judge(k, id, r, &ticket, &level);
	if (err == AFS_OK) {
		rxkad_set_level(k, level);
		rxkad_set_session(k, ticket.session_key);
		rxkad_set_preseq(k, id->epoch, id->cid, k->index);
		for (int i = 0; i < 4; i++)
			id->call_numbers[i] = rxkad_get32(r + 24 + 4 * i);
		name_caller(out, k, &ticket);
		s->expires = ticket.expires;
		s->ready = true;
	}
	explicit_bzero(&ticket, sizeof(ticket));
	explicit_bzero(r, sizeof(r));
	return err;
}

/* What a server's packets use comes with the RESPONSE; accept() is given the same id. */
static void server_bind(struct rx_sec *s, const struct rx_conn_id *id) { (void)s, (void)id; }

static afs_err server_respond(struct rx_sec *s, struct rx_conn_id *id,
	const uint8_t *challenge, size_t challenge_len, uint8_t *out, size_t cap, size_t *len)
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
	.sec_class = RX_SEC_RXKAD,
	.challenge = server_challenge,
	.accept = server_accept,
	.respond = server_respond,
	.bind = server_bind,
	.seal = rxkad_seal,
	.seal_many = rxkad_seal_many,
	.open = rxkad_open,
	.free = rxkad_free,
	.clone = server_clone,
	.code = rxkad_code,
};

struct rx_sec *rxkad_server_new(const struct rxkad_server *server, uint8_t index)
{
	if (index != RX_SEC_RXKAD && index != RX_SEC_RXKAD_CRYPT)
		return NULL;
	struct rxkad *k = mem_new(struct rxkad);
	if (!k)
		return NULL;
	k->sec.ops = &server_ops;
	k->server = server;
	k->index = index;
	k->nonce = server->random(server->random_ctx);
	return &k->sec;
}

struct rx_sec *rxkad_accept(void *server, uint8_t index)
{
	return index == RX_SEC_NULL ? rx_null_new() : rxkad_server_new(server, index);
}

/* --- client ------------------------------------------------------------------------------ */

static afs_err client_respond(struct rx_sec *s, struct rx_conn_id *id,
	const uint8_t *challenge, size_t challenge_len, uint8_t *out, size_t cap, size_t *len)
{
	struct rxkad *k = of(s);
	if (challenge_len < RXKAD_CHALLENGE_LEN)
		return AFS_EPACKETSHORT;
	if (rxkad_get32(challenge) != 2)
		return AFS_ESECPROTO;
	if (rxkad_get32(challenge + 8) > (uint32_t)k->level)
		return AFS_ELEVEL;
	for (int i = 0; i < 4; i++)
		if (id->call_numbers[i] & 0x80000000u)
			return AFS_ESECPROTO;
	if (cap < RXKAD_RESPONSE_LEN + k->ticket_len)
		return AFS_ERANGE;

	memset(out, 0, RXKAD_RESPONSE_LEN);
	rxkad_put32(out, 2);
	rxkad_put32(out + 8, id->epoch);
	rxkad_put32(out + 12, id->cid & ~UINT32_C(3));
	rxkad_put32(out + 20, id->index);
	for (int i = 0; i < 4; i++)
		rxkad_put32(out + 24 + 4 * i, id->call_numbers[i]);
	rxkad_put32(out + 40, rxkad_get32(challenge + 4) + 1);
	rxkad_put32(out + 44, (uint32_t)k->level);
	rxkad_put32(out + 48, (uint32_t)k->kvno);
	rxkad_put32(out + 52, (uint32_t)k->ticket_len);
	rxkad_put32(out + 16, response_checksum(out));
	fcrypt_pcbc_encrypt(&k->key, k->session, out + RXKAD_SEALED_AT, RXKAD_SEALED_LEN);
	memcpy(out + RXKAD_RESPONSE_LEN, k->ticket, k->ticket_len);
	*len = RXKAD_RESPONSE_LEN + k->ticket_len;
	return AFS_OK;
}

static void client_bind(struct rx_sec *s, const struct rx_conn_id *id)
{
	rxkad_set_preseq(of(s), id->epoch, id->cid, id->index);
}

static afs_err client_challenge(struct rx_sec *s, uint8_t *out, size_t cap, size_t *len)
{
	(void)s, (void)out, (void)cap, (void)len;
	return AFS_EPROTOCOL;
}

static afs_err client_accept(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *body,
	size_t len, wall_ns now, struct rx_caller *out)
{
	(void)s, (void)id, (void)body, (void)len, (void)now, (void)out;
	return AFS_EPROTOCOL;
}

/* Reads only what never changes after rxkad_client_new(). */
static struct rx_sec *client_clone(const struct rx_sec *s)
{
	const struct rxkad *k = of((struct rx_sec *)(uintptr_t)s);
	struct rxkad_token token = {
		.kvno = k->kvno,
		.ticket = k->ticket,
		.ticket_len = k->ticket_len,
		.expires = s->expires,
	};
	memcpy(token.session_key, k->session, sizeof(token.session_key));
	struct rx_sec *fresh = rxkad_client_new(&token, k->level);
	explicit_bzero(&token, sizeof(token));
	return fresh;
}

static const struct rx_sec_ops client_ops = {
	.sec_class = RX_SEC_RXKAD,
	.challenge = client_challenge,
	.accept = client_accept,
	.respond = client_respond,
	.bind = client_bind,
	.seal = rxkad_seal,
	.seal_many = rxkad_seal_many,
	.open = rxkad_open,
	.free = rxkad_free,
	.clone = client_clone,
	.code = rxkad_code,
};

struct rx_sec *rxkad_client_new(const struct rxkad_token *token, enum rx_sec_level level)
{
	if (token->ticket_len < RXKAD_TICKET_MIN || token->ticket_len > RXKAD_TICKET_MAX ||
		(unsigned)level > RX_LEVEL_CRYPT)
		return NULL;
	struct rxkad *k = mem_new(struct rxkad);
	uint8_t *ticket = mem_new_array(token->ticket_len, uint8_t);
	if (!k || !ticket) {
		mem_free(k);
		mem_free(ticket);
		return NULL;
	}
	memcpy(ticket, token->ticket, token->ticket_len);
	k->sec = (struct rx_sec){.ops = &client_ops, .ready = true, .expires = token->expires};
	k->ticket = ticket;
	k->ticket_len = token->ticket_len;
	k->kvno = token->kvno;
	rxkad_set_session(k, token->session_key);
	rxkad_set_level(k, level);
	return &k->sec;
}
