# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/core/librxcore.a
rx_core_librxcore_a_SOURCES = %reldir%/core.h %reldir%/stats.def %reldir%/inside.h \
	%reldir%/ack.c %reldir%/buf.c %reldir%/call.c %reldir%/congestion.c %reldir%/conn.c \
	%reldir%/debug.c %reldir%/endpoint.c %reldir%/loss.c %reldir%/packet.c %reldir%/peer.c %reldir%/probe.c %reldir%/recv.c \
	%reldir%/rtt.c %reldir%/send.c %reldir%/timer.c
rx_core_librxcore_a_CFLAGS = $(AM_CFLAGS) -Wconversion
