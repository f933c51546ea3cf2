/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Words into arguments, as cli.h describes.  A command's own names win over the ones that every
 * command has, so a cut name never changes meaning because of those. */
#include "cell/cli/parse.h"

#include "cell/base/mem.h"
#include "cell/base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int arg_index(const struct cli *c, const char *name)
{
	for (size_t i = 0; i < c->arg_count; i++)
		if (strcmp(c->cmd->args[i].name, name) == 0)
			return (int)i;
	return -1;
}

static const struct cli_got *got(const struct cli *c, const char *name)
{
	int i = arg_index(c, name);
	if (i < 0) {
		fprintf(stderr, "%s: no row for argument \"%s\"\n", c->name, name);
		abort();
	}
	return &c->got[i];
}

bool cli_has(const struct cli *c, const char *name) { return got(c, name)->given; }

const char *cli_value(const struct cli *c, const char *name)
{
	const struct cli_got *g = got(c, name);
	return g->n ? g->v[0] : NULL;
}

size_t cli_values(const struct cli *c, const char *name, const char *const **out)
{
	const struct cli_got *g = got(c, name);
	*out = g->v;
	return g->n;
}

bool cli_wants_json(const struct cli *c) { return c->json; }
bool cli_on_terminal(const struct cli *c) { return !c->json && !cli_calling(c) && isatty(STDOUT_FILENO); }

const char *cli_colour(const struct cli *c, const char *code)
{
	static const struct {
		const char *code, *esc;
	} all[] = {{"0", "\033[0m"}, {"1", "\033[1m"}, {"31", "\033[31m"}, {"32", "\033[32m"},
		{"33", "\033[33m"}, {"2", "\033[2m"}};
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
	if (!cli_on_terminal(c) || (no && *no) || !term || strcmp(term, "dumb") == 0)
		return "";
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (strcmp(all[i].code, code) == 0)
			return all[i].esc;
	return "";
}

/* On stderr after "name: ", or into the text of a call; `end` closes the line. */
[[gnu::format(printf, 2, 0)]] static void tell(const struct cli *c, const char *fmt, va_list ap, const char *end)
{
	if (cli_calling(c)) {
		char text[2048];
		vsnprintf(text, sizeof(text), fmt, ap);
		buf_printf(&c->out->text, "%s\n", text);
		return;
	}
	fflush(stdout);
	fprintf(stderr, "%s: ", c->name);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "%s\n", end);
}

int cli_fail(const struct cli *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	tell(c, fmt, ap, "");
	va_end(ap);
	return CLI_FAILED;
}

void cli_warn(const struct cli *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	tell(c, fmt, ap, "");
	va_end(ap);
}

int cli_misuse(const struct cli *c, const char *fmt, ...)
{
	CLEANUP(str) char *end = mem_printf("; see: %s --help", c->name);
	va_list ap;
	va_start(ap, fmt);
	tell(c, fmt, ap, end ? end : "");
	va_end(ap);
	return CLI_USAGE;
}

void cli_say(const struct cli *c, const char *fmt, ...)
{
	if (c->json)
		return;
	va_list ap;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
}

static bool watched(const struct cli *c)
{
	const struct cli_call *call = cli_calling(c);
	return call ? call->progress != NULL : !c->json && isatty(STDERR_FILENO);
}

void cli_progress(const struct cli *c, const char *fmt, ...)
{
	char text[256];
	if (!watched(c))
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (cli_calling(c))
		cli_calling(c)->progress(cli_calling(c)->ctx, text);
	else
		fprintf(stderr, "\r\033[K%s", text);
}

void cli_progress_end(const struct cli *c)
{
	if (watched(c) && !cli_calling(c))
		fputs("\r\033[K", stderr);
}

int cli_print_json(const struct cli *c, json_t *value)
{
	if (c->out)
		c->out->printed = true;
	if (cli_calling(c)) {
		json_decref(c->out->call->result);
		c->out->call->result = value;
		return value ? CLI_OK : cli_fail(c, "out of memory");
	}
	if (!value || json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY) != 0) {
		json_decref(value);
		return cli_fail(c, "cannot print the result as JSON");
	}
	putchar('\n');
	json_decref(value);
	return CLI_OK;
}

void cli_fini(struct cli *c)
{
	for (size_t i = 0; c->got && i < c->arg_count; i++)
		mem_free(c->got[i].v);
	mem_free(c->got);
	mem_free(c->config_found);
	mem_free(c->name_buf);
	*c = (struct cli){};
}

/* A word that names an argument: "-x", "--x"; "-" and "-5" are values. */
static bool is_name(const char *w) { return w[0] == '-' && w[1] && !isdigit((unsigned char)w[1]); }

enum { GLOBAL_HELP = -10, GLOBAL_JSON, GLOBAL_CONFIG, UNKNOWN = -1, AMBIGUOUS = -2 };
static const struct {
	const char *name;
	int what;
} globals[] = {{"help", GLOBAL_HELP}, {"json", GLOBAL_JSON}, {"config", GLOBAL_CONFIG}};

/* Which row, or GLOBAL_..., the name of length n means. */
static int resolve(const struct cli *c, const char *name, size_t n)
{
	int found = UNKNOWN;
	if (n == 1)
		for (size_t i = 0; i < c->arg_count; i++)
			if (c->cmd->args[i].letter == name[0])
				return (int)i;
	for (size_t i = 0; i < c->arg_count; i++) {
		const char *full = c->cmd->args[i].name;
		if (strncmp(full, name, n) != 0)
			continue;
		if (full[n] == '\0')
			return (int)i;
		found = found == UNKNOWN ? (int)i : AMBIGUOUS;
	}
	if (found != UNKNOWN)
		return found;
	for (size_t i = 0; i < ARRAY_SIZE(globals); i++)
		if (strncmp(globals[i].name, name, n) == 0)
			return globals[i].what; /* they begin with different letters */
	return UNKNOWN;
}

static void push(struct cli *c, int row, const char *value)
{
	struct cli_got *g = &c->got[row];
	g->v[g->n++] = value;
	g->given = true;
}

/* The next row that is filled by position, or -1. */
static int next_positional(const struct cli *c, int from)
{
	for (size_t i = (size_t)from; i < c->arg_count; i++) {
		enum cli_kind k = c->cmd->args[i].kind;
		if ((k == CLI_ONE || k == CLI_LIST) && !c->got[i].given)
			return (int)i;
	}
	return -1;
}

int cli_missing(const struct cli *c)
{
	for (size_t i = 0; i < c->arg_count; i++) {
		const struct cli_arg *a = &c->cmd->args[i];
		if (a->required && !c->got[i].given)
			return cli_misuse(c, "%s is missing: -%s %s", a->help, a->name, a->what);
	}
	return CLI_OK;
}

int cli_begin(struct cli *c, const struct cli_command *cmd, size_t values_max)
{
	c->cmd = cmd;
	c->name_buf = cli_full_name(cmd);
	c->name = c->name_buf ? c->name_buf : "afscell";
	while (cmd->args[c->arg_count].name)
		c->arg_count++;
	c->got = mem_new_array(c->arg_count + 1, struct cli_got);
	for (size_t i = 0; c->got && i < c->arg_count; i++)
		if (!(c->got[i].v = mem_new_array(values_max + 1, const char *)))
			return cli_fail(c, "out of memory");
	return c->got ? CLI_OK : cli_fail(c, "out of memory");
}

int cli_parse(struct cli *c, const struct cli_command *cmd, int argc, char **argv)
{
	int status = cli_begin(c, cmd, (size_t)argc);
	if (status != CLI_OK)
		return status;
	bool names_end = false;
	int list = -1; /* the list that was named last and still takes words */
	for (int i = 0; i < argc; i++) {
		const char *w = argv[i];
		if (!names_end && strcmp(w, "--") == 0) {
			names_end = true;
			continue;
		}
		if (names_end || !is_name(w)) {
			if (list < 0) {
				list = next_positional(c, 0);
				if (list < 0)
					return cli_misuse(c, "\"%s\" is one word too many", w);
				push(c, list, w);
				/* by position, a list takes one word when another row follows */
				if (cmd->args[list].kind != CLI_LIST || next_positional(c, list) >= 0)
					list = -1;
			} else {
				push(c, list, w);
			}
			continue;
		}

		list = -1;
		const char *name = w + (w[1] == '-' ? 2 : 1);
		const char *eq = strchr(name, '=');
		size_t n = eq ? (size_t)(eq - name) : strlen(name);
		int row = n ? resolve(c, name, n) : UNKNOWN;
		if (row == UNKNOWN)
			return cli_misuse(c, "unknown option %s", w);
		if (row == AMBIGUOUS)
			return cli_misuse(c, "option %s may mean several", w);
		bool flag = row == GLOBAL_HELP || row == GLOBAL_JSON
			    || (row >= 0 && cmd->args[row].kind == CLI_FLAG);
		if (flag) {
			if (eq)
				return cli_misuse(c, "option %.*s takes no value", (int)(eq - w), w);
			if (row == GLOBAL_HELP)
				c->help = true;
			else if (row == GLOBAL_JSON)
				c->json = true;
			else
				c->got[row].given = true;
			continue;
		}
		if (row >= 0 && c->got[row].given)
			return cli_misuse(c, "-%s is given twice", cmd->args[row].name);
		if (row >= 0 && cmd->args[row].kind == CLI_LIST && !eq) {
			c->got[row].given = true;
			if (i + 1 >= argc || is_name(argv[i + 1]))
				return cli_misuse(c, "-%s needs %s", cmd->args[row].name, cmd->args[row].what);
			list = row;
			continue;
		}
		const char *value = eq ? eq + 1 : i + 1 < argc && !is_name(argv[i + 1]) ? argv[++i] : NULL;
		if (!value)
			return cli_misuse(c, "%s needs a value", w);
		if (row == GLOBAL_CONFIG)
			c->config = value;
		else
			push(c, row, value);
	}
	return c->help ? CLI_OK : cli_missing(c);
}

/* --- finding commands ---------------------------------------------------------------------- */

char *cli_full_name(const struct cli_command *cmd)
{
	return *cmd->suite ? mem_printf("afscell %s %s", cmd->suite, cmd->name)
			   : mem_printf("afscell %s", cmd->name);
}

static bool in_words(const char *words, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = words; p && *p;) {
		size_t len = strcspn(p, " ");
		if (len == n && strncmp(p, word, n) == 0)
			return true;
		p += len;
		p += strspn(p, " ");
	}
	return false;
}

bool cli_is_named(const struct cli_command *cmd, const char *name)
{
	return strcmp(cmd->name, name) == 0 || in_words(cmd->aliases, name);
}

const struct cli_command *cli_find(const char *suite, const char *name, const char **close)
{
	const struct cli_command *cut = NULL;
	unsigned cuts = 0;
	size_t best = 3;
	*close = NULL;
	for (size_t i = 0; i < cli_command_count; i++) {
		const struct cli_command *k = &cli_commands[i];
		if (strcmp(k->suite, suite) != 0)
			continue;
		if (cli_is_named(k, name))
			return k;
		if (strncmp(k->name, name, strlen(name)) == 0) {
			cut = k;
			cuts++;
		}
		size_t d = text_distance(k->name, name);
		if (d < best) {
			best = d;
			*close = k->name;
		}
	}
	return cuts == 1 ? cut : NULL;
}

const struct cli_suite *cli_find_suite(const char *name)
{
	for (size_t i = 0; i < cli_suite_count; i++)
		if (strcmp(cli_suites[i].name, name) == 0)
			return &cli_suites[i];
	return NULL;
}
