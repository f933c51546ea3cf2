/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The experiments of "afscell bench mount" with many files: small ones made, listed, read and removed, and a generated
 * source tree unpacked and compiled.
 *
 * Unpacking does what tar does for each file (create, write, mode, time, close) without an archive to read. */
#include "cell/cli/bench_mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PER_DIR = 100, SMALL_BYTES = 2048, HEADERS = 12, FUNCTIONS = 40 };

extern char **environ;

static int put_file(struct bm *b, const char *path, const void *bytes, size_t n)
{
	static const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
	CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || fchmod(fd, 0644) != 0 || futimens(fd, times) != 0)
		return bm_fail(b, path, "unpack");
	int last = TAKE(fd);
	fd = -1;
	return close(last) == 0 ? CLI_OK : bm_fail(b, path, "close");
}

/* Every file below `dir` (of our own making), counted in `n`: its attributes, as ls -l looks, or its content; or it
 * and the directories do not stay cached. */
enum walk { WALK_LIST, WALK_READ, WALK_FORGET };

static int walk_one(struct bm *b, const struct bm_place *p, const char *path, enum walk how, long *n)
{
	static uint8_t to[BM_BLOCK];
	struct stat st;
	++*n;
	if (how == WALK_FORGET)
		return bm_forget(b, p, path);
	if (how == WALK_LIST)
		return lstat(path, &st) == 0 ? CLI_OK : bm_fail(b, path, "stat");
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : 1;
	while (got > 0)
		got = read(fd, to, sizeof(to));
	return got == 0 ? CLI_OK : bm_fail(b, path, "read");
}

static int walk(struct bm *b, const struct bm_place *p, const char *dir, enum walk how, mono_ns until, long *n)
{
	DIR *d = opendir(dir);
	if (!d)
		return bm_fail(b, dir, "open");
	int status = CLI_OK;
	for (struct dirent *e; !status && clk_mono() < until && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		char path[PATH_MAX];
		struct stat st;
		snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 300, dir, e->d_name);
		bool is_dir = e->d_type == DT_DIR || (e->d_type == DT_UNKNOWN && stat(path, &st) == 0 && S_ISDIR(st.st_mode));
		status = bm_stopped ? CLI_FAILED : is_dir ? walk(b, p, path, how, until, n) : walk_one(b, p, path, how, n);
	}
	closedir(d);
	return !status && how == WALK_FORGET ? bm_forget(b, p, dir) : status;
}

static int walk_row(struct bm *b, size_t place, const char *dir, enum walk how, const char *what, long files)
{
	struct bm_span s;
	long n = 0;
	bm_begin(b, &s, place, what);
	int status = walk(b, &b->place[place], dir, how, s.until, &n);
	if (!status && n != files && !bm_time_is_up(&s))
		return cli_fail(b->c, "%s: %ld files were found of %ld made", dir, n, files);
	if (!status)
		bm_end(b, &s, (struct bm_row){.what = what, .cache = "", .unit = BM_FILE, .units = (double)n, .cut = n != files});
	return status;
}

static int forget_tree(struct bm *b, size_t place, const char *dir)
{
	long n = 0;
	cli_progress(b->c, "      %s: forgetting what is cached", b->place[place].label);
	int status = walk(b, &b->place[place], dir, WALK_FORGET, MONO_NEVER, &n);
	bm_forgotten(&b->place[place]);
	return status;
}

/* --- small files ------------------------------------------------------------------------------------- */

static int make_small(struct bm *b, const struct bm_span *s, const char *dir, long *made)
{
	char path[PATH_MAX];
	for (unsigned i = 0; i < b->files && !bm_time_is_up(s); i++) {
		if (bm_stopped)
			return CLI_FAILED;
		int n = snprintf(path, sizeof(path), "%.*s/d%u", PATH_MAX - 64, dir, i / PER_DIR);
		if (i % PER_DIR == 0 && mkdir(path, 0755) != 0)
			return bm_fail(b, path, "make directory");
		snprintf(path + n, sizeof(path) - (size_t)n, "/file%u", i);
		int status = put_file(b, path, bm_content() + i % 512, SMALL_BYTES);
		if (status)
			return status;
		++*made;
	}
	return CLI_OK;
}

int bm_small(struct bm *b, size_t place)
{
	CLEANUP(str) char *dir = mem_printf("%s/small", b->place[place].work);
	struct bm_span s;
	long made = 0, gone = 0;
	if (!dir || mkdir(dir, 0755) != 0)
		return bm_fail(b, dir ? dir : "small", "make directory");
	bm_begin(b, &s, place, "create small files");
	int status = make_small(b, &s, dir, &made);
	if (!status)
		bm_end(b, &s, (struct bm_row){.what = "create small files", .cache = "", .unit = BM_FILE, .units = (double)made,
			.cut = made < (long)b->files});
	status = status ? status : forget_tree(b, place, dir);
	status = status ? status : walk_row(b, place, dir, WALK_LIST, "list and stat, cold", made);
	status = status ? status : walk_row(b, place, dir, WALK_LIST, "list and stat, warm", made);
	status = status ? status : forget_tree(b, place, dir);
	status = status ? status : walk_row(b, place, dir, WALK_READ, "read small files, cold", made);
	if (!status) {
		bm_begin(b, &s, place, "remove small files");
		gone = bm_remove(dir, s.until);
		if (gone < 0)
			status = bm_fail(b, dir, "remove");
		else
			bm_end(b, &s, (struct bm_row){.what = "remove small files", .cache = "", .unit = BM_FILE, .units = (double)gone,
				.cut = gone < made});
	}
	bm_remove(dir, MONO_NEVER); /* what stays is told when the work directory goes */
	b->step++;
	return status;
}

/* --- a source tree -------------------------------------------------------------------------------------- */

static int header(struct bm *b, const char *dir, unsigned k)
{
	CLEANUP(buf) struct buf t = {0};
	char path[PATH_MAX];
	buf_printf(&t, "#ifndef H%u\n#define H%u\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n", k, k);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		buf_printf(&t, "struct s%u_%u { int a, b[%u]; struct s%u_%u *next; };\nint get%u_%u(const struct s%u_%u *s);\n", k, i, i + 1, k, i, k,
			i, k, i);
	buf_puts(&t, "#endif\n");
	snprintf(path, sizeof(path), "%.*s/include/h%u.h", PATH_MAX - 64, dir, k);
	return t.err ? cli_fail(b->c, "%s", afs_err_text(t.err)) : put_file(b, path, t.data, t.len);
}

static void source_path(char out[PATH_MAX], const char *dir, unsigned i, char kind)
{
	snprintf(out, PATH_MAX, "%.*s/src%u/f%u.%c", PATH_MAX - 64, dir, i / 10, i, kind);
}

static int source(struct bm *b, const char *dir, unsigned i)
{
	CLEANUP(buf) struct buf t = {0};
	char path[PATH_MAX];
	for (unsigned k = 0; k < HEADERS; k++)
		buf_printf(&t, "#include \"h%u.h\"\n", k);
	for (unsigned f = 0; f < FUNCTIONS; f++)
		buf_printf(&t, "static int part%u(int x)\n{\n\tint y = x;\n\tfor (int i = 0; i < x; i++)\n\t\ty = y * %u + (y >> 3) - i;\n\treturn y;\n}\n", f, f + 3);
	buf_printf(&t, "int f%u(int x)\n{\n\tint y = 0;\n", i);
	for (unsigned f = 0; f < FUNCTIONS; f++)
		buf_printf(&t, "\ty += part%u(x + %u);\n", f, f);
	buf_puts(&t, "\treturn y;\n}\n");
	source_path(path, dir, i, 'c');
	return t.err ? cli_fail(b->c, "%s", afs_err_text(t.err)) : put_file(b, path, t.data, t.len);
}

static int directory(struct bm *b, const char *dir, const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 64, dir, name);
	return mkdir(path, 0755) == 0 ? CLI_OK : bm_fail(b, path, "make directory");
}

static int unpack(struct bm *b, const char *dir)
{
	int status = directory(b, dir, "include");
	for (unsigned k = 0; k < HEADERS && !status; k++)
		status = header(b, dir, k);
	for (unsigned i = 0; i < b->sources && !status; i++) {
		char name[32];
		snprintf(name, sizeof(name), "src%u", i / 10);
		if (i % 10 == 0)
			status = directory(b, dir, name);
		status = status ? status : source(b, dir, i);
		status = bm_stopped ? CLI_FAILED : status;
	}
	return status;
}

/* One run of the compiler: 0, or 1 when it did not do it. */
static int compile_one(struct bm *b, const char *dir, unsigned i)
{
	char from[PATH_MAX], to[PATH_MAX], include[PATH_MAX];
	char optimise[] = "-O1", only[] = "-c", output[] = "-o";
	source_path(from, dir, i, 'c');
	source_path(to, dir, i, 'o');
	snprintf(include, sizeof(include), "-I%.*s/include", PATH_MAX - 64, dir);
	char *argv[] = {b->compiler, optimise, include, only, from, output, to, NULL};
	pid_t pid;
	int how = 0, e = posix_spawnp(&pid, b->compiler, NULL, NULL, argv, environ);
	if (e)
		return cli_fail(b->c, "%s: %s", b->compiler, strerror(e));
	while (waitpid(pid, &how, 0) < 0)
		if (errno != EINTR)
			return bm_fail(b, b->compiler, "wait");
		else if (bm_stopped)
			kill(pid, SIGTERM); /* it may not have had the signal that we had */
	if (bm_stopped)
		return CLI_FAILED;
	return WIFEXITED(how) && WEXITSTATUS(how) == 0 ? CLI_OK : cli_fail(b->c, "%s: %s did not compile", from, b->compiler);
}

static int compile(struct bm *b, size_t place, const char *dir, const char *what)
{
	struct bm_span s;
	unsigned done = 0;
	int status = CLI_OK;
	bm_begin(b, &s, place, what);
	for (; done < b->sources && !status && !bm_time_is_up(&s); done++)
		status = compile_one(b, dir, done);
	if (!status)
		bm_end(b, &s, (struct bm_row){.what = what, .cache = "", .unit = BM_FILE, .units = done, .cut = done < b->sources});
	return status;
}

int bm_tree(struct bm *b, size_t place)
{
	CLEANUP(str) char *dir = mem_printf("%s/tree", b->place[place].work);
	struct bm_span s;
	if (!dir || mkdir(dir, 0755) != 0)
		return bm_fail(b, dir ? dir : "tree", "make directory");
	bm_begin(b, &s, place, "unpack a tree");
	int status = unpack(b, dir);
	if (!status)
		bm_end(b, &s, (struct bm_row){.what = "unpack a tree", .cache = "", .unit = BM_FILE, .units = b->sources + HEADERS});
	if (b->compiler[0]) {
		status = status ? status : forget_tree(b, place, dir);
		status = status ? status : compile(b, place, dir, "compile, cold");
		status = status ? status : compile(b, place, dir, "compile, warm");
	}
	bm_remove(dir, MONO_NEVER); /* as above */
	b->step++;
	return status;
}
