/* SPDX-License-Identifier: BSD-2-Clause
 * The handlers that commands.def names. */
#pragma once
#include "cell/cli/cli.h"

#define SUITE(name, help)
#define HANDLER(suite, name, aliases, run, ...) int run(struct cli *c);
#define SHOW(...) HANDLER(__VA_ARGS__)
#define COMMAND(...) HANDLER(__VA_ARGS__)
#define LOCAL(...) HANDLER(__VA_ARGS__)
#include "cell/cli/commands.def"
#undef SUITE
#undef SHOW
#undef COMMAND
#undef LOCAL
#undef HANDLER
