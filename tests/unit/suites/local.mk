# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/suites/test_admin
TESTS += tests/unit/suites/test_admin
tests_unit_suites_test_admin_SOURCES = %reldir%/test_admin.c
tests_unit_suites_test_admin_LDADD = $(LIBS_TEST) $(LIBS_CELL)
check_PROGRAMS += tests/unit/suites/call
tests_unit_suites_call_SOURCES = %reldir%/call.c
tests_unit_suites_call_LDADD = $(LIBS_CELL)
check_PROGRAMS += tests/unit/suites/negotiate
tests_unit_suites_negotiate_SOURCES = %reldir%/negotiate.c
tests_unit_suites_negotiate_LDADD = $(LIBS_CELL)
check_PROGRAMS += tests/unit/suites/test_negotiate
TESTS += tests/unit/suites/test_negotiate
tests_unit_suites_test_negotiate_SOURCES = %reldir%/test_negotiate.c
tests_unit_suites_test_negotiate_LDADD = $(LIBS_TEST) $(LIBS_CELL)
