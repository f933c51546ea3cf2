/* SPDX-License-Identifier: BSD-2-Clause
 * The realm's object, as this folder sees it. */
#pragma once
#include "cell/base/mtx.h"
#include "cell/realm/realm.h"

#include <kadm5/admin.h>
#include <kdb.h>
#include <krb5/krb5.h>
#undef mem_alloc /* the RPC headers under kadm5 define these words as macros */
#undef mem_free

enum { REALM_PATH_MAX = 512 };

struct realm {
	struct realm_config config; /* its texts are ours */
	char *krb5_conf, *kdc_conf, *stash, *database;
	char *others;      /* lines of krb5.conf about other realms; NULL: none */
	struct mtx lock; /* contexts and handles serve one thread at a time */
	krb5_context ctx;
	void *kadm; /* kadm5 handle; NULL: closed */
};

/* --- conf.c --- */
/* Writes krb5.conf and kdc.conf where they differ from what they should be. */
afs_err realm_conf_write(const struct realm *r, struct buf *why);
/* A context whose whole configuration is those two files. */
krb5_error_code realm_conf_context(const struct realm *r, krb5_context *out);

/* --- db.c --- */
/* Makes database and stash when there is no stash, and opens them. */
afs_err realm_db_open(struct realm *r, bool *made, struct buf *why);
void realm_db_close(struct realm *r);
/* "user" or "user/admin" as a principal of the realm.  AFS_EBADNAME. */
afs_err realm_principal(struct realm *r, const char *who, krb5_principal *out, struct buf *why);
afs_err realm_fail(const struct realm *r, long code, struct buf *why, const char *what);
[[gnu::format(printf, 2, 3)]] void realm_why(struct buf *why, const char *fmt, ...);

/* --- users.c --- */
/* Is `password` what this key was made from, for the principal `who`? */
bool realm_is_password(struct realm *r, krb5_principal who, const kadm5_key_data *k, const char *password);

/* --- service.c --- */
/* The principal afs/<cell> and its keytab. */
afs_err realm_service_ensure(struct realm *r, struct buf *why);
