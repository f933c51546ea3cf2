/* SPDX-License-Identifier: BSD-2-Clause
 * The simulated network and the applications on its endpoints.  See sim.h. */
#include "tests/sim/sim.h"

#include "cell/base/buf.h"
#include "tests/lib/test.h"
#include "tests/sim/sim_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ENDS_MAX = 16, ASK_BYTES = 28, SERVICE = 77, IDS_MAX = 1 << 16 };

struct flight {
	struct flight *next;
	mono_ns at;
	uint64_t order;
	struct rx_addr from, to;
	uint32_t len;
	uint8_t bytes[];
};

struct sim_end {
	struct sim *sim;
	struct rx_endpoint *ep;
	struct rx_addr addr;
	struct sim_end_config config;
	bool cut, deaf, mute, dirty;
	mono_ns link_free;
	int64_t ahead; /* its clock, of the simulation's */
	unsigned begun, repeated, replied, ended;
	struct list jobs; /* of the server application */
};

struct stream { /* what has come */
	uint64_t offset;
	uint8_t ask[ASK_BYTES];
};

/* A call at either end. */
struct job {
	struct list link;
	struct sim_end *end;
	struct rx_call *call;
	struct sim_ask ask;
	struct stream in;
	uint64_t id, out_total, out_done;
	rx_seq out_seq;
	bool asked, answering, over, sent_last;
	mono_ns wake;             /* MONO_NEVER: nothing is due */
	struct rx_packet *unread; /* of a server that reads slowly */
};

struct sim_call {
	struct job job;
	struct sim_call *next;
	afs_err err;
	int32_t code;
	mono_ns began, ended;
	bool over;
};

struct sim {
	uint64_t seed, rng, order;
	mono_ns now;
	struct sim_net net;
	struct rx_buf_pool *pool;
	struct sim_end *ends[ENDS_MAX];
	unsigned end_count;
	struct flight **heap;
	size_t flights, heap_cap;
	struct sim_call *calls;
	unsigned calls_open;
	uint64_t next_id;
	uint8_t *ids_seen;
	void (*watch)(void *ctx, mono_ns now, struct rx_addr from, struct rx_addr to,
		const uint8_t *p, size_t n);
	void *watch_ctx;
	bool (*drop)(void *ctx, struct rx_addr from, struct rx_addr to, const uint8_t *p, size_t n);
	void *drop_ctx;
	bool tracing, flipped;
	struct sim_trace trace;
};

#define expect(s, cond)                                                                            \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fail_msg("seed %" PRIu64 " at %.6f s: %s", (s)->seed,                      \
				(double)(s)->now / 1e9, #cond);                                    \
	} while (0)

/* --- chance -------------------------------------------------------------------------------- */

static uint64_t random64(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
uint32_t sim_random(struct sim *s) { return (uint32_t)random64(&s->rng); }
static uint32_t random_for(void *ctx) { return sim_random(ctx); }
static bool chance(struct sim *s, uint32_t ppm) { return ppm && sim_random(s) % 1000000 < ppm; }
static wall_ns wall_for(void *ctx) { return SEC(1700000000) + ((struct sim *)ctx)->now; }
static mono_ns clock_of(const struct sim_end *e) { return e->sim->now + e->ahead; }

static uint8_t pattern(uint64_t id, uint64_t offset)
{
	uint64_t h = (id + 1) * UINT64_C(0x9e3779b97f4a7c15) + (offset >> 3);
	h ^= h >> 31;
	return (uint8_t)(h * 0x2545f491 >> (8 * (offset & 3)));
}

uint64_t sim_seeds(uint64_t usual)
{
	const char *times = getenv("SIM_SEEDS");
	return usual * (times ? strtoull(times, NULL, 10) : 1);
}

/* --- the network --------------------------------------------------------------------------- */

static bool sooner(const struct flight *a, const struct flight *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct sim *s, struct flight *f)
{
	if (s->flights == s->heap_cap) {
		size_t cap = s->heap_cap ? s->heap_cap * 2 : 256;
		s->heap = mem_resize(s->heap, s->heap_cap, cap, sizeof(*s->heap));
		s->heap_cap = cap;
	}
	size_t i = s->flights++;
	while (i && sooner(f, s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = f;
}

static struct flight *pop(struct sim *s)
{
	struct flight *top = s->heap[0], *f = s->heap[--s->flights];
	size_t i = 0;
	for (size_t c; (c = 2 * i + 1) < s->flights; i = c) {
		if (c + 1 < s->flights && sooner(s->heap[c + 1], s->heap[c]))
			c++;
		if (!sooner(s->heap[c], f))
			break;
		s->heap[i] = s->heap[c];
	}
	s->heap[i] = f;
	return top;
}

static struct flight *post(struct sim *s, struct rx_addr from, struct rx_addr to, mono_ns at,
	const void *p, uint32_t n)
{
	struct flight *f = mem_alloc(1, sizeof(*f) + n);
	f->at = at;
	f->order = s->order++;
	f->from = from;
	f->to = to;
	f->len = n;
	memcpy(f->bytes, p, n);
	push(s, f);
	return f;
}

void sim_inject(struct sim *s, struct rx_addr from, struct sim_end *to, const void *p, size_t n)
{
	post(s, from, to->addr, s->now, p, (uint32_t)n);
}

static void transmit(struct sim_end *e, const struct rx_datagram *d)
{
	struct sim *s = e->sim;
	const struct sim_net *net = &s->net;
	const uint8_t *p = d->buf->data + d->off;
	expect(s, d->len >= RX_HEADER && d->off + d->len <= d->buf->cap);
	if (s->watch)
		s->watch(s->watch_ctx, s->now, e->addr, d->peer, p, d->len);
	bool lost = e->cut || e->mute || chance(s, net->loss_ppm) ||
		    (s->drop && s->drop(s->drop_ctx, e->addr, d->peer, p, d->len)) ||
		    (net->datagram_max && d->len > net->datagram_max &&
			    (!d->fragment || net->no_pieces));
	mono_ns leaves = s->now;
	if (net->bytes_per_sec && !lost) {
		uint32_t queue = net->queue_bytes ? net->queue_bytes : 256 * 1024;
		mono_ns free_at = MAX(e->link_free, s->now);
		uint64_t waiting = (uint64_t)(free_at - s->now) * net->bytes_per_sec / NS_PER_SEC;
		if (waiting + d->len > queue) {
			lost = true;
		} else {
			leaves = free_at +
				 (int64_t)((uint64_t)d->len * NS_PER_SEC / net->bytes_per_sec);
			e->link_free = leaves;
		}
	}
	if (s->tracing)
		sim_trace_line(&s->trace, s->now, e->addr, d->peer, p, d->len, lost);
	if (lost)
		return;
	for (int copies = 1 + chance(s, net->dup_ppm); copies-- > 0;) {
		mono_ns at = leaves + net->delay;
		if (net->jitter)
			at += sim_random(s) % (uint64_t)net->jitter;
		if (chance(s, net->reorder_ppm))
			at += sim_random(s) % (uint64_t)(4 * net->jitter + USEC(200));
		struct flight *f = post(s, e->addr, d->peer, at, p, d->len);
		if (chance(s, net->flip_ppm)) {
			f->bytes[sim_random(s) % d->len] ^= (uint8_t)(1u << sim_random(s) % 8);
			s->flipped = true;
		}
	}
}

static void deliver(struct sim *s, struct flight *f)
{
	for (unsigned i = 0; i < s->end_count; i++) {
		struct sim_end *e = s->ends[i];
		if (e->addr.ip != f->to.ip || e->addr.port != f->to.port || e->cut || e->deaf)
			continue;
		struct rx_buf *b = rx_buf_get(s->pool, RX_BUF_MAX);
		expect(s, b != NULL);
		memcpy(b->data, f->bytes, f->len);
		struct rx_datagram d = {
			.peer = f->from, .local_ip = e->addr.ip, .buf = b, .len = f->len};
		rx_endpoint_receive(e->ep, clock_of(e), &d);
		rx_buf_unref(b);
		e->dirty = true;
	}
}

/* --- streams ------------------------------------------------------------------------------- */

static void put_be(uint8_t *p, uint64_t v, int n)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}
static uint64_t get_be(const uint8_t *p, int n)
{
	uint64_t v = 0;
	for (int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static uint8_t out_byte(const struct job *j, const uint8_t *ask, uint64_t at)
{
	if (ask && at < ASK_BYTES)
		return ask[at];
	return pattern(j->id * 2 + (ask == NULL), at);
}

/* Sends as much as there is room for. */
static void write_some(struct job *j)
{
	struct sim *s = j->end->sim;
	bool is_server = rx_call_is_server(j->call);
	uint8_t ask[ASK_BYTES];
	put_be(ask, j->ask.verb, 4);
	put_be(ask + 4, (uint32_t)j->ask.arg, 4);
	put_be(ask + 8, j->ask.reply_len, 8);
	put_be(ask + 16, j->id, 8);
	put_be(ask + 24, (uint32_t)j->ask.request_len, 4);
	const struct rx_sec *sec = rx_conn_sec(rx_call_conn(j->call));
	while (!j->sent_last) {
		uint32_t room = rx_call_room(j->call);
		if (!room)
			return;
		struct rx_packet *list = NULL, **tail = &list;
		for (; room && !j->sent_last; room--) {
			uint32_t body = rx_call_body_max(j->call);
			struct rx_buf *b = rx_buf_get(s->pool, RX_HEADER + body);
			expect(s, b != NULL);
			struct rx_packet *p = rx_packet_new(b);
			p->off = RX_HEADER;
			uint64_t left = j->out_total - j->out_done;
			size_t n = MIN(left, (uint64_t)(body - sec->header - sec->trailer));
			uint8_t *data = b->data + RX_HEADER + sec->header;
			for (size_t i = 0; i < n; i++)
				data[i] = out_byte(j, is_server ? NULL : ask, j->out_done + i);
			j->out_done += n;
			p->last = j->sent_last = j->out_done == j->out_total;
			p->len = (uint32_t)n; /* data; sealed below, when its number is known */
			*tail = p;
			tail = &p->next;
		}
		for (struct rx_packet *p = list; p; p = p->next) {
			struct rx_sec_packet id = rx_call_packet_id(j->call, ++j->out_seq, false);
			size_t len;
			p->cksum = sec->ops->seal(sec, &id, p->buf->data + p->off, p->len, &len);
			p->len = (uint32_t)len;
		}
		rx_call_send(j->call, clock_of(j->end), list);
		j->end->dirty = true;
	}
}

/* Opens and checks one packet; false: it was altered under way, and the connection is given up. */
static bool read_packet(struct job *j, struct rx_packet *p)
{
	struct sim *s = j->end->sim;
	const struct rx_sec *sec = rx_conn_sec(rx_call_conn(j->call));
	struct rx_sec_packet id = rx_call_packet_id(j->call, p->seq, true);
	size_t off, n;
	afs_err err = sec->ops->open(sec, &id, p->cksum, p->buf->data + p->off, p->len, &off, &n);
	if (err != AFS_OK) {
		expect(s, s->flipped);
		rx_packet_free(p);
		rx_conn_abort(
			rx_call_conn(j->call), clock_of(j->end), err, sec->ops->code(sec, err));
		return false;
	}
	const uint8_t *data = p->buf->data + p->off + off;
	bool is_reply = !rx_call_is_server(j->call);
	for (size_t i = 0; i < n; i++, j->in.offset++) {
		if (!is_reply && j->in.offset < ASK_BYTES) {
			j->in.ask[j->in.offset] = data[i];
			if (j->in.offset == ASK_BYTES - 1) {
				j->ask.verb = (enum sim_verb)get_be(j->in.ask, 4);
				j->ask.arg = (int32_t)get_be(j->in.ask + 4, 4);
				j->ask.reply_len = get_be(j->in.ask + 8, 8);
				j->id = get_be(j->in.ask + 16, 8);
				j->ask.request_len = get_be(j->in.ask + 24, 4);
				j->asked = true;
			}
			continue;
		}
		if (!(j->end->config.credulous && !is_reply) &&
			data[i] != pattern(j->id * 2 + is_reply, j->in.offset))
			fail_msg("seed %" PRIu64 " at %.6f s: byte %" PRIu64
				 " of a %s is wrong (packet %u, byte %zu of %zu)",
				s->seed, (double)s->now / 1e9, j->in.offset,
				is_reply ? "reply" : "request", p->seq, i, n);
	}
	rx_packet_free(p);
	return true;
}

/* --- the server application ---------------------------------------------------------------- */

static void job_free(struct job *j)
{
	list_remove(&j->link);
	rx_packet_free_list(j->unread);
	rx_call_set_user(j->call, NULL);
	rx_call_unref(j->call);
	mem_free(j);
}

static void answer(struct job *j)
{
	struct sim *s = j->end->sim;
	if (j->answering || j->ask.verb == SIM_MUTE)
		return;
	if (j->ask.verb == SIM_SLOW && j->wake == MONO_NEVER) {
		j->wake = s->now + MSEC(j->ask.arg);
		return;
	}
	j->wake = MONO_NEVER;
	j->answering = true;
	if (j->ask.verb == SIM_ABORT) {
		rx_call_abort(j->call, clock_of(j->end), j->ask.arg);
		j->over = true;
		return;
	}
	j->out_total = j->ask.reply_len;
	write_some(j);
}

static void first_sight(struct job *j)
{
	struct sim *s = j->end->sim;
	expect(s, j->id < IDS_MAX);
	if (s->ids_seen[j->id])
		j->end->repeated++;
	s->ids_seen[j->id] = 1;
	j->end->begun++;
}

static void serve(struct job *j)
{
	struct sim *s = j->end->sim;
	struct rx_packet **tail = &j->unread;
	while (*tail)
		tail = &(*tail)->next;
	*tail = rx_call_receive(j->call, clock_of(j->end));
	bool slow = j->end->config.read_pause > 0;
	uint32_t n = 0;
	while (j->unread && !(slow && n == 4)) {
		struct rx_packet *p = j->unread;
		j->unread = p->next;
		bool was = j->asked;
		if (!read_packet(j, p))
			return;
		n++;
		if (j->asked && !was)
			first_sight(j);
	}
	if (n)
		rx_call_consumed(j->call, clock_of(j->end), n);
	if (slow && j->unread)
		j->wake = s->now + j->end->config.read_pause;
	bool all = rx_call_received_all(j->call) && !j->unread;
	if (all && s->flipped && j->in.offset != ASK_BYTES + j->ask.request_len) {
		/* a flag is not sealed: whoever turns the one that says "last" makes a request shorter */
		rx_call_abort(j->call, clock_of(j->end), RX_PROTOCOL_ERROR);
		j->over = true;
		return;
	}
	if (all)
		expect(s,
			j->end->config.credulous || j->in.offset == ASK_BYTES + j->ask.request_len);
	if (all || (j->asked && j->ask.verb == SIM_EARLY))
		answer(j);
	j->end->dirty = true;
}

static void server_event(struct sim_end *e, const struct rx_event *ev)
{
	struct sim *s = e->sim;
	struct job *j = rx_call_user(ev->call);
	if (!j && ev->kind != RX_EV_CALL_NEW) { /* the application is done with it */
		e->ended += ev->kind == RX_EV_CALL_ENDED;
		return;
	}
	switch (ev->kind) {
	case RX_EV_CALL_NEW:
		j = mem_new(struct job);
		j->end = e;
		j->call = rx_call_ref(ev->call);
		j->wake = MONO_NEVER;
		list_push_back(&e->jobs, &j->link);
		rx_call_set_user(j->call, j);
		expect(s, !e->config.secured ||
				  rx_conn_caller(rx_call_conn(j->call))->authenticated ||
				  rx_conn_id(rx_call_conn(j->call)).index == 0);
		serve(j);
		break;
	case RX_EV_READABLE:
		if (!j->answering)
			serve(j);
		break;
	case RX_EV_WRITABLE:
		write_some(j);
		break;
	case RX_EV_CALL_SENT:
		e->replied++;
		expect(s, j->sent_last);
		j->over = true;
		break;
	case RX_EV_CALL_ENDED:
		e->ended++;
		j->over = true;
		break;
	}
	if (j->over)
		job_free(j);
}

/* --- the client application ---------------------------------------------------------------- */

static void client_over(struct sim_call *c, afs_err err, int32_t code)
{
	struct sim *s = c->job.end->sim;
	if (c->over)
		return;
	c->over = true;
	c->err = err;
	c->code = code;
	c->ended = s->now;
	s->calls_open--;
	if (c->job.call)
		rx_call_unref(c->job.call);
	c->job.call = NULL;
	c->job.end->dirty = true;
}

static void client_event(const struct rx_event *ev)
{
	struct sim_call *c = rx_call_user(ev->call);
	struct job *j = &c->job;
	struct sim *s = j->end->sim;
	if (c->over)
		return;
	switch (ev->kind) {
	case RX_EV_READABLE: {
		uint32_t n = 0;
		for (struct rx_packet *p = rx_call_receive(j->call, clock_of(j->end)), *next; p;
			p = next, n++) {
			next = p->next;
			if (!read_packet(j, p)) {
				rx_packet_free_list(next);
				client_over(c, AFS_ESEALED, 0);
				return;
			}
		}
		rx_call_consumed(j->call, clock_of(j->end), n);
		if (rx_call_received_all(j->call)) {
			const bool whole = j->in.offset == j->ask.reply_len;
			expect(s, whole || s->flipped);
			rx_call_done(j->call, clock_of(j->end));
			client_over(c, whole ? AFS_OK : AFS_EEOF, 0);
		}
		break;
	}
	case RX_EV_WRITABLE:
		write_some(j);
		break;
	case RX_EV_CALL_ENDED:
		client_over(c, ev->err, ev->code);
		break;
	case RX_EV_CALL_NEW:
	case RX_EV_CALL_SENT:
		fail_msg("seed %" PRIu64 ": a client got a server's event", s->seed);
	}
}

/* --- running ------------------------------------------------------------------------------- */

static void pump(struct sim_end *e)
{
	while (e->dirty) {
		e->dirty = false;
		struct rx_event ev;
		while (rx_endpoint_next_event(e->ep, &ev)) {
			if (e->config.closed)
				continue;
			if (rx_call_is_server(ev.call))
				server_event(e, &ev);
			else
				client_event(&ev);
		}
		struct rx_datagram d;
		while (rx_endpoint_next_datagram(e->ep, clock_of(e), &d))
			transmit(e, &d);
		/* what was sent may have shown a connection to be at its end */
		if (rx_endpoint_next_tick(e->ep) <= clock_of(e)) {
			rx_endpoint_tick(e->ep, clock_of(e));
			e->dirty = true;
		}
	}
}

static void wake_jobs(struct sim_end *e)
{
	list_each(it, &e->jobs)
	{
		struct job *j = list_entry(it, struct job, link);
		if (j->wake > e->sim->now)
			continue;
		e->dirty = true;
		if (j->ask.verb == SIM_SLOW && rx_call_received_all(j->call) && !j->unread) {
			j->wake = 0;
			answer(j);
		} else {
			j->wake = MONO_NEVER;
			serve(j);
		}
		if (j->over)
			job_free(j);
	}
}

static mono_ns next_time(struct sim *s)
{
	mono_ns at = s->flights ? s->heap[0]->at : MONO_NEVER;
	for (unsigned i = 0; i < s->end_count; i++) {
		mono_ns tick = rx_endpoint_next_tick(s->ends[i]->ep);
		at = MIN(at, tick == MONO_NEVER ? tick : tick - s->ends[i]->ahead);
		list_each(it, &s->ends[i]->jobs) at =
			MIN(at, list_entry(it, struct job, link)->wake);
	}
	return MAX(at, s->now);
}

static void step(struct sim *s)
{
	for (unsigned i = 0; i < s->end_count; i++)
		pump(s->ends[i]);
	while (s->flights && s->heap[0]->at <= s->now) {
		struct flight *f = pop(s);
		deliver(s, f);
		mem_free(f);
	}
	for (unsigned i = 0; i < s->end_count; i++) {
		struct sim_end *e = s->ends[i];
		if (rx_endpoint_next_tick(e->ep) <= clock_of(e)) {
			rx_endpoint_tick(e->ep, clock_of(e));
			e->dirty = true;
		}
		wake_jobs(e);
		pump(e);
	}
}

static bool run_until(struct sim *s, mono_ns end, bool stop_when_done)
{
	uint64_t steps = 0;
	for (;;) {
		step(s);
		expect(s, ++steps < 50000000);
		if (stop_when_done && !s->calls_open)
			return true;
		mono_ns at = next_time(s);
		if (at > end)
			break;
		s->now = at;
	}
	s->now = end;
	return !s->calls_open;
}

bool sim_run(struct sim *s, int64_t limit) { return run_until(s, s->now + limit, true); }
void sim_wait(struct sim *s, int64_t time) { (void)run_until(s, s->now + time, false); }

/* --- building ------------------------------------------------------------------------------ */

struct sim *sim_new(uint64_t seed, const struct sim_net *net)
{
	struct sim *s = mem_new(struct sim);
	s->seed = s->rng = seed;
	s->now = SEC(1000);
	s->net = *net;
	s->pool = rx_buf_pool_new(256 << 20);
	s->ids_seen = mem_alloc(IDS_MAX, 1);
	sim_trace_init(&s->trace, s->now);
	return s;
}

void sim_free(struct sim *s)
{
	for (struct sim_call *c = s->calls, *next; c; c = next) {
		next = c->next;
		if (c->job.call)
			rx_call_unref(c->job.call);
		mem_free(c);
	}
	for (unsigned i = 0; i < s->end_count; i++) {
		struct sim_end *e = s->ends[i];
		list_each(it, &e->jobs) job_free(list_entry(it, struct job, link));
		rx_endpoint_free(e->ep);
		mem_free(e);
	}
	while (s->flights)
		mem_free(pop(s));
	mem_free(s->heap);
	expect(s, sim_pool_used(s) == 0);
	rx_buf_pool_free(s->pool);
	mem_free(s->ids_seen);
	sim_trace_fini(&s->trace);
	mem_free(s);
}

static struct rx_sec *accept_conn(void *ctx, struct rx_addr peer, uint16_t service, uint8_t index)
{
	struct sim_end *e = ctx;
	(void)peer;
	if (service != SERVICE)
		return NULL;
	if (index == 0)
		return rx_null_new();
	return index == 2 && e->config.secured ? sim_sec_new(true) : NULL;
}

static struct rx_endpoint *endpoint_new(struct sim_end *e)
{
	const struct sim_end_config *config = &e->config;
	struct rx_endpoint_config c = {
		.pool = e->sim->pool,
		.random = random_for,
		.random_ctx = e->sim,
		.wall = wall_for,
		.wall_ctx = e->sim,
		.loopback_big = config->loopback,
		.window = config->window,
		.conns_max = config->conns_max,
		.calls_per_peer_max = config->calls_per_peer_max,
		.dead_ns = config->dead_ns,
		.idle_ns = config->idle_ns,
		.version = "sim",
		.accept = accept_conn,
		.accept_ctx = e,
	};
	return rx_endpoint_new(&c, clock_of(e));
}

struct sim_end *sim_end_new(struct sim *s, const struct sim_end_config *config)
{
	struct sim_end *e = mem_new(struct sim_end);
	e->sim = s;
	e->config = *config;
	uint32_t n = ++s->end_count;
	expect(s, n <= ENDS_MAX);
	s->ends[n - 1] = e;
	e->addr = (struct rx_addr){.ip = (config->loopback ? 0x7f000000 : 0x0a000000) + n,
		.port = (uint16_t)(7000 + n)};
	list_init(&e->jobs);
	e->ep = endpoint_new(e);
	return e;
}

void sim_end_restart(struct sim_end *e)
{
	struct sim *s = e->sim;
	list_each(it, &e->jobs) job_free(list_entry(it, struct job, link));
	rx_endpoint_free(e->ep);
	e->ep = endpoint_new(e);
	e->dirty = true;
	memset(s->ids_seen, 0, IDS_MAX); /* what the old one ran is not known to the new */
}

void sim_end_jump(struct sim_end *e, int64_t by)
{
	e->ahead += by;
	e->dirty = true;
}

struct rx_conn *sim_connect_config(
	struct sim_end *from, struct sim_end *to, bool secured, struct rx_conn_config *c)
{
	c->peer = to->addr;
	c->service = SERVICE;
	c->sec = secured ? sim_sec_new(false) : rx_null_new();
	return rx_conn_new(from->ep, clock_of(from), c);
}

struct rx_conn *sim_connect(struct sim_end *from, struct sim_end *to, bool secured)
{
	struct rx_conn_config c = {0};
	return sim_connect_config(from, to, secured, &c);
}

void sim_disconnect(struct sim_end *from, struct rx_conn *conn)
{
	rx_conn_unref(conn);
	from->dirty = true;
}

struct sim_call *sim_call(struct sim_end *from, struct rx_conn *conn, const struct sim_ask *ask)
{
	struct sim *s = from->sim;
	struct rx_call *call = rx_call_new(conn, clock_of(from));
	if (!call)
		return NULL;
	struct sim_call *c = mem_new(struct sim_call);
	c->next = s->calls;
	s->calls = c;
	s->calls_open++;
	c->began = s->now;
	struct job *j = &c->job;
	j->end = from;
	j->call = call;
	j->ask = *ask;
	j->id = s->next_id++;
	j->out_total = ASK_BYTES + ask->request_len;
	rx_call_set_user(call, c);
	write_some(j);
	from->dirty = true;
	return c;
}

void sim_call_cancel(struct sim_call *c)
{
	rx_call_abort(c->job.call, clock_of(c->job.end), RX_USER_ABORT);
	client_over(c, AFS_ECANCELLED, 0);
}

bool sim_call_over(const struct sim_call *c) { return c->over; }
afs_err sim_call_err(const struct sim_call *c) { return c->err; }
int32_t sim_call_code(const struct sim_call *c) { return c->code; }
mono_ns sim_call_took(const struct sim_call *c) { return c->ended - c->began; }
uint64_t sim_seed(const struct sim *s) { return s->seed; }
mono_ns sim_now(const struct sim *s) { return s->now; }
struct sim_net *sim_network(struct sim *s) { return &s->net; }
struct rx_endpoint *sim_end_endpoint(struct sim_end *e) { return e->ep; }
struct rx_addr sim_end_addr(const struct sim_end *e) { return e->addr; }
void sim_drop(struct sim *s,
	bool (*fn)(void *ctx, struct rx_addr from, struct rx_addr to, const uint8_t *p, size_t n),
	void *ctx)
{
	s->drop = fn;
	s->drop_ctx = ctx;
}
void sim_end_move(struct sim_end *e, uint16_t port) { e->addr.port = port; }
void sim_end_cut(struct sim_end *e, bool cut) { e->cut = cut; }
void sim_end_half(struct sim_end *e, bool deaf, bool mute) { e->deaf = deaf, e->mute = mute; }
unsigned sim_end_begun(const struct sim_end *e) { return e->begun; }
unsigned sim_end_repeated(const struct sim_end *e) { return e->repeated; }
unsigned sim_end_replied(const struct sim_end *e) { return e->replied; }
unsigned sim_end_ended(const struct sim_end *e) { return e->ended; }
void sim_trace(struct sim *s, bool on) { s->tracing = on; }
const char *sim_trace_text(struct sim *s) { return sim_trace_get(&s->trace); }

void sim_watch(struct sim *s,
	void (*fn)(void *ctx, mono_ns now, struct rx_addr from, struct rx_addr to, const uint8_t *p,
		size_t n),
	void *ctx)
{
	s->watch = fn;
	s->watch_ctx = ctx;
}

size_t sim_pool_used(const struct sim *s)
{
	struct rx_buf_pool_stats st;
	rx_buf_pool_stats(s->pool, &st);
	return st.used_bytes;
}
