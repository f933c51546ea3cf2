/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files that reconcile. */
#pragma once
#include "cell/reconcile.h"

struct reconcile_run {
	const struct reconcile *r;
	afs_err first; /* the first error */
};
/* Tells a problem and keeps the first. */
[[gnu::format(printf, 4, 5)]] void reconcile_problem(
	struct reconcile_run *run, const char *what, afs_err err, const char *fmt, ...);
/* ... and gives `err` back. */
#define reconcile_fail(run, what, err, ...) (reconcile_problem((run), (what), (err), __VA_ARGS__), (err))
/* Tells what was done to `object`; `call` names it in the audit trail. */
[[gnu::format(printf, 4, 5)]] void reconcile_did(
	struct reconcile_run *run, const char *call, const char *object, const char *fmt, ...);

static inline bool reconcile_stop(const struct reconcile_run *run) { return run->r->all_or_nothing && run->first != AFS_OK; }

void reconcile_volumes(struct reconcile_run *run);
