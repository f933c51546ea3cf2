# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/realm/test_realm
TESTS += tests/unit/realm/test_realm
tests_unit_realm_test_realm_SOURCES = %reldir%/test_realm.c
tests_unit_realm_test_realm_LDADD = $(LIBS_TEST) cell/realm/librealm.a $(LIBS_KEYS) $(KADMSRV_LIBS)
