/* SPDX-License-Identifier: BSD-2-Clause
 *
 * SQLite's own allocations through mem_alloc, so that mem_fail_after() reaches them too.  Call
 * before the first use of SQLite. */
#pragma once
#include "cell/base/mem.h"

#include <sqlite3.h>
#include <string.h>

/* a length before each block; 16 keeps the alignment */
static inline void *failmem_malloc(int n)
{
	char *p = mem_alloc(1, (size_t)n + 16);
	if (!p)
		return NULL;
	memcpy(p, &n, sizeof(n));
	return p + 16;
}
static inline void failmem_free(void *p)
{
	if (p)
		mem_free((char *)p - 16);
}
static inline int failmem_size(void *p)
{
	int n = 0;
	if (p)
		memcpy(&n, (char *)p - 16, sizeof(n));
	return n;
}
static inline void *failmem_realloc(void *p, int n)
{
	void *q = failmem_malloc(n);
	if (!q)
		return NULL;
	int old = failmem_size(p);
	memcpy(q, p, (size_t)(old < n ? old : n));
	failmem_free(p);
	return q;
}
static inline int failmem_roundup(int n) { return (n + 7) & ~7; }
static inline int failmem_init(void *ctx)
{
	(void)ctx;
	return SQLITE_OK;
}
static inline void failmem_shutdown(void *ctx) { (void)ctx; }

static inline int failmem_install(void)
{
	static const sqlite3_mem_methods methods = {failmem_malloc, failmem_free, failmem_realloc,
		failmem_size, failmem_roundup, failmem_init, failmem_shutdown, NULL};
	return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}
