/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls against location and protection servers, ours or any other's.
 *
 *   db_calls -s ADDRESS [-c CELL -k KEYTAB] MODE [-n VOLUMES] [-u USERS] [-w IN_FLIGHT] [-t SECONDS] [-C CONNS]
 *
 *   fill      make VOLUMES entries (bench.N) and USERS users (bencherN); every thousandth user is in five
 *             groups, and anybody may ask for them.  What is there already is passed over.  Needs the key.
 *   name      VL GetEntryByNameU of random volumes
 *   id        PR NameToID of random users
 *   cps       PR GetCPS of users in groups
 *   volumes   VL ListAttributesN2 of all volumes; users: PR ListEntries of all users.  Need the key.
 *   writes    CreateEntryN and DeleteEntry, NewEntry and Delete, over CONNS connections.  Needs the key.
 *
 * Small calls are packets written by hand on one thread, CONNS connections with IN_FLIGHT calls each, so
 * that the generator costs a fraction of the server.  Prints one JSON object. */
#include "cell/base/rand.h"
#include "cell/base/text.h"
#include "cell/keys/keys.h"
#include "cell/proto/pt.h"
#include "cell/proto/vl.h"
#include "rx/io/port.h"
#include "rx/rpc/rpc.h"

#define RPC_WANT_STUBS
#define RPC_PREFIX pt
#define RPC_ROWS "cell/proto/pt.rpc"
#include "rx/xdr/iface_pass.h"
#define RPC_WANT_STUBS
#define RPC_PREFIX vl
#define RPC_ROWS "cell/proto/vl.rpc"
#include "rx/xdr/iface_pass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GROUPS = 5, EVERY = 1000, FIRST_ID = 536900000, FIRST_USER = 100000, CHANNELS = 4, CONNS_MAX = 64, BURST = 64, PACKET = 1444 };
enum { HEADER = 28, DATA = 1, ACK = 2, ABORT = 4, CLIENT = 1, LAST = 4, PING = 6, PONG = 7 }; /* of Rx */

static struct {
	uint32_t ip, volumes, users, window, conns;
	double seconds;
	const char *mode, *cell, *keytab;
} opt = {.volumes = 20000, .users = 50000, .window = 4, .conns = 8, .seconds = 3};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "db_calls: %s: %s\n", what, why);
	exit(1);
}
static double seconds(void) { return (double)clk_mono() / 1e9; }

/* --- calls through our own client ------------------------------------------------------------------ */

static struct rpc_port *port;
static struct keys *keys;

static struct rpc_conn *connect_to(const struct rpc_iface *iface, uint16_t number)
{
	struct rpc_conn *conn;
	struct rpc_conn_config c = {.peer = {opt.ip, number}, .iface = iface, .dead_ns = SEC(60)};
	CLEANUP(keys_token) struct keys_token token = {};
	if (!port) {
		struct rx_buf_pool *pool = rx_buf_pool_new(256 << 20);
		const struct rpc_port_config pc = {.name = "db_calls", .pool = pool};
		afs_err err = pool ? rpc_port_open(&pc, &port) : AFS_ENOMEM;
		if (err)
			die("port", afs_err_text(err));
	}
	if (opt.keytab) {
		const struct keys_config kc = {.cell = opt.cell, .keytab = opt.keytab};
		afs_err err = keys ? AFS_OK : keys_open(&kc, &keys, NULL);
		if (!err)
			err = keys_localauth(keys, &token);
		if (err)
			die(opt.keytab, afs_err_text(err));
		c.sec = rxkad_client_new(&token.kad, RX_LEVEL_CLEAR);
	}
	afs_err err = rpc_conn_new(port, &c, &conn);
	if (err)
		die("connection", afs_err_text(err));
	return conn;
}

/* A call that may find its work done already. */
#define CALL(conn, fn, in, out, arena_, passed)                                                            \
	do {                                                                                               \
		struct rpc_result res_ = {.arena = (arena_)};                                              \
		afs_err err_ = fn(conn, in, out, &res_);                                                   \
		if (err_ == AFS_EAGAIN || res_.code == 5376) { /* no quorum yet */                         \
			sleep(1);                                                                          \
			err_ = fn(conn, in, out, &res_);                                                   \
		}                                                                                          \
		if (err_ && !(passed && (err_ == AFS_EIDEXIST || err_ == AFS_EVOLEXISTS || err_ == AFS_ENAMEEXIST))) \
			die(#fn, afs_err_text(err_));                                                      \
	} while (0)

static void make_volume(struct rpc_conn *vl, uint32_t i)
{
	struct vl_create_entry_n_in in = {.entry = {.nServers = 1, .flags = 0x1000}};
	struct vl_create_entry_n_out out;
	snprintf(in.entry.name, sizeof(in.entry.name), "bench.%u", i);
	in.entry.serverNumber[0] = 0x0a0a0a0a;
	in.entry.serverFlags[0] = 4;
	for (uint32_t k = 0; k < 3; k++)
		in.entry.volumeId[k] = FIRST_ID + 3 * i + k;
	CALL(vl, vl_call_create_entry_n, &in, &out, NULL, true);
}

static void make_user(struct rpc_conn *pt, const char *name, int32_t id)
{
	const struct pt_inew_entry_in in = {.name = XDR_STR_OF(name), .id = id};
	struct pt_inew_entry_out out;
	CALL(pt, pt_call_inew_entry, &in, &out, NULL, true);
}

struct fill {
	uint32_t from, step;
	bool users;
};

static void *fill_part(void *arg)
{
	const struct fill *f = arg;
	struct rpc_conn *c = connect_to(f->users ? &pt_iface : &vl_iface, f->users ? 7002 : 7003);
	char name[64];
	for (uint32_t i = f->from; i < (f->users ? opt.users : opt.volumes); i += f->step) {
		snprintf(name, sizeof(name), "bencher%u", i);
		if (f->users)
			make_user(c, name, (int32_t)(FIRST_USER + i));
		else
			make_volume(c, i);
	}
	rpc_conn_unref(c);
	return NULL;
}

static double in_threads(uint32_t n, void *(*fn)(void *), struct fill *part, bool users)
{
	pthread_t t[CONNS_MAX];
	const double began = seconds();
	for (uint32_t i = 0; i < n; i++) {
		part[i] = (struct fill){i, n, users};
		if (pthread_create(&t[i], NULL, fn, &part[i]) != 0)
			die("thread", strerror(errno));
	}
	for (uint32_t i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	return seconds() - began;
}

static void fill(void)
{
	struct fill part[CONNS_MAX];
	rpc_conn_unref(connect_to(&vl_iface, 7003)); /* the port and the keys, before there are threads */
	const double volumes = in_threads(opt.conns, fill_part, part, false);
	const double users = in_threads(opt.conns, fill_part, part, true);
	struct rpc_conn *pt = connect_to(&pt_iface, 7002);
	for (int32_t g = 0; g < GROUPS; g++) {
		char name[64];
		snprintf(name, sizeof(name), "system:bench%d", g);
		make_user(pt, name, -(FIRST_USER + g));
		for (uint32_t u = 0; u < opt.users; u += EVERY) {
			const struct pt_add_to_group_in in = {(int32_t)(FIRST_USER + u), -(FIRST_USER + g)};
			struct pt_add_to_group_out out;
			const struct pt_set_fields_entry_in open = {.id = in.id, .mask = 0xff, .flags = PTP_STATUS_ANY | PTP_OWNED_ANY | PTP_MEMBER_ANY};
			struct pt_set_fields_entry_out done;
			CALL(pt, pt_call_add_to_group, &in, &out, NULL, true);
			CALL(pt, pt_call_set_fields_entry, &open, &done, NULL, false);
		}
	}
	printf("{\"volumes_per_s\": %.1f, \"users_per_s\": %.1f}\n", opt.volumes / volumes, opt.users / users);
}

static void list_volumes(void)
{
	struct rpc_conn *vl = connect_to(&vl_iface, 7003);
	const double began = seconds();
	uint32_t found = 0;
	for (int32_t next = 0; next != -1;) {
		struct arena arena;
		arena_init(&arena, 64 << 20);
		const struct vl_list_attributes_n2_in in = {.startindex = next};
		struct vl_list_attributes_n2_out out;
		CALL(vl, vl_call_list_attributes_n2, &in, &out, &arena, false);
		found += out.blkentries.n;
		next = out.nextstartindex;
		arena_fini(&arena);
	}
	printf("{\"entries\": %u, \"seconds\": %.4f}\n", found, seconds() - began);
}

static void list_users(void)
{
	struct rpc_conn *pt = connect_to(&pt_iface, 7002);
	const double began = seconds();
	uint32_t found = 0;
	for (int32_t next = 0; next != -1;) {
		struct arena arena;
		arena_init(&arena, 64 << 20);
		const struct pt_list_entries_in in = {PT_LIST_USERS, next};
		struct pt_list_entries_out out;
		CALL(pt, pt_call_list_entries, &in, &out, &arena, false);
		found += out.bulkentries.n;
		next = out.nextstartindex;
		arena_fini(&arena);
	}
	printf("{\"entries\": %u, \"seconds\": %.4f}\n", found, seconds() - began);
}

enum { WRITES = 500 };
static void *write_part(void *arg)
{
	const struct fill *f = arg;
	struct rpc_conn *vl = f->users ? NULL : connect_to(&vl_iface, 7003), *pt = f->users ? connect_to(&pt_iface, 7002) : NULL;
	char name[64];
	for (uint32_t i = 0; i < WRITES; i++) {
		const uint32_t n = 10000000 + f->from * WRITES + i;
		snprintf(name, sizeof(name), "bencher%u", n);
		if (f->users)
			make_user(pt, name, (int32_t)n);
		else
			make_volume(vl, n);
	}
	for (uint32_t i = 0; i < WRITES; i++) {
		const uint32_t n = 10000000 + f->from * WRITES + i;
		const struct vl_delete_entry_in volume = {.Volid = FIRST_ID + 3 * n, .voltype = -1};
		const struct pt_delete_in user = {.id = (int32_t)n};
		struct vl_delete_entry_out vout;
		struct pt_delete_out pout;
		if (f->users)
			CALL(pt, pt_call_delete, &user, &pout, NULL, false);
		else
			CALL(vl, vl_call_delete_entry, &volume, &vout, NULL, false);
	}
	if (vl)
		rpc_conn_unref(vl);
	if (pt)
		rpc_conn_unref(pt);
	return NULL;
}

static void writes(void)
{
	struct fill part[CONNS_MAX];
	rpc_conn_unref(connect_to(&vl_iface, 7003));
	const double volumes = in_threads(opt.conns, write_part, part, false), users = in_threads(opt.conns, write_part, part, true);
	printf("{\"vl_writes_per_s\": %.1f, \"pt_writes_per_s\": %.1f}\n", 2.0 * WRITES * opt.conns / volumes,
		2.0 * WRITES * opt.conns / users);
}

/* --- small calls: packets by hand ----------------------------------------------------------------- */

static struct {
	uint8_t bytes[BURST][PACKET];
	struct iovec iov[BURST];
	unsigned n;
} out;
static int sock;
static uint32_t epoch, serial, numbers[CONNS_MAX][CHANNELS];
static mono_ns asked_at[CONNS_MAX][CHANNELS];
static uint64_t done, failed, again;

/* What is in the burst and of one length leaves in one message that the kernel cuts. */
static void flush(void)
{
	for (unsigned at = 0, end; at < out.n; at = end) {
		for (end = at + 1; end < out.n && out.iov[end].iov_len == out.iov[at].iov_len && end - at < 40; end++)
			;
		struct msghdr m = {.msg_iov = &out.iov[at], .msg_iovlen = end - at};
		char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
		if (end - at > 1) {
			m.msg_control = control;
			m.msg_controllen = sizeof(control);
			struct cmsghdr *c = CMSG_FIRSTHDR(&m);
			c->cmsg_level = SOL_UDP;
			c->cmsg_type = UDP_SEGMENT;
			c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
			*(uint16_t *)CMSG_DATA(c) = (uint16_t)out.iov[at].iov_len;
		}
		if (sendmsg(sock, &m, 0) < 0 && errno != EAGAIN && errno != ECONNREFUSED)
			die("send", strerror(errno));
	}
	out.n = 0;
}

static uint32_t pick(uint32_t below)
{
	static uint64_t state = 88172645463325252;
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (uint32_t)((state >> 20) % below);
}

static size_t request(uint8_t *p)
{
	char name[65] = "";
	if (strcmp(opt.mode, "name") == 0) {
		const size_t n = (size_t)snprintf(name, sizeof(name), "bench.%u", pick(opt.volumes));
		be32_put(p, 527);
		be32_put(p + 4, (uint32_t)n);
		memset(p + 8, 0, 12);
		memcpy(p + 8, name, n);
		return 8 + (n + 3) / 4 * 4;
	}
	if (strcmp(opt.mode, "id") == 0) {
		snprintf(name, sizeof(name), "bencher%u", pick(opt.users));
		be32_put(p, 504);
		be32_put(p + 4, 1);
		for (int i = 0; i < 64; i++)
			be32_put(p + 8 + 4 * i, (uint8_t)name[i]);
		return 8 + 256;
	}
	be32_put(p, 508);
	be32_put(p + 4, FIRST_USER + pick((opt.users + EVERY - 1) / EVERY) * EVERY);
	return 8;
}

static void ask(uint32_t conn, uint32_t channel, bool repeat)
{
	const bool vl = strcmp(opt.mode, "name") == 0;
	uint8_t *p = out.bytes[out.n];
	numbers[conn][channel] += !repeat;
	be32_put(p, epoch);
	be32_put(p + 4, (conn + 1) << 2 | channel);
	be32_put(p + 8, numbers[conn][channel]);
	be32_put(p + 12, 1);
	be32_put(p + 16, ++serial);
	p[20] = DATA, p[21] = CLIENT | LAST, p[22] = p[23] = 0;
	be16_put(p + 24, 0);
	be16_put(p + 26, vl ? VL_SERVICE : PT_SERVICE);
	out.iov[out.n] = (struct iovec){p, HEADER + request(p + HEADER)};
	asked_at[conn][channel] = clk_mono();
	if (++out.n == BURST)
		flush();
}

/* A server may first want to know that we are where we say. */
static void pong(const uint8_t *ping, uint32_t len)
{
	uint8_t *p = out.bytes[out.n];
	if (len < HEADER + 18 || ping[HEADER + 16] != PING)
		return;
	memcpy(p, ping, HEADER);
	memset(p + HEADER, 0, 18 + 3 + 16);
	be32_put(p + 12, 0);
	be32_put(p + 16, ++serial);
	p[21] = CLIENT;
	be32_put(p + HEADER + 4, 1);
	be32_put(p + HEADER + 12, be32_get(ping + 16));
	p[HEADER + 16] = PONG;
	static const uint32_t trailer[4] = {PACKET, PACKET, 32, 1};
	for (int i = 0; i < 4; i++)
		be32_put(p + HEADER + 21 + 4 * i, trailer[i]);
	out.iov[out.n] = (struct iovec){p, HEADER + 18 + 3 + 16};
	if (++out.n == BURST)
		flush();
}

static void small(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(strcmp(opt.mode, "name") == 0 ? 7003 : 7002), .sin_addr.s_addr = htonl(opt.ip)};
	int space = 4 << 20;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("socket", strerror(errno));
	setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &space, sizeof(space));
	epoch = rand_u32() | 0x80000000;
	for (uint32_t c = 0; c < opt.conns; c++)
		for (uint32_t i = 0; i < opt.window; i++)
			ask(c, i, false);
	flush();
	static uint8_t in[BURST][2048];
	struct mmsghdr m[BURST] = {};
	struct iovec iov[BURST];
	for (int i = 0; i < BURST; i++) {
		iov[i] = (struct iovec){in[i], sizeof(in[i])};
		m[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
	const double began = seconds();
	mono_ns looked = clk_mono();
	while (seconds() - began < opt.seconds) {
		struct pollfd p = {.fd = sock, .events = POLLIN};
		if (poll(&p, 1, 50) > 0) {
			int n = recvmmsg(sock, m, BURST, MSG_DONTWAIT, NULL);
			for (int i = 0; i < n; i++) {
				const uint8_t *b = in[i];
				const uint32_t conn = (be32_get(b + 4) >> 2) - 1, channel = be32_get(b + 4) & 3;
				if (m[i].msg_len >= HEADER && b[20] == ACK)
					pong(b, m[i].msg_len);
				if (m[i].msg_len < HEADER || conn >= opt.conns || channel >= opt.window || be32_get(b + 8) != numbers[conn][channel])
					continue;
				if (b[20] == DATA && b[21] & LAST)
					done++;
				else if (b[20] == ABORT)
					failed++;
				else
					continue;
				ask(conn, channel, false);
			}
			flush();
		}
		const mono_ns now = clk_mono();
		if (now - looked < MSEC(200))
			continue;
		looked = now;
		for (uint32_t c = 0; c < opt.conns; c++)
			for (uint32_t i = 0; i < opt.window; i++)
				if (now - asked_at[c][i] > MSEC(400)) {
					again++;
					ask(c, i, true);
				}
		flush();
	}
	printf("{\"calls\": %llu, \"per_s\": %.1f, \"failed\": %llu, \"resent\": %llu}\n", (unsigned long long)done,
		(double)done / (seconds() - began), (unsigned long long)failed, (unsigned long long)again);
}

int main(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "s:c:k:n:u:w:t:C:")) != -1;) {
		struct in_addr a;
		switch (c) {
		case 's':
			if (inet_pton(AF_INET, optarg, &a) != 1)
				die(optarg, "no address");
			opt.ip = ntohl(a.s_addr);
			break;
		case 'c': opt.cell = optarg; break;
		case 'k': opt.keytab = optarg; break;
		case 'n': opt.volumes = (uint32_t)atoi(optarg); break;
		case 'u': opt.users = (uint32_t)atoi(optarg); break;
		case 'w': opt.window = MIN((uint32_t)atoi(optarg), (uint32_t)CHANNELS); break;
		case 't': opt.seconds = atof(optarg); break;
		case 'C': opt.conns = MIN((uint32_t)atoi(optarg), (uint32_t)CONNS_MAX); break;
		default: return 2;
		}
	}
	opt.mode = optind < argc ? argv[optind] : "";
	static const struct {
		const char *mode;
		void (*fn)(void);
	} modes[] = {{"fill", fill}, {"name", small}, {"id", small}, {"cps", small}, {"volumes", list_volumes}, {"users", list_users}, {"writes", writes}};
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (strcmp(opt.mode, modes[i].mode) == 0) {
			modes[i].fn();
			fflush(stdout);
			_exit(0); /* the port's threads need no farewell */
		}
	fputs("db_calls: fill, name, id, cps, volumes, users or writes?\n", stderr);
	return 2;
}
