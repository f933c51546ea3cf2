# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/io/test_udp
TESTS += tests/unit/io/test_udp
tests_unit_io_test_udp_SOURCES = %reldir%/test_udp.c
tests_unit_io_test_udp_LDADD = $(LIBS_TEST) $(LIBS_RX) $(CRYPTO_LIBS)
check_PROGRAMS += tests/unit/io/test_udp_old
TESTS += tests/unit/io/test_udp_old
tests_unit_io_test_udp_old_SOURCES = %reldir%/test_udp.c
tests_unit_io_test_udp_old_CPPFLAGS = $(AM_CPPFLAGS) -DOLD_KERNEL
tests_unit_io_test_udp_old_LDADD = $(LIBS_TEST) $(LIBS_RX) $(CRYPTO_LIBS)
