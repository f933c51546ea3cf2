/* SPDX-License-Identifier: BSD-2-Clause
 *
 * BOZO, the basic overseer, as it fits a cell in one process: its roles are the instances, and starting
 * and stopping one is opening and closing its ports.
 *
 * Instances are given once and cannot be made or deleted.  What the configuration says (the cell's name, its
 * hosts, its keys, that callers prove themselves) is shown and refused to be changed.  Restricted mode is on
 * and stays on: nothing is executed or installed, and no path comes from the wire.  Every change, and logs and
 * keys, need a superuser at level crypt; bos_may() decides, alone.
 *
 * The general restart is carried out at its time: what runs stops and starts.  The time of the check for new
 * binaries is kept and shown only, for one program holds all instances and changes when the cell is started anew.
 *
 * Goals, restart times and superusers that were added here are kept in a file and outlive the process.
 * A thread brings instances to their goals; calls that change a goal do not wait for it, WaitAll and Restart do.
 *
 * Source: protocol bos.md. */
#pragma once
#include "cell/proto/bos.h"
#include "rx/rpc/rpc.h"

#include <limits.h>

enum { BOS_INSTANCES_MAX = 16, BOS_PARMS_MAX = 5, BOS_USERS_MAX = 1000 };

struct bos_instance {
	const char *name, *type;          /* "vlserver" is "simple", "fs" is "fs" */
	const char *parms[BOS_PARMS_MAX]; /* command lines, for people; NULL ends */
};
struct bos_key {
	int32_t kvno;
	uint32_t checksum;
	int64_t changed; /* seconds since 1970 */
};

/* What the overseer asks of the cell; `ctx` is that of the configuration.  All may be called from any thread. */
struct bos_ports {
	/* Instance `i` is to run, or not; wait until it is so.  Start may fail, and is tried again. */
	afs_err (*start)(void *ctx, size_t i);
	void (*stop)(void *ctx, size_t i);
	/* The i-th database server's name, and superuser of the configuration; false past the end. */
	bool (*host)(void *ctx, size_t i, char out[BOS_STR_MAX + 1]);
	bool (*user)(void *ctx, size_t i, char out[BOS_STR_MAX + 1]);
	/* These superusers were added here; called at the start and after each change. */
	void (*users_changed)(void *ctx, const char *const *names, size_t n);
	bool (*key)(void *ctx, size_t i, struct bos_key *out);
	/* The file of a log, by its name; false: there is no such log. */
	bool (*log)(void *ctx, const char *name, char out[PATH_MAX]);
	/* When the program of that name was made, seconds; 0: there is no such program. */
	int64_t (*program)(void *ctx, const char *name);
	/* Prove volumes: of partition `part` (-1: all), `volume` (0: all).  Tells `say` a line each; stops soon
	 * after *cancel is true. */
	afs_err (*repair)(void *ctx, int32_t part, uint32_t volume, void (*say)(void *say_ctx, const char *line), void *say_ctx,
		const bool *cancel);
};

struct bos_config {
	const char *cell;
	const char *state;      /* file; made when missing */
	const char *repair_log; /* file that a repair writes; also the log "SalvageLog" */
	const struct bos_instance *instances; /* copied, not what it points to */
	size_t instance_count;
	struct bos_ports ports;
	void *ctx;
	enum rx_sec_level least;
	bool (*superuser)(void *ctx, const struct rx_caller *caller);
	void (*done)(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns);
};

struct bos_server;
/* AFS_ENOMEM; AFS_ECORRUPT, AFS_EIO: the state file (logged). */
afs_err bos_server_new(const struct bos_config *config, struct bos_server **out);
/* Writes one service at `out`, and gives 1. */
size_t bos_server_services(struct bos_server *s, struct rpc_service *out);
/* All instances run now: stops those that are to stay off, and minds the rest from here on.  AFS_ENOMEM. */
afs_err bos_server_start(struct bos_server *s);
/* No start or stop is called after this. */
void bos_server_stop(struct bos_server *s);
void bos_server_free(struct bos_server *s); /* also NULL, also not started */
