# SPDX-License-Identifier: BSD-2-Clause
CM_TESTS = tests/unit/cm/test_dir
check_PROGRAMS += $(CM_TESTS)
TESTS += $(CM_TESTS)
tests_unit_cm_test_dir_SOURCES = %reldir%/test_dir.c
tests_unit_cm_test_dir_LDADD = $(LIBS_TEST) client/cm/libcm.a client/cache/libcache.a $(LIBS_RX)
