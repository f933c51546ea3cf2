# SPDX-License-Identifier: BSD-2-Clause
check_LIBRARIES += tests/lib/libtest.a
tests_lib_libtest_a_SOURCES = %reldir%/test.c %reldir%/test.h
tests_lib_libtest_a_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
LIBS_TEST = tests/lib/libtest.a $(CMOCKA_LIBS)
