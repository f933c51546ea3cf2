/* SPDX-License-Identifier: BSD-2-Clause
 * The handlers that commands.def names. */
#pragma once
#include "cell/cli/cli.h"

#define SUITE(name, help)
#define COMMAND(suite, name, aliases, run, help, examples, ...) int run(struct cli *c);
#include "cell/cli/commands.def"
#undef SUITE
#undef COMMAND
