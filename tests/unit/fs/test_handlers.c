/* SPDX-License-Identifier: BSD-2-Clause
 * The procedures of RXAFS, one by one: who may, what changes, what goes back (fileserver.md §3-11). */
#include "tests/unit/fs/rig.h"

#include <stdio.h>
#include <string.h>

#define UAE(n) (49733376 + (n))

/* --- status ------------------------------------------------------------------------------------ */

static void a_new_file_is_the_callers_empty_and_at_version_0(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	uint32_t dir_dv = rig_status(r, root).DataVersion;
	assert_ok(CALL(r, A, "alice", create_file,
		{.DirFid = root,
			.Name = NAME("f"),
			.InStatus = {.Mask = FS_SET_MODTIME | FS_SET_MODE,
				.ClientModTime = 12345,
				.UnixModeBits = 0640}}));
	struct fs_create_file_out *out = &r->out.create_file;
	struct AFSFetchStatus *st = &out->OutFidStatus;
	assert_int_equal(st->InterfaceVersion, 1);
	assert_int_equal(st->FileType, AFS_FILE);
	assert_int_equal(st->LinkCount, 1);
	assert_int_equal(st->Length, 0);
	assert_int_equal(st->DataVersion, 0);
	assert_int_equal(st->Owner, 100);
	assert_int_equal(st->Author, 100);
	assert_int_equal(st->UnixModeBits, 0640);
	assert_int_equal(st->ClientModTime, 12345);
	assert_int_equal(st->CallerAccess, ACL_ALL);
	assert_int_equal(st->AnonymousAccess, 0);
	assert_int_equal(st->ParentVnode, 1);
	assert_int_equal(st->ParentUnique, 1);
	assert_int_equal(st->ResidencyMask, 1);
	assert_int_equal(out->OutFid.Volume, VOL);
	assert_int_equal(out->OutFid.Vnode % 2, 0);
	assert_int_equal(out->OutDirStatus.DataVersion, dir_dv + 1);
	assert_int_equal(out->CallBack.CallBackType, CB_SHARED);
	assert_in_range(out->CallBack.ExpirationTime, 14400, 14528);
	assert_int_equal(out->Sync.spare1, 1700000000);
	rig_free(r);
}

static void a_directory_names_itself_as_its_parent(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d");
	struct AFSFetchStatus st = r->out.make_dir.OutFidStatus;
	assert_int_equal(st.FileType, AFS_DIR);
	assert_int_equal(st.ParentVnode, d.Vnode);
	assert_int_equal(st.ParentUnique, d.Unique);
	assert_int_equal(st.Length, FS_PAGE);
	assert_int_equal(st.LinkCount, 2);
	assert_int_equal(d.Vnode % 2, 1);
	assert_int_equal(rig_status(r, root).LinkCount, 3);
	rig_free(r);
}

static void impossible_fids_have_their_codes(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const struct {
		struct AFSFid fid;
		int32_t code;
	} bad[] = {{{0, 1, 1}, UAE(21)}, {{VOL, 0, 0}, UAE(21)}, {{999, 1, 1}, 103},
		{{VOL, 77, 1}, 102}, {{VOL, 1, 2}, 102}, {{VOL, 1, 0}, 102}};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(CALL(r, A, "alice", fetch_status, {bad[i].fid}) != AFS_OK);
		assert_int_equal(r->code, bad[i].code);
	}
	rig_free(r);
}

static void errors_are_plain_errnos_for_hosts_that_do_not_translate(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->world.clients[B].caps = 0;
	assert_err(
		CALL(r, A, "alice", remove_file, {.DirFid = root, .Name = NAME("no")}), AFS_ENOENT);
	assert_int_equal(r->code, UAE(1));
	assert_err(
		CALL(r, B, "alice", remove_file, {.DirFid = root, .Name = NAME("no")}), AFS_ENOENT);
	assert_int_equal(r->code, 2);
	assert_err(CALL(r, B, "alice", fetch_status, {{999, 1, 1}}), AFS_ENOVOL);
	assert_int_equal(r->code, 103);
	rig_free(r);
}

static void status_is_stored_as_far_as_the_caller_may(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "x");
	uint32_t dv = rig_status(r, f).DataVersion;

	assert_ok(CALL(r, A, "alice", store_status,
		{f, {.Mask = FS_SET_MODE, .UnixModeBits = 04755, .Owner = 77}}));
	assert_int_equal(r->out.store_status.OutStatus.UnixModeBits, 0755); /* set-id is dropped */
	assert_int_equal(r->out.store_status.OutStatus.Owner, 100);
	assert_int_equal(r->out.store_status.OutStatus.DataVersion, dv);
	assert_err(CALL(r, A, "alice", store_status, {f, {.Mask = FS_SET_OWNER, .Owner = 101}}),
		AFS_EPERM);
	assert_err(CALL(r, A, "bob", store_status, {f, {.Mask = FS_SET_MODTIME}}), AFS_EACCESS);
	assert_ok(CALL(r, A, "admin", store_status,
		{f, {.Mask = FS_SET_MODE | FS_SET_OWNER | FS_SET_GROUP,
			    .UnixModeBits = 06755,
			    .Owner = 101,
			    .Group = 9}}));
	struct AFSFetchStatus st = r->out.store_status.OutStatus;
	assert_int_equal(st.UnixModeBits, 06755);
	assert_int_equal(st.Owner, 101);
	assert_int_equal(st.Group, 9);
	rig_free(r);
}

static void a_symlinks_mode_cannot_be_stored(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	assert_ok(CALL(r, A, "alice", symlink,
		{.DirFid = root,
			.Name = NAME("l"),
			.LinkContents = NAME("to/there"),
			.InStatus = {8, 0, 0, 0, 0755, 0}}));
	struct AFSFid l = r->out.symlink.OutFid;
	assert_int_equal(r->out.symlink.OutFidStatus.FileType, AFS_SYMLINK);
	assert_int_equal(r->out.symlink.OutFidStatus.Length, 8);
	assert_err(
		CALL(r, A, "alice", store_status, {l, {.Mask = FS_SET_MODE, .UnixModeBits = 0644}}),
		AFS_EINVAL);
	CLEANUP(str) char *text = rig_read(r, l);
	assert_string_equal(text, "to/there");
	rig_free(r);
}

/* --- data -------------------------------------------------------------------------------------- */

static void what_was_stored_is_fetched(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	enum { N = 300000 };
	CLEANUP(heap) char *big = mem_alloc(N + 1, 1);
	for (size_t i = 0; i < N; i++)
		big[i] = (char)('a' + i * 7 % 26);
	struct AFSFid f = rig_file(r, root, "f", big);
	assert_int_equal(r->out.store_data64.OutStatus.Length, N);
	assert_int_equal(r->out.store_data64.OutStatus.DataVersion, 1);
	CLEANUP(str) char *got = rig_read(r, f);
	assert_int_equal(strlen(got), N);
	assert_memory_equal(got, big, N);
	rig_free(r);
}

static void stores_follow_pos_length_and_file_length(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "hello");
	assert_ok(rig_store(r, A, "alice", f, 3, "XY", 2, 100)); /* FileLength never extends */
	assert_int_equal(r->out.store_data64.OutStatus.Length, 5);
	assert_ok(rig_store(r, A, "alice", f, 2, "", 0, 2)); /* truncate */
	assert_int_equal(r->out.store_data64.OutStatus.Length, 2);
	assert_ok(rig_store(r, A, "alice", f, 4, "", 0, 4)); /* extend */
	assert_int_equal(r->out.store_data64.OutStatus.Length, 4);
	assert_int_equal(r->out.store_data64.OutStatus.DataVersion, 4);
	assert_ok(rig_store(r, A, "alice", f, 6, "z", 1, 7)); /* a hole */
	assert_ok(CALL(r, A, "alice", fetch_data, {.Fid = f, .Pos = 0, .Len = 100}));
	assert_hex(r->call.out.data, r->call.out.len, "00000007 6865 00000000 7a");
	rig_free(r);
}

static void a_fetch_past_the_end_has_length_0(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "hello");
	assert_ok(CALL(r, A, "alice", fetch_data64, {.Fid = f, .Pos = 5, .Len = 10}));
	assert_hex(r->call.out.data, r->call.out.len, "0000000000000000");
	assert_ok(CALL(r, A, "alice", fetch_data, {.Fid = f, .Pos = 3, .Len = 10}));
	assert_hex(r->call.out.data, r->call.out.len, "00000002 6c6f");
	assert_int_equal(r->out.fetch_data.OutStatus.Length, 5);
	assert_int_equal(r->out.fetch_data.CallBack.CallBackType, CB_SHARED);
	rig_free(r);
}

/* K06, K07, K08 */
static void impossible_ranges_are_efbig_and_harm_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "marker");
	static const struct {
		int64_t pos, len;
	} bad[] = {{-1, 1}, {1, -1}, {INT64_MAX, 1}, {INT64_MIN, INT64_MIN}, {1, INT64_MAX}};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_err(
			CALL(r, A, "alice", fetch_data64, {f, bad[i].pos, bad[i].len}), AFS_EFBIG);
		assert_int_equal(r->code, UAE(26));
	}
	assert_err(CALL(r, A, "alice", fetch_data, {f, -1, 1}), AFS_EFBIG);
	assert_err(CALL(r, A, "alice", fetch_data, {f, INT32_MAX, 1}), AFS_EFBIG);
	static const struct fs_store_data_in stores[] = {
		{.Pos = INT32_MAX, .Length = 2, .FileLength = 6},
		{.Pos = 0, .Length = 1, .FileLength = 0x80000000u},
		{.Pos = 0xffffffffu, .Length = 2}, {.Pos = 1, .Length = 0xffffffffu}};
	for (size_t i = 0; i < ARRAY_SIZE(stores); i++) {
		struct fs_store_data_in in = stores[i];
		in.Fid = f;
		assert_true(rig_call(r, A, "alice", fs_op_store_data, &in) != AFS_OK);
		assert_int_equal(r->code, 27); /* not translated */
	}
	assert_err(rig_store(r, A, "alice", f, UINT64_MAX, "x", 1, 1), AFS_EFBIG);
	assert_err(rig_store(r, A, "alice", f, INT64_MAX, "x", 1, 1), AFS_EFBIG);
	CLEANUP(str) char *text = rig_read(r, f);
	assert_string_equal(text, "marker");
	struct fileserver_stats s;
	fileserver_stats(r->fs, &s);
	assert_int_equal(s.refused_ranges, 13);
	rig_free(r);
}

/* K06 */
static void markers_around_2_and_4_gib_are_where_they_were_put(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "");
	static const uint64_t at[] = {(1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1,
		(1ull << 32) - 1, 1ull << 32, (1ull << 32) + 1};
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		assert_ok(rig_store(r, A, "alice", f, at[i], &"ABCDEF"[i], 1, at[i] + 1));
	struct AFSFetchStatus st = rig_status(r, f);
	assert_int_equal(fs_status_length(&st), (1ull << 32) + 2);
	assert_int_equal(st.Length, 2);
	assert_int_equal(st.Length_hi, 1);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		assert_ok(CALL(r, A, "alice", fetch_data64, {f, (int64_t)at[i], 1}));
		assert_int_equal(r->call.out.len, 9);
		assert_int_equal(r->call.out.data[8], "ABCDEF"[i]);
	}
	assert_ok(CALL(r, A, "alice", fetch_data, {f, 5, 3})); /* below 2 GiB the old call works */
	assert_hex(r->call.out.data, r->call.out.len, "00000003 000000");
	rig_free(r);
}

static void a_store_that_ends_early_or_dies_changes_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "whole");
	static const afs_err ends[] = {AFS_OK, AFS_EDEAD, AFS_EABORTED};
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		rig_watch(r, B, f);
		r->send = "par";
		r->send_len = 3;
		r->send_zeros = 5000;
		r->send_end = ends[i];
		assert_err(CALL(r, A, "alice", store_data64,
				   {.Fid = f, .Length = 20000, .FileLength = 20000}),
			ends[i] == AFS_OK ? AFS_EEOF : ends[i]);
		assert_diary(&r->world, "");
		CLEANUP(str) char *text = rig_read(r, f);
		assert_string_equal(text, "whole");
		assert_int_equal(rig_status(r, f).DataVersion, 1);
	}
	rig_free(r);
}

/* A call that began long ago and has hardly sent anything: a byte per run would go on for ever. */
static void a_store_that_is_fed_byte_by_byte_is_refused(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "whole");
	r->send_zeros = 1 << 20;
	r->ahead_ns = -SEC(61);
	assert_ok(CALL(
		r, A, "alice", store_data64, {.Fid = f, .Length = 1 << 20, .FileLength = 1 << 20}));
	r->send_zeros = 1 << 20;
	r->ahead_ns = -SEC(3600);
	assert_err(CALL(r, A, "alice", store_data64,
			   {.Fid = f, .Length = 1 << 20, .FileLength = 1 << 20}),
		AFS_ETIMEDOUT);
	assert_int_equal(rig_status(r, f).DataVersion, 2);
	rig_free(r);
}

static void content_is_stored_in_files_only(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d");
	assert_err(rig_store(r, A, "alice", d, 0, "x", 1, 1), AFS_EISDIR);
	assert_int_equal(r->code, UAE(20));
	assert_ok(CALL(r, A, "alice", symlink,
		{.DirFid = root, .Name = NAME("l"), .LinkContents = NAME("x")}));
	assert_err(rig_store(r, A, "alice", r->out.symlink.OutFid, 0, "x", 1, 1), AFS_EISDIR);
	rig_free(r);
}

static void a_store_takes_set_id_away_unless_an_administrator_stores(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "x");
	assert_ok(CALL(
		r, A, "admin", store_status, {f, {.Mask = FS_SET_MODE, .UnixModeBits = 06755}}));
	assert_ok(rig_store(r, A, "admin", f, 0, "y", 1, 1));
	assert_int_equal(r->out.store_data64.OutStatus.UnixModeBits, 06755);
	assert_ok(rig_store(r, A, "alice", f, 0, "y", 1, 1));
	assert_int_equal(r->out.store_data64.OutStatus.UnixModeBits, 0755);
	rig_free(r);
}

static void a_directory_object_is_fetched_whole(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	rig_file(r, root, "secret-plan.txt", "");
	assert_ok(CALL(r, A, "alice", fetch_data64, {root, 0, FS_PAGE}));
	assert_int_equal(r->call.out.len, 8 + FS_PAGE);
	assert_int_equal(be16_get(r->call.out.data + 8 + 2), 1234);
	assert_non_null(memmem(r->call.out.data, r->call.out.len, "secret-plan", 11));
	/* K04: a removed name leaves nothing */
	assert_ok(CALL(
		r, A, "alice", remove_file, {.DirFid = root, .Name = NAME("secret-plan.txt")}));
	assert_ok(CALL(r, A, "bob", fetch_data64, {root, 0, FS_PAGE}));
	assert_null(memmem(r->call.out.data, r->call.out.len, "secret", 6));
	rig_free(r);
}

/* --- names ------------------------------------------------------------------------------------- */

static void names_that_cannot_be_are_refused_by_every_call(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "");
	CLEANUP(heap) char *long_name = mem_alloc(257, 1);
	memset(long_name, 'n', 256);
	const struct {
		struct xdr_str name;
		afs_err make, remove;
	} bad[] = {{NAME(""), AFS_EINVAL, AFS_EINVAL}, {NAME("."), AFS_EINVAL, AFS_EINVAL},
		{NAME(".."), AFS_EINVAL, AFS_EINVAL}, {NAME("a/b"), AFS_EINVAL, AFS_EINVAL},
		{NAME("/"), AFS_EINVAL, AFS_EINVAL}, {NAME("x@sys"), AFS_EINVAL, AFS_ENOENT},
		{{long_name, 256}, AFS_ENAMETOOLONG, AFS_ENAMETOOLONG}};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct xdr_str n = bad[i].name;
		assert_err(
			CALL(r, A, "alice", create_file, {.DirFid = root, .Name = n}), bad[i].make);
		assert_err(CALL(r, A, "alice", make_dir, {.DirFid = root, .Name = n}), bad[i].make);
		assert_err(CALL(r, A, "alice", symlink,
				   {.DirFid = root, .Name = n, .LinkContents = NAME("x")}),
			bad[i].make);
		assert_err(CALL(r, A, "alice", link, {.DirFid = root, .Name = n, .ExistingFid = f}),
			bad[i].make);
		assert_err(CALL(r, A, "alice", rename, {root, NAME("f"), root, n}), bad[i].make);
		assert_err(CALL(r, A, "alice", rename, {root, n, root, NAME("g")}), bad[i].remove);
		assert_err(CALL(r, A, "alice", remove_file, {.DirFid = root, .Name = n}),
			bad[i].remove);
		assert_err(CALL(r, A, "alice", remove_dir, {.DirFid = root, .Name = n}),
			bad[i].remove);
	}
	long_name[255] = 0; /* K03: 255 works everywhere */
	struct xdr_str n = XDR_STR_OF(long_name);
	assert_ok(CALL(r, A, "alice", create_file, {.DirFid = root, .Name = n}));
	assert_ok(CALL(r, A, "alice", rename, {root, n, root, NAME("short")}));
	assert_ok(CALL(r, A, "alice", rename, {root, NAME("short"), root, n}));
	assert_ok(CALL(r, A, "alice", remove_file, {.DirFid = root, .Name = n}));
	rig_free(r);
}

static void the_errors_of_names_are_the_protocols(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", ""), d = rig_dir(r, root, "d");
	rig_file(r, d, "inside", "");
	assert_err(
		CALL(r, A, "alice", create_file, {.DirFid = root, .Name = NAME("f")}), AFS_EEXIST);
	assert_int_equal(r->code, UAE(16));
	assert_err(CALL(r, A, "alice", create_file, {.DirFid = f, .Name = NAME("x")}), AFS_ENOTDIR);
	assert_err(
		CALL(r, A, "alice", remove_file, {.DirFid = root, .Name = NAME("d")}), AFS_EISDIR);
	assert_err(
		CALL(r, A, "alice", remove_dir, {.DirFid = root, .Name = NAME("f")}), AFS_ENOTDIR);
	assert_err(CALL(r, A, "alice", remove_dir, {.DirFid = root, .Name = NAME("d")}),
		AFS_ENOTEMPTY);
	assert_int_equal(r->code, UAE(16)); /* EEXIST */
	assert_err(
		CALL(r, A, "bob", create_file, {.DirFid = root, .Name = NAME("b")}), AFS_EACCESS);
	assert_int_equal(r->code, UAE(12));
	rig_free(r);
}

/* K09 */
static void every_change_of_a_directory_moves_its_version_by_one(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d"), e = rig_dir(r, root, "e");
	uint32_t v = rig_status(r, d).DataVersion, w = rig_status(r, e).DataVersion;
	assert_int_equal(v, 0);
	struct AFSFid f = rig_file(r, d, "f", "");
	assert_int_equal(r->out.create_file.OutDirStatus.DataVersion, ++v);
	assert_ok(CALL(r, A, "alice", link, {.DirFid = d, .Name = NAME("g"), .ExistingFid = f}));
	assert_int_equal(r->out.link.OutDirStatus.DataVersion, ++v);
	assert_int_equal(r->out.link.OutFidStatus.DataVersion, 0);
	assert_int_equal(r->out.link.OutFidStatus.LinkCount, 2);
	assert_ok(CALL(r, A, "alice", symlink,
		{.DirFid = d, .Name = NAME("s"), .LinkContents = NAME("x")}));
	assert_int_equal(r->out.symlink.OutDirStatus.DataVersion, ++v);
	struct AFSFid sub = rig_dir(r, d, "sub");
	assert_int_equal(r->out.make_dir.OutDirStatus.DataVersion, ++v);
	assert_ok(CALL(r, A, "alice", rename, {d, NAME("g"), d, NAME("h")}));
	assert_int_equal(r->out.rename.OutOldDirStatus.DataVersion, ++v);
	assert_int_equal(r->out.rename.OutNewDirStatus.DataVersion, v);
	assert_ok(CALL(r, A, "alice", rename, {d, NAME("sub"), e, NAME("sub")}));
	assert_int_equal(r->out.rename.OutOldDirStatus.DataVersion, ++v);
	assert_int_equal(r->out.rename.OutNewDirStatus.DataVersion, ++w);
	assert_int_equal(rig_status(r, sub).DataVersion, 1); /* its ".." moved */
	assert_ok(CALL(r, A, "alice", remove_file, {.DirFid = d, .Name = NAME("h")}));
	assert_int_equal(r->out.remove_file.OutDirStatus.DataVersion, ++v);
	assert_ok(CALL(r, A, "alice", remove_dir, {.DirFid = e, .Name = NAME("sub")}));
	assert_int_equal(r->out.remove_dir.OutDirStatus.DataVersion, ++w);
	assert_ok(CALL(
		r, A, "alice", store_status, {d, {.Mask = FS_SET_MODE, .UnixModeBits = 0700}}));
	assert_int_equal(r->out.store_status.OutStatus.DataVersion, v);
	rig_acl(r, d, "1\n0\nalice\t127\n");
	assert_int_equal(rig_status(r, d).DataVersion, v);
	rig_free(r);
}

/* K12 */
static void hard_links_stay_in_their_directory(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d"), f = rig_file(r, root, "f", "data");
	assert_err(CALL(r, A, "alice", link, {.DirFid = d, .Name = NAME("g"), .ExistingFid = f}),
		AFS_EXDEV);
	assert_int_equal(r->code, UAE(17));
	assert_err(CALL(r, A, "alice", link,
			   {.DirFid = root, .Name = NAME("g"), .ExistingFid = {9, 2, 2}}),
		AFS_EXDEV);
	assert_err(CALL(r, A, "alice", link, {.DirFid = root, .Name = NAME("g"), .ExistingFid = d}),
		AFS_EISDIR);
	assert_ok(CALL(r, A, "alice", link, {.DirFid = root, .Name = NAME("g"), .ExistingFid = f}));
	assert_err(CALL(r, A, "alice", rename, {root, NAME("g"), d, NAME("g")}), AFS_EXDEV);
	assert_ok(CALL(r, A, "alice", remove_file, {.DirFid = root, .Name = NAME("f")}));
	CLEANUP(str) char *text = rig_read(r, f);
	assert_string_equal(text, "data");
	assert_int_equal(rig_status(r, f).LinkCount, 1);
	rig_free(r);
}

/* K13 */
static void renames_are_refused_where_the_protocol_says(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d"), e = rig_dir(r, d, "e");
	rig_file(r, root, "f", "");
	rig_file(r, e, "inside", "");
	rig_volume(r, 6, "other", AFS_VOL_RW);
	assert_err(CALL(r, A, "alice", rename, {root, NAME("f"), {6, 1, 1}, NAME("f")}), AFS_EXDEV);
	assert_err(CALL(r, A, "alice", rename, {root, NAME("no"), d, NAME("x")}), AFS_ENOENT);
	assert_err(CALL(r, A, "alice", rename, {root, NAME("f"), root, NAME("f")}), AFS_EINVAL);
	assert_err(CALL(r, A, "alice", rename, {root, NAME("f"), root, NAME("d")}), AFS_EISDIR);
	assert_err(CALL(r, A, "alice", rename, {root, NAME("d"), root, NAME("f")}), AFS_ENOTDIR);
	assert_err(CALL(r, A, "alice", rename, {root, NAME("d"), e, NAME("x")}), AFS_ELOOP);
	assert_int_equal(r->code, 49733415);
	assert_err(CALL(r, A, "alice", rename, {root, NAME("d"), d, NAME("x")}), AFS_ELOOP);
	rig_dir(r, root, "z");
	assert_err(CALL(r, A, "alice", rename, {root, NAME("z"), d, NAME("e")}), AFS_ENOTEMPTY);
	rig_free(r);
}

static void replacing_takes_delete_in_the_new_directory(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d");
	rig_file(r, root, "f", "new");
	rig_file(r, d, "g", "old");
	rig_acl(r, d, "1\n0\nalice\t15\n"); /* rwil */
	assert_err(CALL(r, A, "alice", rename, {root, NAME("f"), d, NAME("g")}), AFS_EACCESS);
	assert_ok(CALL(r, A, "alice", rename, {root, NAME("f"), d, NAME("h")}));
	rig_free(r);
}

static void a_replaced_empty_directory_is_gone_and_not_counted(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	rig_dir(r, root, "a");
	struct AFSFid b = rig_dir(r, root, "b");
	assert_int_equal(rig_status(r, root).LinkCount, 4);
	assert_ok(CALL(r, A, "alice", rename, {root, NAME("a"), root, NAME("b")}));
	assert_int_equal(r->out.rename.OutNewDirStatus.LinkCount, 3);
	assert_err(CALL(r, A, "alice", fetch_status, {b}), AFS_ENOVNODE);
	rig_free(r);
}

static void a_mount_point_takes_administer(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d");
	rig_acl(r, d, "1\n0\nalice\t63\n"); /* all but a */
	struct fs_symlink_in mp = {d, NAME("mp"), NAME("#root.cell."), {8, 0, 0, 0, 0644, 0}};
	assert_err(rig_call(r, A, "alice", fs_op_symlink, &mp), AFS_EACCESS);
	mp.InStatus.UnixModeBits = 0755; /* as a plain link it is fine */
	assert_ok(rig_call(r, A, "alice", fs_op_symlink, &mp));
	rig_acl(r, d, "1\n0\nalice\t127\n");
	mp.InStatus.UnixModeBits = 0644;
	mp.Name = (struct xdr_str)NAME("mp2");
	assert_ok(rig_call(r, A, "alice", fs_op_symlink, &mp));
	assert_int_equal(r->out.symlink.OutFidStatus.FileType, AFS_SYMLINK);
	assert_int_equal(r->out.symlink.OutFidStatus.UnixModeBits, 0644);
	assert_int_equal(r->out.symlink.OutFidStatus.Length, 11);
	rig_free(r);
}

/* --- ACLs -------------------------------------------------------------------------------------- */

#define ACL_OF(s)                                                                                  \
	{                                                                                          \
		(const uint8_t *)(s), sizeof(s)                                                    \
	}

static void an_acl_comes_back_as_names_and_a_file_has_its_directorys(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d"), f = rig_file(r, d, "f", "");
	static const char text[] = "2\n1\nsystem:administrators\t127\nalice\t127\nbob\t2\n";
	assert_ok(CALL(r, A, "alice", store_acl, {d, ACL_OF(text)}));
	assert_int_equal(r->out.store_acl.OutStatus.FileType, AFS_DIR);
	struct AFSFid both[] = {d, f};
	for (size_t i = 0; i < 2; i++) {
		assert_ok(CALL(r, A, "alice", fetch_acl, {both[i]}));
		struct xdr_bytes got = r->out.fetch_acl.AccessList;
		assert_int_equal(got.len, sizeof(text));
		assert_memory_equal(got.p, text, sizeof(text));
	}
	assert_err(CALL(r, A, "alice", store_acl, {f, ACL_OF("0\n0\n")}), AFS_ENOTDIR);
	rig_free(r);
}

static void a_new_directory_has_its_parents_acl(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d");
	rig_acl(r, d, "1\n1\nalice\t127\nbob\t9\n");
	struct AFSFid e = rig_dir(r, d, "e");
	assert_ok(CALL(r, A, "alice", fetch_acl, {e}));
	assert_string_equal(
		(const char *)r->out.fetch_acl.AccessList.p, "1\n1\nalice\t127\nbob\t9\n");
	rig_free(r);
}

/* K14 */
static void a_bad_acl_changes_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const struct {
		struct xdr_bytes acl;
		afs_err err;
	} bad[] = {{ACL_OF("1\n0\nnobody-we-know\t1\n"), AFS_EINVAL},
		{ACL_OF("1\n0\nanonymous\t1\n"), AFS_EINVAL},
		{ACL_OF("1\n0\n32767\t1\n"), AFS_EINVAL},
		{ACL_OF("2\n0\nalice\t1\nalice\t2\n"), AFS_EINVAL},
		{{(const uint8_t *)"1\n0\nalice 127", 13}, AFS_EINVAL}, {{NULL, 0}, AFS_EINVAL},
		{ACL_OF("21\n0\n"), AFS_EINVAL}, {ACL_OF("1\n0\nalice\t1\nbob\t2\n"), AFS_EINVAL}};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_err(CALL(r, A, "alice", store_acl, {root, bad[i].acl}), bad[i].err);
		assert_err(CALL(r, A, "alice", old_store_acl, {root, bad[i].acl}), bad[i].err);
	}
	assert_ok(CALL(r, A, "alice", fetch_acl, {root}));
	assert_string_equal((const char *)r->out.fetch_acl.AccessList.p,
		"3\n0\nsystem:administrators\t127\nalice\t127\nbob\t9\n");
	rig_free(r);
}

static void an_id_without_a_name_is_shown_as_a_number(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct vs_volume *v;
	assert_ok(vs_volume_enter(r->store, VOL, &v));
	struct vs_acl acl = {2, 0, {{100, ACL_ALL}, {4711, 9}}};
	struct vs_who who = {clk_wall(), 1};
	struct vs_status st;
	assert_ok(vs_set_acl(v, (struct vs_fid){1, 1}, &acl, &who, &st));
	vs_volume_unref(v);
	assert_ok(CALL(r, A, "alice", fetch_acl, {root}));
	assert_string_equal(
		(const char *)r->out.fetch_acl.AccessList.p, "2\n0\nalice\t127\n4711\t9\n");
	rig_free(r);
}

static void the_old_number_of_store_acl_can_be_refused(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	assert_ok(CALL(r, A, "alice", old_store_acl, {root, ACL_OF("1\n0\nalice\t127\n")}));
	r->fs->config.refuse_old_store_acl = true;
	assert_err(CALL(r, A, "alice", old_store_acl, {root, ACL_OF("1\n0\nalice\t127\n")}),
		AFS_EPERM);
	assert_ok(CALL(r, A, "alice", store_acl, {root, ACL_OF("1\n0\nalice\t127\n")}));
	rig_free(r);
}

/* --- what breaks what (callback.md §3): A acts, B and C watch -------------------------------------- */

static void changes_break_what_the_protocol_says(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid d = rig_dir(r, root, "d"), e = rig_dir(r, root, "e");
	struct AFSFid f = rig_file(r, d, "f", "x");
	char want[200];
#define B_HEARS(...) (snprintf(want, sizeof(want), __VA_ARGS__), want)
#define F(x) (x).Vnode, (x).Unique

	rig_watch(r, A, f);
	rig_watch(r, B, f);
	rig_watch(r, B, d);
	assert_ok(rig_store(r, A, "alice", f, 0, "y", 1, 1));
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(f)));
	assert_ok(rig_store(r, A, "alice", f, 0, "y", 1, 1)); /* B has not asked again */
	assert_diary(&r->world, "");

	rig_watch(r, B, f);
	assert_ok(CALL(r, A, "alice", store_status, {f, {0}})); /* also when nothing changes */
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(f)));

	rig_watch(r, B, d);
	struct AFSFid g = rig_file(r, d, "g", "");
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(d)));

	rig_watch(r, B, d);
	rig_watch(r, B, f);
	assert_ok(CALL(r, A, "alice", link, {d, NAME("f2"), f}));
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u 5.%u.%u\n", F(d), F(f)));

	rig_watch(r, A, f);
	rig_watch(r, B, d);
	rig_watch(r, B, f);
	assert_ok(CALL(
		r, A, "alice", remove_file, {d, NAME("f2")})); /* a link remains: A hears too */
	CLEANUP(str) char *told = fake_diary(&r->world);
	assert_non_null(strstr(told, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(f))));
	assert_non_null(strstr(told, B_HEARS("break 10.0.0.1:7001 5.%u.%u\n", F(f))));
	assert_non_null(strstr(told, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(d))));

	rig_watch(r, A, g);
	rig_watch(r, B, d);
	rig_watch(r, B, g);
	assert_ok(CALL(r, A, "alice", remove_file, {d, NAME("g")})); /* the last link: d alone */
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(d)));

	rig_watch(r, B, d);
	rig_watch(r, B, e);
	rig_watch(r, B, f);
	assert_ok(CALL(r, A, "alice", rename, {d, NAME("f"), e, NAME("f")}));
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u 5.%u.%u\n", F(d), F(e)));

	rig_watch(r, B, e);
	assert_ok(CALL(r, A, "alice", rename, {e, NAME("f"), e, NAME("f1")})); /* within one */
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(e)));

	struct AFSFid sub = rig_dir(r, d, "sub");
	rig_watch(r, A, sub);
	assert_ok(CALL(
		r, A, "alice", rename, {d, NAME("sub"), e, NAME("sub")})); /* ".." moves: A hears */
	assert_diary(&r->world, B_HEARS("break 10.0.0.1:7001 5.%u.%u\n", F(sub)));

	rig_watch(r, B, e);
	rig_watch(r, B, sub);
	assert_ok(CALL(r, A, "alice", remove_dir, {e, NAME("sub")}));
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(e)));

	rig_watch(r, A, e);
	rig_watch(r, B, e);
	assert_ok(CALL(r, A, "alice", store_acl, {e, ACL_OF("1\n0\nalice\t127\n")}));
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(e)));

	rig_watch(r, B, f);
	assert_ok(CALL(r, A, "alice", set_lock, {f, FS_LOCK_READ}));
	assert_diary(&r->world, "");
	assert_ok(CALL(r, A, "alice", release_lock, {f}));
	assert_diary(&r->world, B_HEARS("break 10.0.0.2:7001 5.%u.%u\n", F(f)));
	rig_free(r);
}

static void refused_changes_break_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "x");
	rig_watch(r, B, f);
	rig_watch(r, B, root);
	assert_err(rig_store(r, A, "bob", f, 0, "y", 1, 1), AFS_EACCESS);
	assert_err(CALL(r, A, "bob", remove_file, {root, NAME("f")}), AFS_EACCESS);
	assert_err(
		CALL(r, A, "alice", create_file, {.DirFid = root, .Name = NAME("f")}), AFS_EEXIST);
	assert_diary(&r->world, "");
	rig_free(r);
}

static void a_refused_caller_is_promised_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "x");
	assert_err(CALL(r, B, NULL, fetch_status, {f}), AFS_EACCESS);
	assert_err(CALL(r, B, NULL, fetch_data64, {f, 0, 1}), AFS_EACCESS);
	mem_free(fake_diary(&r->world));
	assert_ok(rig_store(r, A, "alice", f, 0, "y", 1, 1));
	assert_diary(&r->world, "");
	rig_free(r);
}

static void promises_given_back_are_not_broken(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "x");
	struct AFSCallBack two[2] = {{0}};
	rig_watch(r, B, f);
	assert_err(CALL(r, B, NULL, give_up_call_backs, {{&f, 1}, {two, 2}}), AFS_EINVAL);
	assert_ok(CALL(r, B, NULL, give_up_call_backs, {{&f, 1}, {NULL, 0}}));
	mem_free(fake_diary(&r->world));
	assert_ok(rig_store(r, A, "alice", f, 0, "y", 1, 1));
	assert_diary(&r->world, "");
	rig_watch(r, B, f);
	assert_ok(CALL(r, B, NULL, give_up_all_call_backs, {}));
	assert_ok(rig_store(r, A, "alice", f, 0, "y", 1, 1));
	assert_diary(&r->world, "");
	rig_free(r);
}

/* --- bulk -------------------------------------------------------------------------------------- */

/* K10 */
static void inline_bulk_has_an_error_per_object(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid good = rig_file(r, root, "good", "x"), hidden_dir = rig_dir(r, root, "h");
	struct AFSFid hidden = rig_file(r, hidden_dir, "hidden", ""),
		      dead = rig_file(r, root, "dead", "");
	assert_ok(CALL(r, A, "alice", remove_file, {root, NAME("dead")}));
	rig_acl(r, hidden_dir, "1\n0\nalice\t127\n");
	struct AFSFid wrong = good;
	wrong.Unique += 1000;
	struct AFSFid fids[] = {dead, {999, 1, 1}, good, hidden, wrong, {0, 0, 0}, root};
	static const uint32_t codes[] = {102, 103, 0, UAE(12), 102, UAE(21), 0};
	assert_ok(CALL(r, A, "bob", inline_bulk_status, {{fids, 7}}));
	struct fs_inline_bulk_status_out *out = &r->out.inline_bulk_status;
	assert_int_equal(out->Statuses.n, 7);
	assert_int_equal(out->CallBacks.n, 7);
	for (size_t i = 0; i < 7; i++) {
		struct AFSFetchStatus *st = &out->Statuses.v[i];
		assert_int_equal(st->InterfaceVersion, 1);
		assert_int_equal(st->errorCode, codes[i]);
		if (codes[i]) {
			static const struct AFSCallBack none;
			struct AFSFetchStatus rest = {.InterfaceVersion = 1, .errorCode = codes[i]};
			assert_memory_equal(st, &rest, sizeof(rest));
			assert_memory_equal(&out->CallBacks.v[i], &none, sizeof(none));
		} else {
			assert_in_range(out->CallBacks.v[i].ExpirationTime, 1800, 1927);
		}
	}
	assert_int_equal(out->Sync.spare1, 1700000000);
	assert_err(CALL(r, A, "bob", bulk_status, {{fids, 7}}), AFS_ENOVNODE);
	assert_int_equal(r->code, 102);
	assert_ok(CALL(r, A, "bob", bulk_status, {{&good, 1}}));
	assert_int_equal(r->out.bulk_status.Statuses.n, 1);
	assert_true(CALL(r, A, "bob", bulk_status, {{NULL, 0}}) != AFS_OK);
	assert_int_equal(r->code, 22);
	assert_true(CALL(r, A, "bob", inline_bulk_status, {{NULL, 0}}) != AFS_OK);
	assert_int_equal(r->code, 22);
	rig_free(r);
}

/* --- locks ------------------------------------------------------------------------------------- */

static void locks_count_readers_or_one_writer(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "x");
	assert_err(CALL(r, A, "alice", extend_lock, {f}), AFS_EINVAL);
	assert_err(CALL(r, A, "alice", set_lock, {f, 2}), AFS_EINVAL);
	assert_err(CALL(r, A, "bob", set_lock, {f, FS_LOCK_READ}), AFS_EACCESS);
	assert_ok(CALL(r, A, "alice", set_lock, {f, FS_LOCK_READ}));
	assert_int_equal(r->out.set_lock.Sync.spare1, 1700000000);
	assert_ok(CALL(r, B, "alice", set_lock, {f, FS_LOCK_READ}));
	assert_int_equal(rig_status(r, f).lockCount, 2);
	assert_err(CALL(r, A, "alice", set_lock, {f, FS_LOCK_WRITE}), AFS_EAGAIN);
	assert_int_equal(r->code, 49733386);
	for (int i = 0; i < 3; i++) /* never fails for lack of a lock */
		assert_ok(CALL(r, A, "alice", release_lock, {f}));
	assert_ok(CALL(r, A, "alice", set_lock, {f, FS_LOCK_WRITE}));
	assert_int_equal(rig_status(r, f).lockCount, 0xffffffff);
	assert_err(CALL(r, B, "alice", set_lock, {f, FS_LOCK_READ}), AFS_EAGAIN);
	r->ahead_ns = SEC(299);
	assert_ok(CALL(r, A, "alice", old_extend_lock, {.Fid = f}));
	r->ahead_ns = SEC(590);
	assert_int_equal(rig_status(r, f).lockCount, 0xffffffff);
	r->ahead_ns = SEC(601);
	assert_int_equal(rig_status(r, f).lockCount, 0);
	assert_ok(CALL(r, B, "alice", old_set_lock, {.Fid = f, .Type = FS_LOCK_WRITE}));
	assert_ok(CALL(r, B, "alice", old_release_lock, {.Fid = f}));
	assert_ok(CALL(r, A, "alice", set_lock, {f, FS_LOCK_WRITE}));
	rig_free(r);
}

static void a_removed_file_takes_its_lock_along(void **state)
{
	(void)state;
	struct fs_locks *l = fs_locks_new();
	struct AFSFid f = {5, 2, 2};
	assert_ok(fs_locks_set(l, &f, true, 0));
	fs_locks_drop(l, &f);
	assert_int_equal(fs_locks_count(l, &f, 0), 0);
	/* bounded: the table refuses when it is full of live locks, and takes the room of dead ones */
	for (uint32_t i = 0; i < FS_LOCKS_MAX; i++)
		assert_ok(fs_locks_set(l, &(struct AFSFid){5, 2 * i, 1}, true, 0));
	assert_err(fs_locks_set(l, &(struct AFSFid){6, 2, 1}, true, 0), AFS_EAGAIN);
	assert_ok(fs_locks_set(l, &(struct AFSFid){6, 2, 1}, true, SEC(301)));
	fs_locks_free(l);
}

/* --- volumes ----------------------------------------------------------------------------------- */

static void a_volume_that_never_changes_refuses_changes_and_has_one_promise(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	rig_volume(r, 7, "test.readonly", AFS_VOL_RO);
	struct AFSFid ro = {7, 1, 1};
	assert_err(CALL(r, A, "alice", create_file, {.DirFid = ro, .Name = NAME("x")}), AFS_EROFS);
	assert_int_equal(r->code, 49733405);
	assert_err(CALL(r, A, "alice", store_status, {ro, {0}}), AFS_EROFS);
	assert_err(CALL(r, A, "alice", store_acl, {ro, ACL_OF("0\n0\n")}), AFS_EROFS);
	assert_err(CALL(r, A, "alice", set_lock, {ro, FS_LOCK_WRITE}), AFS_EROFS);
	assert_ok(CALL(r, A, "alice", set_lock, {ro, FS_LOCK_READ}));
	assert_int_equal(r->out.set_lock.Sync.spare1, 0);
	assert_ok(CALL(r, A, "alice", extend_lock, {ro}));
	assert_ok(CALL(r, A, "alice", release_lock, {ro}));
	assert_int_equal(r->out.fetch_status.OutStatus.lockCount, 0);
	assert_ok(CALL(r, A, "alice", fetch_status, {ro}));
	assert_in_range(r->out.fetch_status.CallBack.ExpirationTime, 7200, 7327);
	mem_free(fake_diary(&r->world));
	fileserver_volume_changed(r->fs, 7);
	cb_housekeep(r->fs->cb, clk_mono());
	assert_diary(&r->world, "break 10.0.0.1:7001 7.0.0\n");
	rig_free(r);
}

static void a_claimed_volume_is_busy_or_offline(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct vs_volume *v;
	assert_ok(vs_volume_find(r->store, NULL, VOL, &v));
	assert_ok(vs_volume_claim(v, VS_CLAIM_BUSY));
	assert_err(CALL(r, A, "alice", fetch_status, {root}), AFS_EVBUSY);
	assert_int_equal(r->code, 110);
	assert_ok(vs_volume_claim(v, VS_FREE));
	assert_ok(vs_volume_claim(v, VS_CLAIM_OFF));
	assert_err(CALL(r, A, "alice", fetch_status, {root}), AFS_EVOFFLINE);
	assert_int_equal(r->code, 106);
	assert_ok(vs_volume_claim(v, VS_FREE));
	assert_ok(CALL(r, A, "alice", fetch_status, {root}));
	vs_volume_unref(v);
	rig_free(r);
}

static void volume_status_is_told_to_anyone_and_set_by_administrators(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	assert_ok(CALL(r, A, NULL, get_volume_status, {VOL}));
	struct fs_get_volume_status_out *out = &r->out.get_volume_status;
	assert_int_equal(out->Status.Vid, VOL);
	assert_int_equal(out->Status.ParentId, VOL);
	assert_int_equal(out->Status.Online, 1);
	assert_int_equal(out->Status.Type, 1);
	assert_int_equal(out->Status.MaxQuota, 0);
	assert_int_equal(out->Status.BlocksInUse, 2);
	assert_true(out->Status.PartMaxBlocks >= out->Status.PartBlocksAvail);
	assert_true(xdr_str_is(out->Name, "test"));
	assert_int_equal(out->Motd.len, 0);
	struct fs_set_volume_status_in set = {
		VOL, {FS_SET_MAX_QUOTA, 0, 5000}, NAME("renamed"), NAME("away"), NAME("")};
	assert_err(rig_call(r, A, "alice", fs_op_set_volume_status, &set), AFS_EACCESS);
	assert_ok(rig_call(r, A, "admin", fs_op_set_volume_status, &set));
	assert_ok(CALL(r, A, NULL, get_volume_status, {VOL}));
	assert_int_equal(r->out.get_volume_status.Status.MaxQuota, 5000);
	assert_true(xdr_str_is(r->out.get_volume_status.Name, "renamed"));
	assert_true(xdr_str_is(r->out.get_volume_status.OfflineMsg, "away"));
	assert_err(CALL(r, A, "alice", get_volume_status, {999}), AFS_ENOVOL);
	rig_free(r);
}

static void a_full_quota_refuses_new_names(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "");
	struct fs_set_volume_status_in set = {
		VOL, {FS_SET_MAX_QUOTA, 0, 3}, NAME(""), NAME(""), NAME("")};
	assert_ok(rig_call(r, A, "admin", fs_op_set_volume_status, &set));
	assert_err(CALL(r, A, "alice", create_file, {.DirFid = root, .Name = NAME("g")}),
		AFS_EOVERQUOTA);
	assert_int_equal(r->code, 109);
	static char bytes[3000]; /* stores are lenient by the spare */
	assert_ok(rig_store(r, A, "alice", f, 0, bytes, sizeof(bytes), sizeof(bytes)));
	rig_free(r);
}

/* --- the rest ---------------------------------------------------------------------------------- */

static void the_server_tells_time_capabilities_and_statistics(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	assert_ok(CALL(r, A, NULL, get_time, {}));
	assert_true(r->out.get_time.Seconds > 1700000000 && r->out.get_time.USeconds < 1000000);
	assert_ok(CALL(r, A, NULL, get_capabilities, {}));
	assert_int_equal(r->out.get_capabilities.Capabilities.n, 1);
	assert_int_equal(r->out.get_capabilities.Capabilities.v[0], 7);
	assert_ok(CALL(r, A, NULL, get_statistics64, {16}));
	assert_int_equal(r->out.get_statistics64.Statistics.n, 16);
	assert_int_equal(r->out.get_statistics64.Statistics.v[13], 1);
	static const int32_t versions[] = {0, 15, 17, -1, INT32_MAX};
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		assert_err(CALL(r, A, NULL, get_statistics64, {versions[i]}), AFS_EINVAL);
	assert_ok(CALL(r, A, NULL, get_statistics, {}));
	assert_string_equal((const char *)r->out.get_statistics.Statistics.Disk[0].Name, "/vicepa");
	assert_int_equal(r->out.get_statistics.Statistics.Disk[1].Name[0], 0);
	rig_free(r);
}

static void what_every_server_refuses_is_refused_with_its_code(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	assert_true(CALL(r, A, NULL, get_root_volume, {}) != AFS_OK);
	assert_int_equal(r->code, 122);
	assert_true(CALL(r, A, NULL, check_token, {0}) != AFS_OK);
	assert_int_equal(r->code, 130);
	assert_true(CALL(r, A, NULL, lookup, {root, NAME("x")}) != AFS_OK);
	assert_int_equal(r->code, 22);
	assert_true(CALL(r, A, NULL, dfs_symlink, {.DirFid = root}) != AFS_OK);
	assert_int_equal(r->code, 22);
	assert_err(CALL(r, A, NULL, nget_volume_info, {NAME("test")}), AFS_ENOVOL);
	assert_diary(&r->world, ""); /* nobody was met for these */
	assert_ok(CALL(r, A, NULL, get_time, {}));
	assert_err(CALL(r, A, NULL, callback_rx_conn_addr, {0}), AFS_EPERM);
	assert_int_equal(r->code, 49733376);
	rig_free(r);
}

static void a_cell_that_cannot_tell_who_gives_minus_1001(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	fake_people_away = true;
	assert_true(CALL(r, A, "alice", fetch_status, {root}) != AFS_OK);
	assert_int_equal(r->code, -1001);
	fake_people_away = false;
	assert_ok(CALL(r, A, "alice", fetch_status, {root}));
	rig_free(r);
}

static void a_server_that_does_not_serve_yet_says_restarting(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	atomic_store(&r->fs->serving, false);
	assert_err(CALL(r, A, "alice", fetch_status, {root}), AFS_ERESTARTING);
	assert_int_equal(r->code, -100);
	assert_diary(&r->world, "");
	rig_free(r);
}

/* Fail the first allocation, the second, ... until the call succeeds: each time the server is as
 * before or as after, and goes on. */
static void calls_without_memory_do_all_or_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	struct AFSFid f = rig_file(r, root, "f", "old");
	rig_watch(r, B, f);
	for (int what = 0; what < 4; what++)
		for (long n = 0; n < 2000; n++) {
			uint32_t before = rig_status(r, what == 1 ? root : f).DataVersion;
			char name[32];
			snprintf(name, sizeof(name), "n%ld", n);
			struct xdr_str xname = XDR_STR_OF(name);
			r->send = "new";
			r->send_len = 3;
			mem_fail_after(n);
			afs_err err = what == 0   ? CALL(r, A, "alice", fetch_status, {f})
				      : what == 1 ? CALL(r, A, "alice", create_file,
							    {.DirFid = root, .Name = xname})
				      : what == 2
					      ? CALL(r, A, "alice", store_data64,
							{.Fid = f, .Length = 3, .FileLength = 3})
					      : CALL(r, A, "alice", fetch_acl, {root});
			bool failed = mem_has_failed();
			mem_fail_after(-1);
			uint32_t after = rig_status(r, what == 1 ? root : f).DataVersion;
			if (what == 0 || what == 3)
				assert_int_equal(after, before);
			else
				assert_int_equal(after, before + (err == AFS_OK ? 1 : 0));
			if (!failed) {
				assert_ok(err);
				break;
			}
			if (err != AFS_OK && err != AFS_ENOMEM)
				fail_msg("call %d with %ld allocations gave %s", what, n,
					afs_err_name(err));
		}
	rig_free(r);
}

/* --- races ------------------------------------------------------------------------------------- */

struct race {
	struct rig *r;
	struct AFSFid f;
	struct fake_conn conn;
	atomic_uint broken;       /* breaks that client B got */
	atomic_uint acknowledged; /* version that the writer's last reply told */
	atomic_bool stop;
};

static void note_break(struct fake_client *c, const struct AFSFid *fids, size_t n)
{
	(void)fids;
	atomic_fetch_add(&((struct race *)c->ctx)->broken, (unsigned)n);
}

static void *write_often(void *arg)
{
	struct race *race = arg;
	struct rx_caller alice = fake_caller("alice");
	while (!atomic_load(&race->stop)) {
		CLEANUP(fake_call) struct fake_call call;
		fake_call_init(&call, &race->conn, race->r->world.clients[A].addr, &alice,
			race->r->fs, clk_mono());
		call.in = (const uint8_t *)"w";
		call.in_len = 1;
		struct fs_store_data64_out out = {0};
		assert_ok(fs_store_data64(&call.pub,
			&(struct fs_store_data64_in){.Fid = race->f, .Length = 1, .FileLength = 1},
			&out));
		atomic_store(&race->acknowledged, out.OutStatus.DataVersion);
	}
	return NULL;
}

/* Whenever a store is acknowledged after somebody was promised word of the file, the word was given:
 * a holder of a promise whose break count did not move sees the newest acknowledged version. */
static void an_unbroken_promise_means_the_newest_version(void **state)
{
	(void)state;
	struct race race = {.r = rig_new(), .conn = {.key = 9ull << 32}};
	struct rig *r = race.r;
	race.f = rig_file(r, root, "f", "x");
	rig_watch(r, B, race.f);
	r->world.clients[B].on_break = note_break;
	r->world.clients[B].ctx = &race;
	pthread_t writer;
	assert_int_equal(pthread_create(&writer, NULL, write_often, &race), 0);
	unsigned held = 0;
	mono_ns until = clk_mono() + SEC(1);
	for (int i = 0; clk_mono() < until || held < 100; i++) {
		unsigned broken = atomic_load(&race.broken);
		assert_ok(CALL(r, B, "alice", fetch_status, {race.f}));
		uint32_t dv = r->out.fetch_status.OutStatus.DataVersion;
		assert_int_equal(r->out.fetch_status.CallBack.CallBackType, CB_SHARED);
		uint32_t acknowledged = atomic_load(&race.acknowledged);
		if (atomic_load(&race.broken) == broken) {
			held++;
			if (acknowledged > dv)
				fail_msg("promised at version %u, %u acknowledged, nothing broken",
					dv, acknowledged);
		}
		if (i > 1000000)
			break;
	}
	atomic_store(&race.stop, true);
	pthread_join(writer, NULL);
	fake_conn_close(&race.conn);
	rig_free(r);
}

TEST_MAIN(T(a_new_file_is_the_callers_empty_and_at_version_0),
	T(a_directory_names_itself_as_its_parent), T(impossible_fids_have_their_codes),
	T(errors_are_plain_errnos_for_hosts_that_do_not_translate),
	T(status_is_stored_as_far_as_the_caller_may), T(a_symlinks_mode_cannot_be_stored),
	T(what_was_stored_is_fetched), T(stores_follow_pos_length_and_file_length),
	T(a_fetch_past_the_end_has_length_0), T(impossible_ranges_are_efbig_and_harm_nothing),
	T(markers_around_2_and_4_gib_are_where_they_were_put),
	T(a_store_that_ends_early_or_dies_changes_nothing),
	T(a_store_that_is_fed_byte_by_byte_is_refused), T(content_is_stored_in_files_only),
	T(a_store_takes_set_id_away_unless_an_administrator_stores),
	T(a_directory_object_is_fetched_whole), T(names_that_cannot_be_are_refused_by_every_call),
	T(the_errors_of_names_are_the_protocols),
	T(every_change_of_a_directory_moves_its_version_by_one),
	T(hard_links_stay_in_their_directory), T(renames_are_refused_where_the_protocol_says),
	T(replacing_takes_delete_in_the_new_directory),
	T(a_replaced_empty_directory_is_gone_and_not_counted), T(a_mount_point_takes_administer),
	T(an_acl_comes_back_as_names_and_a_file_has_its_directorys),
	T(a_new_directory_has_its_parents_acl), T(a_bad_acl_changes_nothing),
	T(an_id_without_a_name_is_shown_as_a_number), T(the_old_number_of_store_acl_can_be_refused),
	T(changes_break_what_the_protocol_says), T(refused_changes_break_nothing),
	T(a_refused_caller_is_promised_nothing), T(promises_given_back_are_not_broken),
	T(inline_bulk_has_an_error_per_object), T(locks_count_readers_or_one_writer),
	T(a_removed_file_takes_its_lock_along),
	T(a_volume_that_never_changes_refuses_changes_and_has_one_promise),
	T(a_claimed_volume_is_busy_or_offline),
	T(volume_status_is_told_to_anyone_and_set_by_administrators),
	T(a_full_quota_refuses_new_names), T(the_server_tells_time_capabilities_and_statistics),
	T(what_every_server_refuses_is_refused_with_its_code),
	T(a_cell_that_cannot_tell_who_gives_minus_1001),
	T(a_server_that_does_not_serve_yet_says_restarting),
	T(calls_without_memory_do_all_or_nothing), T(an_unbroken_promise_means_the_newest_version))
