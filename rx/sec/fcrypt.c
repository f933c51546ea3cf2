/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Each box is combined with its place in the word and the final rotation by 5, so a round is four
 * reads from 4 KiB of tables.  Table reads depend on key and data: like every software fcrypt this
 * one leaks through a shared cache; the cipher's 56 bits are the weaker side of it. */
#include "rx/sec/fcrypt.h"

#include "rx/sec/fcrypt_wide.h"

#include <endian.h>
#include <string.h>

#define ROR(w, n) ((uint32_t)((uint32_t)(w) >> (n) | (uint32_t)(w) << (32 - (n))))
#define SIXTEEN(E, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                                 \
	E(a), E(b), E(c), E(d), E(e), E(f), E(g), E(h), E(i), E(j), E(k), E(l), E(m), E(n), E(o),  \
		E(p),
#define PLACE0(v) ROR((uint32_t)(v) << 8, 5)
#define PLACE1(v) ROR((uint32_t)(v), 5)
#define PLACE2(v) ROR((uint32_t)(v) << 16, 5)
#define PLACE3(v) ROR((uint32_t)(v) << 24, 5)

static const uint32_t t0[256] = {
#define S0(...) SIXTEEN(PLACE0, __VA_ARGS__)
#include "rx/sec/fcrypt.def"
#undef S0
};
static const uint32_t t1[256] = {
#define S1(...) SIXTEEN(PLACE1, __VA_ARGS__)
#include "rx/sec/fcrypt.def"
#undef S1
};
static const uint32_t t2[256] = {
#define S2(...) SIXTEEN(PLACE2, __VA_ARGS__)
#include "rx/sec/fcrypt.def"
#undef S2
};
static const uint32_t t3[256] = {
#define S3(...) SIXTEEN(PLACE3, __VA_ARGS__)
#include "rx/sec/fcrypt.def"
#undef S3
};

/* A block as two words. */
struct half {
	uint32_t l, r;
};

static inline struct half load(const uint8_t *p)
{
	uint32_t w[2];
	memcpy(w, p, sizeof(w));
	return (struct half){be32toh(w[0]), be32toh(w[1])};
}

static inline void store(uint8_t *p, struct half b)
{
	uint32_t w[2] = {htobe32(b.l), htobe32(b.r)};
	memcpy(p, w, sizeof(w));
}

static inline struct half mix(struct half a, struct half b)
{
	return (struct half){a.l ^ b.l, a.r ^ b.r};
}

static inline uint32_t f(uint32_t k, uint32_t r)
{
	uint32_t x = k ^ r;
	return t0[x >> 24] ^ t1[x >> 16 & 0xff] ^ t2[x >> 8 & 0xff] ^ t3[x & 0xff];
}

void fcrypt_schedule(struct fcrypt_key *k, const uint8_t key[8])
{
	const uint64_t mask = (UINT64_C(1) << 56) - 1;
	uint64_t bits = 0;
	for (int i = 0; i < 8; i++)
		bits = bits << 7 | key[i] >> 1;
	for (int i = 0; i < 16; i++) {
		k->round[i] = (uint32_t)bits;
		bits = (bits >> 11 | bits << 45) & mask;
	}
}

static inline struct half enc1(const struct fcrypt_key *k, struct half b)
{
	for (int i = 0; i < 16; i += 2) {
		b.l ^= f(k->round[i], b.r);
		b.r ^= f(k->round[i + 1], b.l);
	}
	return b;
}

static inline struct half dec1(const struct fcrypt_key *k, struct half b)
{
	for (int i = 15; i > 0; i -= 2) {
		b.r ^= f(k->round[i], b.l);
		b.l ^= f(k->round[i - 1], b.r);
	}
	return b;
}

void fcrypt_encrypt(const struct fcrypt_key *k, uint8_t block[8])
{
	store(block, enc1(k, load(block)));
}
void fcrypt_decrypt(const struct fcrypt_key *k, uint8_t block[8])
{
	store(block, dec1(k, load(block)));
}

/* Four blocks abreast. */
#define EACH4(body) body(0) body(1) body(2) body(3)

static inline void enc4(const struct fcrypt_key *k, struct half b[4])
{
	struct half b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
	for (int i = 0; i < 16; i += 2) {
#define LEFT(n) b##n.l ^= f(k->round[i], b##n.r);
#define RIGHT(n) b##n.r ^= f(k->round[i + 1], b##n.l);
		EACH4(LEFT)
		EACH4(RIGHT)
#undef LEFT
#undef RIGHT
	}
	b[0] = b0, b[1] = b1, b[2] = b2, b[3] = b3;
}

static inline void dec4(const struct fcrypt_key *k, struct half b[4])
{
	struct half b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
	for (int i = 15; i > 0; i -= 2) {
#define RIGHT(n) b##n.r ^= f(k->round[i], b##n.l);
#define LEFT(n) b##n.l ^= f(k->round[i - 1], b##n.r);
		EACH4(RIGHT)
		EACH4(LEFT)
#undef LEFT
#undef RIGHT
	}
	b[0] = b0, b[1] = b1, b[2] = b2, b[3] = b3;
}

/* A block as it lies in memory: enough for chaining, where only XOR is done. */
static inline uint64_t raw(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static void run_encrypt(const struct fcrypt_key *k, struct half x, uint8_t *data, size_t len)
{
	for (; len >= FCRYPT_BLOCK; data += FCRYPT_BLOCK, len -= FCRYPT_BLOCK) {
		struct half p = load(data);
		struct half c = enc1(k, mix(p, x));
		store(data, c);
		x = mix(p, c);
	}
}

void fcrypt_pcbc_encrypt(const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *data, size_t len)
{
	run_encrypt(k, load(iv), data, len);
}

/* --- decrypting: only the cheap mixing is a chain, the blocks do not wait for each other --------- */

static uint64_t decrypt_wide(const struct fcrypt_key *k, uint64_t x, uint8_t *data, size_t blocks)
{
	uint64_t b[FCRYPT_WIDE] = {};
	memcpy(b, data, blocks * FCRYPT_BLOCK);
	fcrypt_wide_decrypt(k, b);
	for (size_t j = 0; j < blocks; j++) {
		uint64_t c = raw(data + j * FCRYPT_BLOCK), p = b[j] ^ x;
		memcpy(data + j * FCRYPT_BLOCK, &p, sizeof(p));
		x = p ^ c;
	}
	return x;
}

void fcrypt_pcbc_decrypt(const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *data, size_t len)
{
	if (fcrypt_wide_here()) {
		uint64_t chain = raw(iv);
		while (len / FCRYPT_BLOCK >= FCRYPT_WIDE_LEAST) {
			size_t n =
				len / FCRYPT_BLOCK < FCRYPT_WIDE ? len / FCRYPT_BLOCK : FCRYPT_WIDE;
			chain = decrypt_wide(k, chain, data, n);
			data += n * FCRYPT_BLOCK;
			len -= n * FCRYPT_BLOCK;
		}
		fcrypt_plain_decrypt(k, (const uint8_t *)&chain, data, len);
	} else {
		fcrypt_plain_decrypt(k, iv, data, len);
	}
}

void fcrypt_plain_decrypt(
	const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *data, size_t len)
{
	struct half x = load(iv);
	for (; len >= 4 * FCRYPT_BLOCK; data += 4 * FCRYPT_BLOCK, len -= 4 * FCRYPT_BLOCK) {
		struct half c[4], b[4];
		for (int j = 0; j < 4; j++)
			b[j] = c[j] = load(data + j * FCRYPT_BLOCK);
		dec4(k, b);
		for (int j = 0; j < 4; j++) {
			struct half p = mix(b[j], x);
			store(data + j * FCRYPT_BLOCK, p);
			x = mix(p, c[j]);
		}
	}
	for (; len >= FCRYPT_BLOCK; data += FCRYPT_BLOCK, len -= FCRYPT_BLOCK) {
		struct half c = load(data);
		struct half p = mix(dec1(k, c), x);
		store(data, p);
		x = mix(p, c);
	}
}

/* --- encrypting several runs: each lane has one; a lane whose run ends takes the next -------------- */

struct lanes {
	struct fcrypt_run *run[FCRYPT_WIDE];
	uint64_t x[FCRYPT_WIDE]; /* what the next block is mixed with */
	size_t n;
};

static void lanes_fill(struct lanes *l, size_t most, uint64_t start, struct fcrypt_run **next,
	struct fcrypt_run *end)
{
	for (; l->n < most && *next < end; ++*next)
		if ((*next)->len >= FCRYPT_BLOCK) {
			l->run[l->n] = *next;
			l->x[l->n++] = start;
		}
}

/* Bytes that each of the first n lanes still has. */
static size_t lanes_common(const struct lanes *l, size_t n)
{
	size_t len = l->run[0]->len;
	for (size_t j = 1; j < n; j++)
		len = l->run[j]->len < len ? l->run[j]->len : len;
	return len - len % FCRYPT_BLOCK;
}

/* The first n lanes are `len` bytes further: drop those at their end. */
static void lanes_advance(struct lanes *l, size_t n, size_t len)
{
	size_t kept = 0;
	for (size_t j = 0; j < l->n; j++) {
		if (j < n) {
			l->run[j]->data += len;
			l->run[j]->len -= len;
		}
		if (l->run[j]->len < FCRYPT_BLOCK)
			continue;
		l->run[kept] = l->run[j];
		l->x[kept++] = l->x[j];
	}
	l->n = kept;
}

static void lanes_encrypt_wide(const struct fcrypt_key *k, struct lanes *l)
{
	size_t n = l->n, len = lanes_common(l, n);
	for (size_t at = 0; at < len; at += FCRYPT_BLOCK) {
		uint64_t p[FCRYPT_WIDE], b[FCRYPT_WIDE] = {};
		for (size_t j = 0; j < n; j++) {
			p[j] = raw(l->run[j]->data + at);
			b[j] = p[j] ^ l->x[j];
		}
		fcrypt_wide_encrypt(k, b);
		for (size_t j = 0; j < n; j++) {
			memcpy(l->run[j]->data + at, &b[j], FCRYPT_BLOCK);
			l->x[j] = p[j] ^ b[j];
		}
	}
	lanes_advance(l, n, len);
}

static void lanes_encrypt_4(const struct fcrypt_key *k, struct lanes *l)
{
	size_t len = lanes_common(l, 4);
	struct half x[4];
	for (int j = 0; j < 4; j++)
		x[j] = load((const uint8_t *)&l->x[j]);
	for (size_t at = 0; at < len; at += FCRYPT_BLOCK) {
		struct half p[4], b[4];
		for (int j = 0; j < 4; j++) {
			p[j] = load(l->run[j]->data + at);
			b[j] = mix(p[j], x[j]);
		}
		enc4(k, b);
		for (int j = 0; j < 4; j++) {
			store(l->run[j]->data + at, b[j]);
			x[j] = mix(p[j], b[j]);
		}
	}
	for (int j = 0; j < 4; j++)
		store((uint8_t *)&l->x[j], x[j]);
	lanes_advance(l, 4, len);
}

static void encrypt_many(const struct fcrypt_key *k, const uint8_t iv[8], struct fcrypt_run *runs,
	size_t n, bool wide)
{
	struct lanes l = {.n = 0};
	struct fcrypt_run *next = runs;
	for (;;) {
		lanes_fill(&l, wide ? FCRYPT_WIDE : 4, raw(iv), &next, runs + n);
		if (wide && l.n >= FCRYPT_WIDE_LEAST)
			lanes_encrypt_wide(k, &l);
		else if (l.n >= 4)
			lanes_encrypt_4(k, &l);
		else
			break;
	}
	for (size_t j = 0; j < l.n; j++)
		run_encrypt(k, load((const uint8_t *)&l.x[j]), l.run[j]->data, l.run[j]->len);
}

void fcrypt_pcbc_encrypt_many(
	const struct fcrypt_key *k, const uint8_t iv[8], struct fcrypt_run *runs, size_t n)
{
	encrypt_many(k, iv, runs, n, fcrypt_wide_here());
}

void fcrypt_plain_encrypt_many(
	const struct fcrypt_key *k, const uint8_t iv[8], struct fcrypt_run *runs, size_t n)
{
	encrypt_many(k, iv, runs, n, false);
}
