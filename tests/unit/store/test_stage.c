/* SPDX-License-Identifier: BSD-2-Clause
 * Restores are staged: what is bad is told and changes nothing (known bug K16 at this level). */
#include "store_lib.h"

#include "fileserver/store/dir.h"

static uint8_t data[9 << 20];
static const struct vs_acl admins = {.positive = 1, .e = {{-204, 127}}};

static struct vs_status vnode(
	uint32_t number, uint32_t unique, enum afs_filetype type, uint32_t parent)
{
	return (struct vs_status){
		.fid = {number, unique},
		.parent = {parent, 0}, /* dumps carry no parent uniquifier */
		.type = type,
		.mode = 0755,
		.owner = 11,
		.group = 12,
		.author = 13,
		.links = 1,
		.dv = 40 + number,
		.client_mtime = SEC(100),
		.server_mtime = SEC(101),
	};
}

static void give(struct vs_stage *g, struct vs_status st, const void *p, size_t n)
{
	assert_ok(vs_stage_vnode(g, &st, st.type == AFS_DIR ? &admins : NULL));
	for (size_t done = 0; done < n; done += 70001)
		assert_ok(vs_stage_put(g, (const uint8_t *)p + done, MIN(n - done, (size_t)70001)));
}

static void give_dir(struct vs_stage *g, struct vs_status st, const struct vs_dir *d)
{
	give(g, st, d->data, (size_t)d->pages * VS_DIR_PAGE);
}

/* A volume of one of each; dir 3 in the root holds a hard link. */
static void give_tree(struct vs_stage *g)
{
	CLEANUP(vs_dir) struct vs_dir r = {0};
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&r, 1, 1, 1, 1));
	assert_ok(vs_dir_add(&r, "d", 3, 5));
	assert_ok(vs_dir_add(&r, "large", 2, 2));
	assert_ok(vs_dir_add(&r, "link", 4, 3));
	assert_ok(vs_dir_make(&d, 3, 5, 1, 1));
	assert_ok(vs_dir_add(&d, "one", 6, 70));
	assert_ok(vs_dir_add(&d, "two", 6, 70));
	assert_ok(vs_dir_add(&d, "empty", 8, 8));
	give_dir(g, vnode(1, 1, AFS_DIR, 0), &r);
	give_dir(g, vnode(3, 5, AFS_DIR, 1), &d);
	give(g, vnode(2, 2, AFS_FILE, 1), data, sizeof(data) - 3);
	give(g, vnode(4, 3, AFS_SYMLINK, 1), "#root.cell.", 11);
	give(g, vnode(6, 70, AFS_FILE, 3), data, 4000);
	give(g, vnode(8, 8, AFS_FILE, 3), NULL, 0);
}

static void old_content(struct fix *x)
{
	struct vs_fid f = make_file(x->v, root, "old");
	store(x->v, f, 0, data, 5000, 5000);
	assert_ok(vs_volume_claim(x->v, VS_CLAIM_OFF));
}

static void assert_old(struct fix *x)
{
	struct vs_fid f;
	assert_ok(vs_volume_claim(x->v, VS_FREE));
	assert_ok(vs_lookup(x->v, root, "old", &f));
	assert_content(x->v, f, data, 5000);
	assert_clean(x->v);
	assert_ok(vs_volume_claim(x->v, VS_CLAIM_OFF));
}

static void a_good_restore_replaces_everything_at_once(void **state)
{
	(void)state;
	FIX(x);
	char why[VS_WHY];
	struct vs_stage *g;
	struct vs_fid f;
	old_content(&x);
	assert_ok(vs_stage_begin(x.v, &g));
	give_tree(g);
	assert_old(&x);
	const struct vs_header h = {
		.name = "restored", .quota_kib = 77777, .creation = SEC(5), .unique = 60};
	assert_ok(vs_stage_commit(
		g, &h, VS_H_NAME | VS_H_QUOTA | VS_H_CREATION | VS_H_UNIQUE, SEC(9), why));
	vs_stage_free(g);
	assert_ok(vs_volume_claim(x.v, VS_FREE));
	for (int round = 0; round < 2; round++) {
		struct vs_header got;
		assert_ok(vs_volume_header(x.v, &got));
		assert_string_equal(got.name, "restored");
		assert_int_equal(got.id, VOL);
		assert_int_equal(got.unique, 71); /* above all that came */
		assert_int_equal(got.files, 6);
		assert_int_equal(got.used_kib, 2 + 2 + sizeof(data) / 1024 + 1 + 4 + 1);
		assert_int_equal(got.owner, 11);
		assert_err(vs_lookup(x.v, root, "old", &f), AFS_ENOENT);
		assert_ok(vs_lookup(x.v, root, "large", &f));
		assert_content(x.v, f, data, sizeof(data) - 3);
		assert_content(x.v, (struct vs_fid){4, 3}, "#root.cell.", 11);
		assert_content(x.v, (struct vs_fid){6, 70}, data, 4000);
		struct vs_status st = status_of(x.v, (struct vs_fid){6, 70});
		assert_int_equal(st.links, 2); /* counted, whatever the dump says */
		assert_int_equal(st.dv, 46);
		assert_int_equal(st.parent.unique, 5);
		assert_int_equal(status_of(x.v, root).links, 3);
		assert_clean(x.v);
		fix_close(&x);
		fix_open(&x);
	}
	assert_int_equal(make_file(x.v, root, "new").unique, 71);
}

static void a_directory_object_is_kept_byte_for_byte(void **state)
{
	(void)state;
	FIX(x);
	char why[VS_WHY];
	struct vs_stage *g;
	CLEANUP(vs_dir) struct vs_dir r = {0};
	assert_ok(vs_dir_make(&r, 1, 1, 1, 1));
	for (uint32_t i = 0; i < 90; i++) {
		char name[20];
		snprintf(name, sizeof(name), "n%u", i);
		assert_ok(vs_dir_add(&r, name, 2 * i + 2, i + 2));
	}
	for (uint32_t i = 0; i < 90; i += 3) {
		char name[20];
		snprintf(name, sizeof(name), "n%u", i);
		assert_ok(vs_dir_remove(&r, name));
	}
	assert_ok(vs_volume_claim(x.v, VS_CLAIM_OFF));
	assert_ok(vs_stage_begin(x.v, &g));
	give_dir(g, vnode(1, 1, AFS_DIR, 0), &r);
	for (uint32_t i = 0; i < 90; i++)
		if (i % 3)
			give(g, vnode(2 * i + 2, i + 2, AFS_FILE, 1), "x", 1);
	assert_ok(vs_stage_commit(g, &(struct vs_header){0}, 0, SEC(9), why));
	vs_stage_free(g);
	assert_ok(vs_volume_claim(x.v, VS_FREE));
	assert_content(x.v, root, r.data, (size_t)r.pages * VS_DIR_PAGE);
}

/* --- bad ones ------------------------------------------------------------------------- */

struct bad {
	const char *what;
	afs_err (*give)(struct vs_stage *g);
};

static afs_err one(struct vs_stage *g, struct vs_status st)
{
	return vs_stage_vnode(g, &st, st.type == AFS_DIR ? &admins : NULL);
}
static afs_err number_zero(struct vs_stage *g) { return one(g, vnode(0, 1, AFS_FILE, 1)); }
static afs_err unique_zero(struct vs_stage *g) { return one(g, vnode(2, 0, AFS_FILE, 1)); }
static afs_err type_seven(struct vs_stage *g)
{
	return one(g, vnode(2, 2, (enum afs_filetype)7, 1));
}
static afs_err even_directory(struct vs_stage *g) { return one(g, vnode(2, 2, AFS_DIR, 1)); }
static afs_err odd_file(struct vs_stage *g) { return one(g, vnode(3, 2, AFS_FILE, 1)); }
static afs_err twice(struct vs_stage *g)
{
	TRY(one(g, vnode(2, 2, AFS_FILE, 1)));
	TRY(one(g, vnode(2, 9, AFS_FILE, 1)));
	return one(g, vnode(4, 9, AFS_FILE, 1));
}
static afs_err no_acl(struct vs_stage *g)
{
	const struct vs_status st = vnode(1, 1, AFS_DIR, 0);
	return vs_stage_vnode(g, &st, NULL);
}
static afs_err no_root(struct vs_stage *g) { return one(g, vnode(2, 2, AFS_FILE, 1)); }
static afs_err nothing(struct vs_stage *g)
{
	(void)g;
	return AFS_OK;
}
static afs_err empty_directory_object(struct vs_stage *g)
{
	TRY(one(g, vnode(1, 1, AFS_DIR, 0)));
	return one(g, vnode(2, 2, AFS_FILE, 1));
}
static afs_err half_a_page(struct vs_stage *g)
{
	TRY(one(g, vnode(1, 1, AFS_DIR, 0)));
	TRY(vs_stage_put(g, data, 1000));
	return one(g, vnode(2, 2, AFS_FILE, 1));
}
static afs_err junk_page(struct vs_stage *g)
{
	TRY(one(g, vnode(1, 1, AFS_DIR, 0)));
	TRY(vs_stage_put(g, data, 2048));
	return one(g, vnode(2, 2, AFS_FILE, 1));
}
static afs_err huge_directory(struct vs_stage *g)
{
	TRY(one(g, vnode(1, 1, AFS_DIR, 0)));
	return vs_stage_put(g, data, 1024 * 2048);
}
static afs_err long_symlink(struct vs_stage *g)
{
	TRY(one(g, vnode(2, 2, AFS_SYMLINK, 1)));
	memset(data + 5000, 'l', 1025);
	return vs_stage_put(g, data + 5000, 1025);
}
static afs_err empty_symlink(struct vs_stage *g)
{
	TRY(one(g, vnode(2, 2, AFS_SYMLINK, 1)));
	return one(g, vnode(4, 2, AFS_FILE, 1));
}
static void give_root_with(
	struct vs_stage *g, const char *a, uint32_t va, const char *b, uint32_t vb)
{
	CLEANUP(vs_dir) struct vs_dir r = {0};
	assert_ok(vs_dir_make(&r, 1, 1, 1, 1));
	assert_ok(vs_dir_add(&r, a, va, 5));
	if (b)
		assert_ok(vs_dir_add(&r, b, vb, 5));
	give_dir(g, vnode(1, 1, AFS_DIR, 0), &r);
}
static afs_err dangling(struct vs_stage *g)
{
	give_root_with(g, "a", 2, NULL, 0);
	return AFS_OK;
}
static afs_err other_unique(struct vs_stage *g)
{
	give_root_with(g, "a", 2, NULL, 0);
	return one(g, vnode(2, 6, AFS_FILE, 1));
}
static afs_err directory_named_twice(struct vs_stage *g)
{
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 3, 5, 1, 1));
	give_root_with(g, "a", 3, "b", 3);
	give_dir(g, vnode(3, 5, AFS_DIR, 1), &d);
	return AFS_OK;
}
static afs_err linked_across_directories(struct vs_stage *g)
{
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 3, 5, 1, 1));
	assert_ok(vs_dir_add(&d, "f", 2, 5));
	give_root_with(g, "d", 3, "f", 2);
	give_dir(g, vnode(3, 5, AFS_DIR, 1), &d);
	return one(g, vnode(2, 5, AFS_FILE, 1));
}

static void a_bad_restore_leaves_the_volume_as_it_was(void **state)
{
	(void)state;
	FIX(x);
	static const struct bad bad[] = {
		{"number 0", number_zero},
		{"uniquifier 0", unique_zero},
		{"type 7", type_seven},
		{"even directory", even_directory},
		{"odd file", odd_file},
		{"twice", twice},
		{"no ACL", no_acl},
		{"no root", no_root},
		{"nothing", nothing},
		{"no pages", empty_directory_object},
		{"half a page", half_a_page},
		{"junk page", junk_page},
		{"huge directory", huge_directory},
		{"long symlink", long_symlink},
		{"empty symlink", empty_symlink},
		{"dangling", dangling},
		{"other unique", other_unique},
		{"directory named twice", directory_named_twice},
		{"linked across", linked_across_directories},
	};
	old_content(&x);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char why[VS_WHY];
		struct vs_stage *g;
		assert_ok(vs_stage_begin(x.v, &g));
		afs_err err = bad[i].give(g),
			end = vs_stage_commit(g, &(struct vs_header){0}, 0, SEC(9), why);
		if (end != AFS_EBADDUMP || (err && err != AFS_EBADDUMP))
			fail_msg("%s: %s, %s", bad[i].what, afs_err_name(err), afs_err_name(end));
		assert_true(strlen(why) > 5);
		vs_stage_free(g);
		assert_old(&x);
	}
	struct vs_stage *g; /* given up in the middle */
	assert_ok(vs_stage_begin(x.v, &g));
	give_tree(g);
	vs_stage_free(g);
	assert_old(&x);
}

static void vnodes_that_no_name_leads_to_are_left_out(void **state)
{
	(void)state;
	FIX(x);
	char why[VS_WHY];
	struct vs_stage *g;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	log_to(2, LOG_ERROR);
	assert_ok(
		vs_dir_make(&d, 7, 7, 1, 1)); /* as other servers leave it after a rename over it */
	assert_ok(vs_dir_add(&d, "below", 12, 12));
	assert_ok(vs_volume_claim(x.v, VS_CLAIM_OFF));
	assert_ok(vs_stage_begin(x.v, &g));
	give_tree(g);
	give_dir(g, vnode(7, 7, AFS_DIR, 1), &d);
	give(g, vnode(10, 10, AFS_FILE, 1), data, 5000);
	give(g, vnode(12, 12, AFS_FILE, 7), data, 50);
	assert_ok(vs_stage_commit(g, &(struct vs_header){0}, 0, SEC(9), why));
	vs_stage_free(g);
	assert_ok(vs_volume_claim(x.v, VS_FREE));
	assert_clean(x.v);
	struct vs_header h;
	assert_ok(vs_volume_header(x.v, &h));
	assert_int_equal(h.files, 6);
}

static void kept_vnodes_stay_and_unmentioned_ones_go(void **state)
{
	(void)state;
	FIX(x);
	char why[VS_WHY];
	struct vs_stage *g;
	struct vs_fid d = make_folder(x.v, root, "d"), keep = make_file(x.v, root, "keep"),
		      small = make_file(x.v, root, "small");
	struct vs_fid gone = make_file(x.v, root, "gone");
	store(x.v, keep, 0, data, sizeof(data), sizeof(data));
	store(x.v, small, 0, "small", 5, 5);
	store(x.v, gone, 0, data, 10000, 10000);
	CLEANUP(vs_dir) struct vs_dir r = {0};
	assert_ok(vs_dir_make(&r, 1, 1, 1, 1));
	assert_ok(vs_dir_add(&r, "d", d.vnode, d.unique));
	assert_ok(vs_dir_add(&r, "keep", keep.vnode, keep.unique));
	assert_ok(vs_dir_add(&r, "small", small.vnode, small.unique));
	assert_ok(vs_dir_add(&r, "new", 20, 50));
	assert_ok(vs_volume_claim(x.v, VS_CLAIM_OFF));
	for (int round = 0; round < 2; round++) { /* the first is given up */
		assert_ok(vs_stage_begin(x.v, &g));
		give_dir(g, vnode(1, 1, AFS_DIR, 0), &r);
		assert_ok(vs_stage_keep(g, d));
		assert_ok(vs_stage_keep(g, keep));
		assert_ok(vs_stage_keep(g, small));
		assert_ok(
			vs_stage_keep(g, (struct vs_fid){400, 4})); /* not there: nothing happens */
		give(g, vnode(20, 50, AFS_FILE, 1), "new", 3);
		if (round)
			assert_ok(vs_stage_commit(g, &(struct vs_header){0}, 0, SEC(9), why));
		vs_stage_free(g);
	}
	assert_ok(vs_volume_claim(x.v, VS_FREE));
	assert_clean(x.v);
	assert_content(x.v, keep, data, sizeof(data));
	assert_content(x.v, small, "small", 5);
	assert_content(x.v, (struct vs_fid){20, 50}, "new", 3);
	struct vs_node n;
	assert_err(vs_node_get(x.v, gone, &n), AFS_ENOVNODE);
	store(x.v, keep, 5, "over", 4, sizeof(data));
	assert_clean(x.v);
}

static void a_crash_before_the_swap_leaves_the_old_and_no_rubbish(void **state)
{
	(void)state;
	FIX(x);
	struct vs_stage *g;
	old_content(&x);
	assert_ok(vs_volume_claim(x.v, VS_FREE));
	assert_ok(vs_stage_begin(x.v, &g));
	give_tree(g);
	/* the folder of a dead process: copied, since this one lives */
	char *cmd = mem_printf("cp -r %s/tmp/* %s/tmp/copy.stage", x.dir, x.dir);
	assert_int_equal(system(cmd), 0);
	mem_free(cmd);
	vs_stage_free(g);
	fix_close(&x);
	fix_open(&x);
	assert_ok(vs_volume_claim(x.v, VS_CLAIM_OFF));
	assert_old(&x);
	cmd = mem_printf("test -z \"$(ls %s/tmp)\"", x.dir);
	assert_int_equal(system(cmd), 0);
	mem_free(cmd);
}

static void a_store_that_began_before_a_restore_does_not_end_in_it(void **state)
{
	(void)state;
	FIX(x);
	char why[VS_WHY];
	struct vs_stage *g;
	struct vs_writer *w;
	struct vs_file *file;
	struct vs_status st;
	size_t got;
	struct vs_fid f = make_file(x.v, root, "f"); /* 2.2, as `large` of the dump */
	store(x.v, f, 0, data, 5 << 20, 5 << 20);
	const struct vs_write req = {.pos = 0, .length = 5 << 20, .file_length = 5 << 20};
	assert_ok(vs_write_begin(x.v, f, &req, &who, &w));
	assert_ok(vs_write_put(w, data + 100, 5 << 20));
	assert_ok(vs_file_open(x.v, f, &st, &file));
	assert_ok(vs_volume_claim(x.v, VS_CLAIM_OFF));
	assert_ok(vs_stage_begin(x.v, &g));
	give_tree(g);
	assert_ok(vs_stage_commit(g, &(struct vs_header){0}, 0, SEC(9), why));
	vs_stage_free(g);
	assert_ok(vs_volume_claim(x.v, VS_FREE));
	assert_err(vs_write_end(w, &who, &st), AFS_EVBUSY);
	assert_err(vs_file_read(file, 0, data, 1, &got), AFS_EVBUSY);
	vs_file_close(file);
	vs_store_housekeep(x.s);
	assert_clean(x.v);
	assert_content(x.v, f, data, sizeof(data) - 3);
}

static int fill(void **state)
{
	(void)state;
	uint64_t rng = 7;
	for (size_t i = 0; i < sizeof(data); i += 4)
		data[i] = (uint8_t)next_random(&rng);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_good_restore_replaces_everything_at_once),
		T(a_directory_object_is_kept_byte_for_byte),
		T(a_bad_restore_leaves_the_volume_as_it_was),
		T(vnodes_that_no_name_leads_to_are_left_out),
		T(kept_vnodes_stay_and_unmentioned_ones_go),
		T(a_crash_before_the_swap_leaves_the_old_and_no_rubbish),
		T(a_store_that_began_before_a_restore_does_not_end_in_it),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, fill, NULL);
}
