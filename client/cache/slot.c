/* SPDX-License-Identifier: BSD-2-Clause
 * Slots are reused, since making and removing a file costs more than writing a small one. */
#include "client/cache/slot.h"

#include "cell/base/log.h"
#include "cell/base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

afs_err slots_open(struct slots *s, const char *dir)
{
	*s = (struct slots){.dir_fd = -1, .mem_fd = -1};
	if (!dir) {
		s->mem_fd = memfd_create("afscell-cache", MFD_CLOEXEC);
		return s->mem_fd >= 0 ? AFS_OK : log_error(afs_err_from_errno(errno), "cache.memory.none errno=%d", errno);
	}
	s->dir = mem_printf("%s/data", dir);
	if (!s->dir)
		return AFS_ENOMEM;
	if (mkdir(s->dir, 0700) < 0 && errno != EEXIST)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			s->dir, errno);
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return log_error(afs_err_from_errno(errno), "cache.dir.unusable path=%s errno=%d",
			s->dir, errno);
	return AFS_OK;
}

void slots_fini(struct slots *s)
{
	for (size_t i = 0; i < s->free_n; i++)
		slot_close(s, &s->free[i]);
	mem_free(s->free);
	mem_free(s->dir);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	if (s->mem_fd >= 0)
		close(s->mem_fd);
	*s = (struct slots){.dir_fd = -1, .mem_fd = -1};
}

void slot_close(const struct slots *s, struct slot *slot)
{
	if (slot->fd >= 0 && slot->fd != s->mem_fd)
		close(slot->fd);
	slot->fd = -1;
}

uint64_t slot_base(const struct slots *s, uint32_t number)
{
	return s->mem_fd >= 0 ? (uint64_t)number << SLOT_MEM_BITS : 0;
}

afs_err slot_open(struct slots *s, struct slot *slot)
{
	if (s->mem_fd >= 0) {
		slot->fd = s->mem_fd;
		return AFS_OK;
	}
	char name[16];
	unsigned sub = slot->number & 0xff;
	if (!(s->made[sub / 64] >> sub % 64 & 1)) {
		snprintf(name, sizeof(name), "%02x", sub);
		if (mkdirat(s->dir_fd, name, 0700) < 0 && errno != EEXIST)
			goto bad;
		s->made[sub / 64] |= UINT64_C(1) << sub % 64;
	}
	snprintf(name, sizeof(name), "%02x/%08x", sub, slot->number);
	slot->fd = openat(s->dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (slot->fd >= 0)
		return AFS_OK;
bad:
	return log_error(afs_err_from_errno(errno),
		"cache.slot.unusable path=%s/%02x/%08x errno=%d", s->dir, sub, slot->number, errno);
}

afs_err slots_take(struct slots *s, struct slot *out)
{
	if (s->free_n) {
		struct slot slot = s->free[s->free_n - 1];
		if (slot.fd < 0)
			TRY(slot_open(s, &slot));
		s->free_n--;
		*out = slot;
		return AFS_OK;
	}
	if (s->next >= (s->mem_fd >= 0 ? (uint32_t)SLOT_MEM_MAX : (uint32_t)SLOT_MAX))
		return AFS_ENOSPC;
	struct slot slot = {s->next, -1};
	TRY(slot_open(s, &slot));
	s->next++;
	*out = slot;
	return AFS_OK;
}

void slots_give(struct slots *s, struct slot slot)
{
	if (s->free_n == s->free_cap) {
		size_t cap = s->free_cap ? s->free_cap * 2 : 64;
		struct slot *more = mem_resize(s->free, s->free_cap, cap, sizeof(*more));
		if (!more) { /* the number is lost until the next start */
			slot_close(s, &slot);
			return;
		}
		s->free = more;
		s->free_cap = cap;
	}
	if (s->free_n >= SLOTS_OPEN_FREE)
		slot_close(s, &slot);
	s->free[s->free_n++] = slot;
}

afs_err slots_sweep(struct slots *s, bool (*keep)(void *ctx, uint32_t number), void *ctx)
{
	for (unsigned sub = 0; sub < 256; sub++) {
		char name[8];
		snprintf(name, sizeof(name), "%02x", sub);
		int fd = openat(s->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		s->made[sub / 64] |= UINT64_C(1) << sub % 64;
		DIR *d = fdopendir(fd);
		if (!d) {
			close(fd);
			return AFS_ENOMEM;
		}
		for (struct dirent *e; (e = readdir(d));) {
			char *end;
			unsigned long number = strtoul(e->d_name, &end, 16);
			if (e->d_name[0] == '.')
				continue;
			if (*end || end != e->d_name + 8 || (number & 0xff) != sub ||
				!keep(ctx, (uint32_t)number))
				unlinkat(fd, e->d_name, 0);
		}
		closedir(d);
	}
	return AFS_OK;
}

afs_err areas_open(struct areas *a, int data_fd)
{
	*a = (struct areas){.fd = data_fd < 0 ? memfd_create("afscell-small", MFD_CLOEXEC) : openat(data_fd, "small", O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
	return a->fd >= 0 ? AFS_OK
			  : log_error(afs_err_from_errno(errno),
				    "cache.slot.unusable path=data/small errno=%d", errno);
}

void areas_fini(struct areas *a)
{
	mem_free(a->free);
	if (a->fd >= 0)
		close(a->fd);
	*a = (struct areas){.fd = -1};
}

afs_err areas_take(struct areas *a, uint32_t *out)
{
	if (!a->free_n && a->next >= SLOT_MAX)
		return AFS_ENOSPC;
	*out = a->free_n ? a->free[--a->free_n] : a->next++;
	return AFS_OK;
}

static void area_punch(struct areas *a, uint32_t area)
{
	if (fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)area * AREA_BYTES,
		    AREA_BYTES) < 0)
		log_debug("cache.punch.failed errno=%d", errno);
}

void areas_give(struct areas *a, uint32_t area)
{
	if (a->free_n == a->free_cap) {
		size_t cap = a->free_cap ? a->free_cap * 2 : 256;
		uint32_t *more = mem_resize(a->free, a->free_cap, cap, sizeof(*more));
		if (!more) { /* the number is lost until the next start */
			area_punch(a, area);
			return;
		}
		a->free = more;
		a->free_cap = cap;
	}
	a->free[a->free_n++] = area;
	if (a->free_n > AREAS_UNPUNCHED)
		area_punch(a, a->free[a->free_n - 1 - AREAS_UNPUNCHED]);
}
