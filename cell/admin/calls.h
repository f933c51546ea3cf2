/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls with the types of their rows: VL_CALL(a, get_entry_by_name_n, &in, &out, arena) and so on.
 * Each gives an afs_err; admin_why() tells a failure. */
#pragma once
#include "cell/admin/admin.h"
#include "cell/proto/bos.h"
#include "cell/proto/pt.h"
#include "cell/proto/vl.h"
#include "cell/proto/vol.h"

#define ADMIN_TYPED(prefix, fn, in, out, call)                                                     \
	({                                                                                         \
		const struct prefix##_##fn##_in *in_ = (in);                                       \
		struct prefix##_##fn##_out *out_ = (out);                                          \
		(call);                                                                            \
	})
#define VL_CALL(a, fn, in, out, arena)                                                             \
	ADMIN_TYPED(vl, fn, in, out, admin_db((a), ADMIN_VL, vl_op_##fn, in_, out_, (arena)))
#define PT_CALL(a, fn, in, out, arena)                                                             \
	ADMIN_TYPED(pt, fn, in, out, admin_db((a), ADMIN_PT, pt_op_##fn, in_, out_, (arena)))
#define VOL_CALL(a, conn, fn, in, out, arena)                                                      \
	ADMIN_TYPED(vol, fn, in, out, admin_call((a), (conn), &vol_iface.procs[vol_op_##fn], in_, out_, (arena)))
#define BOS_CALL(a, conn, fn, in, out, arena)                                                      \
	ADMIN_TYPED(bos, fn, in, out, admin_call((a), (conn), &bos_iface.procs[bos_op_##fn], in_, out_, (arena)))
