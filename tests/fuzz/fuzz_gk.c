/* SPDX-License-Identifier: BSD-2-Clause
 * rxgk from a stranger, and from one who knows a key: tokens, what is inside them, RESPONSEs, what is
 * inside those, packets.  The first byte chooses. */
#include "cell/keys/gk.h"
#include "rx/sec/rxgk_conn.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ETYPE = 18, MOST = 4000, USE_TOKEN = 1036 };
static const uint8_t key[32] = {1, 2, 3};
static const wall_ns now = SEC(1700000000);
static struct gk *gk;

static void fill(void *ctx, void *out, size_t n) { (void)ctx, memset(out, 7, n); }

static afs_err read_token(
	void *ctx, uint8_t index, const uint8_t *token, size_t len, wall_ns at, struct rxgk_ticket *out)
{
	(void)ctx, (void)index, (void)token, (void)at;
	if (len > RXGK_TOKEN_MAX)
		abort();
	out->terms = (struct rxgk_terms){.etype = ETYPE, .level = RX_LEVEL_CRYPT};
	memcpy(out->terms.k0, key, sizeof(key));
	return AFS_OK;
}

static const struct rxgk_server server = {.read_token = read_token, .random = {.fill = fill}};

static void seal(const uint8_t *k, uint32_t usage, const uint8_t *p, size_t n, uint8_t *out, size_t *len)
{
	struct etype_key *e = etype_key_new(etype_of(ETYPE), k, usage);
	memset(out, 9, ETYPE_CONFOUNDER);
	memcpy(out + ETYPE_CONFOUNDER, p, n);
	if (!e || !etype_encrypt(e, out, ETYPE_CONFOUNDER + n))
		abort();
	etype_key_free(e);
	*len = ETYPE_CONFOUNDER + n + 12;
}

static void judge_token(const uint8_t *token, size_t n, uint8_t index)
{
	struct rxgk_ticket t = {};
	if (gk_read_token(gk, index, token, n, now, &t) != AFS_OK)
		return;
	if (!t.name[0] || !memchr(t.name, 0, RX_NAME_MAX) || !memchr(t.instance, 0, RX_NAME_MAX) || !memchr(t.cell, 0, RX_NAME_MAX) ||
		!etype_of(t.terms.etype) || (unsigned)t.terms.level > RX_LEVEL_CRYPT)
		abort();
}

static void judge_response(const uint8_t *p, size_t n)
{
	struct rx_sec *s = rxgk_server_new(&server, RX_SEC_YFS_RXGK);
	struct rx_conn_id id = {.epoch = 1, .cid = 4, .index = RX_SEC_YFS_RXGK};
	struct rx_caller who = {};
	if (s && s->ops->accept(s, &id, p, n, now, &who) == AFS_OK) {
		uint8_t body[MOST];
		size_t off, len;
		const struct rx_sec_packet packet = {.epoch = 1, .cid = 4, .call = 1, .seq = 1, .from_client = true, .at = 1};
		memcpy(body, p, n);
		if (s->ops->open(s, &packet, 0, body, n, &off, &len) == AFS_OK && off + len > n)
			abort();
	}
	rx_sec_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[2 * MOST];
	size_t len;
	if (!gk) {
		const struct gk_config none = {};
		if (gk_open(&none, &gk, NULL) != AFS_OK || gk_add(gk, 1, ETYPE, key, sizeof(key)) != AFS_OK)
			abort();
	}
	if (size < 1 || size > MOST / 2)
		return 0;
	const uint8_t *p = data + 1, index = data[0] & 8 ? RX_SEC_RXGK : RX_SEC_YFS_RXGK;
	size_t n = size - 1;
	switch (data[0] & 3) {
	case 0:
		judge_token(p, n, index);
		break;
	case 1: /* inside a seal of ours */
		seal(key, USE_TOKEN, p, n, out + 12, &len);
		rxgk_put32(out, 1);
		rxgk_put32(out + 4, ETYPE);
		rxgk_put32(out + 8, (uint32_t)len);
		memset(out + 12 + len, 0, 4);
		judge_token(out, 12 + (len + 3) / 4 * 4, index);
		break;
	case 2:
		judge_response(p, n);
		break;
	case 3: { /* an authenticator by who has the token */
		const struct rxgk g = {.etype = etype_of(ETYPE), .epoch = 1, .cid = 4};
		uint8_t seed[20] = {}, tk[32];
		rxgk_put32(seed, g.epoch);
		rxgk_put32(seed + 4, g.cid);
		if (n > 1300 || etype_prf_plus(g.etype, key, seed, sizeof(seed), tk, sizeof(tk)) != AFS_OK)
			return 0;
		memset(out, 0, 12); /* start, and no token */
		seal(tk, USE_RESPONSE, p, n, out + 16, &len);
		rxgk_put32(out + 12, (uint32_t)len);
		memset(out + 16 + len, 0, 4);
		judge_response(out, 16 + (len + 3) / 4 * 4);
		break;
	}
	default:
		break;
	}
	return 0;
}
