# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/realm/librealm.a
cell_realm_librealm_a_SOURCES = %reldir%/realm.h
