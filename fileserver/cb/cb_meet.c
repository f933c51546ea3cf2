/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Meeting a host: who is it, is it one that we know, and what must it hear before it is served.
 *
 * The steps of callback.md §5-6, each between two holds of the lock; whatever was found before a
 * call is looked at again after it.  Connections of one Rx epoch come from one process, so that the
 * question is asked once per epoch and address, not once per connection. */
#include "fileserver/cb/cb_internal.h"

#include <stdio.h>

#include "cell/base/log.h"

enum { MEETINGS_MAX = 4096 }; /* remembered failures included */

bool cb_host_ready(const struct fs_host *h)
{
	return !h->gone && !h->down && !h->reset && h->delayed_n == 0;
}

const char *cb_addr_text(struct rx_addr a, char out[32])
{
	snprintf(out, 32, "%u.%u.%u.%u:%u", a.ip >> 24, a.ip >> 16 & 255, a.ip >> 8 & 255,
		a.ip & 255, a.port);
	return out;
}

/* --- meetings: one worker asks, a few wait, everybody else is sent away ------------------------ */

static struct cb_meeting *find_meeting_locked(struct cb *cb, struct rx_addr a) REQUIRES(cb->lock)
{
	uint64_t h = map_hash_u64(&cb->meetings, (uint64_t)a.ip << 16 | a.port);
	for (struct map_node *n = map_first(&cb->meetings, h); n; n = map_next(n)) {
		struct cb_meeting *m = container_of(n, struct cb_meeting, node);
		if (cb_addr_equal(m->addr, a))
			return m;
	}
	return NULL;
}

static void drop_meeting_locked(struct cb *cb, struct cb_meeting *m) REQUIRES(cb->lock)
{
	map_remove(&cb->meetings, &m->node);
	mem_free(m);
}

/* Failures whose time is over, and all of them when there are too many. */
void cb_meet_trim_locked(struct cb *cb, mono_ns now)
{
	bool full = cb->meetings.count >= MEETINGS_MAX;
	size_t cursor = 0;
	struct map_node *next;
	for (struct map_node *n = map_walk(&cb->meetings, &cursor, NULL); n; n = next) {
		next = map_walk(&cb->meetings, &cursor, n->next);
		struct cb_meeting *m = container_of(n, struct cb_meeting, node);
		if (!m->going && !m->waiting && (full || m->retry <= now))
			drop_meeting_locked(cb, m);
	}
}

/* Start a meeting with `a`; AFS_EVBUSY: enough workers wait already. */
static afs_err begin_meeting_locked(
	struct cb *cb, struct rx_addr a, mono_ns now, struct cb_meeting **out) REQUIRES(cb->lock)
{
	struct cb_meeting *m = find_meeting_locked(cb, a);
	if (m && m->retry > now)
		return m->result;
	if (cb->identifying >= cb->identify_max) {
		atomic_fetch_add(&cb->count.busy, 1);
		return AFS_EVBUSY;
	}
	if (!m) {
		if (cb->meetings.count >= MEETINGS_MAX / 2)
			cb_meet_trim_locked(cb, now);
		m = mem_new(struct cb_meeting);
		if (!m)
			return AFS_ENOMEM;
		m->addr = a;
		if (!map_insert(&cb->meetings, &m->node,
			    map_hash_u64(&cb->meetings, (uint64_t)a.ip << 16 | a.port))) {
			mem_free(m);
			return AFS_ENOMEM;
		}
	}
	m->going = true;
	m->retry = 0;
	cb->identifying++;
	*out = m;
	return AFS_OK;
}

static void end_meeting_locked(struct cb *cb, struct cb_meeting *m, afs_err result, mono_ns now)
	REQUIRES(cb->lock)
{
	m->going = false;
	m->result = result;
	cb->identifying--;
	if (result == AFS_EDEAD)
		m->retry = now + CB_RETRY_NS;
	else if (!m->waiting)
		drop_meeting_locked(cb, m);
	cond_broadcast(&cb->changed);
}

/* Wait while somebody else asks.  AFS_OK: look again. */
static afs_err wait_meeting_locked(struct cb *cb, struct cb_meeting *m, mono_ns until)
	REQUIRES(cb->lock)
{
	if (m->waiting >= CB_MEET_WAIT || cb->identifying >= cb->identify_max) {
		atomic_fetch_add(&cb->count.busy, 1);
		return AFS_EVBUSY;
	}
	m->waiting++;
	cb->identifying++;
	bool in_time = true;
	while (m->going && in_time && !cb->stopping)
		in_time = cond_wait_until(&cb->changed, &cb->lock, until);
	cb->identifying--;
	m->waiting--;
	afs_err err = m->going ? AFS_EVBUSY : m->result;
	if (!m->going && !m->waiting && m->result != AFS_EDEAD)
		drop_meeting_locked(cb, m);
	return err;
}

/* --- what waited for a host -------------------------------------------------------------------- */

/* Tell `h` at `to` what it must hear first.  The host is up afterwards, or AFS_EDEAD. */
static afs_err deliver_locked(struct cb *cb, struct fs_host *h, struct rx_addr to, mono_ns until)
	REQUIRES(cb->lock)
{
	while (h->busy && !h->gone)
		if (!cond_wait_until(&cb->changed, &cb->lock, until))
			return AFS_EVBUSY;
	h->busy = true;
	afs_err err = AFS_OK;
	while (err == AFS_OK && !h->gone && (h->reset || h->delayed_n)) {
		if (h->reset) {
			/* Promises given from here on are kept: the client hears of the reset first. */
			cb_host_reset_locked(cb, h);
			bool has_uuid = h->has_uuid;
			mtx_unlock(&cb->lock);
			err = cb->wire.init(cb->wire.ctx, to, has_uuid ? &cb->uuid : NULL);
			mtx_lock(&cb->lock);
			if (err == AFS_OK) {
				h->reset = false;
				atomic_fetch_add(&cb->count.resets, 1);
			}
			continue;
		}
		struct AFSFid batch[CB_FIDS_MAX];
		uint32_t n = MIN(h->delayed_n, (uint32_t)CB_FIDS_MAX);
		memcpy(batch, h->delayed, n * sizeof(*batch));
		mtx_unlock(&cb->lock);
		void *call;
		err = cb->wire.break_begin(cb->wire.ctx, to, batch, n, true, &call);
		if (err == AFS_OK)
			err = cb->wire.break_end(cb->wire.ctx, call);
		mtx_lock(&cb->lock);
		if (err == AFS_OK) {
			/* more may have come behind these, or a reset have emptied the list */
			n = MIN(n, h->delayed_n);
			h->delayed_n -= n;
			if (h->delayed_n)
				memmove(h->delayed, h->delayed + n, h->delayed_n * sizeof(*batch));
			atomic_fetch_add(&cb->count.sent, n);
		}
	}
	h->busy = false;
	cond_broadcast(&cb->changed);
	if (h->gone)
		return AFS_EVBUSY; /* a moment later it is met afresh */
	if (err != AFS_OK) {
		h->down = true;
		cb_host_reset_locked(cb, h);
		return err == AFS_ENOMEM ? err : AFS_EDEAD;
	}
	h->down = false;
	return AFS_OK;
}

/* --- who is it --------------------------------------------------------------------------------- */

/* A known host calls from an address that it did not have. */
static void moved_locked(struct cb *cb, struct fs_host *h, struct rx_addr to) REQUIRES(cb->lock)
{
	struct rx_addr before = h->addrs[h->primary].addr;
	atomic_fetch_add(&cb->count.moved, 1);
	char a[32], b[32];
	log_info("cb.host.moved from=%s to=%s", cb_addr_text(before, a), cb_addr_text(to, b));
	if (before.ip == to.ip) { /* another port of a NAT, or of the next process */
		cb_host_drop_addr_locked(cb, h, before);
		return;
	}
	uint8_t uuid[AFS_UUID_BYTES];
	memcpy(uuid, h->uuid, sizeof(uuid));
	mtx_unlock(&cb->lock);
	afs_err err = cb->wire.probe(cb->wire.ctx, before, uuid);
	mtx_lock(&cb->lock);
	if (err != AFS_OK && !h->gone)
		cb_host_drop_addr_locked(cb, h, before);
}

/* The host that `who`, asked at `from`, is; in the table, with that address, referenced. */
static afs_err settle_locked(struct cb *cb, const struct cb_answer *who, struct rx_addr from,
	mono_ns now, struct fs_host **out) REQUIRES(cb->lock)
{
	struct fs_host *h = cb_host_at_locked(cb, from);
	if (h && (h->has_uuid != who->has_uuid ||
			 memcmp(h->uuid, who->uuid, sizeof(h->uuid)) != 0)) {
		/* another client lives here now */
		cb_host_drop_addr_locked(cb, h, from);
		if (!cb_host_has_any_addr(h)) {
			cb_host_remove_locked(cb, h);
			cb_host_unref(h);
		}
		h = NULL;
	}
	if (!h && who->has_uuid)
		h = cb_host_named_locked(cb, who->uuid);
	if (h && !cb_host_has_addr(h, from)) {
		cb_host_ref(h);
		moved_locked(cb, h, from);
		if (!h->gone && !cb_host_add_addr_locked(cb, h, from)) {
			if (!cb_host_has_any_addr(h)) {
				cb_host_remove_locked(cb, h);
				cb_host_unref(h);
			}
			cb_host_unref(h);
			return AFS_ENOMEM;
		}
		if (h->gone) {
			cb_host_unref(h);
			return AFS_EVBUSY;
		}
		*out = h;
		return AFS_OK;
	}
	if (!h) {
		TRY(cb_host_new_locked(cb, who, from, now, &h));
		char a[32];
		log_info("cb.host.met host=%s uuid=%s", cb_addr_text(from, a),
			who->has_uuid ? "yes" : "none");
	}
	*out = cb_host_ref(h);
	return AFS_OK;
}

static afs_err meet(
	struct cb *cb, struct rx_addr from, uint32_t epoch, mono_ns now, struct fs_host **out)
{
	struct cb_answer who = {0};
	afs_err err = cb->wire.who(cb->wire.ctx, from, &who);
	mtx_lock(&cb->lock);
	struct fs_host *h = NULL;
	if (err != AFS_OK) {
		h = cb_host_at_locked(cb, from);
		if (h)
			h->down = true;
		else
			cb->wire.forget(cb->wire.ctx, from);
		mtx_unlock(&cb->lock);
		atomic_fetch_add(&cb->count.refused, 1);
		char a[32];
		log_info("cb.host.silent host=%s err=%s", cb_addr_text(from, a), afs_err_name(err));
		return err == AFS_ENOMEM ? err : AFS_EDEAD;
	}
	err = settle_locked(cb, &who, from, now, &h);
	if (err == AFS_OK) {
		h->caps = who.caps;
		h->heard = now;
		err = deliver_locked(cb, h, from, clk_mono() + 2 * CB_HARD_NS);
		if (err == AFS_OK)
			h->epoch = epoch;
	}
	mtx_unlock(&cb->lock);
	if (err != AFS_OK) {
		atomic_fetch_add(&cb->count.refused, 1);
		cb_host_unref(h);
		return err;
	}
	*out = h;
	return AFS_OK;
}

afs_err cb_meet(struct cb *cb, struct rx_addr from, struct rpc_port *via, uint32_t epoch,
	mono_ns now, struct fs_host **out)
{
	mono_ns until = clk_mono() + 3 * CB_HARD_NS;
	mtx_lock(&cb->lock);
	for (;;) {
		struct fs_host *h = cb_host_at_locked(cb, from);
		if (h && h->epoch == epoch && epoch && cb_host_ready(h)) {
			h->heard = now;
			*out = cb_host_ref(h);
			mtx_unlock(&cb->lock);
			return AFS_OK;
		}
		struct cb_meeting *m = find_meeting_locked(cb, from);
		afs_err err;
		if (cb->stopping) {
			err = AFS_ERESTARTING;
		} else if (m && m->going) {
			err = wait_meeting_locked(cb, m, until);
			if (err == AFS_OK)
				continue;
		} else {
			err = begin_meeting_locked(cb, from, now, &m);
			if (err == AFS_OK) {
				mtx_unlock(&cb->lock);
				cb->wire.via(cb->wire.ctx, from, via);
				err = meet(cb, from, epoch, now, out);
				mtx_lock(&cb->lock);
				end_meeting_locked(cb, m, err, clk_mono());
			}
		}
		mtx_unlock(&cb->lock);
		return err;
	}
}
