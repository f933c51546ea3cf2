/* SPDX-License-Identifier: BSD-2-Clause
 * Opening and closing: names and paths are judged here, so the rest need not look at them again. */
#include "cell/realm/db.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { PORT = 8088, TICKET_LIFE_S = 25 * 3600, TICKET_LIFE_MAX_S = 30 * 86400 };

/* What is written into the Kerberos configuration must not be able to say more than its value. */
static bool text_ok(const char *s, size_t max)
{
	size_t n = strlen(s);
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f || strchr("{}=#;\"@/\\", s[i]))
			return false;
	return n > 0 && n <= max;
}

static bool path_ok(const char *s)
{
	for (const char *c = s; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			return false;
	return s[0] == '/' && strlen(s) < REALM_PATH_MAX - 32;
}

static afs_err judge(const struct realm_config *c, struct buf *why)
{
	struct in_addr four;
	struct in6_addr six;
	if (!text_ok(c->realm, 63) || !text_ok(c->cell, 63)) {
		realm_why(why,
			"realm \"%s\" and cell \"%s\": 1 to 63 letters, digits, dots and dashes",
			c->realm, c->cell);
		return AFS_ECONFIG;
	}
	if (!path_ok(c->dir) || !path_ok(c->keytab) || (c->gk_keytab && !path_ok(c->gk_keytab))) {
		realm_why(why,
			"realm directory \"%s\" and keytab \"%s\" must be absolute paths of less "
			"than %d bytes",
			c->dir, c->keytab, REALM_PATH_MAX - 32);
		return AFS_ECONFIG;
	}
	if (c->listen && inet_pton(AF_INET, c->listen, &four) != 1 &&
		inet_pton(AF_INET6, c->listen, &six) != 1) {
		realm_why(why, "\"%s\" is no numeric address for the KDC to listen on", c->listen);
		return AFS_ECONFIG;
	}
	if (c->ticket_life_s > TICKET_LIFE_MAX_S) {
		realm_why(why,
			"tickets of %u s: AFS servers refuse those valid for more than 30 days",
			c->ticket_life_s);
		return AFS_ECONFIG;
	}
	return AFS_OK;
}

static afs_err take_config(struct realm *r, const struct realm_config *c)
{
	r->config = (struct realm_config){
		.dir = mem_strdup(c->dir),
		.realm = mem_strdup(c->realm),
		.cell = mem_strdup(c->cell),
		.listen = mem_strdup(c->listen ? c->listen : "127.0.0.1"),
		.keytab = mem_strdup(c->keytab),
		.gk_keytab = mem_strdup(c->gk_keytab),
		.port = c->port ? c->port : PORT,
		.ticket_life_s = c->ticket_life_s ? c->ticket_life_s : TICKET_LIFE_S,
	};
	r->krb5_conf = mem_printf("%s/krb5.conf", c->dir);
	r->kdc_conf = mem_printf("%s/kdc.conf", c->dir);
	r->stash = mem_printf("%s/stash", c->dir);
	r->database = mem_printf("%s/principal", c->dir);
	bool all = r->config.dir && r->config.realm && r->config.cell && r->config.listen &&
		   r->config.keytab && (r->config.gk_keytab || !c->gk_keytab) && r->krb5_conf && r->kdc_conf && r->stash && r->database;
	return all ? AFS_OK : AFS_ENOMEM;
}

afs_err realm_open(
	const struct realm_config *config, struct realm **out, bool *made, struct buf *why)
{
	TRY(judge(config, why));
	CLEANUP(realm) struct realm *r = mem_new(struct realm);
	if (!r)
		return AFS_ENOMEM;
	mtx_init(&r->lock, RANK_DB);
	TRY(take_config(r, config));
	if (mkdir(r->config.dir, 0700) && errno != EEXIST) {
		realm_why(why, "%s: %s", r->config.dir, strerror(errno));
		return afs_err_from_errno(errno);
	}
	bool is_new = false;
	TRY(realm_db_open(r, &is_new, why));
	TRY(realm_service_ensure(r, why));
	*made = is_new;
	*out = TAKE(r);
	return AFS_OK;
}

void realm_close(struct realm *r)
{
	if (!r)
		return;
	realm_db_close(r);
	mtx_fini(&r->lock);
	mem_free(r->config.dir);
	mem_free(r->config.realm);
	mem_free(r->config.cell);
	mem_free(r->config.listen);
	mem_free(r->config.keytab);
	mem_free(r->others);
	mem_free(r->config.gk_keytab);
	mem_free(r->krb5_conf);
	mem_free(r->kdc_conf);
	mem_free(r->stash);
	mem_free(r->database);
	mem_free(r);
}

const char *realm_krb5_conf(const struct realm *r) { return r->krb5_conf; }
const char *realm_kdc_conf(const struct realm *r) { return r->kdc_conf; }
const char *realm_name(const struct realm *r) { return r->config.realm; }
