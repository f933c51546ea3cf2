# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/fs/libfs.a
fileserver_fs_libfs_a_SOURCES = \
	%reldir%/acl_text.c %reldir%/acl_text.h %reldir%/fs_access.c %reldir%/fs_access.h %reldir%/fs_acl.c \
	%reldir%/fs_bulk.c %reldir%/fs_data.c %reldir%/fs_dir.c %reldir%/fs_handlers.h \
	%reldir%/fs_internal.h %reldir%/fs_lock.c %reldir%/fs_misc.c %reldir%/fs_service.c \
	%reldir%/fs_status.c %reldir%/fs_xstat.c %reldir%/fs_xstat.h %reldir%/stats.def fileserver/fileserver.h fileserver/ports.h
