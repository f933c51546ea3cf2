/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Callback promises: which client was promised word of a change to which file.
 *
 * A promise is (fid, holder, expiry).  Before a change to a fid is acknowledged, every other live
 * promise on it is taken from the table and handed to the breaker.  A promise on a volume that does
 * not change (read-only, backup) has the fid {volume, 0, 0} and stands for all its objects.
 *
 * The table is bounded and its memory is set up once; when full, the holder of more than a fair share
 * (the asking one before others) gives up what it renewed longest ago, which is handed out to be
 * broken.  All calls are safe from any thread and none waits for
 * a network.
 *
 * Rule for those who promise and those who change:  promise first, then read the status that goes
 * back; change first, then take the promises, then acknowledge.  Either the reader sees the change
 * or the changer sees the promise.
 *
 * Source: protocol callback.md §3-4. */
#pragma once
#include "cell/base/clk.h"
#include "cell/base/err.h"
#include "cell/proto/fid.h"

#include <stdatomic.h>

struct cb_table;

/* The part of a client host that the table knows.  Counted: whoever is handed a holder by the table
 * owns a reference; `free` runs when the last one goes, with no lock of the table held. */
struct cb_holder {
	atomic_uint refs;
	void (*free)(struct cb_holder *h);
	uint32_t number; /* the table's lock: what the table calls it; 0: nothing yet */
	uint32_t count;  /* likewise: promises */
	bool closed;     /* likewise: takes no more promises */
};
void cb_holder_init(struct cb_holder *h, void (*free)(struct cb_holder *h)); /* one reference */
struct cb_holder *cb_holder_ref(struct cb_holder *h);
void cb_holder_unref(struct cb_holder *h);

enum cb_kind {
	CB_KIND_FILE,   /* an object of a read-write volume */
	CB_KIND_BULK,   /* the same, from a bulk status call: a shorter life */
	CB_KIND_VOLUME, /* an object of a volume that does not change */
};

struct cb_grant {
	uint32_t seconds; /* what the client is told: from now */
	struct cb_holder
		*evicted; /* NULL: nobody had to make room; else referenced for the caller */
	struct AFSFid evicted_fid;
};

struct cb_table *cb_table_new(uint32_t promises_max); /* NULL: out of memory */
void cb_table_free(struct cb_table *t);               /* holders must be closed before */
/* How long a promise of few holders lasts, instead of 4 hours; those of many holders in proportion.
 * At most a day; 0: 4 hours. */
void cb_table_set_life(struct cb_table *t, uint32_t seconds);
enum { CB_LIFE_MAX_S = 86400 };

/* Promise `h` word of changes to `fid` for a life that depends on `kind` and on how many hold it
 * already.  A repeated promise only moves the expiry.  AFS_EAGAIN: the holder is closed; promise
 * nothing and reply without.  AFS_ENOSPC: another would have to go, and `evict` does not say that it
 * may. */
afs_err cb_promise(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h, mono_ns now,
	enum cb_kind kind, bool evict, struct cb_grant *out);
/* Several, up to the first that fails (nobody is evicted): gives how many were promised. */
size_t cb_promise_all(struct cb_table *t, const struct AFSFid *fids, size_t n, struct cb_holder *h,
	mono_ns now, enum cb_kind kind, struct cb_grant *out);
/* Take live promises on `fid` from everybody but `except` (NULL: from everybody).  Writes at most
 * `cap` referenced holders and gives their number; a full array may mean that there are more. */
size_t cb_take(struct cb_table *t, const struct AFSFid *fid, const struct cb_holder *except,
	mono_ns now, struct cb_holder **out, size_t cap);
/* Take promises inside a volume, a part of the table at a time: begin with *cursor 0 and come again
 * while it says true.  Writes at most `cap` referenced holders, each once in one turn, and gives their
 * number in *got. */
bool cb_take_volume(struct cb_table *t, afs_volid volume, mono_ns now, uint32_t *cursor,
	struct cb_holder **out, size_t cap, size_t *got);
/* Forget all promises on `fid`: the object is gone and its directory's break tells of it. */
void cb_drop(struct cb_table *t, const struct AFSFid *fid);
/* The holder gives one promise back; unknown ones are nothing. */
void cb_forget(struct cb_table *t, const struct AFSFid *fid, struct cb_holder *h);
/* All of them; with `close` it never gets another. */
void cb_forget_all(struct cb_table *t, struct cb_holder *h, bool close);
/* Free what expired; gives the number of promises left. */
uint32_t cb_expire(struct cb_table *t, mono_ns now);
/* Live promises of a holder, on a fid, in all. */
uint32_t cb_count_of(struct cb_table *t, const struct cb_holder *h);
uint32_t cb_count_on(struct cb_table *t, const struct AFSFid *fid);
uint32_t cb_count(struct cb_table *t);

struct cb_table_stats {
	uint32_t now, fids, max; /* promises, what they are about, what there is room for */
	uint64_t expired, given_back, dropped /* objects that died */;
};
void cb_table_stats(struct cb_table *t, struct cb_table_stats *out);
