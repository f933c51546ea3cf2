/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udebug: what a database server says of its quorum, in the words of the stock tool.  A server of any age is
 * asked the newest question that it knows.  Source: protocol ubik.md §3. */
#include "cell/cli/debug.h"
#include "cell/cli/handlers.h"
#include "cell/cli/suite.h"

#include "cell/base/clk.h"
#include "cell/base/text.h"
#include "cell/proto/ubik.h"
#include "rx/io/port.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX ubik_vote
#define RPC_ROWS "cell/proto/ubik_vote.rpc"
#include "rx/xdr/iface_pass.h"

enum { POOL_MAX = 1 << 20, ANSWER_MAX = 64 << 10, SERVERS_MAX = 20, FOREVER = 0x7fffffff };
static const uint32_t NOBODY = 0xffffffff;

struct udebug {
	struct cli *c;
	struct rx_buf_pool *pool;
	struct rpc_port *port;
	struct rpc_conn *conn;
	struct arena arena;
};

static void udebug_cleanup(struct udebug *u)
{
	if (u->conn)
		rpc_conn_unref(u->conn);
	if (u->port)
		rpc_port_close(u->port);
	if (u->pool)
		rx_buf_pool_free(u->pool);
	arena_fini(&u->arena);
}

static afs_err open_conn(struct udebug *u, uint32_t ip, uint16_t port)
{
	struct rpc_port_config pc = {.name = "udebug"};
	struct rpc_conn_config cc = {.peer = {ip, port}, .iface = &ubik_vote_iface, .dead_ns = SEC(8)};
	arena_init(&u->arena, ANSWER_MAX);
	pc.pool = u->pool = rx_buf_pool_new(POOL_MAX);
	afs_err err = u->pool ? rpc_port_open(&pc, &u->port) : AFS_ENOMEM;
	if (err == AFS_OK)
		err = rpc_conn_new(u->port, &cc, &u->conn);
	return err;
}

/* --- asking ------------------------------------------------------------------------------------ */

static bool unknown_call(afs_err err) { return err == AFS_EOPCODE; }

static afs_err ask(struct udebug *u, struct ubik_debug *db, bool *clone, int32_t *code)
{
	struct rpc_result res = {.arena = &u->arena};
	struct ubik_vote_xdebug_in xin;
	struct ubik_vote_xdebug_out x = {};
	afs_err err = ubik_vote_call_xdebug(u->conn, &xin, &x, &res);
	*db = x.db;
	*clone = x.isClone != 0;
	if (unknown_call(err)) {
		struct ubik_vote_debug_in in;
		struct ubik_vote_debug_out out = {};
		err = ubik_vote_call_debug(u->conn, &in, &out, &res);
		*db = out.db;
	}
	if (unknown_call(err)) {
		struct ubik_vote_debug_old_in in;
		struct ubik_vote_debug_old_out out = {};
		err = ubik_vote_call_debug_old(u->conn, &in, &out, &res);
		*db = (struct ubik_debug){.old = out.db};
	}
	*code = res.code;
	return err;
}

static afs_err ask_other(struct udebug *u, uint32_t index, struct ubik_sdebug *db, bool *clone)
{
	struct rpc_result res = {.arena = &u->arena};
	struct ubik_vote_xsdebug_in xin = {index};
	struct ubik_vote_xsdebug_out x = {};
	afs_err err = ubik_vote_call_xsdebug(u->conn, &xin, &x, &res);
	*db = x.db;
	*clone = x.isClone != 0;
	if (unknown_call(err)) {
		struct ubik_vote_sdebug_in in = {index};
		struct ubik_vote_sdebug_out out = {};
		err = ubik_vote_call_sdebug(u->conn, &in, &out, &res);
		*db = out.db;
	}
	if (unknown_call(err)) {
		struct ubik_vote_sdebug_old_in in = {index};
		struct ubik_vote_sdebug_old_out out = {};
		err = ubik_vote_call_sdebug_old(u->conn, &in, &out, &res);
		*db = (struct ubik_sdebug){.old = out.db};
	}
	return err;
}

bool debug_clock(uint32_t ip, uint16_t port, int64_t *ahead)
{
	CLEANUP(udebug) struct udebug u = {};
	struct ubik_debug db = {};
	bool clone;
	int32_t code;
	if (open_conn(&u, ip, port) != AFS_OK || ask(&u, &db, &clone, &code) != AFS_OK)
		return false;
	*ahead = (int64_t)clk_wire_sec(clk_wall()) - db.old.now;
	return true;
}

/* --- telling ----------------------------------------------------------------------------------- */

static void print_addresses(const char *before, const uint32_t *v, size_t n, const char *after)
{
	printf("%s", before);
	for (size_t i = 0; i < n && v[i]; i++)
		printf("%s ", IPV4(v[i]));
	printf("%s", after);
}

static void print_since(const char *what, uint32_t now, uint32_t when)
{
	printf("%s%d secs ago (at %s)\n", what, (int)(now - when), CTIME(when));
}

static void print_site(const struct ubik_debug_old *d)
{
	if (d->amSyncSite && d->syncSiteUntil == FOREVER)
		printf("I am sync site forever (%u server%s)\n", d->nServers, d->nServers == 1 ? "" : "s");
	else if (d->amSyncSite)
		printf("I am sync site until %d secs from now (at %s) (%u server%s)\n", (int)(d->syncSiteUntil - d->now), CTIME(d->syncSiteUntil),
			d->nServers, d->nServers == 1 ? "" : "s");
	else
		printf("I am not sync site\n");
	if (!d->amSyncSite) {
		if (d->lowestHost != NOBODY)
			printf("Lowest host %s was set %d secs ago\n", IPV4(d->lowestHost), (int)(d->now - d->lowestTime));
		if (d->syncHost)
			printf("Sync host %s was set %d secs ago\n", IPV4(d->syncHost), (int)(d->now - d->syncTime));
	} else {
		printf("Recovery state %x\n", d->recoveryState);
		if (d->activeWrite)
			printf("I am currently managing write trans %u.%u\n", d->epochTime, d->tidCounter);
		else
			printf("The last trans I handled was %u.%u\n", d->epochTime, d->tidCounter);
	}
}

static void print_debug(const struct ubik_debug *db, bool clone, uint32_t local)
{
	const struct ubik_debug_old *d = &db->old;
	uint32_t voted = d->lastYesHost, at = d->lastYesTime;
	bool claims = d->lastYesState, alone = d->nServers == 1 && d->amSyncSite;
	print_addresses("Host's addresses are: ", db->interfaceAddr, ARRAY_SIZE(db->interfaceAddr), "\n");
	printf("Host's %s time is %s\n", IPV4(db->interfaceAddr[0]), CTIME(d->now));
	printf("Local time is %s (time differential %d secs)\n", CTIME(local), (int)(local - d->now));
	if (alone) { /* nobody votes where one is alone; it is as if it had voted for itself now */
		voted = db->interfaceAddr[0];
		at = d->now;
		claims = true;
	}
	if (voted == NOBODY) {
		printf("Last yes vote not cast yet \n");
	} else {
		printf("Last yes vote for %s was %d secs ago (%ssync site); \n", IPV4(voted), (int)(d->now - at), claims ? "" : "not ");
		print_since("Last vote started ", d->now, alone ? d->now : d->lastYesClaim);
	}
	printf("Local db version is %u.%u\n", (uint32_t)d->localVersion.epoch, (uint32_t)d->localVersion.counter);
	print_site(d);
	if (clone)
		printf("I am a clone and never can become sync site\n");
	const struct ubik_version *site = alone ? &d->localVersion : &d->syncVersion;
	printf("Sync site's db version is %u.%u\n", (uint32_t)site->epoch, (uint32_t)site->counter);
	printf("%u locked pages, %u of them for write\n", d->lockedPages, d->writeLockedPages);
	if (d->anyReadLocks)
		printf("There are read locks held\n");
	if (d->anyWriteLocks)
		printf("There are write locks held\n");
	if (d->currentTrans)
		printf("There is an active %s transaction\n", d->writeTrans ? "write" : "read");
	if (d->epochTime)
		printf("Last time a new db version was labelled was:\n"), print_since("\t ", d->now, d->epochTime);
}

static void print_other(const struct ubik_sdebug *s, bool clone, uint32_t now)
{
	const struct ubik_sdebug_old *o = &s->old;
	printf("\nServer (%s", IPV4(o->addr));
	for (size_t i = 0; i < ARRAY_SIZE(s->altAddr) && s->altAddr[i]; i++)
		printf(" %s", IPV4(s->altAddr[i]));
	printf("): (db %u.%u)%s\n", (uint32_t)o->remoteVersion.epoch, (uint32_t)o->remoteVersion.counter, clone ? "    is only a clone!" : "");
	if (o->lastVoteTime)
		printf("    last vote rcvd %d secs ago (at %s),\n", (int)(now - o->lastVoteTime), CTIME(o->lastVoteTime));
	else
		printf("    last vote never rcvd \n");
	if (o->lastBeaconSent)
		printf("    last beacon sent %d secs ago (at %s), last vote was %s\n", (int)(now - o->lastBeaconSent), CTIME(o->lastBeaconSent),
			o->lastVote ? "yes" : "no");
	else
		printf("    last beacon never sent \n");
	printf("    dbcurrent=%u, up=%u beaconSince=%u\n", o->currentDB, o->up, o->beaconSinceDown);
}

static json_t *addresses(const uint32_t *v, size_t n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n && v[i]; i++)
		json_array_append_new(list, json_string(IPV4(v[i])));
	return list;
}

static json_t *version(const struct ubik_version *v) { return json_pack("{s:I, s:I}", "epoch", (json_int_t)(uint32_t)v->epoch, "counter", (json_int_t)(uint32_t)v->counter); }

static json_t *debug_json(const struct ubik_debug *db, bool clone, uint32_t local)
{
	const struct ubik_debug_old *d = &db->old;
	return json_pack("{s:o, s:I, s:I, s:b, s:b, s:i, s:i, s:o, s:o, s:s?, s:i, s:i, s:b, s:I}", "addresses",
		addresses(db->interfaceAddr, ARRAY_SIZE(db->interfaceAddr)), "time", (json_int_t)d->now, "clock_differs_s",
		(json_int_t)(int32_t)(local - d->now), "sync_site", (int)(d->amSyncSite != 0), "clone", (int)clone, "servers", (int)d->nServers,
		"recovery_state", (int)d->recoveryState, "version", version(&d->localVersion), "sync_site_version", version(&d->syncVersion),
		"sync_host", d->syncHost ? IPV4(d->syncHost) : NULL, "locked_pages", (int)d->lockedPages, "write_locked_pages",
		(int)d->writeLockedPages, "writing", (int)(d->activeWrite != 0), "labelled", (json_int_t)d->epochTime);
}

int cli_udebug(struct cli *c)
{
	CLEANUP(udebug) struct udebug u = {.c = c};
	struct ubik_debug db = {};
	struct ubik_sdebug other = {};
	bool clone = false;
	uint32_t ip;
	uint16_t port = VL_UDP;
	int32_t code;
	int status = debug_where(c, cli_value(c, "server"), cli_value(c, "port"), &ip, &port);
	if (status != CLI_OK)
		return status;
	afs_err err = open_conn(&u, ip, port);
	if (err != AFS_OK)
		return cli_fail(c, "no UDP port can be opened: %s", afs_err_text(err));
	err = ask(&u, &db, &clone, &code);
	if (err != AFS_OK)
		return cli_fail(c, "%s port %u does not tell of a quorum: %s (code %d)%s", cli_value(c, "server"), port, afs_err_text(err), code,
			cli_value(c, "port") ? "" : "; -port vlserver or -port ptserver names one that does");
	if (!db.interfaceAddr[0])
		db.interfaceAddr[0] = ip; /* one so old that it does not say */
	uint32_t local = clk_wire_sec(clk_wall());
	json_t *all = cli_wants_json(c) ? debug_json(&db, clone, local) : NULL, *others = json_array();
	if (!all)
		print_debug(&db, clone, local);
	bool more = db.old.amSyncSite || cli_has(c, "long");
	for (uint32_t i = 0; more && i < SERVERS_MAX && ask_other(&u, i, &other, &clone) == AFS_OK; i++) {
		if (!all)
			print_other(&other, clone, db.old.now);
		json_array_append_new(others, json_pack("{s:s, s:b, s:o, s:I, s:b, s:b}", "address", IPV4(other.old.addr), "up", (int)(other.old.up != 0),
						      "version", version(&other.old.remoteVersion), "last_vote", (json_int_t)other.old.lastVoteTime,
						      "voted_yes", (int)(other.old.lastVote != 0), "current", (int)(other.old.currentDB != 0)));
	}
	if (!all) {
		json_decref(others);
		return CLI_OK;
	}
	json_object_set_new(all, "others", others);
	return cli_print_json(c, all);
}
