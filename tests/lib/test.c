/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void test_assert_err(afs_err got, afs_err want, const char *expr, const char *file, int line)
{
	if (got != want) {
		print_error("%s gave %s, not %s\n", expr, afs_err_name(got), afs_err_name(want));
		_fail(file, line);
	}
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

size_t test_unhex(const char *hex, void *out, size_t cap)
{
	uint8_t *o = out;
	size_t n = 0;
	int hi = -1;
	for (; *hex; hex++) {
		int v = nibble(*hex);
		if (v < 0)
			continue;
		if (hi < 0) {
			hi = v;
		} else {
			assert_true(n < cap);
			o[n++] = (uint8_t)(hi << 4 | v);
			hi = -1;
		}
	}
	assert_int_equal(hi, -1);
	return n;
}

size_t test_vector(const char *file, const char *name, void *out, size_t cap)
{
	const char *top = getenv("top_srcdir");
	CLEANUP(str) char *path = mem_printf("%s/tests/vectors/%s", top ? top : ".", file);
	assert_non_null(path);
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be opened", path);
	char line[1024];
	size_t n = 0, name_len = strlen(name);
	bool found = false, in = false;
	while (fgets(line, sizeof(line), f)) {
		const char *hex = line;
		if (line[0] == '#')
			continue;
		if (line[0] != ' ' && line[0] != '\t') {
			in = strncmp(line, name, name_len) == 0 && strncmp(line + name_len, " =", 2) == 0;
			found |= in;
			hex = in ? line + name_len + 2 : "";
		}
		if (in)
			n += test_unhex(hex, (uint8_t *)out + n, cap - n);
	}
	fclose(f);
	if (!found)
		fail_msg("%s: no vector %s", path, name);
	return n;
}

void test_assert_hex(const void *p, size_t n, const char *hex, const char *file, int line)
{
	CLEANUP(heap) uint8_t *want = mem_alloc(strlen(hex) + 1, 1);
	size_t want_n = test_unhex(hex, want, strlen(hex) + 1);
	if (n == want_n && memcmp(p, want, n) == 0)
		return;
	print_error("got  ");
	for (size_t i = 0; i < n; i++)
		print_error("%02x", ((const uint8_t *)p)[i]);
	print_error("\nwant %s\n", hex);
	_fail(file, line);
}

char *test_scratch(void)
{
	const char *base = getenv("TMPDIR");
	char *dir = mem_printf("%s/afscell-test-XXXXXX", base ? base : "/tmp");
	assert_non_null(dir);
	assert_non_null(mkdtemp(dir));
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void test_scratch_free(char *dir)
{
	if (!dir)
		return;
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	mem_free(dir);
}
