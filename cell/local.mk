# SPDX-License-Identifier: BSD-2-Clause
# The roof: the parts of a running cell as a library, so that tests can take one; and the binary.
noinst_LIBRARIES += cell/libcell.a
cell_libcell_a_SOURCES = \
	%reldir%/adapters.c %reldir%/adapters.h %reldir%/audit.c %reldir%/audit.h %reldir%/cell.c \
	%reldir%/cell.h %reldir%/cell_parts.h %reldir%/console.c %reldir%/console.h %reldir%/console_files.c %reldir%/console_files.h %reldir%/ctl.c %reldir%/ctl.h %reldir%/daemon.c \
	%reldir%/daemon.h %reldir%/openafs.c %reldir%/openafs.h %reldir%/overseer.c %reldir%/overseer.h %reldir%/preflight.c %reldir%/preflight.h \
	%reldir%/reconcile.c %reldir%/reconcile.h %reldir%/reconcile_parts.h %reldir%/reconcile_volumes.c \
	%reldir%/secret.c %reldir%/secret.h %reldir%/self.c %reldir%/self.h %reldir%/state.c \
	%reldir%/state.h %reldir%/trust.c %reldir%/verbs.c %reldir%/verbs.h %reldir%/verbs_client.c %reldir%/verbs_keys.c %reldir%/verbs_people.c

bin_PROGRAMS += afscell
afscell_SOURCES = %reldir%/main.c
# Suites call the roof, and the roof calls everything: the link line is the layering.
LIBS_CELL = cell/cli/libcli.a cell/admin/libadmin.a cell/libcell.a cell/cli/libcli.a webui/libwebui.a cell/conf/libconf.a \
	client/fuse/libfuse.a client/pioctl/libpioctl.a client/cm/libcm.a client/cache/libcache.a \
	fileserver/fs/libfs.a fileserver/vol/libvol.a fileserver/cb/libcb.a fileserver/store/libstore.a \
	dbserver/vl/libvl.a dbserver/pt/libpt.a dbserver/gk/libgk.a dbserver/ubik/libubik.a cell/bos/libbos.a \
	cell/db/libdb.a cell/realm/librealm.a cell/keys/libkeys.a $(LIBS_RX) \
	$(SQLITE_LIBS) $(KADMSRV_LIBS) $(KRB5_LIBS) $(CRYPTO_LIBS) $(YAML_LIBS) $(FUSE_LIBS) $(JANSSON_LIBS) $(MHD_LIBS)
afscell_LDADD = $(LIBS_CELL)
