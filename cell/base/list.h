/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Doubly linked lists threaded through their members.  A list head is a struct list that points at
 * itself when empty; a member that is in no list is zero or points at itself. */
#pragma once
#include "cell/base/mem.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l) { l->next = l->prev = l; }
static inline bool list_empty(const struct list *l) { return l->next == l; }
static inline bool list_linked(const struct list *e) { return e->next && e->next != e; }
static inline void list_insert_before(struct list *at, struct list *e)
{
	e->next = at;
	e->prev = at->prev;
	at->prev->next = e;
	at->prev = e;
}
static inline void list_push_back(struct list *l, struct list *e) { list_insert_before(l, e); }
static inline void list_push_front(struct list *l, struct list *e) { list_insert_before(l->next, e); }
static inline void list_remove(struct list *e) /* harmless for a member of no list */
{
	if (!e->next)
		return;
	e->prev->next = e->next;
	e->next->prev = e->prev;
	list_init(e);
}
static inline struct list *list_first(const struct list *l) { return list_empty(l) ? NULL : l->next; }
static inline struct list *list_pop_front(struct list *l)
{
	struct list *e = list_first(l);
	if (e)
		list_remove(e);
	return e;
}
#define list_entry(e, type, member) container_of(e, type, member)
/* The body may remove `it`. */
#define list_each(it, l)                                                                           \
	for (struct list *it = (l)->next, *next_##it = it->next; it != (l);                        \
		it = next_##it, next_##it = it->next)
