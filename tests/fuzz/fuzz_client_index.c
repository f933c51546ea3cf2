/* SPDX-License-Identifier: BSD-2-Clause
 * The log of a client's cache: as it is, and behind a good head with checksums that are right, so that its records are
 * reached. */
#include "client/cache/cache.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool each(void *ctx, const struct cache_record *r)
{
	*(uint64_t *)ctx += r->valid[3] + r->place + strlen(r->name);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t sum = 0;
	struct cache_log_about about;
	(void)cache_log_parse(data, size, &about, each, &sum); /* only that it ends */
	CLEANUP(buf) struct buf b = {0};
	cache_log_head(&b, 7, size & 1, (const uint8_t *)"0123456789abcdef");
	buf_put(&b, data, size);
	if (b.err)
		return 0;
	cache_log_seal((uint8_t *)b.data, b.len);
	(void)cache_log_parse((const uint8_t *)b.data, b.len, &about, each, &sum);
	return 0;
}
