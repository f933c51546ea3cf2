# SPDX-License-Identifier: BSD-2-Clause
check_LIBRARIES += tests/sim/libsim.a
tests_sim_libsim_a_SOURCES = %reldir%/sim.c %reldir%/sim.h %reldir%/sim_sec.c %reldir%/sim_trace.c %reldir%/sim_trace.h
tests_sim_libsim_a_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
LIBS_SIM = tests/sim/libsim.a $(LIBS_TEST) $(LIBS_CORE)

check_PROGRAMS += tests/sim/test_transfer
TESTS += tests/sim/test_transfer
tests_sim_test_transfer_SOURCES = %reldir%/test_transfer.c
tests_sim_test_transfer_LDADD = $(LIBS_SIM)

check_PROGRAMS += tests/sim/test_golden
TESTS += tests/sim/test_golden
tests_sim_test_golden_SOURCES = %reldir%/test_golden.c
tests_sim_test_golden_LDADD = $(LIBS_SIM)

check_PROGRAMS += tests/sim/test_hostile
TESTS += tests/sim/test_hostile
tests_sim_test_hostile_SOURCES = %reldir%/test_hostile.c
tests_sim_test_hostile_LDADD = $(LIBS_SIM)

check_PROGRAMS += tests/sim/test_path
TESTS += tests/sim/test_path
tests_sim_test_path_SOURCES = %reldir%/test_path.c
tests_sim_test_path_LDADD = $(LIBS_SIM)

check_PROGRAMS += tests/sim/test_hours
TESTS += tests/sim/test_hours
tests_sim_test_hours_SOURCES = %reldir%/test_hours.c
tests_sim_test_hours_LDADD = $(LIBS_SIM)
EXTRA_DIST += %reldir%/seeds.txt

# A thousand simulated hours, the other simulations twenty times longer too.
.PHONY: check-slow-sim
check-slow: check-slow-sim
check-slow-sim: tests/sim/test_hours tests/sim/test_transfer tests/sim/test_hostile
	for t in $^; do SIM_SEEDS=20 $(AM_TESTS_ENVIRONMENT) $$t || exit 1; done

EXTRA_PROGRAMS += tests/sim/bench_core
tests_sim_bench_core_SOURCES = %reldir%/bench_core.c
tests_sim_bench_core_LDADD = $(LIBS_CORE)

EXTRA_PROGRAMS += tests/sim/bench_paths
tests_sim_bench_paths_SOURCES = %reldir%/bench_paths.c
tests_sim_bench_paths_LDADD = $(LIBS_SIM)

check_PROGRAMS += tests/sim/test_fair
TESTS += tests/sim/test_fair
tests_sim_test_fair_SOURCES = %reldir%/test_fair.c
tests_sim_test_fair_LDADD = $(LIBS_SIM)
