/* SPDX-License-Identifier: BSD-2-Clause
 *
 * doctor: looks at what makes a cell ill and says what to do.  Nothing is changed.  Each finding is a row of one
 * list, for people and as JSON; the exit status is 1 when something is bad, 0 also with warnings. */
#include "cell/cli/debug.h"
#include "cell/cli/handlers.h"

#include "cell/adapters.h"
#include "cell/base/text.h"
#include "cell/conf/conf.h"
#include "cell/ctl.h"
#include "cell/preflight.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SKEW_MAX_S = 120, PATIENCE_S = 5, ROOM_WARN_PERCENT = 10, ROOM_BAD_MIB = 64, BUFFER_WANTED = 1 << 20 };

enum level { GOOD, WARN, BAD };
struct doctor {
	struct cli *c;
	struct conf *conf;
	json_t *list, *status; /* status NULL: the cell does not run */
	bool bad;
};

static void doctor_cleanup(struct doctor *d)
{
	json_decref(d->list);
	json_decref(d->status);
	conf_free(d->conf);
}

/* One finding; `what_to_do` NULL when there is nothing to do. */
[[gnu::format(printf, 5, 6)]] static void found(
	struct doctor *d, const char *check, enum level level, const char *what_to_do, const char *fmt, ...)
{
	static const char *const names[] = {"good", "warning", "bad"};
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	d->bad = d->bad || level == BAD;
	json_array_append_new(d->list, json_pack("{s:s, s:s, s:s, s:s?}", "check", check, "level", names[level], "text", text, "do",
					      level == GOOD ? NULL : what_to_do));
	if (cli_wants_json(d->c))
		return;
	static const char *const colours[] = {"32", "33", "31"};
	printf("%-8s %s%-7s%s %s\n", check, cli_colour(d->c, colours[level]), names[level], cli_colour(d->c, "0"), text);
	if (what_to_do && level != GOOD)
		printf("%-8s %-7s %s\n", "", "", what_to_do);
}

/* --- the cell ---------------------------------------------------------------------------------------- */

static void look_running(struct doctor *d)
{
	CLEANUP(str) char *socket = mem_printf("%s/control", d->conf->run), *text = NULL;
	CLEANUP(buf) struct buf why = {};
	if (!socket)
		return;
	if (ctl_ask(socket, json_pack("{s:s}", "verb", "status"), &d->status, &text, NULL, NULL) == AFS_OK) {
		found(d, "cell", GOOD, NULL, "%s runs, process %lld", d->conf->cell, (long long)json_integer_value(json_object_get(d->status, "pid")));
		return;
	}
	d->status = NULL;
	afs_err err = preflight(d->conf, &why);
	found(d, "cell", BAD, err == AFS_OK ? "start it: afscell up" : "mend what is said here, then: afscell up", "%s does not run%s%s", d->conf->cell,
		why.len ? ": " : "", why.len ? why.data : "");
}

static void look_roles(struct doctor *d)
{
	size_t i;
	json_t *r;
	json_array_foreach(json_object_get(d->status, "roles"), i, r)
	{
		const char *name = json_string_value(json_object_get(r, "name")), *state = json_string_value(json_object_get(r, "state"));
		if (!name || !state || strcmp(state, "off") == 0)
			continue;
		bool runs = strcmp(state, "running") == 0, kdc = strcmp(name, "kdc") == 0;
		found(d, "role", runs ? GOOD : BAD, kdc ? "the log tells why the key server ends; \"afscell down\" and \"up\" start it afresh"
							: "an administrator stopped it: afscell bos start SERVER INSTANCE; or look into the log",
			"%s is %s", name, state);
		uint16_t port = (uint16_t)json_integer_value(json_object_get(r, "port"));
		uint32_t ip = d->conf->listen.n && d->conf->listen.v[0] ? d->conf->listen.v[0] : INADDR_LOOPBACK;
		if (!runs || kdc || strcmp(name, "client") == 0)
			continue;
		if (!debug_answers(ip, port))
			found(d, "port", BAD, "is a packet filter in the way (nft list ruleset)? is the process stuck (afscell status)?",
				"%s does not answer at %s port %u", name, IPV4(ip), port);
	}
}

/* --- keys ---------------------------------------------------------------------------------------------- */

static void look_keys(struct doctor *d)
{
	struct stat st;
	CLEANUP(str) char *path = adapters_keytab(d->conf);
	CLEANUP(keys) struct keys *keys = NULL;
	CLEANUP(buf) struct buf why = {};
	struct keys_entry one;
	if (!path || !conf_serves(d->conf))
		return;
	if (stat(path, &st) != 0 && errno == EACCES) {
		found(d, "keys", WARN, "run the doctor as root", "%s may not be looked at", path);
		return;
	}
	struct keys_config kc = {.cell = d->conf->cell, .keytab = path};
	afs_err err = keys_open(&kc, &keys, &why);
	if (err != AFS_OK) {
		bool ours = d->conf->realm.mode == CONF_REALM_EMBEDDED;
		found(d, "keys", BAD, ours ? "\"afscell up\" writes it from the realm" : "export the key of afs/CELL there (kadmin: ktadd), AES", "%s",
			why.data ? why.data : afs_err_text(err));
		return;
	}
	size_t n = keys_list(keys, &one, 1);
	if (stat(path, &st) == 0 && st.st_mode & 077)
		found(d, "keys", BAD, "chmod 600; if others were on this machine: afscell key rotate", "%s can be read by others", path);
	else
		found(d, "keys", n > 1 ? WARN : GOOD, "when no ticket needs the old ones: afscell key retire", "%zu in %s, newest number %d", n, path, one.kvno);
}

/* --- the machine ----------------------------------------------------------------------------------------- */

static void look_clock(struct doctor *d)
{
	const struct conf *conf = d->conf;
	for (size_t i = 0; i < conf->database_servers.n; i++) {
		int64_t differs;
		uint32_t ip = conf->database_servers.v[i];
		if (!debug_clock(ip, conf->roles.vlserver.port, &differs))
			found(d, "server", BAD, "is it on, and does a packet filter let UDP through?", "the database server %s does not answer", IPV4(ip));
		else
			found(d, "clock", llabs(differs) > SKEW_MAX_S ? BAD : GOOD, "set both by NTP; Kerberos refuses what is 5 minutes off",
				"%lld s from that of the database server %s", (long long)differs, IPV4(ip));
	}
	time_t now = time(NULL);
	if (now < 1735689600) /* 2025 */
		found(d, "clock", BAD, "set the clock", "this machine's clock is years behind");
}

static void look_disk(struct doctor *d, const char *what, const char *path)
{
	struct statvfs v;
	if (!*path || statvfs(path, &v) != 0)
		return;
	uint64_t free_mib = (uint64_t)v.f_bavail * v.f_frsize >> 20, size_mib = (uint64_t)v.f_blocks * v.f_frsize >> 20;
	unsigned percent = size_mib ? (unsigned)(free_mib * 100 / size_mib) : 100;
	enum level level = free_mib < ROOM_BAD_MIB ? BAD : percent < ROOM_WARN_PERCENT ? WARN : GOOD;
	found(d, "disk", level, "make room, or move the directory (configuration) to a larger disk", "%s %s: %llu MiB free, %u%%", what, path,
		(unsigned long long)free_mib, percent);
	uint64_t inodes = v.f_files ? v.f_favail * 100 / v.f_files : 100;
	if (v.f_files && inodes < ROOM_WARN_PERCENT)
		found(d, "disk", WARN, "make room: many small files fill it", "%s %s: %llu%% of the inodes are free", what, path, (unsigned long long)inodes);
}

static void look_disks(struct doctor *d)
{
	look_disk(d, "state", d->conf->state);
	for (size_t i = 0; d->conf->roles.fileserver.enabled && i < d->conf->partition_count; i++)
		look_disk(d, "partition", d->conf->partitions[i].path);
	if (d->conf->roles.client.enabled)
		look_disk(d, "cache", d->conf->client.cache);
}

/* A child looks: one who looks at a dead mount may never come back. */
static bool mount_answers(const char *path)
{
	pid_t child = fork();
	if (child == 0) {
		struct statvfs v;
		_exit(statvfs(path, &v) == 0 ? 0 : 1);
	}
	for (int i = 0; child > 0 && i < PATIENCE_S * 20; i++) {
		int st;
		if (waitpid(child, &st, WNOHANG) == child)
			return WIFEXITED(st) && WEXITSTATUS(st) == 0;
		usleep(50 * 1000);
	}
	if (child > 0)
		kill(child, SIGKILL); /* it is reaped when it can be */
	return false;
}

static void look_mount(struct doctor *d)
{
	const char *want = d->conf->client.mount;
	if (!d->conf->roles.client.enabled || !*want)
		return;
	if (access("/dev/fuse", F_OK) != 0)
		found(d, "kernel", BAD, "modprobe fuse; in a container, give it the device", "there is no /dev/fuse");
	if (!d->status)
		return;
	const char *at = json_string_value(json_object_get(d->status, "mount"));
	if (!at)
		found(d, "mount", BAD, "afscell down, then afscell up; the log tells why it was lost", "%s is not mounted", want);
	else if (!mount_answers(at))
		found(d, "mount", BAD, "look into the log; afscell down lets go of it", "%s does not answer within %d s", at, PATIENCE_S);
	else
		found(d, "mount", GOOD, NULL, "%s answers", at);
}

static void look_dns(struct doctor *d)
{
	char name[256];
	struct addrinfo hint = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *list = NULL;
	bool loopback = true;
	for (size_t i = 0; i < d->conf->listen.n; i++)
		loopback = loopback && d->conf->listen.v[i] >> 24 == IN_LOOPBACKNET;
	if (loopback || gethostname(name, sizeof(name)) != 0)
		return; /* a sandbox: nobody else looks for it */
	if (getaddrinfo(name, NULL, &hint, &list) != 0) {
		found(d, "dns", WARN, "put it into DNS or /etc/hosts with an address of \"listen\"", "this machine's name %s has no address", name);
		return;
	}
	struct sockaddr_in sin;
	memcpy(&sin, list->ai_addr, sizeof(sin));
	freeaddrinfo(list);
	uint32_t ip = ntohl(sin.sin_addr.s_addr);
	if (ip >> 24 == IN_LOOPBACKNET)
		found(d, "dns", WARN, "stock tools refuse servers on loopback: give the name an address of \"listen\" in /etc/hosts",
			"this machine's name %s stands for %s", name, IPV4(ip));
	else
		found(d, "dns", GOOD, NULL, "%s is %s", name, IPV4(ip));
}

static long number_in(const char *path)
{
	long n = -1;
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

static void look_kernel(struct doctor *d)
{
	static const char *const files[] = {"/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"};
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		long n = number_in(files[i]);
		if (n >= 0 && n < BUFFER_WANTED)
			found(d, "kernel", WARN, "sysctl -w net.core.rmem_max=8388608 net.core.wmem_max=8388608; bursts are lost otherwise",
				"%s is only %ld", strrchr(files[i], '/') + 1, n);
	}
	if (d->conf->roles.client.enabled && access("/proc/fs/openafs", F_OK) == 0)
		found(d, "kernel", WARN, "two clients need different callback ports and mount points (roles.client.port, client.mount)",
			"the OpenAFS kernel client is loaded too");
}

int cli_doctor(struct cli *c)
{
	CLEANUP(doctor) struct doctor d = {.c = c, .list = json_array()};
	int status = cli_load_conf(c, &d.conf);
	if (status != CLI_OK)
		return status;
	found(&d, "config", GOOD, NULL, "%s is right", cli_config_path(c));
	look_running(&d);
	look_roles(&d);
	look_keys(&d);
	look_clock(&d);
	look_disks(&d);
	look_mount(&d);
	look_dns(&d);
	look_kernel(&d);
	if (cli_wants_json(c))
		(void)cli_print_json(c, json_incref(d.list)); /* the status below is what counts */
	return d.bad ? CLI_FAILED : CLI_OK;
}
