/* SPDX-License-Identifier: BSD-2-Clause
 * Threads that fetch ahead and store behind, the housekeeper, and the queue of events. */
#include "client/cm/cm.h"

#include "cell/base/log.h"

#include <string.h>

#define KEEP_EVERY SEC(30)
#define SYNC_EVERY SEC(5) /* how much of what is dirty a fall of the machine may take */
#define SETTLE_LONGEST SEC(1)

void *cm_buf_get(struct cm *cm)
{
	void *buf = NULL;
	mtx_lock(&cm->bufs_lock);
	if (cm->buf_n)
		buf = cm->bufs[--cm->buf_n];
	mtx_unlock(&cm->bufs_lock);
	return buf ? buf : mem_alloc(CM_BUF, 1);
}

void cm_buf_put(struct cm *cm, void *buf)
{
	mtx_lock(&cm->bufs_lock);
	if (cm->buf_n < CM_BUFS_MAX) {
		cm->bufs[cm->buf_n++] = buf;
		buf = NULL;
	}
	mtx_unlock(&cm->bufs_lock);
	mem_free(buf);
}

bool cm_job_add(struct cm *cm, struct cm_job job)
{
	struct cm_job *j = mem_new(struct cm_job);
	mtx_lock(&cm->jobs_lock);
	bool taken = j && cm->worker_n && !cm->stopping;
	if (taken) {
		*j = job;
		list_push_back(&cm->jobs, &j->queue);
		cond_signal(&cm->jobs_changed);
	}
	mtx_unlock(&cm->jobs_lock);
	if (!taken) {
		if (job.vnode)
			cm_vnode_unref(job.vnode);
		cm_ident_unref(cm, job.ident);
		mem_free(j);
	}
	return taken;
}

void cm_job_done(struct cm *cm, struct cm_job *job)
{
	if (job->vnode)
		cm_vnode_unref(job->vnode);
	cm_ident_unref(cm, job->ident);
	mem_free(job);
}

static void *work(void *arg)
{
	struct cm *cm = arg;
	for (;;) {
		mtx_lock(&cm->jobs_lock);
		while (list_empty(&cm->jobs) && !cm->stopping)
			cond_wait(&cm->jobs_changed, &cm->jobs_lock);
		struct list *e = list_pop_front(&cm->jobs);
		mtx_unlock(&cm->jobs_lock);
		if (!e)
			return NULL;
		struct cm_job *job = list_entry(e, struct cm_job, queue);
		job->run(cm, job);
	}
}

static void *keep(void *arg)
{
	struct cm *cm = arg;
	mtx_lock(&cm->jobs_lock);
	mono_ns next = clk_mono() + KEEP_EVERY, sync = clk_mono() + SYNC_EVERY;
	while (!cm->stopping) {
		cond_wait_until(&cm->keeper_wake, &cm->jobs_lock, MIN(next, sync));
		mono_ns now = clk_mono();
		if (cm->stopping || now < MIN(next, sync))
			continue;
		mtx_unlock(&cm->jobs_lock);
		if (now >= sync) {
			cache_sync(cm->cache);
			sync = clk_mono() + SYNC_EVERY;
		}
		if (now >= next) {
			cm_locks_extend(cm);
			cm_recover(cm);
			next = clk_mono() + KEEP_EVERY;
		}
		mtx_lock(&cm->jobs_lock);
	}
	mtx_unlock(&cm->jobs_lock);
	return NULL;
}

afs_err cm_threads_start(struct cm *cm)
{
	for (; cm->worker_n < CM_WORKERS; cm->worker_n++) {
		if (pthread_create(&cm->workers[cm->worker_n], NULL, work, cm) != 0)
			return log_error(AFS_ENOMEM, "cm.threads.none started=%u", cm->worker_n);
		pthread_setname_np(cm->workers[cm->worker_n], "cm-worker");
	}
	cm->keeper_runs = pthread_create(&cm->keeper, NULL, keep, cm) == 0;
	if (!cm->keeper_runs)
		return log_error(AFS_ENOMEM, "cm.threads.none started=%u", cm->worker_n);
	pthread_setname_np(cm->keeper, "cm-keeper");
	cm_recover(cm);
	return AFS_OK;
}

void cm_threads_stop(struct cm *cm)
{
	mtx_lock(&cm->jobs_lock);
	cm->stopping = true;
	cond_broadcast(&cm->jobs_changed);
	cond_broadcast(&cm->keeper_wake);
	mtx_unlock(&cm->jobs_lock);
	while (cm->worker_n)
		pthread_join(cm->workers[--cm->worker_n], NULL);
	if (cm->keeper_runs)
		pthread_join(cm->keeper, NULL);
	cm->keeper_runs = false;
}

/* --- events --------------------------------------------------------------------------------------- */

void cm_event(struct cm_vnode *v, unsigned what)
{
	struct cm *cm = v->cm;
	mtx_lock(&cm->events_lock);
	if (cm->events_wanted) {
		v->event_what |= what;
		if (!v->event_queued) {
			v->event_queued = true;
			cm_vnode_ref(v);
			list_push_back(&cm->events, &v->event);
			cond_broadcast(&cm->events_changed); /* who settles waits here too */
		}
	}
	mtx_unlock(&cm->events_lock);
}

struct cm_vnode *cm_event_next(struct cm *cm, unsigned *what)
{
	struct cm_vnode *v = NULL;
	mtx_lock(&cm->events_lock);
	while (cm->events_wanted && list_empty(&cm->events))
		cond_wait(&cm->events_changed, &cm->events_lock);
	struct list *e = list_pop_front(&cm->events);
	if (e) {
		v = list_entry(e, struct cm_vnode, event);
		v->event_queued = false;
		v->event_busy = true;
		*what = v->event_what;
		v->event_what = 0;
	}
	mtx_unlock(&cm->events_lock);
	return v;
}

void cm_event_done(struct cm_vnode *v)
{
	mtx_lock(&v->cm->events_lock);
	v->event_busy = false;
	cond_broadcast(&v->cm->events_changed);
	mtx_unlock(&v->cm->events_lock);
	cm_vnode_unref(v);
}

void cm_event_settle(struct cm_vnode *v)
{
	struct cm *cm = v->cm;
	mtx_lock(&cm->events_lock);
	mono_ns until = 0;
	while (cm->events_wanted && (v->event_queued || v->event_busy)) {
		if (!until)
			until = clk_mono() + SETTLE_LONGEST;
		if (!cond_wait_until(&cm->events_changed, &cm->events_lock, until))
			break;
	}
	mtx_unlock(&cm->events_lock);
}

void cm_events_want(struct cm *cm, bool wanted)
{
	mtx_lock(&cm->events_lock);
	cm->events_wanted = wanted;
	cond_broadcast(&cm->events_changed);
	mtx_unlock(&cm->events_lock);
}
