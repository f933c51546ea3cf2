/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the rows say to people: --help, manual pages, completion. */
#include "cell/cli/parse.h"

#include "cell/base/buf.h"
#include "cell/base/mem.h"
#include "cell/conf/conf.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cli_help(struct cli *c); /* rows of commands.def */
int cli_version(struct cli *c);

static const char *const global_args[][2] = {
	{"--config FILE", "Configuration file (else $AFSCELL_CONFIG, ./afscell.yaml, /etc/afscell/afscell.yaml)"},
	{"--json", "Print the result as JSON"},
	{"--help", "Print this"},
};

static const char *dash(const struct cli_command *cmd) { return *cmd->suite ? "-" : "--"; }

static void put_synopsis(struct buf *b, const struct cli_command *cmd)
{
	buf_printf(b, "afscell %s%s%s", cmd->suite, *cmd->suite ? " " : "", cmd->name);
	for (const struct cli_arg *a = cmd->args; a->name; a++) {
		const char *open = a->required ? "" : "[", *close = a->required ? "" : "]";
		if (a->kind == CLI_FLAG)
			buf_printf(b, " [%s%s]", dash(cmd), a->name);
		else if (a->kind == CLI_OPTION)
			buf_printf(b, " [%s%s %s]", dash(cmd), a->name, a->what);
		else
			buf_printf(b, " %s%s%s%s", open, a->what, a->kind == CLI_LIST ? " ..." : "", close);
	}
}

static void put_label(struct buf *b, const struct cli_command *cmd, const struct cli_arg *a)
{
	if (a->letter)
		buf_printf(b, "-%c, ", a->letter);
	buf_printf(b, "%s%s", dash(cmd), a->name);
	if (a->kind != CLI_FLAG)
		buf_printf(b, " %s%s", a->what, a->kind == CLI_LIST ? " ..." : "");
}

static void print_columns(const char *left, const char *right)
{
	if (strlen(left) > 24)
		printf("  %s\n  %-24s  %s\n", left, "", right);
	else
		printf("  %-24s  %s\n", left, right);
}

void cli_help_command(const struct cli_command *cmd)
{
	CLEANUP(buf) struct buf b = {};
	put_synopsis(&b, cmd);
	printf("%s.\n\nUsage: %s\n", cmd->help, b.data ? b.data : "");
	if (cmd->aliases)
		printf("Also:  %s\n", cmd->aliases);
	printf("\nOptions:\n");
	for (const struct cli_arg *a = cmd->args; a->name; a++) {
		CLEANUP(buf) struct buf l = {};
		put_label(&l, cmd, a);
		print_columns(l.data ? l.data : a->name, a->help);
	}
	for (size_t i = 0; i < ARRAY_SIZE(global_args); i++)
		print_columns(global_args[i][0], global_args[i][1]);
	printf("\nExamples:\n");
	for (const char *p = cmd->examples; *p;) {
		size_t n = strcspn(p, "\n");
		printf("  %.*s\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

static void print_commands(const char *suite)
{
	for (size_t i = 0; i < cli_command_count; i++)
		if (strcmp(cli_commands[i].suite, suite) == 0)
			print_columns(cli_commands[i].name, cli_commands[i].help);
}

void cli_help_suite(const struct cli_suite *s)
{
	printf("%s.\n\nUsage: afscell %s COMMAND [ARGUMENTS]\n\nCommands:\n", s->help, s->name);
	print_commands(s->name);
	printf("\nMore: afscell help %s COMMAND\n", s->name);
}

int cli_help_apropos(const struct cli_suite *s, const char *word)
{
	bool found = false;
	for (size_t i = 0; i < cli_command_count; i++) {
		const struct cli_command *k = &cli_commands[i];
		if (strcmp(k->suite, s->name) != 0 || (!strcasestr(k->name, word) && !strcasestr(k->help, word)))
			continue;
		printf("%s: %s\n", k->name, k->help);
		found = true;
	}
	if (!found)
		printf("Sorry, no commands found\n"); /* as stock tools say it, with status 0 */
	return CLI_OK;
}

void cli_help_top(void)
{
	printf("afscell " VERSION ": a whole AFS-3 cell in one process.\n\n"
	       "Usage: afscell COMMAND [ARGUMENTS]\n\nCommands:\n");
	print_commands("");
	printf("\nSuites:\n");
	for (size_t i = 0; i < cli_suite_count; i++)
		print_columns(cli_suites[i].name, cli_suites[i].help);
	printf("\nFirst steps:\n"
	       "  afscell init              write ./afscell.yaml, and read it\n"
	       "  sudo afscell up           bring the cell up and mount it\n"
	       "  eval \"$(afscell env)\"     point kinit at it; then: kinit admin; afscell aklog\n"
	       "  sudo afscell down         stop it; --erase removes everything\n"
	       "\nMore: afscell help COMMAND\n");
}

/* --- manual pages -------------------------------------------------------------------------- */

static void put_roff(struct buf *b, const char *s)
{
	for (bool line_start = true; *s; s++) {
		if (line_start && (*s == '.' || *s == '\''))
			buf_puts(b, "\\&");
		if (*s == '\\')
			buf_puts(b, "\\e");
		else if (*s == '-')
			buf_puts(b, "\\-");
		else
			buf_putc(b, *s);
		line_start = *s == '\n';
	}
}

static void put_head(struct buf *b, const char *title, const char *sentence)
{
	buf_printf(b, ".TH \"%s\" 1 \"\" \"afscell " VERSION "\"\n.SH NAME\n", title);
	put_roff(b, title);
	buf_puts(b, " \\- ");
	put_roff(b, sentence);
	buf_puts(b, "\n");
}

static void put_man_body(struct buf *b, const struct cli_command *cmd, const char *head)
{
	buf_printf(b, "%s SYNOPSIS\n.nf\n", head);
	CLEANUP(buf) struct buf syn = {};
	put_synopsis(&syn, cmd);
	put_roff(b, syn.data ? syn.data : "");
	buf_printf(b, "\n.fi\n%s OPTIONS\n", head);
	for (const struct cli_arg *a = cmd->args; a->name; a++) {
		CLEANUP(buf) struct buf l = {};
		put_label(&l, cmd, a);
		buf_puts(b, ".TP\n.B ");
		put_roff(b, l.data ? l.data : a->name);
		buf_puts(b, "\n");
		put_roff(b, a->help);
		buf_puts(b, "\n");
	}
	for (size_t i = 0; i < ARRAY_SIZE(global_args); i++) {
		buf_puts(b, ".TP\n.B ");
		put_roff(b, global_args[i][0]);
		buf_puts(b, "\n");
		put_roff(b, global_args[i][1]);
		buf_puts(b, "\n");
	}
	buf_printf(b, "%s EXAMPLES\n.nf\n", head);
	put_roff(b, cmd->examples);
	buf_puts(b, ".fi\n");
}

static int write_page(const struct cli *c, const char *dir, const char *name, const struct buf *b)
{
	if (b->err)
		return cli_fail(c, "out of memory");
	CLEANUP(str) char *path = mem_printf("%s/%s", dir, name);
	if (!path)
		return cli_fail(c, "out of memory");
	FILE *f = fopen(path, "w");
	bool ok = f && fwrite(b->data, 1, b->len, f) == b->len;
	if (f && fclose(f) != 0)
		ok = false;
	return ok ? CLI_OK : cli_fail(c, "cannot write %s: %s", path, strerror(errno));
}

static int write_man(const struct cli *c, const char *dir)
{
	CLEANUP(buf) struct buf top = {};
	put_head(&top, "afscell", "a whole AFS-3 cell in one process");
	buf_puts(&top, ".SH SYNOPSIS\n.B afscell\nCOMMAND [ARGUMENTS]\n.SH COMMANDS\n");
	int status = CLI_OK;
	for (size_t i = 0; i < cli_command_count && status == CLI_OK; i++) {
		const struct cli_command *k = &cli_commands[i];
		if (*k->suite)
			continue;
		buf_printf(&top, ".TP\n.BR afscell\\-%s (1)\n", k->name);
		put_roff(&top, k->help);
		buf_puts(&top, "\n");
		CLEANUP(buf) struct buf b = {};
		CLEANUP(str) char *title = mem_printf("afscell-%s", k->name);
		CLEANUP(str) char *file = mem_printf("afscell-%s.1", k->name);
		if (!title || !file)
			return cli_fail(c, "out of memory");
		put_head(&b, title, k->help);
		put_man_body(&b, k, ".SH");
		status = write_page(c, dir, file, &b);
	}
	buf_puts(&top, ".SH SUITES\n");
	for (size_t s = 0; s < cli_suite_count && status == CLI_OK; s++) {
		const struct cli_suite *suite = &cli_suites[s];
		buf_printf(&top, ".TP\n.BR afscell\\-%s (1)\n", suite->name);
		put_roff(&top, suite->help);
		buf_puts(&top, "\n");
		CLEANUP(buf) struct buf b = {};
		CLEANUP(str) char *title = mem_printf("afscell-%s", suite->name);
		CLEANUP(str) char *file = mem_printf("afscell-%s.1", suite->name);
		if (!title || !file)
			return cli_fail(c, "out of memory");
		put_head(&b, title, suite->help);
		for (size_t i = 0; i < cli_command_count; i++) {
			if (strcmp(cli_commands[i].suite, suite->name) != 0)
				continue;
			buf_printf(&b, ".SH %s\n", cli_commands[i].name);
			put_roff(&b, cli_commands[i].help);
			buf_puts(&b, ".\n");
			put_man_body(&b, &cli_commands[i], ".SS");
		}
		status = write_page(c, dir, file, &b);
	}
	buf_puts(&top, ".SH SEE ALSO\n.BR afscell.yaml (5)\n");
	if (status == CLI_OK)
		status = write_page(c, dir, "afscell.1", &top);
	CLEANUP(buf) struct buf yaml = {};
	conf_write_man(&yaml, VERSION);
	return status == CLI_OK ? write_page(c, dir, "afscell.yaml.5", &yaml) : status;
}

int cli_help(struct cli *c)
{
	if (cli_value(c, "man"))
		return write_man(c, cli_value(c, "man"));
	if (cli_has(c, "completion")) {
		cli_print_completion();
		return CLI_OK;
	}
	const char *const *topic;
	size_t n = cli_values(c, "topic", &topic);
	if (cli_wants_json(c))
		return cli_print_json(c, cli_table_json(cli_has(c, "all")));
	if (n == 0) {
		cli_help_top();
		return CLI_OK;
	}
	const struct cli_suite *s = cli_find_suite(topic[0]);
	if (s && n == 1) {
		cli_help_suite(s);
		return CLI_OK;
	}
	const char *close;
	const struct cli_command *cmd = s ? cli_find(s->name, topic[1], &close) : cli_find("", topic[0], &close);
	if (!cmd || n > (s ? 2U : 1U))
		return cli_misuse(c, "there is no command \"%s\"%s%s%s", topic[n - 1], close && !cmd ? "; did you mean \"" : "",
			close && !cmd ? close : "", close && !cmd ? "\"?" : "");
	cli_help_command(cmd);
	return CLI_OK;
}

int cli_version(struct cli *c)
{
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s}", "version", VERSION));
	printf("afscell " VERSION "\n");
	return CLI_OK;
}
