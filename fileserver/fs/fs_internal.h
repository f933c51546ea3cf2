/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of fileserver/fs share.
 *
 *   fs_service.c   the file server as a whole: making, services, abort codes, statistics
 *   fs_access.c    who may do what
 *   fs_status.c    FetchStatus, StoreStatus        fs_bulk.c   BulkStatus, InlineBulkStatus
 *   fs_data.c      FetchData(64), StoreData(64)    fs_dir.c    names: create, remove, rename, link
 *   fs_acl.c       FetchACL, StoreACL              fs_lock.c   locks
 *   fs_misc.c      volumes, time, capabilities, statistics, what is refused
 *   fs_xstat.c     GetXStats
 *   acl_text.c     the text form of ACLs */
#pragma once
#include "fileserver/cb/cb.h"
#include "fileserver/fileserver.h"
#include "fileserver/fs/fs_xstat.h"
#include "fileserver/store/store.h"

#include <pthread.h>

struct fs_locks;

struct fs_counters {
#define FS_STAT(name, text) atomic_uint_fast64_t name;
#include "fileserver/fs/stats.def"
#undef FS_STAT
};
#define fs_count(fs, name, n)                                                                      \
	atomic_fetch_add_explicit(&(fs)->count.name, (n), memory_order_relaxed)

struct fileserver {
	struct fileserver_config config;
	struct vs_store *store;
	struct cb *cb;
	struct cb_wire wire; /* cb's; the port is set through it.  */
	struct fs_locks *locks;
	struct fs_counters count;
	struct fs_xstat xstat;
	wall_ns began;
	atomic_bool serving; /* callbacks can leave */
	bool keeping;
	pthread_t keeper;
};

/* As fileserver_new, with calls to clients made by `wire` (tests). */
afs_err fs_new_with_wire(const struct fileserver_config *config, const struct cb_wire *wire,
	struct fileserver **out);
/* Serve without a port (tests): no housekeeper. */
void fs_serve(struct fileserver *fs);

/* The abort code for `err` as this call's client wants it. */
int32_t fs_code_for(struct fileserver *fs, const struct rpc_call *call, afs_err err);

/* A name as every call wants it: AFS_EINVAL for "", ".", "..", '/' inside; AFS_ENAMETOOLONG. */
afs_err fs_name_check(const struct xdr_str *name);

/* fs_lock.c */
enum { FS_LOCKS_MAX = 16384 };
struct fs_locks *fs_locks_new(void);
void fs_locks_free(struct fs_locks *l);
/* AFS_EAGAIN: held otherwise, or no room for more. */
afs_err fs_locks_set(struct fs_locks *l, const struct AFSFid *fid, bool write, mono_ns now);
afs_err fs_locks_extend(
	struct fs_locks *l, const struct AFSFid *fid, mono_ns now); /* AFS_EINVAL: none */
bool fs_locks_release(
	struct fs_locks *l, const struct AFSFid *fid, mono_ns now); /* true: free now */
void fs_locks_drop(struct fs_locks *l, const struct AFSFid *fid);
/* AFSFetchStatus.lockCount */
uint32_t fs_locks_count(struct fs_locks *l, const struct AFSFid *fid, mono_ns now);

/* fs_bulk.c, fs_status.c: the status of a.fid with a promise, or why not. */
struct fs_access;
afs_err fs_status_of(
	struct fs_access *a, bool bulk, struct AFSFetchStatus *st, struct AFSCallBack *cb);
