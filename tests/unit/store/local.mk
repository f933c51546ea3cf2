# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/store/bench_store
tests_unit_store_bench_store_SOURCES = %reldir%/bench_store.c
tests_unit_store_bench_store_LDADD = $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_model
TESTS += tests/unit/store/test_model
tests_unit_store_test_model_SOURCES = %reldir%/test_model.c %reldir%/store_lib.h
tests_unit_store_test_model_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_dir
TESTS += tests/unit/store/test_dir
tests_unit_store_test_dir_SOURCES = %reldir%/test_dir.c
tests_unit_store_test_dir_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_verbs
TESTS += tests/unit/store/test_verbs
tests_unit_store_test_verbs_SOURCES = %reldir%/test_verbs.c %reldir%/store_lib.h
tests_unit_store_test_verbs_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_content
TESTS += tests/unit/store/test_content
tests_unit_store_test_content_SOURCES = %reldir%/test_content.c %reldir%/store_lib.h
tests_unit_store_test_content_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_volume
TESTS += tests/unit/store/test_volume
tests_unit_store_test_volume_SOURCES = %reldir%/test_volume.c %reldir%/store_lib.h
tests_unit_store_test_volume_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_stage
TESTS += tests/unit/store/test_stage
tests_unit_store_test_stage_SOURCES = %reldir%/test_stage.c %reldir%/store_lib.h
tests_unit_store_test_stage_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_check
TESTS += tests/unit/store/test_check
tests_unit_store_test_check_SOURCES = %reldir%/test_check.c %reldir%/store_lib.h
tests_unit_store_test_check_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_fail
TESTS += tests/unit/store/test_fail
tests_unit_store_test_fail_SOURCES = %reldir%/test_fail.c %reldir%/store_lib.h
tests_unit_store_test_fail_LDADD = $(LIBS_TEST) $(LIBS_STORE)

check_PROGRAMS += tests/unit/store/test_clone
TESTS += tests/unit/store/test_clone
tests_unit_store_test_clone_SOURCES = %reldir%/test_clone.c %reldir%/digest.h %reldir%/store_lib.h
tests_unit_store_test_clone_LDADD = $(LIBS_TEST) $(LIBS_STORE)
