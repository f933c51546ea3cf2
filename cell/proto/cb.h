/* SPDX-License-Identifier: BSD-2-Clause
 *
 * RXAFSCB on paper: what a file server asks and tells a cache manager, and UUIDs.
 *
 * Stubs (cb_call_call_back ...) come from rx/xdr/iface_pass.h with RPC_WANT_STUBS, RPC_PREFIX cb and
 * RPC_ROWS "cell/proto/cb.rpc"; handlers from RPC_WANT_HANDLERS (a server whose functions are
 * called otherwise defines its own RPC_PREFIX-shaped names).
 *
 * Source: protocol callback.md. */
#pragma once
#include "cell/proto/fid.h"
#include "rx/xdr/iface.h"

#define XDR_ROWS "cell/proto/cb.def"
#include "rx/xdr/struct_pass.h"

#define RPC_WANT_INDEX
#define RPC_PREFIX cb
#define RPC_ROWS "cell/proto/cb.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface cb_iface;

enum {
	CB_FIDS_MAX = 50,
	CB_ADDRS_MAX = 32,
	CB_CAPS_MAX = 196,
	CB_CAP_ERRORTRANS = 1, /* capabilities, word 0: "translate errno to UAE for me" */
	CB_WRONG_UUID = 1,     /* ProbeUuid's code for another's UUID */
};
/* AFSCallBack.CallBackType */
enum { CB_EXCLUSIVE = 1, CB_SHARED = 2, CB_DROPPED = 3 };
enum { CB_VERSION = 1 };

/* Each field of an afsUUID is a word of its own on the wire; the clock and node bytes arrive
 * sign-extended from some senders and plain from others, and shorts may carry rubbish above their
 * 16 bits.  Compare, hash and store the 16 bytes. */
enum { AFS_UUID_BYTES = 16 };
void afs_uuid_to_bytes(const struct afsUUID *u, uint8_t out[AFS_UUID_BYTES]);
/* As the reference sends it: char fields sign-extended. */
struct afsUUID afs_uuid_from_bytes(const uint8_t b[AFS_UUID_BYTES]);
bool afs_uuid_equal(const struct afsUUID *a, const struct afsUUID *b);
bool afs_uuid_is_nil(const struct afsUUID *u);
/* A fresh random (version 4) UUID. */
struct afsUUID afs_uuid_random(void);
/* "12345678-1234-1234-12-34-1234567890ab" as AFS tools print it; out holds 40. */
enum { AFS_UUID_TEXT = 40 };
const char *afs_uuid_text(const struct afsUUID *u, char out[AFS_UUID_TEXT]);
