/* SPDX-License-Identifier: BSD-2-Clause
 *
 * /proc/net/udp names the socket of a port, and some /proc/PID/fd points at it.  Only root sees the
 * descriptors of others; then the owner's uid is all there is to say. */
#include "rx/io/holder.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long find_socket(uint16_t port, unsigned *uid)
{
	FILE *f = fopen("/proc/net/udp", "r");
	if (!f)
		return 0;
	char line[256];
	unsigned long inode = 0;
	while (!inode && fgets(line, sizeof(line), f)) {
		unsigned at, owner;
		unsigned long number;
		/* sl local_address rem_address st queues tr:when retransmits uid timeout inode */
		if (sscanf(line, "%*u: %*x:%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %u %*u %lu", &at, &owner, &number) == 3 &&
			at == port) {
			inode = number;
			*uid = owner;
		}
	}
	fclose(f);
	return inode;
}

static bool holds(const char *pid, const char *socket)
{
	char path[64], target[64];
	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return false;
	bool found = false;
	for (struct dirent *d; !found && (d = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, target, sizeof(target) - 1);
		found = n > 0 && (size_t)n == strlen(socket) && memcmp(target, socket, (size_t)n) == 0;
	}
	closedir(dir);
	return found;
}

static void name_process(const char *pid, char *out, size_t size)
{
	char path[64], name[64] = "?";
	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	FILE *f = fopen(path, "r");
	if (f) {
		if (fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = 0;
		fclose(f);
	}
	snprintf(out, size, "process %.16s (%s)", pid, name);
}

const char *udp_port_holder(uint16_t port, char *out, size_t size)
{
	unsigned uid = 0;
	unsigned long inode = find_socket(port, &uid);
	snprintf(out, size, "another process");
	if (!inode)
		return out;
	char socket[40];
	snprintf(socket, sizeof(socket), "socket:[%lu]", inode);
	snprintf(out, size, "a process of uid %u", uid);
	DIR *dir = opendir("/proc");
	if (!dir)
		return out;
	for (struct dirent *d; (d = readdir(dir));) {
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && holds(d->d_name, socket)) {
			name_process(d->d_name, out, size);
			break;
		}
	}
	closedir(dir);
	return out;
}
