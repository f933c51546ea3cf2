/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Service keys, tickets, tokens and names: what stands between Kerberos and AFS.
 *
 * A struct keys is the set of keys of one cell's service principal (afs/<cell>@REALM, or afs@REALM).
 * With it a server reads tickets (keys_read_ticket fits struct rxkad_server), and a tool on the
 * same machine makes itself a token that every server of the cell takes for the cell itself.
 *
 * Key enctypes: aes128/256 with SHA-1 or SHA-2 (17-20) and Camellia (25, 26).  RC4 (23), 3DES (16)
 * and single DES (1-3, for Kerberos 4 style tickets only) are refused unless `weak_crypto`.
 *
 * Where a function takes `why`, it adds a sentence for a person to that buffer (what, where, what to
 * do) when it fails; NULL if nobody reads it.  Key bytes never appear there or in the log.
 *
 * All functions may be called from any thread.  keys_read_ticket takes one short lock and never
 * waits for network or disk.
 *
 * Source: protocol rx-security.md §5-7, §10. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/clk.h"
#include "cell/base/err.h"
#include "cell/base/mem.h"
#include "rx/sec/token.h"

struct keys;

struct keys_config {
	const char *cell;   /* copied; its name in lower case */
	const char *keytab; /* path, copied; NULL: start empty and use keys_add */
	bool weak_crypto;
	bool allow_dotted;  /* principals with a dot in the first component (collide with instances) */
};

/* AFS_ENOENT: no such file, or no entry for afs/<cell> or afs in it; AFS_EWEAKKEY: entries, but none of
 * an accepted enctype; AFS_EACCESS, AFS_ECORRUPT, AFS_ENOMEM. */
afs_err keys_open(const struct keys_config *config, struct keys **out, struct buf *why);
void keys_close(struct keys *keys);
DEFINE_CLEANUP_PTR(keys, struct keys, keys_close)
/* Reads the keytab again.  On an error the old keys stay. */
afs_err keys_reload(struct keys *keys, struct buf *why);

/* AFS_EWEAKKEY: enctype not accepted; AFS_EINVAL: length is not the enctype's; AFS_EEXIST: there is a
 * key of that kvno and enctype with other bytes. */
afs_err keys_add(struct keys *keys, int32_t kvno, int32_t enctype, const uint8_t *key, size_t len);

struct keys_entry {
	int32_t kvno, enctype;
	uint32_t checksum; /* tells keys apart; says nothing of their bytes */
};
/* The number of keys; fills at most `cap` rows.  Highest kvno first. */
size_t keys_list(struct keys *keys, struct keys_entry *out, size_t cap);

/* rxkad_read_ticket, ctx being a struct keys.  Ticket types 213, 256, and 0-255 when a DES key of
 * that kvno was admitted. */
afs_err keys_read_ticket(void *keys, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out);

/* --- tokens -------------------------------------------------------------------------------- */

/* A token, of one class or of both, that owns its bytes. */
struct keys_token {
	union { /* `both` names the pair */
		struct rx_token both;
		struct {
			struct rxkad_token kad; /* its ticket is `ticket` */
			struct rxgk_token gk;   /* its token is `gk_token` */
		};
	};
	/* the client principal */
	char name[RX_NAME_MAX], instance[RX_NAME_MAX], realm[RX_NAME_MAX];
	char cell[RX_NAME_MAX]; /* it is for */
	uint8_t *ticket, *gk_token; /* heap */
};
void keys_token_fini(struct keys_token *token); /* also wipes it */
static inline void keys_token_cleanup(struct keys_token *t) { keys_token_fini(t); }

/* A token of the cell itself, made with the newest key: name afs, no instance, no cell; type 213.
 * Stock servers that share the key accept it.  AFS_ENOENT: there is no key to make it with. */
afs_err keys_localauth(struct keys *keys, struct keys_token *out);

struct keys_aklog {
	const char *cell;
	const char *realm;     /* NULL: the user's own realm, then the cell's name in upper case */
	const char *krb5_conf; /* profile; NULL: the system's (KRB5_CONFIG or /etc/krb5.conf) */
	const char *ccache;    /* credential cache by name; NULL: the caller's default */
};
/* A token from the caller's Kerberos tickets; waits for the KDC (libkrb5's timeouts).
 * AFS_ENOTICKETS: no or empty cache; AFS_EEXPIRED; AFS_ENOENT: no KDC asked knows a service principal of
 * the cell; AFS_ENOKDC: none answers; AFS_ESKEW; AFS_EBADTICKET: session key of no usable kind. */
afs_err keys_aklog(const struct keys_aklog *want, struct keys_token *out, struct buf *why);

/* The client's side of a connection made with it (rx_token_client), with this process's randomness. */
struct rx_sec *keys_token_client(const struct rx_token *token, enum rx_sec_level level);
/* A copy with bytes of its own.  AFS_ENOMEM. */
afs_err keys_token_copy(const struct keys_token *token, struct keys_token *out);
/* Keeps these bytes as its rxgk token; what `gk` points to is copied.  AFS_ENOMEM. */
afs_err keys_token_set_gk(struct keys_token *token, const struct rxgk_token *gk);

/* The ticket for rxgk's negotiation, afs-rxgk/_afs.<cell>, got into the credential cache for GSS to find. */
struct keys_gss {
	char *ccache;  /* heap; the cache's full name */
	char *service; /* heap; the principal, with its realm */
	struct keys_token token; /* of neither class: the client's names, and the cell */
};
/* As keys_aklog. */
afs_err keys_gss_ticket(const struct keys_aklog *want, struct keys_gss *out, struct buf *why);
void keys_gss_fini(struct keys_gss *g);
static inline void keys_gss_cleanup(struct keys_gss *g) { keys_gss_fini(g); }

struct keys_login {
	const char *principal; /* "user" or "user/admin", with or without @REALM */
	const char *realm;     /* of a principal without one; NULL: the profile's default */
	const char *password;
	const char *krb5_conf; /* as above */
	const char *ccache;    /* where the ticket goes; NULL: the caller's default */
};
/* What kinit does.  AFS_EBADPASSWORD; AFS_ENOENT: no such principal; AFS_ENOKDC; AFS_ESKEW; AFS_EEXPIRED:
 * the password or the principal expired; AFS_EACCESS: the cache cannot be written. */
afs_err keys_login(const struct keys_login *login, struct buf *why);

/* --- names ------------------------------------------------------------------------------------ */

/* Which realms count as the cell's own, besides one that has the cell's name. */
struct keys_realms {
	const char *cell;
	const char *const *local; /* realm names */
	size_t local_n;
};
struct keys_name {
	char text[3 * RX_NAME_MAX]; /* "name", "name.instance"; when foreign + "@realm", lower case */
	bool authenticated, local;
	bool localauth; /* the cell itself: superuser without being listed */
};
/* The AFS name of a caller; empty for an anonymous one.  The protection database looks it up in
 * lower case; lists of superusers compare it as it is. */
void keys_afs_name(
	const struct keys_realms *realms, const struct rx_caller *caller, struct keys_name *out);

/* --- files of stock OpenAFS --------------------------------------------------------------- */

/* Writes KeyFileExt, rxkad.keytab and, when there are DES keys, KeyFile into `dir`, each mode 0600 and
 * replaced in one step.  `realm` names the principal in the keytab. */
afs_err keys_write_openafs(struct keys *keys, const char *realm, const char *dir, struct buf *why);
