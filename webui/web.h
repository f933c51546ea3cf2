/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The console: pages, a JSON API and metrics over HTTP, for one cell.
 *
 * What it shows and does comes through struct web_ports, and each thing is done as the person who signed in:
 * the ports get his identity, and the cell and its servers judge it.  The console itself has no key and opens
 * no file: pages are part of the program.
 *
 *   GET  /                      the pages (embedded; nothing else is served by path)
 *   GET  /healthz, /readyz      200 while it answers; 503 when a role is stopped
 *   GET  /metrics               Prometheus text; only for this machine, or an administrator
 *   POST /api/v1/session        {"user", "password"} or {"link"}: sign in; gives the session and its csrf word
 *   GET  /api/v1/session        who I am; POST .../end, .../end-all: sign out here, everywhere
 *   GET  /api/v1/status         as "afscell status --json"
 *   GET  /api/v1/live           Server-Sent Events: status, every two seconds
 *   GET  /api/v1/commands       the commands that this person may ask for
 *   POST /api/v1/run/SUITE/NAME or /api/v1/run/NAME, a JSON object of arguments: run one
 *   POST /api/v1/file           {"path", "from", "count"}: a file or a page of a directory, as I see it
 *   POST /api/v1/mount, /mkdir  {"path", "name", "volume", "rw"}
 *   POST /api/v1/list           {"command", "args", "find", "sort", "down", "from", "count", "pick"}: a page of what one lists
 *   POST /api/v1/acl            {"path", "was", "acl"}: store a directory's access list
 *   GET  /api/v1/log, /audit    the last lines; administrators
 *   GET  /api/v1/config         the file as it is; POST: check another text; administrators
 *   GET  /api/v1/openapi.json   all this, for programs
 *
 * Every POST needs the Origin of these pages and, in a session, its word in X-CSRF-Token.
 * Safe from any thread. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct web;
struct web_identity; /* of the house: a person and his token */

enum web_text { WEB_LOG, WEB_AUDIT, WEB_CONFIG };

struct web_ports {
	void *ctx;
	/* Waits for the realm.  An error adds a sentence to `why`; AFS_EBADPASSWORD, AFS_ENOENT count as attempts. */
	afs_err (*sign_in)(void *ctx, const char *user, const char *password, struct web_identity **out, struct buf *why);
	/* The machine's owner, who was given a link: no token, what root may do. */
	struct web_identity *(*owner)(void *ctx);
	void (*release)(void *ctx, struct web_identity *id);
	const char *(*name)(const struct web_identity *id);
	bool (*administrator)(void *ctx, const struct web_identity *id); /* asked each time */
	int64_t (*expires)(const struct web_identity *id);               /* wall_ns; 0: never */
	json_t *(*status)(void *ctx);
	void (*metrics)(void *ctx, struct buf *out); /* the cell's counters as Prometheus text */
	json_t *(*commands)(void *ctx); /* cli_table_json() */
	/* As cli_call: exit status; *result and *text are the caller's. */
	int (*run)(void *ctx, const char *command, const json_t *args, const struct web_identity *id, json_t **result, char **text);
	/* The end of a text, at most `max` bytes, from the start of a line. */
	afs_err (*text)(void *ctx, enum web_text what, size_t max, struct buf *out);
	/* AFS_ECONFIG: `problems` has a line for each. */
	afs_err (*check_config)(void *ctx, const char *text, size_t n, struct buf *problems);
	/* One file of AFS as this person sees it, with his token alone; `path` is from the root of AFS, and of a
	 * directory come at most `n` names from the `from`th.  Errors add a sentence to `why`. */
	afs_err (*file)(void *ctx, const struct web_identity *id, const char *path, size_t from, size_t n, json_t **out, struct buf *why);
	/* AFS_EBUSY: the list is no longer `was`. */
	afs_err (*acl_store)(void *ctx, const struct web_identity *id, const char *path, const char *was, const json_t *acl, struct buf *why);
	/* `name` in the directory `path`: a mount point of `volume` (`rw`: of the read-write one), or with NULL a directory. */
	afs_err (*make)(void *ctx, const struct web_identity *id, const char *path, const char *name, const char *volume, bool rw, struct buf *why);
	void (*audit)(void *ctx, const char *who, const char *what, const char *object, afs_err err);
};

struct web_config {
	uint32_t ip; /* host order */
	uint16_t port;
	const char *host;      /* further name that browsers use, "afs.example.org" or with a port; "": none */
	bool behind_proxy;     /* a proxy before us does TLS */
	const char *cert, *key; /* PEM texts; NULL: plain HTTP */
};

/* AFS_EADDRINUSE, AFS_ENOMEM; AFS_ECONFIG: certificate and key do not fit.  Everything is copied. */
afs_err web_open(const struct web_config *config, const struct web_ports *ports, struct web **out);
void web_close(struct web *w); /* ends open feeds and waits for what runs */

/* "http://127.0.0.1:8780"; as long as `w` lives. */
const char *web_url(const struct web *w);
/* An address that signs in once, within ten minutes; the caller's.  NULL: out of memory. */
char *web_link(struct web *w);
