# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/vl/test_vl
TESTS += tests/unit/vl/test_vl
tests_unit_vl_test_vl_SOURCES = %reldir%/test_vl.c tests/lib/dbcall.h tests/unit/db/failmem.h
tests_unit_vl_test_vl_LDADD = $(LIBS_TEST) $(LIBS_DBSERVER)
check_PROGRAMS += tests/unit/vl/test_rows
TESTS += tests/unit/vl/test_rows
tests_unit_vl_test_rows_SOURCES = %reldir%/test_rows.c
tests_unit_vl_test_rows_LDADD = $(LIBS_TEST) $(LIBS_PROTO)
