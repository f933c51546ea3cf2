/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The console's role: what webui asks of the house is answered here. */
#pragma once
#include "cell/cell.h"
#include "cell/ctl.h"

/* When the configuration has it, and this machine the cell's key, by which people's tokens are proved.  Told to `w`. */
afs_err console_start(struct cell *c, const struct cell_watch *w);
void console_stop(struct cell *c);
afs_err verbs_add_console(struct ctl_server *ctl, struct cell *c); /* console.link */
