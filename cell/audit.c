/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The audit trail (audit.h).  A line is built on the call's own thread and written with one write
 * to a file opened for appending; the lock is held for the write and a rotation only.  Arguments
 * are printed by the row's printer, which shows opaque bytes as their length, and cut at ARGS_MAX. */
#include "cell/audit.h"

#include "cell/base/buf.h"
#include "cell/base/log.h"
#include "cell/base/mem.h"
#include "cell/base/mtx.h"
#include "cell/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 4096 };

struct audit {
	struct audit_config config;
	char *file;
	struct mtx lock;
	int fd GUARDED_BY(lock);
	int64_t size GUARDED_BY(lock);
	bool failing GUARDED_BY(lock); /* said once, until it works again */
};

static afs_err open_file(struct audit *a) REQUIRES(a->lock)
{
	a->fd = open(a->file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;
	if (a->fd < 0 || fstat(a->fd, &st) != 0)
		return afs_err_from_errno(errno);
	a->size = st.st_size;
	return AFS_OK;
}

afs_err audit_open(const struct audit_config *config, struct audit **out)
{
	struct audit *a = mem_new(struct audit);
	if (!a)
		return AFS_ENOMEM;
	mtx_init(&a->lock, RANK_LEAF);
	a->config = *config;
	a->fd = -1;
	a->file = mem_strdup(config->file);
	afs_err err = AFS_ENOMEM;
	if (a->file) {
		mtx_lock(&a->lock);
		err = open_file(a);
		mtx_unlock(&a->lock);
		if (err != AFS_OK)
			err = log_error(err, "audit.open_failed file=%s err=%s", a->file, strerror(errno));
	}
	if (err != AFS_OK) {
		audit_close(a);
		return err;
	}
	*out = a;
	return AFS_OK;
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	mtx_lock(&a->lock);
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	mtx_unlock(&a->lock);
	mtx_fini(&a->lock);
	mem_free(a->file);
	mem_free(a);
}

/* file -> file.1 -> ... -> file.keep, and the oldest goes. */
static void rotate(struct audit *a) REQUIRES(a->lock)
{
	close(a->fd);
	a->fd = -1;
	for (unsigned i = a->config.keep; i > 0; i--) {
		CLEANUP(str) char *to = mem_printf("%s.%u", a->file, i);
		CLEANUP(str) char *from = i > 1 ? mem_printf("%s.%u", a->file, i - 1) : mem_strdup(a->file);
		if (!to || !from || (rename(from, to) != 0 && errno != ENOENT))
			log_warn("audit.rotate_failed file=%s err=%s", a->file, strerror(errno));
	}
	if (a->config.keep == 0 && unlink(a->file) != 0)
		log_warn("audit.rotate_failed file=%s err=%s", a->file, strerror(errno));
	if (open_file(a) != AFS_OK)
		log_warn("audit.open_failed file=%s err=%s", a->file, strerror(errno));
}

static void put_line(struct audit *a, struct buf *b)
{
	buf_puts(b, "}\n");
	if (b->err)
		return;
	mtx_lock(&a->lock);
	if (a->fd >= 0 && a->size > 0 && a->size + (int64_t)b->len > a->config.max_size)
		rotate(a);
	else if (a->fd < 0 && open_file(a) != AFS_OK)
		a->fd = -1;
	ssize_t n = a->fd < 0 ? -1 : write(a->fd, b->data, b->len);
	if (n > 0)
		a->size += n;
	if (n != (ssize_t)b->len && !a->failing)
		log_warn("audit.write_failed file=%s err=%s", a->file, n < 0 ? strerror(errno) : "disk full");
	a->failing = n != (ssize_t)b->len;
	mtx_unlock(&a->lock);
}

static void put_time(struct buf *b)
{
	wall_ns now = clk_wall();
	time_t sec = (time_t)(now / NS_PER_SEC);
	struct tm tm;
	gmtime_r(&sec, &tm);
	buf_printf(b, "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06" PRId64 "Z\"", tm.tm_year + 1900, tm.tm_mon + 1,
		tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, now % NS_PER_SEC / 1000);
}

static void put_text(struct buf *b, const char *key, const char *value)
{
	buf_printf(b, ",\"%s\":", key);
	xdr_print_text(b, value, strlen(value));
}

static void put_who(struct buf *b, const struct rx_caller *c)
{
	if (!c->authenticated) {
		put_text(b, "who", "anonymous");
		return;
	}
	char who[3 * RX_NAME_MAX + 4];
	snprintf(who, sizeof(who), "%s%s%s%s%s", c->name, *c->instance ? "." : "", c->instance, *c->cell ? "@" : "", c->cell);
	put_text(b, "who", who);
}

static void put_args(struct buf *b, const struct rpc_call *call, const void *in)
{
	if (!in || !call->proc->in_print)
		return;
	CLEANUP(buf) struct buf args = {};
	call->proc->in_print(&args, in);
	if (args.err || !args.data)
		return;
	buf_puts(b, ",\"args\":");
	if (args.len <= ARGS_MAX)
		buf_put(b, args.data, args.len);
	else
		xdr_print_text(b, args.data, ARGS_MAX); /* cut: then as text, so that the line stays JSON */
}

void audit_call(void *audit, const struct rpc_call *call, const void *in, afs_err err, int32_t code,
	int64_t took_ns)
{
	struct audit *a = audit;
	if (!a || call->proc->effect != RPC_CHANGES)
		return;
	CLEANUP(buf) struct buf b = {};
	char from[32];
	put_time(&b);
	put_who(&b, call->caller);
	snprintf(from, sizeof(from), "%s:%u", IPV4(call->peer.ip), call->peer.port);
	put_text(&b, "from", from);
	put_text(&b, "service", call->iface->name);
	put_text(&b, "call", call->proc->name);
	put_args(&b, call, in);
	put_text(&b, "result", err == AFS_OK ? "OK" : afs_err_name(err));
	if (code)
		buf_printf(&b, ",\"code\":%d", code);
	buf_printf(&b, ",\"us\":%" PRId64, took_ns / 1000);
	put_line(a, &b);
}

void audit_local(struct audit *a, const char *who, const char *what, const char *object, afs_err err)
{
	if (!a)
		return;
	CLEANUP(buf) struct buf b = {};
	put_time(&b);
	put_text(&b, "who", who);
	put_text(&b, "call", what);
	put_text(&b, "object", object);
	put_text(&b, "result", err == AFS_OK ? "OK" : afs_err_name(err));
	put_line(a, &b);
}
