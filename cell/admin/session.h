/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a struct admin holds; this folder's own. */
#pragma once
#include "cell/admin/inside.h"
#include "cell/proto/vl.h"

struct session_host {
	struct session_host *next;
	uint32_t ip;
	char *name;
};
struct session_conn {
	struct session_conn *next;
	uint32_t ip;
	enum admin_service service;
	struct rpc_conn *conn;
};
/* The addresses of one server. */
struct session_server {
	struct session_server *next;
	uint32_t asked; /* the address that they were asked for by */
	uint32_t ips[VL_ADDRS_MAX];
	size_t n;
};

struct admin {
	char cell[RX_NAME_MAX];
	bool names;
	uint32_t db_ips[ADMIN_DB_MAX];
	size_t db_count, db_first[2]; /* by service: the server that answered last */
	uint16_t port[ADMIN_SERVICES];
	struct rx_buf_pool *pool;
	struct rpc_port *rx;
	struct keys_token token;      /* none: anonymous */
	struct buf who, why;
	int32_t code;
	const struct rpc_proc *proc;  /* of the last call; NULL: `why` alone is the reason */
	const char *iface;
	struct rx_addr peer;
	struct session_conn *conns;
	struct session_host *hosts;
	struct session_server *servers;
	void (*say)(void *ctx, const char *step);
	void *say_ctx;
	const volatile sig_atomic_t *stop;
};
