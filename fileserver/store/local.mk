# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/store/libstore.a
fileserver_store_libstore_a_SOURCES = %reldir%/store.h %reldir%/internal.h %reldir%/schema.h \
	%reldir%/schema.c %reldir%/dir.h %reldir%/dir.c %reldir%/acl.c %reldir%/check.c %reldir%/clone.c %reldir%/content.c \
	%reldir%/fds.c %reldir%/header.c %reldir%/names.h %reldir%/names.c %reldir%/numbers.c \
	%reldir%/quota.c %reldir%/rename.c %reldir%/stage.c %reldir%/status.c %reldir%/store.c %reldir%/sums.c \
	%reldir%/tree.c %reldir%/tx.c %reldir%/vnode.c %reldir%/volume.c %reldir%/write.c
