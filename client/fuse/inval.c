/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Telling the kernel what is true no more.  The kernel takes a directory's lock to forget a name, and
 * waits for pages being read to forget them: both may wait for requests that wait for a server.  So
 * names and data have a thread each, and neither holds anything. */
#include "client/fuse/front.h"

#include "cell/base/log.h"

#include <errno.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct name_job {
	struct list queue;
	struct fnode *dir; /* held */
	size_t len;
	char name[];
};

void inval_name(struct front *f, struct fnode *dir, const char *name, size_t len)
{
	struct name_job *j = mem_alloc(1, sizeof(*j) + len + 1);
	if (!j) {
		log_warn("fuse.inval.lost name_len=%zu", len);
		return;
	}
	j->dir = dir;
	j->len = len;
	memcpy(j->name, name, len);
	node_hold(f, dir);
	mtx_lock(&f->queue_lock);
	list_push_back(&f->names, &j->queue);
	cond_signal(&f->queue_changed);
	mtx_unlock(&f->queue_lock);
}

/* The kernel is to ask for the name again.  Where it knows how to (7.38), nothing that is below the name is thrown away:
 * a program whose directory is there keeps it when the name still leads to it. */
static void tell_name(struct front *f, const struct name_job *j)
{
	if (f->minor < 38) {
		(void)fuse_lowlevel_notify_inval_entry(f->se, node_ino(f, j->dir), j->name, j->len);
		return;
	}
	struct fuse_notify_inval_entry_out out = {.parent = node_ino(f, j->dir), .namelen = (uint32_t)j->len};
	uint32_t expire_only = 1;
	memcpy((char *)&out + 12, &expire_only, 4); /* `padding` in headers from before */
	struct fuse_out_header h = {.len = (uint32_t)(sizeof(h) + sizeof(out) + j->len + 1), .error = FUSE_NOTIFY_INVAL_ENTRY};
	char end = 0;
	struct iovec iov[4] = {{&h, sizeof(h)}, {&out, sizeof(out)}, {(char *)(uintptr_t)j->name, j->len}, {&end, 1}};
	if (writev(f->fd, iov, 4) < 0 && errno != ENOENT && errno != ENOTDIR)
		log_debug("fuse.inval.failed errno=%d", errno);
}

static void *name_loop(void *arg)
{
	struct front *f = arg;
	for (;;) {
		mtx_lock(&f->queue_lock);
		while (list_empty(&f->names) && !f->ending)
			cond_wait(&f->queue_changed, &f->queue_lock);
		struct list *e = list_pop_front(&f->names);
		bool ending = f->ending;
		mtx_unlock(&f->queue_lock);
		if (!e)
			return NULL;
		struct name_job *j = list_entry(e, struct name_job, queue);
		if (!ending)
			tell_name(f, j);
		node_drop(f, j->dir);
		mem_free(j);
	}
}

struct shown {
	struct front *f;
	struct fnode **nodes;
	size_t n;
};

static void each_shown(void *ctx, const char *name, size_t len)
{
	struct shown *s = ctx;
	for (size_t i = 0; i < s->n; i++)
		inval_name(s->f, s->nodes[i], name, len);
}

static void *data_loop(void *arg)
{
	struct front *f = arg;
	unsigned what;
	for (struct cm_vnode *v; (v = cm_event_next(f->cm, &what));) {
		size_t n;
		struct fnode **nodes = nodes_of(f, v, &n);
		for (size_t i = 0; i < n; i++) {
			unsigned foreign = atomic_load(&v->foreign);
			(void)fuse_lowlevel_notify_inval_inode(
				f->se, node_ino(f, nodes[i]), what & CM_EV_DATA ? 0 : -1, 0);
			if (what & CM_EV_DATA)
				nodes[i]->foreign = foreign;
		}
		if (what & CM_EV_NAMES)
			cm_take_shown(v, each_shown, &(struct shown){f, nodes, n});
		for (size_t i = 0; i < n; i++)
			node_drop(f, nodes[i]);
		mem_free(nodes);
		cm_event_done(v);
	}
	return NULL;
}

afs_err inval_start(struct front *f)
{
	mtx_init(&f->queue_lock, RANK_LEAF);
	cond_init(&f->queue_changed);
	list_init(&f->names);
	cm_events_want(f->cm, true);
	f->data_runs = pthread_create(&f->data_thread, NULL, data_loop, f) == 0;
	f->name_runs = pthread_create(&f->name_thread, NULL, name_loop, f) == 0;
	if (f->data_runs)
		pthread_setname_np(f->data_thread, "fuse-inval");
	if (f->name_runs)
		pthread_setname_np(f->name_thread, "fuse-names");
	return f->data_runs && f->name_runs ? AFS_OK : AFS_ENOMEM;
}

void inval_stop(struct front *f)
{
	cm_events_want(f->cm, false);
	mtx_lock(&f->queue_lock);
	f->ending = true;
	cond_broadcast(&f->queue_changed);
	mtx_unlock(&f->queue_lock);
	if (f->data_runs)
		pthread_join(f->data_thread, NULL);
	if (f->name_runs)
		pthread_join(f->name_thread, NULL);
	f->data_runs = f->name_runs = false;
	cond_fini(&f->queue_changed);
	mtx_fini(&f->queue_lock);
}
