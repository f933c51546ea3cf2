# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/xdr/test_xdr
TESTS += tests/unit/xdr/test_xdr
tests_unit_xdr_test_xdr_SOURCES = %reldir%/test_xdr.c %reldir%/sample.def
tests_unit_xdr_test_xdr_LDADD = $(LIBS_TEST) $(LIBS_XDR)
