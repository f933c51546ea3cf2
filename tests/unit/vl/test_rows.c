/* SPDX-License-Identifier: BSD-2-Clause
 * What the rows of VL, PR, VOTE and DISK make: tables, and codecs that stop at every cut. */
#include "tests/lib/test.h"

#include "cell/proto/abort.h"
#include "cell/proto/bos.h"
#include "cell/proto/pt.h"
#include "cell/proto/ubik.h"
#include "cell/proto/vl.h"

static const struct rpc_iface *const ifaces[] = {
	&vl_iface, &pt_iface, &ubik_vote_iface, &ubik_disk_iface};

static void opcodes_rise_and_each_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ifaces); i++)
		for (uint32_t k = 0; k < ifaces[i]->count; k++) {
			const struct rpc_proc *p = &ifaces[i]->procs[k];
			assert_true(k == 0 || p->op > p[-1].op);
			assert_ptr_equal(rpc_iface_find(ifaces[i], p->op), p);
		}
}

/* Every opcode of vldb.md §4, protection.md §4, bos.md §3: done by the row of that name, or
 * left out on purpose (NULL: no definition exists, answered with RXGEN_OPCODE). */
struct known {
	uint32_t op;
	const char *name;
};
static const struct known vl_known[] = {{501, "CreateEntry"}, {502, "DeleteEntry"}, {503, "GetEntryByID"},
	{504, "GetEntryByNameO"}, {505, "GetNewVolumeId"}, {506, "ReplaceEntry"}, {507, "UpdateEntry"},
	{508, "SetLock"}, {509, "ReleaseLock"}, {510, "ListEntry"}, {511, "ListAttributes"},
	{512, "LinkedList"}, {513, "GetStats"}, {514, "ProbeServer"}, {515, "GetAddrs"},
	{516, "ChangeAddr"}, {517, "CreateEntryN"}, {518, "GetEntryByIDN"}, {519, "GetEntryByNameN"},
	{520, "ReplaceEntryN"}, {521, "ListEntryN"}, {522, "ListAttributesN"}, {523, "LinkedListN"},
	{524, "UpdateEntryByName"}, {525, NULL}, {526, NULL}, {527, "GetEntryByNameU"}, {528, NULL},
	{529, NULL}, {530, NULL}, {531, NULL}, {532, "RegisterAddrs"}, {533, "GetAddrsU"},
	{534, "ListAttributesN2"}, {65536, NULL}, {65537, NULL}};
static const struct known pt_known[] = {{500, "INewEntry"}, {501, "WhereIsIt"}, {502, "DumpEntry"},
	{503, "AddToGroup"}, {504, "NameToID"}, {505, "IDToName"}, {506, "Delete"},
	{507, "RemoveFromGroup"}, {508, "GetCPS"}, {509, "NewEntry"}, {510, "ListMax"}, {511, "SetMax"},
	{512, "ListEntry"}, {513, "ChangeEntry"}, {514, "ListElements"}, {515, "IsAMemberOf"},
	{516, "SetFieldsEntry"}, {517, "ListOwned"}, {518, "GetCPS2"}, {519, "GetHostCPS"},
	{520, "UpdateEntry"}, {521, "ListEntries"}, {530, "ListSuperGroups"}};
static const struct known bos_known[] = {{80, "CreateBnode"}, {81, "DeleteBnode"}, {82, "SetStatus"},
	{83, "GetStatus"}, {84, "EnumerateInstance"}, {85, "GetInstanceInfo"}, {86, "GetInstanceParm"},
	{87, "AddSUser"}, {88, "DeleteSUser"}, {89, "ListSUsers"}, {90, "ListKeys"}, {91, "AddKey"},
	{92, "DeleteKey"}, {93, "SetCellName"}, {94, "GetCellName"}, {95, "GetCellHost"},
	{96, "AddCellHost"}, {97, "DeleteCellHost"}, {98, "SetTStatus"}, {99, "ShutdownAll"},
	{100, "RestartAll"}, {101, "StartupAll"}, {102, "SetNoAuthFlag"}, {103, "ReBozo"},
	{104, "Restart"}, {105, "Install"}, {106, "UnInstall"}, {107, "GetDates"}, {108, "Exec"},
	{109, "Prune"}, {110, "SetRestartTime"}, {111, "GetRestartTime"}, {112, "GetLog"},
	{113, "WaitAll"}, {114, "GetInstanceStrings"}, {115, "GetRestrictedMode"},
	{116, "SetRestrictedMode"}};

static void every_opcode_of_the_protocol_is_a_row_or_left_out_on_purpose(void **state)
{
	(void)state;
	static const struct {
		const struct rpc_iface *iface;
		const struct known *known;
		size_t n;
	} services[] = {{&vl_iface, vl_known, ARRAY_SIZE(vl_known)},
		{&pt_iface, pt_known, ARRAY_SIZE(pt_known)},
		{&bos_iface, bos_known, ARRAY_SIZE(bos_known)}};
	for (size_t s = 0; s < ARRAY_SIZE(services); s++) {
		uint32_t rows = 0;
		for (size_t i = 0; i < services[s].n; i++) {
			const struct known *k = &services[s].known[i];
			const struct rpc_proc *p = rpc_iface_find(services[s].iface, k->op);
			if (!p != !k->name)
				fail_msg("%s %u (%s)", services[s].iface->name, k->op, k->name ? k->name : "left out");
			if (p)
				assert_string_equal(p->name, k->name);
			rows += k->name != NULL;
		}
		assert_int_equal(rows, services[s].iface->count); /* and none that is unknown */
	}
}

struct side {
	uint32_t size;
	void (*get)(struct xdr_in *, void *);
	void (*put)(struct xdr_out *, const void *);
	void (*print)(struct buf *, const void *);
};

/* Bytes of `word` over and over: decodes them, wants the same bytes back, and EAGAIN at every cut.
 * False: they are no such message. */
static bool check(const struct side *s, uint32_t word, size_t max)
{
	static uint8_t wire[1 << 16], back[1 << 16];
	for (size_t i = 0; i < sizeof(wire); i += 4)
		be32_put(wire + i, word);
	CLEANUP(arena) struct arena a;
	arena_init(&a, 8 << 20);
	void *v = arena_alloc(&a, 1, s->size);
	struct xdr_in x = {wire, wire + sizeof(wire), &a, AFS_OK};
	s->get(&x, v);
	if (x.err) {
		assert_true(x.err == AFS_EDECODE || x.err == AFS_EAGAIN);
		return false;
	}
	size_t len = (size_t)(x.p - wire);
	assert_true(len <= max);

	struct xdr_out o = {back, back + sizeof(back), AFS_OK};
	s->put(&o, v);
	assert_ok(o.err);
	assert_int_equal(o.p - back, len);
	if (!word) /* padding is not kept */
		assert_memory_equal(back, wire, len);
	for (size_t cut = 0; cut < len; cut += 4) {
		struct xdr_out small = {back, back + cut, AFS_OK};
		s->put(&small, v);
		assert_err(small.err, AFS_EENCODE);
		for (size_t more = 0; more < 4; more++) {
			CLEANUP(arena) struct arena b;
			arena_init(&b, 8 << 20);
			void *w = arena_alloc(&b, 1, s->size);
			struct xdr_in y = {wire, wire + cut + more, &b, AFS_OK};
			s->get(&y, w);
			assert_err(y.err, AFS_EAGAIN);
		}
	}
	CLEANUP(buf) struct buf text = {};
	s->print(&text, v);
	assert_ok(text.err);
	assert_int_equal(text.data[0], '{');
	assert_int_equal(text.data[text.len - 1], '}');
	return true;
}

static void every_message_comes_back_and_stops_at_every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ifaces); i++)
		for (uint32_t k = 0; k < ifaces[i]->count; k++) {
			const struct rpc_proc *p = &ifaces[i]->procs[k];
			struct side in = {p->in_size, p->in_get, p->in_put, p->in_print};
			struct side out = {p->out_size, p->out_get, p->out_put, p->out_print};
			uint32_t results = ifaces[i]->results_max ? ifaces[i]->results_max
								  : ifaces[i]->args_max;
			/* zeros: empty strings and lists; ones: lists of one */
			assert_true(check(&in, 0, ifaces[i]->args_max));
			assert_true(check(&out, 0, results));
			check(&in, 1, ifaces[i]->args_max);
			check(&out, 1, results);
		}
}

static void lists_of_entries_stop_at_every_cut_and_at_their_bound(void **state)
{
	(void)state;
	static struct vldbentry entries[3];
	static uint8_t wire[4096], big[(VL_LIST_MAX + 2) * 388];
	for (int i = 0; i < 3; i++)
		entries[i].volumeId[0] = (uint32_t)i + 7;
	struct vldb_list list = {entries, 3}, back;
	struct xdr_out o = {wire, wire + sizeof(wire), AFS_OK};
	xdr_put_vldb_list(&o, &list);
	assert_ok(o.err);
	size_t len = (size_t)(o.p - wire);
	assert_int_equal(len, 3 * 388 + 4);
	for (size_t cut = 0; cut <= len; cut++) {
		CLEANUP(arena) struct arena a;
		arena_init(&a, 1 << 20);
		struct xdr_in x = {wire, wire + cut, &a, AFS_OK};
		xdr_get_vldb_list(&x, &back);
		assert_err(x.err, cut < len ? AFS_EAGAIN : AFS_OK);
	}
	wire[3] = 2; /* neither "one more" nor "no more" */
	CLEANUP(arena) struct arena a;
	arena_init(&a, 64 << 20);
	struct xdr_in x = {wire, wire + len, &a, AFS_OK};
	xdr_get_vldb_list(&x, &back);
	assert_err(x.err, AFS_EDECODE);
	for (size_t i = 0; i < VL_LIST_MAX + 2; i++)
		be32_put(big + i * 388, 1);
	x = (struct xdr_in){big, big + sizeof(big), &a, AFS_OK};
	xdr_get_vldb_list(&x, &back);
	assert_err(x.err, AFS_EDECODE);
}

/* Codes of the protocol: vldb.md §6, protection.md §2, ubik.md §8. */
static void errors_are_the_protocols_numbers_and_come_back(void **state)
{
	(void)state;
	static const struct {
		afs_err err;
		int32_t (*of)(afs_err);
		afs_err (*back)(int32_t);
		int32_t code;
	} rows[] = {
		{AFS_EIDEXIST, abort_of_vl, NULL, 363520},
		{AFS_ENAMEEXIST, abort_of_vl, NULL, 363522},
		{AFS_ENOENT, abort_of_vl, err_of_vl, 363524},
		{AFS_EVBADTYPE, abort_of_vl, err_of_vl, 363529},
		{AFS_EVBADSERVER, abort_of_vl, err_of_vl, 363530},
		{AFS_EBADPART, abort_of_vl, err_of_vl, 363531},
		{AFS_EVREPSFULL, abort_of_vl, err_of_vl, 363532},
		{AFS_EVNOREP, abort_of_vl, err_of_vl, 363533},
		{AFS_EVDUPREP, abort_of_vl, err_of_vl, 363534},
		{AFS_EVBADBUMP, abort_of_vl, err_of_vl, 363539},
		{AFS_ELOCKED, abort_of_vl, NULL, 363541},
		{AFS_EVBADOPER, abort_of_vl, err_of_vl, 363542},
		{AFS_EVBADRELEASE, abort_of_vl, err_of_vl, 363543},
		{AFS_EVRERELEASE, abort_of_vl, err_of_vl, 363544},
		{AFS_EVBADSITEFLAG, abort_of_vl, err_of_vl, 363545},
		{AFS_EPERM, abort_of_vl, NULL, 363546},
		{AFS_ERANGE, abort_of_vl, err_of_vl, 363549},
		{AFS_EVMULTIADDR, abort_of_vl, err_of_vl, 363550},
		{AFS_EVBADMASK, abort_of_vl, err_of_vl, 363551},
		{AFS_ENAMEEXIST, abort_of_pt, NULL, 267264},
		{AFS_EIDEXIST, abort_of_pt, err_of_pt, 267265},
		{AFS_ENOIDS, abort_of_pt, err_of_pt, 267266},
		{AFS_ENOENT, abort_of_pt, err_of_pt, 267268},
		{AFS_EPERM, abort_of_pt, NULL, 267269},
		{AFS_ENOTGROUP, abort_of_pt, err_of_pt, 267270},
		{AFS_ENOTUSER, abort_of_pt, err_of_pt, 267271},
		{AFS_EBADNAME, abort_of_pt, NULL, 267272},
		{AFS_EBADARG, abort_of_pt, NULL, 267273},
		{AFS_ENOMORE, abort_of_pt, err_of_pt, 267274},
		{AFS_EGROUPEMPTY, abort_of_pt, err_of_pt, 267276},
		{AFS_EINCONSISTENT, abort_of_pt, err_of_pt, 267277},
		{AFS_ETOOMANY, abort_of_pt, NULL, 267279},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(rows[i].of(rows[i].err), rows[i].code);
		if (rows[i].back)
			assert_err(rows[i].back(rows[i].code), rows[i].err);
	}
	assert_int_equal(ubik_disk_iface.abort_of(AFS_EPERM), 10029);
	assert_int_equal(ubik_disk_iface.abort_of(AFS_EUSYNC), 5381);
	assert_int_equal(ubik_disk_iface.abort_of(AFS_EUBADHOST), 5385);
	assert_err(ubik_disk_iface.err_of(10029), AFS_EACCESS);
}

TEST_MAIN(T(opcodes_rise_and_each_is_found),
	T(every_opcode_of_the_protocol_is_a_row_or_left_out_on_purpose),
	T(every_message_comes_back_and_stops_at_every_cut),
	T(lists_of_entries_stop_at_every_cut_and_at_their_bound),
	T(errors_are_the_protocols_numbers_and_come_back))
