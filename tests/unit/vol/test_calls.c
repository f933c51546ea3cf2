/* SPDX-License-Identifier: BSD-2-Clause
 * Every call that volserver.md §5 lists is served, and who may make it is as stock servers have it. */
#include "tests/lib/test.h"

#include "cell/proto/vol.h"

enum right { ANY, SU };

/* Opcodes 65540 to 65546 and 65548 are another project's extensions that no OpenAFS release serves: -455. */
static const struct {
	uint32_t op;
	const char *name;
	enum right right;
} calls[] = {
	{100, "CreateVolume", SU}, {101, "DeleteVolume", SU}, {102, "Restore", SU}, {103, "Forward", SU},
	{104, "EndTrans", SU}, {105, "Clone", SU}, {106, "SetFlags", SU}, {107, "GetFlags", ANY},
	{108, "TransCreate", SU}, {109, "Dump", SU}, {110, "GetNthVolume", ANY}, {111, "SetForwarding", SU},
	{112, "GetName", ANY}, {113, "GetStatus", ANY}, {114, "SignalRestore", ANY}, {115, "ListPartitions", ANY},
	{116, "ListVolumes", ANY}, {117, "SetIdsTypes", SU}, {118, "Monitor", ANY}, {119, "PartitionInfo", ANY},
	{120, "ReClone", SU}, {121, "ListOneVolume", ANY}, {122, "NukeVolume", SU}, {123, "SetDate", SU},
	{124, "XListVolumes", ANY}, {125, "XListOneVolume", ANY}, {126, "SetInfo", SU}, {127, "XListPartitions", ANY},
	{128, "ForwardMultiple", SU}, {65536, "ConvertROtoRWvolume", SU}, {65537, "GetSize", SU}, {65538, "DumpV2", SU},
	{65539, "PartitionInfo64", ANY}, {65547, "SplitVolume", SU},
};

static const struct rpc_proc *served(uint32_t op)
{
	for (size_t i = 0; i < vol_iface.count; i++)
		if (vol_iface.procs[i].op == op)
			return &vol_iface.procs[i];
	return NULL;
}

static void every_call_is_served_to_whom_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct rpc_proc *p = served(calls[i].op);
		if (!p)
			fail_msg("%u %s: nobody serves it", calls[i].op, calls[i].name);
		assert_string_equal(p->name, calls[i].name);
		assert_int_equal(p->need, calls[i].right == SU ? RPC_SUPERUSER : RPC_ANYONE);
	}
	assert_int_equal(vol_iface.count, ARRAY_SIZE(calls));
}

int main(void)
{
	const struct CMUnitTest tests[] = {T(every_call_is_served_to_whom_it_should)};
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
