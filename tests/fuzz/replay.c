/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs a fuzz target as an ordinary test: every file of its corpus (tests/fuzz/corpus/NAME for the
 * program fuzz_NAME), then some thousand inputs made from them by changes that are the same in each
 * run.  Prints TAP; a crash or a sanitizer's report is the failure.
 *
 * $FUZZ_RUNS: how many of those, when somebody has the time; then they begin elsewhere, too.
 * With files as arguments it runs those alone: to look at what libFuzzer found. */
#include "cell/base/mem.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20, FILES_MAX = 512, MUTATIONS = 3000 };

static uint64_t rng = UINT64_C(0x9e3779b97f4a7c15);
static uint32_t next_random(uint32_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return below ? (uint32_t)((rng >> 11) % below) : 0;
}

struct input {
	uint8_t *p;
	size_t n;
};

static bool load(const char *path, struct input *out)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return false;
	out->p = mem_alloc(INPUT_MAX, 1);
	out->n = out->p ? fread(out->p, 1, INPUT_MAX, f) : 0;
	fclose(f);
	return out->p != NULL;
}

/* Exactly-sized memory, so that a read past the end is seen by address sanitizers and valgrind. */
static void run(const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	if (!copy)
		return;
	if (n)
		memcpy(copy, p, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static size_t mutate(uint8_t *p, size_t n, const struct input *other)
{
	static const uint32_t words[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000, 65, 1024};
	for (uint32_t i = 0, times = 1 + next_random(4); i < times; i++) {
		uint32_t at = next_random((uint32_t)n);
		switch (next_random(6)) {
		case 0:
			if (n)
				p[at] ^= (uint8_t)(1u << next_random(8));
			break;
		case 1:
			if (n)
				p[at] = (uint8_t)next_random(256);
			break;
		case 2: /* a big-endian word that parsers stumble over */
			if (n >= 4) {
				uint32_t w = words[next_random(ARRAY_SIZE(words))];
				at = next_random((uint32_t)n - 3) & ~3u;
				p[at] = (uint8_t)(w >> 24), p[at + 1] = (uint8_t)(w >> 16);
				p[at + 2] = (uint8_t)(w >> 8), p[at + 3] = (uint8_t)w;
			}
			break;
		case 3:
			n = at;
			break;
		case 4: /* cut a piece out */
			if (n) {
				size_t len = next_random((uint32_t)(n - at)) % 64;
				memmove(p + at, p + at + len, n - at - len);
				n -= len;
			}
			break;
		case 5: /* splice with another */
			if (other->n && n < INPUT_MAX / 2) {
				size_t from = next_random((uint32_t)other->n);
				size_t len = MIN(other->n - from, (size_t)INPUT_MAX - at);
				memcpy(p + at, other->p + from, len);
				n = MAX(n, at + len);
			}
			break;
		}
	}
	return n;
}

int main(int argc, char **argv)
{
	struct input files[FILES_MAX];
	size_t count = 0;
	if (argc > 1) {
		for (int i = 1; i < argc && count < FILES_MAX; i++)
			if (load(argv[i], &files[count]))
				run(files[count].p, files[count].n);
		return 0;
	}
	const char *name = strrchr(argv[0], '/'), *top = getenv("top_srcdir");
	name = name ? name + 1 : argv[0];
	name = strncmp(name, "lt-", 3) == 0 ? name + 3 : name;
	name = strncmp(name, "fuzz_", 5) == 0 ? name + 5 : name;
	char *dir = mem_printf("%s/tests/fuzz/corpus/%s", top ? top : ".", name);
	DIR *d = dir ? opendir(dir) : NULL;
	printf("1..2\n");
	for (struct dirent *e; d && (e = readdir(d)) && count < FILES_MAX;) {
		char *path = mem_printf("%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' && path && load(path, &files[count])) {
			run(files[count].p, files[count].n);
			count++;
		}
		mem_free(path);
	}
	if (d)
		closedir(d);
	printf("%sok 1 - every input of the corpus is survived # %zu files\n", count ? "" : "not ", count);
	uint8_t *work = mem_alloc(INPUT_MAX, 1);
	const char *asked = getenv("FUZZ_RUNS");
	const long runs = asked ? strtol(asked, NULL, 10) : MUTATIONS;
	rng += (uint64_t)(runs - MUTATIONS);
	for (long i = 0; i < runs && work && count; i++) {
		const struct input *seed = &files[next_random((uint32_t)count)];
		memcpy(work, seed->p, seed->n);
		run(work, mutate(work, seed->n, &files[next_random((uint32_t)count)]));
	}
	printf("%sok 2 - changed inputs are survived\n", work && count ? "" : "not ");
	for (size_t i = 0; i < count; i++)
		mem_free(files[i].p);
	mem_free(work);
	mem_free(dir);
	return 0;
}
