# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/vol/libvol.a
fileserver_vol_libvol_a_SOURCES = %reldir%/dump.h %reldir%/dump_read.c %reldir%/dump_write.c
