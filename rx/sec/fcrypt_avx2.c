/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Thirty-two blocks at once in AVX2 registers, one register for each of a block's eight bytes.
 *
 * A substitution box of 256 entries is sixteen rows of sixteen, and a byte shuffle looks sixteen
 * entries up in all lanes at once.  Lanes with a negative index get zero from a shuffle.  So the index
 * is lowered by 16 for each of eight rows, staying negative once it is; a lane of row h then sees
 * rows 0 to h, and since each table holds its row XORed with the one before, the XOR of what it saw is
 * row h.  The upper eight rows are done likewise with the index's sign flipped.
 *
 * The rotation by 5 at a round's end moves whole bytes' bits between neighbours: box entries are kept
 * rotated within their byte, and a mask takes what stays and what goes.
 *
 * No table is addressed by secret bytes, so unlike the plain code this one leaks nothing by the cache. */
#include "rx/sec/fcrypt_wide.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

/* [box][row]: entry rotated left by 3, XORed with the row before within each half. */
static uint8_t table[4][16][16];

static void fill(uint8_t rows[16][16], const uint8_t box[256])
{
	for (int r = 0; r < 16; r++)
		for (int c = 0; c < 16; c++) {
			uint8_t now = box[16 * r + c], before = r % 8 ? box[16 * (r - 1) + c] : 0;
			uint8_t v = now ^ before;
			rows[r][c] = (uint8_t)(v << 3 | v >> 5);
		}
}

__attribute__((constructor)) static void fill_tables(void)
{
	static const uint8_t s0[256] = {
#define S0(...) __VA_ARGS__,
#include "rx/sec/fcrypt.def"
#undef S0
	};
	static const uint8_t s1[256] = {
#define S1(...) __VA_ARGS__,
#include "rx/sec/fcrypt.def"
#undef S1
	};
	static const uint8_t s2[256] = {
#define S2(...) __VA_ARGS__,
#include "rx/sec/fcrypt.def"
#undef S2
	};
	static const uint8_t s3[256] = {
#define S3(...) __VA_ARGS__,
#include "rx/sec/fcrypt.def"
#undef S3
	};
	fill(table[0], s0);
	fill(table[1], s1);
	fill(table[2], s2);
	fill(table[3], s3);
}

bool fcrypt_wide_here(void) { return __builtin_cpu_supports("avx2"); }

AVX2_INLINE __m256i lookup(const uint8_t rows[16][16], __m256i x)
{
	const __m256i step = _mm256_set1_epi8(16);
	__m256i y = _mm256_xor_si256(x, _mm256_set1_epi8((char)0x80));
	__m256i lo = _mm256_setzero_si256(), hi = _mm256_setzero_si256();
#define ROW(r)                                                                                     \
	lo = _mm256_xor_si256(                                                                     \
		lo, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(               \
						(const __m128i *)(const void *)rows[r])),          \
			    x));                                                                   \
	hi = _mm256_xor_si256(                                                                     \
		hi, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(               \
						(const __m128i *)(const void *)rows[8 + r])),      \
			    y));
#define NEXT                                                                                       \
	x = _mm256_subs_epi8(x, step);                                                             \
	y = _mm256_subs_epi8(y, step);
	ROW(0)
	NEXT ROW(1) NEXT ROW(2) NEXT ROW(3) NEXT ROW(4) NEXT ROW(5) NEXT ROW(6) NEXT ROW(7)
#undef ROW
#undef NEXT
		return _mm256_xor_si256(lo, hi);
}

/* l ^= F(key, r), each four registers, most significant byte first. */
AVX2_INLINE void round_of(uint32_t key, __m256i *l, const __m256i *r)
{
	const __m256i low = _mm256_set1_epi8(7);
	__m256i a = _mm256_xor_si256(r[0], _mm256_set1_epi8((char)(key >> 24)));
	__m256i b = _mm256_xor_si256(r[1], _mm256_set1_epi8((char)(key >> 16)));
	__m256i c = _mm256_xor_si256(r[2], _mm256_set1_epi8((char)(key >> 8)));
	__m256i d = _mm256_xor_si256(r[3], _mm256_set1_epi8((char)key));
	__m256i p0 = lookup(table[3], d), p1 = lookup(table[2], c);
	__m256i p2 = lookup(table[0], a), p3 = lookup(table[1], b);
	/* (p & 7) is what stays of a byte, the rest is its right neighbour's upper part */
#define TURN(stay, come)                                                                           \
	_mm256_xor_si256(_mm256_and_si256(low, stay), _mm256_andnot_si256(low, come))
	l[0] = _mm256_xor_si256(l[0], TURN(p0, p3));
	l[1] = _mm256_xor_si256(l[1], TURN(p1, p0));
	l[2] = _mm256_xor_si256(l[2], TURN(p2, p1));
	l[3] = _mm256_xor_si256(l[3], TURN(p3, p2));
#undef TURN
}

/* An 8 x 8 matrix of 16-bit words in each half of eight registers, turned over its diagonal. */
AVX2_INLINE void transpose(__m256i v[8])
{
	__m256i a0 = _mm256_unpacklo_epi16(v[0], v[1]), a1 = _mm256_unpackhi_epi16(v[0], v[1]);
	__m256i a2 = _mm256_unpacklo_epi16(v[2], v[3]), a3 = _mm256_unpackhi_epi16(v[2], v[3]);
	__m256i a4 = _mm256_unpacklo_epi16(v[4], v[5]), a5 = _mm256_unpackhi_epi16(v[4], v[5]);
	__m256i a6 = _mm256_unpacklo_epi16(v[6], v[7]), a7 = _mm256_unpackhi_epi16(v[6], v[7]);
	__m256i b0 = _mm256_unpacklo_epi32(a0, a2), b1 = _mm256_unpackhi_epi32(a0, a2);
	__m256i b2 = _mm256_unpacklo_epi32(a1, a3), b3 = _mm256_unpackhi_epi32(a1, a3);
	__m256i b4 = _mm256_unpacklo_epi32(a4, a6), b5 = _mm256_unpackhi_epi32(a4, a6);
	__m256i b6 = _mm256_unpacklo_epi32(a5, a7), b7 = _mm256_unpackhi_epi32(a5, a7);
	v[0] = _mm256_unpacklo_epi64(b0, b4), v[1] = _mm256_unpackhi_epi64(b0, b4);
	v[2] = _mm256_unpacklo_epi64(b1, b5), v[3] = _mm256_unpackhi_epi64(b1, b5);
	v[4] = _mm256_unpacklo_epi64(b2, b6), v[5] = _mm256_unpackhi_epi64(b2, b6);
	v[6] = _mm256_unpacklo_epi64(b3, b7), v[7] = _mm256_unpackhi_epi64(b3, b7);
}

/* Two blocks in each half register: their bytes in pairs, and back. */
AVX2_INLINE void slice(__m256i v[8], const uint64_t *block)
{
	const __m256i pair = _mm256_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15,
		0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
	for (int i = 0; i < 8; i++)
		v[i] = _mm256_shuffle_epi8(
			_mm256_loadu_si256((const __m256i *)(const void *)(block + 4 * i)), pair);
	transpose(v);
}

AVX2_INLINE void unslice(uint64_t *block, __m256i v[8])
{
	const __m256i part = _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
		0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
	transpose(v);
	for (int i = 0; i < 8; i++)
		_mm256_storeu_si256(
			(__m256i *)(void *)(block + 4 * i), _mm256_shuffle_epi8(v[i], part));
}

AVX2 void fcrypt_wide_encrypt(const struct fcrypt_key *k, uint64_t block[FCRYPT_WIDE])
{
	__m256i v[8];
	slice(v, block);
	for (int i = 0; i < 16; i += 2) {
		round_of(k->round[i], v, v + 4);
		round_of(k->round[i + 1], v + 4, v);
	}
	unslice(block, v);
}

AVX2 void fcrypt_wide_decrypt(const struct fcrypt_key *k, uint64_t block[FCRYPT_WIDE])
{
	__m256i v[8];
	slice(v, block);
	for (int i = 15; i > 0; i -= 2) {
		round_of(k->round[i], v + 4, v);
		round_of(k->round[i - 1], v, v + 4);
	}
	unslice(block, v);
}

#else

bool fcrypt_wide_here(void) { return false; }
void fcrypt_wide_encrypt(const struct fcrypt_key *k, uint64_t block[FCRYPT_WIDE])
{
	(void)k, (void)block;
}
void fcrypt_wide_decrypt(const struct fcrypt_key *k, uint64_t block[FCRYPT_WIDE])
{
	(void)k, (void)block;
}

#endif
