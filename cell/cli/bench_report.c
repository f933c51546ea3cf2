/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Measurements of the same thing stand together, in the order in which the first of each came; the table
 * shows of every column its own median. */
#include "cell/cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_report {
	struct bench_row *rows;
	size_t n;
};

struct bench_report *bench_report_new(void) { return mem_new(struct bench_report); }

void bench_report_free(struct bench_report *r)
{
	if (r)
		mem_free(r->rows);
	mem_free(r);
}

void bench_report_add(struct bench_report *r, const struct bench_row *row)
{
	struct bench_row *rows = mem_resize(r->rows, r->n, r->n + 1, sizeof(*rows));
	if (!rows)
		return; /* a line less is better than none at all */
	r->rows = rows;
	r->rows[r->n++] = *row;
}

/* --- columns ---------------------------------------------------------------------------------------- */

enum column { RATE, P50, P99, MY_CPU, THEIR_CPU, MY_SWITCHES, THEIR_SWITCHES, JAIN, COLUMNS };
static const char *const keys[COLUMNS] = {"rate", "p50_us", "p99_us", "client_cpu_us", "server_cpu_us",
	"client_switches", "server_switches", "jain"};

/* Below 0: not known. */
static double value(const struct bench_row *r, enum column c)
{
	double units = r->units > 0 ? r->units : 1;
	switch (c) {
	case RATE: return r->seconds > 0 ? r->units / r->seconds : 0;
	case P50: return r->p50_us > 0 ? r->p50_us : -1;
	case P99: return r->p99_us > 0 ? r->p99_us : -1;
	case JAIN: return r->jain > 0 ? r->jain : -1;
	case MY_CPU: return (double)r->mine.cpu_us / units;
	case MY_SWITCHES: return (double)r->mine.switches / units;
	case THEIR_CPU: return r->theirs_known ? (double)r->theirs.cpu_us / units : -1;
	case THEIR_SWITCHES: return r->theirs_known ? (double)r->theirs.switches / units : -1;
	case COLUMNS: break;
	}
	return -1;
}

static bool same(const struct bench_row *a, const struct bench_row *b)
{
	return strcmp(a->what, b->what) == 0 && strcmp(a->level, b->level) == 0 && a->clients == b->clients;
}

static bool first_of_kind(const struct bench_report *r, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (same(&r->rows[j], &r->rows[i]))
			return false;
	return true;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct spread {
	double median, least, most;
	size_t runs;
};

static struct spread spread_of(const struct bench_report *r, size_t row, enum column c)
{
	struct spread s = {.median = -1, .least = -1, .most = -1};
	double *v = mem_new_array(r->n, double);
	for (size_t i = row; v && i < r->n; i++)
		if (same(&r->rows[i], &r->rows[row]))
			v[s.runs++] = value(&r->rows[i], c);
	if (v) {
		qsort(v, s.runs, sizeof(*v), by_size);
		s.least = v[0];
		s.most = v[s.runs - 1];
		s.median = s.runs % 2 ? v[s.runs / 2] : (v[s.runs / 2 - 1] + v[s.runs / 2]) / 2;
	}
	mem_free(v);
	return s;
}

double bench_report_rate(const struct bench_report *r, const char *what)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->rows[i].what, what) == 0)
			return spread_of(r, i, RATE).median;
	return 0;
}

/* --- printing ----------------------------------------------------------------------------------------- */

static const char *cell_text(char out[24], double v, int digits)
{
	if (v < 0)
		snprintf(out, 24, "-");
	else
		snprintf(out, 24, "%.*f", digits, v);
	return out;
}

static void print_row(const struct bench_report *r, size_t i)
{
	const struct bench_row *row = &r->rows[i];
	char t[COLUMNS][24], clients[12] = "", spread[48] = "";
	struct spread rate = spread_of(r, i, RATE);
	static const int digits[COLUMNS] = {0, 1, 1, 1, 1, 2, 2, 3};
	for (enum column c = RATE; c < COLUMNS; c++)
		cell_text(t[c], spread_of(r, i, c).median, c == RATE && rate.median < 10 ? 2 : digits[c]);
	if (row->clients)
		snprintf(clients, sizeof(clients), "%u", row->clients);
	if (rate.runs > 1)
		snprintf(spread, sizeof(spread), "  %.*f-%.*f of %zu", rate.median < 10 ? 2 : 0, rate.least,
			rate.median < 10 ? 2 : 0, rate.most, rate.runs);
	printf("%-16s %-6s %7s %9s %-7s %8s %8s %9s %9s %8s %8s", row->what, row->level, clients, t[RATE],
		row->bulk ? "MB/s" : "calls/s", t[P50], t[P99], t[MY_CPU], t[THEIR_CPU], t[MY_SWITCHES], t[THEIR_SWITCHES]);
	if (row->jain > 0)
		printf("  jain %s", t[JAIN]);
	printf("%s\n", spread);
}

static json_t *json_of(const struct bench_report *r, size_t i)
{
	const struct bench_row *row = &r->rows[i];
	json_t *o = json_pack("{s:s, s:s, s:i, s:s}", "what", row->what, "level", row->level, "clients", (int)row->clients,
		"unit", row->bulk ? "MB" : "call");
	for (enum column c = RATE; c < COLUMNS; c++) {
		struct spread s = spread_of(r, i, c);
		if (s.median < 0)
			continue;
		json_object_set_new(o, keys[c], json_real(s.median));
		if (c == RATE)
			json_object_set_new(o, "spread", json_pack("[f, f]", s.least, s.most));
	}
	json_object_set_new(o, "runs", json_integer((json_int_t)spread_of(r, i, RATE).runs));
	return o;
}

int bench_report_print(const struct bench_report *r, struct cli *c)
{
	if (cli_wants_json(c)) {
		json_t *list = json_array();
		for (size_t i = 0; i < r->n; i++)
			if (first_of_kind(r, i))
				json_array_append_new(list, json_of(r, i));
		return cli_print_json(c, list);
	}
	printf("%-16s %-6s %7s %17s %8s %8s %19s %17s\n", "", "", "", "", "p50", "p99", "CPU us/unit", "switches/unit");
	printf("%-16s %-6s %7s %17s %8s %8s %9s %9s %8s %8s\n", "what", "level", "callers", "rate", "us", "us", "client",
		"server", "client", "server");
	for (size_t i = 0; i < r->n; i++)
		if (first_of_kind(r, i))
			print_row(r, i);
	printf("a unit is a call, or a MB of 10^6 bytes\n");
	return CLI_OK;
}
