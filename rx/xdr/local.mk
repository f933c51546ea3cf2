# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/xdr/libxdr.a
rx_xdr_libxdr_a_SOURCES = \
	%reldir%/codec_pass.h %reldir%/iface.c %reldir%/iface.h %reldir%/iface_pass.h \
	%reldir%/struct_pass.h %reldir%/undef_pass.h %reldir%/xdr.c %reldir%/xdr.h
