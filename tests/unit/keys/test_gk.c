/* SPDX-License-Identifier: BSD-2-Clause
 * rxgk's keys and tokens: the file, both layouts, names, bad bytes. */
#include "tests/lib/test.h"

#include "cell/keys/gk.h"
#include "cell/base/log.h"
#include "cell/proto/gk.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const wall_ns today = SEC(1700000000);
static const uint8_t exported[] = "\x04\x01\x00\x0b\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x00\x00\x00\x10jane/admin@X.ORG";
enum { EXPORTED_LEN = sizeof(exported) - 1 };

static struct gk *with_key(int32_t etype)
{
	struct gk *gk;
	uint8_t key[32];
	char name[32];
	const struct gk_config none = {};
	snprintf(name, sizeof(name), "serverkey.%d", etype);
	size_t n = test_vector("sec/rxgk", name, key, sizeof(key));
	assert_ok(gk_open(&none, &gk, NULL));
	assert_ok(gk_add(gk, 1, etype, key, n));
	return gk;
}

static void printed_tokens_are_the_cell_itself(void **state)
{
	(void)state;
	for (int32_t etype = 17; etype <= 18; etype++) {
		CLEANUP(gk) struct gk *gk = with_key(etype);
		uint8_t token[256];
		char name[32];
		struct rxgk_ticket t = {};
		snprintf(name, sizeof(name), "container.%d", etype);
		size_t n = test_vector("sec/rxgk", name, token, sizeof(token));
		assert_ok(gk_read_token(gk, RX_SEC_RXGK, token, n, today, &t));
		assert_int_equal(t.terms.etype, etype);
		assert_int_equal(t.terms.level, RX_LEVEL_CRYPT);
		assert_int_equal(t.terms.lifetime, 36000);
		assert_int_equal(t.terms.bytelife, 30);
		assert_int_equal(t.terms.expires, 0);
		assert_string_equal(t.name, "afs");
		assert_string_equal(t.cell, "");
		for (uint8_t i = 0; i < (etype == 17 ? 16 : 32); i++)
			assert_int_equal(t.terms.k0[i], i);
	}
}

static struct rxgk_terms terms_of(int32_t etype, enum rx_sec_level level)
{
	struct rxgk_terms t = {.etype = etype, .level = level, .lifetime = 100, .bytelife = 24, .expires = today + SEC(3600)};
	for (int i = 0; i < 32; i++)
		t.k0[i] = (uint8_t)(i * 5);
	return t;
}

static void tokens_carry_terms_and_names(void **state)
{
	(void)state;
	static const uint8_t indices[] = {RX_SEC_RXGK, RX_SEC_YFS_RXGK};
	static const int32_t etypes[] = {17, 18, 19, 20, 25, 26};
	CLEANUP(gk) struct gk *gk = with_key(18);
	for (size_t e = 0; e < ARRAY_SIZE(etypes); e++)
		for (int i = 0; i < 2; i++) {
			const struct rxgk_terms terms = terms_of(etypes[e], RX_LEVEL_AUTH);
			CLEANUP(gk_token) struct gk_token token = {};
			struct rxgk_ticket t = {};
			assert_ok(gk_make_token(gk, indices[i], &terms, exported, EXPORTED_LEN, "jane/admin@X.ORG", today, &token));
			assert_ok(gk_read_token(gk, indices[i], token.token, token.len, today, &t));
			assert_string_equal(t.name, "jane");
			assert_string_equal(t.instance, "admin");
			assert_string_equal(t.cell, "X.ORG");
			assert_int_equal(t.terms.etype, etypes[e]);
			assert_int_equal(t.terms.level, RX_LEVEL_AUTH);
			assert_int_equal(t.terms.lifetime, 100);
			assert_int_equal(t.terms.bytelife, 24);
			assert_int_equal(t.terms.expires, terms.expires);
			/* the other layout does not fit */
			assert_int_not_equal(gk_read_token(gk, indices[1 - i], token.token, token.len, today, &t), AFS_OK);
			for (size_t at = 0; at < token.len; at++) {
				token.token[at] ^= 1;
				assert_int_not_equal(gk_read_token(gk, indices[i], token.token, token.len, today, &t), AFS_OK);
				token.token[at] ^= 1;
			}
			for (size_t cut = 0; cut < token.len; cut++)
				assert_err(gk_read_token(gk, indices[i], token.token, cut, today, &t), AFS_EBADTICKET);
		}
}

static void names_that_afs_cannot_tell_apart_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *principal;
		const char *name, *instance, *cell; /* NULL: refused */
	} rows[] = {{"joe@A.ORG", "joe", "", "A.ORG"}, {"joe/root@A.ORG", "joe", "root", "A.ORG"}, {"joe.x@A.ORG", NULL, NULL, NULL},
		{"a/b/c@A.ORG", NULL, NULL, NULL}, {"joe", NULL, NULL, NULL}, {"@A.ORG", NULL, NULL, NULL}, {"joe@A@B", NULL, NULL, NULL},
		{"j\\/oe@A.ORG", "j/oe", "", "A.ORG"}, {"a/b/c/d@A.ORG", NULL, NULL, NULL}, {"joe@", NULL, NULL, NULL}};
	CLEANUP(gk) struct gk *gk = with_key(17);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct rxgk_terms terms = terms_of(18, RX_LEVEL_CRYPT);
		uint8_t name[64];
		CLEANUP(gk_token) struct gk_token token = {};
		struct rxgk_ticket t = {};
		const size_t n = strlen(rows[i].principal);
		memcpy(name, exported, 18);
		name[18] = (uint8_t)n;
		memcpy(name + 19, rows[i].principal, n);
		assert_ok(gk_make_token(gk, RX_SEC_YFS_RXGK, &terms, name, 19 + n, "", today, &token));
		afs_err err = gk_read_token(gk, RX_SEC_YFS_RXGK, token.token, token.len, today, &t);
		if (!rows[i].name) {
			assert_int_not_equal(err, AFS_OK);
			continue;
		}
		assert_ok(err);
		assert_string_equal(t.name, rows[i].name);
		assert_string_equal(t.instance, rows[i].instance);
		assert_string_equal(t.cell, rows[i].cell);
	}
	/* an exported name that says more than it holds, or is no Kerberos name */
	static const uint8_t odd[] = "\x04\x01\x00\x0b\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x00\x00\x00\x20jane@X.ORG";
	const struct rxgk_terms terms = terms_of(18, RX_LEVEL_CRYPT);
	for (size_t cut = 1; cut < sizeof(odd); cut++) {
		CLEANUP(gk_token) struct gk_token token = {};
		struct rxgk_ticket t = {};
		assert_ok(gk_make_token(gk, RX_SEC_YFS_RXGK, &terms, odd, cut, "", today, &token));
		assert_err(gk_read_token(gk, RX_SEC_YFS_RXGK, token.token, token.len, today, &t), AFS_EBADTICKET);
	}
}

static void keys_come_from_a_file_that_nobody_else_reads(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/rxgk.keys", dir);
	const struct gk_config config = {.path = path};
	const struct rxgk_terms terms = terms_of(18, RX_LEVEL_CRYPT);
	struct gk *gk;
	struct stat st;
	CLEANUP(gk_token) struct gk_token token = {};
	struct rxgk_ticket t = {};
	CLEANUP(buf) struct buf why = {};
	assert_ok(gk_open(&config, &gk, &why));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_ok(gk_make_token(gk, RX_SEC_YFS_RXGK, &terms, NULL, 0, NULL, today, &token));
	gk_close(gk);
	assert_ok(gk_open(&config, &gk, &why));
	assert_ok(gk_read_token(gk, RX_SEC_YFS_RXGK, token.token, token.len, today, &t));
	assert_string_equal(t.name, "afs");
	gk_close(gk);

	for (off_t cut = st.st_size - 1; cut >= 0; cut--) {
		assert_int_equal(truncate(path, cut), 0);
		assert_err(gk_open(&config, &gk, &why), AFS_ECORRUPT);
	}
	assert_non_null(strstr(why.data, "rxgk.keys"));
	/* another key than the token's */
	assert_int_equal(unlink(path), 0);
	assert_ok(gk_open(&config, &gk, &why));
	assert_err(gk_read_token(gk, RX_SEC_YFS_RXGK, token.token, token.len, today, &t), AFS_EBADTICKET);
	assert_err(gk_add(gk, 1, 18, terms.k0, 32), AFS_EEXIST);
	assert_err(gk_add(gk, 2, 18, terms.k0, 16), AFS_EINVAL);
	assert_err(gk_add(gk, 2, 23, terms.k0, 16), AFS_EWEAKKEY);
	assert_ok(gk_add(gk, 2, 18, terms.k0, 32));
	gk_token_fini(&token);
	assert_ok(gk_make_token(gk, RX_SEC_YFS_RXGK, &terms, NULL, 0, NULL, today, &token));
	assert_int_equal(token.token[3], 2); /* in the newest */
	gk_close(gk);
	test_scratch_free(dir);
}

static void two_tokens_make_one(void **state)
{
	(void)state;
	CLEANUP(gk) struct gk *gk = with_key(18);
	struct rxgk_terms first = terms_of(18, RX_LEVEL_CRYPT), second = terms_of(17, RX_LEVEL_CRYPT);
	CLEANUP(gk_token) struct gk_token a = {};
	CLEANUP(gk_token) struct gk_token b = {};
	CLEANUP(gk_token) struct gk_token both = {};
	struct rxgk_ticket t = {};
	second.k0[0] = 99;
	second.lifetime = 50;
	second.expires = today + SEC(60);
	assert_ok(gk_make_token(gk, RX_SEC_YFS_RXGK, &first, exported, EXPORTED_LEN, "", today, &a));
	assert_ok(gk_make_token(gk, RX_SEC_YFS_RXGK, &second, NULL, 0, NULL, today, &b));
	assert_ok(gk_combine(gk, a.token, a.len, b.token, b.len, RX_LEVEL_CRYPT, today, &both));
	assert_ok(gk_read_token(gk, RX_SEC_YFS_RXGK, both.token, both.len, today, &t));
	assert_string_equal(t.name, "jane");
	assert_int_equal(t.terms.etype, 18);
	assert_int_equal(t.terms.lifetime, 50);
	assert_int_equal(t.terms.expires, second.expires);
	assert_memory_equal(t.terms.k0, both.terms.k0, 32);
	assert_memory_not_equal(t.terms.k0, first.k0, 32);
	struct gk_token none = {};
	assert_err(gk_combine(gk, a.token, a.len, b.token, b.len, RX_LEVEL_CRYPT, second.expires, &none), AFS_EEXPIRED);
	assert_err(gk_combine(gk, a.token, a.len, b.token, b.len - 4, RX_LEVEL_CRYPT, today, &none), AFS_EBADTICKET);
}

static void a_token_of_tomorrow_is_refused(void **state)
{
	(void)state;
	CLEANUP(gk) struct gk *gk = with_key(18);
	const struct rxgk_terms terms = terms_of(18, RX_LEVEL_CRYPT);
	CLEANUP(gk_token) struct gk_token token = {};
	struct rxgk_ticket t = {};
	assert_ok(gk_make_token(gk, RX_SEC_YFS_RXGK, &terms, NULL, 0, NULL, today + SEC(86400), &token));
	assert_err(gk_read_token(gk, RX_SEC_YFS_RXGK, token.token, token.len, today, &t), AFS_ENOAUTH);
	assert_ok(gk_read_token(gk, RX_SEC_YFS_RXGK, token.token, token.len, today + SEC(86400 - 600), &t));
}

TEST_MAIN(T(printed_tokens_are_the_cell_itself), T(tokens_carry_terms_and_names),
	T(names_that_afs_cannot_tell_apart_are_refused), T(keys_come_from_a_file_that_nobody_else_reads), T(two_tokens_make_one),
	T(a_token_of_tomorrow_is_refused))
