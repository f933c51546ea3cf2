/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the overseer (cell/bos) oversees: the roles of this machine.  Its instances are
 *
 *   ptserver, vlserver   those databases' ports
 *   fs                   the file server and the volume server, which belong together as with OpenAFS
 *
 * as far as the configuration has them. */
#pragma once
#include "cell/base/err.h"
#include "rx/rpc/rpc.h"

#include <stddef.h>

struct cell;
struct overseer;

/* Reads its file; AFS_ECORRUPT, AFS_EIO (logged), AFS_ENOMEM. */
afs_err overseer_new(struct cell *c, struct overseer **out);
size_t overseer_services(struct overseer *o, struct rpc_service *out);
/* All instances run now. */
afs_err overseer_start(struct overseer *o);
/* No role is started or stopped after this. */
void overseer_stop(struct overseer *o);
void overseer_free(struct overseer *o); /* also NULL */
