/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What "afscell bench mount" found as one page: it loads nothing, so it can be kept, mailed and opened anywhere.  A
 * chart for each experiment, longer is better, and all figures in a table below. */
#include "cell/cli/bench_mount.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 760, LABEL = 170, VALUE = 130, BAR = 22, GAP = 6 };

static void put_text(struct buf *o, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '<': buf_puts(o, "&lt;"); break;
		case '>': buf_puts(o, "&gt;"); break;
		case '&': buf_puts(o, "&amp;"); break;
		case '"': buf_puts(o, "&quot;"); break;
		default: buf_putc(o, *s);
		}
}

static bool same_what(const struct bm_row *a, const struct bm_row *b) { return strcmp(a->what, b->what) == 0; }

static const char *colour(const struct bm *b, const struct bm_row *r)
{
	return b->place[r->place].afs ? "afs" : b->place[r->place].local ? "local" : "other";
}

static void bar(const struct bm *b, struct buf *o, const struct bm_median *m, double most, unsigned y)
{
	char rate[32];
	double w = most > 0 ? bm_rate_number(m) / most * (WIDTH - LABEL - VALUE) : 0;
	buf_printf(o, "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">", LABEL - 8, y + 15);
	put_text(o, b->place[m->row.place].label);
	if (*m->row.cache)
		buf_printf(o, ", %s", m->row.cache);
	buf_printf(o, "</text><rect class=\"%s\" x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"%d\"/><text x=\"%.1f\" y=\"%u\">%s%s</text>\n",
		colour(b, &m->row), LABEL, y, MAX(w, 1.0), BAR, LABEL + MAX(w, 1.0) + 6, y + 15, bm_rate(rate, m), m->row.cut ? "*" : "");
}

static void chart(const struct bm *b, struct buf *o, const struct bm_row *kind)
{
	struct bm_median m;
	double most = 0;
	unsigned bars = 0, y = GAP;
	for (size_t at = 0; bm_next(b, &at, &m);)
		if (same_what(&m.row, kind)) {
			most = MAX(most, bm_rate_number(&m));
			bars++;
		}
	buf_puts(o, "<section><h3>");
	put_text(o, kind->what);
	buf_printf(o, "</h3><svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d %u\">\n", kind->what, WIDTH, bars * (BAR + GAP) + GAP);
	for (size_t at = 0; bm_next(b, &at, &m);)
		if (same_what(&m.row, kind)) {
			bar(b, o, &m, most, y);
			y += BAR + GAP;
		}
	buf_puts(o, "</svg>\n");
	for (size_t at = 0; bm_next(b, &at, &m);) {
		char limit[BM_LIMIT];
		if (!same_what(&m.row, kind) || !b->place[m.row.place].afs)
			continue;
		bm_limit(b, &m, limit);
		buf_puts(o, "<p>");
		if (*m.row.cache)
			buf_printf(o, "With a cache %s the file: ", m.row.cache);
		put_text(o, limit);
		buf_puts(o, "</p>");
	}
	buf_puts(o, "</section>\n");
}

static void transport(const struct bm *b, struct buf *o)
{
	const struct {
		const char *label;
		double v;
	} all[] = {{"UDP, 1,444 bytes", b->raw_small}, {"UDP, 16,376 bytes", b->raw_large}, {"Rx, fetch", b->rx_fetch}, {"Rx, store", b->rx_store}};
	double most = 0;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		most = MAX(most, all[i].v);
	if (most <= 0)
		return;
	buf_printf(o, "<section><h3>the transport alone, on loopback</h3><svg role=\"img\" aria-label=\"transport\" viewBox=\"0 0 %d %zu\">\n", WIDTH,
		ARRAY_SIZE(all) * (BAR + GAP) + GAP);
	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		double w = MAX(all[i].v / most * (WIDTH - LABEL - VALUE), 1.0);
		unsigned y = GAP + i * (BAR + GAP);
		buf_printf(o, "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">%s</text><rect class=\"other\" x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>"
			"<text x=\"%.1f\" y=\"%u\">%.0f MB/s</text>\n", LABEL - 8, y + 15, all[i].label, LABEL, y, w, BAR, LABEL + w + 6, y + 15, all[i].v);
	}
	buf_puts(o, "</svg></section>\n");
}

static void table(const struct bm *b, struct buf *o)
{
	struct bm_median m;
	char title[96], rate[32], limit[BM_LIMIT];
	buf_puts(o, "<h2>All figures</h2><div class=\"wide\"><table><thead><tr><th>what</th><th>where</th><th>rate</th><th>least</th><th>most</th><th>runs</th>"
		"<th>CPU ms/unit, ours</th><th>others'</th><th>switches/unit, ours</th><th>others'</th><th>what limits it</th></tr></thead><tbody>\n");
	for (size_t at = 0; bm_next(b, &at, &m);) {
		const struct bm_row *r = &m.row;
		buf_puts(o, "<tr><td>");
		put_text(o, bm_title(title, r));
		buf_puts(o, "</td><td>");
		put_text(o, b->place[r->place].label);
		buf_printf(o, "</td><td class=\"n\">%s%s</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td class=\"n\">%zu</td>", bm_rate(rate, &m),
			r->cut ? "*" : "", m.most > 0 ? 1 / m.most : 0, m.least > 0 ? 1 / m.least : 0, m.runs);
		buf_printf(o, "<td class=\"n\">%.3f</td><td class=\"n\">%.3f</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td>",
			(double)r->mine.cpu_us / 1000 / r->units, (double)r->theirs.cpu_us / 1000 / r->units, (double)r->mine.switches / r->units,
			(double)r->theirs.switches / r->units);
		bm_limit(b, &m, limit);
		put_text(o, limit);
		buf_puts(o, "</td></tr>\n");
	}
	buf_puts(o, "</tbody></table></div>\n");
}

static void head(const struct bm *b, struct buf *o)
{
	struct utsname u;
	char when[64];
	time_t now = (time_t)(clk_wall() / NS_PER_SEC);
	struct tm tm;
	const char *cell = json_string_value(json_object_get(b->status, "cell"));
	uname(&u);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M %Z", localtime_r(&now, &tm));
	buf_puts(o, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
		"<title>afscell bench</title>\n<style>\n"
		":root{color-scheme:light dark;--afs:#1f6feb;--local:#8a8f98;--other:#b7791f;--line:#8884}\n"
		"body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
		"h1{margin-bottom:0}section{border-top:1px solid var(--line);padding:.4rem 0}h3{margin:.3rem 0}section p{margin:.2rem 0}\n"
		"svg{width:100%;max-width:760px}svg text{font-size:13px;fill:currentColor}\n"
		".afs{fill:var(--afs)}.local{fill:var(--local)}.other{fill:var(--other)}\n"
		"table{border-collapse:collapse;font-size:13px}td,th{padding:.2rem .5rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}\n"
		".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}\n</style></head><body>\n");
	buf_puts(o, "<h1>afscell bench</h1><p>");
	put_text(o, cell ? cell : "");
	buf_printf(o, " on %s, %s, %ld processors, %.1f GB of memory; %s%s.</p>\n", u.sysname, u.release, sysconf(_SC_NPROCESSORS_ONLN),
		(double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9, when, bm_stopped ? "; interrupted, so not complete" : "");
}

void bm_html(const struct bm *b, struct buf *o)
{
	char text[8][BM_LIMIT];
	head(b, o);
	buf_puts(o, "<p>Longer bars are better.</p>\n");
	for (size_t i = 0; i < b->rows; i++) {
		size_t j = 0;
		while (j < i && !same_what(&b->row[j], &b->row[i]))
			j++;
		if (j == i)
			chart(b, o, &b->row[i]);
	}
	transport(b, o);
	table(b, o);
	buf_puts(o, "<h2>To read them right</h2><ul>\n<li>A unit is a MB of 10<sup>6</sup> bytes, or a file. Ours: the measuring program and what it starts; "
		"others': the processes that serve the directory.</li>\n");
	size_t n = bm_remarks(b, text, ARRAY_SIZE(text));
	for (size_t i = 0; i < n; i++) {
		buf_puts(o, "<li>");
		put_text(o, text[i]);
		buf_puts(o, "</li>\n");
	}
	buf_puts(o, "</ul></body></html>\n");
}
