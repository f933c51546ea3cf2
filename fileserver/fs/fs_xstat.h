/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What GetXStats tells: how often each call was made and how long it took, how much was moved.
 * Counted with relaxed atomics by every call; a reader sees sums that may be a call apart.
 *
 * Source: debug-stats.md §3. */
#pragma once
#include "cell/proto/fs.h"

#include <stdatomic.h>

struct rpc_proc;
struct fileserver;

enum { FS_XSTAT_OPS = 28, FS_XSTAT_SIZES = 9 };
enum fs_transfer { FS_XFER_FETCH, FS_XFER_STORE };

struct fs_xstat {
	struct fs_xstat_op {
		/* times in microseconds; min is kept plus one, so that 0 is "never" */
		atomic_uint_least64_t calls, good, sum, squares, min1, max;
	} op[FS_XSTAT_OPS];
	struct fs_xstat_transfer {
		atomic_uint_least64_t calls, good, sum, squares, min1, max, bytes, min_bytes1,
			max_bytes, sizes[FS_XSTAT_SIZES];
	} transfer[2];
	atomic_uint_least64_t busies, caps_asked;
};

/* After each call. */
void fs_xstat_call(struct fileserver *fs, const struct rpc_proc *proc, int32_t code, int64_t took_ns);
/* After each FetchData or StoreData that moved `bytes`. */
void fs_xstat_moved(
	struct fileserver *fs, enum fs_transfer which, bool good, uint64_t bytes, int64_t took_ns);
