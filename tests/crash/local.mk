# SPDX-License-Identifier: BSD-2-Clause
# A short run belongs to `make check`; AFSCELL_CRASH_ROUNDS=2000 makes a long one (make check-slow).
check_PROGRAMS += tests/crash/crash_store
TESTS += tests/crash/crash_store
tests_crash_crash_store_SOURCES = %reldir%/crash_store.c
tests_crash_crash_store_LDADD = $(LIBS_TEST) $(LIBS_STORE)

# A walk over write-class system calls: 200 of them in `make check`, all in check-slow.
check_PROGRAMS += tests/crash/crash_walk
TESTS += tests/crash/crash_walk
tests_crash_crash_walk_SOURCES = %reldir%/crash_walk.c
tests_crash_crash_walk_LDADD = $(LIBS_TEST) $(LIBS_STORE)

.PHONY: check-slow check-slow-store
check-slow: check-slow-store
check-slow-store: tests/crash/crash_store tests/crash/crash_walk
	AFSCELL_CRASH_POINTS=0 tests/crash/crash_walk
	AFSCELL_CRASH_ROUNDS=2000 AFSCELL_CRASH_SEED=$$(date +%s) tests/crash/crash_store
