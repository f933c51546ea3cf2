/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What every unit test includes: cmocka, afs_err assertions, hex, a scratch folder. */
#pragma once
#include "cell/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define assert_ok(expr) test_assert_err((expr), AFS_OK, #expr, __FILE__, __LINE__)
#define assert_err(expr, want) test_assert_err((expr), (want), #expr, __FILE__, __LINE__)
void test_assert_err(afs_err got, afs_err want, const char *expr, const char *file, int line);

/* Bytes from hex text; blanks are skipped.  Gives their number. */
size_t test_unhex(const char *hex, void *out, size_t cap);
/* The bytes of `name` in tests/vectors/<file>: lines "name = hex", going on over indented lines, and
 * comments after #.  Fails the test when there is no such name. */
size_t test_vector(const char *file, const char *name, void *out, size_t cap);
/* Compares with a readable message. */
#define assert_hex(p, n, hex) test_assert_hex((p), (n), (hex), __FILE__, __LINE__)
void test_assert_hex(const void *p, size_t n, const char *hex, const char *file, int line);

/* A fresh directory, removed with all that is in it by test_scratch_free (also when it is NULL). */
char *test_scratch(void);
void test_scratch_free(char *dir);

/* cmocka_run_group_tests for `tests`, named after the file. */
#define TEST_MAIN(...)                                                                             \
	int main(void)                                                                             \
	{                                                                                          \
		const struct CMUnitTest tests[] = {__VA_ARGS__};                                   \
		return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);                   \
	}
#define T(fn) cmocka_unit_test(fn)
