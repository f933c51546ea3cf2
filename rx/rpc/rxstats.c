/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A set is one table per interface and direction, made when the first call of it ends.  One lock, taken
 * for some additions at the end of a call while gathering is on, and not at all while it is off. */
#include "rx/rpc/rxstats.h"

#include "cell/proto/abort.h"
#include "rx/rpc/stream.h"

#include <errno.h>
#include <string.h>

#define XDR_ROWS "rx/rpc/rxstats.def"
#include "rx/xdr/codec_pass.h"
#define RPC_WANT_PROCS
#define RPC_PREFIX rxstats
#define RPC_ROWS "rx/rpc/rxstats.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_HANDLERS
#define RPC_PREFIX rxstats
#define RPC_ROWS "rx/rpc/rxstats.rpc"
#include "rx/xdr/iface_pass.h"

enum { VERSION = 1, STATS_ID = 9, NEVER_SEC = 9999999 };
/* What Clear clears. */
enum {
	CLEAR_CALLS = 1, CLEAR_SENT = 2, CLEAR_RECEIVED = 4,
	CLEAR_QUEUE = 8, /* sum; the next three bits are sum of squares, least, most */
	CLEAR_RUN = 0x80,
};

const struct rpc_iface rxstats_iface = {
	.name = "RXSTATS",
	.service = 409,
	.stats_id = STATS_ID,
	.procs = rxstats_procs,
	.count = ARRAY_SIZE(rxstats_procs),
	.args_max = 64,
	.results_max = RPC_STATS_WORDS_MAX * 4 + 64,
	.abort_of = abort_of_fs,
	.err_of = err_of_fs,
};

struct times {
	uint64_t sum_ns;
	double squares; /* of seconds */
	int64_t least_ns, most_ns;
};
struct entry {
	uint64_t calls, sent, received;
	struct times queue, run;
};
struct table {
	const struct rpc_iface *iface;
	bool made;
	struct entry *entries; /* one per row of iface */
};
struct set {
	struct rx_addr peer; /* of a peer's */
	mono_ns used;
	struct table tables[RPC_STATS_IFACES];
	unsigned count;
};

struct rpc_stats {
	atomic_bool process_on, peer_on; /* written under the lock */
	struct mtx lock;
	struct set process;                 /* lock */
	struct set *peers[RPC_STATS_PEERS]; /* lock */
	unsigned peer_count;                /* lock */
};

/* --- sets, under the lock ------------------------------------------------------------------- */

static void clear_times(struct times *t, uint32_t flags)
{
	if (flags & 1)
		t->sum_ns = 0;
	if (flags & 2)
		t->squares = 0;
	if (flags & 4)
		t->least_ns = NEVER_SEC * NS_PER_SEC;
	if (flags & 8)
		t->most_ns = 0;
}

static void clear_entry(struct entry *e, uint32_t flags)
{
	if (flags & CLEAR_CALLS)
		e->calls = 0;
	if (flags & CLEAR_SENT)
		e->sent = 0;
	if (flags & CLEAR_RECEIVED)
		e->received = 0;
	clear_times(&e->queue, flags / CLEAR_QUEUE);
	clear_times(&e->run, flags / CLEAR_RUN);
}

static void set_clear(struct set *s, uint32_t flags)
{
	for (unsigned i = 0; i < s->count; i++)
		for (unsigned j = 0; j < s->tables[i].iface->count; j++)
			clear_entry(&s->tables[i].entries[j], flags);
}

static void set_forget(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		mem_free(s->tables[i].entries);
	s->count = 0;
}

/* NULL: no room or no memory; then the call goes uncounted. */
static struct entry *set_entry(struct set *s, const struct rpc_iface *iface, bool made, size_t row)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->tables[i].iface == iface && s->tables[i].made == made)
			return &s->tables[i].entries[row];
	if (s->count == RPC_STATS_IFACES)
		return NULL;
	struct table *t = &s->tables[s->count];
	*t = (struct table){iface, made, mem_new_array(iface->count, struct entry)};
	if (!t->entries)
		return NULL;
	s->count++;
	for (unsigned i = 0; i < iface->count; i++)
		clear_entry(&t->entries[i], UINT32_MAX);
	return &t->entries[row];
}

static struct set *peer_set(struct rpc_stats *st, struct rx_addr peer, mono_ns now)
{
	struct set *s = NULL;
	for (unsigned i = 0; i < st->peer_count && !s; i++)
		if (st->peers[i]->peer.ip == peer.ip && st->peers[i]->peer.port == peer.port)
			s = st->peers[i];
	if (!s && st->peer_count < RPC_STATS_PEERS) {
		s = mem_new(struct set);
		if (!s)
			return NULL;
		st->peers[st->peer_count++] = s;
	} else if (!s) {
		s = st->peers[0];
		for (unsigned i = 1; i < st->peer_count; i++)
			if (st->peers[i]->used < s->used)
				s = st->peers[i];
		set_forget(s);
	}
	s->peer = peer;
	s->used = now;
	return s;
}

static void add_time(struct times *t, int64_t ns)
{
	ns = MAX(ns, INT64_C(0));
	double sec = (double)ns / 1e9;
	t->sum_ns += (uint64_t)ns;
	t->squares += sec * sec;
	t->least_ns = MIN(t->least_ns, ns);
	t->most_ns = MAX(t->most_ns, ns);
}

static void add(struct entry *e, const struct rpc_stats_call *call)
{
	if (!e)
		return;
	e->calls++;
	e->sent += call->sent;
	e->received += call->received;
	add_time(&e->queue, call->queue_ns);
	add_time(&e->run, call->run_ns);
}

bool rpc_stats_wanted(const struct rpc_stats *st)
{
	return atomic_load_explicit(&st->process_on, memory_order_relaxed) ||
		atomic_load_explicit(&st->peer_on, memory_order_relaxed);
}

void rpc_stats_note(struct rpc_stats *st, const struct rpc_stats_call *call)
{
	if (!call->iface->stats_id || !rpc_stats_wanted(st))
		return;
	size_t row = (size_t)(call->proc - call->iface->procs);
	mtx_lock(&st->lock);
	if (atomic_load(&st->process_on))
		add(set_entry(&st->process, call->iface, call->made, row), call);
	struct set *peer = atomic_load(&st->peer_on) ? peer_set(st, call->peer, call->now) : NULL;
	if (peer)
		add(set_entry(peer, call->iface, call->made, row), call);
	mtx_unlock(&st->lock);
}

struct rpc_stats *rpc_stats_new(void)
{
	struct rpc_stats *st = mem_new(struct rpc_stats);
	if (st)
		mtx_init(&st->lock, RANK_LEAF);
	return st;
}

static void forget_peers(struct rpc_stats *st)
{
	while (st->peer_count) {
		struct set *s = st->peers[--st->peer_count];
		set_forget(s);
		mem_free(s);
	}
}

void rpc_stats_free(struct rpc_stats *st)
{
	if (!st)
		return;
	set_forget(&st->process);
	forget_peers(st);
	mtx_fini(&st->lock);
	mem_free(st);
}

/* --- the service ------------------------------------------------------------------------------- */

static struct rpc_stats *stats_of(const struct rpc_call *call) { return stream_of(call)->port->stats; }

static uint32_t *put_u64(uint32_t *w, uint64_t v)
{
	*w++ = (uint32_t)(v >> 32);
	*w++ = (uint32_t)v;
	return w;
}

static uint32_t *put_time(uint32_t *w, uint64_t ns)
{
	uint64_t sec = ns / NS_PER_SEC;
	*w++ = (uint32_t)MIN(sec, (uint64_t)UINT32_MAX);
	*w++ = (uint32_t)(ns % NS_PER_SEC / 1000);
	return w;
}

static uint32_t *put_times(uint32_t *w, const struct times *t)
{
	w = put_time(w, t->sum_ns);
	double squares = MIN(t->squares, 4e9);
	w = put_time(w, (uint64_t)(squares * 1e9));
	w = put_time(w, (uint64_t)t->least_ns);
	return put_time(w, (uint64_t)t->most_ns);
}

/* Tables one after another, each whole or not at all. */
static uint32_t *put_set(uint32_t *w, const uint32_t *end, const struct set *s, bool peer)
{
	for (unsigned i = 0; i < s->count; i++) {
		const struct table *t = &s->tables[i];
		if ((size_t)(end - w) < (size_t)t->iface->count * RPC_STATS_ENTRY)
			break;
		for (unsigned row = 0; row < t->iface->count; row++) {
			const struct entry *e = &t->entries[row];
			*w++ = peer ? s->peer.ip : UINT32_MAX;
			*w++ = peer ? s->peer.port : UINT32_MAX;
			*w++ = t->made;
			*w++ = t->iface->stats_id;
			*w++ = t->iface->count;
			*w++ = row;
			w = put_u64(w, e->calls);
			w = put_u64(w, e->sent);
			w = put_u64(w, e->received);
			w = put_times(w, &e->queue);
			w = put_times(w, &e->run);
		}
	}
	return w;
}

static size_t set_words(const struct set *s)
{
	size_t n = 0;
	for (unsigned i = 0; i < s->count; i++)
		n += (size_t)s->tables[i].iface->count * RPC_STATS_ENTRY;
	return n;
}

/* Both Retrieve calls give the same words. */
static afs_err retrieve(struct rpc_call *call, bool peers, struct rxstats_retrieve_process_out *out)
{
	struct rpc_stats *st = stats_of(call);
	out->serverVersion = VERSION;
	if (!atomic_load(peers ? &st->peer_on : &st->process_on))
		return AFS_OK;
	wall_ns now = clk_wall();
	out->clock_sec = clk_wire_sec(now);
	out->clock_usec = (uint32_t)(now % NS_PER_SEC / 1000);
	mtx_lock(&st->lock);
	size_t words = peers ? 0 : set_words(&st->process);
	for (unsigned i = 0; peers && i < st->peer_count; i++)
		words += set_words(st->peers[i]);
	words = MIN(words, (size_t)RPC_STATS_WORDS_MAX);
	uint32_t *w = words ? arena_alloc(call->arena, words, sizeof(uint32_t)) : NULL, *at = w;
	if (w && !peers)
		at = put_set(at, w + words, &st->process, false);
	for (unsigned i = 0; w && peers && i < st->peer_count; i++)
		at = put_set(at, w + words, st->peers[i], true);
	mtx_unlock(&st->lock);
	if (words && !w)
		return AFS_ENOMEM;
	out->stats.v = w;
	out->stats.n = (uint32_t)(at - w);
	out->stat_count = out->stats.n / RPC_STATS_ENTRY;
	return AFS_OK;
}

afs_err rxstats_retrieve_process(struct rpc_call *call, const struct rxstats_retrieve_process_in *in,
	struct rxstats_retrieve_process_out *out)
{
	(void)in; /* a newer client gets what we have, and the version says so */
	return retrieve(call, false, out);
}

afs_err rxstats_retrieve_peer(struct rpc_call *call, const struct rxstats_retrieve_peer_in *in,
	struct rxstats_retrieve_peer_out *out)
{
	(void)in;
	struct rxstats_retrieve_process_out same = {0};
	TRY(retrieve(call, true, &same));
	out->serverVersion = same.serverVersion;
	out->clock_sec = same.clock_sec;
	out->clock_usec = same.clock_usec;
	out->stat_count = same.stat_count;
	out->stats.v = same.stats.v;
	out->stats.n = same.stats.n;
	return AFS_OK;
}

afs_err rxstats_query_process(struct rpc_call *call, const struct rxstats_query_process_in *in,
	struct rxstats_query_process_out *out)
{
	(void)in;
	out->on = atomic_load(&stats_of(call)->process_on);
	return AFS_OK;
}

afs_err rxstats_query_peer(struct rpc_call *call, const struct rxstats_query_peer_in *in, struct rxstats_query_peer_out *out)
{
	(void)in;
	out->on = atomic_load(&stats_of(call)->peer_on);
	return AFS_OK;
}

afs_err rxstats_query_version(struct rpc_call *call, const struct rxstats_query_version_in *in,
	struct rxstats_query_version_out *out)
{
	(void)call, (void)in;
	out->version = VERSION;
	return AFS_OK;
}

/* The service's own policy does not refuse, since what it says is not EPERM for every port. */
static afs_err may_change(struct rpc_call *call) { return call->superuser ? AFS_OK : rpc_refuse(call, EPERM); }

static afs_err turn(struct rpc_call *call, bool peers, bool on)
{
	struct rpc_stats *st = stats_of(call);
	TRY(may_change(call));
	mtx_lock(&st->lock);
	atomic_store(peers ? &st->peer_on : &st->process_on, on);
	if (!on && peers)
		forget_peers(st);
	else if (!on)
		set_forget(&st->process);
	mtx_unlock(&st->lock);
	return AFS_OK;
}

static afs_err clear(struct rpc_call *call, bool peers, uint32_t flags)
{
	struct rpc_stats *st = stats_of(call);
	TRY(may_change(call));
	mtx_lock(&st->lock);
	if (!peers)
		set_clear(&st->process, flags);
	for (unsigned i = 0; peers && i < st->peer_count; i++)
		set_clear(st->peers[i], flags);
	mtx_unlock(&st->lock);
	return AFS_OK;
}

afs_err rxstats_enable_process(struct rpc_call *call, const struct rxstats_enable_process_in *in,
	struct rxstats_enable_process_out *out)
{
	(void)in, (void)out;
	return turn(call, false, true);
}

afs_err rxstats_enable_peer(struct rpc_call *call, const struct rxstats_enable_peer_in *in,
	struct rxstats_enable_peer_out *out)
{
	(void)in, (void)out;
	return turn(call, true, true);
}

afs_err rxstats_disable_process(struct rpc_call *call, const struct rxstats_disable_process_in *in,
	struct rxstats_disable_process_out *out)
{
	(void)in, (void)out;
	return turn(call, false, false);
}

afs_err rxstats_disable_peer(struct rpc_call *call, const struct rxstats_disable_peer_in *in,
	struct rxstats_disable_peer_out *out)
{
	(void)in, (void)out;
	return turn(call, true, false);
}

afs_err rxstats_clear_process(struct rpc_call *call, const struct rxstats_clear_process_in *in,
	struct rxstats_clear_process_out *out)
{
	(void)out;
	return clear(call, false, in->flags);
}

afs_err rxstats_clear_peer(struct rpc_call *call, const struct rxstats_clear_peer_in *in,
	struct rxstats_clear_peer_out *out)
{
	(void)out;
	return clear(call, true, in->flags);
}

struct rpc_service rpc_stats_service(const struct rpc_service *first)
{
	return (struct rpc_service){
		.iface = &rxstats_iface,
		.handlers = rxstats_handlers,
		.ctx = first->ctx,
		.superuser = first->superuser,
		.allow_anonymous = true,
	};
}
