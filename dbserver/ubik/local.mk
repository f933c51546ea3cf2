# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += dbserver/ubik/libubik.a
dbserver_ubik_libubik_a_SOURCES = %reldir%/ubik.c %reldir%/ubik.h
