/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The server log.  A line is an event, then pairs: log_info("vol.trans.ended volume=%u ms=%lld", ...).
 * error: someone must act; warn: someone should know; info: the cell changed state; debug: a
 * developer asked.  Keys, tokens and file content never appear.  Bytes from the network are passed
 * through LOG_SAFE().  Safe from any thread; a line is one write. */
#pragma once
#include "cell/base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Send lines of `level` and above to `fd` (default: stderr, LOG_INFO). */
void log_to(int fd, enum log_level level);
enum log_level log_level_now(void);
[[gnu::format(printf, 2, 3)]] void log_line(enum log_level level, const char *fmt, ...);

#define log_at(level, ...)                                                                         \
	do {                                                                                       \
		if ((level) <= log_level_now())                                                    \
			log_line((level), __VA_ARGS__);                                            \
	} while (0)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

/* Logs and gives `err` back: return log_error(AFS_ECORRUPT, "vs.volume.wrong_id path=%s", path); */
[[gnu::format(printf, 2, 3)]] afs_err log_error(afs_err err, const char *fmt, ...);

/* The text of the last error line (without time and level), and forget it.  False: there was none. */
bool log_last_error(char *out, size_t size);

/* `n` bytes of unknown origin as printable text (\xNN for the rest), cut to fit `out`. */
const char *log_escape(char *out, size_t out_size, const char *s, size_t n);
#define LOG_SAFE(s) log_escape((char[256]){0}, 256, (s), __builtin_strlen(s))
