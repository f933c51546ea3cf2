/* SPDX-License-Identifier: BSD-2-Clause
 *
 * "afscell bench mount": what is asked for, what it will cost, and the experiments, place after place and run after
 * run, so that what else the machine does falls on all of them alike.
 *
 * Whatever ends it, an error or a signal included, what was made is removed and the cache has the size that it had. */
#include "cell/cli/bench_mount.h"

#include "cell/base/text.h"
#include "cell/cli/handlers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { CACHE_LEAST = 64 << 20, SOURCE_BYTES = 8 << 10, SMALL_ROOM = 8 << 10, MUCH = 256 << 20 };

static void on_signal(int sig)
{
	(void)sig;
	bm_stopped = 1;
}

static void watch_signals(void)
{
	static const int all[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction a = {.sa_handler = on_signal};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		sigaction(all[i], &a, NULL);
	signal(SIGPIPE, SIG_IGN); /* a reader of ours that goes must not leave files behind */
}

/* --- options ------------------------------------------------------------------------------------------- */

static int size_of(struct bm *b, const char *name, uint64_t *out)
{
	const char *text = cli_value(b->c, name);
	int64_t v;
	if (!text)
		return CLI_OK;
	if (!text_size(text, &v) || v < BM_BLOCK || v > INT64_C(1) << 40)
		return cli_misuse(b->c, "-%s %s: a size from 256K to 1024G is wanted", name, text);
	*out = (uint64_t)v / BM_BLOCK * BM_BLOCK;
	return CLI_OK;
}

static int count_of(struct bm *b, const char *name, unsigned most, unsigned *out)
{
	const char *text = cli_value(b->c, name);
	int64_t v;
	if (!text)
		return CLI_OK;
	if (!text_int(text, &v) || v < 1 || v > most)
		return cli_misuse(b->c, "-%s %s: a number from 1 to %u is wanted", name, text, most);
	*out = (unsigned)v;
	return CLI_OK;
}

static const char *const parts[] = {"stream", "dd", "small", "tree", "cache", "transport"};

static bool wanted(const struct bm *b, const char *part)
{
	size_t n = strlen(part);
	for (const char *at = b->without; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == n && strncmp(at, part, n) == 0)
			return false;
	return true;
}

static int judge_without(struct bm *b)
{
	for (const char *at = b->without; at && *at; at += strcspn(at, ","), at += *at == ',') {
		size_t n = strcspn(at, ","), i = 0;
		while (i < ARRAY_SIZE(parts) && (strlen(parts[i]) != n || strncmp(at, parts[i], n) != 0))
			i++;
		if (i == ARRAY_SIZE(parts))
			return cli_misuse(b->c, "-without %s: stream, dd, small, tree, cache and transport can be left out", b->without);
	}
	return CLI_OK;
}

static int options(struct bm *b)
{
	struct cli *c = b->c;
	b->quick = cli_has(c, "quick");
	b->without = cli_value(c, "without");
	b->stream = (uint64_t)(b->quick ? 64 : 512) << 20;
	b->dd = (uint64_t)(b->quick ? 128 : 1024) << 20;
	b->files = b->quick ? 500 : 5000;
	b->sources = b->quick ? 10 : 60;
	b->runs = b->quick ? 1 : 3;
	b->limit = b->quick ? SEC(3) : SEC(300);
	int status = judge_without(b);
	status = status ? status : size_of(b, "size", &b->stream);
	status = status ? status : size_of(b, "dd", &b->dd);
	status = status ? status : count_of(b, "files", 1000000, &b->files);
	status = status ? status : count_of(b, "sources", 10000, &b->sources);
	return status ? status : count_of(b, "runs", 100, &b->runs);
}

/* --- places -------------------------------------------------------------------------------------------- */

static int add_pids(struct bm *b, struct bm_place *p)
{
	const char *text = cli_value(b->c, "pid");
	while (text && *text) {
		char *end;
		long v = strtol(text, &end, 10);
		if (end == text || v < 1 || (*end && *end != ',') || p->pids == BM_PIDS)
			return cli_misuse(b->c, "-pid: up to %d process ids separated by commas are wanted", BM_PIDS);
		p->pid[p->pids++] = (pid_t)v;
		text = *end ? end + 1 : end;
	}
	return CLI_OK;
}

static const char *short_path(char out[24], const char *path)
{
	size_t n = strlen(path);
	snprintf(out, 24, "%s%s", n > 20 ? "..." : "", n > 20 ? path + n - 17 : path);
	return out;
}

static int local_place(struct bm *b)
{
	const char *dir = cli_value(b->c, "local");
	struct statfs fs;
	dir = dir ? dir : "/var/tmp";
	if (strcmp(dir, "none") == 0)
		return CLI_OK;
	if (statfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		cli_warn(b->c, "%s is memory and no disk; -local names a directory on a disk", dir);
	int status = bm_place_add(b, dir, "local disk", false);
	if (!status)
		b->place[b->places - 1].local = true;
	return status;
}

static int places(struct bm *b)
{
	const char *dir = cli_value(b->c, "directory");
	const char *const *against;
	size_t n = cli_values(b->c, "against", &against);
	int status = bm_place_add(b, dir ? dir : ".", "afscell", true);
	if (!status)
		status = cli_ask(b->c, "status", NULL, &b->status);
	if (!status) {
		b->place[0].pid[0] = (pid_t)json_integer_value(json_object_get(b->status, "pid"));
		b->place[0].pids = 1;
		b->tune = geteuid() == 0 && wanted(b, "cache");
		if (!bm_cache_facts(b))
			status = cli_fail(b->c, "the cache manager does not say how large its cache is: %s", strerror(errno));
		b->tune = b->tune && !status && bm_cache_can_resize(b);
		b->untuned = !b->tune && wanted(b, "cache");
	}
	status = status ? status : local_place(b);
	for (size_t i = 0; i < n && !status; i++) {
		char label[24];
		status = bm_place_add(b, against[i], short_path(label, against[i]), false);
		status = status ? status : add_pids(b, &b->place[b->places - 1]);
	}
	return status;
}

static bool runs_program(const char *name)
{
	posix_spawn_file_actions_t quiet;
	char program[16], version[] = "--version";
	char *argv[] = {program, version, NULL};
	pid_t pid;
	int how = 1;
	snprintf(program, sizeof(program), "%s", name);
	if (posix_spawn_file_actions_init(&quiet) != 0)
		return false;
	bool good = posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
		posix_spawnp(&pid, program, &quiet, NULL, argv, environ) == 0;
	posix_spawn_file_actions_destroy(&quiet);
	while (good && waitpid(pid, &how, 0) < 0)
		good = errno == EINTR;
	return good && how == 0;
}

static void find_compiler(struct bm *b)
{
	static const char *const names[] = {"cc", "gcc", "clang"};
	for (size_t i = 0; i < ARRAY_SIZE(names) && !b->compiler[0]; i++)
		if (runs_program(names[i]))
			snprintf(b->compiler, sizeof(b->compiler), "%s", names[i]);
	b->compiler_missing = !b->compiler[0];
}

/* --- what it will cost ----------------------------------------------------------------------------------- */

static uint64_t at_once(const struct bm *b)
{
	uint64_t most = wanted(b, "stream") ? b->stream : 0;
	if (wanted(b, "dd"))
		most = MAX(most, b->dd);
	if (wanted(b, "small"))
		most = MAX(most, (uint64_t)b->files * SMALL_ROOM);
	if (wanted(b, "tree"))
		most = MAX(most, (uint64_t)b->sources * 4 * SOURCE_BYTES);
	return most;
}

static bool small_cache_for(uint64_t file) { return file / 2 >= CACHE_LEAST; }

static uint64_t in_all(const struct bm *b)
{
	uint64_t stream = wanted(b, "stream") ? 2 * b->stream : 0, dd = wanted(b, "dd") ? b->dd : 0;
	uint64_t one = stream + dd + (wanted(b, "small") ? (uint64_t)b->files * SMALL_ROOM : 0);
	uint64_t tuned = b->tune ? (small_cache_for(b->stream) ? stream : 0) + (small_cache_for(b->dd) ? 2 * dd : dd) : 0;
	return b->runs * (one * b->places + tuned);
}

static int room(struct bm *b)
{
	uint64_t need = at_once(b);
	for (size_t i = 0; i < b->places; i++) {
		struct statvfs st;
		if (statvfs(b->place[i].work, &st) != 0)
			return cli_fail(b->c, "%s: %s", b->place[i].work, strerror(errno));
		uint64_t have = (uint64_t)st.f_bavail * st.f_frsize;
		if (have < need + need / 16)
			return cli_fail(b->c, "%s: there is room for %.0f MB, and up to %.0f MB would be written at a time; -quick, -size and -dd "
				"make that less%s", b->place[i].work, (double)have / 1e6, (double)(need + need / 16) / 1e6,
				b->place[i].afs ? ", or \"afscell fs setquota\" the room more" : "");
	}
	return CLI_OK;
}

static int agree(struct bm *b)
{
	if (cli_wants_json(b->c) || cli_has(b->c, "yes"))
		return CLI_OK;
	fprintf(stderr, "Writes up to %.0f MB at a time into %zu %s, %.1f GB in all, and removes it%s.\n", (double)at_once(b) / 1e6, b->places,
		b->places == 1 ? "directory" : "directories", (double)in_all(b) / 1e9,
		b->tune ? "; the size of the cache is changed for some of it, and then set back" : "");
	for (size_t i = 0; i < b->places; i++)
		fprintf(stderr, "  %s: %s\n", b->place[i].label, b->place[i].work);
	if (at_once(b) <= MUCH || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return CLI_OK;
	char answer[16] = "";
	fprintf(stderr, "Go on? [y/N] ");
	if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return CLI_OK;
	return cli_fail(b->c, "nothing was measured");
}

/* --- driving ---------------------------------------------------------------------------------------------- */

static int with_cache(struct bm *b, const char *cache, uint64_t bytes, int (*experiment)(struct bm *b, size_t place, const char *cache))
{
	int status = bm_cache_resize(b, (uint32_t)(bytes >> 10));
	status = status ? status : experiment(b, 0, cache);
	int back = bm_cache_resize(b, b->cache_kib);
	return status ? status : back;
}

static int tuned(struct bm *b)
{
	int status = CLI_OK;
	if (wanted(b, "stream") && small_cache_for(b->stream))
		status = with_cache(b, "half", b->stream / 2, bm_stream);
	if (!status && wanted(b, "dd") && small_cache_for(b->dd))
		status = with_cache(b, "half", b->dd / 2, bm_dd);
	if (!status && wanted(b, "dd"))
		status = with_cache(b, "twice", MAX(b->dd * 2, (uint64_t)CACHE_LEAST), bm_dd);
	return status;
}

static int one_run(struct bm *b)
{
	int status = CLI_OK;
	for (size_t i = 0; i < b->places && !status; i++)
		if (wanted(b, "stream"))
			status = bm_stream(b, i, "");
	for (size_t i = 0; i < b->places && !status; i++)
		if (wanted(b, "dd"))
			status = bm_dd(b, i, "");
	for (size_t i = 0; i < b->places && !status; i++)
		if (wanted(b, "small"))
			status = bm_small(b, i);
	for (size_t i = 0; i < b->places && !status; i++)
		if (wanted(b, "tree"))
			status = bm_tree(b, i);
	return !status && b->tune ? tuned(b) : status;
}

static void count_steps(struct bm *b)
{
	unsigned each = wanted(b, "stream") + wanted(b, "dd") + wanted(b, "small") + wanted(b, "tree"), more = 0;
	if (b->tune)
		more = (wanted(b, "stream") && small_cache_for(b->stream)) + (wanted(b, "dd") ? 1 + small_cache_for(b->dd) : 0);
	b->steps = b->runs * (each * (unsigned)b->places + more);
}

static void transport(struct bm *b)
{
	struct bench_alone a = {0};
	cli_progress(b->c, "  0%%  the transport alone");
	if (bench_rx_alone(b->c, b->quick ? 128 << 20 : 512 << 20, &a) != CLI_OK)
		cli_warn(b->c, "the transport is not measured, and what limits the rest is judged without it");
	b->raw_small = a.raw_small;
	b->raw_large = a.raw_large;
	b->rx_fetch = a.fetch;
	b->rx_store = a.store;
}

static int experiments(struct bm *b)
{
	int status = places(b);
	if (!status && wanted(b, "tree"))
		find_compiler(b);
	status = status ? status : room(b);
	status = status ? status : agree(b);
	if (!status && !bm_stopped && wanted(b, "transport"))
		transport(b);
	count_steps(b);
	for (unsigned i = 0; i < b->runs && !status && !bm_stopped; i++)
		status = one_run(b);
	if (!status && bm_stopped)
		status = CLI_FAILED;
	cli_progress_end(b->c);
	return status;
}

/* --- results -------------------------------------------------------------------------------------------------- */

static int write_html(struct bm *b, FILE *f)
{
	CLEANUP(buf) struct buf page = {0};
	bm_html(b, &page);
	if (page.err)
		return cli_fail(b->c, "%s", afs_err_text(page.err));
	if (ftruncate(fileno(f), 0) != 0 && errno != EINVAL) /* no file to be cut: a pipe */
		return cli_fail(b->c, "%s: %s", cli_value(b->c, "html"), strerror(errno));
	if (fwrite(page.data, 1, page.len, f) != page.len || fflush(f) != 0)
		return cli_fail(b->c, "%s: %s", cli_value(b->c, "html"), strerror(errno));
	return CLI_OK;
}

static int results(struct bm *b, FILE *html)
{
	int status = bm_print(b);
	if (html) {
		int wrote = write_html(b, html);
		status = status ? status : wrote;
		if (!wrote)
			cli_say(b->c, "The report with charts: %s\n", cli_value(b->c, "html"));
	}
	return status;
}

int cli_bench_mount(struct cli *c)
{
	struct bm b = {.c = c};
	const char *path = cli_value(c, "html");
	int status = options(&b);
	if (status)
		return status;
	bool is_new = path && access(path, F_OK) != 0;
	FILE *html = path ? fopen(path, "a") : NULL; /* before the work: it may not be ours to write */
	if (path && !html)
		return cli_fail(c, "%s: %s", path, strerror(errno));
	watch_signals();
	status = experiments(&b);
	bool stopped = bm_stopped;
	if (b.places)
		cli_progress(c, "100%%  removing what was made");
	size_t named = b.places;
	bm_places_remove(&b);
	b.places = named; /* for the labels */
	cli_progress_end(c);
	if (stopped)
		cli_warn(c, "interrupted: what was made is removed, and what was measured is shown");
	if (b.rows) {
		int shown = results(&b, html);
		status = status ? status : shown;
	} else if (is_new && html) {
		(void)unlink(path); /* there is nothing in it */
	}
	if (html && fclose(html) != 0 && !status)
		status = cli_fail(c, "%s: %s", path, strerror(errno));
	mem_free(b.row);
	json_decref(b.status);
	return status;
}
