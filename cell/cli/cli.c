/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From argv to a handler: which command is meant, its arguments, and what every handler needs
 * (the configuration, the running cell).  Also started under the name of a suite or command
 * ("fs" linked to afscell), afscell is that. */
#include "cell/cli/cli.h"

#include "cell/base/mem.h"
#include "cell/cli/parse.h"
#include "cell/conf/conf.h"
#include "cell/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_CONFIG SYSCONFDIR "/afscell/afscell.yaml"
#define DEFAULT_SOCKET "/run/afscell/control"

static int run_command(const struct cli_command *cmd, int argc, char **argv)
{
	struct cli_out out = {};
	struct cli c = {.out = &out};
	int status = cli_parse(&c, cmd, argc, argv);
	if (status == CLI_OK) {
		if (c.help)
			cli_help_command(cmd);
		else
			status = cmd->run(&c);
	}
	if (status == CLI_OK && c.json && !c.help && !out.printed)
		printf("{}\n"); /* a reader of JSON always gets a value */
	cli_fini(&c);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "afscell: cannot write the output: %s\n", strerror(errno));
		return status ? status : CLI_FAILED;
	}
	return status;
}

static int unknown(const char *suite, const char *word, const char *close)
{
	fprintf(stderr, "afscell: unknown command \"%s%s%s\"", suite, *suite ? " " : "", word);
	if (close)
		fprintf(stderr, "; did you mean \"%s\"?\n", close);
	else
		fprintf(stderr, "; see: afscell help%s%s\n", *suite ? " " : "", suite);
	return CLI_USAGE;
}

/* "afscell bench", and with options only, is its first command: what people mean by it. */
static const struct cli_command *usual(const struct cli_suite *s, int argc, char **argv)
{
	const char *close;
	bool help = argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-help") == 0 || strcmp(argv[0], "-h") == 0);
	bool plain = argc < 1 || (argv[0][0] == '-' && !help);
	return plain && strcmp(s->name, "bench") == 0 ? cli_find("bench", "mount", &close) : NULL;
}

static int run_suite(const struct cli_suite *s, int argc, char **argv)
{
	const struct cli_command *plain = usual(s, argc, argv);
	if (plain)
		return run_command(plain, argc, argv);
	if (argc < 1) {
		cli_help_suite(s);
		return CLI_USAGE;
	}
	if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-help") == 0 || strcmp(argv[0], "-h") == 0
		|| strcmp(argv[0], "help") == 0) {
		int at = argc > 1 && strcmp(argv[1], "-topic") == 0 ? 2 : 1;
		if (at >= argc)
			cli_help_suite(s);
		for (const char *close; at < argc; at++) {
			const struct cli_command *cmd = cli_find(s->name, argv[at], &close);
			if (!cmd)
				return unknown(s->name, argv[at], close);
			cli_help_command(cmd);
		}
		return CLI_OK;
	}
	const char *close;
	const struct cli_command *cmd = cli_find(s->name, argv[0], &close);
	if (!cmd && strcmp(argv[0], "apropos") == 0) {
		const char *topic = argc > 1 && strcmp(argv[1], "-topic") == 0 ? argv[2] : argv[1];
		if (topic)
			return cli_help_apropos(s, topic);
		fprintf(stderr, "afscell %s apropos: a word to look for is missing\n", s->name);
		return CLI_USAGE;
	}
	if (!cmd && strcmp(argv[0], "version") == 0)
		cmd = cli_find("", "version", &close);
	return cmd ? run_command(cmd, argc - 1, argv + 1) : unknown(s->name, argv[0], close);
}

int cli_main(int argc, char **argv)
{
	const char *self = argc > 0 ? argv[0] : "afscell";
	const char *slash = strrchr(self, '/');
	self = slash ? slash + 1 : self;
	const char *close;
	const struct cli_suite *suite = cli_find_suite(self);
	if (suite)
		return run_suite(suite, argc - 1, argv + 1);
	const struct cli_command *called = cli_find("", self, &close);
	if (called && cli_is_named(called, self)) /* whole: "a" is no aklog */
		return run_command(called, argc - 1, argv + 1);

	if (argc < 2) {
		cli_help_top();
		return CLI_USAGE;
	}
	const char *word = argv[1];
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-help") == 0) {
		cli_help_top();
		return CLI_OK;
	}
	if (strcmp(word, "--version") == 0)
		word = "version";
	suite = cli_find_suite(word);
	if (suite)
		return run_suite(suite, argc - 2, argv + 2);
	const struct cli_command *cmd = cli_find("", word, &close);
	return cmd ? run_command(cmd, argc - 2, argv + 2) : unknown("", word, close);
}

/* --- the configuration --------------------------------------------------------------------- */

/* A file in the current directory is believed only when it is ours or root's: whoever runs
 * afscell in a directory of others must not be led by them. */
static bool trusted(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0)
	       && !(st.st_mode & S_IWOTH);
}

const char *cli_config_path(const struct cli *c)
{
	if (c->config)
		return c->config;
	const char *env = getenv("AFSCELL_CONFIG");
	if (env && *env)
		return env;
	if (trusted("afscell.yaml"))
		return "afscell.yaml";
	return access(DEFAULT_CONFIG, F_OK) == 0 ? DEFAULT_CONFIG : NULL;
}

int cli_load_conf(const struct cli *c, struct conf **out)
{
	const char *path = cli_config_path(c);
	*out = NULL;
	if (!path)
		return cli_fail(c, "no configuration: there is no ./afscell.yaml and no %s; "
				   "\"afscell init\" writes one, --config names another",
			DEFAULT_CONFIG);
	CLEANUP(buf) struct buf problems = {};
	afs_err err = conf_load(path, out, &problems);
	if (err == AFS_OK)
		return CLI_OK;
	fflush(stdout);
	if (problems.len && !cli_calling(c))
		fputs(problems.data, stderr);
	else
		cli_fail(c, "%s", problems.len ? problems.data : path);
	return CLI_FAILED;
}

/* --- the running cell ---------------------------------------------------------------------- */

/* $AFSCELL_SOCKET, else where the configuration says, else the default: a user who may not read
 * the usual configuration still finds a cell that stands in the usual place.  Whoever names another
 * configuration never reaches that cell by mistake. */
static char *socket_path(const struct cli *c)
{
	const char *env = getenv("AFSCELL_SOCKET");
	if (env && *env && !c->config)
		return mem_strdup(env);
	const char *path = cli_config_path(c);
	if (!path || (strcmp(path, DEFAULT_CONFIG) == 0 && access(path, R_OK) != 0))
		return mem_strdup(DEFAULT_SOCKET);
	struct conf *conf;
	if (cli_load_conf(c, &conf) != CLI_OK)
		return NULL;
	char *p = mem_printf("%s/control", conf->run);
	conf_free(conf);
	return p;
}

int cli_ask_progress(const struct cli *c, const char *verb, json_t *args, json_t **reply,
	void (*each)(void *ctx, const json_t *progress), void *ctx)
{
	*reply = NULL;
	const struct cli_call *call = cli_calling(c);
	if (call && !call->owner) {
		json_decref(args);
		return cli_fail(c, "only an administrator of the cell may do this");
	}
	CLEANUP(str) char *path = socket_path(c);
	if (!path) {
		json_decref(args);
		return CLI_FAILED;
	}
	if (!args)
		args = json_object();
	json_object_set_new(args, "verb", json_string(verb));
	CLEANUP(str) char *text = NULL;
	afs_err err = ctl_ask(path, args, reply, &text, each, ctx);
	return err == AFS_OK ? CLI_OK : cli_fail(c, "%s", text ? text : afs_err_text(err));
}

int cli_ask(const struct cli *c, const char *verb, json_t *args, json_t **reply)
{
	return cli_ask_progress(c, verb, args, reply, NULL, NULL);
}
