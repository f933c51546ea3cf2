# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += dbserver/gk/libgk.a
dbserver_gk_libgk_a_SOURCES = %reldir%/negotiate.c dbserver/negotiate.h
