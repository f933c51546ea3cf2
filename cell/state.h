/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The state directory as a whole: who holds it, which version it is, what was made, and how all of
 * it goes away again.
 *
 *   lock      held (flock) by the one process that runs the cell; says who that is
 *   version   "afscell state 1", then "cell NAME"; written when the first start succeeded
 *   made      directories that afscell made, inside and outside of the state directory, a line each:
 *             "dir PATH" goes with all that is in it, "empty PATH" only when it is empty
 *   uuid      of this machine's file server
 *
 * A first start that fails takes away everything that it made.  All functions wait for the disk. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/base/mem.h"
#include "cell/conf/conf.h"

#include <sys/types.h>

enum { STATE_VERSION = 1 };

struct state;
struct state_holder {
	pid_t pid; /* 0: not told */
	char cell[64];
	char socket[4096];
};

/* Takes the state directory of `conf`, making it when it is missing.
 * AFS_EBUSY: another process has it, which `holder` then tells; AFS_EVERSION: made by another version,
 * or for another cell; AFS_ENOTEMPTY: it holds something that is not ours; AFS_ENOENT: `create` is
 * false and there is none.  `why` gets a sentence. */
afs_err state_open(const struct conf *conf, bool create, struct state **out, struct state_holder *holder, struct buf *why);
/* Lets go.  A state that was fresh and not kept is removed. */
void state_close(struct state *s);
DEFINE_CLEANUP_PTR(state, struct state, state_close)

bool state_is_fresh(const struct state *s);
/* Makes a directory with its parents, and remembers it for state_erase.  `erase_whole`: with all
 * that will be in it.  Nothing happens when it is there. */
afs_err state_mkdir(struct state *s, const char *path, mode_t mode, bool erase_whole, struct buf *why);
/* The first start has succeeded: the state stays. */
afs_err state_keep(struct state *s, struct buf *why);
/* 16 bytes that name this machine's file server; made at first use. */
afs_err state_uuid(struct state *s, uint8_t out[16], struct buf *why);
/* Removes everything: partitions, cache, logs, databases, keys.  Also closes `s`. */
afs_err state_erase(struct state *s, const struct conf *conf, struct buf *why);

/* Removes a directory with all that is in it, never crossing into another file system, never
 * following a symbolic link.  AFS_OK when there is none. */
afs_err state_remove_tree(const char *path, struct buf *why);
