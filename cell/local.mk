# SPDX-License-Identifier: BSD-2-Clause
# The roof: the parts of a running cell as a library, so that tests can take one; and the binary.
noinst_LIBRARIES += cell/libcell.a
cell_libcell_a_SOURCES = %reldir%/ctl.c %reldir%/ctl.h

bin_PROGRAMS += afscell
afscell_SOURCES = %reldir%/main.c
afscell_LDADD = $(LIBS_RX) $(SQLITE_LIBS) $(CRYPTO_LIBS) $(KRB5_LIBS) $(YAML_LIBS) $(FUSE_LIBS) $(JANSSON_LIBS)
