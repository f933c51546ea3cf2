/* SPDX-License-Identifier: BSD-2-Clause
 *
 * AFS directory objects: pages of 2048 bytes that clients fetch and search themselves, so every
 * byte is as other servers would have made it (directory.md §6): first fit, head insertion, pages
 * never given back. Freed slots are zeroed whole, so no removed name stays in the object.
 *
 * A struct vs_dir is one object in memory and is not locked.  It may have come from a disk: a
 * lookup meets damage with AFS_ECORRUPT, never with a stray access. */
#pragma once
#include "cell/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VS_DIR_PAGE = 2048,
	VS_DIR_SLOT = 32,
	VS_DIR_SLOTS = 64, /* per page */
	VS_DIR_BUCKETS = 128,
	VS_DIR_MAP_PAGES = 128, /* pages that the page-free map covers */
	VS_DIR_MAX_PAGES = 1023,
	VS_DIR_NAME_MAX = 255,
	VS_DIR_NAME_SLOTS = 9, /* of the longest name */
};

struct vs_dir {
	uint8_t *data;
	uint32_t pages, cap; /* pages in use; pages allocated */
	uint64_t dirty[16];  /* a bit per page changed since vs_dir_clean */
	uint16_t first_fit[VS_DIR_NAME_SLOTS +
			   1]; /* [n]: no page from 128 up to here has n slots in a row */
};
struct vs_dir_entry {
	const char *name; /* inside the object */
	size_t name_len;
	uint32_t vnode, unique;
	uint32_t slot;
};

/* Storage is the caller's, zero to begin with; vs_dir_fini frees the pages. */
void vs_dir_fini(struct vs_dir *d);
static inline void vs_dir_cleanup(struct vs_dir *d) { vs_dir_fini(d); }
/* Room for `pages` pages to be filled by the caller (d->data), which are then d->pages.
 * AFS_ENOMEM, AFS_EFBIG. */
afs_err vs_dir_reserve(struct vs_dir *d, uint32_t pages);
/* A new directory with "." and "..". */
afs_err vs_dir_make(struct vs_dir *d, uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
	uint32_t parent_unique);
/* Does it look like one of d->pages pages?  A quick look before use: AFS_ECORRUPT. */
afs_err vs_dir_accept(const struct vs_dir *d);

afs_err vs_dir_find(
	const struct vs_dir *d, const char *name, struct vs_dir_entry *out); /* AFS_ENOENT */
/* AFS_EEXIST; AFS_EINVAL for "" or '/'; AFS_ENAMETOOLONG; AFS_EFBIG: full.  On an error the object
 * is as it was. */
afs_err vs_dir_add(struct vs_dir *d, const char *name, uint32_t vnode, uint32_t unique);
afs_err vs_dir_remove(struct vs_dir *d, const char *name); /* AFS_ENOENT */
bool vs_dir_is_empty(const struct vs_dir *d);              /* nothing but "." and ".." */

/* Each entry in slot order, until `fn` gives an error, which is then given.  AFS_ECORRUPT when the
 * slots do not parse: a bitmap that contradicts the entries, a name without an end, with '/' or
 * empty. */
typedef afs_err vs_dir_fn(void *ctx, const struct vs_dir_entry *e);
afs_err vs_dir_each(const struct vs_dir *d, vs_dir_fn *fn, void *ctx);
/* Everything that directory.md says of form: headers, bitmaps, map, chains, zeros.  `found` gets a
 * sentence for each fault; gives their number.  0 means byte for byte acceptable. */
size_t vs_dir_verify(const struct vs_dir *d, void (*found)(void *ctx, const char *text), void *ctx);

/* Make an object from elsewhere right: headers, map, residue in place; where chains are wrong, all
 * anew from its entries in slot order.  The fids given become "." and "..".  AFS_ECORRUPT: the
 * slots do not parse, or a name is there twice. */
afs_err vs_dir_repair(struct vs_dir *d, uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
	uint32_t parent_unique);

unsigned vs_dir_hash(const char *name);
unsigned vs_dir_slots(size_t name_len);

void vs_dir_clean(struct vs_dir *d);
static inline bool vs_dir_is_dirty(const struct vs_dir *d, uint32_t page)
{
	return d->dirty[page / 64] >> (page % 64) & 1;
}
