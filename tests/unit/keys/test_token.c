/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tokens as cache managers and Linux's keyring take them, byte by byte; and what of foreign bytes is refused. */
#include "tests/lib/test.h"

#include "cell/proto/token.h"

#include <string.h>

static const uint8_t ticket[] = {0xaa, 0xbb, 0xcc}, gk_token[] = {1, 2, 3, 4, 5};

static struct rx_token both(void)
{
	struct rx_token t = {
		.kad = {.session_key = {1, 2, 3, 4, 5, 6, 7, 8}, .kvno = 256, .ticket = ticket, .ticket_len = sizeof(ticket), .begins = SEC(0x10),
			.expires = SEC(0x20)},
		.gk = {.terms = {.etype = 17, .level = RX_LEVEL_CRYPT, .lifetime = 36000, .bytelife = 30, .expires = INT64_C(0x2e90b) * 100}, .token = gk_token,
			.len = sizeof(gk_token)},
	};
	memset(t.gk.terms.k0, 0x5a, 16);
	return t;
}

/* Source: rx-security.md §10.2 */
static void the_payload_has_the_bytes_that_linux_reads(void **state)
{
	(void)state;
	static const uint8_t want[] = {
		0, 0, 0, 0,                                     /* flags */
		0, 0, 0, 3, 'a', '.', 'b', 0,                   /* cell */
		0, 0, 0, 1,                                     /* tokens */
		0, 0, 0, 84,                                    /* the first one's length */
		0, 0, 0, 6,                                     /* YFS-rxgk */
		0, 0, 0, 0, 0, 0, 0, 0,                         /* begins */
		0, 0, 0, 0, 0, 2, 0xe9, 0x0b,                   /* ends, 100 ns */
		0, 0, 0, 0, 0, 0, 0, 2,                         /* level crypt */
		0, 0, 0, 0, 0, 0, 0x8c, 0xa0,                   /* lifetime, s */
		0, 0, 0, 0, 0, 0, 0, 30,                        /* bytelife, log2 */
		0, 0, 0, 0, 0, 0, 0, 17,                        /* enctype */
		0, 0, 0, 16, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a,
		0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0,
	};
	struct rx_token t = both();
	uint8_t out[TOKEN_BLOB_MAX];
	size_t n;
	t.kad = (struct rxkad_token){};
	assert_ok(token_blob_put(&t, "a.b", 0, out, sizeof(out), &n));
	assert_int_equal(n, sizeof(want));
	assert_memory_equal(out, want, sizeof(want));
}

static void a_set_of_both_comes_back_as_it_was(void **state)
{
	(void)state;
	const struct rx_token t = both();
	uint8_t out[TOKEN_BLOB_MAX];
	struct token_blob b;
	size_t n;
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, TOKEN_BLOB_MAX);
	assert_ok(token_blob_put(&t, "a.b", 77, out, sizeof(out), &n));
	assert_ok(token_blob_get(out, n, &arena, &b));
	assert_string_equal(b.cell, "a.b");
	assert_int_equal(b.viceid, 77);
	assert_memory_equal(b.token.kad.session_key, t.kad.session_key, 8);
	assert_int_equal(b.token.kad.expires, t.kad.expires);
	assert_memory_equal(b.token.kad.ticket, ticket, sizeof(ticket));
	assert_int_equal(b.token.gk.terms.expires, t.gk.terms.expires);
	assert_memory_equal(b.token.gk.terms.k0, t.gk.terms.k0, 16);
	assert_int_equal(b.token.gk.len, sizeof(gk_token));
	assert_memory_equal(b.token.gk.token, gk_token, sizeof(gk_token));
}

static void every_truncation_is_refused(void **state)
{
	(void)state;
	const struct rx_token t = both();
	uint8_t out[TOKEN_BLOB_MAX];
	struct token_blob b;
	size_t n;
	assert_ok(token_blob_put(&t, "a.b", 0, out, sizeof(out), &n));
	for (size_t i = 0; i < n; i++) {
		CLEANUP(arena) struct arena arena;
		arena_init(&arena, TOKEN_BLOB_MAX);
		assert_int_equal(token_blob_get(out, i, &arena, &b), AFS_EDECODE);
	}
}

/* one byte of rxgk's token set otherwise, at these places of the first test's bytes */
static void terms_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	static const struct {
		size_t at;
		uint8_t to;
	} wrong[] = {{32, 0x80} /* ends before the beginning */, {47, 3} /* no such level */, {48, 1} /* a lifetime of ages */,
		{63, 64} /* more bytes than can be counted */, {71, 23} /* RC4 */, {64, 1} /* an enctype of more bits */, {75, 12} /* a short key */};
	struct rx_token t = both();
	t.kad = (struct rxkad_token){};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		uint8_t out[TOKEN_BLOB_MAX];
		struct token_blob b;
		size_t n;
		CLEANUP(arena) struct arena arena;
		arena_init(&arena, TOKEN_BLOB_MAX);
		assert_ok(token_blob_put(&t, "a.b", 0, out, sizeof(out), &n));
		out[wrong[i].at] = wrong[i].to;
		assert_int_equal(token_blob_get(out, n, &arena, &b), AFS_EDECODE);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	(void)state;
	static uint8_t big[12000];
	struct rx_token t = both(), none = {};
	uint8_t out[TOKEN_BLOB_MAX];
	size_t n;
	t.kad.ticket = t.gk.token = big;
	t.kad.ticket_len = t.gk.len = sizeof(big);
	assert_int_equal(token_blob_put(&t, "a.b", 0, out, sizeof(out), &n), AFS_ETICKETLEN);
	assert_int_equal(token_blob_put(&none, "a.b", 0, out, sizeof(out), &n), AFS_ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_payload_has_the_bytes_that_linux_reads), cmocka_unit_test(a_set_of_both_comes_back_as_it_was),
		cmocka_unit_test(every_truncation_is_refused), cmocka_unit_test(terms_that_make_no_sense_are_refused),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
