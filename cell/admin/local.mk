# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/admin/libadmin.a
cell_admin_libadmin_a_SOURCES = \
	%reldir%/admin.h %reldir%/calls.h %reldir%/codes.c %reldir%/codes.def %reldir%/host.c %reldir%/inside.h \
	%reldir%/keyfile.c %reldir%/manager.c %reldir%/manager.h %reldir%/negotiate.c %reldir%/negotiate.h %reldir%/session.c %reldir%/session.h %reldir%/token.c %reldir%/vldb.c %reldir%/vol_change.c %reldir%/vol_clone.c \
	%reldir%/vol_copy.c %reldir%/vol_dump.c %reldir%/volserver.c %reldir%/volume.h \
	%reldir%/where.c
