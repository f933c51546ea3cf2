/* SPDX-License-Identifier: BSD-2-Clause
 * The table of fileserver.md §7, as it was seen on a stock server, line for line. */
#include "tests/lib/test.h"

#include "fileserver/fs/fs_access.h"

#include <stdio.h>

enum { ALICE = 100, BOB = 101, GROUP = -210 };

static struct fs_cps cps_of(int32_t *ids, uint32_t n) { return (struct fs_cps){ids, n}; }

static const struct fs_cps no_groups;

static struct fs_identity alice(void)
{
	static int32_t ids[] = {AFS_AUTHUSER, AFS_ANYUSER, ALICE};
	return (struct fs_identity){.id = ALICE, .cps = cps_of(ids, 3)};
}
static struct fs_identity anonymous(void)
{
	static int32_t ids[] = {AFS_ANYUSER, AFS_ANONYMOUS};
	return (struct fs_identity){.id = AFS_ANONYMOUS, .cps = cps_of(ids, 2)};
}
static struct fs_identity admin(void)
{
	static int32_t ids[] = {AFS_ADMINISTRATORS, AFS_AUTHUSER, AFS_ANYUSER, 1};
	return (struct fs_identity){.id = 1, .admin = true, .cps = cps_of(ids, 4)};
}

static struct vs_node node_of(enum afs_filetype type, uint32_t mode, int32_t owner, uint32_t rights)
{
	struct vs_node n = {
		.st = {.type = type, .mode = mode, .owner = owner, .group = 7}, .volume_owner = 0};
	n.acl.e[n.acl.positive++] = (struct vs_ace){AFS_ADMINISTRATORS, ACL_ALL};
	if (rights)
		n.acl.e[n.acl.positive++] = (struct vs_ace){ALICE, rights};
	return n;
}

static afs_err ask(const struct fs_identity *who, const struct vs_node *n, enum fs_act act,
	const struct vs_set *set)
{
	struct fs_standing s = fs_standing_of(n, who, &no_groups, ACL_LOOKUP);
	return fs_may(&s, &n->st, act, set);
}

static const struct vs_set mode_set = {.mask = VS_SET_MODE, .mode = 0444};
static const struct vs_set setuid_set = {.mask = VS_SET_MODE, .mode = 04755};
static const struct vs_set mtime_set = {.mask = VS_SET_MTIME};
static const struct vs_set chown_set = {.mask = VS_SET_OWNER, .owner = 999};
static const struct vs_set chgrp_set = {.mask = VS_SET_GROUP, .group = 999};

/* columns: none l r rl w i li d k a lid rlidwk; . allowed, - EACCES, P EPERM */
static const uint32_t columns[] = {0, ACL_LOOKUP, ACL_READ, ACL_READ | ACL_LOOKUP, ACL_WRITE,
	ACL_INSERT, ACL_LOOKUP | ACL_INSERT, ACL_DELETE, ACL_LOCK, ACL_ADMIN,
	ACL_LOOKUP | ACL_INSERT | ACL_DELETE, ACL_ALL & ~ACL_ADMIN};

static const struct row {
	const char *what;
	enum fs_act act;
	enum afs_filetype type;
	bool own;
	uint32_t mode;
	const struct vs_set *set;
	const char *want;
} rows[] = {
	{"stat dir", FS_ACT_STAT, AFS_DIR, false, 0755, NULL, "............"},
	{"stat other", FS_ACT_STAT, AFS_FILE, false, 0644, NULL, "--..-------."},
	{"stat sl", FS_ACT_STAT, AFS_SYMLINK, false, 0755, NULL, "-.-.--.---.."},
	{"read dir", FS_ACT_READ, AFS_DIR, false, 0755, NULL, "-.-.--.---.."},
	{"read other", FS_ACT_READ, AFS_FILE, false, 0644, NULL, "--..-------."},
	{"read sl", FS_ACT_READ, AFS_SYMLINK, false, 0755, NULL, "-.-.--.---.."},
	{"fetchacl dir", FS_ACT_FETCH_ACL, AFS_DIR, false, 0755, NULL, "-.-.--.---.."},
	{"fetchacl other", FS_ACT_FETCH_ACL, AFS_FILE, false, 0644, NULL, "--..-------."},
	{"store other", FS_ACT_STORE, AFS_FILE, false, 0644, NULL, "----.------."},
	{"chmod other", FS_ACT_CHANGE, AFS_FILE, false, 0644, &mode_set, "----.------."},
	{"chmod4755 other", FS_ACT_CHANGE, AFS_FILE, false, 0644, &setuid_set, "------------"},
	{"utimes dir", FS_ACT_CHANGE, AFS_DIR, false, 0755, &mtime_set, "-----...--.."},
	{"chown other", FS_ACT_CHANGE, AFS_FILE, false, 0644, &chown_set, "PPPPPPPPPPPP"},
	{"create", FS_ACT_INSERT, AFS_DIR, false, 0755, NULL, "-----..---.."},
	{"mtpt", FS_ACT_MOUNT_POINT, AFS_DIR, false, 0755, NULL, "------------"},
	{"remove", FS_ACT_DELETE, AFS_DIR, false, 0755, NULL, "-------.--.."},
	{"rlock", FS_ACT_LOCK_READ, AFS_FILE, false, 0644, NULL, "----.---.--."},
	{"wlock", FS_ACT_LOCK_WRITE, AFS_FILE, false, 0644, NULL, "----.------."},
	{"own stat", FS_ACT_STAT, AFS_FILE, true, 0644, NULL, "--..-..---.."},
	{"own read", FS_ACT_READ, AFS_FILE, true, 0644, NULL, "--..-..---.."},
	{"own store", FS_ACT_STORE, AFS_FILE, true, 0644, NULL, "----...---.."},
	{"own chmod444", FS_ACT_CHANGE, AFS_FILE, true, 0644, &mode_set, "----...---.."},
	{"own store444", FS_ACT_STORE, AFS_FILE, true, 0444, NULL, "-----..---.."},
	{"own read000", FS_ACT_READ, AFS_FILE, true, 0, NULL, "--..-..---.."},
	{"own chown", FS_ACT_CHANGE, AFS_FILE, true, 0644, &chown_set, "PPPPPPPPPPPP"},
	{"own chgrp", FS_ACT_STORE, AFS_FILE, true, 0644, &chgrp_set, "PPPPPPPPPPPP"},
	{"own wlock", FS_ACT_LOCK_WRITE, AFS_FILE, true, 0644, NULL, "----...---.."},
};

static void an_ordinary_user_may_what_the_verified_matrix_says(void **state)
{
	(void)state;
	struct fs_identity who = alice();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char got[ARRAY_SIZE(columns) + 1] = "";
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
			struct vs_node n = node_of(
				rows[i].type, rows[i].mode, rows[i].own ? ALICE : BOB, columns[c]);
			afs_err err = ask(&who, &n, rows[i].act, rows[i].set);
			got[c] = err == AFS_OK        ? '.'
				 : err == AFS_EACCESS ? '-'
				 : err == AFS_EPERM   ? 'P'
						      : '?';
		}
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: got %s, not %s", rows[i].what, got, rows[i].want);
	}
}

static void a_mount_point_takes_insert_and_administer(void **state)
{
	(void)state;
	struct fs_identity who = alice();
	struct vs_node n = node_of(AFS_DIR, 0755, BOB, ACL_INSERT | ACL_ADMIN);
	assert_ok(ask(&who, &n, FS_ACT_MOUNT_POINT, NULL));
	n = node_of(AFS_DIR, 0755, BOB, ACL_ADMIN);
	assert_err(ask(&who, &n, FS_ACT_MOUNT_POINT, NULL), AFS_EACCESS);
}

static void an_acl_is_stored_with_administer_alone(void **state)
{
	(void)state;
	struct fs_identity who = alice();
	struct vs_node n = node_of(AFS_DIR, 0755, BOB, ACL_ADMIN);
	assert_ok(ask(&who, &n, FS_ACT_STORE_ACL, NULL));
	n = node_of(AFS_DIR, 0755, BOB, ACL_READ | ACL_LOOKUP);
	assert_err(ask(&who, &n, FS_ACT_STORE_ACL, NULL), AFS_EACCESS);
}

static void owning_a_directory_gives_no_right(void **state)
{
	(void)state;
	struct fs_identity who = alice();
	struct vs_node n = node_of(AFS_DIR, 0755, ALICE, 0);
	struct fs_standing s = fs_standing_of(&n, &who, &no_groups, ACL_LOOKUP);
	assert_int_equal(s.rights, 0);
	assert_err(ask(&who, &n, FS_ACT_STORE_ACL, NULL), AFS_EACCESS);
	assert_err(ask(&who, &n, FS_ACT_READ, NULL), AFS_EACCESS);
}

static void an_administrator_without_an_entry_looks_and_manages_but_has_no_content(void **state)
{
	(void)state;
	struct fs_identity who = admin();
	struct vs_node dir = node_of(AFS_DIR, 0755, BOB, 0), file = node_of(AFS_FILE, 0644, BOB, 0);
	struct vs_node link = node_of(AFS_SYMLINK, 0755, BOB, 0);
	dir.acl.positive = file.acl.positive = link.acl.positive = 0; /* not even its own group */
	struct fs_standing s = fs_standing_of(&dir, &who, &no_groups, ACL_LOOKUP);
	assert_int_equal(s.rights, ACL_LOOKUP);
	const struct vs_set *sets[] = {&mode_set, &setuid_set, &chown_set};

	assert_ok(ask(&who, &dir, FS_ACT_STAT, NULL));
	assert_ok(ask(&who, &file, FS_ACT_STAT, NULL));
	assert_ok(ask(&who, &link, FS_ACT_STAT, NULL));
	assert_ok(ask(&who, &dir, FS_ACT_FETCH_ACL, NULL));
	assert_ok(ask(&who, &file, FS_ACT_FETCH_ACL, NULL));
	assert_ok(ask(&who, &dir, FS_ACT_READ, NULL));
	assert_ok(ask(&who, &link, FS_ACT_READ, NULL));
	assert_ok(ask(&who, &dir, FS_ACT_STORE_ACL, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		assert_ok(ask(&who, &file, FS_ACT_CHANGE, sets[i]));

	assert_err(ask(&who, &file, FS_ACT_READ, NULL), AFS_EACCESS);
	assert_err(ask(&who, &file, FS_ACT_STORE, NULL), AFS_EACCESS);
	assert_err(ask(&who, &dir, FS_ACT_INSERT, NULL), AFS_EACCESS);
	assert_err(ask(&who, &dir, FS_ACT_MOUNT_POINT, NULL), AFS_EACCESS);
	assert_err(ask(&who, &dir, FS_ACT_DELETE, NULL), AFS_EACCESS);
	assert_err(ask(&who, &file, FS_ACT_LOCK_READ, NULL), AFS_EACCESS);
	assert_err(ask(&who, &file, FS_ACT_LOCK_WRITE, NULL), AFS_EACCESS);
}

static void a_volume_owner_reads_directories_and_stores_acls(void **state)
{
	(void)state;
	struct fs_identity who = alice();
	struct vs_node dir = node_of(AFS_DIR, 0755, BOB, 0), file = node_of(AFS_FILE, 0644, BOB, 0);
	dir.volume_owner = file.volume_owner = ALICE;
	assert_ok(ask(&who, &dir, FS_ACT_READ, NULL));
	assert_ok(ask(&who, &dir, FS_ACT_STORE_ACL, NULL));
	assert_err(ask(&who, &file, FS_ACT_STAT, NULL), AFS_EACCESS);
	assert_err(ask(&who, &file, FS_ACT_READ, NULL), AFS_EACCESS);
	assert_err(ask(&who, &dir, FS_ACT_SET_VOLUME, NULL), AFS_EACCESS);
}

static void a_volume_is_owned_by_every_member_of_an_owning_group(void **state)
{
	(void)state;
	int32_t ids[] = {GROUP, AFS_AUTHUSER, AFS_ANYUSER, ALICE};
	struct fs_identity who = {.id = ALICE, .cps = cps_of(ids, 4)};
	struct vs_node dir = node_of(AFS_DIR, 0755, BOB, 0);
	dir.volume_owner = GROUP;
	assert_ok(ask(&who, &dir, FS_ACT_STORE_ACL, NULL));
	struct fs_identity stranger = alice();
	assert_err(ask(&stranger, &dir, FS_ACT_STORE_ACL, NULL), AFS_EACCESS);
}

static void nobody_owns_a_volume_anonymously(void **state)
{
	(void)state;
	struct fs_identity who = anonymous();
	struct vs_node dir = node_of(AFS_DIR, 0755, BOB, 0);
	dir.volume_owner = AFS_ANONYMOUS;
	assert_err(ask(&who, &dir, FS_ACT_STORE_ACL, NULL), AFS_EACCESS);
	dir.volume_owner = AFS_ANYUSER; /* a group that everybody is in, though */
	assert_err(ask(&who, &dir, FS_ACT_STORE_ACL, NULL), AFS_EACCESS);
}

static void negative_entries_take_away_after_all_positive_ones_gave(void **state)
{
	(void)state;
	struct vs_node n = {.st = {.type = AFS_DIR}};
	struct fs_identity a = alice(), none = anonymous();
	n.acl = (struct vs_acl){1, 1, {{AFS_ANYUSER, 9}, {ALICE, 1}}};
	assert_int_equal(fs_standing_of(&n, &a, &no_groups, ACL_LOOKUP).rights, 8);
	assert_int_equal(fs_standing_of(&n, &a, &no_groups, ACL_LOOKUP).anonymous, 9);
	assert_int_equal(fs_standing_of(&n, &none, &no_groups, ACL_LOOKUP).rights, 9);
	n.acl = (struct vs_acl){1, 1, {{ALICE, 9}, {AFS_ANYUSER, 1}}};
	assert_int_equal(fs_standing_of(&n, &a, &no_groups, ACL_LOOKUP).rights, 8);
	n.acl = (struct vs_acl){1, 0, {{AFS_AUTHUSER, 9}}};
	assert_int_equal(fs_standing_of(&n, &a, &no_groups, ACL_LOOKUP).rights, 9);
	assert_int_equal(fs_standing_of(&n, &a, &no_groups, ACL_LOOKUP).anonymous, 0);
	/* K14: everything given, w taken */
	n.acl = (struct vs_acl){1, 1, {{ALICE, ACL_ALL}, {ALICE, ACL_WRITE}}};
	assert_int_equal(
		fs_standing_of(&n, &a, &no_groups, ACL_LOOKUP).rights, ACL_ALL & ~ACL_WRITE);
}

static void groups_of_the_host_add_what_the_users_negative_entries_do_not_touch(void **state)
{
	(void)state;
	struct vs_node n = {.st = {.type = AFS_DIR}};
	struct fs_identity a = alice();
	int32_t ids[] = {GROUP};
	struct fs_cps host = cps_of(ids, 1);
	n.acl = (struct vs_acl){2, 1, {{GROUP, 9}, {ALICE, 2}, {ALICE, 1}}};
	struct fs_standing s = fs_standing_of(&n, &a, &host, ACL_LOOKUP);
	assert_int_equal(s.rights, 11);
	assert_int_equal(s.anonymous, 9);
}

static void a_files_administer_bit_says_owner(void **state)
{
	(void)state;
	struct fs_identity a = alice();
	struct vs_node own = node_of(AFS_FILE, 0644, ALICE, ACL_LOOKUP | ACL_INSERT);
	assert_int_equal(fs_standing_of(&own, &a, &no_groups, ACL_LOOKUP).rights, 76);
	struct vs_node others = node_of(AFS_FILE, 0644, BOB, ACL_ALL);
	assert_int_equal(
		fs_standing_of(&others, &a, &no_groups, ACL_LOOKUP).rights, ACL_ALL & ~ACL_ADMIN);
}

static void only_the_owners_mode_bits_count_and_only_for_others(void **state)
{
	(void)state;
	struct fs_identity a = alice(), root = admin();
	static const struct {
		uint32_t mode;
		bool read, store;
	} want[] = {{0100, true, false}, {0400, true, false}, {0, false, false},
		{0200, false, true}, {0044, false, false}, {0022, false, false}};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct vs_node n = node_of(AFS_FILE, want[i].mode, BOB, ACL_ALL & ~ACL_ADMIN);
		assert_err(ask(&a, &n, FS_ACT_READ, NULL), want[i].read ? AFS_OK : AFS_EACCESS);
		assert_err(ask(&a, &n, FS_ACT_STORE, NULL), want[i].store ? AFS_OK : AFS_EACCESS);
		assert_ok(ask(&root, &n, FS_ACT_READ, NULL));
		assert_ok(ask(&root, &n, FS_ACT_STORE, NULL));
	}
}

static void an_anonymous_dropbox_is_written_but_not_read(void **state)
{
	(void)state;
	struct fs_identity who = anonymous();
	struct vs_node n = {.st = {.type = AFS_FILE, .mode = 0644, .owner = AFS_ANONYMOUS}};
	n.acl = (struct vs_acl){1, 0, {{AFS_ANYUSER, ACL_LOOKUP | ACL_INSERT}}};
	assert_ok(ask(&who, &n, FS_ACT_STORE, NULL));
	assert_err(ask(&who, &n, FS_ACT_READ, NULL), AFS_EACCESS);
	assert_err(ask(&who, &n, FS_ACT_STAT, NULL), AFS_EACCESS);
}

static void setting_the_owner_that_is_is_no_change(void **state)
{
	(void)state;
	struct fs_identity who = alice();
	struct vs_node n = node_of(AFS_FILE, 0644, BOB, ACL_WRITE);
	struct vs_set same = {.mask = VS_SET_OWNER | VS_SET_GROUP, .owner = BOB, .group = 7};
	assert_ok(ask(&who, &n, FS_ACT_CHANGE, &same));
	/* a field that the mask does not name is nothing */
	struct vs_set unnamed = {.mask = VS_SET_MTIME, .owner = 5, .group = 5, .mode = 06777};
	assert_ok(ask(&who, &n, FS_ACT_CHANGE, &unnamed));
}

static void a_set_id_bit_is_refused_to_writers_and_dropped_for_owners(void **state)
{
	(void)state;
	struct fs_identity who = alice();
	struct vs_node own = node_of(AFS_FILE, 0644, ALICE, ACL_INSERT);
	assert_ok(ask(&who, &own, FS_ACT_CHANGE, &setuid_set));
	struct vs_node others = node_of(AFS_FILE, 0644, BOB, ACL_WRITE);
	assert_err(ask(&who, &others, FS_ACT_STORE, &setuid_set), AFS_EACCESS);
}

TEST_MAIN(T(an_ordinary_user_may_what_the_verified_matrix_says),
	T(a_mount_point_takes_insert_and_administer), T(an_acl_is_stored_with_administer_alone),
	T(owning_a_directory_gives_no_right),
	T(an_administrator_without_an_entry_looks_and_manages_but_has_no_content),
	T(a_volume_owner_reads_directories_and_stores_acls),
	T(a_volume_is_owned_by_every_member_of_an_owning_group),
	T(nobody_owns_a_volume_anonymously),
	T(negative_entries_take_away_after_all_positive_ones_gave),
	T(groups_of_the_host_add_what_the_users_negative_entries_do_not_touch),
	T(a_files_administer_bit_says_owner),
	T(only_the_owners_mode_bits_count_and_only_for_others),
	T(an_anonymous_dropbox_is_written_but_not_read), T(setting_the_owner_that_is_is_no_change),
	T(a_set_id_bit_is_refused_to_writers_and_dropped_for_owners))
