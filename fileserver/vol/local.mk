# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/vol/libvol.a
fileserver_vol_libvol_a_SOURCES = fileserver/volserver.h %reldir%/dump.h %reldir%/dump_read.c \
	%reldir%/dump_write.c %reldir%/vol.h %reldir%/vol_clone.c %reldir%/vol_dump.c %reldir%/vol_handlers.h \
	%reldir%/vol_list.c %reldir%/vol_procs.c %reldir%/vol_restore.c %reldir%/vol_trans.c \
	%reldir%/vol_trans.h
