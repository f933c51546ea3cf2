/* SPDX-License-Identifier: BSD-2-Clause
 * Datagrams over the loopback, with the kernel's segmentation and without. */
#include "tests/lib/test.h"

#include "cell/base/clk.h"
#include "cell/base/mem.h"
#include "rx/io/holder.h"
#include "rx/io/udp.h"

#ifdef OLD_KERNEL
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOCALHOST = 0x7f000001, KEPT = 512 };

/* What came, kept as the endpoint would keep it. */
struct inbox {
	struct rx_datagram d[KEPT];
	unsigned n;
	bool keep;
	unsigned refused, too_big;
	struct rx_addr refused_peer;
};

static void on_datagram(void *ctx, const struct rx_datagram *in)
{
	struct inbox *box = ctx;
	assert_true(box->n < KEPT);
	box->d[box->n] = *in;
	if (box->keep)
		rx_buf_ref(in->buf);
	box->n++;
}

static void on_refused(void *ctx, struct rx_addr peer, bool too_big)
{
	struct inbox *box = ctx;
	box->refused++;
	box->too_big += too_big;
	box->refused_peer = peer;
}

static void inbox_clear(struct inbox *box)
{
	for (unsigned i = 0; i < box->n && box->keep; i++)
		rx_buf_unref(box->d[i].buf);
	box->n = 0;
}

static void receive(struct udp *u, struct inbox *box, unsigned want)
{
	mono_ns until = clk_mono() + SEC(5);
	while (box->n < want && clk_mono() < until) {
		struct pollfd p = {.fd = u->fd, .events = POLLIN};
		poll(&p, 1, 100);
		while (udp_receive(u, on_datagram, on_refused, box))
			continue;
	}
	assert_int_equal(box->n, want);
}

/* Built once more with OLD_KERNEL, this runs as on a kernel from before sendmmsg and UDP_SEGMENT: a filter
 * answers for the kernel. */
#ifdef OLD_KERNEL
static const bool new_kernel = false;

[[gnu::constructor]] static void grow_old(void)
{
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define SECOND BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]))
#define UNLESS(v, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (v), 0, (skip))
#define ANSWER(v) BPF_STMT(BPF_RET | BPF_K, (v))
	struct sock_filter rules[] = {
		NUMBER,
		UNLESS(SYS_sendmmsg, 1), ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
		UNLESS(SYS_recvmmsg, 1), ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
		UNLESS(SYS_setsockopt, 3),
		SECOND,
		UNLESS(IPPROTO_UDP, 1), ANSWER(SECCOMP_RET_ERRNO | ENOPROTOOPT),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_SIZE(rules), rules};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		printf("1..0 # SKIP this kernel filters no system calls\n");
		exit(0);
	}
}
#else
static const bool new_kernel = true;
#endif

struct pair {
	struct rx_buf_pool *pool;
	struct udp a, b;
};

static void pair_open(struct pair *p, bool plain_a, bool plain_b)
{
	p->pool = rx_buf_pool_new(64 << 20);
	struct udp_config config = {.ip = LOCALHOST, .max_datagram = 16376, .plain = plain_a, .pool = p->pool};
	assert_ok(udp_open(&p->a, &config));
	config.plain = plain_b;
	config.ip = 0;
	assert_ok(udp_open(&p->b, &config));
}

static void pair_close(struct pair *p)
{
	udp_close(&p->a);
	udp_close(&p->b);
	rx_buf_pool_free(p->pool);
}

/* `n` datagrams of these lengths, each with its number in every byte; the type octet says DATA. */
static void send_all(struct pair *p, const uint32_t *len, unsigned n, struct inbox *box)
{
	struct rx_datagram d[UDP_BATCH] = {0};
	for (unsigned i = 0; i < n; i++) {
		d[i] = (struct rx_datagram){.peer = {LOCALHOST, p->b.port}, .len = len[i], .off = 4};
		d[i].buf = rx_buf_get(p->pool, len[i] + 4);
		assert_non_null(d[i].buf);
		memset(d[i].buf->data + 4, (int)(i + 1), len[i]);
		if (len[i] > 20)
			d[i].buf->data[4 + 20] = 1;
	}
	udp_send(&p->a, d, n, on_refused, box);
	for (unsigned i = 0; i < n; i++)
		rx_buf_unref(d[i].buf);
}

static void expect_all(const struct inbox *box, const uint32_t *len, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *p = box->d[i].buf->data + box->d[i].off;
		assert_int_equal(box->d[i].len, len[i]);
		assert_int_equal(box->d[i].local_ip, LOCALHOST);
		for (uint32_t j = 0; j < len[i]; j++)
			if (j != 20 && p[j] != i + 1)
				fail_msg("datagram %u byte %u is %u", i, j, p[j]);
	}
}

static void datagrams_arrive_as_they_were_sent(void **state)
{
	(void)state;
	/* runs of one size, runs that end short, sizes that go up, tiny ones, the largest there is */
	static const uint32_t lens[][UDP_BATCH] = {
		{1444, 1444, 1444, 1444, 1444, 1444, 1444, 1444, 1444, 1444, 100},
		{16376, 16376, 16376, 16376, 16376, 16376, 16376, 16376, 3000},
		{100, 200, 300, 400, 1444, 16376},
		{60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60},
		{1, 28, 29, 28, 28, 28, 1},
		{8588, 8588, 8588, 8588, 65},
		{1444, 16376, 1444, 16376, 16376, 16376, 1444, 1444, 1444, 28},
	};
	for (int how = 0; how < 5; how++) {
		struct pair p;
		pair_open(&p, how & 1, how & 2);
		if (how == 4)
			p.a.many = p.b.many = false; /* as udp_config.single says */
		assert_int_equal(p.a.gso, new_kernel && !(how & 1));
		assert_int_equal(p.b.gro, new_kernel && !(how & 2));
		/* again and again, so that the layout of buffers follows what comes */
		for (unsigned round = 0; round < 20; round++) {
			for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
				struct inbox box = {.keep = true};
				unsigned n = 0;
				while (n < UDP_BATCH && lens[i][n])
					n++;
				send_all(&p, lens[i], n, &box);
				receive(&p.b, &box, n);
				expect_all(&box, lens[i], n);
				assert_int_equal(box.refused, 0);
				inbox_clear(&box);
			}
		}
		assert_int_equal(p.a.many, new_kernel && how < 4);
		assert_int_equal(p.b.many, new_kernel && how < 4);
		pair_close(&p);
	}
}

#ifndef OLD_KERNEL
static void a_run_of_one_size_is_one_message_and_lands_in_buffers_of_its_own(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false);
	uint32_t lens[44];
	for (unsigned i = 0; i < 44; i++)
		lens[i] = 1444;
	struct inbox box = {.keep = true};
	for (unsigned round = 0; round < 20; round++) {
		uint64_t sent = p.a.messages_out, copied = p.b.copied;
		send_all(&p, lens, 44, &box);
		receive(&p.b, &box, 44);
		expect_all(&box, lens, 44);
		inbox_clear(&box);
		assert_int_equal(p.a.messages_out - sent, 1);
		if (round > 10)
			assert_int_equal(p.b.copied, copied);
	}
	pair_close(&p);
}

#endif

static void what_is_not_kept_needs_no_new_buffer(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false);
	uint32_t lens[4] = {16376, 16376, 16376, 16376};
	struct inbox box = {.keep = false};
	struct rx_buf_pool_stats before, after;
	for (unsigned round = 0; round < 50; round++) {
		send_all(&p, lens, 4, &box);
		receive(&p.b, &box, 4);
		inbox_clear(&box);
		rx_buf_pool_stats(p.pool, round == 10 ? &before : &after);
	}
	assert_int_equal(before.allocated_bytes, after.allocated_bytes);
	pair_close(&p);
}

static void a_full_pool_loses_datagrams_and_recovers(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false);
	struct rx_buf *hog[4000];
	unsigned n = 0;
	uint32_t lens[3] = {1444, 1444, 1444};
	struct rx_datagram d[3];
	for (unsigned i = 0; i < 3; i++) {
		d[i] = (struct rx_datagram){.peer = {LOCALHOST, p.b.port}, .len = lens[i]};
		d[i].buf = rx_buf_get(p.pool, 1444);
		memset(d[i].buf->data, (int)i + 1, 1444);
		d[i].buf->data[20] = 1;
	}
	while (n < ARRAY_SIZE(hog) && (hog[n] = rx_buf_get(p.pool, 18000)))
		n++;
	struct inbox box = {.keep = true};
	udp_send(&p.a, d, 3, on_refused, &box);
	struct pollfd fd = {.fd = p.b.fd, .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 1000), 1);
	assert_false(udp_receive(&p.b, on_datagram, on_refused, &box));
	assert_int_equal(box.n, 0);
	assert_true(p.b.dropped > 0);
	assert_int_equal(poll(&fd, 1, 0), 0); /* and does not spin on what it cannot take */
	while (n)
		rx_buf_unref(hog[--n]);
	udp_send(&p.a, d, 3, on_refused, &box);
	receive(&p.b, &box, 3);
	expect_all(&box, lens, 3);
	inbox_clear(&box);
	for (unsigned i = 0; i < 3; i++)
		rx_buf_unref(d[i].buf);
	pair_close(&p);
}

static void a_port_where_nobody_listens_is_reported(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false);
	uint16_t gone = p.b.port;
	udp_close(&p.b);
	struct inbox box = {0};
	uint32_t lens[2] = {100, 100};
	p.b.port = gone;
	send_all(&p, lens, 2, &box);
	for (int i = 0; i < 100 && !box.refused; i++) {
		struct pollfd fd = {.fd = p.a.fd, .events = POLLIN};
		poll(&fd, 1, 20);
		udp_receive(&p.a, on_datagram, on_refused, &box);
	}
	assert_true(box.refused >= 1);
	assert_int_equal(box.too_big, 0);
	assert_int_equal(box.refused_peer.port, gone);
	assert_int_equal(box.refused_peer.ip, LOCALHOST);
	/* the error was not the next datagram's: it goes */
	struct udp_config config = {.ip = LOCALHOST, .max_datagram = 16376, .pool = p.pool};
	assert_ok(udp_open(&p.b, &config));
	box = (struct inbox){.keep = true};
	send_all(&p, lens, 2, &box);
	receive(&p.b, &box, 2);
	inbox_clear(&box);
	pair_close(&p);
}

static void a_datagram_that_is_too_big_is_reported_and_the_others_go(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false);
	struct inbox box = {.keep = true};
	/* 65508 octets are one more than UDP over IPv4 carries */
	uint32_t lens[3] = {500, 65508, 400};
	send_all(&p, lens, 3, &box);
	assert_int_equal(box.refused, 1);
	assert_int_equal(box.too_big, 1);
	assert_int_equal(box.refused_peer.port, p.b.port);
	receive(&p.b, &box, 2);
	assert_int_equal(box.d[0].len, 500);
	assert_int_equal(box.d[1].len, 400);
	inbox_clear(&box);
	pair_close(&p);
}

static void an_answer_leaves_from_the_address_asked(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false); /* b listens on every address */
	struct inbox box = {.keep = true};
	struct rx_buf *buf = rx_buf_get(p.pool, 100);
	memset(buf->data, 1, 100);
	struct rx_datagram d = {.peer = {LOCALHOST + 4, p.b.port}, .buf = buf, .len = 100};
	udp_send(&p.a, &d, 1, on_refused, &box);
	receive(&p.b, &box, 1);
	assert_int_equal(box.d[0].local_ip, LOCALHOST + 4);
	struct rx_datagram answer[3];
	for (int i = 0; i < 3; i++)
		answer[i] = (struct rx_datagram){
			.peer = box.d[0].peer, .local_ip = box.d[0].local_ip, .buf = buf, .len = 100};
	inbox_clear(&box);
	udp_send(&p.b, answer, 3, on_refused, &box); /* as one run, too */
	receive(&p.a, &box, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(box.d[i].peer.ip, LOCALHOST + 4);
		assert_int_equal(box.d[i].peer.port, p.b.port);
	}
	inbox_clear(&box);
	rx_buf_unref(buf);
	pair_close(&p);
}

static void a_probe_goes_whole_or_not_at_all(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false);
	struct inbox box = {.keep = true};
	struct rx_buf *buf = rx_buf_get(p.pool, 9000);
	memset(buf->data, 1, 9000);
	struct rx_datagram d = {.peer = {LOCALHOST, p.b.port}, .buf = buf, .len = 9000, .probe = true};
	udp_send(&p.a, &d, 1, on_refused, &box);
	receive(&p.b, &box, 1);
	assert_int_equal(box.d[0].len, 9000);
	inbox_clear(&box);
	rx_buf_unref(buf);
	pair_close(&p);
}

/* In a network of its own whose interface carries 1500 octets. */
static void a_probe_that_the_interface_refuses_is_reported_and_leaves_the_socket_quiet(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET) < 0)
		skip(); /* needs root */
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {.ifr_name = "lo", .ifr_mtu = 1500};
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &req), 0);
	req = (struct ifreq){.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
	struct pair p;
	pair_open(&p, false, false);
	struct inbox box = {.keep = true};
	struct rx_buf *buf = rx_buf_get(p.pool, 9000);
	struct rx_datagram d = {.peer = {LOCALHOST, p.b.port}, .buf = buf, .len = 9000, .probe = true};
	udp_send(&p.a, &d, 1, on_refused, &box);
	assert_int_equal(box.refused, 1);
	assert_true(box.too_big);
	struct pollfd fds = {.fd = p.a.fd, .events = POLLIN};
	assert_int_equal(poll(&fds, 1, 0), 0);
	/* an error that comes by itself, of a datagram sent without a probe's care */
	int probe = IP_PMTUDISC_PROBE;
	assert_int_equal(setsockopt(p.a.fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)), 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(p.b.port),
		.sin_addr.s_addr = htonl(LOCALHOST)};
	assert_int_equal(sendto(p.a.fd, buf->data, 9000, 0, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(poll(&fds, 1, 0), 1);
	assert_false(udp_receive(&p.a, on_datagram, on_refused, &box));
	assert_int_equal(box.refused, 2);
	assert_int_equal(poll(&fds, 1, 0), 0);
	rx_buf_unref(buf);
	pair_close(&p);
}

#ifndef OLD_KERNEL
static void the_holder_of_a_port_is_named(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, false, false);
	char got[100], want[100];
	snprintf(want, sizeof(want), "process %d (test_udp)", (int)getpid());
	assert_string_equal(udp_port_holder(p.b.port, got, sizeof(got)), want);
	uint16_t gone = p.b.port;
	udp_close(&p.b);
	assert_string_equal(udp_port_holder(gone, got, sizeof(got)), "another process");
	pair_close(&p);
}

TEST_MAIN(T(the_holder_of_a_port_is_named), T(datagrams_arrive_as_they_were_sent),
	T(a_run_of_one_size_is_one_message_and_lands_in_buffers_of_its_own),
	T(what_is_not_kept_needs_no_new_buffer), T(a_full_pool_loses_datagrams_and_recovers),
	T(a_port_where_nobody_listens_is_reported), T(a_datagram_that_is_too_big_is_reported_and_the_others_go),
	T(an_answer_leaves_from_the_address_asked), T(a_probe_goes_whole_or_not_at_all),
	T(a_probe_that_the_interface_refuses_is_reported_and_leaves_the_socket_quiet))
#else
TEST_MAIN(T(datagrams_arrive_as_they_were_sent), T(what_is_not_kept_needs_no_new_buffer),
	T(a_full_pool_loses_datagrams_and_recovers), T(a_port_where_nobody_listens_is_reported),
	T(a_datagram_that_is_too_big_is_reported_and_the_others_go), T(an_answer_leaves_from_the_address_asked),
	T(a_probe_goes_whole_or_not_at_all), T(a_probe_that_the_interface_refuses_is_reported_and_leaves_the_socket_quiet))
#endif
