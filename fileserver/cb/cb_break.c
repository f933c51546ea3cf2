/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Promising and telling.
 *
 * A break goes to all hosts that must hear of it at once and is waited for in turn, so that it takes
 * as long as the slowest.  Who has not answered after half of the time that a change may be kept
 * waiting (cb_config.break_wait_ns) is tried once more, at all its addresses at once, for the other
 * half; then it is down: breaks for it are kept, and the next change does not wait for it. */
#include "fileserver/cb/cb_internal.h"

#include "cell/base/log.h"

void cb_grant(struct cb *cb, struct cb_client *c, const struct AFSFid *fid, enum cb_kind kind,
	mono_ns now, struct AFSCallBack *out)
{
	struct cb_grant g;
	*out = (struct AFSCallBack){CB_VERSION, 0, CB_DROPPED};
	afs_err err = cb_promise(cb->table, fid, &c->host->holder, now, kind, false, &g);
	if (err == AFS_ENOSPC) { /* somebody must make room, and will be told by the housekeeper */
		mtx_lock(&cb->lock);
		if (cb->evicted_n < CB_QUEUE_EVICTED && !cb->stopping)
			err = cb_promise(cb->table, fid, &c->host->holder, now, kind, true, &g);
		if (err == AFS_OK && g.evicted) {
			struct fs_host *host = container_of(g.evicted, struct fs_host, holder);
			cb->evicted[cb->evicted_n++] = (struct cb_evicted){host, g.evicted_fid};
			atomic_fetch_add(&cb->count.evicted, 1);
			cond_signal(&cb->work);
		}
		mtx_unlock(&cb->lock);
	}
	if (err != AFS_OK) /* the housekeeper is behind: no promise is better than one that nobody
			    * is told of; the client asks again when it needs to know */
		return;
	*out = (struct AFSCallBack){CB_VERSION, g.seconds, CB_SHARED};
	atomic_fetch_add(&cb->count.promises, 1);
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

void cb_grant_all(struct cb *cb, struct cb_client *c, const struct AFSFid *fids, size_t n,
	enum cb_kind kind, mono_ns now, struct AFSCallBack *out)
{
	struct cb_grant g[CB_FIDS_MAX];
	while (n) {
		size_t some = MIN(n, ARRAY_SIZE(g));
		size_t given = cb_promise_all(cb->table, fids, some, &c->host->holder, now, kind, g);
		for (size_t i = 0; i < given; i++)
			out[i] = (struct AFSCallBack){CB_VERSION, g[i].seconds, CB_SHARED};
		atomic_fetch_add(&cb->count.promises, given);
		if (given < some) { /* a full table, or an end: one by one */
			cb_grant(cb, c, &fids[given], kind, now, &out[given]);
			given++;
		}
		fids += given;
		out += given;
		n -= given;
	}
}

/* Begin at one address; NULL: it could not even begin. */
static void *begin(struct cb *cb, struct rx_addr to, const struct cb_target *t)
{
	void *call;
	return cb->wire.break_begin(cb->wire.ctx, to, t->fids, t->n, false, &call) == AFS_OK ? call
											     : NULL;
}

/* Once more to those who did not answer, now at every address from which they have called, all at
 * once.  Sets `told`. */
static void tell_again(struct cb *cb, struct cb_target *targets, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct cb_target *t = &targets[i];
		struct rx_addr to[CB_ADDRS];
		bool use[CB_ADDRS];
		mtx_lock(&cb->lock);
		for (unsigned k = 0; k < CB_ADDRS; k++) {
			const struct host_addr *ha = &t->host->addrs[k];
			use[k] = t->tried && !t->told && ha->host && !t->host->down && !t->host->gone;
			to[k] = ha->addr;
		}
		mtx_unlock(&cb->lock);
		for (unsigned k = 0; k < CB_ADDRS; k++) {
			t->again[k].to = to[k];
			t->again[k].call = use[k] ? begin(cb, to[k], t) : NULL;
		}
	}
	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < CB_ADDRS; k++) {
			struct cb_target *t = &targets[i];
			if (!t->again[k].call ||
				cb->wire.break_end(cb->wire.ctx, t->again[k].call) != AFS_OK)
				continue;
			t->told = true;
			mtx_lock(&cb->lock);
			const struct host_addr *ha = &t->host->addrs[k];
			if (ha->host && cb_addr_equal(ha->addr, t->again[k].to))
				t->host->primary = k;
			mtx_unlock(&cb->lock);
		}
}

void cb_tell(struct cb *cb, struct cb_target *targets, size_t n)
{
	mtx_lock(&cb->lock);
	for (size_t i = 0; i < n; i++) {
		struct cb_target *t = &targets[i];
		t->call = NULL;
		t->told = false;
		t->to = t->host->addrs[t->host->primary].addr;
		if (t->host->gone)
			t->n = 0;
		t->tried = t->n && !t->host->down;
	}
	mtx_unlock(&cb->lock);

	bool all = true;
	for (size_t i = 0; i < n; i++)
		if (targets[i].tried)
			targets[i].call = begin(cb, targets[i].to, &targets[i]);
	for (size_t i = 0; i < n; i++) {
		struct cb_target *t = &targets[i];
		if (t->call)
			t->told = cb->wire.break_end(cb->wire.ctx, t->call) == AFS_OK;
		all = all && (t->told || !t->tried);
	}
	if (!all)
		tell_again(cb, targets, n);
	for (size_t i = 0; i < n; i++) {
		struct cb_target *t = &targets[i];
		if (t->told)
			atomic_fetch_add(&cb->count.sent, t->n);
		else if (t->n)
			delay(cb, t, true);
		cb_host_unref(t->host);
	}
}

/* Hosts that must hear of some fids; grows when there are many. */
struct telling {
	struct cb_target few[8], *v;
	size_t n, cap;
};

static bool grow(struct telling *w)
{
	size_t cap = w->cap * 4;
	struct cb_target *v = mem_new_array(cap, struct cb_target);
	if (!v)
		return false;
	memcpy(v, w->v, w->n * sizeof(*v));
	if (w->v != w->few)
		mem_free(w->v);
	w->v = v;
	w->cap = cap;
	return true;
}

/* Takes the reference. */
static void add(struct cb *cb, struct telling *w, struct fs_host *h, const struct AFSFid *fid)
{
	size_t k = 0;
	while (k < w->n && w->v[k].host != h)
		k++;
	if (k < w->n) {
		cb_host_unref(h);
	} else {
		if (w->n == w->cap && !grow(w)) { /* without memory some wait for the others */
			cb_tell(cb, w->v, w->n);
			w->n = 0;
			k = 0;
		}
		w->v[w->n++] = (struct cb_target){.host = h};
	}
	struct cb_target *t = &w->v[k];
	if (!t->n || !fid_equal(&t->fids[t->n - 1], fid))
		t->fids[t->n++] = *fid;
}

/* All of them at once: together they cost the changer what the slowest costs. */
static void break_some(
	struct cb *cb, const struct AFSFid *fids, size_t n, const struct cb_holder *except, mono_ns now)
{
	struct telling w = {.v = w.few, .cap = ARRAY_SIZE(w.few)};
	struct cb_holder *holders[64];
	for (size_t f = 0; f < n; f++) {
		size_t got;
		do {
			got = cb_take(cb->table, &fids[f], except, now, holders, ARRAY_SIZE(holders));
			for (size_t i = 0; i < got; i++)
				add(cb, &w, container_of(holders[i], struct fs_host, holder), &fids[f]);
		} while (got == ARRAY_SIZE(holders));
	}
	if (w.n)
		cb_tell(cb, w.v, w.n);
	if (w.v != w.few)
		mem_free(w.v);
}

void cb_break(struct cb *cb, const struct AFSFid *fids, size_t n, struct cb_client *c, mono_ns now)
{
	const struct cb_holder *except = c ? &c->host->holder : NULL;
	for (size_t f = 0; f < n; f += CB_BATCH)
		break_some(cb, fids + f, MIN(n - f, (size_t)CB_BATCH), except, now);
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
