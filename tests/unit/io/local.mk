# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/io/test_udp
TESTS += tests/unit/io/test_udp
tests_unit_io_test_udp_SOURCES = %reldir%/test_udp.c
tests_unit_io_test_udp_LDADD = $(LIBS_TEST) $(LIBS_RX) $(CRYPTO_LIBS)
