/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "rx/sec/fcrypt.h"

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

static void runs_abreast_give_what_each_gives_alone(void **state)
{
	(void)state;
	enum { RUNS = 23, MOST = 400 };
	static uint8_t text[RUNS][MOST], want[RUNS][MOST];
	const uint8_t key[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint32_t seed = 1;
	struct fcrypt_key k;
	fcrypt_schedule(&k, key);

	for (int round = 0; round < 50; round++) {
		struct fcrypt_run runs[RUNS] = {};
		size_t n = seed % (RUNS + 1);
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			runs[i] = (struct fcrypt_run){text[i], (seed >> 16) % (MOST / 8 + 1) * 8};
			if (round % 2)
				runs[i].len = 64;
			for (size_t j = 0; j < MOST; j++)
				text[i][j] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
			memcpy(want[i], text[i], MOST);
			plain_pcbc(&k, key, want[i], runs[i].len);
		}
		struct fcrypt_run used[RUNS];
		memcpy(used, runs, sizeof(runs));
		fcrypt_pcbc_encrypt_many(&k, key, used, n);
		for (size_t i = 0; i < n; i++) {
			assert_memory_equal(text[i], want[i], MOST);
			fcrypt_pcbc_decrypt(&k, key, want[i], runs[i].len);
			fcrypt_pcbc_encrypt(&k, key, want[i], runs[i].len);
			assert_memory_equal(text[i], want[i], MOST);
		}
		seed = seed * 1664525 + 1013904223;
		seed ^= seed >> 15;
	}
}

TEST_MAIN(T(published_blocks_encrypt_and_decrypt), T(the_schedule_of_a_key_is_the_published_one),
	T(parity_bits_of_a_key_do_not_matter), T(pcbc_gives_the_published_text),
	T(runs_abreast_give_what_each_gives_alone))
