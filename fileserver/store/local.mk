# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/store/libstore.a
fileserver_store_libstore_a_SOURCES = 
