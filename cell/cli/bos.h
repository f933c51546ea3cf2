/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between bos.c, which changes, and bos_show.c, which shows. */
#pragma once
#include "cell/admin/calls.h"
#include "cell/cli/suite.h"

#include <stdio.h>

enum { BOS_ARENA = 1 << 20 };

/* One command at work. */
struct bos {
	struct cli *c;
	struct admin *a;
	struct rpc_conn *conn;
	const char *server; /* as named */
	struct arena arena;
	int status; /* exit status so far */
};
int bos_begin(struct bos *b, struct cli *c);
void bos_cleanup(struct bos *b);
/* "...: why"; remembers the exit status, which is the low part of the overseer's code as with stock bos. */
[[gnu::format(printf, 3, 4)]] void bos_failed(struct bos *b, afs_err err, const char *fmt, ...);

/* When something is done each time; text as people write and stock bos prints it.  `out` holds 64. */
bool bos_time_parse(const char *text, struct bozo_netKTime *out);
const char *bos_time_text(char *out, const struct bozo_netKTime *t);
/* Writes a log of the server to `f`, without NULs. */
afs_err bos_log(struct bos *b, const char *name, FILE *f);
