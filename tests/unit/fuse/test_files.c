/* SPDX-License-Identifier: BSD-2-Clause
 * What programs expect of a file system, through the mount. */
#include "tests/lib/test.h"
#include "tests/unit/fuse/far.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct far *far;
#define P(...) far_path(far, 0, __VA_ARGS__)

static int begin(void **state)
{
	(void)state;
	far = far_start(
		&(struct rig_config){.direct = RIG_DIRECT, .clients = 1, .cache_bytes = 64 << 20, .dead_ns = SEC(2)});
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

static unsigned names_in(const char *path)
{
	unsigned n = 0;
	DIR *d = opendir(path);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void what_is_written_is_read_back_and_appended_to(void **state)
{
	NEED_FAR();
	file_write(P("a"), "hello ", 6);
	int fd = open(P("a"), O_WRONLY | O_APPEND);
	assert_sys(fd);
	assert_int_equal(write(fd, "world", 5), 5);
	assert_sys(close(fd));
	file_is(P("a"), "hello world");
	struct stat st;
	assert_sys(stat(P("a"), &st));
	assert_int_equal(st.st_size, 11);
	assert_int_equal(st.st_nlink, 1);
	assert_true(S_ISREG(st.st_mode));
	assert_sys(unlink(P("a")));
	assert_errno(stat(P("a"), &st), ENOENT);
}

static void names_of_every_kind_come_and_go(void **state)
{
	NEED_FAR();
	struct stat st;
	char text[64] = "";
	assert_sys(mkdir(P("d"), 0755));
	assert_errno(mkdir(P("d"), 0755), EEXIST);
	assert_sys(symlink("../x y", P("d/l")));
	assert_int_equal(readlink(P("d/l"), text, sizeof(text)), 6);
	assert_string_equal(text, "../x y");
	assert_sys(lstat(P("d/l"), &st));
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(st.st_size, 6);
	file_write(P("d/f"), "1", 1);
	assert_sys(link(P("d/f"), P("d/g")));
	assert_sys(stat(P("d/g"), &st));
	assert_int_equal(st.st_nlink, 2);
	assert_errno(link(P("d/f"), P("g")), EXDEV);
	assert_errno(link(P("d"), P("dd")), EPERM);
	assert_errno(rmdir(P("d")), ENOTEMPTY);
	assert_errno(unlink(P("d")), EISDIR);
	assert_errno(rmdir(P("d/f")), ENOTDIR);
	assert_errno(mkfifo(P("d/p"), 0600), EPERM);
	assert_sys(stat(P("d"), &st));
	assert_int_equal(st.st_nlink, 2);
	assert_sys(mkdir(P("d/e"), 0700));
	assert_sys(stat(P("d"), &st));
	assert_int_equal(st.st_nlink, 3);
	assert_sys(rmdir(P("d/e")));
	assert_sys(unlink(P("d/f")));
	assert_sys(stat(P("d/g"), &st));
	assert_int_equal(st.st_nlink, 1);
	file_is(P("d/g"), "1");
	assert_sys(unlink(P("d/g")));
	assert_sys(unlink(P("d/l")));
	assert_sys(rmdir(P("d")));
}

static void renames_follow_posix(void **state)
{
	NEED_FAR();
	struct stat st;
	assert_sys(mkdir(P("r1"), 0755));
	assert_sys(mkdir(P("r2"), 0755));
	file_write(P("r1/a"), "A", 1);
	file_write(P("r1/b"), "B", 1);
	assert_sys(rename(P("r1/a"), P("r1/c")));
	file_is(P("r1/c"), "A");
	assert_sys(rename(P("r1/c"), P("r1/b"))); /* over a file */
	file_is(P("r1/b"), "A");
	assert_errno(stat(P("r1/c"), &st), ENOENT);
	assert_sys(rename(P("r1/b"), P("r2/b"))); /* to another directory */
	file_is(P("r2/b"), "A");
	assert_errno(rename(P("r2/b"), P("r1")), EISDIR);
	assert_sys(mkdir(P("r1/sub"), 0755));
	file_write(P("r1/sub/x"), "X", 1);
	assert_sys(rename(P("r1/sub"), P("r2/sub"))); /* a directory */
	file_is(P("r2/sub/x"), "X");
	file_is(P("r2/sub/../b"), "A");
	assert_errno(rename(P("r2"), P("r2/sub/r2")), EINVAL);
	assert_sys(mkdir(P("r1/sub"), 0755));
	assert_errno(rename(P("r1/sub"), P("r2/sub")), ENOTEMPTY);
	assert_errno(rename(P("r1/sub"), P("r2/b")), ENOTDIR);
	assert_sys(unlink(P("r2/sub/x")));
	assert_sys(rename(P("r1/sub"), P("r2/sub"))); /* over an empty one */
	assert_sys(link(P("r2/b"), P("r2/c")));
	assert_sys(rename(P("r2/b"), P("r2/c"))); /* two names of one file: nothing happens */
	assert_sys(stat(P("r2/b"), &st));
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(
		renameat2(AT_FDCWD, P("r2/b"), AT_FDCWD, P("r2/c"), 1 /* NOREPLACE */), -1);
	assert_int_equal(errno, EEXIST);
	assert_sys(unlink(P("r2/b")));
	assert_sys(unlink(P("r2/c")));
	assert_sys(rmdir(P("r2/sub")));
	assert_sys(rmdir(P("r2")));
	assert_sys(rmdir(P("r1")));
}

static void modes_times_and_owners_are_set(void **state)
{
	NEED_FAR();
	struct stat st;
	file_write(P("m"), "m", 1);
	assert_sys(chmod(P("m"), 0640));
	assert_sys(stat(P("m"), &st));
	assert_int_equal(st.st_mode & 07777, 0640);
	struct timespec ts[2] = {{1000000000, 0}, {1234567890, 999}};
	assert_sys(utimensat(AT_FDCWD, P("m"), ts, 0));
	assert_sys(stat(P("m"), &st));
	assert_int_equal(st.st_mtime, 1234567890);
	assert_sys(chown(P("m"), st.st_uid, (gid_t)-1)); /* to who owns it */
	assert_errno(chown(P("m"), st.st_uid + 1, (gid_t)-1), EPERM);
	/* as tar does it: times while the file is open */
	int fd = open(P("t"), O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_sys(fd);
	assert_int_equal(write(fd, "tar", 3), 3);
	assert_sys(futimens(fd, ts));
	assert_sys(close(fd));
	assert_sys(stat(P("t"), &st));
	assert_int_equal(st.st_mtime, 1234567890);
	far_do(far, FAR_FLUSH, 0);
	assert_sys(stat(P("t"), &st));
	assert_int_equal(st.st_mtime, 1234567890);
	assert_sys(unlink(P("m")));
	assert_sys(unlink(P("t")));
}

static void cuts_and_holes_read_as_zeros(void **state)
{
	NEED_FAR();
	struct stat st;
	char b[20000];
	memset(b, 'x', sizeof(b));
	file_write(P("h"), b, sizeof(b));
	assert_sys(truncate(P("h"), 5000));
	assert_sys(truncate(P("h"), 12000));
	int fd = open(P("h"), O_RDWR);
	assert_sys(fd);
	assert_int_equal(pwrite(fd, "end", 3, 100000), 3);
	assert_sys(ftruncate(fd, 150000));
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(pread(fd, b, 10000, 0), 10000);
		assert_int_equal(b[4999], 'x');
		assert_int_equal(b[5000], 0);
		assert_int_equal(b[9999], 0);
		assert_int_equal(pread(fd, b, 10, 99995), 10);
		assert_memory_equal(b, "\0\0\0\0\0end\0\0", 10);
		assert_int_equal(pread(fd, b, 10, 149995), 5);
		assert_int_equal(pread(fd, b, 10, 150000), 0);
		if (turn == 0) { /* the same from the server */
			assert_sys(close(fd));
			far_do(far, FAR_FLUSH, 0);
			fd = open(P("h"), O_RDONLY);
			assert_sys(fd);
		}
	}
	close(fd);
	assert_sys(stat(P("h"), &st));
	assert_int_equal(st.st_size, 150000);
	assert_sys(unlink(P("h")));
}

static void a_file_removed_while_open_lives_until_its_close(void **state)
{
	NEED_FAR();
	struct stat st;
	assert_sys(mkdir(P("u"), 0755));
	file_write(P("u/f"), "still here", 10);
	int fd = open(P("u/f"), O_RDWR);
	assert_sys(fd);
	assert_sys(unlink(P("u/f")));
	assert_errno(stat(P("u/f"), &st), ENOENT);
	assert_int_equal(names_in(P("u")), 0);
	char b[32] = "";
	assert_int_equal(pread(fd, b, 10, 0), 10);
	assert_string_equal(b, "still here");
	assert_int_equal(pwrite(fd, "ALSO", 4, 10), 4);
	assert_int_equal(pread(fd, b, 14, 0), 14);
	assert_string_equal(b, "still hereALSO");
	assert_sys(fstat(fd, &st));
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_size, 14);
	file_write(P("u/f"), "new", 3); /* the name is free */
	assert_sys(close(fd));
	file_is(P("u/f"), "new");
	/* replaced by a rename while open */
	fd = open(P("u/f"), O_RDONLY);
	file_write(P("u/g"), "newer", 5);
	assert_sys(rename(P("u/g"), P("u/f")));
	assert_int_equal(pread(fd, b, 10, 0), 3);
	assert_sys(close(fd));
	file_is(P("u/f"), "newer");
	assert_sys(unlink(P("u/f")));
	for (int i = 0; rmdir(P("u")) < 0; i++) { /* the last close's removal follows the close */
		assert_true(errno == ENOTEMPTY && i < 200);
		usleep(10000);
	}
}

static void names_of_any_bytes_and_lengths_work(void **state)
{
	NEED_FAR();
	static const unsigned lengths[] = {1, 15, 16, 19, 20, 47, 48, 79, 80, 254, 255};
	char name[300];
	struct stat st;
	assert_sys(mkdir(P("n"), 0755));
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(name, 'n', lengths[i]);
		name[lengths[i]] = 0;
		file_write(P("n/%s", name), name, 1);
	}
	memset(name, 'n', 256);
	name[256] = 0;
	assert_errno(open(P("n/%s", name), O_CREAT | O_WRONLY, 0600), ENAMETOOLONG);
	file_write(P("n/\xff\xfe\x01 \n\"\\"), "b", 1);
	file_write(P("n/\xc3\xa9"), "e", 1);
	far_do(far, FAR_FLUSH, 0);
	assert_int_equal(names_in(P("n")), ARRAY_SIZE(lengths) + 2);
	file_is(P("n/\xff\xfe\x01 \n\"\\"), "b");
	assert_sys(stat(P("n/\xc3\xa9"), &st));
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(name, 'n', lengths[i]);
		name[lengths[i]] = 0;
		assert_sys(unlink(P("n/%s", name)));
	}
	assert_sys(unlink(P("n/\xff\xfe\x01 \n\"\\")));
	assert_sys(unlink(P("n/\xc3\xa9")));
	assert_sys(rmdir(P("n")));
}

static void a_big_directory_lists_whole_while_it_is_emptied(void **state)
{
	NEED_FAR();
	assert_sys(mkdir(P("big"), 0755));
	for (int i = 0; i < 600; i++)
		file_write(P("big/file%d", i), "", 0);
	assert_int_equal(names_in(P("big")), 600);
	far_do(far, FAR_FLUSH, 0);
	assert_int_equal(names_in(P("big")), 600);
	DIR *d = opendir(P("big"));
	unsigned n = 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		assert_sys(unlinkat(dirfd(d), e->d_name, 0));
		n++;
	}
	closedir(d);
	assert_int_equal(n, 600);
	assert_sys(rmdir(P("big")));
}

static void mapped_writes_reach_the_server(void **state)
{
	NEED_FAR();
	file_write(P("map"), "", 0);
	int fd = open(P("map"), O_RDWR);
	assert_sys(fd);
	assert_sys(ftruncate(fd, 300000));
	char *p = mmap(NULL, 300000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	memcpy(p, "start", 5);
	memcpy(p + 200000, "middle", 6);
	assert_sys(msync(p, 300000, MS_SYNC));
	memcpy(p + 299990, "end", 3);
	munmap(p, 300000);
	assert_sys(close(fd));
	far_do(far, FAR_FLUSH, 0);
	fd = open(P("map"), O_RDONLY);
	char b[16] = "";
	assert_int_equal(pread(fd, b, 5, 0), 5);
	assert_string_equal(b, "start");
	assert_int_equal(pread(fd, b, 6, 200000), 6);
	assert_string_equal(b, "middle");
	assert_int_equal(pread(fd, b, 10, 299990), 10);
	assert_memory_equal(b, "end\0\0\0\0\0\0\0", 10);
	close(fd);
	assert_sys(unlink(P("map")));
}

static void attributes_tell_fid_cell_volume_and_acl(void **state)
{
	NEED_FAR();
	char b[1200];
	ssize_t n;
	file_write(P("x"), "x", 1);
	n = getxattr(P("x"), "afs.cell", b, sizeof(b));
	assert_int_equal(n, strlen(RIG_CELL));
	n = getxattr(P("x"), "afs.fid", b, sizeof(b));
	assert_true(n > 0);
	b[n] = 0;
	assert_memory_equal(b, "20000001:", 9);
	n = getxattr(P("x"), "afs.volume", b, sizeof(b));
	assert_int_equal(n, 9);
	assert_memory_equal(b, "root.cell", 9);
	assert_int_equal(getxattr(P("x"), "afs.volume", NULL, 0), 9);
	assert_errno(getxattr(P("x"), "afs.volume", b, 3), ERANGE);
	assert_errno(getxattr(P("x"), "user.x", b, 3), ENODATA);
	assert_errno(getxattr(P("x"), "afs.yfs.acl", b, 3), EOPNOTSUPP);
	n = getxattr(P("."), "afs.acl", b, sizeof(b));
	assert_true(n > 0);
	b[n] = 0;
	assert_string_equal(b, "1\n0\nsystem:anyuser\t127\n");
	static const char two[] = "2\n0\nsystem:anyuser\t127\nalice\t9\n";
	assert_sys(mkdir(P("xd"), 0755));
	assert_sys(setxattr(P("xd"), "afs.acl", two, sizeof(two), 0));
	n = getxattr(P("xd"), "afs.acl", b, sizeof(b));
	b[n] = 0;
	assert_non_null(strstr(b, "alice\t9\n"));
	assert_errno(setxattr(P("xd"), "afs.acl", "1\n0\nno.such.user\t9\n", 19, 0), EINVAL);
	assert_errno(setxattr(P("xd"), "afs.fid", "1", 1, 0), EPERM);
	assert_sys(rmdir(P("xd")));
	assert_sys(unlink(P("x")));
	struct statvfs vs;
	assert_sys(statvfs(P("."), &vs));
	assert_true(vs.f_blocks > 0);
}

static int lock_in_child(const char *path, int op)
{
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR);
		_exit(fd < 0 ? 99 : flock(fd, op) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : 98);
	}
	int status;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int fcntl_in_child(const char *path, short type, off_t start, off_t len)
{
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR);
		struct flock l = {
			.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
		_exit(fd < 0                                 ? 99
			: fcntl(fd, F_SETLK, &l) == 0        ? 0
			: errno == EAGAIN || errno == EACCES ? 1
							     : 98);
	}
	int status;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void locks_keep_others_out(void **state)
{
	NEED_FAR();
	file_write(P("lock"), "0123456789", 10);
	const char *path = P("lock");
	int fd = open(path, O_RDWR);
	assert_sys(flock(fd, LOCK_EX));
	assert_int_equal(lock_in_child(path, LOCK_SH | LOCK_NB), 1);
	assert_sys(flock(fd, LOCK_SH));
	assert_int_equal(lock_in_child(path, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(lock_in_child(path, LOCK_EX | LOCK_NB), 1);
	pid_t waiter = fork();
	if (waiter == 0) {
		int other = open(path, O_RDWR);
		_exit(flock(other, LOCK_EX) == 0 ? 0 : 1); /* waits */
	}
	usleep(50000);
	assert_int_equal(waitpid(waiter, NULL, WNOHANG), 0);
	assert_sys(flock(fd, LOCK_UN));
	int status;
	assert_int_equal(waitpid(waiter, &status, 0), waiter);
	assert_int_equal(status, 0);
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 5};
	assert_sys(fcntl(fd, F_SETLK, &l));
	assert_int_equal(fcntl_in_child(path, F_WRLCK, 4, 1), 1);
	assert_int_equal(fcntl_in_child(path, F_WRLCK, 5, 1), 0);
	l.l_type = F_UNLCK;
	assert_sys(fcntl(fd, F_SETLK, &l));
	assert_int_equal(fcntl_in_child(path, F_WRLCK, 0, 0), 0);
	close(fd);
	assert_sys(unlink(path));
}

static void a_volume_inside_itself_and_one_that_is_not_there(void **state)
{
	NEED_FAR();
	struct stat st, in;
	assert_sys(symlink("#root.cell.", P("self")));
	assert_sys(symlink("#no.such.volume.", P("nowhere")));
	assert_sys(symlink("#no mount point", P("link")));
	assert_sys(lstat(P("link"), &st));
	assert_true(S_ISLNK(st.st_mode));
	assert_sys(lstat(P("self"), &st));
	assert_true(S_ISDIR(st.st_mode));
	file_write(P("self/self/self/deep"), "deep", 4);
	file_is(P("deep"), "deep");
	assert_sys(stat(P("self/self/.."), &in));
	assert_int_equal(st.st_ino, in.st_ino);
	assert_sys(lstat(P("nowhere"), &st)); /* listing it does no harm */
	assert_errno(open(P("nowhere/x"), O_RDONLY), ENODEV);
	assert_errno(rmdir(P("self")), ENOTDIR);
	assert_errno(unlink(P("self")), EISDIR);
	assert_errno(rename(P("self"), P("self2")), EXDEV);
	far_do(far, FAR_VOLUME, 1);
	assert_sys(symlink("%vol1.", P("v1")));
	file_write(P("v1/in"), "volume", 6);
	file_is(P("v1/in"), "volume");
	assert_errno(link(P("deep"), P("v1/deep")), EXDEV);
	assert_errno(rename(P("deep"), P("v1/deep")), EXDEV);
	assert_sys(unlink(P("deep")));
	assert_sys(unlink(P("link")));
}

static void a_file_larger_than_the_cache_streams_through(void **state)
{
	NEED_FAR();
	enum { BLOCK = 1 << 20, BLOCKS = 160 }; /* the cache holds 64 */
	char *b = malloc(BLOCK);
	int fd = open(P("huge"), O_WRONLY | O_CREAT, 0600);
	assert_sys(fd);
	for (int i = 0; i < BLOCKS; i++) {
		memset(b, i + 1, BLOCK);
		assert_int_equal(write(fd, b, BLOCK), BLOCK);
	}
	assert_sys(close(fd));
	struct client_stats s = far_do(far, FAR_STATS, 0);
	assert_true(s.cache_bytes <= s.cache_max);
	assert_int_equal(s.dirty_bytes, 0); /* closed: the server has it */
	fd = open(P("huge"), O_RDONLY);
	for (int i = 0; i < BLOCKS; i++) {
		for (int at = 0; at < BLOCK;) {
			ssize_t n = read(fd, b + at, (size_t)(BLOCK - at));
			assert_true(n > 0);
			at += (int)n;
		}
		assert_int_equal(b[0], (char)(i + 1));
		assert_int_equal(b[BLOCK - 1], (char)(i + 1));
	}
	assert_int_equal(read(fd, b, 1), 0);
	close(fd);
	assert_sys(unlink(P("huge")));
	free(b);
}

static void what_was_closed_survives_a_restart_of_the_client(void **state)
{
	NEED_FAR();
	file_write(P("keep"), "kept on disk", 12);
	file_is(P("keep"), "kept on disk");
	uint64_t before = far_do(far, FAR_STATS, 0).fetched_bytes;
	assert_int_equal(before, before);
	far_do(far, FAR_CLIENT_STOP, 0);
	far_do(far, FAR_CLIENT_START, 0);
	file_is(P("keep"), "kept on disk");
	assert_int_equal(far_do(far, FAR_STATS, 0).fetched_bytes, 0); /* the cache was good */
	assert_sys(unlink(P("keep")));
}

static void a_server_that_restarts_is_met_again(void **state)
{
	NEED_FAR();
	file_write(P("s"), "one", 3);
	far_do(far, FAR_SERVER_RESTART, 0);
	file_write(P("s"), "two", 3);
	file_is(P("s"), "two");
	assert_sys(unlink(P("s")));
}

static void a_full_volume_is_reported_by_close_and_leaves_what_the_server_has(void **state)
{
	NEED_FAR();
	enum { N = 4 << 20 };
	char *b = malloc(N);
	memset(b, 'q', N);
	file_write(P("q"), "before", 6);
	far_do(far, FAR_QUOTA, 100);
	int fd = open(P("q"), O_WRONLY);
	assert_sys(fd);
	assert_int_equal(write(fd, b, N), N); /* a few MiB wait in the cache */
	assert_errno(close(fd), EDQUOT);
	struct stat st;
	far_do(far, FAR_QUOTA, 0);
	assert_sys(stat(P("q"), &st));
	assert_int_equal(st.st_size, 6);
	file_is(P("q"), "before");
	/* and once reported, it is over */
	file_write(P("q"), "after", 5);
	file_is(P("q"), "after");
	assert_sys(unlink(P("q")));
	free(b);
}

static void who_waits_for_a_busy_volume_goes_on_when_it_is_free(void **state)
{
	NEED_FAR();
	file_write(P("w"), "w", 1);
	far_do(far, FAR_CLAIM, VS_CLAIM_BUSY);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(P("w2"), O_WRONLY | O_CREAT, 0600);
		_exit(fd >= 0 && close(fd) == 0 ? 0 : 1);
	}
	usleep(300000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	far_do(far, FAR_CLAIM, VS_FREE);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_sys(unlink(P("w")));
	assert_sys(unlink(P("w2")));
}

static void without_its_server_the_cache_still_serves_and_the_rest_times_out(void **state)
{
	NEED_FAR();
	struct stat st;
	file_write(P("here"), "cached", 6);
	file_is(P("here"), "cached");
	far_do(far, FAR_SERVER_STOP, 0);
	file_is(P("here"), "cached"); /* under its promise */
	assert_sys(stat(P("."), &st));
	assert_errno(mkdir(P("there"), 0755), ETIMEDOUT);
	far_do(far, FAR_SERVER_START, 0);
	for (int i = 0; mkdir(P("there"), 0755) < 0; i++) {
		assert_true(i < 100);
		usleep(100000);
	}
	assert_sys(rmdir(P("there")));
	assert_sys(unlink(P("here")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {T(what_is_written_is_read_back_and_appended_to),
		T(names_of_every_kind_come_and_go), T(renames_follow_posix),
		T(modes_times_and_owners_are_set), T(cuts_and_holes_read_as_zeros),
		T(a_file_removed_while_open_lives_until_its_close),
		T(names_of_any_bytes_and_lengths_work),
		T(a_big_directory_lists_whole_while_it_is_emptied),
		T(mapped_writes_reach_the_server), T(attributes_tell_fid_cell_volume_and_acl),
		T(locks_keep_others_out), T(a_volume_inside_itself_and_one_that_is_not_there),
		T(a_file_larger_than_the_cache_streams_through),
		T(what_was_closed_survives_a_restart_of_the_client),
		T(a_server_that_restarts_is_met_again),
		T(a_full_volume_is_reported_by_close_and_leaves_what_the_server_has),
		T(who_waits_for_a_busy_volume_goes_on_when_it_is_free),
		T(without_its_server_the_cache_still_serves_and_the_rest_times_out)};
	return cmocka_run_group_tests_name(__FILE__, tests, begin, end);
}
