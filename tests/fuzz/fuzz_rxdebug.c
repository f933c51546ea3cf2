/* SPDX-License-Identifier: BSD-2-Clause
 * Bodies of DEBUG answers, which any host may send to rxdebug. */
#include "cell/cli/debug.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct debug_conn c;
	struct debug_peer p;
	if (debug_read_conn(data, size, &c) && c.cid == 0xffffffff)
		__builtin_trap();
	if (debug_read_peer(data, size, &p) && p.ip == 0xffffffff)
		__builtin_trap();
	return 0;
}
