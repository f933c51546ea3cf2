/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The buffer pool.  Each class has a list of free buffers under the pool's lock and a stack onto
 * which any thread pushes what it gives back without a lock; whoever finds the list empty takes the
 * whole stack.  Only the push and the take-all exist on the stack, so it needs no tags.
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
	uint64_t gets, refused; /* under the lock */
};

static size_t footprint(uint32_t cap) { return sizeof(struct rx_buf) + cap; }

struct rx_buf_pool *rx_buf_pool_new(size_t max_bytes)
{
	struct rx_buf_pool *pool = mem_new(struct rx_buf_pool);
	if (!pool)
		return NULL;
	mtx_init(&pool->lock, RANK_POOL);
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
	mtx_fini(&pool->lock);
	mem_free(pool);
}

static struct rx_buf *pop(struct class *c)
{
	if (!c->free)
		c->free = atomic_exchange_explicit(&c->returned, NULL, memory_order_acquire);
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

static struct rx_buf *get_locked(struct rx_buf_pool *pool, struct class *c) REQUIRES(pool->lock);
static struct rx_buf *get_locked(struct rx_buf_pool *pool, struct class *c)
{
	pool->gets++;
	struct rx_buf *b = pop(c);
	if (b)
		return b;
	size_t need = footprint(c->cap);
	if (pool->allocated + need > pool->max_bytes)
		make_room_locked(pool, need);
	if (pool->allocated + need <= pool->max_bytes)
		b = mem_alloc(1, need);
	if (!b) {
		pool->refused++;
		return NULL;
	}
	pool->allocated += need;
	b->cap = c->cap;
	b->pool = pool;
	return b;
}

struct rx_buf *rx_buf_get(struct rx_buf_pool *pool, uint32_t cap)
{
	struct class *c = pool->classes;
	while (c < pool->classes + CLASSES && c->cap < cap)
		c++;
	if (c == pool->classes + CLASSES)
		return NULL;
	mtx_lock(&pool->lock);
	struct rx_buf *b = get_locked(pool, c);
	mtx_unlock(&pool->lock);
	if (b) {
		atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&pool->used, footprint(b->cap), memory_order_relaxed);
	}
	return b;
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
	atomic_fetch_sub_explicit(&pool->used, footprint(b->cap), memory_order_relaxed);
	struct rx_buf *head = atomic_load_explicit(&c->returned, memory_order_relaxed);
	do {
		b->next_free = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&c->returned, &head, b, memory_order_release, memory_order_relaxed));
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
