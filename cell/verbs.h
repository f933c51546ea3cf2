/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What can be asked through the control socket about the cell itself: status, down, reconcile,
 * users.missing, check.  verbs_add also adds those of the other suites. */
#pragma once
#include "cell/cell.h"
#include "cell/ctl.h"

afs_err verbs_add(struct ctl_server *ctl, struct cell *c);
afs_err verbs_add_people(struct ctl_server *ctl, struct cell *c); /* verbs_people.c: users and groups */
afs_err verbs_add_keys(struct ctl_server *ctl, struct cell *c);   /* verbs_keys.c: the cell's key */
afs_err verbs_add_client(struct ctl_server *ctl, struct cell *c); /* verbs_client.c: tokens and files */
