/* SPDX-License-Identifier: BSD-2-Clause
 * Reads err.def three ways. */
#include "cell/base/err.h"

#include <errno.h>
#include <stddef.h>

struct err_row {
	const char *name, *text;
	int eno, http;
};

static const struct err_row rows[AFS_ERR_COUNT] = {
	[AFS_OK] = {"OK", "success", 0, 200},
#define ERR(n, t, e, h) [AFS_E##n] = {#n, t, e, h},
#include "cell/base/err.def"
#undef ERR
};

static const struct err_row *row_of(afs_err err)
{
	static const struct err_row unknown = {"UNKNOWN", "unknown error", EIO, 500};
	return (unsigned)err < AFS_ERR_COUNT ? &rows[err] : &unknown;
}

const char *afs_err_text(afs_err err) { return row_of(err)->text; }
const char *afs_err_name(afs_err err) { return row_of(err)->name; }
int afs_err_errno(afs_err err) { return row_of(err)->eno; }
int afs_err_http(afs_err err) { return row_of(err)->http; }

afs_err afs_err_from_errno(int eno)
{
	if (eno == 0)
		return AFS_OK;
	/* The first row with this errno is the plain one: err.def lists general errors first. */
	for (size_t i = 1; i < AFS_ERR_COUNT; i++)
		if (rows[i].eno == eno)
			return (afs_err)i;
	return AFS_EIO;
}
