/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vos: what its commands share.  Output on standard output has the columns of stock vos; with -verbose steps
 * are told there too, as stock does. */
#include "cell/cli/vos.h"

#include "cell/base/text.h"
#include "cell/cli/parse.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t interrupted;

/* Once: finish the step and put things right.  Twice: at once. */
static void on_signal(int sig)
{
	interrupted = 1;
	signal(sig, SIG_DFL);
}

static void say(void *ctx, const char *step)
{
	(void)ctx;
	printf("%s\n", step);
	fflush(stdout);
}

static void show_step(void *ctx, const char *step) { cli_progress(ctx, "%s", step); }

int vos_begin(struct vos *v, struct cli *c)
{
	*v = (struct vos){.c = c};
	int status = suite_open(c, !cli_has(c, "noresolve"), &v->a);
	if (status != CLI_OK)
		return status;
	if (cli_calling(c)) {
		admin_watch(v->a, show_step, c, NULL);
		return CLI_OK;
	}
	struct sigaction act = {.sa_handler = on_signal};
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	bool tell = cli_has(c, "verbose") && !cli_wants_json(c);
	admin_watch(v->a, tell ? say : show_step, c, &interrupted);
	return CLI_OK;
}

void vos_cleanup(struct vos *v)
{
	if (v->c)
		cli_progress_end(v->c);
	if (v->a)
		admin_close(v->a);
}

/* --- arguments ------------------------------------------------------------------------------------------- */

int vos_server(struct vos *v, const char *row, uint32_t *ip)
{
	const char *name = cli_value(v->c, row);
	*ip = 0;
	if (!name)
		return CLI_OK;
	afs_err err = admin_host_ip(v->a, name, ip);
	return err == AFS_OK ? CLI_OK : cli_fail(v->c, "%s", admin_why(v->a, err));
}

int vos_partition(struct vos *v, const char *row, int32_t *part)
{
	const char *name = cli_value(v->c, row);
	*part = -1;
	if (!name || admin_partition(name, part))
		return CLI_OK;
	*part = -1;
	return cli_misuse(v->c, "-%s %s: expected a partition such as a or /vicepa", row, name);
}

int vos_number(struct vos *v, const char *row, int64_t min, int64_t max, int64_t *out)
{
	const char *text = cli_value(v->c, row);
	int64_t n;
	if (!text)
		return CLI_OK;
	if (!text_int(text, &n) || n < min || n > max)
		return cli_misuse(v->c, "-%s %s: expected a number from %lld to %lld", row, text, (long long)min, (long long)max);
	*out = n;
	return CLI_OK;
}

int vos_id(struct vos *v, const char *row, uint32_t *out)
{
	int64_t n = *out;
	int status = vos_number(v, row, 1, UINT32_MAX, &n);
	*out = (uint32_t)n;
	return status;
}

int vos_date(struct vos *v, const char *row, uint32_t *out)
{
	const char *text = cli_value(v->c, row);
	*out = 0;
	if (!text || strcmp(text, "0") == 0)
		return CLI_OK;
	static const char *const forms[] = {"%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M",
		"%Y-%m-%d"};
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm tm = {.tm_isdst = -1};
		const char *end = strptime(text, forms[i], &tm);
		if (!end || *end)
			continue;
		time_t t = mktime(&tm);
		if (t < 0 || t > UINT32_MAX)
			break;
		*out = (uint32_t)t;
		return CLI_OK;
	}
	return cli_misuse(v->c, "-%s %s: expected a time such as \"11/30/2026 21:57\", or 0", row, text);
}

int vos_place(struct vos *v, uint32_t *ip, int32_t *part)
{
	int status = vos_server(v, "server", ip);
	return status != CLI_OK ? status : vos_partition(v, "partition", part);
}

/* --- entries --------------------------------------------------------------------------------------------- */

afs_err vos_keep(void *ctx, const struct nvldbentry *e)
{
	struct vos_entries *s = ctx;
	if (s->prefix && strncmp(e->name, s->prefix, strlen(s->prefix)) != 0)
		return AFS_OK;
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 256;
		struct nvldbentry *v = mem_resize(s->v, s->cap, cap, sizeof(*v));
		if (!v)
			return AFS_ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n++] = *e;
	return AFS_OK;
}
