# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/sec/librxsec.a
rx_sec_librxsec_a_SOURCES = \
	%reldir%/code.c %reldir%/etype.c %reldir%/etype.h %reldir%/fcrypt.c %reldir%/fcrypt.def %reldir%/fcrypt.h %reldir%/fcrypt_avx2.c \
	%reldir%/fcrypt_wide.h %reldir%/kdf.c \
	%reldir%/null.c %reldir%/rxgk.c %reldir%/rxgk.h %reldir%/rxgk_conn.h %reldir%/rxgk_packet.c \
	%reldir%/rxkad.c %reldir%/rxkad.h %reldir%/rxkad_conn.h %reldir%/rxkad_packet.c \
	%reldir%/security.h %reldir%/token.c %reldir%/token.h
rx_sec_librxsec_a_CFLAGS = $(AM_CFLAGS) -Wconversion
