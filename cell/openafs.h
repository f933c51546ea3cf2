/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A directory from which stock OpenAFS tools run against this cell: ThisCell, CellServDB, and in
 * server/ the same with UserList, KeyFileExt and rxkad.keytab, so that -localauth works too. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/conf/conf.h"

/* Makes `dir` when it is missing, and replaces the files.  Reads the cell's keytab: who may not
 * gets AFS_EACCESS, and nothing is written. */
afs_err openafs_write(const struct conf *conf, const char *dir, struct buf *why);
