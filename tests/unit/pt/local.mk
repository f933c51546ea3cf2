# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/pt/test_pt
TESTS += tests/unit/pt/test_pt
tests_unit_pt_test_pt_SOURCES = %reldir%/test_pt.c tests/lib/dbcall.h tests/unit/db/failmem.h
tests_unit_pt_test_pt_LDADD = $(LIBS_TEST) $(LIBS_DBSERVER)
