/* SPDX-License-Identifier: BSD-2-Clause
 * Random reads, writes, cuts, maps, closes and losses of the cache on one file, against a copy in
 * memory.  The seed is in argv[1], else from the clock, and is printed. */
#include "tests/lib/test.h"
#include "tests/unit/fuse/far.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 700 * 1024, STEPS = RIG_DIRECT ? 1500 : 3000 };
static uint64_t seed, start_seed;
static int steps = STEPS;
static struct far *far;

static unsigned pick(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % n;
}

struct model {
	const char *path;
	int fd;
	uint8_t bytes[MAX], back[MAX];
	unsigned size;
	int step;
};

static void check_range(struct model *m, unsigned off, unsigned len)
{
	ssize_t want = off >= m->size ? 0 : (ssize_t)MIN(len, m->size - off);
	for (ssize_t at = 0; at < want;) {
		ssize_t n = pread(m->fd, m->back + at, (size_t)(want - at), off + at);
		if (n <= 0)
			fail_msg("seed %llu step %d: read at %lld of %u gave %zd (%s)",
				(unsigned long long)start_seed, m->step, (long long)(off + at),
				m->size, n, strerror(errno));
		at += n;
	}
	for (ssize_t i = 0; i < want; i++)
		if (m->back[i] != m->bytes[off + i])
			fail_msg("seed %llu step %d: byte %lld is %02x, not %02x (size %u)",
				(unsigned long long)start_seed, m->step, (long long)(off + i),
				m->back[i], m->bytes[off + i], m->size);
}

static void reopen(struct model *m, bool cold)
{
	if (m->fd >= 0)
		assert_sys(close(m->fd));
	if (cold)
		far_do(far, FAR_FLUSH, 0);
	m->fd = open(m->path, O_RDWR | O_CREAT, 0644);
	assert_sys(m->fd);
	struct stat st;
	assert_sys(fstat(m->fd, &st));
	if (st.st_size != m->size)
		fail_msg("seed %llu step %d: size is %lld, not %u", (unsigned long long)start_seed,
			m->step, (long long)st.st_size, m->size);
}

static void step(struct model *m)
{
	unsigned off = pick(MAX - 1), len = 1 + pick(pick(3) ? 9000 : MAX - off);
	len = MIN(len, MAX - off);
	switch (pick(16)) {
	case 0 ... 4:
		for (unsigned i = 0; i < len; i++)
			m->back[i] = (uint8_t)(m->step * 7 + i);
		if (pwrite(m->fd, m->back, len, off) != (ssize_t)len)
			fail_msg("seed %llu step %d: write: %s", (unsigned long long)start_seed,
				m->step, strerror(errno));
		memcpy(m->bytes + off, m->back, len);
		m->size = MAX(m->size, off + len);
		break;
	case 5 ... 8:
		check_range(m, off, len);
		break;
	case 9 ... 10:
		assert_sys(ftruncate(m->fd, off));
		if (off < m->size)
			memset(m->bytes + off, 0, m->size - off);
		m->size = off;
		break;
	case 11:
		if (off >= m->size)
			break;
		len = MIN(len, m->size - off);
		uint8_t *p = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
		assert_true(p != MAP_FAILED);
		for (unsigned i = 0; i < len; i++)
			m->bytes[off + i] = p[off + i] = (uint8_t)(m->step * 11 + i);
		munmap(p, m->size);
		break;
	case 12:
		assert_sys(fsync(m->fd));
		break;
	case 13:
		reopen(m, false);
		break;
	case 14:
		reopen(m, true);
		break;
	case 15:
		if (pick(4))
			break;
		assert_sys(close(m->fd));
		m->fd = open(m->path, O_RDWR | O_TRUNC);
		assert_sys(m->fd);
		memset(m->bytes, 0, m->size);
		m->size = 0;
		break;
	}
}

static void a_file_is_what_was_done_to_it(void **state)
{
	(void)state;
	far = far_start(&(struct rig_config){.direct = RIG_DIRECT, .clients = 1, .cache_bytes = 16 << 20});
	if (!far)
		skip();
	static struct model m = {.fd = -1};
	m.path = far_path(far, 0, "model");
	print_message("seed %llu\n", (unsigned long long)start_seed);
	reopen(&m, false);
	for (m.step = 0; m.step < steps; m.step++)
		step(&m);
	reopen(&m, true);
	check_range(&m, 0, MAX);
	close(m.fd);
	far_stop(far);
}

int main(int argc, char **argv)
{
	seed = start_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
	if (argc > 2)
		steps = atoi(argv[2]);
	const struct CMUnitTest tests[] = {T(a_file_is_what_was_done_to_it)};
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
