# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/cb/libcb.a
fileserver_cb_libcb_a_SOURCES = 
