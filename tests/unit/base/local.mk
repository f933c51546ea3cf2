# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/base/test_text
TESTS += tests/unit/base/test_text
tests_unit_base_test_text_SOURCES = %reldir%/test_text.c
tests_unit_base_test_text_LDADD = $(LIBS_TEST) $(LIBS_BASE)
