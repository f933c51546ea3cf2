/* SPDX-License-Identifier: BSD-2-Clause
 * Bytes of RXAFSCB and RXAFS as they were seen on the wire (callback.md §1-2, fileserver.md §2). */
#include "tests/lib/test.h"

#include "cell/proto/cb.h"
#include "cell/proto/fs.h"

static void a_uuid_is_sign_extended_and_compared_by_its_16_bytes(void **state)
{
	(void)state;
	static const uint8_t bytes[16] = {0x00, 0x5c, 0x55, 0x12, 0x12, 0x34, 0xbf, 0x12, 0x9b,
		0x41, 0x01, 0x00, 0x00, 0x7f, 0xaa, 0x77};
	struct afsUUID u = afs_uuid_from_bytes(bytes);
	uint8_t out[64];
	struct xdr_out x = {out, out + sizeof(out), AFS_OK};
	xdr_put_afsUUID(&x, &u);
	assert_ok(x.err);
	assert_hex(out, (size_t)(x.p - out),
		"005c5512 00001234 0000bf12 ffffff9b 00000041 00000001 00000000 00000000 0000007f"
		"ffffffaa 00000077");
	/* plain or sign-extended, with rubbish above a short: the same */
	struct afsUUID v = u;
	v.clock_seq_hi_and_reserved = 0x9b;
	v.node[4] = 0xaa;
	v.time_mid |= 0xffff0000;
	assert_true(afs_uuid_equal(&u, &v));
	v.node[5] = 0x76;
	assert_false(afs_uuid_equal(&u, &v));
	char text[AFS_UUID_TEXT];
	assert_string_equal(afs_uuid_text(&u, text), "005c5512-1234-bf12-9b-41-0100007faa77");
}

static void a_fresh_uuid_is_version_4_and_not_nil(void **state)
{
	(void)state;
	struct afsUUID a = afs_uuid_random(), b = afs_uuid_random();
	assert_false(afs_uuid_equal(&a, &b));
	assert_false(afs_uuid_is_nil(&a));
	assert_int_equal(a.time_hi_and_version >> 12, 4);
	assert_int_equal(a.clock_seq_hi_and_reserved & 0xc0, 0x80);
}

#define SIZE_OF(type)                                                                              \
	({                                                                                         \
		static struct type v_;                                                             \
		uint8_t out_[8192];                                                                \
		struct xdr_out x_ = {out_, out_ + sizeof(out_), AFS_OK};                           \
		xdr_put_##type(&x_, &v_);                                                          \
		assert_ok(x_.err);                                                                 \
		(size_t)(x_.p - out_);                                                             \
	})

static void structs_have_the_sizes_of_the_wire(void **state)
{
	(void)state;
	assert_int_equal(SIZE_OF(AFSFetchStatus), 84);
	assert_int_equal(SIZE_OF(AFSStoreStatus), 24);
	assert_int_equal(SIZE_OF(AFSVolSync), 24);
	assert_int_equal(SIZE_OF(AFSCallBack), 12);
	assert_int_equal(SIZE_OF(ViceStatistics), 580);
	assert_int_equal(SIZE_OF(AFSFetchVolumeStatus), 48);
	assert_int_equal(SIZE_OF(interfaceAddr), 432);
	assert_int_equal(SIZE_OF(fs_fetch_status_out), 120);
	assert_int_equal(SIZE_OF(fs_fetch_data64_out), 120);
}

static void get_call_back(
	const char *hex, struct arena *a, struct cb_call_back_in *in, afs_err want)
{
	uint8_t bytes[256];
	size_t n = test_unhex(hex, bytes, sizeof(bytes));
	arena_init(a, 1 << 16);
	struct xdr_in x = {bytes, bytes + n, a, AFS_OK};
	xdr_get_cb_call_back_in(&x, in);
	assert_err(x.err, want);
}

static void breaks_come_with_or_without_callbacks(void **state)
{
	(void)state;
	struct arena a;
	struct cb_call_back_in in;
	get_call_back("00000001 20000006 00000092 00000057 00000000", &a, &in, AFS_OK);
	assert_int_equal(in.Fids.n, 1);
	assert_int_equal(in.Fids.v[0].Unique, 0x57);
	assert_int_equal(in.CallBacks.n, 0);
	arena_fini(&a);
	get_call_back("00000001 20000006 00000000 00000000 00000001 00000001 00000000 00000003", &a,
		&in, AFS_OK);
	assert_int_equal(in.CallBacks.v[0].CallBackType, CB_DROPPED);
	arena_fini(&a);
	get_call_back("00000033", &a, &in, AFS_EDECODE); /* 51 */
	assert_int_equal(a.used, 0);
	arena_fini(&a);
	get_call_back("80000000", &a, &in, AFS_EDECODE);
	arena_fini(&a);
}

static void every_call_of_the_tables_has_its_row(void **state)
{
	(void)state;
	static const uint32_t fs[] = {130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141,
		142, 143, 144, 145, 146, 147, 149, 150, 153, 155, 156, 157, 158, 162, 164, 65536,
		65537, 65538, 65539, 65540, 65541, 65542};
	static const uint32_t cb[] = {204, 205, 206, 212, 213, 214, 65538};
	for (size_t i = 0; i < ARRAY_SIZE(fs); i++)
		assert_non_null(rpc_iface_find(&fs_iface, fs[i]));
	for (size_t i = 0; i < ARRAY_SIZE(cb); i++)
		assert_non_null(rpc_iface_find(&cb_iface, cb[i]));
	assert_null(rpc_iface_find(&fs_iface, 65551));
	assert_null(rpc_iface_find(&cb_iface, 211));
}

TEST_MAIN(T(a_uuid_is_sign_extended_and_compared_by_its_16_bytes),
	T(a_fresh_uuid_is_version_4_and_not_nil), T(structs_have_the_sizes_of_the_wire),
	T(breaks_come_with_or_without_callbacks), T(every_call_of_the_tables_has_its_row))
