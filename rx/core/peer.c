/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Addresses.  A peer keeps what its connections share: round trip, sizes, proof that it really is
 * at that address, and where the last call's congestion window stood.
 *
 * Until a peer has echoed a serial that only it could have seen (or answered a challenge), what goes
 * to it is held to three times what came from it and 200 bytes.  Serials of server connections start
 * at random for this reason.  A peer that we called of our own accord is not held.
 *
 * A host sums up its peers, since ports cost nothing: it has calls or bytes only while it has peers. */
#include "rx/core/inside.h"

uint64_t rx_addr_hash(const struct map *m, struct rx_addr a)
{
	return map_hash_u64(m, (uint64_t)a.ip << 16 | a.port);
}

static struct rx_peer *find(struct rx_endpoint *ep, struct rx_addr addr, uint64_t hash)
{
	for (struct map_node *n = map_first(&ep->peers, hash); n; n = map_next(n)) {
		struct rx_peer *p = container_of(n, struct rx_peer, node);
		if (rx_addr_same(p->addr, addr))
			return p;
	}
	return NULL;
}

static struct rx_host *host_get(struct rx_endpoint *ep, uint32_t ip)
{
	const uint64_t hash = map_hash_u64(&ep->hosts, ip);
	for (struct map_node *n = map_first(&ep->hosts, hash); n; n = map_next(n)) {
		struct rx_host *h = container_of(n, struct rx_host, node);
		if (h->ip == ip) {
			h->peers++;
			return h;
		}
	}
	struct rx_host *h = mem_new(struct rx_host);
	if (!h || !map_insert(&ep->hosts, &h->node, hash)) {
		mem_free(h);
		return NULL;
	}
	h->ip = ip;
	h->peers = 1;
	return h;
}

void rx_peer_free(struct rx_endpoint *ep, struct rx_peer *p)
{
	if (--p->host->peers == 0) {
		map_remove(&ep->hosts, &p->host->node);
		mem_free(p->host);
	}
	mem_free(p);
}

static void forget(struct rx_endpoint *ep, struct rx_peer *p)
{
	list_remove(&p->idle);
	ep->idle_peers_count--;
	map_remove(&ep->peers, &p->node);
	rx_peer_free(ep, p);
}

struct rx_peer *rx_peer_get(struct rx_endpoint *ep, struct rx_addr addr, mono_ns now)
{
	(void)now;
	uint64_t hash = rx_addr_hash(&ep->peers, addr);
	struct rx_peer *p = find(ep, addr, hash);
	if (p) {
		if (p->conns++ == 0) {
			list_remove(&p->idle);
			ep->idle_peers_count--;
		}
		return p;
	}
	p = mem_new(struct rx_peer);
	if (!p)
		return NULL;
	p->host = host_get(ep, addr.ip);
	if (!p->host) {
		mem_free(p);
		return NULL;
	}
	p->addr = addr;
	p->conns = 1;
	list_init(&p->idle);
	list_init(&p->blocked);
	p->on_machine = rx_addr_is_loopback(addr);
	p->size_own = ep->config.max_datagram;
	if (p->on_machine && !ep->config.loopback_big)
		p->size_own = MIN(p->size_own, (uint32_t)RX_SAFE_DATAGRAM);
	p->size_limit = p->size_send = MIN(p->size_own, (uint32_t)RX_SAFE_DATAGRAM);
	p->size_proven = p->on_machine ? p->size_own : p->size_send;
	p->size_in = p->size_proven;
	p->probe.at = MONO_NEVER;
	if (!map_insert(&ep->peers, &p->node, hash)) {
		rx_peer_free(ep, p);
		return NULL;
	}
	return p;
}

void rx_peer_put(struct rx_endpoint *ep, struct rx_peer *p, mono_ns now)
{
	if (--p->conns)
		return;
	p->idle_since = now;
	list_push_back(&ep->idle_peers, &p->idle);
	if (++ep->idle_peers_count > RX_PEERS_IDLE_MAX)
		forget(ep, list_entry(list_first(&ep->idle_peers), struct rx_peer, idle));
	else if (!ep->peers_timer.pos)
		rx_heap_set(&ep->heap, &ep->peers_timer, now + RX_PEER_IDLE_NS);
}

void rx_peer_reap(struct rx_endpoint *ep, mono_ns now)
{
	mono_ns next = MONO_NEVER;
	list_each(e, &ep->idle_peers)
	{
		struct rx_peer *p = list_entry(e, struct rx_peer, idle);
		next = p->idle_since + RX_PEER_IDLE_NS;
		if (next > now)
			break;
		forget(ep, p);
		next = MONO_NEVER;
	}
	rx_heap_set(&ep->heap, &ep->peers_timer, next);
}

bool rx_peer_allows(const struct rx_peer *p, const struct rx_conn *c, size_t len, size_t reserve)
{
	if (p->proven || (p->chosen && !c->is_server))
		return true;
	return p->bytes_out + len + reserve <= RX_AMPLIFY * p->bytes_in + RX_AMPLIFY_FREE;
}

/* The layer that was held back comes again, in the order in which it was stopped. */
void rx_peer_unblock(struct rx_endpoint *ep, struct rx_peer *p)
{
	(void)ep;
	list_each(e, &p->blocked)
	{
		struct rx_call *call = list_entry(e, struct rx_call, tx);
		rx_call_tx(call);
	}
}

void rx_peer_prove(struct rx_endpoint *ep, struct rx_peer *p)
{
	if (p->proven)
		return;
	p->proven = true;
	rx_peer_unblock(ep, p);
}

/* What a stock sender does with a trailer, rx.md §10.2, for single packets: but what it announces is only
 * its own word, and the path has one too (probe.c). */
void rx_peer_trailer(struct rx_peer *p, mono_ns now, const struct rx_ack *a)
{
	p->knows_size = true;
	uint32_t limit = a->has_mtu ? MIN(a->max_mtu, a->if_mtu) : (uint32_t)RX_SAFE_DATAGRAM;
	limit = MIN(limit, p->size_own);
	if (limit > p->size_limit && limit > p->size_proven && !p->probe.size) {
		p->probe.at = now;
		p->probe.refused = 0;
	}
	p->size_limit = limit;
	p->size_send = MIN(limit, p->size_proven);
}

void rx_peer_lower_size(struct rx_endpoint *ep, struct rx_peer *p, mono_ns now)
{
	if (p->size_proven <= RX_SAFE_DATAGRAM)
		return;
	RX_COUNT(ep, sizes_lowered);
	p->size_proven = RX_SAFE_DATAGRAM;
	p->size_send = MIN(p->size_limit, p->size_proven);
	p->probe.size = 0;
	p->probe.at = p->on_machine ? MONO_NEVER : now + RX_PROBE_RAISE_NS;
}

/* --- bounds -------------------------------------------------------------------------------- */

bool rx_peer_admits_call(const struct rx_endpoint *ep, const struct rx_peer *p)
{
	const struct rx_endpoint_config *c = &ep->config;
	return p->calls < c->calls_per_peer_max && p->host->calls < c->calls_per_host_max &&
	       ep->server_calls < c->calls_max;
}

bool rx_peer_admits_bytes(const struct rx_endpoint *ep, const struct rx_peer *p, size_t len, bool in_order)
{
	const struct rx_endpoint_config *c = &ep->config;
	const size_t times = in_order ? 2 : 1;
	return p->held + len <= times * c->peer_bytes_max && p->host->held + len <= times * c->host_bytes_max &&
	       ep->held + len <= ep->held_max / 2 * times;
}

void rx_peer_calls(struct rx_endpoint *ep, struct rx_peer *p, int change)
{
	p->calls += (uint32_t)change;
	p->host->calls += (uint32_t)change;
	ep->server_calls += (uint32_t)change;
}

void rx_peer_held(struct rx_endpoint *ep, struct rx_peer *p, size_t more, size_t less)
{
	p->held += more - less;
	p->host->held += more - less;
	ep->held += more - less;
}
