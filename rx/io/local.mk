# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/io/librxio.a
rx_io_librxio_a_SOURCES = %reldir%/port.h
