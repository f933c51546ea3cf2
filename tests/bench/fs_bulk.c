/* SPDX-License-Identifier: BSD-2-Clause
 *
 * StoreData64 and FetchData64 of large files against a file server, ours or any other.
 *
 *   fs_bulk -s ADDRESS -V VOLUME [-m MIB] [-p PIECE_KIB] [-n STREAMS]
 *
 * A file of MIB for each stream is stored in calls of PIECE_KIB, then fetched twice likewise, all
 * streams at once; prints one JSON object for the stores and one for the second fetch (from memory). */
#include "cell/proto/fs.h"
#include "rx/io/port.h"

#define RPC_WANT_STUBS
#define RPC_PREFIX fs
#define RPC_ROWS "cell/proto/fs.rpc"
#include "rx/xdr/iface_pass.h"
#include "tests/lib/meek_cm.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t volume, mib = 128, piece_kib = 1024, streams = 1;
static uint8_t content[65536];

static void must(afs_err err, const char *what)
{
	if (err == AFS_OK)
		return;
	fprintf(stderr, "fs_bulk: %s: %s\n", what, afs_err_text(err));
	exit(1);
}

struct stream {
	struct rpc_conn *conn;
	struct AFSFid fid;
	bool store;
};

static void *run(void *arg)
{
	struct stream *s = arg;
	uint64_t size = (uint64_t)mib << 20, piece = (uint64_t)piece_kib << 10;
	for (uint64_t at = 0; at < size; at += piece) {
		uint64_t n = MIN(piece, size - at);
		struct rpc_call *c;
		if (s->store) {
			struct fs_store_data64_in in = {.Fid = s->fid, .Pos = at, .Length = n, .FileLength = at + n};
			struct fs_store_data64_out out;
			must(rpc_begin(s->conn, &fs_iface.procs[fs_op_store_data64], &in, &c), "store");
			for (uint64_t left = n; left;) {
				size_t some = MIN(left, sizeof(content));
				must(rpc_write(c, content, some), "store");
				left -= some;
			}
			must(rpc_end(c, &out, NULL), "store");
		} else {
			struct fs_fetch_data64_in in = {.Fid = s->fid, .Pos = (int64_t)at, .Len = (int64_t)n};
			struct fs_fetch_data64_out out;
			uint64_t length;
			must(rpc_begin(s->conn, &fs_iface.procs[fs_op_fetch_data64], &in, &c), "fetch");
			must(rpc_read_u64(c, &length), "fetch");
			if (length != n) {
				fprintf(stderr, "fs_bulk: fetched %llu of %llu bytes\n", (unsigned long long)length, (unsigned long long)n);
				exit(1);
			}
			while (length) {
				const uint8_t *p;
				size_t got;
				must(rpc_read_run(c, length, &p, &got), "fetch");
				length -= got;
			}
			must(rpc_end(c, &out, NULL), "fetch");
		}
	}
	return NULL;
}

static double all(struct stream *s, bool store)
{
	pthread_t t[64];
	mono_ns begun = clk_mono();
	for (uint32_t i = 0; i < streams; i++) {
		s[i].store = store;
		if (pthread_create(&t[i], NULL, run, &s[i]) != 0)
			exit(1);
	}
	for (uint32_t i = 0; i < streams; i++)
		pthread_join(t[i], NULL);
	return (double)(clk_mono() - begun) / 1e9;
}

static void tell(const char *what, double seconds)
{
	printf("{\"what\": \"%s\", \"streams\": %u, \"seconds\": %.3f, \"per_s\": %.1f}\n", what, streams, seconds,
		(double)mib * streams * 1.048576 / seconds);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rpc_conn_config config = {.peer = {.port = 7000}, .iface = &fs_iface, .dead_ns = SEC(60)};
	for (int c; (c = getopt(argc, argv, "s:V:m:p:n:")) != -1;) {
		struct in_addr in;
		switch (c) {
		case 's':
			if (inet_pton(AF_INET, optarg, &in) != 1)
				return 2;
			config.peer.ip = ntohl(in.s_addr);
			break;
		case 'V': volume = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'm': mib = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'p': piece_kib = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'n': streams = MIN((uint32_t)strtoul(optarg, NULL, 10), 64u); break;
		default: return 2;
		}
	}
	if (!config.peer.ip || !volume || !mib || !piece_kib || !streams) {
		fprintf(stderr, "usage: fs_bulk -s ADDRESS -V VOLUME [-m MIB] [-p PIECE_KIB] [-n STREAMS]\n");
		return 2;
	}
	memset(content, 'b', sizeof(content));
	struct rpc_service service = meek_service();
	struct rpc_port_config pc = {.name = "bulk", .services = &service, .service_count = 1, .workers = rpc_workers_new("bulk", 2),
		.pool = rx_buf_pool_new(128 << 20)};
	struct rpc_port *port;
	must(rpc_port_open(&pc, &port), "port");
	struct stream s[64] = {0};
	struct AFSFid root = {volume, 1, 1};
	for (uint32_t i = 0; i < streams; i++) {
		char name[40];
		snprintf(name, sizeof(name), "bulk%x.%u", (unsigned)getpid(), i);
		struct fs_create_file_out out;
		must(rpc_conn_new(port, &config, &s[i].conn), "connection");
		must(fs_call_create_file(s[i].conn, &(struct fs_create_file_in){.DirFid = root, .Name = XDR_STR_OF(name)}, &out, NULL), "create");
		s[i].fid = out.OutFid;
	}
	tell("store", all(s, true));
	(void)all(s, false);
	tell("fetch", all(s, false));
	for (uint32_t i = 0; i < streams; i++) {
		char name[40];
		snprintf(name, sizeof(name), "bulk%x.%u", (unsigned)getpid(), i);
		struct fs_remove_file_out out;
		must(fs_call_remove_file(s[i].conn, &(struct fs_remove_file_in){root, XDR_STR_OF(name)}, &out, NULL), "remove");
		rpc_conn_unref(s[i].conn);
	}
	rpc_port_close(port);
	return 0;
}
