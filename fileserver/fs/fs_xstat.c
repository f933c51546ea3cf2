/* SPDX-License-Identifier: BSD-2-Clause
 *
 * XStatsVersion and GetXStats: counts for xstat_fs_test and afsmonitor.  No host is met for them.
 *
 * Of the summary's words, those about a peculiarity of another implementation (its vnode caches, its
 * packet classes) are 0 here.  Collection 2 has times of two words, the form of 424 words, which all
 * tools know. */
#include "fileserver/fs/fs_xstat.h"

#include "cell/proto/abort.h"
#include "fileserver/fs/fs_handlers.h"

/* The position of a call in collection 2; -1: it has none. */
static int place_of(uint32_t op)
{
	static const struct {
		uint16_t op;
		int8_t place;
	} narrow[] = {{130, 0}, {131, 1}, {132, 2}, {133, 3}, {134, 4}, {135, 5}, {136, 6},
		{137, 7}, {138, 8}, {139, 9}, {140, 10}, {141, 11}, {142, 12}, {143, 13}, {144, 14},
		{145, 15}, {146, 16}, {147, 17}, {148, 18}, {149, 19}, {150, 20}, {151, 21},
		{152, 22}, {153, 23}, {154, 24}, {155, 25}, {156, 13}, {157, 14}, {158, 15},
		{159, 26}, {160, 27}};
	if (op >= 130 && op < 130 + ARRAY_SIZE(narrow))
		return narrow[op - 130].place;
	switch (op) {
	case 164: return 4;
	case 65536: return 25;
	case 65537: return 0;
	case 65538: return 3;
	case 65539: return 17;
	case 65542: return 16;
	default: return -1;
	}
}

static void add(atomic_uint_least64_t *to, uint64_t n)
{
	atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void raise(atomic_uint_least64_t *to, uint64_t v)
{
	uint64_t have = atomic_load_explicit(to, memory_order_relaxed);
	while (have < v && !atomic_compare_exchange_weak_explicit(
				   to, &have, v, memory_order_relaxed, memory_order_relaxed))
		continue;
}

/* `to` holds a minimum plus one, or 0. */
static void lower(atomic_uint_least64_t *to, uint64_t v)
{
	uint64_t have = atomic_load_explicit(to, memory_order_relaxed);
	while ((have == 0 || have > v + 1) &&
		!atomic_compare_exchange_weak_explicit(
			to, &have, v + 1, memory_order_relaxed, memory_order_relaxed))
		continue;
}

void fs_xstat_call(struct fileserver *fs, const struct rpc_proc *proc, int32_t code, int64_t took_ns)
{
	int place = place_of(proc->op);
	if (code == abort_of_fs(AFS_EVBUSY) || code == abort_of_fs(AFS_ERESTARTING))
		add(&fs->xstat.busies, 1);
	if (proc->op == 65540)
		add(&fs->xstat.caps_asked, 1);
	if (place < 0)
		return;
	struct fs_xstat_op *o = &fs->xstat.op[place];
	uint64_t us = took_ns > 0 ? (uint64_t)took_ns / 1000 : 0;
	add(&o->calls, 1);
	if (code)
		return; /* times are of calls that succeeded */
	add(&o->good, 1);
	add(&o->sum, us);
	add(&o->squares, us * us);
	lower(&o->min1, us);
	raise(&o->max, us);
}

void fs_xstat_moved(
	struct fileserver *fs, enum fs_transfer which, bool good, uint64_t bytes, int64_t took_ns)
{
	static const uint64_t bounds[FS_XSTAT_SIZES - 1] = {
		128, 1024, 8192, 16384, 32768, 131072, 524288, 1048576};
	struct fs_xstat_transfer *t = &fs->xstat.transfer[which];
	uint64_t us = took_ns > 0 ? (uint64_t)took_ns / 1000 : 0;
	add(&t->calls, 1);
	if (!good)
		return;
	unsigned size = 0;
	while (size < ARRAY_SIZE(bounds) && bytes > bounds[size])
		size++;
	add(&t->good, 1);
	add(&t->sum, us);
	add(&t->squares, us * us);
	lower(&t->min1, us);
	raise(&t->max, us);
	add(&t->bytes, bytes);
	lower(&t->min_bytes1, bytes);
	raise(&t->max_bytes, bytes);
	add(&t->sizes[size], 1);
}

/* --- what goes out ----------------------------------------------------------------------------- */

struct words {
	struct fileserver *fs;
	uint32_t *v;
	uint32_t n;
};

/* Too large for a word that tools print as signed: the largest, and counted. */
static uint32_t *word(struct words *w, uint64_t v)
{
	if (v > INT32_MAX) {
		fs_count(w->fs, clamped, 1);
		v = INT32_MAX;
	}
	w->v[w->n] = (uint32_t)v;
	return &w->v[w->n++];
}

static uint64_t value(const atomic_uint_least64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}
static uint64_t less_one(const atomic_uint_least64_t *v)
{
	uint64_t n = value(v);
	return n ? n - 1 : 0;
}

static void time_words(struct words *w, uint64_t us)
{
	word(w, us / 1000000);
	word(w, us % 1000000);
}
/* A sum of squares of seconds. */
static void square_words(struct words *w, uint64_t us2)
{
	word(w, us2 / 1000000000000);
	word(w, us2 / 1000000 % 1000000);
}

static void perf_words(struct words *w, const struct fileserver_stats *s)
{
	uint32_t at = w->n;
	word(w, s->calls);
	w->n = at + 58;
	word(w, s->hosts_now);
	word(w, 1);
	word(w, s->hosts_now);
	w->n = at + 64;
	word(w, s->clients_now);
	w->n = at + 68;
	word(w, value(&w->fs->xstat.busies));
	word(w, value(&w->fs->xstat.caps_asked));
	w->n = at + FS_XSTAT_PERF_WORDS;
}

static void full_words(struct words *w, const struct fileserver_stats *s)
{
	perf_words(w, s);
	word(w, clk_wire_sec(w->fs->began));
	word(w, (uint64_t)(w->fs->began % NS_PER_SEC) / 1000);
	for (int i = 0; i < FS_XSTAT_OPS; i++) {
		const struct fs_xstat_op *o = &w->fs->xstat.op[i];
		word(w, value(&o->calls));
		word(w, value(&o->good));
		time_words(w, value(&o->sum));
		square_words(w, value(&o->squares));
		time_words(w, less_one(&o->min1));
		time_words(w, value(&o->max));
	}
	for (int i = 0; i < 2; i++) {
		const struct fs_xstat_transfer *t = &w->fs->xstat.transfer[i];
		word(w, value(&t->calls));
		word(w, value(&t->good));
		time_words(w, value(&t->sum));
		square_words(w, value(&t->squares));
		time_words(w, less_one(&t->min1));
		time_words(w, value(&t->max));
		word(w, value(&t->bytes));
		word(w, less_one(&t->min_bytes1));
		word(w, value(&t->max_bytes));
		for (int k = 0; k < FS_XSTAT_SIZES; k++)
			word(w, value(&t->sizes[k]));
	}
}

static void callback_words(struct words *w, const struct fileserver_stats *s)
{
	word(w, s->promises_dropped); /* DeleteFiles */
	word(w, s->promises_given_back);
	word(w, s->breaks_sent + s->breaks_delayed);
	word(w, s->promises_given);
	word(w, s->promises_evicted); /* GotSomeSpaces */
	word(w, s->resets_sent);      /* DeleteAllCallBacks */
	word(w, s->promised_now);     /* file entries */
	word(w, s->promises_now);
	word(w, s->promises_max);
	word(w, s->promises_expired);
	w->n = FS_XSTAT_CALLBACK_WORDS; /* breakers, and how space was got: a word of another server's */
}

afs_err fs_xstats_version(struct rpc_call *call, const struct fs_xstats_version_in *in,
	struct fs_xstats_version_out *out)
{
	(void)call, (void)in;
	out->Version = FS_XSTAT_VERSION;
	return AFS_OK;
}

afs_err fs_get_xstats(
	struct rpc_call *call, const struct fs_get_xstats_in *in, struct fs_get_xstats_out *out)
{
	struct fileserver *fs = call->service;
	struct words w = {.fs = fs, .v = arena_alloc(call->arena, FS_XSTAT_FULL_WORDS, sizeof(uint32_t))};
	struct fileserver_stats s = {0};
	if (!w.v)
		return AFS_ENOMEM;
	fileserver_stats(fs, &s);
	switch (in->Collection) {
	case FS_XSTAT_CALLS: break;
	case FS_XSTAT_PERF: perf_words(&w, &s); break;
	case FS_XSTAT_FULL: full_words(&w, &s); break;
	case FS_XSTAT_CALLBACKS: callback_words(&w, &s); break;
	default: return rpc_refuse(call, 1);
	}
	out->ServerVersion = FS_XSTAT_VERSION;
	out->Time = clk_wire_sec(clk_wall());
	out->Data.v = w.v;
	out->Data.n = w.n;
	return AFS_OK;
}
