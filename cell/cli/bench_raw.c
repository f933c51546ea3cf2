/* SPDX-License-Identifier: BSD-2-Clause
 *
 * UDP without Rx, in the shape that Rx has here: one process sends runs of datagrams filled from where
 * the content lies, another takes them with kernel-coalesced receives into kept buffers and copies them
 * out.  No acknowledgement, no order, no repair: what the machine allows, and what a protocol pays
 * beside that.  Counted is what arrived, from the first datagram to the last. */
#include "cell/cli/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { RUN_MAX = 65507, SOCKET_BUFFER = 8 << 20, BATCH = 8 };

static int open_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = SOCKET_BUFFER;
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)); /* as much as we may have */
	return fd;
}

/* --- the receiving side ------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_t thread;
	int fd, stop[2];
	bool runs;
	uint64_t bytes;
	mono_ns first, last;
} raw = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *receive(void *arg)
{
	static uint8_t room[BATCH][65536], to[65536];
	(void)arg;
	struct pollfd fds[2] = {{.fd = raw.fd, .events = POLLIN}, {.fd = raw.stop[0], .events = POLLIN}};
	memset(room, 1, sizeof(room));
	memset(to, 1, sizeof(to));
	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		int got;
		do {
			struct mmsghdr m[BATCH];
			struct iovec iov[BATCH];
			for (int i = 0; i < BATCH; i++) {
				iov[i] = (struct iovec){room[i], sizeof(room[i])};
				m[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
			}
			got = recvmmsg(raw.fd, m, BATCH, MSG_DONTWAIT, NULL);
			for (int i = 0; i < got; i++) {
				memcpy(to, room[i], m[i].msg_len);
				raw.bytes += m[i].msg_len;
			}
			if (got > 0) {
				raw.last = clk_mono();
				if (!raw.first)
					raw.first = raw.last;
			}
		} while (got > 0);
		if (fds[1].revents)
			break;
	}
	return NULL;
}

afs_err bench_raw_serve_begin(uint32_t segment, bool plain, uint32_t ip, uint16_t *port)
{
	uint64_t bytes, ns;
	bench_raw_serve_end(&bytes, &ns); /* of a client that went away */
	if (segment < 64 || segment > RUN_MAX)
		return AFS_EINVAL;
	pthread_mutex_lock(&raw.lock);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
	socklen_t len = sizeof(at);
	int one = 1;
	raw.bytes = 0;
	raw.first = raw.last = 0;
	raw.fd = open_socket();
	bool good = raw.fd >= 0 && pipe(raw.stop) == 0;
	good = good && bind(raw.fd, (struct sockaddr *)&at, len) == 0 &&
		getsockname(raw.fd, (struct sockaddr *)&at, &len) == 0;
	if (good && !plain)
		(void)setsockopt(raw.fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)); /* an older kernel is measured as it is */
	good = good && pthread_create(&raw.thread, NULL, receive, NULL) == 0;
	raw.runs = good;
	*port = ntohs(at.sin_port);
	pthread_mutex_unlock(&raw.lock);
	return good ? AFS_OK : AFS_EIO;
}

void bench_raw_serve_end(uint64_t *bytes, uint64_t *ns)
{
	*bytes = *ns = 0;
	pthread_mutex_lock(&raw.lock);
	if (raw.runs) {
		close(raw.stop[1]);
		pthread_join(raw.thread, NULL);
		close(raw.stop[0]);
		close(raw.fd);
		raw.runs = false;
		*bytes = raw.bytes;
		*ns = (uint64_t)(raw.last - raw.first);
	}
	pthread_mutex_unlock(&raw.lock);
}

/* --- the sending side --------------------------------------------------------------------------- */

static bool send_run(int fd, uint8_t *run, uint32_t segment, uint32_t n, bool plain)
{
	memcpy(run, bench_content, n);
	if (plain || n <= segment) {
		for (uint32_t at = 0; at < n; at += segment)
			if (send(fd, run + at, MIN(segment, n - at), 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
				return false;
		return true;
	}
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct iovec iov = {run, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	uint16_t size = (uint16_t)segment;
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	return sendmsg(fd, &m, 0) >= 0 || errno == ENOBUFS;
}

#define RPC_WANT_STUBS
#define RPC_PREFIX bench
#define RPC_ROWS "cell/cli/bench_rx.rpc"
#include "rx/xdr/iface_pass.h"

static afs_err measure(struct bench *b, struct rpc_conn *conn, uint32_t segment, struct bench_row *row)
{
	static uint8_t run[65536];
	struct bench_raw_begin_out begun;
	struct bench_raw_end_out ended;
	struct bench_usage_out before, after;
	bool plain = b->plain || b->single;
	TRY(bench_call_raw_begin(conn, &(struct bench_raw_begin_in){segment, plain}, &begun, NULL));
	CLEANUP(fd) int fd = open_socket();
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)begun.port),
		.sin_addr.s_addr = htonl(b->to.ip)};
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return AFS_EIO;
	TRY(bench_call_usage(conn, &(struct bench_usage_in){}, &before, NULL));
	struct bench_usage mine = bench_own_usage();
	uint32_t n = segment * MAX(RUN_MAX / segment, 1u);
	n = MIN(n, segment * 64);
	bool good = true;
	for (uint64_t left = b->size; left && good; left -= MIN(left, (uint64_t)n))
		good = send_run(fd, run, segment, n, plain);
	struct bench_usage used = bench_own_usage();
	usleep(50000); /* what is on its way arrives */
	TRY(bench_call_raw_end(conn, &(struct bench_raw_end_in){}, &ended, NULL));
	TRY(bench_call_usage(conn, &(struct bench_usage_in){}, &after, NULL));
	if (!good || !ended.bytes || !ended.ns)
		return AFS_EIO;
	row->units = (double)ended.bytes / 1e6;
	row->seconds = (double)ended.ns / 1e9;
	row->mine = (struct bench_usage){used.cpu_us - mine.cpu_us, used.switches - mine.switches};
	row->theirs = (struct bench_usage){after.cpu_us - before.cpu_us, after.switches - before.switches};
	row->theirs_known = true;
	return AFS_OK;
}

int bench_raw(struct bench *b, unsigned segment)
{
	struct bench_row row = {.level = "-", .bulk = true};
	snprintf(row.what, sizeof(row.what), "raw UDP %u", segment);
	struct rpc_conn *conn;
	struct rpc_conn_config config = {.peer = b->to, .iface = &bench_iface};
	afs_err err = rpc_conn_new(b->port, &config, &conn);
	if (err == AFS_OK) {
		err = measure(b, conn, segment, &row);
		rpc_conn_unref(conn);
	}
	if (err != AFS_OK)
		return cli_fail(b->c, "raw UDP: %s", afs_err_text(err));
	bench_report_add(b->report, &row);
	return CLI_OK;
}
