/* SPDX-License-Identifier: BSD-2-Clause
 *
 * BOZO's calls about programs, files and logs, most of which restricted mode refuses. */
#include "cell/bos/handlers.h"
#include "cell/bos/inside.h"

#include "cell/base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAY(verb) TRY(bos_may(call->caller, call->superuser, (verb)))
#define SERVER(call) ((struct bos_server *)(call)->service)
#define CANONICAL_BIN "/usr/afs/bin/"
#define CANONICAL_LOGS "/usr/afs/logs/"
enum { LOG_TAIL_MAX = 16 << 20, CHUNK = 16384, PARTITION_MAX = 255 };

/* --- what restricted mode refuses ------------------------------------------------------------------------- */

afs_err bos_delete_bnode(struct rpc_call *call, const struct bos_delete_bnode_in *in, struct bos_delete_bnode_out *out)
{
	(void)in, (void)out;
	MAY(BOS_PROGRAM);
	return AFS_EACCESS;
}

afs_err bos_install(struct rpc_call *call, const struct bos_install_in *in, struct bos_install_out *out)
{
	(void)in, (void)out;
	MAY(BOS_PROGRAM);
	return AFS_EACCESS;
}

afs_err bos_uninstall(struct rpc_call *call, const struct bos_uninstall_in *in, struct bos_uninstall_out *out)
{
	(void)in, (void)out;
	MAY(BOS_PROGRAM);
	return AFS_EACCESS;
}

afs_err bos_exec(struct rpc_call *call, const struct bos_exec_in *in, struct bos_exec_out *out)
{
	(void)in, (void)out;
	MAY(BOS_PROGRAM);
	return AFS_EACCESS;
}

afs_err bos_prune(struct rpc_call *call, const struct bos_prune_in *in, struct bos_prune_out *out)
{
	(void)in, (void)out;
	MAY(BOS_PROGRAM);
	return AFS_EACCESS;
}

/* --- the salvager --------------------------------------------------------------------------------------------- */

struct words {
	const char *p, *end;
};

static bool next_word(struct words *w, struct xdr_str *out)
{
	while (w->p < w->end && *w->p == ' ')
		w->p++;
	const char *start = w->p;
	while (w->p < w->end && *w->p != ' ')
		w->p++;
	*out = (struct xdr_str){start, (uint32_t)(w->p - start)};
	return out->len;
}

static bool partition_word(struct xdr_str w, int32_t *part)
{
	static const char head[] = "/vicep";
	size_t n = sizeof(head) - 1;
	if (w.len <= n || w.len > n + 2 || memcmp(w.p, head, n) != 0)
		return false;
	int32_t id = 0;
	for (uint32_t i = (uint32_t)n; i < w.len; i++) {
		if (w.p[i] < 'a' || w.p[i] > 'z')
			return false;
		id = i == n ? w.p[i] - 'a' : (id + 1) * 26 + (w.p[i] - 'a');
	}
	*part = id;
	return id <= PARTITION_MAX;
}

static bool number_word(struct xdr_str w, uint32_t *out)
{
	uint64_t v = 0;
	if (!w.len || w.len > 10)
		return false;
	for (uint32_t i = 0; i < w.len; i++) {
		if (!isdigit((unsigned char)w.p[i]))
			return false;
		v = v * 10 + (uint64_t)(w.p[i] - '0');
	}
	*out = (uint32_t)v;
	return v <= UINT32_MAX;
}

/* "/usr/afs/bin/salvager -force /vicepb", "... /vicepa 536870912": what tools send, and no more. */
static bool salvager_command(struct xdr_str cmd, int32_t *part, uint32_t *volume)
{
	static const char *const programs[] = {"salvager", "dasalvager", "salvageserver"},
				 *const flags[] = {"-force", "-client", "-salvagedirs"}, *const with_value[] = {"-parallel", "-orphans"};
	struct words w = {cmd.p, cmd.p + cmd.len};
	struct xdr_str word;
	size_t n = strlen(CANONICAL_BIN);
	bool known = false;
	*part = -1;
	*volume = 0;
	if (!next_word(&w, &word) || word.len <= n || memcmp(word.p, CANONICAL_BIN, n) != 0)
		return false;
	word = (struct xdr_str){word.p + n, word.len - (uint32_t)n};
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		known = known || xdr_str_is(word, programs[i]);
	while (known && next_word(&w, &word)) {
		bool flag = false, value = false;
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			flag = flag || xdr_str_is(word, flags[i]);
		for (size_t i = 0; i < ARRAY_SIZE(with_value); i++)
			value = value || xdr_str_is(word, with_value[i]);
		if (value)
			known = next_word(&w, &word);
		else if (!flag && *part < 0)
			known = partition_word(word, part);
		else if (!flag)
			known = !*volume && number_word(word, volume) && *volume;
	}
	return known;
}

static bool none(struct xdr_str s) { return s.len == 0; }

/* The one instance that may be made: a salvager that runs now, once.  It goes away by itself. */
afs_err bos_create_bnode(struct rpc_call *call, const struct bos_create_bnode_in *in, struct bos_create_bnode_out *out)
{
	int32_t part;
	uint32_t volume;
	(void)out;
	if (!xdr_str_is(in->type, "cron") || !xdr_str_is(in->instance, BOS_REPAIR) || !xdr_str_is(in->p2, "now") || !none(in->p3)
		|| !none(in->p4) || !none(in->p5) || !(none(in->notifier) || xdr_str_is(in->notifier, BOS_NO_NOTIFIER))
		|| !salvager_command(in->p1, &part, &volume)) {
		MAY(BOS_PROGRAM);
		return AFS_EACCESS;
	}
	MAY(BOS_MEND);
	afs_err err = bos_repair_start(SERVER(call), part, volume);
	return err == AFS_EBUSY ? AFS_EEXIST : err;
}

/* --- dates ------------------------------------------------------------------------------------------------------ */

/* Of the programs that this process stands for; other paths are not looked at. */
afs_err bos_get_dates(struct rpc_call *call, const struct bos_get_dates_in *in, struct bos_get_dates_out *out)
{
	struct bos_server *s = SERVER(call);
	size_t n = strlen(CANONICAL_BIN);
	MAY(BOS_SEE);
	if (in->path.len > n && memcmp(in->path.p, CANONICAL_BIN, n) == 0)
		out->time = (int32_t)s->config.ports.program(s->config.ctx, in->path.p + n);
	return AFS_OK;
}

/* --- logs --------------------------------------------------------------------------------------------------------- */

/* The last part of a log that is long, from the beginning of a line. */
static afs_err seek_tail(int fd, off_t size)
{
	char c = 0;
	if (size <= LOG_TAIL_MAX)
		return AFS_OK;
	if (lseek(fd, size - LOG_TAIL_MAX, SEEK_SET) < 0)
		return AFS_EIO;
	while (c != '\n')
		if (read(fd, &c, 1) != 1)
			return AFS_EIO;
	return AFS_OK;
}

static afs_err write_text(struct rpc_call *call, const char *p, size_t n)
{
	for (const char *end = p + n; p < end;) {
		const char *nul = memchr(p, 0, (size_t)(end - p)), *stop = nul ? nul : end;
		if (stop > p)
			TRY(rpc_write(call, p, (size_t)(stop - p)));
		p = nul ? nul + 1 : stop;
	}
	return AFS_OK;
}

/* No more than the file had when the call came: it may grow as fast as it is read. */
static afs_err send_log(struct rpc_call *call, const char *path)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return AFS_ENOENT;
	CLEANUP(str) char *chunk = mem_alloc(CHUNK, 1);
	if (!chunk)
		return AFS_ENOMEM;
	TRY(seek_tail(fd, st.st_size));
	for (off_t left = MIN(st.st_size, (off_t)LOG_TAIL_MAX); left > 0;) {
		ssize_t n = read(fd, chunk, MIN((size_t)left, (size_t)CHUNK));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return AFS_EIO;
		if (n == 0)
			break;
		TRY(write_text(call, chunk, (size_t)n));
		left -= n;
	}
	return rpc_write(call, "", 1);
}

afs_err bos_get_log(struct rpc_call *call, const struct bos_get_log_in *in, struct bos_get_log_out *out)
{
	struct bos_server *s = SERVER(call);
	char path[PATH_MAX];
	const char *name = in->name.p ? in->name.p : "";
	(void)out;
	MAY(BOS_READ);
	if (strncmp(name, CANONICAL_LOGS, strlen(CANONICAL_LOGS)) == 0)
		name += strlen(CANONICAL_LOGS);
	if (strcmp(name, "SalvageLog") == 0)
		return send_log(call, s->config.repair_log);
	if (!s->config.ports.log(s->config.ctx, name, path))
		return AFS_ENOENT;
	return send_log(call, path);
}
