/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Four ways to a promise: by its fid (to break it), by its holder (to forget a host), by both (to
 * find whether it is there) and by the 128-second slot in which it expires.  Always: a promise is in
 * all four or in none; an entry exists while it has a promise.
 *
 * Millions of promises are the normal case of a large server, so that records name each other by
 * number, 44 bytes a promise, in arrays made once: pages of them cost memory when they are first
 * used.  Number 0 is nobody. */
#include "fileserver/cb/cb_table.h"

#include "cell/base/map.h"
#include "cell/base/mtx.h"

/* The server keeps a promise three minutes longer than it says, and rounds up to its slots. */
#define SLOT_NS SEC(128)
#define GRACE_NS SEC(180)
enum {
	SLOTS = 1024,       /* 36 hours: more than the longest life */
	LOOK_AT_MOST = 65536, /* entries looked at under the lock at once */
	CLASSIC_MINUTES = 240,
	FEW = 4, /* holders of one object that are looked through */
};

typedef uint32_t num;
struct link {
	num next, prev; /* 0: an end */
};
struct ends {
	num first, last;
};
enum by { BY_FID, BY_HOLDER, BY_TIME, WAYS };

struct promise {
	struct link by[WAYS];
	num entry, holder;
	num next_same_hash; /* of (entry, holder); of the free list when free */
	uint32_t slot;      /* when it ends, in slots */
};
struct entry {
	struct AFSFid fid;
	struct ends promises;
	uint32_t count;
	num next_same_hash; /* of the fid; of the free list when free */
};
struct holder_at {
	struct cb_holder *holder;
	struct ends promises;
};

struct cb_table {
	struct mtx lock;
	struct map seeds; /* for its hash alone */
	struct promise *promises; /* [1..max] */
	struct entry *entries;    /* [1..max] */
	num *pair_buckets, *fid_buckets;
	uint32_t pair_mask, fid_mask, buckets_max; /* they grow with what is promised: few are near at hand */
	uint32_t max, count, entries_count;
	num promises_used, entries_used; /* the highest that was ever in use */
	num free_promise, free_entry;
	struct holder_at *holders; /* [1..holders_n] */
	num holders_n, holders_cap, free_holder_hint, holders_with;
	num fattest;
	unsigned evictions;
	uint32_t life_s; /* 0: the classic 4 hours */
	struct ends slots[SLOTS];
	int64_t first_slot; /* no promise expires in an earlier one */
	struct cb_table_stats stats;
};

void cb_holder_init(struct cb_holder *h, void (*free_fn)(struct cb_holder *h))
{
	*h = (struct cb_holder){.free = free_fn};
	atomic_init(&h->refs, 1);
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
	map_init(&t->seeds);
	t->max = promises_max ? MIN(promises_max, UINT32_C(1) << 28) : 1;
	t->buckets_max = 16;
	while (t->buckets_max <= t->max / 2)
		t->buckets_max *= 2;
	uint32_t buckets = MAX(t->buckets_max / 16, UINT32_C(16));
	t->pair_mask = t->fid_mask = buckets - 1;
	t->promises = mem_new_array((size_t)t->max + 1, struct promise);
	t->entries = mem_new_array((size_t)t->max + 1, struct entry);
	t->pair_buckets = mem_new_array(buckets, num);
	t->fid_buckets = mem_new_array(buckets, num);
	if (!t->promises || !t->entries || !t->pair_buckets || !t->fid_buckets) {
		cb_table_free(t);
		return NULL;
	}
	t->stats.max = t->max;
	return t;
}

void cb_table_free(struct cb_table *t)
{
	if (!t)
		return;
	map_fini(&t->seeds);
	mtx_fini(&t->lock);
	mem_free(t->promises);
	mem_free(t->entries);
	mem_free(t->pair_buckets);
	mem_free(t->fid_buckets);
	mem_free(t->holders);
	mem_free(t);
}

void cb_table_set_life(struct cb_table *t, uint32_t seconds)
{
	mtx_lock(&t->lock);
	t->life_s = seconds;
	mtx_unlock(&t->lock);
}

/* --- lists of numbers -------------------------------------------------------------------------- */

static void push_back(struct cb_table *t, struct ends *ends, enum by way, num p)
{
	t->promises[p].by[way] = (struct link){.prev = ends->last};
	if (ends->last)
		t->promises[ends->last].by[way].next = p;
	else
		ends->first = p;
	ends->last = p;
}

static void take_out(struct cb_table *t, struct ends *ends, enum by way, num p)
{
	struct link l = t->promises[p].by[way];
	if (l.prev)
		t->promises[l.prev].by[way].next = l.next;
	else
		ends->first = l.next;
	if (l.next)
		t->promises[l.next].by[way].prev = l.prev;
	else
		ends->last = l.prev;
}

/* --- entries: fids that somebody was promised -------------------------------------------------- */

static num *fid_bucket(struct cb_table *t, const struct AFSFid *fid)
{
	uint64_t key[2] = {fid->Volume, (uint64_t)fid->Vnode << 32 | fid->Unique};
	return &t->fid_buckets[map_hash_bytes(&t->seeds, key, sizeof(key)) & t->fid_mask];
}

static num find_entry_locked(struct cb_table *t, const struct AFSFid *fid)
{
	num e = *fid_bucket(t, fid);
	while (e && !fid_equal(&t->entries[e].fid, fid))
		e = t->entries[e].next_same_hash;
	return e;
}

/* There are as many entries as promises, and a promise is about to be made: there is one. */
static num make_entry_locked(struct cb_table *t, const struct AFSFid *fid)
{
	num e = t->free_entry;
	if (e)
		t->free_entry = t->entries[e].next_same_hash;
	else
		e = ++t->entries_used;
	num *bucket = fid_bucket(t, fid);
	t->entries[e] = (struct entry){.fid = *fid, .next_same_hash = *bucket};
	*bucket = e;
	t->entries_count++;
	return e;
}

static void free_entry_locked(struct cb_table *t, num e)
{
	num *at = fid_bucket(t, &t->entries[e].fid);
	while (*at != e)
		at = &t->entries[*at].next_same_hash;
	*at = t->entries[e].next_same_hash;
	t->entries[e] = (struct entry){.next_same_hash = t->free_entry};
	t->free_entry = e;
	t->entries_count--;
}

/* --- holders ----------------------------------------------------------------------------------- */

/* The holder's number; 0: no memory for one more. */
static num holder_number_locked(struct cb_table *t, struct cb_holder *h)
{
	if (h->number)
		return h->number;
	num n = 0;
	for (num i = t->free_holder_hint; i && i <= t->holders_n && !n; i++)
		if (!t->holders[i].holder)
			n = i;
	t->free_holder_hint = n;
	if (!n) {
		if (t->holders_n + 1 >= t->holders_cap) {
			num cap = t->holders_cap ? t->holders_cap * 2 : 64;
			struct holder_at *more =
				mem_resize(t->holders, t->holders_cap, cap, sizeof(*more));
			if (!more)
				return 0;
			t->holders = more;
			t->holders_cap = cap;
		}
		n = ++t->holders_n;
	}
	t->holders[n] = (struct holder_at){.holder = h};
	h->number = n;
	return n;
}

static void forget_holder_locked(struct cb_table *t, struct cb_holder *h)
{
	if (!h->number)
		return;
	t->holders[h->number] = (struct holder_at){0};
	if (!t->free_holder_hint || h->number < t->free_holder_hint)
		t->free_holder_hint = h->number;
	h->number = 0;
}

/* --- promises ---------------------------------------------------------------------------------- */

static void widen_pairs_locked(struct cb_table *t);
static void widen_fids_locked(struct cb_table *t);

static num *pair_bucket(struct cb_table *t, num entry, num holder)
{
	return &t->pair_buckets[map_hash_u64(&t->seeds, (uint64_t)entry << 32 | holder) &
				t->pair_mask];
}

static num find_promise_locked(struct cb_table *t, num entry, num holder)
{
	if (!entry || !holder)
		return 0;
	num p;
	if (t->entries[entry].count <= FEW) { /* nearer than the bucket */
		for (p = t->entries[entry].promises.first; p; p = t->promises[p].by[BY_FID].next)
			if (t->promises[p].holder == holder)
				break;
		return p;
	}
	p = *pair_bucket(t, entry, holder);
	while (p && (t->promises[p].entry != entry || t->promises[p].holder != holder))
		p = t->promises[p].next_same_hash;
	return p;
}

static mono_ns end_of(const struct promise *p) { return p->slot * SLOT_NS + GRACE_NS; }

/* The slot in which it is let go. */
static struct ends *time_list(struct cb_table *t, const struct promise *p)
{
	return &t->slots[end_of(p) / SLOT_NS % SLOTS];
}

static num make_promise_locked(struct cb_table *t, num e, num h)
{
	num p = t->free_promise;
	if (p)
		t->free_promise = t->promises[p].next_same_hash;
	else
		p = ++t->promises_used;
	num *bucket = pair_bucket(t, e, h);
	t->promises[p] = (struct promise){.entry = e, .holder = h, .next_same_hash = *bucket};
	*bucket = p;
	push_back(t, &t->entries[e].promises, BY_FID, p);
	push_back(t, &t->holders[h].promises, BY_HOLDER, p);
	t->entries[e].count++;
	t->holders_with += t->holders[h].holder->count++ == 0;
	t->count++;
	return p;
}

static void free_promise_locked(struct cb_table *t, num n)
{
	struct promise *p = &t->promises[n];
	struct entry *e = &t->entries[p->entry];
	struct holder_at *h = &t->holders[p->holder];
	num *at = pair_bucket(t, p->entry, p->holder);
	while (*at != n)
		at = &t->promises[*at].next_same_hash;
	*at = p->next_same_hash;
	take_out(t, &e->promises, BY_FID, n);
	take_out(t, &h->promises, BY_HOLDER, n);
	take_out(t, time_list(t, p), BY_TIME, n);
	t->holders_with -= --h->holder->count == 0;
	t->count--;
	if (--e->count == 0)
		free_entry_locked(t, p->entry);
	*p = (struct promise){.next_same_hash = t->free_promise};
	t->free_promise = n;
}

/* Twice the buckets, in the place of the old ones.  Without memory the chains stay long. */
static void widen_fids_locked(struct cb_table *t)
{
	num *wider = mem_new_array((t->fid_mask + 1) * 2, num);
	if (!wider)
		return;
	mem_free(t->fid_buckets);
	t->fid_buckets = wider;
	t->fid_mask = t->fid_mask * 2 + 1;
	for (num e = 1; e <= t->entries_used; e++)
		if (t->entries[e].count) {
			num *at = fid_bucket(t, &t->entries[e].fid);
			t->entries[e].next_same_hash = *at;
			*at = e;
		}
}

static void widen_pairs_locked(struct cb_table *t)
{
	num *wider = mem_new_array((t->pair_mask + 1) * 2, num);
	if (!wider)
		return;
	mem_free(t->pair_buckets);
	t->pair_buckets = wider;
	t->pair_mask = t->pair_mask * 2 + 1;
	for (num p = 1; p <= t->promises_used; p++)
		if (t->promises[p].entry) {
			num *at = pair_bucket(t, t->promises[p].entry, t->promises[p].holder);
			t->promises[p].next_same_hash = *at;
			*at = p;
		}
}

static void expire_locked(struct cb_table *t, mono_ns now)
{
	int64_t now_slot = now / SLOT_NS;
	for (int64_t s = t->first_slot; s < now_slot && s < t->first_slot + SLOTS; s++)
		for (num p = t->slots[s % SLOTS].first, next; p; p = next) {
			next = t->promises[p].by[BY_TIME].next;
			if (end_of(&t->promises[p]) <= now) {
				free_promise_locked(t, p);
				t->stats.expired++;
			}
		}
	if (now_slot > t->first_slot)
		t->first_slot = now_slot;
}

/* Who makes room in a full table: whoever holds more than the others gives up what it renewed longest
 * ago, so that one host that asks for much costs itself and not those who hold little. */
static num victim_locked(struct cb_table *t, num asking)
{
	uint32_t fair = t->max / MAX(t->holders_with, 1u);
	if (asking && t->holders[asking].holder->count > fair)
		return t->holders[asking].promises.first;
	bool stale = !t->fattest || t->fattest > t->holders_n || !t->holders[t->fattest].holder ||
		     t->holders[t->fattest].holder->count < fair || t->evictions++ % 64 == 0;
	if (stale) {
		uint32_t most = 0;
		for (num i = 1; i <= t->holders_n; i++)
			if (t->holders[i].holder && t->holders[i].holder->count > most) {
				most = t->holders[i].holder->count;
				t->fattest = i;
			}
	}
	return t->holders[t->fattest].promises.first;
}

/* callback.md §3: the more hold an object, the shorter, for breaks cost the changer time. */
static int64_t life_ns(const struct cb_table *t, enum cb_kind kind, uint32_t holders)
{
	if (kind == CB_KIND_VOLUME)
		return SEC(MAX(2 * 3600, (int64_t)t->life_s));
	if (kind == CB_KIND_BULK)
		holders += 22;
	static const int minutes[] = {CLASSIC_MINUTES, 60, 30, 15, 15, 10, 10, 10};
	int64_t seconds = 60 * (holders / 8 < ARRAY_SIZE(minutes) ? minutes[holders / 8] : 7);
	return SEC(t->life_s ? seconds * t->life_s / (60 * CLASSIC_MINUTES) : seconds);
}

static void take_locked(
	struct cb_table *t, num p, mono_ns now, struct cb_holder **out, size_t *n)
{
	if (end_of(&t->promises[p]) > now)
		out[(*n)++] = cb_holder_ref(t->holders[t->promises[p].holder].holder);
	free_promise_locked(t, p);
}

static afs_err promise_locked(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h,
	mono_ns now, enum cb_kind kind, bool evict, struct cb_grant *out)
{
	if (h->closed)
		return AFS_EAGAIN;
	expire_locked(t, now);
	num holder = holder_number_locked(t, h);
	if (!holder)
		return AFS_ENOMEM;

	num e = find_entry_locked(t, fid), mine = find_promise_locked(t, e, holder);
	struct cb_grant grant = {0};
	int64_t life = life_ns(t, kind, e ? t->entries[e].count - (mine ? 1 : 0) : 0);
	if (mine) {
		take_out(t, time_list(t, &t->promises[mine]), BY_TIME, mine);
		take_out(t, &t->holders[holder].promises, BY_HOLDER, mine);
		push_back(t, &t->holders[holder].promises, BY_HOLDER, mine);
	} else {
		if (t->count > t->pair_mask && t->pair_mask + 1 < t->buckets_max)
			widen_pairs_locked(t);
		if (t->entries_count > t->fid_mask && t->fid_mask + 1 < t->buckets_max)
			widen_fids_locked(t);
		if (t->count == t->max) {
			if (!evict)
				return AFS_ENOSPC;
			num victim = victim_locked(t, holder);
			const struct promise *p = &t->promises[victim];
			grant.evicted = cb_holder_ref(t->holders[p->holder].holder);
			grant.evicted_fid = t->entries[p->entry].fid;
			free_promise_locked(t, victim);
			e = find_entry_locked(t, fid); /* the victim may have been its last */
		}
		if (!e)
			e = make_entry_locked(t, fid);
		mine = make_promise_locked(t, e, holder);
	}
	struct promise *p = &t->promises[mine];
	int64_t end = (now + life + SLOT_NS - 1) / SLOT_NS;
	grant.seconds = (uint32_t)((end * SLOT_NS - now) / NS_PER_SEC);
	p->slot = (uint32_t)end;
	push_back(t, time_list(t, p), BY_TIME, mine);
	*out = grant;
	return AFS_OK;
}

afs_err cb_promise(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h, mono_ns now,
	enum cb_kind kind, bool evict, struct cb_grant *out)
{
	struct AFSFid key = *fid;
	if (kind == CB_KIND_VOLUME)
		key.Vnode = key.Unique = 0;
	mtx_lock(&t->lock);
	afs_err err = promise_locked(t, &key, h, now, kind, evict, out);
	mtx_unlock(&t->lock);
	return err;
}

size_t cb_promise_all(struct cb_table *t, const struct AFSFid *fids, size_t n, struct cb_holder *h,
	mono_ns now, enum cb_kind kind, struct cb_grant *out)
{
	size_t i = 0;
	mtx_lock(&t->lock);
	for (; i < n; i++) {
		struct AFSFid key = fids[i];
		if (kind == CB_KIND_VOLUME)
			key.Vnode = key.Unique = 0;
		if (promise_locked(t, &key, h, now, kind, false, &out[i]) != AFS_OK)
			break;
	}
	mtx_unlock(&t->lock);
	return i;
}

size_t cb_take(struct cb_table *t, const struct AFSFid *fid, const struct cb_holder *except,
	mono_ns now, struct cb_holder **out, size_t cap)
{
	size_t n = 0;
	mtx_lock(&t->lock);
	num e = find_entry_locked(t, fid);
	for (num p = e ? t->entries[e].promises.first : 0, next; p && n < cap; p = next) {
		next = t->promises[p].by[BY_FID].next;
		if (t->holders[t->promises[p].holder].holder != except)
			take_locked(t, p, now, out, &n);
	}
	mtx_unlock(&t->lock);
	return n;
}

bool cb_take_volume(struct cb_table *t, afs_volid volume, mono_ns now, uint32_t *cursor,
	struct cb_holder **out, size_t cap, size_t *got)
{
	size_t n = 0;
	mtx_lock(&t->lock);
	num i = *cursor + 1, stop = i + LOOK_AT_MOST;
	for (; i <= t->entries_used && i < stop && n < cap; i++) {
		struct entry *e = &t->entries[i];
		while (e->count && e->fid.Volume == volume && n < cap) {
			size_t before = n;
			take_locked(t, e->promises.first, now, out, &n);
			for (size_t k = 0; n > before && k < before; k++)
				if (out[k] == out[before]) {
					n = before;
					/* out[k] holds a reference: this is not the last */
					atomic_fetch_sub_explicit(
						&out[k]->refs, 1, memory_order_relaxed);
				}
		}
		if (n == cap && e->count && e->fid.Volume == volume)
			break; /* the same one again */
	}
	*cursor = i - 1;
	*got = n;
	bool more = i <= t->entries_used;
	mtx_unlock(&t->lock);
	return more;
}

void cb_drop(struct cb_table *t, const struct AFSFid *fid)
{
	mtx_lock(&t->lock);
	num e = find_entry_locked(t, fid);
	if (e)
		t->stats.dropped++;
	for (num p = e ? t->entries[e].promises.first : 0, next; p; p = next) {
		next = t->promises[p].by[BY_FID].next;
		free_promise_locked(t, p);
	}
	mtx_unlock(&t->lock);
}

void cb_forget(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h)
{
	mtx_lock(&t->lock);
	num p = find_promise_locked(t, find_entry_locked(t, fid), h->number);
	if (p) {
		free_promise_locked(t, p);
		t->stats.given_back++;
	}
	mtx_unlock(&t->lock);
}

void cb_forget_all(struct cb_table *t, struct cb_holder *h, bool close)
{
	mtx_lock(&t->lock);
	while (h->number && t->holders[h->number].promises.first)
		free_promise_locked(t, t->holders[h->number].promises.first);
	forget_holder_locked(t, h);
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
	num e = find_entry_locked(t, fid);
	uint32_t n = e ? t->entries[e].count : 0;
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

void cb_table_stats(struct cb_table *t, struct cb_table_stats *out)
{
	mtx_lock(&t->lock);
	*out = t->stats;
	out->now = t->count;
	out->fids = t->entries_count;
	mtx_unlock(&t->lock);
}
