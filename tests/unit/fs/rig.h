/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A file server over a real store in a scratch folder, with clients that are a table (fake_clients.h):
 * volume 5 "test", whose root gives system:anyuser nothing, system:administrators and alice all, bob rl.
 *
 *   struct rig *r = rig_new();
 *   assert_ok(CALL(r, A, "alice", create_file, {root, NAME("f")}));     results in r->out.create_file
 *   assert_diary(&r->world, "break 10.0.0.2:7001 5.1.1\n");
 *   rig_free(r); */
#pragma once
#include "fileserver/fs/fs_handlers.h"
#include "tests/lib/fake_clients.h"
#include "tests/lib/fake_rpc.h"
#include "tests/lib/test.h"

enum { VOL = 5, A = 0, B = 1, C = 2, RIG_CLIENTS = 3 };
static const struct AFSFid root = {VOL, 1, 1};
#define NAME(s)                                                                                    \
	{                                                                                          \
		(s), sizeof(s) - 1                                                                 \
	}

struct rig {
	char *dir;
	struct vs_store *store;
	struct vs_partition *part;
	struct fileserver *fs;
	struct rpc_service service;
	struct fake_world world;
	/* connections of each client: anonymous, alice, bob, admin */
	struct fake_conn conns[RIG_CLIENTS][4];
	struct fake_call call; /* the last one: its arena holds the results */
	bool called;
	int32_t code;     /* the last call's abort code */
	int64_t ahead_ns; /* how far the clock of calls is ahead */
	/* what the next call sends, and what the last one got */
	const void *send;
	size_t send_len;
	uint64_t send_zeros;
	afs_err send_end;
	union {
#define RPC(op, wire, fn, shape, need, effect) struct fs_##fn##_out fn;
#include "cell/proto/fs.rpc"
#undef RPC
	} out;
};
struct rig *rig_new(void);
void rig_free(struct rig *r);
/* Another volume on the partition, served, with the same ACL. */
void rig_volume(struct rig *r, afs_volid id, const char *name, enum afs_voltype type);
afs_err rig_call(struct rig *r, int client, const char *user, unsigned op, const void *in);
#define CALL(r, client, user, fn, ...)                                                             \
	rig_call((r), (client), (user), fs_op_##fn, &(struct fs_##fn##_in)__VA_ARGS__)

/* Shorthands, as alice from client A unless said; each asserts success and gives the new fid. */
struct AFSFid rig_file(struct rig *r, struct AFSFid dir, const char *name, const char *content);
struct AFSFid rig_dir(struct rig *r, struct AFSFid dir, const char *name);
struct AFSFetchStatus rig_status(struct rig *r, struct AFSFid fid);
/* Client `c` (as alice) is promised word of `fid`; the diary is emptied. */
void rig_watch(struct rig *r, int c, struct AFSFid fid);
void rig_acl(struct rig *r, struct AFSFid dir, const char *text); /* as admin */
afs_err rig_store(struct rig *r, int c, const char *user, struct AFSFid fid, uint64_t pos,
	const void *p, size_t n, uint64_t file_length);
/* The whole of `fid`; "" when it is empty.  The caller frees it. */
char *rig_read(struct rig *r, struct AFSFid fid);
