# SPDX-License-Identifier: BSD-2-Clause
CB_TESTS = tests/unit/cb/test_table tests/unit/cb/test_hosts tests/unit/cb/test_proto
check_PROGRAMS += $(CB_TESTS)
TESTS += $(CB_TESTS)
FAKE_CLIENTS = tests/lib/fake_clients.c tests/lib/fake_clients.h tests/lib/fake_rpc.c tests/lib/fake_rpc.h
tests_unit_cb_test_table_SOURCES = %reldir%/test_table.c
tests_unit_cb_test_table_LDADD = $(LIBS_TEST) fileserver/cb/libcb.a $(LIBS_PROTO)
tests_unit_cb_test_hosts_SOURCES = %reldir%/test_hosts.c $(FAKE_CLIENTS)
tests_unit_cb_test_hosts_LDADD = $(LIBS_TEST) fileserver/cb/libcb.a $(LIBS_PROTO) rx/sec/librxsec.a $(LIBS_BASE) $(CRYPTO_LIBS)
tests_unit_cb_test_proto_SOURCES = %reldir%/test_proto.c
tests_unit_cb_test_proto_LDADD = $(LIBS_TEST) $(LIBS_PROTO) rx/sec/librxsec.a $(LIBS_BASE) $(CRYPTO_LIBS)
