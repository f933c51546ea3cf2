/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Mounting and unmounting.  Root mounts itself, for all users; others through fusermount3, which gives
 * the descriptor over a socket.  Always nosuid and nodev: status comes from a network (SA-2007-001).
 *
 * libfuse does the protocol, through read and write functions of ours, for one reason: it does not
 * know FUSE_HANDLE_KILLPRIV_V2.  Without it the kernel asks for security.capability before every
 * write.  There is nothing to kill here: we never show set-id bits, and servers drop them. */
#include "client/fuse/front.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_AHEAD_KIB = 1024 };

static ssize_t dev_read(int fd, void *buf, size_t len, void *userdata)
{
	struct front *f = userdata;
	ssize_t n = read(fd, buf, len);
	if (!f->init_unique && n >= (ssize_t)(sizeof(struct fuse_in_header) + 16)) {
		const struct fuse_in_header *h = buf;
		const struct fuse_init_in *in = (const void *)(h + 1);
		if (h->opcode == FUSE_INIT) {
			f->init_unique = h->unique;
			f->init_flags = in->flags;
			f->minor = in->minor;
		}
	}
	return n;
}

static ssize_t dev_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct front *f = userdata;
	const struct fuse_out_header *h = iov[0].iov_base;
	if (h->unique && h->unique == f->init_unique && count > 1 && !h->error &&
		iov[1].iov_len >= 24) {
		struct fuse_init_out *out = iov[1].iov_base;
		out->flags |= f->init_flags & FUSE_HANDLE_KILLPRIV_V2;
		f->init_unique = UINT64_MAX;
	}
	return writev(fd, iov, count);
}

static afs_err mount_as_root(struct front *f)
{
	f->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (f->fd < 0)
		return log_error(AFS_ENODEV,
			"fuse.mount.no_device path=/dev/fuse errno=%d: load the fuse module",
			errno);
	char options[160];
	snprintf(options, sizeof(options),
		"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,max_read=%d", f->fd,
		FRONT_BUF);
	if (mount("afscell", f->dir, "fuse.afscell", MS_NOSUID | MS_NODEV, options) < 0)
		return log_error(afs_err_from_errno(errno),
			"fuse.mount.failed dir=%s errno=%d (%s)", f->dir, errno, strerror(errno));
	return AFS_OK;
}

static void run_fusermount(const char *const *argv, int sock)
{
	if (sock >= 0) {
		char text[16];
		snprintf(text, sizeof(text), "%d", sock);
		setenv("_FUSE_COMMFD", text, 1);
		fcntl(sock, F_SETFD, 0);
	}
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int receive_fd(int sock)
{
	char byte;
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd = -1;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	return fd;
}

static afs_err mount_as_user(struct front *f)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return afs_err_from_errno(errno);
	char options[96];
	snprintf(options, sizeof(options),
		"nosuid,nodev,fsname=afscell,subtype=afscell,max_read=%d", FRONT_BUF);
	const char *argv[] = {"fusermount3", "-o", options, "--", f->dir, NULL};
	pid_t pid = fork();
	if (pid == 0)
		run_fusermount(argv, pair[0]);
	close(pair[0]);
	if (pid > 0)
		f->fd = receive_fd(pair[1]);
	close(pair[1]);
	int status = 0;
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (f->fd >= 0)
		return AFS_OK;
	return log_error(AFS_ENODEV,
		"fuse.mount.failed dir=%s status=%d: fusermount3 (package fuse3) could not mount",
		f->dir, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void unmount(const char *dir)
{
	if (geteuid() == 0) {
		if (umount2(dir, UMOUNT_NOFOLLOW) < 0 && errno == EBUSY)
			(void)umount2(dir,
				MNT_DETACH | UMOUNT_NOFOLLOW); /* in use: it goes when they do */
		return;
	}
	const char *argv[] = {"fusermount3", "-u", "-z", "-q", "--", dir, NULL};
	pid_t pid = fork();
	if (pid == 0)
		run_fusermount(argv, -1);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* What a client that died left mounted answers ENOTCONN for ever. */
static void clear_stale(const char *dir)
{
	struct stat st;
	if (stat(dir, &st) < 0 && errno == ENOTCONN) {
		log_info("fuse.mount.stale dir=%s: unmounting what is left of another run", dir);
		unmount(dir);
	}
}

/* The mount's line in mountinfo gives its device: the kernel reads ahead 128 KiB unless told. */
static void raise_read_ahead(const char *dir)
{
	FILE *in = fopen("/proc/self/mountinfo", "re");
	char line[4096], point[2048], dev[32] = "";
	while (in && fgets(line, sizeof(line), in)) {
		char d[32];
		if (sscanf(line, "%*s %*s %31s %*s %2047s", d, point) == 2 &&
			strcmp(point, dir) == 0)
			memcpy(dev, d, sizeof(dev));
	}
	if (in)
		fclose(in);
	if (!dev[0])
		return;
	char path[96], text[16];
	snprintf(path, sizeof(path), "/sys/class/bdi/%s/read_ahead_kb", dev);
	int n = snprintf(text, sizeof(text), "%d", READ_AHEAD_KIB);
	CLEANUP(fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		log_debug("fuse.mount.read_ahead_unchanged dir=%s errno=%d", dir, errno);
}

static afs_err session_new(struct front *f)
{
	char name[] = "afscell";
	char *argv[] = {name, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	f->se = fuse_session_new(&args, &front_ops, sizeof(front_ops), f);
	fuse_opt_free_args(&args); /* it may have made a list of its own */
	if (!f->se)
		return AFS_ENOMEM;
	static const struct fuse_custom_io io = {.writev = dev_writev, .read = dev_read};
	if (fuse_session_custom_io(f->se, &io, f->fd) != 0)
		return AFS_ENODEV;
	return AFS_OK;
}

/* `stage`: how many of locks, invalidation and loop were started, in this order. */
static void front_stop(struct front *f, unsigned stage)
{
	unmount(f->dir);
	if (stage > 0)
		flock_stop(f);
	if (stage > 1)
		inval_stop(f);
	if (stage > 2)
		loop_stop(f);
	fuse_session_destroy(
		f->se);     /* closes the device: what still holds the mount gets ENOTCONN */
	files_close_all(f); /* of programs that still run: they get ENOTCONN from now on */
	dirs_close_all(f);
	nodes_fini(f);
	mem_free(f->dir);
	mem_free(f);
}

static void stop(struct cm *cm)
{
	struct front *f = cm->front;
	cm->front = NULL;
	front_stop(f, 3);
}

afs_err client_mount(struct client *c, const char *dir)
{
	struct cm *cm = (struct cm *)c;
	if (cm->front)
		return AFS_EBUSY;
	struct front *f = mem_new(struct front);
	if (!f)
		return AFS_ENOMEM;
	f->cm = cm;
	f->fd = -1;
	f->threads_max = cm->config.fuse_threads_max;
	clear_stale(dir);
	f->dir = realpath(dir, NULL);
	afs_err err = f->dir ? AFS_OK
			     : log_error(afs_err_from_errno(errno),
				       "fuse.mount.no_dir dir=%s errno=%d", dir, errno);
	if (!err)
		err = geteuid() == 0 ? mount_as_root(f) : mount_as_user(f);
	bool mounted = !err;
	if (!err)
		err = session_new(f);
	if (err) {
		if (f->se)
			fuse_session_destroy(f->se);
		else if (f->fd >= 0)
			close(f->fd);
		if (mounted)
			unmount(f->dir);
		mem_free(f->dir);
		mem_free(f);
		return err;
	}
	nodes_init(f);
	afs_err (*const starts[])(struct front *) = {flock_start, inval_start, loop_start};
	for (unsigned stage = 0; stage < ARRAY_SIZE(starts); stage++) {
		err = starts[stage](f);
		if (err) {
			(void)log_error(err, "fuse.mount.failed dir=%s: no threads", f->dir);
			front_stop(f, stage + 1);
			return err;
		}
	}
	raise_read_ahead(f->dir);
	cm->front = f;
	cm->front_stop = stop;
	log_info("fuse.mounted dir=%s", f->dir);
	return AFS_OK;
}

void client_unmount(struct client *c)
{
	struct cm *cm = (struct cm *)c;
	if (cm->front)
		stop(cm);
}

const char *client_mounted_at(struct client *c)
{
	struct front *f = ((struct cm *)c)->front;
	return f && !fuse_session_exited(f->se) ? f->dir : NULL;
}
