# SPDX-License-Identifier: BSD-2-Clause
LIBS_CLIENT = client/fuse/libfuse.a client/cm/libcm.a client/cache/libcache.a
LIBS_RIG = $(LIBS_TEST) $(LIBS_CLIENT) fileserver/fs/libfs.a fileserver/cb/libcb.a fileserver/store/libstore.a \
	dbserver/vl/libvl.a dbserver/ubik/libubik.a cell/keys/libkeys.a cell/db/libdb.a $(LIBS_RX) \
	$(SQLITE_LIBS) $(FUSE_LIBS) $(KRB5_LIBS) $(CRYPTO_LIBS)
RIG = %reldir%/rig.c %reldir%/rig.h tests/lib/fake_clients.c tests/lib/fake_clients.h
check_PROGRAMS += tests/unit/fuse/rigrun
tests_unit_fuse_rigrun_SOURCES = %reldir%/rigrun.c $(RIG)
tests_unit_fuse_rigrun_LDADD = $(LIBS_RIG)
FUSE_TESTS = tests/unit/fuse/test_files tests/unit/fuse/test_two tests/unit/fuse/test_model \
	tests/unit/fuse/direct_files tests/unit/fuse/direct_two tests/unit/fuse/direct_model
check_PROGRAMS += $(FUSE_TESTS)
TESTS += $(FUSE_TESTS)
FAR = %reldir%/far.c %reldir%/far.h $(RIG)
tests_unit_fuse_test_files_SOURCES = %reldir%/test_files.c $(FAR)
tests_unit_fuse_test_files_LDADD = $(LIBS_RIG)
tests_unit_fuse_test_two_SOURCES = %reldir%/test_two.c $(FAR)
tests_unit_fuse_test_two_LDADD = $(LIBS_RIG)
tests_unit_fuse_test_model_SOURCES = %reldir%/test_model.c $(FAR)
tests_unit_fuse_test_model_LDADD = $(LIBS_RIG)
# the same without the network between them
tests_unit_fuse_direct_files_SOURCES = %reldir%/test_files.c $(FAR)
tests_unit_fuse_direct_files_CPPFLAGS = $(AM_CPPFLAGS) -DRIG_DIRECT=true
tests_unit_fuse_direct_files_LDADD = $(LIBS_RIG)
tests_unit_fuse_direct_two_SOURCES = %reldir%/test_two.c $(FAR)
tests_unit_fuse_direct_two_CPPFLAGS = $(AM_CPPFLAGS) -DRIG_DIRECT=true
tests_unit_fuse_direct_two_LDADD = $(LIBS_RIG)
tests_unit_fuse_direct_model_SOURCES = %reldir%/test_model.c $(FAR)
tests_unit_fuse_direct_model_CPPFLAGS = $(AM_CPPFLAGS) -DRIG_DIRECT=true
tests_unit_fuse_direct_model_LDADD = $(LIBS_RIG)
