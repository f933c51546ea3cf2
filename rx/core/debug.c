/* SPDX-License-Identifier: BSD-2-Clause
 *
 * DEBUG answers, which rxdebug and its kin ask for (rx.md §15.3).
 *
 * They name callers and what they do, so only askers on this machine get the whole; others learn that
 * an Rx port is here and see empty lists, at which every tool stops.  What the core does not know
 * (threads, descriptors) is 0.  Every answer is built in zeroed memory. */
#include "rx/core/inside.h"

#include <string.h>

enum { GETSTATS = 1, GETCONN = 2, GETALLCONN = 3, RXSTATS = 4, GETPEER = 5 };
enum { STATS_BYTES = 56, CONN_BYTES = 176, PEER_BYTES = 132, RXSTATS_BYTES = 284 };
_Static_assert(RX_HEADER + RXSTATS_BYTES <= RX_RAW_MAX, "the longest answer fits");

enum call_state { NOT_INIT, PRECALL, ACTIVE, DALLY, HOLD };
enum call_mode { MODE_NONE, SENDING, RECEIVING, MODE_ERROR, MODE_EOF };
enum call_flag { READER_WAIT = 1, WINDOW_SEND_WAIT = 4, THREAD_WAIT = 16, RECEIVE_DONE = 32 };
enum conn_flag { NEW_CALL_WAITING = 1, DESTROY_ME = 2, HAS_CKSUM = 4, KNOWS_WINDOW = 8, BUSY = 32 };

static void put16(uint8_t *p, uint32_t v)
{
	v = MIN(v, (uint32_t)UINT16_MAX);
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

static struct rx_load load_of(const struct rx_endpoint *ep)
{
	struct rx_load load = {0};
	if (ep->config.load)
		ep->config.load(ep->config.load_ctx, &load);
	return load;
}

static uint32_t get_stats(struct rx_endpoint *ep, bool full, uint8_t *out)
{
	out[14] = 'S'; /* knows every request there is */
	if (full) {
		struct rx_buf_pool_stats pool;
		rx_buf_pool_stats(ep->config.pool, &pool);
		const struct rx_load load = load_of(ep);
		put32(out, (uint32_t)((pool.max_bytes - pool.used_bytes) / 2048));
		put32(out + 8, (uint32_t)rx_stat_get(ep, RX_ST_calls_in));
		out[12] = rx_buf_pool_fill(ep->config.pool) >= 90;
		out[13] = (uint8_t)MIN(load.descriptors, (uint32_t)UINT8_MAX);
		put32(out + 16, load.calls_waiting);
		put32(out + 20, load.threads_idle);
		put32(out + 24, load.calls_waited);
		put32(out + 28, (uint32_t)(pool.max_bytes / 2048));
	}
	return STATS_BYTES;
}

static enum call_state state_of(const struct rx_channel *ch)
{
	const struct rx_call *call = ch->call;
	if (!call)
		return ch->end == RX_END_DONE ? DALLY : NOT_INIT;
	if (call->is_server && !call->delivered)
		return PRECALL;
	return call->is_server && call->app_done ? HOLD : ACTIVE;
}

static bool received_all(const struct rx_call *call)
{
	return call->in_last && call->in_next > call->in_last;
}

static enum call_mode mode_of(const struct rx_call *call)
{
	if (!call)
		return MODE_NONE;
	if (call->ended)
		return MODE_ERROR;
	bool sends = call->is_server ? call->out_end > 1 : !call->out_closed;
	if (!sends && rx_call_received_all(call))
		return MODE_EOF;
	return sends ? SENDING : RECEIVING;
}

static uint8_t flags_of(const struct rx_call *call)
{
	unsigned f = 0;
	if (call->out_end > call->out_next && call->out_next - call->out_una >= call->window)
		f |= WINDOW_SEND_WAIT;
	else if (call->delivered && rx_call_waits_for_peer(call))
		f |= READER_WAIT;
	if (call->is_server && !call->delivered && call->conn->known)
		f |= THREAD_WAIT;
	if (received_all(call))
		f |= RECEIVE_DONE;
	return (uint8_t)f;
}

static uint8_t conn_flags_of(const struct rx_conn *c)
{
	unsigned f = (c->gone ? DESTROY_ME : 0) | (c->index ? HAS_CKSUM : 0);
	for (int i = 0; i < 4; i++)
		f |= (c->chan[i].peer_window ? KNOWS_WINDOW : 0) | (c->chan[i].busy ? BUSY : 0) |
		     (c->chan[i].lingering ? NEW_CALL_WAITING : 0);
	return (uint8_t)f;
}

static bool is_interesting(const struct rx_conn *c)
{
	for (int i = 0; i < 4; i++)
		if (c->chan[i].call)
			return true;
	return false;
}

static void put_conn(uint8_t *out, const struct rx_conn *c)
{
	put32(out, c->peer->addr.ip);
	put32(out + 4, c->cid);
	put32(out + 8, c->serial);
	put32(out + 28, c->failed ? (uint32_t)c->code : 0);
	put16(out + 32, c->peer->addr.port);
	out[34] = conn_flags_of(c);
	out[35] = c->is_server;
	out[36] = c->index;
	for (int i = 0; i < 4; i++) {
		const struct rx_channel *ch = &c->chan[i];
		put32(out + 12 + 4 * i, ch->number);
		out[40 + i] = (uint8_t)state_of(ch);
		out[44 + i] = (uint8_t)mode_of(ch->call);
		if (ch->call)
			out[48 + i] = flags_of(ch->call);
		if (ch->call)
			out[52 + i] = (uint8_t)((ch->call->in_head ? 1 : 0) |
						(ch->call->out_end != ch->call->out_una ? 2 : 0));
	}
	if (c->caller.sec_class != RX_SEC_NULL) {
		bool kad = c->caller.sec_class == RX_SEC_RXKAD ||
			   c->caller.sec_class == RX_SEC_RXKAD_CRYPT;
		out[56] = kad ? 3 : 4;
		out[57] = (uint8_t)c->caller.level;
		put32(out + 68, c->caller.authenticated ? 2 | 8 : 0);
		put32(out + 72, clk_wire_sec(c->caller.expires));
		put32(out + 76, (uint32_t)c->data_in);
		put32(out + 80, (uint32_t)c->data_out);
		put32(out + 84, (uint32_t)c->bytes_in);
		put32(out + 88, (uint32_t)c->bytes_out);
	}
	put32(out + 132, c->epoch);
	put32(out + 136, c->peer->size_send);
}

/* The index-th of those wanted.  The tool asks one by one; a walk each time is its price. */
static uint32_t get_conn(struct rx_endpoint *ep, bool full, bool all, uint32_t index, uint8_t *out)
{
	struct map_node *next;
	size_t cursor = 0;
	for (struct map_node *n = full ? map_walk(&ep->conns, &cursor, NULL) : NULL; n; n = next) {
		next = map_walk(&ep->conns, &cursor, n->next);
		const struct rx_conn *c = container_of(n, struct rx_conn, node);
		if (c->gone || (!all && !is_interesting(c)) || index--)
			continue;
		put_conn(out, c);
		return CONN_BYTES;
	}
	put32(out + 4, UINT32_MAX); /* end of list */
	return CONN_BYTES;
}

static void put_peer(uint8_t *out, const struct rx_peer *p, mono_ns now)
{
	put32(out, p->addr.ip);
	put16(out + 4, p->addr.port);
	put16(out + 6, p->size_own);
	put32(out + 8, p->conns ? 0 : (uint32_t)((now - p->idle_since) / NS_PER_SEC));
	put16(out + 12, p->conns);
	put32(out + 24, (uint32_t)(p->srtt * 8 / 1000000));
	put32(out + 28, (uint32_t)(p->rttvar * 4 / 1000000));
	put32(out + 40, (uint32_t)p->data_out);
	put32(out + 44, (uint32_t)p->data_resent);
	put16(out + 60, p->size_send);
	put16(out + 62, p->size_limit);
	put16(out + 64, 1); /* never more than one packet in a datagram */
	put16(out + 66, 1);
	put16(out + 68, p->size_send);
	put16(out + 70, p->cwnd ? p->cwnd : RX_CWND_START);
	put16(out + 72, 1);
	put64(out + 76, p->sent_bytes);
	put64(out + 84, p->received_bytes);
}

static uint32_t get_peer(struct rx_endpoint *ep, bool full, uint32_t index, uint8_t *out)
{
	struct map_node *next;
	size_t cursor = 0;
	for (struct map_node *n = full ? map_walk(&ep->peers, &cursor, NULL) : NULL; n; n = next) {
		next = map_walk(&ep->peers, &cursor, n->next);
		if (index--)
			continue;
		put_peer(out, container_of(n, struct rx_peer, node), ep->now);
		return PEER_BYTES;
	}
	put32(out, UINT32_MAX);
	return PEER_BYTES;
}

static void put_time(uint8_t *out, uint64_t ns)
{
	put32(out, (uint32_t)(ns / NS_PER_SEC));
	put32(out + 4, (uint32_t)(ns % NS_PER_SEC / 1000));
}

static uint32_t rx_statistics(struct rx_endpoint *ep, uint8_t *out)
{
	/* rx.md §15.3.  Words 3, 4, 7, 8, 47, 62, 64 and 65 count what cannot happen here. */
	static const struct {
		uint8_t word;
		enum rx_stat_index stat;
	} rows[] = {
		{1, RX_ST_no_buffer},
		{5, RX_ST_malformed},
		{6, RX_ST_bogus_host},
		{25, RX_ST_read_ack},
		{26, RX_ST_data_duplicate},
		{27, RX_ST_spurious},
		{41, RX_ST_sent_ack},
		{42, RX_ST_pings_out},
		{43, RX_ST_sent_abort},
		{44, RX_ST_sent_busy},
		{46, RX_ST_data_resent},
		{48, RX_ST_acks_ignored},
		{55, RX_ST_rtt_samples},
		{63, RX_ST_late},
		{66, RX_ST_refused_overload},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		put32(out + 4 * rows[i].word, (uint32_t)rx_stat_get(ep, rows[i].stat));
	for (unsigned i = 0; i < RX_VERSION; i++) {
		put32(out + 4 * (11 + i), (uint32_t)rx_stat_get(ep, RX_ST_read_data + i));
		put32(out + 4 * (28 + i), (uint32_t)rx_stat_get(ep, RX_ST_sent_data + i));
	}
	struct rx_buf_pool_stats pool;
	rx_buf_pool_stats(ep->config.pool, &pool);
	put32(out, (uint32_t)pool.gets);
	uint64_t dropped = rx_stat_get(ep, RX_ST_no_buffer);
	put32(out + 4 * 2, (uint32_t)(pool.refused > dropped ? pool.refused - dropped : 0));
	const struct rx_load load = load_of(ep);
	put32(out + 4 * 9, (uint32_t)load.waits);
	put32(out + 4 * 10, (uint32_t)load.send_waits);
	put32(out + 4 * 24,
		(uint32_t)(rx_stat_get(ep, RX_ST_data_in) - rx_stat_get(ep, RX_ST_data_duplicate)));
	put32(out + 4 * 45,
		(uint32_t)(rx_stat_get(ep, RX_ST_data_out) - rx_stat_get(ep, RX_ST_data_resent)));
	put_time(out + 4 * 49, rx_stat_get(ep, RX_ST_rtt_total_ns));
	put_time(out + 4 * 53, rx_stat_get(ep, RX_ST_rtt_max_ns));
	if (rx_stat_get(ep, RX_ST_rtt_samples))
		put_time(out + 4 * 51, rx_stat_get(ep, RX_ST_rtt_min_ns));
	else
		put32(out + 4 * 51, 9999999); /* the least, as long as none is known */
	put32(out + 4 * 61, (uint32_t)load.send_failures);
	uint32_t servers = 0, clients = 0, calls = 0;
	struct map_node *next;
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&ep->conns, &cursor, NULL); n; n = next) {
		next = map_walk(&ep->conns, &cursor, n->next);
		const struct rx_conn *c = container_of(n, struct rx_conn, node);
		servers += c->is_server;
		clients += !c->is_server;
		calls += c->live;
	}
	put32(out + 4 * 56, servers);
	put32(out + 4 * 57, clients);
	put32(out + 4 * 58, (uint32_t)ep->peers.count);
	put32(out + 4 * 59, calls + ep->free_calls_count);
	put32(out + 4 * 60, ep->free_calls_count);
	return RXSTATS_BYTES;
}

uint32_t rx_debug_answer(
	struct rx_endpoint *ep, bool on_machine, const uint8_t *body, size_t len, uint8_t *out)
{
	const bool full = on_machine;
	uint32_t type = len >= 8 ? get32(body) : 0, index = len >= 8 ? get32(body + 4) : 0;
	if (type == GETSTATS)
		return get_stats(ep, full, out);
	if (type == GETCONN || type == GETALLCONN)
		return get_conn(ep, full, type == GETALLCONN, index, out);
	if (type == RXSTATS && full)
		return rx_statistics(ep, out);
	if (type == GETPEER)
		return get_peer(ep, full, index, out);
	put32(out, (uint32_t)-8); /* no such request */
	put32(out + 4, (uint32_t)-8);
	return 8;
}
