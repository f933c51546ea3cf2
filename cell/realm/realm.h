/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The embedded Kerberos realm: MIT's database in a directory of its own, changed through libkadm5srv
 * and libkdb5, and MIT's krb5kdc as a supervised child.
 *
 * The directory holds krb5.conf (for clients), kdc.conf, principal* (the database) and stash (its
 * random master key); all mode 0600 or 0700 but krb5.conf.  Everything is done with profiles made
 * from those two files, never through this process's environment; only the child gets
 * KRB5_CONFIG and KRB5_KDC_PROFILE in its own.
 *
 * Only strong enctypes: aes256 and aes128, SHA-2 and SHA-1.  Users must pre-authenticate.
 *
 * Where a function takes `why`, it adds a sentence for a person to that buffer when it fails.
 * A struct realm may be used by any thread; calls exclude each other and touch only the disk.
 * Another process (the command line while the cell runs) may have the same realm open.
 *
 * Source: D1 of doc/design.md; MIT krb5 documentation of kdc.conf and krb5.conf. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/clk.h"
#include "cell/base/err.h"
#include "cell/base/mem.h"

#include <stdint.h>
#include <sys/types.h>

struct realm_config {
	const char *dir;    /* state directory; made when missing (its parent must exist) */
	const char *realm;  /* "SANDBOX.TEST" */
	const char *cell;   /* "sandbox.test" */
	const char *listen; /* numeric address for the KDC; NULL: 127.0.0.1 */
	uint16_t port;      /* UDP and TCP; 0: 8088 */
	const char *keytab; /* where the key of afs/<cell> is kept for the servers */
	const char *gk_keytab; /* and that of afs-rxgk/_afs.<cell>, to which rxgk's clients speak; NULL: none */
	uint32_t ticket_life_s; /* 0: 25 h; at most 30 days, which is what rxkad takes */
};
struct realm;

/* Opens the realm in config->dir, making what is missing of it: configuration files, database, stash,
 * afs/<cell> with a random key, keytab.  A second call changes nothing that is right.  *made tells
 * whether the database is new.  A realm half made by a crash is finished or made anew.
 * AFS_EVERSION: the directory holds another realm; AFS_ECORRUPT: database and stash do not fit;
 * AFS_EACCESS, AFS_ENOSPC, AFS_EIO, AFS_ENOMEM. */
afs_err realm_open(
	const struct realm_config *config, struct realm **out, bool *made, struct buf *why);
void realm_close(struct realm *r);
DEFINE_CLEANUP_PTR(realm, struct realm, realm_close)

const char *realm_krb5_conf(const struct realm *r); /* path for KRB5_CONFIG */
const char *realm_kdc_conf(const struct realm *r);
const char *realm_name(const struct realm *r);

/* `who` is "user" or "user/admin", of this realm.  AFS_EPERM from what would change one of the realm's
 * own principals (krbtgt, afs, kadmin, K/M). */
enum { REALM_PASSWORD_LEN = 20 };
/* Makes a principal.  `password` NULL: a random one is made and put into random_out
 * (REALM_PASSWORD_LEN + 1 bytes).  AFS_EEXIST, AFS_EBADNAME, AFS_EINVAL (empty password). */
afs_err realm_user_add(struct realm *r, const char *who, const char *password, char *random_out,
	struct buf *why);
/* A new password; as above.  AFS_ENOENT. */
afs_err realm_user_password(struct realm *r, const char *who, const char *password,
	char *random_out, struct buf *why);
/* AFS_OK, AFS_ENOENT, or AFS_EBADPASSWORD when `password` is not the principal's: to change only
 * what differs. */
afs_err realm_user_check(struct realm *r, const char *who, const char *password, struct buf *why);
/* AFS_ENOENT. */
afs_err realm_user_delete(struct realm *r, const char *who, struct buf *why);
bool realm_user_exists(struct realm *r, const char *who);
/* A disabled principal gets no tickets, and keeps its password; tickets it has go on.  AFS_ENOENT. */
afs_err realm_user_disable(struct realm *r, const char *who, bool disabled, struct buf *why);

struct realm_user {
	char *name; /* "user" or "user/admin" */
	wall_ns password_changed; /* 0: not known */
	bool service; /* one of the realm's own: krbtgt, afs, kadmin, K/M */
	bool disabled;
};
/* One principal; out->name is `who` itself.  AFS_ENOENT, AFS_EBADNAME. */
afs_err realm_user_find(struct realm *r, const char *who, struct realm_user *out, struct buf *why);
/* All principals, by name.  realm_users_free() them. */
afs_err realm_users(struct realm *r, struct realm_user **out, size_t *n, struct buf *why);
void realm_users_free(struct realm_user *users, size_t n);

/* A further random key for afs/<cell> with the next kvno; the old stay in the keytab so that tickets
 * issued before remain readable.  Servers must keys_reload(). */
afs_err realm_rekey(struct realm *r, struct buf *why);

struct realm_key {
	int32_t newest;    /* kvno */
	uint32_t count;    /* of kvnos that are kept */
	wall_ns since;     /* when the newest was made */
	wall_ns old_until; /* when the last ticket sealed with an older one runs out; 0: there is none */
};
afs_err realm_key_find(struct realm *r, struct realm_key *out, struct buf *why);
/* Drops all keys of afs/<cell> but the newest, from database and keytab.  AFS_EBUSY: tickets sealed with them
 * may still be in use, and not `force`.  Servers must keys_reload(). */
afs_err realm_key_retire(struct realm *r, bool force, struct buf *why);

/* --- trust between realms ---------------------------------------------------------------- */

/* Lets users of `other` come here (inbound) and users of this realm go there (outbound), by a key that
 * both realms make from one password: krbtgt/THIS@OTHER and krbtgt/OTHER@THIS.  An older trust is
 * replaced; *changed tells whether anything had to be.  `other` is a realm's name in capitals.  AFS_EBADNAME,
 * AFS_EINVAL (its own name, a short password). */
afs_err realm_trust(struct realm *r, const char *other, const char *password, bool *changed, struct buf *why);
/* AFS_ENOENT: there was none. */
afs_err realm_untrust(struct realm *r, const char *other, struct buf *why);
/* What krb5.conf tells of other realms, from now on: their key servers, "HOST" or "HOST:PORT", "" for none. */
struct realm_other {
	const char *name, *kdc;
};
afs_err realm_others(struct realm *r, const struct realm_other *others, size_t n, struct buf *why);
/* Names of the realms trusted, the caller's (mem_free each, and the array). */
afs_err realm_trusted(struct realm *r, char ***out, size_t *n, struct buf *why);

/* --- the KDC child ---------------------------------------------------------------------- */

struct realm_kdc;
enum realm_kdc_state {
	REALM_KDC_RUNNING,
	REALM_KDC_WAITING, /* it died and will be started again */
	REALM_KDC_STOPPED,
};
struct realm_kdc_status {
	enum realm_kdc_state state;
	pid_t pid;         /* 0 unless running */
	unsigned restarts; /* since realm_kdc_start */
	int last_exit;     /* wait status of the last death; 0: none */
};

/* Starts krb5kdc and a thread that minds it: started again after 0.1 s, 0.2 s ... 30 s when it dies,
 * killed when this process dies.  Waits, at most 10 s, until it
 * answers.  Must be called by the process that is to live (after becoming a daemon).
 * AFS_EADDRINUSE: somebody else has the port (`why` says which); AFS_ENOENT: no krb5kdc program;
 * AFS_ETIMEDOUT: it runs but does not answer; AFS_EIO: it ends at once (`why` has its last words). */
afs_err realm_kdc_start(struct realm *r, struct realm_kdc **out, struct buf *why);
void realm_kdc_status(struct realm_kdc *kdc, struct realm_kdc_status *out);
/* Stops the child (SIGTERM, after 3 s SIGKILL) and the thread. */
void realm_kdc_stop(struct realm_kdc *kdc);
