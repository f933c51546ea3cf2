/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The life of a cell: init, up, down, status, config, check, env. */
#include "cell/cli/cli.h"

#include "cell/base/buf.h"
#include "cell/base/mem.h"
#include "cell/base/text.h"
#include "cell/conf/conf.h"
#include "cell/ctl.h"
#include "cell/daemon.h"
#include "cell/openafs.h"
#include "cell/secret.h"
#include "cell/state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows of commands.def. */
int cli_init(struct cli *c);
int cli_up(struct cli *c);
int cli_down(struct cli *c);
int cli_status(struct cli *c);
int cli_config(struct cli *c);
int cli_check(struct cli *c);
int cli_env(struct cli *c);
int cli_console_link(struct cli *c);

DEFINE_CLEANUP_PTR(conf, struct conf, conf_free)
DEFINE_CLEANUP_PTR(json, json_t, json_decref)

/* --- init ---------------------------------------------------------------------------------- */

int cli_init(struct cli *c)
{
	const char *file = cli_value(c, "output") ? cli_value(c, "output") : "afscell.yaml";
	struct conf_sample with = {cli_value(c, "cell"), cli_value(c, "state"), cli_value(c, "mount"), cli_value(c, "password-file")};
	CLEANUP(str) char *here = getcwd(NULL, 0);
	CLEANUP(str) char *state = NULL, *mount = NULL, *password = NULL;
	if (with.state && with.state[0] != '/')
		with.state = state = mem_printf("%s/%s", here ? here : ".", with.state);
	if (with.mount && with.mount[0] != '/' && strcmp(with.mount, "none") != 0)
		with.mount = mount = mem_printf("%s/%s", here ? here : ".", with.mount);
	if (with.admin_password_file && with.admin_password_file[0] != '/')
		with.admin_password_file = password = mem_printf("%s/%s", here ? here : ".", with.admin_password_file);

	CLEANUP(buf) struct buf text = {}, problems = {};
	conf_write_sample(&text, &with);
	CLEANUP(conf) struct conf *conf = NULL;
	if (text.err)
		return cli_fail(c, "out of memory");
	if (conf_parse(text.data, text.len, file, &conf, &problems) != AFS_OK) {
		fputs(problems.data ? problems.data : "", stderr);
		return cli_fail(c, "these values make no configuration; nothing was written");
	}
	if (strcmp(file, "-") == 0) {
		fwrite(text.data, 1, text.len, stdout);
		return CLI_OK;
	}
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC | (cli_has(c, "force") ? O_TRUNC : O_EXCL), 0644);
	if (fd < 0 && errno == EEXIST)
		return cli_fail(c, "%s is there already; --force replaces it", file);
	if (fd < 0)
		return cli_fail(c, "%s cannot be written: %s", file, strerror(errno));
	bool ok = write(fd, text.data, text.len) == (ssize_t)text.len;
	if (close(fd) != 0 || !ok) {
		int eno = errno;
		unlink(file);
		return cli_fail(c, "%s cannot be written: %s", file, strerror(eno));
	}
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s, s:s}", "file", file, "cell", conf->cell));
	printf("wrote %s for the cell %s; next: read it, then \"afscell up\"\n", file, conf->cell);
	return CLI_OK;
}

/* --- up ------------------------------------------------------------------------------------ */

struct progress {
	const struct cli *c;
	bool live;      /* a terminal: lines that grow */
	bool open_line; /* "realm ..." stands without its end */
	const char *serving_cell, *serving_mount;
	json_t *did, *secrets;
	unsigned changes;
};

static void end_line(struct progress *p, const char *colour, const char *word, const char *text)
{
	if (!p->open_line)
		return;
	printf(" %s%s%s%s%s\n", cli_colour(p->c, colour), word, cli_colour(p->c, "0"), *text ? "  " : "", text);
	p->open_line = false;
}

static void on_event(void *ctx, enum cell_event ev, const char *what, const char *text)
{
	struct progress *p = ctx;
	bool json = cli_wants_json(p->c);
	switch (ev) {
	case CELL_STEP:
		if (p->live && !json) {
			end_line(p, "32", "ok", "");
			printf("  %-10s ...", what);
			p->open_line = true;
		}
		break;
	case CELL_STEP_OK:
		if (p->live && !json)
			end_line(p, "32", "ok", text);
		break;
	case CELL_DID:
		p->changes++;
		if (json) {
			json_array_append_new(p->did, json_pack("{s:s, s:s}", "what", what, "did", text));
			break;
		}
		if (p->open_line)
			putchar('\n');
		p->open_line = false;
		printf("  %s: %s\n", what, text);
		break;
	case CELL_SECRET:
		if (json) {
			json_object_set_new(p->secrets, what, json_string(text));
			break;
		}
		if (p->open_line)
			putchar('\n');
		p->open_line = false;
		printf("  %spassword of %s: %s%s   (shown this once)\n", cli_colour(p->c, "1"), what, text,
			cli_colour(p->c, "0"));
		break;
	case CELL_WARN:
	case CELL_PROBLEM:
		if (!json)
			end_line(p, "31", ev == CELL_PROBLEM ? "failed" : "", "");
		fflush(stdout);
		fprintf(stderr, "afscell: %s%s%s%s\n", ev == CELL_WARN ? "warning: " : "", what, *what ? ": " : "", text);
		break;
	}
	fflush(stdout);
}

static void say_serving(void *ctx)
{
	struct progress *p = ctx;
	if (cli_wants_json(p->c)) {
		(void)cli_print_json(p->c, json_pack("{s:s, s:s, s:o?, s:O, s:O}", "cell", p->serving_cell, "state", "serving",
						   "mount", *p->serving_mount ? json_string(p->serving_mount) : NULL, "did",
						   p->did, "passwords", p->secrets)); /* a printing error shows at the end */
	} else if (*p->serving_mount) {
		printf("cell %s serves; its files are in %s/%s\n", p->serving_cell, p->serving_mount, p->serving_cell);
	} else {
		printf("cell %s serves\n", p->serving_cell);
	}
	fflush(stdout);
}

static void on_progress_json(void *ctx, const json_t *v)
{
	const char *what = json_string_value(json_object_get(v, "what"));
	const char *text = json_string_value(json_object_get(v, "text"));
	on_event(ctx, (enum cell_event)json_integer_value(json_object_get(v, "event")), what ? what : "", text ? text : "");
}

/* Passwords that the running cell cannot know: from this command's environment and terminal. */
static int collect_passwords(const struct cli *c, const struct conf *conf, const char *socket, json_t **out)
{
	CLEANUP(json) json_t *missing = NULL, *passwords = json_object();
	CLEANUP(str) char *text = NULL;
	json_t *names = json_array();
	for (size_t i = 0; i < conf->user_count; i++)
		json_array_append_new(names, json_string(conf->users[i].name));
	if (ctl_ask(socket, json_pack("{s:s, s:o}", "verb", "users.missing", "names", names), &missing, &text, NULL, NULL) != AFS_OK)
		return cli_fail(c, "%s", text);
	for (size_t i = 0; i < conf->user_count; i++) {
		const struct conf_user *u = &conf->users[i];
		CLEANUP(secret) char *password = NULL;
		CLEANUP(buf) struct buf why = {};
		bool is_new = json_is_true(json_object_get(json_object_get(missing, "missing"), u->name));
		if (*u->password_file || (!*u->password_env && (!is_new || u->password != CONF_SECRET_PROMPT)))
			continue; /* the cell reads the file itself, and makes random ones */
		if (!is_new && !getenv(u->password_env))
			continue; /* nothing to change it to */
		if (secret_get(u, &password, &why) != AFS_OK)
			return cli_fail(c, "%s", why.data ? why.data : "out of memory");
		json_object_set_new(passwords, u->name, json_string(password));
	}
	*out = TAKE(passwords);
	return CLI_OK;
}

enum { PATIENCE = 150 }; /* tenths of a second */

static bool answers(const struct state_holder *holder)
{
	CLEANUP(json) json_t *reply = NULL;
	CLEANUP(str) char *text = NULL;
	return ctl_ask(holder->socket, json_pack("{s:s}", "verb", "status"), &reply, &text, NULL, NULL) == AFS_OK;
}

/* Another process has the state: if it runs this cell, it is asked to match the file. */
static int reconcile_running(struct progress *p, const struct conf *conf, const struct state_holder *holder)
{
	const struct cli *c = p->c;
	if (strcmp(holder->cell, conf->cell) != 0)
		return cli_fail(c, "%s is in use by process %d, which runs the cell %s, not %s", conf->state, (int)holder->pid,
			holder->cell, conf->cell);
	CLEANUP(json) json_t *passwords = NULL, *reply = NULL;
	CLEANUP(str) char *text = NULL;
	int status = collect_passwords(c, conf, holder->socket, &passwords);
	if (status != CLI_OK)
		return status;
	afs_err err = ctl_ask(holder->socket,
		json_pack("{s:s, s:s, s:O}", "verb", "reconcile", "config", conf->file, "passwords", passwords), &reply, &text,
		on_progress_json, p);
	if (err != AFS_OK)
		return cli_fail(c, "process %d runs the cell %s already; %s", (int)holder->pid, holder->cell, text);
	if (!cli_wants_json(c))
		printf("cell %s runs already (process %d): %s\n", conf->cell, (int)holder->pid,
			p->changes ? "it now matches the configuration" : "nothing to change");
	else
		say_serving(p);
	return CLI_OK;
}

int cli_up(struct cli *c)
{
	struct conf *conf;
	int status = cli_load_conf(c, &conf);
	if (status != CLI_OK)
		return status;
	CLEANUP(str) char *cell = mem_strdup(conf->cell);
	CLEANUP(str) char *mount = mem_strdup(conf->roles.client.enabled ? conf->client.mount : "");
	CLEANUP(str) char *file = mem_strdup(conf->file);
	CLEANUP(json) json_t *did = json_array(), *secrets = json_object();
	if (!cell || !mount || !file || !did || !secrets) {
		conf_free(conf);
		return cli_fail(c, "out of memory");
	}
	struct progress p = {.c = c, .live = cli_on_terminal(c), .serving_cell = cell, .serving_mount = mount, .did = did,
		.secrets = secrets};
	struct cell_watch watch = {on_event, &p};
	struct state_holder holder = {};
	bool foreground = cli_has(c, "foreground");
	enum daemon_result result = daemon_start(conf, foreground, &watch, say_serving, &holder);
	/* A process that has the state but does not answer is starting, going down or dying: all end soon. */
	for (int tries = 0; result == DAEMON_BUSY && tries < PATIENCE && !answers(&holder); tries++) {
		usleep(100 * 1000);
		CLEANUP(buf) struct buf problems = {};
		if (conf_load(file, &conf, &problems) != AFS_OK)
			return cli_fail(c, "%s", problems.data ? problems.data : "cannot read the configuration again");
		result = daemon_start(conf, foreground, &watch, say_serving, &holder);
	}
	if (result == DAEMON_SERVES && !foreground)
		say_serving(&p);
	if (result != DAEMON_BUSY)
		return result == DAEMON_SERVES ? CLI_OK : CLI_FAILED;
	if (foreground)
		return cli_fail(c, "process %d runs the cell %s already; without -f this command makes it match the configuration",
			(int)holder.pid, holder.cell);
	CLEANUP(conf) struct conf *again = NULL;
	CLEANUP(buf) struct buf problems = {};
	if (conf_load(file, &again, &problems) != AFS_OK)
		return cli_fail(c, "%s", problems.data ? problems.data : "cannot read the configuration again");
	return reconcile_running(&p, again, &holder);
}

/* --- console ------------------------------------------------------------------------------- */

int cli_console_link(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL;
	int rc = cli_ask(c, "console.link", NULL, &reply);
	if (rc != CLI_OK)
		return rc;
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(reply));
	printf("%s\n", json_string_value(json_object_get(reply, "link")));
	return CLI_OK;
}

/* --- down ---------------------------------------------------------------------------------- */

static bool confirm(const char *question)
{
	char line[16] = "";
	fprintf(stderr, "%s [y/N] ", question);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

/* Stop the process that has the state, and take the state over when it has let go. */
static int stop_holder(const struct cli *c, const struct conf *conf, const struct state_holder *holder, struct state **state)
{
	CLEANUP(json) json_t *reply = NULL;
	CLEANUP(str) char *text = NULL;
	afs_err err = ctl_ask(holder->socket, json_pack("{s:s}", "verb", "down"), &reply, &text, NULL, NULL);
	if (err == AFS_EACCESS)
		return cli_fail(c, "%s", text);
	if (err != AFS_OK && kill(holder->pid, SIGTERM) != 0 && errno != ESRCH)
		return cli_fail(c, "process %d does not answer and cannot be stopped: %s", (int)holder->pid, strerror(errno));
	for (int tries = 0; tries < 1200; tries++) { /* a minute: what is dirty is being stored */
		CLEANUP(buf) struct buf why = {};
		struct state_holder now = {};
		err = state_open(conf, false, state, &now, &why);
		if (err != AFS_EBUSY)
			return err == AFS_OK || err == AFS_ENOENT ? CLI_OK : cli_fail(c, "%s", why.data ? why.data : afs_err_text(err));
		usleep(50 * 1000);
	}
	return cli_fail(c, "process %d is still storing what is dirty after a minute; it goes on, ask again later", (int)holder->pid);
}

int cli_down(struct cli *c)
{
	bool erase = cli_has(c, "erase");
	CLEANUP(conf) struct conf *conf = NULL;
	int status = cli_load_conf(c, &conf);
	if (status != CLI_OK)
		return status;
	if (erase && !cli_has(c, "yes")) {
		if (!isatty(STDIN_FILENO))
			return cli_misuse(c, "--erase removes every volume of %s; add --yes to mean it", conf->cell);
		CLEANUP(str) char *q = mem_printf("Remove the cell %s with all its volumes, users and keys in %s?", conf->cell, conf->state);
		if (!q || !confirm(q))
			return cli_fail(c, "nothing was done");
	}

	CLEANUP(buf) struct buf why = {};
	CLEANUP(state) struct state *state = NULL;
	struct state_holder holder = {};
	bool stopped = false;
	afs_err err = state_open(conf, false, &state, &holder, &why);
	if (err == AFS_EBUSY && holder.pid) {
		status = stop_holder(c, conf, &holder, &state);
		if (status != CLI_OK)
			return status;
		stopped = true;
		err = AFS_OK;
	}
	if (err == AFS_ENOENT) {
		err = AFS_OK;
	} else if (err != AFS_OK) {
		return cli_fail(c, "%s", why.data && why.len ? why.data : afs_err_text(err));
	}
	bool erased = false;
	if (erase && state) {
		if (state_erase(TAKE(state), conf, &why) != AFS_OK)
			return cli_fail(c, "%s", why.data ? why.data : "cannot erase the state");
		erased = true;
	}
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s, s:b, s:b}", "cell", conf->cell, "stopped", stopped, "erased", erased));
	printf("cell %s %s%s\n", conf->cell, stopped ? "is down" : "was not running",
		erased ? "; all of its state is gone" : "");
	return CLI_OK;
}

/* --- status -------------------------------------------------------------------------------- */

int cli_status(struct cli *c)
{
	CLEANUP(json) json_t *st = NULL;
	int status = cli_ask(c, "status", NULL, &st);
	if (status != CLI_OK)
		return status;
	if (cli_wants_json(c))
		return cli_print_json(c, TAKE(st));
	static const char *const words[] = {"cell", "realm", "state", "mount", "console", "version"};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *v = json_string_value(json_object_get(st, words[i]));
		printf("%s%-8s%s  %s\n", cli_colour(c, "1"), words[i], cli_colour(c, "0"), v ? v : "-");
	}
	size_t i;
	json_t *role;
	json_array_foreach(json_object_get(st, "roles"), i, role)
	{
		const char *state = json_string_value(json_object_get(role, "state"));
		bool good = state && strcmp(state, "running") == 0;
		printf("%s%-8s%s  %-11s %s%s%s", cli_colour(c, "1"), i ? "" : "roles", cli_colour(c, "0"),
			json_string_value(json_object_get(role, "name")), cli_colour(c, good ? "32" : "2"), state ? state : "?",
			cli_colour(c, "0"));
		if (json_is_integer(json_object_get(role, "port")) && good)
			printf(", port %lld", (long long)json_integer_value(json_object_get(role, "port")));
		putchar('\n');
	}
	return CLI_OK;
}

/* --- config, check --------------------------------------------------------------------------- */

int cli_config(struct cli *c)
{
	const char *what = cli_value(c, "what");
	if (strcmp(what, "keys") == 0) {
		CLEANUP(buf) struct buf text = {};
		conf_write_keys(&text);
		fputs(text.data ? text.data : "", stdout);
		return CLI_OK;
	}
	if (strcmp(what, "check") != 0)
		return cli_misuse(c, "expected check or keys, found \"%s\"", what);
	CLEANUP(conf) struct conf *conf = NULL;
	int status = cli_load_conf(c, &conf);
	if (status != CLI_OK)
		return status;
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s, s:s, s:b}", "file", cli_config_path(c), "cell", conf->cell, "valid", 1));
	printf("%s is right: cell %s, realm %s, %zu user%s, %zu volume%s\n", cli_config_path(c), conf->cell, conf->realm.name,
		conf->user_count, conf->user_count == 1 ? "" : "s", conf->volume_count, conf->volume_count == 1 ? "" : "s");
	return CLI_OK;
}

static void on_checked(void *ctx, const json_t *v)
{
	const struct cli *c = ctx;
	if (cli_wants_json(c))
		return;
	const char *volume = json_string_value(json_object_get(v, "volume"));
	const char *finding = json_string_value(json_object_get(v, "finding"));
	if (finding)
		printf("%s: %s%s%s\n", volume ? volume : "?", cli_colour(c, "31"), finding, cli_colour(c, "0"));
	else
		printf("%s: %sright%s\n", volume ? volume : "?", cli_colour(c, "32"), cli_colour(c, "0"));
}

int cli_check(struct cli *c)
{
	const char *const *names;
	size_t n = cli_values(c, "volume", &names);
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(names[i]));
	CLEANUP(json) json_t *reply = NULL;
	int status = cli_ask_progress(c, "check", json_pack("{s:o}", "volumes", list), &reply, on_checked, c);
	if (status != CLI_OK)
		return status;
	json_int_t findings = json_integer_value(json_object_get(reply, "findings"));
	json_int_t volumes = json_integer_value(json_object_get(reply, "volumes"));
	if (cli_wants_json(c))
		(void)cli_print_json(c, TAKE(reply)); /* the status below is what counts */
	else
		printf("%lld volume%s, %lld finding%s\n", (long long)volumes, volumes == 1 ? "" : "s", (long long)findings,
			findings == 1 ? "" : "s");
	return findings ? CLI_FAILED : CLI_OK;
}

/* --- env ----------------------------------------------------------------------------------- */

/* A word that a shell reads back as it is. */
static void print_quoted(const char *s)
{
	putchar('\'');
	for (; *s; s++) {
		if (*s == '\'')
			printf("'\\''");
		else
			putchar(*s);
	}
	putchar('\'');
}

int cli_env(struct cli *c)
{
	CLEANUP(conf) struct conf *conf = NULL;
	int status = cli_load_conf(c, &conf);
	if (status != CLI_OK)
		return status;
	const char *dir = cli_value(c, "openafs");
	if (dir) {
		CLEANUP(buf) struct buf why = {};
		if (openafs_write(conf, dir, &why) != AFS_OK)
			return cli_fail(c, "%s", why.data ? why.data : "cannot write the directory");
	}
	bool embedded = conf->realm.mode == CONF_REALM_EMBEDDED;
	CLEANUP(str) char *krb5 = embedded ? mem_printf("%s/realm/krb5.conf", conf->state) : mem_strdup(conf->realm.krb5_conf);
	CLEANUP(str) char *socket = mem_printf("%s/control", conf->run);
	CLEANUP(str) char *public_krb5 = embedded ? mem_printf("%s/krb5.conf", conf->run) : NULL;
	if (!krb5 || !socket)
		return cli_fail(c, "out of memory");
	/* The state directory is its owner's alone; everybody else has the copy beside the socket. */
	if (public_krb5 && access(public_krb5, R_OK) == 0) {
		mem_free(krb5);
		krb5 = TAKE(public_krb5);
	}
	const struct {
		const char *name, *value;
	} vars[] = {{"AFSCELL_CONFIG", conf->file}, {"AFSCELL_SOCKET", socket}, {"KRB5_CONFIG", krb5},
		{"AFSCONF", dir}};
	if (cli_wants_json(c)) {
		json_t *o = json_object();
		for (size_t i = 0; i < ARRAY_SIZE(vars); i++)
			if (vars[i].value)
				json_object_set_new(o, vars[i].name, json_string(vars[i].value));
		return cli_print_json(c, o);
	}
	for (size_t i = 0; i < ARRAY_SIZE(vars); i++) {
		if (!vars[i].value)
			continue;
		printf("export %s=", vars[i].name);
		print_quoted(vars[i].value);
		putchar('\n');
	}
	return CLI_OK;
}
