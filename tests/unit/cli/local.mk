# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/cli/test_cli
TESTS += tests/unit/cli/test_cli
tests_unit_cli_test_cli_SOURCES = %reldir%/test_cli.c
tests_unit_cli_test_cli_LDADD = $(LIBS_TEST) cell/cli/libcli.a cell/libcell.a cell/conf/libconf.a $(LIBS_BASE) \
	$(YAML_LIBS) $(JANSSON_LIBS)
TESTS += tests/unit/cli/test_bench.sh
TESTS += tests/unit/cli/completion.sh
