# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/realm/librealm.a
cell_realm_librealm_a_SOURCES = \
	%reldir%/conf.c %reldir%/db.c %reldir%/db.h %reldir%/kdc.c %reldir%/realm.c %reldir%/realm.h \
	%reldir%/service.c %reldir%/trust.c %reldir%/users.c
