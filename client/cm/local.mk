# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += client/cm/libcm.a
client_cm_libcm_a_SOURCES = \
	%reldir%/access.c %reldir%/acl.c %reldir%/callback.c %reldir%/cells.c %reldir%/change.c %reldir%/cm.c %reldir%/cm.h \
	%reldir%/debug.c %reldir%/debug.h %reldir%/dir.c %reldir%/dir.h %reldir%/file.c %reldir%/ident.c %reldir%/jobs.c %reldir%/knobs.c %reldir%/lock.c \
	%reldir%/name.c %reldir%/recover.c %reldir%/status.c %reldir%/store.c %reldir%/stubs.h %reldir%/try.c %reldir%/verbs.c \
	%reldir%/vnode.c %reldir%/volume.c
