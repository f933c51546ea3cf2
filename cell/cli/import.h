/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of import.  What is learned of a cell is one JSON object:
 *   {"cell", "users": [{"name", "id"}], "groups": [{"name", "id", "owner", "members": [name]}],
 *    "administrators": [name], "volumes": [{"name", "id", "partition", "quota_kib", "sites": [{"server",
 *    "partition", "type"}], "mount"}], "mounts": [{"path", "volume", "rw"}], "notes": [text]} */
#pragma once
#include "cell/admin/volume.h"
#include "cell/cli/suite.h"

struct import {
	struct cli *c;
	struct admin *a;
	json_t *all;
};

/* Something that the copy will not have. */
[[gnu::format(printf, 2, 3)]] void import_note(struct import *m, const char *fmt, ...);
/* The volume's object in all["volumes"], or NULL. */
json_t *import_volume(const struct import *m, const char *name);

/* Follows mount points from the root of the cell, `depth` directories below the root of each volume; adds
 * "mount" and "mounts".  What may not be read is noted.  Errors of the cache manager. */
afs_err import_mounts(struct import *m, unsigned depth);
