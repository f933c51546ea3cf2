# SPDX-License-Identifier: BSD-2-Clause
KEYS_TESTS = tests/unit/keys/test_der tests/unit/keys/test_gk tests/unit/keys/test_keys tests/unit/keys/test_ticket tests/unit/keys/test_token
check_PROGRAMS += $(KEYS_TESTS)
TESTS += $(KEYS_TESTS)
tests_unit_keys_test_der_SOURCES = %reldir%/test_der.c
tests_unit_keys_test_der_LDADD = $(LIBS_TEST) $(LIBS_KEYS)
tests_unit_keys_test_keys_SOURCES = %reldir%/test_keys.c
tests_unit_keys_test_keys_LDADD = $(LIBS_TEST) $(LIBS_KEYS)
tests_unit_keys_test_ticket_SOURCES = %reldir%/test_ticket.c
tests_unit_keys_test_ticket_LDADD = $(LIBS_TEST) $(LIBS_KEYS)
tests_unit_keys_test_gk_SOURCES = %reldir%/test_gk.c
tests_unit_keys_test_gk_LDADD = $(LIBS_TEST) $(LIBS_KEYS)
tests_unit_keys_test_token_SOURCES = %reldir%/test_token.c
tests_unit_keys_test_token_LDADD = $(LIBS_TEST) $(LIBS_KEYS)
