/* SPDX-License-Identifier: BSD-2-Clause
 * Encryption types, compared with what libk5crypto does with the same keys and messages. */
#include "tests/lib/test.h"

#include "rx/sec/etype.h"

#include <krb5/krb5.h>
#include <string.h>

static const int32_t numbers[] = {17, 18, 19, 20, 25, 26};
enum { USAGE = 1026, LONGEST = 100 };

static krb5_context ctx;
static uint8_t key_bytes[ETYPE_KEY_MAX];

static krb5_keyblock block_of(const struct etype *e)
{
	return (krb5_keyblock){.enctype = e->number, .length = e->key_len, .contents = key_bytes};
}

static void rows_agree_with_the_library(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct etype *e = etype_of(numbers[i]);
		size_t bytes, len;
		unsigned mac;
		char name[64];
		assert_non_null(e);
		assert_int_equal(krb5_c_keylengths(ctx, e->number, &bytes, &len), 0);
		assert_int_equal(len, e->key_len);
		assert_int_equal(krb5_c_crypto_length(ctx, e->number, KRB5_CRYPTO_TYPE_TRAILER, &mac), 0);
		assert_int_equal(mac, e->mac_len);
		assert_int_equal(krb5_enctype_to_name(e->number, false, name, sizeof(name)), 0);
		assert_string_equal(name, e->name);
	}
	static const int32_t others[] = {-1, 0, 1, 3, 16, 21, 23, 24, 27, 1 << 16};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_null(etype_of(others[i]));
}

static void fill(uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((seed = seed * 6364136223846793005 + 1442695040888963407) >> 56);
}

static void messages_pass_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct etype *e = etype_of(numbers[i]);
		krb5_keyblock kb = block_of(e);
		CLEANUP(etype_key) struct etype_key *k = etype_key_new(e, key_bytes, USAGE);
		assert_non_null(k);
		for (size_t len = 0; len <= LONGEST; len++) {
			uint8_t message[LONGEST + 1], buf[ETYPE_CONFOUNDER + LONGEST + ETYPE_MAC_MAX], plain[LONGEST + 64];
			fill(message, len, len + 1);
			fill(buf, ETYPE_CONFOUNDER, len + 7);
			memcpy(buf + ETYPE_CONFOUNDER, message, len);
			assert_true(etype_encrypt(k, buf, ETYPE_CONFOUNDER + len));
			const size_t sealed = ETYPE_CONFOUNDER + len + e->mac_len;

			krb5_enc_data in = {.enctype = e->number, .ciphertext = {.length = (unsigned)sealed, .data = (char *)buf}};
			krb5_data out = {.length = sizeof(plain), .data = (char *)plain};
			assert_int_equal(krb5_c_decrypt(ctx, &kb, USAGE, NULL, &in, &out), 0);
			assert_int_equal(out.length, len);
			assert_memory_equal(plain, message, len);

			krb5_data msg = {.length = (unsigned)len, .data = (char *)message};
			in.ciphertext.length = sizeof(buf);
			assert_int_equal(krb5_c_encrypt(ctx, &kb, USAGE, NULL, &msg, &in), 0);
			assert_int_equal(in.ciphertext.length, sealed);
			assert_true(etype_decrypt(k, buf, sealed));
			assert_memory_equal(buf + ETYPE_CONFOUNDER, message, len);
		}
	}
}

static void a_changed_message_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct etype *e = etype_of(numbers[i]);
		CLEANUP(etype_key) struct etype_key *k = etype_key_new(e, key_bytes, USAGE);
		CLEANUP(etype_key) struct etype_key *other = etype_key_new(e, key_bytes, USAGE + 1);
		uint8_t good[ETYPE_CONFOUNDER + 40 + ETYPE_MAC_MAX] = {1, 2, 3}, bad[sizeof(good)];
		const size_t sealed = ETYPE_CONFOUNDER + 40 + e->mac_len;
		assert_true(etype_encrypt(k, good, ETYPE_CONFOUNDER + 40));
		for (size_t at = 0; at < sealed; at++) {
			memcpy(bad, good, sizeof(bad));
			bad[at] ^= 1;
			assert_false(etype_decrypt(k, bad, sealed));
		}
		for (size_t len = 0; len < sealed; len++) {
			memcpy(bad, good, sizeof(bad));
			assert_false(etype_decrypt(k, bad, len));
		}
		memcpy(bad, good, sizeof(bad));
		assert_false(etype_decrypt(other, bad, sealed));
	}
}

static void checksums_agree(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct etype *e = etype_of(numbers[i]);
		krb5_keyblock kb = block_of(e);
		CLEANUP(etype_key) struct etype_key *k = etype_key_new(e, key_bytes, USAGE);
		for (size_t len = 0; len <= LONGEST; len++) {
			uint8_t message[LONGEST + 1], mic[ETYPE_MAC_MAX];
			fill(message, len, len + 1);
			krb5_data msg = {.length = (unsigned)len, .data = (char *)message};
			krb5_checksum sum;
			assert_int_equal(krb5_c_make_checksum(ctx, 0, &kb, USAGE, &msg, &sum), 0);
			assert_int_equal(sum.length, e->mac_len);
			assert_true(etype_mic(k, message, len / 3, message + len / 3, len - len / 3, mic));
			assert_memory_equal(mic, sum.contents, sum.length);
			assert_true(etype_mic_ok(k, message, len, NULL, 0, mic));
			mic[len % e->mac_len] ^= 0x80;
			assert_false(etype_mic_ok(k, message, len, NULL, 0, mic));
			krb5_free_checksum_contents(ctx, &sum);
		}
	}
}

static void prf_plus_is_the_prf_counted_in_four_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct etype *e = etype_of(numbers[i]);
		krb5_keyblock kb = block_of(e);
		uint8_t seed[4 + 20], ours[200], theirs[200 + 64];
		size_t one;
		fill(seed, sizeof(seed), 5);
		assert_int_equal(krb5_c_prf_length(ctx, e->number, &one), 0);
		for (uint32_t n = 0; n * one < sizeof(ours); n++) {
			krb5_data in = {.length = sizeof(seed), .data = (char *)seed};
			krb5_data out = {.length = (unsigned)one, .data = (char *)theirs + n * one};
			memcpy(seed, (uint8_t[]){0, 0, 0, (uint8_t)(n + 1)}, 4);
			assert_int_equal(krb5_c_prf(ctx, &kb, &in, &out), 0);
		}
		assert_int_equal(etype_prf_plus(e, key_bytes, seed + 4, 20, ours, sizeof(ours)), AFS_OK);
		assert_memory_equal(ours, theirs, sizeof(ours));
		assert_int_equal(etype_prf_plus(e, key_bytes, seed, 300, ours, 1), AFS_EINVAL);
	}
}

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(key_bytes); i++)
		key_bytes[i] = (uint8_t)(i * 37 + 11);
	return krb5_init_context(&ctx);
}

static int tear_down(void **state)
{
	(void)state;
	krb5_free_context(ctx);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(rows_agree_with_the_library),
		T(messages_pass_both_ways),
		T(a_changed_message_is_refused),
		T(checksums_agree),
		T(prf_plus_is_the_prf_counted_in_four_bytes),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, set_up, tear_down);
}
