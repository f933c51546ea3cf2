/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Heap, scope ownership, arenas.
 *
 * CLEANUP(type) x = ...; calls type_cleanup(&x) at the end of the scope; TAKE(x) hands the value
 * on and leaves zero behind.  DEFINE_CLEANUP_PTR(type, free_fn) makes the function for a pointer
 * type.  All mem_ calls return zeroed memory or NULL, and every size is checked for overflow.
 * Tests fail the n-th allocation through mem_fail_after(). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void *mem_alloc(size_t n, size_t size);               /* zeroed n * size bytes, or NULL */
void *mem_resize(void *p, size_t old_n, size_t n, size_t size); /* grown part zeroed; NULL keeps p */
char *mem_strdup(const char *s);                      /* NULL for NULL or when out of memory */
char *mem_strndup(const char *s, size_t n);
[[gnu::format(printf, 1, 2)]] char *mem_printf(const char *fmt, ...);
static inline void mem_free(const void *p) { free((void *)(uintptr_t)p); }

#define mem_new(type) ((type *)mem_alloc(1, sizeof(type)))
#define mem_new_array(n, type) ((type *)mem_alloc((n), sizeof(type)))

/* Tests: after `n` further successful allocations every one fails, until called with -1. */
void mem_fail_after(long n);
/* True when an allocation was refused since the last mem_fail_after(). */
bool mem_has_failed(void);

#define CLEANUP(type) __attribute__((cleanup(type##_cleanup)))
#define TAKE(x)                                                                                    \
	({                                                                                         \
		__auto_type take_ = (x);                                                           \
		(x) = (__typeof__(take_)){0};                                                      \
		take_;                                                                             \
	})
#define DEFINE_CLEANUP_PTR(type, T, free_fn)                                                       \
	static inline void type##_cleanup(T **p)                                                   \
	{                                                                                          \
		if (*p)                                                                            \
			free_fn(*p);                                                               \
	}

static inline void str_cleanup(char **p) { free(*p); }
static inline void heap_cleanup(void *p) { free(*(void **)p); } /* CLEANUP(heap) T *x */
void fd_cleanup(int *fd);                                       /* CLEANUP(fd) int fd = -1 */

/* An arena: what one call decodes; freed at once.  Bounded: alloc gives NULL past `limit`. */
struct arena {
	struct arena_block *blocks;
	size_t used, limit;
};
void arena_init(struct arena *a, size_t limit);
void arena_fini(struct arena *a); /* frees all; the arena may be used again */
void *arena_alloc(struct arena *a, size_t n, size_t size); /* zeroed, aligned for any type */
char *arena_strndup(struct arena *a, const char *s, size_t n);
static inline void arena_cleanup(struct arena *a) { arena_fini(a); } /* CLEANUP(arena) struct arena a */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
