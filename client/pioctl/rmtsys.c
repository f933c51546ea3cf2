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
#include <string.h>

enum { LOOPBACK_NET = 127 };

void pioctl_service(struct client *client, struct rpc_service *out)
{
	*out = (struct rpc_service){
		.iface = &rmt_iface, .handlers = rmt_handlers, .ctx = client, .allow_anonymous = true};
}

/* Lines: "sl: LOCAL:PORT REMOTE:PORT st queues timer retransmits uid ..."; addresses are words of
 * this machine's byte order, in hexadecimal: one of them, or four in the table of IPv6, whose sockets
 * speak IPv4 as well. */
static bool may_send_from(const char *text, uint32_t ip)
{
	uint32_t w[4];
	if (strlen(text) == 8 && sscanf(text, "%8" SCNx32, w) == 1)
		return !w[0] || be32_get(w) == ip;
	if (strlen(text) != 32 ||
		sscanf(text, "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 "%8" SCNx32, w, w + 1, w + 2, w + 3) != 4)
		return false;
	if (w[0] || w[1])
		return false;
	return be32_get(w + 2) == 0xffff ? be32_get(w + 3) == ip : !w[2] && !w[3];
}

enum pioctl_socket pioctl_socket_of(const char *table, struct rx_addr addr, uid_t uid)
{
	FILE *f = fopen(table, "r");
	char line[512];
	enum pioctl_socket found = PIOCTL_SOCKET_NONE;
	if (!f)
		return PIOCTL_SOCKET_NONE;
	while (found != PIOCTL_SOCKET_OTHERS && fgets(line, sizeof(line), f)) {
		char ip[33];
		uint32_t owner;
		unsigned port;
		if (sscanf(line, " %*[0-9]: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*x:%*x %*x:%*x %*x %" SCNu32, ip, &port, &owner) != 3)
			continue;
		if (port == addr.port && may_send_from(ip, addr.ip))
			found = owner == 0 || owner == uid ? PIOCTL_SOCKET_HIS : PIOCTL_SOCKET_OTHERS;
	}
	fclose(f);
	return found;
}

static bool proven(struct rx_addr peer, const struct clientcred *cred)
{
	if (peer.ip >> 24 != LOOPBACK_NET)
		return false;
	enum pioctl_socket v4 = pioctl_socket_of("/proc/net/udp", peer, (uid_t)cred->uid);
	enum pioctl_socket v6 = pioctl_socket_of("/proc/net/udp6", peer, (uid_t)cred->uid);
	return v4 != PIOCTL_SOCKET_OTHERS && v6 != PIOCTL_SOCKET_OTHERS &&
	       (v4 == PIOCTL_SOCKET_HIS || v6 == PIOCTL_SOCKET_HIS);
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
