/* SPDX-License-Identifier: BSD-2-Clause */
#include "rx/xdr/iface.h"

const struct rpc_proc *rpc_iface_find(const struct rpc_iface *iface, uint32_t op)
{
	for (uint16_t i = 0; i < iface->count; i++)
		if (iface->procs[i].op == op)
			return &iface->procs[i];
	return NULL;
}
