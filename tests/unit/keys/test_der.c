/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/keys/der.h"

#include <string.h>

static void integers_come_back_in_their_shortest_form(void **state)
{
	(void)state;
	static const struct {
		int64_t v;
		const char *hex;
	} rows[] = {{0, "020100"}, {1, "020101"}, {127, "02017f"}, {128, "02020080"},
		{255, "020200ff"}, {256, "02020100"}, {-1, "0201ff"}, {-128, "020180"},
		{-129, "0202ff7f"}, {INT32_MAX, "02047fffffff"}, {UINT32_MAX, "020500ffffffff"},
		{INT32_MIN, "020480000000"}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t b[16];
		struct der_out o = {b, b + sizeof(b), false};
		der_put_integer(&o, rows[i].v);
		size_t n = (size_t)(b + sizeof(b) - o.p);
		assert_hex(o.p, n, rows[i].hex);
		struct der in = der_of(o.p, n);
		assert_true(der_integer(&in) == rows[i].v);
		assert_true(der_done(&in));
	}
}

static void times_are_calendar_times(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t sec;
	} rows[] = {{"19700101000000Z", 0}, {"20260101000000Z", 1767225600},
		{"20380119031407Z", INT32_MAX}, {"20000229235959Z", 951868799},
		{"21000301000000Z", 4107542400}, {"19691231235959Z", -1}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t b[32];
		struct der_out o = {b, b + sizeof(b), false};
		der_put_bytes(&o, DER_TIME, rows[i].text, 15);
		struct der in = der_of(o.p, 17);
		assert_true(der_time(&in) == SEC(rows[i].sec));
		assert_true(der_done(&in));
		if (rows[i].sec >= 0) {
			struct der_out again = {b, b + 17, false};
			der_put_time(&again, SEC(rows[i].sec));
			assert_memory_equal(b + 2, rows[i].text, 15);
		}
	}
	static const char *const bad[] = {"20260101000000+", "2026010100000 Z", "20261301000000Z",
		"20260001000000Z", "20260132000000Z", "20260100000000Z", "20260101240000Z",
		"20260101006000Z", "2026010100000aZ", "-0260101000000Z"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint8_t b[32] = {DER_TIME, 15};
		memcpy(b + 2, bad[i], 15);
		struct der in = der_of(b, 17);
		(void)der_time(&in);
		assert_true(in.bad);
	}
	/* beyond what wall_ns holds */
	uint8_t far[17] = {DER_TIME, 15}, old[17] = {DER_TIME, 15};
	memcpy(far + 2, "99991231235959Z", 15);
	memcpy(old + 2, "00000101000000Z", 15);
	struct der in = der_of(far, 17);
	assert_true(der_time(&in) == INT64_MAX && !in.bad);
	in = der_of(old, 17);
	assert_true(der_time(&in) == INT64_MIN && !in.bad);
}

static void lengths_that_lie_make_the_reader_bad(void **state)
{
	(void)state;
	static const char *const bad[] = {"04", "0401", "04810004", "0480", "0485000000000100",
		"0484ffffffff00", "04847fffffff", "0482ffff00", "04820001", "1f0100", "ff0100",
		"0402aa"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint8_t b[16];
		size_t n = test_unhex(bad[i], b, sizeof(b));
		CLEANUP(heap) uint8_t *exact = mem_alloc(n, 1);
		memcpy(exact, b, n);
		struct der in = der_of(exact, n);
		struct der_bytes got = der_bytes(&in, exact[0]);
		if (!in.bad) { /* a first element that is whole, then one that is not */
			assert_int_equal(got.n, 0);
			der_skip(&in);
		}
		assert_true(in.bad);
		der_skip(&in);
		assert_false(der_next_is(&in, exact[0]));
		assert_false(der_done(&in));
	}
}

static void long_lengths_are_written_and_read(void **state)
{
	(void)state;
	static uint8_t content[70000], b[70100];
	static const size_t sizes[] = {0, 1, 127, 128, 255, 256, 65535, 65536, 70000};
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct der_out o = {b, b + sizeof(b), false};
		der_put_bytes(&o, DER_OCTETS, content, sizes[i]);
		assert_false(o.full);
		struct der in = der_of(o.p, (size_t)(b + sizeof(b) - o.p));
		assert_int_equal(der_bytes(&in, DER_OCTETS).n, sizes[i]);
		assert_true(der_done(&in));
	}
}

static void a_writer_without_room_says_so(void **state)
{
	(void)state;
	uint8_t b[8];
	struct der_out o = {b, b + sizeof(b), false};
	der_put_bytes(&o, DER_OCTETS, "123456", 6);
	assert_false(o.full);
	der_put_integer(&o, 1);
	assert_true(o.full);
}

TEST_MAIN(T(integers_come_back_in_their_shortest_form), T(times_are_calendar_times),
	T(lengths_that_lie_make_the_reader_bad), T(long_lengths_are_written_and_read),
	T(a_writer_without_room_says_so))
