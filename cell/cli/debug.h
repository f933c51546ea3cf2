/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What udebug and rxdebug share, and the answers that rxdebug reads. */
#pragma once
#include "cell/cli/cli.h"

#include <netinet/in.h>
#include <stdint.h>

enum { VL_UDP = 7003, FS_UDP = 7000 };

/* A host by name or address, and a port by number or by a name of an AFS service; *port stays when `service` is
 * NULL.  Told: CLI_FAILED. */
int debug_where(struct cli *c, const char *host, const char *service, uint32_t *ip, uint16_t *port);

/* Does an Rx port answer within a few seconds? */
bool debug_answers(uint32_t ip, uint16_t port);
/* Seconds that this clock is ahead of that of a database server.  False: no answer. */
bool debug_clock(uint32_t ip, uint16_t port, int64_t *ahead);

/* A connection of the peer, as a DEBUG answer tells it. */
struct debug_conn {
	uint32_t ip, cid, epoch, serial, call[4], error;
	uint16_t port;
	uint8_t flags, type, security, state[4], mode[4], call_flags[4], other[4];
	uint8_t sec_type, sec_level;
	uint32_t sec_flags, expires, packets_in, packets_out, bytes_in, bytes_out, mtu;
};
struct debug_peer {
	uint32_t ip, rtt_ms, dev_ms, sent, resent, in_hi, in_lo, out_hi, out_lo;
	uint32_t timeout_s, timeout_us, in_skew, out_skew;
	uint16_t port, if_mtu, nat_mtu, max_mtu, mtu, window, grams, if_grams, max_grams;
};
/* `n` bytes of a body.  False: the end of the list, or no such answer. */
bool debug_read_conn(const uint8_t *p, size_t n, struct debug_conn *out);
bool debug_read_peer(const uint8_t *p, size_t n, struct debug_peer *out);
