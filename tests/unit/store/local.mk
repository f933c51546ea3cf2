# SPDX-License-Identifier: BSD-2-Clause
LIBS_STORE = fileserver/store/libstore.a cell/proto/libproto.a $(LIBS_DB)
check_PROGRAMS += tests/unit/store/bench_store
tests_unit_store_bench_store_SOURCES = %reldir%/bench_store.c
tests_unit_store_bench_store_LDADD = $(LIBS_STORE)
