# SPDX-License-Identifier: BSD-2-Clause
# The roof: the parts of a running cell as a library, so that tests can take one; and the binary.
noinst_LIBRARIES += cell/libcell.a
cell_libcell_a_SOURCES = \
	%reldir%/adapters.c %reldir%/adapters.h %reldir%/audit.c %reldir%/audit.h %reldir%/cell.c \
	%reldir%/cell.h %reldir%/cell_parts.h %reldir%/ctl.c %reldir%/ctl.h %reldir%/daemon.c \
	%reldir%/daemon.h %reldir%/openafs.c %reldir%/openafs.h %reldir%/preflight.c %reldir%/preflight.h \
	%reldir%/reconcile.c %reldir%/reconcile.h %reldir%/reconcile_parts.h %reldir%/reconcile_volumes.c \
	%reldir%/secret.c %reldir%/secret.h %reldir%/self.c %reldir%/self.h %reldir%/state.c \
	%reldir%/state.h %reldir%/verbs.c %reldir%/verbs.h

bin_PROGRAMS += afscell
afscell_SOURCES = %reldir%/main.c
afscell_LDADD = $(LIBS_RX) $(SQLITE_LIBS) $(CRYPTO_LIBS) $(KRB5_LIBS) $(YAML_LIBS) $(FUSE_LIBS) $(JANSSON_LIBS)
