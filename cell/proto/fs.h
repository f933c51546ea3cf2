/* SPDX-License-Identifier: BSD-2-Clause
 *
 * RXAFS on paper: the file service's structs, procedures and constants.
 *
 * A client makes its stubs (fs_call_fetch_status ...) with
 *   #define RPC_WANT_STUBS
 *   #define RPC_PREFIX fs
 *   #define RPC_ROWS "cell/proto/fs.rpc"
 *   #include "rx/xdr/iface_pass.h"
 * after rx/rpc/rpc.h.  FetchData(64), StoreData(64) are SPLIT: rpc_begin with
 * &fs_iface.procs[fs_op_fetch_data64].  FetchData64's reply is length:u64, that many bytes, results;
 * FetchData's has a u32 length.  StoreData's bytes follow the arguments, without count or padding.
 *
 * Source: protocol fileserver.md. */
#pragma once
#include "cell/proto/fid.h"
#include "rx/xdr/iface.h"

#define XDR_ROWS "cell/proto/fs.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX fs
#define RPC_ROWS "cell/proto/fs.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface fs_iface;

enum {
	FS_NAME_MAX_WIRE = 256, /* what decodes; names of more than AFS_NAME_MAX are ENAMETOOLONG */
	FS_SYMLINK_MAX = 1024,
	FS_BULK_MAX = 50,
	FS_CAPS_MAX = 196,
	FS_LOCK_LIFE_S = 300,
	FS_PAGE = 2048, /* of a directory object */
};

/* AFSStoreStatus.Mask */
enum {
	FS_SET_MODTIME = 1,
	FS_SET_OWNER = 2,
	FS_SET_GROUP = 4,
	FS_SET_MODE = 8,
	FS_SET_SEGSIZE = 16, /* ignored */
	FS_FSYNC =
		1024, /* StoreData: safe before the reply, as far as the server's durability goes */
};
/* AFSStoreVolumeStatus.Mask */
enum { FS_SET_MIN_QUOTA = 1, FS_SET_MAX_QUOTA = 2 };
/* GetCapabilities, word 0 */
enum {
	FS_CAP_ERRORTRANS = 1,
	FS_CAP_64BITFILES = 2,
	FS_CAP_WRITELOCKACL = 4,
	FS_CAP_SANEACLS = 8,
};
/* GetXStats */
enum {
	FS_XSTAT_VERSION = 2,
	FS_XSTAT_CALLS = 0, /* empty */
	FS_XSTAT_PERF = 1,
	FS_XSTAT_FULL = 2,
	FS_XSTAT_CALLBACKS = 3,
	FS_XSTAT_PERF_WORDS = 98,
	FS_XSTAT_FULL_WORDS = 424, /* times of two words each; 666 with times of four */
	FS_XSTAT_CALLBACK_WORDS = 16,
};
/* SetLock's Type */
enum { FS_LOCK_READ = 0, FS_LOCK_WRITE = 1 };
/* AFSFetchStatus.lockCount of a file under a write lock */
#define FS_LOCK_COUNT_WRITE 0xffffffffu

/* Length and DataVersion are in two words each. */
static inline uint64_t fs_status_length(const struct AFSFetchStatus *s)
{
	return (uint64_t)s->Length_hi << 32 | s->Length;
}
static inline uint64_t fs_status_dv(const struct AFSFetchStatus *s)
{
	return (uint64_t)s->dataVersionHigh << 32 | s->DataVersion;
}
