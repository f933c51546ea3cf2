/* SPDX-License-Identifier: BSD-2-Clause
 * Storing and reading data: fileserver.md §3, §10; known bugs K06, K08, K13; clones seen as epochs. */
#include "store_lib.h"

#include "fileserver/store/internal.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static uint8_t data[10 << 20];

static void fill_data(void)
{
	uint64_t rng = 42;
	for (size_t i = 0; i < sizeof(data); i += 8) {
		uint32_t r = next_random(&rng);
		memcpy(data + i, &r, 4);
	}
}

static size_t extent_files(struct fix *x)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/vol/%d/data", x->dir, VOL);
	DIR *d = opendir(path);
	assert_non_null(d);
	size_t n = 0;
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static struct vs_writer *begin(
	struct vs_volume *v, struct vs_fid f, uint64_t pos, uint64_t n, uint64_t file_length)
{
	struct vs_writer *w;
	const struct vs_write req = {.pos = pos, .length = n, .file_length = file_length};
	assert_ok(vs_write_begin(v, f, &req, &who, &w));
	return w;
}

static void position_length_and_file_length_mean_what_the_protocol_says(void **state)
{
	(void)state;
	FIX(x);
	struct vs_fid f = make_file(x.v, root, "f");
	assert_int_equal(store(x.v, f, 0, "hello", 5, 5).length, 5);
	assert_int_equal(store(x.v, f, 3, "XY", 2, 100).length, 5); /* FileLength never extends */
	assert_content(x.v, f, "helXY", 5);
	assert_int_equal(store(x.v, f, 3, "", 0, 3).length, 3); /* truncates */
	assert_content(x.v, f, "hel", 3);
	assert_int_equal(store(x.v, f, 6, "", 0, 6).length, 6); /* extends to exactly Pos */
	assert_content(x.v, f, "hel\0\0\0", 6);
	assert_int_equal(store(x.v, f, 8, "end", 3, 11).length, 11); /* a hole reads as zeros */
	assert_content(x.v, f, "hel\0\0\0\0\0end", 11);
	assert_int_equal(store(x.v, f, 1, "E", 1, 2).length, 2); /* truncates first */
	assert_content(x.v, f, "hE", 2);
	assert_int_equal(store(x.v, f, 0, "", 0, 0).length, 0);
	assert_content(x.v, f, "", 0);
	assert_int_equal(status_of(x.v, f).dv, 7);
	assert_clean(x.v);
}

static void a_store_sets_times_author_and_mode_as_asked(void **state)
{
	(void)state;
	FIX(x);
	struct vs_status st;
	struct vs_fid f = make_file(x.v, root, "f");
	assert_ok(vs_set_status(
		x.v, f, &(struct vs_set){.mask = VS_SET_MODE, .mode = 06755}, &who, &st));
	who.now += SEC(3);
	who.id = 7;
	st = store(x.v, f, 0, "a", 1, 1);
	assert_true(st.client_mtime == who.now && st.server_mtime == who.now);
	assert_int_equal(st.author, 7);
	assert_int_equal(st.mode, 0755); /* set-id goes, both kinds */
	const struct vs_set set = {VS_SET_MTIME | VS_SET_MODE, SEC(3), 0, 0, 06700};
	const struct vs_write req = {
		.pos = 0, .length = 1, .file_length = 1, .set = &set, .keep_setid = true};
	struct vs_writer *w;
	assert_ok(vs_write_begin(x.v, f, &req, &who, &w));
	assert_ok(vs_write_put(w, "b", 1));
	assert_ok(vs_write_end(w, &who, &st));
	assert_true(st.client_mtime == SEC(3) && st.server_mtime == who.now);
	assert_int_equal(st.mode, 06700);
	who.id = 100;
}

static void only_files_take_data_and_sizes_have_an_end(void **state)
{
	(void)state;
	FIX(x);
	struct vs_made m;
	struct vs_writer *w;
	assert_ok(vs_make_symlink(x.v, root, "s", "target", 6, &who, NULL, &m));
	const struct vs_write one = {.length = 1, .file_length = 1};
	assert_err(vs_write_begin(x.v, root, &one, &who, &w), AFS_EISDIR);
	assert_err(vs_write_begin(x.v, m.node.fid, &one, &who, &w), AFS_EISDIR);
	struct vs_fid f = make_file(x.v, root, "f");
	const struct vs_write far[] = {
		{.pos = UINT64_MAX, .length = 1},
		{.pos = 1, .length = UINT64_MAX},
		{.pos = UINT64_C(1) << 60},
		{.pos = UINT64_C(1) << 53, .length = (UINT64_C(1) << 53) + 1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(far); i++)
		assert_err(vs_write_begin(x.v, f, &far[i], &who, &w), AFS_EFBIG);
	w = begin(x.v, f, 0, 3, 3);
	assert_ok(vs_write_put(w, "ab", 2));
	assert_err(vs_write_put(w, "cd", 2), AFS_EINVAL); /* more than announced */
	struct vs_status st;
	assert_err(vs_write_end(w, &who, &st), AFS_EINVAL);
	assert_int_equal(status_of(x.v, f).dv, 0);
	assert_content(x.v, m.node.fid, "target", 6);
	assert_clean(x.v);
}

static void what_came_of_a_store_that_stopped_is_kept(void **state)
{
	(void)state;
	FIX(x);
	struct vs_status st;
	static const size_t came[] = {
		0, 1, 4096, 4097, 70000, (4 << 20) - 1, 4 << 20, (4 << 20) + 5, 9 << 20};
	for (size_t i = 0; i < ARRAY_SIZE(came); i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%zu", i);
		struct vs_fid f = make_file(x.v, root, name);
		store(x.v, f, 0, "old", 3, 3);
		struct vs_writer *w = begin(x.v, f, 0, sizeof(data), sizeof(data));
		assert_ok(vs_write_put(w, data, came[i]));
		assert_ok(vs_write_end(w, &who, &st));
		assert_int_equal(st.dv, 2);
		assert_int_equal(st.length, came[i] > 3 ? came[i] : 3);
		if (came[i] >= 3)
			assert_content(x.v, f, data, came[i]);
		else
			assert_content(x.v, f,
				came[i] ? (const char[]){(char)data[0], 'l', 'd'} : "old", 3);
	}
	assert_clean(x.v);
}

static void a_cancelled_store_changes_nothing_and_leaves_nothing(void **state)
{
	(void)state;
	FIX(x);
	struct vs_fid f = make_file(x.v, root, "f");
	store(x.v, f, 0, data, 6 << 20, 6 << 20);
	struct vs_writer *w = begin(x.v, f, 1 << 20, 9 << 20, 10 << 20);
	assert_ok(vs_write_put(w, data, 9 << 20));
	assert_content(x.v, f, data, 6 << 20); /* nobody sees a store before its end */
	vs_write_cancel(w);
	assert_content(x.v, f, data, 6 << 20);
	assert_int_equal(status_of(x.v, f).dv, 1);
	vs_store_housekeep(x.s);
	assert_int_equal(extent_files(&x), 2);
	assert_clean(x.v);
	/* what it left behind the end of the last extent does not come up later */
	store(x.v, f, 7 << 20, "end", 3, (7 << 20) + 3);
	size_t n;
	CLEANUP(heap) uint8_t *got = content(x.v, f, &n);
	assert_memory_equal(got, data, 6 << 20);
	for (size_t i = 6 << 20; i < 7 << 20; i++)
		assert_int_equal(got[i], 0);
	assert_clean(x.v);
}

/* K06 */
static void offsets_about_two_and_four_gib_are_told_apart(void **state)
{
	(void)state;
	FIX(x);
	struct vs_fid f = make_file(x.v, root, "f");
	static const uint64_t at[] = {
		0, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x100000000, 0x100000001};
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		char mark = (char)('A' + i);
		store(x.v, f, at[i], &mark, 1, UINT64_C(1) << 40);
	}
	struct vs_status st;
	struct vs_file *file;
	size_t got;
	assert_ok(vs_file_open(x.v, f, &st, &file));
	assert_int_equal(st.length, 0x100000002);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		char c[4] = {0};
		assert_ok(vs_file_read(file, at[i], c, 1, &got));
		assert_int_equal(got, 1);
		assert_int_equal(c[0], 'A' + (int)i);
	}
	char buf[8];
	assert_ok(vs_file_read(file, 0x100000000, buf, 8, &got));
	assert_int_equal(got, 2); /* the end */
	assert_ok(vs_file_read(file, 0x100000002, buf, 8, &got));
	assert_int_equal(got, 0);
	assert_ok(vs_file_read(file, UINT64_MAX - 3, buf, 8, &got));
	assert_int_equal(got, 0);
	vs_file_close(file);
	assert_true(extent_files(&x) <= 5); /* holes cost nothing */
	struct vs_header h;
	assert_ok(vs_volume_header(x.v, &h));
	assert_int_equal(h.used_kib, 2 + 0x100000002 / 1024 + 1);
	assert_clean(x.v);
}

static void small_files_cost_no_inode_and_change_form_as_they_grow_and_shrink(void **state)
{
	(void)state;
	FIX(x);
	struct vs_fid f = make_file(x.v, root, "f");
	store(x.v, f, 0, data, 4096, 4096);
	assert_int_equal(extent_files(&x), 0);
	store(x.v, f, 4096, data + 4096, 1, 4097);
	assert_int_equal(extent_files(&x), 1);
	assert_content(x.v, f, data, 4097);
	store(x.v, f, 100, "", 0, 100);
	vs_store_housekeep(x.s);
	assert_int_equal(extent_files(&x), 0);
	assert_content(x.v, f, data, 100);
	store(x.v, f, 5 << 20, "", 0, 5 << 20); /* extended: what there was stays */
	size_t n;
	CLEANUP(heap) uint8_t *got = content(x.v, f, &n);
	assert_memory_equal(got, data, 100);
	assert_int_equal(n, 5 << 20);
	store(x.v, f, 4500000, data, 10, 5 << 20);
	assert_clean(x.v);
}

static void extents_are_overwritten_extended_and_cut_in_every_way(void **state)
{
	(void)state;
	FIX(x);
	static uint8_t want[10 << 20];
	struct vs_fid f = make_file(x.v, root, "f");
	size_t length = 9 << 20;
	memcpy(want, data, length);
	store(x.v, f, 0, want, length, length);
	static const struct {
		uint32_t pos, n, length;
	} op[] = {
		{100, 50, 9 << 20},                  /* in place */
		{(4 << 20) - 10, 20, 9 << 20},       /* over the seam */
		{0, 2 << 20, 9 << 20},               /* more than is kept in memory: a new extent */
		{(9 << 20) - 5, 10, (9 << 20) + 5},  /* over the end */
		{65536, 65536, (9 << 20) + 5},       /* a whole block */
		{65535, 3, (5 << 20) + 77},          /* with a cut elsewhere */
		{(5 << 20) + 70, 3, (5 << 20) + 73}, /* with a cut right there */
		{(5 << 20) + 60, 100000, 6 << 20},   /* cut, overwritten, extended */
		{9 << 20, 7, (9 << 20) + 7},         /* a gap */
		{1, 1, 4097},
		{0, 4097, 4097},
	};
	for (size_t i = 0; i < ARRAY_SIZE(op); i++) {
		size_t end = op[i].pos + op[i].n, old = length;
		length = MAX(MIN(length, (size_t)op[i].length), end);
		if (op[i].length < old)
			memset(want + op[i].length, 0, sizeof(want) - op[i].length);
		memcpy(want + op[i].pos, data + 3 * i + 1, op[i].n);
		struct vs_status st =
			store(x.v, f, op[i].pos, data + 3 * i + 1, op[i].n, op[i].length);
		assert_int_equal(st.length, length);
		assert_content(x.v, f, want, length);
		assert_clean(x.v);
	}
	fix_close(&x);
	fix_open(&x);
	assert_content(x.v, f, want, length);
}

static void two_stores_at_once_both_count_and_the_later_end_wins(void **state)
{
	(void)state;
	FIX(x);
	struct vs_status st;
	static uint8_t want[10 << 20];
	enum { BASE = 5 << 20 };
	/* ranges of both: in place, appending, new, over the seam, small */
	static const struct {
		uint32_t a, a_n, b, b_n;
	} op[] = {
		{0, 1000, 500, 1000},
		{BASE, 100000, BASE, 5000},
		{BASE, 5000, BASE, 100000},
		{0, 3 << 20, 1 << 20, 3 << 20},
		{(4 << 20) - 100, 200, (4 << 20) - 50, 200},
		{BASE + 10, 10, BASE - 10, 100},
		{0, BASE, 10, 10},
		{10, 10, 0, BASE},
		{BASE - 10, 300000, BASE, 10},
	};
	for (size_t i = 0; i < ARRAY_SIZE(op); i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%zu", i);
		struct vs_fid f = make_file(x.v, root, name);
		memset(want, 0, sizeof(want));
		memcpy(want, data, BASE);
		store(x.v, f, 0, data, BASE, BASE);
		struct vs_writer *a = begin(x.v, f, op[i].a, op[i].a_n, UINT64_C(1) << 40);
		struct vs_writer *b = begin(x.v, f, op[i].b, op[i].b_n, UINT64_C(1) << 40);
		assert_ok(vs_write_put(a, data + 7, op[i].a_n / 2));
		assert_ok(vs_write_put(b, data + 99, op[i].b_n / 2));
		assert_ok(vs_write_put(a, data + 7 + op[i].a_n / 2, op[i].a_n - op[i].a_n / 2));
		assert_ok(vs_write_put(b, data + 99 + op[i].b_n / 2, op[i].b_n - op[i].b_n / 2));
		assert_ok(vs_write_end(a, &who, &st));
		assert_int_equal(st.dv, 2);
		assert_ok(vs_write_end(b, &who, &st));
		assert_int_equal(st.dv, 3);
		memcpy(want + op[i].a, data + 7, op[i].a_n);
		memcpy(want + op[i].b, data + 99, op[i].b_n);
		size_t n = MAX((size_t)BASE,
			MAX((size_t)op[i].a + op[i].a_n, (size_t)op[i].b + op[i].b_n));
		assert_content(x.v, f, want, n);
		assert_clean(x.v);
	}
}

static void a_store_survives_what_others_do_to_its_file_meanwhile(void **state)
{
	(void)state;
	FIX(x);
	struct vs_status st;
	struct vs_removed r;
	struct vs_fid f = make_file(x.v, root, "f");
	store(x.v, f, 0, data, 5 << 20, 5 << 20);

	struct vs_writer *w =
		begin(x.v, f, 5 << 20, 1000, 6 << 20); /* appends while it is cut to nothing */
	assert_ok(vs_write_put(w, data, 1000));
	store(x.v, f, 0, "", 0, 0);
	assert_ok(vs_write_end(w, &who, &st));
	assert_int_equal(st.length, (5 << 20) + 1000);
	size_t n;
	CLEANUP(heap) uint8_t *got = content(x.v, f, &n);
	assert_int_equal(got[0], 0);
	assert_memory_equal(got + (5 << 20), data, 1000);
	assert_clean(x.v);

	w = begin(x.v, f, 0, 10, 10); /* will be small; grows large meanwhile */
	assert_ok(vs_write_put(w, "0123456789", 10));
	store(x.v, f, 0, "", 0, 0);
	struct vs_writer *u = begin(x.v, f, 2, 3, 1 << 20);
	assert_ok(vs_write_put(u, "abc", 3));
	assert_ok(vs_write_end(w, &who, &st));
	store(x.v, f, 100000, "tail", 4, 1 << 20);
	assert_ok(vs_write_end(u, &who, &st));
	assert_int_equal(st.length, 100004);
	struct vs_file *file;
	char head[11] = {0};
	assert_ok(vs_file_open(x.v, f, &st, &file));
	assert_ok(vs_file_read(file, 0, head, 10, &n));
	assert_string_equal(head, "01abc56789");

	w = begin(x.v, f, 0, 300000, 300000);
	assert_ok(vs_write_put(w, data, 200000));
	assert_ok(vs_remove(x.v, root, "f", &who, &r)); /* removed under a reader and a writer */
	assert_ok(vs_write_put(w, data, 100000));
	assert_err(vs_write_end(w, &who, &st), AFS_ENOVNODE);
	uint8_t byte;
	assert_ok(vs_file_read(file, 0, &byte, 1, &n)); /* what it has at hand it may still give */
	assert_err(vs_file_read(file, 5 << 20, &byte, 1, &n), AFS_OK); /* behind its end */
	vs_file_close(file);
	vs_store_housekeep(x.s);
	assert_int_equal(extent_files(&x), 0);
	assert_clean(x.v);
}

static void a_removed_file_stops_its_reader_at_the_next_extent(void **state)
{
	(void)state;
	FIX(x);
	struct vs_status st;
	struct vs_removed r;
	struct vs_file *file;
	size_t n;
	uint8_t byte;
	struct vs_fid f = make_file(x.v, root, "f");
	store(x.v, f, 0, data, 5 << 20, 5 << 20);
	assert_ok(vs_file_open(x.v, f, &st, &file));
	assert_ok(vs_file_read(file, 0, &byte, 1, &n));
	assert_ok(vs_remove(x.v, root, "f", &who, &r));
	assert_err(vs_file_read(file, 4 << 20, &byte, 1, &n), AFS_ENOVNODE);
	vs_file_close(file);
}

static void a_directory_reads_as_the_object_it_was_when_opened(void **state)
{
	(void)state;
	FIX(x);
	struct vs_status st;
	struct vs_file *file;
	size_t n, m;
	make_file(x.v, root, "one");
	CLEANUP(heap) uint8_t *before = content(x.v, root, &n);
	assert_ok(vs_file_open(x.v, root, &st, &file));
	for (int i = 0; i < 100; i++) {
		char name[20];
		snprintf(name, sizeof(name), "more%d", i);
		make_file(x.v, root, name);
	}
	uint8_t page[4096];
	assert_ok(vs_file_read(file, 0, page, sizeof(page), &m));
	assert_int_equal(m, 2048);
	assert_memory_equal(page, before, 2048);
	assert_int_equal(st.dv, 1);
	vs_file_close(file);
	CLEANUP(heap) uint8_t *after = content(x.v, root, &n);
	assert_int_equal(n, 4096);
	struct vs_dir d = {.data = after, .pages = 2};
	assert_int_equal(vs_dir_verify(&d, NULL, NULL), 0);
}

/* K13, at this level: a clone is an epoch, and nothing done later may change what it sees. */
static void what_an_epoch_saw_stays(void **state)
{
	(void)state;
	FIX(x);
	struct vs_fid d = make_folder(x.v, root, "d"), e = make_folder(x.v, root, "e"),
		      small = make_file(x.v, d, "small");
	struct vs_fid large = make_file(x.v, d, "large"), gone = make_file(x.v, d, "gone"),
		      cut = make_file(x.v, d, "cut");
	struct vs_fid dead = make_folder(x.v, e, "dead");
	store(x.v, small, 0, "small", 5, 5);
	store(x.v, large, 0, data, 6 << 20, 6 << 20);
	store(x.v, gone, 0, data, 5000, 5000);
	store(x.v, cut, 0, data, 9 << 20, 9 << 20);
	struct vs_volume *clone;
	assert_ok(vs_clone_make(x.v, &(struct vs_header){.id = VOL + 1, .type = AFS_VOL_BK, .name = "c"}, SEC(5), &clone));
	vs_volume_unref(clone);

	struct vs_renamed n;
	struct vs_removed r;
	struct vs_status st;
	assert_ok(vs_rename(x.v, d, "large", e, "new", true, &who, &n));
	store(x.v, large, 10, "changed", 7, 6 << 20);
	store(x.v, large, 6 << 20, "appended", 8, (6 << 20) + 8);
	store(x.v, small, 0, "SMALL", 5, 5);
	store(x.v, cut, 5000000, "", 0, 5000000);
	assert_ok(vs_remove(x.v, d, "gone", &who, &r));
	assert_ok(vs_remove_dir(x.v, e, "dead", &who, &r));
	assert_ok(vs_set_status(
		x.v, cut, &(struct vs_set){.mask = VS_SET_MODE, .mode = 0}, &who, &st));
	struct vs_fid again = make_file(x.v, d, "gone");
	assert_int_equal(again.vnode, gone.vnode); /* the number lives twice, in two epochs */
	assert_true(dead.vnode != 0);
	assert_clean(x.v);
	uint8_t head[18];
	memcpy(head, data, 18);
	memcpy(head + 10, "changed", 7);
	struct vs_file *file;
	size_t got;
	uint8_t have[18];
	assert_ok(vs_file_open(x.v, large, &st, &file));
	assert_ok(vs_file_read(file, 0, have, 18, &got));
	assert_memory_equal(have, head, 18);
	vs_file_close(file);

	/* the past, by its rows: status, names, bytes */
	vs_store_housekeep(x.s);
	assert_ok(vs_volume_lock(x.v, true));
	static const char *const sql[] = {
		"SELECT count(*) FROM vnodes WHERE (key & 2147483647) <= 1 AND died > 1",
		"SELECT count(*) FROM dir_pages WHERE born <= 1 AND died > 1",
		("SELECT count(*) FROM file_extents f JOIN extents e ON e.id = f.extent "
		 "WHERE f.born <= 1 AND f.died > 1"),
		"SELECT b.data FROM vnodes v JOIN blobs b ON b.id = v.content WHERE v.key = ?1",
		"SELECT extent FROM file_extents WHERE vnode = ?1 AND idx = ?2 AND born = 1",
		"SELECT mode * 100000000 + length FROM vnodes WHERE key = ?1",
	};
	const struct db_schema past = {.name = "volume",
		.migrations = vs_schema.migrations,
		.version = vs_schema.version,
		.sql = sql,
		.sql_count = ARRAY_SIZE(sql)};
	vs_volume_shut_locked(x.v);
	char path[300];
	snprintf(path, sizeof(path), "%s/vol/%d/meta.db", x.dir, VOL);
	struct db *db;
	const struct db_options opt = {.exclusive = true};
	int64_t k;
	assert_ok(db_open(path, &past, &opt, &db));
	assert_ok(db_get_int(db, 0, &k));
	assert_int_equal(k, 8); /* root, d, e, dead, small, large, gone, cut */
	assert_ok(db_get_int(db, 1, &k));
	assert_int_equal(k, 4);
	assert_ok(db_get_int(db, 2, &k));
	assert_int_equal(k, 2 + 1 + 3);
	struct db_rows rows = db_query(db, 3, DB_INT(VS_KEY(small.vnode, 1)));
	assert_true(db_next(&rows));
	assert_memory_equal(db_blob(&rows, 0, &got), "small", 5);
	db_rows_close(&rows);
	assert_ok(db_get_int(db, 5, &k, DB_INT(VS_KEY(cut.vnode, 1))));
	assert_int_equal(k, 0777 * 100000000ll + (9 << 20));
	const struct {
		struct vs_fid f;
		uint32_t idx;
		size_t n;
	} piece[] = {{large, 0, 4 << 20}, {large, 1, 2 << 20}, {gone, 0, 5000}, {cut, 1, 4 << 20},
		{cut, 2, 1 << 20}};
	for (size_t i = 0; i < ARRAY_SIZE(piece); i++) {
		assert_ok(db_get_int(db, 4, &k, DB_INT(piece[i].f.vnode), DB_INT(piece[i].idx)));
		snprintf(path, sizeof(path), "%s/vol/%d/data/%016llx", x.dir, VOL,
			(unsigned long long)k);
		FILE *file_of = fopen(path, "r");
		assert_non_null(file_of);
		CLEANUP(heap) uint8_t *bytes = mem_alloc(piece[i].n, 1);
		assert_int_equal(fread(bytes, 1, piece[i].n, file_of), piece[i].n);
		assert_memory_equal(bytes, data + (size_t)piece[i].idx * (4 << 20), piece[i].n);
		fclose(file_of);
	}
	db_close(db);
	vs_volume_unlock(x.v);
	assert_clean(x.v);
}

static void checksums_are_castagnolis(void **state)
{
	(void)state;
	assert_int_equal(vs_crc32c(0, "123456789", 9), 0xe3069283);
	uint8_t zeros[32] = {0};
	assert_int_equal(vs_crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
	for (size_t n = 0; n < 100; n++) {
		assert_int_equal(vs_crc32c(0, data, n), vs_crc32c_plain(0, data, n));
		assert_int_equal(
			vs_crc32c(vs_crc32c(0, data, n), data + n, 50), vs_crc32c(0, data, n + 50));
	}
}

static int fill(void **state)
{
	(void)state;
	fill_data();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(position_length_and_file_length_mean_what_the_protocol_says),
		T(a_store_sets_times_author_and_mode_as_asked),
		T(only_files_take_data_and_sizes_have_an_end),
		T(what_came_of_a_store_that_stopped_is_kept),
		T(a_cancelled_store_changes_nothing_and_leaves_nothing),
		T(offsets_about_two_and_four_gib_are_told_apart),
		T(small_files_cost_no_inode_and_change_form_as_they_grow_and_shrink),
		T(extents_are_overwritten_extended_and_cut_in_every_way),
		T(two_stores_at_once_both_count_and_the_later_end_wins),
		T(a_store_survives_what_others_do_to_its_file_meanwhile),
		T(a_removed_file_stops_its_reader_at_the_next_extent),
		T(a_directory_reads_as_the_object_it_was_when_opened),
		T(what_an_epoch_saw_stays),
		T(checksums_are_castagnolis),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, fill, NULL);
}
