/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The house: every part of one cell on this machine, built in order, taken down in reverse. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/base/mem.h"
#include "cell/conf/conf.h"

#include <jansson.h>

struct cell;
struct state;

/* What happens, for whoever watches: a terminal, the starting process, a control connection. */
enum cell_event {
	CELL_STEP,    /* `what` begins */
	CELL_STEP_OK, /* ... and is done; `text` says more, or is "" */
	CELL_DID,     /* a change that reconciling made: `what` "user alice", `text` "created" */
	CELL_SECRET,  /* the new random password of `what` is `text`; shown once, never logged */
	CELL_WARN,    /* `text`: someone should know */
	CELL_PROBLEM, /* `text`: why it fails */
};
struct cell_watch {
	void (*event)(void *ctx, enum cell_event ev, const char *what, const char *text);
	void *ctx;
};

/* Build, start and reconcile; logs go to the configured file, or to stderr.  Takes `conf` and `state`, also on failure; on an error everything is down
 * again and CELL_PROBLEM has told why.  Asks for passwords on the controlling terminal where the
 * configuration says so.  Must run in the process that is to live: it starts threads. */
afs_err cell_open(struct conf *conf, struct state *state, bool log_on_stderr, const struct cell_watch *watch, struct cell **out);
/* Unmount, stop, close, in reverse order.  `watch` may be NULL here, and nowhere else. */
void cell_close(struct cell *c, const struct cell_watch *watch);

/* Make the running cell match `conf` (taken).  `passwords` (may be NULL) maps users to new passwords.  What can only change with a restart is a CELL_PROBLEM
 * and AFS_EINVAL; the rest is done all the same. */
afs_err cell_reconcile(struct cell *c, struct conf *conf, const json_t *passwords, const struct cell_watch *watch);

/* Serve until cell_stop() or a SIGTERM, SIGINT.  SIGHUP opens the log again. */
void cell_run(struct cell *c);
void cell_stop(struct cell *c); /* any thread */

/* What `afscell status --json` prints; the caller's. */
json_t *cell_status(struct cell *c);
