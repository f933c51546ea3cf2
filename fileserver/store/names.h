/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the verbs on names share. */
#pragma once
#include "fileserver/store/internal.h"

/* A name for something that shall exist: AFS_EINVAL, AFS_ENAMETOOLONG (fileserver.md §5). */
afs_err vs_name_new(const char *name);
/* A name of something to be taken away or moved. */
afs_err vs_name_old(const char *name);
/* The vnode an entry of `dir` leads to.  AFS_ENOENT; a dangling entry: AFS_ECORRUPT. */
afs_err vs_name_resolve(
	struct vs_volume *v, struct vs_vnode *dir, const char *name, struct vs_vnode **out);
/* A directory whose names changed: DV, author, times. */
struct vs_row *vs_dir_changed(struct vs_tx *tx, struct vs_vnode *dir, const struct vs_who *who);
/* One name of `vn` (a file or symlink) goes: true when it was the last. */
bool vs_drop_name(struct vs_tx *tx, struct vs_vnode *vn, const struct vs_who *who);
