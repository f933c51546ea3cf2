/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "fileserver/cb/cb_table.h"

static void nothing(struct cb_holder *h) { (void)h; }

static const struct AFSFid doc = {5, 2, 7}, other = {5, 4, 9}, elsewhere = {6, 2, 7};

static afs_err promise(
	struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h, mono_ns now)
{
	struct cb_grant g;
	afs_err err = cb_promise(t, fid, h, now, CB_KIND_FILE, true, &g);
	if (err == AFS_OK && g.evicted)
		cb_holder_unref(g.evicted);
	return err;
}

static size_t take(
	struct cb_table *t, const struct AFSFid *fid, struct cb_holder *except, mono_ns now)
{
	struct cb_holder *out[8];
	size_t n = cb_take(t, fid, except, now, out, 8);
	for (size_t i = 0; i < n; i++)
		cb_holder_unref(out[i]);
	return n;
}

static void a_store_breaks_every_promise_but_the_writers_own(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a, b;
	cb_holder_init(&a, nothing);
	cb_holder_init(&b, nothing);
	struct cb_holder *broken[4];

	assert_ok(promise(t, &doc, &a, 0));
	assert_ok(promise(t, &doc, &b, 0));

	assert_int_equal(cb_take(t, &doc, &a, SEC(59), broken, 4), 1);
	assert_ptr_equal(broken[0], &b);
	cb_holder_unref(broken[0]);
	assert_int_equal(cb_count_on(t, &doc), 1);
	assert_int_equal(take(t, &doc, NULL, SEC(59)), 1);
	assert_int_equal(cb_count(t), 0);
	cb_table_free(t);
}

static void a_promise_broken_once_is_gone(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	assert_ok(promise(t, &doc, &a, 0));
	assert_int_equal(take(t, &doc, NULL, 0), 1);
	assert_int_equal(take(t, &doc, NULL, 0), 0);
	cb_table_free(t);
}

static void a_repeated_promise_only_moves_the_expiry(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	assert_ok(promise(t, &doc, &a, 0));
	assert_ok(promise(t, &doc, &a, SEC(3600)));
	assert_int_equal(cb_count_of(t, &a), 1);
	/* the first alone would have been over by now */
	assert_int_equal(take(t, &doc, NULL, SEC(4 * 3600 + 1800)), 1);
	cb_table_free(t);
}

static void an_expired_promise_is_not_broken(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	assert_ok(promise(t, &doc, &a, 0));
	assert_int_equal(take(t, &doc, NULL, SEC(5 * 3600)), 0);
	assert_int_equal(cb_count(t), 0);
	cb_table_free(t);
}

static void the_server_keeps_a_promise_three_minutes_longer_than_it_says(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	struct cb_grant g;
	assert_ok(cb_promise(t, &doc, &a, SEC(10), CB_KIND_FILE, true, &g));
	mono_ns said = SEC(10) + SEC(g.seconds);
	cb_expire(t, said + SEC(179));
	assert_int_equal(take(t, &doc, NULL, said + SEC(179)), 1);
	cb_table_free(t);
}

static void lives_shorten_with_the_number_of_holders(void **state)
{
	(void)state;
	static const struct {
		unsigned holders, seconds;
	} want[] = {{0, 14400}, {7, 14400}, {8, 3600}, {16, 1800}, {24, 900}, {39, 900}, {40, 600},
		{63, 600}, {64, 420}};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct cb_table *t = cb_table_new(128);
		struct cb_holder h[80];
		for (unsigned k = 0; k < want[i].holders; k++) {
			cb_holder_init(&h[k], nothing);
			assert_ok(promise(t, &doc, &h[k], 0));
		}
		struct cb_holder last;
		cb_holder_init(&last, nothing);
		struct cb_grant g;
		assert_ok(cb_promise(t, &doc, &last, 0, CB_KIND_FILE, true, &g));
		assert_in_range(g.seconds, want[i].seconds, want[i].seconds + 127);
		cb_table_free(t);
	}
}

static void bulk_calls_count_as_22_more_holders_and_volumes_live_two_hours(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	struct cb_grant g;
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_BULK, true, &g));
	assert_in_range(g.seconds, 1800, 1927);
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_VOLUME, true, &g));
	assert_in_range(g.seconds, 7200, 7327);
	cb_table_free(t);
}

static void all_objects_of_a_fixed_volume_share_one_promise(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	struct cb_grant g;
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_VOLUME, true, &g));
	assert_ok(cb_promise(t, &other, &a, 0, CB_KIND_VOLUME, true, &g));
	assert_int_equal(cb_count(t), 1);
	assert_int_equal(take(t, &(struct AFSFid){5, 0, 0}, NULL, 0), 1);
	cb_table_free(t);
}

static void a_full_table_takes_from_who_holds_most_what_was_renewed_longest_ago(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(3);
	struct cb_holder a, b;
	cb_holder_init(&a, nothing);
	cb_holder_init(&b, nothing);
	struct cb_grant g;
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_FILE, true, &g));       /* 4 h */
	assert_ok(cb_promise(t, &other, &a, 0, CB_KIND_BULK, true, &g));     /* 30 min */
	assert_ok(cb_promise(t, &elsewhere, &a, 0, CB_KIND_FILE, true, &g)); /* 4 h */
	assert_null(g.evicted);
	assert_ok(cb_promise(t, &doc, &a, SEC(1), CB_KIND_FILE, true, &g)); /* renewed */
	assert_ok(cb_promise(t, &doc, &b, SEC(1), CB_KIND_FILE, true, &g));
	assert_ptr_equal(g.evicted, &a);
	assert_true(fid_equal(&g.evicted_fid, &other));
	cb_holder_unref(g.evicted);
	assert_int_equal(cb_count(t), 3);
	assert_int_equal(cb_count_on(t, &other), 0);
	cb_table_free(t);
}

static void who_asks_for_more_than_a_share_pays_itself(void **state)
{
	(void)state;
	enum { ROOM = 8 };
	struct cb_table *t = cb_table_new(ROOM);
	struct cb_holder small, greedy;
	cb_holder_init(&small, nothing);
	cb_holder_init(&greedy, nothing);
	for (uint32_t i = 0; i < 3; i++)
		assert_ok(promise(t, &(struct AFSFid){5, 2 + i, 1}, &small, 0));
	for (uint32_t i = 0; i < 100; i++)
		assert_ok(promise(t, &(struct AFSFid){5, 100 + i, 1}, &greedy, 0));
	assert_int_equal(cb_count_of(t, &small), 3);
	assert_int_equal(cb_count_of(t, &greedy), 5);
	/* and the small one grows to its share at the other's cost */
	assert_ok(promise(t, &(struct AFSFid){5, 9, 1}, &small, 0));
	assert_int_equal(cb_count_of(t, &small), 4);
	assert_int_equal(cb_count_of(t, &greedy), 4);
	cb_table_free(t);
}

static void lives_may_be_longer_by_configuration(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	struct cb_grant g;
	cb_table_set_life(t, CB_LIFE_MAX_S);
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_FILE, true, &g));
	assert_in_range(g.seconds, 86400, 86400 + 127);
	assert_ok(cb_promise(t, &other, &a, 0, CB_KIND_BULK, true, &g)); /* an eighth, as the classic ones */
	assert_in_range(g.seconds, 10800, 10800 + 127);
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_VOLUME, true, &g));
	assert_in_range(g.seconds, 86400, 86400 + 127);
	assert_int_equal(take(t, &doc, NULL, SEC(86400)), 1);
	cb_table_free(t);
}

/* The promise that makes room may be the only one on the very fid that is asked for. */
static void making_room_on_the_same_fid_keeps_the_table_whole(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(1);
	struct cb_holder a, b;
	cb_holder_init(&a, nothing);
	cb_holder_init(&b, nothing);
	struct cb_grant g;
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_FILE, true, &g));
	assert_ok(cb_promise(t, &doc, &b, 0, CB_KIND_FILE, true, &g));
	assert_ptr_equal(g.evicted, &a);
	cb_holder_unref(g.evicted);
	assert_int_equal(cb_count_on(t, &doc), 1);
	assert_int_equal(cb_count_of(t, &b), 1);
	assert_int_equal(cb_count_of(t, &a), 0);
	cb_table_free(t);
}

static void expired_promises_make_room_before_live_ones_do(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(2);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	struct cb_grant g;
	assert_ok(cb_promise(t, &doc, &a, 0, CB_KIND_BULK, true, &g));
	assert_ok(cb_promise(t, &other, &a, 0, CB_KIND_FILE, true, &g));
	assert_ok(cb_promise(t, &elsewhere, &a, SEC(3600), CB_KIND_FILE, true, &g));
	assert_null(g.evicted);
	cb_table_free(t);
}

static void a_volume_break_takes_each_holder_once(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a, b, *out[8];
	cb_holder_init(&a, nothing);
	cb_holder_init(&b, nothing);
	assert_ok(promise(t, &doc, &a, 0));
	assert_ok(promise(t, &other, &a, 0));
	assert_ok(promise(t, &other, &b, 0));
	assert_ok(promise(t, &elsewhere, &b, 0));
	uint32_t cursor = 0;
	size_t got;
	assert_false(cb_take_volume(t, 5, 0, &cursor, out, 8, &got));
	assert_int_equal(got, 2);
	assert_int_equal(atomic_load(&a.refs), 2);
	assert_int_equal(atomic_load(&b.refs), 2);
	cb_holder_unref(out[0]);
	cb_holder_unref(out[1]);
	assert_int_equal(cb_count(t), 1);
	assert_int_equal(cb_count_on(t, &elsewhere), 1);
	cb_table_free(t);
}

static void a_closed_holder_gets_no_promise(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a;
	cb_holder_init(&a, nothing);
	assert_ok(promise(t, &doc, &a, 0));
	cb_forget_all(t, &a, true);
	assert_int_equal(cb_count(t), 0);
	assert_err(promise(t, &doc, &a, 0), AFS_EAGAIN);
	cb_table_free(t);
}

static void what_is_given_back_is_not_broken(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder a, b;
	cb_holder_init(&a, nothing);
	cb_holder_init(&b, nothing);
	assert_ok(promise(t, &doc, &a, 0));
	assert_ok(promise(t, &doc, &b, 0));
	cb_forget(t, &doc, &a);
	cb_forget(t, &other, &a); /* unknown: nothing */
	assert_int_equal(take(t, &doc, &b, 0), 0);
	cb_drop(t, &doc);
	assert_int_equal(cb_count(t), 0);
	cb_table_free(t);
}

static void more_holders_than_room_come_in_several_takes(void **state)
{
	(void)state;
	struct cb_table *t = cb_table_new(16);
	struct cb_holder h[5], *out[2];
	for (size_t i = 0; i < 5; i++) {
		cb_holder_init(&h[i], nothing);
		assert_ok(promise(t, &doc, &h[i], 0));
	}
	size_t total = 0, n;
	do {
		n = cb_take(t, &doc, NULL, 0, out, 2);
		for (size_t i = 0; i < n; i++)
			cb_holder_unref(out[i]);
		total += n;
	} while (n == 2);
	assert_int_equal(total, 5);
	assert_int_equal(cb_count(t), 0);
	cb_table_free(t);
}

/* Against a plain model: which (fid, holder) pairs are promised until when. */
static void the_table_agrees_with_a_simple_model(void **state)
{
	(void)state;
	enum { FIDS = 12, HOLDERS = 6, STEPS = 40000 };
	struct cb_table *t = cb_table_new(FIDS * HOLDERS);
	struct cb_holder h[HOLDERS];
	mono_ns until[FIDS][HOLDERS] = {0}, now = 0;
	for (size_t i = 0; i < HOLDERS; i++)
		cb_holder_init(&h[i], nothing);
	uint32_t rng = 1;
	for (int step = 0; step < STEPS; step++) {
		rng = rng * 1664525 + 1013904223;
		unsigned f = (rng >> 8) % FIDS, k = (rng >> 16) % HOLDERS;
		struct AFSFid fid = {1 + f % 3, 2 + f, 1};
		now += (rng >> 24) % 8 == 0 ? SEC(rng % 3000) : 0;
		switch (rng % 5) {
		case 0:
		case 1: {
			struct cb_grant g;
			assert_ok(cb_promise(t, &fid, &h[k], now, CB_KIND_FILE, true, &g));
			assert_null(g.evicted);
			until[f][k] = now + SEC(g.seconds) + SEC(180);
			break;
		}
		case 2: {
			struct cb_holder *out[HOLDERS];
			size_t want = 0, n = cb_take(t, &fid, &h[k], now, out, HOLDERS);
			for (size_t i = 0; i < HOLDERS; i++)
				if (i != k) {
					want += until[f][i] > now;
					until[f][i] = 0;
				}
			assert_int_equal(n, want);
			for (size_t i = 0; i < n; i++)
				cb_holder_unref(out[i]);
			break;
		}
		case 3:
			cb_forget(t, &fid, &h[k]);
			until[f][k] = 0;
			break;
		case 4: {
			size_t want = 0;
			for (size_t i = 0; i < FIDS; i++)
				for (size_t j = 0; j < HOLDERS; j++)
					want += until[i][j] > now;
			uint32_t left = cb_expire(t, now);
			assert_true(left >= want); /* whole slots go at once */
			break;
		}
		}
	}
	for (size_t i = 0; i < HOLDERS; i++) {
		cb_forget_all(t, &h[i], true);
		assert_int_equal(atomic_load(&h[i].refs), 1);
	}
	assert_int_equal(cb_count(t), 0);
	cb_table_free(t);
}

static void a_table_without_memory_is_not_made(void **state)
{
	(void)state;
	for (long n = 0;; n++) {
		mem_fail_after(n);
		struct cb_table *t = cb_table_new(16);
		bool failed = mem_has_failed();
		mem_fail_after(-1);
		assert_true(failed == !t);
		cb_table_free(t);
		if (!failed)
			break;
	}
}

TEST_MAIN(T(a_store_breaks_every_promise_but_the_writers_own), T(a_promise_broken_once_is_gone),
	T(a_repeated_promise_only_moves_the_expiry), T(an_expired_promise_is_not_broken),
	T(the_server_keeps_a_promise_three_minutes_longer_than_it_says),
	T(lives_shorten_with_the_number_of_holders),
	T(bulk_calls_count_as_22_more_holders_and_volumes_live_two_hours),
	T(all_objects_of_a_fixed_volume_share_one_promise),
	T(a_full_table_takes_from_who_holds_most_what_was_renewed_longest_ago),
	T(who_asks_for_more_than_a_share_pays_itself), T(lives_may_be_longer_by_configuration),
	T(making_room_on_the_same_fid_keeps_the_table_whole),
	T(expired_promises_make_room_before_live_ones_do), T(a_volume_break_takes_each_holder_once),
	T(a_closed_holder_gets_no_promise), T(what_is_given_back_is_not_broken),
	T(more_holders_than_room_come_in_several_takes), T(the_table_agrees_with_a_simple_model),
	T(a_table_without_memory_is_not_made))
