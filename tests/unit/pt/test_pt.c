/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/dbcall.h"

#include "cell/base/log.h"
#include "dbserver/pt/pt_store.h"
#include "tests/unit/db/failmem.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
	char *dir, path[256];
	struct pt *pt;
	struct dbcall t;
};

static void open_at(struct fixture *f, const char *path)
{
	pt_close(f->pt);
	f->pt = NULL;
	struct dbserver_config c = dbcall_config(path);
	c.sync = DB_SYNC_NONE;
	assert_ok(pt_open(&c, &f->pt));
	assert_int_equal(pt_services(f->pt, f->t.services), DBSERVER_SERVICES);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->dir = test_scratch();
	snprintf(f->path, sizeof(f->path), "%s/cell.db", f->dir);
	arena_init(&f->t.arena, 1 << 20);
	open_at(f, f->path);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	dbcall_fini(&f->t);
	pt_close(f->pt);
	test_scratch_free(f->dir);
	free(f);
	return 0;
}

#define CALL(f, fn, who, in, out)                                                                  \
	dbcall(&(f)->t, &pt_iface, pt_iface.procs[pt_op_##fn].op, who, in, out)
#define PRE(n) (267264 + (n))
enum { PERM = PRE(5), NOENT = PRE(4), BADNAM = PRE(8), EXISTS = PRE(0), IDEXISTS = PRE(1), BADARG = PRE(9) };

static int32_t new_user(struct fixture *f, const char *who, const char *name, int32_t *id)
{
	struct pt_new_entry_in in = {XDR_STR_OF(name), PT_USER, 0};
	struct pt_new_entry_out out = {};
	int32_t code = CALL(f, new_entry, who, &in, &out);
	if (id)
		*id = out.id;
	return code;
}

static int32_t new_group(struct fixture *f, const char *who, const char *name, int32_t owner, int32_t *id)
{
	struct pt_new_entry_in in = {XDR_STR_OF(name), PT_GROUP, owner};
	struct pt_new_entry_out out = {};
	int32_t code = CALL(f, new_entry, who, &in, &out);
	if (id)
		*id = out.id;
	return code;
}

static int32_t new_id(struct fixture *f, const char *who, const char *name, int32_t id, int32_t owner)
{
	struct pt_inew_entry_in in = {XDR_STR_OF(name), id, owner};
	return CALL(f, inew_entry, who, &in, NULL);
}

static int32_t add(struct fixture *f, const char *who, int32_t member, int32_t group)
{
	struct pt_add_to_group_in in = {member, group};
	return CALL(f, add_to_group, who, &in, NULL);
}

static int32_t take_out(struct fixture *f, const char *who, int32_t member, int32_t group)
{
	struct pt_remove_from_group_in in = {member, group};
	return CALL(f, remove_from_group, who, &in, NULL);
}

static int32_t delete(struct fixture *f, const char *who, int32_t id)
{
	struct pt_delete_in in = {id};
	return CALL(f, delete, who, &in, NULL);
}

static int32_t change(
	struct fixture *f, const char *who, int32_t id, const char *name, int32_t owner, int32_t newid)
{
	struct pt_change_entry_in in = {id, XDR_STR_OF(name), owner, newid};
	return CALL(f, change_entry, who, &in, NULL);
}

static int32_t set_fields(struct fixture *f, const char *who, int32_t id, uint32_t mask, int32_t flags,
	int32_t ngroups, int32_t nusers)
{
	struct pt_set_fields_entry_in in = {id, mask, flags, ngroups, nusers, 0, 0};
	return CALL(f, set_fields_entry, who, &in, NULL);
}

static int32_t set_max(struct fixture *f, const char *who, int32_t id, int32_t gflag)
{
	struct pt_set_max_in in = {id, gflag};
	return CALL(f, set_max, who, &in, NULL);
}

static int32_t show(struct fixture *f, const char *who, int32_t id, struct prcheckentry *e)
{
	struct pt_list_entry_in in = {id};
	struct pt_list_entry_out out;
	int32_t code = CALL(f, list_entry, who, &in, &out);
	if (!code && e)
		*e = out.entry;
	return code;
}

static int32_t id_of(struct fixture *f, const char *name)
{
	struct prname n = {};
	snprintf(n.text, sizeof(n.text), "%s", name);
	struct pt_name_to_id_in in = {.nlist = {&n, 1}};
	struct pt_name_to_id_out out;
	assert_int_equal(CALL(f, name_to_id, NULL, &in, &out), 0);
	assert_int_equal(out.ilist.n, 1);
	return out.ilist.v[0];
}

static void assert_ids(struct fixture *f, const int32_t *want, uint32_t n)
{
	assert_int_equal(be32_get(f->t.reply), n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal((int32_t)be32_get(f->t.reply + 4 + 4 * i), want[i]);
}
#define IDS(f, ...)                                                                                \
	assert_ids(f, (int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

/* --- bytes ------------------------------------------------------------------------------------- */

static void a_fresh_database_has_the_entries_of_every_cell(void **state)
{
	struct fixture *f = *state;
	static const struct {
		int32_t id;
		const char *name;
		int32_t flags;
	} rows[] = {{-204, "system:administrators", 0x90}, {-205, "system:backup", 0x90},
		{-101, "system:anyuser", 0x90}, {-102, "system:authuser", 0x90},
		{-203, "system:ptsviewers", 0x90}, {32766, "anonymous", 0x80}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct prcheckentry e;
		assert_int_equal(show(f, NULL, rows[i].id, &e), 0);
		assert_string_equal(e.name, rows[i].name);
		assert_int_equal(e.owner, -204);
		assert_int_equal(e.creator, -204);
		assert_int_equal(e.flags, rows[i].flags);
		assert_int_equal(id_of(f, rows[i].name), rows[i].id);
	}
	struct pt_list_max_in in;
	assert_int_equal(CALL(f, list_max, NULL, &in, NULL), 0);
	assert_hex(f->t.reply, 8, "00000000 ffffff33");
}

static void captured_calls_get_captured_answers(void **state)
{
	struct fixture *f = *state;
	uint8_t b[512] = {};
	/* protection.md §8 */
	size_t n = test_unhex("00000005 616c6963 65000000 00000000 00000000", b, sizeof(b));
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 509, "afs", b, n, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len, "00000001");

	n = test_unhex("00000003 626f6200 000007d2 00000000", b, sizeof(b));
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 500, "afs", b, n, NULL), 0);
	assert_int_equal(f->t.reply_len, 0);
	int32_t id;
	assert_int_equal(new_user(f, "afs", "carol", &id), 0);
	assert_int_equal(id, 2003);

	n = test_unhex("00000001", b, sizeof(b)); /* ListEntry(1) */
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 512, NULL, b, n, NULL), 0);
	assert_int_equal(f->t.reply_len, 304);
	assert_hex(f->t.reply, 28 + 20 + 20 + 4,
		"00000080 00000001 ffffff34 ffffff34 00000014 00000014 00000000 "
		"00000000 00000000 00000000 00000000 00000000 "
		"00000061 0000006c 00000069 00000063 00000065 00000000");

	assert_int_equal(new_group(f, "afs", "bob:g1", 2002, &id), 0);
	assert_int_equal(id, -206);
	assert_int_equal(new_id(f, "afs", "bob:g2", -777, 2002), 0);
	n = test_unhex("000007d2 00000000", b, sizeof(b)); /* ListOwned */
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 517, "afs", b, n, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len, "00000002 fffffcf7 ffffff32 00000000");
	assert_int_equal(new_group(f, "afs", "bob:g3", 2002, &id), 0);
	assert_int_equal(id, -778); /* the minimum follows ids given by hand */

	n = test_unhex("00000000", b, sizeof(b)); /* empty lists, as pts sends them */
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 504, NULL, b, n, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len, "00000000");
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 505, NULL, b, n, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len, "00000000");

	/* a namelist of strings is no namelist */
	n = test_unhex("00000001 00000003 626f6200", b, sizeof(b));
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 504, NULL, b, n, NULL), -453);
	/* nor is one of more names than fit */
	n = test_unhex("00000401", b, sizeof(b));
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 504, NULL, b, n, NULL), -453);
	n = test_unhex("ffffffff", b, sizeof(b));
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 505, NULL, b, n, NULL), -453);
	static const uint32_t absent[] = {499, 522, 529, 531};
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		assert_int_equal(dbcall_raw(&f->t, &pt_iface, absent[i], "afs", b, 4, NULL), -455);
}

static void captured_subdomains(void **state)
{
	struct fixture *f = *state;
	int32_t g;
	assert_int_equal(new_id(f, "afs", "user", 2003, 0), 0);
	assert_int_equal(new_id(f, "afs", "root", 7, 0), 0);
	assert_int_equal(add(f, "afs", 7, -204), 0);
	struct pt_get_cps_in in = {2003};
	assert_int_equal(CALL(f, get_cps, "afs", &in, NULL), 0);
	IDS(f, -102, -101, 2003);
	in.id = AFS_ANONYMOUS;
	assert_int_equal(CALL(f, get_cps, "afs", &in, NULL), 0);
	IDS(f, -101, 32766);
	in.id = 7;
	assert_int_equal(CALL(f, get_cps, "afs", &in, NULL), 0);
	IDS(f, -204, -102, -101, 7);
	in.id = 99;
	assert_int_equal(CALL(f, get_cps, "afs", &in, NULL), NOENT);

	/* host entries: protection.md §4.3 */
	assert_int_equal(new_user(f, "afs", "10.1.0.0", &g), 0);
	int32_t host = g;
	assert_int_equal(new_id(f, "afs", "lab", -1004, 0), 0);
	assert_int_equal(add(f, "afs", host, -1004), 0);
	struct pt_get_host_cps_in h = {0x0a010203};
	assert_int_equal(CALL(f, get_host_cps, NULL, &h, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len, "00000001 fffffc14 00000000");
	h.host = 0x0a010909;
	assert_int_equal(CALL(f, get_host_cps, NULL, &h, NULL), 0);
	IDS(f, -1004);
	h.host = 0x0a020909;
	assert_int_equal(CALL(f, get_host_cps, NULL, &h, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len, "00000000 00000000");
	struct pt_get_cps2_in c2 = {PT_BADID, 0x0a010203};
	assert_int_equal(CALL(f, get_cps2, NULL, &c2, NULL), 0);
	IDS(f, -1004);
	c2.id = 2003;
	assert_int_equal(CALL(f, get_cps2, "afs", &c2, NULL), 0);
	assert_int_equal(be32_get(f->t.reply), 4);
}

/* --- rights: every call by every kind of caller -------------------------------------------------- */

enum { ALICE = 1, BOB, CAROL, DAVE, ROOT, EVE };
enum { G = -300, STAFF = -301, OWNED = -302, OPEN = -303, SHUT = -304, REALM = -305 };

/* The people of the table.  alice owns alice:g, bob is a member; carol is in staff, which owns staff:x;
 * root is an administrator, eve a viewer; known@ and bad@ are registered foreigners, bad@ was even put
 * into system:administrators. */
static void populate(struct fixture *f)
{
	static const char *const users[] = {"alice", "bob", "carol", "dave", "root", "eve"};
	int32_t id;
	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		assert_int_equal(new_user(f, "afs", users[i], &id), 0);
		assert_int_equal(id, i + 1);
	}
	assert_int_equal(add(f, "afs", ROOT, -204), 0);
	assert_int_equal(add(f, "afs", EVE, -203), 0);
	assert_int_equal(new_id(f, "afs", "alice:g", G, ALICE), 0);
	assert_int_equal(new_id(f, "afs", "staff", STAFF, 0), 0);
	assert_int_equal(new_id(f, "afs", "staff:x", OWNED, STAFF), 0);
	assert_int_equal(new_id(f, "afs", "alice:open", OPEN, ALICE), 0);
	assert_int_equal(new_id(f, "afs", "alice:shut", SHUT, ALICE), 0);
	assert_int_equal(set_fields(f, "afs", OPEN, 0xff, 0xff, 0, 0), 0);
	assert_int_equal(set_fields(f, "afs", SHUT, 0xff, 0, 0, 0), 0);
	assert_int_equal(add(f, "afs", BOB, G), 0);
	assert_int_equal(add(f, "afs", BOB, OPEN), 0);
	assert_int_equal(add(f, "afs", BOB, SHUT), 0);
	assert_int_equal(add(f, "afs", CAROL, STAFF), 0);
	assert_int_equal(new_id(f, "afs", "system:authuser@other.realm", REALM, -204), 0);
	assert_int_equal(new_user(f, "known@OTHER.REALM", "known@other.realm", &id), 0);
	assert_int_equal(new_user(f, "bad@OTHER.REALM", "bad@other.realm", &id), 0);
	assert_int_equal(add(f, "afs", id, -204), 0);
}

static const char *const kinds[] = {NULL, "mallory", "new@OTHER.REALM", "known@OTHER.REALM",
	"bad@OTHER.REALM", "dave", "bob", "carol", "alice", "eve", "root", "afs"};
/* Column heads of `who`: nobody, no entry, foreign x3, user, member of alice:*, in staff, owner,
 * viewer, administrator, the cell.  '.': PRPERM, 'y': done, or refused for another reason. */

static int32_t is_member(struct fixture *f, const char *who, int32_t u, int32_t g)
{
	struct pt_is_a_member_of_in in = {u, g};
	return CALL(f, is_a_member_of, who, &in, NULL);
}
static int32_t by_id(struct fixture *f, uint32_t op, const char *who, int32_t id)
{
	uint8_t b[8];
	be32_put(b, (uint32_t)id);
	be32_put(b + 4, 0);
	return dbcall_raw(&f->t, &pt_iface, op, who, b, op == 517 || op == 518 ? 8 : 4, NULL);
}
static int32_t list_all(struct fixture *f, const char *who)
{
	struct pt_list_entries_in in = {3, 0};
	return CALL(f, list_entries, who, &in, NULL);
}

static int32_t rehash(struct fixture *f, const char *who, int32_t id, uint32_t mask)
{
	struct pt_update_entry_in in = {.id = id, .name = XDR_STR_OF("alice"), .uentry = {.Mask = mask}};
	return CALL(f, update_entry, who, &in, NULL);
}

#define RIGHTS                                                                                     \
	/*                                            n m f f f d b c a e r c */                   \
	R("yyyyyyyyyyyy", id_of(f, "alice") == ALICE ? 0 : PERM)                                   \
	R("yyyyyyyyyyyy", by_id(f, 519, who, 0x0a000001))                                          \
	R("yyyyyyyyyyyy", dbcall_raw(&f->t, &pt_iface, 510, who, NULL, 0, NULL))                   \
	/* reading */                                                                              \
	R("yyyyyyyyyyyy", show(f, who, G, NULL))                                             \
	R("........yyyy", show(f, who, SHUT, NULL))                                          \
	R("yyyyyyyyyyyy", show(f, who, ALICE, NULL))                                         \
	R("yyyyyyyyyyyy", by_id(f, 514, who, G))                                                   \
	R("........yyyy", by_id(f, 514, who, SHUT))                                                \
	R("........yyyy", by_id(f, 514, who, ALICE))                                               \
	R(".....y...yyy", by_id(f, 514, who, DAVE))                                                \
	R("yyyyyyyyyyyy", by_id(f, 530, who, G))                                                   \
	R("........yyyy", by_id(f, 530, who, SHUT))                                                \
	R("........yyyy", by_id(f, 517, who, ALICE))                                               \
	R("..........yy", by_id(f, 517, who, 0))                                                   \
	R("........yyyy", by_id(f, 508, who, ALICE))                                               \
	R("........yyyy", by_id(f, 518, who, ALICE))                                               \
	R("yyyyyyyyyyyy", is_member(f, who, BOB, G))                                               \
	R("......y.yyyy", is_member(f, who, BOB, SHUT))                                            \
	R("..........yy", list_all(f, who))                                                        \
	R("..........yy", by_id(f, 501, who, ALICE))                                               \
	R("..........yy", by_id(f, 502, who, 1))                                                   \
	/* changing */                                                                             \
	R("..........yy", rehash(f, who, ALICE, 0x18))                                             \
	R("..........yy", new_user(f, who, "newuser", NULL))                                       \
	R("..........yy", new_id(f, who, "newuser", 4000, 0))                                      \
	R("..y.......yy", new_user(f, who, "new@other.realm", NULL))                               \
	R("..........yy", new_user(f, who, "third@other.realm", NULL))                             \
	R("...yyyyyyyyy", new_group(f, who, "bob:h", 0, NULL))                                     \
	R("........y.yy", new_group(f, who, "alice:h", ALICE, NULL))                               \
	R(".......y..yy", new_group(f, who, "staff:h", STAFF, NULL))                               \
	R("..........yy", new_group(f, who, "system:h", -204, NULL))                               \
	R("..........yy", new_id(f, who, "alice:h", -4000, ALICE))                                 \
	R("........y.yy", new_id(f, who, "alice:h", -306, ALICE))                                  \
	R("........y.yy", add(f, who, DAVE, G))                                                    \
	R(".yyyyyyyyyyy", add(f, who, DAVE, OPEN))                                                 \
	R("........y.yy", add(f, who, DAVE, SHUT))                                                 \
	R(".......y..yy", add(f, who, DAVE, OWNED))                                                \
	R("..........yy", add(f, who, DAVE, -204))                                                 \
	R("..........yy", add(f, who, DAVE, REALM))                                                \
	R("............", add(f, who, DAVE, -101))                                                 \
	R("............", add(f, who, DAVE, -102))                                                 \
	R("............", add(f, who, 32766, G))                                                   \
	R("........y.yy", take_out(f, who, BOB, G))                                                \
	R("......y.y.yy", take_out(f, who, BOB, OPEN))                                             \
	R("..........yy", take_out(f, who, ROOT, -204))                                            \
	R("........y.yy", delete(f, who, G))                                                       \
	R(".......y..yy", delete(f, who, OWNED))                                                   \
	R("..........yy", delete(f, who, STAFF))                                                   \
	R("..........yy", delete(f, who, DAVE))                                                    \
	R("............", delete(f, who, -204))                                                    \
	R("............", delete(f, who, -101))                                                    \
	R("............", delete(f, who, -102))                                                    \
	R("............", delete(f, who, 32766))                                                   \
	R("........y.yy", change(f, who, G, "alice:g2", 0, 0))                                     \
	R("........y.yy", change(f, who, G, "", BOB, 0))                                           \
	R("..........yy", change(f, who, G, "", -204, 0))                                          \
	R("..........yy", change(f, who, G, "", 0, -9999))                                         \
	R("..........yy", change(f, who, DAVE, "david", 0, 0))                                     \
	R("............", change(f, who, DAVE, "", ALICE, 0))                                      \
	R("............", change(f, who, DAVE, "", 0, -5000))                                      \
	R("............", change(f, who, -204, "system:x", 0, 0))                                  \
	R("............", change(f, who, 32766, "nobody", 0, 0))                                   \
	R("............", change(f, who, -101, "system:x", 0, 0))                                  \
	R("........y.yy", set_fields(f, who, G, 0xff, 0xb3, 0, 0))                                 \
	R(".......y..yy", set_fields(f, who, OWNED, 0xff, 0xb3, 0, 0))                             \
	R("..........yy", set_fields(f, who, ALICE, 0xff, 0xb3, 0, 0))                             \
	R("..........yy", set_fields(f, who, ALICE, PT_SET_NGROUPS, 0, 99, 0))                     \
	R("..........yy", set_fields(f, who, ALICE, PT_SET_NUSERS, 0, 0, 99))                      \
	R("..........yy", set_fields(f, who, -204, 0xff, 0xb3, 0, 0))                              \
	R("............", set_fields(f, who, -101, 0xff, 0xb3, 0, 0))                              \
	R("............", set_fields(f, who, -102, 0xff, 0xb3, 0, 0))                              \
	R("............", set_fields(f, who, 32766, 0xff, 0xb3, 0, 0))                             \
	R("..........yy", set_max(f, who, 5000, PT_USER))                                          \
	R("..........yy", set_max(f, who, -5000, PT_GROUP))

#define R(kinds, call) #call,
static const char *const rights_text[] = {RIGHTS};
#undef R
#define R(kinds, call) kinds,
static const char *const rights[] = {RIGHTS};
#undef R

static int32_t right_run(struct fixture *f, size_t row, const char *who)
{
	size_t i = 0;
#define R(kinds, call)                                                                             \
	if (i++ == row)                                                                            \
		return call;
	RIGHTS
#undef R
	return -1;
}

static void copy_file(const char *from, const char *to)
{
	static uint8_t buf[1 << 20];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n = read(in, buf, sizeof(buf));
	assert_true(n > 0 && (size_t)n < sizeof(buf));
	assert_int_equal(write(out, buf, (size_t)n), n);
	close(in);
	close(out);
}

static void every_call_is_judged_for_every_kind_of_caller(void **state)
{
	struct fixture *f = *state;
	populate(f);
	assert_ok(db_checkpoint(f->pt->w, true));
	char copy[300], side[310];
	snprintf(copy, sizeof(copy), "%s/copy.db", f->dir);
	unsigned wrong = 0;
	bool fresh = false;
	for (size_t row = 0; row < ARRAY_SIZE(rights); row++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			if (!fresh) {
				pt_close(f->pt);
				f->pt = NULL;
				snprintf(side, sizeof(side), "%s-wal", copy);
				unlink(side);
				snprintf(side, sizeof(side), "%s-shm", copy);
				unlink(side);
				copy_file(f->path, copy);
				open_at(f, copy);
			}
			uint64_t before = pt_generation(f->pt);
			int32_t code = right_run(f, row, kinds[k]);
			bool may = rights[row][k] == 'y';
			if ((code == PERM) == may) {
				print_error("%s by %s: %d, expected %s\n", rights_text[row],
					kinds[k] ? kinds[k] : "nobody", code, may ? "yes" : "no");
				wrong++;
			}
			/* what was refused left no trace; the copy is used on */
			fresh = pt_generation(f->pt) == before;
			if (code)
				assert_true(fresh);
		}
	assert_int_equal(wrong, 0);
}

static void nobody_can_write_rows_without_leave(void **state)
{
	(void)state;
	/* a mistake of ours, so it stops the program: in a child */
	pid_t pid = fork();
	if (pid == 0) {
		log_to(2, LOG_ERROR);
		signal(SIGABRT, SIG_DFL);
		struct pt_write w = {};
		struct pt_leave leave = {.verb = PTV_ADD, .id = -300};
		(void)!freopen("/dev/null", "w", stderr);
		afs_err err = pt_row_delete(&w, leave, -300);
		_exit(err ? 1 : 0);
	}
	int status;
	waitpid(pid, &status, 0);
#ifdef NDEBUG
	assert_true(WIFEXITED(status) || WIFSIGNALED(status));
#else
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
}

/* --- names and ids at the edges (case K17) --------------------------------------------------------- */

static void names_and_ids_at_the_edges(void **state)
{
	struct fixture *f = *state;
	char n63[64], n64[65];
	memset(n63, 'u', 63);
	n63[63] = 0;
	memset(n64, 'u', 64);
	n64[64] = 0;
	assert_int_equal(new_id(f, "afs", "taken", 77, 0), 0);
	const struct {
		const char *name;
		int32_t id, code;
	} rows[] = {
		{"a", 1, 0}, {n63, 2, 0}, {n64, 3, BADNAM}, {"", 3, BADNAM}, {"zero", 0, PERM},
		{"anon", 32766, IDEXISTS}, {"any", -101, IDEXISTS}, {"auth", -102, IDEXISTS},
		{"adm", -204, IDEXISTS}, {"bad", INT32_MIN, PERM}, {"low", INT32_MIN + 1, 0},
		{"dup", 77, IDEXISTS}, {"taken", 78, EXISTS}, {"TAKEN", 78, EXISTS},
		{"anonymous", 79, EXISTS}, {"system:anyuser", -900, EXISTS}, {"co:lon", 80, BADNAM},
		{"new\nline", 80, BADNAM}, {"sp ace", 80, BADNAM}, {"del\x7f", 80, BADNAM},
		{"tab\t", 80, BADNAM}, {"user@", 80, BADNAM}, {"@realm", 80, BADNAM},
		{"a@b@c", 80, BADNAM}, {"u@local.realm", 80, BADNAM}, {"u@test.cell", 80, BADNAM},
		{"u@nowhere", 80, BADNAM}, {"\xc3\xa9t\xc3\xa9", 81, 0}, {"with.dot", 82, 0},
		{"two:col:ons", -901, BADNAM}, {":x", -901, BADNAM}, {"system:", -901, BADNAM},
		{"other:x", -901, BADNAM}, {"-204", -901, BADNAM}, {"1234", -901, BADNAM},
		{"bare", -901, 0}, {"bare@realm", -902, BADNAM}, {"system:x@realm", -902, BADNAM},
		{"system:authuser@test.cell", -902, BADNAM}, {"system:authuser@", -902, BADNAM},
		{"system:authuser@a@b", -902, BADNAM}, {"top", INT32_MAX, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int32_t code = new_id(f, "afs", rows[i].name, rows[i].id, 0);
		if (code != rows[i].code) {
			print_error("'%s' %d: %d, expected %d\n", rows[i].name, rows[i].id, code,
				rows[i].code);
			fail();
		}
	}
	/* all ids are used up: nothing wraps */
	int32_t id = 0;
	assert_int_equal(new_user(f, "afs", "onemore", &id), PRE(2));
	assert_int_equal(new_group(f, "afs", "onemore", 0, &id), PRE(2));
	assert_int_equal(id_of(f, "onemore"), AFS_ANONYMOUS);
	/* 65 bytes do not decode */
	uint8_t b[80] = {0, 0, 0, 65};
	memset(b + 4, 'x', 65);
	assert_int_equal(dbcall_raw(&f->t, &pt_iface, 509, "afs", b, 80, NULL), -453);
	struct pt_new_entry_in flag = {XDR_STR_OF("x"), 1, 0};
	assert_int_equal(CALL(f, new_entry, "afs", &flag, NULL), PRE(9));
}

/* protection.md §3: 384 bytes; positions lead from one call to the other. */
static void a_dumped_entry_tells_all_that_is_kept_of_it(void **state)
{
	struct fixture *f = *state;
	populate(f);
	struct pt_where_is_it_in where = {G};
	struct pt_where_is_it_out at;
	assert_int_equal(CALL(f, where_is_it, "afs", &where, &at), 0);
	struct pt_dump_entry_in dump = {at.ps};
	struct pt_dump_entry_out out;
	assert_int_equal(CALL(f, dump_entry, "afs", &dump, &out), 0);
	assert_int_equal(f->t.reply_len, 384);
	assert_int_equal(out.entry.id, G);
	assert_int_equal(out.entry.flags, PTP_GROUP_DEFAULT << 16 | 0xc2);
	assert_int_equal(out.entry.owner, ALICE);
	assert_int_equal(out.entry.creator, -204);
	assert_int_equal(out.entry.count, 1);
	assert_int_equal(out.entry.entries[0], BOB);
	assert_int_equal(out.entry.entries[1], 0);
	assert_true(out.entry.reserved[0] > 0);
	assert_string_equal(out.entry.name, "alice:g");

	static const int32_t nowhere[] = {0, -1, INT32_MIN, INT32_MAX, 1000};
	for (size_t i = 0; i < ARRAY_SIZE(nowhere); i++) {
		dump.pos = nowhere[i];
		assert_int_equal(CALL(f, dump_entry, "afs", &dump, &out), nowhere[i] > 0 ? NOENT : BADARG);
	}
	where.id = 99999;
	assert_int_equal(CALL(f, where_is_it, "afs", &where, &at), NOENT);
	uint64_t before = pt_generation(f->pt);
	assert_int_equal(rehash(f, "afs", ALICE, 0x18), 0);
	assert_int_equal(rehash(f, "afs", 0, 8), 0); /* by its name */
	assert_int_equal(rehash(f, "afs", 99999, 8), NOENT);
	assert_int_equal(rehash(f, "afs", ALICE, 1), BADARG); /* nothing else changes an entry here */
	assert_true(pt_generation(f->pt) == before);
}

static void maxima_are_set_with_the_right_sign(void **state)
{
	struct fixture *f = *state;
	int32_t id;
	assert_int_equal(set_max(f, "afs", 100, PT_GROUP), PRE(9));
	assert_int_equal(set_max(f, "afs", -100, PT_USER), PRE(9));
	assert_int_equal(set_max(f, "afs", 0, PT_GROUP), PRE(9));
	assert_int_equal(set_max(f, "afs", INT32_MIN, PT_GROUP), PRE(9));
	assert_int_equal(set_max(f, "afs", 100, 1), PRE(9));
	assert_int_equal(set_max(f, "afs", 100, PT_USER), 0);
	assert_int_equal(new_user(f, "afs", "a", &id), 0);
	assert_int_equal(id, 101);
	assert_int_equal(set_max(f, "afs", 32764, PT_USER), 0);
	assert_int_equal(new_user(f, "afs", "b", &id), 0);
	assert_int_equal(id, 32765);
	assert_int_equal(new_user(f, "afs", "c", &id), 0); /* anonymous is in the way */
	assert_int_equal(id, 32767);
	assert_int_equal(set_max(f, "afs", INT32_MAX, PT_USER), 0);
	assert_int_equal(new_user(f, "afs", "d", &id), PRE(2));
	assert_int_equal(set_max(f, "afs", 0, PT_USER), 0);
	assert_int_equal(new_user(f, "afs", "d", &id), 0);
	assert_int_equal(id, 1);
}

static void names_fold_when_made_and_not_when_asked_for(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(new_user(f, "afs", "Eve", NULL), 0);
	assert_int_equal(id_of(f, "eve"), 1);
	assert_int_equal(id_of(f, "EVE"), AFS_ANONYMOUS);
	assert_int_equal(id_of(f, ""), AFS_ANONYMOUS);
	assert_int_equal(id_of(f, "eve@LOCAL.REALM"), 1);
	assert_int_equal(id_of(f, "eve@local.realm"), 1);
	assert_int_equal(id_of(f, "eve@TEST.CELL"), 1);
	assert_int_equal(id_of(f, "eve@other.realm"), AFS_ANONYMOUS);
	struct pt_id_to_name_in in = {.ilist = {(int32_t[]){1, -204, 4711, -4711, INT32_MIN, 0}, 6}};
	struct pt_id_to_name_out out;
	assert_int_equal(CALL(f, id_to_name, NULL, &in, &out), 0);
	static const char *const want[] = {"eve", "system:administrators", "4711", "-4711", "-2147483648", "0"};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_string_equal(out.nlist.v[i].text, want[i]);
	assert_int_equal(f->t.reply_len, 4 + 6 * 256);
}

/* --- groups ----------------------------------------------------------------------------------------- */

static void a_users_groups_bear_his_name_and_cost_quota(void **state)
{
	struct fixture *f = *state;
	populate(f);
	struct prcheckentry e;
	assert_int_equal(new_group(f, "alice", "alice:h", 0, NULL), 0);
	assert_int_equal(new_group(f, "alice", "bob:h", 0, NULL), BADNAM);
	assert_int_equal(new_group(f, "alice", "plain", 0, NULL), BADNAM);
	assert_int_equal(new_group(f, "alice", "system:h", 0, NULL), BADNAM);
	assert_int_equal(new_group(f, "alice", "alice:h", 0, NULL), EXISTS);
	assert_int_equal(show(f, NULL, ALICE, &e), 0);
	assert_int_equal(e.ngroups, 19);
	assert_int_equal(show(f, NULL, id_of(f, "alice:h"), &e), 0);
	assert_int_equal(e.creator, ALICE);
	assert_int_equal(e.owner, ALICE);
	assert_int_equal(delete(f, "alice", id_of(f, "alice:h")), 0);
	assert_int_equal(show(f, NULL, ALICE, &e), 0);
	assert_int_equal(e.ngroups, 20);
	assert_int_equal(set_fields(f, "root", ALICE, PT_SET_NGROUPS, 0, 1, 0), 0);
	assert_int_equal(new_group(f, "alice", "alice:h", 0, NULL), 0);
	assert_int_equal(new_group(f, "alice", "alice:i", 0, NULL), PRE(10));
	assert_int_equal(set_fields(f, "root", ALICE, PT_SET_NGROUPS, 0, -1, 0), PRE(9));
	/* an owner group without members cannot own for a member's sake */
	assert_int_equal(take_out(f, "root", CAROL, STAFF), 0);
	assert_int_equal(new_group(f, "carol", "staff:y", STAFF, NULL), PERM);
	assert_int_equal(new_group(f, "root", "staff:y", STAFF, NULL), 0);
}

static void membership_answers_as_captured(void **state)
{
	struct fixture *f = *state;
	populate(f);
	assert_int_equal(add(f, "alice", DAVE, G), 0);
	assert_int_equal(add(f, "alice", DAVE, G), IDEXISTS);
	assert_int_equal(add(f, "alice", 4711, G), NOENT);
	assert_int_equal(add(f, "alice", DAVE, -4711), NOENT);
	assert_int_equal(add(f, "root", DAVE, BOB), PRE(6));
	assert_int_equal(take_out(f, "alice", DAVE, G), 0);
	assert_int_equal(take_out(f, "alice", DAVE, G), NOENT);
	assert_int_equal(add(f, "root", G, G), PRE(13));
	assert_int_equal(add(f, "root", G, STAFF), 0);
	assert_int_equal(add(f, "root", STAFF, OWNED), 0);
	assert_int_equal(add(f, "root", OWNED, G), PRE(13)); /* a longer cycle */
	assert_int_equal(by_id(f, 514, "root", G), 0);
	IDS(f, BOB);
	assert_int_equal(by_id(f, 514, "root", STAFF), 0);
	IDS(f, G, CAROL);
	assert_int_equal(by_id(f, 530, "root", G), 0);
	IDS(f, STAFF);
	assert_int_equal(by_id(f, 514, "bob", BOB), 0);
	IDS(f, SHUT, OPEN, G);
}

static void groups_in_groups_count(void **state)
{
	struct fixture *f = *state;
	populate(f);
	assert_int_equal(add(f, "root", G, STAFF), 0);
	assert_int_equal(by_id(f, 508, "root", BOB), 0);
	IDS(f, SHUT, OPEN, STAFF, G, -102, -101, BOB);
	struct pt_is_a_member_of_in in = {BOB, STAFF};
	struct pt_is_a_member_of_out out;
	assert_int_equal(CALL(f, is_a_member_of, "root", &in, &out), 0);
	assert_int_equal(out.flag, 1);
	/* bob now acts for staff */
	assert_int_equal(add(f, "bob", DAVE, OWNED), 0);
	assert_int_equal(add(f, "root", G, -204), 0);
	assert_int_equal(new_user(f, "bob", "made-by-bob", NULL), 0);
}

static void is_a_member_of_knows_everybody(void **state)
{
	struct fixture *f = *state;
	populate(f);
	static const struct {
		int32_t u, g, code, flag;
	} rows[] = {{DAVE, -101, 0, 1}, {DAVE, -102, 0, 1}, {32766, -101, 0, 1}, {32766, -102, 0, 0},
		{DAVE, G, 0, 0}, {BOB, G, 0, 1}, {BOB, DAVE, PRE(9), 0}, {4711, G, NOENT, 0},
		{BOB, -4711, NOENT, 0}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pt_is_a_member_of_in in = {rows[i].u, rows[i].g};
		struct pt_is_a_member_of_out out = {};
		assert_int_equal(CALL(f, is_a_member_of, "root", &in, &out), rows[i].code);
		assert_int_equal(out.flag, rows[i].flag);
	}
}

static void a_deleted_owner_leaves_orphans(void **state)
{
	struct fixture *f = *state;
	populate(f);
	assert_int_equal(delete(f, "root", ALICE), 0);
	assert_int_equal(by_id(f, 517, "root", 0), 0);
	IDS(f, SHUT, OPEN, G);
	struct prcheckentry e;
	assert_int_equal(show(f, "root", G, &e), 0);
	assert_int_equal(e.owner, 0);
	assert_string_equal(e.name, "alice:g");
	assert_int_equal(change(f, "root", G, "", BOB, 0), 0);
	assert_int_equal(show(f, "root", G, &e), 0);
	assert_string_equal(e.name, "bob:g");
	assert_int_equal(id_of(f, "alice"), AFS_ANONYMOUS);
	/* a new alice does not inherit */
	int32_t id;
	assert_int_equal(set_max(f, "root", 0, PT_USER), 0);
	assert_int_equal(new_user(f, "root", "alice", &id), 0);
	assert_int_equal(id, ALICE);
	assert_int_equal(by_id(f, 514, "root", ALICE), 0);
	assert_int_equal(be32_get(f->t.reply), 0);
	assert_int_equal(delete(f, "alice", OPEN), PERM);
}

static void chown_and_rename_keep_prefixes_right(void **state)
{
	struct fixture *f = *state;
	populate(f);
	struct prcheckentry e;
	assert_int_equal(change(f, "alice", G, "", BOB, 0), 0);
	assert_int_equal(show(f, "root", G, &e), 0);
	assert_string_equal(e.name, "bob:g");
	assert_int_equal(e.owner, BOB);
	assert_int_equal(change(f, "alice", G, "", ALICE, 0), PERM); /* not hers any more */
	assert_int_equal(change(f, "bob", G, "alice:g", 0, 0), BADNAM);
	assert_int_equal(change(f, "bob", G, "BOB:Big", 0, 0), 0);
	assert_int_equal(id_of(f, "bob:big"), G);
	assert_int_equal(change(f, "bob", G, "", 4711, 0), NOENT);
	assert_int_equal(change(f, "root", G, "", STAFF, 0), 0);
	assert_int_equal(id_of(f, "staff:big"), G);
	assert_int_equal(change(f, "root", BOB, "robert", 0, 0), 0);
	assert_int_equal(id_of(f, "robert"), BOB);
	assert_int_equal(change(f, "root", BOB, "alice", 0, 0), EXISTS);
	assert_int_equal(change(f, "root", BOB, "b@other.realm", 0, 0), PERM);
	assert_int_equal(change(f, "root", REALM, "system:authuser@x", 0, 0), PERM);
	assert_int_equal(change(f, "root", REALM, "", BOB, 0), PERM);
	int32_t known = id_of(f, "known@other.realm");
	assert_int_equal(change(f, "root", known, "known@else", 0, 0), PERM);
	assert_int_equal(change(f, "root", known, "renamed@other.realm", 0, 0), 0);
	/* a name that would be too long behind its new owner's */
	char name[64];
	memset(name, 'q', 63);
	name[63] = 0;
	int32_t q;
	assert_int_equal(new_user(f, "root", name, &q), 0);
	assert_int_equal(change(f, "root", OPEN, "", q, 0), BADNAM);
}

static void renumbering_moves_an_id_everywhere(void **state)
{
	struct fixture *f = *state;
	populate(f);
	assert_int_equal(change(f, "root", ALICE, "", 0, 5000), 0);
	assert_int_equal(change(f, "root", BOB, "", 0, 5000), IDEXISTS);
	assert_int_equal(change(f, "root", G, "", 0, -7000), 0);
	struct prcheckentry e;
	assert_int_equal(show(f, "root", -7000, &e), 0);
	assert_int_equal(e.owner, 5000);
	assert_int_equal(e.count, 1);
	assert_int_equal(by_id(f, 514, "root", BOB), 0);
	IDS(f, -7000, SHUT, OPEN);
	int32_t id;
	assert_int_equal(new_user(f, "root", "next", &id), 0);
	assert_int_equal(id, 5001);
	assert_int_equal(change(f, "root", BOB, "", 0, INT32_MIN), PERM);
}

static void privacy_bits_are_set_by_mask(void **state)
{
	struct fixture *f = *state;
	populate(f);
	struct prcheckentry e;
	assert_int_equal(set_fields(f, "alice", G, 0xff, 0xb3, 0, 0), 0);
	assert_int_equal(show(f, NULL, G, &e), 0);
	assert_int_equal(e.flags, 0xb3);
	assert_int_equal(set_fields(f, "alice", G, 0x03, 0xff00, 0, 0), 0);
	assert_int_equal(show(f, NULL, G, &e), 0);
	assert_int_equal(e.flags, 0xb0);
	assert_int_equal(set_fields(f, "alice", G, 0xff, 0, 0, 0), 0);
	assert_int_equal(show(f, "alice", G, &e), 0);
	assert_int_equal(e.flags, 0); /* not the default again */
	assert_int_equal(set_fields(f, "dave", G, 0, 0, 0, 0), 0); /* nothing asked, nothing done */
}

/* --- foreign users (case K18) ------------------------------------------------------------------------- */

static void foreign_users_register_themselves_and_are_no_administrators(void **state)
{
	struct fixture *f = *state;
	int32_t id;
	struct prcheckentry e;
	assert_int_equal(new_user(f, "joe@OTHER.REALM", "joe@other.realm", &id), BADNAM);
	assert_int_equal(new_id(f, "afs", "system:authuser@OTHER.REALM", -1001, 0), 0);
	assert_int_equal(show(f, NULL, -1001, &e), 0);
	assert_string_equal(e.name, "system:authuser@other.realm");
	assert_int_equal(e.ngroups, 30);
	assert_int_equal(new_user(f, "joe@OTHER.REALM", "ann@other.realm", &id), PERM);
	assert_int_equal(new_user(f, "joe@OTHER.REALM", "joe", &id), PERM);
	struct pt_new_entry_in owned = {XDR_STR_OF("joe@other.realm"), PT_USER, 5};
	assert_int_equal(CALL(f, new_entry, "joe@OTHER.REALM", &owned, NULL), PERM);
	assert_int_equal(new_user(f, "joe@OTHER.REALM", "joe@other.realm", &id), 0);
	assert_int_equal(id, 130071);
	int32_t joe = id;
	assert_int_equal(new_user(f, "joe@OTHER.REALM", "joe@other.realm", &id), EXISTS);
	assert_int_equal(new_user(f, "ann@OTHER.REALM", "ann@other.realm", &id), 0);
	assert_int_equal(id, 195607);
	assert_int_equal(show(f, NULL, -1001, &e), 0);
	assert_int_equal(e.ngroups, 28);
	assert_int_equal(e.nusers, 2);
	assert_int_equal(show(f, NULL, joe, &e), 0);
	assert_int_equal(e.creator, joe);
	assert_int_equal(e.owner, -204);
	assert_int_equal(by_id(f, 508, "afs", joe), 0);
	IDS(f, -1001, -101, joe);
	assert_int_equal(new_user(f, "afs", "local", &id), 0);
	assert_int_equal(id, 1); /* the counter did not move */

	/* what a registered foreigner may make */
	assert_int_equal(new_group(f, "joe@OTHER.REALM", "system:x", 0, NULL), BADNAM);
	assert_int_equal(new_group(f, "joe@OTHER.REALM", "system:x", -204, NULL), PERM);
	assert_int_equal(new_group(f, "joe@OTHER.REALM", "plain", 0, NULL), BADNAM);
	assert_int_equal(new_group(f, "joe@OTHER.REALM", "local:x", 0, NULL), BADNAM);
	assert_int_equal(new_group(f, "joe@OTHER.REALM", "local:x", 1, NULL), PERM);
	for (int i = 0; i < 20; i++) {
		char name[40];
		snprintf(name, sizeof(name), "joe@other.realm:%d", i);
		assert_int_equal(new_group(f, "joe@OTHER.REALM", name, 0, &id), 0);
	}
	assert_int_equal(new_group(f, "joe@OTHER.REALM", "joe@other.realm:x", 0, NULL), PRE(10));
	assert_int_equal(show(f, NULL, id, &e), 0);
	assert_int_equal(e.creator, joe);

	/* not even as a member of the administrators */
	assert_int_equal(add(f, "afs", joe, -204), 0);
	assert_int_equal(new_user(f, "joe@OTHER.REALM", "made", NULL), PERM);
	assert_int_equal(list_all(f, "joe@OTHER.REALM"), PERM);
	assert_int_equal(delete(f, "afs", -1001), PRE(9)); /* it has members */
	/* the local realm's name with @ is no foreigner */
	assert_int_equal(new_user(f, "x@LOCAL.REALM", "x@local.realm", NULL), BADNAM);
	/* a realm's quota */
	assert_int_equal(set_fields(f, "afs", -1001, PT_SET_NGROUPS, 0, 0, 0), 0);
	assert_int_equal(new_user(f, "late@OTHER.REALM", "late@other.realm", NULL), PRE(10));
}

/* --- lists --------------------------------------------------------------------------------------------- */

static void all_entries_come_once_in_pages(void **state)
{
	struct fixture *f = *state;
	struct pt_write w = {};
	assert_ok(pt_write_begin(f->pt, &w));
	for (int i = 0; i < 1234; i++) {
		char name[16];
		int32_t id;
		snprintf(name, sizeof(name), "u%d", i);
		struct pt_new want = {.name = name, .len = strlen(name), .group = i % 4 == 0};
		assert_ok(pt_do_new(&w, &pt_who_cell, &want, &id));
	}
	assert_ok(pt_write_commit(&w));
	pt_write_end(&w);
	static const int expect[] = {0, 1 + 925, 5 + 309, 6 + 1234};
	for (int flag = 0; flag <= 3; flag++) {
		struct pt_list_entries_in in = {flag, 0};
		struct pt_list_entries_out out;
		int total = 0;
		do {
			assert_int_equal(CALL(f, list_entries, "afs", &in, &out), 0);
			assert_true(out.bulkentries.n <= 500);
			for (uint32_t i = 0; i < out.bulkentries.n; i++)
				assert_true(flag & (out.bulkentries.v[i].id < 0 ? 2 : 1));
			total += (int)out.bulkentries.n;
			in.startindex = out.nextstartindex;
		} while (in.startindex != -1);
		assert_int_equal(total, expect[flag]);
	}
	struct pt_list_entries_in bad = {3, -7};
	assert_int_equal(CALL(f, list_entries, "afs", &bad, NULL), PRE(9));
}

static void long_lists_have_pages_or_are_refused(void **state)
{
	struct fixture *f = *state;
	int32_t owner, id;
	assert_int_equal(new_user(f, "afs", "o", &owner), 0);
	struct pt_write w = {};
	assert_ok(pt_write_begin(f->pt, &w));
	for (int i = 0; i < 5003; i++) {
		char name[16];
		snprintf(name, sizeof(name), "o:%d", i);
		struct pt_new want = {.name = name, .len = strlen(name), .group = true, .owner = owner};
		assert_ok(pt_do_new(&w, &pt_who_cell, &want, &id));
		assert_ok(pt_do_add(&w, &pt_who_cell, owner, id));
	}
	assert_ok(pt_write_commit(&w));
	pt_write_end(&w);
	struct pt_list_owned_in in = {owner, 0};
	struct pt_list_owned_out out;
	assert_int_equal(CALL(f, list_owned, "afs", &in, &out), 0);
	assert_int_equal(out.elist.n, 5000);
	assert_int_not_equal(out.lastp, 0);
	in.lastp = out.lastp;
	int32_t last = out.elist.v[4999];
	assert_int_equal(CALL(f, list_owned, "afs", &in, &out), 0);
	assert_int_equal(out.elist.n, 3);
	assert_int_equal(out.lastp, 0);
	assert_true(out.elist.v[0] > last);
	assert_int_equal(by_id(f, 514, "afs", owner), PRE(15));
	assert_int_equal(by_id(f, 508, "afs", owner), PRE(15));
	/* inside the process there is more room */
	struct pt_identity who;
	assert_ok(pt_identify(f->pt, &(struct keys_name){.text = "o", .authenticated = true, .local = true}, &who));
	assert_int_equal(who.cps.n, 5003 + 3);
	mem_free(who.cps.v);
}

/* --- for this process ------------------------------------------------------------------------------------ */

static void identities_are_told_with_all_their_ids(void **state)
{
	struct fixture *f = *state;
	populate(f);
	static const struct {
		const char *who;
		int32_t id;
		bool admin;
		int32_t ids[8];
		uint32_t n;
	} rows[] = {
		{NULL, 32766, false, {-101, 32766}, 2},
		{"mallory", 32766, false, {-101, 32766}, 2},
		{"dave", DAVE, false, {-102, -101, DAVE}, 3},
		{"DAVE", DAVE, false, {-102, -101, DAVE}, 3},
		{"root", ROOT, true, {-204, -102, -101, ROOT}, 4},
		{"new@OTHER.REALM", 32766, false, {-101, 32766}, 2},
		{"afs", -204, true, {-204, -102, -101}, 3},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct keys_name name = {};
		struct rx_caller c = dbcall_caller(rows[i].who);
		if (c.authenticated)
			dbcall_afs_name(NULL, &c, &name);
		struct pt_identity got;
		assert_ok(pt_identify(f->pt, &name, &got));
		assert_int_equal(got.id, rows[i].id);
		assert_int_equal(got.admin, rows[i].admin);
		assert_int_equal(got.cps.n, rows[i].n);
		assert_memory_equal(got.cps.v, rows[i].ids, rows[i].n * sizeof(int32_t));
		mem_free(got.cps.v);
	}
	struct keys_name bad = {.text = "bad@other.realm", .authenticated = true};
	struct pt_identity got;
	assert_ok(pt_identify(f->pt, &bad, &got));
	assert_false(got.admin);
	mem_free(got.cps.v);
}

static void this_process_makes_and_finds_entries(void **state)
{
	struct fixture *f = *state;
	int32_t id;
	uint64_t before = pt_generation(f->pt);
	assert_ok(pt_user_add(f->pt, "Alice", 0, &id));
	assert_int_equal(id, 1);
	assert_ok(pt_user_add(f->pt, "bob", 1001, &id));
	assert_err(pt_user_add(f->pt, "bob", 0, &id), AFS_ENAMEEXIST);
	assert_err(pt_user_add(f->pt, "carl", 1001, &id), AFS_EIDEXIST);
	assert_err(pt_user_add(f->pt, "carl", -5, &id), AFS_EBADARG);
	assert_ok(pt_group_add(f->pt, "staff", 0, 0, &id));
	assert_int_equal(id, -206);
	assert_ok(pt_member_add(f->pt, 1001, -206));
	assert_err(pt_member_add(f->pt, 1001, -206), AFS_EIDEXIST);
	assert_true(pt_generation(f->pt) > before);
	before = pt_generation(f->pt);
	struct pt_ids ids;
	assert_ok(pt_members(f->pt, -206, &ids));
	assert_int_equal(ids.n, 1);
	assert_int_equal(ids.v[0], 1001);
	mem_free(ids.v);
	assert_ok(pt_id_of(f->pt, "alice", &id));
	assert_err(pt_id_of(f->pt, "nobody", &id), AFS_ENOENT);
	char name[PT_NAME_MAX + 1];
	assert_ok(pt_name_of(f->pt, -206, name));
	assert_string_equal(name, "staff");
	assert_err(pt_name_of(f->pt, 9, name), AFS_ENOENT);
	int64_t cursor = 0;
	struct pt_entry e;
	int n = 0;
	while (pt_entry_next(f->pt, &cursor, &e) == AFS_OK)
		n++;
	assert_int_equal(n, 9);
	assert_int_equal(pt_generation(f->pt), before); /* reading moves nothing */
	assert_ok(pt_entry_set_flags(f->pt, -206, 0x93));
	assert_ok(pt_entry_change(f->pt, -206, "people", 0, 0));
	assert_ok(pt_entry_find(f->pt, -206, &e));
	assert_string_equal(e.name, "people");
	assert_int_equal(e.flags, 0x93);
	assert_ok(pt_member_remove(f->pt, 1001, -206));
	assert_ok(pt_entry_delete(f->pt, -206));
	assert_err(pt_entry_find(f->pt, -206, &e), AFS_ENOENT);
	open_at(f, f->path);
	assert_ok(pt_id_of(f->pt, "bob", &id));
	assert_int_equal(id, 1001);
}

static void a_kill_in_the_middle_leaves_whole_changes(void **state)
{
	struct fixture *f = *state;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct dbserver_config c = dbcall_config(f->path);
		struct pt *pt = NULL;
		if (pt_open(&c, &pt))
			_exit(1);
		for (int32_t i = 1;; i++) {
			struct pt_write w = {};
			char name[16];
			int32_t user, group;
			if (pt_write_begin(pt, &w))
				_exit(1);
			snprintf(name, sizeof(name), "u%d", i);
			struct pt_new nu = {.name = name, .len = strlen(name)};
			if (pt_do_new(&w, &pt_who_cell, &nu, &user))
				_exit(1);
			snprintf(name, sizeof(name), "g%d", i);
			struct pt_new ng = {.name = name, .len = strlen(name), .group = true};
			if (pt_do_new(&w, &pt_who_cell, &ng, &group) ||
				pt_do_add(&w, &pt_who_cell, user, group) || pt_write_commit(&w))
				_exit(1);
			pt_write_end(&w);
			if (write(fds[1], &i, sizeof(i)) != sizeof(i))
				_exit(1);
		}
	}
	close(fds[1]);
	int32_t last = 0, got;
	for (int i = 0; i < 60; i++)
		if (read(fds[0], &got, sizeof(got)) == sizeof(got))
			last = got;
	kill(pid, SIGKILL);
	while (read(fds[0], &got, sizeof(got)) == sizeof(got))
		last = got;
	close(fds[0]);
	waitpid(pid, NULL, 0);
	assert_true(last >= 60);
	open_at(f, f->path);
	int64_t cursor = 0;
	struct pt_entry e;
	int users = 0, groups = 0;
	while (pt_entry_next(f->pt, &cursor, &e) == AFS_OK) {
		if (e.name[0] == 'u') {
			users++;
			assert_int_equal(e.count, 1);
		} else if (e.name[0] == 'g') {
			groups++;
			assert_int_equal(e.count, 1);
		}
	}
	assert_int_equal(users, groups);
	assert_true(users == last || users == last + 1);
}

static afs_err memory_walk_work(struct pt *pt)
{
	int32_t user, group;
	TRY(pt_user_add(pt, "walker", 0, &user));
	TRY(pt_group_add(pt, "walkers", 0, 0, &group));
	TRY(pt_member_add(pt, user, group));
	struct pt_identity who;
	TRY(pt_identify(pt, &(struct keys_name){.text = "walker", .authenticated = true, .local = true}, &who));
	mem_free(who.cps.v);
	TRY(pt_entry_change(pt, user, "walked", 0, 0));
	TRY(pt_entry_delete(pt, group));
	return pt_entry_delete(pt, user);
}

static void memory_that_runs_out_leaves_before_or_after(void **state)
{
	struct fixture *f = *state;
	struct dbserver_config c = dbcall_config(f->path);
	c.sync = DB_SYNC_NONE;
	for (long fail = 0;; fail++) {
		struct pt *pt = NULL;
		mem_fail_after(fail);
		afs_err err = pt_open(&c, &pt);
		if (!err)
			err = memory_walk_work(pt);
		bool refused = mem_has_failed();
		mem_fail_after(-1);
		pt_close(pt);
		int32_t u, g;
		bool has_user = !pt_id_of(f->pt, "walker", &u) || !pt_id_of(f->pt, "walked", &u);
		bool has_group = !pt_id_of(f->pt, "walkers", &g);
		if (has_group) {
			assert_true(has_user); /* made after it, removed before it */
			assert_ok(pt_entry_delete(f->pt, g));
		}
		if (has_user)
			assert_ok(pt_entry_delete(f->pt, u));
		assert_ok(pt_entry_find(f->pt, AFS_ADMINISTRATORS, &(struct pt_entry){}));
		if (!refused) {
			assert_ok(err);
			break;
		}
		assert_true(err == AFS_OK || err == AFS_ENOMEM);
	}
}

static void lookups_are_quick(void **state)
{
	struct fixture *f = *state;
	struct pt_write w = {};
	assert_ok(pt_write_begin(f->pt, &w));
	for (int i = 0; i < 2000; i++) {
		char name[16];
		int32_t id;
		snprintf(name, sizeof(name), "u%d", i);
		struct pt_new want = {.name = name, .len = strlen(name)};
		assert_ok(pt_do_new(&w, &pt_who_cell, &want, &id));
	}
	assert_ok(pt_write_commit(&w));
	pt_write_end(&w);
	enum { N = 10000 };
	mono_ns t = clk_mono();
	for (int i = 0; i < N; i++) {
		char name[16];
		int32_t id;
		snprintf(name, sizeof(name), "u%d", i * 7919 % 2000);
		assert_ok(pt_id_of(f->pt, name, &id));
	}
	double names = N / ((double)(clk_mono() - t) / 1e9);
	t = clk_mono();
	for (int i = 0; i < N; i++) {
		struct keys_name name = {.authenticated = true, .local = true};
		snprintf(name.text, sizeof(name.text), "u%d", i * 7919 % 2000);
		struct pt_identity who;
		assert_ok(pt_identify(f->pt, &name, &who));
		mem_free(who.cps.v);
	}
	printf("# %.0f names/s, %.0f identities/s\n", names, N / ((double)(clk_mono() - t) / 1e9));
}

#define F(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
int main(void)
{
	if (failmem_install() != SQLITE_OK)
		return 1;
	log_to(open("/dev/null", O_WRONLY), LOG_ERROR); /* refusals are what is tested */
	const struct CMUnitTest tests[] = {
		F(a_fresh_database_has_the_entries_of_every_cell),
		F(captured_calls_get_captured_answers),
		F(captured_subdomains),
		F(every_call_is_judged_for_every_kind_of_caller),
		F(nobody_can_write_rows_without_leave),
		F(names_and_ids_at_the_edges),
		F(a_dumped_entry_tells_all_that_is_kept_of_it),
		F(maxima_are_set_with_the_right_sign),
		F(names_fold_when_made_and_not_when_asked_for),
		F(a_users_groups_bear_his_name_and_cost_quota),
		F(membership_answers_as_captured),
		F(groups_in_groups_count),
		F(is_a_member_of_knows_everybody),
		F(a_deleted_owner_leaves_orphans),
		F(chown_and_rename_keep_prefixes_right),
		F(renumbering_moves_an_id_everywhere),
		F(privacy_bits_are_set_by_mask),
		F(foreign_users_register_themselves_and_are_no_administrators),
		F(all_entries_come_once_in_pages),
		F(long_lists_have_pages_or_are_refused),
		F(identities_are_told_with_all_their_ids),
		F(this_process_makes_and_finds_entries),
		F(a_kill_in_the_middle_leaves_whole_changes),
		F(memory_that_runs_out_leaves_before_or_after),
		F(lookups_are_quick),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
