# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += client/fuse/libfuse.a
client_fuse_libfuse_a_SOURCES = \
	%reldir%/dirs.c %reldir%/flock.c %reldir%/front.h %reldir%/inval.c %reldir%/loop.c %reldir%/mount.c \
	%reldir%/node.c %reldir%/ops.c %reldir%/xattr.c
