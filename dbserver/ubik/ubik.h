/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A database with one site, as Ubik's VOTE and DISK services show it: sync site for ever, in good
 * health, with no other server to vote, write or send files.  Nothing here can change a database.
 *
 * The database tells its version after each commit; answers are made from that snapshot, so they never
 * wait.  Source: ubik.md §3, §8. */
#pragma once
#include "cell/base/mtx.h"
#include "cell/proto/ubik.h"
#include "dbserver/dbserver.h"

struct ubik_site {
	const struct dbserver_ports *ports;
	uint32_t ip;
	uint32_t epoch; /* when this reign began: start of the process, seconds */
	struct mtx lock;
	struct ubik_version version GUARDED_BY(lock);
	uint32_t transactions GUARDED_BY(lock);
	bool writing GUARDED_BY(lock);
};

/* `stored` is the version that the database had when it was opened. */
void ubik_site_init(struct ubik_site *site, const struct dbserver_ports *ports, uint32_t ip,
	wall_ns now, struct ubik_version stored);
void ubik_site_fini(struct ubik_site *site);

/* The version that the next commit makes: the first of a reign is (epoch, 2), then one more each. */
struct ubik_version ubik_site_next(struct ubik_site *site);
void ubik_site_writing(struct ubik_site *site, bool now);
void ubik_site_committed(struct ubik_site *site, struct ubik_version version);

/* One change at a time in all of this process's databases, which share a file: SQLite's own waiting for
 * another writer is a sleep without a queue.  Guards the writing connections too. */
void ubik_writer_enter(void);
void ubik_writer_leave(void);

/* Fills VOTE and DISK. */
void ubik_services(struct ubik_site *site, struct rpc_service out[2]);
