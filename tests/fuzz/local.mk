# SPDX-License-Identifier: BSD-2-Clause
# Fuzz targets: fuzz_NAME.c with LLVMFuzzerTestOneInput and a corpus in corpus/NAME/.  An ordinary
# build links each with replay.c and runs it in `make check`; configure --enable-fuzz (clang) makes
# libFuzzer programs of them: tests/fuzz/fuzz_NAME tests/fuzz/corpus/NAME
if FUZZ
fuzz_main =
fuzz_flags = -fsanitize=fuzzer
else
fuzz_main = tests/fuzz/replay.c
fuzz_flags =
endif

FUZZERS = tests/fuzz/fuzz_acl \
	tests/fuzz/fuzz_admin \
	tests/fuzz/fuzz_acl_text \
	tests/fuzz/fuzz_client_dir \
	tests/fuzz/fuzz_client_index \
	tests/fuzz/fuzz_client_mount \
	tests/fuzz/fuzz_dir \
	tests/fuzz/fuzz_challenge \
	tests/fuzz/fuzz_conf \
	tests/fuzz/fuzz_databases \
	tests/fuzz/fuzz_dump \
	tests/fuzz/fuzz_gk \
	tests/fuzz/fuzz_packet \
	tests/fuzz/fuzz_pioctl \
	tests/fuzz/fuzz_response \
	tests/fuzz/fuzz_rx \
	tests/fuzz/fuzz_rxafs \
	tests/fuzz/fuzz_rxdebug \
	tests/fuzz/fuzz_sealed \
	tests/fuzz/fuzz_ticket \
	tests/fuzz/fuzz_xdr
check_PROGRAMS += $(FUZZERS)
TESTS += $(FUZZERS)

tests_fuzz_fuzz_rxdebug_SOURCES = %reldir%/fuzz_rxdebug.c $(fuzz_main)
tests_fuzz_fuzz_rxdebug_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_rxdebug_LDADD = $(LIBS_CELL)

tests_fuzz_fuzz_admin_SOURCES = %reldir%/fuzz_admin.c $(fuzz_main)
tests_fuzz_fuzz_admin_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_admin_LDADD = $(LIBS_CELL)

tests_fuzz_fuzz_dump_SOURCES = %reldir%/fuzz_dump.c $(fuzz_main)
tests_fuzz_fuzz_dump_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_dump_LDADD = fileserver/vol/libvol.a $(LIBS_PROTO)

tests_fuzz_fuzz_pioctl_SOURCES = %reldir%/fuzz_pioctl.c $(fuzz_main)
tests_fuzz_fuzz_pioctl_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_pioctl_LDADD = client/pioctl/libpioctl.a $(LIBS_PROTO) rx/sec/librxsec.a $(LIBS_BASE) $(CRYPTO_LIBS)

tests_fuzz_fuzz_challenge_SOURCES = %reldir%/fuzz_challenge.c $(fuzz_main)
tests_fuzz_fuzz_challenge_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_challenge_LDADD = $(LIBS_SEC)

tests_fuzz_fuzz_response_SOURCES = %reldir%/fuzz_response.c $(fuzz_main)
tests_fuzz_fuzz_response_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_response_LDADD = $(LIBS_SEC)

tests_fuzz_fuzz_sealed_SOURCES = %reldir%/fuzz_sealed.c $(fuzz_main)
tests_fuzz_fuzz_sealed_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_sealed_LDADD = $(LIBS_SEC)

tests_fuzz_fuzz_ticket_SOURCES = %reldir%/fuzz_ticket.c $(fuzz_main)
tests_fuzz_fuzz_ticket_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_ticket_LDADD = $(LIBS_KEYS)

tests_fuzz_fuzz_acl_SOURCES = %reldir%/fuzz_acl.c $(fuzz_main)
tests_fuzz_fuzz_acl_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_acl_LDADD = fileserver/fs/libfs.a $(LIBS_BASE)

tests_fuzz_fuzz_rxafs_SOURCES = %reldir%/fuzz_rxafs.c $(fuzz_main)
tests_fuzz_fuzz_rxafs_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_rxafs_LDADD = $(LIBS_PROTO) rx/sec/librxsec.a $(LIBS_BASE) $(CRYPTO_LIBS)

tests_fuzz_fuzz_conf_SOURCES = %reldir%/fuzz_conf.c $(fuzz_main)
tests_fuzz_fuzz_conf_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_conf_LDADD = cell/conf/libconf.a $(LIBS_BASE) $(YAML_LIBS)

tests_fuzz_fuzz_rx_SOURCES = %reldir%/fuzz_rx.c tests/sim/sim_sec.c $(fuzz_main)
tests_fuzz_fuzz_rx_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_rx_LDADD = $(LIBS_CORE)

tests_fuzz_fuzz_dir_SOURCES = %reldir%/fuzz_dir.c $(fuzz_main)
tests_fuzz_fuzz_dir_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_dir_LDADD = fileserver/store/libstore.a $(LIBS_BASE)

tests_fuzz_fuzz_databases_SOURCES = %reldir%/fuzz_databases.c $(fuzz_main)
tests_fuzz_fuzz_databases_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_databases_LDADD = $(LIBS_DBSERVER)

tests_fuzz_fuzz_xdr_SOURCES = %reldir%/fuzz_xdr.c $(fuzz_main)
tests_fuzz_fuzz_xdr_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_xdr_LDADD = $(LIBS_XDR)

tests_fuzz_fuzz_acl_text_SOURCES = %reldir%/fuzz_acl_text.c $(fuzz_main)
tests_fuzz_fuzz_acl_text_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_acl_text_LDADD = cell/cli/libcli.a $(LIBS_BASE)

tests_fuzz_fuzz_client_dir_SOURCES = %reldir%/fuzz_client_dir.c $(fuzz_main)
tests_fuzz_fuzz_client_dir_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_client_dir_LDADD = client/cm/libcm.a $(LIBS_BASE)

tests_fuzz_fuzz_client_index_SOURCES = %reldir%/fuzz_client_index.c $(fuzz_main)
tests_fuzz_fuzz_client_index_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_client_index_LDADD = client/cache/libcache.a $(LIBS_BASE)

tests_fuzz_fuzz_client_mount_SOURCES = %reldir%/fuzz_client_mount.c $(fuzz_main)
tests_fuzz_fuzz_client_mount_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_client_mount_LDADD = client/cm/libcm.a client/cache/libcache.a $(LIBS_RX)

tests_fuzz_fuzz_gk_SOURCES = %reldir%/fuzz_gk.c $(fuzz_main)
tests_fuzz_fuzz_gk_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_gk_LDADD = $(LIBS_KEYS)

tests_fuzz_fuzz_packet_SOURCES = %reldir%/fuzz_packet.c $(fuzz_main)
tests_fuzz_fuzz_packet_LDFLAGS = $(AM_LDFLAGS) $(fuzz_flags)
tests_fuzz_fuzz_packet_LDADD = $(LIBS_CORE) $(CRYPTO_LIBS)

# A million changed inputs for each target; with --enable-sanitizers the sanitizers look on.
if FUZZ
fuzz_slow = mkdir -p fuzz-found && $$t -runs=$${FUZZ_RUNS-1000000} fuzz-found $(top_srcdir)/tests/fuzz/corpus/$${t\#\#*fuzz_}
else
fuzz_slow = FUZZ_RUNS=$${FUZZ_RUNS-1000000} $(AM_TESTS_ENVIRONMENT) $$t
endif
.PHONY: check-slow-fuzz
check-slow: check-slow-fuzz
check-slow-fuzz: $(FUZZERS)
	for t in $^; do echo "$$t"; $(fuzz_slow) || exit 1; done
