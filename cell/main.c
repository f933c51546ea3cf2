/* SPDX-License-Identifier: BSD-2-Clause
 * The command line, nothing else. */
#include "cell/cli/cli.h"

int main(int argc, char **argv) { return cli_main(argc, argv); }
