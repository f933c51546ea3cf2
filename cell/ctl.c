/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Both ends of the control socket (ctl.h).  One thread accepts and never waits for a client; each
 * request runs on its own.  Who has not said what he wants after ASK_TIMEOUT_S is dropped, and who has
 * too many connections, so that nobody keeps the cell's owner from being heard.  Paths longer than a
 * sockaddr_un holds are reached through /proc/self/fd. */
#include "cell/ctl.h"

#include "cell/base/buf.h"
#include "cell/base/clk.h"
#include "cell/base/list.h"
#include "cell/base/log.h"
#include "cell/base/mem.h"
#include "cell/base/mtx.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SETS_MAX = 16, ASK_TIMEOUT_S = 10 };
/* at once: of root and the owner, of one other user, of all others */
enum { CONNS_OWNER = 64, CONNS_USER = 32, CONNS_USERS = 96 };

struct verb_set {
	const struct ctl_verb *verbs;
	size_t n;
	void *ctx;
};

struct ctl_server {
	char *path;
	int fd, stop_fd;
	bool bound, started;
	pthread_t thread;
	struct verb_set sets[SETS_MAX];
	size_t set_count;

	struct mtx lock;
	struct cond idle;
	struct list conns GUARDED_BY(lock);
	unsigned conn_count GUARDED_BY(lock);
};

struct ctl_conn {
	struct list in_server;
	struct ctl_server *server;
	int fd;
	struct ucred who;
	char *text; /* of the error, when ctl_refuse gave one */
};

/* --- addresses ----------------------------------------------------------------------------- */

/* The address of `path`.  *dir_fd, when not -1 afterwards, must stay open while it is used. */
static afs_err address_of(const char *path, struct sockaddr_un *sun, int *dir_fd)
{
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) < sizeof(sun->sun_path)) {
		memcpy(sun->sun_path, path, strlen(path) + 1);
		return AFS_OK;
	}
	const char *slash = strrchr(path, '/');
	CLEANUP(str) char *dir = slash ? mem_strndup(path, (size_t)(slash - path)) : NULL;
	if (!dir)
		return AFS_ENAMETOOLONG;
	*dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir_fd < 0)
		return afs_err_from_errno(errno);
	int n = snprintf(sun->sun_path, sizeof(sun->sun_path), "/proc/self/fd/%d%s", *dir_fd, slash);
	return n > 0 && (size_t)n < sizeof(sun->sun_path) ? AFS_OK : AFS_ENAMETOOLONG;
}

static afs_err connect_to(const char *path, int *out)
{
	struct sockaddr_un sun;
	CLEANUP(fd) int dir_fd = -1;
	TRY(address_of(path, &sun, &dir_fd));
	CLEANUP(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) != 0)
		return afs_err_from_errno(errno);
	*out = fd;
	fd = -1;
	return AFS_OK;
}

/* --- lines --------------------------------------------------------------------------------- */

static bool send_line(int fd, json_t *value /* taken */)
{
	char *s = json_dumps(value, JSON_COMPACT);
	json_decref(value);
	if (!s)
		return false;
	size_t n = strlen(s), done = 0;
	s[n++] = '\n';
	while (done < n) {
		ssize_t k = send(fd, s + done, n - done, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		done += (size_t)k;
	}
	free(s);
	return done == n;
}

/* The next line of `fd` without its newline, taken out of `in`; bytes after it stay.  Waits until
 * `deadline`, of clk_mono(). */
static afs_err read_line(int fd, struct buf *in, mono_ns deadline, char **line)
{
	for (;;) {
		char *nl = in->len ? memchr(in->data, '\n', in->len) : NULL;
		if (nl) {
			size_t n = (size_t)(nl - in->data);
			*line = mem_strndup(in->data, n);
			memmove(in->data, nl + 1, in->len - n - 1);
			in->len -= n + 1;
			return *line ? AFS_OK : AFS_ENOMEM;
		}
		if (in->len >= CTL_LINE_MAX)
			return AFS_ETOOBIG;
		char some[4096];
		if (deadline != MONO_NEVER) {
			mono_ns left = deadline - clk_mono();
			struct pollfd p = {.fd = fd, .events = POLLIN};
			if (left <= 0 || poll(&p, 1, (int)(left / 1000000) + 1) == 0)
				return AFS_ETIMEDOUT;
		}
		ssize_t k = recv(fd, some, sizeof(some), 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return afs_err_from_errno(errno);
		if (k == 0)
			return AFS_EEOF;
		buf_put(in, some, (size_t)k);
		TRY(in->err);
	}
}

/* --- requests ------------------------------------------------------------------------------ */

afs_err ctl_refuse(struct ctl_request *rq, afs_err err, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mem_free(rq->conn->text);
	rq->conn->text = mem_strdup(text);
	return err;
}

void ctl_progress(struct ctl_request *rq, json_t *value)
{
	(void)send_line(rq->conn->fd, json_pack("{s:o}", "progress", value)); /* he may have gone */
}

const char *ctl_str(const struct ctl_request *rq, const char *name)
{
	return json_string_value(json_object_get(rq->args, name));
}

json_int_t ctl_int(const struct ctl_request *rq, const char *name, json_int_t dflt)
{
	const json_t *v = json_object_get(rq->args, name);
	return json_is_integer(v) ? json_integer_value(v) : dflt;
}

bool ctl_bool(const struct ctl_request *rq, const char *name)
{
	return json_is_true(json_object_get(rq->args, name));
}

static bool is_owner(uid_t uid) { return uid == 0 || uid == geteuid(); }

static const struct ctl_verb *find_verb(const struct ctl_server *s, const char *name, void **ctx)
{
	for (size_t i = 0; i < s->set_count; i++)
		for (size_t k = 0; k < s->sets[i].n; k++)
			if (strcmp(s->sets[i].verbs[k].name, name) == 0) {
				*ctx = s->sets[i].ctx;
				return &s->sets[i].verbs[k];
			}
	return NULL;
}

static afs_err run_request(struct ctl_request *rq, json_t *out)
{
	const char *name = ctl_str(rq, "verb");
	void *ctx;
	const struct ctl_verb *verb = name ? find_verb(rq->conn->server, name, &ctx) : NULL;
	if (!verb)
		return ctl_refuse(rq, AFS_ENOTSUP, "this cell does not know the request \"%s\"", name ? name : "");
	if (verb->need == CTL_OWNER && !is_owner(rq->uid))
		return ctl_refuse(rq, AFS_EACCESS, "only root and the user who runs the cell may do that");
	return verb->run(ctx, rq, out);
}

static void answer(struct ctl_conn *conn)
{
	CLEANUP(buf) struct buf in = {};
	CLEANUP(str) char *line = NULL;
	if (read_line(conn->fd, &in, clk_mono() + SEC(ASK_TIMEOUT_S), &line) != AFS_OK)
		return;
	json_t *args = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	json_t *out = json_object();
	struct ctl_request rq = {.args = args, .uid = conn->who.uid, .gid = conn->who.gid, .pid = conn->who.pid, .conn = conn};
	afs_err err = !out ? AFS_ENOMEM
		      : json_is_object(args) ? run_request(&rq, out)
					     : ctl_refuse(&rq, AFS_EINVAL, "the request is not a JSON object");
	if (err == AFS_OK) {
		(void)send_line(conn->fd, json_pack("{s:O}", "ok", out)); /* he may have gone */
	} else {
		const char *text = conn->text ? conn->text : afs_err_text(err);
		(void)send_line(conn->fd, json_pack("{s:s, s:s}", "error", afs_err_name(err), "text", text));
	}
	json_decref(out);
	json_decref(args);
}

static void *conn_thread(void *arg)
{
	struct ctl_conn *conn = arg;
	struct ctl_server *s = conn->server;
	answer(conn);

	mtx_lock(&s->lock);
	list_remove(&conn->in_server);
	close(conn->fd);
	s->conn_count--;
	cond_signal(&s->idle);
	mtx_unlock(&s->lock);
	mem_free(conn->text);
	mem_free(conn);
	return NULL;
}

static bool has_room_locked(struct ctl_server *s, uid_t uid) REQUIRES(s->lock)
{
	unsigned his = 0, owners = 0, others = 0;
	list_each (e, &s->conns) {
		uid_t u = list_entry(e, struct ctl_conn, in_server)->who.uid;
		his += u == uid;
		owners += is_owner(u);
		others += !is_owner(u);
	}
	return is_owner(uid) ? owners < CONNS_OWNER : his < CONNS_USER && others < CONNS_USERS;
}

static void take_conn(struct ctl_server *s, int fd)
{
	struct timeval patience = {.tv_sec = ASK_TIMEOUT_S};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	struct ctl_conn *conn = mem_new(struct ctl_conn);
	socklen_t n = sizeof(conn->who);
	if (!conn || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &conn->who, &n) != 0) {
		mem_free(conn);
		close(fd);
		return;
	}
	conn->server = s;
	conn->fd = fd;
	mtx_lock(&s->lock);
	bool room = has_room_locked(s, conn->who.uid);
	if (room) {
		s->conn_count++;
		list_push_back(&s->conns, &conn->in_server);
	}
	mtx_unlock(&s->lock);
	if (!room) {
		/* a line fits the buffer of a fresh socket: this does not wait */
		(void)send_line(fd, json_pack("{s:s, s:s}", "error", afs_err_name(AFS_EBUSY), "text",
					    "too many requests at once; ask again"));
		close(fd);
		mem_free(conn);
		return;
	}

	pthread_t t;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 512 * 1024);
	if (pthread_create(&t, &attr, conn_thread, conn) != 0)
		conn_thread(conn); /* no thread to be had: answer here */
	pthread_attr_destroy(&attr);
}

static void *accept_thread(void *arg)
{
	struct ctl_server *s = arg;
	pthread_setname_np(pthread_self(), "control");
	for (;;) {
		struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->stop_fd, .events = POLLIN}};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			take_conn(s, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			poll(NULL, 0, 100); /* descriptors come back when calls end */
	}
}

/* --- the server ---------------------------------------------------------------------------- */

struct ctl_server *ctl_server_new(const char *socket_path)
{
	struct ctl_server *s = mem_new(struct ctl_server);
	if (!s)
		return NULL;
	s->fd = s->stop_fd = -1;
	mtx_init(&s->lock, RANK_LEAF);
	cond_init(&s->idle);
	list_init(&s->conns);
	s->path = mem_strdup(socket_path);
	if (!s->path) {
		ctl_server_free(s);
		return NULL;
	}
	return s;
}

afs_err ctl_server_add(struct ctl_server *s, const struct ctl_verb *verbs, size_t n, void *ctx)
{
	if (s->set_count == SETS_MAX)
		return AFS_ETOOMANY;
	s->sets[s->set_count++] = (struct verb_set){verbs, n, ctx};
	return AFS_OK;
}

afs_err ctl_server_start(struct ctl_server *s)
{
	struct sockaddr_un sun;
	CLEANUP(fd) int dir_fd = -1, old = -1;
	TRY(address_of(s->path, &sun, &dir_fd));
	if (connect_to(s->path, &old) == AFS_OK)
		return log_error(AFS_EADDRINUSE, "cell.control.taken socket=%s", s->path);
	if (unlink(s->path) != 0 && errno != ENOENT)
		return log_error(afs_err_from_errno(errno), "cell.control.unlink_failed socket=%s err=%s", s->path,
			strerror(errno));
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->stop_fd < 0 || s->fd < 0)
		return log_error(afs_err_from_errno(errno), "cell.control.socket_failed err=%s", strerror(errno));
	if (bind(s->fd, (const struct sockaddr *)&sun, sizeof(sun)) != 0)
		return log_error(afs_err_from_errno(errno), "cell.control.bind_failed socket=%s err=%s", s->path,
			strerror(errno));
	s->bound = true;
	if (chmod(s->path, 0666) != 0 || listen(s->fd, SOMAXCONN) != 0
		|| pthread_create(&s->thread, NULL, accept_thread, s) != 0)
		return log_error(AFS_EIO, "cell.control.start_failed socket=%s", s->path);
	s->started = true;
	return AFS_OK;
}

void ctl_server_free(struct ctl_server *s)
{
	if (!s)
		return;
	if (s->started) {
		uint64_t one = 1;
		while (write(s->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_join(s->thread, NULL);
	}
	mtx_lock(&s->lock);
	list_each (it, &s->conns) /* those who still wait for a request's line are not waited for */
		shutdown(list_entry(it, struct ctl_conn, in_server)->fd, SHUT_RD);
	while (s->conn_count)
		cond_wait(&s->idle, &s->lock);
	mtx_unlock(&s->lock);
	if (s->bound)
		unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	cond_fini(&s->idle);
	mtx_fini(&s->lock);
	mem_free(s->path);
	mem_free(s);
}

/* --- asking -------------------------------------------------------------------------------- */

static char *no_answer(const char *path, afs_err err)
{
	if (err == AFS_ENOENT)
		return mem_printf("no cell runs here (no socket %s); \"afscell up\" starts one", path);
	if (err == AFS_EDEAD || err == AFS_EIO || err == AFS_EEOF)
		return mem_printf("no cell answers at %s; \"afscell up\" starts one", path);
	return mem_printf("cannot ask the cell at %s: %s", path, afs_err_text(err));
}

afs_err ctl_ask(const char *socket_path, json_t *request, json_t **out, char **text,
	void (*each)(void *ctx, const json_t *progress), void *ctx)
{
	CLEANUP(fd) int fd = -1;
	*out = NULL;
	*text = NULL;
	struct sockaddr_un sun;
	CLEANUP(fd) int dir_fd = -1;
	afs_err err = address_of(socket_path, &sun, &dir_fd);
	if (err == AFS_OK) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			err = afs_err_from_errno(errno);
		else if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) != 0)
			err = errno == ECONNREFUSED ? AFS_EDEAD : afs_err_from_errno(errno);
	}
	bool sent = err == AFS_OK && send_line(fd, json_incref(request));
	json_decref(request);
	if (!sent) {
		err = err ? err : AFS_EDEAD;
		*text = no_answer(socket_path, err);
		return err;
	}

	CLEANUP(buf) struct buf in = {};
	for (;;) {
		CLEANUP(str) char *line = NULL;
		err = read_line(fd, &in, MONO_NEVER, &line);
		if (err != AFS_OK) {
			*text = err == AFS_EEOF ? mem_strdup("the cell went away before it answered")
						: no_answer(socket_path, err);
			return err;
		}
		json_t *v = json_loads(line, 0, NULL);
		json_t *ok = json_object_get(v, "ok"), *progress = json_object_get(v, "progress");
		const char *name = json_string_value(json_object_get(v, "error"));
		if (progress) {
			if (each)
				each(ctx, progress);
			json_decref(v);
			continue;
		}
		if (ok) {
			*out = json_incref(ok);
			json_decref(v);
			return AFS_OK;
		}
		err = AFS_EPROTOCOL;
		for (int e = 1; name && e < AFS_ERR_COUNT; e++)
			if (strcmp(afs_err_name((afs_err)e), name) == 0)
				err = (afs_err)e;
		const char *t = json_string_value(json_object_get(v, "text"));
		*text = mem_strdup(t ? t : "the cell gave an answer that cannot be understood");
		json_decref(v);
		return err;
	}
}
