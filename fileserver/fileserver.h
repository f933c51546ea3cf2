/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The file server as cell/cell.c builds it, and what the volume server asks of it.
 *
 *   struct fileserver *fs;
 *   fileserver_new(&config, &fs)            nothing runs yet
 *   fileserver_services(fs, services, n)    rows for rpc_port_open() of port 7000
 *   fileserver_start(fs, port)              housekeeping begins, calls are served
 *   fileserver_stop(fs)                     before rpc_port_close(port)
 *   fileserver_free(fs)                     after it */
#pragma once
#include "cell/proto/cb.h"
#include "fileserver/ports.h"

struct fileserver;
struct vs_store;

struct fileserver_config {
	struct vs_store *store;  /* the caller's; outlives the file server */
	struct fs_ports ports;   /* copied */
	struct afsUUID uuid;     /* this file server's, the same over restarts */
	enum rx_sec_level least; /* authenticated callers below are refused */
	bool allow_anonymous;
	bool refuse_old_store_acl; /* opcode 134: clients old enough to mean something else by it */
	uint32_t admin_rights;     /* implied for administrators everywhere; 0: ACL_LOOKUP */
	uint32_t callbacks_max;    /* promises held at once, 44 bytes each when used; 0: 1048576 */
	uint32_t callback_life_s;  /* of a promise of few holders; 0: the classic 4 hours */
	int64_t break_wait_ns; /* the most that silent clients delay a change; 0: 2 s */
	uint32_t hosts_max;        /* client hosts known at once; 0: 4096 */
	uint32_t identify_max; /* workers that may wait at once for clients' first answers; 0: 16 */
};

/* AFS_ENOMEM, AFS_EINVAL (a nil UUID).  On AFS_OK the caller owns *out. */
afs_err fileserver_new(const struct fileserver_config *config, struct fileserver **out);
/* Writes at most `n` services and gives their number (1 at this time). */
size_t fileserver_services(struct fileserver *fs, struct rpc_service *out, size_t n);
/* Clients are called back over the port on which they call; `port` is any of the file server's, for
 * those of whom that is not known. */
afs_err fileserver_start(struct fileserver *fs, struct rpc_port *port);
/* Ends the housekeeper; clients that hold promises are not told (they find out by our absence). */
void fileserver_stop(struct fileserver *fs);
void fileserver_free(struct fileserver *fs); /* also half-built, also NULL */

/* --- for the volume server ---------------------------------------------------------------- */

/* The content of `volume` changed as a whole (restored, re-released, removed, moved): every promise
 * on it is broken with {volume, 0, 0} from a thread of the file server's own, about at once.
 * Never waits. */
void fileserver_volume_changed(struct fileserver *fs, afs_volid volume);

/* --- for status, statistics and the console ----------------------------------------------- */

struct fileserver_stats {
#define FS_STAT(name, text) uint64_t name;
#include "fileserver/fs/stats.def"
#undef FS_STAT
};
void fileserver_stats(struct fileserver *fs, struct fileserver_stats *out);

/* A client host, as it is known now. */
struct fileserver_host {
	struct rx_addr addr;
	struct afsUUID uuid; /* nil: the client has none */
	uint32_t promises, delayed;
	bool down;
	int64_t idle_ns;
};
/* At most `n` hosts; gives how many there are. */
size_t fileserver_hosts(struct fileserver *fs, struct fileserver_host *out, size_t n);
