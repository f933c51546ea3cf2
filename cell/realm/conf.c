/* SPDX-License-Identifier: BSD-2-Clause
 *
 * krb5.conf for the realm's clients and kdc.conf for its KDC.
 *
 * The two together are also the profile with which this process opens the database, so that no
 * environment variable and no file of the system has a say. */
#include "cell/realm/db.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <profile.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* AES with SHA-1 is what every AFS implementation understands; users' keys cost one slow hash each. */
static const char enctypes[] = "aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal";

static afs_err fail(struct buf *why, const char *path, int eno)
{
	realm_why(why, "%s: %s", path, strerror(eno));
	return afs_err_from_errno(eno);
}

static bool is_already(const char *path, const struct buf *text)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(heap) char *old = mem_alloc(text->len + 1, 1);
	if (fd < 0 || !old)
		return false;
	ssize_t n = read(fd, old, text->len + 1);
	return n == (ssize_t)text->len && memcmp(old, text->data, text->len) == 0;
}

static afs_err write_file(const char *path, const struct buf *text, mode_t mode, struct buf *why)
{
	if (text->err)
		return text->err;
	if (is_already(path, text))
		return AFS_OK;
	CLEANUP(str) char *tmp = mem_printf("%s.new", path);
	if (!tmp)
		return AFS_ENOMEM;
	CLEANUP(fd) int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return fail(why, tmp, errno);
	errno = 0;
	if (write(fd, text->data, text->len) != (ssize_t)text->len || fchmod(fd, mode) ||
		rename(tmp, path)) {
		int eno = errno ? errno : ENOSPC;
		unlink(tmp);
		return fail(why, path, eno);
	}
	return AFS_OK;
}

afs_err realm_conf_write(const struct realm *r, struct buf *why)
{
	const struct realm_config *c = &r->config;
	CLEANUP(buf) struct buf client = {}, kdc = {};
	struct in6_addr six;
	bool v6 = inet_pton(AF_INET6, c->listen, &six) == 1;
	const char *open = v6 ? "[" : "", *close = v6 ? "]" : "";
	/* a client on this machine reaches a KDC that listens everywhere at the loopback */
	const char *reach = strcmp(c->listen, "0.0.0.0") == 0 ? "127.0.0.1"
			    : strcmp(c->listen, "::") == 0    ? "::1"
							      : c->listen;

	buf_printf(&client,
		"# Written by afscell; changes are lost.\n"
		"[libdefaults]\n"
		"\tdefault_realm = %s\n"
		"\tdns_lookup_kdc = false\n"
		"\tdns_lookup_realm = false\n"
		"\tdns_canonicalize_hostname = false\n"
		"\trdns = false\n"
		"\tticket_lifetime = %us\n"
		"\n"
		"[realms]\n"
		"\t%s = {\n"
		"\t\tkdc = %s%s%s:%u\n"
		"\t}\n"
		"%s"
		"\n"
		"[domain_realm]\n"
		"\t%s = %s\n"
		"\t.%s = %s\n",
		c->realm, c->ticket_life_s, c->realm, open, reach, close, c->port, r->others ? r->others : "", c->cell,
		c->realm, c->cell, c->realm);
	buf_printf(&kdc,
		"# Written by afscell; changes are lost.\n"
		"[kdcdefaults]\n"
		"\tkdc_listen = %s%s%s:%u\n"
		"\tkdc_tcp_listen = %s%s%s:%u\n"
		"\n"
		"[realms]\n"
		"\t%s = {\n"
		"\t\tdatabase_module = afscell\n"
		"\t\tkey_stash_file = %s\n"
		"\t\tmaster_key_type = aes256-cts-hmac-sha1-96\n"
		"\t\tsupported_enctypes = %s\n"
		"\t\tmax_life = %us\n"
		"\t\tmax_renewable_life = 7d\n"
		"\t}\n"
		"\n"
		"[dbmodules]\n"
		"\tafscell = {\n"
		"\t\tdb_library = db2\n"
		"\t\tdatabase_name = %s\n"
		"\t\tdisable_last_success = true\n"
		"\t\tdisable_lockout = true\n"
		"\t}\n"
		"\n"
		"[logging]\n"
		"\tkdc = STDERR\n",
		open, c->listen, close, c->port, open, c->listen, close, c->port, c->realm,
		r->stash, enctypes, c->ticket_life_s, r->database);
	TRY(write_file(r->krb5_conf, &client, 0644, why));
	return write_file(r->kdc_conf, &kdc, 0600, why);
}

krb5_error_code realm_conf_context(const struct realm *r, krb5_context *out)
{
	profile_t p;
	const_profile_filespec_t files[] = {r->kdc_conf, r->krb5_conf, NULL};
	krb5_error_code code = (krb5_error_code)profile_init(files, &p);
	if (code)
		return code;
	code = krb5_init_context_profile(p, KRB5_INIT_CONTEXT_SECURE | KRB5_INIT_CONTEXT_KDC, out);
	profile_release(p);
	return code;
}
