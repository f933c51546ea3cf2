/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Hash tables threaded through their members, keyed by a 64-bit hash; the caller compares keys:
 *
 *   for (struct map_node *n = map_first(&m, h); n; n = map_next(n)) if (same(entry(n))) ...
 *
 * The table grows by itself; when memory is short it stays as it is and only gets slower.  Hashes
 * of keys that a stranger chooses go through map_hash_bytes() with the map's own seed. */
#pragma once
#include "cell/base/mem.h"

struct map_node {
	struct map_node *next;
	uint64_t hash;
};
struct map {
	struct map_node **slots;
	size_t mask, count; /* mask + 1 slots; 0 slots until the first insert */
	uint64_t seed;
};

void map_init(struct map *m);
void map_fini(struct map *m); /* frees the table, not the members */
bool map_insert(struct map *m, struct map_node *n, uint64_t hash); /* false: out of memory */
void map_remove(struct map *m, struct map_node *n);
struct map_node *map_first(const struct map *m, uint64_t hash);
struct map_node *map_next(const struct map_node *n);
/* Walk all members in no order: size_t c = 0; for (n = map_walk(m, &c, NULL); n; n = next) { next
 * = map_walk(m, &c, n->next) before the body; the body may then remove n. } */
struct map_node *map_walk(const struct map *m, size_t *cursor, struct map_node *prev_next);
uint64_t map_hash_bytes(const struct map *m, const void *p, size_t n);
uint64_t map_hash_u64(const struct map *m, uint64_t v);
