# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/vol/test_dump tests/unit/vol/test_trans
TESTS += tests/unit/vol/test_dump tests/unit/vol/test_trans
tests_unit_vol_test_dump_SOURCES = %reldir%/test_dump.c
tests_unit_vol_test_dump_LDADD = $(LIBS_TEST) fileserver/vol/libvol.a $(LIBS_PROTO)
tests_unit_vol_test_trans_SOURCES = %reldir%/test_trans.c
tests_unit_vol_test_trans_LDADD = $(LIBS_TEST) fileserver/vol/libvol.a $(LIBS_PROTO)
check_PROGRAMS += tests/unit/vol/test_calls
TESTS += tests/unit/vol/test_calls
tests_unit_vol_test_calls_SOURCES = %reldir%/test_calls.c
tests_unit_vol_test_calls_LDADD = $(LIBS_TEST) $(LIBS_PROTO)
