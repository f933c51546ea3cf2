/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A UDP socket that moves datagrams in batches, in and out of counted buffers.
 *
 * Received: each datagram stands at the start of a buffer of its own, also when the kernel gave
 * several as one (UDP_GRO): the buffers of a receive are laid out for the size of segment seen last,
 * so the kernel itself cuts.  Sent: neighbours of one size to one peer leave as one (UDP_SEGMENT).
 * Not thread safe; nothing waits, except a send for up to UDP_SEND_WAIT_MS when the queue is full. */
#pragma once
#include "cell/base/err.h"
#include "rx/core/core.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum {
	UDP_SLOTS_MIN = 4, UDP_SLOTS_MAX = 16, /* messages per receive */
	UDP_SEGMENTS = 64,                     /* datagrams per message; the kernel's own limit */
	UDP_BATCH = 64,                        /* datagrams per send */
	UDP_SEND_WAIT_MS = 10,
	UDP_SOCKET_BUFFER = 8 << 20,
};

struct udp_config {
	uint32_t ip;   /* host order; 0: every address */
	uint16_t port; /* 0: the system chooses */
	uint32_t max_datagram;
	bool plain;  /* no UDP_SEGMENT and no UDP_GRO */
	bool single; /* no sendmmsg and no recvmmsg */
	struct rx_buf_pool *pool;
};

struct udp_slot {
	struct rx_buf *buf[UDP_SEGMENTS + 1];
	struct iovec iov[UDP_SEGMENTS + 1];
	uint32_t segment; /* bytes of each piece but the last */
	unsigned count;   /* pieces */
	struct sockaddr_in from;
	_Alignas(struct cmsghdr) char control[128];
};

struct udp {
	int fd;
	uint16_t port; /* bound */
	bool gso, gro, many; /* what the kernel does, as far as is known: UDP_SEGMENT, UDP_GRO, *mmsg */
	uint32_t max_datagram;
	struct rx_buf_pool *pool;
	struct udp_slot *slots;
	unsigned slot_count;   /* used at this time */
	uint32_t segment;      /* layout for the next receive */
	unsigned misfits;      /* messages in a row that another layout would have suited */
	/* local errors that wait to be told: the endpoint must not hear of them while its datagrams are
	 * being sent; what does not fit is forgotten, silence says the same later */
	struct {
		struct rx_addr peer;
		bool too_big;
	} lost[2 * UDP_BATCH];
	unsigned lost_count;
	/* counters */
	uint64_t receives, sends, messages_in, messages_out, copied, dropped;
};

typedef void udp_sink(void *ctx, const struct rx_datagram *in);
typedef void udp_refused(void *ctx, struct rx_addr peer, bool too_big);

/* AFS_EADDRINUSE, AFS_EACCESS, AFS_ENOMEM, AFS_EINVAL (no such address); logged. */
afs_err udp_open(struct udp *u, const struct udp_config *config);
void udp_close(struct udp *u);
/* True when more may be there.  Local errors go to `refused`. */
bool udp_receive(struct udp *u, udp_sink *sink, udp_refused *refused, void *ctx);
/* `refused` is called after everything was sent. */
void udp_send(struct udp *u, const struct rx_datagram *list, unsigned n, udp_refused *refused, void *ctx);
