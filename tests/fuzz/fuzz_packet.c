/* SPDX-License-Identifier: BSD-2-Clause
 * What Rx reads outside of any conversation: headers, acknowledgements, and DEBUG and VERSION requests to a
 * port that has something to tell.  The first byte chooses. */
#include "rx/core/inside.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t fixed(void *ctx) { return (void)ctx, 0x1234567; }
static wall_ns wall(void *ctx) { return (void)ctx, SEC(1700000000); }
static struct rx_sec *nobody(void *ctx, struct rx_addr from, uint16_t service, uint8_t index)
{
	(void)ctx, (void)from, (void)service, (void)index;
	return NULL;
}

static void ask_port(const uint8_t *p, size_t n, bool near)
{
	static struct rx_endpoint *ep;
	static struct rx_buf_pool *pool;
	static struct rx_conn *conn;
	if (!ep) {
		pool = rx_buf_pool_new(16 << 20);
		const struct rx_endpoint_config c = {.pool = pool, .random = fixed, .wall = wall, .version = "fuzz", .accept = nobody};
		ep = rx_endpoint_new(&c, SEC(1));
		const struct rx_conn_config cc = {.peer = {.ip = 0x0a000001, .port = 7000}, .service = 1, .sec = rx_null_new()};
		conn = rx_conn_new(ep, SEC(1), &cc);
		if (!conn)
			__builtin_trap();
	}
	struct rx_buf *b = rx_buf_get(pool, RX_BUF_MAX);
	if (!b || n > 1400)
		__builtin_trap();
	const struct rx_header h = {.epoch = 1, .cid = 4, .serial = 1, .type = n % 2 ? RX_DEBUG : RX_VERSION, .flags = RX_F_CLIENT};
	rx_header_put(b->data, &h);
	memcpy(b->data + RX_HEADER, p, n);
	const struct rx_datagram d = {.peer = {.ip = near ? 0x7f000001 : 0x0b000001, .port = 7009}, .buf = b, .len = (uint32_t)(RX_HEADER + n)};
	rx_endpoint_receive(ep, SEC(2), &d);
	rx_buf_unref(b);
	struct rx_datagram out;
	size_t sent = 0;
	while (rx_endpoint_next_datagram(ep, SEC(2), &out))
		sent += out.len;
	if (!near && sent > 3 * (RX_HEADER + n) + 200)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 1400)
		return 0;
	const uint8_t *p = data + 1;
	const size_t n = size - 1;
	struct rx_ack ack;
	switch (data[0] & 3) {
	case 0: {
		struct rx_header h;
		uint8_t again[RX_HEADER];
		if (n < RX_HEADER)
			return 0;
		rx_header_get(p, &h);
		rx_header_put(again, &h);
		if (memcmp(p, again, RX_HEADER) != 0)
			__builtin_trap();
		break;
	}
	case 1:
		if (rx_ack_parse(p, n, &ack) && (ack.count > 255 || (ack.count && (ack.octets < p || ack.octets + ack.count > p + n))))
			__builtin_trap();
		break;
	default:
		ask_port(p, n, data[0] & 1);
	}
	return 0;
}
