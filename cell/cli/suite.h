/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the suites vos, pts and bos share on the command line. */
#pragma once
#include "cell/admin/admin.h"
#include "cell/cli/cli.h"

/* Opens the cell that the arguments, the configuration and the environment name:
 *   -config DIR, or $AFSCONF     a directory as OpenAFS has it
 *   -config FILE, as every command finds it     the cell of an afscell configuration
 *   else /etc/openafs
 * and proves the caller as -localauth and -noauth say.  Needs the rows cell, noauth, localauth.
 * Problems are printed: CLI_OK, CLI_FAILED, CLI_USAGE.  `names`: print names of servers. */
int suite_open(struct cli *c, bool names, struct admin **out);

/* The cell of `token`, whose holder asks; and a cell (NULL: the local one), asked by nobody.  Need no rows. */
int suite_open_as(struct cli *c, const struct keys_token *token, struct admin **out);
int suite_open_cell(struct cli *c, const char *cell, struct admin **out);
/* The same, but a cell that is not known is only told in `why`. */
int suite_find_cell(struct cli *c, const char *cell, struct admin **out, struct buf *why);

/* "... : <why the last call failed>"; gives CLI_FAILED. */
[[gnu::format(printf, 4, 5)]] int suite_fail(struct cli *c, struct admin *a, afs_err err, const char *fmt, ...);

/* "Mon Nov 30 21:57:26 2026", in the local time zone; `out` holds 32. */
const char *suite_time(char *out, int64_t sec);
#define CTIME(sec) suite_time((char[32]){0}, (sec))

/* Splits a line into at most `cap` words, in place; quotes keep blanks.  The number of words, or -1: a
 * quote is not closed, or too many. */
int suite_words(char *line, char **out, int cap);
