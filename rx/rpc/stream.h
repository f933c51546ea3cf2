/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The inside of a call: two bounded packet queues between the endpoint and the thread that reads
 * and writes.  Fields say whose they are:
 *   fixed   set before a second thread sees the stream
 *   lock    guarded by `lock`
 *   engine  guarded by port->lock
 *   user    the handler's or the caller's thread alone */
#pragma once
#include "rx/rpc/engine.h"

enum rpc_state {
	RPC_COLLECTING, /* server: arguments are not complete */
	RPC_READY,      /* server: waits for a thread */
	RPC_RUNNING,    /* a handler or a caller has it */
	RPC_FINISHED,   /* given back; the rest of what it wrote is on its way */
};
enum rpc_waiting { RPC_WAIT_NONE, RPC_WAIT_START, RPC_WAIT_READ, RPC_WAIT_WRITE };

struct rpc_queue {
	struct rx_packet *head, **tail;
	uint32_t packets;
	size_t bytes;
};

struct rpc_stream {
	struct rpc_call pub; /* first */
	struct rpc_port *port;             /* fixed */
	const struct rpc_service *service; /* fixed; NULL: a call made */
	struct rpc_conn *conn;             /* fixed; a call made: counted */
	mono_ns begun;                     /* fixed: a call served, since when it waits for a thread; one made, its start */
	struct rpc_conn_user *conn_user;   /* fixed; a call served: counted */
	uint64_t conn_key;                 /* fixed once started */
	const struct rx_sec *sec;          /* fixed once started */
	struct rx_sec_packet in_id, out_id; /* fixed once started; seq aside */

	struct list node;            /* engine: of port->streams */
	struct list link;            /* worker pool, or rpc_conn.waiters */
	struct rpc_stream *next;     /* engine: inline list */
	struct rpc_stream *lazy_next; /* engine */
	bool lazy;                   /* engine: is in the lazy list */
	struct rx_call *call;        /* engine: counted; NULL before start and after release */
	struct rpc_work work;
	enum rpc_state state;        /* engine, until it runs */
	size_t tried;                /* engine: bytes at the last attempt to decode */

	struct mtx lock;
	struct cond cond;
	struct rpc_queue rx;         /* lock: came, not yet taken by the user */
	bool rx_last;                /* lock: LAST came */
	size_t rx_total;             /* lock: bytes that came so far */
	uint32_t rx_told;            /* lock: packets at the front of `rx` that the endpoint was told are consumed */
	uint32_t untold;             /* lock: packets that came and that it was not told of yet */
	uint32_t consumed;           /* lock: packets read, not yet told to the endpoint */
	struct rpc_queue tx;         /* lock: sealed, for the endpoint */
	atomic_bool tx_void;         /* written under lock: the peer has begun its reply and reads no more */
	uint32_t body_max;           /* lock: bytes of body per packet */
	enum rpc_waiting waiting;    /* lock */
	atomic_bool polls;           /* written under lock: its user waits inside the driver, not on cond */
	bool started;                /* lock: a call made has its channel */
	bool quick;                  /* lock: `tx` is the whole request, to be sealed at the start */
	atomic_bool over;            /* written under lock: ended from outside, err and code say how */
	afs_err err;                 /* lock */
	int32_t code;                /* lock */
	bool want_abort, want_done, want_release, want_collect; /* lock: for the endpoint */
	int32_t abort_code;          /* lock */
	afs_err want_distrust;       /* lock: a packet did not verify; for the endpoint */

	/* user: local.c */
	bool local;
	struct rpc_stream *twin;     /* the other side, until it has run */

	/* user */
	struct rpc_queue in;         /* taken from rx */
	uint32_t in_opened;          /* packets at the head of `in` that are open already */
	uint32_t in_told;            /* packets at the front of `in` (and cur) of which the same holds as of rx_told */
	bool in_last;                /* LAST is in `in` or was read */
	struct rx_packet *cur;       /* being read: [at, at + left) */
	const uint8_t *at;
	size_t left;
	uint32_t read_packets;       /* finished, not yet in `consumed` */
	size_t read_bytes;
	struct rx_packet *fill;      /* being written, `used` of `room` data bytes */
	size_t used, room;
	struct rpc_queue out;        /* sealed, not yet handed over */
	rx_seq seq;                  /* of the last packet sealed */
	uint64_t wrote;              /* bytes, for statistics */
	uint32_t body;               /* body_max as last seen */
	bool wrote_last;
	int32_t refuse_code;         /* rpc_refuse */
	bool queued;                 /* served: by the workers, not by the I/O thread */
	bool decoded;                /* served: `in_args` is decoded */
	void *in_args;
	size_t args_used;            /* bytes of opcode and arguments at the front of the stream */
	struct arena arena;
};

static inline struct rpc_stream *stream_of(const struct rpc_call *call)
{
	return (struct rpc_stream *)(uintptr_t)call;
}

void rpc_queue_init(struct rpc_queue *q);
void rpc_queue_push(struct rpc_queue *q, struct rx_packet *p);
struct rx_packet *rpc_queue_pop(struct rpc_queue *q);
void rpc_queue_append(struct rpc_queue *q, struct rpc_queue *from); /* from is empty afterwards */
void rpc_queue_clear(struct rpc_queue *q);

/* NULL: out of memory. */
struct rpc_stream *rpc_stream_new(struct rpc_port *port);
/* For drivers: wait for the condition; s->lock is held. */
void rpc_stream_wait(struct rpc_stream *s) REQUIRES(s->lock);
/* With port->lock and not s->lock: whoever waits for the stream looks again. */
void rpc_stream_signal(struct rpc_stream *s);
/* The user is done with a call that ran for `run_ns` after `queue_ns`: count it. */
void rpc_stream_note(struct rpc_stream *s, mono_ns now, int64_t queue_ns, int64_t run_ns);
/* With port->lock: bind to the endpoint's call (takes a reference) and read what does not change. */
void rpc_stream_bind(struct rpc_stream *s, struct rx_call *call);
/* With port->lock: forget the endpoint's call and free. */
void rpc_stream_destroy(struct rpc_stream *s);

/* With port->lock: */
/* The user read packets, or holds them where they do not count. */
void rpc_stream_consumed(struct rpc_stream *s, uint32_t packets, mono_ns now);
void rpc_stream_work(struct rpc_port *port, struct rpc_work *work, mono_ns now) REQUIRES(port->lock);
void rpc_stream_receive(struct rpc_stream *s, mono_ns now);
void rpc_stream_push(struct rpc_stream *s, mono_ns now);
void rpc_stream_end(struct rpc_stream *s, afs_err err, int32_t code);

/* The user's side; any thread without locks. */
/* The next `n` bytes or fewer at the end, as one piece without taking them: inside a packet, or
 * gathered in `*scratch`, which the caller frees with rpc_scratch_free.  Opens packets; never waits. */
struct rpc_scratch {
	struct rx_buf *buf;
	uint8_t *heap;
};
afs_err rpc_stream_peek(struct rpc_stream *s, size_t max, struct rpc_scratch *scratch, const uint8_t **p, size_t *n);
uint8_t *rpc_scratch_get(struct rpc_port *port, struct rpc_scratch *scratch, size_t n);
void rpc_scratch_free(struct rpc_scratch *scratch);
void rpc_stream_skip(struct rpc_stream *s, size_t n);
/* Take over what came; true when LAST is among it. */
bool rpc_stream_take(struct rpc_stream *s);
size_t rpc_stream_taken(const struct rpc_stream *s); /* bytes taken and unread */
/* XDR at the end of what was written. */
afs_err rpc_stream_put(struct rpc_stream *s, const uint32_t *op, void (*put)(struct xdr_out *, const void *), const void *v, uint32_t max);
/* Mark what was written as all there is; finish also hands it over (release does so anyway). */
afs_err rpc_stream_seal_last(struct rpc_stream *s);
afs_err rpc_stream_finish(struct rpc_stream *s);
/* Drop what was written and not handed over. */
void rpc_stream_drop(struct rpc_stream *s);
/* A packet did not verify: the whole connection is ended. */
void rpc_stream_distrust(struct rpc_stream *s, afs_err err, mono_ns now);
/* Wait until LAST came.  AFS_EDECODE: more than `max` bytes did. */
afs_err rpc_stream_await_all(struct rpc_stream *s, size_t max);
/* A worker found the arguments incomplete: let them be collected further. */
void rpc_stream_collect(struct rpc_stream *s);
/* A request that fits one packet of the smallest size: encode it and leave it to the endpoint to
 * start the call, seal and send.  False: it does not fit, nothing happened. */
bool rpc_stream_quick(struct rpc_stream *s, const struct rx_sec *sec, const struct rpc_proc *proc, const void *in);
/* With port->lock: the call has started, what rpc_stream_quick left goes out. */
void rpc_stream_quick_go(struct rpc_stream *s, mono_ns now);
/* Tell the endpoint and give the stream back: it may be freed before this returns. */
void rpc_stream_release(struct rpc_stream *s, bool abort, int32_t code, bool done);

/* engine.c, with port->lock: the word of a server connection; NULL: out of memory. */
struct rpc_conn_user *rpc_conn_user_get(struct rpc_port *port, struct rx_conn *conn);
void rpc_conn_user_unref(struct rpc_conn_user *u);

/* dispatch.c, with port->lock */
void rpc_dispatch_new(struct rpc_port *port, struct rx_call *call, mono_ns now) REQUIRES(port->lock);
void rpc_dispatch_more(struct rpc_stream *s, mono_ns now);

/* local.c.  NULL: no such service there, no memory, or the token was refused: then the network says why. */
struct rpc_local *rpc_local_new(const struct rpc_conn_config *config);
void rpc_local_free(struct rpc_local *l);
/* The port has closed: run the hooks of connections that are still there. */
void rpc_locals_end(struct rpc_port *server);
afs_err rpc_local_begin(struct rpc_local *l, struct rpc_stream *s, const struct rpc_proc *proc);
void rpc_local_run(struct rpc_stream *s);  /* the other side runs, once */
void rpc_local_drop(struct rpc_stream *s); /* it is not to run any more */
/* dispatch.c: decode, handle, reply on this thread; an error comes with its code. */
afs_err rpc_stream_serve_local(struct rpc_stream *s, int32_t *code);

/* client.c, with port->lock: a call of `c` ended, so a waiting one may start. */
void rpc_conn_freed(struct rpc_conn *c, mono_ns now);
/* client.c, with port->lock: keep an ended small call for a moment; takes the reference. */
void rpc_conn_linger(struct rpc_conn *c, struct rx_call *call, mono_ns now);
/* client.c, with port->lock: end those whose time has come; gives the time of the next. */
mono_ns rpc_conns_tick(struct rpc_port *port, mono_ns now);
/* client.c, with port->lock: the port closes. */
void rpc_conns_close(struct rpc_port *port, mono_ns now);
