/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Three ways to a promise: by its fid (to break it), by its holder (to forget a host) and by the
 * 128-second slot in which it expires (to find the first to go).  Always: a promise is in all three
 * or in none; an entry exists while it has a promise; both come from arrays made once. */
#include "fileserver/cb/cb_table.h"

#include "cell/base/map.h"
#include "cell/base/mtx.h"

/* The server keeps a promise three minutes longer than it says, and rounds up to its slots. */
#define SLOT_NS SEC(128)
#define GRACE_NS SEC(180)
enum { SLOTS = 256 }; /* 9 hours: more than the longest life */

struct entry {
	struct map_node node;
	struct AFSFid fid;
	struct list promises;
	uint32_t count;
};
struct promise {
	struct list by_fid, by_holder, by_time;
	struct entry *entry;
	struct cb_holder *holder;
	mono_ns expires;
};

struct cb_table {
	struct mtx lock;
	struct map by_fid;
	struct promise *promises;
	struct entry *entries;
	uint32_t max, count;
	uint32_t promises_used, entries_used; /* array elements that were ever in use */
	struct list free_promises, free_entries;
	struct list slots[SLOTS];
	int64_t first_slot; /* no promise expires in an earlier one */
};

void cb_holder_init(struct cb_holder *h, void (*free_fn)(struct cb_holder *h))
{
	*h = (struct cb_holder){.free = free_fn};
	atomic_init(&h->refs, 1);
	list_init(&h->promises);
}

struct cb_holder *cb_holder_ref(struct cb_holder *h)
{
	atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
	return h;
}

void cb_holder_unref(struct cb_holder *h)
{
	if (h && atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1)
		h->free(h);
}

struct cb_table *cb_table_new(uint32_t promises_max)
{
	struct cb_table *t = mem_new(struct cb_table);
	if (!t)
		return NULL;
	mtx_init(&t->lock, RANK_CB);
	map_init(&t->by_fid);
	list_init(&t->free_promises);
	list_init(&t->free_entries);
	for (size_t i = 0; i < SLOTS; i++)
		list_init(&t->slots[i]);
	t->max = promises_max ? promises_max : 1;
	t->promises = mem_new_array(t->max, struct promise);
	t->entries = mem_new_array(t->max, struct entry);
	if (!t->promises || !t->entries) {
		cb_table_free(t);
		return NULL;
	}
	return t;
}

void cb_table_free(struct cb_table *t)
{
	if (!t)
		return;
	map_fini(&t->by_fid);
	mtx_fini(&t->lock);
	mem_free(t->promises);
	mem_free(t->entries);
	mem_free(t);
}

static uint64_t hash_fid(const struct cb_table *t, const struct AFSFid *fid)
{
	uint64_t key[2] = {fid->Volume, (uint64_t)fid->Vnode << 32 | fid->Unique};
	return map_hash_bytes(&t->by_fid, key, sizeof(key));
}

static struct entry *find_entry_locked(struct cb_table *t, const struct AFSFid *fid)
{
	uint64_t h = hash_fid(t, fid);
	for (struct map_node *n = map_first(&t->by_fid, h); n; n = map_next(n)) {
		struct entry *e = container_of(n, struct entry, node);
		if (fid_equal(&e->fid, fid))
			return e;
	}
	return NULL;
}

static struct entry *make_entry_locked(struct cb_table *t, const struct AFSFid *fid)
{
	struct list *l = list_pop_front(&t->free_entries);
	struct entry *e = l ? list_entry(l, struct entry, promises) : NULL;
	if (!e && t->entries_used < t->max)
		e = &t->entries[t->entries_used++];
	if (!e)
		return NULL;
	*e = (struct entry){.fid = *fid};
	list_init(&e->promises);
	if (!map_insert(&t->by_fid, &e->node, hash_fid(t, fid))) {
		list_push_front(&t->free_entries, &e->promises);
		return NULL;
	}
	return e;
}

static void free_entry_locked(struct cb_table *t, struct entry *e)
{
	map_remove(&t->by_fid, &e->node);
	list_push_front(&t->free_entries, &e->promises);
}

static void free_promise_locked(struct cb_table *t, struct promise *p)
{
	struct entry *e = p->entry;
	list_remove(&p->by_fid);
	list_remove(&p->by_holder);
	list_remove(&p->by_time);
	p->holder->count--;
	t->count--;
	if (--e->count == 0)
		free_entry_locked(t, e);
	list_push_front(&t->free_promises, &p->by_fid);
}

static struct promise *make_promise_locked(struct cb_table *t, struct entry *e, struct cb_holder *h)
{
	struct list *l = list_pop_front(&t->free_promises);
	struct promise *p = l ? list_entry(l, struct promise, by_fid) : NULL;
	if (!p && t->promises_used < t->max)
		p = &t->promises[t->promises_used++];
	if (!p)
		return NULL;
	*p = (struct promise){.entry = e, .holder = h};
	list_push_back(&e->promises, &p->by_fid);
	list_push_back(&h->promises, &p->by_holder);
	list_init(&p->by_time);
	e->count++;
	h->count++;
	t->count++;
	return p;
}

static void expire_locked(struct cb_table *t, mono_ns now)
{
	int64_t now_slot = now / SLOT_NS;
	for (int64_t s = t->first_slot; s < now_slot && s < t->first_slot + SLOTS; s++)
		list_each(it, &t->slots[s % SLOTS])
		{
			struct promise *p = list_entry(it, struct promise, by_time);
			if (p->expires <= now)
				free_promise_locked(t, p);
		}
	if (now_slot > t->first_slot)
		t->first_slot = now_slot;
}

static struct promise *first_to_expire_locked(struct cb_table *t)
{
	for (int64_t s = t->first_slot; s < t->first_slot + SLOTS; s++) {
		struct list *l = list_first(&t->slots[s % SLOTS]);
		if (l)
			return list_entry(l, struct promise, by_time);
	}
	return NULL;
}

/* callback.md §3: the more hold an object, the shorter, for breaks cost the changer time. */
static int64_t life_ns(enum cb_kind kind, uint32_t holders)
{
	if (kind == CB_KIND_VOLUME)
		return SEC(2 * 3600);
	if (kind == CB_KIND_BULK)
		holders += 22;
	static const int minutes[] = {240, 60, 30, 15, 15, 10, 10, 10};
	return SEC(60 * (holders / 8 < ARRAY_SIZE(minutes) ? minutes[holders / 8] : 7));
}

static void take_locked(
	struct cb_table *t, struct promise *p, mono_ns now, struct cb_holder **out, size_t *n)
{
	if (p->expires > now)
		out[(*n)++] = cb_holder_ref(p->holder);
	free_promise_locked(t, p);
}

static afs_err promise_locked(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h,
	mono_ns now, enum cb_kind kind, struct cb_grant *out)
{
	if (h->closed)
		return AFS_EAGAIN;
	expire_locked(t, now);

	struct entry *e = find_entry_locked(t, fid);
	struct promise *mine = NULL;
	if (e)
		list_each(it, &e->promises)
		{
			struct promise *p = list_entry(it, struct promise, by_fid);
			if (p->holder == h)
				mine = p;
		}
	struct cb_grant grant = {0};
	int64_t life = life_ns(kind, e ? e->count - (mine ? 1 : 0) : 0);
	if (!mine && t->count == t->max) {
		struct promise *victim = first_to_expire_locked(t);
		grant.evicted = cb_holder_ref(victim->holder);
		grant.evicted_fid = victim->entry->fid;
		free_promise_locked(t, victim);
		e = find_entry_locked(t, fid); /* the victim may have been its last */
	}
	if (!e)
		e = make_entry_locked(t, fid);
	if (!mine && e)
		mine = make_promise_locked(t, e, h);
	if (!mine) {               /* only when the map cannot grow from nothing */
		if (grant.evicted) /* its host's own reference stays: it was not closed */
			cb_holder_unref(grant.evicted);
		return AFS_ENOMEM;
	}
	mono_ns end = (now + life + SLOT_NS - 1) / SLOT_NS * SLOT_NS;
	grant.seconds = (uint32_t)((end - now) / NS_PER_SEC);
	mine->expires = end + GRACE_NS;
	list_remove(&mine->by_time);
	list_push_back(&t->slots[mine->expires / SLOT_NS % SLOTS], &mine->by_time);
	*out = grant;
	return AFS_OK;
}

afs_err cb_promise(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h, mono_ns now,
	enum cb_kind kind, struct cb_grant *out)
{
	struct AFSFid key = *fid;
	if (kind == CB_KIND_VOLUME)
		key.Vnode = key.Unique = 0;
	mtx_lock(&t->lock);
	afs_err err = promise_locked(t, &key, h, now, kind, out);
	mtx_unlock(&t->lock);
	return err;
}

size_t cb_take(struct cb_table *t, const struct AFSFid *fid, const struct cb_holder *except,
	mono_ns now, struct cb_holder **out, size_t cap)
{
	size_t n = 0;
	mtx_lock(&t->lock);
	struct entry *e = find_entry_locked(t, fid);
	if (e)
		list_each(it, &e->promises)
		{ /* entries are never given back: `e` may go meanwhile */
			struct promise *p = list_entry(it, struct promise, by_fid);
			if (n == cap)
				break;
			if (p->holder != except)
				take_locked(t, p, now, out, &n);
		}
	mtx_unlock(&t->lock);
	return n;
}

size_t cb_take_volume(
	struct cb_table *t, afs_volid volume, mono_ns now, struct cb_holder **out, size_t cap)
{
	size_t n = 0;
	mtx_lock(&t->lock);
	for (uint32_t i = 0; i < t->promises_used && n < cap; i++) {
		struct promise *p = &t->promises[i];
		if (!list_linked(&p->by_holder) || p->entry->fid.Volume != volume)
			continue;
		size_t before = n;
		take_locked(t, p, now, out, &n);
		for (size_t k = 0; n > before && k < before; k++)
			if (out[k] == out[before]) {
				n = before;
				/* out[k] holds a reference: this is not the last */
				atomic_fetch_sub_explicit(&out[k]->refs, 1, memory_order_relaxed);
				break;
			}
	}
	mtx_unlock(&t->lock);
	return n;
}

void cb_drop(struct cb_table *t, const struct AFSFid *fid)
{
	mtx_lock(&t->lock);
	struct entry *e = find_entry_locked(t, fid);
	if (e)
		list_each(it, &e->promises)
			free_promise_locked(t, list_entry(it, struct promise, by_fid));
	mtx_unlock(&t->lock);
}

void cb_forget(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h)
{
	mtx_lock(&t->lock);
	struct entry *e = find_entry_locked(t, fid);
	if (e)
		list_each(it, &e->promises)
		{
			struct promise *p = list_entry(it, struct promise, by_fid);
			if (p->holder == h) {
				free_promise_locked(t, p);
				break;
			}
		}
	mtx_unlock(&t->lock);
}

void cb_forget_all(struct cb_table *t, struct cb_holder *h, bool close)
{
	mtx_lock(&t->lock);
	for (struct list *l = list_first(&h->promises); l; l = list_first(&h->promises))
		free_promise_locked(t, list_entry(l, struct promise, by_holder));
	if (close)
		h->closed = true;
	mtx_unlock(&t->lock);
}

uint32_t cb_expire(struct cb_table *t, mono_ns now)
{
	mtx_lock(&t->lock);
	expire_locked(t, now);
	uint32_t n = t->count;
	mtx_unlock(&t->lock);
	return n;
}

uint32_t cb_count_of(struct cb_table *t, const struct cb_holder *h)
{
	mtx_lock(&t->lock);
	uint32_t n = h->count;
	mtx_unlock(&t->lock);
	return n;
}

uint32_t cb_count_on(struct cb_table *t, const struct AFSFid *fid)
{
	mtx_lock(&t->lock);
	struct entry *e = find_entry_locked(t, fid);
	uint32_t n = e ? e->count : 0;
	mtx_unlock(&t->lock);
	return n;
}

uint32_t cb_count(struct cb_table *t)
{
	mtx_lock(&t->lock);
	uint32_t n = t->count;
	mtx_unlock(&t->lock);
	return n;
}
