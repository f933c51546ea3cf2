/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/proto/token.h"

#include "cell/proto/rmt.h"

#include <string.h>

enum { TYPE_RXKAD = 2, TYPE_YFS_RXGK = 6, WIRE_UNIT = 100 };

static void put_gk(const struct rxgk_token *gk, struct xdr_out *x)
{
	const struct rxgk_terms *t = &gk->terms;
	struct tokenYfsRxgk w = {.type = TYPE_YFS_RXGK, .endtime = t->expires / WIRE_UNIT, .level = t->level, .lifetime = t->lifetime,
		.bytelife = t->bytelife, .enctype = t->etype, .ticket = {gk->token, (uint32_t)gk->len}};
	const struct etype *e = etype_of(t->etype);
	if (!e)
		x->err = AFS_EWEAKKEY;
	else
		w.key = (struct xdr_bytes){t->k0, e->key_len};
	xdr_put_tokenYfsRxgk(x, &w);
}

static void put_kad(const struct rxkad_token *kad, int32_t viceid, struct xdr_out *x)
{
	struct tokenRxkad w = {.type = TYPE_RXKAD, .viceid = viceid, .kvno = kad->kvno, .begintime = clk_wire_sec(kad->begins),
		.endtime = clk_wire_sec(kad->expires), .ticket = {kad->ticket, (uint32_t)kad->ticket_len}};
	memcpy(w.key, kad->session_key, sizeof(w.key));
	xdr_put_tokenRxkad(x, &w);
	explicit_bzero(&w, sizeof(w));
}

afs_err token_blob_put(const struct rx_token *t, const char *cell, int32_t viceid, uint8_t *out, size_t cap, size_t *len)
{
	uint8_t inner[TOKEN_BLOB_MAX];
	struct tokenOpaque one[2];
	struct setTokenData set = {.cell = XDR_STR_OF(cell), .tokens = {one, 0}};
	struct xdr_out x = {.p = inner, .end = inner + sizeof(inner)}, y = {.p = out, .end = out + cap};
	if (!rx_token_any(t))
		return AFS_ENOENT;
	for (int gk = 1; gk >= 0; gk--) {
		const uint8_t *at = x.p;
		if (gk ? !rx_token_has_gk(t) : !rx_token_has_kad(t))
			continue;
		if (gk)
			put_gk(&t->gk, &x);
		else
			put_kad(&t->kad, viceid, &x);
		one[set.tokens.n++] = (struct tokenOpaque){{at, (uint32_t)(x.p - at)}};
	}
	if (!x.err)
		xdr_put_setTokenData(&y, &set);
	explicit_bzero(inner, sizeof(inner));
	if (x.err || y.err)
		return AFS_ETICKETLEN;
	*len = (size_t)(y.p - out);
	return AFS_OK;
}

static afs_err get_gk(struct xdr_in *x, struct rxgk_token *out)
{
	struct tokenYfsRxgk w = {};
	xdr_get_tokenYfsRxgk(x, &w);
	const struct etype *e = etype_of((int32_t)w.enctype);
	if (x->err || w.enctype != (int32_t)w.enctype || !e || w.key.len != e->key_len || !w.ticket.len || w.level < RX_LEVEL_CLEAR ||
		w.level > RX_LEVEL_CRYPT || w.lifetime < 0 || w.lifetime > UINT32_MAX || w.bytelife < 0 || w.bytelife > 63 || w.endtime < 0 ||
		w.endtime > INT64_MAX / WIRE_UNIT)
		return AFS_EDECODE;
	*out = (struct rxgk_token){.terms = {.etype = e->number, .level = (enum rx_sec_level)w.level, .lifetime = (uint32_t)w.lifetime,
					   .bytelife = (uint32_t)w.bytelife, .expires = w.endtime * WIRE_UNIT}, .token = w.ticket.p, .len = w.ticket.len};
	memcpy(out->terms.k0, w.key.p, w.key.len);
	return AFS_OK;
}

static afs_err get_kad(struct xdr_in *x, struct token_blob *out)
{
	struct tokenRxkad w = {};
	xdr_get_tokenRxkad(x, &w);
	if (x->err || !w.ticket.len)
		return AFS_EDECODE;
	out->token.kad = (struct rxkad_token){.kvno = w.kvno, .ticket = w.ticket.p, .ticket_len = w.ticket.len,
		.begins = SEC((int64_t)w.begintime), .expires = SEC((int64_t)w.endtime)};
	memcpy(out->token.kad.session_key, w.key, sizeof(w.key));
	out->viceid = w.viceid;
	explicit_bzero(&w, sizeof(w));
	return AFS_OK;
}

afs_err token_blob_get(const uint8_t *p, size_t n, struct arena *arena, struct token_blob *out)
{
	struct xdr_in x = {p, p + n, arena, AFS_OK};
	struct setTokenData set = {};
	struct token_blob got = {};
	xdr_get_setTokenData(&x, &set);
	if (x.err || set.cell.len >= sizeof(got.cell))
		return AFS_EDECODE;
	memcpy(got.cell, set.cell.p, set.cell.len);
	for (uint32_t i = 0; i < set.tokens.n; i++) {
		struct xdr_bytes b = set.tokens.v[i].token;
		struct xdr_in y = {b.p, b.p + b.len, arena, AFS_OK};
		uint32_t type = b.len < 4 ? 0 : be32_get(b.p);
		if (type == TYPE_YFS_RXGK && !rx_token_has_gk(&got.token))
			TRY(get_gk(&y, &got.token.gk));
		else if (type == TYPE_RXKAD && !rx_token_has_kad(&got.token))
			TRY(get_kad(&y, &got));
	}
	if (!rx_token_any(&got.token))
		return AFS_ENOENT;
	*out = got;
	return AFS_OK;
}
