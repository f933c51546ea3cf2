/* SPDX-License-Identifier: BSD-2-Clause
 * Chained hash table; chains are short because the table doubles at load 1. */
#include "cell/base/map.h"

#include "cell/base/rand.h"

#include <string.h>

void map_init(struct map *m) { *m = (struct map){.seed = rand_u64()}; }

void map_fini(struct map *m)
{
	mem_free(m->slots);
	*m = (struct map){0};
}

static void grow(struct map *m)
{
	size_t n = m->slots ? (m->mask + 1) * 2 : 16;
	struct map_node **slots = mem_new_array(n, struct map_node *);
	if (!slots)
		return;
	for (size_t i = 0; m->slots && i <= m->mask; i++) {
		for (struct map_node *e = m->slots[i], *next; e; e = next) {
			next = e->next;
			e->next = slots[e->hash & (n - 1)];
			slots[e->hash & (n - 1)] = e;
		}
	}
	mem_free(m->slots);
	m->slots = slots;
	m->mask = n - 1;
}

bool map_insert(struct map *m, struct map_node *n, uint64_t hash)
{
	if (!m->slots || m->count > m->mask)
		grow(m);
	if (!m->slots)
		return false;
	n->hash = hash;
	n->next = m->slots[hash & m->mask];
	m->slots[hash & m->mask] = n;
	m->count++;
	return true;
}

void map_remove(struct map *m, struct map_node *n)
{
	if (!m->slots)
		return;
	for (struct map_node **p = &m->slots[n->hash & m->mask]; *p; p = &(*p)->next) {
		if (*p == n) {
			*p = n->next;
			n->next = NULL;
			m->count--;
			return;
		}
	}
}

struct map_node *map_first(const struct map *m, uint64_t hash)
{
	struct map_node *n = m->slots ? m->slots[hash & m->mask] : NULL;
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

struct map_node *map_next(const struct map_node *n)
{
	uint64_t hash = n->hash;
	struct map_node *e = n->next;
	while (e && e->hash != hash)
		e = e->next;
	return e;
}

struct map_node *map_walk(const struct map *m, size_t *cursor, struct map_node *prev_next)
{
	if (prev_next)
		return prev_next;
	while (m->slots && *cursor <= m->mask) {
		struct map_node *n = m->slots[(*cursor)++];
		if (n)
			return n;
	}
	return NULL;
}

/* FNV-1a with a secret seed and a strong finish: strangers cannot aim at one chain. */
static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 33;
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ (h >> 33);
}

uint64_t map_hash_u64(const struct map *m, uint64_t v) { return mix(v ^ m->seed); }

uint64_t map_hash_bytes(const struct map *m, const void *p, size_t n)
{
	const unsigned char *b = p;
	uint64_t h = m->seed ^ n;
	for (; n >= 8; n -= 8, b += 8) {
		uint64_t w;
		memcpy(&w, b, 8);
		h = mix(h ^ w);
	}
	uint64_t tail = 0;
	memcpy(&tail, b, n);
	return mix(h ^ tail);
}
