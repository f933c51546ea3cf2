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

/* The one to whom rxgk's clients speak GSS. */
static afs_err gk_name(struct realm *r, krb5_principal *out, struct buf *why)
{
	const char *realm = r->config.realm;
	CLEANUP(str) char *host = mem_printf("_afs.%s", r->config.cell);
	if (!host)
		return AFS_ENOMEM;
	krb5_error_code code = krb5_build_principal(
		r->ctx, out, (unsigned)strlen(realm), realm, "afs-rxgk", host, (char *)NULL);
	return code ? realm_fail(r, code, why, "afs-rxgk") : AFS_OK;
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

static afs_err keytab_ensure(struct realm *r, krb5_principal who, const char *path, struct buf *why)
{
	kadm5_key_data *keys;
	int n;
	long code = kadm5_get_principal_keys(r->kadm, who, 0, &keys, &n);
	if (code)
		return realm_fail(r, code, why, "reading the services' keys");
	afs_err err = AFS_OK;
	if (!keytab_has(r, path, who, keys, n))
		err = keytab_write(r, path, who, keys, n, why);
	(void)kadm5_free_kadm5_key_data(r->ctx, n, keys);
	return err;
}

static afs_err principal_ensure(struct realm *r, krb5_principal who, const char *path, struct buf *why)
{
	kadm5_principal_ent_rec e = {
		.principal = who, .attributes = KRB5_KDB_NO_AUTH_DATA_REQUIRED};
	long code = kadm5_create_principal_3(
		r->kadm, &e, KADM5_PRINCIPAL | KADM5_ATTRIBUTES, 1, keysalt, NULL);
	afs_err err = code && code != KADM5_DUP ? realm_fail(r, code, why, "making the services") : AFS_OK;
	if (!err)
		err = keytab_ensure(r, who, path, why);
	krb5_free_principal(r->ctx, who);
	return err;
}

afs_err realm_service_ensure(struct realm *r, struct buf *why)
{
	krb5_principal who;
	TRY(service_name(r, &who, why));
	TRY(principal_ensure(r, who, r->config.keytab, why));
	if (!r->config.gk_keytab)
		return AFS_OK;
	TRY(gk_name(r, &who, why));
	return principal_ensure(r, who, r->config.gk_keytab, why);
}

afs_err realm_rekey(struct realm *r, struct buf *why)
{
	krb5_principal who;
	mtx_lock(&r->lock);
	afs_err err = service_name(r, &who, why);
	if (!err) {
		long code = kadm5_randkey_principal_3(r->kadm, who, TRUE, 1, keysalt, NULL, NULL);
		err = code ? realm_fail(r, code, why, "a new key for afs")
			   : keytab_ensure(r, who, r->config.keytab, why);
		krb5_free_principal(r->ctx, who);
	}
	mtx_unlock(&r->lock);
	return err;
}

/* --- old keys ------------------------------------------------------------------------------ */

static afs_err find_locked(struct realm *r, krb5_principal who, struct realm_key *out, struct buf *why)
{
	kadm5_principal_ent_rec e;
	long code = kadm5_get_principal(r->kadm, who, &e, KADM5_PRINCIPAL_NORMAL_MASK | KADM5_KEY_DATA);
	if (code)
		return realm_fail(r, code, why, "reading the key of afs");
	*out = (struct realm_key){.newest = e.kvno, .since = SEC((uint32_t)e.last_pwd_change)};
	for (int i = 0; i < e.n_key_data; i++) { /* newest first, one enctype each */
		bool again = false;
		for (int j = 0; j < i; j++)
			again = again || e.key_data[j].key_data_kvno == e.key_data[i].key_data_kvno;
		out->count += !again;
	}
	if (out->count > 1) /* a ticket of the last moment, with the longest life that this KDC gives */
		out->old_until = out->since + SEC((int64_t)r->config.ticket_life_s);
	(void)kadm5_free_principal_ent(r->kadm, &e);
	return AFS_OK;
}

afs_err realm_key_find(struct realm *r, struct realm_key *out, struct buf *why)
{
	krb5_principal who;
	mtx_lock(&r->lock);
	afs_err err = service_name(r, &who, why);
	if (!err) {
		err = find_locked(r, who, out, why);
		krb5_free_principal(r->ctx, who);
	}
	mtx_unlock(&r->lock);
	return err;
}

static afs_err retire_locked(struct realm *r, krb5_principal who, bool force, struct buf *why)
{
	struct realm_key k;
	TRY(find_locked(r, who, &k, why));
	if (!force && k.old_until > clk_wall()) {
		realm_why(why, "tickets sealed with the old key may be in use for another %lld minutes",
			(long long)((k.old_until - clk_wall()) / SEC(60) + 1));
		return AFS_EBUSY;
	}
	/* The keytab loses them last: a server must never lack a key that the KDC still hands out. */
	long code = kadm5_purgekeys(r->kadm, who, -1);
	if (code)
		return realm_fail(r, code, why, "dropping old keys of afs");
	kadm5_key_data *keys;
	int n;
	code = kadm5_get_principal_keys(r->kadm, who, 0, &keys, &n);
	if (code)
		return realm_fail(r, code, why, "reading the key of afs");
	afs_err err = keytab_write(r, r->config.keytab, who, keys, n, why);
	(void)kadm5_free_kadm5_key_data(r->ctx, n, keys);
	return err;
}

afs_err realm_key_retire(struct realm *r, bool force, struct buf *why)
{
	krb5_principal who;
	mtx_lock(&r->lock);
	afs_err err = service_name(r, &who, why);
	if (!err) {
		err = retire_locked(r, who, force, why);
		krb5_free_principal(r->ctx, who);
	}
	mtx_unlock(&r->lock);
	return err;
}
