/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Datagrams as lines a person reads.  Times are relative to the start, serials to each sender's
 * first on the connection, so a trace does not depend on the random numbers of a run. */
#pragma once
#include "cell/base/buf.h"
#include "rx/core/core.h"

enum { SIM_TRACE_SENDERS = 32 };
struct sim_trace {
	struct buf text;
	mono_ns start;
	struct {
		uint32_t port, cid;
		rx_serial first;
	} senders[SIM_TRACE_SENDERS];
	int sender_count;
};

void sim_trace_init(struct sim_trace *t, mono_ns start);
void sim_trace_fini(struct sim_trace *t);
void sim_trace_line(struct sim_trace *t, mono_ns now, struct rx_addr from, struct rx_addr to,
	const uint8_t *p, size_t n, bool lost);
const char *sim_trace_get(struct sim_trace *t);
