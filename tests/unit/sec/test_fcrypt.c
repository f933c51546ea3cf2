/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "rx/sec/fcrypt_wide.h"

#include <endian.h>
#include <string.h>

static const char file[] = "sec/fcrypt";

static void published_blocks_encrypt_and_decrypt(void **state)
{
	(void)state;
	static const char *const rows[][3] = {{"block1.key", "block1.plain", "block1.cipher"},
		{"block2.key", "block2.plain", "block2.cipher"}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t key[8], plain[8], cipher[8];
		test_vector(file, rows[i][0], key, 8);
		test_vector(file, rows[i][1], plain, 8);
		test_vector(file, rows[i][2], cipher, 8);
		struct fcrypt_key k;
		fcrypt_schedule(&k, key);
		uint8_t b[8];
		memcpy(b, plain, 8);
		fcrypt_encrypt(&k, b);
		assert_memory_equal(b, cipher, 8);
		fcrypt_decrypt(&k, b);
		assert_memory_equal(b, plain, 8);
	}
}

static void the_schedule_of_a_key_is_the_published_one(void **state)
{
	(void)state;
	static const char *const rows[][3] = {{"sec/fcrypt", "block2.key", "block2.schedule"},
		{"sec/exchange", "own.session", "own.schedule"}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t key[8], want[64];
		test_vector(rows[i][0], rows[i][1], key, 8);
		assert_int_equal(test_vector(rows[i][0], rows[i][2], want, 64), 64);
		struct fcrypt_key k;
		fcrypt_schedule(&k, key);
		for (int j = 0; j < 16; j++) {
			uint32_t be = htobe32(k.round[j]);
			assert_memory_equal(&be, want + 4 * j, 4);
		}
	}
}

static void parity_bits_of_a_key_do_not_matter(void **state)
{
	(void)state;
	uint8_t key[8] = {0x10, 0x44, 0x76, 0xaa, 0xdc, 0x00, 0x32, 0x66};
	struct fcrypt_key a, b;
	fcrypt_schedule(&a, key);
	for (int i = 0; i < 8; i++)
		key[i] ^= 1;
	fcrypt_schedule(&b, key);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void pcbc_gives_the_published_text(void **state)
{
	(void)state;
	uint8_t key[8], iv[8], plain[48], cipher[48], b[48];
	test_vector(file, "pcbc.key", key, 8);
	test_vector(file, "pcbc.iv", iv, 8);
	assert_int_equal(test_vector(file, "pcbc.plain", plain, 48), 48);
	assert_int_equal(test_vector(file, "pcbc.cipher", cipher, 48), 48);
	struct fcrypt_key k;
	fcrypt_schedule(&k, key);
	memcpy(b, plain, 48);
	fcrypt_pcbc_encrypt(&k, iv, b, 48);
	assert_memory_equal(b, cipher, 48);
	fcrypt_pcbc_decrypt(&k, iv, b, 48);
	assert_memory_equal(b, plain, 48);
}

/* PCBC as its definition reads, one block at a time. */
static void plain_pcbc(const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *p, size_t len)
{
	uint8_t x[8];
	memcpy(x, iv, 8);
	for (size_t at = 0; at + 8 <= len; at += 8) {
		uint8_t was[8];
		memcpy(was, p + at, 8);
		for (int i = 0; i < 8; i++)
			p[at + (size_t)i] ^= x[i];
		fcrypt_encrypt(k, p + at);
		for (int i = 0; i < 8; i++)
			x[i] = was[i] ^ p[at + (size_t)i];
	}
}

typedef void encrypt_many(
	const struct fcrypt_key *k, const uint8_t iv[8], struct fcrypt_run *runs, size_t n);
typedef void decrypt(const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *data, size_t len);

static void check_runs(encrypt_many *many, decrypt *back)
{
	enum { RUNS = 80, MOST = 700 };
	static uint8_t text[RUNS][MOST], was[RUNS][MOST], want[RUNS][MOST];
	const uint8_t key[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint32_t seed = 1;
	struct fcrypt_key k;
	fcrypt_schedule(&k, key);

	for (size_t n = 0; n <= RUNS; n++) {
		struct fcrypt_run runs[RUNS] = {}, used[RUNS];
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			/* all alike, all different, some empty or with a rest */
			size_t len = n % 3 == 0   ? 640
				     : n % 3 == 1 ? (seed >> 16) % MOST
						  : (seed >> 16) % 5 * 8;
			runs[i] = (struct fcrypt_run){text[i], len};
			for (size_t j = 0; j < MOST; j++)
				text[i][j] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
			memcpy(was[i], text[i], MOST);
			memcpy(want[i], text[i], MOST);
			plain_pcbc(&k, key, want[i], len);
		}
		memcpy(used, runs, sizeof(runs));
		many(&k, key, used, n);
		for (size_t i = 0; i < n; i++) {
			assert_memory_equal(text[i], want[i], MOST);
			back(&k, key, text[i], runs[i].len);
			assert_memory_equal(text[i], was[i], MOST);
			fcrypt_pcbc_encrypt(&k, key, text[i], runs[i].len);
			assert_memory_equal(text[i], want[i], MOST);
		}
	}
}

static void runs_abreast_give_what_each_gives_alone(void **state)
{
	(void)state;
	check_runs(fcrypt_pcbc_encrypt_many, fcrypt_pcbc_decrypt);
}

static void and_so_without_wide_registers(void **state)
{
	(void)state;
	check_runs(fcrypt_plain_encrypt_many, fcrypt_plain_decrypt);
}

static void thirty_two_blocks_abreast_are_thirty_two_blocks(void **state)
{
	(void)state;
	if (!fcrypt_wide_here())
		skip();
	uint64_t seed = 1;
	for (int round = 0; round < 500; round++) {
		uint64_t block[FCRYPT_WIDE], one[FCRYPT_WIDE], was[FCRYPT_WIDE];
		struct fcrypt_key k;
		seed = seed * UINT64_C(6364136223846793005) + 1;
		fcrypt_schedule(&k, (const uint8_t *)&seed);
		for (size_t i = 0; i < FCRYPT_WIDE; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			was[i] = block[i] = one[i] = seed ^ seed >> 29;
			fcrypt_encrypt(&k, (uint8_t *)&one[i]);
		}
		fcrypt_wide_encrypt(&k, block);
		assert_memory_equal(block, one, sizeof(block));
		fcrypt_wide_decrypt(&k, block);
		assert_memory_equal(block, was, sizeof(block));
	}
}

TEST_MAIN(T(published_blocks_encrypt_and_decrypt), T(the_schedule_of_a_key_is_the_published_one),
	T(parity_bits_of_a_key_do_not_matter), T(pcbc_gives_the_published_text),
	T(runs_abreast_give_what_each_gives_alone), T(and_so_without_wide_registers),
	T(thirty_two_blocks_abreast_are_thirty_two_blocks))
