/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/base/log.h"
#include "cell/base/mem.h"
#include "client/cache/cache.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static void content_outlives_a_restart_and_what_was_dirty_is_an_orphan(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	uint32_t t = cache_fill_ticket(r.f);
	CLEANUP(heap) char *b = mem_alloc(1, 2 * MIB);
	memset(b, 'k', 2 * MIB);
	assert_ok(cache_fill(r.f, t, 0, b, 2 * MIB));
	cache_file_set_dv(r.f, 42);
	struct cache_file *g;
	assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, 2, 4}}, &g));
	assert_ok(cache_fill(g, cache_fill_ticket(g), 0, "small", 5));
	cache_file_set_dv(g, 43);
	put(g, 4096, "dirty", 5);
	struct cache_meta m = {true, 4101, UINT64_MAX, 99, 1000, 1, 1}, back;
	cache_file_set_meta(g, &m);
	cache_file_close(g);
	rig_close(&r);

	rig_open(&r, 32 * MIB);
	assert_int_equal(cache_file_dv(r.f), 42);
	assert_string_equal(get(r.f, 0, 3), "kkk");
	assert_string_equal(get(r.f, 2 * MIB - 2, 2), "kk");
	assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, 2, 4}}, &g));
	size_t got;
	char c[8];
	assert_ok(cache_read(g, 0, c, 5, &got)); /* whoever opens it begins anew */
	assert_int_equal(got, 0);
	cache_file_close(g);
	struct cache_file *o[4];
	assert_int_equal(cache_orphans(r.c, o, 4), 1);
	assert_int_equal(cache_file_key(o[0]).fid.Unique, 4);
	cache_file_meta(o[0], &back);
	assert_int_equal(back.length, 4101);
	assert_int_equal(back.uid, 1000);
	assert_int_equal(cache_file_dv(o[0]), 43);
	assert_int_equal(cache_file_end(o[0]), 8192);
	assert_string_equal(get(o[0], 4096, 5), "dirty");
	cache_orphan_done(o[0], false);
	rig_close(&r);

	rig_open(&r, 32 * MIB); /* not sent: still there */
	assert_int_equal(cache_orphans(r.c, o, 4), 1);
	cache_orphan_done(o[0], true);
	assert_int_equal(cache_orphans(r.c, o, 4), 0);
	rig_end(&r);
}

/* A process that ends without a word while `what` is done. */
static void killed(struct rig *r, void (*what)(struct rig *r))
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		rig_open(r, 32 * MIB);
		what(r);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void fill_write_cut(struct rig *r)
{
	CLEANUP(heap) char *b = mem_alloc(1, 3 * MIB);
	memset(b, 'c', 3 * MIB);
	cache_file_set_dv(r->f, 7);
	assert_ok(cache_fill(r->f, cache_fill_ticket(r->f), 0, b, 3 * MIB));
	struct cache_file *g;
	for (uint32_t i = 0; i < 3000; i++) { /* more than a log holds at first */
		assert_ok(cache_file_open(r->c, &(struct cache_key){7, {1, 10 + i, 1}}, &g));
		cache_file_set_dv(g, i);
		put(g, 0, "x", 0);
		if (i % 3) {
			uint64_t s, e;
			assert_true(cache_take_dirty(g, 0, CACHE_PAGE, MIB, &s, &e));
			if (i % 3 == 1)
				cache_stored(g, s, e, true);
		}
		cache_file_close(g);
	}
	cache_note_add(r->c, &(struct cache_note){{7, {1, 1, 1}}, 5, ".__afs1"});
	cache_note_add(r->c, &(struct cache_note){{7, {1, 1, 1}}, 5, ".__afs2"});
	cache_note_remove(r->c, &(struct cache_note){{7, {1, 1, 1}}, 5, ".__afs1"});
}

static void a_killed_process_leaves_clean_content_and_orphans(void **state)
{
	(void)state;
	struct rig r = {.dir = test_scratch()};
	killed(&r, fill_write_cut);
	rig_open(&r, 32 * MIB);
	assert_int_equal(cache_file_dv(r.f), 7);
	assert_string_equal(get(r.f, 3 * MIB - 2, 2), "cc");
	static struct cache_file *o[4096];
	size_t n = cache_orphans(r.c, o, ARRAY_SIZE(o));
	assert_int_equal(n, 2000); /* dirty, and being stored when it died */
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(get(o[i], 0, 1), "x");
		cache_orphan_done(o[i], true);
	}
	struct cache_file *g;
	assert_ok(cache_file_open(r.c, &(struct cache_key){7, {1, 11, 1}}, &g));
	assert_int_equal(cache_file_dv(g), 1);
	assert_string_equal(get(g, 0, 1), "x");
	cache_file_close(g);
	struct cache_note notes[4];
	assert_int_equal(cache_notes(r.c, notes, 4), 1);
	assert_string_equal(notes[0].name, ".__afs2");
	struct cache_usage u;
	cache_usage(r.c, &u);
	assert_int_equal(u.dirty, 0);
	assert_int_equal(u.orphans, 0);
	rig_end(&r);
}

static void sync_one_of_three(struct rig *r)
{
	struct cache_file *g, *h;
	cache_file_set_dv(r->f, 7);
	assert_ok(cache_fill(r->f, cache_fill_ticket(r->f), 0, "clean", 5));
	assert_ok(cache_file_open(r->c, &(struct cache_key){7, {1, 10, 1}}, &g));
	assert_ok(cache_file_open(r->c, &(struct cache_key){7, {1, 12, 1}}, &h));
	put(g, 0, "synced", 0);
	put(h, 0, "sent", 0);
	cache_sync(r->c);
	uint64_t s, e;
	assert_true(cache_take_dirty(h, 0, CACHE_PAGE, MIB, &s, &e));
	cache_stored(h, s, e, true);
	cache_settle(h);
	assert_ok(cache_file_open(r->c, &(struct cache_key){7, {1, 14, 1}}, &h));
	put(h, 0, "late", 0);
	put(g, MIB, "later", 0);
}

static void after_the_machine_fell_only_what_was_synced_counts(void **state)
{
	(void)state;
	struct rig r = {.dir = test_scratch()};
	killed(&r, sync_one_of_three);
	/* another boot, as the log sees it: read it, and write it again with another mark */
	CLEANUP(str) char *log = mem_printf("%s/log", r.dir);
	FILE *f = fopen(log, "r+");
	char head[4096];
	assert_int_equal(fread(head, 1, sizeof(head), f), sizeof(head));
	uint64_t generation;
	memcpy(&generation, head + 8, 8);
	CLEANUP(buf) struct buf b = {0};
	cache_log_head(&b, generation, false, (const uint8_t *)"another boot....");
	rewind(f);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	fclose(f);
	rig_open(&r, 32 * MIB);
	struct cache_file *o[4];
	assert_int_equal(cache_orphans(r.c, o, 4), 1);
	assert_int_equal(cache_file_key(o[0]).fid.Vnode, 10);
	assert_string_equal(get(o[0], 0, 6), "synced");
	assert_int_equal(cache_file_end(o[0]), 4096);
	cache_orphan_done(o[0], true);
	struct cache_usage u;
	cache_usage(r.c, &u);
	assert_int_equal(u.used, 0);
	rig_end(&r);
}

static void without_a_log_the_next_start_is_empty(void **state)
{
	(void)state;
	struct rig r = {0};
	rig_open(&r, 32 * MIB);
	assert_ok(cache_fill(r.f, cache_fill_ticket(r.f), 0, "gone", 4));
	rig_close(&r);
	CLEANUP(str) char *log = mem_printf("%s/log", r.dir);
	assert_int_equal(truncate(log, 30), 0); /* damaged counts as none */
	rig_open(&r, 32 * MIB);
	struct cache_usage u;
	cache_usage(r.c, &u);
	assert_int_equal(u.used, 0);
	rig_end(&r);
}

static void a_cache_in_memory_does_the_same(void **state)
{
	(void)state;
	struct cache *c;
	struct cache_file *f;
	assert_ok(cache_open(NULL, 16 * MIB, &c));
	CLEANUP(heap) char *b = mem_alloc(1, MIB);
	for (uint32_t k = 0; k < 3; k++) {
		assert_ok(cache_file_open(c, &(struct cache_key){7, {1, k * 2, 1}}, &f));
		for (uint64_t i = 0; i < 20; i++) {
			memset(b, (int)(i + k), MIB);
			assert_ok(cache_fill(f, cache_fill_ticket(f), i * MIB, b, MIB));
			assert_int_equal(get(f, i * MIB + 77, 1)[0], (char)(i + k));
		}
		cache_file_close(f);
	}
	struct cache_usage u;
	cache_usage(c, &u);
	assert_true(u.used <= 16 * MIB && u.used > 8 * MIB);
	cache_sync(c);
	cache_close(c);
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

static bool count_record(void *ctx, const struct cache_record *r)
{
	(void)r;
	(*(int *)ctx)++;
	return true;
}

static void a_log_ends_where_it_breaks_a_rule(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf b = {0};
	cache_log_head(&b, 3, false, (const uint8_t *)"0123456789abcdef");
	struct cache_record file = {.type = CACHE_R_FILE, .place = 5, .key = key, .dv = 9};
	struct cache_record chunk = {.type = CACHE_R_CHUNK, .place = 5, .index = 3, .valid = {3}, .dirty = {1}};
	cache_log_put(&b, 3, &file);
	size_t first = b.len;
	cache_log_put(&b, 3, &chunk);
	assert_ok(b.err);
	struct cache_log_about about;
	int n = 0;
	assert_ok(cache_log_parse((uint8_t *)b.data, b.len, &about, count_record, &n));
	assert_int_equal(n, 2);
	assert_int_equal(about.generation, 3);
	for (size_t i = first; i < b.len; i++) { /* any wrong bit takes the record away */
		b.data[i] ^= 1;
		n = 0;
		assert_ok(cache_log_parse((uint8_t *)b.data, b.len, &about, count_record, &n));
		assert_int_equal(n, 1);
		b.data[i] ^= 1;
		n = 0;
		assert_ok(cache_log_parse((uint8_t *)b.data, i, &about, count_record, &n));
		assert_int_equal(n, 1);
	}
	chunk.dirty[0] = 4; /* dirty, but not valid */
	cache_log_put(&b, 3, &chunk);
	n = 0;
	assert_ok(cache_log_parse((uint8_t *)b.data, b.len, &about, count_record, &n));
	assert_int_equal(n, 2);
	b.data[8] ^= 1;
	assert_err(cache_log_parse((uint8_t *)b.data, b.len, &about, NULL, NULL), AFS_ECORRUPT);
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
	T(content_outlives_a_restart_and_what_was_dirty_is_an_orphan),
	T(a_killed_process_leaves_clean_content_and_orphans), T(after_the_machine_fell_only_what_was_synced_counts),
	T(without_a_log_the_next_start_is_empty), T(a_cache_in_memory_does_the_same), T(two_processes_do_not_share_a_cache),
	T(a_log_ends_where_it_breaks_a_rule))
