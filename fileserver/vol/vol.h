/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of the volume server share. */
#pragma once
#include "fileserver/store/store.h"
#include "fileserver/vol/vol_trans.h"
#include "fileserver/volserver.h"

struct volserver {
	struct volserver_config config;
	struct vol_trans_table trans;
};

/* Let a claimed transaction go: out of the table, its volume back to the file service as the header
 * says.  `given_up`: nobody ended it, so a volume that was never released from being made is purged. */
void vol_trans_finish(struct volserver *v, struct vol_trans *tr, bool given_up);

/* A call inside a transaction, which is released when `held` leaves its scope. */
struct vol_held {
	struct volserver *v;
	struct vol_trans *tr;
};
void vol_held_cleanup(struct vol_held *h);
/* AFS_ENOENT: no such transaction, or its volume was deleted in it. */
afs_err vol_hold(struct rpc_call *call, int32_t tid, const char *proc, struct vol_held *out);
/* Gives `err` back; the first one of a transaction is what EndTrans reports. */
afs_err vol_noted(struct vol_held *h, afs_err err);

/* vol_list.c: a volume as listings show it. */
void vol_info_of(struct volserver *v, struct vs_volume *vol, struct volintInfo *out);

/* Seconds of the wire as the store's time, and back by clk_wire_sec(). */
static inline wall_ns vol_wall(uint32_t sec) { return SEC((int64_t)sec); }
