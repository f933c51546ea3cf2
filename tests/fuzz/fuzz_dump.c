/* SPDX-License-Identifier: BSD-2-Clause
 * The reader of volume dumps. */
#include "fileserver/vol/dump.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *p;
	size_t left;
};

static afs_err from_bytes(void *ctx, void *p, size_t n)
{
	struct bytes *b = ctx;
	if (n > b->left)
		return AFS_EEOF;
	memcpy(p, b->p, n);
	b->p += n;
	b->left -= n;
	return AFS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {data, size};
	struct dump_reader r;
	enum dump_item item;
	uint8_t chunk[64];
	size_t got;
	dump_reader_init(&r, (struct dump_source){from_bytes, &b});
	do {
		if (dump_next(&r, &item) != AFS_OK)
			return 0;
		if (item == DUMP_VNODE && dump_data(&r, chunk, sizeof(chunk), &got) != AFS_OK)
			return 0;
	} while (item != DUMP_END);
	return 0;
}
