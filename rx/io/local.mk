# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/io/librxio.a
rx_io_librxio_a_SOURCES = \
	%reldir%/holder.c %reldir%/holder.h %reldir%/loop.c %reldir%/port.h %reldir%/udp.c %reldir%/udp.h %reldir%/workers.c %reldir%/workers.h
