/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An overseer over three instances that are a few words of memory, and calls to it without a network. */
#pragma once
#include "tests/lib/fake_rpc.h"
#include "tests/lib/test.h"

#include "cell/bos/bos.h"

#include <stdatomic.h>

enum { RIG_PT, RIG_VL, RIG_FS, RIG_COUNT };
enum rig_caller { NOBODY, USER, ADMIN_CLEAR, ADMIN_AUTH, ADMIN_CRYPT, LOCALAUTH, CALLERS };

struct rig {
	char *dir, *state, *repair_log, *log;
	struct bos_server *bos;
	struct rpc_service service;
	atomic_int up[RIG_COUNT], starts[RIG_COUNT], stops[RIG_COUNT];
	atomic_int fail_starts; /* so many starts fail */
	atomic_bool repair_holds;
	char added[256];        /* what users_changed told, joined by blanks */
	int32_t repaired_part;
	uint32_t repaired_volume;
};
void rig_open(struct rig *r);
void rig_close(struct rig *r);
static inline void rig_cleanup(struct rig *r) { rig_close(r); }
/* The server goes and another one comes from the same file. */
void rig_again(struct rig *r);

/* One call: `in` and `out` are the row's structs.  The code a client would get; what was streamed is in *text
 * (may be NULL; the caller's). */
int32_t rig_call(struct rig *r, unsigned op, enum rig_caller who, const void *in, void *out, struct arena *arena, char **text);
/* Waits until the instance is up (1) or down (0). */
void rig_wait(struct rig *r, int i, int up);
