/* SPDX-License-Identifier: BSD-2-Clause
 * The console's own counters, after those of the cell, as Prometheus reads them. */
#include "webui/http.h"

static void series(struct buf *out, const char *name, const char *type, const char *help, uint64_t v)
{
	buf_printf(out, "# HELP afscell_console_%s %s\n# TYPE afscell_console_%s %s\nafscell_console_%s %llu\n", name, help, name, type, name,
		(unsigned long long)v);
}

void web_metrics(struct web *w, struct buf *out)
{
	w->ports.metrics(w->ports.ctx, out);
	series(out, "requests_total", "counter", "HTTP requests that began.", w->requests);
	series(out, "refused_total", "counter", "HTTP requests answered with an error.", w->refused);
	series(out, "sign_ins_total", "counter", "People who signed in.", w->sign_ins);
	series(out, "failed_sign_ins_total", "counter", "Attempts to sign in that failed.", w->failed_sign_ins);
	series(out, "commands_total", "counter", "Commands run.", w->runs);
	series(out, "failed_commands_total", "counter", "Commands that failed.", w->failed_runs);
	series(out, "sessions", "gauge", "Sessions open now.", sessions_count(w->sessions, clk_mono()));
	series(out, "feeds", "gauge", "Live feeds open now.", w->feeds);
}
