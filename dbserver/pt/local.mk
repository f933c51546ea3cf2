# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += dbserver/pt/libpt.a
dbserver_pt_libpt_a_SOURCES = 
