# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/cell/test_ctl tests/unit/cell/test_state tests/unit/cell/test_audit
TESTS += tests/unit/cell/test_ctl tests/unit/cell/test_state tests/unit/cell/test_audit
tests_unit_cell_test_ctl_SOURCES = %reldir%/test_ctl.c
tests_unit_cell_test_ctl_LDADD = $(LIBS_TEST) cell/libcell.a $(LIBS_BASE) $(JANSSON_LIBS)
tests_unit_cell_test_state_SOURCES = %reldir%/test_state.c
tests_unit_cell_test_state_LDADD = $(LIBS_TEST) cell/libcell.a cell/conf/libconf.a $(LIBS_BASE) $(YAML_LIBS)
tests_unit_cell_test_audit_SOURCES = %reldir%/test_audit.c
tests_unit_cell_test_audit_LDADD = $(LIBS_TEST) cell/libcell.a $(LIBS_PROTO) $(JANSSON_LIBS)
# Whole cells, in namespaces of their own.
TESTS += tests/unit/cell/bad-input.sh tests/unit/cell/call.sh tests/unit/cell/doctor.sh tests/unit/cell/external.sh tests/unit/cell/identity.sh tests/unit/cell/import.sh tests/unit/cell/life.sh tests/unit/cell/roles.sh tests/unit/cell/rxgk.sh tests/unit/cell/trust.sh
