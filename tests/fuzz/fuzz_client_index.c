/* SPDX-License-Identifier: BSD-2-Clause
 * The index of a client's cache, with a checksum that is right, so that its records are reached. */
#include "client/cache/cache.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool each(void *ctx, const struct cache_index_file *f)
{
	uint64_t *sum = ctx;
	for (uint64_t i = 0; i < f->chunk_count; i++)
		*sum += cache_index_chunk(f, i).valid[3];
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t sum = 0, files;
	(void)cache_index_parse(data, size, each, &sum); /* only that it ends */
	if (size < 24)
		return 0;
	CLEANUP(buf) struct buf b = {0};
	cache_index_begin(&b);
	buf_put(&b, data + 24, size - 24);
	memcpy(&files, data + 8, 8);
	cache_index_end(&b, files);
	if (!b.err)
		(void)cache_index_parse((const uint8_t *)b.data, b.len, each, &sum);
	return 0;
}
