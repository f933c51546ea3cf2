# SPDX-License-Identifier: BSD-2-Clause

# check-interop: stock tools, servers and Linux kafs against ours, in namespaces (root; etc/quickstart check
# runs it).  check-vm: the kernel clients that take long to prepare.  bench, bench-rx: afscell beside OpenAFS.
.PHONY: check-interop check-vm bench bench-rx
check-interop: afscell
	AFSCELL_BIN=$(abs_top_builddir)/afscell $(top_srcdir)/tests/interop/run
check-vm: afscell
	AFSCELL_BIN=$(abs_top_builddir)/afscell $(top_srcdir)/tests/interop/run --vm
bench: afscell
	AFSCELL_BIN=$(abs_top_builddir)/afscell $(top_srcdir)/tests/bench/first-light
bench-rx: afscell
	AFSCELL_BIN=$(abs_top_builddir)/afscell $(top_srcdir)/tests/bench/rx

# The emulated link of tests/README.md.
check_PROGRAMS += tests/interop/linkem
tests_interop_linkem_SOURCES = %reldir%/linkem.c

# Every call by every kind of caller: 34-rights.sh runs it against ours and a stock server.
check_PROGRAMS += tests/interop/fs_matrix
tests_interop_fs_matrix_SOURCES = %reldir%/fs_matrix.c tests/lib/meek_cm.h
tests_interop_fs_matrix_LDADD = $(LIBS_RX) $(LIBS_KEYS) $(LIBS_PROTO) $(KRB5_LIBS) $(CRYPTO_LIBS)
