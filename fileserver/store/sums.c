/* SPDX-License-Identifier: BSD-2-Clause
 * CRC-32C (Castagnoli, reflected, as in iSCSI): the checksum of content blocks.  With the
 * processor's instruction where there is one. */
#include "fileserver/store/internal.h"

#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ UINT32_C(0x82f63b78) : c >> 1;
		table[0][i] = c;
	}
	for (int t = 1; t < 8; t++)
		for (uint32_t i = 0; i < 256; i++)
			table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
}

static uint32_t by_table(uint32_t c, const uint8_t *p, size_t n)
{
	for (; n >= 8; p += 8, n -= 8) {
		c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		     (uint32_t)p[3] << 24;
		c = table[7][c & 0xff] ^ table[6][c >> 8 & 0xff] ^ table[5][c >> 16 & 0xff] ^
		    table[4][c >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
		    table[0][p[7]];
	}
	for (; n; p++, n--)
		c = c >> 8 ^ table[0][(c ^ *p) & 0xff];
	return c;
}

#ifdef __x86_64__
[[gnu::target("sse4.2")]] static uint32_t by_instruction(uint32_t c, const uint8_t *p, size_t n)
{
	uint64_t c64 = c;
	for (; n >= 8; p += 8, n -= 8) {
		uint64_t v;
		memcpy(&v, p, 8);
		c64 = __builtin_ia32_crc32di(c64, v);
	}
	c = (uint32_t)c64;
	for (; n; p++, n--)
		c = __builtin_ia32_crc32qi(c, *p);
	return c;
}
static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#else
static uint32_t by_instruction(uint32_t c, const uint8_t *p, size_t n) { return by_table(c, p, n); }
static bool has_instruction(void) { return false; }
#endif

uint32_t vs_crc32c(uint32_t crc, const void *p, size_t n)
{
	if (has_instruction())
		return ~by_instruction(~crc, p, n);
	return vs_crc32c_plain(crc, p, n);
}

uint32_t vs_crc32c_plain(uint32_t crc, const void *p, size_t n)
{
	pthread_once(&once, make_table);
	return ~by_table(~crc, p, n);
}
