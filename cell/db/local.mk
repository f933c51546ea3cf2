# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/db/libdb.a
cell_db_libdb_a_SOURCES = %reldir%/memo.c %reldir%/memo.h %reldir%/db.c %reldir%/db.h %reldir%/vfs.c %reldir%/vfs.h
