/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/fuse/far.h"

#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	char what;
	unsigned arg;
};

static void obey(struct rig *r, const struct order *o)
{
	char name[16];
	struct client_file f = {.cell = RIG_CELL, .fid = {0x20000001, 1, 1}};
	switch (o->what) {
	case FAR_SERVER_RESTART:
		rig_server_restart(r);
		break;
	case FAR_CLIENT_STOP:
		rig_client_stop(r, o->arg);
		break;
	case FAR_CLIENT_START:
		rig_client_start(r, o->arg);
		break;
	case FAR_VOLUME:
		snprintf(name, sizeof(name), "vol%u", o->arg);
		rig_volume(r, 0x20000010 + o->arg, name);
		break;
	case FAR_FLUSH:
		assert_ok(client_flush(r->clients[o->arg], &f, true));
		break;
	case FAR_QUOTA:
		rig_quota(r, o->arg);
		break;
	case FAR_CLAIM:
		rig_claim(r, (int)o->arg);
		break;
	case FAR_SERVER_STOP:
		rig_server_stop(r);
		break;
	case FAR_SERVER_START:
		rig_server_start(r);
		break;
	default:
		break;
	}
}

static int serve(const struct rig_config *config, int sock)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct rig *r = rig_start(config);
	char ready = 'R';
	if (write(sock, &ready, 1) != 1)
		return 1;
	struct order o;
	while (read(sock, &o, sizeof(o)) == sizeof(o)) {
		obey(r, &o);
		struct client_stats s = {0};
		if (r->clients[o.what == FAR_STATS ? o.arg : 0])
			client_stats(r->clients[o.what == FAR_STATS ? o.arg : 0], &s);
		if (write(sock, &s, sizeof(s)) != sizeof(s))
			return 1;
	}
	rig_stop(r);
	return 0;
}

struct far *far_start(const struct rig_config *config)
{
	static bool isolated, tried;
	if (!tried)
		isolated = rig_isolate();
	tried = true;
	if (!isolated)
		return NULL;
	struct far *f = mem_new(struct far);
	struct rig_config own = *config;
	f->dir = test_scratch();
	own.dir = f->dir;
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	f->pid = fork();
	if (f->pid == 0) {
		close(pair[0]);
		mem_free(f);
		exit(serve(&own, pair[1])); /* with the leak check of sanitized builds */
	}
	close(pair[1]);
	f->sock = pair[0];
	char ready;
	assert_int_equal(read(f->sock, &ready, 1), 1);
	for (unsigned i = 0; i < config->clients; i++)
		f->m[i] = mem_printf("%s/m%u/" RIG_CELL, f->dir, i + 1);
	return f;
}

void far_stop(struct far *f)
{
	if (!f)
		return;
	close(f->sock);
	int status = 0;
	waitpid(f->pid, &status, 0);
	for (unsigned i = 0; i < RIG_CLIENTS; i++)
		mem_free(f->m[i]);
	test_scratch_free(f->dir);
	mem_free(f);
	assert_int_equal(status, 0);
}

struct client_stats far_do(struct far *f, enum far_order order, unsigned arg)
{
	struct order o;
	memset(&o, 0, sizeof(o));
	o.what = (char)order;
	o.arg = arg;
	struct client_stats s;
	assert_int_equal(write(f->sock, &o, sizeof(o)), sizeof(o));
	assert_int_equal(read(f->sock, &s, sizeof(s)), sizeof(s));
	return s;
}

const char *far_path(struct far *f, unsigned mount, const char *fmt, ...)
{
	static char ring[16][4096];
	static unsigned at;
	char *out = ring[at++ % 16];
	int n = snprintf(out, 4096, "%s/", f->m[mount]);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(out + n, (size_t)(4096 - n), fmt, ap);
	va_end(ap);
	return out;
}

void assert_sys_(const char *what, bool ok, const char *file, int line)
{
	if (ok)
		return;
	print_error("%s: %s\n", what, strerror(errno));
	_assert_true(0, what, file, line);
}

void file_write(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_sys(fd);
	assert_int_equal(write(fd, p, n), (ssize_t)n);
	assert_sys(close(fd));
}

void file_is(const char *path, const char *text)
{
	char b[4096];
	int fd = open(path, O_RDONLY);
	assert_sys(fd);
	ssize_t n = read(fd, b, sizeof(b) - 1);
	assert_sys(n);
	b[n] = 0;
	close(fd);
	assert_string_equal(b, text);
}
