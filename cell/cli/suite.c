/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/cli/suite.h"

#include "cell/adapters.h"
#include "cell/cli/parse.h"
#include "cell/conf/conf.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPENAFS_DIR "/etc/openafs"

DEFINE_CLEANUP_PTR(conf, struct conf, conf_free)

static bool is_dir(const char *path)
{
	struct stat st;
	return path && *path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The user's own copy of the realm's profile, or the one in the state directory. */
static char *krb5_conf(const struct conf *conf)
{
	if (conf->realm.mode != CONF_REALM_EMBEDDED)
		return mem_strdup(conf->realm.krb5_conf);
	char *public = mem_printf("%s/krb5.conf", conf->run);
	if (public && access(public, R_OK) == 0)
		return public;
	mem_free(public);
	return mem_printf("%s/realm/krb5.conf", conf->state);
}

static int open_own(struct cli *c, const struct conf *conf, struct admin_config *ac, struct admin **out, struct buf *why, afs_err *err)
{
	struct rx_addr dbs[ADAPTERS_ADDRS_MAX];
	uint32_t ips[ADAPTERS_ADDRS_MAX];
	size_t n = adapters_database_servers(conf, 0, dbs, ADAPTERS_ADDRS_MAX);
	for (size_t i = 0; i < n; i++)
		ips[i] = dbs[i].ip;
	CLEANUP(str) char *keytab = adapters_keytab(conf);
	CLEANUP(str) char *krb5 = krb5_conf(conf);
	if (!keytab || !krb5)
		return cli_fail(c, "out of memory");
	struct admin_own own = {.cell = conf->cell, .realm = conf->realm.name, .ips = ips, .ip_count = n,
		.port = {[ADMIN_VL] = conf->roles.vlserver.port, [ADMIN_PT] = conf->roles.ptserver.port,
			[ADMIN_VOL] = conf->roles.volserver.port, [ADMIN_BOS] = conf->roles.bosserver.port},
		.tools_port = conf->roles.client.enabled ? (uint16_t)conf->client.tools_port : 0,
		.keytab = keytab, .krb5_conf = krb5};
	ac->own = &own;
	ac->class = (enum admin_class)conf->client.security_class;
	*err = admin_open(ac, out, why);
	ac->own = NULL;
	return CLI_OK;
}

/* Opens the cell that -config, the environment and the files of this machine name; `ac` says who asks. */
static int find_cell(struct cli *c, struct admin_config *ac, struct admin **out, struct buf *why)
{
	const bool call = cli_calling(c) != NULL; /* a server's own environment is not its callers' */
	const char *env = call ? NULL : getenv("AFSCONF"), *ours = call ? NULL : getenv("AFSCELL_CONFIG");
	bool stock = false;
	ac->openafs = OPENAFS_DIR;
	if (!call && is_dir(c->config)) {
		ac->openafs = c->config;
		stock = true;
	} else if (is_dir(env)) {
		ac->openafs = env;
		stock = !c->config && !(ours && *ours);
	}
	const char *path = stock ? NULL : cli_config_path(c);
	CLEANUP(conf) struct conf *conf = NULL;
	/* One that was only found, and that this user may not read, is not his. */
	if (path && (c->config || access(path, R_OK) == 0)) {
		int status = cli_load_conf(c, &conf);
		if (status != CLI_OK)
			return status;
	}
	afs_err err = AFS_OK;
	int status = CLI_OK;
	if (conf)
		status = open_own(c, conf, ac, out, why, &err);
	else
		err = admin_open(ac, out, why);
	if (status == CLI_OK && err != AFS_OK) {
		if (!why->len)
			buf_puts(why, afs_err_text(err));
		status = CLI_FAILED;
	}
	return status;
}

static int open_cell(struct cli *c, struct admin_config *ac, struct admin **out)
{
	CLEANUP(buf) struct buf why = {};
	int status = find_cell(c, ac, out, &why);
	return status != CLI_OK && why.len ? cli_fail(c, "%s", why.data) : status;
}

int suite_open(struct cli *c, bool names, struct admin **out)
{
	*out = NULL;
	bool local = cli_has(c, "localauth"), none = cli_has(c, "noauth");
	const struct cli_call *call = cli_calling(c);
	if (local && none)
		return cli_misuse(c, "-localauth and -noauth exclude each other");
	struct admin_config ac = {.cell = cli_value(c, "cell"), .names = names,
		.auth = local ? ADMIN_LOCALAUTH : none ? ADMIN_NOAUTH : ADMIN_TOKEN};
	if (call) {
		if (local && !call->owner)
			return cli_fail(c, "only an administrator of the cell may ask as the cell itself");
		ac.auth = local ? ADMIN_LOCALAUTH : none || !call->token ? ADMIN_NOAUTH : ADMIN_GIVEN;
		ac.token = call->token;
	}
	int status = open_cell(c, &ac, out);
	const char *who;
	if (status == CLI_OK && !none && !call && !admin_authenticated(*out, &who))
		cli_warn(c, "running unauthenticated: %s", who);
	return status;
}

int suite_open_as(struct cli *c, const struct keys_token *token, struct admin **out)
{
	struct admin_config ac = {.cell = token->cell, .auth = ADMIN_GIVEN, .token = token};
	*out = NULL;
	return open_cell(c, &ac, out);
}

int suite_find_cell(struct cli *c, const char *cell, struct admin **out, struct buf *why)
{
	struct admin_config ac = {.cell = cell, .auth = ADMIN_NOAUTH};
	*out = NULL;
	return find_cell(c, &ac, out, why);
}

int suite_open_cell(struct cli *c, const char *cell, struct admin **out)
{
	struct admin_config ac = {.cell = cell, .auth = ADMIN_NOAUTH};
	*out = NULL;
	return open_cell(c, &ac, out);
}

int suite_fail(struct cli *c, struct admin *a, afs_err err, const char *fmt, ...)
{
	va_list ap;
	char text[512];
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return cli_fail(c, "%s: %s", text, admin_why(a, err));
}

const char *suite_time(char *out, int64_t sec)
{
	time_t t = (time_t)sec;
	struct tm tm;
	if (!localtime_r(&t, &tm) || !strftime(out, 32, "%a %b %e %H:%M:%S %Y", &tm))
		snprintf(out, 32, "%lld", (long long)sec);
	return out;
}

int suite_words(char *line, char **out, int cap)
{
	int n = 0;
	for (char *p = line;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (!*p)
			return n;
		if (n == cap)
			return -1;
		char *to = out[n++] = p, quote = '\0';
		for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
			if (quote ? *p == quote : *p == '"' || *p == '\'')
				quote = quote ? '\0' : *p;
			else
				*to++ = *p;
		}
		if (quote)
			return -1;
		bool end = !*p;
		*to = '\0';
		if (end)
			return n;
		p++;
	}
}
