/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cell's service principal, and its keytab for the servers.
 *
 * One enctype, aes256-sha1: the best that stock OpenAFS servers and tools read.  Tickets for it carry no
 * authorization data, so a RESPONSE stays in one small datagram. */
#include "cell/realm/db.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static krb5_key_salt_tuple keysalt[] = {
	{ENCTYPE_AES256_CTS_HMAC_SHA1_96, KRB5_KDB_SALTTYPE_NORMAL}};

static afs_err service_name(struct realm *r, krb5_principal *out, struct buf *why)
{
	const char *realm = r->config.realm;
	krb5_error_code code = krb5_build_principal(
		r->ctx, out, (unsigned)strlen(realm), realm, "afs", r->config.cell, (char *)NULL);
	return code ? realm_fail(r, code, why, "afs") : AFS_OK;
}

static bool keytab_has(
	struct realm *r, const char *path, krb5_principal who, const kadm5_key_data *keys, int n)
{
	char name[REALM_PATH_MAX + 8];
	krb5_keytab kt;
	bool all = true;
	snprintf(name, sizeof(name), "FILE:%s", path);
	if (krb5_kt_resolve(r->ctx, name, &kt))
		return false;
	for (int i = 0; i < n && all; i++) {
		krb5_keytab_entry e;
		all = krb5_kt_get_entry(r->ctx, kt, who, keys[i].kvno, keys[i].key.enctype, &e) ==
		      0;
		if (!all)
			break;
		all = e.key.length == keys[i].key.length &&
		      memcmp(e.key.contents, keys[i].key.contents, e.key.length) == 0;
		krb5_free_keytab_entry_contents(r->ctx, &e);
	}
	krb5_kt_close(r->ctx, kt);
	return all;
}

static afs_err keytab_write(struct realm *r, const char *path, krb5_principal who,
	const kadm5_key_data *keys, int n, struct buf *why)
{
	char tmp[REALM_PATH_MAX], name[REALM_PATH_MAX + 8];
	krb5_keytab kt;
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	snprintf(name, sizeof(name), "WRFILE:%s", tmp);
	if (unlink(tmp) && errno != ENOENT) {
		realm_why(why, "%s: %s", tmp, strerror(errno));
		return afs_err_from_errno(errno);
	}
	krb5_error_code code = krb5_kt_resolve(r->ctx, name, &kt);
	if (code)
		return realm_fail(r, code, why, tmp);
	for (int i = 0; i < n && !code; i++) {
		krb5_keytab_entry e = {.principal = who, .vno = keys[i].kvno, .key = keys[i].key};
		code = krb5_kt_add_entry(r->ctx, kt, &e); /* makes the file with mode 0600 */
	}
	krb5_kt_close(r->ctx, kt);
	if (!code && rename(tmp, path))
		code = errno;
	if (code) {
		unlink(tmp);
		return realm_fail(r, code, why, path);
	}
	return AFS_OK;
}

static afs_err keytab_ensure(struct realm *r, krb5_principal who, struct buf *why)
{
	kadm5_key_data *keys;
	int n;
	long code = kadm5_get_principal_keys(r->kadm, who, 0, &keys, &n);
	if (code)
		return realm_fail(r, code, why, "reading the key of afs");
	afs_err err = AFS_OK;
	if (!keytab_has(r, r->config.keytab, who, keys, n))
		err = keytab_write(r, r->config.keytab, who, keys, n, why);
	(void)kadm5_free_kadm5_key_data(r->ctx, n, keys);
	return err;
}

afs_err realm_service_ensure(struct realm *r, struct buf *why)
{
	krb5_principal who;
	TRY(service_name(r, &who, why));
	kadm5_principal_ent_rec e = {
		.principal = who, .attributes = KRB5_KDB_NO_AUTH_DATA_REQUIRED};
	long code = kadm5_create_principal_3(
		r->kadm, &e, KADM5_PRINCIPAL | KADM5_ATTRIBUTES, 1, keysalt, NULL);
	afs_err err = code && code != KADM5_DUP ? realm_fail(r, code, why, "making afs") : AFS_OK;
	if (!err)
		err = keytab_ensure(r, who, why);
	krb5_free_principal(r->ctx, who);
	return err;
}

afs_err realm_rekey(struct realm *r, struct buf *why)
{
	krb5_principal who;
	mtx_lock(&r->lock);
	afs_err err = service_name(r, &who, why);
	if (!err) {
		long code = kadm5_randkey_principal_3(r->kadm, who, TRUE, 1, keysalt, NULL, NULL);
		err = code ? realm_fail(r, code, why, "a new key for afs")
			   : keytab_ensure(r, who, why);
		krb5_free_principal(r->ctx, who);
	}
	mtx_unlock(&r->lock);
	return err;
}
