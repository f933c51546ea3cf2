/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The keys of the cell's service principal, and reading tickets with them.
 *
 * The lock covers the set and libkrb5's context, which is not for two threads; a decryption takes some
 * 10 us, once per connection. */
#include "cell/keys/keys.h"

#include "cell/base/log.h"
#include "cell/keys/set.h"
#include "cell/keys/ticket.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <profile.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { USAGE_TICKET = 2 }; /* RFC 4120 §7.5.1 */

void keys_why(struct buf *why, const char *fmt, ...)
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

void keys_why_krb5(struct buf *why, krb5_context ctx, krb5_error_code code, const char *fmt, ...)
{
	if (!why)
		return;
	va_list ap;
	va_start(ap, fmt);
	char text[1024];
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	const char *msg = krb5_get_error_message(ctx, code);
	buf_puts(why, text);
	buf_puts(why, ": ");
	buf_puts(why, msg);
	krb5_free_error_message(ctx, msg);
}

krb5_error_code keys_krb5_bare(krb5_context *out)
{
	profile_t p;
	krb5_error_code code = (krb5_error_code)profile_init(NULL, &p);
	if (code)
		return code;
	code = krb5_init_context_profile(p, KRB5_INIT_CONTEXT_SECURE, out);
	profile_release(p);
	return code;
}

krb5_error_code keys_krb5_profile(const char *path, krb5_context *out)
{
	if (!path)
		return krb5_init_context(out);
	profile_t p;
	const_profile_filespec_t files[] = {path, NULL};
	krb5_error_code code = (krb5_error_code)profile_init(files, &p);
	if (code)
		return code;
	code = krb5_init_context_profile(p, 0, out);
	profile_release(p);
	return code;
}

/* --- the set --------------------------------------------------------------------------- */

static bool enctype_ok(const struct keys *k, int32_t enctype)
{
	switch (enctype) {
	case ENCTYPE_AES128_CTS_HMAC_SHA1_96:
	case ENCTYPE_AES256_CTS_HMAC_SHA1_96:
	case ENCTYPE_AES128_CTS_HMAC_SHA256_128:
	case ENCTYPE_AES256_CTS_HMAC_SHA384_192:
	case ENCTYPE_CAMELLIA128_CTS_CMAC:
	case ENCTYPE_CAMELLIA256_CTS_CMAC:
		return true;
	case 1: /* single DES: for Kerberos 4 style tickets */
	case 2:
	case 3:
	case ENCTYPE_DES3_CBC_SHA1:
	case ENCTYPE_ARCFOUR_HMAC:
		return k->weak_crypto;
	default:
		return false;
	}
}

/* The three DES enctypes name one key. */
static struct key *set_find(struct keyset *set, int32_t kvno, int32_t enctype)
{
	for (size_t i = 0; i < set->n; i++) {
		struct key *k = &set->key[i];
		bool same =
			k->enctype == enctype || (key_is_des(k->enctype) && key_is_des(enctype));
		if (k->kvno == kvno && same)
			return k;
	}
	return NULL;
}

static afs_err set_add(struct keys *k, struct keyset *set, int32_t kvno, int32_t enctype,
	const uint8_t *bytes, size_t len)
{
	size_t want_bytes, want = 8;
	if (!enctype_ok(k, enctype))
		return AFS_EWEAKKEY;
	if (!key_is_des(enctype) && krb5_c_keylengths(k->krb5, enctype, &want_bytes, &want))
		return AFS_EWEAKKEY;
	if (len != want || len > KEY_BYTES_MAX)
		return AFS_EINVAL;
	struct key *known = set_find(set, kvno, enctype);
	if (known)
		return known->len == len && memcmp(known->bytes, bytes, len) == 0 ? AFS_OK
										  : AFS_EEXIST;
	if (set->n == KEYS_MAX)
		return AFS_ETOOMANY;
	size_t at = 0;
	while (at < set->n && set->key[at].kvno >= kvno)
		at++;
	memmove(&set->key[at + 1], &set->key[at], (set->n - at) * sizeof(set->key[0]));
	set->key[at] = (struct key){.kvno = kvno, .enctype = enctype, .len = (uint32_t)len};
	memcpy(set->key[at].bytes, bytes, len);
	set->n++;
	return AFS_OK;
}

afs_err keys_add(struct keys *k, int32_t kvno, int32_t enctype, const uint8_t *key, size_t len)
{
	mtx_lock(&k->lock);
	afs_err err = set_add(k, &k->set, kvno, enctype, key, len);
	mtx_unlock(&k->lock);
	return err;
}

/* Of a hash, from which no key that is random can be found. */
static uint32_t checksum(const struct key *key)
{
	static const char label[] = "afscell key checksum";
	uint8_t text[sizeof(label) + KEY_BYTES_MAX], hash[EVP_MAX_MD_SIZE] = {};
	memcpy(text, label, sizeof(label));
	memcpy(text + sizeof(label), key->bytes, key->len);
	if (!EVP_Digest(text, sizeof(label) + key->len, hash, NULL, EVP_sha256(), NULL))
		return 0;
	explicit_bzero(text, sizeof(text));
	return (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
}

size_t keys_list(struct keys *k, struct keys_entry *out, size_t cap)
{
	mtx_lock(&k->lock);
	size_t n = k->set.n;
	for (size_t i = 0; i < n && i < cap; i++)
		out[i] = (struct keys_entry){k->set.key[i].kvno, k->set.key[i].enctype, checksum(&k->set.key[i])};
	mtx_unlock(&k->lock);
	return n;
}

/* --- the keytab --------------------------------------------------------------------------- */

static bool is_data(const krb5_data *d, const char *s)
{
	return d->length == strlen(s) && memcmp(d->data, s, d->length) == 0;
}

static bool is_service(const struct keys *k, krb5_const_principal p)
{
	if (p->length < 1 || p->length > 2 || !is_data(&p->data[0], "afs"))
		return false;
	return p->length == 1 || is_data(&p->data[1], k->cell);
}

/* What a keytab held, for messages. */
struct keytab_seen {
	unsigned entries, ours, weak;
	int32_t weak_enctype;
};

static afs_err keytab_read_entry(struct keys *k, struct keyset *set, const krb5_keytab_entry *e,
	struct keytab_seen *seen, struct buf *why)
{
	seen->entries++;
	if (!is_service(k, e->principal))
		return AFS_OK;
	seen->ours++;
	afs_err err =
		set_add(k, set, (int32_t)e->vno, e->key.enctype, e->key.contents, e->key.length);
	if (err == AFS_EWEAKKEY) {
		seen->weak++;
		seen->weak_enctype = e->key.enctype;
		return AFS_OK;
	}
	if (err)
		keys_why(why, "%s: key of version %u and enctype %d: %s", k->keytab,
			(unsigned)e->vno, e->key.enctype,
			err == AFS_EEXIST ? "two different keys of that number"
					  : afs_err_text(err));
	return err == AFS_EEXIST || err == AFS_EINVAL ? AFS_ECORRUPT : err;
}

/* libkrb5 tells of damage in a few ways; what cannot be opened was found before. */
static afs_err keytab_read(struct keys *k, struct keyset *set, struct buf *why)
{
	struct stat st;
	if (stat(k->keytab, &st)) {
		int eno = errno;
		keys_why(why, "%s: %s%s", k->keytab, strerror(eno),
			eno == ENOENT ? "; put the keytab of afs's service principal there" : "");
		return afs_err_from_errno(eno);
	}
	CLEANUP(str) char *name = mem_printf("FILE:%s", k->keytab);
	krb5_keytab kt;
	krb5_kt_cursor cursor;
	if (!name)
		return AFS_ENOMEM;
	krb5_error_code code = krb5_kt_resolve(k->krb5, name, &kt);
	if (!code) {
		code = krb5_kt_start_seq_get(k->krb5, kt, &cursor);
		if (code)
			krb5_kt_close(k->krb5, kt);
	}
	if (code) {
		keys_why_krb5(why, k->krb5, code, "%s", k->keytab);
		return code == EACCES ? AFS_EACCESS : code == ENOMEM ? AFS_ENOMEM : AFS_ECORRUPT;
	}
	struct keytab_seen seen = {};
	afs_err err = AFS_OK;
	krb5_keytab_entry e;
	while (!err && !(code = krb5_kt_next_entry(k->krb5, kt, &e, &cursor))) {
		err = keytab_read_entry(k, set, &e, &seen, why);
		krb5_free_keytab_entry_contents(k->krb5, &e);
	}
	krb5_kt_end_seq_get(k->krb5, kt, &cursor);
	krb5_kt_close(k->krb5, kt);
	if (err)
		return err;
	if (code != KRB5_KT_END) {
		keys_why_krb5(why, k->krb5, code, "%s", k->keytab);
		return AFS_ECORRUPT;
	}
	if (!seen.ours) {
		keys_why(why, "%s holds no key of afs/%s or afs (%u of other principals)",
			k->keytab, k->cell, seen.entries);
		return AFS_ENOENT;
	}
	if (!set->n) {
		keys_why(why,
			"%s: the keys of afs/%s are all of enctypes that are not accepted (one is "
			"enctype %d); "
			"make a key of aes256-cts in the realm and extract it again",
			k->keytab, k->cell, seen.weak_enctype);
		return AFS_EWEAKKEY;
	}
	if (seen.weak)
		log_warn("keys.weak.ignored keytab=%s entries=%u enctype=%d", k->keytab, seen.weak,
			seen.weak_enctype);
	return AFS_OK;
}

afs_err keys_reload(struct keys *k, struct buf *why)
{
	if (!k->keytab)
		return AFS_OK;
	CLEANUP(heap) struct keyset *fresh = mem_new(struct keyset);
	if (!fresh)
		return AFS_ENOMEM;
	mtx_lock(&k->lock);
	afs_err err = keytab_read(k, fresh, why);
	if (!err)
		k->set = *fresh;
	mtx_unlock(&k->lock);
	explicit_bzero(fresh, sizeof(*fresh));
	return err;
}

afs_err keys_open(const struct keys_config *config, struct keys **out, struct buf *why)
{
	CLEANUP(keys) struct keys *k = mem_new(struct keys);
	if (!k)
		return AFS_ENOMEM;
	mtx_init(&k->lock, RANK_LEAF);
	k->weak_crypto = config->weak_crypto;
	k->allow_dotted = config->allow_dotted;
	k->cell = mem_strdup(config->cell);
	k->keytab = mem_strdup(config->keytab);
	if (!k->cell || (config->keytab && !k->keytab))
		return AFS_ENOMEM;
	for (char *c = k->cell; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (keys_krb5_bare(&k->krb5)) {
		k->krb5 = NULL;
		return AFS_ENOMEM;
	}
	TRY(keys_reload(k, why));
	*out = TAKE(k);
	return AFS_OK;
}

void keys_close(struct keys *k)
{
	if (!k)
		return;
	if (k->krb5)
		krb5_free_context(k->krb5);
	mtx_fini(&k->lock);
	mem_free(k->cell);
	mem_free(k->keytab);
	explicit_bzero(k, sizeof(*k));
	mem_free(k);
}

/* --- tickets ------------------------------------------------------------------------------ */

static afs_err k5_open_locked(struct keys *k, const struct k5_sealed *s, uint8_t *part, size_t *len)
{
	const struct key *key = set_find(&k->set, s->kvno, s->enctype);
	/* DES keys open Kerberos 4 style tickets only; libkrb5 has no single DES any more */
	if (!key || key_is_des(s->enctype))
		return AFS_EUNKNOWNKEY;
	krb5_keyblock block = {.enctype = key->enctype,
		.length = key->len,
		.contents = (krb5_octet *)(uintptr_t)key->bytes};
	krb5_enc_data in = {.enctype = s->enctype,
		.ciphertext = {
			.length = (unsigned)s->cipher.n, .data = (char *)(uintptr_t)s->cipher.p}};
	krb5_data plain = {.length = (unsigned)s->cipher.n, .data = (char *)part};
	if (krb5_c_decrypt(k->krb5, &block, USAGE_TICKET, NULL, &in, &plain))
		return AFS_EBADTICKET;
	*len = plain.length;
	return AFS_OK;
}

static afs_err read_v5(struct keys *k, int32_t kind, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	struct k5_sealed sealed;
	uint8_t part[TICKET_MAX];
	size_t part_len;
	TRY(k5_sealed_dec(kind, ticket, len, &sealed));
	mtx_lock(&k->lock);
	afs_err err = k5_open_locked(k, &sealed, part, &part_len);
	mtx_unlock(&k->lock);
	if (err)
		return err;
	err = k5_part_dec(part, part_len, now, k->allow_dotted, out);
	explicit_bzero(part, part_len);
	return err;
}

static afs_err read_v4(struct keys *k, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	uint8_t plain[512]; /* more than the fields can be */
	uint8_t key[8];
	mtx_lock(&k->lock);
	const struct key *found = set_find(&k->set, kvno, 1);
	if (found)
		memcpy(key, found->bytes, 8);
	mtx_unlock(&k->lock);
	if (!found)
		return AFS_EUNKNOWNKEY;
	if (len > sizeof(plain) || len % 8)
		return AFS_EBADTICKET;
	memcpy(plain, ticket, len);
	k4_decrypt(key, plain, len);
	afs_err err = k4_dec(plain, len, now, out);
	explicit_bzero(plain, sizeof(plain));
	explicit_bzero(key, sizeof(key));
	return err;
}

afs_err keys_read_ticket(void *keys, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	struct keys *k = keys;
	if (len > TICKET_MAX)
		return AFS_ETICKETLEN;
	if (kvno == TICKET_V5 || kvno == TICKET_V5_PART)
		return read_v5(k, kvno, ticket, len, now, out);
	if (kvno >= 0 && kvno <= 255)
		return read_v4(k, kvno, ticket, len, now, out);
	return AFS_EUNKNOWNKEY;
}
