/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The numbered sparse files under data/, and their descriptors.  No locking of its own: cache.c
 * holds its lock around everything here. */
#pragma once
#include "cell/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slot {
	uint32_t number;
	int fd; /* -1: not open */
};
struct slots {
	int mem_fd; /* all content of a cache in memory; else -1 */
	int dir_fd;
	char *dir; /* for messages */
	uint32_t next;
	struct slot *free; /* empty slots, some still open */
	size_t free_n, free_cap;
	uint64_t made[4]; /* subdirectories that exist */
};

enum { SLOT_MAX = 1 << 30, SLOT_MEM_MAX = 1 << 19, SLOT_MEM_BITS = 43, SLOTS_OPEN_FREE = 64 };

afs_err slots_open(struct slots *s, const char *dir /* NULL: in memory */);
void slots_fini(struct slots *s);
/* A slot without content.  AFS_ENOMEM, AFS_ENOSPC (too many), or what opening gives. */
afs_err slots_take(struct slots *s, struct slot *out);
/* Give back a slot that holds no blocks any more. */
void slots_give(struct slots *s, struct slot slot);
afs_err slot_open(struct slots *s, struct slot *slot);
void slot_close(const struct slots *s, struct slot *slot);
/* Where the slot begins in its file: in memory all share one. */
uint64_t slot_base(const struct slots *s, uint32_t number);

/* The file data/small, which small files share: an area of 64 KiB each. */
enum { AREA_BYTES = 64 * 1024, AREAS_UNPUNCHED = 64 };
struct areas {
	int fd;
	uint32_t next;
	uint32_t *free;
	size_t free_n, free_cap;
};
afs_err areas_open(struct areas *a, int data_fd /* -1: in memory */);
void areas_fini(struct areas *a);
afs_err areas_take(struct areas *a, uint32_t *out);
/* The last few given back keep their blocks, since they are taken again first. */
void areas_give(struct areas *a, uint32_t area);

/* Removes every slot for which `keep` is false; the rest must be below `next`. */
afs_err slots_sweep(struct slots *s, bool (*keep)(void *ctx, uint32_t number), void *ctx);
