/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Becoming a daemon (daemon.h).  The child keeps the terminal until the cell serves, since it may
 * have to ask for passwords, and leaves the session then.  What it says on the pipe are lines of JSON. */
#include "cell/daemon.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the child's side ------------------------------------------------------------------------ */

static void tell(int fd, json_t *line)
{
	char *s = line ? json_dumps(line, JSON_COMPACT) : NULL;
	json_decref(line);
	if (!s)
		return;
	size_t n = strlen(s);
	s[n++] = '\n';
	for (size_t done = 0; done < n;) {
		ssize_t k = write(fd, s + done, n - done);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break; /* the parent was killed; the cell goes on */
		done += (size_t)k;
	}
	free(s);
}

static void tell_event(void *ctx, enum cell_event ev, const char *what, const char *text)
{
	tell(*(const int *)ctx, json_pack("{s:i, s:s, s:s}", "event", (int)ev, "what", what, "text", text));
}

/* Signals come through cell_run; the rest of the process never sees them. */
static void block_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static afs_err start(struct conf *conf, bool foreground, const struct cell_watch *watch, struct state_holder *holder, struct cell **out)
{
	CLEANUP(buf) struct buf why = {};
	struct state *state = NULL;
	afs_err err = state_open(conf, true, &state, holder, &why);
	if (err != AFS_OK) {
		if (err != AFS_EBUSY || !holder->pid)
			watch->event(watch->ctx, CELL_PROBLEM, "state", why.data ? why.data : afs_err_text(err));
		conf_free(conf);
		return err;
	}
	return cell_open(conf, state, foreground, watch, out);
}

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	setsid();
}

_Noreturn static void child(struct conf *conf, int fd)
{
	struct cell_watch watch = {tell_event, &fd};
	struct state_holder holder = {};
	struct cell *cell = NULL;
	umask(077); /* what is for others says so: run directory, mount point */
	block_signals();
	prctl(PR_SET_NAME, "afscell");
	if (chdir("/") != 0) {
		watch.event(watch.ctx, CELL_PROBLEM, "start", "cannot enter /");
		_exit(1);
	}
	afs_err err = start(conf, false, &watch, &holder, &cell);
	if (err == AFS_EBUSY && holder.pid) {
		tell(fd, json_pack("{s:{s:i, s:s, s:s}}", "busy", "pid", (int)holder.pid, "cell", holder.cell, "socket",
				holder.socket));
		_exit(0);
	}
	if (err != AFS_OK)
		_exit(1);
	leave_terminal();
	tell(fd, json_pack("{s:b}", "serving", 1));
	close(fd);
	fd = -1;
	cell_run(cell);
	cell_close(cell, NULL);
	_exit(0);
}

/* --- the parent's side ----------------------------------------------------------------------- */

static enum daemon_result hear(FILE *f, const struct cell_watch *watch, struct state_holder *holder)
{
	char *line = NULL;
	size_t cap = 0;
	bool told = false;
	enum daemon_result result = DAEMON_FAILED;
	while (getline(&line, &cap, f) > 0) {
		json_t *v = json_loads(line, 0, NULL);
		json_t *busy = json_object_get(v, "busy");
		if (json_is_true(json_object_get(v, "serving"))) {
			result = DAEMON_SERVES;
		} else if (busy) {
			holder->pid = (pid_t)json_integer_value(json_object_get(busy, "pid"));
			snprintf(holder->cell, sizeof(holder->cell), "%s", json_string_value(json_object_get(busy, "cell")));
			snprintf(holder->socket, sizeof(holder->socket), "%s",
				json_string_value(json_object_get(busy, "socket")));
			result = DAEMON_BUSY;
		} else if (v) {
			enum cell_event ev = (enum cell_event)json_integer_value(json_object_get(v, "event"));
			told = told || ev == CELL_PROBLEM;
			const char *what = json_string_value(json_object_get(v, "what"));
			const char *text = json_string_value(json_object_get(v, "text"));
			watch->event(watch->ctx, ev, what ? what : "", text ? text : "");
		}
		json_decref(v);
		if (result == DAEMON_SERVES)
			break;
	}
	free(line);
	if (result == DAEMON_FAILED && !told)
		watch->event(watch->ctx, CELL_PROBLEM, "start", "the process ended before it served; its log may say why");
	return result;
}

enum daemon_result daemon_start(struct conf *conf, bool foreground, const struct cell_watch *watch,
	void (*serving)(void *ctx), struct state_holder *holder)
{
	if (foreground) {
		struct cell *cell = NULL;
		umask(077);
		block_signals();
		afs_err err = start(conf, true, watch, holder, &cell);
		if (err != AFS_OK)
			return err == AFS_EBUSY && holder->pid ? DAEMON_BUSY : DAEMON_FAILED;
		serving(watch->ctx);
		cell_run(cell);
		cell_close(cell, watch);
		return DAEMON_SERVES;
	}

	int pipe_fds[2];
	if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
		watch->event(watch->ctx, CELL_PROBLEM, "start", strerror(errno));
		conf_free(conf);
		return DAEMON_FAILED;
	}
	fflush(stdout);
	fflush(stderr);
	pid_t pid = fork();
	if (pid < 0) {
		watch->event(watch->ctx, CELL_PROBLEM, "start", strerror(errno));
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		conf_free(conf);
		return DAEMON_FAILED;
	}
	if (pid == 0) {
		close(pipe_fds[0]);
		child(conf, pipe_fds[1]);
	}
	close(pipe_fds[1]);
	conf_free(conf);
	FILE *f = fdopen(pipe_fds[0], "r");
	if (!f) {
		watch->event(watch->ctx, CELL_PROBLEM, "start", strerror(errno));
		close(pipe_fds[0]);
		return DAEMON_FAILED;
	}
	enum daemon_result result = hear(f, watch, holder);
	fclose(f);
	if (result != DAEMON_SERVES) {
		int status;
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	return result;
}
