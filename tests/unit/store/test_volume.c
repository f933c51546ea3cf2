/* SPDX-License-Identifier: BSD-2-Clause
 * Partitions and the life of volumes. */
#include "store_lib.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void partitions_have_names_and_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int id;
	} p[] = {{"a", 0}, {"z", 25}, {"aa", 26}, {"az", 51}, {"ba", 52}, {"iu", 254}, {"iv", -1},
		{"vicepb", 1}, {"/vicepc", 2}, {"/vicepaa", 26}, {"", -1}, {"A", -1}, {"1", -1},
		{"abc", -1}, {"/vicep", -1}, {"../a", -1}};
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		assert_int_equal(vs_partition_id_of(p[i].name), p[i].id);
}

static void a_partition_is_served_by_one_store(void **state)
{
	(void)state;
	FIX(x);
	struct vs_store *other;
	struct vs_partition *p;
	assert_string_equal(vs_partition_name(x.p), "/vicepa");
	assert_int_equal(vs_partition_id(x.p), 0);
	assert_ptr_equal(vs_partition_find(x.s, 0), x.p);
	assert_null(vs_partition_find(x.s, 1));
	assert_ptr_equal(vs_partition_next(x.s, NULL), x.p);
	assert_null(vs_partition_next(x.s, x.p));
	assert_err(vs_partition_attach(x.s, "a", x.dir, &p), AFS_EEXIST);
	assert_err(vs_partition_attach(x.s, "a?", x.dir, &p), AFS_EINVAL);
	assert_ok(vs_store_open(&(struct vs_config){0}, &other));
	log_to(open("/dev/null", 1), LOG_ERROR);
	assert_err(vs_partition_attach(other, "a", x.dir, &p), AFS_EBUSY);
	assert_err(vs_partition_attach(other, "b", "/nowhere/at/all", &p), AFS_EIO);
	log_to(2, LOG_ERROR);
	vs_store_close(other);
	struct vs_space space;
	assert_ok(vs_partition_space(x.p, &space));
	assert_true(space.total_kib >= space.free_kib && space.free_kib > 0);
}

static void a_new_volume_is_invisible_until_it_is_released(void **state)
{
	(void)state;
	FIX(x);
	struct vs_volume *v, *w;
	struct vs_header h = {.id = 7, .type = AFS_VOL_RW, .name = "new", .quota_kib = 5000}, got;
	assert_ok(vs_volume_create(x.p, &h, true, SEC(50), &v));
	assert_ok(vs_volume_header(v, &got));
	assert_int_equal(got.parent, 7);
	assert_int_equal(got.unique, 2);
	assert_int_equal(got.quota_kib, 5000);
	assert_int_equal(got.used_kib, 2);
	assert_int_equal(got.files, 1);
	assert_true(got.blessed && got.destroy_me && !got.in_service);
	assert_true(got.creation == SEC(50) && got.update == SEC(50) && got.copy == SEC(50));
	assert_err(vs_volume_enter(x.s, 7, &w), AFS_ENOVOL);
	assert_ok(vs_volume_find(x.s, x.p, 7, &w));
	vs_volume_unref(w);
	assert_ok(vs_volume_set_header(v, &h, VS_H_DESTROY_ME));
	assert_err(vs_volume_enter(x.s, 7, &w), AFS_EVOFFLINE);
	assert_false(vs_volume_online(v));
	h.in_service = true;
	assert_ok(vs_volume_set_header(v, &h, VS_H_IN_SERVICE));
	assert_ok(vs_volume_enter(x.s, 7, &w));
	assert_true(vs_volume_online(v));
	vs_volume_unref(w);
	struct vs_status st = status_of(v, root);
	assert_int_equal(st.mode, 0777);
	assert_int_equal(st.links, 2);
	assert_int_equal(st.owner, 0);
	assert_int_equal(st.length, 2048);
	assert_clean(v);
	vs_volume_unref(v);
}

static void ids_and_names_are_judged(void **state)
{
	(void)state;
	FIX(x);
	struct vs_volume *v;
	struct vs_header h = {.id = VOL, .name = "again"};
	assert_err(vs_volume_create(x.p, &h, true, 0, &v), AFS_EVOLEXISTS);
	h.id = 0;
	assert_err(vs_volume_create(x.p, &h, true, 0, &v), AFS_EINVAL);
	h = (struct vs_header){.id = 9};
	assert_err(vs_volume_create(x.p, &h, true, 0, &v), AFS_EBADNAME);
	memset(h.name, 'n', sizeof(h.name));
	assert_err(vs_volume_create(x.p, &h, true, 0, &v), AFS_EBADNAME);
	h.name[31] = '\0';
	assert_ok(vs_volume_create(x.p, &h, false, 0, &v));
	struct vs_node n;
	h.in_service = true;
	assert_ok(vs_volume_set_header(v, &h, VS_H_IN_SERVICE | VS_H_DESTROY_ME));
	assert_err(vs_node_get(v, root, &n), AFS_ENOVNODE); /* without a root, for a restore */
	assert_ok(vs_volume_delete(v));
	vs_volume_unref(v);
}

static void a_header_comes_back_as_it_was_set(void **state)
{
	(void)state;
	FIX(x);
	struct vs_header h = {.id = 1,
		.parent = 2,
		.clone = 3,
		.backup = 4,
		.restored_from = 5,
		.type = AFS_VOL_BK,
		.name = "x.backup",
		.blessed = true,
		.in_service = true,
		.needs_salvage = true,
		.unique = 4000000000,
		.quota_kib = UINT64_C(1) << 40,
		.min_quota_kib = 6,
		.account = 8,
		.creation = SEC(1) + 1,
		.access = SEC(2),
		.update = SEC(3),
		.expiration = SEC(4),
		.backup_date = SEC(5),
		.copy = SEC(6),
		.update_counter = 9,
		.day_use = 10,
		.day_use_date = SEC(7),
		.week_use = {1, 2, 3, 4, 5, 6, 0xffffffff},
		.offline_message = "gone \"fishing\""};
	assert_ok(vs_volume_set_header(x.v, &h, ~0u));
	for (int round = 0; round < 2; round++) {
		struct vs_header got, want = h;
		assert_ok(vs_volume_header(x.v, &got));
		want.id = VOL; /* and what the store counts itself */
		want.used_kib = 2;
		want.files = 1;
		assert_memory_equal(&got, &want, sizeof(got));
		fix_close(&x);
		fix_attach(&x);
		assert_ok(vs_volume_find(x.s, NULL, VOL, &x.v));
	}
	struct vs_volume *w;
	assert_err(vs_volume_enter(x.s, VOL, &w), AFS_EVSALVAGE);
	h.unique = 5;
	assert_ok(vs_volume_set_header(x.v, &h, VS_H_UNIQUE));
	assert_ok(vs_volume_header(x.v, &h));
	assert_int_equal(h.unique, 4000000000); /* only ever raised */
	h.name[0] = '\0';
	assert_err(vs_volume_set_header(x.v, &h, VS_H_NAME), AFS_EBADNAME);
}

static void a_read_only_volume_takes_no_change(void **state)
{
	(void)state;
	FIX(x);
	struct vs_made m;
	struct vs_removed r;
	struct vs_renamed n;
	struct vs_status st;
	struct vs_writer *w;
	struct vs_fid f = make_file(x.v, root, "f");
	store(x.v, f, 0, "data", 4, 4);
	const struct vs_header ro = {.type = AFS_VOL_RO};
	const struct vs_write one = {.length = 1, .file_length = 1};
	const struct vs_acl acl = {0};
	const struct vs_set set = {0};
	assert_ok(vs_volume_set_header(x.v, &ro, VS_H_TYPE));
	assert_err(vs_create_file(x.v, root, "g", &who, NULL, &m), AFS_EROFS);
	assert_err(vs_make_dir(x.v, root, "g", &who, NULL, &m), AFS_EROFS);
	assert_err(vs_make_symlink(x.v, root, "g", "t", 1, &who, NULL, &m), AFS_EROFS);
	assert_err(vs_link(x.v, root, "g", f, &who, &m), AFS_EROFS);
	assert_err(vs_remove(x.v, root, "f", &who, &r), AFS_EROFS);
	assert_err(vs_remove_dir(x.v, root, "f", &who, &r), AFS_EROFS);
	assert_err(vs_rename(x.v, root, "f", root, "g", true, &who, &n), AFS_EROFS);
	assert_err(vs_set_status(x.v, f, &set, &who, &st), AFS_EROFS);
	assert_err(vs_set_acl(x.v, root, &acl, &who, &st), AFS_EROFS);
	assert_err(vs_write_begin(x.v, f, &one, &who, &w), AFS_EROFS);
	assert_content(x.v, f, "data", 4);
}

static void a_claim_stops_the_file_service_and_no_other_claim_comes_beside_it(void **state)
{
	(void)state;
	FIX(x);
	struct vs_volume *v;
	struct vs_node n;
	struct vs_made m;
	struct vs_status st;
	struct vs_file *file;
	struct vs_fid f = make_file(x.v, root, "f");
	store(x.v, f, 0, "data", 4, 4);
	static const struct {
		enum vs_claim claim;
		afs_err err;
	} c[] = {{VS_CLAIM_READ, AFS_OK}, {VS_CLAIM_BUSY, AFS_EVBUSY},
		{VS_CLAIM_OFF, AFS_EVOFFLINE}};
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct vs_writer *w;
		const struct vs_write one = {.length = 5000, .file_length = 5000};
		assert_ok(vs_write_begin(x.v, f, &one, &who, &w));
		assert_ok(vs_volume_claim(x.v, c[i].claim));
		assert_int_equal(vs_volume_claimed(x.v), c[i].claim);
		assert_err(vs_volume_claim(x.v, VS_CLAIM_READ), AFS_EVOLTRANS);
		assert_err(vs_volume_enter(x.s, VOL, &v), c[i].err);
		if (!c[i].err)
			vs_volume_unref(v);
		assert_err(vs_node_get(x.v, f, &n), c[i].err);
		assert_err(vs_create_file(x.v, root, "g", &who, NULL, &m),
			c[i].err ? c[i].err : AFS_OK);
		assert_err(vs_file_open(x.v, f, &st, &file), c[i].err);
		if (!c[i].err)
			vs_file_close(file);
		assert_err(vs_write_put(w, "z", 1), c[i].err);
		assert_err(vs_write_end(w, &who, &st), c[i].err);
		assert_ok(vs_file_open_claimed(x.v, f, &st, &file));
		vs_file_close(file);
		struct vs_acl acl;
		assert_ok(vs_vnode_next(x.v, true, 0, &st, &acl));
		assert_int_equal(st.fid.vnode, 1);
		assert_ok(vs_volume_claim(x.v, VS_FREE));
	}
	assert_content(x.v, f, "zata", 4);
	assert_clean(x.v);
}

static void a_deleted_volume_is_gone_at_once_also_for_who_holds_it(void **state)
{
	(void)state;
	FIX(x);
	struct vs_volume *v = make_volume(&x, 99, "doomed"), *w;
	struct vs_fid f = make_file(v, root, "f");
	static char data[5 << 20];
	store(v, f, 0, data, sizeof(data), sizeof(data));
	struct vs_status st;
	struct vs_file *file;
	struct vs_writer *writer;
	struct vs_node n;
	size_t got;
	const struct vs_write one = {.length = 5000, .file_length = 5000};
	assert_ok(vs_file_open(v, f, &st, &file));
	assert_ok(vs_write_begin(v, f, &one, &who, &writer));
	assert_ok(vs_write_put(writer, data, 5000));
	assert_ok(vs_volume_delete(v));
	assert_err(vs_volume_delete(v), AFS_ENOVOL);
	assert_err(vs_volume_enter(x.s, 99, &w), AFS_ENOVOL);
	assert_err(vs_volume_find(x.s, NULL, 99, &w), AFS_ENOVOL);
	assert_err(vs_node_get(v, f, &n), AFS_ENOVOL);
	assert_err(vs_file_read(file, 0, data, 1, &got), AFS_ENOVOL);
	assert_err(vs_write_end(writer, &who, &st), AFS_ENOVOL);
	vs_file_close(file);
	struct vs_volume *again = make_volume(&x, 99, "again"); /* the id is free */
	assert_err(vs_node_get(again, f, &n), AFS_ENOVNODE);
	vs_volume_unref(v);
	vs_volume_unref(again);
	char path[300];
	snprintf(path, sizeof(path), "%s/tmp", x.dir);
	assert_int_equal(rmdir(path), 0); /* nothing is left in it */
}

static void volumes_are_found_again_and_a_broken_one_stops_nobody(void **state)
{
	(void)state;
	FIX(x);
	for (afs_volid id = 100; id < 130; id++) {
		char name[16];
		snprintf(name, sizeof(name), "v%u", id);
		vs_volume_unref(make_volume(&x, id, name));
	}
	fix_close(&x);
	char path[300];
	snprintf(path, sizeof(path), "%s/vol/110/meta.db", x.dir);
	FILE *f = fopen(path, "w");
	fputs("this is no database at all, but long enough to be looked at as one by whoever opens "
	      "it",
		f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/vol/stray", x.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/tmp/5.0.new", x.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	log_to(open("/dev/null", 1), LOG_ERROR);
	fix_attach(&x);
	assert_int_equal(access(path, F_OK), -1); /* half-made things go */
	struct vs_listed *list;
	size_t n;
	struct vs_volume *v;
	assert_err(vs_volume_find(x.s, x.p, 110, &v), AFS_EVSALVAGE);
	assert_ok(vs_volume_list(x.p, &list, &n));
	assert_int_equal(n, 31);
	for (size_t i = 0; i < 30; i++) {
		assert_int_equal(list[i].id, 100 + i);
		assert_true((list[i].err != AFS_OK) == (list[i].id == 110));
		if (list[i].id == 110)
			continue;
		assert_ok(vs_volume_enter(x.s, list[i].id, &v));
		struct vs_header h;
		assert_ok(vs_volume_header(v, &h));
		assert_int_equal(h.id, list[i].id);
		vs_volume_unref(v);
	}
	assert_int_equal(list[30].id, VOL);
	mem_free(list);
	assert_ok(vs_volume_find(x.s, x.p, 110, &v) == AFS_EVSALVAGE ? AFS_OK : AFS_EINVAL);
	log_to(2, LOG_ERROR);
}

static void idle_volumes_are_closed_and_opened_again_when_used(void **state)
{
	(void)state;
	FIX(x);
	struct vs_volume *v[60];
	for (afs_volid id = 0; id < 60; id++) {
		char name[16];
		snprintf(name, sizeof(name), "v%u", id);
		v[id] = make_volume(&x, 100 + id, name);
		make_file(v[id], root, "f");
		vs_volume_unref(v[id]);
	}
	for (int i = 0; i < 40; i++)
		vs_store_housekeep(x.s);
	int open_now = 0;
	DIR *d = opendir("/proc/self/fd");
	for (struct dirent *e; (e = readdir(d));) {
		char link[64], to[300] = {0};
		snprintf(link, sizeof(link), "/proc/self/fd/%.20s", e->d_name);
		if (readlink(link, to, sizeof(to) - 1) > 0 && strstr(to, "meta.db") &&
			!strstr(to, "-wal"))
			open_now++;
	}
	closedir(d);
	assert_in_range(open_now, 1, 48);
	for (afs_volid id = 0; id < 60; id++) {
		struct vs_fid f;
		assert_ok(vs_volume_enter(x.s, 100 + id, &v[id]));
		assert_ok(vs_lookup(v[id], root, "f", &f));
		vs_volume_unref(v[id]);
	}
}

static void vnodes_are_walked_in_the_order_of_dumps(void **state)
{
	(void)state;
	FIX(x);
	make_folder(x.v, root, "d");
	make_file(x.v, root, "a");
	make_folder(x.v, root, "e");
	make_file(x.v, root, "b");
	struct vs_status st;
	struct vs_acl acl;
	uint32_t seen[8] = {0}, n = 0;
	for (int dirs = 1; dirs >= 0; dirs--)
		for (uint32_t at = 0; vs_vnode_next(x.v, dirs, at, &st, &acl) == AFS_OK;
			at = st.fid.vnode) {
			seen[n++] = st.fid.vnode;
			assert_int_equal(acl.positive, dirs);
		}
	static const uint32_t want[] = {1, 3, 5, 2, 4};
	assert_int_equal(n, 5);
	assert_memory_equal(seen, want, sizeof(want));
	assert_err(vs_vnode_next(x.v, false, UINT32_MAX, &st, &acl), AFS_ENOENT);
}

static void use_is_counted_by_the_day(void **state)
{
	(void)state;
	FIX(x);
	struct vs_header h;
	const wall_ns day = SEC(86400);
	const struct vs_header zero = {.day_use_date = 1000 * day};
	assert_ok(vs_volume_set_header(x.v, &zero, VS_H_DAY_USE | VS_H_WEEK_USE));
	for (int i = 0; i < 3; i++)
		vs_volume_count_use(x.v, 1000 * day + SEC(i));
	for (int i = 0; i < 5; i++)
		vs_volume_count_use(x.v, 1002 * day + SEC(i));
	fix_close(&x);
	fix_open(&x);
	assert_ok(vs_volume_header(x.v, &h));
	assert_int_equal(h.day_use, 5);
	assert_int_equal(h.week_use[0], 0);
	assert_int_equal(h.week_use[1], 3);
	assert_true(h.access == 1002 * day + SEC(4));
}

TEST_MAIN(T(partitions_have_names_and_numbers), T(a_partition_is_served_by_one_store),
	T(a_new_volume_is_invisible_until_it_is_released), T(ids_and_names_are_judged),
	T(a_header_comes_back_as_it_was_set), T(a_read_only_volume_takes_no_change),
	T(a_claim_stops_the_file_service_and_no_other_claim_comes_beside_it),
	T(a_deleted_volume_is_gone_at_once_also_for_who_holds_it),
	T(volumes_are_found_again_and_a_broken_one_stops_nobody),
	T(idle_volumes_are_closed_and_opened_again_when_used),
	T(vnodes_are_walked_in_the_order_of_dumps), T(use_is_counted_by_the_day))
