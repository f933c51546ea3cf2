# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += fileserver/fs/libfs.a
fileserver_fs_libfs_a_SOURCES = 
