/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The embedded realm towards other realms: what is trusted, and the profile that lets users find them. */
#include "cell/cell_parts.h"

#include "cell/base/log.h"
#include "cell/secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

afs_err cell_publish_krb5_conf(struct cell *c, struct buf *why)
{
	CLEANUP(str) char *to = mem_printf("%s/krb5.conf", c->conf->run);
	CLEANUP(str) char *tmp = mem_printf("%s/krb5.conf.new", c->conf->run);
	if (!to || !tmp)
		return AFS_ENOMEM;
	CLEANUP(fd) int in = open(realm_krb5_conf(c->realm), O_RDONLY | O_CLOEXEC);
	CLEANUP(fd) int out = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	char some[8192];
	ssize_t n = in < 0 || out < 0 ? -1 : read(in, some, sizeof(some));
	if (n < 0 || n == (ssize_t)sizeof(some) || write(out, some, (size_t)n) != n || fchmod(out, 0644) != 0 || rename(tmp, to) != 0) {
		int eno = errno;
		buf_printf(why, "%s cannot be written: %s", to, strerror(eno));
		return afs_err_from_errno(eno);
	}
	return AFS_OK;
}

static afs_err problem(const struct cell_watch *w, const char *what, afs_err err, const struct buf *why)
{
	w->event(w->ctx, CELL_PROBLEM, what, why->data && why->len ? why->data : afs_err_text(err));
	return err;
}

static void did(struct cell *c, const struct cell_watch *w, const char *realm, const char *call, const char *text)
{
	CLEANUP(str) char *what = mem_printf("realm %s", realm);
	w->event(w->ctx, CELL_DID, what ? what : realm, text);
	audit_local(c->audit, "configuration", call, realm, AFS_OK);
	log_info("cell.reconciled what=\"realm %s\" did=\"%s\"", realm, text);
}

/* Its users may register themselves once there is a group for them. */
static afs_err make_group(struct cell *c, const char *realm, const struct cell_watch *w)
{
	CLEANUP(buf) struct buf why = {};
	CLEANUP(str) char *name = mem_printf("system:authuser@%s", realm);
	int32_t id;
	if (!name)
		return AFS_ENOMEM;
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	afs_err err = self_id_of(c->self, name, &id);
	if (err != AFS_ENOENT)
		return err;
	err = self_group_add(c->self, name, 0, AFS_ADMINISTRATORS, &id);
	if (err != AFS_OK) {
		buf_printf(&why, "group %s cannot be made: %s", name, afs_err_text(err));
		return problem(w, "trusts", err, &why);
	}
	did(c, w, realm, "group.create", "its users may register themselves");
	return AFS_OK;
}

static afs_err one_trust(struct cell *c, const struct conf_trust *t, const struct cell_watch *w)
{
	CLEANUP(buf) struct buf why = {};
	CLEANUP(secret) char *password = NULL;
	const struct conf_user from = {.name = t->name, .password_file = t->password_file, .password_env = (char[]){""}};
	bool changed = false;
	afs_err err = secret_get(&from, &password, &why);
	if (err == AFS_OK)
		err = realm_trust(c->realm, t->name, password, &changed, &why);
	if (err != AFS_OK)
		return problem(w, "trusts", err, &why);
	if (changed)
		did(c, w, t->name, "realm.trust", "trusted");
	return c->self ? make_group(c, t->name, w) : AFS_OK;
}

static bool is_named(const struct conf *conf, const char *realm)
{
	for (size_t i = 0; i < conf->trust_count; i++)
		if (strcmp(conf->trusts[i].name, realm) == 0)
			return true;
	return false;
}

afs_err cell_make_trusts(struct cell *c, const struct conf *conf, const struct cell_watch *w)
{
	CLEANUP(buf) struct buf why = {};
	struct realm_other *others = mem_new_array(conf->trust_count + 1, struct realm_other);
	char **now = NULL;
	size_t n = 0;
	if (!others)
		return AFS_ENOMEM;
	for (size_t i = 0; i < conf->trust_count; i++)
		others[i] = (struct realm_other){conf->trusts[i].name, conf->trusts[i].kdc};
	afs_err err = realm_others(c->realm, others, conf->trust_count, &why);
	mem_free(others);
	if (err == AFS_OK)
		err = cell_publish_krb5_conf(c, &why);
	if (err == AFS_OK)
		err = realm_trusted(c->realm, &now, &n, &why);
	if (err != AFS_OK)
		return problem(w, "trusts", err, &why);
	for (size_t i = 0; i < n; i++) {
		if (err == AFS_OK && !is_named(conf, now[i])) {
			err = realm_untrust(c->realm, now[i], &why);
			if (err == AFS_OK)
				did(c, w, now[i], "realm.untrust", "no longer trusted");
			else
				(void)problem(w, "trusts", err, &why); /* told; given below */
		}
		mem_free(now[i]);
	}
	mem_free(now);
	for (size_t i = 0; err == AFS_OK && i < conf->trust_count; i++)
		err = one_trust(c, &conf->trusts[i], w);
	return err;
}
