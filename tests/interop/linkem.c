/* SPDX-License-Identifier: BSD-2-Clause
 *
 * linkem: an emulated link between two network namespaces, for kernels without netem.  "linkem --help"
 * and tests/README.md say how it is used.
 *
 * Two TUN devices and one thread.  A packet is read straight into a slot of its own, gets the time at
 * which it is due at the other end, and waits in that direction's heap; what is due is written.  Slots
 * are kept and used again, reads and writes go in batches between two waits, and a wait ends within
 * some microseconds of its time.  Each direction draws from a generator of its own, one draw per
 * question and packet, so the same packets in the same order meet the same fate.
 *
 * It is a program of its own (cc -O2 -o linkem linkem.c), so that the stock cell's script can build it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 128, SLOTS_MAX = 1 << 18, NAME_MAX_LEN = 64 };

static struct {
	double delay, jitter;                   /* ns, one way */
	double loss, burst, reorder, duplicate; /* probabilities; burst: mean length of a run of losses */
	double rate;                            /* bytes per ns; 0: not limited */
	unsigned queue;                         /* packets that may wait for a limited link */
	unsigned mtu, carry;                    /* of the devices; longest packet carried (0: every one) */
	uint64_t seed;
} opt = {.queue = 1000, .mtu = 1500, .burst = 1, .seed = 1};

struct slot {
	int64_t due;
	uint64_t order;
	unsigned len;
	unsigned char data[];
};

/* What goes one way. */
static struct way {
	const char *name;
	uint64_t random;
	struct slot **heap; /* the next one due first */
	unsigned count;
	uint64_t order;
	double link_free; /* when the limited link has sent what it holds */
	bool losing;      /* in a run of losses */
	uint64_t in, out, lost, late, doubled, overflowed, too_long, refused;
} ways[2] = {{.name = "a to b"}, {.name = "b to a"}};

static struct slot **spare;
static unsigned spare_count, slot_count;
static size_t slot_size;
static volatile sig_atomic_t stop, show;

static const char usage[] =
	"usage: linkem [OPTIONS] NETNS_A DEV_A[=ADDRESS/LEN] NETNS_B DEV_B[=ADDRESS/LEN]\n"
	"\n"
	"Makes a TUN device in each network namespace (/run/netns/NAME, or - for the one it is started in)\n"
	"and carries IP packets between them.  With an address the device is configured and up before\n"
	"\"ready\" is printed; without, that is the caller's to do.  Ends on SIGTERM and SIGINT and then says\n"
	"what it did on standard error; SIGUSR1 says it at once.  Options hold for each way:\n"
	"\n"
	"  --delay MS       a packet is due MS after it was sent (0)\n"
	"  --jitter MS      and up to MS more or less, evenly spread: overtaking is possible (0)\n"
	"  --loss PERCENT   lost (0)\n"
	"  --burst N        losses come in runs of N on average, at the same rate over all (1)\n"
	"  --reorder PERCENT    overtakes what is under way: due at once (0)\n"
	"  --duplicate PERCENT  arrives twice (0)\n"
	"  --rate MBIT      the link sends so many 10^6 bits a second (0: as fast as it can)\n"
	"  --queue N        packets that wait for a link with a rate; more are lost (1000)\n"
	"  --mtu BYTES      of both devices (1500)\n"
	"  --carry BYTES    longer IP packets vanish silently, whatever the devices' MTU (0: none)\n"
	"  --seed N         another seed, another sequence of fates (1)\n"
	"\n"
	"example: 50 ms of round trip and 1 % of loss between the namespaces one and two\n"
	"  ip netns add one; ip netns add two\n"
	"  linkem --delay 25 --loss 1 one em0=10.9.0.1/24 two em0=10.9.0.2/24 &\n"
	"  nsenter --net=/run/netns/one ping 10.9.0.2\n";

static void die(const char *what)
{
	fprintf(stderr, "linkem: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Evenly in [0, 1): splitmix64. */
static double draw(struct way *w)
{
	uint64_t z = w->random += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* --- devices -------------------------------------------------------------------------------- */

static void enter(const char *netns)
{
	char path[300];
	if (strcmp(netns, "-") == 0)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		die(path);
	close(fd);
}

static void configure(const char *dev, const char *address)
{
	struct ifreq r = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", dev);
	r.ifr_mtu = (int)opt.mtu;
	if (s < 0 || ioctl(s, SIOCSIFMTU, &r) < 0)
		die("setting the MTU");
	r.ifr_qlen = (int)(opt.queue < 1000 ? 1000 : opt.queue);
	if (ioctl(s, SIOCSIFTXQLEN, &r) < 0)
		die("setting the queue's length");
	if (address) {
		char ip[NAME_MAX_LEN];
		const char *slash = strchr(address, '/');
		int bits = slash ? atoi(slash + 1) : 24;
		struct sockaddr_in a = {.sin_family = AF_INET};
		snprintf(ip, sizeof(ip), "%.*s", slash ? (int)(slash - address) : (int)strlen(address), address);
		if (inet_pton(AF_INET, ip, &a.sin_addr) != 1 || bits < 1 || bits > 32) {
			errno = EINVAL;
			die(address);
		}
		memcpy(&r.ifr_addr, &a, sizeof(a));
		if (ioctl(s, SIOCSIFADDR, &r) < 0)
			die(address);
		a.sin_addr.s_addr = htonl(UINT32_MAX << (32 - bits));
		memcpy(&r.ifr_netmask, &a, sizeof(a));
		if (ioctl(s, SIOCSIFNETMASK, &r) < 0)
			die(address);
		r.ifr_flags = IFF_UP | IFF_RUNNING;
		if (ioctl(s, SIOCSIFFLAGS, &r) < 0)
			die(dev);
	}
	close(s);
}

/* "DEV" or "DEV=ADDRESS/LEN" in that namespace. */
static int open_device(const char *netns, const char *spec)
{
	char dev[IFNAMSIZ];
	const char *eq = strchr(spec, '=');
	size_t n = eq ? (size_t)(eq - spec) : strlen(spec);
	if (n == 0 || n >= sizeof(dev)) {
		errno = EINVAL;
		die(spec);
	}
	memcpy(dev, spec, n);
	dev[n] = 0;
	enter(netns);
	struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	memcpy(r.ifr_name, dev, n + 1);
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		die("/dev/net/tun");
	if (ioctl(fd, TUNSETIFF, &r) < 0)
		die(dev);
	configure(dev, eq ? eq + 1 : NULL);
	return fd;
}

/* --- what waits ------------------------------------------------------------------------------- */

static struct slot *slot_get(void)
{
	if (spare_count)
		return spare[--spare_count];
	if (slot_count == SLOTS_MAX)
		return NULL;
	struct slot *s = malloc(sizeof(*s) + slot_size);
	if (s)
		slot_count++;
	return s;
}

static void slot_put(struct slot *s) { spare[spare_count++] = s; }

static bool before(const struct slot *a, const struct slot *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void heap_push(struct way *w, struct slot *s, double due)
{
	s->due = (int64_t)due;
	s->order = w->order++;
	unsigned i = w->count++;
	while (i && before(s, w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = s;
}

static struct slot *heap_pop(struct way *w)
{
	struct slot *first = w->heap[0], *last = w->heap[--w->count];
	unsigned i = 0;
	for (unsigned child; (child = 2 * i + 1) < w->count; i = child) {
		if (child + 1 < w->count && before(w->heap[child + 1], w->heap[child]))
			child++;
		if (!before(w->heap[child], last))
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = last;
	return first;
}

/* --- fates ------------------------------------------------------------------------------------ */

static bool lost(struct way *w)
{
	if (opt.loss <= 0)
		return false;
	/* two states, the mean stay in the bad one being `burst`: the share of bad ones is `loss` */
	double leave = 1 / opt.burst, enters = opt.loss >= 1 ? 1 : opt.loss * leave / (1 - opt.loss);
	w->losing = opt.burst <= 1 ? draw(w) < opt.loss : draw(w) < (w->losing ? 1 - leave : enters);
	return w->losing;
}

/* Takes the slot. */
static void decide(struct way *w, struct slot *s, int64_t now)
{
	w->in++;
	bool gone = lost(w);
	bool overtakes = opt.reorder > 0 && draw(w) < opt.reorder;
	bool twice = opt.duplicate > 0 && draw(w) < opt.duplicate;
	double spread = opt.jitter > 0 ? (2 * draw(w) - 1) * opt.jitter : 0;
	double sent = (double)now;
	if (opt.carry && s->len > opt.carry) {
		w->too_long++;
		slot_put(s);
		return;
	}
	if (opt.rate > 0) {
		double wait = w->link_free - sent;
		if (wait > 0 && wait * opt.rate >= (double)opt.queue * opt.mtu) {
			w->overflowed++;
			slot_put(s);
			return;
		}
		w->link_free = (wait > 0 ? w->link_free : sent) + (double)s->len / opt.rate;
		sent = w->link_free;
	}
	if (gone) {
		w->lost++;
		slot_put(s);
		return;
	}
	double due = overtakes ? sent : sent + opt.delay + spread;
	w->late += overtakes;
	struct slot *copy = twice ? slot_get() : NULL;
	if (copy) {
		memcpy(copy->data, s->data, s->len);
		copy->len = s->len;
		w->doubled++;
	}
	heap_push(w, s, due < sent ? sent : due);
	if (copy)
		heap_push(w, copy, due < sent ? sent : due);
}

static bool take(struct way *w, int fd, int64_t now)
{
	for (int i = 0; i < BATCH; i++) {
		struct slot *s = slot_get();
		unsigned char drop[1];
		ssize_t n = s ? read(fd, s->data, slot_size) : read(fd, drop, sizeof(drop));
		if (n <= 0) {
			if (s)
				slot_put(s);
			return false;
		}
		if (!s) {
			w->in++;
			w->overflowed++;
			continue;
		}
		s->len = (unsigned)n;
		decide(w, s, now);
	}
	return true;
}

static void give(struct way *w, int fd, int64_t now)
{
	while (w->count && w->heap[0]->due <= now) {
		struct slot *s = heap_pop(w);
		if (write(fd, s->data, s->len) < 0)
			w->refused++; /* the other end is down or full: lost, as on a wire */
		else
			w->out++;
		slot_put(s);
	}
}

static void report(void)
{
	for (int i = 0; i < 2; i++) {
		const struct way *w = &ways[i];
		fprintf(stderr, "%s: in %llu out %llu lost %llu overtaking %llu doubled %llu overflowed %llu too-long %llu refused %llu\n",
			w->name, (unsigned long long)w->in, (unsigned long long)w->out, (unsigned long long)w->lost,
			(unsigned long long)w->late, (unsigned long long)w->doubled, (unsigned long long)w->overflowed,
			(unsigned long long)w->too_long, (unsigned long long)w->refused);
	}
}

static void carry(const int fd[2])
{
	bool more = false;
	while (!stop) {
		int64_t now = now_ns(), next = now + 1000000000;
		for (int i = 0; i < 2; i++) {
			give(&ways[i], fd[!i], now);
			if (ways[i].count && ways[i].heap[0]->due < next)
				next = ways[i].heap[0]->due;
		}
		if (show) {
			show = 0;
			report();
		}
		int64_t wait = next - now_ns();
		if (more || wait < 0)
			wait = 0;
		struct pollfd p[2] = {{.fd = fd[0], .events = POLLIN}, {.fd = fd[1], .events = POLLIN}};
		struct timespec ts = {.tv_sec = (time_t)(wait / 1000000000), .tv_nsec = (long)(wait % 1000000000)};
		more = false;
		if (ppoll(p, 2, &ts, NULL) <= 0)
			continue;
		now = now_ns();
		for (int i = 0; i < 2; i++)
			if (p[i].revents & POLLIN)
				more |= take(&ways[i], fd[i], now);
	}
}

/* --- the command line --------------------------------------------------------------------------- */

static double number(const char *option, const char *text, double least, double most)
{
	char *end;
	double v = strtod(text, &end);
	if (*end || end == text || !(v >= least && v <= most)) {
		fprintf(stderr, "linkem: --%s %s: a number from %g to %g is wanted\n", option, text, least, most);
		exit(2);
	}
	return v;
}

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		show = 1;
	else
		stop = 1;
}

int main(int argc, char **argv)
{
	enum { DELAY, JITTER, LOSS, BURST, REORDER, DUPLICATE, RATE, QUEUE, MTU, CARRY, SEED, HELP };
	static const struct option options[] = {{"delay", 1, NULL, DELAY}, {"jitter", 1, NULL, JITTER},
		{"loss", 1, NULL, LOSS}, {"burst", 1, NULL, BURST}, {"reorder", 1, NULL, REORDER},
		{"duplicate", 1, NULL, DUPLICATE}, {"rate", 1, NULL, RATE}, {"queue", 1, NULL, QUEUE},
		{"mtu", 1, NULL, MTU}, {"carry", 1, NULL, CARRY}, {"seed", 1, NULL, SEED}, {"help", 0, NULL, HELP},
		{0}};
	int index = 0;
	for (int c; (c = getopt_long(argc, argv, "", options, &index)) != -1;) {
		const char *name = options[index].name;
		switch (c) {
		case DELAY: opt.delay = number(name, optarg, 0, 60000) * 1e6; break;
		case JITTER: opt.jitter = number(name, optarg, 0, 60000) * 1e6; break;
		case LOSS: opt.loss = number(name, optarg, 0, 100) / 100; break;
		case BURST: opt.burst = number(name, optarg, 1, 1e6); break;
		case REORDER: opt.reorder = number(name, optarg, 0, 100) / 100; break;
		case DUPLICATE: opt.duplicate = number(name, optarg, 0, 100) / 100; break;
		case RATE: opt.rate = number(name, optarg, 0, 1e6) * 1e6 / 8 / 1e9; break;
		case QUEUE: opt.queue = (unsigned)number(name, optarg, 1, SLOTS_MAX); break;
		case MTU: opt.mtu = (unsigned)number(name, optarg, 68, 65535); break;
		case CARRY: opt.carry = (unsigned)number(name, optarg, 0, 65535); break;
		case SEED: opt.seed = (uint64_t)number(name, optarg, 0, 1e15); break;
		case HELP: fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (argc - optind != 4) {
		fputs(usage, stderr);
		return 2;
	}
	slot_size = opt.mtu;
	spare = calloc(SLOTS_MAX, sizeof(*spare));
	for (int i = 0; i < 2; i++) {
		ways[i].heap = calloc(SLOTS_MAX, sizeof(*ways[i].heap));
		ways[i].random = opt.seed * 2 + (uint64_t)i;
		if (!ways[i].heap || !spare)
			die("memory");
	}
	/* "-" is the namespace of the start, also after another one was entered */
	int fd[2], home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		fd[i] = open_device(argv[optind + 2 * i], argv[optind + 2 * i + 1]);
		if (home < 0 || setns(home, CLONE_NEWNET) != 0)
			die("going back to the first namespace");
	}
	close(home);
	struct sigaction act = {.sa_handler = on_signal};
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGUSR1, &act, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	puts("ready");
	fflush(stdout);
	carry(fd);
	report();
	return 0;
}
