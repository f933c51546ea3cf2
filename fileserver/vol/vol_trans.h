/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Volume transactions: who works on which volume right now.
 *
 * A transaction has a number (1, 2, ... for the life of the process) and holds one volume of one
 * partition for itself: a second one on it is refused (AFS_EVOLTRANS).  It belongs to no
 * connection.  Calls claim it for as long as they run; an idle one ends by itself after
 * VOL_TRANS_IDLE.  What holding means for the volume (offline, busy) is vol_state's; this table only
 * keeps order.  All functions are safe from any thread; none waits for a network.
 *
 * Source: volserver.md §4. */
#pragma once
#include "cell/base/clk.h"
#include "cell/base/list.h"
#include "cell/base/mtx.h"
#include "cell/proto/vol.h"

struct vs_volume;

#define VOL_TRANS_IDLE SEC(600)
enum { VOL_TRANS_MAX = 4096, VOL_PROC_NAME = 30 };

struct vol_trans {
	/* set once */
	int32_t tid;
	uint32_t volid;
	int32_t partition;
	int32_t iflags; /* how it was opened: VOL_IT_ */
	wall_ns created;
	struct vs_volume *volume; /* held by the transaction; NULL after DeleteVolume */
	/* only touched by the one call that has it claimed */
	int32_t vflags;     /* SetFlags */
	bool deleted;       /* DeleteVolume ran: only EndTrans is left */
	bool changed;       /* content was replaced: callbacks are broken at the end */
	afs_err result;     /* the first error of a call in it */
	char proc[VOL_PROC_NAME + 1];
	/* the table's */
	struct list link;
	bool claimed;
	wall_ns used_at;
	mono_ns used;
};

struct vol_trans_table {
	struct mtx lock;
	struct cond unclaimed;
	struct list all GUARDED_BY(lock);
	int32_t next GUARDED_BY(lock);
	unsigned count GUARDED_BY(lock);
};

void vol_trans_init(struct vol_trans_table *t);
void vol_trans_fini(struct vol_trans_table *t); /* every transaction must have ended */

/* A new one, claimed by the caller.  AFS_EVOLTRANS: the volume is in another; AFS_ENOMORE: too many. */
afs_err vol_trans_begin(struct vol_trans_table *t, uint32_t volid, int32_t partition, int32_t iflags,
	const char *proc, mono_ns now, struct vol_trans **out);
/* Take number `tid` for one call, waiting for a call that has it to end.  AFS_ENOENT: no such one, or
 * its volume was deleted in it and `even_deleted` is false. */
afs_err vol_trans_claim(struct vol_trans_table *t, int32_t tid, const char *proc, bool even_deleted,
	struct vol_trans **out);
void vol_trans_release(struct vol_trans_table *t, struct vol_trans *tr, mono_ns now);
/* Take a claimed one out of the table; the caller frees it (mem_free) when it has let the volume go. */
void vol_trans_remove(struct vol_trans_table *t, struct vol_trans *tr);
/* An unclaimed one that has idled since before `before` (MONO_NEVER: any), claimed; NULL: none. */
struct vol_trans *vol_trans_claim_idle(struct vol_trans_table *t, mono_ns before);
bool vol_trans_holds(struct vol_trans_table *t, uint32_t volid, int32_t partition);
/* What Monitor answers: at most `max` rows.  Gives how many transactions there are. */
unsigned vol_trans_monitor(struct vol_trans_table *t, struct transDebugInfo *out, unsigned max);
