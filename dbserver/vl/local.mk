# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += dbserver/vl/libvl.a
dbserver_vl_libvl_a_SOURCES = 
