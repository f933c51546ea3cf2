/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From a command to a process that lives: fork, lead the way through the start, let go when the cell
 * serves.  The parent hears of everything through a pipe, so a start that fails fails the command. */
#pragma once
#include "cell/cell.h"
#include "cell/state.h"

enum daemon_result {
	DAEMON_SERVES, /* the cell serves; in the foreground: it served and has ended */
	DAEMON_FAILED, /* CELL_PROBLEM told why */
	DAEMON_BUSY,   /* another process has the state: `holder` */
};

/* Start the cell of `conf` (taken).  `foreground`: serve in this process until a signal comes, and call
 * `serving` at the time when it serves.  Else return when the child serves; `watch` is called in this process. */
enum daemon_result daemon_start(struct conf *conf, bool foreground, const struct cell_watch *watch,
	void (*serving)(void *ctx), struct state_holder *holder);
