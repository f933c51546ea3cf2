/* SPDX-License-Identifier: BSD-2-Clause
 * The RMTSYS service: who calls is proven by the kernel's table of sockets, then pioctl_run(). */
#include "client/pioctl/pioctl.h"

#include "cell/base/log.h"

#define RPC_PREFIX rmt
#define RPC_ROWS "cell/proto/rmt.rpc"
#define RPC_WANT_HANDLERS
#include "rx/xdr/iface_pass.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { LOOPBACK_NET = 127 };

void pioctl_service(struct client *client, struct rpc_service *out)
{
	*out = (struct rpc_service){
		.iface = &rmt_iface, .handlers = rmt_handlers, .ctx = client, .allow_anonymous = true};
}

/* Lines: "sl: LOCAL:PORT REMOTE:PORT st queues timer retransmits uid ..."; addresses are words of
 * this machine's byte order, in hexadecimal. */
bool pioctl_socket_owner(const char *table, struct rx_addr addr, uid_t *uid)
{
	FILE *f = fopen(table, "r");
	char line[512];
	bool found = false;
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		uint32_t ip, owner;
		unsigned port;
		if (sscanf(line, " %*[0-9]: %" SCNx32 ":%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %" SCNu32, &ip, &port, &owner) != 3)
			continue;
		ip = be32_get(&ip);
		found = port == addr.port && (ip == addr.ip || ip == 0);
		if (found)
			*uid = owner;
	}
	fclose(f);
	return found;
}

static bool proven(struct rx_addr peer, const struct clientcred *cred)
{
	uid_t owner;
	if (peer.ip >> 24 != LOOPBACK_NET || !pioctl_socket_owner("/proc/net/udp", peer, &owner))
		return false;
	return owner == 0 || owner == (uid_t)cred->uid;
}

afs_err rmt_set_pag(struct rpc_call *call, const struct rmt_set_pag_in *in, struct rmt_set_pag_out *out)
{
	(void)call, (void)in;
	out->errornumber = EINVAL; /* tokens belong to users here */
	return AFS_OK;
}

afs_err rmt_pioctl(struct rpc_call *call, const struct rmt_pioctl_in *in, struct rmt_pioctl_out *out)
{
	if (!proven(call->peer, &in->cred)) {
		log_warn("pioctl.caller_unproven uid=%d port=%u", in->cred.uid, call->peer.port);
		out->errornumber = EPERM;
		return AFS_OK;
	}
	out->errornumber = pioctl_run(call->service, (uid_t)in->cred.uid, in->cmd, in->InData, call->arena, &out->OutData);
	return AFS_OK;
}
