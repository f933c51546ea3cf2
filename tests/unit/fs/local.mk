# SPDX-License-Identifier: BSD-2-Clause
FS_TESTS = tests/unit/fs/test_acl_text
check_PROGRAMS += $(FS_TESTS)
TESTS += $(FS_TESTS)
LIBS_FS = fileserver/fs/libfs.a fileserver/cb/libcb.a fileserver/store/libstore.a $(LIBS_PROTO) \
	rx/sec/librxsec.a $(LIBS_DB) $(SQLITE_LIBS) $(CRYPTO_LIBS)
tests_unit_fs_test_acl_text_SOURCES = %reldir%/test_acl_text.c
tests_unit_fs_test_acl_text_LDADD = $(LIBS_TEST) $(LIBS_FS)
