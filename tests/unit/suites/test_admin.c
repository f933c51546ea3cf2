/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the administrators' suites read and write without a server. */
#include "tests/lib/test.h"

#include "cell/admin/inside.h"
#include "cell/admin/volume.h"
#include "cell/cli/bos.h"
#include "cell/cli/suite.h"
#include "cell/cli/vos.h"

#include <stdio.h>
#include <string.h>

/* --- CellServDB ------------------------------------------------------------------------------------------------- */

static const char cellservdb[] = ">grand.central.org  #GCO Public CellServDB 14 Nov 2024\n"
				 "18.9.48.14            #grand.mit.edu\n"
				 "128.2.13.219          #grand-old-opry.central.org\n"
				 "\n"
				 ">Example.ORG\t#upper case\n"
				 "10.0.0.1\t#db1.example.org\n"
				 "  [10.0.0.2]   #a clone\n"
				 "# a remark\n"
				 ">example.org.uk #\n"
				 "10.0.1.1\n"
				 ">empty.org\n"
				 ">broken.org\n"
				 "10.0.0\n";

static afs_err parse(const char *want, struct where_cell *out, struct buf *why)
{
	return where_parse(cellservdb, sizeof(cellservdb) - 1, want, out, why);
}

static void a_cell_is_found_by_its_name_or_the_beginning_of_it(void **state)
{
	(void)state;
	struct where_cell c;
	CLEANUP(buf) struct buf why = {};
	assert_ok(parse("grand", &c, &why));
	assert_string_equal(c.name, "grand.central.org");
	assert_int_equal(c.n, 2);
	assert_int_equal(c.ips[0], 0x1209300e);
	assert_ok(parse("EXAMPLE.org", &c, &why)); /* whole, although another begins with it */
	assert_string_equal(c.name, "example.org");
	assert_int_equal(c.n, 2);
	assert_int_equal(c.ips[1], 0x0a000002);
	assert_err(parse("example", &c, &why), AFS_EINVAL);
	assert_err(parse("nosuch", &c, &why), AFS_ENOENT);
	assert_err(parse("empty.org", &c, &why), AFS_ENOENT);
	assert_err(parse("broken.org", &c, &why), AFS_ECORRUPT);
}

/* --- KeyFileExt -------------------------------------------------------------------------------------------------- */

static afs_err keys_from(const char *hex, struct keys **out)
{
	uint8_t bytes[512];
	size_t n = test_unhex(hex, bytes, sizeof(bytes));
	struct keys_config kc = {.cell = "test.cell"};
	assert_ok(keys_open(&kc, out, NULL));
	return keyfile_parse(bytes, n, *out);
}

static void keys_of_a_server_are_read(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *keys = NULL;
	struct keys_entry list[4];
	/* bos.md §6; before them a key of another type, and one with a longer head */
	assert_ok(keys_from("00000003 00000010 00000001 00000001 00000000 00000004 deadbeef"
			    "00000018 00000002 00000002 00000012 0000000000000000 00000020"
			    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1e"
			    "00000010 00000002 00000003 00000012 00000020"
			    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		&keys));
	assert_int_equal(keys_list(keys, list, 4), 2);
	assert_int_equal(list[0].kvno, 3);
	assert_int_equal(list[1].kvno, 2);
	assert_int_not_equal(list[0].checksum, list[1].checksum);
}

static void damaged_key_files_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "0000", "ffffffff", "00000001", "00000001 00000010 00000002 00000003 00000012 00000020 0001",
		"00000001 0000000f 00000002 00000003 00000012 00000000", "00000001 ffffffff 00000002 00000003 00000012 00000000",
		"00000001 00000010 00000002 00000003 00000012 ffffffff"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(keys) struct keys *keys = NULL;
		if (keys_from(bad[i], &keys) != AFS_ECORRUPT)
			fail_msg("taken: %s", bad[i]);
	}
}

/* --- names and numbers --------------------------------------------------------------------------------------------- */

static void partitions_are_letters_or_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int32_t id;
		const char *name;
	} good[] = {{"a", 0, "/vicepa"}, {"z", 25, "/vicepz"}, {"aa", 26, "/vicepaa"}, {"iv", 255, "/vicepiv"}, {"/vicepb", 1, "/vicepb"},
		{"vicepab", 27, "/vicepab"}, {"0", 0, "/vicepa"}, {"255", 255, "/vicepiv"}};
	static const char *const bad[] = {"", "A", "abc", "iw", "zz", "256", "-1", "/vicep", "/vicepA", "/vice", "a1", "1a"};
	int32_t id;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(admin_partition(good[i].text, &id));
		assert_int_equal(id, good[i].id);
		assert_string_equal(PARTNAME(id), good[i].name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (admin_partition(bad[i], &id))
			fail_msg("taken: %s", bad[i]);
}

static void a_name_says_which_volume_of_an_entry_is_meant(void **state)
{
	(void)state;
	struct nvldbentry e = {.name = "root.cell", .volumeId = {10, 11, 12}};
	assert_int_equal(vldb_type_of(&e, "root.cell"), AFS_VOL_RW);
	assert_int_equal(vldb_type_of(&e, "root.cell.readonly"), AFS_VOL_RO);
	assert_int_equal(vldb_type_of(&e, "root.cell.backup"), AFS_VOL_BK);
	assert_int_equal(vldb_type_of(&e, "11"), AFS_VOL_RO);
	assert_int_equal(vldb_type_of(&e, "12"), AFS_VOL_BK);
	assert_int_equal(vldb_type_of(&e, "10"), AFS_VOL_RW);
	uint32_t id;
	assert_true(volume_is_number("4294967295", &id));
	assert_int_equal(id, UINT32_MAX);
	assert_false(volume_is_number("4294967296", &id));
	assert_false(volume_is_number("-1", &id));
	assert_false(volume_is_number("1a", &id));
}

static void sites_are_found_added_and_removed(void **state)
{
	(void)state;
	struct nvldbentry e = {};
	for (int i = 0; i < VL_SITES_MAX; i++)
		assert_true(vldb_site_add(&e, 100 + (uint32_t)i, i, i ? VLSF_RO : VLSF_RW));
	assert_false(vldb_site_add(&e, 1, 1, VLSF_RO));
	assert_int_equal(vldb_site(NULL, &e, VLSF_RO, 0, 5), 5);
	assert_int_equal(vldb_site(NULL, &e, VLSF_RW, 0, 5), -1);
	vldb_site_remove(&e, 0);
	assert_int_equal(e.nServers, VL_SITES_MAX - 1);
	assert_int_equal(e.serverNumber[0], 101);
	assert_int_equal(e.serverFlags[0], VLSF_RO);
	vldb_site_remove(&e, e.nServers - 1);
	assert_int_equal(e.serverNumber[e.nServers - 1], 111);
}

static void uuids_are_written_as_vos_writes_them(void **state)
{
	(void)state;
	struct afsUUID u;
	char text[48];
	assert_true(vos_uuid_parse("00159316-c04a-1b0d-bf-7f-0100007faa77", &u));
	assert_int_equal(u.clock_seq_hi_and_reserved, -65); /* bytes travel as signed words: vldb.md §1 */
	assert_string_equal(vos_uuid_text(text, &u), "00159316-c04a-1b0d-bf-7f-0100007faa77");
	static const char *const bad[] = {"", "0", "00159316-c04a-1b0d-bf7f-0100007faa77", "00159316-c04a-1b0d-bf-7f-0100007faa77x",
		"00159316-c04a-1b0d-bf-7f-0100007faa"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(vos_uuid_parse(bad[i], &u));
}

static void every_code_of_a_service_has_words(void **state)
{
	(void)state;
	static const struct {
		int32_t first, last;
	} ranges[] = {{363520, 363552}, {267264, 267280}, {1492325120, 1492325137}, {39424, 39436}, {101, 111}, {1, 40}};
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		for (int32_t c = ranges[i].first; c <= ranges[i].last; c++)
			if (!admin_code_text(c))
				fail_msg("no words for %d", c);
	assert_null(admin_code_text(0));
	assert_null(admin_code_text(INT32_MIN));
	assert_null(admin_code_text(INT32_MAX));
}

/* --- words and times ------------------------------------------------------------------------------------------------ */

static void lines_are_split_into_words(void **state)
{
	(void)state;
	char line[] = "  createuser  \"a b\" 'c' d\"e\"f \n", *w[8], open[] = "a \"b", many[] = "a b c", empty[] = " \t\n";
	assert_int_equal(suite_words(line, w, 8), 4);
	assert_string_equal(w[1], "a b");
	assert_string_equal(w[2], "c");
	assert_string_equal(w[3], "def");
	assert_int_equal(suite_words(open, w, 8), -1);
	assert_int_equal(suite_words(many, w, 2), -1);
	assert_int_equal(suite_words(empty, w, 8), 0);
}

static void restart_times_are_read_and_written(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		struct bozo_netKTime t;
		const char *shown;
	} good[] = {{"never", {.mask = 0x10}, "never"}, {"now", {.mask = 0x20}, "now"}, {"sun 4:00", {15, 4, 0, 0, 0}, "at sun 4:00 am"},
		{"5:00", {3, 5, 0, 0, 0}, "at 5:00 am"}, {"5:30 pm", {3, 17, 30, 0, 0}, "at 5:30 pm"}, {"12:30 am", {3, 0, 30, 0, 0}, "at 12:30 am"},
		{"15:04:07", {7, 15, 4, 7, 0}, "at 3:04:07 pm"}, {"Wednesday 12:00 pm", {15, 12, 0, 0, 3}, "at wed 12:00 pm"}};
	static const char *const bad[] = {"", "bogus", "sun", "24:00", "4:60", "4:00:60", "13:00 pm", "0:30 am", "4", "4:00 xm", "su 4:00", "4:00 am pm"};
	struct bozo_netKTime t;
	char text[64];
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(bos_time_parse(good[i].text, &t));
		assert_memory_equal(&t, &good[i].t, sizeof(t));
		assert_string_equal(bos_time_text(text, &t), good[i].shown);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (bos_time_parse(bad[i], &t))
			fail_msg("taken: %s", bad[i]);
	/* whatever a server says fits */
	bos_time_text(text, &(struct bozo_netKTime){15, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN});
	assert_true(strlen(text) < sizeof(text));
}

TEST_MAIN(T(a_cell_is_found_by_its_name_or_the_beginning_of_it), T(keys_of_a_server_are_read), T(damaged_key_files_are_refused),
	T(partitions_are_letters_or_numbers), T(a_name_says_which_volume_of_an_entry_is_meant), T(sites_are_found_added_and_removed),
	T(uuids_are_written_as_vos_writes_them), T(every_code_of_a_service_has_words), T(lines_are_split_into_words),
	T(restart_times_are_read_and_written))
