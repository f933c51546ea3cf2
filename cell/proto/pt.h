/* SPDX-License-Identifier: BSD-2-Clause
 *
 * PR on paper: the protection database's structs, procedures and constants.
 *
 * A client makes its stubs (pt_call_name_to_id ...) with RPC_WANT_STUBS, RPC_PREFIX pt and RPC_ROWS
 * "cell/proto/pt.rpc" after rx/rpc/rpc.h (rx/xdr/iface_pass.h).  Users have positive ids, groups
 * negative ones; 0 is none.  Well-known ids are in fid.h.
 *
 * Source: protocol protection.md. */
#pragma once
#include "cell/proto/fid.h"
#include "rx/xdr/iface.h"

enum {
	PT_NAME_MAX = 63,    /* bytes of a name that may be stored; 64 decode */
	PT_NAMES_MAX = 1024, /* names in one NameToID: 256 KiB of arguments */
	PT_LIST_MAX = 5000,  /* ids or names in other lists, and in answers */
	PT_PAGE = 500,       /* entries in one answer of ListEntries */
};

#define XDR_ROWS "cell/proto/pt.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX pt
#define RPC_ROWS "cell/proto/pt.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface pt_iface;

enum {
	PT_PTSVIEWERS = -203,
	PT_BACKUP = -205,
	PT_BADID = INT32_MIN, /* GetCPS2: no user, only the host */
};
/* NewEntry's flag, SetMax's gflag; ListEntries' flag. */
enum { PT_USER = 0, PT_GROUP = 2 };
enum { PT_LIST_USERS = 1, PT_LIST_GROUPS = 2 };
/* The privacy byte, as text SOMAR: anybody / members only. */
enum {
	PTP_STATUS_ANY = 0x80,
	PTP_STATUS_MEM = 0x40,
	PTP_OWNED_ANY = 0x20,
	PTP_MEMBER_ANY = 0x10,
	PTP_MEMBER_MEM = 0x08,
	PTP_ADD_ANY = 0x04,
	PTP_ADD_MEM = 0x02,
	PTP_REMOVE_MEM = 0x01,
	PTP_USER_DEFAULT = PTP_STATUS_ANY,
	PTP_GROUP_DEFAULT = PTP_STATUS_ANY | PTP_MEMBER_ANY,
};
/* SetFieldsEntry's mask: bits 0-15 pick privacy bits. */
#define PT_SET_NGROUPS 0x80000000u
#define PT_SET_NUSERS 0x40000000u
enum { PT_QUOTA = 20, PT_FOREIGN_QUOTA = 30 };
