/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Cache-manager calls of stock tools over UDP (RMTSYS): tokens and cells, so that stock aklog,
 * tokens, unlog, vos and pts work with tokens that this cache manager holds when AFSSERVER names
 * this machine.  Calls that are not here answer EINVAL, as any cache manager does for what it lacks.
 *
 * Callers state who they are; that is believed only from the loopback network, and only when the
 * kernel says that the socket the call came from belongs to that user (or to root). */
#pragma once
#include "cell/proto/rmt.h"
#include "client/client.h"

/* The service, for a port on the loopback address.  `client` outlives the port. */
void pioctl_service(struct client *client, struct rpc_service *out);

/* Who could have sent from `addr` (a loopback address of this machine), as `table` (/proc/net/udp or
 * udp6) says: HIS when `uid` or root owns each socket that may send from there.  Sockets can share a
 * port, a general one with one of a single address, so one that is another's is enough to doubt it. */
enum pioctl_socket { PIOCTL_SOCKET_NONE, PIOCTL_SOCKET_HIS, PIOCTL_SOCKET_OTHERS };
enum pioctl_socket pioctl_socket_of(const char *table, struct rx_addr addr, uid_t uid);

/* One call, without the network.  `in` and what comes out are the blobs of pioctl.md; `out` is bytes in `arena`. */
struct pioctl {
	struct client *client;
	uid_t uid; /* of the caller */
	uid_t who; /* whose tokens count: his PAG, or his uid (client_identity) */
	const char *path; /* as its user names it, absolute; NULL: none */
	bool follow;
	uint32_t cmd;
	struct xdr_bytes in;
	struct arena *arena;
	struct xdr_bytes out;
};
/* Gives 0 or the errno that the tool sees. */
int pioctl_run(struct pioctl *x);
/* paths.c: what is not about tokens. */
int pioctl_more(struct pioctl *x, uint32_t call);
/* The part of `path` inside the mount; false: it is outside.  rmtsys.c. */
bool pioctl_inside(struct client *client, const char *path, char *rest, size_t cap);
