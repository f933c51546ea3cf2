/* SPDX-License-Identifier: BSD-2-Clause
 * One line, one write: lines of two threads never mix and no lock is needed. */
#include "cell/base/log.h"

#include "cell/base/clk.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int sink = STDERR_FILENO;
static atomic_int threshold = LOG_INFO;

void log_to(int fd, enum log_level level)
{
	atomic_store(&sink, fd);
	atomic_store(&threshold, (int)level);
}

enum log_level log_level_now(void)
{
	return (enum log_level)atomic_load_explicit(&threshold, memory_order_relaxed);
}

/* The last error, for whoever must tell a person why something failed. */
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[512];

static void keep_last(const char *line, size_t n)
{
	const char *text = memchr(line, ' ', n); /* after the time, and the level */
	text = text ? memchr(text + 1, ' ', n - (size_t)(text + 1 - line)) : NULL;
	if (!text)
		return;
	pthread_mutex_lock(&last_lock);
	snprintf(last_error, sizeof(last_error), "%.*s", (int)(n - (size_t)(text + 1 - line)), text + 1);
	pthread_mutex_unlock(&last_lock);
}

bool log_last_error(char *out, size_t size)
{
	pthread_mutex_lock(&last_lock);
	snprintf(out, size, "%s", last_error);
	last_error[0] = '\0';
	pthread_mutex_unlock(&last_lock);
	return *out != '\0';
}

[[gnu::format(printf, 3, 0)]] static void write_line(enum log_level level, const char *tail, const char *fmt, va_list ap)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	char line[2048];
	wall_ns now = clk_wall();
	time_t sec = (time_t)(now / NS_PER_SEC);
	struct tm tm;
	gmtime_r(&sec, &tm);
	size_t n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03dZ %s ", (int)(now % NS_PER_SEC / 1000000),
		names[level]);
	int m = vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	n += m < 0 ? 0 : (size_t)m;
	if (n < sizeof(line) - 1 && tail)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " err=%s", tail);
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	if (level == LOG_ERROR)
		keep_last(line, n);
	line[n++] = '\n';
	ssize_t put = write(atomic_load(&sink), line, n);
	(void)put; /* a log that cannot be written has nowhere to say so */
}

void log_line(enum log_level level, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_line(level, NULL, fmt, ap);
	va_end(ap);
}

afs_err log_error(afs_err err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_line(LOG_ERROR, afs_err_name(err), fmt, ap);
	va_end(ap);
	return err;
}

const char *log_escape(char *out, size_t out_size, const char *s, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	size_t o = 0;
	for (size_t i = 0; i < n && o + 5 < out_size; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c >= 0x20 && c < 0x7f && c != '\\') {
			out[o++] = (char)c;
		} else {
			out[o++] = '\\';
			out[o++] = 'x';
			out[o++] = hex[c >> 4];
			out[o++] = hex[c & 15];
		}
	}
	out[o] = 0;
	return out;
}
