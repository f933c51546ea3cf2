# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/rpc/test_rpc
TESTS += tests/unit/rpc/test_rpc
tests_unit_rpc_test_rpc_SOURCES = %reldir%/test_rpc.c %reldir%/sample.c %reldir%/sample.def %reldir%/sample.h %reldir%/sample.rpc
tests_unit_rpc_test_rpc_LDADD = $(LIBS_TEST) $(LIBS_RX) $(CRYPTO_LIBS)
check_PROGRAMS += tests/unit/rpc/test_rxstats
TESTS += tests/unit/rpc/test_rxstats
tests_unit_rpc_test_rxstats_SOURCES = %reldir%/test_rxstats.c %reldir%/sample.c %reldir%/sample.def %reldir%/sample.h %reldir%/sample.rpc
tests_unit_rpc_test_rxstats_LDADD = $(LIBS_TEST) $(LIBS_RX) $(CRYPTO_LIBS)
