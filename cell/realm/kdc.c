/* SPDX-License-Identifier: BSD-2-Clause
 *
 * krb5kdc as a child, and the thread that minds it.
 *
 * The thread starts the child itself, because PR_SET_PDEATHSIG follows the life of the thread that
 * forked: child and thread end together whatever happens to the rest.  The child's standard error is a
 * pipe (kdc.conf logs there): its lines go to our log, and the last of them into messages.
 *
 * Between vfork and exec only system calls are made. */
#include "cell/base/log.h"
#include "cell/realm/db.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const mono_ns ready_wait = SEC(10), stop_wait = SEC(3), calm = SEC(60);
static const mono_ns backoff_first = MSEC(100), backoff_most = SEC(30);

struct realm_kdc {
	const char *program;
	char *env_conf, *env_profile, *realm;
	char *where; /* address and port, for messages */
	struct sockaddr_storage addr;
	socklen_t addr_len;

	pthread_t thread;
	bool has_thread;
	int stop_fd; /* eventfd: readable when the thread is to end */

	struct mtx lock;
	struct realm_kdc_status status; /* GUARDED_BY(lock) */
	char words[512];                /* GUARDED_BY(lock): its last line */

	/* the thread's own */
	int pipe_fd, pid_fd;
	char line[512];
	size_t line_len;
};

/* --- the child ------------------------------------------------------------------------- */

static const char *find_program(void)
{
	static const char *const places[] = {"/usr/sbin/krb5kdc", "/usr/local/sbin/krb5kdc",
		"/usr/lib/mit/sbin/krb5kdc", "/usr/bin/krb5kdc", "/sbin/krb5kdc"};
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

/* Runs in the parent's memory until it has become another program. */
static void child(
	const struct realm_kdc *k, int err_fd, pid_t parent, char *const argv[], char *const env[])
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	for (int s = 1; s < NSIG; s++)
		sigaction(s, &dfl, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	if (dup2(err_fd, 2) < 0 || dup2(err_fd, 1) < 0)
		_exit(127);
	close(0);
	if (open("/dev/null", O_RDONLY) != 0)
		_exit(127);
	close_range(3, ~0U, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(k->program, argv, env);
	_exit(127);
}

static afs_err spawn(struct realm_kdc *k)
{
	char name[] = "krb5kdc", front[] = "-n", realm_flag[] = "-r";
	char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", locale[] = "LC_ALL=C";
	char *argv[] = {name, front, realm_flag, k->realm, NULL};
	char *env[] = {k->env_conf, k->env_profile, path, locale, NULL};
	int p[2];
	sigset_t all, old;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK))
		return afs_err_from_errno(errno);
	int flags = fcntl(p[1], F_GETFL); /* the child's end waits, so that no line is lost */
	(void)fcntl(p[1], F_SETFL, flags & ~O_NONBLOCK);
	pid_t parent = getpid();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid_t pid = vfork();
	if (pid == 0)
		child(k, p[1], parent, argv, env);
	int eno = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		return afs_err_from_errno(eno);
	}
	k->pipe_fd = p[0];
	k->line_len = 0;
	k->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (k->pid_fd < 0) {
		eno = errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(k->pipe_fd);
		k->pipe_fd = -1;
		return afs_err_from_errno(eno);
	}
	(void)fcntl(k->pid_fd, F_SETFD, FD_CLOEXEC);
	mtx_lock(&k->lock);
	k->status.state = REALM_KDC_RUNNING;
	k->status.pid = pid;
	mtx_unlock(&k->lock);
	return AFS_OK;
}

static void heard(struct realm_kdc *k)
{
	k->line[k->line_len] = 0;
	if (k->line_len) {
		char safe[600];
		log_debug("realm.kdc.said line=\"%s\"",
			log_escape(safe, sizeof(safe), k->line, k->line_len));
		mtx_lock(&k->lock);
		memcpy(k->words, k->line, k->line_len + 1);
		mtx_unlock(&k->lock);
	}
	k->line_len = 0;
}

static void listen_to(struct realm_kdc *k)
{
	char b[1024];
	ssize_t n;
	while ((n = read(k->pipe_fd, b, sizeof(b))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (b[i] == '\n')
				heard(k);
			else if (k->line_len < sizeof(k->line) - 1)
				k->line[k->line_len++] = b[i];
		}
}

/* The child has ended: its last words, its status, and its descriptors. */
static void bury(struct realm_kdc *k, enum realm_kdc_state next)
{
	int status = 0;
	listen_to(k);
	heard(k);
	mtx_lock(&k->lock);
	pid_t pid = k->status.pid;
	mtx_unlock(&k->lock);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	close(k->pipe_fd);
	close(k->pid_fd);
	k->pipe_fd = k->pid_fd = -1;
	mtx_lock(&k->lock);
	k->status.pid = 0;
	k->status.last_exit = status;
	k->status.state = next;
	mtx_unlock(&k->lock);
}

/* --- the thread ------------------------------------------------------------------------ */

static bool stop_asked(const struct realm_kdc *k, mono_ns wait)
{
	struct pollfd p = {.fd = k->stop_fd, .events = POLLIN};
	return poll(&p, 1, (int)(wait / 1000000)) > 0;
}

/* Until the child ends (false) or the thread is to end (true). */
static bool mind(struct realm_kdc *k)
{
	for (;;) {
		struct pollfd p[] = {
			{k->stop_fd, POLLIN, 0}, {k->pid_fd, POLLIN, 0}, {k->pipe_fd, POLLIN, 0}};
		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			continue;
		if (p[2].revents & POLLIN)
			listen_to(k);
		if (p[0].revents)
			return true;
		if (p[1].revents)
			return false;
		if (p[2].revents & POLLHUP && !(p[2].revents & POLLIN)) {
			/* it closed its error stream but lives: only its end is left to wait for */
			struct pollfd q[] = {{k->stop_fd, POLLIN, 0}, {k->pid_fd, POLLIN, 0}};
			while (poll(q, ARRAY_SIZE(q), -1) < 0)
				;
			return q[0].revents != 0;
		}
	}
}

static void end_child(struct realm_kdc *k)
{
	struct pollfd p = {.fd = k->pid_fd, .events = POLLIN};
	(void)syscall(
		SYS_pidfd_send_signal, k->pid_fd, SIGTERM, NULL, 0); /* it may be gone already */
	if (poll(&p, 1, (int)(stop_wait / 1000000)) <= 0) {
		(void)syscall(SYS_pidfd_send_signal, k->pid_fd, SIGKILL, NULL, 0);
		(void)poll(&p, 1, -1);
	}
	bury(k, REALM_KDC_STOPPED);
}

static void *kdc_main(void *arg)
{
	struct realm_kdc *k = arg;
	mono_ns backoff = backoff_first;
	for (;;) {
		mono_ns began = clk_mono();
		afs_err err = spawn(k);
		if (!err && mind(k)) {
			end_child(k);
			return NULL;
		}
		if (!err)
			bury(k, REALM_KDC_WAITING);
		if (clk_mono() - began > calm)
			backoff = backoff_first;
		mtx_lock(&k->lock);
		int last = k->status.last_exit;
		k->status.restarts++;
		mtx_unlock(&k->lock);
		log_warn("realm.kdc.ended err=%s wait_status=0x%x again_ms=%lld", afs_err_name(err),
			(unsigned)last, (long long)(backoff / 1000000));
		if (stop_asked(k, backoff)) {
			mtx_lock(&k->lock);
			k->status.state = REALM_KDC_STOPPED;
			mtx_unlock(&k->lock);
			return NULL;
		}
		backoff = MIN(backoff * 2, backoff_most);
	}
}

/* --- starting and stopping -------------------------------------------------------------- */

static void kdc_free(struct realm_kdc *k)
{
	if (k->has_thread) {
		uint64_t one = 1;
		while (write(k->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_join(k->thread, NULL);
	}
	if (k->stop_fd >= 0)
		close(k->stop_fd);
	mtx_fini(&k->lock);
	mem_free(k->env_conf);
	mem_free(k->env_profile);
	mem_free(k->realm);
	mem_free(k->where);
	mem_free(k);
}
DEFINE_CLEANUP_PTR(realm_kdc, struct realm_kdc, kdc_free)

void realm_kdc_stop(struct realm_kdc *k)
{
	if (k)
		kdc_free(k);
}

void realm_kdc_status(struct realm_kdc *k, struct realm_kdc_status *out)
{
	mtx_lock(&k->lock);
	*out = k->status;
	mtx_unlock(&k->lock);
}

static afs_err take_address(struct realm_kdc *k, const struct realm_config *c)
{
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)&k->addr;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&k->addr;
	if (inet_pton(AF_INET, c->listen, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(c->port);
		k->addr_len = sizeof(*four);
		k->where = mem_printf("%s port %u", c->listen, c->port);
	} else if (inet_pton(AF_INET6, c->listen, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(c->port);
		k->addr_len = sizeof(*six);
		k->where = mem_printf("%s port %u", c->listen, c->port);
	}
	return k->where ? AFS_OK : AFS_ENOMEM;
}

/* Could the child have the port?  It would say so only in its log. */
static afs_err try_port(const struct realm_kdc *k, int type, struct buf *why)
{
	CLEANUP(fd) int fd = socket(k->addr.ss_family, type | SOCK_CLOEXEC, 0);
	int on = 1;
	if (fd < 0)
		return afs_err_from_errno(errno);
	if (type == SOCK_STREAM)
		(void)setsockopt(
			fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* as krb5kdc does */
	if (bind(fd, (const struct sockaddr *)&k->addr, k->addr_len) == 0)
		return AFS_OK;
	int eno = errno;
	realm_why(why, "the KDC cannot have %s %s: %s%s", type == SOCK_STREAM ? "TCP" : "UDP",
		k->where, strerror(eno),
		eno == EADDRINUSE ? "; stop what uses it or configure another port" : "");
	return afs_err_from_errno(eno);
}

/* krb5kdc binds UDP before TCP, so a TCP connection tells that both are there. */
static bool answers(const struct realm_kdc *k)
{
	struct sockaddr_storage to = k->addr;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)&to;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&to;
	if (to.ss_family == AF_INET && four->sin_addr.s_addr == htonl(INADDR_ANY))
		four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (to.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr))
		six->sin6_addr = in6addr_loopback;
	CLEANUP(fd) int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)&to, k->addr_len) == 0;
}

static afs_err wait_ready(struct realm_kdc *k, struct buf *why)
{
	mono_ns until = clk_mono() + ready_wait, pause = MSEC(1);
	char words[sizeof(k->words)];
	for (;;) {
		struct realm_kdc_status st;
		realm_kdc_status(k, &st);
		if (st.restarts)
			break;
		if (st.state == REALM_KDC_RUNNING && answers(k))
			return AFS_OK;
		if (clk_mono() > until) {
			realm_why(why, "%s runs but does not answer on %s", k->program, k->where);
			return AFS_ETIMEDOUT;
		}
		struct timespec t = {0, pause};
		nanosleep(&t, NULL);
		pause = MIN(pause * 2, MSEC(20));
	}
	mtx_lock(&k->lock);
	int last = k->status.last_exit;
	memcpy(words, k->words, sizeof(words));
	mtx_unlock(&k->lock);
	if (WIFSIGNALED(last))
		realm_why(why, "%s was killed by signal %d", k->program, WTERMSIG(last));
	else
		realm_why(why, "%s ended with status %d", k->program, WEXITSTATUS(last));
	realm_why(why, words[0] ? ": %s" : "%s", words);
	return AFS_EIO;
}

afs_err realm_kdc_start(struct realm *r, struct realm_kdc **out, struct buf *why)
{
	CLEANUP(realm_kdc) struct realm_kdc *k = mem_new(struct realm_kdc);
	if (!k)
		return AFS_ENOMEM;
	mtx_init(&k->lock, RANK_LEAF);
	k->stop_fd = k->pipe_fd = k->pid_fd = -1;
	k->status.state = REALM_KDC_WAITING;
	k->program = find_program();
	if (!k->program) {
		realm_why(why, "there is no krb5kdc in /usr/sbin; install the package krb5-kdc");
		return AFS_ENOENT;
	}
	k->realm = mem_strdup(r->config.realm);
	k->env_conf = mem_printf("KRB5_CONFIG=%s", r->krb5_conf);
	k->env_profile = mem_printf("KRB5_KDC_PROFILE=%s", r->kdc_conf);
	if (!k->realm || !k->env_conf || !k->env_profile)
		return AFS_ENOMEM;
	TRY(take_address(k, &r->config));
	TRY(try_port(k, SOCK_DGRAM, why));
	TRY(try_port(k, SOCK_STREAM, why));
	k->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (k->stop_fd < 0)
		return afs_err_from_errno(errno);
	int eno = pthread_create(&k->thread, NULL, kdc_main, k);
	if (eno)
		return afs_err_from_errno(eno);
	k->has_thread = true;
	TRY(wait_ready(k, why));
	log_info("realm.kdc.started realm=%s where=\"%s\"", k->realm, k->where);
	*out = TAKE(k);
	return AFS_OK;
}
