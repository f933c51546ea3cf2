/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The buffer pool.  Each class has a list of free buffers under the pool's lock and a stack onto
 * which any thread pushes what it gives back without a lock; whoever finds the list empty takes the
 * whole stack.  Only the push and the take-all exist on the stack, so it needs no tags.
 *
 * Who writes may wait for room, and gets at most the writers' share: the rest is for what comes, or the
 * acknowledgements that give writers their buffers back would find none.
 *
 * Always: used_bytes <= allocated_bytes <= max_bytes. */
#include "cell/base/mtx.h"
#include "rx/core/inside.h"

#include <assert.h>
#include <string.h>

enum { CLASSES = 3 };

struct class
{
	uint32_t cap;
	struct rx_buf *free;
	_Atomic(struct rx_buf *) returned;
};

struct rx_buf_pool {
	struct mtx lock;
	struct class classes[CLASSES];
	size_t max_bytes;
	size_t allocated; /* under the lock */
	atomic_size_t used;
	uint64_t gets, refused, waits; /* under the lock */
	struct cond room;
	atomic_uint waiters; /* on `room` */
};

static size_t footprint(uint32_t cap) { return sizeof(struct rx_buf) + cap; }

struct rx_buf_pool *rx_buf_pool_new(size_t max_bytes)
{
	struct rx_buf_pool *pool = mem_new(struct rx_buf_pool);
	if (!pool)
		return NULL;
	mtx_init(&pool->lock, RANK_POOL);
	cond_init(&pool->room);
	pool->max_bytes = max_bytes;
	pool->classes[0].cap = RX_BUF_SMALL;
	pool->classes[1].cap = RX_BUF_MID;
	pool->classes[2].cap = RX_BUF_MAX;
	return pool;
}

static void free_list(struct rx_buf *b)
{
	while (b) {
		struct rx_buf *next = b->next_free;
		mem_free(b);
		b = next;
	}
}

void rx_buf_pool_free(struct rx_buf_pool *pool)
{
	if (!pool)
		return;
	assert(atomic_load(&pool->used) == 0);
	for (int i = 0; i < CLASSES; i++) {
		free_list(pool->classes[i].free);
		free_list(atomic_load(&pool->classes[i].returned));
	}
	cond_fini(&pool->room);
	mtx_fini(&pool->lock);
	mem_free(pool);
}

static struct rx_buf *pop(struct class *c)
{
	if (!c->free)
		c->free = atomic_exchange(&c->returned, NULL);
	struct rx_buf *b = c->free;
	if (b)
		c->free = b->next_free;
	return b;
}

/* Another class may sit on memory that this one needs. */
static void make_room_locked(struct rx_buf_pool *pool, size_t need) REQUIRES(pool->lock);
static void make_room_locked(struct rx_buf_pool *pool, size_t need)
{
	for (int i = CLASSES; i-- > 0;) {
		while (pool->allocated + need > pool->max_bytes) {
			struct rx_buf *b = pop(&pool->classes[i]);
			if (!b)
				break;
			pool->allocated -= footprint(b->cap);
			mem_free(b);
		}
	}
}

/* NULL: *full says whether the bound is the reason, else memory is short. */
static struct rx_buf *get_locked(struct rx_buf_pool *pool, struct class *c, bool *full) REQUIRES(pool->lock);
static struct rx_buf *get_locked(struct rx_buf_pool *pool, struct class *c, bool *full)
{
	size_t need = footprint(c->cap);
	struct rx_buf *b = pop(c);
	*full = false;
	if (!b) {
		if (pool->allocated + need > pool->max_bytes)
			make_room_locked(pool, need);
		*full = pool->allocated + need > pool->max_bytes;
		if (!*full)
			b = mem_alloc(1, need);
		if (!b)
			return NULL;
		pool->allocated += need;
		b->cap = c->cap;
		b->pool = pool;
	}
	atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
	atomic_fetch_add(&pool->used, need);
	return b;
}

static struct class *class_for(struct rx_buf_pool *pool, uint32_t cap)
{
	struct class *c = pool->classes;
	while (c < pool->classes + CLASSES && c->cap < cap)
		c++;
	return c < pool->classes + CLASSES ? c : NULL;
}

struct rx_buf *rx_buf_get(struct rx_buf_pool *pool, uint32_t cap)
{
	struct class *c = class_for(pool, cap);
	bool full;
	if (!c)
		return NULL;
	mtx_lock(&pool->lock);
	pool->gets++;
	struct rx_buf *b = get_locked(pool, c, &full);
	if (!b)
		pool->refused++;
	mtx_unlock(&pool->lock);
	return b;
}

static bool beyond_share(const struct rx_buf_pool *pool, const struct class *c)
{
	return atomic_load(&pool->used) + footprint(c->cap) > pool->max_bytes - pool->max_bytes / 8;
}

struct rx_buf *rx_buf_await(struct rx_buf_pool *pool, uint32_t cap, mono_ns until, bool (*stop)(void *), void *ctx)
{
	struct class *c = class_for(pool, cap);
	struct rx_buf *b = NULL;
	if (!c)
		return NULL;
	mtx_lock(&pool->lock);
	pool->gets++;
	bool full = beyond_share(pool, c);
	if (!full)
		b = get_locked(pool, c, &full);
	if (!b && full && until) {
		pool->waits++;
		/* counted before it looks: who gives back pushes before it looks here */
		atomic_fetch_add(&pool->waiters, 1);
		for (bool in_time = true; in_time && full && !b && !stop(ctx);) {
			full = beyond_share(pool, c);
			if (!full)
				b = get_locked(pool, c, &full);
			if (full)
				in_time = cond_wait_until(&pool->room, &pool->lock, until);
		}
		atomic_fetch_sub(&pool->waiters, 1);
	}
	if (!b)
		pool->refused++;
	mtx_unlock(&pool->lock);
	return b;
}

void rx_buf_pool_wake(struct rx_buf_pool *pool)
{
	if (!atomic_load(&pool->waiters))
		return;
	mtx_lock(&pool->lock);
	cond_broadcast(&pool->room);
	mtx_unlock(&pool->lock);
}

struct rx_buf *rx_buf_ref(struct rx_buf *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return b;
}

void rx_buf_unref(struct rx_buf *b)
{
	if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	struct rx_buf_pool *pool = b->pool;
	struct class *c = pool->classes;
	while (c->cap != b->cap)
		c++;
	atomic_fetch_sub(&pool->used, footprint(b->cap));
	struct rx_buf *head = atomic_load_explicit(&c->returned, memory_order_relaxed);
	do {
		b->next_free = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&c->returned, &head, b, memory_order_seq_cst, memory_order_relaxed));
	rx_buf_pool_wake(pool);
}

unsigned rx_buf_pool_fill(const struct rx_buf_pool *pool)
{
	size_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);
	return (unsigned)(used / (pool->max_bytes / 100 + 1));
}

void rx_buf_pool_stats(struct rx_buf_pool *pool, struct rx_buf_pool_stats *out)
{
	mtx_lock(&pool->lock);
	*out = (struct rx_buf_pool_stats){
		.max_bytes = pool->max_bytes,
		.allocated_bytes = pool->allocated,
		.used_bytes = atomic_load(&pool->used),
		.gets = pool->gets,
		.refused = pool->refused,
		.waits = pool->waits,
	};
	mtx_unlock(&pool->lock);
}

struct rx_packet *rx_packet_new(struct rx_buf *buf)
{
	buf->packet = (struct rx_packet){.buf = buf};
	return &buf->packet;
}

void rx_packet_free(struct rx_packet *p)
{
	if (p)
		rx_buf_unref(p->buf);
}

void rx_packet_free_list(struct rx_packet *list)
{
	while (list) {
		struct rx_packet *next = list->next;
		rx_packet_free(list);
		list = next;
	}
}
