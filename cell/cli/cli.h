/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The command line as a table.  A command is a row of commands.def: from the rows come the parser,
 * --help, bash completion and the manual pages.  A handler does one command and gives the exit
 * status; it never calls exit().
 *
 *   COMMAND( suite, name, aliases, handler, sentence, examples, arguments... )
 *
 * `suite` is "" for a command of its own ("up"), else "fs", ...; `aliases` are further names,
 * separated by blanks ("la").  `examples` is lines of text, one example each.  Arguments:
 *
 *   FLAG(   name, letter, sentence )          -name: no value
 *   OPTION( name, letter, WHAT, sentence )    -name WHAT: never by position
 *   ONE(    name, WHAT, sentence )            one value, by name or by position
 *   NEED(   name, WHAT, sentence )            the same, and it must be there
 *   LIST(   name, WHAT, sentence )            any number of values, up to the next -name
 *   NEEDLIST( name, WHAT, sentence )          at least one value
 *
 * `letter` is a one-letter spelling or 0.  Names are written with one dash or two, may be cut to an
 * unambiguous beginning, as AFS people are used to, and take -name=value too; "--" ends names.
 * Command names may be cut as well.  Every command also knows --help, --json and --config FILE.
 *
 * Exit status: 0 done, 1 failed, 2 not understood (usage). */
#pragma once
#include "cell/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct cli; /* one run of one command */

/* The arguments.  `name` is a row's; asking for one that the row lacks is a mistake of ours. */
bool cli_has(const struct cli *c, const char *name);
const char *cli_value(const struct cli *c, const char *name); /* NULL when not given */
size_t cli_values(const struct cli *c, const char *name, const char *const **out);

bool cli_wants_json(const struct cli *c);
bool cli_on_terminal(const struct cli *c); /* stdout is a terminal: colours and progress are welcome */
/* ESC sequence, or "" when stdout is no terminal: "1" bold, "31" red, "32" green, "0" plain. */
const char *cli_colour(const struct cli *c, const char *code);

/* "afscell fs listacl: ..." on stderr; give CLI_FAILED and CLI_USAGE. */
[[gnu::format(printf, 2, 3)]] int cli_fail(const struct cli *c, const char *fmt, ...);
[[gnu::format(printf, 2, 3)]] int cli_misuse(const struct cli *c, const char *fmt, ...);
/* `value` (taken) on stdout, indented, with a newline.  Gives CLI_OK. */
int cli_print_json(const struct cli *c, json_t *value);

/* Ask the running cell (cell/ctl.h) for `verb`; `args` (an object or NULL) is taken; waits.  On
 * CLI_OK *reply is the caller's (json_decref).  Else the reason is printed, and *reply is NULL. */
int cli_ask(const struct cli *c, const char *verb, json_t *args, json_t **reply);
/* As cli_ask, and each progress object that comes before the reply is handed to `each`. */
int cli_ask_progress(const struct cli *c, const char *verb, json_t *args, json_t **reply,
	void (*each)(void *ctx, const json_t *progress), void *ctx);

/* The configuration file: --config, $AFSCELL_CONFIG, ./afscell.yaml (when it is ours or root's),
 * SYSCONFDIR/afscell/afscell.yaml.  NULL: none exists. */
const char *cli_config_path(const struct cli *c);
/* Load it; problems are printed.  CLI_OK, CLI_FAILED. */
struct conf;
int cli_load_conf(const struct cli *c, struct conf **out);

/* Parse and run; gives the exit status.  What main() does. */
int cli_main(int argc, char **argv);

/* The table, for help, completion, manual pages and tests. */
enum cli_kind { CLI_FLAG, CLI_OPTION, CLI_ONE, CLI_LIST };
struct cli_arg {
	const char *name;
	char letter;
	enum cli_kind kind;
	bool required;
	const char *what, *help;
};
struct cli_command {
	const char *suite, *name, *aliases;
	int (*run)(struct cli *c);
	const char *help, *examples;
	const struct cli_arg *args; /* ends with a NULL name */
};
struct cli_suite {
	const char *name, *help;
};
extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;
extern const struct cli_suite cli_suites[];
extern const size_t cli_suite_count;
