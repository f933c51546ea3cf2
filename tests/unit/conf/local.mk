# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/conf/test_conf
TESTS += tests/unit/conf/test_conf
tests_unit_conf_test_conf_SOURCES = %reldir%/test_conf.c
tests_unit_conf_test_conf_LDADD = $(LIBS_TEST) cell/conf/libconf.a $(LIBS_BASE) $(YAML_LIBS)
