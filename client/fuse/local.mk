# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += client/fuse/libfuse.a
client_fuse_libfuse_a_SOURCES = 
