/* SPDX-License-Identifier: BSD-2-Clause
 * The rows of commands.def as arrays. */
#include "cell/cli/cli.h"

#include "cell/base/mem.h"
#include "cell/cli/handlers.h"

#define FLAG(name, letter, help) {name, letter, CLI_FLAG, false, NULL, help},
#define OPTION(name, letter, what, help) {name, letter, CLI_OPTION, false, what, help},
#define ONE(name, what, help) {name, 0, CLI_ONE, false, what, help},
#define NEED(name, what, help) {name, 0, CLI_ONE, true, what, help},
#define LIST(name, what, help) {name, 0, CLI_LIST, false, what, help},
#define NEEDLIST(name, what, help) {name, 0, CLI_LIST, true, what, help},

#define SUITE(name, help)
#define ROW(nature, suite, name, aliases, run, help, examples, ...)                                \
	{suite, name, aliases, run, help, examples, (const struct cli_arg[]){__VA_ARGS__{}}, nature},
#define SHOW(...) ROW(CLI_SHOWS, __VA_ARGS__)
#define COMMAND(...) ROW(CLI_CHANGES, __VA_ARGS__)
#define LOCAL(...) ROW(CLI_LOCAL, __VA_ARGS__)
const struct cli_command cli_commands[] = {
#include "cell/cli/commands.def"
};
const size_t cli_command_count = ARRAY_SIZE(cli_commands);
#undef SUITE
#undef SHOW
#undef COMMAND
#undef LOCAL

#define SUITE(name, help) {name, help},
#define SHOW(...)
#define COMMAND(...)
#define LOCAL(...)
const struct cli_suite cli_suites[] = {
#include "cell/cli/commands.def"
};
const size_t cli_suite_count = ARRAY_SIZE(cli_suites);
