/* SPDX-License-Identifier: BSD-2-Clause
 * Answers are remembered until something changes, within their bound. */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/db/memo.h"

#include <malloc.h>
#include <string.h>

static void answers_are_found_by_kind_and_key(void **state)
{
	(void)state;
	struct memo *m = memo_new(1 << 20);
	char out[16];
	size_t n;
	assert_non_null(m);
	assert_false(memo_get(m, 1, "a", 1, out, sizeof(out), &n));
	memo_put(m, memo_since(m), 1, "a", 1, "one", 3);
	memo_put(m, memo_since(m), 2, "a", 1, "two", 3);
	memo_put(m, memo_since(m), 1, "ab", 2, "", 0);
	assert_true(memo_get(m, 1, "a", 1, out, sizeof(out), &n));
	assert_int_equal(n, 3);
	assert_memory_equal(out, "one", 3);
	assert_true(memo_get(m, 2, "a", 1, out, sizeof(out), &n));
	assert_memory_equal(out, "two", 3);
	assert_true(memo_get(m, 1, "ab", 2, out, sizeof(out), &n));
	assert_int_equal(n, 0);
	assert_false(memo_get(m, 1, "a", 1, out, 2, &n)); /* no room: as if it were not there */
	memo_free(m);
}

static void a_change_forgets_all_and_what_was_read_before_it_is_not_taken(void **state)
{
	(void)state;
	struct memo *m = memo_new(1 << 20);
	char out[16];
	size_t n;
	const uint64_t before = memo_since(m);
	memo_put(m, before, 1, "a", 1, "one", 3);
	memo_forget(m);
	assert_false(memo_get(m, 1, "a", 1, out, sizeof(out), &n));
	memo_put(m, before, 1, "a", 1, "one", 3);
	assert_false(memo_get(m, 1, "a", 1, out, sizeof(out), &n));
	memo_put(m, memo_since(m), 1, "a", 1, "new", 3);
	assert_true(memo_get(m, 1, "a", 1, out, sizeof(out), &n));
	assert_memory_equal(out, "new", 3);
	memo_free(m);
}

static void it_stays_within_its_bound(void **state)
{
	(void)state;
	enum { BOUND = 1 << 20 };
	const size_t before = mallinfo2().uordblks;
	struct memo *m = memo_new(BOUND);
	char value[200] = "", out[200];
	size_t n, found = 0;
	for (uint32_t i = 0; i < 50000; i++) {
		memo_put(m, memo_since(m), 1, &i, sizeof(i), value, sizeof(value));
		assert_true(memo_get(m, 1, &i, sizeof(i), out, sizeof(out), &n));
	}
	for (uint32_t i = 0; i < 50000; i++)
		found += memo_get(m, 1, &i, sizeof(i), out, sizeof(out), &n);
	assert_true(found > 0 && found * sizeof(value) <= BOUND);
	assert_true(mallinfo2().uordblks < before + 3 * BOUND);
	static char large[BOUND];
	memo_put(m, memo_since(m), 2, "x", 1, large, sizeof(large)); /* too large to be worth it */
	assert_false(memo_get(m, 2, "x", 1, large, sizeof(large), &n));
	memo_free(m);
}

static void memory_may_fail(void **state)
{
	(void)state;
	struct memo *m = memo_new(1 << 20);
	char out[16];
	size_t n;
	mem_fail_after(0);
	memo_put(m, memo_since(m), 1, "a", 1, "one", 3);
	mem_fail_after(-1);
	assert_false(memo_get(m, 1, "a", 1, out, sizeof(out), &n));
	memo_free(m);
}

TEST_MAIN(T(answers_are_found_by_kind_and_key), T(a_change_forgets_all_and_what_was_read_before_it_is_not_taken),
	T(it_stays_within_its_bound), T(memory_may_fail))
