/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Making and ending the callback side, and its housekeeper: the one who tells of whole volumes and
 * of promises that had to make room, at once; and who looks after hosts, once a minute. */
#include "fileserver/cb/cb_internal.h"

#include "cell/base/log.h"

#define ROUND_NS SEC(60)
#define PROBE_AFTER_NS SEC(15 * 60)
#define FORGET_AFTER_NS SEC(2 * 3600)

afs_err cb_new(const struct cb_config *config, struct cb **out)
{
	struct cb *cb = mem_new(struct cb);
	if (!cb) {
		config->wire.free(config->wire.ctx);
		return AFS_ENOMEM;
	}
	cb->people = config->people;
	cb->wire = config->wire;
	cb->uuid = config->uuid;
	cb->hosts_max = config->hosts_max ? config->hosts_max : 4096;
	cb->identify_max = config->identify_max ? config->identify_max : 16;
	mtx_init(&cb->lock, RANK_FS_HOST);
	cond_init(&cb->changed);
	cond_init(&cb->work);
	map_init(&cb->by_uuid);
	map_init(&cb->by_addr);
	map_init(&cb->meetings);
	list_init(&cb->hosts);
	cb->table = cb_table_new(config->promises_max ? config->promises_max : 1 << 20);
	if (!cb->table) {
		cb_free(cb);
		return AFS_ENOMEM;
	}
	cb_table_set_life(cb->table, MIN(config->promise_life_s, (uint32_t)CB_LIFE_MAX_S));
	*out = cb;
	return AFS_OK;
}

void cb_free(struct cb *cb)
{
	if (!cb)
		return;
	for (uint32_t i = 0; i < cb->evicted_n; i++)
		cb_host_unref(cb->evicted[i].host);
	mtx_lock(&cb->lock);
	for (struct list *l = list_first(&cb->hosts); l; l = list_first(&cb->hosts)) {
		struct fs_host *h = list_entry(l, struct fs_host, all);
		cb_host_remove_locked(cb, h);
		cb_host_unref(h);
	}
	size_t cursor = 0;
	struct map_node *next;
	for (struct map_node *n = map_walk(&cb->meetings, &cursor, NULL); n; n = next) {
		next = map_walk(&cb->meetings, &cursor, n->next);
		mem_free(container_of(n, struct cb_meeting, node));
	}
	mtx_unlock(&cb->lock);
	cb_table_free(cb->table);
	cb->wire.free(cb->wire.ctx);
	map_fini(&cb->by_uuid);
	map_fini(&cb->by_addr);
	map_fini(&cb->meetings);
	cond_fini(&cb->changed);
	cond_fini(&cb->work);
	mtx_fini(&cb->lock);
	mem_free(cb);
}

static bool queued_locked(struct cb *cb) REQUIRES(cb->lock)
{
	return cb->volumes_n || cb->evicted_n || cb->break_all || cb->want_room;
}

static void tell_volume(struct cb *cb, afs_volid volume, mono_ns now)
{
	uint32_t cursor = 0;
	bool more;
	do {
		struct cb_holder *holders[64];
		struct cb_target targets[64];
		size_t n;
		more = cb_take_volume(
			cb->table, volume, now, &cursor, holders, ARRAY_SIZE(holders), &n);
		for (size_t i = 0; i < n; i++)
			targets[i] = (struct cb_target){
				.host = container_of(holders[i], struct fs_host, holder),
				.fids = {{volume, 0, 0}},
				.n = 1};
		cb_tell(cb, targets, n);
	} while (more);
}

/* A host must drop everything: now, or before it is served again. */
static void reset_host(struct cb *cb, struct fs_host *h)
{
	mtx_lock(&cb->lock);
	cb_host_reset_locked(cb, h);
	struct rx_addr to = h->addrs[h->primary].addr;
	bool ask = !h->gone && !h->down && !h->busy;
	bool has_uuid = h->has_uuid;
	if (ask)
		h->busy = true;
	mtx_unlock(&cb->lock);
	if (!ask)
		return;
	afs_err err = cb->wire.init(cb->wire.ctx, to, has_uuid ? &cb->uuid : NULL);
	mtx_lock(&cb->lock);
	h->busy = false;
	if (err == AFS_OK) {
		h->reset = false;
		atomic_fetch_add(&cb->count.resets, 1);
	} else {
		h->down = true;
	}
	cond_broadcast(&cb->changed);
	mtx_unlock(&cb->lock);
}

/* Every host, referenced; the caller frees *out and the references. */
static size_t all_hosts(struct cb *cb, struct fs_host ***out)
{
	mtx_lock(&cb->lock);
	size_t n = 0;
	struct fs_host **v = mem_new_array(cb->hosts_n, struct fs_host *);
	if (v)
		list_each(it, &cb->hosts) v[n++] = cb_host_ref(list_entry(it, struct fs_host, all));
	mtx_unlock(&cb->lock);
	*out = v;
	return n;
}

static void reset_everybody(struct cb *cb)
{
	CLEANUP(heap) struct fs_host **v = NULL;
	size_t n = all_hosts(cb, &v);
	if (!v) {
		/* without memory they are told before their next call is served */
		mtx_lock(&cb->lock);
		list_each(it, &cb->hosts)
			cb_host_reset_locked(cb, list_entry(it, struct fs_host, all));
		mtx_unlock(&cb->lock);
	}
	for (size_t i = 0; i < n; i++) {
		reset_host(cb, v[i]);
		cb_host_unref(v[i]);
	}
}

/* The table of hosts is full and all of them hold promises: the one silent longest lets go. */
static void make_room(struct cb *cb)
{
	mtx_lock(&cb->lock);
	struct fs_host *oldest = NULL;
	list_each(it, &cb->hosts)
	{
		struct fs_host *h = list_entry(it, struct fs_host, all);
		if (!h->busy && (!oldest || h->heard < oldest->heard))
			oldest = h;
	}
	if (oldest)
		cb_host_ref(oldest);
	mtx_unlock(&cb->lock);
	if (oldest)
		reset_host(
			cb, oldest); /* then it holds none, and the next newcomer takes its place */
	cb_host_unref(oldest);
}

static void do_queued(struct cb *cb, mono_ns now)
{
	mtx_lock(&cb->lock);
	while (queued_locked(cb)) {
		if (cb->break_all) {
			cb->break_all = false;
			cb->volumes_n = 0;
			mtx_unlock(&cb->lock);
			reset_everybody(cb);
		} else if (cb->volumes_n) {
			afs_volid volume = cb->volumes[--cb->volumes_n];
			mtx_unlock(&cb->lock);
			tell_volume(cb, volume, now);
		} else if (cb->want_room) {
			cb->want_room = false;
			mtx_unlock(&cb->lock);
			make_room(cb);
		} else {
			struct cb_target targets[16];
			size_t n = 0;
			while (cb->evicted_n) {
				struct cb_evicted e = cb->evicted[cb->evicted_n - 1];
				size_t k = 0;
				while (k < n && (targets[k].host != e.host ||
							targets[k].n == CB_BATCH))
					k++;
				if (k == ARRAY_SIZE(targets))
					break;
				cb->evicted_n--;
				if (k == n)
					targets[n++] = (struct cb_target){.host = e.host};
				else
					cb_host_unref(e.host); /* the target has one */
				targets[k].fids[targets[k].n++] = e.fid;
			}
			mtx_unlock(&cb->lock);
			cb_tell(cb, targets, n);
		}
		mtx_lock(&cb->lock);
	}
	mtx_unlock(&cb->lock);
}

static void look_after(struct cb *cb, struct fs_host *h, mono_ns now)
{
	mtx_lock(&cb->lock);
	int64_t idle = now - h->heard;
	uint32_t promises = cb_count_of(cb->table, &h->holder);
	struct rx_addr to = h->addrs[h->primary].addr;
	bool live = !h->gone && !h->busy, down = h->down, has_uuid = h->has_uuid;
	mtx_unlock(&cb->lock);
	if (!live)
		return;
	if (idle >= FORGET_AFTER_NS) {
		if (promises && !down)
			reset_host(cb, h);
		mtx_lock(&cb->lock);
		bool forget = !h->gone && !h->busy && now - h->heard >= FORGET_AFTER_NS;
		if (forget)
			cb_host_remove_locked(cb, h);
		mtx_unlock(&cb->lock);
		if (forget)
			cb_host_unref(h); /* the table's reference; the caller has its own */
	} else if (idle >= PROBE_AFTER_NS && promises && !down) {
		afs_err err = cb->wire.probe(cb->wire.ctx, to, has_uuid ? h->uuid : NULL);
		if (err == AFS_OK)
			return;
		mtx_lock(&cb->lock);
		if (cb_host_has_addr(h, to) && now - h->heard >= PROBE_AFTER_NS)
			h->down = true;
		mtx_unlock(&cb->lock);
	}
}

void cb_housekeep(struct cb *cb, mono_ns now)
{
	do_queued(cb, now);
	cb_expire(cb->table, now);
	CLEANUP(heap) struct fs_host **v = NULL;
	size_t n = all_hosts(cb, &v); /* none when memory is short: the next round does it */
	for (size_t i = 0; i < n; i++) {
		look_after(cb, v[i], now);
		cb_host_unref(v[i]);
		do_queued(cb, now); /* these do not wait for a silent host */
	}
	mtx_lock(&cb->lock);
	cb_meet_trim_locked(cb, now);
	mtx_unlock(&cb->lock);
}

void cb_keep(struct cb *cb)
{
	mono_ns next = clk_mono() + ROUND_NS;
	for (;;) {
		mtx_lock(&cb->lock);
		bool in_time = true;
		while (!cb->stopping && !queued_locked(cb) && in_time)
			in_time = cond_wait_until(&cb->work, &cb->lock, next);
		bool stop = cb->stopping;
		mtx_unlock(&cb->lock);
		if (stop)
			return;
		mono_ns now = clk_mono();
		do_queued(cb, now);
		if (now >= next) {
			cb_housekeep(cb, now);
			next = clk_mono() + ROUND_NS;
		}
	}
}

void cb_stop(struct cb *cb)
{
	mtx_lock(&cb->lock);
	cb->stopping = true;
	cond_broadcast(&cb->work);
	cond_broadcast(&cb->changed);
	mtx_unlock(&cb->lock);
}

void cb_stats(struct cb *cb, struct fileserver_stats *out)
{
	out->promises_given = atomic_load(&cb->count.promises);
	struct cb_table_stats table;
	cb_table_stats(cb->table, &table);
	out->promises_now = table.now;
	out->promised_now = table.fids;
	out->promises_max = table.max;
	out->promises_expired = table.expired;
	out->promises_given_back = table.given_back;
	out->promises_dropped = table.dropped;
	out->promises_evicted = atomic_load(&cb->count.evicted);
	out->breaks_sent = atomic_load(&cb->count.sent);
	out->breaks_delayed = atomic_load(&cb->count.delayed);
	out->hosts_new = atomic_load(&cb->count.met);
	out->hosts_refused = atomic_load(&cb->count.refused);
	out->hosts_busy = atomic_load(&cb->count.busy);
	out->hosts_moved = atomic_load(&cb->count.moved);
	out->resets_sent = atomic_load(&cb->count.resets);
	mtx_lock(&cb->lock);
	out->hosts_now = cb->hosts_n;
	out->clients_now = cb->clients_n;
	out->hosts_down = 0;
	list_each(it, &cb->hosts) out->hosts_down += list_entry(it, struct fs_host, all)->down;
	mtx_unlock(&cb->lock);
}

size_t cb_hosts(struct cb *cb, mono_ns now, struct fileserver_host *out, size_t n)
{
	size_t i = 0;
	mtx_lock(&cb->lock);
	list_each(it, &cb->hosts)
	{
		struct fs_host *h = list_entry(it, struct fs_host, all);
		if (i == n)
			break;
		out[i] = (struct fileserver_host){
			.addr = h->addrs[h->primary].addr,
			.promises = cb_count_of(cb->table, &h->holder),
			.delayed = h->delayed_n,
			.down = h->down,
			.idle_ns = now - h->heard,
		};
		if (h->has_uuid)
			out[i].uuid = afs_uuid_from_bytes(h->uuid);
		i++;
	}
	size_t all = cb->hosts_n;
	mtx_unlock(&cb->lock);
	return all;
}
