/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Desired state made real: users, groups, volumes, mount points, access lists.  Creates what is
 * missing, changes what differs, deletes nothing, and tells each thing that it did.  What is right
 * already costs a look-up.
 *
 * Volumes of this machine are reached through the store, databases through the network.  Waits. */
#pragma once
#include "cell/audit.h"
#include "cell/cell.h"
#include "cell/realm/realm.h"
#include "cell/self.h"
#include "fileserver/store/store.h"

struct reconcile {
	const struct conf *conf;
	struct realm *realm;    /* NULL: the realm is not ours */
	struct self *self;
	struct vs_store *store; /* NULL: no file server on this machine */
	const uint32_t *own_ips; /* as registered with VL */
	size_t own_ip_count;
	/* The content of `volume` changed beneath its clients. */
	void (*changed)(void *ctx, afs_volid volume);
	void *changed_ctx;
	struct audit *audit;    /* NULL: none */
	const struct cell_watch *watch;
	bool all_or_nothing; /* a first start: stop at the first problem, all of it is undone */
	const json_t *passwords; /* by user name: given by who asks; NULL: none */
};
/* Everything that can be done is done, also after an error (but see all_or_nothing); the first one is
 * returned, and each was told as CELL_PROBLEM. */
afs_err reconcile_run(const struct reconcile *r);
