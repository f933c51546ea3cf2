/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections: finding and making them, the handshake, aborts, and what is said on behalf of calls
 * that are over.
 *
 * The highest call number of each channel is kept as long as the connection lives: that is what
 * makes a call run at most once.  A finished call leaves only its channel's few words behind, from
 * which late duplicates are answered. */
#include "rx/core/inside.h"

#include <string.h>

/* --- identity ------------------------------------------------------------------------------ */

static uint64_t conn_hash(const struct map *m, uint32_t epoch, uint32_t cid, bool is_server)
{
	return map_hash_u64(m, ((uint64_t)epoch << 32 | cid) ^ is_server);
}

/* rx.md §1.3: with bit 31 of the epoch the address says nothing; without it a server insists on
 * address and port, a client on the port. */
static bool address_fits(const struct rx_conn *c, struct rx_addr from)
{
	if (c->epoch >> 31)
		return true;
	return c->peer->addr.port == from.port && (!c->is_server || c->peer->addr.ip == from.ip);
}

struct rx_conn *rx_conn_find(struct rx_endpoint *ep, const struct rx_header *h, struct rx_addr from)
{
	uint32_t cid = h->cid & ~UINT32_C(3);
	bool is_server = h->flags & RX_F_CLIENT;
	uint64_t hash = conn_hash(&ep->conns, h->epoch, cid, is_server);
	for (struct map_node *n = map_first(&ep->conns, hash); n; n = map_next(n)) {
		struct rx_conn *c = container_of(n, struct rx_conn, node);
		if (c->epoch == h->epoch && c->cid == cid && c->is_server == is_server &&
			address_fits(c, from))
			return c;
	}
	return NULL;
}

rx_serial rx_conn_serial(struct rx_conn *c)
{
	if (++c->serial == 0)
		c->serial = 1;
	return c->serial;
}

void rx_conn_header(struct rx_conn *c, struct rx_header *h, enum rx_type type)
{
	*h = (struct rx_header){
		.epoch = c->epoch,
		.cid = c->cid,
		.serial = rx_conn_serial(c),
		.type = (uint8_t)type,
		.flags = c->is_server ? 0 : RX_F_CLIENT,
		.index = c->index,
		.service = c->service,
	};
}

struct rx_conn_id rx_conn_id(const struct rx_conn *c)
{
	struct rx_conn_id id = {
		.epoch = c->epoch, .cid = c->cid, .service = c->service, .index = c->index};
	for (int i = 0; i < 4; i++)
		id.call_numbers[i] = c->chan[i].number;
	return id;
}

/* --- birth and death ----------------------------------------------------------------------- */

enum { EVICT_TRIES = 16 };

static void leave_half_open(struct rx_conn *c)
{
	if (!list_linked(&c->half_link))
		return;
	list_remove(&c->half_link);
	c->ep->half_open_count--;
}

/* Does only the core know of it? */
static bool is_unheld(const struct rx_conn *c)
{
	if (c->refs)
		return false;
	for (int i = 0; i < 4; i++) {
		const struct rx_call *call = c->chan[i].call;
		if (c->chan[i].lingering || (call && (call->refs || list_linked(&call->ev) ||
							     c->ep->event_call == call)))
			return false;
	}
	return true;
}

/* The oldest connection goes of those whose address is not proven.  Whoever answers proves his within a
 * round trip; a flood from addresses that are nobody's takes only the places of its own. */
static bool evict_half_open(struct rx_endpoint *ep, mono_ns now)
{
	for (uint32_t tries = MIN(ep->half_open_count, (uint32_t)EVICT_TRIES); tries; tries--) {
		struct rx_conn *c =
			list_entry(list_first(&ep->half_open), struct rx_conn, half_link);
		if (c->peer->proven) {
			leave_half_open(c);
			continue;
		}
		if (is_unheld(c)) {
			RX_COUNT(ep, half_open_evicted);
			rx_conn_free(c, now);
			return true;
		}
		/* the layer above holds it */
		list_remove(&c->half_link);
		list_push_back(&ep->half_open, &c->half_link);
	}
	return false;
}

/* Under pressure those of unproven addresses go first, then those idle longest, anonymous ones before
 * others: a caller who proved a name is not pushed out by strangers. */
static bool make_room(struct rx_endpoint *ep, mono_ns now)
{
	if (ep->conn_count < ep->config.conns_max)
		return true;
	if (evict_half_open(ep, now))
		return true;
	struct list *e = list_first(&ep->idle_anon);
	if (!e)
		e = list_first(&ep->idle_known);
	if (!e)
		return false;
	rx_conn_free(list_entry(e, struct rx_conn, idle_link), now);
	return true;
}

static void note_expiry(struct rx_conn *c, mono_ns now)
{
	const struct rx_endpoint_config *cfg = &c->ep->config;
	c->expires =
		c->sec->expires ? now + (c->sec->expires - cfg->wall(cfg->wall_ctx)) : MONO_NEVER;
}

static struct rx_conn *make(struct rx_endpoint *ep, mono_ns now, struct rx_addr addr,
	uint32_t epoch, uint32_t cid, uint8_t index, uint16_t service, bool is_server,
	struct rx_sec *sec)
{
	if (!make_room(ep, now))
		return NULL;
	struct rx_conn *c = mem_new(struct rx_conn);
	if (!c)
		return NULL;
	if (!rx_heap_reserve(&ep->heap)) {
		mem_free(c);
		return NULL;
	}
	c->peer = rx_peer_get(ep, addr, now);
	if (!c->peer ||
		!map_insert(&ep->conns, &c->node, conn_hash(&ep->conns, epoch, cid, is_server))) {
		if (c->peer)
			rx_peer_put(ep, c->peer, now);
		rx_heap_release(&ep->heap);
		mem_free(c);
		return NULL;
	}
	ep->conn_count++;
	c->ep = ep;
	c->epoch = epoch;
	c->cid = cid;
	c->index = index;
	c->service = service;
	c->is_server = is_server;
	c->last_used = now;
	c->timer.kind = RX_TIMER_CONN;
	list_init(&c->tx_link);
	list_init(&c->idle_link);
	list_init(&c->half_link);
	for (int i = 0; i < RX_CONN_DUES; i++)
		c->due[i] = MONO_NEVER;
	for (int i = 0; i < 4; i++)
		c->chan[i].abort_at = MONO_NEVER;
	/* A server's serials begin where nobody can guess: who echoes one has seen it (peer.c). */
	c->first_serial = is_server ? ep->config.random(ep->config.random_ctx) >> 4 : 0;
	c->serial = c->first_serial;
	c->sec = sec;
	c->known = !is_server || sec->ready;
	c->caller.sec_class = sec->ops->sec_class;
	note_expiry(c, now);
	struct rx_conn_id id = rx_conn_id(c);
	if (sec->ops->bind)
		sec->ops->bind(sec, &id);
	return c;
}

struct rx_conn *rx_conn_accept(struct rx_endpoint *ep, mono_ns now, const struct rx_header *h,
	struct rx_addr from, uint32_t local_ip, struct rx_sec *sec)
{
	struct rx_conn *c = make(
		ep, now, from, h->epoch, h->cid & ~UINT32_C(3), h->index, h->service, true, sec);
	if (!c) {
		rx_sec_free(sec);
		return NULL;
	}
	c->local_ip = local_ip;
	c->heard_home = now;
	c->dead_ns = ep->config.dead_ns;
	c->idle_ns = ep->config.idle_ns;
	rx_conn_settle(c, now);
	if (!c->peer->proven) {
		if (ep->half_open_count >= ep->config.half_open_max)
			evict_half_open(ep, now);
		list_push_back(&ep->half_open, &c->half_link);
		ep->half_open_count++;
	}
	return c;
}

struct rx_conn *rx_conn_new(
	struct rx_endpoint *ep, mono_ns now, const struct rx_conn_config *config)
{
	ep->now = now;
	struct rx_header probe = {.epoch = ep->epoch, .cid = ep->next_cid};
	while (rx_conn_find(ep, &probe, config->peer))
		probe.cid += 4;
	ep->next_cid = probe.cid + 4;
	static const uint8_t index_of[] = {[RX_SEC_NULL] = 0,
		[RX_SEC_RXKAD] = 2,
		[RX_SEC_RXKAD_CRYPT] = 2,
		[RX_SEC_RXGK] = 4,
		[RX_SEC_YFS_RXGK] = 6};
	struct rx_conn *c = make(ep, now, config->peer, ep->epoch, probe.cid,
		index_of[config->sec->ops->sec_class], config->service, false, config->sec);
	if (!c) {
		rx_sec_free(config->sec);
		return NULL;
	}
	c->refs = 1;
	if (!c->peer->bytes_in)
		c->peer->chosen = true;
	c->dead_ns = config->dead_ns ? config->dead_ns : RX_DEAD_NS;
	c->idle_ns = config->idle_ns;
	c->hard_ns = config->hard_ns;
	return c;
}

void rx_conn_free(struct rx_conn *c, mono_ns now)
{
	struct rx_endpoint *ep = c->ep;
	for (int i = 0; i < 4; i++) {
		struct rx_call *call = c->chan[i].call;
		if (call) {
			call->refs = 0;
			call->app_done = true;
			rx_call_end(call, now, AFS_EDEAD, RX_CALL_DEAD);
		}
	}
	rx_probe_forget(c, now);
	list_remove(&c->tx_link);
	list_remove(&c->idle_link);
	leave_half_open(c);
	rx_heap_set(&ep->heap, &c->timer, MONO_NEVER);
	rx_heap_release(&ep->heap);
	map_remove(&ep->conns, &c->node);
	ep->conn_count--;
	rx_peer_put(ep, c->peer, now);
	rx_sec_free(c->sec);
	if (c->user_gone)
		c->user_gone(c->user);
	mem_free(c);
}

/* After a call or a reference went, or the last word was said. */
void rx_conn_settle(struct rx_conn *c, mono_ns now)
{
	if (c->live || c->refs)
		return;
	if (c->is_server) {
		list_remove(&c->idle_link);
		list_push_back(c->known && c->sec->ops->sec_class != RX_SEC_NULL
				       ? &c->ep->idle_known
				       : &c->ep->idle_anon,
			&c->idle_link);
		rx_conn_set_due(c, RX_CONN_IDLE, c->last_used + RX_CONN_IDLE_NS);
	} else if (!c->gone) {
		/* Its last acknowledgement may get lost: stay a little to repeat it. */
		c->gone = true;
		rx_sec_free(c->sec);
		c->sec = NULL;
		if (c->user_gone)
			c->user_gone(c->user);
		c->user_gone = NULL;
		rx_conn_set_due(c, RX_CONN_IDLE,
			c->serial == c->first_serial ? now : now + RX_CONN_LINGER_NS);
	}
}

void rx_conn_move(struct rx_conn *c, mono_ns now, struct rx_addr addr, uint32_t local_ip)
{
	struct rx_endpoint *ep = c->ep;
	struct rx_peer *from = c->peer, *to = rx_peer_get(ep, addr, now);
	if (!to)
		return; /* it will go on speaking from there */
	RX_COUNT(ep, moves);
	rx_probe_forget(c, now);
	c->moved_serial = 0;
	c->local_ip = local_ip;
	c->heard_home = now;
	for (int i = 0; i < 4; i++) {
		struct rx_call *call = c->chan[i].call;
		if (!call)
			continue;
		rx_peer_calls(ep, from, -1);
		rx_peer_calls(ep, to, 1);
		rx_peer_held(ep, from, 0, call->in_held);
		rx_peer_held(ep, to, call->in_held, 0);
		if (call->blocked) {
			call->blocked = false;
			list_remove(&call->tx);
		}
	}
	c->peer = to;
	rx_peer_put(ep, from, now);
	rx_peer_prove(ep, to);
	/* what went to the old address is lost */
	for (int i = 0; i < 4; i++) {
		struct rx_call *call = c->chan[i].call;
		if (!call || call->ended)
			continue;
		if (call->flying)
			rx_call_set_due(call, RX_DUE_LOSS, now);
		rx_call_tx(call);
	}
}

struct rx_conn *rx_conn_ref(struct rx_conn *c)
{
	c->refs++;
	list_remove(&c->idle_link);
	return c;
}

void rx_conn_unref(struct rx_conn *c)
{
	if (!c || --c->refs)
		return;
	mono_ns now = c->ep->now;
	for (int i = 0; !c->is_server && i < 4; i++)
		if (c->chan[i].call)
			rx_call_end_and_tell(c->chan[i].call, now, AFS_ECANCELLED, RX_USER_ABORT);
	rx_conn_settle(c, now);
}

/* --- failure ------------------------------------------------------------------------------- */

void rx_conn_fail(
	struct rx_conn *c, mono_ns now, afs_err err, int32_t code, bool tell, int64_t after)
{
	if (c->failed)
		return;
	c->failed = true;
	c->err = err;
	c->code = code;
	c->tx = 0;
	rx_conn_set_due(c, RX_CONN_CHALLENGE, MONO_NEVER);
	rx_conn_set_due(c, RX_CONN_DELAYED, MONO_NEVER);
	for (int i = 0; i < 4; i++)
		if (c->chan[i].call)
			rx_call_end(c->chan[i].call, now, err, code);
	if (tell && after)
		rx_conn_set_due(c, RX_CONN_ABORT, now + after);
	else if (tell)
		rx_conn_tx(c, RX_TX_ABORT);
}

void rx_conn_abort(struct rx_conn *c, mono_ns now, afs_err err, int32_t code)
{
	c->ep->now = now;
	rx_conn_fail(c, now, err, code, true, 0);
}

afs_err rx_conn_error(const struct rx_conn *c, int32_t *code)
{
	if (code)
		*code = c->failed ? c->code : 0;
	return c->failed ? c->err : AFS_OK;
}

static int32_t code_of(const struct rx_conn *c, afs_err err)
{
	int32_t code = c->sec->ops->code(c->sec, err);
	return code ? code : RX_PROTOCOL_ERROR;
}

void rx_conn_doom(struct rx_conn *c, mono_ns now, afs_err err)
{
	c->doom = err;
	rx_conn_set_due(c, RX_CONN_DOOM, now);
}

/* --- the handshake ------------------------------------------------------------------------- */

static bool has_waiting_call(const struct rx_conn *c)
{
	for (int i = 0; i < 4; i++)
		if (c->chan[i].call && !c->chan[i].call->ended)
			return true;
	return false;
}

void rx_conn_challenge(struct rx_conn *c, mono_ns now)
{
	if (c->due[RX_CONN_CHALLENGE] != MONO_NEVER)
		return; /* one is under way and serves all channels */
	c->challenges = 0;
	rx_conn_tx(c, RX_TX_CHALLENGE);
	rx_conn_set_due(c, RX_CONN_CHALLENGE, now + RX_CHALLENGE_NS);
}

static void challenge_again(struct rx_conn *c, mono_ns now)
{
	rx_conn_set_due(c, RX_CONN_CHALLENGE, MONO_NEVER);
	if (c->known || c->failed || !has_waiting_call(c))
		return;
	if (++c->challenges >= RX_CHALLENGES) {
		for (int i = 0; i < 4; i++)
			if (c->chan[i].call)
				rx_call_end_and_tell(c->chan[i].call, now, AFS_EDEAD, RX_CALL_DEAD);
		return;
	}
	rx_conn_tx(c, RX_TX_CHALLENGE);
	rx_conn_set_due(c, RX_CONN_CHALLENGE, now + RX_CHALLENGE_NS);
}

/* Client.  Only while a call is under way, or anyone could use us as an oracle. */
static void on_challenge(struct rx_conn *c, const uint8_t *body, size_t len)
{
	if (c->failed || c->gone || !c->sec->ops->respond || !has_waiting_call(c))
		return;
	c->challenge_len = (uint8_t)MIN(len, (size_t)RX_CHALLENGE_MAX);
	memcpy(c->challenge, body, c->challenge_len);
	rx_conn_tx(c, RX_TX_RESPONSE);
}

static void on_response(
	struct rx_conn *c, mono_ns now, uint16_t cksum, const uint8_t *body, size_t len)
{
	if (c->failed || c->known || !c->challenged || !c->sec->ops->accept)
		return;
	const struct rx_endpoint_config *cfg = &c->ep->config;
	struct rx_conn_id id = rx_conn_id(c);
	id.cksum = cksum;
	struct rx_caller caller = {0};
	afs_err err =
		c->sec->ops->accept(c->sec, &id, body, len, cfg->wall(cfg->wall_ctx), &caller);
	if (err != AFS_OK) {
		RX_COUNT(c->ep, responses_refused);
		rx_conn_fail(c, now, err, code_of(c, err), true, RX_RESPONSE_REFUSED_NS);
		return;
	}
	c->caller = caller;
	c->known = true;
	note_expiry(c, now);
	rx_conn_set_due(c, RX_CONN_CHALLENGE, MONO_NEVER);
	/* It knew the nonce.  Its call numbers are lower bounds; calls that wait keep their own. */
	if (c->ep->from_home)
		rx_peer_prove(c->ep, c->peer);
	for (int i = 0; i < 4; i++) {
		struct rx_channel *ch = &c->chan[i];
		if (ch->call) {
			rx_call_offer(ch->call);
		} else if (id.call_numbers[i] > ch->number + 1) {
			ch->number = id.call_numbers[i] - 1;
			ch->end = RX_END_NONE;
		}
	}
}

void rx_conn_receive(
	struct rx_conn *c, mono_ns now, const struct rx_header *h, const uint8_t *body, size_t len)
{
	if (h->type == RX_ABORT) {
		RX_COUNT(c->ep, aborts_in);
		if (len >= 4)
			rx_conn_fail(c, now, AFS_EABORTED, (int32_t)get32(body), false, 0);
		return;
	}
	if (c->failed) {
		if (c->due[RX_CONN_ABORT] == MONO_NEVER)
			rx_conn_tx(c, RX_TX_ABORT);
		return;
	}
	switch (h->type) {
	case RX_CHALLENGE:
		if (!c->is_server)
			on_challenge(c, body, len);
		break;
	case RX_RESPONSE:
		if (c->is_server)
			on_response(c, now, h->cksum, body, len);
		break;
	case RX_PARAMS:
	case RX_PARAMS + 1:
	case RX_TYPE_11:
		break;
	default:
		rx_conn_fail(c, now, AFS_EPROTOCOL, RX_PROTOCOL_ERROR, true, 0);
	}
}

/* --- timers -------------------------------------------------------------------------------- */

void rx_conn_set_due(struct rx_conn *c, enum rx_conn_due what, mono_ns at)
{
	c->due[what] = at;
	if (at != MONO_NEVER)
		rx_heap_sooner(&c->ep->heap, &c->timer, at);
}

bool rx_chan_delays_abort(struct rx_conn *c, struct rx_channel *ch, mono_ns now, int32_t code)
{
	if (!c->ep->config.abort_threshold || code == RX_OPCODE_UNKNOWN)
		return false;
	if (ch->failures && ch->failure != code)
		ch->failures = 0;
	ch->failure = code;
	if (ch->failures < c->ep->config.abort_threshold) {
		ch->failures++;
		return false;
	}
	RX_COUNT(c->ep, aborts_delayed);
	ch->abort_at = now + RX_ABORT_DELAY_NS;
	rx_conn_set_due(c, RX_CONN_DELAYED, MIN(c->due[RX_CONN_DELAYED], ch->abort_at));
	return true;
}

static void delayed_aborts(struct rx_conn *c, mono_ns now)
{
	c->due[RX_CONN_DELAYED] = MONO_NEVER;
	for (int i = 0; i < 4; i++) {
		struct rx_channel *ch = &c->chan[i];
		if (ch->abort_at <= now) {
			ch->abort_at = MONO_NEVER;
			rx_chan_tx(c, ch, RX_TX_CHAN_ABORT);
		} else {
			c->due[RX_CONN_DELAYED] = MIN(c->due[RX_CONN_DELAYED], ch->abort_at);
		}
	}
}

static mono_ns soonest(const struct rx_conn *c)
{
	mono_ns at = MONO_NEVER;
	for (int i = 0; i < RX_CONN_DUES; i++)
		at = MIN(at, c->due[i]);
	return at;
}

void rx_conn_tick(struct rx_conn *c, mono_ns now)
{
	if (c->due[RX_CONN_CHALLENGE] <= now)
		challenge_again(c, now);
	if (c->due[RX_CONN_DELAYED] <= now && !c->failed)
		delayed_aborts(c, now);
	if (c->due[RX_CONN_ABORT] <= now) {
		c->due[RX_CONN_ABORT] = MONO_NEVER;
		rx_conn_tx(c, RX_TX_ABORT);
	}
	if (c->due[RX_CONN_DOOM] <= now) {
		c->due[RX_CONN_DOOM] = MONO_NEVER;
		rx_conn_fail(c, now, c->doom, code_of(c, c->doom), true, 0);
	}
	if (c->due[RX_CONN_IDLE] <= now) {
		c->due[RX_CONN_IDLE] = MONO_NEVER;
		mono_ns end = c->is_server ? c->last_used + RX_CONN_IDLE_NS : now;
		if (!c->live && !c->refs && end <= now) {
			rx_conn_free(c, now);
			return;
		}
		if (!c->live && !c->refs)
			c->due[RX_CONN_IDLE] = end;
	}
	mono_ns at = soonest(c);
	rx_heap_set(&c->ep->heap, &c->timer, at == MONO_NEVER ? at : MAX(at, now + 1));
}

/* --- what a connection says ---------------------------------------------------------------- */

void rx_conn_tx(struct rx_conn *c, unsigned what)
{
	c->tx |= (uint8_t)what;
	if (!list_linked(&c->tx_link))
		list_push_back(&c->ep->tx_conns, &c->tx_link);
}

void rx_chan_tx(struct rx_conn *c, struct rx_channel *ch, unsigned what)
{
	ch->tx |= (uint8_t)what;
	rx_conn_tx(c, RX_TX_CHANNEL);
}

void rx_conn_sent(struct rx_conn *c, mono_ns now, size_t len)
{
	c->last_used = now;
	struct rx_peer *p = c->peer;
	p->sent_bytes += len;
	if (!p->proven && !(p->chosen && !c->is_server))
		p->bytes_out += len;
}

static bool emit(struct rx_conn *c, mono_ns now, const struct rx_header *h, const uint8_t *body,
	size_t len, struct rx_datagram *out)
{
	if (!rx_peer_allows(c->peer, c, RX_HEADER + len, 0))
		return false; /* dropped: whoever asked will ask again, and bring budget */
	uint8_t *p = rx_endpoint_scratch(c->ep, RX_HEADER + len, out);
	if (!p)
		return false;
	rx_header_put(p, h);
	memcpy(p + RX_HEADER, body, len);
	rx_conn_sent(c, now, RX_HEADER + len);
	return true;
}

static bool emit_abort(struct rx_conn *c, mono_ns now, struct rx_datagram *out)
{
	struct rx_header h;
	uint8_t body[4];
	rx_conn_header(c, &h, RX_ABORT);
	put32(body, (uint32_t)c->code);
	RX_COUNT(c->ep, aborts_out);
	return emit(c, now, &h, body, sizeof(body), out);
}

static bool emit_challenge(struct rx_conn *c, mono_ns now, struct rx_datagram *out)
{
	if (c->known || c->failed)
		return false;
	uint8_t body[RX_CHALLENGE_MAX];
	size_t len = 0;
	afs_err err = c->sec->ops->challenge(c->sec, body, sizeof(body), &len);
	if (err != AFS_OK) {
		rx_conn_doom(c, now, err);
		return false;
	}
	struct rx_header h;
	rx_conn_header(c, &h, RX_CHALLENGE);
	c->challenged = true;
	RX_COUNT(c->ep, challenges_out);
	return emit(c, now, &h, body, len, out);
}

/* A response may be 16 KiB: it is made in place. */
static bool emit_response(struct rx_conn *c, mono_ns now, struct rx_datagram *out)
{
	if (c->failed || c->gone || !has_waiting_call(c))
		return false;
	uint8_t *p = rx_endpoint_scratch(c->ep, RX_HEADER + RX_RESPONSE_MAX, out);
	if (!p)
		return false;
	struct rx_conn_id id = rx_conn_id(c);
	size_t len = 0;
	afs_err err = c->sec->ops->respond(
		c->sec, &id, c->challenge, c->challenge_len, p + RX_HEADER, RX_RESPONSE_MAX, &len);
	if (err != AFS_OK)
		len = 0;
	rx_endpoint_scratch_trim(c->ep, RX_RESPONSE_MAX - len);
	if (err != AFS_OK) {
		rx_conn_doom(c, now, err);
		return false;
	}
	if (!rx_peer_allows(c->peer, c, RX_HEADER + len, 0))
		return false;
	out->len = (uint32_t)(RX_HEADER + len);
	struct rx_header h;
	rx_conn_header(c, &h, RX_RESPONSE);
	h.cksum = id.cksum;
	rx_header_put(p, &h);
	rx_conn_sent(c, now, out->len);
	return true;
}

static bool emit_channel(struct rx_conn *c, unsigned i, mono_ns now, struct rx_datagram *out)
{
	struct rx_channel *ch = &c->chan[i];
	struct rx_header h;
	uint8_t body[RX_ACK_MAX];
	if (ch->tx & RX_TX_CHAN_ABORT) {
		ch->tx = 0;
		rx_conn_header(c, &h, RX_ABORT);
		h.cid |= i;
		h.call = ch->number;
		put32(body, (uint32_t)ch->code);
		RX_COUNT(c->ep, aborts_out);
		return emit(c, now, &h, body, 4, out);
	}
	if (ch->tx & RX_TX_CHAN_BUSY) {
		ch->tx &= (uint8_t)~RX_TX_CHAN_BUSY;
		rx_conn_header(c, &h, RX_BUSY);
		h.cid |= i;
		h.call = ch->number + 1;
		RX_COUNT(c->ep, busies_out);
		return emit(c, now, &h, body, 0, out);
	}
	if (ch->tx & (RX_TX_CHAN_ACK | RX_TX_CHAN_PONG)) {
		bool pong = ch->tx & RX_TX_CHAN_PONG;
		ch->tx &= (uint8_t) ~(pong ? RX_TX_CHAN_PONG : RX_TX_CHAN_ACK);
		rx_conn_header(c, &h, RX_ACK);
		h.cid |= i;
		h.call = ch->number;
		h.flags |= RX_F_SLOW_START_OK;
		size_t len = rx_ack_build_over(
			c, ch, pong ? RX_ACK_PING_RESPONSE : ch->ack_reason, body);
		RX_COUNT(c->ep, acks_out);
		return emit(c, now, &h, body, len, out);
	}
	ch->tx = 0;
	return false;
}

bool rx_conn_emit(struct rx_conn *c, mono_ns now, struct rx_datagram *out)
{
	while (c->tx) {
		if (c->tx & RX_TX_ABORT) {
			c->tx = 0;
			if (emit_abort(c, now, out))
				return true;
		} else if (c->tx & RX_TX_CHALLENGE) {
			c->tx &= (uint8_t)~RX_TX_CHALLENGE;
			if (emit_challenge(c, now, out))
				return true;
		} else if (c->tx & RX_TX_RESPONSE) {
			c->tx &= (uint8_t)~RX_TX_RESPONSE;
			if (emit_response(c, now, out))
				return true;
		} else {
			for (unsigned i = 0; i < 4; i++)
				while (c->chan[i].tx)
					if (emit_channel(c, i, now, out))
						return true;
			c->tx = 0;
		}
	}
	return false;
}

/* --- for the layer above ------------------------------------------------------------------- */

struct rx_addr rx_conn_peer(const struct rx_conn *c) { return c->peer->addr; }
const struct rx_sec *rx_conn_sec(const struct rx_conn *c) { return c->sec; }
const struct rx_caller *rx_conn_caller(const struct rx_conn *c) { return &c->caller; }
int64_t rx_conn_rtt_ns(const struct rx_conn *c) { return c->peer->srtt; }
bool rx_conn_proven(const struct rx_conn *c) { return c->peer->proven; }
void *rx_conn_user(const struct rx_conn *c) { return c->user; }

void rx_conn_set_user(struct rx_conn *c, void *user, void (*gone)(void *user))
{
	c->user = user;
	c->user_gone = gone;
}
