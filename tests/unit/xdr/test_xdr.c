/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "rx/xdr/xdr.h"

#define XDR_ROWS "tests/unit/xdr/sample.def"
#include "rx/xdr/struct_pass.h"
#define XDR_ROWS "tests/unit/xdr/sample.def"
#include "rx/xdr/codec_pass.h"

static const char wire_hex[] = "00000001 ffffffff fffffffe 00000003 61626300 00000002 beef0000"
			       "00000002 00000005 00000000 00000006 00000007 00000000 00000008"
			       "00000009 0000000a 00000078 00000079 00000000 00000000 0102030405000000";

static struct sample_pair many[2] = {{5, 6}, {7, 8}};
static const struct sample value = {
	.pair = {1, -2},
	.name = {"abc", 3},
	.blob = {(const uint8_t *)"\xbe\xef", 2},
	.many = {many, 2},
	.two = {9, 10},
	.chars = "xy",
	.raw = {1, 2, 3, 4, 5},
};

static void a_struct_encodes_to_the_bytes_of_its_rows(void **state)
{
	(void)state;
	uint8_t out[256];
	struct xdr_out x = {out, out + sizeof(out), AFS_OK};
	xdr_put_sample(&x, &value);
	assert_ok(x.err);
	assert_hex(out, (size_t)(x.p - out), wire_hex);
}

static void a_struct_decodes_to_what_was_encoded(void **state)
{
	(void)state;
	uint8_t in[256];
	size_t n = test_unhex(wire_hex, in, sizeof(in));
	CLEANUP(arena) struct arena a;
	arena_init(&a, 4096);
	struct xdr_in x = {in, in + n, &a, AFS_OK};
	struct sample got;
	xdr_get_sample(&x, &got);
	assert_ok(x.err);
	assert_ptr_equal(x.p, x.end);
	assert_true(xdr_str_is(got.name, "abc"));
	assert_int_equal(got.many.n, 2);
	assert_int_equal(got.many.v[1].b, 8);
	assert_string_equal(got.chars, "xy");
	assert_int_equal(got.raw[4], 5);
}

static void every_truncation_asks_for_more(void **state)
{
	(void)state;
	uint8_t in[256];
	size_t n = test_unhex(wire_hex, in, sizeof(in));
	for (size_t cut = 0; cut < n; cut++) {
		CLEANUP(arena) struct arena a;
		arena_init(&a, 4096);
		struct xdr_in x = {in, in + cut, &a, AFS_OK};
		struct sample got;
		xdr_get_sample(&x, &got);
		assert_err(x.err, AFS_EAGAIN);
	}
}

static void a_count_past_its_bound_is_refused_before_memory_is_taken(void **state)
{
	(void)state;
	static const char *const hex[] = {"00000001 0000000000000002 00000009",
		"00000001 0000000000000002 00000000 00000011",
		"00000001 0000000000000002 00000000 00000000 ffffffff"};
	for (size_t i = 0; i < ARRAY_SIZE(hex); i++) {
		uint8_t in[64];
		size_t n = test_unhex(hex[i], in, sizeof(in));
		CLEANUP(arena) struct arena a;
		arena_init(&a, 4096);
		struct xdr_in x = {in, in + n, &a, AFS_OK};
		struct sample got;
		xdr_get_sample(&x, &got);
		assert_err(x.err, AFS_EDECODE);
		assert_int_equal(a.used, 0);
	}
}

static void a_string_with_a_nul_inside_is_refused(void **state)
{
	(void)state;
	uint8_t in[8] = {0, 0, 0, 3, 'a', 0, 'b', 0};
	CLEANUP(arena) struct arena a;
	arena_init(&a, 4096);
	struct xdr_in x = {in, in + sizeof(in), &a, AFS_OK};
	struct xdr_str s;
	xdr_get_str(&x, &s, 8);
	assert_err(x.err, AFS_EDECODE);
}

static void a_struct_prints_as_json(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf b = {0};
	xdr_print_sample(&b, &value);
	assert_string_equal(b.data,
		"{\"pair\":{\"a\":1,\"b\":-2},\"name\":\"abc\",\"blob\":{\"bytes\":2},"
		"\"many\":[{\"a\":5,\"b\":6},{\"a\":7,\"b\":8}],\"two\":[9,10],\"chars\":\"xy\","
		"\"raw\":{\"bytes\":5}}");
}

TEST_MAIN(T(a_struct_encodes_to_the_bytes_of_its_rows), T(a_struct_decodes_to_what_was_encoded),
	T(every_truncation_asks_for_more), T(a_count_past_its_bound_is_refused_before_memory_is_taken),
	T(a_string_with_a_nul_inside_is_refused), T(a_struct_prints_as_json))
