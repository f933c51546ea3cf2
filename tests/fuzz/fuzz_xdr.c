/* SPDX-License-Identifier: BSD-2-Clause
 * One row of every kind: what decodes encodes to bytes that decode to the same, and prints. */
#include "rx/xdr/xdr.h"

#define XDR_ROWS "tests/unit/xdr/sample.def"
#include "rx/xdr/struct_pass.h"
#define XDR_ROWS "tests/unit/xdr/sample.def"
#include "rx/xdr/codec_pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena) struct arena a;
	arena_init(&a, 4096);
	struct xdr_in x = {data, data + size, &a, AFS_OK};
	struct sample v;
	xdr_get_sample(&x, &v);
	if (x.err != AFS_OK)
		return 0;
	uint8_t out[512], again[512];
	struct xdr_out y = {out, out + sizeof(out), AFS_OK};
	xdr_put_sample(&y, &v);
	if (y.err != AFS_OK)
		__builtin_trap(); /* whatever is within the bounds of the rows encodes */
	struct sample w;
	struct xdr_in z = {out, y.p, &a, AFS_OK};
	xdr_get_sample(&z, &w);
	struct xdr_out u = {again, again + sizeof(again), AFS_OK};
	xdr_put_sample(&u, &w);
	if (z.err != AFS_OK || z.p != z.end || u.p - again != y.p - out || memcmp(out, again, (size_t)(y.p - out)) != 0)
		__builtin_trap();
	CLEANUP(buf) struct buf b = {0};
	xdr_print_sample(&b, &v);
	return 0;
}
