/* SPDX-License-Identifier: BSD-2-Clause
 * pthread mutexes that know their rank. */
#include "cell/base/mtx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NDEBUG
enum { HELD_MAX = 16 };
static _Thread_local const struct mtx *held[HELD_MAX];
static _Thread_local int held_n;

static void rank_push(const struct mtx *m)
{
	if (held_n && m->rank <= held[held_n - 1]->rank) {
		/* two of one rank are taken in order of address */
		if (m->rank < held[held_n - 1]->rank || m->rank == RANK_NONE) {
			fprintf(stderr, "afscell: lock rank %d taken under rank %d\n", (int)m->rank,
				(int)held[held_n - 1]->rank);
			abort();
		}
	}
	if (held_n == HELD_MAX)
		abort();
	held[held_n++] = m;
}

static void rank_pop(const struct mtx *m)
{
	for (int i = held_n; i-- > 0;) {
		if (held[i] == m) {
			for (int j = i; j + 1 < held_n; j++)
				held[j] = held[j + 1];
			held_n--;
			return;
		}
	}
	abort();
}
#else
static void rank_push(const struct mtx *m) { (void)m; }
static void rank_pop(const struct mtx *m) { (void)m; }
#endif

void mtx_init(struct mtx *m, enum lock_rank rank)
{
	pthread_mutex_init(&m->m, NULL);
	m->rank = rank;
}

void mtx_fini(struct mtx *m) { pthread_mutex_destroy(&m->m); }

void mtx_lock(struct mtx *m) NO_TSA
{
	rank_push(m);
	pthread_mutex_lock(&m->m);
}

bool mtx_trylock(struct mtx *m) NO_TSA
{
	if (pthread_mutex_trylock(&m->m) != 0)
		return false;
	rank_push(m);
	return true;
}

void mtx_unlock(struct mtx *m) NO_TSA
{
	pthread_mutex_unlock(&m->m);
	rank_pop(m);
}

void cond_init(struct cond *c)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->c, &attr);
	pthread_condattr_destroy(&attr);
}

void cond_fini(struct cond *c) { pthread_cond_destroy(&c->c); }
void cond_wait(struct cond *c, struct mtx *m) NO_TSA { pthread_cond_wait(&c->c, &m->m); }

bool cond_wait_until(struct cond *c, struct mtx *m, mono_ns until) NO_TSA
{
	if (until == MONO_NEVER) {
		pthread_cond_wait(&c->c, &m->m);
		return true;
	}
	struct timespec ts = {.tv_sec = (time_t)(until / NS_PER_SEC), .tv_nsec = until % NS_PER_SEC};
	return pthread_cond_timedwait(&c->c, &m->m, &ts) != ETIMEDOUT;
}

void cond_signal(struct cond *c) { pthread_cond_signal(&c->c); }
void cond_broadcast(struct cond *c) { pthread_cond_broadcast(&c->c); }
