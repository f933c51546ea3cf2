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
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Paths are words of their callers.  What is not below the mount as it is written may lead there through links of
 * this machine: the kernel says where. */
bool pioctl_inside(struct client *client, const char *path, char *rest, size_t cap)
{
	const char *mount = client_mounted_at(client);
	size_t n = mount ? strlen(mount) : 0;
	if (!mount || path[0] != '/')
		return false;
	char real[PATH_MAX];
	for (int turn = 0; turn < 2; turn++) {
		if (strncmp(path, mount, n) == 0 && (path[n] == '/' || !path[n]) && !strstr(path + n, "/../"))
			return snprintf(rest, cap, "%s", path + n) < (int)cap;
		/* the parent through the kernel, the last name as it is: it may be a mount point's or a link's own */
		char dir[PATH_MAX];
		if (snprintf(dir, sizeof(dir), "%s", path) >= (int)sizeof(dir))
			return false;
		size_t len = strlen(dir);
		while (len > 1 && dir[len - 1] == '/')
			dir[--len] = 0;
		char *slash = strrchr(dir, '/'), *last = slash + 1;
		if (turn || strcmp(last, "..") == 0 || strcmp(last, ".") == 0) {
			if (!realpath(path, real))
				return false;
		} else {
			char parent[PATH_MAX];
			*slash = 0;
			if (!realpath(*dir ? dir : "/", parent) ||
				snprintf(real, sizeof(real), "%s%s%s", strcmp(parent, "/") ? parent : "", "/", last) >= (int)sizeof(real))
				return false;
			if (strncmp(real, mount, n) != 0 && !realpath(path, real)) /* its last part may be the link that leads there */
				return false;
		}
		path = real;
	}
	if (strncmp(path, mount, n) == 0 && (path[n] == '/' || !path[n]))
		return snprintf(rest, cap, "%s", path + n) < (int)cap;
	return false;
}

/* Two groups of the caller, which may be a PAG's. */
static uid_t who_of(struct client *client, const struct clientcred *cred)
{
	uint32_t groups[2] = {(uint32_t)cred->group0, (uint32_t)cred->group1};
	uid_t uid = (uid_t)cred->uid, who = client_identity_of(client, uid, groups, 2);
	/* groups are only said, not proven: they count for the PAG's maker */
	return who == uid || client_pag_owner(client, who) == uid ? who : client_identity_of(client, uid, NULL, 0);
}

afs_err rmt_set_pag(struct rpc_call *call, const struct rmt_set_pag_in *in, struct rmt_set_pag_out *out)
{
	if (!proven(call->peer, &in->cred)) {
		out->errornumber = EPERM;
		return AFS_OK;
	}
	out->newpag = (int32_t)client_pag_new(call->service, (uid_t)in->cred.uid);
	out->errornumber = out->newpag ? 0 : ENOMEM;
	return AFS_OK;
}

afs_err rmt_pioctl(struct rpc_call *call, const struct rmt_pioctl_in *in, struct rmt_pioctl_out *out)
{
	if (!proven(call->peer, &in->cred)) {
		log_warn("pioctl.caller_unproven uid=%d port=%u", in->cred.uid, call->peer.port);
		out->errornumber = EPERM;
		return AFS_OK;
	}
	const char *path = in->path.p;
	struct pioctl x = {.client = call->service, .uid = (uid_t)in->cred.uid, .who = who_of(call->service, &in->cred),
		.path = path && *path && strcmp(path, "__FOO__") != 0 ? path : NULL, .follow = in->follow, .cmd = in->cmd,
		.in = in->InData, .arena = call->arena};
	out->errornumber = pioctl_run(&x);
	if (!out->errornumber)
		out->OutData = x.out;
	return AFS_OK;
}
