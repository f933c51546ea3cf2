/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What would stop a cell from starting, found before anything is made: ports in use, addresses that
 * are not ours, no /dev/fuse, a mount point that is taken, a full disk, a clock that is off.  Each is one
 * sentence that says what and what to do. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/conf/conf.h"

/* AFS_EADDRINUSE, AFS_EACCESS, AFS_ENODEV, AFS_EBUSY, AFS_ENOSPC, AFS_ESKEW, ... with a sentence in `why`. */
afs_err preflight(const struct conf *conf, struct buf *why);

/* The clock and the state: `alive` in the state directory carries the time when the cell was last seen
 * running.  A clock that is behind it is refused by preflight. */
void preflight_alive(const struct conf *conf);

/* Lets go of a mount that a killed afscell left at `dir` (nothing answers there any more). */
afs_err preflight_stale_mount(const char *dir, struct buf *why);
