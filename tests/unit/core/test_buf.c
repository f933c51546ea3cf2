/* SPDX-License-Identifier: BSD-2-Clause
 * The buffer pool. */
#include "rx/core/inside.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <string.h>

static struct rx_buf_pool_stats stats(struct rx_buf_pool *pool)
{
	struct rx_buf_pool_stats st;
	rx_buf_pool_stats(pool, &st);
	return st;
}

static void a_buffer_has_the_room_of_its_class_and_comes_zeroed(void **state)
{
	(void)state;
	struct rx_buf_pool *pool = rx_buf_pool_new(1 << 20);
	static const struct {
		uint32_t ask, get;
	} cases[] = {{0, RX_BUF_SMALL}, {RX_BUF_SMALL, RX_BUF_SMALL},
		{RX_BUF_SMALL + 1, RX_BUF_MID}, {RX_BUF_MID + 1, RX_BUF_MAX},
		{RX_BUF_MAX, RX_BUF_MAX}};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rx_buf *b = rx_buf_get(pool, cases[i].ask);
		assert_int_equal(b->cap, cases[i].get);
		for (uint32_t k = 0; k < b->cap; k++)
			assert_int_equal(b->data[k], 0);
		rx_buf_unref(b);
	}
	assert_null(rx_buf_get(pool, RX_BUF_MAX + 1));
	assert_true((int)RX_BUF_SMALL >= RX_SAFE_BODY + RX_HEADER);
	assert_true((int)RX_BUF_MID >= (int)RX_BIG_DATAGRAM);
	assert_true((int)RX_BUF_MAX >= (int)RX_DATAGRAM_MAX);
	rx_buf_pool_free(pool);
}

static void buffers_are_reused_and_counted(void **state)
{
	(void)state;
	struct rx_buf_pool *pool = rx_buf_pool_new(1 << 20);
	struct rx_buf *b = rx_buf_get(pool, 100);
	rx_buf_ref(b);
	rx_buf_unref(b);
	assert_true(stats(pool).used_bytes > 100);
	rx_buf_unref(b);
	assert_int_equal(stats(pool).used_bytes, 0);
	size_t allocated = stats(pool).allocated_bytes;
	assert_ptr_equal(rx_buf_get(pool, 200), b);
	assert_int_equal(stats(pool).allocated_bytes, allocated);
	assert_int_equal(stats(pool).gets, 2);
	rx_buf_unref(b);
	rx_buf_pool_free(pool);
}

static void the_bound_holds_and_idle_buffers_of_one_class_make_room_for_another(void **state)
{
	(void)state;
	struct rx_buf_pool *pool = rx_buf_pool_new(100 * 1024);
	struct rx_buf *small[64];
	unsigned n = 0;
	while (n < 64 && (small[n] = rx_buf_get(pool, 100)))
		n++;
	assert_in_range(n, 45, 55);
	assert_true(stats(pool).allocated_bytes <= 100 * 1024);
	assert_int_equal(stats(pool).refused, 1);
	assert_null(rx_buf_get(pool, RX_BUF_MAX));
	while (n)
		rx_buf_unref(small[--n]);
	struct rx_buf *b = rx_buf_get(pool, RX_BUF_MAX);
	assert_non_null(b);
	assert_true(stats(pool).allocated_bytes <= 100 * 1024);
	rx_buf_unref(b);
	rx_buf_pool_free(pool);
}

static void a_packet_record_is_clear_however_often_its_buffer_was_used(void **state)
{
	(void)state;
	struct rx_buf_pool *pool = rx_buf_pool_new(1 << 20);
	for (int i = 0; i < 3; i++) {
		struct rx_packet *p = rx_packet_new(rx_buf_get(pool, 100));
		assert_null(p->next);
		assert_int_equal(p->seq, 0);
		assert_int_equal(p->len, 0);
		assert_false(p->last);
		p->seq = p->len = 77;
		p->last = true;
		p->next = p;
		rx_packet_free(p);
	}
	rx_buf_pool_free(pool);
}

enum { THREADS = 4, ROUNDS = 20000, HANDS = 16 };
static _Atomic(struct rx_buf *) table[HANDS]; /* buffers on their way between threads */

static void *hand_around(void *arg)
{
	struct rx_buf_pool *pool = arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct rx_buf *b = rx_buf_get(pool, i % 3 ? 100 : RX_BUF_MID);
		if (b) {
			memset(b->data, (int)(i & 0xff), 64);
			for (int k = 1; k < 64; k++) /* nobody else has it */
				if (b->data[k] != b->data[0])
					__builtin_trap();
		}
		rx_buf_unref(atomic_exchange(&table[i % HANDS], b));
	}
	return NULL;
}

static void threads_get_and_give_back_without_losing_or_sharing_any(void **state)
{
	(void)state;
	struct rx_buf_pool *pool = rx_buf_pool_new(1 << 20);
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hand_around, pool), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < HANDS; i++)
		rx_buf_unref(atomic_exchange(&table[i], NULL));
	assert_int_equal(stats(pool).used_bytes, 0);
	assert_int_equal(stats(pool).gets, THREADS * ROUNDS);
	rx_buf_pool_free(pool);
}

struct waiter {
	struct rx_buf_pool *pool;
	atomic_bool stop;
	struct rx_buf *got;
	pthread_t thread;
};

static bool stopped(void *ctx) { return ((struct waiter *)ctx)->stop; }

static void *await_buffer(void *arg)
{
	struct waiter *w = arg;
	w->got = rx_buf_await(w->pool, RX_BUF_MID, MONO_NEVER - 1, stopped, w);
	return NULL;
}

static void start_waiter(struct waiter *w, struct rx_buf_pool *pool, uint64_t nth)
{
	*w = (struct waiter){.pool = pool};
	assert_int_equal(pthread_create(&w->thread, NULL, await_buffer, w), 0);
	while (stats(pool).waits < nth)
		sched_yield();
}

static void who_may_wait_gets_a_buffer_when_there_is_room_again_or_is_told_to_stop(void **state)
{
	(void)state;
	struct rx_buf_pool *pool = rx_buf_pool_new(1 << 20);
	struct rx_buf *all[600];
	size_t n = 0;
	while ((all[n] = rx_buf_get(pool, 100)))
		n++;
	struct waiter a, b;
	assert_null(rx_buf_await(pool, 100, 0, stopped, &(struct waiter){0}));
	assert_null(rx_buf_await(pool, 100, clk_mono(), stopped, &(struct waiter){0}));
	start_waiter(&a, pool, 2);
	start_waiter(&b, pool, 3);
	b.stop = true;
	rx_buf_pool_wake(pool);
	pthread_join(b.thread, NULL);
	assert_null(b.got);
	/* small ones make room for a larger one; an eighth of the pool stays free */
	while (stats(pool).used_bytes > (1 << 20) / 8 * 7 - sizeof(struct rx_buf) - RX_BUF_MID)
		rx_buf_unref(all[--n]);
	pthread_join(a.thread, NULL);
	assert_non_null(a.got);
	assert_in_range(stats(pool).used_bytes, 0, (1 << 20) / 8 * 7);
	assert_null(rx_buf_await(pool, RX_BUF_MID, 0, stopped, &(struct waiter){0}));
	rx_buf_unref(a.got);
	while (n)
		rx_buf_unref(all[--n]);
	assert_int_equal(stats(pool).used_bytes, 0);
	rx_buf_pool_free(pool);
}

TEST_MAIN(T(who_may_wait_gets_a_buffer_when_there_is_room_again_or_is_told_to_stop), T(a_buffer_has_the_room_of_its_class_and_comes_zeroed), T(buffers_are_reused_and_counted),
	T(the_bound_holds_and_idle_buffers_of_one_class_make_room_for_another),
	T(a_packet_record_is_clear_however_often_its_buffer_was_used),
	T(threads_get_and_give_back_without_losing_or_sharing_any))
