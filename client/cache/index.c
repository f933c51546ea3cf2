/* SPDX-License-Identifier: BSD-2-Clause
 * The index file's bytes.  What comes from disk is judged: counts against the bytes that are there,
 * order and range of chunks, the checksum over all.  A record that breaks a rule voids the whole. */
#include "client/cache/cache.h"

#include <string.h>

enum { HEADER = 24, FILE_FIXED = 40, CHUNK_FIXED = 40 };
static const char magic[8] = "AFSCIDX1";

static uint64_t le64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}
static uint32_t le32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}

static uint64_t checksum(const uint8_t *p, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (; n >= 8; n -= 8, p += 8)
		h = (h ^ le64(p)) * UINT64_C(0x100000001b3) ^ h >> 29;
	for (; n; n--, p++)
		h = (h ^ *p) * UINT64_C(0x100000001b3);
	return h;
}

struct cache_index_chunk cache_index_chunk(const struct cache_index_file *f, uint64_t i)
{
	const uint8_t *p = f->chunks + i * CHUNK_FIXED;
	return (struct cache_index_chunk){
		le64(p), {le64(p + 8), le64(p + 16), le64(p + 24), le64(p + 32)}};
}

afs_err cache_index_parse(const uint8_t *p, size_t n,
	bool (*each)(void *ctx, const struct cache_index_file *f), void *ctx)
{
	if (n < HEADER || memcmp(p, magic, sizeof(magic)) != 0)
		return AFS_EVERSION;
	uint64_t files = le64(p + 8);
	if (le64(p + 16) != checksum(p + HEADER, n - HEADER))
		return AFS_ECORRUPT;

	const uint8_t *end = p + n;
	p += HEADER;
	for (; files; files--) {
		if ((size_t)(end - p) < FILE_FIXED)
			return AFS_ECORRUPT;
		struct cache_index_file f = {
			.key = {le64(p), {le32(p + 8), le32(p + 12), le32(p + 16)}},
			.slot = le32(p + 20),
			.dv = le64(p + 24),
			.chunk_count = le64(p + 32),
			.chunks = p + FILE_FIXED,
		};
		p += FILE_FIXED;
		if (f.chunk_count > (size_t)(end - p) / CHUNK_FIXED)
			return AFS_ECORRUPT;
		for (uint64_t i = 0, least = 0; i < f.chunk_count; i++) {
			uint64_t at = cache_index_chunk(&f, i).index;
			if (at < least || at >= CACHE_FILE_MAX / CACHE_CHUNK)
				return AFS_ECORRUPT;
			least = at + 1;
		}
		p += f.chunk_count * CHUNK_FIXED;
		if (each && !each(ctx, &f))
			return AFS_ECORRUPT;
	}
	return p == end ? AFS_OK : AFS_ECORRUPT;
}

void cache_index_begin(struct buf *b)
{
	buf_put(b, magic, sizeof(magic));
	buf_put(b, (uint64_t[2]){0, 0}, 16);
}

void cache_index_file(struct buf *b, const struct cache_index_file *f)
{
	buf_put(b, &f->key.cell, 8);
	buf_put(b, (uint32_t[4]){f->key.fid.Volume, f->key.fid.Vnode, f->key.fid.Unique, f->slot},
		16);
	buf_put(b, (uint64_t[2]){f->dv, f->chunk_count}, 16);
}

void cache_index_chunk_put(struct buf *b, const struct cache_index_chunk *c)
{
	buf_put(b, &c->index, 8);
	buf_put(b, c->valid, 32);
}

void cache_index_end(struct buf *b, uint64_t files)
{
	if (b->err)
		return;
	uint64_t sum = checksum((const uint8_t *)b->data + HEADER, b->len - HEADER);
	memcpy(b->data + 8, &files, 8);
	memcpy(b->data + 16, &sum, 8);
}
