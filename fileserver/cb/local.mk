# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/cb/libcb.a
fileserver_cb_libcb_a_SOURCES = \
	%reldir%/cb.h %reldir%/cb_break.c %reldir%/cb_client.c %reldir%/cb_host.c %reldir%/cb_internal.h \
	%reldir%/cb_keep.c %reldir%/cb_meet.c %reldir%/cb_table.c %reldir%/cb_table.h %reldir%/cb_wire.c \
	%reldir%/cb_wire.h
