/* SPDX-License-Identifier: BSD-2-Clause
 *
 * VL on paper: the volume location database's structs, procedures and constants.
 *
 * A client makes its stubs (vl_call_get_entry_by_name_u ...) with RPC_WANT_STUBS, RPC_PREFIX vl and
 * RPC_ROWS "cell/proto/vl.rpc" after rx/rpc/rpc.h (rx/xdr/iface_pass.h).  Volume types are enum
 * afs_voltype of fid.h, and VL_ANY_TYPE.  Names of entries carry no .readonly or .backup.  A number in
 * decimal is taken for a volume id by the calls that ask by name.
 *
 * Source: protocol vldb.md. */
#pragma once
#include "cell/proto/fid.h"
#include "rx/xdr/iface.h"

enum {
	VL_OSITES_MAX = 8,       /* of a vldbentry */
	VL_SITES_MAX = 13,       /* of the others */
	VL_NAME_MAX = 64,
	VL_PARTITION_MAX = 255,  /* 0 is /vicepa */
	VL_SERVERFLAGS_MAX = 0x80,
	VL_ADDRS_MAX = 15,       /* of a registered server */
	VL_ADDRS_WIRE_MAX = 500, /* bulkaddrs */
	VL_SERVERS_MAX = 254,    /* slots, numbered from 1 */
	VL_PAGE = 500,           /* entries in one answer of ListAttributesN2 */
	VL_LIST_MAX = 4096,      /* entries in one answer of the calls that have no pages */
	VL_BUMP_MAX = 0x7fffffff,
	VL_FIRST_VOLID = 0x20000000,
	VL_ANY_TYPE = -1,
};

/* Lists as XDR has them, a word before each element that says whether there is one; here an array. */
struct vldbentry;
struct nvldbentry;
typedef struct vldb_list {
	struct vldbentry *v;
	uint32_t n;
} xdr_vldb_list;
typedef struct nvldb_list {
	struct nvldbentry *v;
	uint32_t n;
} xdr_nvldb_list;
void xdr_get_vldb_list(struct xdr_in *, struct vldb_list *);
void xdr_put_vldb_list(struct xdr_out *, const struct vldb_list *);
void xdr_print_vldb_list(struct buf *, const struct vldb_list *);
void xdr_get_nvldb_list(struct xdr_in *, struct nvldb_list *);
void xdr_put_nvldb_list(struct xdr_out *, const struct nvldb_list *);
void xdr_print_nvldb_list(struct buf *, const struct nvldb_list *);

#define XDR_ROWS "cell/proto/vl.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX vl
#define RPC_ROWS "cell/proto/vl.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface vl_iface;

/* Entry flags. */
enum {
	VLF_OP_MOVE = 0x10,
	VLF_OP_RELEASE = 0x20,
	VLF_OP_BACKUP = 0x40,
	VLF_OP_DELETE = 0x80,
	VLF_OP_DUMP = 0x100,
	VLF_OP_MASK = 0x1f0,
	VLF_RW_EXISTS = 0x1000,
	VLF_RO_EXISTS = 0x2000,
	VLF_BK_EXISTS = 0x4000,
};
/* serverFlags. */
enum {
	VLSF_NEWREPSITE = 1,
	VLSF_RO = 2,
	VLSF_RW = 4,
	VLSF_BK = 8,
	VLSF_UUID = 0x10, /* in a uvldbentry: serverNumber is a real UUID, else only an address */
	VLSF_DONTUSE = 0x20,
};
/* ReleaseType. */
enum { VL_RELEASE_TIME = 1, VL_RELEASE_OP = 2, VL_RELEASE_AFSID = 4 };
/* VldbListByAttributes.Mask, ListAddrByAttributes.Mask. */
enum { VLLIST_SERVER = 1, VLLIST_PARTITION = 2, VLLIST_VOLUMEID = 8, VLLIST_FLAG = 0x10 };
enum { VLADDR_IPADDR = 1, VLADDR_INDEX = 2, VLADDR_UUID = 4 };
/* VldbUpdateEntry.Mask and RepsitesMask. */
enum {
	VLUPDATE_NAME = 1,
	VLUPDATE_FLAGS = 4,
	VLUPDATE_RO_ID = 8,
	VLUPDATE_BK_ID = 0x10,
	VLUPDATE_REPSITES = 0x20,
	VLUPDATE_CLONE_ID = 0x80,
	VLUPDATE_REHASH_NAME = 0x100,
	VLUPDATE_RW_ID = 0x200,
};
enum {
	VLREP_DELETE = 0x100,
	VLREP_ADD = 0x200,
	VLREP_SERVER = 0x400,
	VLREP_PARTITION = 0x800,
	VLREP_FLAGS = 0x1000,
};
