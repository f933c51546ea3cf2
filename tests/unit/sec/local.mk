# SPDX-License-Identifier: BSD-2-Clause
SEC_TESTS = tests/unit/sec/test_fcrypt tests/unit/sec/test_kdf tests/unit/sec/test_rxkad tests/unit/sec/test_etype tests/unit/sec/test_rxgk
check_PROGRAMS += $(SEC_TESTS)
TESTS += $(SEC_TESTS)
tests_unit_sec_test_fcrypt_SOURCES = %reldir%/test_fcrypt.c
tests_unit_sec_test_fcrypt_LDADD = $(LIBS_TEST) $(LIBS_SEC)
tests_unit_sec_test_kdf_SOURCES = %reldir%/test_kdf.c
tests_unit_sec_test_kdf_LDADD = $(LIBS_TEST) $(LIBS_SEC)
tests_unit_sec_test_rxkad_SOURCES = %reldir%/test_rxkad.c
tests_unit_sec_test_rxkad_LDADD = $(LIBS_TEST) $(LIBS_SEC)
tests_unit_sec_test_etype_SOURCES = %reldir%/test_etype.c
tests_unit_sec_test_etype_LDADD = $(LIBS_TEST) $(LIBS_SEC) $(KRB5_LIBS) -lk5crypto
tests_unit_sec_test_rxgk_SOURCES = %reldir%/test_rxgk.c
tests_unit_sec_test_rxgk_LDADD = $(LIBS_TEST) $(LIBS_SEC)
