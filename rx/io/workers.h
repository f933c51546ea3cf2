/* SPDX-License-Identifier: BSD-2-Clause
 * The pool of threads that run handlers, as rx/io's other files see it (rx/io/port.h has the rest). */
#pragma once
#include "rx/io/port.h"
#include "rx/rpc/engine.h"

enum {
	WORKERS_PER_PEER = 128, /* calls of one address that may wait; fewer than the core admits */
	WORKERS_QUEUE = 4096,   /* calls that may wait in all */
};

/* Queue a call.  AFS_EOVERLOAD: too many of its peer's or of all wait, or there is no thread at all. */
afs_err rpc_workers_submit(struct rpc_workers *w, struct rpc_stream *s);
/* Threads alive, for tests. */
unsigned rpc_workers_threads(struct rpc_workers *w);
