/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A directory's names, as the client keeps them: parsed from the directory object that a server
 * sent, then edited along with the server (directory.md §8).  An index of its own, not pages: where
 * a server puts a name does not matter here.
 *
 * Rows keep their place, so a place is a cookie for reading on; a removed row stays as a dead one.  A
 * row may also stand for a name that was answered with "no such name" (absent rows), so that the
 * kernel can be told when that changes.
 *
 * Not thread safe; counted, and a copy is made before an edit when there is another holder. */
#pragma once
#include "cell/base/err.h"
#include "cell/proto/fid.h"

enum cm_row_state { CM_ROW_DEAD, CM_ROW_LIVE, CM_ROW_ABSENT };

struct cm_row {
	uint32_t name, next; /* offset of the text; next row of the chain, plus one */
	uint32_t vnode, unique;
	uint8_t len;
	uint8_t state; /* enum cm_row_state */
	bool shown;    /* the kernel was told this row's answer, and may keep it */
};

struct cm_dir {
	unsigned refs;
	struct cm_row *rows;
	uint32_t n, cap, live, absent;
	char *names;
	uint32_t names_n, names_cap;
	uint32_t *buckets, mask, seed;
	struct cm_dir *next_stale;
	uint32_t parent_vnode, parent_unique; /* what ".." says; "." and ".." are no rows */
};

/* Judge and parse a directory object of n bytes.  AFS_ECORRUPT: it breaks the format. */
afs_err cm_dir_parse(const uint8_t *object, size_t n, struct cm_dir **out);
struct cm_dir *cm_dir_new(uint32_t parent_vnode, uint32_t parent_unique);
static inline struct cm_dir *cm_dir_ref(struct cm_dir *d)
{
	d->refs++;
	return d;
}
void cm_dir_unref(struct cm_dir *d);
/* *d becomes one that only the caller holds. */
afs_err cm_dir_own(struct cm_dir **d);

struct cm_row *cm_dir_find(
	const struct cm_dir *d, const char *name, size_t len); /* live or absent, or NULL */
static inline const char *cm_dir_name(const struct cm_dir *d, const struct cm_row *r)
{
	return d->names + r->name;
}
afs_err cm_dir_add(struct cm_dir *d, const char *name, size_t len, uint32_t vnode, uint32_t unique);
void cm_dir_remove(struct cm_dir *d, const char *name, size_t len);
/* Remember that `name` was shown as absent.  False: too many already. */
bool cm_dir_show_absent(struct cm_dir *d, const char *name, size_t len);
