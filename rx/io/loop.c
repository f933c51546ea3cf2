/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A port: the endpoint, its socket and the thread that waits on it.
 *
 * Only the I/O thread waits for datagrams and runs INLINE handlers.  Everything else may be done by
 * whoever holds port->lock, so a worker sends its own packets: it leaves them as work, tries the
 * lock, and when somebody is inside already, that one does it before leaving.  Nobody waits and no
 * thread is woken for it.  Two rules make that safe:
 *   - who leaves looks at the queue of work again after unlocking (work left meanwhile is not lost);
 *   - when io_wants is set others keep out, since the I/O thread is about to enter and does all work.
 *
 * What stock peers send comes one datagram at a time, and each would wake us and get an ACK that wakes
 * them: when a bulk transfer trickles in like that, the I/O thread looks away for GATHER after each turn.
 *
 * The I/O thread sleeps until the endpoint's next tick, but while there is traffic never longer than
 * NAP: then a worker that starts a new timer need not wake it for that.
 *
 * Waiting for datagrams is lent out: a thread that calls a peer and waits for a small answer, alone
 * on its port, polls the socket itself and takes the answer without a hand-over.  The I/O thread
 * notices such callers and parks: it leaves the socket alone, and takes it back when nobody borrowed
 * it for PARK, or a borrower left while others wait. */
#include "rx/io/port.h"
#include "rx/io/udp.h"
#include "rx/io/workers.h"
#include "rx/rpc/stream.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAP MSEC(25)
#define ACTIVE SEC(1)
#define SLICE USEC(300)
#define SPIN USEC(80)
enum { SPIN_VAIN_MAX = 8 };
#define GATHER USEC(200)      /* how long a trickle may gather */
#define GATHER_RATE USEC(300) /* what comes further apart is no trickle */
enum { GATHER_FEW = 16 };      /* datagrams */
#define PARK MSEC(1)
#define PARK_LONG MSEC(32) /* while one borrower waits and waits */
enum { SEND_BYTES = 512 * 1024 }; /* sent in one go before others may enter */

/* Four of these make one run of segments (65507 bytes): over lo, the fastest there is. */
enum { DATAGRAM_DEFAULT = 16376 };

struct port {
	struct rpc_port rpc; /* first */
	struct udp udp;      /* lock */
	struct rpc_workers *workers;
	pthread_t thread;
	int wake_fd;
	bool stop;          /* lock */
	mono_ns sleeps_to;  /* lock: when the I/O thread looks by itself; 0: at once */
	mono_ns active;     /* lock: last time there was something to do */
	atomic_llong due;   /* when the endpoint next wants a turn, as of the last one */

	atomic_int poller;      /* enum poller: who waits on the socket */
	atomic_uint waiters;    /* threads that wait for a call of this port */
	atomic_uint borrows;    /* counts */
	atomic_bool hand_back;  /* a borrower left, and the I/O thread should not wait for another */
	atomic_bool parks_long; /* it would not look by itself soon */
	atomic_int spin_vain, spin_skip; /* see spin(); a race only makes one more or less */
	int interrupt_fd;       /* ends a borrower's wait */
	/* the I/O thread's alone */
	unsigned woken_seen, served_seen, lonely; /* lonely: turns in a row that woke one caller */
	mono_ns woke; /* when it last found something to receive */
	/* lock: of the latest turn */
	unsigned came, sent;
	bool urgent; /* something came that is not of a bulk transfer in mid-stream */
	char name[16], version[64];
};

enum poller { POLLER_NONE, POLLER_IO, POLLER_CALLER };

static _Thread_local const struct rpc_port *io_self, *borrowed;

static struct port *port_of(struct rpc_port *rpc) { return (struct port *)rpc; }

static void wake(struct port *p)
{
	uint64_t one = 1;
	(void)!write(p->wake_fd, &one, sizeof(one)); /* full means that it is awake */
}

/* --- inside, with the lock -------------------------------------------------------------------- */

/* Rx's header, as far as the loop looks into it (rx.md §1.1). */
enum { TYPE_AT = 20, FLAGS_AT = 21, TYPE_DATA = 1, TYPE_ACK = 2, REQUEST_ACK = 2, LAST = 4, BULK_LEAST = 1024 };

static bool is_bulk(const struct rx_datagram *in)
{
	if (in->len <= FLAGS_AT)
		return false;
	uint8_t type = in->buf->data[in->off + TYPE_AT], flags = in->buf->data[in->off + FLAGS_AT];
	return (type == TYPE_DATA && in->len >= BULK_LEAST && !(flags & (LAST | REQUEST_ACK))) ||
		(type == TYPE_ACK && !(flags & REQUEST_ACK));
}

static void on_datagram(void *ctx, const struct rx_datagram *in)
{
	struct port *p = ctx;
	p->came++;
	p->urgent |= !is_bulk(in);
	rx_endpoint_receive(p->rpc.ep, p->active, in);
}

static void on_refused(void *ctx, struct rx_addr peer, bool too_big)
{
	struct port *p = ctx;
	rx_endpoint_unreachable(p->rpc.ep, p->active, peer, too_big);
}

static bool send_some(struct port *p, mono_ns now)
{
	struct rx_datagram batch[UDP_BATCH];
	unsigned n = 0;
	size_t bytes = 0;
	while (n < UDP_BATCH && bytes < SEND_BYTES && rx_endpoint_next_datagram(p->rpc.ep, now, &batch[n]))
		bytes += batch[n++].len;
	if (n)
		udp_send(&p->udp, batch, n, on_refused, p);
	p->sent += n;
	return n == UDP_BATCH || bytes >= SEND_BYTES;
}

/* Everything that can be done now.  True: more of it is left. */
static bool turn(struct port *p, bool receive) REQUIRES(p->rpc.lock)
{
	mono_ns now = p->active = clk_mono();
	p->came = p->sent = 0;
	p->urgent = false;
	bool more = receive && udp_receive(&p->udp, on_datagram, on_refused, p);
	rpc_engine_work(&p->rpc, now);
	if (rx_endpoint_next_tick(p->rpc.ep) <= now)
		rx_endpoint_tick(p->rpc.ep, now);
	rpc_engine_events(&p->rpc, now);
	return send_some(p, now) || more;
}

/* When the next turn is wanted. */
static mono_ns next_due(struct port *p, mono_ns now) REQUIRES(p->rpc.lock)
{
	struct rpc_dues dues = rpc_engine_tick(&p->rpc, now);
	mono_ns at = MIN(rx_endpoint_next_tick(p->rpc.ep), MIN(dues.soon, dues.later));
	atomic_store(&p->due, at);
	return at;
}

/* Does the I/O thread have to be told of what a turn on another thread brought up? */
static bool io_needed(struct port *p) REQUIRES(p->rpc.lock)
{
	if (!p->sleeps_to)
		return false;
	mono_ns due = next_due(p, p->active);
	bool needed = p->rpc.inline_head || rpc_engine_has_gone(&p->rpc) || due < p->sleeps_to - NAP ||
		(p->rpc.lazy_head && p->rpc.lazy_at < p->sleeps_to);
	if (needed)
		p->sleeps_to = 0;
	return needed;
}

/* --- the driver ------------------------------------------------------------------------------- */

static void leave(struct rpc_port *rpc, bool receive) RELEASE(rpc->lock);
static void leave(struct rpc_port *rpc, bool receive) NO_TSA /* p->rpc is rpc */
{
	struct port *p = port_of(rpc);
	if (!rpc->ep)
		rpc_engine_work(rpc, 0); /* closed: calls that were refused are given back */
	else if (io_self != rpc) {
		while (turn(p, receive) && !atomic_load(&rpc->io_wants))
			continue;
		bool needed = io_needed(p);
		mtx_unlock(&rpc->lock);
		if (needed)
			wake(p);
		return;
	}
	mtx_unlock(&rpc->lock);
}

static void kick(struct rpc_port *rpc)
{
	if (io_self == rpc)
		return; /* its next turn is near */
	while (atomic_load(&rpc->work_waits) && !atomic_load(&rpc->io_wants) && mtx_trylock(&rpc->lock))
		leave(rpc, false);
}

static mono_ns port_enter(struct rpc_port *rpc) ACQUIRE(rpc->lock);
static mono_ns port_enter(struct rpc_port *rpc)
{
	mtx_lock(&rpc->lock);
	return clk_mono();
}

static void port_leave(struct rpc_port *rpc) RELEASE(rpc->lock);
static void port_leave(struct rpc_port *rpc)
{
	leave(rpc, false);
	kick(rpc);
}

/* Look for SPIN whether something comes, before falling asleep for it: on a virtual machine to be woken on
 * an idle processor costs 30 to 50 us, as much as a small call otherwise takes.  Only as long as it is worth
 * it: each time in vain it is left out twice as often. */
static bool spin(struct port *p, struct pollfd *fds)
{
	if (atomic_load(&p->spin_skip)) {
		atomic_fetch_sub(&p->spin_skip, 1);
		return false;
	}
	mono_ns until = clk_mono() + SPIN;
	do {
		if (poll(fds, 2, 0) > 0) {
			atomic_store(&p->spin_vain, 0);
			return true;
		}
	} while (clk_mono() < until);
	int vain = MIN(atomic_load(&p->spin_vain) + 1, SPIN_VAIN_MAX);
	atomic_store(&p->spin_vain, vain);
	atomic_store(&p->spin_skip, (1 << vain) - 1);
	return false;
}

/* Wait on the socket for what comes, a wake-up through `fd`, or `until`.  True: there is something to
 * receive.  Without the socket only for the other two. */
static bool poll_until(struct port *p, bool socket, int fd, mono_ns until)
{
	struct pollfd fds[2] = {{.fd = socket ? p->udp.fd : -1, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	struct timespec ts, *timeout = NULL;
	if (until != MONO_NEVER) {
		int64_t left = MAX(until - clk_mono(), INT64_C(0));
		ts = (struct timespec){.tv_sec = (time_t)(left / NS_PER_SEC), .tv_nsec = left % NS_PER_SEC};
		timeout = &ts;
	}
	if (!(socket && spin(p, fds)) && ppoll(fds, 2, timeout, NULL) <= 0)
		return false;
	if (fds[1].revents) {
		uint64_t count;
		(void)!read(fd, &count, sizeof(count)); /* only to make it quiet again */
	}
	return fds[0].revents;
}

static void port_interrupt(struct rpc_port *rpc)
{
	uint64_t one = 1;
	if (borrowed != rpc)
		(void)!write(port_of(rpc)->interrupt_fd, &one, sizeof(one)); /* full: it is on its way */
}

/* Wait on the socket in the I/O thread's stead, once. */
static void borrow(struct port *p, struct rpc_stream *s) REQUIRES(s->lock)
{
	struct rpc_port *rpc = &p->rpc;
	atomic_store(&s->polls, true);
	mtx_unlock(&s->lock);
	atomic_fetch_add(&p->borrows, 1);
	if (poll_until(p, true, p->interrupt_fd, atomic_load(&p->due)) || atomic_load(&p->due) <= clk_mono()) {
		borrowed = rpc;
		mtx_lock(&rpc->lock);
		leave(rpc, true);
		kick(rpc);
		borrowed = NULL;
	}
	mtx_lock(&s->lock);
	atomic_store(&s->polls, false);
}

static void port_wait(struct rpc_port *rpc, struct rpc_stream *s) REQUIRES(s->lock)
{
	struct port *p = port_of(rpc);
	int none = POLLER_NONE;
	bool alone = atomic_fetch_add(&p->waiters, 1) == 0;
	bool small = !s->service && s->waiting == RPC_WAIT_READ && s->rx_total <= RPC_SMALL;
	if (!alone || !small || !atomic_compare_exchange_strong(&p->poller, &none, POLLER_CALLER)) {
		rpc_stream_wait(s);
		atomic_fetch_sub(&p->waiters, 1);
		return;
	}
	borrow(p, s);
	atomic_store(&p->poller, POLLER_NONE);
	if (atomic_fetch_sub(&p->waiters, 1) > 1 || atomic_load(&p->parks_long)) {
		atomic_store(&p->hand_back, true);
		wake(p);
	}
}

static afs_err submit(struct rpc_port *rpc, struct rpc_stream *s)
{
	struct port *p = port_of(rpc);
	return p->workers ? rpc_workers_submit(p->workers, s) : AFS_EOVERLOAD;
}

static void port_free(struct rpc_port *rpc)
{
	struct port *p = port_of(rpc);
	rpc_port_fini(rpc);
	mem_free(p);
}

static const struct rpc_driver driver = {
	.kick = kick, .enter = port_enter, .leave = port_leave, .wait = port_wait,
	.interrupt = port_interrupt, .submit = submit, .free = port_free,
};

/* --- the I/O thread ---------------------------------------------------------------------------- */

static void io_enter(struct port *p) ACQUIRE(p->rpc.lock);
static void io_enter(struct port *p)
{
	atomic_store(&p->rpc.io_wants, true);
	mtx_lock(&p->rpc.lock);
	atomic_store(&p->rpc.io_wants, false);
}

/* Is it one caller, waiting for one answer after the other, that keeps this thread busy? */
static bool lonely_caller(struct port *p) REQUIRES(p->rpc.lock)
{
	unsigned woken = p->rpc.callers_woken - p->woken_seen, served = p->rpc.served - p->served_seen;
	p->woken_seen += woken;
	p->served_seen += served;
	if (served || woken > 1)
		p->lonely = 0;
	else if (woken)
		p->lonely++;
	return p->lonely >= 2;
}

/* Leave the socket to borrowers for a while.  True: it is this thread's again. */
static bool io_park(struct port *p, mono_ns until, mono_ns *park, unsigned *seen)
{
	atomic_store(&p->parks_long, *park > PARK);
	(void)poll_until(p, false, p->wake_fd, MIN(until, clk_mono() + *park)); /* it polls nothing to receive from */
	atomic_store(&p->parks_long, false);
	unsigned borrows = atomic_load(&p->borrows);
	bool active = borrows != *seen;
	*seen = borrows;
	*park = active ? PARK : MIN(*park * 2, PARK_LONG);
	if (active && !atomic_exchange(&p->hand_back, false))
		return false;
	int none = POLLER_NONE;
	return atomic_compare_exchange_strong(&p->poller, &none, POLLER_IO);
}

/* A bulk transfer whose packets or acknowledgements trickle in one by one, as stock peers send them: is it
 * worth to let some gather, so that one turn and one ACK serve for several?  Not when a turn brought
 * much, since then they gather by themselves, and not when much could be sent for what came, since then the
 * window waits for us. */
static bool trickles(struct port *p, mono_ns now) REQUIRES(p->rpc.lock)
{
	bool soon = now - p->woke < GATHER_RATE;
	if (p->came)
		p->woke = now;
	return soon && p->came && p->came <= GATHER_FEW && p->sent <= GATHER_FEW && !p->urgent;
}

/* Be run soon, for short: small calls wait for this thread while others compute.  Kernels from 6.12 on take
 * such a wish from anyone; older ones hear nothing in it. */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr), .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE};
	(void)syscall(SYS_sched_setattr, 0, &attr, 0); /* without it all is as it was */
}

static void *io_main(void *arg)
{
	struct port *p = arg;
	pthread_setname_np(pthread_self(), p->name);
	ask_for_short_slices();
	io_self = &p->rpc;
	bool receive = false, mine = true;
	mono_ns park = PARK;
	unsigned seen = 0;
	for (;;) {
		io_enter(p);
		if (p->stop)
			break;
		bool idle = !receive && !atomic_load(&p->rpc.work_waits);
		mono_ns was_active = p->active;
		bool more = turn(p, receive);
		mono_ns now = p->active;
		if (idle)
			p->active = was_active;
		mono_ns until = next_due(p, now);
		if (now - p->active < ACTIVE)
			until = MIN(until, now + NAP);
		struct rpc_stream *ready = rpc_engine_take_inline(&p->rpc);
		p->sleeps_to = ready || more ? 0 : mine ? until : MIN(until, now + park);
		bool lonely = lonely_caller(p);
		bool gather = !ready && !more && trickles(p, now);
		mtx_unlock(&p->rpc.lock);

		if (rpc_engine_has_gone(&p->rpc))
			rpc_engine_run_gone(&p->rpc);
		if (ready) {
			while (ready)
				ready = rpc_stream_serve(ready);
			receive = false; /* first send what they said */
			continue;
		}
		receive = more && mine;
		if (more || atomic_load(&p->rpc.work_waits))
			continue;
		if (mine && lonely && atomic_load(&p->waiters) <= 1) {
			mine = false;
			park = PARK;
			seen = atomic_load(&p->borrows);
			atomic_store(&p->poller, POLLER_NONE);
		}
		if (mine && gather && until > now + GATHER) {
			(void)poll_until(p, false, p->wake_fd, now + GATHER); /* for nothing but the time */
			receive = true;
		} else if (mine) {
			receive = poll_until(p, true, p->wake_fd, until);
		} else if (io_park(p, until, &park, &seen)) {
			mine = receive = true;
			p->lonely = 0;
		}
	}
	mtx_unlock(&p->rpc.lock);
	return NULL;
}

/* --- opening and closing ------------------------------------------------------------------------ */

static uint32_t endpoint_random(void *ctx)
{
	(void)ctx;
	return rand_u32();
}

static wall_ns endpoint_wall(void *ctx)
{
	(void)ctx;
	return clk_wall();
}

static afs_err port_start(struct port *p, const struct rpc_port_config *config)
{
	uint32_t max_datagram = config->max_datagram ? config->max_datagram : DATAGRAM_DEFAULT;
	const struct udp_config udp = {
		.ip = config->ip,
		.port = config->port,
		.max_datagram = max_datagram,
		.plain = config->plain,
		.single = config->single,
		.pool = config->pool,
	};
	TRY(udp_open(&p->udp, &udp));
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0 || p->interrupt_fd < 0)
		return log_error(afs_err_from_errno(errno), "rx.port.no_eventfd reason=\"%s\"", strerror(errno));
	const struct rx_endpoint_config ec = {
		.pool = config->pool,
		.random = endpoint_random,
		.wall = endpoint_wall,
		.loopback_big = !config->max_datagram,
		.max_datagram = config->max_datagram,
		.abort_threshold = config->abort_threshold,
		.conns_max = config->conns_max,
		.version = p->version,
		.accept = rpc_port_accept,
		.accept_ctx = &p->rpc,
	};
	p->active = clk_mono();
	p->rpc.ep = rx_endpoint_new(&ec, p->active);
	if (!p->rpc.ep)
		return AFS_ENOMEM;
	int eno = pthread_create(&p->thread, NULL, io_main, p);
	if (eno)
		return log_error(AFS_ENOMEM, "rx.port.no_thread name=%s reason=\"%s\"", p->name, strerror(eno));
	return AFS_OK;
}

static void port_end(struct port *p)
{
	rx_endpoint_free(p->rpc.ep);
	p->rpc.ep = NULL;
	if (p->wake_fd >= 0)
		close(p->wake_fd);
	if (p->interrupt_fd >= 0)
		close(p->interrupt_fd);
	udp_close(&p->udp);
}

afs_err rpc_port_open(const struct rpc_port_config *config, struct rpc_port **out)
{
	struct port *p = mem_new(struct port);
	if (!p)
		return AFS_ENOMEM;
	p->wake_fd = p->interrupt_fd = p->udp.fd = -1;
	atomic_init(&p->poller, POLLER_IO);
	p->workers = config->workers;
	snprintf(p->name, sizeof(p->name), "%.12s-io", config->name);
	snprintf(p->version, sizeof(p->version), "afscell %s", PACKAGE_VERSION);
	p->rpc.driver = &driver;
	p->rpc.pool = config->pool;
	p->rpc.acceptor = config->acceptor;
	afs_err err = rpc_port_init(&p->rpc, config->services, config->service_count);
	if (err == AFS_OK)
		err = port_start(p, config);
	if (err != AFS_OK) {
		port_end(p);
		port_free(&p->rpc);
		return err;
	}
	*out = &p->rpc;
	return AFS_OK;
}

void rpc_port_close(struct rpc_port *rpc)
{
	if (!rpc)
		return;
	struct port *p = port_of(rpc);
	mono_ns now = port_enter(rpc);
	rpc_engine_close(rpc, now);
	port_leave(rpc);
	rpc_engine_drain(rpc);

	mtx_lock(&rpc->lock);
	p->stop = true;
	mtx_unlock(&rpc->lock);
	wake(p);
	pthread_join(p->thread, NULL);
	mtx_lock(&rpc->lock);
	port_end(p);
	mtx_unlock(&rpc->lock);
	rpc_engine_run_gone(rpc);
	rpc_port_unref(rpc);
}

uint16_t rpc_port_number(const struct rpc_port *port)
{
	return ((const struct port *)port)->udp.port;
}

void rpc_port_stats(const struct rpc_port *port, struct rx_stats *out)
{
	rx_endpoint_stats(port->ep, out);
	out->refused_overload += atomic_load(&port->overloaded);
}

void rpc_port_load(const struct rpc_port *port, unsigned *running, unsigned *waiting)
{
	*running = atomic_load(&port->running);
	*waiting = atomic_load(&port->waiting);
}
