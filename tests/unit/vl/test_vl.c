/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/dbcall.h"

#include "cell/base/log.h"
#include "cell/proto/cb.h"
#include "dbserver/vl/vl_store.h"
#include "tests/unit/db/failmem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
	char *dir, path[256];
	struct vl *vl;
	struct dbcall t;
};

static void reopen(struct fixture *f)
{
	vl_close(f->vl);
	f->vl = NULL;
	struct dbserver_config c = dbcall_config(f->path);
	assert_ok(vl_open(&c, &f->vl));
	assert_int_equal(vl_services(f->vl, f->t.services), DBSERVER_SERVICES);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->dir = test_scratch();
	snprintf(f->path, sizeof(f->path), "%s/cell.db", f->dir);
	arena_init(&f->t.arena, 1 << 20);
	reopen(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	dbcall_fini(&f->t);
	vl_close(f->vl);
	test_scratch_free(f->dir);
	free(f);
	return 0;
}

#define CALL(f, fn, who, in, out)                                                                  \
	dbcall(&(f)->t, &vl_iface, vl_iface.procs[vl_op_##fn].op, who, in, out)
#define VLE(n) (363520 + (n))

enum { IP1 = 0x0a4d0001, IP2 = 0x0a4d0002, IP3 = 0x0a4d0003 };

static struct nvldbentry entry_of(const char *name, uint32_t rw, uint32_t ip)
{
	struct nvldbentry e = {.nServers = 1,
		.serverNumber = {ip},
		.serverFlags = {VLSF_RW},
		.volumeId = {rw, rw + 1, rw + 2},
		.flags = VLF_RW_EXISTS};
	snprintf(e.name, sizeof(e.name), "%s", name);
	return e;
}

static int32_t create(struct fixture *f, const char *name, uint32_t rw, uint32_t ip)
{
	struct vl_create_entry_n_in in = {entry_of(name, rw, ip)};
	return CALL(f, create_entry_n, "afs", &in, NULL);
}

static int32_t get_n(struct fixture *f, const char *name, struct nvldbentry *e)
{
	struct vl_get_entry_by_name_n_in in = {XDR_STR_OF(name)};
	struct vl_get_entry_by_name_n_out out;
	int32_t code = CALL(f, get_entry_by_name_n, NULL, &in, &out);
	if (!code && e)
		*e = out.entry;
	return code;
}

static int32_t get_u(struct fixture *f, const char *name, struct uvldbentry *e)
{
	struct vl_get_entry_by_name_u_in in = {XDR_STR_OF(name)};
	struct vl_get_entry_by_name_u_out out;
	int32_t code = CALL(f, get_entry_by_name_u, NULL, &in, &out);
	if (!code && e)
		*e = out.entry;
	return code;
}

static int32_t by_id(struct fixture *f, uint32_t id, int32_t type, struct nvldbentry *e)
{
	struct vl_get_entry_by_id_n_in in = {id, type};
	struct vl_get_entry_by_id_n_out out;
	int32_t code = CALL(f, get_entry_by_id_n, NULL, &in, &out);
	if (!code && e)
		*e = out.entry;
	return code;
}

static int32_t set_lock(struct fixture *f, uint32_t id, int32_t op)
{
	struct vl_set_lock_in in = {id, VL_ANY_TYPE, op};
	return CALL(f, set_lock, "afs", &in, NULL);
}

static int32_t release_lock(struct fixture *f, uint32_t id, int32_t how)
{
	struct vl_release_lock_in in = {id, VL_ANY_TYPE, how};
	return CALL(f, release_lock, "afs", &in, NULL);
}

/* --- bytes ------------------------------------------------------------------------------------- */

static size_t hex_words(uint8_t *out, size_t cap, const char *hex, size_t total)
{
	memset(out, 0, cap);
	test_unhex(hex, out, cap);
	return total;
}

static void the_captured_create_is_understood_and_comes_back(void **state)
{
	struct fixture *f = *state;
	uint8_t body[512];
	/* vldb.md §4.2: vos create SERVER a v1 */
	hex_words(body, sizeof(body), "00000076 00000031", 0);
	be32_put(body + 260, 1);
	be32_put(body + 264, IP1);
	be32_put(body + 264 + 2 * 52, 4);
	be32_put(body + 264 + 3 * 52, 0x20000003);
	be32_put(body + 264 + 3 * 52 + 4, 0x20000004);
	be32_put(body + 264 + 3 * 52 + 8, 0x20000005);
	be32_put(body + 264 + 3 * 52 + 16, 0x1000);
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 517, "afs", body, 476, NULL), 0);

	assert_int_equal(get_n(f, "v1", NULL), 0);
	assert_int_equal(f->t.reply_len, 476);
	assert_memory_equal(f->t.reply, body, 476);
	assert_int_equal(get_u(f, "v1", NULL), 0);
	assert_int_equal(f->t.reply_len, 1048);
}

static void the_captured_list_reply_has_its_words(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v1", 0x20000003, IP1), 0);
	assert_int_equal(create(f, "v2", 0x20000013, IP1), 0);
	uint8_t body[32] = {};
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 534, NULL, body, 32, NULL), 0);
	assert_int_equal(f->t.reply_len, 8 + 2 * 476 + 4);
	assert_hex(f->t.reply, 8, "00000002 00000002");
	assert_hex(f->t.reply + f->t.reply_len - 4, 4, "ffffffff");
	/* matchindex of a plain RW entry: vldb.md §4.1 */
	assert_hex(f->t.reply + 8 + 476 - 36, 4, "00040000");
}

static void the_captured_registration_and_removal_are_understood(void **state)
{
	struct fixture *f = *state;
	uint8_t body[128];
	size_t n = test_unhex("00c0ffee 00000000 00000000 00000001 00000002 0000000a 0000004d 00000000 "
			      "00000001 00000002 00000003 00000000 00000002 0a4d0037 0a4d0038",
		body, sizeof(body));
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 532, "afs", body, n, NULL), 0);
	assert_int_equal(f->t.reply_len, 0);

	n = test_unhex("00000000 00000000", body, sizeof(body));
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 515, NULL, body, n, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len,
		"00000000 00000000 00000000 00000000 00000001 00000001 ff000001");

	memset(body, 0, sizeof(body));
	test_unhex("00000001 0a4d0037", body, sizeof(body)); /* GetAddrsU by address */
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 533, NULL, body, 60, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len,
		"00c0ffee 00000000 00000000 00000001 00000002 0000000a 0000004d 00000000 00000001 "
		"00000002 00000003 00000001 00000002 00000002 0a4d0037 0a4d0038");

	n = test_unhex("ffffffff 0a4d0037", body, sizeof(body)); /* ChangeAddr: removal */
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 516, "afs", body, n, NULL), 0);
	n = test_unhex("00000000 00000000", body, sizeof(body));
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 515, NULL, body, n, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len,
		"00000000 00000000 00000000 00000000 00000000 00000000");
}

static void uuid_bytes_are_found_with_and_without_their_signs(void **state)
{
	struct fixture *f = *state;
	static const uint8_t uuid[16] = {0x00, 0x15, 0x93, 0x16, 0xc0, 0x4a, 0x1b, 0x0d, 0xbf, 0x7f,
		0x01, 0, 0, 0x7f, 0xaa, 0x77};
	assert_ok(vl_server_register(f->vl, uuid, (uint32_t[]){IP1}, 1));
	uint8_t body[60] = {};
	test_unhex("00000002 00000000 00000001", body, sizeof(body)); /* by index */
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 533, NULL, body, 60, NULL), 0);
	assert_hex(f->t.reply, f->t.reply_len,
		"00159316 0000c04a 00001b0d ffffffbf 0000007f 00000001 00000000 00000000 0000007f "
		"ffffffaa 00000077 00000001 00000001 00000001 0a4d0001");
	for (int sign = 0; sign < 2; sign++) {
		memset(body, 0, sizeof(body));
		test_unhex("00000004 00000000 00000000 00000000 00159316 0000c04a 00001b0d", body, 28);
		test_unhex(sign ? "ffffffbf 0000007f 00000001" : "000000bf 0000007f 00000001",
			body + 28, 12);
		test_unhex(sign ? "0000007f ffffffaa 00000077" : "0000007f 000000aa 00000077",
			body + 48, 12);
		assert_int_equal(dbcall_raw(&f->t, &vl_iface, 533, NULL, body, 60, NULL), 0);
	}
}

static void reply_sizes_are_those_that_were_captured(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 513, NULL, NULL, 0, NULL), 0);
	assert_int_equal(f->t.reply_len, 464);
	assert_int_equal(create(f, "v", 10, IP1), 0);
	struct vl_get_entry_by_name_in in = {XDR_STR_OF("v")};
	assert_int_equal(CALL(f, get_entry_by_name, NULL, &in, NULL), 0);
	assert_int_equal(f->t.reply_len, 384);
}

static void reserved_opcodes_are_unknown(void **state)
{
	struct fixture *f = *state;
	static const uint32_t ops[] = {500, 525, 526, 528, 529, 530, 531, 535, 65536, 65537};
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		assert_int_equal(dbcall_raw(&f->t, &vl_iface, ops[i], "afs", NULL, 0, NULL), -455);
}

/* --- who --------------------------------------------------------------------------------------- */

static void only_the_superuser_changes_anything(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	static const char *const who[] = {NULL, "alice", "root@OTHER.REALM", "afs@OTHER.REALM"};
	static uint8_t zero[2048];
	/* every row that changes something, with arguments that would do no harm */
	for (uint32_t i = 0; i < vl_iface.count; i++) {
		const struct rpc_proc *p = &vl_iface.procs[i];
		for (size_t k = 0; k < ARRAY_SIZE(who); k++) {
			int32_t code = dbcall_raw(&f->t, &vl_iface, p->op, who[k], zero, 1024, NULL);
			if (p->effect == RPC_CHANGES)
				assert_int_equal(code, VLE(26));
			else
				assert_int_not_equal(code, VLE(26));
		}
		assert_int_equal(p->effect == RPC_CHANGES, p->need == RPC_SUPERUSER);
	}
	struct vl_get_new_volume_id_in peek = {0};
	assert_int_equal(CALL(f, get_new_volume_id, "alice", &peek, NULL), VLE(26));
	assert_int_equal(CALL(f, get_new_volume_id, "root", &peek, NULL), 0);
}

static void a_pattern_is_for_the_superuser_and_none_is_for_all(void **state)
{
	struct fixture *f = *state;
	struct vl_list_attributes_n2_in in = {.volumename = XDR_STR_OF("a.*")};
	assert_int_equal(CALL(f, list_attributes_n2, "alice", &in, NULL), VLE(26));
	assert_int_equal(CALL(f, list_attributes_n2, "root", &in, NULL), 0);
	in.volumename = XDR_STR_OF(".*");
	assert_int_equal(CALL(f, list_attributes_n2, NULL, &in, NULL), 0);
	in.volumename = XDR_STR_OF("\\(a\\)");
	assert_int_equal(CALL(f, list_attributes_n2, "root", &in, NULL), VLE(7));
}

/* --- entries ------------------------------------------------------------------------------------ */

static void an_entry_is_judged_field_by_field(void **state)
{
	struct fixture *f = *state;
	static const struct {
		int32_t servers, part, flags;
		uint32_t ip, rw;
		const char *name;
		int32_t code;
	} rows[] = {
		{1, 0, 4, IP1, 10, "v", 0},
		{0, 0, 4, IP1, 20, "w", VLE(10)},
		{14, 0, 4, IP1, 20, "w", VLE(10)},
		{-1, 0, 4, IP1, 20, "w", VLE(10)},
		{1, -1, 4, IP1, 20, "w", VLE(11)},
		{1, 256, 4, IP1, 20, "w", VLE(11)},
		{1, 255, 4, IP1, 20, "w", 0},
		{1, 0, -1, IP1, 30, "x", VLE(25)},
		{1, 0, 0x81, IP1, 30, "x", VLE(25)},
		{1, 0, 0x80, IP1, 30, "x", 0},
		{1, 0, 4, 0, 40, "y", VLE(10)},
		{1, 0, 4, 0xff000001, 40, "y", VLE(10)},
		{1, 0, 4, IP1, 0, "y", VLE(18)},
		{1, 0, 4, IP1, 40, "", VLE(7)},
		{1, 0, 4, IP1, 40, "a b", VLE(7)},
		{1, 0, 4, IP1, 40, "a/b", VLE(7)},
		{1, 0, 4, IP1, 40, "a\nb", VLE(7)},
		{1, 0, 4, IP1, 40, "\xc3\xa9", VLE(7)},
		{1, 0, 4, IP1, 40, "A.b-c_9", 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct vl_create_entry_n_in in = {entry_of(rows[i].name, rows[i].rw, rows[i].ip)};
		in.entry.nServers = rows[i].servers;
		in.entry.serverPartition[0] = rows[i].part;
		in.entry.serverFlags[0] = rows[i].flags;
		if (rows[i].code != CALL(f, create_entry_n, "afs", &in, NULL))
			fail_msg("row %zu", i);
	}
	/* a refused entry leaves nothing, not even its server */
	struct vl_get_addrs_in g = {};
	struct vl_get_addrs_out out;
	assert_int_equal(CALL(f, get_addrs, NULL, &g, &out), 0);
	assert_int_equal(out.nentries, 1);
}

static void names_have_64_bytes_at_most(void **state)
{
	struct fixture *f = *state;
	char name[80];
	memset(name, 'n', sizeof(name));
	name[64] = 0;
	assert_int_equal(create(f, name, 10, IP1), 0);
	assert_int_equal(get_n(f, name, NULL), 0);
	name[64] = 'n';
	name[65] = 0;
	assert_int_equal(create(f, name, 20, IP1), VLE(7));
	assert_int_equal(get_n(f, name, NULL), VLE(7));
	/* 66 do not decode */
	uint8_t body[80] = {0, 0, 0, 66};
	memset(body + 4, 'n', 66);
	assert_int_equal(dbcall_raw(&f->t, &vl_iface, 519, NULL, body, 4 + 68, NULL), -453);
}

static void an_id_is_in_one_entry_only_and_is_tested_before_the_name(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(create(f, "w", 10, IP1), VLE(0));
	assert_int_equal(create(f, "w", 12, IP1), VLE(0)); /* the BK id of v */
	assert_int_equal(create(f, "w", 8, IP1), VLE(0));  /* its own BK is v's RW */
	assert_int_equal(create(f, "v", 10, IP1), VLE(0));
	assert_int_equal(create(f, "v", 20, IP1), VLE(2));
	struct vl_create_entry_n_in in = {entry_of("twice", 30, IP1)};
	in.entry.volumeId[1] = 30;
	assert_int_equal(CALL(f, create_entry_n, "afs", &in, NULL), VLE(0));
	in.entry.volumeId[1] = in.entry.volumeId[2] = 0;
	assert_int_equal(CALL(f, create_entry_n, "afs", &in, NULL), 0);
	in.entry = entry_of("other", 40, IP1);
	in.entry.volumeId[1] = in.entry.volumeId[2] = 0; /* no id is no clash */
	assert_int_equal(CALL(f, create_entry_n, "afs", &in, NULL), 0);
}

static void an_entry_is_found_by_name_suffix_and_number(void **state)
{
	struct fixture *f = *state;
	struct nvldbentry e;
	assert_int_equal(create(f, "v.x", 0x20000003, IP1), 0);
	static const char *const names[] = {"v.x", "v.x.readonly", "v.x.backup", "536870915",
		"536870916", "536870917", "0536870915"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(get_n(f, names[i], &e), 0);
		assert_string_equal(e.name, "v.x");
	}
	static const struct {
		const char *name;
		int32_t code;
	} bad[] = {{"", VLE(4)}, {"0", VLE(4)}, {"V.x", VLE(4)}, {"v", VLE(4)}, {".backup", VLE(4)},
		{".readonly", VLE(4)}, {"v.x.readonly.backup", VLE(4)}, {"536870918", VLE(4)},
		{"4831838211", VLE(4)}, /* 2^32 + 536870915 */
		{"99999999999999999999999999999999", VLE(4)}, {"-1", VLE(4)}, {"a/b", VLE(7)},
		{"a b", VLE(7)}};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (get_n(f, bad[i].name, NULL) != bad[i].code)
			fail_msg("name '%s': %d", bad[i].name, get_n(f, bad[i].name, NULL));
	assert_int_equal(by_id(f, 0x20000003, 0, NULL), 0);
	assert_int_equal(by_id(f, 0x20000003, 1, NULL), VLE(4));
	assert_int_equal(by_id(f, 0x20000004, 1, NULL), 0);
	assert_int_equal(by_id(f, 0x20000005, 2, NULL), 0);
	assert_int_equal(by_id(f, 0x20000005, -1, NULL), 0);
	assert_int_equal(by_id(f, 0x20000005, 3, NULL), VLE(9));
	assert_int_equal(by_id(f, 0x20000005, -2, NULL), VLE(9));
}

static void ids_use_all_of_32_bits(void **state)
{
	struct fixture *f = *state;
	struct nvldbentry e;
	struct vl_create_entry_n_in in = {entry_of("high", 0xfffffffdu, IP1)};
	assert_int_equal(CALL(f, create_entry_n, "afs", &in, NULL), 0);
	assert_int_equal(by_id(f, 0xffffffffu, 2, &e), 0);
	assert_int_equal(e.volumeId[2], 0xffffffffu);
	assert_int_equal(get_n(f, "4294967295", &e), 0);
}

static void a_deleted_entry_is_gone_with_all_its_ids(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(set_lock(f, 10, VLF_OP_DELETE), 0);
	struct vl_delete_entry_in in = {12, -1};
	struct vl_delete_entry_in bad = {12, 4};
	assert_int_equal(CALL(f, delete_entry, "afs", &bad, NULL), VLE(9));
	assert_int_equal(CALL(f, delete_entry, "afs", &in, NULL), 0);
	assert_int_equal(CALL(f, delete_entry, "afs", &in, NULL), VLE(4));
	assert_int_equal(get_n(f, "v", NULL), VLE(4));
	assert_int_equal(create(f, "v", 10, IP1), 0);
}

static void a_replaced_entry_keeps_its_rw_id_and_takes_free_names_and_ids_only(void **state)
{
	struct fixture *f = *state;
	struct nvldbentry e;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(create(f, "w", 20, IP1), 0);
	struct vl_replace_entry_n_in in = {10, 0, entry_of("v2", 10, IP2), 0};
	in.newentry.volumeId[1] = 15;
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), 0);
	assert_int_equal(get_n(f, "v", NULL), VLE(4));
	assert_int_equal(get_n(f, "v2", &e), 0);
	assert_int_equal(e.serverNumber[0], IP2);
	assert_int_equal(by_id(f, 11, -1, NULL), VLE(4));
	assert_int_equal(by_id(f, 15, 1, NULL), 0);

	in.newentry.volumeId[0] = 99;
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), VLE(18));
	in.newentry = entry_of("w", 10, IP1);
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), VLE(2));
	in.newentry = entry_of("v2", 10, IP1);
	in.newentry.volumeId[2] = 21;
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), VLE(0));
	in.newentry.volumeId[2] = 12;
	in.ReleaseType = 8;
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), VLE(23));
	in.ReleaseType = 0;
	in.Volid = 77;
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), VLE(4));
}

static void thirteen_sites_are_kept_in_order_and_the_old_form_shows_eight(void **state)
{
	struct fixture *f = *state;
	struct vl_create_entry_n_in in = {entry_of("v", 10, IP1)};
	in.entry.nServers = 13;
	for (int i = 0; i < 13; i++) {
		in.entry.serverNumber[i] = IP1 + (uint32_t)(12 - i);
		in.entry.serverPartition[i] = i;
		in.entry.serverFlags[i] = i ? VLSF_RO : VLSF_RW;
	}
	assert_int_equal(CALL(f, create_entry_n, "afs", &in, NULL), 0);
	struct nvldbentry e;
	assert_int_equal(get_n(f, "v", &e), 0);
	assert_memory_equal(&e, &in.entry, sizeof(e));
	struct vl_get_entry_by_id_in o = {10, 0};
	struct vl_get_entry_by_id_out oo;
	assert_int_equal(CALL(f, get_entry_by_id, NULL, &o, &oo), 0);
	assert_int_equal(oo.entry.nServers, 8);
	assert_int_equal(oo.entry.serverNumber[7], IP1 + 5);
	struct vl_create_entry_in old = {.newentry = {.nServers = 9, .volumeId = {50}}};
	strcpy(old.newentry.name, "old");
	assert_int_equal(CALL(f, create_entry, "afs", &old, NULL), VLE(10));
	old.newentry.nServers = 1;
	old.newentry.serverNumber[0] = IP3;
	assert_int_equal(CALL(f, create_entry, "afs", &old, NULL), 0);
	assert_int_equal(by_id(f, 50, 0, &e), 0);
	assert_int_equal(e.serverNumber[0], IP3);
}

static void an_update_changes_what_its_mask_says(void **state)
{
	struct fixture *f = *state;
	struct nvldbentry e;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(create(f, "w", 20, IP2), 0);
	struct vl_update_entry_in in = {10, 0, {.Mask = VLUPDATE_NAME | VLUPDATE_BK_ID, .BackupId = 19}, 0};
	strcpy(in.UpdateEntry.name, "v2");
	in.UpdateEntry.ReadOnlyId = 999; /* not in the mask */
	assert_int_equal(CALL(f, update_entry, "afs", &in, NULL), 0);
	assert_int_equal(get_n(f, "v2", &e), 0);
	assert_int_equal(e.volumeId[1], 11);
	assert_int_equal(e.volumeId[2], 19);
	strcpy(in.UpdateEntry.name, "w");
	assert_int_equal(CALL(f, update_entry, "afs", &in, NULL), VLE(2));

	struct vl_update_entry_by_name_in n = {.volname = XDR_STR_OF("v2"),
		.UpdateEntry = {.Mask = VLUPDATE_REPSITES,
			.nModifiedRepsites = 2,
			.RepsitesMask = {VLREP_ADD, VLREP_FLAGS},
			.RepsitesTargetServer = {0, IP1},
			.RepsitesNewServer = {IP2},
			.RepsitesNewPart = {3},
			.RepsitesNewFlags = {VLSF_RO, VLSF_RW | VLSF_NEWREPSITE}}};
	assert_int_equal(CALL(f, update_entry_by_name, "afs", &n, NULL), 0);
	assert_int_equal(get_n(f, "v2", &e), 0);
	assert_int_equal(e.nServers, 2);
	assert_int_equal(e.serverPartition[1], 3);
	assert_int_equal(e.serverFlags[0], VLSF_RW | VLSF_NEWREPSITE);
	n.UpdateEntry.nModifiedRepsites = 1;
	assert_int_equal(CALL(f, update_entry_by_name, "afs", &n, NULL), VLE(14));
	n.UpdateEntry.RepsitesMask[0] = VLREP_DELETE;
	n.UpdateEntry.RepsitesTargetServer[0] = IP3;
	assert_int_equal(CALL(f, update_entry_by_name, "afs", &n, NULL), VLE(13));
	n.UpdateEntry.RepsitesTargetServer[0] = IP1;
	assert_int_equal(CALL(f, update_entry_by_name, "afs", &n, NULL), 0);
	assert_int_equal(get_n(f, "v2", &e), 0);
	assert_int_equal(e.nServers, 1);
	assert_int_equal(e.serverNumber[0], IP2);
	n.UpdateEntry.nModifiedRepsites = 9;
	assert_int_equal(CALL(f, update_entry_by_name, "afs", &n, NULL), VLE(10));
	n.UpdateEntry.nModifiedRepsites = -1;
	assert_int_equal(CALL(f, update_entry_by_name, "afs", &n, NULL), VLE(10));
}

/* --- locks --------------------------------------------------------------------------------------- */

static void locks_answer_as_captured(void **state)
{
	struct fixture *f = *state;
	struct nvldbentry e;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(set_lock(f, 10, 0x11), VLE(22));
	assert_int_equal(set_lock(f, 10, 0), VLE(22));
	assert_int_equal(set_lock(f, 10, VLF_OP_MOVE), 0);
	assert_int_equal(set_lock(f, 10, VLF_OP_MOVE), VLE(21));
	assert_int_equal(get_n(f, "v", &e), 0);
	assert_int_equal(e.flags, VLF_RW_EXISTS | VLF_OP_MOVE);
	assert_int_equal(release_lock(f, 10, 8), VLE(23));
	assert_int_equal(release_lock(f, 10, 0), 0);
	assert_int_equal(set_lock(f, 10, VLF_OP_MOVE), VLE(21));
	assert_int_equal(release_lock(f, 10, 7), 0);
	assert_int_equal(release_lock(f, 10, 7), 0); /* again is fine */
	assert_int_equal(get_n(f, "v", &e), 0);
	assert_int_equal(e.flags, VLF_RW_EXISTS);
	/* half unlocked after an interrupted release */
	assert_int_equal(set_lock(f, 10, VLF_OP_RELEASE), 0);
	assert_int_equal(release_lock(f, 10, 1), 0);
	assert_int_equal(set_lock(f, 10, VLF_OP_DELETE), VLE(24));
	assert_int_equal(release_lock(f, 10, 7), 0);
	assert_int_equal(set_lock(f, 10, VLF_OP_DELETE), 0);
	assert_int_equal(set_lock(f, 99, VLF_OP_DELETE), VLE(4));
}

static void a_replace_with_release_bits_unlocks(void **state)
{
	struct fixture *f = *state;
	struct nvldbentry e;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(set_lock(f, 10, VLF_OP_RELEASE), 0);
	assert_int_equal(by_id(f, 10, 0, &e), 0);
	struct vl_replace_entry_n_in in = {10, 0, e, 0};
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), 0);
	assert_int_equal(set_lock(f, 10, VLF_OP_MOVE), VLE(21));
	in.ReleaseType = 7;
	assert_int_equal(CALL(f, replace_entry_n, "afs", &in, NULL), 0);
	assert_int_equal(by_id(f, 10, 0, &e), 0);
	assert_int_equal(e.flags, VLF_RW_EXISTS);
	assert_int_equal(set_lock(f, 10, VLF_OP_MOVE), 0);
}

static void a_lock_of_a_dead_tool_ends_after_a_day(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	wall_ns t = SEC(1700000000);
	assert_ok(vl_lock(f->vl, 10, 0, VLF_OP_MOVE, t));
	assert_err(vl_lock(f->vl, 10, 0, VLF_OP_MOVE, t + SEC(86399)), AFS_ELOCKED);
	assert_ok(vl_lock(f->vl, 10, 0, VLF_OP_BACKUP, t + SEC(86400)));
	/* a clock that was set back does not lock for ever */
	assert_ok(vl_lock(f->vl, 10, 0, VLF_OP_MOVE, t));
}

/* --- ids ----------------------------------------------------------------------------------------- */

static int32_t new_id(struct fixture *f, uint32_t bump, uint32_t *id)
{
	struct vl_get_new_volume_id_in in = {bump};
	struct vl_get_new_volume_id_out out = {};
	int32_t code = CALL(f, get_new_volume_id, "afs", &in, &out);
	*id = out.newvolumid;
	return code;
}

static void new_ids_start_where_stock_does_and_skip_those_in_use(void **state)
{
	struct fixture *f = *state;
	uint32_t id;
	assert_int_equal(new_id(f, 1, &id), 0);
	assert_int_equal(id, 536870912);
	assert_int_equal(new_id(f, 1, &id), 0);
	assert_int_equal(id, 536870913);
	assert_int_equal(new_id(f, 0, &id), 0);
	assert_int_equal(id, 536870914);
	assert_int_equal(create(f, "v", 536870915, IP1), 0); /* ..15 ..16 ..17 */
	assert_int_equal(new_id(f, 2, &id), 0);
	assert_int_equal(id, 536870918);
	reopen(f);
	assert_int_equal(new_id(f, 1, &id), 0);
	assert_int_equal(id, 536870920);
	assert_int_equal(new_id(f, 0x80000000u, &id), VLE(19));
	assert_int_equal(new_id(f, 0x7fffffffu, &id), 0);
	assert_int_equal(new_id(f, 0x7fffffffu, &id), VLE(19)); /* no such run is left */
	assert_int_equal(new_id(f, 1, &id), 0);
}

/* --- lists --------------------------------------------------------------------------------------- */

static void list_entry_walks_all_and_ends_with_zero(void **state)
{
	struct fixture *f = *state;
	for (uint32_t i = 0; i < 5; i++) {
		char name[16];
		snprintf(name, sizeof(name), "v%u", i);
		assert_int_equal(create(f, name, 10 + 10 * i, IP1), 0);
	}
	struct vl_delete_entry_in del = {30, 0};
	assert_int_equal(CALL(f, delete_entry, "afs", &del, NULL), 0);
	struct vl_list_entry_n_in in = {0};
	struct vl_list_entry_n_out out;
	int seen = 0;
	for (;; seen++) {
		assert_int_equal(CALL(f, list_entry_n, NULL, &in, &out), 0);
		if (!out.next_index)
			break;
		assert_true(out.count > 0);
		in.previous_index = out.next_index;
	}
	assert_int_equal(seen, 4);
	assert_int_equal(out.count, 0);
	assert_int_equal(out.entry.nServers, 0);
	static const int32_t bad[] = {-1, 1000, INT32_MAX, INT32_MIN};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		in.previous_index = bad[i];
		assert_int_equal(CALL(f, list_entry_n, NULL, &in, &out), 0);
		assert_int_equal(out.count, -1);
		assert_int_equal(out.next_index, 0);
	}
}

static uint32_t matches(struct fixture *f, struct VldbListByAttributes a)
{
	struct vl_list_attributes_n_in in = {a};
	struct vl_list_attributes_n_out out;
	assert_int_equal(CALL(f, list_attributes_n, NULL, &in, &out), 0);
	assert_int_equal(out.nentries, out.blkentries.n);
	struct vl_linked_list_n_in lin = {a};
	struct vl_linked_list_n_out lout;
	uint32_t n = out.blkentries.n;
	assert_int_equal(CALL(f, linked_list_n, NULL, &lin, &lout), 0);
	assert_int_equal(lout.linkedentries.n, n);
	struct vl_list_attributes_in oin = {a};
	struct vl_list_attributes_out oout;
	assert_int_equal(CALL(f, list_attributes, NULL, &oin, &oout), 0);
	assert_int_equal(oout.blkentries.n, n);
	return n;
}

static void attributes_are_anded(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "a", 10, IP1), 0);
	assert_int_equal(create(f, "b", 20, IP2), 0);
	struct vl_create_entry_n_in in = {entry_of("c", 30, IP1)};
	in.entry.nServers = 2;
	in.entry.serverNumber[1] = IP2;
	in.entry.serverPartition[0] = 1;
	in.entry.flags |= VLF_RO_EXISTS;
	assert_int_equal(CALL(f, create_entry_n, "afs", &in, NULL), 0);
	enum { S = VLLIST_SERVER, P = VLLIST_PARTITION, F = VLLIST_FLAG };
	assert_int_equal(matches(f, (struct VldbListByAttributes){}), 3);
	assert_int_equal(matches(f, (struct VldbListByAttributes){.Mask = S, .server = IP1}), 2);
	assert_int_equal(matches(f, (struct VldbListByAttributes){.Mask = S, .server = IP2}), 2);
	assert_int_equal(matches(f, (struct VldbListByAttributes){.Mask = S, .server = IP3}), 0);
	assert_int_equal(matches(f, (struct VldbListByAttributes){.Mask = P, .partition = 1}), 1);
	assert_int_equal(matches(f, (struct VldbListByAttributes){.Mask = P, .partition = 0}), 3);
	assert_int_equal(
		matches(f, (struct VldbListByAttributes){.Mask = S | P, .server = IP1, .partition = 1}), 1);
	assert_int_equal(
		matches(f, (struct VldbListByAttributes){.Mask = F, .flag = VLF_RO_EXISTS}), 1);
	assert_int_equal(matches(f, (struct VldbListByAttributes){.Mask = F, .flag = 0x1f0}), 0);
	assert_int_equal(
		matches(f, (struct VldbListByAttributes){.Mask = VLLIST_VOLUMEID, .volumeid = 21}), 1);
	struct vl_list_attributes_n_in none = {{.Mask = VLLIST_VOLUMEID, .volumeid = 99}};
	assert_int_equal(CALL(f, list_attributes_n, NULL, &none, NULL), VLE(4));
}

static void pages_hold_500_and_all_entries_come_once(void **state)
{
	struct fixture *f = *state;
	struct vl_write w = {};
	assert_ok(vl_write_begin(f->vl, &w));
	struct vl_server server;
	assert_ok(vl_server_for_ip(&w, IP1, &server));
	for (uint32_t i = 0; i < 1100; i++) {
		struct vl_row row = {.id = {100 + i}, .flags = VLF_RW_EXISTS, .sites = 1,
			.site = {{.slot = server.slot, .flags = i % 10 == 3 ? 0 : VLSF_RW}}};
		snprintf(row.name, sizeof(row.name), "v%u", i);
		assert_ok(vl_row_save(&w, &row));
	}
	assert_ok(vl_write_commit(&w));
	vl_write_end(&w);
	struct vl_list_attributes_n2_in in = {};
	struct vl_list_attributes_n2_out out;
	uint32_t total = 0, pages = 0, last = 0;
	do {
		assert_int_equal(CALL(f, list_attributes_n2, NULL, &in, &out), 0);
		assert_true(out.blkentries.n <= 500);
		for (uint32_t i = 0; i < out.blkentries.n; i++) {
			assert_true(out.blkentries.v[i].volumeId[0] > last);
			last = out.blkentries.v[i].volumeId[0];
		}
		total += out.blkentries.n;
		pages++;
		in.startindex = out.nextstartindex;
	} while (out.nextstartindex != -1);
	assert_int_equal(total, 990); /* an entry without a site flagged RW or RO is not listed */
	assert_true(pages >= 2 && pages <= 3);
	assert_int_equal(matches(f, (struct VldbListByAttributes){}), 1100);
	in.startindex = -5;
	assert_int_equal(CALL(f, list_attributes_n2, NULL, &in, NULL), VLE(29));
	in = (struct vl_list_attributes_n2_in){.volumename = XDR_STR_OF("v1[02]*[0-4]")};
	assert_int_equal(CALL(f, list_attributes_n2, "afs", &in, &out), 0);
	assert_int_equal(out.nextstartindex, -1);
	assert_true(out.blkentries.n > 10 && out.blkentries.n < 100);
}

static int32_t match_n2(struct fixture *f, const char *pattern, uint32_t ip)
{
	struct vl_list_attributes_n2_in in = {.volumename = XDR_STR_OF(pattern)};
	if (ip) {
		in.attributes.Mask = VLLIST_SERVER;
		in.attributes.server = ip;
	}
	struct vl_list_attributes_n2_out out;
	assert_int_equal(CALL(f, list_attributes_n2, "afs", &in, &out), 0);
	return out.blkentries.n ? out.blkentries.v[0].matchindex : -1;
}

static void matchindex_tells_type_and_site(void **state)
{
	struct fixture *f = *state;
	struct vl_create_entry_n_in in = {entry_of("vol", 10, IP1)};
	in.entry.nServers = 3;
	in.entry.serverNumber[0] = IP2;
	in.entry.serverNumber[2] = IP3;
	in.entry.serverNumber[1] = IP1;
	in.entry.serverFlags[0] = in.entry.serverFlags[2] = VLSF_RO;
	in.entry.serverFlags[1] = VLSF_RW;
	in.entry.flags = VLF_RW_EXISTS | VLF_RO_EXISTS | VLF_BK_EXISTS;
	assert_int_equal(CALL(f, create_entry_n, "afs", &in, NULL), 0);
	assert_int_equal(match_n2(f, "", 0), 0x40001);
	assert_int_equal(match_n2(f, "v.*", 0), 0x40001);
	assert_int_equal(match_n2(f, ".*backup", 0), 0x80001);
	assert_int_equal(match_n2(f, ".*readonly", 0), 0x20000);
	assert_int_equal(match_n2(f, "", IP3), 0x20002);
	assert_int_equal(match_n2(f, "x.*", 0), -1);
}

/* --- patterns ------------------------------------------------------------------------------------- */

static void patterns_match_as_basic_regular_expressions(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *name;
		int match; /* -1: no pattern */
	} rows[] = {{"abc", "abc", 1}, {"abc", "abcd", 0}, {"abc", "xabc", 0}, {"a.c", "axc", 1},
		{"a.*c", "ac", 1}, {"a.*c", "abbbc", 1}, {"a.*c", "abbb", 0}, {"^a$", "a", 1},
		{"a*", "", 1}, {"a*", "aaaa", 1}, {"a*", "aab", 0}, {"*a", "*a", 1}, {"a\\.b", "a.b", 1},
		{"a\\.b", "axb", 0}, {"[abc]x", "bx", 1}, {"[^abc]x", "bx", 0}, {"[^abc]x", "dx", 1},
		{"[a-c]*", "abcabc", 1}, {"[]a]", "]", 1}, {"[a-]", "-", 1}, {"[c-a]", "b", -1},
		{"[abc", "a", -1}, {"a\\", "a", -1}, {"\\(a\\)", "a", -1}, {"a\\{2\\}", "aa", -1},
		{"a\\1", "aa", -1}, {"[[:alpha:]]", "a", -1}, {"", "", 1}, {"", "a", 0}, {"$", "", 1},
		{"a$b", "a$b", 1}, {"a**", "aaa", 1}, {".*a.*a.*b", "xaxaxb", 1}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct vl_pattern p;
		afs_err err = vl_pattern_init(&p, rows[i].pattern, strlen(rows[i].pattern));
		int got = err ? -1 : vl_pattern_match(&p, rows[i].name, strlen(rows[i].name));
		if (got != rows[i].match)
			fail_msg("'%s' on '%s': %d", rows[i].pattern, rows[i].name, got);
	}
}

static void a_pattern_that_backtracks_elsewhere_is_quick_here(void **state)
{
	(void)state;
	char text[65], name[65];
	for (int i = 0; i < 64; i += 2)
		memcpy(text + i, "a*", 2);
	text[64] = 0;
	memset(name, 'a', 63);
	strcpy(name + 63, "b");
	struct vl_pattern p;
	assert_ok(vl_pattern_init(&p, text, 64));
	for (int i = 0; i < 1000; i++)
		assert_false(vl_pattern_match(&p, name, 64));
}

/* --- servers -------------------------------------------------------------------------------------- */

static const uint8_t uuid_a[16] = {1, 2, 3}, uuid_b[16] = {4, 5, 6};

static uint32_t server_of(struct fixture *f, const uint8_t uuid[16], int32_t *uniq, uint32_t *first)
{
	struct vl_get_addrs_u_in in = {{.Mask = VLADDR_UUID, .uuid = afs_uuid_from_bytes(uuid)}};
	struct vl_get_addrs_u_out out;
	if (CALL(f, get_addrs_u, NULL, &in, &out))
		return 0;
	*uniq = out.uniquifier;
	*first = out.blkaddrs.v[0];
	return out.blkaddrs.n;
}

#define REGISTER(f, uuid, ...)                                                                     \
	vl_server_register((f)->vl, uuid, (uint32_t[]){__VA_ARGS__},                               \
		sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void a_first_registration_takes_the_slot_that_entries_made(void **state)
{
	struct fixture *f = *state;
	int32_t uniq;
	uint32_t first;
	struct uvldbentry e;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(get_u(f, "v", &e), 0);
	assert_int_equal(e.serverNumber[0].time_low, IP1); /* only an address so far */
	assert_int_equal(e.serverFlags[0], VLSF_RW);
	assert_int_equal(e.serverUnique[0], 0);

	assert_ok(REGISTER(f, uuid_a, IP1, IP2, 0, IP1));
	assert_int_equal(server_of(f, uuid_a, &uniq, &first), 2);
	assert_int_equal(uniq, 1);
	assert_int_equal(get_u(f, "v", &e), 0);
	assert_int_equal(e.serverFlags[0], VLSF_RW | VLSF_UUID);
	assert_int_equal(e.serverUnique[0], 1);
	assert_true(afs_uuid_equal(&e.serverNumber[0], &(struct afsUUID){.time_low = 0x01020300}));

	/* the same again changes nothing; another order does */
	assert_ok(REGISTER(f, uuid_a, IP1, IP2));
	server_of(f, uuid_a, &uniq, &first);
	assert_int_equal(uniq, 1);
	assert_ok(REGISTER(f, uuid_a, IP2, IP1));
	server_of(f, uuid_a, &uniq, &first);
	assert_int_equal(uniq, 2);
	assert_int_equal(first, IP2);
	struct nvldbentry n;
	assert_int_equal(get_n(f, "v", &n), 0);
	assert_int_equal(n.serverNumber[0], IP2);
}

static void registrations_that_would_merge_servers_are_refused(void **state)
{
	struct fixture *f = *state;
	int32_t uniq;
	uint32_t first;
	assert_ok(REGISTER(f, uuid_a, IP1));
	assert_ok(REGISTER(f, uuid_b, IP2, IP3));
	assert_err(REGISTER(f, uuid_a, IP1, IP2, IP3), AFS_EVMULTIADDR); /* all of b */
	static const uint8_t uuid_c[16] = {9};
	assert_err(REGISTER(f, uuid_c, IP1, IP2), AFS_EVMULTIADDR); /* two owners */
	/* a part of b's may go over */
	assert_ok(REGISTER(f, uuid_a, IP1, IP2));
	assert_int_equal(server_of(f, uuid_b, &uniq, &first), 1);
	assert_int_equal(uniq, 2);
	assert_int_equal(first, IP3);
	assert_err(REGISTER(f, uuid_a, 0), AFS_ERANGE);
	static const uint8_t nil[16];
	assert_err(REGISTER(f, nil, IP1), AFS_EBADARG);
	/* an unknown UUID takes over the one slot that shares an address */
	assert_ok(REGISTER(f, uuid_c, IP3));
	assert_int_equal(server_of(f, uuid_b, &uniq, &first), 0);
	assert_int_equal(server_of(f, uuid_c, &uniq, &first), 1);
	assert_int_equal(uniq, 3);
}

static void more_than_fifteen_addresses_are_cut(void **state)
{
	struct fixture *f = *state;
	uint32_t ips[500], first;
	int32_t uniq;
	for (uint32_t i = 0; i < 500; i++)
		ips[i] = IP1 + i;
	assert_ok(vl_server_register(f->vl, uuid_a, ips, 500));
	assert_int_equal(server_of(f, uuid_a, &uniq, &first), 15);
	uint8_t body[48 + 4 + 4 * 501] = {};
	be32_put(body + 48, 501);
	assert_int_equal(
		dbcall_raw(&f->t, &vl_iface, 532, "afs", body, sizeof(body), NULL), -453);
}

static void slots_are_254_and_then_full(void **state)
{
	struct fixture *f = *state;
	struct vl_write w = {};
	assert_ok(vl_write_begin(f->vl, &w));
	struct vl_server s;
	for (uint32_t i = 0; i < 254; i++)
		assert_ok(vl_server_for_ip(&w, IP1 + i, &s));
	assert_int_equal(s.slot, 254);
	assert_err(vl_server_for_ip(&w, IP1 + 254, &s), AFS_EVBADSERVER);
	assert_ok(vl_write_commit(&w));
	vl_write_end(&w);
	assert_int_equal(create(f, "v", 10, IP1 + 254), VLE(10));
	struct vl_get_addrs_in in = {};
	struct vl_get_addrs_out out;
	assert_int_equal(CALL(f, get_addrs, NULL, &in, &out), 0);
	assert_int_equal(out.blkaddr.n, 254);
}

static int32_t addrs_u(struct fixture *f, int32_t mask, uint32_t ip, int32_t index)
{
	struct vl_get_addrs_u_in in = {{.Mask = mask, .ipaddr = ip, .index = index}};
	return CALL(f, get_addrs_u, NULL, &in, NULL);
}

static int32_t change_addr(struct fixture *f, uint32_t from, uint32_t to)
{
	struct vl_change_addr_in in = {from, to};
	return CALL(f, change_addr, "afs", &in, NULL);
}

static void addresses_are_asked_for_and_changed_as_captured(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_ok(REGISTER(f, uuid_a, IP2));
	assert_int_equal(addrs_u(f, 0, IP2, 0), VLE(31));
	assert_int_equal(addrs_u(f, 3, IP2, 1), VLE(31));
	assert_int_equal(addrs_u(f, 1, IP1, 0), VLE(4)); /* known from an entry only */
	assert_int_equal(addrs_u(f, 1, IP2, 0), 0);
	assert_int_equal(addrs_u(f, 2, 0, 0), VLE(29));
	assert_int_equal(addrs_u(f, 2, 0, 255), VLE(29));
	assert_int_equal(addrs_u(f, 2, 0, 1), VLE(4));
	assert_int_equal(addrs_u(f, 2, 0, 2), 0);
	assert_int_equal(addrs_u(f, 2, 0, 3), VLE(4));

	assert_int_equal(change_addr(f, IP1, 0xff000001), VLE(10));
	assert_int_equal(change_addr(f, IP3, IP3 + 1), VLE(4));
	assert_int_equal(change_addr(f, IP1, IP2), VLE(30));
	assert_int_equal(change_addr(f, IP2, IP3), VLE(4)); /* it registers its own */
	assert_int_equal(change_addr(f, IP1, IP3), 0);
	struct nvldbentry e;
	assert_int_equal(get_n(f, "v", &e), 0);
	assert_int_equal(e.serverNumber[0], IP3);
	assert_int_equal(change_addr(f, 0xffffffff, IP3), VLE(0)); /* in use */
	assert_int_equal(change_addr(f, 0xffffffff, IP2), 0);
	assert_int_equal(change_addr(f, 0xffffffff, IP2), VLE(4));
}

/* --- the whole ------------------------------------------------------------------------------------ */

static void calls_are_counted_for_get_stats(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	assert_int_equal(get_n(f, "none", NULL), VLE(4));
	assert_int_equal(get_n(f, "v", NULL), 0);
	struct vl_get_stats_in in;
	struct vl_get_stats_out out;
	assert_int_equal(CALL(f, get_stats, NULL, &in, &out), 0);
	assert_int_equal(out.stats.requests[519 - 501], 2);
	assert_int_equal(out.stats.aborts[519 - 501], 1);
	assert_int_equal(out.stats.requests[517 - 501], 1);
	assert_int_equal(out.vital_header.MaxVolumeId, 0x20000000);
	assert_int_equal(out.vital_header.totalEntries[0], 1);
}

static void a_kill_in_the_middle_leaves_whole_entries(void **state)
{
	struct fixture *f = *state;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct dbserver_config c = dbcall_config(f->path);
		struct vl *vl = NULL;
		if (vl_open(&c, &vl))
			_exit(1);
		for (uint32_t i = 1;; i++) {
			char name[16];
			snprintf(name, sizeof(name), "v%u", i);
			struct nvldbentry e = entry_of(name, i * 10, IP1 + i % 50);
			if (vl_volume_create(vl, &e) || write(fds[1], &i, sizeof(i)) != sizeof(i))
				_exit(1);
		}
	}
	close(fds[1]);
	uint32_t last = 0, got;
	for (int i = 0; i < 60; i++)
		if (read(fds[0], &got, sizeof(got)) == sizeof(got))
			last = got;
	kill(pid, SIGKILL);
	while (read(fds[0], &got, sizeof(got)) == sizeof(got))
		last = got;
	close(fds[0]);
	waitpid(pid, NULL, 0);
	assert_true(last >= 60);
	reopen(f);
	int64_t cursor = 0;
	struct nvldbentry e;
	uint32_t n = 0;
	while (vl_volume_next(f->vl, &cursor, &e) == AFS_OK) {
		n++;
		assert_int_equal(e.nServers, 1);
		assert_int_equal(e.volumeId[0], n * 10);
		assert_ok(vl_volume_find_id(f->vl, n * 10 + 2, AFS_VOL_BK, &e));
	}
	assert_true(n == last || n == last + 1);
}

static afs_err memory_walk_work(struct fixture *f)
{
	struct nvldbentry e = entry_of("w", 20, IP2);
	TRY(vl_volume_create(f->vl, &e));
	TRY(REGISTER(f, uuid_b, IP2, IP3));
	uint32_t id;
	TRY(vl_ids_reserve(f->vl, 3, &id));
	TRY(vl_volume_find(f->vl, "w.backup", &e));
	return vl_volume_delete(f->vl, 20);
}

static void memory_that_runs_out_leaves_before_or_after(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(create(f, "v", 10, IP1), 0);
	for (long fail = 0;; fail++) {
		mem_fail_after(fail);
		struct dbserver_config c = dbcall_config(f->path);
		struct vl *old = f->vl;
		struct vl *vl = NULL;
		/* a fresh connection each time, so that statements are prepared anew */
		afs_err err = vl_open(&c, &vl);
		if (!err) {
			f->vl = vl;
			err = memory_walk_work(f);
		}
		bool refused = mem_has_failed();
		mem_fail_after(-1);
		if (vl)
			vl_close(vl);
		f->vl = old;
		struct nvldbentry e;
		afs_err found = vl_volume_find(f->vl, "w", &e);
		assert_true(found == AFS_OK || found == AFS_ENOENT);
		if (found == AFS_OK) { /* made as a whole */
			assert_int_equal(e.nServers, 1);
			assert_ok(vl_volume_find_id(f->vl, 22, AFS_VOL_BK, &e));
			assert_ok(vl_volume_delete(f->vl, 20));
		}
		if (!refused) {
			assert_ok(err);
			break;
		}
		assert_true(err == AFS_OK || err == AFS_ENOMEM);
	}
}

static double now_s(void) { return (double)clk_mono() / 1e9; }

static void lookups_are_quick_enough_for_the_io_thread(void **state)
{
	struct fixture *f = *state;
	struct vl_write w = {};
	assert_ok(vl_write_begin(f->vl, &w));
	struct vl_server server;
	assert_ok(vl_server_for_ip(&w, IP1, &server));
	for (uint32_t i = 0; i < 2000; i++) {
		struct vl_row row = {.id = {1000 + 3 * i, 1001 + 3 * i, 1002 + 3 * i},
			.flags = VLF_RW_EXISTS, .sites = 2,
			.site = {{.slot = server.slot, .flags = VLSF_RW}, {.slot = server.slot, .flags = VLSF_RO}}};
		snprintf(row.name, sizeof(row.name), "user.name%u", i);
		assert_ok(vl_row_save(&w, &row));
	}
	assert_ok(vl_write_commit(&w));
	vl_write_end(&w);
	enum { N = 20000 };
	double t = now_s();
	for (uint32_t i = 0; i < N; i++) {
		char name[32];
		snprintf(name, sizeof(name), "user.name%u", i * 7919 % 2000);
		struct vl_read r = {};
		struct vl_row row;
		assert_ok(vl_read_begin(f->vl, &r));
		assert_ok(vl_find_by_name(r.db, name, strlen(name), &row));
		vl_read_end(&r);
	}
	t = now_s() - t;
	printf("# %.0f lookups/s\n", N / t);
}

#define F(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
int main(void)
{
	if (failmem_install() != SQLITE_OK)
		return 1;
	log_to(open("/dev/null", O_WRONLY), LOG_ERROR); /* refusals are what is tested */
	const struct CMUnitTest tests[] = {
		F(the_captured_create_is_understood_and_comes_back),
		F(the_captured_list_reply_has_its_words),
		F(the_captured_registration_and_removal_are_understood),
		F(uuid_bytes_are_found_with_and_without_their_signs),
		F(reply_sizes_are_those_that_were_captured),
		F(reserved_opcodes_are_unknown),
		F(only_the_superuser_changes_anything),
		F(a_pattern_is_for_the_superuser_and_none_is_for_all),
		F(an_entry_is_judged_field_by_field),
		F(names_have_64_bytes_at_most),
		F(an_id_is_in_one_entry_only_and_is_tested_before_the_name),
		F(an_entry_is_found_by_name_suffix_and_number),
		F(ids_use_all_of_32_bits),
		F(a_deleted_entry_is_gone_with_all_its_ids),
		F(a_replaced_entry_keeps_its_rw_id_and_takes_free_names_and_ids_only),
		F(thirteen_sites_are_kept_in_order_and_the_old_form_shows_eight),
		F(an_update_changes_what_its_mask_says),
		F(locks_answer_as_captured),
		F(a_replace_with_release_bits_unlocks),
		F(a_lock_of_a_dead_tool_ends_after_a_day),
		F(new_ids_start_where_stock_does_and_skip_those_in_use),
		F(list_entry_walks_all_and_ends_with_zero),
		F(attributes_are_anded),
		F(pages_hold_500_and_all_entries_come_once),
		F(matchindex_tells_type_and_site),
		F(patterns_match_as_basic_regular_expressions),
		F(a_pattern_that_backtracks_elsewhere_is_quick_here),
		F(a_first_registration_takes_the_slot_that_entries_made),
		F(registrations_that_would_merge_servers_are_refused),
		F(more_than_fifteen_addresses_are_cut),
		F(slots_are_254_and_then_full),
		F(addresses_are_asked_for_and_changed_as_captured),
		F(calls_are_counted_for_get_stats),
		F(a_kill_in_the_middle_leaves_whole_entries),
		F(memory_that_runs_out_leaves_before_or_after),
		F(lookups_are_quick_enough_for_the_io_thread),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
