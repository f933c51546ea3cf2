# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/keys/libkeys.a
cell_keys_libkeys_a_SOURCES = \
	%reldir%/gk.c %reldir%/gk.h %reldir%/der.c %reldir%/der.h %reldir%/keys.c %reldir%/keys.h %reldir%/name.c %reldir%/openafs.c \
	%reldir%/set.h %reldir%/ticket.c %reldir%/ticket.h %reldir%/token.c %reldir%/v4.c
