/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Encryption types: how keys are derived, and messages sealed.
 *
 * OpenSSL's cipher contexts carry state, so a key owns a few of them and a thread borrows one for a
 * message.  For the hashes the old interface is used: its contexts are plain memory, so that the state
 * after the HMAC pads is a copy of some 100 bytes; the new one allocates three times for each HMAC. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "rx/sec/etype.h"

#include <endian.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { BLOCK = 16, SLOTS = 4, PAD_MAX = 128, HASH_MAX = 64 };
enum { USE_CHECKSUM = 0x99, USE_ENCRYPT = 0xaa, USE_INTEGRITY = 0x55 };

/* --- rows ------------------------------------------------------------------------------------ */

enum mac { MAC_SHA1, MAC_SHA256, MAC_SHA384, MAC_CMAC };

struct kind {
	struct etype pub;
	const EVP_CIPHER *(*cbc)(void);
	enum mac mac;
	uint8_t mac_key_len;
	bool seals_cipher; /* the MAC covers IV and ciphertext (RFC 8009), else confounder and message */
};

#ifdef OPENSSL_NO_CAMELLIA
#define CAMELLIA(bits) NULL
#else
#define CAMELLIA(bits) EVP_camellia_##bits##_cbc
#endif
static const struct kind kinds[] = {
	{{17, "aes128-cts-hmac-sha1-96", 16, 12}, EVP_aes_128_cbc, MAC_SHA1, 16, false},
	{{18, "aes256-cts-hmac-sha1-96", 32, 12}, EVP_aes_256_cbc, MAC_SHA1, 32, false},
	{{19, "aes128-cts-hmac-sha256-128", 16, 16}, EVP_aes_128_cbc, MAC_SHA256, 16, true},
	{{20, "aes256-cts-hmac-sha384-192", 32, 24}, EVP_aes_256_cbc, MAC_SHA384, 24, true},
	{{25, "camellia128-cts-cmac", 16, 16}, CAMELLIA(128), MAC_CMAC, 16, false},
	{{26, "camellia256-cts-cmac", 32, 16}, CAMELLIA(256), MAC_CMAC, 32, false},
};

const struct etype *etype_of(int32_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].pub.number == number && kinds[i].cbc)
			return &kinds[i].pub;
	return NULL;
}

static const struct kind *kind_of(const struct etype *e)
{
	return container_of((struct etype *)(uintptr_t)e, struct kind, pub);
}

/* --- hashes ---------------------------------------------------------------------------------- */

union hash {
	SHA_CTX sha1;
	SHA256_CTX sha256;
	SHA512_CTX sha512;
};

static void hash_init(union hash *h, enum mac m)
{
	if (m == MAC_SHA1)
		SHA1_Init(&h->sha1);
	else if (m == MAC_SHA256)
		SHA256_Init(&h->sha256);
	else
		SHA384_Init(&h->sha512);
}

static void hash_add(union hash *h, enum mac m, const void *p, size_t n)
{
	if (m == MAC_SHA1)
		SHA1_Update(&h->sha1, p, n);
	else if (m == MAC_SHA256)
		SHA256_Update(&h->sha256, p, n);
	else
		SHA384_Update(&h->sha512, p, n);
}

static size_t hash_end(union hash *h, enum mac m, uint8_t out[HASH_MAX])
{
	if (m == MAC_SHA1)
		return SHA1_Final(out, &h->sha1), SHA_DIGEST_LENGTH;
	if (m == MAC_SHA256)
		return SHA256_Final(out, &h->sha256), SHA256_DIGEST_LENGTH;
	return SHA384_Final(out, &h->sha512), SHA384_DIGEST_LENGTH;
}

/* The states after the inner and the outer pad. */
struct hmac {
	union hash inner, outer;
};

static void hmac_key(struct hmac *h, enum mac m, const uint8_t *key, size_t len)
{
	const size_t block = m == MAC_SHA384 ? SHA512_CBLOCK : SHA_CBLOCK;
	uint8_t pad[PAD_MAX] = {};
	memcpy(pad, key, len);
	for (size_t i = 0; i < block; i++)
		pad[i] ^= 0x36;
	hash_init(&h->inner, m);
	hash_add(&h->inner, m, pad, block);
	for (size_t i = 0; i < block; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	hash_init(&h->outer, m);
	hash_add(&h->outer, m, pad, block);
	explicit_bzero(pad, sizeof(pad));
}

struct piece {
	const void *p;
	size_t n;
};

static size_t hmac_of(const struct hmac *key, enum mac m, const struct piece *in, size_t n, uint8_t out[HASH_MAX])
{
	union hash h = key->inner;
	for (size_t i = 0; i < n; i++)
		hash_add(&h, m, in[i].p, in[i].n);
	size_t len = hash_end(&h, m, out);
	h = key->outer;
	hash_add(&h, m, out, len);
	return hash_end(&h, m, out);
}

/* --- ciphers ---------------------------------------------------------------------------------- */

/* CBC contexts of one key, for one direction. */
struct cipher {
	struct slot {
		atomic_flag busy;
		_Atomic(EVP_CIPHER_CTX *) ctx; /* made at first use; of the first slot at once */
	} slot[SLOTS];
	const EVP_CIPHER *cbc;
	uint8_t key[ETYPE_KEY_MAX];
	bool encrypts;
};

static const uint8_t zero[BLOCK];

static EVP_CIPHER_CTX *context(const struct cipher *c)
{
	EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
	if (x && EVP_CipherInit_ex(x, c->cbc, NULL, c->key, zero, c->encrypts) && EVP_CIPHER_CTX_set_padding(x, 0))
		return x;
	EVP_CIPHER_CTX_free(x);
	return NULL;
}

static bool cipher_init(struct cipher *c, const struct kind *k, const uint8_t *key, bool encrypts)
{
	c->cbc = k->cbc();
	c->encrypts = encrypts;
	memcpy(c->key, key, k->pub.key_len);
	for (int i = 0; i < SLOTS; i++)
		atomic_flag_clear(&c->slot[i].busy);
	atomic_store(&c->slot[0].ctx, context(c));
	return c->slot[0].ctx;
}

static void cipher_fini(struct cipher *c)
{
	for (int i = 0; i < SLOTS; i++)
		EVP_CIPHER_CTX_free(c->slot[i].ctx);
	explicit_bzero(c->key, sizeof(c->key));
}

/* A context nobody else uses, its chain at zero.  There are more of them than cores usually seal with
 * one key; when all are lent, the others need some microseconds. */
static struct slot *borrow(struct cipher *c)
{
	for (;; sched_yield())
		for (int i = 0; i < SLOTS; i++) {
			struct slot *s = &c->slot[i];
			if (atomic_flag_test_and_set_explicit(&s->busy, memory_order_acquire))
				continue;
			if (!s->ctx)
				s->ctx = context(c);
			if (s->ctx)
				return s;
			atomic_flag_clear_explicit(&s->busy, memory_order_release);
		}
}

static void give_back(struct slot *s) { atomic_flag_clear_explicit(&s->busy, memory_order_release); }

static bool restart(EVP_CIPHER_CTX *x) { return EVP_CipherInit_ex(x, NULL, NULL, NULL, zero, -1); }

static bool update(EVP_CIPHER_CTX *x, uint8_t *out, const uint8_t *in, size_t n)
{
	int done;
	return !n || (EVP_CipherUpdate(x, out, &done, in, (int)n) && done == (int)n);
}

/* CBC with ciphertext stealing, always with the last two blocks exchanged (CS3); one block alone is as
 * it is.  In place. */
static bool cts_encrypt(struct cipher *c, uint8_t *p, size_t len)
{
	const size_t whole = (len - 1) / BLOCK * BLOCK, rest = len - whole;
	uint8_t last[BLOCK] = {};
	memcpy(last, p + whole, rest);
	struct slot *s = borrow(c);
	bool ok = restart(s->ctx) && update(s->ctx, p, p, whole) && update(s->ctx, last, last, BLOCK);
	give_back(s);
	if (!ok)
		return false;
	if (!whole) {
		memcpy(p, last, BLOCK);
		return true;
	}
	memcpy(p + whole, p + whole - BLOCK, rest);
	memcpy(p + whole - BLOCK, last, BLOCK);
	return true;
}

static bool cts_decrypt(struct cipher *c, uint8_t *p, size_t len)
{
	const size_t whole = (len - 1) / BLOCK * BLOCK, rest = len - whole;
	struct slot *s = borrow(c);
	bool ok;
	if (!whole) {
		ok = restart(s->ctx) && update(s->ctx, p, p, BLOCK);
	} else {
		uint8_t x[BLOCK], stolen[BLOCK], *second = p + whole - BLOCK;
		ok = restart(s->ctx) && update(s->ctx, x, second, BLOCK);
		memcpy(stolen, p + whole, rest);
		memcpy(stolen + rest, x + rest, BLOCK - rest);
		for (size_t i = 0; i < rest; i++)
			p[whole + i] ^= x[i];
		ok = ok && restart(s->ctx) && update(s->ctx, p, p, whole - BLOCK) &&
		     update(s->ctx, second, stolen, BLOCK);
	}
	give_back(s);
	return ok;
}

/* --- CMAC -------------------------------------------------------------------------------------- */

struct cmac {
	struct cipher cbc;
	uint8_t k1[BLOCK], k2[BLOCK];
};

static void twice(uint8_t out[BLOCK], const uint8_t in[BLOCK])
{
	const uint8_t carry = in[0] >> 7;
	for (int i = 0; i < BLOCK; i++)
		out[i] = (uint8_t)(in[i] << 1 | (i + 1 < BLOCK ? in[i + 1] >> 7 : 0));
	out[BLOCK - 1] ^= carry ? 0x87 : 0;
}

static bool cmac_key(struct cmac *m, const struct kind *k, const uint8_t *key)
{
	uint8_t l[BLOCK] = {};
	if (!cipher_init(&m->cbc, k, key, true))
		return false;
	struct slot *s = borrow(&m->cbc);
	bool ok = restart(s->ctx) && update(s->ctx, l, l, BLOCK);
	give_back(s);
	twice(m->k1, l);
	twice(m->k2, m->k1);
	return ok;
}

/* The chain's value after all pieces: the last block, whole or not, goes through its own subkey. */
static bool cmac_of(struct cmac *m, const struct piece *in, size_t n, uint8_t out[BLOCK])
{
	uint8_t block[BLOCK];
	size_t used = 0;
	struct slot *s = borrow(&m->cbc);
	bool ok = restart(s->ctx);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = in[i].p;
		for (size_t left = in[i].n; left;) {
			if (used == BLOCK) {
				ok = ok && update(s->ctx, block, block, BLOCK);
				used = 0;
			}
			const size_t k = MIN(left, BLOCK - used);
			memcpy(block + used, p, k);
			used += k, p += k, left -= k;
		}
	}
	const uint8_t *sub = used == BLOCK ? m->k1 : m->k2;
	if (used < BLOCK) {
		block[used] = 0x80;
		memset(block + used + 1, 0, BLOCK - used - 1);
	}
	for (int i = 0; i < BLOCK; i++)
		block[i] ^= sub[i];
	ok = ok && update(s->ctx, out, block, BLOCK);
	give_back(s);
	return ok;
}

/* --- derivation ------------------------------------------------------------------------------- */

/* RFC 3961 §5.1: the bits of `in`, rotated by 13 at each repetition, added up in ones' complement. */
static void n_fold(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
	size_t a = in_len, b = out_len;
	while (b) {
		size_t t = a % b;
		a = b, b = t;
	}
	const size_t lcm = in_len * out_len / a, bits = in_len * 8;
	unsigned carry = 0;
	memset(out, 0, out_len);
	for (size_t i = lcm; i-- > 0;) {
		/* the byte of the repeated, rotated input at place i */
		const size_t first = (bits - 13 * (i / in_len) % bits + i % in_len * 8) % bits;
		const unsigned two = (unsigned)in[first / 8] << 8 | in[(first / 8 + 1) % in_len];
		carry += out[i % out_len] + (two >> (8 - first % 8) & 0xff);
		out[i % out_len] = (uint8_t)carry;
		carry >>= 8;
	}
	for (size_t i = out_len; carry && i-- > 0;) {
		carry += out[i];
		out[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* One block after another, each the cipher of the one before. */
static bool derive_by_fold(const struct kind *k, const uint8_t *key, const uint8_t *label, size_t label_len,
	uint8_t *out, size_t out_len)
{
	struct cipher c = {};
	uint8_t block[BLOCK];
	n_fold(label, label_len, block, sizeof(block));
	bool ok = cipher_init(&c, k, key, true);
	for (size_t at = 0; ok && at < out_len; at += BLOCK) {
		struct slot *s = borrow(&c);
		ok = restart(s->ctx) && update(s->ctx, block, block, BLOCK);
		give_back(s);
		memcpy(out + at, block, MIN(out_len - at, (size_t)BLOCK));
	}
	cipher_fini(&c);
	return ok;
}

/* RFC 6803 §3: feedback mode. */
static bool derive_by_cmac(const struct kind *k, const uint8_t *key, const uint8_t *label, size_t label_len,
	uint8_t *out, size_t out_len)
{
	struct cmac m = {};
	uint8_t block[BLOCK] = {};
	const uint32_t bits = htobe32((uint32_t)out_len * 8);
	bool ok = cmac_key(&m, k, key);
	for (uint32_t i = 0; ok && i * BLOCK < out_len; i++) {
		const uint32_t count = htobe32(i + 1);
		const struct piece in[] = {{block, BLOCK}, {&count, 4}, {label, label_len}, {"", 1}, {&bits, 4}};
		ok = cmac_of(&m, in, ARRAY_SIZE(in), block);
		memcpy(out + i * BLOCK, block, MIN(out_len - i * BLOCK, (size_t)BLOCK));
	}
	cipher_fini(&m.cbc);
	return ok;
}

/* RFC 8009 §3: one HMAC is always enough. */
static bool derive_by_hmac(const struct kind *k, const uint8_t *key, const uint8_t *label, size_t label_len,
	const void *context, size_t context_len, uint8_t *out, size_t out_len)
{
	struct hmac h;
	uint8_t full[HASH_MAX];
	const uint32_t one = htobe32(1), bits = htobe32((uint32_t)out_len * 8);
	const struct piece in[] = {{&one, 4}, {label, label_len}, {"", 1}, {context, context_len}, {&bits, 4}};
	hmac_key(&h, k->mac, key, k->pub.key_len);
	hmac_of(&h, k->mac, in, ARRAY_SIZE(in), full);
	memcpy(out, full, out_len);
	explicit_bzero(&h, sizeof(h));
	explicit_bzero(full, sizeof(full));
	return true;
}

static bool derive(const struct kind *k, const uint8_t *key, const void *label, size_t label_len, uint8_t *out,
	size_t out_len)
{
	if (k->mac == MAC_SHA1)
		return derive_by_fold(k, key, label, label_len, out, out_len);
	if (k->mac == MAC_CMAC)
		return derive_by_cmac(k, key, label, label_len, out, out_len);
	return derive_by_hmac(k, key, label, label_len, NULL, 0, out, out_len);
}

/* One PRF output: *len bytes, at most HASH_MAX. */
static bool prf(const struct kind *k, const uint8_t *key, const struct piece in[2], uint8_t out[HASH_MAX], size_t *len)
{
	uint8_t sub[ETYPE_KEY_MAX];
	bool ok;
	*len = BLOCK;
	if (k->mac == MAC_SHA1) {
		union hash h;
		struct cipher c = {};
		hash_init(&h, MAC_SHA1);
		hash_add(&h, MAC_SHA1, in[0].p, in[0].n);
		hash_add(&h, MAC_SHA1, in[1].p, in[1].n);
		hash_end(&h, MAC_SHA1, out); /* of 20 bytes the first block is used */
		ok = derive(k, key, "prf", 3, sub, k->pub.key_len) && cipher_init(&c, k, sub, true);
		if (ok) {
			struct slot *s = borrow(&c);
			ok = restart(s->ctx) && update(s->ctx, out, out, BLOCK);
			give_back(s);
		}
		cipher_fini(&c);
	} else if (k->mac == MAC_CMAC) {
		struct cmac m = {};
		ok = derive(k, key, "prf", 3, sub, k->pub.key_len) && cmac_key(&m, k, sub) && cmac_of(&m, in, 2, out);
		cipher_fini(&m.cbc);
	} else {
		uint8_t both[512];
		*len = k->mac == MAC_SHA256 ? 32 : 48;
		ok = in[0].n + in[1].n <= sizeof(both);
		if (ok) {
			memcpy(both, in[0].p, in[0].n);
			memcpy(both + in[0].n, in[1].p, in[1].n);
			ok = derive_by_hmac(k, key, (const uint8_t *)"prf", 3, both, in[0].n + in[1].n, out, *len);
		}
	}
	explicit_bzero(sub, sizeof(sub));
	return ok;
}

afs_err etype_prf_plus(const struct etype *e, const uint8_t *key, const uint8_t *seed, size_t seed_len,
	uint8_t *out, size_t out_len)
{
	const struct kind *k = kind_of(e);
	uint8_t block[HASH_MAX];
	size_t len;
	afs_err err = AFS_OK;
	for (size_t at = 0, i = 1; at < out_len && !err; at += len, i++) {
		/* the draft of rxgk counts in four bytes where RFC 6113 has one */
		const uint32_t count = htobe32((uint32_t)i);
		const struct piece in[2] = {{&count, 4}, {seed, seed_len}};
		if (i > 255 || seed_len > 256)
			err = AFS_EINVAL;
		else if (!prf(k, key, in, block, &len))
			err = AFS_ENOMEM;
		else
			memcpy(out + at, block, MIN(out_len - at, len));
	}
	explicit_bzero(block, sizeof(block));
	return err;
}

/* --- keys of a usage --------------------------------------------------------------------------- */

struct etype_key {
	const struct kind *kind;
	struct cipher enc, dec;
	struct hmac seal, check;   /* hashes: with Ki and Kc */
	struct cmac cseal, ccheck; /* CMAC: the same */
};

struct etype_key *etype_key_new(const struct etype *e, const uint8_t *key, uint32_t usage)
{
	struct etype_key *k = mem_new(struct etype_key);
	if (!k)
		return NULL;
	k->kind = kind_of(e);
	const enum mac m = k->kind->mac;
	const size_t n = k->kind->mac_key_len;
	uint8_t label[5], sub[ETYPE_KEY_MAX];
	usage = htobe32(usage);
	memcpy(label, &usage, 4);

	label[4] = USE_ENCRYPT;
	bool ok = derive(k->kind, key, label, 5, sub, e->key_len) && cipher_init(&k->enc, k->kind, sub, true) &&
		  cipher_init(&k->dec, k->kind, sub, false);
	label[4] = USE_INTEGRITY;
	ok = ok && derive(k->kind, key, label, 5, sub, n);
	if (ok && m == MAC_CMAC)
		ok = cmac_key(&k->cseal, k->kind, sub);
	else if (ok)
		hmac_key(&k->seal, m, sub, n);
	label[4] = USE_CHECKSUM;
	ok = ok && derive(k->kind, key, label, 5, sub, n);
	if (ok && m == MAC_CMAC)
		ok = cmac_key(&k->ccheck, k->kind, sub);
	else if (ok)
		hmac_key(&k->check, m, sub, n);
	explicit_bzero(sub, sizeof(sub));
	if (!ok) {
		etype_key_free(k);
		return NULL;
	}
	return k;
}

void etype_key_free(struct etype_key *k)
{
	if (!k)
		return;
	cipher_fini(&k->enc);
	cipher_fini(&k->dec);
	cipher_fini(&k->cseal.cbc);
	cipher_fini(&k->ccheck.cbc);
	explicit_bzero(k, sizeof(*k));
	mem_free(k);
}

static bool mac_of(struct etype_key *k, bool seal, const struct piece *in, size_t n, uint8_t out[HASH_MAX])
{
	if (k->kind->mac == MAC_CMAC)
		return cmac_of(seal ? &k->cseal : &k->ccheck, in, n, out);
	hmac_of(seal ? &k->seal : &k->check, k->kind->mac, in, n, out);
	return true;
}

bool etype_encrypt(struct etype_key *k, uint8_t *buf, size_t len)
{
	uint8_t mac[HASH_MAX];
	bool ok;
	if (k->kind->seals_cipher) {
		const struct piece in[] = {{zero, BLOCK}, {buf, len}};
		ok = cts_encrypt(&k->enc, buf, len) && mac_of(k, true, in, 2, mac);
	} else {
		const struct piece in[] = {{buf, len}};
		ok = mac_of(k, true, in, 1, mac) && cts_encrypt(&k->enc, buf, len);
	}
	if (ok)
		memcpy(buf + len, mac, k->kind->pub.mac_len);
	else
		memset(buf, 0, len + k->kind->pub.mac_len);
	return ok;
}

bool etype_decrypt(struct etype_key *k, uint8_t *buf, size_t len)
{
	const size_t mac_len = k->kind->pub.mac_len;
	uint8_t mac[HASH_MAX];
	if (len < ETYPE_CONFOUNDER + mac_len)
		return false;
	len -= mac_len;
	if (k->kind->seals_cipher) {
		const struct piece in[] = {{zero, BLOCK}, {buf, len}};
		return mac_of(k, true, in, 2, mac) && CRYPTO_memcmp(mac, buf + len, mac_len) == 0 &&
		       cts_decrypt(&k->dec, buf, len);
	}
	const struct piece in[] = {{buf, len}};
	return cts_decrypt(&k->dec, buf, len) && mac_of(k, true, in, 1, mac) &&
	       CRYPTO_memcmp(mac, buf + len, mac_len) == 0;
}

bool etype_mic(struct etype_key *k, const void *a, size_t a_len, const void *b, size_t b_len, uint8_t *mic)
{
	const struct piece in[] = {{a, a_len}, {b, b_len}};
	uint8_t full[HASH_MAX];
	if (!mac_of(k, false, in, 2, full))
		return false;
	memcpy(mic, full, k->kind->pub.mac_len);
	return true;
}

bool etype_mic_ok(struct etype_key *k, const void *a, size_t a_len, const void *b, size_t b_len, const uint8_t *mic)
{
	uint8_t own[ETYPE_MAC_MAX];
	return etype_mic(k, a, a_len, b, b_len, own) && CRYPTO_memcmp(own, mic, k->kind->pub.mac_len) == 0;
}
