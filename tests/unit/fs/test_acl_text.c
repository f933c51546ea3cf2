/* SPDX-License-Identifier: BSD-2-Clause
 * The ACL text is a stranger's counted bytes (OPENAFS-SA-2013-001, -2024-002; K14). */
#include "tests/lib/test.h"

#include "fileserver/fs/acl_text.h"

#include <stdio.h>
#include <string.h>

static afs_err parse(const char *text, size_t n, struct acl_text *out)
{
	/* exactly sized, so that a sanitizer sees a read past the end */
	CLEANUP(heap) char *copy = mem_alloc(n, 1);
	if (n)
		memcpy(copy, text, n);
	return acl_text_parse(copy, n, out);
}

static void what_a_stock_server_sent_is_taken_and_given_back(void **state)
{
	(void)state;
	static const char text[] = "2\n1\nsystem:anyuser\t9\nalice\t127\nbob\t2\n";
	struct acl_text acl;
	assert_ok(parse(text, sizeof(text), &acl));
	assert_int_equal(acl.positive, 2);
	assert_int_equal(acl.negative, 1);
	assert_string_equal(acl.e[0].name, "system:anyuser");
	assert_int_equal(acl.e[1].rights, 127);
	assert_string_equal(acl.e[2].name, "bob");
	CLEANUP(buf) struct buf b = {0};
	acl_text_print(&acl, &b);
	assert_ok(b.err);
	assert_int_equal(b.len, sizeof(text));
	assert_memory_equal(b.data, text, sizeof(text));
}

static void a_blank_does_for_a_tab_and_no_entry_is_legal(void **state)
{
	(void)state;
	struct acl_text acl;
	assert_ok(parse("1\n0\na 1\n", 9, &acl));
	assert_int_equal(acl.e[0].rights, 1);
	assert_ok(parse("0\n0\n", 5, &acl));
	assert_ok(parse("1\n0\na\t4278190207\n", 18, &acl)); /* A-H and rlidwka */
}

static void malformed_texts_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *p;
		size_t n;
	} bad[] = {
#define B(s) {s, sizeof(s)}
#define CUT(s)                                                                                     \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}
		{"", 0},
		B(""),
		CUT("0\n0\n"),
		CUT("1\n0\nu 127"),
		B("1\n0\nu 127"),
		B("2\n0\na 1\n"),
		B("1\n0\na 1\nb 1\n"),
		B("-1\n0\n"),
		B("1\n-1\na 1\n"),
		B("21\n0\n"),
		B("0\n21\n"),
		B("11\n10\n"),
		B("2147483648\n0\n"),
		B("4294967297\n0\n"),
		B("18446744073709551616\n0\n"),
		B("1\n0\na\n"),
		B("1\n0\na \n"),
		B("1\n0\n 1\n"),
		B("1\n0\na -1\n"),
		B("1\n0\na 0x1\n"),
		B("1\n0\na 4294967296\n"),
		B("1\n0\na 4294967295\n"),
		B("1\n0\na 128\n"),
		B("1\n0\na 1 \n"),
		B("1\n0\na 1\r\n"),
		B("1 0\na 1\n"),
		B("\n\n"),
		B("1\n\na 1\n"),
		B("0\n0\nx"),
		B("0\n0\n\0"),
		B("1\n0\na\0b 1\n"),
		B("1\n0\na\x7f"
		  "b 1\n"),
		B("1\n0\na\x1b[31m 1\n"),
		B("01\n0\na 1\n\0\0"),
	};
	struct acl_text acl = {.positive = 77};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i].p, bad[i].n, &acl) != AFS_EINVAL)
			fail_msg("text %zu was taken", i);
	assert_int_equal(acl.positive, 77); /* the output is not touched */
}

static void names_have_63_bytes_at_most(void **state)
{
	(void)state;
	struct acl_text acl;
	for (size_t n = 62; n <= 300; n += n < 66 ? 1 : 100) {
		char text[400];
		int len = snprintf(text, sizeof(text), "1\n0\n%0*d\t1\n", (int)n, 7);
		assert_err(parse(text, (size_t)len + 1, &acl), n <= 63 ? AFS_OK : AFS_EINVAL);
	}
}

static void twenty_entries_fit_and_no_more(void **state)
{
	(void)state;
	for (int n = 20; n <= 21; n++) {
		char text[512];
		int len = snprintf(text, sizeof(text), "%d\n10\n", n - 10);
		for (int i = 0; i < n; i++)
			len += snprintf(text + len, sizeof(text) - (size_t)len, "u%d\t1\n", i);
		struct acl_text acl;
		assert_err(parse(text, (size_t)len + 1, &acl), n == 20 ? AFS_OK : AFS_EINVAL);
	}
}

static void every_cut_of_a_good_text_is_refused(void **state)
{
	(void)state;
	static const char text[] = "2\n1\nsystem:anyuser\t9\nalice\t127\nbob\t2\n";
	struct acl_text acl;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		assert_err(parse(text, cut, &acl), AFS_EINVAL);
		char with_nul[sizeof(text)];
		memcpy(with_nul, text, cut);
		with_nul[cut] = 0;
		if (cut + 1 < sizeof(text))
			assert_err(parse(with_nul, cut + 1, &acl), AFS_EINVAL);
	}
}

TEST_MAIN(T(what_a_stock_server_sent_is_taken_and_given_back),
	T(a_blank_does_for_a_tab_and_no_entry_is_legal), T(malformed_texts_are_refused),
	T(names_have_63_bytes_at_most), T(twenty_entries_fit_and_no_more),
	T(every_cut_of_a_good_text_is_refused))
