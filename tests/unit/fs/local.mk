# SPDX-License-Identifier: BSD-2-Clause
FS_TESTS = tests/unit/fs/test_access tests/unit/fs/test_acl_text tests/unit/fs/test_handlers \
	tests/unit/fs/test_table tests/unit/fs/test_wire
check_PROGRAMS += $(FS_TESTS)
TESTS += $(FS_TESTS)
LIBS_FS = fileserver/fs/libfs.a fileserver/cb/libcb.a fileserver/store/libstore.a $(LIBS_PROTO) \
	rx/sec/librxsec.a $(LIBS_DB) $(SQLITE_LIBS) $(CRYPTO_LIBS)
tests_unit_fs_test_access_SOURCES = %reldir%/test_access.c $(FAKE_CLIENTS)
tests_unit_fs_test_access_LDADD = $(LIBS_TEST) $(LIBS_FS)
tests_unit_fs_test_acl_text_SOURCES = %reldir%/test_acl_text.c
tests_unit_fs_test_acl_text_LDADD = $(LIBS_TEST) $(LIBS_FS)
tests_unit_fs_test_handlers_SOURCES = %reldir%/test_handlers.c %reldir%/rig.c %reldir%/rig.h $(FAKE_CLIENTS)
tests_unit_fs_test_handlers_LDADD = $(LIBS_TEST) $(LIBS_FS)
tests_unit_fs_test_wire_SOURCES = %reldir%/test_wire.c tests/lib/fake_clients.c tests/lib/fake_clients.h
tests_unit_fs_test_wire_LDADD = $(LIBS_TEST) fileserver/fs/libfs.a fileserver/cb/libcb.a \
	fileserver/store/libstore.a $(LIBS_RX) $(LIBS_DB) $(SQLITE_LIBS) $(CRYPTO_LIBS)
tests_unit_fs_test_table_SOURCES = %reldir%/test_table.c %reldir%/rig.c %reldir%/rig.h $(FAKE_CLIENTS)
tests_unit_fs_test_table_LDADD = $(LIBS_TEST) $(LIBS_FS)
