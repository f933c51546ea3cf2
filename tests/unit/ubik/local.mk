# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/ubik/test_ubik
TESTS += tests/unit/ubik/test_ubik
tests_unit_ubik_test_ubik_SOURCES = %reldir%/test_ubik.c tests/lib/dbcall.h
tests_unit_ubik_test_ubik_LDADD = $(LIBS_TEST) $(LIBS_DBSERVER)
check_PROGRAMS += tests/unit/ubik/test_threads
TESTS += tests/unit/ubik/test_threads
tests_unit_ubik_test_threads_SOURCES = %reldir%/test_threads.c tests/lib/dbcall.h
tests_unit_ubik_test_threads_LDADD = $(LIBS_TEST) $(LIBS_DBSERVER)
check_PROGRAMS += tests/unit/ubik/test_bad_input
TESTS += tests/unit/ubik/test_bad_input
tests_unit_ubik_test_bad_input_SOURCES = %reldir%/test_bad_input.c tests/lib/dbcall.h
tests_unit_ubik_test_bad_input_LDADD = $(LIBS_TEST) $(LIBS_DBSERVER)
