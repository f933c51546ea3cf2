/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What "afscell bench mount" found: medians, the table, JSON, and the sentence that says what limits a result.
 *
 * The sentence is a judgement from what was measured beside it, in this order: the copy out of memory, the transport alone, the
 * processors, the local disk, one processor, waiting.  The first that explains the result is told. */
#include "cell/cli/bench_mount.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { RUNS = 100 };

/* --- medians ------------------------------------------------------------------------------------------ */

static bool same(const struct bm_row *a, const struct bm_row *b)
{
	return a->place == b->place && strcmp(a->what, b->what) == 0 && strcmp(a->cache, b->cache) == 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double middle(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Runs may have been cut at different lengths, so medians are of what one unit took. */
static void median_of(const struct bm *b, size_t first, struct bm_median *out)
{
	double v[5][RUNS];
	size_t n = 0;
	*out = (struct bm_median){.row = b->row[first]};
	for (size_t i = first; i < b->rows && n < RUNS; i++) {
		const struct bm_row *r = &b->row[i];
		if (!same(r, &b->row[first]))
			continue;
		v[0][n] = r->seconds / r->units;
		v[1][n] = (double)r->mine.cpu_us / r->units;
		v[2][n] = (double)r->theirs.cpu_us / r->units;
		v[3][n] = (double)r->mine.switches / r->units;
		v[4][n] = (double)r->theirs.switches / r->units;
		out->row.cut |= r->cut;
		n++;
	}
	double units = out->row.units;
	out->row.seconds = middle(v[0], n) * units;
	out->least = v[0][0];
	out->most = v[0][n - 1];
	out->runs = n;
	out->row.mine = (struct bench_usage){(uint64_t)(middle(v[1], n) * units), (uint64_t)(middle(v[3], n) * units)};
	out->row.theirs = (struct bench_usage){(uint64_t)(middle(v[2], n) * units), (uint64_t)(middle(v[4], n) * units)};
}

static bool first_of_kind(const struct bm *b, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (same(&b->row[j], &b->row[i]))
			return false;
	return true;
}

bool bm_next(const struct bm *b, size_t *at, struct bm_median *out)
{
	while (*at < b->rows && !first_of_kind(b, *at))
		++*at;
	if (*at >= b->rows)
		return false;
	median_of(b, (*at)++, out);
	return true;
}

/* The same thing elsewhere; rate 0: it was not measured. */
static double rate_of(const struct bm *b, size_t place, const char *what, const char *cache)
{
	struct bm_median m;
	for (size_t at = 0; bm_next(b, &at, &m);)
		if (m.row.place == place && strcmp(m.row.what, what) == 0 && strcmp(m.row.cache, cache) == 0)
			return bm_rate_number(&m);
	return 0;
}

static double local_rate(const struct bm *b, const char *what)
{
	for (size_t i = 0; i < b->places; i++)
		if (b->place[i].local)
			return rate_of(b, i, what, "");
	return 0;
}

double bm_rate_number(const struct bm_median *m)
{
	return m->row.units / (m->row.seconds > 1e-9 ? m->row.seconds : 1e-9);
}

const char *bm_rate(char out[32], const struct bm_median *m)
{
	double rate = bm_rate_number(m);
	snprintf(out, 32, "%.*f %s", rate < 10 ? 2 : 0, rate, m->row.unit == BM_MB ? "MB/s" : "files/s");
	return out;
}

const char *bm_title(char out[96], const struct bm_row *r)
{
	snprintf(out, 96, "%s%s%s%s", r->what, *r->cache ? ", cache " : "", r->cache, *r->cache ? " the file" : "");
	return out;
}

/* --- what limits ---------------------------------------------------------------------------------------- */

static double transport_for(const struct bm *b, const struct bm_row *r)
{
	if (r->unit != BM_MB || !b->place[r->place].afs)
		return 0;
	return strncmp(r->what, "read", 4) == 0 || strncmp(r->what, "dd 256K, read", 13) == 0 ? b->rx_fetch : b->rx_store;
}

static bool from_memory(const struct bm_row *r) { return strcmp(r->what, "read, warm") == 0 || strcmp(r->what, "dd 256K, read again") == 0; }

void bm_limit(const struct bm *b, const struct bm_median *m, char out[BM_LIMIT])
{
	const struct bm_row *r = &m->row;
	const struct bm_place *p = &b->place[r->place];
	const char *unit = r->unit == BM_MB ? "MB" : "file";
	double seconds = r->seconds > 1e-9 ? r->seconds : 1e-9, cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
	double mine = (double)r->mine.cpu_us / 1e6 / seconds, theirs = (double)r->theirs.cpu_us / 1e6 / seconds;
	double used = mine + theirs, rate = bm_rate_number(m);
	double ms = (double)(r->mine.cpu_us + r->theirs.cpu_us) / 1000 / r->units;
	double share = used > 0 ? 100 * theirs / used : 0, switches = (double)(r->mine.switches + r->theirs.switches) / r->units;
	double transport = transport_for(b, r), local = p->local ? 0 : local_rate(b, r->what);
	char where[64] = "";
	if (p->pids)
		snprintf(where, sizeof(where), ", %.0f%% of it in %s", share, p->afs ? "afscell" : "its processes");
	if (strncmp(r->what, "compile", 7) == 0 && mine >= 0.8)
		snprintf(out, BM_LIMIT, "The compiler: %.0f%% of the time is its own CPU.", MIN(mine, 1) * 100);
	else if (from_memory(r) && mine >= 0.7 && theirs < 0.2)
		snprintf(out, BM_LIMIT, "Memory: the kernel copies from its page cache, %.3g ms per MB, and nobody else is asked.", ms);
	else if (transport > 0 && !from_memory(r) && rate >= 0.6 * transport && rate <= 1.1 * transport)
		snprintf(out, BM_LIMIT, "The transport: Rx alone moves %.0f MB/s on this machine, without files.", transport);
	else if (used >= 0.85 * cores)
		snprintf(out, BM_LIMIT, "The processors: all %.0f are busy, %.3g ms per %s%s.", cores, ms, unit, where);
	else if (local > 0 && rate >= 0.7 * local)
		snprintf(out, BM_LIMIT, "What limits local disk too: it does %.0f %s here, and this %.2f of that.", local,
			r->unit == BM_MB ? "MB/s" : "files/s", rate / local);
	else if (used >= 0.8)
		snprintf(out, BM_LIMIT, "One step after the other: %.1f of %.0f processors are busy, %.3g ms per %s%s.", used, cores, ms, unit, where);
	else if (p->local)
		snprintf(out, BM_LIMIT, "The disk: %.0f%% of the time no processor works for it.", 100 * (1 - MIN(used, 1)));
	else
		snprintf(out, BM_LIMIT, "Waiting: %.0f%% of the time no processor works for it; %.3g context switches and %.3g ms of CPU per %s%s.",
			100 * (1 - MIN(used, 1)), switches, ms, unit, where);
}

size_t bm_remarks(const struct bm *b, char (*out)[BM_LIMIT], size_t cap)
{
	size_t n = 0;
	bool cut = false, others = false;
	for (size_t i = 0; i < b->rows; i++)
		cut |= b->row[i].cut;
	for (size_t i = 0; i < b->places; i++)
		others |= !b->place[i].afs;
	if (n < cap && b->cache_kib)
		snprintf(out[n++], BM_LIMIT, "The cache is %s and has room for %.0f MB%s; the files are of %.0f and %.0f MB. Try the other kind with client.memory_cache.",
			b->memory_cache ? "in memory" : "on disk", (double)b->cache_kib * 1024 / 1e6,
			b->tune ? " as configured (it was changed for the rows that say so)" : "", (double)b->stream / 1e6, (double)b->dd / 1e6);
	if (n < cap && b->status)
		snprintf(out[n++], BM_LIMIT, "CPU and switches of afscell are those of process %lld; where it serves the volume too, both sides are in them.",
			(long long)json_integer_value(json_object_get(b->status, "pid")));
	if (n < cap && others)
		snprintf(out[n++], BM_LIMIT, "Cold means, in AFS, that the cache manager has forgotten the file and its status; elsewhere only that the kernel's pages are "
			"dropped, while names and attributes stay known.");
	if (n < cap)
		snprintf(out[n++], BM_LIMIT, "write 8K, close: in AFS the server has the file when close returns; on local disk it may still be in memory. "
			"Compare durability with the row that has fsync.");
	if (n < cap && cut)
		snprintf(out[n++], BM_LIMIT, "* The time for one measurement was up; the rate is of what was done until then.");
	if (n < cap && b->without)
		snprintf(out[n++], BM_LIMIT, "Left out, as asked for: %s.", b->without);
	if (n < cap && b->untuned)
		snprintf(out[n++], BM_LIMIT, "Caches half and twice the size of the file were not tried: only root may change the size, and only of a cache on disk.");
	if (n < cap && b->compiler_missing)
		snprintf(out[n++], BM_LIMIT, "No compiler was found (cc, gcc, clang): nothing was compiled.");
	return n;
}

/* --- printing -------------------------------------------------------------------------------------------- */

static json_t *machine_json(const struct bm *b)
{
	struct utsname u;
	uname(&u);
	return json_pack("{s:s, s:s, s:I, s:I, s:s*, s:s*, s:I, s:s}", "system", u.sysname, "kernel", u.release, "processors",
		(json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes", (json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE), "cell",
		json_string_value(json_object_get(b->status, "cell")), "version", json_string_value(json_object_get(b->status, "version")), "cache_kib",
		(json_int_t)b->cache_kib, "cache", b->memory_cache ? "memory" : "disk");
}

static json_t *row_json(const struct bm *b, const struct bm_median *m)
{
	const struct bm_row *r = &m->row;
	char limit[BM_LIMIT];
	bm_limit(b, m, limit);
	double local = local_rate(b, r->what);
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:[f, f], s:f, s:f, s:f, s:f, s:f, s:b, s:s}", "what", r->what, "cache", r->cache,
		"where", b->place[r->place].label, "unit", r->unit == BM_MB ? "MB" : "file", "runs", (int)m->runs, "per_second", bm_rate_number(m),
		"spread", m->most > 0 ? 1 / m->most : 0, m->least > 0 ? 1 / m->least : 0, "seconds", r->seconds, "cpu_us", (double)r->mine.cpu_us / r->units,
		"others_cpu_us", (double)r->theirs.cpu_us / r->units, "switches", (double)r->mine.switches / r->units, "others_switches",
		(double)r->theirs.switches / r->units, "cut", (int)r->cut, "limit", limit);
	if (local > 0)
		json_object_set_new(o, "of_local", json_real(bm_rate_number(m) / local));
	return o;
}

static int print_json(const struct bm *b)
{
	json_t *list = json_array(), *remarks = json_array();
	char text[8][BM_LIMIT];
	struct bm_median m;
	for (size_t at = 0; bm_next(b, &at, &m);)
		json_array_append_new(list, row_json(b, &m));
	size_t n = bm_remarks(b, text, ARRAY_SIZE(text));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(remarks, json_string(text[i]));
	return cli_print_json(b->c, json_pack("{s:o, s:o, s:o, s:o, s:b}", "machine", machine_json(b), "transport",
		json_pack("{s:f, s:f, s:f, s:f}", "raw_udp_1444", b->raw_small, "raw_udp_16376", b->raw_large, "rx_fetch", b->rx_fetch, "rx_store",
			b->rx_store), "results", list, "remarks", remarks, "complete", !bm_stopped));
}

static void print_row(const struct bm *b, const struct bm_median *m, const char *title)
{
	const struct bm_row *r = &m->row;
	char rate[32], spread[48] = "", ratio[16] = "";
	double local = local_rate(b, r->what);
	if (m->runs > 1 && m->least > 0 && m->most > 0)
		snprintf(spread, sizeof(spread), "  %.0f-%.0f of %zu", 1 / m->most, 1 / m->least, m->runs);
	if (local > 0 && !b->place[r->place].local)
		snprintf(ratio, sizeof(ratio), "%.2f", bm_rate_number(m) / local);
	printf("%-47s %-20.20s %14s%s %6s %8.2f %8.2f %8.1f %8.1f%s\n", title, b->place[r->place].label, bm_rate(rate, m), r->cut ? "*" : " ", ratio,
		(double)r->mine.cpu_us / 1000 / r->units, (double)r->theirs.cpu_us / 1000 / r->units, (double)r->mine.switches / r->units,
		(double)r->theirs.switches / r->units, spread);
}

/* Places stand together under each experiment. */
static void print_kind(const struct bm *b, const struct bm_row *kind)
{
	struct bm_median m;
	char title[96];
	bool named = false;
	for (size_t at = 0; bm_next(b, &at, &m);) {
		if (strcmp(m.row.what, kind->what) != 0 || strcmp(m.row.cache, kind->cache) != 0)
			continue;
		print_row(b, &m, named ? "" : bm_title(title, &m.row));
		named = true;
	}
}

static bool first_of_what(const struct bm *b, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (strcmp(b->row[j].what, b->row[i].what) == 0 && strcmp(b->row[j].cache, b->row[i].cache) == 0)
			return false;
	return true;
}

int bm_print(const struct bm *b)
{
	if (cli_wants_json(b->c))
		return print_json(b);
	struct bm_median m;
	char text[8][BM_LIMIT], title[96];
	const char *bold = cli_colour(b->c, "1"), *plain = cli_colour(b->c, "0");
	printf("%s%-47s %-20s %15s %6s %17s %17s%s\n", bold, "", "", "", "of", "CPU ms/unit", "switches/unit", plain);
	printf("%s%-47s %-20s %15s %6s %8s %8s %8s %8s%s\n", bold, "what", "where", "rate", "local", "ours", "others'", "ours", "others'", plain);
	for (size_t i = 0; i < b->rows; i++)
		if (first_of_what(b, i))
			print_kind(b, &b->row[i]);
	if (b->rx_fetch > 0)
		printf("\nThe transport alone, on loopback: UDP %.0f MB/s in datagrams of 1,444 bytes, %.0f in 16,376; Rx fetches %.0f and stores %.0f MB/s.\n",
			b->raw_small, b->raw_large, b->rx_fetch, b->rx_store);
	printf("\n%sWhat limits%s\n", bold, plain);
	for (size_t at = 0; bm_next(b, &at, &m);) {
		char limit[BM_LIMIT];
		if (!b->place[m.row.place].afs)
			continue;
		bm_limit(b, &m, limit);
		printf("  %s: %s\n", bm_title(title, &m.row), limit);
	}
	printf("\nA unit is a MB of 10^6 bytes, or a file. Ours: this program and what it starts; others': the processes that serve the directory.\n");
	size_t n = bm_remarks(b, text, ARRAY_SIZE(text));
	for (size_t i = 0; i < n; i++)
		printf("%s\n", text[i]);
	return CLI_OK;
}
