# SPDX-License-Identifier: BSD-2-Clause
CACHE_TESTS = tests/unit/cache/test_cache
check_PROGRAMS += $(CACHE_TESTS)
TESTS += $(CACHE_TESTS)
tests_unit_cache_test_cache_SOURCES = %reldir%/test_cache.c
tests_unit_cache_test_cache_LDADD = $(LIBS_TEST) client/cache/libcache.a $(LIBS_BASE)
