/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The endpoint's timers: a binary heap with room reserved beforehand.  A connection or call has one
 * timer set to the soonest of its deadlines, and leaves it there when that deadline moves away. */
#include "rx/core/inside.h"

bool rx_heap_reserve(struct rx_heap *h)
{
	if (h->reserved == h->cap) {
		uint32_t cap = h->cap ? h->cap * 2 : 64;
		struct rx_timer **slots = mem_resize(h->slots, h->cap, cap, sizeof(*slots));
		if (!slots)
			return false;
		h->slots = slots;
		h->cap = cap;
	}
	h->reserved++;
	return true;
}

void rx_heap_release(struct rx_heap *h) { h->reserved--; }

static void place(struct rx_heap *h, uint32_t at, struct rx_timer *t)
{
	h->slots[at] = t;
	t->pos = at + 1;
}

static void sift_up(struct rx_heap *h, uint32_t at, struct rx_timer *t)
{
	while (at && h->slots[(at - 1) / 2]->at > t->at) {
		place(h, at, h->slots[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	place(h, at, t);
}

static void sift_down(struct rx_heap *h, uint32_t at, struct rx_timer *t)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= h->count)
			break;
		if (child + 1 < h->count && h->slots[child + 1]->at < h->slots[child]->at)
			child++;
		if (h->slots[child]->at >= t->at)
			break;
		place(h, at, h->slots[child]);
		at = child;
	}
	place(h, at, t);
}

static void reseat(struct rx_heap *h, uint32_t at, struct rx_timer *t)
{
	if (at && h->slots[(at - 1) / 2]->at > t->at)
		sift_up(h, at, t);
	else
		sift_down(h, at, t);
}

void rx_heap_set(struct rx_heap *h, struct rx_timer *t, mono_ns at)
{
	t->at = at;
	if (at == MONO_NEVER) {
		if (!t->pos)
			return;
		uint32_t hole = t->pos - 1;
		t->pos = 0;
		struct rx_timer *tail = h->slots[--h->count];
		if (hole < h->count)
			reseat(h, hole, tail);
	} else if (t->pos) {
		reseat(h, t->pos - 1, t);
	} else {
		h->count++;
		sift_up(h, h->count - 1, t);
	}
}
