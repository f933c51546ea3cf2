/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The experiments of "afscell bench mount" with one large file.
 *
 * Close-to-open is the promise of AFS: what the server has when close() returns is what counts, so close is part of each
 * time that says so.  Times of others that say it mean only what their close means. */
#include "cell/cli/bench_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

volatile sig_atomic_t bm_stopped;

const uint8_t *bm_content(void)
{
	static uint8_t bytes[BM_BLOCK];
	if (!bytes[0]) {
		uint64_t x = UINT64_C(0x9e3779b97f4a7c15);
		for (size_t i = 0; i < sizeof(bytes); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			bytes[i] = (uint8_t)(x >> 32) | 1;
		}
	}
	return bytes;
}

int bm_fail(struct bm *b, const char *path, const char *doing)
{
	int e = errno;
	if (bm_stopped)
		return CLI_FAILED;
	cli_progress_end(b->c);
	return cli_fail(b->c, "%s: %s: %s%s", path, doing, strerror(e),
		e == EDQUOT || e == ENOSPC ? "; -size, -dd and -quick make it smaller" : "");
}

/* --- spans ------------------------------------------------------------------------------------------- */

static struct bench_usage ours(void)
{
	struct bench_usage u = bench_own_usage();
	struct rusage c; /* compilers */
	getrusage(RUSAGE_CHILDREN, &c);
	u.cpu_us += (uint64_t)(c.ru_utime.tv_sec + c.ru_stime.tv_sec) * 1000000 + (uint64_t)(c.ru_utime.tv_usec + c.ru_stime.tv_usec);
	u.switches += (uint64_t)(c.ru_nvcsw + c.ru_nivcsw);
	return u;
}

static struct bench_usage of_place(const struct bm_place *p)
{
	struct bench_usage all = {0};
	for (size_t i = 0; i < p->pids; i++) {
		struct bench_usage u = bench_usage_of(p->pid[i]);
		all.cpu_us += u.cpu_us;
		all.switches += u.switches;
	}
	return all;
}

/* A thread that ended takes its switches along. */
static struct bench_usage between(struct bench_usage from, struct bench_usage to)
{
	return (struct bench_usage){to.cpu_us > from.cpu_us ? to.cpu_us - from.cpu_us : 0,
		to.switches > from.switches ? to.switches - from.switches : 0};
}

void bm_begin(struct bm *b, struct bm_span *s, size_t place, const char *doing)
{
	s->place = &b->place[place];
	unsigned percent = b->steps ? MIN(b->step * 100 / b->steps, 99u) : 0;
	cli_progress(b->c, "%3u%%  %s: %s", percent, s->place->label, doing);
	s->theirs = of_place(s->place);
	s->mine = ours();
	s->start = clk_mono();
	s->until = s->start + b->limit;
}

void bm_end(struct bm *b, const struct bm_span *s, struct bm_row row)
{
	row.seconds = (double)(clk_mono() - s->start) / 1e9;
	row.mine = between(s->mine, ours());
	row.theirs = between(s->theirs, of_place(s->place));
	row.place = (size_t)(s->place - b->place);
	struct bm_row *rows = mem_resize(b->row, b->rows, b->rows + 1, sizeof(*rows));
	if (!rows || row.units <= 0)
		return; /* a line less is better than none at all */
	b->row = rows;
	b->row[b->rows++] = row;
}

/* --- one file ------------------------------------------------------------------------------------------ */

/* Writes until `size` or the time is there; *done says how much. */
static int write_some(struct bm *b, const struct bm_span *s, int fd, const char *path, uint64_t size, size_t record, uint64_t *done)
{
	const uint8_t *bytes = bm_content();
	for (*done = 0; *done < size && !bm_stopped && !bm_time_is_up(s);) {
		ssize_t n = write(fd, bytes + *done % (BM_BLOCK - record + 1) / record * record, record);
		if (n < 0 && errno != EINTR)
			return bm_fail(b, path, "write");
		*done += n > 0 ? (uint64_t)n : 0;
	}
	return bm_stopped ? CLI_FAILED : CLI_OK;
}

static int create(struct bm *b, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		bm_fail(b, path, "create");
	return fd;
}

static int close_now(struct bm *b, int fd, const char *path) { return close(fd) == 0 ? CLI_OK : bm_fail(b, path, "close"); }

static double mb(uint64_t bytes) { return (double)bytes / 1e6; }

/* Reads the whole file, and looks that it has the length it was given. */
static int read_whole(struct bm *b, size_t place, const char *path, uint64_t length, struct bm_row row)
{
	static uint8_t to[BM_BLOCK];
	struct bm_span s;
	char title[96];
	uint64_t done = 0;
	bm_begin(b, &s, place, bm_title(title, &row));
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return bm_fail(b, path, "open");
	for (ssize_t n = 1; n && !bm_stopped && !bm_time_is_up(&s); done += n > 0 ? (uint64_t)n : 0) {
		n = read(fd, to, sizeof(to));
		if (n < 0 && errno != EINTR)
			return bm_fail(b, path, "read");
		if (n == 0 && done != length)
			return cli_fail(b->c, "%s: %llu bytes were read of %llu written", path, (unsigned long long)done, (unsigned long long)length);
	}
	row.cut = done < length;
	row.units = mb(done);
	if (bm_stopped)
		return CLI_FAILED;
	bm_end(b, &s, row);
	return CLI_OK;
}

/* Two rows of one file: the records, and the same with close. */
static int write_and_close(struct bm *b, size_t place, const char *path, const char *cache, bool sync, uint64_t *length)
{
	struct bm_span s;
	struct bm_row row = {.what = sync ? "write 8K, fsync, close" : "write 8K", .cache = cache, .unit = BM_MB};
	char title[96];
	bm_begin(b, &s, place, bm_title(title, &row));
	int fd = create(b, path);
	if (fd < 0)
		return CLI_FAILED;
	int status = write_some(b, &s, fd, path, b->stream, BM_RECORD, length);
	row.units = mb(*length);
	row.cut = *length < b->stream;
	if (!status && !sync) {
		bm_end(b, &s, row);
		row.what = "write 8K, close";
	}
	if (!status && sync && fsync(fd) != 0)
		status = bm_fail(b, path, "fsync");
	int closed = close_now(b, fd, path);
	status = status ? status : closed;
	if (!status)
		bm_end(b, &s, row);
	return status;
}

int bm_stream(struct bm *b, size_t place, const char *cache)
{
	const struct bm_place *p = &b->place[place];
	CLEANUP(str) char *path = mem_printf("%s/stream", p->work);
	uint64_t length = 0;
	if (!path)
		return cli_fail(b->c, "%s", afs_err_text(AFS_ENOMEM));
	int status = write_and_close(b, place, path, cache, false, &length);
	if (!status) {
		bm_settle(path);
		status = write_and_close(b, place, path, cache, true, &length);
	}
	status = status ? status : bm_forget(b, p, path);
	bm_forgotten(p);
	status = status ? status : read_whole(b, place, path, length, (struct bm_row){.what = "read, cold", .cache = cache, .unit = BM_MB});
	status = status ? status : read_whole(b, place, path, length, (struct bm_row){.what = "read, warm", .cache = cache, .unit = BM_MB});
	bm_remove(path, MONO_NEVER); /* what stays is told when the directory goes */
	b->step++;
	return status;
}

int bm_dd(struct bm *b, size_t place, const char *cache)
{
	const struct bm_place *p = &b->place[place];
	CLEANUP(str) char *path = mem_printf("%s/dd", p->work);
	struct bm_row row = {.what = "dd 256K, write and close", .cache = cache, .unit = BM_MB};
	struct bm_span s;
	char title[96];
	uint64_t length = 0;
	if (!path)
		return cli_fail(b->c, "%s", afs_err_text(AFS_ENOMEM));
	bm_begin(b, &s, place, bm_title(title, &row));
	int fd = create(b, path);
	if (fd < 0)
		return CLI_FAILED;
	int status = write_some(b, &s, fd, path, b->dd, BM_BLOCK, &length), closed = close_now(b, fd, path);
	row.units = mb(length);
	row.cut = length < b->dd;
	status = status ? status : closed;
	if (!status) {
		bm_end(b, &s, row);
		status = bm_forget(b, p, path);
		bm_forgotten(p);
	}
	row = (struct bm_row){.what = "dd 256K, read, cold", .cache = cache, .unit = BM_MB};
	status = status ? status : read_whole(b, place, path, length, row);
	row.what = "dd 256K, read again";
	status = status ? status : read_whole(b, place, path, length, row);
	bm_remove(path, MONO_NEVER); /* as above */
	b->step++;
	return status;
}
