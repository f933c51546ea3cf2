/* SPDX-License-Identifier: BSD-2-Clause
 * rigrun [-n CLIENTS] [-c CACHE_MIB] [-s] [-v] [-d DIR] COMMAND...: run a command beside a small cell.  It finds the
 * mounts in M1, M2, M3 (root.cell's root directory).  Exit status: the command's. */
#include "tests/unit/fuse/rig.h"

#include "cell/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rig_config config = {.clients = 1};
	for (int opt; (opt = getopt(argc, argv, "+n:c:svd:")) != -1;) {
		if (opt == 'n')
			config.clients = (unsigned)atoi(optarg);
		else if (opt == 'c')
			config.cache_bytes = (uint64_t)atoi(optarg) << 20;
		else if (opt == 's')
			config.slow_path = true;
		else if (opt == 'd')
			config.dir = optarg;
		else if (opt == 'v')
			log_to(2, LOG_DEBUG);
		else
			return 2;
	}
	if (optind == argc)
		return 2;
	if (!rig_isolate()) {
		fprintf(stderr, "rigrun: needs root and /dev/fuse\n");
		return 77;
	}
	struct rig *r = rig_start(&config);
	pid_t pid = fork();
	if (pid == 0) {
		for (unsigned i = 0; i < config.clients; i++) {
			char name[16], path[4096];
			snprintf(name, sizeof(name), "M%u", i + 1);
			snprintf(path, sizeof(path), "%s/%s", r->mounts[i], RIG_CELL);
			setenv(name, path, 1);
		}
		setenv("RIG", r->dir, 1);
		execvp(argv[optind], argv + optind);
		perror(argv[optind]);
		_exit(127);
	}
	int status;
	waitpid(pid, &status, 0);
	if (getenv("RIG_STATS")) {
		for (unsigned i = 0; i < config.clients; i++) {
			struct client_stats s;
			client_stats(r->clients[i], &s);
			fprintf(stderr,
				"client %u: calls %llu retries %llu breaks %llu fetched %llu "
				"stored %llu cache %llu vnodes %llu\n",
				i + 1, (unsigned long long)s.calls, (unsigned long long)s.retries,
				(unsigned long long)s.breaks, (unsigned long long)s.fetched_bytes,
				(unsigned long long)s.stored_bytes,
				(unsigned long long)s.cache_bytes, (unsigned long long)s.vnodes);
		}
	}
	rig_stop(r);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
