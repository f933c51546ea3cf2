/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/text.h"

#include <string.h>

static void distances_count_single_letter_edits(void **state)
{
	(void)state;
	assert_int_equal(text_distance("realm", "realm"), 0);
	assert_int_equal(text_distance("relm", "realm"), 1);
	assert_int_equal(text_distance("raelm", "realm"), 1); /* a swap of neighbours */
	assert_int_equal(text_distance("REALM", "realm"), 0);
	assert_int_equal(text_distance("", "abc"), 3);
	assert_int_equal(text_distance("kitten", "sitting"), 3);
}

static void a_word_too_long_is_near_to_nothing(void **state)
{
	(void)state;
	char longer[70];
	memset(longer, 'a', 69);
	longer[69] = '\0';
	assert_true(text_distance(longer, "a") == SIZE_MAX);
}

static void sizes_are_read_with_units_of_1024(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t bytes;
	} all[] = {{"0", 0}, {"17", 17}, {"1K", 1024}, {"64M", 64 << 20}, {"1G", 1 << 30}, {"1.5G", 3 << 29},
		{"2GiB", INT64_C(2) << 30}, {"10kb", 10240}, {"9223372036854775807", INT64_MAX}};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int64_t v = -1;
		assert_true(text_size(all[i].text, &v));
		assert_int_equal(v, all[i].bytes);
	}
}

static void what_is_no_size_is_refused(void **state)
{
	(void)state;
	static const char *const all[] = {"", "-1", "1e9", "0x10", "G", "1X", "1.5", "1.G", "1 G", "9223372036854775808",
		"8E", "99999999999999999999999", "1GG", "1G!"};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int64_t v = 42;
		assert_false(text_size(all[i], &v));
		assert_int_equal(v, 42);
	}
}

static void a_size_is_written_as_short_as_it_is_exact(void **state)
{
	(void)state;
	char s[24];
	assert_string_equal(text_size_of(s, 0), "0");
	assert_string_equal(text_size_of(s, 16 << 20), "16M");
	assert_string_equal(text_size_of(s, 1025), "1025");
	assert_string_equal(text_size_of(s, INT64_MAX), "9223372036854775807");
}

static void numbers_and_addresses_are_whole_words(void **state)
{
	(void)state;
	int64_t v;
	uint32_t ip;
	assert_true(text_int("-42", &v) && v == -42);
	assert_true(text_int("+7", &v) && v == 7);
	assert_false(text_int("7 ", &v) || text_int("", &v) || text_int("-", &v) || text_int("99999999999999999999", &v));
	assert_true(text_ipv4("127.0.0.1", &ip) && ip == 0x7f000001);
	assert_false(text_ipv4("127.0.0", &ip) || text_ipv4("1.2.3.256", &ip) || text_ipv4("localhost", &ip));
	assert_string_equal(IPV4(0x7f000001), "127.0.0.1");
}

TEST_MAIN(T(distances_count_single_letter_edits), T(a_word_too_long_is_near_to_nothing),
	T(sizes_are_read_with_units_of_1024), T(what_is_no_size_is_refused),
	T(a_size_is_written_as_short_as_it_is_exact), T(numbers_and_addresses_are_whole_words))
