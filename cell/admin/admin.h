/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A cell as an administrator's tool sees it: its database servers, found and asked in turn; any
 * file server of it; and one way to prove who asks.  What the suites vos, pts and bos share, against
 * cells of afscell and of OpenAFS alike.
 *
 * One struct admin is one run of a tool.  Its calls wait for servers and are made by one thread at a
 * time.  When a call fails, admin_why() has the reason in words until the next call.
 *
 * Sources: protocol vldb.md §1 and §9, protection.md §8, bos.md §1 and §6, volserver.md §7. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/mem.h"
#include "cell/proto/fid.h"
#include "rx/rpc/rpc.h"

#include <signal.h>

struct admin;
struct keys_token;
struct keys_aklog;
struct rx_token;

enum admin_auth {
	ADMIN_TOKEN,     /* the caller's: from the cache manager, else from his Kerberos tickets, else none */
	ADMIN_LOCALAUTH, /* the cell's own, made with its key */
	ADMIN_NOAUTH,
	ADMIN_GIVEN,     /* the one in the configuration */
};
/* What tokens are made of tickets: rxgk's where the cell offers it, and rxkad's as well; or one and no other. */
enum admin_class { ADMIN_ANY, ADMIN_RXGK, ADMIN_RXKAD };
enum admin_service { ADMIN_VL, ADMIN_PT, ADMIN_VOL, ADMIN_BOS, ADMIN_SERVICES };

/* The cell of an afscell configuration. */
struct admin_own {
	const char *cell, *realm;
	const uint32_t *ips; /* database servers, host order */
	size_t ip_count;
	uint16_t port[ADMIN_SERVICES]; /* 0: the usual one */
	uint16_t tools_port;           /* of the cache manager on this machine; 0: none */
	const char *keytab;            /* with the cell's key */
	const char *krb5_conf;         /* for its users; NULL: the system's */
};
struct admin_config {
	const char *cell;            /* as given, may be shortened; NULL: the local one */
	const struct admin_own *own; /* NULL: none */
	const char *openafs;         /* directory with CellServDB and ThisCell; with localauth,
	                                its server/ (or itself) with KeyFileExt */
	enum admin_auth auth;
	enum admin_class class;      /* of ADMIN_TOKEN, from tickets */
	const struct keys_token *token; /* ADMIN_GIVEN: for this cell */
	bool names;                  /* print names of servers, not addresses */
};

/* All is copied.  `why` gets a sentence.  AFS_ENOENT: no such cell is known; AFS_EACCESS: a key file
 * may not be read; AFS_ECORRUPT; AFS_ENOKEY-like errors of keys.h; AFS_ENOMEM. */
afs_err admin_open(const struct admin_config *config, struct admin **out, struct buf *why);
void admin_close(struct admin *a);
DEFINE_CLEANUP_PTR(admin, struct admin, admin_close)

const char *admin_cell(const struct admin *a);
/* True when calls prove somebody.  `who` (for people) "the cell itself", "alice@EXAMPLE.ORG", or why
 * calls are anonymous. */
bool admin_authenticated(const struct admin *a, const char **who);
/* What calls prove, NULL for nothing; as long as `a` lives. */
const struct rx_token *admin_token(const struct admin *a);
/* Tokens for this cell from Kerberos tickets (want->cell is not looked at); errors as of keys_aklog and of
 * negotiate.h.  `note` gets a sentence when ADMIN_ANY gave rxkad alone. */
afs_err admin_get_token(struct admin *a, const struct keys_aklog *want, enum admin_class class, struct keys_token *out, struct buf *note, struct buf *why);
/* The port of a service in this cell. */
uint16_t admin_port(const struct admin *a, enum admin_service service);
/* Database servers in order. */
size_t admin_db_servers(const struct admin *a, const uint32_t **ips);

/* --- calls --------------------------------------------------------------------------------- */

/* A call to the location or the protection database, on each server in turn until one does it.
 * `arena` (may be NULL) gets what results point to. */
afs_err admin_db(struct admin *a, enum admin_service db, unsigned op, const void *in, void *out, struct arena *arena);
/* A connection to a service of one server; lives as long as `a`. */
afs_err admin_conn(struct admin *a, uint32_t ip, enum admin_service service, struct rpc_conn **out);
/* A call on it.  `proc` may belong to another table of the same service. */
afs_err admin_call(struct admin *a, struct rpc_conn *conn, const struct rpc_proc *proc, const void *in, void *out, struct arena *arena);
/* For split calls: as admin_call, for what rpc_end gave. */
afs_err admin_note(struct admin *a, struct rpc_conn *conn, const struct rpc_proc *proc, afs_err err, int32_t code);

/* The last failed call: its code (0: none came), and the reason: "no such entry (VL GetEntryByNameN
 * at 10.0.0.1, code 363524)".  `err` is what the call gave. */
int32_t admin_code(const struct admin *a);
const char *admin_why(struct admin *a, afs_err err);
/* What a code says, NULL for an unknown one. */
const char *admin_code_text(int32_t code);

/* --- steps --------------------------------------------------------------------------------- */

/* Long work announces its steps to `say`, and stops before the next one once *stop is not 0. */
void admin_watch(struct admin *a, void (*say)(void *ctx, const char *step), void *ctx, const volatile sig_atomic_t *stop);
/* AFS_EINTR: stop now, and put right what was begun. */
[[gnu::format(printf, 2, 3)]] afs_err admin_step(struct admin *a, const char *fmt, ...);
bool admin_stopping(const struct admin *a); /* the next step will say so */
/* A reason of the tool's own, for admin_why(); gives `err`. */
[[gnu::format(printf, 3, 4)]] afs_err admin_refuse(struct admin *a, afs_err err, const char *fmt, ...);

/* --- names --------------------------------------------------------------------------------- */

/* A server by name or dotted address.  A name that stands for several addresses gives one that is not
 * loopback, when there is one.  AFS_ENOENT. */
afs_err admin_host_ip(struct admin *a, const char *name, uint32_t *ip);
/* Its name, or its address in digits; lives as long as `a`. */
const char *admin_host_name(struct admin *a, uint32_t ip);
/* Two addresses of one file server, as far as the location database knows. */
bool admin_same_server(struct admin *a, uint32_t x, uint32_t y);

/* "a", "/vicepa", "vicepaa", "26": 0 to 255.  False: no partition. */
bool admin_partition(const char *name, int32_t *id);
/* "/vicepa"; `out` holds 16. */
const char *admin_partition_name(char *out, int32_t id);
#define PARTNAME(id) admin_partition_name((char[16]){0}, (id))
