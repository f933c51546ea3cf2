/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The small cell of rig.h in a process of its own, so that a test may use its mounts like any program. */
#pragma once
#include "tests/unit/fuse/rig.h"

struct far {
	char *dir;
	char *m[RIG_CLIENTS]; /* the root directory of root.cell in each mount */
	int sock;
	int pid;
};
/* NULL: namespaces or /dev/fuse are not to be had here (the test is skipped). */
struct far *far_start(const struct rig_config *config);
/* Fails the test when the cell did not end well. */
void far_stop(struct far *f);
/* What the cell does on demand. */
enum far_order {
	FAR_SERVER_RESTART = 'r',
	FAR_CLIENT_STOP = 's', /* and its cache stays */
	FAR_CLIENT_START = 'b',
	FAR_VOLUME = 'v', /* makes volume `arg` (1..9): "volN", id 0x20000010 + N */
	FAR_FLUSH = 'f',  /* client `arg` forgets clean data of root.cell */
	FAR_STATS = 'c',
	FAR_QUOTA = 'q', /* root.cell may take `arg` KiB more; 0: as much as it wants */
	FAR_CLAIM = 'l', /* the volume server claims root.cell: enum vs_claim */
	FAR_SERVER_STOP = 'd',
	FAR_SERVER_START = 'u',
};
struct client_stats far_do(struct far *f, enum far_order order, unsigned arg);

/* A path in a mount; from a ring of 16. */
[[gnu::format(printf, 3, 4)]] const char *far_path(
	struct far *f, unsigned mount, const char *fmt, ...);
void file_write(const char *path, const void *p, size_t n); /* creates or replaces */
void file_is(const char *path, const char *text);           /* compares whole content */
#define assert_sys(expr) assert_sys_(#expr, (expr) >= 0, __FILE__, __LINE__)
#define assert_errno(expr, want)                                                                   \
	do {                                                                                       \
		assert_int_equal((expr), -1);                                                      \
		assert_int_equal(errno, (want));                                                   \
	} while (0)
void assert_sys_(const char *what, bool ok, const char *file, int line);
