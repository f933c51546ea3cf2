# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/bos/test_bos
TESTS += tests/unit/bos/test_bos
tests_unit_bos_test_bos_SOURCES = %reldir%/rig.c %reldir%/rig.h %reldir%/test_bos.c tests/lib/fake_rpc.c
tests_unit_bos_test_bos_LDADD = $(LIBS_TEST) cell/bos/libbos.a $(LIBS_PROTO) $(JANSSON_LIBS)
