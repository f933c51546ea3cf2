/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a client of the negotiation takes for an answer, and what it does not. */
#include "tests/lib/test.h"

#include "cell/admin/negotiate.h"
#include "cell/proto/gk.h"

static int32_t etypes[] = {18, 17}, levels[] = {RX_LEVEL_CRYPT};
static const uint8_t bytes[RXGK_TOKEN_MAX + 1];
static const struct gk_start asked = {.enctypes = {etypes, 2}, .levels = {levels, 1}};
static struct gk_client_info good(void)
{
	return (struct gk_client_info){.enctype = 17, .level = RX_LEVEL_CRYPT, .lifetime = 60, .bytelife = 30, .expiration = SEC(100) / 100,
		.token = {bytes, 100}, .server_nonce = {bytes, 20}};
}

static void a_right_answer_gives_its_terms(void **state)
{
	(void)state;
	const struct gk_client_info info = good();
	struct rxgk_terms t;
	assert_ok(negotiate_judge(&asked, &info, SEC(99), &t));
	assert_int_equal(t.etype, 17);
	assert_int_equal(t.expires, SEC(100));
	assert_int_equal(t.lifetime, 60);
}

static void what_was_not_asked_for_or_is_over_is_refused(void **state)
{
	(void)state;
	struct gk_client_info v[9];
	static const afs_err want[9] = {AFS_EEXPIRED, AFS_ELEVEL, AFS_EWEAKKEY, AFS_EWEAKKEY, AFS_ETICKETLEN, AFS_ETICKETLEN, AFS_EDECODE,
		AFS_EDECODE, AFS_ENOAUTH};
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = good();
	v[0].expiration = SEC(99) / 100;
	v[1].level = RX_LEVEL_AUTH;
	v[2].enctype = 20;
	v[3].enctype = 23;
	v[4].token.len = 0;
	v[5].token.len = sizeof(bytes);
	v[6].server_nonce.len = 8;
	v[7].expiration = INT64_MAX;
	v[8].errorcode = 1;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct rxgk_terms t;
		assert_int_equal(negotiate_judge(&asked, &v[i], SEC(99), &t), want[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_answer_gives_its_terms), cmocka_unit_test(what_was_not_asked_for_or_is_over_is_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
