/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The configuration: desired state of a cell, read from one YAML file.
 *
 * Every key is a row of schema.def: path, kind, default, range, one sentence.  The loader, the
 * sample file, `afscell config keys` and the manual page come from the rows.  This header gives the
 * structs that they fill; a part of the cell is handed the few values it needs, never this.
 *
 * The loader reports every problem it finds (up to a bound), each with file:line:column, what was
 * expected and what was found; a key that does not exist is an error, with the nearest one named.
 * Lists and maps keep the file's order.  Strings are never NULL: "" says that nothing was given.
 * All memory belongs to the struct conf. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct conf_pos {
	int line, column; /* 1, 2, ...; 0: not from a file */
};
struct conf_names {
	char **v;
	size_t n;
};
struct conf_addrs {
	uint32_t *v; /* host order */
	size_t n;
};

enum conf_realm_mode { CONF_REALM_EMBEDDED, CONF_REALM_EXTERNAL };
enum conf_durability { CONF_DURABLE_PROCESS, CONF_DURABLE_POWER };
enum conf_level { CONF_LEVEL_CLEAR, CONF_LEVEL_AUTH, CONF_LEVEL_CRYPT };
enum conf_client_level { CONF_CLIENT_AUTO, CONF_CLIENT_CLEAR, CONF_CLIENT_AUTH, CONF_CLIENT_CRYPT };
enum conf_class { CONF_CLASS_ANY, CONF_CLASS_RXGK, CONF_CLASS_RXKAD };
enum conf_log_level { CONF_LOG_ERROR, CONF_LOG_WARN, CONF_LOG_INFO, CONF_LOG_DEBUG };
enum conf_secret { CONF_SECRET_RANDOM, CONF_SECRET_PROMPT };

struct conf_role {
	bool enabled;
	uint16_t port;
	enum conf_level security; /* of authenticated callers; conf_least() tells what holds */
};
struct conf_partition {
	struct conf_pos pos;
	char *name; /* "a" is /vicepa */
	char *path;
};
/* Another realm whose users may come here as name@realm, and ours go there. */
struct conf_trust {
	struct conf_pos pos;
	char *name; /* of the realm */
	char *kdc;  /* "HOST" or "HOST:PORT"; "": found by DNS or the system's configuration */
	char *password_file;
};
struct conf_user {
	struct conf_pos pos;
	char *name;
	int64_t id; /* 0: the next free one */
	enum conf_secret password;
	char *password_file, *password_env; /* "" each: as `password` says */
};
struct conf_group {
	struct conf_pos pos;
	char *name;
	int64_t id;  /* 0: the next free one; else negative */
	char *owner; /* "": system:administrators */
	struct conf_names members;
};
/* An entry of an access list: rights as letters of rlidwka, or read, write, all, none. */
struct conf_ace {
	struct conf_pos pos;
	char *name;
	char *rights;
};
struct conf_acl {
	struct conf_ace *v;
	size_t n;
};
struct conf_volume {
	struct conf_pos pos;
	char *name;
	char *partition; /* "": the first one */
	int64_t quota;   /* bytes; 0: no limit; -1: not declared */
	char *owner;     /* of the root directory: a user of the cell; "": root */
	int64_t mode;    /* of the root directory */
	struct conf_acl acl; /* of the root directory; empty: leave as it is */
	char *mount;     /* where to mount it, relative to /afs/CELL; "": nowhere */
};
struct conf_mount {
	struct conf_pos pos;
	char *path; /* relative to /afs/CELL */
	char *volume;
	bool rw;    /* always the read-write volume (%) */
};
struct conf_acl_at {
	struct conf_pos pos;
	char *path; /* relative to /afs/CELL; "." is its root */
	struct conf_acl acl;
};

struct conf {
	char *file; /* as it was opened, made absolute */

	char *cell;
	char *state; /* directory */
	char *run;   /* directory of control socket and lock */
	struct conf_addrs listen;
	struct conf_addrs database_servers; /* empty: this one */
	enum conf_durability durability;
	enum conf_level security_least; /* of authenticated callers */

	struct {
		enum conf_realm_mode mode;
		char *name;
		uint16_t kdc_port;
		char *keytab;    /* external: key of afs/CELL */
		char *rxgk_keys; /* "": in the state directory */
		char *krb5_conf; /* external: what clients use */
		struct conf_names local; /* further realms whose users are the cell's own */
		bool dotted;     /* take principals with a dot in their first part */
	} realm;
	struct conf_trust *trusts; /* embedded realm */
	size_t trust_count;

	struct {
		struct conf_role fileserver, volserver, vlserver, ptserver, bosserver, client, console;
	} roles;

	struct {
		int64_t abort_threshold; /* rx_endpoint_config; 0: none */
		int64_t callbacks, callback_life /* s */, break_wait /* ms */;
	} fileserver;

	struct conf_partition *partitions;
	size_t partition_count;

	struct {
		char *mount; /* "": none */
		char *cache; /* directory */
		int64_t cache_size; /* bytes */
		bool memory_cache, direct, dns;
		char *cell_serv_db; /* "": none */
		int64_t tools_port; /* never 0 after loading */
		enum conf_client_level security; /* of calls with a token */
		enum conf_class security_class;
	} client;

	struct {
		char *address; /* numeric */
		char *host;    /* a further name of it; "": none */
		char *certificate, *key; /* PEM files; "": no TLS */
		bool behind_proxy;
	} console;

	struct {
		char *file;
		enum conf_log_level level;
	} log;
	struct {
		bool enabled;
		char *file;
		int64_t max_size; /* bytes of one file */
		int64_t keep;     /* rotated files kept */
	} audit;

	struct conf_names administrators;
	struct conf_user *users;
	size_t user_count;
	struct conf_group *groups;
	size_t group_count;
	struct conf_volume *volumes;
	size_t volume_count;
	struct conf_mount *mounts;
	size_t mount_count;
	struct conf_acl_at *acls;
	size_t acl_count;
};

/* Does this machine serve the cell?  A client alone has no key of it, and nothing to oversee. */
static inline bool conf_serves(const struct conf *c)
{
	return c->roles.fileserver.enabled || c->roles.volserver.enabled || c->roles.vlserver.enabled || c->roles.ptserver.enabled;
}

/* The least protection that a role's authenticated callers must use. */
static inline enum conf_level conf_least(const struct conf *c, const struct conf_role *role)
{
	return role->security > c->security_least ? role->security : c->security_least;
}

/* Load `file`.  Problems are written to `problems`, one line each ("file:3:7: ...").
 * AFS_ECONFIG: the file is wrong; AFS_ENOENT, AFS_EACCESS, AFS_EIO: it cannot be read. */
afs_err conf_load(const char *file, struct conf **out, struct buf *problems);
/* The same from text; `file` is only its name.  Relative paths are relative to the directory of
 * `file`. */
afs_err conf_parse(const char *text, size_t n, const char *file, struct conf **out, struct buf *problems);
void conf_free(struct conf *c);

/* Keys that cannot change while the cell runs, and that differ between the two, by path: calls `each` and
 * gives their number.  The desired state (users, groups, volumes, mounts, acls, administrators) does not
 * count. */
size_t conf_fixed_differences(const struct conf *a, const struct conf *b, void (*each)(void *ctx, const char *path), void *ctx);

/* The commented sample.  NULL fields keep the defaults. */
struct conf_sample {
	const char *cell, *state, *mount;
	const char *admin_password_file;
};
void conf_write_sample(struct buf *out, const struct conf_sample *with);
/* Every key with kind, range, default and sentence: text for a terminal, and a manual page. */
void conf_write_keys(struct buf *out);
void conf_write_man(struct buf *out, const char *version);
