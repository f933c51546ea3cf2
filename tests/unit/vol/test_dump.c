/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "fileserver/vol/dump.h"

#include <string.h>

struct bytes {
	const uint8_t *p;
	size_t n, at;
};

static afs_err from_bytes(void *ctx, void *p, size_t n)
{
	struct bytes *b = ctx;
	if (n > b->n - b->at)
		return AFS_EEOF;
	memcpy(p, b->p + b->at, n);
	b->at += n;
	return AFS_OK;
}

/* Volume 536870932 "craft" as a stock server writes it: header, a root directory with two entries'
 * worth of page, one file of 11 bytes, end.  The page itself is zero: content is not judged here. */
static size_t sample(uint8_t *out, size_t cap)
{
	struct dump_header h = {.volume = 0x20000014, .name = "craft", .to = 0x6b0dc1b3};
	struct dump_volume v = {.id = 0x20000014, .parent = 0x20000014, .name = "craft", .in_service = 1,
		.blessed = 1, .next_unique = 9, .max_quota = 5000, .disk_used = 11, .file_count = 7,
		.creation = 0x6b0dc1b7, .access = 0x6b0dc1b9, .update = 0x6b0dc1b3,
		.offline_message = "A volume utility is running.", .day_use_date = 0x6b0cbc80, .day_use = 15};
	struct dump_acl acl = {.positive = 1, .entry = {{AFS_ADMINISTRATORS, 127}}};
	struct dump_vnode root = {.vnode = 1, .unique = 1, .type = AFS_DIR, .links = 3, .data_version = 1,
		.mtime = 0x6b0dc1b3, .author = 1, .mode = 0777, .server_mtime = 0x6b0dc1b3, .has_acl = true,
		.has_data = true, .data_len = 2048};
	struct dump_vnode file = {.vnode = 2, .unique = 2, .type = AFS_FILE, .links = 1, .mode = 0644,
		.parent = 1, .has_data = true, .data_len = 11};
	struct dump_vnode kept = {.vnode = 4, .unique = 5, .keep = true};
	assert_true(cap >= 8192);
	memset(out, 0, cap);
	dump_acl_put(root.acl, &acl);
	size_t n = dump_put_header(out, &h, &v);
	assert_true(n <= DUMP_HEADER_SIZE);
	n += dump_put_vnode(out + n, &root);
	n += 2048;
	n += dump_put_vnode(out + n, &file);
	memcpy(out + n, "hello dump\n", 11);
	n += 11;
	n += dump_put_vnode(out + n, &kept);
	return n + dump_put_end(out + n);
}

/* Reads it all; gives the error and how many vnodes came. */
static afs_err walk(const uint8_t *p, size_t n, unsigned *vnodes)
{
	struct bytes b = {p, n, 0};
	struct dump_reader r;
	enum dump_item item;
	uint8_t data[700];
	size_t got;
	*vnodes = 0;
	dump_reader_init(&r, (struct dump_source){from_bytes, &b});
	for (;;) {
		TRY(dump_next(&r, &item));
		if (item == DUMP_END)
			return AFS_OK;
		if (item == DUMP_VNODE)
			++*vnodes;
		if (item == DUMP_VNODE && r.vnode.vnode == 2) {
			TRY(dump_data(&r, data, sizeof(data), &got));
			assert_int_equal(got, 11);
			assert_memory_equal(data, "hello dump\n", 11);
		}
	}
}

static void the_header_is_written_as_stock_servers_write_it(void **state)
{
	(void)state;
	uint8_t out[8192];
	sample(out, sizeof(out));
	assert_hex(out, 0xc7,
		"01 B3A11322 00000001 76 20000014 6E 6372616674 00 74 0002 00000000 6B0DC1B3 02"
		"69 20000014 76 00000001 6E 6372616674 00 73 01 62 01 75 00000009 74 00 70 20000014"
		"63 00000000 71 00001388 6D 00000000 64 0000000B 66 00000007 61 00000000 6F 00000000"
		"43 6B0DC1B7 41 6B0DC1B9 55 6B0DC1B3 45 00000000 42 00000000"
		"4F 4120766f6c756d65207574696c6974792069732072756e6e696e672e 00 4D 00"
		"57 0007 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
		"44 6B0CBC80 5A 0000000F");
}

static void what_was_written_reads_back(void **state)
{
	(void)state;
	uint8_t out[8192];
	size_t n = sample(out, sizeof(out));
	unsigned vnodes;
	assert_ok(walk(out, n, &vnodes));
	assert_int_equal(vnodes, 3);
}

static void every_truncation_is_a_bad_dump(void **state)
{
	(void)state;
	uint8_t out[8192];
	size_t n = sample(out, sizeof(out));
	unsigned vnodes;
	for (size_t cut = 0; cut < n; cut++)
		assert_err(walk(out, cut, &vnodes), AFS_EBADDUMP);
}

static void bytes_after_the_end_mark_are_a_bad_dump(void **state)
{
	(void)state;
	uint8_t out[8192];
	size_t n = sample(out, sizeof(out));
	unsigned vnodes;
	assert_err(walk(out, n + 1, &vnodes), AFS_EBADDUMP);
}

static void hostile_vnodes_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *what, *hex;
	} cases[] = {
		{"vnode 0", "03 00000000 00000001 74 01"},
		{"unique 0", "03 00000002 00000000 74 01"},
		{"type 7", "03 00000002 00000001 74 07"},
		{"type missing", "03 00000002 00000001 6c 0001"},
		{"directory under an even number", "03 00000002 00000001 74 02"},
		{"file under an odd number", "03 00000003 00000001 74 01"},
		{"directory without access list", "03 00000003 00000001 74 02 66 00000000"},
		{"attribute after content", "03 00000006 00000001 74 01 66 00000000 6c 0001"},
		{"unknown critical tag", "03 00000002 00000001 7e 78 00000000 74 01"},
		{"tag above 0x7f", "03 00000002 00000001 80"},
		{"unknown section", "05"},
	};
	uint8_t out[8192];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sample(out, sizeof(out));
		uint8_t extra[64];
		size_t m = test_unhex(cases[i].hex, extra, sizeof(extra));
		memcpy(out + 0xc7, extra, m);
		size_t n = 0xc7 + m;
		n += dump_put_end(out + n);
		unsigned vnodes;
		if (walk(out, n, &vnodes) != AFS_EBADDUMP)
			fail_msg("accepted: %s", cases[i].what);
	}
}

static void unknown_tags_are_skipped_by_the_rules_of_their_range(void **state)
{
	(void)state;
	uint8_t out[8192], extra[64];
	sample(out, sizeof(out));
	size_t m = test_unhex("03 00000006 00000001 78 00000001 50 03 aabbcc 51 82 0002 ddee 7b 74 01 7e 66 00000000 66 00000002 aabb 78 00000000",
		extra, sizeof(extra));
	memcpy(out + 0xc7, extra, m);
	size_t n = 0xc7 + m;
	n += dump_put_end(out + n);
	unsigned vnodes;
	assert_ok(walk(out, n, &vnodes));
	assert_int_equal(vnodes, 1);
}

static void negative_entries_stand_from_the_end_backwards(void **state)
{
	(void)state;
	struct dump_acl acl = {.positive = 2, .negative = 3,
		.entry = {{-204, 127}, {-101, 9}, {1, 1}, {1001, 2}, {1002, 4}}}, back;
	uint8_t block[DUMP_ACL_SIZE];
	dump_acl_put(block, &acl);
	assert_hex(block, 60, "0000003c 00000001 00000005 00000002 00000003 ffffff34 0000007f ffffff9b 00000009"
		"000003ea 00000004 000003e9 00000002 00000001 00000001");
	assert_ok(dump_acl_get(block, &back));
	assert_memory_equal(&acl, &back, sizeof(acl));
}

static void an_access_list_with_impossible_counts_is_refused(void **state)
{
	(void)state;
	static const uint32_t wrong[][4] = {{28, 21, 21, 0}, {28, 1, 2, 0xffffffff}, {27, 1, 1, 0},
		{28, 0xffffffff, 0xffffffff, 0}, {188, 20, 10, 9}};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		uint8_t block[DUMP_ACL_SIZE] = {0};
		struct dump_acl out;
		be32_put(block, wrong[i][0]);
		be32_put(block + 8, wrong[i][1]);
		be32_put(block + 12, wrong[i][2]);
		be32_put(block + 16, wrong[i][3]);
		assert_err(dump_acl_get(block, &out), AFS_EBADDUMP);
	}
}

TEST_MAIN(T(the_header_is_written_as_stock_servers_write_it), T(what_was_written_reads_back),
	T(every_truncation_is_a_bad_dump), T(bytes_after_the_end_mark_are_a_bad_dump),
	T(hostile_vnodes_are_refused), T(unknown_tags_are_skipped_by_the_rules_of_their_range),
	T(negative_entries_stand_from_the_end_backwards),
	T(an_access_list_with_impossible_counts_is_refused))
