# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += dbserver/pt/libpt.a
dbserver_pt_libpt_a_SOURCES = %reldir%/pt_cell.c %reldir%/pt_may.c %reldir%/pt_name.c \
	%reldir%/pt_procs.c %reldir%/pt_sql.h %reldir%/pt_store.c %reldir%/pt_store.h %reldir%/pt_verbs.c
