/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The seam between rx/rpc and what drives it (rx/io in production, a simulator in tests).
 *
 * A port has one endpoint, and `lock` is the right to touch it.  Whoever has something for the
 * endpoint leaves it as struct rpc_work and calls the driver's kick(): the driver then enters the
 * endpoint on the spot when nobody is inside, else whoever is inside does the work before leaving.
 * So a handler's packets are sent by the handler's own thread, without waking another.
 *
 * Locks, outermost first: rpc_port.lock, rpc_stream.lock, rpc_port.queue_lock.  Handlers, done
 * hooks and gone hooks run with none of them held. */
#pragma once
#include "cell/base/mtx.h"
#include "rx/rpc/rpc.h"

#include <stdatomic.h>

struct rpc_stream;
struct rpc_stats;

/* A piece of work for the endpoint.  Queued at most once; run with port->lock held. */
struct rpc_work {
	struct rpc_work *next;
	void (*run)(struct rpc_port *port, struct rpc_work *work, mono_ns now);
	bool queued; /* queue_lock */
};

struct rpc_driver {
	/* There is work for the endpoint.  No lock of this layer is held. */
	void (*kick)(struct rpc_port *port);
	/* The right to touch the endpoint, at any price; gives the time.  leave() does what there is to do
	 * and sends what there is to send before it lets go. */
	mono_ns (*enter)(struct rpc_port *port);
	void (*leave)(struct rpc_port *port);
	/* Wait until the stream is signalled, or for no reason; its lock is held, and given up meanwhile. */
	void (*wait)(struct rpc_port *port, struct rpc_stream *s);
	/* End a wait that has the stream's `polls` set. */
	void (*interrupt)(struct rpc_port *port);
	/* A call wants a worker, which runs rpc_stream_serve(s).  AFS_EOVERLOAD: refused.  Called with
	 * port->lock held. */
	afs_err (*submit)(struct rpc_port *port, struct rpc_stream *s);
	/* The last reference is gone: free the memory around the port. */
	void (*free)(struct rpc_port *port);
};

/* What the layer above keeps with a server connection; counted by the connection and its calls. */
struct rpc_conn_user {
	atomic_uint refs;
	struct rpc_port *port;
	struct rpc_conn_user *next; /* queue_lock: the connection is gone, the hook is due */
	void *user;                 /* queue_lock */
	void (*gone)(void *user);   /* queue_lock */
};

struct rpc_port {
	const struct rpc_driver *driver;
	atomic_uint refs; /* the opener and each rpc_conn */
	struct rx_buf_pool *pool;
	struct rpc_service *services;
	size_t service_count;
	struct rx_sec_acceptor acceptor;
	struct rpc_stats *stats;         /* rxstats.h */

	struct mtx lock;
	struct rx_endpoint *ep;          /* lock; NULL after close */
	bool closing;                    /* lock */
	atomic_bool closed;              /* the same, for local calls; also read under queue_lock */
	struct list streams;             /* lock: all calls, served and made */
	struct list conns;               /* lock: rpc_conns with Rx connections */
	struct rpc_stream *inline_head;  /* lock: INLINE calls that wait for the I/O thread */
	struct rpc_stream **inline_tail; /* lock */
	struct rpc_stream *lazy_head;    /* lock: readers that are woken at lazy_at */
	mono_ns lazy_at;                 /* lock */
	struct list lingering;           /* lock: rpc_conns with calls that end at linger_at, oldest first */
	unsigned callers_woken, served;  /* lock: callers that got an answer, calls that came; counters */

	struct mtx queue_lock;
	struct rpc_work *work_head, **work_tail; /* queue_lock */
	struct rpc_conn_user *gone_head; /* queue_lock */
	struct list locals;                      /* queue_lock: connections of this process, local.c */
	unsigned live;                           /* queue_lock: streams that exist */
	struct cond drained;                     /* queue_lock: live became 0 */
	atomic_bool work_waits;                  /* work_head is not NULL */
	atomic_bool io_wants; /* I/O thread waits for the lock and then does all work */

	atomic_uint running, waiting;
	atomic_ullong overloaded;
};

enum {
	RPC_HAND_OVER = 128 * 1024,  /* bytes that a writer collects before the endpoint sees them */
	RPC_HAND_OVER_PACKETS = 44,  /* the same in packets: one GSO send of small ones */
	RPC_TX_BYTES = 1024 * 1024,  /* given to the endpoint and not taken by it: then writers wait */
	RPC_WAKE_BYTES = 256 * 1024, /* a reader in mid-stream sleeps until so much waits for it */
	RPC_AHEAD_BYTES = 256 * 1024, /* acknowledged for good while its reader has not come for it */
	RPC_TELL_PACKETS = 16,       /* a reader that is behind tells of so many it has read */
	RPC_CONNS_MAX = 16,          /* Rx connections beneath one rpc_conn: 64 calls at once */
	RPC_SMALL = 16 * 1024,       /* a reply up to this is a small one */
};
#define RPC_ROOM_WAIT SEC(60) /* a writer waits for the buffer pool no longer than this */
#define RPC_LAZY USEC(500) /* and no longer than this */
/* A small call that was answered keeps its channel for so long: the next call on it says by itself
 * that the answer arrived, and saves an ACK with a wake-up at the other side.  Peers repeat an
 * answer after 220 ms at the earliest, and allow for 400 (rx.md §3.2, §6). */
#define RPC_LINGER MSEC(10)

/* Set up the parts of this layer in zeroed memory; ep, driver and pool are the driver's to fill
 * before traffic.  AFS_ENOMEM. */
afs_err rpc_port_init(struct rpc_port *port, const struct rpc_service *services, size_t count);
/* After the last reference. */
void rpc_port_fini(struct rpc_port *port);
/* For rx_endpoint_config.accept; ctx is the port. */
struct rx_sec *rpc_port_accept(void *port, struct rx_addr peer, uint16_t service, uint8_t index);

static inline mono_ns rpc_port_enter(struct rpc_port *port) ACQUIRE(port->lock) NO_TSA
{
	return port->driver->enter(port);
}
static inline void rpc_port_leave(struct rpc_port *port) RELEASE(port->lock) NO_TSA
{
	port->driver->leave(port);
}

/* Leave work; kick() is the caller's.  Nothing happens when it is in the queue already. */
void rpc_post(struct rpc_port *port, struct rpc_work *work);
bool rpc_posted(struct rpc_port *port, const struct rpc_work *work);

/* With port->lock held: do what was left. */
void rpc_engine_work(struct rpc_port *port, mono_ns now) REQUIRES(port->lock);
/* With port->lock held: take the endpoint's events. */
void rpc_engine_events(struct rpc_port *port, mono_ns now) REQUIRES(port->lock);
/* With port->lock held: do what is due, and give the time of what comes next.  `soon` is when a
 * reader is to be woken that was left to sleep; `later` bears a delay of some ms.  MONO_NEVER: none. */
struct rpc_dues {
	mono_ns soon, later;
};
struct rpc_dues rpc_engine_tick(struct rpc_port *port, mono_ns now) REQUIRES(port->lock);
/* With port->lock held: the INLINE calls that are ready, to be served one by one without it. */
struct rpc_stream *rpc_engine_take_inline(struct rpc_port *port) REQUIRES(port->lock);
/* Without locks: run the gone hooks that are due. */
bool rpc_engine_has_gone(struct rpc_port *port);
void rpc_engine_run_gone(struct rpc_port *port);
/* With port->lock held: end every call and connection; new ones are refused from now on. */
void rpc_engine_close(struct rpc_port *port, mono_ns now) REQUIRES(port->lock);
/* Wait until every call has been given back by its handler or caller. */
void rpc_engine_drain(struct rpc_port *port);

/* Serve a call that is ready, on this thread.  Gives the next of an inline list. */
struct rpc_stream *rpc_stream_serve(struct rpc_stream *s);

/* For the worker pool. */
struct list *rpc_stream_link(struct rpc_stream *s);
struct rpc_stream *rpc_stream_of_link(struct list *link);
struct rx_addr rpc_stream_peer(const struct rpc_stream *s);
struct rpc_port *rpc_stream_port(const struct rpc_stream *s);
