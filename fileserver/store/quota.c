/* SPDX-License-Identifier: BSD-2-Clause
 * Blocks of 1 KiB, the volume's quota and the partition's space (fileserver.md §11). */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <errno.h>
#include <sys/statvfs.h>

uint64_t vs_blocks(uint64_t length) { return length ? length / 1024 + (length % 1024 != 0) : 1; }

afs_err vs_quota_check(const struct vs_volume *v, int64_t delta_kib, uint64_t spare_kib)
{
	if (delta_kib <= 0 || v->h.quota_kib == 0)
		return AFS_OK;
	uint64_t want;
	if (__builtin_add_overflow(v->h.used_kib, (uint64_t)delta_kib, &want))
		return AFS_EOVERQUOTA;
	uint64_t most;
	if (__builtin_add_overflow(v->h.quota_kib, spare_kib, &most))
		return AFS_OK;
	return want > most ? AFS_EOVERQUOTA : AFS_OK;
}

static afs_err space_refresh_locked(struct vs_partition *p, mono_ns now) REQUIRES(p->space_lock)
{
	struct statvfs st;
	if (fstatvfs(p->fd, &st) != 0)
		return log_error(AFS_EIO, "vs.partition.statvfs path=%s errno=%d", p->path, errno);
	uint64_t unit = st.f_frsize, reserve = p->s->config.reserve_kib;
	uint64_t total = (uint64_t)st.f_blocks * unit / 1024,
		 avail = (uint64_t)st.f_bavail * unit / 1024;
	p->space.total_kib = total > reserve ? total - reserve : 0;
	p->space.free_kib = avail > reserve ? avail - reserve : 0;
	p->space_at = now;
	return AFS_OK;
}

afs_err vs_partition_space(struct vs_partition *p, struct vs_space *out)
{
	mtx_lock(&p->space_lock);
	afs_err err = space_refresh_locked(p, clk_mono());
	if (!err)
		*out = p->space;
	mtx_unlock(&p->space_lock);
	return err;
}

/* A figure 100 ms old is good enough while there is plenty; what is granted meanwhile is taken off
 * it. */
afs_err vs_space_check(struct vs_partition *p, uint64_t need_kib)
{
	mono_ns now = clk_mono();
	mtx_lock(&p->space_lock);
	afs_err err = AFS_OK;
	if (now - p->space_at > MSEC(100) || p->space.free_kib < need_kib)
		err = space_refresh_locked(p, now);
	if (!err && p->space.free_kib < need_kib)
		err = AFS_EDISKFULL;
	if (!err)
		p->space.free_kib -= need_kib;
	mtx_unlock(&p->space_lock);
	return err;
}
