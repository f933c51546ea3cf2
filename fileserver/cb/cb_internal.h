/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of fileserver/cb share.
 *
 *   cb_table.c    promises
 *   cb_wire.c     calls to clients
 *   cb_host.c     the table of hosts: by UUID, by address
 *   cb_meet.c     first contact, moves, what waited for a host that is back
 *   cb_client.c   identities, kept with connections
 *   cb_break.c    telling
 *   cb_keep.c     the housekeeper
 *
 * One lock, cb->lock (RANK_FS_HOST), guards hosts, meetings and queues; it is never held across a
 * call of cb->wire or cb->people.  The promise table's lock is below it. */
#pragma once
#include "cell/base/map.h"
#include "cell/base/mtx.h"
#include "fileserver/cb/cb.h"

struct host_addr {
	struct map_node node;
	struct fs_host *host; /* NULL: unused */
	struct rx_addr addr;
};

/* A client host.  Fields but `holder` are under cb->lock. */
struct fs_host {
	struct cb_holder holder; /* first: the table knows a host as its holder */
	struct cb *cb;
	struct map_node by_uuid;
	struct list all;
	bool has_uuid, gone;
	uint8_t uuid[AFS_UUID_BYTES];
	struct host_addr addrs[CB_ADDRS];
	unsigned primary; /* index of the address that breaks go to */
	uint32_t caps;
	uint32_t epoch; /* of connections whose client is known to be this host; 0: none */
	mono_ns heard;
	bool down;              /* did not answer: breaks are delayed */
	bool reset;             /* it must drop all promises before it is served */
	bool busy;              /* somebody is delivering what waited */
	struct AFSFid *delayed; /* CB_DELAYED_MAX once needed */
	uint32_t delayed_n;
	struct list clients; /* its users, the latest first: counted, not held */
};

/* An address being met, or one that did not answer a moment ago. */
struct cb_meeting {
	struct map_node node;
	struct rx_addr addr;
	bool going;
	unsigned waiting;
	afs_err result;
	mono_ns retry; /* when it may be tried again */
};

struct cb_client {
	atomic_uint refs; /* raised from 0 by nobody: see client_gone() */
	struct list node; /* of host->clients; cb->lock */
	struct cb *cb;
	struct fs_host *host; /* a reference of its holder */
	struct rx_caller caller;
	struct fs_identity who;
	struct fs_cps groups; /* of the host */
	uint64_t generation;  /* of people and flushes, when asked */
	mono_ns asked;
};

enum { CB_QUEUE_VOLUMES = 64, CB_QUEUE_EVICTED = 256 };
struct cb_evicted {
	struct fs_host *host; /* a reference */
	struct AFSFid fid;
};

struct cb {
	struct fs_people_port people;
	struct cb_wire wire;
	struct cb_table *table;
	struct afsUUID uuid;
	uint32_t hosts_max, identify_max;
	atomic_uint_fast64_t flushes;

	struct mtx lock;
	struct cond changed; /* a meeting or a delivery ended */
	struct cond work;    /* the housekeeper is wanted */
	struct map by_uuid, by_addr, meetings;
	struct list hosts;
	uint32_t hosts_n, clients_n, identifying;
	bool stopping, want_room, break_all;
	afs_volid volumes[CB_QUEUE_VOLUMES];
	uint32_t volumes_n;
	struct cb_evicted evicted[CB_QUEUE_EVICTED];
	uint32_t evicted_n;

	struct {
		atomic_uint_fast64_t promises, evicted, sent, delayed, met, refused, busy, moved,
			resets;
	} count;
};

/* cb_host.c */
bool cb_addr_equal(struct rx_addr a, struct rx_addr b);
struct fs_host *cb_host_ref(struct fs_host *h);
void cb_host_unref(struct fs_host *h);
struct fs_host *cb_host_at_locked(struct cb *cb, struct rx_addr a) REQUIRES(cb->lock);
struct fs_host *cb_host_named_locked(struct cb *cb, const uint8_t *uuid) REQUIRES(cb->lock);
/* AFS_ENOMEM; AFS_EVBUSY: no room now (the housekeeper makes some). */
afs_err cb_host_new_locked(struct cb *cb, const struct cb_answer *who, struct rx_addr a,
	mono_ns now, struct fs_host **out) REQUIRES(cb->lock);
bool cb_host_has_addr(const struct fs_host *h, struct rx_addr a);
/* Make `a` the primary address; the oldest other one goes when there is no room.  False: no memory. */
bool cb_host_add_addr_locked(struct cb *cb, struct fs_host *h, struct rx_addr a) REQUIRES(cb->lock);
void cb_host_drop_addr_locked(struct cb *cb, struct fs_host *h, struct rx_addr a)
	REQUIRES(cb->lock);
bool cb_host_has_any_addr(const struct fs_host *h);
/* Out of all tables, promises forgotten; the tables' reference is the caller's to give back. */
void cb_host_remove_locked(struct cb *cb, struct fs_host *h) REQUIRES(cb->lock);
/* Keep a break for a host that does not answer. */
void cb_host_delay_locked(struct cb *cb, struct fs_host *h, const struct AFSFid *fid)
	REQUIRES(cb->lock);
/* All its promises are void and it must be told. */
void cb_host_reset_locked(struct cb *cb, struct fs_host *h) REQUIRES(cb->lock);

/* cb_meet.c: the host behind a call, met if need be; referenced.  Waits.  Errors as cb_client_begin. */
afs_err cb_meet(struct cb *cb, struct rx_addr from, struct rpc_port *via, uint32_t epoch,
	mono_ns now, struct fs_host **out);
/* Forget failures whose time is over. */
void cb_meet_trim_locked(struct cb *cb, mono_ns now) REQUIRES(cb->lock);
const char *cb_addr_text(struct rx_addr a, char out[32]);
/* Is there nothing that must reach this host before it is served? */
bool cb_host_ready(const struct fs_host *h);

/* cb_break.c: tell one host of some fids, or keep them for it. */
enum { CB_BATCH = 8 };
struct cb_target {
	struct fs_host *host; /* a reference */
	struct AFSFid fids[CB_BATCH];
	size_t n;
	struct rx_addr to;
	void *call;
	bool tried, told;
	struct {
		struct rx_addr to;
		void *call;
	} again[CB_ADDRS];
};
void cb_tell(struct cb *cb, struct cb_target *targets, size_t n); /* gives the references back */
