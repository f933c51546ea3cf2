/* SPDX-License-Identifier: BSD-2-Clause
 *
 * People in the realm.
 *
 * They must pre-authenticate, and no service ticket is given in their names: either would hand a
 * stranger something sealed with a password to guess at. */
#include "cell/base/rand.h"
#include "cell/realm/db.h"

#include <stdio.h>
#include <string.h>

static const krb5_flags user_attributes = KRB5_KDB_REQUIRES_PRE_AUTH | KRB5_KDB_DISALLOW_SVR;

/* 55 characters that are not taken for each other; a byte above 219 is drawn again, so that each is
 * as likely: 115 bits. */
static void random_password(char out[REALM_PASSWORD_LEN + 1])
{
	static const char set[] = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
	enum { SET = 55 };
	_Static_assert(sizeof(set) >= SET + 1, "the set is shorter than said");
	for (size_t i = 0; i < REALM_PASSWORD_LEN;) {
		uint8_t b;
		rand_bytes(&b, 1);
		if (b < 4 * SET)
			out[i++] = set[b % SET];
	}
	out[REALM_PASSWORD_LEN] = 0;
}

/* One of the realm's own: nobody's, and needed. */
static bool is_own(const struct realm *r, const char *name)
{
	char afs[80];
	snprintf(afs, sizeof(afs), "afs/%s", r->config.cell);
	return strncmp(name, "krbtgt/", 7) == 0 || strncmp(name, "K/", 2) == 0 ||
	       strncmp(name, "kadmin/", 7) == 0 || strncmp(name, "afs-rxgk/", 9) == 0 || strcmp(name, afs) == 0 ||
	       strcmp(name, "afs") == 0;
}

static afs_err refuse_own(const struct realm *r, const char *who, struct buf *why)
{
	if (!is_own(r, who))
		return AFS_OK;
	realm_why(why, "%s belongs to the realm itself and is left alone", who);
	return AFS_EPERM;
}

enum change { ADD, PASSWORD };

static afs_err change_locked(
	struct realm *r, enum change change, const char *who, char *password, struct buf *why)
{
	krb5_principal p;
	TRY(refuse_own(r, who, why));
	TRY(realm_principal(r, who, &p, why));
	kadm5_principal_ent_rec e = {.principal = p, .attributes = user_attributes};
	long code = change == ADD ? kadm5_create_principal(r->kadm, &e,
					    KADM5_PRINCIPAL | KADM5_ATTRIBUTES, password)
				  : kadm5_chpass_principal(r->kadm, p, password);
	krb5_free_principal(r->ctx, p);
	return code ? realm_fail(r, code, why, who) : AFS_OK;
}

static afs_err change_user(struct realm *r, enum change change, const char *who,
	const char *password, char *random_out, struct buf *why)
{
	char made[REALM_PASSWORD_LEN + 1] = "";
	if (!password)
		random_password(made);
	else if (!password[0]) {
		realm_why(why, "%s: the password is empty", who);
		return AFS_EINVAL;
	}
	mtx_lock(&r->lock);
	afs_err err =
		change_locked(r, change, who, password ? (char *)(uintptr_t)password : made, why);
	mtx_unlock(&r->lock);
	if (!err && !password)
		memcpy(random_out, made, sizeof(made));
	explicit_bzero(made, sizeof(made));
	return err;
}

afs_err realm_user_add(
	struct realm *r, const char *who, const char *password, char *random_out, struct buf *why)
{
	return change_user(r, ADD, who, password, random_out, why);
}

afs_err realm_user_password(
	struct realm *r, const char *who, const char *password, char *random_out, struct buf *why)
{
	return change_user(r, PASSWORD, who, password, random_out, why);
}

static afs_err disable_locked(struct realm *r, const char *who, bool disabled, struct buf *why)
{
	krb5_principal p;
	kadm5_principal_ent_rec e;
	TRY(refuse_own(r, who, why));
	TRY(realm_principal(r, who, &p, why));
	long code = kadm5_get_principal(r->kadm, p, &e, KADM5_PRINCIPAL_NORMAL_MASK);
	if (!code) {
		krb5_flags now = disabled ? e.attributes | KRB5_KDB_DISALLOW_ALL_TIX : e.attributes & ~KRB5_KDB_DISALLOW_ALL_TIX;
		if (now != e.attributes) {
			e.attributes = now;
			code = kadm5_modify_principal(r->kadm, &e, KADM5_ATTRIBUTES);
		}
		(void)kadm5_free_principal_ent(r->kadm, &e);
	}
	krb5_free_principal(r->ctx, p);
	return code ? realm_fail(r, code, why, who) : AFS_OK;
}

afs_err realm_user_disable(struct realm *r, const char *who, bool disabled, struct buf *why)
{
	mtx_lock(&r->lock);
	afs_err err = disable_locked(r, who, disabled, why);
	mtx_unlock(&r->lock);
	return err;
}

/* --- looking --------------------------------------------------------------------------- */

bool realm_is_password(
	struct realm *r, krb5_principal who, const kadm5_key_data *k, const char *password)
{
	krb5_data text = {
		.length = (unsigned)strlen(password), .data = (char *)(uintptr_t)password};
	krb5_data salt = {};
	krb5_keyblock key = {};
	if (k->salt.type != KRB5_KDB_SALTTYPE_NORMAL || krb5_principal2salt(r->ctx, who, &salt))
		return false;
	bool same = krb5_c_string_to_key(r->ctx, k->key.enctype, &text, &salt, &key) == 0 &&
		    key.length == k->key.length &&
		    memcmp(key.contents, k->key.contents, key.length) == 0;
	krb5_free_data_contents(r->ctx, &salt);
	krb5_free_keyblock_contents(r->ctx, &key);
	return same;
}

static afs_err check_locked(struct realm *r, const char *who, const char *password, struct buf *why)
{
	krb5_principal p;
	kadm5_key_data *keys;
	int n;
	TRY(realm_principal(r, who, &p, why));
	long code = kadm5_get_principal_keys(r->kadm, p, 0, &keys, &n);
	if (code) {
		krb5_free_principal(r->ctx, p);
		return realm_fail(r, code, why, who);
	}
	/* highest kvno first; one key tells */
	afs_err err = n > 0 && realm_is_password(r, p, &keys[0], password) ? AFS_OK : AFS_EBADPASSWORD;
	(void)kadm5_free_kadm5_key_data(r->ctx, n, keys);
	krb5_free_principal(r->ctx, p);
	return err;
}

afs_err realm_user_check(struct realm *r, const char *who, const char *password, struct buf *why)
{
	mtx_lock(&r->lock);
	afs_err err = check_locked(r, who, password, why);
	mtx_unlock(&r->lock);
	return err;
}

static afs_err delete_locked(struct realm *r, const char *who, struct buf *why)
{
	krb5_principal p;
	TRY(refuse_own(r, who, why));
	TRY(realm_principal(r, who, &p, why));
	long code = kadm5_delete_principal(r->kadm, p);
	krb5_free_principal(r->ctx, p);
	return code ? realm_fail(r, code, why, who) : AFS_OK;
}

afs_err realm_user_delete(struct realm *r, const char *who, struct buf *why)
{
	mtx_lock(&r->lock);
	afs_err err = delete_locked(r, who, why);
	mtx_unlock(&r->lock);
	return err;
}

static bool look_locked(struct realm *r, krb5_principal p, struct realm_user *out)
{
	kadm5_principal_ent_rec e;
	if (kadm5_get_principal(r->kadm, p, &e, KADM5_LAST_PWD_CHANGE | KADM5_ATTRIBUTES))
		return false;
	if (out) {
		out->password_changed = SEC((uint32_t)e.last_pwd_change);
		out->disabled = e.attributes & KRB5_KDB_DISALLOW_ALL_TIX;
	}
	(void)kadm5_free_principal_ent(r->kadm, &e);
	return true;
}

afs_err realm_user_find(struct realm *r, const char *who, struct realm_user *out, struct buf *why)
{
	krb5_principal p;
	*out = (struct realm_user){.name = (char *)(uintptr_t)who, .service = is_own(r, who)};
	mtx_lock(&r->lock);
	afs_err err = realm_principal(r, who, &p, why);
	if (err == AFS_OK) {
		if (!look_locked(r, p, out)) {
			realm_why(why, "%s is not in the realm %s", who, r->config.realm);
			err = AFS_ENOENT;
		}
		krb5_free_principal(r->ctx, p);
	}
	mtx_unlock(&r->lock);
	return err;
}

bool realm_user_exists(struct realm *r, const char *who)
{
	krb5_principal p;
	mtx_lock(&r->lock);
	bool found = false;
	if (realm_principal(r, who, &p, NULL) == AFS_OK) {
		found = look_locked(r, p, NULL);
		krb5_free_principal(r->ctx, p);
	}
	mtx_unlock(&r->lock);
	return found;
}

void realm_users_free(struct realm_user *users, size_t n)
{
	for (size_t i = 0; i < n && users; i++)
		mem_free(users[i].name);
	mem_free(users);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct realm_user *)a)->name, ((const struct realm_user *)b)->name);
}

/* `name` is name@REALM as kadm5 prints it. */
static afs_err list_one(struct realm *r, const char *name, struct realm_user *out)
{
	krb5_principal p;
	const char *at = strrchr(name, '@');
	out->name = mem_strndup(name, at ? (size_t)(at - name) : strlen(name));
	if (!out->name)
		return AFS_ENOMEM;
	out->service = is_own(r, out->name);
	if (krb5_parse_name(r->ctx, name, &p) == 0) {
		(void)look_locked(r, p, out); /* gone meanwhile: its name is listed with no date */
		krb5_free_principal(r->ctx, p);
	}
	return AFS_OK;
}

static afs_err list_locked(struct realm *r, struct realm_user **out, size_t *n, struct buf *why)
{
	char **names, all[] = "*";
	int count;
	long code = kadm5_get_principals(r->kadm, all, &names, &count);
	if (code)
		return realm_fail(r, code, why, "listing principals");
	struct realm_user *users = mem_new_array((size_t)MAX(count, 1), struct realm_user);
	afs_err err = users ? AFS_OK : AFS_ENOMEM;
	for (int i = 0; i < count && !err; i++)
		err = list_one(r, names[i], &users[i]);
	(void)kadm5_free_name_list(r->kadm, names, count);
	if (err) {
		realm_users_free(users, users ? (size_t)count : 0);
		return err;
	}
	qsort(users, (size_t)count, sizeof(*users), by_name);
	*out = users;
	*n = (size_t)count;
	return AFS_OK;
}

afs_err realm_users(struct realm *r, struct realm_user **out, size_t *n, struct buf *why)
{
	mtx_lock(&r->lock);
	afs_err err = list_locked(r, out, n, why);
	mtx_unlock(&r->lock);
	return err;
}
