/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the rows say to people: the sample file, the list of keys, the manual page. */
#include "cell/conf/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cell/base/text.h"

/* "One sentence. Expected: ..." broken into comment lines. */
static void put_wrapped(struct buf *b, const char *indent, const char *text)
{
	size_t room = 96 - strlen(indent);
	while (*text) {
		size_t n = strlen(text);
		if (n > room) {
			n = room;
			while (n > 0 && text[n] != ' ')
				n--;
			if (n == 0)
				n = room;
		}
		buf_printf(b, "%s# %.*s\n", indent, (int)n, text);
		text += n;
		while (*text == ' ')
			text++;
	}
}

static void put_range(struct buf *b, const struct conf_row *row)
{
	char a[24];
	if (row->kind == CONF_ENUM) {
		for (const char *p = row->choices; *p; p++) {
			if (*p == '|')
				buf_puts(b, " or ");
			else
				buf_putc(b, *p);
		}
		return;
	}
	buf_puts(b, conf_expected(row->kind));
	if (row->kind == CONF_INT)
		buf_printf(b, " from %" PRId64 " to %" PRId64, row->min, row->max);
	if (row->kind == CONF_SIZE && row->min)
		buf_printf(b, ", at least %s", text_size_of(a, row->min));
}

static const char *last_of(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : path;
}

static const char *value_for(const struct conf_row *row, const struct conf_sample *with)
{
	if (with && with->cell && strcmp(row->path, "cell") == 0)
		return with->cell;
	if (with && with->state && strcmp(row->path, "state") == 0)
		return with->state;
	if (with && with->mount && strcmp(row->path, "client.mount") == 0)
		return with->mount;
	if (strcmp(row->path, "administrators") == 0)
		return "[admin]";
	return row->dflt;
}

/* A word as YAML reads it back; quoted when it must be, or `always`. */
static void put_text(struct buf *out, const char *s, bool always)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._<>-[]";
	if (!*s || (!always && strspn(s, plain) == strlen(s))) {
		buf_puts(out, s);
		return;
	}
	buf_putc(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *s);
	}
	buf_putc(out, '"');
}

/* The sample of a map; users with the password file of admin, when there is one. */
static void put_map_sample(struct buf *out, const struct conf_row *row, const struct conf_sample *with)
{
	static const char admin[] = "  admin: {}\n";
	const char *at = with && with->admin_password_file ? strstr(row->sample, admin) : NULL;
	if (!at) {
		buf_puts(out, row->sample);
		return;
	}
	buf_put(out, row->sample, (size_t)(at - row->sample));
	buf_puts(out, "  admin: {password_file: ");
	put_text(out, with->admin_password_file, true);
	buf_puts(out, "}\n");
	buf_puts(out, at + strlen(admin));
}

void conf_write_sample(struct buf *out, const struct conf_sample *with)
{
	buf_puts(out,
		"# afscell.yaml: the desired state of one AFS cell.\n"
		"#\n"
		"# \"afscell up\" makes the cell match this file: it creates what is missing, changes what differs,\n"
		"# deletes nothing, and says what it did.  \"afscell config check\" tells whether the file is right.\n"
		"# Lines with a # in front show a key's default or an example.  <state> is the state directory.\n");
	for (size_t i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		if (row->type == CONF_ROW_SECTION) {
			buf_puts(out, "\n");
			put_wrapped(out, "", row->text);
			buf_printf(out, "%s:\n", row->path);
			continue;
		}
		if (row->type == CONF_ROW_MAP) {
			buf_puts(out, "\n");
			put_wrapped(out, "", row->text);
			for (size_t k = i + 1; k < conf_row_count && conf_rows[k].type == CONF_ROW_KEY
					       && strchr(conf_rows[k].path, '*'); k++) {
				CLEANUP(buf) struct buf line = {};
				const char *name = last_of(conf_rows[k].path);
				if (strcmp(name, "*") == 0)
					continue;
				buf_printf(&line, "  %s: %s", name, conf_rows[k].text);
				if (conf_rows[k].kind == CONF_ENUM) {
					buf_puts(&line, " (");
					put_range(&line, &conf_rows[k]);
					buf_puts(&line, ")");
				}
				put_wrapped(out, "", line.data ? line.data : "");
			}
			put_map_sample(out, row, with);
			continue;
		}
		if (strchr(row->path, '*'))
			continue;
		const char *dot = strrchr(row->path, '.');
		const char *indent = dot ? "  " : "";
		const char *value = value_for(row, with);
		if (dot && strncmp(row->path, "roles.", 6) == 0) {
			/* roles.fileserver.enabled, .port and perhaps .security: one line */
			if (strcmp(dot, ".enabled") == 0) {
				CLEANUP(buf) struct buf line = {};
				bool levels = strcmp(last_of(row[2].path), "security") == 0;
				buf_printf(&line, "%s %s", row->text, row[1].text);
				if (levels) {
					buf_printf(&line, " %s (", row[2].text);
					put_range(&line, &row[2]);
					buf_puts(&line, ")");
				}
				put_wrapped(out, "  ", line.data ? line.data : "");
				buf_printf(out, "  %.*s: {enabled: %s, port: %s%s%s}\n", (int)(dot - row->path - 6), row->path + 6,
					row->dflt, row[1].dflt, levels ? ", security: " : "", levels ? row[2].dflt : "");
			}
			continue;
		}
		CLEANUP(buf) struct buf line = {};
		buf_puts(&line, row->text);
		if (row->kind == CONF_ENUM) {
			buf_puts(&line, " (");
			put_range(&line, row);
			buf_puts(&line, ")");
		}
		if (!dot)
			buf_puts(out, "\n");
		put_wrapped(out, indent, line.data ? line.data : "");
		bool shown = *value && *value != '<' && strcmp(value, "[]") != 0;
		buf_printf(out, "%s%s%s:%s", shown ? "" : "#", indent, last_of(row->path), *value ? " " : "");
		put_text(out, value, false);
		buf_putc(out, '\n');
	}
}

void conf_write_keys(struct buf *out)
{
	for (size_t i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		buf_printf(out, "%s\n    %s\n", row->path, row->text);
		if (row->type == CONF_ROW_KEY) {
			buf_puts(out, "    Expected: ");
			put_range(out, row);
			buf_printf(out, ".  Default: %s\n", *row->dflt ? row->dflt : "empty");
		}
	}
}

static void put_roff(struct buf *b, const char *s)
{
	for (; *s; s++) {
		if (*s == '\\')
			buf_puts(b, "\\e");
		else if (*s == '-')
			buf_puts(b, "\\-");
		else
			buf_putc(b, *s);
	}
}

void conf_write_man(struct buf *out, const char *version)
{
	buf_printf(out, ".TH \"afscell.yaml\" 5 \"\" \"afscell %s\"\n.SH NAME\nafscell.yaml \\- the desired state of an AFS cell\n"
			".SH DESCRIPTION\nA YAML file that\n.BR afscell\\-up (1)\nmakes true.\n"
			"A key that is not listed here is an error.\n.SH KEYS\n", version);
	for (size_t i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		buf_puts(out, ".TP\n.B ");
		put_roff(out, row->path);
		buf_puts(out, "\n");
		put_roff(out, row->text);
		buf_puts(out, "\n");
		if (row->type != CONF_ROW_KEY)
			continue;
		CLEANUP(buf) struct buf range = {};
		put_range(&range, row);
		buf_puts(out, "Expected: ");
		put_roff(out, range.data ? range.data : "");
		buf_puts(out, ".  Default: ");
		put_roff(out, *row->dflt ? row->dflt : "empty");
		buf_puts(out, ".\n");
	}
	CLEANUP(buf) struct buf sample = {};
	conf_write_sample(&sample, NULL);
	buf_puts(out, ".SH EXAMPLE\n.nf\n");
	for (const char *p = sample.data; p && *p;) {
		size_t n = strcspn(p, "\n");
		CLEANUP(str) char *line = mem_strndup(p, n);
		buf_puts(out, "\\&");
		put_roff(out, line ? line : "");
		buf_puts(out, "\n");
		p += n + (p[n] == '\n');
	}
	buf_puts(out, ".fi\n.SH SEE ALSO\n.BR afscell (1)\n");
}
