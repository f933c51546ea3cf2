# SPDX-License-Identifier: BSD-2-Clause
noinst_PROGRAMS += tests/bench/fs_calls
tests_bench_fs_calls_SOURCES = %reldir%/fs_calls.c
