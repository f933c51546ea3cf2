/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between pts.c, which changes, and pts_show.c, which shows. */
#pragma once
#include "cell/admin/calls.h"
#include "cell/cli/suite.h"

enum { PTS_ARENA = 64 << 20 };

/* One command at work. */
struct pts {
	struct cli *c;
	struct admin *a;
	struct arena arena; /* of results */
	bool failed, stop;  /* something failed; and -force was not given */
};
struct pts_who {
	const char *text; /* as typed */
	int32_t id;
	char name[AFS_PRNAME_MAX + 2]; /* decimal when nobody has the id */
	bool found;
};

int pts_begin(struct pts *p, struct cli *c);
int pts_end(struct pts *p); /* the exit status */
void pts_cleanup(struct pts *p);
/* "...: why".  Gives true when the command is to end. */
[[gnu::format(printf, 3, 4)]] bool pts_failed(struct pts *p, afs_err err, const char *fmt, ...);

/* Ids and names of what was typed; the caller's (mem_free).  Unknown ones are reported. */
afs_err pts_lookup(struct pts *p, const char *row, struct pts_who **out, size_t *n);
afs_err pts_lookup_one(struct pts *p, const char *text, struct pts_who *out);
/* Names for ids, in the arena. */
afs_err pts_names(struct pts *p, const int32_t *ids, uint32_t n, struct prname **out);
