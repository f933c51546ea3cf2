/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/preflight.h"

#include "cell/base/clk.h"
#include "cell/base/mem.h"
#include "cell/base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROOM_MIB = 32, CLOCK_SLACK_S = 300 };
/* 2025-01-01: no clock of a machine that runs this is earlier. */
#define CLOCK_FLOOR INT64_C(1735689600)

/* --- ports --------------------------------------------------------------------------------- */

/* The inode of the socket that has the port, from /proc/net; 0: not told. */
static unsigned long socket_inode(bool udp, uint32_t ip, uint16_t port)
{
	FILE *f = fopen(udp ? "/proc/net/udp" : "/proc/net/tcp", "re");
	unsigned long inode = 0;
	char line[512];
	while (f && !inode && fgets(line, sizeof(line), f)) {
		unsigned addr, p;
		unsigned long ino;
		if (sscanf(line, " %*d: %x:%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %*d %*d %lu", &addr, &p, &ino) == 3
			&& p == port && (addr == 0 || ip == 0 || ntohl(addr) == ip))
			inode = ino;
	}
	if (f)
		fclose(f);
	return inode;
}

static bool has_socket(const char *pid, unsigned long inode)
{
	char dir[300], want[40];
	snprintf(dir, sizeof(dir), "/proc/%s/fd", pid);
	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	DIR *d = opendir(dir);
	bool found = false;
	struct dirent *e;
	while (d && !found && (e = readdir(d))) {
		char to[64];
		ssize_t n = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);
		if (n > 0) {
			to[n] = '\0';
			found = strcmp(to, want) == 0;
		}
	}
	if (d)
		closedir(d);
	return found;
}

/* "process 12 (afscell)", when the system tells. */
static void put_holder(struct buf *why, bool udp, uint32_t ip, uint16_t port)
{
	unsigned long inode = socket_inode(udp, ip, port);
	DIR *d = inode ? opendir("/proc") : NULL;
	struct dirent *e;
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]) || !has_socket(e->d_name, inode))
			continue;
		char path[300], name[64] = "?";
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		FILE *f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = '\0';
		if (f)
			fclose(f);
		buf_printf(why, " by process %s (%s)", e->d_name, name);
		break;
	}
	if (d)
		closedir(d);
}

static afs_err try_port(const char *key, bool udp, uint32_t ip, uint16_t port, struct buf *why)
{
	CLEANUP(fd) int fd = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return afs_err_from_errno(errno);
	int one = 1;
	if (!udp)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)); /* as servers do: TIME_WAIT is no holder */
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
	if (bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) == 0)
		return AFS_OK;
	int eno = errno;
	const char *kind = udp ? "UDP" : "TCP";
	if (eno == EADDRINUSE) {
		buf_printf(why, "%s port %u on %s is in use", kind, port, IPV4(ip));
		put_holder(why, udp, ip, port);
		buf_printf(why, "; stop that, or set %s to another port", key);
		return AFS_EADDRINUSE;
	}
	if (eno == EADDRNOTAVAIL) {
		buf_printf(why, "%s is no address of this machine; correct \"listen\"", IPV4(ip));
		return AFS_EINVAL;
	}
	buf_printf(why, "%s port %u on %s cannot be had: %s%s", kind, port, IPV4(ip), strerror(eno),
		eno == EACCES ? "; run this as root, or choose ports above 1023" : "");
	return afs_err_from_errno(eno);
}

static afs_err check_ports(const struct conf *c, struct buf *why)
{
	const struct {
		const char *key;
		const struct conf_role *role;
	} roles[] = {{"roles.ptserver.port", &c->roles.ptserver}, {"roles.vlserver.port", &c->roles.vlserver},
		{"roles.fileserver.port", &c->roles.fileserver}, {"roles.volserver.port", &c->roles.volserver},
		{"roles.bosserver.port", &c->roles.bosserver}, {"roles.client.port", &c->roles.client}};
	for (size_t a = 0; a < c->listen.n; a++)
		for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
			if (roles[i].role->enabled && (roles[i].role != &c->roles.bosserver || conf_serves(c)))
				TRY(try_port(roles[i].key, true, c->listen.v[a], roles[i].role->port, why));
	if (c->roles.client.enabled)
		TRY(try_port("client.tools_port", true, INADDR_LOOPBACK, (uint16_t)c->client.tools_port, why));
	if (c->realm.mode == CONF_REALM_EMBEDDED)
		for (int udp = 0; udp < 2; udp++)
			TRY(try_port("realm.kdc_port", udp, c->listen.v[0], c->realm.kdc_port, why));
	return AFS_OK;
}

/* What the console will need, before anything is made. */
static afs_err check_console(const struct conf *c, struct buf *why)
{
	if (!c->roles.console.enabled || !conf_serves(c))
		return AFS_OK;
	const struct {
		const char *key, *path;
	} files[] = {{"console.certificate", c->console.certificate}, {"console.key", c->console.key}};
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		CLEANUP(fd) int fd = *files[i].path ? open(files[i].path, O_RDONLY | O_CLOEXEC) : -1;
		if (fd < 0 && *files[i].path) {
			int eno = errno;
			buf_printf(why, "%s cannot be read: %s; correct %s", files[i].path, strerror(eno), files[i].key);
			return afs_err_from_errno(eno);
		}
	}
	return AFS_OK;
}

/* --- the mount ----------------------------------------------------------------------------- */

/* The file system type mounted at `dir`; false: it is no mount point. */
static bool mounted_at(const char *dir, char type[64])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	while (f && getline(&line, &cap, f) > 0) {
		char at[4097];
		if (sscanf(line, "%*d %*d %*s %*s %4096s", at) != 1 || strcmp(at, dir) != 0)
			continue; /* a directory with a blank in its name is written \040: then it is not found, only */
		const char *dash = strstr(line, " - ");
		found = dash && sscanf(dash, " - %63s", type) == 1;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static void detach(const char *dir)
{
	if (umount2(dir, MNT_DETACH) == 0 || geteuid() == 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 2);
		execlp("fusermount3", "fusermount3", "-u", "-z", "--", dir, (char *)NULL);
		_exit(127);
	}
	int status;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

afs_err preflight_stale_mount(const char *dir, struct buf *why)
{
	char type[64] = "";
	struct stat st;
	if (!mounted_at(dir, type))
		return AFS_OK;
	if (strncmp(type, "fuse", 4) == 0 && stat(dir, &st) != 0 && errno == ENOTCONN) {
		detach(dir);
		if (!mounted_at(dir, type))
			return AFS_OK;
		buf_printf(why, "a dead mount is at %s and cannot be undone; try: umount -l %s", dir, dir);
		return AFS_EBUSY;
	}
	buf_printf(why, "%s is a mount point of another file system (%s) already; unmount that, or set client.mount to "
			"another directory", dir, type);
	return AFS_EBUSY;
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		CLEANUP(str) char *full = mem_printf("%.*s/%s", (int)n, p, program);
		if (full && access(full, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

static afs_err check_mount(const struct conf *c, struct buf *why)
{
	const char *dir = c->client.mount;
	if (!c->roles.client.enabled || !*dir)
		return AFS_OK;
	CLEANUP(fd) int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENODEV || errno == ENXIO)) {
		buf_puts(why, "there is no /dev/fuse, so nothing can be mounted; \"modprobe fuse\" (in a container: give it the "
			      "device /dev/fuse), or set client.mount: none");
		return AFS_ENODEV;
	}
	if (fd < 0 && (geteuid() == 0 || !in_path("fusermount3"))) {
		buf_printf(why, "/dev/fuse cannot be opened: %s; %s, or set client.mount: none", strerror(errno),
			geteuid() == 0 ? "this container may not mount" : "install the package fuse3");
		return AFS_ENODEV;
	}
	if (geteuid() != 0 && !in_path("fusermount3")) {
		buf_puts(why, "mounting as an ordinary user needs fusermount3: install the package fuse3, or set client.mount: none");
		return AFS_ENODEV;
	}
	TRY(preflight_stale_mount(dir, why));
	struct stat st;
	if (stat(dir, &st) != 0)
		return AFS_OK; /* it will be made */
	if (!S_ISDIR(st.st_mode)) {
		buf_printf(why, "%s is to be the mount point, but is no directory; choose another (client.mount)", dir);
		return AFS_ENOTDIR;
	}
	DIR *d = opendir(dir);
	struct dirent *e;
	bool used = false;
	while (d && !used && (e = readdir(d)))
		used = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	if (used) {
		buf_printf(why, "%s is to be the mount point, but holds files, which the mount would hide; choose another directory "
				"(client.mount)", dir);
		return AFS_ENOTEMPTY;
	}
	return AFS_OK;
}

/* --- disk and clock ------------------------------------------------------------------------ */

/* Free space where `path` is, or will be. */
static afs_err check_room(const char *path, struct buf *why)
{
	CLEANUP(str) char *p = mem_strdup(path);
	struct statvfs st;
	if (!p)
		return AFS_ENOMEM;
	while (statvfs(p, &st) != 0) {
		char *slash = strrchr(p, '/');
		if (!slash || slash == p)
			return AFS_OK;
		*slash = '\0';
	}
	uint64_t mib = (uint64_t)st.f_bavail * st.f_frsize >> 20;
	if (mib >= ROOM_MIB)
		return AFS_OK;
	buf_printf(why, "the disk is full: %s has %llu MiB left, and a cell needs at least %d; make room, or choose another "
			"directory", path, (unsigned long long)mib, ROOM_MIB);
	return AFS_ENOSPC;
}

static void put_date(struct buf *b, time_t t)
{
	struct tm tm;
	char s[40];
	gmtime_r(&t, &tm);
	strftime(s, sizeof(s), "%Y-%m-%d %H:%M:%S UTC", &tm);
	buf_puts(b, s);
}

static afs_err check_clock(const struct conf *c, struct buf *why)
{
	time_t now = (time_t)(clk_wall() / NS_PER_SEC);
	CLEANUP(str) char *alive = mem_printf("%s/alive", c->state);
	struct stat st;
	if (now < CLOCK_FLOOR) {
		buf_puts(why, "the clock is off: it says ");
		put_date(why, now);
		buf_puts(why, "; set it (timedatectl, ntpd), since tickets and callbacks depend on it");
		return AFS_ESKEW;
	}
	if (alive && stat(alive, &st) == 0 && st.st_mtime > now + CLOCK_SLACK_S) {
		buf_puts(why, "the clock is off: it says ");
		put_date(why, now);
		buf_puts(why, ", but this cell ran at ");
		put_date(why, st.st_mtime);
		buf_printf(why, "; set the clock, or if it was wrong then and is right now, remove %s", alive);
		return AFS_ESKEW;
	}
	return AFS_OK;
}

void preflight_alive(const struct conf *conf)
{
	CLEANUP(str) char *path = mem_printf("%s/alive", conf->state);
	CLEANUP(fd) int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd >= 0)
		(void)futimens(fd, NULL); /* the next start judges by what stands there */
}

afs_err preflight(const struct conf *conf, struct buf *why)
{
	TRY(check_clock(conf, why));
	TRY(check_room(conf->state, why));
	for (size_t i = 0; i < conf->partition_count && conf->roles.fileserver.enabled; i++)
		TRY(check_room(conf->partitions[i].path, why));
	TRY(check_ports(conf, why));
	TRY(check_console(conf, why));
	return check_mount(conf, why);
}
