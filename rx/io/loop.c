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
 * The I/O thread sleeps until the endpoint's next tick, but while there is traffic never longer than
 * NAP: then a worker that starts a new timer need not wake it for that. */
#include "rx/io/port.h"
#include "rx/io/udp.h"
#include "rx/io/workers.h"
#include "rx/rpc/stream.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NAP MSEC(25)
#define ACTIVE SEC(1)
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
	char name[16], version[64];
};

static _Thread_local const struct rpc_port *io_self;

static struct port *port_of(struct rpc_port *rpc) { return (struct port *)rpc; }

static void wake(struct port *p)
{
	uint64_t one = 1;
	(void)!write(p->wake_fd, &one, sizeof(one)); /* full means that it is awake */
}

/* --- inside, with the lock -------------------------------------------------------------------- */

static void on_datagram(void *ctx, const struct rx_datagram *in)
{
	struct port *p = ctx;
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
	return n == UDP_BATCH || bytes >= SEND_BYTES;
}

/* Everything that can be done now.  True: more of it is left. */
static bool turn(struct port *p, bool receive) REQUIRES(p->rpc.lock)
{
	struct rpc_port *rpc = &p->rpc;
	mono_ns now = p->active = clk_mono();
	bool more = receive && udp_receive(&p->udp, on_datagram, on_refused, p);
	rpc_engine_work(rpc, now);
	if (rx_endpoint_next_tick(rpc->ep) <= now)
		rx_endpoint_tick(rpc->ep, now);
	rpc_engine_events(rpc, now);
	return send_some(p, now) || more;
}

/* Does the I/O thread have to be told of what a turn on another thread brought up? */
static bool io_needed(struct port *p) REQUIRES(p->rpc.lock)
{
	if (!p->sleeps_to)
		return false;
	bool needed = p->rpc.inline_head || rpc_engine_has_gone(&p->rpc) ||
		rx_endpoint_next_tick(p->rpc.ep) < p->sleeps_to - NAP ||
		(p->rpc.lazy_head && p->rpc.lazy_at < p->sleeps_to);
	if (needed)
		p->sleeps_to = 0;
	return needed;
}

/* --- the driver ------------------------------------------------------------------------------- */

static void leave(struct rpc_port *rpc) RELEASE(rpc->lock);
static void leave(struct rpc_port *rpc)
{
	struct port *p = port_of(rpc);
	if (!rpc->ep)
		rpc_engine_work(rpc, 0); /* closed: calls that were refused are given back */
	else if (io_self != rpc) {
		while (turn(p, false) && !atomic_load(&rpc->io_wants))
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
		leave(rpc);
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
	leave(rpc);
	kick(rpc);
}

static void port_wait(struct rpc_port *rpc, struct rpc_stream *s)
{
	(void)rpc;
	rpc_stream_wait(s);
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
	.kick = kick, .enter = port_enter, .leave = port_leave, .wait = port_wait, .submit = submit, .free = port_free,
};

/* --- the I/O thread ---------------------------------------------------------------------------- */

static void io_enter(struct port *p) ACQUIRE(p->rpc.lock);
static void io_enter(struct port *p)
{
	atomic_store(&p->rpc.io_wants, true);
	mtx_lock(&p->rpc.lock);
	atomic_store(&p->rpc.io_wants, false);
}

/* Wait for a datagram, a wake-up or `until`.  True: there is something to receive. */
static bool io_sleep(struct port *p, mono_ns until)
{
	struct pollfd fds[2] = {{.fd = p->udp.fd, .events = POLLIN}, {.fd = p->wake_fd, .events = POLLIN}};
	struct timespec ts, *timeout = NULL;
	if (until != MONO_NEVER) {
		int64_t left = MAX(until - clk_mono(), INT64_C(0));
		ts = (struct timespec){.tv_sec = (time_t)(left / NS_PER_SEC), .tv_nsec = left % NS_PER_SEC};
		timeout = &ts;
	}
	if (ppoll(fds, 2, timeout, NULL) <= 0)
		return false;
	if (fds[1].revents) {
		uint64_t count;
		(void)!read(p->wake_fd, &count, sizeof(count)); /* only to make it quiet again */
	}
	return fds[0].revents;
}

static void *io_main(void *arg)
{
	struct port *p = arg;
	struct rpc_port *rpc = &p->rpc;
	pthread_setname_np(pthread_self(), p->name);
	io_self = rpc;
	bool receive = false;
	for (;;) {
		io_enter(p);
		if (p->stop)
			break;
		bool idle = !receive && !atomic_load(&rpc->work_waits);
		mono_ns was_active = p->active;
		bool more = turn(p, receive);
		mono_ns now = p->active;
		if (idle)
			p->active = was_active;
		mono_ns until = MIN(rpc_engine_lazy(rpc, now), rx_endpoint_next_tick(rpc->ep));
		if (now - p->active < ACTIVE)
			until = MIN(until, now + NAP);
		struct rpc_stream *ready = rpc_engine_take_inline(rpc);
		p->sleeps_to = ready || more ? 0 : until;
		mtx_unlock(&rpc->lock);

		if (rpc_engine_has_gone(rpc))
			rpc_engine_run_gone(rpc);
		if (ready) {
			while (ready)
				ready = rpc_stream_serve(ready);
			receive = false; /* first send what they said */
			continue;
		}
		receive = more;
		if (!more && !atomic_load(&rpc->work_waits))
			receive = io_sleep(p, until);
	}
	mtx_unlock(&rpc->lock);
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
		.pool = config->pool,
	};
	TRY(udp_open(&p->udp, &udp));
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return log_error(afs_err_from_errno(errno), "rx.port.no_eventfd reason=\"%s\"", strerror(errno));
	const struct rx_endpoint_config ec = {
		.pool = config->pool,
		.random = endpoint_random,
		.wall = endpoint_wall,
		.loopback_big = !config->max_datagram,
		.max_datagram = config->max_datagram,
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
	udp_close(&p->udp);
}

afs_err rpc_port_open(const struct rpc_port_config *config, struct rpc_port **out)
{
	struct port *p = mem_new(struct port);
	if (!p)
		return AFS_ENOMEM;
	p->wake_fd = p->udp.fd = -1;
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
