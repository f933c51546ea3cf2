/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who the clients are, what they were promised, and how they are told: the callback side of the
 * file server, as fileserver/fs uses it.
 *
 *   host    a cache manager.  Its UUID is the key; address and port are attributes
 *   client  one connection of a host: a user's identity, kept with the connection
 *   promise callback promises: cb_table.h
 *
 * A call begins with cb_client_begin, which meets the host when it is unknown (asks who it is, has it
 * drop old promises), delivers what waited for it, and judges the caller's identity.  A change ends
 * with cb_break before it is acknowledged.
 *
 * Waits: for a client's answer, at most CB_DEAD_NS of silence and CB_HARD_NS in all (a change for its
 * breaks, of all clients together: CB_BREAK_WAIT_NS or what the configuration says), with no lock
 * held.  Never more than `identify_max` workers wait for clients that are being met, and CB_MEET_WAIT
 * of them for one address; other calls are refused with AFS_EVBUSY, which clients retry.  Who cannot
 * be called is refused with AFS_EDEAD, for CB_RETRY_NS without being asked again.
 *
 * Addresses that a client lists in its answer are not used: only those it has called from.  (Stock
 * servers send breaks to listed addresses at port 7001, whoever listens there.)
 *
 * Source: protocol callback.md §2-6, fileserver.md §14. */
#pragma once
#include "cell/proto/cb.h"
#include "fileserver/cb/cb_table.h"
#include "fileserver/cb/cb_wire.h"
#include "fileserver/fileserver.h"

struct cb;
struct cb_client; /* never changes: a refreshed identity is another client */

#define CB_DEAD_NS SEC(4)
#define CB_HARD_NS SEC(12)
#define CB_RETRY_NS SEC(5)
#define CB_BREAK_WAIT_NS SEC(2) /* the most that a client which does not answer delays a change */

enum {
	CB_ADDRS = 4,         /* per host */
	CB_DELAYED_MAX = 200, /* per host; more become a reset */
	CB_MEET_WAIT = 6,     /* calls that wait for one meeting */
};

struct cb_config {
	struct fs_people_port people;
	struct cb_wire wire; /* taken over: wire.free runs in cb_free */
	struct afsUUID uuid;
	uint32_t promises_max, hosts_max, identify_max;
	uint32_t promise_life_s; /* cb_table_set_life */
};
afs_err cb_new(const struct cb_config *config, struct cb **out);
void cb_free(struct cb *cb); /* all clients must have been given back */
static inline void cb_cleanup(struct cb **cb) { cb_free(*cb); }
/* The housekeeper: delivers volume breaks, expires promises, probes and forgets hosts.  Its own
 * thread runs cb_keep until cb_stop; tests call cb_housekeep. */
void cb_keep(struct cb *cb);
void cb_stop(struct cb *cb);
void cb_housekeep(struct cb *cb, mono_ns now);

/* --- calls ----------------------------------------------------------------------------------- */

/* The caller's client, referenced: cb_client_end() it.  Waits (see above).  AFS_EDEAD: the client
 * cannot be called back; AFS_EVBUSY: being met, or too many are; AFS_EAGAIN: the cell cannot tell
 * who it is now; AFS_EWAIT: this call must not wait, and would have to; AFS_ENOMEM. */
afs_err cb_client_begin(struct cb *cb, struct rpc_call *call, struct cb_client **out);
void cb_client_end(struct cb_client *c);
static inline void cb_client_cleanup(struct cb_client **c)
{
	if (*c)
		cb_client_end(*c);
}
/* The client that an earlier call of this connection left, without meeting anybody; does its host
 * translate UAE codes?  For abort codes. */
bool cb_call_translates(struct cb *cb, const struct rpc_call *call);

/* Valid while the client is held: a snapshot that a later refresh does not touch. */
const struct fs_identity *cb_client_identity(const struct cb_client *c);
const struct fs_cps *cb_client_host_groups(const struct cb_client *c);

/* --- promises -------------------------------------------------------------------------------- */

/* Promise, and write what goes back; never fails: when nothing can be promised, the callback says
 * that it is already dropped.  Does not wait (somebody who must make room is told by the
 * housekeeper).  Call it BEFORE reading what the reply will say. */
void cb_grant(struct cb *cb, struct cb_client *c, const struct AFSFid *fid, enum cb_kind kind,
	mono_ns now, struct AFSCallBack *out);
/* The same for several of one kind. */
void cb_grant_all(struct cb *cb, struct cb_client *c, const struct AFSFid *fids, size_t n,
	enum cb_kind kind, mono_ns now, struct AFSCallBack *out);
/* Tell every other holder; `c` NULL: every holder.  Returns when each was told or is known not to
 * answer (then it is told when it comes back).  Call it after the change and before the reply. */
void cb_break(struct cb *cb, const struct AFSFid *fids, size_t n, struct cb_client *c, mono_ns now);
/* As cb_break for {volume, 0, 0}, by the housekeeper, soon.  Never waits. */
void cb_break_volume(struct cb *cb, afs_volid volume);
/* The object died with its last name. */
void cb_gone(struct cb *cb, const struct AFSFid *fid);
void cb_give_up(struct cb *cb, struct cb_client *c, const struct AFSFid *fids, size_t n);
void cb_give_up_all(struct cb *cb, struct cb_client *c);

/* --- identities, statistics ------------------------------------------------------------------ */

/* Ask the cell again about these ids and these hosts (FlushCPS). */
void cb_flush_cps(struct cb *cb, const int32_t *ids, size_t n, const uint32_t *ips, size_t m);
void cb_stats(struct cb *cb, struct fileserver_stats *out); /* sets its own fields only */
size_t cb_hosts(struct cb *cb, mono_ns now, struct fileserver_host *out, size_t n);
