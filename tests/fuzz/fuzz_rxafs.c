/* SPDX-License-Identifier: BSD-2-Clause
 * Arguments and results of every RXAFS and RXAFSCB call: the first word picks interface, row and
 * direction, the rest is decoded.  What decodes must print, and must encode to the bytes it came
 * from but for padding: encoding and decoding it again gives the same text. */
#include "cell/proto/cb.h"
#include "cell/proto/fs.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(16) uint8_t value[16384], second[16384];
static uint8_t wire[16384];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	const struct rpc_iface *iface = data[0] & 1 ? &cb_iface : &fs_iface;
	const struct rpc_proc *p = &iface->procs[data[1] % iface->count];
	bool in = data[2] & 1;
	if (p->in_size > sizeof(value) || p->out_size > sizeof(value))
		__builtin_trap();
	memset(value, 0, sizeof(value));
	struct arena a, b;
	arena_init(&a, 1 << 18);
	arena_init(&b, 1 << 18);
	struct buf one = {0}, two = {0};
	struct xdr_in x = {data + 4, data + size, &a, AFS_OK};
	(in ? p->in_get : p->out_get)(&x, value);
	if (x.err == AFS_OK) {
		(in ? p->in_print : p->out_print)(&one, value);
		struct xdr_out o = {wire, wire + sizeof(wire), AFS_OK};
		(in ? p->in_put : p->out_put)(&o, value);
		if (o.err != AFS_OK || o.p - wire != x.p - (data + 4))
			__builtin_trap();
		memset(second, 0, sizeof(second));
		struct xdr_in y = {wire, o.p, &b, AFS_OK};
		(in ? p->in_get : p->out_get)(&y, second);
		(in ? p->in_print : p->out_print)(&two, second);
		if (y.err != AFS_OK || one.err || two.err || one.len != two.len ||
			memcmp(one.data, two.data, one.len) != 0)
			__builtin_trap();
	}
	buf_fini(&one);
	buf_fini(&two);
	arena_fini(&a);
	arena_fini(&b);
	return 0;
}
