# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/base/libbase.a
cell_base_libbase_a_SOURCES = \
	%reldir%/buf.c %reldir%/buf.h %reldir%/clk.c %reldir%/clk.h %reldir%/err.c %reldir%/err.def \
	%reldir%/err.h %reldir%/list.h %reldir%/lockrank.h %reldir%/log.c %reldir%/log.h \
	%reldir%/map.c %reldir%/map.h %reldir%/mem.c %reldir%/mem.h %reldir%/mtx.c %reldir%/mtx.h \
	%reldir%/rand.c %reldir%/rand.h %reldir%/text.c %reldir%/text.h
