/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Making and opening the Kerberos database.
 *
 * The stash file is what makes a realm: it is renamed into place last, when the database holds its
 * first principals.  So a database without a stash is the rest of an attempt, and is made anew; a
 * stash without a database is damage.
 *
 * A database starts with K/M, the master key sealed in itself, which only libkdb5 can write; krbtgt and
 * everything after goes through libkadm5srv. */
#include "cell/realm/db.h"

#include <errno.h>
#include <profile.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MASTER_KVNO = 1 };

void realm_why(struct buf *why, const char *fmt, ...)
{
	if (!why)
		return;
	va_list ap;
	va_start(ap, fmt);
	char text[1024];
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_puts(why, text);
}

afs_err realm_fail(const struct realm *r, long code, struct buf *why, const char *what)
{
	const char *msg = krb5_get_error_message(r->ctx, (krb5_error_code)code);
	realm_why(why, "realm %s in %s: %s: %s", r->config.realm, r->config.dir, what, msg);
	krb5_free_error_message(r->ctx, msg);
	switch (code) {
	case KADM5_DUP:
		return AFS_EEXIST;
	case KADM5_UNK_PRINC:
	case KRB5_KDB_NOENTRY:
		return AFS_ENOENT;
	case KRB5_KDB_CANTREAD_STORED:
	case KRB5_KDB_BADSTORED_MKEY:
	case KRB5_KDB_BADMASTERKEY:
	case KRB5_KDB_NOMASTERKEY:
	case KRB5_KDB_TRUNCATED_RECORD:
	case KRB5_KDB_BAD_VERSION:
	case KADM5_BAD_DB:
		return AFS_ECORRUPT;
	case ENOMEM:
		return AFS_ENOMEM;
	default:
		return code > 0 && code < 200 ? afs_err_from_errno((int)code) : AFS_EIO;
	}
}

/* At most two parts of printable ASCII without the characters that mean something in a name of AFS
 * or Kerberos. */
static bool part_ok(const char *p, size_t n)
{
	if (n < 1 || n > 63)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p[i] <= ' ' || p[i] >= 0x7f || strchr("@:\\\"'*?[]", p[i]))
			return false;
	return true;
}

afs_err realm_principal(struct realm *r, const char *who, krb5_principal *out, struct buf *why)
{
	size_t n = strcspn(who, "/");
	const char *instance = who[n] ? who + n + 1 : NULL;
	if (!part_ok(who, n) || memchr(who, '.', n) ||
		(instance && (!part_ok(instance, strlen(instance)) || strchr(instance, '/')))) {
		realm_why(why,
			"\"%s\" cannot name a user: letters, digits, - and _, as in joe or "
			"joe/admin",
			who);
		return AFS_EBADNAME;
	}
	char name[64];
	memcpy(name, who, n);
	name[n] = 0;
	const char *realm = r->config.realm;
	krb5_error_code code = krb5_build_principal(
		r->ctx, out, (unsigned)strlen(realm), realm, name, instance, (char *)NULL);
	return code ? realm_fail(r, code, why, "name") : AFS_OK;
}

/* --- making ------------------------------------------------------------------------------- */

/* What is left of an attempt. */
static afs_err wipe(const struct realm *r, struct buf *why)
{
	static const char *const parts[] = {"", ".ok", ".kadm5", ".kadm5.lock", "~", "~.ok"};
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		char path[REALM_PATH_MAX];
		snprintf(path, sizeof(path), "%s%s", r->database, parts[i]);
		if (unlink(path) && errno != ENOENT) {
			realm_why(why, "%s: %s", path, strerror(errno));
			return afs_err_from_errno(errno);
		}
	}
	return AFS_OK;
}

static krb5_error_code put_master(struct realm *r, krb5_principal name, const krb5_keyblock *key)
{
	krb5_timestamp now;
	krb5_db_entry e = {.len = KRB5_KDB_V1_BASE_LENGTH, .attributes = KRB5_KDB_DISALLOW_ALL_TIX};
	krb5_actkvno_node active = {.act_kvno = MASTER_KVNO};
	krb5_error_code code = krb5_timeofday(r->ctx, &now);
	active.act_time = now;
	if (!code)
		code = krb5_copy_principal(r->ctx, name, &e.princ);
	if (!code)
		code = krb5_dbe_update_mod_princ_data(r->ctx, &e, now, name);
	if (!code)
		code = krb5_dbe_create_key_data(r->ctx, &e);
	if (!code)
		code = krb5_dbe_encrypt_key_data(r->ctx, key, key, NULL, MASTER_KVNO, e.key_data);
	if (!code)
		code = krb5_dbe_update_actkvno(r->ctx, &e, &active);
	if (!code)
		code = krb5_db_put_principal(r->ctx, &e);
	for (int i = 0; i < e.n_key_data; i++)
		krb5_dbe_free_key_data_contents(r->ctx, &e.key_data[i]);
	krb5_db_free(r->ctx, e.key_data);
	for (krb5_tl_data *t = e.tl_data, *next; t; t = next) {
		next = t->tl_data_next;
		krb5_db_free(r->ctx, t->tl_data_contents);
		krb5_db_free(r->ctx, t);
	}
	krb5_free_principal(r->ctx, e.princ);
	return code;
}

/* The database with K/M in it, and its key in `stash`. */
static afs_err create(struct realm *r, char *stash, struct buf *why)
{
	char *full = NULL;
	krb5_principal name = NULL;
	krb5_keyblock key = {};
	char *args[] = {NULL};
	const char *what = "making the database";
	krb5_error_code code = krb5_set_default_realm(r->ctx, r->config.realm);
	if (!code)
		code = krb5_db_setup_mkey_name(r->ctx, NULL, r->config.realm, &full, &name);
	if (!code)
		code = krb5_c_make_random_key(r->ctx, ENCTYPE_AES256_CTS_HMAC_SHA1_96, &key);
	if (!code)
		code = krb5_db_create(r->ctx, args);
	if (!code) {
		what = "writing the master key";
		code = put_master(r, name, &key);
	}
	if (!code)
		code = krb5_db_store_master_key(r->ctx, stash, name, MASTER_KVNO, &key, NULL);
	afs_err err = code ? realm_fail(r, code, why, what) : AFS_OK;
	(void)krb5_db_fini(r->ctx); /* it is opened again through kadm5 */
	krb5_free_keyblock_contents(r->ctx, &key);
	if (name)
		krb5_free_principal(r->ctx, name);
	krb5_db_free(r->ctx, full);
	return err;
}

static afs_err kadm_open(struct realm *r, char *stash, struct buf *why)
{
	CLEANUP(str) char *caller = mem_printf("afscell@%s", r->config.realm);
	kadm5_config_params params = {.mask = KADM5_CONFIG_REALM | KADM5_CONFIG_STASH_FILE,
		.realm = (char *)(uintptr_t)r->config.realm,
		.stash_file = stash};
	if (!caller)
		return AFS_ENOMEM;
	long code = kadm5_init(r->ctx, caller, NULL, NULL, &params, KADM5_STRUCT_VERSION,
		KADM5_API_VERSION_4, NULL, &r->kadm);
	if (code) {
		r->kadm = NULL;
		return realm_fail(r, code, why, "opening the database");
	}
	return AFS_OK;
}

static void kadm_close(struct realm *r)
{
	if (r->kadm)
		(void)kadm5_destroy(r->kadm); /* nothing is buffered */
	r->kadm = NULL;
}

static afs_err put_krbtgt(struct realm *r, struct buf *why)
{
	krb5_principal tgt;
	const char *realm = r->config.realm;
	krb5_error_code code = krb5_build_principal(
		r->ctx, &tgt, (unsigned)strlen(realm), realm, KRB5_TGS_NAME, realm, (char *)NULL);
	if (code)
		return realm_fail(r, code, why, "krbtgt");
	kadm5_principal_ent_rec e = {.principal = tgt, .attributes = KRB5_KDB_LOCKDOWN_KEYS};
	krb5_key_salt_tuple ks = {ENCTYPE_AES256_CTS_HMAC_SHA1_96, KRB5_KDB_SALTTYPE_NORMAL};
	long got = kadm5_create_principal_3(
		r->kadm, &e, KADM5_PRINCIPAL | KADM5_ATTRIBUTES, 1, &ks, NULL);
	krb5_free_principal(r->ctx, tgt);
	return got ? realm_fail(r, got, why, "making krbtgt") : AFS_OK;
}

static afs_err make(struct realm *r, struct buf *why)
{
	char fresh[REALM_PATH_MAX];
	snprintf(fresh, sizeof(fresh), "%s.new", r->stash);
	if (unlink(fresh) && errno != ENOENT) {
		realm_why(why, "%s: %s", fresh, strerror(errno));
		return afs_err_from_errno(errno);
	}
	TRY(wipe(r, why));
	TRY(create(r, fresh, why));
	afs_err err = kadm_open(r, fresh, why);
	if (!err)
		err = put_krbtgt(r, why);
	kadm_close(r);
	if (!err && rename(fresh, r->stash)) {
		realm_why(why, "%s: %s", r->stash, strerror(errno));
		err = afs_err_from_errno(errno);
	}
	return err;
}

/* --- opening ------------------------------------------------------------------------------- */

static krb5_error_code bare_context(krb5_context *out)
{
	profile_t p;
	krb5_error_code code = (krb5_error_code)profile_init(NULL, &p);
	if (code)
		return code;
	code = krb5_init_context_profile(p, KRB5_INIT_CONTEXT_SECURE, out);
	profile_release(p);
	return code;
}

/* The realm to which the stash belongs: it is a keytab of K/M@REALM. */
static afs_err check_owner(struct realm *r, struct buf *why)
{
	char name[REALM_PATH_MAX + 8];
	krb5_keytab kt;
	krb5_kt_cursor cursor;
	krb5_keytab_entry e;
	snprintf(name, sizeof(name), "FILE:%s", r->stash);
	krb5_error_code code = krb5_kt_resolve(r->ctx, name, &kt);
	if (code)
		return realm_fail(r, code, why, "stash");
	code = krb5_kt_start_seq_get(r->ctx, kt, &cursor);
	if (!code) {
		code = krb5_kt_next_entry(r->ctx, kt, &e, &cursor);
		krb5_kt_end_seq_get(r->ctx, kt, &cursor);
	}
	krb5_kt_close(r->ctx, kt);
	if (code) {
		(void)realm_fail(r, code, why, "the stash file cannot be read");
		return code == EACCES ? AFS_EACCESS : AFS_ECORRUPT;
	}
	const krb5_data *owner = &e.principal->realm;
	bool ours = owner->length == strlen(r->config.realm) &&
		    memcmp(owner->data, r->config.realm, owner->length) == 0;
	if (!ours)
		realm_why(why,
			"%s holds the realm %.*s, not %s; choose another state directory, or erase "
			"this one "
			"to start anew",
			r->config.dir, (int)owner->length, owner->data, r->config.realm);
	krb5_free_keytab_entry_contents(r->ctx, &e);
	return ours ? AFS_OK : AFS_EVERSION;
}

static afs_err open_locked(struct realm *r, bool *made, struct buf *why)
{
	struct stat st;
	krb5_error_code code = realm_conf_context(r, &r->ctx);
	if (code) {
		r->ctx = NULL;
		realm_why(why, "%s, %s: cannot be read as Kerberos configuration (error %d)",
			r->kdc_conf, r->krb5_conf, (int)code);
		return AFS_ECONFIG;
	}
	*made = stat(r->stash, &st) != 0;
	if (*made && errno != ENOENT) {
		realm_why(why, "%s: %s", r->stash, strerror(errno));
		return afs_err_from_errno(errno);
	}
	if (*made)
		TRY(make(r, why));
	else if (stat(r->database, &st)) {
		realm_why(why,
			"%s: %s, though there is a stash file: restore it or erase the realm",
			r->database, strerror(errno));
		return AFS_ECORRUPT;
	}
	return kadm_open(r, r->stash, why);
}

afs_err realm_db_open(struct realm *r, bool *made, struct buf *why)
{
	struct stat st;
	if (stat(r->stash, &st) == 0) {
		/* before our configuration is laid over another realm's */
		krb5_error_code code = bare_context(&r->ctx);
		if (code) {
			r->ctx = NULL;
			return AFS_ENOMEM;
		}
		afs_err err = check_owner(r, why);
		krb5_free_context(r->ctx);
		r->ctx = NULL;
		if (err)
			return err;
	}
	TRY(realm_conf_write(r, why));
	return open_locked(r, made, why);
}

void realm_db_close(struct realm *r)
{
	kadm_close(r);
	if (r->ctx)
		krb5_free_context(r->ctx);
	r->ctx = NULL;
}
