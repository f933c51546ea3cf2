/* SPDX-License-Identifier: BSD-2-Clause
 * Verbs on names and status: fileserver.md §5, §10, §11; known bugs K03, K05, K09, K12, K13. */
#include "store_lib.h"

static uint64_t dv(struct vs_volume *v, struct vs_fid f) { return status_of(v, f).dv; }

static void a_new_file_is_as_the_protocol_says(void **state)
{
	(void)state;
	FIX(x);
	struct vs_made m;
	const struct vs_set group = {.mask = VS_SET_GROUP, .group = 77};
	struct vs_status st;
	assert_ok(vs_set_status(x.v, root, &group, &who, &st));
	who.now += SEC(5);
	assert_ok(vs_create_file(x.v, root, "f", &who, NULL, &m));
	assert_int_equal(m.node.fid.vnode, 2);
	assert_int_equal(m.node.fid.unique, 2);
	assert_int_equal(m.node.type, AFS_FILE);
	assert_int_equal(m.node.mode, 0777);
	assert_int_equal(m.node.owner, 100);
	assert_int_equal(m.node.author, 100);
	assert_int_equal(m.node.group, 77); /* the directory's */
	assert_int_equal(m.node.links, 1);
	assert_int_equal(m.node.length, 0);
	assert_int_equal(m.node.dv, 0);
	assert_true(m.node.client_mtime == who.now && m.node.server_mtime == who.now);
	assert_int_equal(m.node.parent.vnode, 1);
	assert_int_equal(m.dir.dv, 1);
	assert_int_equal(m.dir.length, 2048);
	assert_true(m.dir.client_mtime == who.now && m.dir.server_mtime == who.now);
	assert_int_equal(m.dir.author, 100);

	const struct vs_set set = {
		VS_SET_MODE | VS_SET_MTIME | VS_SET_GROUP | VS_SET_OWNER, SEC(7), 5, 6, 0640};
	assert_ok(vs_create_file(x.v, root, "g", &who, &set, &m));
	assert_int_equal(m.node.mode, 0640);
	assert_int_equal(m.node.owner, 5);
	assert_int_equal(m.node.group, 6);
	assert_true(m.node.client_mtime == SEC(7) && m.node.server_mtime == who.now);
	struct vs_status again = status_of(x.v, m.node.fid);
	assert_memory_equal(&again, &m.node, sizeof(again));
	assert_clean(x.v);
}

static void vnode_numbers_are_the_lowest_free_and_uniquifiers_never_come_again(void **state)
{
	(void)state;
	FIX(x);
	struct vs_removed r;
	uint32_t last = 1;
	for (int i = 0; i < 50; i++) {
		struct vs_fid f = make_file(x.v, root, "f"), d = make_folder(x.v, root, "d");
		assert_int_equal(f.vnode, 2);
		assert_int_equal(d.vnode, 3);
		assert_true(f.unique > last && d.unique > f.unique);
		last = d.unique;
		assert_ok(vs_remove(x.v, root, "f", &who, &r));
		assert_true(r.freed);
		assert_ok(vs_remove_dir(x.v, root, "d", &who, &r));
		struct vs_node n;
		assert_err(vs_node_get(x.v, f, &n), AFS_ENOVNODE);
		if (i == 25) { /* the counter is kept */
			fix_close(&x);
			fix_open(&x);
		}
	}
	make_file(x.v, root, "a");
	struct vs_fid b = make_file(x.v, root, "b");
	make_file(x.v, root, "c");
	assert_ok(vs_remove(x.v, root, "b", &who, &r));
	assert_int_equal(make_file(x.v, root, "d").vnode, b.vnode);
	struct vs_node n;
	assert_err(vs_node_get(x.v, b, &n), AFS_ENOVNODE); /* the old fid stays dead */
	assert_err(vs_node_get(x.v, (struct vs_fid){b.vnode, 0}, &n), AFS_ENOVNODE);
}

static void names_that_must_not_be_are_refused_by_every_verb(void **state)
{
	(void)state;
	FIX(x);
	struct vs_made m;
	struct vs_removed r;
	struct vs_renamed n;
	char long_name[300] = {0};
	memset(long_name, 'l', 256);
	const struct {
		const char *name;
		afs_err made, old;
	} bad[] = {
		{"", AFS_EINVAL, AFS_EINVAL},
		{".", AFS_EINVAL, AFS_EINVAL},
		{"..", AFS_EINVAL, AFS_EINVAL},
		{"a/b", AFS_EINVAL, AFS_EINVAL},
		{"/", AFS_EINVAL, AFS_EINVAL},
		{"x@sys", AFS_EINVAL, AFS_ENOENT},
		{"@sys", AFS_EINVAL, AFS_ENOENT},
		{long_name, AFS_ENAMETOOLONG, AFS_ENAMETOOLONG},
	};
	struct vs_fid f = make_file(x.v, root, "f");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *b = bad[i].name;
		assert_err(vs_create_file(x.v, root, b, &who, NULL, &m), bad[i].made);
		assert_err(vs_make_dir(x.v, root, b, &who, NULL, &m), bad[i].made);
		assert_err(vs_make_symlink(x.v, root, b, "t", 1, &who, NULL, &m), bad[i].made);
		assert_err(vs_link(x.v, root, b, f, &who, &m), bad[i].made);
		assert_err(vs_rename(x.v, root, "f", root, b, true, &who, &n), bad[i].made);
		assert_err(vs_rename(x.v, root, b, root, "n", true, &who, &n), bad[i].old);
		assert_err(vs_remove(x.v, root, b, &who, &r), bad[i].old);
		assert_err(vs_remove_dir(x.v, root, b, &who, &r), bad[i].old);
	}
	assert_int_equal(dv(x.v, root), 1);
	/* K03: 255 bytes work everywhere */
	long_name[255] = '\0';
	char other[256] = {0};
	memset(other, 'o', 255);
	struct vs_fid found;
	assert_ok(vs_create_file(x.v, root, long_name, &who, NULL, &m));
	assert_ok(vs_lookup(x.v, root, long_name, &found));
	assert_ok(vs_link(x.v, root, other, m.node.fid, &who, &m));
	assert_ok(vs_rename(x.v, root, other, root, "n", true, &who, &n));
	assert_ok(vs_rename(x.v, root, "n", root, other, true, &who, &n));
	assert_ok(vs_remove(x.v, root, long_name, &who, &r));
	assert_ok(vs_remove(x.v, root, other, &who, &r));
	assert_ok(vs_make_symlink(x.v, root, long_name, "t", 1, &who, NULL, &m));
	assert_ok(vs_make_dir(x.v, root, other, &who, NULL, &m));
	assert_clean(x.v);
}

static void the_wrong_kind_of_object_is_refused(void **state)
{
	(void)state;
	FIX(x);
	struct vs_made m;
	struct vs_removed r;
	struct vs_renamed n;
	struct vs_fid f = make_file(x.v, root, "f"), d = make_folder(x.v, root, "d"), found;
	make_file(x.v, d, "in");
	assert_err(vs_create_file(x.v, f, "y", &who, NULL, &m), AFS_ENOTDIR);
	assert_err(vs_lookup(x.v, f, "y", &found), AFS_ENOTDIR);
	assert_err(vs_rename(x.v, root, "f", f, "y", true, &who, &n), AFS_ENOTDIR);
	assert_err(vs_create_file(x.v, root, "f", &who, NULL, &m), AFS_EEXIST);
	assert_err(vs_make_dir(x.v, root, "f", &who, NULL, &m), AFS_EEXIST);
	assert_err(vs_remove(x.v, root, "d", &who, &r), AFS_EISDIR);
	assert_err(vs_remove_dir(x.v, root, "f", &who, &r), AFS_ENOTDIR);
	assert_err(vs_remove_dir(x.v, root, "d", &who, &r), AFS_ENOTEMPTY);
	assert_err(vs_remove(x.v, root, "none", &who, &r), AFS_ENOENT);
	assert_err(vs_make_symlink(x.v, root, "s", "", 0, &who, NULL, &m), AFS_EINVAL);
	assert_err(vs_make_symlink(x.v, root, "s", "a\0b", 3, &who, NULL, &m), AFS_EINVAL);
	struct vs_fid gone = {8, 9};
	assert_err(vs_create_file(x.v, gone, "y", &who, NULL, &m), AFS_ENOVNODE);
	assert_err(vs_link(x.v, root, "y", gone, &who, &m), AFS_ENOVNODE);
	assert_clean(x.v);
}

/* K09 */
static void each_verb_moves_each_directorys_version_by_one(void **state)
{
	(void)state;
	FIX(x);
	struct vs_made m;
	struct vs_removed r;
	struct vs_renamed n;
	struct vs_status st;
	struct vs_fid a = make_folder(x.v, root, "a"), b = make_folder(x.v, root, "b");
	assert_int_equal(dv(x.v, root), 2);
	assert_int_equal(dv(x.v, a), 0);
	struct vs_fid f = make_file(x.v, a, "f");
	assert_int_equal(dv(x.v, a), 1);
	assert_ok(vs_make_dir(x.v, a, "d", &who, NULL, &m));
	struct vs_fid d = m.node.fid;
	assert_int_equal(m.dir.dv, 2);
	assert_ok(vs_make_symlink(x.v, a, "s", "t", 1, &who, NULL, &m));
	assert_int_equal(m.dir.dv, 3);
	assert_ok(vs_link(x.v, a, "l", f, &who, &m));
	assert_int_equal(m.dir.dv, 4);
	assert_int_equal(m.node.dv, 0);
	assert_ok(vs_remove(x.v, a, "l", &who, &r));
	assert_int_equal(r.dir.dv, 5);
	assert_int_equal(r.node.dv, 0);
	assert_ok(vs_rename(x.v, a, "f", a, "g", true, &who, &n));
	assert_int_equal(n.old_dir.dv, 6);
	assert_int_equal(n.new_dir.dv, 6);
	assert_memory_equal(&n.old_dir, &n.new_dir, sizeof(n.old_dir));
	assert_ok(vs_rename(x.v, a, "g", b, "g", true, &who, &n));
	assert_int_equal(n.old_dir.dv, 7);
	assert_int_equal(n.new_dir.dv, 1);
	assert_int_equal(dv(x.v, f), 0);
	assert_ok(vs_rename(x.v, a, "d", b, "d", true, &who, &n));
	assert_int_equal(n.old_dir.dv, 8);
	assert_int_equal(n.new_dir.dv, 2);
	assert_true(n.dotdot_changed);
	assert_int_equal(n.moved.dv, 1);
	assert_int_equal(dv(x.v, d), 1);
	const struct vs_set chmod = {.mask = VS_SET_MODE, .mode = 0700};
	assert_ok(vs_set_status(x.v, b, &chmod, &who, &st));
	assert_int_equal(st.dv, 2);
	const struct vs_acl acl = {.positive = 1, .e = {{100, ACL_ALL}}};
	assert_ok(vs_set_acl(x.v, b, &acl, &who, &st));
	assert_int_equal(st.dv, 2);
	assert_ok(vs_remove_dir(x.v, b, "d", &who, &r));
	assert_int_equal(r.dir.dv, 3);
	st = store(x.v, f, 0, "x", 1, 1);
	assert_int_equal(st.dv, 1);
	st = store(x.v, f, 0, "", 0, 1); /* nothing, and yet a store */
	assert_int_equal(st.dv, 2);
	assert_clean(x.v);
}

/* K12 */
static void hard_links_stay_in_their_directory(void **state)
{
	(void)state;
	FIX(x);
	struct vs_made m;
	struct vs_removed r;
	struct vs_renamed n;
	struct vs_fid a = make_folder(x.v, root, "a"), b = make_folder(x.v, root, "b");
	struct vs_fid f = make_file(x.v, a, "f");
	store(x.v, f, 0, "data", 4, 4);
	who.now += SEC(1);
	who.id = 200;
	assert_ok(vs_link(x.v, a, "g", f, &who, &m));
	assert_int_equal(m.node.links, 2);
	assert_int_equal(m.node.author, 200);
	assert_true(m.node.server_mtime == who.now && m.node.client_mtime != who.now);
	who.id = 100;
	assert_err(vs_link(x.v, b, "g", f, &who, &m), AFS_EXDEV);
	assert_err(vs_link(x.v, root, "g", a, &who, &m), AFS_EISDIR);
	assert_err(vs_rename(x.v, a, "f", b, "f", true, &who, &n),
		AFS_EXDEV); /* would tear the names apart */
	assert_err(vs_rename(x.v, a, "f", a, "g", true, &who, &n), AFS_EINVAL); /* one object */
	assert_ok(vs_remove(x.v, a, "f", &who, &r));
	assert_false(r.freed);
	assert_int_equal(r.node.links, 1);
	assert_content(x.v, f, "data", 4);
	assert_ok(vs_rename(x.v, a, "g", b, "g", true, &who, &n));
	assert_content(x.v, f, "data", 4);
	assert_ok(vs_remove(x.v, b, "g", &who, &r));
	assert_true(r.freed);
	assert_clean(x.v);
}

/* K13 */
static void rename_replaces_and_refuses_as_the_protocol_says(void **state)
{
	(void)state;
	FIX(x);
	struct vs_renamed n;
	struct vs_fid a = make_folder(x.v, root, "a"), b = make_folder(x.v, root, "b");
	struct vs_fid f = make_file(x.v, a, "f"), g = make_file(x.v, b, "g");
	struct vs_fid full = make_folder(x.v, b, "full"), empty = make_folder(x.v, b, "empty"),
		      sub = make_folder(x.v, a, "sub");
	make_file(x.v, full, "x");
	struct vs_fid deep = make_folder(x.v, sub, "deep");

	assert_err(vs_rename(x.v, a, "none", b, "g", true, &who, &n), AFS_ENOENT);
	assert_err(vs_rename(x.v, a, "f", b, "g", false, &who, &n), AFS_EACCESS);
	assert_err(vs_rename(x.v, a, "f", b, "empty", true, &who, &n), AFS_EISDIR);
	assert_err(vs_rename(x.v, a, "sub", b, "g", true, &who, &n), AFS_ENOTDIR);
	assert_err(vs_rename(x.v, a, "sub", b, "full", true, &who, &n), AFS_ENOTEMPTY);
	assert_err(vs_rename(x.v, a, "sub", sub, "y", true, &who, &n),
		AFS_ELOOP); /* the source is the directory */
	assert_err(
		vs_rename(x.v, a, "sub", deep, "y", true, &who, &n), AFS_ELOOP); /* below itself */
	assert_err(vs_rename(x.v, root, "a", a, "y", true, &who, &n), AFS_ELOOP);
	assert_err(vs_rename(x.v, a, "f", root, "a", true, &who, &n),
		AFS_EINVAL); /* the target is the old directory */
	assert_clean(x.v);

	assert_ok(vs_rename(x.v, a, "f", b, "g", true, &who, &n));
	assert_true(n.replaced && n.replaced_freed);
	assert_int_equal(n.replaced_node.fid.vnode, g.vnode);
	assert_int_equal(n.moved.parent.vnode, b.vnode);
	struct vs_node gone;
	assert_err(vs_node_get(x.v, g, &gone), AFS_ENOVNODE);
	struct vs_fid found;
	assert_ok(vs_lookup(x.v, b, "g", &found));
	assert_int_equal(found.unique, f.unique);

	uint32_t links = status_of(x.v, b).links;
	assert_ok(vs_rename(
		x.v, a, "sub", b, "empty", true, &who, &n)); /* the replaced directory is freed */
	assert_true(n.replaced && n.replaced_freed && n.dotdot_changed);
	assert_err(vs_node_get(x.v, empty, &gone), AFS_ENOVNODE);
	assert_int_equal(status_of(x.v, b).links, links);
	assert_int_equal(status_of(x.v, a).links, 2);
	assert_ok(vs_lookup(x.v, sub, "..", &found));
	assert_int_equal(found.vnode, b.vnode);
	assert_clean(x.v);
}

static void rename_makes_the_new_entry_before_the_old_one_goes(void **state)
{
	(void)state;
	FIX(x);
	struct vs_renamed n;
	make_file(x.v, root, "a");
	assert_ok(vs_rename(x.v, root, "a", root, "b", true, &who, &n));
	size_t len;
	CLEANUP(heap) uint8_t *d = content(x.v, root, &len);
	assert_hex(d + 0x1e0, 4, "00000000"); /* slot 15 was a's */
	assert_hex(d + 0x200, 14, "0100 0000 0000 0002 0000 0002 6200");
}

static void status_and_acl_change_what_they_name_only(void **state)
{
	(void)state;
	FIX(x);
	struct vs_status st;
	struct vs_made m;
	struct vs_fid f = make_file(x.v, root, "f");
	const wall_ns before = who.now;
	who.now += SEC(9);
	who.id = 300;
	const struct vs_set mtime = {.mask = VS_SET_MTIME, .mtime = SEC(5)};
	assert_ok(vs_set_status(x.v, f, &mtime, &who, &st));
	assert_true(st.client_mtime == SEC(5) && st.server_mtime == who.now);
	assert_int_equal(st.author, 100);
	const struct vs_set rest = {VS_SET_OWNER | VS_SET_GROUP | VS_SET_MODE, 0, -204, 9, 0177777};
	assert_ok(vs_set_status(x.v, f, &rest, &who, &st));
	assert_int_equal(st.owner, -204);
	assert_int_equal(st.group, 9);
	assert_int_equal(st.mode, 07777);
	assert_true(st.client_mtime == SEC(5));
	assert_ok(vs_make_symlink(x.v, root, "s", "target", 6, &who, NULL, &m));
	assert_err(vs_set_status(x.v, m.node.fid, &rest, &who, &st), AFS_EINVAL);
	assert_ok(vs_set_status(x.v, m.node.fid, &mtime, &who, &st));
	assert_true(before < who.now);

	struct vs_node n;
	assert_ok(vs_set_status(
		x.v, root, &(struct vs_set){.mask = VS_SET_OWNER, .owner = 55}, &who, &st));
	assert_ok(vs_node_get(x.v, f, &n));
	assert_int_equal(n.volume_owner, 55); /* the root's owner is the volume's */
	who.id = 100;
}

static void an_acl_governs_its_directory_and_the_files_in_it(void **state)
{
	(void)state;
	FIX(x);
	struct vs_node n;
	struct vs_status st;
	struct vs_fid d = make_folder(x.v, root, "d"), f = make_file(x.v, d, "f");
	assert_ok(vs_node_get(x.v, root, &n));
	assert_int_equal(n.acl.positive, 1);
	assert_int_equal(n.acl.e[0].id, AFS_ADMINISTRATORS);
	assert_int_equal(n.acl.e[0].rights, ACL_ALL);
	struct vs_acl acl = {
		.positive = 2, .negative = 2, .e = {{5, 9}, {-101, 8}, {7, 1}, {3, 2}}};
	assert_ok(vs_set_acl(x.v, d, &acl, &who, &st));
	const struct vs_ace want[] = {{-101, 8}, {5, 9}, {3, 2}, {7, 1}};
	for (int round = 0; round < 2; round++) {
		assert_ok(vs_node_get(x.v, f, &n));
		assert_memory_equal(n.acl.e, want, sizeof(want));
		assert_int_equal(n.acl.negative, 2);
		fix_close(&x);
		fix_open(&x);
	}
	struct vs_fid sub = make_folder(x.v, d, "sub"); /* a copy, negatives too */
	assert_ok(vs_node_get(x.v, sub, &n));
	assert_memory_equal(n.acl.e, want, sizeof(want));
	assert_err(vs_set_acl(x.v, f, &acl, &who, &st), AFS_ENOTDIR);
	acl.e[1].id = 5;
	assert_err(vs_set_acl(x.v, d, &acl, &who, &st), AFS_EINVAL);
	struct vs_acl many = {.positive = 15, .negative = 6};
	assert_err(vs_set_acl(x.v, d, &many, &who, &st), AFS_ETOOBIG);
	for (int i = 0; i < 20; i++)
		many.e[i] = (struct vs_ace){i, ACL_READ};
	many.negative = 5;
	assert_ok(vs_set_acl(x.v, d, &many, &who, &st));
	const struct vs_acl none = {0};
	assert_ok(vs_set_acl(x.v, d, &none, &who, &st));
	assert_clean(x.v);
}

static void an_acl_packs_as_dumps_carry_it(void **state)
{
	(void)state;
	uint8_t block[VS_ACL_BYTES];
	struct vs_acl acl = {.positive = 2,
			      .negative = 3,
			      .e = {{-204, 0x7f}, {-101, 9}, {1, 1}, {1001, 2}, {1002, 4}}},
		      again;
	vs_acl_pack(&acl, block);
	assert_hex(block, 60,
		"0000003c 00000001 00000005 00000002 00000003 ffffff34 0000007f ffffff9b 00000009"
		"000003ea 00000004 000003e9 00000002 00000001 00000001");
	assert_ok(vs_acl_unpack(block, &again));
	assert_memory_equal(&acl, &again, sizeof(acl));
	static const struct {
		size_t at;
		uint8_t byte;
	} harm[] = {{11, 21}, {8, 0x80}, {15, 6}, {12, 0xff}, {19, 4}, {16, 0xff}, {3, 59}};
	for (size_t i = 0; i < ARRAY_SIZE(harm); i++) {
		uint8_t bad[VS_ACL_BYTES];
		memcpy(bad, block, sizeof(bad));
		bad[harm[i].at] = harm[i].byte;
		assert_err(vs_acl_unpack(bad, &again), AFS_EINVAL);
	}
}

static void quota_is_strict_for_names_and_lenient_for_data(void **state)
{
	(void)state;
	FIX(x);
	struct vs_header h = {.quota_kib = 100};
	struct vs_made m;
	struct vs_status st;
	static char data[3 << 20];
	assert_ok(vs_volume_set_header(x.v, &h, VS_H_QUOTA));
	struct vs_fid f = make_file(x.v, root, "f"), g = make_file(x.v, root, "g"); /* 2 + 1 + 1 */
	store(x.v, f, 0, data, 89 * 1024 + 1, 89 * 1024 + 1);                       /* 90 */
	assert_ok(vs_volume_header(x.v, &h));
	assert_int_equal(h.used_kib, 93);
	store(x.v, g, 0, data, 30000, 30000);
	assert_ok(vs_volume_header(x.v, &h));
	assert_int_equal(h.used_kib, 122);
	assert_err(vs_create_file(x.v, root, "h", &who, NULL, &m), AFS_EOVERQUOTA);
	assert_err(vs_make_dir(x.v, root, "h", &who, NULL, &m), AFS_EOVERQUOTA);
	assert_err(vs_make_symlink(x.v, root, "h", "t", 1, &who, NULL, &m), AFS_EOVERQUOTA);
	store(x.v, g, 0, data, 60000, 60000); /* within the spare MiB */
	assert_err(try_store(x.v, g, 0, data, sizeof(data), sizeof(data), &st), AFS_EOVERQUOTA);
	assert_int_equal(status_of(x.v, g).length, 60000);
	struct vs_removed r;
	assert_ok(vs_remove(x.v, root, "f", &who, &r)); /* always possible */
	assert_ok(vs_link(x.v, root, "g2", g, &who, &m));
	make_file(x.v, root, "h");
	assert_clean(x.v);
	assert_ok(vs_volume_header(x.v, &h));
	assert_int_equal(h.used_kib, 2 + 59 + 1);
}

static void a_name_that_makes_a_directory_grow_costs_its_pages(void **state)
{
	(void)state;
	FIX(x);
	struct vs_header h;
	struct vs_made m;
	for (int i = 0; i < 49; i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%d", i);
		make_file(x.v, root, name);
	}
	h.quota_kib = 2 + 49 + 2; /* room for a file, not for a page too */
	assert_ok(vs_volume_set_header(x.v, &h, VS_H_QUOTA));
	assert_err(vs_create_file(x.v, root, "more", &who, NULL, &m), AFS_EOVERQUOTA);
	assert_int_equal(status_of(x.v, root).length, 2048);
	assert_clean(x.v);
	h.quota_kib++;
	assert_ok(vs_volume_set_header(x.v, &h, VS_H_QUOTA));
	assert_ok(vs_create_file(x.v, root, "more", &who, NULL, &m));
	assert_int_equal(m.dir.length, 4096);
	assert_clean(x.v);
}

TEST_MAIN(T(a_new_file_is_as_the_protocol_says),
	T(vnode_numbers_are_the_lowest_free_and_uniquifiers_never_come_again),
	T(names_that_must_not_be_are_refused_by_every_verb), T(the_wrong_kind_of_object_is_refused),
	T(each_verb_moves_each_directorys_version_by_one), T(hard_links_stay_in_their_directory),
	T(rename_replaces_and_refuses_as_the_protocol_says),
	T(rename_makes_the_new_entry_before_the_old_one_goes),
	T(status_and_acl_change_what_they_name_only),
	T(an_acl_governs_its_directory_and_the_files_in_it), T(an_acl_packs_as_dumps_carry_it),
	T(quota_is_strict_for_names_and_lenient_for_data),
	T(a_name_that_makes_a_directory_grow_costs_its_pages))
