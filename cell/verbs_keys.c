/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the command line may ask about the cell's key: key.*.
 *
 * A new key gets the next number and is used at once: the KDC seals tickets with it, and the servers here read
 * it before they are told of success.  The one before stays until it is retired, which waits for the last
 * ticket sealed with it to run out.  Key bytes leave this process only into files of mode 0600. */
#include "cell/verbs.h"

#include "cell/cell_parts.h"
#include "cell/openafs.h"

#include <stdio.h>

enum { KEYS_SHOWN_MAX = 64 };

static afs_err refuse(struct ctl_request *rq, afs_err err, const struct buf *why)
{
	return ctl_refuse(rq, err, "%s", why->data && why->len ? why->data : afs_err_text(err));
}

static void trail(struct cell *c, const struct ctl_request *rq, const char *call, const char *object, afs_err err)
{
	char who[32];
	snprintf(who, sizeof(who), "uid %u", (unsigned)rq->uid);
	audit_local(c->audit, who, call, object, err);
}

static const char *enctype_name(int32_t e)
{
	switch (e) {
	case 17: return "aes128-cts-hmac-sha1-96";
	case 18: return "aes256-cts-hmac-sha1-96";
	case 19: return "aes128-cts-hmac-sha256-128";
	case 20: return "aes256-cts-hmac-sha384-192";
	case 25: return "camellia128-cts-cmac";
	case 26: return "camellia256-cts-cmac";
	default: return "other";
	}
}

static afs_err verb_key_list(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	CLEANUP(buf) struct buf why = {};
	struct keys_entry e[KEYS_SHOWN_MAX];
	struct realm_key k = {};
	if (!c->keys)
		return ctl_refuse(rq, AFS_ENOENT, "this machine serves nothing of the cell and has no key of it");
	size_t n = keys_list(c->keys, e, KEYS_SHOWN_MAX);
	json_t *list = json_array();
	for (size_t i = 0; i < n && i < KEYS_SHOWN_MAX; i++)
		json_array_append_new(list, json_pack("{s:i, s:s, s:I}", "kvno", e[i].kvno, "enctype", enctype_name(e[i].enctype), "checksum",
						    (json_int_t)e[i].checksum));
	json_object_set_new(out, "cell", json_string(c->conf->cell));
	json_object_set_new(out, "realm", json_string(c->conf->realm.name));
	json_object_set_new(out, "keytab", json_string(c->keytab));
	json_object_set_new(out, "keys", list);
	if (!c->realm)
		return AFS_OK;
	afs_err err = realm_key_find(c->realm, &k, &why);
	if (err != AFS_OK)
		return refuse(rq, err, &why);
	json_object_set_new(out, "since", json_integer(k.since / NS_PER_SEC));
	json_object_set_new(out, "old_until", k.old_until ? json_integer(k.old_until / NS_PER_SEC) : json_null());
	return AFS_OK;
}

static afs_err need_realm(struct cell *c, struct ctl_request *rq)
{
	if (!c->keys)
		return ctl_refuse(rq, AFS_ENOENT, "this machine serves nothing of the cell and has no key of it");
	return c->realm ? AFS_OK
			: ctl_refuse(rq, AFS_EINVAL,
				  "the realm %s makes the key of afs/%s: put a new one into %s there (kadmin: ktadd), then afscell key reload",
				  c->conf->realm.name, c->conf->cell, c->conf->realm.keytab);
}

static afs_err export_to(struct cell *c, struct ctl_request *rq, json_t *out)
{
	CLEANUP(buf) struct buf why = {};
	const char *dir = ctl_str(rq, "dir");
	if (!dir)
		return AFS_OK;
	if (*dir != '/')
		return ctl_refuse(rq, AFS_EINVAL, "%s: expected a whole path", dir);
	afs_err err = openafs_write(c->conf, dir, &why);
	if (err != AFS_OK)
		return refuse(rq, err, &why);
	json_object_set_new(out, "exported", json_string(dir));
	return AFS_OK;
}

/* The keys are those of the keytab, in this process from now on. */
static afs_err reload(struct cell *c, struct ctl_request *rq, json_t *out)
{
	CLEANUP(buf) struct buf why = {};
	afs_err err = keys_reload(c->keys, &why);
	if (err != AFS_OK)
		return refuse(rq, err, &why);
	TRY(export_to(c, rq, out));
	return verb_key_list(c, rq, out);
}

static afs_err verb_key_rotate(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	CLEANUP(buf) struct buf why = {};
	TRY(need_realm(c, rq));
	mtx_lock(&c->lock);
	afs_err err = realm_rekey(c->realm, &why);
	err = err == AFS_OK ? reload(c, rq, out) : refuse(rq, err, &why);
	mtx_unlock(&c->lock);
	trail(c, rq, "key.rotate", c->conf->cell, err);
	return err;
}

static afs_err verb_key_retire(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	CLEANUP(buf) struct buf why = {};
	TRY(need_realm(c, rq));
	mtx_lock(&c->lock);
	afs_err err = realm_key_retire(c->realm, ctl_bool(rq, "force"), &why);
	err = err == AFS_OK ? reload(c, rq, out)
	      : err == AFS_EBUSY ? ctl_refuse(rq, err, "%s; --force drops it all the same, and their holders need new tickets", why.data ? why.data : "")
				 : refuse(rq, err, &why);
	mtx_unlock(&c->lock);
	trail(c, rq, "key.retire", c->conf->cell, err);
	return err;
}

static afs_err verb_key_reload(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	if (!c->keys)
		return ctl_refuse(rq, AFS_ENOENT, "this machine serves nothing of the cell and has no key of it");
	afs_err err = reload(c, rq, out);
	trail(c, rq, "key.reload", c->conf->cell, err);
	return err;
}

static const struct ctl_verb verbs[] = {
	{"key.list", CTL_OWNER, verb_key_list},
	{"key.rotate", CTL_OWNER, verb_key_rotate},
	{"key.retire", CTL_OWNER, verb_key_retire},
	{"key.reload", CTL_OWNER, verb_key_reload}, /* with "dir": also what is exported */
};

afs_err verbs_add_keys(struct ctl_server *ctl, struct cell *c) { return ctl_server_add(ctl, verbs, ARRAY_SIZE(verbs), c); }
