/* SPDX-License-Identifier: BSD-2-Clause
 * Open descriptors of extent files, shared by readers and writers.  One that nobody uses stays
 * open until the limit wants it; one in use is never closed, so the limit can be passed by as many
 * as are in use. */
#include "fileserver/store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t key_of(const struct vs_fds *f, uint64_t volume, uint64_t extent)
{
	return map_hash_u64(&f->by_id, volume << 40 ^ extent);
}

void vs_fds_init(struct vs_fds *f, size_t limit)
{
	mtx_init(&f->lock, RANK_LEAF);
	map_init(&f->by_id);
	list_init(&f->idle);
	f->limit = limit;
}

static struct vs_fd *find_locked(struct vs_fds *f, uint64_t volume, uint64_t extent)
	REQUIRES(f->lock)
{
	for (struct map_node *n = map_first(&f->by_id, key_of(f, volume, extent)); n;
		n = map_next(n)) {
		struct vs_fd *fd = container_of(n, struct vs_fd, node);
		if (fd->volume == volume && fd->extent == extent)
			return fd;
	}
	return NULL;
}

static void close_locked(struct vs_fds *f, struct vs_fd *fd) REQUIRES(f->lock)
{
	if (!fd->dropped)
		map_remove(&f->by_id, &fd->node);
	list_remove(&fd->lru);
	close(fd->fd);
	mem_free(fd);
	f->count--;
}

static void trim_locked(struct vs_fds *f) REQUIRES(f->lock)
{
	while (f->count > f->limit && !list_empty(&f->idle))
		close_locked(f, list_entry(list_first(&f->idle), struct vs_fd, lru));
}

static void use_locked(struct vs_fds *f, struct vs_fd *fd) REQUIRES(f->lock)
{
	(void)f;
	list_remove(&fd->lru);
	fd->refs++;
}

void vs_fds_fini(struct vs_fds *f)
{
	mtx_lock(&f->lock);
	f->limit = 0;
	trim_locked(f);
	mtx_unlock(&f->lock);
	map_fini(&f->by_id);
	mtx_fini(&f->lock);
}

afs_err vs_fd_get(struct vs_fds *f, int data_fd, uint64_t volume, uint64_t extent, bool make,
	struct vs_fd **out)
{
	mtx_lock(&f->lock);
	struct vs_fd *have = make ? NULL : find_locked(f, volume, extent);
	if (have)
		use_locked(f, have);
	mtx_unlock(&f->lock);
	if (have) {
		*out = have;
		return AFS_OK;
	}

	char name[24];
	snprintf(name, sizeof(name), "%016llx", (unsigned long long)extent);
	struct vs_fd *fd = mem_new(struct vs_fd);
	if (!fd)
		return AFS_ENOMEM;
	fd->fd = openat(data_fd, name, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_TRUNC : 0), 0600);
	if (fd->fd < 0) {
		mem_free(fd);
		return errno == ENOENT ? AFS_ENOENT : vs_err_of_errno(errno);
	}
	fd->volume = volume;
	fd->extent = extent;
	fd->refs = 1;

	mtx_lock(&f->lock);
	have = find_locked(f, volume, extent);
	if (have) { /* another thread was faster */
		use_locked(f, have);
	} else if (!map_insert(&f->by_id, &fd->node, key_of(f, volume, extent))) {
		fd->dropped = true; /* not shared, closed when put */
		f->count++;
	} else {
		f->count++;
		trim_locked(f);
	}
	mtx_unlock(&f->lock);
	if (have) {
		close(fd->fd);
		mem_free(fd);
		fd = have;
	}
	*out = fd;
	return AFS_OK;
}

void vs_fd_put(struct vs_fds *f, struct vs_fd *fd)
{
	if (!fd)
		return;
	mtx_lock(&f->lock);
	if (--fd->refs == 0) {
		if (fd->dropped) {
			close_locked(f, fd);
		} else {
			list_push_back(&f->idle, &fd->lru);
			trim_locked(f);
		}
	}
	mtx_unlock(&f->lock);
}

static void drop_locked(struct vs_fds *f, struct vs_fd *fd) REQUIRES(f->lock)
{
	if (fd->refs == 0) {
		close_locked(f, fd);
	} else {
		map_remove(&f->by_id, &fd->node);
		fd->dropped = true;
	}
}

void vs_fd_drop(struct vs_fds *f, uint64_t volume, uint64_t extent)
{
	mtx_lock(&f->lock);
	struct vs_fd *fd = find_locked(f, volume, extent);
	if (fd)
		drop_locked(f, fd);
	mtx_unlock(&f->lock);
}

void vs_fd_drop_volume(struct vs_fds *f, uint64_t volume)
{
	mtx_lock(&f->lock);
	size_t c = 0;
	for (struct map_node *n = map_walk(&f->by_id, &c, NULL), *next; n; n = next) {
		next = map_walk(&f->by_id, &c, n->next);
		struct vs_fd *fd = container_of(n, struct vs_fd, node);
		if (fd->volume == volume)
			drop_locked(f, fd);
	}
	mtx_unlock(&f->lock);
}
