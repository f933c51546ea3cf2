/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The control socket: how the command line (and later the console) speaks to the running cell.
 *
 * A Unix stream socket.  A request is one line of JSON, {"verb": "...", ...arguments}; the answer is
 * any number of lines {"progress": {...}}, then one line {"ok": {...}} or {"error": "NOENT", "text":
 * "..."}.  Who asks is what the kernel says (SO_PEERCRED), never what the request says.  A line is
 * at most CTL_LINE_MAX bytes; a connection carries one request.
 *
 * A verb is a row.  It runs on a thread of its own and may wait. */
#pragma once
#include "cell/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CTL_LINE_MAX = 1 << 20 };

enum ctl_need {
	CTL_ANYONE, /* any local user, for what is his: tokens, ACLs of files as himself */
	CTL_OWNER,  /* root, and the user that the cell runs as */
};

struct ctl_request {
	const json_t *args; /* the whole request object */
	uid_t uid;
	gid_t gid;
	pid_t pid;
	struct ctl_conn *conn;
};

/* Fill `out` (an empty object) with the result.  An error sends its name and text, or the text
 * that ctl_refuse() gave. */
typedef afs_err ctl_run(void *ctx, struct ctl_request *rq, json_t *out);

struct ctl_verb {
	const char *name; /* "fs.listacl" */
	enum ctl_need need;
	ctl_run *run;
};

/* return ctl_refuse(rq, AFS_ENOENT, "%s: no such volume", name); */
[[gnu::format(printf, 3, 4)]] afs_err ctl_refuse(
	struct ctl_request *rq, afs_err err, const char *fmt, ...);
/* A line for whoever waits: {"progress": value}; `value` is taken.  Lost when he has gone. */
void ctl_progress(struct ctl_request *rq, json_t *value);

/* Arguments: NULL, or `dflt`, when absent or of another type. */
const char *ctl_str(const struct ctl_request *rq, const char *name);
json_int_t ctl_int(const struct ctl_request *rq, const char *name, json_int_t dflt);
bool ctl_bool(const struct ctl_request *rq, const char *name);

/* Serving.  Rows are borrowed.  ctl_server_add before ctl_server_start only. */
struct ctl_server;
struct ctl_server *ctl_server_new(const char *socket_path);
afs_err ctl_server_add(struct ctl_server *s, const struct ctl_verb *verbs, size_t n, void *ctx);
/* Binds (an old socket that nobody serves is replaced) and listens; mode 0666, since the verbs check. */
afs_err ctl_server_start(struct ctl_server *s);
void ctl_server_free(struct ctl_server *s); /* stops, waits for running verbs, removes the socket */

/* Asking.  `request` is an object with "verb", taken; waits until the answer or the end of the
 * server.  On AFS_OK *out is the "ok" object.  Else *text says why (never NULL then; the caller's
 * to free), also when nobody serves the socket (AFS_EDEAD). */
afs_err ctl_ask(const char *socket_path, json_t *request, json_t **out, char **text,
	void (*each)(void *ctx, const json_t *progress), void *ctx);
