/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxdebug: what an Rx port of any AFS program says of itself, in the words of the stock tool.  One question, one
 * datagram; an answer is matched by its call number and asked for again after 1, 2, 4, 8 and 16 s.  A server of
 * ours tells strangers their own connections only.  Source: protocol rx.md §15. */
#include "cell/cli/debug.h"

#include "cell/base/mem.h"
#include "cell/base/text.h"
#include "cell/cli/handlers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	HEADER = 28, BODY_MAX = 1500 - HEADER, TRIES = 5, LIST_MAX_ = 100000,
	DEBUG = 8, VERSION_TYPE = 13, CLIENT_LAST = 5,
	GETSTATS = 1, GETCONN = 2, GETALLCONN = 3, RXSTATS = 4, GETPEER = 5,
	CONN_BYTES = 140, PEER_BYTES = 92, RXSTATS_WORDS = 67,
};

static uint32_t get32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

/* --- where -------------------------------------------------------------------------------------- */

int debug_where(struct cli *c, const char *host, const char *service, uint32_t *ip, uint16_t *port)
{
	static const struct {
		const char *name, *stock;
		uint16_t port;
	} services[] = {{"fileserver", "afs3-fileserver", 7000}, {"callback", "afs3-callback", 7001}, {"ptserver", "afs3-prserver", 7002},
		{"vlserver", "afs3-vlserver", 7003}, {"kaserver", "afs3-kaserver", 7004}, {"volserver", "afs3-volser", 7005},
		{"bosserver", "afs3-bos", 7007}, {"buserver", "afs3-buserver", 7021}};
	int64_t n;
	if (service && text_int(service, &n)) {
		if (n < 1 || n > 65535)
			return cli_misuse(c, "-port %s: expected a port from 1 to 65535", service);
		*port = (uint16_t)n;
	} else if (service) {
		size_t i = 0;
		while (i < ARRAY_SIZE(services) && strcmp(services[i].name, service) != 0 && strcmp(services[i].stock, service) != 0)
			i++;
		if (i == ARRAY_SIZE(services))
			return cli_fail(c, "can't resolve port name %s", service);
		*port = services[i].port;
	}
	struct addrinfo hint = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *list = NULL;
	if (getaddrinfo(host, NULL, &hint, &list) != 0)
		return cli_fail(c, "host %s not found in host table", host);
	struct sockaddr_in sin;
	memcpy(&sin, list->ai_addr, sizeof(sin));
	freeaddrinfo(list);
	*ip = ntohl(sin.sin_addr.s_addr);
	return CLI_OK;
}

/* --- questions ----------------------------------------------------------------------------------- */

struct asker {
	struct cli *c;
	int fd;
	uint32_t call;
	uint8_t body[BODY_MAX];
	size_t len;
};

static void asker_cleanup(struct asker *a)
{
	if (a->fd >= 0)
		close(a->fd);
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The answer to question `call`, if one comes in time. */
static bool receive(struct asker *a, uint8_t type, int wait_ms)
{
	uint8_t in[HEADER + BODY_MAX];
	for (int64_t end = now_ms() + wait_ms, left; (left = end - now_ms()) > 0;) {
		struct pollfd p = {.fd = a->fd, .events = POLLIN};
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		ssize_t n = recv(a->fd, in, sizeof(in), 0);
		if (n < HEADER || get32(in + 8) != a->call || in[20] != type || (in[21] & 1))
			continue; /* another one's, or late */
		a->len = (size_t)n - HEADER;
		memcpy(a->body, in + HEADER, a->len);
		return true;
	}
	return false;
}

static bool ask_times(struct asker *a, uint8_t type, uint32_t kind, uint32_t index, int tries)
{
	uint8_t out[HEADER + 8] = {0, 0, 3, 0xe7};
	const uint32_t words[] = {htonl(kind), htonl(index)};
	uint32_t call = htonl(++a->call);
	memcpy(out + 8, &call, 4);
	out[20] = type;
	out[21] = CLIENT_LAST;
	if (type == DEBUG)
		memcpy(out + HEADER, words, sizeof(words));
	size_t len = type == DEBUG ? sizeof(out) : HEADER + 1;
	for (int i = 0; i < tries; i++)
		if (send(a->fd, out, len, 0) == (ssize_t)len && receive(a, type, 1000 << i))
			return true;
	return false;
}

static bool ask(struct asker *a, uint8_t type, uint32_t kind, uint32_t index) { return ask_times(a, type, kind, index, TRIES); }

static bool open_asker(struct asker *a, uint32_t ip, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
	a->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return a->fd >= 0 && connect(a->fd, (const struct sockaddr *)&sin, sizeof(sin)) == 0;
}

bool debug_answers(uint32_t ip, uint16_t port)
{
	CLEANUP(asker) struct asker a = {.fd = -1, .call = 100};
	return open_asker(&a, ip, port) && ask_times(&a, VERSION_TYPE, 0, 0, 3);
}

/* --- answers ------------------------------------------------------------------------------------- */

bool debug_read_conn(const uint8_t *p, size_t n, struct debug_conn *o)
{
	if (n < CONN_BYTES || get32(p + 4) == 0xffffffff)
		return false;
	*o = (struct debug_conn){.ip = get32(p), .cid = get32(p + 4), .serial = get32(p + 8), .error = get32(p + 28), .port = get16(p + 32),
		.flags = p[34], .type = p[35], .security = p[36], .sec_type = p[56], .sec_level = p[57], .sec_flags = get32(p + 68),
		.expires = get32(p + 72), .packets_in = get32(p + 76), .packets_out = get32(p + 80), .bytes_in = get32(p + 84),
		.bytes_out = get32(p + 88), .epoch = get32(p + 132), .mtu = get32(p + 136)};
	for (int i = 0; i < 4; i++) {
		o->call[i] = get32(p + 12 + 4 * i);
		o->state[i] = p[40 + i];
		o->mode[i] = p[44 + i];
		o->call_flags[i] = p[48 + i];
		o->other[i] = p[52 + i];
	}
	return true;
}

bool debug_read_peer(const uint8_t *p, size_t n, struct debug_peer *o)
{
	if (n < PEER_BYTES || get32(p) == 0xffffffff)
		return false;
	*o = (struct debug_peer){.ip = get32(p), .port = get16(p + 4), .if_mtu = get16(p + 6), .rtt_ms = get32(p + 24) / 8,
		.dev_ms = get32(p + 28) / 4, .timeout_s = get32(p + 32), .timeout_us = get32(p + 36), .sent = get32(p + 40),
		.resent = get32(p + 44), .in_skew = get32(p + 48), .out_skew = get32(p + 52), .nat_mtu = get16(p + 60), .max_mtu = get16(p + 62),
		.max_grams = get16(p + 64), .if_grams = get16(p + 66), .mtu = get16(p + 68), .window = get16(p + 70), .grams = get16(p + 72),
		.out_hi = get32(p + 76), .out_lo = get32(p + 80), .in_hi = get32(p + 84), .in_lo = get32(p + 88)};
	return true;
}

/* --- connections --------------------------------------------------------------------------------- */

struct filter {
	uint32_t ip;   /* 0: any */
	uint16_t port; /* 0: any */
	int level;     /* -1: any; 0 none, 1 clear, 2 auth, 3 crypt */
	bool servers, clients, no_dally;
};

static const char *name_of(const char *const *names, size_t n, unsigned i) { return i < n ? names[i] : "unknown"; }
#define NAME_OF(names, i) name_of(names, ARRAY_SIZE(names), i)
static const char *const states[] = {"not initialized", "precall", "active", "dally", "hold", "reset"};
static const char *const modes[] = {NULL, "sending", "receiving", "error", "eof"};
static const char *const levels[] = {"clear", "auth", "crypt"};

static int level_of(const struct debug_conn *o) { return o->security == 2 || o->sec_type == 3 ? 1 + o->sec_level : 0; }

static bool all_dally(const struct debug_conn *o)
{
	for (int i = 0; i < 4; i++)
		if (o->state[i] != 0 && o->state[i] != 3)
			return false;
	return true;
}

static bool is_wanted(const struct filter *f, const struct debug_conn *o)
{
	return (!f->ip || f->ip == o->ip) && (!f->port || f->port == o->port) && (f->level < 0 || f->level == level_of(o))
	       && (!f->servers || o->type == 1) && (!f->clients || o->type == 0);
}

static void print_flags(const char *head, uint32_t flags, const char *const *names, size_t n)
{
	bool first = true;
	for (size_t i = 0; i < n; i++)
		if (flags >> i & 1 && names[i]) {
			printf("%s %s", first ? head : "", names[i]);
			first = false;
		}
}

static void print_call(const struct debug_conn *o, int i)
{
	static const char *const flags[] = {"reader_wait", "wait_window_alloc", "wait_window_send", "wait_packets", "waiting_for_process",
		"receive_done", "call_cleared", "transmitting"};
	printf("    call %d: # %u, state %s", i, o->call[i], NAME_OF(states, o->state[i]));
	if (o->state[i]) {
		if (o->mode[i] && o->mode[i] < ARRAY_SIZE(modes))
			printf(", mode: %s", modes[o->mode[i]]);
		print_flags(", flags:", o->call_flags[i], flags, ARRAY_SIZE(flags));
		if (o->other[i] & 1)
			printf(", has_input_packets");
		if (o->other[i] & 2)
			printf(", has_output_packets");
	}
	printf("\n");
}

static void print_conn(const struct debug_conn *o)
{
	static const char *const flags[] = {"MAKECALL_WAITING", "DESTROYED", "pktCksum"};
	static const char *const sec_flags[] = {"unallocated", "authenticated", "expired", "pktCksum"};
	printf("Connection from host %s, port %u, Cuid %x/%x", IPV4(o->ip), o->port, o->epoch, o->cid);
	if (o->error)
		printf(", error %d", (int32_t)o->error);
	printf("\n  serial %u,  natMTU %u", o->serial, o->mtu);
	print_flags(", flags", o->flags, flags, ARRAY_SIZE(flags));
	printf(", security index %u, %s conn\n", o->security, o->type ? "server" : "client");
	if (o->sec_type == 3) {
		printf("  rxkad: level %s", NAME_OF(levels, o->sec_level));
		print_flags(", flags", o->sec_flags, sec_flags, ARRAY_SIZE(sec_flags));
		if (o->expires)
			printf(", expires in %.1f hours", ((double)o->expires - (double)time(NULL)) / 3600.0);
		printf("\n  Received %u bytes in %u packets\n  Sent %u bytes in %u packets\n", o->bytes_in, o->packets_in, o->bytes_out, o->packets_out);
	}
	for (int i = 0; i < 4; i++)
		print_call(o, i);
}

static json_t *conn_json(const struct debug_conn *o)
{
	json_t *calls = json_array();
	for (int i = 0; i < 4; i++)
		json_array_append_new(calls, json_pack("{s:I, s:s, s:s?}", "number", (json_int_t)o->call[i], "state", NAME_OF(states, o->state[i]), "mode",
						     o->state[i] && o->mode[i] < ARRAY_SIZE(modes) ? modes[o->mode[i]] : NULL));
	return json_pack("{s:s, s:i, s:I, s:I, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "host", IPV4(o->ip), "port", (int)o->port, "epoch",
		(json_int_t)o->epoch, "cid", (json_int_t)o->cid, "server", (int)o->type, "security",
		!level_of(o) ? "none" : NAME_OF(levels, o->sec_level), "expires", (json_int_t)o->expires, "bytes_received", (json_int_t)o->bytes_in,
		"bytes_sent", (json_int_t)o->bytes_out, "packets_received", (json_int_t)o->packets_in, "packets_sent", (json_int_t)o->packets_out,
		"calls", calls);
}

static void say_filter(struct cli *c, const struct filter *f)
{
	static const char *const shown[] = {"unauthenticated", "rxkad_clear", "rxkad_auth", "rxkad_crypt"};
	if (f->servers)
		cli_say(c, "Showing only server connections\n");
	if (f->clients)
		cli_say(c, "Showing only client connections\n");
	if (f->level >= 0)
		cli_say(c, "Showing only %s connections\n", shown[f->level]);
	if (f->ip)
		cli_say(c, "Showing only connections from host %s\n", IPV4(f->ip));
	if (f->port)
		cli_say(c, "Showing only connections on port %u\n", f->port);
}

static void show_conns(struct asker *a, const struct filter *f, bool all, json_t *json)
{
	unsigned dally = 0;
	struct debug_conn o;
	json_t *list = json_array();
	say_filter(a->c, f);
	for (uint32_t i = 0; i < LIST_MAX_; i++) {
		if (!ask(a, DEBUG, all ? GETALLCONN : GETCONN, i)) {
			cli_fail(a->c, "getconn call failed: the host does not answer");
			break;
		}
		if (!debug_read_conn(a->body, a->len, &o)) {
			cli_say(a->c, "Done.\n");
			break;
		}
		if (f->no_dally && all_dally(&o)) {
			dally++;
			continue;
		}
		if (!is_wanted(f, &o))
			continue;
		if (cli_wants_json(a->c))
			json_array_append_new(list, conn_json(&o));
		else
			print_conn(&o);
	}
	if (f->no_dally)
		cli_say(a->c, "Skipped %u dallying connections.\n", dally);
	json_object_set_new(json, "connections", list);
}

/* --- peers, statistics ---------------------------------------------------------------------------- */

static void print_peer(const struct debug_peer *p, bool all)
{
	printf("Peer at host %s, port %u\n", IPV4(p->ip), p->port);
	printf("\tifMTU %u\tnatMTU %u\tmaxMTU %u\n", p->if_mtu, p->nat_mtu, p->max_mtu);
	printf("\tpackets sent %u\tpacket resends %u\n", p->sent, p->resent);
	printf("\tbytes sent high %u low %u\n\tbytes received high %u low %u\n", p->out_hi, p->out_lo, p->in_hi, p->in_lo);
	printf("\trtt %u msec, rtt_dev %u msec\n\ttimeout %u.%03u sec\n", p->rtt_ms, p->dev_ms, p->timeout_s, p->timeout_us / 1000);
	if (!all)
		return;
	printf("\tin/out packet skew: %u/%u\n", p->in_skew, p->out_skew);
	printf("\tcongestion window %u, MTU %u\n", p->window, p->mtu);
	printf("\tcurrent/if/max jumbogram size: %u/%u/%u\n", p->grams, p->if_grams, p->max_grams);
}

static void show_peers(struct asker *a, json_t *json)
{
	struct debug_peer p;
	json_t *list = json_array();
	for (uint32_t i = 0; i < LIST_MAX_; i++) {
		if (!ask(a, DEBUG, GETPEER, i)) {
			cli_fail(a->c, "getpeer call failed: the host does not answer");
			break;
		}
		if (!debug_read_peer(a->body, a->len, &p)) {
			cli_say(a->c, "Done.\n");
			break;
		}
		if (cli_wants_json(a->c))
			json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I}", "host", IPV4(p.ip), "port", (int)p.port, "mtu",
							    (int)p.mtu, "window", (int)p.window, "rtt_ms", (json_int_t)p.rtt_ms, "packets_sent",
							    (json_int_t)p.sent, "resends", (json_int_t)p.resent, "bytes_sent",
							    (json_int_t)p.out_hi << 32 | p.out_lo, "bytes_received",
							    (json_int_t)p.in_hi << 32 | p.in_lo));
		else
			print_peer(&p, cli_has(a->c, "long"));
	}
	json_object_set_new(json, "peers", list);
}

static const char *const packet_types[] = {"data", "ack", "busy", "abort", "ackall", "challenge", "response", "debug", "params", "unused",
	"unused", "unused", "version"};

static void print_types(const char *head, const uint32_t *w)
{
	printf("   packets %s:", head);
	for (size_t i = 0; i < ARRAY_SIZE(packet_types); i++)
		printf(" %s %u", packet_types[i], w[i]);
	printf(" \n");
}

static double seconds(const uint32_t *w) { return (double)w[0] + (double)w[1] / 1e6; }

static void print_rxstats(const uint32_t *w, uint32_t free_packets)
{
	printf("rx stats: free packets %u, allocs %u, alloc-failures(rcv %u/%u,send %u/%u,ack %u)\n", free_packets, w[0], w[1], w[64], w[2], w[65],
		w[3]);
	printf("   greedy %u, bogusReads %u (last from host %x), noPackets %u, noBuffers %u, selects %u, sendSelects %u\n", w[4], w[5], w[6], w[7],
		w[8], w[9], w[10]);
	print_types("read", w + 11);
	printf("   other read counters: data %u, ack %u, dup %u spurious %u dally %u\n", w[24], w[25], w[26], w[27], w[63]);
	print_types("sent", w + 28);
	printf("   other send counters: ack %u, data %u (not resends), resends %u, pushed %u, acked&ignored %u\n", w[41], w[45], w[46], w[47], w[48]);
	printf("   \t(these should be small) sendFailed %u, fatalErrors %u\n", w[61], w[62]);
	if (w[55]) {
		printf("   Average rtt is %0.3f, with %u samples\n", seconds(w + 49) / w[55], w[55]);
		printf("   Minimum rtt is %0.3f, maximum is %0.3f\n", seconds(w + 51), seconds(w + 53));
	}
	printf("   %u server connections, %u client connections, %u peer structs, %u call structs, %u free call structs\n", w[56], w[57], w[58], w[59],
		w[60]);
}

static json_t *rxstats_json(const uint32_t *w)
{
	json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "resends", (json_int_t)w[46], "send_failures", (json_int_t)w[61], "server_connections",
		(json_int_t)w[56], "client_connections", (json_int_t)w[57], "peers", (json_int_t)w[58], "calls", (json_int_t)w[59]);
	json_t *read = json_object(), *sent = json_object();
	for (size_t i = 0; i < ARRAY_SIZE(packet_types); i++) {
		if (strcmp(packet_types[i], "unused") == 0)
			continue;
		json_object_set_new(read, packet_types[i], json_integer(w[11 + i]));
		json_object_set_new(sent, packet_types[i], json_integer(w[28 + i]));
	}
	json_object_set_new(o, "packets_read", read);
	json_object_set_new(o, "packets_sent", sent);
	return o;
}

static void show_rxstats(struct asker *a, uint32_t free_packets, json_t *json)
{
	uint32_t w[RXSTATS_WORDS];
	if (!ask(a, DEBUG, RXSTATS, 0) || a->len < sizeof(w)) {
		cli_warn(a->c, "WARNING: Server doesn't support retrieval of Rx statistics");
		return;
	}
	for (size_t i = 0; i < RXSTATS_WORDS; i++)
		w[i] = get32(a->body + 4 * i);
	if (cli_wants_json(a->c))
		json_object_set_new(json, "rx", rxstats_json(w));
	else
		print_rxstats(w, free_packets);
}

/* The server's own figures.  Older servers have fewer of them, as a letter says. */
static int show_stats(struct asker *a, json_t *json, uint32_t *free_packets)
{
	if (!ask(a, DEBUG, GETSTATS, 0) || a->len < 32)
		return cli_fail(a->c, "getstats call failed: the host does not answer");
	const uint8_t *p = a->body;
	char version = (char)p[14];
	*free_packets = get32(p);
	if (cli_wants_json(a->c)) {
		json_object_set_new(json, "server", json_pack("{s:I, s:I, s:I, s:b, s:I, s:I}", "free_packets", (json_int_t)get32(p), "packets",
							  (json_int_t)get32(p + 28), "calls", (json_int_t)get32(p + 8), "waiting_for_packets", p[12] != 0,
							  "calls_waiting", (json_int_t)get32(p + 16), "threads_idle", (json_int_t)get32(p + 20)));
		return CLI_OK;
	}
	printf("Free packets: %u", get32(p));
	if (version >= 'S')
		printf("/%u", get32(p + 28));
	printf(", packet reclaims: %u, calls: %u, used FDs: %u\n", get32(p + 4), get32(p + 8), p[13]);
	printf("%swaiting for packets.\n", p[12] ? "" : "not ");
	if (version >= 'N')
		printf("%u calls waiting for a thread\n", get32(p + 16));
	if (version >= 'O')
		printf("%u threads are idle\n", get32(p + 20));
	if (version >= 'R')
		printf("%u calls have waited for a thread\n", get32(p + 24));
	return CLI_OK;
}

static int show_version(struct asker *a)
{
	char text[66];
	if (!ask(a, VERSION_TYPE, 0, 0))
		return cli_fail(a->c, "get version call failed: the host does not answer");
	size_t n = a->len < sizeof(text) - 1 ? a->len : sizeof(text) - 1;
	memcpy(text, a->body, n);
	text[n] = '\0';
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?'; /* it goes to a terminal */
	if (cli_wants_json(a->c))
		return cli_print_json(a->c, json_pack("{s:s}", "version", text));
	printf("AFS version: %s\n", text);
	return CLI_OK;
}

static int read_filter(struct cli *c, struct filter *f)
{
	static const struct {
		const char *name;
		int level;
	} names[] = {{"none", 0}, {"null", 0}, {"noauth", 0}, {"unauth", 0}, {"clear", 1}, {"auth", 2}, {"crypt", 3}};
	const char *auth = cli_value(c, "onlyauth"), *host = cli_value(c, "onlyhost"), *port = cli_value(c, "onlyport");
	*f = (struct filter){.level = -1, .servers = cli_has(c, "onlyserver"), .clients = cli_has(c, "onlyclient"), .no_dally = cli_has(c, "nodally")};
	for (size_t i = 0; auth && i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].name, auth) == 0)
			f->level = names[i].level;
	if (auth && f->level < 0)
		return cli_fail(c, "Unknown authentication level: %s", auth);
	uint32_t ip = 0;
	uint16_t only = 0;
	int status = CLI_OK;
	if (host)
		status = debug_where(c, host, NULL, &f->ip, &only);
	if (status == CLI_OK && port)
		status = debug_where(c, "127.0.0.1", port, &ip, &f->port);
	return status;
}

int cli_rxdebug(struct cli *c)
{
	CLEANUP(asker) struct asker a = {.c = c, .fd = -1, .call = 100};
	struct filter f;
	uint32_t ip, free_packets = 0;
	uint16_t port = FS_UDP;
	int status = read_filter(c, &f);
	if (status == CLI_OK)
		status = debug_where(c, cli_value(c, "servers"), cli_value(c, "port"), &ip, &port);
	if (status != CLI_OK)
		return status;
	if (!open_asker(&a, ip, port))
		return cli_fail(c, "%s port %u: %s", cli_value(c, "servers"), port, strerror(errno));
	cli_say(c, "Trying %s (port %u):\n", IPV4(ip), port);
	if (cli_has(c, "version"))
		return show_version(&a);
	json_t *json = json_object();
	status = show_stats(&a, json, &free_packets);
	if (status == CLI_OK && cli_has(c, "rxstats"))
		show_rxstats(&a, free_packets, json);
	if (status == CLI_OK && !cli_has(c, "noconns"))
		show_conns(&a, &f, cli_has(c, "allconnections"), json);
	if (status == CLI_OK && cli_has(c, "peers"))
		show_peers(&a, json);
	if (status == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json);
	json_decref(json);
	return status;
}
