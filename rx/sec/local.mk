# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/sec/librxsec.a
rx_sec_librxsec_a_SOURCES = %reldir%/security.h %reldir%/rxkad.h
