/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/base/log.h"
#include "cell/base/mem.h"
#include "client/cache/cache.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
static const struct cache_key key = {7, {1, 2, 3}};

struct rig {
	char *dir;
	struct cache *c;
	struct cache_file *f;
};

static void rig_open(struct rig *r, uint64_t max)
{
	if (!r->dir)
		r->dir = test_scratch();
	assert_ok(cache_open(r->dir, max, &r->c));
	assert_ok(cache_file_open(r->c, &key, &r->f));
}
static void rig_close(struct rig *r)
{
	cache_file_close(r->f);
	cache_close(r->c);
}
static void rig_end(struct rig *r)
{
	rig_close(r);
	test_scratch_free(r->dir);
}

static void put(struct cache_file *f, uint64_t off, const char *s, uint64_t fresh)
{
	uint64_t need = 0;
	assert_ok(cache_write(f, off, s, strlen(s), fresh, &need));
}
static char *get(struct cache_file *f, uint64_t off, size_t n)
{
	static char buf[8192];
	size_t got;
	assert_ok(cache_read(f, off, buf, n, &got));
	buf[got] = 0;
	return buf;
}

static void what_was_written_is_read_and_dirty(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	put(r.f, 0, "hello", 0);
	assert_string_equal(get(r.f, 0, 5), "hello");
	assert_true(cache_is_dirty(r.f));
	assert_int_equal(cache_file_dirty_bytes(r.f), CACHE_PAGE);
	uint64_t s, e;
	assert_true(cache_take_dirty(r.f, 0, CACHE_PAGE, MIB, &s, &e));
	assert_int_equal(s, 0);
	assert_int_equal(e, CACHE_PAGE);
	assert_true(cache_is_dirty(r.f)); /* being stored */
	cache_stored(r.f, s, e, true);
	assert_false(cache_is_dirty(r.f));
	assert_string_equal(get(r.f, 0, 5), "hello");
	rig_end(&r);
}

static void a_page_written_in_part_is_asked_for_when_the_server_has_it(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	uint64_t need = 1;
	/* the server has 10000 bytes: pages 0, 1 and 2 in part */
	assert_err(cache_write(r.f, 5000, "x", 1, 10000, &need), AFS_EAGAIN);
	assert_int_equal(need, 4096);
	assert_err(cache_write(r.f, 9999, "x", 1, 10000, &need), AFS_EAGAIN);
	assert_int_equal(need, 8192);
	/* covers all that the server has of the page */
	char all[2000];
	memset(all, 'a', sizeof(all));
	assert_ok(cache_write(r.f, 8192, all, 1808, 10000, &need));
	assert_ok(cache_write(r.f, 12288, "x", 1, 10000, &need));
	uint32_t t = cache_fill_ticket(r.f);
	char page[4096];
	memset(page, 'p', sizeof(page));
	assert_ok(cache_fill(r.f, t, 4096, page, sizeof(page)));
	assert_ok(cache_write(r.f, 5000, "x", 1, 10000, &need));
	assert_string_equal(get(r.f, 4999, 3), "pxp");
	rig_end(&r);
}

static void what_is_behind_the_end_of_a_page_reads_as_zeros(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	/* leave rubbish in the place, and let another file have it */
	char junk[4096], zeros[4096] = {0}, back[4096];
	memset(junk, 'j', sizeof(junk));
	uint64_t need;
	size_t got;
	assert_ok(cache_write(r.f, 0, junk, sizeof(junk), 0, &need));
	cache_file_discard(r.f);
	struct cache_file *g;
	assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, 2, 4}}, &g));
	assert_ok(cache_write(g, 100, "x", 1, 0, &need));
	assert_ok(cache_read(g, 0, back, sizeof(back), &got));
	assert_int_equal(got, 4096);
	assert_memory_equal(back, zeros, 100);
	assert_int_equal(back[100], 'x');
	assert_memory_equal(back + 101, zeros, 4096 - 101);
	uint32_t t = cache_fill_ticket(g);
	assert_ok(cache_fill(g, t, 4096, "short", 5));
	assert_ok(cache_read(g, 4096, back, sizeof(back), &got));
	assert_memory_equal(back, "short", 5);
	assert_memory_equal(back + 5, zeros, 4096 - 5);
	assert_ok(cache_fill_zero(g, t, 8192, 8192));
	assert_ok(cache_read(g, 8192, back, sizeof(back), &got));
	assert_memory_equal(back, zeros, 4096);
	cache_file_close(g);
	rig_end(&r);
}

static void a_fill_keeps_what_is_dirty(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	char mine[4096], theirs[12288], back[12288];
	memset(mine, 'm', sizeof(mine));
	memset(theirs, 't', sizeof(theirs));
	uint64_t need;
	size_t got;
	uint32_t t = cache_fill_ticket(r.f);
	assert_ok(cache_write(r.f, 4096, mine, sizeof(mine), 12288, &need));
	assert_ok(cache_fill(r.f, t, 0, theirs, sizeof(theirs)));
	assert_ok(cache_read(r.f, 0, back, sizeof(back), &got));
	assert_int_equal(got, 12288);
	assert_int_equal(back[4095], 't');
	assert_int_equal(back[4096], 'm');
	assert_int_equal(back[8191], 'm');
	assert_int_equal(back[8192], 't');
	rig_end(&r);
}

static void a_fill_that_began_before_a_cut_is_not_kept(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	uint32_t t = cache_fill_ticket(r.f);
	assert_ok(cache_truncate(r.f, 0));
	assert_err(cache_fill(r.f, t, 0, "old", 3), AFS_EAGAIN);
	size_t got;
	char b[4];
	assert_ok(cache_read(r.f, 0, b, 3, &got));
	assert_int_equal(got, 0);
	rig_end(&r);
}

static void a_cut_leaves_zeros_and_takes_what_was_dirty_behind_it(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	char a[3 * 4096];
	memset(a, 'a', sizeof(a));
	uint64_t need;
	assert_ok(cache_write(r.f, 0, a, sizeof(a), 0, &need));
	assert_ok(cache_truncate(r.f, 5000));
	assert_int_equal(cache_file_dirty_bytes(r.f), 2 * CACHE_PAGE);
	char back[8192];
	size_t got;
	assert_ok(cache_read(r.f, 0, back, sizeof(back), &got));
	assert_int_equal(got, 8192);
	assert_int_equal(back[4999], 'a');
	assert_int_equal(back[5000], 0);
	assert_int_equal(back[8191], 0);
	rig_end(&r);
}

static void a_file_that_outgrows_its_area_keeps_its_bytes(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	put(r.f, 0, "head", 0);
	put(r.f, 8192, "third", 0);
	char b[4096];
	memset(b, 'b', sizeof(b));
	uint64_t need;
	assert_ok(cache_write(r.f, 200000, b, sizeof(b), 0, &need));
	assert_string_equal(get(r.f, 0, 4), "head");
	assert_string_equal(get(r.f, 8192, 5), "third");
	assert_string_equal(get(r.f, 200000, 3), "bbb");
	rig_end(&r);
}

static uint64_t on_disk(const char *dir)
{
	CLEANUP(str) char *cmd = mem_printf("du -sk %s/data", dir);
	FILE *p = popen(cmd, "r");
	unsigned long long kib = 0;
	assert_int_equal(fscanf(p, "%llu", &kib), 1);
	pclose(p);
	return kib * 1024;
}

static void a_stream_larger_than_the_cache_passes_within_its_bound(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 16 * MIB);
	CLEANUP(heap) char *b = mem_alloc(1, MIB);
	uint64_t need, s, e;
	for (uint64_t i = 0; i < 64; i++) {
		memset(b, (int)i + 1, MIB);
		assert_ok(cache_write(r.f, i * MIB, b, MIB, 0, &need));
		assert_true(cache_take_dirty(r.f, 0, CACHE_PAGE, 64 * MIB, &s, &e));
		assert_int_equal(s, i * MIB);
		assert_int_equal(e, (i + 1) * MIB);
		cache_stored(r.f, s, e, true);
	}
	struct cache_usage u;
	cache_usage(r.c, &u);
	assert_true(u.used <= 16 * MIB);
	assert_true(on_disk(r.dir) <= 17 * MIB); /* and its directories */
	assert_string_equal(get(r.f, 63 * MIB, 2), "\x40\x40");
	size_t got;
	assert_ok(cache_read(r.f, 0, b, 1, &got)); /* the oldest went first */
	assert_int_equal(got, 0);
	rig_end(&r);
}

static void many_small_files_stay_within_the_bound_too(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 16 * MIB);
	char b[4096];
	memset(b, 'b', sizeof(b));
	for (uint32_t i = 0; i < 6000; i++) {
		struct cache_file *g;
		uint64_t need, s, e;
		assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, i * 2, 1}}, &g));
		assert_ok(cache_write(g, 0, b, sizeof(b), 0, &need));
		assert_true(cache_take_dirty(g, 0, CACHE_PAGE, MIB, &s, &e));
		cache_stored(g, s, e, true);
		cache_file_close(g);
	}
	struct cache_usage u;
	cache_usage(r.c, &u);
	assert_true(u.used <= 16 * MIB);
	assert_true(on_disk(r.dir) <= 17 * MIB);
	rig_end(&r);
}

static void what_is_dirty_is_never_pushed_out(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 16 * MIB);
	put(r.f, 0, "precious", 0);
	struct cache_file *g;
	assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, 2, 4}}, &g));
	CLEANUP(heap) char *b = mem_alloc(1, MIB);
	uint32_t t = cache_fill_ticket(g);
	for (uint64_t i = 0; i < 40; i++)
		assert_ok(cache_fill(g, t, i * MIB, b, MIB));
	assert_string_equal(get(r.f, 0, 8), "precious");
	cache_file_close(g);
	rig_end(&r);
}

static void runs_come_in_order_and_short_ones_can_be_passed_over(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	CLEANUP(heap) char *b = mem_alloc(1, 4 * MIB);
	uint64_t need, s, e;
	assert_ok(cache_write(r.f, 0, b, 4096, 0, &need));
	assert_ok(cache_write(r.f, 512 * 1024, b, 2 * MIB, 0, &need));
	assert_ok(cache_write(r.f, 8 * MIB, b, 4096, 0, &need));
	assert_true(cache_take_dirty(r.f, 0, 256 * 1024, 64 * MIB, &s, &e));
	assert_int_equal(s, 512 * 1024);
	assert_int_equal(e, 512 * 1024 + 2 * MIB);
	cache_stored(r.f, s, e, false); /* it failed: dirty again */
	assert_true(cache_take_dirty(r.f, 0, 4096, 64 * MIB, &s, &e));
	assert_int_equal(s, 0);
	assert_true(cache_take_dirty(r.f, e, 4096, MIB, &s, &e)); /* at most so much */
	assert_int_equal(s, 512 * 1024);
	assert_int_equal(e - s, MIB);
	assert_true(cache_take_dirty(r.f, 4 * MIB, 4096, MIB, &s, &e));
	assert_int_equal(s, 8 * MIB);
	assert_false(cache_all_dirty(r.f, 0, 8192));
	rig_end(&r);
}

static void gaps_are_found_across_chunks(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	CLEANUP(heap) char *b = mem_alloc(1, MIB);
	uint32_t t = cache_fill_ticket(r.f);
	uint64_t s, e;
	assert_true(cache_gap(r.f, 0, 3 * MIB, &s, &e));
	assert_int_equal(s, 0);
	assert_int_equal(e, 3 * MIB);
	assert_ok(cache_fill(r.f, t, 0, b, 8192));
	assert_ok(cache_fill(r.f, t, 2 * MIB + 4096, b, 4096));
	assert_true(cache_gap(r.f, 0, 3 * MIB, &s, &e));
	assert_int_equal(s, 8192);
	assert_int_equal(e, 2 * MIB + 4096);
	assert_true(cache_gap(r.f, 2 * MIB + 4096, 3 * MIB, &s, &e));
	assert_int_equal(s, 2 * MIB + 8192);
	assert_false(cache_gap(r.f, 100, 8192, &s, &e));
	rig_end(&r);
}

static void clean_content_outlives_a_restart_and_dirty_does_not(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	uint32_t t = cache_fill_ticket(r.f);
	CLEANUP(heap) char *b = mem_alloc(1, 2 * MIB);
	memset(b, 'k', 2 * MIB);
	assert_ok(cache_fill(r.f, t, 0, b, 2 * MIB));
	put(r.f, 4096, "dirty", 2 * MIB);
	cache_file_set_dv(r.f, 42);
	struct cache_file *g;
	assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, 2, 4}}, &g));
	assert_ok(cache_fill(g, cache_fill_ticket(g), 0, "small", 5));
	cache_file_set_dv(g, 43);
	cache_file_close(g);
	rig_close(&r);

	rig_open(&r, 32 * MIB);
	assert_int_equal(cache_file_dv(r.f), 42);
	assert_string_equal(get(r.f, 0, 3), "kkk");
	size_t got;
	char c[8];
	assert_ok(cache_read(r.f, 4096, c, 5, &got));
	assert_int_equal(got, 0);
	assert_string_equal(get(r.f, 2 * MIB - 2, 2), "kk");
	assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, 2, 4}}, &g));
	assert_int_equal(cache_file_dv(g), 43);
	assert_string_equal(get(g, 0, 5), "small");
	cache_file_close(g);
	rig_end(&r);
}

static void without_an_index_the_next_start_is_empty(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	assert_ok(cache_fill(r.f, cache_fill_ticket(r.f), 0, "gone", 4));
	rig_close(&r);
	CLEANUP(str) char *index = mem_printf("%s/index", r.dir);
	assert_int_equal(truncate(index, 30), 0); /* damaged counts as none */
	rig_open(&r, 32 * MIB);
	assert_int_not_equal(access(index, F_OK), 0);
	struct cache_usage u;
	cache_usage(r.c, &u);
	assert_int_equal(u.used, 0);
	rig_end(&r);
}

static void two_processes_do_not_share_a_cache(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	struct cache *other;
	assert_err(cache_open(r.dir, 32 * MIB, &other), AFS_EBUSY);
	rig_end(&r);
}

static bool count_file(void *ctx, const struct cache_index_file *f)
{
	(void)f;
	(*(int *)ctx)++;
	return true;
}

static void an_index_that_breaks_a_rule_is_refused(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf b = {0};
	cache_index_begin(&b);
	struct cache_index_file f = {key, 5, 9, 2, NULL};
	cache_index_file(&b, &f);
	cache_index_chunk_put(&b, &(struct cache_index_chunk){3, {1, 0, 0, 0}});
	cache_index_chunk_put(&b, &(struct cache_index_chunk){4, {1, 0, 0, 0}});
	cache_index_end(&b, 1);
	assert_ok(b.err);
	int n = 0;
	assert_ok(cache_index_parse((uint8_t *)b.data, b.len, count_file, &n));
	assert_int_equal(n, 1);
	for (size_t cut = 0; cut < b.len; cut++)
		assert_true(cache_index_parse((uint8_t *)b.data, cut, NULL, NULL) != AFS_OK);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 1;
		assert_true(cache_index_parse((uint8_t *)b.data, b.len, NULL, NULL) != AFS_OK);
		b.data[i] ^= 1;
	}
	/* chunks out of order, with a checksum that is right */
	CLEANUP(buf) struct buf o = {0};
	cache_index_begin(&o);
	cache_index_file(&o, &f);
	cache_index_chunk_put(&o, &(struct cache_index_chunk){4, {1, 0, 0, 0}});
	cache_index_chunk_put(&o, &(struct cache_index_chunk){4, {1, 0, 0, 0}});
	cache_index_end(&o, 1);
	assert_err(cache_index_parse((uint8_t *)o.data, o.len, NULL, NULL), AFS_ECORRUPT);
}

TEST_MAIN(T(what_was_written_is_read_and_dirty),
	T(a_page_written_in_part_is_asked_for_when_the_server_has_it),
	T(what_is_behind_the_end_of_a_page_reads_as_zeros), T(a_fill_keeps_what_is_dirty),
	T(a_fill_that_began_before_a_cut_is_not_kept),
	T(a_cut_leaves_zeros_and_takes_what_was_dirty_behind_it),
	T(a_file_that_outgrows_its_area_keeps_its_bytes),
	T(a_stream_larger_than_the_cache_passes_within_its_bound),
	T(many_small_files_stay_within_the_bound_too), T(what_is_dirty_is_never_pushed_out),
	T(runs_come_in_order_and_short_ones_can_be_passed_over), T(gaps_are_found_across_chunks),
	T(clean_content_outlives_a_restart_and_dirty_does_not),
	T(without_an_index_the_next_start_is_empty), T(two_processes_do_not_share_a_cache),
	T(an_index_that_breaks_a_rule_is_refused))
