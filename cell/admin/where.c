/* SPDX-License-Identifier: BSD-2-Clause
 *
 * CellServDB, the list of cells that OpenAFS machines have:
 *
 *   >cell.name            #what it is
 *   10.0.0.1              #host.name
 *   [10.0.0.2]            #a clone, which does not vote
 *
 * Lines of cells that nobody asked for are not judged.  Source: bos.md §6. */
#include "cell/admin/inside.h"

#include "cell/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct line {
	const char *p;
	size_t n; /* without comment and blanks around */
};

static bool next_line(const char **at, const char *end, struct line *out)
{
	if (*at >= end)
		return false;
	const char *p = *at, *nl = memchr(p, '\n', (size_t)(end - p));
	const char *stop = nl ? nl : end;
	*at = nl ? nl + 1 : end;
	const char *hash = memchr(p, '#', (size_t)(stop - p));
	if (hash)
		stop = hash;
	while (p < stop && isspace((unsigned char)*p))
		p++;
	while (stop > p && isspace((unsigned char)stop[-1]))
		stop--;
	*out = (struct line){p, (size_t)(stop - p)};
	return true;
}

/* The name in a ">name" line; false when it is none, or too long to be one. */
static bool cell_line(struct line l, char out[RX_NAME_MAX])
{
	size_t n = 0;
	if (!l.n || l.p[0] != '>')
		return false;
	for (size_t i = 1; i < l.n && !isspace((unsigned char)l.p[i]); i++) {
		if (n + 1 >= RX_NAME_MAX || !isprint((unsigned char)l.p[i]))
			return false;
		out[n++] = (char)tolower((unsigned char)l.p[i]);
	}
	out[n] = '\0';
	return n > 0;
}

static bool host_line(struct line l, uint32_t *ip)
{
	char text[16];
	if (l.n >= 2 && l.p[0] == '[' && l.p[l.n - 1] == ']')
		l = (struct line){l.p + 1, l.n - 2};
	size_t n = 0;
	while (n < l.n && !isspace((unsigned char)l.p[n]))
		n++;
	if (!n || n >= sizeof(text))
		return false;
	memcpy(text, l.p, n);
	text[n] = '\0';
	return text_ipv4(text, ip);
}

afs_err where_parse(const char *text, size_t len, const char *want, struct where_cell *out, struct buf *why)
{
	const char *end = text + len, *at = text, *body = NULL;
	struct line l;
	char name[RX_NAME_MAX];
	unsigned found = 0, number = 0, body_number = 0;
	size_t n = strlen(want);
	while (next_line(&at, end, &l)) {
		number++;
		if (!cell_line(l, name) || strncasecmp(name, want, n) != 0)
			continue;
		bool whole = name[n] == '\0';
		if (!found || whole) {
			memcpy(out->name, name, sizeof(name));
			body = at;
			body_number = number;
		}
		found++;
		if (whole) {
			found = 1;
			break;
		}
	}
	if (found > 1) {
		buf_printf(why, "several cells begin with \"%s\"", want);
		return AFS_EINVAL;
	}
	if (!found)
		return AFS_ENOENT;
	out->n = 0;
	for (at = body; next_line(&at, end, &l) && !(l.n && l.p[0] == '>');) {
		body_number++;
		if (!l.n)
			continue;
		uint32_t ip;
		if (!host_line(l, &ip)) {
			buf_printf(why, "line %u: expected an IPv4 address", body_number);
			return AFS_ECORRUPT;
		}
		if (out->n < ADMIN_DB_MAX)
			out->ips[out->n++] = ip;
	}
	if (!out->n) {
		buf_printf(why, "the cell %s has no servers there", out->name);
		return AFS_ENOENT;
	}
	return AFS_OK;
}

afs_err where_read(const char *path, struct buf *out, struct buf *why)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return AFS_ENOENT;
	if (fd < 0 || fstat(fd, &st) != 0) {
		int eno = errno;
		buf_printf(why, "%s: %s", path, strerror(eno));
		return afs_err_from_errno(eno);
	}
	if (!S_ISREG(st.st_mode) || st.st_size > ADMIN_FILE_MAX) {
		buf_printf(why, "%s is no file of sensible size", path);
		return AFS_EINVAL;
	}
	char chunk[8192];
	for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) != 0;) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || out->len + (size_t)n > ADMIN_FILE_MAX) {
			buf_printf(why, "%s cannot be read: %s", path, n < 0 ? strerror(errno) : "it grows");
			return AFS_EIO;
		}
		buf_put(out, chunk, (size_t)n);
	}
	return out->err;
}

afs_err where_find(const char *dir, const char *want, struct where_cell *out, struct buf *why)
{
	CLEANUP(buf) struct buf this = {}, db = {};
	CLEANUP(str) char *this_path = mem_printf("%s/ThisCell", dir);
	CLEANUP(str) char *db_path = mem_printf("%s/CellServDB", dir);
	if (!this_path || !db_path)
		return AFS_ENOMEM;
	char name[RX_NAME_MAX];
	if (!want) {
		afs_err err = where_read(this_path, &this, why);
		if (err == AFS_ENOENT)
			buf_printf(why, "%s does not exist, and no cell is named", this_path);
		TRY(err);
		const char *at = this.data;
		struct line l = {};
		while (at && next_line(&at, this.data + this.len, &l) && !l.n)
			;
		if (!l.n || l.n >= sizeof(name)) {
			buf_printf(why, "%s has no cell's name in it", this_path);
			return AFS_ECORRUPT;
		}
		memcpy(name, l.p, l.n);
		name[l.n] = '\0';
		want = name;
	}
	afs_err err = where_read(db_path, &db, why);
	CLEANUP(buf) struct buf reason = {};
	if (err == AFS_OK)
		err = where_parse(db.data ? db.data : "", db.len, want, out, &reason);
	else if (err == AFS_ENOENT)
		buf_printf(&reason, "there is no such file");
	else
		return err;
	if (err != AFS_OK)
		buf_printf(why, "the cell %s is not known from %s%s%s", want, db_path, reason.len ? ": " : "",
			reason.data ? reason.data : "");
	return err;
}
