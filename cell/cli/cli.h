/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The command line as a table.  A command is a row of commands.def: from the rows come the parser,
 * --help, completion, the manual pages, and what the console's API offers (cli_call, below): same names,
 * same arguments, same results.  A handler does one command and gives the exit status; it never calls
 * exit(), and may be called by several threads at once.
 *
 *   SHOW(    suite, name, aliases, handler, sentence, examples, arguments... )  changes nothing
 *   COMMAND( ... )                                                              changes something
 *   LOCAL(   ... )   only from a shell: it uses the terminal, files of the caller, or his process
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
 * WHAT also says what kind of thing a value is, for completion, forms and cli_call: FILE is a file of the
 * caller's, which cli_call refuses, DIR a directory, SERVER, PARTITION, VOLUME, USER, GROUP, CELL what they say, "a|b|c" a choice.
 *
 * With --json a handler prints one value, by cli_print_json, and nothing else on standard output.
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
/* A remark that is no failure, on stderr: "afscell vos zap: ...". */
[[gnu::format(printf, 2, 3)]] void cli_warn(const struct cli *c, const char *fmt, ...);
/* Text for people on stdout; nothing with --json. */
[[gnu::format(printf, 2, 3)]] void cli_say(const struct cli *c, const char *fmt, ...);
/* How far long work is: a line on stderr that the next one overwrites, when that is a terminal; the line
 * goes away with the work. */
[[gnu::format(printf, 2, 3)]] void cli_progress(const struct cli *c, const char *fmt, ...);
void cli_progress_end(const struct cli *c);
/* `value` (taken) on stdout, indented, with a newline: the command's result.  Gives CLI_OK. */
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

/* --- called by a program ------------------------------------------------------------------- */

/* A command run by a program, as the console does for its API, with its result as a value: nothing is
 * printed, no terminal is asked, no signal caught.  May be called by any thread; waits as the command does.
 *
 * Who asks is what the caller says, never the process: calls carry his token, or none.  What only the
 * machine's owner may do (-localauth, verbs of the control socket) is refused unless `owner`. */
struct keys_token;
struct cli_call {
	const char *command;           /* "vos listvldb", "user add"; whole names */
	const json_t *args;            /* object: "id": "root.cell", "quiet": true, "user": ["a", "b"]; numbers as well;
	                                  false and null are as if absent.  May be NULL */
	const char *config;            /* configuration file; NULL: as found */
	const struct keys_token *token; /* of the person; NULL: nobody */
	bool owner;                    /* he may do what root may: an administrator of this cell, as the caller knows */
	void (*progress)(void *ctx, const char *text); /* may be NULL */
	void *ctx;
	/* results, the caller's: json_decref, mem_free */
	json_t *result;                /* what --json prints; NULL: nothing */
	char *text;                    /* what would be on stderr, lines without the command's name; NULL: nothing */
};
/* The exit status.  CLI_USAGE also for a command that is not there, or is LOCAL. */
int cli_call(struct cli_call *call);
/* The table: [{"suite", "name", "aliases", "changes", "local", "help", "examples", "args": [{"name", "letter",
 * "kind": "flag|option|one|list", "required", "what", "help"}]}]; LOCAL rows only with `all`. */
json_t *cli_table_json(bool all);

/* The table, for help, completion, manual pages and tests. */
enum cli_kind { CLI_FLAG, CLI_OPTION, CLI_ONE, CLI_LIST };
struct cli_arg {
	const char *name;
	char letter;
	enum cli_kind kind;
	bool required;
	const char *what, *help;
};
enum cli_nature { CLI_SHOWS, CLI_CHANGES, CLI_LOCAL };
struct cli_command {
	const char *suite, *name, *aliases;
	int (*run)(struct cli *c);
	const char *help, *examples;
	const struct cli_arg *args; /* ends with a NULL name */
	enum cli_nature nature;
};
struct cli_suite {
	const char *name, *help;
};
extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;
extern const struct cli_suite cli_suites[];
extern const size_t cli_suite_count;
