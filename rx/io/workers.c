/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls wait in a line per peer address; lines are served in turn, one call at a time, and one peer
 * occupies at most three quarters of the threads, so a peer that asks for much delays itself, not
 * the others.  A thread is started only when a call waits and none is idle; one that was idle for
 * WORKER_IDLE leaves.  The thread that was busy last is woken first: its caches are warm, and the
 * others can fall idle for good. */
#include "rx/io/workers.h"

#include "cell/base/log.h"
#include "cell/base/map.h"

#include <stdio.h>
#include <string.h>

#define WORKER_IDLE SEC(10)

struct line {
	struct map_node node;
	uint32_t ip;
	unsigned waiting, running;
	struct list calls;
	struct list turn; /* of rpc_workers.turns, while calls wait and the peer may run more */
};

struct worker {
	struct rpc_workers *pool;
	pthread_t thread;
	struct cond wake;
	struct list link; /* of idle, or of gone */
	bool woken;
	bool started; /* thread is to be joined */
};

struct rpc_workers {
	char name[16];
	unsigned max, share; /* share: threads that one peer may have */
	struct mtx lock;
	struct map lines;
	struct list turns;     /* lines with something to run, in order */
	struct list idle;      /* workers, the last to fall idle first */
	struct list gone;      /* workers that left, to be joined and used again */
	struct list spare;     /* lines for reuse */
	unsigned spare_count;
	struct cond left; /* a thread went */
	unsigned threads, idle_count, waiting;
	bool stop;
};

struct rpc_workers *rpc_workers_new(const char *name, unsigned max)
{
	struct rpc_workers *w = mem_new(struct rpc_workers);
	if (!w)
		return NULL;
	snprintf(w->name, sizeof(w->name), "%.12s-w", name);
	w->max = MAX(max, 1u);
	w->share = w->max < 4 ? w->max : w->max - w->max / 4;
	mtx_init(&w->lock, RANK_WORKERS);
	cond_init(&w->left);
	map_init(&w->lines);
	list_init(&w->turns);
	list_init(&w->idle);
	list_init(&w->gone);
	list_init(&w->spare);
	return w;
}

static struct line *line_get_locked(struct rpc_workers *w, uint32_t ip)
{
	uint64_t hash = map_hash_u64(&w->lines, ip);
	for (struct map_node *n = map_first(&w->lines, hash); n; n = map_next(n)) {
		struct line *line = list_entry(n, struct line, node);
		if (line->ip == ip)
			return line;
	}
	struct list *e = list_pop_front(&w->spare);
	struct line *line = e ? list_entry(e, struct line, turn) : mem_new(struct line);
	if (!line)
		return NULL;
	if (e)
		w->spare_count--;
	*line = (struct line){.ip = ip};
	list_init(&line->calls);
	list_init(&line->turn);
	if (!map_insert(&w->lines, &line->node, hash)) {
		mem_free(line);
		return NULL;
	}
	return line;
}

static void line_settle_locked(struct rpc_workers *w, struct line *line)
{
	bool due = line->waiting && line->running < w->share;
	if (due && !list_linked(&line->turn))
		list_push_back(&w->turns, &line->turn);
	if (line->waiting || line->running)
		return;
	map_remove(&w->lines, &line->node);
	if (w->spare_count < 64) {
		w->spare_count++;
		list_push_back(&w->spare, &line->turn);
	} else {
		mem_free(line);
	}
}

/* The next call whose turn it is, or NULL; its line counts as running. */
static struct rpc_stream *take_locked(struct rpc_workers *w, struct line **of)
{
	struct list *e = list_pop_front(&w->turns);
	if (!e)
		return NULL;
	struct line *line = list_entry(e, struct line, turn);
	struct rpc_stream *s = rpc_stream_of_link(list_pop_front(&line->calls));
	line->waiting--;
	line->running++;
	w->waiting--;
	line_settle_locked(w, line); /* again at the end of the turns, if it may run more */
	*of = line;
	return s;
}

static void *worker_main(void *arg)
{
	struct worker *me = arg;
	struct rpc_workers *w = me->pool;
	pthread_setname_np(pthread_self(), w->name);
	mtx_lock(&w->lock);
	for (;;) {
		struct line *line;
		struct rpc_stream *s = take_locked(w, &line);
		if (s) {
			mtx_unlock(&w->lock);
			(void)rpc_stream_serve(s); /* of no inline list */
			mtx_lock(&w->lock);
			line->running--;
			line_settle_locked(w, line);
			continue;
		}
		if (w->stop)
			break;
		me->woken = false;
		list_push_front(&w->idle, &me->link);
		w->idle_count++;
		mono_ns until = clk_mono() + WORKER_IDLE;
		while (!me->woken && !w->stop && cond_wait_until(&me->wake, &w->lock, until))
			continue;
		if (!me->woken) {
			list_remove(&me->link);
			w->idle_count--;
			if (!w->stop && list_empty(&w->turns))
				break;
		}
	}
	w->threads--;
	list_push_back(&w->gone, &me->link);
	cond_signal(&w->left);
	mtx_unlock(&w->lock);
	return NULL;
}

static bool spawn_locked(struct rpc_workers *w)
{
	struct list *e = list_pop_front(&w->gone);
	struct worker *me = e ? list_entry(e, struct worker, link) : mem_new(struct worker);
	if (!me)
		return false;
	if (e && me->started) {
		pthread_join(me->thread, NULL); /* it has nothing left to do but return */
	} else if (!e) {
		me->pool = w;
		cond_init(&me->wake);
	}
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 20);
	int eno = pthread_create(&me->thread, &attr, worker_main, me);
	pthread_attr_destroy(&attr);
	me->started = eno == 0;
	if (eno) {
		list_push_back(&w->gone, &me->link);
		return false;
	}
	w->threads++;
	return true;
}

afs_err rpc_workers_submit(struct rpc_workers *w, struct rpc_stream *s)
{
	struct cond *wake = NULL;
	mtx_lock(&w->lock);
	struct line *line = w->stop || w->waiting >= WORKERS_QUEUE ?
		NULL : line_get_locked(w, rpc_stream_peer(s).ip);
	if (!line || line->waiting >= WORKERS_PER_PEER) {
		mtx_unlock(&w->lock);
		return AFS_EOVERLOAD;
	}
	list_push_back(&line->calls, rpc_stream_link(s));
	line->waiting++;
	w->waiting++;
	line_settle_locked(w, line);
	if (!list_empty(&w->turns)) {
		struct list *e = list_pop_front(&w->idle);
		if (e) {
			struct worker *next = list_entry(e, struct worker, link);
			w->idle_count--;
			next->woken = true;
			wake = &next->wake;
		} else if (w->threads < w->max) {
			if (!spawn_locked(w) && w->threads == 0) {
				/* nobody would ever serve it */
				list_remove(rpc_stream_link(s));
				line->waiting--;
				w->waiting--;
				list_remove(&line->turn);
				line_settle_locked(w, line);
				mtx_unlock(&w->lock);
				return AFS_EOVERLOAD;
			}
		}
	}
	mtx_unlock(&w->lock);
	if (wake)
		cond_signal(wake); /* workers are not freed before the pool is */
	return AFS_OK;
}

unsigned rpc_workers_threads(struct rpc_workers *w)
{
	mtx_lock(&w->lock);
	unsigned n = w->threads;
	mtx_unlock(&w->lock);
	return n;
}

void rpc_workers_free(struct rpc_workers *w)
{
	if (!w)
		return;
	mtx_lock(&w->lock);
	w->stop = true;
	list_each(e, &w->idle) cond_signal(&list_entry(e, struct worker, link)->wake);
	while (w->threads)
		cond_wait(&w->left, &w->lock);
	mtx_unlock(&w->lock);
	for (struct list *e; (e = list_pop_front(&w->gone));) {
		struct worker *me = list_entry(e, struct worker, link);
		if (me->started)
			pthread_join(me->thread, NULL);
		cond_fini(&me->wake);
		mem_free(me);
	}
	for (struct list *e; (e = list_pop_front(&w->spare));)
		mem_free(list_entry(e, struct line, turn));
	map_fini(&w->lines);
	cond_fini(&w->left);
	mtx_fini(&w->lock);
	mem_free(w);
}
