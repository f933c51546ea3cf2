# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += dbserver/vl/libvl.a
dbserver_vl_libvl_a_SOURCES = dbserver/dbserver.h %reldir%/vl_entry.c %reldir%/vl_list.c \
	%reldir%/vl_pattern.c %reldir%/vl_procs.c %reldir%/vl_server.c %reldir%/vl_sql.h \
	%reldir%/vl_store.c %reldir%/vl_store.h %reldir%/vl_verbs.c
