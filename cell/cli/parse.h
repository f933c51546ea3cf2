/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of this folder: words into a struct cli, and what help needs. */
#pragma once
#include "cell/base/buf.h"
#include "cell/cli/cli.h"

/* What a command gave out so far. */
struct cli_out {
	struct cli_call *call; /* NULL: from a shell */
	struct buf text;       /* of a call: what a shell would see on stderr */
	bool printed;          /* cli_print_json was called */
};

struct cli {
	const struct cli_command *cmd;
	const char *name; /* "afscell fs listacl", for messages */
	struct cli_got {
		const char **v;
		size_t n;
		bool given;
	} *got; /* one per row of cmd->args */
	size_t arg_count;
	bool json, help;
	const char *config;
	char *config_found; /* what cli_config_path() settled on */
	char *name_buf;
	struct cli_out *out;
};

/* The call that runs this command, or NULL: a shell. */
static inline const struct cli_call *cli_calling(const struct cli *c) { return c->out ? c->out->call : NULL; }

void cli_fini(struct cli *c);
/* Words after the command's name.  CLI_OK or CLI_USAGE (printed). */
int cli_parse(struct cli *c, const struct cli_command *cmd, int argc, char **argv);
/* A row for the arguments of `cmd`, empty.  cli_fini() it, also after an error. */
int cli_begin(struct cli *c, const struct cli_command *cmd, size_t values_max);
/* CLI_USAGE (told) when a required argument is missing. */
int cli_missing(const struct cli *c);
/* The command or NULL; `suite` "" for the top.  Sets *close to the best guess, for messages. */
const struct cli_command *cli_find(const char *suite, const char *name, const char **close);
/* Is `name` the command's name or alias, whole? */
bool cli_is_named(const struct cli_command *cmd, const char *name);
const struct cli_suite *cli_find_suite(const char *name);
/* "afscell up" */
char *cli_full_name(const struct cli_command *cmd);

void cli_help_top(void);
void cli_help_suite(const struct cli_suite *s);
void cli_help_command(const struct cli_command *cmd);
void cli_print_completion(void); /* completion.c: a script for bash */
/* Commands of a suite whose name or sentence has `word` in it. */
int cli_help_apropos(const struct cli_suite *s, const char *word);
