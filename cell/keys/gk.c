/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The keys in which rxgk's tokens are sealed, and the tokens.  The set is filled when it is opened and
 * grows under the lock; sealing and opening happens outside it, with a copy of the key. */
#include "cell/keys/gk.h"

#include "cell/base/rand.h"
#include "cell/keys/set.h"
#include "cell/keys/ticket.h"
#include "cell/proto/gk.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	USE_TOKEN = 1036,
	KEY_TYPE_RXGK = 1,
	FILE_MAX = 64 << 10,
	FIRST_ETYPE = 18,
	INSIDE_MAX = 8192,
};

struct gk {
	bool allow_dotted;
	struct mtx lock;
	struct keyset set; /* GUARDED_BY(lock) */
};

/* --- the file ----------------------------------------------------------------------------------- */

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return be32toh(v);
}

static void put32(struct buf *b, uint32_t v)
{
	v = htobe32(v);
	buf_put(b, &v, 4);
}

/* Records of other types are not ours and are passed over. */
static bool parse(struct gk *gk, const uint8_t *p, size_t n)
{
	if (n < 4)
		return false;
	uint32_t count = get32(p);
	size_t at = 4;
	for (; count; count--) {
		if (n - at < 4)
			return false;
		const uint32_t meta = get32(p + at);
		if (meta < 16 || meta > n - at || n - at - meta < 4)
			return false;
		const uint32_t type = get32(p + at + 4), kvno = get32(p + at + 8), etype = get32(p + at + 12);
		const uint32_t len = get32(p + at + meta);
		at += meta + 4;
		if (len > n - at)
			return false;
		if (type == KEY_TYPE_RXGK) {
			afs_err err = gk_add(gk, (int32_t)kvno, (int32_t)etype, p + at, len);
			if (err != AFS_OK && err != AFS_EWEAKKEY)
				return false;
		}
		at += len;
	}
	return true;
}

static afs_err make_file(const char *path, struct buf *why)
{
	uint8_t key[32];
	CLEANUP(buf) struct buf b = {};
	rand_bytes(key, sizeof(key));
	const uint32_t words[] = {1, 16, KEY_TYPE_RXGK, 1, FIRST_ETYPE, sizeof(key)};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put32(&b, words[i]);
	buf_put(&b, key, sizeof(key));
	explicit_bzero(key, sizeof(key));
	const char *slash = strrchr(path, '/');
	CLEANUP(str) char *dir = slash ? mem_strndup(path, (size_t)(slash - path)) : mem_strdup(".");
	if (!dir)
		return AFS_ENOMEM;
	afs_err err = keys_write_file(dir, slash ? slash + 1 : path, &b, why);
	if (b.data)
		explicit_bzero(b.data, b.len);
	return err;
}

static afs_err read_file(struct gk *gk, const char *path, struct buf *why)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		const int eno = errno;
		if (eno != ENOENT)
			keys_why(why, "%s: %s", path, strerror(eno));
		return afs_err_from_errno(eno);
	}
	uint8_t *bytes = mem_new_array(FILE_MAX, uint8_t);
	if (!bytes)
		return AFS_ENOMEM;
	size_t n = 0;
	ssize_t got = 0;
	while (n < FILE_MAX && (got = read(fd, bytes + n, FILE_MAX - n)) > 0)
		n += (size_t)got;
	const bool ok = got == 0 && parse(gk, bytes, n);
	explicit_bzero(bytes, n);
	mem_free(bytes);
	if (ok)
		return AFS_OK;
	keys_why(why, "%s does not hold rxgk keys; bring back a copy, or remove it: a new key is made, and tokens of the old "
		      "one must be obtained again", path);
	return AFS_ECORRUPT;
}

afs_err gk_open(const struct gk_config *config, struct gk **out, struct buf *why)
{
	struct gk *gk = mem_new(struct gk);
	if (!gk)
		return AFS_ENOMEM;
	mtx_init(&gk->lock, RANK_LEAF);
	gk->allow_dotted = config->allow_dotted;
	afs_err err = AFS_OK;
	if (config->path) {
		err = read_file(gk, config->path, why);
		if (err == AFS_ENOENT)
			err = make_file(config->path, why);
		if (err == AFS_OK && !gk->set.n)
			err = read_file(gk, config->path, why);
	}
	if (err != AFS_OK) {
		gk_close(gk);
		return err;
	}
	*out = gk;
	return AFS_OK;
}

void gk_close(struct gk *gk)
{
	if (!gk)
		return;
	mtx_fini(&gk->lock);
	explicit_bzero(gk, sizeof(*gk));
	mem_free(gk);
}

afs_err gk_add(struct gk *gk, int32_t kvno, int32_t etype, const uint8_t *bytes, size_t len)
{
	const struct etype *e = etype_of(etype);
	if (!e)
		return AFS_EWEAKKEY;
	if (len != e->key_len)
		return AFS_EINVAL;
	afs_err err = AFS_OK;
	mtx_lock(&gk->lock);
	size_t at = 0;
	while (at < gk->set.n && gk->set.key[at].kvno > kvno)
		at++;
	for (size_t i = 0; i < gk->set.n && !err; i++)
		if (gk->set.key[i].kvno == kvno && gk->set.key[i].enctype == etype)
			err = AFS_EEXIST;
	if (!err && gk->set.n == KEYS_MAX)
		err = AFS_ENOSPC;
	if (!err) {
		struct key *k = &gk->set.key[at];
		memmove(k + 1, k, (gk->set.n - at) * sizeof(*k));
		*k = (struct key){.kvno = kvno, .enctype = etype, .len = (uint32_t)len};
		memcpy(k->bytes, bytes, len);
		gk->set.n++;
	}
	mtx_unlock(&gk->lock);
	return err;
}

/* --- names --------------------------------------------------------------------------------------- */

static const uint8_t krb5_oid[] = {0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02};

/* "user/instance@REALM" with backslashes before what is no separator, as an AFS name. */
static afs_err name_of_principal(const struct gk *gk, const char *p, size_t n, struct rxgk_ticket *out)
{
	enum { PARTS = 3 };
	char text[PARTS + 1][2 * RX_NAME_MAX];
	size_t len[PARTS + 1] = {}, part = 0;
	bool realm = false;
	for (size_t i = 0; i < n; i++) {
		char c = p[i];
		if (c == '\\' && i + 1 < n) {
			c = p[++i];
		} else if (c == '/' && !realm) {
			if (++part == PARTS)
				return AFS_EBADTICKET;
			continue;
		} else if (c == '@') {
			if (realm)
				return AFS_EBADTICKET;
			realm = true;
			continue;
		}
		const size_t to = realm ? PARTS : part;
		if (!c || len[to] == sizeof(text[to]))
			return AFS_EBADTICKET;
		text[to][len[to]++] = c;
	}
	struct der_bytes comp[PARTS];
	for (size_t i = 0; i <= part; i++)
		comp[i] = (struct der_bytes){(const uint8_t *)text[i], len[i]};
	struct rxkad_ticket t = {};
	TRY(ticket_name(comp, part + 1, (struct der_bytes){(const uint8_t *)text[PARTS], len[PARTS]}, gk->allow_dotted, &t));
	memcpy(out->name, t.name, sizeof(out->name));
	memcpy(out->instance, t.instance, sizeof(out->instance));
	memcpy(out->cell, t.cell, sizeof(out->cell));
	return out->name[0] && out->cell[0] ? AFS_OK : AFS_EBADTICKET;
}

static afs_err name_of(const struct gk *gk, const struct gk_name *id, struct rxgk_ticket *out)
{
	const uint8_t *p = id->data.p;
	const size_t head = 4 + sizeof(krb5_oid) + 4;
	if (id->kind != GK_NAME_GSS || id->data.len < head || p[0] != 4 || p[1] != 1 || p[2] != 0 || p[3] != sizeof(krb5_oid) ||
		memcmp(p + 4, krb5_oid, sizeof(krb5_oid)) != 0 || get32(p + head - 4) != id->data.len - head)
		return AFS_EBADTICKET;
	return name_of_principal(gk, (const char *)p + head, id->data.len - head, out);
}

/* --- tokens ---------------------------------------------------------------------------------------- */

static int64_t ticks(wall_ns t) { return t / 100; }
static wall_ns wall_of(int64_t t) { return t <= 0 ? 0 : t > INT64_MAX / 100 ? INT64_MAX : t * 100; }

static bool key_find(struct gk *gk, int32_t kvno, int32_t etype, struct key *out)
{
	bool found = false;
	mtx_lock(&gk->lock);
	for (size_t i = 0; i < gk->set.n && !found; i++)
		if (gk->set.key[i].kvno == kvno && gk->set.key[i].enctype == etype) {
			*out = gk->set.key[i];
			found = true;
		}
	mtx_unlock(&gk->lock);
	return found;
}

static bool key_newest(struct gk *gk, struct key *out)
{
	mtx_lock(&gk->lock);
	const bool found = gk->set.n;
	if (found)
		*out = gk->set.key[0];
	mtx_unlock(&gk->lock);
	return found;
}

/* The layouts differ in one field; inside it is all one. */
static void inside_get(struct xdr_in *x, uint8_t index, struct gk_inside_yfs *in)
{
	if (index == RX_SEC_YFS_RXGK) {
		xdr_get_gk_inside_yfs(x, in);
		return;
	}
	struct gk_inside_openafs o;
	xdr_get_gk_inside_openafs(x, &o);
	*in = (struct gk_inside_yfs){.enctype = o.enctype, .k0 = o.k0, .level = o.level, .lifetime = o.lifetime,
		.bytelife = o.bytelife, .expiration = o.expiration};
	in->identities.v = o.identities.v;
	in->identities.n = o.identities.n;
}

static afs_err judge(const struct gk *gk, const struct gk_inside_yfs *in, wall_ns now, struct rxgk_ticket *out)
{
	const struct etype *e = etype_of(in->enctype);
	if (!e || in->k0.len != e->key_len || in->level < 0 || in->level > RX_LEVEL_CRYPT)
		return AFS_EBADTICKET;
	if (in->starttime > 0 && wall_of(in->starttime) > now + SEC(900))
		return AFS_ENOAUTH; /* a clock that is off, as for Kerberos tickets */
	out->terms = (struct rxgk_terms){.etype = in->enctype,
		.level = (enum rx_sec_level)in->level,
		.lifetime = in->lifetime,
		.bytelife = in->bytelife,
		.expires = wall_of(in->expiration)};
	memcpy(out->terms.k0, in->k0.p, in->k0.len);
	if (!in->identities.n) {
		strcpy(out->name, "afs"); /* printed by who has the key */
		return AFS_OK;
	}
	return name_of(gk, &in->identities.v[0], out);
}

/* Opens the token and hands its inside on; `inside` lives as long as the arena and `plain`. */
static afs_err open_token(struct gk *gk, uint8_t index, const uint8_t *token, size_t len, struct arena *arena, uint8_t *plain,
	struct gk_inside_yfs *inside)
{
	struct gk_container c;
	struct xdr_in x = {.p = token, .end = token + len, .arena = arena};
	struct key key;
	xdr_get_gk_container(&x, &c);
	if (x.err || c.sealed.len < ETYPE_CONFOUNDER || c.sealed.len > GK_TOKEN_MAX)
		return AFS_EBADTICKET;
	if (!key_find(gk, c.kvno, c.enctype, &key))
		return AFS_EUNKNOWNKEY;
	const struct etype *e = etype_of(key.enctype);
	struct etype_key *k = etype_key_new(e, key.bytes, USE_TOKEN);
	explicit_bzero(&key, sizeof(key));
	if (!k)
		return AFS_ENOMEM;
	memcpy(plain, c.sealed.p, c.sealed.len);
	const bool opened = etype_decrypt(k, plain, c.sealed.len);
	etype_key_free(k);
	if (!opened)
		return AFS_EBADTICKET;
	x = (struct xdr_in){.p = plain + ETYPE_CONFOUNDER, .end = plain + c.sealed.len - e->mac_len, .arena = arena};
	inside_get(&x, index, inside);
	return x.err ? AFS_EBADTICKET : AFS_OK;
}

afs_err gk_read_token(
	void *ctx, uint8_t index, const uint8_t *token, size_t len, wall_ns now, struct rxgk_ticket *out)
{
	struct gk *gk = ctx;
	uint8_t plain[GK_TOKEN_MAX];
	struct gk_inside_yfs inside;
	struct arena arena;
	arena_init(&arena, 2 * GK_TOKEN_MAX);
	afs_err err = open_token(gk, index, token, len, &arena, plain, &inside);
	if (err == AFS_OK)
		err = judge(gk, &inside, now, out);
	explicit_bzero(plain, MIN(len, sizeof(plain)));
	arena_fini(&arena);
	return err;
}

void gk_token_fini(struct gk_token *t)
{
	if (t->token)
		explicit_bzero(t->token, t->len);
	mem_free(t->token);
	explicit_bzero(t, sizeof(*t));
}

static afs_err seal(struct gk *gk, uint8_t index, const struct gk_inside_yfs *in, struct gk_token *out)
{
	struct key key;
	uint8_t sealed[INSIDE_MAX];
	if (!key_newest(gk, &key))
		return AFS_ENOENT;
	const struct etype *e = etype_of(key.enctype);
	struct xdr_out x = {.p = sealed + ETYPE_CONFOUNDER, .end = sealed + sizeof(sealed) - ETYPE_MAC_MAX};
	if (index == RX_SEC_YFS_RXGK) {
		xdr_put_gk_inside_yfs(&x, in);
	} else {
		struct gk_inside_openafs o = {.enctype = in->enctype, .k0 = in->k0, .level = in->level, .lifetime = in->lifetime,
			.bytelife = in->bytelife, .expiration = in->expiration};
		o.identities.v = in->identities.v;
		o.identities.n = in->identities.n;
		xdr_put_gk_inside_openafs(&x, &o);
	}
	struct etype_key *k = x.err ? NULL : etype_key_new(e, key.bytes, USE_TOKEN);
	const size_t len = (size_t)(x.p - sealed);
	rand_bytes(sealed, ETYPE_CONFOUNDER);
	const bool ok = k && etype_encrypt(k, sealed, len);
	etype_key_free(k);
	const struct gk_container c = {
		.kvno = key.kvno, .enctype = key.enctype, .sealed = {sealed, (uint32_t)(len + e->mac_len)}};
	explicit_bzero(&key, sizeof(key));
	const size_t room = 12 + c.sealed.len + 4;
	out->token = ok ? mem_new_array(room, uint8_t) : NULL;
	if (!out->token) {
		explicit_bzero(sealed, sizeof(sealed));
		return x.err ? AFS_ERANGE : AFS_ENOMEM;
	}
	x = (struct xdr_out){.p = out->token, .end = out->token + room};
	xdr_put_gk_container(&x, &c);
	out->len = (size_t)(x.p - out->token);
	return AFS_OK;
}

afs_err gk_make_token(struct gk *gk, uint8_t index, const struct rxgk_terms *terms, const uint8_t *name,
	size_t name_len, const char *display, wall_ns now, struct gk_token *out)
{
	const struct etype *e = etype_of(terms->etype);
	struct gk_name id = {.kind = GK_NAME_GSS, .data = {name, (uint32_t)name_len}, .display = {(const uint8_t *)display, display ? (uint32_t)strlen(display) : 0}};
	struct gk_inside_yfs in = {.enctype = terms->etype, .level = terms->level, .starttime = ticks(now), .lifetime = terms->lifetime,
		.bytelife = terms->bytelife, .expiration = ticks(terms->expires)};
	if (!e)
		return AFS_EWEAKKEY;
	in.k0 = (struct xdr_bytes){terms->k0, e->key_len};
	in.identities.v = &id;
	in.identities.n = name_len ? 1 : 0;
	TRY(seal(gk, index, &in, out));
	out->terms = *terms;
	return AFS_OK;
}

/* RFC 6113 §5.1, KRB-FX-CF2, with the peppers of rxgk. */
static afs_err mix(const struct gk_inside_yfs *a, const struct gk_inside_yfs *b, uint8_t out[ETYPE_KEY_MAX])
{
	krb5_context ctx;
	krb5_keyblock *mixed = NULL;
	krb5_keyblock ka = {.enctype = a->enctype, .length = a->k0.len, .contents = (krb5_octet *)(uintptr_t)a->k0.p};
	krb5_keyblock kb = {.enctype = b->enctype, .length = b->k0.len, .contents = (krb5_octet *)(uintptr_t)b->k0.p};
	if (keys_krb5_bare(&ctx))
		return AFS_ENOMEM;
	krb5_error_code code = krb5_c_fx_cf2_simple(ctx, &ka, "AFS", &kb, "rxgk", &mixed);
	if (!code)
		memcpy(out, mixed->contents, mixed->length);
	krb5_free_keyblock(ctx, mixed);
	krb5_free_context(ctx);
	return code ? AFS_EBADTICKET : AFS_OK;
}

static uint32_t shorter(uint32_t a, uint32_t b) { return !a ? b : !b ? a : MIN(a, b); }

afs_err gk_combine(struct gk *gk, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
	enum rx_sec_level level, wall_ns now, struct gk_token *out)
{
	uint8_t plain[2][GK_TOKEN_MAX];
	struct gk_inside_yfs in[2];
	struct rxgk_ticket ticket[2] = {};
	struct arena arena;
	arena_init(&arena, 4 * GK_TOKEN_MAX);
	afs_err err = open_token(gk, RX_SEC_YFS_RXGK, a, a_len, &arena, plain[0], &in[0]);
	if (err == AFS_OK)
		err = open_token(gk, RX_SEC_YFS_RXGK, b, b_len, &arena, plain[1], &in[1]);
	for (int i = 0; i < 2 && err == AFS_OK; i++) {
		err = judge(gk, &in[i], now, &ticket[i]);
		if (err == AFS_OK && ticket[i].terms.expires && ticket[i].terms.expires <= now)
			err = AFS_EEXPIRED;
	}
	struct rxgk_terms terms = {};
	if (err == AFS_OK) {
		const struct rxgk_terms *t = &ticket[0].terms, *u = &ticket[1].terms;
		terms = (struct rxgk_terms){.etype = t->etype, .level = level, .lifetime = shorter(t->lifetime, u->lifetime),
			.bytelife = shorter(t->bytelife, u->bytelife),
			.expires = !t->expires ? u->expires : !u->expires ? t->expires : MIN(t->expires, u->expires)};
		err = mix(&in[0], &in[1], terms.k0);
	}
	if (err == AFS_OK) {
		struct gk_inside_yfs made = in[0];
		made.k0 = (struct xdr_bytes){terms.k0, etype_of(terms.etype)->key_len};
		made.level = level;
		made.lifetime = terms.lifetime;
		made.bytelife = terms.bytelife;
		made.expiration = ticks(terms.expires);
		err = seal(gk, RX_SEC_YFS_RXGK, &made, out);
		if (err == AFS_OK)
			out->terms = terms;
	}
	explicit_bzero(plain, sizeof(plain));
	explicit_bzero(ticket, sizeof(ticket));
	explicit_bzero(&terms, sizeof(terms));
	arena_fini(&arena);
	return err;
}
