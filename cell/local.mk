# SPDX-License-Identifier: BSD-2-Clause
bin_PROGRAMS += afscell
afscell_SOURCES = %reldir%/main.c
afscell_LDADD = $(LIBS_RX) $(SQLITE_LIBS) $(CRYPTO_LIBS) $(KRB5_LIBS) $(YAML_LIBS) $(FUSE_LIBS) $(JANSSON_LIBS)
