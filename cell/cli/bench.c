/* SPDX-License-Identifier: BSD-2-Clause
 *
 * "afscell bench rx": what is asked for, a server of its own when none is named, and the measurements
 * one after another. */
#include "cell/cli/bench.h"

#include "cell/base/text.h"
#include "cell/cli/handlers.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POOL_BYTES = 512 << 20, RAW_SMALL = 1444, RAW_LARGE = 16376 };

static const struct {
	const char *word;
	enum bench_what what;
} words[] = {
	{"fetch", BENCH_FETCH}, {"store", BENCH_STORE}, {"inline", BENCH_INLINE}, {"worker", BENCH_WORKER},
	{"raw", BENCH_RAW}, {"mix", BENCH_MIX}, {"vl", BENCH_VL},
};
static const char *const levels[BENCH_LEVELS] = {"null", "clear", "auth", "crypt"};

struct bench_usage bench_usage_of(pid_t pid)
{
	struct bench_usage u = {0};
	char path[80], line[1024];
	clockid_t clock;
	struct timespec t;
	if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0) /* in ns; /proc counts ticks */
		u.cpu_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/task/%.16s/status", (long)pid, e->d_name);
		FILE *f = fopen(path, "r");
		unsigned long n;
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1 ||
				sscanf(line, "nonvoluntary_ctxt_switches: %lu", &n) == 1)
				u.switches += n;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return u;
}

/* --- options --------------------------------------------------------------------------------------- */

static int number(struct cli *c, const char *name, unsigned least, unsigned most, unsigned *out)
{
	const char *text = cli_value(c, name);
	if (!text)
		return CLI_OK;
	char *end;
	errno = 0;
	unsigned long v = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || v < least || v > most)
		return cli_misuse(c, "-%s %s: a number from %u to %u is wanted", name, text, least, most);
	*out = (unsigned)v;
	return CLI_OK;
}

static int size(struct bench *b)
{
	const char *text = cli_value(b->c, "size");
	int64_t v;
	if (!text)
		return CLI_OK;
	if (!text_size(text, &v) || v < 1)
		return cli_misuse(b->c, "-size %s: a size such as 256K or 1G is wanted", text);
	b->size = (uint64_t)v;
	return CLI_OK;
}

/* "[ADDRESS:]PORT" */
static int address(struct cli *c, const char *name, bool whole, struct rx_addr *out)
{
	const char *text = cli_value(c, name), *colon = strrchr(text, ':');
	char ip[INET_ADDRSTRLEN] = "0.0.0.0";
	struct in_addr a;
	char *end;
	if (colon)
		snprintf(ip, sizeof(ip), "%.*s", (int)MIN(colon - text, (long)sizeof(ip) - 1), text);
	unsigned long port = strtoul(colon ? colon + 1 : text, &end, 10);
	if (*end || port > UINT16_MAX || (whole && (!colon || !port)) || inet_pton(AF_INET, ip, &a) != 1)
		return cli_misuse(c, "-%s %s: %s is wanted", name, text, whole ? "ADDRESS:PORT" : "PORT or ADDRESS:PORT");
	*out = (struct rx_addr){ntohl(a.s_addr), (uint16_t)port};
	return CLI_OK;
}

/* Words separated by commas; `each` gives false for one it does not know. */
static int list(struct bench *b, const char *name, const char *text, bool (*each)(struct bench *, const char *))
{
	CLEANUP(str) char *copy = mem_strdup(text);
	char *rest = copy;
	for (char *w; copy && (w = strsep(&rest, ","));)
		if (!each(b, w))
			return cli_misuse(b->c, "-%s %s: \"%s\" is not known here", name, text, w);
	return copy ? CLI_OK : CLI_FAILED;
}

static bool add_what(struct bench *b, const char *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(w, words[i].word) == 0) {
			b->what |= words[i].what;
			return true;
		}
	return false;
}

static bool add_level(struct bench *b, const char *w)
{
	bool all = strcmp(w, "all") == 0, found = all;
	for (size_t i = 0; i < BENCH_LEVELS; i++)
		if (all || strcmp(w, levels[i]) == 0)
			found = b->level[i] = true;
	return found;
}

static bool add_clients(struct bench *b, const char *w)
{
	char *end;
	unsigned long n = strtoul(w, &end, 10);
	if (!isdigit((unsigned char)*w) || *end || n < 1 || n > BENCH_THREADS || b->client_counts == BENCH_LIST)
		return false;
	b->clients[b->client_counts++] = (unsigned)n;
	return true;
}

static int options(struct bench *b)
{
	struct cli *c = b->c;
	const char *what = cli_value(c, "what"), *level = cli_value(c, "level"), *clients = cli_value(c, "clients");
	unsigned pid = 0;
	int status = list(b, "what", what ? what : "fetch,store,inline,worker,raw", add_what);
	status = status ? status : list(b, "level", level ? level : "null", add_level);
	status = status ? status : list(b, "clients", clients ? clients : "1,8", add_clients);
	status = status ? status : size(b);
	status = status ? status : number(c, "calls", 1, 100000000, &b->calls);
	status = status ? status : number(c, "runs", 1, 1000, &b->runs);
	status = status ? status : number(c, "flows", 1, BENCH_THREADS, &b->flows);
	status = status ? status : number(c, "seconds", 1, 3600, &b->seconds);
	status = status ? status : number(c, "datagram", 1444, RX_DATAGRAM_MAX, &b->datagram);
	status = status ? status : number(c, "pid", 1, 1 << 30, &pid);
	b->pid = (pid_t)pid;
	b->shared = cli_has(c, "shared");
	b->plain = cli_has(c, "plain");
	b->single = cli_has(c, "single");
	b->name = cli_value(c, "name") ? cli_value(c, "name") : "root.cell";
	if (!status && (b->what & BENCH_VL) && !cli_has(c, "to"))
		return cli_misuse(c, "vl needs -to ADDRESS:PORT of a VL server");
	if (!status && (b->what & BENCH_VL) && (b->what != BENCH_VL || !b->level[BENCH_NULL] || level))
		return cli_misuse(c, "vl is measured alone, and anonymously");
	return status;
}

/* --- measuring ------------------------------------------------------------------------------------- */

static int measure_level(struct bench *b, enum bench_level l)
{
	int status = CLI_OK;
	if (b->what & BENCH_FETCH)
		status = bench_bulk(b, l, true);
	if (!status && (b->what & BENCH_STORE))
		status = bench_bulk(b, l, false);
	static const enum bench_what small[] = {BENCH_INLINE, BENCH_WORKER, BENCH_VL};
	for (size_t k = 0; k < ARRAY_SIZE(small); k++)
		for (unsigned i = 0; i < b->client_counts && !status && (b->what & small[k]); i++)
			status = bench_small(b, l, small[k], b->clients[i]);
	if (!status && (b->what & BENCH_MIX))
		status = bench_mix(b, l);
	return status;
}

static int measure(struct bench *b)
{
	int status = CLI_OK;
	for (unsigned run = 0; run < b->runs && !status; run++) {
		for (enum bench_level l = BENCH_NULL; l < BENCH_LEVELS && !status; l++)
			if (b->level[l])
				status = measure_level(b, l);
		if (!status && (b->what & BENCH_RAW))
			status = bench_raw(b, RAW_SMALL);
		if (!status && (b->what & BENCH_RAW) && b->to.ip >> 24 == 127) /* others cannot cut a run so */
			status = bench_raw(b, RAW_LARGE);
	}
	return status;
}

static int client(struct bench *b)
{
	afs_err err = bench_port_open(b, "bench", 0, 0, false, &b->port);
	if (err != AFS_OK)
		return cli_fail(b->c, "no port: %s", afs_err_text(err));
	int status = measure(b);
	rpc_port_close(b->port);
	int printed = b->silent ? CLI_OK : bench_report_print(b->report, b->c);
	return status ? status : printed;
}

/* A server of its own, as another process: it ends when this one does. */
static int own_server(struct bench *b)
{
	const char *text = b->silent ? NULL : cli_value(b->c, "address");
	struct in_addr a = {htonl(INADDR_LOOPBACK)};
	if (text && inet_pton(AF_INET, text, &a) != 1)
		return cli_misuse(b->c, "-address %s: an address is wanted", text);
	int ready[2], stop[2];
	if (pipe(ready) < 0 || pipe(stop) < 0)
		return cli_fail(b->c, "pipe: %s", strerror(errno));
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		return cli_fail(b->c, "fork: %s", strerror(errno));
	if (child == 0) {
		close(stop[1]);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		_exit(bench_serve(b, ntohl(a.s_addr), 0, ready[1], stop[0]));
	}
	close(ready[1]);
	close(stop[0]);
	uint16_t port;
	int status = CLI_FAILED;
	if (read(ready[0], &port, sizeof(port)) == sizeof(port)) {
		b->to = (struct rx_addr){ntohl(a.s_addr), port};
		status = client(b);
	}
	close(ready[0]);
	close(stop[1]);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

static int prepare(struct bench *b)
{
	memset(bench_content, 'a', sizeof(bench_content));
	b->pool = rx_buf_pool_new(POOL_BYTES);
	b->report = bench_report_new();
	return b->pool && b->report ? CLI_OK : cli_fail(b->c, "%s", afs_err_text(AFS_ENOMEM));
}

static int run(struct bench *b)
{
	struct rx_addr at = {0};
	int status = options(b);
	status = status ? status : prepare(b);
	if (status)
		return status;
	if (cli_has(b->c, "serve")) {
		status = address(b->c, "serve", false, &at);
		return status ? status : bench_serve(b, at.ip, at.port, -1, -1);
	}
	if (!cli_has(b->c, "to"))
		return own_server(b);
	status = address(b->c, "to", true, &b->to);
	return status ? status : client(b);
}

int bench_rx_alone(struct cli *c, uint64_t size, struct bench_alone *out)
{
	struct bench b = {.c = c, .size = size, .runs = 1, .what = BENCH_FETCH | BENCH_STORE | BENCH_RAW, .silent = true};
	b.level[BENCH_NULL] = true;
	int status = prepare(&b);
	status = status ? status : own_server(&b);
	if (!status)
		*out = (struct bench_alone){bench_report_rate(b.report, "raw UDP 1444"), bench_report_rate(b.report, "raw UDP 16376"),
			bench_report_rate(b.report, "fetch"), bench_report_rate(b.report, "store")};
	bench_report_free(b.report);
	return status;
}

int cli_bench_rx(struct cli *c)
{
	struct bench b = {.c = c, .size = 256 << 20, .calls = 50000, .runs = 1, .flows = 8, .seconds = 3};
	int status = run(&b);
	bench_report_free(b.report);
	return status;
}
