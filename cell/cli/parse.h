/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of this folder: words into a struct cli, and what help needs. */
#pragma once
#include "cell/cli/cli.h"

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
};

void cli_fini(struct cli *c);
/* Words after the command's name.  CLI_OK or CLI_USAGE (printed). */
int cli_parse(struct cli *c, const struct cli_command *cmd, int argc, char **argv);
/* The command or NULL; `suite` "" for the top.  Sets *close to the best guess, for messages. */
const struct cli_command *cli_find(const char *suite, const char *name, const char **close);
const struct cli_suite *cli_find_suite(const char *name);
/* "afscell up" */
char *cli_full_name(const struct cli_command *cmd);

void cli_help_top(void);
void cli_help_suite(const struct cli_suite *s);
void cli_help_command(const struct cli_command *cmd);
/* Commands of a suite whose name or sentence has `word` in it.  CLI_OK, CLI_FAILED: none. */
int cli_help_apropos(const struct cli_suite *s, const char *word);
