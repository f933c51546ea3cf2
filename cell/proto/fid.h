/* SPDX-License-Identifier: BSD-2-Clause
 *
 * AFS-3's common words: fids, volume types, ACL bits, well-known ids. */
#pragma once
#define XDR_ROWS "cell/proto/fid.def"
#include "rx/xdr/struct_pass.h"

typedef uint32_t afs_volid;

enum afs_voltype { AFS_VOL_RW = 0, AFS_VOL_RO = 1, AFS_VOL_BK = 2 };
enum afs_filetype { AFS_FILE = 1, AFS_DIR = 2, AFS_SYMLINK = 3 };

/* ACL rights, text order rlidwka. */
enum afs_rights {
	ACL_READ = 1,
	ACL_WRITE = 2,
	ACL_INSERT = 4,
	ACL_LOOKUP = 8,
	ACL_DELETE = 16,
	ACL_LOCK = 32,
	ACL_ADMIN = 64,
	ACL_ALL = 127,
};

enum afs_wellknown {
	AFS_ANONYMOUS = 32766,
	AFS_ANYUSER = -101,
	AFS_AUTHUSER = -102,
	AFS_ADMINISTRATORS = -204,
};
enum { AFS_NAME_MAX = 255, AFS_VOLNAME_MAX = 31, AFS_PRNAME_MAX = 63, AFS_ACL_TEXT_MAX = 1024 };

/* Service ids and their ports (debug-stats.md §1). */
enum {
	FS_SERVICE = 1, FS_PORT = 7000,
	CB_SERVICE = 1, CB_PORT = 7001,
	PT_SERVICE = 73, PT_PORT = 7002,
	VL_SERVICE = 52, VL_PORT = 7003,
	VOL_SERVICE = 4, VOL_PORT = 7005,
	BOS_SERVICE = 1, BOS_PORT = 7007,
	UBIK_VOTE_SERVICE = 50, UBIK_DISK_SERVICE = 51,
	RXSTATS_SERVICE = 409,
};

static inline bool fid_equal(const struct AFSFid *a, const struct AFSFid *b)
{
	return a->Volume == b->Volume && a->Vnode == b->Vnode && a->Unique == b->Unique;
}
