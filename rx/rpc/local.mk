# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/rpc/librpc.a
rx_rpc_librpc_a_SOURCES = \
	%reldir%/client.c %reldir%/dispatch.c %reldir%/engine.c %reldir%/engine.h %reldir%/local.c %reldir%/rpc.h \
	%reldir%/queue.c %reldir%/rxstats.c %reldir%/rxstats.def %reldir%/rxstats.h %reldir%/rxstats.rpc %reldir%/stream.c %reldir%/stream.h
