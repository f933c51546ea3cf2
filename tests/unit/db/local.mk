# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/db/test_db
TESTS += tests/unit/db/test_db
tests_unit_db_test_db_SOURCES = %reldir%/test_db.c %reldir%/failmem.h
tests_unit_db_test_db_LDADD = $(LIBS_TEST) $(LIBS_DB)
check_PROGRAMS += tests/unit/db/test_memo
TESTS += tests/unit/db/test_memo
tests_unit_db_test_memo_SOURCES = %reldir%/test_memo.c
tests_unit_db_test_memo_LDADD = $(LIBS_TEST) $(LIBS_DB)
