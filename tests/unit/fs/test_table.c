/* SPDX-License-Identifier: BSD-2-Clause
 * The table of RXAFS: every opcode that clients may send is served or refused on purpose. */
#include "cell/proto/abort.h"
#include "tests/unit/fs/rig.h"

#include <errno.h>

enum { SERVED = 0x7fffffff };

/* The table of fileserver.md §2, and what stock servers of 1.8.9 answer to those they refuse. */
static const struct {
	uint32_t op;
	int32_t code; /* SERVED, or the abort code of a refusal */
} table[] = {
	{130, SERVED}, {131, SERVED}, {132, SERVED}, {133, SERVED}, {134, SERVED}, {135, SERVED},
	{136, SERVED}, {137, SERVED}, {138, SERVED}, {139, SERVED}, {140, SERVED}, {141, SERVED},
	{142, SERVED}, {143, SERVED}, {144, SERVED}, {145, SERVED}, {146, SERVED}, {147, SERVED},
	{148, 103}, {149, SERVED}, {150, SERVED}, {151, 122}, {152, 130}, {153, SERVED},
	{154, 103}, {155, SERVED}, {156, SERVED}, {157, SERVED}, {158, SERVED}, {159, SERVED},
	{160, SERVED}, {161, EINVAL}, {162, SERVED}, {163, EINVAL}, {164, SERVED}, {220, EINVAL},
	{65536, SERVED}, {65537, SERVED}, {65538, SERVED}, {65539, SERVED}, {65540, SERVED},
	{65541, UAE_BASE}, {65542, SERVED},
};

static bool in_table(uint32_t op)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].op == op)
			return true;
	return false;
}

static void every_opcode_has_a_row_and_every_row_an_opcode(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!rpc_iface_find(&fs_iface, table[i].op))
			fail_msg("opcode %u is neither served nor refused on purpose", table[i].op);
	for (unsigned i = 0; i < fs_iface.count; i++)
		if (!in_table(fs_iface.procs[i].op))
			fail_msg("%s (%u) is in no table", fs_iface.procs[i].name, fs_iface.procs[i].op);
}

static void opcodes_are_served_or_refused_as_by_stock_servers(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const union {
		uint64_t align;
		uint8_t bytes[4096];
	} nothing;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct rpc_proc *p = rpc_iface_find(&fs_iface, table[i].op);
		assert_true(p && p->in_size <= sizeof(nothing));
		(void)rig_call(r, A, "admin", (unsigned)(p - fs_iface.procs), &nothing);
		if (table[i].code != SERVED && r->code != table[i].code)
			fail_msg("%s: code %d, not %d", p->name, r->code, table[i].code);
		if (table[i].code == SERVED && (r->code == RXGEN_OPCODE || r->code == 122 || r->code == 130))
			fail_msg("%s is refused with %d", p->name, r->code);
	}
	rig_free(r);
}

static uint32_t word(struct rig *r, uint32_t i)
{
	assert_in_range(i, 0, r->out.get_xstats.Data.n - 1);
	return r->out.get_xstats.Data.v[i];
}

static void the_collections_of_xstat_have_the_sizes_that_tools_want_and_count(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "0123456789");
	mem_free(rig_read(r, f));
	(void)CALL(r, A, "alice", fetch_status, {{VOL, 999, 1}});
	assert_ok(CALL(r, B, NULL, xstats_version, {}));
	assert_int_equal(r->out.xstats_version.Version, 2);
	static const uint32_t sizes[] = {0, 98, 424, 16};
	for (int i = 0; i < 4; i++) {
		assert_ok(CALL(r, C, NULL, get_xstats, {2, i}));
		assert_int_equal(r->out.get_xstats.ServerVersion, 2);
		assert_int_equal(r->out.get_xstats.Data.n, sizes[i]);
	}
	assert_err(CALL(r, C, NULL, get_xstats, {2, 4}), AFS_EABORTED);
	assert_int_equal(r->code, 1);
	assert_diary(&r->world, "who 10.0.0.1:7001\ninit3 10.0.0.1:7001\n"); /* nobody is met for it */

	assert_ok(CALL(r, C, NULL, get_xstats, {2, FS_XSTAT_FULL}));
	enum { OPS = 98 + 2, FETCH_STATUS = OPS + 2 * 10, CREATE = OPS + 7 * 10, MOVED = OPS + 280 };
	assert_int_equal(word(r, FETCH_STATUS), 1);
	assert_int_equal(word(r, FETCH_STATUS + 1), 0); /* it failed */
	assert_int_equal(word(r, CREATE), 1);
	assert_int_equal(word(r, CREATE + 1), 1);
	assert_int_equal(word(r, MOVED), 1);
	assert_int_equal(word(r, MOVED + 10), 10);     /* bytes fetched */
	assert_int_equal(word(r, MOVED + 13), 1);      /* in the smallest class */
	assert_int_equal(word(r, MOVED + 22 + 10), 10); /* stored */
	assert_ok(CALL(r, C, NULL, get_xstats, {2, FS_XSTAT_CALLBACKS}));
	assert_int_equal(word(r, 7), 1); /* the new file's promise */
	rig_free(r);
}

TEST_MAIN(T(every_opcode_has_a_row_and_every_row_an_opcode),
	T(opcodes_are_served_or_refused_as_by_stock_servers),
	T(the_collections_of_xstat_have_the_sizes_that_tools_want_and_count))
