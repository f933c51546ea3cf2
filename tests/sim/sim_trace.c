/* SPDX-License-Identifier: BSD-2-Clause
 * See sim_trace.h. */
#include "tests/sim/sim_trace.h"

#include "rx/core/inside.h"

void sim_trace_init(struct sim_trace *t, mono_ns start) { *t = (struct sim_trace){.start = start}; }
void sim_trace_fini(struct sim_trace *t) { buf_fini(&t->text); }
const char *sim_trace_get(struct sim_trace *t) { return t->text.data ? t->text.data : ""; }

/* Serials as #1, #2, ... per sender and connection. */
static rx_serial relative(
	struct sim_trace *t, uint32_t port, uint32_t cid, rx_serial serial, bool learn)
{
	cid &= ~UINT32_C(3);
	for (int i = 0; i < t->sender_count; i++)
		if (t->senders[i].port == port && t->senders[i].cid == cid)
			return serial - t->senders[i].first + 1;
	if (!learn || t->sender_count == SIM_TRACE_SENDERS)
		return serial;
	t->senders[t->sender_count].port = port;
	t->senders[t->sender_count].cid = cid;
	t->senders[t->sender_count++].first = serial;
	return 1;
}

static void ack_body(struct sim_trace *t, uint32_t to_port, const struct rx_header *h,
	const uint8_t *p, size_t n)
{
	static const char *const reasons[] = {"?", "REQUESTED", "DUPLICATE", "OUT_OF_SEQUENCE",
		"EXCEEDS_WINDOW", "NOSPACE", "PING", "PING_RESPONSE", "DELAY", "IDLE"};
	struct rx_ack a;
	if (!rx_ack_parse(p, n, &a)) {
		buf_puts(&t->text, " (short)");
		return;
	}
	buf_printf(&t->text, " %s", a.reason < ARRAY_SIZE(reasons) ? reasons[a.reason] : "?");
	if (a.serial)
		buf_printf(&t->text, " of #%u", relative(t, to_port, h->cid, a.serial, false));
	buf_printf(&t->text, " first %u", a.first);
	if (a.count) {
		buf_puts(&t->text, " list ");
		for (uint32_t i = 0; i < a.count; i++)
			buf_putc(&t->text, a.octets[i] ? '+' : '-');
	}
	buf_printf(&t->text, " window %u size %u", a.window, a.max_mtu);
}

void sim_trace_line(struct sim_trace *t, mono_ns now, struct rx_addr from, struct rx_addr to,
	const uint8_t *p, size_t n, bool lost)
{
	static const char *const types[] = {"?", "DATA", "ACK", "BUSY", "ABORT", "ACKALL",
		"CHALLENGE", "RESPONSE", "DEBUG", "PARAMS", "?", "?", "?", "VERSION"};
	struct rx_header h;
	rx_header_get(p, &h);
	buf_printf(&t->text, "%9.3f ms  %u > %u  %s", (double)(now - t->start) / 1e6, from.port,
		to.port, h.type < ARRAY_SIZE(types) ? types[h.type] : "?");
	if (h.call)
		buf_printf(&t->text, " call %u/%u", h.call, h.cid & 3);
	if (h.seq)
		buf_printf(&t->text, " seq %u", h.seq);
	buf_printf(&t->text, " #%u", relative(t, from.port, h.cid, h.serial, true));
	if (h.flags & RX_F_LAST)
		buf_puts(&t->text, " LAST");
	if (h.flags & RX_F_REQUEST_ACK)
		buf_puts(&t->text, " ASK");
	p += RX_HEADER;
	n -= RX_HEADER;
	if (h.type == RX_ACK)
		ack_body(t, to.port, &h, p, n);
	else if (h.type == RX_ABORT && n >= 4)
		buf_printf(&t->text, " code %d", (int32_t)get32(p));
	else if (n)
		buf_printf(&t->text, " %zu bytes", n);
	buf_puts(&t->text, lost ? "  LOST\n" : "\n");
}
