/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/db/memo.h"

#include "cell/base/map.h"
#include "cell/base/mtx.h"

#include <string.h>

struct answer {
	struct map_node node;
	uint32_t len;
	uint16_t key_len;
	uint8_t kind;
	uint8_t bytes[]; /* key, value */
};

struct memo {
	struct mtx lock;
	struct map map;      /* GUARDED_BY(lock), as all below */
	size_t bytes, most;
	uint64_t generation;
};

struct memo *memo_new(size_t bytes_most)
{
	struct memo *m = mem_new(struct memo);
	if (!m)
		return NULL;
	mtx_init(&m->lock, RANK_LEAF);
	map_init(&m->map);
	m->most = bytes_most;
	return m;
}

static void empty_locked(struct memo *m)
{
	struct map_node *next;
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&m->map, &cursor, NULL); n; n = next) {
		next = map_walk(&m->map, &cursor, n->next);
		mem_free(container_of(n, struct answer, node));
	}
	map_fini(&m->map);
	map_init(&m->map);
	m->bytes = 0;
}

void memo_free(struct memo *m)
{
	if (!m)
		return;
	empty_locked(m);
	map_fini(&m->map);
	mtx_fini(&m->lock);
	mem_free(m);
}

uint64_t memo_since(struct memo *m)
{
	mtx_lock(&m->lock);
	const uint64_t g = m->generation;
	mtx_unlock(&m->lock);
	return g;
}

static struct answer *find_locked(struct memo *m, uint64_t hash, uint8_t kind, const void *key, size_t key_len)
{
	for (struct map_node *n = map_first(&m->map, hash); n; n = map_next(n)) {
		struct answer *a = container_of(n, struct answer, node);
		if (a->kind == kind && a->key_len == key_len && memcmp(a->bytes, key, key_len) == 0)
			return a;
	}
	return NULL;
}

static uint64_t hash_of(const struct memo *m, uint8_t kind, const void *key, size_t key_len)
{
	return map_hash_bytes(&m->map, key, key_len) + kind;
}

bool memo_get(struct memo *m, uint8_t kind, const void *key, size_t key_len, void *out, size_t cap, size_t *len)
{
	mtx_lock(&m->lock);
	const struct answer *a = find_locked(m, hash_of(m, kind, key, key_len), kind, key, key_len);
	const bool found = a && a->len <= cap;
	if (found) {
		*len = a->len;
		memcpy(out, a->bytes + key_len, a->len);
	}
	mtx_unlock(&m->lock);
	return found;
}

void memo_put(struct memo *m, uint64_t since, uint8_t kind, const void *key, size_t key_len, const void *value, size_t len)
{
	const size_t size = sizeof(struct answer) + key_len + len;
	struct answer *a = key_len <= UINT16_MAX && len <= UINT32_MAX && size < m->most / 16 ? mem_alloc(size, 1) : NULL;
	if (!a)
		return;
	a->kind = kind;
	a->key_len = (uint16_t)key_len;
	a->len = (uint32_t)len;
	memcpy(a->bytes, key, key_len);
	memcpy(a->bytes + key_len, value, len);
	mtx_lock(&m->lock);
	if (m->bytes + size > m->most)
		empty_locked(m);
	const uint64_t hash = hash_of(m, kind, key, key_len);
	if (since == m->generation && !find_locked(m, hash, kind, key, key_len) && map_insert(&m->map, &a->node, hash)) {
		m->bytes += size + 16; /* and what the heap needs */
		a = NULL;
	}
	mtx_unlock(&m->lock);
	mem_free(a);
}

void memo_forget(struct memo *m)
{
	mtx_lock(&m->lock);
	m->generation++;
	empty_locked(m);
	mtx_unlock(&m->lock);
}
