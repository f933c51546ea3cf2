/* SPDX-License-Identifier: BSD-2-Clause
 *
 * BOZO on paper: the basic overseer's structs, procedures and constants.
 *
 * Source: protocol bos.md. */
#pragma once
#include "cell/proto/fid.h"
#include "rx/xdr/iface.h"

enum { BOS_STR_MAX = 256, BOS_LOG_MAX = 64 << 20 };

/* A DES key, a word per byte.  It prints as its length: keys are in no log. */
typedef struct bozo_key {
	int32_t data[8];
} xdr_bozo_key;
void xdr_get_bozo_key(struct xdr_in *, struct bozo_key *);
void xdr_put_bozo_key(struct xdr_out *, const struct bozo_key *);
void xdr_print_bozo_key(struct buf *, const struct bozo_key *);

#define XDR_ROWS "cell/proto/bos.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX bos
#define RPC_ROWS "cell/proto/bos.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface bos_iface;

/* Goals, and the first four as states. */
enum { BOS_SHUTDOWN = 0, BOS_RUNNING = 1, BOS_SHUTTING_DOWN = 2, BOS_STARTING_UP = 3 };
/* bozo_status.flags */
enum { BOS_HAS_CORE = 1, BOS_ERROR_STOP = 2, BOS_BAD_DIRS = 4 };
/* bozo_netKTime.mask */
enum { BOS_KT_HOUR = 1, BOS_KT_MIN = 2, BOS_KT_SEC = 4, BOS_KT_DAY = 8, BOS_KT_NEVER = 0x10, BOS_KT_NOW = 0x20 };
/* Which restart time. */
enum { BOS_RESTART_GENERAL = 1, BOS_RESTART_NEWBIN = 2 };
/* Prune's flags. */
enum { BOS_PRUNE_OLD = 1, BOS_PRUNE_BAK = 2, BOS_PRUNE_CORE = 4 };
/* GetInstanceParm: this number is the notifier. */
enum { BOS_PARM_NOTIFIER = 999 };

enum bos_code {
	BZ_NOTACTIVE = 39424,
	BZ_NOENT = 39425,
	BZ_BUSY = 39426,
	BZ_EXISTS = 39427,
	BZ_NOCREATE = 39428,
	BZ_DOM = 39429,
	BZ_ACCESS = 39430,
	BZ_SYNTAX = 39431,
	BZ_IO = 39432,
	BZ_NET = 39433,
	BZ_BADTYPE = 39434,
	BZ_KEYINUSE = 39435,
	BZ_ENCREQ = 39436,
};
int32_t abort_of_bos(afs_err err);
afs_err err_of_bos(int32_t code);
