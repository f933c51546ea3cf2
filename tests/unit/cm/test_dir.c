/* SPDX-License-Identifier: BSD-2-Clause */
#include "client/cm/cm.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

/* The directory of directory.md §7: b, Makefile, sixteen x, ..a (observed at a stock server). */
static void example(uint8_t page[2048])
{
	static const struct {
		uint16_t at;
		const char *hex;
	} lines[] = {{0x000, "000104d233ffff0f0000000000000000"}, {0x0a0, "00110000"},
		{0x0f0, "00000000000000000000"
			"0000000d0000"},
		{0x120, "0000000000000000000e0000"}, {0x140, "0000000000000000000000130000"},
		{0x160, "00000000001000000000"}, {0x1a0, "01000000000000050000000b2e"},
		{0x1c0, "0100000000000001000000012e2e"}, {0x1e0, "010000000000000e0000000c62"},
		{0x200, "0100000f000000100000000d4d616b6566696c65"},
		{0x220, "01000000000000120000000e78787878787878787878787878787878"},
		{0x260, "01000000000000140000000f2e2e61"}};
	memset(page, 0, 2048);
	for (int i = 0x30; i < 0xa0; i++)
		page[i] = 0x40;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		test_unhex(lines[i].hex, page + lines[i].at, 2048 - lines[i].at);
	/* the slots of chain heads: bucket 46 ".", 68 "..", 85 "..a", 98 "Makefile", 0 xxxx */
	memset(page + 0xa0, 0, 256);
	be16_put(page + 0xa0 + 2 * 0, 0x11);
	be16_put(page + 0xa0 + 2 * 46, 0x0d);
	be16_put(page + 0xa0 + 2 * 68, 0x0e);
	be16_put(page + 0xa0 + 2 * 85, 0x13);
	be16_put(page + 0xa0 + 2 * 98, 0x10);
}

static struct cm_row *find(struct cm_dir *d, const char *name)
{
	return cm_dir_find(d, name, strlen(name));
}

static void a_directory_object_gives_its_names_in_slot_order(void **state)
{
	(void)state;
	uint8_t page[2048];
	struct cm_dir *d;
	example(page);
	assert_ok(cm_dir_parse(page, sizeof(page), &d));
	assert_int_equal(d->live, 4);
	assert_int_equal(d->parent_vnode, 1);
	assert_int_equal(find(d, "b")->vnode, 14);
	assert_int_equal(find(d, "b")->unique, 12);
	assert_int_equal(find(d, "Makefile")->vnode, 16);
	assert_int_equal(find(d, "xxxxxxxxxxxxxxxx")->vnode, 18);
	assert_int_equal(find(d, "..a")->vnode, 20);
	assert_null(find(d, "c"));
	static const char *const order[] = {"b", "Makefile", "xxxxxxxxxxxxxxxx", "..a"};
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(cm_dir_name(d, &d->rows[i]), order[i]);
	cm_dir_unref(d);
}

static void an_object_that_breaks_the_format_is_refused(void **state)
{
	(void)state;
	uint8_t page[2048];
	struct cm_dir *d;
	static const struct {
		uint16_t at;
		uint8_t bytes[2];
		const char *what;
	} wounds[] = {
		{2, {0, 0}, "no tag"},
		{0xa0, {0x00, 0x40}, "a slot past the last page"},
		{0xa0, {0x00, 0x05}, "a slot in the header"},
		{0x1e2, {0x00, 0x10}, "a chain that returns to itself"},
		{0x220, {0x00, 0x00}, "a chain into a free slot"},
		{0x22c, {0x00, 0x78}, "a name of no bytes"},
		{0x22c, {'a', '/'}, "a slash in a name"},
		{0x0a2, {0x00, 0x13}, "an entry in two chains"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(wounds); i++) {
		example(page);
		memcpy(page + wounds[i].at, wounds[i].bytes, 2);
		if (cm_dir_parse(page, sizeof(page), &d) != AFS_ECORRUPT)
			fail_msg("%s was taken", wounds[i].what);
	}
	example(page);
	assert_err(cm_dir_parse(page, 2047, &d), AFS_ECORRUPT);
	assert_err(cm_dir_parse(page, 0, &d), AFS_ECORRUPT);
	/* a name without an end in its page */
	memset(page + 0x7e0 + 12, 'n', 20);
	page[0x7e0] = 1;
	be32_put(page + 0x7e4, 2);
	be16_put(page + 0xa0 + 2 * 3, 63);
	assert_err(cm_dir_parse(page, sizeof(page), &d), AFS_ECORRUPT);
}

static void edits_keep_the_index_whole(void **state)
{
	(void)state;
	struct cm_dir *d = cm_dir_new(1, 1);
	char name[32];
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		assert_ok(cm_dir_add(d, name, strlen(name), i * 2 + 2, i));
	}
	for (unsigned i = 0; i < 1000; i += 2) {
		snprintf(name, sizeof(name), "file%u", i);
		cm_dir_remove(d, name, strlen(name));
	}
	assert_int_equal(d->live, 500);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		struct cm_row *r = find(d, name);
		if (i % 2 == 0)
			assert_null(r);
		else
			assert_int_equal(r->vnode, i * 2 + 2);
	}
	/* a name made and removed a million times takes no more room */
	for (unsigned i = 0; i < 100000; i++) {
		assert_ok(cm_dir_add(d, "tmp", 3, 4, i));
		cm_dir_remove(d, "tmp", 3);
	}
	assert_true(d->n < 2000);
	assert_int_equal(find(d, "file999")->vnode, 999 * 2 + 2);
	/* a name again replaces */
	assert_ok(cm_dir_add(d, "file1", 5, 77, 78));
	assert_int_equal(find(d, "file1")->vnode, 77);
	assert_int_equal(d->live, 500);
	cm_dir_unref(d);
}

static void who_lists_keeps_what_he_began_with(void **state)
{
	(void)state;
	struct cm_dir *d = cm_dir_new(1, 1);
	assert_ok(cm_dir_add(d, "a", 1, 2, 2));
	assert_ok(cm_dir_add(d, "b", 1, 4, 4));
	struct cm_dir *reader = cm_dir_ref(d);
	assert_ok(cm_dir_own(&d));
	assert_ptr_not_equal(d, reader);
	cm_dir_remove(d, "a", 1);
	assert_ok(cm_dir_add(d, "c", 1, 6, 6));
	assert_non_null(cm_dir_find(reader, "a", 1));
	assert_null(cm_dir_find(reader, "c", 1));
	assert_null(cm_dir_find(d, "a", 1));
	struct cm_dir *same = d;
	assert_ok(cm_dir_own(&d));
	assert_ptr_equal(d, same);
	cm_dir_unref(reader);
	cm_dir_unref(d);
}

static void absent_names_are_remembered_up_to_a_bound(void **state)
{
	(void)state;
	struct cm_dir *d = cm_dir_new(1, 1);
	char name[32];
	unsigned n = 0;
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "no%u", i);
		n += cm_dir_show_absent(d, name, strlen(name));
	}
	assert_int_equal(n, 4096);
	assert_int_equal(find(d, "no5")->state, CM_ROW_ABSENT);
	assert_int_equal(d->live, 0);
	assert_ok(cm_dir_add(d, "no5", 3, 8, 8)); /* now it is there */
	assert_int_equal(find(d, "no5")->state, CM_ROW_LIVE);
	cm_dir_unref(d);
}

static void mount_point_texts_are_read_and_others_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *cell, *volume;
		bool rw;
		uint32_t vnode, unique;
	} good[] = {
		{"#root.cell.", "", "root.cell", false, 1, 1},
		{"%root.cell.", "", "root.cell", true, 1, 1},
		{"#a.b:vol.", "a.b", "vol", false, 1, 1},
		{"#536870915.", "", "536870915", false, 1, 1},
		{"#vol.readonly.", "", "vol.readonly", false, 1, 1},
		{"#vol:5:7.", "", "vol", false, 5, 7},
		{"%a.b:vol:5:7.", "a.b", "vol", true, 5, 7},
	};
	struct cm_mount_text m;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_ok(cm_mount_parse(good[i].text, strlen(good[i].text), &m));
		assert_string_equal(m.cell, good[i].cell);
		assert_string_equal(m.volume, good[i].volume);
		assert_int_equal(m.forced_rw, good[i].rw);
		assert_int_equal(m.vnode, good[i].vnode);
		assert_int_equal(m.unique, good[i].unique);
	}
	static const char *const bad[] = {"", "#", "#.", "#a", "%:x.", "#cell:.", "root.cell.",
		"#a b.", "#a/b.", "#a:b:c:d:e.", "#vol:x:1.", "#vol:1:.", "#vol:99999999999:1.",
		"#\xff."};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (cm_mount_parse(bad[i], strlen(bad[i]), &m) == AFS_OK)
			fail_msg("\"%s\" was taken", bad[i]);
	char longer[400] = "#";
	memset(longer + 1, 'v', 300);
	strcpy(longer + 301, ".");
	assert_err(cm_mount_parse(longer, strlen(longer), &m), AFS_EINVAL);
}

TEST_MAIN(T(a_directory_object_gives_its_names_in_slot_order),
	T(an_object_that_breaks_the_format_is_refused), T(edits_keep_the_index_whole),
	T(who_lists_keeps_what_he_began_with), T(absent_names_are_remembered_up_to_a_bound),
	T(mount_point_texts_are_read_and_others_refused))
