/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of hosts.  Always: a host in the table has at least one address and is found by each of
 * them and by its UUID; a host that left it (gone) has no promises and gets none. */
#include "fileserver/cb/cb_internal.h"

#include "cell/base/log.h"

bool cb_addr_equal(struct rx_addr a, struct rx_addr b) { return a.ip == b.ip && a.port == b.port; }

static uint64_t hash_addr(const struct map *m, struct rx_addr a)
{
	return map_hash_u64(m, (uint64_t)a.ip << 16 | a.port);
}

static void host_free(struct cb_holder *holder)
{
	struct fs_host *h = container_of(holder, struct fs_host, holder);
	mem_free(h->delayed);
	mem_free(h);
}

struct fs_host *cb_host_ref(struct fs_host *h)
{
	cb_holder_ref(&h->holder);
	return h;
}

void cb_host_unref(struct fs_host *h)
{
	if (h)
		cb_holder_unref(&h->holder);
}

struct fs_host *cb_host_at_locked(struct cb *cb, struct rx_addr a)
{
	uint64_t hash = hash_addr(&cb->by_addr, a);
	for (struct map_node *n = map_first(&cb->by_addr, hash); n; n = map_next(n)) {
		struct host_addr *ha = container_of(n, struct host_addr, node);
		if (cb_addr_equal(ha->addr, a))
			return ha->host;
	}
	return NULL;
}

struct fs_host *cb_host_named_locked(struct cb *cb, const uint8_t *uuid)
{
	uint64_t hash = map_hash_bytes(&cb->by_uuid, uuid, AFS_UUID_BYTES);
	for (struct map_node *n = map_first(&cb->by_uuid, hash); n; n = map_next(n)) {
		struct fs_host *h = container_of(n, struct fs_host, by_uuid);
		if (memcmp(h->uuid, uuid, AFS_UUID_BYTES) == 0)
			return h;
	}
	return NULL;
}

static struct host_addr *find_addr(struct fs_host *h, struct rx_addr a)
{
	for (unsigned i = 0; i < CB_ADDRS; i++)
		if (h->addrs[i].host && cb_addr_equal(h->addrs[i].addr, a))
			return &h->addrs[i];
	return NULL;
}

bool cb_host_has_addr(const struct fs_host *h, struct rx_addr a)
{
	for (unsigned i = 0; i < CB_ADDRS; i++)
		if (h->addrs[i].host && cb_addr_equal(h->addrs[i].addr, a))
			return true;
	return false;
}

bool cb_host_has_any_addr(const struct fs_host *h)
{
	for (unsigned i = 0; i < CB_ADDRS; i++)
		if (h->addrs[i].host)
			return true;
	return false;
}

bool cb_host_add_addr_locked(struct cb *cb, struct fs_host *h, struct rx_addr a)
{
	struct host_addr *ha = find_addr(h, a);
	if (!ha) {
		for (unsigned i = 0; i < CB_ADDRS && !ha; i++)
			if (!h->addrs[i].host)
				ha = &h->addrs[i];
		if (!ha) { /* full: the one after the primary has been there longest */
			ha = &h->addrs[(h->primary + 1) % CB_ADDRS];
			cb_host_drop_addr_locked(cb, h, ha->addr);
		}
		ha->addr = a;
		if (!map_insert(&cb->by_addr, &ha->node, hash_addr(&cb->by_addr, a)))
			return false;
		ha->host = h;
	}
	h->primary = (unsigned)(ha - h->addrs);
	return true;
}

void cb_host_drop_addr_locked(struct cb *cb, struct fs_host *h, struct rx_addr a)
{
	struct host_addr *ha = find_addr(h, a);
	if (!ha)
		return;
	map_remove(&cb->by_addr, &ha->node);
	ha->host = NULL;
	for (unsigned i = 0; i < CB_ADDRS && !h->addrs[h->primary].host; i++)
		h->primary = (h->primary + 1) % CB_ADDRS;
	cb->wire.forget(cb->wire.ctx, a);
}

void cb_host_remove_locked(struct cb *cb, struct fs_host *h)
{
	for (unsigned i = 0; i < CB_ADDRS; i++)
		if (h->addrs[i].host)
			cb_host_drop_addr_locked(cb, h, h->addrs[i].addr);
	if (h->has_uuid)
		map_remove(&cb->by_uuid, &h->by_uuid);
	list_remove(&h->all);
	cb->hosts_n--;
	h->gone = true;
	h->delayed_n = 0;
	cb_forget_all(cb->table, &h->holder, true);
}

/* Room for one more: the host that was silent longest among those that hold no promise. */
static bool make_room_locked(struct cb *cb) REQUIRES(cb->lock)
{
	struct fs_host *oldest = NULL;
	list_each(it, &cb->hosts)
	{
		struct fs_host *h = list_entry(it, struct fs_host, all);
		if (!h->busy && (!oldest || h->heard < oldest->heard) &&
			cb_count_of(cb->table, &h->holder) == 0)
			oldest = h;
	}
	if (!oldest)
		return false;
	cb_host_remove_locked(cb, oldest);
	cb_host_unref(oldest);
	return true;
}

afs_err cb_host_new_locked(struct cb *cb, const struct cb_answer *who, struct rx_addr a,
	mono_ns now, struct fs_host **out)
{
	if (cb->hosts_n >= cb->hosts_max && !make_room_locked(cb)) {
		cb->want_room = true;
		cond_signal(&cb->work);
		return AFS_EVBUSY;
	}
	struct fs_host *h = mem_new(struct fs_host);
	if (!h)
		return AFS_ENOMEM;
	cb_holder_init(&h->holder, host_free);
	h->cb = cb;
	list_init(&h->clients);
	h->has_uuid = who->has_uuid;
	memcpy(h->uuid, who->uuid, sizeof(h->uuid));
	h->heard = now;
	h->reset = true;
	if (h->has_uuid && !map_insert(&cb->by_uuid, &h->by_uuid,
				   map_hash_bytes(&cb->by_uuid, h->uuid, AFS_UUID_BYTES))) {
		cb_host_unref(h);
		return AFS_ENOMEM;
	}
	if (!cb_host_add_addr_locked(cb, h, a)) {
		if (h->has_uuid)
			map_remove(&cb->by_uuid, &h->by_uuid);
		cb_host_unref(h);
		return AFS_ENOMEM;
	}
	list_push_back(&cb->hosts, &h->all);
	cb->hosts_n++;
	atomic_fetch_add(&cb->count.met, 1);
	*out = h;
	return AFS_OK;
}

void cb_host_reset_locked(struct cb *cb, struct fs_host *h)
{
	h->reset = true;
	h->delayed_n = 0;
	cb_forget_all(cb->table, &h->holder, false);
}

void cb_host_delay_locked(struct cb *cb, struct fs_host *h, const struct AFSFid *fid)
{
	if (h->gone || h->reset)
		return; /* it will be told to drop everything */
	for (uint32_t i = 0; i < h->delayed_n; i++)
		if (fid_equal(&h->delayed[i], fid))
			return;
	if (!h->delayed)
		h->delayed = mem_new_array(CB_DELAYED_MAX, struct AFSFid);
	if (!h->delayed || h->delayed_n == CB_DELAYED_MAX) {
		cb_host_reset_locked(cb, h);
		return;
	}
	h->delayed[h->delayed_n++] = *fid;
	atomic_fetch_add(&cb->count.delayed, 1);
}
