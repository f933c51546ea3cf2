/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The one error type.  Rows in err.def; abort codes live in cell/proto/abort.def, errnos and
 * HTTP statuses beside the rows.  An afs_err that is dropped is a compiler warning. */
#pragma once

typedef enum [[nodiscard]] afs_err {
	AFS_OK = 0,
#define ERR(name, text, eno, http) AFS_E##name,
#include "cell/base/err.def"
#undef ERR
	AFS_ERR_COUNT
} afs_err;

/* A sentence fragment for a person, never NULL. */
const char *afs_err_text(afs_err err);
/* "NOENT"; never NULL.  For logs and JSON. */
const char *afs_err_name(afs_err err);
/* The nearest errno, 0 for AFS_OK. */
int afs_err_errno(afs_err err);
/* The HTTP status, 200 for AFS_OK. */
int afs_err_http(afs_err err);
/* The afs_err nearest to an errno of this system. */
afs_err afs_err_from_errno(int eno);

/* Return the error upward.  The only macro that hides a return. */
#define TRY(expr)                                                                                  \
	do {                                                                                       \
		afs_err try_err_ = (expr);                                                         \
		if (try_err_ != AFS_OK)                                                            \
			return try_err_;                                                           \
	} while (0)
