/* SPDX-License-Identifier: BSD-2-Clause
 * Two cache managers: what one does the other sees at once, whatever the kernel kept. */
#include "tests/lib/test.h"
#include "tests/unit/fuse/far.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct far *far;
#define A(...) far_path(far, 0, __VA_ARGS__)
#define B(...) far_path(far, 1, __VA_ARGS__)

static int begin(void **state)
{
	(void)state;
	far = far_start(&(struct rig_config){.direct = RIG_DIRECT, .clients = 2, .cache_bytes = 64 << 20});
	return 0;
}
static int end(void **state)
{
	(void)state;
	far_stop(far);
	return 0;
}
#define NEED_FAR()                                                                                 \
	(void)state;                                                                               \
	if (!far)                                                                                  \
	skip()

/* The break is on its way when the writer's call returns, and the kernel is told a moment later. */
#define SOON(expr)                                                                                 \
	do {                                                                                       \
		bool ok_ = false;                                                                  \
		for (int i_ = 0; i_ < 300 && !(ok_ = (expr)); i_++)                                \
			usleep(10000);                                                             \
		if (!ok_)                                                                          \
			fail_msg("%s did not come true", #expr);                                   \
	} while (0)

static bool reads(const char *path, const char *text)
{
	char b[4096];
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, b, sizeof(b) - 1);
	close(fd);
	b[n < 0 ? 0 : n] = 0;
	return strcmp(b, text) == 0;
}
static bool there(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}
static off_t size_of(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 ? st.st_size : -1;
}
static mode_t mode_of(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void a_closed_file_is_read_anew_by_the_other(void **state)
{
	NEED_FAR();
	file_write(A("f"), "first", 5);
	SOON(reads(B("f"), "first"));
	for (int i = 0; i < 20; i++) {
		char text[32];
		int n = snprintf(text, sizeof(text), "turn %d", i * 1111111);
		file_write(i % 2 ? A("f") : B("f"), text, (size_t)n);
		SOON(reads(i % 2 ? B("f") : A("f"), text));
		SOON(size_of(i % 2 ? B("f") : A("f")) == n);
	}
	assert_sys(unlink(A("f")));
	SOON(!there(B("f")));
}

static void names_appear_and_disappear_for_the_other(void **state)
{
	NEED_FAR();
	assert_sys(mkdir(A("d"), 0755));
	SOON(there(B("d")));
	assert_false(there(B("d/new"))); /* the kernel keeps that it is not there */
	assert_false(there(B("d/new")));
	file_write(A("d/new"), "x", 1);
	SOON(there(B("d/new")));
	assert_sys(rename(A("d/new"), A("d/newer")));
	SOON(!there(B("d/new")) && there(B("d/newer")));
	assert_sys(symlink("one", A("d/l")));
	SOON(there(B("d/l")));
	assert_sys(unlink(B("d/l")));
	assert_sys(symlink("two", B("d/l")));
	char text[8] = "";
	SOON(readlink(A("d/l"), text, sizeof(text)) == 3 && memcmp(text, "two", 3) == 0);
	assert_sys(unlink(A("d/l")));
	assert_sys(unlink(A("d/newer")));
	SOON(rmdir(B("d")) == 0);
	SOON(!there(A("d")));
}

static void attributes_follow(void **state)
{
	NEED_FAR();
	file_write(A("a"), "x", 1);
	SOON(mode_of(B("a")) == 0644);
	assert_sys(chmod(A("a"), 0600));
	SOON(mode_of(B("a")) == 0600);
	assert_sys(truncate(A("a"), 1000));
	SOON(size_of(B("a")) == 1000);
	assert_sys(truncate(B("a"), 10));
	SOON(size_of(A("a")) == 10);
	assert_sys(unlink(A("a")));
}

static void an_open_file_shows_what_the_other_appends(void **state)
{
	NEED_FAR();
	file_write(A("log"), "1", 1);
	SOON(there(B("log")));
	int fd = open(B("log"), O_RDONLY);
	assert_sys(fd);
	char b[8];
	assert_int_equal(read(fd, b, sizeof(b)), 1);
	int w = open(A("log"), O_WRONLY | O_APPEND);
	assert_int_equal(write(w, "2", 1), 1);
	assert_sys(close(w));
	SOON(read(fd, b, sizeof(b)) == 1);
	assert_int_equal(b[0], '2');
	close(fd);
	assert_sys(unlink(A("log")));
}

static void a_lock_holds_against_the_other(void **state)
{
	NEED_FAR();
	file_write(A("lock"), "x", 1);
	SOON(there(B("lock")));
	int a = open(A("lock"), O_RDWR), b = open(B("lock"), O_RDWR);
	assert_sys(flock(a, LOCK_EX));
	assert_errno(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	assert_int_equal(pwrite(a, "mine", 4, 0), 4);
	assert_sys(flock(a, LOCK_UN));
	SOON(flock(b, LOCK_EX | LOCK_NB) == 0);
	char text[8] = "";
	assert_int_equal(pread(b, text, 4, 0), 4); /* stored before the lock was let go */
	assert_string_equal(text, "mine");
	close(a);
	close(b);
	assert_sys(unlink(A("lock")));
}

static void both_write_into_one_directory_at_once(void **state)
{
	NEED_FAR();
	assert_sys(mkdir(A("both"), 0755));
	SOON(there(B("both")));
	pid_t pid = fork();
	for (int i = 0; i < 150; i++) {
		const char *path = pid ? A("both/a%d", i) : B("both/b%d", i);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || write(fd, path, 1) != 1 || close(fd) < 0) {
			if (!pid)
				_exit(1);
			fail_msg("%s: %s", path, strerror(errno));
		}
	}
	if (!pid)
		_exit(0);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int m = 0; m < 2; m++) {
		unsigned n = 0;
		SOON(({
			n = 0;
			DIR *d = opendir(m ? B("both") : A("both"));
			for (struct dirent *e; d && (e = readdir(d));)
				n += e->d_name[0] != '.';
			closedir(d);
			n == 300;
		}));
		for (int i = 0; i < 150; i++)
			assert_true(there(m ? B("both/a%d", i) : A("both/b%d", i)));
	}
}

static void a_removed_file_is_gone_for_who_has_it_open(void **state)
{
	NEED_FAR();
	file_write(A("gone"), "x", 1);
	SOON(there(B("gone")));
	int fd = open(B("gone"), O_RDONLY);
	assert_sys(unlink(A("gone")));
	SOON(!there(B("gone")));
	close(fd);
	file_write(B("gone"), "again", 5); /* the vnode number is used again */
	SOON(reads(A("gone"), "again"));
	assert_sys(unlink(A("gone")));
}

/* Two clients take turns on one file: each opens, does random things, and closes; what the next one reads is what a
 * copy in memory says.  The server is started anew now and then, and one client forgets its cache. */
static unsigned seed;
static unsigned pick(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % n;
}

static void turns_on_one_file_are_seen_by_the_other(void **state)
{
	NEED_FAR();
	enum { MAX = 300000, TURNS = 60 };
	static uint8_t model[MAX], back[MAX];
	unsigned size = 0, first = seed = (unsigned)time(NULL);
	print_message("seed %u\n", first);
	file_write(A("turns"), "", 0);
	for (int turn = 0; turn < TURNS; turn++) {
		const char *path = pick(2) ? A("turns") : B("turns");
		SOON(size_of(path) == (off_t)size); /* a break may be on its way */
		int fd = open(path, O_RDWR);
		assert_sys(fd);
		ssize_t n = pread(fd, back, MAX, 0);
		if (n != (ssize_t)size || memcmp(back, model, size) != 0)
			fail_msg("seed %u turn %d: read %zd of %u, or other bytes", first, turn, n, size);
		for (unsigned k = pick(4); k; k--) {
			unsigned off = pick(MAX - 1), len = 1 + pick(MIN(20000u, MAX - off));
			if (pick(4) == 0) {
				assert_sys(ftruncate(fd, off));
				if (off < size)
					memset(model + off, 0, size - off);
				size = off;
				continue;
			}
			for (unsigned i = 0; i < len; i++)
				back[i] = (uint8_t)(turn * 13 + i);
			assert_int_equal(pwrite(fd, back, len, off), (ssize_t)len);
			memcpy(model + off, back, len);
			size = MAX(size, off + len);
		}
		assert_sys(close(fd));
		if (pick(12) == 0) {
			/* what it had promised it tells who speaks to it next (callback.md 7) */
			far_do(far, FAR_SERVER_RESTART, 0);
			for (int m = 0; m < 2; m++) {
				SOON(mkdir(m ? B("poke") : A("poke"), 0755) == 0);
				assert_sys(rmdir(m ? B("poke") : A("poke")));
			}
		}
		if (pick(8) == 0)
			far_do(far, FAR_FLUSH, pick(2));
		if (pick(12) == 0) {
			far_do(far, FAR_CLIENT_STOP, 1);
			far_do(far, FAR_CLIENT_START, 1);
		}
	}
	assert_sys(unlink(A("turns")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {T(a_closed_file_is_read_anew_by_the_other),
		T(names_appear_and_disappear_for_the_other), T(attributes_follow),
		T(an_open_file_shows_what_the_other_appends), T(a_lock_holds_against_the_other),
		T(both_write_into_one_directory_at_once),
		T(a_removed_file_is_gone_for_who_has_it_open),
		T(turns_on_one_file_are_seen_by_the_other)};
	return cmocka_run_group_tests_name(__FILE__, tests, begin, end);
}
