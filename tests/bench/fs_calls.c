/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Small calls against a file server, ours or any other: cache managers made of packets.
 *
 *   fs_calls -s ADDRESS[:PORT] -V VOLUME MODE [-b ADDRESS] [-h HOSTS] [-w IN_FLIGHT] [-t SECONDS] [-f FILES] [-c CONNS]
 *
 *   status    FetchStatus of files, one after another
 *   bulk      InlineBulkStatus of 50
 *   create    CreateFile, StoreData64 of 1 KiB, RemoveFile: a unit is the three
 *   crowd     HOSTS cache managers with CONNS connections each, each promised word of all FILES; then
 *             one FetchStatus in flight for each of them, over connections in turn
 *
 * With -b each host has an address of its own, from that one on.  Each host has a socket, a UUID and an epoch of its own and answers what servers ask of cache
 * managers.  One thread writes Rx packets by hand, so that the generator costs a fraction of the
 * server; requests of a burst leave in one system call.  Prints one JSON object. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DATA = 1, ACK = 2, BUSY = 3, ABORT = 4 };
enum { CLIENT = 1, WANT_ACK = 2, LAST = 4 };
enum { HEADER = 28, PACKET = 1444, PARTS = 8, BURST = 64, CHANNELS = 4 };

static struct {
	struct sockaddr_in to;
	uint32_t volume, hosts, window, files, conns;
	double seconds;
	const char *mode;
	uint32_t dir_vnode, dir_unique, own; /* own: first address, host order; 0: any */
} opt = {.hosts = 4, .window = 32, .files = 1000, .seconds = 3, .conns = 1};

static void die(const char *what)
{
	fprintf(stderr, "fs_calls: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p)
		die("memory");
	return p;
}

static uint32_t get(const uint8_t *p) { return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
static uint8_t *put(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
	return p + 4;
}
static uint8_t *put_name(uint8_t *p, const char *name)
{
	size_t n = strlen(name);
	p = put(p, (uint32_t)n);
	memset(p, 0, (n + 3) & ~3u);
	memcpy(p, name, n);
	return p + ((n + 3) & ~3u);
}

/* --- hosts, calls ------------------------------------------------------------------------------ */

struct host;
struct call { /* one in flight */
	struct host *host;
	uint32_t conn, channel;
	uint32_t number; /* call number */
	uint64_t sent, first;
	uint8_t request[1400];
	size_t request_len;
	uint8_t *reply;
	uint16_t part_len[PARTS];
	unsigned have, want; /* bits of parts; parts in all, 0: not known */
	int step;            /* what it does: each mode's own */
	uint32_t fid[2];
	uint32_t next; /* file in turn */
	char name[32];
	bool idle, again;
};

struct host {
	int fd;
	uint32_t index, epoch, serial;
	uint8_t uuid[16];
	uint32_t *numbers; /* the last call number of each channel of each connection */
	struct call **by_channel; /* the call on it, or NULL */
	uint32_t turn;
	/* what leaves in one go */
	uint8_t out[BURST][PACKET];
	struct mmsghdr msg[BURST];
	struct iovec iov[BURST];
	unsigned n;
};

static struct host *hosts;
static uint32_t (*fids)[2];
static uint64_t calls_done, aborts, resends, last_abort, busies;

static void flush(struct host *h)
{
	unsigned at = 0;
	while (at < h->n) {
		/* requests of one size in a row leave as one message that the kernel cuts */
		unsigned end = at + 1;
		while (end < h->n && h->iov[end].iov_len == h->iov[at].iov_len && end - at < 40)
			end++;
		struct msghdr m = {.msg_name = &opt.to, .msg_namelen = sizeof(opt.to), .msg_iov = &h->iov[at], .msg_iovlen = end - at};
		char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
		if (end - at > 1) {
			m.msg_control = control;
			m.msg_controllen = sizeof(control);
			struct cmsghdr *c = CMSG_FIRSTHDR(&m);
			c->cmsg_level = SOL_UDP;
			c->cmsg_type = UDP_SEGMENT;
			c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
			*(uint16_t *)CMSG_DATA(c) = (uint16_t)h->iov[at].iov_len;
		}
		if (sendmsg(h->fd, &m, 0) < 0 && errno != EAGAIN && errno != ECONNREFUSED)
			die("send");
		at = end;
	}
	h->n = 0;
}

/* Room for a packet of this kind; sent with the others of the host. */
static uint8_t *packet(struct host *h, uint32_t epoch, uint32_t cid, uint32_t number, uint32_t seq, int type, int flags, size_t body)
{
	if (h->n == BURST)
		flush(h);
	uint8_t *p = h->out[h->n], *q = p;
	q = put(q, epoch), q = put(q, cid), q = put(q, number), q = put(q, seq), q = put(q, ++h->serial);
	*q++ = (uint8_t)type, *q++ = (uint8_t)flags, *q++ = 0, *q++ = 0; /* user status, security index */
	*q++ = 0, *q++ = 0, *q++ = 0, *q++ = 1;                          /* spare, service */
	h->iov[h->n] = (struct iovec){p, HEADER + body};
	h->n++;
	return q;
}

static void send_ack(struct host *h, const uint8_t *in, uint32_t next, unsigned have, uint32_t serial, int reason, bool as_client)
{
	unsigned beyond = 0; /* soft acknowledgements from `next` on */
	for (unsigned i = next - 1; i < PARTS; i++)
		if (have & 1u << i)
			beyond = i - (next - 1) + 1;
	uint8_t *q = packet(h, get(in), get(in + 4), get(in + 8), 0, ACK, as_client ? CLIENT : 0, 18 + beyond + 3 + 16);
	*q++ = 0, *q++ = 0, *q++ = 0, *q++ = 0;
	q = put(q, next), q = put(q, next - 1), q = put(q, serial);
	*q++ = (uint8_t)reason, *q++ = (uint8_t)beyond;
	for (unsigned i = 0; i < beyond; i++)
		*q++ = have >> (next - 1 + i) & 1;
	*q++ = 0, *q++ = 0, *q++ = 0;
	q = put(q, PACKET), q = put(q, PACKET), q = put(q, PARTS), put(q, 1);
}

static uint32_t cid_of(const struct host *h, const struct call *c)
{
	return (h->index * 4096 + c->conn + 1) << 2 | c->channel;
}

static void transmit(struct call *c)
{
	struct host *h = c->host;
	uint8_t *q = packet(h, h->epoch, cid_of(h, c), c->number, 1, DATA, CLIENT | LAST, c->request_len);
	memcpy(q, c->request, c->request_len);
	c->sent = now_us();
}

/* Begin the call whose request is written. */
static void begin(struct call *c, size_t len)
{
	uint32_t slot = c->conn * CHANNELS + c->channel;
	c->number = ++c->host->numbers[slot];
	c->host->by_channel[slot] = c;
	c->request_len = len;
	c->have = c->want = 0;
	c->idle = false;
	transmit(c);
	c->first = c->sent;
}

static uint8_t *op(struct call *c, uint32_t code) { return put(c->request, code); }
static uint8_t *put_fid(uint8_t *p, const uint32_t fid[2]) { return put(put(put(p, opt.volume), fid[0]), fid[1]); }
static uint8_t *put_status(uint8_t *p, uint32_t mask, uint32_t mode)
{
	p = put(p, mask), p = put(p, 0), p = put(p, 0), p = put(p, 0), p = put(p, mode);
	return put(p, 0);
}

/* --- modes ------------------------------------------------------------------------------------- */

static uint64_t units; /* done */
static bool stopping;
static uint32_t *latency; /* us of each call, when wanted */
static size_t latencies, latencies_max;

static void next_status(struct call *c)
{
	c->next = (c->next + 7) % opt.files;
	begin(c, (size_t)(put_fid(op(c, 132), fids[c->next]) - c->request));
}

static void next_bulk(struct call *c)
{
	uint8_t *p = put(op(c, 65536), 50);
	for (int i = 0; i < 50; i++) {
		c->next = (c->next + 1) % opt.files;
		p = put_fid(p, fids[c->next]);
	}
	begin(c, (size_t)(p - c->request));
}

static uint32_t (*dirs)[2];

static void next_create(struct call *c, const uint8_t *reply)
{
	uint8_t *p;
	const uint32_t *dir = dirs[c->host->index];
	switch (c->step) {
	case 0:
		p = put_name(put_fid(op(c, 137), dir), c->name);
		p = put_status(p, 8, 0644);
		break;
	case 1:
		c->fid[0] = get(reply + 4), c->fid[1] = get(reply + 8);
		p = put_status(put_fid(op(c, 65538), c->fid), 0, 0);
		p = put(p, 0), p = put(p, 0), p = put(p, 0), p = put(p, 1024), p = put(p, 0), p = put(p, 1024);
		memset(p, 'x', 1024);
		p += 1024;
		break;
	default:
		p = put_name(put_fid(op(c, 136), dir), c->name);
		break;
	}
	begin(c, (size_t)(p - c->request));
}

/* What a host does to hear of all files: bulk after bulk, then calls on each of its connections. */
static void next_watch(struct call *c)
{
	if (c->next >= opt.files) {
		c->idle = true;
		return;
	}
	uint32_t n = opt.files - c->next < 50 ? opt.files - c->next : 50;
	uint8_t *p = put(op(c, 65536), n);
	for (uint32_t i = 0; i < n; i++)
		p = put_fid(p, fids[c->next++]);
	begin(c, (size_t)(p - c->request));
}

static void next_connect(struct call *c)
{
	if (c->conn + 1 >= opt.conns) {
		c->idle = true;
		return;
	}
	c->conn++;
	begin(c, (size_t)(op(c, 153) - c->request));
}

static void next_crowd(struct call *c)
{
	c->conn = (c->conn + 1) % opt.conns;
	next_status(c);
}

static void next_make(struct call *c, const uint8_t *reply);
static void next_make_dir(struct call *c, const uint8_t *reply);

enum job { J_STATUS, J_BULK, J_CREATE, J_WATCH, J_CONNECT, J_CROWD, J_MAKE, J_MAKE_DIR };
static enum job job;

static void done(struct call *c, const uint8_t *reply, size_t len)
{
	if (latency && latencies < latencies_max)
		latency[latencies++] = (uint32_t)(now_us() - c->first);
	calls_done++;
	c->host->by_channel[c->conn * CHANNELS + c->channel] = NULL;
	bool unit = true;
	if (job == J_CREATE) {
		c->step = (c->step + 1) % 3;
		unit = c->step == 0;
	}
	if (job == J_BULK || job == J_WATCH) {
		if (len < 4 || get(reply) == 0)
			aborts++;
	}
	units += unit;
	if (stopping && unit && job != J_WATCH && job != J_CONNECT) {
		c->idle = true;
		return;
	}
	switch (job) {
	case J_STATUS: next_status(c); break;
	case J_BULK: next_bulk(c); break;
	case J_CREATE: next_create(c, reply); break;
	case J_WATCH: next_watch(c); break;
	case J_CONNECT: next_connect(c); break;
	case J_CROWD: next_crowd(c); break;
	case J_MAKE: next_make(c, reply); break;
	case J_MAKE_DIR: next_make_dir(c, reply); break;
	}
}

static uint32_t made, dirs_wanted;
static void next_make(struct call *c, const uint8_t *reply)
{
	if (reply && c->step) {
		fids[c->step - 1][0] = get(reply + 4);
		fids[c->step - 1][1] = get(reply + 8);
	}
	if (made >= opt.files) {
		c->idle = true;
		return;
	}
	c->step = (int)++made;
	char name[32];
	snprintf(name, sizeof(name), "f%x.%u", (unsigned)getpid(), made);
	uint32_t dir[2] = {opt.dir_vnode, opt.dir_unique};
	begin(c, (size_t)(put_status(put_name(put_fid(op(c, 137), dir), name), 8, 0644) - c->request));
}

static void next_make_dir(struct call *c, const uint8_t *reply)
{
	static const uint32_t root[2] = {1, 1};
	if (reply && c->step) {
		dirs[c->step - 1][0] = get(reply + 4);
		dirs[c->step - 1][1] = get(reply + 8);
	}
	if (made >= dirs_wanted) {
		c->idle = true;
		return;
	}
	c->step = (int)++made;
	char name[32];
	snprintf(name, sizeof(name), "d%x.%u", (unsigned)getpid(), made);
	begin(c, (size_t)(put_status(put_name(put_fid(op(c, 141), root), name), 8, 0755) - c->request));
}

/* --- what comes -------------------------------------------------------------------------------- */

/* A server's own call: who are you, drop what you know, this changed. */
static void answer(struct host *h, const uint8_t *in, size_t len)
{
	if (in[20] == ACK && len >= HEADER + 18) { /* a ping is answered, everything else is news of ours */
		if (in[HEADER + 16] == 6)
			send_ack(h, in, 1, 0, get(in + 16), 7, false);
		return;
	}
	if (in[20] != DATA || len < HEADER + 4)
		return;
	uint32_t code = get(in + HEADER);
	uint32_t cid = get(in + 4), number = get(in + 8);
	if (code == 65538 || code == 212) {
		size_t body = 4 + 44 + 3 * 128 + (code == 65538 ? 8 : 0);
		uint8_t *q = packet(h, get(in), cid, number, 1, DATA, LAST, body);
		memset(q, 0, body);
		q += 4;
		q = put(q, get(h->uuid)), q = put(q, (uint32_t)(h->uuid[4] << 8 | h->uuid[5])), q = put(q, (uint32_t)(h->uuid[6] << 8 | h->uuid[7]));
		for (int i = 8; i < 16; i++)
			q = put(q, (uint32_t)(int32_t)(int8_t)h->uuid[i]);
		q += 384;
		if (code == 65538)
			q = put(q, 1), put(q, 1);
	} else if (code == 204 || code == 205 || code == 206 || code == 213 || code == 214) {
		packet(h, get(in), cid, number, 1, DATA, LAST, 0);
	} else {
		put(packet(h, get(in), cid, number, 0, ABORT, 0, 4), (uint32_t)-455);
	}
}

static void take(struct host *h, const uint8_t *in, size_t len)
{
	if (len < HEADER)
		return;
	if (in[21] & CLIENT) {
		answer(h, in, len);
		return;
	}
	uint32_t cid = get(in + 4), number = get(in + 8), seq = get(in + 12);
	uint32_t slot = cid - ((h->index * 4096 + 1) << 2);
	if (get(in) != h->epoch || slot >= opt.conns * CHANNELS)
		return;
	struct call *c = h->by_channel[slot];
	if (in[20] == ACK) {
		if (len >= HEADER + 18 && in[HEADER + 16] == 6) /* a ping */
			send_ack(h, in, c && c->number == number ? 1 : 1, c ? c->have : 0, get(in + 16), 7, true);
		return;
	}
	if (!c || c->number != number)
		return;
	if (in[20] == ABORT && len >= HEADER + 4 && get(in + HEADER) == 110) { /* busy: come again, soon */
		busies++;
		h->by_channel[slot] = NULL;
		c->again = true;
		c->sent = now_us();
		return;
	}
	if (in[20] == ABORT) {
		aborts++;
		last_abort = len >= HEADER + 4 ? get(in + HEADER) : 0;
		if (job == J_CREATE)
			c->step = 2;
		static uint8_t nothing[16];
		done(c, nothing, sizeof(nothing));
		return;
	}
	if (in[20] != DATA || seq == 0 || seq > PARTS)
		return;
	if (seq == 1 && in[21] & LAST) {
		done(c, in + HEADER, len - HEADER);
		return;
	}
	if (!(c->have & 1u << (seq - 1))) {
		memcpy(c->reply + (seq - 1) * (PACKET - HEADER), in + HEADER, len - HEADER);
		c->part_len[seq - 1] = (uint16_t)(len - HEADER);
		c->have |= 1u << (seq - 1);
	}
	if (in[21] & LAST)
		c->want = seq;
	unsigned next = 1;
	while (next <= PARTS && c->have & 1u << (next - 1))
		next++;
	if (c->want && next > c->want) {
		done(c, c->reply, (c->want - 1) * (PACKET - HEADER) + c->part_len[c->want - 1]);
		return;
	}
	if (in[21] & WANT_ACK || seq % 2 == 0)
		send_ack(h, in, next, c->have, get(in + 16), in[21] & WANT_ACK ? 1 : 8, true);
}

static void receive(struct host *h)
{
	static uint8_t in[16][65536];
	static char control[16][64];
	struct mmsghdr m[16];
	struct iovec v[16];
	for (;;) {
		for (int i = 0; i < 16; i++) {
			v[i] = (struct iovec){in[i], sizeof(in[i])};
			m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1, .msg_control = control[i], .msg_controllen = sizeof(control[i])};
		}
		int n = recvmmsg(h->fd, m, 16, MSG_DONTWAIT, NULL);
		if (n <= 0)
			break;
		for (int i = 0; i < n; i++) {
			size_t whole = m[i].msg_len, part = whole;
			for (struct cmsghdr *c = CMSG_FIRSTHDR(&m[i].msg_hdr); c; c = CMSG_NXTHDR(&m[i].msg_hdr, c))
				if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
					part = (size_t)*(int *)CMSG_DATA(c);
			for (size_t at = 0; at < whole; at += part)
				take(h, in[i] + at, whole - at < part ? whole - at : part);
		}
		if (n < 16)
			break;
	}
	flush(h);
}

/* --- running ----------------------------------------------------------------------------------- */

static struct call *calls;
static uint32_t calls_n;

static bool all_idle(void)
{
	for (uint32_t i = 0; i < calls_n; i++)
		if (!calls[i].idle)
			return false;
	return true;
}

/* Until the time is over or everything is done; gives seconds. */
static double run(double seconds, bool to_the_end)
{
	uint64_t begun = now_us(), until = begun + (uint64_t)(seconds * 1e6), look = begun + 100000;
	uint64_t counted = 0, ended = 0;
	struct pollfd *p = zeroed(opt.hosts, sizeof(*p));
	for (uint32_t i = 0; i < opt.hosts; i++) {
		flush(&hosts[i]);
		p[i] = (struct pollfd){.fd = hosts[i].fd, .events = POLLIN};
	}
	stopping = false;
	for (;;) {
		if (poll(p, opt.hosts, 50) < 0 && errno != EINTR)
			die("poll");
		for (uint32_t i = 0; i < opt.hosts; i++)
			if (p[i].revents)
				receive(&hosts[i]);
		uint64_t now = now_us();
		if (!stopping && !to_the_end && now >= until) {
			counted = units;
			ended = now;
			stopping = true;
			until = now + 20000000;
		} else if (to_the_end && all_idle()) {
			counted = units;
			ended = now;
			break;
		}
		if (stopping && (all_idle() || now > until))
			break;
		if (now < look)
			continue;
		look = now + 100000;
		uint64_t oldest = now;
		for (uint32_t i = 0; i < calls_n; i++) {
			struct call *c = &calls[i];
			if (c->again && now - c->sent > 200000) {
				c->again = false;
				begin(c, c->request_len);
				flush(c->host);
			}
			if (!c->idle && !c->again && now - c->sent > 1000000) {
				resends++;
				transmit(c);
				flush(c->host);
			}
			if (!c->idle && c->first < oldest)
				oldest = c->first;
		}
		if (now - oldest > 60000000) {
			fprintf(stderr, "fs_calls: a call got no answer in 60 s\n");
			exit(1);
		}
	}
	free(p);
	units = counted;
	return (double)(ended - begun) / 1e6;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* The same calls begin something else. */
static void start(enum job what, uint32_t per_host)
{
	job = what;
	units = calls_done = 0;
	made = 0;
	if (calls)
		for (uint32_t i = 0; i < calls_n; i++)
			free(calls[i].reply);
	free(calls);
	calls_n = opt.hosts * per_host;
	calls = zeroed(calls_n, sizeof(*calls));
	for (uint32_t i = 0; i < calls_n; i++) {
		struct call *c = &calls[i];
		c->host = &hosts[i % opt.hosts];
		uint32_t k = i / opt.hosts;
		c->conn = k / CHANNELS;
		c->channel = k % CHANNELS;
		c->reply = zeroed(PARTS, PACKET);
		c->next = what == J_WATCH || !opt.files ? 0 : (uint32_t)((uint64_t)i * opt.files / calls_n);
		snprintf(c->name, sizeof(c->name), "c%x.%u", (unsigned)getpid(), i);
		switch (what) {
		case J_STATUS: next_status(c); break;
		case J_BULK: next_bulk(c); break;
		case J_CREATE: next_create(c, NULL); break;
		case J_WATCH: next_watch(c); break;
		case J_CONNECT: begin(c, (size_t)(op(c, 153) - c->request)); break;
		case J_CROWD: next_crowd(c); break;
		case J_MAKE: next_make(c, NULL); break;
		case J_MAKE_DIR: next_make_dir(c, NULL); break;
		}
	}
}

static void open_hosts(void)
{
	hosts = zeroed(opt.hosts, sizeof(*hosts));
	uint32_t conns = opt.conns;
	for (uint32_t i = 0; i < opt.hosts; i++) {
		struct host *h = &hosts[i];
		h->index = i;
		if (getrandom(h->uuid, 16, 0) != 16 || getrandom(&h->epoch, 4, 0) != 4)
			die("random");
		h->epoch = (h->epoch & 0x3fffffff) | 0x80000000;
		h->numbers = zeroed(conns * CHANNELS, sizeof(*h->numbers));
		h->by_channel = zeroed(conns * CHANNELS, sizeof(*h->by_channel));
		h->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		int one = 1, room = 4 << 20;
		if (h->fd < 0)
			die("socket");
		setsockopt(h->fd, SOL_UDP, UDP_GRO, &one, sizeof(one));
		setsockopt(h->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(opt.own ? opt.own + i : 0)};
		if (bind(h->fd, (struct sockaddr *)&any, sizeof(any)) < 0)
			die("bind");
	}
}

static void finished(const char *what, double seconds)
{
	printf("{\"what\": \"%s\", \"hosts\": %u, \"in_flight\": %u, \"units\": %llu, \"seconds\": %.3f, \"per_s\": %.0f, "
	       "\"aborts\": %llu, \"busy\": %llu, \"resends\": %llu",
		what, opt.hosts, calls_n, (unsigned long long)units, seconds, (double)units / seconds,
		(unsigned long long)aborts, (unsigned long long)busies, (unsigned long long)resends);
	if (latency && latencies) {
		qsort(latency, latencies, sizeof(*latency), by_size);
		printf(", \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f", latency[latencies / 2] / 1e3,
			latency[latencies - 1 - latencies / 100] / 1e3, latency[latencies - 1] / 1e3);
	}
	printf("}\n");
	fflush(stdout);
}

static void settle(const char *what)
{
	if (aborts) {
		fprintf(stderr, "fs_calls: %s: %llu calls were refused, the last with %d\n", what, (unsigned long long)aborts, (int)(uint32_t)last_abort);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	opt.to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(7000)};
	for (int c; (c = getopt(argc, argv, "s:V:b:h:w:t:f:c:")) != -1;) {
		switch (c) {
		case 's': {
			char *colon = strchr(optarg, ':');
			if (colon) {
				*colon = 0;
				opt.to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
			}
			if (inet_pton(AF_INET, optarg, &opt.to.sin_addr) != 1)
				return 2;
			break;
		}
		case 'b': {
			struct in_addr own;
			if (inet_pton(AF_INET, optarg, &own) != 1)
				return 2;
			opt.own = ntohl(own.s_addr);
			break;
		}
		case 'V': opt.volume = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'h': opt.hosts = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'w': opt.window = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 't': opt.seconds = strtod(optarg, NULL); break;
		case 'f': opt.files = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'c': opt.conns = (uint32_t)strtoul(optarg, NULL, 10); break;
		default: return 2;
		}
	}
	if (optind + 1 != argc || !opt.volume || !opt.hosts || opt.conns > 4000 || opt.files < 50) {
		fprintf(stderr, "usage: fs_calls -s ADDRESS[:PORT] -V VOLUME status|bulk|create|crowd [-b ADDRESS] [-h HOSTS] [-w IN_FLIGHT] "
				"[-t SECONDS] [-f FILES] [-c CONNS]\n");
		return 2;
	}
	opt.mode = argv[optind];
	uint32_t per_host = opt.window / opt.hosts ? opt.window / opt.hosts : 1;
	bool crowd = strcmp(opt.mode, "crowd") == 0;
	if (!crowd)
		opt.conns = (per_host + CHANNELS - 1) / CHANNELS;
	open_hosts();
	fids = zeroed(opt.files, sizeof(*fids));
	dirs = zeroed(opt.hosts + 1, sizeof(*dirs));

	/* directories: one for the files, one for each host */
	uint32_t all = opt.hosts;
	dirs_wanted = all + 1;
	opt.hosts = 1;
	start(J_MAKE_DIR, 1);
	opt.hosts = all;
	run(0, true);
	settle("directories");
	opt.dir_vnode = dirs[all][0];
	opt.dir_unique = dirs[all][1];
	if (strcmp(opt.mode, "create")) {
		opt.hosts = 1;
		start(J_MAKE, 1);
		run(0, true);
		opt.hosts = all;
		settle("files");
	}
	double took;
	if (!crowd) { /* first contact is not what is measured */
		start(J_CONNECT, 1);
		run(0, true);
		settle("connections");
	} else {
		start(J_WATCH, 1);
		took = run(0, true);
		settle("promises");
		finished("promises", took);
		start(J_CONNECT, 1);
		took = run(0, true);
		settle("connections");
		finished("connections", took);
		latencies_max = 8000000;
		latency = zeroed(latencies_max, sizeof(*latency));
		start(J_CROWD, 1);
		took = run(opt.seconds, false);
		settle("crowd");
		finished("crowd", took);
		return 0;
	}
	latencies_max = 8000000;
	latency = zeroed(latencies_max, sizeof(*latency));
	start(strcmp(opt.mode, "status") == 0 ? J_STATUS : strcmp(opt.mode, "bulk") == 0 ? J_BULK : J_CREATE, per_host);
	took = run(opt.seconds, false);
	settle(opt.mode);
	finished(opt.mode, took);
	return 0;
}
