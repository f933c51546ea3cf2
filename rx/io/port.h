/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A UDP port: socket, I/O thread, the endpoint of rx/core on it, its services and a share of the
 * workers.  The only sockets, threads and real clocks of the transport. */
#pragma once
#include "rx/rpc/rpc.h"

struct rpc_workers; /* a bounded pool of threads that run handlers; grows only while calls wait */

struct rpc_workers *rpc_workers_new(const char *name, unsigned max);
void rpc_workers_free(struct rpc_workers *w);

struct rpc_port_config {
	const char *name;      /* "fileserver": thread name and logs */
	uint32_t ip;           /* host order; 0: every address */
	uint16_t port;         /* 0: the system chooses */
	const struct rpc_service *services; /* copied */
	size_t service_count;
	struct rx_sec_acceptor acceptor; /* all zero: rxnull only */
	struct rpc_workers *workers; /* NULL for a port that serves nothing */
	struct rx_buf_pool *pool;    /* shared by all ports */
	uint32_t max_datagram;       /* 0: default */
	uint32_t abort_threshold;    /* rx_endpoint_config */
	uint32_t conns_max;          /* likewise: connections of clients kept, about 900 bytes each */
	bool plain;                  /* for networks and kernels that mistreat UDP_SEGMENT and UDP_GRO: use neither */
	bool single; /* one datagram for each system call, as on kernels without sendmmsg and recvmmsg */
};
/* Binds and starts.  AFS_EADDRINUSE (says who holds it where the system tells), AFS_EACCESS, AFS_ENOMEM. */
afs_err rpc_port_open(const struct rpc_port_config *config, struct rpc_port **out);
/* Ends its calls with RX_RESTARTING, calls made from it with AFS_ECANCELLED, and waits until handlers
 * and callers have let go of theirs.  rpc_conns of the port may live longer: calls on them fail. */
void rpc_port_close(struct rpc_port *port);
uint16_t rpc_port_number(const struct rpc_port *port);
void rpc_port_stats(const struct rpc_port *port, struct rx_stats *out);
/* Calls running and waiting, for status. */
void rpc_port_load(const struct rpc_port *port, unsigned *running, unsigned *waiting);
