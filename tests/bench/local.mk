# SPDX-License-Identifier: BSD-2-Clause
noinst_PROGRAMS += tests/bench/fs_calls
tests_bench_fs_calls_SOURCES = %reldir%/fs_calls.c
noinst_PROGRAMS += tests/bench/db_calls
tests_bench_db_calls_SOURCES = %reldir%/db_calls.c
tests_bench_db_calls_LDADD = cell/keys/libkeys.a $(LIBS_RX) $(KRB5_LIBS) -lk5crypto
noinst_PROGRAMS += tests/bench/fs_bulk
tests_bench_fs_bulk_SOURCES = %reldir%/fs_bulk.c tests/lib/meek_cm.h
tests_bench_fs_bulk_LDADD = $(LIBS_RX) $(CRYPTO_LIBS)
noinst_PROGRAMS += tests/bench/vol_fill
tests_bench_vol_fill_SOURCES = %reldir%/vol_fill.c
tests_bench_vol_fill_LDADD = $(LIBS_STORE)
