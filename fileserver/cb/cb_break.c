/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Promising and telling.
 *
 * A break goes to all hosts that must hear of it at once and is waited for in turn, so that it takes
 * as long as the slowest.  A host that does not answer is down from then on: breaks for it are kept,
 * and the next change does not wait for it. */
#include "fileserver/cb/cb_internal.h"

#include "cell/base/log.h"

enum { TARGETS = 64 };

void cb_grant(struct cb *cb, struct cb_client *c, const struct AFSFid *fid, enum cb_kind kind,
	mono_ns now, struct AFSCallBack *out)
{
	struct cb_grant g;
	*out = (struct AFSCallBack){CB_VERSION, 0, CB_DROPPED};
	if (cb_promise(cb->table, fid, &c->host->holder, now, kind, &g) != AFS_OK)
		return; /* the client asks again when it needs to know */
	*out = (struct AFSCallBack){CB_VERSION, g.seconds, CB_SHARED};
	atomic_fetch_add(&cb->count.promises, 1);
	if (!g.evicted)
		return;
	atomic_fetch_add(&cb->count.evicted, 1);
	struct fs_host *host = container_of(g.evicted, struct fs_host, holder);
	mtx_lock(&cb->lock);
	bool queued = cb->evicted_n < CB_QUEUE_EVICTED && !cb->stopping;
	if (queued) {
		cb->evicted[cb->evicted_n++] = (struct cb_evicted){host, g.evicted_fid};
		cond_signal(&cb->work);
	}
	mtx_unlock(&cb->lock);
	if (!queued) /* the housekeeper is behind: whoever fills the table does its work */
		cb_tell(cb, &(struct cb_target){.host = host, .fids = {g.evicted_fid}, .n = 1}, 1);
}

/* Try the other addresses from which the host has called; true when one of them answered. */
static bool told_elsewhere(struct cb *cb, struct cb_target *t)
{
	for (unsigned i = 0; i < CB_ADDRS; i++) {
		mtx_lock(&cb->lock);
		struct host_addr *ha = &t->host->addrs[i];
		struct rx_addr to = ha->addr;
		bool use =
			ha->host && !cb_addr_equal(to, t->to) && !t->host->down && !t->host->gone;
		mtx_unlock(&cb->lock);
		void *call;
		if (!use ||
			cb->wire.break_begin(cb->wire.ctx, to, t->fids, t->n, false, &call) !=
				AFS_OK ||
			cb->wire.break_end(cb->wire.ctx, call) != AFS_OK)
			continue;
		mtx_lock(&cb->lock);
		if (ha->host && cb_addr_equal(ha->addr, to))
			t->host->primary = i;
		mtx_unlock(&cb->lock);
		return true;
	}
	return false;
}

static void delay(struct cb *cb, const struct cb_target *t, bool went_down)
{
	mtx_lock(&cb->lock);
	bool news = went_down && !t->host->down && !t->host->gone;
	if (news)
		t->host->down = true;
	for (size_t i = 0; i < t->n; i++)
		cb_host_delay_locked(cb, t->host, &t->fids[i]);
	mtx_unlock(&cb->lock);
	char a[32];
	if (news)
		log_warn("cb.host.down host=%s fids=%zu", cb_addr_text(t->to, a), t->n);
}

void cb_tell(struct cb *cb, struct cb_target *targets, size_t n)
{
	mtx_lock(&cb->lock);
	for (size_t i = 0; i < n; i++) {
		struct cb_target *t = &targets[i];
		t->call = NULL;
		t->to = t->host->addrs[t->host->primary].addr;
		if (t->host->gone)
			t->n = 0;
	}
	mtx_unlock(&cb->lock);

	for (size_t i = 0; i < n; i++) {
		struct cb_target *t = &targets[i];
		if (!t->n)
			continue;
		mtx_lock(&cb->lock);
		bool down = t->host->down;
		mtx_unlock(&cb->lock);
		if (down || cb->wire.break_begin(
				    cb->wire.ctx, t->to, t->fids, t->n, false, &t->call) != AFS_OK)
			t->call = NULL;
	}
	for (size_t i = 0; i < n; i++) {
		struct cb_target *t = &targets[i];
		bool told = false;
		if (t->n && t->call)
			told = cb->wire.break_end(cb->wire.ctx, t->call) == AFS_OK ||
			       told_elsewhere(cb, t);
		if (told)
			atomic_fetch_add(&cb->count.sent, t->n);
		else if (t->n)
			delay(cb, t, true);
		cb_host_unref(t->host);
	}
}

void cb_break(struct cb *cb, const struct AFSFid *fids, size_t n, struct cb_client *c, mono_ns now)
{
	const struct cb_holder *except = c ? &c->host->holder : NULL;
	struct cb_target targets[TARGETS];
	struct cb_holder *holders[TARGETS];
	size_t used = 0;
	for (size_t f = 0; f < n; f++) {
		for (bool more = true; more;) {
			size_t room = TARGETS - used;
			size_t got = cb_take(cb->table, &fids[f], except, now, holders, room);
			more = got == room;
			for (size_t i = 0; i < got; i++) {
				struct fs_host *h =
					container_of(holders[i], struct fs_host, holder);
				size_t k = 0;
				while (k < used && targets[k].host != h)
					k++;
				if (k == used)
					targets[used++] = (struct cb_target){.host = h};
				else
					cb_host_unref(h);
				struct cb_target *t = &targets[k];
				if (!t->n || !fid_equal(&t->fids[t->n - 1], &fids[f]))
					t->fids[t->n++] = fids[f];
			}
			/* full, or a host with a full batch: send these and go on */
			if (used == TARGETS || (f + 1) % CB_BATCH == 0) {
				cb_tell(cb, targets, used);
				used = 0;
			}
		}
	}
	if (used)
		cb_tell(cb, targets, used);
}

void cb_gone(struct cb *cb, const struct AFSFid *fid) { cb_drop(cb->table, fid); }

void cb_give_up(struct cb *cb, struct cb_client *c, const struct AFSFid *fids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cb_forget(cb->table, &fids[i], &c->host->holder);
}

void cb_give_up_all(struct cb *cb, struct cb_client *c)
{
	cb_forget_all(cb->table, &c->host->holder, false);
}

void cb_break_volume(struct cb *cb, afs_volid volume)
{
	mtx_lock(&cb->lock);
	bool known = false;
	for (uint32_t i = 0; i < cb->volumes_n; i++)
		known = known || cb->volumes[i] == volume;
	if (!known && cb->volumes_n == CB_QUEUE_VOLUMES)
		cb->break_all = true;
	else if (!known)
		cb->volumes[cb->volumes_n++] = volume;
	cond_signal(&cb->work);
	mtx_unlock(&cb->lock);
}
