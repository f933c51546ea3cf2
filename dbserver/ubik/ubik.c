/* SPDX-License-Identifier: BSD-2-Clause
 * Answers of one site.  DISK's calls that would write are known and refused, to the superuser too:
 * stock's single site takes a whole database from anyone with the cell's key (ubik.md §4). */
#include "dbserver/ubik/ubik.h"

#define RPC_WANT_HANDLERS
#define RPC_PREFIX ubik_vote
#define RPC_ROWS "cell/proto/ubik_vote.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_HANDLERS
#define RPC_PREFIX ubik_disk
#define RPC_ROWS "cell/proto/ubik_disk.rpc"
#include "rx/xdr/iface_pass.h"

#define NO_HOST 0xffffffffu
enum { SYNC_FOR_EVER = 0x7fffffff, HEALTHY = 0x1f };

void ubik_site_init(struct ubik_site *site, const struct dbserver_ports *ports, uint32_t ip,
	wall_ns now, struct ubik_version stored)
{
	*site = (struct ubik_site){.ports = ports, .ip = ip, .epoch = clk_wire_sec(now)};
	mtx_init(&site->lock, RANK_LEAF);
	site->version = stored;
}

void ubik_site_fini(struct ubik_site *site) { mtx_fini(&site->lock); }

struct ubik_version ubik_site_next(struct ubik_site *site)
{
	mtx_lock(&site->lock);
	struct ubik_version v = site->version;
	mtx_unlock(&site->lock);
	if ((uint32_t)v.epoch != site->epoch || v.counter == INT32_MAX)
		return (struct ubik_version){(int32_t)site->epoch, 2};
	return (struct ubik_version){v.epoch, v.counter + 1};
}

void ubik_site_writing(struct ubik_site *site, bool now)
{
	mtx_lock(&site->lock);
	site->writing = now;
	site->transactions += now;
	mtx_unlock(&site->lock);
}

void ubik_site_committed(struct ubik_site *site, struct ubik_version version)
{
	mtx_lock(&site->lock);
	site->version = version;
	mtx_unlock(&site->lock);
}

static struct mtx writer = {.m = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_DB};

void ubik_writer_enter(void) NO_TSA { mtx_lock(&writer); }
void ubik_writer_leave(void) NO_TSA { mtx_unlock(&writer); }

/* --- VOTE ----------------------------------------------------------------------------------- */

static void describe(struct rpc_call *call, struct ubik_debug_old *out)
{
	struct ubik_site *site = call->service;
	mtx_lock(&site->lock);
	struct ubik_version version = site->version;
	uint32_t transactions = site->transactions;
	bool writing = site->writing;
	mtx_unlock(&site->lock);
	*out = (struct ubik_debug_old){
		.now = clk_wire_sec(clk_wall()),
		.lastYesTime = site->epoch,
		.lastYesHost = NO_HOST,
		.lowestHost = NO_HOST,
		.amSyncSite = 1,
		.syncSiteUntil = SYNC_FOR_EVER,
		.nServers = 1,
		.localVersion = version,
		.activeWrite = writing,
		.tidCounter = transactions,
		.anyWriteLocks = writing,
		.recoveryState = HEALTHY,
		.currentTrans = writing,
		.writeTrans = writing,
		.epochTime = site->epoch,
	};
}

/* "No": an empty success.  There is no other site whose beacon could count. */
afs_err ubik_vote_beacon(struct rpc_call *call, const struct ubik_vote_beacon_in *in,
	struct ubik_vote_beacon_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}

afs_err ubik_vote_debug_old(struct rpc_call *call, const struct ubik_vote_debug_old_in *in,
	struct ubik_vote_debug_old_out *out)
{
	(void)in;
	describe(call, &out->db);
	return AFS_OK;
}

afs_err ubik_vote_debug(struct rpc_call *call, const struct ubik_vote_debug_in *in,
	struct ubik_vote_debug_out *out)
{
	(void)in;
	describe(call, &out->db.old);
	out->db.interfaceAddr[0] = ((struct ubik_site *)call->service)->ip;
	return AFS_OK;
}

afs_err ubik_vote_xdebug(struct rpc_call *call, const struct ubik_vote_xdebug_in *in,
	struct ubik_vote_xdebug_out *out)
{
	(void)in;
	describe(call, &out->db.old);
	out->db.interfaceAddr[0] = ((struct ubik_site *)call->service)->ip;
	return AFS_OK;
}

/* The other servers by number: there is none. */
afs_err ubik_vote_sdebug_old(struct rpc_call *call, const struct ubik_vote_sdebug_old_in *in,
	struct ubik_vote_sdebug_old_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, UBIK_NO_SUCH_SERVER);
}
afs_err ubik_vote_sdebug(struct rpc_call *call, const struct ubik_vote_sdebug_in *in,
	struct ubik_vote_sdebug_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, UBIK_NO_SUCH_SERVER);
}
afs_err ubik_vote_xsdebug(struct rpc_call *call, const struct ubik_vote_xsdebug_in *in,
	struct ubik_vote_xsdebug_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, UBIK_NO_SUCH_SERVER);
}

afs_err ubik_vote_get_sync_site(struct rpc_call *call,
	const struct ubik_vote_get_sync_site_in *in, struct ubik_vote_get_sync_site_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}

/* --- DISK ----------------------------------------------------------------------------------- */

/* No remote transaction was ever begun here. */
#define NO_TRANSACTION(fn)                                                                         \
	afs_err ubik_disk_##fn(struct rpc_call *call, const struct ubik_disk_##fn##_in *in,        \
		struct ubik_disk_##fn##_out *out)                                                  \
	{                                                                                          \
		(void)call, (void)in, (void)out;                                                   \
		return AFS_EUSYNC;                                                                 \
	}
NO_TRANSACTION(begin)
NO_TRANSACTION(commit)
NO_TRANSACTION(lock)
NO_TRANSACTION(write)
NO_TRANSACTION(get_file)
NO_TRANSACTION(send_file)
NO_TRANSACTION(abort)
NO_TRANSACTION(release_locks)
NO_TRANSACTION(truncate)
NO_TRANSACTION(write_v)

/* What a sync site says to both (ubik.md §4). */
afs_err ubik_disk_get_version(struct rpc_call *call, const struct ubik_disk_get_version_in *in,
	struct ubik_disk_get_version_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, UBIK_DEADLOCK);
}
afs_err ubik_disk_set_version(struct rpc_call *call, const struct ubik_disk_set_version_in *in,
	struct ubik_disk_set_version_out *out)
{
	(void)in, (void)out;
	return rpc_refuse(call, UBIK_DEADLOCK);
}

afs_err ubik_disk_probe(struct rpc_call *call, const struct ubik_disk_probe_in *in,
	struct ubik_disk_probe_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}

afs_err ubik_disk_update_interface_addr(struct rpc_call *call,
	const struct ubik_disk_update_interface_addr_in *in,
	struct ubik_disk_update_interface_addr_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_EUBADHOST;
}

/* --- services --------------------------------------------------------------------------------- */

static bool is_superuser(void *ctx, const struct rx_caller *caller)
{
	const struct dbserver_ports *p = ((struct ubik_site *)ctx)->ports;
	return p->superuser && p->superuser(p->ctx, caller);
}

static void call_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err,
	int32_t code, int64_t took_ns)
{
	const struct dbserver_ports *p = ((struct ubik_site *)ctx)->ports;
	if (p->done)
		p->done(p->ctx, call, in, err, code, took_ns);
}

void ubik_services(struct ubik_site *site, struct rpc_service out[2])
{
	_Static_assert(ARRAY_SIZE(ubik_vote_handlers) == ubik_vote_op_count, "a handler per row");
	_Static_assert(ARRAY_SIZE(ubik_disk_handlers) == ubik_disk_op_count, "a handler per row");
	const struct rpc_service common = {.ctx = site,
		.allow_anonymous = true,
		.superuser = is_superuser,
		.done = call_done};
	out[0] = out[1] = common;
	out[0].iface = &ubik_vote_iface;
	out[0].handlers = ubik_vote_handlers;
	out[1].iface = &ubik_disk_iface;
	out[1].handlers = ubik_disk_handlers;
}
