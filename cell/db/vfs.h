/* SPDX-License-Identifier: BSD-2-Clause
 *
 * SQLite's way to files, with one change: what a commit appends to a WAL goes to the kernel in one
 * write instead of two per page. */
#pragma once
#include <stdatomic.h>

/* The name for sqlite3_open_v2, registered at the first call. */
const char *db_vfs_name(void);

/* Tests: let the n-th write to a WAL from now on, and every one after it, fail as a full disk or
 * (eno not ENOSPC) as a broken one; -1: none. */
extern atomic_long db_fail_write_after;
extern atomic_int db_fail_write_errno;
