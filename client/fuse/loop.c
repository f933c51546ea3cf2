/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads that read requests.  As many as wait for servers at once, and a few to spare; each keeps its
 * request buffer and its reply buffer for life (design D13: memory given back per request costs more
 * than the copying). */
#include "client/fuse/front.h"

#include "cell/base/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_MAX = 6, THREADS_DEFAULT = 64 };

struct thread {
	struct list all;
	struct front *front;
	pthread_t id;
	struct fuse_buf in;
	void *out;
	bool over;
};

static _Thread_local struct thread *self;

void *loop_buf(void)
{
	if (!self->out)
		self->out = mem_alloc(FRONT_BUF, 1);
	return self->out;
}

static void spawn_locked(struct front *f) REQUIRES(f->threads_lock);

/* A request is about to be worked on: is there still somebody to read the next? */
static void leave_idle(struct front *f)
{
	mtx_lock(&f->threads_lock);
	if (--f->idle_n == 0 && f->thread_n < f->threads_max && !f->over)
		spawn_locked(f);
	mtx_unlock(&f->threads_lock);
}

/* False: there are enough that wait. */
static bool enter_idle(struct front *f)
{
	mtx_lock(&f->threads_lock);
	bool stay = f->idle_n < IDLE_MAX && !f->over;
	f->idle_n += stay;
	mtx_unlock(&f->threads_lock);
	return stay;
}

static void *run(void *arg)
{
	struct thread *t = self = arg;
	struct front *f = t->front;
	bool idle = true; /* counted by who made us */
	while (idle) {
		int n = fuse_session_receive_buf(f->se, &t->in);
		if (n == -EINTR || n == -EAGAIN) {
			if (fuse_session_exited(f->se) || f->over)
				break;
			continue;
		}
		if (n <= 0) {
			if (n < 0 && n != -ENODEV)
				log_warn("fuse.read.failed errno=%d", -n);
			fuse_session_exit(f->se);
			break;
		}
		leave_idle(f);
		fuse_session_process_buf(f->se, &t->in);
		idle = enter_idle(f);
	}
	mtx_lock(&f->threads_lock);
	f->idle_n -= idle;
	f->thread_n--;
	t->over = true;
	cond_broadcast(&f->threads_changed);
	mtx_unlock(&f->threads_lock);
	return NULL;
}

static void thread_free(struct thread *t)
{
	free(t->in.mem);
	mem_free(t->out);
	mem_free(t);
}

/* Threads that ended are joined by who makes or ends others. */
static void reap_locked(struct front *f) REQUIRES(f->threads_lock)
{
	list_each(e, &f->threads)
	{
		struct thread *t = list_entry(e, struct thread, all);
		if (!t->over || pthread_equal(t->id, pthread_self()))
			continue;
		pthread_join(t->id, NULL);
		list_remove(e);
		thread_free(t);
	}
}

static void spawn_locked(struct front *f)
{
	reap_locked(f);
	struct thread *t = mem_new(struct thread);
	if (!t)
		return;
	t->front = f;
	f->thread_n++;
	f->idle_n++;
	list_push_back(&f->threads, &t->all);
	if (pthread_create(&t->id, NULL, run, t) != 0) {
		f->thread_n--;
		f->idle_n--;
		list_remove(&t->all);
		mem_free(t);
		return;
	}
	pthread_setname_np(t->id, "fuse");
}

static void on_wake(int sig) { (void)sig; }

afs_err loop_start(struct front *f)
{
	mtx_init(&f->threads_lock, RANK_LEAF);
	cond_init(&f->threads_changed);
	list_init(&f->threads);
	if (!f->threads_max)
		f->threads_max = THREADS_DEFAULT;
	/* only to end a read that waits for a request */
	struct sigaction sa = {.sa_handler = on_wake};
	sigaction(SIGRTMIN + 1, &sa, NULL);
	mtx_lock(&f->threads_lock);
	spawn_locked(f);
	spawn_locked(f);
	unsigned n = f->thread_n;
	mtx_unlock(&f->threads_lock);
	return n ? AFS_OK : AFS_ENOMEM;
}

void loop_stop(struct front *f)
{
	fuse_session_exit(f->se);
	mtx_lock(&f->threads_lock);
	f->over = true;
	while (f->thread_n) {
		list_each(e, &f->threads)
		{
			struct thread *t = list_entry(e, struct thread, all);
			if (!t->over)
				pthread_kill(t->id, SIGRTMIN + 1);
		}
		cond_wait_until(&f->threads_changed, &f->threads_lock, clk_mono() + MSEC(5));
	}
	reap_locked(f);
	mtx_unlock(&f->threads_lock);
	cond_fini(&f->threads_changed);
	mtx_fini(&f->threads_lock);
}
