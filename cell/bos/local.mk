# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/bos/libbos.a
cell_bos_libbos_a_SOURCES = %reldir%/bos.h %reldir%/files.c %reldir%/handlers.h %reldir%/inside.h %reldir%/may.c %reldir%/procs.c \
	%reldir%/run.c %reldir%/state.c
