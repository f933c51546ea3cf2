/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "rx/sec/rxkad.h"

#include <string.h>

static void session_keys_derive_as_published(void **state)
{
	(void)state;
	static const struct {
		const char *key, *session;
		int32_t enctype;
	} rows[] = {{"etype18.key", "etype18.session", 18}, {"32.key", "32.session", 18},
		{"16.key", "16.session", 17}, {"16.key", "16.session", 23}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t key[64], want[8], got[8];
		size_t n = test_vector("sec/kdf", rows[i].key, key, sizeof(key));
		test_vector("sec/kdf", rows[i].session, want, 8);
		assert_ok(rxkad_kdf(rows[i].enctype, key, n, got));
		assert_memory_equal(got, want, 8);
	}
}

static void a_des_session_key_is_taken_as_it_is(void **state)
{
	(void)state;
	const uint8_t key[8] = {2, 2, 2, 2, 2, 2, 2, 2};
	for (int32_t e = 1; e <= 3; e++) {
		uint8_t got[8];
		assert_ok(rxkad_kdf(e, key, 8, got));
		assert_memory_equal(got, key, 8);
		assert_err(rxkad_kdf(e, key, 7, got), AFS_EBADTICKET);
	}
}

/* The parity bits of a 3DES key carry nothing: keys that differ there alone derive the same, keys
 * that differ in any other bit do not. */
static void only_the_parity_bits_of_a_3des_key_are_dropped(void **state)
{
	(void)state;
	uint8_t key[24], first[8], got[8];
	for (int i = 0; i < 24; i++)
		key[i] = (uint8_t)(i * 37 + 11);
	assert_ok(rxkad_kdf(16, key, 24, first));
	for (int bit = 0; bit < 24 * 8; bit++) {
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_ok(rxkad_kdf(16, key, 24, got));
		if (bit % 8 == 0)
			assert_memory_equal(got, first, 8);
		else
			assert_memory_not_equal(got, first, 8);
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_err(rxkad_kdf(16, key, 23, got), AFS_EBADTICKET);
}

static void enctypes_outside_the_rule_and_short_keys_are_refused(void **state)
{
	(void)state;
	static const int32_t bad[] = {INT32_MIN, -1, 0, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	const uint8_t key[300] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	uint8_t got[8];
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_err(rxkad_kdf(bad[i], key, 16, got), AFS_EBADTICKET);
	assert_err(rxkad_kdf(18, key, 6, got), AFS_EBADTICKET);
	assert_err(rxkad_kdf(18, key, sizeof(key), got), AFS_EBADTICKET);
}

static void weak_keys_are_known_after_parity_is_set(void **state)
{
	(void)state;
	uint8_t weak[8] = {0, 0xfe, 0, 0xfe, 0, 0xfe, 0, 0xfe},
		good[8] = {0x91, 2, 3, 4, 5, 6, 7, 8};
	assert_false(rxkad_des_fix(weak));
	assert_hex(weak, 8, "01fe01fe01fe01fe");
	assert_true(rxkad_des_fix(good));
	assert_hex(good, 8, "9102020404070708");
}

TEST_MAIN(T(session_keys_derive_as_published), T(a_des_session_key_is_taken_as_it_is),
	T(only_the_parity_bits_of_a_3des_key_are_dropped),
	T(enctypes_outside_the_rule_and_short_keys_are_refused),
	T(weak_keys_are_known_after_parity_is_set))
