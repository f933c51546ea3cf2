/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of this folder. */
#pragma once
#include "cell/base/mtx.h"
#include "cell/bos/bos.h"

#define BOS_NO_NOTIFIER "__NONOTIFIER__"
#define BOS_REPAIR "salvage-tmp"

/* --- may.c: who may do what --------------------------------------------------------------------- */

enum bos_verb {
	BOS_SEE,      /* instances, users, hosts, dates, settings */
	BOS_READ,     /* logs, keys: not everybody's, and not over a wire that others read */
	BOS_RUN,      /* start, stop, restart, wait */
	BOS_SET,      /* restart times, superusers, restricted mode */
	BOS_MEND,     /* run the salvager, once */
	BOS_PROGRAM,  /* execute, install, delete files, make instances */
	BOS_IDENTITY, /* name, hosts and keys of the cell; whether callers prove themselves */
	BOS_VERBS,
};
/* AFS_OK; AFS_EACCESS; AFS_ELEVEL: he may, but over an encrypted connection only. */
afs_err bos_may(const struct rx_caller *caller, bool superuser, enum bos_verb verb);

/* --- state.c: what outlives the process ------------------------------------------------------------ */

struct bos_state {
	int32_t file_goal[BOS_INSTANCES_MAX];
	struct bozo_netKTime general, newbin;
	char **users;
	size_t user_count;
};
void bos_state_init(struct bos_state *st);
void bos_state_fini(struct bos_state *st);
/* Reads JSON text; instances that are not there any more are passed over.  AFS_ECORRUPT, AFS_ENOMEM. */
afs_err bos_state_parse(const char *text, size_t n, const struct bos_instance *instances, size_t count, struct bos_state *out);
/* A file that is missing leaves *out as it is.  Logged. */
afs_err bos_state_load(const char *path, const struct bos_instance *instances, size_t count, struct bos_state *out);
afs_err bos_state_save(const char *path, const struct bos_instance *instances, size_t count, const struct bos_state *st);
bool bos_user_ok(const char *name, size_t n);
bool bos_time_ok(const struct bozo_netKTime *t);
/* The first moment after `after` (seconds) that `t` means, by the local clock: what the mask leaves open is
 * any day and any hour, and minute and second 0.  INT64_MAX: never, as for "now", which is no time of day. */
int64_t bos_time_next(const struct bozo_netKTime *t, int64_t after);

/* --- run.c: instances and their thread -------------------------------------------------------------- */

struct bos_run {
	int32_t goal, state; /* BOS_RUNNING ... */
	bool restart;        /* stop and start, whatever the goal is */
	int64_t started, last_exit, last_error; /* seconds; 0: never */
	int32_t starts, error_code;
	unsigned errors;     /* failed starts in a row */
	bool error_stop;
	mono_ns next_try;
};

struct bos_server {
	struct bos_config config;
	struct bos_instance instances[BOS_INSTANCES_MAX];
	struct mtx lock;
	struct cond changed;
	struct bos_state kept;                  /* GUARDED_BY(lock) */
	struct bos_run run[BOS_INSTANCES_MAX];  /* GUARDED_BY(lock) */
	bool stopping, runs;                    /* GUARDED_BY(lock) */
	int64_t general_due;                    /* GUARDED_BY(lock): seconds; INT64_MAX: never */
	pthread_t thread;
	/* the one repair; its thread ends by itself and is joined by the next one, or at the end */
	struct {
		bool busy, joinable; /* GUARDED_BY(lock) */
		bool cancel;
		pthread_t thread;
		int32_t part;
		uint32_t volume;
	} repair;
};

/* The instance's number; -1: there is none. */
int bos_find(const struct bos_server *s, struct xdr_str name);
void bos_set_goal_locked(struct bos_server *s, size_t i, int32_t goal) REQUIRES(s->lock);
/* The time of the general restart has changed: reckon from `now` (seconds), or restart at once. */
void bos_plan_locked(struct bos_server *s, int64_t now) REQUIRES(s->lock);
/* The general restart, when its time has come: whatever runs stops and starts. */
void bos_due_locked(struct bos_server *s, int64_t now) REQUIRES(s->lock);
/* Every instance is where it is to be, or stays away for too many errors. */
bool bos_settled_locked(const struct bos_server *s) REQUIRES(s->lock);
/* Waits until settled, or the call is over.  AFS_ECANCELLED. */
afs_err bos_wait_settled(struct bos_server *s, struct rpc_call *call);
/* AFS_EBUSY: one is running. */
afs_err bos_repair_start(struct bos_server *s, int32_t part, uint32_t volume);
int64_t bos_now(void);
