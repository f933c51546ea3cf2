/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Trust between this realm and another one.
 *
 * A user of OTHER comes here with a ticket that OTHER's KDC seals for krbtgt/THIS@OTHER; both realms have that
 * principal with the same key.  The key comes from a password that the two administrators share: it is the
 * only thing that crosses between realms, so it must be long.  Salt and enctype are fixed by the name of the
 * principal and by us, so that both ends make the same bytes with the same kvno. */
#include "cell/realm/db.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { TRUST_PASSWORD_MIN = 16, TRUST_NAME_MAX = 63 };

static krb5_key_salt_tuple keysalt[] = {
	{ENCTYPE_AES256_CTS_HMAC_SHA1_96, KRB5_KDB_SALTTYPE_NORMAL}};

static afs_err judge(const struct realm *r, const char *other, struct buf *why)
{
	size_t n = strlen(other);
	bool ok = n >= 1 && n <= TRUST_NAME_MAX && isalnum((unsigned char)other[0]);
	for (size_t i = 0; i < n && ok; i++)
		ok = isupper((unsigned char)other[i]) || isdigit((unsigned char)other[i]) || strchr(".-_", other[i]);
	if (!ok) {
		realm_why(why, "\"%s\" is no name of a realm: capitals, digits, dots, as in EXAMPLE.ORG", other);
		return AFS_EBADNAME;
	}
	if (strcmp(other, r->config.realm) == 0) {
		realm_why(why, "%s is this realm itself", other);
		return AFS_EINVAL;
	}
	return AFS_OK;
}

/* krbtgt/TO@FROM, which lives in this realm's database whichever of the two it is. */
static afs_err tgt_name(struct realm *r, const char *to, const char *from, krb5_principal *out, struct buf *why)
{
	krb5_error_code code = krb5_build_principal(
		r->ctx, out, (unsigned)strlen(from), from, KRB5_TGS_NAME, to, (char *)NULL);
	return code ? realm_fail(r, code, why, "name") : AFS_OK;
}

static afs_err drop(struct realm *r, const char *to, const char *from, struct buf *why)
{
	krb5_principal p;
	TRY(tgt_name(r, to, from, &p, why));
	long code = kadm5_delete_principal(r->kadm, p);
	krb5_free_principal(r->ctx, p);
	if (code == KADM5_UNK_PRINC)
		return AFS_ENOENT;
	return code ? realm_fail(r, code, why, "trust") : AFS_OK;
}

/* Is the principal there, with the key of this password? */
static bool is_made(struct realm *r, const char *to, const char *from, const char *password)
{
	krb5_principal p;
	kadm5_key_data *keys;
	int n;
	if (tgt_name(r, to, from, &p, NULL) != AFS_OK)
		return false;
	bool is = false;
	if (kadm5_get_principal_keys(r->kadm, p, 0, &keys, &n) == 0) {
		is = n == 1 && realm_is_password(r, p, &keys[0], password);
		(void)kadm5_free_kadm5_key_data(r->ctx, n, keys);
	}
	krb5_free_principal(r->ctx, p);
	return is;
}

static afs_err make(struct realm *r, const char *to, const char *from, const char *password, struct buf *why)
{
	krb5_principal p;
	afs_err err = drop(r, to, from, why);
	if (err != AFS_OK && err != AFS_ENOENT)
		return err;
	TRY(tgt_name(r, to, from, &p, why));
	kadm5_principal_ent_rec e = {.principal = p, .attributes = KRB5_KDB_REQUIRES_PRE_AUTH};
	long code = kadm5_create_principal_3(r->kadm, &e, KADM5_PRINCIPAL | KADM5_ATTRIBUTES, 1, keysalt,
		(char *)(uintptr_t)password);
	krb5_free_principal(r->ctx, p);
	return code ? realm_fail(r, code, why, "trust") : AFS_OK;
}

static afs_err trust_locked(struct realm *r, const char *other, const char *password, bool *changed, struct buf *why)
{
	const char *own = r->config.realm;
	*changed = !is_made(r, own, other, password) || !is_made(r, other, own, password);
	if (!*changed)
		return AFS_OK;
	TRY(make(r, own, other, password, why));
	return make(r, other, own, password, why);
}

afs_err realm_trust(struct realm *r, const char *other, const char *password, bool *changed, struct buf *why)
{
	TRY(judge(r, other, why));
	if (strlen(password) < TRUST_PASSWORD_MIN) {
		realm_why(why, "the password of a trust is as good as every password of both realms: at least %d characters",
			TRUST_PASSWORD_MIN);
		return AFS_EINVAL;
	}
	mtx_lock(&r->lock);
	afs_err err = trust_locked(r, other, password, changed, why);
	mtx_unlock(&r->lock);
	return err;
}

afs_err realm_untrust(struct realm *r, const char *other, struct buf *why)
{
	TRY(judge(r, other, why));
	mtx_lock(&r->lock);
	afs_err in = drop(r, r->config.realm, other, why);
	afs_err out = drop(r, other, r->config.realm, why);
	mtx_unlock(&r->lock);
	return in != AFS_OK && in != AFS_ENOENT ? in : out != AFS_OK && out != AFS_ENOENT ? out : in == AFS_OK || out == AFS_OK ? AFS_OK : AFS_ENOENT;
}

static bool is_kdc(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") == strlen(s);
}

afs_err realm_others(struct realm *r, const struct realm_other *others, size_t n, struct buf *why)
{
	CLEANUP(buf) struct buf text = {};
	for (size_t i = 0; i < n; i++) {
		TRY(judge(r, others[i].name, why));
		if (!is_kdc(others[i].kdc)) {
			realm_why(why, "\"%s\" is no host of a key server: HOST or HOST:PORT", others[i].kdc);
			return AFS_EINVAL;
		}
		if (*others[i].kdc)
			buf_printf(&text, "\t%s = {\n\t\tkdc = %s\n\t}\n", others[i].name, others[i].kdc);
	}
	if (text.err)
		return text.err;
	char *lines = text.len ? mem_strdup(text.data) : NULL;
	if (text.len && !lines)
		return AFS_ENOMEM;
	mtx_lock(&r->lock);
	mem_free(r->others);
	r->others = lines;
	afs_err err = realm_conf_write(r, why);
	mtx_unlock(&r->lock);
	return err;
}

afs_err realm_trusted(struct realm *r, char ***out, size_t *n, struct buf *why)
{
	/* The half of the pair that has this realm's name: krbtgt/OTHER@THIS. */
	char **names, pattern[] = "krbtgt/*";
	int count;
	mtx_lock(&r->lock);
	long code = kadm5_get_principals(r->kadm, pattern, &names, &count);
	char **list = code ? NULL : mem_new_array((size_t)MAX(count, 1), char *);
	size_t k = 0;
	afs_err err = code ? realm_fail(r, code, why, "listing trusts") : list ? AFS_OK : AFS_ENOMEM;
	for (int i = 0; i < count && !err; i++) {
		const char *other = strchr(names[i], '/'), *at = other ? strchr(other, '@') : NULL;
		if (!at)
			continue;
		other++;
		if (strncmp(other, at + 1, (size_t)(at - other)) == 0 && strlen(at + 1) == (size_t)(at - other))
			continue; /* the realm's own */
		if (strcmp(at + 1, r->config.realm) != 0)
			continue;
		list[k] = mem_strndup(other, (size_t)(at - other));
		if (!list[k++])
			err = AFS_ENOMEM;
	}
	if (!code)
		(void)kadm5_free_name_list(r->kadm, names, count);
	mtx_unlock(&r->lock);
	if (err) {
		for (size_t i = 0; i < k; i++)
			mem_free(list[i]);
		mem_free(list);
		return err;
	}
	*out = list;
	*n = k;
	return AFS_OK;
}
