/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A person signs in with his Kerberos password; what comes of it is an AFS token, which is read with the cell's
 * key as a server would, so that a false key server proves nothing.  All that he does then is done with
 * that token.  A link, which only the machine's owner can get, signs in as him: no token, but what root may do. */
#include "cell/console.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"
#include "cell/base/text.h"
#include "cell/cell_parts.h"
#include "cell/cli/cli.h"
#include "cell/console_files.h"
#include "webui/web.h"

#include <errno.h>
#include <fcntl.h>
#include <krb5.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct web_identity {
	bool owner; /* of the machine; no token */
	struct keys_token token;
	struct rx_caller caller; /* whom the token proves */
	char name[3 * RX_NAME_MAX];
	uint32_t pag; /* whose files he sees: his own, in the cache manager; 0: none */
};

static void release(void *ctx, struct web_identity *id)
{
	console_files_leave(ctx, id->pag);
	keys_token_fini(&id->token);
	mem_free(id);
}

static struct web_identity *owner(void *ctx)
{
	struct web_identity *id = mem_new(struct web_identity);
	if (id) {
		id->owner = true;
		id->pag = console_files_enter(ctx, NULL, "");
		snprintf(id->name, sizeof(id->name), "the machine's owner");
	}
	return id;
}

/* The ticket in the process's memory goes as soon as the token is made of it. */
static void forget(const char *ccache)
{
	krb5_context k;
	krb5_ccache cc;
	if (krb5_init_context(&k) != 0)
		return;
	if (krb5_cc_resolve(k, ccache, &cc) == 0)
		krb5_cc_destroy(k, cc);
	krb5_free_context(k);
}

static afs_err prove(struct cell *c, struct web_identity *id, struct buf *why)
{
	struct rxkad_ticket t;
	afs_err err = keys_read_ticket(c->keys, id->token.kad.kvno, id->token.kad.ticket, id->token.kad.ticket_len, clk_wall(), &t);
	if (err != AFS_OK) {
		buf_printf(why, "the realm's ticket is not one of this cell: %s", afs_err_text(err));
		return err;
	}
	id->caller = (struct rx_caller){.sec_class = RX_SEC_RXKAD, .level = RX_LEVEL_CRYPT, .authenticated = true, .expires = t.expires};
	memcpy(id->caller.name, t.name, sizeof(t.name));
	memcpy(id->caller.instance, t.instance, sizeof(t.instance));
	memcpy(id->caller.cell, t.cell, sizeof(t.cell));
	explicit_bzero(&t, sizeof(t));
	struct keys_name name;
	adapters_afs_name(c->adapters, &id->caller, &name);
	if (name.localauth || !*name.text) {
		buf_puts(why, "this is no person's principal");
		return AFS_EPERM;
	}
	snprintf(id->name, sizeof(id->name), "%s", name.text);
	return AFS_OK;
}

static afs_err sign_in(void *ctx, const char *user, const char *password, struct web_identity **out, struct buf *why)
{
	struct cell *c = ctx;
	const struct conf *conf = c->conf;
	char ccache[64];
	snprintf(ccache, sizeof(ccache), "MEMORY:console-%016llx", (unsigned long long)rand_u64());
	const char *krb5_conf = c->realm ? realm_krb5_conf(c->realm) : conf->realm.krb5_conf;
	struct keys_login login = {.principal = user, .realm = conf->realm.name, .password = password, .krb5_conf = krb5_conf, .ccache = ccache};
	struct keys_aklog want = {.cell = conf->cell, .realm = conf->realm.name, .krb5_conf = krb5_conf, .ccache = ccache};
	struct web_identity *id = mem_new(struct web_identity);
	if (!id)
		return AFS_ENOMEM;
	afs_err err = keys_login(&login, why);
	if (err == AFS_OK)
		err = keys_aklog(&want, &id->token, why);
	forget(ccache);
	if (err == AFS_OK)
		err = prove(c, id, why);
	if (err != AFS_OK)
		release(c, id);
	else {
		id->pag = console_files_enter(c, &id->token, id->name);
		*out = id;
	}
	return err;
}

static const char *name_of(const struct web_identity *id) { return id->name; }
static bool administrator(void *ctx, const struct web_identity *id)
{
	return id->owner || adapters_superuser(((struct cell *)ctx)->adapters, &id->caller);
}
static int64_t expires(const struct web_identity *id) { return id->owner ? 0 : id->token.kad.expires; }

/* --- what is shown -------------------------------------------------------------------------- */

static const char *const role_names[] = {[CELL_PT] = "ptserver", [CELL_VL] = "vlserver", [CELL_FS] = "fileserver",
	[CELL_VOL] = "volserver", [CELL_CLIENT] = "client", [CELL_BOS] = "bosserver"};

static struct rx_stats rx_of(struct cell *c, enum cell_role role)
{
	struct rx_stats sum = {}, one;
	mtx_lock(&c->parts_lock);
	for (size_t i = 0; i < c->roles[role].port_count; i++) {
		rpc_port_stats(c->roles[role].ports[i], &one);
#define RX_STAT(name, text) sum.name += one.name;
#include "rx/core/stats.def"
#undef RX_STAT
	}
	mtx_unlock(&c->parts_lock);
	return sum;
}

static bool fs_of(struct cell *c, struct fileserver_stats *out)
{
	mtx_lock(&c->fs_lock);
	bool runs = c->fs;
	if (runs)
		fileserver_stats(c->fs, out);
	mtx_unlock(&c->fs_lock);
	return runs;
}

static json_t *status(void *ctx)
{
	struct cell *c = ctx;
	struct fileserver_stats fs;
	json_t *st = cell_status(c), *rx = json_object();
	for (int i = 0; i < CELL_ROLES; i++) {
		struct rx_stats s = rx_of(c, (enum cell_role)i);
		json_t *o = json_object();
#define RX_STAT(name, text) json_object_set_new(o, #name, json_integer((json_int_t)s.name));
#include "rx/core/stats.def"
#undef RX_STAT
		json_object_set_new(rx, role_names[i], o);
	}
	json_object_set_new(st, "rx", rx);
	if (fs_of(c, &fs)) {
		json_t *o = json_object();
#define FS_STAT(name, text) json_object_set_new(o, #name, json_integer((json_int_t)fs.name));
#include "fileserver/fs/stats.def"
#undef FS_STAT
		json_object_set_new(st, "fileserver", o);
	}
	return st;
}

static const char *kind_of(const char *name)
{
	size_t n = strlen(name);
	return n > 4 && (strcmp(name + n - 4, "_now") == 0 || strcmp(name + n - 4, "_max") == 0) ? "gauge" : "counter";
}

static void metrics(void *ctx, struct buf *out)
{
	struct cell *c = ctx;
	struct rx_stats rx[CELL_ROLES];
	struct fileserver_stats fs;
	buf_printf(out, "# HELP afscell_uptime_seconds Time since the cell began to start.\n# TYPE afscell_uptime_seconds gauge\n"
			"afscell_uptime_seconds %lld\n# HELP afscell_role_up Whether a role that is wanted runs.\n# TYPE afscell_role_up gauge\n",
		(long long)((clk_mono() - c->started) / NS_PER_SEC));
	for (int i = 0; i < CELL_ROLES; i++) {
		rx[i] = rx_of(c, (enum cell_role)i);
		mtx_lock(&c->parts_lock);
		bool runs = c->roles[i].port_count;
		mtx_unlock(&c->parts_lock);
		if (runs || cell_role_conf(c->conf, (enum cell_role)i)->enabled)
			buf_printf(out, "afscell_role_up{role=\"%s\"} %d\n", role_names[i], runs);
	}
#define RX_STAT(name, text)                                                                                            \
	buf_puts(out, "# HELP afscell_rx_" #name " " text "\n# TYPE afscell_rx_" #name " untyped\n");                   \
	for (int i = 0; i < CELL_ROLES; i++)                                                                           \
		buf_printf(out, "afscell_rx_" #name "{role=\"%s\"} %llu\n", role_names[i], (unsigned long long)rx[i].name);
#include "rx/core/stats.def"
#undef RX_STAT
	if (fs_of(c, &fs)) {
#define FS_STAT(name, text)                                                                                            \
	buf_printf(out, "# HELP afscell_fs_" #name " " text "\n# TYPE afscell_fs_" #name " %s\nafscell_fs_" #name " %llu\n", kind_of(#name), \
		(unsigned long long)fs.name);
#include "fileserver/fs/stats.def"
#undef FS_STAT
	}
}

static json_t *commands(void *ctx) { return (void)ctx, cli_table_json(false); }

static int run(void *ctx, const char *command, const json_t *args, const struct web_identity *id, json_t **result, char **text)
{
	struct cell *c = ctx;
	struct cli_call call = {.command = command, .args = args, .config = c->conf->file, .token = id->owner ? NULL : &id->token,
		.owner = administrator(ctx, id)};
	int rc = cli_call(&call);
	*result = call.result;
	*text = call.text;
	return rc;
}

static afs_err text_of(void *ctx, enum web_text what, size_t max, struct buf *out)
{
	const struct conf *conf = ((struct cell *)ctx)->conf;
	const char *path = what == WEB_LOG ? conf->log.file : what == WEB_AUDIT ? conf->audit.file : conf->file;
	struct stat st;
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0)
		return afs_err_from_errno(errno);
	off_t from = what != WEB_CONFIG && st.st_size > (off_t)max ? st.st_size - (off_t)max : 0;
	char some[8192];
	ssize_t n;
	while (out->len < max && (n = pread(fd, some, MIN(sizeof(some), max - out->len), from + (off_t)out->len)) > 0)
		buf_put(out, some, (size_t)n);
	const char *nl = from && out->len ? memchr(out->data, '\n', out->len) : NULL;
	if (nl) { /* from the start of a line */
		size_t cut = (size_t)(nl - out->data) + 1;
		memmove(out->data, out->data + cut, out->len - cut);
		out->len -= cut;
	}
	return out->err;
}

static afs_err check_config(void *ctx, const char *text, size_t n, struct buf *problems)
{
	struct conf *conf = NULL;
	afs_err err = conf_parse(text, n, ((struct cell *)ctx)->conf->file, &conf, problems);
	if (err == AFS_OK)
		conf_free(conf);
	return err;
}

static afs_err file_show(void *ctx, const struct web_identity *id, const char *path, size_t from, size_t n, json_t **out, struct buf *why)
{
	return console_file_show(ctx, id->pag, path, from, n, out, why);
}

static afs_err acl_store(void *ctx, const struct web_identity *id, const char *path, const char *was, const json_t *acl, struct buf *why)
{
	return console_acl_store(ctx, id->pag, path, was, acl, why);
}

static afs_err make(void *ctx, const struct web_identity *id, const char *path, const char *name, const char *volume, bool rw, struct buf *why)
{
	return console_make(ctx, id->pag, path, name, volume, rw, why);
}

static void audit(void *ctx, const char *who, const char *what, const char *object, afs_err err)
{
	audit_local(((struct cell *)ctx)->audit, who, what, object, err);
}

/* --- its life ------------------------------------------------------------------------------- */

static afs_err read_pem(const char *path, struct buf *out)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char some[4096];
	ssize_t n;
	if (fd < 0)
		return afs_err_from_errno(errno);
	while (out->len < (64 << 10) && (n = read(fd, some, sizeof(some))) > 0)
		buf_put(out, some, (size_t)n);
	explicit_bzero(some, sizeof(some));
	return out->err;
}

afs_err console_start(struct cell *c, const struct cell_watch *w)
{
	const struct conf *conf = c->conf;
	if (!conf->roles.console.enabled || !c->keys)
		return AFS_OK;
	w->event(w->ctx, CELL_STEP, "console", "");
	static const struct web_ports rows = {.sign_in = sign_in, .owner = owner, .release = release, .name = name_of,
		.administrator = administrator, .expires = expires, .status = status, .metrics = metrics, .commands = commands, .run = run,
		.text = text_of, .check_config = check_config, .file = file_show, .acl_store = acl_store, .make = make, .audit = audit};
	struct web_ports ports = rows;
	ports.ctx = c;
	CLEANUP(buf) struct buf cert = {}, key = {}, why = {};
	struct web_config wc = {.port = conf->roles.console.port, .host = conf->console.host, .behind_proxy = conf->console.behind_proxy};
	if (!text_ipv4(conf->console.address, &wc.ip))
		return AFS_ECONFIG; /* the loader judged it */
	afs_err err = AFS_OK;
	if (*conf->console.certificate) {
		err = read_pem(conf->console.certificate, &cert);
		if (err == AFS_OK)
			err = read_pem(conf->console.key, &key);
		if (err != AFS_OK)
			buf_printf(&why, "%s or %s cannot be read: %s", conf->console.certificate, conf->console.key, afs_err_text(err));
		wc.cert = cert.data;
		wc.key = key.data;
	}
	if (err == AFS_OK) {
		err = web_open(&wc, &ports, &c->web);
		if (err != AFS_OK)
			err == AFS_ECONFIG ? buf_printf(&why, "%s and %s are no certificate and key, in PEM, that fit each other; correct "
							      "console.certificate and console.key", conf->console.certificate, conf->console.key)
					   : buf_printf(&why, "TCP port %u on %s: %s", wc.port, conf->console.address, afs_err_text(err));
	}
	if (key.data)
		explicit_bzero(key.data, key.len);
	if (err != AFS_OK) {
		log_warn("cell.start_failed step=console why=\"%s\"", why.data ? why.data : afs_err_text(err));
		w->event(w->ctx, CELL_PROBLEM, "console", why.data ? why.data : afs_err_text(err));
		return err;
	}
	CLEANUP(str) char *link = web_link(c->web);
	w->event(w->ctx, CELL_STEP_OK, "console", link ? link : web_url(c->web));
	return AFS_OK;
}

void console_stop(struct cell *c)
{
	web_close(c->web);
	c->web = NULL;
}

static afs_err verb_link(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	if (!c->web)
		return ctl_refuse(rq, AFS_ENOENT, "this cell runs no console; roles.console.enabled: true switches it on");
	char *link = web_link(c->web);
	json_object_set_new(out, "link", json_string(link));
	mem_free(link);
	audit_local(c->audit, "root", "console.link", web_url(c->web), AFS_OK);
	return AFS_OK;
}

static const struct ctl_verb verbs[] = {{"console.link", CTL_OWNER, verb_link}};
afs_err verbs_add_console(struct ctl_server *ctl, struct cell *c) { return ctl_server_add(ctl, verbs, ARRAY_SIZE(verbs), c); }
