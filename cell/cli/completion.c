/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The completion script for bash, from the table: commands, their options, and values by what they are. */
#include "cell/base/mem.h"
#include "cell/cli/parse.h"

#include <stdio.h>
#include <string.h>

/* How bash finds values of this kind: a word for the script below, or the words themselves ("a|b"). */
static const char *kind_of(const struct cli_arg *a)
{
	static const struct {
		const char *what, *kind;
	} kinds[] = {{"FILE", "@files"}, {"DIR/FILE", "@files"}, {"CELL/PATH", "@files"}, {"PATH", "@files"}, {"DIR", "@dirs"},
		{"SERVER", "@hosts"}, {"HOST", "@hosts"}};
	if (!a->what)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].what, a->what) == 0)
			return kinds[i].kind;
	return strchr(a->what, '|') && !strchr(a->what, ' ') ? a->what : "@none";
}

static const char *dash(const struct cli_command *cmd) { return *cmd->suite ? "-" : "--"; }

static void put_names(const char *suite)
{
	for (size_t i = 0; i < cli_command_count; i++)
		if (strcmp(cli_commands[i].suite, suite) == 0)
			printf("%s ", cli_commands[i].name);
	for (size_t i = 0; !*suite && i < cli_suite_count; i++)
		printf("%s ", cli_suites[i].name);
}

/* The options of a command, what is taken by position, and what follows each option. */
static void put_command(const struct cli_command *k)
{
	printf("\t'%s%s%s')\n\t\toptions='", k->suite, *k->suite ? " " : "", k->name);
	for (const struct cli_arg *a = k->args; a->name; a++)
		printf("%s%s ", dash(k), a->name);
	printf("--config --json --help' places='");
	for (const struct cli_arg *a = k->args; a->name; a++)
		if (a->kind == CLI_ONE || a->kind == CLI_LIST)
			printf("%s%s ", kind_of(a), a->kind == CLI_LIST ? "+" : "");
	printf("'\n\t\tcase $prev in\n");
	for (const struct cli_arg *a = k->args; a->name; a++)
		if (a->kind != CLI_FLAG && a->letter)
			printf("\t\t-%s|--%s|-%c) value='%s';;\n", a->name, a->name, a->letter, kind_of(a));
		else if (a->kind != CLI_FLAG)
			printf("\t\t-%s|--%s) value='%s';;\n", a->name, a->name, kind_of(a));
	printf("\t\tesac;;\n");
}

void cli_print_completion(void)
{
	printf("# SPDX-License-Identifier: BSD-2-Clause\n"
	       "# bash completion for afscell, made by: afscell help --completion\n"
	       "_afscell()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} key=\"${COMP_WORDS[1]-}\"\n"
	       "\tlocal words= options= places= value= at=2 i\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tkey=\n\t\twords='");
	put_names("");
	printf("'\n\tfi\n\tcase $key in\n");
	for (size_t i = 0; i < cli_suite_count; i++) {
		printf("\t%s)\n\t\tif [ \"$COMP_CWORD\" -eq 2 ]; then\n\t\t\twords='", cli_suites[i].name);
		put_names(cli_suites[i].name);
		printf("help apropos'\n\t\telse\n\t\t\tkey=\"$key ${COMP_WORDS[2]}\" at=3\n\t\tfi\n\t\t;;\n");
	}
	printf("\tesac\n\tcase $key in\n");
	for (size_t i = 0; i < cli_command_count; i++)
		put_command(&cli_commands[i]);
	printf("\tesac\n"
	       "\tcase $prev in --config|-config) value=@files;; esac\n"
	       "\tif [ -n \"$words\" ]; then\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tif [ \"${cur#-}\" != \"$cur\" ]; then\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tif [ -z \"$value\" ]; then # by position: the words before that are no options\n"
	       "\t\tset -- $places\n"
	       "\t\tfor ((i = at; i < COMP_CWORD; i++)); do\n"
	       "\t\t\t[ \"${COMP_WORDS[i]#-}\" != \"${COMP_WORDS[i]}\" ] && continue\n"
	       "\t\t\t[ $# -gt 1 ] || [ \"${1%%+}\" = \"${1-}\" ] && shift\n"
	       "\t\tdone\n"
	       "\t\tvalue=${1%%+}\n"
	       "\tfi\n"
	       "\tcase $value in\n"
	       "\t@files) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); compopt -o filenames 2>/dev/null;;\n"
	       "\t@dirs) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); compopt -o filenames 2>/dev/null;;\n"
	       "\t@hosts) mapfile -t COMPREPLY < <(compgen -A hostname -- \"$cur\");;\n"
	       "\t@none|'') COMPREPLY=();;\n"
	       "\t*) mapfile -t COMPREPLY < <(compgen -W \"${value//|/ }\" -- \"$cur\");;\n"
	       "\tesac\n}\n"
	       "complete -F _afscell afscell\n");
}
