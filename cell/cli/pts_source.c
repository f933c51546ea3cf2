/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pts: commands from a file or a terminal.  Each line is a command of the suite; how to connect is
 * taken over from the command line when a line says nothing else. */
#include "cell/cli/handlers.h"
#include "cell/cli/parse.h"
#include "cell/cli/suite.h"

#include "cell/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 256, INHERITED_MAX = 8 };

static bool quit; /* a line said so */

int cli_pts_quit(struct cli *c)
{
	(void)c;
	quit = true;
	return CLI_OK;
}

int cli_pts_sleep(struct cli *c)
{
	int64_t seconds;
	if (!text_int(cli_value(c, "delay"), &seconds) || seconds < 0 || seconds > 86400)
		return cli_misuse(c, "-delay %s: expected seconds, at most a day", cli_value(c, "delay"));
	fflush(stdout);
	sleep((unsigned)seconds);
	return CLI_OK;
}

static bool among(int n, char **words, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(words[i], name) == 0)
			return true;
	return false;
}

static int run_line(struct cli *c, char *line)
{
	char *words[WORDS_MAX + INHERITED_MAX];
	int n = suite_words(line, words, WORDS_MAX);
	if (n < 0)
		return cli_fail(c, "a quote is not closed, or there are more than %d words", WORDS_MAX);
	if (n == 0 || words[0][0] == '#')
		return CLI_OK;
	static const char *const flags[] = {"localauth", "noauth", "force"};
	char dashed[ARRAY_SIZE(flags)][16], cell[] = "-cell", *value;
	bool own = among(n, words, "-localauth") || among(n, words, "-noauth") || among(n, words, "-auth");
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		if (!cli_has(c, flags[i]) || own)
			continue;
		snprintf(dashed[i], sizeof(dashed[i]), "-%s", flags[i]);
		words[n++] = dashed[i];
	}
	value = (char *)(uintptr_t)cli_value(c, "cell");
	if (value && !among(n, words, "-cell")) {
		words[n++] = cell;
		words[n++] = value;
	}
	const char *close;
	const struct cli_command *cmd = cli_find("pts", words[0], &close);
	if (!cmd)
		return cli_fail(c, "unknown command \"%s\"%s%s%s", words[0], close ? "; did you mean \"" : "", close ? close : "",
			close ? "\"?" : "");
	struct cli sub = {.out = c->out};
	int status = cli_parse(&sub, cmd, n - 1, words + 1);
	sub.config = sub.config ? sub.config : c->config;
	sub.json = sub.json || c->json;
	if (status == CLI_OK && sub.help)
		cli_help_command(cmd);
	else if (status == CLI_OK)
		status = cmd->run(&sub);
	cli_fini(&sub);
	fflush(stdout);
	return status;
}

/* Runs every line, also after one that failed. */
static int run_lines(struct cli *c, FILE *f, bool prompt)
{
	char *line = NULL;
	size_t cap = 0;
	int status = CLI_OK;
	for (quit = false; !quit;) {
		if (prompt) {
			printf("pts> ");
			fflush(stdout);
		}
		if (getline(&line, &cap, f) < 0)
			break;
		if (run_line(c, line) != CLI_OK)
			status = CLI_FAILED;
	}
	free(line);
	return status;
}

int cli_pts_interactive(struct cli *c) { return run_lines(c, stdin, isatty(STDIN_FILENO)); }

int cli_pts_source(struct cli *c)
{
	static unsigned depth;
	const char *path = cli_value(c, "file");
	if (depth >= 8)
		return cli_fail(c, "%s: files name each other more than 8 deep", path);
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!f)
		return cli_fail(c, "%s: %s", path, strerror(errno));
	depth++;
	int status = run_lines(c, f, false);
	depth--;
	if (f != stdin)
		fclose(f);
	return status;
}
