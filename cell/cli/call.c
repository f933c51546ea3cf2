/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A command called by a program (cli.h): arguments from JSON, the result as JSON, and the table told as
 * JSON.  What is asked here comes from a network, so nothing is cut short or guessed: names are whole,
 * and files of the process are not for callers. */
#include "cell/cli/cli.h"

#include "cell/base/mem.h"
#include "cell/cli/parse.h"

#include <stdio.h>
#include <string.h>

/* Texts of numbers, kept until the command has run. */
struct texts {
	char **v;
	size_t n, cap;
};

static void texts_cleanup(struct texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		mem_free(t->v[i]);
	mem_free(t->v);
}

static const char *text_of(struct texts *t, const json_t *v)
{
	if (json_is_string(v))
		return json_string_value(v);
	if (!json_is_integer(v))
		return NULL;
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16;
		char **more = mem_resize(t->v, t->cap, cap, sizeof(*more));
		if (!more)
			return NULL;
		t->v = more;
		t->cap = cap;
	}
	char *s = mem_printf("%lld", (long long)json_integer_value(v));
	if (s)
		t->v[t->n++] = s;
	return s;
}

static bool is_file(const struct cli_arg *a) { return a->what && strcmp(a->what, "FILE") == 0; }

static int one_argument(struct cli *c, const char *name, const json_t *v, struct texts *texts)
{
	size_t row = 0;
	while (row < c->arg_count && strcmp(c->cmd->args[row].name, name) != 0)
		row++;
	if (row == c->arg_count)
		return cli_misuse(c, "unknown option %s", name);
	const struct cli_arg *a = &c->cmd->args[row];
	struct cli_got *g = &c->got[row];
	if (json_is_false(v) || json_is_null(v))
		return CLI_OK;
	if (a->kind == CLI_FLAG) {
		g->given = json_is_true(v);
		return g->given ? CLI_OK : cli_misuse(c, "%s is true or false", name);
	}
	if (is_file(a))
		return cli_misuse(c, "%s names a file, which only a shell may", name);
	size_t n = json_is_array(v) ? json_array_size(v) : 1;
	if (n != 1 && a->kind != CLI_LIST)
		return cli_misuse(c, "%s takes one value", name);
	for (size_t i = 0; i < n; i++) {
		const char *s = text_of(texts, json_is_array(v) ? json_array_get(v, i) : v);
		if (!s)
			return cli_misuse(c, "%s: expected text%s", name, a->kind == CLI_LIST ? ", or a list of texts" : "");
		g->v[g->n++] = s;
	}
	g->given = n > 0;
	return CLI_OK;
}

static int arguments(struct cli *c, const json_t *args, struct texts *texts)
{
	const char *name;
	json_t *v;
	if (args && !json_is_object(args))
		return cli_misuse(c, "the arguments are no object");
	json_object_foreach((json_t *)(uintptr_t)args, name, v)
	{
		int status = one_argument(c, name, v, texts);
		if (status != CLI_OK)
			return status;
	}
	return cli_missing(c);
}

static size_t longest(const json_t *args)
{
	size_t n = 1;
	const char *name;
	json_t *v;
	json_object_foreach((json_t *)(uintptr_t)args, name, v) n = MAX(n, json_array_size(v));
	return n;
}

static const struct cli_command *whole_name(const char *command)
{
	const char *blank = strchr(command, ' ');
	size_t n = blank ? (size_t)(blank - command) : 0;
	for (size_t i = 0; i < cli_command_count; i++) {
		const struct cli_command *k = &cli_commands[i];
		if (strlen(k->suite) == n && strncmp(k->suite, command, n) == 0 && strcmp(k->name, blank ? blank + 1 : command) == 0)
			return k->nature == CLI_LOCAL ? NULL : k;
	}
	return NULL;
}

int cli_call(struct cli_call *call)
{
	CLEANUP(texts) struct texts texts = {};
	struct cli_out out = {.call = call};
	struct cli c = {.json = true, .config = call->config, .out = &out};
	call->result = NULL;
	call->text = NULL;
	const struct cli_command *cmd = whole_name(call->command);
	if (!cmd) {
		call->text = mem_printf("there is no command \"%s\"", call->command);
		return CLI_USAGE;
	}
	int status = cli_begin(&c, cmd, longest(call->args));
	if (status == CLI_OK)
		status = arguments(&c, call->args, &texts);
	if (status == CLI_OK)
		status = cmd->run(&c);
	cli_fini(&c);
	call->text = out.text.len ? mem_strndup(out.text.data, out.text.len) : NULL;
	buf_fini(&out.text);
	return status;
}

json_t *cli_table_json(bool all)
{
	static const char *const kinds[] = {"flag", "option", "one", "list"};
	json_t *list = json_array();
	for (size_t i = 0; list && i < cli_command_count; i++) {
		const struct cli_command *k = &cli_commands[i];
		if (k->nature == CLI_LOCAL && !all)
			continue;
		json_t *args = json_array();
		for (const struct cli_arg *a = k->args; a->name; a++)
			json_array_append_new(args, json_pack("{s:s, s:s, s:s, s:b, s:s?, s:s}", "name", a->name, "letter",
							 (char[]){a->letter, '\0'}, "kind", kinds[a->kind], "required", (int)a->required,
							 "what", a->what, "help", a->help));
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:b, s:s, s:s, s:o}", "suite", k->suite, "name", k->name,
						      "aliases", k->aliases ? k->aliases : "", "changes", (int)(k->nature == CLI_CHANGES),
						      "local", (int)(k->nature == CLI_LOCAL), "help", k->help, "examples", k->examples, "args",
						      args));
	}
	return list;
}
