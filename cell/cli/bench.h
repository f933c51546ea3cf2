/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of "afscell bench rx": bench.c reads the options and drives, bench_serve.c is the
 * server, bench_load.c makes the load, bench_raw.c sends UDP without Rx, bench_report.c prints. */
#pragma once
#include "cell/base/mem.h"
#include "cell/cli/cli.h"
#include "rx/io/port.h"

#define XDR_ROWS "cell/cli/bench_rx.def"
#include "rx/xdr/struct_pass.h"
#define RPC_WANT_INDEX
#define RPC_PREFIX bench
#define RPC_ROWS "cell/cli/bench_rx.rpc"
#include "rx/xdr/iface_pass.h"

extern const struct rpc_iface bench_iface;

enum { BENCH_LIST = 16, BENCH_THREADS = 128 };

enum bench_what {
	BENCH_FETCH = 1, BENCH_STORE = 2, BENCH_INLINE = 4, BENCH_WORKER = 8, BENCH_RAW = 16, BENCH_MIX = 32,
	BENCH_VL = 64,
};
enum bench_level { BENCH_NULL, BENCH_CLEAR, BENCH_AUTH, BENCH_CRYPT, BENCH_LEVELS };

struct bench {
	struct cli *c;
	unsigned what;
	bool level[BENCH_LEVELS];
	uint64_t size; /* of a bulk transfer, bytes */
	unsigned calls, runs, flows, seconds, datagram;
	unsigned clients[BENCH_LIST], client_counts;
	bool shared, plain, single;
	const char *name;
	pid_t pid; /* the server's, when it does not tell itself what it used; 0: it does */
	struct rx_addr to;
	struct rx_buf_pool *pool;
	struct rpc_port *port;
	struct bench_report *report;
	bool silent; /* whoever runs it reads the report */
};

/* What a process used so far. */
struct bench_usage {
	uint64_t cpu_us, switches;
};
struct bench_usage bench_own_usage(void);
/* Of another process; zeros when it is gone. */
struct bench_usage bench_usage_of(pid_t pid);

/* One measurement. */
struct bench_row {
	char what[24], level[8];
	unsigned clients; /* callers, or flows; 0: one bulk call */
	bool bulk;        /* units are MB (10^6 bytes) and rates MB/s; else calls */
	double units, seconds;
	double p50_us, p99_us; /* 0: not measured */
	double jain;           /* 0: not measured */
	struct bench_usage mine, theirs;
	bool theirs_known;
};
/* Remembers; rows with the same what, level and clients are runs of one thing. */
void bench_report_add(struct bench_report *r, const struct bench_row *row);
struct bench_report *bench_report_new(void);
void bench_report_free(struct bench_report *r);
/* The medians as a table, or everything as JSON. */
int bench_report_print(const struct bench_report *r, struct cli *c);
/* Median units a second of the rows with that `what`; 0: there is none. */
double bench_report_rate(const struct bench_report *r, const char *what);

/* The same work for whoever sends and receives, with and without Rx: bytes are copied once from where
 * they lie and once to where they are wanted, as between a page cache and the wire. */
extern uint8_t bench_content[65536];
afs_err bench_send_bytes(struct rpc_call *call, uint64_t length);
/* Fewer when the peer ends or `until` has passed; 0: never. */
afs_err bench_take_bytes(struct rpc_call *call, uint64_t length, mono_ns until, uint64_t *took);

/* Serves on that address until SIGINT or SIGTERM, or until `stop` (a descriptor, or -1) ends; says its port
 * through `ready` (or -1). */
int bench_serve(struct bench *b, uint32_t ip, uint16_t port, int ready, int stop);
afs_err bench_port_open(const struct bench *b, const char *name, uint32_t ip, uint16_t number, bool server,
	struct rpc_port **out);
/* NULL for rxnull; the session key is public: this protects nothing and only costs what it costs. */
struct rx_sec *bench_token(enum bench_level level);

/* Each adds rows; CLI_OK or CLI_FAILED (told). */
int bench_bulk(struct bench *b, enum bench_level level, bool fetch);
int bench_small(struct bench *b, enum bench_level level, enum bench_what what, unsigned clients);
int bench_mix(struct bench *b, enum bench_level level);
int bench_raw(struct bench *b, unsigned segment);

/* bench_raw.c's server side; one at a time. */
afs_err bench_raw_serve_begin(uint32_t segment, bool plain, uint32_t ip, uint16_t *port);
void bench_raw_serve_end(uint64_t *bytes, uint64_t *ns);

/* The transport alone, with a server of its own (bench.c): medians are not taken, `size` is moved once each way.
 * Call it before there are threads.  CLI_OK, or told. */
struct bench_alone {
	double raw_small, raw_large, fetch, store; /* MB/s */
};
int bench_rx_alone(struct cli *c, uint64_t size, struct bench_alone *out);
