/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Mutexes and conditions with a rank (lockrank.h): a thread takes locks in rising rank, and builds
 * without NDEBUG stop when it does not.  Clang checks GUARDED_BY and REQUIRES. */
#pragma once
#include "cell/base/clk.h"
#include "cell/base/lockrank.h"

#include <pthread.h>
#include <stdbool.h>

#ifdef __clang__
#define TSA(x) __attribute__((x))
#else
#define TSA(x)
#endif
#define CAPABILITY(n) TSA(capability(n))
#define GUARDED_BY(m) /* for readers: C compilers cannot name a member here yet */
#define REQUIRES(...) TSA(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) TSA(acquire_capability(__VA_ARGS__))
#define RELEASE(...) TSA(release_capability(__VA_ARGS__))
#define NO_TSA TSA(no_thread_safety_analysis)

struct CAPABILITY("mutex") mtx {
	pthread_mutex_t m;
	enum lock_rank rank;
};
struct cond {
	pthread_cond_t c;
};

void mtx_init(struct mtx *m, enum lock_rank rank);
void mtx_fini(struct mtx *m);
void mtx_lock(struct mtx *m) ACQUIRE(*m);
bool mtx_trylock(struct mtx *m) TSA(try_acquire_capability(true, *m));
void mtx_unlock(struct mtx *m) RELEASE(*m);

void cond_init(struct cond *c); /* waits on the monotonic clock */
void cond_fini(struct cond *c);
void cond_wait(struct cond *c, struct mtx *m) REQUIRES(*m);
/* False when `until` passed first. */
bool cond_wait_until(struct cond *c, struct mtx *m, mono_ns until) REQUIRES(*m);
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);
