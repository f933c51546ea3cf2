# SPDX-License-Identifier: BSD-2-Clause
check_LIBRARIES += tests/unit/core/libwire.a
tests_unit_core_libwire_a_SOURCES = %reldir%/wire.c %reldir%/wire.h
tests_unit_core_libwire_a_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
LIBS_WIRE = tests/unit/core/libwire.a $(LIBS_SIM)

check_PROGRAMS += tests/unit/core/test_server
TESTS += tests/unit/core/test_server
tests_unit_core_test_server_SOURCES = %reldir%/test_server.c
tests_unit_core_test_server_LDADD = $(LIBS_WIRE)

check_PROGRAMS += tests/unit/core/test_client
TESTS += tests/unit/core/test_client
tests_unit_core_test_client_SOURCES = %reldir%/test_client.c
tests_unit_core_test_client_LDADD = $(LIBS_WIRE)

check_PROGRAMS += tests/unit/core/test_buf
TESTS += tests/unit/core/test_buf
tests_unit_core_test_buf_SOURCES = %reldir%/test_buf.c
tests_unit_core_test_buf_LDADD = $(LIBS_TEST) $(LIBS_CORE)

check_PROGRAMS += tests/unit/core/test_bounds
TESTS += tests/unit/core/test_bounds
tests_unit_core_test_bounds_SOURCES = %reldir%/test_bounds.c
tests_unit_core_test_bounds_LDADD = $(LIBS_WIRE)
