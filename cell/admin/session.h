/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a struct admin holds; this folder's own. */
#pragma once
#include "cell/admin/inside.h"

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

struct admin {
	char cell[RX_NAME_MAX];
	bool names;
	uint32_t db_ips[ADMIN_DB_MAX];
	size_t db_count, db_first[2]; /* by service: the server that answered last */
	uint16_t port[ADMIN_SERVICES];
	struct rx_buf_pool *pool;
	struct rpc_port *rx;
	struct keys_token token;      /* ticket NULL: anonymous */
	struct buf who, why;
	int32_t code;
	const struct rpc_proc *proc;  /* of the last call; NULL: `why` alone is the reason */
	const char *iface;
	struct rx_addr peer;
	struct session_conn *conns;
	struct session_host *hosts;
};

[[gnu::format(printf, 2, 3)]] void admin_set_reason(struct admin *a, const char *fmt, ...);
