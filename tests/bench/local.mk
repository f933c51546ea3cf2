# SPDX-License-Identifier: BSD-2-Clause
noinst_PROGRAMS += tests/bench/rx_bench
tests_bench_rx_bench_SOURCES = %reldir%/rx_bench.c %reldir%/rx_bench.def %reldir%/rx_bench.rpc
tests_bench_rx_bench_LDADD = $(LIBS_RX) $(CRYPTO_LIBS)
